"""Keys: where the state of a random stream is, and how to get independent streams from one.

A key is the only state there is. Every function of `xform.random` takes one and never changes it: the same key gives
the same numbers. `split` and `fold_in` derive new keys; a key that was split or drawn from should not be used again.

There are two kinds, and every function takes both and returns the kind it was given: `key` makes a typed one, a
`KeyArray`; `PRNGKey` the bare data, a ``uint32[2]``. A `KeyArray` is a pytree with the data as its leaf, so that `jit`,
`vmap`, `scan` and the others carry it. The generators they belong to are in `random.generators`; bare keys are those
of the option `default_prng_impl`.

May import: `xform.numpy`, `xform.lax`, `random.generators`.
"""

import math
from collections.abc import Iterator
from typing import Any, NewType

import numpy as np

import xform.numpy as jnp
from xform import lax
from xform.core import dtypes, tree
from xform.core.array import Array, ArrayImpl, get_aval, own
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.core.trace import Tracer
from xform.lax.random_bits import threefry2x32_p
from xform.lax.shapes import canonical_shape
from xform.numpy.text import traced
from xform.random.generators import GENERATORS, KEY_DTYPES, KeyDType

_U32 = np.dtype("uint32")
Key = NewType("Key", Array)  # keys of either kind, for annotations


class KeyArray(Array):
    """An array of typed keys, which `key`, `split`, `fold_in` and `wrap_key_data` make.

    It has the shape of an array without the data's last axis, and is indexed, iterated and reshaped as one; the
    functions of `xform.numpy` that only move elements take it. It has no arithmetic.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> from xform import random
    >>> keys = random.split(random.key(0), 4)
    >>> keys.shape, keys.dtype, keys.reshape(2, 2)[0].shape
    ((4,), key<fry>, (2,))
    >>> xnp.concatenate([keys, keys[:1]]).shape
    (5,)
    >>> a, b, c, d = keys
    """

    __slots__ = ("_data", "dtype")
    __array_ufunc__ = None  # NumPy's operators and functions must not take it for a scalar
    dtype: KeyDType  # type: ignore[assignment]

    def __init__(self, data: Any, dtype: KeyDType):
        self._data = data  # uint32[*shape, words]; while trees are handled, anything that stands in its place
        self.dtype = dtype

    def _like(self, data: Any) -> "KeyArray":
        """Keys of the same generator."""
        return KeyArray(data, self.dtype)

    @property
    def aval(self) -> ShapedArray:  # type: ignore[override]
        """Raises: operations on numbers that are given keys end here."""
        raise TypeError(f"random keys ({self.dtype}) are not numbers; random.key_data gives the data they consist of")

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
    def weak_type(self) -> bool:
        """False: dtypes of keys are not promoted."""
        return False

    # Elements.

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a single key")
        return self.shape[0]

    def __iter__(self) -> Iterator["KeyArray"]:
        if not self.ndim:
            raise TypeError("iteration over a single key; random.split makes several of one")
        return map(self._like, self._data)

    def __getitem__(self, index: Any) -> "KeyArray":
        return self._like(self._data[_with_words(index)])

    @property
    def at(self) -> "_At":
        """``keys.at[index].set(other_keys)`` and ``keys.at[index].get()``."""
        return _At(self)

    # Shapes.

    def reshape(self, *shape: Any, order: str = "C") -> Array:
        """The same keys in another shape, of which one length may be -1."""
        return jnp.reshape(self, shape[0] if len(shape) == 1 else shape, order)

    def ravel(self, order: str = "C") -> Array:
        """The keys along one axis."""
        return self.reshape(-1, order=order)

    flatten = ravel

    def transpose(self, *axes: Any) -> Array:
        """The axes permuted, by default reversed."""
        one = len(axes) == 1 and not isinstance(axes[0], int)
        return jnp.transpose(self, (axes[0] if one else axes) or None)

    @property
    def T(self) -> Array:
        """With the axes reversed."""
        return self.transpose()

    copy, repeat, squeeze, swapaxes, take = jnp.copy, jnp.repeat, jnp.squeeze, jnp.swapaxes, jnp.take

    # Memory.

    def block_until_ready(self) -> "KeyArray":
        """Wait for the computation that makes these keys, and return them."""
        self._data.block_until_ready()
        return self

    def devices(self) -> set[Any]:
        """The devices that hold the keys."""
        return self._data.devices()

    @property
    def device(self) -> Any:
        """The device that holds the keys; None while a function is traced."""
        return self._data.device

    def delete(self) -> None:
        """Free the memory; using the keys afterwards is an error."""
        self._data.delete()

    def is_deleted(self) -> bool:
        """Whether the keys were deleted or donated."""
        return self._data.is_deleted()

    # Python's protocols.

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, KeyArray):
            if isinstance(other, Array | np.ndarray | np.generic | int | float):
                raise TypeError(f"keys of {self.dtype} can't be compared with numbers")
            return NotImplemented
        if self.dtype is not other.dtype:
            raise TypeError(f"keys of {self.dtype} and of {other.dtype} can't be compared")
        return jnp.all(jnp.equal(self._data, other._data), axis=-1)

    def __ne__(self, other: Any) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else jnp.logical_not(equal)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("random keys have no truth value")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("keys are not numbers; random.key_data gives the data they consist of")

    def __reduce__(self) -> tuple:
        return KeyArray, (self._data, self.dtype)

    def __copy__(self) -> "KeyArray":
        return self

    def __deepcopy__(self, memo: Any) -> "KeyArray":
        return self

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __repr__(self) -> str:
        if isinstance(self._data, Tracer):
            return traced(self._data, f"{self.dtype}[{','.join(map(str, self.shape))}]")
        if isinstance(self._data, Array | np.ndarray):
            return f"Array({self.shape}, dtype={self.dtype}) overlaying:\n{self._data}"
        return f"KeyArray({self._data!r})"

    __str__ = __repr__


