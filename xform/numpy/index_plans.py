"""From an index as NumPy understands it to the axes and positions that `gather` and `scatter` understand.

An index is first parsed into items, one per axis or new axis: slices and integers with their bounds checked, and arrays
of integers. `plan_of` then lays out the result's axes by NumPy's rules: all arrays (and the integers beside them)
broadcast to one shape, whose axes stand where the arrays were if these were adjacent, and in front if not.

May import: `xform.lax`, `xform.core`.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, host_value
from xform.core.errors import NonConcreteBooleanIndexError
from xform.core.trace import Tracer
from xform.lax.conversion import convert
from xform.lax.dynamic_slicing import wrap_index
from xform.lax.gather import GatherDimensionNumbers, host_indices
from xform.lax.shapes import broadcast_in_dim_p, reshape
from xform.lax.slicing import concatenate_p

NEW, SLICE, INT, SCALAR, ARRAY = "new axis", "slice", "int", "traced int", "array"


class Item(NamedTuple):
    """One part of an index: what it is, the operand's axis, and its value.

    SLICE has (start, step, length), all elements inside; INT an int inside; SCALAR an integer of rank 0 that may be
    outside, traced or not; ARRAY an array of integers. A boolean scalar is an ARRAY without axis.
    """

    kind: str
    axis: Any
    value: Any


MODULO = "modulo"


def parse(shape: tuple[int, ...], index: Any, wrap: bool | str = True, check: bool = True) -> list[Item]:
    """The items of an index into an array of `shape`, new axes and the axes it does not mention included.

    With `wrap`, negative integers count from the end; with MODULO, all are taken modulo the length. With `check`,
    IndexError for known ones out of bounds.
    """
    parts = [_part(p) for p in (index if type(index) is tuple else (index,))]
    used = sum(n for _, _, n in parts)
    if used > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    ellipses = [i for i, (kind, _, _) in enumerate(parts) if kind is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = ellipses[0] if ellipses else len(parts)
    whole = [(SLICE, slice(None), 1)] * (len(shape) - used)
    parts[at : at + 1] = whole if whole or not ellipses else [(Ellipsis, None, 0)]
    items: list[Item] = []
    axis = 0
    for kind, value, n in parts:
        if kind is SLICE:
            start, stop, step = value.indices(shape[axis])
            items.append(Item(SLICE, axis, (start, step, len(range(start, stop, step)))))
        elif kind is INT:
            items.append(_integer(value, axis, shape[axis], wrap, check))
        elif kind is SCALAR or (kind is ARRAY and n):
            items.append(Item(kind, axis, in_bounds(value, axis, shape[axis], wrap, check)))
        elif kind == "mask":
            items += _mask(value, axis, shape)
        else:  # a new axis, a boolean scalar, an ellipsis for no axes
            items.append(Item(kind, None, value))
        axis += n
    return items


def _part(x: Any) -> tuple[Any, Any, int]:
    """The kind of one part of an index, its value, and how many axes it uses."""
    if type(x) is slice:
        return SLICE, x, 1
    if x is None:
        return NEW, None, 0
    if x is Ellipsis:
        return Ellipsis, None, 0
    if isinstance(x, bool | np.bool):
        return ARRAY, np.zeros(int(x), np.int64), 0
    if isinstance(x, int | np.integer):
        return INT, int(x), 1
    if isinstance(x, list | tuple | range):
        x = _sequence(x)
    if isinstance(x, Tracer):
        if x.dtype == np.dtype(bool):
            raise traced_mask(x)
        if dtypes.issubdtype(x.dtype, np.integer):
            return ARRAY if x.ndim else SCALAR, x, 1
        raise _not_an_index(x)
    if isinstance(x, Array | np.ndarray) or hasattr(x, "__array__"):
        value = np.asarray(host_value(x))
        if value.dtype == bool:
            return ("mask", value, value.ndim) if value.ndim else _part(bool(value))
        if dtypes.issubdtype(value.dtype, np.integer):
            return (ARRAY, host_indices(value), 1) if value.ndim else (INT, int(value), 1)
        raise _not_an_index(x)
    try:
        return INT, operator.index(x), 1
    except TypeError:
        raise _not_an_index(x) from None


def traced_mask(mask: Tracer) -> NonConcreteBooleanIndexError:
    """The error for a traced mask whose number of elements would decide a shape."""
    return NonConcreteBooleanIndexError(
        f"indexing with a traced boolean mask of {mask.aval} gives a shape that depends on its values."
        f"{mask._origin()}\n"
        "Use xform.numpy.where(mask, x, other) or x.at[mask].set(scalar), which keep the shape, or give "
        "xform.numpy.nonzero(mask, size=n) or xform.numpy.compress(mask, x, size=n) a fixed size; outside of "
        "transformations masks work."
    )


def _not_an_index(x: Any) -> IndexError:
    what = f"an array of {x.dtype}" if hasattr(x, "dtype") else f"{x!r} of type {type(x).__name__}"
    return IndexError(
        f"only integers, slices, ellipsis (...), None and integer or boolean arrays are valid indices, got {what}"
    )


def _sequence(x: Any) -> Any:
    """A list of indices as an array."""
    if not holds_tracer(x):
        array = np.asarray([host_value(v) if isinstance(v, Array) else v for v in x])
        return array if array.size else array.astype(np.int64)
    rows = [_sequence(v) if isinstance(v, list | tuple) else v for v in x]
    rows = [convert(r, dtypes.default_int()) for r in rows]
    return concatenate_p.bind(*[reshape(r, (1, *np.shape(r))) for r in rows], dimension=0)


def holds_tracer(x: Any) -> bool:
    """Whether an index holds a traced array."""
    return isinstance(x, Tracer) or (isinstance(x, list | tuple) and any(map(holds_tracer, x)))


def _integer(i: int, axis: int, n: int, wrap: bool | str, check: bool) -> Item:
    if wrap == MODULO and n:
        i %= n
    inside = i + n if wrap and i < 0 else i
    if 0 <= inside < n:
        return Item(INT, axis, inside)
    if check:
        raise out_of_bounds(i, axis, n)
    return Item(SCALAR, axis, np.int64(min(max(inside, -(2**62)), 2**62)))


def out_of_bounds(i: int, axis: int, n: int) -> IndexError:
    """The error for an index that is known to be out of bounds."""
    return IndexError(f"index {i} is out of bounds for axis {axis} with size {n}")


def in_bounds(x: Any, axis: int, n: int, wrap: bool | str, check: bool) -> Any:
    """An array of indices along an axis of length n, with negative ones replaced and known ones checked."""
    if not n and math.prod(x.shape):
        raise IndexError(f"index array of shape {x.shape} is out of bounds for axis {axis} with size 0")
    if wrap == MODULO and n:
        return (wrap_index(x, n, False) if isinstance(x, Tracer) else x) % n
    if isinstance(x, Tracer):
        return wrap_index(x, n, bool(wrap))
    if check and x.size:
        low, high = int(x.min()), int(x.max())
        if high >= n or low < (-n if wrap else 0):
            raise out_of_bounds(high if high >= n else low, axis, n)
    return np.where(x < 0, x + n, x) if wrap else x


def axes_used(part: Any) -> int:
    """How many axes a part of an index uses."""
    return _part(part)[2]


def check_mask(mask: Any, axis: int, shape: tuple[int, ...]) -> None:
    """IndexError if a mask doesn't fit the axes from `axis` on."""
    for d, m in enumerate(mask.shape):
        if m not in (0, shape[axis + d]):  # NumPy lets an empty mask pass
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + d}; size of axis is {shape[axis + d]} "
                f"but size of corresponding boolean axis is {m}"
            )


