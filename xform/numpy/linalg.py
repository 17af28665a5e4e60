"""`xform.numpy.linalg`: decompositions, equations, norms, with NumPy's names.

All functions but those of single vectors take batches of matrices on the last two axes, have derivatives of all orders,
and can be mapped and compiled. A matrix that has no result (singular, not positive definite, not finite) gives NaN or
infinities in its place, not an exception: the others of the batch still count, and compiled code can't raise.

May import: `xform.lax`, the modules of `xform.numpy`.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax import linalg as _lax
from xform.lax.families import real_dtype
from xform.lax.linalg import det_p, geqrf_p, inv_p, pinv_p, slogdet_p, svd_p
from xform.lax.linalg.matrices import check_subset, hermitian_part
from xform.lax.linalg.solve import solve as _solve
from xform.lax.shapes import reshape_p
from xform.numpy import creation, diagonals, host_forms, indexing, manipulation, products, reductions, sorting, ufuncs
from xform.numpy.einstein import einsum
from xform.numpy.elementwise import where
from xform.numpy.fast import INEXACT, WIDE, same, several, short_way
from xform.numpy.norms import (
    MatrixShapeError,
    cond,
    inexact,
    matrices,
    matrix_norm,
    matrix_rank,
    norm,
    one_of,
    squared_modulus,
    svdvals,
    vector_norm,
)
from xform.numpy.promotion import (
    ShapeError,
    array_of,
    broadcast_shapes_of,
    canonical_axes,
    canonical_axis,
    expand_to,
    known_integer,
    no_out,
    promote_inexact,
    shown,
)
from xform.numpy.special_matrices import eye

__all__ = [
    "LinAlgError",
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]  # fmt: skip

matrix_transpose = manipulation.matrix_transpose
LinAlgError = np.linalg.LinAlgError
matmul = products.matmul
vecdot = products.vecdot
tensordot = products.tensordot


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Array
    S: Array
    Vh: Array


def _symmetrized(host: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function, which reads one triangle, of ``(a + a^H) / 2``."""
    return lambda a: host(host_forms.hermitian_part(a))


# ---- Equations and inverses --------------------------------------------------------------------------------


def _pair(name: str, a: Any, b: Any) -> tuple[Array, Array]:
    """Matrices `a` and an array `b` in one dtype."""
    a, b = matrices(name, a), inexact(name, b, "b")
    if a.dtype != b.dtype:
        a, b = promote_inexact(f"linalg.{name}", a, b)
    return a, b


def _adjoint(x: Array) -> Array:
    return ufuncs.conj(matrix_transpose(x))


@short_way(np.linalg.solve, INEXACT, same(INEXACT))
def solve(a: Any, b: Any) -> Array:
    """The solution of ``a @ x = b``.

    Differs from NumPy: a singular matrix gives infinities or NaN, not LinAlgError.

    Parameters
    ----------
    a : array (..., n, n)
    b : array (n,), or (..., n, m)
        Leading axes broadcast.

    Returns
    -------
    Array (..., n), or (..., n, m); infinities or NaN where `a` is singular.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.linalg.solve(xnp.array([[0.0, 2.0], [1.0, 1.0]]), xnp.array([2.0, 3.0])).tolist()
    [2.0, 1.0]
    """
    a, b = _pair("solve", a, b)
    if a.shape[-1] != a.shape[-2]:
        raise MatrixShapeError(f"numpy.linalg.solve: a must be square matrices (..., n, n), got {shown(a)}")
    vector = b.ndim == 1
    columns = reshape_p.bind(b, new_sizes=(*b.shape, 1)) if vector else b
    if not b.ndim or columns.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"numpy.linalg.solve: a (..., n, n) needs b (n,) or (..., n, m), got a {shown(a)} and b {shown(b)}"
        )
    if a.shape[:-2] != columns.shape[:-2]:
        batch = broadcast_shapes_of("linalg.solve", [a.shape[:-2], columns.shape[:-2]], [a, b])
        a, columns = (expand_to(x, batch + x.shape[-2:]) for x in (a, columns))
    out = _solve(a, columns)
    return reshape_p.bind(out, new_sizes=out.shape[:-1]) if vector else out


