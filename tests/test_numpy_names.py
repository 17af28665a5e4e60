"""NumPy's names are here with NumPy's parameters, or docs/numpy.md says why not."""

import inspect
import pathlib
import re

import numpy as np
import numpy.testing.overrides
import pytest

import xform
import xform.numpy as xnp
import xform.test_util

ROOT = pathlib.Path(__file__).resolve().parent.parent


# ---- Names -------------------------------------------------------------------------------------------------


def left_out():
    """Name to reason, of the table of the section "Left out"."""
    section = (ROOT / "docs" / "numpy.md").read_text().split("### Left out")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*`) \| (.+) \|$", section, flags=re.M)
    return {name: reason for names, reason in rows for name in re.findall(r"`([^`]+)`", names)}


def numpys_names():
    """The public names of NumPy's namespaces of functions, and its functions that others can override."""
    found = set(np.__all__)
    for name in PLACES:
        module = here(name, np)
        found |= {f"{name}.{n}" for n in getattr(module, "__all__", None) or vars(module) if not n.startswith("_")}
    for f in numpy.testing.overrides.get_overridable_numpy_array_functions():
        found.add(f"{f.__module__}.{f.__name__}".removeprefix("numpy."))
    return found | {f"ndarray.{n}" for n in dir(np.ndarray) if not n.startswith("_")}


def here(name, value=xnp):
    """What has this name; methods are those of concrete arrays."""
    if name.startswith("ndarray."):
        name, value = name.removeprefix("ndarray."), type(xnp.ones(1)) if value is xnp else np.ndarray
    for part in name.split("."):
        value = getattr(value, part, None)
    return name if name == "newaxis" else value


def test_every_name_is_there_or_its_absence_explained():
    reasons = left_out()
    missing = [n for n in numpys_names() if here(n) is None and not any(f"{n}.".startswith(f"{r}.") for r in reasons)]
    assert not missing, f"neither in xform.numpy nor in docs/numpy.md: {sorted(missing)}"


def test_the_explanations_are_true():
    reasons = left_out()
    assert len(reasons) > 40 and all(len(reason) > 10 for reason in reasons.values())
    assert not [n for n in reasons if n not in numpys_names() | {"lib.recfunctions"}], "no such names in NumPy"
    assert not [n for n in reasons if here(n) is not None], "they are there"


# ---- Parameters --------------------------------------------------------------------------------------------

SERIES = [f"polynomial.{m}" for m in ("polynomial", "chebyshev", "legendre", "hermite", "hermite_e", "laguerre")]
PLACES = ["linalg", "fft", "emath", "lib.stride_tricks", "polynomial", "polynomial.polyutils", *SERIES]
MODULES = {"": (np, xnp)} | {f"{place}.": (here(place, np), here(place)) for place in PLACES}

# Parameters that are not NumPy's, and why.
OTHER_PARAMETERS = {
    "clip": "min and max have the places of a_min and a_max, as the array API standard wants them",
    "einsum_path": "einsum_call is for NumPy's own use",
    "real": "val is called x, as for other elementwise functions",
    "imag": "val is called x, as for other elementwise functions",
}


def parameters(function):
    try:
        return list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return None


def functions():
    """Names, NumPy's functions and ours, but for ufuncs and classes."""
    for prefix, (theirs, ours) in MODULES.items():
        for name in sorted(getattr(theirs, "__all__", None) or vars(theirs)):
            function, own = getattr(theirs, name, None), getattr(ours, name, None)
            if callable(function) and own is not None and not isinstance(function, np.ufunc | type):
                yield prefix + name, function, own


def differences(function, own):
    """What calls with NumPy's parameters would meet."""
    theirs, ours = parameters(function), parameters(own)
    if theirs is None or ours is None:
        return []
    P = inspect.Parameter
    keywords = {p.name for p in ours if p.kind in (P.POSITIONAL_OR_KEYWORD, P.KEYWORD_ONLY)}
    wanted = {p.name for p in theirs if p.kind in (P.POSITIONAL_OR_KEYWORD, P.KEYWORD_ONLY)}
    found = [f"lacks {name}" for name in sorted(wanted - keywords)]
    places = [p for p in ours if p.kind in (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)]
    several = any(p.kind is P.VAR_POSITIONAL for p in ours)
    for i, p in enumerate(q for q in theirs if q.kind in (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD)):
        if i >= len(places) and not several:
            found.append(f"can't take {p.name} by position")
        elif p.kind is P.POSITIONAL_OR_KEYWORD and p.name in wanted & keywords and places[i].name != p.name:
            found.append(f"has {places[i].name} in the place of {p.name}")
    return found


def test_parameters_have_numpys_names_and_order():
    found = {name: d for name, function, own in functions() if (d := differences(function, own))}
    assert found.keys() == OTHER_PARAMETERS.keys(), found


def test_methods_have_numpys_parameters():
    found = {}
    for name in dir(np.ndarray):
        own = here(f"ndarray.{name}")
        if not name.startswith("_") and callable(own):
            found[name] = differences(getattr(np.ndarray, name), own)
    assert not {name: d for name, d in found.items() if d} and len(found) > 40


def test_casting_of_astype():
    x = xnp.array([1.5, 2.5])
    assert x.astype("int32", "K", "unsafe").tolist() == [1, 2] and x.astype("f4", casting="same_kind").dtype == "f4"
    with pytest.raises(TypeError, match=r"numpy\.astype: can't cast f64\[2\] to int32 with casting='same_kind'"):
        x.astype("int32", casting="same_kind")
    with pytest.raises(NotImplementedError, match="memory layout"):
        x.astype("int32", "F")


UFUNCS = sorted(n for n in np.__all__ if isinstance(getattr(np, n), np.ufunc) and hasattr(xnp, n))


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_take_dtype_and_refuse_what_is_for_mutable_arrays(name):
    ours, theirs = getattr(xnp, name), getattr(np, name)
    rng = np.random.default_rng(0)
    shape = {"matmul": (2, 2), "matvec": (2, 2), "vecmat": (2, 2)}.get(name, (2,))
    x = rng.integers(1, 4, (theirs.nin, *shape))
    for dtype in ("float32", "int64", "bool"):
        if (name, dtype) == ("reciprocal", "int64"):  # of integers it is the quotient of floats
            continue
        try:
            with np.errstate(all="ignore"):
                wanted = theirs(*x, dtype=dtype)
        except TypeError:
            continue
        got = ours(*x, dtype=dtype)
        for g, w in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, wanted)), strict=True):
            assert g.dtype == w.dtype, (dtype, g.dtype)
            np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6)
    with pytest.raises(NotImplementedError, match=rf"numpy\.{ours.__name__}: .*out"):
        ours(*x, out=np.zeros(shape))
    if not theirs.signature:
        assert np.shape(ours(*x, where=True)) == np.shape(ours(*x))
        with pytest.raises(NotImplementedError, match="where"):
            ours(*x, where=np.array(False))


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs_accept_numpys_defaults_and_say_why_nothing_else(name):
    ours, theirs = getattr(xnp, name), getattr(np, name)
    x = np.random.default_rng(0).integers(1, 4, (theirs.nin, 2, 2))
    defaults = {"out": None, "casting": "same_kind", "order": "K", "subok": True}
    if not theirs.signature:
        defaults["where"] = True
    for call, args in ((ours, x), (xform.jit(lambda *x: ours(*x, **defaults)), x), (ours, map(xnp.array, x))):
        keywords = defaults if call is ours else {}
        for g, w in zip(*(v if isinstance(v, tuple) else (v,) for v in (call(*args, **keywords), ours(*x)))):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-14)
    refused = {"casting": "no", "order": "F", "subok": 3, "signature": "d->d", "where": [True]}
    for key, value in refused.items():
        with pytest.raises(NotImplementedError, match=rf"numpy\.{ours.__name__}: only {key}=.* is accepted; \w+"):
            ours(*x, **{key: value})
    with pytest.raises(TypeError, match=rf"numpy\.{ours.__name__}: unexpected keyword argument 'extobj'; ufuncs take"):
        ours(*x, extobj=[8192, 0, None])


