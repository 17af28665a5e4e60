"""Which values of a program under way are known to have no zeros, whatever its arguments.

A square root's derivative is infinite at 0, and costs a mask for it (see `interpreters.marks`). Under many roots zero
can't occur: `sqrt(sum(x**2) + 0.01)`. That shows in the few equations that lead to the operand.

May import: `xform.core`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.jaxpr import Eqn, Literal, Var
from xform.core.trace import Tracer

UNKNOWN, NONNEGATIVE, POSITIVE = range(3)  # or NaN
SEEN = 100  # how many equations are looked at for one operand

Signs = Sequence[int]


def _scaled(signs: Signs) -> int:
    return min(*signs, NONNEGATIVE)  # which may underflow


def _sum(signs: Signs) -> int:
    return max(signs) if min(signs) else UNKNOWN


_BY_SHAPE = ("broadcast_in_dim", "reshape", "squeeze", "transpose", "rev", "slice", "stop_gradient")
_OVER_AXES = ("reduce_max", "reduce_min", "reduce_sum", "cumsum", "cummax", "cummin")
# From the signs of operands. What may underflow to zero isn't positive.
_RULES: dict[str, Callable[[Signs], int]] = {
    "add": _sum,
    **dict.fromkeys(["mul", "div"], _scaled),
    "max": max,
    **dict.fromkeys(["min", "concatenate"], min),
    "select_n": lambda signs: min(signs[1:]),
    "abs": lambda signs: max(*signs, NONNEGATIVE),
    "cosh": lambda signs: POSITIVE,
    **dict.fromkeys(["square", "exp", "exp2", "logistic"], lambda signs: NONNEGATIVE),
    **dict.fromkeys(["sqrt", *_BY_SHAPE, *_OVER_AXES], lambda signs: signs[0]),
}


def is_positive(x: Any) -> bool:
    """Whether an operand that is being staged can't have a zero (nor a negative element) by the program so far."""
    while isinstance(x, Tracer) and type(x) is not Var:
        x = x.under
    if type(x) is not Var:
        return False
    eqns: Any = getattr(x._trace, "eqns", ())
    return _sign(x, eqns, len(eqns), {}) == POSITIVE


def _sign(x: Any, eqns: Sequence[Eqn], end: int, found: dict[int, int]) -> int:
    """Of an operand, from the equations before number `end`; `found` has those of variables that were looked at."""
    if x.aval.dtype.kind == "c":
        return UNKNOWN
    if type(x) is Literal:
        return POSITIVE if x.val > np.finfo(np.float32).tiny else NONNEGATIVE if x.val >= 0 else UNKNOWN
    sign = found.get(id(x))
    if sign is None:
        sign = found[id(x)] = _sign_of_result(x, eqns, end, found)
    return sign


def _sign_of_result(x: Var, eqns: Sequence[Eqn], end: int, found: dict[int, int]) -> int:
    for i in range(end - 1, max(len(eqns) - SEEN, 0) - 1, -1):
        eqn = eqns[i]
        if any(v is x for v in eqn.outvars):
            break
    else:
        return UNKNOWN
    operands, name, params = eqn.invars, eqn.primitive.name, eqn.params
    if name == "integer_pow":
        return NONNEGATIVE if params["y"] % 2 == 0 else UNKNOWN
    if name == "mul" and operands[0] is operands[1]:
        return NONNEGATIVE
    if name == "dot_general":
        contracted, batch = params["dimension_numbers"]
        is_square = operands[0] is operands[1] and contracted[0] == contracted[1] and batch[0] == batch[1]
        return NONNEGATIVE if is_square and x.aval.ndim == len(batch[0]) else UNKNOWN
    rule = _RULES.get(name)
    if rule is None or any(0 in v.aval.shape for v in operands):
        return UNKNOWN
    return rule([_sign(v, eqns, i, found) for v in operands])
