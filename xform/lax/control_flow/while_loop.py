"""`while_loop` and `fori_loop`.

``while[cond_jaxpr body_jaxpr] *cond_consts *body_consts *carry``.

May import: `lax.control_flow.common`, `lax.control_flow.scan`, the other modules of `lax`.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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
from xform.interpreters.forward import jvp_jaxpr, with_zeros
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import instantiate, is_zero
from xform.lax.arithmetic import add, complex, imag, mul, real
from xform.lax.bitwise import bitwise_and
from xform.lax.calls import CallPrimitive
from xform.lax.comparison import lt, select_n, select_n_p
from xform.lax.control_flow import common
from xform.lax.control_flow.scan import scan
from xform.lax.conversion import convert
from xform.lax.reductions import reduce_or_p
from xform.lax.shapes import broadcast_in_dim

# Carries that reverse mode saves by default.
CHECKPOINTS = 32


def split_operands(args: Sequence[Any], cond_nconsts: int, body_nconsts: int) -> tuple[Any, Any, Any]:
    """Constants of the condition, constants of the body, carry."""
    n = cond_nconsts + body_nconsts
    return list(args[:cond_nconsts]), list(args[cond_nconsts:n]), list(args[n:])


def _run(*args: Any, checkpoints: int, max_steps: int | None, **loop: Any) -> list[Any]:
    """On the host while that is cheap, the rest compiled."""
    size = len(loop["cond_jaxpr"].eqns) + len(loop["body_jaxpr"].eqns) + 1
    trips = None if common.debugging() else common.HOST_BUDGET // size
    token = quiet_begin()
    try:
        done, carry = _loop(trips, [host_value(x) for x in args], **loop)
    finally:
        quiet_end(token)
    outs = [ArrayImpl(x, None, a) for x, a in zip(carry, loop["body_jaxpr"].out_avals, strict=True)]
    if done:
        return outs
    operands = [*args[: loop["cond_nconsts"] + loop["body_nconsts"]], *outs]
    params = {**loop, "checkpoints": checkpoints, "max_steps": max_steps}
    return execution.run(common.program_of(while_p, operands, params, loop["body_jaxpr"]), operands)


def _loop(
    trips: int | None, args: Sequence[Any], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int, **_: Any,
) -> tuple[bool, list[Any]]:  # fmt: skip
    """At most `trips` steps on ndarrays; tells whether the loop came to its end."""
    cond_consts, body_consts, carry = split_operands(args, cond_nconsts, body_nconsts)
    condition, step = common.host_step(cond_jaxpr), common.host_step(body_jaxpr)
    while condition(*cond_consts, *carry)[0]:
        if trips == 0:
            return False, carry
        carry = list(step(*body_consts, *carry))
        trips = None if trips is None else trips - 1
    return True, carry


# Loops derived from a loop. Its parameters are those of `while_p` that describe it: cond_jaxpr, body_jaxpr, and how
# many constants each has.


def derived_loop(
    nz_consts: Sequence[bool], nz_carry: Sequence[bool], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr,
    cond_nconsts: int, body_nconsts: int,
) -> tuple[dict[str, Any], tuple[bool, ...]]:  # fmt: skip
    """The loop with tangents behind the constants of the body and behind the carry, and which carries have one."""
    nz_consts = tuple(nz_consts)
    nz = common.fixpoint(lambda c: jvp_jaxpr(body_jaxpr, nz_consts + c)[1], nz_carry)
    body = common.jvp_in_groups(body_jaxpr, [nz_consts, nz], nz)
    carry, terms = body_jaxpr.out_avals, len(nz) // max(1, len(body_jaxpr.out_avals))
    cond_avals = cond_jaxpr.in_avals + [carry[i // terms].to_tangent_aval() for i, z in enumerate(nz) if z]
    n = len(cond_jaxpr.in_avals)
    cond = common.rewrite(cond_jaxpr, lambda call, *xs: call(*xs[:n]), cond_avals)
    nconsts = body_nconsts + sum(nz_consts)
    return {"cond_jaxpr": cond, "body_jaxpr": body, "cond_nconsts": cond_nconsts, "body_nconsts": nconsts}, nz


class BatchedLoop(NamedTuple):
    """A loop with mapped leading axes; `pred_batched` says that lanes end at different times."""

    cond_jaxpr: ClosedJaxpr
    body_jaxpr: ClosedJaxpr
    consts_batched: tuple[bool, ...]
    carry_batched: tuple[bool, ...]
    pred_batched: bool


def batched_loop(
    axis: Any, batched: Sequence[bool], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int,
) -> BatchedLoop:  # fmt: skip
    """The loop over mapped operands."""
    size, name = axis.size, axis.axis_name
    b_cond, b_body, b_carry = split_operands(batched, cond_nconsts, body_nconsts)

    def step(c: tuple[bool, ...]) -> Sequence[bool]:
        (pred_batched,) = batch_jaxpr(cond_jaxpr, size, name, (*b_cond, *c))[1]
        if pred_batched:
            return [True] * len(c)
        return batch_jaxpr(body_jaxpr, size, name, (*b_body, *c))[1]

    c = common.fixpoint(step, b_carry)
    cond, (pred_batched,) = batch_jaxpr(cond_jaxpr, size, name, (*b_cond, *c))
    body, _ = batch_jaxpr(body_jaxpr, size, name, (*b_body, *c), c)
    return BatchedLoop(cond, body, tuple(b_body), c, pred_batched)


def masked_loop(loop: BatchedLoop, cond_nconsts: int, body_nconsts: int) -> dict[str, Any]:
    """The loop that goes on while any lane does, in which finished lanes keep their values.

    The constants of its body begin with those of the condition.
    """
    cond, body = loop.cond_jaxpr, loop.body_jaxpr
    if not loop.pred_batched:
        return {"cond_jaxpr": cond, "body_jaxpr": body, "cond_nconsts": cond_nconsts, "body_nconsts": body_nconsts}

    def any_lane(call: Callable[..., list[Any]], *args: Any) -> list[Any]:
        (pred,) = call(*args)
        return [reduce_or_p.bind(pred, axes=tuple(range(pred.ndim)))]

    return {
        "cond_jaxpr": common.rewrite(cond, any_lane, cond.in_avals),
        "body_jaxpr": masked_step(cond, body, cond_nconsts, body_nconsts, (*loop.consts_batched, *loop.carry_batched)),
        "cond_nconsts": cond_nconsts,
        "body_nconsts": cond_nconsts + body_nconsts,
    }


def masked_step(
    cond: ClosedJaxpr, step: ClosedJaxpr, cond_nconsts: int, nconsts: int, mapped: tuple[bool, ...]
) -> ClosedJaxpr:
    """A step from ``(*consts, *state, *rest)`` to the last of these, which finished lanes keep.

    It takes the constants of the condition first. `mapped` says which of the other inputs are; for a loop that is not
    mapped, none.
    """
    n, n_state = len(step.out_avals), len(cond.in_avals) - cond_nconsts

    def program(call: Callable[..., list[Any]], *args: Any) -> list[Any]:
        cond_consts, rest = args[:cond_nconsts], args[cond_nconsts:]
        (pred,) = eval_jaxpr(cond.jaxpr, cond.consts, *cond_consts, *rest[nconsts : nconsts + n_state])
        operands = common.with_stand_ins(pred, rest, mapped) if mapped and common.contains(step, "while") else rest
        return [
            select_n_p.bind(broadcast_in_dim(pred, x.shape, range(pred.ndim)), old, x)
            for old, x in zip(rest[len(rest) - n :], call(*operands), strict=True)
        ]

    return common.rewrite(step, program, [*cond.in_avals[:cond_nconsts], *step.in_avals])


def _jvp(
    primals: Sequence[Any], ts: Sequence[Any], *, checkpoints: int, max_steps: int | None, **loop: Any
) -> tuple[list[Any], list[Any]]:
    operands, derived, nz = jvp_operands(primals, ts, **loop)
    flat = while_p.bind(*operands, **derived, checkpoints=checkpoints, max_steps=max_steps)
    n = len(loop["body_jaxpr"].out_avals)
    return flat[:n], with_zeros(nz, flat[:n], flat[n:])


def jvp_operands(
    primals: Sequence[Any], ts: Sequence[Any], **loop: Any
) -> tuple[list[Any], dict[str, Any], tuple[bool, ...]]:
    """Operands and parameters of the loop that computes tangents, too, and which carries have one."""
    cond_consts, body_consts, carry = split_operands(primals, loop["cond_nconsts"], loop["body_nconsts"])
    terms = len(ts) // len(primals)  # tangents of each operand
    _, body_ts, carry_ts = split_operands(ts, terms * loop["cond_nconsts"], terms * loop["body_nconsts"])
    derived, nz = derived_loop([not is_zero(t) for t in body_ts], [not is_zero(t) for t in carry_ts], **loop)
    const_ts = [t for t in body_ts if not is_zero(t)]
    carried_ts = [instantiate(t) for t, z in zip(carry_ts, nz, strict=True) if z]
    return [*cond_consts, *body_consts, *const_ts, *carry, *carried_ts], derived, nz


def _batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, checkpoints: int, max_steps: int | None, **loop: Any
) -> tuple[list[Any], list[int | None]]:
    operands, mapped, c = batch_operands(axis, args, dims, **loop)
    outs = while_p.bind(*operands, **mapped, checkpoints=checkpoints, max_steps=max_steps)
    return outs, [0 if b else None for b in c]


def batch_operands(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], **loop: Any
) -> tuple[list[Any], dict[str, Any], tuple[bool, ...]]:
    """Operands and parameters of the loop over all lanes, and which carries are mapped."""
    args = [x if d is None else move_to(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
    sizes = loop["cond_nconsts"], loop["body_nconsts"]
    batched = batched_loop(axis, [d is not None for d in dims], **loop)
    cond_consts, body_consts, carry = split_operands(args, *sizes)
    before = [d is not None for d in dims[sum(sizes) :]]
    c = batched.carry_batched
    carry = [x if b or not now else move_to(x, None, axis.size) for x, b, now in zip(carry, before, c, strict=True)]
    if batched.pred_batched:
        body_consts = [*cond_consts, *body_consts]
    return [*cond_consts, *body_consts, *carry], masked_loop(batched, *sizes), c


def _types(
    *avals: ShapedArray,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    **_: Any,
) -> list[ShapedArray]:
    return body_jaxpr.out_avals


def _lower(
    ctx: Context, *operands: Value, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int,
    body_nconsts: int, **_: Any,
) -> list[Value]:  # fmt: skip
    cond_consts, body_consts, carry = split_operands(operands, cond_nconsts, body_nconsts)
    avals = [v.aval for v in carry]
    cond = ctx.region(lambda c, *xs: c.jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, [*cond_consts, *xs]), avals)
    body = ctx.region(lambda c, *xs: c.jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, [*body_consts, *xs]), avals)
    return ctx.op("while", carry, avals, "", [cond, body])


while_p = CallPrimitive("while", _run)
while_p.abstract_eval = _types
while_p.host = lambda *args, **params: _loop(None, args, **params)[1]
while_p.jvp = while_p.push = _jvp
while_p.batch = _batch
while_p.lower = _lower


@api_boundary
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    checkpoints: int = CHECKPOINTS,
    max_steps: int | None = None,
) -> Any:
    """Apply ``body_fun`` to the carry as long as ``cond_fun(carry)`` holds.

    Under `vmap` the loop goes on until all lanes are done, and finished lanes keep their values.

    All derivatives are those of the steps that were taken. Reverse mode outside `jit` and `vmap` keeps what every step
    needs. Inside, where the number of steps isn't known, the loop saves its carry at no more than `checkpoints` places,
    which move on as it runs, and on the way back the steps are computed again from the last saved carry before them
    [1]_. With c checkpoints and at most ``binomial(c - 1 + r, r)`` steps, each is computed about r times in all, and
    once more with its derivative: with 32, r is 1 up to 32 steps, 2 up to 528, 3 up to 5984, 4 up to 52360. Second
    derivatives are best taken forward over reverse; reverse over reverse of such a loop also saves carries of the
    first backward loop, each of which holds all checkpoints. Within a `scan` each step keeps the checkpoints of its
    loop: give few, or wrap the step in `xform.checkpoint`.

    Parameters
    ----------
    cond_fun : function of the carry to a boolean scalar
    body_fun : function of the carry to a new carry of the same structure, shapes and dtypes
    init_val : pytree of arrays
    checkpoints : int
        Most carries that reverse mode saves at a time, at least 2, the first one included.
    max_steps : int, optional
        The loop ends after so many steps. If ``cond_fun`` still holds then, all inexact leaves of the result are NaN
        (others are as the last step left them), and so are their derivatives. Reverse mode inside `jit` or `vmap` is
        then that of a `scan` of this length whose steps do nothing once the loop has ended: it stores what each step
        needs and computes none again, and can be differentiated in any mode. `checkpoints` is not used.

    Raises
    ------
    TypeError
        If the body changes the type of the carry, or the condition isn't a boolean scalar; with `max_steps`, if no leaf
        of the carry can be NaN.
    ValueError
        For `checkpoints` below 2 or a negative `max_steps`.

    References
    ----------
    .. [1] Q. Wang, P. Moin, G. Iaccarino, "Minimal repetition dynamic checkpointing algorithm for unsteady adjoint
       calculation", SIAM J. Sci. Comput. 31 (2009) 2549-2567.

    Examples
    --------
    >>> import xform
    >>> from xform import lax
    >>> int(lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 1))
    128
    >>> f = xform.jit(lambda a: lax.while_loop(lambda x: x < 100, lambda x: a * x, a))  # a**7 at 2
    >>> float(xform.grad(f)(2.0))
    448.0
    """
    if not callable(cond_fun) or not callable(body_fun):
        raise TypeError("lax.while_loop: the arguments are (cond_fun, body_fun, init_val), with two functions")
    if (checkpoints := operator.index(checkpoints)) < 2:
        raise ValueError(f"lax.while_loop: checkpoints must be at least 2, got {checkpoints}")
    if max_steps is not None:
        return _bounded_loop(cond_fun, body_fun, init_val, operator.index(max_steps))
    return _while_loop(cond_fun, body_fun, init_val, checkpoints, None)


def _bounded_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, max_steps: int) -> Any:
    """`while_loop` with `max_steps`: the steps are counted in the carry, and a loop that wasn't done gives NaN."""
    if max_steps < 0:
        raise ValueError(f"lax.while_loop: max_steps must not be negative, got {max_steps}")
    if not any(dtypes.issubdtype(get_aval(x).dtype, np.inexact) for x in tree.leaves(init_val)):
        raise TypeError(
            "lax.while_loop: with max_steps the carry needs a leaf of a floating dtype, which is NaN if the loop was "
            f"not done; init_val has {[get_aval(x).str_short() for x in tree.leaves(init_val)]}"
        )

    def goes_on(c: Any) -> Any:
        return bitwise_and(lt(c[0], max_steps), cond_fun(c[1]))

    _, out = _while_loop(goes_on, lambda c: (add(c[0], 1), body_fun(c[1])), (0, init_val), CHECKPOINTS, max_steps)

    factor = select_n(cond_fun(out), np.float64(1.0), np.float64(np.nan))

    def spoil(x: Any) -> Any:
        aval = get_aval(x)
        if not dtypes.issubdtype(aval.dtype, np.inexact):
            return x
        if dtypes.issubdtype(aval.dtype, np.complexfloating):  # a complex product would make NaN of infinities
            return complex(spoil(real(x)), spoil(imag(x)))
        return mul(x, convert(factor, aval.dtype, aval.weak_type))

    return tree.map(spoil, out)


