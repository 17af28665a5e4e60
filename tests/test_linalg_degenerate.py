"""Derivatives at equal eigenvalues and singular values, at zero singular values, and of singular matrices.

What is well defined has its finite derivative, in forward and reverse mode, eagerly, compiled and mapped; of what is
not, reverse mode gives NaN. Facts come from central differences of NumPy's decompositions and from closed formulas.
"""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax

linalg = lax.linalg
W = np.random.default_rng(7).standard_normal((6, 6))


def unitary(n, dtype=float, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n))
    return np.linalg.qr(x + 1j * rng.standard_normal((n, n)) if dtype is complex else x)[0]


def hermitian(values, dtype=float):
    q = unitary(len(values), dtype)
    return q * np.array(values) @ q.conj().T


def with_singular_values(values, m, n, dtype=float):
    k = len(values)
    return unitary(m, dtype)[:, :k] * np.array(values) @ unitary(n, dtype, 1)[:, :k].conj().T


def weighted(x):
    """Real and different for every element of a matrix."""
    m, n = x.shape
    return xnp.sum(W[:m, :n] * xnp.real(x)) + xnp.sum(W.T[:m, :n] * xnp.imag(x) ** 2)


def check(f, x, hermitian=False, second=True, tol=1e-7):
    """All derivatives of `f` at `x` against central differences."""
    rng = np.random.default_rng(3)
    v = rng.standard_normal(x.shape).astype(x.dtype)
    v = v + 1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else v
    v = (v + v.conj().T) / 2 if hermitian else v

    def along(t, f=f):
        return np.asarray(f(x + t * v))

    h = 1e-5
    expected = (along(h) - along(-h)) / (2 * h)
    size = 1 + abs(expected)
    grad = xform.grad(f)
    for g in (grad(x), xform.jit(grad)(x)):
        assert abs(np.sum(np.asarray(g) * v).real - expected) < tol * size
    assert abs(xform.jvp(f, (x,), (v,))[1] - expected) < tol * size
    # A generic matrix beside it: lanes don't disturb each other.
    other = x + 0.1 * (v @ v.conj().T if hermitian else v)
    both = np.asarray(xform.vmap(grad)(np.stack([x, other])))
    np.testing.assert_allclose(both[0], grad(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(both[1], grad(other), rtol=1e-9, atol=1e-12)
    if second:
        expected = (along(h, lambda x: np.sum(np.asarray(grad(x)) * v).real) - np.sum(np.asarray(grad(x)) * v).real) / h
        size = 1 + abs(expected)

        def slope(x):
            return xform.jvp(f, (x,), (v,))[1]

        assert abs(xform.jvp(slope, (x,), (v,))[1] - expected) < 1e-3 * size
        over = np.sum(np.asarray(xform.jvp(grad, (x,), (v,))[1]) * v).real
        back = np.sum(np.asarray(xform.grad(slope)(x)) * v).real
        exact = xform.jvp(slope, (x,), (v,))[1]
        assert abs(over - exact) < 1e-9 * size and abs(back - exact) < 1e-9 * size


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("values", [(1, 1, 2), (1, 1, 1, 2, 2), (0, 0, -3, 1)])
def test_eigh(values, dtype):
    x = hermitian(values, dtype)
    first = sum(v == min(values) for v in values)

    def projector(x):
        v = linalg.eigh(x)[0][:, :first]
        return weighted(v @ xnp.conj(v.T))

    check(projector, hermitian(sorted(values), dtype), hermitian=True)
    check(lambda x: xnp.sum(xnp.sin(linalg.eigh(x)[1])), x, hermitian=True, second=False)
    check(lambda x: xnp.sum(linalg.eigh(x, lower=False, symmetrize_input=False)[1][:first]), x, hermitian=True)


@pytest.mark.parametrize("dtype", [float, complex])
def test_simple_eigenvector_beside_a_degenerate_pair(dtype):
    def f(x):
        v = linalg.eigh(x)[0][:, 2]
        return weighted(xnp.outer(v, xnp.conj(v)))

    check(f, hermitian((1, 1, 2), dtype), hermitian=True)


def test_function_of_the_identity():
    grad = xform.grad(lambda x: xnp.sum(xnp.exp(xnp.linalg.eigvalsh(x))))
    np.testing.assert_allclose(grad(np.eye(3)), np.e * np.eye(3), rtol=1e-14)
    np.testing.assert_allclose(xform.jit(grad)(np.eye(3)), np.e * np.eye(3), rtol=1e-14)


def test_what_is_undefined_is_nan():
    x = hermitian((1, 1, 2))
    for gradient in (xform.grad, lambda f: xform.jit(xform.grad(f))):
        assert np.isnan(gradient(lambda x: linalg.eigh(x)[0][0, 0])(x)).all()
        assert np.isfinite(gradient(lambda x: linalg.eigh(x)[0][0, 2])(x)).all()
        assert np.isnan(gradient(lambda x: linalg.svd(x)[0][0, 0] ** 2)(with_singular_values((2, 2, 1), 3, 3))).all()
        assert np.isnan(gradient(lambda x: linalg.svd(x)[0][0, 1])(with_singular_values((2, 0, 0), 3, 3))).all()
    mixed = np.stack([x, hermitian((1, 1.5, 2))])
    lanes = np.asarray(xform.vmap(xform.grad(lambda x: linalg.eigh(x)[0][0, 0]))(mixed))
    assert np.isnan(lanes[0]).all() and np.isfinite(lanes[1]).all()


def test_functions_of_matrices_are_nan_at_equal_eigenvalues():
    """Their derivative is out of reach, see `lax.linalg.quotients`; beside other eigenvalues all is well."""

    def f(x):
        v, w = linalg.eigh(x)
        return weighted((v * xnp.log(w)) @ v.T)

    for gradient in (xform.grad(f), xform.jit(xform.grad(f))):
        assert np.isnan(gradient(np.eye(3))).all()
    check(f, hermitian((1, 2, 3)), hermitian=True)
    assert np.isfinite(xform.grad(lambda x: xnp.linalg.eigvalsh(x)[0])(np.eye(3))).all()


def test_forward_mode_takes_no_rotation_inside_the_space():
    x = hermitian((1, 1, 2))
    v, tangent = xform.jvp(lambda x: linalg.eigh(x)[0], (x,), (W[:3, :3] + W[:3, :3].T,))
    inner = np.asarray(v).T @ np.asarray(tangent)
    np.testing.assert_allclose(inner[:2, :2], 0, atol=1e-14)
    np.testing.assert_allclose(inner, -inner.T, atol=1e-14)


SHAPES = [((2, 2, 1), 3, 3), ((2, 2, 0.5), 5, 3), ((2, 2, 0.5), 3, 5), ((1, 1), 2, 2), ((1, 1, 1), 4, 3)]


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("values", "m", "n"), SHAPES)
def test_svd(values, m, n, dtype):
    x = with_singular_values(values, m, n, dtype)
    k, first = len(values), sum(v == values[0] for v in values)

    def left(x):
        u = linalg.svd(x, full_matrices=False)[0][:, :first]
        return weighted(u @ xnp.conj(u.T))

    def right(x):
        vh = linalg.svd(x)[2][:first]
        return weighted(xnp.conj(vh.T) @ vh)

    def polar(x):
        u, _, vh = linalg.svd(x)
        return weighted(u[:, :k] @ vh[:k])

    for f in (left, right, polar):
        check(f, x)
    check(lambda x: xnp.linalg.norm(x, "nuc"), x, second=False)


@pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 4), (4, 6)])
def test_svd_of_deficient_rank(m, n):
    x = with_singular_values((3, 1, 0, 0), m, n)

    def projector(x):
        u = linalg.svd(x, full_matrices=False)[0][:, :2]
        return weighted(u @ u.T)

    check(projector, x, second=m == n)
    check(lambda x: xnp.sum(linalg.svd(x)[1] ** 2), x, second=False)
    check(lambda x: xnp.sum(linalg.svd(x, full_matrices=False)[1][:2]), x, second=False)
    check(lambda x: xnp.linalg.norm(x), x)


