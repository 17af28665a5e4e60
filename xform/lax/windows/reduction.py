"""Reductions over windows.

May import: `lax.windows.selection`, `lax.reductions`, `lax.strided` and what is below them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import tree
from xform.core.array import get_aval, host_value
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive, Tracer
from xform.interpreters.jet import linear, locally_linear
from xform.interpreters.lowering import Context, Value, lower_as
from xform.interpreters.tangents import Zero, zero_of
from xform.lax import families
from xform.lax.arithmetic import add_p
from xform.lax.barriers import optimization_barrier_p
from xform.lax.convolution.dimensions import as_ints, as_pads, dilated
from xform.lax.extremes import max_p, min_p
from xform.lax.reductions import accumulator, elementwise_combine, highest, lowest, scalar_program
from xform.lax.shapes import broadcast_in_dim, full, linear_jvp, reshape
from xform.lax.strided import dilate_and_pad, take_every
from xform.lax.windows.geometry import Windows, along, along_steps, check_windows, dilate, lower_windows, take_host
from xform.lax.windows.selection import UNROLLED, select_and_gather_add_p

# Sums and extremes of windows


def _reduce_window(
    name: str, ufunc: np.ufunc, combine: Primitive, operation: str, identity: Callable[[np.dtype], Any], accepts: str
) -> Primitive:
    """Define the reduction of windows by a ufunc; gaps and padding hold its identity."""
    p = Primitive(name)

    def types(x: ShapedArray, *, windows: Windows) -> ShapedArray:
        families.check_kind(name, [x], accepts)
        return x.update(shape=check_windows(name, [x], windows))

    def host(x: Any, *, windows: Windows) -> Any:
        shape, dtype = windows.shape(x.shape), x.dtype
        if not all(shape):
            return np.zeros(shape, dtype)
        out = windows.pad_host(x.astype(accumulator(dtype), copy=False), identity(dtype))
        # First where it shrinks the array most.
        for axis in sorted(range(x.ndim), key=lambda i: -windows.strides[i]):
            k, s, d = windows.dimensions[axis], windows.strides[axis], windows.dilation[axis]
            out = along(ufunc, take_host, out, axis, shape[axis], k, s, d)
        return out.astype(dtype, copy=False)

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int], *, windows: Windows) -> Any:
        return p.bind(args[0], windows=windows.with_axis(dims[0])), dims[0]

    def by_axes(x: Any, *, windows: Windows) -> Any:
        shape = windows.shape(x.shape)
        x = windows.pad(x, identity(x.dtype))
        for axis, (count, k, s, d) in enumerate(
            zip(shape, windows.dimensions, windows.strides, windows.dilation, strict=True)
        ):
            x = along(combine.bind, take_every, x, axis, count, k, s, d)
        return x

    lower_by_axes = lower_as(by_axes)

    def lower(ctx: Context, x: Value, *, windows: Windows) -> Value:
        out, wide = ctx.out, accumulator(x.dtype)
        x = ctx.convert(x, wide)
        sizes = list(zip(windows.dimensions, windows.strides, strict=True))
        # XLA's own is as fast for windows that don't overlap.
        better = any(k > s for k, s in sizes) and all(along_steps(k, s) <= UNROLLED for k, s in sizes)
        if ctx.platform == "cpu" and better and 0 not in out.shape:
            # Else what makes the operand may be fused, and computed for each element of the window.
            x = ctx.op("optimization_barrier", [x], x.aval)
            return ctx.convert(lower_by_axes(ctx, x, windows=windows), out.dtype)
        start = ctx.constant(identity(wide), wide)
        body = lambda ctx, a, b: [ctx.op(operation, [a, b], a.aval)]  # noqa: E731
        return ctx.convert(lower_windows(ctx, [x], [start], windows, body)[0], out.dtype)

    p.abstract_eval, p.host, p.batch, p.lower = types, host, batch, lower
    return p


def _repeat(ct: Any, shape: Sequence[int], windows: Windows) -> Any:
    """The cotangent of windows that lie side by side: each element is repeated."""
    counts, sizes = ct.shape, windows.dimensions
    (ct,) = optimization_barrier_p.bind(ct)  # else what makes it may be fused, and computed for each repetition
    pairs = [n for pair in zip(counts, sizes, strict=True) for n in pair]
    ct = broadcast_in_dim(ct, pairs, range(0, len(pairs), 2))
    ct = reshape(ct, [p * k for p, k in zip(counts, sizes, strict=True)])
    pads = [(-low, n + low - m) for n, m, (low, _) in zip(shape, ct.shape, windows.padding, strict=True)]
    return dilate_and_pad(ct, pads, (1,) * len(pads), range(len(pads)), 0)


def _sum_transpose(ct: Any, x: Any, *, windows: Windows) -> list[Any]:
    if 0 in get_aval(ct).shape:
        return [full(x.aval.shape, 0, x.aval.dtype)]
    if windows.strides == windows.dimensions and {*windows.base_dilation, *windows.dilation} <= {1}:
        return [_repeat(ct, x.aval.shape, windows)]
    return [reduce_window_sum_p.bind(ct, windows=windows.transposed(x.aval.shape))]


reduce_window_sum_p = _reduce_window("reduce_window_sum", np.add, add_p, "add", lambda dtype: 0, "number")
reduce_window_sum_p.jvp = lambda primals, ts, *, windows: linear_jvp(
    reduce_window_sum_p, primals[0], ts[0], {"windows": windows}
)
reduce_window_sum_p.jet = linear(reduce_window_sum_p)
reduce_window_sum_p.transpose = _sum_transpose


def _extreme(
    name: str, ufunc: np.ufunc, combine: Primitive, which: str, identity: Callable[[np.dtype], Any]
) -> Primitive:
    p = _reduce_window(name, ufunc, combine, ufunc.__name__, identity, "real")

    def jvp(primals: Sequence[Any], ts: Sequence[Any], *, windows: Windows) -> Any:
        (x,), (t,) = primals, ts
        out = p.bind(x, windows=windows)
        if type(t) is Zero:
            return out, zero_of(out)
        return out, select_and_gather_add_p.bind(t, x, select=which, windows=windows)

    p.jvp, p.jet = jvp, locally_linear(p)
    return p


reduce_window_max_p = _extreme("reduce_window_max", np.maximum, max_p, "max", lowest)
reduce_window_min_p = _extreme("reduce_window_min", np.minimum, min_p, "min", highest)


# The public functions


def _windows(
    name: str, shape: Sequence[int], dimensions: Any, strides: Any, padding: Any, base_dilation: Any, dilation: Any
) -> Windows:
    """Checked windows for an array of that shape."""
    n = len(shape)
    dimensions = as_ints(name, "window_dimensions", dimensions, n)
    strides = as_ints(name, "window_strides", strides, n)
    base_dilation = as_ints(name, "base_dilation", base_dilation, n)
    dilation = as_ints(name, "window_dilation", dilation, n)
    spans = [dilated(k, d) for k, d in zip(dimensions, dilation, strict=True)]
    return Windows(dimensions, strides, as_pads(name, padding, shape, spans, strides), base_dilation, dilation)


_MONOIDS = {
    "add": (reduce_window_sum_p, lambda dtype: 0, "number"),
    "max": (reduce_window_max_p, lowest, "real"),
    "min": (reduce_window_min_p, highest, "real"),
}


@api_boundary
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduce windows by any associative function of two scalars.

    Parameters
    ----------
    operand : array, or pytree of arrays of one shape
    init_value : scalar, or pytree like `operand`
        What each reduction starts from, and what gaps and padding are filled with: the identity of `computation`.
    computation : function of two pytrees of scalars, to one like them
        Associative, which is not checked. `lax.add`, `max` and `min` are recognised.
    window_dimensions : int for each axis
    window_strides : int for each axis, optional
    padding : 'VALID', 'SAME', 'SAME_LOWER', or a pair (low, high) for each axis
        See `padtype_to_pads`; gaps don't count.
    base_dilation, window_dilation : int for each axis, optional
        Distance of neighbours: with gaps between the elements of the operand, or of the windows.

    Returns
    -------
    Pytree like `operand`, of shape `reduce_window_shape_tuple`

    Notes
    -----
    The derivative of a maximum or minimum is that of the first element that attains it.

    Examples
    --------
    >>> from xform import lax
    >>> x = np.array([1.0, 5.0, 2.0, 4.0, 3.0])
    >>> lax.reduce_window(x, -np.inf, lax.max, (2,), (2,)).tolist()
    [5.0, 4.0]
    >>> lax.reduce_window(x, 1.0, lax.mul, (3,), padding="SAME").tolist()
    [5.0, 10.0, 40.0, 24.0, 12.0]
    """
    name = "reduce_window"
    xs, init, treedef, combine, operation = scalar_program(name, operand, init_value, computation)
    aval = get_aval(xs[0])
    windows = _windows(name, aval.shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    start = tree.leaves(init_value)[0]
    if operation in _MONOIDS and not isinstance(start, Tracer):
        p, identity, accepts = _MONOIDS[operation]
        start = np.asarray(host_value(start)).astype(aval.dtype)
        if families.KINDS[accepts](aval.dtype) and start == np.asarray(identity(aval.dtype), aval.dtype):
            return treedef.unflatten([p.bind(xs[0], windows=windows)])
    shape = windows.shape(aval.shape)
    out = [broadcast_in_dim(i, shape, ()) for i in init]
    if all(shape):
        parts = [dilate(x, i, windows) for x, i in zip(xs, init, strict=True)]
        for axis, (count, k, s, d) in enumerate(
            zip(shape, windows.dimensions, windows.strides, windows.dilation, strict=True)
        ):
            parts = along(lambda a, b: elementwise_combine(combine, a, b), _take_all, parts, axis, count, k, s, d)
        out = elementwise_combine(combine, out, parts)
    return treedef.unflatten(out)


def _take_all(xs: list[Any], axis: int, start: int, count: int, step: int) -> list[Any]:
    return [take_every(x, axis, start, count, step) for x in xs]


@api_boundary
def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """How many windows there are along each axis.

    Examples
    --------
    >>> from xform import lax
    >>> lax.reduce_window_shape_tuple((5, 8), (2, 3), (1, 2), [(0, 0), (1, 1)])
    (4, 4)
    """
    windows = _windows(
        "reduce_window_shape_tuple", operand_shape, window_dimensions, window_strides, padding, base_dilation,
        window_dilation,
    )  # fmt: skip
    return windows.shape(operand_shape)
