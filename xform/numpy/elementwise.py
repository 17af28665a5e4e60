"""Elementwise functions with arguments of other kinds: choosing, clipping, rounding, comparing, taking apart.

May import: `numpy.fast`, `numpy.formulas`, `numpy.promotion`, `numpy.ufuncs`, `numpy.reductions`, `xform.lax`.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary, leave
from xform.lax.arithmetic import rem_p, sign_p
from xform.lax.comparison import select_n_p
from xform.lax.conversion import convert
from xform.lax.rounding import is_finite_p, trunc_p
from xform.lax.shapes import full as lax_full
from xform.lax.transcendental import atan2_p
from xform.numpy import formulas, host_forms, keys, reductions, ufuncs
from xform.numpy.fast import INEXACT, INTEGERS, REAL, REFUSALS, lend, same, several, short_way, with_keywords
from xform.numpy.promotion import (
    array_of,
    broadcast_shapes_of,
    concrete,
    fit,
    no_out,
    operand,
    pair,
    promote,
    promote_inexact,
    shown,
)

# ---- Choosing ----------------------------------------------------------------------------------------------


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Elements of x where the condition holds, of y elsewhere; with the condition alone, `nonzero`.

    All three are broadcast. Derivatives flow through the chosen elements only: what isn't chosen contributes exactly
    zero, also where its derivative is infinite or NaN.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> x = xnp.array([-4.0, 4.0])
    >>> xnp.where(x > 0, x, 0.0).tolist()
    [0.0, 4.0]
    """
    if (
        state.fast
        and size is fill_value is None
        and (type(mask := condition) is ArrayImpl or type(mask := lend(condition)) is ArrayImpl)
        and (type(first := x) is ArrayImpl or type(first := lend(x)) is ArrayImpl)
    ):
        m, a = mask._host, first._host
        if m is not None and a is not None and m.dtype.kind == "b" and not first._weak:
            t = type(y)
            if t is ArrayImpl:
                b = y._host
                ready = b is not None and b.dtype is a.dtype and not y._weak
            else:
                b = y
                ready = a.dtype.kind in (_SCALAR_FITS.get(t, ())) or (t is np.ndarray and b.dtype is a.dtype)
            if ready:
                try:
                    return ArrayImpl(np.where(m, a, b))
                except REFUSALS:
                    pass
    try:
        return _where(condition, x, y, size, fill_value)
    except Exception as error:
        if not keys.among(condition, x, y):
            leave(error, where)
            raise
    return keys.mapped(where, condition, x, y, size=size, fill_value=fill_value)


_SCALAR_FITS = {float: "fc", int: "iufc"}


def _where(condition: Any, x: Any, y: Any, size: Any, fill_value: Any) -> Any:
    if x is None and y is None:
        from xform.numpy.searching import nonzero

        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("numpy.where: either both or neither of x and y should be given")
    if size is not None or fill_value is not None:
        raise ValueError("numpy.where: size and fill_value are for the form with the condition alone")
    if not (isinstance(condition, Array) and condition.aval.dtype.kind == "b"):
        condition = formulas.truth("where", operand("where", condition, "condition"))
    x, y = pair("where", x, y)
    condition, x, y = fit("where", (condition, x, y))
    return select_n_p.bind(condition, y, x)


@short_way(host_forms.select, several("?"), several(INTEGERS + INEXACT), plain="default")
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Array:
    """Elements of the choice that belongs to the first condition that holds, else the default.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> x = xnp.arange(5)
    >>> xnp.select([x < 2, x > 3], [x, x * 10], -1).tolist()
    [0, 1, -1, -1, 40]
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"numpy.select: list of cases must be same length as list of conditions, got {len(condlist)} conditions "
            f"and {len(choicelist)} cases"
        )
    if not len(condlist):
        raise ValueError("numpy.select: select with an empty condition list is not possible")
    out, *choices = promote("select", default, *choicelist)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        if formulas.dtype_of(operand("select", condition, "condlist")) != np.bool_:
            raise TypeError(f"numpy.select: conditions must be boolean, got {shown(condition)}")
        out = where(condition, choice, out)
    return out


@api_boundary
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Functions or values by conditions; those of the last condition that holds count.

    Differs from NumPy: each function is applied to the whole of `x`, not to the part where its condition holds.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> x = xnp.array([-2.0, 0.0, 3.0])
    >>> xnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v]).tolist()
    [2.0, 0.0, 9.0]
    """
    x = array_of("piecewise", x, "x")
    conditions = (
        [condlist] if getattr(condlist, "dtype", None) == np.bool_ and condlist.shape == x.shape else list(condlist)
    )
    functions = list(funclist)
    if len(functions) == len(conditions):
        functions.insert(0, 0)
    elif len(functions) == len(conditions) + 1:
        functions.insert(0, functions.pop())  # what is for the rest
    else:
        raise ValueError(
            f"numpy.piecewise: with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} "
            f"functions are expected, got {len(functions)}"
        )
    values = [f(x, *args, **kw) if callable(f) else f for f in functions]
    out = convert(array_of("piecewise", values[0]), x.dtype)
    for condition, value in zip(conditions, values[1:], strict=True):
        out = where(condition, convert(array_of("piecewise", value), x.dtype), out)
    return out


