"""Elementary functions on CPU, written in arithmetic that XLA compiles to vector instructions.

XLA on CPU calls many functions of the C library element by element: 15 ns for a sine, where the formula here takes 4.
Formulas work on `number.Number` without branches or tables; LLVM vectorises the loop. Where a product must be exact, it
is so by the number of its digits: LLVM may contract a product and a sum, or not. Where XLA has vector code of its own
that is faster (`exp` and `expm1` of float64, most of float32), nothing here replaces it.

Errors are at most 1 ulp beyond those of the C library; most of float32 is computed in float64 and wrong by at most
0.55 ulp (see `lax.single_precision` for the rest).
Results that are subnormal are 0, as XLA's. The polynomials have the least maximal relative error; `tests/minimax.py`
computes them.

May import: `lax.families`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.interpreters.lowering import Context, Value, i64s
from xform.lax.families import KINDS, compare, lower_in_float32
from xform.lax.vector_math import division, exponential, trigonometric
from xform.lax.vector_math.number import FLOAT, Bound, Number

FORMULAS: dict[str, Callable[..., Number]] = {
    name: function
    for module in (division, exponential, trigonometric)
    for name, function in vars(module).items()
    if callable(function) and function.__module__ == module.__name__ and not name.startswith("_")
}


BOUNDS = division.BOUNDS | trigonometric.BOUNDS


def vectorized(
    name: str, otherwise: str | Callable[..., Any], single: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """The lowering of an elementwise function of real numbers: by a formula on CPU, or else XLA's operation or a rule.

    The formula `name` is for float64, ``short_name`` for float32; either may be missing. For float32 there may be a
    lowering rule that is float32 arithmetic, instead (`single`). Narrower floats are computed in float32. Of some the
    formula has a `Bound`.
    """
    rules = {64: _numbers(FORMULAS.get(name)), 32: single or _numbers(FORMULAS.get("short_" + name))}
    bound = BOUNDS.get(name)

    def lower(ctx: Context, *operands: Value, **params: Any) -> Value:
        out = ctx.out
        rule = rules[64 if out.dtype == FLOAT else 32] if KINDS["float"](out.dtype) else None
        if rule is not None and ctx.module.takes_formula(out.size):
            if bound is not None:
                return _within(ctx, bound, rule, *operands)
            return _once(ctx, rule(ctx, *operands))
        return ctx.op(otherwise, operands, out) if isinstance(otherwise, str) else otherwise(ctx, *operands, **params)

    return lower_in_float32(lower)


def in_wide_vectors(rule: Callable[..., Value], otherwise: str | None = None) -> Callable[..., Value]:
    """A lowering rule that is arithmetic, and wants wide vectors as a formula does.

    Where no formula is taken, it is XLA's operation `otherwise`, if there is one, whose code is shorter to compile.
    """

    def lower(ctx: Context, *operands: Value) -> Value:
        if ctx.module.takes_formula(math.prod(ctx.out.shape)) or otherwise is None:
            return rule(ctx, *operands)
        return ctx.op(otherwise, operands, ctx.out)

    return lower


def _numbers(formula: Callable[..., Number] | None) -> Callable[..., Value] | None:
    """The lowering rule of a formula, which computes in float64."""
    if formula is None:
        return None

    def lower(ctx: Context, *operands: Value) -> Value:
        out = ctx.out
        constants: dict[Any, Value] = {}
        return formula(*[Number(ctx, ctx.convert(x, FLOAT), constants) for x in operands]).to(out.dtype).value

    return lower


def _within(ctx: Context, bound: Bound, formula: Callable[..., Value], *operands: Value) -> Value:
    """A formula, if all elements are within its bound; else XLA's operation, in float64, for all of them.

    A vector would have to compute both for each element.
    """
    out, number = ctx.out, ShapedArray((), FLOAT)
    size = bound.measure(*[Number(ctx, ctx.convert(x, FLOAT), {}) for x in operands]).value
    maximum = ctx.region(lambda ctx, a, b: [ctx.op("maximum", [a, b], number)], [number, number])
    axes = f"dimensions = {i64s(range(len(out.shape)))}"
    largest = ctx.op("reduce", [size, ctx.constant(0.0, FLOAT)], number, axes, [maximum])
    index = ctx.convert(compare(ctx, largest, ctx.constant(bound.limit, FLOAT), "LT"), np.dtype(np.int32))

    def general(ctx: Context) -> list[Value]:
        wide = [ctx.convert(x, FLOAT) for x in operands]
        return [ctx.convert(ctx.op(bound.operation, wide, out.update(dtype=FLOAT)), out.dtype)]

    regions = [ctx.region(general, []), ctx.region(lambda ctx: [formula(ctx, *operands)], [])]
    return ctx.op("case", [index], out, "", regions)


def _once(ctx: Context, result: Value) -> Value:
    """The same, computed once.

    XLA computes all operations anew in each fusion that uses them but those it takes for expensive, as a division.
    """
    return ctx.apart(result) if (ctx.module.formulas or 0) > MOST_FUSED else ctx.once(result)


# Formulas of a program that may be fused. In loops with dozens of them LLVM finds no vector instructions.
MOST_FUSED = 4
