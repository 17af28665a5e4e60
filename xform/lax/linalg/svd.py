"""The singular value decomposition ``x = U diag(s) V^H``.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.quotients`.
"""

import enum
from collections.abc import Sequence
from typing import Any

from numpy.linalg import _umath_linalg as umath

from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arithmetic import add_p, neg_p, real_p, sub_p
from xform.lax.families import constant, is_complex, real_dtype
from xform.lax.linalg import lapack
from xform.lax.linalg.matrices import (
    adjoint,
    batch_in_front,
    block,
    check_matrices,
    check_subset,
    diagonal,
    matmul,
    on_finite,
    resized,
)
from xform.lax.linalg.quotients import columns, differences, halves, middle_p, quotient, side_by_side, sums
from xform.lax.slicing import pad_p, slice_in_dim

LARGEST_JACOBI = 1024  # rows or columns of a matrix for which Jacobi's method is used on CUDA


class SvdAlgorithm(enum.Enum):
    """Algorithms that JAX offers on accelerators; on the CPU it is always divide and conquer (LAPACK's gesdd)."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"


# svd(x): [U, s, V^H], or [s] without vectors.


def _types(x: ShapedArray, *, full_matrices: bool, vectors: bool) -> list[ShapedArray]:
    check_matrices("svd", x)
    *batch, m, n = x.shape
    k = min(m, n)
    s = ShapedArray((*batch, k), real_dtype(x.dtype))
    if not vectors:
        return [s]
    rows, columns = (m, n) if full_matrices else (k, k)
    return [ShapedArray((*batch, m, rows), x.dtype), s, ShapedArray((*batch, columns, n), x.dtype)]


def _host(x: Any, *, full_matrices: bool, vectors: bool) -> list[Any]:
    name = "svd" if not vectors else "svd_f" if full_matrices else "svd_s"
    routine = getattr(umath, name, None)
    if routine is None:  # NumPy 2.0 has one for each orientation
        routine = getattr(umath, name.replace("svd", "svd_m" if x.shape[-2] < x.shape[-1] else "svd_n"))
    return on_finite(routine, x)


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, full_matrices: bool, vectors: bool) -> Any:
    """``dU = U Y``, ``dV = V Z``: with ``P = U^H dA V`` the skew Hermitian Y and Z solve ``P = Y S + dS - S Z``.

    Then ``Y + Z`` is P's Hermitian part divided by ``(s_j - s_i) / 2``, ``Y - Z`` the skew one by ``(s_j + s_i) / 2``
    (Townsend 2016, "Differentiating the singular value decomposition"; phases as in Wan and Zhang, arXiv:1909.02659).
    A rotation among the last vectors of a full U or V is taken as 0. See `lax.linalg.quotients` for equal singular
    values and zeros.
    """
    (x,), (t,) = primals, ts
    if type(t) is Zero:
        outs = svd_p.bind(x, full_matrices=full_matrices, vectors=vectors)
        return outs, [zero_of(o) for o in outs]
    u, s, vh = svd_p.bind(x, full_matrices=full_matrices and vectors, vectors=True)
    k = s.shape[-1]
    uh, tv = adjoint(u), matmul(t, adjoint(vh))
    p = matmul(uh, tv)
    core = p if p.shape[-2:] == (k, k) else block(p, (0, k), (0, k))

    def real_diagonal(x: Any) -> Any:
        v = diagonal(x)
        return real_p.bind(v) if is_complex(v) else v

    if not vectors:
        return [s], [real_diagonal(core)]
    m, n = x.shape[-2:]
    first, first_h = block(u, (0, m), (0, k)), block(vh, (0, k), (0, n))
    middle = middle_p.bind(x, first, s, first_h)
    gaps = differences(s)
    y, z = halves(quotient(core, side_by_side(gaps, sums(s)), middle, "rotations"))
    ts = real_diagonal(quotient(core, gaps, middle, "values"))

    def over_s(x: Any, w: Any) -> Any:
        return quotient(x, columns(s, x), w, "columns")

    if full_matrices:
        if m > k:
            y = _completed(y, over_s(block(p, (k, m), (0, k)), middle))
        if n > k:
            z = _completed(z, over_s(adjoint(block(p, (0, k), (k, n))), adjoint(middle)))
    tu, tvh = matmul(u, y), neg_p.bind(matmul(z, vh))
    if not full_matrices:  # what is orthogonal to the columns of U, the rows of V^H
        if m > k:
            tu = add_p.bind(tu, _orthogonal(over_s(tv, middle), u, uh))
        if n > k:
            rest = over_s(adjoint(matmul(uh, t)), adjoint(middle))
            tvh = add_p.bind(tvh, adjoint(_orthogonal(rest, adjoint(vh), vh)))
    return [u, s, vh], [tu, ts, tvh]


def _orthogonal(x: Any, u: Any, uh: Any) -> Any:
    """What is orthogonal to the columns of u. After the division, so that its cotangent is, too."""
    return sub_p.bind(x, matmul(u, matmul(uh, x)))


def _completed(y: Any, below: Any) -> Any:
    """The skew Hermitian matrix with the block `below` under `y`."""
    *batch, rows, k = below.shape
    config = (*((0, 0, 0) for _ in batch), (k, 0, 0), (0, rows, 0))
    corner = pad_p.bind(below, constant(below, 0), padding_config=config)
    return add_p.bind(resized(y, k + rows, k + rows), sub_p.bind(corner, adjoint(corner)))


def _lower(ctx: Context, x: Value, *, full_matrices: bool, vectors: bool) -> list[Value]:
    if not lapack.is_cuda(ctx):
        lapack.kernel(ctx, "gesdd", "svd")
    if not x.aval.size:
        return [lapack.identity(ctx, a) if a.ndim == x.aval.ndim else ctx.full(a.shape, 0, a.dtype) for a in ctx.outs]
    *batch, m, n = x.shape
    k = min(m, n)
    if vectors:
        u, s, vh = ctx.outs
    else:
        (s,) = ctx.outs
        u, vh = x.aval.update(shape=(*batch, m, k)), x.aval.update(shape=(*batch, k, n))
    good, safe = lapack.finite(ctx, x)
    if lapack.is_cuda(ctx):
        *found, info = _cuda(ctx, safe, u, s, vh, vectors)
        return lapack.where(ctx, lapack.converged(ctx, info, good), found if vectors else found[1:2])
    options = {"vectors": vectors, "full": full_matrices}
    results = [(x.aval, 2), (s, 1), (u, 2), (vh, 2), (ShapedArray(tuple(batch), lapack.INFO), 0)]
    _, values, left, right, info = lapack.call(ctx, "gesdd", [(safe, 2)], results, options, [(0, 0)])
    return lapack.where(ctx, lapack.converged(ctx, info, good), [left, values, right] if vectors else [values])


def _cuda(ctx: Context, x: Value, u: ShapedArray, s: ShapedArray, vh: ShapedArray, vectors: bool) -> list[Value]:
    """U, s, V^H and the status by cuSOLVER: Jacobi's method, and for large matrices QR iterations."""
    *batch, m, n = x.shape
    k = min(m, n)
    info = ShapedArray(tuple(batch), lapack.INFO)
    full = u.shape[-1] != k or vh.shape[-2] != k
    if max(m, n) <= LARGEST_JACOBI:
        # It returns V. In batches, which are for up to 32 rows and columns, it knows full matrices only.
        full = full or min(m, n) <= 32
        us, vs = (x.aval.update(shape=(*batch, d, d if full else k)) for d in (m, n))
        results = [(x.aval, 2), (s, 1), (us, 2), (vs, 2), (info, 0)]
        options = {"vectors": vectors, "full": full}
        _, values, left, right, status = lapack.call(ctx, "gesvdj", [(x, 2)], results, options, [(0, 0)])
        right = lapack.adjoint(ctx, lapack.block(ctx, right, n, vh.shape[-2]))
        return [lapack.block(ctx, left, *u.shape[-2:]), values, right, status]
    # It takes tall matrices only. A wide one, row after row, is the transposed one, whose U is V^T.
    wide = m < n
    rank = 1 if wide else 2  # of the layout: by rows or by columns
    outs = [u, vh] if vectors else [ShapedArray((), x.dtype)] * 2
    pairs = [(a, rank if a.ndim else 0) for a in (outs[::-1] if wide else outs)]
    options = {"vectors": vectors, "full": full, "transposed": wide}
    results = [(x.aval, rank), (s, 1), *pairs, (info, 0)]
    _, values, left, right, status = lapack.call(ctx, "gesvd", [(x, rank)], results, options, [(0, 0)])
    return [right, values, left, status] if wide else [left, values, right, status]


