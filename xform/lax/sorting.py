"""Sorting along an axis, of one array or of several by the first ones as keys; the k largest elements.

The order is NumPy's: NaN come last, -0.0 and 0.0 are equal, complex numbers are ordered by real part, then imaginary
part (those with a NaN last: first the ones whose real part is a number).

XLA sorts a single array of integers ten times as fast on CPU as anything that needs a comparator of its own. So
everything becomes integers: a float is one by its bits, and to find the order of an array each element is packed
with its index into one integer of 64 bits. Wider keys are sorted by their halves, the lower one first (a radix sort).

May import: `lax.families`, `lax.conversion`, `lax.shapes`, `lax.slicing`, `lax.gather`, `lax.cumulative`,
`lax.reductions`, `lax.control_flow`, the elementwise modules.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import ArrayImpl, get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.jet import locally_linear
from xform.interpreters.lowering import Context, Value, lower_as
from xform.interpreters.tangents import Zero, zero_of
from xform.lax import families
from xform.lax.arithmetic import imag_p, neg_p, real_p
from xform.lax.bitwise import (
    and_p,
    bitcast_convert_type_p,
    not_p,
    or_p,
    shift_left_p,
    shift_right_arithmetic_p,
    xor_p,
)
from xform.lax.comparison import eq_p, lt_p, ne_p, select_n_p
from xform.lax.control_flow.cond import cond
from xform.lax.conversion import convert
from xform.lax.cumulative import cumsum_p, shift
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, gather_p
from xform.lax.reductions import reduce_or_p
from xform.lax.shapes import check_axes, iota_p, moveaxis, reshape
from xform.lax.slicing import slice_in_dim

# sort


def _sort_types(*operands: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    if len({x.shape for x in operands}) != 1:
        raise TypeError(f"lax.sort: operands must have one shape, got {[x.str_short() for x in operands]}")
    if not 0 <= dimension < operands[0].ndim:
        raise ValueError(f"lax.sort: dimension {dimension} is out of range for {operands[0].str_short()}")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(
            f"lax.sort: num_keys must be between 1 and the number of operands {len(operands)}, got {num_keys}"
        )
    return list(operands)


def _sort_host(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    keys = [_sortable(x) for x in operands[:num_keys]]
    if len(operands) > 1:
        order = stable_order(keys[0], dimension) if num_keys == 1 else np.lexsort(keys[::-1], dimension)
        return [x[order] if x.ndim == 1 else np.take_along_axis(x, order, dimension) for x in operands]
    (x,), (key,) = operands, keys
    return [ordered(key, dimension).astype(x.dtype, copy=False)]


def ordered(key: Any, axis: int = -1) -> Any:
    """An ndarray sorted along an axis; negative zeros before the positive ones, as by bits."""
    out = np.sort(key, axis)
    if out.dtype.kind == "f" and np.count_nonzero(out) < out.size:
        negative = np.count_nonzero((key == 0) & np.signbit(key), axis, keepdims=True)
        zeros = out == 0
        rank = np.cumsum(zeros, axis)
        out[zeros] = np.where(rank <= negative, -0.0, 0.0)[zeros]
    return out


def stable_order(key: Any, axis: int = -1) -> Any:
    """NumPy's argsort; of a long axis by its fastest method, which leaves the order of equal elements to be mended."""
    if key.shape[axis] < 1000 or key.dtype.kind == "c":  # complex NaN differ
        return key.argsort(axis, "stable")
    order = np.moveaxis(key, axis, -1).argsort()
    ordered = np.take_along_axis(np.moveaxis(key, axis, -1), order, -1)
    this, last = ordered[..., 1:], ordered[..., :-1]
    new = (this != last) & ((this == this) | (last == last))  # else equal to the last one, or both NaN
    if not new.all():  # sort pairs of the rank among distinct elements and the index
        packed = order.astype(np.int64)
        packed[..., 1:] |= np.cumsum(new, -1) << 32
        packed.sort()
        order = packed & (2**32 - 1)
    return np.moveaxis(order, -1, axis)


