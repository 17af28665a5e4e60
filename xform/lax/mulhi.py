"""The upper half of a product of integers.

May import: `lax.special.formulas`, the elementwise modules of `lax`.
"""

from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.errors import api_boundary
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import add, mul, sub
from xform.lax.bitwise import bitwise_and, shift_right_arithmetic, shift_right_logical
from xform.lax.comparison import lt, select
from xform.lax.conversion import convert
from xform.lax.families import apply, elementwise
from xform.lax.special.formulas import host_as

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def _mulhi(x: Any, y: Any) -> Any:
    dtype, bits = x.dtype, dtypes.itemsize_bits(x.dtype)
    signed = dtypes.issubdtype(dtype, np.signedinteger)
    if bits < 64:
        wide = np.dtype(np.int64 if signed else np.uint64)
        shift = shift_right_arithmetic if signed else shift_right_logical
        return convert(shift(mul(convert(x, wide), convert(y, wide)), wide.type(bits)), dtype)
    # By halves of 32 bits, whose products fit.
    a, b = convert(x, np.dtype(np.uint64)), convert(y, np.dtype(np.uint64))
    (a_low, a_high), (b_low, b_high) = ((bitwise_and(v, _LOW), shift_right_logical(v, _HALF)) for v in (a, b))
    cross, other = mul(a_low, b_high), mul(a_high, b_low)
    middle = add(shift_right_logical(mul(a_low, b_low), _HALF), add(bitwise_and(cross, _LOW), bitwise_and(other, _LOW)))
    high = add(mul(a_high, b_high), add(shift_right_logical(cross, _HALF), shift_right_logical(other, _HALF)))
    high = convert(add(high, shift_right_logical(middle, _HALF)), dtype)
    if not signed:
        return high
    # A negative number stands for itself plus 2^64.
    zero = np.int64(0)
    return sub(sub(high, select(lt(x, zero), y, zero)), select(lt(y, zero), x, zero))


_mulhi_by_formula = host_as(_mulhi)


def _mulhi_host(x: Any, y: Any) -> Any:
    bits = 8 * x.dtype.itemsize
    if bits == 64 or x.dtype.kind not in "iu":
        return _mulhi_by_formula(x, y)
    out = np.multiply(x, y, dtype=np.int64 if x.dtype.kind == "i" else np.uint64)
    out >>= bits
    return out.astype(x.dtype)


mulhi_p = elementwise("mulhi", _mulhi_host, accepts="integer", lower=lower_as(_mulhi))


@api_boundary
def mulhi(x: Any, y: Any, /) -> Any:
    """Elementwise upper half of the product of two integers of n bits, which has 2n bits.

    Examples
    --------
    >>> from xform import lax
    >>> lax.mulhi(np.array([100, -100], np.int8), np.array([100, 100], np.int8)).tolist()
    [39, -40]
    """
    return apply(mulhi_p, x, y)
