"""Arrays from values, shapes and other arrays; evenly spaced values and grids; indices."""

import numpy as np
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATS,
    INEXACT,
    INTEGERS,
    NUMBERS,
    REALS,
    Call,
    Function,
    Wrong,
    arrays,
    axis,
    broadcastable,
    lattice,
    shapes,
)

A = np.ones((2, 3))
SCALARS = st.one_of(
    st.booleans(), st.integers(-100, 100), st.floats(-9, 9), st.complex_numbers(max_magnitude=9, allow_nan=False)
)
DTYPE = st.sampled_from((None, *ALL))


def fits(value, dtype):
    """Whether a Python scalar can be an element: no complex number among reals, no integer out of range."""
    dtype = None if dtype is None else np.dtype(dtype)
    if dtype is None:
        return True
    if isinstance(value, complex):
        return dtype.kind == "c"
    if isinstance(value, int) and not isinstance(value, bool) and dtype.kind in "iu":
        return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
    return not (isinstance(value, float) and dtype.kind == "u" and value < 0)


@st.composite
def of_shape(draw):
    shape = draw(st.one_of(shapes(), st.integers(0, 5)))
    return Call((shape,), draw(st.sampled_from(({}, {"dtype": draw(DTYPE)}))), fixed=(0,))


@st.composite
def filled(draw):
    shape = draw(st.one_of(shapes(), st.integers(0, 5)))
    dtype = draw(DTYPE)
    value = draw(SCALARS.filter(lambda v: fits(v, dtype)))
    if draw(st.booleans()) and isinstance(shape, tuple):
        value = draw(arrays(shape=tuple(n if draw(st.booleans()) else 1 for n in shape), dtypes=REALS, low=0))
    return Call((shape, value), {"dtype": dtype}, fixed=(0,))


@st.composite
def like(draw, value=False):
    x = draw(arrays())
    kwargs = {"dtype": draw(DTYPE)} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        kwargs["shape"] = draw(st.one_of(shapes(), st.integers(0, 5)))
    if not value:
        return Call((x,), kwargs)
    return Call((x, draw(SCALARS.filter(lambda v: fits(v, kwargs.get("dtype") or x.dtype)))), kwargs)


@st.composite
def nested(draw):
    """Numbers, lists of lists of numbers, lists of arrays, arrays."""
    kind = draw(st.sampled_from(("scalar", "list", "arrays", "array")))
    if kind == "scalar":
        x = draw(SCALARS)
    elif kind == "list":
        x = draw(arrays()).tolist()
    elif kind == "arrays":
        shape, dtype = draw(shapes(most=2)), (draw(st.sampled_from(ALL)),)
        x = [draw(arrays(shape=shape, dtypes=dtype)) for _ in range(draw(st.integers(1, 3)))]
    else:
        x = draw(arrays())
    return Call((x,), {"ndmin": draw(st.integers(0, 4))})


@st.composite
def typed(draw):
    x = draw(arrays(low=0, high=100))
    kind = {"c": COMPLEX + BOOL, "f": FLOATS + COMPLEX + ("int32", "int64")}.get(x.dtype.kind, ALL)
    return Call((x, draw(st.sampled_from(kind))), fixed=(1,))


@st.composite
def eyes(draw):
    n = draw(st.integers(0, 5))
    kwargs = {"k": draw(st.integers(-6, 6)), "dtype": draw(st.sampled_from(ALL))}
    if draw(st.booleans()):
        kwargs["M"] = draw(st.integers(0, 5))
    return Call((n,), kwargs, fixed=(0,))


@st.composite
def triangles(draw):
    return Call((draw(arrays(shape=shapes(least=1))), draw(st.integers(-5, 5))), fixed=(1,))


@st.composite
def vanders(draw):
    x = draw(arrays(shape=shapes(1, 1), dtypes=ALL))
    return Call((x,), {"N": draw(st.sampled_from((None, 0, 1, 3))), "increasing": draw(st.booleans())})


def at_least_int64(call, dtype):
    return lattice(call.args[0].dtype, "int64")


@st.composite
def aranges(draw):
    number = st.one_of(st.integers(-9, 9), st.sampled_from((-2.5, -0.5, 0.25, 1.75, 6.0)))
    args = [draw(number) for _ in range(draw(st.integers(1, 3)))]
    if len(args) == 3 and args[2] == 0:
        args[2] = 1
    whole = all(isinstance(x, int) for x in args)
    kwargs = {}
    if draw(st.booleans()):
        kwargs["dtype"] = draw(st.sampled_from(("int8", "int64", *INEXACT) if whole else INEXACT))
    return Call(tuple(args), kwargs, fixed=tuple(range(len(args))))


