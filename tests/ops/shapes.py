"""Records of operations on shapes, and of arrays made from nothing."""

import math

import numpy as np

import xform.numpy as xnp
from tests.ops.record import ALL, NUMBERS, Op, Sample, array, edge_values
from xform import lax
from xform.lax.roll import roll_p


def calls(*choices, **kwargs):
    """Samples of a function of one array: (shape, *further arguments)."""
    return lambda rng, dtype: [Sample((array(rng, dtype, shape), *rest), kwargs) for shape, *rest in choices]


def whole(*rest):
    """The edge values go through unchanged."""
    return lambda dtype: [Sample((edge_values(dtype), *rest))]


def broadcast_in_dim(x, shape, dims):
    lengths = [1] * len(shape)
    for n, d in zip(x.shape, dims, strict=True):
        lengths[d] = n
    return np.broadcast_to(x.reshape(lengths), shape)


def nothing(rng, dtype):
    """Samples without arrays, for functions of a dtype."""
    return [Sample((shape, np.dtype(dtype))) for shape in ((), (3,), (0, 2), (2, 3))]


def broadcasted_iota(n, dtype):
    return lax.broadcasted_iota(dtype, (n, 2), 0)


x32 = np.ones((2, 3), np.float32)

OPS = [
    Op(
        "broadcast_in_dim", lax.broadcast_in_dim,
        calls(((), (2, 3), ()), ((3,), (2, 3), (1,)), ((3,), (3, 2), (0,)), ((2, 1), (2, 4, 3), (0, 2)), ((), (), ()),
              ((0,), (2, 0), (1,)), ((1,), (0, 2), (1,)), ((1, 3), (1, 3), (0, 1)), ((3, 1), (3, 5), (0, 1))),
        broadcast_in_dim, ALL, edges=lambda dtype: [Sample((edge_values(dtype), (2, edge_values(dtype).size), (1,)))],
        errors=[
            (lambda: lax.broadcast_in_dim(x32, (3, 2), (0, 1)), TypeError, r"_in_dim: .* f32\[2,3\] .* \(3, 2\)"),
            (lambda: lax.broadcast_in_dim(x32, (2, 3), (1, 0)), TypeError, r"broadcast_in_dim: .* increasing"),
        ],
    ),
    Op(
        "broadcast_in_dim:broadcast", lax.broadcast, calls(((3,), (2,)), ((), (2, 3)), ((2, 3), ()), ((2,), (0,))),
        lambda x, sizes: np.broadcast_to(x, (*sizes, *x.shape)), ["float64", "int8"],
        errors=[
            (lambda: lax.broadcast(x32, (-1,)), ValueError, r"broadcast: .*\(-1,\)"),
            (lambda: lax.broadcast(x32, (1.5,)), TypeError, r"broadcast: .*\(1.5,\)"),
        ],
    ),
    Op(
        "broadcast_in_dim:expand_dims", lax.expand_dims,
        calls(((3,), (0,)), ((3,), (-1,)), ((2, 3), (0, 2, -1)), ((), (0, 1)), ((2,), ()), ((0, 2), (1,))),
        lambda x, dims: np.expand_dims(x, dims), ["float64", "bool"],
        errors=[(lambda: lax.expand_dims(x32, (3,)), ValueError, r"expand_dims: \(3,\) .* 3 axes")],
    ),
    Op(
        "broadcast_in_dim:broadcast_to_rank", lax.broadcast_to_rank, calls(((3,), 3), ((2, 3), 2), ((), 1)),
        lambda x, rank: x.reshape((1,) * (rank - x.ndim) + x.shape), ["float64"],
        errors=[(lambda: lax.broadcast_to_rank(x32, 1), ValueError, r"broadcast_to_rank: f32\[2,3\] .* 1 axes")],
    ),
    Op(
        "tile", lax.tile, calls(((3,), (2,)), ((2, 3), (2, 1)), ((2,), (0,)), ((), ())),
        np.tile, ["float64", "int32"],
        errors=[(lambda: lax.tile(x32, (2,)), ValueError, r"tile: reps .* f32\[2,3\]")],
    ),
    Op(
        "reshape", lax.reshape,
        calls(((2, 3), (3, 2)), ((6,), (2, 3)), ((2, 3), (6,)), ((), (1, 1)), ((1,), ()), ((0, 2), (3, 0)), ((4,), 4)),
        np.reshape, ALL, edges=lambda dtype: [Sample((edge_values(dtype), (1, edge_values(dtype).size, 1)))],
        errors=[(lambda: lax.reshape(x32, (4,)), TypeError, r"reshape: f32\[2,3\] has 6 elements, shape \(4,\)")],
    ),
    Op(
        "reshape:dimensions", lambda x, shape, dims: lax.reshape(x, shape, dims), calls(((2, 3, 4), (8, 3), (2, 0, 1))),
        lambda x, shape, dims: x.transpose(dims).reshape(shape), ["float64"],
        errors=[
            (lambda: lax.reshape(x32, (5,), (1, 0)), TypeError, r"reshape: f32\[3,2\] has 6 elements"),
            (lambda: lax.reshape(x32, (-1,), (1, 0)), ValueError, r"reshape: .*\(-1,\)"),
        ],
    ),
    Op(
        "reshape:collapse", lax.collapse, calls(((2, 3, 4), 1), ((2, 3, 4), 0, 2), ((2, 3, 4), 0, -1), ((2, 3), -1)),
        lambda x, a, b=None: x.reshape(*x.shape[:a], math.prod(x.shape[a:b]), *x.shape[len(x.shape[:b]):]),
        ["float64"],
        errors=[(lambda: lax.collapse(x32, 2), ValueError, r"collapse: .* 2 .* f32\[2,3\]")],
    ),
    Op(
        "transpose", lax.transpose,
        calls(((2, 3), (1, 0)), ((2, 3), (0, 1)), ((2, 3, 4), (2, 0, 1)), ((), ()), ((3,), (0,)), ((0, 2), (1, 0))),
        np.transpose, ALL, edges=whole((0,)),
        errors=[(lambda: lax.transpose(x32, (0, 0)), TypeError, r"transpose: \(0, 0\) .* f32\[2,3\]")],
    ),
    Op(
        "squeeze", lax.squeeze,
        calls(((1, 3), (0,)), ((1, 3, 1), (0, -1)), ((2, 1, 3, 1), (1,)), ((1, 0), (0,)), ((1,), (0,)), ((2,), ())),
        np.squeeze, ALL, edges=lambda dtype: [Sample((edge_values(dtype)[None], (0,)))],
        errors=[
            (lambda: lax.squeeze(x32, (0,)), ValueError, r"squeeze: .*\(0,\) of f32\[2,3\]"),
            (lambda: lax.squeeze(x32, (2,)), ValueError, r"squeeze: \(2,\) .* f32\[2,3\]"),
        ],
    ),
    Op(
        "rev", lax.rev,
        calls(((3,), (0,)), ((2, 3), (1,)), ((2, 3), (0, -1)), ((2, 3, 4), (0, 2)), ((), ()), ((0, 2), (0,))),
        np.flip, ALL, edges=whole((0,)),
        errors=[(lambda: lax.rev(x32, (2,)), ValueError, r"rev: \(2,\) .* f32\[2,3\]")],
    ),
    Op(
        "roll", xnp.roll,
        calls(((3,), 1), ((2, 3), -1, 1), ((2, 3), (1, 2), (0, 1)), ((2, 3, 4), 5, -1), ((0, 2), 1, 1)),
        np.roll, ALL, edges=whole(2),
        errors=[
            (lambda: roll_p.bind(x32, shift=3, dimension=1), ValueError, r"roll: no shift by 3 .* f32\[2,3\]"),
            (lambda: xnp.roll(x32, 1, 2), ValueError, r"numpy.roll: axis 2 is out of bounds"),
        ],
    ),
    Op(
        "split", lax.split,
        calls(((5,), (2, 3)), ((5,), (1, 0, 4)), ((2, 3), (1, 1, 1), 1), ((2, 3), (3,), -1), ((0, 2), (0, 0))),
        lambda x, sizes, axis=0: np.split(x, np.cumsum(sizes)[:-1], axis), ALL,
        edges=lambda dtype: [Sample((edge_values(dtype), (1, edge_values(dtype).size - 1)))],
        errors=[
            (lambda: lax.split(x32, (1, 2)), ValueError, r"split: .*\(1, 2\) .* axis 0 of f32\[2,3\]"),
            (lambda: lax.split(x32, (1, 2), 2), ValueError, r"split: \(2,\) .* f32\[2,3\]"),
        ],
    ),
    Op(
        "split:unstack", lax.unstack, calls(((3,),), ((2, 3), 1), ((2, 3), -2), ((0, 2), 1), ((2, 0), 0)),
        lambda x, axis=0: list(np.moveaxis(x, axis, 0)), ALL,
        errors=[(lambda: lax.unstack(x32, 2), ValueError, r"unstack: \(2,\) .* f32\[2,3\]")],
    ),
    Op(
        "broadcast_in_dim:broadcast_like", lax.broadcast_like,
        lambda rng, dtype: [
            Sample((array(rng, dtype, a), array(rng, dtype, b)))
            for a, b in (((), (2, 3)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((1,), (0,)), ((1, 3), (1, 3)))
        ],
        lambda x, like: np.broadcast_to(x, like.shape), ["float64", "int8"],
        errors=[(lambda: lax.broadcast_like(x32, x32.T), ValueError, r"broadcast_like: f32\[2,3\] .* f32\[3,2\]")],
    ),
    Op(
        "iota", lambda shape, dtype: lax.broadcasted_iota(dtype, shape, len(shape) - 1),
        lambda rng, dtype: nothing(rng, dtype)[1:],
        lambda shape, dtype: np.broadcast_to(np.arange(shape[-1]), shape).astype(dtype), NUMBERS, differentiable=False,
        errors=[
            (lambda: lax.iota("float32", -1), ValueError, r"broadcasted_iota: .*\(-1,\)"),
            (lambda: lax.iota(int, 2.5), TypeError, r"broadcasted_iota: .*\(2.5,\)"),
            (lambda: lax.iota("U3", 2), TypeError, r"broadcasted_iota: .*'U3'"),
        ],
    ),
    Op(
        "iota:dimension", broadcasted_iota,
        lambda rng, dtype: [Sample((n, np.dtype(dtype))) for n in (0, 1, 3)],
        lambda n, dtype: np.indices((n, 2))[0].astype(dtype), ["int64", "float32"], differentiable=False,
        errors=[(lambda: lax.broadcasted_iota(int, (2,), 1), ValueError, r"broadcasted_iota: dimension 1 .* \(2,\)")],
    ),
    Op(
        "broadcast_in_dim:full", lambda value, shape: lax.full(shape, value),
        calls(((), (2, 3)), ((), ()), ((), (0, 2))),
        lambda value, shape: np.full(shape, value), ALL,
        errors=[
            (lambda: lax.full((2,), x32), TypeError, r"full: .*scalar, got f32\[2,3\]"),
            (lambda: lax.full((2, -1), 1.0), ValueError, r"full: .*\(2, -1\)"),
            (lambda: lax.full((2,), 1.0, "U3"), TypeError, r"full: .*'U3'"),
        ],
    ),
    Op(
        "broadcast_in_dim:full_like", lambda x: lax.full_like(x, 2), calls(((2, 3),), ((),), ((0, 2),)),
        lambda x: np.full_like(x, 2), ["float64", "int8", "bool"], differentiable=False,
        errors=[
            (lambda: lax.full_like("x", 1), TypeError, "full_like: .*'x' of type str"),
        ],
    ),
]  # fmt: skip
