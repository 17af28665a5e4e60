"""Elementwise functions, a table: in each row the primitive or formula, and dtypes for which NumPy may do it at once.

Derivatives and batching are the primitives' own. `fast` says what happens to concrete arrays; `formulas` has the
functions for which there is no primitive. The ufuncs' methods (``add.reduce`` ...) are attached in `functional`.

>>> import xform.numpy as xnp
>>> x = xnp.array([1.0, 2.0])
>>> xnp.maximum(x, 1.5).tolist(), xnp.add.reduce(x).item()
([1.5, 2.0], 3.0)

May import: `numpy.fast`, `numpy.promotion`, `numpy.formulas`, `xform.lax`.
"""

from typing import Any

import numpy as np

from xform.core.array import Array
from xform.core.trace import Primitive
from xform.lax import arithmetic as ar
from xform.lax import bitwise as bw
from xform.lax import comparison as cp
from xform.lax import extremes, pairs
from xform.lax import powers as pw
from xform.lax import rounding as rd
from xform.lax import transcendental as tr
from xform.lax.families import plain_host
from xform.numpy import formulas
from xform.numpy.fast import INEXACT, binary, short_way, unary
from xform.numpy.promotion import fit, operands, pair, promote, promote_inexact

_BOOL = np.dtype(bool)

# ---- Kinds of functions ------------------------------------------------------------------------------------


def _inexact(name: str, p: Primitive, doc: str, kinds: str = "fc") -> Any:
    """One floating or complex argument; integers and booleans are taken as floats."""
    bind = p.bind

    def general(x: Any) -> Any:
        if isinstance(x, Array) and x.aval.inexact:
            return bind(x)
        return bind(*promote_inexact(name, x))

    return unary(name, doc, general, plain_host(p), kinds, widens=True)


def _number(name: str, p: Primitive, doc: str, kinds: str = "iufc") -> Any:
    """One argument, whose dtype is kept."""
    bind = p.bind

    def general(x: Any) -> Any:
        return bind(x if isinstance(x, Array) else promote(name, x)[0])

    return unary(name, doc, general, plain_host(p), kinds)


def _rounded(name: str, p: Primitive, doc: str) -> Any:
    """One real argument; integers and booleans are returned as they are."""

    def general(x: Any) -> Any:
        (x,) = formulas.real_arrays(name, *promote(name, x))
        return p.bind(x) if formulas.is_floating(x) else x

    return unary(name, doc, general, plain_host(p), "f")


def _pairwise(name: str, p: Primitive, doc: str, kinds: str = "iufc", for_bool: Primitive | None = None) -> Any:
    """Two arguments, promoted to one dtype; `for_bool` replaces the primitive for booleans."""
    bind = p.bind
    if for_bool is None:

        def general(x: Any, y: Any) -> Any:
            return bind(*pair(name, x, y))

    else:

        def general(x: Any, y: Any) -> Any:
            x, y = pair(name, x, y)
            return for_bool.bind(x, y) if formulas.dtype_of(x) is _BOOL else bind(x, y)

    return binary(name, doc, general, plain_host(p), kinds, by_types=True)


def _inexact_pair(name: str, general: Any, host: Any, doc: str, kinds: str = "f") -> Any:
    """Two arguments, promoted to one floating (or complex) dtype, and a function of such arrays."""

    def promoted(x: Any, y: Any) -> Any:
        x, y = pair(name, x, y)
        if not formulas.is_inexact(x):
            x, y = fit(name, promote_inexact(name, x, y))
        return general(x, y)

    return binary(name, doc, promoted, host, kinds, widens=True, by_types=True)


def _comparison(name: str, p: Primitive, doc: str) -> Any:
    """Two arguments of any kind; booleans. Complex numbers are ordered by their real, then their imaginary parts."""
    lexicographic = formulas.lexicographic(p) if p not in (cp.eq_p, cp.ne_p) else None

    def general(x: Any, y: Any) -> Any:
        x, y = formulas.comparable(name, x, y)
        if lexicographic is not None and formulas.dtype_of(x).kind == "c":
            return lexicographic(x, y)
        return p.bind(x, y)

    doc += "\n\n    Differs from NumPy: int64 beside uint64 is compared as float64."
    return binary(name, doc, general, getattr(np, name), "biufc", by_types=True)


