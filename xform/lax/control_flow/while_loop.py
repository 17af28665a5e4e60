"""`while_loop` and `fori_loop`.

``while[cond_jaxpr body_jaxpr] *cond_consts *body_consts *carry``.

May import: `lax.control_flow.common`, `lax.control_flow.scan`, the other modules of `lax`.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core import dtypes, tree
from xform.core.array import ArrayImpl, get_aval, host_value
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import ConcretizationTypeError, api_boundary
from xform.core.jaxpr import ClosedJaxpr, eval_jaxpr
from xform.core.trace import Tracer
from xform.interpreters import execution
from xform.interpreters.batching import batch_jaxpr, move_to
from xform.interpreters.forward import jvp_jaxpr, jvp_jaxpr_fixed, with_zeros
from xform.interpreters.lowering import Context, Value
from xform.interpreters.reverse import linearize_jaxpr
from xform.interpreters.tangents import instantiate, is_zero, zero_of
from xform.lax.arithmetic import add
from xform.lax.calls import CallPrimitive, jit_p
from xform.lax.comparison import lt, select_n_p
from xform.lax.control_flow import common
from xform.lax.control_flow.scan import scan
from xform.lax.reductions import reduce_or_p
from xform.lax.shapes import broadcast_in_dim, convert


def _split(args: Sequence[Any], cond_nconsts: int, body_nconsts: int) -> tuple[Any, Any, Any]:
    n = cond_nconsts + body_nconsts
    return list(args[:cond_nconsts]), list(args[cond_nconsts:n]), list(args[n:])


def _run(
    *args: Any, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> list[Any]:
    """On the host while that is cheap, the rest compiled."""
    params: dict[str, Any] = {
        "cond_jaxpr": cond_jaxpr, "body_jaxpr": body_jaxpr, "cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts,
    }  # fmt: skip
    trips = None if common.debugging() else common.HOST_BUDGET // (len(cond_jaxpr.eqns) + len(body_jaxpr.eqns) + 1)
    token = quiet_begin()
    try:
        done, carry = _loop(trips, [host_value(x) for x in args], **params)
    finally:
        quiet_end(token)
    outs = [ArrayImpl(x, None, a) for x, a in zip(carry, body_jaxpr.out_avals, strict=True)]
    if done:
        return outs
    operands = [*args[: cond_nconsts + body_nconsts], *outs]
    return execution.run(common.program_of(while_p, operands, params, body_jaxpr), operands)


def _loop(
    trips: int | None, args: Sequence[Any], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int,
) -> tuple[bool, list[Any]]:  # fmt: skip
    """At most `trips` steps on ndarrays; tells whether the loop came to its end."""
    cond_consts, body_consts, carry = _split(args, cond_nconsts, body_nconsts)
    condition, step = common.host_step(cond_jaxpr), common.host_step(body_jaxpr)
    while condition(*cond_consts, *carry)[0]:
        if trips == 0:
            return False, carry
        carry = list(step(*body_consts, *carry))
        trips = None if trips is None else trips - 1
    return True, carry


def _types(
    *avals: ShapedArray,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> list[ShapedArray]:
    return body_jaxpr.out_avals


def _jvp(
    primals: Sequence[Any], ts: Sequence[Any], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int,
) -> Any:  # fmt: skip
    cond_consts, body_consts, carry = _split(primals, cond_nconsts, body_nconsts)
    terms = len(ts) // len(primals)  # tangents of each operand
    _, body_ts, carry_ts = _split(ts, terms * cond_nconsts, terms * body_nconsts)
    nz_consts = tuple(not is_zero(t) for t in body_ts)
    nz = common.fixpoint(lambda c: jvp_jaxpr(body_jaxpr, nz_consts + c)[1], [not is_zero(t) for t in carry_ts])
    derived = jvp_jaxpr_fixed(body_jaxpr, nz_consts + nz, nz)
    const_ts = [t for t in body_ts if not is_zero(t)]
    carried_ts = [instantiate(t) for t, z in zip(carry_ts, nz, strict=True) if z]
    n, k = len(carry), len(const_ts)
    # The derived body takes (consts, carry, const tangents, carry tangents); here constants come first.
    nc = len(body_consts)
    avals = derived.in_avals
    order = [*range(nc), *range(nc + n, nc + n + k), *range(nc, nc + n), *range(nc + n + k, len(avals))]
    position = [order.index(i) for i in range(len(avals))]
    body = common.rewrite(derived, lambda call, *xs: call(*[xs[i] for i in position]), [avals[i] for i in order])
    cond_avals = [*cond_jaxpr.in_avals, *map(get_aval, carried_ts)]
    cond = common.rewrite(cond_jaxpr, lambda call, *xs: call(*xs[: cond_nconsts + n]), cond_avals)
    flat = while_p.bind(
        *cond_consts, *body_consts, *const_ts, *carry, *carried_ts, cond_jaxpr=cond, body_jaxpr=body,
        cond_nconsts=cond_nconsts, body_nconsts=nc + k,
    )  # fmt: skip
    return flat[:n], with_zeros(nz, flat[:n], flat[n:])


def _linearize(
    primals: Sequence[Any], ts: Sequence[Any], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int,
) -> Any:  # fmt: skip
    """Reverse mode where it is known when to stop (outside jit and vmap): every step is put on the tape."""
    cond_consts, body_consts, carry = _split(primals, cond_nconsts, body_nconsts)
    _, body_ts, carry_ts = _split(ts, cond_nconsts, body_nconsts)
    if all(is_zero(t) for t in (*body_ts, *carry_ts)):
        outs = while_p.bind(
            *primals,
            cond_jaxpr=cond_jaxpr,
            body_jaxpr=body_jaxpr,
            cond_nconsts=cond_nconsts,
            body_nconsts=body_nconsts,
        )
        return outs, [zero_of(o) for o in outs]
    while _goes_on(eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *cond_consts, *carry)[0]):
        nonzero = tuple(not is_zero(t) for t in (*body_ts, *carry_ts))
        split = linearize_jaxpr(body_jaxpr, nonzero)
        found = [*body_consts, *carry]
        flat = eval_jaxpr(split.forward.jaxpr, split.forward.consts, *found)
        found += flat
        carry = flat[: len(carry)]
        if any(split.nonzero_out):
            inputs = [found[i] for i in split.residuals] + [t for t in (*body_ts, *carry_ts) if not is_zero(t)]
            rest = iter(jit_p.bind(*inputs, jaxpr=split.linear, name="while_body"))
        carry_ts = [next(rest) if nz else zero_of(o) for o, nz in zip(carry, split.nonzero_out, strict=True)]
    return carry, carry_ts


def _goes_on(pred: Any) -> bool:
    if isinstance(pred, Tracer):
        raise NotImplementedError(
            "reverse-mode differentiation of lax.while_loop (or of fori_loop with a traced bound) inside jit or vmap "
            "is not supported: the number of steps, and with it the memory, is not known. "
            "Use lax.scan, lax.fori_loop with bounds known when tracing, or forward mode (jvp, jacfwd)."
        )
    return bool(pred)


def _batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr,
    cond_nconsts: int, body_nconsts: int,
) -> Any:  # fmt: skip
    size, name = axis.size, axis.axis_name
    args = [x if d is None else move_to(x, d, size) for x, d in zip(args, dims, strict=True)]
    batched = [d is not None for d in dims]
    b_cond, b_body, b_carry = _split(batched, cond_nconsts, body_nconsts)
    cond_consts, body_consts, carry = _split(args, cond_nconsts, body_nconsts)

    def step(c: tuple[bool, ...]) -> Sequence[bool]:
        (pred_batched,) = batch_jaxpr(cond_jaxpr, size, name, (*b_cond, *c))[1]
        if pred_batched:
            return [True] * len(c)
        return batch_jaxpr(body_jaxpr, size, name, (*b_body, *c))[1]

    c = common.fixpoint(step, b_carry)
    cond, (pred_batched,) = batch_jaxpr(cond_jaxpr, size, name, (*b_cond, *c))
    body, _ = batch_jaxpr(body_jaxpr, size, name, (*b_body, *c), c)
    carry = [x if b or not now else move_to(x, None, size) for x, b, now in zip(carry, b_carry, c, strict=True)]
    if pred_batched:
        cond, body = _masked(cond, body, cond_nconsts, body_nconsts)
        body_consts = [*cond_consts, *body_consts]
        body_nconsts += cond_nconsts
    outs = while_p.bind(
        *cond_consts, *body_consts, *carry, cond_jaxpr=cond, body_jaxpr=body, cond_nconsts=cond_nconsts,
        body_nconsts=body_nconsts,
    )  # fmt: skip
    return outs, [0 if b else None for b in c]


def _masked(
    cond: ClosedJaxpr, body: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """A loop that goes on while any lane does, in which finished lanes keep their values."""

    def any_lane(call: Callable[..., list[Any]], *args: Any) -> list[Any]:
        (pred,) = call(*args)
        return [reduce_or_p.bind(pred, axes=tuple(range(pred.ndim)))]

    def step(call: Callable[..., list[Any]], *args: Any) -> list[Any]:
        cond_consts, rest = args[:cond_nconsts], args[cond_nconsts:]
        carry = rest[body_nconsts:]
        (pred,) = eval_jaxpr(cond.jaxpr, cond.consts, *cond_consts, *carry)
        new = call(*rest)
        return [
            select_n_p.bind(broadcast_in_dim(pred, n.shape, (0,)), old, n) for old, n in zip(carry, new, strict=True)
        ]

    cond_avals = cond.in_avals[:cond_nconsts]
    return (
        common.rewrite(cond, any_lane, cond.in_avals),
        common.rewrite(body, step, [*cond_avals, *body.in_avals]),
    )


def _lower(
    ctx: Context, *operands: Value, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int,
) -> list[Value]:  # fmt: skip
    cond_consts, body_consts, carry = _split(operands, cond_nconsts, body_nconsts)
    avals = [v.aval for v in carry]
    cond = ctx.region(lambda c, *xs: c.jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, [*cond_consts, *xs]), avals)
    body = ctx.region(lambda c, *xs: c.jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, [*body_consts, *xs]), avals)
    return ctx.op("while", carry, avals, "", [cond, body])


while_p = CallPrimitive("while", _run)
while_p.abstract_eval = _types
while_p.host = lambda *args, **params: _loop(None, args, **params)[1]
while_p.jvp = while_p.push = _jvp
while_p.linearize = _linearize
while_p.batch = _batch
while_p.lower = _lower


@api_boundary
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Apply ``body_fun`` to the carry as long as ``cond_fun(carry)`` holds.

    Under `vmap` the loop goes on until all lanes are done, and finished lanes keep their values. Reverse mode works
    outside `jit` and `vmap`; inside, the number of steps would have to be known: use `scan` or `fori_loop`.

    Parameters
    ----------
    cond_fun : function of the carry to a boolean scalar
    body_fun : function of the carry to a new carry of the same structure, shapes and dtypes
    init_val : pytree of arrays

    Examples
    --------
    >>> from xform import lax
    >>> int(lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 1))
    128
    """
    if not callable(cond_fun) or not callable(body_fun):
        raise TypeError("lax.while_loop: the arguments are (cond_fun, body_fun, init_val), with two functions")
    if state.disable_jit:
        done, init_val = _python_loop(cond_fun, body_fun, init_val)
        if done:
            return init_val
    leaves, treedef = tree.flatten(init_val)

    def trace(avals: Sequence[ShapedArray]) -> Any:
        closed, consts, out_tree = common.trace_body(lambda c: body_fun(c), tree.structure((init_val,)), avals, "body")
        return closed, consts, out_tree, closed.out_avals

    leaves, (body, body_consts, out_tree, out_avals) = common.settle_carry(
        "lax.while_loop", common.as_arrays(leaves), trace
    )
    avals = [get_aval(x) for x in leaves]
    common.check_same(
        "lax.while_loop",
        "the carry (init_val)",
        treedef,
        avals,
        "the result of body_fun",
        out_tree,
        out_avals,
    )
    cond, cond_consts, cond_tree = common.trace_body(lambda c: cond_fun(c), tree.structure((init_val,)), avals, "cond")
    if cond_tree.num_leaves != 1 or cond.out_avals[0].shape or cond.out_avals[0].dtype != bool:
        raise TypeError(f"lax.while_loop: cond_fun must return a boolean scalar, got {cond.out_avals}")
    body = common.retype_outputs(body, avals)
    outs = while_p.bind(
        *cond_consts, *body_consts, *leaves, cond_jaxpr=cond, body_jaxpr=body, cond_nconsts=len(cond_consts),
        body_nconsts=len(body_consts),
    )  # fmt: skip
    return treedef.unflatten(outs)


