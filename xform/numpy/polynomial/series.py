"""What the functions of all families of polynomials do: values, arithmetic, calculus, roots, fits.

A series is the vector (or array, along its first axis) of coefficients ``c``; it means ``sum of c[n] p[n]``. Its length
depends on the shapes of arguments alone: zeros at the end are not cut off, as NumPy does, so that everything can be
traced (`trim` cuts them). Where the last coefficient must not be zero, in roots and quotients, zeros are cut off if
they are known.

Two loops carry everything: Clenshaw's sum of a series at x (C. W. Clenshaw, 1955), where "x" is an array for values,
and the multiplication of series by x for products and conversions; and the recurrence itself, forward, for Vandermonde
matrices and quotients.

May import: `xform.numpy`, `xform.lax`.
"""

import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.lax.control_flow import scan
from xform.lax.conversion import convert
from xform.lax.shapes import full as lax_full
from xform.numpy import linalg, manipulation, numerics, reductions, sorting, ufuncs
from xform.numpy.creation import asarray, zeros
from xform.numpy.joining import concatenate, stack
from xform.numpy.polynomial.bases import POWER, Basis
from xform.numpy.promotion import (
    array_of,
    broadcast_shapes_of,
    canonical_axis,
    concrete,
    is_concrete,
    promote_inexact,
    shown,
    strong,
)

_UNROLLED = 64  # longest loop that is written out in a traced program


# ---- Arguments ---------------------------------------------------------------------------------------------


def _inexact(name: str, *args: Any) -> list[Array]:
    """Arguments as floating or complex arrays of one dtype."""
    return [strong(array_of(name, x)) for x in promote_inexact(name, *(array_of(name, a) for a in args))]


def vectors(name: str, *args: Any) -> list[Array]:
    """Series as floating or complex vectors of one dtype."""
    found = [manipulation.atleast_1d(x) for x in _inexact(name, *args)]
    if any(x.ndim != 1 or not x.size for x in found):
        raise ValueError(f"numpy.{name}: coefficients must be a vector, not empty, got {', '.join(map(shown, found))}")
    return found


def _constant(values: Any, like: Array) -> Any:
    """Numbers in the real dtype that belongs to an array's."""
    return np.asarray(values, dtypes.finfo(like.dtype).dtype)


def padded(c: Array, n: int) -> Array:
    """Zeros at the end, up to length n."""
    if c.shape[0] == n:
        return c
    return concatenate([c, lax_full((n - c.shape[0], *c.shape[1:]), 0, c.dtype)])


def without_zeros(c: Array) -> Array:
    """Without zeros at the end, if they are known."""
    if not is_concrete(c):
        return c
    (found,) = np.nonzero(np.asarray(c))
    return c[: int(found[-1]) + 1] if found.size else c[:1]


def degree(name: str, deg: Any, arg: str = "deg", least: int = 0) -> int:
    """A known integer that isn't less than `least`."""
    try:
        n = operator.index(deg)
    except TypeError:
        raise TypeError(f"numpy.{name}: {arg} must be an integer, got {deg!r}") from None
    if n < least:
        raise ValueError(f"numpy.{name}: {arg} must be at least {least}, got {n}")
    return n


# ---- The two loops -----------------------------------------------------------------------------------------


def _plus(total: Any, factor: Any, x: Any) -> Any:
    """``total + factor * x``, without the operations that a known factor makes superfluous."""
    if isinstance(factor, float):
        if factor in (0, 1, -1):
            return total + x if factor == 1 else total - x if factor else total
        return total + factor * x if factor > 0 else total - -factor * x
    return total + factor * x


