"""Iteration over elements and indices, and what broadcasting gives.

May import: `numpy.manipulation`, `numpy.promotion`, `xform.core`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.numpy import manipulation
from xform.numpy.promotion import array_of

ndindex = np.ndindex


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Pairs of an index and the element there.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> [(index, int(x)) for index, x in xnp.ndenumerate([[5, 6]])]
    [((0, 0), 5), ((0, 1), 6)]
    """
    x = array_of("ndenumerate", arr, "arr")
    for index in np.ndindex(x.shape):
        yield index, x[index]


class broadcast:
    """What several arrays are together: their common shape, and an iterator over tuples of their elements.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> both = xnp.broadcast([[1], [2]], [3, 4])
    >>> both.shape, [(int(x), int(y)) for x, y in both]
    ((2, 2), [(1, 3), (1, 4), (2, 3), (2, 4)])
    """

    @api_boundary
    def __init__(self, *args: Any):
        self._arrays = manipulation.broadcast_arrays(*args)
        self.shape = self._arrays[0].shape if args else ()
        self.ndim = self.nd = len(self.shape)
        self.size = int(np.prod(self.shape, dtype=int))
        self.numiter = len(self._arrays)

    def __iter__(self) -> Iterator[tuple[Array, ...]]:
        return zip(*map(manipulation.ravel, self._arrays), strict=True)
