"""Records of functions on the structure of programs and arrays: barriers, groups of rows, approximate extremes.

Primitives that are recorded here: `optimization_barrier`, `composite`.
"""

import numpy as np

from tests.ops.record import ALL, FLOATS, NUMBERS, Op, Sample, array, arrays, edge_values
from xform import lax
from xform.lax import RaggedDotDimensionNumbers


def pairs(rng, dtype):
    return [Sample((list(arrays(rng, dtype, a, b)),)) for a, b in (((), (3,)), ((0, 2), (1, 4, 1)), ((2, 3), (2, 3)))]


def barrier_of_results(xs):
    """Through a barrier twice, with a computation between that is not linear."""
    x, y = lax.optimization_barrier([lax.mul(x, x) for x in xs])
    return lax.optimization_barrier({"x": lax.mul(x, x), "y": y})


@lambda f: lax.composite(f, "test.scaled_square", version=2)
def scaled_square(x, *, factor, label=None):
    return {"square": lax.mul(lax.mul(x, x), np.asarray(factor, x.dtype)[()]), "x": x}


def ragged_reference(x, y, sizes, out=None):
    """(m, k), (g, k, n) -> (m, n), row by row."""
    out = np.zeros((x.shape[0], y.shape[2]), x.dtype)
    ends = np.cumsum(sizes)
    for g, (start, end) in enumerate(zip(ends - sizes, ends)):
        out[start:end] = x[start:end] @ y[g]
    return out


def ragged(rng, dtype):
    for m, k, n, sizes in (
        (5, 2, 3, (2, 0, 3)),
        (4, 3, 1, (1, 1)),
        (4, 1, 2, (3, 9)),
        (0, 2, 2, (0,)),
        (3, 2, 2, (0, 0)),
    ):
        yield Sample((*arrays(rng, dtype, (m, k), (len(sizes), k, n)), np.array(sizes, np.int32)))


SUMMED = RaggedDotDimensionNumbers((((1,), (1,)), ((0,), (2,))), [1], [])


def summed_reference(x, y, sizes):
    """(b, k, m), (n, k, b), (b, g) or (g,) -> (g, b, m, n): groups of k."""
    sizes = np.broadcast_to(sizes, (x.shape[0], sizes.shape[-1]))
    out = np.zeros((sizes.shape[1], x.shape[0], x.shape[2], y.shape[0]), x.dtype)
    for b, row in enumerate(sizes):
        ends = np.cumsum(row)
        for g, (start, end) in enumerate(zip(ends - row, ends)):
            out[g, b] = np.einsum("km,nk->mn", x[b, start:end], y[:, start:end, b])
    return out


def summed(rng, dtype):
    for sizes in ([[1, 3, 0], [2, 1, 1]], [2, 2, 1], [0, 4]):
        yield Sample((*arrays(rng, dtype, (2, 4, 3), (5, 4, 2)), np.array(sizes, np.int64)))


FREE = RaggedDotDimensionNumbers((((3,), (0,)), ((1,), (3,))), [2], [1])


def free_reference(x, y, sizes):
    """(a, b, m, k), (k, g, n, b), (b, a, g) -> (b, a, m, n): groups of m, after the free axis a."""
    a, b, m, _ = x.shape
    sizes = np.broadcast_to(sizes, (b, a, y.shape[1]))
    out = np.zeros((b, a, m, y.shape[2]), x.dtype)
    for i in range(a):
        for j in range(b):
            out[j, i] = ragged_reference(x[i, j], y[:, :, :, j].transpose(1, 0, 2), sizes[j, i])
    return out


def free(rng, dtype):
    own = [[[1, 2], [0, 3], [3, 0]], [[2, 1], [1, 1], [0, 2]]]
    for sizes in (own, [1, 2]):
        yield Sample((*arrays(rng, dtype, (3, 2, 3, 4), (4, 2, 5, 2)), np.array(sizes, np.uint8)))


