"""Choosing, clipping, rounding, comparing, taking apart; replacing by index or mask; bits; functions of functions."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    REALS,
    Call,
    Function,
    arrays,
    axes,
    axis,
    broadcastable,
    lattice,
    on_lattice,
    shapes,
    wrong,
)
from tests.numpy_drawn.ufuncs import one, two

A = np.ones((2, 3))
B = np.ones((2, 3), bool)
C = np.ones((2, 3), complex)
K = np.ones((2, 3), int)
V = np.array([3.0, 1.0, 2.0])
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 0.5)
NONEMPTY = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)


def after_first(function, floats=False):
    """NumPy's function, with all but the first argument promoted as JAX does."""
    return lambda x, *rest, **kwargs: on_lattice(lambda *promoted: function(x, *promoted, **kwargs), floats)(*rest)


# ---- Choosing ------------------------------------------------------------------------------------------------


@st.composite
def choices(draw):
    condition, left, right = draw(broadcastable(3))
    dtypes = (draw(st.sampled_from(ALL)),) if draw(st.booleans()) else ALL
    c = draw(arrays(condition, draw(st.sampled_from((BOOL, ("int32", "float64"))))))
    x = draw(arrays(left, dtypes, special=SPECIAL[:2] if set(dtypes) <= set(FLOATS) else ()))
    y = draw(arrays(right, dtypes))
    return Call((c, x, y))


@st.composite
def selections(draw):
    n = draw(st.integers(1, 3))
    all_shapes = draw(broadcastable(2 * n))
    dtypes = (draw(st.sampled_from(ALL)),) if draw(st.booleans()) else ALL
    conditions = [draw(arrays(s, BOOL)) for s in all_shapes[:n]]
    values = [draw(arrays(s, dtypes)) for s in all_shapes[n:]]
    return Call((conditions, values), {"default": 1} if draw(st.booleans()) else {})


def select_on_lattice(conditions, values, default=0):
    dtype = lattice(*(v.dtype for v in values), *(["int8"] if all(v.dtype == bool for v in values) else []))
    if all(v.dtype == bool for v in values):
        dtype = np.dtype("int64")  # a Python integer beside booleans
    return np.select(conditions, [v.astype(dtype) for v in values], default)


@st.composite
def pieces(draw):
    x = draw(arrays(shapes(1), FLOATS))
    n = draw(st.integers(1, 3))
    conditions = [draw(arrays(x.shape, BOOL)) for _ in range(n)]
    functions = [draw(st.sampled_from((np.negative, np.square, 2.0, -1))) for _ in range(n + draw(st.integers(0, 1)))]
    return Call((x, conditions, functions), fixed=(2,))


@st.composite
def picks(draw):
    n = draw(st.integers(1, 4))
    index, *where = draw(broadcastable(n + 1))
    mode = draw(st.sampled_from(("wrap", "clip", "raise")))
    low, high = (0, n - 1) if mode == "raise" else (-3, 6)
    dtypes = (draw(st.sampled_from(ALL)),)
    return Call(
        (draw(arrays(index, ("int64", "int8"), low=low, high=high)), [draw(arrays(s, dtypes)) for s in where]),
        {"mode": mode},
        fixed=(0,) if mode == "raise" else (),
    )


@st.composite
def clips(draw):
    full, low, high = draw(broadcastable(3))
    dtypes = draw(st.sampled_from((INTEGERS[:4], FLOATS, ("float32",), ("int8",), COMPLEX)))
    special = SPECIAL[:3] if set(dtypes) <= set(FLOATS) else ()
    x = draw(arrays(full, dtypes, special=special))
    numbers = st.sampled_from((None, 0, 1))
    bounds = [draw(arrays(s, dtypes)) if draw(st.booleans()) else draw(numbers) for s in (low, high)]
    assume(any(b is not None for b in bounds))
    return Call((x, *bounds))


