"""Arithmetic of real and complex numbers, elementwise: each primitive with all its rules, then the public functions.

Derivatives are *tangent times coefficient* where possible: one linear operation per operand keeps the program short
that reverse mode transposes.

May import: `lax.families`, `lax.comparison`, `lax.rounding`, `lax.conversion`, `lax.vector_math`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.interpreters.jet import Hooks as JetHooks
from xform.interpreters.jet import JetTrace, Series, bilinear, implicit, linear, locally_linear
from xform.interpreters.lowering import Context, Value
from xform.interpreters.marks import INFINITE, ZEROS
from xform.interpreters.tangents import Hooks as TangentHooks
from xform.interpreters.tangents import Zero, is_linear, zero_of
from xform.lax.comparison import eq_p, select_n_p
from xform.lax.conversion import convert_element_type
from xform.lax.families import Hooks as FamilyHooks
from xform.lax.families import (
    apply,
    check_kind,
    compare,
    constant,
    elementwise,
    is_complex,
    linear_in_all,
    narrow_integers,
    real_dtype,
    unbroadcast,
)
from xform.lax.rounding import RoundingMethod, round_p
from xform.lax.vector_math import vectorized

neg_p = elementwise(
    "neg",
    narrow_integers(np.negative),
    accepts="number",
    jvp=lambda g, ans, x: neg_p.bind(g),
    transpose=linear_in_all(lambda ct: [neg_p.bind(ct)]),
    jet=linear,
    lower="negate",
)
JetHooks.negate = neg_p.bind


# XLA takes x + 0.0 and x - -0.0 for x, and so gives -0.0 of -0.0.


def _is_zero(x: Value, sign: bool) -> bool:
    """Whether a value is known, and all its elements are zeros with the sign."""
    array = (x.scalar or x).array
    if array is None or not array.size or array.item(0) != 0 or dtypes.kinds[array.dtype] not in "fc":
        return False
    return not array.any() and bool((np.signbit(array.real) == sign).all())


def _without_sign(ctx: Context, x: Value) -> Value:
    """`x` with 0.0 for -0.0."""
    if is_complex(x):
        aval = x.aval.update(dtype=real_dtype(x.dtype))
        return ctx.op("complex", [_without_sign(ctx, ctx.op(name, [x], aval)) for name in ("real", "imag")], x.aval)
    zero = ctx.full(x.shape, 0, x.dtype)
    return ctx.op("select", [compare(ctx, x, zero, "EQ"), zero, x], x.aval)


def _add_lower(ctx: Context, x: Value, y: Value) -> Value:
    for v, other in ((y, x), (x, y)):
        if _is_zero(v, False):
            return _without_sign(ctx, other)
    return ctx.op("add", [x, y], ctx.out)


def _sub_lower(ctx: Context, x: Value, y: Value) -> Value:
    return _without_sign(ctx, x) if _is_zero(y, True) and not is_complex(x) else ctx.op("subtract", [x, y], ctx.out)


add_p = elementwise(
    "add",
    np.add,
    jvp=[lambda g, ans, x, y: g, lambda g, ans, x, y: g],
    transpose=linear_in_all(lambda ct: [ct, ct]),
    jet=locally_linear,
    lower=_add_lower,
    accepts="number",
)

# Sum of cotangents.
add_any_p = elementwise(
    "add_any",
    np.add,
    jvp=[lambda g, ans, x, y: g, lambda g, ans, x, y: g],
    transpose=linear_in_all(lambda ct: [ct, ct]),
    jet=locally_linear,
    lower="add",
)
TangentHooks.add = add_any_p.bind

sub_p = elementwise(
    "sub",
    np.subtract,
    accepts="number",
    jvp=[lambda g, ans, x, y: g, lambda g, ans, x, y: neg_p.bind(g)],
    transpose=linear_in_all(lambda ct: [ct, neg_p.bind(ct)]),
    jet=locally_linear,
    lower=_sub_lower,
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
    jet=lambda p: bilinear(p, lambda pairs: sum_of_products(pairs)),
    lower="multiply",
)
JetHooks.multiply = lambda x, k: mul_p.bind(x, constant(x, k))


# sum_of_products(x1, x2, ..., y1, y2, ...) is x1 y1 + x2 y2 + ...: one coefficient of a product of Taylor series.


def sum_of_products(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The sum of x * y over one or more pairs."""
    xs, ys = zip(*pairs, strict=True)
    return mul_p.bind(*xs, *ys) if len(xs) == 1 else sum_of_products_p.bind(*xs, *ys)


