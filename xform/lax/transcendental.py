"""Exponentials, logarithms, trigonometric and hyperbolic functions, elementwise.

Where XLA's own formula loses more than a few digits, the lowering is another one (`log1p`, `sinh`, `cosh`, `atanh`);
where XLA calls the C library for each element, large arrays on CPU get one of `lax.vector_math`.

May import: `lax.families`, `lax.vector_math`, `lax.hyperbolic`, `lax.single_precision`, `lax.complex_edges`, and the
modules that these may import.
"""

from typing import Any

import numpy as np

from xform.core.errors import api_boundary
from xform.interpreters.jet import JetTrace, Series, derivative, over, results
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import is_zero
from xform.lax import complex_edges, single_precision
from xform.lax.accuracy import Accuracy
from xform.lax.arithmetic import (
    abs,
    add,
    add_p,
    complex,
    complex_p,
    div,
    div_p,
    imag,
    mul,
    mul_p,
    neg,
    neg_p,
    real,
    sign,
    sub,
    sub_p,
    zero_product_p,
)
from xform.lax.comparison import clamp, eq, gt, lt, select
from xform.lax.complex_edges import mended, turned
from xform.lax.extremes import max, min
from xform.lax.families import (
    apply,
    complex_apart,
    constant,
    elementwise,
    lower_in_float32,
    lower_symmetric,
)
from xform.lax.hyperbolic import tanh_formula
from xform.lax.powers import one_minus_square_p, rsqrt_p, square, square_p
from xform.lax.vector_math import in_wide_vectors, vectorized

# Exponentials and logarithms

exp_p = elementwise(
    "exp",
    np.exp,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, ans),
    lower="exponential",
    lower_complex=mended("exponential", complex_edges.exp),
)


def _exp2_complex(z: Any) -> Any:
    modulus, angle = exp2(real(z)), mul(imag(z), float(np.log(2)))
    return complex(mul(modulus, cos(angle)), mul(modulus, sin(angle)))


exp2_p = elementwise(
    "exp2",
    np.exp2,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, mul_p.bind(ans, constant(ans, np.log(2)))),
    lower=vectorized(
        "exp2",
        lambda ctx, x: ctx.op("power", [ctx.full(x.shape, 2, x.dtype), x], ctx.out),
        lower_as(single_precision.exp2),
    ),
    lower_complex=lower_as(_exp2_complex),
)


@complex_apart(np.expm1)
def _expm1_host(x: Any) -> Any:
    out = np.expm1(x)
    if x.all() and np.isfinite(x).all():
        return out
    out = np.where(np.isfinite(x.real), out, np.exp(x) - 1)  # NumPy's multiplies infinities by 0
    return complex_p.host(out.real + 0, out.imag)[()]  # of -0 + 0j it is 0 + 0j in the array API standard


def _expm1_complex(z: Any) -> Any:
    x, y = real(z), imag(z)
    return complex(sub(mul(expm1(x), cos(y)), mul(square(sin(mul(y, 0.5))), 2.0)), mul(exp(x), sin(y)))


expm1_p = elementwise(
    "expm1",
    _expm1_host,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, add_p.bind(ans, constant(ans, 1))),
    lower=vectorized("expm1", "exponential_minus_one", lower_as(single_precision.expm1)),
    lower_complex=mended(lower_as(_expm1_complex), complex_edges.expm1),
)


def _log_complex(z: Any) -> Any:
    # Where the modulus is close to 1, its logarithm is that of 1 + (a - 1)(a + 1) + b^2, from the larger part a.
    x, y = abs(real(z)), abs(imag(z))
    a, b = max(x, y), min(x, y)
    near_one = mul(log1p(add(mul(sub(a, 1.0), add(a, 1.0)), mul(b, b))), 0.5)
    modulus = select(lt(abs(sub(a, 1.0)), 0.5), near_one, log(abs(z)))
    return complex(modulus, atan2(imag(z), real(z)))


log_p = elementwise(
    "log",
    np.log,
    accepts="inexact",
    jvp=lambda g, ans, x: div_p.bind(g, x),
    lower=vectorized("log", "log"),
    lower_complex=lower_as(_log_complex),
)

log2_p = elementwise(
    "log2",
    np.log2,
    accepts="inexact",
    jvp=lambda g, ans, x: div_p.bind(g, mul_p.bind(x, constant(ans, np.log(2)))),
    lower=lower_as(lambda x: div(log(x), constant(x, np.log(2)))),
    widen=True,
)


