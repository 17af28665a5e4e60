"""NumPy's functions as a NumPy function sees them: one `Operation` each.

What depends on nothing traced is computed by NumPy itself, when the function runs, also while it is compiled: so all of
NumPy is there, shapes and loop counts are numbers, and constants are constants. With a traced argument the function of
the same name in `xform.numpy` is called. Promotion of ufuncs is NumPy's in both cases.

Three kinds of functions are more than their results: those that write into an argument (`_WRITERS`), those whose result
is a view (`_VIEWS`), and those that only ask for shape and dtype (`_OF_TYPES`), whose result is never traced.

May import: `numpy_functions.arrays`, `numpy_functions.memory`, `xform.numpy`, `xform.core`.
"""

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import xform.numpy as xnp
from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import TracerArrayConversionError, filtered_traceback
from xform.core.source import current
from xform.core.trace import Tracer
from xform.numpy_functions.arrays import Class, NumpyArray, NumpyScalar, Value, leave, lift, lowered
from xform.numpy_functions.memory import Buffer, Lens, Memory, Window


def words(text: str) -> list[str]:
    """A list of names."""
    return text.split()


# ---- Kinds of functions --------------------------------------------------------------------------------------

#: Views that are the same elements with their axes in another order.
_PERMUTING = frozenset(["transpose", "permute_dims", "swapaxes", "moveaxis", "rollaxis", "matrix_transpose", "T", "mT"])
#: Functions whose result may be a view of the first array, or has a layout of its own.
_VIEWS = frozenset(
    words(
        """
    reshape ravel squeeze expand_dims diagonal diag flip fliplr flipud rot90 broadcast_to
    broadcast_arrays split array_split hsplit vsplit dsplit unstack atleast_1d atleast_2d atleast_3d
    array asarray asanyarray ascontiguousarray require real imag real_if_close einsum copy
    ndarray.astype ndarray.view ndarray.conj ndarray.conjugate
    """
    )
)
#: Those of them in which NumPy copies or not by the layout of the memory.
_BY_LAYOUT = frozenset(["reshape", "ravel", "ascontiguousarray", "require"])
#: Functions of shapes and dtypes.
_OF_TYPES = frozenset(
    words(
        """
    zeros_like ones_like empty_like shape ndim size result_type can_cast common_type min_scalar_type
    iscomplexobj isrealobj isscalar iterable broadcast_shapes diag_indices_from tril_indices_from
    triu_indices_from
    """
    )
)
#: Uninitialised memory would make programs that differ from trace to trace.
_INITIALISED = {"empty": np.zeros, "empty_like": np.zeros_like}
#: Arguments about layout and casting, which traced arrays don't have.
_WITHOUT_MEANING = frozenset(["order", "subok", "casting", "like"])
#: Types of functions that a user may give to one of NumPy's.
_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
#: Methods of ``x.at[i]`` for ``ufunc.at``.
AT = {"add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide", "power": "power",
       "minimum": "min", "maximum": "max"}  # fmt: skip


# ---- Functions that write into an argument -------------------------------------------------------------------


