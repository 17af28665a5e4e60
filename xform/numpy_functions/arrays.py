"""What a NumPy function sees instead of ndarrays and NumPy's scalars: `NumpyArray` and `NumpyScalar`.

A `NumpyArray` stands for an ndarray, whose elements (in `memory`) are traced or not. A `NumpyScalar` stands for a
scalar, which can't change, and is always traced: known scalars are NumPy's own. Their operators and methods are
attached by `numpy_functions.methods`.

May import: `numpy_functions.memory`, `xform.core`.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import xform.numpy as xnp
from xform.core import dtypes, tree
from xform.core.array import Array, ArrayImpl, own
from xform.core.errors import TracerArrayConversionError, api_boundary
from xform.core.trace import Tracer
from xform.numpy_functions.memory import Buffer, Lens, Memory, Window, is_basic, is_concrete, is_simple


class Value:
    """What arrays and scalars have in common; `read` gives an ndarray or a traced array."""

    __slots__ = ()
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:  # what `numpy_functions.methods` attaches

        def __getattr__(self, name: str) -> Any: ...

    def read(self) -> Any:
        """The value now: an ndarray, not to be changed, or a traced array."""
        raise NotImplementedError

    def export(self) -> Array:
        """The value now as an `Array`."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.read().shape

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self.read().dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.read().ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.read().size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def __jax_array__(self) -> Array:
        return self.export()

    def __bool__(self) -> bool:
        return bool(self.read())

    @api_boundary
    def __index__(self) -> int:
        return self.read().__index__()

    @api_boundary
    def __int__(self) -> int:
        return int(self.read())

    @api_boundary
    def __float__(self) -> float:
        return float(self._number("float"))

    @api_boundary
    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def _number(self, kind: str) -> Any:
        value = self.read()
        if isinstance(value, Tracer):
            raise TracerArrayConversionError(
                f"a number of Python is needed where there is a traced value of {value.aval}, whose derivative would "
                f"be lost in it.{value._origin()}\nUse NumPy's functions (np.sin), and write into arrays that were "
                f"made by NumPy's functions within the function that was given to numpy_function"
            )
        return value

    @api_boundary
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._ndarray(), dtype, copy=copy)

    def _ndarray(self) -> Any:
        value = self.read()
        if isinstance(value, Tracer):
            raise TracerArrayConversionError(
                f"an ndarray is needed where there is a traced array of {value.aval}.{value._origin()}\nThis happens "
                "in functions that aren't written in Python with NumPy, or that belong to another library: give those "
                "to xform.numpy_function themselves"
            )
        return value

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __format__(self, spec: str) -> str:
        value = self.read()
        return str(self) if isinstance(value, Tracer) else format(value, spec)

    def __str__(self) -> str:
        return str(self.read())

    def __repr__(self) -> str:
        return repr(self.read())


class NumpyScalar(Value):
    """A traced scalar."""

    __slots__ = ("value",)

    def __init__(self, value: Tracer):
        self.value = value

    def read(self) -> Tracer:
        """The traced array of rank 0."""
        return self.value

    export = read

    def __getitem__(self, index: Any) -> Any:
        out = self.value[lowered_index(index)]
        return lift(out) if index == () else NumpyArray(Buffer(out))

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(f"'numpy.{self.dtype}' object does not support item assignment")


_NUMBERS = frozenset([int, float, np.float64, np.int64])


def _are_numbers(index: tuple[Any, ...]) -> bool:
    return all(type(i) is int for i in index)


