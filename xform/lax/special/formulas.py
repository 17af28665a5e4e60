"""Formulas that serve both backends, and the parts that they share.

A formula is a function in terms of `lax` operations. `lower_as` makes a lowering of it, `host_as` a host rule.

May import: `xform.interpreters`, `lax.polynomials`, `lax.bitwise`, `lax.comparison`, `lax.conversion`.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.interpreters.host import host_function
from xform.interpreters.staging import trace_to_closed
from xform.lax.bitwise import bitwise_and, bitwise_or
from xform.lax.comparison import gt, lt, select
from xform.lax.conversion import convert
from xform.lax.polynomials import horner
from xform.lax.special.tables import Table

_BLOCK = 8192  # elements: what a formula holds at a time stays in the cache of a core

_programs: dict[Any, Callable[..., Any]] = {}


def blockwise(rule: Callable[..., Any], sort_by: int | None = None) -> Callable[..., Any]:
    """An elementwise host rule that goes block by block.

    A loop takes as many steps as the block's slowest element needs: sorted by an operand, similar ones come together.
    """

    def blocks(*operands: Any, **params: Any) -> Any:
        full = np.broadcast_arrays(*operands)
        shape, flat = full[0].shape, [np.ravel(x) for x in full]
        if flat[0].size <= _BLOCK:
            return np.reshape(rule(*flat, **params), shape)
        order = None if sort_by is None else np.argsort(flat[sort_by])
        if order is not None:
            flat = [x[order] for x in flat]
        out = np.concatenate(
            [rule(*[x[i : i + _BLOCK] for x in flat], **params) for i in range(0, flat[0].size, _BLOCK)]
        )
        if order is not None:
            out[order] = out.copy()
        return out.reshape(shape)

    return blocks


def host_as(formula: Callable[..., Any], sort_by: int | None = None) -> Callable[..., Any]:
    """A host rule that evaluates an elementwise formula with NumPy, block by block (see `blockwise`)."""

    def rule(*operands: Any, **params: Any) -> Any:
        key = (formula, tuple(x.dtype for x in operands), *params.items())
        program = _programs.get(key)
        if program is None:
            avals = [
                ShapedArray((1,), x.dtype) for x in operands
            ]  # what is traced holds for any length, by broadcasting
            closed, consts = trace_to_closed(lambda *xs: [formula(*xs, **params)], avals, formula.__name__)
            run = host_function(closed)
            program = _programs[key] = lambda *xs: run(*map(np.asarray, consts), *xs)[0]
        return program(*operands)

    return blockwise(rule, sort_by)


def replaced(y: Any, where: Any, host: Callable[..., Any], *operands: Any) -> Any:
    """`y`, with the elements of a mask computed by another host rule."""
    if not np.any(where):
        return y
    y = np.array(y)
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
