"""Collectives: operations across a named axis, of `vmap` or of `pmap`.

Each has one batch rule for the axis being one that `vmap` maps (then it is an operation along that axis), and one
lowering for an axis over devices. A primitive's `axes` are the names of the axes it works across.

May import: the other modules of `lax`.
"""

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.core.trace import Primitive, Tracer, axis_frame
from xform.interpreters import batching
from xform.interpreters.jet import linear, locally_linear
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arithmetic import add_p, div_p, mul_p
from xform.lax.comparison import eq_p, select_n_p
from xform.lax.conversion import convert
from xform.lax.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xform.lax.reductions import reduce_max_p, reduce_min_p, reduce_sum_p
from xform.lax.shapes import broadcast_in_dim, iota_p, linear_jvp, reshape, transpose


class CollectivePrimitive(Primitive):
    """Goes to the trace of the axis that it names, also if no argument belongs to it."""

    remembers_types = False

    def bind(self, *args: Any, **params: Any) -> Any:
        trace = state.trace
        for t in itertools.chain(
            (a._trace for a in args if isinstance(a, Tracer)),
            (axis_frame(name).trace for name in params["axes"]),
        ):
            if t is not None and (trace is None or t.level > trace.level):
                trace = t
        if trace is None:
            raise NameError(f"lax.{self.name} across {params['axes']} outside of the mapped function")
        return trace.process(self, args, params)


def _names(axis_name: Any) -> tuple[Any, ...]:
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    for name in names:
        axis_frame(name)  # NameError for an unbound one
    return names


def _without(axes: tuple[Any, ...], name: Any) -> tuple[Any, ...]:
    return tuple(a for a in axes if a != name)


def axes_size(axes: Sequence[Any]) -> int:
    """Product of the lengths of named axes."""
    return math.prod(axis_frame(name).size for name in axes)


def replica_groups(ctx: Context, axes: Sequence[Any]) -> str:
    """The groups of devices that differ in the position along `axes` only."""
    sizes = ctx.module.axis_sizes
    grid = np.arange(math.prod(sizes.values())).reshape(*sizes.values())
    names = list(sizes)
    for name in axes:
        if name not in names:
            raise NotImplementedError(f"axis {name!r} is not an axis over devices in this program")
    moved = [names.index(name) for name in axes]
    rest = [i for i in range(len(names)) if i not in moved]
    groups = grid.transpose(*rest, *moved).reshape(-1, math.prod(sizes[name] for name in axes))
    return f"replica_groups = dense<{groups.tolist()}> : tensor<{groups.shape[0]}x{groups.shape[1]}xi64>"


def _all_reduce(operation: str) -> Callable[..., Value]:
    def lower(ctx: Context, x: Value, *, axes: tuple[Any, ...]) -> Value:
        scalar = ShapedArray((), x.dtype)
        body = ctx.region(lambda c, a, b: [c.op(operation, [a, b], scalar)], [scalar, scalar])
        return ctx.op("all_reduce", [x], x.aval, replica_groups(ctx, axes), [body])

    return lower


def _reducing(name: str, along: Callable[[Any, int, int], Any], operation: str) -> CollectivePrimitive:
    """A reduction across the axes; `along` does it along one axis of an array, or None (given the axis' length)."""
    p = CollectivePrimitive(name)

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, axes: tuple[Any, ...]) -> Any:
        (x,), (d,) = args, dims
        if axis.axis_name not in axes:
            return p.bind(x, axes=axes), d
        out, rest = along(x, d, axis.size), _without(axes, axis.axis_name)
        return (p.bind(out, axes=rest) if rest else out), None

    p.abstract_eval = lambda x, *, axes: x
    p.batch = batch
    p.lower = _all_reduce(operation)
    return p


def _sum_along(x: Any, dim: int | None, size: int) -> Any:
    if dim is None:
        return mul_p.bind(x, np.asarray(size, get_aval(x).dtype)[()])
    return reduce_sum_p.bind(x, axes=(dim,))


psum_p = _reducing("psum", _sum_along, "add")
psum_p.jvp = lambda primals, ts, *, axes: linear_jvp(psum_p, primals[0], ts[0], {"axes": axes})
psum_p.jet = linear(psum_p)
psum_p.transpose = lambda ct, x, *, axes: [psum_p.bind(ct, axes=axes)]
pmax_p = _reducing("pmax", lambda x, d, size: x if d is None else reduce_max_p.bind(x, axes=(d,)), "maximum")
pmin_p = _reducing("pmin", lambda x, d, size: x if d is None else reduce_min_p.bind(x, axes=(d,)), "minimum")


