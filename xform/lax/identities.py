"""Operations that compute nothing, and matter to transformations and to the placement of arrays only.

May import: `lax.families`.
"""

from typing import Any, TypeVar

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.families import apply, elementwise

_T = TypeVar("_T")

stop_gradient_p = elementwise("stop_gradient", lambda x: x, lower=lambda ctx, x: x, by_bits=True)


@api_boundary
def with_sharding_constraint(x: _T, shardings: Any) -> _T:
    """`x` itself: arrays live on one device, and that is the only sharding there is.

    Parameters
    ----------
    x : pytree of arrays
    shardings : pytree of shardings or None
        Raises NotImplementedError for those of more than one device.
    """
    for sharding in tree.leaves(shardings):
        if len(getattr(sharding, "device_set", ())) != 1:
            raise NotImplementedError(
                f"lax.with_sharding_constraint: only shardings on one device are supported, got {sharding!r}"
            )
    return x


@api_boundary
def stop_gradient(x: _T) -> _T:
    """`x` as a constant to differentiation: its derivative is zero.

    Parameters
    ----------
    x : pytree of arrays

    Examples
    --------
    >>> import xform
    >>> float(xform.grad(lambda x: x * xform.lax.stop_gradient(x))(3.0))
    3.0
    """

    def stop(leaf: Any) -> Any:
        constant = isinstance(leaf, Array) and not dtypes.issubdtype(leaf.dtype, np.inexact)
        return leaf if constant else apply(stop_gradient_p, leaf)

    return tree.map(stop, x)
