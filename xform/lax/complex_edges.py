"""Complex functions at zeros, infinities and NaN, where XLA's formulas lose what is known.

A function takes ``(z, w)``, the operand and what the formula makes of it, and returns w with these values of the C
standard (annex G) and the array API standard. For signs of zeros, f(conj z) = conj f(z) holds for all of them.

May import: `lax.families`, `lax.arithmetic`, `lax.bitwise`, `lax.comparison`, `lax.rounding`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from xform.interpreters.lowering import Context, Value, lower_as
from xform.lax.arithmetic import abs, complex, imag, neg, real
from xform.lax.bitwise import bitwise_and, bitwise_or
from xform.lax.comparison import eq, gt, lt, ne, select
from xform.lax.families import constant
from xform.lax.rounding import is_finite

_INF, _NAN = float("inf"), float("nan")


def mended(rule: str | Callable[..., Value], mend: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    """A lowering rule, or operation, with the result that `mend` makes of its operand and result."""
    finish = lower_as(mend)

    def lower(ctx: Context, z: Value) -> Value:
        return finish(ctx, z, ctx.op(rule, [z], ctx.out) if isinstance(rule, str) else rule(ctx, z))

    return lower


def turned(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """-j f(jz): the circular function of a hyperbolic one."""

    def circular(z: Any) -> Any:
        w = function(complex(neg(imag(z)), real(z)))
        return complex(imag(w), neg(real(w)))

    return circular


def _parts(z: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    return real(z), imag(z), real(w), imag(w)


def _is_nan(x: Any) -> Any:
    return ne(x, x)


def _is_infinite(x: Any) -> Any:
    return eq(abs(x), _INF)


def _no_direction(x: Any, y: Any) -> Any:
    """Where x is infinite, and of the angle y nothing is known."""
    return bitwise_and(_is_infinite(x), eq(is_finite(y), False))


def _zero_with_sign(y: Any) -> Any:
    return select(lt(y, 0.0), constant(y, -0.0), 0.0)


def exp(z: Any, w: Any) -> Any:
    x, y, re, im = _parts(z, w)
    lost, grows = _no_direction(x, y), gt(x, 0.0)
    re = select(lost, select(grows, x, 0.0), re)
    return complex(re, select(eq(y, 0.0), y, select(lost, select(grows, constant(x, _NAN), _zero_with_sign(y)), im)))


def expm1(z: Any, w: Any) -> Any:
    x, y, re, im = _parts(z, w)
    lost, grows = _no_direction(x, y), gt(x, 0.0)
    re = select(lost, select(grows, x, -1.0), select(eq(re, 0.0), 0.0, re))
    return complex(re, select(eq(y, 0.0), y, select(lost, select(grows, constant(x, _NAN), _zero_with_sign(y)), im)))


def sinh(z: Any, w: Any) -> Any:
    x, y, re, im = _parts(z, w)
    nothing = bitwise_and(eq(x, 0.0), eq(is_finite(y), False))
    return complex(select(bitwise_or(nothing, _no_direction(x, y)), x, re), select(eq(y, 0.0), y, im))


def cosh(z: Any, w: Any) -> Any:
    x, y, re, im = _parts(z, w)
    zero = select(eq(y, 0.0), select(lt(x, 0.0), neg(y), y), x)
    vanishes = bitwise_and(_is_nan(im), bitwise_or(eq(x, 0.0), eq(y, 0.0)))
    return complex(select(_no_direction(x, y), _INF, re), select(vanishes, zero, im))


def tanh(z: Any, w: Any) -> Any:
    x, y, re, im = _parts(z, w)
    far = select(_is_infinite(x), _zero_with_sign(y), im)
    return complex(select(eq(x, 0.0), x, re), select(eq(y, 0.0), y, far))


def acos(z: Any, w: Any) -> Any:
    x, y, re, im = _parts(z, w)
    return complex(select(bitwise_and(eq(x, 0.0), _is_nan(y)), np.pi / 2, re), im)


def acosh(z: Any, w: Any) -> Any:
    x, y, re, im = _parts(z, w)
    return complex(re, select(bitwise_and(eq(x, 0.0), _is_nan(y)), np.pi / 2, im))


def asinh(z: Any, w: Any) -> Any:
    _, y, re, im = _parts(z, w)
    return complex(re, select(eq(y, 0.0), y, im))


def atanh(z: Any, w: Any) -> Any:
    x, y, re, im = _parts(z, w)
    unknown = bitwise_or(_is_nan(y), bitwise_and(_is_nan(x), is_finite(y)))
    return complex(select(eq(x, 0.0), x, re), select(unknown, _NAN, im))


def sqrt(z: Any, w: Any) -> Any:
    x, y, re, im = _parts(z, w)
    upright, level = _is_infinite(y), bitwise_and(_is_infinite(x), _is_nan(y))
    re = select(upright, _INF, select(level, select(gt(x, 0.0), x, _NAN), re))
    return complex(re, select(upright, y, select(level, select(gt(x, 0.0), constant(x, _NAN), _INF), im)))
