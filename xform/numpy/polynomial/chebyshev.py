"""Chebyshev series, of the polynomials T_n of the first kind.

>>> from xform.numpy.polynomial import chebyshev
>>> float(chebyshev.chebval(3.0, [0.0, 0.0, 1.0]))
17.0

May import: the other modules of `xform.numpy`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.array import Array, own
from xform.core.errors import api_boundary
from xform.numpy.polynomial import series
from xform.numpy.polynomial.bases import CHEBYSHEV
from xform.numpy.polynomial.classes import Chebyshev
from xform.numpy.polynomial.functions import define

_functions = define(CHEBYSHEV, "chebyshev")
globals().update(_functions)
__all__ = ["Chebyshev", "chebpts1", "chebpts2", "chebinterpolate", *_functions]


@api_boundary
def chebpts1(npts: int) -> Array:
    """The roots of T_npts: Chebyshev points of the first kind, ascending."""
    n = series.degree("polynomial.chebyshev.chebpts1", npts, "npts", 1)
    return own(np.sin(0.5 * np.pi / n * np.arange(-n + 1, n + 1, 2)))


@api_boundary
def chebpts2(npts: int) -> Array:
    """The extremes of T_(npts - 1): Chebyshev points of the second kind, ascending."""
    n = series.degree("polynomial.chebyshev.chebpts2", npts, "npts", 2)
    return own(np.cos(np.linspace(-np.pi, 0, n)))


@api_boundary
def chebinterpolate(func: Callable[..., Any], deg: int, args: Sequence[Any] = ()) -> Array:
    """The series of degree `deg` that has the values of ``func(x, *args)`` at the Chebyshev points of the first kind.

    Examples
    --------
    >>> from xform.numpy.polynomial import chebyshev
    >>> [round(float(v), 12) + 0 for v in chebyshev.chebinterpolate(lambda x: x * x, 2)]
    [0.5, 0.0, 0.5]
    """
    n = series.degree("polynomial.chebyshev.chebinterpolate", deg) + 1
    points = chebpts1(n)
    weights = np.full(n, 2.0 / n)
    weights[0] = 1.0 / n
    return weights * (func(points, *args) @ series.vander(CHEBYSHEV, "polynomial.chebyshev.chebvander", points, n - 1))