def _with_words(index: Any) -> tuple[Any, ...]:
    """The index into the data of keys."""
    index = index if isinstance(index, tuple) else (index,)
    more = () if any(i is Ellipsis for i in index) else (Ellipsis,)
    return (*index, *more, slice(None))


class _At:
    """``keys.at``, and with an index ``keys.at[index]``."""

    __slots__ = ("_index", "_keys")

    def __init__(self, keys: KeyArray, index: Any = None):
        self._keys, self._index = keys, index

    def __getitem__(self, index: Any) -> "_At":
        return _At(self._keys, _with_words(index))

    def get(self, **options: Any) -> KeyArray:
        """The keys at the index; the options are those of arrays."""
        return self._keys._like(self._keys._data.at[self._index].get(**options))

    def set(self, values: Any, **options: Any) -> KeyArray:
        """The keys with others at the index."""
        if not isinstance(values, KeyArray) or values.dtype is not self._keys.dtype:
            got = values.dtype if isinstance(values, KeyArray) else f"{values!r} of type {type(values).__name__}"
            raise TypeError(f"keys.at[...].set: expected keys of {self._keys.dtype}, got {got}")
        return self._keys._like(self._keys._data.at[self._index].set(values._data, **options))


tree.register_pytree_node(
    KeyArray, lambda k: ((k._data,), k.dtype), lambda dtype, children: KeyArray(children[0], dtype)
)


# ---- Keys from seeds and data ------------------------------------------------------------------------------


def _generator(name: str, impl: Any = None, dtype: Any = None) -> KeyDType:
    """The dtype of the keys of a generator that is named, or described by its dtype; by default of the option."""
    if impl is not None and dtype is not None:
        raise ValueError(f"random.{name}: impl and dtype say the same, so only one of them can be given")
    spec = dtype if impl is None else impl
    if isinstance(spec, KeyDType):
        return spec
    found = KEY_DTYPES.get(state.default_prng_impl if spec is None else spec) if isinstance(spec, str | None) else None
    if found is None:
        raise (ValueError if isinstance(spec, str) else TypeError)(
            f"random.{name}: the generator must be one of {', '.join(map(repr, GENERATORS))}, or the dtype of keys, "
            f"got {spec!r}"
        )
    return found


def _seed(name: str, seed: Any, dtype: KeyDType) -> Any:
    """The data of the key that a seed gives; where they are longer than two words, these are repeated."""
    if isinstance(seed, KeyArray):
        raise TypeError(f"random.{name}: the seed must be an integer, got a key; random.fold_in makes a key of a key")
    repeats = dtype.generator.words // 2
    if isinstance(seed, int):
        if not -(1 << 63) <= seed < 1 << 63:
            raise OverflowError(f"random.{name}: a seed has 64 bits at most, got one of {seed.bit_length()} bits")
        return _seed_words(seed, dtypes.default_int(), repeats)
    aval = get_aval(seed)
    if aval.shape or not dtypes.issubdtype(aval.dtype, np.integer):
        hint = "; several seeds at once: xform.vmap" if aval.shape else ""
        raise TypeError(f"random.{name}: the seed must be an integer, got {aval.str_short()}{hint}")
    if not isinstance(seed, Tracer):
        return _seed_words(int(seed), aval.dtype, repeats)
    high = lax.shift_right_logical(seed, aval.dtype.type(32)) if aval.dtype.itemsize == 8 else np.uint32(0)
    words = [lax.reshape(lax.convert_element_type(w, _U32), (1,)) for w in (high, seed)]
    return lax.concatenate(words * repeats, 0)


def _seed_words(seed: int, dtype: np.dtype, repeats: int) -> ArrayImpl:
    """The low 64 bits of a seed as two words; of one of a narrower dtype the low 32."""
    high = seed >> 32 & 0xFFFFFFFF if dtype.itemsize == 8 else 0
    return ArrayImpl(np.array([high, seed & 0xFFFFFFFF] * repeats, _U32))


