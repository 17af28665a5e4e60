"""Whether a NumPy function can be evaluated as it is: nothing is traced, and it starts no transformation.

Then NumPy computes what it would have computed without this library, in the same time. A transformation that starts
within the function would need it rebuilt; so what the function can reach is searched for anything of this library:
the names in its code, in the module and the closure, and in all functions and classes of the user's among them. When in
doubt it is rebuilt.

May import: `numpy_functions.arrays`, `xform.core`.
"""

import dis
import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xform.core import tree
from xform.core.array import ArrayImpl
from xform.core.config import state
from xform.core.errors import PACKAGE
from xform.numpy_functions.arrays import OUTSIDE, leave_all

#: What isn't there.
MISSING = object()
#: Packages that don't call this library, but for what they are given.
_HARMLESS = sys.stdlib_module_names | {"numpy", "scipy", "math"}
#: Names by which code can reach what can't be seen in it.
_OPEN = frozenset(["eval", "exec", "globals", "__import__", "import_module"])
_ATOMS = (int, float, complex, str, bytes, type(None), range, slice, np.generic, np.dtype, np.ndarray)
_IMPORT = dis.opmap["IMPORT_NAME"]


class Reach:
    """What a function can reach, as far as it was looked up in modules and closures.

    Parameters
    ----------
    root : callable
    owns : function of the name of a file
        Whether it is the user's; other files are of packages.
    """

    def __init__(self, root: Any, owns: Callable[[str], bool]):
        self.owns = owns
        self.looked_up: list[tuple[dict[str, Any], str, Any]] = []
        self.cells: list[tuple[types.CellType, Any]] = []
        self.transforms = self._find(root)

    def is_current(self) -> bool:
        """Whether all names still mean the same."""
        known = all(names.get(name, MISSING) is value for names, name, value in self.looked_up)
        return known and all(content_of(cell) is value for cell, value in self.cells)

    def _find(self, root: Any) -> bool:
        """Whether anything of this library is reached, or may be."""
        waiting, seen = [root], {}
        while waiting:
            value = waiting.pop()
            if isinstance(value, _ATOMS) or id(value) in seen:
                continue
            seen[id(value)] = value  # what is kept keeps its id
            found = self._next(value)
            if found is None:
                return True
            waiting += found
        return False

    def _next(self, value: Any) -> Iterable[Any] | None:
        """What a value leads to; None if that is this library."""
        if isinstance(value, list | tuple | set | frozenset):
            return value
        if isinstance(value, dict):
            return value.values()
        if isinstance(value, types.MethodType):
            return value.__func__, value.__self__
        if isinstance(value, functools.partial):
            return value.func, value.args, value.keywords
        if isinstance(value, staticmethod | classmethod | functools._lru_cache_wrapper):
            return (value.__wrapped__,)
        if isinstance(value, property):
            return value.fget, value.fset
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.ModuleType):
            return () if self._is_harmless(value.__name__) else None
        kind = value if isinstance(value, type) else type(value)
        if self._is_harmless(kind.__module__):
            return ()
        file = file_of(sys.modules.get(kind.__module__))
        if kind.__module__ != "__main__" and not self.owns(file):
            return None
        return [
            *vars(kind).values(),
            *kind.__bases__,
            *([] if isinstance(value, type) else getattr(value, "__dict__", {}).values()),
        ]

    def _is_harmless(self, module: str | None) -> bool:
        return module is None or module.split(".")[0] in _HARMLESS

    def _function(self, function: types.FunctionType) -> Iterable[Any] | None:
        if function in wrappers:
            return (function.__wrapped__,)  # type: ignore[attr-defined]
        code = function.__code__
        if code.co_filename.startswith(PACKAGE):
            return None
        if not self.owns(code.co_filename):
            return () if self._is_harmless(function.__module__) else None
        names: set[str] = set()
        found: list[Any] = [function.__defaults__, function.__kwdefaults__]
        for inner in codes_of(code):
            names.update(inner.co_names)
            if _IMPORT in inner.co_code[::2]:
                imported = {i.argval for i in dis.get_instructions(inner) if i.opcode == _IMPORT}
                if not all(map(self._is_harmless, imported)):
                    return None
        if names & _OPEN:
            return None
        for name in names:
            value = function.__globals__.get(name, MISSING)
            if isinstance(value, types.ModuleType) and self.owns(file_of(value)):
                self.looked_up.append((function.__globals__, name, value))
                found += [self._look_up(vars(value), attribute) for attribute in names if attribute in vars(value)]
            elif value is not MISSING:
                found.append(self._look_up(function.__globals__, name))
        for cell in function.__closure__ or ():
            self.cells.append((cell, content := content_of(cell)))
            if content is not MISSING:
                found.append(content)
        return found

    def _look_up(self, names: dict[str, Any], name: str) -> Any:
        self.looked_up.append((names, name, names[name]))
        return names[name]


