"""Sorting, looking up, counting, and sets; where shapes depend on values also with a given size, as under jit."""

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
    axis,
    lattice,
    on_lattice,
    shapes,
    wrong,
)
from tests.numpy_drawn.reductions import no_array, wrong_axis

A = np.ones((2, 3))
V = np.array([3.0, 1.0, 2.0])
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0)
NONEMPTY = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)

# ---- Sorting -----------------------------------------------------------------------------------------------


@st.composite
def sorts(draw, special=SPECIAL, least=1, none=True, kinds=True):
    x = draw(arrays(shapes(least), special=special, dtypes=draw(st.sampled_from((ALL, FLOATS, COMPLEX)))))
    kwargs = {}
    if draw(st.booleans()):
        kwargs["axis"] = draw(axis(x.ndim) | st.none() if none else axis(x.ndim))
    if kinds and draw(st.booleans()):
        kwargs |= draw(st.sampled_from(({"kind": "stable"}, {"stable": True}, {"kind": "mergesort"})))
    return Call((x,), kwargs)


@st.composite
def lexsorts(draw):
    shape = draw(shapes(1, 2))
    keys = [draw(arrays(shape, REALS, special=SPECIAL, low=0, high=2)) for _ in range(draw(st.integers(1, 3)))]
    return Call((keys,), {"axis": draw(axis(len(shape)))})


@st.composite
def partitions(draw):
    x = draw(arrays(NONEMPTY, special=SPECIAL, dtypes=draw(st.sampled_from((REALS, FLOATS)))))
    d = draw(axis(x.ndim) | st.none())
    n = x.size if d is None else x.shape[d]
    places = st.integers(-n, n - 1)
    return Call((x, draw(places | st.lists(places, min_size=1, max_size=3))), {"axis": d}, fixed=(1,))


def parted(places):
    """The kth elements are NumPy's, smaller ones are before them, larger ones behind."""

    def compare(got, want, call):
        x, kth = call.args
        got, want = np.asarray(got[0]), np.asarray(want[0])
        d = call.kwargs["axis"]
        x, d = (x.ravel(), 0) if d is None else (x, d)
        if places:
            got, want = np.take_along_axis(x, got, d), np.take_along_axis(x, want, d)
        np.testing.assert_array_equal(np.sort(got, d), np.sort(x, d))
        n = x.shape[d]
        for k in kth if isinstance(kth, list) else [kth]:
            k %= n
            before, at, behind = np.split(np.moveaxis(got, d, 0), [k, k + 1])
            np.testing.assert_array_equal(at, np.moveaxis(want, d, 0)[k : k + 1])
            assert ((before <= at) | np.isnan(at)).all() and ((behind >= at) | np.isnan(behind)).all()

    return compare


def largest(x, k, *, axis=-1, mode="largest"):
    """NumPy's, with a stable sort; NaN are the largest."""
    places = np.argsort(x, axis, stable=True)
    if mode == "largest":
        n = x.shape[axis]
        places = np.flip(n - 1 - np.argsort(np.flip(x, axis), axis, stable=True), axis)
    places = np.take(places, np.arange(k), axis)
    return np.take_along_axis(x, places, axis), places


@st.composite
def tops(draw):
    x = draw(arrays(NONEMPTY, special=SPECIAL, dtypes=REALS))
    d = draw(axis(x.ndim))
    k = draw(st.integers(0, x.shape[d]))
    return Call((x, k), {"axis": d, "mode": draw(st.sampled_from(("largest", "smallest")))}, fixed=(1,))


def kinds(name):
    return [
        wrong(name, ValueError, r"kind.*'nonsense'", V, kind="nonsense"),
        wrong(name, ValueError, r"order", V, order="x"),
        wrong(name, TypeError, r"must be an integer.*1\.5", V, axis=1.5),
        wrong(name, AxisError, r"axis -1 is out of bounds.*0.*f64\[\]", np.float64(1))
        if name == "sort"
        else no_array(name),
    ]


