"""What the table of operations can't say of elementwise operations: derivatives at special points, narrow dtypes,
accuracy in the tails, and the number of operations that a derivative takes.
"""

import ml_dtypes
import mpmath as mp
import numpy as np
import pytest

import xform
from tests.ops.record import FLOATS, as_dtype
from xform import lax
from xform.core.config import small_programs

BOTH = pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])


def gradients(f, *args):
    return [float(g) for g in xform.grad(f, tuple(range(len(args))))(*args)]


# ---- Derivatives at special points -------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("extreme", [lax.max, lax.min])
def test_equal_operands_of_an_extreme_share_the_derivative(extreme, transform):
    f = transform(extreme)
    assert gradients(f, 2.0, 2.0) == [0.5, 0.5]
    assert sorted(gradients(f, 1.0, 2.0)) == [0, 1]
    assert gradients(f, np.inf, np.inf) == [0.5, 0.5]


@BOTH
@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (lax.abs, 0.0, 0),
        (lax.abs, -0.0, 0),
        (lax.sign, 0.0, 0),
        (lax.sqrt, 0.0, np.inf),
        (lax.cbrt, 0.0, np.inf),
        (lax.rsqrt, np.inf, 0),
        (lax.square, 0.0, 0),
        (lax.log, 0.0, np.inf),
        (lax.asin, 1.0, np.inf),
        (lax.acos, 1.0, -np.inf),
        (lax.acosh, 1.0, np.inf),
        (lax.atanh, 1.0, np.inf),
        (lax.tanh, 1000.0, 0),
        (lax.tanh, 0.0, 1),
        (lax.exp, -np.inf, 0),
        (lax.erf, np.inf, 0),
        (lax.erf_inv, 1.0, np.inf),
        (lax.logistic, 1000.0, 0),
        (lax.logistic, -1000.0, 0),
        (lax.floor, 2.0, 0),
        (lax.round, 2.5, 0),
    ],
)
def test_derivative_at_a_special_point(function, x, expected, transform):
    assert float(xform.grad(transform(function))(x)) == expected


@BOTH
def test_complex_modulus_has_no_derivative_at_zero_that_is_nan(transform):
    assert complex(xform.grad(transform(lax.abs))(0j)) == 0
    assert complex(xform.grad(transform(lax.abs))(3 + 4j)) == pytest.approx(0.6 - 0.8j)


@BOTH
@pytest.mark.parametrize("y", [-2, -1, 0, 1, 2, 3, 7])
def test_integer_powers(y, transform):
    """Values and two derivatives, at 0 where they exist, and elsewhere."""
    f = transform(lambda x: lax.integer_pow(x, y))
    for x in (0.0, 2.0, -1.5) if y >= 0 else (2.0, -1.5):
        x = np.float64(x)
        assert float(f(x)) == pytest.approx(x**y)
        assert float(xform.grad(f)(x)) == pytest.approx(y * x ** (y - 1) if y else 0)
        assert float(xform.grad(xform.grad(f))(x)) == pytest.approx(
            y * (y - 1) * x ** (y - 2) if y not in (0, 1) else 0
        )


@BOTH
@pytest.mark.parametrize(
    ("x", "y", "in_x", "in_y"),
    [
        (0.0, 2.0, 0, 0),
        (0.0, 1.0, 1, 0),
        (0.0, 0.0, 0, 0),
        (0.0, 0.5, np.inf, 0),
        (-2.0, 2.0, -4, np.nan),
        (2.0, 0.0, 0, np.log(2)),
    ],
)
def test_derivatives_of_pow(x, y, in_x, in_y, transform):
    np.testing.assert_allclose(gradients(transform(lax.pow), x, y), [in_x, in_y])


@BOTH
def test_second_derivative_of_pow_at_zero(transform):
    f = xform.grad(xform.grad(transform(lax.pow)))
    assert [float(f(0.0, y)) for y in (1.0, 2.0, 3.0)] == [0, 2, 0]


@BOTH
def test_atan2_in_all_quadrants(transform):
    f = transform(lax.atan2)
    for angle in np.arange(-3.0, 3.1, 0.5):
        y, x = 2 * np.sin(angle), 2 * np.cos(angle)
        assert float(f(y, x)) == pytest.approx(angle)
        np.testing.assert_allclose(gradients(f, y, x), [x / 4, -y / 4])


