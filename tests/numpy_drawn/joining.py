"""Arrays put together, repeated, padded; elements inserted and deleted; `take`."""

import numpy as np
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import (
    ALL,
    NUMBERS,
    Call,
    Function,
    Wrong,
    arrays,
    axis,
    lattice,
    shapes,
)

A = np.ones((2, 3))
V = np.arange(3.0)
POSITIVE = st.integers(1, 4)


def promoted(call, dtype):
    """What is joined takes the common dtype of JAX's lattice."""
    if call.kwargs.get("dtype") is not None:
        return np.dtype(call.kwargs["dtype"])
    return lattice(*(x.dtype for x in flat(call.args)))


def flat(x):
    if isinstance(x, list | tuple):
        return [a for e in x for a in flat(e)]
    return [x] if isinstance(x, np.ndarray) else []


@st.composite
def joins(draw, least=1, along=None, none=True, dtype=False, same=False):
    """Lists of arrays that agree but for one axis (in all axes if `same`)."""
    shape = list(draw(shapes(least, 3)))
    d = along(len(shape)) if along else draw(axis(len(shape))) if shape else 0
    out = []
    for _ in range(draw(st.integers(1, 3))):
        if not same and shape:
            shape[d] = draw(st.integers(0, 3))
        out.append(draw(arrays(shape=tuple(shape))))
    kwargs = {}
    if along is None:
        kwargs["axis"] = draw(axis(len(shape) + 1)) if same else draw(st.sampled_from((d, d, None))) if none else d
    if dtype and draw(st.booleans()):
        kwargs["dtype"] = draw(st.sampled_from(("complex64", "complex128")))
        kwargs["casting"] = "unsafe"
    return Call((draw(st.sampled_from((out, tuple(out)))),), kwargs)


def mixed_ranks(name, least):
    """vstack and the like also take what has fewer axes."""
    return (
        st.integers(1, 4)
        .flatmap(lambda n: st.lists(arrays(shape=(n,) if least else ()), min_size=1, max_size=3))
        .map(lambda x: Call((x,)))
    )


@st.composite
def appends(draw):
    one = draw(joins(none=True).filter(lambda c: len(c.args[0]) == 2))
    return Call(tuple(one.args[0]), one.kwargs)


@st.composite
def blocks(draw):
    heights = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    widths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=2))
    return Call(([[draw(arrays(shape=(h, w))) for w in widths] for h in heights],))


@st.composite
def tiles(draw):
    reps = st.integers(0, 3)
    return Call((draw(arrays()), draw(st.one_of(reps, st.lists(reps, max_size=4), st.tuples(reps)))), fixed=(1,))


@st.composite
def repeats(draw):
    x = draw(arrays())
    d = draw(st.one_of(st.none(), axis(x.ndim))) if x.ndim else None
    n = x.size if d is None else x.shape[d]
    count = st.integers(0, 3)
    times = draw(
        st.one_of(
            count, count.map(np.array), st.lists(count, min_size=n, max_size=n), st.lists(count, min_size=1, max_size=1)
        )
    )
    return Call((x, times), {"axis": d}, fixed=(1,))


@st.composite
def places(draw, n, end=0):
    """What `delete` and `insert` take: an index, several, a slice, a mask."""
    if not n + end:
        return draw(st.sampled_from((slice(None), [])))
    one = st.integers(-n, n - 1 + end)
    return draw(
        st.one_of(
            one, st.lists(one, max_size=3), st.lists(one, min_size=1, max_size=1), st.slices(n),
            st.lists(st.booleans(), min_size=n, max_size=n).map(lambda m: np.array(m, bool)),
            st.lists(one, max_size=3).map(lambda v: np.array(v, "int8")),
        )
    )  # fmt: skip


@st.composite
def deletions(draw):
    x = draw(arrays())
    d = draw(st.one_of(st.none(), axis(x.ndim))) if x.ndim else None
    return Call((x, draw(places(x.size if d is None else x.shape[d]))), {"axis": d}, fixed=(1,))


