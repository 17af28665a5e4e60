"""Matrices with a pattern: identities, triangles, powers.

May import: `numpy.creation`, `numpy.promotion`, `xform.lax`, `xform.core`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.lax.comparison import select_n_p
from xform.lax.conversion import convert
from xform.lax.shapes import broadcasted_iota
from xform.lax.shapes import reshape as lax_reshape
from xform.lax.slicing import concatenate as lax_concatenate
from xform.numpy import host_forms
from xform.numpy.creation import placed, zeros
from xform.numpy.fast import ANY, short_way
from xform.numpy.promotion import array_of, dtype_argument, expand_to, known_integer, numpy_only, shown


@api_boundary
def eye(
    N: Any, M: Any = None, k: Any = 0, dtype: Any = None, order: Any = None, *, device: Any = None, like: Any = None
) -> Array:
    """Ones on the k-th diagonal of an (N, M) matrix, zeros elsewhere."""
    numpy_only("eye", order, like)
    found = dtype_argument("eye", dtype) or dtypes.default_float()
    rows, k = known_integer("eye", "N", N), known_integer("eye", "k", k)
    columns = rows if M is None else known_integer("eye", "M", M)
    if rows < 0 or columns < 0:
        raise ValueError(f"numpy.eye: N and M must not be negative, got {rows} and {columns}")
    if state.fast:
        return placed("eye", ArrayImpl(np.eye(rows, columns, k, found)), device)
    return placed("eye", convert(_diagonal_mask(rows, columns, k), found), device)


def _diagonal_mask(rows: int, columns: int, k: int) -> Any:
    """Whether column - row == k."""
    i = broadcasted_iota(np.int64, (rows, columns), 0)
    return i + k == broadcasted_iota(np.int64, (rows, columns), 1)


def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """The identity matrix."""
    return eye(n, dtype=dtype, like=like)


@api_boundary
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None, *, like: Any = None) -> Array:
    """Ones at and below the k-th diagonal of an (N, M) matrix, zeros above."""
    numpy_only("tri", like=like)
    found = dtype_argument("tri", dtype) or dtypes.default_float()
    rows, k = known_integer("tri", "N", N), known_integer("tri", "k", k)
    columns = rows if M is None else known_integer("tri", "M", M)
    if state.fast:
        return ArrayImpl(np.tri(rows, columns, k, found))
    return convert(_lower_mask((rows, columns), k), found)


def _lower_mask(shape: Sequence[int], k: int) -> Any:
    """Whether column - row <= k, in the last two axes."""
    if state.fast:
        return ArrayImpl(np.tri(shape[-2], shape[-1], k, bool))
    i = broadcasted_iota(np.int64, shape[-2:], 0)
    return i + k >= broadcasted_iota(np.int64, shape[-2:], 1)


def _triangle(name: str, m: Any, k: Any, lower: bool) -> Any:
    m, k = array_of(name, m, "m"), known_integer(name, "k", k)
    if not m.ndim:
        raise ValueError(f"numpy.{name}: m must have at least one dimension, got {shown(m)}")
    if m.ndim == 1:  # the rows of a matrix, as in NumPy
        m = expand_to(m, m.shape * 2)
    mask = expand_to(_lower_mask(m.shape, k if lower else k - 1), m.shape)
    zero = m.dtype.type(0)
    return select_n_p.bind(mask, zero, m) if lower else select_n_p.bind(mask, m, zero)


@short_way(host_forms.tril, ANY, plain="k")
def tril(m: Any, k: int = 0) -> Array:
    """A copy with zeros above the k-th diagonal of the last two axes."""
    return _triangle("tril", m, k, True)


@short_way(host_forms.triu, ANY, plain="k")
def triu(m: Any, k: int = 0) -> Array:
    """A copy with zeros below the k-th diagonal of the last two axes."""
    return _triangle("triu", m, k, False)


@short_way(np.vander, "d", plain="N increasing")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of x, from the (N-1)-th down to the 0-th (up if `increasing`)."""
    x = array_of("vander", x, "x")
    if x.ndim != 1:
        raise ValueError(f"numpy.vander: x must be a one-dimensional array or sequence, got {shown(x)}")
    n = x.shape[0] if N is None else known_integer("vander", "N", N)
    if n < 0:
        raise ValueError(f"numpy.vander: N must not be negative, got {n}")
    x = convert(x, dtypes.promote_types(x.dtype, np.int64))
    powers = range(n) if increasing else range(n - 1, -1, -1)
    if not n:
        return zeros((x.shape[0], 0), x.dtype)
    return lax_concatenate([lax_reshape(x**p, (x.shape[0], 1)) for p in powers], 1)
