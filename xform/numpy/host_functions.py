"""NumPy's own functions where they are what is wanted: text, files, questions about memory.

They get the host values of arrays, and what they make becomes an `Array`.

May import: `numpy.promotion`, `xform.core`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, own
from xform.core.errors import api_boundary
from xform.numpy.promotion import concrete, numpy_only


def host_function(function: Callable[..., Any], doc: str) -> Any:
    """NumPy's function on host values, with its signature; ndarrays that it returns become arrays."""
    name = function.__name__

    def called(*args: Any, **kwargs: Any) -> Any:
        numpy_only(name, like=kwargs.pop("like", None))
        args = tuple(_value(name, f"{i + 1}", x) for i, x in enumerate(args))
        return _ours(name, function(*args, **{k: _value(name, k, x) for k, x in kwargs.items()}))

    called.__name__ = called.__qualname__ = name
    called.__module__, called.__doc__ = "xform.numpy", doc
    out = api_boundary(called)
    out.__wrapped__ = function  # type: ignore[attr-defined]  # whose signature it has
    return out


def _value(name: str, arg: str, x: Any) -> Any:
    """The host value of an argument; of an array of rank 0, a NumPy scalar."""
    return concrete(name, x, arg, "")[()] if isinstance(x, Array) else x


def _ours(name: str, found: Any) -> Any:
    if not isinstance(found, np.ndarray):
        return found
    if found.dtype not in dtypes.kinds:
        raise TypeError(f"numpy.{name}: arrays hold numbers and booleans only, and this one has dtype {found.dtype}")
    return own(found)


# ---- Text ----------------------------------------------------------------------------------------------------

array2string = host_function(np.array2string, "The elements of an array as text, in a format.")
format_float_positional = host_function(np.format_float_positional, "A number as text without an exponent.")
format_float_scientific = host_function(np.format_float_scientific, "A number as text with an exponent.")
base_repr = host_function(np.base_repr, "The digits of an integer in a base from 2 to 36.")
binary_repr = host_function(
    np.binary_repr, "The bits of an integer; of a negative one in two's complement, with `width`."
)

# ---- Files ---------------------------------------------------------------------------------------------------

loadtxt = host_function(np.loadtxt, "Numbers from the rows of a text file.")
genfromtxt = host_function(np.genfromtxt, "Numbers from the rows of a text file in which some are missing.")

# ---- Memory --------------------------------------------------------------------------------------------------

may_share_memory = host_function(np.may_share_memory, "Whether the host memory of two arrays might overlap.")
shares_memory = host_function(np.shares_memory, "Whether the host memory of two arrays overlaps.")


# ---- Errors of floating-point arithmetic -----------------------------------------------------------------------


def _check_actions(name: str, actions: dict[str, Any]) -> None:
    for kind, action in actions.items():
        if action not in (None, "ignore", "warn"):
            raise NotImplementedError(
                f"numpy.{name}: {kind}={action!r} is not supported: arrays never warn or raise; the options "
                "debug_nans and debug_infs find NaN and infinities"
            )


def errstate(
    *, call: Any = None, all: Any = None, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None
) -> Any:
    """NumPy's context of the same name, for its own arrays: those of this library never warn.

    >>> import xform.numpy as xnp
    >>> with xnp.errstate(divide="ignore"):
    ...     float(1 / xnp.zeros(()))
    inf
    """
    actions = {"all": all, "divide": divide, "over": over, "under": under, "invalid": invalid}
    _check_actions("errstate", actions | {"call": call})
    return np.errstate(**actions)


def seterr(all: Any = None, divide: Any = None, over: Any = None, under: Any = None, invalid: Any = None) -> Any:
    """NumPy's function, for its own arrays: those of this library never warn. Returns what was set before."""
    actions = {"all": all, "divide": divide, "over": over, "under": under, "invalid": invalid}
    _check_actions("seterr", actions)
    return np.seterr(**actions)


geterr = np.geterr
