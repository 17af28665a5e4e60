"""NumPy's protocols: ``np.sin(x)``, ``ndarray + x`` and ``np.sum(x)`` on arrays of this library.

NumPy hands over the calls of its functions that are given one of our arrays, concrete or traced.

1. The function of the same name and place in `xform.numpy` does the work, and the result is an `Array`. The ufuncs of
   `scipy.special` likewise, with `xform.numpy.special`.
2. Arguments that only NumPy has are let pass where they change nothing (``order="C"``, ``casting="same_kind"``).
3. What has no counterpart runs on the host values of concrete arrays, and its result becomes an `Array` if it is one of
   numbers. Traced arrays have no values: an error says so.
4. An ndarray that is to be written to (``out=``, ``a += x``, ``np.copyto(a, x)``) gets the host values.

>>> import numpy as np, xform
>>> float(xform.grad(lambda x: np.sum(np.sin(x) * x))(0.0))
0.0
>>> np.linalg.norm(xform.numpy.array([3.0, 4.0]))
Array(5., dtype=float64)

May import: `xform.core`, `numpy.promotion`; `xform.numpy` itself when a protocol is called.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import Array, own
from xform.core.errors import TracerArrayConversionError, api_boundary, filtered_traceback
from xform.core.trace import Tracer

# ---- Values on the host ------------------------------------------------------------------------------------


def _hosted(args: Any) -> Any:
    """Arrays among (nested) arguments as ndarrays."""
    return tree.map(lambda x: np.asarray(x) if isinstance(x, Array) else x, args)


def _wrapped(out: Any) -> Any:
    """What NumPy made of host values, with ndarrays and scalars of numbers as arrays."""
    return tree.map(lambda x: own(x) if isinstance(x, np.ndarray | np.generic) and x.dtype in dtypes.kinds else x, out)


def _first_tracer(args: Any) -> Tracer | None:
    return next((x for x in tree.leaves(args) if isinstance(x, Tracer)), None)


def _on_host(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """NumPy's own function on host values, which a traced array doesn't have."""
    if (tracer := _first_tracer((args, kwargs))) is not None:
        raise TracerArrayConversionError(
            f"{name} has no counterpart in xform.numpy that works on traced arrays, such as this one of {tracer.aval}."
            f"{tracer._origin()}\nUse functions of xform.numpy instead."
        )
    return _wrapped(function(*_hosted(args), **_hosted(kwargs)))


def _into(name: str, function: Callable[..., Any], targets: Iterable[Any], args: Any, kwargs: Any) -> Any:
    """NumPy's own function, which writes to ndarrays."""
    if any(isinstance(x, Array) for x in targets):
        raise TypeError(
            f"{name}: what is to be written to is an array of xform, which is immutable; use the result of "
            "the function, without out=, or x.at[index].set(y), .add(y) and so on"
        )
    if _first_tracer((args, kwargs)) is not None:
        raise TypeError(
            f"{name}: an ndarray can't hold a traced array; instead of `a += x` write `a = a + x`, "
            "and instead of out= use the result"
        )
    return function(*_hosted(args), **_hosted(kwargs))


def _is_foreign(x: Any) -> bool:
    """Whether x is None, or an ndarray with a mask, or one or a scalar of objects, text, dates or records."""
    if not isinstance(x, np.ndarray | np.generic):
        return x is None
    return isinstance(x, np.ma.MaskedArray) or (x.dtype not in dtypes.kinds and x.dtype != dtypes.float0)


def _is_for_numpy(args: Any, kwargs: Any) -> bool:
    """Whether what our function refused is concrete, and has what only ndarrays can hold."""
    leaves = [*args, *tree.leaves((args, kwargs))]  # None is a leaf as an argument, not within one
    return any(map(_is_foreign, leaves)) and not any(isinstance(x, Tracer) for x in leaves)


def _call(ours: Callable[..., Any], args: Any, kwargs: Any, numpys: Callable[..., Any]) -> Any:
    """Our function, or NumPy's on the host if it has to be."""
    try:
        return ours(*args, **kwargs)
    except Exception as error:
        if type(error) is TypeError and _is_for_numpy(args, kwargs):
            return numpys(*_hosted(args), **_hosted(kwargs))
        error.__traceback__ = filtered_traceback(error.__traceback__)
        raise


# ---- Ufuncs ------------------------------------------------------------------------------------------------

_ufuncs: dict[np.ufunc, Callable[..., Any]] = {}


