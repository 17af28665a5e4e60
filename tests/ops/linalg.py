"""Decompositions of matrices and linear equations."""

import numpy as np
import scipy.linalg

from tests.ops.record import Op, Sample, array
from xform import lax
from xform.lax.linalg.solve import solve

linalg = lax.linalg
DTYPES = ("float32", "float64", "complex64", "complex128")
SQUARE = ((3, 3), (1, 1), (0, 0), (2, 4, 4), (0, 2, 2))
TOLERANCE = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-13, "complex128": 1e-13}
TALL_AND_WIDE = ((3, 3), (4, 2), (2, 4), (1, 1), (2, 3, 2), (0, 2, 3), (0, 0))


def matrices(rng, dtype, shape):
    """Well conditioned matrices."""
    x = array(rng, dtype, shape, -1, 1)
    return (x + 2 * np.eye(*shape[-2:])).astype(dtype)


def hermitian(rng, dtype, shape):
    """Hermitian matrices with eigenvalues near 1, 2, ..."""
    x = array(rng, dtype, shape, -0.2, 0.2)
    return (x + x.conj().swapaxes(-1, -2) + np.diag(np.arange(1.0, shape[-1] + 1))).astype(dtype)


def each_matrix(function):
    """A function of matrices on batches of them; `function` returns one array."""

    def batched(*args, **kwargs):
        batch = args[0].shape[:-2]
        if not batch:
            return function(*args, **kwargs)
        if not np.prod(batch):
            return np.zeros(args[-1].shape, args[-1].dtype)
        flat = [a.reshape(-1, *a.shape[len(batch) :]) for a in args]
        out = np.stack([function(*rows, **kwargs) for rows in zip(*flat, strict=True)])
        return out.reshape(*batch, *out.shape[1:])

    return batched


def bad_input(name, fun):
    return [
        (lambda: fun(np.ones((2, 3))), ValueError, rf"{name} takes square matrices .*f64\[2,3\]"),
        (lambda: fun(np.ones(3)), ValueError, rf"{name} takes square matrices .*f64\[3\]"),
        (lambda: fun(np.ones((2, 2), np.int32)), TypeError, rf"{name} takes float32.*i32\[2,2\]"),
    ]


# Cholesky


def cholesky_samples(rng, dtype):
    for shape in SQUARE:
        yield Sample((hermitian(rng, dtype, shape),))
    yield Sample((hermitian(rng, dtype, (3, 3)),), {"symmetrize_input": False})


def cholesky_reference(x, symmetrize_input=True):
    with np.errstate(all="ignore"):
        h = (x + np.conj(x.swapaxes(-1, -2))) / 2
        good = (
            np.linalg.eigvalsh(h).min(-1, initial=np.inf) > 0 if np.isfinite(h).all() else np.zeros(h.shape[:-2], bool)
        )
        safe = np.where(good[..., None, None], h, np.eye(h.shape[-1]))
        return np.where(good[..., None, None], np.linalg.cholesky(safe), np.tril(np.full_like(x, np.nan)))


def cholesky_edges(dtype):
    eye = np.eye(3, dtype=dtype)
    yield Sample((np.stack([eye, -eye, np.diag([1, 0, 1]).astype(dtype)]),))
    yield Sample((np.full((2, 2), np.nan, dtype),))


def general_square(rng, dtype):
    for shape in SQUARE:
        yield Sample((array(rng, dtype, shape),))


# Triangular equations


def triangular_samples(rng, dtype):
    for left in (True, False):
        for lower in (True, False):
            for transpose, conjugate in ((False, False), (True, False), (True, True), (False, True)):
                kwargs = dict(left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate)
                b = (3, 2) if left else (2, 3)
                yield Sample((matrices(rng, dtype, (3, 3)), array(rng, dtype, b)), kwargs)
    yield Sample(
        (matrices(rng, dtype, (2, 3, 3)), array(rng, dtype, (2, 3, 1))), dict(left_side=True, unit_diagonal=True)
    )
    yield Sample((matrices(rng, dtype, (7, 2, 2)), array(rng, dtype, (7, 3, 2))), dict(lower=True, transpose_a=True))
    yield Sample(
        (matrices(rng, dtype, (7, 2, 2)), array(rng, dtype, (7, 2, 3))), dict(left_side=True, conjugate_a=True)
    )
    yield Sample((matrices(rng, dtype, (3, 3)), array(rng, dtype, (3,))), dict(left_side=True))
    yield Sample((matrices(rng, dtype, (0, 0)), array(rng, dtype, (0, 2))), dict(left_side=True))
    yield Sample((matrices(rng, dtype, (0, 2, 2)), array(rng, dtype, (0, 2, 3))), dict(left_side=True))


