"""Polynomials as vectors of coefficients, from the highest power to the constant.

May import: the other modules of `xform.numpy`.
"""

import operator
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.conversion import convert
from xform.lax.polyval import polyval_p
from xform.lax.shapes import full as lax_full
from xform.numpy import host_forms, manipulation, ufuncs
from xform.numpy.creation import ones, zeros
from xform.numpy.diagonals import diag
from xform.numpy.elementwise import where
from xform.numpy.fast import optional, same, short_way
from xform.numpy.joining import concatenate
from xform.numpy.numerics import convolve
from xform.numpy.products import dot, outer
from xform.numpy.promotion import (
    array_of,
    broadcast_shapes_of,
    concrete,
    expand_to,
    is_concrete,
    promote,
    promote_inexact,
    shown,
    strong,
)
from xform.numpy.special_matrices import vander


def _vectors(name: str, *args: Any) -> list[Array]:
    arrays = [manipulation.atleast_1d(array_of(name, x)) for x in args]
    if any(a.ndim != 1 for a in arrays):
        raise ValueError(f"numpy.{name}: coefficients must be a rank-1 array, got {', '.join(map(shown, arrays))}")
    return [array_of(name, x) for x in promote(name, *arrays)]


def _to_length(x: Array, n: int) -> Array:
    """Zeros in front, up to length n."""
    return x if x.size >= n else concatenate([lax_full((n - x.size,), 0, x.dtype), x])


@short_way(host_forms.polyval, "d", optional(same("d")))
def polyval(p: Any, x: Any, *, unroll: int = 16) -> Array:
    """The value of a polynomial, by Horner's rule. `unroll`: how many steps are written out in a loop of the program.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> float(xnp.polyval(xnp.array([1.0, 0.0, 2.0]), 3.0))
    11.0
    """
    p, x = array_of("polyval", p, "p"), array_of("polyval", x, "x")
    if p.ndim < 1:
        raise ValueError(f"numpy.polyval: p must have at least one axis, got {shown(p)}")
    p, x = (strong(array_of("polyval", v)) for v in promote("polyval", p, x))
    shape = broadcast_shapes_of("polyval", [p.shape[1:], x.shape], [p, x])
    if p.ndim > 1:
        n, *rest = p.shape
        p = expand_to(manipulation.reshape(p, (n, *(1,) * (len(shape) - len(rest)), *rest)), (n, *shape))
    if p.dtype == bool:  # with or for sums and and for products
        return expand_to(where(x, p.any(0), p[-1] if p.shape[0] else False), shape)
    return polyval_p.bind(p, expand_to(x, shape), unroll=unroll)


@api_boundary
def polyadd(a1: Any, a2: Any) -> Array:
    """Sum of two polynomials."""
    a1, a2 = _vectors("polyadd", a1, a2)
    n = max(a1.size, a2.size)
    return _to_length(a1, n) + _to_length(a2, n)


@api_boundary
def polysub(a1: Any, a2: Any) -> Array:
    """Difference of two polynomials."""
    a1, a2 = _vectors("polysub", a1, a2)
    n = max(a1.size, a2.size)
    return _to_length(a1, n) - _to_length(a2, n)


def _without_leading_zeros(name: str, p: Array, wanted: bool) -> Array:
    if not wanted:
        return p
    values = concrete(
        name, p, "coefficients", "Their zeros decide the length of the result: give trim_leading_zeros=False."
    )
    lead = int(np.argmax(values != 0)) if np.any(values != 0) else len(values) - 1
    return p[lead:]


@api_boundary
def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """Product of two polynomials. `trim_leading_zeros`: of the factors, first, as NumPy does; they must be known.

    Differs from NumPy: leading zeros of the factors stay, unless ``trim_leading_zeros=True``.
    """
    a1, a2 = _vectors("polymul", a1, a2)
    a1 = _without_leading_zeros("polymul", a1, trim_leading_zeros)
    a2 = _without_leading_zeros("polymul", a2, trim_leading_zeros)
    return convolve(a1, a2)


