"""The hyperbolic tangent.

May import: `lax.arithmetic`, `lax.extremes`, `lax.comparison`, `lax.polynomials`, `lax.powers`.
"""

from fractions import Fraction
from itertools import zip_longest
from typing import Any

from xform.lax.arithmetic import abs, add, div, mul, sub
from xform.lax.comparison import clamp, lt, select
from xform.lax.extremes import min
from xform.lax.polynomials import horner
from xform.lax.powers import square


def _lambert(terms: int) -> tuple[list[float], list[float]]:
    """P(x^2) / 2 and (Q(x^2) - P(x^2)) / x^2 for Lambert's fraction of tanh x / 2 = (x / 2) P / Q.

    It is y / (1 + y^2 / (3 + y^2 / (5 + ...))) for tanh y.
    """
    p, q = [Fraction(1)], [Fraction(2 * terms - 1)]
    for n in range(2 * terms - 3, 0, -2):
        p, q = q, [n * c + d for c, d in zip_longest(q, [Fraction(0), *p], fillvalue=Fraction(0))]
    scales = [q[0] * 4**k for k in range(len(q))]
    rest = [d - c for c, d in zip_longest(p, q, fillvalue=Fraction(0))]
    return [float(c / s / 2) for c, s in zip(p, scales, strict=False)], [float(c / s) for c, s in zip(rest, scales)][1:]


# Where the hyperbolic tangent becomes 1, and fractions that give all its digits.
_TANH = {"float32": (10.0, *_lambert(7)), "float64": (20.0, *_lambert(15))}


def tanh_formula(x: Any) -> Any:
    """By the tangent t of the half, 2 t / (1 + t^2), with t = u / q.

    For |x| < 1 that is x times 1 less a small part, beyond it is 1 less (q - u)^2 / (q^2 + u^2). (XLA's own, a rational
    function of x, is wrong by up to 7 ulp.)
    """
    limit, first, second = _TANH[x.dtype.name]
    a = min(abs(x), limit)
    z = mul(a, a)
    p, rest = horner(z, first), mul(z, horner(z, second))
    u, q = mul(a, p), add(mul(p, 2.0), rest)
    squares = mul(u, u)
    part = select(lt(a, 1.0), add(squares, mul(q, rest)), square(sub(q, u)))
    return mul(clamp(-1.0, x, 1.0), sub(1.0, div(part, add(squares, mul(q, q)))))
