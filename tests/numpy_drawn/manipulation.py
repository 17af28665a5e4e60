"""Other shapes and orders of the same elements; diagonals."""

import numpy as np
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import (
    INTEGERS,
    POSITIVE,
    Call,
    Function,
    Wrong,
    arrays,
    axes,
    axis,
    broadcastable,
    shapes,
)

A = np.ones((2, 3))
B = np.ones((2, 3, 4))
BOUNDS = r"axis 3 is out of bounds for array of dimension 2.*f64\[2,3\]"


@st.composite
def shape_of_size(draw, size):
    """A shape with so many elements, perhaps with -1 for one length."""
    if not size:
        return draw(st.sampled_from(((0,), (3, 0), (0, 2, 1), 0)))
    out, rest = [], size
    for _ in range(draw(st.integers(0, 3))):
        n = draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0]))
        out.append(n)
        rest //= n
    shape = draw(st.permutations([*out, rest]))
    if draw(st.booleans()):
        shape[draw(st.integers(0, len(shape) - 1))] = -1
    return draw(st.sampled_from((tuple(shape), list(shape)))) if len(shape) > 1 else shape[0]


@st.composite
def reshapes(draw):
    x = draw(arrays())
    return Call((x, draw(shape_of_size(x.size))), {"order": draw(st.sampled_from("CF"))}, fixed=(1,))


@st.composite
def with_axis(draw, least=1, **more):
    x = draw(arrays(shape=shapes(least)))
    return Call((x,), {"axis": draw(axis(x.ndim)), **more})


@st.composite
def squeezes(draw):
    x = draw(arrays(shape=shapes(lengths=st.sampled_from((1, 1, 2, 3, 0)))))
    ones = [d for d, n in enumerate(x.shape) if n == 1]
    chosen = draw(st.sampled_from((None, tuple(ones[:1]), tuple(ones), *ones[-1:])))
    return Call((x,), {"axis": chosen})


@st.composite
def expansions(draw):
    x = draw(arrays())
    n = draw(st.integers(1, 2))
    chosen = draw(st.lists(st.integers(0, x.ndim + n - 1), min_size=n, max_size=n, unique=True))
    chosen = [d - x.ndim - n if draw(st.booleans()) else d for d in chosen]
    return Call((x,), {"axis": chosen[0] if n == 1 and draw(st.booleans()) else tuple(chosen)})


def only_array(least=0, most=3):
    return arrays(shape=shapes(least, most)).map(lambda x: Call((x,)))


@st.composite
def permutations(draw, none=True):
    x = draw(arrays())
    order = tuple(d - x.ndim if draw(st.booleans()) else d for d in draw(st.permutations(range(x.ndim))))
    return Call((x, draw(st.sampled_from((None, order, list(order)) if none else (order,)))), fixed=(1,))


@st.composite
def two_axes(draw):
    x = draw(arrays(shape=shapes(1)))
    return Call((x, draw(axis(x.ndim)), draw(axis(x.ndim))), fixed=(1, 2))


@st.composite
def moves(draw):
    x = draw(arrays(shape=shapes(1)))
    if draw(st.booleans()):
        return Call((x, draw(axis(x.ndim)), draw(axis(x.ndim))), fixed=(1, 2))
    n = draw(st.integers(0, x.ndim))
    source, target = (tuple(draw(st.permutations(range(-x.ndim, 0)))[:n]) for _ in range(2))
    return Call((x, source, target), fixed=(1, 2))


@st.composite
def roll_axes(draw):
    x = draw(arrays(shape=shapes(1)))
    return Call((x, draw(axis(x.ndim)), draw(st.integers(-x.ndim, x.ndim))), fixed=(1, 2))


@st.composite
def flips(draw):
    x = draw(arrays())
    return Call((x,), {"axis": draw(axes(x.ndim))})


