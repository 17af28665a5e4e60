"""`jit` as an operation: a call of a jaxpr, compiled when it is evaluated, one function when it is lowered.

The jaxpr of a call has no constants; what the function closed over are leading operands.

May import: `xform.core`, `xform.interpreters`.
"""

from collections.abc import Sequence
from typing import Any

from xform.core.config import state
from xform.core.jaxpr import ClosedJaxpr, Eqn, eval_jaxpr
from xform.core.trace import Primitive
from xform.interpreters import execution, host, passes
from xform.interpreters.batching import batch_jaxpr, move_to
from xform.interpreters.forward import jvp_jaxpr, with_zeros
from xform.interpreters.logs import take_off
from xform.interpreters.lowering import Context, Value
from xform.interpreters.residuals import choose_residuals
from xform.interpreters.reverse import transpose_jaxpr
from xform.interpreters.tangents import Zero, is_linear, is_zero, zero_of


class CallPrimitive(Primitive):
    """A primitive that, evaluated on concrete arguments, does not use a host rule but runs a program."""

    remembers_types = False

    def __init__(self, name: str, run: Any):
        super().__init__(name, multiple_results=True)
        self.run = run

    def evaluate(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        return self.run(*args, **params)


def _run(*args: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    if state.disable_jit or state.debug_nans or state.debug_infs:
        return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
    if host.prefers_host(jaxpr):
        return host.run(jaxpr, args)
    return execution.run(jaxpr, args)


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, jaxpr: ClosedJaxpr, name: str) -> Any:
    nonzero = tuple(not is_zero(t) for t in ts)
    derived, nonzero_out = jvp_jaxpr(jaxpr, nonzero)
    flat = jit_p.bind(*primals, *[t for t in ts if not is_zero(t)], jaxpr=derived, name=name)
    n_out = len(jaxpr.out_avals)
    return flat[:n_out], with_zeros(nonzero_out, flat[:n_out], flat[n_out:])


def _linearize(primals: Sequence[Any], ts: Sequence[Any], *, jaxpr: ClosedJaxpr, name: str) -> Any:
    nonzero = tuple(not is_zero(t) for t in ts)
    split = choose_residuals(jaxpr, nonzero, None, (True,) * len(nonzero))
    flat = jit_p.bind(*primals, jaxpr=split.forward, name=name)
    outs = flat[: len(split.nonzero_out)]
    if not any(split.nonzero_out):
        return outs, [zero_of(o) for o in outs]
    found = [*primals, *flat]
    residuals = [found[i] for i in split.residuals]
    linear_outs = iter(jit_p.bind(*residuals, *[t for t in ts if not is_zero(t)], jaxpr=split.linear, name=name))
    return outs, [next(linear_outs) if nz else zero_of(o) for o, nz in zip(outs, split.nonzero_out, strict=True)]


def _transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, name: str) -> list[Any]:
    linear = tuple(is_linear(a) for a in args)
    nonzero_ct = tuple(not is_zero(ct) for ct in cts)
    transposed, nonzero_out, logs = transpose_jaxpr(jaxpr, linear, nonzero_ct, with_logs=True)
    known = [a for a, lin in zip(args, linear, strict=True) if not lin]
    outs = jit_p.bind(*known, *[ct for ct in cts if not is_zero(ct)], jaxpr=transposed, name=name)
    found = iter(take_off(logs, outs))
    which = iter(nonzero_out)
    return [
        None if not lin else next(found) if next(which) else Zero(a.aval) for a, lin in zip(args, linear, strict=True)
    ]


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, name: str) -> Any:
    args = [a if d is None else move_to(a, d, axis.size) for a, d in zip(args, dims, strict=True)]
    batched, batched_out = batch_jaxpr(jaxpr, axis.size, axis.axis_name, tuple(d is not None for d in dims))
    outs = jit_p.bind(*args, jaxpr=batched, name=name)
    return outs, [0 if b else None for b in batched_out]


def _lower(ctx: Context, *args: Value, jaxpr: ClosedJaxpr, name: str) -> list[Value]:
    return ctx.call(jaxpr, args)


def _dce(eqn: Eqn, used: list[bool]) -> tuple[Eqn, list[bool]]:
    key = ("dce", tuple(used))
    closed = eqn.params["jaxpr"]
    if key not in closed.cache:
        closed.cache[key] = passes.dead_code_closed(closed, used)
    jaxpr, used_inputs = closed.cache[key]
    invars = [v for v, u in zip(eqn.invars, used_inputs, strict=True) if u]
    outvars = [v for v, u in zip(eqn.outvars, used, strict=True) if u]
    return eqn.replace(invars=invars, outvars=outvars, params={**eqn.params, "jaxpr": jaxpr}), [True] * len(outvars)


jit_p = CallPrimitive("jit", _run)
jit_p.abstract_eval = lambda *avals, jaxpr, name: jaxpr.out_avals
jit_p.host = lambda *args, jaxpr, name: host.host_function(jaxpr)(*args)
jit_p.is_cheap_on_host = True
jit_p.jvp = jit_p.push = _jvp
jit_p.linearize = _linearize
jit_p.transpose = _transpose
jit_p.batch = _batch
jit_p.lower = _lower
jit_p.dce = _dce