SORTING = [
    Function("sort", sorts(special=()), tolerance=0, errors=[wrong_axis("sort"), no_array("sort"), *kinds("sort")]),
    Function("sort:special", sorts(), gradient=False, tolerance=0),
    Function(
        "argsort",
        sorts(kinds=False).map(lambda c: Call(c.args, c.kwargs | {"stable": True})),
        gradient=False,
        errors=[wrong_axis("argsort"), *kinds("argsort")],
    ),
    Function(
        "lexsort",
        lexsorts(),
        gradient=False,
        errors=[
            wrong("lexsort", AxisError, r"axis 2 is out of bounds.*f64\[3\]", (V, V), axis=2),
            wrong("lexsort", ValueError, r"f64\[3\], f64\[2\]", (V, V[:2])),
            wrong("lexsort", TypeError, r"at least one key|need sequence of keys", ()),
        ],
    ),
    *(
        Function(
            name,
            partitions(),
            gradient=False,
            compare=parted(name == "argpartition"),
            errors=[
                wrong(name, AxisError, r"axis 2 is out of bounds.*f64\[2,3\]", A, 1, axis=2),
                wrong(name, ValueError, r"kth\(=3\) out of bounds \(3\).*f64\[2,3\]", A, 3),
                wrong(name, TypeError, r"1\.5", A, 1.5),
            ],
        )
        for name in ("partition", "argpartition")
    ),
    Function(
        "sort_complex",
        sorts(kinds=False, special=()).map(lambda c: Call(c.args)),
        lambda x: np.sort_complex(x if x.dtype.kind in "fc" else x.astype("f8")),
        tolerance=0,
    ),
    Function(
        "top_k",
        tops(),
        largest,
        gradient=False,
        errors=[
            wrong("top_k", ValueError, r"mode.*'x'", V, 1, mode="x", alone="JAX's function"),
            wrong("top_k", ValueError, r"k=4.*out of range.*3 elements.*axis -1", V, 4, alone="JAX's function"),
            wrong("top_k", AxisError, r"axis 2 is out of bounds.*f64\[3\]", V, 1, axis=2, alone="JAX's function"),
        ],
    ),
]

# ---- Places of elements, of a size ---------------------------------------------------------------------------


def sized(values, size, fill):
    """A vector or rows cut to a size, or filled up."""
    values = values[:size]
    missing = np.full((size - len(values), *values.shape[1:]), fill, values.dtype)
    return np.concatenate([values, missing])


SIZES = st.integers(0, 6)


@st.composite
def masks(draw, least=1, size=False, fills=False):
    x = draw(arrays(shapes(least), dtypes=ALL, special=(np.nan, 0.0, -0.0), low=-1, high=1))
    kwargs = {"size": draw(SIZES)} if size else {}
    if fills and draw(st.booleans()):
        kwargs["fill_value"] = draw(st.integers(-2, 9))
    return Call((x,), kwargs)


@st.composite
def compressions(draw, size=False, flat=False):
    x = draw(arrays(st.lists(st.integers(1, 4), min_size=0 if flat else 1, max_size=3).map(tuple)))
    d = None if flat or draw(st.booleans()) else draw(axis(x.ndim))
    n = x.size if d is None else x.shape[d]
    condition = draw(arrays(x.shape if flat else (draw(st.integers(0, n)),), (*BOOL, "int32"), low=0, high=1))
    kwargs = {} if flat else {"axis": d}
    if size:
        kwargs |= {"size": draw(SIZES), "fill_value": 2}
    return Call((condition, x), kwargs)


def sized_compress(condition, x, *, axis=None, size, fill_value):
    found = np.compress(condition.ravel(), x, axis)
    d = axis or 0
    return np.moveaxis(sized(np.moveaxis(found, d, 0), size, fill_value), 0, d)


