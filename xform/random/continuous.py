"""Samplers of real numbers.

Each is a function of uniform numbers, most often the inverse of the distribution function.

May import: `xform.numpy`, `xform.lax`, the other modules of `xform.random`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import xform.numpy as jnp
from xform import lax
from xform.core import dtypes
from xform.core.array import Array, get_aval
from xform.core.errors import api_boundary
from xform.lax.shapes import canonical_shape
from xform.lax.special import erf_inv_p
from xform.numpy.promotion import expand_to
from xform.random.arguments import draw, float_dtype, key_of, result_shape
from xform.random.keys import split_key

_NUMBERS = (int, float, np.generic)


def between(key: Any, shape: tuple[int, ...], dtype: np.dtype, low: Any, high: Any) -> Any:
    """Uniform numbers of [low, high), which are numbers or arrays that broadcast to `shape`."""
    u = draw(key, shape, dtype)
    if isinstance(low, _NUMBERS) and isinstance(high, _NUMBERS):
        low, high = dtype.type(low), dtype.type(high)
        if low == 0 and high == 1:
            return u
        low, span = float(low), float(high - low)
    else:
        low, high = (lax.convert_element_type(x, dtype) for x in (low, high))
        low, high = (expand_to(x, shape) if get_aval(x).ndim else x for x in (low, high))
        span = lax.sub(high, low)
    return jnp.maximum(u * span + low, low)


@api_boundary
def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, *, out_sharding: None = None
) -> Array:
    """Uniform numbers of [minval, maxval).

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : floating dtype
        float64 by default (float32 when 64-bit types are off). A float of n fraction bits is one of 2**n equidistant
        numbers; bfloat16 has 128.
    minval, maxval : numbers or arrays that broadcast to `shape`

    Examples
    --------
    >>> from xform import random
    >>> random.uniform(random.key(0), (2,), minval=-1).round(4).tolist()
    [-0.1631, -0.5674]
    """
    key, dtype = key_of("uniform", key, out_sharding), float_dtype("uniform", dtype)
    return between(key, result_shape("uniform", shape or (), minval=minval, maxval=maxval), dtype, minval, maxval)


def normal_of(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    return erf_inv_p.bind(between(key, shape, dtype, low, 1)) * float(dtype.type(math.sqrt(2)))


@api_boundary
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Normal numbers of mean 0 and variance 1.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : floating or complex dtype
        float64 by default (float32 when 64-bit types are off). Of a complex number both parts are normal, with
        variance 1/2.

    Examples
    --------
    >>> from xform import random
    >>> x = random.normal(random.key(0), (10000,))
    >>> bool(abs(x.mean()) < 0.03), bool(abs(x.var() - 1) < 0.03)
    (True, True)
    """
    key, shape = key_of("normal", key, out_sharding), canonical_shape(shape)
    if dtype is None or not dtypes.issubdtype(dtypes.check_user_dtype(dtype, "random.normal"), np.complexfloating):
        return normal_of(key, shape, float_dtype("normal", dtype))
    dtype = dtypes.check_user_dtype(dtype, "random.normal")
    part = np.finfo(dtype).dtype
    re, im = (normal_of(w, shape, part) for w in split_key(key))
    return lax.complex(re, im) / dtype.type(math.sqrt(2))


