"""Inverses of square matrices, and pseudo-inverses of all.

May import: `lax.linalg.matrices`, `lax.linalg.lu`, `lax.linalg.eigh`, `lax.linalg.svd`, `lax.linalg.small`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import _umath_linalg as umath

from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arithmetic import abs_p, add_p, mul_p, neg_p, sub_p
from xform.lax.comparison import eq_p, le_p, select_n_p
from xform.lax.families import constant, real_dtype
from xform.lax.linalg import small
from xform.lax.linalg.eigh import eigh_p
from xform.lax.linalg.lu import lu_p, permuted
from xform.lax.linalg.matrices import (
    adjoint,
    batch_in_front,
    check_matrices,
    column_scaled,
    diagonal,
    identity,
    matmul,
    reciprocal,
)
from xform.lax.linalg.svd import svd_p
from xform.lax.linalg.triangular_solve import solve
from xform.lax.linalg.unrolled import unrolled
from xform.lax.reductions import reduce_max_p, reduce_or_p
from xform.lax.shapes import broadcast_in_dim_p

# inv(x); NaN for matrices that are singular.


def _inv_types(x: ShapedArray) -> ShapedArray:
    check_matrices("inv", x, square=True)
    return x.strong


def _inv_jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    """``d(A^-1) = -A^-1 dA A^-1``."""
    (x,), (t,) = primals, ts
    out = inv_p.bind(x)
    return out, zero_of(out) if type(t) is Zero else neg_p.bind(matmul(matmul(out, t), out))


def _inv(x: Any) -> Any:
    lu, _, permutation = lu_p.bind(x)
    y = solve(lu, permuted(identity(x.shape, x.dtype), permutation), unit=True)
    out = solve(lu, y, lower=False)
    singular = reduce_or_p.bind(eq_p.bind(diagonal(lu), constant(x, 0)), axes=(x.ndim - 2,))
    singular = broadcast_in_dim_p.bind(singular, shape=x.shape, broadcast_dimensions=tuple(range(x.ndim - 2)))
    return select_n_p.bind(singular, out, constant(x, np.nan))


inv_p = Primitive("inv")
inv_p.abstract_eval = _inv_types
inv_p.host = umath.inv
inv_p.jvp = _inv_jvp
inv_p.batch = batch_in_front(inv_p)
inv_p.lower = lower_as(_inv)
unrolled(inv_p, small.inv)


# pinv(x, cutoff): singular values up to `cutoff` (one for each matrix) times the largest count as zero. For `hermitian`
# matrices the eigenvalues serve.


def _pinv_types(x: ShapedArray, cutoff: ShapedArray, *, hermitian: bool) -> ShapedArray:
    check_matrices("pinv", x, square=hermitian)
    *batch, m, n = x.shape
    if cutoff.shape != tuple(batch) or cutoff.dtype != real_dtype(x.dtype):
        raise ValueError(
            f"lax.linalg.pinv takes a cutoff of shape {tuple(batch)} for {x.str_short()}, got {cutoff.str_short()}"
        )
    return x.update(shape=(*batch, n, m), weak_type=False)


def _pinv_host(x: Any, cutoff: Any, *, hermitian: bool) -> Any:
    if hermitian:
        u, s = eigh_p.host(x, lower=True, vectors=True)
        v = u
    else:
        u, s, vh = svd_p.host(x, full_matrices=False, vectors=True)
        v = np.conj(vh.swapaxes(-1, -2))
    size = abs(s)
    zero = size <= np.asarray(cutoff)[..., None] * size.max(-1, initial=0, keepdims=True)
    inverse = np.where(zero, s.dtype.type(0), 1 / s)
    return np.matmul(v * inverse[..., None, :], np.conj(u.swapaxes(-1, -2)))


def _pinv(x: Any, cutoff: Any, *, hermitian: bool) -> Any:
    """The same in terms of other operations."""
    if hermitian:
        u, s = eigh_p.bind(x, lower=True, vectors=True)
        v = u
    else:
        u, s, vh = svd_p.bind(x, full_matrices=False, vectors=True)
        v = adjoint(vh)
    if not s.size:
        return broadcast_in_dim_p.bind(constant(x, 0), shape=(*x.shape[:-2], *x.shape[:-3:-1]), broadcast_dimensions=())
    size, axes = abs_p.bind(s), tuple(range(s.ndim - 1))
    limit = mul_p.bind(cutoff, reduce_max_p.bind(size, axes=(s.ndim - 1,)))
    limit = broadcast_in_dim_p.bind(limit, shape=s.shape, broadcast_dimensions=axes)
    inverse = reciprocal(select_n_p.bind(le_p.bind(size, limit), s, constant(s, 0)))
    return matmul(column_scaled(v, inverse), adjoint(u))


def _pinv_jvp(primals: Sequence[Any], ts: Sequence[Any], *, hermitian: bool) -> Any:
    """``dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P`` at constant rank (Golub and Pereyra 1973)."""
    (x, cutoff), (t, _) = primals, ts
    p = pinv_p.bind(x, cutoff, hermitian=hermitian)
    if type(t) is Zero:
        return p, zero_of(p)
    ph, th = adjoint(p), adjoint(t)
    out = neg_p.bind(matmul(matmul(p, t), p))
    left = matmul(matmul(p, ph), th)
    right = matmul(th, matmul(ph, p))
    out = add_p.bind(out, sub_p.bind(left, matmul(left, matmul(x, p))))
    return p, add_p.bind(out, sub_p.bind(right, matmul(matmul(p, x), right)))


pinv_p = Primitive("pinv")
pinv_p.abstract_eval = _pinv_types
pinv_p.host = _pinv_host
pinv_p.jvp = _pinv_jvp
pinv_p.batch = batch_in_front(pinv_p)
pinv_p.lower = lower_as(_pinv)
