"""Reductions, cumulative operations and sorting beyond the table of operations: order, ties, length, platforms."""

import itertools
import math
import pickle

import ml_dtypes
import numpy as np
import pytest

import xform
from tests.ops.record import as_dtype
from xform import lax
from xform.core.array import own
from xform.core.config import small_programs
from xform.interpreters import execution
from xform.interpreters.lowering import lower_module


def products_of_others(x):
    return [math.prod(np.delete(x, i)) for i in range(len(x))]


@pytest.mark.parametrize("zeros", range(4))
def test_derivatives_of_a_product_are_exact_with_zeros(zeros):
    x = np.array([0.0] * zeros + [2.0, -3.0, 5.0, 0.5])
    grad = xform.grad(lambda x: lax.reduce_prod(x, (0,)))
    assert grad(x).tolist() == products_of_others(x)
    hessian = xform.jacfwd(grad)(x)
    for i, j in itertools.permutations(range(len(x)), 2):
        assert hessian[i, j] == math.prod(np.delete(x, [i, j]))
    last = xform.grad(lambda x: lax.index_in_dim(lax.cumprod(x), -1, keepdims=False))
    assert last(x).tolist() == products_of_others(x)


def test_an_infinite_factor_does_not_spoil_its_own_derivative():
    x = np.array([np.inf, 2.0, 3.0])
    assert xform.grad(lambda x: lax.reduce_prod(x, (0,)))(x).tolist() == [6.0, np.inf, np.inf]


@pytest.mark.parametrize("jit", [lambda f: f, xform.jit], ids=["eager", "jit"])
def test_ties_share_the_derivative(jit):
    x = np.array([1.0, 3.0, 3.0, 2.0])
    assert jit(xform.grad(lambda x: lax.reduce_max(x, (0,))))(x).tolist() == [0, 0.5, 0.5, 0]
    assert jit(xform.grad(lambda x: lax.reduce_min(-x, (0,))))(x).tolist() == [0, -0.5, -0.5, 0]
    total = jit(xform.grad(lambda x: lax.reduce_sum(lax.cummax(x), (0,))))
    assert total(x).tolist() == [1, 2, 1, 0]  # x[1] has its own place, and half of the two after it


def test_extremes_of_nothing_have_no_derivative():
    x = np.ones((2, 0))
    assert xform.jvp(lambda x: lax.reduce_max(x, (1,)), (x,), (x,))[1].tolist() == [0, 0]


def test_nothing_yet_in_a_logarithm_of_sums():
    x = np.array([-np.inf, -np.inf, 0.0, 1.0])
    out, pull = xform.vjp(lax.cumlogsumexp, x)
    np.testing.assert_allclose(out, np.logaddexp.accumulate(x))
    np.testing.assert_allclose(pull(np.ones(4))[0], [0, 0, 1 + 1 / (1 + np.e), np.e / (1 + np.e)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((512, 256), (0,)), ((1031, 65), (0,)), ((257, 258, 3), (0,)), ((257, 258, 3), (1,)), ((6, 70, 181), (0, 1))],
)
def test_sums_of_large_arrays_across_rows(shape, axes, dtype):
    """Whether they are in memory or computed on the way, all have their own ways in compiled programs."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x[(-1,) * len(shape)] = np.inf  # among the elements that are left when four are added at a time

    def sums(x):
        square = x * x - 1
        return [lax.reduce_sum(each, axes) for each in (x, square, -square)]

    square = x * x - 1
    for out, each in zip(xform.jit(sums)(x), (x, square, -square), strict=True):
        exact = each.astype(np.longdouble).sum(axes)
        np.testing.assert_allclose(out, exact, rtol=0, atol=float(np.finfo(dtype).eps) * 3 * x.size**0.5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_accumulated_in_float32(dtype):
    x = np.full(3000, 1.0, dtype)
    exact = np.asarray(3000.0, dtype)
    for f in (lambda x: lax.reduce_sum(x, (0,)), lambda x: lax.cumsum(x)[-1], lambda x: lax.dot(x, x)):
        assert np.asarray(f(x)) == exact
        assert np.asarray(xform.jit(f)(x)) == exact
    many = np.random.default_rng(0).uniform(size=(1031, 65)).astype(dtype)  # added in parts
    out = np.asarray(xform.jit(lambda x: lax.reduce_sum(x, (0,)))(many)).astype(np.float64)
    np.testing.assert_allclose(out, many.astype(np.float64).sum(0), rtol=float(ml_dtypes.finfo(dtype).eps) * 0.501)


def on_platform(platform, f, *args):
    """The program that another platform would get, run on this one."""
    closed = xform.make_jaxpr(f)(*args)
    text, hidden = lower_module(closed, "f", platform)
    return execution.compile_text(text, hidden, closed, execution.default_device(), (), None)(list(map(own, args)))[0]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(1, 3), (2, 3), (7, 3), (32, 2)])
def test_accelerators_scan_in_parallel(shape, reverse, rng):
    x = rng.uniform(0.5, 1.5, shape)
    for f in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp):
        np.testing.assert_allclose(
            on_platform("cuda", lambda x, f=f: f(x, 0, reverse), x), f(x, 0, reverse), rtol=1e-13
        )
    derivative = xform.grad(lambda x: lax.reduce_sum(lax.cumprod(x, 0, reverse), (0, 1)))
    np.testing.assert_allclose(on_platform("cuda", derivative, x), derivative(x), rtol=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 64])
def test_associative_scan_keeps_the_order(n, rng):
    """Products of matrices don't commute."""
    xs = rng.standard_normal((n, 2, 2))
    multiply = lax.batch_matmul
    calls = []

    def count(a, b):
        calls.append(a.shape)
        return multiply(a, b)

    forward = list(itertools.accumulate(xs, np.matmul))
    backward = list(itertools.accumulate(xs[::-1], np.matmul))[::-1]
    np.testing.assert_allclose(lax.associative_scan(count, xs), forward, rtol=1e-9, atol=1e-12)
    assert len(calls) <= 2 * math.ceil(math.log2(n))
    np.testing.assert_allclose(lax.associative_scan(multiply, xs, reverse=True), backward, rtol=1e-9, atol=1e-12)
    compiled = xform.jit(lambda xs: lax.associative_scan(multiply, xs))
    np.testing.assert_allclose(compiled(xs), forward, rtol=1e-9, atol=1e-12)


