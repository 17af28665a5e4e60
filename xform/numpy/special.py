"""The functions of `scipy.special` that can be traced: `erf`, `gammaln`, `logsumexp` and so on.

The ufuncs of `scipy.special` come here when they are called on our arrays, and SciPy's functions with array API support
look here too (they ask the namespace of an array for ``special``). Names and parameters are SciPy's.

* Of concrete arrays SciPy computes the functions of scalars, on the host; the result is an `Array`.
* Of traced arrays the formulas below do, in terms of primitives, for real numbers. They have derivatives in all
  arguments in which the functions of `xform.lax` that they name have some.

>>> import scipy.special, xform, xform.numpy as xnp
>>> float(xform.jit(xform.grad(scipy.special.gammaln))(1.0)) == float(-xnp.euler_gamma)
True

May import: the other modules of `xform.numpy`, `xform.lax`; SciPy within functions.
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.lax import special as lax_special
from xform.lax.arithmetic import zero_product_p
from xform.lax.identities import stop_gradient
from xform.lax.special.error import gaussian_tail, scaled_erfc
from xform.lax.transcendental import logistic_p
from xform.numpy import formulas, manipulation, reductions, ufuncs
from xform.numpy.creation import full_like
from xform.numpy.elementwise import where
from xform.numpy.promotion import array_of, fit, is_concrete, promote_inexact

SQRT2 = math.sqrt(2)


def _function(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A function of scalars: by SciPy's of the same name on the host, or by the formula for traced arrays."""
    name, label = formula.__name__, f"special.{formula.__name__}"
    parameters = inspect.signature(formula).parameters.values()
    counts = range(sum(p.default is p.empty for p in parameters), len(parameters) + 1)

    def general(*args: Any) -> Any:
        values = [formulas.array(x) for x in fit(label, promote_inexact(label, *args))]
        dtype = values[0].dtype
        narrow = dtype.itemsize < 4  # float16, bfloat16 ...: computed in float32
        xs = [x.astype(np.float32) for x in values] if narrow else values
        out = _scipys(name, map(np.asarray, xs)) if is_concrete(*xs) else formula(*formulas.real_arrays(label, *xs))
        return out.astype(dtype) if narrow else out

    @api_boundary
    @functools.wraps(formula)
    def function(*args: Any) -> Any:
        if len(args) not in counts:
            raise TypeError(f"numpy.{label} takes {' or '.join(map(str, counts))} arguments, got {len(args)}")
        if state.fast and len(hosts := [x._host for x in args if type(x) is ArrayImpl and not x._weak]) == len(args):
            dtype = getattr(hosts[0], "dtype", None)
            if dtype in _DIRECT and (len(hosts) == 1 or all(h is not None and h.dtype is dtype for h in hosts)):
                return _scipys(name, hosts)
        return general(*args)

    return function


_DIRECT = {np.dtype(np.float32), np.dtype(np.float64)}


@functools.cache
def _scipys_functions(name: str) -> Callable[..., Any]:
    from scipy import special

    return getattr(special, name)


def _scipys(name: str, hosts: Iterable[Any]) -> ArrayImpl:
    """SciPy's function on the host, which warns of nothing, as all functions here."""
    function = _scipys_functions(name)
    token = quiet_begin()
    try:
        return ArrayImpl(function(*hosts))
    finally:
        quiet_end(token)


# ---- Error functions and the normal distribution -----------------------------------------------------------


@_function
def erf(x: Any) -> Array:
    """Error function."""
    return lax_special.erf(x)


@_function
def erfc(x: Any) -> Array:
    """Complementary error function, 1 - erf(x)."""
    return lax_special.erfc(x)


@_function
def erfcx(x: Any) -> Array:
    """Scaled complementary error function, exp(x^2) erfc(x)."""
    a = ufuncs.absolute(x)
    z = 1 / (2 * ufuncs.square(ufuncs.maximum(a, 1)))  # for a > 25 its powers fall quickly
    far = (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z * (1 - 9 * z * (1 - 11 * z)))))) / (a * math.sqrt(math.pi))
    out = where(a < 25, scaled_erfc(ufuncs.minimum(a, 25)), far)
    return where(x < 0, 2 / gaussian_tail(ufuncs.minimum(a, 27.9)) - out, out)