PLACES = [
    Function(
        "nonzero",
        masks(),
        gradient=False,
        jit=False,
        errors=[wrong("nonzero", ValueError, r"0d arrays.*f64\[\]", np.float64(1))],
    ),
    Function(
        "nonzero:size",
        masks(size=True, fills=True),
        lambda x, *, size, fill_value=0: tuple(sized(i, size, fill_value) for i in np.nonzero(x)),
        gradient=False,
    ),
    Function("flatnonzero", masks(least=0), gradient=False, jit=False),
    Function(
        "flatnonzero:size",
        masks(least=0, size=True, fills=True),
        lambda x, *, size, fill_value=0: sized(np.flatnonzero(x), size, fill_value),
        gradient=False,
    ),
    Function("argwhere", masks(least=0), gradient=False, jit=False),
    Function(
        "argwhere:size",
        masks(size=True, fills=True),
        lambda x, *, size, fill_value=0: sized(np.argwhere(x), size, fill_value),
        gradient=False,
    ),
    Function("extract", compressions(flat=True), gradient=False, jit=False, tolerance=0),
    Function(
        "extract:size",
        compressions(flat=True, size=True),
        lambda c, x, **kw: sized_compress(c != 0, x.ravel(), **kw),
        tolerance=0,
    ),
    Function(
        "compress",
        compressions(),
        gradient=False,
        jit=False,
        tolerance=0,
        errors=[
            wrong("compress", ValueError, r"condition must be a 1-d array.*bool\[2,3\]", A > 0, A),
            wrong("compress", AxisError, r"axis 2 is out of bounds.*f64\[2,3\]", [True], A, axis=2),
            wrong(
                "compress",
                IndexError,
                r"index 3 is out of bounds for axis 1 with size 3.*f64\[2,3\]",
                [0, 0, 0, 1],
                A,
                axis=1,
            ),
            wrong("compress", NotImplementedError, "immutable", [True], A, out=A, alone="immutable"),
        ],
    ),
    Function(
        "compress:size",
        compressions(size=True),
        lambda c, x, **kw: sized_compress(c != 0, x, **kw),
        tolerance=0,
    ),
]

# ---- Sorted arrays, counts -----------------------------------------------------------------------------------


@st.composite
def searches(draw, method=False):
    a = np.sort(draw(arrays(shapes(1, 1), REALS, special=SPECIAL)))
    v = draw(arrays(dtypes=REALS, special=SPECIAL))
    if draw(st.booleans()):
        chosen = draw(st.sampled_from(list(a))) if a.size else v  # some equal ones
        with np.errstate(invalid="ignore"):
            v = np.where(draw(arrays(v.shape, BOOL)), chosen, v).astype(a.dtype)
    kwargs = {"side": draw(st.sampled_from(("left", "right")))}
    if method:
        kwargs["method"] = draw(st.sampled_from(("scan", "scan_unrolled", "sort", "compare_all")))
    elif draw(st.booleans()) and a.size:
        order = np.random.default_rng(0).permutation(a.size)
        kwargs["sorter"] = np.argsort(order)
        a = a[order]
    return Call((a, v), kwargs)


@st.composite
def bins_of(draw):
    bins = np.sort(draw(arrays(shapes(1, 1), REALS)))
    x = draw(arrays(dtypes=REALS))
    return Call((x, bins[::-1] if draw(st.booleans()) else bins), {"right": draw(st.booleans())})


@st.composite
def counts(draw, length=False):
    x = draw(arrays(shapes(1, 1), (*INTEGERS[:4], "bool"), low=0, high=6))
    kwargs = {}
    if draw(st.booleans()):
        kwargs["weights"] = draw(arrays(x.shape, FLOATS[1:]))
        assume(x.size)  # NumPy forgets the weights
    if length:
        kwargs["length"] = draw(st.integers(0, 8))
    elif draw(st.booleans()):
        kwargs["minlength"] = draw(st.integers(0, 9))
    return Call((x,), kwargs)


@st.composite
def flat_places(draw):
    shape = draw(NONEMPTY)
    x = draw(arrays(dtypes=("int64", "int32", "uint8"), low=0, high=int(np.prod(shape)) - 1))
    return Call((x, shape), fixed=(1,))


@st.composite
def multi_places(draw):
    shape = draw(NONEMPTY)
    mode = draw(st.sampled_from(("raise", "wrap", "clip")))
    where = draw(shapes(0, 2))
    index = tuple(
        draw(arrays(where, ("int64", "int32"), low=0 if mode == "raise" else -3, high=n - 1 if mode == "raise" else 9))
        for n in shape
    )
    return Call((index, shape), {"mode": mode, "order": draw(st.sampled_from(("C", "F")))}, fixed=(1,))


def count_up_to(x, *, weights=None, length):
    out = np.bincount(x, weights)[:length] if x.size else np.zeros(0, int)
    return np.concatenate([out, np.zeros(length - len(out), out.dtype)])


