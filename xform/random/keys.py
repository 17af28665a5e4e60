"""Keys: where the state of a random stream is, and how to get independent streams from one.

A key is the only state there is. Every function of `xform.random` takes one and never changes it: the same key gives
the same numbers. `split` and `fold_in` derive new keys; a key that was split or drawn from should not be used again.

There are two kinds, and every function takes both and returns the kind it was given: `key` makes a typed one, a
`KeyArray`; `PRNGKey` the bare data, a ``uint32[2]``. A `KeyArray` is a pytree with the data as its leaf, so that `jit`,
`vmap`, `scan` and the others carry it. (Axes of `vmap` count on the data, whose last one belongs to the key.)

May import: `xform.numpy`, `xform.lax`.
"""

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

import xform.numpy as jnp
from xform import lax
from xform.core import dtypes, tree
from xform.core.array import Array, ArrayImpl, get_aval, own
from xform.core.errors import api_boundary
from xform.core.trace import Tracer
from xform.lax.random_bits import threefry2x32_p
from xform.lax.shapes import canonical_shape

IMPLEMENTATION = "threefry2x32"
_U32 = np.dtype("uint32")


class KeyDType(dtypes.ExtendedDType):
    """The dtype of typed keys: ``dtypes.issubdtype(key.dtype, dtypes.prng_key)`` holds."""

    type = dtypes.prng_key
    name = "key<fry>"
    itemsize = 8

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return "KEY_DTYPE"


KEY_DTYPE = KeyDType()


class KeyArray:
    """An array of typed keys, which `key`, `split`, `fold_in` and `wrap_key_data` make.

    It has the shape of an array without the data's last axis, and is indexed, iterated and reshaped as one.

    Examples
    --------
    >>> from xform import random
    >>> keys = random.split(random.key(0), 4)
    >>> keys.shape, keys.dtype, keys.reshape(2, 2)[0].shape
    ((4,), key<fry>, (2,))
    >>> a, b, c, d = keys
    """

    __slots__ = ("_data",)
    __array_ufunc__ = None  # NumPy's operators and functions must not take it for a scalar

    dtype = KEY_DTYPE
    itemsize = KEY_DTYPE.itemsize

    def __init__(self, data: Any):
        self._data = data  # uint32[*shape, 2]; while trees are handled, anything that stands in its place

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self._data.shape[:-1]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._data.ndim - 1

    @property
    def size(self) -> int:
        """Number of keys."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all keys."""
        return self.size * self.itemsize

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a single key")
        return self.shape[0]

    def __iter__(self) -> Iterator["KeyArray"]:
        if not self.ndim:
            raise TypeError("iteration over a single key; random.split makes several of one")
        return map(KeyArray, self._data)

    def __getitem__(self, index: Any) -> "KeyArray":
        index = index if isinstance(index, tuple) else (index,)
        more = () if any(i is Ellipsis for i in index) else (Ellipsis,)
        return KeyArray(self._data[(*index, *more, slice(None))])

    def reshape(self, *shape: Any) -> "KeyArray":
        """The same keys in another shape, of which one length may be -1."""
        new = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
        new = [operator.index(d) for d in new]
        if -1 in new:
            rest = math.prod(d for d in new if d != -1)
            new[new.index(-1)] = self.size // rest if rest else 0
        return KeyArray(lax.reshape(self._data, (*new, 2)))

    def ravel(self) -> "KeyArray":
        """The keys along one axis."""
        return self.reshape(self.size)

    flatten = ravel

    def squeeze(self, axis: Any = None) -> "KeyArray":
        """Without axes of length 1, or without the given ones."""
        found = [d for d, n in enumerate(self.shape) if n == 1] if axis is None else np.atleast_1d(axis)
        return KeyArray(lax.squeeze(self._data, [int(d) % max(self.ndim, 1) for d in found]))

    def transpose(self, *axes: Any) -> "KeyArray":
        """The axes permuted, by default reversed."""
        order = axes[0] if len(axes) == 1 and not hasattr(axes[0], "__index__") else axes
        order = [operator.index(d) % self.ndim for d in order or ()] or range(self.ndim)[::-1]
        return KeyArray(lax.transpose(self._data, (*order, self.ndim)))

    @property
    def T(self) -> "KeyArray":
        """With the axes reversed."""
        return self.transpose()

    def block_until_ready(self) -> "KeyArray":
        """Wait for the computation that makes these keys, and return them."""
        self._data.block_until_ready()
        return self

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, KeyArray):
            return NotImplemented
        return jnp.all(jnp.equal(self._data, other._data), axis=-1)

    def __ne__(self, other: Any) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else jnp.logical_not(equal)

    __hash__ = None  # type: ignore[assignment]

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("keys are not numbers; random.key_data gives the data they consist of")

    def __repr__(self) -> str:
        if isinstance(self._data, Tracer):
            return f"KeyArray<{KEY_DTYPE}[{','.join(map(str, self.shape))}]>"
        if isinstance(self._data, Array | np.ndarray):
            return f"Array({self.shape}, dtype={KEY_DTYPE}) overlaying:\n{self._data}"
        return f"KeyArray({self._data!r})"