@pytest.mark.parametrize("left", [False, True])
def test_eig(left):
    """By the space, since the order of eigenvalues is arbitrary: these are 1, 1, 2 on a triangular matrix."""
    x = np.array([[1.0, 0.0, 0.3], [0.0, 1.0, -0.7], [0.0, 0.0, 2.0]])

    def projector(x):
        w, vl, vr = linalg.eig(x)
        v = xnp.conj(xnp.linalg.inv(vl).T) if left else vr
        near = (xnp.abs(w - 1) < 0.5).astype(w.dtype)
        return weighted(xnp.real((v * near) @ xnp.linalg.inv(v)))

    def simple(x):
        w, vl, vr = linalg.eig(x)
        return xnp.sum(W[0, :3] * xnp.abs((vl if left else vr) @ (xnp.abs(w - 2) < 0.5).astype(w.dtype)))

    check(projector, x)
    check(simple, unitary(3) @ x @ unitary(3).T)


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_det_of_singular_matrices(n):
    """The derivative is the matrix of cofactors, whatever the rank."""
    for rank in (n - 1, max(n - 2, 0), 0):
        x = with_singular_values(np.arange(1.0, n + 1) * (np.arange(n) < rank), n, n)
        minors = [
            [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1)) for j in range(n)] for i in range(n)
        ]
        for g in (xform.grad(xnp.linalg.det)(x), xform.jit(xform.grad(xnp.linalg.det))(x)):
            np.testing.assert_allclose(g, minors, atol=1e-12)


def test_pinv_of_deficient_rank():
    """Along directions that keep the rank."""
    u, v = unitary(5), unitary(4, seed=1)

    def matrix(t):
        a, b = u[:, :2] + t * W[:5, :2], v[:, :2] + t * W[2:6, :2]
        return a @ np.diag([2.0, 1.0]) @ b.T

    tangent = (matrix(1e-6) - matrix(-1e-6)) / 2e-6
    _, out = xform.jvp(xnp.linalg.pinv, (matrix(0),), (tangent,))
    expected = (np.linalg.pinv(matrix(1e-6), rcond=1e-8) - np.linalg.pinv(matrix(-1e-6), rcond=1e-8)) / 2e-6
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-7)


def test_inverse_iteration():
    """Two steps with a matrix that is singular to the last digit lead to its null vector, in closed form a sine."""
    n, k = 8, 3
    off, eigenvalue = np.full(n, -1.0), 2 - 2 * np.cos(np.pi * k / (n + 1))
    x = np.ones(n)
    for _ in range(2):
        x = np.asarray(lax.linalg.tridiagonal_solve(off, np.full(n, 2 - eigenvalue), off, x, perturb_singular=True))
        x = x / np.linalg.norm(x)
    want = np.sin(np.pi * k * np.arange(1, n + 1) / (n + 1))
    np.testing.assert_allclose(abs(x @ want) / np.linalg.norm(want), 1, rtol=1e-12)
    zero = np.zeros(3)
    assert np.isnan(lax.linalg.tridiagonal_solve(zero, zero, zero, np.ones(3))).all()
    assert np.isfinite(lax.linalg.tridiagonal_solve(zero, zero, zero, np.ones(3), perturb_singular=True)).all()
