"""Strided pieces of arrays: all windows along an axis, padding with gaps, arrays woven into one.

What convolutions and windowed reductions are made of where XLA's own operations for them are slow.

May import: `lax.shapes`, `lax.slicing`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.lax.shapes import full, reshape
from xform.lax.slicing import concatenate, pad_p, replaced, static_slice


def dilate_and_pad(
    x: Any, pads: Sequence[tuple[int, int]], dilation: Sequence[int], axes: Sequence[int], fill: Any
) -> Any:
    """`x` with gaps between its elements along `axes`, and padding (or, if negative, cropping) at the ends."""
    config = [(0, 0, 0)] * get_aval(x).ndim
    for axis, (low, high), d in zip(axes, pads, dilation, strict=True):
        config[axis] = (low, high, d - 1)
    if all(c == (0, 0, 0) for c in config):
        return x
    return pad_p.bind(x, np.asarray(fill, x.dtype)[()], padding_config=tuple(config))


def take_every(x: Any, axis: int, start: int, count: int, step: int) -> Any:
    """``count`` elements along an axis, from `start`, `step` apart."""
    shape = get_aval(x).shape
    limit = start + (count - 1) * step + 1 if count else start
    if (start, limit, step) == (0, shape[axis], 1):
        return x
    return static_slice(
        x, replaced([0] * len(shape), axis, start), replaced(shape, axis, limit), replaced([1] * len(shape), axis, step)
    )


def unfold(x: Any, axis: int, window: int, count: int, stride: int, dilation: int, new_axis: int) -> Any:
    """All windows along an axis: it becomes the axis of `count` windows, the elements of each are along `new_axis`.

    ``out[..., p, ..., k, ...] = x[..., p * stride + k * dilation, ...]``, with `new_axis` counted in the result.
    """
    pieces = [take_every(x, axis, k * dilation, count, stride) for k in range(window)]
    shape = list(get_aval(pieces[0]).shape)
    shape.insert(new_axis, 1)
    return concatenate([reshape(piece, shape) for piece in pieces], new_axis)


def interleave(pieces: Sequence[Any], axis: int, length: int) -> Any:
    """Weave arrays along an axis: element ``i`` of the result is element ``i // n`` of piece ``i % n``.

    The pieces have ``ceil((length - i) / n)`` elements each.
    """
    n = len(pieces)
    if n == 1:
        return pieces[0]
    count = -(-length // n)
    shape = list(get_aval(pieces[0]).shape)
    shape[axis : axis + 1] = [count, 1]
    full = [dilate_and_pad(p, [(0, count - get_aval(p).shape[axis])], [1], [axis], 0) for p in pieces]
    woven = concatenate([reshape(p, shape) for p in full], axis + 1)
    shape[axis : axis + 2] = [count * n]
    return take_every(reshape(woven, shape), axis, 0, length, 1)


def weave(
    pieces: Mapping[tuple[int, ...], Any], axes: Sequence[int], steps: Sequence[int], shape: Sequence[int], dtype: Any
) -> Any:
    """Interleave along several axes: ``pieces[i, j, ...]`` are the elements from i, j, ... on, `steps` apart.

    Pieces that are missing are zero. `shape` is that of the result.
    """

    def part(at: tuple[int, ...]) -> Any:
        k = len(at)
        if k < len(axes):
            n = shape[axes[k]]
            return interleave([part((*at, i)) for i in range(min(steps[k], n))], axes[k], n)
        if at in pieces:
            return pieces[at]
        lengths = list(shape)
        for axis, i, step in zip(axes, at, steps, strict=True):
            lengths[axis] = -(-(shape[axis] - i) // step)
        return full(lengths, 0, dtype)

    return part(())