def triangular_reference(a, b, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False):
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        i = np.arange(a.shape[-1])
        a[..., i, i] = 1
    a = a.swapaxes(-1, -2) if transpose_a else a
    a = np.conj(a) if conjugate_a else a
    if b.ndim == 1:
        return np.linalg.solve(a, b)
    if left_side:
        return np.linalg.solve(a, b)
    return np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


# The triangles of matrices


def triangle(x, k, lower):
    return linalg.triangle_p.bind(x, k=k, lower=lower)


def triangle_samples(rng, dtype):
    for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 1), (0, 3), (2, 0, 0)):
        for k in (0, 1, -2):
            for lower in (True, False):
                yield Sample((array(rng, dtype, shape),), {"k": k, "lower": lower})


# LU


def general_samples(rng, dtype):
    for shape in TALL_AND_WIDE:
        yield Sample((matrices(rng, dtype, shape),))


@each_matrix
def lu_reference(x):
    """SciPy's lu, its three results packed."""
    _, lower, upper = scipy.linalg.lu(x)
    m, n = x.shape
    k = min(m, n)
    out = np.zeros((m, n), x.dtype)
    out[:, :k] += np.tril(lower[:, :k], -1)
    out[:k] += upper
    return out


def lu_matrix(x):
    return linalg.lu(x)[0]


def pivots_samples(rng, dtype):
    yield Sample((np.array([2, 1, 2], dtype), 3))
    yield Sample((np.array([[2, 2], [0, 3]], dtype), 4))
    yield Sample((np.zeros((0, 3), dtype), 3))
    yield Sample((np.zeros((2, 0), dtype), 3))


def pivots_reference(pivots, size):
    out = np.empty((*pivots.shape[:-1], size), np.int32)
    for i in np.ndindex(*pivots.shape[:-1]):
        order = list(range(size))
        for k, p in enumerate(pivots[i]):
            order[k], order[p] = order[p], order[k]
        out[i] = order
    return out


# QR


def qr_samples(rng, dtype):
    for shape in TALL_AND_WIDE:
        yield Sample((matrices(rng, dtype, shape),), {"full_matrices": False})
    yield Sample((matrices(rng, dtype, (2, 4)),))


def pivoted_samples(rng, dtype):
    """Matrices whose columns are of clearly different length."""
    for full, shape in ((False, (4, 3)), (True, (3, 4)), (False, (2, 3, 3)), (False, (0, 3)), (False, (2, 3, 0))):
        x = matrices(rng, dtype, shape) * np.array([1.0, 5.0, 3.0, 9.0])[: shape[-1]]
        yield Sample((x.astype(dtype),), {"full_matrices": full, "pivoting": True})


def full_qr_samples(rng, dtype):
    for shape in ((4, 2), (2, 3, 2), (3, 0), (0, 2, 1)):
        yield Sample((matrices(rng, dtype, shape),))


def full_pivoted_samples(rng, dtype):
    for shape in ((4, 3), (2, 3, 2)):
        x = matrices(rng, dtype, shape) * np.array([1.0, 5.0, 3.0])[: shape[-1]]
        yield Sample((x.astype(dtype),), {"pivoting": True})


def full_qr(x, **kwargs):
    """Of the columns of Q beyond those of `x` the projection, which doesn't depend on their choice."""
    q, r, *order = linalg.qr(x, **kwargs)
    n = x.shape[-1]
    extra = lax.slice_in_dim(q, n, None, axis=-1)
    ones = lax.full((*x.shape[:-2], extra.shape[-1]), 1, extra.dtype)
    return [lax.slice_in_dim(q, 0, n, axis=-1), r, product(extra, ones, adjoint(extra)), *order]


