"""Whole jaxprs on the host: each becomes a Python function of ndarrays that calls the host rules one after the other.

It needs no XLA and no compilation worth mentioning, and costs about 0.4 us an equation. So it also runs what is too
small for XLA: a compiled call costs about 2.5 us, 0.1 more for each argument and 0.9 for each result, before it
computes anything. Which of the two runs a program depends on the program alone, so that the same call always gives the
same bits.

May import: `xform.core`, `xform.backends.numpy`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core.array import ArrayImpl, host_value
from xform.core.config import state
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, cached_on_jaxpr, last_uses, subjaxprs

# Python's operators do the same as these, and on NumPy's scalars ten times faster.
_OPERATORS: dict[Any, str] = {np.add: "+", np.subtract: "-", np.multiply: "*", np.negative: "-"}


@cached_on_jaxpr
def host_function(closed: ClosedJaxpr) -> Callable[..., tuple]:
    """The jaxpr as a function of ndarrays (NumPy scalars at rank 0) that returns a tuple of them."""
    names: dict[int, str] = {}
    scope: dict[str, Any] = {}

    def name_of(atom: Any, beside_arrays: bool = False) -> str:
        if type(atom) is Literal:
            name = f"c{len(scope)}"
            value = np.asarray(atom.val, dtype=atom.aval.dtype)
            scope[name] = value if beside_arrays else value[()]  # the faster operand in either case
            return name
        return names[id(atom)]

    def new_name(var: Any) -> str:
        return names.setdefault(id(var), f"v{len(names)}")

    jaxpr = closed.jaxpr
    for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
        scope[new_name(var)] = host_value(const)
    lines = [f"def program({', '.join(new_name(v) for v in jaxpr.invars)}):"]
    constants = {id(v) for v in jaxpr.constvars}
    for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
        beside_arrays = any(v.aval.ndim for v in eqn.invars)
        args = [name_of(v, beside_arrays) for v in eqn.invars]
        operator = _OPERATORS.get(_host(eqn))
        if operator is not None:
            call = f"{args[0]} {operator} {args[1]}" if len(args) == 2 else f"{operator}{args[0]}"
        else:
            rule = f"h{len(scope)}"
            scope[rule] = _rule(eqn)
            call = f"{rule}({', '.join(args)})"
        outs = [new_name(v) for v in eqn.outvars]
        left = "".join(f"{o}, " for o in outs) if eqn.primitive.multiple_results else outs[0]
        lines.append(f"    {left or '_'} = {call}")
        dead = [names[key] for key in dying if key not in constants]
        if dead:
            lines.append(f"    del {', '.join(dead)}")
    lines.append(f"    return ({''.join(name_of(v) + ', ' for v in jaxpr.outvars)})")
    exec(compile("\n".join(lines), f"<host program {jaxpr.name}>", "exec"), scope)
    return scope["program"]


def _host(eqn: Eqn) -> Callable[..., Any]:
    """The host rule; without what it does for narrow integers (its attribute `plain`) where there are none."""
    rule = eqn.primitive.host
    if any(v.aval.dtype.kind == "V" for v in eqn.invars):
        return rule
    return getattr(rule, "plain", rule)


def _rule(eqn: Eqn) -> Callable[..., Any]:
    """An equation's host rule with its parameters."""
    rule, params = _host(eqn), eqn.params
    if not params:
        return rule
    return lambda *args: rule(*args, **params)


def run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[ArrayImpl]:
    """Evaluate a jaxpr on concrete arguments with NumPy."""
    program = host_function(closed)
    values = [host_value(a) for a in args]
    token = quiet_begin()
    try:
        outs = program(*values)
    finally:
        quiet_end(token)
    return [ArrayImpl(o, None, a) for o, a in zip(outs, closed.out_avals, strict=True)]


# What the rule below compares, in microseconds.
_CALL, _PER_ARGUMENT, _PER_RESULT = 2.5, 0.12, 0.9
_PER_EQUATION, _PER_ELEMENT = 0.45, 0.002
_LARGEST = 1000  # elements


@cached_on_jaxpr
def is_small(closed: ClosedJaxpr) -> tuple[bool]:
    """Whether NumPy is done before XLA would have started (in a tuple, for the cache)."""
    jaxpr = closed.jaxpr
    budget = _CALL + _PER_ARGUMENT * len(jaxpr.invars) + _PER_RESULT * len(jaxpr.outvars)
    return (_cost(jaxpr, budget) <= budget,)


def _cost(jaxpr: Jaxpr, budget: float) -> float:
    cost = 0.0
    for eqn in jaxpr.eqns:
        elements = sum(v.aval.size for v in eqn.outvars)
        cost += _PER_EQUATION + _PER_ELEMENT * elements
        cost += sum(_cost(inner, budget) for inner in subjaxprs(eqn.params))
        narrow = any(v.aval.dtype.itemsize < 4 and v.aval.dtype != bool for v in eqn.outvars)
        if cost > budget or elements > _LARGEST or narrow or not eqn.primitive.is_cheap_on_host:
            return float("inf")
    return cost


def prefers_host(closed: ClosedJaxpr) -> bool:
    """Whether `jit` should run this program on the host."""
    return state.small_programs == "host" and state.eager == "numpy" and is_small(closed)[0]
