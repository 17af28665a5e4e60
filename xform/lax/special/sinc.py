"""sin(x) / x, and the functions of which its derivatives are made.

``sinc[order=n] x`` is j_n(x) / x**n, with the spherical Bessel functions j_n; that of order 0 is sin(x) / x. Since its
derivative is -x times that of order n + 1 (https://dlmf.nist.gov/10.51.E3), nothing is ever divided by a small number,
and derivatives of all orders hold at 0 and near it.

May import: `lax.special.formulas`, the elementwise modules of `lax`.
"""

import itertools
from typing import Any

from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import abs, add, div, mul, neg, sub
from xform.lax.comparison import eq, lt, select
from xform.lax.families import elementwise
from xform.lax.powers import square
from xform.lax.special.formulas import host_as
from xform.lax.transcendental import cos, sin


def _sinc(x: Any, *, order: int) -> Any:
    if not order:
        origin = eq(x, 0.0)
        return select(origin, 1.0, div(sin(x), select(origin, 1.0, x)))
    # Near 0 the series, https://dlmf.nist.gov/10.53.E1; the recurrence upwards is stable beyond the order only.
    near = lt(abs(x), order + 1.0)
    return select(near, _series(order, square(select(near, x, 0.0))), _recurrence(order, select(near, 1.0, x)))


def _series(order: int, u: Any) -> Any:
    """The sum over k of (-u / 2)**k / (k! (2 order + 2 k + 1)!!), for ``u < (order + 1)**2``."""
    first = 1.0
    for i in range(order):
        first /= 2 * i + 3
    coefficients, size = [first], 1.0
    for k in itertools.count(1):
        factor = -0.5 / (k * (2 * (order + k) + 1))
        size *= factor * (order + 1) ** 2
        if size * size < 1e-36:
            break
        coefficients.append(coefficients[-1] * factor)
    out: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        out = add(mul(u, out), c)
    return out


def _recurrence(order: int, x: Any) -> Any:
    """From cos(x) and sin(x) / x upwards, https://dlmf.nist.gov/10.51.E1."""
    u = square(x)
    before, out = cos(x), div(sin(x), x)
    for n in range(order):
        before, out = out, div(sub(mul(out, 2 * n + 1.0), before), u)
    return out


sinc_p = elementwise(
    "sinc",
    host_as(_sinc),
    accepts="inexact",
    jvp=lambda g, ans, x, *, order: mul(g, neg(mul(x, sinc_p.bind(x, order=order + 1)))),
    lower=lower_as(_sinc),
    widen=True,
)
