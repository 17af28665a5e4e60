"""The polar decomposition ``x = U H`` by QR-based dynamically weighted Halley iteration.

Nakatsukasa, Bai and Gygi 2010, "Optimizing Halley's iteration for computing the matrix polar decomposition".

May import: `lax.linalg.matrices` and the decompositions beside it, `lax.control_flow`.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arithmetic import abs_p, add_p, div_p, mul_p, sub_p
from xform.lax.bitwise import and_p, not_p
from xform.lax.comparison import le_p, lt_p, select_n_p
from xform.lax.control_flow import while_loop
from xform.lax.conversion import convert
from xform.lax.dynamic_slicing import dynamic_slice_p
from xform.lax.families import constant, real_dtype
from xform.lax.linalg.eigh import eigh_p
from xform.lax.linalg.matrices import (
    adjoint,
    as_dtype_of,
    batch_in_front,
    block,
    check_matrices,
    hermitian_part,
    identity,
    matmul,
    scaled,
    squared_modulus,
)
from xform.lax.linalg.qr import qr_p
from xform.lax.linalg.quotients import middle_p, quotient, sums
from xform.lax.linalg.solve import solve
from xform.lax.powers import sqrt_p
from xform.lax.reductions import reduce_max_p, reduce_or_p, reduce_sum_p
from xform.lax.shapes import broadcast_in_dim_p, reshape_p
from xform.lax.slicing import concatenate_p

# qdwh(x): [U, H, the number of steps, whether they converged].


def _types(x: ShapedArray, *, steps: int, eps: float) -> list[ShapedArray]:
    check_matrices("qdwh", x)
    *batch, m, n = x.shape
    if m < n:
        raise ValueError(f"lax.linalg.qdwh takes matrices (..., m, n) with m >= n, got {x.str_short()}")
    h = x.update(shape=(*batch, n, n), weak_type=False)
    return [x.strong, h, *(ShapedArray(tuple(batch), np.dtype(t)) for t in (np.int32, bool))]


@functools.lru_cache(maxsize=64)
def _weights(steps: int, eps: float) -> np.ndarray:
    """Rows ``(sqrt(c), b / c, (a - b / c) / sqrt(c), whether the bound of the singular values is at 1)``.

    The smallest singular value is at least eps, after scaling; the step with a, b and c raises this bound the most.
    """
    rows, low = [], eps
    for _ in range(steps):
        d = np.cbrt(4 * (1 - low**2) / low**4)
        a = np.sqrt(1 + d) + np.sqrt(8 - 4 * d + 8 * (2 - low**2) / (low**2 * np.sqrt(1 + d))) / 2
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        low = min(low * (a + b * low**2) / (1 + c * low**2), 1.0)
        rows.append((np.sqrt(c), b / c, (a - b / c) / np.sqrt(c), float(1 - low <= 5 * eps)))
    return np.array(rows)


def _host(x: Any, *, steps: int, eps: float) -> list[Any]:
    part = real_dtype(x.dtype)
    *batch, m, n = x.shape
    iterations, active = np.zeros(batch, np.int32), np.ones(batch, bool)
    size = np.sqrt(abs(x).sum(-2).max(-1, initial=0) * abs(x).sum(-1).max(-1, initial=0))
    u = x / np.where(size == 0, part.type(1), size)[..., None, None]
    ones = np.broadcast_to(np.eye(n, dtype=x.dtype), (*batch, n, n))
    for root, ratio, factor, close in _weights(steps, eps).astype(part) if x.size else ():
        q, _ = np.linalg.qr(np.concatenate([root * u, ones], -2))
        new = ratio * u + factor * (q[..., :m, :] @ np.conj(q[..., m:, :].swapaxes(-1, -2)))
        change, norm = (np.sqrt((abs(a) ** 2).sum((-2, -1))) for a in (new - u, new))
        u = np.where(active[..., None, None], new, u)
        iterations += active
        active = active & ~((change <= part.type((4 * eps) ** (1 / 3)) * norm) & (close == 1))
        if not active.any():
            break
    h = np.conj(u.swapaxes(-1, -2)) @ x
    return [u, (h + np.conj(h.swapaxes(-1, -2))) / 2, iterations, ~active if x.size else np.ones(batch, bool)]


def _composed(x: Any, *, steps: int, eps: float) -> list[Any]:
    """The same in terms of other operations."""
    *batch, m, n = x.shape
    axes, real = tuple(range(len(batch))), real_dtype(x.dtype)
    rows, columns = len(batch), len(batch) + 1

    def full(value: Any, shape: Any = batch) -> Any:
        return broadcast_in_dim_p.bind(value, shape=tuple(shape), broadcast_dimensions=())

    def wide(v: Any, shape: Any = x.shape) -> Any:
        return broadcast_in_dim_p.bind(v, shape=tuple(shape), broadcast_dimensions=axes)

    def norm(x: Any) -> Any:
        return sqrt_p.bind(reduce_sum_p.bind(squared_modulus(x), axes=(rows, columns)))

    if not x.size:
        return [x, full(constant(x, 0), (*batch, n, n)), full(np.int32(0)), full(np.bool_(True))]
    table = _weights(steps, eps).astype(real)
    modulus = abs_p.bind(x)
    largest = [reduce_max_p.bind(reduce_sum_p.bind(modulus, axes=(axis,)), axes=(rows,)) for axis in (rows, columns)]
    size = sqrt_p.bind(mul_p.bind(*largest))
    size = select_n_p.bind(le_p.bind(size, constant(size, 0)), size, constant(size, 1))
    ones = identity((*batch, n, n), x.dtype)

    def step(carry: Any) -> Any:
        k, u, iterations, active = carry
        weights = dynamic_slice_p.bind(table, k, np.int32(0), slice_sizes=(1, 4))
        root, ratio, factor, close = (
            reshape_p.bind(block(weights, (0, 1), (i, i + 1)), new_sizes=()) for i in range(4)
        )
        stacked = concatenate_p.bind(mul_p.bind(u, as_dtype_of(root, u)), ones, dimension=rows)
        q, _ = qr_p.bind(stacked, full_matrices=False, pivoting=False)
        product = matmul(block(q, (0, m), (0, n)), adjoint(block(q, (m, m + n), (0, n))))
        new = add_p.bind(mul_p.bind(u, as_dtype_of(ratio, u)), mul_p.bind(product, as_dtype_of(factor, u)))
        done = le_p.bind(norm(sub_p.bind(new, u)), scaled(norm(new), (4 * eps) ** (1 / 3)))
        done = and_p.bind(done, full(convert(close, np.dtype(bool))))
        iterations = add_p.bind(iterations, convert(active, np.dtype(np.int32)))
        u = select_n_p.bind(wide(active), u, new)
        return add_p.bind(k, np.int32(1)), u, iterations, and_p.bind(active, not_p.bind(done))

    def goes_on(carry: Any) -> Any:
        return and_p.bind(lt_p.bind(carry[0], np.int32(steps)), reduce_or_p.bind(carry[3], axes=axes))

    start = div_p.bind(x, as_dtype_of(wide(size), x))
    _, u, iterations, active = while_loop(goes_on, step, (np.int32(0), start, full(np.int32(0)), full(np.bool_(True))))
    return [u, hermitian_part(matmul(adjoint(u), x)), iterations, not_p.bind(active)]


def _jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
    """``dU = U Y + (1 - U U^H) dA H^-1``, ``dH = K - Y H`` with ``K = U^H dA``.

    The skew Hermitian Y solves ``Y H + H Y = K - K^H``.
    """
    (x,), (t,) = primals, ts
    u, h, iterations, good = outs = qdwh_p.bind(x, **params)
    rest = [zero_of(iterations), zero_of(good)]
    if type(t) is Zero:
        return outs, [zero_of(u), zero_of(h), *rest]
    v, s = eigh_p.bind(h, lower=True, vectors=True)
    vh, k = adjoint(v), matmul(adjoint(u), t)
    side = matmul(vh, matmul(sub_p.bind(k, adjoint(k)), v))
    y = quotient(side, sums(s), middle_p.bind(h, v, s, vh), "anticommutator")
    y = matmul(v, matmul(y, vh))
    tu, th = matmul(u, y), hermitian_part(sub_p.bind(k, matmul(y, h)))
    if x.shape[-2] > x.shape[-1]:
        tu = add_p.bind(tu, adjoint(solve(h, adjoint(sub_p.bind(t, matmul(u, k))))))
    return outs, [tu, th, *rest]


qdwh_p = Primitive("qdwh", multiple_results=True)
qdwh_p.abstract_eval = _types
qdwh_p.host = _host
qdwh_p.jvp = _jvp
qdwh_p.batch = batch_in_front(qdwh_p)
qdwh_p.lower = lower_as(_composed)


@api_boundary
def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Polar decomposition ``x = U H`` by QR-based dynamically weighted Halley iteration.

    Parameters
    ----------
    x : array (..., m, n), m >= n
        Of full rank; float32, float64, complex64 or complex128.
    is_hermitian : ignored
    max_iterations : int, optional
        10 by default; 6 suffice in float64.
    eps : float, optional
        The precision wanted, and the bound of the inverse condition number; by default the dtype's.
    dynamic_shape : not implemented

    Returns
    -------
    u : array (..., m, n)
        With orthonormal columns.
    h : array (..., n, n)
        Hermitian and positive definite.
    num_iters : int32 array (...)
    is_converged : bool array (...)

    Examples
    --------
    >>> import numpy as np
    >>> from xform import lax
    >>> u, h, _, converged = lax.linalg.qdwh(np.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> [bool(x) for x in (np.allclose(u, [[0, -1], [1, 0]]), np.allclose(h, [[3, 0], [0, 2]]), converged)]
    [True, True, True]
    """
    if dynamic_shape is not None:
        raise NotImplementedError("lax.linalg.qdwh: dynamic_shape is not implemented, slice the padded array before")
    check_matrices("qdwh", get_aval(x))
    steps = 10 if max_iterations is None else operator.index(max_iterations)
    eps = float(np.finfo(get_aval(x).dtype).eps if eps is None else eps)
    return tuple(qdwh_p.bind(x, steps=steps, eps=eps))
