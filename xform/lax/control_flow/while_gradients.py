"""Reverse mode of `while`, for loops whose number of steps is not known when tracing.

The forward loop, ``while_saving``, saves its carry at a few places that move on as it runs (`Schedule`). On the tape
comes the linear operation ``while_tangents``, whose transpose is the backward loop, ``while_back``: for one step after
the other, from the last to the first, it computes the carry before the step, from the last saved carry before that,
saving others on the way in the room that has become free, and applies the transposed step. All three are programs made
of `while`, with rules of their own where these are better than what the program would give: under `vmap` all lanes
share one schedule, and forward mode derives the steps, not the bookkeeping.

Where it is known when to stop, outside `jit` and `vmap`, every step goes on the tape; with a bound, `max_steps`, the
loop is a `scan` whose steps do nothing once it has ended.

May import: `lax.control_flow.while_loop`, `scan`, `cond`, the other modules of `lax`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.jaxpr import ClosedJaxpr, Eqn, eval_jaxpr
from xform.core.trace import Tracer
from xform.interpreters import host
from xform.interpreters.batching import batch_jaxpr, move_to
from xform.interpreters.forward import jvp_jaxpr, with_zeros
from xform.interpreters.lowering import Context, Value
from xform.interpreters.reverse import linearize_jaxpr, transpose_jaxpr
from xform.interpreters.staging import trace_to_closed
from xform.interpreters.tangents import Linear, Zero, add_tangents, instantiate, is_linear, is_zero, zero_of
from xform.lax.arithmetic import add, sub
from xform.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from xform.lax.calls import CallPrimitive, jit_p
from xform.lax.comparison import eq, ge, gt, lt, select_n
from xform.lax.control_flow import common
from xform.lax.control_flow.cond import cond
from xform.lax.control_flow.scan import scan
from xform.lax.control_flow.while_loop import (
    batch_operands,
    batched_loop,
    derived_loop,
    jvp_operands,
    masked_loop,
    masked_step,
    split_operands,
    while_loop,
    while_p,
)
from xform.lax.custom_calls import custom_linear_call_p
from xform.lax.dynamic_slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from xform.lax.extremes import max
from xform.lax.shapes import broadcast_in_dim, iota

ZERO, ONE, NONE, TOP_LEVEL = np.int32(0), np.int32(1), np.int32(-1), np.int32(2**31 - 1)


class Schedule(NamedTuple):
    """Which carries are saved: minimal repetition dynamic checkpointing (Wang, Moin, Iaccarino, 2009).

    Every step saves its result. A saved carry has a level; it may be dropped if a later one has a higher level. While
    there is a free slot, or one to be dropped (the latest), a result is saved at level 0; else it takes the place of
    the carry before it, one level higher, and thereby makes others before it droppable.

    The carries that may be dropped are always those right before the latest one above level 0, the peak, as far as
    their levels are lower. So a list of the slots in the order of time is all that needs to be kept.

    Attributes
    ----------
    times, levels, below : int32 arrays
        By slot, the number of steps before the saved carry; its level; and the slot of the carry saved before it. Slot
        0 holds the first carry for good.
    vacant : int32 array
        A stack of the free slots.
    n_vacant, top, peak : int32 scalars
        The height of that stack; the slots of the latest carry and of the peak, -1 if there is none.
    """

    times: Any
    levels: Any
    below: Any
    vacant: Any
    n_vacant: Any
    top: Any
    peak: Any

    @classmethod
    def start(cls, checkpoints: int) -> "Schedule":
        """With the first carry in slot 0."""
        zeros = _filled(checkpoints, ZERO)
        vacant = sub(np.int32(checkpoints - 1), iota(np.int32, checkpoints))
        return cls(zeros, _put(zeros, TOP_LEVEL, ZERO), zeros, vacant, np.int32(checkpoints - 1), ZERO, NONE)

    def save(self, time: Any) -> "Schedule":
        """Choose the slot, which is `top` then, for the carry after `time` steps."""
        times, levels, below, vacant, n_vacant, top, peak = self
        is_free = gt(n_vacant, ZERO)
        left = max(sub(n_vacant, ONE), ZERO)
        peak_or_0 = max(peak, ZERO)
        before_peak = _at(below, peak_or_0)
        lower = bitwise_and(ge(peak, ZERO), lt(_at(levels, before_peak), _at(levels, peak_or_0)))
        is_dropped = bitwise_and(bitwise_not(is_free), lower)
        is_new = bitwise_or(is_free, is_dropped)
        slot = select_n(is_free, select_n(is_dropped, top, before_peak), _at(vacant, left))
        before = _at(below, slot)  # all reads come before the writes, lest XLA copies the arrays
        below = _put(below, before, select_n(is_dropped, slot, peak))  # takes what is dropped out of the list
        return Schedule(
            _put(times, time, slot),
            _put(levels, select_n(is_new, add(_at(levels, top), ONE), ZERO), slot),
            _put(below, select_n(is_new, before, top), slot),
            vacant,
            left,
            slot,
            select_n(is_new, slot, peak),
        )

    def drop_latest(self) -> "Schedule":
        """Free the slot of the latest carry."""
        times, levels, below, vacant, n_vacant, top, peak = self
        return Schedule(
            times, levels, below, _put(vacant, top, n_vacant), add(n_vacant, ONE), _at(below, top),
            select_n(eq(peak, top), peak, NONE),
        )  # fmt: skip


N_SCHEDULE = len(Schedule._fields) + 1  # with the number of steps


def _filled(n: int, value: Any, shape: Sequence[int] = ()) -> Any:
    return broadcast_in_dim(value, (n, *shape), ())


def _at(x: Any, i: Any) -> Any:
    return dynamic_index_in_dim(x, i, 0, keepdims=False)


def _put(x: Any, row: Any, i: Any) -> Any:
    return dynamic_update_index_in_dim(x, row, i, 0)


def _call(closed: ClosedJaxpr, *args: Any) -> list[Any]:
    return eval_jaxpr(closed.jaxpr, closed.consts, *args)


def _without(aval: ShapedArray, dim: int | None) -> ShapedArray:
    """The aval of one lane."""
    return aval if dim is None else aval.update(shape=aval.shape[:dim] + aval.shape[dim + 1 :])


class LoopProgram(CallPrimitive):
    """An operation that is the program ``program(*operands, **params)``, where it has no rule of its own."""

    def __init__(self, name: str, program: Callable[..., Sequence[Any]]):
        super().__init__(name, lambda *args, **params: _call(self.expand(args, params), *args))
        self.program = program
        self.abstract_eval = lambda *avals, **params: self.expand(avals, params).out_avals
        self.host = lambda *args, **params: host.host_function(self.expand(args, params))(*args)
        self.lower = lambda ctx, *args, **params: self._lower(ctx, args, params)
        self.jvp = self.push = lambda primals, ts, **params: self.as_call("jvp", primals, ts, params)
        self.linearize = lambda primals, ts, **params: self.as_call("linearize", primals, ts, params)

    def expand(self, args: Sequence[Any], params: dict[str, Any]) -> ClosedJaxpr:
        """The program as a jaxpr, kept on that of the loop's body."""
        avals = [a if type(a) is ShapedArray else a.aval if type(a) is Value else get_aval(a) for a in args]
        cache = params["body_jaxpr"].cache
        key = (self.name, *avals, *[v if isinstance(v, int | tuple) else id(v) for v in params.values()])
        if key not in cache:
            closed, consts = trace_to_closed(lambda *xs: self.program(*xs, **params), avals, self.name)
            assert not consts
            cache[key] = closed, params  # keeps the jaxprs alive, so that their ids stay theirs
        return cache[key][0]

    def as_call(self, rule: str, args: Sequence[Any], more: Sequence[Any], params: dict[str, Any]) -> Any:
        """A rule of `jit`, applied to a call of the program."""
        return getattr(jit_p, rule)(args, more, jaxpr=self.expand(args, params), name=self.name)

    def batch_as_call(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        """The same for `vmap`."""
        avals = [_without(get_aval(a), d) for a, d in zip(args, dims, strict=True)]
        return jit_p.batch(axis, args, dims, jaxpr=self.expand(avals, params), name=self.name)

    def _lower(self, ctx: Context, args: Sequence[Value], params: dict[str, Any]) -> list[Value]:
        return ctx.call(self.expand(args, params), args)


# The forward loop: ``while_saving *cond_consts *body_consts *carry`` gives ``*carry n *schedule *saved``.


def _saving(*operands: Any, checkpoints: int, **loop: Any) -> list[Any]:
    cond_consts, body_consts, carry = split_operands(operands, loop["cond_nconsts"], loop["body_nconsts"])

    def step(s: Any) -> Any:
        n, carry, schedule, saved = s
        carry = _call(loop["body_jaxpr"], *body_consts, *carry)
        n = add(n, ONE)
        schedule = schedule.save(n)
        return n, carry, schedule, [_put(b, x, schedule.top) for b, x in zip(saved, carry, strict=True)]

    avals = map(get_aval, carry)
    saved = [_put(_filled(checkpoints, a.dtype.type(0), a.shape), x, ZERO) for a, x in zip(avals, carry)]
    n, carry, schedule, saved = while_loop(
        lambda s: _call(loop["cond_jaxpr"], *cond_consts, *s[1])[0],
        step,
        (ZERO, carry, Schedule.start(checkpoints), saved),
    )
    return [*carry, n, *schedule, *saved]


def _saving_jvp(primals: Sequence[Any], ts: Sequence[Any], *, checkpoints: int, **loop: Any) -> Any:
    operands, derived, nz = jvp_operands(primals, ts, **loop)
    flat = while_saving_p.bind(*operands, **derived, checkpoints=checkpoints)
    n = len(loop["body_jaxpr"].out_avals)
    k = n + sum(nz)
    rest, saved = flat[k : k + N_SCHEDULE], flat[k + N_SCHEDULE :]
    outs = [*flat[:n], *rest, *saved[:n]]
    nonzero = [*nz, *[False] * (N_SCHEDULE * (len(ts) // len(primals))), *nz]
    return outs, with_zeros(nonzero, outs, [*flat[n:k], *saved[n:]])


def _saving_batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, checkpoints: int, **loop: Any
) -> tuple[list[Any], list[int | None]]:
    operands, mapped, c = batch_operands(axis, args, dims, **loop)
    outs = while_saving_p.bind(*operands, **mapped, checkpoints=checkpoints)
    return outs, [*[0 if b else None for b in c], *[None] * N_SCHEDULE, *[1 if b else None for b in c]]


def _saving_dce(eqn: Eqn, used: list[bool]) -> tuple[Eqn, list[bool]]:
    """Where nobody needs what it saves, it is the loop."""
    n = len(eqn.params["body_jaxpr"].out_avals)
    if any(used[n:]):
        return eqn, used
    return eqn.replace(primitive=while_p, outvars=eqn.outvars[:n], params={**eqn.params, "max_steps": None}), used[:n]


while_saving_p = LoopProgram("while_saving", _saving)
while_saving_p.jvp = while_saving_p.push = _saving_jvp
while_saving_p.batch = _saving_batch
while_saving_p.dce = _saving_dce


# The tangents: ``while_tangents *cond_consts *body_consts n *schedule *saved *tangents`` gives the tangents of the
# carry. `nonzero` names the constants of the body and the carries that have tangents.


def _split_saved(
    operands: Sequence[Any], loop: dict[str, Any], terms: int = 1
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Constants of condition and body, schedule with the number of steps, saved carries, and the rest.

    If they are tangents, there may be several `terms` for each operand.
    """
    k = loop["cond_nconsts"] + loop["body_nconsts"]
    sizes = [k, N_SCHEDULE, len(loop["body_jaxpr"].out_avals)]
    i, j, n = (terms * sum(sizes[: m + 1]) for m in range(3))
    return list(operands[:i]), list(operands[i:j]), list(operands[j:n]), list(operands[n:])


def _tangents(*operands: Any, nonzero: tuple[bool, ...], **loop: Any) -> list[Any]:
    """Run the loop again, from its first carry, with tangents."""
    consts, _, saved, ts = _split_saved(operands, loop)
    k = loop["body_nconsts"]
    derived, _ = derived_loop(nonzero[:k], nonzero[k:], **loop)
    n = sum(nonzero[:k])
    carry = [_at(b, ZERO) for b in saved]
    outs = while_p.bind(*consts, *ts[:n], *carry, *ts[n:], **derived, checkpoints=saved[0].shape[0], max_steps=None)
    return outs[len(carry) :]


def _tangents_linear(rule: str) -> Callable[..., Any]:
    """The derivative: the same, if only tangents have tangents."""

    def derive(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
        n = len(primals) - sum(params["nonzero"])
        if not all(is_zero(t) for t in ts[:n]):
            return while_tangents_p.as_call(rule, primals, ts, params)
        outs = while_tangents_p.bind(*primals, **params)
        return outs, while_tangents_p.bind(*primals[:n], *map(instantiate, ts[n:]), **params)

    return derive


def _tangents_transpose(cts: Sequence[Any], *operands: Any, nonzero: tuple[bool, ...], **loop: Any) -> list[Any]:
    consts, schedule, saved, ts = _split_saved(operands, loop)
    k = loop["body_nconsts"]
    body = loop["body_jaxpr"]
    ct_consts = [instantiate(Zero(a.to_tangent_aval())) for a, z in zip(body.in_avals[:k], nonzero, strict=False) if z]
    outs = while_back_p.bind(
        *consts, *schedule, *saved, *ct_consts, *map(instantiate, cts), back_jaxpr=_back_step(body, nonzero), **loop
    )
    known = len(operands) - len(ts)
    return [*[None] * known, *[ct if is_linear(t) else None for t, ct in zip(ts, outs, strict=True)]]


def _back_step(body: ClosedJaxpr, nonzero: tuple[bool, ...]) -> ClosedJaxpr:
    """From (consts, carry before the step; cotangents of consts, of the new carry) to these of the consts and carry."""
    key = ("while_back_step", nonzero)
    if key in body.cache:
        return body.cache[key]
    n_in, n_out = len(body.in_avals), len(body.out_avals)
    k = n_in - n_out
    nz = nonzero[k:]
    split = linearize_jaxpr(body, nonzero, nz)
    linear = (False,) * len(split.residuals) + (True,) * sum(nonzero)
    transposed = transpose_jaxpr(split.linear, linear, (True,) * sum(nz), True).jaxpr
    n = sum(nonzero[:k])

    def program(*args: Any) -> list[Any]:
        found = [*args[:n_in], *_call(split.forward, *args[:n_in])]
        ct_consts, ct_carry = args[n_in : n_in + n], args[n_in + n :]
        outs = _call(transposed, *[found[i] for i in split.residuals], *ct_carry)
        return [*[add_tangents(a, b) for a, b in zip(ct_consts, outs[:n], strict=True)], *outs[n:]]

    ct_avals = [a.to_tangent_aval().strong for a, z in zip(body.in_avals, nonzero, strict=True) if z]
    closed, consts = trace_to_closed(program, [*body.in_avals, *ct_avals], f"{body.jaxpr.name}_back")
    body.cache[key] = common.with_consts(closed, consts)
    return body.cache[key]


def _tangents_batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    """As a linear function whose transpose is the mapped backward loop; the mapped program would save tangents, too."""
    n = len(args) - sum(params["nonzero"])
    places = [Linear(_without(get_aval(t), d)) for t, d in zip(args[n:], dims[n:], strict=True)]
    return custom_linear_call_p.batch(
        axis,
        args,
        dims,
        call=lambda *xs: _tangents(*xs, **params),
        n_consts=0,
        n_residuals=n,
        transpose=lambda known, cts: _tangents_transpose(cts, *known, *places, **params)[n:],
        name="while_tangents",
    )


while_tangents_p = LoopProgram("while_tangents", _tangents)
while_tangents_p.abstract_eval = (
    lambda *avals, nonzero, body_nconsts, **loop: list(  # the program may not exist
        avals[len(avals) - sum(nonzero[body_nconsts:]) :]
    )
)
while_tangents_p.jvp = _tangents_linear("jvp")
while_tangents_p.linearize = _tangents_linear("linearize")
while_tangents_p.transpose = _tangents_transpose
while_tangents_p.batch = _tangents_batch


# The backward loop: ``while_back *cond_consts *body_consts n *schedule *saved *carry`` gives the last carry, of
# ``back_jaxpr`` from ``(*body_consts, *state, *carry)`` to the new carry, applied for the state before each step.


def _back(*operands: Any, back_jaxpr: ClosedJaxpr, **loop: Any) -> list[Any]:
    consts, (n, *schedule), saved, carry = _split_saved(operands, loop)
    body_consts = consts[loop["cond_nconsts"] :]

    def step(s: Any) -> Any:
        i, schedule, saved, carry = s
        schedule = schedule.drop_latest()  # after i + 1 steps
        state = [_at(b, schedule.top) for b in saved]

        def advance(s: Any) -> Any:
            time, state, schedule, saved = s
            time, state = add(time, ONE), _call(loop["body_jaxpr"], *body_consts, *state)
            schedule = schedule.save(time)
            return time, state, schedule, [_put(b, x, schedule.top) for b, x in zip(saved, state, strict=True)]

        time = _at(schedule.times, schedule.top)
        _, state, schedule, saved = while_loop(lambda s: lt(s[0], i), advance, (time, state, schedule, saved))
        carry = _call(back_jaxpr, *body_consts, *state, *carry)
        return sub(i, ONE), schedule, saved, carry

    start = sub(n, ONE), Schedule(*schedule), saved, list(carry)
    return list(while_loop(lambda s: ge(s[0], 0), step, start)[3])


def _back_jvp(primals: Sequence[Any], ts: Sequence[Any], *, back_jaxpr: ClosedJaxpr, **loop: Any) -> Any:
    consts, schedule, saved, carry = _split_saved(primals, loop)
    terms = len(ts) // len(primals)
    const_ts, _, saved_ts, carry_ts = _split_saved(ts, loop, terms)
    body_ts = const_ts[terms * loop["cond_nconsts"] :]  # those of the condition don't matter
    nz_consts = tuple(not is_zero(t) for t in body_ts)
    derived, nz_state = derived_loop(nz_consts, [not is_zero(t) for t in saved_ts], **loop)
    nz = common.fixpoint(
        lambda c: jvp_jaxpr(back_jaxpr, (*nz_consts, *nz_state, *c))[1], [not is_zero(t) for t in carry_ts]
    )
    flat = while_back_p.bind(
        *consts, *[t for t in body_ts if not is_zero(t)], *schedule,
        *saved, *[instantiate(t) for t, z in zip(saved_ts, nz_state, strict=True) if z],
        *carry, *[instantiate(t) for t, z in zip(carry_ts, nz, strict=True) if z],
        **derived, back_jaxpr=common.jvp_in_groups(back_jaxpr, [nz_consts, nz_state, nz], nz),
    )  # fmt: skip
    n = len(carry)
    return flat[:n], with_zeros(nz, flat[:n], flat[n:])


def _back_batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, back_jaxpr: ClosedJaxpr, **loop: Any
) -> tuple[list[Any], list[int | None]]:
    size, name = axis.size, axis.axis_name
    sizes = cond_nconsts, body_nconsts = loop["cond_nconsts"], loop["body_nconsts"]
    consts, schedule, saved, carry = _split_saved(args, loop)
    d_consts, d_schedule, d_saved, d_carry = _split_saved(dims, loop)
    if any(d is not None for d in d_schedule):
        # Of a loop that was mapped as a program, or whose residuals left a `vmap`: lanes may have ended earlier than
        # their schedules say, so steps ask for the condition.
        body, back = (masked_step(loop["cond_jaxpr"], step, *sizes, ()) for step in (loop["body_jaxpr"], back_jaxpr))
        masked = {**loop, "body_jaxpr": body, "body_nconsts": cond_nconsts + body_nconsts, "back_jaxpr": back}
        again = [*args[:cond_nconsts], *args], [*dims[:cond_nconsts], *dims]
        return while_back_p.batch_as_call(axis, *again, **masked)
    b_consts = [d is not None for d in d_consts]
    batched = batched_loop(axis, [*b_consts, *[d is not None for d in d_saved]], **loop)
    b_state = batched.carry_batched
    known = (*b_consts[cond_nconsts:], *b_state)

    def step(c: tuple[bool, ...]) -> Sequence[bool]:
        return [True] * len(c) if batched.pred_batched else batch_jaxpr(back_jaxpr, size, name, (*known, *c))[1]

    c = common.fixpoint(step, [d is not None for d in d_carry])
    back, _ = batch_jaxpr(back_jaxpr, size, name, (*known, *c), c)
    consts = [x if d is None else move_to(x, d, size) for x, d in zip(consts, d_consts, strict=True)]
    if batched.pred_batched:
        back = masked_step(batched.cond_jaxpr, back, cond_nconsts, body_nconsts, (*known, *c))
        consts = [*consts[:cond_nconsts], *consts]
    outs = while_back_p.bind(
        *consts, *schedule,
        *[move_to(x, d, size, 1) if b else x for x, d, b in zip(saved, d_saved, b_state, strict=True)],
        *[move_to(x, d, size) if b else x for x, d, b in zip(carry, d_carry, c, strict=True)],
        **masked_loop(batched, *sizes), back_jaxpr=back,
    )  # fmt: skip
    return outs, [0 if b else None for b in c]


while_back_p = LoopProgram("while_back", _back)
while_back_p.jvp = while_back_p.push = _back_jvp
while_back_p.batch = _back_batch


# The rule of `while`.


def _linearize(
    primals: Sequence[Any], ts: Sequence[Any], *, checkpoints: int, max_steps: int | None, **loop: Any
) -> tuple[list[Any], list[Any]]:
    """Steps go on the tape as long as it is known whether there is another one."""
    if all(is_zero(t) for t in ts):
        outs = while_p.bind(*primals, **loop, checkpoints=checkpoints, max_steps=max_steps)
        return outs, [zero_of(o) for o in outs]
    cond_consts, body_consts, carry = split_operands(primals, loop["cond_nconsts"], loop["body_nconsts"])
    _, body_ts, carry_ts = split_operands(ts, loop["cond_nconsts"], loop["body_nconsts"])
    cond_jaxpr, body_jaxpr = loop["cond_jaxpr"], loop["body_jaxpr"]
    while not isinstance(pred := _call(cond_jaxpr, *cond_consts, *carry)[0], Tracer):
        if not pred:
            return carry, carry_ts
        nonzero = tuple(not is_zero(t) for t in (*body_ts, *carry_ts))
        split = linearize_jaxpr(body_jaxpr, nonzero)
        found = [*body_consts, *carry]
        flat = _call(split.forward, *found)
        found += flat
        carry = flat[: len(carry)]
        if any(split.nonzero_out):
            inputs = [found[i] for i in split.residuals] + [t for t in (*body_ts, *carry_ts) if not is_zero(t)]
            rest = iter(jit_p.bind(*inputs, jaxpr=split.linear, name="while_body"))
        carry_ts = [next(rest) if nz else zero_of(o) for o, nz in zip(carry, split.nonzero_out, strict=True)]
    if max_steps is not None:
        return _linearize_bounded(cond_consts, body_consts, carry, body_ts, carry_ts, max_steps, loop)
    nz_consts = [not is_zero(t) for t in body_ts]
    nz = common.fixpoint(
        lambda c: linearize_jaxpr(body_jaxpr, (*nz_consts, *c)).nonzero_out, [not is_zero(t) for t in carry_ts]
    )
    outs = while_saving_p.bind(*cond_consts, *body_consts, *carry, **loop, checkpoints=checkpoints)
    carry, saved = outs[: len(carry)], outs[len(carry) :]
    if not any(nz):
        return carry, [zero_of(o) for o in carry]
    tangents = [t for t in body_ts if not is_zero(t)]
    tangents += [instantiate(t) for t, z in zip(carry_ts, nz, strict=True) if z]
    operands = [*cond_consts, *body_consts, *saved, *tangents]
    rest = iter(while_tangents_p.bind(*operands, nonzero=(*nz_consts, *nz), **loop))
    return carry, [next(rest) if z else zero_of(o) for o, z in zip(carry, nz, strict=True)]


def _linearize_bounded(
    cond_consts: list[Any], body_consts: list[Any], carry: list[Any], body_ts: Sequence[Any], carry_ts: Sequence[Any],
    max_steps: int, loop: dict[str, Any],
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """As a scan, whose steps do nothing once the loop has ended."""
    cond_jaxpr, body_jaxpr = loop["cond_jaxpr"], loop["body_jaxpr"]
    primals = [*cond_consts, *body_consts, *carry]

    def program(*operands: Any) -> list[Any]:
        cond_consts, body_consts, carry = split_operands(operands, loop["cond_nconsts"], loop["body_nconsts"])

        def step(carry: Any, _: Any) -> Any:
            (pred,) = _call(cond_jaxpr, *cond_consts, *carry)
            return cond(pred, lambda c: _call(body_jaxpr, *body_consts, *c), lambda c: c, carry), None

        return scan(step, carry, None, length=max_steps)[0]

    key = ("while_bounded", id(cond_jaxpr), max_steps)
    if key not in body_jaxpr.cache:
        closed, _ = trace_to_closed(program, [get_aval(x) for x in primals], "while_bounded")
        body_jaxpr.cache[key] = closed, cond_jaxpr
    ts = [*map(zero_of, cond_consts), *body_ts, *carry_ts]
    return jit_p.linearize(primals, ts, jaxpr=body_jaxpr.cache[key][0], name="while_bounded")


while_p.linearize = _linearize
