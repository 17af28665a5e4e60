"""Looking up: places of nonzero elements, of values in sorted arrays, counts of values.

Where the shape of a result depends on values, these must be known, or the size given: see `nonzero`.

May import: `numpy.promotion`, `numpy.manipulation`, `numpy.elementwise`, `xform.lax`.
"""

import math
import operator
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.lax.control_flow import fori_loop
from xform.lax.conversion import convert
from xform.lax.shapes import broadcasted_iota
from xform.lax.shapes import full as lax_full
from xform.lax.sorting import sort_p
from xform.numpy import manipulation, reductions, ufuncs
from xform.numpy.elementwise import where
from xform.numpy.fast import ANY, REAL, optional, same, short_way
from xform.numpy.promotion import array_of, canonical_axis, concrete, is_concrete, no_out, promote, shown, strong

# ---- Places of elements ------------------------------------------------------------------------------------

_SIZE = "The size of the result depends on its values: give size= (and fill_value=)."


def places(name: str, mask: Array, size: int | None, fill: Any = 0) -> Array:
    """The places where a vector of booleans holds, `size` of them; what is missing is `fill`."""
    n = mask.shape[0]
    if size is None:
        return ArrayImpl(np.flatnonzero(concrete(name, mask, "a", _SIZE)).astype(dtypes.default_int(), copy=False))
    size = operator.index(size)
    index = dtypes.default_int()
    if not size:
        return lax_full((0,), 0, index)
    target = where(mask, convert(mask, index).cumsum() - 1, size)
    out = lax_full((size,), 0, index) + convert(array_of(name, fill, "fill_value"), index)
    return out.at[target].set(broadcasted_iota(index, (n,), 0), mode="drop")


def _truth(a: Array) -> Array:
    return convert(a, np.dtype(bool))


@short_way(lambda a: a.nonzero(), ANY)
def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the elements that aren't zero, one array per axis.

    Parameters
    ----------
    size : int, optional
        How many to return, which is needed where `a` is traced; surplus ones are cut off.
    fill_value : int or one per axis, optional
        What takes the place of missing ones; by default 0.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.nonzero(xnp.array([0, 3, 0, 5]))
    (Array([1, 3], dtype=int64),)
    >>> xnp.nonzero(xnp.array([0, 3, 0, 5]), size=3, fill_value=-1)
    (Array([ 1,  3, -1], dtype=int64),)
    """
    a = array_of("nonzero", a)
    if not a.ndim:
        raise ValueError(f"numpy.nonzero: calling nonzero on 0d arrays is not allowed, got {shown(a)}; use atleast_1d")
    if size is None:
        found = np.nonzero(concrete("nonzero", a, "a", _SIZE))
        return tuple(ArrayImpl(i.astype(dtypes.default_int(), copy=False)) for i in found)
    fills = fill_value if isinstance(fill_value, tuple) else (0 if fill_value is None else fill_value,) * a.ndim
    if len(fills) != a.ndim:
        raise ValueError(f"numpy.nonzero: fill_value must be one number, or {a.ndim}, got {fill_value}")
    flat = places("nonzero", manipulation.ravel(_truth(a)), size, -1)
    out = []
    for d, fill in enumerate(fills):
        stride = math.prod(a.shape[d + 1 :])
        index = flat // max(stride, 1) % max(a.shape[d], 1)
        out.append(where(flat < 0, convert(array_of("nonzero", fill), flat.dtype), index))
    return tuple(out)


@short_way(np.flatnonzero, ANY)
def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The places of the elements that aren't zero, counted in a row; `size` and `fill_value` as for `nonzero`."""
    return nonzero(manipulation.ravel(a), size=size, fill_value=fill_value)[0]


@short_way(np.argwhere, ANY)
def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the elements that aren't zero, one row each; `size` and `fill_value` as for `nonzero`."""
    from xform.numpy.joining import stack

    a = array_of("argwhere", a)
    if not a.ndim:
        count = size if size is not None else int(concrete("argwhere", a != 0, "a", _SIZE))
        return lax_full((count, 0), 0, dtypes.default_int())
    return stack(nonzero(a, size=size, fill_value=fill_value), 1)


@short_way(np.extract, "?", ANY)
def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Array:
    """The elements where the condition holds, in a row; `size` and `fill_value` as for `nonzero`."""
    return compress(manipulation.ravel(condition), manipulation.ravel(arr), size=size, fill_value=fill_value)


