"""Samplers of bits, integers, choices and orders.

May import: `xform.numpy`, `xform.lax`, the other modules of `xform.random`.
"""

import math
import operator
from typing import Any

import numpy as np

import xform.numpy as jnp
from xform import lax
from xform.core import dtypes
from xform.core.array import Array, ArrayImpl, get_aval
from xform.core.errors import api_boundary
from xform.lax.shapes import canonical_shape
from xform.numpy.promotion import array_of, canonical_axis
from xform.random.arguments import draw, float_dtype, integer_dtype, key_of, result_shape, unsigned_dtype
from xform.random.continuous import gumbel_of
from xform.random.keys import split_key

_INT32, _U32 = np.dtype("int32"), np.dtype("uint32")


@api_boundary
def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Random bits, as unsigned integers.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : unsigned integer dtype
        uint64 by default (uint32 when 64-bit types are off).

    Examples
    --------
    >>> from xform import random
    >>> random.bits(random.key(0), (2,), "uint32")
    Array([4070199207, 4202968722], dtype=uint32)
    """
    key = key_of("bits", key, out_sharding)
    return draw(key, canonical_shape(shape), unsigned_dtype("bits", dtype))


# ---- Integers ----------------------------------------------------------------------------------------------


@api_boundary
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Random integers of [minval, maxval).

    They are remainders of random numbers of n bits, those of the dtype and 32 at least (2 n bits where
    maxval - minval is not above 2**(n/2)). So some are more probable than others, by a factor below
    1 + (maxval - minval) / 2**n.

    Parameters
    ----------
    key : key
    shape : tuple of int
    minval, maxval : integers, or integer arrays that broadcast to `shape`
        Beyond the range of the dtype they stand for its ends. Where maxval <= minval the result is minval.
    dtype : integer dtype
        int64 by default (int32 when 64-bit types are off).

    Examples
    --------
    >>> from xform import random
    >>> random.randint(random.key(0), (5,), 0, 10).tolist()
    [5, 1, 5, 7, 3]
    """
    key, dtype = key_of("randint", key, out_sharding), integer_dtype("randint", dtype)
    shape = result_shape("randint", shape, minval=minval, maxval=maxval)
    wide = dtype if dtype.itemsize >= 4 else _INT32
    unsigned = np.dtype(f"uint{8 * wide.itemsize}")
    half = 1 << 4 * wide.itemsize  # its square, 2**n, modulo the range is what the high n bits count
    low, high = _integer(minval), _integer(maxval)
    span: Any  # Python integers or arrays
    carry: Any
    if isinstance(low, int) and isinstance(high, int):
        low, span = _range_of_numbers(low, high, dtype)
        carry = (half % span) ** 2 % half**2 % span
        span %= half**2
    else:
        low, span = (jnp.broadcast_to(x, shape) for x in _range_of_arrays(low, high, dtype, wide, unsigned))
        rest = _modulo(jnp.full_like(span, half), span)
        carry = _modulo(rest * rest, span)
    first, second = split_key(key)
    offset = _modulo(draw(second, shape, unsigned), span)
    if not (isinstance(carry, int) and carry == 0):
        offset = _modulo(_modulo(draw(first, shape, unsigned), span) * carry + offset, span)
    return (offset.astype(wide) + low).astype(dtype)


def _integer(x: Any) -> Any:
    """A Python integer if it is a known number, else an integer array; floats are cut off."""
    if isinstance(x, int | float | np.generic) or (type(x) is ArrayImpl and not x.ndim):
        return int(x)
    x = array_of("randint", x)
    return x if dtypes.issubdtype(x.dtype, np.integer) else x.astype(dtypes.default_int())


def _range_of_numbers(low: int, high: int, dtype: np.dtype) -> tuple[int, int]:
    """The lower end and the length of a range, which is 1 at least, within the dtype's."""
    info = dtypes.iinfo(dtype)
    low = min(max(low, int(info.min)), int(info.max))
    return low, max(min(high, int(info.max) + 1) - low, 1)


def _range_of_arrays(low: Any, high: Any, dtype: np.dtype, wide: np.dtype, unsigned: np.dtype) -> tuple[Any, Any]:
    """The same for arrays, in the dtypes `wide` and `unsigned`, where the length 2**n is 0."""
    low, high = (jnp.asarray(x) for x in (low, high))
    (low, _), (high, beyond) = (_clipped(x, dtypes.iinfo(dtype), dtypes.iinfo(x.dtype)) for x in (low, high))
    low, high = low.astype(wide), high.astype(wide)
    some = high > low
    return low, jnp.where(some, (high - low).astype(unsigned), unsigned.type(1)) + (beyond & some).astype(unsigned)


def _clipped(x: Any, target: Any, own: Any) -> tuple[Any, Any]:
    """`x` within the range of a dtype, and where it is above that."""
    largest = min(int(target.max), int(own.max))
    return jnp.clip(x, max(int(target.min), int(own.min)), largest), x > largest


def _modulo(x: Any, span: Any) -> Any:
    """``x % span`` of unsigned integers, where 0 stands for 2**n."""
    if isinstance(span, int):
        return x % span if span else x
    # XLA has x % 0 == x; but where it does the division at compile time, the process ends.
    whole = span == 0
    return jnp.where(whole, x, lax.rem(x, span + whole))


