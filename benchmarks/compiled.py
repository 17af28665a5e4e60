"""How fast compiled programs run: the gradient that the demo's sampler needs; particles; sorts and sums."""

from collections.abc import Iterator

import numpy as np

from benchmarks.harness import Library, Row, compare, library


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
    yield particles(libraries, quick)
    yield from long_axes(libraries, quick)


def particles(libraries: list[Library], quick: bool) -> Row:
    """Forces by `grad` of an energy that sums over a trailing axis of three."""
    points = 1.2 * np.stack(np.meshgrid(*[np.arange(8.0)] * 3), -1).reshape(-1, 3)[:256]
    points += 0.05 * np.random.default_rng(0).standard_normal(points.shape)
    namespaces = {}
    for each in libraries:
        step = each.api.jit(each.load("benchmarks.programs").lennard_jones_step)
        arrays = each.numpy.array(points), each.numpy.zeros(points.shape)
        namespaces[each.name] = {"step": step, "arrays": arrays}
    statement = "for result in step(*arrays): result.block_until_ready()"
    return Row("compiled: a Lennard-Jones step, N=256", compare(statement, namespaces, quick=quick))


def long_axes(libraries: list[Library], quick: bool) -> Iterator[Row]:
    """What follows the order of a million elements."""
    x = np.random.default_rng(0).uniform(-1, 1, 10**6)
    for name in ("sort", "argsort", "cumsum"):
        namespaces = {
            each.name: {"f": each.api.jit(getattr(each.numpy, name)), "x": each.numpy.array(x)} for each in libraries
        }
        yield Row(f"compiled, 1e6 float64: {name}", compare("f(x).block_until_ready()", namespaces, quick=quick))
