"""Arrays put together, and repeated: concatenate, stack, block, tile, repeat, append, insert, delete.

May import: `numpy.promotion`, `numpy.manipulation`, `numpy.creation`, `xform.lax`, `xform.core`.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary, filtered_traceback
from xform.lax.conversion import convert
from xform.lax.shapes import broadcast_in_dim_p, broadcasted_iota, reshape_p
from xform.lax.shapes import full as lax_full
from xform.lax.slicing import concatenate_p, slice_in_dim
from xform.lax.sorting import sort as lax_sort
from xform.lax.stacking import stack_p, tile_p
from xform.numpy import host_forms, keys, manipulation
from xform.numpy.elementwise import where
from xform.numpy.fast import ANY, REFUSALS, hosts, lend, same, several, short_way
from xform.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d
from xform.numpy.promotion import (
    ShapeError,
    array_of,
    arrays_of,
    axis_or_none,
    canonical_axis,
    cast_all,
    concrete,
    dtype_argument,
    expand_to,
    is_concrete,
    no_out,
    promote,
    shape_argument,
    shown,
)
from xform.numpy.ranges import arange


def _joined(name: str, arrays: Any, dtype: Any, casting: str = "same_kind") -> list[Any]:
    """The arrays of an argument, promoted to one dtype, or cast to the one that was asked for."""
    found = arrays_of(name, arrays)
    if not found:
        raise ValueError(f"numpy.{name}: need at least one array to join")
    wanted = dtype_argument(name, dtype)
    if wanted is not None:
        return cast_all(name, found, wanted, casting)
    return [array_of(name, a) for a in promote(name, *found)]


def concatenate(
    arrays: Any, axis: int | None = 0, out: None = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Array:
    """Join arrays along an existing axis; with ``axis=None`` the elements of all in a row."""
    if dtype is out is None and state.fast:
        found = hosts(arrays) or hosts(lend(arrays))
        if found is not None:
            try:
                return ArrayImpl(np.concatenate(found, axis))
            except REFUSALS:
                pass
    try:
        no_out("concatenate", out)
        return _concatenate("concatenate", _joined("concatenate", arrays, dtype, casting), axis)
    except Exception as error:
        if not keys.among(arrays):
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise
    return keys.mapped(concatenate, arrays, axis, dtype=dtype)


concat = concatenate


def _concatenate(name: str, arrays: Sequence[Array], axis: Any) -> Array:
    if axis is None:
        arrays, axis = [manipulation.ravel(a) for a in arrays], 0
    first = arrays[0]
    if not first.ndim:
        raise ShapeError(f"numpy.{name}: zero-dimensional arrays cannot be concatenated; use stack")
    axis = canonical_axis(name, axis, first)
    rests = {a.shape[:axis] + a.shape[axis + 1 :] for a in arrays}
    ranks = {a.ndim for a in arrays}
    if len(rests) > 1 or len(ranks) > 1:
        what = (
            "all the input arrays must have same number of dimensions"
            if len(ranks) > 1
            else f"all the input array dimensions except for axis {axis} must match exactly"
        )
        raise ShapeError(f"numpy.{name}: {what}, got {', '.join(map(shown, arrays))}")
    return first if len(arrays) == 1 else concatenate_p.bind(*arrays, dimension=axis)


def stack(arrays: Any, axis: int = 0, out: None = None, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Join arrays of one shape along a new axis."""
    if dtype is out is None and state.fast:
        found = hosts(arrays) or hosts(lend(arrays))
        if found is not None:
            try:
                return ArrayImpl(np.stack(found, axis))
            except REFUSALS:
                pass
    try:
        no_out("stack", out)
        joined = _joined("stack", arrays, dtype, casting)
        shape = joined[0].shape
        if any(a.shape != shape for a in joined):
            raise ShapeError(
                f"numpy.stack: all input arrays must have the same shape, got {', '.join(map(shown, joined))}"
            )
        return stack_p.bind(*joined, axis=canonical_axis("stack", axis, len(shape) + 1))
    except Exception as error:
        if not keys.among(arrays):
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise
    return keys.mapped(stack, arrays, axis, dtype=dtype)


