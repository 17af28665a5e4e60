"""Quotients by gaps between eigenvalues, of which the derivatives of decompositions are made.

Their derivatives are those of eigenvectors, which `tests/test_linalg_degenerate.py` and the records of eigh, svd and
eig compare with differences.
"""

import numpy as np

from tests.ops.record import Op, Sample, array
from xform.lax.linalg.quotients import middle_p, negligible, quotient_p

DTYPES = ("float32", "float64", "complex64", "complex128")


def quotient(x, d, w, kind, pullback):
    return quotient_p.bind(x, d, w, kind=kind, pullback=pullback)


def quotient_reference(x, d, w, kind, pullback):
    def skew(x):
        return (x - np.conj(x.swapaxes(-1, -2))) / 2

    def over(x, d):
        out = np.where(d == 0, 0, x / np.where(d == 0, 1, d))
        relative, absolute = negligible(x.dtype)
        bad = (d == 0) & (abs(x) > relative * size + absolute)
        return np.where(bad & pullback, np.nan, out).astype(x.dtype)

    size = abs(x).max((-2, -1), keepdims=True, initial=0)
    k = x.shape[-2]
    if kind == "values":
        v = np.einsum("...ii->...i", x)
        bad = np.isnan(over(v[..., None, :] - v[..., None], d)).any(-1) & pullback
        return np.where(np.eye(k, dtype=bool), np.where(bad, np.nan, v)[..., None], 0).astype(x.dtype)
    if kind == "rotation":
        return over(skew(x), d) if pullback else skew(over(x, d))
    if kind != "rotations":
        return over(x, d)
    left, right = d[..., :k], d[..., k:]
    if pullback:
        y, z = x[..., :k], x[..., k:]
        return over(skew(y + z), left) + over(skew(y - z), right)
    a, b = skew(over(x, left)), skew(over(x, right))
    return np.concatenate([a + b, a - b], -1)


def quotient_samples(rng, dtype):
    """Gaps are differences of small integers, so that some are zero."""
    part = np.finfo(dtype).dtype
    for kind in ("columns", "commutator", "anticommutator", "values", "rotation", "rotations"):
        for pullback in (False, True):
            for batch, k in (((), 3), ((2,), 2), ((), 0), ((0,), 2)):
                wide = kind == "rotations"
                x = array(rng, dtype, (*batch, k, k * (1 + (wide and pullback))))
                d = np.broadcast_to(
                    np.subtract.outer(np.arange(k) // 2, np.arange(k) // 2).astype(part), (*batch, k, k)
                )
                d = np.concatenate([d, abs(d) + 1], -1) if wide else d
                yield Sample((x, d, np.zeros((*batch, k, k), dtype)), {"kind": kind, "pullback": pullback})


def bad_quotient():
    quotient(np.ones((2, 2)), np.ones((3, 3)), np.ones((2, 2)), "rotation", False)


def middle_samples(rng, dtype):
    for batch, m, n, k in (((), 3, 3, 3), ((2,), 4, 3, 2), ((0,), 1, 2, 1)):
        x, u, vh = (array(rng, dtype, (*batch, *shape)) for shape in ((m, n), (m, k), (k, n)))
        yield Sample((x, u, array(rng, np.finfo(dtype).dtype, (*batch, k)), vh))


OPS = [
    Op("quotient", quotient, quotient_samples, quotient_reference, DTYPES, differentiable=False,
       errors=[(bad_quotient, ValueError, r"quotient: rotation of f64\[2,2\] need other gaps than f64\[3,3\]")]),
    Op("middle", middle_p.bind, middle_samples, lambda x, u, s, vh: np.zeros((*s.shape, s.shape[-1]), x.dtype), DTYPES,
       differentiable=False,
       errors=[(lambda: middle_p.bind(np.ones((2, 2)), np.ones((2, 2)), np.ones(3), np.ones((2, 2))), ValueError,
                r"middle takes u .* got f64\[2,2\], f64\[3\]")]),
]  # fmt: skip
