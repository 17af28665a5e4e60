"""Linear equations with general square matrices, and determinants.

May import: `lax.linalg.matrices` and the decompositions beside it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import _umath_linalg as umath

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive, Tracer
from xform.interpreters import batching
from xform.interpreters.jet import implicit
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import Zero, add_tangents, zero_of
from xform.lax.arithmetic import abs_p, add_p, complex_p, imag_p, mul_p, neg_p, real_p, sign_p, sub_p
from xform.lax.comparison import eq_p, select_n_p
from xform.lax.families import constant, is_complex, real_dtype
from xform.lax.identities import stop_gradient_p
from xform.lax.linalg import small
from xform.lax.linalg.inverse import inv_p
from xform.lax.linalg.lu import inverse_permutation, lu_p, permuted
from xform.lax.linalg.matrices import (
    adjoint,
    batch_in_front,
    block,
    check_matrices,
    diagonal,
    diagonal_matrix,
    matmul,
    row_scaled,
    sum_of_matmuls,
    transposed,
    triu,
)
from xform.lax.linalg.qr import qr_p
from xform.lax.linalg.triangular_solve import solve as solve_triangular
from xform.lax.linalg.triangular_solve import triangular_solve_p
from xform.lax.linalg.unrolled import unrolled
from xform.lax.reductions import reduce_prod_p, reduce_sum_p
from xform.lax.shapes import broadcast_in_dim_p, iota_p, reshape_p
from xform.lax.slicing import concatenate_p, static_slice
from xform.lax.transcendental import log_p

# solve(a, lu, permutation, b): the solution of ``a x = b``, or of ``a^T x = b``, by the decomposition of `a`. It is
# differentiated as a function of `a` and `b`; the decomposition belongs to `a` and has no derivative of its own, so
# that derivatives of all orders use the one that is there.


def _types(
    a: ShapedArray, lu: ShapedArray, permutation: ShapedArray, b: ShapedArray, *, transpose_a: bool
) -> ShapedArray:
    if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1] or b.dtype != a.dtype:
        raise ValueError(
            f"lax.linalg.solve takes a (..., n, n) and b (..., n, m) of one dtype, got a {a.str_short()} and b "
            f"{b.str_short()}"
        )
    return b.strong


def _host(a: Any, lu: Any, permutation: Any, b: Any, *, transpose_a: bool) -> Any:
    trsm = triangular_solve_p.host
    lower = {"lower": True, "unit_diagonal": True}
    upper = {"lower": False, "unit_diagonal": False}
    params = {"left_side": True, "transpose_a": transpose_a, "conjugate_a": False}
    rows = permutation[..., None]
    if not transpose_a:
        y = np.take_along_axis(b, rows, -2) if permutation.ndim > 1 else b[permutation]
        return trsm(lu, trsm(lu, y, **lower, **params), **upper, **params)
    y = trsm(lu, trsm(lu, b, **upper, **params), **lower, **params)
    out = np.empty_like(y)
    np.put_along_axis(out, np.broadcast_to(rows, y.shape), y, -2)
    return out


def _composed(a: Any, lu: Any, permutation: Any, b: Any, *, transpose_a: bool) -> Any:
    """The same in terms of other operations."""
    if not transpose_a:
        y = solve_triangular(lu, permuted(b, permutation), unit=True)
        return solve_triangular(lu, y, lower=False)
    params = {"left_side": True, "transpose_a": True, "conjugate_a": False}
    y = triangular_solve_p.bind(lu, b, lower=False, unit_diagonal=False, **params)
    y = triangular_solve_p.bind(lu, y, lower=True, unit_diagonal=True, **params)
    return permuted(y, inverse_permutation(permutation))


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, transpose_a: bool) -> Any:
    """``op(A) dX = dB - op(dA) X``."""
    *known, b = primals
    ta, _, _, tb = ts
    x = solve_p.bind(*known, b, transpose_a=transpose_a)
    if type(ta) is not Zero:
        tb = add_tangents(tb, neg_p.bind(matmul(transposed(ta) if transpose_a else ta, x)))
    return x, zero_of(x) if type(tb) is Zero else solve_p.bind(*known, tb, transpose_a=transpose_a)


def _transpose(ct: Any, a: Any, lu: Any, permutation: Any, b: Any, *, transpose_a: bool) -> list[Any]:
    return [None, None, None, solve_p.bind(a, lu, permutation, ct, transpose_a=not transpose_a)]


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, transpose_a: bool) -> Any:
    if any(d is not None for d in dims[:3]):
        return _batch_all(axis, args, dims, transpose_a=transpose_a)
    # One matrix for all: more right-hand sides.
    *known, b = args
    at = get_aval(b).ndim - 2
    b = batching.move_to(b, dims[-1], axis.size, at)
    *batch, n, k, m = b.shape
    out = solve_p.bind(*known, reshape_p.bind(b, new_sizes=(*batch, n, k * m)), transpose_a=transpose_a)
    return reshape_p.bind(out, new_sizes=(*batch, n, k, m)), at


solve_p = Primitive("solve")
solve_p.abstract_eval = _types
solve_p.host = _host
solve_p.jvp = _jvp
solve_p.jet = implicit(
    solve_p,
    0,
    3,
    lambda pairs, transpose_a: sum_of_matmuls(pairs),
    lambda a, transpose_a: transposed(a) if transpose_a else a,
)
solve_p.transpose = _transpose
solve_p.batch = _batch
solve_p.lower = lower_as(_composed)
unrolled(solve_p, small.solve)
_batch_all = batch_in_front(solve_p)


@api_boundary
def solve(a: Any, b: Any) -> Any:
    """The solution of ``a x = b``, by LU decomposition.

    Parameters
    ----------
    a : array (..., n, n)
    b : array (..., n, m)
        Of the dtype of `a` and with the same batch axes.

    Returns
    -------
    Array (..., n, m); infinities or NaN where `a` is singular.

    Examples
    --------
    >>> import numpy as np
    >>> from xform.lax.linalg.solve import solve
    >>> solve(np.array([[0.0, 2.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])).tolist()
    [[2.0], [1.0]]
    """
    check_matrices("solve", get_aval(a), square=True)
    lu, _, permutation = lu_p.bind(stop_gradient_p.bind(a) if isinstance(a, Tracer) else a)
    return solve_p.bind(a, lu, permutation, b, transpose_a=False)


# det(x) and slogdet(x): [sign, log of the modulus]


def _det_types(x: ShapedArray) -> ShapedArray:
    check_matrices("det", x, square=True)
    return x.update(shape=x.shape[:-2], weak_type=False)


def _det_jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    """``d det A = tr(adj(A) dA)`` (Jacobi's formula), for singular matrices too."""
    (x,), (t,) = primals, ts
    out = det_p.bind(x)
    return out, zero_of(out) if type(t) is Zero else _trace_of_product(adjugate(x), t)


def _trace_of_product(x: Any, t: Any) -> Any:
    return reduce_sum_p.bind(mul_p.bind(t, transposed(x)), axes=(x.ndim - 2, x.ndim - 1))


def _det(x: Any) -> Any:
    """Up to 3 rows by the definition, beyond by the LU decomposition."""
    *batch, n = x.shape[:-1]
    if n == 0:
        return broadcast_in_dim_p.bind(constant(x, 1), shape=tuple(batch), broadcast_dimensions=())
    if n > 3:
        sign, u = _sign_and_diagonal(x)
        return mul_p.bind(sign, reduce_prod_p.bind(u, axes=(u.ndim - 1,)))
    first_row, first_column = block(x, (0, 1), (0, n)), block(adjugate(x), (0, n), (0, 1))
    return reshape_p.bind(matmul(first_row, first_column), new_sizes=tuple(batch))


def _sign_and_diagonal(x: Any) -> tuple[Any, Any]:
    """The sign of the permutation in the LU decomposition, and the diagonal of U."""
    lu, pivots, _ = lu_p.bind(x)
    last = pivots.ndim - 1
    still = eq_p.bind(pivots, iota_p.bind(dtype=pivots.dtype, shape=pivots.shape, dimension=last))
    signs = select_n_p.bind(still, constant(x, -1), constant(x, 1))
    return reduce_prod_p.bind(signs, axes=(last,)), diagonal(lu)


def adjugate(x: Any) -> Any:
    """The matrix with ``adj(x) x = det(x)``, a polynomial of the elements of `x`.

    From 4 rows on by a QR decomposition with pivoting, ``x P = Q R``: where the rank is deficient by one, only the last
    element r of R's diagonal is zero, and ``adj(R) = det(R') R'^-1 diag(r, ..., r, 1)``, where R' has 1 in its place.
    Of singular matrices first derivatives of the determinant are right, not second ones.
    """
    *batch, n = x.shape[:-1]
    if n < 2:
        return broadcast_in_dim_p.bind(constant(x, 1), shape=x.shape, broadcast_dimensions=())
    if n == 2:
        (a, b), (c, d) = [[block(x, (i, i + 1), (j, j + 1)) for j in (0, 1)] for i in (0, 1)]
        return _stacked(_side_by_side(d, neg_p.bind(b)), _side_by_side(neg_p.bind(c), a))
    if n == 3:
        u, v, w = (block(x, (i, i + 1), (0, 3)) for i in range(3))
        return transposed(_stacked(_cross(v, w), _cross(w, u), _cross(u, v)))
    q, r, order = qr_p.bind(x, full_matrices=False, pivoting=True)
    d, one, axes = diagonal(r), constant(x, 1), tuple(range(len(batch)))
    last = eq_p.bind(iota_p.bind(dtype=np.dtype(np.int32), shape=d.shape, dimension=len(batch)), np.int32(n - 1))
    smallest = broadcast_in_dim_p.bind(
        static_slice(d, (*(0 for _ in batch), n - 1), d.shape), shape=d.shape, broadcast_dimensions=(*axes, len(batch))
    )
    d = select_n_p.bind(last, d, one)
    safe = select_n_p.bind(eq_p.bind(d, constant(x, 0)), d, one)
    r = add_p.bind(triu(r, 1), diagonal_matrix(safe))
    scaled = row_scaled(select_n_p.bind(last, smallest, one), adjoint(q))
    back = inverse_permutation(order)
    out = permuted(solve_triangular(r, scaled, lower=False), back)
    sign = det_p.bind(permuted(transposed(q), back))
    factor = mul_p.bind(sign, reduce_prod_p.bind(d, axes=(len(batch),)))
    return mul_p.bind(out, broadcast_in_dim_p.bind(factor, shape=out.shape, broadcast_dimensions=axes))


def _cross(u: Any, v: Any) -> Any:
    """The cross product of rows of 3."""
    return _rolled(sub_p.bind(mul_p.bind(u, _rolled(v)), mul_p.bind(_rolled(u), v)))


def _rolled(x: Any) -> Any:
    """The columns of a row in the order 1, 2, 0."""
    return _side_by_side(block(x, (0, 1), (1, 3)), block(x, (0, 1), (0, 1)))


def _side_by_side(*xs: Any) -> Any:
    return concatenate_p.bind(*xs, dimension=xs[0].ndim - 1)


def _stacked(*xs: Any) -> Any:
    return concatenate_p.bind(*xs, dimension=xs[0].ndim - 2)


det_p = Primitive("det")
det_p.abstract_eval = _det_types
det_p.host = umath.det
det_p.jvp = _det_jvp
det_p.batch = batch_in_front(det_p)
det_p.lower = lower_as(_det)
unrolled(det_p, small.det)


def _slogdet_types(x: ShapedArray) -> list[ShapedArray]:
    check_matrices("slogdet", x, square=True)
    sign = x.update(shape=x.shape[:-2], weak_type=False)
    return [sign, sign.update(dtype=real_dtype(x.dtype))]


def _slogdet_host(x: Any) -> list[Any]:
    sign, log = umath.slogdet(x)
    return [np.where(np.isnan(log), log, sign).astype(x.dtype), log]


def _slogdet_jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    """``d log det A = tr(A^-1 dA)``: its real part changes the logarithm, its imaginary part turns the sign."""
    (x,), (t,) = primals, ts
    sign, log = slogdet_p.bind(x)
    if type(t) is Zero:
        return [sign, log], [zero_of(sign), zero_of(log)]
    change = _trace_of_product(inv_p.bind(x), t)
    if not is_complex(x):
        return [sign, log], [zero_of(sign), change]
    turn = complex_p.bind(constant(log, 0), imag_p.bind(change))
    return [sign, log], [mul_p.bind(turn, sign), real_p.bind(change)]


def _slogdet(x: Any) -> list[Any]:
    sign, u = _sign_and_diagonal(x)
    last = (u.ndim - 1,)
    sign = mul_p.bind(sign, reduce_prod_p.bind(sign_p.bind(u), axes=last))
    return [sign, reduce_sum_p.bind(log_p.bind(abs_p.bind(u)), axes=last)]


slogdet_p = Primitive("slogdet", multiple_results=True)
slogdet_p.abstract_eval = _slogdet_types
slogdet_p.host = _slogdet_host
slogdet_p.jvp = _slogdet_jvp
slogdet_p.batch = batch_in_front(slogdet_p)
slogdet_p.lower = lower_as(_slogdet)
unrolled(slogdet_p, small.slogdet)
