"""Functions of the gamma family between their poles on the negative axis, where they cross zero, in float64.

Reflection gives them as differences that lose all digits around the zeros. There the difference to the value at the
zero, whose place is known to more digits than float64 has, is written with the distance as a factor.

May import: `lax.special.formulas`, the elementwise modules of `lax`.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from xform.lax.arithmetic import abs, add, div, mul, neg, sub
from xform.lax.bitwise import bitcast_convert_type, shift_left, shift_right_logical
from xform.lax.comparison import gt, lt, select
from xform.lax.conversion import convert
from xform.lax.polynomials import horner
from xform.lax.powers import square
from xform.lax.rounding import floor, round
from xform.lax.special import tables
from xform.lax.special.double_double import Double, over, plus, polynomial, scaled, times, two_product, two_sum
from xform.lax.special.formulas import all_of, bernoulli, entry, evaluate
from xform.lax.transcendental import log

_FACTORIALS = tuple(float(math.factorial(m)) for m in range(171))
_STIRLING_CONSTANT = (math.log(2 * math.pi) - 1) / 2
_STIRLING = tables.LGAMMA_LONG_TAIL["float64"]
_SINC = tuple(c / math.pi for c in tables.SIN_PI["float64"])  # sin(pi e) / (pi e) as a function of e^2
_ARTANH = tuple(1 / (2 * k + 1) for k in range(6))
_LN2 = 0.6931471805599453, 2.3190468138462996e-17
# Of digamma(w + 1/2) - log(w) as a function of 1 / w^2 (https://dlmf.nist.gov/5.11.E10): -B_2k(1/2) / (2 k w^(2 k)).
_HALF_BERNOULLI = [(1 - Fraction(2, 4**k)) * b / (2 * k) for k, b in enumerate(bernoulli(24)[2::2], 1)]
_HALF_STIRLING = tuple(map(float, _HALF_BERNOULLI))
_HALF_STIRLING_DOUBLE = tuple((float(c), float(c - Fraction(float(c)))) for c in _HALF_BERNOULLI[:4])
_ODD = tuple((1 / n, float(Fraction(1, n) - Fraction(1 / n))) for n in (3, 5))
_STEPS = 8
DIGAMMA_FAR = -float(len(tables.DIGAMMA_ZEROS[0]))  # from there on zeros are not tabulated
_BETWEEN = (-2.4570247382208006, -3.7075610815513266e-17), (-2.7476826467274127, 9.055340329338315e-17)


def _divided(coefficients: tuple[float, ...], x: Any, y: Any) -> tuple[Any, Any]:
    """p(y), and (p(x) - p(y)) / (x - y) without cancellation, of a polynomial p."""
    *rest, last = coefficients
    slope, value = mul(y, 0.0), add(mul(y, 0.0), last)
    for c in reversed(rest):
        slope = add(mul(slope, x), value)
        value = add(mul(value, y), c)
    return value, slope


def _inverses(b: Any, d: Any) -> tuple[Any, Any, Any]:
    """1 / b, 1 / (b - d), log(b / (b - d)) / 2, for |d| < b / 10. One division, as XLA makes a loop for each."""
    b_d, twice = sub(b, d), sub(add(b, b), d)
    inverse = div(1.0, mul(mul(b, b_d), twice))
    s = mul(mul(inverse, d), mul(b, b_d))
    return mul(inverse, mul(b_d, twice)), mul(inverse, mul(b, twice)), mul(s, horner(square(s), _ARTANH))


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
    d = sub(sub(e, zero), mul(zero, rest))
    b = select(far, a, sub(add(m, 1.0), zero))

    # The ratio of the two sides but for this: sinc(e) / sinc(zero), and gamma(b - d) / gamma(b) up to where Stirling's
    # formula holds, both as (1 + change / whole).
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
    more = add(u, sub(mul(ratio, add(most, u)), mul(rest, u)))
    v = add(most, more)
    logarithm = add(log(v), div(sub(more, sub(v, most)), v))

    # lgamma(b - d) - lgamma(b) by Stirling's formula; beyond the table of factorials lgamma(b) alone.
    w, w_d, artanh = _inverses(b, d)
    remainder, slope = _divided(_STIRLING, square(w_d), square(w))
    of_remainder = mul(mul(mul(d, w), w_d), add(remainder, mul(mul(w_d, add(w, w_d)), slope)))
    difference = sub(of_remainder, mul(sub(sub(b, d), 0.5), add(artanh, artanh)))
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


def digamma_below(x: Any) -> Any:
    """digamma(x) for x < 0, which isn't an integer."""
    return select(gt(x, DIGAMMA_FAR), digamma_near(x), digamma_far(x))


