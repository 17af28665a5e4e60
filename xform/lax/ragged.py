"""`ragged_dot`: products of matrices of which one axis falls into groups of different lengths.

Made of `dot_general` and, where lengths of the groups are traced, masks: its derivatives and batching are theirs.

May import: `lax.dot` and what is below it, `lax.cumulative`, `lax.slicing`.
"""

import dataclasses
import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import concrete_or_none
from xform.lax import families
from xform.lax.arithmetic import sub_p
from xform.lax.bitwise import and_p
from xform.lax.comparison import le_p, lt_p, select_n_p
from xform.lax.conversion import convert
from xform.lax.cumulative import cumsum_p
from xform.lax.dot import DotDimensionNumbers, dot_general
from xform.lax.families import as_operands
from xform.lax.precision import PrecisionLike
from xform.lax.shapes import broadcast_in_dim, full, iota_p, transpose
from xform.lax.slicing import concatenate, index_in_dim, slice_in_dim
from xform.lax.stacking import stack


@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """Which axes `ragged_dot_general` contracts, and which fall into groups.

    Attributes
    ----------
    dot_dimension_numbers : ((lhs contracting, rhs contracting), (lhs batch, rhs batch))
    lhs_ragged_dimensions : the one axis of `lhs` that falls into groups
    rhs_group_dimensions : the axis of `rhs` that counts the groups, if the ragged axis is not contracted; else none
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        pairs = tuple(tuple(tuple(map(operator.index, d)) for d in pair) for pair in self.dot_dimension_numbers)
        object.__setattr__(self, "dot_dimension_numbers", pairs)
        for name in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(self, name, tuple(map(operator.index, getattr(self, name))))


@api_boundary
def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: None = None,
    out_sharding: None = None,
) -> Any:
    """Each group of rows times a matrix of its own.

    Parameters
    ----------
    lhs : (m, k) array
        The first ``group_sizes[0]`` rows are the first group, and so on; rows behind the last one give zeros.
    rhs : (g, k, n) array
    group_sizes : (g,) integer array

    Returns
    -------
    (m, n) array

    Examples
    --------
    >>> from xform import lax
    >>> lax.ragged_dot(np.ones((4, 1)), np.array([[[1.0]], [[2.0]]]), np.array([3, 1])).tolist()
    [[1.0], [1.0], [1.0], [2.0]]
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    families.no_sharding("ragged_dot", group_offset=group_offset, out_sharding=out_sharding)
    return _ragged_dot("ragged_dot", lhs, rhs, group_sizes, numbers, precision, preferred_element_type)


@api_boundary
def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: None = None,
    out_sharding: None = None,
) -> Any:
    """`dot_general` group by group, along an axis that falls into groups of consecutive elements.

    Parameters
    ----------
    group_sizes : integer array
        Of shape (g,), or with leading axes of the lengths of the batch axes and of those that stand before the ragged
        one in its kind: then each of these has groups of its own.
    ragged_dot_dimension_numbers : RaggedDotDimensionNumbers
        If the ragged axis is free, each group meets its own part of `rhs`, along the group axis of that. If it is
        contracted, each group is summed for itself, and the result has a leading axis of length g. If it is a batch
        axis, groups don't matter.

    Returns
    -------
    Array
        With axes as from `dot_general`.
    """
    families.no_sharding("ragged_dot_general", group_offset=group_offset, out_sharding=out_sharding)
    numbers = ragged_dot_dimension_numbers
    return _ragged_dot("ragged_dot_general", lhs, rhs, group_sizes, numbers, precision, preferred_element_type)


def _ragged_dot(
    name: str,
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike,
    preferred_element_type: Any,
) -> Any:
    lhs, rhs = as_operands(name, lhs, rhs)
    prefix = _check(name, get_aval(lhs), get_aval(rhs), get_aval(group_sizes), numbers)

    def dot(x: Any, y: Any, dimension_numbers: Any) -> Any:
        return dot_general(x, y, dimension_numbers, precision, preferred_element_type)

    if numbers.lhs_ragged_dimensions[0] in numbers.dot_dimension_numbers[1][0]:
        return dot(lhs, rhs, numbers.dot_dimension_numbers)
    bounds = _known_bounds(group_sizes, get_aval(lhs).shape[numbers.lhs_ragged_dimensions[0]])
    if bounds is not None:
        return _one_by_one(dot, lhs, rhs, bounds, numbers)
    return _masked(dot, lhs, rhs, group_sizes, numbers, prefix)