@short_way(lambda x, min=None, max=None: x.clip(min, max), "fd", plain="min max")
def clip(
    x: Any = None, /, min: Any = None, max: Any = None, out: None = None,
    *, a: Any = None, a_min: Any = None, a_max: Any = None,
) -> Array:  # fmt: skip
    """Elements below `min` become `min`, those above `max` become `max`; None: no bound.

    If min > max, the result is `max`. `a`, `a_min` and `a_max` are NumPy's older names.
    """
    no_out("clip", out)
    x = operand("clip", a if x is None else x)
    low, high = a_min if min is None else min, a_max if max is None else max
    if low is not None:
        x = ufuncs.maximum(low, x)
    if high is not None:
        x = ufuncs.minimum(high, x)
    return formulas.array(x)


@short_way(host_forms.nan_to_num, "fd", plain="copy nan posinf neginf")
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """NaN becomes `nan`, infinities the largest and smallest finite numbers, or what is given."""
    x = array_of("nan_to_num", x, "x")
    if x.dtype.kind == "c":
        from xform.lax.arithmetic import complex_p

        real, imag = (nan_to_num(part, copy, nan, posinf, neginf) for part in (x.real, x.imag))
        return complex_p.bind(real, imag)
    if not formulas.is_floating(x):
        return x
    info = dtypes.finfo(x.dtype)
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    out = where(ufuncs.isnan(x), _same(x, nan), x)
    out = where(ufuncs.isposinf(x), _same(x, high), out)
    return where(ufuncs.isneginf(x), _same(x, low), out)


def _same(x: Array, value: Any) -> Array:
    return convert(array_of("nan_to_num", value), x.dtype)


@api_boundary
def real_if_close(a: Any, tol: float = 100) -> Array:
    """The real parts, if all imaginary ones are below `tol` (counted in epsilons if it is above 1).

    That depends on values, so a complex array must be known.
    """
    a = array_of("real_if_close", a)
    if a.dtype.kind != "c":
        return a
    values = concrete("real_if_close", a, "a", "Its values decide whether the result is complex: use real.")
    limit = tol * dtypes.finfo(a.dtype).eps if tol > 1 else tol
    return a.real if np.all(np.abs(values.imag) < limit) else a


# ---- Rounding, and parts of numbers ------------------------------------------------------------------------


