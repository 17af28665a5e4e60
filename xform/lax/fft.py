"""Fourier transforms over the last one to three axes.

May import: the elementwise modules of `lax`, `lax.conversion`, `lax.shapes`, `lax.slicing`.
"""

import enum
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.lowering import Context, Value, i64s
from xform.lax.arithmetic import complex_dtype, conj_p, mul_p
from xform.lax.conversion import convert
from xform.lax.families import constant, real_dtype
from xform.lax.shapes import broadcast_in_dim_p, linear_unary
from xform.lax.slicing import pad_p


class FftType(enum.IntEnum):
    """Kinds of transforms: forward, inverse, and the two for real values (in, and out)."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


# NumPy's functions for one axis and for several. By name, since numpy.fft is imported at first use.
_HOST = {
    FftType.FFT: ("fft", "fftn"),
    FftType.IFFT: ("ifft", "ifftn"),
    FftType.RFFT: ("rfft", "rfftn"),
    FftType.IRFFT: ("irfft", "irfftn"),
}


def _types(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    name = f"lax.fft of type {fft_type.name}"
    wanted = ("float32", "float64") if fft_type is FftType.RFFT else ("complex64", "complex128")
    if x.dtype.name not in wanted:
        raise TypeError(f"{name} takes {' or '.join(wanted)}, got {x.str_short()}")
    n = len(fft_lengths)
    if not 1 <= n <= 3 or n > x.ndim or min(fft_lengths) < 1:
        raise ValueError(
            f"{name} takes one to three fft_lengths, which are positive and no more than the operand has axes, got "
            f"{fft_lengths} for {x.str_short()}"
        )
    half = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    before = half if fft_type is FftType.IRFFT else fft_lengths
    after = half if fft_type is FftType.RFFT else fft_lengths
    if x.shape[-n:] != before:
        raise ValueError(f"{name} and fft_lengths {fft_lengths} needs last axes of {before}, got {x.str_short()}")
    part = real_dtype(x.dtype)
    return ShapedArray((*x.shape[:-n], *after), part if fft_type is FftType.IRFFT else complex_dtype(part))


def _host(x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    n = len(fft_lengths)
    if not x.size:
        out = _types(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
        return np.zeros(out.shape, out.dtype)
    function = getattr(np.fft, _HOST[fft_type][n > 1])
    return function(x, fft_lengths[0]) if n == 1 else function(x, fft_lengths, tuple(range(-n, 0)))


def _transpose(ct: Any, x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    """The matrix of a complex transform is symmetric. Those of real values leave out half of the frequencies.

    Each frequency that is left out is the conjugate of one that is there, which therefore counts twice; only 0 and, if
    the length is even, the highest one have no partner.
    """
    if fft_type in (FftType.FFT, FftType.IFFT):
        return fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)
    size = math.prod(fft_lengths)
    if fft_type is FftType.IRFFT:
        out = conj_p.bind(fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths))
        return mul_p.bind(out, _weights(out, fft_lengths[-1], 2 / size, 1 / size))
    ct = conj_p.bind(mul_p.bind(ct, _weights(ct, fft_lengths[-1], size / 2, size)))
    return fft_p.bind(ct, fft_type=FftType.IRFFT, fft_lengths=fft_lengths)


def _weights(x: Any, length: int, paired: float, single: float) -> Any:
    """Factors for the frequencies along the last axis of `x`."""
    even = int(length % 2 == 0)
    inner = (x.shape[-1] - 1 - even,)
    inside = broadcast_in_dim_p.bind(constant(x, paired), shape=inner, broadcast_dimensions=())
    line = pad_p.bind(inside, constant(x, single), padding_config=((1, even, 0),))
    return broadcast_in_dim_p.bind(line, shape=x.shape, broadcast_dimensions=(x.ndim - 1,))


def _batch(axis: Any, x: Any, dim: int, **params: Any) -> Any:
    return fft_p.bind(batching.move_to(x, dim, axis.size), **params), 0


def _lower(ctx: Context, x: Value, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Value:
    if not x.aval.size:
        return ctx.full(ctx.out.shape, 0, ctx.out.dtype)
    attributes = f"fft_type = #stablehlo<fft_type {fft_type.name}>, fft_length = {i64s(fft_lengths)}"
    return ctx.op("fft", [x], ctx.out, attributes)


fft_p: Primitive = linear_unary("fft", _types, _host, _transpose, _batch, _lower)


@api_boundary
def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Any:
    """Fourier transform over the last axes.

    Parameters
    ----------
    x : array (..., n) with one to three transformed axes at the end
        Complex; real values are converted for FFT and IFFT, and required for RFFT.
    fft_type : FftType or its name
        FFT: ``y[k] = sum_j x[j] exp(-2 pi i j k / n)``; IFFT: its inverse. RFFT: the frequencies from 0 to n/2 of real
        values, along the last axis n // 2 + 1 of them; IRFFT: its inverse.
    fft_lengths : one to three ints
        Lengths n of the transformed axes (of the result, for IRFFT).

    Returns
    -------
    Complex array, for IRFFT a real one.

    Raises TypeError or ValueError if dtype or lengths don't fit.

    Examples
    --------
    >>> from xform import lax
    >>> lax.fft(np.ones(4), "RFFT", (4,)).tolist()
    [(4+0j), 0j, 0j]
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(f"lax.fft: fft_type must be one of {', '.join(FftType.__members__)}, got {fft_type!r}")
        fft_type = FftType[fft_type.upper()]
    fft_type, aval = FftType(fft_type), get_aval(x)
    if fft_type in (FftType.FFT, FftType.IFFT) and aval.dtype.name in ("float32", "float64"):
        x = convert(x, complex_dtype(aval.dtype))
    return fft_p.bind(x, fft_type=fft_type, fft_lengths=tuple(map(operator.index, fft_lengths)))