def _python_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], carry: Any) -> tuple[bool, Any]:
    """What `while_loop` does under `disable_jit`, until it ends, or the condition isn't known (within `vmap`)."""
    carry = tree.map(lambda x: common.as_arrays([x])[0], carry)
    while True:
        pred = cond_fun(carry)
        try:
            if not pred:
                return True, carry
        except ConcretizationTypeError:
            return False, carry
        carry = body_fun(carry)


@api_boundary
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | None = None
) -> Any:
    """Apply ``body_fun(i, carry)`` for i from `lower` to `upper` - 1.

    With bounds that are known when tracing it is a `scan` and has all derivatives; else a `while_loop`.

    Parameters
    ----------
    lower, upper : integer scalars
    body_fun : function of the index and the carry to a new carry of the same structure, shapes and dtypes
    init_val : pytree of arrays
    unroll : int, optional
        Steps per iteration of the compiled loop, for known bounds.

    Examples
    --------
    >>> from xform import lax
    >>> float(lax.fori_loop(0, 5, lambda i, x: 2 * x, 1.0))
    32.0
    """
    for name, bound in (("lower", lower), ("upper", upper)):
        aval = get_aval(bound)
        if aval.shape or not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError(f"lax.fori_loop: {name} must be an integer scalar, got {aval.str_short()}")
    dtype = dtypes.result_type(lower, upper)
    if not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
        start, length = operator.index(lower), max(0, operator.index(upper) - operator.index(lower))
        index = dtypes.coerce_scalar(start, dtype)[()]

        def step(carry: Any, _: Any) -> Any:
            i, x = carry
            return (add(i, 1), body_fun(i, x)), None

        return scan(step, (index, init_val), None, length=length, unroll=unroll or 1)[0][1]
    if unroll is not None:
        raise ValueError("lax.fori_loop: unroll needs bounds that are known when tracing")
    bounds = convert(lower, dtype), convert(upper, dtype)
    state_in = (*bounds, init_val)
    out = while_loop(lambda c: lt(c[0], c[1]), lambda c: (add(c[0], 1), c[1], body_fun(c[0], c[2])), state_in)
    return out[2]
