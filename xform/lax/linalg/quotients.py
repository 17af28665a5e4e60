"""Division by gaps between eigenvalues or singular values, some of which may be zero.

A tangent of eigenvectors is a rotation with elements ``m_ij / (w_j - w_i)``. Inside the space of a repeated eigenvalue
vectors are determined up to a rotation, so the quotient 0 is as good as any, *if* what is computed of the vectors does
not depend on that rotation. A forward derivative can't know; it takes 0. A backward one knows: the cotangent of the
rotation is zero then, but for roundoff. If so the quotient is 0, else it is NaN, for what is asked for does not exist.

What remains out of reach: at a repeated eigenvalue, functions such as ``V diag(g(w)) V^H`` have a derivative that
depends on g', of which neither the tangents of V and w nor their cotangents tell. Reverse mode notices it by cotangents
of the eigenvalues that are not equal, and gives NaN; in forward mode the part inside the space is missing. So it is
with second derivatives at several zero singular values of matrices that aren't square.

May import: `lax.linalg.matrices`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters.jet import JetTrace, Series, implicit
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import Zero, add_tangents, is_linear, zero_of
from xform.lax.arithmetic import abs_p, add_p, mul_p, sub_p
from xform.lax.bitwise import and_p, not_p
from xform.lax.comparison import eq_p, le_p, select_n_p
from xform.lax.conversion import convert
from xform.lax.families import constant
from xform.lax.linalg.matrices import (
    adjoint,
    as_dtype_of,
    batch_in_front,
    block,
    column_scaled,
    diagonal,
    diagonal_matrix,
    identity,
    matmul,
    pairs,
    reciprocal,
    row_scaled,
    scaled,
    sum_of_matmuls,
    transposed,
)
from xform.lax.reductions import reduce_max_p, reduce_or_p
from xform.lax.shapes import broadcast_in_dim_p
from xform.lax.slicing import concatenate_p

# quotient(x, d, w) solves an equation with a matrix w of eigenvalues (singular values) in which d are the gaps:
#
#     columns      Q w = x             d_ij = w_j          Q_ij = x_ij / d_ij
#     commutator   Q w - w Q = x       d_ij = w_j - w_i    the same
#     anticommutator   Q w + w Q = x   d_ij = w_j + w_i    the same
#     values       Q_ii = x_ii, the tangents of the values; d as before. The values of one space have equal cotangents
#                  if what is computed depends on them and the space only
#     rotation     the commutator with Hermitian x, of which Q is the skew Hermitian solution
#     rotations    Y w - w Z = x       d = [w_j - w_i, w_j + w_i]
#                  with Q = [Y, Z], both skew Hermitian; x's diagonal is missing in it
#
# `w` is diagonal and d says all of it, but its derivative is not: it splits repeated values. With `pullback` it is the
# transposed operation, which checks that what is divided by zero is zero.


def _types(x: ShapedArray, d: ShapedArray, w: ShapedArray, *, kind: str, pullback: bool) -> ShapedArray:
    *batch, k, n = x.shape
    wide = d.shape == (*batch, k, 2 * k) if kind == "rotations" and not pullback else d.shape == x.shape
    if not wide or w.shape[:-2] != tuple(batch):
        raise ValueError(
            f"lax.linalg.quotient: {kind} of {x.str_short()} need other gaps than {d.str_short()} or another matrix "
            f"than {w.str_short()}"
        )
    if kind != "rotations":
        return x.strong
    return x.update(shape=(*batch, k, n // 2) if pullback else (*batch, k, 2 * n), weak_type=False)


def negligible(dtype: np.dtype) -> tuple[float, float]:
    """What counts as zero in a cotangent: relative to the largest element, and where all elements are roundoff."""
    eps = float(np.finfo(dtype).eps)
    return eps ** (2 / 3), 64 * eps


def _host(x: Any, d: Any, w: Any, *, kind: str, pullback: bool) -> Any:
    def skew(x: Any) -> Any:
        return (x - np.conj(x.swapaxes(-1, -2))) / 2

    if not x.size:
        return np.zeros(
            _types(*[ShapedArray(a.shape, a.dtype) for a in (x, d, w)], kind=kind, pullback=pullback).shape, x.dtype
        )
    y, k = x, x.shape[-2]
    if kind == "rotations":
        a, b = (x[..., :k], x[..., k:]) if pullback else (x, x)
        y = np.concatenate([skew(a + b), skew(a - b)] if pullback else [a, b], -1)
    elif kind == "rotation" and pullback:
        y = skew(x)
    zero = d == 0
    degenerate = zero.any()
    if kind == "values":
        v = x * np.eye(k, dtype=x.dtype)
        if not (pullback and degenerate):
            return v
        v = np.diagonal(x, axis1=-2, axis2=-1)
        y = v[..., None, :] - v[..., None]
    out = y * (np.where(zero, d, 1 / np.where(zero, d.dtype.type(1), d)) if degenerate else 1 / d)
    if pullback and degenerate:
        size = abs(y)
        relative, absolute = map(size.dtype.type, negligible(x.dtype))
        limit = relative * abs(x).max((-2, -1), keepdims=True) + absolute
        undefined = zero & ~(size <= limit)
        if kind == "values":
            return np.where(np.eye(k, dtype=bool), np.where(undefined.any(-1), np.nan, v)[..., None], 0).astype(x.dtype)
        out = np.where(undefined, x.dtype.type(np.nan), out)
    if kind == "rotations":
        a, b = out[..., :k], out[..., k:]
        if pullback:
            return a + b
        a, b = skew(a), skew(b)
        return np.concatenate([a + b, a - b], -1)
    return skew(out) if kind == "rotation" and not pullback else out


def _skew(x: Any) -> Any:
    return scaled(sub_p.bind(x, adjoint(x)), 0.5)


def halves(x: Any) -> tuple[Any, Any]:
    """The two square matrices side by side."""
    k = x.shape[-2]
    return block(x, (0, k), (0, k)), block(x, (0, k), (k, 2 * k))


def side_by_side(a: Any, b: Any) -> Any:
    """``[a, b]``."""
    return concatenate_p.bind(a, b, dimension=a.ndim - 1)


def _composed(x: Any, d: Any, w: Any, *, kind: str, pullback: bool) -> Any:
    """The same in terms of other operations."""
    y = x
    if kind == "rotations":
        a, b = halves(x) if pullback else (x, x)
        y = side_by_side(_skew(add_p.bind(a, b)), _skew(sub_p.bind(a, b))) if pullback else side_by_side(a, b)
    elif kind == "rotation" and pullback:
        y = _skew(x)
    if kind == "values":
        v = diagonal(x)
        if not (pullback and x.size):
            return diagonal_matrix(v)
        y = sub_p.bind(*pairs(v))
    out = mul_p.bind(y, as_dtype_of(reciprocal(d), y))
    if pullback and x.size:
        relative, absolute = negligible(x.dtype)
        limit = scaled(reduce_max_p.bind(abs_p.bind(x), axes=(x.ndim - 2, x.ndim - 1)), relative)
        limit = add_p.bind(limit, constant(limit, absolute))
        limit = broadcast_in_dim_p.bind(limit, shape=y.shape, broadcast_dimensions=tuple(range(x.ndim - 2)))
        undefined = and_p.bind(eq_p.bind(d, constant(d, 0)), not_p.bind(le_p.bind(abs_p.bind(y), limit)))
        out = select_n_p.bind(undefined, out, constant(x, np.nan))
    if kind == "values":
        bad = reduce_or_p.bind(undefined, axes=(x.ndim - 1,))
        return diagonal_matrix(select_n_p.bind(bad, v, constant(x, np.nan)))
    if kind == "rotations":
        a, b = halves(out)
        if pullback:
            return add_p.bind(a, b)
        a, b = _skew(a), _skew(b)
        return side_by_side(add_p.bind(a, b), sub_p.bind(a, b))
    return _skew(out) if kind == "rotation" and not pullback else out


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, kind: str, pullback: bool) -> Any:
    (x, d, w), (t, _, tw) = primals, ts
    out = quotient_p.bind(x, d, w, kind=kind, pullback=pullback)
    if type(tw) is not Zero and kind != "values":
        t = add_tangents(t, _coupling([(transposed(tw) if pullback else tw, out)], kind, pullback))
    return out, zero_of(out) if type(t) is Zero else quotient_p.bind(t, d, w, kind=kind, pullback=pullback)


def _coupling(found: Sequence[tuple[Any, Any]], kind: str, pullback: bool) -> Any:
    """What pairs of a tangent of w and a Q add to the equation's right-hand side."""
    swapped = [(q, w) for w, q in found]
    if kind == "columns":
        return scaled(sum_of_matmuls(swapped), -1)
    if kind == "anticommutator":
        return scaled(add_p.bind(sum_of_matmuls(found), sum_of_matmuls(swapped)), -1)
    if kind != "rotations":
        return sub_p.bind(sum_of_matmuls(found), sum_of_matmuls(swapped))
    if pullback:
        return side_by_side(scaled(sum_of_matmuls(swapped), -1), sum_of_matmuls(found))
    left, right = [(w, halves(q)[1]) for w, q in found], [(halves(q)[0], w) for w, q in found]
    return sub_p.bind(sum_of_matmuls(left), sum_of_matmuls(right))