@api_boundary
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: None = None) -> Array:
    """Booleans that are True with probability `p`.

    Parameters
    ----------
    key : key
    p : float or floating array
    shape : tuple of int, optional
        By default that of `p`, which must broadcast to it.
    mode : {'low', 'high'}
        'high' draws twice the bits; needed for probabilities below 1e-7 in float32.

    Examples
    --------
    >>> from xform import random
    >>> random.bernoulli(random.key(0), 0.9, (3,)).tolist()
    [True, True, False]
    """
    key, shape = key_of("bernoulli", key, out_sharding), result_shape("bernoulli", shape, p=p)
    if mode not in ("low", "high"):
        raise ValueError(f"random.bernoulli: mode must be 'low' or 'high', got {mode!r}")
    aval = get_aval(p)
    if not dtypes.issubdtype(aval.dtype, np.floating):
        raise TypeError(
            f"random.bernoulli: the probability p must be a float or floating array, got {aval.str_short()}"
        )
    dtype = float_dtype("bernoulli", aval.dtype)
    if mode == "low":
        return draw(key, shape, dtype) < p
    high, low = draw(key, (2, *shape), dtype)
    return low * 2.0 ** -dtypes.finfo(dtype).nmant < p - high


@api_boundary
def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: None = None) -> Array:
    """Numbers 1 and -1 of equal probability.

    Parameters
    ----------
    key : key
    shape : tuple of int
    dtype : numeric dtype
        int64 by default (int32 when 64-bit types are off).
    """
    key = key_of("rademacher", key, out_sharding)
    dtype = dtypes.default_int() if dtype is None else dtypes.check_user_dtype(dtype, "random.rademacher")
    heads = draw(key, canonical_shape(shape), dtypes.default_float()) < 0.5
    return lax.select_n(heads, *(lax.full(heads.shape, value, dtype) for value in (-1, 1)))


@api_boundary
def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: None = None) -> Array:
    """How many trials, each of which succeeds with probability `p`, it takes to the first success.

    Parameters
    ----------
    key : key
    p : number or array
    shape : tuple of int, optional
        By default that of `p`, which must broadcast to it.
    dtype : integer dtype
        int64 by default (int32 when 64-bit types are off).
    """
    key, shape = key_of("geometric", key, out_sharding), result_shape("geometric", shape, p=p)
    dtype = integer_dtype("geometric", dtype)
    kind = float_dtype("geometric", get_aval(p).dtype)
    u = draw(key, shape, kind)
    u = jnp.where(u == 0, kind.type(1), u)
    return (jnp.floor(jnp.log(u) / jnp.log1p(-lax.convert_element_type(p, kind))) + 1).astype(dtype)


# ---- Choices -----------------------------------------------------------------------------------------------


@api_boundary
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Indices of categories, whose probabilities are proportional to ``exp(logits)`` along an axis.

    The largest of ``logits + gumbel`` is chosen [1]_; without replacement, the largest ones [2]_.

    Parameters
    ----------
    key : key
    logits : floating array
    axis : int
        The axis of the categories.
    shape : tuple of int, optional
        Ends with the shape of `logits` without `axis`, which it is by default; (with `replace`, what broadcasts to it).
    replace : bool
        Whether the same category may be drawn again along the leading axes of `shape`.
    mode : {'low', 'high'}, optional
        See `gumbel`; 'high' is needed for probabilities below 1e-7 in float32.

    Returns
    -------
    Integers

    .. [1] E. J. Gumbel, "Statistical theory of extreme values and some practical applications", 1954.
    .. [2] W. Kool, H. van Hoof, M. Welling, "Stochastic beams and where to find them", ICML 2019, arXiv:1903.06059.

    Examples
    --------
    >>> import xform.numpy as jnp
    >>> from xform import random
    >>> random.categorical(random.key(0), jnp.log(jnp.array([0.1, 0.2, 0.7])), shape=(5,)).tolist()
    [2, 2, 2, 1, 1]
    """
    key, logits = key_of("categorical", key, out_sharding), array_of("categorical", logits, "logits")
    dtype = float_dtype("categorical", logits.dtype)
    axis = canonical_axis("categorical", axis, logits.ndim)
    rest = logits.shape[:axis] + logits.shape[axis + 1 :]
    shape = rest if shape is None else canonical_shape(shape)
    lead, own = shape[: len(shape) - len(rest)], shape[len(shape) - len(rest) :]
    fits = len(own) == len(rest) and all(n == m or (n == 1 and replace) for n, m in zip(rest, own))
    if not fits:
        raise ValueError(
            f"random.categorical: logits of shape {logits.shape} without axis {axis} have shape {rest}, with which "
            f"the result's shape must end, got {shape}"
        )
    if replace:
        noise = gumbel_of("categorical", key, (*lead, *own[:axis], logits.shape[axis], *own[axis:]), dtype, mode)
        return lax.argmax(noise + logits, len(lead) + axis, dtypes.default_int())
    count = math.prod(lead)
    if count > logits.shape[axis]:
        raise ValueError(
            f"random.categorical: {count} draws without replacement of {logits.shape[axis]} categories are not possible"
        )
    noisy = jnp.moveaxis(logits + gumbel_of("categorical", key, logits.shape, dtype, mode), axis, -1)
    return lax.reshape(jnp.moveaxis(_largest(noisy, count), -1, 0), shape)


def _largest(x: Any, count: int) -> Any:
    """Indices of the largest elements along the last axis, the largest first."""
    return lax.convert_element_type(lax.top_k(x, count)[1], dtypes.default_int())


@api_boundary
def choice(
    key: Any,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Random elements of an array, or of ``0, ..., a - 1``.

    Parameters
    ----------
    key : key
    a : array, or int
    shape : tuple of int
        How many.
    replace : bool
        Whether the same element may be drawn again.
    p : array of shape (number of elements,), optional
        Probabilities; by default all are equal. Without `replace` at least as many must be above 0 as are drawn.
    axis : int
        Of `a`, the axis along which elements are chosen.
    mode : {'low', 'high'}, optional
        See `gumbel`, with which `p` without `replace` is sampled.

    Returns
    -------
    The array's shape with `shape` in place of `axis`

    Raises ValueError if more elements are asked for than there are.

    Examples
    --------
    >>> from xform import random
    >>> random.choice(random.key(0), 10, (4,), replace=False).tolist()
    [0, 1, 8, 5]
    """
    key, shape = key_of("choice", key), canonical_shape(shape)
    count, population, axis = _population("choice", a, axis)
    drawn = math.prod(shape)
    if drawn and not count:
        raise ValueError("random.choice: there is nothing to choose from")
    if not replace and drawn > count:
        raise ValueError(f"random.choice: {drawn} elements without replacement of {count} are not possible")
    if p is not None:
        index = _weighted(key, _probabilities(p, count), shape, replace, mode)
    elif replace:
        index = randint(key, shape, 0, count)
    else:
        index = lax.slice_in_dim(_shuffle(key, lax.iota(dtypes.default_int(), count), 0), 0, drawn)
    index = lax.reshape(index, shape)
    return index if population is None else _taken(population, index, axis)


