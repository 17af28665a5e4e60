"""A function that sees other modules, functions and values than those it was written with.

A `World` rebuilds a function: the same code, with globals in which NumPy's names stand for what `namespaces` gives, and
so on for all that it can reach: the functions that it calls, in its module and others of the user's, decorated or not,
closures, bound methods, modules, and imports inside. Arrays from outside are seen as arrays that can't be written.
Each thing is rebuilt when it is first looked up. Nothing that exists is changed.

What a name means is looked up in the real module whenever it isn't something that was replaced; and what was replaced
is compared at each call from outside, so that a function that was defined anew, or a variable that was set, is seen.

The user's functions are those that are in no directory of Python's or of installed packages, but for the package that
the function itself is from.

May import: `numpy_functions.namespaces`, `numpy_functions.arrays`, `xform.core`.
"""

import builtins
import dis
import functools
import inspect
import os
import re
import sysconfig
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from xform import numpy_functions as _package
from xform.core import tree
from xform.core.array import ArrayImpl
from xform.core.errors import PACKAGE, filtered_traceback
from xform.core.trace import Tracer
from xform.numpy_functions import (
    classes,
    methods,  # noqa: F401  (attaches them)
)
from xform.numpy_functions.arrays import Value, enter, leave, leave_all, lift
from xform.numpy_functions.evaluation import (
    MISSING,
    Evaluation,
    codes_of,
    content_of,
    file_of,
    wrappers,
)
from xform.numpy_functions.namespaces import GENERATORS, Generator, class_of, is_module, namespace_of, represented