@complex_apart(np.log1p)
def _log1p_host(x: Any) -> Any:
    # NumPy's loses the real part of small numbers.
    a, b = x.real, x.imag
    modulus = np.where(np.abs(x) < 0.5, np.log1p(a * (a + 2) + b * b) / 2, np.log(np.hypot(1 + a, b)))
    return complex_p.host(modulus, np.arctan2(b, 1 + a))[()]


def _log1p(x: Any) -> Any:
    # XLA's own is wrong by 100 ulp in float64. In log(u) x / (u - 1), with u = 1 + x rounded, the errors of
    # numerator and denominator cancel. The clamp keeps XLA from simplifying u - 1 to x, and the quotient from
    # being inf / inf.
    u = add(x, 1.0)
    difference = sub(clamp(0.0, u, constant(x, np.finfo(x.dtype).max)), 1.0)
    return select(eq(difference, 0.0), x, mul(log(u), div(x, difference)))


def _log1p_complex(z: Any) -> Any:
    x, y = real(z), imag(z)
    near_one = mul(log1p(add(mul(x, add(x, 2.0)), mul(y, y))), 0.5)
    away = log(abs(add(z, constant(z, 1))))
    return complex(select(lt(abs(z), 0.5), near_one, away), atan2(y, add(x, 1.0)))


log1p_p = elementwise(
    "log1p",
    _log1p_host,
    accepts="inexact",
    jvp=lambda g, ans, x: div_p.bind(g, add_p.bind(x, constant(ans, 1))),
    lower=vectorized("log1p", lower_as(_log1p)),
    lower_complex=lower_as(_log1p_complex),
)


def _logistic_host(x: Any) -> Any:
    one = x.dtype.type(1)
    if x.dtype.kind != "c":
        return one / (one + np.exp(-x))
    e = np.exp(np.where(x.real < 0, x, -x))  # no overflow, which for complex numbers gives NaN
    return np.where(x.real < 0, e, one) / (one + e)


def _logistic_jet(trace: JetTrace, x: Series) -> Series:
    """From ``y' = x' y (1 - y)``, where 1 - y(x) = y(-x) to all digits."""

    def coefficient(_: int, k: int) -> Any:
        value = rate[k - 1]
        return value if is_zero(value) else over(value, k)

    y = results(logistic_p, [x], {}, coefficient)
    other = Series(logistic_p.bind(neg_p.bind(x[0])), lambda k: y[k] if is_zero(y[k]) else neg_p.bind(y[k]))
    rate = mul_p.jet(trace, derivative(x), mul_p.jet(trace, y, other))
    return y


logistic_p = elementwise(
    "logistic",
    _logistic_host,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, mul_p.bind(ans, logistic_p.bind(neg_p.bind(x)))),
    jet=lambda p: _logistic_jet,
    lower=vectorized("logistic", "logistic"),
    widen=True,
)


# Trigonometric functions


def _one_plus_square(x: Any) -> Any:
    return add_p.bind(square_p.bind(x), constant(x, 1))


sin_p = elementwise(
    "sin",
    np.sin,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, cos_p.bind(x)),
    lower=vectorized("sin", "sine"),
    lower_complex=lower_as(turned(lambda z: sinh(z))),
)

cos_p = elementwise(
    "cos",
    np.cos,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, neg_p.bind(sin_p.bind(x))),
    lower=vectorized("cos", "cosine"),
    lower_complex=lower_as(lambda z: cosh(complex(neg(imag(z)), real(z)))),
)

# Where tan(x + jy) tends to ±j, or tanh(x + jy) to ±1, the other part is a zero with the sign of x, or y, in the array
# API standard; in C it has that of sin 2x, or sin 2y.


@complex_apart(np.tan)
def _tan_host(x: Any) -> Any:
    out = np.tan(x)
    if not np.isinf(x).any():
        return out
    return complex_p.host(np.where(np.isinf(x.imag), np.copysign(out.real, x.real), out.real), out.imag)[()]


@complex_apart(np.tanh)
def _tanh_host(x: Any) -> Any:
    out = np.tanh(x)
    if not np.isinf(x).any():
        return out
    return complex_p.host(out.real, np.where(np.isinf(x.real), np.copysign(out.imag, x.imag), out.imag))[()]