@st.composite
def insertions(draw):
    x = draw(arrays())
    d = draw(st.one_of(st.none(), axis(x.ndim))) if x.ndim else None
    n = x.size if d is None else x.shape[d]
    where = draw(places(n, 1))
    if isinstance(where, slice):
        count = len(range(*where.indices(n)))
    else:
        found = np.asarray(where)
        count = int(found.sum()) if found.dtype == bool else found.size
    rest = () if d is None else tuple(m for i, m in enumerate(x.shape) if i != d % x.ndim)
    dtypes = (x.dtype.name,)
    value = draw(st.sampled_from((1, draw(arrays(shape=(), dtypes=dtypes)))))
    if np.ndim(where) and count > 1 and draw(st.booleans()):
        full = list(x.shape if d is not None else (n,))
        full[0 if d is None else d] = count
        value = draw(arrays(shape=tuple(full), dtypes=dtypes))
    elif not isinstance(where, slice) and np.ndim(where) == 0 and draw(st.booleans()):
        value = draw(arrays(shape=rest, dtypes=dtypes))
    return Call((x, where, value), {"axis": d}, fixed=(1,))


@st.composite
def widths(draw, ndim, most=4):
    width = st.integers(0, most)
    return draw(
        st.one_of(
            width, st.tuples(width, width), st.lists(st.tuples(width, width), min_size=ndim, max_size=ndim),
            st.tuples(st.tuples(width, width)), st.tuples(width),
        )
    )  # fmt: skip


@st.composite
def pads(draw, mode):
    x = draw(arrays(shape=shapes(1, 2, POSITIVE), dtypes=NUMBERS if mode in ORDERED else ALL))
    if mode in ("maximum", "minimum", "median") and x.dtype.kind == "c":
        x = x.real
    kwargs = {}
    if mode == "constant" and draw(st.booleans()):
        kwargs["constant_values"] = draw(st.sampled_from((1, (1, 2), [(1, 2)] * x.ndim)))
    if mode == "linear_ramp" and draw(st.booleans()):
        kwargs["end_values"] = draw(st.sampled_from((1, (1, 2), [(1, 2)] * x.ndim)))
    if mode in ("maximum", "mean", "median", "minimum") and draw(st.booleans()):
        kwargs["stat_length"] = draw(st.sampled_from((1, (1, 2), ((2, 9),))))
    if mode in ("reflect", "symmetric") and x.dtype.kind != "b":
        kwargs["reflect_type"] = draw(st.sampled_from(("even", "odd")))
    return Call((x, draw(widths(x.ndim)), mode), kwargs, fixed=(1, 2))


ORDERED = ("maximum", "mean", "median", "minimum", "linear_ramp")
MODES = ("constant", "edge", "wrap", "reflect", "symmetric", *ORDERED)


@st.composite
def takes(draw):
    x = draw(arrays())
    d = draw(st.one_of(st.none(), axis(x.ndim))) if x.ndim else None
    n = x.size if d is None else x.shape[d]
    mode = draw(st.sampled_from((None, "clip", "wrap"))) if n else None
    low, high = (-n, max(n - 1, 0)) if mode is None else (-3 * n, 3 * n)
    shape = draw(shapes(0, 2)) if n else (0,)
    i = draw(arrays(shape=shape, dtypes=("int8", "int64", "int32"), low=low, high=high))
    return Call((x, i), {"axis": d, **({"mode": mode} if mode else {})})


@st.composite
def takes_along(draw):
    x = draw(arrays(shape=shapes(1)))
    d = draw(st.one_of(st.none(), axis(x.ndim)))
    full = [x.size] if d is None else list(x.shape)
    n = full[d or 0]
    full[d or 0] = draw(st.integers(0, 4)) if n else 0
    dtypes = ("int8", "int64", "int32")
    return Call((x, draw(arrays(shape=tuple(full), dtypes=dtypes, low=-n, high=max(n - 1, 0)))), {"axis": d})


