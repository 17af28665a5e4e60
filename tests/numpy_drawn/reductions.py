"""Reductions over axes, and cumulative ones; with and without NaN."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import (
    ALL,
    BOOL,
    FLOATS,
    NUMBERS,
    REALS,
    Call,
    Function,
    Wrong,
    arrays,
    axes,
    axis,
    lattice,
    shapes,
    wrong,
)

A = np.ones((2, 3))
E = np.ones((0, 3))
C = np.ones((2, 3), complex)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)
NAN = (np.nan, np.nan, np.inf, -0.0)


@st.composite
def reductions(
    draw, dtypes=ALL, special=(), low=-3, where=False, initial=False, dtype=(), ddof=False, empty=True, several=True
):
    """An array, axes and keepdims, and by chance the other arguments that the function has."""
    x = draw(arrays(dtypes=dtypes, special=special, low=low))
    kwargs = {"axis": draw(axes(x.ndim) if several else st.none() | axis(x.ndim) if x.ndim else st.none())}
    if draw(st.booleans()):
        kwargs["keepdims"] = draw(st.booleans())
    if initial and draw(st.booleans()):
        kwargs["initial"] = x.dtype.type(draw(st.integers(0, 2))).item()
    if where and draw(st.booleans()) and (where != "initial" or "initial" in kwargs):
        mask = draw(arrays(x.shape, BOOL))
        kwargs["where"] = mask[..., :1] if mask.ndim and mask.shape[-1] and draw(st.booleans()) else mask
    if dtype and draw(st.booleans()):
        kwargs["dtype"] = draw(st.sampled_from(dtype))
    if ddof and draw(st.booleans()):
        kwargs["ddof"] = draw(st.sampled_from((1, 2, 0.5)))
    if not empty and "initial" not in kwargs:
        d = kwargs["axis"]
        reduced = x.shape if d is None else [x.shape[i] for i in (d if isinstance(d, tuple) else (d,))]
        assume(0 not in reduced)
    return Call((x,), kwargs)


@st.composite
def cumulative(draw, dtypes=ALL, special=(), low=-3, several=True, least=0):
    x = draw(arrays(shapes(least), dtypes=dtypes, special=special, low=low))
    kwargs = {"axis": draw(axis(x.ndim))} if x.ndim and (draw(st.booleans()) or (x.ndim > 1 and not several)) else {}
    if draw(st.booleans()):
        kwargs["dtype"] = draw(st.sampled_from(("float64", "complex128")))
    if not several and draw(st.booleans()):
        kwargs["include_initial"] = True
    return Call((x,), kwargs)


def wrong_axis(name, x=A, axis=2):
    return wrong(name, AxisError, rf"axis {axis} is out of bounds for array of dimension 2.*f64\[2,3\]", x, axis=axis)


def repeated_axis(name):
    return wrong(name, ValueError, r"repeated axis.*f64\[2,3\]", A, axis=(1, -1))


def axis_type(name):
    return wrong(name, TypeError, r"must be an integer.*1\.5", A, axis=1.5)


def no_out(name):
    return wrong(name, NotImplementedError, r"immutable", A, out=np.zeros(3), alone="immutable")


def no_array(name):
    return wrong(name, TypeError, r"'abc' of type str", "abc", alone="strings are arrays in NumPy")


def bad_where(name, **more):
    return [
        wrong(
            name,
            ValueError,
            r"broadcast together with shapes bool\[2,2\], f64\[2,3\]",
            A,
            where=np.ones((2, 2), bool),
            **more,
        ),
        wrong(name, TypeError, r"where.*bool.*f64\[2,3\]", A, where=np.ones((2, 3)), **more),
    ]


def bad_dtype(name):
    return wrong(name, TypeError, r"'nonsense'", A, dtype="nonsense")


def common(name, several=True):
    return [
        wrong_axis(name),
        wrong_axis(name, axis=-3),
        axis_type(name),
        *([repeated_axis(name)] if several else []),
        no_out(name),
        no_array(name),
    ]


def empty(name, words):
    return [
        wrong(name, ValueError, rf"{words}.*f64\[0,3\]", E, axis=0),
        wrong(name, ValueError, rf"{words}.*f64\[0,3\]", E),
    ]


SUM_DTYPES = ("float64", "complex128", "int64", "float32")
MEAN_DTYPES = ("float64", "complex128", "float32")
NO_IDENTITY = "zero-size array to reduction operation m.*imum which has no identity"


def defined(call):
    """Not infinities cast to integers or multiplied as complex numbers, nor complex numbers cast to real ones.

    NumPy warns of them, or says NaN.
    """
    x, dtype = call.args[0], np.dtype(call.kwargs.get("dtype", "float64"))
    if x.dtype.kind == "c":
        return np.isfinite(x).all() and dtype.kind == "c" if "dtype" in call.kwargs else not np.isinf(x).any()
    return dtype.kind == "f" or bool(np.isfinite(x).all())


def divisible(call):
    """No complex dtype where the divisor of a variance is 0: NumPy divides the imaginary zero by it, too."""
    x, kwargs = call.args[0], call.kwargs
    count = np.sum(np.ones(x.shape), kwargs["axis"], where=kwargs.get("where", True))
    return np.dtype(kwargs.get("dtype", "f8")).kind == "f" or bool((count > kwargs.get("ddof", 0)).all())


FUNCTIONS = [
    *(
        Function(
            name,
            reductions(where=True, initial=True, dtype=SUM_DTYPES, special=SPECIAL).filter(defined),
            tolerance=64,
            grad_tolerance=1e-5,
            errors=[*common(name), *bad_where(name), bad_dtype(name)],
        )
        for name in ("sum", "prod")
    ),
    *(
        Function(
            name,
            reductions(where="initial", initial=True, empty=False),
            errors=[
                *common(name),
                *bad_where(name, initial=0),
                *empty(name, NO_IDENTITY),
                wrong(name, ValueError, r"not have an identity.*initial.*f64\[2,3\]", A, where=A > 0),
            ],
        )
        for name in ("max", "min")
    ),
    *(
        Function(f"{name}:special", reductions(dtypes=FLOATS, special=SPECIAL, empty=False), gradient=False)
        for name in ("max", "min")
    ),
    *(
        Function(
            name,
            reductions(where=True, special=SPECIAL),
            gradient=False,
            errors=[*common(name), *bad_where(name)],
        )
        for name in ("any", "all")
    ),
    Function("ptp", reductions(dtypes=NUMBERS, empty=False), errors=[*common("ptp"), *empty("ptp", NO_IDENTITY)]),
    Function(
        "minmax",
        reductions(where="initial", initial=True, empty=False),
        lambda x, **kw: (np.min(x, **kw), np.max(x, **kw)),
        errors=[
            Wrong(lambda np: np.minmax(A, axis=2), AxisError, r"^numpy\.minmax: axis 2 .*f64\[2,3\]", "JAX's function"),
            Wrong(lambda np: np.minmax(E), ValueError, r"^numpy\.minmax: zero-size.*f64\[0,3\]", "JAX's function"),
        ],
    ),
    Function(
        "count_nonzero",
        reductions(special=SPECIAL),
        gradient=False,
        errors=[wrong_axis("count_nonzero"), repeated_axis("count_nonzero"), no_array("count_nonzero")],
    ),
    *(
        Function(
            name,
            reductions(several=False, special=(*SPECIAL, 1.0), empty=False),
            gradient=False,
            errors=[*common(name, several=False), *empty(name, f"attempt to get {name} of an empty sequence")],
        )
        for name in ("argmax", "argmin")
    ),
    Function(
        "mean",
        reductions(where=True, dtype=MEAN_DTYPES, special=SPECIAL).filter(defined),
        errors=[*common("mean"), *bad_where("mean"), bad_dtype("mean")],
    ),
    *(
        Function(
            name,
            reductions(where=True, dtype=MEAN_DTYPES[:2], ddof=True).filter(defined).filter(divisible),
            tolerance=64,
            grad_tolerance=1e-4,
            errors=[*common(name), *bad_where(name), bad_dtype(name)],
        )
        for name in ("var", "std")
    ),
    *(
        Function(
            name,
            cumulative().filter(defined),
            tolerance=64,
            grad_tolerance=1e-5,
            errors=[
                *common(name, several=False),
                bad_dtype(name),
                wrong(name, TypeError, r"must be an integer", A, axis=(0, 1)),
            ],
        )
        for name in ("cumsum", "cumprod")
    ),
    *(
        Function(
            name,
            cumulative(several=False).filter(defined),
            tolerance=64,
            grad_tolerance=1e-5,
            errors=[
                wrong_axis(name),
                wrong(name, TypeError, r"'nonsense'", A[0], dtype="nonsense"),
                wrong(name, ValueError, r"axis.*f64\[2,3\]", A),
            ],
        )
        for name in ("cumulative_sum", "cumulative_prod")
    ),
]

# ---- Weighted means ----------------------------------------------------------------------------------------


@st.composite
def averages(draw):
    x = draw(arrays(st.lists(st.integers(1, 4), max_size=3).map(tuple), dtypes=REALS))
    kwargs = {"axis": draw(axes(x.ndim)), "keepdims": draw(st.booleans()), "returned": draw(st.booleans())}
    kind = draw(st.sampled_from(("none", "full", "axes")))
    if kind == "full":
        kwargs["weights"] = draw(arrays(x.shape, REALS, low=1))
    elif kind == "axes" and kwargs["axis"] not in (None, ()):
        d = kwargs["axis"]
        kwargs["weights"] = draw(
            arrays(tuple(x.shape[i] for i in (d if isinstance(d, tuple) else (d,))), FLOATS, low=1)
        )
    return Call((x,), kwargs)


def average_on_lattice(x, axis=None, weights=None, **kwargs):
    """NumPy's, of arguments promoted as JAX does: integers beside float32 are float32."""
    dtype = lattice(x.dtype, *([] if weights is None else [weights.dtype]))
    dtype = np.dtype("float64") if dtype.kind in "iu" else dtype
    return np.average(x.astype(dtype), axis, None if weights is None else weights.astype(dtype), **kwargs)


