"""Hermite series, of the probabilists' polynomials He_n.

>>> from xform.numpy.polynomial import hermite_e
>>> float(hermite_e.hermeval(3.0, [0.0, 0.0, 1.0]))
8.0

May import: the other modules of `xform.numpy`.
"""

from xform.numpy.polynomial.bases import HERMITE_E
from xform.numpy.polynomial.classes import HermiteE
from xform.numpy.polynomial.functions import define

_functions = define(HERMITE_E, "hermite_e")
globals().update(_functions)
__all__ = ["HermiteE", *_functions]