@st.composite
def spaced(draw, low=-3.0, dtypes=NUMBERS, whole=True):
    shapes_ = draw(broadcastable(2, most=2))
    typed = draw(st.booleans())  # NumPy computes in the type of the arguments, and rounds to this one
    dtypes = [d for d in dtypes if not typed or d in ("float64", "complex128", "int64")]
    start, stop = (draw(arrays(shape=s, dtypes=dtypes, low=low)) for s in shapes_)
    ndim = max(map(len, shapes_)) + 1
    kwargs = {"num": draw(st.integers(0, 6)), "endpoint": draw(st.booleans()), "axis": draw(axis(ndim))}
    if typed:
        real = start.dtype.kind != "c" and stop.dtype.kind != "c"
        kwargs["dtype"] = draw(st.sampled_from((("int32",) if whole else ()) + FLOATS if real else COMPLEX))
    return Call((start, stop), kwargs)


def wide(call, dtype):
    """float64 of integers; a dtype that is asked for is honoured."""
    found = lattice(*(x.dtype for x in call.args))
    return np.dtype(call.kwargs.get("dtype") or (found if found.kind in "fc" else float))


@st.composite
def meshes(draw):
    xs = [draw(arrays(shape=shapes(0, 1))) for _ in range(draw(st.integers(0, 3)))]
    return Call(tuple(xs), {"indexing": draw(st.sampled_from(("xy", "ij"))), "sparse": draw(st.booleans())})


@st.composite
def ixes(draw):
    return Call(tuple(draw(arrays(shape=shapes(1, 1), dtypes=INTEGERS)) for _ in range(draw(st.integers(0, 3)))))


@st.composite
def grids(draw):
    kwargs = {"sparse": draw(st.booleans())}
    if draw(st.booleans()):
        kwargs["dtype"] = draw(st.sampled_from(REALS))
    return Call((draw(shapes(least=1)),), kwargs, fixed=(0,))


def drawn(*strategies, **kwargs):
    """Calls with these arguments, none traced."""
    return st.tuples(*strategies).map(lambda args: Call(args, kwargs, fixed=tuple(range(len(args)))))


def triangle_of(function):
    return lambda shape, k: function(*shape, k=k) if False else function(shape[0], k, shape[1])


N, K = st.integers(0, 5), st.integers(-6, 6)
FLOATS_TOO = "NumPy's arange takes floats"


def wrong_shapes(name, *more):
    function = lambda np: getattr(np, name)  # noqa: E731
    return [
        Wrong(lambda np: function(np)((2, -1), *more), ValueError, rf"{name}.*negative dimensions are not allowed"),
        Wrong(lambda np: function(np)(2.5, *more), TypeError, rf"{name}.*2\.5"),
        Wrong(lambda np: function(np)("a", *more), TypeError, rf"{name}"),
        Wrong(lambda np: function(np)((2, 3), *more, dtype="no dtype"), TypeError, rf"{name}.*no dtype"),
        Wrong(lambda np: function(np)((2, 3), *more, dtype=object), TypeError, rf"{name}.*object", alone="no objects"),
    ]


