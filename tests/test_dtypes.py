"""Element types: promotion against JAX's, classification and limits against NumPy's, and bad input."""

import copy
import enum
import itertools
import pickle
import threading
import warnings
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xform.dtypes
from xform.core import config, dtypes

ALL = list(dtypes.by_name)


@pytest.fixture
def x32():
    with config.enable_x64(False):
        yield


def outcome(function, *args):
    """The result as text, or the fact that there is none."""
    try:
        return str(function(*args))
    except ValueError:
        return "error"


# ---- Promotion ---------------------------------------------------------------------------------------------


class Weak:
    """Stands for an array of the library with a weak type."""

    def __init__(self, dtype):
        self.dtype, self.weak_type = np.dtype(dtype), True

    def __repr__(self):
        return f"Weak({self.dtype})"


@pytest.mark.parametrize("mode", ["standard", "strict"])
@pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])
def test_promotion_is_jaxs(mode, x64):
    """All pairs of types, strong and weak, in all modes."""
    jax = pytest.importorskip("jax")
    with (
        jax.enable_x64(x64),
        jax.numpy_dtype_promotion(mode),
        config.enable_x64(x64),
        config.numpy_dtype_promotion(mode),
    ):
        types = [t for t in ALL if x64 or dtypes.by_name[t] not in dtypes._TO_32_BITS]
        # Pairs of the same thing for JAX and for us.
        samples = [(np.zeros(2, dtypes.by_name[t]),) * 2 for t in types]
        for scalar in (1, 1.0, 1j):
            samples.append((scalar, scalar))
            samples.append((jax.numpy.asarray(scalar), Weak(dtypes.dtype(scalar))))
        for (a_jax, a), (b_jax, b) in itertools.product(samples, repeat=2):
            theirs = outcome(partial(jax.dtypes.result_type, return_weak_type_flag=True), a_jax, b_jax)
            ours = outcome(partial(dtypes.result_type, return_weak_type_flag=True), a, b)
            assert ours == theirs, (a, b)
            if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
                theirs = outcome(jax.numpy.promote_types, a.dtype, b.dtype)
                assert outcome(dtypes.promote_types, a.dtype, b.dtype) == theirs, (a, b)


@pytest.mark.parametrize("x64", [True, False], ids=["x64", "x32"])
def test_promotion_with_python_types_is_jaxs(x64):
    jax = pytest.importorskip("jax")
    python = [bool, int, float, complex]
    types = [t for t in ALL if x64 or dtypes.by_name[t] not in dtypes._TO_32_BITS]
    with jax.enable_x64(x64), config.enable_x64(x64):
        for a, b in itertools.product([*types, *python], python):
            theirs, ours = outcome(jax.numpy.promote_types, a, b), outcome(dtypes.promote_types, a, b)
            if not x64 and theirs != "error":
                theirs = str(jax.dtypes.canonicalize_dtype(theirs))  # JAX says int64 for int and int
            assert ours == theirs, (a, b)
            for scalar in (b, b(1)):
                assert outcome(dtypes.result_type, a, scalar) == outcome(jax.dtypes.result_type, a, scalar)


@given(st.lists(st.sampled_from([*ALL, True, 1, 1.0, 1j, np.float32(1), np.int8(1)]), min_size=1, max_size=5))
def test_promotion_of_many_is_jaxs(args):
    """Promotion is a lattice's join, so the order of arguments doesn't matter."""
    jax = pytest.importorskip("jax")
    args = [dtypes.by_name[a] if isinstance(a, str) else a for a in args]
    assert outcome(dtypes.result_type, *args) == outcome(jax.dtypes.result_type, *args)
    assert outcome(dtypes.result_type, *args) == outcome(dtypes.result_type, *reversed(args))