def _jet(trace: JetTrace, x: Series, d: Series, w: Series, *, kind: str, pullback: bool) -> Any:
    if kind == "values":
        w = Series(w[0])
    return _jet_of_equation(trace, x, d, w, kind=kind, pullback=pullback)


def _transpose(ct: Any, x: Any, d: Any, w: Any, *, kind: str, pullback: bool) -> list[Any]:
    return [quotient_p.bind(ct, d, w, kind=kind, pullback=not pullback) if is_linear(x) else None, None, None]


quotient_p = Primitive("quotient")
quotient_p.abstract_eval = _types
quotient_p.host = _host
quotient_p.jvp = _jvp
quotient_p.jet = _jet
quotient_p.transpose = _transpose
quotient_p.batch = batch_in_front(quotient_p)
quotient_p.lower = lower_as(_composed)

_jet_of_equation = implicit(
    quotient_p,
    2,
    0,
    lambda found, **params: scaled(_coupling(found, **params), -1),
    lambda w, kind, pullback: transposed(w) if pullback else w,
)


def quotient(x: Any, d: Any, w: Any, kind: str) -> Any:
    """The solution Q of an equation with `w` (see above)."""
    return quotient_p.bind(x, d, w, kind=kind, pullback=False)


# middle(x, u, s, vh): stands for ``u^H x vh^H``, which is diag(s), where these are singular values and vectors of x
# (or eigenvalues and vectors), in its derivatives; its own value is not needed, and is 0. `u` and `vh^H` have tangents
# ``u Y`` and ``vh^H Z``.


