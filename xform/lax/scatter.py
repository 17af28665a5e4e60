"""`scatter` and its kin: put windows into an array, or combine them with what is there.

The inverse of `gather`, with the same correspondence of axes (https://openxla.org/stablehlo/spec#scatter). Windows that
are out of bounds are left out, or moved inside with mode 'clip'. Where several windows meet, `scatter` keeps the last
one, on the host and in XLA on CPU alike; on a GPU the order is undefined.

May import: `lax.gather`, `lax.large_updates`, the elementwise modules.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.jet import locally_linear
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import Zero, instantiate, is_linear, zero_of
from xform.lax import families, large_updates
from xform.lax.arithmetic import div_p, mul_p, neg
from xform.lax.comparison import eq_p, ge_p, le_p, select_n_p
from xform.lax.conversion import convert
from xform.lax.gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    Windows,
    check_windows,
    gather_p,
    index_arrays,
    index_limits,
    place_of_window,
    spread,
    widen_index,
)
from xform.lax.shapes import full, iota, reshape


class ScatterDimensionNumbers(NamedTuple):
    """Which axes of `scatter`'s operand, indices and updates belong together.

    Attributes
    ----------
    update_window_dims : axes of the updates that run through a window
    inserted_window_dims : axes of the operand whose window has length 1 and that are missing in the updates
    scatter_dims_to_operand_dims : for each component of an index vector, the axis of the operand that it positions
    operand_batching_dims, scatter_indices_batching_dims : axes of operand and indices that go together one to one
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()


@functools.lru_cache(4096)
def _window_sizes(
    shape: Sequence[int], updates_shape: Sequence[int], numbers: ScatterDimensionNumbers
) -> tuple[int, ...]:
    """The length of a window along each axis of the operand."""
    sizes = [min(1, n) for n in shape]
    for d, u in zip(Windows.of(numbers).kept(len(shape)), numbers.update_window_dims, strict=True):
        sizes[d] = updates_shape[u]
    return tuple(sizes)


def gather_params(x: Any, updates: Any, params: dict[str, Any]) -> dict[str, Any]:
    """The gather that reads what a scatter writes."""
    numbers = params["dimension_numbers"]
    return dict(
        dimension_numbers=GatherDimensionNumbers(*numbers),
        slice_sizes=_window_sizes(x.shape, updates.shape, numbers),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=GatherScatterMode.CLIP if params["mode"] is GatherScatterMode.CLIP else GatherScatterMode.FILL_OR_DROP,
        fill_value=0,
    )


def scatter_family(name: str, ufunc: Any, operation: str | None, accepts: str) -> Primitive:
    """A scatter whose windows are combined by a ufunc, which is `operation` in StableHLO; None: they replace."""
    p = Primitive(name)

    @functools.lru_cache(4096)
    def types(
        x: ShapedArray,
        indices: ShapedArray,
        updates: ShapedArray,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
    ) -> ShapedArray:
        families.check_kind(name, [x], accepts)
        families.check_same_dtype(name, [x, updates])
        n = dimension_numbers
        if len(n.update_window_dims) + len(n.inserted_window_dims) + len(n.operand_batching_dims) != x.ndim or any(
            not 0 <= d < updates.ndim for d in n.update_window_dims
        ):
            raise TypeError(f"lax.{name}: {n} don't fit operand {x.str_short()} and updates {updates.str_short()}")
        check_windows(name, n, x, indices, _window_sizes(x.shape, updates.shape, n), updates.ndim)
        positions = tuple(m for d, m in enumerate(updates.shape) if d not in n.update_window_dims)
        if positions != indices.shape[:-1]:
            raise TypeError(
                f"lax.{name}: updates {updates.str_short()} without the window axes {n.update_window_dims} must have "
                f"the shape of indices {indices.str_short()} without the last axis"
            )
        return x.update(weak_type=x.weak_type and updates.weak_type)

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        (x, indices, updates), (dx, di, du) = args, dims
        x, updates = batching.move_to(x, dx, axis.size), batching.move_to(updates, du, axis.size)
        n = params["dimension_numbers"]
        after = n._make(tuple(d + 1 for d in dims) for dims in n)  # all axes behind the mapped one
        if di is None:
            numbers = after._replace(
                update_window_dims=(0, *after.update_window_dims),
                scatter_indices_batching_dims=n.scatter_indices_batching_dims,
            )
        else:
            indices = batching.move_to(indices, di, axis.size)
            numbers = after._replace(
                operand_batching_dims=(0, *after.operand_batching_dims),
                scatter_indices_batching_dims=(0, *after.scatter_indices_batching_dims),
            )
            params["indices_are_sorted"] = False
        return p.bind(x, indices, updates, **{**params, "dimension_numbers": numbers}), 0

    p.abstract_eval = types
    p.host = lambda x, indices, updates, **params: _host(ufunc, x, indices, updates, **params)
    p.batch = batch
    p.lower = lambda ctx, x, indices, updates, **params: _lower(ctx, operation, x, indices, updates, **params)
    return p


