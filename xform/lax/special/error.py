"""The error functions.

Hosts take them from SciPy, which is imported at the first call.

May import: `lax.special.formulas`, `lax.single_precision`, the elementwise modules of `lax`.
"""

from typing import Any

import numpy as np

from xform.core.errors import api_boundary
from xform.interpreters.lowering import lower_as
from xform.lax import single_precision
from xform.lax.accuracy import Accuracy
from xform.lax.arithmetic import abs, add, div, mul, mul_p, neg, neg_p, sub
from xform.lax.comparison import clamp, eq, lt, select
from xform.lax.extremes import min
from xform.lax.families import apply, constant, elementwise
from xform.lax.polynomials import horner
from xform.lax.powers import sqrt, square, square_p
from xform.lax.rounding import reduce_precision
from xform.lax.shapes import full_like
from xform.lax.special import tables
from xform.lax.special.formulas import compiled_if_large, evaluate, host_as, replaced
from xform.lax.transcendental import exp, exp_p, log
from xform.lax.vector_math import in_wide_vectors


def _gaussian(x: Any) -> Any:
    """The derivative of erf."""
    return mul_p.bind(exp_p.bind(neg_p.bind(square_p.bind(x))), constant(x, 2 / np.sqrt(np.pi)))


def _erf_host(x: Any) -> Any:
    from scipy import special

    return special.erf(x)


def gaussian_tail(a: Any) -> Any:
    """exp(-a^2) for 0 <= a < 28, without the error of a rounded square."""
    high = reduce_precision(a, 11, 25) if a.dtype == np.float64 else reduce_precision(a, 8, 11)  # has an exact square
    rest = mul(sub(high, a), add(high, a))  # small
    return mul(exp(neg(square(high))), horner(rest, [1.0, 1.0, 0.5, 1 / 6, 1 / 24]))


def scaled_erfc(a: Any) -> Any:
    """exp(a^2) erfc(a) for 0 <= a < 28.

    M. Shepherd, J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < inf", Mathematics of
    Computation 36 (1981) 249-253, https://doi.org/10.1090/S0025-5718-1981-0595058-X
    """
    return div(evaluate(tables.ERFCX, div(sub(a, 4.0), add(a, 4.0))), add(mul(a, 2.0), 1.0))


def _erf(x: Any) -> Any:
    """XLA's own is wrong by up to 7 ulp in float32, and calls the C library for each element in float64."""
    if x.dtype == np.float32:
        return single_precision.erf(x)
    a = abs(x)
    near = mul(x, evaluate(tables.ERF, square(min(a, 0.5))))
    return select(lt(a, 0.5), near, mul(sub(1.0, _erfc_tail(a)), clamp(-1.0, mul(x, 2.0), 1.0)))


def _erfc_tail(a: Any) -> Any:
    """erfc(a) for a >= 0."""
    a = min(a, 27.5)
    return mul(gaussian_tail(a), scaled_erfc(a))


def _erfc(x: Any) -> Any:
    a, tail = abs(x), _erfc_tail(abs(x))
    near = sub(1.0, mul(x, evaluate(tables.ERF, min(square(x), 0.25))))
    return select(lt(a, 0.5), near, select(lt(x, 0.0), sub(2.0, tail), tail))


_tail_on_host = host_as(_erfc_tail)


def _erfc_by_scipy(x: Any) -> Any:
    from scipy import special

    # From 1/2 on SciPy's is a difference that loses digits, and from 1 on it has the error of a rounded square.
    return replaced(special.erfc(x), x > 0.5, _tail_on_host, x)


_erfc_of_float64 = compiled_if_large(_erfc_by_scipy, lambda x: erfc_p.bind(x))


def _erfc_host(x: Any) -> Any:
    from scipy import special

    return _erfc_of_float64(x) if x.dtype == np.float64 else special.erfc(x)


erf_p = elementwise(
    "erf",
    _erf_host,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, _gaussian(x)),
    lower=in_wide_vectors(lower_as(_erf), "chlo.erf"),
    widen=True,
)


