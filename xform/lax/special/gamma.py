"""The logarithm of the gamma function and its derivatives.

Hosts take them from SciPy, which is imported at the first call.

May import: `lax.special.formulas`, `lax.special.zeta`, the elementwise modules of `lax`, `lax.control_flow`,
`lax.gather`, `lax.reductions`.
"""

from collections.abc import Callable
from math import factorial, isqrt
from typing import Any

import numpy as np

from xform.core.errors import api_boundary
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import abs, add, add_p, div, mul, mul_p, neg, sub
from xform.lax.comparison import clamp, eq, gt, le, lt, ne, select
from xform.lax.control_flow.cond import cond
from xform.lax.conversion import convert
from xform.lax.extremes import max, min
from xform.lax.families import apply, constant, elementwise
from xform.lax.gather import GatherDimensionNumbers, gather
from xform.lax.powers import square
from xform.lax.reductions import reduce_or
from xform.lax.rounding import floor, round
from xform.lax.shapes import expand_dims
from xform.lax.special import tables
from xform.lax.special.formulas import all_of, any_of, evaluate, host_as, in_float64, replaced
from xform.lax.special.negative_axis import DIGAMMA_FAR, digamma_below, digamma_far, digamma_near, lgamma_below
from xform.lax.special.zeta import zeta_of_any
from xform.lax.transcendental import exp, log

# Both functions of a positive number: a polynomial for 1 <= x <= 3 beside the function's zeros as factors; beyond, the
# recurrence down to that interval, unrolled; from 8 on Stirling's formula with its remainder.
_STIRLING_FROM = 8.0
_STEPS = 5
_STIRLING_CONSTANT = float(np.log(2 * np.pi) - 1) / 2


def _fraction(x: Any) -> Any:
    """The distance to the nearest integer, with sign; exact."""
    return sub(x, round(x))


def _sin_pi(r: Any) -> Any:
    """sin(pi r) for |r| <= 1/2."""
    return mul(r, evaluate(tables.SIN_PI, square(r)))


def _with_negative(high: float, below: Callable[[Any], Any], pole: float, x: Any, y: Any) -> Any:
    """`y` with what is `below` a number and costs more put in, and the value at the poles."""

    def replace(x: Any, y: Any) -> Any:
        return select(lt(x, high), select(eq(x, floor(x)), constant(x, pole), in_float64(below)(x)), y)

    some = reduce_or(lt(x, high), tuple(range(x.ndim)))
    return cond(some, replace, lambda x, y: y, x, y)


def _lgamma(x: Any) -> Any:
    """For x > -2."""
    a = abs(x)
    one_up, two_up = add(x, 1.0), add(x, 2.0)

    def steps(none: Any, one: Any, two: Any, three: Any) -> Any:
        """By the steps up that lead to y >= 1, where lgamma(x) = lgamma(y) - log(factor)."""
        return select(up, select(lt(x, 0.0), select(lt(x, -1.0), three, two), one), none)

    up = lt(x, 1.0)
    u = steps(sub(a, 2.0), sub(a, 1.0), x, one_up)  # y - 2
    two = mul(a, one_up)
    factor = steps(constant(x, 1), a, two, mul(two, two_up))
    for _ in range(_STEPS):
        far = gt(u, 1.0)
        u = select(far, sub(u, 1.0), u)
        factor = select(far, mul(factor, add(u, 2.0)), factor)
    plus = steps(add(u, 1.0), a, one_up, two_up)  # u + 1 loses the digits of small x, which is one of the two factors
    u = min(u, 1.0)
    core = mul(mul(u, plus), evaluate(tables.LGAMMA, u))

    big = gt(a, _STIRLING_FROM)
    logarithm = log(select(big, a, abs(factor)))
    z = max(a, _STIRLING_FROM)
    remainder = div(evaluate(tables.LGAMMA_TAIL, div(1.0, square(z))), z)
    stirling = add(mul(sub(z, 0.5), sub(logarithm, 1.0)), add(remainder, _STIRLING_CONSTANT))
    return select(big, stirling, add(core, select(up, neg(logarithm), logarithm)))


def _lgamma_lowered(x: Any) -> Any:
    return _with_negative(-2.0, lgamma_below, np.inf, x, _lgamma(x))


