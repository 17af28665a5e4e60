"""Reductions that skip NaN.

They replace NaN by what changes nothing before they reduce, so that it does not spoil the derivative either.

May import: `numpy.promotion`, `numpy.ufuncs`, `numpy.reductions`, `xform.lax`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax import reductions as rd
from xform.lax.comparison import select_n_p
from xform.numpy import ufuncs
from xform.numpy.fast import INEXACT, REAL, WIDE, short_way
from xform.numpy.promotion import array_of, axis_or_none, is_concrete, shown
from xform.numpy.reductions import (
    any,
    argmax,
    argmin,
    cumprod,
    cumsum,
    host_mean,
    host_variance,
    mask_of,
    max,
    mean,
    min,
    prod,
    sum,
    variance,
)  # fmt: skip


def _valid(name: str, a: Any, where: Any = None) -> tuple[Array, Any]:
    """The array, and where it is to be counted: not NaN, and in `where`."""
    a = array_of(name, a)
    valid = ~ufuncs.isnan(a)
    return a, valid if where is None else valid & mask_of(name, where, a)


# If the plain reduction has no NaN, there was none to be skipped.


def _host_of(ufunc: Any) -> Callable[..., Any]:
    return lambda a, axis=None, keepdims=False: ufunc.reduce(a, axis, None, None, keepdims)


def _replacing(name: str, reduction: Callable[..., Array], replacement: int, doc: str) -> Callable[..., Array]:
    @short_way(_host_of(np.add if replacement == 0 else np.multiply), WIDE, plain="axis keepdims", unless_nan=True)
    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        a, _ = _valid(name, a)
        filled = select_n_p.bind(ufuncs.isnan(a), a, a.dtype.type(replacement))
        return reduction(filled, axis, dtype, out, keepdims, initial, where)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


nansum = _replacing("nansum", sum, 0, "`sum` that takes NaN as 0.")
nanprod = _replacing("nanprod", prod, 1, "`prod` that takes NaN as 1.")


def _extreme_without_nan(name: str, reduction: Callable[..., Array], identity: Any, doc: str) -> Callable[..., Array]:
    @short_way(_host_of(np.fmax if reduction is max else np.fmin), REAL, plain="axis keepdims", unless_nan=True)
    def function(
        a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Array:
        a, valid = _valid(name, a)
        if not dtypes.issubdtype(a.dtype, np.inexact):
            return reduction(a, axis, out, keepdims, initial, where)
        filled = select_n_p.bind(valid, a.dtype.type(identity(a.dtype)), a)
        result = reduction(filled, axis, out, keepdims, initial, where)
        if initial is not None:
            return result
        return select_n_p.bind(any(valid, axis, keepdims=keepdims), result.dtype.type(np.nan), result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


nanmax = _extreme_without_nan(
    "nanmax", max, rd.lowest, "`max` of what is not NaN; NaN if all are (no warning is given)."
)
nanmin = _extreme_without_nan(
    "nanmin", min, rd.highest, "`min` of what is not NaN; NaN if all are (no warning is given)."
)


def _place_without_nan(name: str, reduction: Callable[..., Array], identity: Any, doc: str) -> Callable[..., Array]:
    @api_boundary
    def function(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Array:
        a, valid = _valid(name, a)
        if not dtypes.issubdtype(a.dtype, np.inexact):
            return reduction(a, axis, out, keepdims)
        filled = select_n_p.bind(valid, a.dtype.type(identity(a.dtype)), a)
        place = reduction(filled, axis, out, keepdims)
        found = any(valid, axis, keepdims=bool(keepdims))
        if is_concrete(found) and not np.asarray(found).all():
            raise ValueError(f"numpy.{name}: All-NaN slice encountered, in {shown(a)}")
        return select_n_p.bind(found, place.dtype.type(-1), place)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


_ALL_NAN = "\n\n    Differs from NumPy: where all are NaN, traced values give -1; known ones an error, as in NumPy."
nanargmax = _place_without_nan(
    "nanargmax",
    argmax,
    rd.lowest,
    f"`argmax` of what is not NaN.{_ALL_NAN}",
)
nanargmin = _place_without_nan(
    "nanargmin",
    argmin,
    rd.highest,
    f"`argmin` of what is not NaN.{_ALL_NAN}",
)


@short_way(host_mean, INEXACT, plain="axis keepdims", unless_nan=True)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Array:
    """`mean` of what is not NaN."""
    a, valid = _valid("nanmean", a, where)
    return mean(a, axis_or_none(axis, a), dtype, out, keepdims, where=valid)


@short_way(host_variance, "fd", plain="axis ddof keepdims", unless_nan=True)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """`var` of what is not NaN."""
    return _variance_without_nan("nanvar", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@short_way(
    lambda a, *args, **kwargs: np.sqrt(host_variance(a, *args, **kwargs)),
    "fd",
    plain="axis ddof keepdims",
    unless_nan=True,
)
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False,
    where: Any = None, mean: Any = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """`std` of what is not NaN."""
    return _variance_without_nan("nanstd", a, axis, dtype, out, ddof, keepdims, where, mean, correction, root=True)


def _variance_without_nan(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: float, keepdims: Any, where: Any, mean: Any,
    correction: float | None, root: bool = False,
) -> Array:  # fmt: skip
    ddof = ddof if correction is None else correction
    a, valid = _valid(name, a, where)
    axis = axis_or_none(axis, a)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return variance(name, a, axis, dtype, out, ddof, keepdims, where, mean, None, root)
    filled = select_n_p.bind(valid, a.dtype.type(0), a)  # so that no NaN spoils the derivative
    result = variance(name, filled, axis, dtype, out, ddof, keepdims, valid, mean, None, root)
    enough = sum(valid, axis, keepdims=keepdims) > ddof
    return select_n_p.bind(enough, result.dtype.type(np.nan), result)


@short_way(np.cumsum, WIDE, plain="axis", unless_nan=True)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Array:
    """`cumsum` that takes NaN as 0."""
    a, valid = _valid("nancumsum", a)
    return cumsum(select_n_p.bind(valid, a.dtype.type(0), a), axis, dtype, out)


@short_way(np.cumprod, WIDE, plain="axis", unless_nan=True)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Array:
    """`cumprod` that takes NaN as 1."""
    a, valid = _valid("nancumprod", a)
    return cumprod(select_n_p.bind(valid, a.dtype.type(1), a), axis, dtype, out)
