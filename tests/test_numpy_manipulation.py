"""Shapes, orders, joining, repeating, padding, diagonals against NumPy."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.numpy_cases import Case, by_name, check, compare

A = np.arange(24.0).reshape(2, 3, 4)
M = np.arange(12.0).reshape(3, 4)
V = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
K = np.arange(6).reshape(2, 3)
S = np.float64(2.5)
MODES = ("edge", "reflect", "symmetric", "wrap", "maximum", "mean", "median", "minimum", "linear_ramp", "constant")

CASES = [
    *(Case("reshape", (A, s)) for s in ((4, 6), -1, (2, -1), (3, 1, 8), 24, [6, 4])),
    Case("reshape", (A, (6, 4)), {"order": "F"}),
    Case("reshape", (np.zeros((0, 3)), (3, 0))), Case("reshape", (S, (1, 1))),
    Case("ravel", (A,)), Case("ravel", (A, "F")), Case("ravel", (np.zeros((0, 2)),)), Case("ravel", (S,)),
    Case("squeeze", (A[:1, :, :1],)), Case("squeeze", (A[:1, :, :1], 0)), Case("squeeze", (A[:1, :, :1], (0, -1))),
    Case("squeeze", (S,)),
    Case("expand_dims", (M, 0)), Case("expand_dims", (M, (0, -1))), Case("expand_dims", (M, (1, 3))),
    *(Case(f"atleast_{n}d", (a,)) for n in (1, 2, 3) for a in (S, V, M, A)),
    Case("atleast_2d", (V, S), reference=lambda *a: [np.atleast_2d(x) for x in a]),
    Case("transpose", (A,)), Case("transpose", (A, (1, 0, 2))), Case("transpose", (A, (-1, 0, 1))),
    Case("transpose", (V,)),
    Case("permute_dims", (A, (2, 0, 1))), Case("matrix_transpose", (A,)), Case("swapaxes", (A, 0, -1)),
    Case("moveaxis", (A, 0, -1)), Case("moveaxis", (A, (0, 1), (2, 0))), Case("rollaxis", (A, 2)),
    Case("rollaxis", (A, 0, 3)), Case("rollaxis", (A, 1, 1)),
    Case("flip", (A,)), Case("flip", (A, 1)), Case("flip", (A, (0, -1))), Case("fliplr", (M,)), Case("flipud", (M,)),
    *(Case("rot90", (M, k)) for k in (-1, 0, 1, 2, 3, 5)), Case("rot90", (A, 1), {"axes": (2, 0)}),
    *(Case("roll", (M, s, *a)) for s, *a in ((0,), (1,), (-3,), (100,), (1, ()), ((1,), ()), (1, (0, 0)))),
    Case("roll", (M, 1, 0)), Case("roll", (M, (1, -2), (0, 1))),
    Case("roll", (M, 1, (0, 1))), Case("roll", (V[:0], 1)),
    Case("roll", (M, np.array(2), 1)), Case("roll", (M, np.array([1, -1]), (0, 1))),
    Case("broadcast_to", (V, (2, 5))), Case("broadcast_to", (S, (2,))), Case("broadcast_to", (M[:, :1], (2, 3, 4))),
    Case("broadcast_to", (V[:1], (0,))),
    Case("broadcast_arrays", (M, V[:4], S)), Case("broadcast_arrays", (K[:, :1], K[:1])),
    Case("split", (M, 3)), Case("split", (M, [1, 3]), {"axis": 1}), Case("split", (V, [2, 2, 9])),
    Case("array_split", (V, 3)), Case("array_split", (V, [-2])),
    Case("vsplit", (M, 3)), Case("hsplit", (M, 2)), Case("hsplit", (V, 5)), Case("dsplit", (A, 2)),
    Case("unstack", (A,), {"axis": 1}),
    Case("resize", (V, (2, 4))), Case("resize", (V, 3)), Case("resize", (M, (0,))),
    *(Case(n, ([M, M + 1],)) for n in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")),
    *(Case(n, ((V, V * 2),)) for n in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack")),
    *(Case(n, ([S, np.array(1.0)],)) for n in ("stack", "vstack", "hstack", "dstack", "column_stack")),
    Case("concatenate", ([M, M[:, :1]], 1)), Case("concatenate", ([M, V], None)),
    Case("concatenate", ([M, K[:, :1].repeat(4, 1)],)), Case("concat", ([M, M],), {"axis": -1}),
    Case("concatenate", ([V, V[:0]],), {"dtype": "float32"}, tolerance=1e-6), Case("concatenate", (M,)),
    Case("stack", ([M, M], 2)), Case("stack", ([M, M], -2)), Case("stack", (A,)),
    Case("append", (M, V)), Case("append", (M, M[:1], 0)),
    Case("block", ([[M, M[:, :1]], [M[:1], np.ones((1, 1))]],)), Case("block", ([V, V],)),
    Case("block", ([[1.0, 2.0], [3.0, 4.0]],)), Case("block", (M,)),
    *(Case("tile", (a, r)) for a in (M, V, S) for r in (2, (2, 3), (2, 1, 2), ())),
    Case("repeat", (M, 2)), Case("repeat", (M, 2, 0)), Case("repeat", (M, [1, 0, 2], 0)),
    Case("repeat", (V, np.array([0, 1, 2, 0, 1])), fixed=(1,)), Case("repeat", (S, 3)),
    Case("repeat", (V, np.array([1, 0, 2, 1, 1])), {"total_repeat_length": 5}, lambda a, r, **_: np.repeat(a, r)),
    *(Case("delete", (V, i), fixed=(1,))
        for i in (0, -1, [1, 3], slice(1, 4), np.array([True, False, False, True, False]))),
    Case("delete", (M, 1, 1)), Case("delete", (M, [0, 2], 0)),
    *(Case("insert", (V, i, 9.0)) for i in (0, -1, 5, [1, 3], [2, 2], slice(0, 3))),
    Case("insert", (V, 1, [7.0, 8.0])), Case("insert", (V, [1], [7.0, 8.0])),
    Case("insert", (M, 1, V[:3], 1)), Case("insert", (M, 2, 5.0), {"axis": 0}),
    Case("insert", (M, [1, 3], V[:2]), {"axis": 1}), Case("insert", (M, [1, 1], M[:, :2]), {"axis": 1}),
    Case("insert", (V, np.array(2), 9.0)), Case("insert", (V, np.array([4, 1]), np.array([8.0, 9.0]))),
    *(Case("pad", (a, w, m)) for a in (V, M) for w in (0, 1, (3, 2), ((3, 11),)) for m in MODES),
    *(Case("pad", (M, ((1, 2), (4, 0)), m)) for m in MODES), Case("pad", (K, 2, "mean")),
    Case("pad", (K, (2, 5), "linear_ramp"), {"end_values": ((7, -7), (3, 4))}),
    Case("pad", (M, 2), {"constant_values": 5}),
    Case("pad", (M, ((1, 2), (3, 4))), {"constant_values": ((1, 2), (3, 4))}),
    Case("pad", (M, 1), {"constant_values": (8, 9)}),
    Case("pad", (M, {-1: (1, 2)})), Case("pad", (V, 3, "maximum"), {"stat_length": 2}),
    Case("pad", (M, 2, "median"), {"stat_length": ((1, 2), (3, 3))}),
    *(Case("pad", (V, w, m), {"reflect_type": "odd"}) for w in (1, (3, 4), (9, 10)) for m in ("reflect", "symmetric")),
    Case("pad", (V[:1], 3, "reflect")),
    *(Case("diagonal", (A, k)) for k in (-1, 0, 1, 3, -5)), Case("diagonal", (A, 0, 2, 1)), Case("trace", (M,)),
    Case("trace", (K, 1)), Case("trace", (A,), {"axis1": 1, "axis2": 2, "dtype": "float32"}),
    *(Case("diag", (a, k)) for a in (V, M) for k in (-2, 0, 1)), Case("diag", (V[:0], 1)), Case("diagflat", (M, -1)),
    Case("diagflat", (S,)),
    Case("trim_zeros", (np.array([0, 0, 1, 0, 2, 0]),), jit=False),
    Case("trim_zeros", (np.array([0, 0, 1, 0, 2, 0]), "b"), jit=False),
]  # fmt: skip


@by_name(CASES)
def test_against_numpy(cases, mode):
    check(cases, mode)


def test_methods():
    x = xnp.array(A)
    for got, want in [
        (x.reshape(4, 6), A.reshape(4, 6)), (x.reshape((4, -1)), A.reshape(4, 6)), (x.reshape(-1), A.ravel()),
        (x.reshape(6, 4, order="F"), A.reshape(6, 4, order="F")),
        (x.T, A.T), (x.mT, A.mT), (x.transpose(1, 0, 2), A.transpose(1, 0, 2)), (x.transpose((2, 1, 0)), A.T),
        (x.transpose(), A.T), (x.transpose(None), A.T),
        (x.flatten(), A.flatten()), (x.ravel(), A.ravel()), (x.swapaxes(0, 1), A.swapaxes(0, 1)),
        (x.repeat(2, 0), A.repeat(2, 0)), (x[:, :1].squeeze(1), A[:, 0]),
        (x.diagonal(), A.diagonal()), (x.trace(), A.trace()), (x.real, A.real), (x.imag, A.imag), (xnp.array(V).T, V),
        (x.astype("int8"), A.astype("int8")),
        (x.view("int64"), A.view("int64")), (x.view("uint8"), A.view("uint8")),
        (xnp.array(K.astype("i1")[:, :2]).view("int16"), K.astype("i1")[:, :2].copy().view("int16")),
        (xnp.array(V > 2).view("uint8"), (V > 2).view("uint8")), (xnp.array([1 + 2j]).conj(), np.array([1 - 2j])),
        (x.clip(3, 5), A.clip(3, 5)), (round(xnp.array(2.567), 2), np.float64(2.57)),
    ]:  # fmt: skip
        compare(got, want)
    assert (
        x.ndim == 3
        and x.size == 24
        and len(x) == 2
        and x.itemsize == 8
        and x.nbytes == 192
        and xnp.shape(A) == (2, 3, 4)
    )
    assert [float(v) for v in xnp.array(V)] == V.tolist() and 4.0 in xnp.array(V) and 7.0 not in xnp.array(V)
    assert [v.shape for v in xform.jit(lambda x: list(x))(x)] == [(3, 4)] * 2
    assert xnp.ndim([[1]]) == 2 and xnp.size(A) == 24 and xnp.size(A, 1) == 3 and xnp.size(A, (0, 1)) == 6


def test_broadcast_shapes():
    assert (
        xnp.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
        and xnp.broadcast_shapes(3, (1,)) == (3,)
        and xnp.broadcast_shapes() == ()
    )
    with pytest.raises(
        ValueError,
        match=r"numpy\.broadcast_shapes: operands could not be broadcast together with shapes \(2,\), \(3,\)",
    ):
        xnp.broadcast_shapes((2,), (3,))


def test_traced_positions():
    x = xnp.array(V)
    compare(xform.jit(lambda x, i: xnp.delete(x, i))(x, 2), np.delete(V, 2))
    compare(xform.jit(lambda x, i: xnp.delete(x, i))(x, -1), np.delete(V, -1))
    compare(
        xform.jit(lambda x, i: xnp.delete(x, i, assume_unique_indices=True))(x, xnp.array([3, 0])), np.delete(V, [3, 0])
    )
    compare(xform.vmap(lambda s: xnp.roll(x, s))(xnp.arange(-2, 3)), np.stack([np.roll(V, s) for s in range(-2, 3)]))
    counts = xnp.array([2, 0, 1, 0, 0])
    compare(xform.jit(lambda r: xnp.repeat(x, r, total_repeat_length=5))(counts), np.array([3.0, 3, 4, 5, 5]))


def test_fill_diagonal():
    for shape in ((3, 3), (2, 4), (4, 2), (3, 3, 3)):
        for value in (9.0, np.array([7.0, 8.0])):
            want = np.zeros(shape)
            np.fill_diagonal(want, value)
            compare(xnp.fill_diagonal(xnp.zeros(shape), value, inplace=False), want)


def test_pad_empty():
    compare(xnp.pad(xnp.array(V), (1, 2), "empty"), np.pad(V, (1, 2)))


def test_pad_by_function():
    def ends(vector, width, axis, kwargs):
        n = vector.shape[0]
        places = np.arange(n)
        return xnp.where((places < width[0]) | (places >= n - width[1]), kwargs["value"], vector)

    compare(xnp.pad(xnp.array(M), 1, ends, value=5.0), np.pad(M, 1, constant_values=5.0))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: xnp.pad(x, 2, "reflect"), lambda x: xnp.pad(x, (1, 3), "wrap"), lambda x: xnp.diagonal(x, 1),
        lambda x: xnp.roll(x, 2, 1), lambda x: xnp.tile(x, (2, 1)),
        lambda x: xnp.repeat(x, 3, 1), lambda x: xnp.insert(x, 1, x[0], 0), lambda x: xnp.delete(x, 1, 1),
        lambda x: xnp.rot90(x), lambda x: xnp.stack([x, x * x], 1),
        lambda x: xnp.tril(x), lambda x: xnp.diag(x[0], -1), lambda x: xnp.pad(x, 1, "linear_ramp"),
        lambda x: xnp.block([[x, x], [x, x]]), lambda x: xnp.concatenate(xnp.split(x, 2, 1)),
    ],
)  # fmt: skip
def test_derivatives_and_vmap(function):
    from xform.test_util import check_grads

    x = np.random.default_rng(0).normal(size=(3, 4))
    check_grads(function, (x,), order=2, modes=("fwd", "rev"))
    batch = np.stack([x, 2 * x, x + 1], 1)
    got = xform.vmap(function, in_axes=1)(xnp.array(batch))
    np.testing.assert_allclose(
        np.asarray(got), np.stack([np.asarray(function(xnp.array(batch[:, i]))) for i in range(3)]), rtol=1e-14
    )


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: xnp.reshape(x, (2.5, 2)), TypeError, r"numpy\.reshape: shape must be an integer"),
        (lambda x: xnp.transpose(x, (0, 0)), ValueError, "repeated axis"),
        (lambda x: xnp.moveaxis(x, (0, 1), 0), ValueError, r"numpy\.moveaxis: source"),
        (lambda x: xnp.swapaxes(x, 0, 2), np.exceptions.AxisError, r"numpy\.swapaxes: axis2: axis 2 is out of bounds"),
        (lambda x: xnp.expand_dims(x, 5), np.exceptions.AxisError, r"numpy\.expand_dims: axis 5 is out of bounds"),
        (
            lambda x: xnp.broadcast_to(x, (4, 3)),
            ValueError,
            r"numpy\.broadcast_to: f64\[3,4\] can't be broadcast to shape \(4, 3\)",
        ),
        (lambda x: xnp.concatenate([x, x], 2), np.exceptions.AxisError, r"numpy\.concatenate: axis 2 is out of bounds"),
        (
            lambda x: xnp.concatenate(3.0),
            TypeError,
            r"numpy\.concatenate: arrays must be a list or tuple of arrays, got 3.0",
        ),
        (lambda x: xnp.delete(x, 7, 0), IndexError, "out of bounds"),
        (lambda x: xnp.fill_diagonal(x, 1), NotImplementedError, "inplace=False"),
        (lambda x: x.__setitem__(0, 1.0), TypeError, r"x = x\.at\[index\]\.set\(y\)"),
        (lambda x: xnp.roll(x, (1, 2, 3), (0, 1)), ValueError, r"numpy\.roll"),
        (lambda x: xnp.roll(x, [[1], [2]], (0, 1)), ValueError, r"numpy\.roll: .* scalars or 1D sequences"),
    ],
)
def test_errors(call, error, message, transform):
    with pytest.raises(error, match=message):
        transform(call)(xnp.ones((3, 4)))


def test_item_assignment_points_to_at():
    x = xnp.ones(3)
    with pytest.raises(TypeError, match=r"x = x\.at\[index\]\.set\(y\)"):
        x[0] = 1
    with pytest.raises(TypeError, match=r"x = x\.at\[index\]\.set\(y\)"):
        x[0] += 1
    with pytest.raises(TypeError, match=r"numpy\.delete"):
        del x[0]


def test_traced_repeats_need_a_length():
    with pytest.raises(TypeError, match=r"numpy\.repeat: argument repeats .* give total_repeat_length"):
        xform.jit(lambda r: xnp.repeat(xnp.ones(2), r))(xnp.array([1, 2]))


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
def test_keys_move_as_numbers_do(transform):
    key = xform.random.key(0)
    keys, other = xform.random.split(key, 6), xform.random.split(xform.random.key(1), 6)
    data, more = (np.asarray(xform.random.key_data(k)) for k in (keys, other))
    for function, want in [
        (lambda a, b: xnp.stack([a, b]), np.stack([data, more])),
        (lambda a, b: xnp.concatenate([a, b]), np.concatenate([data, more])),
        (lambda a, b: xnp.where(np.arange(6) < 2, a, b), np.where(np.arange(6)[:, None] < 2, data, more)),
        (lambda a, b: xnp.reshape(a, (2, 3)).T, data.reshape(2, 3, 2).swapaxes(0, 1)),
        (lambda a, b: xnp.expand_dims(a, 0), data[None]),
        (lambda a, b: xnp.roll(b, 1), np.roll(more, 1, 0)),
        (lambda a, b: xnp.array([a[0], b[0]]), np.stack([data[0], more[0]])),
        (lambda a, b: xnp.split(a, 2)[1], data[3:]),
        (lambda a, b: xnp.take(a, np.array([4, 1])), data[[4, 1]]),
    ]:
        got = transform(function)(keys, other)
        assert got.dtype == keys.dtype
        np.testing.assert_array_equal(np.asarray(xform.random.key_data(got)), want)
    with pytest.raises(TypeError, match=r"numpy\.sum"):
        xnp.sum(keys)
