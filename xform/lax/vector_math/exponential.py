"""The exponential function, hyperbolic functions, logarithms, powers and roots as formulas (see `vector_math`).

May import: `vector_math.number`.
"""

from xform.lax.vector_math.number import INF, INTEGER, MANTISSA, NAN, Number, polynomial, where, whole, with_sign

SMALLEST = 2.0**-1022  # below it XLA on CPU takes numbers for zero

# log 2 as a number of 42 bits, whose multiples up to 2^11 are exact, and the rest.
LOG_2 = (0.6931471805598903, 5.497923018708371e-14)
LOG2_E = 1.4426950408889634

# (exp r - 1 - r) / r^2, |r| <= log(2) / 2: relative error of exp 2^-57; 2^-34.
EXP = (
    0.5000000000000011,
    0.1666666666666641,
    0.04166666666653051,
    0.008333333333495568,
    0.0013888888943548393,
    0.00019841269504445108,
    2.4801493174777622e-05,
    2.755758805060091e-06,
    2.7630223599956374e-07,
    2.4999595534236632e-08,
)
SHORT_EXP = (
    0.5000000067550299,
    0.1666666586221914,
    0.041666295225671245,
    0.008333498325118491,
    0.00139446443855825,
    0.00019789758647566596,
)
# (2^r - 1) / r, |r| <= 1/2: 2^-63; 2^-28.
EXP2 = (
    0.6931471805599453,
    0.24022650695910072,
    0.055504108664821736,
    0.009618129107628562,
    0.001333355814638174,
    0.00015403530393171686,
    1.5252733864841607e-05,
    1.3215487003485573e-06,
    1.0178047532766113e-07,
    7.054814821470699e-09,
    4.4572390640226125e-10,
    2.5855243520553295e-11,
)
SHORT_EXP2 = (
    0.6931472149525368,
    0.24022652774777223,
    0.05550310585090315,
    0.009617694249754343,
    0.0013406631865373957,
    0.00015594260974231852,
)


def _shifted(x: Number, k: Number) -> Number:
    """x 2^k for a normal number `x` and a normal result."""
    return (x.bits + ((k + INTEGER).bits << 52)).float


def _within(below: Number, value: Number, x: Number, low: float) -> Number:
    """A growing function's `value`; where not `below` its bound infinity (NaN for NaN), where `x` is too low 0."""
    return where(below, where(x >= low, value, 0.0), x + INF)


def _exp_parts(x: Number) -> tuple[Number, Number, Number]:
    """k, r and a small correction of r with x = k log 2 + r."""
    k = (x * LOG2_E).round()
    first = x - k * LOG_2[0]
    rest = k * LOG_2[1]
    r = first - rest
    return k, r, (first - r) - rest


# The arguments where exp becomes infinite and subnormal, and sinh infinite.
LOG_MAX, LOG_MIN, SINH_MAX = 709.782712893384, -708.3964185322641, 710.4758600739439


def exp(x: Number) -> Number:
    """float64."""
    k, r, _ = _exp_parts(x)
    value = 1.0 + (r + r * r * polynomial(r, EXP))
    return _within(x <= LOG_MAX, _shifted(value, k), x, LOG_MIN)


def _exp2(x: Number, rest: Number | float, coefficients: tuple[float, ...]) -> Number:
    """2^(x + rest), where `rest` is small."""
    whole = x.round()
    r = (x - whole) + rest
    value = _shifted(1.0 + r * polynomial(r, coefficients), whole)
    return _within((x - 1024.0) + rest < 0.0, value, x, -1022.0)


def exp2(x: Number) -> Number:
    """float64."""
    return _exp2(x, 0.0, EXP2)


def _power_of_2(k: Number) -> Number:
    """2^k for -1023 < k < 1024."""
    return ((k + (INTEGER + 1023)).bits << 52).float


def _expm1(x: Number, coefficients: tuple[float, ...] = EXP) -> tuple[Number, Number, Number]:
    """exp(x) - 1 between -40 and log(2^1024); k and exp(r) as in `_exp_parts`."""
    k, r, rest = _exp_parts(x)
    more = r * r * polynomial(r, coefficients) + rest
    # 2^k (r + more) + (2^k - 1). The last term is the largest, or it is 0.
    power = _power_of_2(k)
    a, b = power - 1.0, power * r
    total = a + b
    return total + ((b - (total - a)) + power * more), k, 1.0 + (r + more)


def expm1(x: Number) -> Number:
    """float64."""
    value, k, grown = _expm1(x.at_least(-40.0))
    value = where(x > 700.0, _shifted(grown, k), value)
    return where(x.equals(0.0), x, where(x > LOG_MAX, INF, value))


