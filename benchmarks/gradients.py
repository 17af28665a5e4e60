"""Gradients that are evaluated at once, operation by operation, without `jit`."""

from collections.abc import Iterator

from benchmarks.harness import Row, compare, library


def rows(quick: bool) -> Iterator[Row]:
    """A short expression, and a loop of 60 operations."""
    libraries = [library(name) for name in ("xform", "autograd", "JAX")]
    programs = {each.name: each.load("benchmarks.programs") for each in libraries}
    for name, function, argument in (
        ("sum(sin(x) * x)", "sin_times", lambda np: np.array([0.1, 0.2, 0.3])),
        ("pendulum, 20 leapfrog steps", "pendulum", lambda np: 1.0),
    ):
        namespaces = {
            each.name: {
                "gradient": each.api.grad(getattr(programs[each.name], function)),
                "x": argument(each.numpy),
            }
            for each in libraries
        }
        yield Row(f"eager gradient: {name}", compare("gradient(x)", namespaces, quick=quick))
