"""Numerical calculus on samples: differences, integrals, interpolation, convolution, windows.

May import: the other modules of `xform.numpy`.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.lax.conversion import convert
from xform.lax.convolution import conv_general_dilated
from xform.lax.shapes import full as lax_full
from xform.lax.shapes import reshape_p
from xform.lax.slicing import slice_in_dim
from xform.numpy import host_forms, manipulation, reductions, ufuncs
from xform.numpy.elementwise import where
from xform.numpy.fast import REAL, REFUSALS, WIDE, optional, same, short_way
from xform.numpy.joining import concatenate
from xform.numpy.promotion import (
    array_of,
    canonical_axes,
    canonical_axis,
    dtype_argument,
    expand_to,
    is_concrete,
    promote,
    promote_inexact,
    shown,
    strong,
)
from xform.numpy.ranges import arange
from xform.numpy.searching import searchsorted

# ---- Differences and integrals -----------------------------------------------------------------------------


@short_way(host_forms.diff, REAL + "?FD", plain="n axis")
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """The n-th differences of neighbours along an axis, with values put in front and behind before."""
    a, n = array_of("diff", a), operator.index(n)
    if n < 0:
        raise ValueError(f"numpy.diff: order must be non-negative but got {n}")
    if not a.ndim:
        raise ValueError(f"numpy.diff: requires input that is at least one dimensional, got {shown(a)}")
    axis = canonical_axis("diff", axis, a)
    if not n:
        return a
    parts = [a]
    for where_, x in (("front", prepend), ("back", append)):
        if x is None:
            continue
        x = array_of("diff", x, "prepend" if where_ == "front" else "append")
        if not x.ndim:
            x = expand_to(x, reductions.reduced_shape(a.shape, (axis,)))
        parts = [x, *parts] if where_ == "front" else [*parts, x]
    if len(parts) > 1:
        a = concatenate(parts, axis)
    for _ in range(n):
        length = a.shape[axis]
        if not length:
            break
        upper, lower = slice_in_dim(a, 1, length, axis=axis), slice_in_dim(a, 0, length - 1, axis=axis)
        a = upper != lower if a.dtype == bool else upper - lower
    return a


@short_way(np.ediff1d, "d", plain="to_end to_begin")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """The differences of neighbours among all elements in a row, with values put in front and behind."""
    ary = manipulation.ravel(array_of("ediff1d", ary, "ary"))
    parts = [ary[1:] - ary[:-1]]
    if to_begin is not None:
        parts.insert(0, _end(ary, to_begin, "to_begin"))
    if to_end is not None:
        parts.append(_end(ary, to_end, "to_end"))
    return concatenate(parts)


def _end(ary: Array, values: Any, arg: str) -> Array:
    values = array_of("ediff1d", values, arg)
    weak = values.weak_type and values.dtype.kind in "iu"
    if not (weak or dtypes.can_cast(values.dtype, ary.dtype, "same_kind")):
        raise TypeError(
            f"numpy.ediff1d: dtype of {arg} must be compatible with input ary under the same_kind rule, got "
            f"{shown(values)} for {shown(ary)}"
        )
    return convert(manipulation.ravel(values), ary.dtype)


@short_way(np.gradient, "d", plain="varargs axis edge_order")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Derivatives of samples along axes, by central differences, one-sided at the ends.

    Parameters
    ----------
    varargs : one spacing for all axes, or for each axis a spacing or the coordinates
    edge_order : 1 or 2
        Of accuracy at the ends.

    Returns
    -------
    Array for one axis, else a tuple with one per axis
    """
    f = array_of("gradient", f, "f")
    (f,) = promote_inexact("gradient", f)
    axes = canonical_axes("gradient", axis, f)
    if edge_order not in (1, 2):
        raise ValueError(f"numpy.gradient: edge_order must be 1 or 2, got {edge_order}")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(
            f"numpy.gradient: invalid number of arguments: takes no spacing, one, or one per axis ({len(axes)}), "
            f"got {len(varargs)}"
        )
    spacings = [1.0] * len(axes) if not varargs else list(varargs) * (len(axes) if len(varargs) == 1 else 1)
    out = [_gradient(f, d, h, edge_order) for d, h in zip(axes, spacings, strict=True)]
    return out[0] if len(out) == 1 else tuple(out)


