"""`scan`: a loop of known length over leading axes, with a carry.

``scan[jaxpr length reverse num_consts num_carry unroll] *consts *carry *xs`` gives ``*carry *ys``.

May import: `lax.control_flow.common`, `lax.control_flow.scan_lowering`, the other modules of `lax`.
"""

import operator
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from xform.core import tree
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from xform.core.trace import evaluate
from xform.interpreters import execution, passes
from xform.interpreters.batching import batch_jaxpr, move_to
from xform.interpreters.forward import jvp_jaxpr, jvp_jaxpr_fixed, with_zeros
from xform.interpreters.logs import take_off
from xform.interpreters.residuals import choose_residuals, recompute
from xform.interpreters.reverse import linearize_jaxpr, transpose_jaxpr
from xform.interpreters.tangents import Zero, add_tangents, instantiate, is_linear, is_zero, zero_of
from xform.lax.calls import CallPrimitive
from xform.lax.control_flow import common
from xform.lax.control_flow.scan_lowering import lower
from xform.lax.shapes import expand_dims
from xform.lax.slicing import concatenate, index_in_dim


def _split(args: Sequence[Any], num_consts: int, num_carry: int) -> tuple[list[Any], list[Any], list[Any]]:
    n = num_consts + num_carry
    return list(args[:num_consts]), list(args[num_consts:n]), list(args[n:])


def _run(
    *args: Any, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int, num_carry: int, unroll: int
) -> list[Any]:
    """On the host if the loop is short, else compiled."""
    params = {
        "jaxpr": jaxpr, "length": length, "reverse": reverse, "num_consts": num_consts, "num_carry": num_carry,
        "unroll": unroll,
    }  # fmt: skip
    if length * (len(jaxpr.eqns) + 1) <= common.HOST_BUDGET or common.debugging():
        return evaluate(scan_p, args, params)
    return execution.run(common.program_of(scan_p, args, params, jaxpr), args)


def _host(
    *args: Any, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int, num_carry: int, unroll: int
) -> list[Any]:
    consts, carry, xs = _split(args, num_consts, num_carry)
    step = common.host_step(jaxpr)
    ys = [np.empty((length, *a.shape), a.dtype) for a in jaxpr.out_avals[num_carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        out = step(*consts, *carry, *[x[i] for x in xs])
        carry = list(out[:num_carry])
        for y, value in zip(ys, out[num_carry:], strict=True):
            y[i] = value
    return [*carry, *ys]


def _types(
    *avals: ShapedArray,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
    unroll: int,
) -> list[ShapedArray]:
    outs = jaxpr.out_avals
    return outs[:num_carry] + [a.update(shape=(length, *a.shape)) for a in outs[num_carry:]]


def _reorder(derived: ClosedJaxpr, order: Sequence[int], out_order: Sequence[int]) -> ClosedJaxpr:
    """Permute inputs and results of a jaxpr."""
    jaxpr = derived.jaxpr
    invars = [jaxpr.invars[i] for i in order]
    outvars = [jaxpr.outvars[i] for i in out_order]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, invars, outvars, jaxpr.eqns, jaxpr.name), derived.consts)


