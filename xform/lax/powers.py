"""Powers with fixed exponents, and roots, elementwise.

May import: `lax.families`, `lax.vector_math`, `lax.arithmetic`, `lax.comparison`, `lax.complex_edges`.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.interpreters.jet import JetTrace, Series, derivative, over, pairs, results
from xform.interpreters.lowering import Context, Value
from xform.interpreters.signs import is_positive
from xform.interpreters.tangents import Zero, add_tangents, is_zero, zero_of
from xform.lax import complex_edges
from xform.lax.accuracy import Accuracy
from xform.lax.arithmetic import div_p, mul_p, neg_p, sum_of_products, zero_product_p
from xform.lax.comparison import eq_p, select_n_p
from xform.lax.complex_edges import mended
from xform.lax.families import KINDS, apply, constant, elementwise, lower_symmetric, narrow_integers
from xform.lax.vector_math import vectorized

square_p = elementwise(
    "square",
    narrow_integers(np.square),
    accepts="number",
    jvp=lambda g, ans, x: mul_p.bind(g, mul_p.bind(x, constant(ans, 2))),
    jet=lambda p: lambda trace, x: mul_p.jet(trace, x, x),
    lower=lambda ctx, x: ctx.op("multiply", [x, x], ctx.out),
)


def _one_minus_square_lower(ctx: Context, x: Value) -> Value:
    one = ctx.full(x.shape, 1, x.dtype)
    return ctx.op("multiply", [ctx.op("subtract", [one, x], x.aval), ctx.op("add", [one, x], x.aval)], ctx.out)


def _one_minus_square_jet(trace: JetTrace, x: Series) -> Series:
    square = mul_p.jet(trace, x, x)
    return Series(
        one_minus_square_p.bind(x[0]), lambda k: square[k] if type(square[k]) is Zero else neg_p.bind(square[k])
    )


# Accurate near 1 and -1.
one_minus_square_p = elementwise(
    "one_minus_square",
    lambda x: (1 - x) * (1 + x),
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, mul_p.bind(x, constant(ans, -2))),
    jet=lambda p: _one_minus_square_jet,
    lower=_one_minus_square_lower,
    widen=True,
)


def _sqrt_jet(trace: JetTrace, x: Series) -> Series:
    """From ``y y = x``. At 0 it gives infinities with the signs of the limits, but 0 where x doesn't change."""

    def coefficient(_: int, k: int) -> Any:
        found, rest = pairs(y, y, k, 1, k), x[k]
        if found:
            rest = add_tangents(rest, neg_p.bind(sum_of_products(found)))
        return rest if is_zero(rest) else zero_product_p.bind(rest, div_p.bind(constant(y[0], 0.5), y[0]))

    y = results(sqrt_p, [x], {}, coefficient)
    return y


def _sqrt_jvp(g: Any, ans: Any, x: Any) -> Any:
    product = mul_p if is_positive(x) else zero_product_p
    return product.bind(g, div_p.bind(constant(ans, 0.5), ans))


sqrt_p = elementwise(
    "sqrt",
    np.sqrt,
    accepts="inexact",
    jvp=_sqrt_jvp,
    jet=lambda p: _sqrt_jet,
    lower="sqrt",
    lower_complex=mended(lower_symmetric("sqrt"), complex_edges.sqrt),
)


def _rsqrt_lower(ctx: Context, x: Value) -> Value:
    if not ctx.takes_loops(ctx.out):
        return ctx.op("rsqrt", [x], ctx.out)
    return ctx.quotient(ctx.full(x.shape, 1, x.dtype), ctx.op("sqrt", [x], ctx.out), ctx.out)


rsqrt_p = elementwise(
    "rsqrt",
    lambda x: np.true_divide(x.dtype.type(1), np.sqrt(x)),
    accepts="inexact",
    jvp=lambda g, ans, x: mul_p.bind(g, mul_p.bind(constant(ans, -0.5), div_p.bind(ans, x))),
    lower=_rsqrt_lower,
    widen=True,
)


def power_series(trace: JetTrace, first: Any, x: Series, a: Any) -> Series:
    """``x^a`` with a that is no integer, from ``x p' = a x' p``; at 0 the limits, which are 0 or infinite.

    `first` is the value, its first coefficient.
    """

    def coefficient(k: int) -> Any:
        value = rate[k - 1]
        if is_zero(value):
            return value
        limit = constant(first, 0)
        if k > a.real and not is_zero(x[1]):
            sign = np.prod(np.sign([a.real - j for j in range(k)]))
            limit = mul_p.bind(integer_pow_p.bind(x[1], y=k), constant(first, np.inf * sign))
        return select_n_p.bind(at_zero, over(value, k), limit)

    at_zero = eq_p.bind(x[0], constant(first, 0))
    power = Series(first, coefficient)
    scaled = mul_p.jet(trace, derivative(x), Series(constant(first, a)))
    rate = div_p.jet(trace, mul_p.jet(trace, scaled, power), x)
    return power


