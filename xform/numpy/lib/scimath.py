"""`xform.numpy.emath`: functions whose results are complex where a real one doesn't exist.

Whether they are depends on values, so real arguments must be known; what is traced has to be complex already.

>>> import xform.numpy as xnp
>>> xnp.emath.sqrt([-1.0, 4.0]).tolist(), xnp.emath.sqrt(4.0).item()
([1j, (2+0j)], 2.0)

May import: the other modules of `xform.numpy`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.arithmetic import complex_dtype
from xform.lax.conversion import convert
from xform.numpy import ufuncs
from xform.numpy.promotion import array_of, concrete

__all__ = ["arccos", "arcsin", "arctanh", "log", "log2", "log10", "logn", "power", "sqrt"]


def _negative(x: Any) -> Any:
    return x < 0


def _beyond_one(x: Any) -> Any:
    return np.abs(x) > 1


def _known(name: str, x: Any, arg: str) -> tuple[Array, Any]:
    """An argument as an array, and its values unless it is complex."""
    x = array_of(name, x, arg)
    if x.dtype.kind == "c":
        return x, None
    return x, concrete(name, x, arg, "Its values decide whether the result is complex: convert it to complex before.")


def _widened(name: str, x: Any, arg: str, outside: Callable[[Any], Any]) -> Array:
    """An argument, complex if any value is outside of the real function's domain."""
    x, values = _known(name, x, arg)
    if values is None or not np.any(outside(values)):
        return x
    return convert(x, complex_dtype(np.promote_types(dtypes.to_inexact_dtype(x.dtype), np.float32)))


def _function(function: Any, outside: Callable[[Any], Any], where: str) -> Any:
    name = f"emath.{function.__name__}"

    def widened(x: Any) -> Array:
        return function(_widened(name, x, "x", outside))

    widened.__name__ = widened.__qualname__ = function.__name__
    widened.__doc__ = f"`xform.numpy.{function.__name__}`, with complex results if any x is {where}."
    return api_boundary(widened)


sqrt = _function(ufuncs.sqrt, _negative, "negative")
log = _function(ufuncs.log, _negative, "negative")
log2 = _function(ufuncs.log2, _negative, "negative")
log10 = _function(ufuncs.log10, _negative, "negative")
arccos = _function(ufuncs.arccos, _beyond_one, "beyond 1 or -1")
arcsin = _function(ufuncs.arcsin, _beyond_one, "beyond 1 or -1")
arctanh = _function(ufuncs.arctanh, _beyond_one, "beyond 1 or -1")


@api_boundary
def logn(n: Any, x: Any) -> Array:
    """Logarithms of `x` to the base `n`, complex if any of either is negative."""
    x, n = _widened("emath.logn", x, "x", _negative), _widened("emath.logn", n, "n", _negative)
    return ufuncs.log(x) / ufuncs.log(n)


@api_boundary
def power(x: Any, p: Any) -> Array:
    """``x ** p``, complex if any x is negative; of integers with a negative exponent, floating."""
    p, exponents = _known("emath.power", p, "p")
    if exponents is not None and np.any(exponents < 0):
        p = convert(p, dtypes.to_inexact_dtype(p.dtype))
    return ufuncs.power(_widened("emath.power", x, "x", _negative), p)