def _lgamma_near_zeros(x: Any) -> Any:
    """For 1/2 < x < 2."""
    up = lt(x, 1.0)
    u = sub(x, select(up, constant(x, 1), 2.0))
    core = mul(mul(u, select(up, x, add(u, 1.0))), evaluate(tables.LGAMMA, u))
    return add(core, select(up, neg(log(x)), constant(x, 0)))


_near_zeros, _below = host_as(_lgamma_near_zeros), host_as(lgamma_below)


def _lgamma_host(x: Any) -> Any:
    from scipy import special

    # SciPy's is -inf at -inf, and around its zeros it is accurate in absolute terms only.
    y = replaced(special.gammaln(x), x == -np.inf, np.negative, x)
    if x.dtype != np.float64:
        return y
    y = replaced(y, (x > 0.5) & (x < 2), _near_zeros, x)
    return replaced(y, (x < -2) & (x != np.floor(x)), _below, x)


lgamma_p = elementwise(
    "lgamma",
    _lgamma_host,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, digamma_p.bind(x)),
    lower=lower_as(_lgamma_lowered),
    widen=True,
)


# The positive zero of digamma less 2, as a number and the rest.
_ZERO = (-0.5383678550316376, -1.5522348162858677e-17)


def _digamma(x: Any) -> Any:
    """For x >= 0."""
    zero, rest = _ZERO
    up = lt(x, 1.0)
    u = select(up, sub(x, 1.0), sub(x, 2.0))
    shift = select(up, div(-1.0, x), 0.0)
    for _ in range(_STEPS):
        far = gt(u, 1.0)
        u = select(far, sub(u, 1.0), u)
        shift = select(far, add(shift, div(1.0, add(u, 2.0))), shift)
    u = min(u, 1.0)
    slope = evaluate(tables.DIGAMMA, u)
    core = sub(mul(sub(u, zero), slope), mul(slope, rest))  # not (u - zero - rest), whose constants XLA adds up

    z = max(x, _STIRLING_FROM)
    w = div(1.0, square(z))
    tail = sub(sub(log(z), div(0.5, z)), mul(w, evaluate(tables.DIGAMMA_TAIL, w)))
    return select(gt(x, _STIRLING_FROM), tail, add(core, shift))


def _digamma_by_reflection(x: Any) -> Any:
    """For all x, with the digits of float32: digamma(1 - x) - digamma(x) = pi / tan(pi x)."""
    negative = lt(x, 0.0)
    y = _digamma(select(negative, sub(1.0, x), x))
    r = _fraction(x)
    y = select(negative, sub(y, div(mul(_sin_pi(sub(0.5, abs(r))), np.pi), _sin_pi(r))), y)
    return select(all_of(negative, eq(x, floor(x))), constant(x, np.nan), y)


def _digamma_lowered(x: Any) -> Any:
    if x.dtype != np.float64:
        return in_float64(_digamma_by_reflection)(x)
    return _with_negative(0.0, digamma_below, np.nan, x, _digamma(x))


def log_minus_digamma(a: Any) -> Any:
    """log a - digamma(a) for a > 0, without cancellation for large a."""
    z = max(a, _STIRLING_FROM)
    w = div(1.0, square(z))
    far = add(div(0.5, z), mul(w, evaluate(tables.DIGAMMA_TAIL, w)))
    return select(gt(a, _STIRLING_FROM), far, sub(log(a), digamma_of_positive_p.bind(a)))


_digamma_near, _digamma_far = host_as(digamma_near), host_as(digamma_far)


def _digamma_host(x: Any) -> Any:
    from scipy import special

    y = special.digamma(x)
    if x.dtype != np.float64:
        return y
    inner = x != np.floor(x)
    y = replaced(y, (x < 0) & (x > DIGAMMA_FAR) & inner, _digamma_near, x)
    return replaced(y, (x < DIGAMMA_FAR) & inner, _digamma_far, x)


_digamma_rules: dict[str, Any] = {
    "accepts": "float",
    "jvp": lambda g, ans, x: mul_p.bind(g, polygamma_p.bind(constant(ans, 1), x)),
    "widen": True,
}
digamma_p = elementwise("digamma", _digamma_host, lower=lower_as(_digamma_lowered), **_digamma_rules)
# For formulas, so that they don't compile what negative numbers take.
digamma_of_positive_p = elementwise(
    "digamma_of_positive", _digamma_host, lower=lower_as(in_float64(_digamma)), **_digamma_rules
)


