"""The generators of random bits: how each makes, splits and uses the data of a key.

The data of one key are ``uint32[words]``. `split` and `fold_in` take and return such data, `draw` gives bits of
an unsigned dtype or uniform floats of [0, 1). All are JAX's generators, bit for bit.

May import: `xform.lax`, `xform.core`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xform import lax
from xform.core import dtypes
from xform.lax.bit_generator import rng_bit_generator_p
from xform.lax.random_bits import UNSIGNED, float_layout, threefry2x32_p

_U32 = np.dtype("uint32")


class KeyDType(dtypes.ExtendedDType):
    """The dtype of typed keys: ``dtypes.issubdtype(key.dtype, dtypes.prng_key)`` holds."""

    type = dtypes.prng_key
    kind = "V"  # NumPy's, of what is no number

    def __init__(self, generator: "Generator"):
        self.generator = generator
        self.name = f"key<{generator.tag}>"
        self.itemsize = 4 * generator.words

    def keys_of(self, data: Any) -> Any:
        """Keys of their data."""
        from xform.random.keys import KeyArray

        return KeyArray(data, self)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple:
        return _dtype_named, (self.generator.name,)


class Generator(NamedTuple):
    """What a kind of keys is."""

    name: str
    tag: str  # in the name of the dtype
    words: int
    split: Callable[[Any, tuple[int, ...]], Any]  # (data, shape) -> data of that many keys
    fold_in: Callable[[Any, Any], Any]  # (data, uint32) -> data of one key
    draw: Callable[[Any, tuple[int, ...], np.dtype], Any]


# ---- threefry2x32 ------------------------------------------------------------------------------------------


def _threefry_split(data: Any, shape: tuple[int, ...]) -> Any:
    """New key number i is block i of the key that is split."""
    return threefry2x32_p.bind(data, shape=shape, dtype=None)


def _threefry_fold_in(data: Any, number: Any) -> Any:
    return threefry2x32_p.bind(data, number, shape=(), dtype=None)


def _threefry_draw(data: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return threefry2x32_p.bind(data, shape=shape, dtype=dtype)


# ---- rbg: keys as two of threefry2x32, bits by XLA's generator ---------------------------------------------


def _rbg_split(data: Any, shape: tuple[int, ...]) -> Any:
    halves = _threefry_split(lax.reshape(data, (2, 2)), shape)  # (2, *shape, 2)
    n = len(shape)
    return lax.reshape(lax.transpose(halves, (*range(1, n + 1), 0, n + 1)), (*shape, 4))


def _rbg_fold_in(data: Any, number: Any) -> Any:
    numbers = lax.broadcast_in_dim(number, (2,), ())
    return lax.reshape(_threefry_fold_in(lax.reshape(data, (2, 2)), numbers), (4,))


def _rbg_bits(data: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return rng_bit_generator_p.bind(data, shape=shape, dtype=dtype, algorithm=lax.RandomAlgorithm.RNG_DEFAULT)[1]


def _rbg_draw(data: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    if dtype in UNSIGNED:
        return _rbg_bits(data, shape, dtype)
    drawn, whole, shift, one = float_layout(dtype)
    bits = lax.convert_element_type(_rbg_bits(data, shape, drawn), whole)
    bits = lax.bitwise_or(lax.shift_right_logical(bits, shift[()]), one.view(whole)[()])
    return lax.sub(lax.bitcast_convert_type(bits, dtype), dtype.type(1))


# ---- unsafe_rbg: everything by XLA's generator -------------------------------------------------------------


def _unsafe_split(data: Any, shape: tuple[int, ...]) -> Any:
    """Every tenth block."""
    rows = _rbg_bits(data, (10 * math.prod(shape), 4), _U32)
    return lax.reshape(lax.slice(rows, (0, 0), rows.shape, (10, 1)), (*shape, 4))


def _unsafe_fold_in(data: Any, number: Any) -> Any:
    """The exclusive or with the tenth block of the key made of the number."""
    number = lax.reshape(lax.convert_element_type(number, _U32), (1,))
    zero = lax.full((1,), 0, _U32)
    rows = _rbg_bits(lax.concatenate([zero, number, zero, number], 0), (10, 4), _U32)
    return lax.bitwise_xor(data, lax.reshape(lax.slice(rows, (9, 0), (10, 4)), (4,)))


# ------------------------------------------------------------------------------------------------------------

GENERATORS = {
    g.name: g
    for g in (
        Generator("threefry2x32", "fry", 2, _threefry_split, _threefry_fold_in, _threefry_draw),
        Generator("rbg", "rbg", 4, _rbg_split, _rbg_fold_in, _rbg_draw),
        Generator("unsafe_rbg", "urbg", 4, _unsafe_split, _unsafe_fold_in, _rbg_draw),
    )
}
KEY_DTYPES = {g.name: KeyDType(g) for g in GENERATORS.values()}


def _dtype_named(name: str) -> KeyDType:
    return KEY_DTYPES[name]