@api_boundary
def truncated_normal(
    key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Normal numbers of mean 0 and variance 1, under the condition that they are between `lower` and `upper`.

    Parameters
    ----------
    key : key
    lower, upper : numbers or arrays
    shape : tuple of int, optional
        By default that of `lower` and `upper`, which must broadcast to it.
    dtype : floating dtype
    """
    key, dtype = key_of("truncated_normal", key, out_sharding), float_dtype("truncated_normal", dtype)
    shape = result_shape("truncated_normal", shape, lower=lower, upper=upper)
    lower, upper = (lax.convert_element_type(x, dtype) for x in (lower, upper))
    root = dtype.type(math.sqrt(2))
    x = erf_inv_p.bind(between(key, shape, dtype, lax.erf(lower / root), lax.erf(upper / root))) * float(root)
    inside = [lax.nextafter(lax.stop_gradient(e), dtype.type(d)) for e, d in ((lower, np.inf), (upper, -np.inf))]
    return jnp.clip(x, *inside)


def _standard(name: str, transform: Callable[..., Any], low: Callable[[Any], float], doc: str) -> Callable[..., Array]:
    """A sampler without parameters: `transform` of uniform numbers of [low(finfo), 1)."""

    def sampler(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: None = None) -> Array:
        key, dtype = key_of(name, key, out_sharding), float_dtype(name, dtype)
        return transform(between(key, canonical_shape(shape), dtype, low(dtypes.finfo(dtype)), 1))

    sampler.__name__ = sampler.__qualname__ = name
    sampler.__doc__ = f"""{doc}

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : floating dtype
        float64 by default (float32 when 64-bit types are off).
    """
    return api_boundary(sampler)


def exponential_of(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Numbers of the exponential distribution."""
    return -jnp.log1p(-draw(key, shape, dtype))


exponential = _standard(
    "exponential",
    lambda u: -jnp.log1p(-u),
    lambda f: 0,
    "Numbers of the exponential distribution, of density exp(-x) for x > 0.",
)
laplace = _standard(
    "laplace",
    lambda u: lax.sign(u) * jnp.log1p(-abs(u)),
    lambda f: -1.0 + float(f.epsneg),
    "Numbers of the Laplace distribution, of density exp(-abs(x)) / 2.",
)
logistic = _standard(
    "logistic",
    lambda u: jnp.log(u) - jnp.log1p(-u),
    lambda f: float(f.tiny),
    "Numbers of the logistic distribution, of density exp(-x) / (1 + exp(-x))**2.",
)
cauchy = _standard(
    "cauchy",
    lambda u: lax.tan((u - 0.5) * math.pi),
    lambda f: float(f.eps),
    "Numbers of the Cauchy distribution, of density 1 / (pi * (1 + x**2)).",
)


def gumbel_of(name: str, key: Any, shape: tuple[int, ...], dtype: np.dtype, mode: str | None) -> Any:
    """Numbers of the Gumbel distribution for the sampler `name`."""
    info = dtypes.finfo(dtype)
    if mode in (None, "low"):
        return -jnp.log(-jnp.log(between(key, shape, dtype, float(info.tiny), 1)))
    if mode != "high":
        raise ValueError(f"random.{name}: mode must be None, 'low' or 'high', got {mode!r}")
    high, low = draw(key, (2, *shape), dtype)
    smallest = max(2.0 ** -(2 * info.nmant + 1), float(info.tiny))
    x = jnp.where(high >= 0.5, high, high + low * 2.0**-info.nmant + smallest)
    return -jnp.log(-jnp.log1p(-x))


@api_boundary
def gumbel(
    key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None, *, out_sharding: None = None
) -> Array:
    """Numbers of the Gumbel distribution, of density ``exp(-(x + exp(-x)))``.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : floating dtype
        float64 by default (float32 when 64-bit types are off).
    mode : {'low', 'high'}, optional
        'high' draws twice the bits: in float32, the largest number is then near 32 instead of 16.
    """
    key, dtype = key_of("gumbel", key, out_sharding), float_dtype("gumbel", dtype)
    return gumbel_of("gumbel", key, canonical_shape(shape), dtype, mode)


# ---- With parameters ---------------------------------------------------------------------------------------


def _parametric(
    name: str, key: Any, shape: Any, dtype: Any, out_sharding: None, **parameters: Any
) -> tuple[Any, tuple[int, ...], np.dtype, list[Any]]:
    """The key's data, the shape, the dtype, and the parameters converted to it."""
    key, dtype = key_of(name, key, out_sharding), float_dtype(name, dtype)
    shape = result_shape(name, shape, **parameters)
    return key, shape, dtype, [lax.convert_element_type(p, dtype) for p in parameters.values()]


@api_boundary
def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Numbers whose logarithm is normal, of mean 0 and standard deviation `sigma`.

    Parameters
    ----------
    key : key
    sigma : number or array
    shape : tuple of int, optional
        By default that of the parameters, which must broadcast to it; so in all samplers that have parameters.
    dtype : floating dtype
    """
    key, shape, dtype, (sigma,) = _parametric("lognormal", key, shape, dtype, out_sharding, sigma=sigma)
    return jnp.exp(normal_of(key, shape, dtype) * sigma)


@api_boundary
def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Numbers of the Maxwell distribution: lengths of vectors of 3 normal numbers.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : floating dtype
    """
    key, dtype = key_of("maxwell", key, out_sharding), float_dtype("maxwell", dtype)
    return _maxwell(key, canonical_shape(shape), dtype)


def _maxwell(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return jnp.sqrt(jnp.sum(jnp.square(normal_of(key, (*shape, 3), dtype)), axis=-1))


@api_boundary
def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the Maxwell distribution times `scale`, of random sign, plus `loc`.

    Parameters
    ----------
    key : key
    loc, scale : numbers or arrays
    shape : tuple of int
        The result has the axes of `shape` before those of the parameters.
    dtype : floating dtype
    """
    key, inner, dtype, (loc, scale) = _parametric("double_sided_maxwell", key, None, dtype, None, loc=loc, scale=scale)
    shape = (canonical_shape(shape) or inner) + inner
    size, sign = split_key(key)
    heads = draw(sign, shape, dtypes.default_float()) < 0.5
    return jnp.where(heads, dtype.type(1), dtype.type(-1)) * _maxwell(size, shape, dtype) * scale + loc


@api_boundary
def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Numbers of the Pareto distribution, of density ``b / x**(b + 1)`` for x >= 1.

    Parameters
    ----------
    key : key
    b : number or array
    shape, dtype : as in `lognormal`
    """
    key, shape, dtype, (b,) = _parametric("pareto", key, shape, dtype, out_sharding, b=b)
    return jnp.exp(-jnp.log1p(-draw(key, shape, dtype)) / b)


@api_boundary
def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Numbers of the Rayleigh distribution, of density ``x * exp(-x**2 / 2)`` for x > 0, times `scale`.

    Parameters
    ----------
    key : key
    scale : number or array
    shape, dtype : as in `lognormal`
    """
    key, shape, dtype, (scale,) = _parametric("rayleigh", key, shape, dtype, out_sharding, scale=scale)
    return jnp.sqrt(jnp.log(draw(key, shape, dtype)) * -2.0) * scale


@api_boundary
def triangular(
    key: Any, left: Any, mode: Any, right: Any, shape: Any = None, dtype: Any = None, *, out_sharding: None = None
) -> Array:
    """Numbers whose density rises linearly from `left` to `mode` and falls linearly to `right`.

    Parameters
    ----------
    key : key
    left, mode, right : numbers or arrays
    shape, dtype : as in `lognormal`
    """
    key, shape, dtype, (left, mode, right) = _parametric(
        "triangular", key, shape, dtype, out_sharding, left=left, mode=mode, right=right
    )
    u = draw(key, shape, dtype)
    width = right - left
    rising = left + jnp.sqrt(u * width * (mode - left))
    falling = right - jnp.sqrt((1 - u) * width * (right - mode))
    return jnp.where(u < (mode - left) / width, rising, falling)


@api_boundary
def wald(key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Numbers of the Wald (inverse Gaussian) distribution of scale 1 [1]_.

    Parameters
    ----------
    key : key
    mean : number or array
    shape, dtype : as in `lognormal`

    .. [1] J. R. Michael, W. R. Schucany, R. W. Haas, "Generating random variates using transformations with multiple
       roots", The American Statistician 30 (1976), https://doi.org/10.1080/00031305.1976.10479147.
    """
    key, shape, dtype, (mean,) = _parametric("wald", key, shape, dtype, out_sharding, mean=mean)
    first, second = split_key(key)
    y = jnp.square(normal_of(first, shape, dtype))
    x = mean + mean * mean * y / 2 - mean / 2 * jnp.sqrt(4 * mean * y + mean * mean * y * y)
    return jnp.where(draw(second, shape, dtype) <= mean / (mean + x), x, mean * mean / x)


@api_boundary
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Numbers of the Weibull distribution, of density ``c * x**(c-1) * exp(-x**c)`` for x > 0, times `scale`.

    Parameters
    ----------
    key : key
    scale : number or array
    concentration : number or array
        c in the density.
    shape : tuple of int
        To which the parameters must broadcast.
    dtype : floating dtype
    """
    key, shape, dtype, (scale, concentration) = _parametric(
        "weibull_min", key, shape, dtype, None, scale=scale, concentration=concentration
    )
    return (-jnp.log1p(-draw(key, shape, dtype))) ** (1 / concentration) * scale