def test_ufuncs_have_numpys_signatures():
    for name in UFUNCS:
        ours, theirs = getattr(xnp, name), getattr(np, name)
        if hasattr(ours, "general"):
            keywords = {"out", "where", "casting", "order", "dtype", "subok"}
            assert list(inspect.signature(ours).parameters)[theirs.nin] == "out"
            assert keywords == set(list(inspect.signature(ours).parameters)[theirs.nin :])


def test_a_ufunc_refuses_a_dtype_that_operands_cant_be_cast_to():
    with pytest.raises(TypeError, match=r"numpy\.add: can't compute in dtype=int64 with f64\[2\], "):
        xnp.add(np.ones(2), 1, dtype=int)
    assert xnp.abs(np.array([3 + 4j]), dtype="float64").tolist() == [5.0]
    assert xnp.less(1.0, np.ones(2), dtype=bool).tolist() == [False, False]
    with pytest.raises(TypeError, match=r"numpy\.less: can't compute in dtype=float64"):
        xnp.less(1.0, 2.0, dtype=float)


@pytest.mark.parametrize(
    "call",
    [
        lambda **k: xnp.array([1.0], **k), lambda **k: xnp.asarray([1.0], **k), lambda **k: xnp.zeros(2, **k),
        lambda **k: xnp.ones((2, 2), **k), lambda **k: xnp.empty(2, **k), lambda **k: xnp.full(2, 1.0, **k),
        lambda **k: xnp.eye(2, **k), lambda **k: xnp.zeros_like(np.ones(2), **k), lambda **k: xnp.copy(np.ones(2), **k),
        lambda **k: xnp.ones_like(np.ones(2), **k), lambda **k: xnp.full_like(np.ones(2), 3, **k),
        lambda **k: xnp.empty_like(np.ones(2), **k), lambda **k: xnp.einsum("i", np.ones(2), **k),
    ],
)  # fmt: skip
def test_there_is_no_memory_layout(call):
    for order in ("C", "K", "A", None):
        assert call(order=order).dtype == float
    with pytest.raises(NotImplementedError, match=r"numpy\.\w+: arrays have no memory layout of their own"):
        call(order="F")


