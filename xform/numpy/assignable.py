"""`array_api_function`: functions that are written for the array API, and assign to elements, on immutable arrays.

The array API standard lets functions assign to elements, ``x[i] = y``, and those of SciPy with array API support do it
freely. So such a function is given `Assignable` arrays: each stands for a value, an immutable array, which an
assignment replaces by its next version. Their namespace is `xform.numpy`, taking and returning arrays of this kind.

Parts of an array made by integers, slices, an ellipsis and None are views, as NumPy's are: an assignment to either is
seen in both. What functions of the namespace return, `reshape` too, is independent, which the standard leaves open.

May import: `xform.core`; `xform.numpy` itself when a function is called.
"""

import functools
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from xform.core import tree
from xform.core.array import Array


def array_api_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the array API that may assign to elements of arrays, for arrays of this library.

    SciPy's functions with array API support are such functions, if the environment variable ``SCIPY_ARRAY_API=1`` is
    set when SciPy is imported. Those that assign to no elements need nothing: they take our arrays as they are.

    Parameters
    ----------
    function : callable
        Takes its namespace from its arguments (``x.__array_namespace__()``). Its arguments may be pytrees of arrays,
        and functions of arrays.

    Returns
    -------
    callable
        It returns what `function` does, with an `Array` for each array; also in the attributes of an object. Traced
        arrays will do if the function doesn't branch on values. Arguments stay as they are.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> def last_doubled(x):
    ...     xp = x.__array_namespace__()
    ...     y = xp.asarray(x, copy=True)
    ...     y[-1] *= 2
    ...     return xp.sum(y)
    >>> xform.grad(xform.array_api_function(last_doubled))(xnp.ones(3))
    Array([1., 1., 2.], dtype=float64)
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _exported(function(*_entered(args), **_entered(kwargs)))

    return wrapper


class Assignable:
    """An array with elements that can be assigned to.

    Attributes
    ----------
    value : Array
        The array now.
    """

    __slots__ = ("_base", "_index", "_seen", "_value")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Array | None, base: "Assignable | None" = None, index: Any = None):
        self._value, self._base, self._index = value, base, index
        self._seen: Array | None = None  # what the base's value was when that of this view was taken

    @property
    def value(self) -> Array:
        """The array now."""
        if self._base is not None and self._seen is not (whole := self._base.value):
            self._seen, self._value = whole, whole[self._index]
        return self._value  # type: ignore[return-value]

    @value.setter
    def value(self, new: Array) -> None:
        if self._base is None:
            self._value = new
        else:
            self._base.value = self._base.value.at[self._index].set(new)

    def __getitem__(self, index: Any) -> "Assignable":
        index = _plain(index)
        parts = index if isinstance(index, tuple) else (index,)
        if all(i is None or i is Ellipsis or type(i) in (int, slice) or isinstance(i, np.integer) for i in parts):
            return Assignable(None, self, index)
        return Assignable(self.value[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        old = self.value
        self.value = old.at[_plain(index)].set(_cast(_plain(value), old))

    def __getattr__(self, name: str) -> Any:
        return _wrapped(getattr(self.value, name))

    def __array_namespace__(self, *, api_version: str | None = None) -> "Namespace":
        return _namespace()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _wrapped(getattr(ufunc, method))(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _wrapped(func)(*args, **kwargs)

    def __jax_array__(self) -> Array:
        return self.value

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self.value)))

    def __repr__(self) -> str:
        return f"Assignable({self.value!r})"


def _cast(new: Any, old: Array) -> Any:
    """What is assigned, in the dtype of the array, as far as it keeps its kind."""
    import xform.numpy as xnp

    new = xnp.asarray(new)
    if not xnp.can_cast(new.dtype, old.dtype, "same_kind"):
        raise TypeError(f"values of {new.dtype} can't be assigned to elements of an array of {old.dtype}")
    return new.astype(old.dtype)


def _plain(x: Any) -> Any:
    """The arrays for the assignable ones among (nested) arguments."""
    return tree.map(lambda leaf: leaf.value if isinstance(leaf, Assignable) else leaf, x)


def _entered(x: Any) -> Any:
    """Assignable arrays for arrays, and functions of them for functions."""

    def enter(leaf: Any) -> Any:
        if isinstance(leaf, Array):
            return Assignable(leaf)
        if callable(leaf) and not isinstance(leaf, type):
            return _wrapped(leaf)
        return leaf

    return tree.map(enter, x)


