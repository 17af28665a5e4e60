"""`xform.numpy.fft`: Fourier transforms of any number of axes, with NumPy's names and parameters.

Single precision stays single. All transforms are linear, and have derivatives of all orders.

May import: `xform.lax`, the modules of `xform.numpy`.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.lax.arithmetic import complex_dtype
from xform.lax.conversion import convert
from xform.lax.fft import FftType, fft_p
from xform.lax.slicing import pad_p
from xform.numpy import creation, manipulation, ufuncs
from xform.numpy.fast import ANY, short_way
from xform.numpy.promotion import (
    array_of,
    canonical_axes,
    canonical_axis,
    dtype_argument,
    is_several,
    known_integer,
    no_out,
    promote_inexact,
    shown,
)

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

_NORMS = (None, "backward", "ortho", "forward")
_OPPOSITE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}
_MAX_AXES = 3  # of one transform of XLA


def _transform(name: str, kind: FftType, a: Any, s: Any, axes: Any, norm: str | None, out: Any) -> Array:
    """One transform, over several axes."""
    no_out(f"fft.{name}", out)
    if norm not in _NORMS:
        raise _wrong_norm(name, norm)
    a = array_of(f"fft.{name}", a)
    order, lengths = _axes_and_lengths(name, kind, a, s, axes)
    if not order:
        if kind in (FftType.FFT, FftType.IFFT):
            return a  # in its dtype, as in NumPy
        raise ValueError(f"numpy.fft.{name}: needs an axis to transform, got {shown(a)} and axes={axes}")
    a = _operand(name, a, kind)
    last = tuple(range(a.ndim - len(order), a.ndim))
    a = a if order == last else manipulation.moveaxis(a, order, last)
    out = _over_groups(kind, _resized(a, _input_lengths(kind, lengths)), lengths)
    factor = _factor(kind, norm, float(math.prod(lengths)))
    out = out if factor is None else out * out.dtype.type(factor)
    return out if order == last else manipulation.moveaxis(out, last, order)


def _wrong_norm(name: str, norm: Any) -> ValueError:
    return ValueError(f"numpy.fft.{name}: invalid norm value {norm!r}; should be 'backward', 'ortho' or 'forward'")


def _operand(name: str, a: Array, kind: FftType) -> Array:
    """The argument in the dtype that the transform takes: real or complex, of single or double precision."""
    a = promote_inexact(f"fft.{name}", a)[0]
    part = (
        np.finfo(a.dtype).dtype
        if a.dtype.kind == "c"
        else np.dtype(np.float64 if a.dtype == np.float64 else np.float32)
    )
    if kind is FftType.RFFT:
        if a.dtype.kind == "c":
            raise TypeError(f"numpy.fft.{name}: a must be real, got {shown(a)}; take a.real, or use numpy.fft.fft")
        return convert(a, part)
    return convert(a, complex_dtype(part))


def _axes_and_lengths(name: str, kind: FftType, a: Array, s: Any, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The transformed axes, and their lengths in time (for IRFFT those of the result)."""
    if s is not None:
        s = [known_integer(f"fft.{name}", "lengths", n) for n in s]
    if axes is None:
        order = tuple(range(a.ndim)) if s is None else tuple(range(a.ndim - len(s), a.ndim))
        if s is not None and len(s) > a.ndim:
            raise ValueError(f"numpy.fft.{name}: s has {len(s)} lengths for {shown(a)}")
    else:
        order = canonical_axes(f"fft.{name}", axes, a, "axes")
    lengths = [a.shape[d] for d in order]
    if kind is FftType.IRFFT and lengths:
        lengths[-1] = 2 * (lengths[-1] - 1)
    if s is not None:
        if len(s) != len(order):
            raise ValueError(
                f"numpy.fft.{name}: shape and axes have different lengths, got s={tuple(s)} and axes={axes}"
            )
        lengths = [old if n == -1 else n for n, old in zip(s, lengths, strict=True)]
    for n in lengths:
        if n < 1:
            raise ValueError(f"numpy.fft.{name}: invalid number of FFT data points ({n}) specified, got {shown(a)}")
    return order, tuple(lengths)