def _jvp(
    primals: Sequence[Any],
    ts: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> Any:
    consts, carry, xs = _split(primals, num_consts, num_carry)
    terms = len(ts) // len(primals)  # tangents of each operand
    const_ts, carry_ts, xs_ts = _split(ts, terms * num_consts, terms * num_carry)
    nz_consts, nz_xs = [not is_zero(t) for t in const_ts], [not is_zero(t) for t in xs_ts]
    nz = common.fixpoint(
        lambda c: jvp_jaxpr(jaxpr, (*nz_consts, *c, *nz_xs))[1][: terms * num_carry],
        [not is_zero(t) for t in carry_ts],
    )
    nonzero = (*nz_consts, *nz, *nz_xs)
    nonzero_out = (*nz, *jvp_jaxpr(jaxpr, nonzero)[1][terms * num_carry :])
    derived = jvp_jaxpr_fixed(jaxpr, nonzero, nonzero_out)
    const_ts = [t for t in const_ts if not is_zero(t)]
    carry_ts = [instantiate(t) for t, z in zip(carry_ts, nz, strict=True) if z]
    xs_ts = [t for t in xs_ts if not is_zero(t)]
    # The derived body has all primals, then all tangents; consts, carry and xs must each be together.
    n, n_out = len(primals), len(jaxpr.out_avals)
    t_consts, t_carry = n + len(const_ts), n + len(const_ts) + len(carry_ts)
    n_c = num_consts + num_carry
    order = [
        *range(num_consts), *range(n, t_consts), *range(num_consts, n_c), *range(t_consts, t_carry),
        *range(n_c, n), *range(t_carry, t_carry + len(xs_ts)),
    ]  # fmt: skip
    k = n_out + sum(nz)
    out_order = [
        *range(num_carry),
        *range(n_out, k),
        *range(num_carry, n_out),
        *range(k, n_out + sum(nonzero_out)),
    ]
    key = ("scan_jvp", nonzero)
    if key not in jaxpr.cache:
        jaxpr.cache[key] = _reorder(derived, order, out_order)
    flat = scan_p.bind(
        *consts, *const_ts, *carry, *carry_ts, *xs, *xs_ts, jaxpr=jaxpr.cache[key],
        num_consts=num_consts + len(const_ts), num_carry=num_carry + len(carry_ts), **params,
    )  # fmt: skip
    c = num_carry + len(carry_ts)
    n_ys = n_out - num_carry
    outs = [*flat[:num_carry], *flat[c : c + n_ys]]
    return outs, with_zeros(nonzero_out, outs, [*flat[num_carry:c], *flat[c + n_ys :]])


def _linearize(
    primals: Sequence[Any],
    ts: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> Any:
    """Forward scan with stacked residuals, and a linear scan over them.

    A residual that is a constant of the loop is not stacked, and one that is among the xs is not stored again.
    """
    const_ts, carry_ts, xs_ts = _split(ts, num_consts, num_carry)
    nz_consts, nz_xs = [not is_zero(t) for t in const_ts], [not is_zero(t) for t in xs_ts]
    nz = common.fixpoint(
        lambda c: linearize_jaxpr(jaxpr, (*nz_consts, *c, *nz_xs)).nonzero_out[:num_carry],
        [not is_zero(t) for t in carry_ts],
    )
    nonzero = (*nz_consts, *nz, *nz_xs)
    nonzero_out = (*nz, *linearize_jaxpr(jaxpr, nonzero).nonzero_out[num_carry:])
    forward, linear, invariant, stacked = _split_body(jaxpr, nonzero, nonzero_out, num_consts, num_carry)
    flat = scan_p.bind(*primals, jaxpr=forward, num_consts=num_consts, num_carry=num_carry, **params)
    n_out = len(nonzero_out)
    outs = flat[:n_out]
    if not any(nonzero_out):
        return outs, [zero_of(o) for o in outs]
    found = [*primals, *flat]
    const_ts = [t for t in const_ts if not is_zero(t)]
    carry_ts = [instantiate(t) for t, z in zip(carry_ts, nz, strict=True) if z]
    xs_ts = [t for t in xs_ts if not is_zero(t)]
    rest = iter(
        scan_p.bind(
            *[found[i] for i in invariant],
            *const_ts,
            *carry_ts,
            *[found[i] for i in stacked],
            *xs_ts,
            jaxpr=linear,
            num_consts=len(invariant) + len(const_ts),
            num_carry=len(carry_ts),
            **params,
        )
    )
    return outs, [next(rest) if z else zero_of(o) for o, z in zip(outs, nonzero_out, strict=True)]


def _split_body(
    jaxpr: ClosedJaxpr,
    nonzero: tuple[bool, ...],
    nonzero_out: tuple[bool, ...],
    num_consts: int,
    num_carry: int,
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[int], list[int]]:
    """Forward and linear bodies, and where among the scan's operands and results the residuals are found.

    `invariant` indexes constants, `stacked` operands or results with a leading axis.
    """
    key = ("scan_linearize", nonzero, nonzero_out, num_consts, num_carry)
    if key in jaxpr.cache:
        return jaxpr.cache[key]
    free = tuple(not num_consts <= i < num_consts + num_carry for i in range(len(nonzero)))  # the carry must be stacked
    split = choose_residuals(jaxpr, nonzero, nonzero_out, free)
    n_in, n_c = len(nonzero), num_consts + num_carry
    fwd = split.forward.jaxpr
    outvars = list(fwd.outvars)
    where: list[int] = []  # for each residual: index into [*operands, *results of the forward scan]
    for i in split.residuals:
        if i < num_consts or n_c <= i < n_in or (i >= n_in + num_carry):
            where.append(i)  # a constant, one of the xs, or one of the ys
        else:  # the carry before the step, or a carry result: must be stacked
            atom = fwd.invars[i] if i < n_in else fwd.outvars[i - n_in]
            where.append(n_in + len(outvars))
            outvars.append(atom)
    forward = ClosedJaxpr(Jaxpr(fwd.constvars, fwd.invars, outvars, fwd.eqns, fwd.name), split.forward.consts)
    invariant_at = [k for k, i in enumerate(where) if i < num_consts]
    stacked_at = [k for k, i in enumerate(where) if i >= num_consts]
    n_res = len(where)
    t_consts = sum(nonzero[:num_consts])
    t_carry = sum(nonzero[num_consts:n_c])
    t_all = sum(nonzero)
    order = [
        *invariant_at, *range(n_res, n_res + t_consts + t_carry), *stacked_at,
        *range(n_res + t_consts + t_carry, n_res + t_all),
    ]  # fmt: skip
    linear = _reorder(split.linear, order, range(len(split.linear.out_avals)))
    out = forward, linear, [where[k] for k in invariant_at], [where[k] for k in stacked_at]
    jaxpr.cache[key] = out
    return out


def _transpose(
    cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int, num_carry: int,
    unroll: int,
) -> list[Any]:  # fmt: skip
    """The transposed scan runs the other way; its carry is the cotangents of the constants and of the carry."""
    consts, carry, xs = _split(args, num_consts, num_carry)
    lin_consts, lin_xs = [is_linear(a) for a in consts], [is_linear(a) for a in xs]
    # A carry that isn't linear is a tangent that starts as zero (see `_linearize`); its cotangent is not needed.
    ct_carry = [instantiate(ct) for ct in cts[:num_carry]]
    ct_ys = cts[num_carry:]
    nz_ys = [not is_zero(ct) for ct in ct_ys]
    known_consts = [a for a, lin in zip(consts, lin_consts, strict=True) if not lin]
    known_xs = [a for a, lin in zip(xs, lin_xs, strict=True) if not lin]
    wanted = state.logs is not None
    body, logs = _transposed_body(jaxpr, tuple(lin_consts), tuple(lin_xs), tuple(nz_ys), num_carry, wanted)
    ct_consts = [instantiate(Zero(a.aval)) for a in consts if is_linear(a)]
    outs = scan_p.bind(
        *known_consts, *ct_consts, *ct_carry, *[ct for ct in ct_ys if not is_zero(ct)], *known_xs,
        jaxpr=body, length=length, reverse=not reverse, num_consts=len(known_consts),
        num_carry=len(ct_consts) + num_carry, unroll=unroll,
    )  # fmt: skip
    outs = take_off(logs, outs)
    n = len(ct_consts)
    out_consts, out_carry, out_xs = iter(outs[:n]), outs[n : n + num_carry], iter(outs[n + num_carry :])
    return [
        *[next(out_consts) if lin else None for lin in lin_consts],
        *[ct if is_linear(a) else None for a, ct in zip(carry, out_carry, strict=True)],
        *[next(out_xs) if lin else None for lin in lin_xs],
    ]


def _transposed_body(
    jaxpr: ClosedJaxpr,
    lin_consts: tuple[bool, ...],
    lin_xs: tuple[bool, ...],
    nz_ys: tuple[bool, ...],
    num_carry: int,
    with_logs: bool,
) -> tuple[ClosedJaxpr, Any]:
    """From (known consts; ct consts, ct carry; ct ys, known xs) to (ct consts, ct carry; ct xs, logs).

    Returned with the structure of the logs.
    """
    key = ("scan_transpose", lin_consts, lin_xs, nz_ys, num_carry, state.marks, with_logs)
    if key in jaxpr.cache:
        return jaxpr.cache[key]
    linear = (*lin_consts, *(True,) * num_carry, *lin_xs)
    nonzero_ct = (*(True,) * num_carry, *nz_ys)
    step, _, logs = transpose_jaxpr(jaxpr, linear, nonzero_ct, True, with_logs=True)
    n_known, n_lin = lin_consts.count(False), lin_consts.count(True)
    n_known_xs, n_ys = lin_xs.count(False), sum(nz_ys)
    avals = step.in_avals  # known consts, known xs, ct carry, ct ys
    a_known, a_xs = avals[:n_known], avals[n_known : n_known + n_known_xs]
    a_carry, a_ys = avals[n_known + n_known_xs :][:num_carry], avals[n_known + n_known_xs + num_carry :]
    a_consts = step.out_avals[:n_lin]

    def program(call: Callable[..., list[Any]], *args: Any) -> list[Any]:
        it = iter(args)
        known, ct_consts, ct_carry, ct_ys, known_xs = (
            [next(it) for _ in range(n)] for n in (n_known, n_lin, num_carry, n_ys, n_known_xs)
        )
        outs = call(*known, *known_xs, *ct_carry, *ct_ys)
        return [*[add_tangents(a, b) for a, b in zip(ct_consts, outs[:n_lin], strict=True)], *outs[n_lin:]]

    jaxpr.cache[key] = common.rewrite(step, program, [*a_known, *a_consts, *a_carry, *a_ys, *a_xs]), logs
    return jaxpr.cache[key]


def _batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int,
    **params: Any,
) -> Any:  # fmt: skip
    size, name = axis.size, axis.axis_name
    n_c = num_consts + num_carry
    # The mapped axis comes first in constants and carries, second (after the scanned one) in xs.
    moved = [
        x if d is None else move_to(x, d, size, 0 if i < n_c else 1)
        for i, (x, d) in enumerate(zip(args, dims, strict=True))
    ]
    batched = [d is not None for d in dims]
    b_consts, b_carry, b_xs = _split(batched, num_consts, num_carry)
    c = common.fixpoint(lambda c: batch_jaxpr(jaxpr, size, name, (*b_consts, *c, *b_xs))[1][:num_carry], b_carry)
    b_ys = batch_jaxpr(jaxpr, size, name, (*b_consts, *c, *b_xs))[1][num_carry:]
    body, _ = batch_jaxpr(jaxpr, size, name, (*b_consts, *c, *b_xs), (*c, *b_ys))
    for i, (now, before) in enumerate(zip(c, b_carry, strict=True)):
        if now and not before:
            moved[num_consts + i] = move_to(moved[num_consts + i], None, size)
    outs = scan_p.bind(*moved, jaxpr=body, num_consts=num_consts, num_carry=num_carry, **params)
    return outs, [0 if b else None for b in c] + [1 if b else None for b in b_ys]


def _dce(eqn: Eqn, used: list[bool]) -> tuple[Eqn, list[bool]]:
    """Drop ys nobody uses, and carries that no used result depends on."""
    p = eqn.params
    closed, num_carry, num_consts = p["jaxpr"], p["num_carry"], p["num_consts"]
    key = ("scan_dce", tuple(used), num_consts, num_carry)
    if key not in closed.cache:
        carry_used = list(used[:num_carry])
        while True:  # a carry is used if the body needs it for a used result
            _, needed = passes.dead_code_closed(closed, [*carry_used, *used[num_carry:]])
            grown = [a or b for a, b in zip(carry_used, needed[num_consts : num_consts + num_carry], strict=True)]
            if grown == carry_used:
                break
            carry_used = grown
        body, needed = passes.dead_code_closed(closed, [*carry_used, *used[num_carry:]])
        # A used carry stays an operand even if the body doesn't read it.
        keep = [*needed[:num_consts], *carry_used, *needed[num_consts + num_carry :]]
        body.jaxpr.invars = [v for v, k in zip(closed.jaxpr.invars, keep, strict=True) if k]
        closed.cache[key] = body, keep, carry_used
    body, keep, carry_used = closed.cache[key]
    invars = [v for v, k in zip(eqn.invars, keep, strict=True) if k]
    kept_out = [*carry_used, *used[num_carry:]]
    outvars = [v for v, k in zip(eqn.outvars, kept_out, strict=True) if k]
    still_used = [u for u, k in zip(used, kept_out, strict=True) if k]
    params = {**p, "jaxpr": body, "num_consts": sum(keep[:num_consts]), "num_carry": sum(carry_used)}
    return eqn.replace(invars=invars, outvars=outvars, params=params), still_used


def _recompute(eqn: Eqn, keep: Callable[[Eqn], bool], wanted: list[bool]) -> tuple[list[Var], Eqn | None, Eqn]:
    """What is kept within the body becomes a result, stacked; the scan that computes again has it among its xs.

    The carry before a step is kept if it may be as a result of the step before. Else it is computed again, from the
    first one, where anything depends on it.
    """
    p, body = eqn.params, eqn.params["jaxpr"].jaxpr
    num_consts, num_carry = p["num_consts"], p["num_carry"]
    n_c = num_consts + num_carry
    carries = body.invars[num_consts:n_c]
    producers = {id(v): e for e in body.eqns for v in e.outvars}
    found = [producers.get(id(v)) for v in body.outvars[:num_carry]]
    may_keep = [e is not None and not e.primitive.has("recompute") and keep(e) for e in found]
    again = [w and not k for w, k in zip(wanted[:num_carry], may_keep, strict=True)]  # carries
    while True:
        plan = recompute(body, compress(body.outvars, [*again, *wanted[num_carry:]]), keep, inside=True)
        grown = [a or (id(v) in plan.kept and not k) for a, v, k in zip(again, carries, may_keep, strict=True)]
        if grown == again:
            break
        again = grown
    inputs = {id(v) for v in [*body.constvars, *body.invars]} - {id(v) for v in compress(carries, may_keep)}
    saved = {key: v for key, v in plan.kept.items() if key not in inputs}
    # The stacks of what is saved: results that there are already, or new ones.
    stacks = {id(v): stack for v, stack in zip(body.outvars[num_carry:], eqn.outvars[num_carry:], strict=True)}
    more = {key: v for key, v in saved.items() if key not in stacks}
    stacks |= {key: Var(None, v.aval.update(shape=(p["length"], *v.aval.shape))) for key, v in more.items()}
    forward = eqn.replace(
        params={**p, "jaxpr": _body_of(eqn, body.invars, [*body.outvars, *more.values()], plan.eqns)},
        outvars=[*eqn.outvars, *[stacks[key] for key in more]],
    )
    again += [w and id(v) not in saved for w, v in zip(wanted[num_carry:], body.outvars[num_carry:], strict=True)]
    kept = [v for v, w, a in zip(eqn.outvars, wanted, again, strict=True) if w and not a]
    kept += [stacks[key] for key in saved]
    if not any(again):
        return kept, None, forward
    used = [id(v) in plan.kept for v in body.invars]
    used[num_consts:n_c] = again[:num_carry]
    invars, outvars = [*compress(body.invars, used), *saved.values()], list(compress(body.outvars, again))
    repeated = eqn.replace(
        invars=[*compress(eqn.invars, used), *[stacks[key] for key in saved]],
        outvars=list(compress(eqn.outvars, again)),
        params={
            **p, "jaxpr": _body_of(eqn, invars, outvars, plan.again), "num_consts": sum(used[:num_consts]),
            "num_carry": sum(again[:num_carry]),
        },
    )  # fmt: skip
    return kept, repeated, forward


def _body_of(eqn: Eqn, invars: Sequence[Any], outvars: Sequence[Any], eqns: Sequence[Eqn]) -> ClosedJaxpr:
    """The body of a scan with other inputs, results and equations."""
    closed = eqn.params["jaxpr"]
    return ClosedJaxpr(Jaxpr(closed.jaxpr.constvars, invars, outvars, eqns, closed.jaxpr.name), closed.consts)


scan_p = CallPrimitive("scan", _run)
scan_p.abstract_eval = _types
scan_p.host = _host
scan_p.jvp = scan_p.push = _jvp
scan_p.linearize = _linearize
scan_p.transpose = _transpose
scan_p.batch = _batch
scan_p.lower = lower
scan_p.dce = _dce
scan_p.recompute = _recompute


@api_boundary
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Any, Any]:
    """Loop over the leading axis of `xs`, carrying a state and collecting results.

    Like ``for x in xs: carry, y = f(carry, x); ys.append(y)``, compiled as one loop, with all derivatives; under
    `disable_jit` it is that Python loop.

    Parameters
    ----------
    f : function ``(carry, x) -> (carry, y)``
        The carry keeps its structure, shapes and dtypes.
    init : pytree of arrays
        First carry.
    xs : pytree of arrays with a common leading length, or None
    length : int, optional
        Number of steps, if `xs` has no leaves.
    reverse : bool
        Run from the last element to the first; ys keep the order of `xs`.
    unroll : int or bool
        Steps per iteration of the compiled loop; True: all.

    Returns
    -------
    carry, ys
        The last carry, and the y of all steps, stacked.

    Examples
    --------
    >>> from xform import lax
    >>> total, sums = lax.scan(lambda c, x: (c + x, c + x), 0.0, np.arange(4.0))
    >>> float(total), sums.tolist()
    (6.0, [0.0, 1.0, 3.0, 6.0])
    """
    if not callable(f):
        raise TypeError(f"lax.scan: f must be a function (carry, x) -> (carry, y), got {f!r}")
    init_leaves, init_tree = tree.flatten(init)
    xs_leaves, xs_tree = tree.flatten(xs)
    xs_leaves = common.as_arrays(xs_leaves)
    length = leading_length("lax.scan", xs_leaves, xs_tree, length)
    if state.disable_jit and length:
        elements = [xs_tree.unflatten([index_in_dim(x, i, keepdims=False) for x in xs_leaves]) for i in range(length)]
        return _python_loop(f, init_tree.unflatten(common.as_arrays(init_leaves)), elements, reverse)
    x_avals = [get_aval(x) for x in xs_leaves]
    x_avals = [a.update(shape=a.shape[1:]) for a in x_avals]
    args_tree = tree.structure((init, xs))

    def trace(avals: Sequence[ShapedArray]) -> Any:
        closed, consts, out_tree = common.trace_body(f, args_tree, [*avals, *x_avals], "scan")
        children = tree.children(out_tree)
        if len(children) != 2 or out_tree != tree.tuple_of(children):
            raise TypeError(f"lax.scan: f must return a pair (carry, y), got the structure {out_tree}")
        carry_tree, ys_tree = children
        return closed, consts, (carry_tree, ys_tree), closed.out_avals[: carry_tree.num_leaves]

    carry, (closed, consts, (carry_tree, ys_tree), carry_avals) = common.settle_carry(
        "lax.scan", common.as_arrays(init_leaves), trace
    )
    avals = [get_aval(x) for x in carry]
    common.check_same(
        "lax.scan",
        "the carry that f gets (init)",
        init_tree,
        avals,
        "the carry that it returns",
        carry_tree,
        carry_avals,
    )
    closed = common.retype_outputs(closed, [*avals, *closed.out_avals[len(avals) :]])
    closed, consts = common.hoist(closed, consts)
    outs = scan_p.bind(
        *consts, *carry, *xs_leaves, jaxpr=closed, length=length, reverse=bool(reverse), num_consts=len(consts),
        num_carry=len(carry), unroll=_unroll(unroll, length),
    )  # fmt: skip
    return init_tree.unflatten(outs[: len(carry)]), ys_tree.unflatten(outs[len(carry) :])