def _logical(name: str, p: Primitive, doc: str) -> Any:
    """Two arguments, of which only matters whether they are zero."""

    def general(x: Any, y: Any) -> Any:
        return p.bind(*operands(name, formulas.truth(name, x), formulas.truth(name, y)))

    return binary(name, doc, general, getattr(np, name), "biufc")


# ---- One argument ------------------------------------------------------------------------------------------

exp = _inexact("exp", tr.exp_p, "Elementwise exponential.")
exp2 = _inexact("exp2", tr.exp2_p, "Elementwise 2**x.")
expm1 = _inexact("expm1", tr.expm1_p, "Elementwise exp(x) - 1, exact for small x.", "f")
log = _inexact("log", tr.log_p, "Elementwise natural logarithm; NaN for negative real numbers.")
log1p = _inexact("log1p", tr.log1p_p, "Elementwise log(1 + x), exact for small x.", "f")
log2 = unary("log2", "Elementwise logarithm to base 2.", formulas.log2, np.log2, "fc")
log10 = unary("log10", "Elementwise logarithm to base 10.", formulas.log10, np.log10, "fc")
sqrt = _inexact("sqrt", pw.sqrt_p, "Elementwise square root; NaN for negative real numbers.")
cbrt = _inexact("cbrt", pw.cbrt_p, "Elementwise real cube root.", "f")

sin = _inexact("sin", tr.sin_p, "Elementwise sine, of radians.")
cos = _inexact("cos", tr.cos_p, "Elementwise cosine, of radians.")
tan = _inexact("tan", tr.tan_p, "Elementwise tangent, of radians.", "f")
arcsin = asin = _inexact("arcsin", tr.asin_p, "Elementwise inverse sine, from -pi/2 to pi/2.")
arccos = acos = _inexact("arccos", tr.acos_p, "Elementwise inverse cosine, from 0 to pi.")
arctan = atan = _inexact("arctan", tr.atan_p, "Elementwise inverse tangent, from -pi/2 to pi/2.")
sinh = _inexact("sinh", tr.sinh_p, "Elementwise hyperbolic sine.")
cosh = _inexact("cosh", tr.cosh_p, "Elementwise hyperbolic cosine.")
tanh = _inexact("tanh", tr.tanh_p, "Elementwise hyperbolic tangent.", "f")
arcsinh = asinh = _inexact("arcsinh", tr.asinh_p, "Elementwise inverse hyperbolic sine.")
arccosh = acosh = _inexact("arccosh", tr.acosh_p, "Elementwise inverse hyperbolic cosine.")
arctanh = atanh = _inexact("arctanh", tr.atanh_p, "Elementwise inverse hyperbolic tangent.")
deg2rad = unary("deg2rad", "Degrees to radians.", formulas.scaled("deg2rad", np.pi / 180), np.deg2rad, "f")
rad2deg = unary("rad2deg", "Radians to degrees.", formulas.scaled("rad2deg", 180 / np.pi), np.rad2deg, "f")
radians = unary("radians", "Degrees to radians.", formulas.scaled("radians", np.pi / 180), np.radians, "f")
degrees = unary("degrees", "Radians to degrees.", formulas.scaled("degrees", 180 / np.pi), np.degrees, "f")
sinc = unary("sinc", formulas.sinc.__doc__ or "", formulas.sinc, formulas.host_sinc, "f", widens=True)