def _ufunc_counterpart(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Our function for a ufunc of NumPy or `scipy.special`."""
    found = _ufuncs.get(ufunc)
    if found is None:
        import xform.numpy as xnp
        from xform.numpy import special

        name = ufunc.__name__
        scipys = getattr(sys.modules.get("scipy.special"), name, None)
        if getattr(np, name, None) is ufunc or name == "clip":  # the latter is that of ``ndarray.clip``
            found = getattr(xnp, name, None)
        elif ufunc in (scipys, getattr(scipys, "__wrapped__", None)):
            found = getattr(special, name, None)
        else:
            found = special.zeta if name in ("_zeta", "_riemann_zeta") else None
        if found is not None:
            _ufuncs[ufunc] = found
    return found


def array_ufunc(self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs."""
    if method == "__call__" and not kwargs:
        function = _ufuncs.get(ufunc)
        if function is not None:
            try:
                return function(*inputs)
            except Exception as error:
                if type(error) is TypeError and _is_for_numpy(inputs, kwargs):
                    return ufunc(*_hosted(inputs))
                error.__traceback__ = filtered_traceback(error.__traceback__)
                raise
    return _array_ufunc(ufunc, method, inputs, kwargs)


@api_boundary
def _array_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call = ufunc if method == "__call__" else getattr(ufunc, method)
    function = _ufunc_counterpart(ufunc)
    prefix = "numpy" if getattr(np, ufunc.__name__, None) is ufunc else "scipy.special"
    name = f"{prefix}.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if (outs := kwargs.pop("out", None)) is not None and any(o is not None for o in outs):
        return _into(name, call, outs, inputs, {**kwargs, "out": outs})
    if method == "at":
        return _into(name, call, inputs[:1], inputs, kwargs)
    if method != "__call__":
        function = getattr(function, method, None)
    if function is None:
        return _on_host(name, call, inputs, kwargs)
    if method == "__call__" and (options := {k: v for k, v in kwargs.items() if not _is_default(k, v)}):
        return _with_options(name, ufunc, function, inputs, options)
    given = {k: v for k, v in kwargs.items() if k != "where" or v is not True} if method != "__call__" else {}
    return _call(function, inputs, given, call)


def _with_options(name: str, ufunc: np.ufunc, function: Any, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """A ufunc with ``dtype=`` or ``signature=``, which say in which dtypes it computes, as NumPy resolves them."""
    import xform.numpy as xnp

    casting = options.pop("casting", "same_kind")
    signature = options.pop("signature", options.pop("sig", None))
    dtype = options.pop("dtype", None)
    if options or (signature is dtype is None):
        (key, value), *_ = (options or {"casting": casting}).items()
        raise NotImplementedError(f"{name}: the argument {key}={value!r} is not supported on arrays of xform")
    if signature is None:
        signature = (None,) * ufunc.nin + (dtype if isinstance(dtype, tuple) else (dtype,)) * ufunc.nout
    if ufunc.signature is None and not isinstance(signature, str):
        signature = tuple(None if d is None else np.dtype(d) for d in signature)
    arrays = [x if type(x) in (bool, int, float, complex) else xnp.asarray(x) for x in inputs]
    given = [type(x) if type(x) in (int, float, complex) else np.dtype(getattr(x, "dtype", bool)) for x in arrays]
    resolved = ufunc.resolve_dtypes((*given, *(None,) * ufunc.nout), signature=signature, casting=casting)
    out = function(*[xnp.asarray(x, d) for x, d in zip(arrays, resolved)])
    if ufunc.nout == 1:
        return xnp.astype(out, resolved[-1])
    return tuple(xnp.astype(o, d) for o, d in zip(out, resolved[ufunc.nin :], strict=True))


# ---- NumPy's other functions -------------------------------------------------------------------------------

# Functions by another name here.
_OTHER_NAMES = {
    "asanyarray": "asarray",
    "ascontiguousarray": "asarray",
    "asfortranarray": "asarray",
    "require": "asarray",
    "fix": "trunc",
}

# NumPy's functions that write to their first argument.
_WRITERS = frozenset([np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask])

# The kin of ``np.asarray(x)``, about which no protocol asks us: with these functions code such as SciPy's prepares
# arrays for what is compiled. So of concrete arrays they make ndarrays, as that does.
_CONVERSIONS = frozenset([np.atleast_1d, np.atleast_2d, np.atleast_3d])

# What calls functions of the user's, which may be written for ndarrays: of concrete arrays it is NumPy's own.
_CALLERS = frozenset([np.apply_along_axis])

# What makes the results of ours those of NumPy's, where shapes may depend on values.
_IF_CONCRETE: dict[Callable[..., Any], dict[str, Any]] = {
    np.linalg.lstsq: {"numpy_resid": True},
    np.polydiv: {"trim_leading_zeros": True},
    np.polymul: {"trim_leading_zeros": True},
}

# Values of arguments that change nothing here: arrays have no memory layout, subclasses or fields.
_WITHOUT_EFFECT: dict[str, Collection[Any]] = {
    "order": (None, "K", "A", "C"),
    "subok": (False, True),
    "casting": ("same_kind", "unsafe"),
    "kind": (None, "introselect", "quicksort", "mergesort", "heapsort", "stable", "sort", "table"),
    "where": (True,),
    "requirements": (None,),
}


def _is_default(name: str, value: Any, default: Any = None) -> bool:
    """Whether an argument of NumPy's, as given, changes nothing."""
    if value is None or value is default or value is np._NoValue:
        return True
    if not isinstance(value, bool | int | str):
        return False
    return value in _WITHOUT_EFFECT.get(name, ()) or (type(value) is type(default) and value == default)


class _Call(NamedTuple):
    """How a function of NumPy's becomes a call of ours."""

    ours: Callable[..., Any]
    direct: int  # so many positional arguments mean the same
    positional: tuple[str, ...]  # the names of NumPy's positional parameters
    defaults: dict[str, Any]  # the defaults of NumPy's parameters
    names: dict[str, str]  # NumPy's parameters that ours has, and what ours calls them
    same: frozenset[str]  # those that mean the same, whatever their value
    takes_any: bool  # whether ours takes keywords of any name

    def named(self, args: tuple[Any, ...]) -> dict[str, Any]:
        """The positional arguments that mean something else there, by their names."""
        return dict(zip(self.positional[self.direct :], args[self.direct :]))

    def options(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of our function."""
        options = {}
        for key, value in given.items():
            if (ours := self.names.get(key)) is not None:
                if value is not np._NoValue:
                    options[ours] = value
            elif self.takes_any and (key not in self.defaults or self.direct == sys.maxsize):
                options[key] = value
            elif not _is_default(key, value, self.defaults.get(key)):
                raise NotImplementedError(f"{name}: the argument {key}={value!r} is not supported on arrays of xform")
        return options


_calls: dict[Callable[..., Any], _Call] = {}  # those that are called without further ado
_accepted: set[type] = {np.ndarray, np.memmap}  # types of arrays that our functions take; ours are added


def _counterpart(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function of the same name and place in `xform.numpy`."""
    import xform.numpy as xnp

    module: Any = xnp
    package, *path = func.__module__.split(".")
    for part in path:
        module = getattr(module, part, None)
    return getattr(module, _OTHER_NAMES.get(func.__name__, func.__name__), None) if package == "numpy" else None


def _positional(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    return [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


@functools.cache
def _call_of(func: Callable[..., Any]) -> _Call | None:
    ours = _counterpart(func)
    if ours is None:
        return None
    mine = inspect.signature(ours).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in mine.values())
    try:
        theirs = inspect.signature(func).parameters
    except ValueError:  # a function in C of an older NumPy
        theirs = mine
    positional, order = _positional(theirs), _positional(mine)
    names = {n: n for n in theirs if n in mine}
    names |= {a: b for a, b in zip(positional, order) if a not in mine and b not in theirs}  # called differently
    apart = (i for i, (a, b) in enumerate(zip(positional, order)) if names.get(a) != b or a == "out")
    direct = next(apart, min(len(positional), len(order)))
    if any(p.kind is p.VAR_POSITIONAL for p in (*theirs.values(), *mine.values())):
        direct = sys.maxsize
    same = frozenset(n for n in names if names[n] == n and theirs[n].default is not np._NoValue) - {"out"}
    return _Call(ours, direct, tuple(positional), {n: p.default for n, p in theirs.items()}, names, same, takes_any)


def array_function(
    self: Array, func: Callable[..., Any], types: Collection[type], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """NumPy's protocol for its other functions."""
    call = _calls.get(func)
    if (
        call is not None
        and len(args) <= call.direct
        and (not kwargs or call.same.issuperset(kwargs))
        and _accepted.issuperset(types)
    ):
        return _call(call.ours, args, kwargs, func)
    return _array_function(func, types, args, kwargs)


@api_boundary
def _array_function(func: Callable[..., Any], types: Collection[type], args: Any, kwargs: Any) -> Any:
    _accepted.update(t for t in types if issubclass(t, Array))
    if not _accepted.issuperset(types):
        return NotImplemented  # an array of another library, or with a mask or units
    name = f"{func.__module__}.{func.__name__}"
    if func in _WRITERS:
        return _into(name, func, args[:1] or list(kwargs.values())[:1], args, kwargs)
    call = _call_of(func)
    if call is not None and len(args) > call.direct:
        args, kwargs = args[: call.direct], {**call.named(args), **kwargs}
    if kwargs.get("out") is not None:
        return _into(name, func, tree.leaves(kwargs["out"]), args, kwargs)
    is_concrete = _first_tracer((args, kwargs)) is None
    if is_concrete and func in _CONVERSIONS:
        return func(*_hosted(args))
    if call is None or (is_concrete and func in _CALLERS):
        return _on_host(name, func, args, kwargs)
    options = call.options(name, kwargs)
    if is_concrete and func in _IF_CONCRETE:
        options.update(_IF_CONCRETE[func])
    elif not (func in _CONVERSIONS or func in _CALLERS or func in _IF_CONCRETE):
        _calls[func] = call
    return _call(call.ours, args, options, func)


def install() -> None:
    """Attach the protocols to `Array`."""
    Array.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
    Array.__array_function__ = array_function  # type: ignore[attr-defined]


install()
