"""Power series: ``sum of c[n] x**n``.

>>> from xform.numpy.polynomial import polynomial
>>> float(polynomial.polyval(3.0, [1.0, 2.0]))
7.0

May import: the other modules of `xform.numpy`.
"""

from typing import Any

from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.numpy import manipulation, reductions
from xform.numpy.polynomial.bases import POWER
from xform.numpy.polynomial.classes import Polynomial
from xform.numpy.polynomial.functions import define
from xform.numpy.promotion import array_of

_functions = define(POWER, "polynomial")
globals().update(_functions)
__all__ = ["Polynomial", "polyvalfromroots", *_functions]


@api_boundary
def polyvalfromroots(x: Any, r: Any, tensor: bool = True) -> Array:
    """The values of ``(x - r[0]) (x - r[1]) ...``; `tensor` as for `polyval`."""
    name = "polynomial.polynomial.polyvalfromroots"
    x, r = array_of(name, x, "x"), manipulation.atleast_1d(array_of(name, r, "r"))
    if tensor:
        r = manipulation.reshape(r, r.shape + (1,) * x.ndim)
    return reductions.prod(x - r, 0)
