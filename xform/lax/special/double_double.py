"""Numbers of twice the precision of float64, as unevaluated sums (high, low) of two.

T. Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18 (1971) 224-242,
https://doi.org/10.1007/BF01397083. Nothing here has constants that XLA could combine into others.

May import: the elementwise modules of `lax`.
"""

from typing import Any

from xform.lax.arithmetic import add, div, mul, sub
from xform.lax.rounding import reduce_precision

Double = tuple[Any, Any]


def two_sum(x: Any, y: Any) -> Double:
    """x + y, exactly."""
    high = add(x, y)
    part = sub(high, x)
    return high, add(sub(x, sub(high, part)), sub(y, part))


def two_product(x: Any, y: Any) -> Double:
    """x y, exactly."""
    high = mul(x, y)
    a, c = reduce_precision(x, 11, 25), reduce_precision(y, 11, 25)
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


def over(x: Double, y: Double) -> Double:
    """x / y."""
    quotient = div(x[0], y[0])
    high, low = two_product(quotient, y[0])
    rest = add(sub(sub(sub(x[0], high), low), mul(quotient, y[1])), x[1])
    return quotient, div(rest, y[0])


def scaled(x: Double, factor: Any) -> Double:
    """x times a power of two."""
    return mul(x[0], factor), mul(x[1], factor)