def test_weak_types_give_way():
    for t in ALL:
        d = dtypes.by_name[t]
        kind = dtypes.kinds[d]
        assert dtypes.promote(d, False, dtypes.default_int(), True) == (
            (dtypes.default_int(), True) if kind == "b" else (d, False)
        )
        if kind in "fc":
            assert dtypes.promote(dtypes.default_float(), True, d, False) == (d, False)
    assert dtypes.result_type(1, 2.0, return_weak_type_flag=True) == (np.float64, True)
    assert dtypes.result_type(np.int64(1), 2.0, return_weak_type_flag=True) == (np.float64, True)
    assert dtypes.result_type(True, return_weak_type_flag=True) == (np.bool_, False)
    assert dtypes.result_type(np.ones(2, "bool"), 1, return_weak_type_flag=True) == (np.int64, True)
    assert dtypes.result_type(Weak("float32")) == np.float64
    assert dtypes.result_type(None) == np.float64


def test_the_table_is_filled_once_and_agrees_with_itself():
    a, b = np.dtype("uint32"), np.dtype("int8")
    assert dtypes.promote(a, False, b, False) is dtypes.promote(a, False, b, False)
    assert dtypes.promote(a, False, b, False) == (np.int64, False)
    with config.enable_x64(False):
        assert dtypes.promote(a, False, b, False) == (np.int32, False)
    assert dtypes.promote(a, False, b, False) == (np.int64, False)


@pytest.mark.parametrize(
    ("a", "b"),
    [("int4", "int8"), ("float8_e4m3fn", "float32"), ("float8_e5m2", "float8_e4m3"), ("uint2", "bfloat16")],
)
def test_narrow_types_do_not_promote(a, b):
    with pytest.raises(xform.dtypes.TypePromotionError, match=rf"{a} and {b} .* x\.astype") as error:
        dtypes.promote_types(a, b)
    assert isinstance(error.value, ValueError)


def test_float0_and_extended_types_promote_with_themselves_only():
    f0 = np.zeros(2, dtypes.float0)
    assert dtypes.result_type(f0, f0) == dtypes.float0
    with pytest.raises(dtypes.TypePromotionError, match="float0"):
        dtypes.result_type(f0, 1.0)
    key = KeyType()
    assert dtypes.result_type(key, key) is key
    with pytest.raises(dtypes.TypePromotionError, match="key<toy>"):
        dtypes.result_type(key, np.ones(2))


def test_strict_mode_names_itself():
    with (
        config.numpy_dtype_promotion("strict"),
        pytest.raises(dtypes.TypePromotionError, match=r"int32 and float32 .*strict"),
    ):
        dtypes.result_type("int32", "float32")
    assert dtypes.result_type("int32", "float32") == np.float32


def test_modes_are_per_thread():
    found = {}

    def other():
        found["other"] = dtypes.result_type(1.0)

    with config.enable_x64(False):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        found["here"] = dtypes.result_type(1.0)
    assert found == {"other": np.float64, "here": np.float32}


# ---- Values ------------------------------------------------------------------------------------------------


class Color(enum.IntEnum):
    RED = 300


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (True, "bool"),
        (3, "int64"),
        (3.0, "float64"),
        (3j, "complex128"),
        (int, "int64"),
        (bool, "bool"),
        (np.int8(1), "int8"),
        (np.float64(1), "float64"),
        (np.zeros((0, 2), ">f4"), "float32"),
        (np.zeros(3, "float16")[::-1], "float16"),
        (ml_dtypes.bfloat16(1), "bfloat16"),
        (np.zeros(2, ml_dtypes.int4), "int4"),
        (np.dtype(">i4"), "int32"),
        (np.longlong, "int64"),
        ("uint16", "uint16"),
        (np.complex64, "complex64"),
        (dtypes.scalar_types["float8_e5m2"], "float8_e5m2"),
        (Color.RED, "int64"),
    ],
    ids=str,
)
def test_dtype_of_values(x, expected):
    assert dtypes.dtype(x) is dtypes.by_name[expected]
    with config.enable_x64(False):
        assert dtypes.dtype(x) == dtypes.canonicalize_dtype(expected)
        assert dtypes.dtype(x) not in dtypes._TO_32_BITS


