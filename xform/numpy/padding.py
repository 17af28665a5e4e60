"""`pad`, with all modes of NumPy.

Modes that repeat elements of the array (edge, reflect, symmetric, wrap) are a few slices and reversals joined: where
each element comes from is found by padding the places 0, 1, ... with NumPy, and runs of consecutive places are slices.

May import: the other modules of `xform.numpy`.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.lax.conversion import convert
from xform.lax.shapes import broadcast_in_dim_p, rev_p
from xform.lax.slicing import pad_p, slice_in_dim
from xform.numpy import host_forms, manipulation, reductions, statistics, ufuncs
from xform.numpy.fast import short_way
from xform.numpy.joining import concatenate
from xform.numpy.promotion import array_of, concrete, is_several, shown
from xform.numpy.ranges import linspace

_KEYWORDS = {
    "constant": ("constant_values",), "edge": (), "empty": (), "wrap": (), "linear_ramp": ("end_values",),
    "maximum": ("stat_length",), "mean": ("stat_length",), "median": ("stat_length",), "minimum": ("stat_length",),
    "reflect": ("reflect_type",), "symmetric": ("reflect_type",),
}  # fmt: skip


def _pairs(arg: str, value: Any, array: Array) -> list[tuple[Any, Any]]:
    """A pair per axis from one value, one pair, one value per axis or a pair per axis, as NumPy understands them."""
    ndim = array.ndim
    if isinstance(value, dict):
        pairs = [(0, 0)] * ndim
        for axis, v in value.items():
            pairs[axis] = (v, v) if np.ndim(v) == 0 else tuple(v)
        return pairs
    rows = value if is_several(value) else ((value, value),)
    rows = [tuple(r) if is_several(r) else r for r in rows]
    if all(not isinstance(r, tuple) for r in rows):
        rows = [tuple(rows)]
    rows = [r * 2 if len(r) == 1 else r for r in rows]
    if len(rows) == 1:
        rows = rows * ndim
    if len(rows) != ndim or any(len(r) != 2 for r in rows):
        raise ValueError(
            f"numpy.pad: {arg}={value!r} could not be broadcast to a pair for each of the {ndim} axes of {shown(array)}"
        )
    return rows


@short_way(host_forms.pad, "fd", plain="pad_width mode constant_values end_values stat_length reflect_type")
def pad(array: Any, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """Elements put around an array.

    Differs from NumPy: a function as mode returns the padded vector instead of changing it.

    Parameters
    ----------
    pad_width : int, pair, pair per axis, or dict of axes
        How many before and behind; known when tracing.
    mode : str or function
        'constant' (with `constant_values`, by default 0), 'edge', 'linear_ramp' (to `end_values`), 'maximum', 'mean',
        'median', 'minimum' (of `stat_length` elements), 'reflect', 'symmetric' (with ``reflect_type='odd'`` mirrored
        at the edge value, too), 'wrap', 'empty' (zeros). A function gets ``(vector, (before, behind), axis, kwargs)``
        for vectors padded with zeros, and returns (NumPy: changes) them.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.pad(xnp.array([1, 2, 3]), (2, 1), mode="reflect").tolist()
    [3, 2, 1, 2, 3, 2]
    """
    array = array_of("pad", array, "array")
    if not isinstance(pad_width, dict | list | tuple):
        pad_width = concrete("pad", pad_width, "pad_width", "It decides the shape of the result.").tolist()
    widths = []
    for low, high in _pairs("pad_width", pad_width, array):
        try:
            low, high = operator.index(low), operator.index(high)
        except TypeError:
            raise TypeError(f"numpy.pad: pad_width must be of integral type, got {pad_width!r}") from None
        if low < 0 or high < 0:
            raise ValueError(f"numpy.pad: index can't contain negative values, got pad_width={pad_width!r}")
        widths.append((low, high))
    if callable(mode):
        return _by_function(array, widths, mode, kwargs)
    if mode not in _KEYWORDS:
        raise ValueError(f"numpy.pad: mode {mode!r} is not supported, but {', '.join(_KEYWORDS)}, or a function")
    unknown = set(kwargs) - set(_KEYWORDS[mode])
    if unknown:
        raise ValueError(f"numpy.pad: unsupported keyword arguments for mode {mode!r}: {', '.join(sorted(unknown))}")
    if mode in ("constant", "empty"):
        return _constant(array, widths, kwargs.get("constant_values", 0))
    for axis, (width, n) in enumerate(zip(widths, array.shape, strict=True)):
        if width != (0, 0) and not n:
            raise ValueError(
                f"numpy.pad: can't extend empty axis {axis} using modes other than 'constant' or 'empty', got "
                f"mode={mode!r} and {shown(array)}"
            )
    for axis, (low, high) in enumerate(widths):
        if low or high:
            array = _along(array, axis, low, high, mode, kwargs)
    return array


def _constant(array: Array, widths: list[tuple[int, int]], values: Any) -> Array:
    pairs = _pairs("constant_values", values, array)
    scalars = {id(v): convert(array_of("pad", v, "constant_values"), array.dtype) for pair in pairs for v in pair}
    first = pairs[0][0] if pairs else 0
    if all(v is first for pair in pairs for v in pair):
        config = tuple((low, high, 0) for low, high in widths)
        return pad_p.bind(array, scalars.get(id(first), array.dtype.type(0)), padding_config=config) if pairs else array
    for axis, ((low, high), (before, behind)) in enumerate(zip(widths, pairs, strict=True)):
        zero = (0, 0, 0)
        for place, value in (((low, 0, 0), before), ((0, high, 0), behind)):
            config = tuple(place if d == axis else zero for d in range(array.ndim))
            array = pad_p.bind(array, scalars[id(value)], padding_config=config)
    return array


def _along(array: Array, axis: int, low: int, high: int, mode: str, kwargs: dict[str, Any]) -> Array:
    n = array.shape[axis]
    if mode == "linear_ramp":
        return _ramp(array, axis, low, high, _pairs("end_values", kwargs.get("end_values", 0), array)[axis])
    if mode in ("maximum", "mean", "median", "minimum"):
        lengths = _pairs("stat_length", kwargs.get("stat_length"), array)[axis]
        parts = [array]
        for count, length, front in ((low, lengths[0], True), (high, lengths[1], False)):
            length = n if length is None else min(operator.index(length), n)
            if length < 1:
                raise ValueError(f"numpy.pad: stat_length must be positive, got {kwargs.get('stat_length')!r}")
            chosen = (
                slice_in_dim(array, 0, length, axis=axis) if front else slice_in_dim(array, n - length, n, axis=axis)
            )
            found = _repeated(_statistic(chosen, axis, mode), axis, count)
            parts = [found, *parts] if front else [*parts, found]
        return concatenate(parts, axis)
    if kwargs.get("reflect_type", "even") == "odd":
        return _odd(array, axis, low, high, mode)
    if kwargs.get("reflect_type", "even") != "even":
        raise ValueError(f"numpy.pad: reflect_type must be 'even' or 'odd', got {kwargs['reflect_type']!r}")
    return _assembled(array, axis, np.pad(np.arange(n), (low, high), mode))  # type: ignore[call-overload]


def _assembled(array: Array, axis: int, places: np.ndarray) -> Array:
    """The elements at these places along an axis, as slices of consecutive ones."""
    parts = []
    start = 0
    while start < len(places):
        stop = start + 1
        step = places[stop] - places[start] if stop < len(places) else 1
        if step in (-1, 0, 1):
            while stop < len(places) and places[stop] - places[stop - 1] == step:
                stop += 1
        first, last = int(places[start]), int(places[stop - 1])
        if step == 0 and stop - start > 1:
            parts.append(_repeated(slice_in_dim(array, first, first + 1, axis=axis), axis, stop - start))
        elif step == -1 and stop - start > 1:
            parts.append(rev_p.bind(slice_in_dim(array, last, first + 1, axis=axis), dimensions=(axis,)))
        elif last + 1 - first == array.shape[axis]:
            parts.append(array)
        else:
            parts.append(slice_in_dim(array, first, last + 1, axis=axis))
        start = stop
    return concatenate(parts, axis)


def _repeated(x: Array, axis: int, count: int) -> Array:
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=tuple(range(x.ndim)))


def _statistic(x: Array, axis: int, mode: str) -> Array:
    if mode in ("maximum", "minimum"):
        return (reductions.max if mode == "maximum" else reductions.min)(x, axis, keepdims=True)
    found = (reductions.mean if mode == "mean" else statistics.median)(x, axis, keepdims=True)
    return convert(ufuncs.rint(found) if dtypes.kinds[x.dtype] in "iu" else found, x.dtype)


def _ramp(array: Array, axis: int, low: int, high: int, ends: tuple[Any, Any]) -> Array:
    n = array.shape[axis]
    edges = slice_in_dim(array, 0, 1, axis=axis), slice_in_dim(array, n - 1, n, axis=axis)
    parts = [array]
    for count, edge, end, front in ((low, edges[0], ends[0], True), (high, edges[1], ends[1], False)):
        edge = manipulation.squeeze(edge, axis)
        line = linspace(
            convert(array_of("pad", end, "end_values"), array.dtype), edge, count, False, dtype=array.dtype, axis=axis
        )
        parts = [line, *parts] if front else [*parts, manipulation.flip(line, axis)]
    return concatenate(parts, axis)


def _odd(array: Array, axis: int, low: int, high: int, mode: str) -> Array:
    """Mirrored at the edge and at the edge value: 2 * edge - mirrored, as often as is needed."""
    skip = 1 if mode == "reflect" else 0
    if array.shape[axis] == 1 and skip:
        return _assembled(array, axis, np.zeros(low + 1 + high, int))
    while low or high:
        n = array.shape[axis]
        before, behind = min(low, n - skip), min(high, n - skip)
        parts = [array]
        if before:
            mirrored = rev_p.bind(slice_in_dim(array, skip, skip + before, axis=axis), dimensions=(axis,))
            parts.insert(0, 2 * slice_in_dim(array, 0, 1, axis=axis) - mirrored)
        if behind:
            mirrored = rev_p.bind(slice_in_dim(array, n - skip - behind, n - skip, axis=axis), dimensions=(axis,))
            parts.append(2 * slice_in_dim(array, n - 1, n, axis=axis) - mirrored)
        array = concatenate(parts, axis)
        low, high = low - before, high - behind
    return array


def _by_function(
    array: Array, widths: list[tuple[int, int]], function: Callable[..., Any], kwargs: dict[str, Any]
) -> Array:
    from xform.numpy.functional import apply_along_axis

    array = _constant(array, widths, 0)
    for axis, width in enumerate(widths):
        array = apply_along_axis(lambda v: function(v, width, axis, kwargs), axis, array)  # noqa: B023
    return array
