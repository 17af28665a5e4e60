"""Rounding, neighbours and the precision of floats, elementwise.

May import: `lax.families`.
"""

import enum
import operator
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.interpreters.jet import linear
from xform.interpreters.lowering import Context, Value
from xform.lax.families import apply, compare, elementwise


class RoundingMethod(enum.Enum):
    """What `round` does with numbers that are half-way between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


floor_p = elementwise("floor", np.floor, accepts="float", lower="floor")
ceil_p = elementwise("ceil", np.ceil, accepts="float", lower="ceil")


def _trunc_lower(ctx: Context, x: Value) -> Value:
    negative = compare(ctx, x, ctx.full(x.shape, 0, x.dtype), "LT")
    return ctx.op("select", [negative, *(ctx.op(name, [x], ctx.out) for name in ("ceil", "floor"))], ctx.out)


trunc_p = elementwise("trunc", np.trunc, accepts="float", lower=_trunc_lower)


def _round_host(x: Any, *, rounding_method: RoundingMethod) -> Any:
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    whole = np.trunc(x)
    away = np.abs(x - whole) >= x.dtype.type(0.5)
    return np.where(away, whole + np.copysign(x.dtype.type(1), x), whole)


_ROUND = {
    RoundingMethod.AWAY_FROM_ZERO: "round_nearest_afz",
    RoundingMethod.TO_NEAREST_EVEN: "round_nearest_even",
}

round_p = elementwise(
    "round",
    _round_host,
    accepts="float",
    lower=lambda ctx, x, *, rounding_method: ctx.op(_ROUND[rounding_method], [x], ctx.out),
)

is_finite_p = elementwise("is_finite", np.isfinite, accepts="float", result=np.dtype(bool), lower="is_finite")


def _nextafter_host(x: Any, y: Any) -> Any:
    out = np.nextafter(x, y)
    return np.where(x == y, y, out) if x.dtype == np.float16 else out  # NumPy takes 0.0 to -0.0 but for float16


def _nextafter_lower(ctx: Context, x: Value, y: Value) -> Value:
    out = ctx.op("chlo.next_after", [x, y], ctx.out)
    if not str(x.dtype).endswith("fnuz"):
        return out
    # Types without -0.0, whose bits are those of NaN there: before zero XLA goes astray.
    smallest = -float(dtypes.finfo(x.dtype).smallest_subnormal)
    before_zero = compare(ctx, x, ctx.full(x.shape, smallest, x.dtype), "EQ")
    upwards = compare(ctx, y, x, "GT")
    both = ctx.op("and", [before_zero, upwards], before_zero.aval)
    return ctx.op("select", [both, ctx.full(x.shape, 0, x.dtype), out], ctx.out)


nextafter_p = elementwise("nextafter", _nextafter_host, accepts="float", lower=_nextafter_lower, by_bits=True)


# reduce_precision: round to a narrower format, without subnormal numbers, and back.


def _reduce_precision_check(x: ShapedArray, *, exponent_bits: int, mantissa_bits: int) -> None:
    if not dtypes.issubdtype(x.dtype, np.floating):
        raise TypeError(f"lax.reduce_precision takes arrays of float dtype, got {x.str_short()}")
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError(
            "lax.reduce_precision: exponent_bits must be at least 1 and mantissa_bits at least 0, got "
            f"{exponent_bits} and {mantissa_bits}"
        )


def _reduce_precision_host(x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    x = np.asarray(x)
    info = dtypes.finfo(x.dtype)
    bits = x.view(f"u{x.dtype.itemsize}")
    number = bits.dtype.type
    if (drop := info.nmant - mantissa_bits) > 0:  # to nearest, ties to even
        odd = (bits >> number(drop)) & number(1)
        bits = (bits + (number((1 << drop - 1) - 1) + odd)) & number(~0 << drop & (1 << info.bits) - 1)
    out = bits.view(x.dtype)
    if exponent_bits < info.nexp:
        exponent = (bits >> number(info.nmant)) & number((1 << info.nexp) - 1)
        bias, new_bias = (1 << info.nexp - 1) - 1, (1 << exponent_bits - 1) - 1
        out = np.where(exponent > bias + new_bias, np.copysign(x.dtype.type(np.inf), x), out)
        out = np.where(exponent <= bias - new_bias, np.copysign(x.dtype.type(0), x), out)
    return np.where(np.isnan(x), x, out)


def _reduce_precision_lower(ctx: Context, x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    attributes = f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32"
    return ctx.op("reduce_precision", [x], ctx.out, attributes)


reduce_precision_p = elementwise(
    "reduce_precision",
    _reduce_precision_host,
    check=_reduce_precision_check,
    jvp=lambda g, ans, x, **params: reduce_precision_p.bind(g, **params),
    transpose=lambda ct, x, **params: [reduce_precision_p.bind(ct, **params)],
    jet=linear,
    lower=_reduce_precision_lower,
    by_bits=True,
)


@api_boundary
def floor(x: Any) -> Any:
    """Elementwise largest integer that is not greater."""
    return apply(floor_p, x)


@api_boundary
def ceil(x: Any) -> Any:
    """Elementwise smallest integer that is not less."""
    return apply(ceil_p, x)


@api_boundary
def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """Elementwise nearest integer.

    Examples
    --------
    >>> from xform import lax
    >>> x = np.array([-0.5, 0.5, 1.5, 2.5])
    >>> lax.round(x).tolist(), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN).tolist()
    ([-1.0, 1.0, 2.0, 3.0], [-0.0, 0.0, 2.0, 2.0])
    """
    try:
        method = RoundingMethod(rounding_method)
    except ValueError as error:
        raise ValueError(f"lax.round: rounding_method {error}") from None
    return apply(round_p, x, rounding_method=method)


@api_boundary
def is_finite(x: Any) -> Any:
    """Elementwise: whether a float is neither infinite nor NaN."""
    return apply(is_finite_p, x)


@api_boundary
def nextafter(x1: Any, x2: Any) -> Any:
    """Elementwise next float after `x1` in the direction of `x2`."""
    return apply(nextafter_p, x1, x2)


@api_boundary
def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    """Round to a float format of fewer bits, to nearest and ties to even, and keep the dtype.

    What is too large becomes infinite; what is smaller than the format's normal numbers becomes zero.

    Examples
    --------
    >>> from xform import lax
    >>> float(lax.reduce_precision(1 / 3, exponent_bits=5, mantissa_bits=10)), float(np.float16(1 / 3))
    (0.333251953125, 0.333251953125)
    """
    bits = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
    try:
        bits = {name: operator.index(n) for name, n in bits.items()}
    except TypeError:
        raise TypeError(f"lax.reduce_precision: exponent_bits and mantissa_bits are ints, got {bits}") from None
    return apply(reduce_precision_p, operand, **bits)