def _population(name: str, a: Any, axis: int) -> tuple[int, Any, int]:
    """How many elements there are to choose from, and the array with its axis, or None for the first integers."""
    if isinstance(a, list | tuple) or get_aval(a).ndim:
        a = array_of(name, a)
        axis = canonical_axis(name, axis, a.ndim)
        return a.shape[axis], a, axis
    if not dtypes.issubdtype(get_aval(a).dtype, np.integer):
        raise TypeError(f"random.{name}: expected an integer or an array of rank 1 or more, got {a!r}")
    count = operator.index(a)
    if count < 0:
        raise ValueError(f"random.{name}: the number of elements must not be negative, got {count}")
    canonical_axis(name, axis, 1)
    return count, None, 0


def _taken(x: Any, index: Any, axis: int) -> Any:
    """The elements of `x` at places along an axis."""
    return x[(slice(None),) * axis + (index,)]


def _probabilities(p: Any, count: int) -> Any:
    p = array_of("choice", p, "p")
    if p.shape != (count,):
        raise ValueError(
            f"random.choice: p must have shape ({count},), one probability for each element, got {p.shape}"
        )
    return p if dtypes.issubdtype(p.dtype, np.floating) else lax.convert_element_type(p, dtypes.default_float())


def _weighted(key: Any, p: Any, shape: tuple[int, ...], replace: bool, mode: str | None) -> Any:
    """Indices drawn with probabilities `p`."""
    if replace:
        total = jnp.cumsum(p)
        u = total[-1] * (1 - draw(key, shape, p.dtype))
        return lax.convert_element_type(jnp.searchsorted(total, u), dtypes.default_int())
    return _largest(gumbel_of("choice", key, p.shape, p.dtype, mode) + jnp.log(p), math.prod(shape))


@api_boundary
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: None = None) -> Array:
    """An array in random order along an axis, or ``0, ..., x - 1`` in random order.

    Parameters
    ----------
    key : key
    x : array, or int
    axis : int
    independent : bool
        Whether each vector along `axis` gets an order of its own.

    Examples
    --------
    >>> from xform import random
    >>> random.permutation(random.key(0), 5).tolist()
    [0, 1, 4, 3, 2]
    """
    key = key_of("permutation", key, out_sharding)
    count, x, axis = _population("permutation", x, axis)
    order = lax.iota(dtypes.default_int(), count)
    if x is None or not (independent or x.ndim == 1):
        order = _shuffle(key, order, 0)
        return order if x is None else _taken(x, order, axis)
    return _shuffle(key, x, axis)


def _shuffle(key: Any, x: Any, axis: int) -> Any:
    """Sort by random keys of 32 bits.

    Elements with equal keys would keep their order, so the sort is repeated until it is unlikely (below 1/n) that two
    of the n elements had equal keys every time.
    """
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, now = split_key(key)
        _, x = lax.sort_key_val(draw(now, x.shape, _U32), x, axis)
    return x