@BOTH
def test_remainder_is_piecewise_linear(transform):
    f = transform(lax.rem)
    assert gradients(f, 7.5, 2.0) == [1, -3]
    assert gradients(f, -7.5, 2.0) == [1, 3]
    assert gradients(f, 7.5, np.inf) == [1, 0]
    assert np.array_equal(xform.hessian(f)(7.5, 2.0), 0)


@BOTH
def test_selection_hides_what_is_not_selected(transform):
    """The derivative of the case that is not chosen is zero, not zero times infinity."""

    def f(x):
        return lax.select(lax.gt(x, 0.0), lax.log(x), lax.mul(x, 2.0))

    assert float(xform.grad(transform(f))(-1.0)) == 2
    x = np.array([1.0, -1.0, 3.0])
    which = np.array([True, False, True])
    (ct,) = xform.linear_transpose(lambda x: lax.select(which, x, np.zeros(3)), x)(np.array([np.inf, np.nan, 2.0]))
    np.testing.assert_array_equal(ct, [np.inf, 0, 2])


@BOTH
def test_clamp_has_the_derivative_of_its_argument_strictly_inside(transform):
    f = transform(lax.clamp)
    assert gradients(f, 0.0, 0.5, 1.0) == [0, 1, 0]
    assert gradients(f, 0.0, -0.5, 1.0) == [1, 0, 0]
    assert gradients(f, 0.0, 1.5, 1.0) == [0, 0, 1]
    assert gradients(f, 0.0, 1.0, 1.0) == [0, 0, 0]


@BOTH
def test_stop_gradient(transform):
    f = transform(lambda x: lax.mul(x, lax.stop_gradient(x)))
    assert float(xform.grad(f)(3.0)) == 3
    assert float(xform.jvp(f, (3.0,), (1.0,))[1]) == 3
    tree = {"a": np.ones(2), "b": (np.arange(3), 2.0)}
    same = lax.stop_gradient(tree)
    assert set(same) == {"a", "b"}
    assert same["b"][0].dtype == np.int64


def test_derivatives_in_an_operand_are_one_linear_operation():
    """So the program that reverse mode transposes has one equation per operation."""
    functions = [lax.sin, lax.cos, lax.tanh, lax.sqrt, lax.rsqrt, lax.log, lax.log1p, lax.logistic, lax.erf, lax.abs]
    for function in functions:
        _, f_jvp = xform.linearize(function, 0.5)
        jaxpr = xform.make_jaxpr(f_jvp)(np.float64(1))
        equations = [e for e in jaxpr.eqns if e.primitive.name != "jit"]
        assert len(equations) <= 1, f"{function.__name__}: {jaxpr}"


# ---- Accuracy ----------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("function", "exact", "points", "ulps"),
    [
        (lax.log1p, mp.log1p, [-0.9999, -0.41, -1e-3, -1e-10, 1e-10, 1e-3, 0.5, 1e10], 4),
        (lax.expm1, mp.expm1, [-20, -0.4, -1e-3, -1e-10, 1e-10, 1e-3, 0.5, 50], 6),
        (lax.sinh, mp.sinh, [1e-10, 1e-3, 0.9, 1.1, 30, 88.9], 6),
        (lax.cosh, mp.cosh, [1e-10, 1e-3, 0.9, 1.1, 30, 88.9], 4),
        (lax.atanh, mp.atanh, [1e-10, 1e-3, 0.5, -0.41, 0.999999], 4),
        (lax.erf_inv, mp.erfinv, [0.3, 0.9, 0.99, 0.9999, 0.999999], 8),
        (lax.logistic, lambda x: 1 / (1 + mp.exp(-x)), [-80, -20, -1, 1e-10, 1, 20, 80], 4),
        (lax.exp2, lambda x: mp.power(2, x), [-100.3, -20, 0.5, 1e-10, 20, 100.3], 2),
    ],
)
def test_accuracy(function, exact, points, ulps, dtype, transform):
    """Against 40 digits, where XLA's own formulas or ours could lose some."""
    x = np.array(points, dtype)
    with mp.workdps(40):
        expected = np.array([float(exact(mp.mpf(float(v)))) for v in x]).astype(dtype)
    np.testing.assert_allclose(transform(function)(x), expected, rtol=ulps * np.finfo(dtype).eps, atol=0)


