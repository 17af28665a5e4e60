"""Linear equations with triangular matrices.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.jet import implicit
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import Zero, add_tangents, zero_of
from xform.lax.arithmetic import neg_p
from xform.lax.families import as_operands, is_complex
from xform.lax.linalg import lapack
from xform.lax.linalg.matrices import (
    batch_in_front,
    check_matrices,
    conjugate,
    sum_of_matmuls,
    transposed,
    triangle_p,
)
from xform.lax.shapes import reshape_p

# The parameter conjugate_a only occurs together with transpose_a.


def _types(a: ShapedArray, b: ShapedArray, *, left_side: bool, **flags: bool) -> ShapedArray:
    check_matrices("triangular_solve", a, square=True)
    check_matrices("triangular_solve", b)
    if a.dtype != b.dtype or a.shape[:-2] != b.shape[:-2] or b.shape[-2 if left_side else -1] != a.shape[-1]:
        wanted = "(..., n, m)" if left_side else "(..., m, n)"
        raise ValueError(
            f"lax.linalg.triangular_solve with left_side={left_side} takes a (..., n, n) and b {wanted} of one dtype "
            f"and with equal batch axes, got a {a.str_short()} and b {b.str_short()}"
        )
    return b.strong


@functools.cache
def _blas(letter: str) -> Any:
    from scipy.linalg import blas

    return getattr(blas, {"f": "strsm", "d": "dtrsm", "F": "ctrsm", "D": "ztrsm"}[letter])


def _host(
    a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    if not b.size:
        return b
    batch = a.shape[:-2]
    count, n = math.prod(batch), a.shape[-1]
    if count > 2 * n:
        return _substitute(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal)
    # BLAS counts columns first, so it sees the transposed equation.
    trsm = _blas(b.dtype.char)
    options = (int(left_side), int(not lower), transpose_a + conjugate_a, int(unit_diagonal))
    if not batch:
        return trsm(1, a.T, b.T, *options).T
    out = np.empty(b.shape, b.dtype)
    for i in np.ndindex(batch):
        out[i] = trsm(1, a[i].T, b[i].T, *options).T
    return out


def _substitute(a: Any, b: Any, left: bool, lower: bool, transpose: bool, conjugate: bool, unit: bool) -> Any:
    """Row after row, for many small matrices at once."""
    if conjugate:
        a = np.conjugate(a)
    if not left:
        b = b.swapaxes(-1, -2)
    if transpose == left:
        a, lower = a.swapaxes(-1, -2), not lower
    order = range(b.shape[-2]) if lower else range(b.shape[-2] - 1, -1, -1)
    x = np.empty_like(b)
    for i in order:
        done = slice(0, i) if lower else slice(i + 1, None)
        row = b[..., i, :] - np.matmul(a[..., i : i + 1, done], x[..., done, :])[..., 0, :]
        x[..., i, :] = row if unit else row / a[..., i, i, None]
    return x if left else x.swapaxes(-1, -2)


def _operator(
    a: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool
) -> Any:
    """The tangent of ``op(A)`` for one of A."""
    a = triangle_p.bind(a, k=(-1 if lower else 1) * unit_diagonal, lower=lower)
    a = transposed(a) if transpose_a else a
    return conjugate(a) if conjugate_a else a


def _product(pairs: Sequence[tuple[Any, Any]], *, left_side: bool, **params: bool) -> Any:
    return sum_of_matmuls(pairs if left_side else [(x, a) for a, x in pairs])


def _jvp(primals: Sequence[Any], ts: Sequence[Any], **params: bool) -> Any:
    """``op(A) dX = dB - op(dA) X`` (Giles 2008, "An extended collection of matrix derivative results")."""
    (a, b), (ta, tb) = primals, ts
    x = triangular_solve_p.bind(a, b, **params)
    if type(ta) is not Zero:
        tb = add_tangents(tb, neg_p.bind(_product([(_operator(ta, **params), x)], **params)))
    return x, zero_of(x) if type(tb) is Zero else triangular_solve_p.bind(a, tb, **params)


def _transpose(ct: Any, a: Any, b: Any, *, transpose_a: bool, conjugate_a: bool, **params: bool) -> list[Any]:
    a = conjugate(a) if conjugate_a else a
    out = triangular_solve_p.bind(a, ct, transpose_a=not transpose_a, conjugate_a=False, **params)
    return [None, out]


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, left_side: bool, **flags: bool) -> Any:
    (a, b), (da, db) = args, dims
    params = {"left_side": left_side, **flags}
    if da is not None:
        return _batch_both(axis, args, dims, **params)
    # One matrix for all: more right-hand sides.
    n = get_aval(a).ndim - 2
    at = n + 1 if left_side else n
    b = batching.move_to(b, db, axis.size, at)
    *batch, p, q, r = b.shape
    b = reshape_p.bind(b, new_sizes=(*batch, p, q * r) if left_side else (*batch, p * q, r))
    out = triangular_solve_p.bind(a, b, **params)
    return reshape_p.bind(out, new_sizes=(*batch, p, q, r)), at


def _lower(
    ctx: Context,
    a: Value,
    b: Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Value:
    if ctx.platform == "cpu" and b.aval.size:
        transpose = "C" if conjugate_a else "T" if transpose_a else "N"
        options = {"left": left_side, "lower": lower, "transpose": transpose, "unit": unit_diagonal}
        return lapack.call(ctx, "trsm", [(a, 2), (b, 2)], [(ctx.out, 2)], options, [(1, 0)])[0]
    kind = "ADJOINT" if conjugate_a else "TRANSPOSE" if transpose_a else "NO_TRANSPOSE"
    names = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
    attributes = ", ".join(f"{name} = {str(value).lower()}" for name, value in names.items())
    return ctx.op("triangular_solve", [a, b], ctx.out, f"{attributes}, transpose_a = #stablehlo<transpose {kind}>")


triangular_solve_p = Primitive("triangular_solve")
triangular_solve_p.abstract_eval = _types
triangular_solve_p.host = _host
triangular_solve_p.jvp = _jvp
triangular_solve_p.jet = implicit(triangular_solve_p, 0, 1, _product, _operator)
triangular_solve_p.transpose = _transpose
triangular_solve_p.batch = _batch
triangular_solve_p.lower = _lower
_batch_both = batch_in_front(triangular_solve_p)


def solve(
    a: Any, b: Any, *, left_side: bool = True, lower: bool = True, transpose: bool = False, unit: bool = False
) -> Any:
    """`triangular_solve` with the adjoint in place of the transpose (internal, no checks)."""
    return triangular_solve_p.bind(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose, conjugate_a=transpose and is_complex(a),
        unit_diagonal=unit,
    )  # fmt: skip


@api_boundary
def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """The solution X of ``op(a) X = b``, or of ``X op(a) = b`` if not `left_side`, with triangular `a`.

    Parameters
    ----------
    a : array (..., n, n)
        Only the triangle that `lower` names is read; with `unit_diagonal` its diagonal counts as ones.
    b : array (..., n, m), or (..., m, n) if not `left_side`
        Of the dtype of `a` and with the same batch axes. A vector (..., n) counts as one column (row), if `a` has as
        many axes more.
    transpose_a, conjugate_a : bool
        What `op` does to `a`.

    Returns
    -------
    Array of the shape of `b`; a zero on the diagonal gives infinities or NaN.

    Examples
    --------
    >>> from xform import lax
    >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
    >>> lax.linalg.triangular_solve(a, np.array([[2.0], [9.0]]), left_side=True, lower=True).tolist()
    [[1.0], [2.0]]
    """
    a, b = as_operands("linalg.triangular_solve", a, b)
    if conjugate_a and not transpose_a:
        a = conjugate(a)
    conjugate_a = bool(conjugate_a and transpose_a) and is_complex(get_aval(a))
    params = {
        "left_side": bool(left_side), "lower": bool(lower), "transpose_a": bool(transpose_a),
        "conjugate_a": conjugate_a, "unit_diagonal": bool(unit_diagonal),
    }  # fmt: skip
    shape = get_aval(b).shape
    if len(shape) != get_aval(a).ndim - 1:
        return triangular_solve_p.bind(a, b, **params)
    column = (*shape, 1) if left_side else (*shape[:-1], 1, *shape[-1:])
    return reshape_p.bind(triangular_solve_p.bind(a, reshape_p.bind(b, new_sizes=column), **params), new_sizes=shape)
