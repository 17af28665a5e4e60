"""`xform.random`: the generator, the streams of JAX bit for bit, wrong arguments.

(Distributions: test_random_distributions.py. Keys and the other generators: test_random_keys.py.)
"""

import inspect

import numpy as np
import pytest

import xform
import xform.numpy as jnp
from tests.ops.record import eps
from xform import random
from xform.lax import random_bits

SEEDS = (0, 42, -7, 2**40 + 3)
SHAPES = ((), (0,), (3,), (2, 5), (1000,))


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


# ---- The generator -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "key", "words"),
    [  # known answers of Random123, https://github.com/DEShawResearch/random123, tests/kat_vectors
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
@pytest.mark.parametrize("n", [1, 2, random_bits.FEW, random_bits.FEW + 1])
def test_known_answers(number, key, words, n):
    k0, k1, x0, x1 = (np.full((1, n), v, np.uint32) for v in (*key, *number))
    got = random_bits._blocks(k0, k1, x0, x1)
    np.testing.assert_array_equal(got, [np.full((1, n), w) for w in words])


def test_parts_are_those_of_the_whole():
    """An element depends on its place alone; whatever computes it: Python's integers, or one tile of many."""
    key = np.array([3, 4], "uint32")

    def draw(n):
        return np.asarray(random_bits.threefry2x32_p.bind(key, shape=(n,), dtype=np.dtype("uint64")))

    sizes = (5, random_bits.FEW, random_bits.FEW + 1, random_bits.TILE + 1, 2 * random_bits.TILE + 7)
    whole = draw(max(sizes))
    assert np.unique(whole).size == whole.size
    for n in sizes:
        np.testing.assert_array_equal(draw(n), whole[:n])


def test_block_numbers_of_two_words(monkeypatch):
    """XLA counts with 64 bits when 32 are too few; on the host the high word is that of the tile's first column."""
    key = np.array([3, 4], "uint32")

    def draw(key):
        return random_bits.threefry2x32_p.bind(key, shape=(3, 4), dtype=np.dtype("uint32"))

    narrow = np.asarray(xform.jit(draw)(key))
    monkeypatch.setattr(random_bits, "ONE_WORD", 4)
    np.testing.assert_array_equal(xform.jit(lambda k: draw(k))(key), narrow)
    rows, columns = list(random_bits._tiles(1, 2**32 + 5))[-1]
    assert (rows, columns) == (slice(0, 1), slice(2**32, 2**32 + 5))


# ---- The streams of JAX ------------------------------------------------------------------------------------

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "uint16", "int32", "uint32", "int64", "uint64")
LOGITS = np.log(np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]))
WEIGHTS = np.array([0.1, 0.0, 0.4, 0.3, 0.2])
COV = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
TABLE = np.arange(30.0).reshape(5, 6)

