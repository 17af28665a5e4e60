"""Operations that change an array's shape and not its values.

`broadcast_in_dim`, `reshape`, `transpose`, `squeeze`, `rev` and what is made of them; arrays from nothing: `iota`,
`full`.

May import: `lax.families`, `lax.conversion`.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, get_aval, own
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching, tangents
from xform.interpreters.jet import linear
from xform.interpreters.lowering import SHORT_AXIS, Context, Value, i64s
from xform.interpreters.tangents import Zero, zero_of
from xform.lax import families
from xform.lax.conversion import convert


def linear_unary(name: str, types: Any, host: Any, transpose: Any, batch: Any, lower: Any) -> Primitive:
    """A primitive of one operand that is linear and keeps dtype and weak type.

    `transpose` is ``(ct, aval of the operand, **params) -> cotangent``; `batch` is ``(axis, x, dim, **params)``.
    """
    p = Primitive(name)
    p.is_cheap_on_host = True
    p.abstract_eval = types
    p.host = host
    p.jvp = lambda primals, ts, **params: linear_jvp(p, primals[0], ts[0], params)
    p.jet = linear(p)
    p.transpose = lambda ct, x, **params: [transpose(ct, x.aval, **params)]
    p.batch = lambda axis, args, dims, **params: batch(axis, args[0], dims[0], **params)
    p.lower = lower
    return p


def linear_jvp(p: Primitive, x: Any, t: Any, params: dict[str, Any]) -> Any:
    """jvp rule of a linear operation of one operand."""
    out = p.bind(x, **params)
    return out, zero_of(out) if type(t) is Zero else p.bind(t, **params)


def as_array(x: Any) -> Array:
    """`x` itself, if it isn't NumPy's or Python's."""
    return x if isinstance(x, Array) else own(x)


def check_axes(name: str, axes: Any, ndim: int, what: str) -> tuple[int, ...]:
    """Axes as a sorted tuple of distinct ints in [0, ndim)."""
    given = axes if isinstance(axes, Sequence | np.ndarray) else (axes,)
    try:
        axes = tuple(map(operator.index, given))
    except TypeError:
        raise TypeError(f"lax.{name}: axes of {what} are ints, got {axes!r}") from None
    out = tuple(sorted([a + ndim if a < 0 else a for a in axes]))
    if out and (out[0] < 0 or out[-1] >= ndim or len(set(out)) != len(out)):
        raise ValueError(f"lax.{name}: {axes} are not distinct axes of {what}")
    return out


def canonical_axes(name: str, x: Any, axes: Any) -> tuple[int, ...]:
    """Axes of `x` as a sorted tuple of distinct non-negative ints; None: all."""
    aval = get_aval(x)
    if type(axes) is tuple and len(axes) == 1 and type(axes[0]) is int and 0 <= axes[0] < aval.ndim:
        return axes
    return tuple(range(aval.ndim)) if axes is None else check_axes(name, axes, aval.ndim, aval.str_short())


# broadcast_in_dim


def _broadcast_in_dim_types(
    x: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> ShapedArray:
    dims = broadcast_dimensions
    ok = len(dims) == x.ndim and all(0 <= d < len(shape) for d in dims) and list(dims) == sorted(set(dims))
    if not ok or any(x.shape[i] not in (1, shape[d]) for i, d in enumerate(dims)):
        raise TypeError(
            f"lax.broadcast_in_dim: operand {x.str_short()} can't become shape {shape} with "
            f"broadcast_dimensions={dims}; they must be increasing, one per axis of the operand, whose length is 1 or "
            "that of the result"
        )
    return x.update(shape=shape)


def _broadcast_in_dim_host(x: Any, *, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Any:
    if not shape:
        return x
    if x.ndim:
        lengths = [1] * len(shape)
        for n, d in zip(x.shape, broadcast_dimensions, strict=True):
            lengths[d] = n
        x = x.reshape(lengths)
    if math.prod(shape) > 10_000:
        return np.broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)  # a third of the time of broadcast_to, and contiguous
    out[...] = x
    return out


def _broadcast_in_dim_transpose(
    ct: Any, x: ShapedArray, *, shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...]
) -> Any:
    kept = [d for i, d in enumerate(broadcast_dimensions) if x.shape[i] == shape[d]]
    ct = families.Hooks.reduce_sum(ct, tuple(d for d in range(len(shape)) if d not in kept))
    return ct if ct.shape == x.shape else reshape(ct, x.shape)


