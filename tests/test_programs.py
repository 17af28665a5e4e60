"""Whole programs as users write them; the right values come from outside: analysis, NumPy, SciPy, or JAX."""

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats

import xform as jax
import xform.numpy as jnp
from xform import grad, jit, lax, random, vmap


def test_network_learns_a_product():
    """Adam by hand on a network whose parameters are a list of dicts; auxiliary results; donated arguments."""

    def init(key, sizes):
        keys = random.split(key, len(sizes) - 1)
        return [
            {"W": random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)}
            for k, m, n in zip(keys, sizes[:-1], sizes[1:], strict=True)
        ]

    def predict(params, x):
        *hidden, last = params
        for layer in hidden:
            x = jnp.tanh(x @ layer["W"] + layer["b"])
        return (x @ last["W"] + last["b"])[:, 0]

    def loss(params, x, y):
        error = predict(params, x) - y
        return jnp.mean(error**2), {"worst": jnp.max(jnp.abs(error))}

    @functools.partial(jit, static_argnames=("b1", "b2"), donate_argnums=(0, 1))
    def update(params, moments, t, x, y, b1=0.9, b2=0.999):
        (value, aux), g = jax.value_and_grad(loss, has_aux=True)(params, x, y)
        m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, moments[0], g)
        v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g**2, moments[1], g)
        rate = 0.02 * jnp.sqrt(1 - b2**t) / (1 - b1**t)
        params = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return params, (m, v), value, aux

    params = init(random.key(0), [2, 16, 16, 1])
    moments = (jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params))
    x = random.uniform(random.key(1), (64, 2), minval=-1, maxval=1)
    for t in range(1, 301):
        params, moments, value, aux = update(params, moments, t, x, x[:, 0] * x[:, 1])
    assert value < 5e-3 * jnp.var(x[:, 0] * x[:, 1])
    assert aux["worst"] < 0.1
    assert jax.tree.structure(params) == jax.tree.structure(moments[0])


def test_logistic_regression_by_newton(rng):
    """The Hessian of logaddexp at equal arguments is not 0: the first step starts there."""
    X = np.c_[np.ones(100), rng.normal(size=(100, 3))]
    y = (rng.uniform(size=100) < 1 / (1 + np.exp(-X @ [0.3, -1.0, 2.0, 0.5]))).astype(int)

    def loss(w):
        z = X @ w
        return jnp.sum(jnp.logaddexp(0.0, z) - y * z) + 0.5 * w @ w

    def step(state):
        w, _, i = state
        w = w - jnp.linalg.solve(jax.hessian(loss)(w), grad(loss)(w))
        return w, grad(loss)(w), i + 1

    start = (jnp.zeros(4), grad(loss)(jnp.zeros(4)), 0)
    w, _, steps = jit(lambda s: lax.while_loop(lambda s: jnp.linalg.norm(s[1]) > 1e-10, step, s))(start)
    right = scipy.optimize.minimize(lambda w: float(loss(w)), np.zeros(4), jac=grad(loss), options={"gtol": 1e-9})
    assert int(steps) < 8
    np.testing.assert_allclose(w, right.x, rtol=1e-6)
    np.testing.assert_allclose(jax.hessian(loss)(np.zeros(4)), X.T @ X / 4 + np.eye(4), rtol=1e-12)


