"""`gather`: windows of an array at positions given by another.

The general indexing operation of XLA (https://openxla.org/stablehlo/spec#gather), with the positions along
the last axis of the index array. Its transpose, `scatter_add`, is in `lax.scatter`.

May import: `xform.core`, `xform.interpreters`.
"""

import enum
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.core import dtypes
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.jet import linear
from xform.interpreters.lowering import Context, Value, i64s
from xform.interpreters.tangents import Zero, zero_of


class GatherDimensionNumbers(NamedTuple):
    """Which axes of `gather`'s operand, indices and result belong together.

    Attributes
    ----------
    offset_dims : axes of the result that run through a window
    collapsed_slice_dims : axes of the operand whose window has length 1 and that are missing in the result
    start_index_map : for each component of an index vector, the axis of the operand that it positions
    operand_batching_dims, start_indices_batching_dims : axes of operand and indices that go together one to one
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class GatherScatterMode(enum.Enum):
    """What happens to a window that is not inside the array.

    CLIP: it is moved back inside. FILL_OR_DROP: gathering gives a fill value, scattering leaves it out.
    PROMISE_IN_BOUNDS: the caller vouches for it; if not, gathering clips and scattering drops.
    """

    CLIP = 0
    FILL_OR_DROP = 1
    PROMISE_IN_BOUNDS = 2

    @staticmethod
    def from_any(mode: "str | GatherScatterMode | None") -> "GatherScatterMode":
        """The mode of a name: 'clip', 'fill' or 'drop', 'promise_in_bounds'; None is the default, FILL_OR_DROP."""
        if isinstance(mode, GatherScatterMode):
            return mode
        found = _MODES.get(mode)
        if found is None:
            raise ValueError(f"mode must be 'clip', 'fill', 'drop' or 'promise_in_bounds', got {mode!r}")
        return found

    def __repr__(self) -> str:
        return f"GatherScatterMode.{self.name}"


_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


class Windows(NamedTuple):
    """The correspondence of axes that `gather` and `scatter` share.

    `window_dims` are axes of the windowed array (gather's result, scatter's updates) and `kept` the operand's axes
    that they run along; `dropped` are axes of the operand with windows of length 1; component k of an index vector
    positions axis ``index_map[k]``; `batching` pairs axes of the operand with axes of the index array.
    """

    window_dims: tuple[int, ...]
    dropped: tuple[int, ...]
    index_map: tuple[int, ...]
    batching: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, numbers: Any) -> "Windows":
        """From gather's or scatter's dimension numbers, whose fields have one order."""
        window_dims, dropped, index_map, of_operand, of_indices = numbers
        return cls(window_dims, dropped, index_map, tuple(zip(of_operand, of_indices, strict=True)))

    def kept(self, ndim: int) -> list[int]:
        """The operand's axes that a window runs along."""
        missing = {*self.dropped, *(d for d, _ in self.batching)}
        return [d for d in range(ndim) if d not in missing]


def check_windows(
    name: str, numbers: Any, x: ShapedArray, indices: ShapedArray, sizes: Sequence[int], windowed_ndim: int
) -> None:
    """Raise unless dimension numbers fit the operand, the indices and the window sizes."""
    fields = dict(zip(numbers._fields, numbers, strict=True))

    def fail(what: str) -> None:
        raise TypeError(
            f"lax.{name}: {what}; operand {x.str_short()}, indices {indices.str_short()}, windows {tuple(sizes)}, "
            f"{numbers}"
        )

    if not dtypes.issubdtype(indices.dtype, np.integer):
        fail("indices must be integers")
    if indices.ndim < 1 or indices.shape[-1] != len(numbers[2]):
        fail(f"the last axis of the indices must have the {len(numbers[2])} components of {numbers._fields[2]}")
    limits = (windowed_ndim, x.ndim, x.ndim, x.ndim, indices.ndim - 1)
    for (field, dims), limit in zip(fields.items(), limits, strict=True):
        if len(set(dims)) != len(dims) or any(not 0 <= d < limit for d in dims):
            fail(f"{field} must be distinct and in [0, {limit})")
        if field not in (numbers._fields[2], numbers._fields[4]) and list(dims) != sorted(dims):
            fail(f"{field} must be sorted")
    _, dropped, index_map, batching_dims, index_batching = numbers
    if set(dropped) & set(batching_dims) or set(index_map) & set(batching_dims):
        fail("batching dims can be neither indexed nor collapsed")
    if len(batching_dims) != len(index_batching) or any(
        x.shape[d] != indices.shape[e] for d, e in zip(batching_dims, index_batching, strict=False)
    ):
        fail("batching dims of operand and indices must pair up, with equal lengths")
    if len(sizes) != x.ndim or any(not 0 <= m <= n for m, n in zip(sizes, x.shape, strict=False)):
        fail("windows must fit into the operand")
    if any(sizes[d] > 1 for d in (*dropped, *batching_dims)):
        fail("windows must have length 1 along collapsed and batching dims")
    if len(numbers[0]) != x.ndim - len(dropped) - len(batching_dims):
        fail(f"{numbers._fields[0]} must name one axis for each axis of a window")


