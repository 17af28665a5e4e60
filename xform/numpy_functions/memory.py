"""What the arrays of a NumPy function hold: memory that changes, made of values that don't.

A `Buffer` has the elements of an array that owns its memory. They are an ndarray, which NumPy reads and writes in
place, until a traced value is written: then an `Array`, of which each assignment makes the next version by
``.at[index].set``.

A `Window` is what basic indexing and transposition give: where it lies in the buffer is kept as one `range` or integer
for each of the buffer's axes, so that an index of an index is one index, and a write one update. A `Lens` is any other
view: a function from its parent's elements to its own, read anew when the parent has changed. Writes go through both
into the buffer, so that all arrays that share it see them, as in NumPy.

Whether NumPy returns a view or a copy of elements in another shape depends on their layout. `layout` is an ndarray
without content, laid out as NumPy's would be, on which NumPy itself decides; where that isn't known the result is a
`Lens` that can be read until it, or its parent, is written to, which is an error.

May import: `xform.numpy`, `xform.core`.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import xform.numpy as xnp
from xform.core import dtypes
from xform.core.array import Array, ArrayImpl, host_value, own
from xform.core.config import state
from xform.core.source import Source, describe
from xform.core.trace import Tracer


def is_concrete(x: Any) -> bool:
    """Whether a value or an index holds nothing traced."""
    if isinstance(x, Tracer):
        return False
    if isinstance(x, tuple | list):
        return all(map(is_concrete, x))
    return not (isinstance(x, slice) and not is_concrete((x.start, x.stop, x.step)))


def constant(value: np.ndarray, foreign: bool = False) -> Array:
    """An ndarray as `Array`; in a program that is being staged, equal elements are a broadcast and no data."""
    if value.dtype not in dtypes.kinds:
        raise TypeError(
            f"numpy_function: an array of dtype {value.dtype} can't hold or meet traced values; use a dtype of numbers"
        )
    if state.trace is not None and value.size > 1 and (first := value.flat[0]) == first and (value == first).all():
        return xnp.full(value.shape, first, dtypes.canonicalize_dtype(value.dtype))
    return own(value) if foreign else ArrayImpl(host_value(value))


def updated(x: Array, index: Any, value: Any) -> Array:
    """The next version of an array, in which ``x[index]`` is `value`."""
    return x.at[index].set(value)


def fitted(value: Any, like: Any) -> Array:
    """A value that replaces all elements of an array, in its shape and dtype."""
    value = xnp.asarray(value)
    if value.shape != like.shape:
        value = xnp.broadcast_to(value, like.shape)
    if value.dtype != like.dtype and value.dtype.kind == "c":
        return updated(xnp.asarray(like), ..., value)  # raises unless it is complex, too
    return value if value.dtype == like.dtype else xnp.astype(value, like.dtype)


class Memory:
    """Elements that may change: what `Buffer`, `Window` and `Lens` have in common."""

    __slots__ = ()

    def read(self) -> Any:
        """The elements now: an ndarray, which is not to be changed, or a traced array."""
        raise NotImplementedError

    def writable(self) -> np.ndarray:
        """The elements as an ndarray to write into; only if they aren't traced."""
        raise NotImplementedError

    def assign(self, value: Any) -> None:
        """Replace all elements by those of an array of the same shape."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise if it must not be written to."""
        raise NotImplementedError

    def lend(self) -> bool:
        """The ndarray is handed out as immutable: copy it before the next write. Returns whether it is the caller's."""
        raise NotImplementedError

    def layout(self) -> np.ndarray | None:
        """An ndarray with the strides that NumPy's array would have, or None if they aren't known."""
        raise NotImplementedError

    def export(self) -> Array:
        """The elements now as an `Array`."""
        value = self.read()
        return value if isinstance(value, Array) else constant(value, self.lend())

    def combine(self, method: str, value: Any) -> bool:
        """An operator in place, as a method of ``x.at[index]``; False if it has to be read, combined and written."""
        return False

    def write(self, index: Any, value: Any) -> None:
        """``memory[index] = value``."""
        self.check()
        before = self.read()
        if type(before) is np.ndarray and is_concrete(value) and is_concrete(index):
            self.writable()[index] = value
        elif index is Ellipsis or (type(index) is slice and index == slice(None) and before.ndim):
            self.assign(fitted(value, before))
        else:
            self.assign(updated(self.export(), index, value))


