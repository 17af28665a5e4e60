"""The LU decomposition with row exchanges: ``x[permutation] = L U``.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.triangular_solve`, `lax.linalg.small`,
`lax.control_flow`.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.lowering import Context, Value, lower_as
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arithmetic import add_p, sub_p
from xform.lax.control_flow import fori_loop
from xform.lax.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, gather_p
from xform.lax.linalg import lapack, small
from xform.lax.linalg.matrices import (
    batch_in_front,
    block,
    check_matrices,
    identity,
    matmul,
    resized,
    tril,
    triu,
)
from xform.lax.linalg.triangular_solve import solve
from xform.lax.linalg.unrolled import unrolled
from xform.lax.scatter import ScatterDimensionNumbers, scatter
from xform.lax.shapes import broadcast_in_dim_p, iota, iota_p, reshape_p

# The permutation that a sequence of row exchanges amounts to.


def _permutation_types(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    if pivots.dtype != np.int32 or not pivots.ndim or pivots.shape[-1] > permutation_size:
        raise ValueError(
            "lax.linalg.lu_pivots_to_permutation takes int32 pivots (..., k) with k <= permutation_size = "
            f"{permutation_size}, got {pivots.str_short()}"
        )
    return pivots.update(shape=(*pivots.shape[:-1], permutation_size))


def _permutation_host(pivots: Any, *, permutation_size: int) -> Any:
    *batch, k = pivots.shape
    if not batch:
        order = list(range(permutation_size))
        for i, target in enumerate(pivots.tolist()):
            order[i], order[target] = order[target], order[i]
        return np.array(order, np.int32)
    count = math.prod(batch)
    out = np.empty((count, permutation_size), np.int32)
    out[:] = np.arange(permutation_size)
    rows = np.arange(count)
    for i, target in enumerate(pivots.reshape(count, k).T):
        out[rows, target], out[:, i] = out[:, i].copy(), out[rows, target]
    return out.reshape(*batch, permutation_size)


def _permutation(pivots: Any, *, permutation_size: int) -> Any:
    """The same in terms of other operations, to be lowered."""
    *batch, k = pivots.shape
    count = math.prod(batch)

    def exchange(i: Any, carry: Any) -> Any:
        order, pivots = carry
        target = reshape_p.bind(dynamic_slice_p.bind(pivots, i, slice_sizes=(1,)), new_sizes=())
        here, there = (dynamic_slice_p.bind(order, j, slice_sizes=(1,)) for j in (i, target))
        order = dynamic_update_slice_p.bind(order, here, target)
        return dynamic_update_slice_p.bind(order, there, i), pivots

    def single(pivots: Any) -> list[Any]:
        return [fori_loop(np.int32(0), np.int32(k), exchange, (iota(np.int32, permutation_size), pivots))[0]]

    if not count or not k:
        order = iota(np.int32, permutation_size)
        return broadcast_in_dim_p.bind(order, shape=(*batch, permutation_size), broadcast_dimensions=(len(batch),))
    flat = reshape_p.bind(pivots, new_sizes=(count, k))
    (out,), (dim,) = batching.batch(single, [flat], [0], count, None)
    return reshape_p.bind(batching.move_to(out, dim, count), new_sizes=(*batch, permutation_size))


lu_pivots_to_permutation_p = Primitive("lu_pivots_to_permutation")
lu_pivots_to_permutation_p.abstract_eval = _permutation_types
lu_pivots_to_permutation_p.host = _permutation_host
lu_pivots_to_permutation_p.batch = batch_in_front(lu_pivots_to_permutation_p)
lu_pivots_to_permutation_p.lower = lower_as(_permutation)


@api_boundary
def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation that exchanges row i with row ``pivots[i]``, for i = 0, 1, ...

    Parameters
    ----------
    pivots : int32 array (..., k)
    permutation_size : int
        The number of rows, at least k.

    Returns
    -------
    int32 array (..., permutation_size)

    Examples
    --------
    >>> from xform import lax
    >>> lax.linalg.lu_pivots_to_permutation(np.array([2, 2], np.int32), 3).tolist()
    [2, 0, 1]
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=int(permutation_size))


def permuted(x: Any, permutation: Any) -> Any:
    """The rows of matrices in another order."""
    *batch, m, n = x.shape
    axes = tuple(range(len(batch)))
    rows = len(batch)
    numbers = GatherDimensionNumbers((rows + 1,), (rows,), (rows,), axes, axes)
    return gather_p.bind(
        x,
        reshape_p.bind(permutation, new_sizes=(*batch, m, 1)),
        dimension_numbers=numbers,
        slice_sizes=(*(min(1, d) for d in batch), min(1, m), n),
        indices_are_sorted=False,
        unique_indices=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def inverse_permutation(permutation: Any) -> Any:
    """The permutation that undoes another one."""
    shape = permutation.shape
    axes, last = tuple(range(len(shape) - 1)), len(shape) - 1
    return scatter(
        broadcast_in_dim_p.bind(np.int32(0), shape=shape, broadcast_dimensions=()),
        reshape_p.bind(permutation, new_sizes=(*shape, 1)),
        iota_p.bind(dtype=np.dtype(np.int32), shape=shape, dimension=last),
        ScatterDimensionNumbers((), (last,), (last,), axes, axes),
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


# lu(x): L and U in one matrix, the row exchanges (pivots), and the permutation that they amount to.


def _types(x: ShapedArray) -> list[ShapedArray]:
    check_matrices("lu", x)
    *batch, m, n = x.shape
    return [x.strong, ShapedArray((*batch, min(m, n)), np.int32), ShapedArray((*batch, m), np.int32)]


@functools.cache
def _getrf(letter: str) -> Any:
    from scipy.linalg import lapack

    return getattr(lapack, {"f": "sgetrf", "d": "dgetrf", "F": "cgetrf", "D": "zgetrf"}[letter])


def _host(x: Any) -> list[Any]:
    *batch, m, n = x.shape
    pivots = np.empty((*batch, min(m, n)), np.int32)
    if not x.size:
        out = x
    elif not batch:
        out, pivots, _ = _getrf(x.dtype.char)(x)
    else:
        out, getrf = np.empty(x.shape, x.dtype), _getrf(x.dtype.char)
        for i in np.ndindex(*batch):
            out[i], pivots[i], _ = getrf(x[i])
    return [out, pivots, _permutation_host(pivots, permutation_size=m)]


def _jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    """``dL = L stril(Y)``, ``dU = triu(Y) U`` with ``Y = L^-1 P dA U^-1`` (Giles 2008; de Hoog et al. 2011).

    For matrices that are not square L and U are completed to square ones with columns and rows of the identity.
    """
    (x,), (t,) = primals, ts
    lu, pivots, permutation = lu_p.bind(x)
    zeros = [zero_of(pivots), zero_of(permutation)]
    if type(t) is Zero:
        return [lu, pivots, permutation], [zero_of(lu), *zeros]
    *batch, m, n = lu.shape
    k = min(m, n)
    lower = resized(block(lu, (0, m), (0, k)), m, m)
    upper = triu(resized(block(lu, (0, k), (0, n)), n, n))
    if k < n:
        ones = identity((*batch, n, n), lu.dtype)
        upper = add_p.bind(upper, sub_p.bind(ones, resized(block(ones, (0, k), (0, k)), n, n)))
    y = solve(lower, permuted(t, permutation), unit=True)
    y = solve(upper, y, left_side=False, lower=False)
    below = tril(y, -1)
    t_lu = add_p.bind(add_p.bind(matmul(tril(lower, -1), below), below), matmul(triu(y), upper))
    return [lu, pivots, permutation], [t_lu, *zeros]


def _lower(ctx: Context, x: Value) -> list[Value]:
    lapack.kernel(ctx, "getrf", "lu")
    lu, pivots, permutation = ctx.outs
    if x.aval.size:
        info = ShapedArray(lu.shape[:-2], lapack.INFO)
        x, counted, _ = lapack.call(ctx, "getrf", [(x, 2)], [(lu, 2), (pivots, 1), (info, 0)], in_place=[(0, 0)])
        order = ctx.op("subtract", [counted, ctx.full(pivots.shape, 1, np.int32)], pivots)
    else:
        order = ctx.full(pivots.shape, 0, np.int32)
    return [x, order, lu_pivots_to_permutation_p.lower(ctx, order, permutation_size=permutation.shape[-1])]


lu_p = Primitive("lu", multiple_results=True)
lu_p.abstract_eval = _types
lu_p.host = _host
lu_p.jvp = _jvp
lu_p.batch = batch_in_front(lu_p)
lu_p.lower = _lower
unrolled(lu_p, small.lu)


@api_boundary
def lu(x: Any) -> tuple[Any, Any, Any]:
    """LU decomposition with row exchanges: ``x[permutation] = L U``.

    Parameters
    ----------
    x : array (..., m, n)
        float32, float64, complex64 or complex128.

    Returns
    -------
    lu : array (..., m, n)
        U on and above the diagonal; below it L, whose diagonal of ones is left out.
    pivots : int32 array (..., min(m, n))
        Row i was exchanged with row ``pivots[i]``, for i = 0, 1, ...
    permutation : int32 array (..., m)
        The order of rows that the exchanges amount to.

    Examples
    --------
    >>> from xform import lax
    >>> lu, pivots, permutation = lax.linalg.lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> lu.tolist(), pivots.tolist(), permutation.tolist()
    ([[4.0, 4.0], [0.25, 1.0]], [1, 1], [1, 0])
    """
    return tuple(lu_p.bind(x))
