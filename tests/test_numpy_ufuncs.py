"""Elementwise functions and operators of `xform.numpy` against NumPy, over dtypes, mixed dtypes and special values."""

import operator
import warnings

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.numpy_cases import compare
from xform.numpy import ufuncs

FUNCTIONS = {id(f): (n, f) for n, f in vars(ufuncs).items() if hasattr(f, "nin")}  # one name each
UNARY = sorted(n for n, f in FUNCTIONS.values() if f.nin == 1)
BINARY = sorted(n for n, f in FUNCTIONS.values() if f.nin == 2)
RNG = np.random.default_rng(0)
F = RNG.uniform(-2, 2, (2, 3))
POSITIVE = RNG.uniform(0.5, 2, (2, 3))
K = RNG.integers(-5, 6, (2, 3))
J = RNG.integers(1, 5, (2, 3))
B = F > 0
C = F + 1j * POSITIVE
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5, -2.5, 0.5, 1e300])

ONE = [
    F, POSITIVE, K, J, B, C, SPECIAL, np.float64(0.3), np.zeros((0, 3)), POSITIVE.astype("f"), K.astype("i1"),
    J.astype("u2"), F.T, (F * 4)[:, ::2],
]  # fmt: skip
TWO = [
    (F, POSITIVE), (POSITIVE, F), (K, J), (J, K), (K, F), (F, J), (B, B), (B, K), (C, C), (C, F), (F, 2.0), (2.0, F),
    (F, 2), (K, 2), (3, J), (F, F[0]), (SPECIAL[:, None], SPECIAL[None]), (K.astype("i1"), J.astype("i1")),
    (POSITIVE.astype("f"), POSITIVE.astype("f")), (J.astype("u1"), J.astype("u1")), (K, K * 0), (F[:, :1], F[:1]),
    (np.zeros((0, 3)), F[0]),
]  # fmt: skip

# NumPy keeps the dtype of integers and booleans in these; elsewhere it takes narrow ones to float16, xform to float64.
KEEPING = {"abs", "absolute", "bitwise_count", "bitwise_invert", "bitwise_not", "ceil", "conj",
           "conjugate", "floor", "imag", "invert", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
           "logical_not", "negative", "positive", "real", "sign", "signbit", "square", "trunc"}  # fmt: skip
TO_FLOAT = {"arctan2", "atan2", "copysign", "divide", "float_power", "heaviside", "hypot", "logaddexp", "logaddexp2",
            "nextafter", "true_divide"}  # fmt: skip
# What is more than NumPy has.
MORE = {
    ("reciprocal", "i"), ("reciprocal", "u"), ("reciprocal", "b"), ("deg2rad", "c"), ("rad2deg", "c"), ("radians", "c"),
    ("degrees", "c"), ("logaddexp", "c"), ("logaddexp2", "c"),
}  # fmt: skip


def kind(x):
    return np.asarray(x).dtype.kind


def tolerance(x):
    return 1e-5 if x.dtype in ("float32", "complex64") else 1e-12


def numpys(name, *args):
    """NumPy's result, or None if it refuses."""
    function = getattr(np, name)
    if all(kind(a) in "biu" for a in args) and (name in TO_FLOAT if len(args) == 2 else name not in KEEPING):
        args = [a if isinstance(a, int) else np.asarray(a, float) for a in args]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except (TypeError, ValueError):
            return None


COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge", "matmul"]


def call_all(calls, mode):
    """The results of several calls ``(function, args)``; under jit they are one program, compiled by XLA."""
    arrays = [[xnp.array(v) if isinstance(v, np.ndarray | np.generic) else v for v in args] for _, args in calls]
    if mode == "eager":
        return [f(*args) for (f, _), args in zip(calls, arrays, strict=True)]

    def program(traced):
        outs = []
        for (f, _), args, found in zip(calls, arrays, traced, strict=True):
            found = iter(found)
            outs.append(f(*(next(found) if isinstance(v, xform.Array) else v for v in args)))
        return outs

    with xform.core.config.small_programs("xla"):
        return xform.jit(program)([[v for v in args if isinstance(v, xform.Array)] for args in arrays])