def _products_host(*operands: Any) -> Any:
    n = len(operands) // 2
    total = operands[0] * operands[n]
    for x, y in zip(operands[1:n], operands[n + 1 :], strict=True):
        total = total + x * y
    return total


def _products_jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    out, n = sum_of_products_p.bind(*primals), len(primals) // 2
    others = (*primals[n:], *primals[:n])
    found = [(t, y) for t, y in zip(ts, others, strict=True) if type(t) is not Zero]
    if not found:
        return out, zero_of(out)
    tangent = sum_of_products(found)
    return out, tangent if tangent.shape == out.shape else FamilyHooks.broadcast_in_dim(tangent, out.shape, ())


def _products_transpose(ct: Any, *operands: Any) -> list[Any]:
    n = len(operands) // 2
    others = (*operands[n:], *operands[:n])
    return [unbroadcast(mul_p.bind(ct, y), x) if is_linear(x) else None for x, y in zip(operands, others, strict=True)]


def _products_lower(ctx: Context, *operands: Value) -> Value:
    n = len(operands) // 2
    terms = [ctx.op("multiply", [x, y], ctx.out) for x, y in zip(operands[:n], operands[n:], strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = ctx.op("add", [total, term], ctx.out)
    return total


sum_of_products_p = elementwise(
    "sum_of_products",
    _products_host,
    accepts="number",
    transpose=_products_transpose,
    lower=_products_lower,
    widen=True,
)
sum_of_products_p.jvp = _products_jvp


# A product in which zero annihilates everything, infinities and NaN too: of a tangent or cotangent that is marked (see
# `interpreters.marks`), the first operand, and a coefficient; or of a tangent and a coefficient that may be infinite.


def _zero_product_host(x: Any, y: Any) -> Any:
    return np.where((x == 0) | (y == 0), np.zeros((), x.dtype), x * y)


def _zero_product_lower(ctx: Context, x: Value, y: Value) -> Value:
    zero = ctx.full(x.shape, 0, x.dtype)
    is_zero = [compare(ctx, v, zero, "EQ") for v in (x, y)]
    either = ctx.op("or", is_zero, is_zero[0].aval)
    return ctx.op("select", [either, zero, ctx.op("multiply", [x, y], ctx.out)], ctx.out)


def _zero_product_transpose(ct: Any, x: Any, y: Any) -> list[Any]:
    if is_linear(x):
        return [unbroadcast(zero_product_p.bind(ct, y), x), None]
    return [None, unbroadcast(zero_product_p.bind(ct, x), y)]


zero_product_p = elementwise(
    "zero_product",
    _zero_product_host,
    accepts="inexact",
    jvp=[lambda g, ans, x, y: zero_product_p.bind(g, y), lambda g, ans, x, y: zero_product_p.bind(x, g)],
    transpose=_zero_product_transpose,
    lower=_zero_product_lower,
)
zero_product_p.transpose_marked = _zero_product_transpose
zero_product_p.marks = (INFINITE, ZEROS)
mul_p.transpose_marked = _zero_product_transpose


# Integer division truncates towards zero. As in XLA, x / 0 is -1 (all bits set) with remainder x, and the smallest
# number by -1 is itself with remainder 0.


def _unless_by_zero(function: np.ufunc, x: Any, y: Any) -> Any:
    """`function` of integers, or None if a divisor is zero, of which NumPy knows when it has divided."""
    try:
        with np.errstate(divide="raise", over="ignore"):
            return function(x, y)
    except FloatingPointError:
        return None


def _truncated_quotient(x: Any, y: Any) -> Any:
    signed = dtypes.issubdtype(x.dtype, np.signedinteger)
    by_float = signed and x.size > 100 and _goes_by_float(x)
    quotient = _unless_by_zero(np.true_divide if by_float else np.floor_divide, x, y)
    if quotient is None:
        zero, one = y == 0, np.ones((), x.dtype)
        return np.where(zero, ~np.zeros((), x.dtype), _truncated_quotient(x, np.where(zero, one, y)))
    if by_float:
        return quotient.astype(np.int64).astype(x.dtype, copy=False)
    if signed and quotient.size and quotient.min() < 0:
        inexact = quotient * y != x
        inexact &= quotient < 0
        quotient += inexact
    return quotient


def _goes_by_float(x: Any) -> bool:
    """Whether float64 gives the quotients, and signs seem to differ, of which `floor_divide` is slow to find out."""
    return x.flat[:64].min() < 0 and (x.dtype.itemsize < 8 or -(2**53) < x.min() <= x.max() < 2**53)


def _is_integer(x: Any) -> bool:
    return x.dtype.kind not in "fc" and dtypes.issubdtype(x.dtype, np.integer)


def _div_host(x: Any, y: Any) -> Any:
    return _truncated_quotient(x, y) if _is_integer(x) else np.true_divide(x, y)


def _rem_host(x: Any, y: Any) -> Any:
    if not _is_integer(x):
        return np.fmod(x, y)
    out = _unless_by_zero(np.fmod, x, y)
    return np.where(y == 0, x, np.fmod(x, y)) if out is None else out


def _by_moduli(ctx: Context, operation: str, x: Value, y: Value) -> Value:
    """Division of moduli, and the sign: LLVM divides small numbers as such, and branches where they aren't.

    Of negative numbers none is small, and random signs are branches that the processor can't predict.
    """
    aval = x.aval
    moduli = [ctx.convert(ctx.op("abs", [v], aval), np.dtype(np.uint64)) for v in (x, y)]
    out = ctx.convert(ctx.op(operation, moduli, moduli[0].aval), aval.dtype)
    sign = x if operation == "remainder" else ctx.op("xor", [x, y], aval)
    negative = compare(ctx, sign, ctx.full(aval.shape, 0, aval.dtype), "LT")
    return ctx.op("select", [negative, ctx.op("negate", [out], aval), out], aval)


def _lower_integer_safely(operation: str) -> Any:
    """Integer division with divisors that are zero taken out.

    XLA does that for programs as they run, but dies of a constant zero that it divides by while compiling.
    """

    def lower(ctx: Context, x: Value, y: Value) -> Value:
        if not dtypes.issubdtype(x.dtype, np.integer):
            return ctx.quotient(x, y, ctx.out) if operation == "divide" else ctx.op(operation, [x, y], ctx.out)
        shape, dtype, aval = x.shape, x.dtype, ctx.out
        by_zero = compare(ctx, y, ctx.full(shape, 0, dtype), "EQ")
        divisor = ctx.op("select", [by_zero, ctx.full(shape, 1, dtype), y], aval)
        is_slow = dtype == np.int64 and (y.scalar or y).array is None
        out = _by_moduli(ctx, operation, x, divisor) if is_slow else ctx.op(operation, [x, divisor], aval)
        if operation == "remainder":
            return ctx.op("select", [by_zero, x, out], aval)
        ones = -1 if dtypes.issubdtype(dtype, np.signedinteger) else int(dtypes.iinfo(dtype).max)
        return ctx.op("select", [by_zero, ctx.full(shape, ones, dtype), out], aval)

    return lower


div_p = elementwise(
    "div",
    narrow_integers(_div_host),
    accepts="number",
    jvp=[
        lambda g, ans, x, y: div_p.bind(g, y),
        lambda g, ans, x, y: mul_p.bind(g, div_p.bind(neg_p.bind(ans), y)),
    ],
    transpose=lambda ct, x, y: [unbroadcast(div_p.bind(ct, y), x), None],
    jet=lambda p: implicit(p, 1, 0, sum_of_products),
    lower=_lower_integer_safely("divide"),
)
div_p.transpose_marked = lambda ct, x, y: [
    unbroadcast(zero_product_p.bind(ct, div_p.bind(constant(ct, 1), y)), x),
    None,
]


def _div_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """One quotient for both tangents, as a division takes as long as all the rest."""
    (x, y), (gx, gy) = primals, tangents
    if type(gx) is Zero or type(gy) is Zero:
        return _div_jvp_of_one(primals, tangents)
    ans = div_p.bind(x, y)
    return ans, div_p.bind(sub_p.bind(gx, mul_p.bind(gy, ans)), y)


_div_jvp_of_one, div_p.jvp = div_p.jvp, _div_jvp
JetHooks.divide = lambda x, k: div_p.bind(x, constant(x, k))


def _quotient(x: Any, ans: Any, y: Any) -> Any:
    """The whole number of times that y was taken away from x."""
    return round_p.bind(div_p.bind(sub_p.bind(x, ans), y), rounding_method=RoundingMethod.TO_NEAREST_EVEN)


_lower_rem = vectorized("rem", _lower_integer_safely("remainder"))


def _rem_lower(ctx: Context, x: Value, y: Value) -> Value:
    divisor = ctx.scalar_of(y)
    if isinstance(divisor, float) and math.frexp(divisor)[0] == 0.5 and divisor >= 1:
        return ctx.op("remainder", [x, y], ctx.out)  # LLVM cuts off bits of powers of two
    return _lower_rem(ctx, x, y)


rem_p = elementwise(
    "rem",
    narrow_integers(_rem_host),
    accepts="real number",
    jvp=[lambda g, ans, x, y: g, lambda g, ans, x, y: mul_p.bind(g, neg_p.bind(_quotient(x, ans, y)))],
    jet=locally_linear,
    lower=_rem_lower,
)


# The parts of a complex number. Transposes pair a complex cotangent with a tangent by the real part of their product.


def complex_dtype(dtype: np.dtype, *_: np.dtype) -> np.dtype:
    """The dtype of complex numbers whose parts are of `dtype`."""
    return np.result_type(dtype, np.complex64)


def _complex_check(x: ShapedArray, y: ShapedArray) -> None:
    if x.dtype != y.dtype or x.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"lax.complex takes two arrays of float32 or of float64, got {x.str_short()} and {y.str_short()}"
        )


def _complex_host(x: Any, y: Any) -> Any:
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, complex_dtype(x.dtype))
    out.real, out.imag = x, y
    return out


