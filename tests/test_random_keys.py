"""Keys of `xform.random`: seeds, key arrays as arrays, as pytrees and in transformations, and their generators."""

import copy
import pickle

import numpy as np
import pytest

import xform
import xform.numpy as jnp
from xform import lax, random
from xform.core import config, dtypes


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


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
        assert isinstance(key, random.KeyArray) and key.shape == (4,)
        assert repr(key) == "Traced<key<fry>[4] in jit(inside)>"
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


def test_keys_are_arrays():
    keys = random.split(random.key(1), 4)
    assert isinstance(keys, xform.Array) and isinstance(keys[0], xform.Array) and not keys.weak_type
    assert jnp.issubdtype(keys.dtype, dtypes.prng_key) and keys.devices() == random.key_data(keys).devices()
    data, other = np.asarray(random.key_data(keys)), random.split(random.key(9), 4)
    others = np.asarray(random.key_data(other))
    square, places = keys.reshape(2, 2), np.array([3, 0])
    for got, want in (
        (jnp.stack([keys, other], axis=1), np.stack([data, others], 1)),
        (jnp.where(places[:, None] > 1, keys, other), np.stack([data, others])),
        (jnp.full((2,), keys[0]), np.stack([data[0]] * 2)),
        (keys.take(places), data[places]),
        (keys.repeat(2), np.repeat(data, 2, 0)),
        (square.swapaxes(0, -1), data.reshape(2, 2, 2).swapaxes(0, 1)),
        (square.flatten(), data),
        (square.ravel(order="F"), data.reshape(2, 2, 2).swapaxes(0, 1).reshape(4, 2)),
        (keys.copy(), data),
        (keys.at[1].set(other[0]), np.concatenate([data[:1], others[:1], data[2:]])),
        (keys.at[1:3].set(other[:2]), np.concatenate([data[:1], others[:2], data[3:]])),
        (square.at[..., 0].get(), data.reshape(2, 2, 2)[:, 0]),
        (lax.concatenate([keys, other], 0), np.concatenate([data, others])),
        (lax.select(True, keys, other), data),
        (lax.dynamic_index_in_dim(keys, 2, keepdims=False), data[2]),
        (lax.dynamic_slice(keys, (1,), (2,)), data[1:3]),
        (lax.rev(keys, (0,)), data[::-1]),
        (lax.broadcast_in_dim(keys[0], (3,), ()), np.stack([data[0]] * 3)),
        (xform.device_put(keys), data),
    ):
        assert type(got) is random.KeyArray and got.dtype is keys.dtype
        np.testing.assert_array_equal(random.key_data(got), want)
    with pytest.raises(TypeError, match=r"at.*expected keys of key<fry>, got 5"):
        keys.at[0].set(5)
    gone = random.key(3)
    gone.delete()
    assert gone.is_deleted()


@pytest.mark.parametrize("wrap", [lambda f: f, xform.jit], ids=["eager", "jit"])
def test_axes_of_vmap_count_on_keys(wrap):
    keys = random.split(random.key(1), (2, 3))
    data = np.asarray(random.key_data(keys))
    for axis in (1, -1):
        got = wrap(xform.vmap(lambda k: k, axis))(keys)
        np.testing.assert_array_equal(random.key_data(got), data.swapaxes(0, 1))
        got = wrap(xform.vmap(lambda k: k, 0, axis))(keys)
        np.testing.assert_array_equal(random.key_data(got), data.swapaxes(0, 1))
    copies = wrap(xform.vmap(lambda k, x: k, (None, 0), -1))(keys, jnp.ones(4))
    assert copies.shape == (2, 3, 4) and bool((copies[..., 2] == keys).all())
    for axis in (2, -3):
        with pytest.raises(ValueError, match=r"in_axes: axis .* out of range for random keys of rank 2"):
            xform.vmap(lambda k: k, axis)(keys)
        with pytest.raises(ValueError, match=r"out_axes: axis .* out of range for random keys of rank 2"):
            xform.vmap(lambda k: k, 0, axis)(keys)
    with pytest.raises(ValueError, match=r"rank 0"):
        xform.vmap(lambda k: k)(keys[0, 0])


def test_keys_in_pytrees_and_closures():
    key = random.key(1)
    state = {"key": key, "step": jnp.zeros(())}

    def step(state, _):
        key, now = random.split(state["key"])
        return {"key": key, "step": state["step"] + random.uniform(now)}, random.key_data(key)

    final, path = lax.scan(step, state, None, length=3)
    assert isinstance(final["key"], random.KeyArray) and path.shape == (3, 2)
    loss = xform.grad(lambda x: (x * random.normal(key, x.shape)).sum())
    np.testing.assert_allclose(loss(jnp.ones(3)), random.normal(key, (3,)))
    value, slope = xform.value_and_grad(lambda x, key: x * random.uniform(key))(2.0, key)
    np.testing.assert_allclose(value, 2 * slope)
    swapped = xform.jit(lambda p, a, b: lax.cond(p, lambda: a, lambda: b))(False, key, random.key(2))
    assert bool(swapped == random.key(2))
    counted = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, random.fold_in(c[1], c[0])), (0, key))
    assert type(counted[1]) is random.KeyArray
    np.testing.assert_array_equal(
        xform.pmap(random.uniform)(random.split(key, 2)), [random.uniform(k) for k in random.split(key, 2)]
    )
    traces = []
    draw = xform.jit(lambda k: traces.append(k) or random.uniform(k))
    draw(key), draw(random.key(2)), draw(random.split(key)[1])
    assert len(traces) == 1
    draw(random.key(2, impl="rbg"))
    assert len(traces) == 2


