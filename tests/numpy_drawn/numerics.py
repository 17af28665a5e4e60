"""Differences, integrals, interpolation, convolution, windows; polynomials; functions of functions."""

import numpy as np
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import (
    ALL,
    COMPLEX,
    FLOATS,
    NUMBERS,
    Call,
    Function,
    Wrong,
    arrays,
    axis,
    lattice,
    on_lattice,
    shapes,
)

A = np.ones((2, 3))
V = np.arange(3.0)
WIDE = ("float64", "complex128", "int64")


def at_least_double(call, dtype):
    """Integers are float64 from here on."""
    found = lattice(*(x.dtype for x in call.args if isinstance(x, np.ndarray)))
    return found if found.kind in "fc" else np.dtype("float64")


# ---- Calculus ----------------------------------------------------------------------------------------------


@st.composite
def diffs(draw):
    x = draw(arrays(shape=shapes(1), dtypes=ALL))
    d = draw(axis(x.ndim))
    kwargs = {"n": draw(st.integers(0, 3)), "axis": d}
    for end in ("prepend", "append"):
        if x.dtype.kind in "fc" and draw(st.integers(0, 2)) == 0:
            shape = list(x.shape)
            shape[d] = draw(st.integers(0, 2))
            kwargs[end] = draw(arrays(shape=draw(st.sampled_from(((), tuple(shape)))), dtypes=(x.dtype.name,)))
    return Call((x,), kwargs)


@st.composite
def ediffs(draw):
    x = draw(arrays(dtypes=NUMBERS))
    ends = {
        k: draw(arrays(shape=shapes(0, 1), dtypes=(x.dtype.name,)))
        for k in ("to_end", "to_begin")
        if draw(st.booleans())
    }
    return Call((x,), ends)


@st.composite
def gradients(draw):
    x = draw(arrays(shape=shapes(1, 3, st.integers(3, 5)), dtypes=(*FLOATS, *COMPLEX, "int32", "int64")))
    axes = draw(st.one_of(st.none(), axis(x.ndim), st.permutations(range(x.ndim)).map(lambda p: tuple(p[:2]))))
    chosen = range(x.ndim) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    kind = draw(st.sampled_from(("none", "one", "each")))
    real = np.empty(0, x.dtype).real.dtype
    dtype = (real.name if real.kind == "f" else "float64",)
    each = [
        draw(st.sampled_from((2.0, np.sort(draw(arrays(shape=(x.shape[d],), dtypes=dtype, distinct=True))))))
        for d in chosen
    ]
    spacing = () if kind == "none" else (0.5,) if kind == "one" else tuple(each)
    return Call((x, *spacing), {"axis": axes, "edge_order": draw(st.sampled_from((1, 2)))})


@st.composite
def trapezoids(draw):
    dtypes = draw(st.sampled_from((("float32",), ("float64", "complex128"), ("int64",))))
    y = draw(arrays(shape=shapes(1), dtypes=dtypes))
    d = draw(axis(y.ndim))
    kwargs = {"axis": d}
    kind = draw(st.sampled_from(("dx", "vector", "array")))
    if kind == "dx":
        kwargs["dx"] = 0.5
    else:
        kwargs["x"] = draw(arrays(shape=y.shape if kind == "array" else (y.shape[d],), dtypes=(y.real.dtype.name,)))
    return Call((y,), kwargs)


@st.composite
def unwraps(draw):
    x = draw(arrays(shape=shapes(1), dtypes=(*FLOATS, "int64"), low=-20, high=20))
    kwargs = {"axis": draw(axis(x.ndim))}
    if x.dtype.kind == "i" or draw(st.booleans()):
        kwargs["period"] = draw(st.sampled_from((4, 7) if x.dtype.kind == "i" else (4.0, 1.5)))
    if draw(st.booleans()):
        kwargs["discont"] = draw(st.sampled_from((1, 5)))
    return Call((x,), kwargs)


@st.composite
def interps(draw):
    n = draw(st.integers(1, 6))
    xp = np.sort(draw(arrays(shape=(n,), dtypes=("float64",), distinct=True, contiguous=True)))
    fp = draw(arrays(shape=(n,), dtypes=("float64", "complex128", "int64")))
    x = draw(arrays(dtypes=("float64",), low=-5, high=5, special=(np.nan, np.inf)))
    kwargs = draw(st.sampled_from(({}, {"left": -1.0}, {"right": 2.5}, {"left": 0.0, "right": 1.0}, {"period": 2.5})))
    return Call((x, xp, fp), kwargs)


