"""Trigonometric functions and their inverses as formulas (see `vector_math`).

May import: `vector_math.number`.
"""

import math

from xform.lax.vector_math.number import (
    INF,
    INTEGER,
    SIGN,
    Bound,
    Number,
    polynomial,
    reciprocal,
    where,
    with_sign,
)

# pi / 2 as 53 bits and the rest, and as thrice 29 bits and the rest.
HALF_PI, HALF_PI_REST = 1.5707963267948966, 6.123233995736766e-17
PARTS = (1.570796325802803, 9.920935774287987e-10, 2.2517417706346578e-18, 3.5215598651832e-27)
MODERATE = 2.0**24  # radians: quarter turns are numbers of 24 bits

# (sin r / r - 1) / r^2 and (cos r - 1 + r^2 / 2) / r^4 as polynomials in r^2, |r| <= 1. Relative errors of sine and
# cosine: 2^-63, 2^-58; of the short ones 2^-33, 2^-38.
SIN = (
    -0.16666666666666666,
    0.008333333333333134,
    -0.00019841269841099752,
    2.7557319155039816e-06,
    -2.5052093410997113e-08,
    1.6057253429458062e-10,
    -7.535983994905628e-13,
)
COS = (
    0.041666666666665235,
    -0.0013888888888702834,
    2.4801587210554563e-05,
    -2.7557297240081187e-07,
    2.0873945597422516e-09,
    -1.128795197844231e-11,
)
SHORT_SIN = (-0.16666666485459172, 0.008333316052773132, -0.00019836114922666705, 2.6948088457138012e-06)
SHORT_COS = (0.04166666632425116, -0.0013888865203199078, 2.4795901555009652e-05, -2.6983866329286387e-07)


def _sum(x: Number, y: Number) -> tuple[Number, Number]:
    """Rounded, and what rounding took away (Knuth 1997, section 4.2.2)."""
    total = x + y
    other = total - x
    return total, (x - (total - other)) + (y - other)


def _reduce(x: Number) -> tuple[Number, Number, Number]:
    """The quadrant of an angle, and what is left of it, |r| <= pi / 4, as two floats.

    Cody & Waite, "Software manual for the elementary functions" (1980): the products with parts of pi / 2 are exact
    but for the last one, whose error is below 2^-115. No angle below `MODERATE` is closer than 2^-60 to a multiple of
    pi / 2.
    """
    turns = (x * (2 / math.pi)).round()
    r, rest = _sum(x - turns * PARTS[0], turns * -PARTS[1])
    r, second = _sum(r, turns * -PARTS[2])
    rest = (rest + second) - turns * PARTS[3]
    angle = r + rest
    return (turns + INTEGER).bits, angle, (r - angle) + rest


def _sin_cos(x: Number) -> tuple[Number, Number, Number, Number, Number]:
    """The quadrant of |x|, and sine and cosine of what is left, each as the sum of a float and a smaller one."""
    quadrant, r, rest = _reduce(abs(x))
    z = r * r
    half = 0.5 * z
    head = 1.0 - half
    sine = r * (z * polynomial(z, SIN)) + rest * head
    return quadrant, r, sine, head, ((1.0 - head) - half) + (z * z * polynomial(z, COS) - r * rest)


def _sine_of(quadrant: Number, sine: Number, cosine: Number) -> Number:
    """The sine of the angle that is so many quarter turns beyond."""
    value = where((quadrant & 1).differs(0), cosine, sine)
    return (value.bits ^ ((quadrant & 2) << 62)).float


def sin(x: Number) -> Number:
    """float64."""
    quadrant, s0, s1, c0, c1 = _sin_cos(x)
    return (_sine_of(quadrant, s0 + s1, c0 + c1).bits ^ (x.bits & SIGN)).float


def cos(x: Number) -> Number:
    """float64."""
    quadrant, s0, s1, c0, c1 = _sin_cos(x)
    return _sine_of(quadrant + 1, s0 + s1, c0 + c1)


