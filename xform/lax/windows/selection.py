"""Selecting the extreme element of each window: what the derivatives of maxima over windows need.

The derivative passes on the tangent of the element that attains the maximum, the first one if there are several.
`select_and_gather_add` gathers tangents from these places; `select_and_scatter_add`, its transpose, adds to them.

May import: `lax.windows.geometry`, `lax.reductions`, `lax.strided` and what is below them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.jet import locally_linear
from xform.interpreters.lowering import Context, Value, i64s, lower_as
from xform.interpreters.tangents import Zero, zero_of
from xform.lax import families
from xform.lax.arithmetic import add_p
from xform.lax.bitwise import and_p, or_p
from xform.lax.comparison import eq_p, gt_p, lt_p, ne_p, select_n_p
from xform.lax.conversion import convert
from xform.lax.reductions import accumulator, highest, lowest
from xform.lax.shapes import full
from xform.lax.slicing import pad_p
from xform.lax.strided import dilate_and_pad, take_every, weave
from xform.lax.windows.geometry import Windows, check_windows, lower_windows

UNROLLED = 128  # elements of a window along an axis up to which each is an operation of its own


# NaN is more extreme than any number; gaps and padding are less extreme. Axes are treated one by one: the first element
# of a window that attains the extreme is in the first of its rows that does.


_has_nan = families.KINDS["float"]


def _worst(select: str, dtype: np.dtype) -> Any:
    return lowest(dtype) if select == "max" else highest(dtype)


def _first_places(
    x: np.ndarray, counts: tuple[int, ...], select: str, windows: Windows
) -> tuple[np.ndarray, np.ndarray]:
    """For each window of a padded array, the element that is selected, and its number."""
    compare = np.less_equal if select == "max" else np.greater_equal
    index = np.zeros(counts, np.min_scalar_type(math.prod(windows.dimensions)))
    best: Any = None
    for k, tap in enumerate(windows.taps()):
        new = x[windows.places(tap, counts)]
        if best is None:
            best = new.copy()
            continue
        better = ~compare(new, best)
        if x.dtype.kind not in "iub":
            better &= best == best
        np.copyto(best, new, where=better)
        np.copyto(index, index.dtype.type(k), where=better)
    return best, index


def _select(x: Any, counts: tuple[int, ...], select: str, windows: Windows, values: Callable[[int, Any], Any]) -> Any:
    """For each window the selected element, and its ``values(k, tap)``, in terms of primitives."""
    compare = gt_p if select == "max" else lt_p
    best = out = None
    for k, tap in enumerate(windows.taps()):
        new, value = windows.elements(x, tap, counts), values(k, tap)
        if best is None:
            best, out = new, value
            continue
        better = compare.bind(new, best)
        if _has_nan(x.dtype):
            better = or_p.bind(better, and_p.bind(ne_p.bind(new, new), eq_p.bind(best, best)))
        best, out = select_n_p.bind(better, best, new), select_n_p.bind(better, out, value)
    return best, out


# select_and_gather_add(tangents, operand): of each window, the tangent that stands where the operand's extreme is.


def _gather_types(t: ShapedArray, x: ShapedArray, *, select: str, windows: Windows) -> ShapedArray:
    families.check_kind("select_and_gather_add", [t, x], "real")
    if t.shape != x.shape:
        raise TypeError(
            f"lax.select_and_gather_add: tangents and operand must have one shape, got {t.str_short()} and "
            f"{x.str_short()}"
        )
    return ShapedArray(check_windows("select_and_gather_add", [x], windows), t.dtype)


def _gather_host(t: Any, x: Any, *, select: str, windows: Windows) -> Any:
    if 0 in windows.shape(x.shape):
        return np.zeros(windows.shape(x.shape), t.dtype)
    for axis in windows.one_by_one():
        counts = axis.shape(x.shape)
        x, index = _first_places(axis.pad_host(x, _worst(select, x.dtype)), counts, select, axis)
        t, out = axis.pad_host(t, 0), np.zeros(counts, t.dtype)
        for k, tap in enumerate(axis.taps()):
            np.copyto(out, t[axis.places(tap, counts)], where=index == k)
        t = out
    return t


def _gather_transpose(ct: Any, t: Any, x: Any, *, select: str, windows: Windows) -> list[Any]:
    return [select_and_scatter_add_p.bind(ct, x, select=select, windows=windows), None]


def _select_jvp(p: Primitive) -> Callable[..., Any]:
    """Linear in the first operand, piecewise constant in the second."""

    def jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
        (source, x), (t, _) = primals, ts
        out = p.bind(source, x, **params)
        return out, zero_of(out) if type(t) is Zero else p.bind(t, x, **params)

    return jvp


def _select_batch(p: Primitive) -> Callable[..., Any]:
    def batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, select: str, windows: Windows) -> Any:
        target = next(d for d in dims if d is not None)
        args = [batching.move_to(a, d, axis.size, target) for a, d in zip(args, dims, strict=True)]
        return p.bind(*args, select=select, windows=windows.with_axis(target)), target

    return batch


def _gather_unrolled(t: Any, x: Any, *, select: str, windows: Windows) -> Any:
    for axis in windows.one_by_one():
        x, t = _gather_along(_pad(x, select, axis), axis.pad(t, 0), axis.shape(x.shape), select, axis)
    return t


def _gather_along(x: Any, t: Any, counts: tuple[int, ...], select: str, axis: Windows) -> tuple[Any, Any]:
    return _select(x, counts, select, axis, lambda k, tap: axis.elements(t, tap, counts))


def _lower_unrolled(ctx: Context, function: Callable[..., Any], source: Value, x: Value, **params: Any) -> Value:
    """Without the barrier what makes the operands may be fused, and computed for each element of the window."""
    operands = ctx.op("optimization_barrier", [source, x], [source.aval, x.aval])
    return lower_as(function)(ctx, *operands, **params)


def _gather_lower(ctx: Context, t: Value, x: Value, *, select: str, windows: Windows) -> Value:
    if 0 in ctx.out.shape:
        return ctx.full(ctx.out.shape, 0, t.dtype)
    if ctx.platform == "cpu" and max(windows.dimensions, default=1) <= UNROLLED:
        return _lower_unrolled(ctx, _gather_unrolled, t, x, select=select, windows=windows)
    init = [ctx.constant(_worst(select, x.dtype), x.dtype), ctx.constant(0, t.dtype)]

    def body(ctx: Context, a: Value, ta: Value, b: Value, tb: Value) -> list[Value]:
        keep = families.compare(ctx, a, b, "GE" if select == "max" else "LE")
        if _has_nan(x.dtype):
            keep = ctx.op("or", [keep, families.compare(ctx, a, a, "NE")], keep.aval)
        return [ctx.op("select", [keep, *pair], pair[0].aval) for pair in ((a, b), (ta, tb))]

    return lower_windows(ctx, [x, t], init, windows, body)[1]


select_and_gather_add_p = Primitive("select_and_gather_add")
select_and_gather_add_p.abstract_eval = _gather_types
select_and_gather_add_p.host = _gather_host
select_and_gather_add_p.jvp = _select_jvp(select_and_gather_add_p)
select_and_gather_add_p.jet = locally_linear(select_and_gather_add_p)
select_and_gather_add_p.transpose = _gather_transpose
select_and_gather_add_p.batch = _select_batch(select_and_gather_add_p)
select_and_gather_add_p.lower = _gather_lower


# select_and_scatter_add(source, operand): each window's source added to where the operand's extreme is.


def _scatter_types(source: ShapedArray, x: ShapedArray, *, select: str, windows: Windows) -> ShapedArray:
    families.check_kind("select_and_scatter_add", [source, x], "real number")
    if source.shape != check_windows("select_and_scatter_add", [x], windows):
        raise TypeError(
            f"lax.select_and_scatter_add: source must have one element for each window of {x.str_short()}, shape "
            f"{windows.shape(x.shape)}, got {source.str_short()}"
        )
    return ShapedArray(x.shape, source.dtype)


def _scatter_host(source: Any, x: Any, *, select: str, windows: Windows) -> Any:
    if not source.size or not x.size:
        return np.zeros(x.shape, source.dtype)
    stages = []
    for axis in windows.one_by_one():
        padded = axis.pad_host(x, _worst(select, x.dtype))
        x, index = _first_places(padded, axis.shape(x.shape), select, axis)
        stages.append((axis, index, padded.shape))
    out = source.astype(accumulator(source.dtype), copy=False)
    for axis, index, shape in reversed(stages):
        total = np.zeros(shape, out.dtype)
        for k, tap in enumerate(axis.taps()):
            region = total[axis.places(tap, out.shape)]
            np.add(region, out, out=region, where=index == k)
        crop = tuple((-low, -high, 0) for low, high in axis.padding)
        out = pad_p.host(total, 0, padding_config=crop) if any(map(any, crop)) else total
        out = out[tuple(slice(None, None, b) for b in axis.base_dilation)]
    return out.astype(source.dtype, copy=False)


def _scatter_transpose(ct: Any, source: Any, x: Any, *, select: str, windows: Windows) -> list[Any]:
    return [select_and_gather_add_p.bind(ct, x, select=select, windows=windows), None]


def _pad(x: Any, select: str, windows: Windows) -> Any:
    """`x` with gaps and padding that are not selected."""
    return windows.pad(x, _worst(select, x.dtype))


def _unpad(out: Any, windows: Windows) -> Any:
    """Undo `Windows.pad`."""
    axes = range(len(windows.dimensions))
    out = dilate_and_pad(out, [(-low, -high) for low, high in windows.padding], [1 for _ in axes], axes, 0)
    for axis, b in enumerate(windows.base_dilation):
        out = take_every(out, axis, 0, -(-out.shape[axis] // b), b)
    return out


def _scatter_unrolled(source: Any, x: Any, *, select: str, windows: Windows) -> Any:
    stages = []
    for axis in windows.one_by_one():
        counts = axis.shape(x.shape)
        x = _pad(x, select, axis)
        shape = x.shape
        x, index = _index_along(x, counts, select, axis)
        stages.append((axis, index, shape))
    out = convert(source, accumulator(source.dtype))
    for axis, index, shape in reversed(stages):
        out = _unpad(_scatter_along(out, index, shape, axis), axis)
    return convert(out, source.dtype)


def _index_along(x: Any, counts: tuple[int, ...], select: str, axis: Windows) -> tuple[Any, Any]:
    return _select(x, counts, select, axis, lambda k, tap: full(counts, np.int32(k), np.int32))


def _scatter_along(source: Any, index: Any, shape: tuple[int, ...], axis: Windows) -> Any:
    """For each place in a window, the sources of the windows that selected it, moved there, in a padded array.

    With strides, the elements fall into classes that different places in the windows reach; these are interleaved.
    """
    counts, zero = source.shape, np.zeros((), source.dtype)[()]
    classes: dict[tuple[int, ...], Any] = {}
    for k, tap in enumerate(axis.taps()):
        at, pads = [], []
        for t, d, s, n, count in zip(tap, axis.dilation, axis.strides, shape, counts, strict=True):
            shift, first = divmod(t * d, s)
            at.append(first)
            pads.append((shift, -(-(n - first) // s) - count - shift))
        term = select_n_p.bind(eq_p.bind(index, np.int32(k)), zero, source)
        term = dilate_and_pad(term, pads, [1] * len(pads), range(len(pads)), 0)
        classes[tuple(at)] = add_p.bind(classes[tuple(at)], term) if tuple(at) in classes else term
    return weave(classes, range(len(counts)), axis.strides, shape, source.dtype)


_lower_pad, _lower_unpad = lower_as(_pad), lower_as(_unpad)


def _scatter_lower(ctx: Context, source: Value, x: Value, *, select: str, windows: Windows) -> Value:
    if 0 in source.shape or 0 in x.shape:
        return ctx.full(ctx.out.shape, 0, source.dtype)
    unrolled = ctx.platform == "cpu" and max(windows.dimensions, default=1) <= UNROLLED
    if unrolled or any(d > 1 for d in windows.dilation):
        return _lower_unrolled(ctx, _scatter_unrolled, source, x, select=select, windows=windows)
    out, wide = ctx.out, accumulator(source.dtype)
    padded = _lower_pad(ctx, x, select=select, windows=windows)
    scalar, selected = ShapedArray((), wide), ShapedArray((), x.dtype)

    def choose(ctx: Context, a: Value, b: Value) -> list[Value]:
        keep = families.compare(ctx, a, b, "GE" if select == "max" else "LE")
        if _has_nan(x.dtype):
            keep = ctx.op("or", [keep, families.compare(ctx, a, a, "NE")], keep.aval)
        return [keep]

    regions = [
        ctx.region(choose, [selected, selected]),
        ctx.region(lambda ctx, a, b: [ctx.op("add", [a, b], scalar)], [scalar, scalar]),
    ]
    n = len(source.shape)
    zeros = str([[0, 0]] * n) if n else ""
    attributes = (
        f"window_dimensions = {i64s(windows.dimensions)}, window_strides = {i64s(windows.strides)}, "
        f"padding = dense<{zeros}> : tensor<{n}x2xi64>"
    )
    operands = [padded, ctx.convert(source, wide), ctx.constant(0, wide)]
    result = ctx.op("select_and_scatter", operands, padded.aval.update(dtype=wide), attributes, regions)
    return ctx.convert(_lower_unpad(ctx, result, windows=windows), out.dtype)


select_and_scatter_add_p = Primitive("select_and_scatter_add")
select_and_scatter_add_p.abstract_eval = _scatter_types
select_and_scatter_add_p.host = _scatter_host
select_and_scatter_add_p.jvp = _select_jvp(select_and_scatter_add_p)
select_and_scatter_add_p.jet = locally_linear(select_and_scatter_add_p)
select_and_scatter_add_p.transpose = _scatter_transpose
select_and_scatter_add_p.batch = _select_batch(select_and_scatter_add_p)
select_and_scatter_add_p.lower = _scatter_lower
