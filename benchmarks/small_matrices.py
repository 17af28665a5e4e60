"""How fast many small matrices are inverted, decomposed and so on, compiled and eagerly."""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.harness import Library, Row, compare, library

COUNT = 10_000
NAMES = ("inv", "solve", "det", "slogdet", "cholesky", "eigh")


def rows(quick: bool) -> Iterator[Row]:
    """Ten thousand matrices of 2, 3 and 4 rows: compiled, and each operation on its own beside NumPy's."""
    compiled, eager = [library(name) for name in ("xform", "JAX")], [library(name) for name in ("xform", "NumPy")]
    for n in (3, 2, 4):
        for dtype in ("float64", "complex128") if n == 3 else ("float64",):
            for name in NAMES:
                arrays = arguments(name, n, dtype)
                what = f"{name}, {COUNT:,} {n}x{n} {dtype}"
                spaces = {each.name: program(each, name, arrays) for each in compiled}
                yield Row(f"compiled {what}", compare("wait(f(*xs))", spaces, quick=quick))
                spaces = {each.name: {"f": operation(each, name), "xs": held(each, arrays)} for each in eager}
                yield Row(f"eager {what}", compare("f(*xs)", spaces, quick=quick))


def arguments(name: str, n: int, dtype: str) -> list[np.ndarray]:
    """Matrices of normally distributed numbers, or of a positive definite kind; with vectors for `solve`."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((COUNT, n, n)).astype(dtype)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(x.shape)
    if name in ("cholesky", "eigh"):
        x = x @ np.conj(x.swapaxes(-1, -2)) + np.eye(n)
    return [x, x[..., :1]] if name == "solve" else [x]


def operation(each: Library, name: str) -> Callable:
    """The function of a library, with a list of arrays as result."""
    function = getattr(each.numpy.linalg, name)
    return (lambda *xs: list(function(*xs))) if name in ("eigh", "slogdet") else lambda *xs: [function(*xs)]


def held(each: Library, arrays: list[np.ndarray]) -> list:
    """The library's arrays."""
    return [each.numpy.array(x) for x in arrays]


def program(each: Library, name: str, arrays: list[np.ndarray]) -> dict:
    """A namespace with the compiled operation and its arguments."""

    def wait(outs: list) -> None:
        for out in outs:
            out.block_until_ready()

    return {"f": each.api.jit(operation(each, name)), "xs": held(each, arrays), "wait": wait}
