"""The operators of arrays, and NumPy's methods and properties.

They are attached to `xform.core.Array`, so concrete and traced arrays have them alike. Indexing is in `numpy.indexing`,
NumPy's protocols are in `numpy.protocols`.

May import: the other modules of `xform.numpy`.
"""

from collections.abc import Iterator
from typing import Any

from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.bitwise import bitcast_convert_type
from xform.lax.powers import host_power
from xform.lax.shapes import reshape as lax_reshape
from xform.numpy import (
    creation,
    diagonals,
    elementwise,
    indexing,
    joining,
    manipulation,
    products,
    reductions,
    searching,
    selection,
    sorting,
    ufuncs,
)
from xform.numpy.fast import OPERANDS, binary_operators
from xform.numpy.promotion import cast_all, numpy_only

# ---- Operators ---------------------------------------------------------------------------------------------

_BINARY = {
    "add": ufuncs.add, "sub": ufuncs.subtract, "mul": ufuncs.multiply, "truediv": ufuncs.divide,
    "floordiv": ufuncs.floor_divide, "mod": ufuncs.remainder, "and": ufuncs.bitwise_and, "or": ufuncs.bitwise_or,
    "xor": ufuncs.bitwise_xor, "lshift": ufuncs.left_shift, "rshift": ufuncs.right_shift,
}  # fmt: skip
_COMPARISONS = {
    "eq": ufuncs.equal, "ne": ufuncs.not_equal, "lt": ufuncs.less, "le": ufuncs.less_equal, "gt": ufuncs.greater,
    "ge": ufuncs.greater_equal,
}  # fmt: skip
_UNARY = {"neg": ufuncs.negative, "pos": ufuncs.positive, "abs": ufuncs.absolute, "invert": ufuncs.invert}


def _power_host(a: Any, b: Any) -> Any:
    """``a ** n`` takes NumPy's short ways for small integers; that for 0.5 differs from the power."""
    return a**b if type(b) is int else host_power(a, b)


@api_boundary
def _matmul(self: Array, other: Any) -> Any:
    return products.matmul(self, other) if isinstance(other, OPERANDS) else NotImplemented


@api_boundary
def _rmatmul(self: Array, other: Any) -> Any:
    return products.matmul(other, self) if isinstance(other, OPERANDS) else NotImplemented


def _divmod(self: Array, other: Any) -> Any:
    return elementwise.divmod(self, other) if isinstance(other, OPERANDS) else NotImplemented


def _rdivmod(self: Array, other: Any) -> Any:
    return elementwise.divmod(other, self) if isinstance(other, OPERANDS) else NotImplemented