def test_gaussian_process():
    """The marginal likelihood by Cholesky and by slogdet, beside SciPy's density; its gradient by differences."""
    X = np.linspace(0, 1, 10)
    y = np.sin(6 * X)

    def covariance(p, a, b):
        return jnp.exp(p["amplitude"] - 0.5 * (a[:, None] - b) ** 2 / jnp.exp(2 * p["length"]))

    def by_cholesky(p):
        K = covariance(p, X, X) + jnp.exp(p["noise"]) * jnp.eye(10)
        L = jnp.linalg.cholesky(K)
        white = lax.linalg.triangular_solve(L, y[:, None], left_side=True, lower=True)
        return 0.5 * jnp.sum(white**2) + jnp.log(jnp.diag(L)).sum() + 5 * jnp.log(2 * jnp.pi)

    def by_slogdet(p):
        K = covariance(p, X, X) + jnp.exp(p["noise"]) * jnp.eye(10)
        return 0.5 * (y @ jnp.linalg.solve(K, y) + jnp.linalg.slogdet(2 * jnp.pi * K)[1])

    p = {"amplitude": 0.1, "length": -1.0, "noise": -3.0}
    K = np.exp(0.1 - 0.5 * (X[:, None] - X) ** 2 * np.exp(2.0)) + np.exp(-3.0) * np.eye(10)
    for f in (by_cholesky, by_slogdet, jit(by_cholesky)):
        assert float(f(p)) == pytest.approx(-scipy.stats.multivariate_normal(np.zeros(10), K).logpdf(y), rel=1e-10)
        for name, slope in grad(f)(p).items():
            up, down = f(p | {name: p[name] + 1e-5}), f(p | {name: p[name] - 1e-5})
            assert float(slope) == pytest.approx(float(up - down) / 2e-5, rel=1e-6)


class Belief(NamedTuple):
    mean: Any
    cov: Any


def test_kalman_filter(rng):
    """Its likelihood is that of one big normal distribution, and so is the likelihood's derivative."""
    n, A, C = 12, np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    ys = rng.normal(size=(n, 1))

    def log_likelihood(q, R=0.25):
        def step(b, y):
            m, P = A @ b.mean, A @ b.cov @ A.T + q * np.eye(2)
            S = C @ P @ C.T + R
            K = jnp.linalg.solve(S, C @ P).T
            r = y - C @ m
            ll = -0.5 * (r @ jnp.linalg.solve(S, r) + jnp.linalg.slogdet(2 * jnp.pi * S)[1])
            return Belief(m + K @ r, P - K @ C @ P), ll

        final, ll = lax.scan(step, Belief(jnp.zeros(2), jnp.eye(2)), ys)
        assert isinstance(final, Belief)
        return ll.sum()

    def dense(q):
        cov = np.empty((n, n))
        P, powers = np.eye(2), [np.linalg.matrix_power(A, k) for k in range(n)]
        for i in range(n):
            P = A @ P @ A.T + q * np.eye(2)
            for j in range(i, n):
                cov[i, j] = cov[j, i] = (C @ powers[j - i] @ P @ C.T)[0, 0]
        return scipy.stats.multivariate_normal(np.zeros(n), cov + 0.25 * np.eye(n)).logpdf(ys[:, 0])

    assert float(log_likelihood(0.1)) == pytest.approx(dense(0.1), rel=1e-10)
    slope = (dense(0.1 + 1e-5) - dense(0.1 - 1e-5)) / 2e-5
    assert float(grad(log_likelihood)(0.1)) == pytest.approx(slope, rel=1e-7)
    slopes = jit(vmap(grad(log_likelihood)))(jnp.array([0.1, 0.2]))
    assert float(slopes[0]) == pytest.approx(slope, rel=1e-7)


def adaptive(f, y, t_end, tol):
    """Bogacki and Shampine's pair of orders 3 and 2 with step control, in a while_loop."""

    def step(state):
        t, y, h, n = state
        h = jnp.minimum(h, t_end - t)
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + 3 * h / 4 * k2)
        new = y + h / 9 * (2 * k1 + 3 * k2 + 4 * k3)
        error = jnp.max(jnp.abs(h * (-5 / 72 * k1 + k2 / 12 + k3 / 9 - f(new) / 8)))
        accept = error <= tol
        factor = jnp.clip(0.9 * (tol / (error + 1e-30)) ** (1 / 3), 0.2, 5.0)
        return jnp.where(accept, t + h, t), jnp.where(accept, new, y), h * factor, n + 1

    return lax.while_loop(lambda s: s[0] < t_end, step, (0.0, y, 0.01, 0))


