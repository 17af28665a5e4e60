"""Householder reflections and what is made of them; tridiagonal equations; updates of Cholesky decompositions."""

import functools

import numpy as np
import scipy.linalg

from tests.ops.linalg import DTYPES, SQUARE, TALL_AND_WIDE, TOLERANCE, adjoint, bad_input, hermitian, matrices, modulus
from tests.ops.record import Op, Sample, array
from xform import lax
from xform.lax.linalg.schur import below_p

linalg = lax.linalg

# Reflections


def geqrf_reference(x):
    packed, taus = np.linalg.qr(x, "raw")
    return [packed.swapaxes(-1, -2), taus]


def general_samples(rng, dtype):
    for shape in TALL_AND_WIDE:
        yield Sample((matrices(rng, dtype, shape),))


def reflections(rng, dtype, shape, k):
    """Vectors and factors; ``tau = 2 / |v|^2`` makes ``1 - tau v v^H`` unitary."""
    a = array(rng, dtype, shape)
    v = np.tril(a, -1) + np.eye(*shape[-2:])
    return a, (2 / (abs(v) ** 2).sum(-2)[..., :k]).astype(dtype)


SHAPES = (((4, 3), 3), ((4, 3), 2), ((2, 3, 3), 3), ((3, 0), 0), ((3, 2), 0), ((0, 3, 2), 1))


def product_samples(rng, dtype):
    for shape, k in SHAPES:
        yield Sample(reflections(rng, dtype, shape, k))


def applied(a, taus, out):
    """The reflections on the left of a matrix, the last one first."""
    eye = np.eye(*a.shape[-2:])
    for i in reversed(range(taus.shape[-1])):
        v = (np.tril(a, -1) + eye)[..., :, i : i + 1]
        out = out - taus[..., i, None, None] * v @ (adjoint(v) @ out)
    return out.astype(a.dtype)


def product_reference(a, taus):
    return applied(a, taus, np.broadcast_to(np.eye(*a.shape[-2:]), a.shape))


def ormqr_samples(rng, dtype):
    for left in (True, False):
        for transpose in (True, False):
            for shape, k in SHAPES[1::2]:
                *batch, m, _ = shape
                c = array(rng, dtype, (*batch, m, 2) if left else (*batch, 2, m))
                yield Sample((*reflections(rng, dtype, shape, k), c), {"left": left, "transpose": transpose})


def ormqr_reference(a, taus, c, left=True, transpose=False):
    m = a.shape[-2]
    q = applied(a, taus, np.broadcast_to(np.eye(m), (*a.shape[:-2], m, m)))
    q = adjoint(q) if transpose else q
    return q @ c if left else c @ q


# Reductions


def square_samples(rng, dtype):
    for shape in ((4, 4), (1, 1), (0, 0), (2, 3, 3), (0, 2, 2)):
        yield Sample((matrices(rng, dtype, shape),))


def each(function, outs, *args):
    """Results of a function of single matrices, stacked into arrays of these shapes and dtypes."""
    outs = [np.empty(*o) for o in outs]
    for i in np.ndindex(args[0].shape[:-2]):
        for out, o in zip(outs, function(*[a[i] for a in args]), strict=False):
            out[i] = o
    return outs


def hessenberg_reference(x):
    *batch, n = x.shape[:-1]
    outs = [(x.shape, x.dtype), ((*batch, max(n - 1, 0)), x.dtype)]
    gehrd = scipy.linalg.lapack.get_lapack_funcs("gehrd", dtype=x.dtype)
    return each(gehrd, outs, x) if n > 1 else [x, np.empty(*outs[1])]


def tridiagonal_samples(rng, dtype):
    for lower in (True, False):
        for shape in ((4, 4), (1, 1), (2, 3, 3), (0, 2, 2)):
            yield Sample((hermitian(rng, dtype, shape),), {"lower": lower})


