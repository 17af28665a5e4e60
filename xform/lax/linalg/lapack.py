"""LAPACK in lowered programs: custom calls of the kernels that jaxlib has for the CPU, and jax's plugin for CUDA.

A kernel takes and returns matrices in column-major order, with any number of leading batch axes, and most of them
return a status (`info`) for each matrix, which is 0 if all went well. What each routine computes is documented at
https://www.netlib.org/lapack/explore-html/ and, for CUDA, at https://docs.nvidia.com/cuda/cusolver/

May import: `xform.interpreters`, `lax.families`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.interpreters.lowering import Context, Value, i64s
from xform.lax.families import compare, real_dtype

INFO = np.dtype(np.int32)


@dataclass(frozen=True)
class Kernel:
    """A routine on one platform: the target of its custom call, and the attributes of that for a caller's options.

    In the target, `{t}` is LAPACK's letter of the type, `{sy}` and `{or}` are he and un for complex numbers. Attributes
    are truth values, integers, and LAPACK's characters.
    """

    target: str
    attributes: Callable[..., dict[str, Any]] = dict


def _triangle_of(lower: bool) -> str:
    return "L" if lower else "U"


# Routines by LAPACK's name. CUDA's for singular values and general eigenvalues have other results than LAPACK's.
KERNELS: dict[str, dict[str, Kernel]] = {
    "potrf": {"cpu": Kernel("lapack_{t}potrf_ffi", lambda lower: {"uplo": _triangle_of(lower)})},
    "trsm": {
        "cpu": Kernel(
            "lapack_{t}trsm_ffi",
            lambda left, lower, transpose, unit: {
                "diag": "NU"[unit], "side": "RL"[left], "trans_x": transpose, "uplo": _triangle_of(lower),
            },
        ),
    },
    "getrf": {"cpu": Kernel("lapack_{t}getrf_ffi"), "cuda": Kernel("cusolver_getrf_ffi")},
    "geqrf": {"cpu": Kernel("lapack_{t}geqrf_ffi"), "cuda": Kernel("cusolver_geqrf_ffi")},
    "geqp3": {"cpu": Kernel("lapack_{t}geqp3_ffi")},
    "orgqr": {"cpu": Kernel("lapack_{t}{or}gqr_ffi"), "cuda": Kernel("cusolver_orgqr_ffi")},
    "ormqr": {"cpu": Kernel("lapack_{t}{or}mqr_ffi"), "cuda": Kernel("cusolver_ormqr_ffi")},
    "gehrd": {"cpu": Kernel("lapack_{t}gehrd_ffi", lambda n: {"low": 1, "high": n})},
    "sytrd": {
        "cpu": Kernel("lapack_{t}{sy}trd_ffi", lambda lower: {"uplo": _triangle_of(lower)}),
        "cuda": Kernel("cusolver_sytrd_ffi"),
    },
    "syevd": {
        "cpu": Kernel(
            "lapack_{t}{sy}evd_ffi",
            lambda lower, vectors: {"mode": "NV"[vectors], "uplo": _triangle_of(lower)},
        ),
        "cuda": Kernel("cusolver_syevd_ffi", lambda lower, vectors: {"lower": lower, "algorithm": np.uint8(0)}),
    },
    "gesdd": {
        "cpu": Kernel(
            "lapack_{t}gesdd_ffi",
            lambda vectors, full: {"mode": "N" if not vectors else "A" if full else "S"},
        ),
    },
    "gesvdj": {
        "cuda": Kernel("cusolver_gesvdj_ffi", lambda vectors, full: {"full_matrices": full, "compute_uv": vectors}),
    },
    "gesvd": {
        "cuda": Kernel(
            "cusolver_gesvd_ffi",
            lambda vectors, full, transposed: {
                "full_matrices": full, "compute_uv": vectors, "transposed": transposed,
            },
        ),
    },
    "geev": {
        "cpu": Kernel(
            "lapack_{t}geev_ffi",
            lambda left, right: {"compute_left": "NV"[left], "compute_right": "NV"[right]},
        ),
        "cuda": Kernel("cusolver_geev_ffi"),
    },
    "gees": {"cpu": Kernel("lapack_{t}gees_ffi", lambda vectors: {"mode": "NV"[vectors], "sort": "N"})},
    "gtsv": {"cpu": Kernel("lapack_{t}gtsv_ffi"), "cuda": Kernel("cusparse_gtsv2_ffi")},
}  # fmt: skip


def is_cuda(ctx: Context) -> bool:
    """Whether the program is for CUDA; jaxlib's name for it is "gpu"."""
    return ctx.platform in ("cuda", "gpu")