@api_boundary
def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """A typed key made of an integer.

    Parameters
    ----------
    seed : int, or integer array of rank 0
        64 bits, or 32 of a narrower type and when 64-bit types are off.
    impl : {'threefry2x32', 'rbg', 'unsafe_rbg'}, optional
        The generator, by default that of the option `default_prng_impl`. 'rbg' draws bits by XLA's own generator,
        'unsafe_rbg' also splits by it, without a proof that the streams are independent.
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
    found = _generator("key", impl, dtype)
    return KeyArray(_seed("key", seed, found), found)


@api_boundary
def PRNGKey(seed: Any, *, impl: Any = None) -> Array:
    """A bare key, a ``uint32[2]``, made of an integer. See `key`, which makes a typed one.

    Examples
    --------
    >>> from xform import random
    >>> random.PRNGKey(-1)
    Array([4294967295, 4294967295], dtype=uint32)
    """
    return _seed("PRNGKey", seed, _generator("PRNGKey", impl))


@api_boundary
def key_data(keys: Any) -> Array:
    """The data of keys of either kind: ``uint32[*shape, 2]``, of rbg ``uint32[*shape, 4]``."""
    return _checked("key_data", keys)._data


@api_boundary
def wrap_key_data(key_bits_array: Any, *, impl: Any = None, dtype: Any = None) -> KeyArray:
    """Typed keys of their data, a ``uint32[*shape, 2]`` (4 of rbg). `impl`, `dtype`: see `key`."""
    return _bare("wrap_key_data", key_bits_array, _generator("wrap_key_data", impl, dtype))


@api_boundary
def key_impl(keys: Any) -> str:
    """The name of the generator that keys belong to."""
    return _checked("key_impl", keys).dtype.generator.name


@api_boundary
def key_dtype(impl_spec: Any = None) -> KeyDType:
    """The dtype of typed keys of a generator, by default of the option `default_prng_impl`."""
    return _generator("key_dtype", impl_spec)


@api_boundary
def clone(key: Any) -> Any:
    """The same keys, marked as meant to be used again (nothing here counts how often a key is used)."""
    return _as_given(key, _checked("clone", key))


# ---- Keys from keys ----------------------------------------------------------------------------------------


def _bare(name: str, data: Any, dtype: KeyDType) -> KeyArray:
    """Typed keys of bare ones, or TypeError."""
    aval = get_aval(data) if isinstance(data, Array | np.ndarray) and not isinstance(data, KeyArray) else None
    words = dtype.generator.words
    if aval is None or aval.dtype != _U32 or aval.shape[-1:] != (words,):
        got = f"{data!r} of type {type(data).__name__}" if aval is None else aval.str_short()
        raise TypeError(
            f"random.{name}: expected a key of random.key, or uint32[..., {words}] of random.PRNGKey for "
            f"{dtype.generator.name}, got {got}"
        )
    return KeyArray(data if isinstance(data, Array) else own(data), dtype)


def _checked(name: str, keys: Any) -> KeyArray:
    """Keys of either kind as typed ones."""
    return keys if type(keys) is KeyArray else _bare(name, keys, KEY_DTYPES[state.default_prng_impl])


def single(name: str, key: Any) -> KeyArray:
    """One key, of either kind, as a typed one."""
    found = key if type(key) is KeyArray else _bare(name, key, KEY_DTYPES[state.default_prng_impl])
    if found._data.ndim != 1:
        raise ValueError(
            f"random.{name}: expected a single key, got keys of shape {found.shape}; use xform.vmap for several"
        )
    return found


def _as_given(given: Any, found: KeyArray) -> Any:
    """A result of the kind of key that was given."""
    return found if type(given) is KeyArray else found._data


def split_key(key: KeyArray, num: int = 2) -> Iterator[KeyArray]:
    """Several new keys."""
    return map(key._like, key.dtype.generator.split(key._data, (num,)))


def hashed(key: KeyArray) -> Any:
    """Data of threefry2x32 that depend on all of a key."""
    data = key._data
    if key.dtype.generator.words == 2:
        return data
    for word in data[2:]:
        data = threefry2x32_p.bind(data[:2], word, shape=(), dtype=None)
    return data


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
    Keys of the kind of `key` and of shape ``(num,)`` or `num`. ``split(key, n)[i]`` does not depend on n (but with
    unsafe_rbg).

    Examples
    --------
    >>> from xform import random
    >>> key, draw = random.split(random.key(0))
    >>> random.split(key, (2, 3)).shape
    (2, 3)
    """
    found = single("split", key)
    return _as_given(key, found._like(found.dtype.generator.split(found._data, canonical_shape(num))))


@api_boundary
def fold_in(key: Any, data: Any) -> Any:
    """A new key made of a key and a number: ``fold_in(key, i)`` equals ``split(key, n)[i]`` (but with unsafe_rbg).

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
    found = single("fold_in", key)
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
    return _as_given(key, found._like(found.dtype.generator.fold_in(found._data, number)))
