"""Laguerre series.

>>> from xform.numpy.polynomial import laguerre
>>> float(laguerre.lagval(3.0, [0.0, 0.0, 1.0]))
-0.5

May import: the other modules of `xform.numpy`.
"""

from xform.numpy.polynomial.bases import LAGUERRE
from xform.numpy.polynomial.classes import Laguerre
from xform.numpy.polynomial.functions import define

_functions = define(LAGUERRE, "laguerre")
globals().update(_functions)
__all__ = ["Laguerre", *_functions]
