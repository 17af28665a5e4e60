"""DLPack: the memory of arrays, lent to other libraries and borrowed from them without a copy.

NumPy makes and reads the capsules [1]_. What it can't say is added here: since arrays are immutable, all memory is lent
as read-only, which capsules of version 1 can tell and older ones can't; and the dtypes of ml_dtypes (bfloat16 and the
8-bit floats) travel as unsigned integers, whose type code is exchanged in the capsule.

May import: `core.dtypes`.

.. [1] DLPack, https://dmlc.github.io/dlpack/latest/c_api.html; "Data interchange mechanisms" in the Python array API
   standard.
"""

import ctypes
from typing import Any

import numpy as np

from xform.core import dtypes

#: DLPack's pair of device type (kDLCPU) and number for host memory.
HOST = (1, 0)
# The memory that the processor reads as its own: the host's, pinned for CUDA or ROCm, and CUDA's managed.
_READABLE = (1, 3, 11, 13)
# DLPack's type codes: unsigned integers, and those of which NumPy has none.
_UNSIGNED = 1
_CODES = {
    "bfloat16": 4, "float8_e3m4": 7, "float8_e4m3": 8, "float8_e4m3b11fnuz": 9, "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13, "float8_e8m0fnu": 14,
}  # fmt: skip
_NAMES = {code: name for name, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    """The head of DLPack's ``DLTensor``."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
    )  # fmt: skip


class _Versioned(ctypes.Structure):
    """The head of ``DLManagedTensorVersioned``; the older ``DLManagedTensor`` begins with the tensor."""

    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    )  # fmt: skip


_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))


def _tensor(capsule: Any) -> _Tensor:
    name = _capsule_name(capsule)
    pointer = _capsule_pointer(capsule, name)
    if name == b"dltensor_versioned":
        return _Versioned.from_address(pointer).tensor
    return _Tensor.from_address(pointer)


class _Lent:
    """Memory of an ndarray as NumPy's array interface shows it: writable, and of another dtype of the same width."""

    def __init__(self, array: np.ndarray, dtype: np.dtype):
        self.owner = array
        self.__array_interface__ = {
            "version": 3, "shape": array.shape, "strides": array.strides, "typestr": dtype.str,
            "data": (array.__array_interface__["data"][0], False),
        }  # fmt: skip


def export(value: Any, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """A capsule with a host value, as the method ``__dlpack__`` of the array API standard returns it.

    Capsules of version 1 are marked read-only. Those before it can't be, and share the memory all the same: who takes
    them mustn't write to it.

    Raises
    ------
    BufferError
        For a device other than the host, a dtype that DLPack doesn't have, and for what ``copy=False`` forbids.
    """
    if stream is not None:
        raise ValueError(f"__dlpack__: an array in host memory has no stream, so stream must be None, got {stream!r}")
    if dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != HOST:
        raise BufferError(f"__dlpack__: can export to host memory, {HOST}, only, got dl_device={dl_device!r}")
    array = np.asarray(value)
    versioned = max_version is not None and max_version[0] >= 1
    # Not for everyone: negative strides end PyTorch's process, JAX (which asks for old capsules) refuses those of 0.
    least = 0 if versioned else 1
    if array is not value or any(s < least for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if copy is False and array.size:  # a copy of nothing is none
            raise BufferError("__dlpack__: numbers and reversed or repeated arrays are lent as a copy only")
        copy = True
    dtype = array.dtype
    native = dtype.isbuiltin == 1 and dtypes.kinds.get(dtype) is not None
    if not native and dtype.name not in _CODES:
        raise BufferError(f"__dlpack__: DLPack has no dtype for {dtype}; convert the array with astype")
    shown = dtype if native else np.dtype(f"u{dtype.itemsize}")
    if not (native and array.flags.writeable):
        array = np.asarray(_Lent(array, shown))
    if versioned:
        array = array.view()
        array.flags.writeable = False
    # Older NumPy has no keywords here, and older libraries ask for none.
    options: dict[str, Any] = {"max_version": max_version if versioned else None, "copy": copy or None}
    capsule = array.__dlpack__(**{k: v for k, v in options.items() if v is not None})
    if not native:
        _tensor(capsule).code = _CODES[dtype.name]
    return capsule


class _Borrowed:
    """Another library's array, with its dtype where NumPy has none exchanged for an unsigned integer of its width."""

    def __init__(self, x: Any):
        self.x = x
        self.dtype: np.dtype | None = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.x.__dlpack__(**options)
        tensor = _tensor(capsule)
        if tensor.code in _NAMES and tensor.lanes == 1:
            self.dtype = dtypes.by_name[_NAMES[tensor.code]]
            tensor.code = _UNSIGNED
        return capsule


def borrow(x: Any, to_host: bool, copy: bool | None) -> np.ndarray:
    """The memory of an object with ``__dlpack__`` as an ndarray.

    `to_host` asks its library for a copy in host memory, if it isn't there. Raises BufferError where NumPy can't reach
    the memory or has no such dtype, AttributeError for an object without the protocol, and what the library raises.
    """
    for method in ("__dlpack__", "__dlpack_device__"):
        if not hasattr(x, method):
            raise AttributeError(f"expected an array with {method}(), got an object of type {type(x).__name__}")
    kind, number = x.__dlpack_device__()
    if int(kind) not in _READABLE and not to_host:
        raise BufferError(
            f"the array is not in host memory but on device {number} of DLPack's type {int(kind)}; with "
            "device=xform.devices('cpu')[0] its library is asked for a copy"
        )
    source = _Borrowed(x)
    options = {"copy": copy, "device": "cpu" if to_host else None}
    try:
        array = np.from_dlpack(source, **{k: v for k, v in options.items() if v is not None})  # type: ignore[arg-type]
    except RuntimeError as error:  # what NumPy says of dtypes and devices that it doesn't know
        raise BufferError(f"NumPy can't read the array: {error}") from None
    return array if source.dtype is None else array.view(source.dtype)