def test_associative_scan_refuses():
    x = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"associative_scan: lengths along axis 0 differ: f64\[3,2\], f64\[2,3\]"):
        lax.associative_scan(lambda a, b: a, (x, x.T))
    with pytest.raises(TypeError, match=r"associative_scan: fn must return arrays like .*f64\[1,2\].*f64\[2\]"):
        lax.associative_scan(lambda a, b: lax.squeeze(a, (0,)), x)
    with pytest.raises(TypeError, match="associative_scan: fn must be a function"):
        lax.associative_scan(x, x)
    with pytest.raises(ValueError, match=r"associative_scan: .* f64\[3,2\]"):
        lax.associative_scan(lax.add, x, axis=2)


def test_reduce_recognises_operations():
    x = np.arange(6.0).reshape(2, 3)
    program = str(xform.make_jaxpr(lambda x: lax.reduce(x, 0.0, lax.add, (0,)))(x))
    assert "reduce_sum" in program and "slice" not in program
    twice = lax.reduce(x, 0.0, lambda a, b: lax.add(a, a), (1,))  # one addition, but not of both
    assert xform.make_jaxpr(lambda x: lax.reduce(x, 0.0, lambda a, b: lax.add(a, a), (1,)))(x)
    assert twice.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint32", "int8", "bool"])
def test_sorting_of_long_arrays(dtype, rng):
    """The host sorts these by NumPy's fastest method and mends the ties; XLA by packed integers."""
    x = (rng.standard_normal((3000, 2)) * 50).round().astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[rng.integers(0, 3000, 50)] = np.nan
        x[::9] = -0.0
    index = np.broadcast_to(np.arange(3000)[:, None], x.shape)
    order = np.argsort(x, 0, kind="stable")
    descending = 2999 - np.flip(np.argsort(np.flip(x, 0), 0, kind="stable"), 0)[:9]
    for jit in (lambda f: f, xform.jit):
        np.testing.assert_array_equal(jit(lambda x: lax.sort(x, 0))(x), np.sort(x, 0))
        np.testing.assert_array_equal(jit(lambda x: lax.sort_key_val(x, index, 0))(x)[1], order)
        np.testing.assert_array_equal(jit(lambda x: lax.top_k(x, 9, axis=0))(x)[1], descending)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("n", [9 * 1024, 10_000])
