"""Where windows lie in an array, and how to go through them.

May import: `lax.convolution.dimensions`, `lax.strided` and what is below them.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.interpreters.lowering import Context, Value, i64s, lower_as
from xform.lax.convolution.dimensions import dilated, window_count
from xform.lax.slicing import pad_p
from xform.lax.strided import dilate_and_pad, take_every


@dataclass(frozen=True)
class Windows:
    """How windows lie in an array; each field has one entry for each axis."""

    dimensions: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilation: tuple[int, ...]
    dilation: tuple[int, ...]

    def __repr__(self) -> str:
        parts = [f"{name}={value}" for name, value in vars(self).items()]
        return f"({', '.join(parts)})"

    def axes(self, shape: Sequence[int]) -> Iterator[tuple[Any, ...]]:
        """(length, window, stride, padding, base dilation, dilation) for each axis of an array."""
        return zip(shape, self.dimensions, self.strides, self.padding, self.base_dilation, self.dilation, strict=True)

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """How many windows there are along each axis of an array."""
        return tuple(window_count(dilated(n, b), pad, dilated(k, d), s) for n, k, s, pad, b, d in self.axes(shape))

    def transposed(self, shape: Sequence[int]) -> "Windows":
        """The windows of the results to which one element each of an array of `shape` contributes."""
        pads = []
        for p, (n, k, s, (low, _), b, d) in zip(self.shape(shape), self.axes(shape), strict=True):
            pads.append((dilated(k, d) - 1 - low, dilated(n, b) + low - dilated(p, s)))
        return Windows(self.dimensions, self.base_dilation, tuple(pads), self.strides, self.dilation)

    def with_axis(self, at: int) -> "Windows":
        """The windows in an array with one more axis, along which they have length 1."""

        def insert(values: tuple, value: Any) -> tuple:
            return (*values[:at], value, *values[at:])

        new = zip(vars(self).values(), (1, 1, (0, 0), 1, 1), strict=True)
        return Windows(*(insert(values, value) for values, value in new))

    def one_by_one(self) -> "list[Windows]":
        """Windows along one axis each, the last axis first, that do the same one after the other."""
        out = []
        rest = list(zip(*vars(self).values(), strict=True))
        trivial = (1, 1, (0, 0), 1, 1)
        for axis in reversed(range(len(rest))):
            if rest[axis] != trivial:
                fields = [rest[axis] if i == axis else trivial for i in range(len(rest))]
                out.append(Windows(*zip(*fields, strict=True)))
        return out

    def taps(self) -> Iterator[tuple[int, ...]]:
        """The places in a window, in row-major order."""
        return itertools.product(*map(range, self.dimensions))

    def pad(self, x: Any, fill: Any) -> Any:
        """`x` with gaps and padding, so that what is left are windows without either."""
        return dilate_and_pad(x, self.padding, self.base_dilation, range(len(self.dimensions)), fill)

    def pad_host(self, x: np.ndarray, fill: Any) -> np.ndarray:
        """The same for an ndarray."""
        config = tuple((*pad, b - 1) for pad, b in zip(self.padding, self.base_dilation, strict=True))
        return pad_p.host(x, fill, padding_config=config) if any(map(any, config)) else x

    def places(self, tap: Sequence[int], counts: Sequence[int]) -> tuple[Any, ...]:
        """An index for the element `tap` of each window in a padded array, which gives a view."""
        return ..., *(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, n, s, d in zip(tap, counts, self.strides, self.dilation, strict=True)
        )

    def elements(self, x: Any, tap: Sequence[int], counts: Sequence[int]) -> Any:
        """The element `tap` of each window, from a padded array."""
        for axis, (t, n, s, d) in enumerate(zip(tap, counts, self.strides, self.dilation, strict=True)):
            x = take_every(x, axis, t * d, n, s)
        return x


def check_windows(name: str, avals: Sequence[ShapedArray], windows: Windows) -> tuple[int, ...]:
    """The shape of the result; TypeError if windows don't fit."""
    (x, *_) = avals
    if len(windows.dimensions) != x.ndim:
        raise TypeError(f"lax.{name}: windows must have {x.ndim} axes, those of {x.str_short()}, got {windows}")
    return windows.shape(x.shape)


