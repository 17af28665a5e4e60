"""The interface of `grad`, `vjp`, `jvp`, `linearize`, `linear_transpose`, `jacfwd`, `jacrev`, `hessian`: arguments,
structures, types. That the derivatives are right is tested operation by operation in test_ops.
"""

import functools

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import test_util
from xform.core import tree
from xform.dtypes import float0

X, Y = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.25, -0.5])


def close(got, want, rtol=1e-13):
    assert tree.structure(got) == tree.structure(want)
    for a, b in zip(tree.leaves(got), tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=rtol, atol=rtol)


def f(x, y):
    return xnp.sum(xnp.sin(x) * y)


DX, DY = np.cos(X) * Y, np.sin(X)

# ---- grad --------------------------------------------------------------------------------------------------


def test_argnums():
    close(xform.grad(f)(X, Y), DX)
    close(xform.grad(f, 1)(X, Y), DY)
    close(xform.grad(f, argnums=(0, 1))(X, Y), (DX, DY))
    close(xform.grad(f, argnums=(1, 0))(X, Y), (DY, DX))
    close(xform.grad(f, argnums=[-1])(X, Y), (DY,))
    close(xform.grad(lambda x, *, y: f(x, y))(X, y=Y), DX)


def test_pytrees_of_arguments():
    def g(p, scale):
        return scale * f(p["x"], p["more"][0]) + p["more"][1]

    grads = xform.grad(g)({"x": X, "more": (Y, 3.0), "none": None}, 2.0)
    close(grads, {"x": 2 * DX, "more": (2 * DY, 1.0), "none": None})


def test_value_and_aux():
    value = float(f(X, Y))
    close(xform.value_and_grad(f)(X, Y), (value, DX))
    aux = lambda x, y: (f(x, y), {"y": y, "text": xnp.sin(x)})  # noqa: E731
    close(xform.grad(aux, has_aux=True)(X, Y), (DX, {"y": Y, "text": np.sin(X)}))
    close(xform.value_and_grad(aux, (0, 1), has_aux=True)(X, Y), ((value, {"y": Y, "text": np.sin(X)}), (DX, DY)))
    close(xform.jit(xform.value_and_grad(aux, has_aux=True))(X, Y)[1], DX)


