"""Derivatives of formulas by forward mode through the formula itself, each a primitive, made when it is first needed.

For the derivatives of higher order that nobody has written down. The loops of such a formula take as many steps as they
do for the value.

May import: `lax.special.formulas`, `lax.families`, `lax.arithmetic`, `xform.interpreters`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from xform.core.trace import Primitive
from xform.interpreters.forward import jvp
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import instantiate, zero_of
from xform.lax.arithmetic import mul_p
from xform.lax.families import constant, elementwise
from xform.lax.special.formulas import compiled_if_large, host_as


def slopes(name: str, formula: Callable[..., Any], arity: int) -> list[Callable[..., Any]]:
    """Rules for the derivatives of an elementwise formula in each of its arguments."""

    def rule(k: int) -> Callable[..., Any]:
        return lambda g, ans, *operands: mul_p.bind(g, _slope(name, formula, arity, k).bind(*operands))

    return [rule(k) for k in range(arity)]


@cache
def _slope(name: str, formula: Callable[..., Any], arity: int, k: int) -> Primitive:
    """The derivative in argument number `k`."""

    def slope(*operands: Any) -> Any:
        tangents = [constant(x, 1) if i == k else zero_of(x) for i, x in enumerate(operands)]
        _, (tangent,) = jvp(lambda *xs: [formula(*xs)], operands, tangents)
        return instantiate(tangent)

    slope.__name__ = name = f"{name}_in_{k}"
    host = compiled_if_large(host_as(slope), lambda *operands: p.bind(*operands))
    p = elementwise(name, host, accepts="float", jvp=slopes(name, slope, arity), lower=lower_as(slope), widen=True)
    return p