def _not_in_place(name: str) -> Callable[..., Any]:
    def write(a: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(xnp, name)(a, *args, inplace=False, **kwargs)

    return write


def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> Any:
    check_casting("copyto", xnp.asarray(src).dtype, dst.dtype, casting)
    return xnp.broadcast_to(src, dst.shape) if where is True else xnp.where(where, src, dst)


def _sorted_in_place(a: Any, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    return xnp.sort(a, axis)


#: What the first argument becomes.
_WRITERS: dict[str, Callable[..., Any] | None] = {
    "fill_diagonal": _not_in_place("fill_diagonal"),
    "put": _not_in_place("put"),
    "place": _not_in_place("place"),
    "put_along_axis": _not_in_place("put_along_axis"),
    "putmask": lambda a, mask, values: xnp.where(mask, xnp.resize(xnp.asarray(values), a.shape), a),
    "copyto": _copyto,
    "random.shuffle": None,
    "ndarray.put": _not_in_place("put"),
    "ndarray.sort": _sorted_in_place,
    "ndarray.partition": lambda a, kth, axis=-1: xnp.partition(a, kth, axis),
    "ndarray.fill": lambda a, value: xnp.broadcast_to(xnp.asarray(value), a.shape),
}


def check_casting(name: str, source: Any, target: Any, casting: str = "same_kind") -> None:
    """TypeError, as NumPy's, if results of one dtype can't be written into an array of another."""
    if not dtypes.can_cast(source, target, casting):
        raise TypeError(f"numpy.{name}: can't cast from {source!r} to {target!r} with casting rule {casting!r}")


# ---- Arguments -----------------------------------------------------------------------------------------------


def is_traced(xs: Iterable[Any]) -> bool:
    """Whether something traced is among arguments."""
    for x in xs:
        kind = type(x)
        if kind is NumpyArray:
            if type(x.memory.read()) is not np.ndarray:
                return True
        elif kind is NumpyScalar or isinstance(x, Tracer) or ((kind is list or kind is tuple) and is_traced(x)):
            return True
    return False


def to_numpy(x: Any) -> Any:
    """An argument for NumPy."""
    return callback(x) if type(x) in _FUNCTIONS else lowered(x)


def to_xform(x: Any) -> Any:
    """An argument for `xform.numpy`; what is known and no array (an axis, a shape) stays as it is."""
    kind = type(x)
    if kind is NumpyArray or kind is NumpyScalar:
        return x.export()
    if kind is list or kind is tuple:
        return kind([to_xform(e) for e in x])
    if kind in _FUNCTIONS:
        return callback(x)
    return x.genuine if kind is Class else x


def callback(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function that is an argument of NumPy's, as that of `apply_along_axis`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        out = function(*[lift(a) for a in args], **kwargs)
        return leave(out) if is_traced((out,)) else to_numpy(out)

    return call


def to_type(x: Any) -> Any:
    """What has the shape and dtype of an argument."""
    value = lowered(x)
    if isinstance(value, Tracer):
        return value.dtype.type(0) if type(x) is NumpyScalar else np.empty(value.shape, value.dtype)
    return value


def promoted(args: list[Any]) -> list[Any]:
    """Arguments of a ufunc in NumPy's common dtype: `xform.numpy` promotes integers and floats otherwise."""
    kinds = {
        a.dtype for a in args if isinstance(a, np.ndarray | np.generic) or (isinstance(a, Array) and not a.weak_type)
    }
    if len(kinds) < 2 or not all(d.kind in "biufc" for d in kinds):
        return args
    common = dtypes.canonicalize_dtype(np.result_type(*kinds, *[a for a in args if type(a) in (int, float, complex)]))
    return [xnp.astype(a, common) if getattr(a, "dtype", common) != common and hasattr(a, "shape") else a for a in args]


# ---- Operations ----------------------------------------------------------------------------------------------


class Operation:
    """A function of NumPy, called with the values of a NumPy function.

    Parameters
    ----------
    function : callable
        NumPy's.
    counterpart : callable or None
        That of `xform.numpy`.
    name : str
        As in NumPy; ``ndarray.name`` for a method.
    """

    def __init__(self, function: Callable[..., Any], counterpart: Callable[..., Any] | None, name: str):
        self.function: Any = _INITIALISED.get(name, function)
        self.counterpart, self.name = counterpart, name
        self.__name__, self.__doc__, self.__wrapped__ = name.split(".")[-1], function.__doc__, function
        self._out, self._names_from_out = _names_from_out(function)
        short = name.removeprefix("ndarray.").removeprefix("linalg.")
        if name in _WRITERS:
            self._call = self._writing
        elif short in _PERMUTING:
            self._call = self._permuting
        elif short in _VIEWS or name in _VIEWS:
            self._call = self._viewing
        elif name in _OF_TYPES:
            self._call = self._of_types
        else:
            self._call = self._traced
        self._acts_on_memory = name in _WRITERS or short in _PERMUTING

    def __repr__(self) -> str:
        return f"<numpy.{self.name} in a NumPy function>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) > self._out:
                rest = args[self._out :]
                named = zip(self._names_from_out, rest) if self._names_from_out else [("out", rest)]
                args, kwargs = args[: self._out], {**kwargs, **dict(named)}
            if kwargs:
                if kwargs.get("out") is not None:
                    return self._into(args, kwargs)
                if self.name == "nan_to_num" and not kwargs.get("copy", True):
                    args[0][...] = self(*args, **{**kwargs, "copy": True})
                    return args[0]
                traced = is_traced(args) or is_traced(kwargs.values())
            else:
                traced = is_traced(args)
            if not traced and not self._acts_on_memory:
                return self._known(args, kwargs)
            return self._call(args, kwargs)
        except Exception as error:
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise

    def _known(self, args: Any, kwargs: Any) -> Any:
        """By NumPy."""
        out = self.function(*[to_numpy(a) for a in args], **{k: to_numpy(v) for k, v in kwargs.items()})
        kind = type(out)
        if kind is np.ndarray and out.base is None:
            if not any(out is lowered(a) for a in args):
                return NumpyArray(Buffer(out))
        elif kind is not np.ndarray and kind is not tuple and kind is not list:
            return lift(out)
        return self._aliased(out, args, kwargs)

    def _aliased(self, out: Any, args: Any, kwargs: Any) -> Any:
        """The result of a call that may be a view of an argument."""
        places: list[tuple[int, int | None]] = [(k, None) for k in range(len(args))]
        places += [(k, j) for k, a in enumerate(args) if type(a) in (list, tuple) for j in range(len(a))]
        operands = [args[k] if j is None else args[k][j] for k, j in places]

        def again(which: int) -> Callable[[Any], Any]:
            k, j = places[which]

            def call(value: Any) -> Any:
                new = list(args)
                new[k] = value if j is None else type(args[k])([*args[k][:j], value, *args[k][j + 1 :]])
                return self._anew(new, kwargs, type(value) is np.ndarray)

            return call

        return lift(out, operands, again)

    def _anew(self, args: Any, kwargs: Any, known: bool) -> Any:
        """The result for elements that may have become traced."""
        if known:
            return self.function(*map(to_numpy, args), **{k: to_numpy(v) for k, v in kwargs.items()})
        return self._by_xform(args, kwargs)

    def _counterpart(self, args: Any = ()) -> Callable[..., Any]:
        if self.counterpart is None:
            tracer = next((v for a in args for v in _flat(a) if isinstance(v, Tracer)), None)
            shown = f" of {tracer.aval}.{tracer._origin()}" if tracer is not None else ""
            raise TracerArrayConversionError(
                f"numpy.{self.name} has no counterpart in xform.numpy that works on traced arrays, such as this one"
                f"{shown}\nUse other functions of NumPy."
            )
        return self.counterpart

    def _by_xform(self, args: Any, kwargs: Any) -> Any:
        """What `xform.numpy` gives."""
        kwargs = {k: to_xform(v) for k, v in kwargs.items() if k not in _WITHOUT_MEANING}
        return self._counterpart(args)(*map(to_xform, args), **kwargs)

    def _traced(self, args: Any, kwargs: Any) -> Any:
        """The result of `xform.numpy`."""
        out = lift(self._by_xform(args, kwargs))
        if not all(map(_is_in_order, args)):
            for x in out if isinstance(out, tuple | list) else (out,):
                if type(x) is NumpyArray:
                    x.memory.in_order = x.ndim < 2  # type: ignore[attr-defined]  # a `Buffer`
        return out

    def _of_types(self, args: Any, kwargs: Any) -> Any:
        return lift(self.function(*[to_type(a) for a in args], **{k: to_type(v) for k, v in kwargs.items()}))

    def _permuting(self, args: Any, kwargs: Any) -> Any:
        array, *rest = args
        if type(array) is not NumpyArray:
            return (self._traced if is_traced(args) else self._known)(args, kwargs)
        lengths = self.function(np.empty(range(1, array.ndim + 1), bool), *rest, **kwargs).shape
        return array if array.ndim < 2 else NumpyArray(Window(array.memory, order=tuple(n - 1 for n in lengths)))

    def _viewing(self, args: Any, kwargs: Any) -> Any:
        k = 1 if self.name == "einsum" else 0
        array = args[k] if len(args) > k else None
        others = [*args[:k], *args[k + 1 :]]
        if type(array) is not NumpyArray or is_traced(others) or (k and len(args) > 2):
            return self._traced(args, kwargs)
        known = array.memory.layout()
        unclear = known is None and self.__name__ in _BY_LAYOUT and array.ndim > 1
        layout = np.zeros(array.shape, array.dtype) if known is None else known

        def call(value: Any) -> Any:
            return self._anew([*args[:k], value, *args[k + 1 :]], kwargs, type(value) is np.ndarray)

        seen = call(layout)
        if seen is layout and not unclear:
            return array
        return _views(
            seen, layout, array.memory, call, self.name, known is None and self.name != "ndarray.copy", unclear
        )

    def _writing(self, args: Any, kwargs: Any) -> Any:
        target, *rest = args
        if type(target) is not NumpyArray:
            if isinstance(target, Value | Array):
                raise TypeError(f"numpy.{self.name}: only an array can be written to, got {target!r}")
            return self._known(args, kwargs)
        target.memory.check()
        if not is_traced(args) and not is_traced(kwargs.values()):
            new = [target.memory.writable(), *map(to_numpy, rest)]
            self.function(*new, **{k: to_numpy(v) for k, v in kwargs.items()})
            return None
        writer = _WRITERS[self.name] or self._counterpart(args)
        value = writer(target.export(), *map(to_xform, rest), **{k: to_xform(v) for k, v in kwargs.items()})
        target.memory.write(Ellipsis, value)
        return None

    def _into(self, args: Any, kwargs: Any) -> Any:
        """With ``out=``."""
        kwargs = dict(kwargs)
        out = kwargs.pop("out")
        outs = out if isinstance(out, tuple) else (out,)
        if not is_traced(args) and not is_traced(kwargs.values()) and not is_traced(outs):
            memories = tuple(o.memory.writable() if type(o) is NumpyArray else o for o in outs)
            kwargs = {k: to_numpy(v) for k, v in kwargs.items()}
            self.function(*map(to_numpy, args), out=memories if isinstance(out, tuple) else memories[0], **kwargs)
        else:
            where = kwargs.pop("where", True) if isinstance(self.function, np.ufunc) else True
            results = self(*args, **kwargs)
            for o, result in zip(outs, results if type(results) is tuple else (results,), strict=True):
                write_result(self.name, o, leave(result), where)
        return outs if isinstance(out, tuple) and len(outs) > 1 else outs[0]


def _names_from_out(function: Any) -> tuple[int, list[str]]:
    """Where ``out`` is among the arguments by position, and the names from there on."""
    if isinstance(function, np.ufunc):
        return function.nin, []
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a function in C that doesn't say
        return _FAR, []
    names = [k for k, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return (names.index("out"), names[names.index("out") :]) if "out" in names else (_FAR, [])


_FAR = 1000  # more arguments than there are


def _flat(x: Any) -> Iterable[Any]:
    x = lowered(x)
    return [v for e in x for v in _flat(e)] if isinstance(x, list | tuple) else [x]


def _is_in_order(x: Any) -> bool:
    """Whether results for these arguments have their elements in C order."""
    if type(x) is not NumpyArray or x.ndim < 2:
        return all(map(_is_in_order, x)) if isinstance(x, list | tuple) else True
    layout = x.memory.layout()
    if layout is None:
        return False
    strides = [s for s, n in zip(layout.strides, layout.shape, strict=True) if n > 1]
    return all(s > 0 for s in strides) and strides == sorted(strides, reverse=True)


def _views(seen: Any, layout: np.ndarray, memory: Memory, call: Any, name: str, unsure: bool, unclear: bool) -> Any:
    """What a function gives that may return views: as `seen`, its result for an ndarray of the same layout.

    `unsure`: it isn't the same layout. `unclear`: and by that it is a view or none.
    """
    if isinstance(seen, list | tuple):
        parts = (lambda v, i=i: call(v)[i] for i in range(len(seen)))
        return type(seen)([_views(s, layout, memory, f, name, unsure, unclear) for s, f in zip(seen, parts)])
    if not unclear and not (isinstance(seen, np.ndarray) and np.may_share_memory(seen, layout)):
        out = lift(call(memory.export()))
        if type(out) is NumpyArray and out.ndim > 1:
            out.memory.in_order = not unsure and seen.flags.c_contiguous  # type: ignore[attr-defined]  # a `Buffer`
        return out
    name = name.removeprefix("ndarray.")
    put = _PUT.get(name) if layout.dtype.kind == "c" else None
    reason = ""
    if not seen.flags.writeable or (seen.dtype != layout.dtype and put is None):
        reason = f"numpy.{name} returns a view that can't be written to"
    return NumpyArray(Lens(memory, call, put, reason, unclear, current(3) if unclear else None))


#: The elements of an array from those before and those of a view that isn't made of whole elements.
_PUT = {"real": lambda before, real: real + 1j * before.imag, "imag": lambda before, imag: before.real + 1j * imag}


def write_result(name: str, target: Any, result: Any, where: Any = True) -> None:
    """Write the result of an operation into an array, as ``out=`` and operators like ``+=`` do."""
    if type(target) is not NumpyArray:
        raise TypeError(
            f"numpy.{name}: out must be an array that was made by NumPy's functions within the function that was given "
            f"to numpy_function, got {type(target).__name__}"
        )
    check_casting(name, result.dtype, target.dtype)
    if np.broadcast_shapes(np.shape(result), target.shape) != target.shape:
        raise ValueError(
            f"non-broadcastable output operand with shape {target.shape} doesn't match the broadcast shape "
            f"{np.shape(result)}"
        )
    if where is not True:
        result = xnp.where(to_xform(where), result, target.export())
    target.memory.write(Ellipsis, result)


class Ufunc(Operation):
    """A ufunc: with NumPy's promotion, and methods."""

    def _counterpart(self, args: Any = ()) -> Callable[..., Any]:
        return self.counterpart or self.function  # that of another library finds `Array`'s by NumPy's protocol

    def _by_xform(self, args: Any, kwargs: Any) -> Any:
        kwargs = {k: to_xform(v) for k, v in kwargs.items() if k not in _WITHOUT_MEANING}
        dtype, where = kwargs.pop("dtype", None), kwargs.pop("where", True)
        new = promoted([to_xform(a) for a in args])
        if dtype is not None:
            new = [xnp.astype(xnp.asarray(a), dtype) for a in new]
        out = self._counterpart(args)(*new, **kwargs)
        # Without out=, NumPy leaves the other elements undefined.
        return out if where is True else xnp.where(where, out, xnp.zeros_like(out))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__dict__["function"], name)
        if callable(found):
            method = getattr(self.counterpart, name, None)
            found = (
                _At(found, None, f"{self.name}.at") if name == "at" else Operation(found, method, f"{self.name}.{name}")
            )
            self.__dict__[name] = found
        return found


class _At(Operation):
    """``ufunc.at(a, indices, b)``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        a, index, *values = args
        if type(a) is not NumpyArray:
            return super().__call__(*args, **kwargs)
        a.memory.check()
        if not is_traced(args):
            return self.function(a.memory.writable(), *map(to_numpy, [index, *values]))
        method = AT.get(self.name.split(".")[0])
        if method is None or len(values) != 1:
            return self._counterpart(args)
        a.memory.write(Ellipsis, getattr(a.export().at[to_xform(index)], method)(to_xform(values[0])))
        return None


_operations: dict[int, tuple[Any, Operation]] = {}


def operation_of(function: Any, name: str | None = None, counterpart: Any = None) -> Operation:
    """The operation of a function of NumPy's."""
    found = _operations.get(id(function))
    if found is None:
        if name is None:
            name, counterpart = _full_name(function), counterpart_of(function)
        make = Ufunc if isinstance(function, np.ufunc) else Operation
        found = _operations[id(function)] = function, make(function, counterpart, name)
    return found[1]


def _full_name(function: Any) -> str:
    module = getattr(function, "__module__", None) or "numpy"
    return ".".join([*module.split(".")[1:], function.__name__])


def counterpart_of(function: Any) -> Any:
    """The function of the same name and place in `xform.numpy`, or None."""
    ours: Any = xnp
    module = getattr(function, "__module__", None) or "numpy"  # that of a ufunc
    for part in module.split(".")[1:]:
        ours = getattr(ours, part, None)
    found = getattr(ours, function.__name__, None)
    return found if callable(found) else None
