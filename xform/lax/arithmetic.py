"""Arithmetic, elementwise: each primitive with all its rules, then the public functions.

May import: `lax.families`.
"""

from typing import Any

import numpy as np

from xform.core import dtypes
from xform.interpreters.tangents import Hooks as TangentHooks
from xform.interpreters.tangents import is_linear
from xform.lax.families import as_operands, elementwise, linear_in_all, unbroadcast

neg_p = elementwise(
    "neg",
    np.negative,
    accepts="number",
    jvp=lambda g, ans, x: neg_p.bind(g),
    transpose=linear_in_all(lambda ct: [neg_p.bind(ct)]),
    lower="negate",
)

add_p = elementwise(
    "add",
    np.add,
    jvp=[lambda g, ans, x, y: g, lambda g, ans, x, y: g],
    transpose=linear_in_all(lambda ct: [ct, ct]),
    lower="add",
    accepts="number",
)

# Sum of cotangents.
add_any_p = elementwise(
    "add_any",
    np.add,
    jvp=[lambda g, ans, x, y: g, lambda g, ans, x, y: g],
    transpose=linear_in_all(lambda ct: [ct, ct]),
    lower="add",
)
TangentHooks.add = add_any_p.bind

sub_p = elementwise(
    "sub",
    np.subtract,
    accepts="number",
    jvp=[lambda g, ans, x, y: g, lambda g, ans, x, y: neg_p.bind(g)],
    transpose=linear_in_all(lambda ct: [ct, neg_p.bind(ct)]),
    lower="subtract",
)


def _mul_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    if is_linear(x):
        return [unbroadcast(mul_p.bind(ct, y), x), None]
    return [None, unbroadcast(mul_p.bind(ct, x), y)]


mul_p = elementwise(
    "mul",
    np.multiply,
    accepts="number",
    jvp=[lambda g, ans, x, y: mul_p.bind(g, y), lambda g, ans, x, y: mul_p.bind(x, g)],
    transpose=_mul_transpose,
    lower="multiply",
)


def _div_host(x: Any, y: Any) -> Any:
    """Integers truncate towards zero; division by zero gives -1 (all bits set), the extreme by -1 itself, as in XLA."""
    dtype = x.dtype
    if dtypes.issubdtype(dtype, np.inexact):
        return np.true_divide(x, y)
    x, y = np.asarray(x), np.asarray(y)
    safe = np.where(y == 0, np.ones((), dtype), y)
    out = np.floor_divide(x, safe)
    if dtypes.issubdtype(dtype, np.signedinteger):
        out = np.where((out < 0) & (out * safe != x), out + np.ones((), dtype), out)
        out = np.where(safe == -1, np.negative(x), out)
    return np.where(y == 0, ~np.zeros((), dtype), out).astype(dtype)[()]


div_p = elementwise(
    "div",
    _div_host,
    accepts="number",
    jvp=[lambda g, ans, x, y: div_p.bind(g, y), lambda g, ans, x, y: div_p.bind(mul_p.bind(neg_p.bind(g), ans), y)],
    transpose=lambda ct, x, y: [unbroadcast(div_p.bind(ct, y), x), None],
    lower="divide",
)


def neg(x: Any) -> Any:
    """Elementwise negation."""
    return neg_p.bind(*as_operands("neg", x))


def add(x: Any, y: Any) -> Any:
    """Elementwise sum of arrays of one dtype, and one shape or rank 0."""
    return add_p.bind(*as_operands("add", x, y))


def sub(x: Any, y: Any) -> Any:
    """Elementwise difference."""
    return sub_p.bind(*as_operands("sub", x, y))


def mul(x: Any, y: Any) -> Any:
    """Elementwise product."""
    return mul_p.bind(*as_operands("mul", x, y))


def div(x: Any, y: Any) -> Any:
    """Elementwise quotient; integers truncate towards zero, and divided by zero give -1 (all bits set)."""
    return div_p.bind(*as_operands("div", x, y))
