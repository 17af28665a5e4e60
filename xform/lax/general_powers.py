"""General powers, elementwise: of two arrays of one dtype, or of a real or complex base with integer exponents.

May import: `lax.families`, `lax.arithmetic`, `lax.comparison`, `lax.powers`, `lax.conversion`, `lax.transcendental`.
"""

from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import concrete_or_none
from xform.interpreters.jet import JetTrace, Series
from xform.interpreters.lowering import Context, Value, i64s
from xform.interpreters.signs import is_positive
from xform.lax.arithmetic import (
    mul_p,
    sub_p,
    zero_product_p,
)
from xform.lax.comparison import eq_p, select_n_p
from xform.lax.conversion import convert
from xform.lax.families import (
    KINDS,
    apply,
    compare,
    constant,
    elementwise,
)
from xform.lax.powers import host_power, power_series
from xform.lax.transcendental import log_p
from xform.lax.vector_math import vectorized


def _pow_check(x: ShapedArray, y: ShapedArray) -> None:
    ok = x.dtype == y.dtype and x.dtype != bool
    if not ok and not (KINDS["inexact"](x.dtype) and KINDS["integer"](y.dtype)):
        raise TypeError(
            "lax.pow takes two arrays of one dtype of numbers, or a real or complex base and integer exponents, got "
            f"{x.str_short()}, {y.str_short()}"
        )


def _pow_host(x: Any, y: Any) -> Any:
    dtype = x.dtype
    if y.dtype != dtype:
        y = y.astype(dtype)
    if dtypes.kinds[dtype] in "fc":
        return host_power(x, y)
    if dtype.kind == "V":  # integers of fewer than 8 bits
        wide = np.int8 if dtypes.kinds[dtype] == "i" else np.uint8
        return _pow_host(x.astype(wide), y.astype(wide)).astype(dtype)
    # Negative powers of 1 and -1 are right, of other integers 0.
    negative = y < 0
    power = np.power(x, np.where(negative, np.zeros((), dtype), y))
    one = np.ones((), dtype)
    odd = (y & one).astype(bool)
    return np.where(negative, np.where(x == one, one, np.where(x == -one, np.where(odd, -one, one), 0 * one)), power)


# XLA makes multiplications, divisions and roots of powers with these constant exponents.
_EASY_EXPONENTS = (-2, -1, -0.5, 0, 0.5, 1, 2, 3)
# Powers that are products and quotients with a root on CPU, in an eighth of the time.
_HALVES = (-1.5, -0.5, 1.5)


def _pow_lower(ctx: Context, x: Value, y: Value) -> Value:
    if not KINDS["inexact"](x.dtype):
        return _integer_power(ctx, x, y)
    y = ctx.convert(y, x.dtype)
    exponent = ctx.scalar_of(y)
    if exponent in _HALVES and ctx.takes_loops(x.aval):
        return _with_root(ctx, x, exponent)
    out = ctx.op("power", [x, y], ctx.out) if exponent in _EASY_EXPONENTS else _power(ctx, x, y)
    if not KINDS["complex"](x.dtype):
        return out
    # XLA multiplies the logarithm of 0 by the exponent, which is NaN if that is not real.
    real_y = ctx.op("real", [y], y.aval.update(dtype=np.finfo(y.dtype).dtype))
    vanishes = [
        compare(ctx, x, ctx.full(x.shape, 0, x.dtype), "EQ"),
        compare(ctx, real_y, ctx.full(y.shape, 0, real_y.dtype), "GT"),
    ]
    where = ctx.op("and", vanishes, vanishes[0].aval)
    return ctx.op("select", [where, ctx.full(x.shape, 0, x.dtype), out], ctx.out)


_power = vectorized("pow", "power")


def _with_root(ctx: Context, x: Value, exponent: float) -> Value:
    aval = ctx.out
    # As the power has it, minus zero is zero and minus infinity is infinity.
    edges = [compare(ctx, x, ctx.full(x.shape, edge, x.dtype), "EQ") for edge in (0, -np.inf)]
    x = ctx.op("select", [ctx.op("or", edges, edges[0].aval), ctx.op("abs", [x], aval), x], aval)
    one = ctx.full(x.shape, 1, x.dtype)
    if exponent == -1.5:  # it vanishes where 1 / x is too small a number
        return ctx.op("divide", [ctx.op("sqrt", [ctx.op("divide", [one, x], aval)], aval), x], aval)
    root = ctx.op("sqrt", [x], aval)
    return ctx.op("multiply", [x, root], aval) if exponent > 0 else ctx.quotient(one, root, aval)


