"""Records of `lax.bit_generator`.

The reference encrypts block by block on Python's integers, as the authors of Philox and Threefry define them: J. K.
Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC '11. `tests/test_random_bits.py` compares with JAX.
"""

import itertools
import math

import numpy as np

from tests.ops.random import block as threefry
from tests.ops.record import UINTS, Op, Sample, as_dtype
from xform.lax.bit_generator import RandomAlgorithm, rng_bit_generator

MASK = 2**32 - 1
PHILOX, THREEFRY = RandomAlgorithm.RNG_PHILOX, RandomAlgorithm.RNG_THREE_FRY


def philox(counter, key):
    """Four words: ten rounds on a counter of four words with a key of two."""
    a, b, c, d = counter
    k, m = key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & MASK, (p >> 32) ^ d ^ m, p & MASK
        k, m = (k + 0x9E3779B9) & MASK, (m + 0xBB67AE85) & MASK
    return [a, b, c, d]


def words_of(key, first, shape, wide, algorithm):
    """Elements in row-major order, and the number of blocks."""
    n = math.prod(shape)
    halves = [key & MASK, key >> 32]
    if algorithm != THREEFRY:
        blocks = math.ceil(n / (2 if wide else 4))
        numbers = [(key << 64) + first + i for i in range(blocks)]
        words = [w for x in numbers for w in philox([x >> s & MASK for s in (0, 32, 64, 96)], halves)]
        return ([a | b << 32 for a, b in zip(words[::2], words[1::2])] if wide else words)[:n], blocks

    def two(i):
        x = (first + i) % 2**64
        return threefry(halves, (x & MASK) << 32 | x >> 32)

    if wide or not shape:
        return [a | b << 32 if wide else a for a, b in map(two, range(n))], n
    axis = next((d for d, m in enumerate(shape) if m % 2 == 0), shape.index(max(shape)))
    half = [math.ceil(m / 2) if d == axis else m for d, m in enumerate(shape)]
    out = []
    for at in itertools.product(*map(range, shape)):
        i = int(np.ravel_multi_index([j // 2 if d == axis else j for d, j in enumerate(at)], half))
        out.append(two(i)[at[axis] % 2])
    return out, math.prod(half)


def reference(key, *, shape, dtype, algorithm=PHILOX):
    k, first = (int(x) for x in key.view("uint64"))
    words, blocks = words_of(k, first, shape, dtype == "uint64", algorithm)
    bits = np.array([w % 2 ** (8 * np.dtype(dtype).itemsize) for w in words], dtype).reshape(shape)
    return [np.array([k, (first + blocks) % 2**64], "uint64").view(key.dtype), bits]


def samples(rng, dtype):
    for shape in ((), (3,), (2, 3), (0, 2), (3, 5, 1)):
        for algorithm in (PHILOX, THREEFRY):
            key = np.asarray(rng.integers(0, 2**64, 2, "uint64"))
            yield Sample(
                (key if shape == (3,) else key.view("uint32"),),
                {"shape": shape, "dtype": as_dtype(dtype), "algorithm": algorithm},
            )


def edges(dtype):
    for key, algorithm in itertools.product(([0, 2**64 - 1], [2**64 - 1, 2**64 - 2], [5, 2**32 - 1]), (0, 1, 2)):
        yield Sample(
            (np.array(key, "uint64"),), {"shape": (9,), "dtype": dtype, "algorithm": RandomAlgorithm(algorithm)}
        )


KEY = np.zeros(4, "uint32")
OPS = [
    Op(
        "rng_bit_generator", rng_bit_generator, samples, reference, UINTS, edges=edges, differentiable=False,
        errors=[
            (lambda: rng_bit_generator(KEY[:2], (3,)), TypeError, r"rng_bit_generator.*uint32\[4\].*u32\[2\]"),
            (lambda: rng_bit_generator(KEY, (3,), np.int32), TypeError, "rng_bit_generator.*unsigned.*int32"),
            (lambda: rng_bit_generator(KEY, (3,), out_sharding="x"), NotImplementedError, "rng_bit_generator"),
        ],
    )
]  # fmt: skip
