"""Records of gather and the scatters; the reference is the specification's, element by element.

https://openxla.org/stablehlo/spec#gather and #scatter. A window that is partly outside is out of bounds.
"""

import numpy as np

from tests.ops.record import ALL, BOOL, NUMBERS, REALS, Op, Sample, array, edge_values
from xform import lax

G = lax.GatherDimensionNumbers
S = lax.ScatterDimensionNumbers


def windows(shape, indices, numbers, sizes, mode):
    """Of each window: its position, and for each of its elements (window index, index into the operand or None)."""
    _, dropped, index_map, batching, index_batching = numbers
    kept = [d for d in range(len(shape)) if d not in (*dropped, *batching)]
    for position in np.ndindex(indices.shape[:-1]):
        start = [0] * len(shape)
        for k, d in enumerate(index_map):
            start[d] = int(indices[(*position, k)])
        limits = [n - m for n, m in zip(shape, sizes)]
        inside = all(0 <= start[d] <= limits[d] for d in index_map)
        start = [min(max(s, 0), limit) for s, limit in zip(start, limits)]
        for d, e in zip(batching, index_batching):
            start[d] = position[e]
        for offset in np.ndindex(*[sizes[d] for d in kept]):
            at = list(start)
            for d, o in zip(kept, offset):
                at[d] += o
            yield position, offset, tuple(at) if inside or mode == "clip" else None


def interleave(position, offset, window_dims):
    """Where an element of a window stands in gather's result or scatter's updates."""
    position, offset = list(position), list(offset)
    ndim = len(position) + len(offset)
    return tuple(offset.pop(0) if d in window_dims else position.pop(0) for d in range(ndim))


def windowed_shape(shape, indices, numbers, sizes):
    kept = [d for d in range(len(shape)) if d not in (*numbers[1], *numbers[3])]
    return interleave(indices.shape[:-1], [sizes[d] for d in kept], numbers[0])


def fill_of(dtype):
    if dtype.kind == "b":
        return True
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    return np.nan


def gather_reference(x, indices, dimension_numbers, slice_sizes, mode=None, fill_value=None, **flags):
    out = np.zeros(windowed_shape(x.shape, indices, dimension_numbers, slice_sizes), x.dtype)
    mode = "clip" if mode == "promise_in_bounds" else mode
    fill = fill_of(x.dtype) if fill_value is None else fill_value
    for position, offset, at in windows(x.shape, indices, dimension_numbers, slice_sizes, mode):
        out[interleave(position, offset, dimension_numbers[0])] = fill if at is None else x[at]
    return out


def scatter_reference(combine):
    def reference(x, indices, updates, dimension_numbers, mode=None, **flags):
        out = np.array(x)
        n = dimension_numbers
        kept = [d for d in range(x.ndim) if d not in (*n[1], *n[3])]
        sizes = [min(1, m) for m in x.shape]
        for d, u in zip(kept, n[0]):
            sizes[d] = updates.shape[u]
        for position, offset, at in windows(x.shape, indices, n, sizes, mode):
            if at is not None:
                out[at] = combine(out[at], updates[interleave(position, offset, n[0])])
        return out

    return reference


# shape of the operand, indices, dimension numbers as gather's, window sizes
ROWS = (4, 3), np.array([[1], [3], [0]]), ((1,), (0,), (0,)), (1, 3)
CASES = [
    ROWS,
    ((3, 4), np.array([[0, 1], [2, 3], [0, 0]]), ((), (0, 1), (0, 1)), (1, 1)),
    ((3, 4), np.array([2, -1], np.int32), ((0,), (0,), (0, 1)), (1, 2)),  # one window, out of bounds
    ((5, 4), np.array([[[0, 3], [1, 0]]]), ((0, 3), (), (1, 0)), (2, 3)),  # windows that are not whole
    ((2, 5, 3), np.array([[[1], [4]], [[0], [2]]]), ((2,), (1,), (1,), (0,), (0,)), (1, 1, 3)),  # batching
    ((2, 3, 4), np.array([[[3], [1], [0]], [[0], [0], [2]]]), ((), (2,), (2,), (0, 1), (0, 1)), (1, 1, 1)),
    ((3, 2), np.array([[[0], [1]], [[1], [1]], [[0], [1]]]), ((), (1,), (1,), (0,), (0,)), (1, 1)),
    ((5,), np.array([[3], [-1], [7], [4]]), ((1,), (), (0,)), (2,)),  # out of bounds, in part or wholly
    ((300,), np.array([[-128], [127], [5]], np.int8), ((), (0,), (0,)), (1,)),
    ((3,), np.array([[255], [2], [3]], np.uint8), ((), (0,), (0,)), (1,)),
    ((3,), np.array([[2**64 - 1], [1]], np.uint64), ((), (0,), (0,)), (1,)),
    ((3, 2), np.zeros((0, 1), int), ((1,), (0,), (0,)), (1, 2)),
    ((0, 2), np.zeros((0, 1), int), ((1,), (0,), (0,)), (0, 2)),
    ((4, 0), np.array([[1], [2]]), ((1,), (0,), (0,)), (1, 0)),
    ((2, 3), np.zeros((2, 0), int), ((1, 2), (), ()), (2, 3)),  # nothing is positioned
    ((), np.zeros((0,), int), ((), (), ()), ()),
]
DUPLICATES = [
    ((4, 3), np.array([[1], [1], [0], [1]]), ((1,), (0,), (0,)), (1, 3)),
    ((5,), np.array([[0], [1], [2], [2], [9]]), ((1,), (), (0,)), (3,)),  # windows that overlap
    ((2, 3), np.array([[[0], [0], [2]], [[1], [1], [1]]]), ((), (1,), (1,), (0,), (0,)), (1, 1)),
    ((), np.zeros((3, 0), int), ((), (), ()), ()),
]
FEW = [CASES[0], CASES[3], CASES[5], CASES[7], *DUPLICATES[:3]]


