"""Records of slices, padding and concatenation."""

import numpy as np

from tests.ops.record import ALL, Op, Sample, array, arrays, edge_values
from xform import lax

SLICES = [  # shape, starts, limits, strides
    ((), (), (), None),
    ((5,), (1,), (4,), None),
    ((5,), (0,), (5,), (2,)),
    ((4, 3), (1, 0), (4, 2), (2, 1)),
    ((4, 3), (2, 1), (2, 3), None),
    ((7, 1, 5), (0, 0, 1), (7, 1, 5), (3, 1, 3)),
    ((0, 2), (0, 1), (0, 2), None),
]


def slice_samples(rng, dtype):
    return [Sample((array(rng, dtype, shape),), dict(zip(("start_indices", "limit_indices", "strides"), rest)))
            for shape, *rest in SLICES]  # fmt: skip


def slice_reference(x, start_indices, limit_indices, strides):
    return x[tuple(map(slice, start_indices, limit_indices, strides or (1,) * x.ndim))]


# shape, sizes, starts: inside, negative ones that count from the end, and ones that are moved back
WINDOWS = [
    ((), (), ()),
    ((5,), (2,), (np.int64(1),)),
    ((5,), (3,), (np.int32(-2),)),
    ((5,), (2,), (np.int8(100),)),
    ((5,), (2,), (np.int64(-100),)),
    ((5,), (2,), (np.uint8(255),)),
    ((3, 4), (2, 1), (np.int64(2), np.int64(-1))),
    ((3, 4), (3, 0), (np.uint32(1), np.int16(3))),
    ((2, 0, 3), (1, 0, 3), (np.int64(1), np.int64(5), np.int64(-3))),
    ((300,), (2,), (np.int8(-128),)),
]


def window(shape, sizes, starts):
    """The slices of a window that is moved inside."""
    out = []
    for n, m, s in zip(shape, sizes, map(int, starts), strict=True):
        s = min(max(s + n if s < 0 else s, 0), n - m)
        out.append(slice(s, s + m))
    return tuple(out)


def dynamic_slice_samples(rng, dtype):
    return [Sample((array(rng, dtype, shape), starts), {"slice_sizes": sizes}) for shape, sizes, starts in WINDOWS]


def one_array_of_starts(rng, dtype):
    return [Sample((array(rng, dtype, (4, 3)), np.array([1, -2])), {"slice_sizes": (2, 2)})]


def update_samples(rng, dtype):
    return [Sample((*arrays(rng, dtype, shape, sizes), starts)) for shape, sizes, starts in WINDOWS]


def update_reference(x, update, starts):
    out = np.array(x)
    out[window(x.shape, update.shape, starts)] = update
    return out


PADDINGS = [
    ((), ()),
    ((3,), ((1, 2, 0),)),
    ((3,), ((-1, 2, 0),)),
    ((3,), ((0, 0, 2),)),
    ((4,), ((-2, -3, 2),)),
    ((4,), ((-3, 1, 1),)),
    ((4,), ((5, -7, 1),)),
    ((3,), ((-5, 1, 1),)),
    ((3,), ((-7, 3, 1),)),
    ((3,), ((3, -7, 1),)),
    ((1,), ((0, 2, 5),)),
    ((0,), ((2, 1, 3),)),
    ((2,), ((-2, 0, 0),)),
    ((2, 3), ((1, 0, 1), (0, -1, 2))),
    ((2, 0, 3), ((1, 1, 1), (0, 0, 0), (0, 1, 0))),
]


def pad_samples(rng, dtype):
    return [Sample((*arrays(rng, dtype, shape, ()),), {"padding_config": config}) for shape, config in PADDINGS]


