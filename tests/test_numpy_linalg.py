"""`xform.numpy.linalg` against NumPy and analytic results, eager and compiled; what becomes of bad matrices."""

import itertools

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform.interpreters.lowering import lower_module
from xform.test_util import check_grads

linalg = xnp.linalg


def complex_values(rng, shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def positive(rng, n, batch=()):
    x = rng.standard_normal((*batch, n, n))
    return x @ x.swapaxes(-1, -2) + n * np.eye(n)


def assert_close(got, want, rtol=1e-10):
    got, want = (tuple(x) if isinstance(x, tuple) else (x,) for x in (got, want))
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert isinstance(g, xform.Array)
        w = np.asarray(w)
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * abs(w[np.isfinite(w)]).max(initial=0))


def check(name, *args, **kwargs):
    """A function against NumPy's, eager and compiled."""
    want = getattr(np.linalg, name)(*args, **kwargs)
    function = getattr(linalg, name)
    assert_close(function(*args, **kwargs), want)
    arrays = [x for x in args if isinstance(x, np.ndarray)]
    rest = args[len(arrays) :]
    assert_close(xform.jit(lambda *arrays: function(*arrays, *rest, **kwargs))(*arrays), want)


# ---- Values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["inv", "det", "slogdet"])
def test_functions_of_square_matrices(name, rng):
    for x in (rng.standard_normal((3, 3)), complex_values(rng, (2, 4, 4)), np.eye(2, dtype=int), np.zeros((0, 0))):
        check(name, x)
    assert linalg.det(np.eye(2, dtype=np.float32)).dtype == np.float32


def test_solve(rng):
    a = rng.standard_normal((2, 1, 3, 3)) + 3 * np.eye(3)
    check("solve", a[0, 0], rng.standard_normal(3))
    check("solve", a, rng.standard_normal(3))
    check("solve", a, rng.standard_normal((4, 3, 2)))
    check("solve", a[0, 0], complex_values(rng, (3, 2)))
    check("solve", np.array([[2, 0], [0, 4]]), np.array([1, 2]))
    check("solve", np.zeros((0, 0)), np.zeros((0, 2)))


def test_cholesky(rng):
    x = positive(rng, 3, (2,))
    check("cholesky", x)
    check("cholesky", x, upper=True)
    h = complex_values(rng, (3, 3))
    check("cholesky", h @ h.conj().T + np.eye(3))
    assert_close(linalg.cholesky(np.tril(x), symmetrize_input=False), np.linalg.cholesky(x))


@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
def test_qr(mode, rng):
    for shape in ((4, 2), (2, 4), (2, 3, 3)):
        check("qr", rng.standard_normal(shape), mode=mode)


def test_eigh_and_svd(rng):
    x = positive(rng, 3, (2,))
    w, v = linalg.eigh(x)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(x), rtol=1e-12)
    np.testing.assert_allclose(v * w[:, None, :] @ v.mT, x, rtol=1e-12)
    for uplo in "LU":
        assert_close(linalg.eigvalsh(np.triu(x) if uplo == "U" else np.tril(x), uplo, symmetrize_input=False), w)
    check("svdvals", rng.standard_normal((2, 3, 4)))
    check("svd", rng.standard_normal((3, 4)), compute_uv=False)
    for y, hermitian in ((complex_values(rng, (4, 3)), False), (x - 4 * np.eye(3), True)):
        u, s, vh = linalg.svd(y, full_matrices=False, hermitian=hermitian)
        np.testing.assert_allclose(s, np.linalg.svd(y, compute_uv=False), rtol=1e-12)
        np.testing.assert_allclose(u * s[..., None, :] @ vh, y, rtol=1e-12, atol=1e-12)
    h = np.diag([1.0, -5.0, 3.0])
    s = linalg.svd(h, hermitian=True, compute_uv=False, subset_by_index=(0, 2))
    assert s.tolist() == [5.0, 3.0]


def test_eig(rng):
    x = rng.standard_normal((2, 3, 3))
    w, v = linalg.eig(x)
    np.testing.assert_allclose(x @ v, v * w[:, None, :], atol=1e-12)
    np.testing.assert_allclose(np.sort(linalg.eigvals(x)), np.sort(np.linalg.eigvals(x).astype(complex)), rtol=1e-12)


