"""Functions of two numbers that are one operation of NumPy's and several of StableHLO's.

On the host they are NumPy's, elsewhere formulas of other primitives. The derivatives are those of the function, not of
the formula, which has branches.

May import: `lax.families`, `lax.arithmetic`, `lax.extremes`, `lax.comparison`, `lax.powers`, `lax.rounding`.
"""

from typing import Any

import numpy as np

from xform.core.trace import Primitive
from xform.interpreters.jet import locally_linear
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import abs_p, add_p, div_p, mul_p, neg_p, rem_p, sub_p
from xform.lax.bitwise import and_p, or_p
from xform.lax.comparison import eq_p, gt_p, lt_p, ne_p, select_n_p
from xform.lax.extremes import max_p, min_p
from xform.lax.families import constant, elementwise
from xform.lax.powers import sqrt_p, square_p
from xform.lax.rounding import floor_p


def _floor_divide(x: Any, y: Any) -> Any:
    """The remainder is subtracted first, so that the quotient is an integer but for rounding."""
    zero, one = constant(x, 0), constant(x, 1)
    rest = rem_p.bind(x, y)
    quotient = div_p.bind(sub_p.bind(x, rest), y)
    opposite = ne_p.bind(lt_p.bind(rest, zero), lt_p.bind(y, zero))
    below = and_p.bind(ne_p.bind(rest, zero), opposite)
    quotient = select_n_p.bind(below, quotient, sub_p.bind(quotient, one))
    ratio = div_p.bind(x, y)
    quotient = select_n_p.bind(eq_p.bind(quotient, zero), quotient, mul_p.bind(ratio, zero))  # a zero with its sign
    quotient = select_n_p.bind(eq_p.bind(y, zero), quotient, ratio)
    # To the nearest integer, and down from halves, which large quotients in float32 are by rounding.
    low = floor_p.bind(quotient)
    return select_n_p.bind(gt_p.bind(sub_p.bind(quotient, low), constant(x, 0.5)), low, add_p.bind(low, one))


floor_divide_p = elementwise(
    "floor_divide", np.floor_divide, accepts="float", lower=lower_as(_floor_divide), widen=True
)


def _remainder(x: Any, y: Any) -> Any:
    zero, rest = constant(x, 0), rem_p.bind(x, y)
    negative = lt_p.bind(y, zero)
    out = select_n_p.bind(ne_p.bind(lt_p.bind(rest, zero), negative), rest, add_p.bind(rest, y))
    return select_n_p.bind(eq_p.bind(rest, zero), out, select_n_p.bind(negative, zero, constant(x, -0.0)))


remainder_p = elementwise(
    "remainder",
    np.remainder,
    accepts="float",
    jvp=[lambda g, ans, x, y: g, lambda g, ans, x, y: mul_p.bind(g, neg_p.bind(floor_divide_p.bind(x, y)))],
    jet=locally_linear,
    lower=lower_as(_remainder),
    widen=True,
)


# Extremes that ignore NaN. Equal operands have half of the derivative each.


def _ignoring_nan(name: str, host: Any, extreme: Primitive) -> Primitive:
    def formula(x: Any, y: Any) -> Any:
        other = select_n_p.bind(ne_p.bind(y, y), extreme.bind(x, y), x)
        return select_n_p.bind(ne_p.bind(x, x), other, y)

    def share(ans: Any, x: Any, y: Any) -> Any:
        part = select_n_p.bind(eq_p.bind(x, y), constant(x, 1), constant(x, 0.5))
        return select_n_p.bind(eq_p.bind(ans, x), constant(x, 0), part)

    return elementwise(
        name,
        host,
        accepts="inexact",
        jvp=[
            lambda g, ans, x, y: mul_p.bind(g, share(ans, x, y)),
            lambda g, ans, x, y: mul_p.bind(g, share(ans, y, x)),
        ],
        jet=locally_linear,
        lower=lower_as(formula),
    )


fmax_p = _ignoring_nan("fmax", np.fmax, max_p)
fmin_p = _ignoring_nan("fmin", np.fmin, min_p)


def _hypot(x: Any, y: Any) -> Any:
    """The squares are of numbers up to 1, so that they don't overflow."""
    zero, one, infinity = constant(x, 0), constant(x, 1), constant(x, np.inf)
    x, y = abs_p.bind(x), abs_p.bind(y)
    large, small = max_p.bind(x, y), min_p.bind(x, y)
    ratio = div_p.bind(small, select_n_p.bind(eq_p.bind(large, zero), large, one))
    out = mul_p.bind(large, sqrt_p.bind(add_p.bind(one, square_p.bind(ratio))))
    infinite = or_p.bind(eq_p.bind(x, infinity), eq_p.bind(y, infinity))  # beside NaN, too
    return select_n_p.bind(infinite, out, infinity)


def _direction(x: Any, ans: Any) -> Any:
    """x / hypot(x, y); 0 at the origin, and where the result is infinite."""
    nowhere = or_p.bind(eq_p.bind(ans, constant(ans, 0)), eq_p.bind(ans, constant(ans, np.inf)))
    return div_p.bind(select_n_p.bind(nowhere, x, constant(x, 0)), select_n_p.bind(nowhere, ans, constant(ans, 1)))


hypot_p = elementwise(
    "hypot",
    np.hypot,
    accepts="float",
    jvp=[
        lambda g, ans, x, y: mul_p.bind(g, _direction(x, ans)),
        lambda g, ans, x, y: mul_p.bind(g, _direction(y, ans)),
    ],
    lower=lower_as(_hypot),
    widen=True,
)