def test_adaptive_integration_of_van_der_pol():
    def solve(mu):
        def f(y):
            return jnp.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])

        return adaptive(f, jnp.array([2.0, 0.0]), 5.0, 1e-7)

    def right(mu):
        def f(t, y):
            return [y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]]

        return scipy.integrate.solve_ivp(f, (0, 5), [2, 0], "DOP853", rtol=1e-11, atol=1e-11).y[:, -1]

    mus = np.array([0.5, 1.0, 2.0])
    many = jit(vmap(solve))(mus)
    for i, mu in enumerate(mus):
        t, y, _, n = solve(mu)
        assert float(t) == 5.0 and int(n) == int(many[3][i])
        np.testing.assert_allclose(y, right(mu), atol=1e-5)
        np.testing.assert_allclose(many[1][i], y, atol=1e-9)
    slope = (right(1.0 + 1e-4) - right(1.0 - 1e-4)) / 2e-4
    np.testing.assert_allclose(jax.jacfwd(lambda mu: solve(mu)[1])(1.0), slope, atol=1e-4)
    np.testing.assert_allclose(jax.jacrev(lambda mu: solve(mu)[1])(1.0), slope, atol=1e-4)


def test_partial_differential_equations():
    """Heat by slices, waves by roll, heat again by FFT: modes that decay and turn as they should."""
    n, steps = 32, 50
    x = jnp.arange(n + 1) / n
    k = 0.4

    @jit
    def heat(u, k):
        return lax.fori_loop(0, steps, lambda _, u: u.at[1:-1].add(k * (u[2:] - 2 * u[1:-1] + u[:-2])), u)

    def decay(k):
        return (1 - 4 * k * np.sin(np.pi / (2 * n)) ** 2) ** steps

    np.testing.assert_allclose(heat(jnp.sin(jnp.pi * x), k), decay(k) * np.sin(np.pi * x), atol=1e-13)
    slope = grad(lambda k: heat(jnp.sin(jnp.pi * x), k)[n // 2])(k)
    assert float(slope) == pytest.approx((decay(k + 1e-6) - decay(k - 1e-6)) / 2e-6, rel=1e-8)

    def wave(u, u_before):
        new = 2 * u - u_before + jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)  # with Courant number 1 it is exact
        return new, u

    pulse = jnp.exp(-100 * (x[:-1] - 0.5) ** 2)
    u, _ = lax.fori_loop(0, n, lambda _, s: wave(*s), (pulse, jnp.roll(pulse, 1)))
    np.testing.assert_allclose(u, pulse, atol=1e-12)

    def spectral(u, t):
        k = 2 * jnp.pi * jnp.fft.rfftfreq(n, 1 / n)
        return jnp.fft.irfft(jnp.exp(-(k**2) * t) * jnp.fft.rfft(u), n)

    mode = np.cos(2 * np.pi * x[:-1])
    np.testing.assert_allclose(spectral(mode, 0.01), np.exp(-0.04 * np.pi**2) * mode, atol=1e-14)
    rate = jax.jacfwd(spectral, argnums=1)(mode, 0.01)
    np.testing.assert_allclose(rate, -4 * np.pi**2 * np.exp(-0.04 * np.pi**2) * mode, atol=1e-11)


def test_molecular_dynamics(rng):
    """Lennard-Jones in a periodic box: masked pairs have no NaN in their derivatives; energy is conserved."""
    grid = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), -1).reshape(-1, 3)
    box, dt = 3.6, 0.002
    start = jnp.asarray(1.2 * grid + 0.05 * rng.normal(size=(27, 3)))

    def energy(R):
        d = R[:, None] - R
        d = d - box * jnp.round(d / box)
        r2 = jnp.sum(d**2, axis=-1)
        near = (r2 < 1.8**2) & ~jnp.eye(len(R), dtype=bool)
        r6 = jnp.where(near, r2, 1.0) ** -3
        shift = 1.8**-12 - 1.8**-6
        return 0.5 * jnp.sum(jnp.where(near, 4 * (r6**2 - r6 - shift), 0.0))

    force = jit(grad(lambda R: -energy(R)))

    def verlet(state, _):
        R, V, F = state
        V = V + 0.5 * dt * F
        R = jnp.mod(R + dt * V, box)
        F = force(R)
        V = V + 0.5 * dt * F
        return (R, V, F), energy(R) + 0.5 * jnp.sum(V**2)

    (R, V, F), total = lax.scan(verlet, (start, jnp.zeros_like(start), force(start)), None, length=100)
    assert float(jnp.ptp(total)) < 1e-3 * abs(float(total[0]))
    np.testing.assert_allclose(V.sum(axis=0), 0, atol=1e-11)
    i = (3, 1)
    difference = (energy(R.at[i].add(1e-6)) - energy(R.at[i].add(-1e-6))) / 2e-6
    assert float(-F[i]) == pytest.approx(float(difference), rel=1e-6, abs=1e-6)