CHOOSING = [
    Function(
        "where",
        choices(),
        after_first(np.where),
        tolerance=0,
        errors=[
            wrong("where", ValueError, r"broadcast together with shapes f64\[2,3\], f64\[2\]", B, A, V[:2]),
            wrong("where", ValueError, r"either both or neither of x and y", B, A),
            wrong("where", ValueError, r"size and fill_value", B, A, A, size=2, alone="JAX's parameter"),
        ],
    ),
    Function("where:nonzero", st.builds(Call, st.tuples(arrays(shapes(1)))), gradient=False, jit=False),
    Function(
        "select",
        selections(),
        select_on_lattice,
        tolerance=0,
        errors=[
            wrong("select", ValueError, r"same length.*1.*2", [B], [A, A]),
            wrong("select", ValueError, "empty condition list", [], []),
            wrong("select", TypeError, r"i64\[2,3\].*bool|bool.*i64\[2,3\]", [K], [A]),
            wrong("select", ValueError, r"broadcast together with shapes", [B], [V[:2]]),
        ],
    ),
    Function(
        "piecewise",
        pieces(),
        tolerance=0,
        errors=[
            wrong(
                "piecewise",
                ValueError,
                r"2 condition\(s\), either 2 or 3 functions.*got 1",
                A,
                [B, B],
                [1],
            ),
        ],
    ),
    Function(
        "choose",
        picks(),
        tolerance=0,
        errors=[
            wrong("choose", ValueError, r"invalid entry in choice array: 3", np.array([0, 3]), [V[:2], V[:2]]),
            wrong("choose", TypeError, r"f64\[3\].*'safe'", V, [V, V]),
            wrong("choose", ValueError, r"mode.*'x'", np.array([0]), [V], mode="x"),
            wrong("choose", ValueError, r"broadcast together", np.array([0, 0]), [V]),
            wrong("choose", NotImplementedError, r"immutable", np.array([0]), [V], out=V, alone="immutable"),
        ],
    ),
    Function(
        "clip",
        clips(),
        lambda x, low, high: np.clip(x, low, high),
        tolerance=0,
        errors=[
            wrong(
                "clip",
                ValueError,
                r"broadcast together with shapes f64\[2\], f64\[2,3\]",
                A,
                V[:2],
                3,
            ),
            wrong("clip", TypeError, r"'abc' of type str", A, "abc", 3),
        ],
    ),
    Function(
        "nan_to_num",
        st.builds(
            Call,
            st.tuples(arrays(special=SPECIAL)),
            st.sampled_from(({}, {"nan": 7.0}, {"posinf": 1.0, "neginf": -1.0})),
        ),
        gradient=False,
        errors=[wrong("nan_to_num", TypeError, r"'abc' of type str", "abc", alone="strings are arrays in NumPy")],
    ),
]

# ---- Rounding, and parts of numbers --------------------------------------------------------------------------


@st.composite
def roundings(draw):
    dtypes = draw(st.sampled_from((ALL[1:], FLOATS, COMPLEX)))
    special = SPECIAL if set(dtypes) <= set(FLOATS) else ()
    x = draw(arrays(dtypes=dtypes, special=special, low=-100, high=100))
    return Call((x, draw(st.integers(-2, 3))), fixed=(1,))


def real_only(name):
    return wrong(name, TypeError, r"c128\[2,3\]", C)


PARTS = [
    Function(
        "round",
        roundings(),
        gradient=False,
        errors=[
            wrong("round", TypeError, r"integer.*1\.5", A, 1.5),
            wrong("round", NotImplementedError, "immutable", A, out=A, alone="immutable"),
        ],
    ),
    Function("divmod", two(REALS, special=(1.0, 2.5)), on_lattice(np.divmod), gradient=False, errors=[
        wrong("divmod", ValueError, r"broadcast together with shapes f64\[2,3\], f64\[2\]", A, V[:2]),
        wrong("divmod", TypeError, r"c128\[2,3\]", A, C),
    ]),
    Function("modf", one(BOOL + REALS), on_lattice(np.modf, floats=True), errors=[real_only("modf")]),
    Function(
        "frexp",
        one(BOOL + REALS),
        lambda x: _frexp(x),
        gradient=False,
        errors=[real_only("frexp")],
    ),
    Function(
        "angle",
        one(ALL, special=SPECIAL[:3]).flatmap(lambda c: st.booleans().map(lambda deg: Call(c.args, {"deg": deg}))),
        on_lattice(np.angle, floats=True),
        grad_tolerance=1e-3,
    ),
    Function("iscomplex", one(ALL), gradient=False),
    Function("isreal", one(ALL), gradient=False),
    Function("iscomplexobj", one(ALL), gradient=False),
    Function("isrealobj", one(ALL), gradient=False),
    Function("iterable", one(ALL), lambda x: x.ndim > 0, gradient=False, jit=False),
    Function(
        "isscalar",
        st.sampled_from((1, 1.5, "abc", None, [1], 2j, np.float64(3))).map(lambda x: Call((x,))),
        lambda x: np.isscalar(x) or getattr(x, "ndim", None) == 0,
        gradient=False,
        jit=False,
    ),
]  # fmt: skip


def _frexp(x):
    mantissa, exponent = np.frexp(x if x.dtype.kind == "f" else x.astype("f8"))
    return mantissa, np.where(np.isfinite(mantissa), exponent, 0)  # else it is what the platform says


