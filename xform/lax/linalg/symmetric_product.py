"""Products ``A A^T`` and the Cholesky decomposition of sums with them.

May import: `lax.linalg.matrices`, `lax.linalg.reflections`, `lax.linalg.triangular_solve`.
"""

from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import add_p, div_p, mul_p
from xform.lax.cumulative import cumsum_p
from xform.lax.families import as_operands, constant
from xform.lax.linalg.matrices import (
    as_dtype_of,
    batch_in_front,
    check_matrices,
    conjugate,
    matmul,
    row_scaled,
    scaled,
    squared_modulus,
    transposed,
    tril,
    triu,
)
from xform.lax.linalg.reflections import derive_as
from xform.lax.linalg.triangular_solve import solve, triangular_solve_p
from xform.lax.powers import rsqrt_p, sqrt_p
from xform.lax.shapes import reshape_p
from xform.lax.slicing import pad_p


@api_boundary
def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Any:
    """``alpha A A^T + beta C``.

    Parameters
    ----------
    a_matrix : array (..., m, n)
    c_matrix : array (..., m, m)
        Symmetric, of the same dtype.
    alpha, beta : floats
    symmetrize_output : bool
        Copy the lower triangle to the upper one. Else both are computed from `c_matrix` as it is.

    Returns
    -------
    Array (..., m, m)

    Examples
    --------
    >>> from xform import lax
    >>> lax.linalg.symmetric_product(np.array([[1.0], [2.0]]), np.eye(2), beta=3.0).tolist()
    [[4.0, 2.0], [2.0, 7.0]]
    """
    a, c = as_operands("linalg.symmetric_product", a_matrix, c_matrix)
    aval, beside = get_aval(a), get_aval(c)
    check_matrices("symmetric_product", aval)
    if beside.dtype != aval.dtype or beside.shape != (*aval.shape[:-1], aval.shape[-2]):
        raise ValueError(
            "lax.linalg.symmetric_product takes a_matrix (..., m, n) and c_matrix (..., m, m) of one dtype, got "
            f"a_matrix {aval.str_short()} and c_matrix {beside.str_short()}"
        )
    out = matmul(a, transposed(a))
    out = out if alpha == 1 else scaled(out, alpha)
    out = out if beta == 0 else add_p.bind(out, scaled(c, beta))
    return add_p.bind(tril(out), transposed(tril(out, -1))) if symmetrize_output else out


# cholesky_update(r, w): the upper triangular R' with ``R'^H R' = R^H R + w w^H``.


def _types(r: ShapedArray, w: ShapedArray) -> ShapedArray:
    check_matrices("cholesky_update", r, square=True)
    if w.dtype != r.dtype or w.shape != r.shape[:-1]:
        raise ValueError(
            "lax.linalg.cholesky_update takes r_matrix (..., n, n) and w_vector (..., n) of one dtype, got r_matrix "
            f"{r.str_short()} and w_vector {w.str_short()}"
        )
    return r.strong


def _host(r: Any, w: Any) -> Any:
    """As `_composed`."""
    if not r.size:
        return r
    z = triangular_solve_p.host(
        r, np.conj(w)[..., None, :], left_side=False, lower=False, transpose_a=False, conjugate_a=False,
        unit_diagonal=False,
    )[..., 0, :].conj()  # fmt: skip
    r = np.triu(r)
    after = 1 + np.cumsum(abs(z) ** 2, -1)
    before = np.concatenate([np.ones_like(after[..., :1]), after[..., :-1]], -1)
    rows = z.conj()[..., None] * r
    rest = np.zeros_like(r)
    rest[..., :-1, :] = np.cumsum(rows[..., :0:-1, :], -2)[..., ::-1, :]
    scale = np.sqrt(before * after)
    return np.sqrt(after / before)[..., None] * r + (z / scale)[..., None] * rest


def _composed(r: Any, w: Any) -> Any:
    """``R' = L^H R`` with ``L L^H = 1 + z z^H`` and ``z = R^-H w``, where L has a closed form.

    With ``t_j = 1 + |z_1|^2 + ... + |z_j|^2``: ``L_jj^2 = t_j / t_j-1``, ``L_ij = z_i z_j^* / sqrt(t_j t_j-1)``.
    """
    if not r.size:
        return r
    axis = w.ndim - 1
    z = reshape_p.bind(
        solve(r, reshape_p.bind(w, new_sizes=(*w.shape, 1)), lower=False, transpose=True), new_sizes=w.shape
    )
    r = triu(r)
    size = squared_modulus(z)
    after = add_p.bind(cumsum_p.bind(size, axis=axis, reverse=False), constant(size, 1))
    none = (0, 0, 0)
    before = pad_p.bind(after, constant(after, 1), padding_config=(*[none] * axis, (1, -1, 0)))
    rows = row_scaled(conjugate(z), r)
    rest = cumsum_p.bind(rows, axis=axis, reverse=True)
    rest = pad_p.bind(rest, constant(rest, 0), padding_config=(*[none] * axis, (-1, 1, 0), none))
    factor = mul_p.bind(z, as_dtype_of(rsqrt_p.bind(mul_p.bind(before, after)), z))
    return add_p.bind(row_scaled(sqrt_p.bind(div_p.bind(after, before)), r), row_scaled(factor, rest))


cholesky_update_p = Primitive("cholesky_update")
cholesky_update_p.abstract_eval = _types
cholesky_update_p.host = _host
cholesky_update_p.batch = batch_in_front(cholesky_update_p)
cholesky_update_p.lower = lower_as(_composed)
derive_as(cholesky_update_p, _composed)


@api_boundary
def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """From the Cholesky decomposition ``A = R^H R`` that of ``A + w w^H``, in O(n^2) operations.

    Parameters
    ----------
    r_matrix : array (..., n, n)
        Upper triangular, without zeros on its diagonal; what is below is not read.
    w_vector : array (..., n)
        Of the same dtype.

    Returns
    -------
    Array (..., n, n), upper triangular.

    Examples
    --------
    >>> from xform import lax
    >>> lax.linalg.cholesky_update(np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([4.0, 0.0])).tolist()
    [[5.0, 0.0], [0.0, 1.0]]
    """
    return cholesky_update_p.bind(*as_operands("linalg.cholesky_update", r_matrix, w_vector))
