"""Logarithms of sums of exponentials or powers of two, of two real numbers: NumPy's ``logaddexp`` and ``logaddexp2``.

May import: `lax.families`, `lax.arithmetic`, `lax.bitwise`, `lax.comparison`, `lax.transcendental`.
"""

import math
from typing import Any

import numpy as np

from xform.core.trace import Primitive
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import add_p, div_p, mul_p, sub_p
from xform.lax.bitwise import and_p
from xform.lax.comparison import eq_p, gt_p, ne_p, select_n_p
from xform.lax.families import constant, elementwise
from xform.lax.transcendental import exp2_p, exp_p, log1p_p, logistic_p


def _logaddexp(name: str, host: Any, exp: Primitive, log_of_base: float) -> Primitive:
    def formula(x: Any, y: Any) -> Any:
        swap = gt_p.bind(x, y)
        small, large = select_n_p.bind(swap, x, y), select_n_p.bind(swap, y, x)
        delta = sub_p.bind(small, large)
        rest = div_p.bind(log1p_p.bind(exp.bind(delta)), constant(x, log_of_base))
        twice = constant(x, math.log(2) / log_of_base)  # right to the last place, as it may be all that cancels
        rest = select_n_p.bind(eq_p.bind(delta, constant(x, 0)), rest, twice)
        # The difference of equal infinities is NaN; their sum is the result, as it is beside NaN.
        return select_n_p.bind(ne_p.bind(delta, delta), add_p.bind(large, rest), add_p.bind(x, y))

    def share(x: Any, y: Any) -> Any:
        """exp(x) / (exp(x) + exp(y)); a half of equal infinities."""
        delta = sub_p.bind(x, y)
        same = and_p.bind(ne_p.bind(delta, delta), eq_p.bind(x, y))
        delta = select_n_p.bind(same, delta, constant(x, 0))
        return logistic_p.bind(mul_p.bind(delta, constant(x, log_of_base)))

    return elementwise(
        name,
        host,
        accepts="float",
        jvp=[
            lambda g, ans, x, y: mul_p.bind(g, share(x, y)),
            lambda g, ans, x, y: mul_p.bind(g, share(y, x)),
        ],
        lower=lower_as(formula),
        widen=True,
    )


logaddexp_p = _logaddexp("logaddexp", np.logaddexp, exp_p, 1.0)
logaddexp2_p = _logaddexp("logaddexp2", np.logaddexp2, exp2_p, math.log(2))
