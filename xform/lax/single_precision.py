"""Elementary functions of float32 in float32 arithmetic, for large arrays on CPU.

They are within 3.5 ulp and take no longer than XLA's own, which are wrong by up to 67 ulp (JAX's `exp2`), 6 (`expm1`),
5 (`tanh`) and 7 (`erf`). Lowerings of these functions are ``lower_as`` of them.

Bounds are selections, not `clamp`: NaN passes, and each is one instruction. `log1p` is given to those that need it.

May import: `lax.arithmetic`, `lax.bitwise`, `lax.comparison`, `lax.conversion`, `lax.polynomials`, `lax.powers`,
`lax.rounding`, `lax.vector_math`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xform.lax.arithmetic import abs, add, div, mul, sub
from xform.lax.bitwise import bitcast_convert_type, bitwise_and, bitwise_or, shift_left
from xform.lax.comparison import gt, lt, select
from xform.lax.conversion import convert
from xform.lax.polynomials import horner
from xform.lax.powers import sqrt
from xform.lax.rounding import RoundingMethod, round
from xform.lax.vector_math.exponential import SHORT_EXP, SHORT_EXP2

_INT, _BITS, _FLOAT = np.dtype(np.int32), np.dtype(np.uint32), np.dtype(np.float32)
_MANTISSA = 23  # bits
_SIGN = np.uint32(1 << 31)

# log 2 as a number of 15 bits, whose multiples up to 2^8 are exact, and the rest.
_LOG_2 = (0.693145751953125, 1.428606765330187e-06)


def _within(x: Any, low: float, high: float) -> Any:
    x = select(lt(x, low), low, x)
    return select(gt(x, high), high, x)


def _whole(x: Any) -> Any:
    return round(x, RoundingMethod.TO_NEAREST_EVEN)


def _exponent(k: Any) -> Any:
    """A whole number as the exponent of a float, in its bits."""
    return shift_left(convert(k, _INT), np.int32(_MANTISSA))


def _with_sign(x: Any, like: Any) -> Any:
    """A number that isn't negative with the sign of another, which may be zero."""
    bits = bitwise_or(bitcast_convert_type(x, _BITS), bitwise_and(bitcast_convert_type(like, _BITS), _SIGN))
    return bitcast_convert_type(bits, _FLOAT)


def exp2(x: Any) -> Any:
    """2^k 2^r with r = x - k, |r| <= 1/2."""
    a = _within(x, -127.0, 128.5)
    k = _whole(a)
    r = sub(a, k)
    value = add(mul(r, horner(r, SHORT_EXP2)), 1.0)
    value = bitcast_convert_type(add(bitcast_convert_type(value, _INT), _exponent(k)), _FLOAT)
    value = select(lt(x, -126.0), 0.0, value)
    return select(lt(x, 128.0), value, add(x, np.inf))


def expm1(x: Any) -> Any:
    """2^k (exp(r) - 1) + (2^k - 1) with r = x - k log 2, of which half, so that 2^k doesn't overflow first."""
    a = _within(x, -20.0, 89.0)
    k = _whole(mul(a, 1 / math.log(2)))
    r = sub(sub(a, mul(k, _LOG_2[0])), mul(k, _LOG_2[1]))
    part = add(r, mul(mul(r, r), horner(r, SHORT_EXP)))
    power = bitcast_convert_type(add(_exponent(k), np.int32(126 << _MANTISSA)), _FLOAT)
    value = mul(add(mul(power, part), sub(power, 0.5)), 2.0)
    return select(lt(abs(x), 1e-9), x, value)


# f(x) / x = c + P(x^2) / Q(x^2) up to where f(x) rounds to 1: c, P and Q, with relative errors of 2^-26
# (`tests/minimax.py`). For large x the quotient is small beside c, and the errors of its rounded sums don't count; c is
# such that no result is above 1.
TANH = (
    0.125,
    (0.875, 0.07553101, 0.00026908502, -2.052208e-05, -8.5319485e-08),
    (1.0, 0.46727338, 0.02593572, 0.00033109894, 7.922715e-07),
)
ERF = (
    0.28125,
    (0.84712917, 0.047307163, 0.02066199, -0.00048449644, -3.6479803e-05, -8.784991e-06),
    (1.0, 0.4998447, 0.11312509, 0.014784072, 0.0011453992, 3.8731778e-05),
)
TANH_END, ERF_END = 8.8, 3.85


def _odd(x: Any, end: float, table: tuple[float, tuple[float, ...], tuple[float, ...]]) -> Any:
    constant, p, q = table
    a = _within(x, -end, end)
    z = mul(a, a)
    return mul(a, add(div(horner(z, p), horner(z, q)), constant))


def tanh(x: Any) -> Any:
    """A rational function."""
    return _odd(x, TANH_END, TANH)


def erf(x: Any) -> Any:
    """A rational function."""
    return _odd(x, ERF_END, ERF)


_HUGE = 1e18  # beyond, log(1 + 2 x) = log(1 + x) + log 2


def asinh(x: Any, log1p: Callable[[Any], Any]) -> Any:
    """log(1 + x + x^2 / (1 + sqrt(x^2 + 1)))."""
    a = abs(x)
    huge, square = gt(a, _HUGE), mul(a, a)
    w = select(huge, a, add(a, div(square, add(sqrt(add(square, 1.0)), 1.0))))
    return _with_sign(add(log1p(w), select(huge, np.float32(math.log(2)), 0.0)), x)


def acosh(x: Any, log1p: Callable[[Any], Any]) -> Any:
    """log(1 + a + sqrt(a^2 + 2 a)) with a = x - 1."""
    a = sub(x, 1.0)
    huge = gt(a, _HUGE)
    w = select(huge, a, add(a, sqrt(mul(a, add(a, 2.0)))))
    value = add(log1p(w), select(huge, np.float32(math.log(2)), 0.0))
    return select(lt(x, 1.0), np.nan, value)


def atanh(x: Any, log1p: Callable[[Any], Any]) -> Any:
    """log(1 + 2 x / (1 - x)) / 2."""
    a = abs(x)
    return _with_sign(mul(log1p(div(mul(a, 2.0), sub(1.0, a))), 0.5), x)