def gather_samples(mode=None, cases=(*CASES, *DUPLICATES), **kwargs):
    return lambda rng, dtype: [
        Sample((array(rng, dtype, shape), i), dict(dimension_numbers=G(*n), slice_sizes=sizes, mode=mode, **kwargs))
        for shape, i, n, sizes in cases
    ]


def scatter_samples(mode=None, cases=(*CASES, *DUPLICATES), low=-2, high=2, **kwargs):
    def samples(rng, dtype):
        return [
            Sample(
                (
                    array(rng, dtype, shape, low, high),
                    i,
                    array(rng, dtype, windowed_shape(shape, i, G(*n), sizes), low, high),
                ),
                dict(dimension_numbers=S(*n), mode=mode, **kwargs),
            )
            for shape, i, n, sizes in cases
        ]

    return samples


def edges(dtype):
    """Each edge value beside each, in two updates of one element; one in half precision, which is rounded each time."""
    values = edge_values(dtype)
    a, b = np.repeat(values, values.size), np.tile(values, values.size)
    index = np.arange(a.size)[:, None]
    if dtype.itemsize != 2 or dtype.kind in "iu":
        index, b = np.concatenate([index, index]), np.concatenate([b, b])
    return [Sample((a, index, b), dict(dimension_numbers=S((), (0,), (0,))))]


def without_negative_zeros(dtype):
    """Which zero is the smaller one is left open."""
    return [Sample((s.args[0] + 0, s.args[1], s.args[2] + 0), s.kwargs) for s in edges(dtype)]


def square_minus(v):
    return v * v - v


def apply_samples(cases, **kwargs):
    return lambda rng, dtype: [
        Sample(
            (array(rng, dtype, shape), i),
            dict(
                func=square_minus,
                dimension_numbers=S(*n),
                update_shape=windowed_shape(shape, i, G(*n), sizes),
                **kwargs,
            ),
        )
        for shape, i, n, sizes in cases
    ]


def apply_reference(x, indices, func, dimension_numbers, update_shape, **flags):
    return scatter_reference(lambda old, _: func(old))(x, indices, np.empty(update_shape), dimension_numbers)


X, INDEX = np.arange(12.0).reshape(4, 3), np.array([[0], [2]])
NUMBERS_OF_ROWS = ROWS[2]


def wrong_calls(name, call):
    """Dimension numbers that don't fit; call(x, indices, numbers, window sizes)."""
    n = NUMBERS_OF_ROWS
    return [
        (lambda: call(X, INDEX * 1.0, n, (1, 3)), TypeError, f"{name}: indices must be integers"),
        (lambda: call(X, INDEX[:, 0], n, (1, 3)), TypeError, f"{name}: the last axis of the indices must have the 1"),
        (lambda: call(X, INDEX, ((1,), (0,), (2,)), (1, 3)), TypeError, rf"{name}: .* in \[0, 2\)"),
        (lambda: call(X, INDEX, ((1,), (0,), (0,), (0,), (0,)), (1, 3)), TypeError, f"{name}"),
    ]


def gather_errors(mode):
    n = G(*NUMBERS_OF_ROWS)
    return [
        (lambda: lax.gather(X, INDEX * 1.0, n, (1, 3), mode=mode), TypeError, "gather: indices must be integers"),
        (lambda: lax.gather(X, INDEX, n, (1, 4), mode=mode), TypeError, r"gather: windows must fit .* f64\[4,3\]"),
        (lambda: lax.gather(X, INDEX, n, (1, 3), mode="wrap"), ValueError, "gather: mode must be .* got 'wrap'"),
    ]


