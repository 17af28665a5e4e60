"""The methods and attributes of every ufunc of NumPy's, beside NumPy."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp

UFUNCS = sorted({u.__name__ for u in vars(np).values() if isinstance(u, np.ufunc) and hasattr(xnp, u.__name__)})
BINARY = [n for n in UFUNCS if (u := getattr(np, n)).nin == 2 and u.nout == 1 and not u.signature]
RNG = np.random.default_rng(0)
FLOATS, INTS = RNG.uniform(0.5, 2, (3, 4)), RNG.integers(1, 4, (3, 4))
ARRAYS = [FLOATS, INTS, FLOATS > 1, FLOATS.astype("f"), np.zeros((0, 4)), np.zeros((3, 0), int)]
MASK = RNG.uniform(size=(3, 4)) > 0.3
# NumPy 2.4 with AVX-512 skips elements when it reduces contiguous floats with these.
MISTAKEN = ("arctan2", "power")
# Method, what follows the array by position, and keywords; a mask is broadcast to the array.
CALLS = [
    ("reduce", (), {}), ("reduce", (1,), {}), ("reduce", (None,), {}), ("reduce", ((0, 1),), {}), ("reduce", ((),), {}),
    ("reduce", (-1,), {"keepdims": True}), ("reduce", (0,), {"initial": 2}), ("reduce", (0, "float32"), {}),
    ("reduce", (0, None, None, True), {}), ("reduce", (), {"where": MASK}),
    ("reduce", (1,), {"where": MASK, "initial": 1}),
    ("accumulate", (), {}), ("accumulate", (1,), {}), ("accumulate", (-1, "float64"), {}), ("accumulate", (2,), {}),
    ("reduceat", ([0, 2, 1],), {}), ("reduceat", ([1, 3, 0, 2], 1), {}), ("reduceat", ([0, 2], 0, "float64"), {}),
    ("reduceat", ([7],), {}), ("outer", (FLOATS[:1],), {}), ("outer", (np.array([1, 2], "i1"),), {}),
]  # fmt: skip


@pytest.mark.parametrize("name", UFUNCS)
def test_attributes(name):
    ours, theirs = getattr(xnp, name), getattr(np, name)
    assert isinstance(ours, xnp.ufunc)
    for attribute in ("nin", "nout", "nargs", "identity"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute


def attempt(function, *args, **kwargs):
    try:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)
    except (TypeError, ValueError, IndexError) as error:
        return error


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
def test_methods(name):
    ours, theirs = getattr(xnp, name), getattr(np, name)
    for x in ARRAYS:
        if x.dtype == bool and getattr(attempt(theirs, True, True), "dtype", None) == np.float16:
            x = x.astype(float)  # what NumPy computes in half precision
        for method, args, kwargs in CALLS:
            if "where" in kwargs and x.shape != MASK.shape:
                continue
            call = (name, method, x.dtype, x.shape, args, kwargs)
            got, wanted = (attempt(getattr(f, method), x, *args, **kwargs) for f in (ours, theirs))
            is_float = isinstance(wanted, np.ndarray | np.floating)
            if name in MISTAKEN and method == "reduce" and is_float and "float32" not in args:
                one_by_one = np.frompyfunc(theirs, 2, 1).reduce(x, *args, **kwargs)
                wanted = np.asarray(one_by_one).astype(wanted.dtype)
            if name == "ldexp" and args[1:2] == ("float32",):
                continue  # which would make the exponents floats
            if name == "lcm" and "not reorderable" in str(wanted):
                continue  # it is
            if isinstance(wanted, TypeError):
                continue  # NumPy has no loop for some dtypes: an error here only where the operation needs one
            if isinstance(wanted, Exception):
                assert isinstance(got, type(wanted)), (call, wanted, got)
                assert f"numpy.{ours.__name__}.{method}" in str(got), (call, got)
                continue
            assert not isinstance(got, Exception), (call, got)
            assert got.dtype == wanted.dtype, (call, got.dtype, wanted.dtype)
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5, err_msg=str(call))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("name", BINARY)
def test_at(name):
    ours, theirs = getattr(xnp, name), getattr(np, name)
    for x in (INTS[0], FLOATS[0]):
        wanted = x.copy()
        if isinstance(attempt(theirs.at, wanted, [0, 2, 0], 2), TypeError):  # a float of integers, say
            continue
        got = ours.at(x, np.array([0, 2, 0]), 2, inplace=False)
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12)
        with pytest.raises(NotImplementedError, match=rf"numpy\.{ours.__name__}.at: arrays are immutable"):
            ours.at(x, 0, 2)


@pytest.mark.parametrize("name", ["add", "subtract", "hypot", "maximum", "logaddexp", "bitwise_xor", "power"])
def test_methods_under_jit_are_those_outside(name):
    function = getattr(xnp, name)
    x = INTS if name == "bitwise_xor" else FLOATS

    def program(x):
        return function.reduce(x, 1), function.accumulate(x), function.reduceat(x, [0, 2, 1]), function.outer(x, x[0])

    for got, wanted in zip(xform.jit(program)(x), program(x), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-12)


def test_vectorize_with_types_and_as_decorator():
    x = np.arange(4.0)

    @xnp.vectorize(otypes="fi", doc="Both.", cache=True)
    def both(x):
        """One."""
        return x + 0.5, x * 2

    got, wanted = both(x), np.vectorize(lambda x: (x + 0.5, x * 2), otypes="fi")(x)
    assert both.__doc__ == "Both."
    for g, w in zip(got, wanted, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(np.asarray(g), w)
    single = xnp.vectorize(lambda x, n: x**n, [np.float32], None, {"n"})
    assert single(x, n=2).dtype == "float32" and single.__doc__ is None
    with pytest.raises(ValueError, match=r"numpy\.vectorize: otypes names 1 results, the function returned 2"):
        xnp.vectorize(lambda x: (x, x), "f")(x)


def test_ufuncs_of_python_functions_take_where_true_only():
    f = xnp.frompyfunc(lambda x, y: x + y, 2, 1)
    assert f.nargs == 3 and f(1.0, 2.0, where=True) == 3.0
    with pytest.raises(NotImplementedError, match="where"):
        f(1.0, 2.0, where=np.array(False))
    with pytest.raises(NotImplementedError, match="out"):
        f(1.0, 2.0, out=np.zeros(()))


@pytest.mark.parametrize("method", ["reduce", "accumulate", "reduceat"])
def test_what_an_operation_refuses_is_told_by_its_name(method):
    x = xnp.array([1.0, 2.0])
    for name in ("ldexp", "gcd", "left_shift", "bitwise_and"):
        function = getattr(getattr(xnp, name), method)
        with pytest.raises(TypeError) as caught:
            function(x, [0]) if method == "reduceat" else function(x)
        assert str(caught.value).startswith(f"numpy.{name}.{method} takes "), caught.value
        assert "f64[2] and f64[2]" in str(caught.value) or "f64[2], f64[2]" in str(caught.value), caught.value
