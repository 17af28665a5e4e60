"""The operators and methods of arrays and scalars in NumPy functions, and NumPy's protocols on them.

Operators on what isn't traced are NumPy's, with little around them. NumPy's own functions, called by code that isn't
seen through (that of other libraries), come back here by ``__array_ufunc__`` and ``__array_function__``.

May import: `numpy_functions.operations`, `numpy_functions.arrays`, `xform.core`.
"""

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xform.core.array import Array
from xform.core.trace import Tracer
from xform.numpy_functions.arrays import NumpyArray, Value, lift
from xform.numpy_functions.memory import Buffer
from xform.numpy_functions.operations import AT, Operation, operation_of, to_xform, words, write_result

_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift, "matmul": np.matmul,
}  # fmt: skip
_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
_OPERANDS = (Value, Array, np.ndarray, np.generic, bool, int, float, complex, list, tuple)
_NUMBERS = frozenset([int, float, np.float64, np.int64, bool, complex, np.ndarray])

_METHODS = words(
    """
    all any argmax argmin argpartition argsort choose clip compress conj conjugate cumprod cumsum
    diagonal dot max mean min nonzero partition prod put ravel repeat reshape round searchsorted
    sort squeeze std sum swapaxes take trace transpose var copy fill flatten tolist tobytes item
    astype view byteswap
    """
)


def _operators(name: str, ufunc: np.ufunc) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """The operator, its reflection, and its form in place."""
    # ``a**2`` has short ways that np.power hasn't.
    known = getattr(operator, f"{name}_" if name in ("and", "or") else name)
    operation = operation_of(ufunc)

    def forward(self: Value, other: Any) -> Any:
        a = self.read()
        b = other.read() if isinstance(other, Value) else other
        if type(a) is np.ndarray:
            if type(b) in _NUMBERS:
                out = known(a, b)
                return NumpyArray(Buffer(out)) if type(out) is np.ndarray else out
        elif a.ndim < 2 and (type(b) is float or (isinstance(b, Tracer) and b.ndim < 2 and b.dtype == a.dtype)):
            return lift(known(a, b))  # nothing to promote, and one layout
        return operation(self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def backward(self: Value, other: Any) -> Any:
        a = self.read()
        if type(a) is np.ndarray and type(other) in _NUMBERS:
            out = known(other, a)
            return NumpyArray(Buffer(out)) if type(out) is np.ndarray else out
        return operation(other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def in_place(self: NumpyArray, other: Any) -> Any:
        memory = self.memory
        memory.check()
        b = other.memory.read() if type(other) is NumpyArray else other
        if type(memory.read()) is np.ndarray and type(b) in _NUMBERS:
            target = memory.writable()
            ufunc(target, b, out=target)
        elif isinstance(other, _OPERANDS):
            method = AT.get(ufunc.__name__)
            if method and not isinstance(other, list | tuple) and memory.combine(method, to_xform(other)):
                return self
            result = operation(self, other)
            write_result(ufunc.__name__, self, to_xform(result))
        else:
            return NotImplemented
        return self

    return forward, backward, in_place


def _unary(ufunc: np.ufunc) -> Callable[[Value], Any]:
    operation = operation_of(ufunc)
    return lambda self: operation(self)


def _method(name: str) -> Callable[..., Any]:
    def counterpart(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    operation = Operation(getattr(np.ndarray, name), counterpart, f"ndarray.{name}")

    def method(self: Value, *args: Any, **kwargs: Any) -> Any:
        return operation(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, operation.__doc__
    return method


def _property(name: str) -> property:
    """Of attributes whose value is a view."""
    operation = Operation(lambda x: getattr(x, name), lambda x: getattr(x, name), f"ndarray.{name}")

    def setter(self: Value, value: Any) -> None:
        getattr(self, name)[...] = value

    return property(lambda self: operation(self), setter if name in ("real", "imag") else None)


def _divmod(self: Value, other: Any) -> Any:
    return self // other, self % other


def _rdivmod(self: Value, other: Any) -> Any:
    return other // self, other % self


def _contains(self: Value, value: Any) -> bool:
    return bool((self == value).any())


def _round(self: Value, ndigits: int | None = None) -> Any:
    return self.round(ndigits or 0)


def _resize(self: NumpyArray, *shape: Any, refcheck: bool = True) -> None:
    raise NotImplementedError("numpy_function: arrays can't be resized in place; use np.resize or np.concatenate")


def array_ufunc(self: Value, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs."""
    operation = operation_of(ufunc)
    return (operation if method == "__call__" else getattr(operation, method))(*inputs, **kwargs)


def array_function(self: Value, func: Any, types: Iterable[type], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's protocol for its other functions."""
    return operation_of(func)(*args, **kwargs)


def install() -> None:
    """Attach everything."""
    for name, ufunc in {**_BINARY, **_COMPARISONS}.items():
        forward, backward, in_place = _operators(name, ufunc)
        setattr(Value, f"__{name}__", forward)
        if name in _BINARY:
            setattr(Value, f"__r{name}__", backward)
            setattr(NumpyArray, f"__i{name}__", in_place)
    for name, ufunc in _UNARY.items():
        setattr(Value, f"__{name}__", _unary(ufunc))
    for name in _METHODS:
        setattr(Value, name, _method(name))
    for name in ("T", "mT", "real", "imag"):
        setattr(Value, name, _property(name))
    special = {"__divmod__": _divmod, "__rdivmod__": _rdivmod, "__contains__": _contains, "__round__": _round,
               "__array_ufunc__": array_ufunc, "__array_function__": array_function}  # fmt: skip
    for name, value in special.items():
        setattr(Value, name, value)
    NumpyArray.resize = _resize  # type: ignore[attr-defined]


install()
