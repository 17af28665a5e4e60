"""Indexing: ``x[index]``, iteration, `take` and `take_along_axis`; updates are in `numpy.updates`.

Concrete arrays on the host are indexed by NumPy itself. Everything else becomes primitives: basic indices a `slice`, or
a `dynamic_slice` where an integer is traced; arrays of integers one `gather`.

An index that is known to be out of bounds raises IndexError. A traced one can't: it reads the nearest element.

May import: `numpy.fast`, `numpy.index_plans`, `numpy.promotion`, `xform.lax`, `interpreters.plans`, `xform.core`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import NonConcreteBooleanIndexError, api_boundary, filtered_traceback
from xform.core.trace import Tracer
from xform.interpreters import plans
from xform.interpreters.reverse import LinearizeTracer
from xform.lax.dynamic_slicing import dynamic_slice_p, of_one_dtype
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, fill_scalar, gather_p
from xform.lax.shapes import broadcast_in_dim_p, reshape, rev_p, squeeze_p
from xform.lax.slicing import static_slice
from xform.numpy import host_forms
from xform.numpy.fast import ANY, INTEGERS, optional, short_way
from xform.numpy.index_plans import ARRAY, INT, NEW, SCALAR, SLICE, Item, holds_tracer, in_bounds, parse, plan_of
from xform.numpy.promotion import array_of, axis_or_none, canonical_axis, is_concrete, no_out, shown

BASIC = (int, slice, type(None), type(Ellipsis))


def _getitem_concrete(self: ArrayImpl, index: Any) -> Any:
    """``x[index]`` as in NumPy; the result is an array of its own, never a view that may be written to."""
    if state.fast and not self._weak:
        h = self._host
        if h is None and self._device is None:
            h = self._fetch()
        if h is not None:
            kind = type(index)
            if kind is int or kind is slice:
                try:
                    return ArrayImpl(h[index])
                except IndexError:
                    pass  # for the message
            elif (host := host_index(index)) is not None:
                try:
                    return ArrayImpl(h[host[0]])
                except IndexError:
                    pass
    try:
        return _getitem(self, index)
    except Exception as error:
        error.__traceback__ = filtered_traceback(error.__traceback__)
        raise


@api_boundary
def _getitem(self: Array, index: Any) -> Any:
    """``x[index]`` as in NumPy."""
    return read(self, items_of(self, index))


def items_of(x: Array, index: Any, wrap: bool | str = True, check: bool = True) -> list[Item]:
    """The items of an index into an array, which errors name."""
    try:
        return parse(x.shape, index, wrap, check)
    except NonConcreteBooleanIndexError:
        raise
    except IndexError as error:
        raise IndexError(f"{error}, for {shown(x)}") from None


_planned: dict[Any, plans.Function] = {}


def _getitem_linearized(self: LinearizeTracer, index: Any) -> Any:
    """The same in a gradient that is evaluated at once: by a plan, if the index is of ints and slices."""
    key = _key_of(index)
    if key is not None:
        function = _planned.get(key)
        if function is None:
            if len(_planned) > 4096:
                _planned.clear()
            function = _planned[key] = plans.Function("index", lambda x: _getitem(x, index))
        result = plans.call_unary(function, self)
        if result is not NotImplemented:
            return result
    return _getitem(self, index)


def _key_of(index: Any) -> Any:
    """A hashable stand-in for an index of ints and slices of ints, else None."""
    kind = type(index)
    if kind is int:
        return index
    if kind is slice:
        parts = (index.start, index.stop, index.step)
        return parts if all(p is None or type(p) is int for p in parts) else None
    if kind is tuple:
        keys = tuple([("slice", _key_of(p)) if type(p) is slice else _key_of(p) for p in index])
        return None if any(k is None or k == ("slice", None) for k in keys) else ("tuple", keys)
    return None


def host_index(index: Any) -> tuple[Any] | None:
    """The index for NumPy, in a tuple; None if it is for the general way: traced, or of a type that may be wrong."""
    kind = type(index)
    if kind in BASIC or kind is np.ndarray:
        return (index,)
    if kind is ArrayImpl:
        return (index._value(),)
    if kind is tuple:
        parts = []
        for part in index:
            if type(part) not in BASIC:
                found = host_index(part)
                if found is None:
                    return None
                (part,) = found
            parts.append(part)
        return (tuple(parts),)
    if isinstance(index, list):
        return None if holds_tracer(index) else (index,)
    return (index,) if isinstance(index, np.generic | bool) else None


def _is_whole(item: Item, shape: Sequence[int]) -> bool:
    return item.value == (0, 1, shape[item.axis])


def read(
    x: Any,
    items: Sequence[Item],
    mode: GatherScatterMode = GatherScatterMode.PROMISE_IN_BOUNDS,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    kinds = {item.kind for item in items}
    fills = mode is GatherScatterMode.FILL_OR_DROP
    if ARRAY not in kinds and not (SCALAR in kinds and fills):
        return _getwindow_of(x, items, SCALAR in kinds)
    # Slices first, so that one gather of whole windows remains.
    x, items = _apply_slices(x, items)
    if not x.ndim:
        x = reshape(x, (1,))
    plan = plan_of(x.shape, items)
    unique = unique_indices or ARRAY not in kinds
    out = gather_p.bind(
        x,
        plan.indices,
        dimension_numbers=plan.numbers,
        slice_sizes=plan.sizes,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique,
        mode=mode,
        fill_value=fill_scalar(fill_value, x.dtype) if fills else None,
    )
    return _insert(out, plan.shape, plan.new)


def _insert(x: Any, shape: tuple[int, ...], new: Sequence[int]) -> Any:
    """`x` with axes of length 1 at `new`, which give it `shape`."""
    if not new:
        return x
    kept = tuple(d for d in range(len(shape)) if d not in new)
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=kept)


def _apply_slices(x: Any, items: Sequence[Item]) -> tuple[Any, list[Item]]:
    """Carry out the slices of an index, and the index that remains."""
    shape = x.shape
    starts, limits, strides, reverse, rest = [0] * len(shape), list(shape), [1] * len(shape), [], []
    for item in items:
        if item.kind is SLICE and not _is_whole(item, shape):
            d = item.axis
            start, step, n = item.value
            last = start + (n - 1) * step if n else start
            starts[d], limits[d], strides[d] = (
                min(start, last),
                max(start, last) + 1 if n else min(start, last),
                abs(step),
            )
            if not n:
                starts[d] = limits[d] = 0
            elif step < 0 and n > 1:
                reverse.append(d)
            item = Item(SLICE, d, (0, 1, n))
        rest.append(item)
    if limits != list(shape) or any(starts) or any(s != 1 for s in strides):
        x = static_slice(x, starts, limits, strides)
    if reverse:
        x = rev_p.bind(x, dimensions=tuple(reverse))
    return x, rest


def _getwindow_of(x: Any, items: Sequence[Item], dynamic: bool) -> Any:
    """Basic indexing: slices, new axes, integers, some of which may be traced."""
    integers = tuple(item.axis for item in items if item.kind in (INT, SCALAR))
    if not dynamic:
        as_slices = [Item(SLICE, i.axis, (i.value, 1, 1)) if i.kind is INT else i for i in items]
        x, _ = _apply_slices(x, as_slices)
    else:
        if any(item.kind is SLICE and item.value[1] != 1 for item in items):
            x, items = _apply_slices(x, items)
        starts, sizes = window_of(x.shape, items)
        x = dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)
    if integers:
        x = squeeze_p.bind(x, dimensions=integers)
    kinds = [item.kind for item in items if item.kind in (SLICE, NEW)]
    if NEW not in kinds:
        return x
    sizes = iter(x.shape)
    shape = tuple(1 if kind is NEW else next(sizes) for kind in kinds)
    return _insert(x, shape, [i for i, kind in enumerate(kinds) if kind is NEW])


def window_of(shape: tuple[int, ...], items: Sequence[Item]) -> tuple[list[Any], tuple[int, ...]]:
    """Start indices and sizes of the window that slices of step 1 and integers select."""
    starts, sizes = [], []
    for item in items:
        if item.axis is None:
            continue
        if item.kind is SLICE:
            starts.append(item.value[0] if item.value[2] else 0)
            sizes.append(item.value[2])
        else:
            if not shape[item.axis]:
                raise IndexError(f"a traced index is out of bounds for axis {item.axis} with size 0")
            starts.append(item.value)
            sizes.append(1)
    return of_one_dtype(starts), tuple(sizes)


def _iterate_concrete(self: ArrayImpl) -> Iterator[Any]:
    """The slices along the first axis."""
    if state.fast and not self._weak and self.ndim:
        return map(ArrayImpl, self._value())
    return _iterate(self)


def _iterate(self: Array) -> Iterator[Any]:
    """The slices along the first axis."""
    if not self.ndim:
        raise TypeError("iteration over an array of rank 0")
    return (self[i] for i in range(self.shape[0]))


for _class, _methods in (
    (Array, (_getitem, _iterate)),
    (ArrayImpl, (_getitem_concrete, _iterate_concrete)),
    (LinearizeTracer, (_getitem_linearized, _iterate)),
):
    for _name, _method in zip(("__getitem__", "__iter__"), _methods, strict=True):
        setattr(_class, _name, _method)


# ---- Functions ---------------------------------------------------------------------------------------------


def _indices(name: str, indices: Any) -> Array:
    indices = array_of(name, indices, "indices")
    if dtypes.kinds[indices.dtype] not in "iu":
        error = IndexError if name == "take_along_axis" else TypeError
        raise error(f"numpy.{name}: indices must be an integer array, got {shown(indices)}")
    return indices


def _mode_of(mode: Any, indices: Array, fill_value: Any) -> Any:
    """None, which means IndexError, only for indices that are known, and where nothing is to be filled in."""
    return "fill" if mode is None and (fill_value is not None or not is_concrete(indices)) else mode


@short_way(host_forms.take, ANY, optional(INTEGERS), plain="axis")
def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Array:
    """The elements of an array at `indices`, along one axis, whose place the axes of `indices` take.

    Differs from NumPy: traced indices out of bounds give `fill_value`, not IndexError.

    Parameters
    ----------
    a : array
    indices : array of integers; negative ones count from the end, except with 'clip'
    axis : int, optional
        By default the array is flattened.
    mode : {None, 'raise', 'fill', 'clip', 'wrap'}
        For indices out of bounds. None: IndexError if they are known, 'fill' if they are traced. 'raise': IndexError,
        and ValueError if they are traced. 'fill': `fill_value`, by default NaN, the least integer, or True. 'clip':
        the first or last element. 'wrap': modulo the length.
    unique_indices, indices_are_sorted : bool
        Promises that XLA may use.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> x = xnp.array([1.0, 2.0, 3.0])
    >>> xnp.take(x, xnp.array([0, -1])), xnp.take(x, xnp.array([1, 7]), mode="fill")
    (Array([1., 3.], dtype=float64), Array([ 2., nan], dtype=float64))
    """
    no_out("take", out)
    a, indices = array_of("take", a), _indices("take", indices)
    if axis_or_none(axis, a) is None:
        a, axis = reshape(a, (a.size,)), 0
    axis = canonical_axis("take", axis, a)
    flags: dict[str, Any] = dict(unique_indices=unique_indices, indices_are_sorted=indices_are_sorted)
    if mode not in (None, "raise", "wrap", "clip", "fill", "drop", "promise_in_bounds"):
        raise ValueError(f"numpy.take: mode must be one of 'clip', 'raise', 'wrap' or 'fill', got {mode!r}")
    if indices.size and not a.shape[axis]:
        raise IndexError(f"numpy.take: cannot do a non-empty take from an empty axis, got axis {axis} of {shown(a)}")
    mode = _mode_of(mode, indices, fill_value)
    if mode == "raise":
        if not is_concrete(indices):
            raise ValueError("numpy.take: indices are traced, so they can't be checked: give another mode")
        mode = None
    elif mode == "clip":
        flags["wrap_negative_indices"] = False
    return a.at[(slice(None),) * axis + (indices,)].get(mode=mode, fill_value=fill_value, **flags)


@short_way(host_forms.take_along_axis, ANY, INTEGERS, plain="axis")
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Elements along an axis at indices that differ from line to line, as `argsort` gives them.

    Differs from NumPy: traced indices out of bounds give `fill_value`, not IndexError.

    Parameters
    ----------
    arr : array
    indices : array of integers, of as many axes as `arr`; the other axes broadcast
    axis : int or None
        With None, `arr` is flattened.
    mode : {None, 'fill', 'clip', 'promise_in_bounds'}
        For indices out of bounds. None: IndexError if they are known, 'fill' if they are traced.
    wrap_negative_indices : bool
        Whether negative indices count from the end, as by default.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> x = xnp.array([[3, 1, 2], [4, 6, 5]])
    >>> xnp.take_along_axis(x, xnp.argsort(x, axis=1), axis=1).tolist()
    [[1, 2, 3], [4, 5, 6]]
    """
    arr, indices = array_of("take_along_axis", arr, "arr"), _indices("take_along_axis", indices)
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(
                f"numpy.take_along_axis: when axis=None, indices must have a single dimension, got {shown(indices)}"
            )
        arr, axis = reshape(arr, (arr.size,)), 0
    axis = canonical_axis("take_along_axis", axis, arr)
    if arr.ndim != indices.ndim:
        raise ValueError(
            "numpy.take_along_axis: indices and arr must have the same number of dimensions, got "
            f"arr {shown(arr)} and indices {shown(indices)}"
        )
    pairs = list(zip(arr.shape, indices.shape, strict=True))
    if any(n != m and 1 not in (n, m) for d, (n, m) in enumerate(pairs) if d != axis):
        raise IndexError(
            f"numpy.take_along_axis: lengths could not be broadcast together except along axis {axis}, got "
            f"arr {shown(arr)} and indices {shown(indices)}"
        )
    mode = _mode_of(mode, indices, fill_value)
    wrap = wrap_negative_indices in (None, True)
    places = indices if isinstance(indices, Tracer) else np.asarray(indices)
    places = in_bounds(places, axis, arr.shape[axis], wrap, mode is None)
    # An axis of length 1 in `indices` is a window's, one of length 1 in `arr` stays at 0, the others go together.
    windows = [d for d, (n, m) in enumerate(pairs) if d != axis and m == 1 != n]
    others = [d for d in range(arr.ndim) if d not in windows]
    together = [d for d in others if d != axis and arr.shape[d] == indices.shape[d]]
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(windows),
        collapsed_slice_dims=tuple(d for d in others if d not in together),
        start_index_map=(axis,),
        operand_batching_dims=tuple(together),
        start_indices_batching_dims=tuple(others.index(d) for d in together),
    )
    found = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    return gather_p.bind(
        arr,
        reshape(places, (*(indices.shape[d] for d in others), 1)),
        dimension_numbers=numbers,
        slice_sizes=tuple(n if d in windows else min(1, n) for d, n in enumerate(arr.shape)),
        indices_are_sorted=False,
        unique_indices=False,
        mode=found,
        fill_value=fill_scalar(fill_value, arr.dtype) if found is GatherScatterMode.FILL_OR_DROP else None,
    )


__all__ = ["take", "take_along_axis"]