def _integer_power(ctx: Context, x: Value, y: Value) -> Value:
    # By repeated squaring, while an exponent has bits left; XLA's own stops after the sixth bit.
    aval, scalar = x.aval, ShapedArray((), x.dtype)
    zero, one = ctx.full(x.shape, 0, x.dtype), ctx.full(x.shape, 1, x.dtype)
    negative = compare(ctx, y, zero, "LT")
    inverse = ctx.op("divide", [one, x], aval)
    inverse = ctx.op("select", [compare(ctx, x, zero, "EQ"), zero, inverse], aval)
    base = ctx.op("select", [negative, inverse, x], aval)
    exponent = ctx.op("select", [negative, ctx.op("negate", [y], aval), y], aval)

    def condition(ctx: Context, power: Value, base: Value, exponent: Value) -> list[Value]:
        either = ctx.region(lambda ctx, a, b: [ctx.op("or", [a, b], scalar)], [scalar, scalar])
        start = ctx.constant(0, x.dtype)
        bits = ctx.op("reduce", [exponent, start], scalar, f"dimensions = {i64s(range(x.aval.ndim))}", [either])
        return [compare(ctx, bits, start, "NE")]

    def body(ctx: Context, power: Value, base: Value, exponent: Value) -> list[Value]:
        odd = compare(ctx, ctx.op("and", [exponent, one], aval), zero, "NE")
        power = ctx.op("select", [odd, ctx.op("multiply", [power, base], aval), power], aval)
        exponent = ctx.op("shift_right_logical", [exponent, one], aval)
        return [power, ctx.op("multiply", [base, base], aval), exponent]

    state = [aval] * 3
    loop = [ctx.region(condition, state), ctx.region(body, state)]
    return ctx.op("while", [one, base, exponent], state, "", loop)[0]


def _pow_jvp_base(g: Any, ans: Any, x: Any, y: Any) -> Any:
    # y x^(y - 1), and 0 for y = 0 also where x^-1 is infinite.
    y = convert(y, ans.dtype)
    if is_positive(x):
        return mul_p.bind(g, mul_p.bind(y, pow_p.bind(x, sub_p.bind(y, constant(ans, 1)))))
    zero, one = constant(ans, 0), constant(ans, 1)
    none = select_n_p.bind(eq_p.bind(x, zero), np.False_, eq_p.bind(y, zero))
    power = pow_p.bind(x, select_n_p.bind(none, sub_p.bind(y, one), one))
    return zero_product_p.bind(g, mul_p.bind(y, power))


def _pow_jvp_exponent(g: Any, ans: Any, x: Any, y: Any) -> Any:
    # x^y log x, whose limit at x = 0 is 0.
    if is_positive(x):
        return mul_p.bind(g, mul_p.bind(ans, log_p.bind(x)))
    base = select_n_p.bind(eq_p.bind(x, constant(ans, 0)), x, constant(ans, 1))
    return mul_p.bind(g, mul_p.bind(ans, log_p.bind(base)))


def _pow_jet(trace: JetTrace, x: Series, y: Series) -> Any:
    a = concrete_or_none(y[0]) if y.is_constant else None
    if a is None or a.shape or a == np.round(a):
        return trace.solve(pow_p, [x, y], {})  # right at 0 for integer exponents
    return power_series(trace, pow_p.bind(x[0], y[0]), x, a)


pow_p = elementwise(
    "pow",
    _pow_host,
    check=_pow_check,
    result=lambda x, y: x,
    jvp=[_pow_jvp_base, _pow_jvp_exponent],
    jet=lambda p: _pow_jet,
    lower=_pow_lower,
)


@api_boundary
def pow(x: Any, y: Any) -> Any:
    """Elementwise power, of arrays of one dtype or with integer exponents.

    Negative powers of integers other than 1 and -1 are 0. Derivatives at x = 0 are finite where the limit is: in `x`
    for y >= 1 and y = 0, in `y` for y > 0.

    Examples
    --------
    >>> from xform import lax
    >>> lax.pow(np.array([2.0, 3.0]), np.array([-1, 2])).tolist()
    [0.5, 9.0]
    """
    return apply(pow_p, x, y)