def joined(name, one=A):
    """Wrong calls of all functions of a list of arrays."""
    function = lambda np: getattr(np, name)  # noqa: E731
    return [
        Wrong(lambda np: function(np)([]), ValueError, rf"{name}.*need at least one array"),
        Wrong(lambda np: function(np)(3.0), TypeError, rf"{name}.*3\.0"),
    ]


FUNCTIONS = [
    Function(
        "concatenate",
        joins(dtype=True),
        dtype=promoted,
        errors=[
            *joined("concatenate"),
            Wrong(
                lambda np: np.concatenate([A, V]),
                ValueError,
                r"concatenate.*same number of dimensions.*f64\[2,3\], f64\[3\]",
            ),
            Wrong(
                lambda np: np.concatenate([A, A.T]),
                ValueError,
                r"concatenate.*must match exactly.*f64\[2,3\], f64\[3,2\]",
            ),
            Wrong(
                lambda np: np.concatenate([A, A], 2),
                AxisError,
                r"concatenate.*axis 2 is out of bounds.*dimension 2.*f64\[2,3\]",
            ),
            Wrong(
                lambda np: np.concatenate([1.0, 2.0]),
                ValueError,
                r"concatenate.*zero-dimensional arrays.*cannot be concatenated",
            ),
            Wrong(
                lambda np: np.concatenate([A, A], out=np.zeros((4, 3))),
                NotImplementedError,
                r"concatenate.*out",
                alone="immutable",
            ),
            Wrong(
                lambda np: np.concatenate([A, A], dtype="int8"),
                TypeError,
                r"concatenate.*[Cc]an.*cast.*f64.*int8.*same_kind",
            ),
        ],
    ),
    Function("concat", joins(), dtype=promoted, errors=joined("concat")[:0]),
    Function(
        "stack",
        joins(0, same=True, dtype=True),
        dtype=promoted,
        errors=[
            *joined("stack"),
            Wrong(
                lambda np: np.stack([A, V]),
                ValueError,
                r"stack.*all input arrays must have the same shape.*f64\[2,3\], f64\[3\]",
            ),
            Wrong(lambda np: np.stack([A, A], 3), AxisError, r"stack.*axis 3 is out of bounds.*dimension 3"),
            Wrong(
                lambda np: np.stack([A, A], out=np.zeros((2, 2, 3))),
                NotImplementedError,
                r"stack.*out",
                alone="immutable",
            ),
        ],
    ),
    Function(
        "vstack",
        joins(2, lambda n: 0, dtype=True),
        dtype=promoted,
        errors=[
            *joined("vstack"),
            Wrong(lambda np: np.vstack([A, A.T]), ValueError, r"vstack.*must match exactly.*f64\[2,3\], f64\[3,2\]"),
        ],
    ),
    Function(
        "hstack",
        joins(1, lambda n: 0 if n == 1 else 1, dtype=True),
        dtype=promoted,
        errors=[
            *joined("hstack")[1:],
            Wrong(lambda np: np.hstack([]), ValueError, r"hstack.*need at least one array"),
            Wrong(lambda np: np.hstack([A, A.T]), ValueError, r"hstack.*must match exactly.*f64\[2,3\], f64\[3,2\]"),
        ],
    ),
    Function("row_stack", joins(2, lambda n: 0), reference=np.vstack, dtype=promoted),
    Function("dstack", joins(3, lambda n: 2), dtype=promoted, errors=joined("dstack")),
    Function("column_stack", joins(2, lambda n: 1), dtype=promoted, errors=joined("column_stack")),
    *(
        Function(f"{n}:vectors", mixed_ranks(n, True), dtype=promoted)
        for n in ("vstack", "hstack", "dstack", "column_stack")
    ),
    *(
        Function(f"{n}:scalars", mixed_ranks(n, False), dtype=promoted)
        for n in ("vstack", "hstack", "dstack", "column_stack")
    ),
    Function(
        "append",
        appends(),
        dtype=promoted,
        errors=[
            Wrong(
                lambda np: np.append(A, V, 0), ValueError, r"append.*same number of dimensions.*f64\[2,3\], f64\[3\]"
            ),
            Wrong(lambda np: np.append(A, A, 2), AxisError, r"append.*axis 2 is out of bounds"),
        ],
    ),
    Function(
        "block",
        blocks(),
        dtype=promoted,
        errors=[
            Wrong(lambda np: np.block([[A], A]), ValueError, r"block.*depths are mismatched"),
            Wrong(lambda np: np.block([[A, A.T]]), ValueError, r"block.*f64\[2,3\], f64\[3,2\]"),
            Wrong(lambda np: np.block([]), ValueError, r"block.*empty"),
            Wrong(lambda np: np.block((A, A)), TypeError, r"block.*tuple"),
        ],
    ),
    Function(
        "tile",
        tiles(),
        errors=[
            Wrong(lambda np: np.tile(A, -1), ValueError, r"tile.*negative"),
            Wrong(lambda np: np.tile(A, 1.5), TypeError, r"tile.*1\.5"),
        ],
    ),
    Function(
        "repeat",
        repeats(),
        errors=[
            Wrong(lambda np: np.repeat(A, [1, 2, 3, 4], 0), ValueError, r"repeat.*repeats.*f64\[2,3\]"),
            Wrong(lambda np: np.repeat(A, -1), ValueError, r"repeat.*negative.*-1"),
            Wrong(lambda np: np.repeat(A, 1.5), TypeError, r"repeat.*repeats.*1\.5", alone="it truncates floats"),
            Wrong(lambda np: np.repeat(A, 2, 3), AxisError, r"repeat.*axis 3 is out of bounds.*f64\[2,3\]"),
        ],
    ),
    Function(
        "delete",
        deletions(),
        errors=[
            Wrong(
                lambda np: np.delete(A, 7, 0),
                IndexError,
                r"delete.*index 7 is out of bounds for axis 0 with size 2.*f64\[2,3\]",
            ),
            Wrong(lambda np: np.delete(A, [0, 7], 0), IndexError, r"delete.*7 is out of bounds.*f64\[2,3\]"),
            Wrong(lambda np: np.delete(A, [True], 0), ValueError, r"delete.*boolean.*f64\[2,3\]"),
            Wrong(lambda np: np.delete(A, 1.5, 0), IndexError, r"delete.*integer.*f64\[2,3\]"),
            Wrong(lambda np: np.delete(A, 0, 2), AxisError, r"delete.*axis 2 is out of bounds.*f64\[2,3\]"),
        ],
    ),
    Function(
        "insert",
        insertions(),
        errors=[
            Wrong(
                lambda np: np.insert(A, 9, 0.0, 0),
                IndexError,
                r"insert.*index 9 is out of bounds for axis 0 with size 2.*f64\[2,3\]",
            ),
            Wrong(
                lambda np: np.insert(A, [0, 9], 0.0, 0),
                IndexError,
                r"insert.*9 is out of bounds for axis 0 with size 2.*f64\[2,3\]",
            ),
            Wrong(lambda np: np.insert(A, 0, np.ones(2), 0), ValueError, r"insert.*broadcast.*f64\[1,2\].*\(1, 3\)"),
            Wrong(lambda np: np.insert(A, 0, 0.0, 2), AxisError, r"insert.*axis 2 is out of bounds.*f64\[2,3\]"),
            Wrong(lambda np: np.insert(A, 1.5, 0.0, 0), TypeError, r"insert.*(1\.5|f64\[\])"),
        ],
    ),
    *(Function(f"pad:{m}", pads(m), tolerance=64) for m in MODES),
    Function(
        "pad",
        pads("constant"),
        errors=[
            Wrong(lambda np: np.pad(A, -1), ValueError, r"pad.*index can't contain negative values.*-1"),
            Wrong(lambda np: np.pad(A, 1.5), TypeError, r"pad.*pad_width.*must be of integral type.*1\.5"),
            Wrong(lambda np: np.pad(A, 1, "mirror"), ValueError, r"pad.*mode 'mirror' is not supported"),
            Wrong(
                lambda np: np.pad(A, 1, "edge", stat_length=2),
                ValueError,
                r"pad.*unsupported keyword arguments for mode 'edge'.*stat_length",
            ),
            Wrong(lambda np: np.pad(A, ((1, 2), (3, 4), (5, 6))), ValueError, r"pad.*pad_width.*broadcast.*f64\[2,3\]"),
            Wrong(
                lambda np: np.pad(A[:0], 1, "edge"),
                ValueError,
                r"pad.*can't extend empty axis 0 using modes other.*edge.*f64\[0,3\]",
            ),
            Wrong(
                lambda np: np.pad(A, 1, "reflect", reflect_type="x"),
                ValueError,
                r"pad.*reflect_type.*'x'",
                alone="it takes it for 'odd'",
            ),
            Wrong(
                lambda np: np.pad(A, 1, "mean", stat_length=0),
                ValueError,
                r"pad.*stat_length.*0",
                alone="it divides by it",
            ),
        ],
    ),
    Function(
        "take",
        takes(),
        errors=[
            Wrong(lambda np: np.take(A, 7, 0), IndexError, r"take.*index 7 is out of bounds for axis 0 with size 2"),
            Wrong(lambda np: np.take(A, -7, 0), IndexError, r"take.*index -7 is out of bounds for axis 0 with size 2"),
            Wrong(lambda np: np.take(A, 0, 2), AxisError, r"take.*axis 2 is out of bounds.*f64\[2,3\]"),
            Wrong(lambda np: np.take(A, np.asarray(0.5)), TypeError, r"take.*indices.*integer.*f64\[\]"),
            Wrong(lambda np: np.take(A, 0, mode="nearest"), ValueError, r"take.*mode.*'nearest'"),
            Wrong(lambda np: np.take(A, 0, out=np.zeros(())), NotImplementedError, r"take.*out", alone="immutable"),
            Wrong(lambda np: np.take(A[:, :0], 0), IndexError, r"take.*(empty|size 0)"),
        ],
    ),
    Function(
        "take_along_axis",
        takes_along(),
        errors=[
            Wrong(
                lambda np: np.take_along_axis(A, np.array([0]), 0),
                ValueError,
                r"take_along_axis.*same number of dimensions.*f64\[2,3\].*i64\[1\]",
            ),
            Wrong(
                lambda np: np.take_along_axis(A, np.array([[0.5]]), 0),
                IndexError,
                r"take_along_axis.*indices.*integer.*f64\[1,1\]",
            ),
            Wrong(
                lambda np: np.take_along_axis(A, np.array([[7]]), 1),
                IndexError,
                r"take_along_axis.*7 is out of bounds for axis 1 with size 3",
            ),
            Wrong(
                lambda np: np.take_along_axis(A, np.zeros((2, 2), int), 0),
                IndexError,
                r"take_along_axis.*broadcast.*f64\[2,3\].*i64\[2,2\]",
            ),
            Wrong(
                lambda np: np.take_along_axis(A, np.zeros((2, 2), int), None),
                ValueError,
                r"take_along_axis.*axis=None.*single.*i64\[2,2\]",
            ),
            Wrong(
                lambda np: np.take_along_axis(A, np.zeros((2, 2), int), 2),
                AxisError,
                r"take_along_axis.*axis 2 is out of bounds.*f64\[2,3\]",
            ),
        ],
    ),
]
