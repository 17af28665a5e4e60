"""Eigenvalues and eigenvectors of general square matrices: ``x V = V diag(w)``.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.quotients`, `lax.linalg.solve`.
"""

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import _umath_linalg as umath

from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value, lower_as
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arg_extremes import argmax_p
from xform.lax.arithmetic import (
    abs_p,
    as_complex,
    complex_dtype,
    complex_p,
    conj_p,
    imag_p,
    mul_p,
    neg_p,
    real_p,
    sub_p,
)
from xform.lax.comparison import eq_p, gt_p, lt_p, select_n_p
from xform.lax.families import constant, is_complex
from xform.lax.linalg import lapack
from xform.lax.linalg.matrices import (
    adjoint,
    batch_in_front,
    check_matrices,
    column_scaled,
    conjugate,
    diagonal,
    diagonal_matrix,
    matmul,
    on_finite,
    reciprocal,
)
from xform.lax.linalg.quotients import differences, quotient
from xform.lax.linalg.solve import solve
from xform.lax.reductions import reduce_sum_p
from xform.lax.shapes import broadcast_in_dim_p, iota_p
from xform.lax.slicing import pad_p


class EigImplementation(enum.Enum):
    """Libraries that JAX offers on accelerators; on the CPU it is always LAPACK."""

    CUSOLVER = "cusolver"
    LAPACK = "lapack"
    MAGMA = "magma"


# eig(x): [w], then the left vectors and the right vectors if asked for. All are complex.


def _types(x: ShapedArray, *, left: bool, right: bool) -> list[ShapedArray]:
    check_matrices("eig", x, square=True)
    matrix = ShapedArray(x.shape, complex_dtype(x.dtype))
    return [matrix.update(shape=x.shape[:-1]), *[matrix] * (left + right)]


# NumPy's loops by dtype; it has none for complex64.
_LOOPS = {"f": "fF", "d": "dD", "F": "DD", "D": "DD"}


def _host(x: Any, *, left: bool, right: bool) -> list[Any]:
    dtype = complex_dtype(x.dtype)
    if left:
        outs = on_finite(lambda x: _with_left_vectors(x, right), x)
    else:
        kernel = umath.eig if right else umath.eigvals
        letters = _LOOPS[x.dtype.char]
        signature = f"{letters[0]}->{letters[1] * (1 + right)}"
        outs = on_finite(lambda x: kernel(x, signature=signature), x)
    return [o.astype(dtype, copy=False) for o in outs]


def _with_left_vectors(x: Any, right: bool) -> tuple[Any, ...]:
    import scipy.linalg

    outs = [np.full(a.shape, np.nan, a.dtype) for a in _types(ShapedArray(x.shape, x.dtype), left=True, right=right)]
    for i in np.ndindex(x.shape[:-2]):
        try:
            found = scipy.linalg.eig(x[i], left=True, right=right, check_finite=False)
        except np.linalg.LinAlgError:  # no convergence: leave NaN
            continue
        for out, o in zip(outs, found, strict=True):
            out[i] = o
    return tuple(outs)


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, left: bool, right: bool) -> Any:
    """``dw = diag(M)``, ``dV = V (M / (w_j - w_i))`` with ``M = V^-1 dA V`` (Giles 2008).

    The components of dV along V follow from LAPACK's choice: vectors have length 1 and their largest component is real
    (Boeddeker et al. 2017, arXiv:1701.00392). Left vectors are the right ones of ``A^H``.
    """
    (x,), (t,) = primals, ts
    if type(t) is Zero:
        outs = eig_p.bind(x, left=left, right=right)
        return outs, [zero_of(o) for o in outs]
    w, *found = eig_p.bind(x, left=left, right=True)
    v = found[-1]
    t = t if is_complex(t) else as_complex(t)
    m = _transformed(v, t)
    outs, tangents = [w], [diagonal(m)]
    x = x if is_complex(x) else as_complex(x)
    if left:
        vl = found[0]
        outs = [*outs, vl]
        tangents.append(_vector_tangents(conj_p.bind(w), vl, _transformed(vl, adjoint(t)), adjoint(x)))
    if right:
        outs = [*outs, v]
        tangents.append(_vector_tangents(w, v, m, x))
    return outs, tangents


def _transformed(v: Any, x: Any) -> Any:
    """``v^-1 x v``."""
    return solve(v, matmul(x, v))


