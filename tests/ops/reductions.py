"""Records of reductions over axes."""

import numpy as np

from tests.ops.record import (
    ALL,
    BOOL,
    INTEGERS,
    NUMBERS,
    Op,
    Sample,
    array,
    edge_values,
)
from xform import lax

SHAPES_AND_AXES = [
    ((), ()),
    ((3,), (0,)),
    ((3,), ()),
    ((2, 3), (1,)),
    ((4, 3, 2), (0, 2)),
    ((2, 3), (0, -1)),
    ((1, 4, 1), (0, 1)),
    ((0, 2), (0,)),
    ((0, 2), (1,)),
    ((40,), (0,)),
]


def samples(low=-2, high=2, last=None):
    return lambda rng, dtype: [
        Sample((array(rng, dtype, shape, low, high), axes)) for shape, axes in SHAPES_AND_AXES[:last]
    ]


def pairs(dtype):
    """All pairs of edge values, reduced."""
    values = edge_values(dtype)
    return [Sample((np.stack([np.repeat(values, values.size), np.tile(values, values.size)]), (0,)))]


def extreme_samples(rng, dtype):
    """Not of nothing, where results are infinite."""
    return [s for s in samples()(rng, dtype) if s.args[0].shape != (0, 2) or s.args[1] == (1,)]


def extreme_edges(dtype):
    """Without -0.0: which zero is the larger one is left open, as in NumPy."""
    (pair,) = pairs(dtype)
    values = pair.args[0] if dtype.kind == "b" else pair.args[0] + np.zeros((), dtype)
    return [Sample((values, (0,))), Sample((np.ones((2, 0), dtype), (1,)))]


def with_zeros(rng, dtype):
    """Products of no, one and several zeros."""
    out = samples()(rng, dtype)
    for k in (1, 2, 3):
        x = array(rng, dtype, (5, 2))
        x[:k, 0] = 0
        out.append(Sample((x, (0,))))
    return out


def reduced(ufunc, **kwargs):
    """The reduction of a ufunc, in the operand's dtype."""
    return lambda x, axes: ufunc.reduce(x, axis=axes, dtype=x.dtype, **kwargs)


def extreme(ufunc, sign):
    """The reduction of np.maximum or minimum; of nothing it is the lowest or highest value."""

    def reference(x, axes):
        if x.size:
            return ufunc.reduce(x, axis=axes)
        if x.dtype.kind == "c":
            identity = complex(-sign * np.inf, -sign * np.inf)
        elif x.dtype.kind == "f":
            identity = -sign * np.inf
        elif x.dtype.kind == "b":
            identity = sign < 0
        else:
            identity = np.iinfo(x.dtype).min if sign > 0 else np.iinfo(x.dtype).max
        return ufunc.reduce(x, axis=axes, initial=identity)

    return reference


def places(rng, dtype):
    """Ties are frequent in integers and booleans."""
    shapes = [((3,), 0), ((2, 3), 1), ((2, 3), 0), ((4, 1, 5), -1), ((0, 2), 1), ((1,), 0), ((50,), 0)]
    return [Sample((array(rng, dtype, shape), axis, index)) for shape, axis in shapes for index in ("int32", "int64")]


def place_edges(dtype):
    values = edge_values(dtype)
    two = np.stack([np.repeat(values, values.size), np.tile(values, values.size)])
    return [Sample((values, 0, "int64")), Sample((two, 0, "int32")), Sample((np.zeros(4, dtype), 0, "int8"))]


def arg(function):
    return lambda x, axis, index_dtype: function(x, axis).astype(index_dtype)


def norm(x, y):
    return lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y)))


def reduce_norm(x, axes):
    return lax.reduce(x, np.zeros((), x.dtype), norm, axes)


def minimal_pair(values, labels):
    """The smallest value with its label, of an operation on two arrays."""

    def pick(a, b):
        first = lax.le(a[0], b[0])
        return lax.select(first, a[0], b[0]), lax.select(first, a[1], b[1])

    start = (np.asarray(100, values.dtype), np.asarray(-1, labels.dtype))
    return lax.reduce((values, labels), start, pick, (1,))


def minimal_pair_reference(values, labels):
    at = np.argmin(values, 1)[:, None]
    return np.take_along_axis(values, at, 1)[:, 0], np.take_along_axis(labels, at, 1)[:, 0]


x32 = np.ones((2, 3), np.float32)

