"""Constants, dtypes, and what to ask about them.

May import: `xform.core`.
"""

import builtins
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.core.dtypes import scalar_types

pi, e, euler_gamma = np.pi, np.e, np.euler_gamma
inf, nan, newaxis = np.inf, np.nan, None

ndarray = Array
can_cast, iinfo, isdtype = dtypes.can_cast, dtypes.iinfo, dtypes.isdtype
promote_types = dtypes.promote_types
dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning

# NumPy's classes of types, for issubdtype.
character, complexfloating, flexible, floating, generic = (
    np.character, np.complexfloating, np.flexible, np.floating, np.generic
)  # fmt: skip
inexact, integer, number, object_, signedinteger, unsignedinteger = (
    np.inexact, np.integer, np.number, np.object_, np.signedinteger, np.unsignedinteger
)  # fmt: skip

bool = bool_ = scalar_types["bool"]
int8, int16, int32, int64 = (scalar_types[f"int{n}"] for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (scalar_types[f"uint{n}"] for n in (8, 16, 32, 64))
float16, float32, float64, bfloat16 = (scalar_types[n] for n in ("float16", "float32", "float64", "bfloat16"))
complex64, complex128 = scalar_types["complex64"], scalar_types["complex128"]
single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128
half, byte, ubyte, short, ushort, intc, uintc = float16, int8, uint8, int16, uint16, int32, uint32
intp, uintp, long, ulong, longlong, ulonglong = int64, uint64, int64, uint64, int64, uint64
True_, False_ = np.True_, np.False_
typecodes, mintypecode, exceptions = np.typecodes, np.mintypecode, np.exceptions
#: The narrow types, by name.
narrow_types = {name: scalar_types[name] for names in dtypes.narrow.values() for name in names if name in scalar_types}


class finfo:
    """Machine limits of a floating or complex dtype, or of an array's: bits, eps, max, min, smallest_normal ...

    They are Python's floats, as the array API standard asks; NumPy's have the dtype in question.

    Examples
    --------
    >>> finfo("float32").eps, finfo("complex64").dtype
    (1.1920928955078125e-07, dtype('float32'))
    """

    def __init__(self, dtype: Any):
        self._info = dtypes.finfo(dtype)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._info, name)
        return float(value) if isinstance(value, np.generic) else value

    def __repr__(self) -> str:
        return repr(self._info)


def common_type(*arrays: Any) -> Any:
    """The floating or complex type that holds the numbers of all arrays.

    >>> common_type(np.ones(1, "float32"), np.ones(1, "int8")) is float32
    True
    """
    found = dtypes.to_inexact_dtype(dtypes.result_type(*(getattr(a, "dtype", a) for a in arrays)))
    if any(dtypes.dtype(a) == bool for a in arrays):
        raise TypeError("numpy.common_type: booleans have no type of numbers")
    return scalar_types[found.name]


def min_scalar_type(a: Any) -> np.dtype:
    """The smallest dtype that holds a number, which must be known; of an array with axes, its dtype.

    >>> min_scalar_type(300), min_scalar_type(-1)
    (dtype('uint16'), dtype('int8'))
    """
    if getattr(a, "ndim", 0):
        return dtypes.dtype(a)
    return np.min_scalar_type(np.asarray(a)[()] if isinstance(a, Array) else a)


def issubdtype(arg1: Any, arg2: Any) -> builtins.bool:
    """Whether a dtype is another or below it in NumPy's hierarchy, in which bfloat16 and the like have their places."""
    return dtypes.issubdtype(arg1, arg2)


def result_type(*args: Any) -> np.dtype:
    """The dtype that an operation on these arrays, scalars and dtypes has.

    Integers take the type of floats beside them, and Python scalars that of arrays:

    >>> result_type("int64", "float32"), result_type("int8", 1), result_type("int8", 1.0)
    (dtype('float32'), dtype('int8'), dtype('float64'))
    """
    return dtypes.result_type(*args)
