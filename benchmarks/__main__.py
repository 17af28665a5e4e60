"""``python -m benchmarks [theme ...] [--quick]``: measure, print the table, exit with 1 if a claim is missed.

Each theme runs in a process of its own. A complete run leaves its table, and the figures as JSON, in
``benchmarks/results``.
"""

import argparse
import datetime
import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import harness
from benchmarks.bounds import BOUNDS

THEMES = (
    "startup",
    "eager",
    "numpy",
    "gradients",
    "staging",
    "compiled",
    "derivatives",
    "elementary",
    "convolution",
    "small_matrices",
    "first_call",
)
BY_NAME_ONLY = ("primitives",)  # takes ten minutes; its table is kept in results/primitives.md
# Of the environment: executables of earlier runs, what may hold NumPy's BLAS to an old processor's code, and what keeps
# Python from storing compiled modules (JAX's are compiled when pip installs it).
LEFT_OUT = {
    "PYTHONDONTWRITEBYTECODE",
    "XFORM_CACHE_DIR",
    "XFORM_COMPILATION_CACHE_DIR",
    "JAX_COMPILATION_CACHE_DIR",
    "XLA_FLAGS",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
}
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__.splitlines()[0])
    names = f"{', '.join(THEMES)} (by default all), {', '.join(BY_NAME_ONLY)}"
    parser.add_argument("themes", nargs="*", metavar="theme", help=f"some of: {names}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, a shorter unrolled program")
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)  # measure one theme in this very process
    options = parser.parse_args()
    if unknown := set(options.themes) - {*THEMES, *BY_NAME_ONLY}:
        parser.error(f"unknown theme {', '.join(sorted(unknown))}; there are {names}")
    if options.here:
        (theme,) = options.themes
        rows = harness.run(importlib.import_module(f"benchmarks.{theme}").rows, options.quick)
        options.here.write_text(json.dumps({row.name: row.seconds for row in rows}))
        return 0

    rows = []
    for theme in options.themes or THEMES:
        print(f"{theme} ...", file=sys.stderr, flush=True)
        rows += measure_apart(theme, options.quick)
    text = f"{machine()}\n\n{harness.table(rows)}\n"
    print(text)
    if not options.themes and not options.quick:
        if unmeasured := set(BOUNDS) - {row.name for row in rows}:
            raise KeyError(f"no row for what is claimed of {sorted(unmeasured)}")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "latest.md").write_text(text)
        figures = {row.name: row.seconds for row in rows}
        (RESULTS / "latest.json").write_text(json.dumps(figures, indent=1))
    if options.themes == ["primitives"] and not options.quick:
        (RESULTS / "primitives.md").write_text(text.replace("Medians", "Least of a few rounds", 1))
    missed = [f"{row.name}, to {peer}" for row in rows for peer in row.missed()]
    for claim in missed:
        print(f"MISSED: {claim}")
    return 1 if missed else 0


def measure_apart(theme: str, quick: bool) -> list[harness.Row]:
    """The rows of `theme`, measured in a new process."""
    environment = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    environment["JAX_ENABLE_X64"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "rows.json")
        command = [sys.executable, "-m", "benchmarks", theme, "--here", str(result), *["--quick"] * quick]
        subprocess.run(command, check=True, env=environment)
        return [harness.Row(name, seconds) for name, seconds in json.loads(result.read_text()).items()]


def machine() -> str:
    """One line on where and with what this was measured."""
    packages = ("jax", "numpy", "autograd")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return (
        f"Medians, {datetime.date.today()}: {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}, {versions}; float64."
    )


if __name__ == "__main__":
    sys.exit(main())
