"""Functions of the gamma family between their poles on the negative axis, where they cross zero, in float64.

Reflection gives them as differences that lose all digits around the zeros. There the difference to the value at the
zero, whose place is known to more digits than float64 has, is written with the distance as a factor.

May import: `lax.special.formulas`, the elementwise modules of `lax`.
"""

import math
from typing import Any

from xform.lax.arithmetic import abs, add, div, mul, neg, sub
from xform.lax.comparison import gt, lt, select
from xform.lax.polynomials import horner
from xform.lax.powers import square
from xform.lax.rounding import round
from xform.lax.special import tables
from xform.lax.special.formulas import all_of, entry, evaluate
from xform.lax.transcendental import log

_FACTORIALS = tuple(float(math.factorial(m)) for m in range(171))
_STIRLING_CONSTANT = (math.log(2 * math.pi) - 1) / 2
_STIRLING = tables.LGAMMA_LONG_TAIL["float64"]
_SINC = tuple(c / math.pi for c in tables.SIN_PI["float64"])  # sin(pi e) / (pi e) as a function of e^2
_ATANH = tuple(1 / (2 * k + 1) for k in range(6))
_BETWEEN = (-2.4570247382208006, -3.7075610815513266e-17), (-2.7476826467274127, 9.055340329338315e-17)


def _divided(coefficients: tuple[float, ...], x: Any, y: Any) -> tuple[Any, Any]:
    """p(y), and (p(x) - p(y)) / (x - y) without cancellation, of a polynomial p."""
    *rest, last = coefficients
    slope, value = mul(y, 0.0), add(mul(y, 0.0), last)
    for c in reversed(rest):
        slope = add(mul(slope, x), value)
        value = add(mul(value, y), c)
    return value, slope


def lgamma_below(x: Any) -> Any:
    """lgamma(x) for x < -2.

    With x = -m + e and b = m + 1 reflection says -lgamma(x) = log(|e| sinc(e)) + lgamma(b - e), where sinc(e) is
    sin(pi e) / (pi e). This is compared with its value at a zero next to the pole -m if one is near, or with log m!,
    which lgamma(b - e) is at the pole itself.
    """
    a = neg(x)
    m = round(a)
    e = sub(m, a)
    far = gt(m, len(_FACTORIALS) - 1.0)
    index = add(add(m, m), select(gt(e, 0.0), 1.0, mul(e, 0.0)))
    zero, rest = (entry(table, index) for table in tables.LGAMMA_ZEROS)
    product, size = mul(e, zero), square(zero)
    near = all_of(gt(product, mul(size, 0.7)), lt(product, mul(size, 1.4)))
    zero, rest = select(near, zero, 0.0), select(near, rest, 0.0)
    d = sub(sub(e, zero), rest)
    b = select(far, a, sub(add(m, 1.0), zero))

    # The ratio of the two sides but for this: sinc(e) / sinc(zero), and gamma(b - d) / gamma(b) up to where Stirling's
    # formula holds, both as (1 + change / whole). Few divisions: XLA makes a loop of its own for each.
    whole, slope = _divided(_SINC, square(e), square(zero))
    change = mul(mul(d, add(e, zero)), slope)
    few = lt(m, 4.0)
    next_b = add(b, 1.0)
    product = select(few, mul(b, next_b), 1.0)
    change_of_product = select(few, mul(d, sub(d, add(b, next_b))), 0.0)
    b = select(few, add(b, 2.0), b)
    ratio = div(sub(mul(change, product), mul(whole, change_of_product)), mul(whole, add(product, change_of_product)))

    # log((1 + u) (1 + ratio)) near a zero, and else log(size (1 + ratio)), with the rounding of the sum.
    most = select(near, 1.0, mul(abs(e), select(far, a, entry(_FACTORIALS, m))))
    u = select(near, div(d, select(near, zero, 1.0)), 0.0)
    more = add(mul(most, ratio), mul(u, add(ratio, 1.0)))
    v = add(most, more)
    logarithm = add(log(v), div(sub(more, sub(v, most)), v))

    # lgamma(b - d) - lgamma(b) by Stirling's formula; beyond the table of factorials lgamma(b) alone.
    b_d, b_2 = sub(b, d), sub(add(b, b), d)
    inverse = div(1.0, mul(mul(b, b_d), b_2))
    w, w_d, s = mul(inverse, mul(b_d, b_2)), mul(inverse, mul(b, b_2)), mul(mul(inverse, d), mul(b, b_d))
    remainder, slope = _divided(_STIRLING, square(w_d), square(w))
    of_remainder = mul(mul(mul(d, w), w_d), add(remainder, mul(mul(w_d, add(w, w_d)), slope)))
    artanh = mul(s, horner(square(s), _ATANH))
    difference = sub(of_remainder, mul(sub(b_d, 0.5), add(artanh, artanh)))
    stirling = add(
        mul(select(far, sub(b, 0.5), neg(d)), sub(log(b), 1.0)),
        select(far, add(mul(w, remainder), _STIRLING_CONSTANT), difference),
    )
    value = neg(add(logarithm, stirling))

    # Between -2 and -3 the function is everywhere small beside its parts.
    t = sub(2.55, a)
    between = evaluate(tables.LGAMMA_BETWEEN, t)
    for number, rest in _BETWEEN:
        between = sub(mul(between, sub(x, number)), mul(between, rest))  # not (x - number - rest): XLA adds constants
    return select(lt(abs(t), 0.3), between, value)
