"""Passes: plain functions from a jaxpr to a better one.

May import: `xform.core`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.jaxpr import Atom, ClosedJaxpr, DropVar, Eqn, Jaxpr, Literal, Var, subjaxprs


def dead_code(
    jaxpr: Jaxpr, consts: Sequence[Any], used_outputs: Sequence[bool] | None = None
) -> tuple[Jaxpr, list[Any]]:
    """Remove equations and constants that no result needs.

    Parameters
    ----------
    used_outputs : list of bool, optional
        Which results are wanted; the others are removed.
    """
    outvars = jaxpr.outvars
    if used_outputs is not None:
        outvars = [v for v, used in zip(outvars, used_outputs, strict=True) if used]
    needed = {id(v) for v in outvars}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if len(eqn.outvars) != 1 or id(eqn.outvars[0]) not in needed:
            if not any(id(v) in needed for v in eqn.outvars) and not _has_effects(eqn):
                continue
            eqn = _drop_unused(eqn, needed)
        kept.append(eqn)
        needed.update(map(id, eqn.invars))
    kept.reverse()
    pairs = [(v, c) for v, c in zip(jaxpr.constvars, consts, strict=True) if id(v) in needed]
    return (
        Jaxpr([v for v, _ in pairs], jaxpr.invars, outvars, kept, jaxpr.name),
        [c for _, c in pairs],
    )


def _has_effects(eqn: Eqn) -> bool:
    """Whether it does more than compute its results, or a program inside it does."""
    p = eqn.primitive
    inside = () if p.remembers_types else subjaxprs(eqn.params)
    return p.has_effects or any(_has_effects(e) for jaxpr in inside for e in jaxpr.eqns)


def _drop_unused(eqn: Eqn, needed: set[int]) -> Eqn:
    """Remove what nobody uses inside an equation (a primitive may define `dce`), and name the rest `_`."""
    used = [id(v) in needed for v in eqn.outvars]
    if all(used):
        return eqn
    if eqn.primitive.has("dce"):
        eqn, used = eqn.primitive.dce(eqn, used)
    outvars = [v if u else DropVar(None, v.aval) for v, u in zip(eqn.outvars, used, strict=True)]
    return eqn.replace(outvars=outvars)


def dead_code_closed(closed: ClosedJaxpr, used_outputs: Sequence[bool]) -> tuple[ClosedJaxpr, list[bool]]:
    """Remove the unwanted results of a jaxpr, and the inputs that it needs no more; tells which inputs remain."""
    jaxpr, consts = dead_code(closed.jaxpr, closed.consts, used_outputs)
    needed = {id(v) for eqn in jaxpr.eqns for v in eqn.invars} | {id(v) for v in jaxpr.outvars}
    used_inputs = [id(v) in needed for v in jaxpr.invars]
    jaxpr.invars = [v for v, used in zip(jaxpr.invars, used_inputs, strict=True) if used]
    return ClosedJaxpr(jaxpr, consts), used_inputs


def common_subexpressions(jaxpr: Jaxpr) -> Jaxpr:
    """Compute equal expressions once."""
    renamed: dict[int, Atom] = {}
    known: dict[Any, list[Var]] = {}
    eqns = []
    for eqn in jaxpr.eqns:
        invars = [renamed.get(id(v), v) for v in eqn.invars]
        key = _eqn_key(eqn, invars)
        previous = known.get(key) if key is not None else None
        if previous is not None:
            renamed.update({id(v): p for v, p in zip(eqn.outvars, previous, strict=True)})
            continue
        if key is not None and not any(type(v) is DropVar for v in eqn.outvars):
            known[key] = eqn.outvars  # type: ignore[assignment]
        eqns.append(eqn.replace(invars=invars))
    outvars = [renamed.get(id(v), v) for v in jaxpr.outvars]
    return Jaxpr(jaxpr.constvars, jaxpr.invars, outvars, eqns, jaxpr.name)


def _eqn_key(eqn: Eqn, invars: Sequence[Atom]) -> Any:
    """Equal for equations that compute the same; None if that can't be told."""
    if eqn.primitive.stays_apart or _has_effects(eqn):
        return None
    inputs = tuple(
        (v.aval, v.val.tobytes() if isinstance(v.val, np.generic | np.ndarray) else v.val)
        if type(v) is Literal
        else id(v)
        for v in invars
    )
    key = (eqn.primitive, inputs, tuple(sorted(eqn.params.items())))
    try:
        hash(key)
    except TypeError:
        return None
    return key
