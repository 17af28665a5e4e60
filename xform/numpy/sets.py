"""Vectors as sets: distinct elements, membership, union, intersection, difference.

The size of the results depends on values: where these are traced, give `size` (and `fill_value`, by default the
smallest element).

May import: the other modules of `xform.numpy`.
"""

import operator
from typing import Any, NamedTuple

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.errors import api_boundary
from xform.lax.conversion import convert
from xform.lax.shapes import broadcast_in_dim
from xform.lax.shapes import full as lax_full
from xform.lax.sorting import sort_p
from xform.numpy import manipulation, reductions, ufuncs
from xform.numpy.elementwise import where
from xform.numpy.fast import REAL, same, short_way
from xform.numpy.joining import concatenate
from xform.numpy.promotion import array_of, canonical_axis, concrete, promote, strong
from xform.numpy.ranges import arange
from xform.numpy.searching import places, searchsorted

_SIZE = "The size of the result depends on its values: give size= (and fill_value=)."


class _UniqueAll(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCounts(NamedTuple):
    values: Array
    counts: Array


class _UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array


@short_way(np.unique, REAL, plain="return_index return_inverse return_counts axis equal_nan")
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, size: int | None = None, fill_value: Any = None,
    sorted: bool = True,
) -> Any:  # fmt: skip
    """The distinct elements in ascending order, or the distinct slices along an axis.

    Parameters
    ----------
    return_index, return_inverse, return_counts : bool
        Return also the first place of each, for each element the place of its value in the result, and how often each
        occurs.
    equal_nan : bool
        Whether NaN are one value.
    size : int, optional
        How many to return, which is needed where `ar` is traced; surplus ones are cut off.
    fill_value : optional
        What takes the place of missing ones; by default the first of the result.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.unique(xnp.array([3, 1, 3])).tolist()
    [1, 3]
    >>> xnp.unique(xnp.array([3, 1, 3]), size=4, fill_value=0).tolist()
    [1, 3, 0, 0]
    """
    ar = strong(array_of("unique", ar, "ar"))
    d = None if axis is None else canonical_axis("unique", axis, ar)
    index = dtypes.default_int()
    if size is None:
        values = concrete("unique", ar, "ar", _SIZE)
        found = np.unique(values, True, True, True, d, equal_nan=equal_nan)
        out: list[Array] = [ArrayImpl(np.asarray(found[0]))]
        out += [ArrayImpl(x.astype(index, copy=False)) for x in found[1:]]
    else:
        out = _sized_unique(ar, d, equal_nan, operator.index(size), fill_value)
    wanted = [True, return_index, return_inverse, return_counts]
    chosen = tuple(x for x, w in zip(out, wanted, strict=True) if w)
    return chosen if len(chosen) > 1 else chosen[0]


def _sized_unique(ar: Array, axis: int | None, equal_nan: bool, size: int, fill_value: Any) -> list[Array]:
    index = dtypes.default_int()
    rows = manipulation.reshape(ar, (ar.size, 1)) if axis is None else manipulation.moveaxis(ar, axis, 0)
    shape = rows.shape
    n = shape[0]
    table = manipulation.reshape(rows, (n, -1 if rows.size else 1)) if rows.size else lax_full((n, 1), 0, ar.dtype)
    keys = manipulation.unstack(table, axis=1)
    *sorted_keys, order = sort_p.bind(*keys, arange(n), dimension=0, is_stable=True, num_keys=len(keys))
    differ: Any = False
    for key in sorted_keys:
        before, after = key[:-1], key[1:]
        new = before != after
        if equal_nan and dtypes.issubdtype(ar.dtype, np.inexact):
            new = new & ~(ufuncs.isnan(before) & ufuncs.isnan(after))
        differ = new | differ
    first = (
        concatenate([lax_full((min(n, 1),), True, np.dtype(bool)), differ])
        if n
        else lax_full((0,), True, np.dtype(bool))
    )
    start = places("unique", first, size + 1, n)
    count = reductions.sum(first)
    valid = arange(size) < count
    place = start[:size].clip(0, max(n - 1, 0))
    if n:
        picked = order[place]
        values = rows[picked]
        fill = values[:1] if fill_value is None else convert(array_of("unique", fill_value, "fill_value"), ar.dtype)
        values = where(manipulation.reshape(valid, (size, *(1,) * (len(shape) - 1))), values, fill)
        picked = where(valid, picked, picked[:1])
    else:
        values = lax_full((size, *shape[1:]), 0 if fill_value is None else fill_value, ar.dtype)
        picked = lax_full((size,), 0, index)
    inverse = lax_full((n,), 0, index).at[order].set(convert(first, index).cumsum() - 1)
    counts = where(valid, start[1:] - start[:-1], 0)
    if axis is None:
        return [manipulation.reshape(values, (size,)), picked, manipulation.reshape(inverse, ar.shape), counts]
    return [manipulation.moveaxis(values, 0, axis), picked, inverse, counts]


