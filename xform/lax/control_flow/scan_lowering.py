"""The loop that a `scan` is compiled to.

XLA's loop has one place for each carry. A step that computes a carry from its neighbours, or hands one on to another
place, can't write where it still reads: on CPU every step then ends with copies of whole arrays. Two steps to an
iteration need no copies: the second writes where the first has read.

May import: `xform.core`, `xform.interpreters`, `lax.arithmetic`, `lax.large_updates`.
"""

import math
from collections.abc import Sequence

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from xform.interpreters.lowering import Context, Value
from xform.lax.arithmetic import add_p
from xform.lax.large_updates import is_most

# The second step costs time to compile. It is worth it for carries of so many floats, if all the steps together
# compute so many, and if a step is so little work (in the unit of `Primitive.cost_again`) that its copies matter.
LARGE_CARRY = 4096
LONG_LOOP = 2**20
LARGEST_STEP = 32.0

# Operations that are arithmetic if they change, or take, most of an array; and what they change it by, or take.
_OF_MOST = {
    "dynamic_update_slice": lambda eqn: eqn.invars[1],
    "scatter_add": lambda eqn: eqn.invars[2],
    "gather": lambda eqn: eqn.outvars[0],
}


def lower(
    ctx: Context, *operands: Value, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int, num_carry: int,
    unroll: int,
) -> list[Value]:  # fmt: skip
    """A while loop over a counter; xs are sliced, ys updated in place."""
    n = num_consts + num_carry
    consts, carry, xs = operands[:num_consts], operands[num_consts:n], operands[n:]
    counter = ShapedArray((), np.dtype(np.int64 if length > 2**31 - 1 else np.int32))
    lent = [ctx.workspace(num_carry + k) if length else None for k in range(len(ctx.outs) - num_carry)]
    # Of different values: XLA makes one array of equal ones, which it then has to copy.
    ys = [
        ctx.full(a.shape, k if a.dtype.kind == "f" else 0, a.dtype) if work is None else work
        for k, (a, work) in enumerate(zip(ctx.outs[num_carry:], lent, strict=True))
    ]
    if not length:
        return [*carry, *ys]
    computed = [_is_computed(jaxpr.jaxpr, v) for v in jaxpr.jaxpr.outvars[:num_carry]]
    if unroll == 1 and ctx.platform == "cpu" and _is_worth_pairs(jaxpr.jaxpr, length, computed):
        unroll = 2

    def cond(c: Context, i: Value, *_: Value) -> list[Value]:
        direction = "comparison_direction = #stablehlo<comparison_direction LT>"
        bound = c.constant(length, counter.dtype)
        return [c.op("compare", [i, bound], ShapedArray((), bool), direction)]

    def step(c: Context, i: Value, now: Sequence[Value], ys: Sequence[Value]) -> tuple[Value, list[Value], list[Value]]:
        at = c.op("subtract", [c.constant(length - 1, counter.dtype), i], counter) if reverse else i
        zero = c.constant(0, counter.dtype)
        slices = []
        for x, var in zip(xs, jaxpr.jaxpr.invars[n:], strict=True):
            sizes = ", ".join(map(str, (1, *x.shape[1:])))
            sliced = c.op(
                "dynamic_slice", [x, at, *[zero] * (len(x.shape) - 1)], x.aval.update(shape=(1, *x.shape[1:])),
                f"slice_sizes = array<i64: {sizes}>",
            )  # fmt: skip
            row = c.op("reshape", [sliced], x.aval.update(shape=x.shape[1:]))
            slices.append(c.once(row) if c.platform == "cpu" and _is_reread(jaxpr.jaxpr, var) else row)
        with c.module.repeated(length):
            results = c.jaxpr(jaxpr.jaxpr, jaxpr.consts, [*consts, *now, *slices])
        new_ys = []
        for y, r in zip(ys, results[num_carry:], strict=True):
            row = c.op("reshape", [r], r.aval.update(shape=(1, *r.shape)))
            new_ys.append(c.op("dynamic_update_slice", [y, row, at, *[zero] * len(r.shape)], y.aval))
        return c.op("add", [i, c.constant(1, counter.dtype)], counter), results[:num_carry], new_ys

    def steps(c: Context, times: int, state: Sequence[Value]) -> list[Value]:
        i, now, ys = state[0], state[1 : 1 + num_carry], state[1 + num_carry :]
        for k in range(times):
            if k and c.platform == "cpu":
                # Or else XLA computes a step's results anew for each use that the next one makes of them.
                now = [c.once(v) if is_new else v for v, is_new in zip(now, computed, strict=True)]
            i, now, ys = step(c, i, now, ys)
        return [i, *now, *ys]

    state = steps(ctx, length % unroll, [ctx.constant(0, counter.dtype), *carry, *ys])
    avals = [v.aval for v in state]
    regions = [ctx.region(cond, avals), ctx.region(lambda c, *args: steps(c, unroll, args), avals)]
    outs = ctx.op("while", state, avals, "", regions)[1:]
    for work, y in zip(lent, outs[num_carry:], strict=True):
        if work is not None:
            ctx.give_back(work, y)
    return outs


def _is_computed(jaxpr: Jaxpr, var: Var | Literal) -> bool:
    """Whether a variable is a large array of floats that XLA would compute anew for each use."""
    if not _is_large(var.aval):
        return False
    eqn = next((e for e in jaxpr.eqns if any(v is var for v in e.outvars)), None)
    if eqn is None:
        return False
    if eqn.primitive.name == "jit":  # calls are inlined
        inner = eqn.params["jaxpr"].jaxpr
        return _is_computed(inner, inner.outvars[next(k for k, v in enumerate(eqn.outvars) if v is var)])
    return _cost(eqn) < math.inf


def _is_reread(jaxpr: Jaxpr, var: Var) -> bool:
    """Whether a large array of floats has several users."""
    return _is_large(var.aval) and sum(v is var for eqn in jaxpr.eqns for v in eqn.invars) > 1


def _is_large(aval: ShapedArray) -> bool:
    return aval.size >= LARGE_CARRY and aval.dtype in (np.float32, np.float64)


def _is_worth_pairs(jaxpr: Jaxpr, length: int, computed: Sequence[bool]) -> bool:
    sizes = [v.aval.size for v, is_new in zip(jaxpr.outvars, computed, strict=False) if is_new]
    return length > 1 and length * sum(sizes) >= LONG_LOOP and _work(jaxpr) <= LARGEST_STEP


def _work(jaxpr: Jaxpr) -> float:
    """What a step costs for each element; without end if there are products of matrices, sorts, loops and the like."""
    return sum(_work(eqn.params["jaxpr"].jaxpr) if eqn.primitive.name == "jit" else _cost(eqn) for eqn in jaxpr.eqns)


def _cost(eqn: Eqn) -> float:
    part = _OF_MOST.get(eqn.primitive.name)
    if part is not None and is_most(part(eqn).aval, eqn.invars[0].aval):
        return add_p.cost_again
    return eqn.primitive.cost_again