def _extremum_jvp(p: Primitive) -> Callable[..., Any]:
    def rule(primals: Sequence[Any], ts: Sequence[Any], *, axes: tuple[Any, ...]) -> Any:
        """The tangent of the extremal value; the mean of several."""
        (x,), (t,) = primals, ts
        out = p.bind(x, axes=axes)
        if type(t) is Zero:
            return out, zero_of(out)
        zero, one = np.zeros((), out.dtype)[()], np.ones((), out.dtype)[()]
        mine = eq_p.bind(x, out)
        total = psum_p.bind(select_n_p.bind(mine, zero, t), axes=axes)
        return out, div_p.bind(total, psum_p.bind(select_n_p.bind(mine, zero, one), axes=axes))

    return rule


pmax_p.jvp, pmin_p.jvp = _extremum_jvp(pmax_p), _extremum_jvp(pmin_p)
pmax_p.jet, pmin_p.jet = locally_linear(pmax_p), locally_linear(pmin_p)


# axis_index


def _axis_index_batch(axis: Any, args: Any, dims: Any, *, axes: tuple[Any, ...]) -> Any:
    return iota_p.bind(dtype=np.dtype(np.int32), shape=(axis.size,), dimension=0), 0


def _axis_index_lower(ctx: Context, *, axes: tuple[Any, ...]) -> Value:
    sizes = ctx.module.axis_sizes
    names = list(sizes)
    stride = math.prod(sizes[n] for n in names[names.index(axes[0]) + 1 :])
    u32 = ShapedArray((), np.dtype(np.uint32))
    index = ctx.op("replica_id", [], u32)
    index = ctx.op("divide", [index, ctx.constant(stride, u32.dtype)], u32)
    index = ctx.op("remainder", [index, ctx.constant(sizes[axes[0]], u32.dtype)], u32)
    return ctx.convert(index, np.dtype(np.int32))


axis_index_p = CollectivePrimitive("axis_index")
axis_index_p.abstract_eval = lambda *, axes: ShapedArray((), np.dtype(np.int32))
axis_index_p.batch = _axis_index_batch
axis_index_p.lower = _axis_index_lower


# all_gather: one new leading axis, the position along the named axis.


def _all_gather_batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, axes: tuple[Any, ...]) -> Any:
    (x,), (d,) = args, dims
    if axis.axis_name not in axes:
        return all_gather_p.bind(x, axes=axes), None if d is None else d + 1
    return batching.move_to(x, d, axis.size), None


def _all_gather_transpose(ct: Any, x: Any, *, axes: tuple[Any, ...]) -> list[Any]:
    total = psum_p.bind(ct, axes=axes)
    return [dynamic_index_in_dim(total, axis_index_p.bind(axes=axes), 0, keepdims=False)]


def _all_gather_lower(ctx: Context, x: Value, *, axes: tuple[Any, ...]) -> Value:
    row = ctx.op("reshape", [x], x.aval.update(shape=(1, *x.shape)))
    return ctx.op("all_gather", [row], ctx.out, f"all_gather_dim = 0 : i64, {replica_groups(ctx, axes)}")


all_gather_p = CollectivePrimitive("all_gather")
all_gather_p.abstract_eval = lambda x, *, axes: x.update(shape=(axes_size(axes), *x.shape))
all_gather_p.jvp = lambda primals, ts, *, axes: linear_jvp(all_gather_p, primals[0], ts[0], {"axes": axes})
all_gather_p.jet = linear(all_gather_p)
all_gather_p.transpose = _all_gather_transpose
all_gather_p.batch = _all_gather_batch
all_gather_p.lower = _all_gather_lower


# ppermute


def _rows(x: Any, index: np.ndarray) -> Any:
    """``x[index]``, for known indices within range."""
    shape = get_aval(x).shape
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape))), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return gather(x, index[:, None], numbers, (1, *shape[1:]), mode=mode)


def _ppermute_batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, axes: tuple[Any, ...], perm: Any) -> Any:
    (x,), (d,) = args, dims
    if axis.axis_name not in axes:
        return ppermute_p.bind(x, axes=axes, perm=perm), d
    x = batching.move_to(x, d, axis.size)
    source, received = np.zeros(axis.size, np.int32), np.zeros(axis.size, bool)
    for s, t in perm:
        source[t], received[t] = s, True
    out = _rows(x, source)
    if received.all():
        return out, 0
    mask = broadcast_in_dim(received, get_aval(out).shape, (0,))
    return select_n_p.bind(mask, np.zeros((), get_aval(out).dtype)[()], out), 0


def _ppermute_lower(ctx: Context, x: Value, *, axes: tuple[Any, ...], perm: tuple[tuple[int, int], ...]) -> Value:
    sizes = ctx.module.axis_sizes
    grid = np.arange(math.prod(sizes.values())).reshape(*sizes.values())
    grid = np.moveaxis(grid, list(sizes).index(axes[0]), -1).reshape(-1, sizes[axes[0]])
    pairs = [[int(g[s]), int(g[t])] for g in grid for s, t in perm]
    attribute = f"source_target_pairs = dense<{pairs or '[]'}> : tensor<{len(pairs)}x2xi64>"
    return ctx.op("collective_permute", [x], x.aval, attribute)


