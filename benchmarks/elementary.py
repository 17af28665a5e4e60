"""Elementary functions of a million elements, compiled and on the host, and what their first call costs."""

import timeit
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Row, compare, geometric_mean, library, measure

SIZE = 10**6
# The interval of the arguments of each function.
FUNCTIONS = {
    "exp": (-10, 10),
    "exp2": (-10, 10),
    "expm1": (-2, 2),
    "log": (0.1, 50),
    "log1p": (-0.5, 5),
    "sin": (-10, 10),
    "cos": (-10, 10),
    "tan": (-10, 10),
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arctan": (-5, 5),
    "sinh": (-3, 3),
    "cosh": (-3, 3),
    "tanh": (-3, 3),
    "arcsinh": (-5, 5),
    "arccosh": (1, 10),
    "arctanh": (-1, 1),
    "cbrt": (-10, 10),
    "power": (0.1, 5),
    "arctan2": (-5, 5),
}
BINARY = ("power", "arctan2")


def rows(quick: bool) -> Iterator[Row]:
    """Each function compiled, in float64 and float32, and on the host; a product of two; a chain of many."""
    for dtype in ("float64", "float32"):
        group = []
        for name in FUNCTIONS:
            group.append(Row(f"compiled, 1e6 {dtype}: {name}", function(name, dtype, compiled=True)))
            yield group[-1]
        yield geometric_mean(f"compiled, 1e6 {dtype}: geometric mean", group)
    group = []
    for name in FUNCTIONS:
        group.append(Row(f"eager, 1e6 float64: {name}", function(name, "float64", compiled=False)))
        yield group[-1]
    yield geometric_mean("eager, 1e6 float64: geometric mean", group)
    yield product(quick)
    yield first_call(quick)


def function(name: str, dtype: str, compiled: bool) -> dict[str, float]:
    """Seconds of one function, by library; a few rounds of a million elements are enough."""
    rng = np.random.default_rng(0)
    args = [rng.uniform(*FUNCTIONS[name], SIZE).astype(dtype) for _ in range(1 + (name in BINARY))]
    timers = {}
    for each in [library(n) for n in ("xform", "NumPy", "JAX")]:
        f = getattr(each.numpy, name)
        space = {"f": f, "args": args}
        if each.name != "NumPy":
            space = {"f": each.api.jit(f) if compiled else f, "args": [each.numpy.asarray(a) for a in args]}
        wait = ".block_until_ready()" if compiled and each.name != "NumPy" else ""
        timers[each.name] = timeit.Timer(f"f(*args){wait}", globals=space)
    if not compiled:
        del timers["JAX"]
    return measure(timers, quick=True)


def product(quick: bool) -> Row:
    """Two functions in one loop."""
    namespaces = {}
    for each in [library(n) for n in ("xform", "JAX")]:
        np_ = each.numpy
        f = each.api.jit(lambda x, np_=np_: np_.sin(x) * np_.exp(-x * x))
        namespaces[each.name] = {"f": f, "x": np_.asarray(np.random.default_rng(0).uniform(-3, 3, SIZE))}
    return Row(
        "compiled, 1e6 float64: sin(x) * exp(-x * x)", compare("f(x).block_until_ready()", namespaces, quick=quick)
    )


def first_call(quick: bool) -> Row:
    """Compilation, mainly."""
    namespaces = {}
    for each in [library(n) for n in ("xform", "JAX")]:
        namespaces[each.name] = {"jit": each.api.jit, "sin": each.numpy.sin, "x": each.numpy.ones(1000)}
    setup = """
def chain(x):
    for _ in range(50):
        x = sin(x)
    return x
"""
    timers = {
        name: timeit.Timer("jit(chain)(x).block_until_ready()", setup, globals=space)
        for name, space in namespaces.items()
    }
    return Row("first call: 50 sines of 1,000 elements", measure(timers, quick=quick, number=1))