negative = _number("negative", ar.neg_p, "Elementwise negation. TypeError for booleans, as in NumPy: use `~x`.")
positive = unary("positive", "The array itself; TypeError for booleans.", formulas.positive, np.positive, "iufc")
abs = absolute = unary(
    "absolute", "Elementwise absolute value; its derivative at 0 is 0.", formulas.absolute, np.absolute, "iufc"
)
fabs = unary("fabs", "Elementwise absolute value as float.", formulas.fabs, np.fabs, "f")
sign = unary(
    "sign",
    "Elementwise sign: -1, 0 or 1, z / abs(z) of complex numbers, NaN of NaN.",
    formulas.sign,
    np.sign,
    "iufc",
)
square = unary("square", "Elementwise x * x.", formulas.square, np.square, "iufc")
reciprocal = unary(
    "reciprocal",
    "Elementwise 1 / x.\n\n    Differs from NumPy: of integers a float.",
    formulas.reciprocal,
    np.reciprocal,
    "fc",
)
conjugate = conj = unary("conjugate", "Elementwise complex conjugate.", formulas.conjugate, np.conjugate, "iufc")
real = short_way(lambda x: x.real, INEXACT)(unary("real", "Real part.", formulas.real))
imag = short_way(lambda x: x.imag, "FD")(unary("imag", "Imaginary part; zeros for real arrays.", formulas.imag))

floor = _rounded("floor", rd.floor_p, "Largest integer that is not greater, as float; integers stay.")
ceil = _rounded("ceil", rd.ceil_p, "Smallest integer that is not less, as float; integers stay.")
fix = trunc = _rounded("trunc", rd.trunc_p, "Integer part, as float; integers stay.")
rint = unary("rint", "Nearest integer, as float; halves go to the even one.", formulas.rint, np.rint, "f")

isfinite = unary("isfinite", "Whether neither NaN nor infinite.", formulas.isfinite, np.isfinite, "biufc")
isnan = unary("isnan", "Whether NaN.", formulas.isnan, np.isnan, "biufc")
isinf = unary("isinf", "Whether infinite.", formulas.isinf, np.isinf, "biufc")
isposinf = unary("isposinf", "Whether positive infinity.", formulas.isposinf)
isneginf = unary("isneginf", "Whether negative infinity.", formulas.isneginf)
signbit = unary("signbit", "Whether the sign bit is set: negative numbers, -0.0.", formulas.signbit, np.signbit, "iuf")
spacing = unary("spacing", "Distance to the next number away from zero.", formulas.spacing, np.spacing, "f")
i0 = unary("i0", "Modified Bessel function of the first kind, order 0.", formulas.i0)

invert = bitwise_not = bitwise_invert = _number(
    "invert", bw.not_p, "Elementwise ~x: bits of integers, logical not of booleans.", "biu"
)
bitwise_count = unary(
    "bitwise_count",
    "Number of one bits in the absolute value, as uint8.",
    formulas.bitwise_count,
    np.bitwise_count,
    "iu",
)
logical_not = unary(
    "logical_not", "Whether zero.", lambda x: bw.not_p.bind(formulas.truth("logical_not", x)), np.logical_not, "biufc"
)

# ---- Two arguments -----------------------------------------------------------------------------------------