def test_shapes_of_keys():
    for impl in ("threefry2x32", "rbg"):
        shape = xform.ShapeDtypeStruct((2,), random.key_dtype(impl))
        assert shape.shape == (2,) and shape.dtype is random.key_dtype(impl)
        made = xform.eval_shape(lambda k: (random.split(k[1], 3), random.uniform(k[0])), shape)
        assert made[0].shape == (3,) and made[0].dtype is shape.dtype and made[1].shape == ()


# ---- Generators --------------------------------------------------------------------------------------------

STREAMS = {  # equal bit for bit
    "data": lambda r, k: r.key_data(k),
    "split": lambda r, k: r.key_data(r.split(k, (2, 3))),
    "fold_in": lambda r, k: r.key_data(r.fold_in(k, 7)),
    "chain": lambda r, k: r.uniform(r.fold_in(r.split(k)[1], 3), (4,)),
    **{f"bits-{t}": lambda r, k, t=t: r.bits(k, (5, 3), t) for t in ("uint8", "uint16", "uint32", "uint64")},
    **{
        f"uniform-{t}": lambda r, k, t=t: r.uniform(k, (5, 3), t) for t in ("float16", "bfloat16", "float32", "float64")
    },
    "scalar": lambda r, k: r.uniform(k),
    "randint": lambda r, k: r.randint(k, (7,), 0, 100),
    "permutation": lambda r, k: r.permutation(k, 10),
    "choice": lambda r, k: r.choice(k, 10, (3,), replace=False),
}


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_generators(jax, impl):
    for seed in (0, 42, -7, 2**40 + 3):
        key, other = random.key(seed, impl=impl), jax.random.key(seed, impl=impl)
        assert repr(key) == repr(other) and str(key.dtype) == str(other.dtype)
        assert key.itemsize == other.itemsize == 16 and random.key_impl(key) == impl
        for name, call in STREAMS.items():
            want = np.asarray(call(jax.random, other))
            for got in (call(random, key), xform.jit(lambda k, call=call: call(random, k))(key)):
                np.testing.assert_array_equal(got, want, err_msg=name)
        np.testing.assert_allclose(random.normal(key, (5,)), jax.random.normal(other, (5,)), rtol=1e-12)
        np.testing.assert_array_equal(random.PRNGKey(seed, impl=impl), jax.random.PRNGKey(seed, impl=impl))
    for again in (pickle.loads(pickle.dumps(key)), random.wrap_key_data(random.key_data(key), impl=impl)):
        assert bool(again == key) and again.dtype is key.dtype
    assert random.wrap_key_data(random.key_data(key), dtype=key.dtype).dtype is key.dtype is random.key_dtype(impl)


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_generators_in_transformations(impl):
    keys = random.split(random.key(3, impl=impl), 4)
    for draw in (
        lambda k: random.uniform(k, (3,)),
        lambda k: random.gamma(k, 2.0, (3,)),
        lambda k: random.poisson(k, 1e6, (3,)),
    ):
        want = np.stack([np.asarray(draw(k)) for k in keys])
        np.testing.assert_allclose(xform.vmap(draw)(keys), want, rtol=1e-13)
        np.testing.assert_allclose(xform.jit(xform.vmap(draw))(keys), want, rtol=1e-13)
        assert np.unique(want).size > 4
    # All four words of a key count in samplers that reject.
    data = np.array([[1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 7, 4], [9, 2, 3, 4]], "uint32")
    assert np.unique(xform.vmap(lambda k: random.gamma(k, 2.0))(random.wrap_key_data(data, impl=impl))).size == 4
    seeds = np.array([5, -5])
    made = xform.vmap(lambda seed: random.key(seed, impl=impl))(seeds)
    assert [bool(made[i] == random.key(int(seed), impl=impl)) for i, seed in enumerate(seeds)] == [True, True]


def test_the_default_generator():
    threefry = random.PRNGKey(1)
    draw = xform.jit(lambda k: random.bits(random.split(k)[0]))
    with config.default_prng_impl("rbg"):
        key = random.PRNGKey(1)
        assert key.shape == (4,) and random.key(1).dtype is random.key_dtype() is random.key_dtype("rbg")
        by_rbg = int(draw(key))
        assert by_rbg == int(random.bits(random.split(random.key(1, impl="rbg"))[0]))
        with pytest.raises(TypeError, match=r"uint32\[..., 4\] of random.PRNGKey for rbg, got u32\[2\]"):
            random.uniform(threefry)
        assert bool(random.key(1, impl="threefry2x32") == random.wrap_key_data(threefry, impl="threefry2x32"))
    with config.default_prng_impl("unsafe_rbg"):
        assert int(draw(key)) != by_rbg
    assert random.key(1).dtype is random.key_dtype("threefry2x32")
    with pytest.raises(TypeError, match=r"key<fry> and of key<rbg>"):
        random.key(1) == random.key(1, impl="rbg")  # noqa: B015
    with pytest.raises(ValueError, match=r"xorshift"):
        config.default_prng_impl("xorshift")
