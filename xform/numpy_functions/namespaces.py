"""NumPy's modules as a NumPy function sees them: each function is an `Operation`, made when it is first asked for.

The functions of `math` are there, too: with a traced argument they are NumPy's of the same name. Functions of
`numpy.random` refuse to work while a program is being staged, in which their numbers would be constants.

May import: `numpy_functions.operations`, `numpy_functions.arrays`, `xform.numpy`, `xform.lax`, `xform.core`.
"""

import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import xform.numpy as xnp
from xform import lax
from xform.core.config import state
from xform.core.trace import Tracer
from xform.numpy_functions.arrays import Class, lowered
from xform.numpy_functions.operations import Operation, callback, operation_of

_PACKAGES = ("numpy", "math", "cmath")


def is_module(name: str | None) -> bool:
    """Whether a module of that name has a `Namespace`."""
    return name is not None and name.split(".")[0] in _PACKAGES


class Namespace(types.ModuleType):
    """A module of NumPy's, or `math`."""

    def __init__(self, module: types.ModuleType):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["__wrapped__"] = module

    def __getattr__(self, name: str) -> Any:
        value = represented(getattr(self.__dict__["__wrapped__"], name), self.__name__, name)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["__wrapped__"])


_namespaces: dict[str, Namespace] = {}


def namespace_of(module: types.ModuleType) -> Namespace:
    """The namespace of a module."""
    found = _namespaces.get(module.__name__)
    if found is None:
        found = _namespaces[module.__name__] = Namespace(module)
    return found


def represented(value: Any, module: str | None = None, name: str | None = None) -> Any:
    """What stands for an object of one of the modules."""
    if isinstance(value, types.ModuleType):
        return namespace_of(value) if is_module(value.__name__) else value
    try:
        if (special := _SPECIAL.get(value)) is not None:
            return special
    except TypeError:
        pass  # not hashable
    if isinstance(value, type):
        return class_of(value) if issubclass(value, np.generic | np.ndarray) and value.__module__ == "numpy" else value
    owner = getattr(value, "__self__", None)
    if isinstance(owner, np.random.RandomState):
        return _drawing(value)
    module = getattr(value, "__module__", None) or module or "numpy"
    if module.split(".")[0] in ("math", "cmath") and callable(value):
        return operation_of(
            value, f"{module}.{value.__name__}", _MATH.get(value.__name__) or getattr(xnp, value.__name__, None)
        )
    if module.startswith("numpy.random") and callable(value):
        return _maker(value)
    return operation_of(value) if callable(value) and hasattr(value, "__name__") and is_module(module) else value


_classes: dict[type, Class] = {}


def class_of(genuine: type) -> Class:
    """What stands for a class of NumPy's, or for float and complex."""
    found = _classes.get(genuine)
    if found is None:
        found = _classes[genuine] = Class(genuine)
    return found


# ---- Objects of NumPy's that aren't functions ----------------------------------------------------------------


class _Indexer:
    """``np.r_`` and ``np.c_``."""

    def __init__(self, theirs: Any, ours: Any, name: str):
        self._get = Operation(lambda *key: theirs[key], lambda *key: ours[key], name)

    def __getitem__(self, key: Any) -> Any:
        return self._get(*key) if isinstance(key, tuple) else self._get(key)


def _vectorize(pyfunc: Any = None, *args: Any, **kwargs: Any) -> Any:
    """As `numpy.vectorize`."""
    if pyfunc is None:
        return lambda function: _vectorize(function, *args, **kwargs)
    function = callback(pyfunc)
    ours = {k: v for k, v in kwargs.items() if k in ("excluded", "signature")}
    return Operation(np.vectorize(function, *args, **kwargs), xnp.vectorize(function, **ours), "vectorize")


def _ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Pairs of an index and the element there."""
    return ((index, arr[index]) for index in np.ndindex(arr.shape))


_SPECIAL: dict[Any, Any] = {
    np.r_: _Indexer(np.r_, xnp.r_, "r_"),
    np.c_: _Indexer(np.c_, xnp.c_, "c_"),
    np.vectorize: _vectorize,
    np.ndenumerate: _ndenumerate,
}


# ---- math ----------------------------------------------------------------------------------------------------


def _to_integer(function: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def rounded(x: Any) -> Any:
        known = x.known() if isinstance(x, Tracer) else x
        return xnp.astype(ours(x), int) if known is None else function(known)

    return rounded


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    limit = xnp.maximum(rel_tol * xnp.maximum(xnp.abs(a), xnp.abs(b)), abs_tol)
    return (a == b) | ((xnp.abs(a - b) <= limit) & xnp.isfinite(a) & xnp.isfinite(b))


#: Those that are named otherwise in `xform.numpy`, or mean something else there.
_MATH: dict[str, Callable[..., Any]] = {
    "log": lambda x, *base: xnp.log(x) / xnp.log(base[0]) if base else xnp.log(x),
    "hypot": lambda *xs: xnp.sqrt(sum(x * x for x in xs)) if len(xs) != 2 else xnp.hypot(*xs),
    "fsum": lambda xs: xnp.sum(xnp.asarray(list(xs))),
    "prod": lambda xs, *, start=1: xnp.prod(xnp.asarray(list(xs))) * start,
    "dist": lambda p, q: xnp.sqrt(xnp.sum((xnp.asarray(p) - xnp.asarray(q)) ** 2)),
    "erf": lax.erf,
    "erfc": lax.erfc,
    "lgamma": lax.lgamma,
    "floor": _to_integer(math.floor, xnp.floor),
    "ceil": _to_integer(math.ceil, xnp.ceil),
    "trunc": _to_integer(math.trunc, xnp.trunc),
    "isclose": _isclose,
}


# ---- Random numbers ------------------------------------------------------------------------------------------


def _refuse_staging(name: str) -> None:
    if state.trace is not None:
        raise RuntimeError(
            f"numpy.random: {name} is called while a program is compiled or staged (jit, scan ...), where its numbers "
            "would be drawn once and be the same whenever the program runs. Draw them outside and pass them in, or use "
            "xform.random with a key"
        )


def _drawing(function: Callable[..., Any]) -> Callable[..., Any]:
    operation = Operation(function, None, f"random.{function.__name__}")

    def draw(*args: Any, **kwargs: Any) -> Any:
        _refuse_staging(function.__name__)
        return operation(*args, **kwargs)

    draw.__name__, draw.__doc__ = function.__name__, function.__doc__
    return draw


def _maker(make: Callable[..., Any]) -> Callable[..., Any]:
    """Functions and classes that make generators; with a seed, the numbers are the same in each call anyway."""

    def maker(*args: Any, **kwargs: Any) -> Any:
        seeded = bool(args or kwargs)
        if not seeded:
            _refuse_staging(f"{make.__name__} without a seed")
        made = make(*[lowered(a) for a in args], **kwargs)
        return Generator(made, seeded) if isinstance(made, GENERATORS) else made

    maker.__name__, maker.__doc__ = make.__name__, make.__doc__
    return maker


GENERATORS = (np.random.Generator, np.random.RandomState)


class Generator:
    """A generator of random numbers; `seeded` within the function, or coming from outside."""

    def __init__(self, generator: Any, seeded: bool = False):
        self._generator, self._seeded = generator, seeded

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._generator, name)
        if not callable(value):
            return value
        return Operation(value, None, f"random.{name}") if self._seeded else _drawing(value)
