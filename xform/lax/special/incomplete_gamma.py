"""The regularized incomplete gamma functions, and their derivatives in the first argument.

Three methods share the plane, all in float64: a series in x below the diagonal, a continued fraction above it, and
Temme's uniform expansion around it when a is large. A. Gil, J. Segura, N. Temme, "Efficient and accurate algorithms for
the computation and inversion of the incomplete gamma function ratios", SIAM J. Sci. Comput. 34 (2012) A2965-A2981,
https://arxiv.org/abs/1306.1754. The factor that they have in common is computed with a logarithm of twice the
precision, so that the tails keep their digits, an idea of C. Loader, "Fast and accurate computation of binomial
probabilities" (2000).

All derivatives are those of the same sums, term by term; below and above the diagonal all terms have one sign.

May import: the other modules of `lax.special`, the elementwise modules of `lax`, `lax.control_flow`.
"""

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np

from xform.core.errors import api_boundary
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import abs, add, div, mul, mul_p, neg, neg_p, sub, sub_p
from xform.lax.bitwise import bitwise_not
from xform.lax.comparison import eq, ge, gt, le, lt, select
from xform.lax.control_flow.cond import cond
from xform.lax.control_flow.while_loop import while_loop
from xform.lax.extremes import max, min
from xform.lax.families import apply, constant, elementwise
from xform.lax.polynomials import horner
from xform.lax.powers import sqrt, square
from xform.lax.reductions import reduce_max, reduce_or
from xform.lax.rounding import ceil
from xform.lax.special import tables
from xform.lax.special.deviance import exp_of, gamma_factor
from xform.lax.special.error import scaled_erfc
from xform.lax.special.formulas import (
    all_of,
    any_of,
    at_least,
    at_most,
    compiled_if_large,
    evaluate,
    host_as,
    in_float64,
)
from xform.lax.special.gamma import digamma_p, lgamma_p, log_minus_digamma
from xform.lax.special.slopes import slopes
from xform.lax.transcendental import exp, exp_p, expm1, log, log1p, log_p

_EXPANSION_FROM = 20.0  # a
_EXPANSION_WIDTH = 0.3  # |x - a| / a
_SMALL = 0.6  # x
_UNROLL = 4


def _recurrence(a: Any, x: Any, beyond: Any, steps: Any, derive: bool) -> tuple[Any, Any]:
    """Series or, where `beyond`, continued fraction, from the last of the terms down; and its derivative in a.

    The series is that of gamma(a + 1) P / (x^a exp(-x)): 1 + x / (a + 1) (1 + x / (a + 2) (1 + ...)). The fraction is
    x^a exp(-x) / (gamma(a) Q): x - a + 1 - 1 (1 - a) / (x - a + 3 - 2 (2 - a) / (x - a + 5 - ...)).
    """

    def step(state: Any) -> Any:
        k, v, *rest = state
        denominator = select(beyond, v, add(a, k))
        numerator = select(beyond, mul(neg(k), sub(k, a)), mul(x, v))
        quotient = div(numerator, denominator)
        new = add(select(beyond, add(sub(x, a), sub(mul(k, 2.0), 1.0)), 1.0), quotient)
        if derive:
            slope = rest[0]
            change = select(beyond, sub(k, mul(quotient, slope)), sub(mul(x, slope), quotient))
            rest = [sub(div(change, denominator), select(beyond, constant(a, 1), 0.0))]
        return sub(k, 1.0), new, *rest

    def several(state: Any) -> Any:
        for _ in range(_UNROLL):
            state = step(state)
        return state

    steps = mul(ceil(mul(reduce_max(steps, tuple(range(steps.ndim))), 1 / _UNROLL)), float(_UNROLL))
    start = select(beyond, add(sub(x, a), add(mul(steps, 2.0), 1.0)), 1.0)
    slopes = (select(beyond, constant(a, -1), 0.0),) if derive else ()
    out = while_loop(lambda state: gt(state[0], 0.0), several, (steps, start, *slopes))
    return out[1], out[-1]


def _steps(a: Any, x: Any, beyond: Any, below: Any) -> Any:
    """How many terms give all digits: found by experiment, rounded up."""
    geometric = add(div(39.0, log(div(a, x))), 4.0)
    series = min(add(mul(sqrt(min(a, 1e4)), 8.0), 20.0), select(lt(x, a), geometric, np.inf))
    return select(beyond, add(div(95.0, max(x, _SMALL)), 24.0), select(below, series, 0.0))


# Temme's variable, eta^2 / 2 = mu - log(1 + mu): eta / mu in powers of mu, and mu / eta in powers of eta.
_ETA = [1.0, -1 / 3, 7 / 36, -73 / 540, 1331 / 12960, -22409 / 272160]
_MU = [1.0, 1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010]
_NEAR = 1e-3  # mu