def _middle_types(x: ShapedArray, u: ShapedArray, s: ShapedArray, vh: ShapedArray) -> ShapedArray:
    if u.shape[-1] != s.shape[-1] or vh.shape[-2] != s.shape[-1] or u.shape[-2:-1] + vh.shape[-1:] != x.shape[-2:]:
        raise ValueError(
            f"lax.linalg.middle takes u (..., m, k), s (..., k) and vh (..., k, n) for {x.str_short()}, got "
            f"{u.str_short()}, {s.str_short()} and {vh.str_short()}"
        )
    return x.update(shape=(*s.shape, s.shape[-1]), weak_type=False)


def _middle_jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    (_, u, s, vh), (t, tu, _, tvh) = primals, ts
    out = middle_p.bind(*primals)
    uh, v = adjoint(u), adjoint(vh)
    tangent: Any = zero_of(out) if type(t) is Zero else matmul(uh, matmul(t, v))
    if type(tu) is not Zero:
        tangent = add_tangents(tangent, column_scaled(matmul(adjoint(tu), u), s))
    if type(tvh) is not Zero:
        tangent = add_tangents(tangent, row_scaled(s, matmul(vh, adjoint(tvh))))
    return out, tangent


middle_p = Primitive("middle")
middle_p.abstract_eval = _middle_types
middle_p.host = lambda x, u, s, vh: np.zeros((*s.shape, s.shape[-1]), x.dtype)
middle_p.jvp = _middle_jvp
middle_p.batch = batch_in_front(middle_p)
middle_p.lower = lambda ctx, *operands: ctx.full(ctx.out.shape, 0, ctx.out.dtype)


# Gaps


def without_roundoff(d: Any, w: Any) -> Any:
    """Gaps between values w with zeros where they are roundoff: up to ``8 sqrt(n) eps max |w|``."""
    if not d.size:
        return d
    axis = w.ndim - 1
    factor = 8 * math.sqrt(w.shape[axis]) * float(np.finfo(w.dtype).eps)
    limit = scaled(reduce_max_p.bind(abs_p.bind(w), axes=(axis,)), factor)
    limit = broadcast_in_dim_p.bind(limit, shape=d.shape, broadcast_dimensions=tuple(range(axis)))
    return select_n_p.bind(le_p.bind(abs_p.bind(d), limit), d, constant(d, 0))


def differences(w: Any, beside: float = np.inf) -> Any:
    """Matrices of gaps ``w_j - w_i``; on the diagonal infinity, since a vector has no quotient with itself."""
    d = without_roundoff(sub_p.bind(*pairs(w)), w)
    return select_n_p.bind(_on_diagonal(d), d, constant(d, beside))


def sums(s: Any) -> Any:
    """Matrices ``s_j + s_i``; infinity on the diagonal where that is zero."""
    d = without_roundoff(add_p.bind(*pairs(s)), s)
    return select_n_p.bind(and_p.bind(_on_diagonal(d), eq_p.bind(d, constant(d, 0))), d, constant(d, np.inf))


def _on_diagonal(x: Any) -> Any:
    return convert(identity(x.shape, np.dtype(np.int8)), np.dtype(bool))


def columns(s: Any, like: Any) -> Any:
    """Matrices of the shape of `like` whose columns are ``s_j``; zeros for roundoff."""
    dims = (*range(like.ndim - 2), like.ndim - 1)
    return without_roundoff(broadcast_in_dim_p.bind(s, shape=like.shape, broadcast_dimensions=dims), s)
