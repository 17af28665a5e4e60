"""Parts of arrays at known places, padding and joining: `slice`, `pad`, `concatenate`, `stack`.

Slices at places that may be traced are in `lax.dynamic_slicing`.

May import: the elementwise modules, `lax.shapes`.
"""

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.jet import locally_linear
from xform.interpreters.lowering import Context, Value, i64s
from xform.interpreters.tangents import Zero, instantiate, is_linear, zero_of
from xform.lax import families
from xform.lax.comparison import select_n_p
from xform.lax.shapes import canonical_axes, full, linear_unary, reshape

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
    if any(at.step > 1 for at in target):
        is_zero = x.dtype.kind in "iuf" and value == 0 and not np.signbit(value)
        out = np.zeros(shape, x.dtype) if is_zero else np.full(shape, value, x.dtype)
        out[tuple(target)] = x[tuple(source)]
        return out
    out = np.empty(shape, x.dtype)
    out[tuple(target)] = x[tuple(source)]
    inner = out
    for axis, (at, size) in enumerate(zip(target, shape, strict=True)):  # the margins of what is not filled yet
        along = inner.swapaxes(0, axis)
        if at.start:
            along[: at.start] = value
        if at.stop < size:
            along[at.stop :] = value
        inner = along[at.start : at.stop].swapaxes(0, axis)
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
    def padded(low: Sequence[int], high: Sequence[int], inner: Sequence[int], out: ShapedArray) -> Value:
        widths = f"edge_padding_low = {i64s(low)}, edge_padding_high = {i64s(high)}, interior_padding = {i64s(inner)}"
        return ctx.op("pad", [x, value], out, widths)

    low, high, inner = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    if not _is_shifted(ctx, padding_config):
        return padded(low, high, inner, ctx.out)
    both = [a + b for a, b in zip(low, high, strict=True)]
    wide = ctx.out.update(shape=tuple(n + w for n, w in zip(ctx.out.shape, both, strict=True)))
    x_wide = ctx.shared(("pad", x.name, value.name, wide.shape), lambda: ctx.once(padded(both, both, inner, wide)))
    limits = [b + n for b, n in zip(high, ctx.out.shape, strict=True)]
    bounds = f"start_indices = {i64s(high)}, limit_indices = {i64s(limits)}, strides = {i64s([1] * len(high))}"
    return ctx.op("slice", [x_wide], ctx.out, bounds)


def _is_shifted(ctx: Context, padding_config: Any) -> bool:
    """Whether an operand is padded in several ways to the same size, as by the derivatives of stencils.

    XLA's loops on CPU ask for each element whether it is padding; such questions for several shifts leave them without
    vector instructions. They are slices of an array that is padded once.
    """
    out = ctx.out
    if not ctx.takes_loops(out) or any(a < 0 or b < 0 or inner for a, b, inner in padding_config):
        return False
    if any(8 * (a + b) > n for n, (a, b, _) in zip(out.shape, padding_config, strict=True)):
        return False
    return sum(e.outvars[0].aval.shape == out.shape for e in ctx.siblings()) > 1


pad_p = Primitive("pad")
pad_p.abstract_eval = _pad_types
pad_p.host = _pad_host
pad_p.jvp = _pad_jvp
pad_p.jet = locally_linear(pad_p)
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
        starts[dimension], stop = stop, stop + _aval_of(x).shape[dimension]
        limits[dimension] = stop
        out.append(static_slice(ct, starts, limits) if is_linear(x) else None)
    return out


def _aval_of(x: Any) -> ShapedArray:
    """The aval of an operand of a transpose rule, linear or not."""
    return x.aval if is_linear(x) else get_aval(x)


def _concatenate_batch(axis: Any, operands: Sequence[Any], dims: Sequence[Any], *, dimension: int) -> Any:
    target = next(d for d in dims if d is not None)
    moved = [batching.move_to(x, d, axis.size, target) for x, d in zip(operands, dims, strict=True)]
    return concatenate_p.bind(*moved, dimension=dimension + (dimension >= target)), target


def _concatenate_lower(ctx: Context, *operands: Value, dimension: int) -> Value:
    out = ctx.out
    if dtypes.itemsize_bits(out.dtype) < 4:  # XLA on CPU dies of them
        byte = np.dtype(np.int8)
        operands, out = tuple(ctx.convert(x, byte) for x in operands), out.update(dtype=byte)
    return ctx.convert(ctx.op("concatenate", operands, out, f"dimension = {dimension} : i64"), ctx.out.dtype)


concatenate_p = Primitive("concatenate")
concatenate_p.abstract_eval = _concatenate_types
concatenate_p.host = lambda *operands, dimension: np.concatenate(operands, dimension)
concatenate_p.jvp = _concatenate_jvp
concatenate_p.jet = locally_linear(concatenate_p)
concatenate_p.transpose = _concatenate_transpose
concatenate_p.batch = _concatenate_batch
concatenate_p.lower = _concatenate_lower


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


def axis_and_shape(name: str, x: Any, axis: int) -> tuple[int, tuple[int, ...]]:
    (axis,) = canonical_axes(name, x, axis)
    return axis, get_aval(x).shape


def replaced(values: Sequence[Any], axis: int, value: Any) -> list[Any]:
    out = list(values)
    out[axis] = value
    return out


@api_boundary
def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    """``operand[start:limit:stride]`` along one axis, as Python slices: negative bounds count from the end."""
    axis, shape = axis_and_shape("slice_in_dim", operand, axis)
    n = shape[axis]
    start = 0 if start_index is None else operator.index(start_index)
    limit = n if limit_index is None else operator.index(limit_index)
    start, limit = start + n if start < 0 else start, limit + n if limit < 0 else limit
    return static_slice(
        operand,
        replaced([0] * len(shape), axis, start),
        replaced(shape, axis, limit),
        replaced([1] * len(shape), axis, operator.index(stride)),
    )


@api_boundary
def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """``operand[index]`` along one axis, which stays, with length 1, unless `keepdims` is False.

    Raises IndexError when the index, which must be known, is out of range.
    """
    axis, shape = axis_and_shape("index_in_dim", operand, axis)
    n, index = shape[axis], operator.index(index)
    if not -n <= index < n:
        raise IndexError(f"lax.index_in_dim: index {index} is out of bounds for axis {axis} with size {n}")
    index %= n
    out = static_slice(operand, replaced([0] * len(shape), axis, index), replaced(shape, axis, index + 1))
    return out if keepdims else reshape(out, shape[:axis] + shape[axis + 1 :])
