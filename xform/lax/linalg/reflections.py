"""Products of Householder reflections ``H = I - tau v v^H``, and the reduction of matrices by them.

LAPACK stores the vector of reflection j below the diagonal of column j (or below the subdiagonal), without its leading
1, and the factors tau apart. Such results are functions of the matrix with as many derivatives as one likes: those of
the algorithm, written out here (Golub and Van Loan 2013, "Matrix Computations", sections 5.1 and 7.4).

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.triangular_solve`, `lax.control_flow`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.jaxpr import eval_jaxpr
from xform.core.trace import Primitive
from xform.interpreters.forward import jvp
from xform.interpreters.lowering import Context, Value
from xform.interpreters.reverse import linearize
from xform.interpreters.tangents import is_zero, zero_of
from xform.lax.arithmetic import add_p, div_p, mul_p, neg_p, real_p, sub_p
from xform.lax.bitwise import and_p
from xform.lax.comparison import eq_p, gt_p, lt_p, select_n_p
from xform.lax.control_flow import fori_loop
from xform.lax.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from xform.lax.families import constant, is_complex
from xform.lax.linalg import lapack
from xform.lax.linalg.matrices import (
    adjoint,
    as_dtype_of,
    batch_in_front,
    block,
    check_matrices,
    conjugate,
    identity,
    matmul,
    row_scaled,
    squared_modulus,
    tril,
    triu,
)
from xform.lax.linalg.triangular_solve import solve
from xform.lax.powers import sqrt_p
from xform.lax.reductions import reduce_sum_p
from xform.lax.shapes import broadcast_in_dim_p, iota_p, reshape_p


@functools.cache
def scipy_routine(routine: str, letter: str) -> Any:
    """SciPy's wrapper of a LAPACK routine, for a dtype's letter."""
    from scipy.linalg import lapack

    return lapack.get_lapack_funcs((routine,), dtype=letter)[0]


def derive_as(p: Primitive, function: Callable[..., Any]) -> None:
    """Give a primitive the derivatives of a function that computes the same in terms of other operations."""

    def rule(derive: Callable[..., Any]) -> Callable[..., Any]:
        def derived(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
            def flat(*args: Any) -> list[Any]:
                out = function(*args, **params)
                return list(out) if p.multiple_results else [out]

            out = p.bind(*primals, **params)
            if all(map(is_zero, ts)):
                tangents = [zero_of(o) for o in (out if p.multiple_results else [out])]
            else:
                tangents = derive(flat, primals, ts)
            return out, tangents if p.multiple_results else tangents[0]

        return derived

    p.jvp = rule(lambda flat, primals, ts: jvp(flat, primals, ts)[1])
    p.linearize = rule(_linearized)


def _linearized(function: Callable[..., Any], primals: Sequence[Any], ts: Sequence[Any]) -> list[Any]:
    """Tangents of a function's results, by its linearization, which a loop's derivative needs in reverse mode."""
    found = linearize(function, primals, [not is_zero(t) for t in ts])
    outs = iter(eval_jaxpr(found.jaxpr, found.consts, *[t for t in ts if not is_zero(t)]))
    return [next(outs) if nz else zero_of(o) for o, nz in zip(found.outs, found.nonzero_out, strict=True)]


# householder_product(a, taus): the product of the reflections whose vectors stand below the diagonal of `a`.


def _product_types(a: ShapedArray, taus: ShapedArray) -> ShapedArray:
    check_matrices("householder_product", a)
    *batch, m, n = a.shape
    if taus.dtype != a.dtype or taus.shape[:-1] != tuple(batch) or not taus.shape[-1] <= n <= m:
        raise ValueError(
            "lax.linalg.householder_product takes a (..., m, n) and taus (..., k) of one dtype, with k <= n <= m, "
            f"got a {a.str_short()} and taus {taus.str_short()}"
        )
    return a.strong


def product_host(a: Any, taus: Any) -> Any:
    """Host rule of `householder_product`."""
    *batch, _, n = a.shape
    if not a.size:
        return a
    orgqr = scipy_routine("ungqr" if is_complex(a) else "orgqr", a.dtype.char)
    out = np.empty(a.shape, a.dtype)
    for i in np.ndindex(*batch):
        out[i] = orgqr(a[i], taus[i], lwork=32 * n)[0]
    return out


def _product_lower(ctx: Context, a: Value, taus: Value) -> Value:
    lapack.kernel(ctx, "orgqr", "householder_product")
    return lapack.call(ctx, "orgqr", [(a, 2), (taus, 1)], [(a.aval, 2)], in_place=[(0, 0)])[0] if a.aval.size else a


def _factors(a: Any, taus: Any) -> tuple[Any, Any]:
    """V and T with ``H_1 ... H_k = I - V T V^H`` (Schreiber and Van Loan 1989): ``T = (1 + D S)^-1 D``.

    D has the factors tau on its diagonal, S is the part of ``V^H V`` above its diagonal.
    """
    *batch, m, _ = a.shape
    k = taus.shape[-1]
    v = add_p.bind(tril(block(a, (0, m), (0, k)), -1), identity((*batch, m, k), a.dtype))
    s = triu(matmul(adjoint(v), v), 1)
    ones = identity((*batch, k, k), a.dtype)
    return v, solve(row_scaled(taus, s), row_scaled(taus, ones), lower=False, unit=True)


def _product(a: Any, taus: Any) -> Any:
    """The same in terms of other operations."""
    v, t = _factors(a, taus)
    top = block(v, (0, a.shape[-1]), (0, v.shape[-1]))
    return sub_p.bind(identity(a.shape, a.dtype), matmul(v, matmul(t, adjoint(top))))


householder_product_p = Primitive("householder_product")
householder_product_p.abstract_eval = _product_types
householder_product_p.host = product_host
householder_product_p.batch = batch_in_front(householder_product_p)
householder_product_p.lower = _product_lower
derive_as(householder_product_p, _product)


@api_boundary
def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of a product of elementary reflections ``I - tau v v^H``, as LAPACK's geqrf stores them.

    Parameters
    ----------
    a : array (..., m, n), n <= m
        Column i holds the vector of reflection i below the diagonal; it is 1 on the diagonal and 0 above.
    taus : array (..., k), k <= n
        The factors tau.

    Returns
    -------
    Array (..., m, n) with orthonormal columns.

    Examples
    --------
    >>> from xform import lax
    >>> lax.linalg.householder_product(np.array([[0.0], [1.0]]), np.array([1.0])).tolist()
    [[0.0], [-1.0]]
    """
    return householder_product_p.bind(a, taus)


