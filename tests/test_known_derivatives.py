"""Programs whose derivatives are known from mathematics."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax


def test_norms_at_zero():
    zero = np.zeros(4)
    np.testing.assert_array_equal(xform.grad(lambda x: xnp.linalg.norm(x) ** 2)(zero), zero)
    np.testing.assert_array_equal(xform.jit(xform.grad(lambda x: xnp.linalg.norm(x) ** 2))(zero), zero)


def test_a_polynomial_at_zero():
    f = lambda x: (x ** np.arange(3)).sum()  # noqa: E731
    for slope in (xform.grad(f)(0.0), xform.jvp(f, (0.0,), (1.0,))[1], xform.jit(xform.grad(f))(0.0)):
        assert float(slope) == 1.0


def test_fractions_grow_like_the_number():
    """Also where the fraction is a zero, of either sign: from both sides the slope is 1."""
    x = np.array([-2.5, -2.0, -0.0, 0.0, 2.0, 2.5])
    slopes = xform.vmap(xform.grad(lambda x: xnp.modf(x)[0]))
    np.testing.assert_array_equal(slopes(x), np.ones(6))
    np.testing.assert_array_equal(xform.jit(slopes)(x), np.ones(6))


def test_the_norm_of_a_decomposition_with_equal_singular_values():
    """The Frobenius norm of U diag(s) V^T is that of the matrix, whose gradient is A / |A|."""
    a = np.diag([1.0, 1.0, 2.0, 3.0])

    def f(a):
        u, s, vt = xnp.linalg.svd(a)
        return xnp.linalg.norm((u * s) @ vt)

    np.testing.assert_allclose(xform.grad(f)(a), a / np.sqrt(15), atol=1e-14)
    np.testing.assert_allclose(xform.jit(xform.grad(f))(a), a / np.sqrt(15), atol=1e-14)


def test_an_eigenvector_beside_equal_eigenvalues():
    """First-order perturbation theory: dv = sum_k |k><k|dA|v> / (w - w_k), here with 4 - 1 below."""
    a = np.diag([4.0, 1.0, 1.0])

    def vector(a):
        v = xnp.linalg.eigh((a + a.T) / 2)[1][:, 2]
        return v * xnp.sign(v[0])

    jacobian = np.asarray(xform.jacrev(vector)(a))
    assert np.isfinite(jacobian).all()
    expected = np.zeros((3, 3, 3))
    for k in (1, 2):
        expected[k, 0, k] = expected[k, k, 0] = 1 / 6  # of the symmetric part: together 1/3
    np.testing.assert_allclose(jacobian, expected, atol=1e-14)
    np.testing.assert_allclose(xform.jacfwd(vector)(a), expected, atol=1e-14)


def test_parseval():
    """sum |fft2(z)|^2 = 9 sum |z|^2 for a 3 by 3 array."""
    x, y = np.random.default_rng(0).normal(size=(2, 3, 3))
    f = lambda x, y: (xnp.abs(xnp.fft.fft2(x + 1j * y)) ** 2).sum()  # noqa: E731
    for gradient in (xform.grad(f, (0, 1)), xform.jit(xform.grad(f, (0, 1)))):
        found = gradient(x, y)
        np.testing.assert_allclose(found[0], 18 * x, rtol=1e-13)
        np.testing.assert_allclose(found[1], 18 * y, rtol=1e-13)


def test_ritz_values():
    """After 5 steps of Lanczos their sum is the trace of the matrix, whose gradient is the identity."""
    m = np.random.default_rng(1).normal(size=(5, 5))
    a = m + m.T

    def total(a):
        a = (a + a.T) / 2
        start = xnp.ones(5) / np.sqrt(5)

        def step(carry, _):
            previous, v, beta = carry
            w = a @ v - beta * previous
            alpha = w @ v
            w = w - alpha * v
            # The last residual is zero but for roundoff: its norm must not spoil the derivative.
            length = xnp.linalg.norm(w)
            return (v, w / xnp.where(length > 1e-10, length, 1.0), length), (alpha, length)

        _, (alpha, beta) = lax.scan(step, (xnp.zeros(5), start, 0.0), None, length=5)
        t = xnp.diag(alpha) + xnp.diag(beta[:-1], 1) + xnp.diag(beta[:-1], -1)
        return xnp.linalg.eigvalsh(t).sum()

    np.testing.assert_allclose(total(a), np.trace(a), rtol=1e-10)
    np.testing.assert_allclose(xform.grad(total)(a), np.eye(5), atol=1e-6)
    np.testing.assert_allclose(xform.jit(xform.grad(total))(a), np.eye(5), atol=1e-6)


def test_a_bouncing_ball():
    """Thrown up by the ground at time t with the speed of its fall, it is at the height h - g (T - 2 t)^2 / 2 at a time
    T of its way up and down; with T = 2 t(h0) + d the height is h - g d^2 / 2 at h0, and its derivative
    1 + 2 g d dt/dh = 1 + 2 d sqrt(g / (2 h)); it is -1 for d = -sqrt(2 h / g) = -t: at the impact itself, from above.
    """
    g, h0 = 9.81, 2.0

    def impact(h):
        newton = lambda f, t: lax.fori_loop(0, 30, lambda _, t: t - f(t) / xform.grad(f)(t), t)  # noqa: E731
        return lax.custom_root(lambda t: h - g * t**2 / 2, 0.5, newton, lambda f, y: y / f(1.0))

    def height(h, end):
        t = impact(h)
        rest = end - t
        return g * t * rest - g * rest**2 / 2

    fall = np.sqrt(2 * h0 / g)
    np.testing.assert_allclose(impact(h0), fall, rtol=1e-12)
    for d in (-fall, -0.1, 0.2):
        end = 2 * fall + d
        expected = 1 + 2 * d * np.sqrt(g / (2 * h0))
        np.testing.assert_allclose(xform.grad(height)(h0, end), expected, rtol=1e-9)
        np.testing.assert_allclose(xform.jit(xform.grad(height))(h0, end), expected, rtol=1e-9)
        np.testing.assert_allclose(xform.jacfwd(height)(h0, end), expected, rtol=1e-9)
    assert float(xform.grad(height)(h0, fall)) == pytest.approx(-1.0, rel=1e-9)


def test_linearized_once(monkeypatch):
    """The gradient of a jitted function, traced again, linearizes nothing again."""
    from xform.interpreters import reverse

    entered = []
    original = reverse.LinearizeTrace.__enter__

    def enter(self):
        entered.append(1)
        return original(self)

    f = xform.jit(lambda a: xnp.tanh(xnp.sin(a) * a).sum())
    at = np.linspace(0, 1, 5)
    xform.grad(f)(at)
    monkeypatch.setattr(reverse.LinearizeTrace, "__enter__", enter)
    xform.grad(f)(at)
    assert len(entered) == 1  # that of grad itself
    xform.jit(xform.grad(f))(at)
    xform.jit(lambda a: xform.grad(f)(a) + 1)(at)
    assert len(entered) == 3


@pytest.mark.parametrize("jit", [lambda f: f, xform.jit])
@pytest.mark.parametrize("function", [xnp.logaddexp, xnp.logaddexp2])
def test_logaddexp_has_shares_that_sum_to_one(function, jit):
    # f(x + c, y + c) = f(x, y) + c, also where both are the same infinity
    pairs = np.array([(-np.inf, -np.inf), (np.inf, np.inf), (-np.inf, 2.0), (np.inf, -np.inf), (1.0, 1.0)])
    slopes = jit(xform.grad(lambda x, y: function(x, y).sum(), (0, 1)))(*pairs.T)
    assert slopes[0].tolist() == [0.5, 0.5, 0, 1, 0.5] and slopes[1].tolist() == [0.5, 0.5, 1, 0, 0.5]
    assert function(*pairs.T)[:4].tolist() == [-np.inf, np.inf, 2, np.inf]
