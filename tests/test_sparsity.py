"""Patterns of Jacobians, their colouring, and Jacobians by colours and by chunks."""

import numpy as np
import pytest
from scipy import sparse

import xform
import xform.numpy as xnp
from xform import lax
from xform.api.sparsity import color_columns

x = np.array([0.3, -0.7, 1.9, 0.8, -1.1])
banded = np.diag([1.0, 2, 3, 4, 5]) + np.diag([1.0] * 4, 1)


def laplacian(u):
    """Periodic in the first, zero outside in the second direction."""
    padded = xnp.pad(u, ((0, 0), (1, 1)))
    return xnp.roll(u, 1, 0) + xnp.roll(u, -1, 0) + padded[:, 2:] + padded[:, :-2] - 4 * u**2


def heat(u, steps=2):
    return lax.fori_loop(0, steps, lambda _, v: v.at[1:-1].add(0.1 * (v[2:] - 2 * v[1:-1] + v[:-2])), u)


# Functions, an argument, and whether the pattern found is that of the derivative at random points.
EXACT = {
    "elementwise": (lambda a: xnp.sin(a) * a, x),
    "differences": (lambda a: a[1:] * a[:-1], x),
    "reverse and stride": (lambda a: xnp.concatenate([a[::-2] ** 2, a[:1] + a[1:2]]), x),
    "outer": (lambda a: xnp.outer(a[:2], a[2:]), x),
    "reductions": (lambda a: xnp.stack([a[:2].sum(), a[2:].prod()]), x),
    "cumsum": (lambda a: xnp.cumsum(a**2), x),
    "reverse cumsum": (lambda a: lax.cumsum(a**2, reverse=True), x),
    "banded matrix": (lambda a: banded @ a, x),
    "matrix product": (lambda a: a[:4].reshape(2, 2) @ a[1:].reshape(2, 2), x),
    "gather": (lambda a: a[np.array([[0, 3], [3, 1]])] ** 2, x),
    "scatter": (lambda a: xnp.zeros(7).at[np.array([5, 2])].set(a[:2]).at[np.array([2, 2])].add(a[2:4]), x),
    "known zeros": (lambda a: a * np.array([1.0, 0, 1, 0, 1]), x),
    "constants": (lambda a: xnp.where(np.arange(5) > 2, a, 2.0) + xnp.arange(5.0), x),
    "transposes": (lambda a: (xnp.arange(15.0).reshape(3, 5) * a).T.reshape(3, 5), x),
    "broadcast": (lambda a: a[0] * xnp.ones((2, 3)) + a[1], x),
    "laplacian": (laplacian, np.arange(12.0).reshape(4, 3) + 1),
    "jit": (xform.jit(lambda a: a[1:] * a[:-1]), x),
    "scan": (lambda a: lax.scan(lambda c, b: (c * b, c + b), a[0], a[1:]), x),
    "loop": (heat, x),
    "checkpoint": (xform.checkpoint(lambda a: a[1:] * a[:-1]), x),
    "vmap": (lambda a: xform.vmap(lambda r: r[0] * r[1])(a[:4].reshape(2, 2)), x),
    "stop_gradient": (lambda a: a * lax.stop_gradient(a[0]) + xnp.floor(a[1]), x),
    "pytrees": (lambda t: {"u": t["p"] * t["q"][0], "v": t["q"] ** 2}, {"p": x[:2], "q": x[2:]}),
}


def dense_jacobian(f, at):
    """All results by all arguments."""
    leaves, treedef = xform.tree.flatten(at)
    sizes = [np.size(a) for a in leaves]

    def flat(v):
        parts = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        rebuilt = [v[i].reshape(np.shape(a)) for i, a in zip(parts, leaves, strict=True)]
        return xnp.concatenate([o.ravel() for o in xform.tree.leaves(f(treedef.unflatten(rebuilt)))])

    return np.asarray(xform.jacfwd(flat)(np.concatenate([np.ravel(a) for a in leaves])))


@pytest.mark.parametrize("name", EXACT)
def test_patterns(name):
    f, at = EXACT[name]
    found = xform.jacobian_sparsity(f)(at).toarray()
    np.testing.assert_array_equal(found, dense_jacobian(f, at) != 0)


