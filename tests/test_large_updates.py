"""Updates of most of an array at a known place, which are arithmetic in programs for CPU: `lax.large_updates`."""

import numpy as np
import pytest

import xform
import xform.numpy as jnp
from xform import lax

PLACES = [
    np.s_[1:-1, 1:-1],
    np.s_[:, 2:],
    np.s_[:-3],
    np.s_[5:, :-5],
    np.s_[:],
    np.s_[0:1],  # too little of the array
    np.s_[3:4, 7],
]


def array(dtype=np.float64):
    """40 x 60 numbers, zeros of both signs, infinities and NaN among them."""
    x = np.random.default_rng(0).normal(size=(40, 60))
    x.ravel()[::7] = [*[-0.0, 0.0, np.inf, np.nan] * 85, -0.0, -np.inf, np.nan][: x.ravel()[::7].size]
    return x.astype(dtype)


def words(f, *args):
    """The names of the operations in a program."""
    return {
        line.split('"')[1].removeprefix("stablehlo.") for line in f.lower(*args).as_text().splitlines() if '"' in line
    }


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.complex64])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_values_are_those_of_numpy(place, dtype):
    x = array(np.float64 if dtype == np.int32 else dtype)
    if dtype == np.int32:
        x = np.arange(2400, dtype=np.int32).reshape(40, 60)
    v = (3 * x[place][::-1]).astype(dtype)
    put, added, multiplied = x.copy(), x.copy(), x.copy()
    put[place] = v
    added[place] += v
    multiplied[place] *= v
    for found, expected in (
        (lambda x, v: x.at[place].set(v), put),
        (lambda x, v: x.at[place].add(v), added),
        (lambda x, v: x.at[place].multiply(v), multiplied),
    ):
        out = np.asarray(xform.jit(found)(x, v))
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(np.signbit(out.real), np.signbit(expected.real))


@pytest.mark.parametrize("start", [(0, 0), (3, 5), (30, 50), (-4, 200)])
def test_places_are_moved_inside(start):
    """As where they are not known."""
    x, v = array(), np.arange(35.0 * 55).reshape(35, 55)
    known = xform.jit(lambda x, v: lax.dynamic_update_slice(x, v, start, allow_negative_indices=False))
    traced = xform.jit(lambda x, v, a, b: lax.dynamic_update_slice(x, v, (a, b), allow_negative_indices=False))
    np.testing.assert_array_equal(known(x, v), traced(x, v, *start))
    assert "select" in words(known, x, v) and "dynamic_update_slice" in words(traced, x, v, *start)


def test_operations():
    x, v = array(), array()[1:-1, 1:-1]
    inner = np.s_[1:-1, 1:-1]
    assert "scatter" not in words(xform.jit(lambda x, v: x.at[inner].add(v)), x, v)
    assert "scatter" not in words(xform.jit(lambda x, v: x.at[inner].multiply(v)), x, v)
    assert "dynamic_update_slice" not in words(xform.jit(lambda x, v: x.at[inner].set(v)), x, v)
    assert "dynamic_update_slice" in words(xform.jit(lambda x: x.at[0].set(1.0)), x)
    assert words(xform.jit(lambda x, v: lax.dynamic_update_slice(x, v, (0, 0))), x, x) == {"constant"}


def test_gradients():
    x, v = np.random.default_rng(0).normal(size=(2, 40, 60))
    inner = np.s_[1:-1, 2:]

    def f(x, v):
        y = x.at[inner].set(v[inner] * 2)
        y = y.at[inner].add(x[inner] * v[inner])
        return jnp.sum(y**3)

    y = x.copy()
    y[inner] = v[inner] * 2 + x[inner] * v[inner]
    dx, dv = 3 * y**2, np.zeros_like(v)
    dv[inner] = 3 * y[inner] ** 2 * (2 + x[inner])
    dx[inner] = 3 * y[inner] ** 2 * v[inner]
    for found, expected in zip(xform.jit(xform.grad(f, (0, 1)))(x, v), (dx, dv), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_loops_over_stencils_take_two_steps_at_a_time():
    """With nothing to be copied, as the updates are computed like all else."""

    def step(u, _):
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return u.at[1:-1, 1:-1].add(0.1 * (around - 4 * u[1:-1, 1:-1])), None

    u = np.random.default_rng(0).normal(size=(80, 80))
    f = xform.jit(lambda u: lax.scan(step, u, None, length=201)[0])
    assert f.lower(u).as_text().count("stablehlo.pad") == 3
    out = np.asarray(f(u))
    for _ in range(201):
        u, old = u.copy(), u
        u[1:-1, 1:-1] += 0.1 * (old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2] - 4 * old[1:-1, 1:-1])
    np.testing.assert_allclose(out, u, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_operands_padded_in_several_ways_are_padded_once(dtype):
    """As in the derivatives of stencils; values and zeros are those of `pad` on the host."""
    x = array(dtype)
    shifts = [((2, 0, 0), (1, 1, 0)), ((0, 2, 0), (1, 1, 0)), ((1, 1, 0), (2, 0, 0)), ((1, 1, 0), (0, 2, 0))]

    def f(x):
        twice = x * 2
        return [lax.pad(twice, dtype(0), shift) for shift in shifts]

    x = np.tile(x, (20, 20))
    g = xform.jit(f)
    assert g.lower(x).as_text().count("stablehlo.pad") == 1
    for ours, expected in zip(g(x), f(x), strict=True):
        np.testing.assert_array_equal(ours, expected)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(expected))


def test_the_gradient_of_a_stencil_pads_once_a_step():
    def energy(k, u):
        def step(u, _):
            around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            return u.at[1:-1, 1:-1].add(k[1:-1, 1:-1] * (around - 4 * u[1:-1, 1:-1])), None

        return jnp.sum(lax.scan(step, u, None, length=20)[0] ** 2)

    rng = np.random.default_rng(1)
    k, u = rng.uniform(0.1, 0.2, (300, 300)), rng.normal(size=(300, 300))
    ours = xform.jit(xform.grad(energy, (0, 1)))(k, u)

    def laplacian(u):
        return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]

    states = [u]
    for _ in range(20):
        states.append(states[-1].copy())
        states[-1][1:-1, 1:-1] += k[1:-1, 1:-1] * laplacian(states[-2])
    d, by_k = 2 * states[-1], np.zeros_like(k)
    for u in states[-2::-1]:  # the adjoint method by hand
        inner = d[1:-1, 1:-1]
        by_k[1:-1, 1:-1] += inner * laplacian(u)
        kd, d = k[1:-1, 1:-1] * inner, d.copy()
        for place in (np.s_[2:, 1:-1], np.s_[:-2, 1:-1], np.s_[1:-1, 2:], np.s_[1:-1, :-2]):
            d[place] += kd
        d[1:-1, 1:-1] -= 4 * kd
    np.testing.assert_allclose(ours[0], by_k, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours[1], d, rtol=1e-9, atol=1e-9)