def test_like_takes_arrays_of_this_library_and_numpys():
    for call in (xnp.zeros, xnp.arange, xnp.eye, xnp.asarray, xnp.array, xnp.identity, xnp.tri):
        assert call(2, like=xnp.ones(1)).dtype == call(2, like=np.ones(1)).dtype
        with pytest.raises(TypeError, match=rf"numpy\.({call.__name__}|eye): makes arrays of this library only"):
            call(2, like=object())


def test_positions_are_numpys():
    x = np.arange(6.0).reshape(2, 3)
    for name, args in {
        "full": ((2,), 1, int, "C"), "zeros_like": (x, int, "K", True, (3,)), "full_like": (x, 7, int, "K", True, (3,)),
        "ones": ((2,), int, "C"), "eye": (2, 3, 1, int, "C"), "sort": (x, 0, "stable"), "argsort": (x, 1, "stable"),
        "partition": (x[0], 1, -1, "introselect"), "unravel_index": (np.array([1, 5]), (2, 3), "F"),
        "histogram": (x, 3, (0, 6), True), "histogram2d": (x[0], x[1], 2, None, True), "permute_dims": (x, (1, 0)),
        "concatenate": ([x, x], 1, None), "concat": ([x, x], 1, None), "stack": ([x, x], 1, None), "copy": (x, "C"),
        "clip": (x, 1, 3), "linalg.pinv": (x, 1e-3, False), "linalg.matrix_rank": (x, 1.0, False),
        "fft.fft": (x, 4, 0, "ortho", None), "broadcast_to": (x, (2, 2, 3), False), "fft.fftfreq": (4, 2.0, None),
        "compress": ([True, False, True], x, 1, None),
    }.items():  # fmt: skip
        ours, theirs = xnp, np
        for part in name.split("."):
            ours, theirs = getattr(ours, part), getattr(theirs, part)
        got, wanted = ours(*args), theirs(*args)
        pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
        for g, w in pairs:
            assert g.dtype == w.dtype, name
            np.testing.assert_allclose(np.asarray(g), w, atol=1e-15, err_msg=name)


def test_weights_in_the_place_of_density():
    """They have it in JAX."""
    for call in (
        lambda w: xnp.histogram(np.ones(3), 2, None, w),
        lambda w: xnp.histogramdd(np.ones((3, 1)), 2, None, w),
    ):
        with pytest.raises(TypeError, match=r"density must be True or False, got .*; weights come after it"):
            call(np.ones(3))


def test_casting():
    for name in ("concatenate", "stack", "hstack", "vstack"):
        ours, theirs = getattr(xnp, name), getattr(np, name)
        pair = [np.array([1.5, 2.5]), np.array([3.5, 4.5])]
        got, wanted = ours(pair, dtype="int32", casting="unsafe"), theirs(pair, dtype="int32", casting="unsafe")
        np.testing.assert_array_equal(np.asarray(got), wanted)
        with pytest.raises(TypeError, match=rf"numpy\.{name}: can't cast f64\[2\] to int32 with casting='same_kind'"):
            ours(pair, dtype="int32")
    with pytest.raises(TypeError, match=r"numpy\.einsum: can't cast f64\[2\] to float32 with casting='safe'"):
        xnp.einsum("i,i", pair[0], pair[1], dtype="float32")


