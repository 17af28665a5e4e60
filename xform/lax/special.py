"""Special functions of real numbers, elementwise: the error functions, and the logarithm of the gamma function with its
derivatives.

Hosts take them from SciPy, which is imported at the first call.

May import: `lax.families`, `lax.arithmetic`, `lax.comparison`, `lax.powers`, `lax.transcendental`.
"""

from typing import Any

import numpy as np

from xform.core.errors import api_boundary
from xform.interpreters.lowering import Context, Value, lower_as
from xform.lax.arithmetic import abs, add, add_p, div, mul, mul_p, neg_p, sign, sub
from xform.lax.comparison import eq, lt, select
from xform.lax.families import apply, compare, constant, elementwise
from xform.lax.powers import square, square_p
from xform.lax.transcendental import exp, exp_p


def _gaussian(x: Any) -> Any:
    """The derivative of erf."""
    return mul_p.bind(exp_p.bind(neg_p.bind(square_p.bind(x))), constant(x, 2 / np.sqrt(np.pi)))


def _erf_host(x: Any) -> Any:
    from scipy import special

    return special.erf(x)


def _erfc_host(x: Any) -> Any:
    from scipy import special

    return special.erfc(x)


def _erf_inv_host(x: Any) -> Any:
    from scipy import special

    return np.copysign(special.erfinv(x), x)  # SciPy's has no -0.0


erf_p = elementwise(
    "erf",
    _erf_host,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, _gaussian(x)),
    lower="chlo.erf",
    widen=True,
)

erfc_p = elementwise(
    "erfc",
    _erfc_host,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, neg_p.bind(_gaussian(x))),
    lower="chlo.erfc",
    widen=True,
)


def _refined_erf_inv(x: Any, y: Any) -> Any:
    # XLA starts from 1 - x^2 rounded, so that near 1 half of the digits are lost. One step of Newton's method on
    # erfc(y) = 1 - |x|, where the right hand side is exact, brings them back.
    x_abs, y_abs = abs(x), abs(y)
    step = mul(mul(sub(erfc(y_abs), sub(1.0, x_abs)), exp(square(y_abs))), float(np.sqrt(np.pi) / 2))
    inner = mul(sign(x), add(y_abs, step))
    return select(lt(x_abs, 0.5), y, select(lt(x_abs, 1.0), inner, y))


_lower_refined_erf_inv = lower_as(_refined_erf_inv)


def _erf_inv_lower(ctx: Context, x: Value) -> Value:
    return _lower_refined_erf_inv(ctx, x, ctx.op("chlo.erf_inv", [x], ctx.out))


erf_inv_p = elementwise(
    "erf_inv",
    _erf_inv_host,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, mul_p.bind(exp_p.bind(square_p.bind(ans)), constant(ans, np.sqrt(np.pi) / 2))),
    lower=_erf_inv_lower,
    widen=True,
)


def _lgamma_host(x: Any) -> Any:
    from scipy import special

    return np.where(np.isneginf(x), x.dtype.type(np.inf), special.gammaln(x))


lgamma_p = elementwise(
    "lgamma",
    _lgamma_host,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, digamma_p.bind(x)),
    lower="chlo.lgamma",
    widen=True,
)


def _digamma_host(x: Any) -> Any:
    from scipy import special

    return special.digamma(x)


def _digamma_lower(ctx: Context, x: Value) -> Value:
    y = ctx.op("chlo.digamma", [x], ctx.out)  # NaN at 0
    pole = ctx.op("divide", [ctx.full(x.shape, -1, x.dtype), x], ctx.out)
    return ctx.op("select", [compare(ctx, x, ctx.full(x.shape, 0, x.dtype), "EQ"), pole, y], ctx.out)


digamma_p = elementwise(
    "digamma",
    _digamma_host,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, polygamma_p.bind(constant(ans, 1), x)),
    lower=_digamma_lower,
    widen=True,
)


def _polygamma_host(m: Any, x: Any) -> Any:
    from scipy import special

    order = m + m.dtype.type(1)
    odd = m % 2 == 1
    value = np.where(odd, 1, -1) * special.gamma(order) * special.zeta(order, x) + 0.0  # not -0.0
    value = np.where((x <= 0) & (x == np.floor(x)), np.where(odd, np.inf, np.nan), value)  # poles
    value = np.where((m < 0) | (m != np.floor(m)), np.nan, value)
    return np.where(m == 0, special.digamma(x), value).astype(x.dtype)


def _polygamma_corrected(m: Any, x: Any, y: Any) -> Any:
    # At infinity, and of digamma at 0, XLA has NaN.
    digamma = eq(m, 0.0)
    y = select(eq(x, np.inf), select(digamma, x, mul(0.0, m)), y)
    return select(eq(x, 0.0), select(digamma, div(-1.0, x), y), y)


_lower_polygamma_corrected = lower_as(_polygamma_corrected)


def _polygamma_lower(ctx: Context, m: Value, x: Value) -> Value:
    return _lower_polygamma_corrected(ctx, m, x, ctx.op("chlo.polygamma", [m, x], ctx.out))


polygamma_p = elementwise(
    "polygamma",
    _polygamma_host,
    accepts="float",
    jvp=[
        None,
        lambda g, ans, m, x: mul_p.bind(g, polygamma_p.bind(add_p.bind(m, constant(ans, 1)), x)),
    ],
    lower=_polygamma_lower,
    widen=True,
)


@api_boundary
def erf(x: Any) -> Any:
    """Elementwise error function, the integral of exp(-t^2) from 0 to x times 2 / sqrt(pi)."""
    return apply(erf_p, x)


@api_boundary
def erfc(x: Any, *, accuracy: None = None) -> Any:
    """Elementwise 1 - erf(x), without cancellation for large x."""
    return apply(erfc_p, x, accuracy=accuracy)


@api_boundary
def erf_inv(x: Any) -> Any:
    """Elementwise inverse of `erf`; infinite at -1 and 1, NaN beyond."""
    return apply(erf_inv_p, x)


@api_boundary
def lgamma(x: Any) -> Any:
    """Elementwise logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ..."""
    return apply(lgamma_p, x)


@api_boundary
def digamma(x: Any) -> Any:
    """Elementwise derivative of `lgamma`."""
    return apply(digamma_p, x)


@api_boundary
def polygamma(m: Any, x: Any) -> Any:
    """Elementwise m-th derivative of `digamma`, for m = 0, 1, 2, ... as floats; there is no derivative in `m`.

    Examples
    --------
    >>> from xform import lax
    >>> round(float(lax.polygamma(1.0, 1.0)), 12), round(np.pi**2 / 6, 12)
    (1.644934066848, 1.644934066848)
    """
    return apply(polygamma_p, m, x)
