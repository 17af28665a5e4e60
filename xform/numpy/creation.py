"""Arrays from values, from shapes, and from other arrays.

With no trace under way the arrays are made by NumPy. While a function is staged, those that only depend on shapes
(``zeros``, ``eye``) become operations of the program, so that no large constants travel with it.

May import: `numpy.promotion`, `numpy.ufuncs`, `xform.lax`, `xform.interpreters`, `xform.core`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core import dlpack, dtypes
from xform.core.array import Array, ArrayImpl, own
from xform.core.config import state
from xform.core.errors import api_boundary, filtered_traceback
from xform.interpreters.execution import default_device
from xform.lax.conversion import convert, convert_host
from xform.lax.shapes import broadcast_in_dim_p
from xform.lax.shapes import full as lax_full
from xform.lax.shapes import reshape as lax_reshape
from xform.lax.slicing import concatenate as lax_concatenate
from xform.numpy import keys
from xform.numpy.fast import ANY, short_way
from xform.numpy.promotion import (
    NUMBERS,
    SCALARS,
    ShapeError,
    array_of,
    dtype_argument,
    expand_to,
    is_concrete,
    numpy_only,
    shape_argument,
    shown,
    to_dtype,
)

# ---- Placement ---------------------------------------------------------------------------------------------


def placed(name: str, x: Any, device: Any, out_sharding: Any = None) -> Any:
    """`x` on a device."""
    if out_sharding is not None:
        raise NotImplementedError(f"numpy.{name}: out_sharding is not supported yet")
    if device is None:
        return x
    from xform.api.devices import device_put

    return device_put(x, device)


# ---- From values -------------------------------------------------------------------------------------------


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: Any = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Make an array of a number, an array, or nested sequences of them.

    Parameters
    ----------
    object : array, number, nested lists or tuples, or anything NumPy can convert
        Lists may contain traced arrays.
    dtype : dtype, optional
        By default NumPy's: float64, int64, complex128, bool; that of arrays is kept.
    copy, order, subok, like : accepted as in NumPy, if they ask for nothing that immutable arrays haven't
        The data of an `Array` can't change and is shared, that of an ndarray is copied.
    ndmin, ndmax : int
        Least number of axes, new ones come first; and, unless 0, the largest.
    device : Device, optional

    Raises
    ------
    TypeError
        If the elements aren't numbers.
    ValueError
        If rows have different lengths.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    plain = dtype is device is out_sharding is like is None and not ndmin and not ndmax and order == "K" and copy
    if plain and type(object) is ArrayImpl:
        return object
    if plain and type(object) is np.ndarray:
        found = object.dtype
        if found in dtypes.kinds and found.isnative and state.enable_x64:
            return ArrayImpl(object.copy())
    try:
        if copy is False:
            return asarray(object, dtype, order, copy=False, like=like, device=device, out_sharding=out_sharding)
        out = _array("array", object, dtype, order, ndmin, device, out_sharding, like)
        if ndmax and out.ndim > ndmax:
            raise ValueError(f"numpy.array: at most {ndmax} axes were asked for by ndmax, got {shown(out)}")
        return out
    except Exception as error:
        error.__traceback__ = filtered_traceback(error.__traceback__)
        raise


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
    like: Any = None,
) -> Array:
    """Like `array`; an `Array` is returned as it is, but for ``copy=True``.

    ``copy=False`` raises ValueError where a copy is needed: for everything but an `Array` of the wanted dtype on the
    wanted device.
    """
    if dtype is order is device is like is None:
        if type(a) is ArrayImpl and not copy:
            return a
        if isinstance(a, Array):
            return _copied(a) if copy else a
        if type(a) is np.ndarray and copy is not False:
            return array(a, out_sharding=out_sharding)
    try:
        fits = isinstance(a, Array) and device in (None, a.device)
        if copy is False and not (fits and (dtype is None or a.dtype == dtype_argument("asarray", dtype))):
            raise ValueError(
                "numpy.asarray: arrays are immutable, so making one takes a copy, which copy=False forbids"
            )
        out = _array("asarray", a, dtype, order, 0, device, out_sharding, like)
        return _copied(out) if copy and out is a else out
    except Exception as error:
        if not keys.among(a):
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise
    return keys.mapped(asarray, a, dtype, order, copy=copy, device=device, out_sharding=out_sharding, like=like)


def _array(name: str, x: Any, dtype: Any, order: Any, ndmin: int, device: Any, out_sharding: Any, like: Any) -> Any:
    numpy_only(name, order, like)
    dtype = dtype_argument(name, dtype)
    out = converted(name, x, dtype)
    if out.ndim < ndmin:
        out = lax_reshape(out, (1,) * (ndmin - out.ndim) + out.shape)
    return placed(name, out, device, out_sharding)


def converted(name: str, x: Any, dtype: Any) -> Any:
    """`x` as array of `dtype`."""
    if hasattr(x, "__jax_array__"):
        x = x.__jax_array__()
    if isinstance(x, NUMBERS):
        return x if dtype is None else convert(x, dtype)
    if isinstance(x, SCALARS) and not isinstance(x, np.generic):
        return array_of(name, x) if dtype is None else ArrayImpl(to_dtype(name, x, dtype))
    if isinstance(x, Sequence) and not isinstance(x, str | bytes) and _contains_arrays(x):
        return _stacked(name, x, dtype)
    try:
        value = np.asarray(x)
        if value.dtype.kind not in "biufcV":
            if value.dtype.kind == "O" and isinstance(x, Sequence):
                value = np.array(x, dtype=dtype)  # NumPy's message for ragged lists
            raise TypeError
    except ValueError as error:
        raise ValueError(f"numpy.{name}: {error}") from None
    except (TypeError, OverflowError):
        raise TypeError(
            f"numpy.{name}: can't make an array of {_short(x)}; arrays hold numbers and booleans only"
        ) from None
    if dtype is not None and isinstance(x, Sequence):
        if value.dtype.kind in "iu":
            return ArrayImpl(_cast_integers(name, value, dtype))
        if value.dtype.kind == "c" and dtypes.kinds[dtype] not in "cb":
            raise TypeError(f"numpy.{name}: complex numbers don't fit into {dtype}; take their real part")
    known = value.dtype in dtypes.kinds and state.enable_x64 and isinstance(x, list | tuple)
    out = ArrayImpl(value) if known else own(value)
    return out if dtype is None else convert(out, dtype)


def _cast_integers(name: str, value: np.ndarray, dtype: np.dtype) -> Any:
    """Python integers of a list, which must fit into the dtype asked for."""
    if dtypes.kinds[dtype] in "iu" and value.size:
        info = dtypes.iinfo(dtype)
        if value.min() < int(info.min) or value.max() > int(info.max):
            raise OverflowError(f"numpy.{name}: integers from {value.min()} to {value.max()} don't fit into {dtype}")
    return value.astype(dtype)


def _short(x: Any) -> str:
    text = repr(x)
    return f"{text if len(text) < 60 else text[:57] + '...'} of type {type(x).__name__}"


_PLAIN = frozenset([bool, int, float, complex])


def _contains_arrays(x: Sequence[Any]) -> bool:
    for e in x:
        if type(e) in _PLAIN:
            continue
        if isinstance(e, Array) or hasattr(e, "__jax_array__") or (isinstance(e, list | tuple) and _contains_arrays(e)):
            return True
    return False


def _stacked(name: str, x: Sequence[Any], dtype: Any) -> Any:
    """Nested sequences with arrays among their elements."""
    leaves: list[Any] = []

    def flatten(e: Any) -> tuple[int, ...]:
        """Collect the leaves, and return the shape of the nest around them."""
        if isinstance(e, list | tuple):
            shapes = {flatten(sub) for sub in e}
            if len(shapes) > 1:
                raise ValueError(f"numpy.{name}: rows must have one shape, got {sorted(shapes)}")
            return (len(e), *(shapes.pop() if shapes else ()))
        leaf = array_of(name, e, "element")
        leaves.append(leaf)
        return leaf.shape

    shape = flatten(x)
    if dtype is None:
        dtype = dtypes.result_type(*leaves)
    leaves = [convert(leaf, dtype) for leaf in leaves]
    if is_concrete(*leaves) and state.fast:
        return ArrayImpl(np.stack([leaf._value() for leaf in leaves]).reshape(shape))
    rows = [lax_reshape(leaf, (1, *leaf.shape)) for leaf in leaves]
    return lax_reshape(lax_concatenate(rows, 0) if len(rows) > 1 else rows[0], shape)


@api_boundary
def copy(a: Any, order: str | None = "K", subok: bool = False) -> Array:
    """A copy, with memory of its own."""
    numpy_only("copy", order)
    return _copied(array_of("copy", a))


def _copied(a: Any) -> Any:
    return ArrayImpl(np.array(a._value()), None, a.aval) if type(a) is ArrayImpl and state.fast else a


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array:
    """Convert to another dtype. An array that has it is returned as it is, but for ``copy=True``.

    Differs from NumPy: floats out of range of integers saturate, and NaN becomes 0, where NumPy has no rule.

    Floats become integers by truncation; out of range they saturate, and NaN becomes 0. Complex numbers lose their
    imaginary part on the way to real ones, with NumPy's ComplexWarning.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.astype(xnp.array([1.7, -1.7, 300.0]), "int8").tolist()
    [1, -1, 127]
    """
    try:
        out = _astype(array_of("astype", x, "x"), dtype, device)
        return _copied(out) if copy and out is x else out
    except Exception as error:
        error.__traceback__ = filtered_traceback(error.__traceback__)
        raise


def _astype(x: Array, dtype: Any, device: Any) -> Array:
    found = dtype_argument("astype", dtype) or dtypes.default_float()
    if x.dtype.kind == "c" and found.kind not in "cb":
        import warnings

        text = f"numpy.astype: the imaginary part is lost on the way from {x.dtype} to {found}; take x.real"
        warnings.warn(text, np.exceptions.ComplexWarning, stacklevel=4)
    if type(x) is ArrayImpl and state.fast and x._host is not None and device is None:
        return x if found is x._host.dtype and not x._weak else ArrayImpl(_converted_on_host(x._host, found))
    return placed("astype", convert(x, found), device)


def _converted_on_host(value: Any, dtype: Any) -> Any:
    token = quiet_begin()
    try:
        return convert_host(value, dtype)
    finally:
        quiet_end(token)


@api_boundary
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library, by the DLPack protocol.

    In host memory nothing is copied: who writes to `x` afterwards changes the result.

    Parameters
    ----------
    x : object with ``__dlpack__`` and ``__dlpack_device__``
    device : Device, optional
        Where to put the array. A CPU device also asks the library of an array that is elsewhere for a copy.
    copy : bool, optional
        True: always copy. False: never, but raise ValueError where it takes a copy.

    Raises
    ------
    BufferError
        If the data can't be had: on an accelerator without ``device=``, or of a dtype that doesn't exist here.
    AttributeError
        If `x` doesn't have the protocol.

    Examples
    --------
    >>> import numpy as np, xform.numpy as xnp
    >>> theirs = np.arange(3.0)
    >>> ours = xnp.from_dlpack(theirs)
    >>> np.shares_memory(np.from_dlpack(ours), theirs)
    True
    """
    to_host = device is not None and getattr(device, "platform", None) == "cpu"
    try:
        value = dlpack.borrow(x, to_host, copy)
    except (AttributeError, BufferError) as error:
        raise type(error)(f"numpy.from_dlpack: {error}") from None
    wanted = dtypes.canonicalize_dtype(value.dtype)
    if wanted not in dtypes.kinds:
        raise BufferError(f"numpy.from_dlpack: dtype {value.dtype} is not supported")
    if copy is False and not (wanted == value.dtype and device in (None, default_device())):
        raise ValueError(
            f"numpy.from_dlpack: {value.dtype}{list(value.shape)} becomes {wanted} on {device or 'the host'} only by a "
            "copy, which copy=False forbids"
        )
    return placed("from_dlpack", ArrayImpl(value.astype(wanted, copy=False)), device)


