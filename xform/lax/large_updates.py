"""Updates of most of an array, at a place that is known, as arithmetic on all of it.

XLA on CPU writes an update into its operand, on one thread; where a stencil reads what it replaces, into a copy of it.
An operation on each element is part of the loop that computes the update, on all threads.

May import: `xform.core`, `xform.interpreters`, `lax.families`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.interpreters.lowering import Context, Value, i64s
from xform.lax.families import compare


def is_most(update: ShapedArray, x: ShapedArray) -> bool:
    """Whether an update is large enough to be worth an operation on all of `x`."""
    return 2 * update.size >= x.size


def place_of(ctx: Context, x: Value, update: Value, starts: Sequence[Value | Any]) -> list[int] | None:
    """Where the update begins along each axis, if that is known and the update worth it; else None."""
    if not ctx.takes_loops(x.aval) or not is_most(update.aval, x.aval):
        return None
    known = [ctx.scalar_of(s) if isinstance(s, Value) else s for s in starts]
    if any(s is None for s in known):
        return None
    return [max(0, min(int(s), n - m)) for s, n, m in zip(known, x.shape, update.shape, strict=True)]


def written(ctx: Context, x: Value, update: Value, place: Sequence[int]) -> Value:
    """`x` with the update at its place."""
    inside = None
    for axis, (start, n, m) in enumerate(zip(place, x.shape, update.shape, strict=True)):
        if m == n:
            continue
        index = ctx.op("iota", [], ShapedArray(x.shape, np.dtype(np.int32)), f"iota_dimension = {axis} : i64")
        for bound, direction in ((start, "GE"), (start + m, "LT")):
            if bound not in (0, n):
                within = compare(ctx, index, ctx.full(x.shape, bound, np.int32), direction)
                inside = within if inside is None else ctx.op("and", [inside, within], inside.aval)
    spread = _padded(ctx, x, update, place, 0.0)
    return spread if inside is None else ctx.op("select", [inside, spread, x], x.aval)


# What an operation takes beside a number to leave it as it is, zeros and infinities included.
_NEUTRAL = {"add": -0.0, "multiply": 1.0}


def has_neutral(operation: str, dtype: np.dtype) -> bool:
    """Whether there is such a number: none keeps the infinities of complex products."""
    return operation in _NEUTRAL and not (operation == "multiply" and dtype.kind == "c")


def combined(ctx: Context, operation: str, x: Value, update: Value, place: Sequence[int]) -> Value:
    """`x` combined with the update at its place."""
    return ctx.op(operation, [x, _padded(ctx, x, update, place, _NEUTRAL[operation])], x.aval)


def _padded(ctx: Context, x: Value, update: Value, place: Sequence[int], value: float) -> Value:
    high = [n - m - start for start, n, m in zip(place, x.shape, update.shape, strict=True)]
    if not any((*place, *high)):
        return update
    padding = f"edge_padding_low = {i64s(place)}, edge_padding_high = {i64s(high)}"
    attributes = f"{padding}, interior_padding = {i64s([0] * len(high))}"
    return ctx.op("pad", [update, ctx.constant(value, x.dtype)], x.aval, attributes)
