"""Tridiagonal equations by a program: for platforms without a kernel, and with singular matrices perturbed.

May import: `lax.linalg.matrices`, `lax.control_flow`, the elementwise modules of `lax`.
"""

from typing import Any

import numpy as np

from xform.lax.arithmetic import abs_p, div_p, mul_p, sign_p, sub_p
from xform.lax.comparison import eq_p, gt_p, lt_p, select_n_p
from xform.lax.control_flow.scan import scan
from xform.lax.conversion import convert
from xform.lax.extremes import max_p
from xform.lax.families import constant, real_dtype
from xform.lax.linalg.matrices import row_scaled
from xform.lax.reductions import reduce_max_p
from xform.lax.shapes import broadcast_in_dim_p, full, moveaxis, reshape
from xform.lax.slicing import concatenate, slice_in_dim


def eliminate(dl: Any, d: Any, du: Any, b: Any, perturb: bool) -> Any:
    """The solution of ``A x = b`` by Gaussian elimination with row exchanges.

    With `perturb` a pivot below ``eps * max |U|`` is replaced by a number of that size, as LAPACK's xLAGTS does for
    inverse iteration; else a pivot of 0 makes the solution NaN.

    Parameters
    ----------
    dl, d, du : arrays (..., n)
        As in `tridiagonal_solve`.
    b : array (..., n, m)
    """
    *batch, n = d.shape
    if not b.size:
        return b
    axis = len(batch)
    dl, d, du, b = (moveaxis(x, axis, 0) for x in (dl, d, du, b))
    zero = full(batch, 0, d.dtype)

    def following(x: Any) -> Any:
        return concatenate([slice_in_dim(x, 1, n), full((1, *x.shape[1:]), 0, x.dtype)], 0)

    # A row's elements from the diagonal on, and its right-hand side; what is below comes to the top if it is larger.
    def forward(row: Any, below: Any) -> tuple[Any, Any]:
        p, q, y = row
        a, *rest = below
        exchanged = gt_p.bind(abs_p.bind(a), abs_p.bind(p))
        top = [_choose(exchanged, new, old) for new, old in zip((a, *rest), (p, q, zero, y), strict=True)]
        low = [_choose(exchanged, old, new) for new, old in zip(rest, (q, zero, y), strict=True)]
        factor = _quotient(_choose(exchanged, p, a), top[0])
        left = [sub_p.bind(x, mul_p.bind(factor, t)) for x, t in zip(low[:2], top[1:3], strict=True)]
        return (*left, sub_p.bind(low[2], row_scaled(factor, top[3]))), tuple(top)

    above = concatenate([slice_in_dim(du, 0, n - 1), full((1, *batch), 0, du.dtype)], 0)
    first = tuple(reshape(slice_in_dim(x, 0, 1), x.shape[1:]) for x in (d, above, b))
    rows = tuple(following(x) for x in (dl, d, above, b))
    _, (pivots, *upper, y) = scan(forward, first, rows)
    if perturb:
        pivots = _away_from_zero(pivots, upper)
    else:
        pivots = _choose(eq_p.bind(pivots, constant(pivots, 0)), full(pivots.shape, np.nan, pivots.dtype), pivots)

    def backward(later: Any, row: Any) -> tuple[Any, Any]:
        x1, x2 = later
        pivot, u1, u2, y = row
        for u, x in ((u1, x1), (u2, x2)):
            y = sub_p.bind(y, row_scaled(u, x))
        one = full(pivot.shape, 1, pivot.dtype)
        x = row_scaled(div_p.bind(one, pivot), y)
        return (x, x1), x

    start = full(b.shape[1:], 0, b.dtype)
    _, x = scan(backward, (start, start), (pivots, *upper, y), reverse=True)
    return moveaxis(x, 0, axis)


def _choose(condition: Any, x: Any, y: Any) -> Any:
    shape = x.shape
    if condition.shape != shape:  # a right-hand side: (..., m) by (...)
        condition = broadcast_in_dim_p.bind(
            condition, shape=shape, broadcast_dimensions=tuple(range(len(condition.shape)))
        )
    return select_n_p.bind(condition, y, x)


def _quotient(x: Any, y: Any) -> Any:
    """0 if y is 0, as then x is, too."""
    zero = eq_p.bind(y, constant(y, 0))
    return div_p.bind(x, _choose(zero, full(y.shape, 1, y.dtype), y))


def _away_from_zero(pivots: Any, upper: Any) -> Any:
    sizes = [abs_p.bind(x) for x in (pivots, *upper)]
    largest = max_p.bind(max_p.bind(sizes[0], sizes[1]), sizes[2])
    largest = reduce_max_p.bind(largest, axes=(0,))
    eps = float(np.finfo(real_dtype(pivots.dtype)).eps)
    least = mul_p.bind(largest, constant(largest, eps))
    least = _choose(eq_p.bind(least, constant(least, 0)), full(least.shape, eps, least.dtype), least)
    least = broadcast_in_dim_p.bind(
        least, shape=sizes[0].shape, broadcast_dimensions=tuple(range(1, len(sizes[0].shape)))
    )
    sign = sign_p.bind(pivots)
    sign = _choose(eq_p.bind(sign, constant(sign, 0)), full(sign.shape, 1, sign.dtype), sign)
    return _choose(lt_p.bind(sizes[0], least), mul_p.bind(sign, convert(least, pivots.dtype)), pivots)