@pytest.mark.parametrize("mode", ["eager", "jit"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, mode):
    function = getattr(xnp, name)
    inputs = [x for x in ONE if (name, kind(x)) not in MORE]
    wanted = [numpys(name, x) for x in inputs]
    refused = [x for x, w in zip(inputs, wanted, strict=True) if w is None]
    for x in refused:
        with pytest.raises(TypeError, match="takes"):
            (function if mode == "eager" else xform.jit(function))(xnp.array(x))
    accepted = [(x, w) for x, w in zip(inputs, wanted, strict=True) if w is not None]
    for got, (_, want) in zip(call_all([(function, (x,)) for x, _ in accepted], mode), accepted, strict=True):
        compare(got, want, tolerance(np.asarray(want)))


@pytest.mark.parametrize("mode", ["eager", "jit"])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, mode):
    function = getattr(xnp, name)
    inputs = [pair for pair in TWO if not any((name, kind(v)) in MORE for v in pair)]
    wanted = [numpys(name, *pair) for pair in inputs]
    for pair, want in zip(inputs, wanted, strict=True):
        if want is None and not (name in ("power", "pow") and mode == "jit"):  # a traced negative exponent isn't known
            with pytest.raises((TypeError, ValueError)):
                call_all([(function, pair)], mode)
    accepted = [(p, w) for p, w in zip(inputs, wanted, strict=True) if w is not None]
    for got, (_, want) in zip(call_all([(function, p) for p, _ in accepted], mode), accepted, strict=True):
        compare(got, want, tolerance(np.asarray(want)), "float64" if np.asarray(want).dtype == np.float16 else None)


@pytest.mark.parametrize("mode", ["eager", "jit"])
@pytest.mark.parametrize(
    "symbol",
    ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift", *COMPARISONS],
)
def test_operators(symbol, mode):
    function = getattr(operator, symbol)
    pairs = [(F, POSITIVE), (J, J), (POSITIVE, 2.0), (2.0, POSITIVE), (J, 2), (2, J), (F, 2), (POSITIVE, J)]
    if symbol == "matmul":
        pairs = [(F, POSITIVE.T), (F, F[0])]
    elif symbol in ("and_", "or_", "xor", "lshift", "rshift"):
        pairs = [(J, J), (J, 2), (2, J)]
    if symbol in ("add", "mul", "and_", "or_", "xor", "eq", "ne", "lt"):
        pairs.append((B, B))
    with np.errstate(all="ignore"):
        wanted = [function(*pair) for pair in pairs]
    for got, want in zip(call_all([(function, pair) for pair in pairs], mode), wanted, strict=True):
        compare(got, want)


def test_operators_with_ndarrays_and_numpy_scalars_give_arrays():
    x = xnp.array(F)
    two = np.float64(2)
    for result in (x + F, F + x, two * x, x - two, F @ x.T, x / F, F // x, operator.eq(F, x), np.int64(1) + x):
        assert isinstance(result, xform.Array)
    np.testing.assert_array_equal(np.asarray(F + x), F + F)
    np.testing.assert_array_equal(
        np.asarray(np.float32(1.5) * xnp.array(F.astype("f"))), F.astype("f") * np.float32(1.5)
    )


def test_in_place_operators_rebind():
    x = y = xnp.array(F)
    x += 1
    assert x is not y
    np.testing.assert_array_equal(np.asarray(y), F)


def test_operators_leave_what_they_do_not_know_to_the_other_side():
    class Other:
        __array_ufunc__ = None

        def __radd__(self, x):
            return "mine"

        def __rmatmul__(self, x):
            return "mine"

    assert xnp.ones(2) + Other() == "mine" and xnp.ones(2) @ Other() == "mine"
    for bad in ("a", None, [1, 2]):
        with pytest.raises(TypeError, match="unsupported operand"):
            xnp.ones(2) + bad
    with pytest.raises(TypeError):
        "a" + xnp.ones(2)
    assert xnp.ones(2) != None or True  # noqa: E711  (comparison with anything must not raise)


@pytest.mark.parametrize("mode", ["eager", "jit"])
@pytest.mark.parametrize("name", ["divmod", "modf", "frexp"])
def test_two_results(name, mode):
    values = np.array([3.5, -3.5, 0.0, -0.0, 7.25, 1e-300, 1e300, 0.1, np.inf, -np.inf, np.nan])
    args = (values, np.array(2.0)) if name == "divmod" else (values,)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*args)
    function = getattr(xnp, name)
    with xform.core.config.small_programs("xla"):
        got = (function if mode == "eager" else xform.jit(function))(*map(xnp.array, args))
    compare(got, want)
    if name == "frexp":
        compare(function(xnp.array([5e-324, 1e-310])), np.frexp(np.array([5e-324, 1e-310])))