@_function
def erfinv(y: Any) -> Array:
    """Inverse of `erf`."""
    return lax_special.erf_inv(y)


@_function
def erfcinv(y: Any) -> Array:
    """Inverse of `erfc`."""
    return _quantile(y / 2) / -SQRT2


@_function
def ndtr(x: Any) -> Array:
    """Distribution function of the standard normal distribution."""
    return lax_special.erfc(x / -SQRT2) / 2


@_function
def log_ndtr(x: Any) -> Array:
    """Logarithm of `ndtr`, without underflow."""
    low = ufuncs.log(erfcx(x / -SQRT2) / 2) - x * x / 2
    return where(x < -1, low, ufuncs.log1p(-lax_special.erfc(x / SQRT2) / 2))


@_function
def ndtri(y: Any) -> Array:
    """Quantiles of the standard normal distribution, the inverse of `ndtr`."""
    return _quantile(y)


def _quantile(p: Array) -> Array:
    """`ndtri` by `erf_inv` around 1/2; else by Newton's method for log(ndtr(x)) = log(p).

    The first guess is 26.2.23 of M. Abramowitz, I. Stegun (eds.), "Handbook of Mathematical Functions", 1964, whose
    error is below 5e-4; each step squares the error, and those of its derivatives.
    """
    q = ufuncs.minimum(p, 1 - p)
    goal = ufuncs.log(q)
    t = ufuncs.sqrt(-2 * goal)
    x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t
    for _ in range(3):
        value = log_ndtr(x)
        x = x - (value - goal) * ufuncs.exp(value + x * x / 2) * math.sqrt(2 * math.pi)
    tail = where(q == 0, -np.inf, x) * where(p > 0.5, -1, 1)
    return where(ufuncs.absolute(p - 0.5) < 0.4, SQRT2 * lax_special.erf_inv(2 * p - 1), tail)


# ---- Logistic functions ------------------------------------------------------------------------------------


@_function
def expit(x: Any) -> Array:
    """Logistic function, 1 / (1 + exp(-x))."""
    return logistic_p.bind(x)


@_function
def logit(x: Any) -> Array:
    """Inverse of `expit`, log(x / (1 - x))."""
    return ufuncs.log(x) - ufuncs.log1p(-x)


@_function
def log_expit(x: Any) -> Array:
    """Logarithm of `expit`, without underflow."""
    return -ufuncs.logaddexp(0, -x)


# ---- Gamma and beta functions ------------------------------------------------------------------------------


def _is_pole(x: Array) -> Array:
    return (x <= 0) & (x == ufuncs.floor(x))


def _sign_of_gamma(x: Array) -> Array:
    odd = ufuncs.remainder(ufuncs.floor(x), 2) != 0
    return where((x < 0) & odd, -1.0, where(x == 0, ufuncs.copysign(1, x), 1.0)).astype(x.dtype)


@_function
def gammaln(x: Any) -> Array:
    """Logarithm of the absolute value of the gamma function."""
    return lax_special.lgamma(x)


@_function
def loggamma(x: Any) -> Array:
    """Logarithm of the gamma function; NaN where that is negative, and for other x < 0."""
    return where(x < 0, np.nan, lax_special.lgamma(x))


@_function
def gammasgn(x: Any) -> Array:
    """Sign of the gamma function; NaN at -1, -2, ..."""
    return where(ufuncs.isnan(x) | (_is_pole(x) & (x != 0)), np.nan, _sign_of_gamma(x))


@_function
def gamma(x: Any) -> Array:
    """Gamma function, as the exponential of its logarithm: the relative error grows with that."""
    return where(_is_pole(x) & (x != 0), np.nan, _sign_of_gamma(x) * ufuncs.exp(lax_special.lgamma(x)))


@_function
def rgamma(x: Any) -> Array:
    """Reciprocal of the gamma function, 0 at its poles."""
    return where(_is_pole(x), 0.0, _sign_of_gamma(x) * ufuncs.exp(-lax_special.lgamma(x)))


@_function
def poch(z: Any, m: Any) -> Array:
    """Pochhammer symbol, gamma(z + m) / gamma(z)."""
    ratio = ufuncs.exp(lax_special.lgamma(z + m) - lax_special.lgamma(z))
    return where(m == 0, 1.0, _sign_of_gamma(z + m) * _sign_of_gamma(z) * ratio)