add = _pairwise("add", ar.add_p, "Elementwise sum; logical or of booleans.", "biufc", for_bool=bw.or_p)
subtract = _pairwise("subtract", ar.sub_p, "Elementwise difference. TypeError for booleans, as in NumPy: use `x ^ y`.")
multiply = _pairwise("multiply", ar.mul_p, "Elementwise product; logical and of booleans.", "biufc", for_bool=bw.and_p)
divide = true_divide = _inexact_pair(
    "divide", ar.div_p.bind, np.true_divide, "Elementwise quotient; integers become floats.", "fc"
)
floor_divide = binary(
    "floor_divide",
    "Elementwise floor of the quotient; integers divided by zero give 0.",
    formulas.floor_divide,
    np.floor_divide,
    "iuf",
)
remainder = mod = binary(
    "remainder",
    "Elementwise remainder, with the sign of the divisor; that of integers by zero is 0.",
    formulas.remainder,
    np.remainder,
    "iuf",
)
fmod = binary("fmod", "Elementwise remainder, with the sign of the dividend.", formulas.fmod, np.fmod, "iuf")
power = pow = binary("power", formulas.power.__doc__ or "", formulas.power, pw.host_power, "iufc")
float_power = binary("float_power", "Elementwise power, in the default float or complex type.", formulas.float_power)
maximum = _pairwise("maximum", extremes.max_p, "Elementwise maximum; NaN if either is.", "biufc")
minimum = _pairwise("minimum", extremes.min_p, "Elementwise minimum; NaN if either is.", "biufc")
fmax = binary("fmax", "Elementwise maximum; the other one if one is NaN.", formulas.fmax, np.fmax, "biufc")
fmin = binary("fmin", "Elementwise minimum; the other one if one is NaN.", formulas.fmin, np.fmin, "biufc")
arctan2 = atan2 = _inexact_pair(
    "arctan2", tr.atan2_p.bind, np.arctan2, "Angle of the point (x2, x1), from -pi to pi: arctan(x1 / x2) by quadrant."
)
hypot = _inexact_pair("hypot", pairs.hypot_p.bind, np.hypot, "sqrt(x1**2 + x2**2) without overflow.")
_COMPLEX_TOO = " without overflow.\n\n    Differs from NumPy: takes complex numbers, too."
logaddexp = _inexact_pair("logaddexp", formulas.logaddexp, np.logaddexp, "log(exp(x1) + exp(x2))" + _COMPLEX_TOO)
logaddexp2 = _inexact_pair("logaddexp2", formulas.logaddexp2, np.logaddexp2, "log2(2**x1 + 2**x2)" + _COMPLEX_TOO)
copysign = _inexact_pair("copysign", formulas.copysign, np.copysign, "x1 with the sign of x2.")
nextafter = _inexact_pair("nextafter", rd.nextafter_p.bind, np.nextafter, "The next number from x1 towards x2.")
heaviside = _inexact_pair("heaviside", formulas.heaviside, np.heaviside, "0 if x1 < 0, x2 if x1 == 0, 1 if x1 > 0.")
ldexp = binary("ldexp", "x1 * 2**x2, for integer x2.", formulas.ldexp)
gcd = binary("gcd", "Greatest common divisor of integers, not negative.", formulas.gcd, np.gcd, "iu")
lcm = binary("lcm", "Least common multiple of integers, not negative.", formulas.lcm, np.lcm, "iu")

equal = _comparison("equal", cp.eq_p, "Elementwise x1 == x2.")
not_equal = _comparison("not_equal", cp.ne_p, "Elementwise x1 != x2.")
less = _comparison("less", cp.lt_p, "Elementwise x1 < x2.")
less_equal = _comparison("less_equal", cp.le_p, "Elementwise x1 <= x2.")
greater = _comparison("greater", cp.gt_p, "Elementwise x1 > x2.")
greater_equal = _comparison("greater_equal", cp.ge_p, "Elementwise x1 >= x2.")

bitwise_and = _pairwise("bitwise_and", bw.and_p, "Elementwise x1 & x2 of integers or booleans.", "biu")
bitwise_or = _pairwise("bitwise_or", bw.or_p, "Elementwise x1 | x2 of integers or booleans.", "biu")
bitwise_xor = _pairwise("bitwise_xor", bw.xor_p, "Elementwise x1 ^ x2 of integers or booleans.", "biu")
left_shift = bitwise_left_shift = binary(
    "left_shift", "Elementwise x1 << x2; all bits are lost beyond the width.", formulas.left_shift, np.left_shift, "iu"
)
right_shift = bitwise_right_shift = binary(
    "right_shift", "Elementwise x1 >> x2; signed integers keep their sign.", formulas.right_shift, np.right_shift, "iu"
)
logical_and = _logical("logical_and", bw.and_p, "Whether both are not zero.")
logical_or = _logical("logical_or", bw.or_p, "Whether either is not zero.")
logical_xor = _logical("logical_xor", bw.xor_p, "Whether exactly one is not zero.")