@short_way(lambda a, decimals=0: a.round(decimals), "fd", plain="decimals")
def round(a: Any, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals (negative: tens, hundreds ...); halves go to the even neighbour."""
    no_out("round", out)
    try:
        decimals = operator.index(decimals)
    except TypeError:
        raise TypeError(f"numpy.round: decimals must be an integer, got {decimals!r}") from None
    a = array_of("round", a)
    kind = dtypes.kinds[a.dtype]
    if kind == "c":
        from xform.lax.arithmetic import complex_p

        return complex_p.bind(round(a.real, decimals), round(a.imag, decimals))
    if kind != "f":
        if decimals >= 0:
            return a
        factor = 10**-decimals
        return convert(ufuncs.rint(a / factor) * factor, a.dtype) if kind != "b" else a
    if decimals == 0:
        return formulas.round_half_even(a)
    dtype = a.dtype
    if dtype.itemsize < 4:
        a = convert(a, np.dtype("float32"))
    factor = 10.0 ** abs(decimals)
    rounded = ufuncs.rint(a * factor) / factor if decimals > 0 else ufuncs.rint(a / factor) * factor
    return convert(rounded, dtype)


around = round


@short_way(np.divmod, "fd", same("fd"))
def divmod(x1: Any, x2: Any, /, out: None = None, **keywords: Any) -> tuple[Array, Array]:
    """Floored quotient and remainder."""
    if keywords or out is not None:
        return with_keywords(divmod, "divmod", out, keywords, x1, x2)
    return ufuncs.floor_divide(x1, x2), ufuncs.remainder(x1, x2)


@short_way(np.modf, "fd")
def modf(x: Any, /, out: None = None, **keywords: Any) -> tuple[Array, Array]:
    """Fractional and integer parts, both with the sign of x."""
    if keywords or out is not None:
        return with_keywords(modf, "modf", out, keywords, x)
    (x,) = formulas.inexact_arrays("modf", x)
    if x.dtype.kind == "c":
        raise TypeError(f"numpy.modf takes real numbers, got {shown(x)}")
    one = x.dtype.type(1)
    # The remainder has the sign of x; of infinities it is that of their sign, 0.
    return rem_p.bind(select_n_p.bind(is_finite_p.bind(x), sign_p.bind(x), x), one), trunc_p.bind(x)


@api_boundary
def frexp(x: Any, /, out: None = None, **keywords: Any) -> tuple[Array, Array]:
    """Mantissa, of absolute value in [0.5, 1), and exponent (int32): ``x = mantissa * 2**exponent``."""
    if keywords or out is not None:
        return with_keywords(frexp, "frexp", out, keywords, x)
    return formulas.frexp(x)


@short_way(np.angle, INEXACT, plain="deg")
def angle(z: Any, deg: bool = False) -> Array:
    """Angle of complex numbers in the plane, from -pi to pi, or in degrees."""
    z = array_of("angle", z, "z")
    (z,) = promote_inexact("angle", z)
    imag = z.imag if z.dtype.kind == "c" else lax_full(z.shape, 0, z.dtype)
    out = atan2_p.bind(imag, z.real)
    return ufuncs.rad2deg(out) if deg else out


# ---- Questions ---------------------------------------------------------------------------------------------


@short_way(host_forms.isclose, INEXACT, same(INEXACT), plain="rtol atol equal_nan")
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether ``abs(a - b) <= atol + rtol * abs(b)``, element by element; equal infinities are close."""
    a, b = map(formulas.array, pair("isclose", a, b))
    if not formulas.is_inexact(a):
        a, b = promote_inexact("isclose", a, b)
    a, b = fit("isclose", [a, b])
    close = ufuncs.absolute(a - b) <= atol + rtol * ufuncs.absolute(b)
    out = where(ufuncs.isfinite(a) & ufuncs.isfinite(b), close, a == b)
    return out | (ufuncs.isnan(a) & ufuncs.isnan(b)) if equal_nan else out


@short_way(host_forms.allclose, INEXACT, same(INEXACT), plain="rtol atol equal_nan")
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Whether all elements are close, as `isclose` says."""
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


@short_way(np.array_equal, REAL, same(REAL), plain="equal_nan")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Array:
    """Whether shapes and all elements are equal."""
    a1, a2 = array_of("array_equal", a1, "a1"), array_of("array_equal", a2, "a2")
    if a1.shape != a2.shape:
        return ArrayImpl(np.bool_(False))
    equal = a1 == a2
    if equal_nan:
        equal = equal | (ufuncs.isnan(a1) & ufuncs.isnan(a2))
    return reductions.all(equal)


@api_boundary
def array_equiv(a1: Any, a2: Any) -> Array:
    """Whether all elements are equal after broadcasting."""
    a1, a2 = array_of("array_equiv", a1, "a1"), array_of("array_equiv", a2, "a2")
    try:
        broadcast_shapes_of("array_equiv", [a1.shape, a2.shape])
    except ValueError:
        return ArrayImpl(np.bool_(False))
    return reductions.all(a1 == a2)


@api_boundary
def iscomplex(x: Any) -> Array:
    """Whether the imaginary part isn't zero."""
    x = array_of("iscomplex", x, "x")
    return x.imag != 0 if x.dtype.kind == "c" else lax_full(x.shape, False, np.dtype(bool))


@api_boundary
def isreal(x: Any) -> Array:
    """Whether the imaginary part is zero."""
    return ~iscomplex(x)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return x is not None and formulas.is_complex(operand("iscomplexobj", x, "x"))


def isrealobj(x: Any) -> bool:
    """Whether the dtype isn't complex."""
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether it is a number.

    Differs from NumPy: an array of rank 0 is a scalar.
    """
    if isinstance(element, Array | np.ndarray):
        return element.ndim == 0
    return bool(np.isscalar(element)) or (hasattr(element, "__jax_array__") and element.__jax_array__().ndim == 0)


def iterable(y: Any) -> bool:
    """Whether one can iterate over it."""
    try:
        iter(y)
    except TypeError:
        return False
    return True
