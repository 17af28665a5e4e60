"""Convolution on the host: products of matrices whose rows are windows of the input.

Windows are views, made by strides; blocks of them are copied into a matrix of a size that stays in the cache, and
multiplied by BLAS (K. Chellapilla, S. Puri, P. Simard, "High performance convolutional neural networks for document
processing", 2006).

May import: NumPy, `lax.convolution.phases`.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xform.lax.convolution.phases import Phase, phases

BLOCK = 1 << 17  # elements of a matrix of windows: half of a cache of 2 MB


def convolve(
    x: np.ndarray,
    w: np.ndarray,
    out: np.ndarray,
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
) -> None:
    """Convolve x (group, batch, feature, *spatial) with w (group, output feature, feature, *spatial).

    The result is added to `out` (group, batch, output feature, *spatial), which is zero.
    """
    if not out.size or not x.size or not w.size:
        return
    if x.dtype.kind in "iu" and _exact_in_float64(x, w):
        exact = np.zeros(out.shape)
        convolve(x.astype(np.float64), w.astype(np.float64), exact, strides, padding, lhs_dilation, rhs_dilation)
        out[...] = exact.astype(np.int64)
        return
    sizes = zip(x.shape[3:], out.shape[3:], w.shape[3:], strides, padding, lhs_dilation, rhs_dilation, strict=True)
    whole = (slice(None),) * 3
    for combination in itertools.product(*(phases(*axis) for axis in sizes)):
        if all(p.taps for p in combination):
            kernel = w[(*whole, *(slice(p.first_tap, None, p.tap_step) for p in combination))]
            result = out[(*whole, *(slice(p.index, None, p.step) for p in combination))]
            _phase(_pad(x, [p.pad for p in combination]), kernel, result, combination)


def _exact_in_float64(x: np.ndarray, w: np.ndarray) -> bool:
    """Whether no sum of products can exceed the integers that float64 holds."""
    largest = [max(abs(int(a.max())), abs(int(a.min()))) for a in (x, w)]
    return largest[0] * largest[1] * math.prod(w.shape[2:]) < 1 << 53


def _pad(x: np.ndarray, padding: Sequence[tuple[int, int]]) -> np.ndarray:
    """`x` padded with zeros, or cropped, along its spatial axes; in memory its axes keep their order."""
    shape = list(x.shape)
    target, source = [slice(None)] * 3, [slice(None)] * 3
    for axis, (low, high) in enumerate(padding, 3):
        n = x.shape[axis]
        shape[axis] = low + n + high
        first, last = max(0, -low), min(n, n + high)
        source.append(slice(first, max(first, last)))
        target.append(slice(first + low, max(first, last) + low))
    if all(low <= 0 and high <= 0 for low, high in padding):
        return x[tuple(source)]
    order = np.argsort([-abs(s) for s in x.strides], kind="stable")
    out = np.zeros([shape[i] for i in order], x.dtype).transpose(np.argsort(order))
    if all(s.start < s.stop for s in source[3:]):
        out[tuple(target)] = x[tuple(source)]
    return out


def _phase(x: np.ndarray, w: np.ndarray, out: np.ndarray, plan: Sequence[Phase]) -> None:
    """Convolution without padding and gaps in the input."""
    single = x.shape[2] == w.shape[1] == 1
    if single and len(plan) == 1 and plan[0].stride == plan[0].dilation == 1:
        for g, n in np.ndindex(x.shape[:2]):
            out[g, n, 0] = np.correlate(x[g, n, 0], w[g, 0, 0].conj(), "valid")
        return
    spatial = x.strides[3:]
    windows = np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:3], *(p.count for p in plan), *(p.taps for p in plan)),
        (
            *x.strides[:3],
            *(s * p.stride for s, p in zip(spatial, plan, strict=True)),
            *(s * p.dilation for s, p in zip(spatial, plan, strict=True)),
        ),
        writeable=False,
    )
    if single:
        _add_taps(windows, w, out)
    else:
        _multiply(windows, w, out)


def _blocks(shape: Sequence[int], row: int) -> Iterator[tuple[slice, ...]]:
    """Slices of the axes (batch, first spatial, ...) of a result, whose elements need rows of `row` elements."""
    batch, first, *rest = shape if len(shape) > 1 else (*shape, 1)
    rows = max(1, BLOCK // row)
    inner = math.prod(rest)
    images = max(1, rows // (first * inner))
    lines = first if images > 1 else max(1, rows // inner)
    for n in range(0, batch, images):
        for p in range(0, first, lines):
            yield (slice(n, n + images), slice(p, p + lines))[: len(shape)]


def _add_taps(windows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """One feature in, one out, in each group: a sum over the elements of the kernel."""
    ndim = w.ndim - 3
    taps: Any = w[:, 0, 0].reshape(len(w), *(1,) * (ndim + 1), *w.shape[3:])
    for at in _blocks((out.shape[1], *out.shape[3:]), 2 * len(w)):
        place: Any = (slice(None), at[0], 0, *at[1:])
        view, total = windows[place], out[place]
        for tap in np.ndindex(w.shape[3:]):
            total += view[(..., *tap)] * taps[(..., *tap)]


def _multiply(windows: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    """Copy blocks of windows into matrices, and multiply."""
    ndim = w.ndim - 3
    n, c = [0], [1]
    p, k = list(range(2, 2 + ndim)), list(range(2 + ndim, 2 + 2 * ndim))
    # The axes of the matrix: the last one should be long, and contiguous in the input.
    lengths, steps = windows.shape[1:], windows.strides[1:]
    nearest = min((abs(s) for s, size in zip(steps, lengths, strict=True) if size > 1), default=0)

    def run(axes: Sequence[int]) -> int:
        return max((lengths[i] * (1 + 3 * (abs(steps[i]) == nearest)) for i in axes[-1:]), default=1)

    rows_first = max(run(c), run(k)) > max(run(n), run(p))
    rows = [*n, *p] if run(p) >= run(n) else [*p, *n]
    columns = [*k, *c] if run(c) >= run(k) else [*c, *k]
    n_columns = math.prod(lengths[i] for i in columns)
    for g in range(len(out)):
        kernel = w[g].transpose([0, *(i if i == 1 else i - ndim for i in columns)]).reshape(w.shape[1], n_columns)
        for at in _blocks((out.shape[1], *out.shape[3:]), n_columns):
            place = (at[0], slice(None), *at[1:])
            block, target = windows[g][place], out[g][place]
            shape = [block.shape[i] for i in rows]
            if rows_first:
                matrix = block.transpose(rows + columns).reshape(-1, n_columns)
                result = (matrix @ kernel.T).reshape(*shape, len(kernel))
                target.transpose([*rows, 1])[...] = result
            else:
                matrix = block.transpose(columns + rows).reshape(n_columns, -1)
                result = (kernel @ matrix).reshape(len(kernel), *shape)
                target.transpose([1, *rows])[...] = result
