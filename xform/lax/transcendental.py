"""Exponentials, logarithms, trigonometric and hyperbolic functions, elementwise.

May import: `lax.families`, `lax.arithmetic`.
"""

from typing import Any

import numpy as np

from xform.lax.arithmetic import div_p, mul_p, neg_p, sub_p
from xform.lax.families import as_operands, elementwise

sin_p = elementwise(
    "sin", np.sin, accepts="inexact", jvp=lambda g, ans, x: mul_p.bind(g, cos_p.bind(x)), lower="sine"
)
cos_p = elementwise(
    "cos", np.cos, accepts="inexact", jvp=lambda g, ans, x: neg_p.bind(mul_p.bind(g, sin_p.bind(x))), lower="cosine"
)
exp_p = elementwise("exp", np.exp, accepts="inexact", jvp=lambda g, ans, x: mul_p.bind(g, ans), lower="exponential")
log_p = elementwise("log", np.log, accepts="inexact", jvp=lambda g, ans, x: div_p.bind(g, x), lower="log")


def _tanh_jvp(g: Any, ans: Any, x: Any) -> Any:
    return mul_p.bind(g, sub_p.bind(np.ones((), ans.dtype)[()], mul_p.bind(ans, ans)))


tanh_p = elementwise("tanh", np.tanh, accepts="inexact", jvp=_tanh_jvp, lower="tanh")


def sin(x: Any) -> Any:
    """Elementwise sine, of radians."""
    return sin_p.bind(*as_operands("sin", x))


def cos(x: Any) -> Any:
    """Elementwise cosine, of radians."""
    return cos_p.bind(*as_operands("cos", x))


def exp(x: Any) -> Any:
    """Elementwise exponential."""
    return exp_p.bind(*as_operands("exp", x))


def log(x: Any) -> Any:
    """Elementwise natural logarithm."""
    return log_p.bind(*as_operands("log", x))


def tanh(x: Any) -> Any:
    """Elementwise hyperbolic tangent."""
    return tanh_p.bind(*as_operands("tanh", x))