@short_way(np.linalg.inv, INEXACT)
def inv(a: Any) -> Array:
    """The inverses of matrices (..., n, n); NaN where they are singular.

    Differs from NumPy: a singular matrix gives NaN, not LinAlgError.
    """
    return inv_p.bind(matrices("inv", a, square=True))


@api_boundary
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Array:
    """Pseudo-inverses (Moore and Penrose) of matrices.

    Parameters
    ----------
    a : array (..., m, n)
    rcond : float or array (...), optional
        Singular values up to `rcond` times the largest count as zero; by default ``10 max(m, n) eps``.
    hermitian : bool
        Whether `a` is Hermitian, which saves time.
    rtol : another name of `rcond`

    Returns
    -------
    Array (..., n, m)
    """
    a = matrices("pinv", a, square=bool(hermitian))
    rtol = one_of("pinv", rtol=rtol, rcond=rcond)
    if rtol is None:
        rtol = 10 * max(a.shape[-2:]) * float(np.finfo(a.dtype).eps)
    cutoff = manipulation.broadcast_to(creation.asarray(rtol, real_dtype(a.dtype)), a.shape[:-2])
    return pinv_p.bind(hermitian_part(a) if hermitian else a, cutoff, hermitian=bool(hermitian))


def _host_lstsq(a: Any, b: Any, rcond: float | None = None) -> Any:
    """NumPy's, with residuals always."""
    if a.ndim != 2 or a.shape[0] != b.shape[0]:
        raise ValueError
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond)
    if not residuals.size:
        rest = b - a @ x
        residuals = np.atleast_1d((rest * rest.conj()).real.sum(0))
    return x, residuals, np.int64(rank), s