def file_of(module: types.ModuleType | None) -> str:
    """The file of a module, as `owns` takes it."""
    return getattr(module, "__file__", None) or "<frozen "


def codes_of(code: types.CodeType) -> Iterable[types.CodeType]:
    """A code object and those of the functions and classes in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from codes_of(inner)


def content_of(cell: types.CellType) -> Any:
    """The content of a cell; a mark if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


#: All that `numpy_function` returned.
wrappers: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()
_NOTHING: tuple[Callable[[], Any], Reach | None] = (lambda: MISSING), None


class _Thread(threading.local):
    evaluating = False  # a NumPy function as it is: those that it calls are called as they are, too


thread = _Thread()


class Evaluation:
    """Which calls of a function are evaluated as they are; parameters as in `Reach`."""

    def __init__(self, root: Callable[..., Any], owns: Callable[[str], bool]):
        self.root, self.owns = root, owns
        self._reaches: dict[int, tuple[Callable[[], Any], Reach | None]] = {}

    def is_plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether this call is."""
        if state.trace is not None or state.level:
            return False
        if thread.evaluating:
            return True
        if self._transforms(self.root):
            return False
        return all(map(self._is_plain, args)) and (not kwargs or all(map(self._is_plain, kwargs.values())))

    def _transforms(self, x: Any) -> bool:
        """Whether a function or a class, which is looked into once, reaches this library."""
        owner, reach = self._reaches.get(id(x), _NOTHING)
        if owner() is not x or reach is None or not reach.is_current():
            reach = Reach(x, self.owns)
            # A bound method is made anew whenever it is asked for; that of the root stays.
            owner = (lambda: x) if x is self.root else weakref.ref(x)
            if len(self._reaches) > 100:
                self._reaches.clear()
            self._reaches[id(x)] = owner, reach
        return reach.transforms

    def _is_plain(self, x: Any) -> bool:
        kind = type(x)
        if kind is np.ndarray or kind is ArrayImpl or kind is float or isinstance(x, _ATOMS):
            return True
        if kind is list or kind is tuple:
            return all(map(self._is_plain, x))
        if kind is dict:
            return all(map(self._is_plain, x.values()))
        if kind is types.FunctionType:
            return not self._transforms(x)
        if not callable(x) and type(getattr(x, "__dict__", None)) is dict:
            return not self._transforms(kind) and not Reach(list(vars(x).values()), self.owns).transforms
        return not Reach(x, self.owns).transforms

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Evaluate a call of which `is_plain` holds."""
        if thread.evaluating:
            return self.root(*args, **kwargs)
        thread.evaluating = True
        try:
            return leave_all(self.root(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()}))
        except ValueError as error:
            if "read-only" in str(error):
                error.add_note(f"numpy_function: is it {OUTSIDE}? Make a copy first: `x = x.copy()`")
            raise
        finally:
            thread.evaluating = False


def plain(x: Any) -> Any:
    """An argument as the function itself takes it: an ndarray that can't be written, a scalar; or as it is."""
    if type(x) is ArrayImpl:
        x = np.asarray(x)
        return x if x.ndim else x[()]
    if type(x) is np.ndarray:
        x = x.view()
        x.flags.writeable = False
        return x
    return tree.map(plain, x) if type(x) in (list, tuple, dict) else x