# name: function of (the module random, a key, a shape); equal bit for bit.
EXACT = {
    **{f"bits-{t}": lambda r, k, s, t=t: r.bits(k, s, t) for t in ("uint8", "uint16", "uint32", "uint64", None)},
    "split": lambda r, k, s: r.key_data(r.split(k, s)),
    **{f"uniform-{t}": lambda r, k, s, t=t: r.uniform(k, s, t) for t in (*FLOATS, None)},
    **{f"uniform-range-{t}": lambda r, k, s, t=t: r.uniform(k, s, t, -3.7, 12.3) for t in FLOATS},
    **{f"randint-{t}": lambda r, k, s, t=t: r.randint(k, s, 3, 103, t) for t in (*INTS, None)},
    **{
        f"randint-all-{t}": lambda r, k, s, t=t: r.randint(k, s, *whole_range(t), t)
        for t in ("int8", "uint32", "int64")
    },
    "randint-negative": lambda r, k, s: r.randint(k, s, -(2**62), 2**61 + 5),
    "randint-outside": lambda r, k, s: r.randint(k, s, -1000, 1000, "int8"),
    "randint-empty": lambda r, k, s: r.randint(k, s, 5, 5),
    "randint-reversed": lambda r, k, s: r.randint(k, s, 5, 2),
    "randint-power": lambda r, k, s: r.randint(k, s, 0, 64),
    "randint-float": lambda r, k, s: r.randint(k, s, 0, 10.7),
    "bernoulli": lambda r, k, s: r.bernoulli(k, 0.3, s),
    "bernoulli-float32": lambda r, k, s: r.bernoulli(k, np.float32(0.3), s),
    "rademacher": lambda r, k, s: r.rademacher(k, s),
    "rademacher-float32": lambda r, k, s: r.rademacher(k, s, "float32"),
    "choice": lambda r, k, s: r.choice(k, 10, s),
    "choice-rows": lambda r, k, s: r.choice(k, TABLE, s),
    "choice-p": lambda r, k, s: r.choice(k, 5, s, p=WEIGHTS),
    "choice-p-float32": lambda r, k, s: r.choice(k, TABLE, s, p=WEIGHTS.astype("float32")),
    "categorical": lambda r, k, s: r.categorical(k, LOGITS, shape=(*s, 2)),
    "categorical-axis": lambda r, k, s: r.categorical(k, LOGITS.astype("float32"), axis=0, shape=(*s, 3)),
}
# The same for calls whose shape is their own.
FIXED = {
    "poisson-approximate": lambda r, k, s: r.poisson(k, np.array([0, 3.0, 8, 1e5]), (50, 4), method="approximate"),
    "geometric": lambda r, k, s: r.geometric(k, np.array([0.1, 0.7]), (50, 2)),
    "bernoulli-high": lambda r, k, s: r.bernoulli(k, np.float32(0.3), (3, 50), mode="high"),
    "categorical-high": lambda r, k, s: r.categorical(k, LOGITS, shape=(50, 2), mode="high"),
    "split-int": lambda r, k, s: r.key_data(r.split(k, 7)),
    "fold_in": lambda r, k, s: r.key_data(r.fold_in(k, 2**31 + 5)),
    "bernoulli-array": lambda r, k, s: r.bernoulli(k, np.array([[0.1], [0.9]]), (2, 40)),
    "bernoulli-shape": lambda r, k, s: r.bernoulli(k, WEIGHTS),
    "randint-arrays": lambda r, k, s: r.randint(k, (2, 5), np.arange(5), np.array([[9], [100]])),
    "randint-arrays-int8": lambda r, k, s: r.randint(
        k, (4,), np.array([0, -500, 5, 7]), np.array([500, 500, 5, 3]), "int8"
    ),
    "randint-arrays-uint32": lambda r, k, s: r.randint(
        k, (3,), np.array([0, -1, 5]), np.array([2**32, 2**33, 9]), "uint32"
    ),
    "categorical-shape": lambda r, k, s: r.categorical(k, LOGITS),
    "categorical-broadcast": lambda r, k, s: r.categorical(k, LOGITS[:1], shape=(4, 2)),
    # (JAX's are int32 here, and int64 in all other cases.)
    "categorical-once": lambda r, k, s: r.categorical(k, LOGITS, shape=(2, 2), replace=False).astype(int),
    "categorical-once-axis": lambda r, k, s: r.categorical(k, LOGITS, axis=0, shape=(2, 3), replace=False).astype(int),
    "choice-columns": lambda r, k, s: r.choice(k, TABLE, (2, 3), axis=1),
    "choice-once": lambda r, k, s: r.choice(k, 10, (2, 3), replace=False),
    "choice-once-array": lambda r, k, s: r.choice(k, TABLE, (4,), replace=False, axis=1),
    "choice-once-p": lambda r, k, s: r.choice(k, 5, (2, 2), replace=False, p=WEIGHTS),
    "permutation": lambda r, k, s: r.permutation(k, 10),
    "permutation-large": lambda r, k, s: r.permutation(k, 2000),  # two rounds of sorting
    "permutation-none": lambda r, k, s: r.permutation(k, 0),
    "permutation-array": lambda r, k, s: r.permutation(k, WEIGHTS),
    "permutation-rows": lambda r, k, s: r.permutation(k, TABLE),
    "permutation-columns": lambda r, k, s: r.permutation(k, TABLE, axis=-1),
    "permutation-independent": lambda r, k, s: r.permutation(k, TABLE, axis=1, independent=True),
}
# Within a few roundings.
CLOSE = {
    **{f"normal-{t}": lambda r, k, s, t=t: r.normal(k, s, t) for t in (*FLOATS, "complex64", "complex128")},
    **{f"truncated_normal-{t}": lambda r, k, s, t=t: r.truncated_normal(k, -1, 2.5, s, t) for t in FLOATS[2:]},
    **{
        f"{name}-{t}": lambda r, k, s, name=name, t=t: getattr(r, name)(k, s, t)
        for name in ("exponential", "gumbel", "laplace", "logistic", "cauchy")
        for t in FLOATS[2:]
    },
}
CLOSE_FIXED = {
    **{
        f"{name}-approximate-{t}": lambda r, k, s, name=name, t=t: getattr(r, name)(
            k, np.array([0.3, 7.0], "float32"), (50, 2), t, method="approximate"
        )
        for name in ("gamma", "loggamma", "chisquare")
        for t in FLOATS[2:]
    },
    "beta-approximate": lambda r, k, s: r.beta(k, np.array([0.3, 7.0]), 0.5, (50, 2), method="approximate"),
    "gumbel-high": lambda r, k, s: r.gumbel(k, (200,), mode="high"),
    "uniform-arrays": lambda r, k, s: r.uniform(k, (2, 3), minval=np.arange(3.0), maxval=np.array([[4.0], [5.0]])),
    "lognormal": lambda r, k, s: r.lognormal(k, np.array([0.5, 2.0]), (50, 2)),
    "maxwell": lambda r, k, s: r.maxwell(k, (50,), "float32"),
    "double_sided_maxwell": lambda r, k, s: r.double_sided_maxwell(k, 1.0, np.array([0.5, 2.0]), (50,)),
    "pareto": lambda r, k, s: r.pareto(k, np.array([0.5, 2.0])),
    "rayleigh": lambda r, k, s: r.rayleigh(k, np.array([0.5, 2.0]), (50, 2)),
    "triangular": lambda r, k, s: r.triangular(k, -1.0, np.array([0.5, 2.0]), 3, (50, 2)),
    "wald": lambda r, k, s: r.wald(k, np.array([0.5, 2.0]), (50, 2)),
    "weibull_min": lambda r, k, s: r.weibull_min(k, 2.0, 3.0, (50,)),
    **{
        f"multivariate_normal-{m}": lambda r, k, s, m=m: r.multivariate_normal(
            k, np.arange(6.0).reshape(2, 3), COV, (4, 2), method=m
        )
        for m in ("cholesky", "eigh")
    },
    "multivariate_normal-svd": lambda r, k, s: abs(r.multivariate_normal(k, np.zeros(3), COV, method="svd")),
    "orthogonal": lambda r, k, s: r.orthogonal(k, 3),
    "orthogonal-wide": lambda r, k, s: r.orthogonal(k, 2, (3,), m=4),
    "orthogonal-complex": lambda r, k, s: r.orthogonal(k, 3, (2,), complex),
    "truncated_normal-arrays": lambda r, k, s: r.truncated_normal(k, np.arange(3.0), np.array([[4.0], [5.0]])),
}


