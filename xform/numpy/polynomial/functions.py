"""The functions of a family under their names: `chebval`, `legval` ... are `series.val` of a basis.

May import: `numpy.polynomial.series`, `numpy.polynomial.bases`, `xform.numpy`.
"""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

from xform.core.array import Array, own
from xform.core.errors import api_boundary
from xform.numpy.creation import array
from xform.numpy.polynomial import series
from xform.numpy.polynomial.bases import POWER, Basis

_NAMES = [
    "line", "add", "sub", "mulx", "mul", "div", "pow", "val", "val2d", "val3d", "valnd", "grid2d", "grid3d", "vander",
    "vander2d", "vander3d", "der", "fromroots", "companion", "roots", "fit", "trim",
]  # fmt: skip


def _to_power(basis: Basis, name: str, c: Any) -> Array:
    """The series in powers of x with the same values."""
    return series.converted(series.vectors(name, c)[0], basis, POWER)


def _from_power(basis: Basis, name: str, pol: Any) -> Array:
    """The series of this family with the values of one in powers of x."""
    return series.converted(series.vectors(name, pol)[0], POWER, basis)


def _gauss(basis: Basis, name: str, deg: int) -> tuple[Array, Array]:
    """The nodes and the weights of the Gauss quadrature that is exact for polynomials up to degree 2 deg - 1."""
    theirs = importlib.import_module(f"numpy.{name.rpartition('.')[0]}")
    x, w = getattr(theirs, f"{basis.prefix}gauss")(series.degree(name, deg, least=1))
    return own(x), own(w)


def bound(function: Callable[..., Any], basis: Basis, module: str, name: str) -> Any:
    """A function of `basis` and of its own full name, which errors show, with both filled in."""
    signature = inspect.signature(function)
    full = f"polynomial.{module}.{name}"

    def named(*args: Any, **kwargs: Any) -> Any:
        return function(basis, full, *args, **kwargs)

    named.__name__ = named.__qualname__ = name
    named.__module__ = f"xform.numpy.polynomial.{module}"
    named.__doc__ = f"{function.__doc__}\n    p[n] is {basis.symbol}n.\n"
    parameters = list(signature.parameters.values())[2:]
    named.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return api_boundary(named)


def define(basis: Basis, module: str) -> dict[str, Any]:
    """All functions and constants of a family by name."""
    prefix = basis.prefix
    functions = {prefix + name: getattr(series, name) for name in _NAMES} | {f"{prefix}int": series.int_}
    if basis is not POWER:
        functions |= {f"{prefix}2poly": _to_power, f"poly2{prefix}": _from_power}
        functions |= {f"{prefix}gauss": _gauss, f"{prefix}weight": series.weight}
    (a,), (b,), _ = basis.recurrence(1)
    constants = {
        f"{prefix}domain": array(basis.domain), f"{prefix}zero": array([0]), f"{prefix}one": array([1]),
        f"{prefix}x": array([int(v) if v == int(v) else float(v) for v in [b, a]]),
    }  # fmt: skip
    return {name: bound(f, basis, module, name) for name, f in functions.items()} | constants
