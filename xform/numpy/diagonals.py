"""Diagonals: taken out, summed, filled, and made into matrices.

A diagonal is a strided slice of the flattened matrix, so its derivative is a pad, not a scatter.

May import: `numpy.promotion`, `numpy.manipulation`, `numpy.reductions`, `xform.lax`.
"""

import operator
from typing import Any

import numpy as np

from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.shapes import broadcast_in_dim_p, broadcasted_iota, convert, reshape_p
from xform.lax.slicing import pad_p, slice_in_dim
from xform.numpy import manipulation, reductions
from xform.numpy.elementwise import where
from xform.numpy.promotion import array_of, canonical_axis, no_out, shown


@api_boundary
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements with ``index[axis2] - index[axis1] == offset``, along a new last axis."""
    return _diagonal("diagonal", array_of("diagonal", a), offset, axis1, axis2)


def _diagonal(name: str, a: Array, offset: Any, axis1: Any, axis2: Any) -> Array:
    if a.ndim < 2:
        raise ValueError(f"numpy.{name}: a must have at least two axes, got {shown(a)}")
    i, j = canonical_axis(name, axis1, a, "axis1"), canonical_axis(name, axis2, a, "axis2")
    if i == j:
        raise ValueError(f"numpy.{name}: axis1 and axis2 must differ, got {axis1} and {axis2}")
    k = operator.index(offset)
    a = manipulation.moveaxis(a, (i, j), (-2, -1))
    *batch, m, n = a.shape
    length = max(0, min(m, n - k) if k >= 0 else min(m + k, n))
    start = k if k >= 0 else -k * n
    flat = reshape_p.bind(a, new_sizes=(*batch, m * n))
    if not length:
        return slice_in_dim(flat, 0, 0, axis=-1)
    return slice_in_dim(flat, start, start + (length - 1) * (n + 1) + 1, n + 1, axis=-1)


@api_boundary
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Array:
    """The sum of a diagonal."""
    no_out("trace", out)
    return reductions.sum(_diagonal("trace", array_of("trace", a), offset, axis1, axis2), -1, dtype)


@api_boundary
def diag(v: Any, k: int = 0) -> Array:
    """The k-th diagonal of a matrix, or the matrix with a vector as its k-th diagonal."""
    v = array_of("diag", v, "v")
    if v.ndim == 2:
        return _diagonal("diag", v, k, 0, 1)
    if v.ndim != 1:
        raise ValueError(f"numpy.diag: v must have one or two axes, got {shown(v)}")
    return _matrix(v, operator.index(k))


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
    return _matrix(manipulation.ravel(array_of("diagflat", v, "v")), operator.index(k))


@api_boundary
def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy with `val` (a scalar, or values that repeat) on the diagonal; pass ``inplace=False``.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.fill_diagonal(xnp.zeros((2, 2)), 3, inplace=False).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    if inplace:
        raise NotImplementedError("numpy.fill_diagonal: arrays are immutable; pass inplace=False and use the result")
    if wrap:
        raise NotImplementedError("numpy.fill_diagonal: wrap=True is not supported")
    a = array_of("fill_diagonal", a)
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) > 1):
        raise ValueError(f"numpy.fill_diagonal: a must be a matrix, or have axes of one length, got {shown(a)}")
    index = [broadcasted_iota(np.int64, a.shape, d) for d in range(a.ndim)]
    on = index[0] == index[1]
    for other in index[2:]:
        on = on & (index[0] == other)
    val = convert(array_of("fill_diagonal", val, "val"), a.dtype)
    if val.ndim:
        length = min(a.shape)
        val = manipulation.resize(val, (length,))
        longest = (max(a.shape[0], length),)
        val = manipulation.resize(val, longest)
        val = manipulation.reshape(val, (*longest, *(1,) * (a.ndim - 1)))
    return where(on, val, a)
