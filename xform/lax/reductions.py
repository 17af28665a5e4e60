"""Reductions over axes: sums, products, extremes, bitwise reductions.

May import: `lax.families`, `lax.conversion`, `lax.shapes`, the elementwise modules, `lax.cumulative`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.jet import linear, locally_linear
from xform.interpreters.lowering import SHORT_AXIS, Context, Value, i64s
from xform.interpreters.staging import trace_to_closed
from xform.interpreters.tangents import Zero, zero_of
from xform.lax import families
from xform.lax.arithmetic import div_p, mul_p
from xform.lax.comparison import eq_p
from xform.lax.conversion import convert
from xform.lax.shapes import broadcast_in_dim, canonical_axes, linear_jvp, reshape, transpose
from xform.lax.slicing import concatenate, slice_in_dim


def reduction(
    name: str, host: Callable[..., Any], *, accepts: str, lower: Callable[..., Value], jvp: Any = None
) -> Primitive:
    """Define a reduction over `axes` (a sorted tuple) that keeps the dtype."""
    p = Primitive(name)

    def types(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
        families.check_kind(name, [x], accepts)
        if any(not 0 <= a < x.ndim for a in axes) or len(set(axes)) != len(axes):
            raise ValueError(f"lax.{name}: axes {axes} don't fit an operand of {x.str_short()}")
        return x.update(shape=tuple(n for i, n in enumerate(x.shape) if i not in axes))

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int], *, axes: tuple[int, ...]) -> Any:
        (x,), (d,) = args, dims
        shifted = tuple(a + (a >= d) for a in axes)
        return p.bind(x, axes=shifted), d - sum(a < d for a in shifted)

    p.abstract_eval = types
    p.host = host
    p.batch = batch
    p.lower = lower
    if jvp is not None:
        p.jvp = jvp
    return p


def accumulator(dtype: np.dtype) -> np.dtype:
    """What sums and products are accumulated in, on the host and by XLA alike; the same object if it is `dtype`.

    Narrow floats in float32; integers of fewer than 8 bits in int8 or uint8, which leaves the lower bits the same.
    """
    return dtype if dtype.itemsize >= 4 else _ACCUMULATORS.get(dtype, dtype)


_IN_BYTES = {
    dtypes.by_name[name]: np.dtype(wide)
    for kind, wide in (("i", np.int8), ("u", np.uint8))
    for name in dtypes.narrow[kind]
}
_ACCUMULATORS = {d: np.dtype(np.float32) for d in dtypes.kinds if families.is_narrow_float(d)} | _IN_BYTES


def reduce_with(ufunc: np.ufunc) -> Callable[..., Any]:
    """Host rule: reduce by a ufunc that has an identity."""

    def host(x: Any, *, axes: tuple[int, ...]) -> Any:
        if not axes:
            return x
        wide = accumulator(x.dtype)
        if wide is not x.dtype:
            return ufunc.reduce(x.astype(wide), axes).astype(x.dtype)
        return ufunc.reduce(x, axes, wide)

    return host


def lower_reduce(operation: str | Callable[..., Value], identity: Callable[[np.dtype], Any]) -> Callable[..., Value]:
    """Lowering to stablehlo.reduce with one StableHLO operation, or a function that writes several."""

    def combine(ctx: Context, a: Value, b: Value) -> Value:
        return operation(ctx, a, b) if callable(operation) else ctx.op(operation, [a, b], a.aval)

    def lower(ctx: Context, x: Value, *, axes: tuple[int, ...]) -> Value:
        dtype = ctx.out.dtype
        if operation in ("add", "multiply"):
            x = ctx.convert(x, accumulator(x.dtype))
        return ctx.convert(reduced(ctx, x, axes), dtype)

    def reduced(ctx: Context, x: Value, axes: tuple[int, ...]) -> Value:
        step, takes_loops = combine, ctx.takes_loops(x.aval)
        if takes_loops and len(axes) == 1 and 1 < x.shape[axes[0]] <= SHORT_AXIS:
            return _unrolled(ctx, combine, x, axes[0])
        if takes_loops and operation == "add" and _is_for_loops(x.aval, axes):
            if x.negative_of is not None:  # what is subtracted in one place is often added in another
                total = reduced(ctx, x.negative_of, axes)
                return ctx.op("subtract", [ctx.full(total.shape, 0, total.dtype), total], total.aval)
            if x.is_cheap and x.aval.size >= LARGE_SUM:
                axis = max(axes, key=lambda a: x.shape[a])
                parts = _quarters(ctx, x, axis)
                if axes == (axis,) and _collides(parts[0].aval, axes):
                    sums = [_by_quarters(ctx, combine, part, axis) for part in parts]
                else:
                    sums = [reduced(ctx, part, axes) for part in parts]
                return functools.reduce(partial(combine, ctx), sums)
            if not _collides(x.aval, axes):
                step = _minus_negative
        return _reduced(ctx, step, identity, x, axes)

    return lower


def _reduced(ctx: Context, step: Callable[..., Value], identity: Callable[..., Any], x: Value, axes: Any) -> Value:
    """StableHLO's reduce."""
    scalar = ShapedArray((), x.dtype)
    region = ctx.region(lambda ctx, a, b: [step(ctx, a, b)], [scalar, scalar])
    out = x.aval.update(shape=tuple(n for d, n in enumerate(x.shape) if d not in axes))
    start = ctx.constant(identity(x.dtype), x.dtype)
    return ctx.op("reduce", [x, start], out, f"dimensions = {i64s(axes)}", [region])


