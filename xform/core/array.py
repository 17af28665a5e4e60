"""`Array`, the base class of all values, and `ArrayImpl`, a concrete one.

A concrete array holds a host `ndarray` (a NumPy scalar at rank 0), a device buffer, or both; each is made from the
other when it is first needed and then kept. On CPU the two share memory where alignment allows. Arrays are immutable:
no rule writes into an operand, and the host view that users get is read-only.

The operators and NumPy's methods are attached to `Array` by `xform.numpy.methods`, and how it prints by
`xform.numpy.text`, which are written in terms of the array API above this floor.

May import: `core.avals`, `core.dtypes`, `core.dlpack`, `core.config`, `core.errors`; `backends.xla` when a buffer is
needed.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from xform.core import dlpack, dtypes
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import TracerArrayConversionError


class Array:
    """An n-dimensional array, concrete or traced: ``isinstance(x, xform.Array)`` holds for both.

    Arrays are made by `xform.numpy.array` and the other functions of the API, never by calling this class.
    """

    __slots__ = ()
    __array_priority__ = 100

    aval: ShapedArray

    if TYPE_CHECKING:  # the operators and methods that `xform.numpy` attaches

        def __getattr__(self, name: str) -> Any: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __iter__(self) -> Any: ...
        def _binary(self, other: Any) -> Any: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _binary
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = _binary
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary

        def __neg__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...

    def __init__(self, *args: Any, **kwargs: Any):
        raise TypeError("xform.Array can't be instantiated: make arrays with xform.numpy.array and its kin")

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype gives way in promotion, as a Python scalar's does."""
        return self.aval.weak_type

    @property
    def device(self) -> Any:
        """The device that holds the array; None while a function is traced, when that isn't known."""
        return None

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of an array of rank 0")
        return shape[0]


class Pending:
    """The single result of a launched program, whose buffer nobody has needed yet."""

    __slots__ = ("executable", "results")

    def __init__(self, executable: Any, results: Any):
        self.executable, self.results = executable, results