def _broadcast_in_dim_batch(axis: Any, x: Any, dim: int, *, shape: Any, broadcast_dimensions: Any) -> Any:
    x = batching.move_to(x, dim, axis.size)
    dims = (0, *(d + 1 for d in broadcast_dimensions))
    return broadcast_in_dim_p.bind(x, shape=(axis.size, *shape), broadcast_dimensions=dims), 0


def _broadcast_in_dim_lower(ctx: Context, x: Value, *, shape: Sequence[int], broadcast_dimensions: Any) -> Value:
    """Along a short last axis, XLA on CPU would compute `x` anew for each element, and without vector instructions."""
    repeats = shape[-1] if shape else 1
    if (
        x.is_cheap
        and 1 < repeats <= SHORT_AXIS
        and ctx.takes_loops(x.aval)
        and math.prod(shape) == repeats * x.aval.size
    ):
        x = ctx.once(x)
    out = ctx.op("broadcast_in_dim", [x], ctx.out, f"broadcast_dimensions = {i64s(broadcast_dimensions)}")
    out.scalar = None if x.shape else x
    return out


broadcast_in_dim_p = linear_unary(
    "broadcast_in_dim",
    _broadcast_in_dim_types,
    _broadcast_in_dim_host,
    _broadcast_in_dim_transpose,
    _broadcast_in_dim_batch,
    _broadcast_in_dim_lower,
)


@api_boundary
def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: None = None
) -> Any:
    """Place the axes of `operand` at `broadcast_dimensions` of `shape`, and repeat it along the others.

    Examples
    --------
    >>> from xform import lax
    >>> lax.broadcast_in_dim(np.arange(2.0), (2, 3), (0,)).tolist()
    [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    """
    families.no_sharding("broadcast_in_dim", out_sharding=out_sharding)
    shape, dims = canonical_shape(shape), tuple(map(operator.index, broadcast_dimensions))
    if get_aval(operand).shape == shape and dims == tuple(range(len(shape))):
        return as_array(operand)
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims)


families.Hooks.broadcast_in_dim = broadcast_in_dim


@api_boundary
def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: None = None) -> Any:
    """Repeat `operand` along new leading axes of lengths `sizes`."""
    families.no_sharding("broadcast", out_sharding=out_sharding)
    shape = get_aval(operand).shape
    sizes = canonical_shape(sizes)
    return broadcast_in_dim(operand, (*sizes, *shape), range(len(sizes), len(sizes) + len(shape)))


@api_boundary
def broadcast_like(arr: Any, like_arr: Any) -> Any:
    """`arr` broadcast to the shape of `like_arr`, by NumPy's rules.

    Examples
    --------
    >>> from xform import lax
    >>> lax.broadcast_like(np.arange(2), np.zeros((2, 2))).tolist()
    [[0, 1], [0, 1]]
    """
    x, like = get_aval(arr), get_aval(like_arr)
    missing = like.ndim - x.ndim
    if missing < 0 or any(n not in (1, m) for n, m in zip(x.shape, like.shape[missing:], strict=True)):
        raise ValueError(f"lax.broadcast_like: {x.str_short()} can't be broadcast to the shape of {like.str_short()}")
    return broadcast_in_dim(arr, like.shape, range(missing, like.ndim))


@api_boundary
def broadcast_to_rank(x: Any, rank: int) -> Any:
    """Insert leading axes of length 1 until there are `rank` axes."""
    ndim = get_aval(x).ndim
    if rank < ndim:
        raise ValueError(f"lax.broadcast_to_rank: {get_aval(x).str_short()} has more than {rank} axes")
    return expand_dims(x, range(rank - ndim))


