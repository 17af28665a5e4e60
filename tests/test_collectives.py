"""Collectives over named axes of `vmap` and of `pmap`, and `pmap` itself, against NumPy."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax

N = 8

# name: function of one row, and the same on all rows (axis 0).
ROUND = [(i, (i + 1) % N) for i in range(N)]


def exchanged(x):
    """From three rows, send rows 0 and 1 to the next position and row 2 to the one before, where they change places."""
    me, each = lax.axis_index("i"), xnp.arange(N)
    onward, back = each == (me + 1) % N, each == (me - 1) % N
    sizes, start, target = 2 * onward + back, 2 * back, onward.astype(int)
    received = lax.all_to_all(sizes, "i", 0, 0, tiled=True)
    return lax.ragged_all_to_all(x, xnp.zeros(4), start, sizes, target, received, axis_name="i")


def exchanged_reference(x):
    return np.stack([np.roll(x[:, 2], -1), *np.roll(x[:, :2], 1, axis=0).T, np.zeros(N)], 1)


COLLECTIVES = {
    "psum": (lambda x: lax.psum(x, "i"), lambda x: np.broadcast_to(x.sum(0), x.shape)),
    "pmean": (lambda x: lax.pmean(x, "i"), lambda x: np.broadcast_to(x.mean(0), x.shape)),
    "pmax": (lambda x: lax.pmax(x, "i"), lambda x: np.broadcast_to(x.max(0), x.shape)),
    "pmin": (lambda x: lax.pmin(x, "i"), lambda x: np.broadcast_to(x.min(0), x.shape)),
    "all_gather": (lambda x: lax.all_gather(x, "i"), lambda x: np.broadcast_to(x, (N, *x.shape))),
    "all_gather axis": (
        lambda x: lax.all_gather(x, "i", axis=1),
        lambda x: np.broadcast_to(np.moveaxis(x, 0, 1), (N, x.shape[1], N)),
    ),
    "all_gather tiled": (
        lambda x: lax.all_gather(x, "i", tiled=True),
        lambda x: np.broadcast_to(x.reshape(-1), (N, x.size)),
    ),
    "ppermute round": (lambda x: lax.ppermute(x, "i", ROUND), lambda x: np.roll(x, 1, axis=0)),
    "ppermute partial": (
        lambda x: lax.ppermute(x, "i", [(0, 3), (5, 1)]),
        lambda x: np.stack([x[{3: 0, 1: 5}[i]] if i in (1, 3) else 0 * x[0] for i in range(N)]),
    ),
    "pshuffle": (lambda x: lax.pshuffle(x, "i", list(range(N))[::-1]), lambda x: x[::-1]),
    "psum_scatter": (
        lambda x: lax.psum_scatter(xnp.outer(xnp.arange(float(N)), x), "i"),
        lambda x: np.outer(np.arange(float(N)), x.sum(0)),
    ),
    "psum_scatter tiled": (
        lambda x: lax.psum_scatter(xnp.tile(x, N), "i", tiled=True),
        lambda x: np.broadcast_to(x.sum(0), x.shape),
    ),
    "pbroadcast": (lambda x: lax.pbroadcast(x, "i", 2), lambda x: np.broadcast_to(x[2], x.shape)),
    "pcast": (lambda x: lax.pcast(x, "i", to="varying"), lambda x: x),
    "ragged_all_to_all": (exchanged, exchanged_reference),
    "axis_index": (lambda x: x + lax.axis_index("i"), lambda x: x + np.arange(N)[:, None]),
    "normalised": (lambda x: x / lax.psum(x, "i"), lambda x: x / x.sum(0)),
}


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(N, 3))


@pytest.mark.parametrize("name", COLLECTIVES)
def test_values(name, rows):
    function, reference = COLLECTIVES[name]
    expected = reference(rows)
    np.testing.assert_allclose(xform.vmap(function, axis_name="i")(rows), expected, rtol=1e-12)
    np.testing.assert_allclose(xform.pmap(function, axis_name="i")(rows), expected, rtol=1e-12)
    np.testing.assert_allclose(xform.jit(xform.vmap(function, axis_name="i"))(rows), expected, rtol=1e-12)
    np.testing.assert_allclose(xform.jit(xform.pmap(function, axis_name="i"))(rows), expected, rtol=1e-12)
    np.testing.assert_allclose(xform.vmap(xform.jit(function), axis_name="i")(rows), expected, rtol=1e-12)
    last = xform.vmap(function, in_axes=1, out_axes=1, axis_name="i")(rows.T)
    np.testing.assert_allclose(last, np.moveaxis(expected, 0, 1), rtol=1e-12)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_derivatives(name, rows):
    """The gradient of a weighted sum of all rows, against central differences."""
    function, reference = COLLECTIVES[name]
    weights = np.random.default_rng(1).normal(size=reference(rows).shape)

    def loss(mapper, x):
        return xnp.sum(weights * mapper(function, axis_name="i")(x) ** 2)

    step = 1e-6
    expected = np.zeros_like(rows)
    for index in np.ndindex(*rows.shape):
        d = np.zeros_like(rows)
        d[index] = step
        high, low = ((weights * reference(rows + s * d) ** 2).sum() for s in (1, -1))
        expected[index] = (high - low) / (2 * step)
    for mapper in (xform.vmap, xform.pmap):
        gradient = xform.grad(loss, argnums=1)(mapper, rows)
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
        _, slope = xform.jvp(lambda x, m=mapper: loss(m, x), (rows,), (np.ones_like(rows),))
        np.testing.assert_allclose(slope, expected.sum(), rtol=1e-5, atol=1e-5)


def test_all_to_all_is_a_transposition():
    x = np.arange(N * N * 2.0).reshape(N, N, 2)
    exchange = lambda a: lax.all_to_all(a, "i", 0, 0)  # noqa: E731
    np.testing.assert_array_equal(xform.vmap(exchange, axis_name="i")(x), x.swapaxes(0, 1))
    np.testing.assert_array_equal(xform.pmap(exchange, axis_name="i")(x), x.swapaxes(0, 1))
    tiled = lambda a: lax.all_to_all(a, "i", 0, 1, tiled=True)  # noqa: E731
    expected = np.stack([np.concatenate([x[j, i : i + 1] for j in range(N)], axis=1) for i in range(N)])
    np.testing.assert_array_equal(xform.vmap(tiled, axis_name="i")(x), expected)
    np.testing.assert_array_equal(xform.pmap(tiled, axis_name="i")(x), expected)


def test_sum_of_a_number_is_known_when_tracing():
    sizes = []
    xform.vmap(lambda x: sizes.append(lax.psum(1, "i")) or x, axis_name="i")(np.ones(5))
    assert sizes == [5]
    assert int(xform.vmap(lambda x: lax.axis_size("i"), axis_name="i", out_axes=None)(np.ones(5))) == 5


def test_two_named_axes():
    x = np.random.default_rng(0).normal(size=(3, 4))

    def inner(v):
        return lax.psum(v, ("a", "b")), lax.psum(v, "a"), lax.psum(v, "b"), lax.axis_index(("a", "b"))

    both, a, b, index = xform.vmap(xform.vmap(inner, axis_name="b"), axis_name="a")(x)
    np.testing.assert_allclose(both, np.full((3, 4), x.sum()))
    np.testing.assert_allclose(a, np.broadcast_to(x.sum(0), (3, 4)))
    np.testing.assert_allclose(b, np.broadcast_to(x.sum(1)[:, None], (3, 4)))
    np.testing.assert_array_equal(index, np.arange(12).reshape(3, 4))


def test_vmap_inside_pmap(rows):
    f = xform.pmap(xform.vmap(lambda x: lax.psum(x, "i") + lax.psum(x, "j"), axis_name="j"), axis_name="i")
    np.testing.assert_allclose(f(rows), rows.sum(0)[None, :] + rows.sum(1)[:, None])


def test_collective_inside_scan(rows):
    def step(carry, _):
        return carry / lax.psum(carry, "i"), None

    f = lambda x: lax.scan(step, x, None, length=3)[0]  # noqa: E731
    positive = np.abs(rows) + 1
    expected = positive / positive.sum(0)
    np.testing.assert_allclose(xform.vmap(f, axis_name="i")(positive), expected)
    np.testing.assert_allclose(xform.pmap(f, axis_name="i")(positive), expected)


def test_pmap_trees_axes_and_static_arguments():
    def f(p, x, power, *, scale):
        return {"y": p["w"] * x**power * scale}, lax.psum(x, "i")

    mapped = xform.pmap(
        f, axis_name="i", in_axes=({"w": None}, 1, None), out_axes=({"y": 1}, None), static_broadcasted_argnums=2
    )
    x = np.arange(6.0).reshape(2, 3)
    out, total = mapped({"w": 2.0}, x, 2, scale=np.array([1.0, 10.0, 100.0]))
    np.testing.assert_allclose(out["y"], 2 * x**2 * np.array([1.0, 10.0, 100.0]))
    np.testing.assert_allclose(total, x.sum(1))


def test_results_stay_on_their_devices():
    x = xform.pmap(lambda v: 2 * v)(np.arange(4.0))
    assert len(set(map(str, xform.devices()))) == N
    from xform.backends import xla

    buffer = x._device_buffer()
    assert len(xla.devices_of(buffer)) == 4
    y = xform.pmap(lambda v: v + 1)(x)
    assert y.tolist() == [1.0, 3.0, 5.0, 7.0]
    assert (x + y).tolist() == [1.0, 5.0, 9.0, 13.0]
    assert float(xform.jit(lambda v: v.sum())(x)) == 12.0


def test_closed_over_arrays_and_gradients_of_them():
    w = xnp.arange(3.0)
    x = np.random.default_rng(0).normal(size=(4, 3))

    def loss(w):
        return xform.pmap(lambda row: xnp.sum(w * row**2))(x).sum()

    np.testing.assert_allclose(loss(w), (np.arange(3.0) * x**2).sum())
    np.testing.assert_allclose(xform.grad(loss)(w), (x**2).sum(0))
    np.testing.assert_allclose(xform.jit(xform.grad(loss))(w), (x**2).sum(0))
    np.testing.assert_allclose(xform.vmap(loss)(np.stack([w, 2 * w])), [loss(w), 2 * loss(w)])


def test_one_device():
    out = xform.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(np.array([5.0]))
    assert out.shape == (1,) and out.tolist() == [1.0]


def test_traced_once_for_equal_signatures():
    traces = []
    f = xform.pmap(lambda x: traces.append(None) or x + 1)
    for _ in range(3):
        f(np.ones(4))
    f(np.ones(5))
    assert len(traces) == 2


def test_errors():
    with pytest.raises(NameError, match="unbound axis name: 'i'"):
        lax.psum(1.0, "i")
    with pytest.raises(NameError, match=r"unbound axis name: 'k' .*'i'"):
        xform.vmap(lambda x: lax.pmax(x, "k"), axis_name="i")(np.ones(3))
    with pytest.raises(ValueError, match=r"length 9.*8 devices.*XFORM_NUM_CPU_DEVICES"):
        xform.pmap(lambda x: x)(np.ones(9))
    with pytest.raises(ValueError, match="ppermute: targets must be distinct"):
        xform.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), axis_name="i")(np.ones(3))
    with pytest.raises(ValueError, match="one length"):
        xform.pmap(lambda x, y: x)(np.ones(3), np.ones(4))
    with pytest.raises(NotImplementedError, match="axis_index_groups"):
        xform.vmap(lambda x: lax.psum(x, "i", axis_index_groups=[[0]]), axis_name="i")(np.ones(1))


def test_ragged_exchange_as_documented():
    """Overlap, several pieces for each position, what lies outside of them, wrong arguments."""

    def f(*args):
        return lax.ragged_all_to_all(*args, axis_name="i")

    # Two positions, one piece for each: the example of the specification of XLA's operation.
    operand = np.array([[1, 2, 2], [3, 4, 0]])
    sizes, target = np.array([[1, 2], [1, 1]]), np.array([[0, 0], [1, 2]])
    args = (operand, np.full((2, 4), -1), np.array([[0, 1], [0, 1]]), sizes, target, sizes.T)
    expected = [[1, 3, -1, -1], [2, 2, 4, -1]]
    for run in (xform.vmap, lambda *a, **k: xform.jit(xform.vmap(*a, **k)), xform.pmap):
        assert run(f, axis_name="i")(*args).tolist() == expected
    # Two pieces each, of rows with two columns; the later one stays.
    operand = np.arange(12.0).reshape(2, 3, 2)
    starts = np.array([[0, 2, 0, 1], [1, 1, 0, 0]], np.int32)
    sizes = np.array([[2, 1, 0, 2], [1, 0, 1, 1]], np.uint8)
    target = np.array([[0, 1, 0, 0], [1, 0, 2, 2]])
    got = xform.vmap(f, axis_name="i")(operand, np.zeros((2, 3, 2)), starts, sizes, target, sizes)
    assert got[:, :, 0].tolist() == [[0, 8, 0], [2, 4, 6]]
    with pytest.raises(TypeError, match=r"ragged_all_to_all: .* multiple of 2, got i64\[1\]"):
        xform.vmap(f, axis_name="i")(*[a[:, :1] for a in args])


def test_only_varying_values():
    for f in (lambda x: lax.pcast(x, "i", to="reduced"), lambda x: lax.all_gather(x, "i", to="reduced")):
        with pytest.raises(NotImplementedError, match=r"lax\.\w+: only to='varying'"):
            xform.vmap(f, axis_name="i")(np.ones(2))
    with pytest.raises(NameError, match="unbound axis name: 'j'"):
        xform.vmap(lambda x: lax.pcast(x, "j", to="varying"), axis_name="i")(np.ones(2))
