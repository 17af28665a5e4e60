"""Reductions over axes.

May import: `lax.families`, `lax.shapes`, the elementwise modules.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value, i64s
from xform.lax import families
from xform.lax.shapes import broadcast_in_dim, linear_jvp


def reduction(
    name: str, host: Callable[..., Any], *, accepts: str, lower: Callable[..., Value], jvp: Any = None
) -> Primitive:
    """Define a reduction over `axes` (a sorted tuple) that keeps the dtype."""
    p = Primitive(name)

    def types(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        families.check_kind(name, [x], accepts)
        if any(not 0 <= a < x.ndim for a in axes) or len(set(axes)) != len(axes):
            raise ValueError(f"lax.{name}: axes {axes} don't fit an operand of {x.str_short()}")
        return x.update(shape=tuple(n for i, n in enumerate(x.shape) if i not in axes))

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int], *, axes: tuple[int, ...]) -> Any:
        (x,), (d,) = args, dims
        shifted = tuple(a + (a >= d) for a in axes)
        return p.bind(x, axes=shifted), d - sum(a < d for a in shifted)

    p.abstract_eval = types
    p.host = host
    p.batch = batch
    p.lower = lower
    if jvp is not None:
        p.jvp = jvp
    return p


def lower_reduce(operation: str, identity: Callable[[np.dtype], Any]) -> Callable[..., Value]:
    """Lowering to stablehlo.reduce with one StableHLO operation."""

    def lower(ctx: Context, x: Value, *, axes: tuple[int, ...]) -> Value:
        scalar = ShapedArray((), x.dtype)
        body = ctx.region(lambda ctx, a, b: [ctx.op(operation, [a, b], scalar)], [scalar, scalar])
        start = ctx.constant(identity(x.dtype), x.dtype)
        return ctx.op("reduce", [x, start], ctx.out, f"dimensions = {i64s(axes)}", [body])

    return lower


def _sum_host(x: Any, *, axes: tuple[int, ...]) -> Any:
    return np.add.reduce(x, axes, dtype=x.dtype) if axes else x


reduce_sum_p = reduction("reduce_sum", _sum_host, accepts="number", lower=lower_reduce("add", lambda dtype: 0))
reduce_sum_p.jvp = lambda primals, ts, *, axes: linear_jvp(reduce_sum_p, primals[0], ts[0], {"axes": axes})


def _sum_transpose(ct: Any, x: Any, *, axes: tuple[int, ...]) -> list[Any]:
    kept = tuple(d for d in range(x.aval.ndim) if d not in axes)
    return [broadcast_in_dim(ct, x.aval.shape, kept)]


reduce_sum_p.transpose = _sum_transpose


def canonical_axes(name: str, x: Any, axes: Any) -> tuple[int, ...]:
    """Axes as a sorted tuple of distinct non-negative ints; None: all."""
    ndim = get_aval(x).ndim
    if axes is None:
        return tuple(range(ndim))
    axes = tuple(map(operator.index, axes)) if isinstance(axes, Sequence | np.ndarray) else (operator.index(axes),)
    out = tuple(sorted(a + ndim if a < 0 else a for a in axes))
    if any(not 0 <= a < ndim for a in out) or len(set(out)) != len(out):
        raise ValueError(f"lax.{name}: axes {axes} don't fit an operand of {get_aval(x).str_short()}")
    return out


@api_boundary
def reduce_sum(operand: Any, axes: Sequence[int]) -> Any:
    """Sum over `axes`."""
    axes = canonical_axes("reduce_sum", operand, axes)
    return reduce_sum_p.bind(operand, axes=axes) if axes else operand


families.Hooks.reduce_sum = reduce_sum

# Booleans and integers: bitwise or. The rest of the family follows the same pattern.
reduce_or_p = reduction(
    "reduce_or",
    lambda x, *, axes: np.bitwise_or.reduce(x, axes) if axes else x,
    accepts="bool or integer",
    lower=lower_reduce("or", lambda dtype: 0),
)
