"""`threefry2x32`: random bits, and floats made of them, as a function of a key.

Threefry-2x32 [1]_ is a block cipher: 20 rounds of addition, rotation and exclusive or turn a key of two 32-bit words,
and the number of a block, into two random words. Element `i` of a result is made of block `i` alone, whatever the
shape, so that an array can be computed in parts and in any order. The streams are those of JAX.

May import: `xform.core`, `xform.interpreters`.

.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC '11,
   https://doi.org/10.1145/2063384.2063405. Test vectors: https://github.com/DEShawResearch/random123
"""

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.lowering import Context, Value, i64s
from xform.interpreters.tangents import zero_of

U32, U64 = np.dtype("uint32"), np.dtype("uint64")
MASK = 0xFFFFFFFF
ONE_WORD = 1 << 32  # so many blocks have a number of one word
PARITY = 0x1BD11BDA  # the third key word is this xor the other two
# For each group of four rounds: the rotations, and which key words are added after it.
GROUPS = (
    ((13, 15, 26, 6), 1, 2),
    ((17, 29, 16, 24), 2, 0),
    ((13, 15, 26, 6), 0, 1),
    ((17, 29, 16, 24), 1, 2),
    ((13, 15, 26, 6), 2, 0),
)

# The two words of a block become bits (one of these dtypes) or a float of [0, 1); dtype None: they stay what they are.
BITS = {n: np.dtype(f"uint{n}") for n in (8, 16, 32, 64)}
UNSIGNED = frozenset(BITS.values())


@functools.cache
def float_layout(dtype: np.dtype) -> tuple[np.dtype, np.dtype, Any, Any]:
    """Of a float type: the bits drawn, the unsigned integer of its size, the shift, the bits of 1.0.

    A float of [1, 2) has the exponent of 1.0, and random bits for its fraction.
    """
    fraction = int(dtypes.finfo(dtype).nmant)
    whole = BITS[8 * dtype.itemsize]
    drawn = BITS[8] if fraction < 8 else whole
    one = np.ones((), dtype).view(whole)
    return drawn, whole, np.array(8 * drawn.itemsize - fraction, whole), one


# ---- On the host -------------------------------------------------------------------------------------------

TILE = 1 << 14  # blocks at once: their words fit into the cache
FEW = 256  # up to so many blocks Python's integers are faster than NumPy's overhead


def _threefry_host(key: Any, *number: Any, shape: tuple[int, ...], dtype: np.dtype | None) -> Any:
    if key.ndim == 1 and (n := math.prod(shape)) <= FEW:  # the common case, on the short way
        ones, _, lanes = _lanes(n)
        words = _few_blocks(int(key[0]) * ones, int(key[1]) * ones, 0, int(number[0]) if number else lanes, n)
        return _combine(*words, dtype).reshape((*shape, 2) if dtype is None else shape)
    batch = key.shape[:-1]
    m, n = math.prod(batch), math.prod(shape)
    keys = key.reshape(m, 2)
    numbers = number[0].reshape(m, 1) if number else None
    out = np.empty((m, n, 2) if dtype is None else (m, n), dtype or U32)
    for rows, columns in _tiles(m, n):
        k0, k1 = keys[rows, :1], keys[rows, 1:]
        size = (rows.stop - rows.start, columns.stop - columns.start)
        first = np.arange(size[1], dtype=U32) if numbers is None else numbers[rows]
        x0 = np.full(size, columns.start >> 32, U32)
        x1 = np.add(first, np.uint32(columns.start & MASK), out=np.empty(size, U32))
        out[rows, columns] = _combine(*_blocks(k0, k1, x0, x1), dtype)
    return out.reshape(batch + shape + out.shape[2:])


def numbered(keys: Any, numbers: Any, dtype: np.dtype | None) -> Any:
    """What the blocks with given numbers become, on the host; `keys` without their last axis broadcast to `numbers`."""
    return _combine(*_blocks(keys[..., 0], keys[..., 1], np.zeros_like(numbers), numbers.copy()), dtype)


