"""Special functions of real numbers, elementwise: one file a family.

May import: the other elementwise primitives.
"""

from xform.lax.special.bessel import bessel_i0e, bessel_i1e
from xform.lax.special.error import erf, erf_inv, erf_inv_p, erf_p, erfc
from xform.lax.special.gamma import digamma, lgamma, polygamma
from xform.lax.special.incomplete_beta import betainc
from xform.lax.special.incomplete_gamma import igamma, igamma_grad_a, igammac, random_gamma_grad
from xform.lax.special.zeta import zeta

__all__ = [
    "bessel_i0e",
    "bessel_i1e",
    "betainc",
    "digamma",
    "erf",
    "erf_inv",
    "erf_inv_p",
    "erf_p",
    "erfc",
    "igamma",
    "igamma_grad_a",
    "igammac",
    "lgamma",
    "polygamma",
    "random_gamma_grad",
    "zeta",
]