def test_the_largest_of_many(dtype, n, rng):
    """The host looks for them in blocks: with many equal ones in each, with NaN, and behind the last block."""
    for values in (3, 2000):
        x = (rng.integers(0, values, n) - values // 2).astype(dtype)
        if dtype == "float32":
            x[rng.integers(0, n, 5)] = np.nan
            x[x == 0] *= rng.choice([-1, 1], np.count_nonzero(x == 0))
        x[-1] = np.max(x)
        values, places = lax.top_k(x, 8)
        expected = n - 1 - np.argsort(x[::-1], kind="stable")[::-1][:8]
        np.testing.assert_array_equal(places, expected)
        np.testing.assert_array_equal(values, x[expected])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape, axes", [((4097,), (0,)), ((8192,), (0,)), ((64, 97), (1,)), ((64, 96), (0,))])
@pytest.mark.parametrize("more", [False, True])
def test_extremes_of_large_arrays_with_nan(dtype, shape, axes, more, rng):
    """XLA's library on CPU ignores NaN: first, last and in between; with infinities; among several axes."""
    if more:
        shape, axes = (3, *shape, 8), (*axes, len(shape) + 1)
    x = rng.standard_normal(shape).astype(as_dtype(dtype))
    flat = x.reshape(-1)
    flat[rng.integers(0, x.size, 3)], flat[rng.integers(0, x.size, 3)] = np.inf, -np.inf
    flat[[0, x.size // 3, -1]] = np.nan
    with small_programs("xla"):
        for name in ("max", "min"):
            extreme = xform.jit(lambda x, name=name: getattr(lax, f"reduce_{name}")(x, axes))
            expected = getattr(np, name)(x.astype(float), axes)
            np.testing.assert_array_equal(np.asarray(extreme(x)).astype(float), expected)
            assert np.isinf(np.asarray(extreme(np.full(x.shape, np.inf, x.dtype))).astype(float)).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("shape, axis", [((2**15,), 0), ((2**15 + 1,), 0), ((3, 263, 50), 1), ((130, 257), 1)])
def test_first_extremes_along_long_axes(dtype, shape, axis, rng):
    """XLA looks for the block first: equal ones in several blocks, some in the last one alone, NaN and infinities."""
    several = rng.integers(-9, 9, shape).astype(dtype)
    single = np.zeros(shape, dtype)
    np.moveaxis(single, axis, 0)[-1] = rng.choice([-1, 1], np.moveaxis(single, axis, 0)[-1].shape)
    missing = several.copy()
    missing[rng.random(shape) < 1e-3] = np.nan
    for x in (several, single, missing, np.full(shape, -np.inf, dtype), np.full(shape, np.nan, dtype)):
        for name in ("argmax", "argmin"):
            expected = getattr(np, name)(x, axis)
            with small_programs("xla"):
                got = xform.jit(lambda x, name=name: getattr(lax, name)(x, axis, np.uint32))(x)
            np.testing.assert_array_equal(got, expected, err_msg=name)


@pytest.mark.parametrize("each", [1, 2, 3, 5, 2500])
def test_order_of_floats_that_differ_in_their_last_bits(each, rng):
    """XLA sorts by the leading bits first: groups of `each` numbers that have these in common, a few of them equal."""
    groups = np.repeat(rng.standard_normal((2500 // each, 2)), each, axis=0)
    x = groups * (1 + rng.integers(0, 3, groups.shape) * 2.0**-52)
    x = rng.permuted(x, axis=0)
    index = np.broadcast_to(np.arange(len(x))[:, None], x.shape)
    order = xform.jit(lambda x: lax.sort_key_val(x, index, 0)[1])(x)
    np.testing.assert_array_equal(order, np.argsort(x, 0, kind="stable"))


def test_32_bits():
    with xform.enable_x64(False):
        x = np.array([3.0, 1.0, 2.0], np.float32)
        for jit in (lambda f: f, xform.jit):
            assert jit(xform.grad(lambda x: lax.reduce_sum(lax.sort(x) * np.float32(2), (0,))))(x).dtype == np.float32
            assert jit(lambda x: lax.top_k(x, 2))(x)[1].dtype == np.int32
            assert jit(lambda x: lax.argmax(x, 0, np.int32))(x).dtype == np.int32
            assert jit(lambda x: lax.cumsum(x))(x).dtype == np.float32


def test_broadcast_shapes():
    assert lax.broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    with pytest.raises(ValueError, match=r"broadcast_shapes: incompatible shapes \(2,\), \(3,\)"):
        lax.broadcast_shapes((2,), (3,))


def test_dtypes_keep_their_identity():
    """Arrays that were unpickled have dtype objects of their own, which cost no conversion of the others."""
    from xform.lax.reductions import accumulator

    other = pickle.loads(pickle.dumps(np.zeros(3))).dtype
    assert other is not np.zeros(3).dtype
    assert accumulator(other) is other
    assert accumulator(np.zeros(3).dtype) is np.zeros(3).dtype