def _tiles(m: int, n: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of parts of an m by n array; the first column of a part is a multiple of `TILE`."""
    height = max(1, TILE // max(n, 1))
    for row in range(0, m, height):
        for column in range(0, n, TILE):
            yield slice(row, min(row + height, m)), slice(column, min(column + TILE, n))


def _blocks(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """The words of the blocks numbered ``x0 * 2**32 + x1``, computed in place; keys broadcast against them."""
    if x0.size <= FEW:
        k0, k1, w0, w1 = (_pack(np.broadcast_to(a, x0.shape)) for a in (k0, k1, x0, x1))
        w0, w1 = _few_blocks(k0, k1, w0, w1, x0.size)
        return w0.reshape(x0.shape), w1.reshape(x0.shape)
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    spare = np.empty_like(x1)
    x0 += k0
    x1 += k1
    for i, (rotations, a, b) in enumerate(GROUPS, 1):
        for r in rotations:
            x0 += x1
            np.left_shift(x1, r, spare)
            np.right_shift(x1, 32 - r, x1)
            x1 |= spare
            x1 ^= x0
        x0 += keys[a]
        x1 += keys[b] + np.uint32(i)
    return x0, x1


def _few_blocks(k0: int, k1: int, x0: int, x1: int, n: int) -> tuple[Any, Any]:
    """The same for n blocks side by side in one Python integer, 64 bits for each word of 32.

    The room above a word takes the carries of a few additions; what a shift moves across is masked.
    """
    ones, mask, _ = _lanes(n)
    keys = (k0, k1, k0 ^ k1 ^ PARITY * ones)
    x0 += k0
    x1 = x1 + k1 & mask
    for i, ((r, s, t, u), a, b) in enumerate(GROUPS, 1):
        x0 += x1
        x1 = ((x1 << r | x1 >> 32 - r) ^ x0) & mask
        x0 += x1
        x1 = ((x1 << s | x1 >> 32 - s) ^ x0) & mask
        x0 += x1
        x1 = ((x1 << t | x1 >> 32 - t) ^ x0) & mask
        x0 += x1
        x1 = ((x1 << u | x1 >> 32 - u) ^ x0) & mask
        x0 = x0 + keys[a] & mask
        x1 = x1 + keys[b] + i * ones & mask
    return _unpack(x0, n), _unpack(x1, n)


@functools.lru_cache(FEW)
def _lanes(n: int) -> tuple[int, int, int]:
    """For n words side by side: a 1 in each, all bits of each, and the numbers 0, 1, ..., n - 1."""
    ones = _pack(np.ones(n))
    return ones, ones * MASK, _pack(np.arange(n))


def _pack(words: Any) -> int:
    return int.from_bytes(words.astype("<u8").tobytes(), "little")


def _unpack(words: int, n: int) -> Any:
    return np.frombuffer(words.to_bytes(8 * n, "little"), "<u4")[::2]


def _combine(x0: Any, x1: Any, dtype: np.dtype | None) -> Any:
    """What the two words become."""
    if dtype is None:
        out = np.empty((*x0.shape, 2), U32)
        out[..., 0], out[..., 1] = x0, x1
        return out
    if dtype not in UNSIGNED:
        return _unit_host(_combine(x0, x1, float_layout(dtype)[0]), dtype)
    if dtype != U64:
        return (x0 ^ x1).astype(dtype, copy=False)
    out = x0.astype(U64)
    out <<= 32
    out |= x1
    return out


def _unit_host(bits: Any, dtype: np.dtype) -> Any:
    """Floats of [0, 1) from random bits."""
    _, whole, shift, one = float_layout(dtype)
    bits = bits.astype(whole, copy=False)
    bits >>= shift
    bits |= one
    return bits.view(dtype) - one.view(dtype)


# ---- In XLA ------------------------------------------------------------------------------------------------


def _threefry_lower(ctx: Context, *args: Value, **params: Any) -> Value:
    if ctx.platform != "cpu":
        return _write_threefry(ctx, *args, **params)
    # XLA on CPU copies operations into every loop that uses their result, and a division there keeps all of them from
    # being vectorised. A call that must not be inlined stays a loop of its own: randint is 4 times faster.
    avals = [a.aval for a in args]
    name = ctx.module.define("threefry2x32", avals, lambda ctx, *args: [_write_threefry(ctx, *args, **params)])
    return ctx.op("func.call", args, ctx.out, f'callee = @{name}, mhlo.frontend_attributes = {{inlineable = "false"}}')


def _write_threefry(ctx: Context, key: Value, *number: Value, shape: tuple[int, ...], dtype: np.dtype | None) -> Value:
    batch = key.shape[:-1]
    full = ShapedArray(batch + shape, U32)
    words = ShapedArray(batch, U32)

    def key_word(i: int) -> Value:
        ends = f"start_indices = {i64s([0] * len(batch) + [i])}, limit_indices = {i64s([*batch, i + 1])}"
        strides = f"strides = {i64s([1] * key.aval.ndim)}"
        one = ctx.op("slice", [key], ShapedArray((*batch, 1), U32), f"{ends}, {strides}")
        return ctx.op("reshape", [one], words)

    def in_full(x: Value) -> Value:
        return ctx.broadcast(x, full.shape, range(x.aval.ndim))

    def constant(value: int, aval: ShapedArray) -> Value:
        return ctx.full(aval.shape, value, aval.dtype)

    def binary(name: str, x: Value, y: Value) -> Value:
        return ctx.op(name, [x, y], x.aval)

    k0, k1 = key_word(0), key_word(1)
    keys = [k0, k1, binary("xor", binary("xor", k0, k1), constant(PARITY, words))]
    x0, x1 = _block_numbers(ctx, full, shape, *map(in_full, number))
    x0, x1 = binary("add", x0, in_full(k0)), binary("add", x1, in_full(k1))
    shifts = {r: constant(r, full) for r in {s for rotations, _, _ in GROUPS for r in rotations for s in (r, 32 - r)}}
    for i, (rotations, a, b) in enumerate(GROUPS, 1):
        for r in rotations:
            x0 = binary("add", x0, x1)
            left, right = binary("shift_left", x1, shifts[r]), binary("shift_right_logical", x1, shifts[32 - r])
            x1 = binary("xor", binary("or", left, right), x0)
        x0 = binary("add", x0, in_full(keys[a]))
        x1 = binary("add", x1, in_full(binary("add", keys[b], constant(i, words))))
    return _combine_lower(ctx, x0, x1, dtype)


def _block_numbers(
    ctx: Context, full: ShapedArray, shape: tuple[int, ...], number: Value | None = None
) -> tuple[Value, Value]:
    """High and low words of the numbers of the blocks."""
    zero = ctx.full(full.shape, 0, U32)
    if number is not None:
        return zero, number
    wide = math.prod(shape) > ONE_WORD
    index = ShapedArray((math.prod(shape),), U64 if wide else U32)
    index = ctx.op("iota", [], index, "iota_dimension = 0 : i64")

    def spread(x: Value) -> Value:
        x = ctx.op("reshape", [ctx.convert(x, U32)], ShapedArray(shape, U32))
        return ctx.broadcast(x, full.shape, range(full.ndim - len(shape), full.ndim))

    if not wide:
        return zero, spread(index)
    high = ctx.op("shift_right_logical", [index, ctx.full(index.shape, 32, U64)], index.aval)
    return spread(high), spread(index)


def _combine_lower(ctx: Context, x0: Value, x1: Value, dtype: np.dtype | None) -> Value:
    if dtype is None:
        columns = [ctx.op("reshape", [x], ShapedArray((*x0.shape, 1), U32)) for x in (x0, x1)]
        pair = ShapedArray((*x0.shape, 2), U32)
        return ctx.op("concatenate", columns, pair, f"dimension = {len(x0.shape)} : i64")
    if dtype not in UNSIGNED:
        drawn, whole, shift, one = float_layout(dtype)
        bits = ctx.convert(_combine_lower(ctx, x0, x1, drawn), whole)
        bits = ctx.op("shift_right_logical", [bits, ctx.full(bits.shape, shift, whole)], bits.aval)
        bits = ctx.op("or", [bits, ctx.full(bits.shape, one, whole)], bits.aval)
        floats = ctx.op("bitcast_convert", [bits], bits.aval.update(dtype=dtype))
        return ctx.op("subtract", [floats, ctx.full(bits.shape, 1, dtype)], floats.aval)
    if dtype != U64:
        return ctx.convert(ctx.op("xor", [x0, x1], x0.aval), dtype)
    high, low = ctx.convert(x0, U64), ctx.convert(x1, U64)
    high = ctx.op("shift_left", [high, ctx.full(high.shape, 32, U64)], high.aval)
    return ctx.op("or", [high, low], high.aval)


# ---- The primitive -----------------------------------------------------------------------------------------


def _threefry_types(
    key: ShapedArray, *number: ShapedArray, shape: tuple[int, ...], dtype: np.dtype | None
) -> ShapedArray:
    if key.dtype != U32 or not key.ndim or key.shape[-1] != 2:
        raise TypeError(f"random: the data of a key are uint32[..., 2], got {key.str_short()}")
    if number and (number[0] != ShapedArray(key.shape[:-1], U32) or shape):
        raise TypeError(
            f"random: one block number, a uint32, belongs to each key of {key.str_short()} and gives a result of "
            f"shape (), got {number[0].str_short()} and shape {shape}"
        )
    return ShapedArray(key.shape[:-1] + shape + ((2,) if dtype is None else ()), dtype or U32)


def _threefry_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    out = threefry2x32_p.bind(*primals, **params)
    return out, zero_of(out)


def _threefry_batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
    args = [batching.move_to(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
    return threefry2x32_p.bind(*args, **params), 0


threefry2x32_p = Primitive("threefry2x32")
threefry2x32_p.abstract_eval = _threefry_types
threefry2x32_p.host = _threefry_host
threefry2x32_p.jvp = _threefry_jvp
threefry2x32_p.batch = _threefry_batch
threefry2x32_p.lower = _threefry_lower