class Buffer(Memory):
    """Elements that an array owns; or those of an argument, to which `origin` says why they can't be written."""

    __slots__ = ("array", "in_order", "lent", "origin", "value")

    def __init__(self, value: Any, origin: str = "", in_order: bool = True):
        self.array: Any = None
        self.lent, self.origin, self.in_order = False, origin, in_order
        self.value = value
        if type(value) is ArrayImpl:
            self.value, self.array, self.lent = np.asarray(value), value, True

    def read(self) -> Any:
        return self.value

    def lend(self) -> bool:
        self.lent = True
        return bool(self.origin)

    def export(self) -> Array:
        if self.array is None:
            if not isinstance(self.value, np.ndarray):
                return self.value
            self.array = super().export()
        return self.array

    def check(self) -> None:
        if self.origin:
            raise ValueError(
                f"assignment into an array that is {self.origin}: NumPy would change it outside, which a function "
                "that is transformed can't do. Make a copy first: `x = x.copy()`"
            )

    def writable(self) -> np.ndarray:
        self.check()
        if self.lent:
            self.value, self.array, self.lent = self.value.copy(order="K"), None, False
        return self.value

    def assign(self, value: Any) -> None:
        self.check()
        if type(self.value) is np.ndarray:
            self.in_order = self.value.flags.c_contiguous
        concrete = type(value) is ArrayImpl
        self.value, self.array, self.lent = np.asarray(value) if concrete else value, None, concrete

    def layout(self) -> np.ndarray | None:
        if type(self.value) is np.ndarray:
            return self.value
        return np.zeros(self.value.shape, self.value.dtype) if self.in_order else None


class View(Memory):
    """Elements of another memory, read anew when these have changed."""

    __slots__ = ("cached", "parent", "seen")

    parent: Memory
    cached: Any
    seen: Any

    def look(self, value: Any) -> Any:
        """The view's elements among those of the parent."""
        raise NotImplementedError

    def read(self) -> Any:
        value = self.parent.read()
        if value is self.seen:
            return self.cached
        out = self.look(value)
        if type(value) is not np.ndarray or (type(out) is np.ndarray and self.is_view(out, value)):
            self.cached, self.seen = out, value
        return out

    def is_view(self, out: np.ndarray, value: np.ndarray) -> bool:
        """Whether what `look` gave of an ndarray follows its changes."""
        return True

    def lend(self) -> bool:
        return self.parent.lend()

    def check(self) -> None:
        self.parent.check()

    def writable(self) -> np.ndarray:
        self.check()
        return self.look(self.parent.writable())

    def layout(self) -> np.ndarray | None:
        whole = self.parent.layout()
        return None if whole is None else self.look(whole)