@short_way(_host_lstsq, "fdFD", same("fdFD"), plain="rcond")
def lstsq(
    a: Any, b: Any, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The x that minimizes the length of ``b - a @ x``, and is the shortest of those that do.

    Differs from NumPy: residuals are returned in any case, unless ``numpy_resid=True``.

    Parameters
    ----------
    a : array (m, n)
    b : array (m,), or (m, k)
    rcond : float, optional
        Singular values up to `rcond` times the largest count as zero; by default ``max(m, n) eps``.
    numpy_resid : bool
        Leave out the residuals where NumPy does: if ``m <= n`` or the rank is deficient. That depends on values, so it
        does not work under `jit`.

    Returns
    -------
    x : array (n,), or (n, k)
    residuals : array (1,), or (k,)
        Squared lengths of ``b - a @ x``; (0,) where they are left out.
    rank : int array ()
    s : array (min(m, n),)
        The singular values of `a`.
    """
    a, b = _pair("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or a.shape[0] != b.shape[0]:
        raise MatrixShapeError(
            f"numpy.linalg.lstsq: needs a (m, n) and b (m,) or (m, k), got a {shown(a)} and b {shown(b)}"
        )
    m, n = a.shape
    if rcond is None:
        rcond = max(m, n) * float(np.finfo(a.dtype).eps)
    x = matmul(pinv(a, rcond), b)
    (s,) = svd_p.bind(a, full_matrices=False, vectors=False)
    rank = reductions.sum(s > rcond * reductions.max(s, initial=0))
    residuals = manipulation.atleast_1d(reductions.sum(squared_modulus(b - matmul(a, x)), 0))
    if numpy_resid and (m <= n or int(rank) < n):
        residuals = creation.empty((0,), residuals.dtype)
    return x, residuals, rank, s


@api_boundary
def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Array:
    """The solution of ``tensordot(a, x, x.ndim) = b``.

    Differs from NumPy: a singular matrix gives infinities or NaN, not LinAlgError.

    Parameters
    ----------
    a : array of shape ``b.shape + x.shape``, with as many elements in `x` as in `b`
    axes : ints, optional
        Axes of `a` that are moved to its end first.
    """
    a, b = (inexact("tensorsolve", x, arg) for x, arg in ((a, "a"), (b, "b")))
    if axes is not None:
        moved = canonical_axes("linalg.tensorsolve", axes, a, "axes")
        a = manipulation.transpose(a, [d for d in range(a.ndim) if d not in moved] + list(moved))
    shape = a.shape[b.ndim :]
    if a.shape[: b.ndim] != b.shape or math.prod(shape) != b.size:
        raise MatrixShapeError(
            f"numpy.linalg.tensorsolve: a must have the axes of b, then axes of as many elements, got a {shown(a)} and "
            f"b {shown(b)}"
        )
    x = solve(manipulation.reshape(a, (b.size, b.size)), manipulation.ravel(b))
    return manipulation.reshape(x, shape)


@api_boundary
def tensorinv(a: Any, ind: int = 2) -> Array:
    """The inverse for `tensordot` over `ind` axes: of shape ``a.shape[ind:] + a.shape[:ind]``.

    Differs from NumPy: a singular matrix gives infinities or NaN, not LinAlgError.
    """
    a, ind = inexact("tensorinv", a), operator.index(ind)
    rows = math.prod(a.shape[:ind])
    if ind <= 0:
        raise ValueError(f"numpy.linalg.tensorinv: invalid ind argument, must be positive, got {ind}")
    if rows != math.prod(a.shape[ind:]):
        raise MatrixShapeError(
            f"numpy.linalg.tensorinv: the first ind = {ind} axes must have as many elements as the rest, got {shown(a)}"
        )
    return manipulation.reshape(inv(manipulation.reshape(a, (rows, rows))), a.shape[ind:] + a.shape[:ind])


# ---- Determinants ------------------------------------------------------------------------------------------


@short_way(np.linalg.det, INEXACT)
def det(a: Any) -> Array:
    """The determinants of matrices (..., n, n)."""
    return det_p.bind(matrices("det", a, square=True))


@short_way(np.linalg.slogdet, INEXACT, into=SlogdetResult._make)
def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the modulus of the determinants of matrices (..., n, n).

    Parameters
    ----------
    method : None or "lu"
        By LU decomposition.

    Returns
    -------
    SlogdetResult(sign, logabsdet)
        Sign 0 and logarithm ``-inf`` of a singular matrix; of a complex one the sign is a phase.
    """
    if method not in (None, "lu"):
        raise NotImplementedError(f"numpy.linalg.slogdet: method must be None or 'lu', got {method!r}")
    return SlogdetResult(*slogdet_p.bind(matrices("slogdet", a, square=True)))


# ---- Decompositions ----------------------------------------------------------------------------------------


@short_way(_symmetrized(np.linalg.cholesky), INEXACT)
def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with ``a = L L^H``.

    Differs from NumPy: a matrix that isn't positive definite gives NaN; both triangles are read by default.

    Parameters
    ----------
    a : array (..., n, n)
        Hermitian and positive definite; the result for others is NaN.
    upper : bool
        Return ``U = L^H``.
    symmetrize_input : bool
        Use ``(a + a^H) / 2``; else only the lower triangle of `a` is read.
    """
    a = matrices("cholesky", a, square=True)
    if upper:  # the conjugate before and not after, which would make zeros negative
        return matrix_transpose(_lax.cholesky(ufuncs.conj(a), symmetrize_input=bool(symmetrize_input)))
    return _lax.cholesky(a, symmetrize_input=bool(symmetrize_input))


def _host_qr(a: Any, mode: Any = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r", "raw"):  # NumPy has others still
        raise ValueError
    return np.linalg.qr(a, mode)


@short_way(_host_qr, INEXACT, plain="mode", into=QRResult._make)
def qr(a: Any, mode: str = "reduced") -> Any:
    """QR decomposition: ``a = Q R`` with orthonormal columns in Q and upper triangular R.

    Parameters
    ----------
    a : array (..., m, n)
    mode : "reduced", "complete", "r" or "raw"
        Q is (..., m, k) with k = min(m, n), or (..., m, m); or return R alone; or LAPACK's reflections, without
        derivatives: (..., n, m), transposed as in NumPy, and their factors (..., k).

    Returns
    -------
    QRResult(Q, R), or R
    """
    a = matrices("qr", a)
    if mode == "raw":
        packed, taus = geqrf_p.bind(a)
        return QRResult(matrix_transpose(packed), taus)
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"numpy.linalg.qr: unrecognized mode {mode!r}, must be 'reduced', 'complete', 'r' or 'raw'")
    q, r = _lax.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@api_boundary
def eig(a: Any) -> EigResult:
    """Eigenvalues (..., n) and right eigenvectors (..., n, n), in columns, of matrices (..., n, n); all complex.

    Differs from NumPy: the result is complex also if all eigenvalues are real.
    """
    w, v = _lax.eig(matrices("eig", a, square=True), compute_left_eigenvectors=False)
    return EigResult(w, v)


@api_boundary
def eigvals(a: Any) -> Array:
    """The eigenvalues (..., n) of matrices (..., n, n), complex and in no particular order.

    Differs from NumPy: the result is complex also if all eigenvalues are real.
    """
    a = matrices("eigvals", a, square=True)
    return _lax.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@short_way(_symmetrized(np.linalg.eigh), INEXACT, into=EighResult._make)
def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Differs from NumPy: both triangles are read, unless ``symmetrize_input=False``.

    Parameters
    ----------
    a : array (..., n, n)
    UPLO : "L" or "U"
        The triangle that is read, if not `symmetrize_input`.
    symmetrize_input : bool
        Use ``(a + a^H) / 2``.

    Returns
    -------
    EighResult(eigenvalues, eigenvectors)
        Real (..., n) and ascending; and (..., n, n) with the vectors in columns.
    """
    v, w = _lax.eigh(
        matrices("eigh", a, square=True), lower=_lower("eigh", UPLO), symmetrize_input=bool(symmetrize_input)
    )
    return EighResult(w, v)


def _lower(name: str, uplo: Any) -> bool:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"numpy.linalg.{name}: UPLO must be 'L' or 'U', got {uplo!r}")
    return uplo != "U"


