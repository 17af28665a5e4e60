"""Numbers of twice the precision of float64, as unevaluated sums (high, low) of two.

T. Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18 (1971) 224-242,
https://doi.org/10.1007/BF01397083. Nothing here has constants that XLA could combine into others.

May import: the elementwise modules of `lax`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.lax.arithmetic import add, div, mul, sub
from xform.lax.bitwise import bitcast_convert_type, bitwise_and
from xform.lax.polynomials import horner

Double = tuple[Any, Any]


def two_sum(x: Any, y: Any) -> Double:
    """x + y, exactly."""
    high = add(x, y)
    part = sub(high, x)
    return high, add(sub(x, sub(high, part)), sub(y, part))


def fast_two_sum(x: Any, y: Any) -> Double:
    """x + y, exactly if |x| >= |y|."""
    high = add(x, y)
    return high, add(sub(x, high), y)


def _upper(x: Any) -> Any:
    """The first 26 bits; the rest has 27."""
    bits = bitwise_and(bitcast_convert_type(x, np.dtype(np.int64)), np.int64(-1 << 27))
    return bitcast_convert_type(bits, np.dtype(np.float64))


def two_product(x: Any, y: Any) -> Double:
    """x y, exactly but for the last bit of the second part."""
    high = mul(x, y)
    a, c = _upper(x), _upper(y)
    b, d = sub(x, a), sub(y, c)
    return high, add(add(add(sub(mul(a, c), high), mul(a, d)), mul(b, c)), mul(b, d))


def plus(x: Double, y: Double) -> Double:
    """x + y."""
    high, low = two_sum(x[0], y[0])
    return two_sum(high, add(low, add(x[1], y[1])))


def times(x: Double, y: Double) -> Double:
    """x y."""
    high, low = two_product(x[0], y[0])
    return high, add(low, add(mul(x[0], y[1]), mul(x[1], y[0])))


def polynomial(x: Double, first: Sequence[tuple[float, float]], rest: Sequence[float]) -> Double:
    """The polynomial in x whose first coefficients, of decreasing terms, are doubles, and whose others are numbers."""
    value = horner(x[0], rest), mul(x[0], 0.0)
    for high, low in reversed(first):
        product, error = times(value, x)
        total, rounding = fast_two_sum(add(mul(product, 0.0), high), product)
        value = total, add(rounding, add(error, low))
    return value


def over(x: Double, y: Double, inverse: Any = None) -> Double:
    """x / y; `inverse` is 1 / y to a few units in the last place, where it is known."""
    inverse = div(1.0, y[0]) if inverse is None else inverse
    quotient = mul(x[0], inverse)
    high, low = two_product(quotient, y[0])
    rest = add(sub(sub(sub(x[0], high), low), mul(quotient, y[1])), x[1])
    return fast_two_sum(quotient, mul(rest, inverse))


def scaled(x: Double, factor: Any) -> Double:
    """x times a power of two."""
    return mul(x[0], factor), mul(x[1], factor)
