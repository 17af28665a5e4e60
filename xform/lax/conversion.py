"""Conversion of arrays to other dtypes.

May import: `lax.families`.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl, get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.jet import linear
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import Zero, zero_of
from xform.lax import families


def _convert_types(x: ShapedArray, *, new_dtype: np.dtype, weak_type: bool) -> ShapedArray:
    return x.update(dtype=new_dtype, weak_type=weak_type)


def _convert_host(x: Any, *, new_dtype: np.dtype, weak_type: bool) -> Any:
    return convert_host(x, new_dtype)


def convert_host(x: Any, dtype: np.dtype) -> Any:
    """Conversion as XLA's: floats to integers saturate, NaN becomes 0; complex to real drops the imaginary part."""
    old = x.dtype
    if old == dtype:
        return x
    kind, new_kind = dtypes.kinds[old], dtypes.kinds[dtype]
    if kind == "c" and new_kind not in "cb":
        x, kind = x.real, "f"
    if kind == "f" and new_kind in "iu":
        return _saturating(x, dtype)
    if old in _NARROW and dtype in _NARROW:  # ml_dtypes can't cast all of them to each other
        x = x.astype(np.float32 if kind == "f" else np.int32)
    return x.astype(dtype)


_NARROW = {dtypes.by_name[name] for names in dtypes.narrow.values() for name in names}


def _saturating(x: Any, dtype: np.dtype) -> Any:
    if isinstance(x, np.ndarray) and _is_told(x.dtype, dtype):
        try:
            with np.errstate(invalid="raise"):
                return x.astype(dtype)
        except FloatingPointError:  # NaN, or a number out of range
            pass
    info = dtypes.iinfo(dtype)
    low, high = float(info.min), float(info.max)
    if not x.size or _is_within(x, low, high):
        return x.astype(dtype)
    x = x.astype(np.float64)
    inside = np.where((x > low) & (x < high), x, 0.0)
    out = inside.astype(np.uint64 if info.min == 0 else np.int64).astype(dtype)
    return np.where(x >= high, np.asarray(info.max, dtype), np.where(x <= low, np.asarray(info.min, dtype), out))


def _is_within(x: Any, low: float, high: float) -> bool:
    """Whether there is no number out of bounds, and no NaN.

    By their bits, floats without a sign are in order, and those with one come behind them.
    """
    if x.size < 1000 or x.dtype.itemsize == 1:  # some of the narrow types have no sign
        return low - 1 < x.min() <= x.max() < high
    last = x.view(f"u{x.dtype.itemsize}").max().view(x.dtype)
    return low - 1 < last < high and (last > 0 or x.max() < high)


@functools.cache
def _is_told(old: np.dtype, new: np.dtype) -> bool:
    """Whether NumPy, or the processor, reports each number that doesn't fit where it converts floats to integers."""
    info = dtypes.iinfo(new)
    low, high = float(info.min), float(info.max)
    for wrong in (np.nan, np.inf, -np.inf, 1e30, -1e30, 2 * high, 2 * low - 2, high + 1, 1.01 * low - 1):
        for n in (1, 2, 7, 64):  # with and without vector instructions
            for place in {0, n - 1}:
                x = np.zeros(n, old)
                with np.errstate(all="ignore"):
                    x[place] = wrong
                try:
                    with np.errstate(invalid="raise"):
                        x.astype(new)
                    return False
                except FloatingPointError:
                    pass
    return True


def _convert_jvp(primals: Sequence[Any], ts: Sequence[Any], *, new_dtype: np.dtype, weak_type: bool) -> Any:
    (x,), (t,) = primals, ts
    out = convert_element_type_p.bind(x, new_dtype=new_dtype, weak_type=weak_type)
    if type(t) is Zero or not dtypes.issubdtype(new_dtype, np.inexact):
        return out, zero_of(out)
    return out, convert_element_type_p.bind(t, new_dtype=new_dtype, weak_type=False)


def _convert_transpose(ct: Any, x: Any, *, new_dtype: np.dtype, weak_type: bool) -> list[Any]:
    return [convert_element_type_p.bind(ct, new_dtype=x.aval.dtype, weak_type=False)]


def _convert_lower(ctx: Context, x: Value, *, new_dtype: np.dtype, weak_type: bool) -> Value:
    if new_dtype.kind == "b" and x.dtype.kind != "b":
        return families.compare(ctx, x, ctx.full(x.shape, 0, x.dtype), "NE")
    if families.is_complex(x) and new_dtype.kind != "c":
        x = ctx.op("real", [x], x.aval.update(dtype=families.real_dtype(x.dtype)))
    elif x.dtype == dtypes.by_name["float4_e2m1fn"]:
        x = ctx.convert(x, np.dtype(np.float32))  # from float4 to integers XLA is wrong
    return ctx.convert(x, new_dtype)


convert_element_type_p = Primitive("convert_element_type")
convert_element_type_p.abstract_eval = _convert_types
convert_element_type_p.host = _convert_host
convert_element_type_p.jvp = _convert_jvp
convert_element_type_p.jet = linear(convert_element_type_p)
convert_element_type_p.transpose = _convert_transpose
convert_element_type_p.batch = lambda axis, args, dims, **params: (
    convert_element_type_p.bind(args[0], **params),
    dims[0],
)
convert_element_type_p.lower = _convert_lower


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` with the canonical `dtype` and weak type; itself if it has them (internal, no checks)."""
    aval = get_aval(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    if type(x) is ArrayImpl and not aval.shape:  # a constant stays one while tracing
        return convert_element_type_p.evaluate((x,), {"new_dtype": dtype, "weak_type": weak_type})
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)


@api_boundary
def convert_element_type(operand: Any, new_dtype: Any) -> Any:
    """Convert to another dtype.

    Floats become integers by truncation; out of range they saturate and NaN becomes 0. Complex numbers lose their
    imaginary part on the way to real ones.
    """
    new_dtype = dtypes.canonicalize_dtype(dtypes.check_user_dtype(new_dtype, "convert_element_type"))
    if isinstance(operand, Array):
        return convert(operand, new_dtype)
    return families.apply(convert_element_type_p, operand, new_dtype=new_dtype, weak_type=False)