def _mask(mask: Any, axis: int, shape: tuple[int, ...]) -> list[Item]:
    check_mask(mask, axis, shape)
    return [Item(ARRAY, axis + d, positions) for d, positions in enumerate(np.nonzero(mask))]


class Plan(NamedTuple):
    """An index as a gather: of windows of `sizes`, at `indices`.

    `shape` is the indexed array's, with axes of length 1 at `new`, which the gather does not have.
    """

    indices: Any
    numbers: GatherDimensionNumbers
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    new: tuple[int, ...]

    @property
    def gathered_shape(self) -> tuple[int, ...]:
        """The shape without the new axes."""
        return tuple(n for d, n in enumerate(self.shape) if d not in self.new)


def plan_of(shape: tuple[int, ...], items: Sequence[Item]) -> Plan:
    """Lay out an index into an array of `shape` (not of rank 0)."""
    arrays = [item.value for item in items if item.kind is ARRAY]
    try:
        common = np.broadcast_shapes(*[a.shape for a in arrays])
    except ValueError:
        shapes = " ".join(str(a.shape) for a in arrays)
        message = f"shape mismatch: indexing arrays could not be broadcast together with shapes {shapes}"
        raise IndexError(message) from None
    # Where the arrays' common axes go; without arrays there are none, and integers only drop axes.
    advanced = [i for i, item in enumerate(items) if item.kind in (ARRAY, INT, SCALAR)] if arrays else []
    adjacent = bool(advanced) and advanced[-1] - advanced[0] + 1 == len(advanced)
    place = (advanced[0] if adjacent else 0) if advanced else -1

    result: list[tuple[str, int]] = []  # the result's axes: ("window" | "position" | "new", length)
    components: list[tuple[int, Any, int | None]] = []  # (axis, index, first of the position axes it runs along)
    sizes = [min(1, n) for n in shape]
    windows = []
    positions: list[int] = []
    common_at = 0
    for i, item in enumerate(items):
        if i == place:
            common_at = len(positions)
            positions += common
            result += [("position", n) for n in common]
        if item.kind is NEW:
            result.append((NEW, 1))
        elif item.kind is SLICE:
            start, step, length = item.value
            if step == 1 or length <= 1:
                windows.append(item.axis)
                sizes[item.axis] = length
                result.append(("window", length))
                if length != shape[item.axis]:
                    components.append((item.axis, np.int64(start), None))
            else:
                components.append((item.axis, start + step * np.arange(length), len(positions)))
                positions.append(length)
                result.append(("position", length))
        elif item.axis is not None:
            at = None if item.kind is not ARRAY else -1
            components.append((item.axis, np.int64(item.value) if item.kind is INT else item.value, at))
    # Arrays line up with the last of their common axes.
    end = common_at + len(common)
    components = [(d, x, end - x.ndim if at == -1 else at) for d, x, at in components]
    if not components:  # boolean scalars only
        components = [(0, np.int64(0), None)]
    kinds = [kind for kind, _ in result if kind is not NEW]
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(i for i, kind in enumerate(kinds) if kind == "window"),
        collapsed_slice_dims=tuple(d for d in range(len(shape)) if d not in windows),
        start_index_map=tuple(d for d, _, _ in components),
    )
    return Plan(
        _index_vectors(shape, [(x, at) for _, x, at in components], tuple(positions)),
        numbers,
        tuple(sizes),
        tuple(n for _, n in result),
        tuple(i for i, (kind, _) in enumerate(result) if kind is NEW),
    )