def digamma_near(x: Any) -> Any:
    """The difference to digamma at the zero of the interval, where digamma(x) = digamma(1 - x) - pi / tan(pi x)."""
    n = floor(neg(x))
    zero, rest, size = (entry(table, n) for table in tables.DIGAMMA_ZEROS)
    d, r = sub(sub(x, zero), rest), sub(x, round(x))
    # That of the cotangents is pi sin(pi d) / (sin(pi x) sin(pi zero)), with sin(pi d) = pi d (1 + of_d).
    folded = select(gt(abs(d), 0.5), sub(1.0, abs(d)), abs(d))
    cotangents = div(mul(select(lt(d, 0.0), neg(folded), folded), size), abs(r))
    of_d, of_r = (mul(square(v), horner(square(v), _SINC[1:])) for v in (folded, r))
    factor = div(sub(of_d, of_r), add(of_r, 1.0))

    # That of digamma(1 - x), which is a tenth: recurrence up to where the asymptotic series holds.
    b = sub(1.0, zero)
    total, product = mul(b, 0.0), add(mul(b, 0.0), 1.0)
    for k in range(_STEPS):
        step = add(b, float(k))
        step = mul(step, sub(step, d))
        total, product = add(mul(total, step), product), mul(product, step)
    b = add(b, _STEPS - 0.5)
    w, w_d, artanh = _inverses(b, d)
    _, slope = _divided((0.0, *_HALF_STIRLING), square(w_d), square(w))
    tail = mul(mul(mul(d, sub(add(b, b), d)), square(mul(w, w_d))), slope)
    difference = sub(tail, add(mul(d, div(total, product)), add(artanh, artanh)))
    return add(cotangents, add(mul(cotangents, factor), difference))


def digamma_far(x: Any) -> Any:
    """In double the precision: log(w) + ..., where w = 1 / 2 - x, less pi / tan(pi x)."""
    zero = mul(x, 0.0)
    w = two_sum(neg(x), add(zero, 0.5))
    k, near_w, log_near_w = _near(w)
    square_w, sum_w = times(w, w), plus(*near_w)
    r = sub(x, round(x))
    u = two_product(r, r)
    rest = times((r, zero), plus((add(zero, 1.0), zero), (neg(u[0]), neg(u[1]))))
    # One division for three quotients: XLA makes a loop of its own for each, and does again there what leads to it.
    part = mul(square_w[0], sum_w[0])
    inverse = div(1.0, mul(part, rest[0]))
    of_rest, inverse = mul(inverse, part), mul(inverse, rest[0])

    v = over((add(zero, 1.0), zero), square_w, mul(inverse, sum_w[0]))
    tail = times(v, polynomial(v, _HALF_STIRLING_DOUBLE, _HALF_STIRLING[len(_HALF_STIRLING_DOUBLE) :]))

    s = over((sub(near_w[0][0], near_w[1][0]), near_w[0][1]), sum_w, mul(inverse, square_w[0]))
    z = times(s, s)
    artanh = plus(s, times(times(s, z), polynomial(z, _ODD, _ARTANH[3:])))
    log_2, error = two_product(k, add(zero, _LN2[0]))
    logarithm = plus((log_2, add(error, mul(k, _LN2[1]))), plus(log_near_w, scaled(artanh, 2.0)))

    # The poles at 0, 1 and -1, and a series for the others.
    poles = over(plus(scaled(u, 2.0), plus((add(zero, -1.0), zero), u)), rest, of_rest)
    first = tuple(zip(*tables.ZETAS, strict=False))
    series = times(scaled((r, zero), 2.0), polynomial(u, first, tables.ZETAS[0][len(first) :]))
    return add(*plus(plus(logarithm, tail), plus(poles, series)))


def _near(w: Double) -> tuple[Any, tuple[Double, Double], Double]:
    """For w >= 1: k, w / 2^k and a number close to that, the logarithm of this number."""
    bits = bitcast_convert_type(w[0], np.dtype(np.int64))
    exponent = shift_right_logical(bits, np.int64(52))
    scale = bitcast_convert_type(shift_left(sub(np.int64(2046), exponent), np.int64(52)), np.dtype(np.float64))
    w = scaled(w, scale)
    j = floor(mul(sub(w[0], 1.0), 32.0))
    center = mul(add(j, 32.5), 1 / 32)
    k = convert(sub(exponent, np.int64(1023)), np.dtype(np.float64))
    return k, (w, (center, mul(center, 0.0))), (entry(tables.LOGS[0], j), entry(tables.LOGS[1], j))
