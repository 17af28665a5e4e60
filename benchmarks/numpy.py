"""A hundred functions of NumPy, on arrays of five elements and of a million."""

import timeit
from collections.abc import Iterator
from typing import Any

from benchmarks.harness import Row, geometric_mean, library, measure

SMALL, LARGE = 5, 10**6

# What takes a time that grows with the arrays, ...
STATEMENTS = [
    "np.abs(x)",
    "np.add(x, y)",
    "np.clip(x, 0.2, 0.7)",
    "np.divide(x, y)",
    "np.exp(x)",
    "np.greater(x, y)",
    "np.isnan(x)",
    "np.log(x)",
    "np.logaddexp(x, y)",
    "np.logical_and(mask, other)",
    "np.maximum(x, y)",
    "np.multiply(x, y)",
    "np.nan_to_num(x)",
    "np.power(x, y)",
    "np.round(x)",
    "np.sign(x)",
    "np.sin(x)",
    "np.sqrt(x)",
    "np.tanh(x)",
    "np.where(mask, x, y)",
    "np.isclose(x, y)",
    "np.allclose(x, y)",
    "np.select([mask, other], [x, y])",
    "np.arange(n)",
    "np.full(n, 1.5)",
    "np.full_like(x, 2.0)",
    "np.linspace(0.0, 1.0, n)",
    "np.meshgrid(few, x)",
    "np.ones(n)",
    "np.zeros(n)",
    "np.zeros_like(x)",
    "np.tril(m)",
    "np.append(x, y)",
    "np.concatenate([x, y])",
    "np.pad(x, 1)",
    "np.repeat(x, 2)",
    "np.roll(x, 1)",
    "np.stack([x, y])",
    "np.tile(x, 2)",
    "np.vstack([x, y])",
    "np.all(mask)",
    "np.argmax(x)",
    "np.average(x, weights=y)",
    "np.count_nonzero(mask)",
    "np.cumsum(x)",
    "np.max(x)",
    "np.mean(x)",
    "np.median(x)",
    "np.nanmean(x)",
    "np.prod(x)",
    "np.std(x)",
    "np.sum(x)",
    "np.var(x)",
    "np.argsort(x)",
    "np.sort(x)",
    "np.searchsorted(ordered, y)",
    "np.unique(k)",
    "np.nonzero(mask)",
    "np.take(x, i)",
    "np.take_along_axis(x, i, 0)",
    "np.bincount(k)",
    "np.interp(y, ordered, x)",
    "np.diff(x)",
    "np.histogram(x)",
    "np.packbits(mask)",
    "np.polyval(few, x)",
    "np.dot(x, y)",
    "np.vdot(x, y)",
    "np.einsum('i,i->', x, y)",
    "np.kron(few, x)",
    "np.matmul(m, m)",
    "np.outer(few, x)",
    "np.tensordot(m, m, 1)",
    "np.linalg.cholesky(m)",
    "np.linalg.det(m)",
    "np.linalg.inv(m)",
    "np.linalg.norm(x)",
    "np.linalg.solve(m, m)",
    "np.fft.fft(x)",
    "np.fft.rfft(x)",
]

# ... and what doesn't, or would take too long.
ONLY_SMALL = [
    "np.array(x)",
    "np.asarray(x)",
    "np.atleast_1d(x)",
    "np.broadcast_to(x, (2, n))",
    "np.diag(x)",
    "np.diagonal(m)",
    "np.expand_dims(x, 0)",
    "np.eye(n)",
    "np.flip(x)",
    "np.moveaxis(m, 0, 1)",
    "np.ravel(m)",
    "np.real(z)",
    "np.reshape(x, (1, n))",
    "np.split(x, [1, 2])",
    "np.squeeze(row)",
    "np.swapaxes(m, 0, 1)",
    "np.transpose(m)",
    "np.trace(m)",
    "np.linalg.eigh(m)",
    "np.linalg.svd(m)",
]


def rows(quick: bool) -> Iterator[Row]:
    """Each function on small arrays, beside NumPy and JAX, and on large ones, beside NumPy; their geometric means."""
    for size, names, statements in (
        (SMALL, ("xform", "NumPy", "JAX"), STATEMENTS + ONLY_SMALL),
        (LARGE, ("xform", "NumPy"), STATEMENTS),
    ):
        namespaces = {name: namespace(library(name).numpy, size) for name in names}
        share_memory(namespaces["xform"], namespaces["NumPy"])
        what = f"numpy, {size:,} elements"
        group = []
        for statement in statements:
            timers = {name: timeit.Timer(statement, globals=space) for name, space in namespaces.items()}
            group.append(Row(f"{what}: {statement.removeprefix('np.')}", measure(timers, quick=True)))
            yield group[-1]
        yield geometric_mean(f"{what}: geometric mean", group)


def namespace(np: Any, size: int) -> dict[str, Any]:
    """What the statements use, as arrays of the library whose NumPy is `np`; matrices of about so many elements."""
    import numpy

    rng = numpy.random.default_rng(0)
    order = 3 if size < 1000 else round(size**0.5)
    x, y, mask, other = (rng.uniform(0.1, 0.9, size) for _ in range(4))
    factor = rng.standard_normal((order, order))
    arrays = {
        "x": x, "y": y, "z": x + 1j * y, "ordered": numpy.sort(y), "few": rng.uniform(size=3), "row": x[None],
        "m": factor @ factor.T + order * numpy.eye(order),
        "i": rng.permutation(size), "k": rng.integers(0, 10, size), "mask": mask < 0.5, "other": other < 0.5,
    }  # fmt: skip
    return {"np": np, "n": size} | {name: np.array(value) for name, value in arrays.items()}


def share_memory(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Put views of our arrays in the place of NumPy's: whether the pages of memory are large ones decides some rows."""
    import numpy

    for name, value in theirs.items():
        if isinstance(value, numpy.ndarray):
            theirs[name] = numpy.asarray(ours[name])
