"""Contiguous parts of arrays: `slice`, `dynamic_slice`, `dynamic_update_slice`, `pad`, `concatenate`.

May import: `lax.gather`, `lax.scatter`, the elementwise modules.
"""

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, get_aval, host_value
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive, Tracer
from xform.interpreters import batching
from xform.interpreters.lowering import Context, Value, i64s
from xform.interpreters.tangents import Zero, instantiate, is_linear, zero_of
from xform.lax import families
from xform.lax.arithmetic import add_p, rem_p
from xform.lax.comparison import gt_p, lt_p, select_n_p
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, gather, gather_p, widen_index
from xform.lax.scatter import ScatterDimensionNumbers, scatter_p
from xform.lax.shapes import canonical_axes, convert, full, linear_unary, reshape

# slice


def _slice_types(x: ShapedArray, *, start_indices: Any, limit_indices: Any, strides: Any) -> ShapedArray:
    strides_ = strides or (1,) * x.ndim
    shape = []
    if not len(start_indices) == len(limit_indices) == len(strides_) == x.ndim:
        raise TypeError(
            f"lax.slice: operand {x.str_short()} needs {x.ndim} start indices, limit indices and strides, got "
            f"{start_indices}, {limit_indices} and {strides}"
        )
    for n, start, limit, stride in zip(x.shape, start_indices, limit_indices, strides_, strict=True):
        if not 0 <= start <= limit <= n or stride < 1:
            raise TypeError(
                f"lax.slice: 0 <= start <= limit <= length and stride >= 1 must hold on every axis, got "
                f"start_indices={start_indices}, limit_indices={limit_indices}, strides={strides} for {x.str_short()}"
            )
        shape.append((limit - start + stride - 1) // stride)
    return x.update(shape=shape)


def _slice_host(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    strides = strides or (1,) * x.ndim
    return x[tuple(map(builtins.slice, start_indices, limit_indices, strides))]


def _slice_transpose(ct: Any, x: ShapedArray, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    config = []
    for n, m, start, stride in zip(x.shape, ct.shape, start_indices, strides or (1,) * x.ndim, strict=True):
        last = start + (m - 1) * stride + 1 if m else start
        config.append((start, n - last, stride - 1))
    return pad_p.bind(ct, _zero(ct), padding_config=tuple(config))


def _slice_batch(axis: Any, x: Any, dim: int, *, start_indices: Any, limit_indices: Any, strides: Any) -> Any:
    def insert(values: tuple[int, ...], value: int) -> tuple[int, ...]:
        return (*values[:dim], value, *values[dim:])

    out = slice_p.bind(
        x,
        start_indices=insert(start_indices, 0),
        limit_indices=insert(limit_indices, axis.size),
        strides=strides and insert(strides, 1),
    )
    return out, dim


slice_p = linear_unary(
    "slice",
    _slice_types,
    _slice_host,
    _slice_transpose,
    _slice_batch,
    lambda ctx, x, *, start_indices, limit_indices, strides: ctx.op(
        "slice",
        [x],
        ctx.out,
        f"start_indices = {i64s(start_indices)}, limit_indices = {i64s(limit_indices)}, "
        f"strides = {i64s(strides or (1,) * len(x.shape))}",
    ),
)


def _zero(x: Any) -> Any:
    return np.zeros((), get_aval(x).dtype)[()]


def static_slice(x: Any, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None) -> Any:
    """`slice` of ints that are known to fit (internal, no checks)."""
    if strides is not None and all(s == 1 for s in strides):
        strides = None
    return slice_p.bind(
        x,
        start_indices=tuple(starts),
        limit_indices=tuple(limits),
        strides=None if strides is None else tuple(strides),
    )


@api_boundary
def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """The part of an array between two corners, all known when tracing.

    Parameters
    ----------
    operand : array of rank n
    start_indices, limit_indices : n ints
        First element along each axis, and the end, which is excluded; ``0 <= start <= limit <= length``.
    strides : n positive ints, optional

    Raises TypeError for other bounds: they don't wrap or clip as Python's do.

    Examples
    --------
    >>> from xform import lax
    >>> lax.slice(np.arange(12).reshape(3, 4), (1, 0), (3, 4), (1, 2)).tolist()
    [[4, 6], [8, 10]]
    """
    starts, limits = tuple(map(operator.index, start_indices)), tuple(map(operator.index, limit_indices))
    return static_slice(operand, starts, limits, strides and tuple(map(operator.index, strides)))


# dynamic_slice(operand, *start_indices): the starts are integer scalars, clamped so that the slice fits.


def _check_dynamic(name: str, x: ShapedArray, sizes: tuple[int, ...], starts: Sequence[ShapedArray]) -> None:
    if len(sizes) != x.ndim or len(starts) != x.ndim:
        raise TypeError(
            f"lax.{name}: operand {x.str_short()} needs {x.ndim} start indices and as many sizes, got "
            f"{len(starts)} start indices and sizes {sizes}"
        )
    if any(not 0 <= m <= n for m, n in zip(sizes, x.shape, strict=True)):
        raise TypeError(f"lax.{name}: a slice of shape {sizes} doesn't fit into operand {x.str_short()}")
    if any(s.shape or not dtypes.issubdtype(s.dtype, np.integer) or s.dtype != starts[0].dtype for s in starts):
        raise TypeError(
            f"lax.{name}: start indices must be integer scalars of one dtype, got "
            f"{', '.join(s.str_short() for s in starts)}"
        )


def _dynamic_slice_types(x: ShapedArray, *starts: ShapedArray, slice_sizes: tuple[int, ...]) -> ShapedArray:
    _check_dynamic("dynamic_slice", x, slice_sizes, starts)
    return x.update(shape=slice_sizes)


def _window(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Any]) -> tuple[Any, ...]:
    """NumPy's index of the window of `sizes` that starts at the clamped `starts`."""
    clamped = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, shape, sizes, strict=True)]
    return tuple([builtins.slice(s, s + m) for s, m in zip(clamped, sizes, strict=True)])