def test_axes_of_products():
    x, y = np.random.default_rng(0).normal(size=(2, 3, 4, 5)), np.random.default_rng(1).normal(size=(3, 2, 4, 5))
    for name, axes in {
        "matmul": [(0, 1), (0, 1), (-1, 0)], "vecdot": [0, 1, ()], "matvec": [(0, 1), 0, 0], "vecmat": [1, (0, 1), 1],
    }.items():  # fmt: skip
        got, wanted = getattr(xnp, name)(x, y, axes=axes), getattr(np, name)(x, y, axes=axes)
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12)
    np.testing.assert_allclose(
        np.asarray(xnp.vecdot(x, x, axis=1, keepdims=True)), np.vecdot(x, x, axis=1, keepdims=True), rtol=1e-12
    )
    with pytest.raises(ValueError, match=r"numpy\.matmul: axes must be a list"):
        xnp.matmul(x, y, axes=(0, 1))


def test_ndmax_and_copy_of_array():
    assert xnp.array([[1.0]], ndmin=3).shape == (1, 1, 1)
    with pytest.raises(ValueError, match=r"numpy\.array: at most 1 axes"):
        xnp.array([[1.0]], ndmax=1)
    with pytest.raises(ValueError, match="copy=False forbids"):
        xnp.array(np.ones(2), copy=False)
    x = xnp.ones(2)
    assert xnp.array(x, copy=False) is x


# ---- Modules within the module -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", np.emath.__all__)
def test_emath_is_complex_where_it_has_to_be(name):
    ours, theirs = getattr(xnp.emath, name), getattr(np.emath, name)
    for x in (
        np.array([0.5, 0.3]),
        np.array([-0.5, 2.0]),
        2.0,
        -3,
        np.array([1, -2]),
        np.array([-1 + 0j]),
        np.zeros(0),
    ):
        args = {"logn": (2, x), "power": (x, 3)}.get(name, (x,))
        with np.errstate(all="ignore"):
            wanted = theirs(*args)
        got = ours(*args)
        assert got.dtype == np.asarray(wanted).dtype and isinstance(got, xform.Array)
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-14)
    args = {"logn": (2, 0.5), "power": (0.5, 3)}.get(name, (0.5,))
    with pytest.raises(
        TypeError, match=rf"numpy\.emath\.{name}: argument \w must be known when the function is traced"
    ):
        xform.jit(ours)(*args)
    z = np.array([0.3 + 0.1j])
    args = {"logn": (z, z), "power": (z, z)}.get(name, (z,))
    np.testing.assert_allclose(np.asarray(xform.jit(ours)(*args)), theirs(*args), rtol=1e-14)


def test_emath_power_of_integers():
    got, wanted = xnp.emath.power([2, 4], -1), np.emath.power([2, 4], -1)
    assert got.dtype == wanted.dtype and got.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("window", "axis"), [((2, 3), (0, 1)), (2, 1), ((2, 2), (1, 1)), ((2, 3, 4), None), ((6,), (-2,)), (1, 0), (0, 0)]
)
def test_sliding_windows(window, axis):
    x = np.random.default_rng(0).normal(size=(5, 6, 4))
    wanted = np.lib.stride_tricks.sliding_window_view(x, window, axis)
    view = xnp.lib.stride_tricks.sliding_window_view
    np.testing.assert_array_equal(np.asarray(view(x, window, axis)), wanted)
    np.testing.assert_array_equal(np.asarray(xform.jit(lambda x: view(x, window, axis))(x)), wanted)


def test_sliding_windows_have_derivatives_and_errors():
    view = xnp.lib.stride_tricks.sliding_window_view
    xform.test_util.check_grads(lambda x: view(x, 3).mean(-1) ** 2, (np.arange(5.0),), order=2)
    for args, message in (((np.ones(3), 4), "don't fit"), ((np.ones((2, 2)), 1), "one axis per length")):
        with pytest.raises(ValueError, match=message):
            view(*args)
    with pytest.raises(NotImplementedError, match="writeable"):
        view(np.ones(3), 2, writeable=True)


# ---- What the rarer names do -------------------------------------------------------------------------------