def _gradient(f: Array, axis: int, spacing: Any, edge_order: int) -> Array:
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ValueError(
            f"numpy.gradient: shape of array too small to calculate a numerical gradient, at least {edge_order + 1} "
            f"elements are required along axis {axis}, got {shown(f)}"
        )

    def part(start: int, stop: int) -> Array:
        return slice_in_dim(f, start, stop, axis=axis)

    h = array_of("gradient", spacing, "spacing")
    if h.ndim == 1:
        if h.shape[0] != n:
            raise ValueError(f"numpy.gradient: coordinates along axis {axis} must be {n}, got {shown(h)}")
        steps = h[1:] - h[:-1]
    elif h.ndim == 0:
        steps = None
    else:
        raise ValueError(f"numpy.gradient: spacings must be scalars or vectors, got {shown(h)}")

    def step(i: int, j: int | None = None) -> Any:
        """Steps i to j, shaped to multiply along the axis."""
        if steps is None:
            return h
        found = slice_in_dim(steps, i % (n - 1), i % (n - 1) + 1 if j is None else j)
        return manipulation.reshape(found, tuple(-1 if d == axis else 1 for d in range(f.ndim)))

    left, right = (step(0, n - 2), step(1, n - 1)) if n > 2 else (h, h)
    low, middle, high = part(0, n - 2), part(1, n - 1), part(2, n)
    if steps is None:
        inside = (high - low) / (2.0 * h)
    else:
        a = -right / (left * (left + right))
        b = (right - left) / (left * right)
        c = left / (right * (left + right))
        inside = a * low + b * middle + c * high
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / step(0)
        last = (part(n - 1, n) - part(n - 2, n - 1)) / step(-1)
    else:
        p, q = step(0), step(1)
        first = (
            -(2.0 * p + q) / (p * (p + q)) * part(0, 1)
            + (p + q) / (p * q) * part(1, 2)
            - p / (q * (p + q)) * part(2, 3)
        )
        p, q = step(-2), step(-1)
        last = (
            q / (p * (p + q)) * part(n - 3, n - 2)
            - (q + p) / (p * q) * part(n - 2, n - 1)
            + (2.0 * q + p) / (q * (p + q)) * part(n - 1, n)
        )
    return concatenate([first, inside, last], axis)


@short_way(np.trapezoid, "d", optional(same("d")), plain="dx axis")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Integral of samples along an axis by the trapezoidal rule, at coordinates x or with spacing dx."""
    y = array_of("trapezoid", y, "y")
    axis = canonical_axis("trapezoid", axis, y)
    if x is None:
        (y,), steps = promote_inexact("trapezoid", y), array_of("trapezoid", dx, "dx")
    else:
        y, x = (array_of("trapezoid", v) for v in promote_inexact("trapezoid", y, x))
        if x.ndim == 1:
            steps = x[1:] - x[:-1]
            steps = manipulation.reshape(steps, tuple(-1 if d == axis else 1 for d in range(y.ndim)))
        else:
            steps = diff(x, axis=axis)
    n = y.shape[axis]
    if n < 2:
        return reductions.sum(slice_in_dim(y, 0, 0, axis=axis), axis)
    pairs = slice_in_dim(y, 1, n, axis=axis) + slice_in_dim(y, 0, n - 1, axis=axis)
    return 0.5 * reductions.sum(steps * pairs, axis)


@short_way(np.unwrap, "d", plain="discont axis period")
def unwrap(p: Any, discont: Any = None, axis: int = -1, period: Any = 2 * np.pi) -> Array:
    """Add multiples of the period, so that no step along an axis is larger than half of it (or than `discont`)."""
    p = array_of("unwrap", p, "p")
    axis = canonical_axis("unwrap", axis, p)
    integer = dtypes.kinds[p.dtype] in "iu" and isinstance(period, int)
    if not integer:
        (p,) = promote_inexact("unwrap", p)
    if not p.shape[axis]:
        return p
    half = period // 2 if integer else period / 2
    step = diff(p, axis=axis)
    wrapped = (step + half) % period - half
    wrapped = where((wrapped == -half) & (step > 0), half, wrapped) if not integer or period % 2 == 0 else wrapped
    correction = where(
        ufuncs.absolute(step) < (half if discont is None else ufuncs.maximum(discont, half)), 0, wrapped - step
    )
    first = slice_in_dim(p, 0, 1, axis=axis)
    rest = slice_in_dim(p, 1, p.shape[axis], axis=axis) + reductions.cumsum(correction, axis)
    return concatenate([first, rest], axis)


# ---- Interpolation -----------------------------------------------------------------------------------------


@short_way(np.interp, optional("d"), "d", "d", plain="left right period")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """Piecewise linear interpolation of points (xp, fp), of which xp must ascend.

    Parameters
    ----------
    left, right : values below and above; by default the first and last of fp. 'extrapolate': continue the line.
    period : of x; then xp need not be in order, and left and right don't matter

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.interp(xnp.array([0.5, 3.0]), xnp.array([0.0, 1.0]), xnp.array([2.0, 4.0])).tolist()
    [3.0, 4.0]
    """
    x, xp, fp = array_of("interp", x, "x"), array_of("interp", xp, "xp"), array_of("interp", fp, "fp")
    for wrong, what in (
        (xp.ndim != 1 or fp.ndim != 1, "xp and fp must be one-dimensional"),
        (xp.shape != fp.shape, "fp and xp are not of the same length"),
        (not xp.size, "array of sample points is empty"),
    ):
        if wrong:
            raise ValueError(f"numpy.interp: {what}, got xp {shown(xp)} and fp {shown(fp)}")
    x, xp = (strong(array_of("interp", v)) for v in promote_inexact("interp", x, xp))
    (fp,) = promote_inexact("interp", fp)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise TypeError(f"numpy.interp: x and xp must be real, got {shown(x)} and {shown(xp)}")
    if period is not None:
        if is_concrete(period) and period == 0:
            raise ValueError("numpy.interp: period must be a non-zero value, got 0")
        period = ufuncs.absolute(period)
        x, xp = x % period, xp % period
        order = xp.argsort()
        xp, fp = xp[order], fp[order]
        xp = concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = concatenate([fp[-1:], fp, fp[:1]])
    n = xp.size
    if n == 1:
        out = expand_to(fp[0], x.shape)
    else:
        i = searchsorted(xp, x, "right").clip(1, n - 1)
        x0, x1, f0, f1 = xp[i - 1], xp[i], fp[i - 1], fp[i]
        width = x1 - x0
        flat = ufuncs.absolute(width) <= np.spacing(dtypes.finfo(xp.dtype).eps)
        slope = where(flat, fp.dtype.type(0), (f1 - f0) / where(flat, width.dtype.type(1), width))
        out = f0 + (x - x0) * slope
    if period is None:
        if not (isinstance(left, str) and left == "extrapolate"):
            out = where(x < xp[0], fp[0] if left is None else left, out)
        if not (isinstance(right, str) and right == "extrapolate"):
            out = where(x > xp[-1], fp[-1] if right is None else right, out)
    return out if n == 1 else where(ufuncs.isnan(x), out.dtype.type(np.nan), out)  # as NumPy does


# ---- Convolution -------------------------------------------------------------------------------------------


@short_way(np.convolve, WIDE, same(WIDE), plain="mode")
def convolve(a: Any, v: Any, mode: str = "full", *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Discrete convolution of two vectors: the product of polynomials.

    Parameters
    ----------
    mode : 'full', 'same' (as long as the longer) or 'valid' (only where both overlap completely)
    """
    return _convolve("convolve", a, v, mode, precision, preferred_element_type, False)