def ragged_batch(x, y, sizes):
    return lax.ragged_dot_general(x, y, sizes, RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), [0], []))


def distinct(rng, dtype, shape):
    """Numbers in random order, no two of them close."""
    n = int(np.prod(shape))
    return np.asarray(rng.permutation(n).reshape(shape) - n / 2).astype(dtype)


def extremes(rng, dtype):
    for shape, rest in (
        ((5,), (2,)),
        ((2, 4), (1, 0)),
        ((3, 1), (1,)),
        ((2, 0, 3), (2, 2, 0.5)),
        ((3, 3), (3, -2, 1.0, 9)),
    ):
        yield Sample((distinct(rng, dtype, shape), *rest))


def largest(x, k, axis=-1, recall=0.95, size=-1):
    order = np.flip(np.argsort(x, axis, kind="stable"), axis).take(range(k), axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


def smallest(x, k, axis=-1, recall=0.95, size=-1):
    order = np.argsort(x, axis, kind="stable").take(range(k), axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


def nan_among(dtype):
    return [Sample((np.array([1, np.nan, -np.inf, np.inf, -0.0, 0.0, 1], dtype), k)) for k in (1, 3, 7)]


x32, y32 = np.ones((2, 3), np.float32), np.ones((2, 3, 4), np.float32)
two = np.array([1, 1])

ROWS = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])


def general(dot_numbers, ragged_dims, group_dims, sizes=two):
    numbers = RaggedDotDimensionNumbers(dot_numbers, ragged_dims, group_dims)
    return lax.ragged_dot_general(x32, y32, np.array(sizes), numbers)


