"""Reduction of square matrices by similarity to Hessenberg form, of Hermitian ones to tridiagonal form.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.reflections`.
"""

from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value
from xform.lax.arithmetic import add_p, real_p
from xform.lax.families import is_complex, real_dtype
from xform.lax.linalg import lapack
from xform.lax.linalg.matrices import (
    batch_in_front,
    block,
    check_matrices,
    diagonal,
    from_triangle,
    triangle_p,
)
from xform.lax.linalg.reflections import derive_as, reduced, scipy_routine
from xform.lax.shapes import rev_p

# hessenberg(x): [the Hessenberg matrix with the vectors of the reflections below its subdiagonal, their factors].


def _types(x: ShapedArray) -> list[ShapedArray]:
    check_matrices("hessenberg", x, square=True)
    *batch, n = x.shape[:-1]
    return [x.strong, ShapedArray((*batch, max(n - 1, 0)), x.dtype)]


def _host(x: Any) -> list[Any]:
    packed, taus = np.empty(x.shape, x.dtype), np.empty((*x.shape[:-2], max(x.shape[-1] - 1, 0)), x.dtype)
    if not taus.size:
        return [x, taus]
    n, gehrd = x.shape[-1], scipy_routine("gehrd", x.dtype.char)
    for i in np.ndindex(x.shape[:-2]):
        packed[i], taus[i], _ = gehrd(x[i], 0, n - 1, 32 * n)
    return [packed, taus]


def _lower(ctx: Context, x: Value) -> list[Value]:
    lapack.kernel(ctx, "gehrd", "hessenberg")
    packed, taus = ctx.outs
    if not taus.size:
        return [x, ctx.full(taus.shape, 0, taus.dtype)]
    results = [(packed, 2), (taus, 1), (ShapedArray(x.shape[:-2], lapack.INFO), 0)]
    return lapack.call(ctx, "gehrd", [(x, 2)], results, {"n": x.shape[-1]}, [(0, 0)])[:2]


hessenberg_p = Primitive("hessenberg", multiple_results=True)
hessenberg_p.abstract_eval = _types
hessenberg_p.host = _host
hessenberg_p.batch = batch_in_front(hessenberg_p)
hessenberg_p.lower = _lower
derive_as(hessenberg_p, lambda x: reduced(x, max(x.shape[-1] - 1, 0), 1))


@api_boundary
def hessenberg(a: Any) -> tuple[Any, Any]:
    """Reduction to Hessenberg form: ``a = Q H Q^H``, with nothing below the first subdiagonal of H.

    Parameters
    ----------
    a : array (..., n, n)
        float32, float64, complex64 or complex128.

    Returns
    -------
    a : array (..., n, n)
        H, and below it the vectors of the reflections whose product is Q.
    taus : array (..., n - 1)
        Their factors. Q without its first row and column, those of the identity, is
        ``householder_product(a[..., 1:, :-1], taus)``.

    Examples
    --------
    >>> from xform import lax
    >>> h, taus = lax.linalg.hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> h.tolist(), taus.tolist()
    ([[1.0, 2.0], [3.0, 4.0]], [0.0])
    """
    return tuple(hessenberg_p.bind(a))


# tridiagonal(x): [x with the tridiagonal matrix and the vectors of the reflections in one triangle, the diagonal, the
# one beside it, the factors of the reflections].


def _tridiagonal_types(x: ShapedArray, *, lower: bool) -> list[ShapedArray]:
    check_matrices("tridiagonal", x, square=True)
    *batch, n = x.shape[:-1]
    if not n:
        raise ValueError(f"lax.linalg.tridiagonal takes matrices of at least one row, got {x.str_short()}")
    part = real_dtype(x.dtype)
    return [
        x.strong,
        ShapedArray((*batch, n), part),
        ShapedArray((*batch, n - 1), part),
        ShapedArray((*batch, n - 1), x.dtype),
    ]


def _tridiagonal_host(x: Any, *, lower: bool) -> list[Any]:
    outs = [np.empty(a.shape, a.dtype) for a in _tridiagonal_types(ShapedArray(x.shape, x.dtype), lower=lower)]
    trd = scipy_routine("hetrd" if is_complex(x) else "sytrd", x.dtype.char)
    for i in np.ndindex(x.shape[:-2]):
        for out, o in zip(outs, trd(x[i], int(lower), 32 * x.shape[-1]), strict=False):
            out[i] = o
    return outs


def _tridiagonal_lower(ctx: Context, x: Value, *, lower: bool) -> list[Value]:
    lapack.kernel(ctx, "sytrd", "tridiagonal")
    packed, d, e, taus = ctx.outs
    if not x.aval.size:
        return [x, *(ctx.full(a.shape, 0, a.dtype) for a in (d, e, taus))]
    results = [(packed, 2), (d, 1), (e, 1), (taus, 1), (ShapedArray(x.shape[:-2], lapack.INFO), 0)]
    return lapack.call(ctx, "sytrd", [(x, 2)], results, {"lower": lower}, [(0, 0)])[:4]


def _tridiagonal(x: Any, *, lower: bool) -> list[Any]:
    """The same in terms of other operations."""
    n, last = x.shape[-1], x.ndim - 1
    full = from_triangle(x, lower)

    def flipped(x: Any) -> Any:
        """Both axes the other way round, which turns an upper triangle into a lower one."""
        return x if lower else rev_p.bind(x, dimensions=(last - 1, last))

    packed, taus = reduced(flipped(full), n - 1, 1)
    packed, taus = flipped(packed), taus if lower else rev_p.bind(taus, dimensions=(last - 1,))
    rows, columns = ((1, n), (0, n - 1)) if lower else ((0, n - 1), (1, n))
    d, e = diagonal(packed), diagonal(block(packed, rows, columns))
    d, e = (real_p.bind(d), real_p.bind(e)) if is_complex(x) else (d, e)
    inside = triangle_p.bind(packed, k=0, lower=lower)
    outside = triangle_p.bind(x, k=1 if lower else -1, lower=not lower)
    return [add_p.bind(inside, outside), d, e, taus]


tridiagonal_p = Primitive("tridiagonal", multiple_results=True)
tridiagonal_p.abstract_eval = _tridiagonal_types
tridiagonal_p.host = _tridiagonal_host
tridiagonal_p.batch = batch_in_front(tridiagonal_p)
tridiagonal_p.lower = _tridiagonal_lower
derive_as(tridiagonal_p, _tridiagonal)


@api_boundary
def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """Reduction of Hermitian matrices to real tridiagonal form.

    Parameters
    ----------
    a : array (..., n, n)
        float32, float64, complex64 or complex128; n is at least 1.
    lower : bool
        Which triangle is read.

    Returns
    -------
    a : array (..., n, n)
        In the triangle the tridiagonal matrix, and beyond it the vectors of the reflections; the rest is as before.
    d : real array (..., n)
        The diagonal.
    e : real array (..., n - 1)
        The diagonal beside it.
    taus : array (..., n - 1)
        Factors of the reflections.

    Examples
    --------
    >>> from xform import lax
    >>> _, d, e, _ = lax.linalg.tridiagonal(np.array([[1.0, 2.0], [2.0, 4.0]]))
    >>> d.tolist(), e.tolist()
    ([1.0, 4.0], [2.0])
    """
    check_matrices("tridiagonal", get_aval(a), square=True)
    return tuple(tridiagonal_p.bind(a, lower=bool(lower)))