def _quotient(x: Number, y: Number, rests: tuple[Number, Number] | None = None) -> Number:
    """x / y for y > 0; with `rests`, small numbers that belong to `x` and `y`, right to the first order in them."""
    inverse = reciprocal(y)
    q = x * inverse
    error = x - q * y
    if rests is not None:
        error = error + (rests[0] - q * rests[1])
    return q + error * inverse


def tan(x: Number) -> Number:
    """float64."""
    quadrant, s0, s1, c0, c1 = _sin_cos(x)
    sine, cosine = s0 + s1, c0 + c1
    s1, c1 = (s0 - sine) + s1, (c0 - cosine) + c1
    odd = (quadrant & 1).differs(0)
    dividend, divisor = where(odd, cosine, sine), where(odd, sine, cosine)
    value = _quotient(dividend, divisor, (where(odd, c1, s1), where(odd, s1, c1)))
    return (value.bits ^ (x.bits & SIGN) ^ ((quadrant & 1) << 63)).float


def _angle(x: Number) -> Number:
    """How large it is; 0 if it is not a finite number, which has no sine."""
    return where(abs(x) < INF, abs(x), 0.0)


BOUNDS = {
    name: Bound(operation, _angle, MODERATE) for name, operation in (("sin", "sine"), ("cos", "cosine"), ("tan", "tan"))
}


# float32, computed in float64


def _short_sin_cos(x: Number) -> tuple[Number, Number, Number]:
    """The quadrant of |x|, and sine and cosine of what is left, for an `x` that is a float32."""
    x = abs(x)
    turns = (x * (2 / math.pi)).round()
    r = (x - turns * PARTS[0]) - turns * (PARTS[1] + PARTS[2])
    z = r * r
    sine = r + r * (z * polynomial(z, SHORT_SIN))
    return (turns + INTEGER).bits, sine, 1.0 - 0.5 * z + z * z * polynomial(z, SHORT_COS)


def short_sin(x: Number) -> Number:
    """float32."""
    value = _sine_of(*_short_sin_cos(x))
    return (value.bits ^ (x.bits & SIGN)).float


def short_cos(x: Number) -> Number:
    """float32."""
    quadrant, sine, cosine = _short_sin_cos(x)
    return _sine_of(quadrant + 1, sine, cosine)


def short_tan(x: Number) -> Number:
    """float32."""
    quadrant, sine, cosine = _short_sin_cos(x)
    odd = (quadrant & 1).differs(0)
    value = where(odd, cosine, sine) / where(odd, sine, cosine)
    return (value.bits ^ (x.bits & SIGN) ^ ((quadrant & 1) << 63)).float


# Inverses

# (arctan t / t - 1) / t^2 in t^2, |t| <= tan(1/2): 2^-58; 2^-34.
ATAN = (
    -0.3333333333333317,
    0.1999999999995684,
    -0.14285714281660375,
    0.11111110918867514,
    -0.0909090369656447,
    0.07692210007021161,
    -0.0666546445829483,
    0.05871981899705114,
    -0.051993925703184625,
    0.0448093797250749,
    -0.03463997066832495,
    0.020358267008282284,
    -0.006425700181380884,
)
SHORT_ATAN = (
    -0.33333332122566295,
    0.19999894006358507,
    -0.14282553897331965,
    0.11065908022067147,
    -0.08737745934215153,
    0.06110081289093018,
    -0.025986844345929277,
)
# (arcsin t / t - 1) / t^2 in t^2, |t| <= 1/2: 2^-56; 2^-32.
ASIN = (
    0.1666666666666541,
    0.07500000000336701,
    0.044642856828560354,
    0.030381959128092068,
    0.02237175825135417,
    0.01735970187799936,
    0.013885262711845113,
    0.012169040349009574,
    0.006528684867266019,
    0.019526405568925678,
    -0.016221459498067345,
    0.03191043791183068,
)
SHORT_ASIN = (
    0.16666659992172592,
    0.0750050413741503,
    0.04451696326693118,
    0.03180765805625345,
    0.014438807890988932,
    0.03751619805952658,
)

TAN_HALF = 0.5463
# pi / 4 as a number of 50 bits, whose small multiples are exact, and the rest.
QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)


