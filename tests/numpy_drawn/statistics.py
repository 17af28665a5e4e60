"""Quantiles, histograms, covariance."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tests.numpy_drawn.record import (
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    REALS,
    Call,
    Function,
    arrays,
    axes,
    lattice,
    shapes,
    wrong,
)
from tests.numpy_drawn.reductions import axis_type, no_out, repeated_axis, wrong_axis

A = np.ones((2, 3))
V = np.array([3.0, 1.0, 2.0])
C = A * 1j

# ---- Quantiles -----------------------------------------------------------------------------------------------

METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
           "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
           "normal_unbiased")  # fmt: skip
LEVELS = (0.0, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.9, 1.0)


@st.composite
def quantiles(draw, scale=1, special=(np.nan,), weights=False, skipping=False):
    lengths = st.integers(1, 5)
    x = draw(arrays(st.lists(lengths, min_size=0, max_size=3).map(tuple), REALS, special=special))
    level = st.sampled_from(LEVELS).map(lambda q: q * scale)
    q = draw(
        level
        | st.lists(level, min_size=0, max_size=3).map(lambda q: np.array(q, "f8"))
        | st.just(np.full((2, 1), 0.3 * scale))
    )
    kwargs = {"axis": draw(axes(x.ndim)), "keepdims": draw(st.booleans()), "method": draw(st.sampled_from(METHODS))}
    assume(not skipping or kwargs["axis"] != ())  # NumPy returns another shape
    if weights:
        d = kwargs["axis"] = draw(axes(x.ndim, none=False)) if x.ndim else None
        assume(d != ())
        kwargs["method"] = "inverted_cdf"
        full = x.ndim == 0 or skipping or draw(st.booleans())
        shape = x.shape if full else tuple(x.shape[i] for i in (d if isinstance(d, tuple) else (d,)))
        kwargs["weights"] = draw(arrays(shape, ("int64", "float64"), low=1))
    return Call((x, q), kwargs, fixed=(1,))


@st.composite
def medians(draw, special=(np.nan, np.inf, -np.inf), least=1):
    x = draw(arrays(st.lists(st.integers(least, 5), max_size=3).map(tuple), (*BOOL, *REALS), special=special))
    return Call((x,), {"axis": draw(axes(x.ndim)), "keepdims": draw(st.booleans())})


def on_floats(name):
    """NumPy's, in the float type to which x and q promote here: that of x, if q is a number."""

    def reference(x, q, **kwargs):
        dtype = lattice(x.dtype, *([q.dtype] if isinstance(q, np.ndarray) else []))
        dtype = np.dtype("f8") if dtype.kind in "iu" else dtype
        # One level after the other: of a matrix of levels nanquantile over several axes mixes up the result's axes.
        zeroth, *rows = (getattr(np, name)(x.astype("f8"), level, **kwargs) for level in (0, *np.ravel(q)))
        return np.reshape(rows, np.shape(q) + np.shape(zeroth)).astype(dtype)

    return reference


QUANTILES = [
    Function(
        name,
        quantiles(scale, skipping=name[:3] == "nan"),
        on_floats(name),
        gradient=False,
        tolerance=256,
        errors=[
            wrong(name, ValueError, rf"must be in the range \[0, {scale}\]", A, scale * 1.5),
            wrong(name, ValueError, rf"must be in the range \[0, {scale}\]", A, [0.5, np.nan]),
            wrong(name, ValueError, "method.*'middle'", A, 0.5, method="middle"),
            wrong(name, TypeError, r"real numbers.*c128\[2,3\]", C, 0.5),
            wrong(name, np.exceptions.AxisError, r"axis 2 is out of bounds.*f64\[2,3\]", A, 0.5, axis=2),
            wrong(name, ValueError, r"repeated axis.*f64\[2,3\]", A, 0.5, axis=(0, 0)),
            wrong(name, ValueError, "'linear'.*weights|weights.*'linear'", A, 0.5, weights=A),
            wrong(name, ValueError, r"f64\[3\].*f64\[2,3\]", A, 0.5, axis=0, weights=V, method="inverted_cdf"),
            wrong(name, ValueError, r"non-negative.*f64\[2,3\]", A, 0.5, axis=0, weights=-A, method="inverted_cdf"),
            wrong(name, NotImplementedError, "immutable", A, 0.5, out=A, alone="immutable"),
        ],
    )
    for name, scale in (("quantile", 1), ("nanquantile", 1), ("percentile", 100), ("nanpercentile", 100))
]  # fmt: skip

