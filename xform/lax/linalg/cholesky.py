"""The Cholesky decomposition ``x = L L^H`` of Hermitian positive definite matrices.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.triangular_solve`, `lax.linalg.small`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import _umath_linalg as umath

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arithmetic import add_p
from xform.lax.linalg import lapack, small
from xform.lax.linalg.matrices import (
    batch_in_front,
    check_matrices,
    hermitian_part,
    matmul,
    scaled,
    tril,
)
from xform.lax.linalg.triangular_solve import solve
from xform.lax.linalg.unrolled import unrolled


def _host(x: Any) -> Any:
    out = umath.cholesky_lo(x)  # NaN throughout where x is not positive definite
    return np.tril(out) if out.size and np.isnan(out[..., 0, -1]).any() else out


def _jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    """``dL = L phi(L^-1 dA L^-H)``, phi: lower triangle with half the diagonal (Murray 2016, arXiv:1602.07527)."""
    (x,), (t,) = primals, ts
    out = cholesky_p.bind(x)
    if type(t) is Zero:
        return out, zero_of(out)
    t = hermitian_part(_twice_below(t))  # only the lower triangle is read
    inner = solve(out, solve(out, t, left_side=False, transpose=True))
    return out, scaled(matmul(out, _twice_below(inner)), 0.5)


def _twice_below(x: Any) -> Any:
    """The lower triangle, with twice what is below the diagonal."""
    return add_p.bind(tril(x), tril(x, -1))


def _lower(ctx: Context, x: Value) -> Value:
    if ctx.platform != "cpu" or not x.aval.size:
        out = ctx.op("cholesky", [x], ctx.out, "lower = true")
    else:
        results = [(ctx.out, 2), (ShapedArray(x.shape[:-2], lapack.INFO), 0)]
        out, info = lapack.call(ctx, "potrf", [(x, 2)], results, {"lower": True}, [(0, 0)])
        (out,) = lapack.where(ctx, lapack.converged(ctx, info), [out])
    return lapack.triangle(ctx, out, lower=True)


cholesky_p = Primitive("cholesky")
cholesky_p.abstract_eval = lambda x: x.strong
cholesky_p.host = _host
cholesky_p.jvp = _jvp
cholesky_p.batch = batch_in_front(cholesky_p)
cholesky_p.lower = _lower
unrolled(cholesky_p, small.cholesky)


@api_boundary
def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with ``x = L L^H``.

    Parameters
    ----------
    x : array (..., n, n)
        Hermitian positive definite matrices, float32, float64, complex64 or complex128.
    symmetrize_input : bool
        Use ``(x + x^H) / 2``; else only the lower triangle of `x` is read.

    Returns
    -------
    Array (..., n, n); the lower triangle is NaN for matrices that are not positive definite.

    Examples
    --------
    >>> from xform import lax
    >>> lax.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    check_matrices("cholesky", get_aval(x), square=True)
    return cholesky_p.bind(hermitian_part(x) if symmetrize_input else x)
