"""`xform.random`: the streams of JAX bit for bit, the distributions by SciPy, keys as values and as pytrees."""

import copy
import pickle

import numpy as np
import pytest
from scipy import stats

import xform
import xform.numpy as jnp
from tests.ops.record import as_dtype, eps
from xform import lax, random
from xform.core import dtypes
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
    check_stream(jax, FIXED[name], (None, None), same)


@pytest.mark.parametrize("name", CLOSE)
def test_close_streams(jax, name):
    check_stream(jax, CLOSE[name], SHAPES, close)


@pytest.mark.parametrize("name", CLOSE_FIXED)
def test_close_streams_of_one_shape(jax, name):
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


# ---- Seeds -------------------------------------------------------------------------------------------------

INTEGERS = (0, 1, True, -1, 2**31, 2**32 - 1, 2**32, 2**32 + 5, 2**63 - 1, -(2**63))
SCALARS = (np.int8(-1), np.int32(-1), np.uint32(2**32 - 1), np.int64(-1), np.int64(2**40), np.uint64(2**64 - 1))


@pytest.mark.parametrize("seed", INTEGERS + SCALARS, ids=lambda s: f"{type(s).__name__}{s}")
def test_seeds(jax, seed):
    want = np.asarray(jax.random.PRNGKey(seed))
    np.testing.assert_array_equal(random.PRNGKey(seed), want)
    if not isinstance(seed, bool):
        np.testing.assert_array_equal(random.key_data(random.key(jnp.asarray(seed))), want)
        np.testing.assert_array_equal(xform.jit(random.PRNGKey)(seed), want)
        np.testing.assert_array_equal(random.key_data(xform.vmap(random.key)(np.array([seed, seed])))[1], want)


@pytest.mark.parametrize("seed", INTEGERS)
def test_32_bit_seeds(jax, seed):
    with jax.enable_x64(False), xform.enable_x64(False):
        np.testing.assert_array_equal(random.PRNGKey(seed), np.asarray(jax.random.PRNGKey(seed)))


@pytest.mark.parametrize("data", [0, 7, True, 2**32 - 1, np.int64(-1), np.int64(2**32 + 1), np.uint8(200)])
def test_fold_in(jax, data):
    want = np.asarray(jax.random.fold_in(jax.random.PRNGKey(3), data))
    np.testing.assert_array_equal(random.fold_in(random.PRNGKey(3), data), want)
    np.testing.assert_array_equal(xform.jit(random.fold_in)(random.PRNGKey(3), data), want)
    several = xform.vmap(random.fold_in, (None, 0))(random.key(3), np.array([data, data]))
    np.testing.assert_array_equal(random.key_data(several)[1], want)


def test_fold_in_is_one_of_split():
    keys = random.key_data(random.split(random.key(5), 4))
    np.testing.assert_array_equal(random.fold_in(random.PRNGKey(5), 2), keys[2])


# ---- Keys --------------------------------------------------------------------------------------------------


def test_key_arrays(jax):
    key, other = random.key(1), jax.random.key(1)
    assert (key.shape, key.ndim, key.size, key.itemsize, key.nbytes) == ((), 0, 1, 8, 8)
    assert repr(key) == repr(other)
    assert str(key.dtype) == repr(key.dtype) == str(other.dtype)
    assert dtypes.issubdtype(key.dtype, dtypes.prng_key) and not dtypes.issubdtype(key.dtype, np.floating)
    assert key.dtype == random.key_dtype() == random.split(key).dtype
    keys = random.split(key, (2, 3))
    assert repr(keys) == repr(jax.random.split(other, (2, 3)))
    assert (keys.shape, keys.ndim, keys.size, len(keys), keys.nbytes) == ((2, 3), 2, 6, 2, 48)
    assert keys.block_until_ready() is keys
    data = np.asarray(random.key_data(keys))
    for index in (
        0,
        -1,
        (1, 2),
        slice(1),
        (..., 0),
        (slice(None), 1),
        [1, 0, 0],
        None,
        (np.array([0, 1]), 2),
        (1, ...),
    ):
        want = (
            data[(*index, slice(None))] if isinstance(index, tuple) and Ellipsis in map(id_or, index) else data[index]
        )
        np.testing.assert_array_equal(random.key_data(keys[index]), want)
    np.testing.assert_array_equal(random.key_data(keys[np.array([True, False])]), data[:1])
    np.testing.assert_array_equal(random.key_data(keys.T), data.swapaxes(0, 1))
    np.testing.assert_array_equal(random.key_data(keys.transpose(1, 0)), data.swapaxes(0, 1))
    np.testing.assert_array_equal(random.key_data(keys.transpose((1, 0))), data.swapaxes(0, 1))
    np.testing.assert_array_equal(random.key_data(keys.reshape(3, 2)), data.reshape(3, 2, 2))
    np.testing.assert_array_equal(random.key_data(keys.reshape((-1, 3))), data)
    np.testing.assert_array_equal(random.key_data(keys.reshape(-1)), data.reshape(6, 2))
    np.testing.assert_array_equal(random.key_data(keys.ravel()), data.reshape(6, 2))
    np.testing.assert_array_equal(random.key_data(keys[:1, :1].squeeze()), data[0, 0])
    np.testing.assert_array_equal(random.key_data(keys[:1, :1].squeeze(-1)), data[:1, 0])
    rows = list(keys)
    assert [type(r) for r in rows] == [random.KeyArray] * 2 and rows[1].shape == (3,)
    np.testing.assert_array_equal(random.key_data(rows[1]), data[1])