@_function
def digamma(x: Any) -> Array:
    """Derivative of `gammaln`."""
    return lax_special.digamma(x)


psi = digamma


@api_boundary
def polygamma(n: Any, x: Any) -> Array:
    """n-th derivative of `digamma`; `n` is an array of integers, in which there is no derivative."""
    n, x = formulas.real_arrays("polygamma", *fit("polygamma", promote_inexact("polygamma", n, x)))
    return lax_special.polygamma(n, x)


@api_boundary
def multigammaln(a: Any, d: int) -> Array:
    """Logarithm of the gamma function of `d` by `d` matrices, for a > (d - 1) / 2."""
    (a,) = formulas.real_arrays("multigammaln", *promote_inexact("multigammaln", a))
    out = a * 0 + d * (d - 1) / 4 * math.log(math.pi)
    for j in range(d):
        out = out + gammaln(a - j / 2)
    return out


@_function
def betaln(a: Any, b: Any) -> Array:
    """Logarithm of the absolute value of the beta function."""
    return lax_special.lgamma(a) + lax_special.lgamma(b) - lax_special.lgamma(a + b)


@_function
def beta(a: Any, b: Any) -> Array:
    """Beta function, gamma(a) gamma(b) / gamma(a + b)."""
    return _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b) * ufuncs.exp(betaln(a, b))


@_function
def betainc(a: Any, b: Any, x: Any) -> Array:
    """Regularized incomplete beta function."""
    return lax_special.betainc(a, b, x)


@_function
def betaincc(a: Any, b: Any, x: Any) -> Array:
    """Complement of `betainc`."""
    return lax_special.betainc(b, a, 1 - x)


@_function
def gammainc(a: Any, x: Any) -> Array:
    """Regularized lower incomplete gamma function."""
    return lax_special.igamma(a, x)


@_function
def gammaincc(a: Any, x: Any) -> Array:
    """Regularized upper incomplete gamma function."""
    return lax_special.igammac(a, x)


@_function
def zeta(x: Any, q: Any = 1.0) -> Array:
    """Hurwitz zeta function, the sum of (q + k)^-x over k = 0, 1, ...; Riemann's for q = 1, traced for x >= 1 only."""
    return lax_special.zeta(x, q)


# ---- Bessel functions --------------------------------------------------------------------------------------


@_function
def i0e(x: Any) -> Array:
    """Modified Bessel function of the first kind, order 0, times exp(-abs(x))."""
    return lax_special.bessel_i0e(x)


@_function
def i1e(x: Any) -> Array:
    """Modified Bessel function of the first kind, order 1, times exp(-abs(x))."""
    return lax_special.bessel_i1e(x)


@_function
def i0(x: Any) -> Array:
    """Modified Bessel function of the first kind, order 0."""
    return ufuncs.i0(x)


@_function
def i1(x: Any) -> Array:
    """Modified Bessel function of the first kind, order 1."""
    return ufuncs.exp(ufuncs.absolute(x)) * lax_special.bessel_i1e(x)


# ---- Logarithms, entropies, losses -------------------------------------------------------------------------


def _log_factor(x: Array, y: Array, log: Array) -> Array:
    """``x * log`` with the logarithm of y, 0 where x is; the derivatives are those of the product."""
    x, log = manipulation.broadcast_arrays(x, log)
    return where((x == 0) & ~ufuncs.isnan(y), zero_product_p.bind(x, log), x * log)


@_function
def xlogy(x: Any, y: Any) -> Array:
    """x log(y), 0 where x is."""
    return _log_factor(x, y, ufuncs.log(y))


@_function
def xlog1py(x: Any, y: Any) -> Array:
    """x log(1 + y), 0 where x is."""
    return _log_factor(x, y, ufuncs.log1p(y))


@_function
def entr(x: Any) -> Array:
    """-x log(x), 0 at 0, and -inf for x < 0."""
    return where(x < 0, -np.inf, -_log_factor(x, x, ufuncs.log(ufuncs.absolute(x))))