QUANTILES += [
    Function(f"{name}:weights", quantiles(weights=True, skipping=name[:3] == "nan"), on_floats(name), gradient=False)
    for name in ("quantile", "nanquantile")
]
QUANTILES += [
    Function("quantile:smooth", quantiles(special=()), on_floats("quantile"), tolerance=256),
    *(
        Function(
            name,
            medians(special=(np.nan, np.inf, -np.inf) if name == "median" else (np.nan,)),
            lambda x, name=name, **kw: getattr(np, name)(x.astype("f8") if x.dtype.kind == "b" else x, **kw),
            errors=[wrong_axis(name), repeated_axis(name), no_out(name), axis_type(name)],
        )
        for name in ("median", "nanmedian")
    ),
]

# ---- Histograms ----------------------------------------------------------------------------------------------


@st.composite
def histograms(draw, edges=False, density=True, kinds=("none", "count", "edges", "range")):
    x = draw(arrays(dtypes=(*INTEGERS, *FLOATS)))
    kwargs = {}
    kind = draw(st.sampled_from(kinds))
    if kind == "edges":
        kwargs["bins"] = np.sort(draw(arrays(st.tuples(st.integers(2, 6)), ("float64",))))
    elif kind != "none":
        kwargs["bins"] = draw(st.integers(1, 7))
        if kind == "range":
            kwargs["range"] = draw(st.sampled_from(((-2.0, 2.5), (0.0, 1.0), (1.0, 1.0))))
    if edges:
        return Call((x,), kwargs)
    if draw(st.booleans()):
        kwargs["weights"] = draw(arrays(x.shape, ("float64", "int64"), low=1))
    if density and draw(st.booleans()):
        kwargs["density"] = True
    return Call((x,), kwargs)


@st.composite
def tables(draw):
    n, d = draw(st.integers(1, 8)), draw(st.integers(1, 3))
    x = draw(arrays((n, d), ("float64", "int64")))
    kwargs = {"bins": draw(st.integers(1, 4) | st.just([2, 3, 1][:d]) | st.just([np.linspace(-3, 3, 4)] * d))}
    if draw(st.booleans()):
        kwargs["range"] = [(-2.0, 2.0)] * d
    if draw(st.booleans()):
        kwargs["weights"] = draw(arrays((n,), ("float64",), low=1))
    if draw(st.booleans()):
        kwargs["density"] = True
    return Call((x,), kwargs)


@st.composite
def planes(draw):
    n = draw(st.integers(1, 8))
    x, y = (draw(arrays((n,), ("float64", "int64"))) for _ in "xy")
    bins = st.integers(1, 4) | st.just([2, 3]) | st.just(np.linspace(-3, 3, 4)) | st.just([np.linspace(-3, 3, 4), 2])
    kwargs = {"bins": draw(bins)}
    if draw(st.booleans()):
        kwargs["density"] = True
    return Call((x, y), kwargs)


def exact(name):
    """NumPy's, in float64: float32 edges differ in the last place, and with them where a value falls."""
    return lambda x, **kwargs: getattr(np, name)(x.astype("f8"), **kwargs)


def widely(strategy):
    return strategy.map(lambda c: Call((c.args[0].astype("f8"), *c.args[1:]), c.kwargs))


BINS = [
    wrong("histogram_bin_edges", ValueError, r"bins.*positive.*0", V, 0),
    wrong("histogram_bin_edges", ValueError, r"monotonically.*f64\[3\]", V, V),
    wrong("histogram_bin_edges", ValueError, r"1d.*f64\[2,3\]", V, A),
    wrong("histogram_bin_edges", ValueError, r"max must be larger than min.*\(2, 1\)", V, 3, (2, 1)),
    wrong("histogram_bin_edges", ValueError, r"'nonsense'", V, "nonsense"),
    wrong("histogram_bin_edges", TypeError, r"integer.*2\.5", V, 2.5),
]