def whole_range(dtype):
    info = np.iinfo(dtype)
    return int(info.min), int(info.max) + 1 if dtype != "int64" else int(info.max)


def skip_without_approximations(jax, name):
    if "approximate" in name and "method" not in inspect.signature(jax.random.gamma).parameters:
        pytest.skip("this JAX has no approximate samplers")


def check_stream(jax, call, shapes, compare):
    """Results of ``call(module, key, shape)``: eager, compiled and mapped over keys, of typed and bare keys.

    As a number depends on its place alone, JAX has to make those of the last shape, the largest, only.
    """
    largest = shapes[-1]
    oracle = jax.jit(lambda key: call(jax.random, key, largest))
    wanted = [np.asarray(oracle(jax.random.key(seed))) for seed in SEEDS]

    def part(want, shape):
        if shape == largest:
            return want
        inner = want.shape[len(largest) :]
        return want.reshape(-1, *inner)[: int(np.prod(shape))].reshape((*shape, *inner))

    for seed, want in zip(SEEDS, wanted):
        for shape in shapes:
            compare(call(random, random.key(seed), shape), part(want, shape))
        compare(call(random, random.PRNGKey(seed), shapes[0]), part(want, shapes[0]))
    keys = random.wrap_key_data(jnp.stack([random.PRNGKey(seed) for seed in SEEDS]))

    def mapped(keys):
        return xform.vmap(lambda key: call(random, key, shapes[-2]))(keys)

    def compiled(keys):
        return mapped(keys), call(random, keys[0], largest)

    rows, one = xform.jit(compiled)(keys)
    compare(one, wanted[0])
    want = np.stack([part(w, shapes[-2]) for w in wanted])
    compare(rows, want)
    compare(mapped(keys), want)