@api_boundary
def unique_all(x: Any, *, size: int | None = None, fill_value: Any = None) -> _UniqueAll:
    """Distinct elements, their first places, the place of each element's value, and counts; NaN are all distinct."""
    return _UniqueAll(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


@api_boundary
def unique_counts(x: Any, *, size: int | None = None, fill_value: Any = None) -> _UniqueCounts:
    """Distinct elements and counts; NaN are all distinct."""
    return _UniqueCounts(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


@api_boundary
def unique_inverse(x: Any, *, size: int | None = None, fill_value: Any = None) -> _UniqueInverse:
    """Distinct elements and the place of each element's value; NaN are all distinct."""
    return _UniqueInverse(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


@api_boundary
def unique_values(x: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Distinct elements; NaN are all distinct.

    Differs from NumPy: in ascending order; NumPy says nothing about the order.
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def _vectors(name: str, *args: Any) -> list[Array]:
    return [manipulation.ravel(array_of(name, x)) for x in promote(name, *args)]


@short_way(np.isin, REAL, same(REAL), plain="assume_unique invert")
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None,
    method: str = "auto",
) -> Array:  # fmt: skip
    """Whether each element is among others.

    ``method``: 'compare_all', 'binary_search', 'sort', or 'auto'; ``kind`` ('sort', 'table') is NumPy's advice on it.
    """
    if kind not in (None, "sort", "table"):
        raise ValueError(f"numpy.isin: kind must be None, 'sort' or 'table', got {kind!r}")
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"numpy.isin: unknown method {method!r}")
    shape = manipulation.shape(element)
    element, test = _vectors("isin", element, test_elements)
    if method == "compare_all" or (method == "auto" and test.size < 32):
        pairs = (element.size, test.size)
        found = reductions.any(broadcast_in_dim(element, pairs, (0,)) == broadcast_in_dim(test, pairs, (1,)), 1)
    else:
        ordered = sort_p.bind(test, dimension=0, is_stable=False, num_keys=1)[0]
        place = searchsorted(ordered, element).clip(0, test.size - 1)
        found = ordered[place] == element
    found = manipulation.reshape(found, shape)
    return ~found if invert else found


@short_way(np.union1d, REAL, same(REAL))
def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Distinct elements of both."""
    return unique(concatenate(_vectors("union1d", ar1, ar2)), size=size, fill_value=fill_value)


def _kept(name: str, values: Array, mask: Array, size: int | None, fill_value: Any) -> Array:
    """The elements of a vector where a mask holds."""
    if size is None:
        return values[places(name, mask, None)]
    fill: Any = fill_value
    if fill is None:
        fill = reductions.min(values) if values.size else 0
    place = places(name, mask, size, values.size)
    found = (
        values[place.clip(0, max(values.size - 1, 0))]
        if values.size
        else lax_full((operator.index(size),), 0, values.dtype)
    )
    return where(place < values.size, found, convert(array_of(name, fill, "fill_value"), values.dtype))


def _set_of(name: str, x: Array, assume_unique: bool, traced_size: bool) -> tuple[Array, Any]:
    """The distinct elements in order, and which of them count (traced: repetitions are masked out)."""
    if not traced_size:
        return (x if assume_unique else unique(x)), True
    if assume_unique or x.size < 2:
        return x, lax_full((x.size,), True, np.dtype(bool))
    ordered = sort_p.bind(x, dimension=0, is_stable=False, num_keys=1)[0]
    return ordered, concatenate([lax_full((1,), True, np.dtype(bool)), ordered[1:] != ordered[:-1]])


@short_way(np.setdiff1d, REAL, same(REAL), plain="assume_unique")
def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Distinct elements of the first that aren't in the second."""
    first, second = _vectors("setdiff1d", ar1, ar2)
    values, counted = _set_of("setdiff1d", first, assume_unique, size is not None)
    return _kept("setdiff1d", values, ~isin(values, second) & counted, size, fill_value)


@short_way(np.setxor1d, REAL, same(REAL), plain="assume_unique")
def setxor1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Distinct elements that are in exactly one of both."""
    first, second = _vectors("setxor1d", ar1, ar2)
    values, counted = _set_of("setxor1d", concatenate([first, second]), False, size is not None)
    return _kept("setxor1d", values, (isin(values, first) != isin(values, second)) & counted, size, fill_value)


@short_way(np.intersect1d, REAL, same(REAL), plain="assume_unique return_indices")
def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False,
    *, size: int | None = None, fill_value: Any = None,
) -> Any:  # fmt: skip
    """Distinct elements that are in both; with `return_indices` also their first places in both."""
    first, second = _vectors("intersect1d", ar1, ar2)
    values, counted = _set_of("intersect1d", first, False, size is not None)
    mask = isin(values, second) & counted
    out = _kept("intersect1d", values, mask, size, fill_value)
    if not return_indices:
        return out
    valid = arange(out.size) < reductions.sum(mask)
    indices = []
    for x in (first, second):
        place = reductions.argmax(out[:, None] == x[None, :], 1) if x.size else 0
        indices.append(where(valid, place, x.size))
    return (out, *indices)
