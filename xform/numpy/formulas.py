"""Elementwise functions for which there is no primitive, as formulas of others.

They get anything that counts as an array. Where a formula would divide 0 by 0 in a branch that isn't chosen, its
argument is replaced there as well, since 0 * NaN would spoil the derivative.

May import: `numpy.promotion`, `xform.lax`, `xform.core`.
"""

from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, get_aval
from xform.core.trace import Primitive
from xform.lax import arithmetic as ar
from xform.lax import bitwise as bw
from xform.lax import comparison as cp
from xform.lax import extremes, pairs
from xform.lax import powers as pw
from xform.lax import rounding as rd
from xform.lax import transcendental as tr
from xform.lax.control_flow import while_loop
from xform.lax.conversion import convert
from xform.lax.general_powers import pow_p
from xform.lax.logaddexp import logaddexp2_p, logaddexp_p
from xform.lax.shapes import full
from xform.lax.special import bessel_i0e
from xform.lax.special.sinc import sinc_p
from xform.numpy.promotion import (
    SCALARS,
    array_of,
    fit,
    inexact_operands,
    is_concrete,
    operand,
    operands,
    pair,
    promote,
    promote_inexact,
    shown,
    to_dtype,
)

# ---- Parts -------------------------------------------------------------------------------------------------


def array(x: Any) -> Array:
    """An operand as array."""
    return x if isinstance(x, Array) else array_of("asarray", x)


def dtype_of(x: Any) -> Any:
    """The dtype of an operand."""
    return x.aval.dtype if isinstance(x, Array) else get_aval(x).dtype


def is_floating(x: Any) -> bool:
    """Whether an operand is real and floating."""
    aval = get_aval(x)
    return aval.inexact and aval.dtype.kind != "c"


def is_inexact(x: Any) -> bool:
    """Whether an operand is floating or complex."""
    return get_aval(x).inexact


def is_complex(x: Any) -> bool:
    """Whether an operand is complex."""
    return dtype_of(x).kind == "c"


def constant(like: Any, value: Any) -> Any:
    """A scalar of the dtype of `like`."""
    return dtype_of(like).type(value)