complex_p = elementwise(
    "complex",
    _complex_host,
    check=_complex_check,
    result=complex_dtype,
    jvp=[
        lambda g, ans, x, y: complex_p.bind(g, constant(g, 0)),
        lambda g, ans, x, y: complex_p.bind(constant(g, 0), g),
    ],
    transpose=linear_in_all(lambda ct: [real_p.bind(ct), neg_p.bind(imag_p.bind(ct))]),
    jet=locally_linear,
    lower="complex",
)

real_p = elementwise(
    "real",
    np.real,
    accepts="complex",
    result=real_dtype,
    jvp=lambda g, ans, x: real_p.bind(g),
    transpose=linear_in_all(lambda ct: [as_complex(ct)]),
    jet=linear,
    lower="real",
)

imag_p = elementwise(
    "imag",
    np.imag,
    accepts="complex",
    result=real_dtype,
    jvp=lambda g, ans, x: imag_p.bind(g),
    transpose=linear_in_all(lambda ct: [complex_p.bind(constant(ct, 0), neg_p.bind(ct))]),
    jet=linear,
    lower="imag",
)


def _conj_lower(ctx: Context, x: Value) -> Value:
    part = x.aval.update(dtype=real_dtype(x.dtype))
    imag = ctx.op("negate", [ctx.op("imag", [x], part)], part)
    return ctx.op("complex", [ctx.op("real", [x], part), imag], ctx.out)