tree.register_pytree_node(KeyArray, lambda k: ((k._data,), None), lambda _, children: KeyArray(children[0]))


# ---- Keys from seeds and data ------------------------------------------------------------------------------


def _check_implementation(name: str, impl: Any) -> None:
    if impl not in (None, IMPLEMENTATION, KEY_DTYPE):
        raise NotImplementedError(
            f"random.{name}: the only generator is {IMPLEMENTATION!r}; for another one, "
            f"such as {impl!r}, draw the bits elsewhere and pass them as an array"
        )


def _seed(name: str, seed: Any, impl: Any) -> Any:
    _check_implementation(name, impl)
    if isinstance(seed, KeyArray):
        raise TypeError(f"random.{name}: the seed must be an integer, got a key; random.fold_in makes a key of a key")
    if isinstance(seed, int):
        if not -(1 << 63) <= seed < 1 << 63:
            raise OverflowError(f"random.{name}: a seed has 64 bits at most, got one of {seed.bit_length()} bits")
        return _seed_words(seed, dtypes.default_int())
    aval = get_aval(seed)
    if aval.shape or not dtypes.issubdtype(aval.dtype, np.integer):
        hint = "; several seeds at once: xform.vmap" if aval.shape else ""
        raise TypeError(f"random.{name}: the seed must be an integer, got {aval.str_short()}{hint}")
    if not isinstance(seed, Tracer):
        return _seed_words(int(seed), aval.dtype)
    high = lax.shift_right_logical(seed, aval.dtype.type(32)) if aval.dtype.itemsize == 8 else np.uint32(0)
    words = [lax.reshape(lax.convert_element_type(w, _U32), (1,)) for w in (high, seed)]
    return lax.concatenate(words, 0)


def _seed_words(seed: int, dtype: np.dtype) -> ArrayImpl:
    """The low 64 bits of a seed as two words; of one of a narrower dtype the low 32."""
    high = seed >> 32 & 0xFFFFFFFF if dtype.itemsize == 8 else 0
    return ArrayImpl(np.array([high, seed & 0xFFFFFFFF], _U32))


@api_boundary
def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """A typed key made of an integer.

    Parameters
    ----------
    seed : int, or integer array of rank 0
        64 bits, or 32 of a narrower type and when 64-bit types are off.
    impl : str, optional
        The generator: 'threefry2x32' is the only one.
    dtype : optional
        The same as a dtype (`key_dtype`).

    Raises TypeError for what is no integer, OverflowError for a Python integer of more than 64 bits.

    Examples
    --------
    >>> from xform import random
    >>> random.key(0)
    Array((), dtype=key<fry>) overlaying:
    [0 0]
    """
    _check_implementation("key", dtype)
    return KeyArray(_seed("key", seed, impl))


@api_boundary
def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """A bare key, a ``uint32[2]``, made of an integer. See `key`, which makes a typed one.

    Examples
    --------
    >>> from xform import random
    >>> random.PRNGKey(-1)
    Array([4294967295, 4294967295], dtype=uint32)
    """
    return _seed("PRNGKey", seed, impl)