@short_way(np.compress, "?", ANY, plain="axis")
def compress(
    condition: Any, a: Any, axis: int | None = None, out: None = None, *, size: int | None = None, fill_value: Any = 0
) -> Array:
    """The slices along an axis where a vector of booleans holds; `size` as for `nonzero`, filled with `fill_value`.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.compress(xnp.array([True, False, True]), xnp.array([1, 2, 3]), size=3, fill_value=9).tolist()
    [1, 3, 9]
    """
    no_out("compress", out)
    a, mask = array_of("compress", a), array_of("compress", condition, "condition")
    if mask.ndim != 1:
        raise ValueError(f"numpy.compress: condition must be a 1-d array, got {shown(mask)}")
    if axis is None:
        a, axis = manipulation.ravel(a), 0
    length = a.shape[canonical_axis("compress", axis, a)]
    if is_concrete(mask) and (beyond := np.flatnonzero(np.asarray(mask)[length:])).size:
        raise IndexError(
            f"numpy.compress: index {length + beyond[0]} is out of bounds for axis {axis} with size {length}, for "
            f"condition {shown(mask)} and a {shown(a)}"
        )
    a = manipulation.moveaxis(a, axis, 0)
    index = places("compress", _truth(mask)[:length], size, length)
    found = a.at[index].get(mode="fill", fill_value=fill_value) if size is not None else a[index]
    return manipulation.moveaxis(found, 0, axis)


# ---- Sorted arrays -----------------------------------------------------------------------------------------


@short_way(lambda a, v, side="left": a.searchsorted(v, side), REAL, same(REAL), plain="side")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Array:
    """Where to insert values into a sorted vector so that it stays sorted.

    Parameters
    ----------
    a : vector, in ascending order
    v : array
    side : 'left' or 'right'
        Before or behind elements equal to the value.
    sorter : vector of ints, optional
        The order in which `a` is sorted.
    method : 'scan', 'scan_unrolled', 'sort' or 'compare_all'
        How it is done where values are traced: a binary search, as a loop or written out; by sorting both
        together; or by comparing all with all, which is the fastest for short `a` on accelerators.
    """
    if side not in ("left", "right"):
        raise ValueError(f"numpy.searchsorted: side must be 'left' or 'right', got {side!r}")
    if method not in _METHODS:
        raise ValueError(f"numpy.searchsorted: method must be one of {', '.join(_METHODS)}, got {method!r}")
    a, v = (strong(array_of("searchsorted", x)) for x in promote("searchsorted", array_of("searchsorted", a), v))
    if a.ndim != 1:
        raise ValueError(f"numpy.searchsorted: a must have one axis, got {shown(a)}")
    if sorter is not None:
        sorter = array_of("searchsorted", sorter, "sorter")
        if dtypes.kinds[sorter.dtype] not in "iu":
            raise TypeError(f"numpy.searchsorted: sorter must only contain integers, got {shown(sorter)}")
        if sorter.shape != a.shape:
            raise ValueError(f"numpy.searchsorted: sorter must be as long as a, got {shown(sorter)} for {shown(a)}")
        a = a[sorter]
    index = dtypes.default_int()
    if state.fast and is_concrete(a, v) and a.dtype.kind != "V":
        host: Any = np.searchsorted
        return ArrayImpl(host(a._value(), v._value(), side).astype(index, copy=False))
    if not a.size:
        return lax_full(v.shape, 0, index)
    return _METHODS[method](a, v, side, index)


def _goes_behind(x: Any, v: Any, side: str) -> Any:
    """Whether the value belongs behind element x; NaN is the largest."""
    if side == "left":
        out = x < v
        return out | (ufuncs.isnan(v) & ~ufuncs.isnan(x)) if dtypes.issubdtype(v.dtype, np.inexact) else out
    out = x <= v
    return out | ufuncs.isnan(v) if dtypes.issubdtype(v.dtype, np.inexact) else out


def _binary_search(unroll: bool) -> Any:
    def search(a: Array, v: Array, side: str, index: np.dtype) -> Array:
        steps = a.size.bit_length()

        def step(_: Any, bounds: Any) -> Any:
            low, high = bounds
            middle = (low + high) >> 1
            element = a.at[middle].get(mode="promise_in_bounds", wrap_negative_indices=False)
            behind = _goes_behind(element, v, side)
            done = low >= high
            return where(behind & ~done, middle + 1, low), where(behind | done, high, middle)

        start = lax_full(v.shape, 0, index), lax_full(v.shape, a.size, index)
        return fori_loop(0, steps, step, start, unroll=steps if unroll else None)[0]

    return search