@st.composite
def rotations(draw):
    x = draw(arrays(shape=shapes(2)))
    two = draw(st.permutations(range(x.ndim)))[:2]
    return Call(
        (x,), {"k": draw(st.integers(-5, 5)), "axes": tuple(d - x.ndim if draw(st.booleans()) else d for d in two)}
    )


@st.composite
def rolls(draw):
    x = draw(arrays())
    shift = st.integers(-12, 12)
    if not x.ndim or draw(st.booleans()):
        return Call((x, draw(st.sampled_from((draw(shift), np.array(draw(shift)))))))
    chosen = draw(axes(x.ndim, none=False))
    several = isinstance(chosen, tuple)
    shifts = tuple(draw(shift) for _ in chosen) if several and draw(st.booleans()) else draw(shift)
    return Call((x, shifts), {"axis": chosen}, fixed=(1,))


@st.composite
def broadcasts(draw):
    x = draw(arrays())
    shape = tuple(n if n != 1 or draw(st.booleans()) else draw(st.integers(0, 4)) for n in x.shape)
    return Call((x, (*draw(shapes(most=2)), *shape)), fixed=(1,))


@st.composite
def together(draw):
    return Call(tuple(draw(arrays(shape=s)) for s in draw(broadcastable(draw(st.integers(1, 4))))))


@st.composite
def splits(draw, least=1, along=None, equal=True):
    """`along`: the axis that the function splits (a function of the rank), for those without a parameter."""
    x = draw(arrays(shape=shapes(least, max(3, least))))
    d = draw(axis(x.ndim)) if along is None else along(x.ndim)
    n = x.shape[d]
    if draw(st.booleans()):
        parts = draw(st.sampled_from([k for k in range(1, 7) if not n % k or not equal]))
    else:
        parts = draw(st.lists(st.integers(-4, 6), max_size=3))
    kwargs = {"axis": d} if along is None else {}
    return Call((x, parts), kwargs, fixed=(1,))


@st.composite
def resizes(draw):
    return Call((draw(arrays()), draw(st.one_of(shapes(), st.integers(0, 20)))), fixed=(1,))


@st.composite
def zeros_at_the_ends(draw):
    x = draw(arrays(shape=shapes(1, 2), low=-1, high=1, dtypes=INTEGERS))
    kwargs = {"trim": draw(st.sampled_from(("fb", "f", "b")))}
    if x.ndim > 1:
        kwargs["axis"] = draw(axes(x.ndim))
    return Call((x,), kwargs)


@st.composite
def diagonals(draw, dtype=False):
    x = draw(arrays(shape=shapes(2)))
    i, j = draw(st.permutations(range(x.ndim)))[:2]
    kwargs = {"offset": draw(st.integers(-5, 5)), "axis1": i, "axis2": j - x.ndim}
    if dtype and draw(st.booleans()):
        wide = {"c": ("complex128",), "f": ("float64", "complex128")}.get(x.dtype.kind, ("int8", "int64", "float32"))
        kwargs["dtype"] = draw(st.sampled_from(wide))
    return Call((x,), kwargs)


@st.composite
def diags(draw, most=2):
    return Call((draw(arrays(shape=shapes(1, most))), draw(st.integers(-5, 5))), fixed=(1,))


@st.composite
def filled_diagonals(draw):
    n = draw(st.integers(1, 4))
    shape = (n,) * 3 if draw(st.booleans()) else (n, draw(st.integers(1, 9)))
    x = draw(arrays(shape=shape))
    value = draw(st.sampled_from((1, draw(arrays(shape=shapes(0, 1, POSITIVE), dtypes=(x.dtype.name,))))))
    return Call((x, value), {"wrap": draw(st.booleans())})


def filled(a, val, wrap=False, inplace=False):
    a = a.copy()
    np.fill_diagonal(a, val, wrap)
    return a


def stacked(function):
    """What is split by our functions comes in a list, as in NumPy 2."""
    return lambda *args, **kwargs: list(function(*args, **kwargs))