@short_way(np.correlate, WIDE, same(WIDE), plain="mode")
def correlate(
    a: Any, v: Any, mode: str = "valid", *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Correlation of two vectors: sums of a[n + k] * conj(v[n]) for all shifts k; `mode` as in `convolve`."""
    return _convolve("correlate", a, v, mode, precision, preferred_element_type, True)


def _convolve(name: str, a: Any, v: Any, mode: str, precision: Any, preferred: Any, correlation: bool) -> Array:
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"numpy.{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    a, v = (array_of(name, x) for x in promote(name, a, v))
    if a.ndim != 1 or v.ndim != 1 or not a.size or not v.size:
        raise ValueError(f"numpy.{name}: arguments must be vectors that aren't empty, got {shown(a)} and {shown(v)}")
    preferred = dtype_argument(name, preferred)
    if state.fast and preferred is None and is_concrete(a, v) and a.dtype.char in "fdFDlLqQ":
        try:
            return ArrayImpl(getattr(np, name)(a._value(), v._value(), mode))
        except REFUSALS:
            pass
    if correlation:
        v = manipulation.flip(ufuncs.conj(v) if v.dtype.kind == "c" else v)
    longer, shorter = (a, v) if a.size >= v.size else (v, a)
    n, m = longer.size, shorter.size
    # NumPy's 'same' of a correlation with a longer second argument is that of the exchanged one, reversed.
    start = m // 2 if correlation and a.size < v.size else (m - 1) // 2
    pads = {"full": (m - 1, m - 1), "valid": (0, 0), "same": (m - 1 - start, start)}[mode]
    logical = longer.dtype.kind == "b"
    if logical:
        longer, shorter = longer.astype(np.int32), shorter.astype(np.int32)
    out = conv_general_dilated(
        reshape_p.bind(longer, new_sizes=(1, 1, n)), reshape_p.bind(manipulation.flip(shorter), new_sizes=(1, 1, m)),
        (1,), [pads], precision=precision, preferred_element_type=preferred,
    )  # fmt: skip
    out = reshape_p.bind(out, new_sizes=out.shape[2:])
    return out.astype(bool) if logical and preferred is None else out


# ---- Windows -----------------------------------------------------------------------------------------------


def _window(name: str, doc: str, host: Callable[[int], np.ndarray]) -> Callable[[int], Array]:
    @api_boundary
    def function(M: int) -> Array:
        return ArrayImpl(host(operator.index(M)).astype(dtypes.default_float(), copy=False))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


bartlett = _window("bartlett", "The Bartlett (triangular) window of M points.", np.bartlett)
blackman = _window("blackman", "The Blackman window of M points.", np.blackman)
hamming = _window("hamming", "The Hamming window of M points.", np.hamming)
hanning = _window("hanning", "The Hann window of M points.", np.hanning)


@api_boundary
def kaiser(M: int, beta: Any) -> Array:
    """The Kaiser window of M points; beta may be traced."""
    M = operator.index(M)
    if M < 1:
        return lax_full((0,), 0, dtypes.default_float())
    if M == 1:
        return lax_full((1,), 1, dtypes.default_float())
    alpha = (M - 1) / 2
    t = (arange(M, dtype=dtypes.default_float()) - alpha) / alpha
    beta = array_of("kaiser", beta, "beta")
    return ufuncs.i0(beta * ufuncs.sqrt(ufuncs.maximum(1 - t * t, 0))) / ufuncs.i0(beta)
