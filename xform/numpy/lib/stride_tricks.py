"""Windows that slide over an array. There is no `as_strided`: arrays have no strides.

May import: the other modules of `xform.numpy`.
"""

import operator
from typing import Any

import numpy as np

from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.numpy import manipulation
from xform.numpy.indexing import take
from xform.numpy.promotion import array_of, canonical_axis, is_several, shown

__all__ = ["sliding_window_view"]


@api_boundary
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """All windows of a shape that fit into an array: their axes are added at the end.

    Parameters
    ----------
    x : array
    window_shape : int or ints
    axis : int or ints, optional
        The axes along which the windows slide, one for each length; by default all. An axis may be named twice.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.lib.stride_tricks.sliding_window_view(xnp.arange(5), 3).tolist()
    [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    """
    name = "lib.stride_tricks.sliding_window_view"
    if writeable:
        raise NotImplementedError(f"numpy.{name}: arrays are immutable, so a window isn't writeable")
    x = array_of(name, x, "x")
    lengths = [operator.index(n) for n in (window_shape if is_several(window_shape) else (window_shape,))]
    given = range(x.ndim) if axis is None else axis if is_several(axis) else (axis,)
    axes = [canonical_axis(name, d, x.ndim) for d in given]
    if len(axes) != len(lengths):
        raise ValueError(f"numpy.{name}: needs one axis per length, got window_shape={window_shape} and axes={axes}")
    rest = list(x.shape)
    for d, n in zip(axes, lengths, strict=True):
        if n < 0 or n > rest[d]:
            raise ValueError(f"numpy.{name}: windows of shape {tuple(lengths)} don't fit into {shown(x)}")
        rest[d] -= n - 1
    if type(x) is ArrayImpl and state.fast and x._host is not None:
        return ArrayImpl(np.lib.stride_tricks.sliding_window_view(x._host, tuple(lengths), tuple(axes)))
    for d, n in zip(axes, lengths, strict=True):
        places = np.arange(x.shape[d] - n + 1)[:, None] + np.arange(n)
        x = manipulation.moveaxis(take(x, places, d), d + 1, -1)
    return x