def test_hamiltonian_monte_carlo():
    """Chains by vmap, keys by scan, acceptance by cond: mean and covariance of a correlated normal distribution."""
    mean, cov = np.array([1.0, -2.0]), np.array([[1.0, 0.6], [0.6, 0.5]])
    precision = np.linalg.inv(cov)

    def log_density(x):
        return -0.5 * (x - mean) @ precision @ (x - mean)

    def transition(x, key):
        k1, k2 = random.split(key)
        p = random.normal(k1, (2,))

        def leapfrog(_, state):
            x, p = state
            p = p + 0.1 * grad(log_density)(x)
            x = x + 0.2 * p
            return x, p + 0.1 * grad(log_density)(x)

        y, q = lax.fori_loop(0, 8, leapfrog, (x, p))
        ratio = log_density(y) - log_density(x) - 0.5 * (q @ q - p @ p)
        x = lax.cond(jnp.log(random.uniform(k2)) < ratio, lambda: y, lambda: x)
        return x, x

    def chain(key):
        return lax.scan(transition, jnp.zeros(2), random.split(key, 1200))[1][200:]

    samples = jit(vmap(chain))(random.split(random.key(7), 8)).reshape(-1, 2)
    np.testing.assert_allclose(samples.mean(0), mean, atol=0.06)
    np.testing.assert_allclose(jnp.cov(samples.T), cov, atol=0.08)


def test_fixed_points_of_many_maps():
    """vmap of a while_loop whose lanes take different numbers of steps; slopes by the implicit function theorem."""

    def solve(a):
        def step(s):
            return (jnp.cos(a * s[0]), s[0], s[2] + 1)

        return lax.while_loop(lambda s: (jnp.abs(s[0] - s[1]) > 1e-13) & (s[2] < 1000), step, (1.0, 0.0, 0))

    a = np.linspace(0.1, 1.2, 5)
    x, _, n = jit(vmap(solve))(a)
    right = [scipy.optimize.brentq(lambda x, a=a: x - np.cos(a * x), 0, 1, xtol=1e-14) for a in a]
    np.testing.assert_allclose(x, right, rtol=1e-11)
    assert n.tolist() == [int(solve(a)[2]) for a in a] and len(set(n.tolist())) > 3
    slopes = vmap(jax.jacfwd(lambda a: solve(a)[0]))(a)
    np.testing.assert_allclose(slopes, -x * np.sin(a * x) / (1 + a * np.sin(a * x)), rtol=1e-9)