def _pow(self: Array, other: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        raise TypeError("pow() with a modulus is not supported for arrays")
    return _power(self, other)


_power, _rpower = binary_operators(ufuncs.power, _power_host)


@api_boundary
def _setitem(self: Array, index: Any, value: Any) -> None:
    raise TypeError(
        f"arrays are immutable, so item assignment is not possible on this array of {self.aval}: instead of "
        "`x[index] = y` write `x = x.at[index].set(y)`; there are also .add, .multiply, .min, .max and others"
    )


def _delitem(self: Array, index: Any) -> None:
    raise TypeError("arrays are immutable: use xform.numpy.delete")


def _contains(self: Array, value: Any) -> bool:
    return bool((self == value).any())


def _round(self: Array, ndigits: int | None = None) -> Any:
    return elementwise.round(self, ndigits or 0)


# ---- Methods that aren't a function of the same signature --------------------------------------------------


@api_boundary
def _reshape(self: Array, *args: Any, order: str = "C", copy: bool | None = None) -> Array:
    """The elements in another shape: ``x.reshape(2, -1)`` or ``x.reshape((2, -1))``."""
    return manipulation.reshape(self, args[0] if len(args) == 1 else args, order)


@api_boundary
def _transpose(self: Array, *axes: Any) -> Array:
    """The axes in another order, reversed by default: ``x.transpose(1, 0)`` or ``x.transpose((1, 0))``."""
    one = len(axes) == 1 and not isinstance(axes[0], int)
    return manipulation.transpose(self, (axes[0] if one else axes) or None)


@api_boundary
def _astype(
    self: Array, dtype: Any, order: Any = "K", casting: str = "unsafe", subok: bool = True, copy: bool = False,
    *, device: Any = None,
) -> Array:  # fmt: skip
    """Convert to another dtype, if `casting` allows it."""
    if order != "K" or casting != "unsafe":
        numpy_only("astype", order)
        cast_all("astype", [self], dtypes.check_user_dtype(dtype, "astype"), casting)
    return creation.astype(self, dtype, copy=copy, device=device)


@api_boundary
def _flatten(self: Array, order: str = "C") -> Array:
    """The elements in one axis."""
    return manipulation.ravel(self, order)


@api_boundary
def _view(self: Array, dtype: Any = None, type: None = None) -> Array:
    """The bits read as another dtype; the last axis becomes longer or shorter when the width changes.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> hex(xnp.array(1.0).view("uint64").item())
    '0x3ff0000000000000'
    """
    if type is not None:
        raise NotImplementedError("view: the argument type is not supported")
    dtype = self.dtype if dtype is None else dtypes.check_user_dtype(dtype, "view")
    if dtype == self.dtype:
        return self
    if bool in (dtype, self.dtype):
        return _view(self.astype("uint8"), dtype) if self.dtype == bool else _view(self, "uint8").astype(bool)
    old, new = self.dtype.itemsize, dtype.itemsize
    if old == new:
        return bitcast_convert_type(self, dtype)
    if not self.ndim:
        raise ValueError(
            f"view: an array of rank 0 can't be seen as {dtype}, whose elements have another width than {self.dtype}"
        )
    if old > new:
        out = bitcast_convert_type(self, dtype)
        return lax_reshape(out, (*self.shape[:-1], self.shape[-1] * (old // new)))
    if self.shape[-1] * old % new:
        raise ValueError(f"view: the last axis of {self.aval} is no multiple of the {new} bytes of {dtype}")
    return bitcast_convert_type(
        lax_reshape(self, (*self.shape[:-1], -1 if not self.size else self.shape[-1] * old // new, new // old)), dtype
    )


@property  # type: ignore[misc]
def _t(self: Array) -> Array:
    """The axes in reverse order."""
    return self if self.ndim < 2 else manipulation.transpose(self)


@property  # type: ignore[misc]
def _real(self: Array) -> Array:
    """The real part."""
    return ufuncs.real(self)


@property  # type: ignore[misc]
def _imag(self: Array) -> Array:
    """The imaginary part."""
    return ufuncs.imag(self)


@property  # type: ignore[misc]
def _mt(self: Array) -> Array:
    """The matrix, or stack of matrices, transposed."""
    return manipulation.matrix_transpose(self)


@property  # type: ignore[misc]
def _flat(self: Array) -> Iterator[Array]:
    """An iterator over the elements."""
    return iter(manipulation.ravel(self))


@api_boundary
def _compress(self: Array, condition: Any, axis: int | None = None, out: None = None) -> Array:
    """The slices along an axis, or elements, where a condition holds."""
    return searching.compress(condition, self, axis, out)


@api_boundary
def _copy(self: Array, order: Any = "C") -> Array:
    """A copy, with memory of its own."""
    return creation.copy(self, order)


# NumPy's methods that are functions with the array as first argument.
_FUNCTIONS = {
    reductions: "all any argmax argmin cumprod cumsum max mean min prod ptp std sum var",
    manipulation: "ravel squeeze swapaxes",
    joining: "repeat",
    products: "dot",
    diagonals: "diagonal trace",
    sorting: "argpartition argsort partition sort",
    searching: "nonzero searchsorted",
    indexing: "take",
    selection: "choose",
    elementwise: "clip round",
    ufuncs: "conj conjugate",
}


def install() -> None:
    """Attach everything to `Array`."""
    for name, function in _UNARY.items():
        setattr(Array, f"__{name}__", function)
    for name, function in {**_BINARY, **_COMPARISONS}.items():
        forward, backward = binary_operators(function)
        forward.__name__ = forward.__qualname__ = f"__{name}__"
        setattr(Array, f"__{name}__", forward)
        if name in _BINARY:
            backward.__name__ = backward.__qualname__ = f"__r{name}__"
            setattr(Array, f"__r{name}__", backward)
    for module, names in _FUNCTIONS.items():
        for name in names.split():
            setattr(Array, name, getattr(module, name))
    special = {
        "__pow__": _pow, "__rpow__": _rpower, "__matmul__": _matmul, "__rmatmul__": _rmatmul, "__divmod__": _divmod,
        "__rdivmod__": _rdivmod, "__setitem__": _setitem, "__delitem__": _delitem,
        "__contains__": _contains, "__round__": _round, "reshape": _reshape, "transpose": _transpose, "astype": _astype,
        "flatten": _flatten, "view": _view, "copy": _copy, "compress": _compress, "T": _t, "mT": _mt,
        "real": _real, "imag": _imag, "flat": _flat,
    }  # fmt: skip
    for name, value in special.items():
        setattr(Array, name, value)


install()