def _dynamic_slice_host(x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> Any:
    return x[_window(x.shape, slice_sizes, starts)]


def _dynamic_slice_jvp(primals: Sequence[Any], ts: Sequence[Any], *, slice_sizes: tuple[int, ...]) -> Any:
    out = dynamic_slice_p.bind(*primals, slice_sizes=slice_sizes)
    if type(ts[0]) is Zero:
        return out, zero_of(out)
    return out, dynamic_slice_p.bind(ts[0], *primals[1:], slice_sizes=slice_sizes)


def _dynamic_slice_transpose(ct: Any, x: Any, *starts: Any, slice_sizes: tuple[int, ...]) -> list[Any]:
    zeros = full(x.aval.shape, _zero(ct))
    return [dynamic_update_slice_p.bind(zeros, ct, *starts), *[None] * len(starts)]


def _dynamic_slice_batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, slice_sizes: tuple[int, ...]) -> Any:
    (x, *starts), (d, *start_dims) = args, dims
    if all(s is None for s in start_dims):
        starts.insert(d, np.zeros((), get_aval(starts[0]).dtype)[()] if starts else np.int64(0))
        return dynamic_slice_p.bind(x, *starts, slice_sizes=(*slice_sizes[:d], axis.size, *slice_sizes[d:])), d
    ndim = len(slice_sizes)
    every = tuple(range(ndim))
    numbers = GatherDimensionNumbers(offset_dims=every, collapsed_slice_dims=(), start_index_map=every)
    index, index_dim = _batched_starts(axis, starts, start_dims)
    params = dict(
        dimension_numbers=numbers,
        slice_sizes=slice_sizes,
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )
    return gather_p.batch(axis, (x, index), (d, index_dim), **params)


def _batched_starts(axis: Any, starts: Sequence[Any], dims: Sequence[Any]) -> tuple[Any, int]:
    """Start indices of which some are mapped, as one array with the mapped axis first."""
    columns = [reshape(batching.move_to(s, d, axis.size), (axis.size, 1)) for s, d in zip(starts, dims, strict=True)]
    return concatenate_p.bind(*columns, dimension=1), 0


