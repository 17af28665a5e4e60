"""`roll`: elements moved along an axis; those that leave at the end come back at the beginning.

An operation of its own for the sake of its derivative, which rolls back: made of slices it would be a sum of padded
arrays, and stencils with periodic boundaries are made of it.

May import: `lax.shapes`, `lax.slicing`.
"""

from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.interpreters.lowering import Context, Value, i64s
from xform.lax.shapes import linear_unary


def _types(x: ShapedArray, *, shift: int, dimension: int) -> ShapedArray:
    if not 0 <= dimension < x.ndim or not 0 < shift < x.shape[dimension]:
        raise ValueError(f"roll: no shift by {shift} along axis {dimension} of {x.str_short()}")
    return x


def _host(x: Any, *, shift: int, dimension: int) -> Any:
    before = (slice(None),) * dimension
    out = np.empty(x.shape, x.dtype)
    out[(*before, slice(shift, None))] = x[(*before, slice(None, -shift))]
    out[(*before, slice(None, shift))] = x[(*before, slice(-shift, None))]
    return out


def _lower(ctx: Context, x: Value, *, shift: int, dimension: int) -> Value:
    def along(sizes: int) -> list[int]:
        return [sizes if i == dimension else n for i, n in enumerate(x.shape)]

    def part(x: Value, start: int, stop: int) -> Value:
        starts = [0] * x.aval.ndim
        limits = along(stop)
        starts[dimension] = start
        bounds = f"start_indices = {i64s(starts)}, limit_indices = {i64s(limits)}, strides = {i64s([1] * len(starts))}"
        return ctx.op("slice", [x], x.aval.update(shape=tuple(along(stop - start))), bounds)

    def joined(parts: list[Value]) -> Value:
        shape = tuple(along(sum(p.shape[dimension] for p in parts)))
        return ctx.op("concatenate", parts, x.aval.update(shape=shape), f"dimension = {dimension} : i64")

    if x.is_cheap and ctx.takes_loops(x.aval):
        x = ctx.once(x)  # a stencil rolls it several times
    n = x.shape[dimension]
    if dimension < x.aval.ndim - 1:
        return joined([part(x, n - shift, n), part(x, 0, n - shift)])
    # XLA copies each operand of a concatenation along the last axis, but reads a slice in place.
    if shift <= n // 2:
        return part(joined([part(x, n - shift, n), x]), 0, n)
    return part(joined([x, part(x, 0, n - shift)]), n - shift, 2 * n - shift)


roll_p = linear_unary(
    "roll",
    _types,
    _host,
    lambda ct, x, *, shift, dimension: roll_p.bind(ct, shift=x.shape[dimension] - shift, dimension=dimension),
    lambda axis, x, d, *, shift, dimension: (roll_p.bind(x, shift=shift, dimension=dimension + (dimension >= d)), d),
    _lower,
)
