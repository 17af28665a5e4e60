"""Legendre series.

>>> from xform.numpy.polynomial import legendre
>>> float(legendre.legval(3.0, [0.0, 0.0, 1.0]))
13.0

May import: the other modules of `xform.numpy`.
"""

from xform.numpy.polynomial.bases import LEGENDRE
from xform.numpy.polynomial.classes import Legendre
from xform.numpy.polynomial.functions import define

_functions = define(LEGENDRE, "legendre")
globals().update(_functions)
__all__ = ["Legendre", *_functions]