def _check(
    name: str, x: ShapedArray, y: ShapedArray, sizes: ShapedArray, numbers: RaggedDotDimensionNumbers
) -> tuple[list[int], list[int]]:
    """TypeError unless the arguments fit; the axes of lhs, and of rhs, for which there may be groups of their own."""

    def check(fits: bool, what: str) -> None:
        if not fits:
            avals = ", ".join(a.str_short() for a in (x, y, sizes))
            raise TypeError(f"lax.{name}: {what}; got lhs, rhs and group_sizes {avals} with {numbers}")

    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    free = [d for d in range(x.ndim) if d not in (*xc, *xb)]
    check(len(numbers.lhs_ragged_dimensions) == 1, "there must be one ragged axis of lhs")
    (ragged,) = numbers.lhs_ragged_dimensions
    check(0 <= ragged < x.ndim, "the ragged axis must be one of lhs")
    check(all(0 <= d < x.ndim for d in (*xc, *xb)) and all(0 <= d < y.ndim for d in (*yc, *yb)), "axes out of range")
    check(dtypes.issubdtype(sizes.dtype, np.integer) and sizes.ndim > 0, "group_sizes must be an array of integers")
    for kind, xd, yd in (("contracting", xc, yc), ("batch", xb, yb)):
        check([x.shape[d] for d in xd] == [y.shape[d] for d in yd], f"{kind} axes must have equal lengths")
    groups = numbers.rhs_group_dimensions
    if ragged in free:
        fits = len(groups) == 1 and groups[0] in range(y.ndim) and groups[0] not in (*yc, *yb)
        check(fits, "where the ragged axis is free, rhs must have one group axis, neither contracted nor batched")
        check(y.shape[groups[0]] == sizes.shape[-1], "the group axis of rhs must be as long as group_sizes")
    else:
        check(not groups, "rhs has a group axis only where the ragged axis is free")
    before = list(xb[: xb.index(ragged)] if ragged in xb else xb)
    others = [*yb]
    if ragged in xc:
        before += xc[: xc.index(ragged)]
        others += yc[: xc.index(ragged)]
    elif ragged in free:
        before += free[: free.index(ragged)]
    check(
        sizes.ndim == 1 or sizes.shape[:-1] == tuple(x.shape[d] for d in before),
        f"group_sizes must have shape (g,), or before that the lengths of the axes {before} of lhs",
    )
    return before, others


def _known_bounds(group_sizes: Any, n: int) -> list[tuple[int, int]] | None:
    """Start and end of each group, if they are known now, the same everywhere, and not negative."""
    sizes = concrete_or_none(group_sizes)
    if sizes is None or sizes.ndim != 1 or not sizes.size or (sizes < 0).any():
        return None
    ends = [min(int(e), n) for e in np.cumsum(sizes, dtype=np.int64)]
    return list(pairwise([0, *ends]))


def _one_by_one(
    dot: Callable[..., Any], lhs: Any, rhs: Any, bounds: list[tuple[int, int]], numbers: RaggedDotDimensionNumbers
) -> Any:
    """A product for each group."""
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    parts = [slice_in_dim(lhs, start, end, 1, ragged) for start, end in bounds]
    if ragged in xc:
        partner = yc[xc.index(ragged)]
        others = [slice_in_dim(rhs, start, end, 1, partner) for start, end in bounds]
        return stack([dot(x, y, numbers.dot_dimension_numbers) for x, y in zip(parts, others, strict=True)])
    (group,) = numbers.rhs_group_dimensions
    yc, yb = (tuple(d - (d > group) for d in dims) for dims in (yc, yb))
    products = [dot(x, index_in_dim(rhs, i, group, keepdims=False), ((xc, yc), (xb, yb))) for i, x in enumerate(parts)]
    axis = len(xb) + sum(d not in (*xc, *xb) for d in range(ragged))
    shape = list(products[0].shape)
    shape[axis] = get_aval(lhs).shape[ragged] - bounds[-1][1]
    return concatenate([*products, full(shape, 0, products[0].dtype)], axis)


def _masked(
    dot: Callable[..., Any],
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    numbers: RaggedDotDimensionNumbers,
    prefix: tuple[list[int], list[int]],
) -> Any:
    """A product of arrays with an axis of groups, that hold zeros for what belongs to others."""
    (xc, yc), (xb, yb) = (tuple(tuple(d + 1 for d in dims) for dims in pair) for pair in numbers.dot_dimension_numbers)
    (ragged,) = numbers.lhs_ragged_dimensions
    x = _by_group(lhs, ragged, group_sizes, prefix[0])
    if ragged + 1 not in xc:
        (yc, yb), (group,) = (tuple(tuple(d - 1 for d in dims) for dims in (yc, yb))), numbers.rhs_group_dimensions
        return dot(x, rhs, (((*xc, 0), (*yc, group)), (xb, yb)))
    y = _by_group(rhs, yc[xc.index(ragged + 1)] - 1, group_sizes, prefix[1])
    return dot(x, y, ((xc, yc), ((0, *xb), (0, *yb))))


def _by_group(x: Any, ragged: int, group_sizes: Any, prefix: Sequence[int]) -> Any:
    """Repeated along a new leading axis, each time with one group and zeros beside it."""
    aval, sizes = get_aval(x), convert(group_sizes, _COUNT)
    ends = cumsum_p.bind(sizes, axis=sizes.ndim - 1, reverse=False)
    starts = sub_p.bind(ends, sizes)
    shape = (sizes.shape[-1], *aval.shape)
    dims = (*(d + 1 for d in prefix), 0) if sizes.ndim > 1 else (0,)  # where the axes of the sizes belong
    order = sorted(range(len(dims)), key=dims.__getitem__)
    starts, ends = (broadcast_in_dim(transpose(b, order), shape, sorted(dims)) for b in (starts, ends))
    index = iota_p.bind(dtype=_COUNT, shape=shape, dimension=ragged + 1)
    mine = and_p.bind(le_p.bind(starts, index), lt_p.bind(index, ends))
    return select_n_p.bind(mine, np.zeros((), aval.dtype)[()], broadcast_in_dim(x, shape, range(1, len(shape))))


_COUNT = np.dtype(np.int64)