class Window(View):
    """``parent[index]`` for an index of integers, slices, new axes and an ellipsis; or the axes in another order.

    Reads and writes of traced elements go directly to the memory that is no window (or one with new axes). `places` has
    for each of its axes the `range` of positions, or the one position, and `axes` for each axis of the view which of
    those it is, None if new.
    """

    __slots__ = ("_resolved", "index", "order")

    def __init__(self, parent: Memory, index: Any = (), order: tuple[int, ...] | None = None):
        self.parent, self.index, self.order = parent, index, order
        self._resolved: Any = None
        self.seen = self.cached = None

    def look(self, value: Any) -> Any:
        if type(value) is np.ndarray and is_concrete(self.index):
            return value[self.index] if self.order is None else value.transpose(self.order)
        memory, places, axes = self.resolved()
        value = memory.export()
        index = _index_of(places, value.shape)
        if index:
            value = value[index]
        kept = [k for k, p in enumerate(places) if type(p) is range]
        wanted = [k for k in axes if k is not None]
        if kept != wanted:
            value = value.transpose([kept.index(k) for k in wanted])
        return value[tuple(None if k is None else slice(None) for k in axes)] if None in axes else value

    def resolved(self) -> tuple[Memory, tuple, tuple]:
        """(memory, places, axes)."""
        if self._resolved is None:
            parent = self.parent
            if isinstance(parent, Window) and None not in (resolved := parent.resolved())[2]:
                memory, places, axes = resolved
            else:
                memory, shape = parent, parent.read().shape
                places, axes = tuple(map(range, shape)), tuple(range(len(shape)))
            if self.order is not None:
                self._resolved = memory, places, tuple(axes[k] for k in self.order)
            else:
                self._resolved = memory, *_indexed(memory.read().shape, places, axes, self.index)
        return self._resolved

    def same_as(self, other: Memory) -> bool:
        """Whether two windows show the same elements in the same order."""
        if not isinstance(other, Window):
            return False
        (a, places, axes), (b, others, other_axes) = self.resolved(), other.resolved()
        same = a is b and axes == other_axes
        return same and all(p is q or (is_concrete((p, q)) and p == q) for p, q in zip(places, others, strict=True))

    def combine(self, method: str, value: Any) -> bool:
        memory, places, axes = self.resolved()
        x = memory.read()
        straight = list(axes) == [k for k, p in enumerate(places) if type(p) is range]
        if type(memory) is not Buffer or not straight or type(x) is np.ndarray or x.dtype.kind not in "fc":
            return False
        if type(value) not in (int, float) and value.dtype != x.dtype:
            return False
        self.check()
        memory.assign(getattr(x.at[_index_of(places, x.shape)], method)(value))
        return True

    def write(self, index: Any, value: Any) -> None:
        if type(self.read()) is np.ndarray and is_concrete((value, index)):
            self.check()
            self.writable()[index] = value
        elif index is Ellipsis:
            self.assign(value)
        elif is_basic(index) and None not in self.resolved()[2]:
            Window(self, index).assign(value)
        else:
            self.assign(updated(self.export(), index, value))

    def assign(self, value: Any) -> None:
        memory, places, axes = self.resolved()
        kept = [k for k, p in enumerate(places) if type(p) is range]
        if list(axes) != kept:
            value = xnp.broadcast_to(value, tuple(1 if k is None else len(places[k]) for k in axes))
            value = value[tuple(0 if k is None else slice(None) for k in axes)]
            wanted = [k for k in axes if k is not None]
            if wanted != kept:
                value = value.transpose([wanted.index(k) for k in kept])
        memory.write(_index_of(places, memory.read().shape) or Ellipsis, value)


_SIMPLE = frozenset([int, type(None), type(Ellipsis)])


def is_simple(index: Any) -> bool:
    """Whether an index is of numbers and slices of them: basic, nothing traced, nothing to look up."""
    kind = type(index)
    if kind is tuple:
        return all(map(is_simple, index))
    if kind is slice:
        return type(index.start) in _SIMPLE and type(index.stop) in _SIMPLE and type(index.step) in _SIMPLE
    return kind in _SIMPLE


def is_basic(index: Any) -> bool:
    """Whether an index gives a view: integers, traced ones among them, slices, new axes, an ellipsis."""
    return all(
        i is None or i is Ellipsis or isinstance(i, slice) or _is_integer(i)
        for i in (index if type(index) is tuple else (index,))
    )


def _is_integer(i: Any) -> bool:
    if isinstance(i, Array | np.ndarray):
        return not i.ndim and dtypes.issubdtype(i.dtype, np.integer)
    return hasattr(i, "__index__") and not isinstance(i, bool | np.bool)


def _indexed(shape: tuple[int, ...], places: tuple, axes: tuple, index: Any) -> tuple[tuple, tuple]:
    """The places and axes of a window's window."""
    items = list(index) if type(index) is tuple else [index]
    missing = len(axes) - sum(i is not None and i is not Ellipsis for i in items)
    if missing < 0 or sum(i is Ellipsis for i in items) > 1:
        raise IndexError(
            f"too many indices for array: array is {len(axes)}-dimensional, but {len(axes) - missing} were indexed"
        )
    at = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    items[at : at + 1] = [slice(None)] * missing
    out: list[Any] = []
    places_out, rest = list(places), iter(axes)
    for item in items:
        if item is None:
            out.append(None)
            continue
        axis = next(rest)
        inside = places[axis]
        if isinstance(item, slice):
            places_out[axis] = inside[item]
            out.append(axis)
        else:
            places_out[axis] = _element(inside, item, len(inside) == shape[axis])
    return tuple(places_out), tuple(out)


