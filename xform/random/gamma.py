"""The gamma distribution and those that are made of it.

The derivatives of samples by parameters are those at a constant value of the distribution function [1]_.

May import: `xform.numpy`, `xform.lax`, the other modules of `xform.random`.

.. [1] M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", NeurIPS 2018, arXiv:1805.08498.
"""

import math
import operator
from typing import Any

import numpy as np

import xform.numpy as jnp
from xform import lax
from xform.core import dtypes
from xform.core.array import Array, get_aval
from xform.core.errors import api_boundary
from xform.lax.shapes import canonical_shape
from xform.lax.special import erf_inv_p
from xform.random.arguments import draw, float_dtype, key_of, result_shape
from xform.random.continuous import exponential_of, normal_of
from xform.random.keys import hashed, split_key
from xform.random.repeated import repeated


def _sample(draws: Any, a: Any, *, log_space: bool) -> Any:
    """Gamma samples or their logarithms.

    For a >= 1 a normal number is transformed and accepted or rejected [1]_; for a < 1 the sample for a + 1 is
    multiplied by u**(1/a).

    .. [1] G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", ACM Transactions on
       Mathematical Software 26 (2000), https://doi.org/10.1145/358407.358414.
    """
    valid, small = a >= 0, a < 1
    d = jnp.where(small, a + 1, a) - 1 / 3
    c = 1 / jnp.sqrt(9 * jnp.where(valid, d, 1))
    low = np.nextafter(draws.dtype.type(-1), draws.dtype.type(0))

    def propose(_: Any, __: Any, fixed: Any, uniforms: Any) -> Any:
        (d, c), (u, w) = fixed, uniforms
        x = erf_inv_p.bind(jnp.maximum(u * float(1 - low) + float(low), float(low))) * math.sqrt(2)
        t = jnp.maximum(c * x, -0.999)  # the cube of 1 + t is far below all that are accepted
        room = x * x * 0.5 + d * (3 * jnp.log1p(t) - t * (3 + t * (3 + t)))
        return (c * x > -0.999) & (jnp.log1p(-w) < room), [t]

    def boost(_: Any, __: Any, fixed: Any, uniforms: Any) -> Any:
        return jnp.full(uniforms[0].shape, True), [jnp.log1p(-uniforms[0]) / fixed[0]]

    zero = jnp.zeros_like(a)
    (t,) = draws.until(propose, [zero], [d, c], ~(valid & (a < np.inf)), 2)
    (log_boost,) = draws.until(boost, [zero], [a], ~(small & valid), 1)
    x = jnp.log(d) + 3 * jnp.log1p(t) + log_boost if log_space else d * (1 + t) ** 3 * jnp.exp(log_boost)
    return jnp.where(valid, x, np.nan)


def _slope(x: Any, a: Any, *, log_space: bool) -> Any:
    """The derivative of a sample by a."""
    if not log_space:
        return lax.random_gamma_grad(a, x)
    # Where x is so small that the distribution function is x**a / gamma(a + 1), its logarithm may be all there is.
    tiny = float(dtypes.finfo(get_aval(a).dtype).eps) / 4
    y = jnp.exp(x)
    far = y < tiny
    y = jnp.where(far, tiny, y)
    return jnp.where(far, (lax.digamma(a + 1) - x) / a, lax.random_gamma_grad(a, y) / y)


random_gamma_p = repeated("random_gamma", _sample, _slope)


def gamma_of(key: Any, a: Any, shape: tuple[int, ...], dtype: np.dtype, log_space: bool, method: str = "exact") -> Any:
    """Gamma samples of `dtype`, or their logarithms."""
    wide = dtype if dtype.itemsize >= 4 else np.dtype("float32")
    a = jnp.broadcast_to(lax.convert_element_type(a, wide), shape)
    if method == "exact":
        x = random_gamma_p.bind(hashed(key), a, dtype=wide, log_space=log_space)
    else:
        x = _approximate(key, a)
        x = x if log_space else jnp.exp(x)
    return lax.convert_element_type(x, dtype)


# Coefficients of powers of x / sqrt(nu), each a polynomial in 1 / nu, of the cube root of the quantile of chi-square
# with nu degrees of freedom, divided by nu, at the normal quantile x. R. B. Goldstein, "Algorithm 451: chi-square
# quantiles", Communications of the ACM 16 (1973), https://doi.org/10.1145/355609.362319; but for the first, there
# 1.0000886, which would shift all samples of large nu.
_GOLDSTEIN = (
    (1.0, -0.2237368, -0.01513904),
    (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679),
    (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356),
    (-0.0008426812, 0.00253001, 0.001060438),
    (0.00009780499, -0.001450117, 0.001565326),
)
_BOOSTS = 4  # the quantiles are good for a >= 4