def _input_lengths(kind: FftType, lengths: tuple[int, ...]) -> tuple[int, ...]:
    return (*lengths[:-1], lengths[-1] // 2 + 1) if kind is FftType.IRFFT else lengths


def _resized(a: Array, lengths: Sequence[int]) -> Array:
    """Cut off or filled up with zeros at the ends of the last axes."""
    n = len(lengths)
    if a.shape[a.ndim - n :] == tuple(lengths):
        return a
    config = [(0, 0, 0)] * (a.ndim - n) + [(0, m - old, 0) for m, old in zip(lengths, a.shape[-n:], strict=True)]
    return pad_p.bind(a, a.dtype.type(0), padding_config=tuple(config))


def _over_groups(kind: FftType, a: Array, lengths: tuple[int, ...]) -> Array:
    """The transform of the last axes, three at a time; the last axis of all is the one of real values."""
    n = len(lengths)
    groups = [(max(0, end - _MAX_AXES), end) for end in range(n, 0, -_MAX_AXES)]
    rest = FftType.IFFT if kind in (FftType.IFFT, FftType.IRFFT) else FftType.FFT
    steps = [(kind, *groups[0]), *((rest, *group) for group in groups[1:])]
    if kind is FftType.IRFFT:  # real values come out last
        steps.reverse()
    for step, start, end in steps:
        axes, last = range(start - n, end - n), range(start - end, 0)
        a = a if end == n else manipulation.moveaxis(a, axes, last)
        a = fft_p.bind(a, fft_type=step, fft_lengths=lengths[start:end])
        a = a if end == n else manipulation.moveaxis(a, last, axes)
    return a


def _factor(kind: FftType, norm: str | None, size: float) -> float | None:
    """What the result is multiplied with; the inverse transforms divide by `size` themselves."""
    if norm == "ortho":
        return size**0.5 if kind in (FftType.IFFT, FftType.IRFFT) else size**-0.5
    if norm == "forward":
        return size if kind in (FftType.IFFT, FftType.IRFFT) else 1 / size
    return None


def _one_axis(name: str, n: Any, axis: Any) -> tuple[Any, tuple[int]]:
    if isinstance(axis, Sequence) or axis is None:
        raise TypeError(f"numpy.fft.{name}: axis must be an integer, got {axis!r}; fftn transforms several axes")
    return None if n is None else (n,), (axis,)


# ---- Complex values ----------------------------------------------------------------------------------------


@short_way(np.fft.fft, "lfdFD", plain="n axis norm")
def fft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """Fourier transform along an axis: ``y[k] = sum_j a[j] exp(-2 pi i j k / n)``.

    Parameters
    ----------
    a : array
    n : int, optional
        Length along `axis`, to which `a` is cut off or filled up with zeros.
    norm : "backward", "ortho" or "forward"
        Whether the inverse is divided by n (the default), both by its square root, or the forward transform by n.

    Returns
    -------
    Complex array, of single precision if `a` is.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.fft.fft(xnp.array([1.0, 0.0, 0.0, 0.0])).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _transform("fft", FftType.FFT, a, *_one_axis("fft", n, axis), norm, out)


@short_way(np.fft.ifft, "lfdFD", plain="n axis norm")
def ifft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """Inverse of `fft`."""
    return _transform("ifft", FftType.IFFT, a, *_one_axis("ifft", n, axis), norm, out)


@short_way(np.fft.fft2, "lfdFD", plain="axes norm")
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: None = None) -> Array:
    """Fourier transform over two axes; see `fftn`.

    Differs from NumPy: an axis is transformed once at most.
    """
    return _transform("fft2", FftType.FFT, a, s, axes, norm, out)


@short_way(np.fft.ifft2, "lfdFD", plain="axes norm")
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: None = None) -> Array:
    """Inverse of `fft2`.

    Differs from NumPy: an axis is transformed once at most.
    """
    return _transform("ifft2", FftType.IFFT, a, s, axes, norm, out)


@short_way(np.fft.fftn, "lfdFD", plain="axes norm")
def fftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: None = None) -> Array:
    """Fourier transform over several axes.

    Differs from NumPy: an axis is transformed once at most.

    Parameters
    ----------
    a : array
    s : ints, optional
        Lengths along `axes`, to which `a` is cut off or filled up with zeros; -1 leaves one as it is.
    axes : ints, optional
        By default the last ``len(s)``, or all.
    norm : as for `fft`
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm, out)


@short_way(np.fft.ifftn, "lfdFD", plain="axes norm")
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: None = None) -> Array:
    """Inverse of `fftn`.

    Differs from NumPy: an axis is transformed once at most.
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm, out)


# ---- Real values -------------------------------------------------------------------------------------------


@short_way(np.fft.rfft, "lfd", plain="n axis norm")
def rfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """Fourier transform of real values: the n // 2 + 1 frequencies that are not negative; see `fft`."""
    return _transform("rfft", FftType.RFFT, a, *_one_axis("rfft", n, axis), norm, out)


@short_way(np.fft.irfft, "lfdFD", plain="n axis norm")
def irfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """Inverse of `rfft`, real; n is the length of the result, by default even: twice that of `a` less 2."""
    return _transform("irfft", FftType.IRFFT, a, *_one_axis("irfft", n, axis), norm, out)


