"""Where NumPy's own function does the work at once, the result is that of the general way: values, dtype, weak type."""

import types
import warnings

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from benchmarks.numpy import ONLY_SMALL, STATEMENTS, namespace
from xform.core.array import ArrayImpl
from xform.numpy import fast

# Beside the calls of the benchmark; `x`, `y`, `m`, `k` ... are the arrays of its namespace.
CALLS = [
    *STATEMENTS,
    *ONLY_SMALL,
    *(f"np.{name}(m, axis=0)" for name in (
        "cumsum", "cumprod", "sort", "argsort", "median", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin", "nansum",
        "nanprod", "nanmedian", "nancumsum", "count_nonzero", "mean", "std",
    )),
    *(f"np.{name}(m, keepdims=True)" for name in ("mean", "nansum", "nanmean", "nanmax", "median", "count_nonzero")),
    *(f"np.{name}(x, 0.3)" for name in ("quantile", "percentile", "nanquantile")),
    "np.quantile(x, few)", "np.quantile(m, 0.3, axis=1, keepdims=True, method='hazen')", "np.nanvar(m, ddof=1)",
    "np.sort(m, None)", "np.lexsort([x, y])", "np.partition(x, 2)", "np.searchsorted(ordered, x, 'right')",
    "np.digitize(x, ordered)", "np.nonzero(m)", "np.flatnonzero(mask)", "np.argwhere(m)", "np.extract(mask, x)",
    "np.compress(mask, x)", "np.choose(k // 8, [x, y])", "np.unravel_index(k, (5, 2))",
    "np.unpackbits(np.packbits(mask))",
    "np.unique(k, return_index=True, return_inverse=True, return_counts=True)", "np.isin(k, i)", "np.union1d(k, i)",
    "np.intersect1d(k, i, return_indices=True)", "np.setdiff1d(k, i)", "np.setxor1d(k, i)", "np.bincount(k, x, 12)",
    "np.histogram2d(x, y)", "np.histogram_bin_edges(x, 4)", "np.histogram(x, 3, density=True)", "np.ediff1d(x)",
    "np.gradient(x)", "np.gradient(m)", "np.gradient(x, 2.0, edge_order=2)", "np.trapezoid(x)", "np.trapezoid(x, y)",
    "np.unwrap(x * 9)", "np.interp(0.5, ordered, x)", "np.interp(y, ordered, x, left=1.0, right=2)",
    "np.convolve(x, few)", "np.correlate(x, few, 'same')", "np.polyval(few, 0.5)", "np.diff(m, 2, 0)",
    "np.linalg.slogdet(m)", "np.linalg.qr(m)", "np.linalg.qr(m, 'r')", "np.linalg.eigvalsh(m)", "np.linalg.svd(m[:2])",
    "np.linalg.svd(m, compute_uv=False)", "np.linalg.cond(m)", "np.linalg.matrix_rank(m)", "np.linalg.lstsq(m, few)",
    "np.linalg.lstsq(m[:2], m[:2])", "np.linalg.multi_dot([m, m, few])", "np.linalg.norm(m, 1)",
    "np.linalg.norm(m, axis=0, keepdims=True)", "np.linalg.solve(m, few)",
    *(f"np.fft.{name}(x)" for name in ("ifft", "irfft", "hfft", "ihfft", "fftshift", "ifftshift")),
    *(f"np.fft.{name}(m)" for name in ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn")),
    "np.fft.fft(x, 8, norm='ortho')", "np.fft.fftfreq(5, 0.1)", "np.fft.rfftfreq(5)", "np.clip(x, None, 0.5)",
    "np.round(x, 2)", "np.divmod(x, y)", "np.modf(x * 3)", "np.angle(z)", "np.imag(z)", "np.sinc(x)",
    "np.array_equal(x, y)", "np.rollaxis(m, 1)", "np.fliplr(m)", "np.flipud(m)", "np.rot90(m)", "np.hsplit(x, [1])",
    "np.vsplit(m, 3)", "np.array_split(x, 2)", "np.atleast_2d(x)", "np.atleast_3d(x)", "np.hstack([x, y])",
    "np.dstack([x, y])", "np.column_stack([x, y])", "np.delete(x, 1)", "np.insert(x, 1, 2.0)", "np.triu(m, 1)",
    "np.vander(x, 3)", "np.logspace(0.0, 1.0, 5)", "np.geomspace(1, 8, 4)", "np.linspace(0, 1, 5, retstep=True)",
    "np.ones_like(x)", "np.empty_like(x)", "np.inner(x, y)", "np.cross(few, few)", "np.einsum('ij,jk->ik', m, m)",
    "np.pad(m, ((1, 0), (0, 2)), 'edge')", "np.pad(x, 2, mode='linear_ramp', end_values=3.0)",
]  # fmt: skip
GENERAL = types.SimpleNamespace(fast=False, fast_by_types=False, enable_x64=True)


def arrays(dtype):
    """The benchmark's arrays, those of floats converted to a dtype."""
    found = namespace(xnp, 5)
    for name, value in found.items():
        if isinstance(value, ArrayImpl) and value.dtype == np.float64:
            host = np.asarray(value)
            found[name] = xnp.array((host if dtype.kind in "fc" else np.round(host * 3)).astype(dtype))
    return found


def results(call, space):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        try:
            return xform.tree.flatten(eval(call, space))
        except (ValueError, TypeError, IndexError) as error:
            return type(error), str(error)


@pytest.mark.parametrize("dtype", "dfFDlib?BheL")
def test_short_ways_are_the_general_ways(dtype, monkeypatch):
    space = arrays(np.dtype(dtype))
    tolerance = {"f": 1e-5, "F": 1e-5, "e": 1e-2}.get(dtype, 1e-11)
    for call in CALLS:
        short, structure = results(call, space)
        with monkeypatch.context() as patch:
            patch.setattr(fast, "state", GENERAL)
            general, expected = results(call, space)
        assert structure == expected, call
        if isinstance(short, type):
            continue
        for got, want in zip(short, general, strict=True):
            if not isinstance(want, ArrayImpl):
                assert got == want, call
                continue
            assert got.aval == want.aval, call
            assert (got.ndim == 0) == isinstance(got._host, np.generic) or type(want._host) is type(got._host), call
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), tolerance, tolerance, err_msg=call)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("np.linalg.inv(np.zeros((2, 2)))", [[np.nan] * 2] * 2),  # NumPy raises LinAlgError
        ("np.linalg.cholesky(np.array([[4.0, 8.0], [0.0, 5.0]]))", [[2, 0], [2, 1]]),  # NumPy reads one triangle
        ("np.nanmax(np.array([np.nan, np.nan]))", np.nan),  # NumPy warns
        ("np.nanmean(np.array([np.nan, 3.0, 5.0]))", 4),
        ("np.nancumsum(np.array([1.0, np.nan, 2.0]))", [1, 1, 3]),
        ("np.median(np.array([1.0, np.nan]))", np.nan),
        ("np.quantile(np.array([1.0, np.inf, np.inf]), 0.75)", np.inf),  # NumPy: NaN
        ("np.sort(np.array([0.0, -0.0, -1.0]))", [-1, -0.0, 0]),
        ("np.pad(np.ones(1), 1, 'empty')", [0, 1, 0]),  # NumPy's is not initialised
        ("np.mean(np.zeros((0, 2)), 0)", [np.nan] * 2),  # NumPy warns
    ],
)
def test_what_differs_from_numpy_goes_the_general_way(call, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = np.asarray(eval(call, {"np": xnp}))
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected) | np.isnan(got) & np.signbit(got))


def test_results_share_no_memory_with_arguments_of_the_user():
    a = np.arange(6.0).reshape(2, 3)
    views = [f(a) for f in (xnp.transpose, xnp.ravel, xnp.real, xnp.flip, xnp.squeeze, xnp.diagonal, xnp.atleast_3d)]
    before = [np.array(v) for v in views]
    a[:] = -1
    for view, value in zip(views, before, strict=True):
        np.testing.assert_array_equal(view, value)


def test_weak_types_and_arrays_of_other_dtypes_go_the_general_way():
    weak = xform.vmap(lambda _: 1.0)(np.zeros(3))
    assert xnp.flip(weak).weak_type == weak.weak_type
    assert xnp.append(xnp.ones(2, "float32"), xnp.ones(2, "int64")).dtype == np.float32  # NumPy: float64
    assert xnp.full(2, 1).dtype == np.int64
    with pytest.raises(TypeError):
        xnp.full(2, "text")