@short_way(_symmetrized(np.linalg.eigvalsh), INEXACT)
def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues (..., n) of Hermitian matrices (..., n, n), ascending; parameters as of `eigh`.

    Differs from NumPy: both triangles are read, unless ``symmetrize_input=False``.
    """
    a = matrices("eigvalsh", a, square=True)
    a = hermitian_part(a) if symmetrize_input else a
    return _lax.eigh_p.bind(a, lower=_lower("eigvalsh", UPLO), vectors=False)[0]


@short_way(np.linalg.svd, INEXACT, plain="full_matrices compute_uv", into=SVDResult._make)
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Singular value decomposition: ``a = U diag(S) Vh``.

    Parameters
    ----------
    a : array (..., m, n)
    full_matrices : bool
        U is (..., m, m) and Vh (..., n, n); else (..., m, k) and (..., k, n) with k = min(m, n).
    compute_uv : bool
        Return all three; else only S.
    hermitian : bool
        Whether `a` is Hermitian, which saves time.
    subset_by_index : (start, end), optional
        Return only the singular values with these numbers, and their vectors; needs ``full_matrices=False``.

    Returns
    -------
    SVDResult(U, S, Vh), or S
        S (..., k) is real and descending.
    """
    a = matrices("svd", a, square=bool(hermitian))
    if hermitian:
        return _hermitian_svd(a, compute_uv, subset_by_index)
    if not compute_uv:
        return _lax.svd(a, compute_uv=False, subset_by_index=subset_by_index)
    return SVDResult(*_lax.svd(a, full_matrices=bool(full_matrices), subset_by_index=subset_by_index))


def _hermitian_svd(a: Array, compute_uv: bool, subset: Any) -> Any:
    """By the eigenvalues, of which the singular values are the moduli."""
    v, w = _lax.eigh(a)
    order = sorting.argsort(ufuncs.abs(w), -1, descending=True)
    if subset is not None:
        start, end = check_subset("svd", subset, w.shape[-1])
        order = order[..., start:end]
    w = indexing.take_along_axis(w, order, -1)
    s = ufuncs.abs(w)
    if not compute_uv:
        return s
    v = indexing.take_along_axis(v, manipulation.expand_dims(order, -2), -1)
    signs = where(w < 0, -1, 1).astype(v.dtype)
    return SVDResult(v * manipulation.expand_dims(signs, -2), s, _adjoint(v))


