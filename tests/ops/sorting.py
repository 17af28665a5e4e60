"""Records of sorting and of the largest elements."""

import numpy as np

from tests.ops.record import ALL, Op, Sample, array, edge_values, kind
from xform import lax
from xform.lax.sorting import argsort

SHAPES_AND_AXES = [
    ((5,), 0),
    ((3, 4), -1),
    ((3, 4), 0),
    ((2, 5, 3), 1),
    ((1, 4, 1), 2),
    ((0, 2), 0),
    ((0, 2), 1),
]
FEW = [SHAPES_AND_AXES[i] for i in (1, 3, 5)]


def samples(rng, dtype):
    return [Sample((array(rng, dtype, shape), axis)) for shape, axis in [*SHAPES_AND_AXES, ((300,), 0)]]


def shuffled(dtype, n=3):
    """Edge values, several times, in no order."""
    values = np.tile(edge_values(dtype), n)
    return values[np.random.default_rng(0).permutation(values.size)]


def edges(dtype):
    values = shuffled(dtype)
    return [Sample((values, 0)), Sample((np.stack([values, values[::-1]], 1), 0))]


def sort_edges(dtype):
    """Without -0.0 in complex numbers: NumPy leaves the zeros as they stand."""
    return edges(dtype) if kind(dtype) != "c" else [Sample((s.args[0] + 0, s.args[1])) for s in edges(dtype)]


def sort_reference(x, axis):
    """-0.0 before 0.0, which NumPy takes as equal."""
    if x.dtype.kind != "f":
        return np.sort(x, axis)
    return np.take_along_axis(x, np.lexsort((~np.signbit(x), x), axis), axis)


def pair_samples(rng, dtype):
    """Keys with ties, and values of another type."""
    out = []
    for shape, axis in FEW:
        keys = array(rng, dtype, shape) if kind(dtype) in "fc" else array(rng, dtype, shape, -1, 1)
        out.append(Sample((keys, array(rng, "float64", shape), axis)))
    return out


def pair_edges(dtype):
    keys = shuffled(dtype)
    return [Sample((keys, np.arange(keys.size), 0))]


def pair_reference(keys, values, axis):
    order = np.argsort(keys, axis, kind="stable")
    return np.take_along_axis(keys, order, axis), np.take_along_axis(values, order, axis)


def by_two(first, second, value, axis):
    return lax.sort((first, second, value), dimension=axis, num_keys=2)


def two_samples(rng, dtype):
    return [Sample((array(rng, "int8", s, -1, 1), array(rng, dtype, s), array(rng, "float64", s), a)) for s, a in FEW]


def two_edges(dtype):
    x = shuffled(dtype)
    return [Sample((x, x[::-1].copy(), np.arange(x.size), 0))]


def two_reference(first, second, value, axis):
    order = np.lexsort((second, first), axis)
    return tuple(np.take_along_axis(x, order, axis) for x in (first, second, value))


def top_samples(rng, dtype):
    choices = [
        ((5,), 2, -1),
        ((3, 4), 4, 1),
        ((3, 4), 1, 0),
        ((2, 5, 3), 3, 1),
        ((4,), 0, 0),
        ((0, 2), 1, 1),
        ((400, 2), 3, 0),
    ]
    return [Sample((array(rng, dtype, shape), k, axis)) for shape, k, axis in choices]


def top_edges(dtype):
    many = shuffled(dtype, 60)  # long enough for the host to select before it sorts
    return [
        Sample((shuffled(dtype), 20 if kind(dtype) != "b" else 4, 0)),
        Sample((many, 60, 0)),
        Sample((many, many.size, 0)),
    ]


def top_reference(x, k, axis):
    flipped = np.flip(x, axis)
    order = x.shape[axis] - 1 - np.flip(np.argsort(flipped, axis, kind="stable"), axis)
    order = np.take(order, range(k), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


x32 = np.ones((2, 3), np.float32)

OPS = [
    Op(
        "sort",
        lax.sort,
        samples,
        sort_reference,
        ALL,
        edges=sort_edges,
        errors=[
            (lambda: lax.sort(x32, 2), ValueError, r"sort: .*2.* f32\[2,3\]"),
            (lambda: lax.sort(np.float64(1)), ValueError, r"sort: .* f64\[\]"),
            (lambda: lax.sort(()), TypeError, r"sort: at least one"),
            (lambda: lax.sort((x32, x32[:1])), TypeError, r"sort: .*f32\[2,3\].*f32\[1,3\]"),
            (lambda: lax.sort((x32, x32), num_keys=3), ValueError, r"sort: num_keys .* 2, got 3"),
        ],
    ),
    Op(
        "sort:key_val",
        lax.sort_key_val,
        pair_samples,
        pair_reference,
        ALL,
        edges=pair_edges,
        errors=[
            (lambda: lax.sort_key_val(x32, x32[:1]), TypeError, r"sort: .*f32\[2,3\].*f32\[1,3\]"),
            (lambda: lax.sort_key_val(x32, x32, 2), ValueError, r"sort: \(2,\) .* f32\[2,3\]"),
        ],
    ),
    Op(
        "sort:two_keys",
        by_two,
        two_samples,
        two_reference,
        ("bool", "uint8", "int64", "float16", "float32", "float64", "complex128"),
        edges=two_edges,
        errors=[
            (lambda: by_two(x32, x32, x32[0], 0), TypeError, r"sort: .*f32\[2,3\].*f32\[3\]"),
            (lambda: lax.sort((x32, x32), num_keys=0), ValueError, "sort: num_keys .* 2, got 0"),
        ],
    ),
    Op(
        "sort:argsort",
        argsort,
        lambda rng, dtype: [Sample((array(rng, dtype, (3, 4)), 1, "int32"))],
        lambda x, axis, dtype: np.argsort(x, axis, kind="stable").astype(dtype),
        ("uint64", "float32", "float64"),
        edges=lambda dtype: [Sample((s.args[0], 0, "int32")) for s in edges(dtype)],
        differentiable=False,
        errors=[(lambda: argsort(x32, 2, "int32"), ValueError, r"argsort: \(2,\) .* f32\[2,3\]")],
    ),
    Op(
        "top_k",
        lambda x, k, axis: lax.top_k(x, k, axis=axis),
        top_samples,
        top_reference,
        ALL,
        edges=top_edges,
        errors=[
            (
                lambda: lax.top_k(x32, 4),
                ValueError,
                r"top_k: k must be between 0 and 3 for f32\[2,3\], got 4",
            ),
            (lambda: lax.top_k(x32, 1, axis=-3), ValueError, r"top_k: .*-3.* f32\[2,3\]"),
        ],
    ),
]