# ---- Questions -----------------------------------------------------------------------------------------------


@st.composite
def neighbours(draw, broadcasts=True):
    x, y = draw(two(ALL, special=(np.nan, np.inf, -np.inf, 0.0, 1.0), scalars=False)).args
    if draw(st.booleans()):
        with np.errstate(invalid="ignore"):
            y = x + np.array(draw(st.sampled_from((0, 1e-9, 1e-6)))).astype(x.dtype)
    return Call((x, y), {"equal_nan": True} if draw(st.booleans()) else {})


TOLERANCES = st.sampled_from(({}, {"rtol": 0.5}, {"atol": 1.0, "rtol": 0.0}))

QUESTIONS = [
    *(
        Function(
            name,
            neighbours().flatmap(lambda c: TOLERANCES.map(lambda t: Call(c.args, c.kwargs | t))),
            on_lattice(getattr(np, name), floats=True),
            gradient=False,
            errors=[wrong(name, ValueError, r"broadcast together with shapes f64\[2,3\], f64\[2\]", A, V[:2])],
        )
        for name in ("isclose", "allclose")
    ),
    Function("array_equal", neighbours(), on_lattice(np.array_equal), gradient=False),
    Function("array_equiv", neighbours().map(lambda c: Call(c.args)), on_lattice(np.array_equiv), gradient=False),
]

# ---- Replacing -----------------------------------------------------------------------------------------------


def changed(name):
    """NumPy's function changes its argument."""

    def reference(x, *rest, inplace, **kwargs):
        out = x.copy()
        getattr(np, name)(out, *rest, **kwargs)
        return out

    return reference


@st.composite
def placements(draw):
    x = draw(arrays(NONEMPTY))
    values = draw(arrays(st.tuples(st.integers(1, 5)), (x.dtype.name,)))
    return Call((x, draw(arrays(x.shape, BOOL)), values), {"inplace": False})


@st.composite
def puts(draw):
    x = draw(arrays(NONEMPTY))
    mode = draw(st.sampled_from(("raise", "wrap", "clip")))
    low, high = (-x.size, x.size - 1) if mode == "raise" else (-9, 9)
    distinct = np.unique(draw(arrays(st.tuples(st.integers(0, 4)), ("int64",), low=low, high=high)) % x.size)
    values = draw(arrays(st.tuples(st.integers(1, 5)), (x.dtype.name,)))
    return Call((x, distinct, values), {"mode": mode, "inplace": False})


@st.composite
def puts_along(draw):
    x = draw(arrays(NONEMPTY))
    d = draw(axis(x.ndim))
    n = x.shape[d]
    order = np.argsort(np.random.default_rng(draw(st.integers(0, 9))).random(x.shape), d)
    indices = np.take(order, np.arange(draw(st.integers(1, n))), d)
    values = draw(arrays(indices.shape, (x.dtype.name,)) | arrays((), (x.dtype.name,)))
    return Call((x, indices, values, d), {"inplace": False}, fixed=(3,))


INPLACE = {"inplace": False, "alone": "without inplace= ours fails"}


def immutable(name, *args):
    return wrong(name, ValueError, "immutable.*inplace=False", *args, alone="immutable")


REPLACING = [
    Function(
        "place",
        placements(),
        changed("place"),
        tolerance=0,
        errors=[
            immutable("place", A, B, V),
            wrong("place", ValueError, r"bool\[2,2\].*f64\[2,3\]", A.copy(), B[:, :2], V, **INPLACE),
            wrong(
                "place",
                ValueError,
                r"from an empty array.*f64\[2,3\]",
                A,
                B,
                V[:0],
                inplace=False,
                alone="inplace=",
            ),
        ],
    ),
    Function(
        "putmask",
        placements(),
        changed("putmask"),
        tolerance=0,
        errors=[
            immutable("putmask", A, B, V),
            wrong("putmask", ValueError, r"bool\[2,2\].*f64\[2,3\]", A, B[:, :2], V, **INPLACE),
        ],
    ),
    Function(
        "copyto",
        placements().map(lambda c: Call((c.args[0], c.args[0][..., ::-1]), {"where": c.args[1], "inplace": False})),
        changed("copyto"),
        tolerance=0,
        errors=[
            immutable("copyto", A, A),
            wrong("copyto", ValueError, r"f64\[2\].*broadcast.*\(2, 3\)", A, V[:2], **INPLACE),
        ],
    ),
    Function(
        "put",
        puts(),
        changed("put"),
        tolerance=0,
        errors=[
            immutable("put", A, [0], V),
            wrong(
                "put",
                IndexError,
                r"index 6 is out of bounds for axis 0 with size 6",
                A,
                [6],
                V,
                inplace=False,
                alone="inplace=",
            ),
            wrong("put", ValueError, r"mode.*'x'", A, [0], V, mode="x", **INPLACE),
            wrong("put", TypeError, r"f64\[1\].*'safe'", A, np.array([0.0]), V, **INPLACE),
        ],
    ),
    Function(
        "put_along_axis",
        puts_along(),
        changed("put_along_axis"),
        tolerance=0,
        errors=[
            immutable("put_along_axis", A, K, A, 0),
            wrong(
                "put_along_axis",
                AxisError,
                r"axis 2 is out of bounds.*f64\[2,3\]",
                A,
                K,
                A,
                2,
                inplace=False,
                alone="inplace=",
            ),
            wrong(
                "put_along_axis",
                ValueError,
                r"same number of dimensions.*i64\[1\].*f64\[2,3\]",
                A,
                np.array([0]),
                1.0,
                0,
                inplace=False,
                alone="inplace=",
            ),
            wrong("put_along_axis", IndexError, r"integer.*f64\[2,3\]", A, A, 1.0, 0, **INPLACE),
        ],
    ),
]

