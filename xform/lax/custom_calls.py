"""Operations with rules that a user wrote: what `custom_jvp`, `custom_vjp` and `custom_vmap` bind.

They carry Python functions. Evaluated or differentiated at once these simply run, so that they may look at values; the
function is traced to a jaxpr only when the operation becomes part of one.

A pullback is linear in its cotangent, hence determines the pushforward, its transpose. So a function that has only a
rule for reverse mode has forward mode too, if the rule's backward function can be transposed.

May import: `xform.core`, `xform.interpreters`, `lax.calls`, `lax.shapes`, `lax.reductions`.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xform.core import tree
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import UnexpectedTracerError
from xform.core.jaxpr import ClosedJaxpr, eval_jaxpr
from xform.core.trace import Primitive, Trace, Tracer
from xform.interpreters import batching, forward, host
from xform.interpreters.logs import collecting, record
from xform.interpreters.lowering import Value
from xform.interpreters.reverse import Tape, transpose_jaxpr
from xform.interpreters.staging import StagingTrace, trace_to_closed
from xform.interpreters.tangents import Zero, add_tangents, instantiate, is_linear, is_zero, zero_of
from xform.lax.calls import jit_p
from xform.lax.reductions import reduce_sum_p
from xform.lax.shapes import moveaxis


def innermost_trace(args: Sequence[Any]) -> Trace | None:
    """The interpretation that an operation on `args` belongs to."""
    trace = state.trace
    for a in args:
        if isinstance(a, Tracer) and (trace is None or a._trace.level > trace.level):
            trace = a._trace
    return trace


def apply(call: Any, args: Sequence[Any]) -> list[Any]:
    """Call a flat function or a jaxpr."""
    return eval_jaxpr(call.jaxpr, call.consts, *args) if isinstance(call, ClosedJaxpr) else call(*args)


class CustomCall(Primitive):
    """A function with rules, both given as parameters.

    ``call`` maps flat arguments to a list of results; in a jaxpr it is a jaxpr, whose first `n_consts` inputs are what
    the function had closed over.
    """

    remembers_types = False

    def __init__(self, name: str, on_tape: bool = False):
        super().__init__(name, multiple_results=True)
        self.on_tape = on_tape  # whether reverse mode's tape has it as an operation, not what it consists of
        self.abstract_eval = lambda *avals, call, **params: _closed(call, avals).out_avals
        self.host = lambda *args, call, **params: host.host_function(call)(*args)
        self.lower = lambda ctx, *args, call, **params: ctx.call(call, args)

    def bind(self, *args: Any, call: Any, n_consts: int = 0, **params: Any) -> list[Any]:
        trace = innermost_trace(args)
        if trace is None or (isinstance(trace, Tape) and not self.on_tape):
            return apply(call, args)
        if isinstance(trace, StagingTrace) and not isinstance(call, ClosedJaxpr):
            call, consts = trace_to_closed(call, [get_aval(a) for a in args], params["name"])
            n_consts += len(consts)
            return self.bind(*consts, *args, call=call, n_consts=n_consts, **params)  # which may be of another trace
        outs: list[Any] = trace.process(self, args, {"call": call, "n_consts": n_consts, **params})
        for out in outs:  # a rule that used what it closed over gives results of this very interpretation
            primal = getattr(out, "primal", None)
            if isinstance(primal, Tracer) and primal._trace.level >= trace.level:
                raise _closed_over(self.name.removesuffix("_call"), params["name"])
        return outs


def _closed(call: Any, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    return call if isinstance(call, ClosedJaxpr) else trace_to_closed(call, avals)[0]


def _check_closed_over(what: str, name: str, ts: Sequence[Any]) -> None:
    if not all(is_zero(t) for t in ts):
        raise _closed_over(what, name)


def _closed_over(what: str, name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{what} function {name} closes over a value that is being differentiated or mapped, for which it has no rule; "
        "make the value an argument (closure_convert does it)"
    )


def _run_rule(what: str, name: str, rule: Callable[..., Any], *args: Any) -> Any:
    """Run a rule, which may be long after the function was traced."""
    try:
        return rule(*args)
    except UnexpectedTracerError as error:
        raise UnexpectedTracerError(
            f"{what} function {name}: its rule is needed after the trace of a value that it closes over has ended; "
            f"make the value an argument (closure_convert does it), or in reverse mode a residual\n{error}"
        ) from None


def _batched(
    function: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Sequence[int | None], axis: Any
) -> list[Any]:
    """Map a flat function over an axis, which all its results get as their first."""
    outs, out_dims = batching.batch(function, args, dims, axis.size, axis.axis_name)
    return [batching.move_to(o, d, axis.size) for o, d in zip(outs, out_dims, strict=True)]


def _unmapped(t: Zero, dim: int | None) -> Zero:
    """A symbolic zero as the mapped function sees it."""
    shape = t.aval.shape
    return t if dim is None else Zero(t.aval.update(shape=shape[:dim] + shape[dim + 1 :]))


def _mapped(t: Zero, axis: Any) -> Zero:
    return Zero(t.aval.update(shape=(axis.size, *t.aval.shape)))


def _batched_with_zeros(
    function: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Sequence[int | None], axis: Any
) -> list[Any]:
    """`_batched` for functions that take and return symbolic zeros among arrays."""
    zeros: list[Zero | None] = []

    def flat(*xs: Any) -> list[Any]:
        given = iter(xs)
        outs = function(*[_unmapped(a, d) if is_zero(a) else next(given) for a, d in zip(args, dims, strict=True)])
        zeros[:] = [o if is_zero(o) else None for o in outs]
        return [o for o in outs if not is_zero(o)]

    arrays = [(a, d) for a, d in zip(args, dims, strict=True) if not is_zero(a)]
    outs = iter(_batched(flat, [a for a, _ in arrays], [d for _, d in arrays], axis))
    return [next(outs) if z is None else _mapped(z, axis) for z in zeros]


# Rules for forward mode.
#
# ``jvp(primals, tangents) -> (results, tangents of results)`` works on lists; tangents may be symbolic zeros.


def _jvp_call_jvp(
    primals: Sequence[Any], ts: Sequence[Any], *, call: Any, n_consts: int, jvp: Callable[..., Any], name: str
) -> Any:
    _check_closed_over("custom_jvp", name, ts[:n_consts])
    if all(is_zero(t) for t in ts):
        outs = custom_jvp_call_p.bind(*primals, call=call, n_consts=n_consts, jvp=jvp, name=name)
        return outs, [zero_of(o) for o in outs]
    return _run_rule("custom_jvp", name, jvp, primals[n_consts:], ts[n_consts:])


def _jvp_call_batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, call: Any, n_consts: int, jvp: Any, name: str
) -> Any:
    def batched_call(*xs: Any) -> list[Any]:
        return _batched(lambda *ys: apply(call, ys), xs, dims, axis)

    def batched_jvp(primals: Sequence[Any], ts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        own, n = dims[n_consts:], len(primals)

        def flat(*xs: Any) -> list[Any]:
            outs, tangents = jvp(xs[:n], xs[n:])
            return [*outs, *tangents]

        outs = _batched_with_zeros(flat, [*primals, *ts], [*own, *own], axis)
        return outs[: len(outs) // 2], outs[len(outs) // 2 :]

    outs = custom_jvp_call_p.bind(*args, call=batched_call, n_consts=n_consts, jvp=batched_jvp, name=name)
    return outs, [0] * len(outs)


custom_jvp_call_p = CustomCall("custom_jvp_call")
custom_jvp_call_p.jvp = _jvp_call_jvp
custom_jvp_call_p.batch = _jvp_call_batch


# Rules for vmap.
#
# ``rule(size, mapped, args) -> (results, which of them are mapped)``, of arrays with the mapped axis first.


def _vmap_call_jvp(primals: Sequence[Any], ts: Sequence[Any], *, call: Any, n_consts: int, rule: Any, name: str) -> Any:
    """Derivatives are those of the function, which they contain operation by operation."""
    return forward.push(lambda *xs: apply(call, xs), primals, ts)


def _vmap_call_batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, call: Any, n_consts: int, rule: Any, name: str
) -> Any:
    if any(d is not None for d in dims[:n_consts]):
        raise NotImplementedError(
            f"custom_vmap function {name} closes over a mapped value, for which it has no rule; make it an argument"
        )
    args = [a if d is None else batching.move_to(a, d, axis.size) for a, d in zip(args, dims, strict=True)]
    outs, mapped = rule(axis.size, [d is not None for d in dims[n_consts:]], args[n_consts:])
    return outs, [0 if m else None for m in mapped]


custom_vmap_call_p = CustomCall("custom_vmap_call")
custom_vmap_call_p.jvp = custom_vmap_call_p.push = _vmap_call_jvp
custom_vmap_call_p.batch = _vmap_call_batch


# Rules for reverse mode.


class Forward(NamedTuple):
    """What the forward function of a rule returns: results, residuals, and what tells the residuals' structure."""

    outs: Sequence[Any]
    residuals: Sequence[Any]
    structure: Any