def _exported(x: Any) -> Any:
    """Arrays for assignable ones, also in the attributes of objects, and in tuples and dictionaries with attributes."""

    def export(leaf: Any) -> Any:
        if isinstance(leaf, Assignable):
            return leaf.value
        attributes = {} if isinstance(leaf, type) else getattr(leaf, "__dict__", {})
        if isinstance(leaf, tuple):
            leaf = tuple.__new__(type(leaf), map(_exported, leaf))
            vars(leaf).update(attributes)
        elif isinstance(leaf, dict):
            leaf.update({k: _exported(v) for k, v in leaf.items()})
        for name, value in list(attributes.items()):
            if isinstance(value, Assignable):
                vars(leaf)[name] = value.value
        return leaf

    return tree.map(export, x)


def _wrapped(x: Any) -> Any:
    """What of `xform.numpy` or an array is seen: functions of assignable arrays, and these for arrays."""
    if isinstance(x, Array):
        return Assignable(x)
    if isinstance(x, types.ModuleType):
        return Namespace(x)
    if isinstance(x, tuple | list):
        return tree.map(lambda leaf: Assignable(leaf) if isinstance(leaf, Array) else leaf, x)
    if isinstance(x, type) or not callable(x):
        return x

    @functools.wraps(x)
    def function(*args: Any, **kwargs: Any) -> Any:
        return _wrapped(x(*_plain(args), **_plain(kwargs)))

    return function


class Namespace(types.ModuleType):
    """A module of `xform.numpy` whose functions take and return assignable arrays."""

    def __init__(self, module: types.ModuleType):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["_module"] = module

    def __getattr__(self, name: str) -> Any:
        value = self.__dict__[name] = _wrapped(getattr(self.__dict__["_module"], name))
        return value


@functools.cache
def _namespace() -> Namespace:
    import xform.numpy as xnp

    out = Namespace(xnp)
    asarray, astype = out.asarray, out.astype

    def same_or_asarray(a: Any, /, dtype: Any = None, *, copy: bool | None = None, **kwargs: Any) -> Assignable:
        """As `xform.numpy.asarray`, but an assignable array is returned as it is if nothing is to be changed."""
        if isinstance(a, Assignable) and not copy and dtype in (None, a.dtype) and not kwargs.get("device"):
            return a
        return asarray(a, dtype, copy=copy, **kwargs)

    def same_or_astype(x: Assignable, dtype: Any, /, *, copy: bool = True, **kwargs: Any) -> Assignable:
        """As `xform.numpy.astype`, but the same array if `copy` is False and nothing is to be changed."""
        return x if not copy and x.dtype == dtype else astype(x, dtype, **kwargs)

    vars(out).update(asarray=same_or_asarray, astype=same_or_astype)
    for name in ("fill_diagonal", "place", "put", "put_along_axis"):
        vars(out)[name] = _writer(getattr(xnp, name))
    return out


def _writer(function: Callable[..., Any]) -> Callable[..., None]:
    """A function that changes its first argument."""

    @functools.wraps(function)
    def write(a: Assignable, *args: Any, **kwargs: Any) -> None:
        a.value = function(a.value, *_plain(args), **_plain(kwargs), inplace=False)

    return write


def _operator(name: str) -> Any:
    def method(self: Assignable, *others: Any) -> Any:
        return _wrapped(getattr(self.value, name)(*map(_plain, others)))

    method.__name__ = name
    return method


def _in_place(name: str, operation: Callable[[Any, Any], Any]) -> Any:
    def method(self: Assignable, other: Any) -> Assignable:
        self[...] = operation(self.value, _plain(other))
        return self

    method.__name__ = name
    return method


_ARITHMETIC = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and_",
    "or_",
    "xor",
    "lshift",
    "rshift",
]
_OTHERS = [
    "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "divmod", "rdivmod", "round", "bool", "int",
    "float", "complex", "index", "len", "contains", "format", "dlpack", "dlpack_device",
]  # fmt: skip


def _install() -> None:
    """Attach the operators of arrays."""
    for function in _ARITHMETIC:
        name = function.rstrip("_")
        for method in (f"__{name}__", f"__r{name}__"):
            setattr(Assignable, method, _operator(method))
        setattr(Assignable, f"__i{name}__", _in_place(f"__i{name}__", getattr(operator, function)))
    for name in _OTHERS:
        setattr(Assignable, f"__{name}__", _operator(f"__{name}__"))


_install()
