"""The hyperbolic tangent.

May import: `lax.arithmetic`, `lax.extremes`, `lax.comparison`, `lax.polynomials`, `lax.powers`.
"""

from fractions import Fraction
from itertools import zip_longest
from typing import Any

import numpy as np

from xform.lax import single_precision
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


_ONE_FROM = 20.0  # where float64 has no number between the hyperbolic tangent and 1
_FIRST, _SECOND = _lambert(15)  # a fraction that gives all digits


def tanh_formula(x: Any) -> Any:
    """By the tangent t of the half, 2 t / (1 + t^2), with t = u / q; in float32 another one.

    For |x| < 1 that is x times 1 less a small part, beyond it is 1 less (q - u)^2 / (q^2 + u^2).
    """
    if x.dtype == np.float32:
        return single_precision.tanh(x)
    a = min(abs(x), _ONE_FROM)
    z = mul(a, a)
    p, rest = horner(z, _FIRST), mul(z, horner(z, _SECOND))
    u, q = mul(a, p), add(mul(p, 2.0), rest)
    squares = mul(u, u)
    part = select(lt(a, 1.0), add(squares, mul(q, rest)), square(sub(q, u)))
    return mul(clamp(-1.0, x, 1.0), sub(1.0, div(part, add(squares, mul(q, q)))))
