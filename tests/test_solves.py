"""`custom_root`, `custom_linear_solve`."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax

x = np.array([1.0, 2.0, 5.0])


def newton(f, guess):
    """Written with lax: runs under jit."""
    step = lambda _, y: y - f(y) / xform.grad(lambda u: f(u).sum())(y)  # noqa: E731
    return lax.fori_loop(0, 40, step, guess)


def careful(f, guess):
    """Looks at values."""
    while abs(f(guess)) > 1e-13:
        guess = guess - f(guess) / xform.grad(f)(guess)
    return guess


def cube_root(a, solve=newton):
    return lax.custom_root(lambda y: y**3 - a, 1.0 + 0 * a, solve, lambda g, y: y / g(1.0))


def test_roots_have_the_implicit_derivatives():
    for a in (8.0, 3.0):
        slope, curvature = a ** (-2 / 3) / 3, -2 * a ** (-5 / 3) / 9
        for f in (cube_root, lambda a: cube_root(a, careful), xform.jit(cube_root)):
            np.testing.assert_allclose(f(a), a ** (1 / 3), rtol=1e-12)
            np.testing.assert_allclose(xform.grad(f)(a), slope, rtol=1e-12)
            np.testing.assert_allclose(xform.jvp(f, (a,), (1.0,))[1], slope, rtol=1e-12)
            np.testing.assert_allclose(xform.grad(xform.grad(f))(a), curvature, rtol=1e-10)
            np.testing.assert_allclose(xform.hessian(f)(a), curvature, rtol=1e-10)
    np.testing.assert_allclose(xform.vmap(xform.grad(cube_root))(x), x ** (-2 / 3) / 3, rtol=1e-12)
    np.testing.assert_allclose(xform.grad(lambda a: xform.vmap(cube_root)(a).sum())(x), x ** (-2 / 3) / 3, rtol=1e-12)
    np.testing.assert_allclose(
        xform.grad(lambda a: lax.scan(lambda c, b: (c + cube_root(b), None), 0.0, a)[0])(x),
        x ** (-2 / 3) / 3,
        rtol=1e-12,
    )


def test_systems_and_auxiliary_results():
    """x**2 + y**2 = a, x - y = b."""

    def solve(f, guess):
        def step(_, z):
            residual = xnp.array(f({"x": z[0], "y": z[1]}))
            jacobian = xform.jacfwd(lambda z: xnp.array(f({"x": z[0], "y": z[1]})))(z)
            return z - xnp.linalg.solve(jacobian, residual)

        z = lax.fori_loop(0, 30, step, xnp.array([guess["x"], guess["y"]]))
        return {"x": z[0], "y": z[1]}, {"steps": 30}

    def tangent_solve(g, rhs):
        vector = lambda z: xnp.array([*g({"x": z[0], "y": z[1]}).values()])  # noqa: E731
        z = xnp.linalg.solve(xform.jacfwd(vector)(xnp.zeros(2)), xnp.array([rhs["x"], rhs["y"]]))
        return {"x": z[0], "y": z[1]}

    def root(a, b):
        class Pair(dict):
            pass

        f = lambda z: {"x": z["x"] ** 2 + z["y"] ** 2 - a, "y": z["x"] - z["y"] - b}  # noqa: E731

        def as_list(z):
            out = f(z)
            return [out["x"], out["y"]]

        return lax.custom_root(
            lambda z: f(z),
            {"x": 1.0, "y": 0.0},
            lambda f, g: solve(lambda z: list(f(z).values()), g),
            tangent_solve,
            has_aux=True,
        )

    z, aux = root(5.0, 1.0)
    np.testing.assert_allclose([z["x"], z["y"]], [2.0, 1.0], rtol=1e-12)
    assert aux["steps"] == 30
    # [2x 2y; 1 -1] dz = (da, db)
    inverse = np.linalg.inv([[4.0, 2.0], [1.0, -1.0]])
    gradient = xform.grad(lambda a, b: root(a, b)[0]["x"], (0, 1))(5.0, 1.0)
    np.testing.assert_allclose(gradient, inverse[0], rtol=1e-12)
    np.testing.assert_allclose(xform.jit(xform.jacfwd(lambda b: root(5.0, b)[0]["y"]))(1.0), inverse[1, 1], rtol=1e-12)


def test_hyperparameter_of_ridge_regression():
    """The Hessian of the validation loss with respect to log lambda, through the fit, against the closed form."""
    rng = np.random.default_rng(0)
    a, y, va, vy = rng.normal(size=(20, 3)), rng.normal(size=20), rng.normal(size=(10, 3)), rng.normal(size=10)

    def fit(log_l):
        gradient = xform.grad(lambda w: ((a @ w - y) ** 2).sum() + xnp.exp(log_l) * (w @ w))

        def solve(f, w):
            return w - xnp.linalg.solve(xform.jacfwd(f)(w), f(w))  # Newton; exact for a quadratic

        return lax.custom_root(gradient, xnp.zeros(3), solve, lambda g, r: xnp.linalg.solve(xform.jacobian(g)(r), r))

    def closed(log_l):
        return xnp.linalg.solve(a.T @ a + xnp.exp(log_l) * xnp.eye(3), a.T @ y)

    loss = lambda f: lambda t: ((va @ f(t) - vy) ** 2).sum()  # noqa: E731
    for derivative in (
        xform.grad,
        xform.hessian,
        lambda f: xform.grad(xform.grad(f)),
        lambda f: xform.jit(xform.hessian(f)),
    ):
        np.testing.assert_allclose(derivative(loss(fit))(0.3), derivative(loss(closed))(0.3), rtol=1e-8)


def test_time_of_impact():
    """A ball falls from height h, bounces without loss, and is looked at at a fixed time T: the height after one bounce
    is v t' - g t'^2 / 2 with t' = T - t, and has the derivative 1 - 2 sqrt(h)... by h; at the time 2 t after the start
    it has just come back to h."""
    g, end = 9.81, 1.2

    def height(h):
        t = lax.custom_root(lambda t: h - g * t**2 / 2, 0.5, newton, lambda f, y: y / f(1.0))
        speed, rest = g * t, end - t
        return speed * rest - g * rest**2 / 2

    def exact(h):
        t = np.sqrt(2 * h / g)
        return g * t * (end - t) - g * (end - t) ** 2 / 2

    h = 2.0
    numeric = (exact(h + 1e-5) - exact(h - 1e-5)) / 2e-5
    np.testing.assert_allclose(xform.grad(height)(h), numeric, rtol=1e-8)


# custom_linear_solve


def direct(matvec, b):
    return xnp.linalg.solve(xform.jacfwd(matvec)(xnp.zeros_like(b)), b)


matrix = np.array([[4.0, 1.0, 0.5], [0.2, 3.0, -1.0], [0.1, 0.7, 5.0]])
right = np.array([1.0, -2.0, 0.5])


def solved(a, b, **kwargs):
    return lax.custom_linear_solve(lambda v: a @ v, b, direct, transpose_solve=direct, **kwargs)


USES = {
    "call": lambda f: f(matrix, right),
    "jit": lambda f: xform.jit(f)(matrix, right),
    "jvp": lambda f: xform.jvp(f, (matrix, right), (matrix.T, right + 1)),
    "jvp of b": lambda f: xform.jvp(lambda b: f(matrix, b), (right,), (right + 1,)),
    "grad": lambda f: xform.grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1))(matrix, right),
    "jit of grad": lambda f: xform.jit(xform.grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1)))(matrix, right),
    "jacrev": lambda f: xform.jacrev(f, (0, 1))(matrix, right),
    "hessian": lambda f: xform.hessian(lambda a, b: (f(a, b) ** 2).sum(), (0, 1))(matrix, right),
    "grad of grad": lambda f: xform.grad(lambda b: (xform.grad(lambda a: f(a, b).sum())(matrix) ** 2).sum())(right),
    "vmap of b": lambda f: xform.vmap(f, (None, 1), 1)(matrix, np.stack([right, right + 1], 1)),
    "vmap of a": lambda f: xform.vmap(f, (0, None))(np.stack([matrix, matrix.T]), right),
    "vmap of grad": lambda f: xform.vmap(xform.grad(lambda a, b: f(a, b).sum(), (0, 1)), (0, None))(
        np.stack([matrix, matrix.T]), right
    ),
    "grad of scan": lambda f: xform.grad(lambda a: lax.scan(lambda c, _: (f(a, c), None), right, None, 3)[0].sum())(
        matrix
    ),
    "transpose": lambda f: xform.linear_transpose(lambda b: f(matrix, b), right)(right),
}


@pytest.mark.parametrize("use", USES)
def test_linear_solves(use):
    expected = xform.tree.leaves(USES[use](xnp.linalg.solve))
    for f in (solved, xform.jit(solved)):
        for a, b in zip(xform.tree.leaves(USES[use](f)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_symmetric_operators_and_auxiliary_results():
    a = matrix + matrix.T

    def conjugate_gradients(matvec, b):
        x = r = p = b
        x, r = 0 * b, b
        for _ in range(3):
            ap = matvec(p)
            alpha = (r @ r) / (p @ ap)
            x, new = x + alpha * p, r - alpha * ap
            p, r = new + (new @ new) / (r @ r) * p, new
        return x, {"residual": r}

    def f(t):
        x, aux = lax.custom_linear_solve(
            lambda v: t * (a @ v), right, conjugate_gradients, symmetric=True, has_aux=True
        )
        assert set(aux) == {"residual"}
        return x.sum()

    exact = np.linalg.solve(a, right).sum()
    np.testing.assert_allclose(f(2.0), exact / 2, rtol=1e-10)
    np.testing.assert_allclose(xform.grad(f)(2.0), -exact / 4, rtol=1e-10)
    np.testing.assert_allclose(xform.jit(xform.grad(f))(2.0), -exact / 4, rtol=1e-10)
    np.testing.assert_allclose(xform.vmap(xform.grad(f))(x), -exact / x**2, rtol=1e-9)


ERRORS = [
    (
        lambda: lax.custom_root(lambda y: (y, y), 1.0, newton, newton),
        TypeError,
        "custom_root: the argument of f and its",
    ),
    (
        lambda: lax.custom_root(lambda y: y, 1.0, lambda f, y: xnp.ones(3), newton),
        TypeError,
        "initial_guess and the root",
    ),
    (
        lambda: xform.grad(lambda a: lax.custom_root(lambda y: y - a, 1.0, newton, lambda g, y: (y, y)))(1.0),
        TypeError,
        "result of tangent_solve",
    ),
    (
        lambda: lax.custom_root(lambda y: y, 1.0, lambda f, y: y, newton, has_aux=True),
        TypeError,
        "must return a pair",
    ),
    (lambda: lax.custom_linear_solve(lambda v: v[:1], right, direct), TypeError, "b and the result of matvec"),
    (lambda: lax.custom_linear_solve(lambda v: v, right, lambda m, b: b[:1]), TypeError, "b and the solution"),
    (
        lambda: xform.grad(lambda b: lax.custom_linear_solve(lambda v: v, b, direct).sum())(right),
        TypeError,
        "reverse mode needs transpose_solve",
    ),
]


@pytest.mark.parametrize("call, kind, message", ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