erfc_p = elementwise(
    "erfc",
    _erfc_host,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, neg_p.bind(_gaussian(x))),
    lower=in_wide_vectors(lower_as(_erfc)),
    widen=True,
)


# Polynomials for erf_inv(x) / x in terms of w = -log(1 - x^2): up to which w, whether of its root, around which point,
# the coefficients from the highest on. M. Giles, "Approximating the erfinv function", GPU Computing Gems, Jade Edition,
# 2012, https://people.maths.ox.ac.uk/gilesm/files/gems_erfinv.pdf
_GILES = {
    "float32": (
        (5.0, False, 2.5, (
        2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
        -0.00417768164, 0.246640727, 1.50140941,
        )),
        (np.inf, True, 3.0, (
        -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
        1.00167406, 2.83297682,
        )),
    ),
    "float64": (
        (6.25, False, 3.125, (
        -3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18, 1.115787767802518096e-17,
        -1.333171662854620906e-16, 2.0972767875968561637e-17, 6.6376381343583238325e-15, -4.0545662729752068639e-14,
        -8.1519341976054721522e-14, 2.6335093153082322977e-12, -1.2975133253453532498e-11,
        -5.4154120542946279317e-11, 1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08,
        4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,
        -0.00074070253416626697512, -0.0060336708714301490533, 0.24015818242558961693, 1.6536545626831027356,
        )),
        (16.0, True, 3.25, (
        2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
        1.5027403968909827627e-06, -4.013867526981545969e-06, 2.9234449089955446044e-06, 1.2475304481671778723e-05,
        -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796,
        0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066, -0.0037512085075692412107,
        0.005370914553590063617, 1.0052589676941592334, 3.0838856104922207635,
        )),
        (np.inf, True, 5.0, (
        -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
        -3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08, 2.9147953450901080826e-08,
        -6.7711997758452339498e-08, 2.2900482228026654717e-07, -9.9298272942317002539e-07, 4.5260625972231537039e-06,
        -1.9681778105531670567e-05, 7.5995277030017761139e-05, -0.00021503011930044477347,
        -0.00013871931833623122026, 1.0103004648645343977, 4.8499064014085844221,
        )),
    ),
}  # fmt: skip


def _erf_inv_polynomial(x: Any) -> Any:
    """XLA's own erf_inv, except that 1 - x^2 is not rounded before its logarithm is taken.

    So it keeps all digits near 1, where XLA's loses half of them, and takes no longer.
    """
    w = neg(log(mul(sub(1.0, x), add(x, 1.0))))
    root = sqrt(w)
    value: Any = None
    for limit, of_root, center, coefficients in reversed(_GILES[x.dtype.name]):
        t = sub(root if of_root else w, center)
        p = full_like(x, coefficients[0])
        for c in coefficients[1:]:
            p = add(mul(p, t), c)
        value = p if value is None else select(lt(w, limit), p, value)
    return select(eq(abs(x), 1.0), mul(x, np.inf), mul(value, x))


def _erf_inv_host(x: Any) -> Any:
    from scipy import special

    return np.copysign(special.erfinv(x), x)  # SciPy's has no -0.0


erf_inv_p = elementwise(
    "erf_inv",
    _erf_inv_host,
    accepts="float",
    jvp=lambda g, ans, x: mul_p.bind(g, mul_p.bind(exp_p.bind(square_p.bind(ans)), constant(ans, np.sqrt(np.pi) / 2))),
    lower=lower_as(_erf_inv_polynomial),
    widen=True,
)


@api_boundary
def erf(x: Any) -> Any:
    """Elementwise error function, the integral of exp(-t^2) from 0 to x times 2 / sqrt(pi)."""
    return apply(erf_p, x)


@api_boundary
def erfc(x: Any, *, accuracy: Accuracy = None) -> Any:
    """Elementwise 1 - erf(x), without cancellation for large x; within 4 ulp."""
    return apply(erfc_p, x, accuracy=accuracy)


@api_boundary
def erf_inv(x: Any) -> Any:
    """Elementwise inverse of `erf`; infinite at -1 and 1, NaN beyond."""
    return apply(erf_inv_p, x)
