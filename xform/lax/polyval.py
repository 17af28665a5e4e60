"""`polyval`: the value of a polynomial, by Horner's rule.

An operation of its own for the sake of its derivatives. That in x is the value of another polynomial, so that reverse
mode keeps x and the coefficients, and none of the steps; the transpose in the coefficients is a sequence of powers.

May import: `lax.control_flow`, `lax.stacking`, `lax.slicing`, `lax.reductions`, the elementwise modules.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import Zero, add_tangents, zero_of
from xform.lax.arithmetic import add_p, mul_p, zero_product_p
from xform.lax.control_flow.scan import scan
from xform.lax.reductions import reduce_sum_p
from xform.lax.shapes import broadcast_in_dim, full
from xform.lax.slicing import index_in_dim, slice_in_dim
from xform.lax.stacking import stack_p


def _types(c: ShapedArray, x: ShapedArray, *, unroll: int) -> ShapedArray:
    if c.ndim < 1 or c.shape[1:] not in ((), x.shape) or c.dtype != x.dtype or c.dtype == bool:
        raise TypeError(
            "lax.polyval: coefficients, along the first axis, are of x's dtype, each of rank 0 or x's shape, "
            f"got {c.str_short()} and {x.str_short()}"
        )
    return ShapedArray(x.shape, x.dtype)


def _host(c: Any, x: Any, *, unroll: int) -> Any:
    out = np.zeros(x.shape, x.dtype)
    for coefficient in c:
        out = out * x + coefficient
    return out


def _horner(c: Any, x: Any, *, unroll: int) -> Any:
    start = full(x.shape, 0, x.dtype)
    if c.shape[0] > unroll:
        return scan(lambda y, k: (add_p.bind(mul_p.bind(y, x), k), None), start, c, unroll=unroll)[0]
    for i in range(c.shape[0]):
        start = add_p.bind(mul_p.bind(start, x), index_in_dim(c, i, keepdims=False))
    return start


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, unroll: int) -> Any:
    (c, x), (gc, gx) = primals, ts
    out = polyval_p.bind(c, x, unroll=unroll)
    total: Any = None
    n = c.shape[0]
    if type(gx) is not Zero and n > 1:
        powers = broadcast_in_dim(np.arange(n - 1, 0, -1).astype(x.dtype), (n - 1, *c.shape[1:]), (0,))
        slope = polyval_p.bind(mul_p.bind(slice_in_dim(c, 0, n - 1), powers), x, unroll=unroll)
        total = mul_p.bind(gx, slope)
    if type(gc) is not Zero:
        term = polyval_p.bind(gc, x, unroll=unroll)
        total = term if total is None else add_tangents(total, term)
    return out, zero_of(out) if total is None else total


def _transpose(times: Callable[..., Any]) -> Callable[..., Any]:
    """The cotangent of each coefficient is that of the result, times a power of x."""

    def rule(ct: Any, c: Any, x: Any, *, unroll: int) -> list[Any]:
        n, each = c.aval.shape[0], len(c.aval.shape) > 1

        def step(t: Any, _: Any) -> Any:
            return times(t, x), t if each else reduce_sum_p.bind(t, axes=tuple(range(t.ndim))) if t.ndim else t

        if n > unroll:
            return [scan(step, ct, None, length=n, reverse=True, unroll=unroll)[1], None]
        parts = []
        for _ in range(n):
            ct, part = step(ct, None)
            parts.append(part)
        return [stack_p.bind(*parts[::-1], axis=0) if parts else full(c.aval.shape, 0, x.dtype), None]

    return rule


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, unroll: int) -> Any:
    (c, x), (dc, dx) = args, dims
    if dc is None and get_aval(c).ndim == 1:
        return polyval_p.bind(c, x, unroll=unroll), dx
    x = batching.move_to(x, dx, axis.size)
    c = batching.move_to(c, dc, axis.size, 1)
    if c.ndim < x.ndim + 1:
        c = broadcast_in_dim(c, (c.shape[0], *x.shape), (0, 1))
    return polyval_p.bind(c, x, unroll=unroll), 0


# polyval c x: the coefficients, from the highest power to the constant, are along the first axis of c. More than
# `unroll` of them are a loop.
polyval_p = Primitive("polyval")
polyval_p.abstract_eval = _types
polyval_p.host = _host
polyval_p.jvp = _jvp
polyval_p.transpose = _transpose(mul_p.bind)
polyval_p.transpose_marked = _transpose(zero_product_p.bind)
polyval_p.batch = _batch
polyval_p.lower = lower_as(_horner)