def _fold(
    step: Callable[..., Any], start: Any, arrays: Sequence[Array], numbers: Sequence[np.ndarray] = (),
    reverse: bool = False,
) -> Any:  # fmt: skip
    """``start = step(start, ...)`` over rows of arrays and over numbers: written out, or a loop of the program."""
    n = len(arrays[0])
    if n <= _UNROLLED or is_concrete(*arrays, *(start if isinstance(start, tuple) else (start,))):
        values = [v.tolist() for v in numbers]
        for k in range(n)[:: -1 if reverse else 1]:
            start = step(start, *[x[k] for x in arrays], *[v[k] for v in values])
        return start
    rows = (*arrays, *(_constant(v, arrays[0]) for v in numbers))
    return scan(lambda carry, row: (step(carry, *row), None), start, rows, reverse=reverse, unroll=8)[0]


@functools.lru_cache(256)
def _solved(basis: Basis, n: int) -> tuple[np.ndarray, ...]:
    """The recurrence solved for p[k + 1]: the factors of x p[k] and p[k]; and that of p[k] in the one for p[k + 2]."""
    a, b, c = basis.recurrence(n + 1)
    return 1 / a, -b / a, -c[1:] / a[1:]


def clenshaw(
    basis: Basis, c: Array, times_x: Callable[[Any], Any], one: Any, shape: tuple[int, ...] | None = None
) -> Any:
    """``sum of c[n] p[n](x)``, of a shape, where `one` is the value of p[0], and `times_x` multiplies by x."""
    n = c.shape[0]
    slopes, shifts, backs = _solved(basis, n)

    def step(carry: Any, coefficient: Any, slope: Any, shift: Any, back: Any) -> Any:
        y, before = carry
        out = _plus(coefficient * one if one.ndim else coefficient, slope, times_x(y))
        return _plus(_plus(out, shift, y), back, before), y

    last = manipulation.broadcast_to(c[n - 1] * one if one.ndim else c[n - 1], one.shape if shape is None else shape)
    if n == 1:
        return last
    start = step((last, last), c[n - 2], slopes[n - 2].item(), shifts[n - 2].item(), 0.0)
    if n == 2:
        return start[0]
    numbers = [v[: n - 2] for v in (slopes, shifts, backs)]
    return _fold(step, start, [c[: n - 2]], numbers, reverse=True)[0]


def sequence(basis: Basis, times_x: Callable[[Any], Any], one: Any, n: int) -> list[Any]:
    """p[0](x) to p[n - 1](x); `times_x` and `one` as for `clenshaw`."""
    a, b, d = (v.tolist() for v in basis.recurrence(n))
    out = [one]
    for k in range(n - 1):
        y = _plus(times_x(out[k]), -b[k], out[k])
        y = _plus(y, -d[k], out[k - 1]) if k else y
        out.append(y if a[k] == 1 else y * (1 / a[k]))
    return out


def times_x(basis: Basis, c: Array) -> Array:
    """The series of ``x * p``, without what would need a coefficient more."""
    n = c.shape[0]
    a, b, d = (_constant(v, c) for v in basis.recurrence(n))
    zero = lax_full((1,), 0, c.dtype)
    out = concatenate([zero, c[:-1] if np.all(a == 1) else a[:-1] * c[:-1]])
    if np.any(b):
        out = out + b * c
    return out + concatenate([d[1:] * c[1:], zero]) if np.any(d) else out


# ---- Functions of all families: the name of one comes from that of the family -------------------------------


def line(basis: Basis, name: str, off: Any, scl: Any) -> Array:
    """The series of ``off + scl * x``."""
    off, scl = _inexact(name, off, scl)
    (a,), (b,), _ = basis.recurrence(1)
    return stack([_plus(off, float(b), scl), scl if a == 1 else scl * float(a)])


def add(basis: Basis, name: str, c1: Any, c2: Any) -> Array:
    """The sum of two series."""
    c1, c2 = vectors(name, c1, c2)
    n = max(c1.size, c2.size)
    return padded(c1, n) + padded(c2, n)


def sub(basis: Basis, name: str, c1: Any, c2: Any) -> Array:
    """The difference of two series."""
    c1, c2 = vectors(name, c1, c2)
    n = max(c1.size, c2.size)
    return padded(c1, n) - padded(c2, n)