@api_boundary
def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, like: Any = None) -> Array:
    """A one-dimensional array of the bytes of a buffer."""
    numpy_only("frombuffer", like=like)
    return own(np.frombuffer(buffer, dtype_argument("frombuffer", dtype), count, offset))


@api_boundary
def fromfile(
    file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0, *, like: Any = None
) -> Array:
    """Numbers in a binary file, or, if `sep` is not empty, in a text file with such separators."""
    numpy_only("fromfile", like=like)
    return own(np.fromfile(file, dtype_argument("fromfile", dtype), count, sep, offset))


@api_boundary
def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1, *, like: Any = None) -> Array:
    """The numbers, at most `count`, that an iterator yields."""
    numpy_only("fromiter", like=like)
    return own(np.fromiter(iter, dtype_argument("fromiter", dtype), count))


@api_boundary
def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str, like: Any = None) -> Array:
    """Numbers in a text, between separators."""
    numpy_only("fromstring", like=like)
    return own(np.fromstring(string, dtype_argument("fromstring", dtype), count, sep=sep))


@api_boundary
def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, like: Any = None, **kwargs: Any
) -> Any:
    """The array of ``function(i, j, ...)`` over all indices, mapped with `vmap`: the function sees scalars.

    Differs from NumPy: the function is mapped with `vmap` over scalars, not called once with arrays of indices.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.fromfunction(lambda i, j: i == j, (2, 2), dtype=int).tolist()
    [[True, False], [False, True]]
    """
    from xform.api.mapping import vmap
    from xform.numpy.ranges import arange

    numpy_only("fromfunction", like=like)
    shape = shape_argument("fromfunction", shape)

    def scalars(*indices: Any) -> Any:
        return function(*indices, **kwargs)

    mapped = scalars
    for i in reversed(range(len(shape))):
        mapped = vmap(mapped, tuple(0 if d == i else None for d in range(len(shape))))
    return mapped(*(arange(n, dtype=dtype) for n in shape))