conj_p = elementwise(
    "conj",
    np.conjugate,
    accepts="complex",
    jvp=lambda g, ans, x: conj_p.bind(g),
    transpose=linear_in_all(lambda ct: [conj_p.bind(ct)]),
    jet=linear,
    lower=_conj_lower,
)


def as_complex(x: Any) -> Any:
    """A real array as complex one (internal)."""
    return complex_p.bind(x, constant(x, 0))


# The sign of a complex number z is z / |z|, that of both zeros is 0.


def _sign_host(x: Any) -> Any:
    out = np.sign(x)
    return out if x.dtype.kind in "iufc" else out + x.dtype.type(0)  # ml_dtypes' sign(-0.0) is -0.0


def _sign_jvp(g: Any, ans: Any, x: Any) -> Any:
    if not is_complex(x):
        return zero_of(ans)
    # The component of g at right angles to z, over |z|.
    modulus = abs_p.bind(x)
    modulus = select_n_p.bind(eq_p.bind(modulus, constant(modulus, 0)), modulus, constant(modulus, 1))
    turn = div_p.bind(imag_p.bind(mul_p.bind(conj_p.bind(ans), g)), modulus)
    return mul_p.bind(complex_p.bind(constant(modulus, 0), turn), ans)


def _sign_lower(ctx: Context, x: Value) -> Value:
    if dtypes.issubdtype(x.dtype, np.unsignedinteger):
        return ctx.convert(compare(ctx, x, ctx.full(x.shape, 0, x.dtype), "NE"), x.dtype)
    if dtypes.kinds[x.dtype] == "i":
        return ctx.op("sign", [x], ctx.out)
    zero = ctx.full(x.shape, 0, x.dtype)
    return ctx.op("select", [compare(ctx, x, zero, "EQ"), zero, ctx.op("sign", [x], ctx.out)], ctx.out)