FUNCTIONS = [
    *(Function(n, of_shape(), errors=wrong_shapes(n)) for n in ("zeros", "ones")),
    Function("empty", of_shape(), reference=np.zeros, errors=wrong_shapes("empty")),
    Function(
        "full",
        filled(),
        errors=[
            *wrong_shapes("full", 1),
            Wrong(
                lambda np: np.full((2, 2), A), ValueError, r"full.*could not broadcast.*f64\[2,3\] into shape \(2, 2\)"
            ),
            Wrong(lambda np: np.full(2, 300, "int8"), OverflowError, r"full.*300.*int8"),
            Wrong(lambda np: np.full(2, 1j, "float32"), TypeError, r"full.*complex.*float32", alone="it warns"),
        ],
    ),
    *(
        Function(
            n,
            like(),
            errors=[
                Wrong(lambda np, n=n: getattr(np, n)(A, shape=(-1,)), ValueError, rf"{n}.*negative"),
                Wrong(lambda np, n=n: getattr(np, n)(A, dtype="no dtype"), TypeError, rf"{n}.*no dtype"),
            ],
        )
        for n in ("zeros_like", "ones_like")
    ),
    Function("empty_like", like(), reference=np.zeros_like),
    Function(
        "full_like",
        like(value=True),
        errors=[Wrong(lambda np: np.full_like(A, [1, 2]), ValueError, r"full.*broadcast.*i64\[2\].*\(2, 3\)")],
    ),
    Function(
        "array",
        nested(),
        errors=[
            Wrong(lambda np: np.array([[1, 2], [3]]), ValueError, r"array.*inhomogeneous"),
            Wrong(lambda np: np.array([300], "int8"), OverflowError, r"array.*300.*int8"),
            Wrong(lambda np: np.array([-1], "uint8"), OverflowError, r"array.*-1.*uint8"),
            Wrong(lambda np: np.array(300, "uint8"), OverflowError, r"300.*uint8"),
            Wrong(lambda np: np.array(1j, "float32"), TypeError, r"complex.*float32"),
            Wrong(lambda np: np.array([1j], "float32"), TypeError, r"array.*complex.*float32"),
            Wrong(lambda np: np.array(["a"]), TypeError, r"array.*'a'", alone="no strings"),
            Wrong(lambda np: np.array({}), TypeError, r"array.*{}", alone="no objects"),
            Wrong(
                lambda np: np.array(1, order="Q"), ValueError, r"array: order must be one of 'C', 'F', 'A' or 'K'.*'Q'"
            ),
            Wrong(lambda np: np.array(A, order="F"), NotImplementedError, r"array.*order='F'", alone="it has a layout"),
            Wrong(lambda np: np.array([1], dtype="no dtype"), TypeError, r"array.*no dtype"),
        ],
    ),
    Function(
        "asarray",
        nested().map(lambda call: Call(call.args)),
        errors=[
            Wrong(lambda np: np.asarray([1, 2], copy=False), ValueError, r"asarray.*copy=False"),
            Wrong(lambda np: np.asarray([[1], 2]), ValueError, r"asarray.*inhomogeneous"),
        ],
    ),
    Function("asarray:dtype", typed(), gradient=False),
    Function(
        "astype",
        typed(),
        gradient=False,
        errors=[
            Wrong(lambda np: np.astype(np.asarray(A), "no dtype"), TypeError, r"astype.*no dtype"),
        ],
    ),
    Function("copy", arrays().map(lambda x: Call((x,)))),
    Function(
        "eye",
        eyes(),
        errors=[
            Wrong(lambda np: np.eye(-1), ValueError, r"eye.*negative"),
            Wrong(lambda np: np.eye(2.5), TypeError, r"eye.*2\.5"),
            Wrong(lambda np: np.eye(2, k="a"), TypeError, r"eye.*k.*'a'"),
        ],
    ),
    Function("identity", st.tuples(N, st.sampled_from(ALL)).map(lambda a: Call(a[:1], {"dtype": a[1]}, (0,)))),
    Function("tri", eyes(), errors=[Wrong(lambda np: np.tri(2.5), TypeError, r"tri.*2\.5", alone=FLOATS_TOO)]),
    *(
        Function(
            n,
            triangles(),
            errors=[
                Wrong(
                    lambda np, n=n: getattr(np, n)(np.asarray(1.0)),
                    ValueError,
                    rf"{n}.*f64\[\]",
                    alone="a TypeError of another function",
                ),
                Wrong(lambda np, n=n: getattr(np, n)(A, 1.5), TypeError, rf"{n}.*k.*1\.5", alone=FLOATS_TOO),
            ],
        )
        for n in ("tril", "triu")
    ),
    Function(
        "vander",
        vanders(),
        dtype=at_least_int64,
        errors=[
            Wrong(lambda np: np.vander(A), ValueError, r"vander.*one-dimensional.*f64\[2,3\]"),
            Wrong(lambda np: np.vander([1, 2], -1), ValueError, r"vander.*negative.*-1"),
        ],
    ),
    Function(
        "arange",
        aranges(),
        errors=[
            Wrong(lambda np: np.arange(1, 5, 0), ZeroDivisionError, r"arange.*step.*0"),
            Wrong(lambda np: np.arange("a"), TypeError, r"arange.*start.*'a'"),
            Wrong(lambda np: np.arange(0, np.nan), ValueError, r"arange.*(nan|cannot compute length)"),
        ],
    ),
    Function(
        "linspace",
        spaced(),
        dtype=wide,
        errors=[
            Wrong(lambda np: np.linspace(0, 1, -1), ValueError, r"linspace.*-1.*must be non-negative"),
            Wrong(lambda np: np.linspace(0, 1, 2.5), TypeError, r"linspace.*2\.5"),
            Wrong(lambda np: np.linspace(A, 1, axis=3), AxisError, r"linspace.*axis 3 is out of bounds"),
            Wrong(lambda np: np.linspace(A, np.ones(2)), ValueError, r"linspace.*f64\[2,3\].*f64\[2\]"),
        ],
    ),
    Function(
        "linspace:retstep",
        spaced(dtypes=("float64",)).map(
            lambda c: Call(c.args, {k: v for k, v in c.kwargs.items() if k != "dtype"} | {"retstep": True})
        ),
    ),
    Function(
        "logspace",
        spaced(whole=False),
        dtype=wide,
        tolerance=64,
        errors=[
            Wrong(lambda np: np.logspace(0, 1, -1), ValueError, r"logspace.*-1.*must be non-negative"),
            Wrong(lambda np: np.logspace(A, 1, axis=3), AxisError, r"logspace.*axis 3 is out of bounds"),
        ],
    ),
    Function(
        "geomspace",
        spaced(low=0.5, dtypes=INEXACT, whole=False),
        dtype=wide,
        tolerance=64,
        errors=[
            Wrong(lambda np: np.geomspace(0, 1), ValueError, r"geomspace.*sequence cannot include zero"),
            Wrong(lambda np: np.geomspace(1, 2, -1), ValueError, r"geomspace.*-1.*must be non-negative"),
        ],
    ),
    Function(
        "meshgrid",
        meshes(),
        errors=[
            Wrong(lambda np: np.meshgrid([1], [2], indexing="ab"), ValueError, r"meshgrid.*indexing.*'xy'.*'ij'.*'ab'"),
        ],
    ),
    Function(
        "indices",
        grids(),
        gradient=False,
        errors=[
            Wrong(lambda np: np.indices((2, -1)), ValueError, r"indices.*negative dimensions"),
            Wrong(lambda np: np.indices((2, 1.5)), TypeError, r"indices.*1\.5"),
        ],
    ),
    Function(
        "ix_",
        ixes(),
        gradient=False,
        errors=[
            Wrong(lambda np: np.ix_(A), ValueError, r"ix_.*1.*dimension.*f64\[2,3\]|ix_.*vectors.*f64\[2,3\]"),
        ],
    ),
    Function(
        "ix_:masks",
        st.lists(arrays(shape=shapes(1, 1), dtypes=BOOL), min_size=1, max_size=3).map(lambda x: Call(tuple(x))),
        jit=False,
        gradient=False,
    ),
    Function("diag_indices", drawn(N, st.integers(1, 3))),
    Function(
        "diag_indices_from",
        st.tuples(N.filter(bool), st.integers(2, 3))
        .flatmap(lambda a: arrays(shape=(a[0],) * a[1]))
        .map(lambda x: Call((x,))),
        gradient=False,
        errors=[
            Wrong(lambda np: np.diag_indices_from(np.ones(2)), ValueError, r"diag_indices_from.*f64\[2\]"),
            Wrong(lambda np: np.diag_indices_from(A), ValueError, r"diag_indices_from.*f64\[2,3\]"),
        ],
    ),
    *(
        Function(
            n,
            drawn(N, K, st.one_of(st.none(), N)),
            errors=[
                Wrong(lambda np, n=n: getattr(np, n)(2.5), TypeError, rf"{n}", alone=FLOATS_TOO),
            ],
        )
        for n in ("tril_indices", "triu_indices")
    ),
    *(
        Function(
            n,
            triangles().filter(lambda c: c.args[0].ndim == 2),
            gradient=False,
            errors=[
                Wrong(lambda np, n=n: getattr(np, n)(np.ones(2)), ValueError, rf"{n}.*\(2,\)|{n}.*f64\[2\]"),
            ],
        )
        for n in ("tril_indices_from", "triu_indices_from")
    ),
    Function("fromfunction", drawn(st.just(lambda i, j: i + 2 * j), st.tuples(N.filter(bool), N.filter(bool)))),
]