def _while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, checkpoints: int,
    max_steps: int | None,
) -> Any:  # fmt: skip
    if state.disable_jit:
        done, init_val = _python_loop(cond_fun, body_fun, init_val)
        if done:
            return init_val
    leaves, treedef = tree.flatten(init_val)

    def trace(avals: Sequence[ShapedArray]) -> Any:
        closed, consts, out_tree = common.trace_body(
            lambda c: body_fun(c), tree.structure((init_val,)), avals, "while_loop"
        )
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
    pred, cond_consts, cond_tree = common.trace_body(
        lambda c: cond_fun(c), tree.structure((init_val,)), avals, "while_loop"
    )
    if cond_tree.num_leaves != 1 or pred.out_avals[0].shape or pred.out_avals[0].dtype != bool:
        raise TypeError(f"lax.while_loop: cond_fun must return a boolean scalar, got {pred.out_avals}")
    body = common.retype_outputs(body, avals)
    outs = while_p.bind(
        *cond_consts, *body_consts, *leaves, cond_jaxpr=pred, body_jaxpr=body, cond_nconsts=len(cond_consts),
        body_nconsts=len(body_consts), checkpoints=checkpoints, max_steps=max_steps,
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
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    checkpoints: int | None = None,
    max_steps: int | None = None,
) -> Any:
    """Apply ``body_fun(i, carry)`` for i from `lower` to `upper` - 1.

    With bounds that are known when tracing it is a `scan`, whose reverse mode stores what every step needs; else a
    `while_loop`, whose reverse mode saves a few carries and computes the steps between them again.

    Parameters
    ----------
    lower, upper : integer scalars
    body_fun : function of the index and the carry to a new carry of the same structure, shapes and dtypes
    init_val : pytree of arrays
    unroll : int or bool, optional
        Steps per iteration of the compiled loop, for known bounds; True: all.
    checkpoints : int, optional
        Most carries that reverse mode saves at a time, as in `while_loop`. If given, the loop is a `while_loop` also
        with known bounds: less memory, more computation.
    max_steps : int, optional
        For bounds that are not known, as in `while_loop`.

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
    if checkpoints is None and not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
        start, length = operator.index(lower), max(0, operator.index(upper) - operator.index(lower))
        if max_steps is not None and length > max_steps:
            raise ValueError(f"lax.fori_loop: {length} steps from {lower} to {upper}, but max_steps={max_steps}")
        index = dtypes.coerce_scalar(start, dtype)[()]

        def step(carry: Any, _: Any) -> Any:
            i, x = carry
            return (add(i, 1), body_fun(i, x)), None

        return scan(step, (index, init_val), None, length=length, unroll=unroll or 1)[0][1]
    if unroll is not None:
        raise ValueError("lax.fori_loop: unroll needs bounds that are known when tracing, and no checkpoints")
    upper = convert(upper, dtype)
    out = while_loop(
        lambda c: lt(c[0], upper), lambda c: (add(c[0], 1), body_fun(c[0], c[1])), (convert(lower, dtype), init_val),
        checkpoints=CHECKPOINTS if checkpoints is None else checkpoints, max_steps=max_steps,
    )  # fmt: skip
    return out[1]
