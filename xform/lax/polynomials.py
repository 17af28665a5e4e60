"""Polynomials by Horner's rule.

May import: `lax.families`, `lax.arithmetic`, `lax.shapes`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.errors import api_boundary
from xform.lax.arithmetic import add, mul
from xform.lax.families import as_operands
from xform.lax.shapes import full_like


def horner(x: Any, coefficients: Sequence[Any]) -> Any:
    """The polynomial with these coefficients, the constant term first."""
    *rest, value = coefficients
    for c in reversed(rest):
        value = add(mul(value, x), c)
    return value


@api_boundary
def polynomial(x: Any, coeffs: Sequence[Any], *, unroll: int | None = None) -> Any:
    """Elementwise polynomial with the coefficients `coeffs`, the constant term first, by Horner's rule.

    Parameters
    ----------
    x : array
    coeffs : sequence of scalars, or of arrays of the dtype and shape of `x` (or rank 0)
    unroll : int, optional
        Without effect, since all steps are always written out; taken so that JAX's programs run.

    Examples
    --------
    >>> from xform import lax
    >>> float(lax.polynomial(3.0, [1.0, 5.0, 2.0]))
    34.0
    """
    if not isinstance(coeffs, Sequence | np.ndarray) or not len(coeffs):
        raise TypeError(f"lax.polynomial: coeffs must be a sequence of at least one coefficient, got {coeffs!r}")
    x, *coeffs = as_operands("polynomial", x, *coeffs)
    return horner(x, coeffs) if len(coeffs) > 1 else add(full_like(x, 0), coeffs[0])