HISTOGRAMS = [
    Function("histogram_bin_edges", widely(histograms(edges=True)), gradient=False, errors=BINS),
    Function(
        "histogram_bin_edges:estimated",
        widely(st.builds(Call, st.tuples(arrays(shapes(1), FLOATS)), st.fixed_dictionaries({"bins": st.sampled_from(
            ("auto", "fd", "sturges", "sqrt", "rice", "scott", "stone", "doane"))}))),
        gradient=False,
        jit=False,
    ),
    # Compiled, edges that are made of the data may differ in the last bit, and with them the bins of values on them.
    Function("histogram:of the data", widely(histograms(kinds=("none", "count"))), gradient=False, jit=False),
    Function(
        "histogram",
        widely(histograms(kinds=("edges", "range"))),
        gradient=False,
        errors=[
            wrong("histogram", ValueError, r"bins.*positive.*0", V, 0),
            wrong("histogram", ValueError, r"monotonically.*f64\[3\]", V, V),
            wrong("histogram", ValueError, r"f64\[2\].*f64\[3\]", V, 3, weights=V[:2]),
        ],
    ),
    Function(
        "histogramdd",
        tables(),
        gradient=False,
        errors=[
            wrong("histogramdd", ValueError, r"dimension of bins must be equal.*3.*2", A, [2, 2]),
            wrong("histogramdd", ValueError, r"range.*3", A, range=[(0, 1)]),
            wrong("histogramdd", ValueError, r"f64\[3\].*2 rows", A, weights=V),
        ],
    ),
    Function(
        "histogram2d",
        planes(),
        gradient=False,
        errors=[wrong("histogram2d", ValueError, r"x and y must have the same length.*f64\[3\].*f64\[2\]", V, V[:2])],
    ),
]  # fmt: skip

# ---- Covariance ----------------------------------------------------------------------------------------------


@st.composite
def samples(draw, weights=True):
    shape = draw(st.tuples(st.integers(2, 4), st.integers(2, 5)) | st.tuples(st.integers(2, 5)))
    dtypes = draw(st.sampled_from((("float64",), ("float32",), ("int64",), COMPLEX)))
    x = draw(arrays(shape, dtypes))
    kwargs = {"rowvar": draw(st.booleans())} if len(shape) == 2 else {}
    n = x.shape[-1] if kwargs.get("rowvar", True) else x.shape[0]
    args = (x, draw(arrays(shape, dtypes))) if draw(st.booleans()) else (x,)
    if weights:
        kwargs |= draw(st.sampled_from(({}, {"bias": True}, {"ddof": 0}, {"ddof": 2})))
        if draw(st.booleans()):
            kwargs["fweights"] = draw(arrays((n,), ("int64",), low=1))
        if draw(st.booleans()):
            kwargs["aweights"] = draw(arrays((n,), ("float64",), low=1))
    return Call(args, kwargs)


def covariance(x, *rest, **kwargs):
    return np.cov(x.astype("f8") if x.dtype.kind == "i" else x, *rest, **kwargs)


COVARIANCE = [
    Function(
        "cov",
        samples(),
        tolerance=1e4,
        dtype=lambda call, dtype: _kept(call, dtype),
        grad_tolerance=1e-4,
        compare=None,
        errors=[
            wrong("cov", ValueError, r"more than 2 dimensions.*f64\[1,2,3\]", A[None]),
            wrong("cov", ValueError, r"ddof must be integer.*0\.5", A, ddof=0.5),
            wrong("cov", TypeError, r"fweights must be integer.*f64\[3\]", A, fweights=V + 0.5),
            wrong("cov", RuntimeError, r"incompatible.*fweights.*i64\[2\].*f64\[2,3\]", A, fweights=np.array([1, 2])),
            wrong("cov", RuntimeError, r"multidimensional.*i64\[2,3\]", A, fweights=A.astype(int)),
            wrong("cov", ValueError, r"fweights cannot be negative.*i64\[3\]", A, fweights=-V.astype(int)),
            wrong("cov", ValueError, r"aweights cannot be negative.*f64\[3\]", A, aweights=-V),
            wrong("cov", RuntimeError, r"incompatible.*aweights.*f64\[2\].*f64\[2,3\]", A, aweights=V[:2]),
        ],
    ),
    Function(
        "corrcoef",
        samples(weights=False),
        tolerance=1e4,
        dtype=lambda call, dtype: _kept(call, dtype),
        grad_tolerance=1e-4,
        errors=[wrong("corrcoef", ValueError, r"more than 2 dimensions.*f64\[1,2,3\]", A[None])],
    ),
]


def _kept(call, dtype):
    """NumPy computes in double precision; here float32 stays."""
    given = [*call.args, *(w for k, w in call.kwargs.items() if k == "aweights")]
    found = lattice(*(x.dtype for x in given))
    return found if found.kind in "fc" else dtype


FUNCTIONS = [*QUANTILES, *HISTOGRAMS, *COVARIANCE]