def mulx(basis: Basis, name: str, c: Any) -> Array:
    """The series multiplied by x."""
    (c,) = vectors(name, c)
    return times_x(basis, padded(c, c.size + 1))


def mul(basis: Basis, name: str, c1: Any, c2: Any) -> Array:
    """The product of two series."""
    c1, c2 = vectors(name, c1, c2)
    return product(basis, c1, c2)


def product(basis: Basis, c1: Array, c2: Array) -> Array:
    """The product of two vectors of coefficients."""
    if basis is POWER:
        return numerics.convolve(c1, c2)
    if c1.size > c2.size:
        c1, c2 = c2, c1
    n = c1.size + c2.size - 1
    return clenshaw(basis, c1[:, None], functools.partial(times_x, basis), padded(c2, n))


def div(basis: Basis, name: str, c1: Any, c2: Any) -> tuple[Array, Array]:
    """The quotient and the remainder of two series; the last coefficient of `c2` must not be zero."""
    c1, c2 = vectors(name, c1, c2)
    c2 = without_zeros(c2)
    if is_concrete(c2) and np.asarray(c2)[-1] == 0:
        raise ZeroDivisionError(f"numpy.{name}: division by zero, c2 is {shown(c2)} of zeros")
    n, m = c1.size, c2.size
    if n < m:
        return c1[:1] * 0, c1
    multiples = sequence(basis, functools.partial(times_x, basis), padded(c2, n), n - m + 1)
    quotient: list[Array] = []
    rest = c1
    for k in range(n - m, -1, -1):
        quotient.append(rest[k + m - 1] / multiples[k][k + m - 1])
        rest = rest[: k + m - 1] - quotient[-1] * multiples[k][: k + m - 1]
    return stack(quotient[::-1]), rest if m > 1 else c1[:1] * 0


def pow(basis: Basis, name: str, c: Any, pow: Any, maxpower: int | None = 16) -> Array:
    """The series raised to a known power, at most `maxpower`."""
    (c,) = vectors(name, c)
    n = degree(name, pow, "pow")
    if maxpower is not None and n > maxpower:
        raise ValueError(f"numpy.{name}: pow={n} is larger than maxpower={maxpower}")
    out = lax_full((1,), 1, c.dtype)
    for _ in range(n):
        out = product(basis, out, c) if out.size > 1 or c.size == 1 else c
    return out


def val(basis: Basis, name: str, x: Any, c: Any, tensor: bool = True) -> Array:
    """The values of a series at x.

    Parameters
    ----------
    x : array
    c : array (n, ...)
        Coefficients along the first axis.
    tensor : bool
        Whether each column of `c` is evaluated at each x: the result has the shape ``c.shape[1:] + x.shape``.
        Else the columns and x are broadcast.
    """
    c, x = _inexact(name, c, x)
    c = manipulation.atleast_1d(c)
    if not c.shape[0]:
        raise ValueError(f"numpy.{name}: c must have coefficients, got {shown(c)}")
    if tensor and c.ndim > 1:
        c = manipulation.reshape(c, c.shape + (1,) * x.ndim)
    shape = broadcast_shapes_of(name, [c.shape[1:], x.shape], [c, x])
    return asarray(clenshaw(basis, c, lambda y: x * y, x.dtype.type(1), shape))


def _evaluated(basis: Basis, name: str, points: dict[str, Any], c: Any, grid: bool) -> Array:
    xs = [array_of(name, x, arg) for arg, x in points.items()]
    if not grid and len({x.shape for x in xs}) > 1:
        raise ValueError(f"numpy.{name}: {', '.join(points)} must have one shape, got {', '.join(map(shown, xs))}")
    out = val(basis, name, xs[0], c)
    for x in xs[1:]:
        out = val(basis, name, x, out, tensor=grid)
    return out


def val2d(basis: Basis, name: str, x: Any, y: Any, c: Any) -> Array:
    """The values of ``sum of c[i, j] p[i](x) p[j](y)`` at points."""
    return _evaluated(basis, name, {"x": x, "y": y}, c, False)


