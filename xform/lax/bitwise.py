"""Operations on bits: logic, shifts, counts, and reinterpretation as another dtype.

May import: `lax.families`, `lax.shapes`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import zero_of
from xform.lax.families import apply, elementwise, narrow_integers

and_p = elementwise(
    "and", narrow_integers(np.bitwise_and), accepts="bool or integer", lower="and", function="bitwise_and"
)
or_p = elementwise("or", narrow_integers(np.bitwise_or), accepts="bool or integer", lower="or", function="bitwise_or")
xor_p = elementwise(
    "xor", narrow_integers(np.bitwise_xor), accepts="bool or integer", lower="xor", function="bitwise_xor"
)
not_p = elementwise("not", narrow_integers(np.invert), accepts="bool or integer", lower="not", function="bitwise_not")


def _unsigned(x: Any) -> Any:
    """The same bits as unsigned integers."""
    width = dtypes.itemsize_bits(x.dtype)
    return x.astype(np.uint8) & np.uint8(2**width - 1) if width < 8 else x.view(f"u{x.dtype.itemsize}")


def _signed(x: Any) -> Any:
    """The same bits as signed integers."""
    width = dtypes.itemsize_bits(x.dtype)
    if width < 8:  # ml_dtypes goes from one of these types to another by way of int8 only
        return x.astype(np.int8).astype(dtypes.by_name[f"int{width}"]).astype(np.int8)
    return x.view(f"i{x.dtype.itemsize}")


def _back(x: Any, dtype: np.dtype) -> Any:
    """Bits of the above in the type that they had."""
    return x.view(dtype) if x.dtype.itemsize == dtype.itemsize and dtype.kind != "V" else x.astype(dtype)


# NumPy, like XLA, shifts by the width or more, or by a negative number, to 0 (or to the sign's bits).

shift_left_p = elementwise("shift_left", narrow_integers(np.left_shift), accepts="integer", lower="shift_left")

shift_right_logical_p = elementwise(
    "shift_right_logical",
    lambda x, y: _back(np.right_shift(_unsigned(x), _unsigned(y)), x.dtype),
    accepts="integer",
    lower="shift_right_logical",
)

shift_right_arithmetic_p = elementwise(
    "shift_right_arithmetic",
    lambda x, y: _back(np.right_shift(_signed(x), _signed(y)), x.dtype),
    accepts="integer",
    lower="shift_right_arithmetic",
)


def _clz_host(x: Any) -> Any:
    bits = _unsigned(x).astype(np.uint64)
    high, low = bits >> np.uint64(32), bits & np.uint64(0xFFFFFFFF)
    length = np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1])
    return (dtypes.itemsize_bits(x.dtype) - length).astype(x.dtype)


def _population_count_lower(ctx: Context, x: Value) -> Value:
    if dtypes.itemsize_bits(x.dtype) < 8:  # XLA counts the bits of int4 in 8 bits
        x = ctx.convert(x, dtypes.by_name[x.dtype.name.replace("uint", "int").replace("int", "uint")])
    return ctx.convert(ctx.op("popcnt", [x], x.aval), ctx.out.dtype)


def _population_count_host(x: Any) -> Any:
    bits = _unsigned(x)
    if not x.ndim or x.dtype.kind not in "iu":
        return np.bitwise_count(bits).astype(x.dtype, copy=False)
    return np.bitwise_count(bits, out=np.empty(x.shape, x.dtype), casting="unsafe")


population_count_p = elementwise(
    "population_count",
    _population_count_host,
    accepts="integer",
    lower=_population_count_lower,
)

clz_p = elementwise("clz", _clz_host, accepts="integer", lower="count_leading_zeros")


# bitcast_convert_type


def _bitcast_types(x: ShapedArray, *, new_dtype: np.dtype) -> ShapedArray:
    old, new = dtypes.itemsize_bits(x.dtype), dtypes.itemsize_bits(new_dtype)
    if "b" in (dtypes.kinds[x.dtype], dtypes.kinds[new_dtype]) or min(old, new) < 8:
        raise TypeError(f"lax.bitcast_convert_type: {x.str_short()} can't be seen as {new_dtype}")
    if old == new:
        return ShapedArray(x.shape, new_dtype)
    if old > new:
        return ShapedArray((*x.shape, old // new), new_dtype)
    if not x.shape or x.shape[-1] * old != new:
        raise TypeError(
            f"lax.bitcast_convert_type: {x.str_short()} can't be seen as {new_dtype}: the last axis must have length "
            f"{new // old}"
        )
    return ShapedArray(x.shape[:-1], new_dtype)


def _bitcast_host(x: Any, *, new_dtype: np.dtype) -> Any:
    old, new = x.dtype.itemsize, new_dtype.itemsize
    if old == new:
        return x.view(new_dtype)
    if old > new:
        return np.asarray(x)[..., None].view(new_dtype)
    return np.ascontiguousarray(x).view(new_dtype)[..., 0]


def _bitcast_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, new_dtype: np.dtype) -> Any:
    out = bitcast_convert_type_p.bind(*primals, new_dtype=new_dtype)
    return out, zero_of(out)


def _bitcast_batch(axis: Any, args: Sequence[Any], dims: Sequence[int], *, new_dtype: np.dtype) -> Any:
    x = batching.move_to(args[0], dims[0], axis.size)  # away from the last axis, which may go
    return bitcast_convert_type_p.bind(x, new_dtype=new_dtype), 0


bitcast_convert_type_p = Primitive("bitcast_convert_type")
bitcast_convert_type_p.abstract_eval = _bitcast_types
bitcast_convert_type_p.host = _bitcast_host
bitcast_convert_type_p.jvp = _bitcast_jvp
bitcast_convert_type_p.batch = _bitcast_batch
bitcast_convert_type_p.lower = lambda ctx, x, *, new_dtype: ctx.op("bitcast_convert", [x], ctx.out)


@api_boundary
def bitwise_and(x: Any, y: Any) -> Any:
    """Elementwise and, of booleans or of the bits of integers."""
    return apply(and_p, x, y)


@api_boundary
def bitwise_or(x: Any, y: Any) -> Any:
    """Elementwise or, of booleans or of the bits of integers."""
    return apply(or_p, x, y)


@api_boundary
def bitwise_xor(x: Any, y: Any) -> Any:
    """Elementwise exclusive or, of booleans or of the bits of integers."""
    return apply(xor_p, x, y)


@api_boundary
def bitwise_not(x: Any) -> Any:
    """Elementwise complement, of booleans or of the bits of integers."""
    return apply(not_p, x)


@api_boundary
def shift_left(x: Any, y: Any) -> Any:
    """Shift the bits of `x` to the left by `y`; 0 if `y` is negative or at least the number of bits."""
    return apply(shift_left_p, x, y)


@api_boundary
def shift_right_logical(x: Any, y: Any) -> Any:
    """Shift the bits of `x` to the right by `y`, filling with zeros; 0 if `y` is negative or too large.

    Examples
    --------
    >>> from xform import lax
    >>> x = np.array([-8], np.int8)
    >>> lax.shift_right_logical(x, 1).tolist(), lax.shift_right_arithmetic(x, 1).tolist()
    ([124], [-4])
    """
    return apply(shift_right_logical_p, x, y)


@api_boundary
def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """Shift the bits of `x` to the right by `y`, filling with the highest bit."""
    return apply(shift_right_arithmetic_p, x, y)


@api_boundary
def population_count(x: Any) -> Any:
    """Number of bits that are set, elementwise, in the dtype of `x`."""
    return apply(population_count_p, x)


@api_boundary
def clz(x: Any) -> Any:
    """Number of leading zero bits, elementwise, in the dtype of `x`."""
    return apply(clz_p, x)


@api_boundary
def bitcast_convert_type(operand: Any, new_dtype: Any) -> Any:
    """The same bits as another dtype.

    A narrower dtype appends an axis for the parts of an element; a wider one takes the last axis, whose length must
    fit. Derivatives are zero.

    Examples
    --------
    >>> from xform import lax
    >>> hex(int(lax.bitcast_convert_type(np.float32(1.0), np.uint32)))
    '0x3f800000'
    >>> lax.bitcast_convert_type(np.ones((2, 4), np.int8), np.int32).tolist()
    [16843009, 16843009]
    """
    new_dtype = dtypes.canonicalize_dtype(dtypes.check_user_dtype(new_dtype, "bitcast_convert_type"))
    return bitcast_convert_type_p.bind(operand, new_dtype=new_dtype)