def _host(
    ufunc: Any,
    x: Any,
    indices: Any,
    updates: Any,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
) -> Any:
    out, updates = np.array(x, order="C"), np.asarray(updates)  # contiguous, so that `out.reshape(-1)` is a view
    if not updates.size:
        return out
    sizes = _window_sizes(out.shape, updates.shape, dimension_numbers)
    if indices.ndim == 1:
        one = place_of_window(out.shape, sizes, indices, dimension_numbers.scatter_dims_to_operand_dims, mode)
        if one is not None:
            window = updates.reshape(sizes)
            out[one] = window if ufunc is None else ufunc(out[one], window)
        return out
    windows = Windows.of(dimension_numbers)
    # ufunc.at is fast in one dimension only; and windows that cover everything leave no axis to index.
    flat = sizes == out.shape or (ufunc is not None and not unique_indices)
    inside, arrays, indexed, whole, positions = index_arrays(windows, out.shape, indices, sizes, flat)
    # Bring the updates to (positions, inner window axes, whole window axes).
    kept = windows.kept(out.ndim)
    axis_of = dict(zip(kept, windows.window_dims, strict=True))
    inner = [d for d in kept if d not in whole]
    order = [d for d in range(updates.ndim) if d not in windows.window_dims]
    updates = updates.transpose(order + [axis_of[d] for d in (*inner, *whole)])
    if mode is not GatherScatterMode.CLIP and not inside.all():
        shape = (*positions, *(sizes[d] for d in inner))
        arrays = [np.broadcast_to(a, shape)[inside] for a in arrays]
        updates = updates[inside]
    if flat:
        at = arrays[0] if out.ndim == 1 else np.ravel_multi_index(arrays, out.shape) if arrays else np.zeros((), int)
        target, place = out.reshape(-1), (spread(at, updates.shape).reshape(-1),)
        updates = updates.reshape(-1)
    else:
        arrays[0] = spread(arrays[0], updates.shape[: updates.ndim - len(whole)])
        target, place = out.transpose(*indexed, *whole), tuple(arrays)
    if ufunc is None:
        target[place] = updates
    elif unique_indices:
        target[place] = ufunc(target[place], updates)
    else:
        ufunc.at(target, place[0], updates)
    return out


def _lower(
    ctx: Context,
    operation: str | None,
    x: Value,
    indices: Value,
    updates: Value,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
) -> Value:
    if not updates.aval.size:
        return x
    n, out = dimension_numbers, ctx.out
    if operation is not None and large_updates.has_neutral(operation, x.dtype):
        place = _place_of_window(ctx, x, indices, updates, n, mode)
        if place is not None:
            return large_updates.combined(ctx, operation, x, updates, place)
    if not n.scatter_dims_to_operand_dims:  # XLA wants something to position: an additional axis of length 1
        axis = out.ndim
        out = out.update(shape=(*out.shape, 1))
        x = ctx.op("reshape", [x], out)
        indices = ctx.full((*indices.shape[:-1], 1), 0, np.int32)
        n = n._replace(inserted_window_dims=(*n.inserted_window_dims, axis), scatter_dims_to_operand_dims=(axis,))
    indices = widen_index(ctx, indices)
    if mode is GatherScatterMode.CLIP:
        sizes = _window_sizes(x.shape, updates.shape, n)
        limits = index_limits(ctx, indices, Windows.of(n), x.shape, sizes)
        indices = ctx.op("clamp", [ctx.full(indices.shape, 0, indices.dtype), indices, limits], indices.aval)
    scalar = ShapedArray((), x.dtype)
    combine = lambda ctx, a, b: [b if operation is None else ctx.op(operation, [a, b], scalar)]  # noqa: E731
    attributes = (
        f"scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {list(n.update_window_dims)}, "
        f"inserted_window_dims = {list(n.inserted_window_dims)}, "
        f"input_batching_dims = {list(n.operand_batching_dims)}, "
        f"scatter_indices_batching_dims = {list(n.scatter_indices_batching_dims)}, "
        f"scatter_dims_to_operand_dims = {list(n.scatter_dims_to_operand_dims)}, "
        f"index_vector_dim = {len(indices.shape) - 1}>, "
        f"indices_are_sorted = {str(indices_are_sorted).lower()}, unique_indices = {str(unique_indices).lower()}"
    )
    region = ctx.region(combine, [scalar, scalar])
    result = ctx.op("scatter", [x, indices, updates], out, attributes, [region])
    return result if out is ctx.out else ctx.op("reshape", [result], ctx.out)


