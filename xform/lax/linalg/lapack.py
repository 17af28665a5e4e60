"""LAPACK in lowered programs: custom calls of the kernels that jaxlib has for the CPU.

A kernel takes and returns matrices in column-major order, with any number of leading batch axes, and most of them
return a status (`info`) for each matrix, which is 0 if all went well. What each routine computes is documented at
https://www.netlib.org/lapack/explore-html/

May import: `xform.interpreters`, `lax.families`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.interpreters.lowering import Context, Value, i64s
from xform.lax.families import compare

_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}

# Routines whose names differ for complex numbers.
_COMPLEX_NAME = {"syevd": "heevd", "sytrd": "hetrd", "orgqr": "ungqr", "ormqr": "unmqr"}

INFO = np.dtype(np.int32)


def require_cpu(ctx: Context, primitive: str) -> None:
    """NotImplementedError if the program is for another platform, whose kernels are not in the table."""
    if ctx.platform != "cpu":
        raise NotImplementedError(
            f"primitive '{primitive}' can't be compiled for platform '{ctx.platform}' yet, only for the CPU: "
            "compute it outside of jit on arrays of the CPU"
        )


def call(
    ctx: Context,
    routine: str,
    operands: Sequence[tuple[Value, int]],
    outs: Sequence[tuple[ShapedArray, int]],
    attributes: str = "",
    in_place: Sequence[tuple[int, int]] = (),
) -> list[Value]:
    """Call a routine.

    Parameters
    ----------
    routine : LAPACK's name without the letter of the type, such as "potrf"
    operands, outs : pairs (value or aval, rank without batch axes: 2 for matrices, 1 for vectors, 0 for numbers)
    attributes : MLIR text; characters by `flag`
    in_place : pairs (operand, result) that may share memory
    """
    dtype = operands[0][0].dtype
    name = _COMPLEX_NAME.get(routine, routine) if dtype.kind == "c" else routine
    single = len(outs) == 1
    aliases = ", ".join(
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"[{'' if single else result}], operand_index = {operand}, operand_tuple_indices = []>"
        for operand, result in in_place
    )
    text = (
        f'call_target_name = "lapack_{_PREFIX[dtype.name]}{name}_ffi", api_version = 4 : i32, '
        f"backend_config = {{{attributes}}}, output_operand_aliases = [{aliases}], "
        f"operand_layouts = [{', '.join(_layout(x.shape, rank) for x, rank in operands)}], "
        f"result_layouts = [{', '.join(_layout(a.shape, rank) for a, rank in outs)}]"
    )
    return ctx.op("custom_call", [x for x, _ in operands], [a for a, _ in outs], text)


def flag(name: str, character: str) -> str:
    """An attribute that holds one of LAPACK's characters."""
    return f"{name} = {ord(character)} : ui8"


def _layout(shape: Sequence[int], rank: int) -> str:
    """Axes from the one that varies fastest: the last but one of matrices, the last of others."""
    order = [*range(len(shape))][::-1]
    if rank == 2:
        order[:2] = order[1::-1]
    return f"dense<{order if order else ''}> : tensor<{len(shape)}xindex>"


def converged(ctx: Context, info: Value, good: Value | None = None) -> Value:
    """Which matrices have status 0, and are good."""
    mask = compare(ctx, info, ctx.full(info.shape, 0, INFO), "EQ")
    return mask if good is None else ctx.op("and", [mask, good], mask.aval)


def where(ctx: Context, good: Value, outs: Sequence[Value]) -> list[Value]:
    """The results, NaN for the matrices that are not good (booleans in the shape of the batch)."""
    batch = tuple(range(len(good.shape)))
    return [
        ctx.op("select", [ctx.broadcast(good, x.shape, batch), x, ctx.full(x.shape, np.nan, x.dtype)], x.aval)
        for x in outs
    ]


def finite(ctx: Context, x: Value) -> tuple[Value, Value]:
    """Which matrices are finite, and `x` with zeros in place of the others.

    Iterations on infinities may never end in LAPACK, and NaN make it write to the terminal.
    """
    n = len(x.shape)
    parts = [x]
    if x.dtype.kind == "c":
        part = x.aval.update(dtype=np.finfo(x.dtype).dtype)
        parts = [ctx.op(name, [x], part) for name in ("real", "imag")]
    masks: list[Any] = [ctx.op("is_finite", [p], ShapedArray(x.shape, np.dtype(bool))) for p in parts]
    mask = masks[0] if len(masks) == 1 else ctx.op("and", masks, masks[0].aval)
    scalar = ShapedArray((), np.dtype(bool))
    body = ctx.region(lambda ctx, a, b: [ctx.op("and", [a, b], scalar)], [scalar, scalar])
    good = ctx.op(
        "reduce", [mask, ctx.constant(True, bool)], ShapedArray(x.shape[:-2], np.dtype(bool)),
        f"dimensions = array<i64: {n - 2}, {n - 1}>", [body],
    )  # fmt: skip
    safe = ctx.op(
        "select",
        [ctx.broadcast(good, x.shape, tuple(range(n - 2))), x, ctx.full(x.shape, 0, x.dtype)],
        x.aval,
    )
    return good, safe


def triangle(ctx: Context, x: Value, lower: bool, k: int = 0) -> Value:
    """The part of matrices on and below, or on and above, diagonal number k."""
    n = len(x.shape)
    i, j = (ctx.op("iota", [], ShapedArray(x.shape[-2:], np.int32), f"iota_dimension = {d} : i64") for d in (0, 1))
    if k:
        i = ctx.op("add", [i, ctx.full(i.shape, k, np.int32)], i.aval)
    mask = ctx.broadcast(compare(ctx, j, i, "LE" if lower else "GE"), x.shape, (n - 2, n - 1))
    return ctx.op("select", [mask, x, ctx.full(x.shape, 0, x.dtype)], x.aval)


def identity(ctx: Context, aval: ShapedArray) -> Value:
    """A batch of identity matrices."""
    ones = ctx.full(aval.shape, 1, aval.dtype)
    return triangle(ctx, triangle(ctx, ones, lower=True), lower=False)


def resized(ctx: Context, x: Value, m: int, n: int) -> Value:
    """Matrices cut off or filled up with zeros to m rows and n columns."""
    if x.shape[-2:] == (m, n):
        return x
    batch = x.shape[:-2]
    zeros = i64s([0] * len(x.shape))
    rows, columns = m - x.shape[-2], n - x.shape[-1]
    return ctx.op(
        "pad", [x, ctx.constant(0, x.dtype)], x.aval.update(shape=(*batch, m, n)),
        f"edge_padding_low = {zeros}, edge_padding_high = {i64s([*(0 for _ in batch), rows, columns])}, "
        f"interior_padding = {zeros}",
    )  # fmt: skip