def unstacked(x, axis=0):
    return tuple(np.moveaxis(x, axis, 0))


def of_axis(name, *args, at=BOUNDS):
    """Wrong axes of a function with a parameter axis."""
    function = lambda np: getattr(np, name)  # noqa: E731
    return [
        Wrong(lambda np: function(np)(A, *args, axis=3), AxisError, rf"numpy\.{name}: .*{at}"),
        Wrong(
            lambda np: function(np)(A, *args, axis="a"), TypeError, rf"numpy\.{name}: axis must be an integer, got 'a'"
        ),
        Wrong(
            lambda np: function(np)(A, *args, axis=1.0), TypeError, rf"numpy\.{name}: axis must be an integer, got 1.0"
        ),
    ]


SIZES = r"reshape.*cannot reshape array of size 6 into shape"

FUNCTIONS = [
    Function(
        "reshape",
        reshapes(),
        errors=[
            Wrong(lambda np: np.reshape(A, (4, 2)), ValueError, SIZES + r" \(4, 2\).*f64\[2,3\]"),
            Wrong(lambda np: np.reshape(A, (4, -1)), ValueError, SIZES + r" \(4, -1\)"),
            Wrong(
                lambda np: np.reshape(A, (-1, -1)),
                ValueError,
                r"reshape.*can only specify one unknown dimension.*\(-1, -1\)",
            ),
            Wrong(lambda np: np.reshape(A, (-2, -3)), ValueError, r"reshape.*\(-2, -3\)"),
            Wrong(lambda np: np.reshape(A, 2.5), TypeError, r"reshape.*2\.5"),
            Wrong(lambda np: np.reshape(A, 6, order="X"), ValueError, r"reshape.*order must be one of.*'X'"),
        ],
    ),
    Function(
        "ravel",
        st.tuples(arrays(), st.sampled_from("CF")).map(lambda a: Call(a[:1], {"order": a[1]})),
        errors=[
            Wrong(lambda np: np.ravel(A, order="X"), ValueError, r"ravel.*order must be one of.*'X'"),
        ],
    ),
    Function("shape", only_array(), gradient=False, jit=False),
    Function("ndim", only_array(), gradient=False, jit=False),
    Function("size", flips(), gradient=False, jit=False, errors=of_axis("size")[1:]),
    Function(
        "squeeze",
        squeezes(),
        errors=[
            *of_axis("squeeze"),
            Wrong(
                lambda np: np.squeeze(A, 0),
                ValueError,
                r"squeeze.*cannot select an axis .* size not equal to one.*f64\[2,3\]",
            ),
            Wrong(lambda np: np.squeeze(A[:1], (0, 0)), ValueError, r"squeeze.*(duplicate|repeated)"),
        ],
    ),
    Function(
        "expand_dims",
        expansions(),
        errors=[
            Wrong(
                lambda np: np.expand_dims(A, 5),
                AxisError,
                r"expand_dims.*axis 5 is out of bounds for array of dimension 3",
            ),
            Wrong(lambda np: np.expand_dims(A, (0, 0)), ValueError, r"expand_dims.*repeated axis"),
            Wrong(lambda np: np.expand_dims(A, "a"), TypeError, r"expand_dims.*'a'"),
        ],
    ),
    *(Function(n, only_array()) for n in ("atleast_1d", "atleast_2d", "atleast_3d")),
    *(Function(f"{n}:several", together()) for n in ("atleast_1d", "atleast_2d", "atleast_3d")),
    Function(
        "transpose",
        permutations(),
        errors=[
            Wrong(lambda np: np.transpose(A, (0, 0)), ValueError, r"transpose.*repeated axis.*\(0, 0\).*f64\[2,3\]"),
            Wrong(
                lambda np: np.transpose(A, (0,)), ValueError, r"transpose.*axes don't match array.*\(0,\).*f64\[2,3\]"
            ),
            Wrong(lambda np: np.transpose(A, (0, 3)), AxisError, rf"transpose.*{BOUNDS}"),
            Wrong(lambda np: np.transpose(A, (0, "a")), TypeError, r"transpose.*'a'"),
        ],
    ),
    Function(
        "permute_dims",
        permutations(),
        errors=[
            Wrong(lambda np: np.permute_dims(A, (0, 0)), ValueError, r"(permute_dims|transpose).*repeated axis"),
        ],
    ),
    *(
        Function(
            n,
            only_array(2),
            errors=[
                Wrong(
                    lambda np, n=n: np.matrix_transpose(np.ones(2)),
                    ValueError,
                    r"matrix_transpose.*at least 2-dimensional.*f64\[2\]",
                ),
            ],
        )
        for n in ("matrix_transpose", "linalg.matrix_transpose")
    ),
    Function(
        "swapaxes",
        two_axes(),
        errors=[
            Wrong(lambda np: np.swapaxes(A, 0, 3), AxisError, rf"swapaxes.*axis2.*{BOUNDS}"),
            Wrong(lambda np: np.swapaxes(A, "a", 0), TypeError, r"swapaxes.*axis1.*'a'"),
        ],
    ),
    Function(
        "moveaxis",
        moves(),
        errors=[
            Wrong(lambda np: np.moveaxis(A, 3, 0), AxisError, rf"moveaxis: source.*{BOUNDS}"),
            Wrong(lambda np: np.moveaxis(A, 0, 3), AxisError, rf"moveaxis: destination.*{BOUNDS}"),
            Wrong(lambda np: np.moveaxis(A, (0, 0), (0, 1)), ValueError, r"moveaxis.*repeated axis in source"),
            Wrong(
                lambda np: np.moveaxis(A, (0, 1), 0),
                ValueError,
                r"moveaxis.*source.*destination.*same number of elements",
            ),
        ],
    ),
    Function(
        "rollaxis",
        roll_axes(),
        errors=[
            Wrong(lambda np: np.rollaxis(A, 3), AxisError, rf"rollaxis.*{BOUNDS}"),
            Wrong(lambda np: np.rollaxis(A, 0, 5), AxisError, r"rollaxis.*start.* 5"),
        ],
    ),
    Function(
        "flip",
        flips(),
        errors=[
            *of_axis("flip"),
            Wrong(lambda np: np.flip(A, (0, -2)), ValueError, r"flip.*repeated axis.*f64\[2,3\]"),
        ],
    ),
    Function(
        "fliplr",
        only_array(2),
        errors=[Wrong(lambda np: np.fliplr(A[0]), ValueError, r"fliplr.*must be >= 2-d.*f64\[3\]")],
    ),
    Function(
        "flipud",
        only_array(1),
        errors=[Wrong(lambda np: np.flipud(np.asarray(1.0)), ValueError, r"flipud.*must be >= 1-d.*f64\[\]")],
    ),
    Function(
        "rot90",
        rotations(),
        errors=[
            Wrong(lambda np: np.rot90(A, 1, (0, 0)), ValueError, r"rot90.*(repeated|different)"),
            Wrong(lambda np: np.rot90(A, 1, (0, 3)), ValueError, r"rot90.*axis 3 is out of bounds|rot90.*out of range"),
            Wrong(lambda np: np.rot90(A, 1, (0, 1, 2)), ValueError, r"rot90.*len\(axes\) must be 2.*\(0, 1, 2\)"),
            Wrong(lambda np: np.rot90(A[0]), ValueError, r"rot90.*axis 1 is out of bounds.*f64\[3\]"),
        ],
    ),
    Function(
        "roll",
        rolls(),
        errors=[
            *of_axis("roll", 1),
            Wrong(lambda np: np.roll(A, (1, 2, 3), (0, 1)), ValueError, r"roll.*shift.*axis"),
            Wrong(
                lambda np: np.roll(A, 1.5, 0), TypeError, r"roll.*shift.*integer.*1\.5", alone="NumPy truncates floats"
            ),
            Wrong(lambda np: np.roll(A, None), TypeError, r"roll.*shift.*None"),
        ],
    ),
    Function(
        "broadcast_to",
        broadcasts(),
        errors=[
            Wrong(lambda np: np.broadcast_to(A, (3, 2)), ValueError, r"broadcast_to.*f64\[2,3\].*\(3, 2\)"),
            Wrong(lambda np: np.broadcast_to(A, (3,)), ValueError, r"broadcast_to.*f64\[2,3\].*\(3,\)"),
            Wrong(lambda np: np.broadcast_to(A, (-1, 2, 3)), ValueError, r"broadcast_to.*negative"),
        ],
    ),
    Function(
        "broadcast_arrays",
        together(),
        errors=[
            Wrong(lambda np: np.broadcast_arrays(A, np.ones(2)), ValueError, r"broadcast_arrays.*f64\[2,3\].*f64\[2\]"),
        ],
    ),
    Function(
        "broadcast_shapes",
        broadcastable(3).map(lambda s: Call(tuple(s), fixed=(0, 1, 2))),
        gradient=False,
        jit=False,
        errors=[
            Wrong(lambda np: np.broadcast_shapes((2, 3), (2,)), ValueError, r"broadcast_shapes.*\(2, 3\).*\(2,\)"),
            Wrong(lambda np: np.broadcast_shapes((2, -3)), ValueError, r"broadcast_shapes.*negative"),
        ],
    ),
    Function(
        "split",
        splits(),
        errors=[
            *of_axis("split", 2)[1:],
            Wrong(lambda np: np.split(A, 2, 3), IndexError, rf"split.*{BOUNDS}"),
            Wrong(
                lambda np: np.split(A, 4),
                ValueError,
                r"split.*array split does not result in an equal division.*4.*f64\[2,3\]",
            ),
            Wrong(
                lambda np: np.split(A, 0),
                ValueError,
                r"split.*number sections must be larger than 0.*0",
                alone="it divides by it",
            ),
            Wrong(lambda np: np.split(A, 1.5), TypeError, r"split.*1\.5", alone="NumPy truncates floats"),
        ],
    ),
    Function(
        "array_split",
        splits(equal=False),
        errors=[
            Wrong(lambda np: np.array_split(A, 2, 3), IndexError, rf"array_split.*{BOUNDS}"),
            Wrong(
                lambda np: np.array_split(A, 0), ValueError, r"array_split.*number sections must be larger than 0.*0"
            ),
            Wrong(
                lambda np: np.array_split(A, -2), ValueError, r"array_split.*number sections must be larger than 0.*-2"
            ),
        ],
    ),
    Function(
        "vsplit",
        splits(2, lambda n: 0),
        errors=[
            Wrong(
                lambda np: np.vsplit(A[0], 1),
                ValueError,
                r"vsplit only works on arrays of 2 or more dimensions.*f64\[3\]",
            ),
            Wrong(lambda np: np.vsplit(A, 3), ValueError, r"vsplit.*equal division"),
        ],
    ),
    Function(
        "hsplit",
        splits(1, lambda n: 0 if n == 1 else 1),
        errors=[
            Wrong(
                lambda np: np.hsplit(np.asarray(1.0), 1),
                ValueError,
                r"hsplit only works on arrays of 1 or more dimensions.*f64\[\]",
            ),
        ],
    ),
    Function(
        "dsplit",
        splits(3, lambda n: 2),
        errors=[
            Wrong(
                lambda np: np.dsplit(A, 1),
                ValueError,
                r"dsplit only works on arrays of 3 or more dimensions.*f64\[2,3\]",
            ),
        ],
    ),
    Function(
        "unstack",
        with_axis(),
        reference=unstacked,
        errors=[
            Wrong(lambda np: np.unstack(A, axis=3), AxisError, rf"unstack.*{BOUNDS}"),
            Wrong(lambda np: np.unstack(np.asarray(1.0)), ValueError, r"unstack.*at least 1-d.*f64\[\]"),
        ],
    ),
    Function(
        "resize",
        resizes(),
        errors=[
            Wrong(lambda np: np.resize(A, (2, -1)), ValueError, r"resize.*negative.*new_shape=\(2, -1\)"),
        ],
    ),
    Function(
        "trim_zeros",
        zeros_at_the_ends(),
        jit=False,
        gradient=False,
        errors=[
            Wrong(lambda np: np.trim_zeros(A, "x"), ValueError, r"trim_zeros.*trim.*'x'"),
        ],
    ),
    Function(
        "diagonal",
        diagonals(),
        errors=[
            Wrong(lambda np: np.diagonal(A[0]), ValueError, r"diagonal.*at least two dimensions.*f64\[3\]"),
            Wrong(lambda np: np.diagonal(A, 0, 0, 0), ValueError, r"diagonal.*axis1 and axis2 cannot be the same"),
            Wrong(lambda np: np.diagonal(A, 0, 3, 0), AxisError, rf"diagonal: axis1.*{BOUNDS}"),
            Wrong(lambda np: np.diagonal(A, 1.5), TypeError, r"diagonal.*offset.*1\.5"),
        ],
    ),
    Function(
        "trace",
        diagonals(dtype=True),
        errors=[
            Wrong(lambda np: np.trace(A[0]), ValueError, r"trace.*at least two dimensions.*f64\[3\]"),
            Wrong(lambda np: np.trace(A, out=np.zeros(())), NotImplementedError, r"trace.*out", alone="immutable"),
            Wrong(lambda np: np.trace(A, dtype="no dtype"), TypeError, r"trace.*no dtype"),
        ],
    ),
    Function(
        "linalg.diagonal",
        diagonals().map(lambda c: Call(c.args, {"offset": c.kwargs["offset"]})),
        errors=[
            Wrong(lambda np: np.linalg.diagonal(A[0]), ValueError, r"diagonal.*f64\[3\]"),
        ],
    ),
    Function(
        "linalg.trace",
        diagonals(dtype=True).map(lambda c: Call(c.args, {k: v for k, v in c.kwargs.items() if "axis" not in k})),
        errors=[
            Wrong(lambda np: np.linalg.trace(A[0]), ValueError, r"trace.*f64\[3\]"),
        ],
    ),
    Function(
        "diag",
        diags(),
        errors=[
            Wrong(lambda np: np.diag(B), ValueError, r"diag.*must be 1- or 2-d.*f64\[2,3,4\]"),
            Wrong(lambda np: np.diag(1.0), ValueError, r"diag.*must be 1- or 2-d"),
            Wrong(lambda np: np.diag(A, "a"), TypeError, r"diag.*k.*'a'"),
        ],
    ),
    Function("diagflat", diags(3), errors=[Wrong(lambda np: np.diagflat(A, "a"), TypeError, r"diagflat.*k.*'a'")]),
    Function(
        "fill_diagonal",
        filled_diagonals().map(lambda c: Call(c.args, {**c.kwargs, "inplace": False})),
        reference=filled,
        errors=[
            Wrong(
                lambda np: np.fill_diagonal(np.asarray(A), 1),
                NotImplementedError,
                r"fill_diagonal.*inplace=False",
                alone="immutable",
            ),
            Wrong(
                lambda np: np.fill_diagonal(np.ones(2), 1, **({} if np.__name__ == "numpy" else {"inplace": False})),
                ValueError,
                r"fill_diagonal.*array must be at least 2-d.*f64\[2\]",
            ),
            Wrong(
                lambda np: np.fill_diagonal(
                    np.ones((2, 3, 4)), 1, **({} if np.__name__ == "numpy" else {"inplace": False})
                ),
                ValueError,
                r"fill_diagonal.*equal length.*f64\[2,3,4\]",
            ),
        ],
    ),
]
