"""Choosing and replacing by index or mask, and packing of bits.

Functions that change their argument in NumPy return a changed copy here, and ask for ``inplace=False``.

May import: the other modules of `xform.numpy`.
"""

import operator
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.comparison import select_n_p
from xform.lax.conversion import convert
from xform.lax.shapes import broadcasted_iota
from xform.lax.slicing import pad_p, slice_in_dim
from xform.numpy import manipulation, reductions
from xform.numpy.elementwise import where
from xform.numpy.fast import ANY, several, short_way
from xform.numpy.promotion import (
    array_of,
    arrays_of,
    canonical_axis,
    cast_all,
    is_concrete,
    no_out,
    promote,
    shown,
)


def _no_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(f"numpy.{name}: arrays are immutable; pass inplace=False and use the result")


@short_way(np.choose, "lq", several(ANY), plain="mode")
def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """From several arrays, for each element the one that the integers `a` name.

    Differs from NumPy: the mode 'raise' needs known `a`.

    ``mode``: 'raise' (a traced `a` can't be checked: use another), 'wrap' or 'clip'.
    """
    no_out("choose", out)
    a = array_of("choose", a)
    if dtypes.kinds[a.dtype] not in "iub":
        raise TypeError(f"numpy.choose: a, {shown(a)}, can't be cast to integers according to the rule 'safe'")
    arrays = arrays_of("choose", choices, "choices")
    n = len(arrays)
    if not n:
        raise ValueError("numpy.choose: there must be at least one choice")
    index = convert(a, np.dtype("int32"))
    match mode:
        case "raise":
            if not is_concrete(a):
                raise ValueError("numpy.choose: a is traced, so it can't be checked: give mode='clip' or mode='wrap'")
            values = np.asarray(a)
            wrong = values[(values < 0) | (values >= n)]
            if wrong.size:
                raise ValueError(f"numpy.choose: invalid entry in choice array: {wrong.flat[0]}, of {n} choices")
        case "wrap":
            index = index % n
        case "clip":
            index = index.clip(0, n - 1)
        case _:
            raise ValueError(f"numpy.choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    index, *arrays = manipulation.broadcast_arrays(index, *promote("choose", *arrays))
    return arrays[0] if n == 1 else select_n_p.bind(index, *arrays)


@api_boundary
def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """A copy where the elements under the mask are replaced by the values in their order, repeated as needed.

    Differs from NumPy: returns a changed copy, which `inplace=False` asks for.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.place(xnp.arange(4), xnp.array([True, False, True, True]), xnp.array([7, 8]), inplace=False).tolist()
    [7, 1, 8, 7]
    """
    _no_inplace("place", inplace)
    arr, mask, vals = array_of("place", arr, "arr"), array_of("place", mask, "mask"), array_of("place", vals, "vals")
    if mask.size != arr.size:
        raise ValueError(f"numpy.place: mask must have as many elements as arr, got {shown(mask)} and {shown(arr)}")
    vals = manipulation.ravel(vals)
    if not vals.size:
        if not arr.size:
            return arr
        raise ValueError(f"numpy.place: cannot insert from an empty array, into {shown(arr)}")
    mask = manipulation.reshape(mask if mask.dtype == bool else mask != 0, arr.shape)
    rank = manipulation.ravel(mask).astype(dtypes.default_int()).cumsum() - 1
    chosen = manipulation.reshape(convert(vals[rank % vals.size], arr.dtype), arr.shape)
    return where(mask, chosen, arr)


@api_boundary
def putmask(a: Any, mask: Any, values: Any, *, inplace: bool = True) -> Array:
    """A copy where elements under the mask are replaced by the values at the same places in a row, repeated as needed.

    Differs from NumPy: returns a changed copy, which `inplace=False` asks for.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.putmask(xnp.arange(4), xnp.array([True, False, True, True]), xnp.array([7, 8]), inplace=False).tolist()
    [7, 1, 7, 8]
    """
    _no_inplace("putmask", inplace)
    a, mask = array_of("putmask", a), array_of("putmask", mask, "mask")
    values = manipulation.ravel(array_of("putmask", values, "values"))
    if mask.shape != a.shape:
        raise ValueError(f"numpy.putmask: mask must have the shape of a, got {shown(mask)} and {shown(a)}")
    if not values.size:
        return a
    return where(mask if mask.dtype == bool else mask != 0, manipulation.resize(convert(values, a.dtype), a.shape), a)


@api_boundary
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True, *, inplace: bool = True) -> Array:
    """A copy of `dst` with the elements of `src`, broadcast, where the condition holds.

    Differs from NumPy: returns a changed copy, which `inplace=False` asks for.
    """
    _no_inplace("copyto", inplace)
    dst, src = array_of("copyto", dst, "dst"), array_of("copyto", src, "src")
    (src,) = cast_all("copyto", [src], dst.dtype, casting)
    src, mask = manipulation.broadcast_to(src, dst.shape), array_of("copyto", where, "where")
    return select_n_p.bind(manipulation.broadcast_to(mask if mask.dtype == bool else mask != 0, dst.shape), dst, src)