@pytest.mark.parametrize(
    "x",
    [
        None,
        [1, 2],
        (),
        {},
        object(),
        object,
        "nonsense",
        np.array(["a"]),
        np.array([None]),
        np.datetime64(1, "D"),
        np.dtype("S3"),
        np.dtype([("a", int)]),
        np.zeros(2, "timedelta64[s]"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_dtype_of_what_is_no_array(x):
    with pytest.raises(TypeError):
        dtypes.dtype(x)


def test_arrays_of_the_library_keep_64_bits():
    with config.enable_x64(False):
        assert dtypes.dtype(Weak("float64")) == np.float64
        assert dtypes.result_type(Weak("float64")) == np.float32


def test_weakly_typed():
    assert [dtypes.is_weakly_typed(x) for x in (1, 1.0, 1j, Color.RED, Weak("int8"))] == [True] * 5
    assert not any(dtypes.is_weakly_typed(x) for x in (True, np.float64(1), np.int64(1), np.ones(2), "f", None))


def test_defaults(x32):
    assert dtypes.default_int() == np.int32
    assert dtypes.default_float() == np.float32
    assert dtypes.default_complex() == np.complex64
    with config.enable_x64(True):
        assert dtypes.default_int() == np.int64
        assert dtypes.default_float() == np.float64
        assert dtypes.default_complex() == np.complex128


def test_canonicalize():
    for t in ALL:
        assert dtypes.canonicalize_dtype(t) is dtypes.by_name[t]
        with config.enable_x64(False):
            half = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}
            assert dtypes.canonicalize_dtype(t) is dtypes.by_name[half.get(t, t)]
    key = KeyType()
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    with pytest.raises(ValueError, match="extended"):
        dtypes.canonicalize_dtype(key)
    with pytest.raises(TypeError, match="'nonsense'"):
        dtypes.canonicalize_dtype("nonsense")


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("x", [0, 1, True, False, 1.0, -0.0, float("nan"), float("inf"), 1 + 1j, 10**9], ids=str)
def test_coerced_scalars_are_numpys(x, dtype):
    d = dtypes.by_name[dtype]
    kind, reference = dtypes.kinds[d], np.asarray(x)
    info = dtypes.iinfo(d) if kind in "iu" else None
    if isinstance(x, complex) and kind != "c":
        expected_error = TypeError
    elif isinstance(x, int) and info and not info.min <= x <= info.max:
        expected_error = OverflowError
    elif isinstance(x, float) and kind in "iu":
        return  # NumPy's own conversion: it warns or raises by platform
    else:
        result = dtypes.coerce_scalar(x, d)
        assert (result.dtype, result.shape) == (d, ())
        with np.errstate(all="ignore"):
            wide = np.complex128 if kind == "c" else np.float64
            np.testing.assert_array_equal(result.astype(wide), reference.astype(d).astype(wide))
        return
    with pytest.raises(expected_error, match=str(dtype)):
        dtypes.coerce_scalar(x, d)


def test_coerced_scalars_of_default_type(x32):
    for x, wide, half in [(True, "bool", "bool"), (1, "int64", "int32"), (1.5, "float64", "float32")]:
        assert dtypes.coerce_scalar(x).dtype == half
        with config.enable_x64(True):
            assert dtypes.coerce_scalar(x).dtype == wide
    assert dtypes.coerce_scalar(1e300) == np.inf  # and no warning
    with pytest.raises(OverflowError, match="4294967296 does not fit into int32"):
        dtypes.coerce_scalar(2**32)


@pytest.mark.parametrize("x", [2**63, -(2**63) - 1, 10**400])
def test_too_large_integers(x):
    with pytest.raises(OverflowError, match="does not fit into int64"):
        dtypes.coerce_scalar(x)
    assert dtypes.coerce_scalar(x % 2**63).item() == x % 2**63
    assert dtypes.coerce_scalar(2**63, np.dtype("uint64")).item() == 2**63
    with pytest.raises(OverflowError, match="1329 bits does not fit into bfloat16"):
        dtypes.coerce_scalar(10**400, dtypes.by_name["bfloat16"])


def test_scalar_type_of():
    values = (3, 3.0, True, 1j, np.int8(3), ml_dtypes.bfloat16(2), "uint4", "float8_e5m2", "complex64")
    assert [dtypes.scalar_type_of(x) for x in values] == [
        int,
        float,
        bool,
        complex,
        int,
        float,
        int,
        float,
        complex,
    ]
    with pytest.raises(TypeError):
        dtypes.scalar_type_of(np.zeros(2, dtypes.float0))


# ---- Arguments that users give -----------------------------------------------------------------------------


def test_user_dtypes():
    for dtype, expected in [(int, "int64"), (float, "float64"), ("bfloat16", "bfloat16"), (np.int8, "int8")]:
        assert dtypes.check_user_dtype(dtype, "zeros") is dtypes.by_name[expected]
    assert dtypes.check_user_dtype(dtypes.scalar_types["int4"], "zeros") is dtypes.by_name["int4"]
    assert dtypes.check_user_dtype(">f8", "zeros") is dtypes.by_name["float64"]
    key = KeyType()
    assert dtypes.check_user_dtype(key, "zeros") is key


@pytest.mark.parametrize(
    "bad", ["S3", "U", "O", "M8[s]", str, object, "V", [("a", int)], "nonsense", 3, np.ones(2), None]
)
def test_bad_user_dtypes(bad):
    with pytest.raises(TypeError, match="zeros"):
        dtypes.check_user_dtype(bad, "zeros")


@pytest.mark.skipif(np.dtype(np.longdouble) == np.float64, reason="long double is double here")
def test_long_double_is_refused():
    with pytest.raises(TypeError, match="zeros: dtype"):
        dtypes.check_user_dtype(np.longdouble, "zeros")


def test_user_dtypes_of_64_bits_when_off(x32):
    with pytest.warns(UserWarning, match="zeros: 64-bit types are off, so dtype float64 becomes float32"):
        assert dtypes.check_user_dtype("float64", "zeros") == np.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtypes.check_user_dtype(float, "zeros") == np.float32


# ---- Classes of types --------------------------------------------------------------------------------------

ABSTRACT = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger]
ABSTRACT += [np.inexact, np.floating, np.complexfloating, np.bool_]


class KeyType(dtypes.ExtendedDType):
    type, name = dtypes.prng_key, "key<toy>"

    def __str__(self):
        return self.name


@pytest.mark.parametrize("a", ALL)
def test_subtypes(a):
    d = dtypes.by_name[a]
    parents = {
        "b": {np.bool_},
        "i": {np.number, np.integer, np.signedinteger},
        "u": {np.number, np.integer, np.unsignedinteger},
        "f": {np.number, np.inexact, np.floating},
        "c": {np.number, np.inexact, np.complexfloating},
    }[dtypes.kinds[d]] | {np.generic}
    for form in (a if hasattr(np, a) else d, d, d.type, dtypes.scalar_types[a]):
        assert {b for b in ABSTRACT if dtypes.issubdtype(form, b)} == parents
    assert [b for b in ALL if dtypes.issubdtype(d, dtypes.by_name[b])] == [a]
    assert not dtypes.issubdtype(d, dtypes.extended)


def test_subtypes_agree_with_jax():
    jax = pytest.importorskip("jax")
    forms = [*ABSTRACT, *dtypes.by_name.values(), float, int, "float16", dtypes.float0, dtypes.prng_key]
    theirs = [jax.dtypes.prng_key if f is dtypes.prng_key else f for f in forms]
    for (a, a_theirs), (b, b_theirs) in itertools.product(zip(forms, theirs), repeat=2):
        assert dtypes.issubdtype(a, b) == jax.dtypes.issubdtype(a_theirs, b_theirs), (a, b)


def test_extended_types():
    key = KeyType()
    assert dtypes.issubdtype(key, dtypes.prng_key)
    assert dtypes.issubdtype(key, dtypes.extended)
    assert dtypes.issubdtype(key, key)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    assert not dtypes.issubdtype(key, np.number)
    assert not dtypes.issubdtype("float32", key)
    assert dtypes.dtype(key) is key


@pytest.mark.parametrize("t", ALL)
def test_isdtype_agrees_with_jax(t):
    jax = pytest.importorskip("jax")
    for kind in [
        *dtypes.categories,
        ("bool", "integral"),
        "float32",
        np.int8,
        (np.float64, "complex floating"),
    ]:
        d = dtypes.by_name[t]
        assert dtypes.isdtype(d, kind) == jax.numpy.isdtype(d, kind), kind


def test_isdtype_of_nonsense():
    with pytest.raises(ValueError, match="'nonsense' is neither"):
        dtypes.isdtype("int8", "nonsense")
    with pytest.raises(TypeError, match="3 is neither"):
        dtypes.isdtype("int8", 3)


@pytest.mark.parametrize("t", ALL)
def test_limits(t):
    d = dtypes.by_name[t]
    kind = dtypes.kinds[d]
    for function, kinds, numpys, mls in [
        (dtypes.finfo, "fc", np.finfo, ml_dtypes.finfo),
        (dtypes.iinfo, "iu", np.iinfo, ml_dtypes.iinfo),
    ]:
        if kind not in kinds:
            with pytest.raises(ValueError, match=f"info: {t}"):
                function(d)
            continue
        info = function(dtypes.scalar_types[t])
        reference = numpys(d) if hasattr(np, t) else mls(d)
        for field in ("bits", "min", "max", "eps", "tiny", "smallest_subnormal", "dtype"):
            assert getattr(info, field, None) == getattr(reference, field, None)
    bits = dtypes.itemsize_bits(d)
    assert bits == 8 * d.itemsize if hasattr(np, t) or t == "bfloat16" else f"{bits}" in t


def test_limits_of_values():
    assert dtypes.finfo(1.0).dtype == np.float64
    assert dtypes.finfo(np.ones(2, "complex64")).dtype == np.float32
    assert dtypes.iinfo(1).bits == 64
    with pytest.raises(ValueError, match="None"):
        dtypes.itemsize_bits(None)


def test_inexact_and_numeric_types():
    assert dtypes.to_inexact_dtype("int32") == np.float64
    assert dtypes.to_inexact_dtype("bool") == np.float64
    assert dtypes.to_numeric_dtype("bool") == np.int64
    assert dtypes.to_numeric_dtype("uint8") == np.uint8
    with config.enable_x64(False):
        assert dtypes.to_inexact_dtype("int32") == np.float32
        assert dtypes.to_numeric_dtype("bool") == np.int32
    for t in ALL:
        if dtypes.kinds[dtypes.by_name[t]] in "fc":
            assert dtypes.to_inexact_dtype(dtypes.by_name[t]) is dtypes.by_name[t]


def test_can_cast():
    for a, b in itertools.product(dtypes.by_name.values(), repeat=2):
        for rule in ("no", "equiv", "safe", "same_kind", "unsafe"):
            assert dtypes.can_cast(a, b, rule) == np.can_cast(a, b, rule)
    assert dtypes.can_cast(np.ones(2, "int8"), float)
    with pytest.raises(TypeError, match="Python scalar"):
        dtypes.can_cast(1, "int8")


# ---- jnp.float32 and the like ------------------------------------------------------------------------------


@pytest.mark.parametrize("t", ALL)
def test_scalar_types(t):
    s, d = dtypes.scalar_types[t], dtypes.by_name[t]
    assert np.dtype(s) is d
    assert s.dtype is d
    assert s == d and d == s and s == d.type and s == s
    assert s != "nonsense" and s != 3
    assert [u for u in ALL if s == dtypes.by_name[u]] == [t]
    assert d in {s} and s in {d}
    assert isinstance(d.type(1), s)
    assert not isinstance(np.ones(2, d), s)
    assert np.zeros(2, s).dtype == d
    assert s.__name__ == t
    assert copy.deepcopy(s) is s


def test_scalar_types_make_arrays(monkeypatch):
    monkeypatch.setattr(dtypes.ScalarType, "make", lambda x, dtype: np.asarray(x, dtype), raising=False)
    made = dtypes.scalar_types["float32"]([1, 2])
    assert made.dtype == np.float32
    assert made.tolist() == [1.0, 2.0]


def test_float0():
    assert np.zeros((2, 3), dtypes.float0).nbytes == 0
    assert dtypes.dtype(np.zeros(2, dtypes.float0)) is dtypes.float0
    assert pickle.loads(pickle.dumps(dtypes.float0)) == dtypes.float0
    jax = pytest.importorskip("jax")
    assert dtypes.float0 == jax.dtypes.float0


def test_public_names():
    jax = pytest.importorskip("jax")
    assert set(xform.dtypes.__all__) == {n for n in dir(jax.dtypes) if not n.startswith("_")}
