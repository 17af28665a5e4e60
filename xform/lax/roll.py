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
    def part(start: int, stop: int) -> Value:
        starts, limits = [0] * x.aval.ndim, list(x.shape)
        starts[dimension], limits[dimension] = start, stop
        shape = tuple(b - a for a, b in zip(starts, limits, strict=True))
        bounds = f"start_indices = {i64s(starts)}, limit_indices = {i64s(limits)}, strides = {i64s([1] * len(shape))}"
        return ctx.op("slice", [x], x.aval.update(shape=shape), bounds)

    n = x.shape[dimension]
    return ctx.op("concatenate", [part(n - shift, n), part(0, n - shift)], ctx.out, f"dimension = {dimension} : i64")


roll_p = linear_unary(
    "roll",
    _types,
    _host,
    lambda ct, x, *, shift, dimension: roll_p.bind(ct, shift=x.shape[dimension] - shift, dimension=dimension),
    lambda axis, x, d, *, shift, dimension: (roll_p.bind(x, shift=shift, dimension=dimension + (dimension >= d)), d),
    _lower,
)
