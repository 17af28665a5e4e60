"""The user's classes as NumPy functions see them: the same bodies, with methods that are rebuilt, and bases likewise.

An object from outside is seen as one of the rebuilt class that shares its attributes; these are converted when they are
looked up. What a function returns is an object of the class itself again.

Left as they are: classes of packages, exceptions, enumerations, tuples and other classes with a layout of their own
(``__slots__``), and those with a metaclass.

May import: `numpy_functions.evaluation`, `numpy_functions.arrays`.
"""

import abc
import sys
import types
from collections.abc import Callable
from typing import Any

from xform.numpy_functions.arrays import leave_all
from xform.numpy_functions.evaluation import file_of


class Rebuilt(abc.ABCMeta):
    """The class of rebuilt classes: objects of the original one are their instances, too."""

    def __instancecheck__(cls, x: Any) -> bool:
        genuine = cls.__dict__.get("_genuine")
        return super().__instancecheck__(x) or (genuine is not None and isinstance(x, genuine))

    def __subclasscheck__(cls, other: type) -> bool:
        genuine = cls.__dict__.get("_genuine")
        return super().__subclasscheck__(other) or (genuine is not None and issubclass(other, genuine))


class _Plain:
    """A class with the layout of most classes."""


def is_rebuilt(cls: type, owns: Callable[[str], bool]) -> bool:
    """Whether a class is one that is seen rebuilt."""
    if type(cls) not in (type, abc.ABCMeta) or cls.__basicsize__ != _Plain.__basicsize__ or cls.__itemsize__:
        return False
    if issubclass(cls, BaseException) or cls.__module__ in sys.stdlib_module_names:
        return False
    return cls.__module__ == "__main__" or owns(file_of(sys.modules.get(cls.__module__)))


def rebuild(cls: type, convert: Callable[[Any], Any], register: Callable[[type], None]) -> type:
    """The class with the members that `convert` gives; `register` is told before these are converted."""
    skipped = ("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl")
    members = {k: v for k, v in vars(cls).items() if k not in skipped and not _is_member(v)}
    if "__getattribute__" not in vars(cls):
        members["__getattribute__"] = lambda self, name: convert(object.__getattribute__(self, name))
    new = Rebuilt(cls.__name__, tuple(map(convert, cls.__bases__)), {**members, "_genuine": cls})
    register(new)
    for name, member in vars(cls).items():
        if _is_member(member):
            type.__setattr__(new, name, _converted(member, convert))
    abc.update_abstractmethods(new)  # type: ignore[arg-type]
    return new


def _is_member(x: Any) -> bool:
    return isinstance(x, types.FunctionType | staticmethod | classmethod | property)


def _converted(member: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(member, staticmethod | classmethod):
        return type(member)(convert(member.__func__))
    if isinstance(member, property):
        return property(convert(member.fget), convert(member.fset), convert(member.fdel), member.__doc__)
    return convert(member)


def seen_as(x: Any, cls: type) -> Any:
    """An object with the attributes of `x`, now and later, of another class of the same layout."""
    out: Any = object.__new__(cls)
    object.__setattr__(out, "__dict__", x.__dict__)
    return out


def leave(x: Any) -> Any:
    """An object of a rebuilt class as one of the class itself; anything else as it is."""
    genuine = vars(type(x)).get("_genuine") if type(type(x)) is Rebuilt else None
    if genuine is None:
        return x
    out: Any = object.__new__(genuine)
    attributes = object.__getattribute__(x, "__dict__")
    object.__setattr__(out, "__dict__", {k: leave_all(v) for k, v in attributes.items()})
    return out