tan_p = elementwise(
    "tan",
    _tan_host,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, _one_plus_square(ans)),
    lower=vectorized("tan", "tan"),
    lower_complex=lower_as(turned(lambda z: tanh(z))),
)

asin_p = elementwise(
    "asin",
    np.arcsin,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, rsqrt_p.bind(one_minus_square_p.bind(x))),
    lower=vectorized("asin", "chlo.asin"),
    lower_complex=lower_as(turned(lambda z: asinh(z))),
)

acos_p = elementwise(
    "acos",
    np.arccos,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, neg_p.bind(rsqrt_p.bind(one_minus_square_p.bind(x)))),
    lower=vectorized("acos", "chlo.acos"),
    lower_complex=mended(lower_symmetric("chlo.acos"), complex_edges.acos),
)

atan_p = elementwise(
    "atan",
    np.arctan,
    accepts="inexact",
    jvp=lambda g, ans, x: div_p.bind(g, _one_plus_square(x)),
    lower=vectorized("atan", "chlo.atan"),
    lower_complex=lower_as(turned(lambda z: atanh(z))),
)


def _over_square_length(a: Any, x: Any, y: Any) -> Any:
    """a / (x^2 + y^2), and 0 at the origin."""
    squares = add_p.bind(square_p.bind(x), square_p.bind(y))
    return zero_product_p.bind(a, div_p.bind(constant(a, 1), squares))


atan2_p = elementwise(
    "atan2",
    np.arctan2,
    accepts="float",
    jvp=[
        lambda g, ans, x, y: mul_p.bind(g, _over_square_length(y, x, y)),
        lambda g, ans, x, y: mul_p.bind(g, _over_square_length(neg_p.bind(x), x, y)),
    ],
    lower=vectorized("atan2", "atan2"),
)


# sinh and cosh. XLA takes exp(x - log 2), which loses digits as x grows; here the argument is halved, exactly, where
# exp(x) would overflow.


def _half_exponentials(x: Any) -> tuple[Any, Any]:
    """exp(|x|) / 2 and exp(-|x|) / 2."""
    x = abs(x)
    big = gt(x, constant(x, np.floor(np.log(np.finfo(x.dtype).max))))
    e = exp(select(big, mul(x, 0.5), x))
    half = mul(e, 0.5)
    return select(big, mul(half, e), half), div(0.5, select(big, constant(x, np.inf), e))


def _parts(f: Any, g: Any, z: Any) -> Any:
    """f(x) cos(y) + j g(x) sin(y)."""
    x, y = real(z), imag(z)
    return complex(mul(f(x), cos(y)), mul(g(x), sin(y)))


def _sinh(x: Any) -> Any:
    grown, shrunk = _half_exponentials(x)
    e = expm1(x)
    small = mul(add(e, div(e, add(e, 1.0))), 0.5)
    return select(lt(abs(x), 1.0), small, mul(sign(x), sub(grown, shrunk)))


sinh_p = elementwise(
    "sinh",
    np.sinh,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, cosh_p.bind(x)),
    lower=vectorized("sinh", lower_as(_sinh)),
    lower_complex=mended(lower_as(lambda z: _parts(sinh, cosh, z)), complex_edges.sinh),
    widen=True,
)

cosh_p = elementwise(
    "cosh",
    np.cosh,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, sinh_p.bind(x)),
    lower=vectorized("cosh", lower_as(lambda x: add(*_half_exponentials(x)))),
    lower_complex=mended(lower_as(lambda z: _parts(cosh, sinh, z)), complex_edges.cosh),
    widen=True,
)


tanh_p = elementwise(
    "tanh",
    _tanh_host,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, one_minus_square_p.bind(ans)),
    lower=lower_in_float32(in_wide_vectors(lower_as(tanh_formula), "tanh")),
    lower_complex=mended("tanh", complex_edges.tanh),
)


def _with_log1p(formula: Any) -> Any:
    """The lowering rule of a formula that is given `log1p`."""

    def with_log1p(x: Any) -> Any:
        return formula(x, log1p)

    return lower_as(with_log1p)


asinh_p = elementwise(
    "asinh",
    np.arcsinh,
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, rsqrt_p.bind(_one_plus_square(x))),
    lower=vectorized("asinh", "chlo.asinh", _with_log1p(single_precision.asinh)),
    lower_complex=mended(lower_symmetric("chlo.asinh", "real"), complex_edges.asinh),
)