@api_boundary
def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Array:
    """A copy where the elements at places `ind`, counted in a row, are replaced by values, repeated as needed.

    Differs from NumPy: returns a changed copy, which `inplace=False` asks for; traced indices are not checked.

    ``mode``: None (IndexError for known indices out of bounds, traced ones are left out), 'clip' or 'wrap'.
    """
    _no_inplace("put", inplace)
    a, ind, v = (
        array_of("put", a),
        manipulation.ravel(array_of("put", ind, "ind")),
        manipulation.ravel(array_of("put", v, "v")),
    )
    if not ind.size or not v.size:
        return a
    if dtypes.kinds[ind.dtype] not in "biu":
        raise TypeError(f"numpy.put: ind, {shown(ind)}, can't be cast to integers according to the rule 'safe'")
    if mode not in (None, "clip", "wrap", "raise"):
        raise ValueError(f"numpy.put: mode must be None, 'raise', 'clip' or 'wrap', got {mode!r}")
    if mode == "wrap":
        ind = ind % a.size
    elif mode == "clip":
        ind = ind.clip(0, a.size - 1)
    values = manipulation.resize(v, (ind.size,)) if v.size < ind.size else v[: ind.size]
    return manipulation.reshape(manipulation.ravel(a).at[ind].set(convert(values, a.dtype)), a.shape)


@api_boundary
def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: str | None = None
) -> Array:
    """A copy where values are put along an axis at the indices that `take_along_axis` would read.

    Differs from NumPy: returns a changed copy, which `inplace=False` asks for.
    """
    _no_inplace("put_along_axis", inplace)
    arr, indices = array_of("put_along_axis", arr, "arr"), array_of("put_along_axis", indices, "indices")
    shape = arr.shape
    if axis is None:
        arr, axis = manipulation.ravel(arr), 0
    axis = canonical_axis("put_along_axis", axis, arr)
    if indices.ndim != arr.ndim:
        raise ValueError(
            f"numpy.put_along_axis: indices and arr must have the same number of dimensions, got {shown(indices)} and "
            f"{shown(arr)}"
        )
    if dtypes.kinds[indices.dtype] not in "iu":
        raise IndexError(f"numpy.put_along_axis: indices must be an integer array, got {shown(indices)}")
    target = tuple(m if d == axis else n for d, (n, m) in enumerate(zip(arr.shape, indices.shape, strict=True)))
    indices = manipulation.broadcast_to(indices, target)
    index = tuple(indices if d == axis else broadcasted_iota(indices.dtype, target, d) for d in range(arr.ndim))
    values = convert(array_of("put_along_axis", values, "values"), arr.dtype)
    return manipulation.reshape(arr.at[index].set(values, mode=mode), shape)


# ---- Bits --------------------------------------------------------------------------------------------------


def _bit_weights(bitorder: str) -> np.ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError(f"bitorder must be 'big' or 'little', got {bitorder!r}")
    weights = 1 << np.arange(8)
    return (weights[::-1] if bitorder == "big" else weights).astype(np.uint8)


@short_way(np.packbits, "?B", plain="axis bitorder")
def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight booleans (or integers that are zero or not) along an axis in each byte, with zeros at the end."""
    a = array_of("packbits", a)
    if dtypes.kinds[a.dtype] not in "biu":
        raise TypeError(f"numpy.packbits: expected an input array of integer or boolean data type, got {shown(a)}")
    if axis is None:
        a, axis = manipulation.ravel(a), 0
    a = manipulation.moveaxis(a, canonical_axis("packbits", axis, a), -1)
    bits = convert(a if a.dtype == bool else a != 0, np.dtype("uint8"))
    missing = -bits.shape[-1] % 8
    if missing:
        bits = pad_p.bind(bits, np.uint8(0), padding_config=(*(((0, 0, 0),) * (bits.ndim - 1)), (0, missing, 0)))
    bits = manipulation.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    return manipulation.moveaxis(reductions.sum(bits * _bit_weights(bitorder), -1, dtype=np.uint8), -1, axis)


@short_way(np.unpackbits, "B", plain="axis count bitorder")
def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes along an axis, `count` of them (negative: all but so many; more than there are: zeros)."""
    a = array_of("unpackbits", a)
    if a.dtype != np.uint8:
        raise TypeError(f"numpy.unpackbits: expected an input array of unsigned byte data type, got {shown(a)}")
    if axis is None:
        a, axis = manipulation.ravel(a), 0
    a = manipulation.moveaxis(a, canonical_axis("unpackbits", axis, a), -1)
    bits = convert((manipulation.expand_dims(a, -1) & _bit_weights(bitorder)) != 0, np.dtype("uint8"))
    bits = manipulation.reshape(bits, (*a.shape[:-1], a.shape[-1] * 8))
    n = bits.shape[-1]
    if count is not None:
        count = operator.index(count)
        wanted = n + count if count < 0 else count
        if wanted < 0:
            raise ValueError(f"numpy.unpackbits: -count larger than number of elements, {n}, got {count}")
        bits = slice_in_dim(bits, 0, min(wanted, n), axis=bits.ndim - 1)
        if wanted > n:
            bits = pad_p.bind(bits, np.uint8(0), padding_config=(*(((0, 0, 0),) * (bits.ndim - 1)), (0, wanted - n, 0)))
    return manipulation.moveaxis(bits, -1, axis)