svd_p = Primitive("svd", multiple_results=True)
svd_p.abstract_eval = _types
svd_p.host = _host
svd_p.jvp = _jvp
svd_p.batch = batch_in_front(svd_p)
svd_p.lower = _lower


@api_boundary
def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Singular value decomposition: ``x = U diag(s) V^H``.

    Parameters
    ----------
    x : array (..., m, n)
        float32, float64, complex64 or complex128.
    full_matrices : bool
        U is (..., m, m) and V^H (..., n, n); else (..., m, k) and (..., k, n) with k = min(m, n).
    compute_uv : bool
        Return U, s and V^H; else only s.
    subset_by_index : (start, end), optional
        Return only the singular values with these numbers, and their vectors; needs ``full_matrices=False``.
    algorithm : ignored on the CPU

    Returns
    -------
    U, s, V^H : arrays
        s (..., k) is real and descending. All are NaN for matrices that are not finite.

    Derivatives of vectors exist where singular values are distinct, and not zero unless x is square. At others reverse
    mode gives the derivative of what does not depend on the choice of vectors, and NaN for the rest, as of `eigh`.

    Examples
    --------
    >>> import numpy as np
    >>> from xform import lax
    >>> u, s, vh = lax.linalg.svd(np.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> s.tolist()
    [3.0, 2.0]
    """
    if not compute_uv:
        (s,) = svd_p.bind(x, full_matrices=False, vectors=False)
        return s if subset_by_index is None else _subset(s, check_subset("svd", subset_by_index, s.shape[-1]), -1)
    u, s, vh = svd_p.bind(x, full_matrices=bool(full_matrices), vectors=True)
    if subset_by_index is None:
        return u, s, vh
    if full_matrices:
        raise ValueError("lax.linalg.svd: subset_by_index needs full_matrices=False")
    ends = check_subset("svd", subset_by_index, s.shape[-1])
    return _subset(u, ends, -1), _subset(s, ends, -1), _subset(vh, ends, -2)


def _subset(x: Any, ends: tuple[int, int], axis: int) -> Any:
    return slice_in_dim(x, *ends, axis=axis)