# XLA on CPU hands reductions of floats to a library (YNNPACK), which is good along contiguous memory: twice as fast as
# XLA's own loops. Over a few elements it is up to fifty times slower than these, and what it gets must be in memory,
# where a loop computes its operand on the way.


def _slice(ctx: Context, x: Value, axis: int, first: int, end: int) -> Value:
    start, limit = [0] * len(x.shape), list(x.shape)
    start[axis], limit[axis] = first, end
    out = x.aval.update(shape=tuple(b - a for a, b in zip(start, limit, strict=True)))
    bounds = f"start_indices = {i64s(start)}, limit_indices = {i64s(limit)}, strides = {i64s([1] * len(start))}"
    return ctx.op("slice", [x], out, bounds)


def _unrolled(ctx: Context, combine: Callable[..., Value], x: Value, axis: int) -> Value:
    """Combine the slices of a short axis, each in the place of a scalar."""
    out = x.aval.update(shape=(*x.shape[:axis], *x.shape[axis + 1 :]))
    parts = [ctx.op("reshape", [_slice(ctx, x, axis, k, k + 1)], out) for k in range(x.shape[axis])]
    return ctx.once(functools.reduce(partial(combine, ctx), parts))  # or each user computes it anew: programs grow


LARGE_SUM = 2**16  # elements, from which on a loop more is worth it


def _quarters(ctx: Context, x: Value, axis: int) -> list[Value]:
    """What has the same sum along an axis: four quarters added up, and up to three elements that are left.

    XLA's loop over one result at a time would compute the operand in the order of the sum, across the rows of memory.
    """
    n = x.shape[axis] // 4
    total, *others = [_slice(ctx, x, axis, k * n, (k + 1) * n) for k in range(4)]
    for each in others:
        total = ctx.op("add", [total, each], total.aval)
    rest = [_slice(ctx, x, axis, 4 * n, x.shape[axis])] if x.shape[axis] % 4 else []
    return [ctx.once(total), *rest]


def _by_quarters(ctx: Context, combine: Callable[..., Value], x: Value, axis: int) -> Value:
    """The sum along an axis, by one quarter of it after the other."""
    if x.shape[axis] <= SHORT_AXIS:
        return _unrolled(ctx, combine, x, axis)
    sums = [_by_quarters(ctx, combine, part, axis) for part in _quarters(ctx, x, axis)]
    return functools.reduce(partial(combine, ctx), sums)


