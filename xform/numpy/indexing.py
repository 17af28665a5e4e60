"""Indexing: ``x[index]``, ``x.at[index].set(y)`` and its kin, iteration, and `take` and its kin.

Concrete arrays on the host are indexed by NumPy itself. Everything else becomes primitives: basic indices a `slice`, or
a `dynamic_slice` where an integer is traced; arrays of integers one `gather` or `scatter`.

An index that is known to be out of bounds raises IndexError. A traced one can't: reading then gives the nearest
element, and an update is left out, unless the arguments of ``.at[...]`` ask for something else.

May import: `numpy.index_plans`, `numpy.promotion`, `xform.lax`, `xform.core`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core import dtypes
from xform.core.array import Array, ArrayImpl, get_aval
from xform.core.config import state
from xform.core.errors import api_boundary, filtered_traceback
from xform.core.trace import Primitive, Tracer
from xform.lax.arithmetic import add_p, div_p, max_p, min_p, mul_p, neg_p, sub_p
from xform.lax.comparison import select_n_p
from xform.lax.gather import GatherScatterMode, fill_scalar, gather_p
from xform.lax.scatter import (
    ScatterDimensionNumbers,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_p,
)
from xform.lax.scatter_apply import scatter_apply
from xform.lax.scatter_mul import scatter_mul_p
from xform.lax.shapes import broadcast_in_dim_p, convert, convert_host, full, reshape, rev_p, squeeze_p
from xform.lax.slicing import dynamic_slice_p, dynamic_update_slice_p, of_one_dtype, static_slice
from xform.numpy.formulas import power
from xform.numpy.index_plans import ARRAY, INT, NEW, SCALAR, SLICE, Item, Plan, holds_tracer, parse, plan_of
from xform.numpy.promotion import array_of

# ---- Reading -----------------------------------------------------------------------------------------------

_BASIC = (int, slice, type(None), type(Ellipsis))


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
            elif (host := _host_index(index)) is not None:
                try:
                    return ArrayImpl(h[host[0]])
                except IndexError:
                    pass
    return _getitem(self, index)


@api_boundary
def _getitem(self: Array, index: Any) -> Any:
    """``x[index]`` as in NumPy."""
    return _get(self, parse(self.shape, index))


def _host_index(index: Any) -> tuple[Any] | None:
    """The index for NumPy, in a tuple; None if it is for the general way: traced, or of a type that may be wrong."""
    kind = type(index)
    if kind in _BASIC or kind is np.ndarray:
        return (index,)
    if kind is ArrayImpl:
        return (index._value(),)
    if kind is tuple:
        parts = []
        for part in index:
            if type(part) not in _BASIC:
                found = _host_index(part)
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


def _get(
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
        return _get_window(x, items, SCALAR in kinds)
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


def _get_window(x: Any, items: Sequence[Item], dynamic: bool) -> Any:
    """Basic indexing: slices, new axes, integers, some of which may be traced."""
    integers = tuple(item.axis for item in items if item.kind in (INT, SCALAR))
    if not dynamic:
        as_slices = [Item(SLICE, i.axis, (i.value, 1, 1)) if i.kind is INT else i for i in items]
        x, _ = _apply_slices(x, as_slices)
    else:
        if any(item.kind is SLICE and item.value[1] != 1 for item in items):
            x, items = _apply_slices(x, items)
        starts, sizes = _window(x.shape, items)
        x = dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)
    if integers:
        x = squeeze_p.bind(x, dimensions=integers)
    kinds = [item.kind for item in items if item.kind in (SLICE, NEW)]
    if NEW not in kinds:
        return x
    sizes = iter(x.shape)
    shape = tuple(1 if kind is NEW else next(sizes) for kind in kinds)
    return _insert(x, shape, [i for i, kind in enumerate(kinds) if kind is NEW])


def _window(shape: tuple[int, ...], items: Sequence[Item]) -> tuple[list[Any], tuple[int, ...]]:
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


# ---- Updates -----------------------------------------------------------------------------------------------


class _Update:
    """One kind of update: how NumPy does it, how it combines arrays, and as a scatter."""

    def __init__(self, ufunc: Any, combine: Callable[[Any, Any], Any], scatter: Primitive | None, prepare: Any = None):
        self.ufunc = ufunc
        self.combine = combine
        self.scatter = scatter  # None: gather, combine with the product of all updates, scatter
        self.prepare = prepare


_UPDATES = {
    "set": _Update(None, lambda x, y: y, scatter_p),
    "add": _Update(np.add, add_p.bind, scatter_add_p),
    "subtract": _Update(np.subtract, sub_p.bind, scatter_add_p, neg_p.bind),
    "multiply": _Update(np.multiply, mul_p.bind, scatter_mul_p),
    "divide": _Update(np.true_divide, div_p.bind, None),
    "power": _Update(np.power, power, None),
    "min": _Update(np.minimum, min_p.bind, scatter_min_p),
    "max": _Update(np.maximum, max_p.bind, scatter_max_p),
}
# NumPy's ufuncs give what the primitives give for these kinds; complex products and order differ.
_HOST_KINDS = {"set": "biufc", "add": "iufc", "subtract": "iufc", "multiply": "iuf", "min": "biuf", "max": "biuf",
               "divide": "f", "power": "f"}  # fmt: skip


class At:
    """``x.at``: index it, and call a method of what that gives."""

    __slots__ = ("array",)

    def __init__(self, array: Any):
        self.array = array

    def __getitem__(self, index: Any) -> "IndexedArray":
        return IndexedArray(self.array, index)

    def __repr__(self) -> str:
        return f"At({self.array!r})"


class IndexedArray:
    """``x.at[index]``: its methods return a copy of the array, changed at the index; `get` returns what is there.

    All take these keyword arguments:

    indices_are_sorted, unique_indices : bool
        Promises, about the index arrays with negative ones replaced, that XLA may use. If they don't hold, the
        result is undefined.
    mode : {None, 'clip', 'fill', 'drop', 'promise_in_bounds'}
        What to do with indices out of bounds. None: IndexError if they are known, otherwise `get` reads the nearest
        element and updates are left out, which 'promise_in_bounds' does in any case. 'clip': the nearest element is
        meant. 'fill' or 'drop': `get` gives `fill_value`, updates are left out.
    wrap_negative_indices : bool
        Whether negative indices count from the end; else they are out of bounds.

    Values are broadcast to the indexed shape and converted to the array's dtype; TypeError for complex into real.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> x = xnp.array([1.0, 2.0, 3.0])
    >>> x.at[0].set(10), x.at[xnp.array([1, 1])].add(1)
    (Array([10.,  2.,  3.], dtype=float64), Array([1., 4., 3.], dtype=float64))
    >>> float(x.at[7].get(mode="fill", fill_value=-1))
    -1.0
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any):
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"{self.array!r}.at[{self.index!r}]"

    @api_boundary
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """``x[index]``; with 'fill', `fill_value` (by default NaN, the least integer or True) where out of bounds."""
        if mode is None and wrap_negative_indices:
            return self.array[self.index]
        items = parse(self.array.shape, self.index, wrap_negative_indices, mode is None)
        found = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
        return _get(self.array, items, found, fill_value, indices_are_sorted, unique_indices)

    @api_boundary
    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        """Replace elements by ``func(element)``, as often as they are indexed; `func` takes and returns scalars."""
        x = self.array
        plan, flat, mode, unique = _plan_update(x, self.index, wrap_negative_indices, mode, unique_indices)
        out = scatter_apply(
            flat,
            plan.indices,
            func,
            ScatterDimensionNumbers(*plan.numbers),
            update_shape=plan.gathered_shape,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique,
            mode=mode,
        )
        return reshape(out, x.shape)