def sinh(x: Number) -> Number:
    """float64."""
    a = abs(x)
    e, k, grown = _expm1(a)
    value = where(a > 700.0, where(a > SINH_MAX, INF, _shifted(grown, k - 1.0)), 0.5 * (e + e / (e + 1.0)))
    return with_sign(value, x)


def cosh(x: Number) -> Number:
    """float64."""
    a = abs(x)
    k, r, _ = _exp_parts(a)
    half = _shifted(1.0 + (r + r * r * polynomial(r, EXP)), k - 1.0)
    return where(a <= SINH_MAX, half + 0.25 / half, a + INF)


def logistic(x: Number) -> Number:
    """float64."""
    return 1.0 / (1.0 + exp(-x))


# float32, computed in float64


def short_sinh(x: Number) -> Number:
    """float32."""
    e, _, _ = _expm1(abs(x).at_most(100.0), SHORT_EXP)
    return with_sign(0.5 * (e + e / (e + 1.0)), x)


# Logarithms. A number is 2^k m with m between sqrt(1/2) and sqrt(2); with s = (m - 1) / (m + 1)
# log m = 2 (s + s^3 / 3 + s^5 / 5 + ...).

# (2 artanh s / s - 2) / s^2 in s^2, |s| <= 3 - sqrt(8): relative error of the logarithm 2^-59; 2^-37.
LOG = (
    0.6666666666666734,
    0.3999999999941429,
    0.28571428742497185,
    0.2222219856036249,
    0.18183565056575893,
    0.1531403049771596,
    0.14796162189243067,
)
SHORT_LOG = (0.6666666564533807, 0.40000335243127594, 0.28537303841961326, 0.23582261535520777)

SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
ONE_BITS = 0x3FF << 52


def _scaled(x: Number) -> tuple[Number, Number]:
    """k and m of a normal number."""
    shifted = x.bits + (ONE_BITS - SQRT_HALF_BITS)
    return whole(shifted >> 52) - 1023.0, ((shifted & MANTISSA) + SQRT_HALF_BITS).float


def _inverse_near_2(x: Number) -> Number:
    """1 / x between 1.7 and 2.42, to 1 ulp: a parabola right to 0.2%, then Newton's steps (see `reciprocal`)."""
    y = polynomial(x, (1.4778, -0.7225, 0.1169))
    for _ in range(3):
        y = y + y * (1.0 - x * y)
    return y


def _log(k: Number, f: Number, more: Number | None, coefficients: tuple[float, ...]) -> Number:
    """k log 2 + log(1 + f) + more, as in fdlibm: the largest terms are added last."""
    s = f * _inverse_near_2(2.0 + f)
    z = s * s
    half = 0.5 * f * f
    small = k * LOG_2[1] if more is None else k * LOG_2[1] + more
    return k * LOG_2[0] - ((half - (s * (half + z * polynomial(z, coefficients)) + small)) - f)


def log(x: Number) -> Number:
    """float64."""
    k, m = _scaled(x)
    value = _log(k, m - 1.0, None, LOG)
    return where(x < SMALLEST, where(x < 0.0, NAN, -INF), where(x < INF, value, x))


def log1p(x: Number) -> Number:
    """float64."""
    u = abs(1.0 + x)  # the modulus only keeps XLA from simplifying u - 1 to x
    k, m = _scaled(u)
    near = k.equals(0.0)
    lost = (x - (u - 1.0)) / u
    value = _log(k, where(near, x, m - 1.0), where(near, 0.0, lost), LOG)
    value = where(x.equals(0.0), x, where(x < INF, value, x))
    return where(x <= -1.0, where(x < -1.0, NAN, -INF), value)


HUGE, LOG_2_53 = 2.0**500, 0.6931471805599453  # beyond, log(1 + 2 x) = log(1 + x) + log 2


def asinh(x: Number) -> Number:
    """float64: log(1 + x + x^2 / (1 + sqrt(x^2 + 1)))."""
    a = abs(x)
    huge, square = a > HUGE, a * a
    w = a + square / (1.0 + (square + 1.0).sqrt())
    return with_sign(log1p(where(huge, a, w)) + where(huge, LOG_2_53, 0.0), x)


def acosh(x: Number) -> Number:
    """float64: log(1 + a + sqrt(a^2 + 2 a)) with a = x - 1."""
    a = x - 1.0
    huge = a > HUGE
    w = a + (a * (a + 2.0)).sqrt()
    return where(x < 1.0, NAN, log1p(where(huge, a, w)) + where(huge, LOG_2_53, 0.0))


def atanh(x: Number) -> Number:
    """float64: log(1 + 2 x + 2 x^2 / (1 - x)) / 2."""
    a = abs(x)
    w = 2.0 * (a + a * a / (1.0 - a))
    return with_sign(where(a > 1.0, NAN, 0.5 * log1p(w)), x)