def test_dtypes_have_all_their_names():
    for name in ("half", "byte", "ubyte", "short", "ushort", "intc", "uintc", "intp", "uintp", "long", "ulong",
                 "longlong", "ulonglong"):  # fmt: skip
        assert xnp.dtype(getattr(xnp, name)) == np.dtype(getattr(np, name)), name
    assert xnp.True_ and not xnp.False_ and xnp.typecodes is np.typecodes


def test_common_and_minimal_types():
    for arrays in ([np.ones(1, "f4"), np.ones(1, "f2")], [np.ones(1, "i4")], [np.ones(1, "c8"), np.ones(1)]):
        assert xnp.dtype(xnp.common_type(*arrays)) == np.common_type(*arrays)
    with pytest.raises(TypeError, match="booleans"):
        xnp.common_type(np.ones(1, bool))
    for x in (300, -1, 3.1, True, 1e50, 1j, np.ones(2, "f4"), np.int64(7)):
        assert xnp.min_scalar_type(x) == xnp.min_scalar_type(xnp.array(x) if np.ndim(x) else x) == np.min_scalar_type(x)
    with pytest.raises(TypeError, match="traced"):
        xform.jit(lambda x: xnp.zeros(2, xnp.min_scalar_type(x)))(3)


def test_real_if_close_and_fix():
    for x, tol in (
        ([2.1 + 4e-14j, 5.2 + 3e-15j], 1000),
        ([2.1 + 4e-13j, 5.2], 1000),
        ([1 + 1e-3j], 0.01),
        ([1.0], 100),
    ):
        got, wanted = xnp.real_if_close(np.array(x), tol), np.real_if_close(np.array(x), tol)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(got), wanted)
    with pytest.raises(TypeError, match=r"numpy\.real_if_close: argument a must be known"):
        xform.jit(xnp.real_if_close)(np.ones(2, complex))
    x = np.array([2.7, -2.7, -0.0, np.nan, np.inf])
    np.testing.assert_array_equal(np.asarray(xnp.fix(x)), np.trunc(x))


def test_arrays_with_conditions():
    assert xnp.asanyarray([1]).tolist() == [1] and xnp.ascontiguousarray(3.0).shape == (1,)
    x = xnp.ones((2, 3))
    assert xnp.asanyarray(x) is x and xnp.ascontiguousarray(x).shape == (2, 3)
    assert xnp.asarray_chkfinite([1, 2], float).dtype == float
    for bad in ([1.0, np.nan], [np.inf], [1j * np.inf]):
        with pytest.raises(ValueError, match="infinities or NaN"):
            xnp.asarray_chkfinite(bad)
    with pytest.raises(TypeError, match="must be known"):
        xform.jit(xnp.asarray_chkfinite)(np.ones(2))
    assert xnp.require(x, None, ["C", "A", "OWNDATA"]) is x and xnp.require(x, "f4").dtype == "f4"
    for flag in ("F", ["W"]):
        with pytest.raises(NotImplementedError, match=r"numpy\.require: arrays are immutable"):
            xnp.require(x, None, flag)


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit])
def test_copies_for_functions_that_change_arguments(transform):
    x, mask = np.arange(6.0).reshape(2, 3), np.array([[True, False, True], [True, True, False]])
    for name, args in {
        "putmask": [(x, mask, [7.0, 8.0]), (x, mask, -x), (x, mask, [])],
        "place": [(x, mask, np.array([7.0, 8.0, 9.0]))],
        "copyto": [(x, 3.0), (x, np.array([1.0, 2.0, 3.0])), (x, np.array([[4], [5]]))],
    }.items():  # fmt: skip
        for a in args:
            wanted = x.copy()
            getattr(np, name)(wanted, *a[1:])
            got = transform(lambda *a, name=name: getattr(xnp, name)(*a, inplace=False))(*map(np.asarray, a))
            np.testing.assert_array_equal(np.asarray(got), wanted)
            with pytest.raises(ValueError, match=rf"numpy\.{name}: arrays are immutable; pass inplace=False"):
                getattr(xnp, name)(*a)
    got = transform(lambda m: xnp.copyto(x, 0.0, "same_kind", m, inplace=False))(mask[0])
    np.testing.assert_array_equal(np.asarray(got), np.where(mask[0], 0.0, x))