def _expansion(eta: Any, inverse: Any, rows: Sequence[Sequence[float]]) -> Any:
    """The sum of the polynomials in eta, over powers of a."""
    total = mul(eta, 0.0)
    for row in reversed(rows):
        total = add(mul(total, inverse), horner(eta, row))
    return total


def _temme(a: Any, x: Any, exponent: Any, derive: bool) -> Any:
    """Around x = a the smaller of P and Q, over exp(exponent); or dQ/da, over that and sqrt(2 pi a)."""
    above, inverse = ge(x, a), div(1.0, a)
    half_square = neg(min(exponent, 0.0))  # a eta^2 / 2 = x - a - a log(x / a)
    mu = div(sub(x, a), a)
    near = lt(abs(mu), _NEAR)
    eta = sqrt(mul(select(near, 1.0, half_square), mul(inverse, 2.0)))
    eta = select(near, mul(mu, horner(select(near, mu, 0.0), _ETA)), select(above, eta, neg(eta)))
    total = _expansion(eta, inverse, tables.TEMME)
    if not derive:
        correction = div(select(above, total, neg(total)), sqrt(mul(a, float(2 * np.pi))))
        return add(mul(scaled_erfc(min(sqrt(half_square), 27.5)), 0.5), correction)
    in_eta = _expansion(eta, inverse, [[n * c for n, c in enumerate(row)][1:] or [0.0] for row in tables.TEMME])
    in_inverse = _expansion(eta, inverse, [[k * c for c in row] for k, row in enumerate(tables.TEMME)][1:])
    logarithm = log1p(mu)
    quotient = select(near, horner(select(near, eta, 0.0), _MU), div(mu, select(near, 1.0, eta)))
    slope = add(sub(quotient, mul(eta, 0.5)), mul(total, sub(logarithm, mul(inverse, 0.5))))
    slope = sub(slope, mul(in_eta, mul(inverse, quotient)))
    return sub(slope, mul(in_inverse, square(inverse)))


def _parts(a: Any, x: Any, what: str) -> Any:
    """P, Q, dP/da, or -dP/da over the density, for finite a > 0 and x > 0."""
    derive = what in ("slope", "sample")
    expanded = all_of(ge(a, _EXPANSION_FROM), le(abs(sub(x, a)), mul(a, _EXPANSION_WIDTH)))
    beyond = all_of(gt(x, select(lt(a, 1.0), constant(a, _SMALL), a)), bitwise_not(expanded))
    below = bitwise_not(any_of(beyond, expanded))
    factor, exponent, gamma = gamma_factor(a, x)
    sums, slopes = _recurrence(a, x, beyond, _steps(a, x, beyond, below), derive)
    center = at_least(a, _EXPANSION_FROM)
    around = cond(
        reduce_or(expanded, tuple(range(expanded.ndim))),
        lambda a, x, exponent: _temme(a, x, exponent, derive),
        lambda a, x, exponent: mul(exponent, 0.0),
        center,
        select(expanded, x, center),
        select(expanded, exponent[0], 0.0),
    )

    if derive:
        after = add(a, 1.0)
        logarithm = add(log(div(x, after)), log_minus_digamma(after))  # log x - digamma(a + 1)
        small = neg(add(mul(sums, logarithm), slopes))
        large = mul(div(a, sums), sub(add(logarithm, div(1.0, a)), div(slopes, sums)))
        value, around = select(beyond, large, small), div(around, sqrt(mul(a, float(2 * np.pi))))
        if what == "slope":
            return neg(select(expanded, mul(around, exp_of(exponent)), mul(value, factor)))
        return mul(div(x, a), select(expanded, mul(around, gamma), value))

    # Each method gives one of P and Q.
    upper = any_of(beyond, all_of(expanded, ge(x, a)))
    value = mul(
        select(expanded, around, select(beyond, div(a, sums), sums)), select(expanded, exp_of(exponent), factor)
    )
    other = sub(1.0, value)
    if what == "lower":
        return select(upper, other, value)
    return select(upper, value, select(all_of(below, lt(a, 1.0)), _upper_small(a, x), other))


def _upper_small(a: Any, x: Any) -> Any:
    """Q for a < 1 and x <= 0.6: 1 - x^a / gamma(1 + a) (1 + a times a sum), without its cancellation for small a."""
    a, x = at_most(a, 1.0), at_most(x, _SMALL)
    u = sub(a, 1.0)
    power = sub(mul(a, log(x)), mul(mul(u, a), evaluate(tables.LGAMMA, u)))
    total: Any = None
    for n in range(16, 0, -1):
        term = div(-((-1.0) ** n) / factorial(n), add(a, float(n)))
        total = term if total is None else add(mul(total, x), term)
    return sub(mul(mul(mul(total, x), a), exp(power)), expm1(power))