# ---- Products ----------------------------------------------------------------------------------------------


@api_boundary
def matrix_power(a: Any, n: int) -> Array:
    """The n-th power of square matrices (..., m, m), by repeated squaring; of their inverses, if n is negative.

    Differs from NumPy: a negative power of a singular matrix gives infinities or NaN, not LinAlgError.
    """
    a = array_of("linalg.matrix_power", a)
    if a.ndim < 2:
        raise MatrixShapeError(f"numpy.linalg.matrix_power: a must be at least two-dimensional, got {shown(a)}")
    if a.shape[-1] != a.shape[-2]:
        raise MatrixShapeError(f"numpy.linalg.matrix_power: a must be square matrices (..., n, n), got {shown(a)}")
    n = known_integer("linalg.matrix_power", "n", n)
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return manipulation.broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    out = None
    while n:
        if n % 2:
            out = a if out is None else matmul(out, a)
        n //= 2
        a = matmul(a, a) if n else a
    return out  # type: ignore[return-value]


@short_way(np.linalg.multi_dot, several(WIDE))
def multi_dot(arrays: Sequence[Any], *, out: None = None, precision: Any = None) -> Array:
    """The product of several matrices, in the order that takes the least work.

    Parameters
    ----------
    arrays : at least two matrices
        The first one and the last one may be vectors: a row and a column.
    """
    no_out("linalg.multi_dot", out)
    arrays = [array_of("linalg.multi_dot", a, f"arrays[{i}]") for i, a in enumerate(arrays)]
    if len(arrays) < 2:
        raise ValueError(f"numpy.linalg.multi_dot: needs at least two arrays, got {len(arrays)}")
    inner = (a.ndim == 2 for a in arrays[1:-1])
    if not all(inner) or arrays[0].ndim not in (1, 2) or arrays[-1].ndim not in (1, 2):
        raise MatrixShapeError(
            "numpy.linalg.multi_dot: arrays must be matrices, the first and the last may be vectors, got "
            + ", ".join(map(shown, arrays))
        )
    terms = [[i, i + 1] for i in range(len(arrays))]
    terms[0], terms[-1] = terms[0][2 - arrays[0].ndim :], terms[-1][: arrays[-1].ndim]
    kept = ([0] if arrays[0].ndim == 2 else []) + ([len(arrays)] if arrays[-1].ndim == 2 else [])
    operands = [x for pair in zip(arrays, terms, strict=True) for x in pair]
    return einsum(*operands, kept, optimize="optimal", precision=precision)


@api_boundary
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three elements along an axis."""
    x1, x2 = (array_of("linalg.cross", x, arg) for x, arg in ((x1, "x1"), (x2, "x2")))
    if any(x.shape[canonical_axis("linalg.cross", axis, x)] != 3 for x in (x1, x2)):
        raise ShapeError(
            "numpy.linalg.cross: both input arrays must be (arrays of) 3-dimensional vectors, got "
            f"{shown(x1)} and {shown(x2)} along axis {axis}"
        )
    return products.cross(x1, x2, axis=axis)


@api_boundary
def outer(x1: Any, x2: Any, /) -> Array:
    """All products of an element of one vector with one of another."""
    x1, x2 = (array_of("linalg.outer", x, arg) for x, arg in ((x1, "x1"), (x2, "x2")))
    if x1.ndim != 1 or x2.ndim != 1:
        raise ShapeError(f"numpy.linalg.outer: input arrays must be one-dimensional, got {shown(x1)} and {shown(x2)}")
    return products.outer(x1, x2)


@api_boundary
def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """Diagonals of matrices on the last two axes."""
    return diagonals.diagonal(x, offset, -2, -1)


@api_boundary
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """Sums of diagonals of matrices on the last two axes."""
    return diagonals.trace(x, offset, -2, -1, dtype)