def _python_loop(f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, xs: list[Any], reverse: bool) -> tuple[Any, Any]:
    """What `scan` does under `disable_jit`: f gets values, not tracers."""
    order = -1 if reverse else 1
    ys = []
    for x in xs[::order]:
        carry, y = f(carry, x)
        ys.append(y)
    rows = [common.as_arrays(tree.leaves(y)) for y in ys[::order]]
    stacked = [concatenate([expand_dims(y, (0,)) for y in column], 0) for column in zip(*rows, strict=True)]
    return carry, tree.structure(ys[0]).unflatten(stacked)


def _unroll(unroll: int | bool, length: int) -> int:
    """A number of steps per iteration that divides the length, at most the one asked for."""
    if unroll is True:
        return max(1, length)
    if (unroll := operator.index(unroll)) < 0:
        raise ValueError(f"lax.scan: unroll must be True, False, or a number of steps, got {unroll}")
    unroll = max(1, min(unroll, length))
    while length % unroll:
        unroll -= 1
    return unroll


def leading_length(function: str, leaves: Sequence[Any], treedef: Any, length: Any) -> int:
    """The common leading length of the rows, which is also `length` if that is given."""
    names = [tree.keystr(path) for path in tree.paths(treedef)]
    for name, x in zip(names, leaves, strict=True):
        if not get_aval(x).shape:
            raise ValueError(f"{function}: xs{name} has rank 0, there is no leading axis to go over")
    lengths = {get_aval(x).shape[0] for x in leaves}
    if length is not None:
        lengths.add(operator.index(length))
    if len(lengths) > 1:
        shapes = ", ".join(f"xs{name}: {get_aval(x).str_short()}" for name, x in zip(names, leaves, strict=True))
        raise ValueError(
            f"{function}: leading lengths differ: {shapes}" + (f", length={length}" if length is not None else "")
        )
    if not lengths:
        raise ValueError(
            f"{function}: give xs with at least one array" + (", or length" if function == "lax.scan" else "")
        )
    return lengths.pop()