@api_boundary
def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to, by NumPy's rules.

    Examples
    --------
    >>> from xform import lax
    >>> lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    try:
        return np.broadcast_shapes(*map(canonical_shape, shapes))
    except ValueError:
        raise ValueError(f"lax.broadcast_shapes: incompatible shapes {', '.join(map(str, shapes))}") from None


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as an array of integers.

    Examples
    --------
    >>> from xform import lax
    >>> lax.shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    return as_array(np.array(canonical_shape(shape), dtypes.default_int()))


def numeric_dtype(name: str, dtype: Any) -> np.dtype:
    """The dtype that arrays of `dtype` get; TypeError if that is none of the numeric ones."""
    try:
        found = dtypes.canonicalize_dtype(dtype)
    except TypeError as error:
        raise TypeError(f"lax.{name}: {error}") from None
    if found not in dtypes.kinds:
        raise TypeError(f"lax.{name}: arrays hold numbers and booleans, got dtype {dtype!r}")
    return found


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """A shape as tuple of ints that are not negative."""
    if not isinstance(shape, Sequence | np.ndarray):
        shape = (shape,)
    try:
        out = tuple(map(operator.index, shape))
    except TypeError:
        raise TypeError(f"lengths of axes are ints, got {shape!r}") from None
    if any(d < 0 for d in out):
        raise ValueError(f"lengths of axes must not be negative, got {out}")
    return out


def _broadcast_new_axis(x: Any, size: int, dim: int) -> Any:
    shape = get_aval(x).shape
    dims = tuple(d for d in range(len(shape) + 1) if d != dim)
    return broadcast_in_dim_p.bind(x, shape=(*shape[:dim], size, *shape[dim:]), broadcast_dimensions=dims)


batching.Hooks.broadcast = _broadcast_new_axis


# reshape


def _reshape_types(x: ShapedArray, *, new_sizes: tuple[int, ...]) -> ShapedArray:
    if math.prod(new_sizes) != x.size:
        raise TypeError(f"lax.reshape: {x.str_short()} has {x.size} elements, shape {new_sizes} another number")
    return x.update(shape=new_sizes)


def _reshape_batch(axis: Any, x: Any, dim: int, *, new_sizes: Any) -> Any:
    return reshape_p.bind(batching.move_to(x, dim, axis.size), new_sizes=(axis.size, *new_sizes)), 0


reshape_p = linear_unary(
    "reshape",
    _reshape_types,
    lambda x, *, new_sizes: x.reshape(new_sizes),
    lambda ct, x, *, new_sizes: reshape_p.bind(ct, new_sizes=x.shape),
    _reshape_batch,
    lambda ctx, x, *, new_sizes: ctx.op("reshape", [x], ctx.out),
)


@api_boundary
def reshape(
    operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: None = None
) -> Any:
    """The elements of `operand`, with its axes in the order `dimensions`, row by row in shape `new_sizes`."""
    families.no_sharding("reshape", out_sharding=out_sharding)
    new_sizes = canonical_shape(new_sizes)
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    if get_aval(operand).shape == new_sizes:
        return as_array(operand)
    return reshape_p.bind(operand, new_sizes=new_sizes)


families.Hooks.reshape = reshape


