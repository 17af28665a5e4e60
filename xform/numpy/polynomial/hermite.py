"""Hermite series, of the physicists' polynomials H_n.

>>> from xform.numpy.polynomial import hermite
>>> float(hermite.hermval(3.0, [0.0, 0.0, 1.0]))
34.0

May import: the other modules of `xform.numpy`.
"""

from xform.numpy.polynomial.bases import HERMITE
from xform.numpy.polynomial.classes import Hermite
from xform.numpy.polynomial.functions import define

_functions = define(HERMITE, "hermite")
globals().update(_functions)
__all__ = ["Hermite", *_functions]
