"""Norms of vectors and matrices, with rank and condition; and the checks of the arguments of `numpy.linalg`.

May import: `xform.lax`, the modules of `xform.numpy` but `linalg`.
"""

from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.families import real_dtype
from xform.lax.linalg import eigh_p, inv_p, svd_p
from xform.lax.linalg.matrices import hermitian_part
from xform.numpy import creation, manipulation, reductions, ufuncs
from xform.numpy.elementwise import where
from xform.numpy.fast import INEXACT, short_way
from xform.numpy.promotion import ShapeError, array_of, canonical_axes, promote_inexact, shown, strong


class MatrixShapeError(np.linalg.LinAlgError, ShapeError):
    """Matrices whose shape a function can't take: NumPy's LinAlgError, which is a ValueError; a TypeError as in JAX."""


# ---- Arguments ---------------------------------------------------------------------------------------------


def inexact(name: str, x: Any, arg: str = "a") -> Array:
    """An argument as array of floats or complex numbers."""
    x = array_of(f"linalg.{name}", x, arg)
    return strong(x) if dtypes.issubdtype(x.dtype, np.inexact) else strong(promote_inexact(name, x)[0])


def matrices(name: str, a: Any, arg: str = "a", *, square: bool = False) -> Array:
    """An argument as array (..., m, n), or (..., n, n), of a dtype that the decompositions have."""
    a = inexact(name, a, arg)
    if a.ndim < 2:
        raise MatrixShapeError(f"numpy.linalg.{name}: {arg} must be at least two-dimensional, got {shown(a)}")
    if square and a.shape[-1] != a.shape[-2]:
        raise MatrixShapeError(f"numpy.linalg.{name}: {arg} must be square matrices (..., n, n), got {shown(a)}")
    if a.dtype.itemsize < 4:
        raise TypeError(f"numpy.linalg.{name}: no decompositions in {a.dtype}, convert {arg} {shown(a)} to float32")
    return a


def one_of(name: str, **values: Any) -> Any:
    """The value of two names for one parameter."""
    given = [v for v in values.values() if v is not None]
    if len(given) > 1:
        raise ValueError(f"numpy.linalg.{name}: {' and '.join(values)} are the same parameter; give one of them")
    return given[0] if given else None


def squared_modulus(x: Array) -> Array:
    """``|x|^2``, which has a derivative at 0."""
    if x.dtype.kind != "c":
        return x * x
    return ufuncs.real(x) ** 2 + ufuncs.imag(x) ** 2


# ---- Norms ---------------------------------------------------------------------------------------------------


@api_boundary
def svdvals(x: Any, /) -> Array:
    """The singular values (..., k) of matrices (..., m, n), descending."""
    return svd_p.bind(matrices("svdvals", x, "x"), full_matrices=False, vectors=False)[0]


@short_way(np.linalg.norm, INEXACT, plain="ord axis keepdims")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Norms of vectors or matrices.

    Parameters
    ----------
    x : array
    ord : number, "fro" or "nuc", optional
        Of vectors: 2 (the default), any other p, ``inf``, ``-inf``, or 0 for the number of elements that aren't zero.
        Of matrices: "fro" (the default), "nuc", 1, -1, 2, -2, ``inf``, ``-inf``.
    axis : int for vectors, two ints for matrices, optional
        By default all axes; without `ord` those of a flattened array.
    keepdims : bool
        Leave axes of length 1.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> float(xnp.linalg.norm(xnp.array([3.0, 4.0])))
    5.0
    """
    x = inexact("norm", x, "x")
    if axis is None:
        if ord is None:
            out = _vector_norm("norm", x, 2, tuple(range(x.ndim)))
            return manipulation.reshape(out, (1,) * x.ndim) if keepdims else out
        axes = tuple(range(x.ndim))
    else:
        axes = canonical_axes("linalg.norm", axis, x)
    if len(axes) == 1:
        out = _vector_norm("norm", x, 2 if ord is None else ord, axes)
    elif len(axes) == 2:
        out = _matrix_norm("norm", x, "fro" if ord is None else ord, axes)
    else:
        raise ValueError(
            f"numpy.linalg.norm: improper number of dimensions to norm: with ord={ord!r} norms are over one axis or "
            f"two, got axis={axis} and x {shown(x)}"
        )
    return manipulation.expand_dims(out, axes) if keepdims else out


def _vector_norm(name: str, x: Array, ord: Any, axes: tuple[int, ...]) -> Array:
    if isinstance(ord, str):
        raise ValueError(f"numpy.linalg.{name}: invalid norm order {ord!r} for vectors")
    if ord == 2:
        return ufuncs.sqrt(reductions.sum(squared_modulus(x), axes))
    if ord == np.inf:
        return reductions.max(ufuncs.abs(x), axes, initial=0)
    if ord == -np.inf:
        return reductions.min(ufuncs.abs(x), axes, initial=np.inf)
    if ord == 0:
        return reductions.sum(x != 0, axes).astype(real_dtype(x.dtype))
    if ord == 1:
        return reductions.sum(ufuncs.abs(x), axes)
    return reductions.sum(ufuncs.abs(x) ** ord, axes) ** (1 / ord)


def _matrix_norm(name: str, x: Array, ord: Any, axes: tuple[int, ...]) -> Array:
    if ord == "fro":
        return _vector_norm(name, x, 2, axes)
    x = manipulation.moveaxis(x, axes, (-2, -1))
    if ord in (1, -1, np.inf, -np.inf):
        sums = reductions.sum(ufuncs.abs(x), -2 if ord in (1, -1) else -1)
        return reductions.max(sums, -1, initial=0) if ord > 0 else reductions.min(sums, -1, initial=np.inf)
    if ord not in ("nuc", 2, -2):
        raise ValueError(
            f"numpy.linalg.{name}: invalid norm order {ord!r} for matrices, must be 'fro', 'nuc', 1, -1, 2, -2, inf or "
            "-inf"
        )
    s = svdvals(x)
    if ord == "nuc":
        return reductions.sum(s, -1)
    return reductions.max(s, -1, initial=0) if ord == 2 else reductions.min(s, -1, initial=np.inf)


@api_boundary
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Norms of matrices on the last two axes; see `norm`."""
    return norm(matrices("matrix_norm", x, "x"), ord, (-2, -1), keepdims)


