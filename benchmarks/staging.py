"""What `jit` costs beside the computation: tracing, lowering, and calling what is compiled."""

from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Row, compare, library


def rows(quick: bool) -> Iterator[Row]:
    """Trace and lower the gradient of a perceptron; call compiled functions of one and of 100 arrays."""
    libraries = [library(name) for name in ("xform", "JAX")]

    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(8, 8)) / 3, np.zeros(8)) for _ in range(100)]
    namespaces = {
        each.name: {
            "jit": each.api.jit,
            "new_gradient": each.load("benchmarks.programs").mlp_gradient,
            "layers": [tuple(each.numpy.array(a) for a in layer) for layer in layers],
            "x": each.numpy.array(rng.normal(size=(4, 8))),
        }
        for each in libraries
    }
    # Each time a new function, so that no cache knows it.
    trace = "traced = jit(new_gradient()).trace(layers, x)"
    for name, statement, setup in (("trace", trace, "pass"), ("lower", "traced.lower()", trace)):
        seconds = compare(statement, namespaces, setup, number=1, quick=quick)
        yield Row(f"{name}: gradient of a 100-layer MLP", seconds)

    # Three elements are done by NumPy in xform, two thousand by XLA in both.
    for size, suffix in ((3, ""), (2000, " of 2,000 elements")):
        for name, make_argument in (
            ("one array", lambda np, n=size: np.arange(1.0 * n)),
            ("dict of 100 arrays", lambda np, n=size: {f"array{i:03}": np.arange(1.0 * n) + i for i in range(100)}),
        ):
            namespaces = {each.name: {"f": plus_one(each), "x": make_argument(each.numpy)} for each in libraries}
            yield Row(f"jit dispatch: {name}{suffix}", compare("f(x)", namespaces, quick=quick))


def plus_one(each):
    """A compiled function that adds one to an array, or to each array of a dict."""
    return each.api.jit(lambda x: {k: v + 1.0 for k, v in x.items()} if isinstance(x, dict) else x + 1.0)
