"""The generators of random bits against published vectors and against JAX, bit for bit."""

import numpy as np
import pytest

from tests.ops.bit_generator import philox
from xform import lax

# Known answers that come with the authors' library Random123: counter, key, result of Philox-4x32-10.
PHILOX_VECTORS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
]


@pytest.mark.parametrize(("counter", "key", "result"), PHILOX_VECTORS)
def test_philox_gives_the_published_words(counter, key, result):
    assert philox(counter, key) == result  # the reference of the table of operations
    if counter[2:] == key:  # as the state of rng_bit_generator repeats the key in the counter
        state = np.array([*key, *counter[:2]], np.uint32)
        assert lax.rng_bit_generator(state, (4,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)[1].tolist() == result


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("algorithm", [0, 1, 2])
def test_bits_are_those_of_jax(algorithm, dtype):
    jax = pytest.importorskip("jax")
    for state in ([7, 2**64 - 2], [2**63 + 5, 2**32 - 1]):
        for shape in ((), (7,), (3, 5), (3, 4), (0, 3), (300, 333)):
            key = np.array(state, np.uint64).view(np.uint32)
            with jax.enable_x64(True):
                expected = jax.lax.rng_bit_generator(key, shape, dtype, jax.lax.RandomAlgorithm(algorithm))
            for got, want in zip(lax.rng_bit_generator(key, shape, dtype, algorithm), expected, strict=True):
                assert got.dtype == want.dtype and np.array_equal(np.asarray(got), np.asarray(want))
