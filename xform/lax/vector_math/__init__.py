"""Elementary functions on CPU, written in arithmetic that XLA compiles to vector instructions.

XLA on CPU calls many functions of the C library element by element: 15 ns for a sine, where the formula here takes 4.
Formulas work on `number.Number` without branches or tables; LLVM vectorises the loop. Where a product must be exact, it
is so by the number of its digits: LLVM may contract a product and a sum, or not. Where XLA has vector code of its own
that is faster (`exp` and `expm1` of float64, most of float32), nothing here replaces it.

Errors are at most 1 ulp beyond those of the C library; float32 is computed in float64 and wrong by at most 0.55 ulp.
Results that are subnormal are 0, as XLA's. The polynomials have the least maximal relative error; `tests/minimax.py`
computes them.

May import: `lax.families`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from xform.core.avals import ShapedArray
from xform.interpreters.lowering import Context, Value
from xform.lax.families import KINDS, lower_in_float32
from xform.lax.vector_math import exponential, trigonometric
from xform.lax.vector_math.number import FLOAT, Number

FORMULAS: dict[str, Callable[..., Number]] = {
    name: function
    for module in (exponential, trigonometric)
    for name, function in vars(module).items()
    if callable(function) and function.__module__ == module.__name__ and not name.startswith("_")
}


def vectorized(name: str, otherwise: str | Callable[..., Any]) -> Callable[..., Any]:
    """The lowering of an elementwise function of real numbers: by a formula on CPU, or else XLA's operation or a rule.

    The formula `name` is for float64, ``short_name`` for float32; either may be missing. Narrower floats are computed
    in float32.
    """
    formulas = {64: FORMULAS.get(name), 32: FORMULAS.get("short_" + name)}

    def lower(ctx: Context, *operands: Value, **params: Any) -> Value:
        out = ctx.out
        formula = formulas[64 if out.dtype == FLOAT else 32] if KINDS["float"](out.dtype) else None
        if formula is not None and ctx.module.takes_formula(math.prod(out.shape)):
            return _write(ctx, formula, operands, out)
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


def _write(ctx: Context, formula: Callable[..., Number], operands: Sequence[Value], out: ShapedArray) -> Value:
    """Write a formula, which computes in float64."""
    constants: dict[Any, Value] = {}
    numbers = [Number(ctx, ctx.convert(x, FLOAT), constants) for x in operands]
    result = formula(*numbers).to(out.dtype).value
    # XLA computes all operations anew in each fusion that uses them but those it takes for expensive, as a division.
    result = ctx.once(result)
    if (ctx.module.formulas or 0) > MOST_FUSED:
        # Nor does it fuse an expensive operation with what uses it twice, so this ends a loop.
        result = ctx.op("multiply", [result, ctx.opaque_one(result)], result.aval)
    return result


# Formulas of a program that may be fused. In loops with dozens of them LLVM finds no vector instructions.
MOST_FUSED = 4