# Powers and roots

# 2 / (3 log 2) as a number of 26 bits and the rest.
LOG2_FACTOR = (0.9617966860532761, 7.872699542894897e-09)
# ((2 artanh s / s - 2) / s^2 - 2 / 3) 3 / 2 / s^2 in s^2: 2^-73 relative to the logarithm.
FINE_LOG = (
    0.5999999999999996,
    0.4285714285716767,
    0.3333333332630481,
    0.27272728305468547,
    0.2307683530617935,
    0.20004476156798068,
    0.17512226943060105,
    0.17983528071337895,
)


def _log2(x: Number) -> tuple[Number, Number]:
    """The binary logarithm of a normal number as two floats, of which the first has 26 bits; good to 2^-64."""
    k, m = _scaled(x)
    f, divisor = m - 1.0, m + 1.0
    inverse = _inverse_near_2(divisor)
    s = f * inverse
    s0, d0 = s.head(), divisor.head()
    s1 = ((f - s0 * d0) - s0 * (m - (d0 - 1.0))) * inverse
    # log m = 2/3 s (3 + s^2 + s^4 (...))
    z, square = s * s, s0 * s0
    tail = z * z * polynomial(z, FINE_LOG) + s1 * (s0 + s)
    t0 = (3.0 + square + tail).head()
    t1 = tail - ((t0 - 3.0) - square)
    product, error = s0 * t0, s1 * t0 + t1 * s
    p0 = (product + error).head()
    p1 = error - (p0 - product)
    q0, q1 = LOG2_FACTOR[0] * p0, LOG2_FACTOR[1] * p0 + p1 * sum(LOG2_FACTOR)
    high = (k + (q0 + q1)).head()
    return high, q1 - ((high - k) - q0)


def _power(x: Number, y: Number, power: Number) -> Number:
    """x^y where |x|^y is `power` for normal |x|: signs and exceptional values, as in C."""
    a = abs(x)
    zero = a < SMALLEST
    value = where(zero | a.equals(INF), where((y > 0.0) ^ zero, INF, 0.0), power)
    half = 0.5 * y
    fraction = y.round().differs(y)
    uneven = half.round().differs(half)
    odd = uneven & (uneven ^ fraction)
    value = where(odd, with_sign(value, x), value)
    value = where(fraction & (x < 0.0) & (a < INF), NAN, value)
    value = where(x.differs(x) | y.differs(y), x + y, value)
    return where(y.equals(0.0) | x.equals(1.0), 1.0, value)


def pow(x: Number, y: Number) -> Number:
    """float64."""
    high, low = _log2(abs(x))
    exponent = y.at_least(-(2.0**70)).at_most(2.0**70)
    head = exponent.head()
    product = head * high  # exact
    rest = (exponent - head) * high + exponent * low
    rounded = product + rest
    return _power(x, y, _exp2(rounded, (product - rounded) + rest, EXP2))


def short_pow(x: Number, y: Number) -> Number:
    """float32."""
    k, m = _scaled(abs(x))
    exponent = y.at_least(-(2.0**70)).at_most(2.0**70) * (_log(k, m - 1.0, None, SHORT_LOG) * LOG2_E)
    return _power(x, y, _exp2(exponent, 0.0, SHORT_EXP2))


def cbrt(x: Number) -> Number:
    """float64."""
    tiny = abs(x) < 2.0**-600
    a = abs(x) * where(tiny, 2.0**600, 1.0)
    # x^(-1/3): the exponent divided by 3, then two steps of Halley's kind.
    third = ((a.bits >> 32) * 0xAAAAAAAB) >> 33
    y = ((CBRT_BITS - third) << 32).float
    for _ in range(2):
        h = 1.0 - a * y * y * y
        y = y + y * (h * (1 / 3 + h * (2 / 9 + h * (14 / 81))))
    t = (a * y * y).head()
    square = t * t
    head = square.head()
    more = ((a - head * t) - (square - head) * t) * (y * y) * (1 / 3)
    value = (t + (more + more * more * y)) * where(tiny, 2.0**-200, 1.0)
    return with_sign(where((a > 0.0) & (a < INF), value, a), x)


def short_cbrt(x: Number) -> Number:
    """float32."""
    a = abs(x)
    y = ((CBRT_BITS - (((a.bits >> 32) * 0xAAAAAAAB) >> 33)) << 32).float
    for _ in range(2):
        h = 1.0 - a * y * y * y
        y = y + y * (h * (1 / 3 + h * (2 / 9 + h * (14 / 81))))
    return with_sign(where((a > 0.0) & (a < INF), a * y * y, a), x)


CBRT_BITS = 0x553EF0FF  # of the high half of 1.0, times 4/3, less what makes the first guess good