def test_errors_of_copies():
    with pytest.raises(TypeError, match=r"numpy\.copyto: can't cast f64\[\] to int64"):
        xnp.copyto(np.arange(3), 1.5, inplace=False)
    assert xnp.copyto(np.arange(3), 1.5, "unsafe", inplace=False).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="mask must have the shape of a"):
        xnp.putmask(np.arange(3), np.ones(2, bool), 1, inplace=False)
    with pytest.raises(ValueError, match="can't be broadcast"):
        xnp.copyto(np.arange(3), np.arange(2), inplace=False)


def test_iteration():
    x = np.arange(6.0).reshape(2, 3)
    assert [(i, float(v)) for i, v in xnp.ndenumerate(x)] == list(np.ndenumerate(x))
    assert [i for i, _ in xnp.ndenumerate(3)] == [()] and list(xnp.ndindex(2, 1)) == [(0, 0), (1, 0)]
    ours, theirs = xnp.broadcast(x, x[:, :1], 2.0), np.broadcast(x, x[:, :1], 2.0)
    for name in ("shape", "ndim", "nd", "size", "numiter"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert [tuple(map(float, t)) for t in ours] == list(theirs)
    assert xform.jit(lambda x: sum(v for _, v in xnp.ndenumerate(x)) * xnp.broadcast(x, x[0]).size)(x) == 90
    with pytest.raises(ValueError, match="broadcast"):
        xnp.broadcast(np.ones(2), np.ones(3))


def test_text():
    x = np.array([1.23456, -2.0])
    options = {"precision": 2, "separator": ";", "sign": "+"}
    assert xnp.array2string(xnp.array(x), **options) == np.array2string(x, **options)
    for name in ("format_float_positional", "format_float_scientific"):
        wanted = getattr(np, name)(x[0], precision=3)
        assert getattr(xnp, name)(xnp.array(x)[0], precision=3) == getattr(xnp, name)(x[0], precision=3) == wanted
    assert xnp.base_repr(xnp.array(10), 3) == "101" and xnp.binary_repr(-3, width=4) == "1101"
    with pytest.raises(TypeError, match=r"numpy\.array2string: argument 1 must be known"):
        xform.jit(lambda x: xnp.array2string(x) and x)(x)


def test_files(tmp_path):
    x = np.array([[1.5, 2.0], [-3.0, 4.25]])
    path = tmp_path / "x.txt"
    xnp.savetxt(path, xnp.array(x), delimiter=",", header="a,b")
    got = xnp.loadtxt(path, delimiter=",")
    assert isinstance(got, xform.Array)
    np.testing.assert_array_equal(np.asarray(got), x)
    assert path.read_text().startswith("# a,b\n1.5")
    assert xnp.loadtxt(path, "f4", delimiter=",", usecols=1, like=got).dtype == "f4"
    columns = xnp.loadtxt(path, delimiter=",", unpack=True)
    np.testing.assert_array_equal(np.asarray(columns), x.T)
    path.write_text("1,,3\n4,5,6\n")
    np.testing.assert_array_equal(
        np.asarray(xnp.genfromtxt(path, delimiter=",", filling_values=-1)), [[1, -1, 3], [4, 5, 6]]
    )
    with pytest.raises(TypeError, match=r"numpy\.genfromtxt: arrays hold numbers"):
        xnp.genfromtxt(path, delimiter=",", names="a,b,c")
    xnp.savez_compressed(tmp_path / "x.npz", xnp.array(x), named=xnp.arange(2))
    with np.load(tmp_path / "x.npz") as stored:
        np.testing.assert_array_equal(stored["arr_0"], x)
        np.testing.assert_array_equal(stored["named"], [0, 1])


def test_memory_and_warnings():
    x = xnp.arange(3.0)
    assert xnp.shares_memory(x, x) and xnp.may_share_memory(x, x) and not xnp.shares_memory(x, xnp.arange(3.0))
    before = xnp.geterr()
    with xnp.errstate(divide="ignore", invalid="warn"):
        assert np.geterr()["divide"] == "ignore" and float(1 / xnp.zeros(())) == np.inf
        old = xnp.seterr(over="ignore")
        assert old["divide"] == "ignore" and np.geterr()["over"] == "ignore"
    assert xnp.geterr() == before
    for call in (
        lambda: xnp.errstate(all="raise"),
        lambda: xnp.seterr(invalid="call"),
        lambda: xnp.errstate(call=print),
    ):
        with pytest.raises(NotImplementedError, match="debug_nans"):
            call()
    assert xnp.linalg.LinAlgError is np.linalg.LinAlgError and xnp.exceptions is np.exceptions