def kernel(ctx: Context, routine: str, primitive: str = "") -> Kernel:
    """The kernel of a routine on the program's platform; NotImplementedError if there is none."""
    found = KERNELS[routine].get("cuda" if is_cuda(ctx) else ctx.platform)
    if found is None:
        raise NotImplementedError(
            f"primitive '{primitive or routine}' can't be compiled for platform '{ctx.platform}', which has no kernel "
            f"for LAPACK's {routine}: compute it outside of jit on arrays of the CPU"
        )
    return found


def call(
    ctx: Context,
    routine: str,
    operands: Sequence[tuple[Value, int]],
    outs: Sequence[tuple[ShapedArray, int]],
    options: dict[str, Any] | None = None,
    in_place: Sequence[tuple[int, int]] = (),
) -> list[Value]:
    """Call a routine.

    Parameters
    ----------
    routine : LAPACK's name without the letter of the type, such as "potrf"
    operands, outs : pairs (value or aval, rank without batch axes: 2 for matrices, 1 for vectors, 0 for numbers)
    options : arguments of the kernel's `attributes` in the table
    in_place : pairs (operand, result) that may share memory
    """
    dtype = operands[0][0].dtype
    found = kernel(ctx, routine)
    names = {"t": _LETTERS[dtype.name], **({"sy": "he", "or": "un"} if dtype.kind == "c" else {"sy": "sy", "or": "or"})}
    attributes = ", ".join(f"{name} = {_attribute(v)}" for name, v in found.attributes(**options or {}).items())
    single = len(outs) == 1
    aliases = ", ".join(
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"[{'' if single else result}], operand_index = {operand}, operand_tuple_indices = []>"
        for operand, result in in_place
    )
    text = (
        f'call_target_name = "{found.target.format_map(names)}", api_version = 4 : i32, '
        f"backend_config = {{{attributes}}}, output_operand_aliases = [{aliases}], "
        f"operand_layouts = [{', '.join(_layout(x.shape, rank) for x, rank in operands)}], "
        f"result_layouts = [{', '.join(_layout(a.shape, rank) for a, rank in outs)}]"
    )
    return ctx.op("custom_call", [x for x, _ in operands], [a for a, _ in outs], text)


_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def _attribute(value: Any) -> str:
    """A value as MLIR text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        value = np.uint8(ord(value))
    return f"{int(value)} : {'ui8' if isinstance(value, np.uint8) else 'i32'}"


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


def adjoint(ctx: Context, x: Value) -> Value:
    """The conjugate transposes of matrices."""
    n = len(x.shape)
    *batch, rows, columns = x.shape
    aval = x.aval.update(shape=(*batch, columns, rows))
    other = ctx.op("transpose", [x], aval, f"permutation = {i64s([*range(n - 2), n - 1, n - 2])}")
    if aval.dtype.kind != "c":
        return other
    part = aval.update(dtype=real_dtype(aval.dtype))
    imag = ctx.op("negate", [ctx.op("imag", [other], part)], part)
    return ctx.op("complex", [ctx.op("real", [other], part), imag], aval)


def block(ctx: Context, x: Value, m: int, n: int) -> Value:
    """The first m rows and n columns of matrices."""
    if x.shape[-2:] == (m, n):
        return x
    *batch, _, _ = x.shape
    limits = (*batch, m, n)
    attributes = (
        f"start_indices = {i64s([0] * len(limits))}, limit_indices = {i64s(limits)}, "
        f"strides = {i64s([1] * len(limits))}"
    )
    return ctx.op("slice", [x], x.aval.update(shape=limits), attributes)