def _approximate(key: Any, a: Any) -> Any:
    """Logarithms of gamma samples without a loop.

    The sample for a + 4 is a polynomial of a normal number; those for a + 3, ..., a follow, as for a + 1 and a,
    by the powers 1/a of uniform numbers (A. Stuart, "Gamma-distributed products of independent random variables",
    Biometrika 49 (1962), https://doi.org/10.1093/biomet/49.3-4.564).
    """
    shape, dtype = a.shape, a.dtype
    first, second = split_key(key)
    nu = 2 * (a + _BOOSTS)
    t, u = normal_of(first, shape, dtype) / jnp.sqrt(nu), 1 / nu
    root: Any = 0.0
    for row in reversed(_GOLDSTEIN):
        root = root * t + (row[0] + u * (row[1] + u * row[2]))
    base = jnp.log(a + _BOOSTS) + 3 * jnp.log(jnp.maximum(root, float(dtypes.finfo(dtype).tiny)))
    logs = exponential_of(second, (_BOOSTS, *shape), dtype)
    return base - sum(logs[k] / (a + k) for k in range(_BOOSTS))


# ---- The samplers ------------------------------------------------------------------------------------------


def _checked(
    name: str, key: Any, shape: Any, dtype: Any, out_sharding: None, method: str = "exact", **parameters: Any
) -> tuple[Any, tuple[int, ...], np.dtype, list[Any]]:
    """The key, the shape, the dtype, and the parameters converted to it."""
    if method not in ("exact", "approximate"):
        raise ValueError(f"random.{name}: method must be 'exact' or 'approximate', got {method!r}")
    key, dtype = key_of(name, key, out_sharding), float_dtype(name, dtype)
    shape = result_shape(name, shape, **parameters)
    return key, shape, dtype, [lax.convert_element_type(p, dtype) for p in parameters.values()]


@api_boundary
def gamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact", out_sharding: None = None
) -> Array:
    """Numbers of the gamma distribution, of density proportional to ``x**(a-1) * exp(-x)`` for x > 0.

    Samples have derivatives with respect to `a`.

    Parameters
    ----------
    key : key
    a : number or array
        Not negative; where it is, the result is NaN.
    shape : tuple of int, optional
        By default that of `a`, which must broadcast to it.
    dtype : floating dtype
        float64 by default (float32 when 64-bit types are off).
    method : {'exact', 'approximate'}
        'approximate' has no loop: faster on accelerators, with quantiles off by up to 0.05 %.

    Examples
    --------
    >>> from xform import random
    >>> x = random.gamma(random.key(0), 3.0, (10000,))
    >>> bool(abs(x.mean() - 3) < 0.06), bool(abs(x.var() - 3) < 0.2)
    (True, True)
    """
    key, shape, dtype, (a,) = _checked("gamma", key, shape, dtype, out_sharding, method, a=a)
    return gamma_of(key, a, shape, dtype, False, method)


@api_boundary
def loggamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact", out_sharding: None = None
) -> Array:
    """Logarithms of numbers of the gamma distribution, exact also where those are too small for floats (a << 1).

    Parameters
    ----------
    key, a, shape, dtype, method : as in `gamma`

    Examples
    --------
    >>> from xform import random
    >>> bool(random.loggamma(random.key(0), 1e-4) < -1000)
    True
    """
    key, shape, dtype, (a,) = _checked("loggamma", key, shape, dtype, out_sharding, method, a=a)
    return gamma_of(key, a, shape, dtype, True, method)


@api_boundary
def beta(
    key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact", out_sharding: None = None
) -> Array:
    """Numbers of the beta distribution, of density proportional to ``x**(a-1) * (1-x)**(b-1)`` for 0 < x < 1.

    Parameters
    ----------
    key : key
    a, b : numbers or arrays
    shape : tuple of int, optional
        By default that of the parameters, which must broadcast to it; so in the following samplers.
    dtype : floating dtype
    method : see `gamma`
    """
    key, shape, dtype, (a, b) = _checked("beta", key, shape, dtype, out_sharding, method, a=a, b=b)
    x, y = (gamma_of(k, p, shape, dtype, True, method) for k, p in zip(split_key(key), (a, b)))
    largest = lax.max(x, y)
    x, y = jnp.exp(x - largest), jnp.exp(y - largest)
    return x / (x + y)