def test_cellular_automata_and_bits():
    """Tables as functions: rule 30's centre column, a glider, a sieve, Collatz, a shift register."""
    rule = jnp.array([(30 >> i) & 1 for i in range(8)])

    def step(s, _):
        return (rule[4 * jnp.roll(s, 1) + 2 * s + jnp.roll(s, -1)], s[20])

    centre = jit(lambda s: lax.scan(step, s, None, length=16)[1])(jnp.zeros(41, int).at[20].set(1))
    assert centre.tolist() == [1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 1]  # OEIS A051023

    def life(_, g):
        near = sum(jnp.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - g
        return ((near == 3) | ((g == 1) & (near == 2))).astype(g.dtype)

    glider = jnp.zeros((8, 8), jnp.int8).at[(0, 1, 2, 2, 2), (1, 2, 0, 1, 2)].set(1)
    assert (lax.fori_loop(0, 4, life, glider) == jnp.roll(glider, (1, 1), (0, 1))).all()

    prime = jnp.ones(50, bool).at[:2].set(False)
    for p in range(2, 8):
        prime = prime.at[2 * p :: p].set(False)
    assert jnp.flatnonzero(prime).tolist() == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]

    def halve(s):
        return (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)

    def collatz(n):
        return lax.while_loop(lambda s: s[0] > 1, halve, (n, 0))[1]

    assert vmap(collatz)(jnp.arange(1, 10)).tolist() == [0, 1, 7, 2, 5, 8, 16, 3, 19]  # OEIS A006577

    def xorshift(_, x):
        x = x ^ (x << 13)
        x = x ^ (x >> 17)
        return x ^ (x << 5)

    x = jnp.uint32(2463534242)
    assert int(xorshift(0, x)) == 723471715  # the first output in Marsaglia, "Xorshift RNGs" (2003)
    assert int(jit(lambda x: lax.fori_loop(0, 1, xorshift, x))(x)) == 723471715


def test_recurrent_network_and_attention_as_in_jax(rng):
    """Gradients of an LSTM under vmap and of masked attention by einsum."""
    peer = pytest.importorskip("jax")
    W = {gate: 0.4 * rng.normal(size=(9, 6)) for gate in "ifog"}
    P = {name: 0.3 * rng.normal(size=(12, 3, 4)) for name in "qkv"}
    xs, tokens = rng.normal(size=(4, 12, 3)), rng.normal(size=(2, 5, 12))

    def programs(jax):
        jnp, lax = jax.numpy, jax.lax

        def sigmoid(x):
            return 1 / (1 + jnp.exp(-x))

        def lstm(W, xs):
            def cell(carry, x):
                h, c = carry
                z = jnp.concatenate([h, x])
                c = sigmoid(z @ W["f"] + 1) * c + sigmoid(z @ W["i"]) * jnp.tanh(z @ W["g"])
                h = sigmoid(z @ W["o"]) * jnp.tanh(c)
                return (h, c), h

            return lax.scan(cell, (jnp.zeros(6), jnp.zeros(6)), xs)[1]

        def attention(P, x):
            q, k, v = (jnp.einsum("btm,mhd->bthd", x, P[name]) for name in "qkv")
            scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2, -jnp.inf)
            weights = jnp.exp(scores - lax.stop_gradient(scores.max(-1, keepdims=True)))
            weights = weights / weights.sum(-1, keepdims=True)
            y = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(2, 5, 12)
            return (y - y.mean(-1, keepdims=True)) / jnp.sqrt(y.var(-1, keepdims=True) + 1e-5)

        def recurrent(W):
            return jnp.mean(jax.vmap(lstm, (None, 0))(W, xs) ** 2)

        def attend(P, x):
            return jnp.sum(attention(P, x) ** 3)

        return [jax.jit(jax.value_and_grad(recurrent))(W), jax.grad(attend, argnums=(0, 1))(P, tokens)]

    for ours, theirs in zip(jax.tree.leaves(programs(jax)), peer.tree.leaves(programs(peer)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def test_data_parallel_training(rng):
    """Eight devices with a shard each, gradients averaged: the same weights as one device with all data."""
    n = jax.local_device_count()
    X, y = rng.normal(size=(n, 5, 3)), rng.normal(size=(n, 5))

    def loss(w, X, y):
        return jnp.mean((X @ w - y) ** 2)

    @functools.partial(jax.pmap, axis_name="devices", in_axes=(None, 0, 0), out_axes=None)
    def step(w, X, y):
        return w - 0.1 * lax.pmean(grad(loss)(w, X, y), "devices")

    w = np.zeros(3)
    for _ in range(60):
        w = step(w, X, y)
    right, *_ = np.linalg.lstsq(X.reshape(-1, 3), y.ravel())
    np.testing.assert_allclose(w, right, atol=1e-4)
    normalized = jax.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.arange(1.0, n + 1))
    np.testing.assert_allclose(normalized, np.arange(1, n + 1) / (n * (n + 1) / 2), rtol=1e-15)