def _place_of_window(
    ctx: Context, x: Value, indices: Value, updates: Value, n: ScatterDimensionNumbers, mode: GatherScatterMode
) -> list[int] | None:
    """The place of a single window of all axes, if it is known and large: what a slice with `add` is."""
    axes = tuple(range(x.aval.ndim))
    if mode is not GatherScatterMode.PROMISE_IN_BOUNDS or n.update_window_dims != axes or indices.aval.ndim != 1:
        return None
    if indices.array is None:
        return None
    starts = dict(zip(n.scatter_dims_to_operand_dims, indices.array.tolist(), strict=True))
    return large_updates.place_of(ctx, x, updates, [starts.get(axis, 0) for axis in axes])


scatter_p = scatter_family("scatter", None, None, "any")
scatter_add_p = scatter_family("scatter_add", np.add, "add", "number")
scatter_min_p = scatter_family("scatter_min", np.minimum, "minimum", "real")
scatter_max_p = scatter_family("scatter_max", np.maximum, "maximum", "real")


# Derivatives. scatter_add is linear in operand and updates.


def _zero(x: Any) -> Any:
    return np.zeros((), get_aval(x).dtype)[()]


def _add_jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
    (x, indices, updates), (tx, _, tu) = primals, ts
    out = scatter_add_p.bind(x, indices, updates, **params)
    if type(tu) is Zero:
        return out, zero_of(out) if type(tx) is Zero else tx
    return out, scatter_add_p.bind(instantiate(tx), indices, tu, **params)


def _add_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    ct_updates = None
    if is_linear(updates):
        ct_updates = gather_p.bind(ct, indices, **gather_params(ct, updates.aval, params))
    return [ct if is_linear(x) else None, None, ct_updates]


scatter_add_p.jvp = _add_jvp
scatter_add_p.jet = locally_linear(scatter_add_p)
scatter_add_p.transpose = _add_transpose


def _gather_transpose(ct: Any, x: Any, indices: Any, *, slice_sizes: Any, fill_value: Any, **params: Any) -> list[Any]:
    numbers = ScatterDimensionNumbers(*params.pop("dimension_numbers"))
    if params["mode"] is GatherScatterMode.PROMISE_IN_BOUNDS:  # gathering clips what breaks the promise
        params["mode"] = GatherScatterMode.CLIP
    zeros = full(x.aval.shape, _zero(ct))
    return [scatter_add_p.bind(zeros, indices, ct, dimension_numbers=numbers, **params), None]


gather_p.transpose = _gather_transpose  # here, since it needs scatter_add


# scatter is linear in operand and updates too, but an update that another one overwrites has no influence.


def _scatter_jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
    (x, indices, updates), (tx, _, tu) = primals, ts
    out = scatter_p.bind(x, indices, updates, **params)
    if type(tx) is Zero and type(tu) is Zero:
        return out, zero_of(out)
    if type(tu) is not Zero and not params["unique_indices"] and math.prod(get_aval(indices).shape[:-1]) > 1:
        tu = select_n_p.bind(_wins(x, indices, updates, params), _zero(tu), tu)
        tx = scatter_p.bind(instantiate(tx), indices, full(tu.shape, _zero(tu)), **params)
        return out, scatter_add_p.bind(tx, indices, tu, **params)
    return out, scatter_p.bind(instantiate(tx), indices, instantiate(tu), **params)


def _wins(x: Any, indices: Any, updates: Any, params: dict[str, Any]) -> Any:
    """Which elements of the updates are still there after a scatter."""
    shape = get_aval(updates).shape
    size = math.prod(shape)
    dtype = np.int32 if size < 2**31 - 1 else np.int64
    numbers = reshape(iota(dtype, size), shape)
    last = scatter_p.bind(full(get_aval(x).shape, -1, dtype), indices, numbers, **params)
    return eq_p.bind(gather_p.bind(last, indices, **gather_params(x, get_aval(updates), params)), numbers)


