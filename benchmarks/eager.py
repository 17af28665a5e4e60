"""Single operations on small arrays, outside of any transformation."""

import timeit
from collections.abc import Iterator

from benchmarks.harness import Row, geometric_mean, library, measure

STATEMENTS = {
    "x + y": "x + y",
    "sin": "np.sin(x)",
    "sum": "np.sum(x)",
    "dot": "np.dot(x, y)",
    "x[0]": "x[0]",
    "x[1:]": "x[1:]",
    "concatenate": "np.concatenate([x, y])",
    "where": "np.where(mask, x, y)",
    "at[0].set": "x.at[0].set(1.0)",
}
# How a library without functional updates does the same; autograd can not differentiate any.
NUMPY_UPDATE = "z = x.copy(); z[0] = 1.0"


def rows(quick: bool) -> Iterator[Row]:
    """Each operation on 3 and on 1,000 elements, and their geometric mean."""
    libraries = [library(name) for name in ("xform", "NumPy", "autograd", "JAX")]
    for size in (3, 1000):
        namespaces = {each.name: namespace(each.numpy, size) for each in libraries}
        group = []
        for name, statement in STATEMENTS.items():
            timers = {key: timeit.Timer(statement, globals=space) for key, space in namespaces.items()}
            if ".at[" in statement:
                timers["NumPy"] = timeit.Timer(NUMPY_UPDATE, globals=namespaces["NumPy"])
                del timers["autograd"]
            group.append(Row(f"eager, {size} elements: {name}", measure(timers, quick=quick)))
            yield group[-1]
        yield geometric_mean(f"eager, {size} elements: geometric mean", group)


def namespace(np, size: int) -> dict:
    """What the statements use, as arrays of the library whose NumPy is `np`."""
    x, y = np.linspace(0.0, 1.0, size), np.linspace(1.0, 0.5, size)
    return {"np": np, "x": x, "y": y, "mask": x > y}