@short_way(np.vstack, several(ANY))
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Join along the first axis; vectors are rows."""
    return _concatenate("vstack", [atleast_2d(a) for a in _joined("vstack", tup, dtype, casting)], 0)


row_stack = vstack


@short_way(np.hstack, several(ANY))
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Array:
    """Join along the second axis; vectors along their only one."""
    arrays = [atleast_1d(a) for a in _joined("hstack", tup, dtype, casting)]
    return _concatenate("hstack", arrays, 0 if arrays[0].ndim == 1 else 1)


@short_way(np.dstack, several(ANY))
def dstack(tup: Any, dtype: Any = None) -> Array:
    """Join along the third axis."""
    return _concatenate("dstack", [atleast_3d(a) for a in _joined("dstack", tup, dtype)], 2)


@short_way(np.column_stack, several(ANY))
def column_stack(tup: Any) -> Array:
    """Join along the second axis; vectors are columns."""
    arrays = [a if a.ndim > 1 else reshape_p.bind(a, new_sizes=(a.size, 1)) for a in _joined("column_stack", tup, None)]
    return _concatenate("column_stack", arrays, 1)


@short_way(np.append, ANY, same(ANY), plain="axis")
def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """Join `values` to the end; with ``axis=None`` all elements in a row."""
    return _concatenate("append", _joined("append", (arr, values), None), axis)


@api_boundary
def block(arrays: Any) -> Array:
    """An array from nested lists of blocks: the innermost lists are joined along the last axis, and so on outwards."""

    def depth(x: Any) -> int:
        if isinstance(x, list):
            depths = {depth(e) for e in x}
            if not depths:
                raise ValueError("numpy.block: list cannot be empty")
            if len(depths) > 1:
                raise ValueError(f"numpy.block: list depths are mismatched, got elements at depths {sorted(depths)}")
            return 1 + depths.pop()
        if isinstance(x, tuple):
            raise TypeError("numpy.block: only lists can be used to arrange blocks, got a tuple")
        return 0

    levels = depth(arrays)

    def ranks(x: Any) -> int:
        return max(map(ranks, x)) if isinstance(x, list) else array_of("block", x).ndim

    rank = max(ranks(arrays), levels)

    def build(x: Any, axis: int) -> Array:
        if isinstance(x, list):
            return concatenate([build(e, axis + 1) for e in x], axis)
        x = array_of("block", x)
        return manipulation.reshape(x, (1,) * (rank - x.ndim) + x.shape)

    return build(arrays, rank - levels)


# ---- Repeating ---------------------------------------------------------------------------------------------


@short_way(np.tile, ANY, plain="reps")
def tile(A: Any, reps: Any) -> Array:
    """The array repeated so many times along each axis."""
    a = array_of("tile", A, "A")
    counts = shape_argument("tile", reps, "reps")
    shape = (1,) * (len(counts) - a.ndim) + a.shape
    counts = (1,) * (len(shape) - len(counts)) + counts
    return tile_p.bind(manipulation.reshape(a, shape), reps=counts)


@short_way(host_forms.repeat, ANY, plain="repeats axis")
def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Any = None
) -> Array:
    """Each element repeated so many times, along an axis (of all in a row by default).

    Differs from NumPy: repeats that aren't integers are a TypeError; traced ones need `total_repeat_length`.

    Parameters
    ----------
    repeats : int or array of ints, one per element
    total_repeat_length : int, optional
        Length of the result, needed where `repeats` is traced: what is missing repeats the last element, what is too
        much is cut off.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.repeat(xnp.array([3, 4]), xnp.array([1, 2])).tolist()
    [3, 4, 4]
    """
    if out_sharding is not None:
        raise NotImplementedError("numpy.repeat: out_sharding is not supported yet")
    a = array_of("repeat", a)
    if axis_or_none(axis, a) is None:
        a, axis = manipulation.ravel(a), 0
    axis = canonical_axis("repeat", axis, a)
    n = a.shape[axis]
    if total_repeat_length is None:
        remedy = "Its sum is the length of the result: give total_repeat_length."
        counts = concrete("repeat", repeats, "repeats", remedy)
        if not counts.size:
            counts = counts.astype(int)  # of an empty list
        if counts.dtype.kind not in "iub":
            raise TypeError(f"numpy.repeat: repeats must be integers, got {counts}")
        if counts.ndim > 1 or counts.size not in (1, n):
            raise ValueError(
                f"numpy.repeat: repeats must be one number, or {n} for axis {axis} of {shown(a)}, got {counts}"
            )
        if counts.size and counts.min() < 0:
            raise ValueError(f"numpy.repeat: repeats may not contain negative values, got {counts}")
        if counts.size == 1:
            return _repeat_all(a, int(counts.reshape(())), axis)
        return take_static(a, np.repeat(np.arange(n), counts), axis)
    counts = array_of("repeat", repeats, "repeats")
    if counts.ndim > 1 or (counts.size not in (1, n)):
        raise ValueError(f"numpy.repeat: repeats must be one number, or {n}, got {shown(counts)}")
    total = operator.index(total_repeat_length)
    if not n:
        return manipulation.resize(a, (*a.shape[:axis], 0, *a.shape[axis + 1 :]))
    # One step up where the next element begins; the last one goes on to the end.
    begins = expand_to(manipulation.ravel(counts), (n,))[: n - 1].cumsum()
    steps = lax_full((total,), 0, begins.dtype).at[begins].add(1, mode="drop", wrap_negative_indices=False)
    at = a.at[(slice(None),) * axis + (steps.cumsum(),)]
    return at.get(mode="promise_in_bounds", wrap_negative_indices=False)


def _repeat_all(a: Array, count: int, axis: int) -> Array:
    shape = a.shape
    spread = (*shape[: axis + 1], count, *shape[axis + 1 :])
    dims = tuple(d for d in range(len(spread)) if d != axis + 1)
    out = broadcast_in_dim_p.bind(a, shape=spread, broadcast_dimensions=dims)
    return reshape_p.bind(out, new_sizes=(*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


def take_static(a: Array, indices: np.ndarray, axis: int) -> Array:
    """Elements along an axis at indices that are known and in range."""
    return a[(slice(None),) * axis + (indices,)]


# ---- Inserting and deleting --------------------------------------------------------------------------------


def _known_indices(obj: Any) -> np.ndarray:
    found = np.asarray(obj)
    return found if found.size else found.astype(int)  # of an empty list


@short_way(np.delete, ANY, plain="obj axis")
def delete(arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False) -> Array:
    """Without the elements at the indices `obj` (an int, slice, or array of ints or booleans), along an axis.

    Differs from NumPy: traced indices must be integers that differ.

    A traced `obj` must be an integer, or integers that are known to differ (``assume_unique_indices=True``).
    """
    arr = array_of("delete", arr, "arr")
    if axis is None:
        arr, axis = manipulation.ravel(arr), 0
    axis = canonical_axis("delete", axis, arr)
    n = arr.shape[axis]
    if isinstance(obj, slice) or is_concrete(obj):
        try:
            kept = np.delete(np.arange(n), obj if isinstance(obj, slice) else _known_indices(obj))
        except (IndexError, ValueError) as error:
            raise type(error)(f"numpy.delete: {error}, for axis {axis} of {shown(arr)}") from None
        return take_static(arr, kept, axis)
    obj = array_of("delete", obj, "obj")
    if dtypes.kinds[obj.dtype] not in "iu" or (obj.ndim and not assume_unique_indices):
        concrete("delete", obj, "obj", "Give integers, with assume_unique_indices=True if there are several.")
    removed = manipulation.ravel(where(obj < 0, obj + n, obj))
    # The places that are kept come first in a stable sort by whether they are removed.
    gone = (broadcasted_iota(obj.dtype, (n, removed.size), 0) == removed).any(1)
    _, order = lax_sort((convert(gone, np.dtype("int32")), arange(n)), 0)
    return arr[(slice(None),) * axis + (slice_in_dim(order, 0, n - removed.size),)]


@short_way(np.insert, "d", plain="obj values axis")
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """With `values` before the indices `obj` (an int, slice, or array of ints, which may be traced), along an axis."""
    arr = array_of("insert", arr, "arr")
    if axis is None:
        arr, axis = manipulation.ravel(arr), 0
    axis = canonical_axis("insert", axis, arr)
    n = arr.shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(n))
    if is_concrete(obj):
        obj = _known_indices(obj)
        if obj.dtype == bool:
            obj = np.flatnonzero(obj)
        if obj.dtype.kind not in "iu":
            raise TypeError(f"numpy.insert: indices must be integers, got {shown(obj)}")
        outside = obj[(obj < -n) | (obj > n)]
        if outside.size:
            raise IndexError(
                f"numpy.insert: index {outside.flat[0]} is out of bounds for axis {axis} with size {n}, {shown(arr)}"
            )
    place = int(np.asarray(obj).item()) if is_concrete(obj) and np.size(obj) == 1 else None
    obj = array_of("insert", obj, "obj")
    scalar = not obj.ndim
    places = manipulation.ravel(where(obj < 0, obj + n, obj))
    values = convert(array_of("insert", values, "values"), arr.dtype)
    count = places.size
    if count == 1:  # any number of values at one place
        values = manipulation.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
        values = manipulation.moveaxis(values, 0, axis) if scalar else values
        count = values.shape[axis]
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    if values.ndim > len(shape) or any(m not in (1, k) for m, k in zip(values.shape[::-1], shape[::-1], strict=False)):
        raise ShapeError(f"numpy.insert: could not broadcast values {shown(values)} into shape {shape}")
    values = expand_to(values, shape)
    if place is not None:
        start = place + n if place < 0 else place
        return concatenate([slice_in_dim(arr, 0, start, 1, axis), values, slice_in_dim(arr, start, n, 1, axis)], axis)
    places = expand_to(places, (count,))
    order_by = concatenate([places.astype(dtypes.default_int()), arange(n)])
    _, order = lax_sort((order_by, arange(count + n)), 0)
    return concatenate([values, arr], axis)[(slice(None),) * axis + (order,)]
