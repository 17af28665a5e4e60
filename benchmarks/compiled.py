"""How fast compiled programs run: the gradient that the demo's sampler spends its time in."""

from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Row, compare, library


def rows(quick: bool) -> Iterator[Row]:
    """The gradient of the demo's log posterior at one point, and at one point for each of four chains."""
    libraries = [library(name) for name in ("xform", "JAX")]
    models = {each.name: each.load("demo.lotka_volterra") for each in libraries}
    theta = np.log([mean for mean, _ in models["xform"].PUBLISHED.values()])
    for name, transform, argument in (
        ("", lambda each, f: f, theta),
        (", 4 chains", lambda each, f: each.api.vmap(f), np.tile(theta, (4, 1))),
    ):
        namespaces = {
            each.name: {
                "f": each.api.jit(transform(each, each.api.grad(models[each.name].log_density))),
                "x": each.numpy.array(argument),
            }
            for each in libraries
        }
        seconds = compare("f(x).block_until_ready()", namespaces, quick=quick)
        yield Row(f"compiled: gradient of the demo's log posterior{name}", seconds)