@pytest.mark.parametrize("mode", ["eager", "jit"])
def test_ldexp_at_the_extremes(mode):
    x, n = (
        np.array([1.0, -3.0, 0.75, 1e-300, 1.0, 1.0, np.inf, 0.0]),
        np.array([3, -4, 1100, 1500, 2000, -1000, -5, 99]),
    )
    call = xnp.ldexp if mode == "eager" else xform.jit(xnp.ldexp)
    with np.errstate(all="ignore"), xform.core.config.small_programs("xla"):
        compare(call(xnp.array(x), xnp.array(n)), np.ldexp(x, n))


def test_python_scalars_do_not_widen():
    x = xnp.array([1.5, 2.5], "float32")
    for result in (x + 1.0, 1 + x, x * 2, x**2, 2**x, xnp.maximum(x, 0), xnp.where(x > 2, x, 0.0), xnp.clip(x, 0, 1.0)):
        assert result.dtype == np.float32 and not result.weak_type
    assert (xnp.array([1], "int8") + 1).dtype == np.int8
    assert (xnp.array([1], "int8") + 1.5).dtype == np.float64
    assert (xnp.array([1], "int64") * xnp.array([1], "float32")).dtype == np.float32
    assert xnp.add(1, 2).weak_type and xnp.sin(1).weak_type


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    x = xnp.array([0.5, 1.0, 3.0], dtype)
    for function in (xnp.sin, xnp.exp, xnp.sqrt, xnp.sum, xnp.mean, xnp.max, xnp.cumsum, xnp.square, abs):
        got = function(x)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(
            np.asarray(got).astype(float), np.asarray(function(x.astype("float32"))), rtol=1e-2, atol=1e-2
        )
    assert (x + x).dtype == (x * 2.5).dtype == x.dtype


def test_integers_that_do_not_fit():
    x = xnp.array([1, 2], "uint8")
    with pytest.raises(OverflowError, match=r"numpy\.add: 300 does not fit into uint8"):
        x + 300
    with pytest.raises(OverflowError, match=r"numpy\.subtract: -1 does not fit into uint8"):
        xform.jit(lambda v: v - (-1))(x)
    for function in (lambda v: v < 300, lambda v: operator.gt(300, v), lambda v: v != -1):
        assert function(x).tolist() == xform.jit(function)(x).tolist() == [True, True]


def test_powers():
    x = xnp.array([2.0, -3.0, 0.0])
    np.testing.assert_array_equal(np.asarray(x**2), [4, 9, 0])
    np.testing.assert_array_equal(np.asarray(x**-1), [0.5, -1 / 3, np.inf])
    assert str(xform.make_jaxpr(lambda v: v**3)(x)).count("integer_pow") == 1
    assert (xnp.array([2, 3]) ** 3).tolist() == [8, 27]
    big = xform.jit(lambda a, b: a**b)(xnp.array([3, -2, 7, 1, -1]), xnp.array([4, 5, 0, -3, -3]))
    assert big.tolist() == [81, -32, 1, 1, -1]
    for call in (lambda: xnp.array([2]) ** -1, lambda: xnp.power(xnp.array([2]), xnp.array([-1]))):
        with pytest.raises(ValueError, match="negative"):
            call()
    with pytest.raises((TypeError, ValueError), match="negative"):
        xform.jit(lambda v: v**-1)(xnp.array([2]))


@pytest.mark.parametrize(
    ("function", "x", "derivative"),
    [
        (xnp.sinc, 0.0, 0.0),
        (xform.grad(xnp.sinc), 0.0, -(np.pi**2) / 3),
        (lambda x: xnp.logaddexp(x, x), 1.0, 1.0),
        (lambda x: xnp.logaddexp(x, -np.inf), 2.0, 1.0),
        (lambda x: xnp.logaddexp(-np.inf, x * -np.inf), 1.0, None),
        (lambda x: xnp.hypot(x, 0.0), 3.0, 1.0),
        (lambda x: xnp.hypot(x, 4.0), 3.0, 0.6),
        (xform.grad(lambda x: xnp.hypot(x, 4.0)), 0.0, 0.25),
        (xform.grad(lambda x: xnp.hypot(x, 1.0)), 1.0, 2**-1.5),
        (xform.grad(lambda x: xnp.logaddexp(x, 1.0)), 1.0, 0.25),
        (xform.grad(lambda x: xnp.logaddexp2(x, 1.0)), 1.0, np.log(2) / 4),
        (lambda x: xnp.remainder(x, 1.0), 3.0, 1.0),
        (lambda x: xnp.remainder(5.5, x), 2.0, -2.0),
        (lambda x: xnp.floor_divide(x, 2.0), 3.0, 0.0),
        (lambda x: xnp.copysign(x, -1.0), 3.0, -1.0),
        (lambda x: xnp.where(x > 0, xnp.sqrt(x), 0.0), 4.0, 0.25),
    ],
)
def test_derivatives_at_special_points(function, x, derivative):
    got = float(xform.grad(function)(x))
    if derivative is None:
        assert not np.isnan(got)
    else:
        np.testing.assert_allclose(got, derivative, rtol=1e-6, atol=1e-9)