OPS = [
    Op(
        "optimization_barrier", lambda xs: lax.optimization_barrier(xs), pairs, lambda xs: xs, ALL,
        edges=lambda dtype: [Sample(([edge_values(dtype)],))],
        errors=[
            (lambda: lax.optimization_barrier([x32, "x"]), TypeError, "optimization_barrier: .*'x' of type str"),
        ],
    ),
    Op(
        "optimization_barrier:of_results", barrier_of_results, pairs,
        lambda xs: {"x": xs[0] ** 4, "y": xs[1] ** 2}, ["float64", "complex128"], ulps=16,
        errors=[
            (lambda: lax.optimization_barrier({"x": object()}), TypeError, "optimization_barrier: .* of type object"),
        ],
    ),
    Op(
        "composite", scaled_square,
        lambda rng, dtype: [Sample((array(rng, dtype, s),), {"factor": 2, "label": "a"}) for s in ((), (3,), (0, 2))],
        lambda x, factor, label: {"square": x * x * x.dtype.type(factor), "x": x}, NUMBERS,
        errors=[
            (lambda: lax.composite(3, "test.three"), TypeError, "composite: decomposition must be a function, got 3"),
            (lambda: scaled_square(x32, factor=object()), TypeError, "composite: keyword argument factor .*number"),
        ],
    ),
    Op(
        "dot_general:ragged_dot", lax.ragged_dot, ragged, ragged_reference, NUMBERS,
        rtol={"float32": 1e-5, "complex64": 1e-5}, ulps=16,
        errors=[
            (lambda: lax.ragged_dot(x32, y32, two[:1]), TypeError, r"ragged_dot\w*: the group axis .* i64\[1\]"),
            (lambda: lax.ragged_dot(x32, y32, two + 0.5), TypeError, r"ragged_dot\w*: group_sizes .* f64\[2\]"),
            (lambda: lax.ragged_dot(x32, y32[0], two), TypeError, r"ragged_dot: .* f32\[3,4\]"),
            (lambda: lax.ragged_dot(x32, y32, two, group_offset=1), NotImplementedError, "ragged_dot.*group_offset"),
        ],
    ),
    Op(
        "dot_general:ragged_summed", lambda x, y, sizes: lax.ragged_dot_general(x, y, sizes, SUMMED),
        summed, summed_reference, ["float32", "float64", "complex128", "int32"], rtol={"float32": 1e-5}, ulps=16,
        errors=[
            (lambda: lax.ragged_dot_general(y32, np.ones((5, 4, 2)), two, SUMMED), TypeError,
             r"ragged_dot_general: contracting axes .*f32\[2,3,4\], f64\[5,4,2\]"),
            (lambda: lax.ragged_dot_general(np.ones((2, 4, 3)), np.ones((5, 4, 2)), two[None], SUMMED), TypeError,
             r"ragged_dot_general: group_sizes must have shape .* i64\[1,2\]"),
        ],
    ),
    Op(
        "dot_general:ragged_free", lambda x, y, sizes: lax.ragged_dot_general(x, y, sizes, FREE),
        free, free_reference, ["float64", "int8"], ulps=16,
        errors=[
            (lambda: lax.ragged_dot_general(np.ones((3, 2, 3, 4)), np.ones((4, 2, 5, 2)), two[:1], FREE), TypeError,
             r"ragged_dot_general: the group axis .* i64\[1\]"),
        ],
    ),
    Op(
        "dot_general:ragged_general", lax.ragged_dot_general,
        lambda rng, dtype: [Sample((*arrays(rng, dtype, (4, 2), (2, 2, 3)), np.array([1, 2]), ROWS))],
        lambda x, y, sizes, numbers: ragged_reference(x, y, sizes), ["float64"], ulps=16,
        errors=[
            (lambda: general(ROWS.dot_dimension_numbers, [0, 1], [0]), TypeError, r"ragged_dot_general: .* one ragged"),
            (lambda: general(ROWS.dot_dimension_numbers, [0], []), TypeError, r"ragged_dot_general: .* one group axis"),
            (lambda: general(ROWS.dot_dimension_numbers, [1], [0]), TypeError, r"ragged_dot_general: .* only where"),
            (lambda: general(ROWS.dot_dimension_numbers, [2], [0]), TypeError, r"ragged_dot_general: .* one of lhs"),
            (lambda: general(ROWS.dot_dimension_numbers, [0], [0], [two] * 2), TypeError, r"_dot_general: .*\[2,2\]"),
        ],
    ),
    Op(
        "dot_general:ragged_batch", ragged_batch,
        lambda rng, dtype: [Sample((*arrays(rng, dtype, (2, 1, 3), (2, 3, 2)), two))],
        lambda x, y, sizes: x @ y, ["float64"], ulps=16,
        errors=[
            (lambda: ragged_batch(y32, np.ones((2, 4, 2)), two * 1.0), TypeError,
             r"ragged_dot_general: group_sizes must .* f64\[2\]"),
        ],
    ),
    Op(
        "top_k:approx_max_k", lax.approx_max_k, extremes, largest, FLOATS,
        edges=lambda dtype: [Sample(s.args) for s in nan_among(dtype)[:1]],
        errors=[
            (lambda: lax.approx_max_k(x32, 4), ValueError, r"approx_max_k: .*k=4.* axis 1 of f32\[2,3\]"),
            (lambda: lax.approx_max_k(x32.astype(int), 1), TypeError, r"approx_max_k .*float.* i64\[2,3\]"),
            (lambda: lax.approx_max_k(x32, 1, recall_target=0.0), ValueError, "approx_max_k: recall_target .* 0.0"),
            (lambda: lax.approx_max_k(x32, 1, 0, 0.9, 1), ValueError, "approx_max_k: .*override=1"),
        ],
    ),
    Op(
        "top_k:approx_min_k", lax.approx_min_k, extremes, smallest, FLOATS,
        errors=[(lambda: lax.approx_min_k(x32, 4), ValueError, r"approx_min_k: .*k=4.* axis 1 of f32\[2,3\]")],
    ),
]  # fmt: skip
