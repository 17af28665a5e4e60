"""Intervals, and zeros at the end of series.

May import: `numpy.polynomial.series`, `xform.numpy`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.numpy import reductions
from xform.numpy.joining import stack
from xform.numpy.polynomial import series
from xform.numpy.polynomial.bases import POWER
from xform.numpy.promotion import array_of, concrete, promote_inexact

__all__ = ["as_series", "getdomain", "mapdomain", "mapparms", "trimcoef", "trimseq"]


@api_boundary
def as_series(alist: Sequence[Any], trim: bool = True) -> list[Array]:
    """Series as floating or complex vectors of one dtype; with `trim` without known zeros at the end."""
    found = series.vectors("polynomial.polyutils.as_series", *alist)
    return [series.without_zeros(c) for c in found] if trim else found


@api_boundary
def trimseq(seq: Any) -> Any:
    """Without zeros at the end, but for a last one; they must be known."""
    values = concrete("polynomial.polyutils.trimseq", seq, "seq", "Its zeros decide the length of the result.")
    (found,) = np.nonzero(values)
    return seq[: int(found[-1]) + 1] if found.size else seq[:1]


@api_boundary
def trimcoef(c: Any, tol: float = 0) -> Array:
    """Without the last coefficients of absolute value up to `tol`; they must be known."""
    return series.trim(POWER, "polynomial.polyutils.trimcoef", c, tol)


@api_boundary
def getdomain(x: Any) -> Array:
    """The interval (for complex numbers, the corners of the rectangle) that holds all of `x`."""
    (x,) = promote_inexact("polynomial.polyutils.getdomain", array_of("polynomial.polyutils.getdomain", x, "x"))
    if x.dtype.kind == "c":
        return getdomain(x.real) + 1j * getdomain(x.imag)
    return stack([reductions.min(x), reductions.max(x)])


@api_boundary
def mapparms(old: Any, new: Any) -> tuple[Any, Any]:
    """The offset and the scale of the line that maps one interval to another."""
    (a, b), (c, d) = old, new
    length = b - a
    return (b * c - a * d) / length, (d - c) / length


@api_boundary
def mapdomain(x: Any, old: Any, new: Any) -> Any:
    """The values to which the line from one interval to another takes `x`.

    Examples
    --------
    >>> from xform.numpy.polynomial import polyutils
    >>> polyutils.mapdomain([0.0, 0.5], (0, 1), (-1, 1)).tolist()
    [-1.0, 0.0]
    """
    offset, scale = mapparms(old, new)
    return offset + scale * array_of("polynomial.polyutils.mapdomain", x, "x")
