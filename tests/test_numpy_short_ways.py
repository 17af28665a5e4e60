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
# Arguments at which the short forms of `numpy.host_forms` end, and the values at their edges.
EDGES = [
    "np.isclose(e, e)", "np.isclose(e, e, equal_nan=True)", "np.isclose(e, 1.0)", "np.isclose(e, e[::-1])",
    "np.isclose(x, few[:1])", "np.isclose(m, x[:3], 1e-3, 0.5)", "np.isclose(s, s)", "np.allclose(e, e)",
    "np.allclose(s, s)", "np.allclose(e, e, equal_nan=True)",
    "np.select([mask], [x], 2)", "np.select([mask], [x], 2.5)", "np.select([mask, other], [x, y], True)",
    "np.select([mask, mask[:1]], [s, x])", "np.select([mask], [x, y])", "np.select((mask, other), (m[:, :1], x))",
    "np.nan_to_num(e)", "np.nan_to_num(e, nan=7.0)", "np.nan_to_num(e, True, np.inf)", "np.nan_to_num(e, posinf=3.0)",
    "np.nan_to_num(e, nan=1)", "np.nan_to_num(s)",
    *(f"np.expand_dims(m, {axis})" for axis in (-3, -1, 0, 2, 3, -4, (0, 2), True)), "np.expand_dims(s, 0)",
    *(f"np.moveaxis(t, {a}, {b})" for a, b in ((0, -1), (-1, 0), (1, 1), (0, 3), (-4, 0), ((0, 1), (1, 2)))),
    *(f"np.roll(x, {n})" for n in (0, -1, 7, -12, True)), "np.roll(m, 2)", "np.roll(m, 1, 0)", "np.roll(m, 1, -1)",
    "np.roll(x, 1, 0)", "np.roll(x, 1, -1)", "np.roll(x, 1, 1)", "np.roll(s, 1)", "np.roll(x, 1.5)",
    "np.broadcast_to(m, (2, 3, 3))", "np.broadcast_to(m[:, :1], (3, 4))", "np.broadcast_to(m, (9,))",
    "np.broadcast_to(x[None], (5,))", "np.broadcast_to(s, (2, 2))", "np.broadcast_to(s, ())", "np.broadcast_to(x, 5)",
    "np.broadcast_to(x, (3000, 5))", "np.broadcast_to(x[:1], (0,))", "np.broadcast_to(x, (-1, 5))",
    "np.split(x, 5)", "np.split(x, 2)", "np.split(x, 0)", "np.split(x, -5)", "np.split(m, 3, 1)", "np.split(m, 3)",
    "np.split(x, [-2, 9])", "np.split(x, [3, 1])", "np.split(x, ())", "np.split(s, 1)", "np.split(x, [1.5])",
    "np.take_along_axis(x, i, -1)", "np.take_along_axis(x, i, None)", "np.take_along_axis(x, i + 5, 0)",
    "np.take_along_axis(x, -i - 1, 0)", "np.take_along_axis(m, m.argsort(0), 0)", "np.take_along_axis(m, i, 0)",
    "np.take(m, i[:2] % 3, 1)", "np.take(x, 9)", "np.take(x, -1)", "np.take(s, 0)", "np.take(m, 1.5)",
    "np.diff(x, 1.0)", "np.diff(x, 0)", "np.diff(m)", "np.diff(x[:1])", "np.diff(mask)", "np.diff(s)",
    "np.diff(x, axis=1)",
    *(f"np.{name}(t, {k})" for name in ("tril", "triu") for k in (-2, 0, 1, 5)), "np.tril(m[:2])", "np.tril(x)",
    "np.tril(m, 0.5)", "np.triu(s)",
    "np.pad(m, 2)", "np.pad(x, 0)", "np.pad(x, -1)", "np.pad(s, 1)", "np.pad(x, True)", "np.pad(x, (2, 1))",
    "np.pad(x, 1, constant_values=2.0)", "np.pad(m, 1, 'wrap')",
    "np.linspace(0, 1, 1)", "np.linspace(0, 1, 0)", "np.linspace(0, 1, -1)", "np.linspace(2, 2, 4)",
    "np.linspace(0.0, 5e-324, 4)", "np.linspace(1, 3, 4, False)", "np.linspace(0, np.inf, 3)",
    "np.linspace(True, 3, 3)",
    "np.linspace(1j, 3, 3)", "np.linspace(0, 10**400, 3)", "np.linspace(0.1, 0.9, 7)", "np.linspace(0, 1, 3, axis=1)",
    "np.median(e)", "np.median(t, 0)", "np.median(t, -2)", "np.median(t, 2)", "np.median(t, 3)", "np.median(s)",
    "np.median(t, (0, 1))", "np.median(x[:1])", "np.median(x[:4])", "np.median(m, 0, keepdims=True)",
    "np.kron(m, x)", "np.kron(t, m)", "np.kron(s, m)", "np.kron(m, s)", "np.kron(s, s)",
    "np.outer(m, x)", "np.outer(s, x)", "np.outer(s, s)",
    "np.tensordot(m, m)", "np.tensordot(t, m, 1)", "np.tensordot(x, few, 0)", "np.tensordot(m, x, 1)",
    "np.tensordot(m, m, -1)", "np.tensordot(m, m, 3)", "np.tensordot(m, m, ([0], [1]))", "np.tensordot(s, s, 0)",
    "np.polyval(few, m)", "np.polyval(few, e)", "np.polyval(few[:1], x)", "np.polyval(m, few)", "np.polyval(s, x)",
    "np.polyval(few, s)", "np.linalg.cholesky(m[:2])", "np.linalg.cholesky(x[None])", "np.linalg.eigh(t)",
    "np.linalg.eigvalsh(x)", "np.squeeze(row, 1)", "np.squeeze(s)", "np.ravel(m.T)", "np.ravel(s)",
    "np.transpose(t, (1, 0))",
    "np.swapaxes(m, 0, 2)", "np.repeat(m, 2, 1)", "np.repeat(s, 3)", "np.repeat(x, -1)", "np.repeat(x, 1.5)",
    "np.cumsum(t, 1)", "np.cumsum(t)", "np.cumsum(s)", "np.trace(t, 1)", "np.diagonal(t, -1, 1, 2)", "np.nonzero(s)",
    "np.searchsorted(ordered, x, side='right')", "np.searchsorted(ordered, x, 'middle')", "np.searchsorted(m, x)",
    "np.round(x, -1)", "np.round(s, 1)", "np.meshgrid(few, s, x)", "np.meshgrid(few, x, indexing='ij', sparse=True)",
    "np.average(m, 0, few)", "np.average(x, weights=x * 0)", "np.array(s)", "np.asarray(s)",
    "np.isclose(x[:0], x[:0])", "np.median(x[:0])", "np.kron(x[:0], x)", "np.roll(x[:0], 1)",
    "np.tensordot(x[:0], x[:0], 1)",
    "np.pad(x[:0], 1)", "np.diff(x[:0])", "np.split(x[:0], 1)", "np.nan_to_num(x[:0])",
    "np.select([mask[:0]], [x[:0]])",
    "np.outer(x[::-2], m.T)", "np.kron(x[::2], m.T)", "np.tensordot(m.T, t[::-1], 1)", "np.median(m.T, 0)",
]  # fmt: skip
GENERAL = types.SimpleNamespace(fast=False, fast_by_types=False, enable_x64=True)