def test_least_squares(rng):
    shapes = [(5, 3), (3, 5), (3, 3), (4, 1), (0, 3), (3, 0), (0, 0)]
    for (m, n), rest in itertools.product(shapes, [(), (1,), (2,), (0,)]):
        a, b = rng.standard_normal((m, n)), rng.standard_normal((m, *rest))
        for x in (a, np.outer(np.arange(1.0, m + 1), np.arange(1.0, n + 1))):  # the latter of rank 1
            wanted = np.linalg.lstsq(x, b)
            for got in (linalg.lstsq(x, b, numpy_resid=True), np.linalg.lstsq(xnp.array(x), xnp.array(b))):
                for ours, theirs in zip(got, wanted, strict=True):
                    assert ours.shape == np.shape(theirs), (x.shape, b.shape)
                    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)
            # Without a look at the rank there are residuals in any case, as many.
            length = np.atleast_1d(((b - x @ wanted[0]) ** 2).sum(0))
            for function in (linalg.lstsq, xform.jit(linalg.lstsq)):
                residuals = function(xnp.array(x), xnp.array(b))[1]
                assert residuals.shape == (rest or (1,))
                np.testing.assert_allclose(residuals, length, rtol=1e-10, atol=1e-12)


def test_pinv(rng):
    for shape in ((4, 2), (2, 3, 3), (2, 4)):
        check("pinv", complex_values(rng, shape))
    deficient = np.outer(np.arange(1.0, 5), [1.0, 2.0, 3.0])
    check("pinv", deficient, 1e-10)
    check("pinv", np.diag([1.0, -2.0, 0.0]), hermitian=True)
    check("pinv", np.diag([1.0, 0.5, 1e-3]), rcond=1e-2)
    with pytest.raises(ValueError, match=r"linalg\.pinv: rtol and rcond are the same parameter"):
        linalg.pinv(deficient, 1e-10, rtol=1e-10)


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, 0.5, -1, np.inf, -np.inf])
def test_norms_of_vectors(order, rng):
    x = rng.standard_normal((3, 4))
    check("norm", x[0], order)
    check("norm", complex_values(rng, (3, 4)), order, 1)
    check("norm", x, order, 0, True)
    check("vector_norm", x, ord=2 if order is None else order)
    check("vector_norm", x, ord=2 if order is None else order, axis=1, keepdims=True)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_matrices(order, rng):
    x = rng.standard_normal((2, 3, 4))
    check("norm", x[0], order)
    check("norm", x, order, (0, 2))
    check("norm", x, order, (-1, 0), True)
    check("matrix_norm", x, ord=order or "fro", keepdims=True)


def test_norm_of_anything(rng):
    check("norm", rng.standard_normal((2, 3, 4)))
    check("norm", np.arange(4))
    check("norm", rng.standard_normal((2, 3, 4)), keepdims=True)