def same(got, want):
    assert (np.shape(got), got.dtype) == (want.shape, want.dtype)
    np.testing.assert_array_equal(got, want)


def close(got, want):
    assert (np.shape(got), got.dtype) == (want.shape, want.dtype)
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    # In JAX, log1p is off by up to 100 eps around 0.4, and erf_inv with it; in float32 by 25 eps far out.
    got, e = np.asarray(got), eps(want.dtype) * (150 if want.dtype.itemsize >= 4 else 20)
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=e, atol=e / 4)


@pytest.mark.parametrize("name", EXACT)
def test_exact_streams(jax, name):
    check_stream(jax, EXACT[name], SHAPES, same)


@pytest.mark.parametrize("name", FIXED)
def test_exact_streams_of_one_shape(jax, name):
    skip_without_approximations(jax, name)
    check_stream(jax, FIXED[name], (None, None), same)


@pytest.mark.parametrize("name", CLOSE)
def test_close_streams(jax, name):
    check_stream(jax, CLOSE[name], SHAPES, close)


@pytest.mark.parametrize("name", CLOSE_FIXED)
def test_close_streams_of_one_shape(jax, name):
    skip_without_approximations(jax, name)
    check_stream(jax, CLOSE_FIXED[name], (None, None), close)


def test_32_bit_streams(jax):
    def calls(r, key):
        return [
            r.bits(key, (3,)),
            r.uniform(key, (3,)),
            r.uniform(key, (3,), minval=-1, maxval=3),
            r.randint(key, (3,), 0, 1000),
            r.permutation(key, 5),
            r.choice(key, 5, (3,)),
            r.categorical(key, LOGITS.astype("float32")),
            r.rademacher(key, (3,)),
        ]

    with jax.enable_x64(False), xform.enable_x64(False):
        for got, want in zip(calls(random, random.key(7)), calls(jax.random, jax.random.key(7)), strict=True):
            same(got, np.asarray(want))
        close(random.normal(random.key(7), (3,)), np.asarray(jax.random.normal(jax.random.key(7), (3,))))


# ---- Errors ------------------------------------------------------------------------------------------------