def full_qr_reference(x, **kwargs):
    q, r, *order = qr_reference(x, **kwargs)
    n = x.shape[-1]
    return [q[..., :n], r, q[..., n:] @ adjoint(q[..., n:]), *order]


def qr_reference(x, full_matrices=True, pivoting=False):
    if not pivoting:
        return tuple(np.linalg.qr(x, "complete" if full_matrices else "reduced"))
    *batch, m, n = x.shape
    k = m if full_matrices else min(m, n)
    if not x.size:
        q = np.broadcast_to(np.eye(m, k, dtype=x.dtype), (*batch, m, k))
        return q, np.zeros((*batch, k, n), x.dtype), np.broadcast_to(np.arange(n, dtype=np.int32), (*batch, n))
    rows = [
        scipy.linalg.qr(a, mode="full" if full_matrices else "economic", pivoting=True) for a in x.reshape(-1, m, n)
    ]
    return tuple(np.stack(c).reshape(*batch, *c[0].shape) for c in zip(*rows, strict=True))


# Equations and determinants


def solve_samples(rng, dtype):
    for a, b in (((3, 3), (3, 2)), ((1, 1), (1, 1)), ((2, 4, 4), (2, 4, 1)), ((0, 0), (0, 2)), ((0, 2, 2), (0, 2, 1))):
        yield Sample((matrices(rng, dtype, a), array(rng, dtype, b)))


def square_samples(rng, dtype):
    """Of all the sizes that have their own formula."""
    for shape in ((1, 1), (2, 2), (3, 3), (4, 4), (2, 3, 3), (0, 0), (2, 0, 0), (0, 4, 4)):
        yield Sample((matrices(rng, dtype, shape),))


def slogdet(x):
    return tuple(linalg.slogdet_p.bind(x))


def singular(dtype):
    for a in (np.zeros((2, 2)), np.diag([1, 0, 2, 3]), np.diag([2, 0, 3])):
        yield Sample((a.astype(dtype),))


def pinv(x, cutoff, hermitian=False):
    return linalg.pinv_p.bind(x, cutoff, hermitian=hermitian)


def pinv_reference(x, cutoff, hermitian=False):
    return np.linalg.pinv(x, cutoff, hermitian=hermitian)


def pinv_samples(rng, dtype):
    """The sample with equal singular values is no exception: here they have derivatives."""
    part = np.finfo(dtype).dtype
    for shape in ((3, 3), (4, 2), (2, 2, 3), (0, 2, 3), (0, 0), (2, 0)):
        yield Sample((matrices(rng, dtype, shape), np.full(shape[:-2], 1e-5, part)))
    yield Sample((2 * np.eye(4, 2, dtype=dtype), part.type(1e-5)))


def hermitian_pinv_samples(rng, dtype):
    """Without derivatives: a direction must be Hermitian."""
    part = np.finfo(dtype).dtype
    yield Sample((hermitian(rng, dtype, (3, 3)), part.type(1e-5)), {"hermitian": True})
    yield Sample((np.diag([1, 0, 2]).astype(dtype), part.type(1e-5)), {"hermitian": True})


# Eigenvalues and singular values. Vectors are determined up to signs or phases, so what is compared are functions of
# them that don't depend on these: squares of absolute values, and sums of outer products.


def product(x, s, yh):
    """``x diag(s) yh``, of arrays of NumPy or of the library."""
    if isinstance(x, np.ndarray):
        return x * s[..., None, :] @ yh
    n, batch = x.ndim, tuple(range(x.ndim - 2))
    s = lax.convert_element_type(lax.broadcast_in_dim(s, x.shape, (*batch, n - 1)), x.dtype)
    return lax.dot_general(lax.mul(x, s), yh, (((n - 1,), (n - 2,)), (batch, batch)))


def modulus(x):
    return np.square(np.abs(x)) if isinstance(x, np.ndarray) else lax.square(lax.abs(x))


def adjoint(x):
    if isinstance(x, np.ndarray):
        return np.conj(x.swapaxes(-1, -2))
    x = lax.conj(x) if x.dtype.kind == "c" else x
    return lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def eigh_invariants(x, **kwargs):
    v, w = linalg.eigh(x, **kwargs)
    return w, modulus(v), product(v, lax.sin(w), adjoint(v))