# A window is reduced axis by axis, and along an axis in few steps: windows of twice the length are made of two.


def doubles(window: int, stride: int) -> bool:
    """Whether it takes less to make windows of windows of half the length, than to go through their elements."""
    return window > 2 * stride * window.bit_length()


def along_steps(window: int, stride: int) -> int:
    """About how many operations `along` does."""
    return 2 * window.bit_length() if doubles(window, stride) else window


def along(
    combine: Callable[[Any, Any], Any],
    take: Callable[[Any, int, int, int, int], Any],
    x: Any,
    axis: int,
    count: int,
    window: int,
    stride: int,
    dilation: int,
) -> Any:
    """Reduce windows along an axis by an associative function of neighbours, elementwise on arrays.

    ``take(x, axis, start, count, step)`` takes elements.
    """
    if not doubles(window, stride):
        out = take(x, axis, 0, count, stride)
        for k in range(1, window):
            out = combine(out, take(x, axis, k * dilation, count, stride))
        return out
    # Windows of length 1, 2, 4, ...; those in the binary representation of the length make up the whole.
    span = (count - 1) * stride + 1
    out, done, size = None, 0, 1
    while True:
        if window & size:
            piece = take(x, axis, done * dilation, span, 1)
            out = piece if out is None else combine(out, piece)
            done += size
        if done == window:
            return take(out, axis, 0, count, stride)
        length = span + (window - 2 * size) * dilation
        x = combine(take(x, axis, 0, length, 1), take(x, axis, size * dilation, length, 1))
        size *= 2


def take_host(x: np.ndarray, axis: int, start: int, count: int, step: int) -> np.ndarray:
    return x[(slice(None),) * axis + (slice(start, start + (count - 1) * step + 1, step),)]


def dilate(x: Any, fill: Any, windows: Windows) -> Any:
    """`x` with gaps and padding that hold the scalar `fill`."""
    config = tuple((*pad, b - 1) for pad, b in zip(windows.padding, windows.base_dilation, strict=True))
    return pad_p.bind(x, fill, padding_config=config)


_dilate = lower_as(dilate)


def lower_windows(
    ctx: Context, xs: list[Value], init: list[Value], windows: Windows, body: Callable[..., list[Value]]
) -> list[Value]:
    """Write stablehlo.reduce_window."""
    shape = windows.shape(xs[0].shape)
    if 0 in shape:
        return [ctx.broadcast(i, shape) for i in init]
    # It can't crop, and is slow with gaps.
    if any(n < 0 for pair in windows.padding for n in pair) or any(b > 1 for b in windows.base_dilation):
        xs = [_dilate(ctx, x, i, windows=windows) for x, i in zip(xs, init, strict=True)]
        ones = (1,) * len(shape)
        windows = Windows(windows.dimensions, windows.strides, ((0, 0),) * len(shape), ones, windows.dilation)
    scalars = [i.aval for i in init]
    pads = f"dense<{[list(p) for p in windows.padding]}>" if windows.padding else "dense<>"
    attributes = (
        f"window_dimensions = {i64s(windows.dimensions)}, window_strides = {i64s(windows.strides)}, "
        f"base_dilations = {i64s(windows.base_dilation)}, window_dilations = {i64s(windows.dilation)}, "
        f"padding = {pads} : tensor<{len(shape)}x2xi64>"
    )
    outs = [x.aval.update(shape=shape) for x in xs]
    return ctx.op("reduce_window", [*xs, *init], outs, attributes, [ctx.region(body, [*scalars, *scalars])])