def _collides(x: ShapedArray, axes: tuple[int, ...]) -> bool:
    """Whether XLA's loop down the columns of a matrix would meet the same lines of the cache again and again."""
    row = math.prod(x.shape[1:]) * x.dtype.itemsize
    return axes == (0,) and row % 2**11 == 0 and row <= 2**15


def _is_for_loops(x: ShapedArray, axes: tuple[int, ...]) -> bool:
    """Whether a sum is over few elements, or its inner loop one over results."""
    return x.ndim - 1 not in axes or math.prod(x.shape[a] for a in axes) <= 16


def _minus_negative(ctx: Context, a: Value, b: Value) -> Value:
    """A sum as the library doesn't know it."""
    return ctx.op("subtract", [a, ctx.op("negate", [b], b.aval)], a.aval)


# Sum and product


def _sum_transpose(ct: Any, x: Any, *, axes: tuple[int, ...]) -> list[Any]:
    kept = tuple(d for d in range(x.aval.ndim) if d not in axes)
    return [broadcast_in_dim(ct, x.aval.shape, kept)]


reduce_sum_p = reduction(
    "reduce_sum", reduce_with(np.add), accepts="number", lower=lower_reduce("add", lambda dtype: 0)
)
reduce_sum_p.jvp = lambda primals, ts, *, axes: linear_jvp(reduce_sum_p, primals[0], ts[0], {"axes": axes})
reduce_sum_p.jet = linear(reduce_sum_p)
reduce_sum_p.transpose = _sum_transpose

reduce_prod_p = reduction(
    "reduce_prod", reduce_with(np.multiply), accepts="number", lower=lower_reduce("multiply", lambda dtype: 1)
)


# Extremes. Complex numbers are ordered by real part, then imaginary part; NaN wins.


def lowest(dtype: np.dtype) -> Any:
    """What no element is smaller than."""
    match dtypes.kinds[dtype]:
        case "b":
            return False
        case "i" | "u":
            return dtypes.iinfo(dtype).min
    return _extreme_float(dtype, -np.inf)


def highest(dtype: np.dtype) -> Any:
    """What no element is larger than."""
    match dtypes.kinds[dtype]:
        case "b":
            return True
        case "i" | "u":
            return dtypes.iinfo(dtype).max
    return _extreme_float(dtype, np.inf)


def _extreme_float(dtype: np.dtype, infinity: float) -> Any:
    """An infinity; the largest finite number of the types that have none."""
    if dtype.kind == "c":
        return dtype.type(complex(infinity, infinity))
    extreme = np.asarray(infinity).astype(dtype)[()]
    return extreme if np.isinf(extreme) else np.sign(infinity) * dtypes.finfo(dtype).max


def _extreme_host(ufunc: np.ufunc, identity: Callable[[np.dtype], Any]) -> Callable[..., Any]:
    def host(x: Any, *, axes: tuple[int, ...]) -> Any:
        if not axes:
            return x
        if (wide := _IN_BYTES.get(x.dtype)) is not None:
            return ufunc.reduce(x.astype(wide), axes, initial=int(identity(x.dtype))).astype(x.dtype)
        return ufunc.reduce(x, axes) if x.size else ufunc.reduce(x, axes, initial=identity(x.dtype))

    return host


_LANES = 8
_LIBRARYS = 2**12  # elements, from which on XLA on CPU hands reductions to the library, in whose extremes NaN is lost