def arrays(dtype):
    """The benchmark's arrays, those of floats converted to a dtype."""
    found = namespace(xnp, 5)
    for name, value in found.items():
        if isinstance(value, ArrayImpl) and value.dtype == np.float64:
            host = np.asarray(value)
            found[name] = xnp.array((host if dtype.kind in "fc" else np.round(host * 3)).astype(dtype))
    special = np.array([1, -0.0, np.nan, np.inf, -np.inf])
    found["e"] = xnp.array((special if dtype.kind in "fcV" else np.arange(5)).astype(dtype))
    found["t"], found["s"] = xnp.stack([found["m"], 2 * found["m"].T]).astype(dtype), found["x"][1]
    return found


def results(call, space):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        try:
            return xform.tree.flatten(eval(call, space))
        except (ValueError, TypeError, IndexError, OverflowError, ZeroDivisionError) as error:
            return type(error), str(error)


@pytest.mark.parametrize("dtype", "dfFDlib?BheL")
def test_short_ways_are_the_general_ways(dtype, monkeypatch):
    space = arrays(np.dtype(dtype))
    tolerance = {"f": 1e-5, "F": 1e-5, "e": 1e-2}.get(dtype, 1e-11)
    for call in CALLS + EDGES:
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


@pytest.mark.parametrize("dtype", "dFl?Be")
def test_ndarrays_take_the_place_of_arrays(dtype):
    """Also where the result is a view of its argument in NumPy; and it shares no memory that users may write to."""
    space = arrays(np.dtype(dtype))
    theirs = {k: np.array(v) if isinstance(v, ArrayImpl) else v for k, v in space.items()}
    for call in CALLS + EDGES:
        if "few" in call or "[" in call or "m.T" in call or "* " in call:  # methods and operators of ndarrays
            continue
        ours, structure = results(call, space)
        got, found = results(call, theirs)
        assert found == structure, call
        if isinstance(ours, type):
            continue
        for a, b in zip(got, ours, strict=True):
            if isinstance(b, ArrayImpl):
                assert a.aval == b.aval, call
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=call)
                assert not any(np.may_share_memory(a, x) for x in theirs.values() if isinstance(x, np.ndarray)), call


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


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_large_arrays(dtype):
    """Where short forms do something else to save memory traffic."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 300, 300)).astype(dtype)
    if a.dtype.kind == "c":
        a = a + np.complex64(1j) * a[:, ::-1]
    hermitian = a @ a.conj().swapaxes(-1, -2) + 300 * np.eye(300, dtype=dtype)
    skewed = hermitian + np.triu(np.ones_like(a), 1) - np.tril(np.ones_like(a), -1)  # whose Hermitian part is that
    np.testing.assert_allclose(xnp.linalg.cholesky(skewed), np.linalg.cholesky(hermitian), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(xnp.linalg.eigvalsh(skewed), np.linalg.eigvalsh(hermitian), rtol=1e-3)
    for function in ("tril", "triu"):
        np.testing.assert_array_equal(getattr(xnp, function)(a, -2), getattr(np, function)(a, -2))
    np.testing.assert_array_equal(xnp.broadcast_to(a[0], (2, 300, 300)), np.broadcast_to(a[0], (2, 300, 300)))
    x = a.real.ravel()
    x[::7], x[1::9], x[3::11] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(xnp.nan_to_num(x), np.nan_to_num(x))
    np.testing.assert_array_equal(xnp.isclose(x, x[::-1], equal_nan=True), np.isclose(x, x[::-1], equal_nan=True))
    np.testing.assert_array_equal(xnp.pad(x.reshape(600, -1), 3), np.pad(x.reshape(600, -1), 3))


def test_what_is_lent_is_read_only_while_it_is_used():
    """Results of short ways are the arrays' own; of ndarrays in another byte order or of a subclass, too."""
    a = np.arange(6.0).reshape(2, 3)
    got = [xnp.squeeze(a[None]), *xnp.split(a, 2), xnp.broadcast_to(a, (1, 2, 3)), xnp.diagonal(a), xnp.sum(a, ()),
           xnp.where(np.ones((2, 3), bool), a, a), xnp.vstack([a]), xnp.atleast_2d(a), xnp.real(a)]  # fmt: skip
    before = [np.array(v) for v in got]
    a[:] = -1
    for value, expected in zip(got, before, strict=True):
        np.testing.assert_array_equal(value, expected)
    assert a.flags.writeable
    swapped = np.arange(3.0).astype(">f8")
    assert xnp.dot(swapped, xnp.ones(3)) == 3 and xnp.sort(swapped).dtype == np.dtype("float64")
    with xform.enable_x64(False):
        narrow = xnp.ones(3)
        assert {xnp.dot(np.ones(3), narrow).dtype, xnp.sum(np.ones(3)).dtype, xnp.sort(np.ones(3)).dtype} == {
            np.dtype("float32")
        }