def _sortable(x: Any) -> Any:
    """An array in a type that NumPy itself can sort: those of ml_dtypes converted."""
    if x.dtype.num < 256:  # not a user-defined type; some of them have the kind of NumPy's own
        return x
    return x.astype(np.float32 if dtypes.kinds[x.dtype] == "f" else np.int8)


def _sort_jvp(primals: Sequence[Any], ts: Sequence[Any], *, dimension: int, is_stable: bool, num_keys: int) -> Any:
    """Tangents go with their elements."""
    params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
    if all(type(t) is Zero for t in ts):
        outs = sort_p.bind(*primals, **params)
        return outs, [zero_of(o) for o in outs]
    index = iota_p.bind(dtype=_index_dtype, shape=primals[0].shape, dimension=dimension)
    *outs, order = sort_p.bind(*primals, index, **params)
    tangents = [
        zero_of(o) if type(t) is Zero else take_along(t, order, dimension) for t, o in zip(ts, outs, strict=True)
    ]
    return outs, tangents


_index_dtype = np.dtype(np.int64)


def _sort_batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, dimension: int, **params: Any) -> Any:
    d = next(d for d in dims if d is not None)
    args = [batching.move_to(x, dim, axis.size, d) for x, dim in zip(args, dims, strict=True)]
    return sort_p.bind(*args, dimension=dimension + (dimension >= d), **params), [d] * len(args)


def _sort_lower(ctx: Context, *operands: Value, dimension: int, **params: Any) -> list[Value]:
    x = operands[0]
    if len(operands) > 1 or dtypes.kinds[x.dtype] not in "iu":
        return _sort_by_integers(ctx, *operands, dimension=dimension, **params)
    scalar = x.aval.update(shape=())
    less = ctx.region(lambda ctx, a, b: [_less(ctx, a, b)], [scalar, scalar])
    # Stable, as it is faster: XLA calls the sorts of the C++ library, of which this one merges.
    attributes = f"dimension = {dimension} : i64, is_stable = true"
    return ctx.op("sort", [x], [x.aval], attributes, [less])


def _less(ctx: Context, a: Value, b: Value) -> Value:
    direction = "comparison_direction = #stablehlo<comparison_direction LT>"
    return ctx.op("compare", [a, b], ShapedArray((), bool), direction)


