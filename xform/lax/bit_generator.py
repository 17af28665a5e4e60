"""`rng_bit_generator`: XLA's generators of random bits, state in, new state and bits out.

Philox-4x32 and Threefry-2x32 [1]_ encrypt the numbers of blocks with a key. The state is two 64-bit words: the key, and
the number of the first block. A block of Philox is four 32-bit words, one of Threefry two.

May import: `lax.families`, `lax.random_bits`, `lax.shapes`, `lax.control_flow`.

.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC '11,
   https://doi.org/10.1145/2063384.2063405. Layout of the state: https://openxla.org/stablehlo/spec#rng_bit_generator
"""

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.lowering import Context, Value, lower_as
from xform.interpreters.tangents import zero_of
from xform.lax.control_flow import map as lax_map
from xform.lax.families import no_sharding
from xform.lax.random_bits import MASK, TILE, U32, U64, UNSIGNED, _blocks
from xform.lax.shapes import canonical_shape, reshape


class RandomAlgorithm(enum.IntEnum):
    """The generator behind `rng_bit_generator`; the default is the platform's, Philox on CPU and GPU."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name


def _types(
    key: ShapedArray, *, shape: tuple[int, ...], dtype: np.dtype, algorithm: RandomAlgorithm
) -> list[ShapedArray]:
    if not key.ndim or (key.dtype, key.shape[-1]) not in ((U32, 4), (U64, 2)):
        raise TypeError(f"lax.rng_bit_generator: key must be uint32[4] or uint64[2], got {key.str_short()}")
    return [key, ShapedArray(key.shape[:-1] + shape, dtype)]


def _host(key: Any, *, shape: tuple[int, ...], dtype: np.dtype, algorithm: RandomAlgorithm) -> list[Any]:
    states = np.ascontiguousarray(key).view(U64).reshape(-1, 2)
    bits = _threefry_bits if algorithm == RandomAlgorithm.RNG_THREE_FRY else _philox_bits
    out, blocks = bits(states[:, :1], states[:, 1:], shape, dtype == U64)
    new = states + np.array([0, blocks], U64)
    return [new.view(key.dtype).reshape(key.shape), out.astype(dtype, copy=False).reshape(key.shape[:-1] + shape)]


def _halves(x: Any) -> tuple[Any, Any]:
    """The low and the high word of 64 bits."""
    return x.astype(U32), (x >> np.uint64(32)).astype(U32)


def _philox_bits(key: Any, first: Any, shape: Sequence[int], wide: bool) -> tuple[Any, int]:
    """Random words, and the number of blocks used; the number of a block has 128 bits, the key in its upper half."""
    n = math.prod(shape)
    blocks = -(-n // (2 if wide else 4))
    words = np.empty((len(key), blocks, 4), U32)
    for start in range(0, blocks, TILE):
        part = slice(start, min(start + TILE, blocks))
        number = first + np.arange(start, part.stop, dtype=U64)
        upper = key + (number < first)
        _philox(words[:, part], [number & LOW, number >> HALF, upper & LOW, upper >> HALF], key & LOW, key >> HALF)
    return (words.view(U64) if wide else words).reshape(len(key), -1)[:, :n], blocks


LOW, HALF = np.uint64(MASK), np.uint64(32)


def _philox(out: Any, x: list[Any], k0: Any, k1: Any) -> None:
    """Ten rounds on the four words of each block, kept in 64 bits for their products."""
    x0, x1, x2, x3 = x
    p, q = np.empty_like(x0), np.empty_like(x0)
    for _ in range(10):
        np.multiply(x0, np.uint64(0xD2511F53), p)
        np.multiply(x2, np.uint64(0xCD9E8D57), q)
        np.right_shift(q, HALF, x0)
        np.right_shift(p, HALF, x2)
        x0 ^= x1
        x2 ^= x3
        x0 ^= k0
        x2 ^= k1
        np.bitwise_and(q, LOW, x1)
        np.bitwise_and(p, LOW, x3)
        k0, k1 = k0 + np.uint64(0x9E3779B9) & LOW, k1 + np.uint64(0xBB67AE85) & LOW
    for i, word in enumerate(x):
        out[..., i] = word


def _threefry_bits(key: Any, first: Any, shape: Sequence[int], wide: bool) -> tuple[Any, int]:
    """Random words, and the number of blocks used.

    Narrow results: the two words of a block are neighbours along the first axis of even length, else the longest.
    """
    k0, k1 = _halves(key)
    if wide or not shape:
        blocks = math.prod(shape)
        x = _blocks(k0, k1, *_halves(first + np.arange(blocks, dtype=U64)))
        return (np.stack(x, -1).view(U64) if wide else x[0]), blocks
    axis = next((d for d, n in enumerate(shape) if n % 2 == 0), int(np.argmax(shape)))
    half = [-(-n // 2) if d == axis else n for d, n in enumerate(shape)]
    blocks = math.prod(half)
    words = _blocks(k0, k1, *_halves(first + np.arange(blocks, dtype=U64)))
    pair = np.stack([w.reshape(len(key), *half) for w in words], axis + 2)
    even = pair.reshape(len(key), *(2 * n if d == axis else n for d, n in enumerate(half)))
    return even[(slice(None), *map(slice, shape))], blocks


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int], **params: Any) -> Any:
    return rng_bit_generator_p.bind(batching.move_to(args[0], dims[0], axis.size), **params), [0, 0]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    outs = rng_bit_generator_p.bind(*primals, **params)
    return outs, [zero_of(o) for o in outs]


def _lower(
    ctx: Context, key: Value, *, shape: tuple[int, ...], dtype: np.dtype, algorithm: RandomAlgorithm
) -> list[Value]:
    if key.aval.ndim > 1:
        return _one_by_one(ctx, key, shape=shape, dtype=dtype, algorithm=algorithm)
    state = key
    if key.dtype == U32:
        state = ctx.op("reshape", [key], ShapedArray((2, 2), U32))
        state = ctx.op("bitcast_convert", [state], ShapedArray((2,), U64))
    name = str(algorithm).removeprefix("RNG_")
    attributes = f"rng_algorithm = #stablehlo<rng_algorithm {name}>"
    state, bits = ctx.op("rng_bit_generator", [state], [state.aval, ctx.outs[1]], attributes)
    if key.dtype == U32:
        state = ctx.op("bitcast_convert", [state], ShapedArray((2, 2), U32))
        state = ctx.op("reshape", [state], key.aval)
    return [state, bits]


@lower_as
def _one_by_one(keys: Any, **params: Any) -> list[Any]:
    lanes = keys.shape[:-1]
    keys = reshape(keys, (math.prod(lanes), keys.shape[-1]))
    outs = lax_map(lambda key: rng_bit_generator_p.bind(key, **params), keys)
    return [reshape(o, lanes + o.shape[1:]) for o in outs]


rng_bit_generator_p = Primitive("rng_bit_generator", multiple_results=True)
rng_bit_generator_p.abstract_eval = _types
rng_bit_generator_p.host = _host
rng_bit_generator_p.jvp = _jvp
rng_bit_generator_p.batch = _batch
rng_bit_generator_p.lower = _lower


@api_boundary
def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """Random bits, and the state to go on with.

    Parameters
    ----------
    key : uint32[4] or uint64[2]
        The state: a key of 64 bits, and the number of the first block to be used.
    shape : sequence of int
    dtype : unsigned integer of 8 to 64 bits
        Types of 8 and 16 bits take a 32-bit word for each element.
    algorithm : RandomAlgorithm

    Returns
    -------
    state, bits : arrays

    Notes
    -----
    Under `vmap` each key has its own stream, as in a loop. (JAX uses the first key alone.)

    Examples
    --------
    >>> from xform import lax
    >>> state, bits = lax.rng_bit_generator(np.array([1, 0, 0, 0], np.uint32), (5,))
    >>> state.tolist(), bits.shape
    ([1, 0, 2, 0], (5,))
    """
    dtype = dtypes.canonicalize_dtype(dtypes.check_user_dtype(dtype, "rng_bit_generator"))
    if dtype not in UNSIGNED:
        raise TypeError(f"lax.rng_bit_generator: dtype must be an unsigned integer of 8 to 64 bits, got {dtype}")
    no_sharding("rng_bit_generator", out_sharding=out_sharding)
    out = rng_bit_generator_p.bind(key, shape=canonical_shape(shape), dtype=dtype, algorithm=RandomAlgorithm(algorithm))
    return tuple(out)