@short_way(np.fft.rfft2, "lfd", plain="axes norm")
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: None = None) -> Array:
    """Fourier transform of real values over two axes; see `rfftn`.

    Differs from NumPy: an axis is transformed once at most.
    """
    return _transform("rfft2", FftType.RFFT, a, s, axes, norm, out)


@short_way(np.fft.irfft2, "lfdFD", plain="axes norm")
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = None, out: None = None) -> Array:
    """Inverse of `rfft2`.

    Differs from NumPy: an axis is transformed once at most.
    """
    return _transform("irfft2", FftType.IRFFT, a, s, axes, norm, out)


@short_way(np.fft.rfftn, "lfd", plain="axes norm")
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: None = None) -> Array:
    """Fourier transform of real values over several axes: of the last one, the frequencies that are not negative.

    Differs from NumPy: an axis is transformed once at most.
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm, out)


@short_way(np.fft.irfftn, "lfdFD", plain="axes norm")
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: str | None = None, out: None = None) -> Array:
    """Inverse of `rfftn`, real; `s` holds the lengths of the result.

    Differs from NumPy: an axis is transformed once at most.
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm, out)


@short_way(np.fft.hfft, "lfdFD", plain="n axis norm")
def hfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """Fourier transform of values with ``a[-j] = conj(a[j])``, given for j from 0; it is real and of length n."""
    return _transform("hfft", FftType.IRFFT, ufuncs.conj(a), *_one_axis("hfft", n, axis), _opposite("hfft", norm), out)


@short_way(np.fft.ihfft, "lfd", plain="n axis norm")
def ihfft(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None, out: None = None) -> Array:
    """Inverse of `hfft`."""
    return ufuncs.conj(
        _transform("ihfft", FftType.RFFT, a, *_one_axis("ihfft", n, axis), _opposite("ihfft", norm), out)
    )


def _opposite(name: str, norm: str | None) -> str:
    """The norm of the inverse transform."""
    if norm not in _OPPOSITE:
        raise _wrong_norm(name, norm)
    return _OPPOSITE[norm]


# ---- Frequencies -------------------------------------------------------------------------------------------


def _host_frequencies(host: Callable[..., Any]) -> Callable[..., Any]:
    def frequencies(n: int, d: float = 1.0) -> Any:
        if n < 1:
            raise ValueError
        return host(n, d)

    return frequencies


@short_way(_host_frequencies(np.fft.fftfreq), plain="n d")
def fftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Array:
    """The frequencies of `fft`, in cycles per unit: ``[0, 1, ..., -2, -1] / (n d)``.

    Parameters
    ----------
    n : int
    d : scalar
        Spacing of samples.
    """
    n = _count("fftfreq", n)
    middle = (n - 1) // 2 + 1
    return _frequencies("fftfreq", np.concatenate([np.arange(middle), np.arange(middle - n, 0)]), n, d, dtype, device)


@short_way(_host_frequencies(np.fft.rfftfreq), plain="n d")
def rfftfreq(n: int, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Array:
    """The frequencies of `rfft`: ``[0, 1, ..., n // 2] / (n d)``."""
    n = _count("rfftfreq", n)
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, device)


def _count(name: str, n: Any) -> int:
    try:
        n = operator.index(n)
    except TypeError:
        raise ValueError(f"numpy.fft.{name}: n should be an integer, got {n!r}") from None
    if n < 1:
        raise ZeroDivisionError(f"numpy.fft.{name}: n must be positive, got {n}: division by zero")
    return n


def _frequencies(name: str, numbers: np.ndarray, n: int, d: Any, dtype: Any, device: Any) -> Array:
    dtype = dtype_argument(f"fft.{name}", dtype) or dtypes.to_inexact_dtype(np.dtype(np.int64))
    return creation.placed(name, creation.asarray(numbers, dtype) / creation.asarray(d * n, dtype), device)


@short_way(np.fft.fftshift, ANY, plain="axes")
def fftshift(x: Any, axes: Any = None) -> Array:
    """Moves frequency 0 to the middle of the axes (by default all).

    Differs from NumPy: an array of rank 0 is returned as it is.
    """
    return _shift("fftshift", x, axes, 1)


@short_way(np.fft.ifftshift, ANY, plain="axes")
def ifftshift(x: Any, axes: Any = None) -> Array:
    """Inverse of `fftshift`.

    Differs from NumPy: an array of rank 0 is returned as it is.
    """
    return _shift("ifftshift", x, axes, -1)


def _shift(name: str, x: Any, axes: Any, sign: int) -> Array:
    x = array_of(f"fft.{name}", x, "x")
    several = range(x.ndim) if axes is None else axes if is_several(axes) else (axes,)
    each = tuple(canonical_axis(f"fft.{name}", d, x, "axes") for d in several)
    return manipulation.roll(x, [sign * (x.shape[d] // 2) for d in each], each)