def _element(inside: range, item: Any, is_whole: bool) -> Any:
    if isinstance(item, Tracer) and item.known() is None:
        if is_whole and inside.step == 1:
            return item
        return inside.start + inside.step * xnp.where(item < 0, item + len(inside), item)
    item = operator.index(item)
    try:
        return inside[item]
    except IndexError:
        raise IndexError(f"index {item} is out of bounds for an axis with size {len(inside)}") from None


def _index_of(places: tuple, shape: tuple[int, ...]) -> tuple:
    """The index of a window, () if it is everything."""
    if all(p == range(n) for p, n in zip(places, shape, strict=True) if type(p) is range) and all(
        type(p) is range for p in places
    ):
        return ()
    index = [_slice_of(p) if type(p) is range else p for p in places]
    while index and type(index[-1]) is slice and index[-1] == slice(0, shape[len(index) - 1], 1):
        index.pop()
    return tuple(index)


def _slice_of(r: range) -> slice:
    if not len(r):
        return slice(0, 0, 1)
    stop = r[-1] + (1 if r.step > 0 else -1)
    return slice(r.start, None if stop < 0 else stop, r.step)


class Lens(View):
    """A view that is a function of its parent's elements, and of nothing else.

    `look` takes an ndarray or a traced array. Where it only moves elements, a write is put back in place by the
    positions at which it finds them; else `put` says how, from the parent's elements and the new ones.
    """

    __slots__ = ("function", "origin", "put", "reason", "unclear")

    def __init__(
        self,
        parent: Memory,
        function: Callable[[Any], Any],
        put: Callable[[Any, Any], Any] | None = None,
        reason: str = "",
        unclear: bool = False,
        origin: Source | None = None,
    ):
        self.parent, self.function, self.put, self.reason = parent, function, put, reason
        self.unclear, self.origin = unclear, origin
        self.seen = self.cached = None
        self.read()

    def look(self, value: Any) -> Any:
        return self.function(value)

    def is_view(self, out: np.ndarray, value: np.ndarray) -> bool:
        return np.may_share_memory(out, value)

    def read(self) -> Any:
        if self.unclear and self.seen is not None and self.parent.read() is not self.seen:
            raise self._unclear("reading it after its array was written to")
        return super().read()

    def layout(self) -> np.ndarray | None:
        return None if self.unclear else super().layout()

    def check(self) -> None:
        if self.unclear:
            raise self._unclear("assigning to it")
        if self.reason:
            raise ValueError(f"assignment destination is read-only: {self.reason}")
        super().check()

    def _unclear(self, what: str) -> ValueError:
        return ValueError(
            f"the array made at {describe(self.origin)} is a view or a copy in NumPy, by the layout of the memory that "
            f"it is made of, which isn't known here; {what} would give one result or another. Add .copy() there"
        )

    def writable(self) -> np.ndarray:
        self.check()
        out = self.look(target := self.parent.writable())
        if not np.may_share_memory(out, target):
            raise self._unclear("assigning to it")
        return out

    def write(self, index: Any, value: Any) -> None:
        self.check()
        if type(self.read()) is np.ndarray and is_concrete((value, index)):
            out = self.look(target := self.parent.writable())
            out[index] = value
            if not np.may_share_memory(out, target):
                target.flat[self.positions().ravel()] = out.ravel()
        else:
            self.assign(updated(self.export(), index, value))

    def positions(self) -> np.ndarray:
        """Where in the parent, counted in C order, the elements are."""
        shape = self.parent.read().shape
        return self.function(np.arange(int(np.prod(shape))).reshape(shape))

    def assign(self, value: Any) -> None:
        self.check()
        before = self.parent.export()
        if self.put is not None:
            after = self.put(before, value)
        else:
            positions = self.positions()
            value = xnp.broadcast_to(value, positions.shape)
            if positions.size == before.size and (positions.ravel() == np.arange(positions.size)).all():
                after = value.reshape(before.shape)
            else:
                flat = before.reshape(-1).at[positions.ravel()].set(value.reshape(-1), unique_indices=True)
                after = flat.reshape(before.shape)
        self.parent.assign(xnp.astype(after, before.dtype))