def _dynamic_slice_lower(ctx: Context, x: Value, *starts: Value, slice_sizes: tuple[int, ...]) -> Value:
    wide = [widen_index(ctx, s) for s in starts]
    return ctx.op("dynamic_slice", [x, *wide], ctx.out, f"slice_sizes = {i64s(slice_sizes)}")


dynamic_slice_p = Primitive("dynamic_slice")
dynamic_slice_p.abstract_eval = _dynamic_slice_types
dynamic_slice_p.host = _dynamic_slice_host
dynamic_slice_p.jvp = _dynamic_slice_jvp
dynamic_slice_p.transpose = _dynamic_slice_transpose
dynamic_slice_p.batch = _dynamic_slice_batch
dynamic_slice_p.lower = _dynamic_slice_lower


def start_index_scalars(
    name: str, shape: Sequence[int], starts: Any, allow_negative: bool | Sequence[bool] = True
) -> list[Any]:
    """Start indices as integer scalars of one dtype; negative ones count from the end where allowed."""
    if isinstance(starts, Tracer) or not isinstance(starts, Sequence):
        aval = get_aval(starts)
        if aval.ndim != 1:
            raise TypeError(f"lax.{name}: start_indices must be scalars or one array of rank 1, got {aval.str_short()}")
        starts = [index_in_dim(starts, i, keepdims=False) for i in range(aval.shape[0])]
    if len(starts) != len(shape):
        raise TypeError(
            f"lax.{name}: {len(shape)} start indices are needed for shape {tuple(shape)}, got {len(starts)}"
        )
    wrap = [allow_negative] * len(shape) if isinstance(allow_negative, bool) else list(allow_negative)
    for s in starts:
        if type(s) is not int:
            aval = get_aval(s)
            if aval.ndim or dtypes.kinds.get(aval.dtype, "-") not in "iu":
                raise TypeError(f"lax.{name}: start indices must be integer scalars, got {aval.str_short()}")
    return of_one_dtype([wrap_index(s, n, w) for s, n, w in zip(starts, shape, wrap, strict=True)])


_INT32 = np.dtype(np.int32)


def of_one_dtype(indices: Sequence[Any]) -> list[Any]:
    """Ints, and scalars from `wrap_index`, in one dtype: int32, which accelerators like, if all traced ones are."""
    traced = {s.dtype for s in indices if isinstance(s, Tracer)}
    dtype = _INT32 if traced == {_INT32} else dtypes.default_int()
    bound = 1 << (8 * dtype.itemsize - 1)
    return [
        convert(s, dtype, s.weak_type) if isinstance(s, Tracer) else dtype.type(min(max(s, -bound), bound - 1))
        for s in indices
    ]


def wrap_index(index: Any, n: int, wrap: bool) -> Any:
    """Indices along an axis of length n, the negative ones counted from its end if `wrap`.

    Traced ones become int32, or the default integer if they were wider; others, which must be scalars, become ints.
    """
    if not isinstance(index, Tracer):
        index = int(host_value(index))
        return index + n if wrap and index < 0 else index
    dtype, default = index.dtype, dtypes.default_int()
    signed = dtypes.kinds[dtype] == "i"
    if not signed and dtype.itemsize >= default.itemsize:
        most = dtype.type((1 << (8 * default.itemsize - 1)) - 1)
        index = select_n_p.bind(gt_p.bind(index, most), index, most)
    narrow = dtype.itemsize < 4 or (dtype.itemsize == 4 and signed)
    index = convert(index, _INT32 if narrow and n < 2**31 else default, index.weak_type)
    if not wrap or not signed:
        return index
    scalar = index.dtype.type
    return select_n_p.bind(lt_p.bind(index, scalar(0)), index, add_p.bind(index, scalar(n)))


@api_boundary
def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """The part of an array of known size at a position that may be traced.

    Parameters
    ----------
    operand : array of rank n
    start_indices : n integer scalars, or an integer array of shape (n,)
        Negative ones count from the end. A slice that would overrun the array is moved back inside.
    slice_sizes : n ints
    allow_negative_indices : bool, or one per axis
        Where False, negative indices are clamped to 0.

    Raises TypeError for sizes that don't fit into the operand, and for indices that are not integer scalars.

    Examples
    --------
    >>> from xform import lax
    >>> lax.dynamic_slice(np.arange(5), (-2,), (2,)).tolist(), lax.dynamic_slice(np.arange(5), (4,), (3,)).tolist()
    ([3, 4], [2, 3, 4])
    """
    starts = start_index_scalars("dynamic_slice", get_aval(operand).shape, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=tuple(map(operator.index, slice_sizes)))