def _acosh_jvp(g: Any, ans: Any, x: Any) -> Any:
    one = constant(ans, 1)
    # Not rsqrt(x^2 - 1), which for complex x is on the other branch where the real part is negative.
    return mul_p.bind(g, mul_p.bind(rsqrt_p.bind(sub_p.bind(x, one)), rsqrt_p.bind(add_p.bind(x, one))))


acosh_p = elementwise(
    "acosh",
    np.arccosh,
    accepts="inexact",
    jvp=_acosh_jvp,
    lower=vectorized("acosh", "chlo.acosh", _with_log1p(single_precision.acosh)),
    lower_complex=mended(lower_symmetric("chlo.acosh"), complex_edges.acosh),
)


def _atanh(x: Any) -> Any:
    return mul(sub(log1p(x), log1p(neg(x))), 0.5)


atanh_p = elementwise(
    "atanh",
    np.arctanh,
    accepts="inexact",
    jvp=lambda g, ans, x: div_p.bind(g, one_minus_square_p.bind(x)),
    lower=vectorized("atanh", lower_as(_atanh), _with_log1p(single_precision.atanh)),
    lower_complex=mended(lower_symmetric("chlo.atanh"), complex_edges.atanh),
    widen=True,
)


# Public functions


@api_boundary
def exp(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise exponential."""
    return apply(exp_p, x, accuracy=accuracy)


@api_boundary
def exp2(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise power of 2."""
    return apply(exp2_p, x, accuracy=accuracy)


@api_boundary
def expm1(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise exp(x) - 1, exact to the last digits for small x."""
    return apply(expm1_p, x, accuracy=accuracy)


@api_boundary
def log(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise natural logarithm."""
    return apply(log_p, x, accuracy=accuracy)


@api_boundary
def log2(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise logarithm to base 2."""
    return apply(log2_p, x, accuracy=accuracy)


@api_boundary
def log1p(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise log(1 + x), exact to the last digits for small x."""
    return apply(log1p_p, x, accuracy=accuracy)


@api_boundary
def logistic(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise sigmoid 1 / (1 + exp(-x))."""
    return apply(logistic_p, x, accuracy=accuracy)


@api_boundary
def sin(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise sine, of radians."""
    return apply(sin_p, x, accuracy=accuracy)


@api_boundary
def cos(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise cosine, of radians."""
    return apply(cos_p, x, accuracy=accuracy)


@api_boundary
def tan(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise tangent, of radians."""
    return apply(tan_p, x, accuracy=accuracy)


@api_boundary
def asin(x: Any) -> Any:
    """Elementwise inverse sine, in [-pi/2, pi/2]."""
    return apply(asin_p, x)


@api_boundary
def acos(x: Any) -> Any:
    """Elementwise inverse cosine, in [0, pi]."""
    return apply(acos_p, x)


@api_boundary
def atan(x: Any) -> Any:
    """Elementwise inverse tangent, in [-pi/2, pi/2]."""
    return apply(atan_p, x)


@api_boundary
def atan2(x: Any, y: Any) -> Any:
    """Elementwise angle of the points with ordinate `x` and abscissa `y`, in [-pi, pi].

    Examples
    --------
    >>> from xform import lax
    >>> lax.atan2(np.array([1.0, -1.0]), np.array([0.0, -1.0])).tolist()
    [1.5707963267948966, -2.356194490192345]
    """
    return apply(atan2_p, x, y)


@api_boundary
def sinh(x: Any) -> Any:
    """Elementwise hyperbolic sine."""
    return apply(sinh_p, x)


@api_boundary
def cosh(x: Any) -> Any:
    """Elementwise hyperbolic cosine."""
    return apply(cosh_p, x)


@api_boundary
def tanh(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise hyperbolic tangent."""
    return apply(tanh_p, x, accuracy=accuracy)


@api_boundary
def asinh(x: Any) -> Any:
    """Elementwise inverse hyperbolic sine."""
    return apply(asinh_p, x)


@api_boundary
def acosh(x: Any) -> Any:
    """Elementwise inverse hyperbolic cosine."""
    return apply(acosh_p, x)


@api_boundary
def atanh(x: Any) -> Any:
    """Elementwise inverse hyperbolic tangent."""
    return apply(atanh_p, x)