def _infinite_parts(ctx: Context, z: Value) -> tuple[list[Value], list[Value]]:
    """The parts of complex numbers, and whether they are infinite."""
    aval = z.aval.update(dtype=real_dtype(z.dtype))
    parts, infinity = [ctx.op(name, [z], aval) for name in ("real", "imag")], ctx.full(z.shape, np.inf, aval.dtype)
    return parts, [compare(ctx, ctx.op("abs", [x], aval), infinity, "EQ") for x in parts]


def _sign_lower_complex(ctx: Context, z: Value) -> Value:
    # If one part is infinite, only that one counts, as in NumPy.
    parts, infinite = _infinite_parts(ctx, z)
    aval = parts[0].aval
    zero, finite = ctx.full(z.shape, 0, aval.dtype), infinite[0].aval
    one_is = ctx.op("xor", infinite, finite)
    for k in (0, 1):
        part = ctx.op("select", [infinite[k], ctx.op("sign", [parts[k]], aval), zero], aval)
        parts[k] = ctx.op("select", [one_is, part, parts[k]], aval)
    return _sign_lower(ctx, ctx.op("complex", parts, z.aval))


sign_p = elementwise(
    "sign",
    narrow_integers(_sign_host),
    accepts="number",
    jvp=_sign_jvp,
    lower=_sign_lower,
    lower_complex=_sign_lower_complex,
)


def _abs_jvp(g: Any, ans: Any, x: Any) -> Any:
    if is_complex(x):
        return real_p.bind(mul_p.bind(g, conj_p.bind(sign_p.bind(x))))
    return mul_p.bind(g, sign_p.bind(x))


