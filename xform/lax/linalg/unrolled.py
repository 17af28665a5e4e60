"""Arithmetic over the batch: what formulas for many small matrices (`lax.linalg.small`) are written with.

A formula is one function for both backends: its numbers, each of them an element of all matrices, are ndarrays on the
host, and write StableHLO in a program. `unrolled` gives it to a primitive.

May import: `lax.families`, `lax.vector_math`, `lax.transcendental`.
"""

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value, i64s, lower_as
from xform.lax.families import real_dtype
from xform.lax.transcendental import log_p
from xform.lax.vector_math.number import Number
from xform.lax.vector_math.number import where as where_numbers

LARGEST = 4  # rows and columns
# With fewer matrices LAPACK is faster on the host. In programs the formulas win from 100 on, but take 0.1 to 1 s of
# compilation.
FEWEST = 1000
BLOCK = 4096  # matrices that the host takes at a time, so that its vectors stay in the cache


def unrolled(p: Primitive, formula: Callable[..., Any], *, on_host: bool = True) -> None:
    """Let a primitive use a formula for small square matrices, if they are many.

    ``formula(*operands, **params)`` takes a list of rows for an operand with matrices, a list for one with vectors, and
    returns the like: one result, or a tuple of them. The first operand are the square matrices.
    """
    host, lower = p.host, p.lower

    def fits(shapes: Sequence[Sequence[int]]) -> bool:
        *batch, m, n = shapes[0]
        sizes = [d for shape in shapes for d in shape[len(batch) :]]
        return m == n and math.prod(batch) >= FEWEST and min(sizes) > 0 and max(sizes) <= LARGEST

    def small_host(*xs: Any, **params: Any) -> Any:
        if not fits([x.shape for x in xs]):
            return host(*xs, **params)
        outs = p.abstract_eval(*(ShapedArray(x.shape, x.dtype) for x in xs), **params)
        outs = _on_host(lambda *xs: formula(*xs, **params), xs, outs if p.multiple_results else [outs])
        return outs if p.multiple_results else outs[0]

    def small_lower(ctx: Context, *xs: Value, **params: Any) -> Any:
        if not fits([x.shape for x in xs]):
            return lower(ctx, *xs, **params)
        outs = _in_program(ctx, lambda *xs: formula(*xs, **params), xs, ctx.outs)
        return outs if p.multiple_results else outs[0]

    p.host, p.lower = small_host if on_host else host, small_lower