class NumpyArray(Value):
    """An array that can be written to."""

    __slots__ = ("memory",)

    def __init__(self, memory: Memory):
        self.memory = memory

    def read(self) -> Any:
        """The elements now: an ndarray, not to be changed, or a traced array."""
        return self.memory.read()

    def export(self) -> Array:
        """The elements now as an `Array`."""
        return self.memory.export()

    def _ndarray(self) -> Any:
        value = super()._ndarray()
        try:
            return self.memory.writable()  # who gets it may write to it
        except ValueError:
            value = value.view()
            value.flags.writeable = False
            return value

    def __len__(self) -> int:
        return len(self.read())

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        memory = self.memory
        value = memory.read()
        simple = is_simple(index)
        if not simple:
            index = lowered_index(index)
        if type(value) is np.ndarray and (simple or is_concrete(index)):
            out = value[index]
            if type(out) is not np.ndarray:
                return out
            if not simple and not is_basic(index):
                return NumpyArray(Buffer(out))
            window = Window(memory, index)
            window.seen, window.cached = value, out
            return NumpyArray(window)
        elements = (index,) if type(index) is int else index
        if (
            type(memory) is Buffer
            and type(elements) is tuple
            and len(elements) == value.ndim
            and _are_numbers(elements)
        ):
            return lift(value[index])
        return self._part(index)

    @api_boundary
    def _part(self, index: Any) -> Any:
        memory = self.memory
        if not is_basic(index):
            return lift(memory.export()[index])
        window = Window(memory, index)
        out = window.read()
        has_ellipsis = any(i is Ellipsis for i in (index if type(index) is tuple else (index,)))
        return NumpyArray(window) if out.ndim or has_ellipsis else lift(out)

    def __setitem__(self, index: Any, value: Any) -> None:
        memory = self.memory
        if type(index) is int and type(value) in _NUMBERS and type(memory.read()) is np.ndarray:
            memory.writable()[index] = value
            return
        simple = is_simple(index)
        if not simple:
            index = lowered_index(index)
        if type(value) is NumpyArray and type(value.memory) is Window and (simple or is_basic(index)):
            window = value.memory
            if window.parent is memory and window.order is None and simple and window.index == index:
                return  # the second half of `a[i] += x`
            if window.same_as(Window(memory, index)):
                return
        value = lowered(value)
        if isinstance(value, list | tuple) and not is_concrete(value):
            value = xnp.array(value)
        memory.write(index, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes; to assign others keeps the memory."""
        return self.memory.read().shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        reshaped = self.reshape(shape)
        if reshaped is not self and type(reshaped.memory) is Buffer:
            raise AttributeError("incompatible shape for in-place modification; use `.reshape()` to make a copy")
        self.memory = reshaped.memory

    @property
    def flat(self) -> "NumpyArray":
        """The elements in C order; they can be assigned to."""
        return NumpyArray(Lens(self.memory, lambda v: v.reshape(-1)))

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[...] = value

    @property
    def base(self) -> Any:
        """The array that this one is a view of, or None."""
        return None if type(self.memory) is Buffer else NumpyArray(self.memory.parent)  # type: ignore[attr-defined]


_SCALAR_TYPES = frozenset([*np.sctypeDict.values(), float, complex])


class Class(type):
    """A class that holds a scalar or an array, as NumPy functions see it: ``np.float64``, ``np.ndarray``, ``float``.

    It stands for NumPy's (or Python's) own wherever a dtype or class is wanted. Called with something traced, it
    converts that; and traced values are instances of it.
    """

    genuine: Any

    def __new__(cls, genuine: type) -> "Class":
        content: dict[str, Any] = {"genuine": genuine, "__doc__": genuine.__doc__, "__module__": genuine.__module__}
        if genuine in _SCALAR_TYPES:
            content["dtype"] = np.dtype(genuine)
        return super().__new__(cls, genuine.__name__, (), content)

    def __init__(cls, genuine: type):
        super().__init__(genuine.__name__, (), {})

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and isinstance(args[0], Value | Array):
            value = lowered(args[0])
            if isinstance(value, Tracer):
                return lift(value.astype(cls.dtype))
            return lift(cls.genuine(value, **kwargs))
        if cls.genuine is np.ndarray:  # without the content of uninitialised memory
            return lift(np.zeros(*args, **kwargs))
        return cls.genuine(*args, **kwargs)

    def __instancecheck__(cls, x: Any) -> bool:
        if type(x) is NumpyArray:
            return cls.genuine is np.ndarray
        return isinstance(x, cls.genuine) or (type(x) is NumpyScalar and issubclass(x.dtype.type, cls.genuine))

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(getattr(other, "genuine", other), cls.genuine)

    def __eq__(cls, other: Any) -> bool:
        return cls is other or cls.genuine == other

    def __hash__(cls) -> int:
        return hash(cls.genuine)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.genuine, name)


# ---- Between NumPy's and the library's values and these ------------------------------------------------------


def lift(out: Any, operands: Any = (), again: Any = None) -> Any:
    """What a NumPy function sees of a result: a `Value` if it is an array or traced; containers of them likewise.

    `operands` are the arguments of the call. What shares memory with one of them is a view of it, and ``again(k)(v)``
    does the call again with elements v for the k-th of them.
    """
    kind = type(out)
    if kind is np.ndarray:
        for k, x in enumerate(operands):
            value = x.memory.read() if type(x) is NumpyArray else x
            if type(value) is np.ndarray:
                if out is value:
                    return x
                if out.base is not None and np.may_share_memory(out, value):
                    return NumpyArray(Lens(x.memory, again(k))) if type(x) is NumpyArray else out
        return NumpyArray(Buffer(out))
    if isinstance(out, Array):
        if out.ndim:
            return NumpyArray(Buffer(out))
        return NumpyScalar(out) if isinstance(out, Tracer) else np.asarray(out)[()]
    if kind is tuple or kind is list:
        return kind([lift(x, operands, again and _nth(again, i)) for i, x in enumerate(out)])
    if isinstance(out, tuple) and hasattr(out, "_fields"):
        return kind(*lift(tuple(out), operands, again))
    return out


def _nth(again: Any, i: int) -> Any:
    return lambda k: lambda v: again(k)(v)[i]


def lowered(x: Any) -> Any:
    """The value of an argument for NumPy, or traced: ndarrays, NumPy's scalars, arrays, lists of them as they are."""
    kind = type(x)
    if kind is NumpyArray:
        return x.memory.read()
    if kind is NumpyScalar:
        return x.value
    if kind is ArrayImpl:
        return np.asarray(x)[()] if not x.ndim else np.asarray(x)
    if kind is list or kind is tuple:
        return kind([lowered(e) for e in x])
    return x.genuine if kind is Class else x