def _compare_all(a: Array, v: Array, side: str, index: np.dtype) -> Array:
    column = manipulation.reshape(a, (a.size, *(1,) * v.ndim))
    return reductions.sum(_goes_behind(column, v, side), 0, dtype=index)


def _by_sorting(a: Array, v: Array, side: str, index: np.dtype) -> Array:
    from xform.numpy.joining import concatenate

    flat, n = manipulation.ravel(v), a.size
    first, second = (flat, a) if side == "left" else (a, flat)
    m = first.size
    keys = concatenate([first, second])
    _, place = sort_p.bind(keys, broadcasted_iota(index, keys.shape, 0), dimension=0, is_stable=True, num_keys=1)
    is_a = place >= m if side == "left" else place < n
    count = convert(is_a, index).cumsum()
    counts = lax_full(keys.shape, 0, index).at[place].set(count)
    return manipulation.reshape(counts[:m] if side == "left" else counts[n:], v.shape)


_METHODS = {
    "scan": _binary_search(False),
    "scan_unrolled": _binary_search(True),
    "sort": _by_sorting,
    "compare_all": _compare_all,
}


@short_way(np.digitize, "fd", same("fd"), plain="right")
def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Array:
    """The bin of each value: i with ``bins[i-1] <= x < bins[i]``, ``bins[i-1] < x <= bins[i]`` if `right`.

    Differs from NumPy: traced bins can't be an error, and are taken to be in order.

    Bins may descend.
    """
    x, bins = array_of("digitize", x, "x"), array_of("digitize", bins, "bins")
    if bins.ndim != 1:
        raise ValueError(f"numpy.digitize: bins must have one axis, got {shown(bins)}")
    if "c" in (x.dtype.kind, bins.dtype.kind):
        raise TypeError(f"numpy.digitize: x and bins may not be complex, got {shown(x)} and {shown(bins)}")
    n = bins.size
    method = method or "scan"
    if not n:
        return lax_full(x.shape, 0, dtypes.default_int())
    up = searchsorted(bins, x, "left" if right else "right", method=method)
    if is_concrete(bins):
        values = np.asarray(bins)
        if np.all(values[:-1] <= values[1:]):
            return up
        if not np.all(values[:-1] >= values[1:]):
            raise ValueError(f"numpy.digitize: bins must be monotonically increasing or decreasing, got {shown(bins)}")
    down = n - searchsorted(manipulation.flip(bins), x, "left" if right else "right", method=method)
    return where(bins[-1] >= bins[0], up, down)


# ---- Counts ------------------------------------------------------------------------------------------------


@short_way(np.bincount, "bBhHiIlq", optional("d"), plain="minlength")
def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None, out_sharding: Any = None
) -> Array:
    """How often each number 0, 1, ... occurs in a vector of integers, or the sums of their weights.

    Differs from NumPy: sums of weights have the weights' dtype, in NumPy always float64.

    Parameters
    ----------
    minlength : int
        Least length of the result.
    length : int, optional
        Length of the result, needed where `x` is traced; larger numbers, and negative ones, aren't counted.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.bincount(xnp.array([1, 3, 3])).tolist()
    [0, 1, 0, 2]
    """
    if out_sharding is not None:
        raise NotImplementedError("numpy.bincount: out_sharding is not supported yet")
    x = array_of("bincount", x, "x")
    if dtypes.kinds[x.dtype] not in "iub":
        raise TypeError(f"numpy.bincount: x can't be cast to integers according to the rule 'safe', got {shown(x)}")
    if x.ndim != 1:
        raise ValueError(f"numpy.bincount: x must have one axis, got {shown(x)}")
    if operator.index(minlength) < 0:
        raise ValueError(f"numpy.bincount: 'minlength' must not be negative, got {minlength}")
    if length is None:
        values = concrete("bincount", x, "x", "Its largest element decides the length of the result: give length=.")
        if values.size and values.min() < 0:
            raise ValueError(f"numpy.bincount: x must have no negative elements, got {shown(x)}")
        length = max(int(values.max()) + 1 if values.size else 0, operator.index(minlength))
    length = operator.index(length)
    weights = ArrayImpl(dtypes.default_int().type(1)) if weights is None else array_of("bincount", weights, "weights")
    if weights.ndim and weights.shape != x.shape:
        raise ValueError(
            f"numpy.bincount: weights and x don't have the same length, got {shown(weights)} and {shown(x)}"
        )
    if not length:
        return lax_full((0,), 0, weights.dtype)
    counted = convert(x, dtypes.default_int())
    counted = where(counted < 0, length, counted)
    return lax_full((length,), 0, weights.dtype).at[counted].add(weights, mode="drop")