def _extreme_lower(operation: str, direction: str) -> Callable[..., Value]:
    opposite, identity = ("minimum", lowest) if operation == "maximum" else ("maximum", highest)

    def write(ctx: Context, a: Value, b: Value) -> Value:
        if not families.is_complex(a):
            return ctx.op(operation, [a, b], a.aval)
        keep = complex_before(ctx, a, b, direction)
        return ctx.op("select", [keep, a, b], a.aval)

    def by_negatives(ctx: Context, a: Value, b: Value) -> Value:
        """An extreme as the library doesn't know it."""
        negatives = [ctx.op("negate", [v], v.aval) for v in (a, b)]
        return ctx.op("negate", [ctx.op(opposite, negatives, a.aval)], a.aval)

    def lower(ctx: Context, x: Value, *, axes: tuple[int, ...]) -> Value:
        wide = accumulator(x.dtype)
        short = len(axes) == 1 and x.shape[axes[0]] <= SHORT_AXIS
        if short or x.aval.size < _LIBRARYS or not ctx.takes_loops(x.aval.update(dtype=wide)):
            return plain(ctx, x, axes=axes)
        return ctx.convert(by_lanes(ctx, ctx.convert(x, wide), axes), x.dtype)

    def by_lanes(ctx: Context, x: Value, axes: tuple[int, ...]) -> Value:
        """Compare several numbers at once with the next ones, by vector instructions."""
        first = x.aval.ndim
        while first - 1 in axes:
            first -= 1
        shape, n = x.shape[:first], math.prod(x.shape[first:])
        if first == x.aval.ndim or n < 4 * _LANES:
            return _reduced(ctx, by_negatives, identity, x, axes)
        x = ctx.op("reshape", [x], x.aval.update(shape=(*shape, n)))
        axes = (*(a for a in axes if a < first), first)
        end = n - n % _LANES
        body = ctx.op("reshape", [_slice(ctx, x, first, 0, end)], x.aval.update(shape=(*shape, end // _LANES, _LANES)))
        lanes = _reduced(ctx, by_negatives, identity, body, axes)
        out = _unrolled(ctx, write, lanes, lanes.aval.ndim - 1)
        if end == n:
            return out
        return write(ctx, out, _reduced(ctx, by_negatives, identity, _slice(ctx, x, first, end, n), axes))

    plain = lower_reduce(write, identity)
    return lower


def complex_before(ctx: Context, a: Value, b: Value, direction: str) -> Value:
    """Whether `a` is NaN or before `b` in lexicographic order; `direction` is GT or LT."""
    part = a.aval.update(dtype=families.real_dtype(a.dtype))
    (ar, ai), (br, bi) = ([ctx.op(p, [x], part) for p in ("real", "imag")] for x in (a, b))

    def compare(x: Value, y: Value, how: str) -> Value:
        return families.compare(ctx, x, y, how)

    def both(p: Value, q: Value) -> Value:
        return ctx.op("and", [p, q], p.aval)

    def either(p: Value, q: Value) -> Value:
        return ctx.op("or", [p, q], p.aval)

    b_is_number = both(compare(br, br, "EQ"), compare(bi, bi, "EQ"))
    first = either(compare(ar, br, direction), both(compare(ar, br, "EQ"), compare(ai, bi, direction)))
    a_is_nan = either(compare(ar, ar, "NE"), compare(ai, ai, "NE"))
    return either(a_is_nan, both(first, b_is_number))


def _extreme_jvp(p: Primitive) -> Callable[..., Any]:
    """The tangents of all elements that attain the extreme, averaged."""

    def jvp(primals: Sequence[Any], ts: Sequence[Any], *, axes: tuple[int, ...]) -> Any:
        (x,), (t,) = primals, ts
        out = p.bind(x, axes=axes)
        if type(t) is Zero or not x.size:
            return out, zero_of(out)
        kept = tuple(d for d in range(x.ndim) if d not in axes)
        attained = convert(eq_p.bind(x, broadcast_in_dim(out, x.shape, kept)), x.dtype)
        count = reduce_sum_p.bind(attained, axes=axes)
        return out, div_p.bind(reduce_sum_p.bind(mul_p.bind(t, attained), axes=axes), count)

    return jvp


def _extreme(name: str, ufunc: np.ufunc, operation: str, direction: str) -> Primitive:
    identity = lowest if operation == "maximum" else highest
    p = reduction(name, _extreme_host(ufunc, identity), accepts="any", lower=_extreme_lower(operation, direction))
    p.jvp, p.jet = _extreme_jvp(p), locally_linear(p)
    return p


reduce_max_p = _extreme("reduce_max", np.maximum, "maximum", "GT")
reduce_min_p = _extreme("reduce_min", np.minimum, "minimum", "LT")


# Bitwise, or logical


def _bitwise(name: str, ufunc: np.ufunc, operation: str, identity: Callable[[np.dtype], Any]) -> Primitive:
    p = reduction(name, reduce_with(ufunc), accepts="bool or integer", lower=lower_reduce(operation, identity))
    p.jvp = lambda primals, ts, *, axes: (out := p.bind(*primals, axes=axes), zero_of(out))
    return p


reduce_and_p = _bitwise("reduce_and", np.bitwise_and, "and", lambda dtype: ~np.zeros((), dtype))
reduce_or_p = _bitwise("reduce_or", np.bitwise_or, "or", lambda dtype: 0)
reduce_xor_p = _bitwise("reduce_xor", np.bitwise_xor, "xor", lambda dtype: 0)


# The public functions


def _reduce(p: Primitive, operand: Any, axes: Any, out_sharding: None = None) -> Any:
    families.no_sharding(p.name, out_sharding=out_sharding)
    return p.bind(operand, axes=canonical_axes(p.name, operand, axes))


@api_boundary
def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: None = None) -> Any:
    """Sum over `axes`, in the dtype of the operand; float16 and bfloat16 are accumulated in float32."""
    return _reduce(reduce_sum_p, operand, axes, out_sharding)


@api_boundary
def reduce_prod(operand: Any, axes: Sequence[int]) -> Any:
    """Product over `axes`, in the dtype of the operand."""
    return _reduce(reduce_prod_p, operand, axes)


@api_boundary
def reduce_max(operand: Any, axes: Sequence[int], *, out_sharding: None = None) -> Any:
    """Largest element over `axes`; NaN if there is one. Of no elements: the lowest value of the dtype.

    The derivative is shared equally by all elements that attain the maximum.
    """
    return _reduce(reduce_max_p, operand, axes, out_sharding)


@api_boundary
def reduce_min(operand: Any, axes: Sequence[int], *, out_sharding: None = None) -> Any:
    """Smallest element over `axes`; NaN if there is one. Of no elements: the highest value of the dtype."""
    return _reduce(reduce_min_p, operand, axes, out_sharding)


@api_boundary
def reduce_and(operand: Any, axes: Sequence[int]) -> Any:
    """Bitwise and (of booleans: all) over `axes`."""
    return _reduce(reduce_and_p, operand, axes)


@api_boundary
def reduce_or(operand: Any, axes: Sequence[int]) -> Any:
    """Bitwise or (of booleans: any) over `axes`."""
    return _reduce(reduce_or_p, operand, axes)


@api_boundary
def reduce_xor(operand: Any, axes: Sequence[int]) -> Any:
    """Bitwise exclusive or over `axes`."""
    return _reduce(reduce_xor_p, operand, axes)


families.Hooks.reduce_sum = reduce_sum


# Reduction by any function

_MONOIDS = {
    "add": reduce_sum_p, "mul": reduce_prod_p, "max": reduce_max_p, "min": reduce_min_p,
    "and": reduce_and_p, "or": reduce_or_p, "xor": reduce_xor_p,
}  # fmt: skip


@api_boundary
def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: None = None,
) -> Any:
    """Reduce over `dimensions` by any associative function of two scalars.

    Parameters
    ----------
    operands : pytree of arrays of one shape
    init_values : pytree like it, of scalars
        What the reduction starts from.
    computation : function of two pytrees of scalars, to one like them
        Associative, which is not checked. `lax.add`, `mul`, `max`, `min`, `bitwise_and`, `bitwise_or` and
        `bitwise_xor` are recognised; else neighbours are combined in pairs, pairs of pairs, and so on.

    Returns
    -------
    Pytree like `operands`, without the axes `dimensions`

    Examples
    --------
    >>> import numpy as np
    >>> from xform import lax
    >>> float(lax.reduce(np.array([3.0, 4.0]), 0.0, lambda x, y: lax.sqrt(x * x + y * y), (0,)))
    5.0
    """
    families.no_sharding("reduce", out_sharding=out_sharding)
    xs, init, treedef, combine, name = scalar_program("reduce", operands, init_values, computation)
    shape = get_aval(xs[0]).shape
    axes = canonical_axes("reduce", xs[0], dimensions)
    monoid = _MONOIDS.get(name)
    out = [broadcast_in_dim(i, [n for d, n in enumerate(shape) if d not in axes], ()) for i in init]
    if monoid is not None:
        out = elementwise_combine(combine, out, [monoid.bind(xs[0], axes=axes)])
    elif all(shape[d] for d in axes):
        out = elementwise_combine(combine, out, _fold(combine, xs, axes))
    return treedef.unflatten(out)


def scalar_program(
    name: str, operands: Any, init_values: Any, computation: Callable[[Any, Any], Any]
) -> tuple[list[Any], list[Any], Any, Callable[..., list[Any]], str]:
    """The arguments of a reduction by any function, checked and flat.

    Returns the arrays, the initial values in their dtypes, the structure, the function of flat scalars, and its
    primitive's name if that is all it does.
    """
    if not callable(computation):
        raise TypeError(f"lax.{name}: computation must be a function of two scalars, got {computation!r}")
    xs, treedef = tree.flatten(operands)
    init, init_tree = tree.flatten(init_values)
    avals = [get_aval(x) for x in xs]
    if treedef != init_tree or any(get_aval(i).shape for i in init) or len({a.shape for a in avals}) != 1:
        raise TypeError(
            f"lax.{name}: operands must have one shape, and init_values be scalars in the same structure; got "
            f"{tree.map(_short, operands)} and {tree.map(_short, init_values)}"
        )
    init = [convert(i, a.dtype, a.weak_type and get_aval(i).weak_type) for i, a in zip(init, avals, strict=True)]
    scalars = [a.update(shape=()) for a in avals]

    def combine(*args: Any) -> list[Any]:
        n = len(args) // 2
        out, structure = tree.flatten(computation(treedef.unflatten(args[:n]), treedef.unflatten(args[n:])))
        if structure != treedef or any(get_aval(o).str_short() != s.str_short() for o, s in zip(out, scalars)):
            raise TypeError(f"lax.{name}: computation must return scalars like its arguments, {scalars}, got {out}")
        return out

    jaxpr = trace_to_closed(combine, [*scalars, *scalars], name)[0].jaxpr
    operation = ""
    if len(xs) == len(jaxpr.eqns) == 1:
        eqn = jaxpr.eqns[0]
        if {*map(id, eqn.invars)} == {*map(id, jaxpr.invars)} and jaxpr.outvars[0] is eqn.outvars[0]:
            operation = eqn.primitive.name
    return xs, init, treedef, combine, operation


def _short(x: Any) -> str:
    return get_aval(x).str_short()


def elementwise_combine(combine: Callable[..., list[Any]], first: list[Any], second: list[Any]) -> list[Any]:
    """Apply a function of scalars to all elements."""
    size = first[0].size
    flat = [reshape(x, (size,)) for x in (*first, *second)]
    outs, dims = batching.batch(combine, flat, [0] * len(flat), size, None)
    return [reshape(batching.move_to(o, d, size), x.shape) for o, d, x in zip(outs, dims, first, strict=True)]


def _fold(combine: Callable[..., list[Any]], xs: list[Any], axes: tuple[int, ...]) -> list[Any]:
    """Combine neighbours along `axes` until one is left."""
    shape = get_aval(xs[0]).shape
    kept = tuple(d for d in range(len(shape)) if d not in axes)
    n, rest = math.prod(shape[d] for d in axes), tuple(shape[d] for d in kept)
    xs = [reshape(transpose(x, (*axes, *kept)), (n, *rest)) for x in xs]
    while n > 1:
        even, odd = ([slice_in_dim(x, k, n - 1 + k, 2) for x in xs] for k in (0, 1))
        pairs = elementwise_combine(combine, even, odd)
        last = [[slice_in_dim(x, n - 1, n)] if n % 2 else [] for x in xs]
        xs = [concatenate([p, *o], 0) for p, o in zip(pairs, last, strict=True)]
        n = (n + 1) // 2
    return [reshape(x, rest) for x in xs]
