"""`stack` and `tile`: arrays side by side, along a new axis or along those they have.

Operations of their own so that programs stay short: made of `broadcast_in_dim`, `concatenate` and `reshape` they would
be as many equations as there are arrays, and they are lowered to just that.

May import: `lax.shapes`, `lax.slicing`, `lax.reductions`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.jet import locally_linear
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import Zero, instantiate, is_linear, zero_of
from xform.lax.reductions import reduce_sum_p
from xform.lax.shapes import broadcast_in_dim, canonical_shape, check_axes, expand_dims, linear_unary, reshape, squeeze
from xform.lax.slicing import concatenate_p, slice_in_dim

# ---- stack -------------------------------------------------------------------------------------------------


def _stack_types(*operands: ShapedArray, axis: int) -> ShapedArray:
    first = operands[0]
    if any(x.shape != first.shape or x.dtype != first.dtype for x in operands):
        raise ValueError(
            f"lax.stack: arrays must have one shape and one dtype, got {', '.join(x.str_short() for x in operands)}"
        )
    if not 0 <= axis <= first.ndim:
        raise ValueError(f"lax.stack: axis {axis} is out of range for a result of {first.ndim + 1} axes")
    shape = (*first.shape[:axis], len(operands), *first.shape[axis:])
    return ShapedArray(shape, first.dtype, all(x.weak_type for x in operands))


def _stack_jvp(primals: Sequence[Any], ts: Sequence[Any], *, axis: int) -> Any:
    out = stack_p.bind(*primals, axis=axis)
    if all(type(t) is Zero for t in ts):
        return out, zero_of(out)
    return out, stack_p.bind(*map(instantiate, ts), axis=axis)


def _stack_transpose(ct: Any, *operands: Any, axis: int) -> list[Any]:
    return [
        squeeze(slice_in_dim(ct, i, i + 1, 1, axis), (axis,)) if is_linear(x) else None for i, x in enumerate(operands)
    ]


def _stack_batch(axis_data: Any, operands: Sequence[Any], dims: Sequence[Any], *, axis: int) -> Any:
    moved = [batching.move_to(x, d, axis_data.size, 0) for x, d in zip(operands, dims, strict=True)]
    return stack_p.bind(*moved, axis=axis + 1), 0


@lower_as
def _stack_lower(*operands: Any, axis: int) -> Any:
    return concatenate_p.bind(*[expand_dims(x, (axis,)) for x in operands], dimension=axis)


stack_p = Primitive("stack")
stack_p.is_cheap_on_host = True
stack_p.abstract_eval = _stack_types
stack_p.host = lambda *operands, axis: np.stack(operands, axis)
stack_p.jvp = _stack_jvp
stack_p.jet = locally_linear(stack_p)
stack_p.transpose = _stack_transpose
stack_p.batch = _stack_batch
stack_p.lower = _stack_lower


@api_boundary
def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    """Join arrays of one shape and dtype along a new axis.

    Examples
    --------
    >>> from xform import lax
    >>> lax.stack([np.arange(2), np.arange(2, 4)], 1).tolist()
    [[0, 2], [1, 3]]
    """
    operands = list(operands)
    if not operands:
        raise ValueError("lax.stack: at least one array is needed, got none")
    ndim = get_aval(operands[0]).ndim + 1
    (axis,) = check_axes("stack", axis, ndim, f"a result of {ndim} axes")
    return stack_p.bind(*operands, axis=axis)


# ---- tile --------------------------------------------------------------------------------------------------


def _tile_types(x: ShapedArray, *, reps: tuple[int, ...]) -> ShapedArray:
    if len(reps) != x.ndim:
        raise ValueError(f"lax.tile: reps must have one number for each axis of {x.str_short()}, got {reps}")
    return x.update(shape=tuple(r * n for r, n in zip(reps, x.shape, strict=True)))


def _pairs(x: ShapedArray, reps: tuple[int, ...]) -> tuple[int, ...]:
    """The shape in which the repetitions are axes of their own."""
    return tuple(n for pair in zip(reps, x.shape, strict=True) for n in pair)


def _tile_transpose(ct: Any, x: ShapedArray, *, reps: tuple[int, ...]) -> Any:
    return reduce_sum_p.bind(reshape(ct, _pairs(x, reps)), axes=tuple(range(0, 2 * x.ndim, 2)))


@lower_as
def _tile_lower(x: Any, *, reps: tuple[int, ...]) -> Any:
    aval = get_aval(x)
    pairs = _pairs(aval, reps)
    repeated = broadcast_in_dim(x, pairs, range(1, len(pairs), 2))
    return reshape(repeated, _tile_types(aval, reps=reps).shape)


tile_p = linear_unary(
    "tile",
    _tile_types,
    lambda x, *, reps: np.tile(x, reps),
    _tile_transpose,
    lambda axis, x, d, *, reps: (tile_p.bind(x, reps=(*reps[:d], 1, *reps[d:])), d),
    _tile_lower,
)


@api_boundary
def tile(operand: Any, reps: Sequence[int]) -> Any:
    """Repeat the whole array ``reps[i]`` times along axis i; `reps` has one number for each axis.

    Examples
    --------
    >>> from xform import lax
    >>> lax.tile(np.arange(2), (2,)).tolist()
    [0, 1, 0, 1]
    """
    return tile_p.bind(operand, reps=canonical_shape(reps))