# ---- From shapes -------------------------------------------------------------------------------------------


def _filled(name: str, make: Callable[[Any, Any], np.ndarray], value: int) -> Callable[..., Array]:
    def function(
        shape: Any,
        dtype: Any = None,
        order: Any = None,
        *,
        device: Any = None,
        like: Any = None,
        out_sharding: Any = None,
    ) -> Array:
        if state.fast_by_types and dtype is order is device is like is out_sharding is None:
            try:
                return ArrayImpl(make(shape, float))
            except (TypeError, ValueError):
                pass  # for the error below
        try:
            numpy_only(name, order, like)
            shape = shape_argument(name, shape)
            found = dtype_argument(name, dtype) or dtypes.default_float()
            if state.fast:
                out: Any = ArrayImpl(make(shape, found))
            else:
                out = broadcast_in_dim_p.bind(found.type(value), shape=shape, broadcast_dimensions=())
            return placed(name, out, device, out_sharding)
        except Exception as error:
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise

    function.__name__ = function.__qualname__ = name
    return function


zeros = _filled("zeros", np.zeros, 0)
ones = _filled("ones", np.ones, 1)
empty = _filled("empty", np.zeros, 0)
zeros.__doc__ = "An array of zeros; `dtype` is float64 by default."
ones.__doc__ = "An array of ones; `dtype` is float64 by default."
empty.__doc__ = "An array of zeros, like `zeros`.\n\nDiffers from NumPy: the elements are zeros."