def _method(name: str, doc: str, update_name: str | None = None) -> Any:
    update = _UPDATES[update_name or name]
    kinds = _HOST_KINDS[update_name or name]
    ufunc = update.ufunc

    def method(
        self: IndexedArray,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Any:
        x = self.array
        try:
            if mode is None and wrap_negative_indices and state.fast and type(x) is ArrayImpl and not x._weak:
                index = self.index
                host = (index,) if type(index) is int else _host_index(index)
                if host is not None and x.dtype.kind in kinds and not isinstance(values, Tracer):
                    return _update_host(x, host[0], values, ufunc)
            return _update(
                x, self.index, update, values, indices_are_sorted, unique_indices, mode, wrap_negative_indices
            )
        except Exception as error:
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise

    method.__name__, method.__qualname__, method.__doc__ = name, f"IndexedArray.{name}", doc
    return method


for _name, _doc, *_same in (
    ("set", "``x[index] = values``; where an element is indexed repeatedly, the last value counts."),
    (
        "add",
        "``x[index] += values``; where an element is indexed repeatedly, all values count, as in all that follow.",
    ),
    ("subtract", "``x[index] -= values``."),
    ("multiply", "``x[index] *= values``."),
    ("mul", "``x[index] *= values``.", "multiply"),
    ("divide", "``x[index] /= values``; integers become floats."),
    ("power", "``x[index] **= values``."),
    ("min", "``x[index] = minimum(x[index], values)``."),
    ("max", "``x[index] = maximum(x[index], values)``."),
):
    setattr(IndexedArray, _name, _method(_name, _doc, *_same))


def _update_host(x: ArrayImpl, index: Any, values: Any, ufunc: Any) -> ArrayImpl:
    """An update by NumPy on a copy."""
    out = np.array(x._value())
    dtype = out.dtype
    if type(values) is ArrayImpl:
        values = values._value()
    elif not isinstance(values, np.ndarray | float | int):
        values = array_of("at", values, "values")._value()
    if isinstance(values, np.ndarray | np.generic) and values.dtype != dtype:
        values = _converted(values, dtype)
    if ufunc is None:
        out[index] = values
        return ArrayImpl(out)
    token = quiet_begin()
    try:
        if type(index) in _BASIC:
            out[index] = ufunc(out[index], values, dtype=dtype)
        else:
            ufunc.at(out, index, np.asarray(values, dtype))
    finally:
        quiet_end(token)
    return ArrayImpl(out)


def _converted(values: Any, dtype: np.dtype) -> Any:
    """Values on the host for an array of `dtype`."""
    _refuse_complex(values.dtype, dtype)
    return convert_host(values, dtype)


def _refuse_complex(source: Any, dtype: Any) -> None:
    if dtypes.issubdtype(source, np.complexfloating) and not dtypes.issubdtype(dtype, np.complexfloating):
        raise TypeError(f"can't put {source} values into an array of {dtype}: take their real part first")


def _plan_update(
    x: Any, index: Any, wrap: bool, mode: Any, unique: bool, items: Sequence[Item] | None = None
) -> tuple[Plan, Any, GatherScatterMode, bool]:
    """The plan of an update, the array (of rank 1 at least) it is for, the mode, whether positions are unique."""
    if items is None:
        items = parse(x.shape, index, wrap, mode is None)
    flat = x if x.ndim else reshape(x, (1,))
    unique = unique or all(item.kind is not ARRAY for item in items)
    return plan_of(flat.shape, items), flat, GatherScatterMode.from_any(mode), unique


def _update(
    x: Any, index: Any, update: _Update, values: Any, is_sorted: bool, unique: bool, mode: Any, wrap: bool
) -> Any:
    """An update in terms of primitives."""
    if update.ufunc is np.true_divide:
        x = convert(x, dtypes.to_inexact_dtype(x.dtype))
    values = _as_values(values, x.dtype)
    if isinstance(index, Tracer) and index.dtype == np.dtype(bool) and index.ndim:
        return _update_masked(x, index, update, values)
    items = parse(x.shape, index, wrap, mode is None)
    if all(i.kind in (INT, NEW) or (i.kind is SLICE and (i.value[1] == 1 or i.value[2] < 2)) for i in items):
        return _update_window(x, items, update, values)
    plan, flat, mode, unique = _plan_update(x, index, wrap, mode, unique, items)
    values = reshape(_fit(values, plan.shape), plan.gathered_shape)
    params = dict(indices_are_sorted=is_sorted, unique_indices=unique, mode=mode)
    numbers = ScatterDimensionNumbers(*plan.numbers)
    if update.scatter is not None:
        if update.prepare is not None:
            values = update.prepare(values)
        out = update.scatter.bind(flat, plan.indices, values, dimension_numbers=numbers, **params)
        return reshape(out, x.shape)
    read = dict(params, dimension_numbers=plan.numbers, slice_sizes=plan.sizes, fill_value=fill_scalar(1, x.dtype))
    if not unique:
        one = full(flat.shape, np.ones((), x.dtype)[()])
        product = scatter_mul_p.bind(one, plan.indices, values, dimension_numbers=numbers, **params)
        values = gather_p.bind(product, plan.indices, **read)
    values = update.combine(gather_p.bind(flat, plan.indices, **read), values)
    return reshape(scatter_p.bind(flat, plan.indices, values, dimension_numbers=numbers, **params), x.shape)


def _update_window(x: Any, items: Sequence[Item], update: _Update, values: Any) -> Any:
    """An update of one window at a known place."""
    starts, sizes = _window(x.shape, items)
    shape = tuple(1 if i.kind is NEW else i.value[2] for i in items if i.kind in (SLICE, NEW))
    values = reshape(_fit(values, shape), sizes)
    if update.ufunc is not None:
        before = static_slice(x, [int(s) for s in starts], [int(s) + n for s, n in zip(starts, sizes, strict=True)])
        values = convert(update.combine(before, values), x.dtype)
    return dynamic_update_slice_p.bind(x, values, *starts)


def _update_masked(x: Any, mask: Any, update: _Update, values: Any) -> Any:
    """An update where a traced mask holds, of values that don't depend on how many elements these are."""
    if mask.shape != x.shape[: mask.ndim] or get_aval(values).ndim > x.ndim - mask.ndim:
        parse(x.shape, mask)  # raises
    values = _fit(values, x.shape[mask.ndim :])
    values = _fit(values, x.shape) if get_aval(values).ndim else values
    mask = broadcast_in_dim_p.bind(mask, shape=x.shape, broadcast_dimensions=tuple(range(mask.ndim)))
    return select_n_p.bind(mask, x, _fit(update.combine(x, values), x.shape))


def _as_values(values: Any, dtype: np.dtype) -> Any:
    """The values of an update, in the array's dtype."""
    if isinstance(values, int | float | complex) and not isinstance(values, np.generic):
        return dtypes.coerce_scalar(values, dtype)[()]
    values = array_of("at", values, "values")
    _refuse_complex(values.dtype, dtype)
    return convert(values, dtype)


def _fit(values: Any, shape: tuple[int, ...]) -> Any:
    """Values broadcast to the indexed shape."""
    old = get_aval(values).shape
    if old == shape:
        return values
    if len(old) > len(shape) and all(n == 1 for n in old[: len(old) - len(shape)]):  # as NumPy does
        old = old[len(old) - len(shape) :]
        values = reshape(values, old)
    dims = tuple(range(len(shape) - len(old), len(shape)))
    if len(old) > len(shape) or any(n not in (1, shape[d]) for n, d in zip(old, dims, strict=True)):
        raise ValueError(f"could not broadcast values of shape {old} to the indexed shape {shape}")
    return values if old == shape else broadcast_in_dim_p.bind(values, shape=shape, broadcast_dimensions=dims)


# ---- Functions ---------------------------------------------------------------------------------------------


ArrayImpl.__getitem__ = _getitem_concrete  # type: ignore[attr-defined]
ArrayImpl.__iter__ = _iterate_concrete  # type: ignore[attr-defined]
Array.__getitem__ = _getitem  # type: ignore[attr-defined]
Array.__iter__ = _iterate  # type: ignore[attr-defined]
Array.at = property(At, doc="Updates: ``x.at[index].set(y)`` and the like, see `IndexedArray`.")  # type: ignore[attr-defined]
