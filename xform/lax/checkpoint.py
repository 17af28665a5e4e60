"""`checkpoint` as an operation: a call whose derivative keeps little and computes the rest again; `checkpoint_name`.

Its linear program starts with what is computed again. It stands on the tape as a call of its own, behind a barrier in
the compiled program, because XLA would otherwise find out that it computes the same as the forward program, and keep
everything.

Griewank & Walther, "Evaluating Derivatives" (2008), ch. 12.

May import: `xform.core`, `xform.interpreters`, `lax.calls`, `lax.custom_calls`, `lax.families`, `lax.shapes`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from xform.core import tree
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.core.jaxpr import ClosedJaxpr, Eqn, Literal, cached_on_jaxpr, eval_jaxpr
from xform.core.trace import Primitive
from xform.interpreters import host
from xform.interpreters.batching import batch_jaxpr, move_to
from xform.interpreters.forward import jvp_jaxpr, with_zeros
from xform.interpreters.logs import take_off
from xform.interpreters.lowering import Context, Value
from xform.interpreters.residuals import rematerialize
from xform.interpreters.reverse import LinearizedJaxpr, linearize_jaxpr, transpose_jaxpr
from xform.interpreters.staging import trace_to_closed
from xform.interpreters.tangents import Zero, is_linear, is_zero, zero_of
from xform.lax.calls import CallPrimitive, jit_p
from xform.lax.custom_calls import custom_vjp_call_p
from xform.lax.families import elementwise
from xform.lax.shapes import as_array

Policy = Callable[..., Any]


class Saveable:
    """What a policy may return: keep the value."""

    def __bool__(self) -> bool:
        return True


class Recompute:
    """What a policy may return: compute the value again."""

    def __bool__(self) -> bool:
        return False


class Offloadable(Saveable):
    """What a policy may return: keep the value in other memory. On CPU, where there is no other, it is just kept."""

    def __init__(self, src: str, dst: str):
        self.src, self.dst = src, dst


def nothing_saveable(prim: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep nothing but the arguments."""
    return False


