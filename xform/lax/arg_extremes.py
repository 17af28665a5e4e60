"""Places of extremes along an axis: of the first element that attains it; a NaN counts as the extreme.

May import: `lax.families`, `lax.shapes`, `lax.slicing`, `lax.gather`, `lax.reductions`, the elementwise modules.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value, i64s, lower_as
from xform.interpreters.tangents import zero_of
from xform.lax import families
from xform.lax.arithmetic import add_p, mul_p
from xform.lax.bitwise import or_p
from xform.lax.comparison import eq_p, ne_p, select_n_p
from xform.lax.extremes import min_p
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, gather_p
from xform.lax.reductions import highest, lowest, reduce_max_p, reduce_min_p
from xform.lax.shapes import broadcast_in_dim, canonical_axes, expand_dims, iota_p, reshape
from xform.lax.slicing import concatenate, slice_in_dim

# Lengths of axes, and of arrays, from which on the rules below are faster, on processors with and without AVX-512.
_SHORT, _LONG, _LARGE = 32, 256, 2**15


def _arg_extreme(name: str, method: str, reduce_p: Primitive) -> Primitive:
    p = Primitive(name)

    def types(x: ShapedArray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> ShapedArray:
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(f"lax.{name}: axis {axis} is out of range for {x.str_short()}")
        if not x.shape[axis]:
            raise ValueError(f"lax.{name}: axis {axis} of {x.str_short()} is empty and has no extreme element")
        return ShapedArray(x.shape[:axis] + x.shape[axis + 1 :], index_dtype)

    def host(x: Any, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Any:
        return getattr(x, method)(axes[0]).astype(index_dtype)

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int], *, axes: tuple[int, ...], index_dtype: Any) -> Any:
        (x,), (d,), (a,) = args, dims, axes
        shifted = a + (a >= d)
        return p.bind(x, axes=(shifted,), index_dtype=index_dtype), d - (shifted < d)

    def first_hit(x: Any, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Any:
        """The least index of what equals the extreme. Two passes that XLA vectorises, against one that it doesn't."""
        kept = tuple(d for d in range(x.ndim) if d not in axes)
        extreme = broadcast_in_dim(reduce_p.bind(x, axes=axes), x.shape, kept)
        hit = or_p.bind(eq_p.bind(x, extreme), ne_p.bind(x, x))
        index = iota_p.bind(dtype=index_dtype, shape=x.shape, dimension=axes[0])
        return reduce_min_p.bind(select_n_p.bind(hit, index_dtype.type(highest(index_dtype)), index), axes=axes)

    def pairs(ctx: Context, x: Value, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Value:
        """Reduce pairs of element and index. One pass, faster than two over integers or few elements."""
        index = ctx.op("iota", [], x.aval.update(dtype=index_dtype), f"iota_dimension = {axes[0]} : i64")
        value, place = ShapedArray((), x.dtype), ShapedArray((), index_dtype)

        def body(ctx: Context, a: Value, i: Value, b: Value, j: Value) -> list[Value]:
            equal = families.compare(ctx, a, b, "EQ")
            first = ctx.op("and", [equal, families.compare(ctx, i, j, "LT")], equal.aval)
            keep = ctx.op("or", [families.compare(ctx, a, b, direction), first], equal.aval)
            if families.KINDS["float"](x.dtype):
                keep = ctx.op("or", [keep, families.compare(ctx, a, a, "NE")], equal.aval)
            return [ctx.op("select", [keep, a, b], value), ctx.op("select", [keep, i, j], place)]

        start = [ctx.constant(identity(x.dtype), x.dtype), ctx.constant(0, index_dtype)]
        outs = [ctx.out.update(dtype=x.dtype), ctx.out]
        region = ctx.region(body, [value, place, value, place])
        return ctx.op("reduce", [x, index, *start], outs, f"dimensions = {i64s(axes)}", [region])[1]

    def by_blocks(x: Any, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Any:
        """The first block with the extreme, and its place there. One pass that XLA vectorises, and little more."""
        (axis,), shape, n = axes, x.shape, x.shape[axes[0]]
        length = max(8, math.isqrt(n) // 4)
        count, rest = divmod(n, length)
        blocks = reshape(slice_in_dim(x, 0, n - rest, axis=axis), (*shape[:axis], count, length, *shape[axis + 1 :]))
        extremes = reduce_p.bind(blocks, axes=(axis + 1,))
        if rest:  # the last block overlaps the one before it
            last = reduce_p.bind(slice_in_dim(x, n - length, n, axis=axis), axes=axes)
            extremes = concatenate([extremes, expand_dims(last, axes)], axis)
        start = mul_p.bind(p.bind(extremes, axes=axes, index_dtype=index_dtype), index_dtype.type(length))
        start = min_p.bind(start, index_dtype.type(n - length))
        others = tuple(d for d in range(x.ndim) if d != axis)
        block = gather_p.bind(
            x,
            expand_dims(start, (start.ndim,)),
            dimension_numbers=GatherDimensionNumbers(axes, (), axes, others, tuple(range(len(others)))),
            slice_sizes=tuple(length if d == axis else 1 for d in range(x.ndim)),
            indices_are_sorted=False,
            unique_indices=True,
            mode=GatherScatterMode.PROMISE_IN_BOUNDS,
            fill_value=None,
        )
        return add_p.bind(start, p.bind(block, axes=axes, index_dtype=index_dtype))

    def lower(ctx: Context, x: Value, *, axes: tuple[int, ...], index_dtype: np.dtype) -> Value:
        n, is_float = x.shape[axes[0]], families.KINDS["float"](x.dtype)
        rule = lower_as(first_hit)
        if x.dtype.kind in "iu" or (is_float and n <= _SHORT):
            rule = pairs
        elif is_float and n >= _LONG and x.aval.size >= _LARGE and n <= dtypes.iinfo(index_dtype).max:
            rule = lower_as(by_blocks)
        return rule(ctx, x, axes=axes, index_dtype=index_dtype)

    def jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
        out = p.bind(*primals, **params)
        return out, zero_of(out)

    identity, direction = (lowest, "GT") if reduce_p is reduce_max_p else (highest, "LT")
    p.abstract_eval, p.host, p.batch, p.jvp, p.lower = types, host, batch, jvp, lower
    return p


argmax_p = _arg_extreme("argmax", "argmax", reduce_max_p)
argmin_p = _arg_extreme("argmin", "argmin", reduce_min_p)


def _arg(p: Primitive, operand: Any, axis: Any, index_dtype: Any) -> Any:
    index_dtype = np.dtype(dtypes.canonicalize_dtype(index_dtype))
    if not dtypes.issubdtype(index_dtype, np.integer):
        raise TypeError(f"lax.{p.name}: index_dtype must be an integer dtype, got {index_dtype}")
    axes = canonical_axes(p.name, operand, (axis,))
    return p.bind(operand, axes=axes, index_dtype=index_dtype)


@api_boundary
def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Index of the first largest element along `axis`; the first NaN counts as the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from xform import lax
    >>> int(lax.argmax(np.array([1.0, 3.0, 3.0]), 0, np.int32))
    1
    """
    return _arg(argmax_p, operand, axis, index_dtype)


@api_boundary
def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Index of the first smallest element along `axis`; the first NaN counts as the smallest."""
    return _arg(argmin_p, operand, axis, index_dtype)