cbrt_p = elementwise(
    "cbrt",
    np.cbrt,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, div_p.bind(constant(ans, 1 / 3), mul_p.bind(ans, ans))),
    jet=lambda p: lambda trace, x: power_series(trace, p.bind(x[0]), x, 1 / 3),
    lower=vectorized("cbrt", "cbrt"),
)


# integer_pow has a Python int as exponent. Host and XLA multiply in the same order. For negative ones the reciprocal
# comes first, so that nothing underflows where the result is finite.


def _by_squaring(x: Any, n: int, multiply: Callable[[Any, Any], Any]) -> Any:
    """The n-th power, n > 0."""
    power = None
    while True:
        if n & 1:
            power = x if power is None else multiply(power, x)
        n >>= 1
        if not n:
            return power
        x = multiply(x, x)


def host_power(x: Any, y: Any) -> Any:
    """NumPy's ``power``, but for 0.5: of -0 and -infinity it gives 0 and infinity, as for the exponents around it.

    NumPy takes the square root where one exponent holds for a whole row.
    """
    out = np.power(x, y)
    if type(y) is float:
        root = y == 0.5
    elif type(y) is int:
        return out
    elif y.size == 1:
        root = y.item() == 0.5
    else:
        root = (y.size < out.size or 0 in y.strides) and (y == 0.5).any()
    if not root or out.dtype.kind != "f":
        return out
    return np.where(y == 0.5, np.where(x == -np.inf, np.inf, out) + 0.0, out)


def _integer_pow_check(x: ShapedArray, *, y: int) -> None:
    if not KINDS["number"](x.dtype):
        raise TypeError(f"lax.integer_pow takes arrays of number dtype, got {x.str_short()}")
    if y < 0 and not KINDS["inexact"](x.dtype):
        raise TypeError(f"lax.integer_pow: integers have no negative powers, got {x.str_short()} with exponent {y}")


def _integer_pow_host(x: Any, *, y: int) -> Any:
    if y == 0:
        return np.ones_like(x)
    if y == 3 and x.ndim:
        out = np.multiply(x, x)
        return np.multiply(x, out, out=out)
    return _by_squaring(np.true_divide(x.dtype.type(1), x) if y < 0 else x, abs(y), np.multiply)


def _integer_pow_lower(ctx: Context, x: Value, *, y: int) -> Value:
    one = ctx.full(x.shape, 1, x.dtype)
    if y == 0:
        return one
    base = ctx.op("divide", [one, x], ctx.out) if y < 0 else x
    return _by_squaring(base, abs(y), lambda a, b: ctx.op("multiply", [a, b], ctx.out))


def _integer_pow_jvp(g: Any, ans: Any, x: Any, *, y: int) -> Any:
    if y == 0:
        return zero_of(ans)
    if y == 1:
        return g
    power = x if y == 2 else integer_pow_p.bind(x, y=y - 1)
    return mul_p.bind(g, mul_p.bind(constant(ans, y), power))


def _integer_pow_jet(trace: JetTrace, x: Series, *, y: int) -> Series:
    """By products, which are right at 0, too."""
    if y == 0:
        return Series(integer_pow_p.bind(x[0], y=0))
    base = div_p.jet(trace, Series(constant(x[0], 1)), x) if y < 0 else x
    return _by_squaring(base, abs(y), lambda a, b: mul_p.jet(trace, a, b))


integer_pow_p = elementwise(
    "integer_pow",
    _integer_pow_host,
    check=_integer_pow_check,
    jvp=_integer_pow_jvp,
    jet=lambda p: _integer_pow_jet,
    lower=_integer_pow_lower,
    widen=True,
)


@api_boundary
def square(x: Any) -> Any:
    """Elementwise square."""
    return apply(square_p, x)


@api_boundary
def one_minus_square(x: Any) -> Any:
    """Elementwise 1 - x^2, computed as (1 - x)(1 + x), which keeps all digits near 1 and -1."""
    return apply(one_minus_square_p, x)


@api_boundary
def sqrt(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise square root."""
    return apply(sqrt_p, x, accuracy=accuracy)


@api_boundary
def rsqrt(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise reciprocal of the square root."""
    return apply(rsqrt_p, x, accuracy=accuracy)


@api_boundary
def cbrt(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise cube root of real numbers."""
    return apply(cbrt_p, x, accuracy=accuracy)


@api_boundary
def integer_pow(x: Any, y: int) -> Any:
    """Elementwise power with a Python int as exponent; of integers it must not be negative.

    Examples
    --------
    >>> from xform import lax
    >>> lax.integer_pow(np.array([2.0, 4.0]), -2).tolist()
    [0.25, 0.0625]
    """
    try:
        exponent = operator.index(y)
    except TypeError:
        raise TypeError(f"lax.integer_pow: the exponent must be an int, got {y!r}; lax.pow takes others") from None
    return apply(integer_pow_p, x, y=exponent)


@api_boundary
def reciprocal(x: Any) -> Any:
    """Elementwise 1 / x."""
    return apply(integer_pow_p, x, y=-1)