def _run(*args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    derived, nonzero_out = jvp_jaxpr(jaxpr, tuple(not is_zero(t) for t in ts))
    flat = checkpoint_p.bind(*primals, *[t for t in ts if not is_zero(t)], jaxpr=derived, **params)
    n = len(jaxpr.out_avals)
    return flat[:n], with_zeros(nonzero_out, flat[:n], flat[n:])


@cached_on_jaxpr
def _inlined(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr without calls, into which a policy couldn't see, in the bodies of loops as well.

    Functions with a rule for `checkpoint` have it for their rule.
    """

    def evaluate(jaxpr: Any, consts: Sequence[Any], *args: Any) -> list[Any]:
        env: dict[int, Any] = {id(v): c for v, c in zip(jaxpr.constvars, consts, strict=True)}
        env.update({id(v): a for v, a in zip(jaxpr.invars, args, strict=True)})
        read = lambda v: v.val if type(v) is Literal else env[id(v)]  # noqa: E731
        for eqn in jaxpr.eqns:
            values = [read(v) for v in eqn.invars]
            state.source = eqn.source
            if eqn.primitive is jit_p:
                inner = eqn.params["jaxpr"]
                outs = evaluate(inner.jaxpr, inner.consts, *values)
            else:
                params = eqn.params
                if eqn.primitive.has("recompute") and "jaxpr" in params:
                    params = {**params, "jaxpr": _inlined(params["jaxpr"])}
                elif eqn.primitive is custom_vjp_call_p and params["remat"] is not None:
                    params = {**params, "rule": params["remat"]}
                out = eqn.primitive.bind(*values, **params)
                outs = out if eqn.primitive.multiple_results else [out]
            env.update({id(v): o for v, o in zip(eqn.outvars, outs, strict=True)})
        return [read(v) for v in jaxpr.outvars]

    outer = state.source
    try:
        inlined, consts = trace_to_closed(
            lambda *xs: evaluate(closed.jaxpr, closed.consts, *xs), closed.in_avals, closed.jaxpr.name
        )
    finally:
        state.source = outer
    jaxpr = inlined.jaxpr
    n = len(consts)
    jaxpr.constvars, jaxpr.invars = [*jaxpr.constvars, *jaxpr.invars[:n]], jaxpr.invars[n:]
    return ClosedJaxpr(jaxpr, [*inlined.consts, *consts])


@cached_on_jaxpr
def split_by_policy(closed: ClosedJaxpr, nonzero: tuple[bool, ...], policy: Policy) -> LinearizedJaxpr:
    """A jaxpr linearized, with the residuals that the policy lets it keep."""

    def keep(eqn: Eqn) -> bool:
        return eqn.primitive is saved_p or bool(policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params))

    return rematerialize(linearize_jaxpr(_inlined(closed), nonzero), keep, inside=True)


def _linearize(
    primals: Sequence[Any], ts: Sequence[Any], *, jaxpr: ClosedJaxpr, policy: Policy, barrier: bool, **params: Any
) -> Any:
    nonzero = tuple(not is_zero(t) for t in ts)
    split = split_by_policy(jaxpr, nonzero, policy)
    params = {"policy": policy, "barrier": barrier, **params}
    flat = checkpoint_p.bind(*primals, jaxpr=split.forward, **params)
    outs = flat[: len(split.nonzero_out)]
    if not any(split.nonzero_out):
        return outs, [zero_of(o) for o in outs]
    found = [*primals, *flat]
    residuals = [found[i] for i in split.residuals]
    params["differentiated"] = True
    linear_outs = iter(checkpoint_p.bind(*residuals, *[t for t in ts if not is_zero(t)], jaxpr=split.linear, **params))
    return outs, [next(linear_outs) if nz else zero_of(o) for o, nz in zip(outs, split.nonzero_out, strict=True)]


def _transpose(cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    linear = tuple(is_linear(a) for a in args)
    nonzero_ct = tuple(not is_zero(ct) for ct in cts)
    transposed, nonzero_out, logs = transpose_jaxpr(jaxpr, linear, nonzero_ct, with_logs=True)
    known = [a for a, lin in zip(args, linear, strict=True) if not lin]
    outs = checkpoint_p.bind(*known, *[ct for ct in cts if not is_zero(ct)], jaxpr=transposed, **params)
    found = iter(take_off(logs, outs))
    which = iter(nonzero_out)
    return [
        None if not lin else next(found) if next(which) else Zero(a.aval) for a, lin in zip(args, linear, strict=True)
    ]


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    args = [a if d is None else move_to(a, d, axis.size) for a, d in zip(args, dims, strict=True)]
    batched, batched_out = batch_jaxpr(jaxpr, axis.size, axis.axis_name, tuple(d is not None for d in dims))
    return checkpoint_p.bind(*args, jaxpr=batched, **params), [0 if b else None for b in batched_out]


def _lower(
    ctx: Context, *args: Value, jaxpr: ClosedJaxpr, differentiated: bool, barrier: bool, **params: Any
) -> list[Value]:
    if differentiated and barrier and args:
        args = tuple(ctx.op("optimization_barrier", args, [x.aval for x in args]))
    return ctx.call(jaxpr, args)


checkpoint_p = CallPrimitive("checkpoint", _run)
checkpoint_p.abstract_eval = lambda *avals, jaxpr, **params: jaxpr.out_avals
checkpoint_p.host = lambda *args, jaxpr, **params: host.host_function(jaxpr)(*args)
checkpoint_p.jvp = checkpoint_p.push = _jvp
checkpoint_p.linearize = _linearize
checkpoint_p.transpose = _transpose
checkpoint_p.batch = _batch
checkpoint_p.lower = _lower
checkpoint_p.dce = jit_p.dce


# What rules for `checkpoint` are made of: a value that is kept, whatever the policy says; and one that is computed in
# another way where it is computed again.

saved_p = elementwise("saved", lambda x: x, jvp=lambda g, ans, x: g, lower=lambda ctx, x: x)
alternative_p = elementwise(
    "alternative", lambda x, again: x, jvp=[lambda g, ans, x, again: g, None], lower=lambda ctx, x, again: x
)


def _alternative_recompute(
    eqn: Eqn, keep: Callable[[Eqn], bool], wanted: list[bool]
) -> tuple[list[Any], Eqn | None, Eqn]:
    x, again = eqn.invars
    forward = eqn.replace(invars=[x, x])
    return ([*eqn.outvars], None, forward) if keep(eqn) else ([], eqn.replace(invars=[again, again]), forward)


alternative_p.recompute = _alternative_recompute


def saved(x: Any) -> Any:
    """`x` itself, which `checkpoint` keeps."""
    return saved_p.bind(as_array(x))


def alternative(x: Any, again: Any) -> Any:
    """`x`, for which `checkpoint` computes `again` in the backward pass."""
    return alternative_p.bind(as_array(x), as_array(again))


# checkpoint_name: the identity, that gives a value a name by which a policy may choose it

name_p = elementwise("name", lambda x, *, name: x, jvp=lambda g, ans, x, *, name: g, lower=lambda ctx, x, *, name: x)


@api_boundary
def checkpoint_name(x: Any, name: str) -> Any:
    """`x` itself, under a name by which the policies of `checkpoint` may choose it.

    Parameters
    ----------
    x : pytree of arrays
    name : str

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> from xform.ad_checkpoint import checkpoint_name
    >>> f = lambda x: xnp.sin(checkpoint_name(xnp.sin(x), "inner"))
    >>> policy = xform.checkpoint_policies.save_only_these_names("inner")
    >>> float(xform.grad(xform.checkpoint(f, policy=policy))(0.0))
    1.0
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: the name must be a string, got {name!r}")
    return tree.map(lambda leaf: name_p.bind(as_array(leaf), name=name), x)
