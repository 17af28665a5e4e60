"""`dot_general`: every product of arrays that sums over some axes and keeps others as batches.

May import: `lax.families`, `lax.arithmetic`, `lax.conversion`, `lax.shapes`, `lax.slicing`, `lax.reductions`,
`lax.precision`.
"""

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from xform.core import dtypes
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.jet import bilinear
from xform.interpreters.lowering import Context, Value, lower_as
from xform.interpreters.tangents import Zero, add_tangents, is_linear, zero_of
from xform.lax import families
from xform.lax.arithmetic import mul_p, zero_product_p
from xform.lax.conversion import convert, convert_host
from xform.lax.families import as_operands
from xform.lax.precision import ALGORITHMS, PrecisionLike, algorithm_attribute, algorithm_types, canonical_precision
from xform.lax.reductions import accumulator, reduce_sum_p
from xform.lax.shapes import broadcast_in_dim_p, expand_dims, transpose_p
from xform.lax.slicing import concatenate_p

# What users may write, and what the primitive gets: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)).
DotDimensionNumbers: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
Dimensions = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def _dot_types(
    x: ShapedArray, y: ShapedArray, *, dimension_numbers: Dimensions, precision: Any, preferred_element_type: Any
) -> ShapedArray:
    (xc, yc), (xb, yb) = dimension_numbers
    for name, aval, contract, batch in (("lhs", x, xc, xb), ("rhs", y, yc, yb)):
        dims = (*contract, *batch)
        if len(set(dims)) != len(dims) or any(not 0 <= d < aval.ndim for d in dims):
            raise TypeError(
                f"lax.dot_general: contracting axes {contract} and batch axes {batch} must be different axes of {name} "
                f"{aval.str_short()}"
            )
    for kind, xd, yd in (("contracting", xc, yc), ("batch", xb, yb)):
        if [x.shape[d] for d in xd] != [y.shape[d] for d in yd]:
            raise TypeError(
                f"lax.dot_general: {kind} dimensions must have equal lengths, got {x.str_short()} over axes {xd} and "
                f"{y.str_short()} over axes {yd}"
            )
    families.check_same_dtype("dot_general", [x, y])
    if isinstance(precision, ALGORITHMS):
        if {dtypes.kinds[x.dtype], dtypes.kinds[preferred_element_type or x.dtype]} != {"f"}:
            raise TypeError(f"lax.dot_general: {precision!r} is an algorithm for floats, got {x.str_short()}")
    elif preferred_element_type is not None:
        check_preferred("dot_general", x.dtype, preferred_element_type)
    shape = [x.shape[d] for d in xb]
    shape += [n for d, n in enumerate(x.shape) if d not in xc and d not in xb]
    shape += [n for d, n in enumerate(y.shape) if d not in yc and d not in yb]
    dtype = x.dtype if preferred_element_type is None else preferred_element_type
    return ShapedArray(tuple(shape), dtype, x.weak_type and y.weak_type and preferred_element_type is None)


def check_preferred(name: str, dtype: np.dtype, preferred: np.dtype) -> None:
    """TypeError unless operands of `dtype` can be multiplied and added up in `preferred`."""
    kind, new_kind = dtypes.kinds[dtype], dtypes.kinds[preferred]
    if kind != new_kind or dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype):
        raise TypeError(
            f"lax.{name}: preferred_element_type must be of the kind of {dtype} and not narrower, got {preferred}"
        )


def _free(ndim: int, *used: Sequence[int]) -> list[int]:
    taken = {d for dims in used for d in dims}
    return [d for d in range(ndim) if d not in taken]


def _dot_host(x: Any, y: Any, *, dimension_numbers: Dimensions, precision: Any, preferred_element_type: Any) -> Any:
    dtype = x.dtype if preferred_element_type is None else preferred_element_type
    wide = accumulator(dtype)
    if isinstance(precision, ALGORITHMS):
        lhs, rhs, wide = algorithm_types(precision, x.dtype, y.dtype, dtype)
        x, y, wide = convert_host(x, lhs), convert_host(y, rhs), accumulator(wide)
    if x.dtype is not wide or y.dtype is not wide:
        x, y = x.astype(wide), y.astype(wide)
    out = _host_product(x.ndim, y.ndim, dimension_numbers)(x, y)
    return out if wide is dtype else convert_host(out, dtype)


