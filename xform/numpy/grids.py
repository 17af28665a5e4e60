"""Indices and coordinates: of grids, of triangles and diagonals, by slice notation.

May import: the other modules of `xform.numpy`.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.errors import api_boundary
from xform.lax.conversion import convert
from xform.lax.shapes import broadcasted_iota, reshape_p
from xform.numpy import manipulation
from xform.numpy.joining import concatenate, stack
from xform.numpy.promotion import array_of, dtype_argument, promote, shape_argument, shown
from xform.numpy.ranges import arange, linspace
from xform.numpy.searching import nonzero

s_, index_exp = np.s_, np.index_exp


@api_boundary
def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """The indices of an array of shape `dimensions`: for each axis an array of that shape, stacked.

    ``sparse=True``: a tuple of arrays that broadcast to it.
    """
    shape = shape_argument("indices", dimensions, "dimensions")
    found = dtype_argument("indices", dtype) or dtypes.default_int()
    if not sparse:
        grids = [broadcasted_iota(found, shape, d) for d in range(len(shape))]
        return stack(grids) if grids else ArrayImpl(np.zeros((0,), found))
    return tuple(
        reshape_p.bind(arange(n, dtype=found), new_sizes=tuple(n if i == d else 1 for i in range(len(shape))))
        for d, n in enumerate(shape)
    )


@api_boundary
def ix_(*args: Any) -> tuple[Array, ...]:
    """Vectors as index arrays that select the grid of all their combinations; booleans stand for where they hold.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> x = xnp.arange(6).reshape(2, 3)
    >>> x[xnp.ix_(xnp.array([1, 0]), xnp.array([2, 0]))].tolist()
    [[5, 3], [2, 0]]
    """
    out = []
    for d, x in enumerate(args):
        x = array_of("ix_", x, f"{d + 1}")
        if x.ndim != 1:
            raise ValueError(f"numpy.ix_: arguments must be vectors, got {shown(x)}")
        if x.dtype == bool:
            (x,) = nonzero(x)
        elif not x.size and x.dtype.kind == "f":  # of an empty list
            x = convert(x, dtypes.default_int())
        out.append(reshape_p.bind(x, new_sizes=tuple(x.size if i == d else 1 for i in range(len(args)))))
    return tuple(out)


def _count(name: str, n: Any) -> int:
    n = operator.index(n)
    if n < 0:
        raise ValueError(f"numpy.{name}: n must not be negative, got {n}")
    return n


@api_boundary
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the diagonal of an array with `ndim` axes of length n."""
    return (arange(_count("diag_indices", n)),) * _count("diag_indices", ndim)


@api_boundary
def diag_indices_from(arr: Any) -> tuple[Array, ...]:
    """The indices of the diagonal of an array whose axes have one length."""
    arr = array_of("diag_indices_from", arr, "arr")
    if arr.ndim < 2 or len(set(arr.shape)) > 1:
        raise ValueError(f"numpy.diag_indices_from: arr must have at least two axes of one length, got {shown(arr)}")
    return diag_indices(arr.shape[0], arr.ndim)


def _triangle(host: Callable[..., Any], name: str, n: Any, k: Any, m: Any) -> tuple[Array, Array]:
    found = host(_count(name, n), operator.index(k), None if m is None else _count(name, m))
    i, j = (ArrayImpl(x.astype(dtypes.default_int(), copy=False)) for x in found)
    return i, j


@api_boundary
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the elements at and below the k-th diagonal of an (n, m) matrix."""
    return _triangle(np.tril_indices, "tril_indices", n, k, m)


@api_boundary
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the elements at and above the k-th diagonal of an (n, m) matrix."""
    return _triangle(np.triu_indices, "triu_indices", n, k, m)


def _from(name: str, arr: Any, k: int, function: Callable[..., Any]) -> tuple[Array, Array]:
    shape = manipulation.shape(arr)
    if len(shape) != 2:
        raise ValueError(f"numpy.{name}: arr must be a matrix, got shape {shape}")
    return function(shape[0], k, shape[1])


@api_boundary
def tril_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """`tril_indices` for the shape of a matrix."""
    return _from("tril_indices_from", arr, k, tril_indices)


@api_boundary
def triu_indices_from(arr: Any, k: int = 0) -> tuple[Array, Array]:
    """`triu_indices` for the shape of a matrix."""
    return _from("triu_indices_from", arr, k, triu_indices)


@api_boundary
def mask_indices(n: int, mask_func: Callable[..., Any], k: Any = 0, *, size: int | None = None) -> tuple[Array, ...]:
    """The indices where ``mask_func(ones((n, n)), k)``, such as `triu`, isn't zero; `size` as for `nonzero`."""
    from xform.numpy.creation import ones

    return nonzero(mask_func(ones((n, n), dtypes.default_int()), k), size=size)


# ---- Slice notation ----------------------------------------------------------------------------------------


def _points(name: str, s: slice) -> Array:
    """The values of ``start:stop:step``; an imaginary step is a number of points, stop included."""
    start, stop, step = s.start or 0, s.stop, s.step
    if stop is None:
        raise ValueError(f"numpy.{name}: a slice needs a stop, got {s}")
    if isinstance(step, complex | np.complexfloating):
        return linspace(start, stop, int(abs(complex(step))))
    return arange(start, stop, 1 if step is None else step)


class _Grid:
    """`mgrid` and `ogrid`."""

    def __init__(self, name: str, sparse: bool):
        self.name, self.sparse = name, sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _points(self.name, key)
        axes = [array_of(self.name, x) for x in promote(self.name, *(_points(self.name, s) for s in key))]
        n = len(axes)
        columns = [
            reshape_p.bind(x, new_sizes=tuple(x.size if i == d else 1 for i in range(n))) for d, x in enumerate(axes)
        ]
        return columns if self.sparse else stack(manipulation.broadcast_arrays(*columns))

    def __repr__(self) -> str:
        return f"xform.numpy.{self.name}"


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


class _Concatenator:
    """`r_` and `c_`."""

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int):
        self.name, self.axis, self.ndmin, self.trans1d = name, axis, ndmin, trans1d

    def __getitem__(self, key: Any) -> Array:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self.axis, self.ndmin, self.trans1d
        if items and isinstance(items[0], str):
            directive = items.pop(0)
            if directive in ("r", "c"):
                raise NotImplementedError(f"numpy.{self.name}: there is no matrix class, so no {directive!r}")
            numbers = [int(x) for x in directive.split(",")]
            axis, ndmin, trans1d = (numbers + [axis, ndmin, trans1d][len(numbers) :])[:3]
        out = []
        for item in items:
            x = (
                _points(self.name, item)
                if isinstance(item, slice)
                else manipulation.atleast_1d(array_of(self.name, item))
            )
            missing = ndmin - x.ndim
            if missing > 0:  # new axes of length 1, with the old ones at place trans1d among them
                at = trans1d if trans1d >= 0 else missing + trans1d + 1
                x = manipulation.reshape(x, ((1,) * at + x.shape + (1,) * (missing - at)))
            out.append(x)
        return concatenate(out, axis)

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"xform.numpy.{self.name}"


#: ``r_[1:4, 0, x]``: slices, numbers and arrays joined along the first axis.
r_ = _Concatenator("r_", 0, 1, -1)
#: ``c_[x, y]``: vectors as columns.
c_ = _Concatenator("c_", -1, 2, 0)