@api_boundary
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Norms of vectors along one axis, or of all elements along several (by default all) as one vector; see `norm`."""
    x = inexact("vector_norm", x, "x")
    axes = canonical_axes("linalg.vector_norm", axis, x)
    out = _vector_norm("vector_norm", x, ord, axes)
    return manipulation.expand_dims(out, axes) if keepdims else out


@short_way(np.linalg.cond, INEXACT, plain="p")
def cond(x: Any, p: Any = None) -> Array:
    """Condition numbers ``norm(x, p) norm(inv(x), p)`` of matrices (..., m, n); infinite of a singular matrix.

    Parameters
    ----------
    p : None, 2, -2, 1, -1, inf, -inf, "fro" or "nuc"
        The norm; None and 2 are the ratio of the largest and the smallest singular value, -2 its inverse. The others
        need square matrices.
    """
    x = matrices("cond", x, "x", square=p not in (None, 2, -2))
    if not x.shape[-1] or not x.shape[-2]:
        raise MatrixShapeError(f"numpy.linalg.cond: an empty matrix has no condition number, got {shown(x)}")
    if p in (None, 2, -2):
        s = svdvals(x)
        largest, smallest = reductions.max(s, -1), reductions.min(s, -1)
        out = smallest / largest if p == -2 else largest / smallest
    else:
        out = norm(x, p, (-2, -1)) * norm(inv_p.bind(x), p, (-2, -1))
    # Without a NaN among the elements the one of 0 / 0 is an infinity.
    return ufuncs.fmin(out, where(reductions.any(ufuncs.isnan(x), (-2, -1)), np.nan, np.inf))


@short_way(np.linalg.matrix_rank, INEXACT)
def matrix_rank(A: Any = None, tol: Any = None, hermitian: bool = False, *, rtol: Any = None, M: Any = None) -> Array:
    """The ranks of matrices: how many singular values are more than a limit.

    Parameters
    ----------
    A : array (..., m, n), also by the name M
        Of a vector: whether it isn't zero.
    tol : float or array (...), optional
        The limit (in JAX, a part of the largest singular value).
    hermitian : bool
        Whether `A` is Hermitian, which saves time.
    rtol : float or array (...), optional
        The limit as a part of the largest singular value, by default ``max(m, n) eps``.
    """
    A = inexact("matrix_rank", one_of("matrix_rank", A=A, M=M), "A")
    if A.ndim < 2:
        return reductions.any(A != 0).astype(int)
    A = matrices("matrix_rank", A, "A", square=bool(hermitian))
    s = _hermitian_svdvals(A) if hermitian else svdvals(A)
    if tol is not None and rtol is not None:
        raise ValueError("numpy.linalg.matrix_rank: give tol or rtol, not both")
    if rtol is None:
        rtol = max(A.shape[-2:]) * float(np.finfo(A.dtype).eps)
    if tol is not None:
        limit = creation.asarray(tol, s.dtype)
    else:
        limit = creation.asarray(rtol, s.dtype) * reductions.max(s, -1, initial=0)
    return reductions.sum(s > manipulation.expand_dims(limit, -1), -1)


def _hermitian_svdvals(x: Array) -> Array:
    """Singular values in the order of the eigenvalues."""
    return ufuncs.abs(eigh_p.bind(hermitian_part(x), lower=True, vectors=False)[0])
