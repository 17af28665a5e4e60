"""The regularized incomplete beta function and its derivatives in all three arguments.

It is a continued fraction, in float64, on that side of the mean where it converges fast; on the other one x and 1 - x,
a and b change places. A. DiDonato, A. Morris, "Significant digit computation of the incomplete beta function ratios",
ACM Trans. Math. Softw. 18 (1992) 360-373, https://doi.org/10.1145/131766.131776. The derivatives in a and b are those
of the fraction, step by step: R. Boik, J. Robinson-Cox, "Derivatives of the incomplete beta function", Journal of
Statistical Software 3(1) (1998), https://doi.org/10.18637/jss.v003.i01.

May import: the other modules of `lax.special`, the elementwise modules of `lax`, `lax.control_flow`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core.errors import api_boundary
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import abs, add, div, mul, mul_p, neg, sub
from xform.lax.bitwise import bitwise_not
from xform.lax.comparison import eq, ge, gt, le, lt, select
from xform.lax.control_flow.cond import cond
from xform.lax.control_flow.while_loop import fori_loop, while_loop
from xform.lax.conversion import convert
from xform.lax.extremes import max, min
from xform.lax.families import apply, constant, elementwise
from xform.lax.powers import sqrt, square
from xform.lax.reductions import reduce_max, reduce_or
from xform.lax.rounding import ceil
from xform.lax.special import tables
from xform.lax.special.deviance import beta_factor
from xform.lax.special.double_double import plus, two_product, two_sum
from xform.lax.special.formulas import all_of, any_of, compiled_if_large, evaluate, host_as, in_float64
from xform.lax.special.gamma import digamma, lgamma, log_minus_digamma
from xform.lax.special.slopes import slopes
from xform.lax.transcendental import exp, expm1, log, log1p

_UNROLL = 4
_MOST_STEPS = 1e5
_FAR = 0.97  # x, from where on the fraction takes many steps even below the mean
_CORNER = (
    0.6  # a (1 - x), up to which a sum gives the small values for b < 1 (as that of igammac, the limit for large a)
)


def _steps(a: Any, x: Any, mean: Any) -> Any:
    """How many steps give all digits: found by experiment, rounded up."""
    root = sqrt(a)
    close = min(min(add(mul(root, 6.0), 10.0), add(mul(root, 3.0), 24.0)), add(mul(root, 0.7), 60.0))
    below = min(close, add(div(1.5, sub(1.0, min(div(x, mean), 1.0 - 1e-9))), 10.0))
    y = sub(1.0, x)
    above = min(add(div(9.3, sqrt(y)), 6.0), add(div(100.0, mul(a, y)), 30.0))
    return min(select(lt(x, mean), below, max(close, above)), _MOST_STEPS)


def _fraction(a: Any, b: Any, x: Any, excess: Any, steps: Any, derive: bool) -> tuple[Any, ...]:
    """x^a (1 - x)^b / (B(a, b) I), from the last step down, and its derivatives in a and b; `excess` is a - (a + b) x.

    It is beta(0) + alpha(1) / (beta(1) + alpha(2) / (beta(2) + ...)).
    """
    y = sub(1.0, x)

    def beta(m: Any) -> tuple[Any, ...]:
        below, above = add(a, sub(mul(m, 2.0), 1.0)), add(a, add(mul(m, 2.0), 1.0))  # exact for small a, too
        below = select(eq(below, 0.0), 1.0, below)  # for m = 0 and a = 1, and the first term is 0
        first, width = div(mul(mul(m, sub(b, m)), x), below), add(add(excess, 1.0), mul(m, sub(2.0, x)))
        second = div(mul(add(a, m), width), above)
        value = add(add(m, first), second)
        if not derive:
            return (value,)
        in_a = sub(div(sub(add(width, mul(add(a, m), y)), second), above), div(first, below))
        in_b = sub(div(mul(m, x), below), div(mul(add(a, m), x), above))
        return value, in_a, in_b

    def alpha(m: Any) -> tuple[Any, ...]:
        last = sub(m, 1.0)
        below = add(a, add(m, last))
        c, d, e = add(a, last), add(add(a, b), last), sub(b, m)
        factor = mul(m, square(div(x, below)))
        value = mul(mul(mul(c, d), e), factor)
        if not derive:
            return (value,)
        in_a = sub(mul(mul(factor, e), add(c, d)), div(mul(value, 2.0), below))
        return value, in_a, mul(mul(factor, c), add(d, e))

    def step(state: Any) -> Any:
        m, v, *slopes = state
        (top, *top_slopes), (lower, *lower_slopes) = alpha(m), beta(sub(m, 1.0))
        quotient = div(top, v)
        slopes = [
            add(low, div(sub(t, mul(quotient, s)), v))
            for low, t, s in zip(lower_slopes, top_slopes, slopes, strict=True)
        ]
        return sub(m, 1.0), add(lower, quotient), *slopes

    def several(state: Any) -> Any:
        for _ in range(_UNROLL):
            state = step(state)
        return state

    steps = mul(ceil(mul(reduce_max(steps, tuple(range(steps.ndim))), 1 / _UNROLL)), float(_UNROLL))
    return while_loop(lambda state: gt(state[0], 0.0), several, (steps, *beta(steps)))[1:]


def _corner(a: Any, b: Any, y: Any) -> Any:
    """The function of 1 - y for b < 1, y <= 0.3 and a y <= 0.6, where that of y is close to 1.

    It is 1 - p (1 + b s) with p = y^b / (b B(a, b)) and a sum s of powers of y; all is relative to b. The quotient of
    gamma functions in p is that for a + 8 if a is less than 8.
    """
    up = lt(a, 8.0)
    c, excess = select(up, add(a, 8.0), a), div(b, a)
    for k in range(1, 9):
        more = select(up, div(b, add(a, float(k))), 0.0)
        excess = add(excess, add(more, mul(excess, more)))
    r, t = div(1.0, c), div(1.0, add(c, b))
    value, change = tables.LGAMMA_TAIL["float64"][-1], mul(a, 0.0)
    for coefficient in reversed(tables.LGAMMA_TAIL["float64"][:-1]):
        change = add(mul(change, square(t)), value)
        value = add(mul(square(r), value), coefficient)
    # Of r T(r^2) the difference is (r - t)(T(t^2) + r (r + t) (T(r^2) - T(t^2)) / (r^2 - t^2)).
    tail = mul(mul(r, t), add(evaluate(tables.LGAMMA_TAIL, square(t)), mul(mul(r, add(r, t)), change)))
    u = sub(b, 1.0)
    power = sub(add(log(mul(add(c, b), y)), sub(mul(add(c, 0.5), div(log1p(div(b, c)), b)), 1.0)), tail)
    power = sub(power, add(div(log1p(excess), b), mul(u, evaluate(tables.LGAMMA, u))))

    def step(k: Any, state: Any) -> Any:
        term, total = state
        k = add(convert(k, a.dtype), 1.0)
        term = mul(term, mul(div(sub(k, a), k), y))
        return term, add(total, div(term, add(b, k)))

    _, total = fori_loop(0, 34, step, (add(mul(a, 0.0), 1.0), mul(a, 0.0)))
    power = mul(b, power)
    return neg(add(expm1(power), mul(exp(power), mul(b, total))))


def _inside(a: Any, b: Any, x: Any, what: str) -> Any:
    """The function, or its derivative in a or b, for finite a, b > 0 and 0 < x < 1."""
    y, n = two_sum(neg(x), 1.0), add(a, b)
    # Up to the mean, or a little more, the result is not close to 1, and the other way it would be a difference.
    middle = div(add(a, 1.0), add(n, 2.0))
    turned = gt(x, max(middle, min(div(a, n), _FAR)))
    width = mul(a, y[0])
    turned = all_of(turned, any_of(ge(b, 1.0), le(width, _CORNER)))  # from there on the result is not close to 1
    left, right = two_product(a, y[0]), two_product(b, x)
    difference = plus((left[0], add(left[1], mul(a, y[1]))), (neg(right[0]), neg(right[1])))[0]  # a - (a + b) x
    a1, b1, x1 = select(turned, b, a), select(turned, a, b), select(turned, y[0], x)
    excess = select(turned, neg(difference), difference)
    steps = _steps(a1, x1, select(turned, sub(1.0, middle), middle))
    if what != "value":
        steps = add(steps, 12.0)
    fraction, *slopes = _fraction(a1, b1, x1, excess, steps, what != "value")
    zero = mul(x, 0.0)
    value = div(mul(beta_factor(a, b, (x, zero), y), mul(a, div(b, n))), fraction)
    if what == "value":
        value = select(turned, sub(1.0, value), value)
        corner = all_of(turned, lt(b, 1.0), le(y[0], 0.3))
        operands = [select(corner, c, default) for c, default in ((a, 1.0), (b, 0.5), (y[0], 0.1))]
        return cond(
            reduce_or(corner, tuple(range(corner.ndim))),
            lambda value, *operands: select(corner, _corner(*operands), value),
            lambda value, *operands: value,
            value,
            *operands,
        )
    own, other = slopes if what == "a" else reversed(slopes)
    slope = select(turned, other, own)
    # The logarithmic derivative of x^a y^b / B(a, b): log x - digamma(a) + digamma(n), or that of y and b.
    c, part = (a, x) if what == "a" else (b, y[0])
    relative = div(neg(difference) if what == "a" else difference, c)  # n part / c - 1
    logarithm = select(lt(abs(relative), 0.5), log1p(relative), log(mul(part, div(n, c))))
    growth = add(logarithm, sub(log_minus_digamma(c), log_minus_digamma(n)))
    slope = mul(value, sub(growth, div(slope, fraction)))
    return select(turned, neg(slope), slope)


def _formula(what: str) -> Callable[..., Any]:
    """`_inside`, with the values at the borders, and NaN outside."""

    def formula(a: Any, b: Any, x: Any) -> Any:
        positive = all_of(gt(a, 0.0), gt(b, 0.0), lt(a, np.inf), lt(b, np.inf))
        inside = all_of(positive, gt(x, 0.0), lt(x, 1.0))
        value = _inside(select(inside, a, 1.0), select(inside, b, 1.0), select(inside, x, 0.5), what)
        if what != "value":
            return select(
                inside, value, select(all_of(positive, any_of(eq(x, 0.0), eq(x, 1.0))), constant(x, 0), np.nan)
            )
        # All mass is at 0 for a = 0 or b = inf, at 1 for b = 0 or a = inf; of two such arguments at most one counts.
        first, last = any_of(eq(a, 0.0), eq(b, np.inf)), any_of(eq(b, 0.0), eq(a, np.inf))
        defined = all_of(ge(a, 0.0), ge(b, 0.0), ge(x, 0.0), le(x, 1.0), bitwise_not(all_of(first, last)))
        zero = any_of(eq(x, 0.0), all_of(last, lt(x, 1.0)))
        border = select(defined, select(zero, constant(x, 0), 1.0), np.nan)
        return select(inside, value, border)

    formula.__name__ = "incomplete_beta_" + what
    return in_float64(formula)


def _times_log(a: Any, x: Any) -> Any:
    """a log x, and 0 for a = x = 0."""
    return mul(a, log(select(all_of(eq(a, 0.0), eq(x, 0.0)), constant(x, 1), x)))


def _density(a: Any, b: Any, x: Any) -> Any:
    """The derivative in x: x^(a - 1) (1 - x)^(b - 1) / B(a, b)."""
    powers = add(_times_log(sub(a, 1.0), x), _times_log(sub(b, 1.0), sub(1.0, x)))
    return exp(add(powers, sub(lgamma(add(a, b)), add(lgamma(a), lgamma(b)))))


def _primitive(name: str, what: str, jvp: list[Callable[..., Any]]) -> Any:
    formula = _formula(what)
    host = compiled_if_large(host_as(formula), lambda *operands: p.bind(*operands))
    p = elementwise(name, host, accepts="float", jvp=jvp, lower=lower_as(formula), function="betainc", widen=True)
    return p


betainc_p = _primitive(
    "regularized_incomplete_beta",
    "value",
    [
        lambda g, ans, a, b, x: mul_p.bind(g, betainc_grad_a_p.bind(a, b, x)),
        lambda g, ans, a, b, x: mul_p.bind(g, betainc_grad_b_p.bind(a, b, x)),
        lambda g, ans, a, b, x: mul_p.bind(g, _density(a, b, x)),
    ],
)

betainc_grad_a_p = _primitive(
    "regularized_incomplete_beta_grad_a",
    "a",
    [
        *slopes("regularized_incomplete_beta_grad_a", _formula("a"), 3)[:2],
        lambda g, ans, a, b, x: mul_p.bind(g, mul(_density(a, b, x), add(log(x), sub(digamma(add(a, b)), digamma(a))))),
    ],
)

betainc_grad_b_p = _primitive(
    "regularized_incomplete_beta_grad_b",
    "b",
    [
        *slopes("regularized_incomplete_beta_grad_b", _formula("b"), 3)[:2],
        lambda g, ans, a, b, x: mul_p.bind(
            g, mul(_density(a, b, x), add(log1p(neg(x)), sub(digamma(add(a, b)), digamma(b))))
        ),
    ],
)


@api_boundary
def betainc(a: Any, b: Any, x: Any) -> Any:
    """Elementwise regularized incomplete beta function I_x(a, b), for a, b >= 0 and 0 <= x <= 1.

    It has derivatives in all three arguments.
    Within 7 ulp for a, b <= 1e4. For larger ones, x > 0.97 and x below the mean a / (a + b), the error is small against
    1, not against the result.

    Examples
    --------
    >>> from xform import lax
    >>> round(float(lax.betainc(2.0, 3.0, 0.5)), 12)
    0.6875
    """
    return apply(betainc_p, a, b, x)