class Backward(NamedTuple):
    """What the backward function of a rule returns: cotangents of all arguments, and a dictionary of logs."""

    cts: Sequence[Any]
    logs: dict[Any, Any]


class Rule(NamedTuple):
    """``fwd(primals, perturbed) -> Forward``, where `perturbed` tells which arguments are differentiated, and
    ``bwd(structure, residuals, cotangents) -> Backward``; cotangents may be symbolic zeros.
    """  # fmt: skip

    fwd: Callable[..., Forward]
    bwd: Callable[..., Backward]


def _vjp_call_jvp(
    primals: Sequence[Any], ts: Sequence[Any], *, n_consts: int, name: str, rule: Rule, **params: Any
) -> Any:
    _check_closed_over("custom_vjp", name, ts[:n_consts])
    perturbed = tuple(not is_zero(t) for t in ts[n_consts:])
    if not any(perturbed):
        outs = custom_vjp_call_p.bind(*primals, n_consts=n_consts, name=name, rule=rule, **params)
        return outs, [zero_of(o) for o in outs]
    outs, residuals, structure = _run_rule("custom_vjp", name, rule.fwd, primals[n_consts:], perturbed)
    zeros = [zero_of(o) for o in outs]
    differentiable = [get_aval(o).inexact for o in outs]
    tangents = iter(
        custom_linear_p.derive(
            *residuals,
            *[t for t in ts if not is_zero(t)],
            bwd=lambda res, cts: _run_rule("custom_vjp", name, rule.bwd, structure, res, cts),
            perturbed=perturbed,
            out_avals=tuple(get_aval(o).to_tangent_aval() for o in outs),
            name=name,
        )
    )
    return outs, [t if d else z for t, d, z in zip(tangents, differentiable, zeros, strict=True)]