@lower_as
def _sort_by_integers(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    x = operands[0]
    if len(operands) == 1 and _is_tiny(x):
        return [
            convert(sort_p.bind(convert(x, _FLOAT32), dimension=dimension, is_stable=False, num_keys=1)[0], x.dtype)
        ]
    if len(operands) == 1 and x.dtype.kind != "c":
        key = _by_bits(x) if _is_float(x) else convert(x, np.dtype(np.uint8))  # else it is boolean
        (key,) = sort_p.bind(key, dimension=dimension, is_stable=False, num_keys=1)
        return [_from_bits(key, x.dtype) if _is_float(x) else convert(key, x.dtype)]
    order = _order(operands[:num_keys], dimension)
    return [take_along(x, order, dimension) for x in operands]


sort_p = Primitive("sort", multiple_results=True)
sort_p.abstract_eval = _sort_types
sort_p.host = _sort_host
sort_p.jvp = _sort_jvp
sort_p.jet = locally_linear(sort_p)
sort_p.batch = _sort_batch
sort_p.lower = _sort_lower


# Floats as integers


def _is_float(x: Any) -> bool:
    return dtypes.kinds[x.dtype] == "f"


_FLOAT32 = np.dtype(np.float32)


def _is_tiny(x: Any) -> bool:
    """Whether it is a float of 8 bits or fewer: some of these types have no integer beside the finite ones for NaN."""
    return _is_float(x) and x.dtype.itemsize == 1


def _integer_of(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"int{8 * dtype.itemsize}")


def _scalar(dtype: np.dtype, value: int) -> Any:
    """A constant of 64 bits even where x64 is disabled, which would narrow a NumPy scalar."""
    return ArrayImpl(np.asarray(value, dtype)[()], None, ShapedArray((), dtype))


def _by_bits(x: Any) -> Any:
    """Integers in the order of the floats `x`: with all NaN equal and last, and -0.0 before 0.0."""
    dtype = _integer_of(x.dtype)
    bits, most = bitcast_convert_type_p.bind(x, new_dtype=dtype), _scalar(dtype, np.iinfo(dtype).max)
    return select_n_p.bind(ne_p.bind(x, x), _flip_negative(bits, most), most)


def _flip_negative(bits: Any, most: Any) -> Any:
    """Of negative floats a larger modulus means less; this is its own inverse."""
    return select_n_p.bind(lt_p.bind(bits, _scalar(most.dtype, 0)), bits, xor_p.bind(bits, most))


def _from_bits(key: Any, dtype: np.dtype) -> Any:
    bits = _flip_negative(key, _scalar(key.dtype, np.iinfo(key.dtype).max))
    return bitcast_convert_type_p.bind(bits, new_dtype=dtype)


def _integer_keys(x: Any) -> list[Any]:
    """Signed integers of at most 32 bits, the most significant first, whose lexicographic order is that of `x`."""
    if _is_tiny(x):
        x = convert(x, _FLOAT32)
    kind, dtype = dtypes.kinds[x.dtype], x.dtype
    if kind == "c":
        parts = [real_p.bind(x), imag_p.bind(x)]
        missing = [convert(ne_p.bind(p, p), np.dtype(np.int8)) for p in parts]
        return [*missing, *[k for p in parts for k in _integer_keys(p)]]
    if kind == "f":
        zero = np.zeros((), dtype)[()]
        x = _by_bits(select_n_p.bind(eq_p.bind(x, zero), x, zero))
    elif kind == "b":
        x = convert(x, np.dtype(np.int8))
    elif kind == "u":
        signed = _integer_of(dtype)
        x = xor_p.bind(bitcast_convert_type_p.bind(x, new_dtype=signed), _scalar(signed, np.iinfo(signed).min))
    if x.dtype.itemsize < 8:
        return [x]
    half = np.dtype(np.int32)
    low = xor_p.bind(convert(and_p.bind(x, _scalar(x.dtype, 2**32 - 1)), np.dtype(np.uint32)), np.uint32(2**31))
    high = convert(shift_right_arithmetic_p.bind(x, _scalar(x.dtype, 32)), half)
    return [high, bitcast_convert_type_p.bind(low, new_dtype=half)]


def _order(xs: Sequence[Any], dimension: int, descending: bool = False) -> Any:
    """The stable order of elements by lexicographic comparison."""
    keys = [not_p.bind(key) if descending else key for x in xs for key in _integer_keys(x)]
    # Floats differ in their leading bits, integers in the last ones.
    if len(xs) == 1 and len(keys) == 2 and _is_float(xs[0]) and 1000 < keys[0].shape[dimension] < 2**21:
        high, low = keys
        return _order_by_leading_bits(high, low, dimension)
    return _order_by_halves(keys, dimension)


def _order_by_halves(keys: Sequence[Any], dimension: int) -> Any:
    """Sort by one key after the other, the least significant first."""
    index = iota_p.bind(dtype=_index_dtype, shape=keys[0].shape, dimension=dimension)
    order = None
    for key in reversed(keys):
        if order is not None:
            key = take_along(key, order, dimension)
        (packed,) = sort_p.bind(or_p.bind(_high(key), index), dimension=dimension, is_stable=False, num_keys=1)
        found = and_p.bind(packed, _scalar(_index_dtype, 2**32 - 1))
        order = found if order is None else take_along(order, found, dimension)
    return order


def _order_by_leading_bits(high: Any, low: Any, dimension: int) -> Any:
    """Sort by as many bits as the index leaves room for, then mend.

    Among random numbers the rest matters for a few neighbours, which change places. If that isn't enough all are sorted
    once more, by rank: what is nearly in order is sorted much faster.
    """
    n = high.shape[dimension]
    width = _scalar(_index_dtype, (n - 1).bit_length())  # of the index; of the rank; of what is left of the key
    ones = _scalar(_index_dtype, 2 ** int(width) - 1)
    index = iota_p.bind(dtype=_index_dtype, shape=high.shape, dimension=dimension)
    low = xor_p.bind(convert(low, _index_dtype), _scalar(_index_dtype, -(2**31)))  # from 0 to 2^32 - 1, above that ones
    leading = or_p.bind(_high(high), and_p.bind(low, _scalar(_index_dtype, 2**32 - 2 ** int(width))))
    rest = shift_left_p.bind(and_p.bind(low, ones), width)

    def ordered(packed: Any) -> Any:
        return sort_p.bind(packed, dimension=dimension, is_stable=False, num_keys=1)[0]

    packed = ordered(or_p.bind(leading, index))
    leading = shift_right_arithmetic_p.bind(packed, width)
    order = and_p.bind(packed, ones)
    pairs = or_p.bind(take_along(rest, order, dimension), order)
    is_new = ne_p.bind(leading, shift(leading, dimension, False, 0))
    is_odd = eq_p.bind(and_p.bind(index, _scalar(_index_dtype, 1)), _scalar(_index_dtype, 1))

    def out_of_order(pairs: Any) -> Any:
        """Which should be before their predecessor."""
        return and_p.bind(not_p.bind(is_new), lt_p.bind(pairs, shift(pairs, dimension, False, 0)))

    for turn in (is_odd, not_p.bind(is_odd)):
        swap = and_p.bind(out_of_order(pairs), turn)
        moved = select_n_p.bind(swap, pairs, shift(pairs, dimension, False, 0))
        pairs = select_n_p.bind(shift(swap, dimension, True, False), moved, shift(pairs, dimension, True, 0))

    def by_rank(pairs: Any) -> Any:
        rank = cumsum_p.bind(convert(is_new, _index_dtype), axis=dimension, reverse=False)
        return ordered(or_p.bind(shift_left_p.bind(rank, shift_left_p.bind(width, _scalar(_index_dtype, 1))), pairs))

    is_mended = not_p.bind(reduce_or_p.bind(out_of_order(pairs), axes=tuple(range(pairs.ndim))))
    return and_p.bind(cond(is_mended, lambda pairs: pairs, by_rank, pairs), ones)


def _high(key: Any) -> Any:
    """A key as the upper 32 bits."""
    return shift_left_p.bind(convert(key, _index_dtype), _scalar(_index_dtype, 32))


def take_along(x: Any, order: Any, axis: int) -> Any:
    """``out[i, j, ...] = x[order[i, j, ...], j, ...]`` (if the axis is the first): the elements in another order."""
    others = tuple(d for d in range(x.ndim) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather_p.bind(
        x,
        reshape(order, (*order.shape, 1)),
        dimension_numbers=numbers,
        slice_sizes=tuple(min(1, n) for n in x.shape),
        indices_are_sorted=False,
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


# top_k


def _top_k_types(x: ShapedArray, *, k: int, axis: int) -> list[ShapedArray]:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"lax.top_k: axis {axis} is out of range for {x.str_short()}")
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"lax.top_k: k must be between 0 and {x.shape[axis]} for {x.str_short()}, got {k}")
    out = x.update(shape=(*x.shape[:axis], k, *x.shape[axis + 1 :]))
    return [out, ShapedArray(out.shape, np.int32)]


def _top_k_host(x: Any, *, k: int, axis: int) -> list[Any]:
    key = np.moveaxis(_sortable(x), axis, -1)
    *lanes, n = key.shape
    if n > 100 and 0 < k < n // 4:
        order = np.empty((*lanes, k), np.int64)
        for lane in np.ndindex(*lanes):
            order[lane] = _largest(key[lane], k)
    else:
        order = _descending(key)[..., :k]
    order = np.moveaxis(order, -1, axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


def _descending(key: Any) -> Any:
    """The order along the last axis, largest first, equal ones as they stand."""
    return key.shape[-1] - 1 - stable_order(key[..., ::-1], -1)[..., ::-1]


_BLOCK = 256


def _largest(line: Any, k: int) -> Any:
    """Where the k largest elements are: in the k blocks with the largest maxima, and behind the last block.

    An element of another block has one before it in each of the k, as equal ones stand in the order of their blocks.
    """
    n = len(line)
    if 4 * k * _BLOCK > n or line.dtype.kind == "c":  # complex NaN differ
        return _largest_of_few(line, k)
    blocks = line[: n - n % _BLOCK].reshape(-1, _BLOCK)
    chosen = np.sort(_largest(blocks.max(1), k))
    places = np.append(chosen[:, None] * _BLOCK + np.arange(_BLOCK), np.arange(blocks.size, n))
    return places[_largest_of_few(line[places], k)]


def _largest_of_few(line: Any, k: int) -> Any:
    """Where the k largest elements are: sort only those that are not less than the k-th."""
    n = len(line)
    found = np.flatnonzero(~(line < np.partition(line, n - k)[n - k]))
    return found[_descending(line[found])[:k]]


def _top_k_jvp(primals: Sequence[Any], ts: Sequence[Any], *, k: int, axis: int) -> Any:
    values, order = top_k_p.bind(*primals, k=k, axis=axis)
    (t,) = ts
    tangent = zero_of(values) if type(t) is Zero else take_along(t, order, axis)
    return [values, order], [tangent, zero_of(order)]


def _top_k_batch(trace: Any, args: Sequence[Any], dims: Sequence[int], *, k: int, axis: int) -> Any:
    (x,), (d,) = args, dims
    return top_k_p.bind(x, k=k, axis=axis + (axis >= d)), [d, d]


def _top_k_lower(ctx: Context, x: Value, *, k: int, axis: int) -> list[Value]:
    """XLA has a partial sort for float32, into which narrower types fit; others are sorted."""
    limit = 4 if dtypes.kinds[x.dtype] == "f" else 2
    if x.dtype.itemsize > limit or not x.aval.size:
        return _top_k_by_sorting(ctx, x, k=k, axis=axis)
    lines = _as_lines(ctx, x, axis=axis)
    outs = [lines.aval.update(shape=(lines.shape[0], k), dtype=d) for d in (np.float32, np.int32)]
    _, order = ctx.op("chlo.top_k", [lines], outs, f"k = {k} : i64")
    return _take_lines(ctx, x, order, axis=axis)


@lower_as
def _top_k_by_sorting(x: Any, *, k: int, axis: int) -> list[Any]:
    order = _order([x], axis, descending=True)
    order = slice_in_dim(order, 0, k, 1, axis)
    return [take_along(x, order, axis), convert(order, np.dtype(np.int32))]


@lower_as
def _as_lines(x: Any, *, axis: int) -> Any:
    """A matrix of float32 with one zero and one NaN, whose rows run along `axis`."""
    x = convert(moveaxis(x, axis, x.ndim - 1), np.dtype(np.float32))
    zero, nan = np.float32(0), np.float32(np.nan)
    x = select_n_p.bind(eq_p.bind(x, zero), select_n_p.bind(ne_p.bind(x, x), x, nan), zero)
    return reshape(x, (x.size // x.shape[-1], x.shape[-1]))


@lower_as
def _take_lines(x: Any, order: Any, *, axis: int) -> list[Any]:
    shape = (*x.shape[:axis], *x.shape[axis + 1 :], order.shape[1])
    order = moveaxis(reshape(order, shape), len(shape) - 1, axis)
    return [take_along(x, order, axis), order]


top_k_p = Primitive("top_k", multiple_results=True)
top_k_p.abstract_eval = _top_k_types
top_k_p.host = _top_k_host
top_k_p.jvp = _top_k_jvp
top_k_p.jet = locally_linear(top_k_p)
top_k_p.batch = _top_k_batch
top_k_p.lower = _top_k_lower


# The public functions


def _dimension(name: str, x: Any, axis: int) -> int:
    aval = get_aval(x)
    return check_axes(name, (axis,), aval.ndim, aval.str_short())[0]


@api_boundary
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort along an axis, in ascending order with NaN last.

    Parameters
    ----------
    operand : array, or sequence of arrays of one shape
        Several are permuted together, in the order of the first `num_keys` of them (the first has precedence).
    dimension : int
    is_stable : bool
        Equal elements always keep their order here; a single array has its -0.0 before its 0.0.

    Returns
    -------
    Array, or tuple of arrays

    Examples
    --------
    >>> from xform import lax
    >>> lax.sort(np.array([3.0, np.nan, 1.0])).tolist()
    [1.0, 3.0, nan]
    """
    single = not isinstance(operand, tuple | list)
    operands = [operand] if single else list(operand)
    if not operands:
        raise TypeError("lax.sort: at least one operand is needed")
    dimension = _dimension("sort", operands[0], dimension)
    out = sort_p.bind(*operands, dimension=dimension, is_stable=bool(is_stable), num_keys=operator.index(num_keys))
    return out[0] if single else tuple(out)


@api_boundary
def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """Sort `keys` along an axis, and `values` in the same order."""
    return sort((keys, values), dimension, is_stable)


def argsort(x: Any, axis: int, index_dtype: Any) -> Any:
    """The indices that sort `x` along an axis, equal elements in their order (internal)."""
    axis = _dimension("argsort", x, axis)
    index = iota_p.bind(dtype=np.dtype(index_dtype), shape=get_aval(x).shape, dimension=axis)
    return sort_p.bind(x, index, dimension=axis, is_stable=True, num_keys=1)[1]


@api_boundary
def top_k(operand: Any, k: int, *, axis: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """The `k` largest elements along an axis, in descending order, and their indices (int32).

    Of equal elements the first comes first; NaN counts as the largest.

    Examples
    --------
    >>> from xform import lax
    >>> values, indices = lax.top_k(np.array([3.0, 5.0, 1.0]), 2)
    >>> values.tolist(), indices.tolist()
    ([5.0, 3.0], [1, 0])
    """
    return tuple(top_k_p.bind(operand, k=operator.index(k), axis=_dimension("top_k", operand, axis)))


def _approx(name: str, x: Any, k: int, axis: int, recall_target: float, override: int) -> tuple[int, int]:
    aval = get_aval(x)
    families.check_kind(name, [aval], "float")
    if not 0 < recall_target <= 1:
        raise ValueError(f"lax.{name}: recall_target must be above 0 and at most 1, got {recall_target}")
    axis, k = _dimension(name, x, axis), operator.index(k)
    if not 0 < k <= aval.shape[axis] or (override >= 0 and override < aval.shape[axis]):
        raise ValueError(
            f"lax.{name}: 0 < k <= length of the axis <= reduction_input_size_override (or that is -1) must hold, got "
            f"k={k}, reduction_input_size_override={override} for axis {axis} of {aval.str_short()}"
        )
    return k, axis


@api_boundary
def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Any, Any]:
    """The `k` largest elements along an axis, in descending order, and their indices (int32).

    Exact, and thus within any `recall_target` and `reduction_input_size_override` (the length of the axis that the
    target refers to); without `aggregate_to_topk` the result is as good. NaN counts as the largest.

    Examples
    --------
    >>> from xform import lax
    >>> values, indices = lax.approx_max_k(np.array([3.0, 5.0, 1.0]), 2)
    >>> values.tolist(), indices.tolist()
    ([5.0, 3.0], [1, 0])
    """
    override = operator.index(reduction_input_size_override)
    k, axis = _approx("approx_max_k", operand, k, reduction_dimension, recall_target, override)
    return tuple(top_k_p.bind(operand, k=k, axis=axis))


@api_boundary
def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Any, Any]:
    """The `k` smallest elements along an axis, in ascending order, and their indices; see `approx_max_k`.

    NaN counts as the smallest.
    """
    override = operator.index(reduction_input_size_override)
    k, axis = _approx("approx_min_k", operand, k, reduction_dimension, recall_target, override)
    values, indices = top_k_p.bind(neg_p.bind(operand), k=k, axis=axis)
    return neg_p.bind(values), indices