def _relative_entropy(x: Array, y: Array) -> Array:
    both = _log_factor(x, y, ufuncs.log(x / y))
    nan = ufuncs.isnan(x) | ufuncs.isnan(y)
    return where(nan, np.nan, where((x > 0) & (y > 0), both, where((x == 0) & (y >= 0), 0.0, np.inf)))


@_function
def rel_entr(x: Any, y: Any) -> Array:
    """x log(x / y), 0 where x = 0 <= y, and inf where one is negative."""
    return _relative_entropy(x, y)


@_function
def kl_div(x: Any, y: Any) -> Array:
    """x log(x / y) - x + y."""
    return _relative_entropy(x, y) - x + y


@_function
def huber(delta: Any, r: Any) -> Array:
    """r^2 / 2 for abs(r) <= delta, and linear beyond; inf for delta < 0."""
    a = ufuncs.absolute(r)
    return where(delta < 0, np.inf, where(a <= delta, r * r / 2, delta * (a - delta / 2)))


@_function
def pseudo_huber(delta: Any, r: Any) -> Array:
    """delta^2 (sqrt(1 + (r / delta)^2) - 1), a smooth kin of `huber`; inf for delta < 0."""
    u = ufuncs.square(r / where(delta == 0, 1.0, delta))
    value = delta * delta * (u / (ufuncs.sqrt(1 + u) + 1))  # the difference, without cancellation
    return where(delta < 0, np.inf, value)


def _exprel(x: Array) -> Array:
    series = 1 + x / 2 * (1 + x / 3 * (1 + x / 4))
    value = ufuncs.expm1(x) / x
    return where(ufuncs.absolute(x) < 1e-4, series, where(x == np.inf, np.inf, value))


@_function
def exprel(x: Any) -> Array:
    """(exp(x) - 1) / x."""
    return _exprel(x)


@_function
def boxcox(x: Any, lmbda: Any) -> Array:
    """(x^lmbda - 1) / lmbda, log(x) for lmbda = 0."""
    log = ufuncs.log(x)
    return where(x == 0, where(lmbda > 0, -1 / lmbda, -np.inf), log * _exprel(lmbda * log))


@_function
def boxcox1p(x: Any, lmbda: Any) -> Array:
    """`boxcox` of 1 + x."""
    log = ufuncs.log1p(x)
    return where(x == -1, where(lmbda > 0, -1 / lmbda, -np.inf), log * _exprel(lmbda * log))


def _log1p_ratio(z: Array) -> Array:
    series = 1 - z * (1 / 2 - z * (1 / 3 - z / 4))
    return where(ufuncs.absolute(z) < 1e-4, series, ufuncs.log1p(z) / z)


@_function
def inv_boxcox(y: Any, lmbda: Any) -> Array:
    """Inverse of `boxcox`."""
    return ufuncs.exp(y * _log1p_ratio(lmbda * y))


@_function
def inv_boxcox1p(y: Any, lmbda: Any) -> Array:
    """Inverse of `boxcox1p`."""
    return ufuncs.expm1(y * _log1p_ratio(lmbda * y))


@_function
def exp10(x: Any) -> Array:
    """10^x."""
    return ufuncs.power(10.0, x)


@_function
def cosm1(x: Any) -> Array:
    """cos(x) - 1, without cancellation."""
    return -2 * ufuncs.square(ufuncs.sin(x / 2))


@_function
def powm1(x: Any, y: Any) -> Array:
    """x^y - 1, without cancellation for x > 0."""
    return where(x > 0, ufuncs.expm1(y * ufuncs.log(x)), ufuncs.power(x, y) - 1)


cbrt, exp2, expm1, log1p, round, sinc = ufuncs.cbrt, ufuncs.exp2, ufuncs.expm1, ufuncs.log1p, ufuncs.rint, ufuncs.sinc


# ---- Distribution functions --------------------------------------------------------------------------------


@_function
def chdtr(v: Any, x: Any) -> Array:
    """Distribution function of the chi-squared distribution with `v` degrees of freedom."""
    return lax_special.igamma(v / 2, x / 2)


@_function
def chdtrc(v: Any, x: Any) -> Array:
    """Survival function of the chi-squared distribution with `v` degrees of freedom."""
    return lax_special.igammac(v / 2, x / 2)