def eigh_reference(x, lower=True, symmetrize_input=True, subset_by_index=None):
    h = (x + adjoint(x)) / 2 if symmetrize_input else x
    w, v = np.linalg.eigh(h, "L" if lower else "U")
    if subset_by_index is not None:
        w, v = w[..., slice(*subset_by_index)], v[..., slice(*subset_by_index)]
    return w, modulus(v), product(v, np.sin(w), adjoint(v))


def eigh_samples(rng, dtype):
    for shape in SQUARE:
        yield Sample((hermitian(rng, dtype, shape),))
    for lower in (True, False):
        yield Sample((hermitian(rng, dtype, (3, 3)),), {"lower": lower, "symmetrize_input": False})
    yield Sample((hermitian(rng, dtype, (2, 3, 3)),), {"subset_by_index": (1, 3)})


def eigvalsh(x):
    return linalg.eigh_p.bind(x, lower=True, vectors=False)[0]


def svd_invariants(x, full_matrices=True, **kwargs):
    u, s, vh = linalg.svd(x, full_matrices=full_matrices, **kwargs)
    if full_matrices:  # of the additional vectors the projection
        k = s.shape[-1]
        extra, more = lax.slice_in_dim(u, k, None, axis=-1), lax.slice_in_dim(vh, k, None, axis=-2)
        ones = (lax.full((*s.shape[:-1], e), 1, s.dtype) for e in (extra.shape[-1], more.shape[-2]))
        rest = [product(extra, next(ones), adjoint(extra)), product(adjoint(more), next(ones), more)]
        u, vh = lax.slice_in_dim(u, 0, k, axis=-1), lax.slice_in_dim(vh, 0, k, axis=-2)
    else:
        rest = []
    return [s, modulus(u), modulus(vh), product(u, lax.sin(s), vh), *rest]


def svd_reference(x, full_matrices=True, subset_by_index=(0, None)):
    u, s, vh = np.linalg.svd(x, full_matrices)
    k = s.shape[-1]
    rest = []
    if full_matrices:
        extra, more = u[..., k:], vh[..., k:, :]
        rest = [extra @ adjoint(extra), adjoint(more) @ more]
        u, vh = u[..., :k], vh[..., :k, :]
    part = slice(*subset_by_index)
    u, s, vh = u[..., part], s[..., part], vh[..., part, :]
    return [s, modulus(u), modulus(vh), product(u, np.sin(s), vh), *rest]


def with_singular_values(rng, dtype, shape):
    """Matrices with singular values near 1, 2, ..."""
    x = array(rng, dtype, shape, -0.2, 0.2)
    np.einsum("...ii->...i", x[..., : min(shape[-2:]), : min(shape[-2:])])[...] += np.arange(1, min(shape[-2:]) + 1)
    return x


def svdvals(x):
    return linalg.svd(x, compute_uv=False)


def svd_samples(rng, dtype):
    for shape in ((3, 3), (4, 2), (2, 4), (1, 1), (2, 3, 2), (0, 2, 3), (0, 0)):
        yield Sample((with_singular_values(rng, dtype, shape),), {"full_matrices": False})
    yield Sample((with_singular_values(rng, dtype, (3, 4)),), {"full_matrices": False, "subset_by_index": (1, 3)})


def full_svd_samples(rng, dtype):
    for shape in ((4, 2), (2, 2, 3), (0, 3), (2, 0)):
        yield Sample((with_singular_values(rng, dtype, shape),))


def svdvals_samples(rng, dtype):
    for shape in ((3, 3), (4, 2), (2, 2, 4), (0, 2), (0, 2, 2)):
        yield Sample((with_singular_values(rng, dtype, shape),))


def eig(x, left=True, right=True):
    return linalg.eig(x, compute_left_eigenvectors=left, compute_right_eigenvectors=right)


