"""The first call of a long unrolled program, which is mostly XLA's compile time. JAX takes about a minute."""

import timeit
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Row, library


def rows(quick: bool) -> Iterator[Row]:
    """Trace, lower, compile and run the gradient of 50 steps of 8 bodies, once; of 10 steps if `quick`."""
    steps = 10 if quick else 50
    points = np.random.default_rng(0).normal(size=(8, 3))
    for name, gravity, coordinates in (
        ("N-body steps", "gravity_by_components", list(points.T)),
        ("N-body steps, array of points", "gravity_of_points", [points]),
    ):
        seconds = {}
        for each in (library(name) for name in ("xform", "JAX")):
            # XLA's own start is not part of the program's first call.
            each.api.jit(lambda x: x + 1.0)(each.numpy.array([1.0])).block_until_ready()
            programs = each.load("benchmarks.programs")
            space = {
                "f": each.api.jit(programs.nbody_gradient(getattr(programs, gravity), steps)),
                "q": [each.numpy.array(x) for x in coordinates],
            }
            seconds[each.name] = timeit.timeit("f(q)[0].block_until_ready()", globals=space, number=1)
        yield Row(f"first call: gradient of {steps} unrolled {name}", seconds)
    yield products(quick)


def products(quick: bool) -> Row:
    """The gradient of 100 small matrices, one after the other, times a vector."""
    count = 20 if quick else 100
    matrices = np.random.default_rng(0).normal(size=(count, 8, 8)) / 3
    seconds = {}
    for each in (library(name) for name in ("xform", "JAX")):
        each.api.jit(lambda x: x + 1.0)(each.numpy.array([1.0])).block_until_ready()
        f = each.api.jit(each.load("benchmarks.programs").matrix_chain_gradient())
        space = {"f": f, "matrices": [each.numpy.array(m) for m in matrices], "x": each.numpy.ones(8)}
        seconds[each.name] = timeit.timeit("f(matrices, x)[0].block_until_ready()", globals=space, number=1)
    return Row(f"first call: gradient of {count} products of 8x8 matrices and vectors", seconds)
