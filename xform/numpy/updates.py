"""Updates: ``x.at[index].set(y)`` and its kin, which return changed copies.

Concrete arrays on the host are copied and changed by NumPy. Everything else becomes primitives: a window at a known
place is read, combined and written by `dynamic_update_slice`, all other indices are one `scatter`.

May import: `numpy.indexing`, `numpy.index_plans`, `numpy.promotion`, `xform.lax`, `xform.core`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core import dtypes
from xform.core.array import Array, ArrayImpl, get_aval
from xform.core.config import state
from xform.core.errors import api_boundary, filtered_traceback
from xform.core.trace import Primitive, Tracer
from xform.lax.arithmetic import add_p, div_p, mul_p, neg_p, sub_p
from xform.lax.comparison import select_n_p
from xform.lax.conversion import convert, convert_host
from xform.lax.dynamic_slicing import dynamic_update_slice_p
from xform.lax.extremes import max_p, min_p
from xform.lax.gather import GatherScatterMode, fill_scalar, gather_p
from xform.lax.scatter import ScatterDimensionNumbers, scatter_add_p, scatter_max_p, scatter_min_p, scatter_p
from xform.lax.scatter_apply import scatter_apply
from xform.lax.scatter_mul import scatter_mul_p
from xform.lax.shapes import broadcast_in_dim_p, full, reshape
from xform.lax.slicing import static_slice
from xform.numpy.formulas import power
from xform.numpy.index_plans import (
    ARRAY,
    INT,
    MODULO,
    NEW,
    SLICE,
    Item,
    Plan,
    axes_used,
    check_mask,
    holds_tracer,
    plan_of,
    traced_mask,
)
from xform.numpy.indexing import BASIC, host_index, items_of, read, window_of
from xform.numpy.promotion import array_of


class _Update(NamedTuple):
    """One kind of update."""

    ufunc: Any  # NumPy's; None: replace
    kinds: str  # of dtypes for which it gives what the primitives give; complex products and order differ
    combine: Callable[[Any, Any], Any]
    scatter: Primitive | None  # None: gather, combine with the product of all updates, scatter
    prepare: Callable[[Any], Any] | None = None  # of the values, for the scatter


_UPDATES = {
    "set": _Update(None, "biufc", lambda x, y: y, scatter_p),
    "add": _Update(np.add, "iufc", add_p.bind, scatter_add_p),
    "subtract": _Update(np.subtract, "iufc", sub_p.bind, scatter_add_p, neg_p.bind),
    "multiply": _Update(np.multiply, "iuf", mul_p.bind, scatter_mul_p),
    "divide": _Update(np.true_divide, "f", div_p.bind, None),
    "power": _Update(np.power, "", power, None),
    "min": _Update(np.minimum, "biuf", min_p.bind, scatter_min_p),
    "max": _Update(np.maximum, "biuf", max_p.bind, scatter_max_p),
}


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
    mode : {None, 'clip', 'wrap', 'fill', 'drop', 'promise_in_bounds'}
        What to do with indices out of bounds. None: IndexError if they are known, otherwise `get` reads the nearest
        element and updates are left out, which 'promise_in_bounds' does in any case. 'clip': the nearest element is
        meant. 'wrap': indices are taken modulo the length. 'fill' or 'drop': `get` gives `fill_value`, updates are
        left out.
    wrap_negative_indices : bool
        Whether negative indices count from the end; else they are out of bounds.

    Values are broadcast to the indexed shape and converted to the array's dtype; TypeError for complex into real.
    A mask may be traced, beside integers and slices, if the values don't depend on how many elements it selects.

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
        if mode is None and wrap_negative_indices and not (indices_are_sorted or unique_indices):
            return self.array[self.index]
        wrap, found = _mode(mode, wrap_negative_indices)
        items = items_of(self.array, self.index, wrap, mode is None)
        found = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else found
        return read(self.array, items, found, fill_value, indices_are_sorted, unique_indices)

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
        wrap, found = _mode(mode, wrap_negative_indices)
        plan, flat, unique = _plan_update(x, items_of(x, self.index, wrap, mode is None), unique_indices)
        out = scatter_apply(
            flat,
            plan.indices,
            func,
            ScatterDimensionNumbers(*plan.numbers),
            update_shape=plan.gathered_shape,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique,
            mode=found,
        )
        return reshape(out, x.shape)


def _method(name: str, doc: str, update_name: str | None = None) -> Any:
    update = _UPDATES[update_name or name]
    ufunc, kinds = update.ufunc, update.kinds

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
                host = (index,) if type(index) is int else host_index(index)
                traced = isinstance(values, Tracer) or (type(values) in (list, tuple) and holds_tracer(values))
                if host is not None and x.dtype.kind in kinds and not traced:
                    try:
                        return _update_host(x, host[0], values, ufunc)
                    except (IndexError, ValueError):
                        pass  # for the message
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
    ("add", "``x[index] += values``; where an element is indexed repeatedly, all values count. So in all that follow."),
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
    if isinstance(values, np.ndarray | np.generic):
        if values.dtype != dtype:
            values = _converted(values, dtype)
        if values.size == 1:  # an element can't be set to an array of rank 1
            values = values.reshape(())
    token = quiet_begin()
    try:
        if ufunc is None:
            out[index] = values
        elif type(index) in BASIC or (type(index) is tuple and all(type(i) in BASIC for i in index)):
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
        raise TypeError(f"x.at[index]: {source} values don't fit into an array of {dtype}; take their real part")


_MODES = (None, "clip", "wrap", "fill", "drop", "promise_in_bounds")


def _mode(mode: Any, wrap: bool) -> tuple[bool | str, GatherScatterMode]:
    """How indices are wrapped, and what becomes of those that still are out of bounds."""
    if mode == "wrap":
        return MODULO, GatherScatterMode.PROMISE_IN_BOUNDS
    if mode not in _MODES and not isinstance(mode, GatherScatterMode):
        raise ValueError(
            f"x.at[index]: mode must be 'clip', 'wrap', 'fill', 'drop' or 'promise_in_bounds', got {mode!r}"
        )
    return wrap, GatherScatterMode.from_any(mode)


def _plan_update(x: Any, items: Sequence[Item], unique: bool) -> tuple[Plan, Any, bool]:
    """The plan of an update, the array (of rank 1 at least) it is for, and whether positions are unique."""
    flat = x if x.ndim else reshape(x, (1,))
    unique = unique or all(item.kind is not ARRAY for item in items)
    return plan_of(flat.shape, items), flat, unique


def _update(
    x: Any, index: Any, update: _Update, values: Any, is_sorted: bool, unique: bool, mode: Any, wrap: bool
) -> Any:
    """An update in terms of primitives."""
    if update.ufunc is np.true_divide:
        x = convert(x, dtypes.to_inexact_dtype(x.dtype))
    values = _as_values(values, x.dtype)
    parts = index if type(index) is tuple else (index,)
    for part in parts:
        if isinstance(part, Tracer) and part.dtype == np.dtype(bool):
            return _update_masked(x, parts, part, update, values, wrap, mode)
    how, found = _mode(mode, wrap)
    items = items_of(x, index, how, mode is None)
    if all(i.kind in (INT, NEW) or (i.kind is SLICE and (i.value[1] == 1 or i.value[2] < 2)) for i in items):
        return _update_window(x, items, update, values)
    plan, flat, unique = _plan_update(x, items, unique)
    values = _fit(values, plan.shape, plan.gathered_shape)
    params = dict(indices_are_sorted=is_sorted, unique_indices=unique, mode=found)
    numbers = ScatterDimensionNumbers(*plan.numbers)
    if update.scatter is not None:
        if update.prepare is not None:
            values = update.prepare(values)
        out = update.scatter.bind(flat, plan.indices, values, dimension_numbers=numbers, **params)
        return reshape(out, x.shape)
    if not unique:  # elements without an index keep their value: x / 1, x ** 1
        one = full(flat.shape, np.ones((), x.dtype)[()])
        factor = scatter_mul_p.bind(one, plan.indices, values, dimension_numbers=numbers, **params)
        return reshape(convert(update.combine(flat, factor), x.dtype), x.shape)
    places = dict(params, dimension_numbers=plan.numbers, slice_sizes=plan.sizes, fill_value=fill_scalar(1, x.dtype))
    values = convert(update.combine(gather_p.bind(flat, plan.indices, **places), values), x.dtype)
    return reshape(scatter_p.bind(flat, plan.indices, values, dimension_numbers=numbers, **params), x.shape)


def _update_window(x: Any, items: Sequence[Item], update: _Update, values: Any) -> Any:
    """An update of one window at a known place."""
    starts, sizes = window_of(x.shape, items)
    shape = tuple(1 if i.kind is NEW else i.value[2] for i in items if i.kind in (SLICE, NEW))
    if update.scatter in (scatter_add_p, scatter_mul_p) and x.ndim:
        # The derivative in x is one operation, where that of a slice, a sum and an update is made of three paddings.
        values = _fit(values, shape, sizes)
        axes = tuple(range(x.ndim))
        return update.scatter.bind(
            x,
            ArrayImpl(np.array([int(s) for s in starts])),
            values if update.prepare is None else update.prepare(values),
            dimension_numbers=ScatterDimensionNumbers(axes, (), axes),
            indices_are_sorted=True,
            unique_indices=True,
            mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        )
    if update.ufunc is None or get_aval(values).ndim:
        values = _fit(values, shape, sizes)
    if update.ufunc is not None:
        before = static_slice(x, [int(s) for s in starts], [int(s) + n for s, n in zip(starts, sizes, strict=True)])
        values = convert(update.combine(before, values), x.dtype)
    return dynamic_update_slice_p.bind(x, values, *starts)


def _update_masked(
    x: Any, parts: Sequence[Any], mask: Tracer, update: _Update, values: Any, wrap: bool, mode: Any
) -> Any:
    """An update where a traced mask holds, of values that don't depend on how many elements these are.

    The rest of the index, integers and slices, selects what is combined and chosen from.
    """
    place = next(i for i, p in enumerate(parts) if p is mask)
    before, after = parts[:place], parts[place + 1 :]
    rest = (*before, *(slice(None),) * mask.ndim, *after)
    items = items_of(x, rest, _mode(mode, wrap)[0], mode is None)
    ahead, behind = (sum(map(axes_used, side)) for side in (before, after))
    first = x.ndim - mask.ndim - behind if any(p is Ellipsis for p in before) else ahead
    check_mask(mask, first, x.shape)
    if not mask.size:
        return x
    kept = [item for item in items if item.kind in (SLICE, NEW)]
    at = sum(1 for item in items[: [i.axis for i in items].index(first)] if item in kept) if mask.ndim else 0
    along = len(kept) - at - mask.ndim if len(kept) == len(items) else 0
    if get_aval(values).ndim > along or any(item.kind is ARRAY for item in items):
        raise traced_mask(mask)
    old = read(x, items)
    if get_aval(values).ndim:
        values = _fit(_fit(values, old.shape[at + mask.ndim :]), old.shape)
    if mask.ndim and mask.shape != old.shape:
        dims = tuple(range(at, at + mask.ndim))
        mask = broadcast_in_dim_p.bind(mask, shape=old.shape, broadcast_dimensions=dims)
    new = convert(update.combine(old, values), x.dtype)
    new = select_n_p.bind(mask, old, new)
    return new if old is x else _update(x, rest, _UPDATES["set"], new, False, True, mode, wrap)


def _as_values(values: Any, dtype: np.dtype) -> Any:
    """The values of an update, in the array's dtype."""
    if isinstance(values, int | float | complex) and not isinstance(values, np.generic):
        return dtypes.coerce_scalar(values, dtype)[()]
    values = array_of("at", values, "values")
    _refuse_complex(values.dtype, dtype)
    return convert(values, dtype)


def _fit(values: Any, shape: tuple[int, ...], final: tuple[int, ...] | None = None) -> Any:
    """Values broadcast to the indexed shape, which then becomes `final`: with other axes of length 1."""
    if final is not None:
        if final and not get_aval(values).shape:
            return broadcast_in_dim_p.bind(values, shape=final, broadcast_dimensions=())
        return reshape(_fit(values, shape), final)
    old = get_aval(values).shape
    if old == shape:
        return values
    if len(old) > len(shape) and all(n == 1 for n in old[: len(old) - len(shape)]):  # as NumPy does
        old = old[len(old) - len(shape) :]
        values = reshape(values, old)
    dims = tuple(range(len(shape) - len(old), len(shape)))
    if len(old) > len(shape) or any(n not in (1, shape[d]) for n, d in zip(old, dims, strict=True)):
        raise ValueError(f"x.at[index]: can't broadcast values of shape {old} to the indexed shape {shape}")
    return values if old == shape else broadcast_in_dim_p.bind(values, shape=shape, broadcast_dimensions=dims)


Array.at = property(At, doc="Updates: ``x.at[index].set(y)`` and the like, see `IndexedArray`.")  # type: ignore[attr-defined]
