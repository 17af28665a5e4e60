"""Arrays of anything, with a condition: finite, or laid out in some way.

May import: `numpy.creation`, `numpy.reductions`, `numpy.ufuncs`, `numpy.promotion`, `xform.core`.
"""

from typing import Any

import numpy as np

from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.numpy.creation import array, asarray
from xform.numpy.promotion import concrete

asanyarray = asarray


@api_boundary
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Array:
    """An array of at least one axis; all are contiguous, as far as a program can tell."""
    return array(a, dtype, copy=None, ndmin=1, like=like)


@api_boundary
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Array:
    """`asarray`; ValueError if there are infinities or NaN. Values that are traced can't be checked: TypeError."""
    out = asarray(a, dtype, order)
    if out.dtype.kind in "fc":
        values = concrete("asarray_chkfinite", out, "a", "Use asarray.")
        if not np.isfinite(values).all():
            raise ValueError("numpy.asarray_chkfinite: a has infinities or NaN")
    return out


_REQUIREMENTS = {
    "C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C", "A": "A", "ALIGNED": "A", "O": "O", "OWNDATA": "O",
    "E": "E", "ENSUREARRAY": "E",
}  # fmt: skip


@api_boundary
def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Array:
    """An array that is aligned, C-contiguous and owns its data, as all are; one that is writeable doesn't exist."""
    names = [requirements] if isinstance(requirements, str) else list(requirements or ())
    for name in names:
        if str(name).upper() not in _REQUIREMENTS:
            raise NotImplementedError(f"numpy.require: arrays are immutable and in C order, so {name!r} can't be met")
    return asarray(a, dtype, like=like)
