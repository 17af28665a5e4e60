"""What all tests share: XLA's flags, 64 bits for JAX as the oracle, Hypothesis profiles, ``rng``.

May import nothing of the library: the environment has to be set before anything loads jaxlib.
"""

import importlib.metadata
import os
import sys
import zlib

if "jaxlib" in sys.modules:
    raise RuntimeError("jaxlib was imported before tests/conftest.py could ask for 8 simulated devices")
# Most programs of tests run once, on a few numbers: XLA's older code generator compiles them in half the time (level 0
# would take a quarter, but it contracts a * b + c in one place and not in another: then no element equals the maximum).
# Where the last bits matter, tests pass `tests.calls.OPTIMIZED`. From jaxlib 0.11 on there is no older generator; and
# with XFORM_TESTS_OPTIMIZED set, as in `make slow`, all programs are compiled as users compile them.
jaxlib_version = tuple(int(n) for n in importlib.metadata.version("jaxlib").split(".")[:2])
is_quick = jaxlib_version < (0, 11) and not os.environ.get("XFORM_TESTS_OPTIMIZED")
QUICK = "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false" if is_quick else ""
os.environ["XLA_FLAGS"] = f"{QUICK} {os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
os.environ["JAX_ENABLE_X64"] = "1"

import hypothesis
import numpy as np
import pytest

PROFILES = {"default": {}, "ci": {"derandomize": True}, "thorough": {"max_examples": 1000}}
for name, settings in PROFILES.items():
    hypothesis.settings.register_profile(name, **({"deadline": None, "max_examples": 30} | settings))
# In CI the same examples on every run, so that a change is judged by what it changed.
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the test's own name: the same numbers in whatever order tests run."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(autouse=True)
def few_programs():
    """XLA maps memory for each program, some 80 times for the larger, and Linux allows a process 65,530 maps."""
    yield
    xla = sys.modules.get("xform.backends.xla")
    if xla is not None and len(xla._slots) > 200:
        sys.modules["xform"].clear_caches()