# dynamic_update_slice(operand, update, *start_indices)


def _update_types(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    families.check_same_dtype("dynamic_update_slice", [x, update])
    _check_dynamic("dynamic_update_slice", x, update.shape, starts)
    return x.update(weak_type=x.weak_type and update.weak_type)


def _update_host(x: Any, update: Any, *starts: Any) -> Any:
    out = np.array(x)
    out[_window(x.shape, update.shape, starts)] = update
    return out


def _update_jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    out = dynamic_update_slice_p.bind(*primals)
    if type(ts[0]) is Zero and type(ts[1]) is Zero:
        return out, zero_of(out)
    return out, dynamic_update_slice_p.bind(instantiate(ts[0]), instantiate(ts[1]), *primals[2:])


def _update_transpose(ct: Any, x: Any, update: Any, *starts: Any) -> list[Any]:
    ct_x = dynamic_update_slice_p.bind(ct, full(update.aval.shape, _zero(ct)), *starts) if is_linear(x) else None
    ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=update.aval.shape) if is_linear(update) else None
    return [ct_x, ct_update, *[None] * len(starts)]


def _update_batch(axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
    (x, update, *starts), (dx, du, *start_dims) = args, dims
    x, update = batching.move_to(x, dx, axis.size), batching.move_to(update, du, axis.size)
    if all(s is None for s in start_dims):
        zero = np.zeros((), get_aval(starts[0]).dtype)[()] if starts else np.int64(0)
        return dynamic_update_slice_p.bind(x, update, zero, *starts), 0
    every = tuple(range(len(starts)))
    numbers = ScatterDimensionNumbers(
        update_window_dims=every, inserted_window_dims=(), scatter_dims_to_operand_dims=every
    )
    index, index_dim = _batched_starts(axis, starts, start_dims)
    params = dict(dimension_numbers=numbers, indices_are_sorted=True, unique_indices=True, mode=GatherScatterMode.CLIP)
    return scatter_p.batch(axis, (x, index, update), (0, index_dim, 0), **params)


dynamic_update_slice_p = Primitive("dynamic_update_slice")
dynamic_update_slice_p.abstract_eval = _update_types
dynamic_update_slice_p.host = _update_host
dynamic_update_slice_p.jvp = _update_jvp
dynamic_update_slice_p.transpose = _update_transpose
dynamic_update_slice_p.batch = _update_batch
dynamic_update_slice_p.lower = lambda ctx, x, update, *starts: ctx.op(
    "dynamic_update_slice", [x, update, *(widen_index(ctx, s) for s in starts)], ctx.out
)


@api_boundary
def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: bool | Sequence[bool] = True
) -> Any:
    """A copy of `operand` in which `update` stands at a position that may be traced.

    Parameters
    ----------
    operand, update : arrays of one rank n and dtype; `update` fits into `operand`
    start_indices : n integer scalars, or an integer array of shape (n,)
        Negative ones count from the end. An update that would overrun the array is moved back inside.

    Examples
    --------
    >>> from xform import lax
    >>> lax.dynamic_update_slice(np.zeros(4), np.ones(2), (3,)).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    starts = start_index_scalars("dynamic_update_slice", get_aval(operand).shape, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(*families.as_operands("dynamic_update_slice", operand, update), *starts)


# pad(operand, padding_value): padding_config holds (low, high, interior) per axis; negative low and high crop.


def _pad_types(x: ShapedArray, value: ShapedArray, *, padding_config: Any) -> ShapedArray:
    families.check_same_dtype("pad", [x, value])
    if value.ndim:
        raise TypeError(f"lax.pad: the padding value must be a scalar, got {value.str_short()}")
    if len(padding_config) != x.ndim or any(inner < 0 for _, _, inner in padding_config):
        raise ValueError(
            f"lax.pad: operand {x.str_short()} needs {x.ndim} triples (low, high, interior) with interior >= 0, "
            f"got {padding_config}"
        )
    shape = [
        low + high + n + max(n - 1, 0) * inner for n, (low, high, inner) in zip(x.shape, padding_config, strict=True)
    ]
    if any(n < 0 for n in shape):
        raise ValueError(
            f"lax.pad: padding_config {padding_config} crops {x.str_short()} to less than nothing: {tuple(shape)}"
        )
    return x.update(shape=shape, weak_type=x.weak_type and value.weak_type)


def _pad_host(x: Any, value: Any, *, padding_config: Any) -> Any:
    shape, source, target = [], [], []
    for n, (low, high, inner) in zip(np.shape(x), padding_config, strict=True):
        size, step = low + high + n + max(n - 1, 0) * inner, inner + 1
        # Element k lands on low + k * step; first and one past the last that land inside.
        first = max(0, -(low // step))
        last = max(first, min(n, (size - 1 - low) // step + 1))
        at = low + first * step
        shape.append(size)
        source.append(builtins.slice(first, last))
        target.append(builtins.slice(at, at + (last - first - 1) * step + 1 if last > first else at, step))
    out = np.full(shape, value, x.dtype)
    out[tuple(target)] = x[tuple(source)]
    return out


def _pad_jvp(primals: Sequence[Any], ts: Sequence[Any], *, padding_config: Any) -> Any:
    out = pad_p.bind(*primals, padding_config=padding_config)
    if type(ts[0]) is Zero and type(ts[1]) is Zero:
        return out, zero_of(out)
    value = _zero(out) if type(ts[1]) is Zero else ts[1]
    return out, pad_p.bind(instantiate(ts[0]), value, padding_config=padding_config)


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: Any) -> list[Any]:
    ct_x = ct_value = None
    if is_linear(x):
        crop = tuple((-low, -high, 0) for low, high, _ in padding_config)
        ct_x = pad_p.bind(ct, _zero(ct), padding_config=crop)
        if any(inner for _, _, inner in padding_config):
            strides = tuple(inner + 1 for _, _, inner in padding_config)
            ct_x = static_slice(ct_x, (0,) * ct.ndim, ct_x.shape, strides)
    if is_linear(value):
        padded = pad_p.bind(full(x.aval.shape, np.False_), np.True_, padding_config=padding_config)
        ct_value = families.Hooks.reduce_sum(select_n_p.bind(padded, _zero(ct), ct), tuple(range(ct.ndim)))
    return [ct_x, ct_value]


def _pad_batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, padding_config: Any) -> Any:
    (x, value), (d, value_dim) = args, dims
    if value_dim is None:
        return pad_p.bind(x, value, padding_config=(*padding_config[:d], (0, 0, 0), *padding_config[d:])), d
    x = batching.move_to(x, d, axis.size)
    config = ((0, 0, 0), *padding_config)
    out = pad_p.bind(x, _zero(x), padding_config=config)
    padded = pad_p.bind(full(get_aval(x).shape, np.False_), np.True_, padding_config=config)
    return select_n_p.bind(padded, out, families.Hooks.broadcast_in_dim(value, out.shape, (0,))), 0


def _pad_lower(ctx: Context, x: Value, value: Value, *, padding_config: Any) -> Value:
    low, high, inner = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    attributes = f"edge_padding_low = {i64s(low)}, edge_padding_high = {i64s(high)}, interior_padding = {i64s(inner)}"
    return ctx.op("pad", [x, value], ctx.out, attributes)


pad_p = Primitive("pad")
pad_p.abstract_eval = _pad_types
pad_p.host = _pad_host
pad_p.jvp = _pad_jvp
pad_p.transpose = _pad_transpose
pad_p.batch = _pad_batch
pad_p.lower = _pad_lower


@api_boundary
def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """Add elements at both ends of each axis and between its elements; negative amounts at the ends crop.

    Parameters
    ----------
    operand : array of rank n
    padding_value : scalar of the operand's dtype
    padding_config : n triples (low, high, interior)

    Examples
    --------
    >>> from xform import lax
    >>> lax.pad(np.arange(1, 4), 0, [(-1, 2, 1)]).tolist()
    [0, 2, 0, 3, 0, 0]
    """
    config = tuple(tuple(map(operator.index, axis)) for axis in padding_config)
    if any(len(axis) != 3 for axis in config):
        raise ValueError(f"lax.pad: padding_config takes triples (low, high, interior), got {padding_config}")
    return pad_p.bind(*families.as_operands("pad", operand, padding_value), padding_config=config)


# concatenate


def _concatenate_types(*operands: ShapedArray, dimension: int) -> ShapedArray:
    first = operands[0]
    families.check_same_dtype("concatenate", operands)
    shapes = [x.shape[:dimension] + x.shape[dimension + 1 :] for x in operands]
    if any(x.ndim != first.ndim for x in operands) or any(s != shapes[0] for s in shapes):
        raise TypeError(
            f"lax.concatenate: shapes must agree except along dimension {dimension}, got "
            f"{', '.join(x.str_short() for x in operands)}"
        )
    if not 0 <= dimension < first.ndim:
        raise ValueError(f"lax.concatenate: dimension {dimension} is out of range for {first.str_short()}")
    length = sum(x.shape[dimension] for x in operands)
    shape = (*first.shape[:dimension], length, *first.shape[dimension + 1 :])
    return ShapedArray(shape, first.dtype, all(x.weak_type for x in operands))


def _concatenate_jvp(primals: Sequence[Any], ts: Sequence[Any], *, dimension: int) -> Any:
    out = concatenate_p.bind(*primals, dimension=dimension)
    if all(type(t) is Zero for t in ts):
        return out, zero_of(out)
    return out, concatenate_p.bind(*[instantiate(t) for t in ts], dimension=dimension)


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list[Any]:
    out: list[Any] = []
    starts, limits, stop = [0] * ct.ndim, list(ct.shape), 0
    for x in operands:
        starts[dimension], stop = stop, stop + get_aval_of(x).shape[dimension]
        limits[dimension] = stop
        out.append(static_slice(ct, starts, limits) if is_linear(x) else None)
    return out


def get_aval_of(x: Any) -> ShapedArray:
    """The aval of an operand of a transpose rule, linear or not."""
    return x.aval if is_linear(x) else get_aval(x)


def _concatenate_batch(axis: Any, operands: Sequence[Any], dims: Sequence[Any], *, dimension: int) -> Any:
    target = next(d for d in dims if d is not None)
    moved = [batching.move_to(x, d, axis.size, target) for x, d in zip(operands, dims, strict=True)]
    return concatenate_p.bind(*moved, dimension=dimension + (dimension >= target)), target


concatenate_p = Primitive("concatenate")
concatenate_p.abstract_eval = _concatenate_types
concatenate_p.host = lambda *operands, dimension: np.concatenate(operands, dimension)
concatenate_p.jvp = _concatenate_jvp
concatenate_p.transpose = _concatenate_transpose
concatenate_p.batch = _concatenate_batch
concatenate_p.lower = lambda ctx, *operands, dimension: ctx.op(
    "concatenate", operands, ctx.out, f"dimension = {dimension} : i64"
)


@api_boundary
def concatenate(operands: Sequence[Any], dimension: int) -> Any:
    """Join arrays of one dtype along an existing axis.

    Raises ValueError for no operands or a dimension out of range, TypeError for shapes that differ elsewhere.

    Examples
    --------
    >>> from xform import lax
    >>> lax.concatenate([np.zeros((2, 1)), np.ones((2, 2))], 1).tolist()
    [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    operands = list(operands)
    if not operands:
        raise ValueError("lax.concatenate: at least one operand is needed, got none")
    if len(operands) == 1 and isinstance(operands[0], Array) and 0 <= dimension < operands[0].ndim:
        return operands[0]
    return concatenate_p.bind(*operands, dimension=operator.index(dimension))


# The same along one axis.


def _axis(name: str, x: Any, axis: int) -> tuple[int, tuple[int, ...]]:
    (axis,) = canonical_axes(name, x, axis)
    return axis, get_aval(x).shape


def _replaced(values: Sequence[Any], axis: int, value: Any) -> list[Any]:
    out = list(values)
    out[axis] = value
    return out


@api_boundary
def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    """``operand[start:limit:stride]`` along one axis, as Python slices: negative bounds count from the end."""
    axis, shape = _axis("slice_in_dim", operand, axis)
    n = shape[axis]
    start = 0 if start_index is None else operator.index(start_index)
    limit = n if limit_index is None else operator.index(limit_index)
    start, limit = start + n if start < 0 else start, limit + n if limit < 0 else limit
    return static_slice(
        operand,
        _replaced([0] * len(shape), axis, start),
        _replaced(shape, axis, limit),
        _replaced([1] * len(shape), axis, operator.index(stride)),
    )


@api_boundary
def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """``operand[index]`` along one axis, which stays, with length 1, unless `keepdims` is False.

    Raises IndexError when the index, which must be known, is out of range.
    """
    axis, shape = _axis("index_in_dim", operand, axis)
    n, index = shape[axis], operator.index(index)
    if not -n <= index < n:
        raise IndexError(f"lax.index_in_dim: index {index} is out of bounds for axis {axis} with size {n}")
    index %= n
    out = static_slice(operand, _replaced([0] * len(shape), axis, index), _replaced(shape, axis, index + 1))
    return out if keepdims else reshape(out, shape[:axis] + shape[axis + 1 :])


@api_boundary
def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Any:
    """`dynamic_slice` along one axis, all of the others.

    Examples
    --------
    >>> from xform import lax
    >>> lax.dynamic_slice_in_dim(np.arange(5), 1, 3).tolist()
    [1, 2, 3]
    """
    axis, shape = _axis("dynamic_slice_in_dim", operand, axis)
    starts = _replaced([0] * len(shape), axis, start_index)
    sizes = _replaced(shape, axis, operator.index(slice_size))
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


@api_boundary
def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Any:
    """`dynamic_slice` of length 1 along one axis, which stays unless `keepdims` is False."""
    axis, shape = _axis("dynamic_index_in_dim", operand, axis)
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else reshape(out, shape[:axis] + shape[axis + 1 :])


@api_boundary
def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """`dynamic_update_slice` along one axis, at 0 along the others."""
    axis, shape = _axis("dynamic_update_slice_in_dim", operand, axis)
    starts = _replaced([0] * len(shape), axis, start_index)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


@api_boundary
def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """Replace the slice of length 1 at `index` along one axis; `update` may lack that axis."""
    axis, shape = _axis("dynamic_update_index_in_dim", operand, axis)
    update_shape = get_aval(update).shape
    if len(update_shape) != len(shape):
        update = reshape(update, (*update_shape[:axis], 1, *update_shape[axis:]))
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)