def val3d(basis: Basis, name: str, x: Any, y: Any, z: Any, c: Any) -> Array:
    """The values of ``sum of c[i, j, k] p[i](x) p[j](y) p[k](z)`` at points."""
    return _evaluated(basis, name, {"x": x, "y": y, "z": z}, c, False)


def valnd(basis: Basis, name: str, pts: Sequence[Any], c: Any) -> Array:
    """The values of ``sum of c[i, j, ...] p[i](pts[0]) p[j](pts[1]) ...`` at points of any number of coordinates."""
    if not len(pts):
        raise ValueError(f"numpy.{name}: pts must have at least one coordinate")
    return _evaluated(basis, name, {f"pts[{i}]": x for i, x in enumerate(pts)}, c, False)


def grid2d(basis: Basis, name: str, x: Any, y: Any, c: Any) -> Array:
    """The values of ``sum of c[i, j] p[i](x) p[j](y)`` on the grid of all x and y: of shape x.shape + y.shape."""
    return _evaluated(basis, name, {"x": x, "y": y}, c, True)


def grid3d(basis: Basis, name: str, x: Any, y: Any, z: Any, c: Any) -> Array:
    """The values of ``sum of c[i, j, k] p[i](x) p[j](y) p[k](z)`` on the grid of all x, y and z."""
    return _evaluated(basis, name, {"x": x, "y": y, "z": z}, c, True)


def vander(basis: Basis, name: str, x: Any, deg: int) -> Array:
    """The matrix of the values of p[0] to p[deg] (along a last axis) at x."""
    n = degree(name, deg) + 1
    (x,) = _inexact(name, x)
    x = manipulation.atleast_1d(x)
    return stack(sequence(basis, lambda y: x * y, lax_full(x.shape, 1, x.dtype), n), -1)


def _vander_of_several(basis: Basis, name: str, points: Sequence[Any], deg: Any) -> Array:
    degrees = list(deg)
    if len(degrees) != len(points):
        raise ValueError(f"numpy.{name}: needs {len(points)} degrees, got {deg!r}")
    matrices = [vander(basis, name, x, d) for x, d in zip(_inexact(name, *points), degrees, strict=True)]
    out = matrices[0]
    for m in matrices[1:]:
        out = manipulation.expand_dims(out, -1) * manipulation.expand_dims(m, -2)
        out = manipulation.reshape(out, (*out.shape[:-2], out.shape[-2] * out.shape[-1]))
    return out


def vander2d(basis: Basis, name: str, x: Any, y: Any, deg: Any) -> Array:
    """The matrix of the values of ``p[i](x) p[j](y)`` for the degrees i and j up to those of `deg`."""
    return _vander_of_several(basis, name, (x, y), deg)


def vander3d(basis: Basis, name: str, x: Any, y: Any, z: Any, deg: Any) -> Array:
    """The matrix of the values of ``p[i](x) p[j](y) p[k](z)`` for the degrees i, j and k up to those of `deg`."""
    return _vander_of_several(basis, name, (x, y, z), deg)


# ---- Calculus ----------------------------------------------------------------------------------------------


def _calculus_arguments(name: str, c: Any, m: Any, axis: Any) -> tuple[Array, int, int]:
    (c,) = _inexact(name, c)
    c = manipulation.atleast_1d(c)
    if not c.size:
        raise ValueError(f"numpy.{name}: c must have coefficients, got {shown(c)}")
    axis = canonical_axis(name, axis, c.ndim)
    return manipulation.moveaxis(c, axis, 0), degree(name, m, "m"), axis


def _column(values: np.ndarray, c: Array) -> Any:
    """Numbers that go along the first axis of `c`."""
    return _constant(values, c).reshape((-1,) + (1,) * (c.ndim - 1))