def test_what_is_not_followed_is_dense():
    for f in (lambda a: xnp.sort(a), lambda a: xnp.fft.fft(a).real, lambda a: xnp.linalg.solve(banded, a)):
        assert xform.jacobian_sparsity(f)(x).toarray().all()
    # An index that is computed from the argument.
    assert xform.jacobian_sparsity(lambda a: a[xnp.argmax(a)])(x).toarray().all()
    # A loop of unknown length: everything within reach.
    f = lambda a: lax.while_loop(lambda v: v[0] < 9, lambda v: v.at[1:].add(v[:-1]), a)  # noqa: E731
    np.testing.assert_array_equal(xform.jacobian_sparsity(f)(x).toarray(), np.tril(np.ones((5, 5))))
    g = lambda a: lax.cond(a[0] > 0, lambda v: v, lambda v: v[::-1], a)  # noqa: E731
    np.testing.assert_array_equal(xform.jacobian_sparsity(g)(x).toarray(), np.eye(5) + np.eye(5)[::-1] > 0)


def test_several_arguments():
    f = lambda a, n, b: a[:2] * b + n  # noqa: E731
    found = xform.jacobian_sparsity(f, (0, 2))(x, 3, np.ones(2)).toarray()
    np.testing.assert_array_equal(found, [[1, 0, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0, 1]])


def test_coloring():
    n = 50
    tridiagonal = sparse.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])
    assert color_columns(tridiagonal.astype(bool)).max() + 1 == 3
    rng = np.random.default_rng(0)
    for _ in range(5):
        pattern = sparse.csr_array(rng.random((20, 30)) < 0.1)
        colors = color_columns(pattern)
        assert (colors >= 0).all()
        for row in pattern.toarray():
            assert len(set(colors[row])) == row.sum()


@pytest.mark.parametrize("jacobian", [xform.jacfwd, xform.jacrev])
@pytest.mark.parametrize("name", ["differences", "laplacian", "scan", "pytrees", "banded matrix"])
def test_compressed_jacobians(jacobian, name):
    f, at = EXACT[name]
    expected = jacobian(f)(at)
    pattern = xform.jacobian_sparsity(f)(at)
    for options in (
        {"sparsity": pattern},
        {"sparsity": pattern.toarray(), "chunk_size": 2},
        {"chunk_size": 2},
        {"chunk_size": 99},
    ):
        for derivative in (jacobian(f, **options), xform.jit(jacobian(f, **options))):
            found = derivative(at)
            assert xform.tree.structure(found) == xform.tree.structure(expected)
            for a, b in zip(xform.tree.leaves(found), xform.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def test_how_many_derivatives_are_taken():
    seen = []

    @xform.custom_jvp
    def f(a):
        return a[1:] * a[:-1]

    @f.defjvp
    def rule(primals, tangents):
        seen.append(1)
        (a,), (t,) = primals, tangents
        return f(a), a[1:] * t[:-1] + t[1:] * a[:-1]

    at = np.linspace(1, 2, 100)
    text = str(xform.make_jaxpr(xform.jacfwd(f, sparsity=xform.jacobian_sparsity(f)(at)))(at))
    assert "f64[2,100]" in text and "f64[100,100]" not in text.replace("f64[100,99]", "")
    assert len(seen) == 1


def test_hessians():
    f = lambda a: ((a[1:] - a[:-1] ** 2) ** 2).sum()  # noqa: E731
    pattern = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) <= 1
    expected = xform.hessian(f)(x)
    np.testing.assert_allclose(xform.hessian(f, sparsity=pattern)(x), expected, rtol=1e-13)
    np.testing.assert_allclose(xform.hessian(f, chunk_size=2)(x), expected, rtol=1e-13)
    found = xform.jacobian_sparsity(xform.grad(f))(x)
    np.testing.assert_array_equal(found.toarray(), pattern)


def test_auxiliary_data():
    f = lambda a: (a**2, {"n": a.sum()})  # noqa: E731
    for jacobian in (xform.jacfwd, xform.jacrev):
        found, aux = jacobian(f, has_aux=True, chunk_size=2)(x)
        np.testing.assert_allclose(found, np.diag(2 * x))
        np.testing.assert_allclose(aux["n"], x.sum())


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: xform.jacobian_sparsity(3), TypeError, "expected a function"),
        (lambda: xform.jacfwd(xnp.sin, sparsity=np.eye(3))(x), ValueError, r"\(5, 5\), got \(3, 3\)"),
        (lambda: xform.jacrev(xnp.sin, chunk_size=0)(x), ValueError, "chunk_size must be at least 1"),
        (lambda: xform.jacobian_sparsity(xnp.sin, 2)(x), ValueError, "argument number 2 is out of range"),
    ],
)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