@BOTH
def test_sinh_and_cosh_near_overflow(transform):
    """Where exp(x) is infinite and half of it is not."""
    for x, dtype in ((np.float64(710.2), "float64"), (np.float32(89.2), "float32")):
        expected = float(mp.sinh(mp.mpf(float(x))))
        for function in (lax.sinh, lax.cosh):
            assert float(transform(function)(x)) == pytest.approx(expected, rel=8 * float(np.finfo(dtype).eps))


@BOTH
def test_inverse_error_function_in_the_tail(transform):
    for x in (1 - 1e-10, 1 - 2.0**-53, -1 + 1e-12):
        expected = float(mp.erfinv(mp.mpf(x)))
        assert float(transform(lax.erf_inv)(x)) == pytest.approx(expected, rel=1e-14)


# ---- Dtypes ------------------------------------------------------------------------------------------------


def narrow_floats():
    return [d for d in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2") if hasattr(ml_dtypes, d) or d in FLOATS]


@pytest.mark.parametrize("dtype", narrow_floats())
def test_narrow_floats_round_once(dtype):
    """Each operation is computed in float32 and rounded."""
    dtype = as_dtype(dtype)
    x = np.linspace(0.25, 3, 45).astype(dtype)
    wide = x.astype(np.float32)
    unary = [lax.exp, lax.log, lax.sin, lax.tanh, lax.logistic, lax.sinh, lax.sqrt, lax.rsqrt, lax.erf, lax.log1p]
    for function in unary:
        expected = np.asarray(function(wide)).astype(dtype)
        for got in (function(x), xform.jit(function)(x)):
            assert got.dtype == dtype
            got, wanted = np.asarray(got).astype(np.float32), expected.astype(np.float32)
            np.testing.assert_allclose(got, wanted, rtol=float(ml_dtypes.finfo(dtype).eps), err_msg=function.__name__)
    for function, ufunc in ((lax.add, np.add), (lax.mul, np.multiply), (lax.div, np.divide), (lax.max, np.maximum)):
        expected = ufunc(wide, wide[::-1]).astype(dtype)
        for got in (function(x, x[::-1]), xform.jit(function)(x, x[::-1])):
            np.testing.assert_array_equal(np.asarray(got).astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_four_bit_integers(dtype):
    """Conversions, sums, differences and products, modulo 16."""
    dtype = as_dtype(dtype)
    x = np.arange(int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max) + 1).astype(dtype)
    y = x[::-1].copy()
    for function, ufunc in ((lax.add, np.add), (lax.sub, np.subtract), (lax.mul, np.multiply)):
        expected = ufunc(x.astype(np.int64), y.astype(np.int64)) % 16
        for got in (function(x, y), xform.jit(function)(x, y)):
            assert got.dtype == dtype
            np.testing.assert_array_equal(np.asarray(got).astype(np.int64) % 16, expected)
    for got in (lax.convert_element_type(x, "float32"), xform.jit(lambda x: lax.convert_element_type(x, "float32"))(x)):
        np.testing.assert_array_equal(got, x.astype(np.float32))


def test_conversions_of_narrow_dtypes_agree():
    """Host and XLA, for all pairs of narrow dtypes."""
    names = ("int4", "uint4", "float8_e4m3fn", "float8_e5m2", "bfloat16", "int8")
    for a in names:
        x = np.array([0, 1, 2, 3, 5, 7]).astype(as_dtype(a))
        for b in names:
            host = lax.convert_element_type(x, as_dtype(b))
            compiled = xform.jit(lambda x, b=b: lax.convert_element_type(x, as_dtype(b)))(x)
            assert host.dtype == compiled.dtype == as_dtype(b)
            np.testing.assert_array_equal(np.asarray(host).astype(float), np.asarray(compiled).astype(float))


@pytest.mark.parametrize("new", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("old", ["float64", "float32", "float16", "bfloat16"])
def test_floats_become_integers_by_truncation_and_saturate(old, new):
    """Also where NumPy converts at once and the processor tells what didn't fit: alone or among many, in any layout."""
    old, info = as_dtype(old), np.iinfo(new)
    bounds = [float(b) + d for b in (info.min, info.max) for d in (-1, -0.5, 0, 0.5, 1)]
    special = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.9, -0.9, -0.0, *bounds]
    with np.errstate(all="ignore"):
        x = np.array(special).astype(old)
    wide = x.astype(np.float64)
    exact = [0 if np.isnan(v) else int(np.clip(v, -1e30, 1e30)) for v in wide]
    expected = np.array([min(max(v, int(info.min)), int(info.max)) for v in exact], new)
    for n in (1, 5, 100, 1000):
        for value, wanted in zip(x, expected, strict=True):
            among = np.zeros(n, old)
            among[-1] = value
            got = np.asarray(lax.convert_element_type(among, new))
            assert got.dtype == new and got[-1] == wanted and not got[:-1].any(), (value, n)
    for layout in (x, x[::-1], np.stack([x, x])[:, ::2], np.stack([x, x], 1)[:, 1]):
        wanted = expected[[int(np.flatnonzero((x == v) | ((x != x) & (v != v)))[0]) for v in layout.ravel()]]
        np.testing.assert_array_equal(lax.convert_element_type(layout, new), wanted.reshape(layout.shape))
    assert lax.convert_element_type(x[0], new) == 0 and lax.convert_element_type(x[:0], new).shape == (0,)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integer_division_and_high_products_are_exact(dtype):
    """Of few and of many numbers, with the widest and with zero: x / 0 is -1 with remainder x; all modulo 2**n."""
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, 0, 1, 2, 7, info.max - 1, info.max]
    values += [-1, -2, -7] if info.min else []
    if dtype == "int64":
        values += [2**53 - 1, 1 - 2**53, 2**53 + 1, -(2**53) - 1]
    x, y = (np.ravel(a) for a in np.meshgrid(np.array(values, dtype), np.array(values, dtype)))

    def quotient(a, b):
        return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    bits = 8 * np.dtype(dtype).itemsize
    wrapped = [
        [quotient(a, b) for a, b in pairs],
        [a - quotient(a, b) * b if b else a for a, b in pairs],
        [(a * b) >> bits for a, b in pairs],
    ]
    expected = [np.array([(v - info.min) % 2**bits + info.min for v in row], dtype) for row in wrapped]
    small = np.flatnonzero((x.astype(float) < 2.0**53) & (x.astype(float) > -(2.0**53)))
    for chosen in (np.arange(len(x)), np.flatnonzero(y), np.flatnonzero(x >= 0), small, small[y[small] != 0], [0], []):
        chosen = np.asarray(chosen, int)
        for repeats in (1, 20):
            at = np.tile(chosen, repeats)
            for function, wanted in zip((lax.div, lax.rem, lax.mulhi), expected, strict=True):
                np.testing.assert_array_equal(function(x[at], y[at]), wanted[at], err_msg=function.__name__)
    for function, wanted in zip((lax.div, lax.rem, lax.mulhi), expected, strict=True):
        np.testing.assert_array_equal(function(np.tile(x, 2)[::2], np.tile(y, 2)[::2]), np.tile(wanted, 2)[::2])
        assert function(x[-1], y[-1]) == wanted[-1]
        with small_programs("xla"):
            np.testing.assert_array_equal(xform.jit(function)(x, y), wanted)