@api_boundary
def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Vectors of the Dirichlet distribution: positive numbers with sum 1, of density prod(x**(alpha-1)).

    Parameters
    ----------
    key : key
    alpha : array of shape (..., n)
    shape : tuple of int, optional
        Of the result without its last axis; by default that of `alpha` without its.
    dtype : floating dtype

    Returns
    -------
    Array of shape (*shape, n)
    """
    aval = get_aval(alpha)
    if not aval.ndim:
        raise ValueError(f"random.dirichlet: alpha must have at least one axis, got {aval.str_short()}")
    key, dtype = key_of("dirichlet", key, out_sharding), float_dtype("dirichlet", dtype)
    inner = aval.shape[-1:]
    if shape is not None:
        shape = (*canonical_shape(shape), *inner)
    shape = result_shape("dirichlet", shape, alpha=alpha)
    logs = gamma_of(key, alpha, shape, dtype, True)
    parts = jnp.exp(logs - lax.stop_gradient(jnp.max(logs, axis=-1, keepdims=True, initial=-np.inf)))
    return parts / jnp.sum(parts, axis=-1, keepdims=True)


def _chisquare(key: Any, df: Any, shape: tuple[int, ...], dtype: np.dtype, method: str = "exact") -> Any:
    return jnp.exp(gamma_of(key, df / 2, shape, dtype, True, method)) * 2


@api_boundary
def chisquare(
    key: Any, df: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact", out_sharding: None = None
) -> Array:
    """Numbers of the chi-square distribution with `df` degrees of freedom.

    Parameters
    ----------
    key : key
    df : number or array
    shape, dtype, method : as in `beta`
    """
    key, shape, dtype, (df,) = _checked("chisquare", key, shape, dtype, out_sharding, method, df=df)
    return _chisquare(key, df, shape, dtype, method)


@api_boundary
def f(key: Any, dfnum: Any, dfden: Any, shape: Any = None, dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Numbers of the F distribution: quotients of chi-square numbers, each divided by its degrees of freedom.

    Parameters
    ----------
    key : key
    dfnum, dfden : numbers or arrays
        Degrees of freedom of numerator and denominator.
    shape, dtype : as in `beta`
    """
    key, shape, dtype, (m, n) = _checked("f", key, shape, dtype, out_sharding, dfnum=dfnum, dfden=dfden)
    for_n, for_m = split_key(key)
    return (_chisquare(for_m, m, shape, dtype) / m) / (_chisquare(for_n, n, shape, dtype) / n)


@api_boundary
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Numbers of Student's t distribution with `df` degrees of freedom.

    Parameters
    ----------
    key : key
    df : number or array
    shape, dtype : as in `beta`
    """
    key, shape, dtype, (df,) = _checked("t", key, shape, dtype, out_sharding, df=df)
    first, second = split_key(key)
    return normal_of(first, shape, dtype) * jnp.sqrt(df / 2 / gamma_of(second, df / 2, shape, dtype, False))


def _generalized_normal(key: Any, p: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    first, second = split_key(key)
    size = gamma_of(first, 1 / p, shape, dtype, False) ** (1 / p)
    return jnp.where(draw(second, shape, dtypes.default_float()) < 0.5, size, -size)


@api_boundary
def generalized_normal(key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Numbers of the generalized normal distribution, of density proportional to ``exp(-abs(x)**p)``.

    Parameters
    ----------
    key : key
    p : number or array
        Positive.
    shape : tuple of int
        To which `p` must broadcast.
    dtype : floating dtype
    """
    key, shape, dtype, (p,) = _checked("generalized_normal", key, shape, dtype, out_sharding, p=p)
    return _generalized_normal(key, p, shape, dtype)


@api_boundary
def ball(key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Points of the unit ball of the Lp norm in d dimensions, uniformly [1]_.

    Parameters
    ----------
    key : key
    d : int
    p : number
    shape : tuple of int
    dtype : floating dtype

    Returns
    -------
    Array of shape (*shape, d)

    .. [1] F. Barthe, O. Guedon, S. Mendelson, A. Naor, "A probabilistic approach to the geometry of the l_p^n-ball",
       Annals of Probability 33 (2005), arXiv:math/0503650.

    Examples
    --------
    >>> from xform import random
    >>> x = random.ball(random.key(0), 3, shape=(1000,))
    >>> bool(((x**2).sum(-1) < 1).all())
    True
    """
    key, dtype = key_of("ball", key, out_sharding), float_dtype("ball", dtype)
    shape, d = canonical_shape(shape), operator.index(d)
    if d < 0:
        raise ValueError(f"random.ball: the dimension d must not be negative, got {d}")
    if get_aval(p).shape:
        raise ValueError(f"random.ball: p must be a number, got {get_aval(p).str_short()}")
    p = lax.convert_element_type(p, dtype)
    first, second = split_key(key)
    g = _generalized_normal(first, p, (*shape, d), dtype)
    e = exponential_of(second, shape, dtype)
    return g / ((jnp.sum(abs(g) ** p, axis=-1) + e) ** (1 / p))[..., None]
