"""Other shapes and orders of the same elements: reshape, transpose, broadcast, flip, roll, split.

May import: `numpy.promotion`, `xform.lax`, `xform.core`.
"""

import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary, filtered_traceback
from xform.core.trace import Tracer
from xform.lax.dynamic_slicing import dynamic_slice_in_dim
from xform.lax.roll import roll_p
from xform.lax.shapes import broadcast_in_dim_p, reshape_p, rev_p, squeeze_p, transpose_p
from xform.lax.slicing import concatenate_p, slice_in_dim
from xform.lax.split import split_p
from xform.numpy import host_forms, keys
from xform.numpy.fast import ANY, short_way
from xform.numpy.promotion import (
    ShapeError,
    array_of,
    axis_or_none,
    broadcast_shapes_of,
    canonical_axes,
    canonical_axis,
    concrete,
    expand_to,
    is_concrete,
    is_several,
    known_integer,
    shape_argument,
    shown,
)

Shape = tuple[int, ...]


def _no_sharding(name: str, out_sharding: Any) -> None:
    if out_sharding is not None:
        raise NotImplementedError(f"numpy.{name}: out_sharding is not supported yet")


# ---- Shape -------------------------------------------------------------------------------------------------


def shape(a: Any) -> Shape:
    """Lengths of the axes."""
    found = getattr(a, "shape", None)
    return found if isinstance(found, tuple) else array_of("shape", a).shape


def ndim(a: Any) -> int:
    """Number of axes."""
    return len(shape(a))


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """Number of elements, in all or along axes."""
    lengths = shape(a)
    return math.prod(lengths[d] for d in canonical_axes("size", axis, len(lengths)))


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Array:
    """The same elements in another shape; one length may be -1, and follows from the others.

    ``order="F"`` counts the first index fastest, in both shapes.
    """
    if type(a) is ArrayImpl and state.fast and order == "C" and out_sharding is None and not a._weak:
        h = a._host
        if h is not None:
            try:
                return ArrayImpl(h.reshape(shape))
            except (TypeError, ValueError):
                pass  # for the message
    try:
        _no_sharding("reshape", out_sharding)
        return _reshape(array_of("reshape", a), shape, order)
    except Exception as error:
        if not keys.among(a):
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise
    return keys.mapped(reshape, a, shape, order)