def der(basis: Basis, name: str, c: Any, m: int = 1, scl: Any = 1, axis: int = 0) -> Array:
    """The series of the m-th derivative, each multiplied by `scl`."""
    c, m, axis = _calculus_arguments(name, c, m, axis)
    for _ in range(m):
        n = c.shape[0]
        if n == 1:
            c = c * 0
            break
        inner, outer = basis.derivative(n)
        tail = (c * scl)[1:] * _column(outer[1:], c)
        if basis.step is not None:  # sums from the end, over every step-th
            rows = -(-(n - 1) // basis.step)
            tail = manipulation.reshape(padded(tail, rows * basis.step), (rows, basis.step, *c.shape[1:]))
            tail = reductions.cumsum(tail[::-1], 0)[::-1]
            tail = manipulation.reshape(tail, (rows * basis.step, *c.shape[1:]))[: n - 1]
        c = tail * _column(inner[:-1], c)
    return manipulation.moveaxis(c, 0, axis)


def int_(basis: Basis, name: str, c: Any, m: int = 1, k: Any = (), lbnd: Any = 0, scl: Any = 1, axis: int = 0) -> Array:
    """The series of the m-th integral.

    Parameters
    ----------
    k : m integration constants (or less, then zeros), one number if m is 1
        The values of the integrals at `lbnd`.
    scl : scalar
        With which each integral is multiplied before the constant is added.
    """
    c, m, axis = _calculus_arguments(name, c, m, axis)
    constants = list(k) if np.ndim(k) else [k]
    if len(constants) > m:
        raise ValueError(f"numpy.{name}: at most m={m} integration constants can be given, got {len(constants)}")
    constants += [0] * (m - len(constants))
    for constant in constants:
        n = c.shape[0]
        inner, outer = basis.derivative(n + 1)
        # The inverse of what `der` does.
        head = (c * scl) / _column(inner[:-1], c)
        if basis.step is not None and basis.step < n:
            head = head - padded(head[basis.step :], n)
        rest = head / _column(outer[1:], c)
        start = rest[:1] * 0
        at_bound = val(basis, name, lbnd, concatenate([start, rest]))
        c = concatenate([(constant - at_bound)[None], rest]).astype(c.dtype)
    return manipulation.moveaxis(c, 0, axis)


# ---- Roots -------------------------------------------------------------------------------------------------


def fromroots(basis: Basis, name: str, roots: Any) -> Array:
    """The series of ``(x - roots[0]) (x - roots[1]) ...``."""
    (roots,) = _inexact(name, roots)
    if roots.ndim != 1:
        raise ValueError(f"numpy.{name}: roots must be a vector, got {shown(roots)}")
    one = padded(lax_full((1,), 1, roots.dtype), roots.size + 1)
    if not roots.size:
        return one
    # Sorted and then taken by their bit-reversed places, any first ones are spread over all: factors in ascending
    # order would give large coefficients that cancel later (compare L. Reichel, BIT 30, 1990, on Leja's order).
    bits = (roots.size - 1).bit_length()
    places = sorted(range(roots.size), key=lambda i: f"{i:0{bits}b}"[::-1])
    return _fold(lambda c, root: times_x(basis, c) - root * c, one, [sorting.sort(roots)[np.array(places)]])


def companion(basis: Basis, name: str, c: Any) -> Array:
    """The matrix whose eigenvalues are the roots: symmetric, but for the last column, where the family allows it."""
    (c,) = vectors(name, c)
    n = c.size - 1
    if n < 1:
        raise ValueError(f"numpy.{name}: needs at least two coefficients, got {shown(c)}")
    a, b, d = basis.recurrence(n)
    ratio = np.sqrt(np.where(d[1:], d[1:] / a[:-1], 1))
    fixed = np.diag(b) + np.diag(a[:-1] * ratio, -1) + np.diag(d[1:] / ratio, 1)
    scale = np.concatenate([np.cumprod(1 / ratio[::-1])[::-1], [1.0]])
    last = c[:-1] / c[-1] * _constant(scale * a[-1], c)
    column = _constant(np.arange(n) == n - 1, c)
    return _constant(fixed, c) - last[:, None] * column


def roots(basis: Basis, name: str, c: Any) -> Array:
    """The roots of a series, sorted, as complex numbers: the eigenvalues of the companion matrix."""
    (c,) = vectors(name, c)
    c = without_zeros(c)
    if c.size < 2:
        return zeros(0, np.result_type(c.dtype, np.complex64))
    # Turned around, so that the largest elements are first, the eigenvalues are more accurate.
    return sorting.sort(linalg.eigvals(companion(basis, name, c)[::-1, ::-1]))


# ---- Fits, trimming, weights -------------------------------------------------------------------------------


def fit(
    basis: Basis, name: str, x: Any, y: Any, deg: Any, rcond: float | None = None, full: bool = False, w: Any = None
) -> Any:
    """The series that fits points best, in the sense of least squares.

    Parameters
    ----------
    x : (M,) array
    y : (M,) or (M, K) array
    deg : int, or list of the degrees that the series has
    rcond : float, optional
        Singular values below this part of the largest count as zero; by default ``M eps``.
    full : bool
        Return also the list of the residuals, the rank, the singular values and rcond.
    w : (M,) array, optional
        Weights of the residuals (not squared).
    """
    x, y = _inexact(name, x, y)
    degrees = sorted(degree(name, d) for d in np.atleast_1d(concrete(name, deg, "deg", "")))
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or y.shape[0] != x.shape[0] or not degrees:
        raise ValueError(
            f"numpy.{name}: needs x of shape (M,), y of (M,) or (M, K), and a degree, got {shown(x)}, {shown(y)}, {deg}"
        )
    several = np.ndim(deg) > 0
    lhs, rhs = vander(basis, name, x, degrees[-1]), y
    lhs = lhs[:, np.array(degrees)] if several else lhs
    if w is not None:
        w = convert(array_of(name, w, "w"), dtypes.finfo(x.dtype).dtype)
        if w.shape != x.shape:
            raise ValueError(f"numpy.{name}: w must have the shape of x, {x.shape}, got {shown(w)}")
        lhs, rhs = lhs * w[:, None], rhs * (w[:, None] if rhs.ndim == 2 else w)
    rcond = x.size * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    scale = ufuncs.sqrt(reductions.sum(ufuncs.square(ufuncs.absolute(lhs)), 0))
    scale = ufuncs.add(scale, scale == 0)
    c, residuals, rank, s = linalg.lstsq(lhs / scale, rhs, rcond)
    c = manipulation.transpose(manipulation.transpose(c) / scale)
    if several:
        c = zeros((degrees[-1] + 1, *c.shape[1:]), c.dtype).at[np.array(degrees)].set(c)
    if full:
        return c, [residuals, rank, s, rcond]
    if is_concrete(rank) and int(rank) != lhs.shape[1]:
        warnings.warn(f"numpy.{name}: the fit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=4)
    return c


def trim(basis: Basis, name: str, c: Any, tol: float = 0) -> Array:
    """Without the last coefficients of absolute value up to `tol`; they must be known."""
    if tol < 0:
        raise ValueError(f"numpy.{name}: tol must not be negative, got {tol}")
    (c,) = vectors(name, c)
    (found,) = np.nonzero(np.abs(concrete(name, c, "c", "Its values decide the length of the result.")) > tol)
    return c[: int(found[-1]) + 1] if found.size else c[:1] * 0


def weight(basis: Basis, name: str, x: Any) -> Array:
    """The function with which the polynomials are orthogonal."""
    (x,) = _inexact(name, x)
    assert basis.weight is not None
    return asarray(basis.weight(x))


def converted(c: Array, old: Basis, new: Basis) -> Array:
    """A series of another family with the same values."""
    if old is new or c.size == 1:
        return c
    one = padded(lax_full((1,), 1, c.dtype), c.size)
    return clenshaw(old, c[:, None], functools.partial(times_x, new), one)
