"""NumPy's functions without checks that take longer than the work: what `numpy.fast.short_way` calls in their place.

They take ndarrays that aren't empty (of rank 0: NumPy's scalars) and plain numbers, with NumPy's parameters, and leave
bad arguments to the general way, by an error. Where an argument asks for more than the short form they call NumPy's.

May import: NumPy.
"""

import itertools
import math
from typing import Any

import numpy as np

# ---- Comparing and choosing ----------------------------------------------------------------------------------


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """`numpy.isclose` of arrays of one inexact dtype."""
    close = np.abs(a - b) <= atol + rtol * np.abs(b)
    close &= np.isfinite(b)
    close |= a == b  # infinities
    if equal_nan:
        close |= np.isnan(a) & np.isnan(b)
    return close


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """`numpy.allclose` of arrays of one inexact dtype."""
    return isclose(a, b, rtol, atol, equal_nan).all()


def select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    """`numpy.select` of choices of one dtype, which the default has to fit in."""
    if type(default) is not int and not (type(default) is float and choices[0].dtype.kind in "fc"):
        raise TypeError
    out: Any = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        out = np.where(condition, choice, out)
    return out


_LARGEST = {char: np.finfo(char).max for char in "fd"}


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """`numpy.nan_to_num` of floats."""
    if type(x) is not np.ndarray or not posinf is neginf is None or type(nan) is not float:
        return np.nan_to_num(x, True, nan, posinf, neginf)
    largest = _LARGEST[x.dtype.char]
    out = np.minimum(x, largest)
    np.maximum(out, -largest, out=out)
    np.copyto(out, nan, where=np.isnan(x))
    return out


# ---- Order and repetition ------------------------------------------------------------------------------------


