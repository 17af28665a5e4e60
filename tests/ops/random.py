"""Records of `lax.random_bits`, and of the primitives of `xform.random`.

The reference is Threefry-2x32 as its authors define it, block by block on Python's integers: J. K. Salmon et al.,
"Parallel random numbers: as easy as 1, 2, 3", SC '11.
"""

import itertools
import math
from fractions import Fraction

import numpy as np

from tests.ops.record import Op, Sample, as_dtype
from xform.core.dtypes import finfo
from xform.lax.random_bits import threefry2x32_p
from xform.random.counts import random_binomial_p, random_poisson_p
from xform.random.gamma import random_gamma_p

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
DTYPES = ("uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", None)


def block(key, number):
    """The two words of a block."""
    words = [number >> 32, number % 2**32]
    schedule = [*key, 0x1BD11BDA ^ key[0] ^ key[1]]
    for i in range(20):
        if i % 4 == 0:
            for j in (0, 1):
                words[j] += schedule[(i // 4 + j) % 3]
            words[1] += i // 4
        words = [w % 2**32 for w in words]
        words[0] = (words[0] + words[1]) % 2**32
        r = ROTATIONS[i % 8]
        words[1] = ((words[1] << r | words[1] >> 32 - r) % 2**32) ^ words[0]
    return [(words[0] + schedule[2]) % 2**32, (words[1] + schedule[0] + 5) % 2**32]


def made_of(x0, x1, dtype):
    if dtype is None:
        return np.array([x0, x1], "uint32")
    if dtype.kind == "u":
        return dtype.type(x0 << 32 | x1 if dtype == "uint64" else (x0 ^ x1) % 2 ** (8 * dtype.itemsize))
    width = 8 if finfo(dtype).nmant < 8 else dtype.itemsize * 8
    whole = int(made_of(x0, x1, np.dtype(f"uint{width}")))
    return dtype.type(float(Fraction(whole >> width - finfo(dtype).nmant, 2 ** finfo(dtype).nmant)))


def reference(keys, number=None, *, shape, dtype):
    tail = (2,) if dtype is None else ()
    out = np.empty((*keys.shape[:-1], math.prod(shape), *tail), dtype or "uint32")
    for at in itertools.product(*map(range, keys.shape[:-1])):
        for i in range(math.prod(shape)):
            count = i if number is None else int(number[at])
            out[(*at, i)] = made_of(*block([int(k) for k in keys[at]], count), dtype)
    return out.reshape((*keys.shape[:-1], *shape, *tail))


def random_words(rng, *shape):
    return np.asarray(rng.integers(0, 2**32, shape, "uint32"))


def samples(rng, dtype):
    keys = ((), (), (), (), (3,), (2, 1), (0,))
    shapes = ((), (3,), (0, 2), (1, 4, 1), (2, 2), (), (2,))
    for key, shape, name in zip(keys, shapes, DTYPES):
        yield Sample((random_words(rng, *key, 2),), {"shape": shape, "dtype": name and as_dtype(name)})
    for name in DTYPES:  # 300 blocks are computed by NumPy, fewer by Python's integers
        yield Sample((random_words(rng, 2),), {"shape": (300,), "dtype": name and as_dtype(name)})
        yield Sample((random_words(rng, 2, 2),), {"shape": (5,), "dtype": name and as_dtype(name)})


def numbered(rng, dtype):
    for shape, name in (((), None), ((3,), "uint32"), ((150, 2), "float64")):
        yield Sample(
            (random_words(rng, *shape, 2), random_words(rng, *shape)), {"shape": (), "dtype": name and as_dtype(name)}
        )


def edges(dtype):
    ends = np.array([0, 1, 2**31, 2**32 - 1], "uint32")
    keys = np.array(list(itertools.product(ends, ends)))
    few = {"shape": (), "dtype": None}
    return [Sample((keys,), {"shape": (2,), "dtype": None}), Sample((np.array([[5, 6], [0, 0]], "uint32"),), few)]


def bind(*args, shape, dtype):
    return threefry2x32_p.bind(*args, shape=shape, dtype=dtype)


bind.__name__ = "random"

# Samplers that repeat until a proposal is accepted: their numbers are what the distribution tests of test_random.py
# check; here host and XLA are compared.


def sampler(primitive, **params):
    def call(*args, dtype=None):
        return primitive.bind(*args, dtype=np.dtype(dtype or args[1].dtype.newbyteorder("=")), **params)

    call.__name__ = primitive.name
    return call


def samples_of(*ranges, **kwargs):
    """Keys, and parameters in each of the ranges."""

    def samples(rng, dtype):
        for batch, shape in (((), ()), ((), (3,)), ((2,), (2, 40)), ((2, 1), (2, 1)), ((), (0, 2)), ((0,), (0, 3))):
            parameters = [np.asarray(rng.uniform(*r, shape)).astype(dtype) for r in ranges]
            yield Sample((random_words(rng, *batch, 2), *parameters), kwargs)

    return samples


def edges_of(*values, **kwargs):
    """Every combination of values of the parameters, with the same key."""

    def edges(dtype):
        grid = np.meshgrid(*values, indexing="ij")
        return [Sample((np.array([1, 2], "uint32"), *(x.ravel().astype(dtype) for x in grid)), kwargs)]

    return edges


key = np.zeros(2, "uint32")
WRONG = [
    (lambda: random_gamma_p.bind(key, np.ones(3, int), dtype=np.dtype(float), log_space=False), "random_gamma.*i64"),
    (lambda: random_poisson_p.bind(np.zeros(2), np.ones(3), dtype=np.dtype(int)), r"random_poisson.*f64\[2\]"),
    (lambda: random_binomial_p.bind(key, np.ones(3), np.ones(2), dtype=np.dtype(float)), r"f64\[3\], f64\[2\]"),
]
pair = np.zeros(2, "uint32")

OPS = [
    Op(
        "threefry2x32",
        bind,
        samples,
        reference,
        ("uint32",),
        edges=edges,
        errors=[
            (
                lambda: bind(np.zeros(3, "uint32"), shape=(), dtype=None),
                TypeError,
                r"random.* got u32\[3\]",
            ),
            (lambda: bind(np.zeros(2), shape=(), dtype=None), TypeError, r"random.* got f64\[2\]"),
            (lambda: bind(np.uint32(2), shape=(), dtype=None), TypeError, r"random.* got u32\[\]"),
        ],
    ),
    Op(
        "threefry2x32:number",
        bind,
        numbered,
        reference,
        ("uint32",),
        errors=[
            (lambda: bind(pair, pair, shape=(), dtype=None), TypeError, r"random.*got u32\[2\] and shape \(\)"),
            (
                lambda: bind(pair, np.uint32(1), shape=(3,), dtype=None),
                TypeError,
                r"random.*got u32\[\] and",
            ),
            (lambda: bind(pair, np.int32(1), shape=(), dtype=None), TypeError, r"random.*got i32\[\]"),
        ],
    ),
    *(
        Op(
            name,
            sampler(random_gamma_p, log_space=log_space),
            samples_of((0.2, 5)),
            None,
            ("float32", "float64"),
            edges=edges_of([0, 1e-30, 1, 1e10, np.inf, -1, np.nan]),
            differentiable=False,  # the derivative is that at a constant quantile, not along the path of the program
            ulps=100,
            errors=[(WRONG[0][0], TypeError, WRONG[0][1])],
        )
        for name, log_space in (("random_gamma", False), ("random_gamma:log", True))
    ),
    Op(
        "random_poisson",
        sampler(random_poisson_p),
        samples_of((0, 30), dtype="int32"),
        None,
        ("float32", "float64"),
        edges=edges_of([0, 1e-30, 10, 1e10, np.inf, -1, np.nan], dtype="int64"),
        differentiable=False,
        errors=[(WRONG[1][0], TypeError, WRONG[1][1])],
    ),
    Op(
        "random_binomial",
        sampler(random_binomial_p),
        samples_of((0, 60), (0, 1)),
        None,
        ("float32", "float64"),
        edges=edges_of([0, 1, 1e3, np.inf, -1, np.nan], [0, 0.5, 1, -0.1, 1.1, np.nan]),
        differentiable=False,
        errors=[(WRONG[2][0], TypeError, WRONG[2][1])],
    ),
]