def test_integer_arguments():
    grads = xform.grad(lambda x, n: x * n, (0, 1), allow_int=True)(2.0, 3)
    assert float(grads[0]) == 3.0
    assert grads[1].dtype == float0 and grads[1].shape == ()
    grads = xform.grad(lambda p: p["x"] * p["n"].sum(), allow_int=True)({"x": 2.0, "n": np.arange(3)})
    assert grads["n"].dtype == float0 and grads["n"].shape == (3,)
    close(xform.vjp(lambda x, n: x * n, 2.0, 3)[1](1.0)[0], 3.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_gradients_have_the_types_of_arguments(dtype):
    x = xnp.ones(3, dtype)
    g = xform.grad(lambda x: xnp.sum(xnp.abs(x * 2)).astype("float32"))(x)
    assert g.dtype == x.dtype and g.shape == (3,)
    assert xform.grad(lambda x: xnp.sum(x.astype("float32")))(xnp.ones(2, "float64")).dtype == np.float64
    assert not xform.grad(lambda x: x**2)(2.0).weak_type


def test_holomorphic():
    z = 1.0 + 2.0j
    close(xform.grad(lambda z: z**3, holomorphic=True)(z), 3 * z**2)
    close(xform.grad(xform.grad(xnp.exp, holomorphic=True), holomorphic=True)(z), np.exp(z))
    # Of a real function the derivative is df/dx - i df/dy.
    close(xform.grad(lambda z: xnp.abs(z) ** 2)(z), 2 * np.conj(z))
    close(xform.grad(xnp.real)(z), 1 + 0j)
    close(xform.grad(xnp.imag)(z), -1j)
    close(xform.jacfwd(lambda z: z**2, holomorphic=True)(z), 2 * z)
    close(xform.jacrev(lambda z: z**2, holomorphic=True)(z), 2 * z)
    close(xform.hessian(lambda z: z**3, holomorphic=True)(z), 6 * z)
    with pytest.raises(TypeError, match="holomorphic=True needs complex inputs"):
        xform.grad(lambda z: z, holomorphic=True)(1.0)


def test_zero_gradients():
    close(xform.grad(lambda x: 3.0)(X), np.zeros(3))
    close(xform.grad(lambda x: xnp.sum(xnp.floor(x)))(X), np.zeros(3))
    close(xform.grad(lambda x, y: xnp.sum(y), (0, 1))(X, Y), (np.zeros(3), np.ones(3)))
    close(xform.jit(xform.grad(lambda x: xnp.float64(3.0)))(X), np.zeros(3))


def test_wrapped_functions_keep_their_names():
    def named(x):
        """Doc."""
        return x

    for transform in (xform.grad, xform.value_and_grad, xform.jacfwd, xform.jacrev, xform.vmap):
        assert (transform(named).__name__, transform(named).__doc__) == ("named", "Doc.")
    assert float(xform.grad(functools.partial(lambda a, x: a * x, 3.0))(1.0)) == 3.0

    class Callable:
        def __call__(self, x):
            return x * x

    assert float(xform.grad(Callable())(3.0)) == 6.0


# ---- jvp, vjp, linearize, linear_transpose -----------------------------------------------------------------


def test_jvp():
    value, tangent = xform.jvp(f, (X, Y), (Y, X))
    close((value, tangent), (np.sum(np.sin(X) * Y), np.sum(DX * Y + DY * X)))
    value, tangent, aux = xform.jvp(lambda x: (x * x, [x]), (3.0,), (1.0,), has_aux=True)
    close((value, tangent, aux), (9.0, 6.0, [3.0]))
    value, tangent = xform.jvp(
        lambda d: {"out": d["a"] * d["n"]}, ({"a": 2.0, "n": 3},), ({"a": 1.0, "n": np.zeros((), float0)},)
    )
    close((value, tangent), ({"out": 6.0}, {"out": 3.0}))
    assert xform.jvp(lambda x: (x, 3), (2.0,), (1.0,))[1][1].dtype == float0
    close(xform.jvp(lambda x, y: x, [1.0, 2.0], [3.0, 4.0])[1], 3.0)


def test_vjp():
    value, pull = xform.vjp(f, X, Y)
    close(value, f(X, Y))
    close(pull(2.0), (2 * DX, 2 * DY))
    close(pull(1.0), (DX, DY))  # as often as wanted
    value, pull, aux = xform.vjp(lambda x: (x * x, {"a": x}), 3.0, has_aux=True)
    close((value, pull(1.0), aux), (9.0, (6.0,), {"a": 3.0}))
    _, pull = xform.vjp(lambda x: {"s": xnp.sin(x), "n": 3}, X)
    close(pull({"s": np.ones(3), "n": np.zeros((), float0)}), (np.cos(X),))


def test_pullbacks_are_pytrees():
    """They pass through jit and vmap, their residuals are leaves."""

    @xform.jit
    def forward(x):
        return xform.vjp(xnp.sin, x)

    value, pull = forward(X)
    close(value, np.sin(X))
    close(pull(np.ones(3)), (np.cos(X),))
    close(xform.jit(lambda p, ct: p(ct))(pull, np.ones(3)), (np.cos(X),))
    pulls = xform.vmap(lambda x: xform.vjp(xnp.sin, x)[1])(X)
    close(xform.vmap(lambda p, ct: p(ct))(pulls, np.ones(3)), (np.cos(X),))
    assert all(isinstance(leaf, xform.Array) for leaf in tree.leaves(pull))


def test_linearize():
    value, push = xform.linearize(f, X, Y)
    close(value, f(X, Y))
    close(push(Y, X), np.sum(DX * Y + DY * X))
    close(xform.vmap(push, in_axes=(0, None))(np.eye(3), 0 * Y), DX)
    jacobian = xform.vmap(xform.linearize(xnp.cumsum, X)[1])(np.eye(3))
    close(jacobian, np.triu(np.ones((3, 3))))
    value, push, aux = xform.linearize(lambda x: (x * x, x), 3.0, has_aux=True)
    close((value, push(1.0), aux), (9.0, 6.0, 3.0))
    runs = []
    _, push = xform.linearize(lambda x: runs.append(1) or xnp.sin(x), 0.5)
    push(1.0), push(2.0)
    assert len(runs) == 1


def test_linear_transpose():
    matrix = np.arange(6.0).reshape(2, 3)
    (out,) = xform.linear_transpose(lambda x: matrix @ x, X)(np.array([1.0, 2.0]))
    close(out, matrix.T @ np.array([1.0, 2.0]))
    shape = xform.ShapeDtypeStruct((3,), np.float64)
    (out,) = xform.linear_transpose(lambda x: {"a": x[:2], "b": x.sum()}, shape)({"a": np.ones(2), "b": 10.0})
    close(out, np.array([11.0, 11.0, 10.0]))
    loop = lambda x: xform.lax.fori_loop(0, 3, lambda i, c: c * 2.0 + c * i, x)  # noqa: E731
    close(xform.linear_transpose(loop, 1.0)(1.0), (24.0,))
    close(xform.linear_transpose(xform.jit(lambda x: xnp.sin(2.0) * x), 1.0)(1.0), (np.sin(2.0),))
    close(xform.grad(lambda a: xform.linear_transpose(lambda x: a * x, 1.0)(3.0)[0])(2.0), 3.0)
    for nonlinear in (xnp.sin, lambda x: x * x, xform.jit(xnp.abs), lambda x: xnp.where(x > 0, x, 2 * x)):
        with pytest.raises(TypeError, match="is not linear: its derivative depends on its arguments"):
            xform.linear_transpose(nonlinear, 1.0)


# ---- Jacobians ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jacobian", [xform.jacfwd, xform.jacrev, xform.jacobian])
def test_jacobians(jacobian):
    matrix = np.arange(6.0).reshape(2, 3)
    close(jacobian(lambda x: matrix @ x)(X), matrix)
    close(jacobian(xnp.sum)(X), np.ones(3))
    close(jacobian(lambda x: x * X)(2.0), X)
    close(jacobian(lambda m: m @ X)(matrix), np.einsum("ij,k->ijk", np.eye(2), X))
    close(jacobian(lambda x, y: x * y, argnums=(0, 1))(X, Y), (np.diag(Y), np.diag(X)))
    tree_out = jacobian(lambda p: {"u": p["a"] * 2, "v": (p["a"].sum() * p["b"],)})({"a": X, "b": 3.0})
    close(tree_out, {"u": {"a": 2 * np.eye(3), "b": np.zeros(3)}, "v": ({"a": 3 * np.ones(3), "b": X.sum()},)})
    close(jacobian(lambda x: (x * x, x), has_aux=True)(X), (np.diag(2 * X), X))
    close(jacobian(lambda x: x * x)(np.zeros(0)), np.zeros((0, 0)))
    with pytest.raises(TypeError, match=r"(real float|float or complex) dtype, got i64"):
        jacobian(lambda x: x * 1.0)(3)


def test_hessian():
    def g(x, y):
        return xnp.sum(x**2 * y) + x[0] * x[1]

    hxx = np.diag(2 * Y) + np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    close(xform.hessian(g)(X, Y), hxx)
    close(xform.hessian(g, (0, 1))(X, Y), ((hxx, np.diag(2 * X)), (np.diag(2 * X), np.zeros((3, 3)))))
    close(xform.jit(xform.hessian(g))(X, Y), hxx)
    for outer in (xform.jacfwd, xform.jacrev):
        for inner in (xform.jacfwd, xform.jacrev):
            close(outer(inner(g))(X, Y), hxx)


# ---- What sits between ------------------------------------------------------------------------------------


def test_numpys_own_functions_are_differentiated():
    close(xform.grad(lambda x: np.sum(np.sin(x) * Y))(X), DX)
    close(xform.grad(lambda x: np.float64(2.0) * x)(1.0), 2.0)
    close(xform.grad(lambda x: (Y @ (X * x)).sum())(1.0), Y @ X)


def test_python_control_flow_and_containers():
    def g(x):
        parts = dict(enumerate(x))
        total = 0.0
        while parts:
            _, v = parts.popitem()
            total = total + (v**2 if v > 0 else -v)
        return total

    close(xform.grad(g)(X), np.where(X > 0, 2 * X, -1.0))


def test_a_value_used_many_times():
    def g(x):
        for _ in range(5):
            x = x + x
        return x

    close(xform.grad(g)(1.0), 32.0)


# ---- test_util ---------------------------------------------------------------------------------------------


def test_check_grads_finds_wrong_derivatives():
    test_util.check_grads(xnp.sin, (X,), order=3)
    test_util.check_grads(lambda p, n: {"o": p["a"] * n}, ({"a": X.astype("float32")}, np.arange(3)), order=2)
    test_util.check_grads(lambda z: z * xnp.exp(z), (X + 1j * Y,), order=2)
    with pytest.raises(AssertionError, match=r"tangent of fwd"):
        test_util.check_grads(lambda x: xform.lax.stop_gradient(x) * x, (X,), order=1)
    with pytest.raises(AssertionError, match=r"tangent of jvp"):
        test_util.check_jvp(xnp.sin, lambda p, t: (xnp.sin(*p), t[0]), (X,))
    with pytest.raises(AssertionError, match=r"value of jvp"):
        test_util.check_jvp(xnp.sin, functools.partial(xform.jvp, xnp.cos), (X,))
    with pytest.raises(AssertionError, match=r"<cotangents, tangents> of vjp"):
        test_util.check_vjp(xnp.sin, lambda x: (xnp.sin(x), lambda ct: (ct,)), (X,))
    with pytest.raises(ValueError, match="modes"):
        test_util.check_grads(xnp.sin, (X,), order=1, modes=["backwards"])
    with pytest.raises(ValueError, match="order"):
        test_util.check_grads(xnp.sin, (X,), order=0)


def test_check_grads_finds_wrong_second_derivatives():
    """A function whose first derivatives are right and whose second ones are not: the rule hides part of itself."""
    from xform.core.trace import Primitive

    p = Primitive("hides")
    p.abstract_eval = lambda x: x
    p.host = lambda x: x**3
    p.jvp = lambda primals, tangents: (
        p.bind(*primals),
        xform.lax.mul(tangents[0], xform.lax.mul(3.0, xform.lax.mul(primals[0], xform.lax.stop_gradient(primals[0])))),
    )
    test_util.check_grads(p.bind, (X,), order=1)
    with pytest.raises(AssertionError, match=r"tangent of fwd of fwd"):
        test_util.check_grads(p.bind, (X,), order=2)


def test_fwd_and_bwd_are_compiled_once():
    traces = []

    def f(x, n, w):
        traces.append(1)
        return {"y": xnp.sin(x) * w}, n

    for jitted in (True, False):
        traces.clear()
        fwd, bwd = xform.fwd_and_bwd(f, (0, 2), has_aux=True, jitted=jitted)
        for x in (0.3, 0.7, 1.1):
            out, residuals, aux = fwd(x, 3, 2.0)
            np.testing.assert_allclose(out["y"], 2 * np.sin(x))
            assert int(aux) == 3
            np.testing.assert_allclose(bwd(residuals, {"y": 5.0}), [10 * np.cos(x), 5 * np.sin(x)])
        assert len(traces) == (1 if jitted else 3)
    fwd, bwd = xform.fwd_and_bwd(lambda x: x**2, 0)
    assert float(bwd(fwd(3.0)[1], 1.0)) == 6.0


def test_arguments_that_are_left_out():
    f = lambda t, z: {"p": t["x"] * z, "q": t["y"] * 2}  # noqa: E731
    args = {"x": 3.0, "y": 4.0}, 5.0
    _, pullback = xform.vjp(f, *args, in_nzs=({"x": True, "y": False}, False))
    assert pullback.out_nzs == {"p": True, "q": False}
    t, z = pullback({"p": 1.0, "q": 1.0})
    assert [float(v) for v in (t["x"], t["y"], z)] == [5.0, 0.0, 0.0]
    _, push = xform.linearize(f, *args, in_nzs=(True, False))
    out = push({"x": 1.0, "y": 1.0}, 1.0)
    assert [float(v) for v in (out["p"], out["q"])] == [5.0, 2.0]
    for flags in (3, "a", (True,), (True, (True, (True,))), (True, None)):
        with pytest.raises(ValueError, match="vjp: saveable_args must be a bool, or a tuple"):
            xform.vjp(f, *args, saveable_args=flags)
        with pytest.raises(ValueError, match="linearize: in_nzs must be a bool, or a tuple"):
            xform.linearize(f, *args, in_nzs=flags)


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("inner", [lambda f: f, xform.jit], ids=["plain", "of jit"])
def test_arguments_that_are_not_kept(transform, inner):
    def f(p, y):
        return inner(lambda a, y: xnp.sin(a) * y)(p["a"], y)

    p, y, ct = {"a": xnp.arange(3.0), "b": xnp.zeros(1)}, xnp.array([1.0, -2.0, 0.5]), xnp.array([1.0, 2.0, 3.0])
    expected = xform.vjp(f, p, y)[1](ct)

    def pulled(flags):
        return transform(lambda p, y: xform.vjp(f, p, y, saveable_args=flags))(p, y)[1]

    def check(pullback):
        for a, b in zip(xform.tree.leaves(pullback(ct)), xform.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-14)

    for _ in range(2):  # the second time operations have plans
        check(pulled((True, True)))
        pullback = pulled(False)
        assert repr(pullback.args_res[1]) == "NotSaveable()"
        assert repr(pullback.args_res[0]["b"]) == "NotNeeded()"
        assert not any(np.array_equal(leaf, y) for leaf in xform.tree.leaves(pullback))
        with pytest.raises(ValueError, match=r"argument [01].* was not kept"):
            pullback(ct)
        pullback.args_res[1] = y
        if "NotSaveable" in repr(pullback.args_res[0]):
            pullback.args_res[0] = p
        check(pullback)
        check(xform.tree.unflatten(*reversed(xform.tree.flatten(pullback))))
        pullback.args_res = (p, 2 * y)
        np.testing.assert_allclose(pullback(ct)[0]["a"], 2 * expected[0]["a"])
        pullback.args_res = (p, y[:2])
        with pytest.raises(TypeError, match=r"argument 1, f64\[3\], was put back as f64\[2\]"):
            pullback(ct)
        pullback.args_res = (p,)
        with pytest.raises(TypeError, match="args_res must have the structure of the arguments"):
            pullback(ct)
    with pytest.raises(AttributeError, match="saveable_args"):
        xform.vjp(f, p, y)[1].args_res  # noqa: B018


def test_numbers_that_are_not_kept():
    product = xform.jit(lambda x, y: xform.vjp(lambda x, y: x * y, x, y, saveable_args=False)[1])
    pullback = product(2.0, 3.0)
    assert xform.tree.leaves(pullback) == []
    pullback.args_res = [5.0, 6.0]
    assert [float(ct) for ct in pullback(1.0)] == [6.0, 5.0]


def test_jacobians_between_real_and_complex_numbers():
    x, z = np.array([1.0, 2.0]), np.array([3 + 4j, 1 - 1j])
    jacobian = np.diag(2 * x + 1j)  # of real directions
    f = lambda x: x**2 + 1j * x  # noqa: E731
    np.testing.assert_allclose(xform.jacfwd(f)(x), jacobian)
    np.testing.assert_allclose(xform.jacfwd(f, chunk_size=1)(x), jacobian)
    np.testing.assert_allclose(xform.jacfwd(f, sparsity=np.eye(2, dtype=bool))(x), jacobian)
    np.testing.assert_allclose(xform.jacrev(xnp.abs)(z), np.diag(np.conj(z) / np.abs(z)))  # d/dx - i d/dy
    with pytest.raises(TypeError, match="jacrev needs results of real float dtype, got c128"):
        xform.jacrev(f)(x)
    with pytest.raises(TypeError, match="jacfwd needs inputs of real float dtype, got c128"):
        xform.jacfwd(xnp.abs)(z)


@pytest.mark.parametrize("derivative", [xform.grad, xform.value_and_grad, xform.jacfwd, xform.jacrev, xform.hessian])
def test_an_argument_is_differentiated_once(derivative):
    with pytest.raises(ValueError, match=r"argument numbers must differ, got \(0, -2\)"):
        derivative(lambda x, y: x * y, (0, -2))(3.0, 4.0)