def _reshape(a: Array, shape: Any, order: str) -> Array:
    known = type(shape) is tuple and order == "C" and all(type(n) is int and n >= 0 for n in shape)
    if known and math.prod(shape) == a.size:
        return _to_shape(a, shape)
    lengths = tuple(shape) if is_several(shape) else (shape,)
    unknown = [d for d, n in enumerate(lengths) if not isinstance(n, Tracer) and n == -1]
    given = shape_argument("reshape", [n for d, n in enumerate(lengths) if d not in unknown])
    product = math.prod(given)
    if len(unknown) > 1 or (unknown and (product == 0 or a.size % product)) or (not unknown and product != a.size):
        if len(unknown) > 1:
            raise ShapeError(f"numpy.reshape: can only specify one unknown dimension, got {lengths} for {shown(a)}")
        raise ShapeError(f"numpy.reshape: cannot reshape array of size {a.size} into shape {lengths}, got {shown(a)}")
    new = list(given)
    if unknown:
        new.insert(unknown[0], a.size // product)
    if order == "F":
        return transpose(_to_shape(transpose(a), tuple(reversed(new))))
    if order not in ("C", "A"):
        raise ValueError(f"numpy.reshape: order must be one of 'C', 'F' or 'A', got {order!r}")
    return _to_shape(a, tuple(new))


def _to_shape(a: Array, new: Shape) -> Array:
    return a if a.shape == new else reshape_p.bind(a, new_sizes=new)


@short_way(lambda a: a.ravel(), ANY)
def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements in one axis."""
    _no_sharding("ravel", out_sharding)
    if order == "K":
        order = "C"
    return _reshape(array_of("ravel", a), -1 if array_of("ravel", a).size else 0, order)


@api_boundary
def resize(a: Any, new_shape: Any) -> Array:
    """The elements in another shape, repeated or cut to its size."""
    a, new = array_of("resize", a), shape_argument("resize", new_shape, "new_shape")
    n, wanted = a.size, math.prod(new)
    flat = _to_shape(a, (n,))
    if not n:
        from xform.lax.shapes import full

        return full(new, 0, a.dtype)
    repeats = -(-wanted // n)
    if repeats > 1:
        flat = concatenate_p.bind(*[flat] * repeats, dimension=0)
    return _to_shape(slice_in_dim(flat, 0, wanted), new)


@short_way(lambda a, axis=None: a.squeeze(axis), ANY, plain="axis")
def squeeze(a: Any, axis: Any = None) -> Array:
    """Without axes of length 1: all, or those given, which must have it."""
    a = array_of("squeeze", a)
    axis = axis_or_none(axis, a)
    axes = [d for d, n in enumerate(a.shape) if n == 1] if axis is None else canonical_axes("squeeze", axis, a)
    if any(a.shape[d] != 1 for d in axes):
        raise ValueError(
            "numpy.squeeze: cannot select an axis to squeeze out which has size not equal to one, got "
            f"axis={axis} for {shown(a)}"
        )
    return squeeze_p.bind(a, dimensions=tuple(sorted(axes))) if axes else a


@short_way(host_forms.expand_dims, ANY, plain="axis")
def expand_dims(a: Any, axis: Any) -> Array:
    """With new axes of length 1, which stand at `axis` of the result."""
    a = array_of("expand_dims", a)
    axes = axis if isinstance(axis, Sequence) else (axis,)
    n = a.ndim + len(axes)
    new = canonical_axes("expand_dims", tuple(axes), n)
    lengths = iter(a.shape)
    dims = tuple(d for d in range(n) if d not in new)
    full = tuple(1 if d in new else next(lengths) for d in range(n))
    return broadcast_in_dim_p.bind(a, shape=full, broadcast_dimensions=dims) if new else a


def _at_least(name: str, n: int, place: Any) -> Any:
    @short_way(getattr(np, name), ANY)
    def function(*arys: Any) -> Any:
        """At least so many axes."""
        arrays = arys[0] if len(arys) == 1 and isinstance(arys[0], list | tuple) else arys
        out = [_to_shape(a, place(a.shape)) if a.ndim < n else a for a in (array_of(name, x, "arys") for x in arrays)]
        return out[0] if len(arys) == 1 and len(out) == 1 and arrays is arys else tuple(out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Arrays with at least {n} axes, as in NumPy; one array for one argument, else a tuple."
    return function


atleast_1d = _at_least("atleast_1d", 1, lambda s: (1,))
atleast_2d = _at_least("atleast_2d", 2, lambda s: (1, *s) if s else (1, 1))
atleast_3d = _at_least("atleast_3d", 3, lambda s: (*s, 1) if len(s) == 2 else (1, *(s or (1,)), 1))

# ---- Order of the axes -------------------------------------------------------------------------------------


@short_way(lambda a, axes=None: a.transpose(axes), ANY, plain="axes")
def transpose(a: Any, axes: Any = None) -> Array:
    """The axes in another order: axis i of the result is axis ``axes[i]``; None: reversed."""
    a = array_of("transpose", a)
    if axes is None:
        order = tuple(range(a.ndim))[::-1]
    else:
        order = canonical_axes("transpose", axes, a, "axes")
        if len(order) != a.ndim:
            raise ValueError(f"numpy.transpose: axes don't match array, got axes={axes} for {shown(a)}")
    return a if order == tuple(range(a.ndim)) else transpose_p.bind(a, permutation=order)


permute_dims = transpose


@api_boundary
def matrix_transpose(x: Any, /) -> Array:
    """The last two axes exchanged."""
    x = array_of("matrix_transpose", x, "x")
    if x.ndim < 2:
        raise ValueError(f"numpy.matrix_transpose: input array must be at least 2-dimensional, got {shown(x)}")
    return swapaxes(x, -1, -2)


@short_way(lambda a, axis1, axis2: a.swapaxes(axis1, axis2), ANY, plain="axis1 axis2")
def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Two axes exchanged."""
    a = array_of("swapaxes", a)
    i, j = (canonical_axis("swapaxes", x, a, f"axis{k + 1}") for k, x in enumerate((axis1, axis2)))
    order = list(range(a.ndim))
    order[i], order[j] = order[j], order[i]
    return a if i == j else transpose_p.bind(a, permutation=tuple(order))


@short_way(host_forms.moveaxis, ANY, plain="source destination")
def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Axes moved to other places; the rest keeps its order."""
    a = array_of("moveaxis", a)
    sources = canonical_axes("moveaxis", source, a, "source")
    targets = canonical_axes("moveaxis", destination, a, "destination")
    if len(sources) != len(targets):
        raise ValueError(
            "numpy.moveaxis: source and destination arguments must have the same number of elements, got "
            f"{source} and {destination}"
        )
    order = [d for d in range(a.ndim) if d not in sources]
    for target, source_axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source_axis)
    return a if order == list(range(a.ndim)) else transpose_p.bind(a, permutation=tuple(order))


@short_way(np.rollaxis, ANY, plain="axis start")
def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """An axis moved before the one at `start`."""
    a = array_of("rollaxis", a)
    axis = canonical_axis("rollaxis", axis, a)
    start = start + a.ndim if -a.ndim <= start < 0 else canonical_axis("rollaxis", start, a.ndim + 1, "start")
    return moveaxis(a, axis, start - (axis < start))


# ---- Order of the elements ---------------------------------------------------------------------------------


@short_way(np.flip, ANY, plain="axis")
def flip(m: Any, axis: Any = None) -> Array:
    """Elements in reverse order along axes (all by default)."""
    m = array_of("flip", m, "m")
    axes = canonical_axes("flip", axis, m)
    return rev_p.bind(m, dimensions=tuple(sorted(axes))) if axes else m


def _of_rank(name: str, m: Any, least: int) -> Array:
    m = array_of(name, m, "m")
    if m.ndim < least:
        raise ValueError(f"numpy.{name}: input must be >= {least}-d, got {shown(m)}")
    return m


@short_way(np.fliplr, ANY)
def fliplr(m: Any) -> Array:
    """Reversed along the second axis."""
    return flip(_of_rank("fliplr", m, 2), 1)


@short_way(np.flipud, ANY)
def flipud(m: Any) -> Array:
    """Reversed along the first axis."""
    return flip(_of_rank("flipud", m, 1), 0)


@short_way(np.rot90, ANY, plain="k axes")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Array:
    """Rotated k times by 90 degrees, from the first towards the second axis."""
    m = array_of("rot90", m, "m")
    if len(axes) != 2:
        raise ValueError(f"numpy.rot90: len(axes) must be 2, got axes={tuple(axes)}")
    first, second = canonical_axes("rot90", tuple(axes), m, "axes")
    match operator.index(k) % 4:
        case 0:
            return m
        case 1:
            return swapaxes(flip(m, second), first, second)
        case 2:
            return flip(m, (first, second))
        case _:
            return flip(swapaxes(m, first, second), second)


@short_way(host_forms.roll, ANY, plain="shift axis")
def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Elements moved along axes; those that leave at the end come back at the beginning. The shift may be traced.

    Differs from NumPy: a shift that isn't an integer is a TypeError; arrays of rank 0 take ``axis=()``, too.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> xform.jit(xnp.roll)(xnp.arange(4), 1).tolist()
    [3, 0, 1, 2]
    """
    a = array_of("roll", a)
    if axis is None:
        return _to_shape(roll(_to_shape(a, (a.size,)), shift, 0), a.shape)
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    shifts: Any = shift if is_several(shift) else (shift,)
    if len(shifts) != len(axes):
        if 1 not in (len(shifts), len(axes)):
            raise ValueError(f"numpy.roll: 'shift' and 'axis' should broadcast together, got {shift} and {axis}")
        shifts, axes = [s for s in shifts for _ in axes], [d for _ in shifts for d in axes]  # type: ignore[assignment]
    for s, d in zip(shifts, axes, strict=True):
        d = canonical_axis("roll", d, a)
        if is_several(s):
            raise ValueError(
                f"numpy.roll: 'shift' and 'axis' should be scalars or 1D sequences, got {shift} and {axis}"
            )
        n = a.shape[d]
        if n == 0:
            continue
        if is_concrete(s):
            s = known_integer("roll", "shift", s) % n
            a = roll_p.bind(a, shift=s, dimension=d) if s else a
        else:
            a = dynamic_slice_in_dim(concatenate_p.bind(a, a, dimension=d), -s % n, n, d)
    return a


# ---- Broadcasting ------------------------------------------------------------------------------------------


@short_way(host_forms.broadcast_to, ANY, plain="shape")
def broadcast_to(array: Any, shape: Any, subok: bool = False, *, out_sharding: Any = None) -> Array:
    """The array repeated to a shape, by NumPy's broadcasting."""
    _no_sharding("broadcast_to", out_sharding)
    array, new = array_of("broadcast_to", array, "array"), shape_argument("broadcast_to", shape)
    old = array.shape
    if len(old) > len(new) or any(n not in (1, m) for n, m in zip(old[::-1], new[::-1])):
        raise ShapeError(f"numpy.broadcast_to: {shown(array)} can't be broadcast to shape {new}")
    return expand_to(array, new)


@api_boundary
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[Array, ...]:
    """All arrays broadcast to one shape."""
    arrays = [array_of("broadcast_arrays", x, f"{i + 1}") for i, x in enumerate(args)]
    if not arrays:
        return ()
    new = broadcast_shapes_of("broadcast_arrays", [a.shape for a in arrays], arrays)
    return tuple(expand_to(a, new) for a in arrays)


@api_boundary
def broadcast_shapes(*shapes: Any) -> Shape:
    """The shape to which all broadcast."""
    return (
        broadcast_shapes_of("broadcast_shapes", [shape_argument("broadcast_shapes", s) for s in shapes])
        if shapes
        else ()
    )


# ---- Splitting ---------------------------------------------------------------------------------------------


def _split(name: str, ary: Any, indices_or_sections: Any, axis: int, equal: bool) -> list[Array]:
    ary = array_of(name, ary, "ary")
    axis = canonical_axis(name, axis, ary)
    n = ary.shape[axis]
    if is_several(indices_or_sections):
        cuts = [known_integer(name, "indices_or_sections", i) for i in indices_or_sections]
        bounds = [0, *(min(max(i + n if i < 0 else i, 0), n) for i in cuts), n]
    else:
        sections = known_integer(name, "indices_or_sections", indices_or_sections)
        if sections <= 0:
            raise ValueError(f"numpy.{name}: number sections must be larger than 0, got {sections}")
        if equal and n % sections:
            raise ValueError(
                f"numpy.{name}: array split does not result in an equal division, got {sections} sections of "
                f"axis {axis} of {shown(ary)}"
            )
        small, more = divmod(n, sections)
        bounds = [0]
        for i in range(sections):
            bounds.append(bounds[-1] + small + (i < more))
    if len(bounds) > 2 and bounds == sorted(bounds):
        return split_p.bind(ary, sizes=tuple(b - a for a, b in itertools.pairwise(bounds)), axis=axis)
    return [slice_in_dim(ary, a, max(a, b), axis=axis) for a, b in itertools.pairwise(bounds)]


@short_way(host_forms.split, ANY, plain="indices_or_sections axis")
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts along an axis: so many of equal length, or between indices.

    Differs from NumPy: numbers of sections that aren't integers are a TypeError.
    """
    return _split("split", ary, indices_or_sections, axis, True)


@short_way(np.array_split, ANY, plain="indices_or_sections axis")
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts along an axis, like `split`, of which the first may be longer by one.

    Differs from NumPy: numbers of sections that aren't integers are a TypeError.
    """
    return _split("array_split", ary, indices_or_sections, axis, False)


def _split_of_rank(name: str, ary: Any, indices_or_sections: Any, axis: int, least: int) -> list[Array]:
    ary = array_of(name, ary, "ary")
    if ary.ndim < least:
        raise ValueError(f"numpy.{name} only works on arrays of {least} or more dimensions, got {shown(ary)}")
    return _split(name, ary, indices_or_sections, axis, True)


@short_way(np.vsplit, ANY, plain="indices_or_sections")
def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Parts along the first axis."""
    return _split_of_rank("vsplit", ary, indices_or_sections, 0, 2)


@short_way(np.hsplit, ANY, plain="indices_or_sections")
def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Parts along the second axis (the first, if there is only one)."""
    return _split_of_rank("hsplit", ary, indices_or_sections, 0 if ndim(ary) == 1 else 1, 1)


@api_boundary
def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Parts along the third axis."""
    return _split_of_rank("dsplit", ary, indices_or_sections, 2, 3)


@api_boundary
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis."""
    x = array_of("unstack", x, "x")
    if not x.ndim:
        raise ValueError(f"numpy.unstack: input array must be at least 1-d, got {shown(x)}")
    axis = canonical_axis("unstack", axis, x)
    return tuple(squeeze_p.bind(slice_in_dim(x, i, i + 1, axis=axis), dimensions=(axis,)) for i in range(x.shape[axis]))


@api_boundary
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Array:
    """Without the zeros at the front ('f' in `trim`) and the back ('b'); the values must be known when tracing.

    Differs from NumPy: under a transformation the values must be known.
    """
    value = concrete("trim_zeros", array_of("trim_zeros", filt, "filt"), "filt", "The result's shape depends on it.")
    if not set(trim.lower()) <= set("fb"):
        raise ValueError(f"numpy.trim_zeros: unexpected character(s) in trim: {trim!r}")
    host: Any = np.trim_zeros
    return array_of("trim_zeros", host(value, trim) if axis is None else host(value, trim, axis))