def _host_full(shape: Any, fill_value: Any) -> Any:
    if shape is None or type(fill_value) not in SCALARS:
        raise TypeError
    return np.full(shape, fill_value, type(fill_value))


@short_way(_host_full, plain="shape fill_value")
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: Any = None, *, device: Any = None, like: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """An array filled with a value, of its dtype by default; an array as value is broadcast.

    Differs from NumPy: a complex number for a real dtype is a TypeError, not a warning.
    """
    numpy_only("full", order, like)
    shape = shape_argument("full", shape)
    scalar = isinstance(fill_value, SCALARS) and not isinstance(fill_value, np.generic)
    value = fill_value if scalar else array_of("full", fill_value, "fill_value")
    dtype = dtype_argument("full", dtype) or dtypes.dtype(value)
    if scalar:
        value = ArrayImpl(to_dtype("full", value, dtype))
    aligned = zip(value.shape[::-1], shape[::-1], strict=False)
    if value.ndim > len(shape) or any(n not in (1, m) for n, m in aligned):
        raise ShapeError(f"numpy.full: could not broadcast input array {shown(value)} into shape {shape}")
    value = convert(value, dtype)
    if state.fast and type(value) is ArrayImpl:
        out: Any = ArrayImpl(np.full(shape, value._value(), dtype))
    else:
        out = expand_to(value, shape)
    return placed("full", out, device, out_sharding)


def _like(name: str, a: Any, value: Any, dtype: Any, order: Any, shape: Any, device: Any, out_sharding: Any) -> Any:
    numpy_only(name, order)
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):  # a ShapeDtypeStruct will do
        a = array_of(name, a, "a")
    weak = dtype is None and getattr(a, "weak_type", False)
    found = dtypes.dtype(a) if dtype is None else dtype_argument(name, dtype)
    shape = tuple(a.shape) if shape is None else shape_argument(name, shape)
    device = getattr(a, "_device", None) if device is None else device
    out: Any = ArrayImpl(np.full(shape, value, found)) if state.fast else lax_full(shape, value, found)
    return placed(name, convert(out, found, True) if weak else out, device, out_sharding)


@short_way(lambda a: np.zeros(a.shape, a.dtype), ANY)
def zeros_like(
    a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Zeros with the shape and dtype of another array, unless others are given."""
    return _like("zeros_like", a, 0, dtype, order, shape, device, out_sharding)


@short_way(lambda a: np.ones(a.shape, a.dtype), ANY)
def ones_like(
    a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Ones with the shape and dtype of another array, unless others are given."""
    return _like("ones_like", a, 1, dtype, order, shape, device, out_sharding)


@short_way(lambda prototype: np.zeros(prototype.shape, prototype.dtype), ANY)
def empty_like(
    prototype: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> Array:
    """Like `zeros_like`.

    Differs from NumPy: the elements are zeros.
    """
    return _like("empty_like", prototype, 0, dtype, order, shape, device, None)


@short_way(lambda a, fill_value: np.full(a.shape, a.dtype.type(fill_value + 0.0)), "fd", plain="fill_value")
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, *,
    device: Any = None, out_sharding: Any = None,
) -> Array:  # fmt: skip
    """A value with the shape and dtype of another array, unless others are given."""
    numpy_only("full_like", order)
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):
        a = array_of("full_like", a, "a")
    if dtype is None:
        dtype = dtypes.dtype(a)
    device = getattr(a, "_device", None) if device is None else device
    return full(a.shape if shape is None else shape, fill_value, dtype, device=device, out_sharding=out_sharding)


dtypes.ScalarType.make = lambda x, dtype: asarray(x, dtype)