ppermute_p = CollectivePrimitive("ppermute")
ppermute_p.abstract_eval = lambda x, *, axes, perm: x
ppermute_p.jvp = lambda primals, ts, **params: linear_jvp(ppermute_p, primals[0], ts[0], params)
ppermute_p.jet = linear(ppermute_p)
ppermute_p.transpose = lambda ct, x, *, axes, perm: [
    ppermute_p.bind(ct, axes=axes, perm=tuple((t, s) for s, t in perm))
]
ppermute_p.batch = _ppermute_batch
ppermute_p.lower = _ppermute_lower


# all_to_all: the leading axis is as long as the named one; entry j of device i becomes entry i of device j.


def _all_to_all_batch(axis: Any, args: Sequence[Any], dims: Sequence[Any], *, axes: tuple[Any, ...]) -> Any:
    (x,), (d,) = args, dims
    if axis.axis_name not in axes:
        x = batching.move_to(x, d, axis.size, 1)
        return all_to_all_p.bind(x, axes=axes), 1
    return batching.move_to(x, d, axis.size), 1


all_to_all_p = CollectivePrimitive("all_to_all")
all_to_all_p.abstract_eval = lambda x, *, axes: x
all_to_all_p.jvp = lambda primals, ts, *, axes: linear_jvp(all_to_all_p, primals[0], ts[0], {"axes": axes})
all_to_all_p.jet = linear(all_to_all_p)
all_to_all_p.transpose = lambda ct, x, *, axes: [all_to_all_p.bind(ct, axes=axes)]
all_to_all_p.batch = _all_to_all_batch
all_to_all_p.lower = lambda ctx, x, *, axes: ctx.op(
    "all_to_all", [x], x.aval,
    f"split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = {x.shape[0]} : i64, "
    f"{replica_groups(ctx, axes)}",
)  # fmt: skip


# The public functions.


def _only_varying(name: str, to: Any) -> None:
    if to != "varying":
        raise NotImplementedError(f"lax.{name}: only to='varying' is supported, got {to!r}")


def no_groups(name: str, groups: Any) -> None:
    """NotImplementedError unless the argument axis_index_groups of lax.`name` is None."""
    if groups is not None:
        raise NotImplementedError(f"lax.{name}: axis_index_groups is not supported")


def _across(name: str, primitive: Primitive, x: Any, axis_name: Any, groups: Any) -> Any:
    no_groups(name, groups)
    axes = _names(axis_name)
    return tree.map(lambda leaf: primitive.bind(leaf, axes=axes), x)