def choose(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y; of one shape or rank 0, and one dtype."""
    return cp.select_n_p.bind(condition, y, x)


def _false(x: Any) -> Array:
    return full(get_aval(x).shape, False, np.dtype(bool))


def inexact_arrays(name: str, *args: Any) -> list[Array]:
    """Promoted to one floating or complex dtype, of one shape or rank 0."""
    return [array(x) for x in inexact_operands(name, *args)]


def truth(name: str, x: Any) -> Any:
    """Whether x is not zero."""
    (x,) = promote(name, x)
    return x if dtype_of(x) == np.bool_ else cp.ne_p.bind(x, constant(x, 0))


# ---- One argument ------------------------------------------------------------------------------------------


def _log_base(name: str, factor: float) -> Any:
    def function(x: Any) -> Any:
        (x,) = promote_inexact(name, x)
        y = tr.log_p.bind(x)
        if not is_complex(y):
            return ar.div_p.bind(y, constant(y, factor))
        parts = [p.bind(y) for p in (ar.real_p, ar.imag_p)]  # a division of complex numbers makes NaN of infinities
        return ar.complex_p.bind(*(ar.div_p.bind(part, constant(part, factor)) for part in parts))

    return function


log2 = _log_base("log2", np.log(2))
log10 = _log_base("log10", np.log(10))


def scaled(name: str, factor: float) -> Any:
    """The function x * factor."""

    def function(x: Any) -> Any:
        (x,) = real_arrays(name, *promote_inexact(name, x))
        return ar.mul_p.bind(x, constant(x, factor))

    return function


def host_sinc(x: Any) -> Any:
    """`sinc` of an ndarray or NumPy scalar."""
    y = np.pi * x
    return np.where(x == 0, y.dtype.type(1), np.sin(y) / y)[()]


def sinc(x: Any) -> Any:
    """Elementwise sin(pi x) / (pi x), 1 at 0."""
    (x,) = inexact_arrays("sinc", x)
    return sinc_p.bind(x * constant(x, np.pi), order=0)


def positive(x: Any) -> Any:
    """The array itself."""
    x = array(operand("positive", x))
    if x.dtype == bool:
        raise TypeError(f"numpy.positive takes numbers, got {shown(x)}")
    return x


def absolute(x: Any) -> Any:
    """Absolute value; booleans stay."""
    (x,) = promote("absolute", x)
    return array(x) if dtype_of(x) == np.bool_ else ar.abs_p.bind(x)


def fabs(x: Any) -> Any:
    """Absolute value as float."""
    (x,) = promote_inexact("fabs", x)
    if is_complex(x):
        raise TypeError(f"numpy.fabs takes real numbers, got {shown(x)}; use xform.numpy.abs")
    return ar.abs_p.bind(x)


def sign(x: Any) -> Any:
    """Sign; TypeError for booleans."""
    return ar.sign_p.bind(*promote("sign", x))


def square(x: Any) -> Any:
    """x * x; of booleans as int8."""
    (x,) = promote("square", x)
    return convert(x, np.dtype("int8")) if dtype_of(x) == np.bool_ else pw.square_p.bind(x)


def reciprocal(x: Any) -> Any:
    """1 / x."""
    (x,) = promote_inexact("reciprocal", x)
    return ar.div_p.bind(constant(x, 1), x)


def conjugate(x: Any) -> Any:
    """Complex conjugate; real arrays stay, booleans become int8."""
    (x,) = promote("conjugate", x)
    if dtype_of(x) == np.bool_:
        return convert(x, np.dtype("int8"))
    return ar.conj_p.bind(x) if is_complex(x) else array(x)


def real(x: Any) -> Any:
    """Real part."""
    x = array(operand("real", x))
    return ar.real_p.bind(x) if is_complex(x) else x


def imag(x: Any) -> Any:
    """Imaginary part."""
    x = array(operand("imag", x))
    return ar.imag_p.bind(x) if is_complex(x) else full(x.shape, 0, x.dtype)


def round_half_even(x: Any) -> Any:
    """Nearest integer of a floating array."""
    return rd.round_p.bind(x, rounding_method=rd.RoundingMethod.TO_NEAREST_EVEN)


def rint(x: Any) -> Any:
    """Nearest integer."""
    (x,) = promote_inexact("rint", x)
    if is_complex(x):
        return ar.complex_p.bind(rint(ar.real_p.bind(x)), rint(ar.imag_p.bind(x)))
    return round_half_even(x)


def isfinite(x: Any) -> Any:
    """Neither NaN nor infinite."""
    (x,) = promote("isfinite", x)
    if is_complex(x):
        return isfinite(ar.real_p.bind(x)) & isfinite(ar.imag_p.bind(x))
    return rd.is_finite_p.bind(x) if is_floating(x) else full(get_aval(x).shape, True, np.dtype(bool))


def isnan(x: Any) -> Any:
    """NaN is not equal to itself."""
    (x,) = promote("isnan", x)
    return cp.ne_p.bind(x, x) if is_inexact(x) else _false(x)


def isinf(x: Any) -> Any:
    """The absolute value is infinite."""
    (x,) = promote("isinf", x)
    if is_complex(x):
        return isinf(ar.real_p.bind(x)) | isinf(ar.imag_p.bind(x))
    return cp.eq_p.bind(ar.abs_p.bind(x), constant(x, np.inf)) if is_floating(x) else _false(x)


def _is_infinity(name: str, value: float) -> Any:
    def function(x: Any) -> Any:
        (x,) = promote(name, x)
        if is_complex(x):
            raise TypeError(f"numpy.{name} takes real numbers, got {shown(x)}")
        return cp.eq_p.bind(x, constant(x, value)) if is_floating(x) else _false(x)

    return function


isposinf = _is_infinity("isposinf", np.inf)
isneginf = _is_infinity("isneginf", -np.inf)


def bits(x: Any) -> Array:
    """The bits of a floating array as signed integers of the same width."""
    return bw.bitcast_convert_type(x, np.dtype(f"int{8 * dtype_of(x).itemsize}"))


def signbit(x: Any) -> Any:
    """The sign bit."""
    (x,) = promote("signbit", x)
    kind = dtypes.kinds[dtype_of(x)]
    if kind in "ub":
        return _false(x)
    if kind == "c":
        raise TypeError(f"numpy.signbit takes real numbers, got {shown(x)}")
    value = bits(x) if kind == "f" else x
    return cp.lt_p.bind(value, constant(value, 0))


def spacing(x: Any) -> Any:
    """nextafter(x, away from 0) - x, with the sign of x."""
    (x,) = real_arrays("spacing", *promote_inexact("spacing", x))
    after = rd.nextafter_p.bind(x, copysign(constant(x, np.inf), x))
    step = choose(x == 0, after, after - x)  # XLA takes subnormal results of arithmetic for 0
    return choose(isfinite(x), step, constant(x, np.nan))


def i0(x: Any) -> Any:
    """Modified Bessel function of order 0."""
    (x,) = real_arrays("i0", *promote_inexact("i0", x))
    return tr.exp_p.bind(ar.abs_p.bind(x)) * bessel_i0e(x)


def bitwise_count(x: Any) -> Any:
    """Number of one bits of the absolute value."""
    (x,) = promote("bitwise_count", x)
    if dtype_of(x) == np.bool_:
        return convert(x, np.dtype("uint8"))
    if dtypes.kinds[dtype_of(x)] not in "iu":
        raise TypeError(f"numpy.bitwise_count takes integers, got {shown(x)}")
    return convert(bw.population_count_p.bind(ar.abs_p.bind(x)), np.dtype("uint8"))


# ---- Two arguments -----------------------------------------------------------------------------------------


def comparable(name: str, x: Any, y: Any) -> Any:
    """Operands of a comparison: as `pair`, but a Python integer beyond the other's range makes that one wider."""
    try:
        return pair(name, x, y)
    except OverflowError:
        wide = dtypes.default_int()
        x, y = (v if isinstance(v, SCALARS) else to_dtype(name, operand(name, v), wide) for v in (x, y))
        return pair(name, x, y)


def lexicographic(p: Primitive) -> Any:
    """A comparison of complex numbers: by real parts, and where they are equal by imaginary ones."""

    def function(x: Any, y: Any) -> Any:
        real_x, real_y = ar.real_p.bind(x), ar.real_p.bind(y)
        imag = p.bind(ar.imag_p.bind(x), ar.imag_p.bind(y))
        return choose(cp.eq_p.bind(real_x, real_y), imag, p.bind(real_x, real_y))

    return function


def real_arrays(name: str, *args: Any) -> list[Array]:
    """Operands as arrays; TypeError if they are complex."""
    arrays = [array(x) for x in args]
    if any(is_complex(x) for x in arrays):
        raise TypeError(f"numpy.{name} takes real numbers, got {', '.join(map(shown, arrays))}")
    return arrays


def _never_zero(y: Any) -> bool:
    return isinstance(y, SCALARS) and y != 0


def _real_pair(name: str, x: Any, y: Any) -> list[Array]:
    x, y = map(array, pair(name, x, y))
    if is_complex(x):
        raise TypeError(f"numpy.{name} takes real numbers, got {shown(x)} and {shown(y)}")
    if x.dtype == bool:
        x, y = convert(x, np.dtype("int8")), convert(y, np.dtype("int8"))
    return [x, y]


def _integer_divmod(x: Array, y: Array, never_zero: bool) -> tuple[Array, Array]:
    """Floored quotient and remainder; both 0 where y is."""
    quotient, rest = ar.div_p.bind(x, y), ar.rem_p.bind(x, y)
    if dtypes.kinds[x.dtype] == "i":
        off = (rest != 0) & ((rest < 0) != (y < 0))
        quotient = quotient - convert(off, x.dtype)
        rest = choose(off, rest + y, rest)
    if not never_zero:
        zero = y == 0
        quotient, rest = choose(zero, constant(x, 0), quotient), choose(zero, constant(x, 0), rest)
    return quotient, rest


def floor_divide(x: Any, y: Any) -> Any:
    """Floor of the quotient."""
    never_zero = _never_zero(y)
    x, y = _real_pair("floor_divide", x, y)
    if not is_floating(x):
        return _integer_divmod(x, y, never_zero)[0]
    return pairs.floor_divide_p.bind(x, y)


def remainder(x: Any, y: Any) -> Any:
    """Remainder with the sign of y."""
    never_zero = _never_zero(y)
    x, y = _real_pair("remainder", x, y)
    return pairs.remainder_p.bind(x, y) if is_floating(x) else _integer_divmod(x, y, never_zero)[1]


def fmod(x: Any, y: Any) -> Any:
    """Remainder with the sign of x."""
    never_zero = _never_zero(y)
    x, y = _real_pair("fmod", x, y)
    rest = ar.rem_p.bind(x, y)
    return rest if never_zero or is_floating(x) else choose(y == 0, constant(x, 0), rest)


def power(x: Any, y: Any) -> Any:
    """Elementwise x1**x2.

    Differs from NumPy: a traced negative exponent of integers can't be an error.

    A Python integer as exponent is done by multiplication. Integers have no negative powers: ValueError, if the
    exponent is known; a traced one gives 0 (or 1, -1 for these bases).

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.power(xnp.array([1.0, 2.0, 3.0]), -1).tolist()
    [1.0, 0.5, 0.3333333333333333]
    """
    if isinstance(y, int | np.integer) and not isinstance(y, bool) and not isinstance(x, SCALARS):
        kind = dtypes.kinds[dtype_of(operand("power", x, "x1"))]
        if kind in "fc" or (kind in "iu" and type(y) is int and y >= 0):
            return pw.integer_pow_p.bind(x, y=int(y))
    x, y = pair("power", x, y)
    if is_inexact(x):
        return pow_p.bind(x, y)
    if dtype_of(x) == np.bool_:
        x, y = convert(x, np.dtype("int8")), convert(y, np.dtype("int8"))
    if is_concrete(y) and np.any(np.asarray(y) < 0):
        raise ValueError(
            f"numpy.power: integers to negative integer powers are not allowed, got {shown(x)} ** {shown(y)}"
        )
    return _integer_power(array(x), array(y))


def _integer_power(x: Array, y: Array) -> Array:
    """By repeated squaring; 1 / x**-y truncated where y is negative."""
    x, y = operands("power", x, y)
    shape = x.shape or y.shape
    one = full(shape, 1, x.dtype)

    def step(carry: Any) -> Any:
        out, base, exponent = carry
        odd = (exponent & 1) != 0
        return choose(odd, out * base, out), base * base, exponent >> 1

    sizes = ar.abs_p.bind(y)
    start = one, one * x, full(shape, 0, x.dtype) + sizes
    out, _, _ = while_loop(lambda carry: (carry[2] > 0).any(), step, start)
    unit = choose(ar.abs_p.bind(out) == 1, out, constant(out, 0))
    return choose(y < 0, unit, out) if dtypes.kinds[x.dtype] == "i" else out


def float_power(x: Any, y: Any) -> Any:
    """x ** y in the default float or complex type."""
    x, y = inexact_operands("float_power", x, y)
    wide = dtypes.default_complex() if is_complex(x) else dtypes.default_float()
    return pow_p.bind(*(to_dtype("float_power", v, np.promote_types(wide, dtype_of(v))) for v in (x, y)))


def _ignoring_nan(name: str, p: Primitive, of_integers: Primitive) -> Any:
    def function(x: Any, y: Any) -> Any:
        x, y = pair(name, x, y)
        return (p if is_inexact(x) else of_integers).bind(x, y)

    return function


fmax = _ignoring_nan("fmax", pairs.fmax_p, extremes.max_p)
fmin = _ignoring_nan("fmin", pairs.fmin_p, extremes.min_p)


def _logaddexp(p: Primitive, exp: Any, log1p: Any, doc: str) -> Any:
    def function(x: Any, y: Any) -> Any:
        x, y = array(x), array(y)
        if not is_complex(x):
            return p.bind(x, y)
        swap = ar.real_p.bind(x) > ar.real_p.bind(y)
        large, small = choose(swap, x, y), choose(swap, y, x)
        delta = small - large
        # Equal infinities and NaN, whose difference is NaN; the mean, as equal ones share the derivative.
        return choose(isnan(delta), (x + y) / 2, large + log1p(exp(delta)))

    function.__doc__ = doc
    return function


logaddexp = _logaddexp(
    logaddexp_p, tr.exp_p.bind, tr.log1p_p.bind, "Elementwise log(exp(x1) + exp(x2)) without overflow."
)
logaddexp2 = _logaddexp(
    logaddexp2_p,
    tr.exp2_p.bind,
    lambda v: tr.log1p_p.bind(v) / constant(v, np.log(2)),
    "Elementwise log2(2**x1 + 2**x2) without overflow.",
)


def copysign(x: Any, y: Any) -> Any:
    """x with the sign of y."""
    x, y = real_arrays("copysign", x, y)
    return choose(signbit(x) != signbit(y), -x, x)


def heaviside(x: Any, y: Any) -> Any:
    """Step function with value y at 0."""
    x, y = real_arrays("heaviside", x, y)
    one, zero = constant(x, 1), constant(x, 0)
    step = choose(x > 0, one, choose(x < 0, zero, x))  # NaN stays
    return choose(x == 0, y, step)


def ldexp(x: Any, y: Any) -> Any:
    """x * 2**y."""
    (x,), (y,) = promote_inexact("ldexp", x), promote("ldexp", y)
    if dtypes.kinds[dtype_of(y)] not in "iub" or is_complex(x):
        raise TypeError(f"numpy.ldexp takes real numbers and integers, got {shown(x)} and {shown(y)}")
    x, y = map(array, fit("ldexp", [x, y]))
    if x.dtype.itemsize < 4:
        return convert(ldexp(convert(x, np.dtype("float32")), y), x.dtype)
    # In three factors, each a power of two that is a normal number.
    info = dtypes.finfo(x.dtype)
    limit = int(info.maxexp) - 2
    if y.dtype.itemsize > 4:
        y = extremes.min_p.bind(y, constant(y, 3 * limit))
        y = y if y.dtype.kind == "u" else extremes.max_p.bind(y, constant(y, -3 * limit))
    y = convert(y, np.dtype("int32"))
    for _ in range(3):
        part = extremes.max_p.bind(extremes.min_p.bind(y, constant(y, limit)), constant(y, -limit))
        x = x * _power_of_two(part, x.dtype)
        y = y - part
    return x


def _power_of_two(exponent: Array, dtype: np.dtype) -> Array:
    """2**exponent, for exponents of normal numbers."""
    info = dtypes.finfo(dtype)
    integer = np.dtype(f"int{8 * dtype.itemsize}")
    biased = convert(exponent, integer) + int(info.maxexp - 1)
    return bw.bitcast_convert_type(biased << int(info.nmant), dtype)


def frexp(x: Any) -> tuple[Array, Array]:
    """Mantissa, of absolute value in [0.5, 1), and exponent of 2."""
    (x,) = inexact_arrays("frexp", x)
    if is_complex(x):
        raise TypeError(f"numpy.frexp takes real numbers, got {shown(x)}")
    dtype = x.dtype
    if dtype.itemsize < 4:
        x = convert(x, np.dtype("float32"))
    info = dtypes.finfo(x.dtype)
    plain = (x == 0) | ~isfinite(x)
    lift = int(info.nmant) + 2
    subnormal = ar.abs_p.bind(x) < constant(x, info.tiny)
    scaled_x = choose(subnormal, x * constant(x, 2.0**lift), x)
    raw = bits(scaled_x)
    field = (1 << int(info.bits - 1 - info.nmant)) - 1
    exponent = ((raw >> int(info.nmant)) & field) - int(info.maxexp - 2)
    mantissa = scaled_x * _power_of_two(choose(plain, constant(raw, 0), -exponent), x.dtype)
    exponent = choose(subnormal, exponent - lift, exponent)
    exponent = convert(choose(plain, constant(exponent, 0), exponent), np.dtype("int32"))
    return convert(choose(plain, x, mantissa), dtype), exponent


def _integers(name: str, x: Any, y: Any) -> list[Array]:
    x, y = map(array, pair(name, x, y))
    if dtypes.kinds[x.dtype] not in "iu":
        raise TypeError(f"numpy.{name} takes integers, got {shown(x)} and {shown(y)}")
    return [x, y]


def gcd(x: Any, y: Any) -> Any:
    """Greatest common divisor, by Euclid's algorithm."""
    x, y = _integers("gcd", x, y)
    zero = full(x.shape or y.shape, 0, x.dtype)

    def step(carry: Any) -> Any:
        a, b = carry
        done = b == 0
        return choose(done, a, b), choose(done, b, ar.rem_p.bind(a, choose(done, constant(b, 1), b)))

    start = zero + ar.abs_p.bind(x), zero + ar.abs_p.bind(y)
    return while_loop(lambda carry: (carry[1] != 0).any(), step, start)[0]


def lcm(x: Any, y: Any) -> Any:
    """Least common multiple."""
    x, y = _integers("lcm", x, y)
    divisor = gcd(x, y)
    safe = choose(divisor == 0, constant(divisor, 1), divisor)
    return ar.abs_p.bind(ar.div_p.bind(x, safe) * y)


def left_shift(x: Any, y: Any) -> Any:
    """x << y."""
    return bw.shift_left_p.bind(*_bits_pair("left_shift", x, y))


def right_shift(x: Any, y: Any) -> Any:
    """x >> y."""
    x, y = _bits_pair("right_shift", x, y)
    shift = bw.shift_right_logical_p if dtypes.kinds[x.dtype] == "u" else bw.shift_right_arithmetic_p
    return shift.bind(x, y)


def _bits_pair(name: str, x: Any, y: Any) -> list[Array]:
    x, y = map(array, pair(name, x, y))
    if x.dtype == bool:
        x, y = convert(x, np.dtype("int8")), convert(y, np.dtype("int8"))
    if dtypes.kinds[x.dtype] not in "iu":
        raise TypeError(f"numpy.{name} takes integers, got {shown(x)} and {shown(y)}")
    return [x, y]