@api_boundary
def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """The slices ``src[..., idxs[0][k], ..., idxs[1][k], ...]`` for each k, with the indices at `axes`.

    Parameters
    ----------
    src : array
    idxs : integer arrays of one length and dtype, one per axis
        Taken modulo the lengths of the axes.
    axes : increasing ints

    Returns
    -------
    array whose first axis runs over k, followed by the axes of `src` that are not in `axes`

    Examples
    --------
    >>> from xform import lax
    >>> lax.index_take(np.arange(12).reshape(3, 4), [np.array([0, -1])], (1,)).tolist()
    [[0, 4, 8], [3, 7, 11]]
    """
    axes, shape = canonical_axes("index_take", src, axes), get_aval(src).shape
    if len(idxs) != len(axes) or any(get_aval(i).ndim != 1 for i in idxs):
        raise TypeError(f"lax.index_take: one index array of rank 1 is needed for each of the axes {axes}")
    columns = []
    for index, d in zip(idxs, axes, strict=True):
        n = get_aval(index).dtype.type(shape[d])
        index = rem_p.bind(index, n)
        index = select_n_p.bind(lt_p.bind(index, n.dtype.type(0)), index, add_p.bind(index, n))
        columns.append(reshape(index, (index.shape[0], 1)))
    return gather(
        src,
        concatenate(columns, 1),
        GatherDimensionNumbers(tuple(range(1, len(shape) - len(axes) + 1)), axes, axes),
        [1 if d in axes else n for d, n in enumerate(shape)],
    )