@functools.lru_cache(1024)
def _host_product(x_ndim: int, y_ndim: int, dimension_numbers: Dimensions) -> Callable[[Any, Any], Any]:
    """The fastest of NumPy's products: dot for vectors and matrices, outer, or matmul after transpose and reshape."""
    (xc, yc), (xb, yb) = dimension_numbers
    if not xb and len(xc) == 1 and x_ndim <= 2 and y_ndim <= 2:
        x_last, y_first = xc[0] == x_ndim - 1, yc[0] == 0
        if x_last:
            return (lambda x, y: x.dot(y)) if y_first else (lambda x, y: x.dot(y.T))
        return (lambda x, y: x.T.dot(y)) if y_first else (lambda x, y: x.T.dot(y.T))
    if not xb and not xc:
        return np.multiply.outer
    xf, yf = _free(x_ndim, xc, xb), _free(y_ndim, yc, yb)
    x_order, y_order = (*xb, *xf, *xc), (*yb, *yc, *yf)
    nb, nx = len(xb), len(xf)
    if x_order == tuple(range(x_ndim)) and y_order == tuple(range(y_ndim)) and nx == len(yf) == len(xc) == 1:
        return np.matmul

    def product(x: Any, y: Any) -> Any:
        x, y = x.transpose(x_order), y.transpose(y_order)
        batch, rows, columns = x.shape[:nb], x.shape[nb : nb + nx], y.shape[len(yb) + len(yc) :]
        inner = math.prod(x.shape[nb + nx :])
        x = x.reshape(*batch, math.prod(rows), inner)
        y = y.reshape(*batch, inner, math.prod(columns))
        return np.matmul(x, y).reshape((*batch, *rows, *columns))

    return product


def _dot_jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
    (x, y), (tx, ty) = primals, ts
    out = dot_general_p.bind(x, y, **params)
    term = None if type(tx) is Zero else dot_general_p.bind(tx, y, **params)
    if type(ty) is not Zero:
        term = add_tangents(term, dot_general_p.bind(x, ty, **params))
    return out, zero_of(out) if term is None else term


def _dot_sum(pairs: Sequence[tuple[Any, Any]], *, dimension_numbers: Dimensions, **params: Any) -> Any:
    """The sum of several products is one product, of operands joined along a contracted axis."""
    xs, ys = map(list, zip(*pairs, strict=True))
    (xc, yc), batch = dimension_numbers
    if not xc:  # along a new one
        xc, yc = (xs[0].ndim,), (ys[0].ndim,)
        xs, ys = ([expand_dims(v, (v.ndim,)) for v in side] for side in (xs, ys))
        dimension_numbers = (xc, yc), batch
    x = concatenate_p.bind(*xs, dimension=xc[0])
    y = concatenate_p.bind(*ys, dimension=yc[0])
    return dot_general_p.bind(x, y, dimension_numbers=dimension_numbers, **params)


def _dot_transpose(
    ct: Any, x: Any, y: Any, *, dimension_numbers: Dimensions, precision: Any, preferred_element_type: Any
) -> list[Any]:
    """The cotangent's axes are (batch, free of x, free of y); contract it with the known operand's free axes."""
    to_lhs = is_linear(x)
    linear, known = (x, y) if to_lhs else (y, x)
    aval = get_aval(known)
    ndims = (linear.aval.ndim, aval.ndim) if to_lhs else (aval.ndim, linear.aval.ndim)
    numbers, permutation = _transpose_plan(to_lhs, *ndims, dimension_numbers)
    known = convert(known, get_aval(ct).dtype)
    operands = (ct, known) if to_lhs else (known, ct)
    out = dot_general_p.bind(*operands, dimension_numbers=numbers, precision=precision, preferred_element_type=None)
    if permutation is not None:
        out = transpose_p.bind(out, permutation=permutation)
    out = convert(out, linear.aval.dtype)
    return [out, None] if to_lhs else [None, out]


def _dot_transpose_marked(ct: Any, x: Any, y: Any, *, dimension_numbers: Dimensions, **params: Any) -> list[Any]:
    """Where there is nothing to contract, a product in which zero annihilates everything."""
    to_lhs = is_linear(x)
    linear, known = (x, y) if to_lhs else (y, x)
    (contract, batch), (other, other_batch) = (
        [side[0 if to_lhs else 1] for side in dimension_numbers],
        [side[1 if to_lhs else 0] for side in dimension_numbers],
    )
    aval = linear.aval
    if len(other) + len(other_batch) < get_aval(known).ndim:
        return _dot_transpose(ct, x, y, dimension_numbers=dimension_numbers, **params)
    places = dict(zip([*other, *other_batch], [*contract, *batch], strict=True))
    known = convert(known, get_aval(ct).dtype)
    permutation = tuple(sorted(places, key=places.__getitem__))
    known = transpose_p.bind(known, permutation=permutation)
    known = broadcast_in_dim_p.bind(known, shape=aval.shape, broadcast_dimensions=tuple(sorted(places.values())))
    axes = [*batch, *_free(aval.ndim, contract, batch)]
    ct = transpose_p.bind(ct, permutation=tuple(int(i) for i in np.argsort(axes)))
    ct = broadcast_in_dim_p.bind(ct, shape=aval.shape, broadcast_dimensions=tuple(sorted(axes)))
    out = convert(zero_product_p.bind(ct, known), aval.dtype)
    return [out, None] if to_lhs else [None, out]


