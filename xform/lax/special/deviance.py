"""Powers and factorials with large arguments, whose ratios are moderate: the factors before incomplete integrals.

Exponents are summed up in twice the precision, since an error in them is a relative error of the result.

May import: `lax.special.double_double`, `lax.special.formulas`, the elementwise modules of `lax`.
"""

from typing import Any

import numpy as np

from xform.lax.arithmetic import add, div, mul, neg, sub
from xform.lax.bitwise import bitcast_convert_type, shift_left
from xform.lax.comparison import clamp, ge, gt, lt, select
from xform.lax.conversion import convert
from xform.lax.polynomials import horner
from xform.lax.powers import sqrt, square
from xform.lax.rounding import round
from xform.lax.special import tables
from xform.lax.special.double_double import Double, over, plus, scaled, times, two_sum
from xform.lax.special.formulas import at_least, at_most, evaluate
from xform.lax.transcendental import exp, log

_LN2 = 0.6931471803691238, 1.9082149292705877e-10  # the first part with 21 zeros at its end: products with k are exact
_THIRD = 1 / 3, 1.850371707708594e-17


def log_power(a: Any, x: Double, y: Double) -> Double:
    """a log(x / y) for positive numbers.

    x is divided by a power of two so that the quotient is near 1; there the logarithm is 2 artanh((x - y) / (x + y)).
    """
    k = round(clamp(-1000.0, mul(log(div(x[0], y[0])), float(1 / np.log(2))), 1000.0))
    bits = shift_left(convert(sub(1023.0, k), np.dtype(np.int64)), np.int64(52))
    x = scaled(x, bitcast_convert_type(bits, np.dtype(np.float64)))
    s = over(plus(x, (neg(y[0]), neg(y[1]))), plus(x, y))
    z = times(s, s)
    tail = mul(z[0], horner(z[0], [1 / (2 * n + 5) for n in range(10)]))
    cubic = times(times(s, z), plus((tail, mul(tail, 0.0)), _THIRD))
    value = plus(scaled(plus(s, cubic), 2.0), (mul(k, _LN2[0]), mul(k, _LN2[1])))
    return times((a, mul(a, 0.0)), value)


def exp_of(x: Double) -> Any:
    """exp(x), and 0 if x isn't a number."""
    return select(gt(x[0], -800.0), mul(exp(x[0]), add(x[1], 1.0)), 0.0)


def stirling(a: Any) -> tuple[Any, Any]:
    """Of gamma(a + 1), for a >= 1 over (a / e)^a, a factor and a logarithm."""
    u = sub(at_most(a, 1.0), 1.0)
    small = mul(mul(u, at_most(a, 1.0)), evaluate(tables.LGAMMA, u))
    medium = at_most(at_least(a, 1.0), 8.0)
    middle = div(evaluate(tables.STIRLING, div(sub(medium, 1.0), add(medium, 1.0))), medium)
    large = at_least(a, 8.0)
    far = div(evaluate(tables.LGAMMA_TAIL, div(1.0, square(large))), large)
    correction = select(lt(a, 1.0), small, select(lt(a, 8.0), middle, far))
    return select(lt(a, 1.0), 1.0, sqrt(mul(a, float(2 * np.pi)))), correction


def gamma_factor(a: Any, x: Any) -> tuple[Any, Double, Any]:
    """x^a exp(-x) / gamma(a + 1); its logarithm but for Stirling's corrections, and these as a factor."""
    zero = mul(a, 0.0)
    large = ge(a, 1.0)
    exponent = log_power(a, (x, zero), (at_least(a, 1.0), zero))
    exponent = plus(plus(exponent, (select(large, a, 0.0), zero)), (neg(x), zero))
    root, correction = stirling(a)
    return div(exp_of(plus(exponent, (neg(correction), zero))), root), exponent, mul(root, exp(correction))


def beta_factor(a: Any, b: Any, x: Double, y: Double) -> Any:
    """x^a y^b gamma(a + b + 1) / (gamma(a + 1) gamma(b + 1))."""
    zero = mul(a, 0.0)
    n = two_sum(a, b)
    large = ge(n[0], 1.0)
    base = select(large, n[0], 1.0), select(large, n[1], 0.0)
    exponent = plus(
        log_power(a, times(x, base), (at_least(a, 1.0), zero)), log_power(b, times(y, base), (at_least(b, 1.0), zero))
    )
    exponent = plus(exponent, (select(large, neg(n[0]), 0.0), select(large, neg(n[1]), 0.0)))
    for c in (a, b):
        exponent = plus(exponent, (select(ge(c, 1.0), c, 0.0), zero))
    (root, plus_one), (root_a, minus_a), (root_b, minus_b) = stirling(n[0]), stirling(a), stirling(b)
    exponent = plus(exponent, (sub(plus_one, add(minus_a, minus_b)), zero))
    return mul(exp_of(exponent), div(div(root, root_a), root_b))
