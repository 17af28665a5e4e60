"""What forward and reverse mode share: symbolic zeros, placeholders of transposition, sums of tangents.

May import: `xform.core`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import NDARRAYS, get_aval
from xform.core.avals import ShapedArray


class Zero:
    """A tangent or cotangent that is known to be zero; no array is made for it."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class Linear:
    """In a transpose rule, stands for an operand that the operation is linear in."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval})"


_zeros: dict[ShapedArray, Zero] = {}


def zero_of(x: Any) -> Zero:
    """The zero tangent of a primal value (float0 for integers)."""
    aval = get_aval(x)
    zero = _zeros.get(aval)
    if zero is None:
        zero = _zeros[aval] = Zero(aval.to_tangent_aval())
    return zero


def is_zero(t: Any) -> bool:
    """Whether a tangent is a symbolic zero."""
    return type(t) is Zero


def is_linear(x: Any) -> bool:
    """Whether an operand of a transpose rule is one that the operation is linear in."""
    return type(x) is Linear


class Hooks:
    """The two array operations that differentiation itself needs; `xform.lax` fills them in."""

    add: Callable[[Any, Any], Any]
    zeros: Callable[[ShapedArray], Any]


def instantiate(t: Any) -> Any:
    """An array for a tangent, also if it is zero."""
    if type(t) is not Zero:
        return t
    if t.aval.dtype == dtypes.float0:
        return np.zeros(t.aval.shape, dtypes.float0)
    return Hooks.zeros(t.aval)


def add_tangents(a: Any, b: Any) -> Any:
    """Sum of two tangents or cotangents, either of which may be zero or None."""
    if a is None or type(a) is Zero:
        return b
    if b is None or type(b) is Zero:
        return a
    if isinstance(a, NDARRAYS) and isinstance(b, NDARRAYS):
        return np.add(a, b)  # on the host, in a backward pass
    return Hooks.add(a, b)


def recast(t: Any) -> Any:
    """A user's tangent as an internal one: float0 arrays become symbolic zeros."""
    if isinstance(t, np.ndarray) and t.dtype == dtypes.float0:
        return Zero(ShapedArray(t.shape, dtypes.float0))
    return t