def host_indices(indices: Any) -> Any:
    """Indices as int64; values above its range, which are out of bounds anywhere, become the largest."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    return indices.astype(np.int64, copy=False)


def place_of_window(
    shape: Sequence[int], sizes: Sequence[int], index: Any, index_map: Sequence[int], mode: GatherScatterMode
) -> tuple[slice, ...] | None:
    """Where a single window is, moved inside with 'clip'; else None if it is not inside."""
    starts = [0] * len(shape)
    for d, i in zip(index_map, index.tolist(), strict=True):
        starts[d] = i
    last = [n - m for n, m in zip(shape, sizes, strict=True)]
    if mode is GatherScatterMode.CLIP:
        starts = [min(max(i, 0), limit) for i, limit in zip(starts, last, strict=True)]
    elif not all(0 <= i <= limit for i, limit in zip(starts, last, strict=True)):
        return None
    return tuple(slice(i, i + n) for i, n in zip(starts, sizes, strict=True))


def index_arrays(
    windows: Windows, shape: Sequence[int], indices: Any, sizes: Sequence[int], flat: bool
) -> tuple[Any, list[Any], list[int], list[int], tuple[int, ...]]:
    """NumPy's form of a gather or scatter.

    Returns which index vectors are in bounds (a scalar if all are); clamped index arrays for the operand's axes
    `indexed`, which broadcast to (positions..., windows...); those axes; the axes `whole`, that all windows run along
    entirely (none with `flat`); and the shape of the positions.
    """
    starts = host_indices(indices)
    positions = starts.shape[:-1]
    limits = [shape[d] - sizes[d] for d in windows.index_map]
    inside = np.True_
    for k, limit in enumerate(limits):  # along the long axes
        at = starts[..., k]
        if at.size and not 0 <= np.minimum.reduce(at, axis=None) <= np.maximum.reduce(at, axis=None) <= limit:
            inside = inside & (at >= 0) & (at <= limit)
    if inside is not np.True_:
        starts = np.clip(starts, 0, np.array(limits, np.int64))
    kept = windows.kept(len(shape))
    # An axis that windows cover entirely can only start at 0.
    whole = [] if flat else [d for d in kept if sizes[d] == shape[d]]
    indexed = [d for d in range(len(shape)) if d not in whole]
    inner = [d for d in kept if d not in whole]
    arrays = []
    for d in indexed:
        if d in windows.index_map:
            at = starts[..., windows.index_map.index(d)]
        else:
            axis = dict(windows.batching).get(d)
            at = np.zeros((), np.int64)
            if axis is not None:
                lengths = [1] * len(positions)
                lengths[axis] = positions[axis]
                at = np.arange(positions[axis]).reshape(lengths)
        at = at.reshape(at.shape + (1,) * len(inner)) if at.ndim else at
        if d in inner:
            lengths = [1] * len(inner)
            lengths[inner.index(d)] = sizes[d]
            at = at + np.arange(sizes[d]).reshape(lengths)
        arrays.append(at)
    return inside, arrays, indexed, whole, positions


def spread(x: Any, shape: tuple[int, ...]) -> Any:
    """`numpy.broadcast_to`, which takes a while even if there is nothing to do."""
    return x if x.shape == shape else np.broadcast_to(x, shape)


def _fill_value(fill_value: Any, dtype: np.dtype) -> Any:
    """The value for windows out of bounds; by default NaN, the extreme of an integer type, or True."""
    if fill_value is not None:
        return np.asarray(fill_value, dtype)[()]
    if dtypes.issubdtype(dtype, np.inexact):
        return np.asarray(np.nan, dtype)[()]
    if dtype == np.dtype(bool):
        return np.True_
    info = dtypes.iinfo(dtype)
    return np.asarray(info.max if info.min == 0 else info.min, dtype)[()]


@functools.lru_cache(4096)
def _gather_types(
    x: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> ShapedArray:
    ndim = indices.ndim - 1 + len(dimension_numbers.offset_dims)
    check_windows("gather", dimension_numbers, x, indices, slice_sizes, ndim)
    windows = Windows.of(dimension_numbers)
    window, positions = iter([slice_sizes[d] for d in windows.kept(x.ndim)]), iter(indices.shape[:-1])
    return x.update(shape=[next(window if d in windows.window_dims else positions) for d in range(ndim)])


def _gather_host(
    x: Any,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> Any:
    x = np.asarray(x)
    windows = Windows.of(dimension_numbers)
    if indices.ndim == 1:
        how = mode if mode is GatherScatterMode.FILL_OR_DROP else GatherScatterMode.CLIP
        place = place_of_window(x.shape, slice_sizes, indices, windows.index_map, how)
        window = [slice_sizes[d] for d in windows.kept(x.ndim)]
        return np.full(window, _fill_value(fill_value, x.dtype)) if place is None else x[place].reshape(window)
    inside, arrays, indexed, whole, positions = index_arrays(windows, x.shape, indices, slice_sizes, False)
    fill = mode is GatherScatterMode.FILL_OR_DROP and not inside.all()
    inner = [d for d in windows.kept(x.ndim) if d not in whole]
    shape = (*positions, *(slice_sizes[d] for d in inner), *(x.shape[d] for d in whole))
    if not math.prod(shape):
        out = np.zeros(shape, x.dtype)
    else:
        out = np.transpose(x, (*indexed, *whole))
        if len(arrays) == 1 and out.flags.c_contiguous:
            out = out.take(arrays[0], 0, mode="clip")  # which are inside; faster than an index
        elif indexed:
            out = out[tuple(arrays)]
        out = spread(out, shape)
    if fill:
        inside = inside.reshape(inside.shape + (1,) * (out.ndim - inside.ndim))
        out = np.where(inside, out, _fill_value(fill_value, x.dtype))
    # From (positions, inner, whole) to the order of the result.
    order = dict(zip([*inner, *whole], range(len(positions), out.ndim), strict=True))
    window_order = iter([order[d] for d in windows.kept(x.ndim)])
    position_order = iter(range(len(positions)))
    return out.transpose([next(window_order if d in windows.window_dims else position_order) for d in range(out.ndim)])


def _gather_jvp(primals: Sequence[Any], ts: Sequence[Any], *, fill_value: Any, **params: Any) -> Any:
    (x, indices), (t, _) = primals, ts
    out = gather_p.bind(x, indices, fill_value=fill_value, **params)
    if type(t) is Zero:
        return out, zero_of(out)
    return out, gather_p.bind(t, indices, fill_value=0, **params)


def _gather_batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
    (x, indices), (dx, di) = args, dims
    n = params["dimension_numbers"]
    sizes = params["slice_sizes"]
    if dx is not None:
        x = batching.move_to(x, dx, axis.size)
    if di is not None:
        indices = batching.move_to(indices, di, axis.size)
    after = n._make(tuple(d + 1 for d in dims) for dims in n)  # all axes behind the mapped one
    if di is None:
        numbers = after._replace(
            offset_dims=(0, *after.offset_dims), start_indices_batching_dims=n.start_indices_batching_dims
        )
        sizes = (axis.size, *sizes)
    elif dx is None:
        numbers = n._replace(
            offset_dims=after.offset_dims, start_indices_batching_dims=after.start_indices_batching_dims
        )
    else:
        numbers = after._replace(
            operand_batching_dims=(0, *after.operand_batching_dims),
            start_indices_batching_dims=(0, *after.start_indices_batching_dims),
        )
        sizes = (min(1, axis.size), *sizes)
        params["indices_are_sorted"] = False
    return gather_p.bind(x, indices, **{**params, "dimension_numbers": numbers, "slice_sizes": sizes}), 0


def widen_index(ctx: Context, indices: Value) -> Value:
    """Indices in a type that holds every length: XLA computes bounds in the type it is given."""
    dtype = indices.dtype
    if dtype == np.uint64:
        indices = ctx.op("minimum", [indices, ctx.full(indices.shape, 2**63 - 1, dtype)], indices.aval)
    if dtype in (np.int32, np.int64):
        return indices
    small = dtypes.itemsize_bits(dtype) < 32
    return ctx.convert(indices, np.dtype(np.int32 if small else np.int64))


def index_limits(ctx: Context, indices: Value, windows: Windows, shape: Sequence[int], sizes: Sequence[int]) -> Value:
    """The last position of a window along each axis it is positioned on, in the shape of `indices`."""
    limits = [shape[d] - sizes[d] for d in windows.index_map]
    return ctx.broadcast(ctx.constant(np.array(limits, indices.dtype)), indices.shape, [len(indices.shape) - 1])


def _gather_lower(
    ctx: Context,
    x: Value,
    indices: Value,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> Value:
    if not ctx.out.size:
        return ctx.full(ctx.out.shape, 0, x.dtype)
    n = dimension_numbers
    indices = widen_index(ctx, indices)
    rank = len(indices.shape)
    attributes = (
        f"dimension_numbers = #stablehlo.gather<offset_dims = {list(n.offset_dims)}, "
        f"collapsed_slice_dims = {list(n.collapsed_slice_dims)}, "
        f"operand_batching_dims = {list(n.operand_batching_dims)}, "
        f"start_indices_batching_dims = {list(n.start_indices_batching_dims)}, "
        f"start_index_map = {list(n.start_index_map)}, index_vector_dim = {rank - 1}>, "
        f"slice_sizes = {i64s(slice_sizes)}, indices_are_sorted = {str(indices_are_sorted).lower()}"
    )
    out = ctx.op("gather", [x, indices], ctx.out, attributes)
    if mode is not GatherScatterMode.FILL_OR_DROP or not n.start_index_map:
        return out
    limits = index_limits(ctx, indices, Windows.of(n), x.shape, slice_sizes)
    mask = ShapedArray(indices.shape, bool)
    compare = "comparison_direction = #stablehlo<comparison_direction {}>"
    low = ctx.op("compare", [indices, ctx.full(indices.shape, 0, indices.dtype)], mask, compare.format("GE"))
    high = ctx.op("compare", [indices, limits], mask, compare.format("LE"))
    inside = ctx.op("and", [low, high], mask)
    scalar = ShapedArray((), bool)
    both = ctx.region(lambda ctx, a, b: [ctx.op("and", [a, b], scalar)], [scalar, scalar])
    true = ctx.constant(True, bool)
    inside = ctx.op(
        "reduce",
        [inside, true],
        mask.update(shape=indices.shape[:-1]),
        f"dimensions = {i64s([rank - 1])}",
        [both],
    )
    positions = [d for d in range(ctx.out.ndim) if d not in n.offset_dims]
    fill = ctx.full(ctx.out.shape, _fill_value(fill_value, x.dtype), x.dtype)
    return ctx.op("select", [ctx.broadcast(inside, ctx.out.shape, positions), out, fill], ctx.out)


gather_p = Primitive("gather")
gather_p.abstract_eval = _gather_types
gather_p.host = _gather_host
gather_p.jvp = _gather_jvp
gather_p.jet = linear(gather_p, fill_value=0)
gather_p.batch = _gather_batch
gather_p.lower = _gather_lower


@api_boundary
def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Any:
    """Collect windows of `operand` at the positions in `start_indices`.

    Parameters
    ----------
    operand : array
    start_indices : integer array
        Index vectors along the last axis: component k is the start along axis ``start_index_map[k]``.
    dimension_numbers : GatherDimensionNumbers
    slice_sizes : ints
        The length of a window along each axis of `operand`.
    unique_indices, indices_are_sorted : bool
        Promises that XLA may use; if they don't hold, the result is undefined.
    mode : GatherScatterMode or its name
        What becomes of windows out of bounds; by default they are filled.
    fill_value : scalar
        By default NaN, the least integer (unsigned: the largest), or True.

    Raises TypeError for dimension numbers that don't fit. Indexing (``x[i, j]``) is the convenient way.

    Examples
    --------
    >>> from xform import lax
    >>> numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(np.arange(6).reshape(3, 2), np.array([[2], [0]]), numbers, (1, 2)).tolist()
    [[4, 5], [0, 1]]
    """
    numbers = GatherDimensionNumbers(*(tuple(map(int, dims)) for dims in dimension_numbers))
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=numbers,
        slice_sizes=tuple(map(int, slice_sizes)),
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
        fill_value=fill_scalar(fill_value, get_aval(operand).dtype),
    )


def fill_scalar(fill_value: Any, dtype: np.dtype) -> Any:
    """A fill value as a hashable scalar of `dtype`."""
    if fill_value is None:
        return None
    if get_aval(fill_value).shape:
        raise TypeError(f"lax.gather: fill_value must be a scalar, got {get_aval(fill_value).str_short()}")
    return np.asarray(fill_value).astype(dtype)[()]