def _formula(what: str) -> Callable[..., Any]:
    """`_parts` with the values at the borders of the quadrant, and NaN outside."""

    def formula(a: Any, x: Any) -> Any:
        inside = all_of(gt(a, 0.0), gt(x, 0.0), lt(a, np.inf), lt(x, np.inf))
        value = _parts(select(inside, a, 1.0), select(inside, x, 1.0), what)
        # The values at x = 0 (and a = inf), and at x = inf (and a = 0).
        start, end = {"lower": (0.0, 1.0), "upper": (1.0, 0.0), "slope": (0.0, 0.0), "sample": (0.0, np.inf)}[what]
        low, high = all_of(eq(x, 0.0), gt(a, 0.0)), all_of(eq(x, np.inf), ge(a, 0.0), lt(a, np.inf))
        if what in ("lower", "upper"):
            low = any_of(low, all_of(eq(a, np.inf), ge(x, 0.0), lt(x, np.inf)))
            high = any_of(high, all_of(eq(a, 0.0), gt(x, 0.0)))
        return select(inside, value, select(low, start, select(high, constant(x, end), np.nan)))

    formula.__name__ = f"incomplete_gamma_{what}"
    return in_float64(formula)


def _density(a: Any, x: Any) -> Any:
    """The derivative of P in x: x^(a - 1) exp(-x) / gamma(a)."""
    one = constant(x, 1)
    exponent = sub_p.bind(mul_p.bind(sub_p.bind(a, one), log_p.bind(x)), x)
    return exp_p.bind(sub_p.bind(exponent, lgamma_p.bind(a)))


def _primitive(name: str, what: str, jvp: list[Callable[..., Any]]) -> Any:
    formula = _formula(what)
    host = compiled_if_large(host_as(formula, sort_by=1), lambda a, x: p.bind(a, x), sort_by=1)

    def rule(a: Any, x: Any) -> Any:
        if a.dtype != np.float32 or what not in ("lower", "upper"):
            return host(a, x)
        from scipy import special  # exact in float32

        return (special.gammainc if what == "lower" else special.gammaincc)(a, x)

    p = elementwise(name, rule, accepts="float", jvp=jvp, lower=lower_as(formula), widen=True)
    return p


igamma_p = _primitive(
    "igamma",
    "lower",
    [
        lambda g, ans, a, x: mul_p.bind(g, igamma_grad_a_p.bind(a, x)),
        lambda g, ans, a, x: mul_p.bind(g, _density(a, x)),
    ],
)

igammac_p = _primitive(
    "igammac",
    "upper",
    [
        lambda g, ans, a, x: mul_p.bind(g, neg_p.bind(igamma_grad_a_p.bind(a, x))),
        lambda g, ans, a, x: mul_p.bind(g, neg_p.bind(_density(a, x))),
    ],
)

igamma_grad_a_p = _primitive(
    "igamma_grad_a",
    "slope",
    [
        slopes("igamma_grad_a", _formula("slope"), 2)[0],
        lambda g, ans, a, x: mul_p.bind(g, mul_p.bind(_density(a, x), sub_p.bind(log_p.bind(x), digamma_p.bind(a)))),
    ],
)

random_gamma_grad_p = _primitive("random_gamma_grad", "sample", slopes("random_gamma_grad", _formula("sample"), 2))


@api_boundary
def igamma(a: Any, x: Any) -> Any:
    """Elementwise regularized lower incomplete gamma function P(a, x), for a >= 0 and x >= 0.

    Within 5 ulp, the tails included. Its derivative in `a` is `igamma_grad_a`.

    Examples
    --------
    >>> from xform import lax
    >>> f"{lax.igamma(1.0, 2.0):.12f}, {1 - np.exp(-2.0):.12f}"
    '0.864664716763, 0.864664716763'
    """
    return apply(igamma_p, a, x)


@api_boundary
def igammac(a: Any, x: Any) -> Any:
    """Elementwise regularized upper incomplete gamma function 1 - P(a, x), without cancellation; within 5 ulp."""
    return apply(igammac_p, a, x)


@api_boundary
def igamma_grad_a(a: Any, x: Any) -> Any:
    """Elementwise derivative of `igamma` in `a`, within 12 ulp."""
    return apply(igamma_grad_a_p, a, x)


@api_boundary
def random_gamma_grad(a: Any, x: Any) -> Any:
    """Elementwise derivative in `a` of a sample `x` of the gamma distribution with shape `a`, its rank held fixed.

    That is -dP/da over dP/dx, the implicit derivative of M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization
    gradients", NeurIPS 2018, https://arxiv.org/abs/1805.08498.
    """
    return apply(random_gamma_grad_p, a, x)