def id_or(x):
    return x if x is Ellipsis else None


def test_keys_are_equal_by_value():
    keys = random.split(random.key(1), 3)
    assert (keys == keys[1]).tolist() == [False, True, False]
    assert (keys != keys[1]).tolist() == [True, False, True]
    assert bool(random.key(1) == random.wrap_key_data(random.PRNGKey(1)))
    assert keys != "keys"


def test_keys_are_not_numbers():
    key = random.key(1)
    for wrong in (
        lambda: key + 1,
        lambda: np.add(key, 1),
        lambda: np.asarray(key),
        lambda: jnp.sin(key),
        lambda: hash(key),
    ):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="single key"):
        len(key)
    with pytest.raises(TypeError, match=r"split"):
        iter(key)
    with pytest.raises(IndexError):
        key[0]
    with pytest.raises(IndexError):
        random.split(key)[2]


def test_keys_can_be_copied_and_pickled():
    keys = random.split(random.key(1), 3)
    for again in (copy.copy(keys), copy.deepcopy(keys), pickle.loads(pickle.dumps(keys)), random.clone(keys)):
        assert bool((again == keys).all()) and again.dtype == keys.dtype
    assert random.key_impl(keys) == random.key_impl(random.PRNGKey(1)) == "threefry2x32"
    np.testing.assert_array_equal(random.clone(random.PRNGKey(1)), random.PRNGKey(1))


def test_data_of_keys_is_not_shared():
    data = np.array([1, 2], "uint32")
    key = random.wrap_key_data(data)
    data[0] = 5
    assert random.key_data(key).tolist() == [1, 2]


def test_kind_of_key_is_kept():
    typed, bare = random.key(1), random.PRNGKey(1)
    for f in (random.split, lambda k: random.fold_in(k, 1), random.clone):
        assert type(f(typed)) is random.KeyArray
        assert f(bare).dtype == np.uint32
        np.testing.assert_array_equal(random.key_data(f(typed)), f(bare))


def test_keys_through_transformations():
    key = random.key(3)
    keys = random.split(key, 4)

    def step(key, scale):
        key, now = random.split(key)
        return key, scale * random.normal(now)

    last, xs = lax.scan(step, key, jnp.arange(1.0, 5.0))
    by_hand, ys = key, []
    for i in range(1, 5):
        by_hand, y = step(by_hand, float(i))
        ys.append(y)
    assert type(last) is random.KeyArray and bool(last == by_hand)
    np.testing.assert_allclose(xs, ys, rtol=1e-14)

    chosen = xform.jit(lambda p, k: lax.cond(p, lambda k: k[0], lambda k: k[1], k))(True, keys)
    assert bool(chosen == keys[0])
    reached = lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), key)
    assert bool(reached == random.fold_in(random.fold_in(random.fold_in(key, 0), 1), 2))
    means = xform.vmap(lambda k: random.uniform(k, (100,)).mean())(keys)
    np.testing.assert_allclose(means, [random.uniform(k, (100,)).mean() for k in keys], rtol=1e-14)
    nested = xform.vmap(xform.vmap(random.uniform))(keys.reshape(2, 2))
    np.testing.assert_array_equal(nested, np.reshape([random.uniform(k) for k in keys], (2, 2)))
    assert xform.eval_shape(random.split, key).shape == (2,)

    def inside(key):
        assert isinstance(key, random.KeyArray) and key.shape == (4,) and repr(key) == "KeyArray<key<fry>[4]>"
        return [random.uniform(k) for k in key], key[1], key.reshape(2, 2), key == key[0]

    draws, one, square, equal = xform.jit(inside)(keys)
    np.testing.assert_array_equal(draws, [random.uniform(k) for k in keys])
    assert bool(one == keys[1]) and square.shape == (2, 2) and equal.tolist() == [True, False, False, False]