def tridiagonal_reference(x, lower):
    *batch, n = x.shape[:-1]
    part = np.finfo(x.dtype).dtype
    name = "hetrd" if x.dtype.kind == "c" else "sytrd"
    trd = scipy.linalg.lapack.get_lapack_funcs(name, dtype=x.dtype)
    outs = [(x.shape, x.dtype), ((*batch, n), part), ((*batch, n - 1), part), ((*batch, n - 1), x.dtype)]
    return each(lambda x: trd(x, lower=int(lower)), outs, x)


# The Schur decomposition. Phases of vectors are arbitrary.


def schur_invariants(x, **kwargs):
    out = linalg.schur(x, **kwargs)
    return [modulus(a) for a in (out if isinstance(out, tuple) else [out])]


def schur_reference(x, compute_schur_vectors=True):
    output = "complex" if x.dtype.kind == "c" else "real"
    outs = [(x.shape, x.dtype)] * 2
    t, q = each(lambda x: scipy.linalg.schur(x, output), outs, x) if x.size else (x, x)
    return [modulus(t), modulus(q)][: 1 + compute_schur_vectors]


def schur_samples(rng, dtype):
    """Real matrices have real eigenvalues."""
    for shape in ((3, 3), (4, 4), (1, 1), (0, 0), (2, 3, 3), (0, 2, 2)):
        x = (
            hermitian(rng, dtype, shape)
            + np.triu(array(rng, dtype, shape, -1, 1), 1)
            + np.diag(2 * np.arange(shape[-1]))
        )
        x = x.astype(dtype)
        yield Sample((x,), {"compute_schur_vectors": shape != (3, 3)})


def schur_edges(dtype):
    """Complex eigenvalues, equal ones, and what is not finite."""
    blocks = np.array([[0.5, 2, 1], [-2, 0.5, 3], [0, 0, 1]], dtype)
    yield Sample((np.stack([blocks, np.eye(3, dtype=dtype), np.full((3, 3), np.nan, dtype)]),))


def schur_edges_reference(x, **kwargs):
    good = np.isfinite(x).all((-2, -1))[..., None, None]
    return [np.where(good, a, np.nan).astype(a.dtype) for a in schur_reference(np.where(good, x, 1), **kwargs)]


def below_samples(rng, dtype):
    for pullback in (False, True):
        for shape in ((4, 4), (1, 1), (0, 0), (2, 3, 3), (0, 2, 2)):
            t = np.triu(array(rng, dtype, shape) + 5 * np.diag(np.arange(shape[-1]))).astype(dtype)
            yield Sample((t, array(rng, dtype, shape)), {"pullback": pullback})


def below_reference(t, m, pullback):
    """As one system of equations for the elements below the diagonal."""
    n = t.shape[-1]
    i, j = np.tril_indices(n, -1)
    t = t.swapaxes(-1, -2) if pullback else t
    eye = np.eye(n)
    out = np.zeros_like(m)
    if i.size and m.size:
        system = (
            t[..., i[:, None], i] * eye[j[:, None], j] - t.swapaxes(-1, -2)[..., j[:, None], j] * eye[i[:, None], i]
        )
        out[..., i, j] = np.linalg.solve(system, -m[..., i, j, None])[..., 0]
    return out


def below(t, m, pullback):
    return below_p.bind(t, m, pullback=pullback)


# Tridiagonal equations


def tridiagonal_solve_samples(rng, dtype):
    for shape, m in (((4,), 2), ((1,), 1), ((2, 3), 2), ((0,), 1), ((2, 0), 1), ((0, 2), 1), ((3,), 0), ((3,), None)):
        dl, d, du = (array(rng, dtype, shape) for _ in range(3))
        d = (d + 5).astype(dtype)
        yield Sample((dl, d, du, array(rng, dtype, shape if m is None else (*shape, m))))


def tridiagonal_matrix(dl, d, du):
    i = np.arange(d.shape[-1])
    out = np.zeros((*d.shape, d.shape[-1]), d.dtype)
    out[..., i, i], out[..., i[1:], i[:-1]], out[..., i[:-1], i[1:]] = d, dl[..., 1:], du[..., :-1]
    return out


def tridiagonal_solve_reference(dl, d, du, b):
    return np.linalg.solve(tridiagonal_matrix(dl, d, du), b)


