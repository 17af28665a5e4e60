"""`custom_vmap`, `sequential_vmap`."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform.custom_batching import custom_vmap, sequential_vmap

x = np.arange(3.0)


def recorded(seen):
    @custom_vmap
    def f(a, b):
        return {"sum": xnp.sin(a) + b, "b": b}

    @f.def_vmap
    def rule(axis_size, in_batched, a, b):
        seen.append((axis_size, in_batched))
        return {"sum": 100 + f(a, b)["sum"], "b": b}, {"sum": True, "b": in_batched[1]}

    return f


def test_the_rule_is_used_under_vmap_only():
    seen = []
    f = recorded(seen)
    np.testing.assert_allclose(f(x, 1.0)["sum"], np.sin(x) + 1)
    np.testing.assert_allclose(xform.jit(f)(x, 1.0)["sum"], np.sin(x) + 1)
    assert not seen
    for g in (f, xform.jit(f)):
        out = xform.vmap(g, (0, None))(x, 1.0)
        np.testing.assert_allclose(out["sum"], 100 + np.sin(x) + 1)
        np.testing.assert_allclose(out["b"], np.ones(3))
    np.testing.assert_allclose(xform.jit(xform.vmap(f, (0, None)))(x, 1.0)["sum"], 100 + np.sin(x) + 1)
    m = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(xform.vmap(f, (1, None))(m, 1.0)["sum"], 100 + np.sin(m.T) + 1)
    assert seen[0] == (3, [True, False])
    np.testing.assert_allclose(xform.vmap(f)(x, b=x)["b"], x)


def test_derivatives_are_those_of_the_function():
    f = recorded([])
    g = lambda a: f(a, 1.0)["sum"]  # noqa: E731
    np.testing.assert_allclose(xform.grad(g)(0.3), np.cos(0.3))
    np.testing.assert_allclose(xform.vmap(xform.grad(g))(x), np.cos(x))
    np.testing.assert_allclose(xform.grad(lambda a: xform.vmap(g)(a).sum())(x), np.cos(x))
    np.testing.assert_allclose(xform.jit(xform.hessian(g))(0.3), -np.sin(0.3))


def test_sequential():
    f = sequential_vmap(lambda a, b: xnp.dot(a, b["v"]) + b["n"])
    m = np.arange(6.0).reshape(2, 3)
    v = {"v": np.ones(3), "n": np.float64(2)}
    np.testing.assert_allclose(xform.vmap(f, (0, None))(m, v), m.sum(1) + 2)
    np.testing.assert_allclose(
        xform.vmap(f, (1, {"v": None, "n": 0}))(m.T, {**v, "n": np.arange(2.0)}), m.sum(1) + np.arange(2)
    )
    jaxpr = xform.make_jaxpr(xform.vmap(f, (0, None)))(m, v)
    assert "scan" in str(jaxpr)
    np.testing.assert_allclose(xform.grad(lambda a: xform.vmap(f, (0, None))(a, v).sum())(m), np.ones((2, 3)))


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: custom_vmap(3), TypeError, "expected a function"),
        (lambda: custom_vmap(xnp.sin)(1.0), AttributeError, "no rule yet"),
        (lambda: _with(lambda size, batched, a: a), TypeError, "must return a pair"),
        (lambda: _with(lambda size, batched, a: (a, [True])), TypeError, "differ in structure"),
        (
            lambda: xform.vmap(lambda c: xform.jit(sequential_vmap(lambda a: a + c))(1.0))(x),
            NotImplementedError,
            "closes over a mapped value",
        ),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def _with(rule):
    f = custom_vmap(lambda a: a)
    f.def_vmap(rule)
    return xform.vmap(f)(x)