@functools.lru_cache(1024)
def _transpose_plan(
    to_lhs: bool, x_ndim: int, y_ndim: int, dimension_numbers: Dimensions
) -> tuple[Dimensions, tuple[int, ...] | None]:
    """Dimension numbers for the cotangent of one operand, and how to permute the result to the operand's axes."""
    (xc, yc), (xb, yb) = dimension_numbers
    xf, yf = _free(x_ndim, xc, xb), _free(y_ndim, yc, yb)
    nb = len(xb)
    batch = tuple(range(nb))
    ct_x, ct_y = tuple(range(nb, nb + len(xf))), tuple(range(nb + len(xf), nb + len(xf) + len(yf)))
    if to_lhs:  # dot(ct, y): (batch, free of x, contracted in y's order)
        numbers = ((ct_y, tuple(yf)), (batch, yb))
        axes = [*xb, *xf, *(xc[yc.index(d)] for d in sorted(yc))]
    else:  # dot(x, ct): (batch, contracted in x's order, free of y)
        numbers = ((tuple(xf), ct_x), (xb, batch))
        axes = [*yb, *(yc[xc.index(d)] for d in sorted(xc)), *yf]
    permutation = tuple(axes.index(d) for d in range(len(axes)))
    return numbers, None if permutation == tuple(range(len(axes))) else permutation


def _dot_batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, dimension_numbers: Any, **params: Any
) -> Any:
    (x, y), (dx, dy) = args, dims
    (xc, yc), (xb, yb) = dimension_numbers

    def shifted(ds: Sequence[int], d: int | None) -> tuple[int, ...]:
        return tuple(ds) if d is None else tuple(i + (i >= d) for i in ds)

    xc, xb, yc, yb = shifted(xc, dx), shifted(xb, dx), shifted(yc, dy), shifted(yb, dy)
    if dx is not None and dy is not None:
        numbers = ((xc, yc), ((dx, *xb), (dy, *yb)))
        return dot_general_p.bind(x, y, dimension_numbers=numbers, **params), 0
    out = dot_general_p.bind(x, y, dimension_numbers=((xc, yc), (xb, yb)), **params)
    if dx is not None:  # where x's mapped axis stands among the result's axes
        return out, len(xb) + _free(get_aval(x).ndim, xc, xb).index(dx)
    n_x = get_aval(x).ndim - len(xc) - len(xb)
    return out, len(xb) + n_x + _free(get_aval(y).ndim, yc, yb).index(dy)  # type: ignore[arg-type]


_TINY = 128  # products; more of them are worth a kernel, and one line of text in place of ten


def _is_tiny(out: ShapedArray, x: Value, y: Value, contracting: Sequence[int], batch: Sequence[int]) -> bool:
    """Whether multiplying and summing takes no longer than a matrix product. Each of these is a kernel to compile."""
    if x.dtype != out.dtype or x.dtype.kind == "b":
        return False
    return x.aval.size * y.aval.size <= _TINY * math.prod(x.shape[d] for d in (*contracting, *batch))


@lower_as
def _by_products(x: Any, y: Any, *, dimension_numbers: Dimensions) -> Any:
    (xc, yc), (xb, yb) = dimension_numbers
    xf, yf = _free(x.ndim, xc, xb), _free(y.ndim, yc, yb)
    nb, nx, ny = len(xb), len(xf), len(yf)
    shape = tuple([x.shape[d] for d in (*xb, *xf)] + [y.shape[d] for d in (*yf, *yc)])
    contracting = tuple(range(nb + nx + ny, len(shape)))

    def spread(v: Any, order: Sequence[int], dims: Sequence[int]) -> Any:
        if list(order) != sorted(order):
            v = transpose_p.bind(v, permutation=tuple(order))
        return broadcast_in_dim_p.bind(v, shape=shape, broadcast_dimensions=tuple(dims))

    dtype = x.dtype
    wide = accumulator(dtype)
    x = spread(convert(x, wide), (*xb, *xf, *xc), (*range(nb + nx), *contracting))
    y = spread(convert(y, wide), (*yb, *yf, *yc), (*range(nb), *range(nb + nx, nb + nx + ny), *contracting))
    return convert(reduce_sum_p.bind(mul_p.bind(x, y), axes=contracting), dtype)


@functools.cache
def _numbers_text(dimension_numbers: Dimensions) -> str:
    (xc, yc), (xb, yb) = dimension_numbers
    numbers = (
        f"lhs_batching_dimensions = {list(xb)}, rhs_batching_dimensions = {list(yb)}, "
        f"lhs_contracting_dimensions = {list(xc)}, rhs_contracting_dimensions = {list(yc)}"
    )
    return f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"


