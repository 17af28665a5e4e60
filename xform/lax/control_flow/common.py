"""What the control flow operations share: tracing of bodies, checks of carries, small jaxpr surgery.

May import: `xform.core`, `xform.interpreters`, the other modules of `lax` but those of control flow.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import ArrayImpl, get_aval, host_value, own
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, eval_jaxpr, subjaxprs
from xform.core.trace import Tracer
from xform.interpreters.forward import jvp_jaxpr_fixed, with_consts
from xform.interpreters.host import host_function
from xform.interpreters.staging import trace_to_closed
from xform.lax.arg_extremes import argmax
from xform.lax.comparison import select_n
from xform.lax.conversion import convert
from xform.lax.dynamic_slicing import dynamic_index_in_dim
from xform.lax.identities import stop_gradient
from xform.lax.shapes import broadcast_in_dim

# A loop outside jit runs on the host while trips x equations stay below this, and is compiled beyond it.
HOST_BUDGET = 3000


def as_arrays(leaves: Sequence[Any]) -> list[Any]:
    """Leaves of operands as arrays (Python scalars weakly typed)."""
    return [x if isinstance(x, ArrayImpl | Tracer) else own(x) for x in leaves]


def debugging() -> bool:
    """Whether every operation is to be evaluated on its own."""
    return state.disable_jit or state.debug_nans or state.debug_infs


def host_step(closed: ClosedJaxpr) -> Callable[..., Sequence[Any]]:
    """A body as a function of ndarrays."""
    if not debugging():
        return host_function(closed)
    return lambda *xs: [host_value(o) for o in eval_jaxpr(closed.jaxpr, closed.consts, *xs)]


def trace_body(
    function: Callable[..., Any], treedef: Any, avals: Sequence[ShapedArray], what: str
) -> tuple[ClosedJaxpr, list[Any], Any]:
    """Trace a function of pytrees, for the operation `what`, to a jaxpr whose leading inputs are what it closed over.

    Returns the jaxpr, the values of these, and the structure of the result.
    """
    out_tree: Any = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree
        out = function(*treedef.unflatten(leaves))
        leaves_out, out_tree = tree.flatten(out)
        for x in leaves_out:
            get_aval(x)  # TypeError for what is no array
        return leaves_out

    closed, consts = trace_to_closed(flat, avals, getattr(function, "__name__", what), what)
    return closed, consts, out_tree


def merge_consts(closed: Sequence[ClosedJaxpr], consts: Sequence[Sequence[Any]]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """Give several jaxprs one list of leading constants."""
    position: dict[int, int] = {}
    merged: list[Any] = []
    for values in consts:
        for c in values:
            if id(c) not in position:
                position[id(c)] = len(merged)
                merged.append(c)
    out = []
    for c, values in zip(closed, consts, strict=True):
        jaxpr, n = c.jaxpr, len(values)
        mine = {position[id(v)]: var for v, var in zip(values, jaxpr.invars[:n], strict=True)}
        leading = [mine[i] if i in mine else Var(None, get_aval(v)) for i, v in enumerate(merged)]
        out.append(ClosedJaxpr(Jaxpr([], leading + jaxpr.invars[n:], jaxpr.outvars, jaxpr.eqns, jaxpr.name), c.consts))
    return out, merged


def hoist(closed: ClosedJaxpr, consts: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """A body that leaves to its caller what it computes from its leading constants only, and its new constants.

    Not so the derivative would be computed, and summed up, in each step: XLA takes out of loops what is constant, but
    not the linear functions of what is summed. What is larger than its operands stays inside.
    """
    jaxpr, n = closed.jaxpr, len(consts)
    known = {id(v): v for v in jaxpr.invars[:n]}
    outside, inside = [], []
    for eqn in jaxpr.eqns:
        operands = [v for v in eqn.invars if isinstance(v, Var)]
        if operands and all(id(v) in known for v in operands) and _may_leave(eqn, operands):
            outside.append(eqn)
            known.update((id(v), v) for v in eqn.outvars)
        else:
            inside.append(eqn)
    if not outside:
        return closed, list(consts)
    needed = {id(v) for eqn in inside for v in eqn.invars} | {id(v) for v in jaxpr.outvars}
    leading = [v for v in known.values() if id(v) in needed]
    values = eval_jaxpr(Jaxpr([], jaxpr.invars[:n], leading, outside, jaxpr.name), [], *consts)
    body = Jaxpr(jaxpr.constvars, [*leading, *jaxpr.invars[n:]], jaxpr.outvars, inside, jaxpr.name)
    return ClosedJaxpr(body, closed.consts), values


def _may_leave(eqn: Eqn, operands: Sequence[Var]) -> bool:
    largest = max(v.aval.size for v in operands)
    is_plain = not eqn.primitive.has_effects and next(subjaxprs(eqn.params), None) is None
    return is_plain and all(v.aval.size <= largest for v in eqn.outvars)


def retype_outputs(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The jaxpr with results converted to `avals` (dtypes and weak types)."""
    if closed.out_avals == list(avals):
        return closed

    def program(*args: Any) -> list[Any]:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        return [convert(o, a.dtype, a.weak_type) for o, a in zip(outs, avals, strict=True)]

    jaxpr, consts = trace_to_closed(program, closed.in_avals, closed.jaxpr.name)
    return with_consts(jaxpr, consts)


