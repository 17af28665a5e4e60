"""Convolutions of inputs with gaps (`lhs_dilation`) as several ones without.

Between the elements of a dilated input there are zeros, and of each window only a few elements meet what isn't zero;
which ones repeats from window to window. So the windows fall into classes, and each class, a *phase*, is an ordinary
convolution with a part of the kernel. The results of the phases are interleaved.

May import: Python's standard library.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Phase:
    """One class of windows along one axis: what is left of the kernel, and the ordinary convolution with it.

    Attributes
    ----------
    index, step, count : int
        The windows ``index + i * step``.
    first_tap, tap_step, taps : int
        The elements of the kernel ``first_tap + k * tap_step`` that meet elements of the input.
    stride, dilation, pad : int, int, (int, int)
        Of the ordinary convolution; the padding fits, so that all of the input that is left is used.
    """

    index: int
    step: int
    count: int
    first_tap: int
    tap_step: int
    taps: int
    stride: int
    dilation: int
    pad: tuple[int, int]


def phases(
    n: int, count: int, window: int, stride: int, pad: tuple[int, int], lhs_dilation: int, rhs_dilation: int
) -> list[Phase]:
    """The phases along one axis, for n elements and `count` windows, in the order in which they are interleaved."""
    out = []
    step = lhs_dilation // math.gcd(stride, lhs_dilation)
    tap_step = lhs_dilation // math.gcd(rhs_dilation, lhs_dilation)
    for index in range(min(step, count)):
        # Tap k of window `index` is at this place of the dilated input, plus k * rhs_dilation.
        base = index * stride - pad[0]
        hits = [k for k in range(min(tap_step, window)) if (base + k * rhs_dilation) % lhs_dilation == 0]
        first = hits[0] if hits else 0
        taps = -(-(window - first) // tap_step) if hits else 0
        windows = -(-(count - index) // step)
        start = (base + first * rhs_dilation) // lhs_dilation
        new_stride, new_dilation = step * stride // lhs_dilation, tap_step * rhs_dilation // lhs_dilation
        high = start + (windows - 1) * new_stride + (taps - 1) * new_dilation + 1 - n
        out.append(Phase(index, step, windows, first, tap_step, taps, new_stride, new_dilation, (-start, high)))
    return out