def _dot_lower(
    ctx: Context, x: Value, y: Value, *, dimension_numbers: Dimensions, precision: Any, preferred_element_type: Any
) -> Value:
    (xc, _), (xb, _) = dimension_numbers
    attributes = _numbers_text(dimension_numbers)
    out = ctx.out
    if ctx.platform == "cpu" and precision is None and _is_tiny(ctx.out, x, y, xc, xb):
        return _by_products(ctx, x, y, dimension_numbers=dimension_numbers)
    if ctx.platform == "cpu":  # no kernels for mixed types; narrow floats would be rounded at each step
        wide = accumulator(out.dtype)
        if isinstance(precision, ALGORITHMS):
            lhs, rhs, wide = algorithm_types(precision, x.dtype, y.dtype, out.dtype)
            x, y, wide = ctx.convert(x, lhs), ctx.convert(y, rhs), accumulator(wide)
        x, y, out = ctx.convert(x, wide), ctx.convert(y, wide), out.update(dtype=wide)
    elif isinstance(precision, ALGORITHMS):
        attributes += f", {algorithm_attribute(precision, x.dtype, y.dtype, out.dtype)}"
    if isinstance(precision, tuple) and not isinstance(precision, ALGORITHMS):
        names = ", ".join(f"#stablehlo<precision {p.name}>" for p in precision)
        attributes += f", precision_config = [{names}]"
    return ctx.convert(ctx.op("dot_general", [x, y], out, attributes), ctx.out.dtype)


dot_general_p = Primitive("dot_general")
dot_general_p.abstract_eval = _dot_types
dot_general_p.host = _dot_host
dot_general_p.jvp = _dot_jvp
dot_general_p.jet = bilinear(dot_general_p, _dot_sum)
dot_general_p.transpose = _dot_transpose
dot_general_p.transpose_marked = _dot_transpose_marked
dot_general_p.batch = _dot_batch
dot_general_p.lower = _dot_lower


@api_boundary
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Sum of products over the contracting axes, for each index of the batch axes.

    Parameters
    ----------
    dimension_numbers : ((lhs contracting, rhs contracting), (lhs batch, rhs batch))
    precision : Precision, str or pair of them; DotAlgorithm or DotAlgorithmPreset, optional
    preferred_element_type : dtype, optional
        Of the result, and of the accumulation.

    Returns
    -------
    Array with the batch axes, then the free axes of `lhs`, then those of `rhs`.

    Examples
    --------
    >>> from xform import lax
    >>> lax.dot_general(np.ones((2, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    lhs, rhs = as_operands("dot_general", lhs, rhs)
    (xc, yc), (xb, yb) = dimension_numbers
    nx, ny = get_aval(lhs).ndim, get_aval(rhs).ndim

    def canonical(dims: Sequence[int], n: int) -> tuple[int, ...]:
        return tuple(operator.index(d) + n if d < 0 else operator.index(d) for d in dims)

    numbers = ((canonical(xc, nx), canonical(yc, ny)), (canonical(xb, nx), canonical(yb, ny)))
    if preferred_element_type is not None:
        preferred_element_type = np.dtype(dtypes.canonicalize_dtype(preferred_element_type))
    families.no_sharding("dot_general", out_sharding=out_sharding)
    return dot_general_p.bind(
        lhs, rhs, dimension_numbers=numbers, precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


@api_boundary
def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Product of vectors and matrices, over the last axis of `lhs` and the first of `rhs`.

    With `dimension_numbers` it is `dot_general`.

    Examples
    --------
    >>> from xform import lax
    >>> lax.dot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    if dimension_numbers is None:
        x, y = get_aval(lhs), get_aval(rhs)
        if x.ndim not in (1, 2) or y.ndim not in (1, 2) or x.shape[-1] != y.shape[0]:
            raise TypeError(
                "lax.dot: operands must be vectors or matrices, the last axis of the first as long as the first axis "
                f"of the second, got {x.str_short()} and {y.str_short()}"
            )
        dimension_numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


@api_boundary
def batch_matmul(lhs: Any, rhs: Any, precision: PrecisionLike = None) -> Any:
    """Products of matrices, which are the last two axes; the leading axes of both are equal."""
    x, y = get_aval(lhs), get_aval(rhs)
    n = x.ndim
    if n < 2 or y.ndim != n or x.shape[:-2] != y.shape[:-2] or x.shape[-1] != y.shape[-2]:
        raise TypeError(
            "lax.batch_matmul: operands must be stacks of matrices that can be multiplied, with equal leading axes, "
            f"got {x.str_short()} and {y.str_short()}"
        )
    batch = tuple(range(n - 2))
    return dot_general(lhs, rhs, (((n - 1,), (n - 2,)), (batch, batch)), precision)