@api_boundary
def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Any:
    """Merge the axes from `start_dimension` up to, not including, `stop_dimension` into one.

    Examples
    --------
    >>> from xform import lax
    >>> lax.collapse(np.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    aval = get_aval(operand)
    start, stop, _ = slice(start_dimension, stop_dimension).indices(aval.ndim)
    if start_dimension not in range(-aval.ndim, aval.ndim) or stop < start:
        raise ValueError(
            f"lax.collapse: there are no axes from {start_dimension} to {stop_dimension} in {aval.str_short()}"
        )
    return reshape(operand, (*aval.shape[:start], math.prod(aval.shape[start:stop]), *aval.shape[stop:]))


# transpose


def _transpose_types(x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(f"lax.transpose: {permutation} is not a permutation of the axes of {x.str_short()}")
    return x.update(shape=tuple(x.shape[i] for i in permutation))


def _transpose_batch(axis: Any, x: Any, dim: int, *, permutation: Any) -> Any:
    perm = (dim, *(i if i < dim else i + 1 for i in permutation))
    return transpose_p.bind(x, permutation=perm), 0


transpose_p = linear_unary(
    "transpose",
    _transpose_types,
    lambda x, *, permutation: x.transpose(permutation),
    lambda ct, x, *, permutation: transpose_p.bind(ct, permutation=tuple(int(i) for i in np.argsort(permutation))),
    _transpose_batch,
    lambda ctx, x, *, permutation: ctx.op("transpose", [x], ctx.out, f"permutation = {i64s(permutation)}"),
)


@api_boundary
def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """Permute the axes: axis i of the result is axis ``permutation[i]`` of the operand."""
    permutation = tuple(map(operator.index, permutation))
    if permutation == tuple(range(get_aval(operand).ndim)):
        return as_array(operand)
    return transpose_p.bind(operand, permutation=permutation)


def moveaxis(x: Any, source: int, target: int) -> Any:
    """`x` with the axis `source` at `target` (internal, no checks)."""
    if source == target:
        return x
    permutation = [d for d in range(get_aval(x).ndim) if d != source]
    permutation.insert(target, source)
    return transpose_p.bind(x, permutation=tuple(permutation))


batching.Hooks.moveaxis = moveaxis


# squeeze and rev


def _squeeze_types(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if any(not 0 <= d < x.ndim or x.shape[d] != 1 for d in dimensions) or len(set(dimensions)) != len(dimensions):
        raise ValueError(f"lax.squeeze: dimensions {dimensions} of {x.str_short()} must be distinct axes of length 1")
    return x.update(shape=tuple(n for d, n in enumerate(x.shape) if d not in dimensions))


def _squeeze_batch(axis: Any, x: Any, dim: int, *, dimensions: tuple[int, ...]) -> Any:
    shifted = tuple(d + (d >= dim) for d in dimensions)
    return squeeze_p.bind(x, dimensions=shifted), dim - sum(d < dim for d in shifted)


squeeze_p = linear_unary(
    "squeeze",
    _squeeze_types,
    lambda x, *, dimensions: x.squeeze(dimensions),
    lambda ct, x, *, dimensions: reshape_p.bind(ct, new_sizes=x.shape),
    _squeeze_batch,
    lambda ctx, x, *, dimensions: ctx.op("reshape", [x], ctx.out),
)


@api_boundary
def squeeze(array: Any, dimensions: Sequence[int]) -> Any:
    """Drop the axes `dimensions`, which must have length 1."""
    dims = canonical_axes("squeeze", array, dimensions)
    return squeeze_p.bind(array, dimensions=dims) if dims else as_array(array)


@api_boundary
def expand_dims(array: Any, dimensions: Sequence[int]) -> Any:
    """Insert axes of length 1, which stand at `dimensions` of the result."""
    shape = get_aval(array).shape
    ndim = len(shape) + len(dimensions)
    new = check_axes("expand_dims", dimensions, ndim, f"a result of {ndim} axes")
    if not new:
        return as_array(array)
    kept = tuple(d for d in range(ndim) if d not in new)
    sizes = iter(shape)
    return broadcast_in_dim_p.bind(
        array, shape=tuple(1 if d in new else next(sizes) for d in range(ndim)), broadcast_dimensions=kept
    )


def _rev_types(x: ShapedArray, *, dimensions: tuple[int, ...]) -> ShapedArray:
    if any(not 0 <= d < x.ndim for d in dimensions) or len(set(dimensions)) != len(dimensions):
        raise ValueError(f"lax.rev: dimensions {dimensions} must be distinct axes of {x.str_short()}")
    return x


def _rev_host(x: Any, *, dimensions: Sequence[int]) -> Any:
    return x[tuple([slice(None, None, -1 if d in dimensions else 1) for d in range(x.ndim)])]


rev_p = linear_unary(
    "rev",
    _rev_types,
    _rev_host,
    lambda ct, x, *, dimensions: rev_p.bind(ct, dimensions=dimensions),
    lambda axis, x, dim, *, dimensions: (rev_p.bind(x, dimensions=tuple(d + (d >= dim) for d in dimensions)), dim),
    lambda ctx, x, *, dimensions: ctx.op("reverse", [x], ctx.out, f"dimensions = {i64s(dimensions)}"),
)


@api_boundary
def rev(operand: Any, dimensions: Sequence[int]) -> Any:
    """Reverse the order of the elements along `dimensions`."""
    dims = canonical_axes("rev", operand, dimensions)
    return rev_p.bind(operand, dimensions=dims) if dims else as_array(operand)


# iota and full


def _iota_host(*, dtype: np.dtype, shape: tuple[int, ...], dimension: int) -> Any:
    line = np.arange(shape[dimension]).astype(dtype, copy=False)
    return np.broadcast_to(line.reshape([-1 if d == dimension else 1 for d in range(len(shape))]), shape)


iota_p = Primitive("iota")
iota_p.abstract_eval = lambda *, dtype, shape, dimension: ShapedArray(shape, dtype)
iota_p.host = _iota_host
iota_p.lower = lambda ctx, *, dtype, shape, dimension: ctx.op(
    "iota", [], ctx.out, f"iota_dimension = {dimension} : i64"
)


@api_boundary
def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: None = None) -> Any:
    """An array that counts 0, 1, ... along one axis."""
    families.no_sharding("broadcasted_iota", out_sharding=out_sharding)
    shape, dtype = canonical_shape(shape), numeric_dtype("broadcasted_iota", dtype)
    if not -len(shape) <= dimension < len(shape):
        raise ValueError(f"lax.broadcasted_iota: dimension {dimension} is out of range for shape {shape}")
    return iota_p.bind(dtype=dtype, shape=shape, dimension=operator.index(dimension) % len(shape))


def iota(dtype: Any, size: int) -> Any:
    """The array 0, 1, ..., size - 1."""
    return broadcasted_iota(dtype, (size,), 0)


@api_boundary
def full(shape: Sequence[int], fill_value: Any, dtype: Any = None, *, sharding: None = None) -> Any:
    """An array of one value."""
    families.no_sharding("full", sharding=sharding)
    shape = canonical_shape(shape)
    value = get_aval(fill_value)
    if value.shape:
        raise TypeError(f"lax.full: the fill value must be a scalar, got {value.str_short()}")
    weak = dtype is None and value.weak_type
    dtype = dtypes.dtype(fill_value) if dtype is None else numeric_dtype("full", dtype)
    if isinstance(fill_value, bool | int | float | complex):
        fill_value = dtypes.coerce_scalar(fill_value, dtype)[()]
    return broadcast_in_dim(convert(fill_value, dtype, weak), shape, ())


@api_boundary
def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None, sharding: None = None) -> Any:
    """An array of one value, with the shape and dtype of `x` unless others are given."""
    families.no_sharding("full_like", sharding=sharding)
    aval = get_aval(x)
    weak = dtype is None and aval.weak_type
    out = full(aval.shape if shape is None else shape, fill_value, aval.dtype if dtype is None else dtype)
    return convert(out, out.dtype, weak)


@api_boundary
def empty(shape: Sequence[int], dtype: Any, *, out_sharding: None = None) -> Any:
    """An array whose values don't matter; they are zeros."""
    families.no_sharding("empty", out_sharding=out_sharding)
    return full(shape, 0, dtype)


def _zeros(aval: ShapedArray) -> Any:
    zero = np.zeros((), aval.dtype)[()]
    return broadcast_in_dim_p.bind(zero, shape=aval.shape, broadcast_dimensions=())


tangents.Hooks.zeros = _zeros