def rewrite(closed: ClosedJaxpr, function: Callable[..., Sequence[Any]], avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A new jaxpr: ``function(call, *args)``, where ``call(*args)`` evaluates the old one."""

    def program(*args: Any) -> list[Any]:
        return list(function(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), *args))

    jaxpr, consts = trace_to_closed(program, avals, closed.jaxpr.name)
    return with_consts(jaxpr, consts)


def jvp_in_groups(
    closed: ClosedJaxpr, groups: Sequence[tuple[bool, ...]], nonzero_out: tuple[bool, ...]
) -> ClosedJaxpr:
    """The derivative of a jaxpr whose inputs come in groups, each followed by its nonzero tangents.

    Groups say which tangents of their inputs are nonzero, one or several for each (see `forward.push`). The results
    are followed by those tangents of theirs that `nonzero_out` names.
    """
    key = ("jvp_in_groups", tuple(groups), nonzero_out)
    if key not in closed.cache:
        nonzero = tuple(nz for group in groups for nz in group)
        derived = jvp_jaxpr_fixed(closed, nonzero, nonzero_out)
        n = len(closed.in_avals)
        primals, tangents = iter(range(n)), iter(range(n, len(derived.in_avals)))
        terms = len(nonzero) // max(1, n)
        order: list[int] = []
        for group in groups:
            order += [next(primals) for _ in group[::terms]] + [next(tangents) for nz in group if nz]
        jaxpr = derived.jaxpr
        invars = [jaxpr.invars[i] for i in order]
        closed.cache[key] = ClosedJaxpr(
            Jaxpr(jaxpr.constvars, invars, jaxpr.outvars, jaxpr.eqns, jaxpr.name), derived.consts
        )
    return closed.cache[key]


def contains(closed: ClosedJaxpr, *names: str) -> bool:
    """Whether an operation whose name begins with one of `names` is in the jaxpr, or in one inside of it."""

    def search(jaxpr: Jaxpr) -> bool:
        return any(e.primitive.name.startswith(names) or any(map(search, subjaxprs(e.params))) for e in jaxpr.eqns)

    key = ("contains", names)
    if key not in closed.cache:
        closed.cache[key] = search(closed.jaxpr)
    return closed.cache[key]


def with_stand_ins(chosen: Any, args: Sequence[Any], mapped: Sequence[bool]) -> list[Any]:
    """Operands in which lanes that are not chosen are copies of the first one that is.

    So a `while` within what is computed for all lanes ends when it ends for those that are chosen.
    """
    lane = argmax(chosen, 0, np.int32)

    def replace(x: Any) -> Any:
        row = broadcast_in_dim(
            stop_gradient(dynamic_index_in_dim(x, lane, 0, keepdims=False)), x.shape, range(1, x.ndim)
        )
        return select_n(broadcast_in_dim(chosen, x.shape, (0,)), row, x)

    return [replace(x) if m else x for x, m in zip(args, mapped, strict=True)]


def fixpoint(step: Callable[[tuple[bool, ...]], Sequence[bool]], start: Sequence[bool]) -> tuple[bool, ...]:
    """Grow a property of the carry until the body preserves it."""
    current = tuple(start)
    while True:
        new = tuple(a or b for a, b in zip(current, step(current), strict=True))
        if new == current:
            return current
        current = new


def program_of(primitive: Any, operands: Sequence[Any], params: dict[str, Any], owner: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr of one equation, cached on one of its inner jaxprs."""
    avals = tuple(get_aval(x) for x in operands)
    key = (
        "program",
        primitive,
        avals,
        tuple((k, v if isinstance(v, int | bool) else id(v)) for k, v in params.items()),
    )
    found = owner.cache.get(key)
    if found is None:
        invars = [Var(None, a) for a in avals]
        outvars = [Var(None, a) for a in primitive.abstract_eval(*avals, **params)]
        eqn = Eqn(primitive, invars, params, outvars)
        found = owner.cache[key] = ClosedJaxpr(Jaxpr([], invars, outvars, [eqn], primitive.name))
    return found


def check_same(
    where: str, left_name: str, left: Any, left_avals: Sequence[ShapedArray], right_name: str, right: Any,
    right_avals: Sequence[ShapedArray],
) -> None:  # fmt: skip
    """TypeError unless structures and avals (but for weak types) agree; shows both sides leaf by leaf."""
    sides = [
        {tree.keystr(path) or "the value": a.str_short() for path, a in zip(tree.paths(structure), avals, strict=True)}
        for structure, avals in ((left, left_avals), (right, right_avals))
    ]
    same = left == right
    if same and all(a.shape == b.shape and a.dtype == b.dtype for a, b in zip(left_avals, right_avals, strict=True)):
        return
    lines = [
        f"  {name}: {' against '.join(side.get(name, 'nothing') for side in sides)}"
        for name in dict.fromkeys([*sides[0], *sides[1]])
        if not same or sides[0][name] != sides[1][name]
    ]
    if not same:
        lines = [f"  {left}", "and", f"  {right}", "with the leaves", *lines]
    what = "types, but differ at" if same else "structure, got"
    raise TypeError(f"{where}: {left_name} and {right_name} must have the same {what}\n" + "\n".join(lines))


def settle_carry(
    where: str,
    init: Sequence[Any],
    trace: Callable[[Sequence[ShapedArray]], tuple[ClosedJaxpr, list[Any], Any, Any]],
) -> tuple[list[Any], tuple[ClosedJaxpr, list[Any], Any, Any]]:
    """Trace a loop body, whose carry may lose its weak types on the way.

    ``trace(carry avals)`` returns (jaxpr, consts, structure, avals of the new carry).
    """
    for _ in range(3):
        avals = [get_aval(x) for x in init]
        traced = trace(avals)
        new = traced[3]
        if len(new) != len(avals):
            return list(init), traced
        stronger = [a.weak_type and not b.weak_type and a.shape == b.shape for a, b in zip(avals, new, strict=True)]
        if not any(stronger):
            break
        init = [
            convert(x, b.dtype, False) if s and _may_become(a, b) else x
            for x, a, b, s in zip(init, avals, new, stronger, strict=True)
        ]
        if [get_aval(x) for x in init] == avals:
            break
    return list(init), traced


def _may_become(weak: ShapedArray, strong: ShapedArray) -> bool:
    """Whether promotion would take a weak type to this strong one."""
    return dtypes.promote(weak.dtype, True, strong.dtype, False)[0] == strong.dtype
