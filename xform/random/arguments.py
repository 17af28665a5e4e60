"""What all samplers ask of their arguments: one key, a dtype of the right kind, a shape that the parameters fit.

May import: `xform.random.keys`, `xform.core`.
"""

from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import get_aval
from xform.lax.shapes import canonical_shape
from xform.random.keys import KeyArray, single


def key_of(name: str, key: Any, out_sharding: Any = None) -> KeyArray:
    """The key that a sampler was given, as a typed one."""
    if out_sharding is not None:
        raise NotImplementedError(f"random.{name}: out_sharding is not supported yet")
    return single(name, key)


def draw(key: KeyArray, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Random bits of an unsigned dtype, or uniform floats of [0, 1)."""
    return key.dtype.generator.draw(key._data, shape, dtype)


def _dtype(name: str, dtype: Any, default: np.dtype, kind: Any, what: str) -> np.dtype:
    if dtype is None:
        return default
    found = dtypes.check_user_dtype(dtype, f"random.{name}")
    if not dtypes.issubdtype(found, kind) or dtypes.itemsize_bits(found) not in (8, 16, 32, 64):
        raise ValueError(f"random.{name}: dtype must be {what} of 8, 16, 32 or 64 bits, got {found}")
    return found


def float_dtype(name: str, dtype: Any) -> np.dtype:
    """The floating dtype to sample, by default float64 (float32 when 64-bit types are off)."""
    return _dtype(name, dtype, dtypes.default_float(), np.floating, "a float")


def integer_dtype(name: str, dtype: Any) -> np.dtype:
    """The integer dtype to sample, by default int64 (int32 when 64-bit types are off)."""
    return _dtype(name, dtype, dtypes.default_int(), np.integer, "an integer")


def unsigned_dtype(name: str, dtype: Any) -> np.dtype:
    """The unsigned dtype to sample, by default uint64 (uint32 when 64-bit types are off)."""
    default = np.dtype(f"uint{dtypes.default_int().itemsize * 8}")
    return _dtype(name, dtype, default, np.unsignedinteger, "an unsigned integer")


def _shape(name: str, parameter: str, x: Any) -> tuple[int, ...]:
    try:
        aval = get_aval(x)
    except TypeError:
        got = f"{x!r} of type {type(x).__name__}"
        raise TypeError(f"random.{name}: {parameter} must be a number or an array, got {got}") from None
    if aval.dtype.kind == "c":
        raise TypeError(f"random.{name}: {parameter} must be real, got {aval.dtype}")
    return aval.shape


def result_shape(name: str, shape: Any, **parameters: Any) -> tuple[int, ...]:
    """The shape of a result: the given one, to which the parameters must broadcast; None: that of the parameters."""
    shapes = [_shape(name, p, x) for p, x in parameters.items()]
    given = None if shape is None else canonical_shape(shape)
    if not any(shapes):
        return given or ()
    try:
        common = np.broadcast_shapes(*shapes, given or ())
    except ValueError:
        common = None
    if common is None or given not in (None, common):
        what = ", ".join(f"{p} of shape {s}" for p, s in zip(parameters, shapes))
        target = "one shape" if given is None else f"shape {given}"
        raise ValueError(f"random.{name}: {what} can't be broadcast to {target}")
    return common
