"""Eigenvalues and eigenvectors of Hermitian matrices: ``x = V diag(w) V^H``.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.quotients`, `lax.linalg.small`.
"""

import enum
from collections.abc import Sequence
from typing import Any

from numpy.linalg import _umath_linalg as umath

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arithmetic import real_p
from xform.lax.families import is_complex, real_dtype
from xform.lax.linalg import lapack, small
from xform.lax.linalg.matrices import (
    adjoint,
    batch_in_front,
    block,
    check_matrices,
    check_subset,
    diagonal,
    from_triangle,
    hermitian_part,
    matmul,
    on_finite,
)
from xform.lax.linalg.quotients import differences, middle_p, quotient
from xform.lax.linalg.unrolled import unrolled
from xform.lax.slicing import slice_in_dim


class EighImplementation(enum.Enum):
    """Algorithms that JAX offers on accelerators; on the CPU it is always divide and conquer (LAPACK's syevd)."""

    QR = "QR"
    JACOBI = "Jacobi"
    QDWH = "QDWH"


# eigh(x): [V, w], or [w] without vectors. Only the triangle that `lower` names is read.


def _types(x: ShapedArray, *, lower: bool, vectors: bool) -> list[ShapedArray]:
    check_matrices("eigh", x, square=True)
    values = ShapedArray(x.shape[:-1], real_dtype(x.dtype))
    return [x.strong, values] if vectors else [values]


_ROUTINES = {
    (True, True): umath.eigh_lo,
    (False, True): umath.eigh_up,
    (True, False): umath.eigvalsh_lo,
    (False, False): umath.eigvalsh_up,
}


def _host(x: Any, *, lower: bool, vectors: bool) -> list[Any]:
    return on_finite(_ROUTINES[lower, vectors], x)[::-1]


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, lower: bool, vectors: bool) -> Any:
    """``dw = diag(M)``, ``dV = V (M / (w_j - w_i))`` with ``M = V^H dA V`` (Giles 2008).

    The component of dV along V, a phase, is taken as 0. See `lax.linalg.quotients` for equal eigenvalues.
    """
    (x,), (t,) = primals, ts
    if type(t) is Zero:
        outs = eigh_p.bind(x, lower=lower, vectors=vectors)
        return outs, [zero_of(o) for o in outs]
    v, w = eigh_p.bind(x, lower=lower, vectors=True)
    vh = adjoint(v)
    m = matmul(vh, matmul(from_triangle(t, lower), v))

    def real_diagonal(m: Any) -> Any:
        v = diagonal(m)
        return real_p.bind(v) if is_complex(v) else v

    if not vectors:
        return [w], [real_diagonal(m)]
    middle, gaps = middle_p.bind(from_triangle(x, lower), v, w, vh), differences(w)
    values = quotient(m, gaps, middle, "values")
    return [v, w], [matmul(v, quotient(m, gaps, middle, "rotation")), real_diagonal(values)]


def _lower(ctx: Context, x: Value, *, lower: bool, vectors: bool) -> list[Value]:
    lapack.kernel(ctx, "syevd", "eigh")
    if not x.aval.size:
        return [ctx.full(a.shape, 0, a.dtype) for a in ctx.outs]
    results = [(x.aval, 2), (ctx.outs[-1], 1), (ShapedArray(x.shape[:-2], lapack.INFO), 0)]
    good, safe = lapack.finite(ctx, x)
    options = {"lower": lower, "vectors": vectors}
    v, w, info = lapack.call(ctx, "syevd", [(safe, 2)], results, options, [(0, 0)])
    return lapack.where(ctx, lapack.converged(ctx, info, good), [v, w] if vectors else [w])


eigh_p = Primitive("eigh", multiple_results=True)
eigh_p.abstract_eval = _types
eigh_p.host = _host
eigh_p.jvp = _jvp
eigh_p.batch = batch_in_front(eigh_p)
eigh_p.lower = _lower
unrolled(eigh_p, small.eigh)


@api_boundary
def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: Any = None,
) -> tuple[Any, Any]:
    """Eigenvectors and eigenvalues of Hermitian matrices.

    Parameters
    ----------
    x : array (..., n, n)
        float32, float64, complex64 or complex128.
    lower : bool
        Which triangle is read, if not `symmetrize_input`.
    symmetrize_input : bool
        Use ``(x + x^H) / 2``.
    subset_by_index : (start, end), optional
        Return only the eigenvalues with these numbers.
    sort_eigenvalues, implementation : ignored
        They are always sorted.

    Returns
    -------
    v : array (..., n, d)
        Column i is the unit vector of eigenvalue i. Its sign (phase) is arbitrary.
    w : real array (..., d)
        Ascending. Both are NaN for matrices that are not finite.

    Derivatives of vectors exist where eigenvalues are distinct. At equal ones, reverse mode gives the derivative of
    what depends on the space of their vectors only (a projector on it, another vector), and NaN for the rest; forward
    mode takes a rotation inside the space as 0. The derivative of a sum over equal eigenvalues exists, too. (Without
    vectors, as from `xform.numpy.linalg.eigvalsh`, a single one of them has a subgradient.)

    Examples
    --------
    >>> import numpy as np
    >>> from xform import lax
    >>> v, w = lax.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> w.tolist()
    [1.0, 3.0]
    """
    check_matrices("eigh", get_aval(x), square=True)
    x = hermitian_part(x) if symmetrize_input else x
    v, w = eigh_p.bind(x, lower=bool(lower), vectors=True)
    if subset_by_index is None:
        return v, w
    start, end = check_subset("eigh", subset_by_index, w.shape[-1])
    return block(v, (0, v.shape[-2]), (start, end)), slice_in_dim(w, start, end, axis=-1)