FUNCTIONS += [
    Function(
        "average",
        averages(),
        average_on_lattice,
        grad_tolerance=1e-5,
        tolerance=64,
        errors=[
            wrong_axis("average"),
            repeated_axis("average"),
            Wrong(
                lambda np: np.average(A, weights=np.ones(2)),
                TypeError,
                r"^numpy\.average: axis must be specified.*f64\[2,3\].*f64\[2\]",
            ),
            Wrong(lambda np: np.average(A, 0, np.ones(3)), ValueError, r"^numpy\.average: .*f64\[3\].*f64\[2,3\]"),
            Wrong(
                lambda np: np.average(A, weights=0 * A),
                ZeroDivisionError,
                r"^numpy\.average: .*sum to zero.*f64\[2,3\]",
            ),
        ],
    ),
]


# ---- Without NaN -------------------------------------------------------------------------------------------

ALL_NAN = np.full((2, 3), np.nan)

FUNCTIONS += [
    *(
        Function(
            name,
            reductions(where=True, initial=True, dtype=("float64", "complex128"), special=NAN).filter(defined),
            tolerance=64,
            grad_tolerance=1e-5,
            errors=[*common(name), *bad_where(name), bad_dtype(name)],
        )
        for name in ("nansum", "nanprod")
    ),
    *(
        Function(
            name,
            reductions(where="initial", initial=True, empty=False, special=NAN[:1]),
            errors=[*common(name), *bad_where(name, initial=0), *empty(name, NO_IDENTITY)],
        )
        for name in ("nanmax", "nanmin")
    ),
    *(
        Function(
            name,
            reductions(several=False, special=NAN, empty=False).filter(lambda c: not _all_nan(c)),
            gradient=False,
            errors=[
                *common(name, several=False),
                *empty(name, f"attempt to get {name[3:]} of an empty sequence"),
                wrong(name, ValueError, r"All-NaN slice encountered.*f64\[2,3\]", ALL_NAN),
                wrong(name, ValueError, r"All-NaN slice encountered.*f64\[2,3\]", ALL_NAN, axis=1),
            ],
        )
        for name in ("nanargmax", "nanargmin")
    ),
    Function(
        "nanmean",
        reductions(where=True, dtype=MEAN_DTYPES, special=NAN).filter(defined),
        errors=[*common("nanmean"), *bad_where("nanmean"), bad_dtype("nanmean")],
    ),
    *(
        Function(
            name,
            reductions(where=True, ddof=True, special=NAN[:1]),
            tolerance=64,
            grad_tolerance=1e-4,
            errors=[*common(name), *bad_where(name), bad_dtype(name)],
        )
        for name in ("nanvar", "nanstd")
    ),
    *(
        Function(
            name,
            cumulative(special=NAN).filter(defined),
            tolerance=64,
            grad_tolerance=1e-5,
            errors=[*common(name, several=False), bad_dtype(name)],
        )
        for name in ("nancumsum", "nancumprod")
    ),
]


def _all_nan(call):
    x, d = call.args[0], call.kwargs["axis"]
    return x.dtype.kind in "fc" and np.isnan(x).all(axis=d).any()