def singular_tridiagonal(dtype):
    """One lane is singular, one needs an exchange of rows."""
    d = np.array([[0, 0, 1], [0, 3, 2]], dtype)
    dl, du = np.array([[9, 0, 1], [9, 1, 1]], dtype), np.array([[1, 2, 9], [1, 2, 9]], dtype)
    yield Sample((dl, d, du, np.ones((2, 3, 1), dtype)))


def singular_tridiagonal_reference(dl, d, du, b):
    matrix = tridiagonal_matrix(dl, d, du)
    good = np.linalg.det(matrix) != 0 if matrix.size else np.ones(d.shape[:-1], bool)
    b2 = b[..., None] if b.ndim == d.ndim else b
    out = np.linalg.solve(np.where(good[..., None, None], matrix, np.eye(d.shape[-1])), b2)
    return np.where(good[..., None, None], out, np.nan).astype(b.dtype).reshape(b.shape)


# Products and updates


def symmetric_samples(rng, dtype):
    for a, kwargs in (
        ((3, 2), {}), ((3, 2), {"alpha": 2.0, "beta": 0.5}), ((2, 2, 3), {"beta": -1.0, "symmetrize_output": True}),
        ((0, 2), {"beta": 1.0}), ((2, 0), {"beta": 1.0}),
    ):  # fmt: skip
        c = array(rng, dtype, (*a[:-1], a[-2]))
        yield Sample((array(rng, dtype, a), (c + c.swapaxes(-1, -2)).astype(dtype)), kwargs)


def symmetric_reference(a, c, alpha=1.0, beta=0.0, symmetrize_output=False):
    out = (alpha * (a @ a.swapaxes(-1, -2)) + beta * c).astype(a.dtype)
    return np.tril(out) + np.tril(out, -1).swapaxes(-1, -2) if symmetrize_output else out


def update_samples(rng, dtype):
    for shape in SQUARE:
        yield Sample((matrices(rng, dtype, shape), array(rng, dtype, shape[:-1])))


def update_reference(r, w):
    r = np.triu(r)
    product = adjoint(r) @ r + w[..., :, None] * np.conj(w[..., None, :])
    out = adjoint(np.linalg.cholesky(product.astype(np.result_type(r, np.float64))))
    i = np.arange(r.shape[-1])
    phase = r[..., i, i] / abs(r[..., i, i])  # the update keeps the diagonal's phases
    return (phase[..., None] * out).astype(r.dtype)


# The polar decomposition


def polar_samples(rng, dtype):
    for shape in ((3, 3), (4, 2), (1, 1), (2, 3, 2), (0, 3, 2), (0, 0), (3, 0)):
        yield Sample((matrices(rng, dtype, shape),))
    yield Sample((matrices(rng, dtype, (3, 3)),), {"max_iterations": 8})


def polar(x, max_iterations=10):
    """Without the number of steps, which the reference doesn't know."""
    u, h, _, converged = linalg.qdwh(x, max_iterations=max_iterations)
    return u, h, converged


def polar_reference(x, max_iterations=10):
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return u @ vh, adjoint(vh) * s[..., None, :] @ vh, np.ones(x.shape[:-2], bool)