def _vjp_call_batch(
    axis: Any,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    call: Any,
    n_consts: int,
    rule: Rule,
    remat: Rule | None,
    name: str,
) -> Any:
    def batched_call(*xs: Any) -> list[Any]:
        return _batched(lambda *ys: apply(call, ys), xs, dims, axis)

    own = dims[n_consts:]
    outs = custom_vjp_call_p.bind(
        *args,
        call=batched_call,
        n_consts=n_consts,
        rule=_batched_rule(rule, own, axis),
        remat=remat and _batched_rule(remat, own, axis),
        name=name,
    )
    return outs, [0] * len(outs)


def _batched_rule(rule: Rule, own: Sequence[int | None], axis: Any) -> Rule:
    fwd, bwd = rule

    def batched_fwd(primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        found: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            outs, residuals, structure = fwd(xs, perturbed)
            found[:] = [len(outs), structure]
            return [*outs, *residuals]

        values = _batched(flat, primals, own, axis)
        n, structure = found
        return Forward(values[:n], values[n:], structure)

    def batched_bwd(structure: Any, residuals: Sequence[Any], cts: Sequence[Any]) -> Backward:
        n, n_in = len(residuals), len(own)
        log_tree: Any = None

        def flat(*xs: Any) -> list[Any]:
            nonlocal log_tree
            cts, logs = bwd(structure, xs[:n], xs[n:])
            flat_logs, log_tree = tree.flatten(logs)
            return [*cts, *flat_logs]

        outs = _batched_with_zeros(flat, [*residuals, *cts], [0] * (n + len(cts)), axis)
        found = [_place(ct, d, axis) for ct, d in zip(outs[:n_in], own, strict=True)]
        return Backward(found, log_tree.unflatten(outs[n_in:]))

    return Rule(batched_fwd, batched_bwd)


def _place(ct: Any, dim: int | None, axis: Any) -> Any:
    """The cotangent of an argument that is mapped along `dim`, or the same for all, from those along axis 0."""
    if is_zero(ct):
        rest = ct.aval.shape[1:]
        return Zero(ct.aval.update(shape=rest if dim is None else (*rest[:dim], axis.size, *rest[dim:])))
    return reduce_sum_p.bind(ct, axes=(0,)) if dim is None else moveaxis(ct, 0, dim)


custom_vjp_call_p = CustomCall("custom_vjp_call")
custom_vjp_call_p.jvp = _vjp_call_jvp
custom_vjp_call_p.batch = _vjp_call_batch


class CustomLinear(Primitive):
    """``custom_linear *residuals *tangents``: the derivative that a backward function implies.

    On the tape it stands as an operation, whose transpose is the backward function, and in the jaxprs that tapes become
    part of. Where it is evaluated, or differentiated once more, it is the transpose of that.
    """

    remembers_types = False

    def bind(self, *args: Any, **params: Any) -> list[Any]:
        trace = innermost_trace(args)
        if not isinstance(trace, StagingTrace):
            return self.pushforward(*args, **params)
        out: list[Any] = trace.process(self, args, params)
        return out

    def derive(self, *args: Any, **params: Any) -> list[Any]:
        """The derivative of a call: an operation on the tape only, as the backward function may close over tracers."""
        return (self.bind if isinstance(innermost_trace(args), Tape) else self.pushforward)(*args, **params)

    def pushforward(self, *args: Any, **params: Any) -> list[Any]:
        """Operation by operation."""
        closed, consts = _pushforward([get_aval(a) for a in args], **params)
        return apply(closed, [*consts, *args])


def _pushforward(
    in_avals: Sequence[ShapedArray], bwd: Any, perturbed: Sequence[bool], out_avals: Sequence[ShapedArray], name: str
) -> tuple[ClosedJaxpr, list[Any]]:
    """The transpose of a backward function, whose leading inputs are what that closes over."""
    n = len(in_avals) - sum(perturbed)

    def pullback(*xs: Any) -> list[Any]:
        cts, _ = bwd(xs[:n], [x if a.inexact else Zero(a) for x, a in zip(xs[n:], out_avals, strict=True)])
        return [instantiate(ct) for ct, p in zip(cts, perturbed, strict=True) if p]

    closed, consts = trace_to_closed(pullback, [*in_avals[:n], *out_avals], name)
    linear = (False,) * (len(consts) + n) + tuple(a.inexact for a in out_avals)
    try:
        transposed = transpose_jaxpr(closed, linear, (True,) * sum(perturbed), True).jaxpr
    except NotImplementedError as error:
        raise NotImplementedError(
            f"forward mode through custom_vjp function {name}: its bwd is not linear in the cotangent ({error}); "
            "give it a rule by custom_jvp"
        ) from None
    return transposed, consts


_programs: Any = weakref.WeakKeyDictionary()


def _linear_program(args: Sequence[Any], bwd: Any, **params: Any) -> ClosedJaxpr:
    """The pushforward for arguments of these types, kept as long as the backward function."""
    programs = _programs.setdefault(bwd, {})
    avals = tuple(x.aval if isinstance(x, Value) else get_aval(x) for x in args)
    if avals not in programs:
        programs[avals] = forward.with_consts(*_pushforward(avals, bwd=bwd, **params))
    found: ClosedJaxpr = programs[avals]
    return found


def _linear_transpose(cts: Sequence[Any], *args: Any, bwd: Any, perturbed: Sequence[bool], **params: Any) -> list[Any]:
    n = len(args) - sum(perturbed)
    outer, state.logs = state.logs, None  # what the backward function differentiates itself is another pass
    try:
        found, logs = bwd(args[:n], cts)
    finally:
        state.logs = outer
    record(logs)
    return [*[None] * n, *[ct for ct, p in zip(found, perturbed, strict=True) if p]]


custom_linear_p = CustomLinear("custom_linear", multiple_results=True)
custom_linear_p.abstract_eval = lambda *avals, out_avals, **params: list(out_avals)
custom_linear_p.host = lambda *args, **params: host.host_function(_linear_program(args, **params))(*args)
custom_linear_p.lower = lambda ctx, *args, **params: ctx.call(_linear_program(args, **params), args)
custom_linear_p.transpose = _linear_transpose


# Linear functions with transposes.
#
# Operands are residuals, then what the function is linear in; ``transpose(residuals, cotangents) -> cotangents`` of the
# latter.


def _linear_call_derivative(rule: str) -> Callable[..., Any]:
    """The function of the tangents, and in the direction of residuals the derivative of a call of the function."""

    def derive(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
        n = params["n_consts"] + params["n_residuals"]
        outs = custom_linear_call_p.bind(*primals, **params)
        tangents: list[Any] = [zero_of(o) for o in outs]
        if not all(is_zero(t) for t in ts[n:]):
            tangents = custom_linear_call_p.bind(*primals[:n], *map(instantiate, ts[n:]), **params)
        if not all(is_zero(t) for t in ts[:n]):
            closed, consts = trace_to_closed(
                lambda *xs: apply(params["call"], xs), [get_aval(p) for p in primals], params["name"]
            )
            directions = [*map(zero_of, consts), *ts[:n], *map(zero_of, primals[n:])]
            _, more = getattr(jit_p, rule)([*consts, *primals], directions, jaxpr=closed, name=params["name"])
            tangents = [add_tangents(t, m) for t, m in zip(tangents, more, strict=True)]
        return outs, tangents

    return derive


def _linear_call_transpose(
    cts: Sequence[Any], *args: Any, call: Any, n_consts: int, n_residuals: int, transpose: Any, name: str
) -> list[Any]:
    """The transpose as a linear function, whose transpose is the function."""
    n = n_consts + n_residuals
    if any(is_linear(a) for a in args[:n]):
        raise TypeError(f"linear_call of {name}: it is being transposed with respect to its residual arguments")

    def transposed(*xs: Any) -> list[Any]:
        with collecting(None):
            return list(transpose(xs[n_consts:n], xs[n:]))

    outs = custom_linear_call_p.bind(
        *args[:n],
        *map(instantiate, cts),
        call=transposed,
        n_residuals=n,
        transpose=lambda residuals, cts: apply(call, [*residuals, *cts]),
        name=name,
    )
    return [*[None] * n, *[ct if is_linear(a) else None for a, ct in zip(args[n:], outs, strict=True)]]


def _linear_call_batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, call: Any, n_consts: int, n_residuals: int,
    transpose: Any, name: str,
) -> Any:  # fmt: skip
    own = dims[n_consts:]

    def batched_call(*xs: Any) -> list[Any]:
        return _batched(lambda *ys: apply(call, ys), xs, dims, axis)

    def batched_transpose(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        def flat(*xs: Any) -> list[Any]:
            return list(transpose(xs[:n_residuals], xs[n_residuals:]))

        outs = _batched(flat, [*residuals, *cts], [*own[:n_residuals], *[0] * len(cts)], axis)
        return [_place(ct, d, axis) for ct, d in zip(outs, own[n_residuals:], strict=True)]

    outs = custom_linear_call_p.bind(
        *args, call=batched_call, n_consts=n_consts, n_residuals=n_residuals, transpose=batched_transpose, name=name
    )
    return outs, [0] * len(outs)


custom_linear_call_p = CustomCall("linear_call", on_tape=True)
custom_linear_call_p.jvp = _linear_call_derivative("jvp")
custom_linear_call_p.linearize = _linear_call_derivative("linearize")
custom_linear_call_p.push = lambda primals, ts, *, call, **params: forward.push(
    lambda *xs: apply(call, xs), primals, ts
)
custom_linear_call_p.transpose = _linear_call_transpose
custom_linear_call_p.batch = _linear_call_batch