@_function
def gdtr(a: Any, b: Any, x: Any) -> Array:
    """Distribution function of the gamma distribution with rate `a` and shape `b`."""
    return lax_special.igamma(b, a * x)


@_function
def gdtrc(a: Any, b: Any, x: Any) -> Array:
    """Survival function of the gamma distribution with rate `a` and shape `b`."""
    return lax_special.igammac(b, a * x)


@_function
def pdtr(k: Any, m: Any) -> Array:
    """Distribution function of the Poisson distribution with mean `m`."""
    return lax_special.igammac(ufuncs.floor(k) + 1, m)


@_function
def pdtrc(k: Any, m: Any) -> Array:
    """Survival function of the Poisson distribution with mean `m`."""
    return lax_special.igamma(ufuncs.floor(k) + 1, m)


@_function
def fdtr(dfn: Any, dfd: Any, x: Any) -> Array:
    """Distribution function of the F distribution."""
    return lax_special.betainc(dfn / 2, dfd / 2, dfn * x / (dfd + dfn * x))


@_function
def fdtrc(dfn: Any, dfd: Any, x: Any) -> Array:
    """Survival function of the F distribution."""
    return lax_special.betainc(dfd / 2, dfn / 2, dfd / (dfd + dfn * x))


@_function
def stdtr(df: Any, t: Any) -> Array:
    """Distribution function of Student's t distribution."""
    tail = lax_special.betainc(df / 2, full_like(df, 0.5), df / (df + t * t)) / 2
    return where(t < 0, tail, 1 - tail)


# ---- Reductions --------------------------------------------------------------------------------------------


def _shifted(a: Array, axis: Any) -> tuple[Array, Array]:
    """The array minus its maxima along axes, and these; a maximum that isn't finite isn't subtracted."""
    real = ufuncs.real(a)
    top = reductions.max(real, axis=axis, keepdims=True, initial=-np.inf)
    top = stop_gradient(where(ufuncs.isfinite(top), top, 0.0))
    return a - top, top


@api_boundary
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Logarithm of the sum of exponentials, ``log(sum(b * exp(a)))``, without overflow.

    Parameters
    ----------
    a : array
    axis : int or tuple of ints, optional
        None: all axes.
    b : array, optional
        Factors; where they are 0, `a` doesn't matter.
    keepdims : bool
    return_sign : bool
        Whether to return the logarithm of the absolute value and the sign (of complex numbers: the phase). Without it
        a negative sum of real numbers gives NaN.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.allclose(xnp.special.logsumexp(xnp.array([1000.0, 1000.0])) - 1000, xnp.log(2.0)).item()
    True
    """
    if b is None:
        (a,) = promote_inexact("logsumexp", array_of("logsumexp", a))
    else:
        a, b = promote_inexact("logsumexp", array_of("logsumexp", a), array_of("logsumexp", b, "b"))
        a, b = manipulation.broadcast_arrays(a, b)
        a = where(b == 0, -np.inf, a)
    shifted, top = _shifted(a, axis)
    terms = ufuncs.exp(shifted)
    total = reductions.sum(terms if b is None else b * terms, axis=axis, keepdims=True)
    if return_sign:
        sign = ufuncs.sign(total)
        out = ufuncs.log(ufuncs.absolute(total)) + top
        return (out, sign) if keepdims else (manipulation.squeeze(out, axis), manipulation.squeeze(sign, axis))
    out = ufuncs.log(total) + top
    return out if keepdims else manipulation.squeeze(out, axis)


@api_boundary
def softmax(x: Any, axis: Any = None) -> Array:
    """Exponentials divided by their sum along axes (None: all)."""
    (x,) = promote_inexact("softmax", array_of("softmax", x, "x"))
    terms = ufuncs.exp(_shifted(x, axis)[0])
    return terms / reductions.sum(terms, axis=axis, keepdims=True)


@api_boundary
def log_softmax(x: Any, axis: Any = None) -> Array:
    """Logarithm of `softmax`, without underflow."""
    (x,) = promote_inexact("log_softmax", array_of("log_softmax", x, "x"))
    shifted, _ = _shifted(x, axis)
    return shifted - ufuncs.log(reductions.sum(ufuncs.exp(shifted), axis=axis, keepdims=True))