@st.composite
def convolutions(draw):
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    kind = draw(
        st.sampled_from(
            (("float32",), ("float64",), ("complex128", "complex64"), ("int64", "int8", "uint8"), ("bool",))
        )
    )
    modes = draw(st.sampled_from(("full", "same", "valid")))
    return Call((draw(arrays(shape=(n,), dtypes=kind)), draw(arrays(shape=(m,), dtypes=kind))), {"mode": modes})


def window():
    return st.integers(-2, 9).map(lambda n: Call((n,), fixed=(0,)))


kaisers = st.tuples(st.integers(-1, 9), st.sampled_from((0.0, 2.5, 14.0))).map(
    lambda a: Call((a[0], np.float64(a[1])), fixed=(0,))
)

# ---- Polynomials -------------------------------------------------------------------------------------------


def coefficients(dtypes=NUMBERS, least=1, **more):
    return arrays(shape=shapes(1, 1, st.integers(least, 5)), dtypes=dtypes, **more)


@st.composite
def evaluations(draw):
    return Call((draw(coefficients()), draw(arrays(dtypes=NUMBERS))))


@st.composite
def pairs(draw, dtypes=NUMBERS):
    return Call((draw(coefficients(dtypes)), draw(coefficients(dtypes))))


@st.composite
def products(draw):
    """Factors without leading zeros, and not mixed with narrower floats, which NumPy convolves in its own way."""
    a, b = (draw(coefficients(WIDE, low=1)) for _ in "ab")
    return Call((a, b))


@st.composite
def quotients(draw):
    u, v = draw(coefficients(("float64", "complex128"))), draw(coefficients(("float64", "complex128"), low=1))
    return Call((u, v), {"trim_leading_zeros": draw(st.booleans())})


def dividend(u, v, trim_leading_zeros=False):
    """The remainder is as long as the dividend, unless it is trimmed."""
    q, r = np.polydiv(u, v)
    return q, r if trim_leading_zeros else np.concatenate([np.zeros(u.size - r.size, r.dtype), r])


def of_division(got, want, call):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=0, atol=1e-9 * max(1.0, *abs(got[0])))


@st.composite
def integrals(draw, most=3):
    m = draw(st.integers(0, most))
    p = draw(coefficients())
    k = draw(st.sampled_from((None, 2.0, [float(i) for i in range(m)]))) if m else None
    return Call((p,), {"m": m, **({} if k is None else {"k": k})})


def integral(p, m=1, k=None):
    return np.polyint(p.astype(float) if p.dtype.kind in "iu" else p, m, k)


def derivative(call, dtype):
    """Coefficients are multiplied by integers of the default width."""
    return lattice(call.args[0].dtype, "int64") if call.kwargs["m"] and call.args[0].size else call.args[0].dtype


@st.composite
def zeros_of(draw):
    return Call((draw(coefficients(("float64", "float32", "complex128", "int64"), 0)),))


@st.composite
def fits(draw):
    deg = draw(st.integers(0, 3))
    n = deg + 3
    x = draw(arrays(shape=(n,), dtypes=("float64",), distinct=True))
    y = draw(arrays(shape=draw(st.sampled_from(((n,), (n, 2)))), dtypes=("float64", "complex128")))
    kwargs = {"w": np.linspace(1, 2, n)} if draw(st.booleans()) else {}
    return Call((x, y, deg), {**kwargs, "cov": draw(st.sampled_from((False, "unscaled")))}, fixed=(2,))


def sorted_zeros(got, want, call):
    got, want = (np.asarray(x[0]) for x in (got, want))
    left = list(want)
    for value in got:
        nearest = min(left, key=lambda z: abs(z - value))
        assert abs(nearest - value) < 1e-3 * max(1, abs(value)), (got, want)
        left.remove(nearest)


# ---- Functions of functions --------------------------------------------------------------------------------

LINES = {
    "sum": (lambda v: v.sum(), lambda v: v.sum()), "twice": (lambda v: 2 * v, lambda v: 2 * v),
    "reversed": (lambda v: v[::-1], lambda v: v[::-1]),
    "outer": (lambda v: v[:, None] * v[None, :], lambda v: v[:, None] * v[None, :]),
}  # fmt: skip


@st.composite
def lines(draw):
    x = draw(arrays(shape=shapes(1, 3, st.integers(1, 3)), dtypes=("float64", "int64", "complex64")))
    return Call((draw(st.sampled_from(list(LINES.values())))[0], draw(axis(x.ndim)), x), fixed=(0, 1))


@st.composite
def over_axes(draw):
    x = draw(arrays(shape=shapes(1, 3, st.integers(1, 3)), dtypes=("float64", "int64")))
    chosen = draw(st.permutations(range(x.ndim)))[: draw(st.integers(1, x.ndim))]
    return Call((lambda a, axis: a.sum(axis), x, tuple(chosen)), fixed=(0, 2))