def _index_vectors(shape: tuple[int, ...], components: Sequence[tuple[Any, int | None]], positions: Any) -> Any:
    """The components, each running along some of the position axes, side by side in a new last axis."""
    full = (*positions, 1)
    small = max(shape, default=0) < 2**31
    traced = [x.dtype for x, _ in components if isinstance(x, Tracer)]
    if not traced:
        aligned = [np.reshape(x, _aligned(x, at, len(positions))) for x, at in components]
        vectors = np.concatenate([np.broadcast_to(x, full) for x in aligned], axis=-1)
        return np.clip(vectors, -(2**31), 2**31 - 1).astype(np.int32) if small else vectors
    dtype = np.dtype(np.int32) if small and set(traced) == {np.dtype(np.int32)} else dtypes.default_int()
    columns = []
    for x, at in components:
        x = convert(x, dtype, x.weak_type) if isinstance(x, Tracer) else x.astype(dtype)
        x = reshape(x, _aligned(x, at, len(positions)))
        if x.shape != full:
            x = broadcast_in_dim_p.bind(x, shape=full, broadcast_dimensions=tuple(range(len(full))))
        columns.append(x)
    return columns[0] if len(columns) == 1 else concatenate_p.bind(*columns, dimension=len(positions))


def _aligned(x: Any, at: int | None, ndim: int) -> tuple[int, ...]:
    """The shape of x with its axes from `at` on among `ndim` axes, and a last axis of length 1."""
    lengths = [1] * (ndim + 1)
    if at is not None:
        lengths[at : at + x.ndim] = x.shape
    return tuple(lengths)