def test_derivatives_with_respect_to_parameters():
    key = random.key(3)
    u = random.uniform(key, (5,))
    grads = xform.grad(lambda a, b: random.uniform(key, (5,), minval=a, maxval=b).sum(), (0, 1))(2.0, 5.0)
    np.testing.assert_allclose(grads, [(1 - u).sum(), u.sum()], rtol=1e-13)
    slope = xform.grad(lambda s: (s * random.normal(key, (5,))).sum())(2.0)
    np.testing.assert_allclose(slope, random.normal(key, (5,)).sum(), rtol=1e-13)

    def clipped(a, b):
        return random.truncated_normal(key, a, b)

    h = 1e-6
    numeric = [
        (clipped(-1 + h, 2.0) - clipped(-1 - h, 2.0)) / (2 * h),
        (clipped(-1.0, 2 + h) - clipped(-1.0, 2 - h)) / (2 * h),
    ]
    np.testing.assert_allclose(xform.grad(clipped, (0, 1))(-1.0, 2.0), numeric, rtol=1e-6)


def test_a_draw_is_one_operation():
    jaxpr = str(xform.make_jaxpr(lambda k: random.uniform(k, (3,)))(random.key(0)))
    assert jaxpr.count("threefry2x32") == 1 and jaxpr.count("=") < 6


# ---- Distributions -----------------------------------------------------------------------------------------

N = 20000


class DoubleMaxwell:
    """The Maxwell distribution of scale 2 with random sign, around 1."""

    def cdf(self, x):
        return 0.5 + np.sign(x - 1) * stats.maxwell(scale=2).cdf(abs(x - 1)) / 2