@short_way(np.unravel_index, "bBhHiIlq", plain="shape")
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Array, ...]:
    """Places in a row of all elements as indices along the axes of a shape; traced ones out of bounds are clipped.

    Differs from NumPy: traced indices can't be an error; those out of bounds are clipped.

    ``order``: 'C', the last index varies fastest, or 'F', the first does.
    """
    from xform.numpy.promotion import shape_argument

    if order not in ("C", "F"):
        raise ValueError(f"numpy.unravel_index: order must be 'C' or 'F', got {order!r}")
    indices, shape = array_of("unravel_index", indices, "indices"), shape_argument("unravel_index", shape)
    if dtypes.kinds[indices.dtype] not in "iu":
        raise TypeError(f"numpy.unravel_index: indices must be integers, got {shown(indices)}")
    total = math.prod(shape)
    if is_concrete(indices):
        values = np.asarray(indices)
        wrong = values[(values < 0) | (values >= total)]
        if wrong.size:
            raise ValueError(
                f"numpy.unravel_index: index {wrong.flat[0]} is out of bounds for array with size {total}, of shape "
                f"{shape}"
            )
    flat = convert(indices, dtypes.default_int()).clip(0, max(total - 1, 0))
    out = []
    for n in shape[:: -1 if order == "C" else 1]:
        out.append(flat % n)
        flat = flat // n
    return tuple(out[:: -1 if order == "C" else 1])


@api_boundary
def ravel_multi_index(
    multi_index: Any, dims: Any, mode: str = "raise", order: str = "C", *, dtype: Any = None
) -> Array:
    """Indices along the axes of a shape as places in a row of all elements.

    Differs from NumPy: traced indices can't be an error; 'raise' doesn't check them.

    ``mode``: 'raise' (for known indices; traced ones are not checked), 'wrap' or 'clip'; or one per axis.
    """
    from xform.numpy.promotion import dtype_argument, shape_argument

    shape = shape_argument("ravel_multi_index", dims, "dims")
    index = dtype_argument("ravel_multi_index", dtype) or dtypes.default_int()
    arrays = [array_of("ravel_multi_index", i, "multi_index") for i in multi_index]
    if any(dtypes.kinds[i.dtype] not in "iu" for i in arrays):
        raise TypeError(f"numpy.ravel_multi_index: only int indices permitted, got {', '.join(map(shown, arrays))}")
    arrays = [convert(i, index) for i in arrays]
    modes = mode if isinstance(mode, tuple) else (mode,) * len(shape)
    if len(arrays) != len(shape) or len(modes) != len(shape):
        raise ValueError(f"numpy.ravel_multi_index: needs {len(shape)} index arrays (and modes) for shape {shape}")
    if order not in ("C", "F"):
        raise ValueError(f"numpy.ravel_multi_index: order must be 'C' or 'F', got {order!r}")
    out: Any = ArrayImpl(index.type(0))
    parts = list(zip(arrays, shape, modes, strict=True))
    for i, n, how in parts if order == "C" else parts[::-1]:
        if how == "raise":
            values = np.asarray(i) if is_concrete(i) else np.zeros(0)
            wrong = values[(values < 0) | (values >= n)]
            if wrong.size:
                raise ValueError(
                    f"numpy.ravel_multi_index: invalid entry in coordinates array: index {wrong.flat[0]} for an axis "
                    f"of length {n}"
                )
        elif how == "wrap":
            i = i % n
        elif how == "clip":
            i = i.clip(0, n - 1)
        else:
            raise ValueError(f"numpy.ravel_multi_index: mode must be 'raise', 'wrap' or 'clip', got {how!r}")
        out = out * n + i
    return out