# polygamma(m, x) = (-1)^(m + 1) m! zeta(m + 1, x). The factorial is two factors, so that it doesn't overflow where the
# result is finite: m! and 1, or its square root twice. Then x is scaled, too, so that no power underflows.
_LARGEST_FACTORIAL = 170
_TABLE_ENDS = 300
_SCALE = 64.0
_FIRST = np.array(
    [
        float(factorial(m)) if m <= _LARGEST_FACTORIAL else float(isqrt(factorial(m))) * _SCALE ** (-(m + 1) / 2)
        for m in range(_TABLE_ENDS + 1)
    ]
)
_SECOND = np.where(np.arange(_TABLE_ENDS + 1) <= _LARGEST_FACTORIAL, 1.0, _FIRST)


def _polygamma(m: Any, x: Any, first: Any, second: Any, *, single: bool) -> Any:
    order = max(m, 1.0)
    # Beyond the table Stirling's formula.
    exponent = sub(mul(add(order, 0.5), sub(log(order), float(np.log(_SCALE)) + 1.0)), div(-1 / 12, order))
    root = exp(mul(add(exponent, float(0.5 * np.log(2 * np.pi / _SCALE) + 0.5)), 0.5))
    beyond = gt(m, float(_TABLE_ENDS))
    scale = select(gt(m, float(_LARGEST_FACTORIAL)), constant(m, 1 / _SCALE), 1.0)
    value = zeta_of_any(
        add(order, 1.0), x, select(beyond, root, first), select(beyond, root, second), scale, single=single
    )
    even = eq(mul(floor(mul(m, 0.5)), 2.0), m)
    value = select(all_of(even, ne(value, 0.0)), neg(value), value)
    pole = all_of(le(x, 0.0), eq(x, floor(x)))
    value = select(all_of(pole, even), np.nan, value)
    value = select(eq(m, 0.0), digamma(x), value)
    return select(any_of(lt(m, 0.0), ne(m, floor(m))), np.nan, value)


def _polygamma_lowered(m: Any, x: Any) -> Any:
    dtype, m, x = x.dtype, convert(m, np.dtype(np.float64)), convert(x, np.dtype(np.float64))
    index = expand_dims(convert(clamp(0.0, m, float(_TABLE_ENDS)), np.dtype(np.int32)), (m.ndim,))
    numbers = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    factors = [gather(table, index, numbers, slice_sizes=(1,), mode="clip") for table in (_FIRST, _SECOND)]
    return convert(_polygamma(m, x, *factors, single=dtype.itemsize < 8), dtype)


_polygamma_on_host = host_as(_polygamma)


def _polygamma_host(m: Any, x: Any) -> Any:
    dtype, m, x = x.dtype, m.astype(np.float64), x.astype(np.float64)
    index = np.where(m < _TABLE_ENDS, np.maximum(m, 0.0), _TABLE_ENDS).astype(int)
    return _polygamma_on_host(m, x, _FIRST[index], _SECOND[index], single=dtype.itemsize < 8).astype(dtype)


polygamma_p = elementwise(
    "polygamma",
    _polygamma_host,
    accepts="float",
    jvp=[
        None,
        lambda g, ans, m, x: mul_p.bind(g, polygamma_p.bind(add_p.bind(m, constant(ans, 1)), x)),
    ],
    lower=lower_as(_polygamma_lowered),
    widen=True,
)


@api_boundary
def lgamma(x: Any) -> Any:
    """Elementwise logarithm of the absolute value of the gamma function; infinite at 0, -1, -2, ...

    Within 4 ulp everywhere, also around its zeros, of which there are two between each two poles below -2.
    """
    return apply(lgamma_p, x)


@api_boundary
def digamma(x: Any) -> Any:
    """Elementwise derivative of `lgamma`; NaN at -1, -2, ...

    Within 4 ulp everywhere, also around its zeros, of which there is one between each two poles.
    """
    return apply(digamma_p, x)


@api_boundary
def polygamma(m: Any, x: Any) -> Any:
    """Elementwise m-th derivative of `digamma`, for m = 0, 1, 2, ... as floats; there is no derivative in `m`.

    At the poles 0, -1, -2, ... infinite for odd `m` and NaN for even `m`. Within 4 ulp for x > 0 and m <= 300.

    Examples
    --------
    >>> from xform import lax
    >>> f"{lax.polygamma(1.0, 1.0):.12f}, {np.pi**2 / 6:.12f}"
    '1.644934066848, 1.644934066848'
    """
    return apply(polygamma_p, m, x)