# ormqr(a, taus, c): the same product, square, times a matrix.


def _ormqr_types(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool) -> ShapedArray:
    check_matrices("ormqr", a)
    *batch, m, n = a.shape
    good = taus.dtype == c.dtype == a.dtype and taus.shape[:-1] == c.shape[:-2] == tuple(batch) and c.ndim == a.ndim
    if not good or not taus.shape[-1] <= min(m, n) or c.shape[-2 if left else -1] != m:
        wanted = "(..., m, p)" if left else "(..., p, m)"
        raise ValueError(
            f"lax.linalg.ormqr with left={left} takes a (..., m, n), taus (..., k) and c {wanted} of one dtype and "
            f"with equal batch axes, k <= min(m, n), got a {a.str_short()}, taus {taus.str_short()}, c {c.str_short()}"
        )
    return c.strong


def _ormqr_host(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    k = taus.shape[-1]
    if not c.size or not k:
        return c
    routine = scipy_routine("unmqr" if is_complex(a) else "ormqr", a.dtype.char)
    flags = "LR"[not left], "N" if not transpose else "C" if is_complex(a) else "T"
    out = np.empty(c.shape, c.dtype)
    for i in np.ndindex(*a.shape[:-2]):
        out[i] = routine(*flags, a[i][:, :k], taus[i], c[i], 32 * max(c.shape[-2:]))[0]
    return out


def _ormqr_lower(ctx: Context, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Value:
    lapack.kernel(ctx, "ormqr")
    if not c.aval.size or not taus.shape[-1]:
        return c
    vectors = lapack.resized(ctx, a, a.shape[-2], taus.shape[-1])
    options = {"left": left, "transpose": transpose}
    return lapack.call(ctx, "ormqr", [(vectors, 2), (taus, 1), (c, 2)], [(c.aval, 2)], options, [(2, 0)])[0]


def _ormqr(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """The same in terms of other operations."""
    v, t = _factors(a, taus)
    t, vh = (adjoint(t) if transpose else t), adjoint(v)
    return sub_p.bind(c, matmul(v, matmul(t, matmul(vh, c))) if left else matmul(matmul(matmul(c, v), t), vh))


ormqr_p = Primitive("ormqr")
ormqr_p.abstract_eval = _ormqr_types
ormqr_p.host = _ormqr_host
ormqr_p.batch = batch_in_front(ormqr_p)
ormqr_p.lower = _ormqr_lower
derive_as(ormqr_p, _ormqr)


@api_boundary
def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """``Q c`` or ``c Q`` with the square, orthogonal Q of a QR decomposition, which is not formed.

    Parameters
    ----------
    a : array (..., m, n)
        Vectors of reflections below the diagonal, as from ``xform.numpy.linalg.qr(mode="raw")``, transposed.
    taus : array (..., k), k <= min(m, n)
        Factors of the reflections.
    c : array (..., m, p), or (..., p, m) if not `left`
    left : bool
        On which side of `c` Q stands.
    transpose : bool
        Use ``Q^H``.

    Returns
    -------
    Array of the shape of `c`.

    Examples
    --------
    >>> from xform import lax
    >>> lax.linalg.ormqr(np.array([[0.0], [1.0]]), np.array([1.0]), np.eye(2)).tolist()
    [[0.0, -1.0], [-1.0, 0.0]]
    """
    return ormqr_p.bind(a, taus, c, left=bool(left), transpose=bool(transpose))


# The reduction of a matrix


def reduced(x: Any, count: int, below: int) -> tuple[Any, Any]:
    """Eliminate what is below diagonal number -`below` by reflections of the rows, `count` of them.

    With ``below = 1`` each reflection is applied to the columns as well, a similarity transformation. Returns the
    matrix with the vectors of the reflections in place of the zeros, and their factors.
    """
    *batch, m, n = x.shape
    axes = tuple(range(len(batch)))
    start = [np.int32(0)] * len(batch)
    int32 = np.dtype(np.int32)
    taus = broadcast_in_dim_p.bind(constant(x, 0), shape=(*batch, count), broadcast_dimensions=())
    if not count:
        return x, taus
    rows = iota_p.bind(dtype=int32, shape=(*batch, m, 1), dimension=len(batch))
    columns = iota_p.bind(dtype=int32, shape=(*batch, 1, n), dimension=len(batch) + 1)

    def scalar(x: Any) -> Any:
        return broadcast_in_dim_p.bind(x, shape=(*batch, 1, 1), broadcast_dimensions=axes)

    def spread(x: Any, shape: Sequence[int]) -> Any:
        return broadcast_in_dim_p.bind(x, shape=tuple(shape), broadcast_dimensions=tuple(range(x.ndim)))

    def pick(x: Any, where: Any) -> Any:
        return reduce_sum_p.bind(select_n_p.bind(where, constant(x, 0), x), axes=(x.ndim - 2, x.ndim - 1))

    def step(j: Any, carry: Any) -> Any:
        x, taus = carry
        pivot = add_p.bind(j, np.int32(below))
        column = dynamic_slice_p.bind(x, *start, np.int32(0), j, slice_sizes=(*batch, m, 1))
        at, under = eq_p.bind(rows, pivot), gt_p.bind(rows, pivot)
        alpha = pick(column, at)
        real = real_p.bind(alpha) if is_complex(x) else alpha
        rest = pick(squared_modulus(column), under)
        trivial = eq_p.bind(rest, constant(rest, 0))
        if is_complex(x):
            trivial = and_p.bind(trivial, eq_p.bind(alpha, as_dtype_of(real, alpha)))
        size = sqrt_p.bind(select_n_p.bind(trivial, add_p.bind(squared_modulus(alpha), rest), constant(rest, 1)))
        beta = as_dtype_of(select_n_p.bind(lt_p.bind(real, constant(real, 0)), neg_p.bind(size), size), alpha)
        tau = select_n_p.bind(trivial, div_p.bind(sub_p.bind(beta, alpha), beta), constant(x, 0))
        scale = select_n_p.bind(trivial, div_p.bind(constant(x, 1), sub_p.bind(alpha, beta)), constant(x, 0))
        beta = select_n_p.bind(trivial, beta, alpha)
        v = mul_p.bind(column, spread(scalar(scale), column.shape))
        v = select_n_p.bind(under, constant(x, 0), v)
        stored = select_n_p.bind(at, select_n_p.bind(under, column, v), spread(scalar(beta), column.shape))
        v = select_n_p.bind(at, v, constant(x, 1))
        active = spread(gt_p.bind(columns, j), (*batch, m, n))
        x = dynamic_update_slice_p.bind(x, stored, *start, np.int32(0), j)
        work = select_n_p.bind(active, constant(x, 0), x)
        turn = matmul(v, matmul(adjoint(v), work))
        x = sub_p.bind(x, mul_p.bind(turn, spread(scalar(conjugate(tau)), turn.shape)))
        if below:
            work = select_n_p.bind(active, constant(x, 0), x)
            turn = matmul(matmul(work, v), adjoint(v))
            x = sub_p.bind(x, mul_p.bind(turn, spread(scalar(tau), turn.shape)))
        taus = dynamic_update_slice_p.bind(taus, reshape_p.bind(tau, new_sizes=(*batch, 1)), *start, j)
        return x, taus

    return fori_loop(np.int32(0), np.int32(count), step, (x, taus))


# geqrf(x): [R with the vectors of the reflections below its diagonal, their factors], what householder_product takes.


def _geqrf_types(x: ShapedArray) -> list[ShapedArray]:
    check_matrices("geqrf", x)
    return [x.strong, ShapedArray((*x.shape[:-2], min(x.shape[-2:])), x.dtype)]


def _geqrf_host(x: Any) -> list[Any]:
    packed, taus = np.linalg.qr(x, "raw")
    return [packed.swapaxes(-1, -2), taus]


def _geqrf_lower(ctx: Context, x: Value) -> list[Value]:
    lapack.kernel(ctx, "geqrf")
    packed, taus = ctx.outs
    if not x.aval.size:
        return [x, ctx.full(taus.shape, 0, taus.dtype)]
    return lapack.call(ctx, "geqrf", [(x, 2)], [(packed, 2), (taus, 1)], in_place=[(0, 0)])


geqrf_p = Primitive("geqrf", multiple_results=True)
geqrf_p.abstract_eval = _geqrf_types
geqrf_p.host = _geqrf_host
geqrf_p.batch = batch_in_front(geqrf_p)
geqrf_p.lower = _geqrf_lower
derive_as(geqrf_p, lambda x: reduced(x, min(x.shape[-2:]), 0))