def eig_reference(x, left=True, right=True):
    """SciPy's, matrix by matrix."""
    *batch, n = x.shape[:-1]
    complex_ = np.result_type(x.dtype, np.complex64)
    outs = [np.zeros((*batch, n), complex_), *[np.zeros((*batch, n, n), complex_)] * (left + right)]
    if not x.size:
        return outs
    rows = [scipy.linalg.eig(a, left=left, right=right) for a in x.reshape(-1, n, n)]
    rows = rows if left or right else [(w,) for w in rows]
    return [np.stack(c).reshape(o.shape).astype(complex_) for c, o in zip(zip(*rows, strict=True), outs, strict=True)]


def eig_samples(rng, dtype):
    for shape in ((3, 3), (1, 1), (0, 0), (2, 2, 2), (0, 2, 2)):
        for left, right in ((False, True), (True, True), (False, False)):
            x = with_singular_values(rng, dtype, shape)
            if dtype.kind == "f" and shape == (3, 3):  # a pair of complex eigenvalues
                x[0, 1:], x[1:, 0] = 2, -2
            yield Sample((x.astype(dtype),), {"left": left, "right": right})


OPS = [
    Op("cholesky", linalg.cholesky, cholesky_samples, cholesky_reference, DTYPES, cholesky_edges, ulps=50,
       rtol={"float32": 1e-5, "complex64": 1e-5, "float64": 1e-13, "complex128": 1e-13},
       errors=bad_input("cholesky", linalg.cholesky)),
    Op("triangular_solve", linalg.triangular_solve, triangular_samples, triangular_reference, DTYPES, ulps=50,
       rtol={"float32": 1e-4, "complex64": 1e-4, "float64": 1e-12, "complex128": 1e-12},
       errors=[
           (lambda: linalg.triangular_solve(np.ones((2, 2)), np.ones((3, 2)), left_side=True), ValueError,
            r"triangular_solve with left_side=True takes .*f64\[2,2\] and b f64\[3,2\]"),
           (lambda: linalg.triangular_solve(np.ones((2, 3)), np.ones((3, 2))), ValueError, "square matrices"),
           (lambda: linalg.triangular_solve(np.ones((2, 2)), np.ones((2, 2), np.float32)), ValueError, "of one dtype"),
       ]),
    Op("lu", lu_matrix, general_samples, lu_reference, DTYPES, lambda dtype: [Sample((np.zeros((3, 3), dtype),))],
       ulps=50, rtol={"float32": 1e-5, "complex64": 1e-5, "float64": 1e-13, "complex128": 1e-13},
       errors=[(lambda: linalg.lu(np.ones(3)), ValueError, r"lu takes matrices \(\.\.\., m, n\), got f64\[3\]")]),
    Op("lu_pivots_to_permutation", linalg.lu_pivots_to_permutation, pivots_samples, pivots_reference, ("int32",),
       differentiable=False,
       errors=[(lambda: linalg.lu_pivots_to_permutation(np.zeros(3, np.int32), 2), ValueError,
                r"lu_pivots_to_permutation takes int32 pivots .* permutation_size = 2, got i32\[3\]")]),
    Op("qr", linalg.qr, qr_samples, qr_reference, DTYPES, rtol=TOLERANCE, ulps=50,
       errors=[(lambda: linalg.qr(np.ones(3)), ValueError, r"qr takes matrices \(\.\.\., m, n\), got f64\[3\]")]),
    Op(
        "qr:pivoting", linalg.qr, pivoted_samples, qr_reference, DTYPES, order=1, rtol=TOLERANCE, ulps=50,
        errors=[
            (lambda: linalg.qr(np.ones((2, 2), np.int32), pivoting=True), TypeError, r"qr takes float32.*i32\[2,2\]"),
        ],
    ),
    Op(
        "qr:full", full_qr, full_qr_samples, full_qr_reference, DTYPES, rtol=TOLERANCE, ulps=100,
        errors=[
            (lambda: full_qr(np.ones((2, 2), np.int32)), TypeError, r"qr takes float32.*i32\[2,2\]"),
        ],
    ),
    Op(
        "qr:full_pivoting", full_qr, full_pivoted_samples, full_qr_reference, DTYPES, order=1, rtol=TOLERANCE, ulps=100,
        errors=[
            (lambda: full_qr(np.ones(3), pivoting=True), ValueError, r"qr takes matrices .*f64\[3\]"),
        ],
    ),
    Op("solve", solve, solve_samples, np.linalg.solve, DTYPES, rtol=TOLERANCE, ulps=100,
       errors=[*bad_input("solve", lambda a: solve(a, a)),
               (lambda: solve(np.ones((2, 2)), np.ones((3, 2))), ValueError, r"solve takes .* b f64\[3,2\]")]),
    Op("inv", linalg.inv_p.bind, square_samples, np.linalg.inv, DTYPES, rtol=TOLERANCE, ulps=100,
       errors=bad_input("inv", linalg.inv_p.bind)),
    Op("pinv", pinv, pinv_samples, pinv_reference, DTYPES, rtol=TOLERANCE, ulps=100,
       errors=[(lambda: pinv(np.ones(3), 0.0), ValueError, r"pinv takes matrices \(\.\.\., m, n\), got f64\[3\]"),
               (lambda: pinv(np.eye(2), np.ones(2)), ValueError, r"pinv takes a cutoff of shape \(\) .*f64\[2\]")]),
    Op("pinv:hermitian", pinv, hermitian_pinv_samples, pinv_reference, DTYPES, rtol=TOLERANCE, ulps=100,
       differentiable=False,
        errors=[
            (lambda: pinv(np.ones((2, 3)), 1e-5, hermitian=True), ValueError,
             r"pinv takes square matrices .*f64\[2,3\]"),
        ],
    ),
    Op("det", linalg.det_p.bind, square_samples, np.linalg.det, DTYPES, singular, rtol=TOLERANCE, ulps=100,
       errors=bad_input("det", linalg.det_p.bind)),
    Op("slogdet", slogdet, square_samples, lambda x: tuple(np.linalg.slogdet(x)), DTYPES, singular, rtol=TOLERANCE,
       ulps=100, errors=bad_input("slogdet", slogdet)),
    Op("eigh", eigh_invariants, eigh_samples, eigh_reference, DTYPES, rtol=TOLERANCE, ulps=100,
       errors=[*bad_input("eigh", linalg.eigh),
               (lambda: linalg.eigh(np.eye(3), subset_by_index=(1, 4)), ValueError,
                r"eigh: .*range among 3 values.*1, 4")]),
    Op("eigh:values", eigvalsh, lambda rng, dtype: [Sample((hermitian(rng, dtype, s),)) for s in SQUARE],
       np.linalg.eigvalsh, DTYPES, rtol=TOLERANCE, ulps=100, errors=bad_input("eigh", eigvalsh)),
    Op("svd", svd_invariants, svd_samples, svd_reference, DTYPES, rtol=TOLERANCE, ulps=100,
       errors=[(lambda: linalg.svd(np.ones(3)), ValueError, r"svd takes matrices \(\.\.\., m, n\), got f64\[3\]"),
               (lambda: linalg.svd(np.eye(2), subset_by_index=(0, 1)), ValueError,
                "svd: .*needs full_matrices=False")]),
    Op(
        "svd:full", svd_invariants, full_svd_samples, svd_reference, DTYPES, order=1, rtol=TOLERANCE, ulps=100,
        errors=[
            (lambda: linalg.svd(np.ones((2, 2), np.int32)), TypeError, r"svd takes float32.*i32\[2,2\]"),
        ],
    ),
    Op("svd:values", svdvals, svdvals_samples, lambda x: np.linalg.svd(x, compute_uv=False), DTYPES, rtol=TOLERANCE,
       ulps=100, errors=[(lambda: svdvals(np.ones(3)), ValueError, r"svd takes matrices .*f64\[3\]")]),
    Op("eig", eig, eig_samples, eig_reference, DTYPES, rtol=TOLERANCE, ulps=100, errors=bad_input("eig", linalg.eig)),
    Op("hermitian_part", linalg.hermitian_part_p.bind, general_square, lambda x: (x + adjoint(x)) / 2, DTYPES,
       errors=bad_input("hermitian_part", linalg.hermitian_part_p.bind)),
    Op("triangle", triangle, triangle_samples,
       lambda x, k, lower: np.tril(x, k) if lower else np.triu(x, k), ("bool", "int32", *DTYPES),
        errors=[
            (lambda: triangle(np.ones(3), 0, True), ValueError, r"triangle takes matrices .*f64\[3\]"),
        ],
    ),
]  # fmt: skip
