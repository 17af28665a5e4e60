"""Sorting: whole arrays, orders, parts of them, and the largest elements.

May import: `numpy.fast`, `numpy.promotion`, `numpy.manipulation`, `xform.lax`.
"""

import operator
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import ConcretizationTypeError, api_boundary
from xform.lax.conversion import convert
from xform.lax.shapes import broadcasted_iota, rev_p
from xform.lax.slicing import slice_in_dim
from xform.lax.sorting import ordered, sort_p, stable_order
from xform.numpy import manipulation
from xform.numpy.fast import REAL, several, short_way
from xform.numpy.promotion import (
    array_of,
    arrays_of,
    axis_or_none,
    canonical_axis,
    dtype_argument,
    is_several,
    shown,
    strong,
)


def _check(name: str, kind: Any, order: Any, stable: Any = True) -> None:
    if order is not None:
        raise ValueError(f"numpy.{name}: order is for structured arrays, which don't exist here")
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ValueError(f"numpy.{name}: kind must be 'quicksort', 'heapsort', 'mergesort' or 'stable', got {kind!r}")


def _prepared(name: str, a: Any, axis: Any) -> tuple[Array, int]:
    a = strong(array_of(name, a))
    if axis is None:
        a, axis = manipulation.ravel(a), 0
    return a, canonical_axis(name, axis, a)


def _ordered(a: Array, axis: int, descending: bool, stable: bool = True) -> tuple[Array, Array]:
    """The sorted array and the places where its elements were; equal ones keep their order, descending too."""
    place = broadcasted_iota(dtypes.default_int(), a.shape, axis)
    if descending:
        a, place = rev_p.bind(a, dimensions=(axis,)), rev_p.bind(place, dimensions=(axis,))
    out = sort_p.bind(a, place, dimension=axis, is_stable=stable or descending, num_keys=1)
    return tuple(rev_p.bind(x, dimensions=(axis,)) for x in out) if descending else tuple(out)


@short_way(ordered, REAL, plain="axis")
def sort(
    a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: bool | None = True,
    descending: bool = False,
) -> Array:  # fmt: skip
    """Sorted along an axis (None: all elements in a row); NaN last, or first if `descending`."""
    _check("sort", kind, order)
    a, d = _prepared("sort", a, axis)
    (out,) = sort_p.bind(a, dimension=d, is_stable=bool(stable), num_keys=1)
    return rev_p.bind(out, dimensions=(d,)) if descending else out


@short_way(stable_order, REAL, plain="axis")
def argsort(
    a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: bool | None = True,
    descending: bool = False, dtype: Any = None,
) -> Array:  # fmt: skip
    """The places of the elements in sorted order along an axis; equal ones keep theirs."""
    _check("argsort", kind, order)
    wanted = dtype_argument("argsort", dtype)
    a = array_of("argsort", a)
    a, d = _prepared("argsort", a, axis_or_none(axis, a))
    _, place = _ordered(a, d, descending, bool(stable))
    return place if wanted is None else convert(place, wanted)


@short_way(np.lexsort, several(REAL), plain="axis")
def lexsort(keys: Any, axis: int = -1, *, batch_size: int | None = None) -> Array:
    """The order by several keys, of which the last is the most important."""
    arrays = [strong(k) for k in arrays_of("lexsort", keys, "keys")]
    if not arrays:
        raise TypeError("numpy.lexsort: needs at least one key")
    if len({k.shape for k in arrays}) > 1:
        raise ValueError(f"numpy.lexsort: keys must have one shape, got {', '.join(map(shown, arrays))}")
    if not arrays[0].ndim:
        return array_of("lexsort", np.zeros((), dtypes.default_int()))
    d = canonical_axis("lexsort", axis, arrays[0])
    place = broadcasted_iota(dtypes.default_int(), arrays[0].shape, d)
    return sort_p.bind(*arrays[::-1], place, dimension=d, is_stable=True, num_keys=len(arrays))[-1]


@short_way(np.partition, REAL, plain="kth axis")
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Array:
    """With the kth element in its sorted place, smaller ones before it and larger ones behind: all are sorted."""
    _check_selection("partition", kind, order)
    a, d = _prepared("partition", a, axis)
    _check_kth("partition", kth, a, d)
    return sort(a, d)


@short_way(np.argpartition, REAL, plain="kth axis")
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Array:
    """The places of the elements in the order of `partition`."""
    _check_selection("argpartition", kind, order)
    a = array_of("argpartition", a)
    a, d = _prepared("argpartition", a, axis_or_none(axis, a))
    _check_kth("argpartition", kth, a, d)
    return argsort(a, d)


def _check_selection(name: str, kind: Any, order: Any) -> None:
    _check(name, None, order)
    if kind != "introselect":
        raise ValueError(f"numpy.{name}: kind must be 'introselect', got {kind!r}")


def _check_kth(name: str, kth: Any, a: Array, axis: int) -> None:
    n = a.shape[axis]
    for k in kth if is_several(kth) else (kth,):
        try:
            k = operator.index(k)
        except ConcretizationTypeError:
            raise
        except TypeError:
            raise TypeError(f"numpy.{name}: partition index must be an integer, or several, got kth={kth!r}") from None
        if not -n <= k < n:
            raise ValueError(f"numpy.{name}: kth(={k}) out of bounds ({n}), for axis {axis} of {shown(a)}")


@api_boundary
def sort_complex(a: Any) -> Array:
    """Sorted along the last axis, as complex numbers: by real parts, then imaginary ones.

    Differs from NumPy: integers of 8 and 16 bits become complex128 as others do.
    """
    a = sort(a)
    return a if a.dtype.kind == "c" else convert(a, dtypes.default_complex())


@api_boundary
def top_k(a: Any, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True) -> tuple[Array, Array]:
    """The k largest (or smallest) elements along an axis, in order, and their places.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> [x.tolist() for x in xnp.top_k(xnp.array([3, 1, 4, 1, 5]), 2)]
    [[5, 4], [4, 2]]
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"numpy.top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    a, d = _prepared("top_k", a, axis)
    k = operator.index(k)
    if not 0 <= k <= a.shape[d]:
        raise ValueError(f"numpy.top_k: k={k} is out of range for the {a.shape[d]} elements along axis {axis}")
    values, places = (slice_in_dim(x, 0, k, axis=d) for x in _ordered(a, d, mode == "largest"))
    return values, places