def expand_dims(a: Any, axis: Any) -> Any:
    """`numpy.expand_dims`."""
    if type(axis) is not int:
        return np.expand_dims(a, axis)
    shape = a.shape
    n = len(shape) + 1
    if not -n <= axis < n:
        raise ValueError
    return a.reshape((*shape[: axis % n], 1, *shape[axis % n :]))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """`numpy.moveaxis`."""
    n = a.ndim
    if type(source) is not int or type(destination) is not int:
        return np.moveaxis(a, source, destination)
    if not (-n <= source < n and -n <= destination < n):
        raise ValueError
    order = list(range(n))
    order.insert(destination % n, order.pop(source % n))
    return a.transpose(order)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`numpy.roll`."""
    if type(shift) is not int:  # NumPy truncates floats
        raise TypeError
    if type(a) is not np.ndarray or (a.ndim > 1 and axis is not None):
        return np.roll(a, shift, axis)
    if axis not in (None, 0, -1) or (axis is not None and not a.ndim):
        raise ValueError
    flat = a.ravel()
    cut = -shift % flat.size
    return np.concatenate((flat[cut:], flat[:cut])).reshape(a.shape)


def broadcast_to(array: Any, shape: Any) -> Any:
    """`numpy.broadcast_to`; small results are copies, which take a third of the time of such a view."""
    if type(shape) is not tuple or math.prod(shape) > 10_000:
        return np.broadcast_to(array, shape)
    if array.ndim > len(shape):
        raise ValueError
    out = np.empty(shape, array.dtype)
    out[...] = array
    return out


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """`numpy.split`."""
    if axis or not ary.ndim:
        return np.split(ary, indices_or_sections, axis)
    n = len(ary)
    if type(indices_or_sections) is int:
        if indices_or_sections < 1 or n % indices_or_sections:
            raise ValueError
        bounds: Any = range(0, n + 1, n // indices_or_sections)
    else:
        bounds = [0, *indices_or_sections, n]
    return [ary[i:j] for i, j in itertools.pairwise(bounds)]


def take(a: Any, indices: Any, axis: Any = None) -> Any:
    """`numpy.take`."""
    if type(indices) in (bool, float, complex):  # NumPy truncates floats
        raise TypeError
    return a.take(indices, axis)


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """`numpy.repeat`."""
    if type(repeats) is float:  # NumPy truncates it
        raise TypeError
    return a.repeat(repeats, axis)


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """`numpy.take_along_axis`."""
    if arr.ndim == indices.ndim == 1 and axis in (0, -1):
        return arr.take(indices)
    return np.take_along_axis(arr, indices, axis)


def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """`numpy.diff`."""
    if type(n) is not int or n != 1 or type(a) is not np.ndarray or a.ndim != 1 or axis not in (0, -1):
        return np.diff(a, n, axis)
    return a[1:] != a[:-1] if a.dtype.char == "?" else a[1:] - a[:-1]


def tril(m: Any, k: int = 0) -> Any:
    """`numpy.tril` of matrices."""
    return np.where(_lower(m.shape, k), m, m.dtype.type(0))


def triu(m: Any, k: int = 0) -> Any:
    """`numpy.triu` of matrices."""
    return np.where(_lower(m.shape, k - 1), m.dtype.type(0), m)


def _lower(shape: tuple[int, ...], k: Any) -> Any:
    if type(k) is not int:
        raise TypeError
    rows, columns = shape[-2:]
    if rows * columns > 10_000:
        return np.tri(rows, columns, k, bool)
    return np.greater_equal.outer(np.arange(k, rows + k), np.arange(columns))


def pad(array: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
    """`numpy.pad`."""
    if mode != "constant" or type(pad_width) is not int or kwargs:
        if mode == "empty" or "stat_length" in kwargs or "reflect_type" in kwargs:  # NumPy doesn't check them
            raise ValueError
        return np.pad(array, pad_width, mode, **kwargs)  # type: ignore[call-overload]
    if pad_width < 0:
        raise ValueError
    if array.ndim == 1:
        margin = np.zeros(pad_width, array.dtype)
        return np.concatenate((margin, array, margin))
    out = np.zeros([n + 2 * pad_width for n in array.shape], array.dtype)
    out[tuple([slice(pad_width, pad_width + n) for n in array.shape])] = array
    return out


def linspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, axis: int = 0) -> Any:
    """`numpy.linspace` between numbers."""
    if not ({type(start), type(stop)} <= _NUMBERS and type(num) is int and num > 1 and not retstep and axis == 0):
        host: Any = np.linspace
        return host(start, stop, num, endpoint, retstep, axis=axis)
    step = (float(stop) - float(start)) / (num - 1 if endpoint else num)
    if not step:  # so small that it underflows, or none
        return np.linspace(start, stop, num, endpoint)
    out = np.arange(0.0, num)
    out *= step
    out += start
    if endpoint:
        out[-1] = stop
    return out


_NUMBERS = frozenset([int, float])

# ---- Sums and products ---------------------------------------------------------------------------------------


def median(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """`numpy.median` of floats and int64."""
    if type(a) is not np.ndarray or keepdims or (axis is not None and type(axis) is not int):
        return np.median(a, axis, keepdims=keepdims)
    lines = a.ravel() if axis is None else moveaxis(a, axis, -1)
    n = lines.shape[-1]
    parted = np.partition(lines, (n // 2 - 1, n // 2, n - 1))
    if lines.ndim == 1:  # Python's numbers are the fastest
        lower, upper, largest = (float(parted[i]) for i in (n // 2 - 1, n // 2, -1))
        return np.float64(largest if largest != largest else upper if n % 2 else (lower + upper) / 2)
    last, high = parted[..., -1], parted[..., n // 2]
    middle = high / 1 if n % 2 else np.add(parted[..., n // 2 - 1], high, dtype=float) / 2
    missing = np.isnan(last)  # they come last
    if missing.any():
        middle = np.where(missing, np.nan, middle)
    return middle


def kron(a: Any, b: Any) -> Any:
    """`numpy.kron`."""
    n = max(a.ndim, b.ndim)
    rows, columns = (1,) * (n - a.ndim) + a.shape, (1,) * (n - b.ndim) + b.shape
    left, right = [1] * (2 * n), [1] * (2 * n)
    left[::2], right[1::2] = rows, columns
    return (a.reshape(left) * b.reshape(right)).reshape([i * j for i, j in zip(rows, columns, strict=True)])


def outer(a: Any, b: Any) -> Any:
    """`numpy.outer`."""
    return a.reshape((-1, 1)) * b.ravel()


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """`numpy.tensordot`."""
    if type(axes) is not int:
        return np.tensordot(a, b, axes)
    rows = a.ndim - axes
    if axes < 0 or rows < 0 or a.shape[rows:] != b.shape[:axes]:
        raise ValueError
    n = 1
    for length in b.shape[:axes]:
        n *= length
    return np.dot(a.reshape((-1, n)), b.reshape((n, -1))).reshape(a.shape[:rows] + b.shape[axes:])


def polyval(p: Any, x: Any) -> Any:
    """`numpy.polyval`, by Horner's rule."""
    if p.ndim != 1 or type(x) is not np.ndarray:
        return np.polyval(p, x)
    first, *rest = p.tolist()
    out = x * 0.0
    out += first
    for coefficient in rest:
        out *= x
        out += coefficient
    return out


_BLOCK = 128


def hermitian_part(a: Any) -> Any:
    """``(a + a^H) / 2``; of large matrices at least the lower triangle, which is the one that NumPy reads."""
    if a.shape[-1] != a.shape[-2]:
        raise ValueError
    other = (a.conj() if a.dtype.kind == "c" else a).swapaxes(-1, -2)
    n = a.shape[-1]
    if n <= 2 * _BLOCK:
        out = a + other
        out *= 0.5
        return out
    out = np.empty(a.shape, a.dtype)
    for i in range(0, n, _BLOCK):
        rows = (..., slice(i, i + _BLOCK), slice(i + _BLOCK))
        part = np.add(a[rows], other[rows], out=out[rows])
        part *= 0.5
    return out