CONTINUOUS = {
    "uniform": (lambda k: random.uniform(k, (N,), minval=-2, maxval=3), stats.uniform(-2, 5)),
    "normal": (lambda k: random.normal(k, (N,)), stats.norm()),
    "normal-float32": (lambda k: random.normal(k, (N,), "float32"), stats.norm()),
    "normal-real": (lambda k: random.normal(k, (N,), complex).real, stats.norm(scale=0.5**0.5)),
    "normal-imag": (lambda k: random.normal(k, (N,), complex).imag, stats.norm(scale=0.5**0.5)),
    "truncated_normal": (lambda k: random.truncated_normal(k, -0.5, 2, (N,)), stats.truncnorm(-0.5, 2)),
    "exponential": (lambda k: random.exponential(k, (N,)), stats.expon()),
    "gumbel": (lambda k: random.gumbel(k, (N,)), stats.gumbel_r()),
    "gumbel-high": (lambda k: random.gumbel(k, (N,), "float32", mode="high"), stats.gumbel_r()),
    "laplace": (lambda k: random.laplace(k, (N,)), stats.laplace()),
    "logistic": (lambda k: random.logistic(k, (N,)), stats.logistic()),
    "cauchy": (lambda k: random.cauchy(k, (N,)), stats.cauchy()),
    "lognormal": (lambda k: random.lognormal(k, 0.5, (N,)), stats.lognorm(0.5)),
    "maxwell": (lambda k: random.maxwell(k, (N,)), stats.maxwell()),
    "double_sided_maxwell": (lambda k: random.double_sided_maxwell(k, 1, 2, (N,)), DoubleMaxwell()),
    "pareto": (lambda k: random.pareto(k, 2.5, (N,)), stats.pareto(2.5)),
    "rayleigh": (lambda k: random.rayleigh(k, 2.0, (N,)), stats.rayleigh(scale=2)),
    "triangular": (lambda k: random.triangular(k, 1, 2, 5, (N,)), stats.triang(0.25, 1, 4)),
    "wald": (lambda k: random.wald(k, 0.7, (N,)), stats.invgauss(0.7)),
    "weibull_min": (lambda k: random.weibull_min(k, 2.0, 3.0, (N,)), stats.weibull_min(3, scale=2)),
}
DISCRETE = {  # with the probabilities of 0, 1, ...
    "randint": (lambda k: random.randint(k, (N,), 0, 7), np.full(7, 1 / 7)),
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, (N,)), [0.7, 0.3]),
    "bernoulli-high": (lambda k: random.bernoulli(k, np.float32(0.3), (N,), mode="high"), [0.7, 0.3]),
    "geometric": (lambda k: jnp.minimum(random.geometric(k, 0.4, (N,)), 5), [0, 0.4, 0.24, 0.144, 0.0864, 0.1296]),
    "rademacher": (lambda k: (random.rademacher(k, (N,)) + 1) // 2, [0.5, 0.5]),
    "categorical": (lambda k: random.categorical(k, LOGITS[0], shape=(N,)), np.exp(LOGITS[0])),
    "choice": (lambda k: random.choice(k, 5, (N,)), np.full(5, 0.2)),
    "choice-p": (lambda k: random.choice(k, 5, (N,), p=WEIGHTS), WEIGHTS),
    "permutation": (lambda k: xform.vmap(lambda k: random.permutation(k, 6)[2])(random.split(k, N)), np.full(6, 1 / 6)),
    "choice-once": (
        lambda k: xform.vmap(lambda k: random.choice(k, 5, (1,), replace=False, p=WEIGHTS)[0])(random.split(k, N)),
        WEIGHTS,
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    call, law = CONTINUOUS[name]
    assert stats.kstest(np.asarray(call(random.key(11)), float), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    call, p = DISCRETE[name]
    counts = np.bincount(np.asarray(call(random.key(11)), int), minlength=len(p))
    possible = np.asarray(p) > 0
    assert counts.size == len(p) and not counts[~possible].any()
    assert stats.chisquare(counts[possible], N * np.asarray(p)[possible]).pvalue > 1e-3


def test_draws_from_split_keys_are_uncorrelated():
    keys = random.split(random.key(0), 40)
    x = np.asarray(xform.vmap(lambda k: random.normal(k, (2000,)))(keys))
    off = np.corrcoef(x)[np.triu_indices(40, 1)]
    assert stats.kstest(off * np.sqrt(2000), stats.norm().cdf).pvalue > 1e-3


def test_covariance():
    x = np.asarray(random.multivariate_normal(random.key(5), np.array([1.0, 2.0, 3.0]), COV, (N,)))
    np.testing.assert_allclose(x.mean(0), [1, 2, 3], atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), COV, atol=0.12)
    singular = np.ones((2, 2))
    for method in ("eigh", "svd"):
        x = np.asarray(random.multivariate_normal(random.key(5), np.zeros(2), singular, (10,), method=method))
        np.testing.assert_allclose(x[:, 0], x[:, 1], atol=1e-7)


def test_without_replacement_nothing_comes_twice():
    for i in range(20):
        for p in (None, WEIGHTS):
            drawn = random.choice(random.key(i), 5, (4,), replace=False, p=p)
            assert len(set(drawn.tolist())) == 4
    assert sorted(random.permutation(random.key(0), 3000).tolist()) == list(range(3000))
    rows = np.asarray(random.permutation(random.key(0), TABLE))
    assert sorted(map(tuple, rows)) == sorted(map(tuple, TABLE))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_stay_in_range(dtype):
    x = np.asarray(random.uniform(random.key(1), (5000,), dtype))
    assert (
        (x >= 0).all() and (x < 1).all() and np.isfinite(np.asarray(random.normal(random.key(1), (5000,), dtype))).all()
    )
    x = np.asarray(random.truncated_normal(random.key(1), 0.5, 0.75, (5000,), dtype))
    assert (x > as_dtype(dtype).type(0.5)).all() and (x < as_dtype(dtype).type(0.75)).all()


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