def _on_host(formula: Callable[..., Any], xs: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    axes = xs[0].ndim - 2
    count = math.prod(xs[0].shape[:axes])
    flat = [x.reshape(count, -1) for x in xs]
    outs = [np.empty((count, math.prod(a.shape[axes:])), a.dtype) for a in avals]
    for start in range(0, count, BLOCK):
        block = slice(start, start + BLOCK)
        results = formula(*[nested(list(f[block].T.copy()), x.shape[axes:]) for f, x in zip(flat, xs, strict=True)])
        for out, result in zip(outs, results if isinstance(results, tuple) else (results,), strict=True):
            for i, element in enumerate(elements(result)):
                out[block, i] = element
    return [out.reshape(a.shape) for out, a in zip(outs, avals, strict=True)]


def _in_program(
    ctx: Context, formula: Callable[..., Any], xs: Sequence[Value], avals: Sequence[ShapedArray]
) -> list[Value]:
    axes = len(xs[0].shape) - 2
    count = math.prod(xs[0].shape[:axes])
    constants: dict[Any, Value] = {}

    def reshaped(x: Value, shape: Sequence[int]) -> Value:
        return ctx.op("reshape", [x], x.aval.update(shape=tuple(shape)))

    def element(x: Value, i: int) -> Number:
        attributes = f"start_indices = {i64s((0, i))}, limit_indices = {i64s((count, i + 1))}, strides = {i64s((1, 1))}"
        column = ctx.op("slice", [x], x.aval.update(shape=(count, 1)), attributes)
        return Number(ctx, reshaped(column, (count,)), constants)

    def numbers(x: Value) -> Any:
        shape = x.shape[axes:]
        flat = reshaped(x, (count, math.prod(shape)))
        return nested([element(flat, i) for i in range(flat.shape[1])], shape)

    def array(result: Any, aval: ShapedArray) -> Value:
        values = [e.value if isinstance(e, Number) else ctx.full((count,), e, aval.dtype) for e in elements(result)]
        columns = [reshaped(v, (count, 1)) for v in values]
        whole = ctx.op(
            "concatenate", columns, aval.update(shape=(count, len(columns)), weak_type=False), "dimension = 1 : i64"
        )
        return reshaped(whole, aval.shape)

    results = formula(*map(numbers, xs))
    results = results if isinstance(results, tuple) else (results,)
    return [array(result, aval) for result, aval in zip(results, avals, strict=True)]


def nested(flat: list[Any], shape: Sequence[int]) -> Any:
    """A list for a vector, a list of rows for a matrix."""
    return flat if len(shape) == 1 else [flat[i : i + shape[1]] for i in range(0, len(flat), shape[1])]


def elements(x: Any) -> list[Any]:
    return [e for part in x for e in elements(part)] if isinstance(x, list | tuple) else [x]


def one_loop(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Let programs for the CPU compute all results of a formula in one loop over the matrices.

    XLA makes a loop of its own for each result of elementwise operations, and computes anew what they share. But a
    reduction of several operands is one loop with several results. Here its body, ``f(old results, operands)``, ignores
    the old results; each operand stands twice along the axis that is reduced, as a reduction of one element would be
    left out. XLA on CPU reduces element by element, as it must be here; the specification allows other orders.
    """

    def looped(*xs: Any, **params: Any) -> Any:
        flat = elements(list(xs))
        on_cpu = isinstance(flat[0], Number) and flat[0].ctx.platform == "cpu"
        if not on_cpu or not flat[0].value.shape:  # or in a loop already
            return formula(*xs, **params)
        ctx, (count,), constants = flat[0].ctx, flat[0].value.shape, flat[0].constants
        scope: dict[Any, Value] = {}
        # Results take the places of operands of their dtype; more places are added at the end, with zeros as operands.
        # To know the results, the formula is written twice.
        trial: list[Any] = []

        def write(ctx: Context, *args: Value) -> list[Value]:
            scope.clear()
            ctx.constants = {}  # nothing of the program around it is used in the body
            numbers = iter(Number(ctx, v, scope) for v in args)
            trial[:] = [formula(*(_like(x, numbers) for x in xs), **params)]
            return []

        ctx.region(write, [x.value.aval.update(shape=()) for x in flat])
        dtypes = [dtype_of(x) for x in flat]
        places: list[int] = []
        for x in elements(trial[0]):
            if isinstance(x, Number):
                free = [i for i, d in enumerate(dtypes) if d == dtype_of(x) and i not in places]
                if not free:
                    dtypes.append(dtype_of(x))
                places.append(free[0] if free else len(dtypes) - 1)
        avals = [ShapedArray((), d) for d in dtypes]

        def body(ctx: Context, *args: Value) -> list[Value]:
            write(ctx, *args[len(avals) : len(avals) + len(flat)])
            outs = list(args[: len(avals)])
            for place, x in zip(places, (x for x in elements(trial[0]) if isinstance(x, Number)), strict=True):
                outs[place] = x.value
            return outs

        values = [ctx.broadcast(x.value, (count, 2), (0,)) for x in flat]
        values += [ctx.full((count, 2), 0, d) for d in dtypes[len(flat) :]]
        with ctx.module.repeated(count):
            region = ctx.region(body, [*avals, *avals])
        results = ctx.op(
            "reduce", [*values, *(ctx.constant(0, d) for d in dtypes)], [ShapedArray((count,), d) for d in dtypes],
            "dimensions = array<i64: 1>", [region],
        )  # fmt: skip
        outs = iter(Number(ctx, results[place], constants) for place in places)
        return _like(trial[0], outs)

    return looped


def _like(structure: Any, numbers: Iterator[Number]) -> Any:
    """Nested lists with other numbers in place of these; constants stay."""
    if isinstance(structure, list | tuple):
        return type(structure)(_like(x, numbers) for x in structure)
    return next(numbers) if isinstance(structure, Number) else structure


# What the numbers of both backends have in common beside their operators


def where(condition: Any, x: Any, y: Any) -> Any:
    return (where_numbers if isinstance(condition, Number) else np.where)(condition, x, y)


def equals(x: Any, value: float) -> Any:
    return x.equals(value) if isinstance(x, Number) else x == value


def sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Number) else np.sqrt(x)


def log(x: Any) -> Any:
    return Number(x.ctx, _lower_log(x.ctx, x.value), x.constants) if isinstance(x, Number) else np.log(x)


_lower_log = lower_as(log_p.bind)


def larger(x: Any, y: Any) -> Any:
    return x.at_least(y) if isinstance(x, Number) else np.maximum(x, y)


def full_like(like: Any, value: float) -> Any:
    return like.constant(value) if isinstance(like, Number) else np.full_like(like, value)


def dtype_of(x: Any) -> np.dtype:
    return x.value.dtype if isinstance(x, Number) else x.dtype


def converted(x: Any, dtype: Any) -> Any:
    return x.to(dtype) if isinstance(x, Number) else x.astype(dtype)


def parts(x: Any) -> list[Any]:
    """The real and the imaginary part, or the real number itself."""
    if dtype_of(x).kind != "c":
        return [x]
    if not isinstance(x, Number):
        return [x.real, x.imag]
    aval = x.value.aval.update(dtype=real_dtype(x.value.dtype))
    return [Number(x.ctx, x.ctx.op(name, [x.value], aval), x.constants) for name in ("real", "imag")]


def joined(parts: Sequence[Any]) -> Any:
    """The inverse of `_parts`."""
    if len(parts) == 1:
        return parts[0]
    real, imag = parts
    if not isinstance(real, Number):
        out = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
        out.real, out.imag = real, imag
        return out
    aval = real.value.aval.update(dtype=np.result_type(real.value.dtype, np.complex64))
    return Number(real.ctx, real.ctx.op("complex", [real.value, imag.value], aval), real.constants)


def real(x: Any) -> Any:
    return parts(x)[0]


def conjugate(x: Any) -> Any:
    re, *im = parts(x)
    return joined([re, -im[0]]) if im else x


def squared(x: Any) -> Any:
    """``|x|^2``"""
    re, *im = parts(x)
    return re * re + im[0] * im[0] if im else re * re


def pivot_size(x: Any) -> Any:
    """``|Re x| + |Im x|``, by which LAPACK chooses pivots."""
    re, *im = parts(x)
    return abs(re) + abs(im[0]) if im else abs(re)


def times(r: Any, x: Any) -> Any:
    """A real number times a number."""
    return joined([r * part for part in parts(x)])


def over(x: Any, r: Any) -> Any:
    """A number over a real one."""
    return joined([part / r for part in parts(x)])


def any_of(conditions: Sequence[Any]) -> Any:
    return functools.reduce(operator.or_, conditions)


def all_of(conditions: Sequence[Any]) -> Any:
    return functools.reduce(operator.and_, conditions)


def total(terms: Sequence[Any]) -> Any:
    first, *rest = terms
    return sum(rest, first)


def repeat(unfinished: Callable[..., Any], step: Callable[..., Any], state: list[Any], most: int) -> list[Any]:
    """``state = step(*state)`` while that is unfinished for any matrix, at most so many times."""
    if not isinstance(state[0], Number):
        for _ in range(most):
            if not unfinished(*state).any():
                break
            state = step(*state)
        return state
    ctx = state[0].ctx
    count = ctx.constant(0, np.int32)
    avals, flag = [count.aval, *(x.value.aval for x in state)], ShapedArray((), np.dtype(bool))

    def numbers(values: Sequence[Value]) -> list[Number]:
        constants: dict[Any, Value] = {}
        return [Number(ctx, v, constants) for v in values]

    def either(ctx: Context, x: Value, y: Value) -> list[Value]:
        return [ctx.op("or", [x, y], flag)]

    def condition(ctx: Context, count: Value, *values: Value) -> list[Value]:
        lanes = unfinished(*numbers(values)).value
        some = ctx.op(
            "reduce", [lanes, ctx.constant(False, bool)], flag, "dimensions = array<i64: 0>",
            [ctx.region(either, [flag, flag])],
        )  # fmt: skip
        early = Number(ctx, count, {}) < most
        return [ctx.op("and", [some, early.value], flag)]

    def body(ctx: Context, count: Value, *values: Value) -> list[Value]:
        one = ctx.op("add", [count, ctx.constant(1, np.int32)], count.aval)
        return [one, *(x.value for x in step(*numbers(values)))]

    regions = [ctx.region(condition, avals), ctx.region(body, avals)]
    _, *outs = ctx.op("while", [count, *(x.value for x in state)], avals, "", regions)
    return [Number(ctx, v, x.constants) for v, x in zip(outs, state, strict=True)]
