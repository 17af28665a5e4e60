"""`xform.numpy.polynomial`: series of powers and of orthogonal polynomials, with NumPy's names.

For each family a module with functions of coefficients (`chebyshev.chebval`, `chebyshev.chebfit` ...) and a class
(`Chebyshev`). Everything can be differentiated, mapped and compiled; so the lengths of results depend on shapes alone:
NumPy cuts off zeros at the end of series, which `trim` does here. Roots are always complex.

>>> import xform
>>> from xform.numpy.polynomial import Chebyshev, chebyshev
>>> xform.grad(chebyshev.chebval)(0.5, [0.0, 0.0, 1.0]).item()  # T_2(x) = 2 x**2 - 1
2.0
>>> float(Chebyshev([0.0, 0.0, 1.0]).deriv()(0.5))
2.0

May import: the other modules of `xform.numpy`.
"""

from xform.numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre, polynomial, polyutils
from xform.numpy.polynomial.classes import Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial

__all__ = [
    "Chebyshev", "Hermite", "HermiteE", "Laguerre", "Legendre", "Polynomial", "chebyshev", "hermite", "hermite_e",
    "laguerre", "legendre", "polynomial", "polyutils",
]  # fmt: skip