# ---- Errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
def test_shapes_that_do_not_fit(transform):
    for kind_of_error in (ValueError, TypeError):  # NumPy's and JAX's
        with pytest.raises(
            kind_of_error, match=r"numpy\.add: operands could not be broadcast together with shapes f64\[3\], f64\[2\]"
        ):
            transform(xnp.add)(xnp.ones(3), xnp.ones(2))
    with pytest.raises(
        ValueError, match=r"numpy\.multiply: operands could not be broadcast together with shapes f64\[2,3\], f64\[2\]"
    ):
        transform(lambda x, y: x * y)(xnp.ones((2, 3)), xnp.arange(2))


def test_keywords_of_mutable_arrays():
    with pytest.raises(NotImplementedError, match=r"numpy\.sin: arrays are immutable, so there is no argument out"):
        xnp.sin(xnp.ones(2), out=np.zeros(2))
    with pytest.raises(NotImplementedError, match=r"numpy\.add: only where=True .*xform\.numpy\.where"):
        xnp.add(xnp.ones(2), 1.0, where=xnp.ones(2, bool))


def test_what_is_no_array():
    for bad in ("text", None, object(), np.array(["a"]), np.array([None])):
        with pytest.raises(TypeError, match=r"numpy\.sin"):
            xnp.sin(bad)
    assert xnp.sin([0.0, 0.0]).tolist() == [0, 0]
    assert xnp.add([1, 2], (3, 4)).tolist() == [4, 6]
    assert xform.jit(lambda x: xnp.maximum([x, 2.0], 1.5))(1.0).tolist() == [1.5, 2.0]


def test_rank_promotion_option():
    with xform.numpy_rank_promotion("raise"):
        assert (xnp.ones(3) + 1.0).shape == (3,)
        with pytest.raises(ValueError, match="numpy_rank_promotion"):
            xnp.ones((2, 3)) + xnp.ones(3)
    with xform.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="different ranks"):
        xnp.ones((2, 3)) + xnp.ones(3)


def test_strict_dtype_promotion():
    with xform.numpy_dtype_promotion("strict"):
        assert (xnp.ones(2) + 1).dtype == np.float64
        with pytest.raises(ValueError, match=r"numpy\.add: dtypes float64 and int64"):
            xnp.ones(2) + xnp.arange(2)


def test_32_bit_mode():
    with xform.enable_x64(False):
        assert xnp.ones(2).dtype == np.float32 and xnp.arange(2).dtype == np.int32
        assert (xnp.arange(2) / 2).dtype == np.float32 and xnp.sin(np.ones(2)).dtype == np.float32
        assert xnp.argmax(xnp.ones(2)).dtype == np.int32 and xnp.sum(xnp.ones(2, bool)).dtype == np.int32
        assert xnp.array(np.ones(2)).dtype == np.float32 and (xnp.ones(2) + np.ones(2)).dtype == np.float32


def test_zero_to_a_complex_power_is_zero():
    """As in NumPy, where its real part is positive; compiled too."""
    powers = np.array([1 + 2j, 0.5 - 1j, 3 + 0j])
    with xform.core.config.small_programs("xla"):
        for f in (xnp.power, xform.jit(xnp.power)):
            np.testing.assert_array_equal(f(np.zeros(3, complex), powers), np.power(np.zeros(3), powers))
            np.testing.assert_array_equal(f(False, powers), np.zeros(3))


def test_derivatives_of_sinc_of_all_orders():
    """Those of even order 2 k at 0 are (-1)**k pi**(2 k) / (2 k + 1); near 0 they are as accurate."""
    f = xnp.sinc
    for order in range(9):
        k = order // 2
        at_origin = (-1) ** k * np.pi**order / (order + 1) if order % 2 == 0 else 0.0
        slope = (-1) ** (k + 1) * np.pi ** (order + 1) / (order + 2) if order % 2 else 0.0
        for x in (0.0, 1e-9, -1e-6):
            wanted = at_origin + slope * x  # the next term is below rounding
            for value in (f(x), xform.jit(f)(x)):
                np.testing.assert_allclose(value, wanted, rtol=1e-10, atol=0 if order % 2 == 0 else 1e-14)
        f = xform.grad(f)
