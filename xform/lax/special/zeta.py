"""The Hurwitz zeta function.

May import: `lax.special.formulas`, the elementwise modules of `lax`, `lax.control_flow`.
"""

from functools import partial
from math import factorial
from typing import Any

import numpy as np

from xform.core.errors import api_boundary
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import add, add_p, div, mul, mul_p, neg, neg_p, sub
from xform.lax.comparison import eq, gt, le, lt, ne, select
from xform.lax.control_flow.cond import cond
from xform.lax.control_flow.while_loop import fori_loop
from xform.lax.conversion import convert
from xform.lax.extremes import max, min
from xform.lax.families import apply, constant, elementwise
from xform.lax.general_powers import pow
from xform.lax.reductions import reduce_or
from xform.lax.rounding import floor
from xform.lax.special.formulas import bernoulli, host_as

# Euler and Maclaurin's formula: so many terms of the sum, then an integral and corrections with B_2k / (2k)!. These
# numbers give float64's digits for all q > 0. F. Johansson, "Rigorous high-precision computation of the Hurwitz zeta
# function and its derivatives", Numerical Algorithms 69 (2015) 253-270, https://arxiv.org/abs/1309.2877
_TERMS, _TERMS_FLOAT32 = 9, 4
_CORRECTIONS = [float(b / factorial(n)) for n, b in enumerate(bernoulli(24)) if n >= 2 and n % 2 == 0]
_CORRECTIONS_FLOAT32 = 7


def _zeta_of_positive(s: Any, q: Any, first: Any, second: Any, scale: Any, *, single: bool) -> Any:
    """zeta(s, q) for s > 1, q > 0 in float64; each power (q + k)^-s is ``(first p)(second p)``, with
    p = (scale (q + k))^(-s / 2).

    The factors keep powers from underflowing where `polygamma` has large ones.
    """
    terms = _TERMS_FLOAT32 if single else _TERMS
    exponent, bounded = mul(s, -0.5), min(s, 1e300)

    def step(k: Any, state: Any) -> Any:
        total, last, *_ = state
        k = convert(k, q.dtype)
        base = add(q, k)
        part = sub(base, q)
        rest = add(sub(q, sub(base, part)), sub(k, part))
        correction = sub(1.0, mul(bounded, div(rest, base)))  # of the power, for the rounding of q + k
        power = pow(mul(base, scale), exponent)
        term = mul(mul(mul(first, power), mul(second, power)), correction)
        return add(total, last), term, base, power, correction

    zero = mul(convert(lt(s, q), q.dtype), 0.0)
    total, last, base, power, correction = fori_loop(0, terms + 1, step, (zero,) * 5)
    integral = mul(mul(mul(div(base, sub(s, 1.0)), correction), mul(first, power)), mul(second, power))
    factor, series = div(s, base), constant(s, 0.5)
    for k, c in enumerate(_CORRECTIONS[:_CORRECTIONS_FLOAT32] if single else _CORRECTIONS):
        series = add(series, mul(factor, c))
        factor = mul(mul(factor, div(add(s, 2 * k + 1.0), base)), div(add(s, 2 * k + 2.0), base))
    rest = add(integral, select(gt(last, 0.0), mul(last, series), 0.0))
    return select(eq(q, np.inf), 0.0, add(total, rest))


def zeta_of_any(*operands: Any, single: bool) -> Any:
    """The same for all q; for q < 0 only if s is an integer. `single` asks for the digits of float32 only."""
    positive = partial(_zeta_of_positive, single=single)

    def any_sign(s: Any, q: Any, *factors: Any) -> Any:
        # The terms with negative bases are, but for signs, those from the fraction g of -q up to -q.
        negative = le(q, 0.0)
        g = sub(neg(q), floor(neg(q)))
        lower, upper = select(negative, g, 1.0), select(negative, sub(1.0, q), 1.0)
        below = sub(positive(s, lower, *factors), positive(s, upper, *factors))
        below = select(ne(mul(floor(mul(s, 0.5)), 2.0), s), neg(below), below)
        value = positive(s, select(negative, sub(1.0, g), q), *factors)
        defined = select(eq(s, floor(s)), add(value, below), constant(q, np.nan))
        return select(negative, select(eq(q, floor(q)), np.inf, defined), value)

    negative = le(operands[1], 0.0)  # costs three times as much
    return cond(reduce_or(negative, tuple(range(negative.ndim))), any_sign, positive, *operands)


def _zeta(s: Any, q: Any) -> Any:
    dtype, s, q = s.dtype, convert(s, np.dtype(np.float64)), convert(q, np.dtype(np.float64))
    one = constant(s, 1)
    value = zeta_of_any(max(s, one), q, one, one, one, single=dtype.itemsize < 8)
    value = select(eq(s, 1.0), np.inf, value)
    return convert(select(lt(s, 1.0), np.nan, value), dtype)


def _no_derivative(g: Any, ans: Any, x: Any, q: Any) -> Any:
    raise NotImplementedError("lax.zeta has no derivative in x (the exponent), only in q")


zeta_p = elementwise(
    "zeta",
    host_as(_zeta),
    accepts="float",
    jvp=[
        _no_derivative,
        lambda g, ans, x, q: mul_p.bind(g, mul_p.bind(neg_p.bind(x), zeta_p.bind(add_p.bind(x, constant(ans, 1)), q))),
    ],
    lower=lower_as(_zeta),
    widen=True,
)


@api_boundary
def zeta(x: Any, q: Any) -> Any:
    """Elementwise Hurwitz zeta function, the sum of (q + k)^-x over k = 0, 1, 2, ...

    Infinite for x = 1 and at q = 0, -1, -2, ...; NaN for x < 1, and for negative q unless `x` is an integer. Within
    4 ulp for q > 0; for q < 0 and odd `x` the function has zeros, where the error is small in absolute terms only.
    There is a derivative in `q`, not in `x`.

    Examples
    --------
    >>> from xform import lax
    >>> round(float(lax.zeta(2.0, 1.0)), 12), round(np.pi**2 / 6, 12)
    (1.644934066848, 1.644934066848)
    """
    return apply(zeta_p, x, q)