def _atan(x: Number, coefficients: tuple[float, ...]) -> Number:
    """From the tangent of the angle less 0, pi / 4 or pi / 2."""
    a = abs(x).at_most(2.0**60)
    small, large = a <= TAN_HALF, a > 1 / TAN_HALF
    t = _quotient(where(small, a, where(large, -1.0, a - 1.0)), where(small, 1.0, where(large, a, a + 1.0)))
    z = t * t
    octant = where(small, 0.0, where(large, 2.0, 1.0))
    value = octant * QUARTER_PI[0] + (t + (t * (z * polynomial(z, coefficients)) + octant * QUARTER_PI[1]))
    return with_sign(value, x)


def atan(x: Number) -> Number:
    """float64."""
    return _atan(x, ATAN)


def short_atan(x: Number) -> Number:
    """float32."""
    return _atan(x, SHORT_ATAN)


def _atan2(y: Number, x: Number, coefficients: tuple[float, ...]) -> Number:
    """The angle in the first octant, from the quotient of the smaller and the larger ordinate, then mirrored."""
    tall = abs(y) > abs(x)
    a, b = abs(y).at_most(abs(x)), abs(y).at_least(abs(x))
    scale = where(b > 2.0**1000, 2.0**-600, where(b < 2.0**-900, 2.0**600, 1.0))
    a, b = a * scale, b * scale
    diagonal = a.equals(INF)  # both are infinite
    small = a <= b * TAN_HALF
    t = _quotient(where(small, a, a - b), where(small, where(b.equals(0.0), 1.0, b), a + b))
    t = where(b.equals(INF), 0.0, t)
    z = t * t
    octant = where(small, where(diagonal, 1.0, 0.0), 1.0)
    left = (x.bits & SIGN).differs(0)
    octant = where(tall, 2.0 - octant, octant)
    octant = where(left, 4.0 - octant, octant)
    t = where(tall ^ left, -t, t)
    value = octant * QUARTER_PI[0] + (t + (t * (z * polynomial(z, coefficients)) + octant * QUARTER_PI[1]))
    return with_sign(value, y)


def atan2(y: Number, x: Number) -> Number:
    """float64."""
    return _atan2(y, x, ATAN)


def short_atan2(y: Number, x: Number) -> Number:
    """float32."""
    return _atan2(y, x, SHORT_ATAN)


def _asin(x: Number, coefficients: tuple[float, ...]) -> tuple[Number, Number, Number]:
    """Whether |x| > 1/2, and as two floats the arcsine of |x|, or of sqrt((1 - |x|) / 2), half its arccosine, if so."""
    a = abs(x)
    large = a > 0.5
    z = where(large, (1.0 - a) * 0.5, a * a)
    s = where(large, z.sqrt(), a)
    return large, s, s * (z * polynomial(z, coefficients))


def _asin_of(x: Number, coefficients: tuple[float, ...]) -> Number:
    large, s, more = _asin(x, coefficients)
    far = HALF_PI - 2.0 * s
    error = (HALF_PI - far) - 2.0 * s
    return with_sign(where(large, far + (error - (2.0 * more - HALF_PI_REST)), s + more), x)


def _acos_of(x: Number, coefficients: tuple[float, ...]) -> Number:
    large, s, more = _asin(x, coefficients)
    near = 2.0 * (s + more)
    far = 2.0 * HALF_PI - (near - 2.0 * HALF_PI_REST)
    s, more = with_sign(s, x), (more.bits ^ (x.bits & SIGN)).float
    return where(large, where(x < 0.0, far, near), HALF_PI - (s + (more - HALF_PI_REST)))


def asin(x: Number) -> Number:
    """float64."""
    return _asin_of(x, ASIN)


def acos(x: Number) -> Number:
    """float64."""
    return _acos_of(x, ASIN)


def short_asin(x: Number) -> Number:
    """float32."""
    return _asin_of(x, SHORT_ASIN)


def short_acos(x: Number) -> Number:
    """float32."""
    return _acos_of(x, SHORT_ASIN)