OPS = [
    Op(
        "reduce_sum",
        lax.reduce_sum,
        samples(),
        reduced(np.add),
        NUMBERS,
        edges=pairs,
        ulps=40,
        errors=[
            (lambda: lax.reduce_sum(x32, (2,)), ValueError, r"reduce_sum: \(2,\) .* f32\[2,3\]"),
            (lambda: lax.reduce_sum(x32, (0, -2)), ValueError, r"reduce_sum: .* distinct"),
            (lambda: lax.reduce_sum(np.ones(3, bool), (0,)), TypeError, r"reduce_sum .* bool\[3\]"),
        ],
    ),
    Op(
        "reduce_prod",
        lax.reduce_prod,
        with_zeros,
        reduced(np.multiply),
        NUMBERS,
        edges=pairs,
        ulps=40,
        rtol={"float32": 1e-5, "complex64": 1e-5, "float64": 1e-14, "complex128": 1e-14},
        errors=[(lambda: lax.reduce_prod(x32, (-3,)), ValueError, r"reduce_prod: \(-3,\)")],
    ),
    Op(
        "reduce_max",
        lax.reduce_max,
        extreme_samples,
        extreme(np.maximum, 1),
        ALL,
        edges=extreme_edges,
        errors=[
            (lambda: lax.reduce_max(x32, (2,)), ValueError, r"reduce_max: \(2,\) .* f32\[2,3\]"),
            (lambda: lax.reduce_max(x32, (0.5,)), TypeError, r"reduce_max: axes of f32\[2,3\] are ints, got \(0.5,\)"),
            (lambda: lax.reduce_max("ab", (0,)), TypeError, "reduce_max: .*'ab' of type str"),
        ],
    ),
    Op(
        "reduce_min",
        lax.reduce_min,
        extreme_samples,
        extreme(np.minimum, -1),
        ALL,
        edges=extreme_edges,
        errors=[
            (lambda: lax.reduce_min(x32, (2,)), ValueError, r"reduce_min: \(2,\) .* f32\[2,3\]"),
            (lambda: lax.reduce_min(x32, (0.5,)), TypeError, r"reduce_min: axes of f32\[2,3\] are ints, got \(0.5,\)"),
            (lambda: lax.reduce_min("ab", (0,)), TypeError, "reduce_min: .*'ab' of type str"),
        ],
    ),
    Op(
        "reduce_and",
        lax.reduce_and,
        samples(),
        reduced(np.bitwise_and),
        BOOL + INTEGERS,
        edges=pairs,
        errors=[(lambda: lax.reduce_and(x32, (0,)), TypeError, r"reduce_and .* f32\[2,3\]")],
    ),
    Op(
        "reduce_or",
        lax.reduce_or,
        samples(),
        reduced(np.bitwise_or),
        BOOL + INTEGERS,
        edges=pairs,
        errors=[(lambda: lax.reduce_or(x32, (0,)), TypeError, r"reduce_or .* f32\[2,3\]")],
    ),
    Op(
        "reduce_xor",
        lax.reduce_xor,
        samples(),
        reduced(np.bitwise_xor),
        BOOL + INTEGERS,
        edges=pairs,
        errors=[(lambda: lax.reduce_xor(x32, (0,)), TypeError, r"reduce_xor .* f32\[2,3\]")],
    ),
    Op(
        "argmax",
        lax.argmax,
        places,
        arg(np.argmax),
        ALL,
        edges=place_edges,
        differentiable=False,
        errors=[
            (lambda: lax.argmax(np.ones((3, 0)), 1, "int32"), ValueError, r"argmax: .* f64\[3,0\] is empty"),
            (lambda: lax.argmax(x32, 2, "int32"), ValueError, r"argmax: \(2,\) .* f32\[2,3\]"),
            (lambda: lax.argmax(x32, 0, "float32"), TypeError, r"argmax: index_dtype .* float32"),
        ],
    ),
    Op(
        "argmin",
        lax.argmin,
        places,
        arg(np.argmin),
        ALL,
        edges=place_edges,
        differentiable=False,
        errors=[
            (lambda: lax.argmin(np.ones((3, 0)), 1, "int32"), ValueError, r"argmin: .* f64\[3,0\] is empty"),
            (lambda: lax.argmin(x32, 0.5, "int32"), TypeError, r"argmin: axes of f32\[2,3\] .*0.5"),
            (lambda: lax.argmin(x32, 0, "bool"), TypeError, r"argmin: index_dtype .* bool"),
        ],
    ),
    Op(
        "reduce:norm",
        reduce_norm,
        samples(low=0.5, last=5),
        lambda x, axes: np.sqrt(np.add.reduce(x * x, axis=axes)),
        ("float32", "float64"),
        ulps=8,
        errors=[
            (lambda: reduce_norm(x32, (0, 0)), ValueError, r"reduce: \(0, 0\) .* f32\[2,3\]"),
            (
                lambda: lax.reduce(x32, np.float32(0), lax.lt, (0,)),
                TypeError,
                r"reduce: computation .*f32\[\].*bool\[\]",
            ),
        ],
    ),
    Op(
        "reduce:sum",
        lambda x, axes: lax.reduce(x, np.asarray(3, x.dtype), lax.add, axes),
        samples(last=8),
        lambda x, axes: np.add.reduce(x, axis=axes, dtype=x.dtype, initial=3),
        ("int8", "float32", "float64", "complex128"),
        ulps=40,
        errors=[
            (lambda: lax.reduce(x32, np.float32(0), lax.add, (2,)), ValueError, r"reduce: \(2,\) .* f32\[2,3\]"),
            (
                lambda: lax.reduce(x32, np.float32(0), 3, (0,)),
                TypeError,
                "reduce: computation must be a function .* got 3",
            ),
        ],
    ),
    Op(
        "reduce:pair",
        minimal_pair,
        lambda rng, dtype: [Sample((array(rng, dtype, (3, 7)), array(rng, "int32", (3, 7))))],
        minimal_pair_reference,
        ("int32", "float64"),
        errors=[
            (
                lambda: lax.reduce(x32, np.zeros(2, np.float32), lax.add, (0,)),
                TypeError,
                r"reduce: .* f32\[2,3\] and f32\[2\]",
            ),
            (
                lambda: lax.reduce(x32, np.float32(0), lambda x, y: (x, y), (0,)),
                TypeError,
                r"reduce: computation must return scalars",
            ),
        ],
    ),
]
