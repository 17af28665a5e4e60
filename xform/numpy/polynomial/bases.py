"""The six families of polynomials: what tells them apart is one row of a table.

A family is known by its recurrence, ``x p[n] = a[n] p[n+1] + b[n] p[n] + c[n] p[n-1]`` with ``p[0] = 1``, and by its
derivatives, which all have one form:

    p[n]' = w[n] * sum of v[k] p[k] over k = n - 1, n - 1 - step, n - 1 - 2 step ... down to 0,

where without a step only ``k = n - 1`` counts. Values, products, quotients, roots and conversions follow from the
first, derivatives and integrals from the second (`series`). Source of both: NIST's Digital Library of Mathematical
Functions, chapter 18 (18.9 recurrences; the derivatives follow from 18.9.17-28).

>>> from xform.numpy.polynomial.bases import CHEBYSHEV
>>> [list(map(float, x)) for x in CHEBYSHEV.recurrence(3)]
[[1.0, 0.5, 0.5], [0.0, 0.0, 0.0], [0.0, 0.5, 0.5]]

May import: `xform.numpy`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from xform.numpy import ufuncs


@dataclasses.dataclass(frozen=True, eq=False)
class Basis:
    """A family of polynomials p[0], p[1], ...

    Parameters
    ----------
    prefix : str
        What the names of its functions begin with.
    symbol : str
        How formulas call the polynomials.
    domain : pair of floats
        The interval of `fit` and of the classes.
    coefficients : function of the array 0., 1., ... that returns a, b and c
    inner : function of k that returns v
    outer : function of n that returns w
    step : int or None
    weight : function of x, optional
        With which the polynomials are orthogonal.
    """

    prefix: str
    symbol: str
    domain: tuple[float, float]
    coefficients: Callable[[np.ndarray], tuple[Any, Any, Any]]
    inner: Callable[[np.ndarray], Any]
    outer: Callable[[np.ndarray], Any]
    step: int | None
    weight: Callable[[Any], Any] | None = None

    def recurrence(self, n: int) -> tuple[np.ndarray, ...]:
        """a, b and c for the indices 0 to n - 1."""
        return tuple(np.broadcast_to(x, (n,)) for x in self.coefficients(np.arange(float(n))))

    def derivative(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """v and w of the first n polynomials."""
        index = np.arange(float(n))
        return np.broadcast_to(self.inner(index), (n,)), np.broadcast_to(self.outer(index), (n,))


POWER = Basis(
    "poly", "x**", (-1.0, 1.0), lambda n: (1.0, 0.0, 0.0), inner=lambda k: 1.0, outer=lambda n: n, step=None
)  # fmt: skip
CHEBYSHEV = Basis(
    "cheb", "T_", (-1.0, 1.0), lambda n: (np.where(n == 0, 1.0, 0.5), 0.0, np.where(n == 0, 0.0, 0.5)),
    inner=lambda k: np.where(k == 0, 0.5, 1.0), outer=lambda n: 2 * n, step=2,
    weight=lambda x: 1 / (ufuncs.sqrt(1 + x) * ufuncs.sqrt(1 - x)),
)  # fmt: skip
LEGENDRE = Basis(
    "leg", "P_", (-1.0, 1.0), lambda n: ((n + 1) / (2 * n + 1), 0.0, n / (2 * n + 1)),
    inner=lambda k: 2 * k + 1, outer=lambda n: 1.0, step=2, weight=lambda x: x * 0 + 1,
)  # fmt: skip
HERMITE = Basis(
    "herm", "H_", (-1.0, 1.0), lambda n: (0.5, 0.0, n),
    inner=lambda k: 1.0, outer=lambda n: 2 * n, step=None, weight=lambda x: ufuncs.exp(-(x * x)),
)  # fmt: skip
HERMITE_E = Basis(
    "herme", "He_", (-1.0, 1.0), lambda n: (1.0, 0.0, n),
    inner=lambda k: 1.0, outer=lambda n: n, step=None, weight=lambda x: ufuncs.exp(-0.5 * (x * x)),
)  # fmt: skip
LAGUERRE = Basis(
    "lag", "L_", (0.0, 1.0), lambda n: (-(n + 1), 2 * n + 1, -n),
    inner=lambda k: 1.0, outer=lambda n: -1.0, step=1, weight=lambda x: ufuncs.exp(-x),
)  # fmt: skip
