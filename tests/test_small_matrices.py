"""Formulas for many small matrices: as accurate as LAPACK, everywhere; and used where they should be."""

import fractions
import functools
import itertools

import numpy as np
import pytest
import scipy.linalg

import xform
import xform.numpy as xnp
from xform import lax
from xform.core.config import numpy_dtype_promotion
from xform.lax.linalg.unrolled import FEWEST

linalg = xnp.linalg
DTYPES = ("float32", "float64", "complex64", "complex128")


def primitives(function):
    """Evaluated without `jit`, by host rules of primitives: standard promotion would call NumPy's function."""

    def evaluate(*args):
        with numpy_dtype_promotion("strict"):
            return function(*args)

    return evaluate


MODES = {"eager": primitives, "jit": xform.jit}

CASES = [("eager", dtype, n) for dtype in DTYPES for n in (1, 2, 3, 4)]
CASES += [("jit", "float64", n) for n in (1, 2, 3, 4)]  # each takes a compilation
CASES += [("jit", "float32", 3), ("jit", "complex64", 2), ("jit", "complex128", 3)]
every_case = pytest.mark.parametrize(("mode", "dtype", "n"), CASES)
every_mode = pytest.mark.parametrize("mode", MODES)


def numbers(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return np.conj(x.swapaxes(-1, -2))


def norm(x):
    return np.linalg.norm(x, axis=(-2, -1))


def graded(dtype, n):
    """Well and ill conditioned matrices: singular values from 1 down to 1, 1e-2, ... 1e-5."""
    u, v = (np.linalg.qr(numbers(dtype, FEWEST, n, n, seed=seed))[0] for seed in (1, 2))
    smallest = 10.0 ** -np.arange(6)[np.arange(FEWEST) % 6]
    s = smallest[:, None] ** np.linspace(0, 1, n)
    return (u * s[:, None, :].astype(dtype)) @ v


def run(mode, function, *args):
    """The function on arrays, compiled or not; ndarrays."""
    out = MODES[mode](lambda *args: xform.tree.leaves(function(*args)))(*args)
    outs = [np.asarray(o) for o in out]
    return outs if len(outs) > 1 else outs[0]


@functools.cache
def eps(dtype):
    return np.finfo(dtype).eps


@every_case
def test_equations_are_solved_backward_stably(mode, dtype, n):
    a, b = graded(dtype, n), numbers(dtype, FEWEST, n, 2, seed=3)
    x = run(mode, linalg.solve, a, b)
    assert x.dtype == dtype
    assert (norm(a @ x - b) <= 20 * eps(dtype) * (norm(a) * norm(x) + norm(b))).all()
    inverse = run(mode, linalg.inv, a)
    assert inverse.dtype == dtype
    residual = norm(a @ inverse - np.eye(n))
    assert (residual <= 20 * eps(dtype) * norm(a) * norm(inverse)).all()


@every_case
def test_lu_is_lapacks(mode, dtype, n):
    a = graded(dtype, n)
    lu, pivots, order = run(mode, lax.linalg.lu, a)
    for i in range(0, FEWEST, 97):
        expected, exchanged = scipy.linalg.lu_factor(a[i])
        np.testing.assert_array_equal(pivots[i], exchanged)
        np.testing.assert_allclose(lu[i], expected, rtol=0, atol=1e3 * eps(dtype))
    lower, upper = np.tril(lu, -1) + np.eye(n, dtype=dtype), np.triu(lu)
    permuted = np.take_along_axis(a, order[..., None], -2)
    assert (norm(lower @ upper - permuted) <= 8 * eps(dtype) * norm(a)).all()


def exact_determinant(x):
    """Of a matrix of floats, as a fraction, by the definition."""
    total = fractions.Fraction(0)
    for order in itertools.permutations(range(len(x))):
        sign = np.linalg.det(np.eye(len(x))[list(order)])
        term = fractions.Fraction(round(sign))
        for i, j in enumerate(order):
            term *= fractions.Fraction(float(x[i, j]))
        total += term
    return total


def determinant_by_lapack(x):
    """In the precision of the matrix; `numpy.linalg` has doubles only."""
    lu, pivots = scipy.linalg.lu_factor(x, check_finite=False)
    return np.prod(np.diag(lu)) * (-1) ** sum(pivots != np.arange(len(x)))


@pytest.mark.parametrize(("mode", "dtype", "n"), [case for case in CASES if case[1].startswith("float")])
def test_determinants_are_as_accurate_as_lapacks(mode, dtype, n):
    """Also of matrices of nearly rank one, where cofactors have lost all digits."""
    a = numbers(dtype, FEWEST, n, 1) * numbers(dtype, FEWEST, 1, n, seed=1)
    a = (a + 1e-3 * numbers(dtype, FEWEST, n, n, seed=2)).astype(dtype)
    found = run(mode, linalg.det, a)
    sign, log = run(mode, linalg.slogdet, a)
    assert found.dtype == sign.dtype == log.dtype == dtype
    exact = np.array([float(exact_determinant(x)) for x in a[::10]])
    peer = np.array([determinant_by_lapack(x) for x in a[::10]])
    error, peers = np.abs(found[::10] - exact), np.abs(peer - exact)
    assert np.mean(error) <= 3 * np.mean(peers) + eps(dtype) * np.mean(abs(exact))
    error = np.abs((sign * np.exp(log))[::10] - exact)
    assert np.mean(error) <= 3 * np.mean(peers) + 20 * eps(dtype) * np.mean(abs(exact))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@every_mode
def test_complex_determinants(dtype, mode):
    a = numbers(dtype, FEWEST, 3, 3)
    expected = np.linalg.det(a.astype(complex))
    tolerance = dict(rtol=50 * eps(dtype), atol=100 * eps(dtype))
    np.testing.assert_allclose(run(mode, linalg.det, a), expected, **tolerance)
    sign, log = run(mode, linalg.slogdet, a)
    np.testing.assert_allclose(sign * np.exp(log), expected, **tolerance)


@every_case
def test_cholesky(mode, dtype, n):
    x = graded(dtype, n)
    a = x @ adjoint(x) + (0.01 * np.eye(n)).astype(dtype)
    lower = run(mode, linalg.cholesky, a)
    assert lower.dtype == dtype
    assert (norm(lower @ adjoint(lower) - a) <= 10 * eps(dtype) * norm(a)).all()
    assert (np.triu(lower, 1) == 0).all()
    diagonal = np.diagonal(lower, axis1=-2, axis2=-1)
    assert (diagonal.real > 0).all() and (diagonal.imag == 0).all()


def hermitian(dtype, n):
    """Random, graded and degenerate matrices, and such that are very large or small."""
    u = np.linalg.qr(numbers(dtype, FEWEST, n, n, seed=1))[0]
    w = numbers("float64", FEWEST, n, seed=2)
    kinds = np.arange(FEWEST) % 8
    w[kinds == 1] = 10.0 ** -(3 * np.arange(n))
    w[kinds == 2] = 1.0
    w[kinds == 3] = np.arange(n) // 2
    w[kinds == 4] = np.arange(n) == 0
    w[kinds == 5, 1:] = w[kinds == 5, :1] * (1 + 1e-7)
    a = (u * w[:, None, :]) @ adjoint(u)
    a[::16] = np.diag(np.arange(n))
    a[1] = 0
    extreme = 0.1 * np.sqrt(np.finfo(dtype).max)
    a[kinds == 6] *= extreme**1.5
    a[kinds == 7] /= extreme**1.5
    return ((a + adjoint(a)) / 2).astype(dtype)


@every_case
def test_eigh(mode, dtype, n):
    a = hermitian(dtype, n)
    w, v = run(mode, linalg.eigh, a)
    assert w.dtype == np.finfo(dtype).dtype and v.dtype == dtype
    assert (np.diff(w, axis=-1) >= 0).all()
    scale = abs(a).max((-2, -1))
    scale = np.where(scale > 0, scale, 1)
    a, w = (a / scale[:, None, None]).astype(complex), w / scale[:, None]
    v = v.astype(complex)
    assert (norm(adjoint(v) @ v - np.eye(n)) <= 20 * eps(dtype)).all()
    assert (norm(a @ v - v * w[:, None, :]) <= 10 * eps(dtype) * norm(a)).all()
    expected = np.linalg.eigvalsh(a)
    assert (abs(w - expected).max(-1) <= 10 * eps(dtype) * norm(a)).all()
    alone = run(mode, linalg.eigvalsh, hermitian(dtype, n)) / scale[:, None]
    assert (abs(alone - expected).max(-1) <= 10 * eps(dtype) * norm(a)).all()


@every_mode
def test_eigh_reads_one_triangle(mode):
    a = numbers("complex128", FEWEST, 3, 3)
    a = a + adjoint(a)
    for lower, other in ((True, np.triu), (False, np.tril)):
        b = a + other(numbers("complex128", 3, 3), 1 if lower else -1)
        v, w = run(mode, lambda b, lower=lower: lax.linalg.eigh(b, lower=lower, symmetrize_input=False), b)
        size = norm(a)
        assert (norm(a @ v - v * w[:, None, :]) <= 1e-14 * size).all()


# What has no result


def with_bad_ones(dtype, n, *bad):
    """Unit matrices, the first ones in another's place."""
    a = np.broadcast_to(np.eye(n, dtype=dtype), (FEWEST, n, n)).copy()
    for i, matrix in enumerate(bad):
        a[i] = matrix
    return a


@every_case
def test_singular_matrices(mode, dtype, n):
    a = with_bad_ones(dtype, n, np.zeros((n, n)), np.diag([*[2.0] * (n - 1), 0]), np.diag([0, *[2.0] * (n - 1)]))
    inverse = run(mode, linalg.inv, a)
    assert np.isnan(inverse[:3]).all() and (inverse[3:] == a[3:]).all()
    determinants = run(mode, linalg.det, a)
    assert (determinants[:3] == 0).all() and (determinants[3:] == 1).all()
    sign, log = run(mode, linalg.slogdet, a)
    assert (sign[:3] == 0).all() and (log[:3] == -np.inf).all()
    assert (sign[3:] == 1).all() and (log[3:] == 0).all()
    x = run(mode, linalg.solve, a, np.ones((FEWEST, n, 1), dtype))
    assert (~np.isfinite(x[:3])).any((-2, -1)).all() and (x[3:] == 1).all()


@every_case
def test_no_cholesky_decomposition(mode, dtype, n):
    a = with_bad_ones(dtype, n, -np.eye(n), np.zeros((n, n)), np.diag([*[1.0] * (n - 1), -1]), np.nan)
    lower = run(mode, linalg.cholesky, a)
    assert np.isnan(lower[:4][:, *np.tril_indices(n)]).all()
    assert (lower[:4][:, *np.triu_indices(n, 1)] == 0).all()
    assert (lower[4:] == a[4:]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@every_mode
def test_what_is_not_finite(dtype, mode):
    holes = [np.full((3, 3), x) for x in (np.nan, np.inf, -np.inf)] + [np.diag([1, np.nan, 1]), np.diag([1, 1, np.inf])]
    a = with_bad_ones(dtype, 3, *holes)
    w, v = run(mode, linalg.eigh, a)
    assert np.isnan(w[:5]).all() and np.isnan(v[:5]).all()
    assert (w[5:] == 1).all() and (v[5:] == a[5:]).all()
    for function in (linalg.inv, linalg.det):
        out = run(mode, function, a)
        assert np.isnan(out[0]).all() and np.isfinite(out[5:]).all()


# In compositions


@every_mode
def test_batches_of_any_shape(mode):
    a = graded("float64", 3)
    inverse = run(mode, linalg.inv, a)
    shaped = run(mode, linalg.inv, a.reshape(10, -1, 1, 3, 3))
    np.testing.assert_array_equal(shaped, inverse.reshape(10, -1, 1, 3, 3))
    strided = np.asfortranarray(a)[::-1]
    np.testing.assert_array_equal(run(mode, linalg.inv, strided), inverse[::-1])
    assert run(mode, linalg.inv, np.zeros((0, FEWEST, 3, 3))).shape == (0, FEWEST, 3, 3)
    assert run(mode, linalg.det, np.zeros((FEWEST, 0, 0))).tolist() == [1.0] * FEWEST
    assert run(mode, linalg.solve, a, np.zeros((FEWEST, 3, 0))).shape == (FEWEST, 3, 0)
    wide = numbers("float64", FEWEST, 3, 7)
    np.testing.assert_allclose(a @ run(mode, linalg.solve, a, wide), wide, rtol=1e-9, atol=1e-9)


def scalars(a, b):
    """One number of each matrix that depends on all of its decompositions."""
    h = a @ xnp.swapaxes(a, -1, -2) + xnp.eye(a.shape[-1])
    w, v = linalg.eigh(h)
    sign, log = linalg.slogdet(a)
    parts = [
        linalg.inv(a), linalg.solve(a, b), linalg.solve(xnp.swapaxes(a, -1, -2), b), linalg.cholesky(h),
        xnp.sin(w)[..., None], (v * xnp.exp(-w)[..., None, :])[..., :1, :],
    ]  # fmt: skip
    return linalg.det(a) + sign * log + sum(xnp.sum(p * p, (-2, -1)) for p in parts)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_derivatives_are_those_of_single_matrices(n):
    a, b = numbers("float64", FEWEST, n, n) + 2 * np.eye(n), numbers("float64", FEWEST, n, 1)
    gradient = xform.grad(lambda a, b: scalars(a, b).sum(), (0, 1))
    few = [0, 3, 700]
    expected = [np.stack(x) for x in zip(*(gradient(a[i], b[i]) for i in few), strict=True)]
    compiled = xform.jit(xform.vmap(xform.grad(scalars, (0, 1))))
    for function in (gradient, compiled) if n == 2 else (gradient,):
        for found, each in zip(function(a, b), expected, strict=True):
            np.testing.assert_allclose(np.asarray(found)[few], each, rtol=1e-8, atol=1e-10 * abs(each).max())


def test_forward_derivatives_of_inverses():
    a, t = graded("complex128", 3) + np.eye(3), numbers("complex128", FEWEST, 3, 3)
    tangent = xform.jit(lambda a, t: xform.jvp(linalg.inv, (a,), (t,)))(a, t)[1]
    expected = -np.linalg.inv(a) @ t @ np.linalg.inv(a)
    np.testing.assert_allclose(tangent, expected, rtol=0, atol=1e-7 * abs(expected).max())


def test_vmap_reaches_the_formulas():
    a = graded("float64", 3)
    eager = run("eager", linalg.inv, a)
    np.testing.assert_array_equal(np.asarray(xform.vmap(linalg.inv)(a)), eager)
    mapped = np.asarray(xform.jit(xform.vmap(linalg.inv, 2, 0))(np.moveaxis(a, 0, 2)))
    np.testing.assert_allclose(mapped, eager, rtol=1e-9)


FUNCTIONS = (linalg.inv, linalg.det, linalg.slogdet, linalg.cholesky, linalg.eigh, linalg.eigvalsh, lax.linalg.lu)


def test_all_elements_are_results_of_one_loop():
    """XLA on CPU reduces element by element, on which `one_loop` relies: no result is a function of results."""
    text = xform.jit(linalg.inv).lower(np.zeros((FEWEST, 3, 3))).as_text()
    assert text.count("stablehlo.reduce") == 1
    for count in (FEWEST, FEWEST + 1, 4096, 4097, 70_001):
        a = numbers("float64", count, 2, 2) + 3 * np.eye(2)
        np.testing.assert_allclose(xform.jit(linalg.inv)(a) @ a, np.broadcast_to(np.eye(2), a.shape), atol=1e-9)


@pytest.mark.parametrize("function", [*FUNCTIONS, lambda a: linalg.solve(a, a)])
def test_lapack_is_called_for_few_or_larger_matrices_only(function):
    def text(count, n):
        return xform.jit(function).lower(np.zeros((count, n, n))).as_text()

    assert "custom_call" not in text(FEWEST, 4)
    assert "lapack_d" in text(FEWEST - 1, 4)
    assert "lapack_d" in text(FEWEST, 5)
