"""What a new process waits for."""

import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.harness import Row, rotated

PROGRAMS = {
    "import": "import {package}",
    "first jitted result in a new process": """
import {package} as lib, {package}.numpy as np
lib.jit(lambda x: np.sum(np.sin(x) * x))(np.array([1.0, 2.0, 3.0])).block_until_ready()
""",
}
# The process itself measures, so that the interpreter's own start is left out.
CLOCK = "import time\nstart = time.perf_counter()\n{program}\nprint(time.perf_counter() - start)"


def rows(quick: bool) -> Iterator[Row]:
    """Import, and import with a first small result of `jit`."""
    packages = {"xform": "xform", "JAX": "jax"}
    for name, program in PROGRAMS.items():
        times: dict[str, list[float]] = {library: [] for library in packages}
        for package in packages.values():  # compiles its modules
            subprocess.run([sys.executable, "-c", f"import {package}"], check=True)
        for i in range(3 if quick else 9):
            for library in rotated(list(packages), i):
                script = CLOCK.format(program=program.format(package=packages[library]))
                output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
                times[library].append(float(output.stdout))
        yield Row(name, {library: statistics.median(values) for library, values in times.items()})
