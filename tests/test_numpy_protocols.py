"""NumPy's own functions and operators on arrays of the library, concrete and traced."""

import operator

import numpy as np
import pytest

import xform
import xform.numpy as xnp

A = np.array([[0.5, 1.0], [2.0, 3.5]])
V = np.array([1.0, -2.0])


def traced(function, *args):
    """The result of jit, which must be a tracer inside."""

    def program(*xs):
        out = function(*xs)
        assert all(isinstance(x, xform.Array) for x in xform.tree.leaves(out)), f"{type(out)} within jit"
        return out

    return xform.jit(program)(*args)


def test_derivatives_through_numpy():
    np.testing.assert_allclose(np.asarray(xform.grad(lambda x: np.sum(np.sin(x) * x))(V)), np.sin(V) + V * np.cos(V))
    np.testing.assert_allclose(np.asarray(xform.grad(lambda b: np.linalg.solve(A, b)[0])(V)), np.linalg.inv(A)[0])
    np.testing.assert_allclose(np.asarray(xform.vmap(lambda x: np.add(x, V) @ x)(A)), ((A + V) * A).sum(1))
    assert float(xform.grad(lambda x: np.float64(3.0) * x)(2.0)) == 3


def test_ndarray_operators_with_traced_arrays():
    f = traced(lambda x: (V + x, V - x, A @ x, V * x, V / x, V**2 + x, x < V, operator.ge(V, x), -V + x), xnp.array(V))
    for got, want in zip(f, (V + V, V - V, A @ V, V * V, V / V, V**2 + V, V < V, V >= V, V - V)):
        np.testing.assert_allclose(np.asarray(got), want)


def test_in_place_operators_of_ndarrays():
    a = V.copy()
    a += xnp.array(V)
    assert type(a) is np.ndarray and a.tolist() == [2, -4]

    def program(x):
        total = V.copy()
        total += x
        return total

    with pytest.raises(TypeError, match=r"instead of `a \+= x` write `a = a \+ x`"):
        xform.jit(program)(V)
    with pytest.raises(TypeError, match="immutable"):
        np.add(V, V, out=xnp.array(V))


def test_numpys_tests_and_scipys_solvers():
    x = xnp.array(V)
    np.testing.assert_allclose(x, V)
    np.testing.assert_array_equal(x + 1, V + 1)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(x, V + 1)
    optimize = pytest.importorskip("scipy.optimize")

    def rosenbrock(x):
        return xnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    for method in ("BFGS", "L-BFGS-B", "trust-exact"):
        hess = xform.hessian(rosenbrock) if method == "trust-exact" else None
        found = optimize.minimize(rosenbrock, np.zeros(3), jac=xform.grad(rosenbrock), hess=hess, method=method)
        np.testing.assert_allclose(found.x, 1, atol=1e-3)
    found = optimize.root(lambda x: xnp.array([x[0] ** 2 - 2, x[1] - x[0]]), np.ones(2))
    np.testing.assert_allclose(found.x, np.sqrt(2))


def test_array_namespace():
    x = xnp.ones(2)
    assert x.__array_namespace__() is xnp and x.__array_namespace__(api_version="2024.12") is xnp
    with pytest.raises(ValueError, match="version '1999' of the array API"):
        x.__array_namespace__(api_version="1999")


def test_conversions():
    x = xnp.array(2.5)
    assert float(x) == 2.5 and int(x) == 2 and bool(x) and complex(x) == 2.5 and x.item() == 2.5 and f"{x:.1f}" == "2.5"
    assert [10, 20, 30][xnp.array(1)] == 20 and np.asarray(x, "float32").dtype == np.float32
    assert np.array(xnp.array(V)).flags.writeable and not np.asarray(xnp.array(V)).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(xnp.array(V))[0] = 1


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit])
def test_methods_that_select(transform):
    a = np.arange(6.0).reshape(2, 3)
    for f in (
        lambda x: x.take(np.array([0, 5])),
        lambda x: x.take(np.array([0, 2]), axis=1),
        lambda x: x.compress([True, False, True], axis=1),
        lambda x: (x > 1).astype(int).choose([x, -x], mode="clip"),
    ):
        np.testing.assert_array_equal(transform(f)(xnp.array(a)), f(a))
