"""`split` and `unstack`: cut an array into pieces along an axis, the inverses of `concatenate` and `stack`.

May import: `lax.shapes`, `lax.slicing`.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.jet import linear
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import Zero, instantiate, zero_of
from xform.lax.shapes import canonical_shape, check_axes, squeeze
from xform.lax.slicing import concatenate_p, slice_in_dim


def _types(x: ShapedArray, *, sizes: tuple[int, ...], axis: int) -> list[ShapedArray]:
    if not 0 <= axis < x.ndim or sum(sizes) != x.shape[axis]:
        raise ValueError(f"lax.split: pieces of lengths {sizes} don't make up axis {axis} of {x.str_short()}")
    return [x.update(shape=(*x.shape[:axis], n, *x.shape[axis + 1 :])) for n in sizes]


def _host(x: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    before = (slice(None),) * axis
    return [x[(*before, slice(end - n, end))] for n, end in zip(sizes, accumulate(sizes), strict=True)]


def _jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
    outs = split_p.bind(*primals, **params)
    if type(ts[0]) is Zero:
        return outs, [zero_of(o) for o in outs]
    return outs, split_p.bind(*ts, **params)


def _transpose(cts: Sequence[Any], x: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    return [concatenate_p.bind(*map(instantiate, cts), dimension=axis)]


def _batch(trace: Any, args: Sequence[Any], dims: Sequence[int], *, sizes: tuple[int, ...], axis: int) -> Any:
    (x,), (d,) = args, dims
    return split_p.bind(x, sizes=sizes, axis=axis + (axis >= d)), [d] * len(sizes)


@lower_as
def _slices(x: Any, *, sizes: tuple[int, ...], axis: int) -> list[Any]:
    return [slice_in_dim(x, end - n, end, 1, axis) for n, end in zip(sizes, accumulate(sizes), strict=True)]


split_p = Primitive("split", multiple_results=True)
split_p.is_cheap_on_host = True
split_p.abstract_eval = _types
split_p.host = _host
split_p.jvp = _jvp
split_p.jet = linear(split_p)
split_p.transpose = _transpose
split_p.batch = _batch
split_p.lower = _slices


@api_boundary
def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Any]:
    """Cut into pieces of lengths `sizes`, which must add up to the length of the axis.

    Examples
    --------
    >>> import numpy as np
    >>> from xform import lax
    >>> [x.tolist() for x in lax.split(np.arange(5), (2, 3))]
    [[0, 1], [2, 3, 4]]
    """
    aval = get_aval(operand)
    (axis,) = check_axes("split", (axis,), aval.ndim, aval.str_short())
    return split_p.bind(operand, sizes=canonical_shape(sizes), axis=axis)


@api_boundary
def unstack(x: Any, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis, which they lack.

    Examples
    --------
    >>> import numpy as np
    >>> from xform import lax
    >>> [x.tolist() for x in lax.unstack(np.array([[1, 2], [3, 4]]), 1)]
    [[1, 3], [2, 4]]
    """
    aval = get_aval(x)
    (axis,) = check_axes("unstack", (axis,), aval.ndim, aval.str_short())
    return tuple(squeeze(piece, (axis,)) for piece in split(x, (1,) * aval.shape[axis], axis))
