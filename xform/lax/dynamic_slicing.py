"""Parts of arrays at places that may be traced: `dynamic_slice`, `dynamic_update_slice`, `index_take`.

XLA moves a slice that would overrun the array back inside.

May import: `lax.slicing`, `lax.gather`, `lax.scatter`, `lax.large_updates`, the elementwise modules.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import get_aval, host_value
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive, Tracer
from xform.interpreters import batching
from xform.interpreters.jet import linear, locally_linear
from xform.interpreters.lowering import Context, Value, i64s
from xform.interpreters.tangents import Zero, instantiate, is_linear, zero_of
from xform.lax import families, large_updates
from xform.lax.arithmetic import add_p, rem_p
from xform.lax.comparison import gt_p, lt_p, select_n_p
from xform.lax.conversion import convert
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, gather, gather_p, widen_index
from xform.lax.scatter import ScatterDimensionNumbers, scatter_p
from xform.lax.shapes import canonical_axes, full, reshape
from xform.lax.slicing import axis_and_shape, concatenate, concatenate_p, index_in_dim, replaced

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


def _zero(x: Any) -> Any:
    return np.zeros((), get_aval(x).dtype)[()]


def _dynamic_slice_types(x: ShapedArray, *starts: ShapedArray, slice_sizes: tuple[int, ...]) -> ShapedArray:
    _check_dynamic("dynamic_slice", x, slice_sizes, starts)
    return x.update(shape=slice_sizes)


def _window(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Any]) -> tuple[Any, ...]:
    """NumPy's index of the window of `sizes` that starts at the clamped `starts`."""
    clamped = [min(max(int(s), 0), n - m) for s, n, m in zip(starts, shape, sizes, strict=True)]
    return tuple([slice(s, s + m) for s, m in zip(clamped, sizes, strict=True)])


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
dynamic_slice_p.jet = linear(dynamic_slice_p)
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


def _update_lower(ctx: Context, x: Value, update: Value, *starts: Value) -> Value:
    place = large_updates.place_of(ctx, x, update, starts)
    if place is not None:
        return large_updates.written(ctx, x, update, place)
    return ctx.op("dynamic_update_slice", [x, update, *(widen_index(ctx, s) for s in starts)], ctx.out)


dynamic_update_slice_p = Primitive("dynamic_update_slice")
dynamic_update_slice_p.abstract_eval = _update_types
dynamic_update_slice_p.host = _update_host
dynamic_update_slice_p.jvp = _update_jvp
dynamic_update_slice_p.jet = locally_linear(dynamic_update_slice_p)
dynamic_update_slice_p.transpose = _update_transpose
dynamic_update_slice_p.batch = _update_batch
dynamic_update_slice_p.lower = _update_lower


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


# Along one axis.


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
    axis, shape = axis_and_shape("dynamic_slice_in_dim", operand, axis)
    starts = replaced([0] * len(shape), axis, start_index)
    sizes = replaced(shape, axis, operator.index(slice_size))
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


@api_boundary
def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Any:
    """`dynamic_slice` of length 1 along one axis, which stays unless `keepdims` is False."""
    axis, shape = axis_and_shape("dynamic_index_in_dim", operand, axis)
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return out if keepdims else reshape(out, shape[:axis] + shape[axis + 1 :])


@api_boundary
def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """`dynamic_update_slice` along one axis, at 0 along the others."""
    axis, shape = axis_and_shape("dynamic_update_slice_in_dim", operand, axis)
    starts = replaced([0] * len(shape), axis, start_index)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


@api_boundary
def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """Replace the slice of length 1 at `index` along one axis; `update` may lack that axis."""
    axis, shape = axis_and_shape("dynamic_update_index_in_dim", operand, axis)
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