@api_boundary
def polydiv(u: Any, v: Any, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials.

    Differs from NumPy: leading zeros of the remainder stay, unless ``trim_leading_zeros=True``.

    `trim_leading_zeros`: of the remainder, as NumPy does; its values must be known.
    """
    u, v = _vectors("polydiv", u, v)
    u, v = (array_of("polydiv", x) for x in promote_inexact("polydiv", u, v))
    m, n = u.size - 1, v.size - 1
    quotient = []
    rest = u
    for k in range(max(m - n + 1, 0)):
        factor = rest[k] / v[0]
        quotient.append(manipulation.reshape(factor, (1,)))
        rest = rest.at[k : k + n + 1].add(-factor * v)
    q = concatenate(quotient) if quotient else lax_full((1,), 0, u.dtype)
    if trim_leading_zeros:
        values = concrete("polydiv", rest, "u", "Give trim_leading_zeros=False.")
        lead = 0
        while np.allclose(values[lead], 0, rtol=1e-14) and lead < len(values) - 1:
            lead += 1
        rest = rest[lead:]
    return q, rest


@api_boundary
def polyder(p: Any, m: int = 1) -> Array:
    """The m-th derivative of a polynomial."""
    (p,) = _vectors("polyder", p)
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"numpy.polyder: order of derivative must be positive (see polyint), got {m}")
    for _ in range(m):
        n = p.size
        p = p[:-1] * np.arange(n - 1, 0, -1) if n else p
    return p


@api_boundary
def polyint(p: Any, m: int = 1, k: Any = 0) -> Array:
    """The m-th integral of a polynomial, with integration constants k."""
    (p,) = _vectors("polyint", p)
    (p,) = promote_inexact("polyint", p)
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"numpy.polyint: order of integral must be positive (see polyder), got {m}")
    constants = manipulation.atleast_1d(array_of("polyint", 0 if k is None else k, "k"))
    if constants.size not in (1, m):
        raise ValueError(
            f"numpy.polyint: k must be a scalar or a rank-1 array of length 1 or {m}, got {shown(constants)}"
        )
    constants = manipulation.broadcast_to(constants, (m,))
    for i in range(m):
        n = p.size
        p = concatenate([p / np.arange(n, 0, -1), convert(constants[i : i + 1], p.dtype)])
    return p


@api_boundary
def poly(seq_of_zeros: Any) -> Array:
    """The polynomial with these zeros, or the characteristic polynomial of a matrix.

    Differs from NumPy: under `jit` zeros in conjugate pairs give complex coefficients.
    """
    zeros_ = array_of("poly", seq_of_zeros, "seq_of_zeros")
    if zeros_.ndim == 2 and zeros_.shape[0] == zeros_.shape[1] and zeros_.size:
        from xform.numpy.linalg import eigvals

        zeros_ = eigvals(zeros_)
    if zeros_.ndim != 1:
        raise ValueError(f"numpy.poly: input must be 1d or non-empty square 2d array, got {shown(zeros_)}")
    (zeros_,) = promote_inexact("poly", zeros_)
    if not zeros_.size:
        return ones(())  # as NumPy has it
    out = lax_full((1,), 1, zeros_.dtype)
    for zero in manipulation.unstack(zeros_):
        out = convolve(out, concatenate([lax_full((1,), 1, zeros_.dtype), manipulation.reshape(-zero, (1,))]))
    if out.dtype.kind == "c" and is_concrete(zeros_):
        # Zeros in conjugate pairs have real coefficients.
        values = np.asarray(zeros_)
        if np.all(np.sort(values) == np.sort(values.conj())):
            return out.real
    return out


@api_boundary
def polyfit(
    x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool | str = False
) -> Any:
    """The polynomial of degree `deg` that fits points best, in the sense of least squares.

    Differs from NumPy: a fit that is poorly conditioned gives no RankWarning.

    Parameters
    ----------
    x : (M,) array
    y : (M,) or (M, K) array
    rcond : float, optional
        Singular values below this part of the largest count as zero.
    full : bool
        Return also the residuals, the rank, the singular values and rcond.
    w : (M,) array, optional
        Weights of the residuals (not squared).
    cov : bool or 'unscaled'
        Return also the covariance of the coefficients.
    """
    from xform.numpy import linalg

    order = operator.index(deg) + 1
    x, y = (strong(promote_inexact("polyfit", array_of("polyfit", v, arg))[0]) for v, arg in ((x, "x"), (y, "y")))
    if order < 1:
        raise ValueError(f"numpy.polyfit: expected deg >= 0, got {deg}")
    for wrong, what in (
        (x.ndim != 1, "expected 1D vector for x"),
        (not x.size, "expected non-empty vector for x"),
        (y.ndim not in (1, 2), "expected 1D or 2D array for y"),
        (y.shape[:1] != x.shape, "expected x and y to have same length"),
    ):
        if wrong:
            raise TypeError(f"numpy.polyfit: {what}, got x {shown(x)} and y {shown(y)}")
    if rcond is None:
        rcond = x.shape[0] * float(dtypes.finfo(x.dtype).eps)
    lhs, rhs = vander(x, order), y
    if w is not None:
        w = convert(array_of("polyfit", w, "w"), x.dtype)
        if w.shape != x.shape:
            raise TypeError(
                f"numpy.polyfit: expected w and y to have the same length, got w {shown(w)} and y {shown(y)}"
            )
        lhs = lhs * w[:, None]
        rhs = rhs * (w[:, None] if rhs.ndim == 2 else w)
    scale = ufuncs.sqrt((lhs * lhs).sum(0))
    c, residuals, rank, s = linalg.lstsq(lhs / scale, rhs, rcond)
    c = manipulation.transpose(manipulation.transpose(c) / scale)
    if full:
        return c, residuals, rank, s, rcond
    if not cov:
        return c
    base = linalg.inv(dot(manipulation.transpose(lhs), lhs) / outer(scale, scale)) / outer(scale, scale)
    if cov == "unscaled":
        factor: Any = 1
    else:
        if x.shape[0] <= order:
            raise ValueError(
                f"numpy.polyfit: the number of data points must exceed order to scale the covariance matrix, got "
                f"{x.shape[0]} points and {order} coefficients"
            )
        factor = residuals / (x.shape[0] - order)
    if y.ndim == 1:
        return c, base * factor
    return c, base[:, :, None] * factor


@api_boundary
def roots(p: Any, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, as complex numbers: the eigenvalues of its companion matrix.

    With ``strip_zeros=True`` coefficients that vanish at both ends are removed first, for which they must be known;
    else zeros that belong to vanishing first coefficients are NaN.

    Differs from NumPy: the zeros are complex numbers also if all of them are real.
    """
    (p,) = _vectors("roots", p)
    (p,) = promote_inexact("roots", p)
    trailing = 0
    if strip_zeros:
        values = concrete("roots", p, "p", "Its zeros decide the length of the result: give strip_zeros=False.")
        (found,) = np.nonzero(values)
        if not found.size:
            return zeros(0, dtypes.default_complex())
        trailing = len(values) - 1 - int(found[-1])
        p = p[int(found[0]) : int(found[-1]) + 1]
    if p.size < 2:
        return zeros(trailing, dtypes.default_complex())
    from xform.numpy.linalg import eigvals

    if strip_zeros:
        return concatenate([eigvals(_companion(p)), zeros(trailing, np.result_type(p.dtype, np.complex64))])
    # Without leading zeros the companion matrix is finite; with them, the matrix of the remaining part is needed.
    lead = (p != 0).astype(dtypes.default_int()).argmax()
    n = p.size - 1
    shifted = manipulation.roll(p, -lead)
    all_roots: Array = eigvals(_companion(where(shifted[0] == 0, ones(1, p.dtype)[0], shifted)))
    # The shift appended `lead` zeros at the end, which are roots at 0: mark as many as NaN.
    order = ufuncs.absolute(all_roots).argsort()
    spurious = np.arange(n) < lead
    return where(spurious, complex(np.nan, np.nan), all_roots[order])


def _companion(p: Array) -> Array:
    n = p.size - 1
    below = diag(ones(n - 1, p.dtype), -1) if n > 1 else lax_full((1, 1), 0, p.dtype)
    return below.at[0].set(-p[1:] / p[0])
