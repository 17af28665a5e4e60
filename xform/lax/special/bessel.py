"""Modified Bessel functions of the first kind, scaled by exp(-|x|).

May import: `lax.special.formulas`, the elementwise modules of `lax`.
"""

from collections.abc import Callable
from typing import Any

from xform.core.errors import api_boundary
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import abs, add, div, mul, mul_p, neg, sign, sub
from xform.lax.comparison import eq, lt, select
from xform.lax.extremes import max, min
from xform.lax.families import apply, elementwise
from xform.lax.powers import sqrt, square
from xform.lax.special import tables
from xform.lax.special.formulas import evaluate, host_as
from xform.lax.transcendental import exp

# Up to 8 a polynomial in x^2, all of whose terms are positive, beyond one in 1 / x.


def _scaled(x: Any, near: tables.Table, far: tables.Table) -> Any:
    a = abs(x)
    low, high = min(a, 8.0), max(a, 8.0)
    return select(
        lt(a, 8.0),
        mul(exp(neg(low)), evaluate(near, square(low))),
        div(evaluate(far, sub(div(16.0, high), 1.0)), sqrt(high)),
    )


def _i0e(x: Any) -> Any:
    return _scaled(x, tables.I0, tables.I0_TAIL)


def _i1e(x: Any) -> Any:
    y = _scaled(x, tables.I1, tables.I1_TAIL)
    return mul(y, select(lt(abs(x), 8.0), x, sign(x)))


def _i1e_derivative(x: Any) -> Any:
    """i0e - i1e (sign x + 1 / x), which is 1/2 at 0."""
    origin = eq(x, 0.0)
    safe = select(origin, 1.0, x)
    value = sub(bessel_i0e(x), mul(bessel_i1e(x), add(sign(x), div(1.0, safe))))
    return select(origin, 0.5, value)


def _primitive(name: str, formula: Callable[..., Any], derivative: Callable[..., Any]) -> Any:
    return elementwise(
        name,
        host_as(formula),
        accepts="float",
        jvp=lambda g, ans, x: mul_p.bind(g, derivative(ans, x)),
        lower=lower_as(formula),
        widen=True,
    )


bessel_i0e_p = _primitive("bessel_i0e", _i0e, lambda ans, x: sub(bessel_i1e(x), mul(sign(x), ans)))
bessel_i1e_p = _primitive("bessel_i1e", _i1e, lambda ans, x: _i1e_derivative(x))


@api_boundary
def bessel_i0e(x: Any) -> Any:
    """Elementwise exp(-|x|) I_0(x), the modified Bessel function of order 0, scaled."""
    return apply(bessel_i0e_p, x)


@api_boundary
def bessel_i1e(x: Any) -> Any:
    """Elementwise exp(-|x|) I_1(x), the modified Bessel function of order 1, scaled."""
    return apply(bessel_i1e_p, x)