def lowered_index(index: Any) -> Any:
    """An index for `Memory`: values that are known although they are traced are known."""
    kind = type(index)
    if kind is tuple:
        return tuple([i if type(i) is int else lowered_index(i) for i in index])
    if kind is slice:
        parts = (index.start, index.stop, index.step)
        return slice(*map(lowered_index, parts)) if any(isinstance(p, Value | Array) for p in parts) else index
    index = lowered(index)
    if isinstance(index, Tracer) and (known := index.known()) is not None:
        index = np.asarray(known)
    return index[()] if type(index) is np.ndarray and not index.ndim else index


OUTSIDE = "an argument of the function, or comes from outside of it"


def enter(x: Any) -> Any:
    """What a NumPy function sees of a value from outside: an array that can be read, not written."""
    if isinstance(x, np.ndarray):
        if type(x) is not np.ndarray:
            return x
        x = x.view()
        x.flags.writeable = False
        return NumpyArray(Buffer(x, OUTSIDE))
    if isinstance(x, ArrayImpl | Tracer):
        return NumpyArray(Buffer(x, OUTSIDE)) if x.ndim else lift(x)
    return x


def leave(x: Any) -> Any:
    """What is seen outside of a value that a NumPy function returns."""
    if isinstance(x, Value):
        return x.export()
    if type(x) is np.ndarray and x.dtype in dtypes.kinds:
        return xnp.array(x)
    return own(x) if isinstance(x, np.ndarray | np.generic) and x.dtype in dtypes.kinds else x


def leave_all(out: Any, others: Callable[[Any], Any] = lambda x: x) -> Any:
    """The same for a tree of values; `others` gives what is seen of objects that are none."""
    kind = type(out)
    if kind is NumpyArray or kind is NumpyScalar:
        return out.export()
    return tree.map(lambda x: others(leave(x)), out, is_leaf=lambda x: isinstance(x, Value))