TESTED_ELSEWHERE = {
    **dict.fromkeys(
        (
            "asanyarray",
            "asarray_chkfinite",
            "ascontiguousarray",
            "require",
            "real_if_close",
            "common_type",
            "min_scalar_type",
            "typename",
            "mintypecode",
            "copyto",
            "putmask",
            "array2string",
            "format_float_positional",
            "format_float_scientific",
            "base_repr",
            "binary_repr",
            "errstate",
            "seterr",
            "geterr",
            "genfromtxt",
            "may_share_memory",
        ),
        "test_numpy_names.py",
    ),
    **dict.fromkeys(
        ("savetxt", "savez_compressed", "loadtxt", "shares_memory", "ndenumerate"), "test_numpy_conversions.py"
    ),
    **dict.fromkeys(
        ("can_cast", "iinfo", "finfo", "isdtype", "promote_types", "issubdtype", "result_type"), "test_dtypes.py"
    ),
    "mask_indices": "test_numpy_creation.py: a function is its argument",
    "from_dlpack": "test_numpy_protocols.py",
    **dict.fromkeys(("frombuffer", "fromfile", "fromiter", "fromstring"), "test_numpy_creation.py: NumPy's readers"),
    **dict.fromkeys(("save", "savez", "load", "array_repr", "array_str"), "test_numpy_protocols.py: files and text"),
    **dict.fromkeys(("get_printoptions", "printoptions", "set_printoptions"), "NumPy's own"),
}