def _vector_tangents(w: Any, v: Any, m: Any, x: Any) -> Any:
    """Tangents of the vectors v of x, from ``m = v^-1 dx v``."""
    if not v.size:
        return v
    m = sub_p.bind(m, diagonal_matrix(diagonal(m)))
    t = matmul(v, quotient(m, differences(w, beside=1), _transformed(v, x), "commutator"))
    rows = (v.ndim - 2,)
    # Real part: keep the length. Imaginary part: keep the largest component real.
    stretch = real_p.bind(reduce_sum_p.bind(mul_p.bind(conjugate(v), t), axes=rows))
    largest = argmax_p.bind(abs_p.bind(v), axes=rows, index_dtype=np.dtype(np.int32))
    batch = tuple(range(v.ndim - 2))
    largest = broadcast_in_dim_p.bind(largest, shape=v.shape, broadcast_dimensions=(*batch, v.ndim - 1))
    chosen = eq_p.bind(largest, iota_p.bind(dtype=np.dtype(np.int32), shape=v.shape, dimension=v.ndim - 2))
    zero = constant(v, 0)
    pivot = real_p.bind(reduce_sum_p.bind(select_n_p.bind(chosen, zero, v), axes=rows))
    drift = imag_p.bind(reduce_sum_p.bind(select_n_p.bind(chosen, zero, t), axes=rows))
    along = complex_p.bind(stretch, mul_p.bind(drift, reciprocal(pivot)))
    return sub_p.bind(t, column_scaled(v, along))


def _lower(ctx: Context, x: Value, *, left: bool, right: bool) -> list[Value]:
    lapack.kernel(ctx, "geev", "eig")
    if left and lapack.is_cuda(ctx):
        raise NotImplementedError(
            "primitive 'eig' can't be compiled for CUDA with left eigenvectors, which cuSOLVER doesn't compute: they "
            "are the right eigenvectors of the conjugate transpose"
        )
    if not x.aval.size:
        return [ctx.full(a.shape, 0, a.dtype) for a in ctx.outs]
    w, real = ctx.outs[0], x.dtype.kind != "c"
    vectors = ShapedArray(x.shape, w.dtype)
    good, safe = lapack.finite(ctx, x)
    options, info = {"left": left, "right": right}, (ShapedArray(x.shape[:-2], lapack.INFO), 0)
    if lapack.is_cuda(ctx):
        results = [(x.aval, 2), (w, 1), (x.aval, 2), (x.aval, 2), info]
        _, cuda_w, _, vr, status = lapack.call(ctx, "geev", [(safe, 2)], results, options, [(0, 0)])
        vr = lower_as(_unpacked)(ctx, cuda_w, vr) if right and real else vr
        return lapack.where(ctx, lapack.converged(ctx, status, good), [cuda_w, *[vr] * right])
    values = [(w.update(dtype=x.dtype), 1)] * (2 if real else 1)
    results = [*values, (vectors, 2), (vectors, 2), info]
    *found, vl, vr, status = lapack.call(ctx, "geev", [(safe, 2)], results, options)
    outs = [ctx.op("complex", found, w) if real else found[0], *[vl] * left, *[vr] * right]
    return lapack.where(ctx, lapack.converged(ctx, status, good), outs)


def _unpacked(w: Any, v: Any) -> Any:
    """Complex vectors of a real matrix: a pair of conjugate ones is stored as real and imaginary part, side by side.

    The eigenvalue with positive imaginary part comes first.
    """
    imag = imag_p.bind(w)
    batch = tuple(range(w.ndim - 1))
    imag = broadcast_in_dim_p.bind(imag, shape=v.shape, broadcast_dimensions=(*batch, v.ndim - 1))
    zero = constant(imag, 0)
    first, second = gt_p.bind(imag, zero), lt_p.bind(imag, zero)

    def moved(x: Any, by: int) -> Any:
        config = tuple((by, -by, 0) if axis == x.ndim - 1 else (0, 0, 0) for axis in range(x.ndim))
        return pad_p.bind(x, zero, padding_config=config)

    re = select_n_p.bind(second, v, moved(v, 1))
    im = select_n_p.bind(first, select_n_p.bind(second, zero, neg_p.bind(v)), moved(v, -1))
    return complex_p.bind(re, im)


eig_p = Primitive("eig", multiple_results=True)
eig_p.abstract_eval = _types
eig_p.host = _host
eig_p.jvp = _jvp
eig_p.batch = batch_in_front(eig_p)
eig_p.lower = _lower


@api_boundary
def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = True,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Any]:
    """Eigenvalues and eigenvectors of general matrices.

    Parameters
    ----------
    x : array (..., n, n)
        float32, float64, complex64 or complex128.
    compute_left_eigenvectors, compute_right_eigenvectors : bool
        Which vectors to return.
    enable_eigvec_derivs, implementation, use_magma : ignored
        Vectors always have derivatives, under the conditions below.

    Returns
    -------
    w : complex array (..., n)
        In no particular order.
    vl, vr : complex arrays (..., n, n), as asked for
        Columns are unit vectors with ``vl^H x = w vl^H`` and ``x vr = w vr``; their largest component is real.
        Everything is NaN for matrices that are not finite.

    Derivatives exist where eigenvalues are distinct; those of vectors if no two components are largest together. At
    equal eigenvalues of a matrix that still has n vectors it is as with `eigh`.

    Examples
    --------
    >>> from xform import lax
    >>> w, v = lax.linalg.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False)
    >>> sorted(w.tolist(), key=lambda z: z.imag)
    [-1j, 1j]
    """
    left, right = bool(compute_left_eigenvectors), bool(compute_right_eigenvectors)
    return list(eig_p.bind(x, left=left, right=right))
