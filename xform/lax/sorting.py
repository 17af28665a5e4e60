"""Sorting along an axis, of one array or of several by the first ones as keys.

The order is NumPy's: NaN come last, the two zeros are equal, complex numbers are ordered by real part, then imaginary
part (those with a NaN last: first the ones whose real part is a number).

May import: `lax.families`, `lax.shapes`, `lax.slicing`, the elementwise modules, `lax.reductions`.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.lowering import Context, Value
from xform.lax.shapes import check_axes


def _sort_types(*operands: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
    shapes = {x.shape for x in operands}
    if len(shapes) != 1:
        raise TypeError(
            f"lax.sort: operands must have one shape, got {', '.join(x.str_short() for x in operands)}"
        )
    if not 0 <= dimension < operands[0].ndim:
        raise ValueError(f"lax.sort: dimension {dimension} is out of range for {operands[0].str_short()}")
    if not 1 <= num_keys <= len(operands):
        raise ValueError(
            f"lax.sort: num_keys must be in 1..{len(operands)} (the number of operands), got {num_keys}"
        )
    return list(operands)


def _sort_host(*operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
    if len(operands) == 1:
        return [_sort_one(operands[0], dimension)]
    keys = [_sortable(x) for x in operands[:num_keys]]
    if num_keys == 1:
        order = keys[0].argsort(dimension, "stable")
    else:
        order = np.lexsort(keys[::-1], dimension)
    return [np.take_along_axis(x, order, dimension) for x in operands]


def _sort_one(x: Any, dimension: int) -> Any:
    """The sorted array. Stability shows only in the order of -0.0 and 0.0, which NumPy's fastest sort does not keep."""
    key = _sortable(x)
    inexact = dtypes.issubdtype(x.dtype, np.inexact)
    signs = inexact and (x.dtype.kind == "c" or bool(np.any(np.signbit(key) & (key == 0))))
    out = np.sort(key, dimension, "stable" if signs else None)
    return out if out.dtype == x.dtype else out.astype(x.dtype)


def _sortable(x: Any) -> Any:
    """Types that NumPy doesn't itself sort (bfloat16, narrow floats and ints), in one that it does."""
    if x.dtype.kind != "V":
        return x
    return x.astype(np.float32 if dtypes.issubdtype(x.dtype, np.floating) else np.int8)


def _sort_batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, dimension: int, **params: Any
) -> Any:
    d = next(d for d in dims if d is not None)
    args = [batching.move_to(x, dim, axis.size, d) for x, dim in zip(args, dims, strict=True)]
    return sort_p.bind(*args, dimension=dimension + (dimension >= d), **params), [d] * len(args)


def _sort_lower(
    ctx: Context, *operands: Value, dimension: int, is_stable: bool, num_keys: int
) -> list[Value]:
    pairs = [ShapedArray((), x.dtype) for x in operands for _ in range(2)]

    def body(ctx: Context, *args: Value) -> list[Value]:
        keys = [
            key
            for k in range(num_keys)
            for key in zip(*map(_keys_of(ctx), args[2 * k : 2 * k + 2]), strict=True)
        ]
        return [_before(ctx, keys)]

    region = ctx.region(body, pairs)
    attributes = f"dimension = {dimension} : i64, is_stable = {str(is_stable).lower()}"
    return ctx.op("sort", operands, [x.aval for x in operands], attributes, [region])


MASK = ShapedArray((), bool)


def _compare(ctx: Context, a: Value, b: Value, how: str, kind: str = "") -> Value:
    attributes = f"comparison_direction = #stablehlo<comparison_direction {how}>"
    return ctx.op(
        "compare",
        [a, b],
        MASK,
        attributes + (kind and f", compare_type = #stablehlo<comparison_type {kind}>"),
    )


def _keys_of(ctx: Context) -> Any:
    """A function from a scalar to the real keys, in order of precedence, that sort it as NumPy does."""

    def canonical(x: Value) -> Value:  # one zero, one NaN: then the total order of floats has NaN last
        zero, nan = ctx.constant(0, x.dtype), ctx.constant(np.nan, x.dtype)
        x = ctx.op("select", [_compare(ctx, x, zero, "EQ"), zero, x], x.aval)
        return ctx.op("select", [_compare(ctx, x, x, "NE"), nan, x], x.aval)

    def keys(x: Value) -> list[Value]:
        if dtypes.issubdtype(x.dtype, np.floating):
            return [canonical(x)]
        if not dtypes.issubdtype(x.dtype, np.complexfloating):
            return [x]
        part = x.aval.update(dtype=dtypes.finfo(x.dtype).dtype)
        re, im = (ctx.op(name, [x], part) for name in ("real", "imag"))
        return [_compare(ctx, re, re, "NE"), _compare(ctx, im, im, "NE"), canonical(re), canonical(im)]

    return keys


def _before(ctx: Context, keys: Sequence[tuple[Value, Value]]) -> Value:
    """Whether the first of each pair comes first, in lexicographic order."""
    result = None
    for a, b in reversed(keys):
        kind = "TOTALORDER" if dtypes.issubdtype(a.dtype, np.floating) else ""
        less = _compare(ctx, a, b, "LT", kind)
        if result is not None:
            tie = ctx.op("and", [_compare(ctx, a, b, "EQ", kind), result], MASK)
            less = ctx.op("or", [less, tie], MASK)
        result = less
    return result  # type: ignore[return-value]


sort_p = Primitive("sort", multiple_results=True)
sort_p.abstract_eval = _sort_types
sort_p.host = _sort_host
sort_p.batch = _sort_batch
sort_p.lower = _sort_lower


@api_boundary
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort along an axis, in ascending order with NaN last.

    Parameters
    ----------
    operand : array, or sequence of arrays of one shape
        Several are permuted together, in the order of the first `num_keys` of them (the first has precedence).
    dimension : int
    is_stable : bool
        Whether equal elements keep their order.

    Returns
    -------
    Array, or tuple of arrays

    Examples
    --------
    >>> import numpy as np
    >>> from xform import lax
    >>> lax.sort(np.array([3.0, np.nan, 1.0])).tolist()
    [1.0, 3.0, nan]
    """
    single = not isinstance(operand, tuple | list)
    operands = [operand] if single else list(operand)
    if not operands:
        raise TypeError("lax.sort: at least one operand is needed")
    aval = get_aval(operands[0])
    (dimension,) = check_axes("sort", operator.index(dimension), aval.ndim, aval.str_short())
    out = sort_p.bind(
        *operands, dimension=dimension, is_stable=bool(is_stable), num_keys=operator.index(num_keys)
    )
    return out[0] if single else tuple(out)


@api_boundary
def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """Sort `keys` along an axis, and `values` in the same order."""
    return sort((keys, values), dimension, is_stable)
