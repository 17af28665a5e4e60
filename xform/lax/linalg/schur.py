"""The Schur decomposition ``x = Q T Q^H`` of square matrices.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.triangular_solve`, `lax.control_flow`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value, lower_as
from xform.interpreters.tangents import Zero, add_tangents, is_linear, zero_of
from xform.lax.arithmetic import add_p, mul_p, sub_p
from xform.lax.bitwise import not_p
from xform.lax.comparison import eq_p, gt_p, select_n_p
from xform.lax.control_flow import fori_loop
from xform.lax.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from xform.lax.families import constant, is_complex
from xform.lax.linalg import lapack
from xform.lax.linalg.matrices import (
    adjoint,
    batch_in_front,
    block,
    check_matrices,
    diagonal,
    identity,
    matmul,
    on_finite,
    transposed,
    triu,
)
from xform.lax.linalg.triangular_solve import triangular_solve_p
from xform.lax.reductions import reduce_or_p
from xform.lax.shapes import broadcast_in_dim_p, iota_p

# below(t, m): the strictly lower triangular L with ``t L - L t = -m`` below the diagonal, for upper triangular t,
# column by column. With `pullback` the transposed equation ``t^T L - L t^T = -m``, from the last column on.


def _below_types(t: ShapedArray, m: ShapedArray, *, pullback: bool) -> ShapedArray:
    if t.shape != m.shape or t.dtype != m.dtype:
        raise ValueError(f"lax.linalg.below takes two arrays of one type, got {t.str_short()} and {m.str_short()}")
    return m.strong


_SOLVE = {"left_side": True, "lower": False, "conjugate_a": False, "unit_diagonal": False}


def _below_host(t: Any, m: Any, *, pullback: bool) -> Any:
    n = t.shape[-1]
    out = np.zeros_like(m)
    for j in range(n - 2, -1, -1) if pullback else range(n - 1):
        known = (
            out[..., j + 1 :, j + 1 :] @ t[..., j, j + 1 :, None]
            if pullback
            else out[..., j + 1 :, :j] @ t[..., :j, j, None]
        )
        shifted = np.triu(t[..., j + 1 :, j + 1 :]) - t[..., j, j, None, None] * np.eye(n - j - 1, dtype=t.dtype)
        side = known - m[..., j + 1 :, j, None]
        out[..., j + 1 :, j] = triangular_solve_p.host(shifted, side, transpose_a=pullback, **_SOLVE)[..., 0]
    return out


def _below(t: Any, m: Any, *, pullback: bool) -> Any:
    """The same in terms of other operations."""
    *batch, n = t.shape[:-1]
    if n < 2 or not t.size:
        return broadcast_in_dim_p.bind(constant(m, 0), shape=m.shape, broadcast_dimensions=())
    start = [np.int32(0)] * len(batch)
    rows = iota_p.bind(dtype=np.dtype(np.int32), shape=(*batch, n, 1), dimension=len(batch))
    axes = tuple(range(t.ndim))
    t, ones = triu(t), identity(t.shape, t.dtype)

    def column(x: Any, j: Any) -> Any:
        return dynamic_slice_p.bind(x, *start, np.int32(0), j, slice_sizes=(*batch, n, 1))

    def wide(x: Any) -> Any:
        return broadcast_in_dim_p.bind(x, shape=t.shape, broadcast_dimensions=axes)

    def step(i: Any, out: Any) -> Any:
        j = sub_p.bind(np.int32(n - 2), i) if pullback else i
        active = gt_p.bind(rows, j)
        if pullback:
            row = dynamic_slice_p.bind(t, *start, j, np.int32(0), slice_sizes=(*batch, 1, n))
            beside = select_n_p.bind(active, constant(t, 0), transposed(row))
        else:
            beside = select_n_p.bind(eq_p.bind(rows, j), column(t, j), constant(t, 0))
        side = sub_p.bind(matmul(out, beside), column(m, j))
        pivot = dynamic_slice_p.bind(t, *start, j, j, slice_sizes=(*batch, 1, 1))
        shifted = sub_p.bind(t, mul_p.bind(ones, wide(pivot)))
        shifted = select_n_p.bind(wide(active), ones, shifted)  # the other rows, with zeros to their right
        shifted = select_n_p.bind(transposed(wide(active)), ones, shifted)
        side = select_n_p.bind(active, constant(t, 0), side)
        found = triangular_solve_p.bind(shifted, side, transpose_a=pullback, **_SOLVE)
        return dynamic_update_slice_p.bind(out, found, *start, np.int32(0), j)

    zeros = broadcast_in_dim_p.bind(constant(m, 0), shape=m.shape, broadcast_dimensions=())
    return fori_loop(np.int32(0), np.int32(n - 1), step, zeros)


def _below_jvp(primals: Sequence[Any], ts: Sequence[Any], *, pullback: bool) -> Any:
    (t, m), (tt, tm) = primals, ts
    out = below_p.bind(t, m, pullback=pullback)
    if type(tt) is not Zero:
        tt = triu(tt)
        tt = transposed(tt) if pullback else tt
        tm = add_tangents(tm, sub_p.bind(matmul(tt, out), matmul(out, tt)))
    return out, zero_of(out) if type(tm) is Zero else below_p.bind(t, tm, pullback=pullback)


below_p = Primitive("below")
below_p.abstract_eval = _below_types
below_p.host = _below_host
below_p.jvp = _below_jvp
below_p.transpose = lambda ct, t, m, *, pullback: [
    None,
    below_p.bind(t, ct, pullback=not pullback) if is_linear(m) else None,
]
below_p.batch = batch_in_front(below_p)
below_p.lower = lower_as(_below)


# schur(x): [T, Q], or [T].


def _types(x: ShapedArray, *, vectors: bool) -> list[ShapedArray]:
    check_matrices("schur", x, square=True)
    return [x.strong] * (1 + vectors)


def _host(x: Any, *, vectors: bool) -> list[Any]:
    import scipy.linalg

    def decompose(x: Any) -> tuple[Any, ...]:
        t, q = np.full(x.shape, np.nan, x.dtype), np.full(x.shape, np.nan, x.dtype)
        for i in np.ndindex(x.shape[:-2]) if x.size else ():
            try:
                t[i], q[i] = scipy.linalg.schur(x[i], "complex" if is_complex(x) else "real", check_finite=False)
            except np.linalg.LinAlgError:  # no convergence: leave NaN
                continue
        return (t, q)[: 1 + vectors]

    return on_finite(decompose, x)


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, vectors: bool) -> Any:
    """``dQ = Q R``, ``dT = M + T R - R T`` with ``M = Q^H dA Q`` and a skew Hermitian R with a diagonal of zeros.

    The part of R below the diagonal follows from dT being 0 there.
    """
    (x,), (t,) = primals, ts
    if type(t) is Zero:
        outs = schur_p.bind(x, vectors=vectors)
        return outs, [zero_of(o) for o in outs]
    triangular, q = schur_p.bind(x, vectors=True)
    m = matmul(adjoint(q), matmul(t, q))
    if not is_complex(x) and x.shape[-1] > 1:
        m = mul_p.bind(m, _nan_with_blocks(triangular))
    lower = below_p.bind(triangular, m, pullback=False)
    turn = sub_p.bind(lower, adjoint(lower))
    change = triu(add_p.bind(m, sub_p.bind(matmul(triangular, turn), matmul(turn, triangular))))
    return [triangular, q][: 1 + vectors], [change, matmul(q, turn)][: 1 + vectors]


def _nan_with_blocks(t: Any) -> Any:
    """NaN for matrices with blocks of two rows (complex eigenvalues of a real matrix), ones for others."""
    n = t.shape[-1]
    beside = diagonal(block(t, (1, n), (0, n - 1)))
    blocks = reduce_or_p.bind(not_p.bind(eq_p.bind(beside, constant(t, 0))), axes=(beside.ndim - 1,))
    factor = select_n_p.bind(blocks, constant(t, 1), constant(t, np.nan))
    return broadcast_in_dim_p.bind(factor, shape=t.shape, broadcast_dimensions=tuple(range(t.ndim - 2)))


def _lower(ctx: Context, x: Value, *, vectors: bool) -> list[Value]:
    lapack.kernel(ctx, "gees", "schur")
    if not x.aval.size:
        return [x] * len(ctx.outs)
    batch = x.shape[:-2]
    counts = [(ShapedArray(batch, lapack.INFO), 0)] * 2
    values = [(x.aval.update(shape=x.shape[:-1]), 1)] * (1 if is_complex(x) else 2)
    good, safe = lapack.finite(ctx, x)
    t, q, *_, info = lapack.call(
        ctx, "gees", [(safe, 2)], [(x.aval, 2), (x.aval, 2), *values, *counts], {"vectors": vectors}, [(0, 0)]
    )
    return lapack.where(ctx, lapack.converged(ctx, info, good), [t, q][: 1 + vectors])


schur_p = Primitive("schur", multiple_results=True)
schur_p.abstract_eval = _types
schur_p.host = _host
schur_p.jvp = _jvp
schur_p.batch = batch_in_front(schur_p)
schur_p.lower = _lower


@api_boundary
def schur(
    x: Any,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., Any] | None = None,
) -> Any:
    """Schur decomposition: ``x = Q T Q^H`` with unitary Q and (almost) upper triangular T.

    Parameters
    ----------
    x : array (..., n, n)
        float32, float64, complex64 or complex128.
    compute_schur_vectors : bool
        Return T and Q; else only T.
    sort_eig_vals, select_callable : not implemented

    Returns
    -------
    t : array (..., n, n)
        The eigenvalues are on the diagonal. A pair of complex eigenvalues of a real matrix is a block of two rows.
    q : array (..., n, n)
        NaN for matrices that are not finite, as is `t`.

    Derivatives exist where eigenvalues are distinct; they keep the phases of Q's columns. They are NaN for real
    matrices with complex eigenvalues: convert these to complex.

    Examples
    --------
    >>> from xform import lax
    >>> t, q = lax.linalg.schur(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> t.tolist(), q.tolist()
    ([[1.0, 2.0], [0.0, 3.0]], [[1.0, 0.0], [0.0, 1.0]])
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError("lax.linalg.schur: eigenvalues can't be sorted, neither by select_callable")
    out = schur_p.bind(x, vectors=bool(compute_schur_vectors))
    return tuple(out) if compute_schur_vectors else out[0]