_LIBRARY = __name__.split(".")[0]
_STANDARD = tuple({os.path.join(sysconfig.get_path(k), "") for k in ("stdlib", "platstdlib")})
_INSTALLED = re.compile(r".*[\\/](site|dist)-packages[\\/][^\\/]+")
_STORES = {name: dis.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")}


class Globals(dict):
    """The globals of rebuilt functions: `real` are those of the module."""

    def __init__(self, world: "World", real: dict[str, Any]):
        super().__init__(__name__=real.get("__name__"), __builtins__=world.builtins)
        self.world, self.real = world, real
        self.replaced: dict[str, Any] = {}  # name: what the module has, or had

    def __missing__(self, name: str) -> Any:
        value = self.real.get(name, MISSING)
        if value is MISSING:
            new = self.world.builtins[name]
        else:
            new = self.world.convert(value)
            if new is value:
                return value  # may change: look it up again
        self[name], self.replaced[name] = new, value
        return new

    def is_current(self) -> bool:
        """Whether the module still has what was replaced."""
        get = self.real.get
        return all(get(name, MISSING) is value for name, value in self.replaced.items())


class Module(types.ModuleType):
    """A module of the user's."""

    def __init__(self, module: types.ModuleType, world: "World"):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(__wrapped__=module, _world=world)

    def __getattr__(self, name: str) -> Any:
        return self._world.convert(getattr(self.__dict__["__wrapped__"], name))


class World:
    """All that one NumPy function, `root`, can reach."""

    def __init__(self, root: Callable[..., Any]):
        self.root = root
        code = _code_of(root)
        self.package = code and self._package_of(code.co_filename)
        self.builtins = dict(vars(builtins), __import__=self._import, float=class_of(float), complex=class_of(complex))
        self._forget()

    def _forget(self) -> None:
        self._globals: dict[int, Globals] = {}
        self._functions: dict[int, tuple[Any, Any]] = {}  # the original is kept, so that its id stays its own
        self._classes: dict[type, type] = {}
        self._cells: dict[int, tuple[types.CellType, types.CellType | None, Any]] = {}

    def function(self) -> Callable[..., Any]:
        """The root, rebuilt; anew if something that it reaches was replaced since."""
        known = all(g.is_current() for g in list(self._globals.values()))
        known = known and all(map(self._is_current, list(self._cells.values())))
        if not known or len(self._functions) > 1000:  # so many are arguments that won't be met again
            self._forget()
        return self.convert(self.root)

    def owns(self, file: str) -> bool:
        """Whether the code in a file is the user's."""
        if file.startswith((PACKAGE, "<frozen ")):
            return False
        package = self._package_of(file)
        return package is None or package == self.package

    @staticmethod
    def _package_of(file: str) -> str | None:
        """The installed package that a file is of, None if it is the user's own."""
        if (found := _INSTALLED.match(file)) is not None:
            return found[0]
        return "standard library" if file.startswith(_STANDARD) else None

    def convert(self, value: Any) -> Any:
        """What is seen of a value: itself if nothing has to be replaced."""
        converter = _CONVERTERS.get(type(value))
        if converter is not None:
            return converter(self, value)
        return self._other(value)

    def _other(self, value: Any) -> Any:
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, np.ndarray | Tracer):
            return enter(value)
        if callable(value):
            if is_module(getattr(value, "__module__", None)):
                return represented(value)
            if type(value).__module__.split(".")[0] == _LIBRARY and type(value).__module__ != __name__:
                return self._own(value)
        seen = self._class(type(value))
        return value if seen is type(value) or type(seen) is not classes.Rebuilt else classes.seen_as(value, seen)

    def _class(self, cls: type) -> type:
        if (found := self._classes.get(cls)) is None:
            found = cls
            if cls in (float, complex) or is_module(cls.__module__):
                found = represented(cls)
            elif classes.is_rebuilt(cls, self.owns):
                found = classes.rebuild(cls, self.convert, functools.partial(self._classes.__setitem__, cls))
            self._classes[cls] = found
        return found

    def enter(self, argument: Any) -> Any:
        """What is seen of an argument."""
        if type(argument) in _CONVERTERS and type(argument) not in (list, dict, tuple):
            return self.convert(argument)
        return tree.map(self.convert, argument, is_leaf=lambda x: classes.is_rebuilt(type(x), self.owns))

    # What is replaced, by type.

    def _module(self, module: types.ModuleType) -> Any:
        if is_module(module.__name__):
            return namespace_of(module)
        if module.__name__.split(".")[0] == _LIBRARY:
            return Module(module, self)
        is_own = type(module) is types.ModuleType and self.owns(file_of(module))
        return Module(module, self) if is_own else module

    def _function(self, function: types.FunctionType) -> Any:
        if type(function.__globals__) is Globals:
            return function
        if function in wrappers:
            return self.convert(function.__wrapped__)  # type: ignore[attr-defined]
        if function.__code__.co_filename.startswith(PACKAGE):
            return self._own(function)
        if not self.owns(function.__code__.co_filename):
            return represented(function) if is_module(function.__module__) else function
        found = self._functions.get(id(function))
        if found is None:
            found = self._functions[id(function)] = function, self._rebuilt(function)
            self._fill(function, found[1])
        return found[1]

    def _own(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of this library's: it takes and returns `Array`s, and so do functions that it is given."""
        if function is _package.numpy_function:
            return lambda f: f  # all functions are rebuilt here

        def outwards(x: Any) -> Any:
            return self.seen_outside(x) if isinstance(x, types.FunctionType | types.MethodType) else leave(x)

        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = tree.map(outwards, (args, kwargs), is_leaf=lambda x: isinstance(x, Value))
            return tree.map(lambda x: self._own(x) if callable(x) else lift(x), function(*args, **kwargs))

        return call

    def seen_outside(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A rebuilt function for callers outside."""
        return functools.wraps(function)(lambda *args, **kwargs: self.call(function, args, kwargs))

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a rebuilt function from outside."""
        out = function(*map(self.enter, args), **{k: self.enter(v) for k, v in kwargs.items()})
        return leave_all(out, classes.leave)

    def _rebuilt(self, function: types.FunctionType) -> types.FunctionType:
        code = function.__code__
        _check_stores(code, function.__qualname__)
        real = function.__globals__
        seen = self._globals.get(id(real))
        if seen is None:
            seen = self._globals[id(real)] = Globals(self, real)
        for inner in codes_of(code):
            if (
                not inner.co_flags & inspect.CO_OPTIMIZED
            ):  # the body of a class: names are looked up without __missing__
                for name in inner.co_names:
                    if name in real:
                        seen.setdefault(name, seen[name])
        cells = tuple(map(self._cell, code.co_freevars, function.__closure__ or ()))
        new = types.FunctionType(code, seen, function.__name__, None, cells)
        new.__dict__.update(function.__dict__)
        new.__qualname__, new.__module__, new.__doc__ = function.__qualname__, function.__module__, function.__doc__
        return new

    def _fill(self, function: types.FunctionType, new: types.FunctionType) -> None:
        """What may refer to the function itself."""
        if function.__defaults__ is not None:
            new.__defaults__ = tuple(map(self.convert, function.__defaults__))
        if function.__kwdefaults__ is not None:
            new.__kwdefaults__ = {k: self.convert(v) for k, v in function.__kwdefaults__.items()}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            _, seen, content = self._cells[id(cell)]
            if seen is None or content is MISSING:
                continue
            if _stores(function.__code__, "DEREF", name):
                raise NotImplementedError(
                    f"numpy_function: {function.__qualname__} assigns the nonlocal name {name!r}, which is "
                    f"{_kind(content)} outside; return the value instead"
                )
            try:
                seen.cell_contents  # noqa: B018  (filled already)
            except ValueError:
                seen.cell_contents = self.convert(content)

    def _cell(self, name: str, cell: types.CellType) -> types.CellType:
        """A cell of a closure: the same, which may change, unless its content is replaced."""
        known = self._cells.get(id(cell))
        if known is None:
            content = content_of(cell)
            replace = self._is_replaced(content)
            known = self._cells[id(cell)] = cell, types.CellType() if replace else None, content
        return known[1] or cell

    def _is_replaced(self, content: Any) -> bool:
        if type(content) in (types.FunctionType, types.MethodType, functools.partial):
            return True
        if isinstance(content, type) and classes.is_rebuilt(content, self.owns):
            return True  # it may be the one that is being rebuilt
        return content is not MISSING and self.convert(content) is not content

    def _is_current(self, record: tuple[types.CellType, types.CellType | None, Any]) -> bool:
        cell, seen, content = record
        now = content_of(cell)
        return now is content or (seen is None and not self._is_replaced(now))

    def _method(self, method: types.MethodType) -> Any:
        function, owner = self.convert(method.__func__), self.convert(method.__self__)
        same = function is method.__func__ and owner is method.__self__
        return method if same else types.MethodType(function, owner)

    def _partial(self, partial: functools.partial) -> Any:
        keywords = {k: self.convert(v) for k, v in partial.keywords.items()}
        return functools.partial(self.convert(partial.func), *map(self.convert, partial.args), **keywords)

    def _cached(self, function: Any) -> Any:
        """Of `functools.cache`: without the cache, as arrays can't be looked up in it."""
        original = self.convert(function.__wrapped__)
        return function if original is function.__wrapped__ else original

    def _tuple(self, value: tuple) -> tuple:
        new = tuple(map(self.convert, value))
        return value if all(map(lambda a, b: a is b, new, value)) else new

    def _table(self, value: Any) -> Any:
        """A dict or list; one of functions is a table, others are the user's own to change."""
        items = value.values() if type(value) is dict else value
        if not value or not all(callable(v) for v in items):
            return value
        return {k: self.convert(v) for k, v in value.items()} if type(value) is dict else [*map(self.convert, value)]

    def _import(self, name: str, globals: Any = None, *args: Any, **kwargs: Any) -> Any:
        """``import`` within the function."""
        real = globals.real if type(globals) is Globals else globals
        return self.convert(builtins.__import__(name, real, *args, **kwargs))


_CONVERTERS: dict[type, Callable[[World, Any], Any]] = {
    **dict.fromkeys((int, float, complex, bool, str, bytes, type(None), range), lambda world, value: value),
    types.ModuleType: World._module,
    types.FunctionType: World._function,
    types.MethodType: World._method,
    functools.partial: World._partial,
    functools._lru_cache_wrapper: World._cached,
    tuple: World._tuple,
    dict: World._table,
    list: World._table,
    ArrayImpl: lambda world, value: enter(value),
    np.ndarray: lambda world, value: enter(value),
    np.ufunc: lambda world, value: represented(value) if value.__name__ in vars(np) else value,
    **dict.fromkeys(GENERATORS, lambda world, value: Generator(value)),
    types.BuiltinFunctionType: lambda world, value: (
        represented(value) if is_module(value.__module__) or isinstance(value.__self__, GENERATORS) else value
    ),
}


def _code_of(function: Any) -> types.CodeType | None:
    """The code that a callable runs, None if that isn't Python's."""
    if isinstance(function, functools.partial):
        return _code_of(function.func)
    if isinstance(function, functools._lru_cache_wrapper):
        return _code_of(function.__wrapped__)
    if isinstance(function, types.FunctionType | types.MethodType):
        return function.__code__
    call = inspect.getattr_static(type(function), "__call__", None)
    return call.__code__ if isinstance(call, types.FunctionType) and not isinstance(function, type) else None


def _kind(x: Any) -> str:
    return f"a {type(x).__name__}"


def _stores(code: types.CodeType, kind: str, name: str | None = None) -> str | None:
    """The name of that kind (GLOBAL, DEREF) that the code, or a function in it, assigns, if any; `name` if it is."""
    wanted = {number for key, number in _STORES.items() if key.endswith(kind)}
    if wanted & set(code.co_code[::2]):
        for instruction in dis.get_instructions(code):
            if instruction.opcode in wanted and name in (None, instruction.argval):
                return instruction.argval
    inner = (c for c in code.co_consts if isinstance(c, types.CodeType))
    if name is not None:
        inner = (c for c in inner if name in c.co_freevars)
    return next((found for c in inner if (found := _stores(c, kind, name))), None)


def _check_stores(code: types.CodeType, name: str) -> None:
    if (stored := _stores(code, "GLOBAL")) is not None:
        raise NotImplementedError(
            f"numpy_function: {name} assigns the global name {stored!r}. A function that is transformed can't do that: "
            "return the value, or keep it in an object that is changed (a list, a dict)"
        )


def make(f: Any) -> Any:
    """`numpy_function`."""
    if _code_of(f) is None:
        name = getattr(f, "__name__", None) or repr(f)
        raise TypeError(
            f"numpy_function takes a function that is written in Python, got {name} of type {type(f).__name__}"
        )
    if not isinstance(f, types.FunctionType | types.MethodType | functools.partial | functools._lru_cache_wrapper):
        f = f.__call__
    world = World(f)
    evaluation = Evaluation(f, world.owns)

    def numpy_function(*args: Any, **kwargs: Any) -> Any:
        try:
            if evaluation.is_plain(args, kwargs):
                return evaluation(args, kwargs)
            return world.call(world.function(), args, kwargs)
        except Exception as error:
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise

    functools.update_wrapper(numpy_function, f)
    wrappers.add(numpy_function)
    return numpy_function
