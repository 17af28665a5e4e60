"""Evenly spaced values and the grids that vectors span.

While a function is staged, counting with integers is an operation of the program (`iota`); what else is known is a
constant, NumPy's to the last bit.

May import: `numpy.promotion`, `numpy.creation`, `numpy.ufuncs`, `xform.lax`, `xform.core`.
"""

import math
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary, leave
from xform.lax.comparison import select_n_p
from xform.lax.conversion import convert
from xform.lax.shapes import broadcast_in_dim, broadcast_in_dim_p, broadcasted_iota, iota
from xform.lax.shapes import reshape as lax_reshape
from xform.numpy import host_forms, ufuncs
from xform.numpy.creation import placed
from xform.numpy.fast import short_way
from xform.numpy.promotion import (
    array_of,
    broadcast_shapes_of,
    canonical_axis,
    concrete,
    dtype_argument,
    expand_to,
    is_concrete,
    known_integer,
    numpy_only,
    operand,
    promote,
    shown,
    strong,
)


def _known(name: str, **values: Any) -> list[Any]:
    """Arguments that must be known while tracing, as Python or NumPy scalars."""
    out = []
    for arg, v in values.items():
        v = v if v is None else operand(name, v, arg)
        if isinstance(v, Array | np.ndarray):
            v = concrete(name, v, arg, "Its value decides the shape: make it static (static_argnums).")
            if v.ndim:
                raise ValueError(f"numpy.{name}: {arg} must be a scalar, got shape {v.shape}")
            v = v[()]
        out.append(v)
    return out


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, like: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Evenly spaced values: start, start + step, ... before stop; with one argument, 0, 1, ... before it."""
    if type(start) is int and stop is step is dtype is device is like is out_sharding is None and state.fast:
        return ArrayImpl(np.arange(start, dtype=dtypes.default_int()))
    try:
        numpy_only("arange", like=like)
        return placed("arange", _arange(start, stop, step, dtype), device, out_sharding)
    except Exception as error:
        leave(error, arange)
        raise


def _arange(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    start, stop, step = _known("arange", start=start, stop=stop, step=step)
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    found = dtype_argument("arange", dtype) or dtypes.result_type(start, stop, step)
    if step == 0:
        raise ZeroDivisionError("numpy.arange: step must not be 0: division by zero")
    counts = dtypes.kinds[found] in "iu" and all(isinstance(v, int | np.integer) for v in (start, stop, step))
    if state.fast or not counts:
        return ArrayImpl(_count_on_host(start, stop, step, found))
    size = max(0, -((int(start) - int(stop)) // int(step)))
    out = iota(found, size)
    out = out if step == 1 else out * int(step)
    return out if start == 0 else out + int(start)


def _count_on_host(start: Any, stop: Any, step: Any, dtype: Any) -> np.ndarray:
    host: Any = np.arange
    return host(start, stop, step, dtype if dtype.kind != "V" else None).astype(dtype, copy=False)


def _samples(name: str, num: Any) -> int:
    (num,) = _known(name, num=num)
    num = known_integer(name, "num", num)
    if num < 0:
        raise ValueError(f"numpy.{name}: number of samples, {num}, must be non-negative")
    return num


@short_way(host_forms.linspace, plain="start stop num endpoint retstep axis")
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """`num` evenly spaced values from start to stop, along a new axis for arrays; with `retstep` also their distance.

    Integers are rounded down if an integer `dtype` is asked for. start and stop may be traced, num not.
    """
    num = _samples("linspace", num)
    found = dtype_argument("linspace", dtype)
    start, stop = array_of("linspace", start, "start"), array_of("linspace", stop, "stop")
    computed = dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
    start, stop = convert(start, computed), convert(stop, computed)
    shape = broadcast_shapes_of("linspace", [start.shape, stop.shape], [start, stop])
    axis = canonical_axis("linspace", axis, len(shape) + 1)
    if is_concrete(start, stop):  # a constant of a staged function too: XLA fuses products with sums, and rounds less
        host: Any = np.linspace
        token = quiet_begin()
        try:
            values, gap = host(start._value(), stop._value(), num, endpoint, True, computed, axis)
        finally:
            quiet_end(token)
        out: Any = ArrayImpl(values)
        step: Any = ArrayImpl(np.asarray(gap, computed))
    else:
        out, step = _staged_linspace(expand_to(start, shape), expand_to(stop, shape), num, endpoint, axis)
    if found is not None:
        out = convert(out, found) if found.kind not in "iu" else convert(ufuncs.floor(out), found)
    out = placed("linspace", out, device)
    return (out, step) if retstep else out


def _staged_linspace(start: Any, stop: Any, num: int, endpoint: bool, axis: int) -> tuple[Any, Any]:
    parts = num - 1 if endpoint else num
    delta = stop - start
    step = delta / parts if parts > 0 else start.dtype.type(math.nan)
    shape = (*start.shape[:axis], num, *start.shape[axis:])
    dims = tuple(d for d in range(len(shape)) if d != axis)
    first, gap = (broadcast_in_dim(v, shape, dims) for v in (start, step if parts > 0 else delta))
    count = broadcasted_iota(np.int64, shape, axis)
    out = first + gap * convert(count, start.dtype)
    if endpoint and num > 1:
        out = select_n_p.bind(count == num - 1, out, broadcast_in_dim(stop, shape, dims))
    return out, step


@short_way(np.logspace, plain="start stop num endpoint base axis")
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Array:
    """`num` values from base**start to base**stop, evenly spaced in their logarithms."""
    num, found = _samples("logspace", num), dtype_argument("logspace", dtype)
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    base = array_of("logspace", base, "base")
    if base.ndim:
        shape = (*base.shape[:axis], 1, *base.shape[axis:]) if axis >= 0 else (*base.shape, 1)
        base = lax_reshape(base, shape)
    out = base**exponents
    return strong(out) if found is None else convert(out, found)


@short_way(np.geomspace, plain="start stop num endpoint axis")
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Array:
    """`num` values from start to stop with one ratio between neighbours; neither may be 0."""
    num, found = _samples("geomspace", num), dtype_argument("geomspace", dtype)
    start, stop = (strong(array_of("geomspace", v)) for v in promote("geomspace", start, stop))
    computed = dtypes.to_inexact_dtype(start.dtype)
    start, stop = convert(start, computed), convert(stop, computed)
    if is_concrete(start, stop):
        if np.any(start._value() == 0) or np.any(stop._value() == 0):
            raise ValueError("numpy.geomspace: geometric sequence cannot include zero")
        out: Any = ArrayImpl(np.geomspace(start._value(), stop._value(), num, endpoint, computed, axis))
        return out if found is None else convert(out, found)
    shape = broadcast_shapes_of("geomspace", [start.shape, stop.shape], [start, stop])
    start, stop = expand_to(start, shape), expand_to(stop, shape)
    axis = canonical_axis("geomspace", axis, len(shape) + 1)
    zero = start * 0
    exponents = linspace(zero, ufuncs.log(stop / start), num, endpoint, axis=axis)
    first = lax_reshape(start, (*shape[:axis], 1, *shape[axis:]))
    out = first * ufuncs.exp(exponents)
    return out if found is None else convert(out, found)


@api_boundary
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of the grid that vectors span; with ``indexing="xy"`` the first two axes are exchanged."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"numpy.meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    arrays = [array_of("meshgrid", x, f"{i + 1}") for i, x in enumerate(xi)]
    if any(a.ndim > 1 for a in arrays):
        raise ValueError(f"numpy.meshgrid: arguments must have at most one axis, got {', '.join(map(shown, arrays))}")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = [1, 0]
    lengths = [a.size for a in arrays]
    full_shape = tuple(lengths[order.index(d)] for d in range(len(arrays)))
    out = []
    for a, place in zip(arrays, order, strict=True):
        shape = tuple(a.size if d == place else 1 for d in range(len(arrays))) if sparse else full_shape
        out.append(broadcast_in_dim_p.bind(a, shape=shape, broadcast_dimensions=(place,) * a.ndim))
    return tuple(out)