@api_boundary
def key_data(keys: Any) -> Array:
    """The data of keys of either kind: ``uint32[*shape, 2]``."""
    return keys._data if isinstance(keys, KeyArray) else _checked("key_data", keys)


@api_boundary
def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """Typed keys of their data, a ``uint32[*shape, 2]``."""
    _check_implementation("wrap_key_data", impl)
    _check_implementation("wrap_key_data", dtype)
    return KeyArray(_checked("wrap_key_data", key_bits_array))


@api_boundary
def key_impl(keys: Any) -> str:
    """The name of the generator that keys belong to: 'threefry2x32'."""
    if not isinstance(keys, KeyArray):
        _checked("key_impl", keys)
    return IMPLEMENTATION


@api_boundary
def key_dtype(impl_spec: Any = None) -> KeyDType:
    """The dtype of typed keys of a generator."""
    _check_implementation("key_dtype", impl_spec)
    return KEY_DTYPE


@api_boundary
def clone(key: Any) -> Any:
    """The same keys, marked as meant to be used again (nothing here counts how often a key is used)."""
    return key if isinstance(key, KeyArray) else _checked("clone", key)


# ---- Keys from keys ----------------------------------------------------------------------------------------


def _checked(name: str, data: Any) -> Any:
    """The data of bare keys, or TypeError."""
    aval = get_aval(data) if isinstance(data, Array | np.ndarray) else None
    if aval is None or aval.dtype != _U32 or aval.shape[-1:] != (2,):
        got = f"{data!r} of type {type(data).__name__}" if aval is None else aval.str_short()
        raise TypeError(f"random.{name}: expected a key of random.key, or uint32[..., 2] of random.PRNGKey, got {got}")
    return data if isinstance(data, Array) else own(data)


def single(name: str, key: Any) -> Any:
    """The data of one key, ``uint32[2]``, of either kind."""
    data = key._data if type(key) is KeyArray else _checked(name, key)
    if data.ndim != 1:
        raise ValueError(
            f"random.{name}: expected a single key, got keys of shape {data.shape[:-1]}; use xform.vmap for several"
        )
    return data


def split_data(data: Any, shape: tuple[int, ...] = (2,)) -> Any:
    """The data of new keys: that of number i is block i of the key that is split."""
    return threefry2x32_p.bind(data, shape=shape, dtype=None)


@api_boundary
def split(key: Any, num: int | tuple[int, ...] = 2) -> Any:
    """Independent new keys.

    Parameters
    ----------
    key : key
    num : int or tuple of int
        How many; or the shape of the result.

    Returns
    -------
    Keys of the kind of `key` and of shape ``(num,)`` or `num`. ``split(key, n)[i]`` does not depend on n.

    Examples
    --------
    >>> from xform import random
    >>> key, draw = random.split(random.key(0))
    >>> random.split(key, (2, 3)).shape
    (2, 3)
    """
    data = split_data(single("split", key), canonical_shape(num))
    return KeyArray(data) if type(key) is KeyArray else data


@api_boundary
def fold_in(key: Any, data: Any) -> Any:
    """A new key made of a key and a number: ``fold_in(key, i)`` equals ``split(key, n)[i]``.

    Parameters
    ----------
    key : key
    data : int below 2**32, or integer array of rank 0, whose low 32 bits count

    Raises TypeError for what is no integer, OverflowError for a Python integer of more than 32 bits or below 0.

    Examples
    --------
    >>> from xform import random
    >>> keys = [random.fold_in(random.key(0), step) for step in range(3)]
    """
    words = single("fold_in", key)
    if isinstance(data, int):
        if not 0 <= data < 1 << 32:
            raise OverflowError(f"random.fold_in: data must be in 0..2**32-1, got {data}")
        number = np.uint32(data)
    else:
        aval = get_aval(data)
        if aval.shape or (not dtypes.issubdtype(aval.dtype, np.integer) and aval.dtype != bool):
            hint = "; use xform.vmap for several" if aval.shape else ""
            raise TypeError(f"random.fold_in: data must be an integer, got {aval.str_short()}{hint}")
        number = lax.convert_element_type(data, _U32)
    words = threefry2x32_p.bind(words, number, shape=(), dtype=None)
    return KeyArray(words) if type(key) is KeyArray else words
