"""Operations that compute nothing, and matter to transformations only.

May import: `lax.families`.
"""

from typing import Any, TypeVar

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import get_aval
from xform.core.errors import api_boundary
from xform.lax.families import elementwise

_T = TypeVar("_T")

stop_gradient_p = elementwise("stop_gradient", lambda x: x, lower=lambda ctx, x: x)


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
        inexact = dtypes.issubdtype(get_aval(leaf).dtype, np.inexact)
        return stop_gradient_p.bind(leaf) if inexact else leaf

    return tree.map(stop, x)
