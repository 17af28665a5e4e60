"""The QR decomposition ``x = Q R`` by Householder reflections, with and without exchange of columns.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.triangular_solve`, `lax.linalg.lu`,
`lax.linalg.reflections`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arithmetic import add_p, complex_p, imag_p, sub_p
from xform.lax.families import constant, is_complex
from xform.lax.linalg import lapack
from xform.lax.linalg.lu import permuted
from xform.lax.linalg.matrices import (
    adjoint,
    batch_in_front,
    block,
    check_matrices,
    diagonal,
    diagonal_matrix,
    matmul,
    resized,
    transposed,
    tril,
)
from xform.lax.linalg.reflections import product_host, scipy_routine
from xform.lax.linalg.triangular_solve import solve

# qr(x): [Q, R], with pivoting [Q, R, permutation of the columns].


def _types(x: ShapedArray, *, full_matrices: bool, pivoting: bool) -> list[ShapedArray]:
    check_matrices("qr", x)
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    out = [ShapedArray((*batch, m, k), x.dtype), ShapedArray((*batch, k, n), x.dtype)]
    return [*out, ShapedArray((*batch, n), np.int32)] if pivoting else out


def _host(x: Any, *, full_matrices: bool, pivoting: bool) -> list[Any]:
    if not pivoting:
        return list(np.linalg.qr(x, "complete" if full_matrices else "reduced"))
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    q, r = np.empty((*batch, m, k), x.dtype), np.empty((*batch, k, n), x.dtype)
    order = np.empty((*batch, n), np.int32)
    for i in np.ndindex(*batch):
        q[i], r[i], order[i] = _pivoted(x[i], k) if x.size else (np.eye(m, k), 0, np.arange(n))
    return [q, r, order]


def _pivoted(x: Any, k: int) -> tuple[Any, Any, Any]:
    """One matrix, k columns of Q."""
    m, n = x.shape
    packed, order, taus, _, _ = scipy_routine("geqp3", x.dtype.char)(x)
    a = np.zeros((m, k), x.dtype)
    a[:, : min(n, k)] = packed[:, :k]
    return product_host(a, taus), np.triu(packed[:k]), order - 1


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, full_matrices: bool, pivoting: bool) -> Any:
    """``dQ = Q S + (1 - Q Q^H) dA R^-1``, ``dR = Q^H dA - S R`` (Walter and Lehmann 2010, arXiv:1001.1654).

    S is skew Hermitian with the strict lower triangle of ``M = Q^H dA R^-1``, since ``M - S = dR R^-1`` is upper
    triangular with a real diagonal, as is R. Of a wide matrix the first columns determine Q. Of a full Q
    with more columns than `x` only the span of the rest is determined; among themselves they don't rotate.
    """
    (x,), (t,) = primals, ts
    q, r, *order = outs = qr_p.bind(x, full_matrices=full_matrices, pivoting=pivoting)
    if type(t) is Zero:
        return outs, [zero_of(o) for o in outs]
    *_, m, n = x.shape
    if pivoting:
        t = transposed(permuted(transposed(t), order[0]))
    k = min(m, n)
    first = block(t, (0, m), (0, k)) if k < n else t
    y = solve(r if r.shape[-2:] == (k, k) else block(r, (0, k), (0, k)), first, left_side=False, lower=False)
    qh = adjoint(q)
    overlap = matmul(qh, y)
    thin = m > n and not full_matrices
    skew = _skew(resized(overlap, q.shape[-1], q.shape[-1]))
    tq = matmul(q, sub_p.bind(skew, overlap) if thin else skew)
    if thin:
        tq = add_p.bind(tq, y)
    tr = sub_p.bind(matmul(qh, t), matmul(skew, r))
    return outs, [tq, tr, *(zero_of(o) for o in order)]


def _skew(x: Any) -> Any:
    """The skew Hermitian matrix with the strict lower triangle of `x`, and what is imaginary on its diagonal."""
    below = tril(x, -1)
    out = sub_p.bind(below, adjoint(below))
    if is_complex(x):
        phases = imag_p.bind(diagonal(x))
        out = add_p.bind(out, diagonal_matrix(complex_p.bind(constant(phases, 0), phases)))
    return out


def _lower(ctx: Context, x: Value, *, full_matrices: bool, pivoting: bool) -> list[Value]:
    lapack.kernel(ctx, "geqp3" if pivoting else "geqrf", "qr")
    q, r, *order = ctx.outs
    *batch, m, n = x.shape
    k = q.shape[-1]
    if not x.aval.size:
        counted = [ctx.op("iota", [], a, f"iota_dimension = {len(batch)} : i64") for a in order]
        return [lapack.identity(ctx, q), ctx.full(r.shape, 0, r.dtype), *counted]
    taus = ShapedArray((*batch, min(m, n)), x.dtype)
    if pivoting:
        free = ctx.full(order[0].shape, 0, np.int32)
        packed, last, factors = lapack.call(
            ctx, "geqp3", [(x, 2), (free, 1)], [(x.aval, 2), (order[0], 1), (taus, 1)], in_place=[(0, 0), (1, 1)]
        )
        counted = [ctx.op("subtract", [last, ctx.full(last.shape, 1, np.int32)], last.aval)]
    else:
        packed, factors = lapack.call(ctx, "geqrf", [(x, 2)], [(x.aval, 2), (taus, 1)], in_place=[(0, 0)])
        counted = []
    vectors = lapack.resized(ctx, packed, m, k)
    product = lapack.call(ctx, "orgqr", [(vectors, 2), (factors, 1)], [(q, 2)], in_place=[(0, 0)])[0]
    return [product, lapack.triangle(ctx, lapack.resized(ctx, packed, k, n), lower=False), *counted]


qr_p = Primitive("qr", multiple_results=True)
qr_p.abstract_eval = _types
qr_p.host = _host
qr_p.jvp = _jvp
qr_p.batch = batch_in_front(qr_p)
qr_p.lower = _lower


@api_boundary
def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None) -> Any:
    """QR decomposition: ``x = Q R``, or ``x[:, p] = Q R`` with `pivoting`.

    Parameters
    ----------
    x : array (..., m, n)
        float32, float64, complex64 or complex128.
    pivoting : bool
        Order the columns so that the diagonal of R decreases: it reveals the rank.
    full_matrices : bool
        Q is (..., m, m) and R (..., m, n); else (..., m, k) and (..., k, n) with k = min(m, n).
    use_magma : ignored

    Returns
    -------
    q, r : arrays
        Q with orthonormal columns, R upper triangular; the diagonal of R is real and may be negative.
    p : int32 array (..., n), only with `pivoting`

    Derivatives exist where the first min(m, n) columns are independent. Of a full Q with m > n the span of
    the last columns has one, and they are taken not to rotate inside it.

    Examples
    --------
    >>> from xform import lax
    >>> q, r = lax.linalg.qr(np.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> bool(np.allclose(q @ r, [[3, 1], [4, 2]])), float(abs(r[0, 0]))
    (True, 5.0)
    """
    return tuple(qr_p.bind(x, full_matrices=bool(full_matrices), pivoting=bool(pivoting)))
