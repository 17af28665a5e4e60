"""Linear equations with tridiagonal matrices.

May import: `lax.linalg.matrices`, `lax.linalg.lapack`, `lax.linalg.reflections`, `lax.linalg.elimination`,
`lax.solves`.
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
from xform.interpreters.lowering import Context, Value, lower_as
from xform.interpreters.tangents import Zero, add_tangents, is_linear, zero_of
from xform.lax.arithmetic import add_p, neg_p
from xform.lax.families import as_operands, constant
from xform.lax.linalg import lapack
from xform.lax.linalg.elimination import eliminate
from xform.lax.linalg.matrices import DTYPES, batch_in_front, row_scaled
from xform.lax.linalg.reflections import scipy_routine
from xform.lax.shapes import reshape_p
from xform.lax.slicing import pad_p
from xform.lax.solves import custom_linear_solve


def _types(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray) -> ShapedArray:
    if b.dtype not in DTYPES or any(x.dtype != b.dtype for x in (dl, d, du)):
        raise TypeError(
            "lax.linalg.tridiagonal_solve takes float32, float64, complex64 or complex128, one for all operands, got "
            f"{_shown(dl, d, du, b)}"
        )
    if not d.ndim or b.ndim != d.ndim + 1 or not dl.shape == d.shape == du.shape == b.shape[:-1]:
        raise ValueError(
            "lax.linalg.tridiagonal_solve takes dl, d and du of one shape (..., n) and b (..., n, m), got "
            f"{_shown(dl, d, du, b)}"
        )
    return b.strong


def _shown(*operands: ShapedArray) -> str:
    return ", ".join(f"{name} {x.str_short()}" for name, x in zip(("dl", "d", "du", "b"), operands, strict=True))


def _host(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """All matrices of the batch are one large tridiagonal matrix, whose parts are not connected."""
    if not b.size:
        return b
    *_, n, m = b.shape
    count = math.prod(d.shape[:-1])
    below, above = np.array(dl), np.array(du)
    below[..., 0], above[..., -1] = 0, 0
    gtsv = scipy_routine("gtsv", b.dtype.char)
    *_, x, info = _solved(gtsv, below.reshape(-1), d.reshape(-1), above.reshape(-1), b.reshape(count * n, m))
    if info == 0:
        return x.reshape(b.shape)
    out = np.empty((count, n, m), b.dtype)
    rows = (a.reshape(count, n) for a in (below, d, above))
    for i, row in enumerate(zip(*rows, b.reshape(count, n, m), strict=True)):
        *_, x, info = _solved(gtsv, *row)
        out[i] = x if info == 0 else np.nan
    return out.reshape(b.shape)


def _solved(gtsv: Any, dl: Any, d: Any, du: Any, b: Any) -> Any:
    return gtsv(dl[1:], d, du[:-1], b) if d.size > 1 else (b / d[0], int(d[0] == 0))


def _jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    """``A dX = dB - dA X``."""
    *diagonals, b = primals
    *t_diagonals, tb = ts
    x = tridiagonal_solve_p.bind(*diagonals, b)
    for t, offset in zip(t_diagonals, (1, 0, -1), strict=True):
        if type(t) is not Zero:
            tb = add_tangents(tb, neg_p.bind(row_scaled(t, _moved(x, offset, x.ndim - 2))))
    return x, zero_of(x) if type(tb) is Zero else tridiagonal_solve_p.bind(*diagonals, tb)


def _moved(x: Any, offset: int, axis: int) -> Any:
    """Elements moved towards higher indices along an axis; zeros follow."""
    if not offset or not x.size:
        return x
    config = tuple((offset, -offset, 0) if i == axis else (0, 0, 0) for i in range(x.ndim))
    return pad_p.bind(x, constant(x, 0), padding_config=config)


def _transpose(ct: Any, dl: Any, d: Any, du: Any, b: Any) -> list[Any]:
    """With the transposed matrix."""
    last = d.ndim - 1
    out = tridiagonal_solve_p.bind(_moved(du, 1, last), d, _moved(dl, -1, last), ct)
    return [None, None, None, out if is_linear(b) else None]


def _lower(ctx: Context, dl: Value, d: Value, du: Value, b: Value) -> Value:
    if not b.aval.size:
        return b
    if lapack.is_cuda(ctx) and d.shape[-1] >= 3:  # cuSPARSE takes no fewer rows
        vectors = [(x, 1) for x in (dl, d, du)]
        (x,) = lapack.call(ctx, "gtsv", [*vectors, (b, 2)], [(b.aval, 2)], in_place=[(3, 0)])
        return x
    if ctx.platform != "cpu":
        return _lower_program(ctx, dl, d, du, b)
    vectors = [(x, 1) for x in (dl, d, du)]
    results = [*[(x.aval, 1) for x in (dl, d, du)], (b.aval, 2), (ShapedArray(d.shape[:-1], lapack.INFO), 0)]
    pairs = [(i, i) for i in range(4)]
    *_, x, info = lapack.call(ctx, "gtsv", [*vectors, (b, 2)], results, in_place=pairs)
    return lapack.where(ctx, lapack.converged(ctx, info), [x])[0]


@lower_as
def _lower_program(dl: Any, d: Any, du: Any, b: Any) -> Any:
    return eliminate(dl, d, du, b, perturb=False)


def _perturbed(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """The derivatives are those of the perturbed equations."""
    last = get_aval(d).ndim - 1
    transposed = _moved(du, 1, last), d, _moved(dl, -1, last)

    def product(x: Any) -> Any:
        near = ((dl, _moved(x, 1, last)), (d, x), (du, _moved(x, -1, last)))
        first, *others = (row_scaled(a, x) for a, x in near)
        return functools.reduce(add_p.bind, others, first)

    return custom_linear_solve(
        product,
        b,
        lambda _, b: eliminate(dl, d, du, b, perturb=True),
        lambda _, ct: eliminate(*transposed, ct, perturb=True),
    )


tridiagonal_solve_p = Primitive("tridiagonal_solve")
tridiagonal_solve_p.abstract_eval = _types
tridiagonal_solve_p.host = _host
tridiagonal_solve_p.jvp = _jvp
tridiagonal_solve_p.transpose = _transpose
tridiagonal_solve_p.batch = batch_in_front(tridiagonal_solve_p)
tridiagonal_solve_p.lower = _lower


@api_boundary
def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
    """The solution X of ``A X = b`` with tridiagonal A, by elimination with row exchanges.

    Parameters
    ----------
    dl, d, du : arrays (..., n)
        The diagonals of A: ``dl[i] = A[i, i - 1]``, ``d[i] = A[i, i]``, ``du[i] = A[i, i + 1]``. The first element of
        `dl` and the last one of `du` don't count.
    b : array (..., n, m)
        Or a vector (..., n).
    perturb_singular : bool
        Replace pivots below ``eps * max |U|`` by numbers of that size, for inverse iteration: the solution is finite,
        and large along what A maps to zero.

    Returns
    -------
    Array of the shape of `b`; NaN where A is singular, but for `perturb_singular`.

    Examples
    --------
    >>> from xform import lax
    >>> import numpy as np
    >>> one = np.ones(3)
    >>> lax.linalg.tridiagonal_solve(one, 2 * one, 0 * one, np.array([[2.0], [5.0], [8.0]])).tolist()
    [[1.0], [2.0], [3.0]]
    """
    dl, d, du, b = as_operands("linalg.tridiagonal_solve", dl, d, du, b)
    shape = get_aval(b).shape
    is_vector = len(shape) == get_aval(d).ndim
    if is_vector:
        b = reshape_p.bind(b, new_sizes=(*shape, 1))
    if perturb_singular:
        _types(*map(get_aval, (dl, d, du, b)))
    out = (_perturbed if perturb_singular else tridiagonal_solve_p.bind)(dl, d, du, b)
    return reshape_p.bind(out, new_sizes=shape) if is_vector else out