SEARCHING = [
    Function(
        "searchsorted",
        searches(),
        lambda a, v, side, sorter=None: np.searchsorted(
            a.astype(lattice(a.dtype, v.dtype)), v.astype(lattice(a.dtype, v.dtype)), side, sorter
        ),
        gradient=False,
        errors=[
            wrong("searchsorted", ValueError, r"side must be.*'up'", V, V, side="up"),
            wrong("searchsorted", ValueError, r"f64\[2,3\]", A, V),
            wrong("searchsorted", ValueError, r"sorter.*i64\[2\]", V, V, sorter=np.array([0, 1])),
            wrong("searchsorted", TypeError, r"sorter.*f64\[3\]", V, V, sorter=V),
            wrong("searchsorted", ValueError, r"method.*'x'", V, V, method="x", alone="JAX's parameter"),
        ],
    ),
    Function(
        "searchsorted:method",
        searches(method=True),
        lambda a, v, side, method: np.searchsorted(
            a.astype(lattice(a.dtype, v.dtype)), v.astype(lattice(a.dtype, v.dtype)), side
        ),
        gradient=False,
    ),
    Function(
        "digitize",
        bins_of(),
        on_lattice(np.digitize),
        gradient=False,
        errors=[
            wrong("digitize", ValueError, r"monotonically.*f64\[3\]", V, V),
            wrong("digitize", ValueError, r"f64\[2,3\]", V, A),
            wrong("digitize", TypeError, r"c128\[3\]", V * 1j, np.sort(V)),
        ],
    ),
    Function(
        "bincount",
        counts(),
        gradient=False,
        jit=False,
        errors=[
            wrong("bincount", TypeError, r"f64\[3\]", V),
            wrong("bincount", ValueError, r"i64\[2,3\]", A.astype(int)),
            wrong("bincount", ValueError, r"negative.*i64\[3\]", np.array([1, -1, 2])),
            wrong("bincount", ValueError, r"f64\[2\].*i64\[3\]", np.array([1, 1, 2]), weights=V[:2]),
            wrong("bincount", ValueError, r"minlength.*negative", np.array([1, 1, 2]), minlength=-1),
        ],
    ),
    Function("bincount:length", counts(length=True), count_up_to, gradient=False),
    Function(
        "unravel_index",
        flat_places(),
        gradient=False,
        errors=[
            wrong(
                "unravel_index", ValueError, r"index 6 is out of bounds for array with size 6", np.array([1, 6]), (2, 3)
            ),
            wrong("unravel_index", ValueError, r"index -1 is out of bounds for array with size 6", -1, (2, 3)),
            wrong("unravel_index", TypeError, r"f64\[3\]", V, (2, 3)),
        ],
    ),
    Function(
        "ravel_multi_index",
        multi_places(),
        gradient=False,
        errors=[
            wrong(
                "ravel_multi_index",
                ValueError,
                r"invalid entry.*index 2.*length 2",
                (np.array([2]), np.array([0])),
                (2, 3),
            ),
            wrong("ravel_multi_index", ValueError, r"2.*\(2, 3\)", (np.array([2]),), (2, 3)),
            wrong("ravel_multi_index", TypeError, r"f64\[3\]", (V, V), (4, 4)),
            wrong("ravel_multi_index", ValueError, r"'x'", (np.array([1]), np.array([0])), (2, 3), mode="x"),
            wrong("ravel_multi_index", ValueError, r"'x'", (np.array([1]), np.array([0])), (2, 3), order="x"),
        ],
    ),
]

# ---- Sets ----------------------------------------------------------------------------------------------------


@st.composite
def sets(draw, size=False, with_axis=True):
    special = (np.nan, np.inf, 0.0, 1.0)
    x = draw(arrays(shapes(0, 2), dtypes=ALL, special=special, low=-1, high=1))
    kwargs = {k: True for k in ("return_index", "return_inverse", "return_counts") if draw(st.booleans())}
    if draw(st.booleans()):
        kwargs["equal_nan"] = draw(st.booleans())
    if with_axis and x.ndim and draw(st.booleans()):
        kwargs["axis"] = draw(axis(x.ndim))
        assume(x.size and not np.isnan(x).any())  # NumPy compares NaN in rows as bytes
    if size:
        kwargs |= {"size": draw(SIZES), "fill_value": 1}
        assume(x.size)
    return Call((x,), kwargs)