class ArrayImpl(Array):
    """A concrete array."""

    __slots__ = ("__weakref__", "_aval", "_buffer", "_device", "_host", "_weak")

    def __init__(self, host: Any, buffer: Any = None, aval: ShapedArray | None = None, device: Any = None):
        self._host = host  # ndarray or NumPy scalar, of a canonical dtype, never written to again
        self._buffer = buffer  # the backend's buffer, or a `Pending` one; read it by `_device_buffer`
        self._aval = aval  # None until needed; a weak type has its aval from the start
        self._weak = aval is not None and aval.weak_type
        self._device = device  # where the array was put; None: the default device

    @property
    def aval(self) -> ShapedArray:  # type: ignore[override]
        """The abstract value."""
        aval = self._aval
        if aval is None:
            h = self._host
            aval = self._aval = ShapedArray(h.shape, h.dtype)
        return aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        h = self._host
        return self._aval.shape if h is None else h.shape  # type: ignore[union-attr]

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        h = self._host
        return self._aval.dtype if h is None else h.dtype  # type: ignore[union-attr]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        h = self._host
        return self._aval.ndim if h is None else h.ndim  # type: ignore[union-attr]

    # Host and device.

    def _value(self) -> Any:
        """The host ndarray or NumPy scalar."""
        h = self._host
        if h is None:
            h = self._fetch()
        return h

    def _device_buffer(self) -> Any:
        """The backend's buffer, or None."""
        buffer = self._buffer
        if type(buffer) is Pending:
            (buffer,) = buffer.executable.take(buffer.results)
            self._buffer = buffer
        return buffer

    def _fetch(self) -> Any:
        from xform.backends import xla

        buffer = self._device_buffer()
        if buffer is None:
            raise RuntimeError(f"array of {self._aval} has been deleted (donated to a jitted function, or by delete())")
        if len(xla.devices_of(buffer)) > 1:  # one row on each
            h = np.stack(xla.get_shards(buffer)).reshape(self.aval.shape)
        else:
            h = xla.get(buffer)
        if xla.device_of(buffer).platform == "cpu":
            self._host = h
        return h

    def _on_device(self, device: Any) -> Any:
        """The buffer on `device` (None: the default one), made or copied if need be."""
        from xform.backends import xla

        if device is None:
            device = xla.devices()[0]
        buffer = self._device_buffer()
        if buffer is None:
            buffer = xla.put(self._value(), device)
            if self._device is None:
                self._buffer = buffer
        elif len(xla.devices_of(buffer)) > 1:
            buffer = xla.put(self._value(), device)
        elif xla.device_of(buffer) is not device:
            buffer = xla.copy_to_device(buffer, device)
        return buffer

    def _places(self) -> tuple[Any, ...]:
        from xform.backends import xla

        if (buffer := self._device_buffer()) is not None:
            return xla.devices_of(buffer)
        device = state.default_device if self._device is None else self._device
        return (xla.devices(device)[0],) if device is None or isinstance(device, str) else (device,)

    def devices(self) -> set[Any]:
        """The devices that hold the array; one in host memory is where it would be copied to."""
        return set(self._places())

    @property
    def device(self) -> Any:
        """The device that holds the array; ValueError if several do."""
        found = self._places()
        if len(found) > 1:
            raise ValueError(f"this array of {self.aval} is spread over {len(found)} devices: see x.devices()")
        return found[0]

    def delete(self) -> None:
        """Free the memory; using the array afterwards is an error."""
        self._aval = self.aval
        self._host = None
        if (buffer := self._device_buffer()) is not None:
            from xform.backends import xla

            xla.delete(buffer)
            self._buffer = None

    def is_deleted(self) -> bool:
        """Whether the array was deleted or donated."""
        return self._host is None and self._buffer is None

    def is_ready(self) -> bool:
        """Whether the computation that makes this array is finished."""
        if self._host is not None or self._buffer is None:
            return True
        from xform.backends import xla

        return xla.is_ready(self._device_buffer())

    def block_until_ready(self) -> "ArrayImpl":
        """Wait for the computation that makes this array, and return it."""
        if self._buffer is not None and self._host is None:
            from xform.backends import xla

            xla.block_until_ready([self._device_buffer()])
        return self

    # Python's and NumPy's conversions.

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False and self._is_far():
            raise ValueError(f"np.asarray: values on {self.device} can't be lent to the host without a copy")
        value = self._value()
        if type(value) is not np.ndarray:  # of rank 0
            value = np.array(value)
        if dtype is not None and dtype != value.dtype:
            if copy is False:
                raise ValueError(f"np.asarray: a copy is needed to convert {value.dtype} to {np.dtype(dtype)}")
            return value.astype(dtype)
        if copy:
            return value.copy()
        if value.flags.writeable:
            value.flags.writeable = False
        return value

    def __buffer__(self, flags: int) -> memoryview:
        # Python asks for this from 3.12 on. NumPy prefers it to `__array__`, which it falls back on.
        value = self.__array__()
        if flags & _WRITABLE:
            raise BufferError("arrays are immutable: their memory is lent for reading only; use numpy.array(x)")
        return memoryview(value)  # type: ignore[arg-type]  # an ndarray is a buffer

    def __bytes__(self) -> bytes:
        return self.tobytes()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        if copy is False and self._is_far():
            raise BufferError(f"__dlpack__: lending memory of {self.device} to the host takes a copy")
        return dlpack.export(self._value(), stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.HOST

    def _is_far(self) -> bool:
        """Whether reading the values needs a transfer from an accelerator or from several devices."""
        return self._host is None and any(d.platform != "cpu" for d in self._places())

    def item(self, *args: Any) -> Any:
        """The element as a Python scalar; with arguments, that of an index."""
        return self._value().item(*args)

    def tolist(self) -> Any:
        """Nested lists of Python scalars."""
        return self._value().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """The raw bytes of the elements."""
        return self._value().tobytes(order)

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"the truth value of an array of shape {self.shape} is ambiguous: use xform.numpy.any or .all"
            )
        return bool(self._value())

    def _scalar(self, kind: str) -> Any:
        if self.ndim:
            raise TypeError(f"{kind}() needs an array of rank 0, got shape {self.shape}")
        return self._value().item()

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __trunc__(self) -> int:
        return int(self._scalar("trunc"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError(f"only integer arrays of rank 0 can be an index, got {self.aval}")
        return int(self._value())

    def __hash__(self) -> int:
        raise TypeError("unhashable type: arrays can't be dict keys, set members or static arguments of jit")

    def __reduce__(self) -> tuple:
        return _rebuild, (np.asarray(self._value()), self._weak)

    def __copy__(self) -> "ArrayImpl":
        return self

    def __deepcopy__(self, memo: Any) -> "ArrayImpl":
        return self


def _rebuild(value: np.ndarray, weak: bool) -> ArrayImpl:
    return ArrayImpl(value[()], aval=ShapedArray(value.shape, value.dtype, weak))


_WRITABLE = 1  # `inspect.BufferFlags.WRITABLE`


_SCALARS = (bool, int, float, complex)
NDARRAYS = (np.ndarray, np.generic)


# The avals of Python's and NumPy's scalars, by type and whether 64-bit types are on.
_scalar_avals: dict[tuple[type, bool], ShapedArray] = {}


def get_aval(x: Any) -> ShapedArray:
    """The aval of anything that counts as an array: arrays, ndarrays, NumPy and Python scalars."""
    if isinstance(x, Array):
        return x.aval
    key = (type(x), state.enable_x64)
    found = _scalar_avals.get(key)
    if found is not None:
        return found
    if isinstance(x, NDARRAYS):
        aval = ShapedArray(x.shape, dtypes.dtype(x))
        if isinstance(x, np.generic) and aval.dtype in dtypes.kinds:
            _scalar_avals[key] = aval
        return aval
    if isinstance(x, _SCALARS):
        aval = ShapedArray((), dtypes.dtype(x), not isinstance(x, bool))
        if type(x) in _SCALARS:
            _scalar_avals[key] = aval
        return aval
    if hasattr(x, "__array__"):
        return get_aval(np.asarray(x))
    raise TypeError(f"expected an array or a scalar, got {x!r} of type {type(x).__name__}")


def host_value(x: Any) -> Any:
    """The host ndarray or NumPy scalar of anything concrete that counts as an array, in a canonical dtype."""
    if type(x) is ArrayImpl:
        h = x._host
        return x._fetch() if h is None else h
    if isinstance(x, NDARRAYS):
        if x.dtype.isnative and state.enable_x64:
            return x
        return x.astype(dtypes.canonicalize_dtype(x.dtype))
    if isinstance(x, _SCALARS):
        return dtypes.dtype(x).type(x)
    if isinstance(x, Array):
        raise TracerArrayConversionError(f"a concrete value is needed, got the traced array {x}")
    if hasattr(x, "__array__"):
        return host_value(np.asarray(x))
    raise TypeError(f"expected an array or a scalar, got {x!r} of type {type(x).__name__}")


def own(x: Any) -> ArrayImpl:
    """A concrete array for anything concrete that counts as one; it shares no memory that the caller may write to."""
    value = host_value(x)
    foreign = (
        isinstance(value, np.ndarray) and type(x) is not ArrayImpl and (value is x or not isinstance(x, np.ndarray))
    )
    if foreign and (value.flags.writeable or not value.flags.owndata):
        value = value.copy()
    return ArrayImpl(value, None, get_aval(x))