KEY = random.PRNGKey(0)
ERRORS = [
    (lambda: random.key(1.0), TypeError, r"random.key: the seed must be an integer, got f64\[\]"),
    (lambda: random.PRNGKey(np.arange(3)), TypeError, r"random.PRNGKey.*i64\[3\].*vmap"),
    (lambda: random.key(random.key(0)), TypeError, r"random.key.*fold_in"),
    (lambda: random.key(2**63), OverflowError, r"random.key.*64 bits"),
    (lambda: random.key(0, impl="xorshift"), ValueError, r"random.key.*'rbg', 'unsafe_rbg'.*'xorshift'"),
    (lambda: random.key(0, impl=3), TypeError, r"random.key.*got 3"),
    (lambda: random.key(0, impl="rbg", dtype=random.key_dtype("rbg")), ValueError, r"random.key.*only one"),
    (lambda: random.wrap_key_data(KEY, impl="rbg"), TypeError, r"wrap_key_data.*uint32\[..., 4\].*rbg.*u32\[2\]"),
    (lambda: random.wrap_key_data(np.zeros(3, "uint32")), TypeError, r"wrap_key_data.*u32\[3\]"),
    (lambda: random.wrap_key_data(np.zeros(2, "int32")), TypeError, r"wrap_key_data.*i32\[2\]"),
    (lambda: random.key_data(5), TypeError, r"key_data.*5 of type int"),
    (lambda: random.key_impl(5), TypeError, r"key_impl"),
    (lambda: random.split(random.split(KEY)), ValueError, r"split.*shape \(2,\).*vmap"),
    (lambda: random.split(KEY, -1), ValueError, r"negative"),
    (lambda: random.fold_in(KEY, -1), OverflowError, r"fold_in.*-1"),
    (lambda: random.fold_in(KEY, 2**32), OverflowError, r"fold_in.*4294967296"),
    (lambda: random.fold_in(KEY, 1.5), TypeError, r"fold_in.*f64"),
    (lambda: random.fold_in(KEY, np.arange(2)), TypeError, r"fold_in.*i64\[2\].*vmap"),
    (lambda: random.uniform(5), TypeError, r"random.uniform: expected a key.*5 of type int"),
    (lambda: random.uniform(random.split(random.key(0), 3)), ValueError, r"random.uniform.*single key.*\(3,\)"),
    (lambda: random.uniform(KEY, (2,), int), ValueError, r"random.uniform.*float.*int64"),
    (lambda: random.uniform(KEY, (2,), "float4_e2m1fn"), ValueError, r"random.uniform.*8, 16, 32 or 64 bits"),
    (
        lambda: random.uniform(KEY, (2,), minval=np.zeros(3)),
        ValueError,
        r"random.uniform.*minval of shape \(3,\).*\(2,\)",
    ),
    (lambda: random.uniform(KEY, (-1,)), ValueError, r"negative"),
    (lambda: random.uniform(KEY, out_sharding="x"), NotImplementedError, r"random.uniform.*out_sharding"),
    (lambda: random.normal(KEY, (2,), int), ValueError, r"random.normal"),
    (lambda: random.bits(KEY, (2,), "int32"), ValueError, r"random.bits.*unsigned.*int32"),
    (lambda: random.randint(KEY, (2,), 0, 5, float), ValueError, r"random.randint.*integer.*float64"),
    (lambda: random.randint(KEY, (2,), np.zeros(3, int), 5), ValueError, r"random.randint.*minval of shape \(3,\)"),
    (lambda: random.bernoulli(KEY, 1), TypeError, r"random.bernoulli.*p must be"),
    (lambda: random.bernoulli(KEY, 0.5, mode="x"), ValueError, r"random.bernoulli.*mode"),
    (lambda: random.bernoulli(KEY, np.zeros(3), (2,)), ValueError, r"random.bernoulli.*p of shape \(3,\)"),
    (lambda: random.gamma(KEY, "x"), TypeError, r"random.gamma: a .*'x' of type str"),
    (lambda: random.gamma(KEY, 1j), TypeError, r"random.gamma: a .*complex128"),
    (lambda: random.gamma(KEY, np.ones(3), (2,)), ValueError, r"random.gamma: a of shape \(3,\).*\(2,\)"),
    (lambda: random.gamma(KEY, 1.0, dtype=int), ValueError, r"random.gamma.*float.*int64"),
    (lambda: random.loggamma(KEY, 1.0, method="x"), ValueError, r"random.loggamma: method.*'x'"),
    (
        lambda: random.beta(KEY, np.ones(3), np.ones(2)),
        ValueError,
        r"random.beta: a of shape \(3,\), b of shape \(2,\)",
    ),
    (lambda: random.beta(KEY, 1.0, None), TypeError, r"random.beta: b .*None"),
    (lambda: random.dirichlet(KEY, 1.0), ValueError, r"random.dirichlet: alpha .*axis.*f64\[\]"),
    (lambda: random.dirichlet(KEY, np.ones((2, 3)), (5,)), ValueError, r"random.dirichlet: alpha of shape \(2, 3\)"),
    (lambda: random.ball(KEY, -1), ValueError, r"random.ball: the dimension.*-1"),
    (lambda: random.ball(KEY, 2, np.ones(2)), ValueError, r"random.ball: p must be a number.*f64\[2\]"),
    (lambda: random.poisson(KEY, 1.0, dtype=float), ValueError, r"random.poisson.*integer.*float64"),
    (lambda: random.poisson(KEY, 1.0, method="x"), ValueError, r"random.poisson: method.*'x'"),
    (lambda: random.poisson(KEY, np.ones(3), (2,)), ValueError, r"random.poisson: lam of shape \(3,\)"),
    (lambda: random.poisson(KEY, [1.0]), TypeError, r"random.poisson: lam .*list"),
    (lambda: random.binomial(KEY, 5, "x"), TypeError, r"random.binomial: p .*'x'"),
    (lambda: random.binomial(KEY, np.ones(3), 0.5, (2,)), ValueError, r"random.binomial: n of shape \(3,\)"),
    (lambda: random.multinomial(KEY, 5, 0.5), ValueError, r"random.multinomial: p .*axis.*f64\[\]"),
    (lambda: random.multinomial(KEY, 5, WEIGHTS, shape=(3,)), ValueError, r"random.multinomial: shape.*5.*\(3,\)"),
    (lambda: random.multinomial(KEY, np.ones(2), WEIGHTS), ValueError, r"random.multinomial: n of shape \(2,\)"),
    (lambda: random.lognormal(KEY, 1j), TypeError, r"random.lognormal: sigma .*complex128"),
    (lambda: random.t(random.split(random.key(0)), 1.0), ValueError, r"random.t.*single key.*\(2,\)"),
    (lambda: random.gumbel(KEY, mode="x"), ValueError, r"random.gumbel.*mode"),
    (lambda: random.categorical(KEY, LOGITS, shape=(3,)), ValueError, r"random.categorical.*\(2, 3\).*\(3,\)"),
    (lambda: random.categorical(KEY, LOGITS, shape=(4, 2), replace=False), ValueError, r"4 draws.*3 categories"),
    (lambda: random.categorical(KEY, np.arange(3)), ValueError, r"random.categorical.*float.*int64"),
    (lambda: random.choice(KEY, 5, (7,), replace=False), ValueError, r"random.choice.*7.*5"),
    (lambda: random.choice(KEY, 0, (1,)), ValueError, r"random.choice.*nothing"),
    (lambda: random.choice(KEY, -1), ValueError, r"random.choice.*negative"),
    (lambda: random.choice(KEY, 2.5), TypeError, r"random.choice.*2.5"),
    (lambda: random.choice(KEY, 3, p=WEIGHTS), ValueError, r"random.choice.*p must have shape \(3,\).*\(5,\)"),
    (lambda: random.multivariate_normal(KEY, 0.0, COV), ValueError, r"random.multivariate_normal.*\(\) and \(3, 3\)"),
    (lambda: random.multivariate_normal(KEY, np.zeros(3), COV, method="x"), ValueError, r"method must be"),
    (lambda: random.multivariate_normal(KEY, np.zeros((2, 3)), COV, (3,)), ValueError, r"broadcast to shape \(3,\)"),
    (lambda: random.permutation(KEY, 2.5), TypeError, r"random.permutation.*2.5"),
    (lambda: xform.jit(lambda n: random.permutation(KEY, n))(5), TypeError, r"concrete"),
]


@pytest.mark.parametrize(("call", "exception", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors(call, exception, message):
    with pytest.raises(exception, match=message):
        call()