def sized_unique(x, *, size, fill_value, axis=None, **kwargs):
    wanted = [kwargs.pop(k, False) for k in ("return_index", "return_inverse", "return_counts")]
    values, index, inverse, counts = np.unique(x, True, True, True, axis, **kwargs)
    d = axis or 0
    values = np.moveaxis(sized(np.moveaxis(values, d, 0), size, fill_value), 0, d)
    rest = [sized(index, size, index[0]), inverse, sized(counts, size, 0)]
    return (values, *(r for r, w in zip(rest, wanted, strict=True) if w)) if any(wanted) else values


def distinct(x):
    return len(np.unique(x)) == x.size


@st.composite
def pairs(draw, size=False, indices=False, unique=True):
    special = (np.inf, 0.0, -0.0)
    low, high = -2, 4
    x, y = (draw(arrays(shapes(0, 2), dtypes=ALL, special=special, low=low, high=high)) for _ in "xy")
    if draw(st.booleans()):
        dtype = draw(st.sampled_from(ALL))
        with np.errstate(invalid="ignore"):
            x, y = x.real.astype(dtype), y.real.astype(dtype)
    kwargs = {}
    if unique and distinct(x) and distinct(y):
        kwargs["assume_unique"] = True
        x, y = x.ravel(), y.ravel()
    if indices and draw(st.booleans()):
        kwargs["return_indices"] = True
    if size:
        kwargs |= {"size": draw(SIZES), "fill_value": 1}
    return Call((x, y), kwargs)


def sized_set(name):
    def reference(x, y, *, size, fill_value, **kwargs):
        found = on_lattice(getattr(np, name))(x, y, **kwargs)
        if kwargs.get("return_indices"):
            values, i, j = found
            return sized(values, size, fill_value), sized(i, size, x.size), sized(j, size, y.size)
        return sized(found, size, fill_value)

    return reference


@st.composite
def memberships(draw):
    call = draw(pairs())
    kwargs = dict(call.kwargs)
    if draw(st.booleans()):
        kwargs["invert"] = True
    return Call(call.args, kwargs)


def filled(name):
    """The standard's functions with a size."""

    def reference(x, *, size, fill_value):
        values, index, inverse, counts = np.unique(x, True, True, True, equal_nan=False)
        results = {
            "values": sized(values, size, fill_value),
            "all": (sized(values, size, fill_value), sized(index, size, index[0]), inverse, sized(counts, size, 0)),
            "counts": (sized(values, size, fill_value), sized(counts, size, 0)),
            "inverse": (sized(values, size, fill_value), inverse),
        }
        return results[name]

    return reference


SETS = [
    Function(
        "unique",
        sets(),
        gradient=False,
        jit=False,
        errors=[wrong_axis("unique"), no_array("unique")],
    ),
    Function("unique:size", sets(size=True), sized_unique, gradient=False),
    *(
        Function(f"unique_{name}", sets(with_axis=False).map(lambda c: Call(c.args)), gradient=False, jit=False)
        for name in ("all", "counts", "inverse")
    ),
    Function(
        "unique_values",
        sets(with_axis=False).map(lambda c: Call(c.args)),
        lambda x: np.unique(x, equal_nan=False),  # NumPy's are in no order
        gradient=False,
        jit=False,
    ),
    *(
        Function(
            f"unique_{name}:size",
            sets(with_axis=False, size=True).map(lambda c: Call(c.args, {"size": c.kwargs["size"], "fill_value": 1})),
            filled(name),
            gradient=False,
        )
        for name in ("all", "counts", "inverse", "values")
    ),
    Function(
        "isin",
        memberships(),
        on_lattice(np.isin),
        gradient=False,
        errors=[wrong("isin", ValueError, "method.*'x'", V, V, method="x", alone="JAX's parameter")],
    ),
    *(
        Function(name, pairs(unique=False), on_lattice(getattr(np, name)), gradient=False, jit=False)
        for name in ("union1d",)
    ),
    *(
        Function(name, pairs(indices=name == "intersect1d"), on_lattice(getattr(np, name)), gradient=False, jit=False)
        for name in ("setdiff1d", "setxor1d", "intersect1d")
    ),
    Function("union1d:size", pairs(size=True, unique=False), sized_set("union1d"), gradient=False),
    *(
        Function(f"{name}:size", pairs(indices=name == "intersect1d", size=True), sized_set(name), gradient=False)
        for name in ("setdiff1d", "setxor1d", "intersect1d")
    ),
]

FUNCTIONS = [*SORTING, *PLACES, *SEARCHING, *SETS]