@pytest.mark.parametrize("order", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"])
def test_condition(order, rng):
    check("cond", rng.standard_normal((2, 3, 3)), order)
    assert linalg.cond(np.zeros((2, 2)), order) == np.inf or order == -2
    if order in (None, 2, -2):
        check("cond", rng.standard_normal((3, 4)), order)


def test_rank():
    x = np.stack([np.eye(3), np.zeros((3, 3)), np.ones((3, 3))])
    check("matrix_rank", x)
    check("matrix_rank", x, hermitian=True)
    check("matrix_rank", np.diag([1.0, 1e-3, 0.0]), rtol=1e-2)
    check("matrix_rank", np.zeros(3))


def test_powers_and_products(rng):
    x = rng.standard_normal((2, 3, 3)) + 2 * np.eye(3)
    for n in (0, 1, 2, 5, -1, -3):
        check("matrix_power", x, n) if n == 1 else assert_close(linalg.matrix_power(x, n), np.linalg.matrix_power(x, n))
    a, b, c = (rng.standard_normal(s) for s in ((2, 3), (3, 4), (4, 5)))
    assert_close(linalg.multi_dot([a, b, c]), a @ b @ c)
    assert_close(linalg.multi_dot([a[0], b, c[:, 0]]), np.asarray(a[0] @ b @ c[:, 0]))
    assert_close(linalg.multi_dot([a[0], b]), a[0] @ b)
    for name, args in {"cross": (a, a[::-1]), "outer": (a[0], b[0]), "matmul": (a, b), "vecdot": (a, a)}.items():
        check(name, *args)
    assert_close(linalg.tensordot(a, b, axes=1), a @ b)
    check("trace", x, offset=1)
    check("diagonal", x, offset=-1)
    check("matrix_transpose", x)


def test_tensor_equations(rng):
    a = rng.standard_normal((2, 3, 6))
    check("tensorsolve", a, rng.standard_normal((2, 3)))
    check("tensorsolve", np.moveaxis(a, 2, 0), rng.standard_normal((2, 3)), axes=(0,))
    check("tensorinv", a)
    check("tensorinv", rng.standard_normal((4, 2, 2)), ind=1)


# ---- Matrices without a result -----------------------------------------------------------------------------


def test_singular_and_indefinite_matrices():
    x = np.stack([np.eye(3), np.diag([1.0, 0.0, -1.0]), np.ones((3, 3))])
    for run in (lambda f: f, xform.jit):
        inverse = run(linalg.inv)(x)
        np.testing.assert_array_equal(inverse[0], np.eye(3))
        assert np.isnan(inverse[1:]).all()
        root = np.asarray(run(linalg.cholesky)(x))
        np.testing.assert_array_equal(root[0], np.eye(3))
        assert np.isnan(root[1][np.tril_indices(3)]).all()
        assert (root[1][np.triu_indices(3, 1)] == 0).all()
        assert not np.isfinite(run(linalg.solve)(x, np.ones((3, 3, 1)))[1]).all()
        sign, log = run(linalg.slogdet)(x)
        assert sign.tolist() == [1, 0, 0]
        assert log.tolist() == [0, -np.inf, -np.inf]


def test_matrices_that_are_not_finite():
    """Only they are NaN; LAPACK, left to itself, may loop for ever."""
    x = np.stack([np.diag([1.0, 2, 3]), np.diag([1, np.inf, 3]), np.full((3, 3), np.nan)])
    functions = {
        "eigh": linalg.eigh, "eigvalsh": linalg.eigvalsh, "svd": linalg.svd, "svdvals": linalg.svdvals,
        "eig": linalg.eig, "eigvals": linalg.eigvals, "cholesky": linalg.cholesky, "pinv": linalg.pinv,
        "left": lambda x: xform.lax.linalg.eig(x),
    }  # fmt: skip
    for name, function in functions.items():
        for f in (function, xform.jit(function)):
            outs = f(x)
            for out in outs if isinstance(outs, tuple | list) else [outs]:
                out = np.asarray(out)
                assert np.isfinite(out[0]).all(), name
                lower = np.tril(np.ones(out.shape[1:])) if name == "cholesky" else np.ones(out.shape[1:])
                assert np.isnan(out[1:][:, lower == 1]).all() or name == "cholesky", name


# ---- Derivatives -------------------------------------------------------------------------------------------


def cofactors(x):
    """By their definition."""
    n = len(x)
    out = np.empty((n, n))
    for i, j in itertools.product(range(n), repeat=2):
        out[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
    return out


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_gradient_of_det_at_singular_matrices(n, rng):
    full = rng.standard_normal((n, n))
    for missing in range(min(n, 3)):
        x = full.copy()
        x[:, :missing] = 0  # the first columns: no pivot from the start
        np.testing.assert_allclose(xform.grad(linalg.det)(x), cofactors(x), atol=1e-12)
        y = full.copy()
        y[n - missing :] = y[:missing]  # equal rows
        gradient = xform.jit(xform.grad(linalg.det))(y)
        np.testing.assert_allclose(gradient, cofactors(y), atol=1e-12)


def test_logdet(rng):
    x = positive(rng, 3)
    inverse = np.linalg.inv(x)
    f = lambda x: linalg.slogdet(x).logabsdet  # noqa: E731
    np.testing.assert_allclose(xform.grad(f)(x), inverse.T, rtol=1e-12)
    want = -np.einsum("li,jk->ijkl", inverse, inverse)
    np.testing.assert_allclose(xform.hessian(f)(x), want, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(xform.jit(xform.hessian(f))(x), want, rtol=1e-10, atol=1e-14)


def test_equal_eigenvalues_and_singular_values():
    x = np.eye(3)
    np.testing.assert_allclose(xform.grad(lambda x: xnp.sum(linalg.eigvalsh(x) ** 2))(x), 2 * x, atol=1e-14)
    np.testing.assert_allclose(xform.grad(lambda x: linalg.norm(x, "nuc"))(x), x, atol=1e-14)
    gradient = xform.grad(lambda x: xnp.sum(linalg.eigh(x).eigenvectors ** 2))(x)
    assert np.isfinite(gradient).all()
    gradient = xform.grad(lambda x: xnp.sum(linalg.svd(x, full_matrices=False).U ** 2))(np.zeros((4, 2)))
    assert np.isfinite(gradient).all()
    check_grads(linalg.pinv, (2 * np.eye(4, 3),), 2)


def test_derivatives(rng):
    a, b = rng.standard_normal((4, 4)) + 3 * np.eye(4), rng.standard_normal((4, 2))
    check_grads(linalg.solve, (a, b), 2)
    check_grads(linalg.solve, (a + 1j * b[:, :1], b), 1)
    check_grads(lambda a, b: linalg.lstsq(a[:, :3], b)[0], (a, b), 2)
    check_grads(lambda x: linalg.cholesky(x @ x.T + xnp.eye(4)), (a,), 2)
    check_grads(lambda x: linalg.svd(x)[0][:, :3] ** 2, (a[:, :3],), 1)
    check_grads(lambda x: linalg.matrix_power(x, -2), (a,), 1)
    check_grads(lambda x: linalg.cond(x), (a,), 1)
    for order in (None, "nuc", 2, 1, np.inf):
        check_grads(lambda x, order=order: linalg.norm(x, order), (a,), 1)


def test_vmap_over_one_operand(rng):
    a, b = rng.standard_normal((3, 3)) + 3 * np.eye(3), rng.standard_normal((5, 3))
    np.testing.assert_allclose(xform.vmap(linalg.solve, (None, 0))(a, b), np.linalg.solve(a, b.T).T, rtol=1e-12)
    many = np.stack([a, 2 * a])
    np.testing.assert_allclose(
        xform.vmap(linalg.solve, (0, None))(many, b[0]), np.linalg.solve(many, b[0][:, None])[..., 0], rtol=1e-12
    )


def test_numpy_functions_on_tracers(rng):
    a = rng.standard_normal((3, 3)) + 3 * np.eye(3)
    got = xform.grad(lambda a: np.sum(np.linalg.solve(a, np.ones(3))))(a)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(got, -np.outer(inverse.sum(0), inverse.sum(1)), rtol=1e-12)


@pytest.mark.parametrize("name", ["cholesky", "eigh", "svd", "qr", "lu", "eig"])
def test_gradients_against_jax(name, rng):
    """The gradient of a function of the results that does not depend on signs and phases."""
    jax = pytest.importorskip("jax")
    x = positive(rng, 4) + rng.standard_normal((4, 4)) * (name in ("svd", "qr", "lu", "eig"))
    weights = rng.standard_normal((4, 4))

    def loss(lib, x):
        np_, lx = lib.numpy, lib.lax.linalg
        match name:
            case "cholesky":
                out = np_.sin(lx.cholesky(x))
            case "eigh":
                v, w = lx.eigh(x)
                out = v * np_.log(w) @ v.T
            case "svd":
                u, s, vh = lx.svd(x)
                out = u * np_.log(s) @ vh
            case "qr":
                q, r = lx.qr(x, full_matrices=False)
                out = q**2 + r**2
            case "lu":
                out = np_.sin(lx.lu(x)[0])
            case "eig":
                w, v = lx.eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
                out = abs(v) ** 2 + (w.real * w.imag)[:, None]
        return np_.sum(out * weights)

    with jax.enable_x64(True):
        want = jax.grad(lambda x: loss(jax, x))(x)
    np.testing.assert_allclose(xform.grad(lambda x: loss(xform, x))(x), want, rtol=1e-8, atol=1e-10)


# ---- Other platforms ---------------------------------------------------------------------------------------


def lowered(platform, function, x):
    return lower_module(xform.make_jaxpr(function)(x), "f", platform)[0]


def test_lowering_for_a_gpu():
    x = np.eye(3)
    for function, operation in {
        xform.lax.linalg.cholesky: "stablehlo.cholesky",
        lambda x: xform.lax.linalg.triangular_solve(x, x, left_side=True): "stablehlo.triangular_solve",
        xnp.fft.fft: "stablehlo.fft",
    }.items():
        text = lowered("cuda", function, x)
        assert operation in text and "lapack" not in text
        assert ("lapack" in lowered("cpu", function, x)) == (operation != "stablehlo.fft")
    for name in ("lu", "qr", "eigh", "svd", "eig"):
        with pytest.raises(NotImplementedError, match=rf"primitive '{name}' can't be compiled for platform 'tpu'"):
            lowered("tpu", getattr(xform.lax.linalg, name), x)


def test_32_bits():
    with xform.enable_x64(False):
        assert linalg.solve(np.eye(2, dtype=int), np.ones(2, int)).dtype == np.float32
        assert linalg.eigvals(xnp.eye(2)).dtype == np.complex64
        assert xnp.fft.rfft(np.ones(3)).dtype == np.complex64
        assert xform.jit(linalg.pinv)(np.eye(2)).dtype == np.float32


# ---- Wrong calls -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linalg.inv(np.ones((2, 3))), ValueError, r"numpy\.linalg\.inv: a must be square .*f64\[2,3\]"),
        (
            lambda: linalg.det(np.ones(3)),
            ValueError,
            r"numpy\.linalg\.det: a must be at least two-dimensional.*f64\[3\]",
        ),
        (
            lambda: linalg.svd(np.ones(3)),
            ValueError,
            r"numpy\.linalg\.svd: a must be at least two-dimensional.*f64\[3\]",
        ),
        (lambda: linalg.solve(np.eye(3), np.ones(2)), ValueError, r"numpy\.linalg\.solve: .*f64\[3,3\] and b f64\[2\]"),
        (
            lambda: linalg.solve(np.ones((2, 3, 3)), np.ones((3, 3, 1))),
            ValueError,
            r"linalg\.solve: operands could not be broadcast",
        ),
        (lambda: linalg.cholesky(np.eye(2, dtype=np.float16)), TypeError, r"numpy\.linalg\.cholesky: .*float16"),
        (lambda: linalg.eigh(np.eye(2), "l"), ValueError, r"numpy\.linalg\.eigh: UPLO must be 'L' or 'U', got 'l'"),
        (lambda: linalg.qr(np.eye(2), "full"), ValueError, r"numpy\.linalg\.qr: unrecognized mode 'full'"),
        (lambda: linalg.norm(np.eye(2), 3), ValueError, r"numpy\.linalg\.norm: invalid norm order 3 for matrices"),
        (
            lambda: linalg.norm(np.ones(2), "fro"),
            ValueError,
            r"numpy\.linalg\.norm: invalid norm order 'fro' for vectors",
        ),
        (
            lambda: linalg.norm(np.ones((2, 2, 2)), 2),
            ValueError,
            r"numpy\.linalg\.norm: improper number of dimensions.* ord=2 .*f64\[2,2,2\]",
        ),
        (lambda: linalg.lstsq(np.eye(2), np.ones(3)), ValueError, r"numpy\.linalg\.lstsq: needs a .*b f64\[3\]"),
        (lambda: linalg.multi_dot([np.eye(2)]), ValueError, r"numpy\.linalg\.multi_dot: needs at least two"),
        (lambda: linalg.matrix_power(np.ones((2, 3)), 2), ValueError, r"numpy\.linalg\.matrix_power: a must be square"),
        (lambda: linalg.tensorinv(np.ones((2, 3)), 1), ValueError, r"numpy\.linalg\.tensorinv: the first ind = 1"),
        (lambda: linalg.tensorsolve(np.ones((2, 3)), np.ones(2)), ValueError, r"numpy\.linalg\.tensorsolve: a must"),
        (lambda: linalg.cond(np.ones((0, 2))), ValueError, r"numpy\.linalg\.cond: an empty matrix"),
        (lambda: linalg.cross(np.ones(2), np.ones(2)), ValueError, r"numpy\.linalg\.cross: .* 3-dimensional vectors"),
        (
            lambda: linalg.outer(np.eye(2), np.ones(2)),
            ValueError,
            r"numpy\.linalg\.outer: input arrays must be one-dimensional",
        ),
        (lambda: linalg.slogdet(np.eye(2), method="qr"), NotImplementedError, r"numpy\.linalg\.slogdet: method"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_upper_triangle_of_complex_cholesky_has_no_negative_zeros():
    a = np.array([[4, 2j], [-2j, 5]])
    for f in (xnp.linalg.cholesky, xform.jit(xnp.linalg.cholesky, static_argnames="upper")):
        out = np.asarray(f(a, upper=True))
        np.testing.assert_allclose(out, [[2, 1j], [0, 2]])
        assert not np.signbit(out.real).any() and not np.signbit(out.imag).any()
