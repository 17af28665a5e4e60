"""Formulas that serve both backends, and the parts that they share.

A formula is a function in terms of `lax` operations. `lower_as` makes a lowering of it, `host_as` a host rule, and
`compiled_if_large` a host rule that leaves large arrays to XLA.

May import: `xform.interpreters`, `xform.backends`, `lax.families`, `lax.polynomials`, `lax.bitwise`, `lax.comparison`,
`lax.conversion`, `lax.gather`, `lax.shapes`.
"""

import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from math import comb
from typing import Any

import numpy as np

from xform.backends import xla, xla_runtime
from xform.core.array import host_value
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.jaxpr import ClosedJaxpr
from xform.interpreters.execution import compile_jaxpr
from xform.interpreters.forward import with_consts
from xform.interpreters.host import host_function
from xform.interpreters.lowering import lower_as
from xform.interpreters.staging import trace_to_closed
from xform.lax.bitwise import bitwise_and, bitwise_or
from xform.lax.comparison import clamp, gt, lt, select
from xform.lax.conversion import convert
from xform.lax.families import elementwise
from xform.lax.gather import GatherDimensionNumbers, gather
from xform.lax.polynomials import horner
from xform.lax.shapes import expand_dims
from xform.lax.special.tables import Table

_BLOCK = 8192  # elements: what a formula holds at a time stays in the cache of a core

_programs: dict[Any, Callable[..., Any]] = {}


def blockwise(rule: Callable[..., Any], sort_by: int | None = None, block: int = _BLOCK) -> Callable[..., Any]:
    """An elementwise host rule that goes block by block; the last block overlaps the one before.

    A loop takes as many steps as the block's slowest element needs: sorted by an operand, similar ones come together.
    """

    def blocks(*operands: Any, **params: Any) -> Any:
        full = np.broadcast_arrays(*operands)
        shape, flat = full[0].shape, [np.ravel(x) for x in full]
        size = flat[0].size
        if size <= block:
            return np.reshape(rule(*flat, **params), shape)
        order = None if sort_by is None else _roughly_sorted(flat[sort_by])
        if order is not None:
            flat = [x[order] for x in flat]
        starts = [*range(0, size - block, block), size - block]
        parts = [rule(*[x[i : i + block] for x in flat], **params) for i in starts]
        out = np.empty(size, parts[0].dtype)
        for i, part in zip(starts, parts, strict=True):
            out[i : i + block] = host_value(part)
        if order is not None:
            out[order] = out.copy()
        return out.reshape(shape)

    return blocks


def _roughly_sorted(x: np.ndarray) -> np.ndarray:
    """The order of positive floats by exponent and first digits, which takes a tenth of the time of sorting them."""
    parts = x.itemsize // 2
    first = -1 if sys.byteorder == "little" else 0
    return np.argsort(x.view(np.uint16).reshape(-1, parts)[:, first], kind="stable")


def _traced(formula: Callable[..., Any], size: int, operands: Sequence[Any], params: dict[str, Any]) -> ClosedJaxpr:
    """The program of a formula, for vectors."""
    avals = [ShapedArray((size,), x.dtype) for x in operands]
    return with_consts(*trace_to_closed(lambda *xs: [formula(*xs, **params)], avals, formula.__name__))


def host_as(formula: Callable[..., Any], sort_by: int | None = None) -> Callable[..., Any]:
    """A host rule that evaluates an elementwise formula with NumPy, block by block (see `blockwise`)."""

    def rule(*operands: Any, **params: Any) -> Any:
        key = (formula, tuple(x.dtype for x in operands), *params.items())
        program = _programs.get(key)
        if program is None:  # what is traced for one element holds for any number, by broadcasting
            program = _programs[key] = host_function(_traced(formula, 1, operands, params))
        return program(*operands)[0]

    return blockwise(rule, sort_by)


# From so many elements on a long formula is compiled, for blocks of one size, so that this happens once. It takes 0.2
# to 2 s, two or three times what NumPy takes for so many elements; from then on XLA takes a fifth of NumPy's time.
COMPILED_FROM = 2**19
_COMPILED_BLOCK = 2**16


def compiled_if_large(
    rule: Callable[..., Any], operation: Callable[..., Any], sort_by: int | None = None
) -> Callable[..., Any]:
    """A host rule that has large arrays computed by XLA, which compiles the operation, and others by `rule`.

    While tracing, with `disable_jit` and while debugging (where `state.run_context` is None) `rule` computes all.
    """

    def compiled(*operands: Any, **params: Any) -> Any:
        key = (operation, tuple(x.dtype for x in operands), *params.items())
        program = _programs.get(key)
        if program is None:
            closed = _traced(operation, _COMPILED_BLOCK, operands, params)
            program = _programs[key] = compile_jaxpr(closed, xla.devices("cpu")[0])
        return program(operands)[0]

    large = blockwise(compiled, sort_by, _COMPILED_BLOCK)

    def either(*operands: Any, **params: Any) -> Any:
        is_large = max(x.size for x in operands) >= COMPILED_FROM
        compile_it = is_large and state.run_context is not None and xla_runtime.available()
        return (large if compile_it else rule)(*operands, **params)

    return either


def replaced(y: Any, where: Any, host: Callable[..., Any], *operands: Any) -> Any:
    """`y`, a new array, with the elements of a mask computed by another host rule."""
    if not np.any(where):
        return y
    y = np.asarray(y)
    y[where] = host(*[np.asarray(x)[where] for x in operands])
    return y


def in_float64(formula: Callable[..., Any]) -> Callable[..., Any]:
    """A formula that computes in float64 whatever the dtype of its operands."""

    def wide(*operands: Any, **params: Any) -> Any:
        dtype = operands[0].dtype
        return convert(formula(*[convert(x, np.dtype(np.float64)) for x in operands], **params), dtype)

    wide.__name__ = formula.__name__
    return wide


def at_least(x: Any, least: float) -> Any:
    """The maximum, with the derivative of `x` at `least` itself."""
    return select(lt(x, least), least, x)


def at_most(x: Any, most: float) -> Any:
    """The minimum, with the derivative of `x` at `most` itself."""
    return select(gt(x, most), most, x)


def all_of(*conditions: Any) -> Any:
    """Where all conditions hold."""
    return reduce(bitwise_and, conditions)


def any_of(*conditions: Any) -> Any:
    """Where one of the conditions holds."""
    return reduce(bitwise_or, conditions)


def evaluate(table: Table, x: Any) -> Any:
    """The polynomial of a table in `x`, with the coefficients for its dtype."""
    return horner(x, table[x.dtype.name])


def _entry_lowered(index: Any, *, table: tuple[float, ...]) -> Any:
    numbers = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
    return gather(np.array(table), expand_dims(index, (index.ndim,)), numbers, slice_sizes=(1,), mode="clip")


entry_p = elementwise(
    "entry",
    lambda index, *, table: np.take(np.array(table), index, mode="clip"),
    accepts="integer",
    result=np.dtype(np.float64),
    lower=lower_as(_entry_lowered),
)


def entry(table: tuple[float, ...], index: Any) -> Any:
    """``table[round(index)]`` in float64, elementwise; beyond the ends, the entry there."""
    index = clamp(0.0, index, len(table) - 1.0)
    return entry_p.bind(convert(index, np.dtype(np.int32)), table=table)


def bernoulli(n: int) -> list[Fraction]:
    """The Bernoulli numbers B_0 ... B_n."""
    numbers: list[Fraction] = []
    for m in range(n + 1):
        numbers.append(Fraction(m == 0) - sum(comb(m, k) * b / (m - k + 1) for k, b in enumerate(numbers)))
    return numbers
