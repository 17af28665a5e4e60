"""Quantiles, histograms, covariance against NumPy."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.numpy_cases import Case, by_name, check, compare

RNG = np.random.default_rng(0)
F = RNG.normal(size=(3, 4, 5))
N = np.where(RNG.random((3, 4, 5)) < 0.3, np.nan, F)
N[:, 0, 0] = np.nan
K = RNG.integers(0, 9, (4, 6))
D = RNG.normal(size=50)
METHODS = ["linear", "lower", "higher", "midpoint", "nearest",
           "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
           "weibull", "median_unbiased", "normal_unbiased"]  # fmt: skip
Q = np.array([0.0, 0.1, 0.25, 0.5, 0.63, 0.75, 1.0])

CASES = [
    *(Case("quantile", (a, Q), {"method": m, "axis": -1}, fixed=(1,), dtype=float) for m in METHODS
        for a in (F[:, :, :4], F, K)),
    *(Case("nanquantile", (N, Q), {"method": m, "axis": 0}) for m in ("linear", "lower", "nearest", "hazen")),
    Case("quantile", (F, 0.3)), Case("quantile", (F, Q), {"axis": (0, 2), "keepdims": True}),
    Case("quantile", (F, np.array([[0.2], [0.9]])), {"axis": 1}), Case("quantile", (N, 0.3), {"axis": 0}),
    Case("quantile", (F, Q), {"axis": 0, "weights": np.abs(F), "method": "inverted_cdf"}),
    Case("quantile", (D, Q), {"weights": np.arange(50.0), "method": "inverted_cdf", "axis": 0}),
    Case("quantile", (F[..., :1], 0.3), {"axis": -1}),
    Case("quantile", (np.array([1.0, np.inf, -np.inf, 3.0]), np.array([0.2, 0.5]))),
    Case("percentile", (F, 30), {"axis": 1}), Case("percentile", (D, np.array([5.0, 95.0]))),
    Case("nanpercentile", (N, 40), {"axis": 1}),
    Case("nanpercentile", (N, np.array([10.0, 50.0])), {"axis": (0, 1), "keepdims": True}),
    *(Case(n, (a,), k) for n in ("median", "nanmedian") for a in (F, F[:2], K, N)
        for k in ({}, {"axis": 0}, {"axis": (0, 1), "keepdims": True}) if not (a is K and k.get("keepdims"))),
    *(Case("histogram", (a,), k) for a in (D, K)
        for k in ({}, {"bins": 4}, {"range": (-1, 1)}, {"bins": 5, "range": (-9, 9), "density": True})),
    Case("histogram", (D, np.array([-1.0, 0.0, 0.5, 3.0]))),
    Case("histogram", (D,), {"weights": np.abs(D), "bins": 3}), Case("histogram", (np.ones(3),)),
    Case("histogram", (np.array([0.0, 1, 2, 3]), 3)), Case("histogram", (D[:0],)),
    Case("histogram", (D, "auto"), jit=False), Case("histogram_bin_edges", (D, 4)),
    Case("histogram_bin_edges", (D, "fd"), jit=False), Case("histogram_bin_edges", (K,), {"range": (0, 3)}),
    Case("histogram2d", (D, D[::-1].copy(), 4)), Case("histogram2d", (D, D * 2), {"bins": (3, 2), "density": True}),
    Case("histogram2d", (D, D, np.array([-1.0, 0.0, 1.0]))),
    Case("histogram2d", (D, D * D), {"range": ((-1, 1), (0, 1)), "weights": D * D}),
    Case("histogramdd", (D.reshape(25, 2), 3)),
    Case("histogramdd", (D[:48].reshape(16, 3), (2, 3, 2)), {"density": True}),
    Case("cov", (F[0],)), Case("cov", (D,)), Case("cov", (F[0],), {"rowvar": False, "ddof": 0}),
    Case("cov", (F[0], F[1]), {"bias": True}), Case("cov", (D, D * D)), Case("cov", (K,)),
    Case("cov", (F[0],), {"fweights": np.array([1, 2, 0, 3, 1])}),
    Case("cov", (F[0],), {"aweights": np.arange(1.0, 6)}),
    Case("cov", (F[0],), {"aweights": np.arange(1.0, 6), "fweights": np.array([1, 2, 1, 3, 1]), "ddof": 1}),
    Case("cov", (F[0] + 1j * F[1],)), Case("corrcoef", (F[0],)), Case("corrcoef", (D, D * D)),
    Case("corrcoef", (F[0] + 1j * F[1],)), Case("corrcoef", (D,)),
]  # fmt: skip


@by_name(CASES)
def test_against_numpy(cases, mode):
    check(cases, mode)


def test_derivatives():
    from xform.test_util import check_grads

    x = RNG.normal(size=(4, 5))
    for f in (
        lambda v: xnp.quantile(v, 0.3, 0),
        lambda v: xnp.median(v, 1),
        xnp.cov,
        lambda v: xnp.corrcoef(v),
        lambda v: xnp.percentile(v, 70),
    ):
        check_grads(f, (x,), order=2, modes=("fwd", "rev"), atol=1e-4, rtol=1e-4)
    grads = np.asarray(xform.grad(lambda v: xnp.nanmedian(v))(xnp.array([3.0, np.nan, 1.0, 2.0])))
    np.testing.assert_array_equal(grads, [0, 0, 0, 1])


def test_traced_levels_and_vmap():
    got = xform.jit(lambda x, q: xnp.quantile(x, q, axis=1))(xnp.array(F), 0.4)
    compare(got, np.quantile(F, 0.4, axis=1))
    got = xform.vmap(lambda q: xnp.quantile(xnp.array(D), q))(xnp.array(Q))
    compare(got, np.quantile(D, Q))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: xnp.quantile(D, 1.5),
            ValueError,
            r"numpy\.quantile: quantiles must be in the range \[0, 1\], got 1.5",
        ),
        (lambda: xnp.percentile(D, -1), ValueError, r"numpy\.percentile: percentiles must be in the range \[0, 100\]"),
        (lambda: xnp.quantile(D, 0.5, method="best"), ValueError, r"numpy\.quantile: method must be one of linear"),
        (lambda: xnp.quantile(D, 0.5, weights=np.abs(D)), ValueError, "method='inverted_cdf' only"),
        (lambda: xnp.median(1j * D), TypeError, "real numbers"),
        (lambda: xnp.histogram(D, 0), ValueError, "must be positive"),
        (
            lambda: xnp.histogram(xnp.ones(3), 2, (1, np.nan)),
            ValueError,
            r"numpy\.histogram: supplied range .* f64\[3\]",
        ),
        (lambda: xnp.histogram(xnp.ones(3), 2, (2, 1)), ValueError, r"numpy\.histogram: max must be larger than min"),
        (
            lambda: xnp.histogram(xnp.ones(3), 2, (1,)),
            ValueError,
            r"numpy\.histogram: range must be a pair, got \(1,\)",
        ),
        (lambda: xnp.histogram(np.nextafter(1, [1, 2]), 9), ValueError, r"numpy\.histogram: Too many bins for data"),
        (lambda: xnp.histogram(D, weights=D[:3]), ValueError, "weights should have the same shape"),
        (lambda: xnp.histogramdd(F), ValueError, r"numpy\.histogramdd: sample must have one or two axes"),
        (lambda: xnp.cov(F), ValueError, r"numpy\.cov: m has more than 2 dimensions"),
        (lambda: xnp.cov(F[0], fweights=np.ones(5) / 2), TypeError, "fweights must be integer"),
        (lambda: xform.jit(lambda x: xnp.histogram(x, "auto"))(D), TypeError, "Give the number of bins"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_medians_beside_infinities(name, dtype):
    """The mean of the middle two, as in NumPy."""
    ours = getattr(xnp, name)
    for values in ([-1.5, np.inf], [-np.inf, 2], [np.inf, np.inf], [1, 2, np.inf, np.inf], [-np.inf, np.inf]):
        x = np.array(values, dtype)
        with np.errstate(invalid="ignore"):
            want = getattr(np, name)(x)
        for got in (ours(x), xform.jit(ours)(x)):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_on_the_edges(dtype):
    """The edges of a known range are NumPy's to the last bit, compiled too; a value that equals one is in its bin."""
    for low, high, bins in ((0.1, 0.9, 10), (-1.7, 3.3, 7), (1e3, 1e3 + 7, 29)):
        edges = np.histogram_bin_edges(np.zeros(0, dtype), bins, (low, high))
        x = np.concatenate([edges, np.nextafter(edges, np.inf, dtype=dtype), np.nextafter(edges, -np.inf, dtype=dtype)])
        pair = np.stack([x, x[::-1]], 1)

        def functions(m, x, pair, low=low, high=high, bins=bins):
            return [
                m.histogram_bin_edges(x, bins, (low, high)),
                *m.histogram(x, bins, (low, high)),
                *(m.histogram2d(x, x[::-1], bins, [(low, high)] * 2) if dtype == "float64" else ()),
                *(m.histogramdd(pair, bins, [(low, high)] * 2)[1] if dtype == "float64" else ()),
                m.linspace(low, high, bins + 1),
                m.digitize(x, m.linspace(low, high, bins + 1)),
                m.geomspace(1.0, high, bins),
            ]

        want = functions(np, x, pair)
        for got in (
            functions(xnp, xnp.asarray(x), xnp.asarray(pair)),
            xform.jit(lambda *a: functions(xnp, *a))(x, pair),
        ):
            for g, w in zip(got, want, strict=True):
                np.testing.assert_array_equal(g, w)