def _scatter_transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    # Only scatters without overlap are transposed, see the jvp rule.
    aval = updates.aval if is_linear(updates) else get_aval(updates)
    ct_x = scatter_p.bind(ct, indices, full(aval.shape, _zero(ct)), **params) if is_linear(x) else None
    ct_updates = gather_p.bind(ct, indices, **gather_params(ct, aval, params)) if is_linear(updates) else None
    return [ct_x, None, ct_updates]


scatter_p.jvp = _scatter_jvp
scatter_p.jet = locally_linear(scatter_p)
scatter_p.transpose = _scatter_transpose


# Extremes: what is equal to the result shares the tangent evenly, as in reductions.


def _extreme_jvp(p: Primitive, reaches: Primitive) -> Callable[..., Any]:
    def rule(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
        (x, indices, updates), (tx, _, tu) = primals, ts
        out = p.bind(x, indices, updates, **params)
        if type(tx) is Zero and type(tu) is Zero:
            return out, zero_of(out)
        dtype = out.dtype
        final = gather_p.bind(out, indices, **gather_params(x, get_aval(updates), params))
        from_x = convert(reaches.bind(x, out), dtype)
        from_updates = convert(eq_p.bind(updates, final), dtype)
        count = scatter_add_p.bind(from_x, indices, from_updates, **params)
        total = full(out.shape, _zero(out)) if type(tx) is Zero else mul_p.bind(tx, from_x)
        if type(tu) is not Zero:
            total = scatter_add_p.bind(total, indices, mul_p.bind(tu, from_updates), **params)
        return out, div_p.bind(total, count)

    return rule


scatter_min_p.jvp = _extreme_jvp(scatter_min_p, le_p)
scatter_min_p.jet = locally_linear(scatter_min_p)
scatter_max_p.jvp = _extreme_jvp(scatter_max_p, ge_p)
scatter_max_p.jet = locally_linear(scatter_max_p)


# The public functions, which share one signature.


def scatter_function(
    name: str, p: Primitive, doc: str, prepare: Callable[[Any], Any] | None = None
) -> Callable[..., Any]:
    def function(
        operand: Any,
        scatter_indices: Any,
        updates: Any,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
    ) -> Any:
        operand, updates = families.as_operands(name, operand, updates)
        if prepare is not None:
            families.check_kind(name, [get_aval(operand), get_aval(updates)], "number")
        return p.bind(
            operand,
            scatter_indices,
            updates if prepare is None else prepare(updates),
            dimension_numbers=ScatterDimensionNumbers(*(tuple(map(int, dims)) for dims in dimension_numbers)),
            indices_are_sorted=bool(indices_are_sorted),
            unique_indices=bool(unique_indices),
            mode=GatherScatterMode.from_any(mode),
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return api_boundary(function)


scatter = scatter_function(
    "scatter",
    scatter_p,
    """A copy of `operand` with windows of `updates` put at the positions in `scatter_indices`.

    Parameters
    ----------
    operand, updates : arrays of one dtype
    scatter_indices : integer array
        Index vectors along the last axis: component k is the start along axis ``scatter_dims_to_operand_dims[k]``.
    dimension_numbers : ScatterDimensionNumbers
    indices_are_sorted, unique_indices : bool
        Promises that XLA may use; if they don't hold, the result is undefined.
    mode : GatherScatterMode or its name
        What becomes of windows out of bounds; by default they are left out.

    Raises TypeError for dimension numbers that don't fit. ``x.at[index].set(y)`` is the convenient way.

    Examples
    --------
    >>> from xform import lax
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter(np.zeros(4), np.array([[2], [0]]), np.array([1.0, 2.0]), numbers).tolist()
    [2.0, 0.0, 1.0, 0.0]
    """,
)
scatter_add = scatter_function(
    "scatter_add",
    scatter_add_p,
    """Like `scatter`, adding the updates to what is there; where several meet, all count.""",
)
scatter_sub = scatter_function("scatter_sub", scatter_add_p, "Like `scatter_add`, subtracting the updates.", neg)
scatter_min = scatter_function("scatter_min", scatter_min_p, "Like `scatter_add`, keeping the smallest; NaN wins.")
scatter_max = scatter_function("scatter_max", scatter_max_p, "Like `scatter_add`, keeping the largest; NaN wins.")