# ---- Bits ----------------------------------------------------------------------------------------------------


@st.composite
def bits(draw, dtypes, count=False):
    x = draw(arrays(shapes(1), dtypes, low=0, high=255 if dtypes == ("uint8",) else 1))
    kwargs = {"axis": draw(axis(x.ndim) | st.none()), "bitorder": draw(st.sampled_from(("big", "little")))}
    if count and draw(st.booleans()):
        n = 8 * (x.size if kwargs["axis"] is None else x.shape[kwargs["axis"]])
        kwargs["count"] = draw(st.integers(-n, n + 5 if x.size else n))  # NumPy fills empty ones with anything
    return Call((x,), kwargs)


BITS = [
    Function(
        "packbits",
        bits((*BOOL, *INTEGERS)),
        gradient=False,
        errors=[
            wrong("packbits", TypeError, r"integer or boolean.*f64\[2,3\]", A),
            wrong("packbits", ValueError, r"'middle'", K, bitorder="middle"),
            wrong("packbits", AxisError, r"axis 2 is out of bounds.*i64\[2,3\]", K, axis=2),
        ],
    ),
    Function(
        "unpackbits",
        bits(("uint8",), count=True),
        gradient=False,
        errors=[
            wrong("unpackbits", TypeError, r"unsigned byte data type.*i64\[2,3\]", K),
            wrong("unpackbits", ValueError, r"'middle'", K.astype("u1"), bitorder="middle"),
            wrong(
                "unpackbits",
                ValueError,
                "-count larger than number of elements.*-25",
                K.astype("u1"),
                axis=1,
                count=-25,
            ),
        ],
    ),
]

# ---- Functions of functions ----------------------------------------------------------------------------------


@st.composite
def along(draw):
    x = draw(arrays(NONEMPTY, FLOATS))
    function = draw(st.sampled_from((lambda v: v[0] * v, lambda v: v.sum(), lambda v: v[:, None] * v[None, :])))
    return Call((function, draw(axis(x.ndim)), x), fixed=(0, 1))


@st.composite
def over(draw):
    x = draw(arrays(NONEMPTY, FLOATS))
    chosen = draw(axes(x.ndim, none=False))
    return Call((draw(st.sampled_from((lambda a, d: a.sum(d), lambda a, d: a.cumsum(d)))), x, chosen), fixed=(0, 2))


FUNCTIONALS = [
    Function(
        "apply_along_axis",
        along(),
        grad_tolerance=1e-5,
        errors=[wrong("apply_along_axis", AxisError, r"axis 2 is out of bounds.*f64\[2,3\]", np.sum, 2, A)],
    ),
    Function(
        "apply_over_axes",
        over(),
        grad_tolerance=1e-5,
        errors=[
            wrong("apply_over_axes", ValueError, r"correct shape.*f64\[\].*f64\[2,3\]", lambda a, d: a.sum(), A, 0),
            wrong(
                "apply_over_axes",
                AxisError,
                r"axis 2 is out of bounds.*f64\[2,3\]",
                lambda a, d: a.sum(d),
                A,
                2,
            ),
        ],
    ),
]

TESTED_ELSEWHERE = {
    "vectorize": "test_numpy_elementwise.py: it returns functions",
    "frompyfunc": "test_numpy_elementwise.py: it returns functions",
}

FUNCTIONS = [*CHOOSING, *PARTS, *QUESTIONS, *REPLACING, *BITS, *FUNCTIONALS]
