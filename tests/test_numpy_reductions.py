"""Reductions of `xform.numpy` against NumPy: over axes, with dtype, keepdims, initial, where; NaN, narrow dtypes."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.numpy_cases import Case, by_name, check, compare

RNG = np.random.default_rng(0)
F = RNG.uniform(-2, 2, (3, 4, 2))
N = np.where(RNG.random((3, 4, 2)) < 0.3, np.nan, F)
N[1] = np.nan
K = RNG.integers(-5, 6, (3, 4))
B = F > 0.5
C = F + 1j * F[::-1]
MASK = RNG.random((3, 4, 2)) < 0.6
EMPTY = np.zeros((0, 3))
ARRAYS = [F, K, C, K.astype("i1"), np.abs(K).astype("u2"), B, EMPTY, np.float64(2.5), F[:, ::2].T, F.astype("f")]
AXES = [{}, {"axis": 0}, {"axis": -1, "keepdims": True}, {"axis": (0, 1)}, {"axis": ()}]


def cases_over_axes(name, arrays, **more):
    for a in arrays:
        for kwargs in AXES:
            axis = kwargs.get("axis", 0)
            if np.ndim(a) >= (len(axis) if isinstance(axis, tuple) else 1) or not kwargs:
                tolerance = 1e-5 if np.asarray(a).dtype == "f" else 1e-12
                yield Case(name, (np.asarray(a),), {**kwargs, **more}, tolerance=tolerance)


NONEMPTY = [a for a in ARRAYS if a is not EMPTY]
CASES = [
    *(c for name in ("sum", "prod", "any", "all") for c in cases_over_axes(name, ARRAYS)),
    *(c for name in ("max", "min", "amax", "amin") for c in cases_over_axes(name, NONEMPTY)),
    *(c for name in ("mean", "std", "var") for c in cases_over_axes(name, ARRAYS[:7] + ARRAYS[8:])),
    *(c for name in ("nansum", "nanprod", "nanmean", "nanstd", "nanvar", "nanmax", "nanmin")
        for c in cases_over_axes(name, [N, K])),
    *(Case(n, (a,), k) for n in ("argmax", "argmin") for a in (F, K, B, N)
        for k in ({}, {"axis": 1}, {"axis": -1, "keepdims": True})),
    *(Case(n, (a,), k) for n in ("cumsum", "cumprod") for a in (F, K, C, B, K.astype("i1"), EMPTY)
        for k in ({}, {"axis": 1})),
    *(Case(n, (a,), k) for n in ("nancumsum", "nancumprod") for a in (N, K) for k in ({}, {"axis": 0})),
    *(Case(n, (F,), {"axis": 1, "include_initial": True}) for n in ("cumulative_sum", "cumulative_prod")),
    Case("cumulative_sum", (F[0, 0],), dtype=None),
    Case("sum", (F,), {"dtype": "float32", "axis": 1}, tolerance=1e-5),
    Case("sum", (K,), {"dtype": "complex128"}),
    Case("sum", (F,), {"initial": 3.0, "where": MASK, "axis": 2}),
    Case("prod", (F,), {"initial": 3.0, "where": MASK[:, :, :1], "keepdims": True}),
    Case("max", (F,), {"initial": -9.0, "where": MASK, "axis": 1}),
    Case("min", (K,), {"initial": 9, "where": MASK[..., 0]}),
    Case("max", (EMPTY,), {"initial": 2.0, "axis": 0}),
    Case("max", (N,)),
    Case("any", (B,), {"where": MASK, "axis": 0}),
    Case("all", (F,), {"where": MASK, "axis": 0}),
    Case("mean", (F,), {"where": MASK, "axis": 0}),
    Case("mean", (K,), {"dtype": "float32"}, tolerance=1e-6),
    Case("mean", (np.full(5000, 60000.0, "float16"),), tolerance=1e-3),
    Case("var", (F,), {"ddof": 1, "axis": 1, "where": MASK}),
    Case("std", (F,), {"correction": 1.5, "axis": 1}),
    Case("var", (F,), {"axis": 1, "mean": F.mean(1, keepdims=True)}),
    Case("var", (F[:1],), {"axis": 0, "ddof": 2}),
    Case("nanvar", (N,), {"axis": 0, "ddof": 1}),
    Case("nansum", (N,), {"where": MASK, "initial": 2.0}),
    Case("nanmean", (N,), {"where": MASK, "axis": 1}),
    Case("count_nonzero", (K,)),
    Case("count_nonzero", (F,), {"axis": (0, 2), "keepdims": True}),
    Case("ptp", (F,), {"axis": 1}),
    Case("ptp", (K,)),
    Case("average", (F,), {"axis": 1}),
    Case("average", (F, 1), {"weights": np.arange(1.0, 5), "returned": True}),
    Case("average", (K,), {"weights": np.abs(K) + 1}),
    Case("average", (F,), {"axis": (2, 0), "weights": np.arange(1.0, 7).reshape(2, 3), "keepdims": True}),
    Case("minmax", (F,), {"axis": 1}, reference=lambda a, axis: (a.min(axis), a.max(axis))),
]  # fmt: skip


@by_name(CASES)
def test_against_numpy(cases, mode):
    check(cases, mode)


def test_places_without_nan():
    rows = np.where(np.arange(12).reshape(3, 4) % 5 == 0, np.nan, np.cos(np.arange(12.0)).reshape(3, 4))
    for name in ("nanargmax", "nanargmin"):
        compare(getattr(xnp, name)(xnp.array(rows)), getattr(np, name)(rows))
        compare(getattr(xnp, name)(xnp.array(rows), 1), getattr(np, name)(rows, 1))
        assert xform.jit(getattr(xnp, name))(xnp.array([np.nan, np.nan])) == -1


def test_methods_are_the_functions():
    x = xnp.array(F)
    for name in ("sum", "prod", "max", "min", "mean", "std", "var", "any", "all", "argmax", "argmin", "cumsum", "ptp"):
        np.testing.assert_array_equal(np.asarray(getattr(x, name)()), np.asarray(getattr(xnp, name)(x)))
    assert x.sum(axis=1, keepdims=True).shape == (3, 1, 2)
    assert x.mean((0, 1)).shape == (2,)


def test_lists_and_scalars():
    assert float(xnp.sum([1, 2.5])) == 3.5 and float(xnp.mean((1, 2))) == 1.5 and int(xnp.max(3)) == 3
    assert float(xform.jit(lambda x: xnp.sum([x, 2.0]))(1.0)) == 3


def test_weak_types_become_strong():
    assert not xnp.sum(2.0).weak_type and not xnp.max(xnp.asarray(1)).weak_type


def test_sums_of_narrow_types_are_wide():
    x = xnp.array([100, 100, 100], "int8")
    assert int(x.sum()) == 300 and int(xform.jit(xnp.sum)(x)) == 300
    assert xnp.sum(x, promote_integers=False).dtype == np.int8
    assert int(x.astype("uint8").sum()) == 300 and x.astype("uint8").sum().dtype == np.uint64
    assert float(xnp.full(4000, 1.0, "float16").sum()) == 4000


@pytest.mark.parametrize("name", ["mean", "std", "var", "nanstd", "nanmean", "max", "prod", "average"])
def test_derivatives_against_differences(name):
    from xform.test_util import check_grads

    x = np.array([[0.3, -1.2, 0.7], [1.5, 0.2, -0.4]])
    check_grads(lambda v: getattr(xnp, name)(v, axis=1), (x,), order=2, modes=("fwd", "rev"))


def test_derivatives_do_not_see_nan():
    x = xnp.array([1.0, np.nan, 3.0])
    for name, want in (
        ("nansum", [1, 0, 1]),
        ("nanmean", [0.5, 0, 0.5]),
        ("nanvar", [-1, 0, 1]),
        ("nanmax", [0, 0, 1]),
    ):
        np.testing.assert_allclose(np.asarray(xform.grad(getattr(xnp, name))(x)), want)


def test_vmap_over_any_axis():
    x = xnp.array(F)
    for name in ("sum", "max", "argmax", "mean", "std", "any"):
        f = getattr(xnp, name)
        got = xform.vmap(lambda v: f(v, axis=0), in_axes=2, out_axes=1)(x)  # noqa: B023
        np.testing.assert_allclose(np.asarray(got), np.asarray(f(x, axis=0)), rtol=1e-14)


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: xnp.sum(x, axis=2),
            np.exceptions.AxisError,
            r"numpy\.sum: axis 2 is out of bounds for array of dimension 2",
        ),
        (lambda x: xnp.max(x, axis=(0, 0)), ValueError, r"numpy\.max: repeated axis in axis=\(0, 0\)"),
        (lambda x: xnp.mean(x, axis="a"), TypeError, r"numpy\.mean: axis must be an integer"),
        (lambda x: xnp.max(x[:0]), ValueError, r"numpy\.max: zero-size array .* f64\[0,3\]; give initial"),
        (lambda x: xnp.argmin(x[:0], 0), ValueError, r"numpy\.argmin: attempt to get argmin of an empty seq"),
        (lambda x: xnp.min(x, where=x > 0), ValueError, r"numpy\.min: .*specify .initial"),
        (lambda x: xnp.sum(x, where=x), TypeError, r"numpy\.sum: where must be boolean, got f64\[2,3\]"),
        (
            lambda x: xnp.sum(x, where=xnp.ones(2, bool)),
            ValueError,
            r"numpy\.sum: operands could not be broadcast together with shapes bool\[2\], f64\[2,3\]",
        ),
        (lambda x: xnp.sum(x, out=x), NotImplementedError, r"numpy\.sum: arrays are immutable"),
        (lambda x: xnp.sum(x, dtype="text"), TypeError, r"numpy\.sum: 'text' is not a dtype"),
        (lambda x: xnp.var(x, ddof=1, correction=1), ValueError, "ddof=1 and correction=1 are one argument"),
        (lambda x: xnp.average(x, weights=x[0]), ValueError, r"numpy\.average: axis must be specified"),
        (lambda x: xnp.cumulative_sum(x), ValueError, r"numpy\.cumulative_sum: axis must be given"),
        (lambda x: xnp.sum("a"), TypeError, r"numpy\.sum: argument a must be an array"),
    ],
)
def test_errors(call, error, message, transform):
    with pytest.raises(error, match=message):
        transform(call)(xnp.ones((2, 3)))