def scatter_errors(function, mode=None):
    n, name = S(*NUMBERS_OF_ROWS), function.__name__
    by = "scatter_add" if name == "scatter_sub" else name
    return [
        (lambda: function(X, INDEX * 1.0, X[:2], n, mode=mode), TypeError, f"{by}: indices must be integers"),
        (lambda: function(X, INDEX, X[:3], n, mode=mode), TypeError, rf"{by}: updates f64\[3,3\] .* i64\[2,1\]"),
        (lambda: function(X, INDEX, X[:2].astype(int), n, mode=mode), TypeError, rf"{by} .*f64\[4,3\], i64\[2,3\]"),
        (lambda: function(X, INDEX, X[:2], n, mode="wrap"), ValueError, f"{name}: mode must be .* got 'wrap'"),
    ]


def not_for(function, dtype, short):
    """An error for operands of a dtype that the combination is not defined for."""
    x = X.astype(dtype)
    pattern = rf"{function.__name__} takes .* {short}\[4,3\]"
    return (lambda: function(x, INDEX, x[:2], S(*NUMBERS_OF_ROWS)), TypeError, pattern)


OPS = [
    Op(
        "gather",
        lax.gather,
        gather_samples(fill_value=1),
        gather_reference,
        ALL,
        errors=[
            *wrong_calls("gather", lambda x, i, n, sizes: lax.gather(x, i, G(*n), sizes)),
            (lambda: lax.gather(X, INDEX, G(*NUMBERS_OF_ROWS), (1, 4)), TypeError, "gather: windows must fit"),
            (
                lambda: lax.gather(X, INDEX, G(*NUMBERS_OF_ROWS), (2, 3)),
                TypeError,
                "gather: windows must have length 1",
            ),
            (
                lambda: lax.gather(X, INDEX, G((1,), (), (0,)), (1, 3)),
                TypeError,
                "gather: offset_dims must name one axis",
            ),
            (lambda: lax.gather(X, INDEX, G((1,), (0,), (0,)), (1, 3), fill_value=X), TypeError, "gather: fill_value"),
        ],
    ),
    Op(
        "gather:clip",
        lax.gather,
        gather_samples("clip", FEW),
        gather_reference,
        ["float64", "int32"],
        errors=gather_errors("clip"),
    ),
    Op(
        "gather:promise",
        lax.gather,
        gather_samples("promise_in_bounds", FEW),
        gather_reference,
        ["float64"],
        errors=gather_errors("promise_in_bounds"),
    ),
    Op(
        "gather:default",
        lax.gather,
        gather_samples(),
        gather_reference,
        ALL,
        differentiable=False,
        errors=gather_errors(None),
    ),  # fills with NaN
    Op(
        "gather:flags",
        lax.gather,
        lambda rng, dtype: (
            gather_samples(None, [CASES[1]], unique_indices=True)(rng, dtype)
            + gather_samples(None, [((4, 3), np.array([[0], [1], [3]]), *ROWS[2:])], indices_are_sorted=True)(
                rng, dtype
            )
        ),
        gather_reference,
        ["float64"],
        errors=[
            (
                lambda: lax.gather(X, INDEX, G((2,), (0,), (0,)), (1, 3), unique_indices=True),
                TypeError,
                r"gather: offset_dims must be distinct and in \[0, 2\)",
            )
        ],
    ),
    Op(
        "scatter",
        lax.scatter,
        scatter_samples(),
        scatter_reference(lambda old, new: new),
        ALL,
        edges=edges,
        errors=[
            *wrong_calls("scatter", lambda x, i, n, sizes: lax.scatter(x, i, X[:2], S(*n))),
            (lambda: lax.scatter(X, INDEX, X[:3], S(*NUMBERS_OF_ROWS)), TypeError, r"scatter: updates f64\[3,3\]"),
            (
                lambda: lax.scatter(X, INDEX, X[:2].astype(int), S(*NUMBERS_OF_ROWS)),
                TypeError,
                "scatter needs operands",
            ),
            (
                lambda: lax.scatter(X, INDEX, np.ones((2, 4)), S(*NUMBERS_OF_ROWS)),
                TypeError,
                "scatter: windows must fit",
            ),
        ],
    ),
    Op(
        "scatter:clip",
        lax.scatter,
        scatter_samples("clip", FEW),
        scatter_reference(lambda old, new: new),
        ["float64", "int32"],
        errors=scatter_errors(lax.scatter, "clip"),
    ),
    Op(
        "scatter:unique",
        lax.scatter,
        scatter_samples(None, CASES[:3], unique_indices=True),
        scatter_reference(lambda old, new: new),
        ["float64"],
        errors=scatter_errors(lax.scatter, None),
    ),
    Op(
        "scatter_add",
        lax.scatter_add,
        scatter_samples(),
        scatter_reference(np.add),
        NUMBERS,
        edges=edges,
        errors=[*scatter_errors(lax.scatter_add), not_for(lax.scatter_add, bool, "bool")],
    ),
    Op(
        "scatter_add:clip",
        lax.scatter_add,
        scatter_samples("clip", FEW),
        scatter_reference(np.add),
        ["float64", "int8"],
        errors=scatter_errors(lax.scatter_add, "clip"),
    ),
    Op(
        "scatter_add:unique",
        lax.scatter_add,
        scatter_samples(None, CASES[:3], unique_indices=True),
        scatter_reference(np.add),
        ["float64"],
        errors=scatter_errors(lax.scatter_add, None),
    ),
    Op(
        "scatter_sub",
        lax.scatter_sub,
        scatter_samples(None, FEW),
        scatter_reference(np.subtract),
        NUMBERS,
        errors=[not_for(lax.scatter_sub, bool, "bool"), scatter_errors(lax.scatter_sub)[-1]],
    ),
    Op(
        "scatter_min",
        lax.scatter_min,
        scatter_samples(None, FEW),
        scatter_reference(np.minimum),
        REALS + BOOL,
        edges=without_negative_zeros,
        errors=[*scatter_errors(lax.scatter_min), not_for(lax.scatter_min, complex, "c128")],
    ),
    Op(
        "scatter_max",
        lax.scatter_max,
        scatter_samples(None, FEW),
        scatter_reference(np.maximum),
        REALS + BOOL,
        edges=without_negative_zeros,
        errors=[*scatter_errors(lax.scatter_max), not_for(lax.scatter_max, complex, "c128")],
    ),
    Op(
        "scatter_max:clip",
        lax.scatter_max,
        scatter_samples("clip", FEW),
        scatter_reference(np.maximum),
        ["float64", "uint8"],
        errors=scatter_errors(lax.scatter_max, "clip"),
    ),
    Op(
        "scatter_min:promise",
        lax.scatter_min,
        scatter_samples("promise_in_bounds", [ROWS, *DUPLICATES[:1]], indices_are_sorted=False),
        scatter_reference(np.minimum),
        ["float64"],
        errors=scatter_errors(lax.scatter_min, "promise_in_bounds"),
    ),
    Op(
        "scatter_mul:clip",
        lax.scatter_mul,
        scatter_samples("clip", FEW),
        scatter_reference(np.multiply),
        ["float64", "complex128"],
        errors=scatter_errors(lax.scatter_mul, "clip"),
    ),
    Op(
        "scatter_mul:zeros",  # the derivative of a product has no quotient
        lax.scatter_mul,
        lambda rng, dtype: [
            Sample(
                (np.array(x, dtype), np.zeros((4, 1), int), np.array(u, dtype)),
                dict(dimension_numbers=S((), (0,), (0,))),
            )
            for x, u in (([2], [0, 3, 1, -1]), ([0], [2, 3, 1, -1]))
        ],
        scatter_reference(np.multiply),
        ["float64", "complex128"],
        errors=scatter_errors(lax.scatter_mul, None),
    ),
    Op(
        "scatter_mul",
        lax.scatter_mul,
        scatter_samples(None, FEW),
        scatter_reference(np.multiply),
        NUMBERS,
        edges=edges,
        errors=[*scatter_errors(lax.scatter_mul), not_for(lax.scatter_mul, bool, "bool")],
    ),
    Op(
        "scatter_apply",
        lax.scatter_apply,
        apply_samples([CASES[1], CASES[3], CASES[4], CASES[7], CASES[15]], unique_indices=True),
        apply_reference,
        ["float64", "complex64", "int32"],
        errors=[
            (
                lambda: lax.scatter_apply(X, INDEX, 3, S(*NUMBERS_OF_ROWS), update_shape=(2, 3)),
                TypeError,
                "scatter_apply: func must be a function .* got 3",
            ),
            (
                lambda: lax.scatter_apply(X, INDEX, lax.neg, S(*NUMBERS_OF_ROWS), update_shape=(3, 3)),
                TypeError,
                r"scatter_apply: update_shape \(3, 3\) .* i64\[2,1\]",
            ),
        ],
    ),
    Op(
        "scatter_apply:repeated",
        lax.scatter_apply,
        apply_samples(DUPLICATES),
        apply_reference,
        ["float64"],
        order=1,
        differentiable=False,
        errors=[
            (
                lambda: lax.scatter_apply(X, INDEX, lambda v: (v, v), S(*NUMBERS_OF_ROWS), update_shape=(2, 3)),
                TypeError,
                "scatter_apply: func must return a scalar",
            )
        ],
    ),
]