def test_python_scalars_take_the_dtype_beside_them():
    assert lax.mul(np.float32([1, 2]), 3).dtype == np.float32
    assert lax.add(1, np.int8([1])).dtype == np.int8
    assert xform.jit(lambda x: lax.max(x, 0.0))(np.float32(1)).dtype == np.float32
    with pytest.raises(OverflowError, match=r"lax\.add: 300 does not fit into int8"):
        lax.add(np.int8([1]), 300)
    with pytest.raises(TypeError, match=r"lax\.sin takes arrays of inexact dtype, got i64"):
        lax.sin(1)
    with pytest.raises(NotImplementedError, match=r"lax\.sin: errors of float64 .* ulps=1"):
        lax.sin(1.0, accuracy=lax.Tolerance(ulps=1))


def test_dividing_by_a_constant_zero_does_not_end_the_process():
    """XLA divides when it folds constants, and the machine traps."""
    numerator, zero = np.array([5, -6]), np.int64(0)
    with small_programs("xla"):
        assert xform.jit(lambda: lax.div(xform.numpy.asarray(numerator), zero))().tolist() == [-1, -1]
        assert xform.jit(lambda: lax.rem(xform.numpy.asarray(numerator), zero))().tolist() == [5, -6]
        lowest = np.full(2, np.iinfo(np.int64).min)
        assert xform.jit(lambda: lax.div(xform.numpy.asarray(lowest), np.int64(-1)))().tolist() == lowest.tolist()