POLY_ERRORS = {
    n: [Wrong(lambda np, n=n: getattr(np, n)(A, V), ValueError, rf"{n}.*f64\[2,3\]")]
    for n in ("polyadd", "polysub", "polymul")
}
FUNCTIONS = [
    Function(
        "diff",
        diffs(),
        errors=[
            Wrong(lambda np: np.diff(A, -1), ValueError, r"diff.*order must be non-negative.*-1"),
            Wrong(lambda np: np.diff(1.0), ValueError, r"diff.*at least one dimension.*f64\[\]"),
            Wrong(lambda np: np.diff(A, axis=3), AxisError, r"diff.*axis 3 is out of bounds.*f64\[2,3\]"),
            Wrong(lambda np: np.diff(A, prepend=np.ones((3, 1))), ValueError, r"diff.*f64\[3,1\].*f64\[2,3\]"),
        ],
    ),
    Function(
        "ediff1d",
        ediffs(),
        errors=[
            Wrong(lambda np: np.ediff1d(np.array([1, 2]), to_end=1.5), TypeError, r"ediff1d.*to_end.*compatible.*i64"),
        ],
    ),
    Function(
        "gradient",
        gradients(),
        dtype=at_least_double,
        reference=on_lattice(np.gradient),
        tolerance=256,
        errors=[
            Wrong(lambda np: np.gradient(A, edge_order=3), ValueError, r"gradient.*edge_order.*3"),
            Wrong(lambda np: np.gradient(A, 1, 2, 3), TypeError, r"gradient.*[iI]nvalid number of arguments.*3"),
            Wrong(lambda np: np.gradient(A[:1]), ValueError, r"gradient.*too small.*f64\[1,3\]"),
            Wrong(lambda np: np.gradient(V, np.ones(2)), ValueError, r"gradient.*f64\[2\]"),
            Wrong(lambda np: np.gradient(A, axis=3), AxisError, r"gradient.*axis 3 is out of bounds.*f64\[2,3\]"),
        ],
    ),
    Function(
        "trapezoid",
        trapezoids(),
        dtype=at_least_double,
        errors=[
            Wrong(lambda np: np.trapezoid(A, axis=3), IndexError, r"trapezoid.*axis 3 is out of bounds.*f64\[2,3\]"),
            Wrong(
                lambda np: np.trapezoid(A, np.ones(5)),
                ValueError,
                r"trapezoid.*f64\[1,4\].*f64\[2,2\]|trapezoid.*f64\[5\]",
            ),
        ],
    ),
    Function(
        "unwrap",
        unwraps(),
        errors=[
            Wrong(lambda np: np.unwrap(A, axis=3), AxisError, r"unwrap.*axis 3 is out of bounds.*f64\[2,3\]"),
            Wrong(lambda np: np.unwrap(A * 1j), TypeError, r"unwrap.*(complex|c128)"),
        ],
    ),
    Function(
        "interp",
        interps(),
        tolerance=64,
        gradient=False,
        errors=[
            Wrong(
                lambda np: np.interp(1.0, V, V[:2]),
                ValueError,
                r"interp.*fp and xp are not of the same length.*f64\[3\].*f64\[2\]",
            ),
            Wrong(
                lambda np: np.interp(1.0, V[:0], V[:0]),
                ValueError,
                r"interp.*array of sample points is empty.*f64\[0\]",
            ),
            Wrong(lambda np: np.interp(1.0, A, A), ValueError, r"interp.*f64\[2,3\]"),
            Wrong(lambda np: np.interp(1j, V, V), TypeError, r"interp.*c128\[\]"),
            Wrong(lambda np: np.interp(1.0, V, V, period=0), ValueError, r"interp.*period must be a non-zero value"),
        ],
    ),
    *(
        Function(
            n,
            convolutions(),
            tolerance=256,
            errors=[
                Wrong(lambda np, n=n: getattr(np, n)(V, V[:0]), ValueError, rf"{n}.*empty.*f64\[3\].*f64\[0\]"),
                Wrong(lambda np, n=n: getattr(np, n)(A, V), ValueError, rf"{n}.*f64\[2,3\].*f64\[3\]"),
                Wrong(lambda np, n=n: getattr(np, n)(V, V, "x"), ValueError, rf"{n}.*mode.*'x'"),
            ],
        )
        for n in ("convolve", "correlate")
    ),
    *(
        Function(
            n,
            window(),
            tolerance=64,
            errors=[
                Wrong(lambda np, n=n: getattr(np, n)("a"), TypeError, rf"{n}.*'a'|{n}.*str"),
            ],
        )
        for n in ("bartlett", "blackman", "hamming", "hanning")
    ),
    Function("kaiser", kaisers, tolerance=256),
    Function(
        "polyval",
        evaluations(),
        dtype=lambda c, d: lattice(*(x.dtype for x in c.args)),
        reference=on_lattice(np.polyval),
        tolerance=256,
    ),
    *(
        Function(n, pairs(), reference=on_lattice(getattr(np, n)), errors=POLY_ERRORS[n])
        for n in ("polyadd", "polysub")
    ),
    Function("polymul", products(), tolerance=64, errors=POLY_ERRORS["polymul"]),
    Function(
        "polydiv",
        quotients(),
        reference=dividend,
        jit=False,
        gradient=False,
        compare=of_division,
        errors=[
            Wrong(lambda np: np.polydiv(A, V), ValueError, r"polydiv.*f64\[2,3\]", alone="it fails later"),
        ],
    ),
    Function(
        "polyder",
        integrals().map(lambda c: Call(c.args, {"m": c.kwargs["m"]})),
        dtype=derivative,
        errors=[
            Wrong(lambda np: np.polyder(V, -1), ValueError, r"polyder.*order of derivative must be positive.*-1"),
        ],
    ),
    Function(
        "polyint",
        integrals(),
        reference=integral,
        dtype=at_least_double,
        errors=[
            Wrong(lambda np: np.polyint(V, -1), ValueError, r"polyint.*order of integral must be positive.*-1"),
            Wrong(
                lambda np: np.polyint(V, 2, [1, 2, 3]),
                ValueError,
                r"polyint.*k must be a scalar or a rank-1 array of length 1 or 2.*i64\[3\]",
                alone="it ignores the rest",
            ),
        ],
    ),
    Function(
        "poly",
        coefficients(("float64", "complex128"), 0).map(lambda x: Call((x,))),
        tolerance=256,
        errors=[
            Wrong(lambda np: np.poly(A), ValueError, r"poly.*1d or non-empty square 2d array.*f64\[2,3\]"),
        ],
    ),
    Function(
        "polyfit",
        fits(),
        tolerance=1e6,
        gradient=False,
        errors=[
            Wrong(lambda np: np.polyfit(V, V, -1), ValueError, r"polyfit.*expected deg >= 0.*-1"),
            Wrong(lambda np: np.polyfit(A, V, 1), TypeError, r"polyfit.*expected 1D vector for x.*f64\[2,3\]"),
            Wrong(
                lambda np: np.polyfit(V[:0], V[:0], 1), TypeError, r"polyfit.*expected non-empty vector for x.*f64\[0\]"
            ),
            Wrong(
                lambda np: np.polyfit(V, np.ones((3, 1, 1)), 1),
                TypeError,
                r"polyfit.*expected 1D or 2D array for y.*f64\[3,1,1\]",
            ),
            Wrong(
                lambda np: np.polyfit(V, np.ones(2), 1),
                TypeError,
                r"polyfit.*expected x and y to have same length.*f64\[3\].*f64\[2\]",
            ),
            Wrong(
                lambda np: np.polyfit(V, V, 1, w=np.ones(2)),
                TypeError,
                r"polyfit.*expected w and y to have the same length.*f64\[2\]",
            ),
            Wrong(
                lambda np: np.polyfit(V, V, 2, cov=True),
                ValueError,
                r"polyfit.*the number of data points must exceed order.*3",
            ),
        ],
    ),
    Function(
        "roots",
        zeros_of(),
        jit=False,
        gradient=False,
        dtype=lambda c, d: np.result_type(d, "complex64"),
        compare=sorted_zeros,
        errors=[
            Wrong(lambda np: np.roots(A), ValueError, r"roots.*must be a rank-1 array.*f64\[2,3\]"),
        ],
    ),
    Function(
        "apply_along_axis",
        lines(),
        errors=[
            Wrong(
                lambda np: np.apply_along_axis(np.sum, 3, A),
                AxisError,
                r"apply_along_axis.*axis 3 is out of bounds.*f64\[2,3\]",
            ),
            Wrong(lambda np: np.apply_along_axis(np.sum, 0, np.asarray(1.0)), AxisError, r"apply_along_axis.*f64\[\]"),
        ],
    ),
    Function(
        "apply_over_axes",
        over_axes(),
        reference=lambda f, a, axes: np.apply_over_axes(f, a, list(axes)),
        errors=[
            Wrong(
                lambda np: np.apply_over_axes(np.sum, A, 3),
                AxisError,
                r"apply_over_axes.*axis 3 is out of bounds.*f64\[2,3\]",
            ),
        ],
    ),
]

TESTED_ELSEWHERE = {
    "vectorize": "test_numpy_ufuncs.py: it makes functions",
    "frompyfunc": "test_numpy_ufuncs.py: it makes functions",
}