OPS = [
    Op("geqrf", linalg.geqrf_p.bind, general_samples, geqrf_reference, DTYPES, order=1, rtol=TOLERANCE,
       ulps=50,
       errors=[(lambda: linalg.geqrf_p.bind(np.ones(3)), ValueError, r"geqrf takes matrices .*f64\[3\]")]),
    Op("householder_product", linalg.householder_product, product_samples, product_reference, DTYPES, rtol=TOLERANCE,
       ulps=50,
       errors=[(lambda: linalg.householder_product(np.ones((2, 3)), np.ones(2)), ValueError,
                r"householder_product takes .* k <= n <= m, got a f64")]),
    Op("ormqr", linalg.ormqr, ormqr_samples, ormqr_reference, DTYPES, rtol=TOLERANCE, ulps=50,
       errors=[(lambda: linalg.ormqr(np.ones((3, 2)), np.ones(2), np.ones((2, 3))), ValueError,
                r"ormqr with left=True takes .* c f64\[2,3\]"),
               (lambda: linalg.ormqr(np.ones((3, 2), int), np.ones(2), np.ones((2, 3))), TypeError,
                r"ormqr takes float32.* got i64\[3,2\]")]),
    Op("hessenberg", linalg.hessenberg, square_samples, hessenberg_reference, DTYPES, rtol=TOLERANCE, ulps=100,
       errors=bad_input("hessenberg", linalg.hessenberg)),
    Op("tridiagonal", linalg.tridiagonal, tridiagonal_samples, tridiagonal_reference, DTYPES, order=1,
       rtol=TOLERANCE, ulps=100,
       errors=[*bad_input("tridiagonal", linalg.tridiagonal),
               (lambda: linalg.tridiagonal(np.ones((0, 0))), ValueError, "tridiagonal takes .* at least one row")]),
    Op("schur", schur_invariants, schur_samples, schur_edges_reference, DTYPES, schur_edges, rtol=TOLERANCE, ulps=200,
       errors=[*bad_input("schur", linalg.schur),
               (lambda: linalg.schur(np.eye(2), sort_eig_vals=True), NotImplementedError, "schur: eigenvalues")]),
    Op("below", below, below_samples, below_reference, DTYPES, order=1, rtol=TOLERANCE, ulps=100,
       errors=[(lambda: below(np.eye(2), np.eye(3), False), ValueError, r"below takes .* f64\[2,2\] and f64\[3,3\]")]),
    Op("qdwh", polar, polar_samples, polar_reference, DTYPES, rtol=TOLERANCE, ulps=200,
       errors=[(lambda: linalg.qdwh(np.ones((2, 3))), ValueError, r"qdwh takes .* m >= n, got f64\[2,3\]"),
               (lambda: linalg.qdwh(np.ones((2, 2), int)), TypeError, r"qdwh takes float32.* i64\[2,2\]"),
               (lambda: linalg.qdwh(np.eye(2), dynamic_shape=(1, 1)), NotImplementedError, "qdwh: dynamic_shape")]),
    Op("tridiagonal_solve", linalg.tridiagonal_solve, tridiagonal_solve_samples, singular_tridiagonal_reference,
       DTYPES, singular_tridiagonal, rtol=TOLERANCE, ulps=50,
       errors=[(lambda: linalg.tridiagonal_solve(np.ones(2), np.ones(3), np.ones(3), np.ones((3, 1))), ValueError,
                r"tridiagonal_solve takes .* got dl f64\[2\], d f64\[3\]"),
               (lambda: linalg.tridiagonal_solve(*[np.ones(3, int)] * 3, np.ones((3, 1))), TypeError,
                r"tridiagonal_solve takes float32.* got dl i64\[3\]")]),
    Op("tridiagonal_solve:perturbed", functools.partial(linalg.tridiagonal_solve, perturb_singular=True),
       tridiagonal_solve_samples, singular_tridiagonal_reference, DTYPES, rtol=TOLERANCE, ulps=50,
       errors=[(lambda: linalg.tridiagonal_solve(*map(np.ones, (2, 3, 3, (3, 1))), perturb_singular=True),
                ValueError, r"tridiagonal_solve takes .* got dl f64\[2\], d f64\[3\]")]),
    Op("symmetric_product", linalg.symmetric_product, symmetric_samples, symmetric_reference, DTYPES, rtol=TOLERANCE,
       errors=[(lambda: linalg.symmetric_product(np.ones((3, 2)), np.ones((2, 2))), ValueError,
                r"symmetric_product takes .* c_matrix f64\[2,2\]")]),
    Op("cholesky_update", linalg.cholesky_update, update_samples, update_reference, DTYPES, rtol=TOLERANCE, ulps=100,
       errors=[*bad_input("cholesky_update", lambda r: linalg.cholesky_update(r, np.ones(r.shape[:1], r.dtype))),
               (lambda: linalg.cholesky_update(np.eye(3), np.ones(2)), ValueError,
                r"cholesky_update takes .* w_vector f64\[2\]")]),
]  # fmt: skip
