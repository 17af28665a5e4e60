"""NumPy's protocols: ``np.sin(x)``, ``ndarray + x`` and ``np.sum(x)`` on arrays of this library.

* Ufuncs, and with them the operators of ndarrays, become the function of the same name in `xform.numpy`: the result
  is an `Array`, concrete or traced.
* NumPy's other functions do so for traced arrays. On concrete ones they are NumPy's own, on the host values, and return
  ndarrays: what hands arrays on to compiled code, as SciPy does, gets what it can use.

>>> import numpy as np, xform
>>> float(xform.grad(lambda x: np.sum(np.sin(x) * x))(0.0))
0.0

May import: `xform.core`; `xform.numpy` itself when a protocol is called.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xform.core import tree
from xform.core.array import Array
from xform.core.errors import TracerArrayConversionError, api_boundary
from xform.core.trace import Tracer


def _hosted(args: Any) -> Any:
    """Arrays among (nested) arguments as ndarrays."""
    return tree.map(lambda x: np.asarray(x) if isinstance(x, Array) else x, args)


def _no_counterpart(what: str, tracer: Tracer) -> TracerArrayConversionError:
    return TracerArrayConversionError(
        f"{what} has no counterpart in xform.numpy that works on traced arrays, such as this one of {tracer.aval}."
        f"{tracer._origin()}\nUse other functions of xform.numpy, or xform.pure_callback for host code."
    )


def _first_tracer(args: Any) -> Tracer | None:
    return next((x for x in tree.leaves(args) if isinstance(x, Tracer)), None)


_functions: dict[np.ufunc, Callable[..., Any] | None] = {}


def array_ufunc(self: Array, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's protocol for ufuncs: the function of the same name in `xform.numpy`."""
    if method == "__call__" and not kwargs:
        function = _functions.get(ufunc)
        if function is None:
            import xform.numpy as xnp

            function = _functions[ufunc] = getattr(xnp, ufunc.__name__, None)
        if function is not None:
            return function(*inputs)
    return _array_ufunc(ufunc, method, inputs, kwargs)


@api_boundary
def _array_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import xform.numpy as xnp

    outs = kwargs.pop("out", ())
    tracer = _first_tracer((inputs, kwargs))
    if any(isinstance(o, Array) for o in outs):
        raise TypeError(f"numpy.{ufunc.__name__}: out is an array of this library, which is immutable; use the result")
    if outs:
        if tracer is not None:
            raise TypeError(
                f"numpy.{ufunc.__name__}: an ndarray can't hold a traced array; instead of `a += x` write `a = a + x`, "
                "and instead of out= use the result"
            )
        return getattr(ufunc, method)(*_hosted(inputs), out=outs, **_hosted(kwargs))
    function = getattr(xnp, ufunc.__name__, None)
    if method != "__call__":
        function = getattr(function, method, None)
    if function is None:
        if tracer is not None:
            raise _no_counterpart(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"), tracer)
        return getattr(ufunc, method)(*_hosted(inputs), **_hosted(kwargs))
    dtype = kwargs.pop("dtype", None) if method == "__call__" else None
    out = function(*inputs, **kwargs)
    return out if dtype is None else xnp.astype(out, dtype)


@api_boundary
def array_function(
    self: Array, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """NumPy's protocol for its other functions."""
    tracer = _first_tracer((args, kwargs))
    if tracer is None:
        return func(*_hosted(args), **_hosted(kwargs))
    counterpart = _counterpart(func)
    if counterpart is None:
        raise _no_counterpart(f"{func.__module__}.{func.__name__}", tracer)
    return counterpart(*args, **kwargs)


def _counterpart(func: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function of the same name and place in `xform.numpy`."""
    import xform.numpy as xnp

    theirs: Any = np
    ours: Any = xnp
    for part in func.__module__.split(".")[1:]:
        theirs, ours = getattr(theirs, part, None), getattr(ours, part, None)
    found = getattr(ours, func.__name__, None)
    return found if getattr(theirs, func.__name__, None) is func else None


def install() -> None:
    """Attach the protocols to `Array`."""
    Array.__array_ufunc__ = array_ufunc  # type: ignore[attr-defined]
    Array.__array_function__ = array_function  # type: ignore[attr-defined]


install()
