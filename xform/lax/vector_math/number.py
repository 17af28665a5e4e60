"""Numbers whose operators write StableHLO, and what formulas share.

May import: `lax.families`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.interpreters.lowering import Context, Value
from xform.lax.families import compare

FLOAT, BITS = np.dtype(np.float64), np.dtype(np.uint64)
MANTISSA = 2**52 - 1
SIGN = 2**63
INF, NAN = float("inf"), float("nan")
# Added to an integer below 2^51, it leaves that integer in the low bits of the sum.
INTEGER = 1.5 * 2.0**52


class Number:
    """A value of the program under construction, floats, their bits or truth values; operators work elementwise."""

    __slots__ = ("constants", "ctx", "value")

    def __init__(self, ctx: Context, value: Value, constants: dict[Any, Value]):
        self.ctx, self.value, self.constants = ctx, value, constants

    def _with(self, value: Value) -> "Number":
        return Number(self.ctx, value, self.constants)

    def operand(self, other: Any, dtype: Any = None) -> Value:
        """Another number, or a constant of the same or another type, which is written once."""
        if isinstance(other, Number):
            return other.value
        dtype = dtype or self.value.dtype
        found = self.constants.get((other, dtype))
        if found is None:
            found = self.constants[other, dtype] = self.ctx.full(self.value.shape, other, dtype)
        return found

    def _op(self, name: str, *operands: Any) -> "Number":
        return self._with(self.ctx.op(name, [self.operand(x) for x in operands], self.value.aval))

    def _quotient(self, x: Any, y: Any) -> "Number":
        return self._with(self.ctx.quotient(self.operand(x), self.operand(y), self.value.aval))

    def _compare(self, other: Any, direction: str) -> "Number":
        return self._with(compare(self.ctx, self.value, self.operand(other), direction))

    def __add__(self, other: Any) -> "Number":
        return self._op("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Number":
        return self._op("subtract", self, other)

    def __rsub__(self, other: Any) -> "Number":
        return self._op("subtract", other, self)

    def __mul__(self, other: Any) -> "Number":
        return self._op("multiply", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Number":
        return self._quotient(self, other)

    def __rtruediv__(self, other: Any) -> "Number":
        return self._quotient(other, self)

    def __neg__(self) -> "Number":
        return self._op("negate", self)

    def __abs__(self) -> "Number":
        return self._op("abs", self)

    def __and__(self, other: Any) -> "Number":
        return self._op("and", self, other)

    def __or__(self, other: Any) -> "Number":
        return self._op("or", self, other)

    def __xor__(self, other: Any) -> "Number":
        return self._op("xor", self, other)

    def __lshift__(self, other: Any) -> "Number":
        return self._op("shift_left", self, other)

    def __rshift__(self, other: Any) -> "Number":
        return self._op("shift_right_logical", self, other)

    def __lt__(self, other: Any) -> "Number":
        return self._compare(other, "LT")

    def __le__(self, other: Any) -> "Number":
        return self._compare(other, "LE")

    def __gt__(self, other: Any) -> "Number":
        return self._compare(other, "GT")

    def __ge__(self, other: Any) -> "Number":
        return self._compare(other, "GE")

    def equals(self, other: Any) -> "Number":
        """Whether both are equal; NaN is not."""
        return self._compare(other, "EQ")

    def differs(self, other: Any) -> "Number":
        """Whether both are different."""
        return self._compare(other, "NE")

    def round(self) -> "Number":
        """The nearest integer."""
        return self._op("round_nearest_even", self)

    def floor(self) -> "Number":
        """The largest integer that is not larger."""
        return self._op("floor", self)

    def sqrt(self) -> "Number":
        """The square root, correctly rounded."""
        return self._op("sqrt", self)

    def at_least(self, bound: Any) -> "Number":
        """The larger of both, NaN if either is."""
        return self._op("maximum", self, bound)

    def at_most(self, bound: Any) -> "Number":
        """The smaller of both, NaN if either is."""
        return self._op("minimum", self, bound)

    def constant(self, value: Any) -> "Number":
        """A constant of the same type."""
        return self._with(self.operand(value))

    @property
    def bits(self) -> "Number":
        """The bits of a float."""
        dtype = BITS if self.value.dtype == FLOAT else np.dtype(np.uint32)
        return self._with(self.ctx.op("bitcast_convert", [self.value], self.value.aval.update(dtype=dtype)))

    @property
    def float(self) -> "Number":
        """The float of these bits."""
        dtype = FLOAT if self.value.dtype == BITS else np.dtype(np.float32)
        return self._with(self.ctx.op("bitcast_convert", [self.value], self.value.aval.update(dtype=dtype)))

    def head(self, bits: int = 26) -> "Number":
        """The number cut off after so many bits: products of two such are exact, and so is ``x - x.head()``."""
        return (self.bits & (2**64 - 2 ** (53 - bits))).float

    def to(self, dtype: Any) -> "Number":
        """Converted to `dtype`."""
        return self._with(self.ctx.convert(self.value, np.dtype(dtype)))


class Bound(NamedTuple):
    """Up to where a formula holds: for operands whose `measure` is below a `limit`. Beyond is XLA's operation."""

    operation: str
    measure: Callable[..., Number]
    limit: float


def where(condition: Number, x: Any, y: Any) -> Number:
    """`x` if the condition is true, else `y`; a Python number means a float, if the other one is no `Number`."""
    dtype = next((v.value.dtype for v in (x, y) if isinstance(v, Number)), FLOAT)
    values = [condition.operand(v, dtype) for v in (x, y)]
    aval = condition.value.aval.update(dtype=dtype)
    return Number(condition.ctx, condition.ctx.op("select", [condition.value, *values], aval), condition.constants)


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """The value of a polynomial, coefficients from the constant on, by Horner's rule."""
    *rest, last = coefficients
    value: Any = last
    for c in reversed(rest):
        value = x * value + c
    return value


def reciprocal(x: Number) -> Number:
    """1 / x of a normal number x > 0, to 1 ulp, for a quotient that is needed more than once.

    Divisions count as expensive, so XLA ends a loop with one whose result has two uses. Here the bits give a first
    guess with an error of 5%, and each step of Newton's squares it.
    """
    y = (x.constant(0.0).bits + 0x7FDE623822FC16E6 - x.bits).float
    for _ in range(4):
        y = y + y * (1.0 - x * y)
    return y


def whole(bits: Number) -> Number:
    """The float of an unsigned integer of at most 52 bits."""
    return (bits | 0x433 << 52).float - 2.0**52


def with_sign(x: Number, like: Number) -> Number:
    """A number that is not negative, with the sign of another one."""
    return (x.bits | (like.bits & SIGN)).float
