"""Samplers of how often something happens: Poisson, binomial and multinomial numbers.

Where few are expected, the distribution function is inverted by adding probabilities until they exceed a uniform
number; where many are, a proposal from a table-mountain density is accepted or rejected.

May import: `xform.numpy`, `xform.lax`, the other modules of `xform.random`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import xform.numpy as jnp
from xform import lax
from xform.core import dtypes
from xform.core.array import Array, get_aval
from xform.core.errors import api_boundary
from xform.lax.shapes import canonical_shape
from xform.numpy.promotion import array_of
from xform.random.arguments import float_dtype, integer_dtype, key_of, result_shape
from xform.random.continuous import normal_of
from xform.random.keys import hashed
from xform.random.repeated import repeated

_FEW = 10.0  # up to this mean the distribution function is inverted
_TERMS = 8  # probabilities added in one round


def _inverted(draws: Any, first: Any, a: Any, b: Any, mean: Any, where: Any) -> Any:
    """Numbers of a distribution whose probabilities are ``p[0] = first``, ``p[j+1] = p[j] * (a - b*j) / (j+1)``.

    The number is how many of the sums p[0], p[0] + p[1], ... a uniform number reaches; `where` not, 0.
    """
    zero = jnp.zeros_like(first)
    eps = float(dtypes.finfo(draws.dtype).eps)

    def draw(_: Any, __: Any, ___: Any, uniforms: Any) -> Any:
        return jnp.full(uniforms[0].shape, True), uniforms

    def add(i: Any, carry: Any, fixed: Any, _: Any) -> Any:
        (k, p, total), (u, a, b, mean) = carry, fixed
        j = lax.convert_element_type(i, draws.dtype) * _TERMS
        for step in range(_TERMS):
            reached = u >= total
            k = k + reached
            p = p * (a - b * (j + step)) / (j + (step + 1))
            total = total + p
        # Rounding may keep the sum of all probabilities below u.
        return (u < total) | ((p < eps / 8) & (j + _TERMS > mean)), [k, p, total]

    (u,) = draws.until(draw, [zero], [], ~where, 1)
    return draws.until(add, [zero, first, first], [u, a, b, mean], ~where)[0]


def _tail(k: Any) -> Any:
    """``log(k!) - ((k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2)``, by Stirling's series.

    Its error, 3e-4 at 0 and 2e-9 at 5, is that of probabilities which are below exp(-10) of the largest one.
    """
    r = 1 / (k + 1)
    return r * (1 / 12 - r * r * (1 / 360 - r * r * (1 / 1260)))


def _proposed(
    draws: Any,
    spread: Sequence[Any],
    parameters: Sequence[Any],
    log_ratio: Callable[..., Any],
    largest: Any,
    where: Any,
) -> Any:
    """Numbers by transformed rejection [1]_, [2]_; `where` not, 0.

    Parameters
    ----------
    spread : a, b, c, alpha, v_r in the papers
    parameters : arrays
    log_ratio : (k, *parameters) -> logarithm of the probability of k, up to what alpha contains
    largest : the largest number possible

    .. [1] W. Hoermann, "The transformed rejection method for generating Poisson random variables", Insurance:
       Mathematics and Economics 12 (1993), https://doi.org/10.1016/0167-6687(93)90997-4: algorithm PTRS.
    .. [2] W. Hoermann, "The generation of binomial random variates", Journal of Statistical Computation and Simulation
       46 (1993), https://doi.org/10.1080/00949659308811496: algorithm BTRS.
    """
    smallest = float(dtypes.finfo(draws.dtype).eps) / 4

    def propose(_: Any, __: Any, fixed: Any, uniforms: Any) -> Any:
        (a, b, c, alpha, v_r, largest, *parameters), (u, v) = fixed, uniforms
        u = u - 0.5
        u_s = jnp.maximum(0.5 - abs(u), smallest)
        k = jnp.floor((2 * a / u_s + b) * u + c)
        possible = jnp.clip(k, 0, largest)
        v = 1 - v  # of (0, 1]
        level = jnp.log(v * alpha / (a / (u_s * u_s) + b))
        surely = (u_s >= 0.07) & (v <= v_r)
        return surely | ((k == possible) & (level <= log_ratio(possible, *parameters))), [possible]

    zero = jnp.zeros_like(largest)
    return draws.until(propose, [zero], [*spread, largest, *parameters], ~where, 2)[0]


# ---- Poisson -----------------------------------------------------------------------------------------------


def _sample_poisson(draws: Any, rate: Any) -> Any:
    few, many = (rate >= 0) & (rate < _FEW), (rate >= _FEW) & (rate < np.inf)
    low, high = jnp.where(few, rate, 1), jnp.where(many, rate, _FEW)
    small = _inverted(draws, jnp.exp(-low), low, jnp.zeros_like(low), low, few)
    b = 0.931 + 2.53 * jnp.sqrt(high)
    a = 0.02483 * b - 0.059

    def log_ratio(k: Any, rate: Any, log_rate: Any) -> Any:
        """Of the probability; without the difference of large numbers that k log(rate) - rate - log(k!) is."""
        d = k + 1 - rate
        y = d / rate
        logarithm = jnp.log1p(y)
        return d - k * logarithm - 0.5 * (logarithm + log_rate) - 0.5 * math.log(2 * math.pi) - _tail(k)

    spread = [a, b, high + 0.43, 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)]
    largest = jnp.full_like(high, float(dtypes.finfo(draws.dtype).max))
    large = _proposed(draws, spread, [high, jnp.log(high)], log_ratio, largest, many)
    return jnp.where(few, small, jnp.where(many, large, -1))


random_poisson_p = repeated("random_poisson", _sample_poisson)


_PEIZER = 7.0  # from this mean on the normal approximation is used
_SERIES = 10


def _approximate_poisson(key: Any, rate: Any) -> Any:
    """Numbers that increase with a normal one, z, without a loop.

    For small rates 20 probabilities are added. For large ones it is the smallest k with z(k) >= z, where z(k) is the
    normal approximation of Peizer and Pratt [1]_, and is sought around an expansion of its root.

    .. [1] D. B. Peizer, J. W. Pratt, "A normal approximation for binomial, F, beta, and other common, related tail
       probabilities", Journal of the American Statistical Association 63 (1968),
       https://doi.org/10.1080/01621459.1968.10480938.
    """
    z = normal_of(key, rate.shape, rate.dtype)
    few = rate < _PEIZER
    low, high = jnp.where(few, rate, 1), jnp.where(few, _PEIZER, rate)

    u = 0.5 * lax.erfc(z * -math.sqrt(0.5))
    p = total = jnp.exp(-low)
    small = jnp.zeros_like(rate)
    for j in range(1, 20):
        small = small + (total < u)
        p = p * low / j
        total = total + p

    def approximation(k: Any) -> Any:
        inside = jnp.maximum(k, 0)
        d = (inside + 0.5) / high - 1
        near = abs(d) < 0.25
        series: Any = 0.0
        for n in reversed(range(1, _SERIES)):
            series = d * (series + 2 * (-1) ** n / ((n + 1) * (n + 2)))
        d = jnp.where(near, 1, d)
        correction = jnp.where(near, series, 2 * (1 + d) * jnp.log1p(d) / (d * d) - (2 + d) / d)
        scale = jnp.sqrt((1 + correction) / high)
        return jnp.where(k < 0, -np.inf, (inside - high + 2 / 3 + 0.02 / (inside + 1)) * scale)

    root = jnp.sqrt(high)
    middle = jnp.ceil(high + root * z + z * z / 6 + z * (1 - z * z) / (72 * root) - 2 / 3 + 0.6)
    large = middle + 1 - (approximation(middle) >= z) - (approximation(middle - 1) >= z)
    valid = (rate >= 0) & (rate < np.inf)
    return jnp.where(valid, jnp.where(few, small, jnp.maximum(large, 0)), -1)


@api_boundary
def poisson(
    key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, method: str = "exact", out_sharding: None = None
) -> Array:
    """Integers of the Poisson distribution, of probability ``lam**k * exp(-lam) / k!``.

    Parameters
    ----------
    key : key
    lam : number or array
        The mean. Where it is negative, infinite or NaN the result is -1.
    shape : tuple of int, optional
        By default that of `lam`, which must broadcast to it.
    dtype : integer dtype
        int64 by default (int32 when 64-bit types are off).
    method : {'exact', 'approximate'}
        'approximate' has no loop: faster on accelerators, with probabilities off by 1e-4 in all.

    Examples
    --------
    >>> from xform import random
    >>> x = random.poisson(random.key(0), 4.0, (10000,))
    >>> bool(abs(x.mean() - 4) < 0.1), bool(abs(x.var() - 4) < 0.2)
    (True, True)
    """
    key, dtype = key_of("poisson", key, out_sharding), integer_dtype("poisson", dtype)
    if method not in ("exact", "approximate"):
        raise ValueError(f"random.poisson: method must be 'exact' or 'approximate', got {method!r}")
    shape = result_shape("poisson", shape, lam=lam)
    rate = jnp.broadcast_to(lax.convert_element_type(lam, dtypes.default_float()), shape)
    if method == "approximate":
        return lax.convert_element_type(_approximate_poisson(key, rate), dtype)
    return random_poisson_p.bind(hashed(key), rate, dtype=dtype)


# ---- Binomial ----------------------------------------------------------------------------------------------


def _sample_binomial(draws: Any, n: Any, p: Any) -> Any:
    n = jnp.floor(n)
    valid, rare = (n >= 0) & (p >= 0) & (p <= 1), p < 0.5
    finite = valid & (n < np.inf)
    q = jnp.where(valid, jnp.where(rare, p, 1 - p), 0)
    given, n = n, jnp.where(finite, n, 0)
    few = finite & (n * q <= _FEW)
    many = finite & (n * q > _FEW)

    low = jnp.where(few, n, 0)
    ratio = q / (1 - q)
    small = _inverted(draws, jnp.exp(low * jnp.log1p(-q)), low * ratio, ratio, low * q, few)

    high, q = jnp.where(many, n, 100), jnp.where(many, q, 0.5)
    deviation = jnp.sqrt(high * q * (1 - q))
    b = 1.15 + 2.53 * deviation
    a = 0.0248 * b + 0.01 * q - 0.0873
    spread = [a, b, high * q + 0.5, (2.83 + 5.1 / b) * deviation, 0.92 - 4.2 / b]
    mode = jnp.floor((high + 1) * q)
    slope = jnp.log(q / (1 - q) * (high - mode + 1) / (mode + 1))
    at_mode = _tail(mode) + _tail(high - mode)

    def log_ratio(k: Any, n: Any, mode: Any, slope: Any, at_mode: Any) -> Any:
        """Of the probability, to that of the mode."""
        d = k - mode
        sides = (k + 0.5) * jnp.log1p(d / (mode + 1)) + (n - k + 0.5) * jnp.log1p(-d / (n - mode + 1))
        return d * slope - sides + at_mode - _tail(k) - _tail(n - k)

    large = _proposed(draws, spread, [high, mode, slope, at_mode], log_ratio, high, many)
    k = jnp.where(few, jnp.minimum(small, n), large)
    k = jnp.where(rare, k, n - k)
    return jnp.where(finite, k, jnp.where(valid, given, np.nan))


random_binomial_p = repeated("random_binomial", _sample_binomial)


@api_boundary
def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Array:
    """Numbers of successes in `n` trials, each of which succeeds with probability `p`, as floats.

    Parameters
    ----------
    key : key
    n : number or array
        Rounded down; infinite, it gives infinity, negative or NaN, it gives NaN.
    p : number or array
        Outside [0, 1] it gives NaN.
    shape : tuple of int, optional
        By default that of `n` and `p`, which must broadcast to it.
    dtype : floating dtype
        float64 by default (float32 when 64-bit types are off). Numbers are computed in the dtype of `p`.

    Examples
    --------
    >>> from xform import random
    >>> random.binomial(random.key(0), 10, np.array([0.0, 0.5, 1.0])).tolist()[::2]
    [0.0, 10.0]
    """
    key, dtype = key_of("binomial", key), float_dtype("binomial", dtype)
    shape = result_shape("binomial", shape, n=n, p=p)
    return _binomial(key, n, p, shape, dtype)


def _binomial(key: Any, n: Any, p: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    kind = get_aval(p).dtype
    kind = kind if dtypes.issubdtype(kind, np.floating) and kind.itemsize >= 4 else dtypes.default_float()
    n, p = (jnp.broadcast_to(lax.convert_element_type(x, kind), shape) for x in (n, p))
    return random_binomial_p.bind(hashed(key), n, p, dtype=dtype)


@api_boundary
def multinomial(key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None, unroll: int | bool = 1) -> Array:
    """How often each of several outcomes comes in `n` trials, as floats.

    Parameters
    ----------
    key : key
    n : number or array
    p : array of shape (..., k)
        The probabilities of the outcomes, in proportion to one another.
    shape : tuple of int, optional
        Of the result; by default that of `p`. (The last length is k.)
    dtype : floating dtype
        By default that of `p` and `n`.
    unroll : int or bool
        How many steps an iteration of the loop over the outcomes has (see `lax.scan`).

    Examples
    --------
    >>> from xform import random
    >>> counts = random.multinomial(random.key(0), 100, np.array([0.2, 0.3, 0.5]))
    >>> float(counts.sum())
    100.0
    """
    key, n, p = key_of("multinomial", key), array_of("multinomial", n, "n"), array_of("multinomial", p, "p")
    kind = dtypes.result_type(n, p)
    kind = kind if dtypes.issubdtype(kind, np.floating) else dtypes.default_float()
    dtype = kind if dtype is None else float_dtype("multinomial", dtype)
    if not p.ndim:
        raise ValueError(f"random.multinomial: p must have at least one axis, got {get_aval(p).str_short()}")
    shape = p.shape if shape is None else canonical_shape(shape)
    if not shape or shape[-1] != p.shape[-1]:
        raise ValueError(f"random.multinomial: shape must end with the number of outcomes {p.shape[-1]}, got {shape}")
    result_shape("multinomial", shape, p=p)
    result_shape("multinomial", shape[:-1], n=n)
    n = jnp.broadcast_to(lax.convert_element_type(n, kind), shape[:-1])
    p = jnp.moveaxis(jnp.broadcast_to(lax.convert_element_type(p, kind), shape), -1, 0)
    rest = lax.cumsum(p, 0, reverse=True)
    ratios = jnp.clip(p / jnp.where(rest == 0, 1, rest), 0, 1)
    keys = key._like(key.dtype.generator.split(key._data, ratios.shape[:1]))

    def step(left: Any, outcome: Any) -> Any:
        ratio, key = outcome
        count = _binomial(key, left, ratio, shape[:-1], kind)
        return left - count, count

    _, counts = lax.scan(step, n, (ratios, keys), unroll=unroll)
    return lax.convert_element_type(jnp.moveaxis(counts, 0, -1), dtype)