def _abs_jet(trace: JetTrace, x: Series) -> Series:
    return trace.solve(abs_p, [x], {}) if is_complex(x[0]) else locally_linear(abs_p)(trace, x)


def _abs_lower(ctx: Context, x: Value) -> Value:
    return x if dtypes.issubdtype(x.dtype, np.unsignedinteger) else ctx.op("abs", [x], ctx.out)


def _abs_lower_complex(ctx: Context, z: Value) -> Value:
    # Infinite also beside NaN, as in C.
    infinite = _infinite_parts(ctx, z)[1]
    either = ctx.op("or", infinite, infinite[0].aval)
    return ctx.op("select", [either, ctx.full(z.shape, np.inf, ctx.out.dtype), ctx.op("abs", [z], ctx.out)], ctx.out)


abs_p = elementwise(
    "abs",
    narrow_integers(np.abs),
    accepts="number",
    result=real_dtype,
    jvp=_abs_jvp,
    jet=lambda p: _abs_jet,
    lower=_abs_lower,
    lower_complex=_abs_lower_complex,
)


# Public functions


@api_boundary
def neg(x: Any) -> Any:
    """Elementwise negation."""
    return apply(neg_p, x)


@api_boundary
def add(x: Any, y: Any) -> Any:
    """Elementwise sum of arrays of one dtype, and one shape or rank 0."""
    return apply(add_p, x, y)


@api_boundary
def sub(x: Any, y: Any) -> Any:
    """Elementwise difference."""
    return apply(sub_p, x, y)


@api_boundary
def mul(x: Any, y: Any, *, out_dtype: Any = None) -> Any:
    """Elementwise product, of the operands converted to `out_dtype` if that is given."""
    if out_dtype is not None:
        x, y = (convert_element_type(v, out_dtype) for v in (x, y))
    return apply(mul_p, x, y)


@api_boundary
def div(x: Any, y: Any) -> Any:
    """Elementwise quotient; integers truncate towards zero, and divided by zero give -1 (all bits set).

    Examples
    --------
    >>> from xform import lax
    >>> lax.div(np.array([7, -7, 1]), np.array([2, 2, 0])).tolist()
    [3, -3, -1]
    """
    return apply(div_p, x, y)


@api_boundary
def rem(x: Any, y: Any) -> Any:
    """Elementwise remainder, with the sign of `x`; that of integers by zero is `x`.

    Examples
    --------
    >>> from xform import lax
    >>> lax.rem(np.array([7, -7, 1]), np.array([2, 2, 0])).tolist()
    [1, -1, 1]
    """
    return apply(rem_p, x, y)


@api_boundary
def sign(x: Any) -> Any:
    """Elementwise sign: -1, 0 or 1, NaN of NaN; z / abs(z) of complex numbers. Unlike JAX's, that of -0.0 is 0.0."""
    return apply(sign_p, x)


@api_boundary
def abs(x: Any) -> Any:
    """Elementwise absolute value; its derivative at 0 is 0."""
    return apply(abs_p, x)


@api_boundary
def complex(x: Any, y: Any) -> Any:
    """Complex numbers of real and imaginary parts, both float32 or both float64."""
    return apply(complex_p, x, y)


@api_boundary
def real(x: Any) -> Any:
    """Elementwise real part of complex numbers."""
    return apply(real_p, x)


@api_boundary
def imag(x: Any) -> Any:
    """Elementwise imaginary part of complex numbers."""
    return apply(imag_p, x)


@api_boundary
def conj(x: Any) -> Any:
    """Elementwise complex conjugate; of real numbers, themselves as complex ones."""
    aval = get_aval(x)
    if aval.dtype.kind == "c":
        return apply(conj_p, x)
    check_kind("conj", [aval], "inexact")
    return as_complex(x)
