"""Diagonals: taken out, summed, filled, and made into matrices.

A diagonal is a strided slice of the flattened matrix, so its derivative is a pad, not a scatter.

May import: `numpy.promotion`, `numpy.manipulation`, `numpy.reductions`, `xform.lax`.
"""

from typing import Any

import numpy as np

from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.conversion import convert
from xform.lax.shapes import broadcast_in_dim_p, reshape_p
from xform.lax.slicing import pad_p, slice_in_dim
from xform.numpy import manipulation, reductions
from xform.numpy.fast import ANY, WIDE, short_way
from xform.numpy.promotion import array_of, canonical_axis, known_integer, no_out, shown


@short_way(lambda a, offset=0, axis1=0, axis2=1: a.diagonal(offset, axis1, axis2), ANY, plain="offset axis1 axis2")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements with ``index[axis2] - index[axis1] == offset``, along a new last axis."""
    return _diagonal("diagonal", array_of("diagonal", a), offset, axis1, axis2)


def _diagonal(name: str, a: Array, offset: Any, axis1: Any, axis2: Any) -> Array:
    if a.ndim < 2:
        raise ValueError(f"numpy.{name}: requires an array of at least two dimensions, got {shown(a)}")
    i, j = canonical_axis(name, axis1, a, "axis1"), canonical_axis(name, axis2, a, "axis2")
    if i == j:
        raise ValueError(f"numpy.{name}: axis1 and axis2 cannot be the same, got {axis1} and {axis2} for {shown(a)}")
    k = known_integer(name, "offset", offset)
    a = manipulation.moveaxis(a, (i, j), (-2, -1))
    *batch, m, n = a.shape
    length = max(0, min(m, n - k) if k >= 0 else min(m + k, n))
    start = k if k >= 0 else -k * n
    flat = reshape_p.bind(a, new_sizes=(*batch, m * n))
    if not length:
        return slice_in_dim(flat, 0, 0, axis=-1)
    return slice_in_dim(flat, start, start + (length - 1) * (n + 1) + 1, n + 1, axis=-1)


@short_way(lambda a, offset=0, axis1=0, axis2=1: a.trace(offset, axis1, axis2), WIDE, plain="offset axis1 axis2")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Array:
    """The sum of a diagonal."""
    no_out("trace", out)
    return reductions.sum(_diagonal("trace", array_of("trace", a), offset, axis1, axis2), -1, dtype)


@short_way(np.diag, ANY, plain="k")
def diag(v: Any, k: int = 0) -> Array:
    """The k-th diagonal of a matrix, or the matrix with a vector as its k-th diagonal."""
    v = array_of("diag", v, "v")
    if v.ndim == 2:
        return _diagonal("diag", v, known_integer("diag", "k", k), 0, 1)
    if v.ndim != 1:
        raise ValueError(f"numpy.diag: input must be 1- or 2-d, got {shown(v)}")
    return _matrix(v, known_integer("diag", "k", k))


def _matrix(v: Array, k: int) -> Array:
    """As a slice of the flattened matrix is the diagonal, this is a pad."""
    zero = v.dtype.type(0)
    n = v.size + abs(k)
    if not v.size:
        return broadcast_in_dim_p.bind(zero, shape=(n, n), broadcast_dimensions=())
    start = k if k >= 0 else -k * n
    end = n * n - start - ((v.size - 1) * (n + 1) + 1)
    flat = pad_p.bind(v, zero, padding_config=((start, end, n),))
    return reshape_p.bind(flat, new_sizes=(n, n))


@api_boundary
def diagflat(v: Any, k: int = 0) -> Array:
    """The matrix with the elements of an array, in a row, as its k-th diagonal."""
    return _matrix(manipulation.ravel(array_of("diagflat", v, "v")), known_integer("diagflat", "k", k))


@api_boundary
def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy with `val` (a scalar, or values that repeat) on the diagonal; pass ``inplace=False``.

    Differs from NumPy: the result is a changed copy, which ``inplace=False`` has to ask for.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.fill_diagonal(xnp.zeros((2, 2)), 3, inplace=False).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    if inplace:
        raise NotImplementedError("numpy.fill_diagonal: arrays are immutable; pass inplace=False and use the result")
    a = array_of("fill_diagonal", a)
    if a.ndim < 2:
        raise ValueError(f"numpy.fill_diagonal: array must be at least 2-d, got {shown(a)}")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"numpy.fill_diagonal: all dimensions of input must be of equal length, got {shown(a)}")
    # In the flattened array the diagonal is a slice; in a tall matrix it goes on below, unless that is cut off.
    columns = a.shape[1]
    step = columns + 1 if a.ndim == 2 else sum(columns**d for d in range(a.ndim))
    end = a.size if wrap or a.ndim > 2 else min(a.size, columns * columns)
    count = len(range(0, end, step))
    val = convert(array_of("fill_diagonal", val, "val"), a.dtype)
    if val.ndim:
        val = manipulation.resize(val, (count,))
    flat = manipulation.ravel(a).at[:end:step].set(val)
    return manipulation.reshape(flat, a.shape)