def pad_reference(x, value, padding_config):
    """Position p of an axis of the result holds element (p - low) / (interior + 1), if there is one."""
    for d, (low, high, inner) in enumerate(padding_config):
        x = np.moveaxis(x, d, 0)
        n = len(x)
        source = np.arange(low + high + n + max(n - 1, 0) * inner) - low
        inside = (source >= 0) & (source % (inner + 1) == 0) & (source < n * (inner + 1))
        out = np.full((source.size, *x.shape[1:]), value, x.dtype)
        out[inside] = x[source[inside] // (inner + 1)]
        x = np.moveaxis(out, 0, d)
    return x


CONCATENATIONS = [
    (((3,), (2,)), 0),
    (((2, 3), (2, 1), (2, 0)), 1),
    (((2, 3),), 0),
    (((0, 2), (1, 2), (2, 2)), 0),
    (((1, 2, 2), (1, 1, 2)), 1),
]


def concatenate_samples(rng, dtype):
    return [Sample((arrays(rng, dtype, *shapes),), {"dimension": d}) for shapes, d in CONCATENATIONS]


def values_only(call):
    """Edge values through an operation that moves values."""
    return lambda dtype: [call(edge_values(dtype))]


X = np.arange(12.0).reshape(3, 4)

OPS = [
    Op(
        "slice", lax.slice, slice_samples, slice_reference, ALL,
        edges=values_only(lambda v: Sample((v,), dict(start_indices=(0,), limit_indices=v.shape, strides=None))),
        errors=[
            (lambda: lax.slice(X, (0,), (2,)), TypeError, r"slice: operand f64\[3,4\] needs 2 start indices"),
            (lambda: lax.slice(X, (0, 0), (2, 5)), TypeError, r"slice: 0 <= start <= limit <= length .*f64\[3,4\]"),
            (lambda: lax.slice(X, (-1, 0), (2, 4)), TypeError, "slice: 0 <= start"),
            (lambda: lax.slice(X, (0, 0), (3, 4), (0, 1)), TypeError, "slice: .*stride >= 1"),
        ],
    ),
    Op(
        "dynamic_slice", lax.dynamic_slice, dynamic_slice_samples,
        lambda x, starts, slice_sizes: x[window(x.shape, slice_sizes, starts)], ALL,
        errors=[
            (lambda: lax.dynamic_slice(X, (0,), (1, 1)), TypeError, "dynamic_slice: 2 start indices are needed"),
            (lambda: lax.dynamic_slice(X, (0, 0), (4, 1)), TypeError, r"dynamic_slice: a slice of shape \(4, 1\)"),
            (lambda: lax.dynamic_slice(X, (0.5, 0), (1, 1)), TypeError, "dynamic_slice: start indices must be integer"),
            (lambda: lax.dynamic_slice(X, X, (1, 1)), TypeError, "dynamic_slice: start_indices must be scalars or"),
        ],
    ),
    Op(
        "dynamic_slice:array", lax.dynamic_slice, one_array_of_starts,
        lambda x, starts, slice_sizes: x[window(x.shape, slice_sizes, starts)], ["float64"],
        errors=[
            (lambda: lax.dynamic_slice(X, np.array([1]), (2, 2)), TypeError,
             r"dynamic_slice: 2 start indices .*\(3, 4\), got 1"),
            (lambda: lax.dynamic_slice(X, np.array([[1, 2]]), (2, 2)), TypeError, r"dynamic_slice: .* i64\[1,2\]"),
        ],
    ),
    Op(
        "dynamic_slice:clamped",
        lambda x, start: lax.dynamic_slice(x, (start,), (2,), allow_negative_indices=False),
        lambda rng, dtype: [Sample((array(rng, dtype, (4,)), np.int64(s))) for s in (-1, 1, 7)],
        lambda x, start: x[min(max(start, 0), 2) :][:2], ["float64"],
        errors=[
            (lambda: lax.dynamic_slice(X, (0, 0), (2, 5), allow_negative_indices=False), TypeError,
             r"dynamic_slice: .*\(2, 5\).* f64\[3,4\]"),
        ],
    ),
    Op(
        "dynamic_update_slice", lax.dynamic_update_slice, update_samples, update_reference, ALL,
        errors=[
            (lambda: lax.dynamic_update_slice(X, X[0], (0, 0)), TypeError, "dynamic_update_slice: operand .* sizes"),
            (lambda: lax.dynamic_update_slice(X, X[:2].astype(int), (0, 0)), TypeError, "dynamic_update_slice needs"),
        ],
    ),
    Op(
        "pad", lax.pad, pad_samples, pad_reference, ALL,
        edges=values_only(lambda v: Sample((v, v[-1]), {"padding_config": ((1, 1, 1),)})),
        errors=[
            (lambda: lax.pad(X, 0.0, [(0, 0, 0)]), ValueError, r"pad: operand f64\[3,4\] needs 2 triples"),
            (lambda: lax.pad(X, 0.0, [(0, 0, 0), (0, 0, -1)]), ValueError, "pad: .* interior >= 0"),
            (lambda: lax.pad(X, 0.0, [(-2, -2, 0), (0, 0, 0)]), ValueError, r"pad: .* \(-1, 4\)"),
            (lambda: lax.pad(X, np.int64(0), [(0, 0, 0)] * 2), TypeError, "pad needs operands of one dtype"),
            (lambda: lax.pad(X, np.zeros(2), [(0, 0, 0)] * 2), TypeError, r"pad: the padding value .* f64\[2\]"),
            (lambda: lax.pad(X, 0.0, [(0, 0)] * 2), ValueError, "pad: padding_config takes triples"),
        ],
    ),
    Op(
        "stack", lax.stack,
        lambda rng, dtype: [
            Sample((list(arrays(rng, dtype, *[shape] * n)), axis))
            for shape, n, axis in (((), 2, 0), ((3,), 2, 0), ((3,), 3, -1), ((2, 3), 1, 1), ((0, 2), 2, 2))
        ],
        lambda xs, axis: np.stack(xs, axis), ALL,
        errors=[
            (lambda: lax.stack([]), ValueError, "stack: at least one array"),
            (lambda: lax.stack([X, X.T]), ValueError, r"stack: .* f64\[3,4\], f64\[4,3\]"),
            (lambda: lax.stack([X], 3), ValueError, r"stack: \(3,\) .* 3 axes"),
        ],
    ),
    Op(
        "concatenate", lax.concatenate, concatenate_samples, lambda xs, dimension: np.concatenate(xs, dimension), ALL,
        errors=[
            (lambda: lax.concatenate([], 0), ValueError, "concatenate: at least one"),
            (lambda: lax.concatenate([X, X[:, :2]], 0), TypeError, r"concatenate: .* f64\[3,4\], f64\[3,2\]"),
            (lambda: lax.concatenate([X, X], 2), ValueError, "concatenate: dimension 2"),
            (lambda: lax.concatenate([X], -3), ValueError, "concatenate: dimension -3"),
            (lambda: lax.concatenate([X, X.astype(int)], 0), TypeError, "concatenate needs operands of one dtype"),
        ],
    ),
    Op(
        "slice:in_dim", lax.slice_in_dim,
        lambda rng, dtype: [Sample((array(rng, dtype, (3, 6)), *rest)) for rest in [(1, -1, 2, 1), (None, 2), (0, 0)]],
        lambda x, start, stop, step=1, axis=0: x[(slice(None),) * axis + (slice(start, stop, step),)], ["float64"],
        errors=[(lambda: lax.slice_in_dim(X, 0, 9), TypeError, "slice: 0 <= start")],
    ),
    Op(
        "slice:index_in_dim", lax.index_in_dim,
        lambda rng, dtype: [Sample((array(rng, dtype, (3, 6)), *rest)) for rest in [(-1, 1), (0, 0, False)]],
        lambda x, i, axis, keepdims=True: np.take(x, [i] if keepdims else i, axis), ["float64"],
        errors=[(lambda: lax.index_in_dim(X, 3), IndexError, "index_in_dim: index 3 is out of bounds for axis 0 with")],
    ),
    Op(
        "dynamic_slice:in_dim", lax.dynamic_slice_in_dim,
        lambda rng, dtype: [Sample((array(rng, dtype, (4, 4)), np.int64(i), 2, 1)) for i in (1, -3)],
        lambda x, i, n, axis: x[:, i:][:, :n], ["float64"],
        errors=[
            (lambda: lax.dynamic_slice_in_dim(X, 0, 1, 2), ValueError, r"dynamic_slice_in_dim: \(2,\) .* f64\[3,4\]"),
            (lambda: lax.dynamic_slice_in_dim(X, 0, 9), TypeError, r"dynamic_slice: .*\(9, 4\).* f64\[3,4\]"),
        ],
    ),
    Op(
        "dynamic_slice:index_in_dim", lax.dynamic_index_in_dim,
        lambda rng, dtype: [Sample((array(rng, dtype, (4, 4)), np.int64(i), 1, i > 0)) for i in (1, -3)],
        lambda x, i, axis, keepdims: np.take(x, [i] if keepdims else i, axis), ["float64"],
        errors=[
            (lambda: lax.dynamic_index_in_dim(X, 0, 2), ValueError, r"dynamic_index_in_dim: \(2,\) .* f64\[3,4\]"),
            (lambda: lax.dynamic_index_in_dim(X, 0.5), TypeError, r"dynamic_slice: .*integer scalars, got f64\[\]"),
        ],
    ),
    Op(
        "dynamic_update_slice:in_dim", lax.dynamic_update_slice_in_dim,
        lambda rng, dtype: [Sample((*arrays(rng, dtype, (3, 4), (3, 2)), np.int64(i), 1)) for i in (1, -3)],
        lambda x, y, i, axis: update_reference(x, y, (0, i)), ["float64"],
        errors=[
            (lambda: lax.dynamic_update_slice_in_dim(X, X, 0, 2), ValueError,
             r"dynamic_update_slice_in_dim: \(2,\) .* f64\[3,4\]"),
            (lambda: lax.dynamic_update_slice_in_dim(X, np.ones((3, 9)), 0, 1), TypeError,
             r"dynamic_update_slice: .*\(3, 9\).* f64\[3,4\]"),
        ],
    ),
    Op(
        "dynamic_update_slice:index_in_dim", lax.dynamic_update_index_in_dim,
        lambda rng, dtype: [Sample((*arrays(rng, dtype, (3, 4), shape), np.int64(2), -1)) for shape in [(3,), (3, 1)]],
        lambda x, y, i, axis: update_reference(x, y.reshape(3, 1), (0, i)), ["float64"],
        errors=[
            (lambda: lax.dynamic_update_index_in_dim(X, X[0], 0, 2), ValueError,
             r"dynamic_update_index_in_dim: \(2,\) .* f64\[3,4\]"),
            (lambda: lax.dynamic_update_index_in_dim(X, X[0], 0.5, 0), TypeError,
             r"dynamic_update_slice: .*integer scalars, got f64\[\]"),
        ],
    ),
    Op(
        "gather:index_take", lax.index_take,
        lambda rng, dtype: [Sample((array(rng, dtype, (3, 4, 2)), (np.array([0, 7, -1]), np.array([1, 1, 0])), (0, 2))),
                            Sample((array(rng, dtype, (3, 4)), (np.array([0, 2], np.int8),), (1,)))],
        lambda x, idxs, axes: np.stack([
            np.moveaxis(x, axes, range(len(axes)))[tuple(i % x.shape[d] for i, d in zip(k, axes))] for k in zip(*idxs)
        ]), ["float64", "int32"],
        errors=[(lambda: lax.index_take(X, [np.array([0])], (0, 1)), TypeError, "index_take: one index array")],
    ),
]  # fmt: skip
