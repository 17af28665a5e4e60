"""Abstract values: what is known of an array while it is traced.

May import: NumPy, `core.dtypes`.
"""

import math
from typing import Any

import numpy as np

from xform.core import dtypes

_interned: dict[tuple, "ShapedArray"] = {}


class ShapedArray:
    """Shape, dtype and weak type of an array. Interned: equal avals are one object.

    Parameters
    ----------
    shape : tuple of int
    dtype : dtype
    weak_type : bool
        Whether the dtype gives way to others in promotion, as that of a Python scalar does.

    Examples
    --------
    >>> ShapedArray((2, 3), np.dtype("float32"))
    f32[2,3]
    >>> ShapedArray((), np.dtype("float64"), weak_type=True)
    ~f64[]
    """

    __slots__ = ("_strong", "_tangent", "dtype", "inexact", "ndim", "shape", "size", "weak_type")

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type: bool
    ndim: int
    size: int
    _strong: "ShapedArray | None"
    _tangent: "ShapedArray | None"
    inexact: bool  # float or complex: has tangents

    def __new__(cls, shape: Any, dtype: Any, weak_type: bool = False) -> "ShapedArray":
        found = _interned.get((shape, dtype, weak_type)) if type(shape) is tuple else None
        if found is not None:
            return found
        shape, dtype, weak_type = tuple(int(d) for d in shape), np.dtype(dtype), bool(weak_type)
        self = object.__new__(cls)
        self.shape, self.dtype, self.weak_type = shape, dtype, weak_type
        self.ndim, self.size = len(shape), math.prod(shape)
        self.inexact = dtypes.kinds.get(dtype) in ("f", "c")
        self._strong = self._tangent = None
        return _interned.setdefault((shape, dtype, weak_type), self)

    def __reduce__(self) -> tuple:
        return ShapedArray, (self.shape, self.dtype, self.weak_type)

    def update(self, shape: Any = None, dtype: Any = None, weak_type: bool | None = None) -> "ShapedArray":
        """A copy with some parts replaced."""
        return ShapedArray(
            self.shape if shape is None else tuple(shape),
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )

    @property
    def strong(self) -> "ShapedArray":
        """This aval without weak type."""
        if self._strong is None:
            self._strong = self.update(weak_type=False) if self.weak_type else self
        return self._strong

    def to_tangent_aval(self) -> "ShapedArray":
        """The aval of this one's tangents: itself if inexact, else float0."""
        if self._tangent is None:
            self._tangent = self.strong if self.inexact else ShapedArray(self.shape, dtypes.float0)
        return self._tangent

    def str_short(self) -> str:
        """E.g. ``f32[2,3]``."""
        dims = ",".join(map(str, self.shape))
        return f"{short_dtype_name(self.dtype)}[{dims}]"

    def __repr__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short()}"


_SHORT = {"float": "f", "uint": "u", "int": "i", "complex": "c", "bfloat": "bf"}
_short_names: dict[Any, str] = {}


def short_dtype_name(dtype: Any) -> str:
    """JAX's short name of a dtype: f32, i64, bool, bf16 ..."""
    name = _short_names.get(dtype)
    if name is None:
        name = "float0" if dtype == dtypes.float0 else np.dtype(dtype).name
        for long, short in sorted(_SHORT.items(), key=lambda item: -len(item[0])):
            if name.startswith(long) and name != "float0":
                name = short + name[len(long) :]
                break
        _short_names[dtype] = name
    return name