@api_boundary
def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Sum across named axes.

    Parameters
    ----------
    x : pytree of arrays
        A Python number is multiplied by the length of the axes at once, so ``psum(1, name)`` is that length.
    axis_name : hashable or tuple of them

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> xform.vmap(lambda x: x / xform.lax.psum(x, "i"), axis_name="i")(xnp.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    """
    no_groups("psum", axis_index_groups)
    axes = _names(axis_name)

    def one(leaf: Any) -> Any:
        if isinstance(leaf, bool | int | float | complex):
            return leaf * axes_size(axes)
        leaf = convert(leaf, np.dtype(np.int32)) if get_aval(leaf).dtype == bool else leaf
        return psum_p.bind(leaf, axes=axes)

    return tree.map(one, x)


@api_boundary
def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Mean across named axes."""
    no_groups("pmean", axis_index_groups)
    axes = _names(axis_name)

    def one(leaf: Any) -> Any:
        leaf = convert(leaf, dtypes.to_inexact_dtype(get_aval(leaf).dtype))
        return div_p.bind(psum_p.bind(leaf, axes=axes), np.asarray(axes_size(axes), leaf.dtype)[()])

    return tree.map(one, x)


@api_boundary
def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Maximum across named axes."""
    return _across("pmax", pmax_p, x, axis_name, axis_index_groups)


@api_boundary
def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Minimum across named axes."""
    return _across("pmin", pmin_p, x, axis_name, axis_index_groups)


@api_boundary
def axis_index(axis_name: Any) -> Any:
    """Position along a named axis (int32); along a tuple of axes, in row-major order."""
    index: Any = None
    for name in _names(axis_name):
        here = axis_index_p.bind(axes=(name,))
        size = np.int32(axis_frame(name).size)
        index = here if index is None else add_p.bind(mul_p.bind(index, size), here)
    return index


@api_boundary
def axis_size(axis_name: Any) -> int:
    """Length of a named axis."""
    return axes_size(_names(axis_name))


@api_boundary
def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The values at all positions of a named axis.

    Parameters
    ----------
    axis : int
        Where the new axis goes.
    tiled : bool
        Concatenate along the existing `axis` instead.
    to : "varying"
        Types don't tell whether a value varies along a named axis; others raise NotImplementedError.
    """
    no_groups("all_gather", axis_index_groups)
    _only_varying("all_gather", to)
    axes = _names(axis_name)

    def one(leaf: Any) -> Any:
        out = all_gather_p.bind(leaf, axes=axes)
        ndim = out.ndim - 1 if tiled else out.ndim
        at = operator.index(axis) % max(ndim, 1)
        order = [*range(1, at + 1), 0, *range(at + 1, out.ndim)]
        out = transpose(out, order)
        if tiled:
            shape = out.shape
            out = reshape(out, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))
        return out

    return tree.map(one, x)


@api_boundary
def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along a named axis: for each pair (source, target) the target gets the source's; others get zeros."""
    axes = _names(axis_name)
    size = axes_size(axes)
    pairs = tuple((operator.index(s), operator.index(t)) for s, t in perm)
    for which, ends in (("source", [s for s, _ in pairs]), ("target", [t for _, t in pairs])):
        if len(set(ends)) != len(ends) or any(not 0 <= e < size for e in ends):
            raise ValueError(f"lax.ppermute: {which}s must be distinct and within 0..{size - 1}, got {ends}")
    return tree.map(lambda leaf: ppermute_p.bind(leaf, axes=axes, perm=pairs), x)


@api_boundary
def pbroadcast(x: Any, axis_name: Any, source: Any) -> Any:
    """The value at position `source` of a named axis, everywhere.

    Parameters
    ----------
    x : pytree of arrays
    source : int, or integer scalar
    """
    mine = eq_p.bind(axis_index(axis_name), convert(source, np.dtype(np.int32)))

    def one(leaf: Any) -> Any:
        chosen = select_n_p.bind(mine, np.zeros((), get_aval(leaf).dtype)[()], leaf)
        return psum(chosen, axis_name)

    return tree.map(one, x)


@api_boundary
def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """`x` itself: types don't tell whether a value varies along a named axis, so that all count as "varying"."""
    _names(axis_name)
    _only_varying("pcast", to)
    return x


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Permute along a named axis: position i gets the value of position ``perm[i]``."""
    return ppermute(x, axis_name, [(s, t) for t, s in enumerate(perm)])


@api_boundary
def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Exchange pieces along a named axis: split an array axis, send piece j to position j, and stack what arrives.

    Without `tiled` the split axis must be as long as the named one, and is replaced by a new axis at `concat_axis`.
    """
    no_groups("all_to_all", axis_index_groups)
    axes = _names(axis_name)
    size = axes_size(axes)

    def one(leaf: Any) -> Any:
        aval = get_aval(leaf)
        s, c = split_axis % aval.ndim, concat_axis % aval.ndim
        n = aval.shape[s]
        if n % size or (n != size and not tiled):
            raise ValueError(f"lax.all_to_all: axis {s} of {aval.str_short()} must be split over {size} positions")
        out = reshape(leaf, (*aval.shape[:s], size, n // size, *aval.shape[s + 1 :]))
        out = transpose(out, [s, *(d for d in range(out.ndim) if d != s)])
        out = all_to_all_p.bind(out, axes=axes)  # leading axis: where a piece came from
        if not tiled:
            out = reshape(out, (size, *aval.shape[:s], *aval.shape[s + 1 :]))
            return transpose(out, [*range(1, c + 1), 0, *range(c + 1, out.ndim)])
        out = transpose(out, [*range(1, c + 1), 0, *range(c + 1, out.ndim)])
        shape = out.shape
        return reshape(out, (*shape[:c], shape[c] * shape[c + 1], *shape[c + 2 :]))

    return tree.map(one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swap a named axis with an array axis of the same length."""
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


@api_boundary
def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """Sum across a named axis, of which each position keeps its piece along `scatter_dimension`."""
    no_groups("psum_scatter", axis_index_groups)
    size = axis_size(axis_name)
    index = axis_index(axis_name)

    def one(leaf: Any) -> Any:
        total = psum(leaf, axis_name)
        n = total.shape[scatter_dimension]
        if n % size or (n != size and not tiled):
            raise ValueError(f"lax.psum_scatter: axis {scatter_dimension} of length {n} can't be split over {size}")
        if not tiled:
            return dynamic_index_in_dim(total, index, scatter_dimension, keepdims=False)
        start = mul_p.bind(index, np.int32(n // size))
        return dynamic_slice_in_dim(total, start, n // size, scatter_dimension)

    return tree.map(one, x)
