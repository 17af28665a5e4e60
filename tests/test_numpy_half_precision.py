"""Functions of `xform.numpy` on float16 and bfloat16: the dtype stays, and the values are those of float64, rounded."""

import ml_dtypes
import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform.core import tree

DTYPES = pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
X = np.array([[0.5, -1.25, 3.0, 0.125], [2.0, 0.75, -0.5, 1.5], [-3.0, 1.0, 0.25, -1.0]])
WITH_NAN = np.where(X == 0.75, np.nan, X)
UNARY = (
    "abs arcsinh arctan cbrt ceil cos cosh deg2rad degrees exp exp2 expm1 fabs floor isfinite isnan negative positive "
    "rint sign signbit sin sinc sinh square tan tanh trunc spacing nan_to_num round conjugate real reciprocal"
)
BINARY = "add subtract multiply divide maximum minimum fmax fmin arctan2 hypot copysign heaviside logaddexp fmod"
REDUCTIONS = "sum prod max min mean var std ptp median any all argmax argmin cumsum cumprod count_nonzero average"


def close(got, want, dtype, places):
    """Within a few units in the last place of the narrow dtype."""
    for g, w in zip(tree.leaves(got), tree.leaves(want), strict=True):
        w = np.asarray(w)
        assert g.shape == w.shape and g.dtype == (dtype if w.dtype.kind == "f" else w.dtype)
        eps = float(ml_dtypes.finfo(dtype).eps)
        g = np.asarray(g).astype(np.float64)
        np.testing.assert_allclose(g, w.astype(np.float64), rtol=places * eps, atol=places * eps)


@DTYPES
@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("names", [UNARY, BINARY, REDUCTIONS], ids=["unary", "binary", "reductions"])
def test_dtype_stays(names, transform, dtype):
    x = xnp.array(X, dtype)
    y = xnp.array(X[::-1].copy(), dtype)
    for name in names.split():
        args = (x, y) if names is BINARY else (x,)
        want = getattr(np, name)(*(np.asarray(a).astype(np.float64) for a in args))
        if name == "spacing":
            want = np.asarray(want) * float(ml_dtypes.finfo(dtype).eps) / np.finfo(float).eps
        close(transform(lambda *a, name=name: getattr(xnp, name)(*a))(*args), want, dtype, 4)


@DTYPES
def test_more_arguments(dtype):
    x, w = xnp.array(X, dtype), xnp.array(WITH_NAN, dtype)
    for name, ours, theirs in [
        ("quantile", (x, 0.25, 1), (X, 0.25, 1)), ("percentile", (x, 30, 0), (X, 30, 0)),
        ("nanmedian", (w,), (WITH_NAN,)),
        ("nansum", (w, 0), (WITH_NAN, 0)), ("nanmean", (w, 1), (WITH_NAN, 1)), ("nanvar", (w, 1), (WITH_NAN, 1)),
        ("nanmax", (w, 0), (WITH_NAN, 0)), ("sort", (x, 0), (X, 0)), ("argsort", (x, 1), (X, 1)),
        ("unique", (x,), (X,)),
        ("clip", (x, -1, 1), (X, -1, 1)), ("where", (x > 0, x, -x), (X > 0, X, -X)), ("cov", (x,), (X,)),
        ("searchsorted", (xnp.sort(x[0]), x), (np.sort(X[0]), X)), ("ldexp", (x, 2), (X, 2)),
        ("modf", (x,), (X,)),
    ]:  # fmt: skip
        close(getattr(xnp, name)(*ours), getattr(np, name)(*theirs), dtype, 8)


@DTYPES
def test_sums_are_accumulated_in_float32(dtype):
    ones = xnp.ones(5000, dtype)
    np.testing.assert_allclose(float(xnp.sum(ones)), 5000, rtol=float(ml_dtypes.finfo(dtype).eps))
    assert xnp.mean(ones) == 1 and xnp.var(ones) == 0 and xnp.sum(ones).dtype == dtype
    assert xnp.sum(ones, dtype=np.float32) == 5000
