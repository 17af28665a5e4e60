"""The short way of eager evaluation: from `xform.numpy` straight to the NumPy function.

``x + y`` on three elements takes NumPy 250 ns. To stay near that, the elementwise functions and operators made here
first ask whether NumPy may do the work at once: no trace is under way and nothing is debugged (`state.fast`), the
operands are concrete arrays on the host of one dtype that isn't weak (or one is a Python scalar that gives way to the
other), and NumPy's result for that kind of dtype is what the primitive's host rule gives. Everything else goes the
general way: promotion, broadcasting, and a primitive's `bind`. What NumPy refuses goes there too, for the error.

In a gradient that is evaluated at once the short way is a plan (see `interpreters.plans`) of the whole function.

May import: `xform.core`, `xform.backends.numpy`, `interpreters.plans`, `numpy.promotion`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import leave
from xform.interpreters import plans
from xform.interpreters.reverse import LinearizeTracer
from xform.numpy.promotion import array_of, shown

REFUSALS = (ValueError, TypeError, OverflowError, IndexError)
OPERANDS = (Array, np.ndarray, np.generic, bool, int, float, complex)


def with_keywords(function: Any, name: str, out: Any, where: Any, dtype: Any, *args: Any) -> Any:
    """A ufunc called with keywords: `dtype` is what it computes in; the others make no sense for immutable arrays."""
    if out is not None or not (where is None or where is True):
        argument, more = ("out", "") if out is not None else ("where", " and xform.numpy.where")
        raise NotImplementedError(
            f"numpy.{name}: arrays are immutable, so there is no argument {argument}; use the result{more}"
        )
    if dtype is None:
        return function(*args)
    wanted = dtypes.check_user_dtype(dtype, f"numpy.{name}")
    arrays = [array_of(name, x, f"x{i + 1}") for i, x in enumerate(args)]
    # As in NumPy: operands are cast within their kind or to a higher one; a bool of a comparison is not.
    out = function(*(x.astype(wanted) if dtypes.can_cast(x.dtype, wanted, "same_kind") else x for x in arrays))
    if (out[0] if isinstance(out, tuple) else out).dtype != wanted:
        raise TypeError(f"numpy.{name}: can't compute in dtype={wanted} with {', '.join(map(shown, arrays))}")
    return out


def unary(
    name: str, doc: str, general: Callable[[Any], Any], host: Any = None, kinds: str = "", widens: bool = False
) -> Any:
    """An elementwise function of one argument.

    Parameters
    ----------
    general : function of anything that counts as an array
    host : NumPy's function; its results for dtypes of `kinds` are those of `general`
    widens : whether integers and booleans become the default float
    """

    planned = plans.Function(name, general)

    def function(x, out=None, where=None, dtype=None):
        if state.fast and out is where is dtype is None:
            if type(x) is ArrayImpl:
                a = x._host
                if a is not None and a.dtype.kind in kinds and not x._weak:
                    token = quiet_begin()
                    try:
                        return ArrayImpl(host(a))
                    finally:
                        quiet_end(token)
            if type(x) in _CONCRETE and (result := _mixed(host, kinds, widens, x)) is not None:
                return result
        try:
            if not (out is where is dtype is None):
                return with_keywords(function, name, out, where, dtype, x)
            if type(x) is LinearizeTracer and (result := plans.call_unary(planned, x)) is not NotImplemented:
                return result
            return general(x)
        except Exception as error:
            leave(error, function)
            raise

    return _named(function, name, doc, 1, general, host, kinds, widens)


def binary(
    name: str,
    doc: str,
    general: Callable[[Any, Any], Any],
    host: Any = None,
    kinds: str = "",
    widens: bool = False,
    by_types: bool = False,
) -> Any:
    """An elementwise function of two arguments; parameters as in `unary`.

    `by_types` says that what `general` does depends on the types of its arguments only, also if one is a Python float.
    """
    swapped = _binary(name, lambda x, y: general(y, x), lambda a, b: host(b, a), kinds, widens)
    function = _binary(name, general, host, kinds, widens, swapped, by_types)
    function.by_types = by_types
    return _named(function, name, doc, 2, general, host, kinds, widens)


def _binary(
    name: str,
    general: Callable[[Any, Any], Any],
    host: Any,
    kinds: str,
    widens: bool,
    swapped: Any = None,
    by_types: bool = False,
) -> Any:
    planned = plans.Function(name, general) if by_types else None

    def function(x1, x2, out=None, where=None, dtype=None):
        if state.fast and out is where is dtype is None:
            if type(x1) is ArrayImpl:
                a = x1._host
                if a is not None and not x1._weak:
                    found = a.dtype
                    kind = found.kind
                    if kind in kinds:
                        t = type(x2)
                        if t is ArrayImpl:
                            b = x2._host
                            ready = b is not None and b.dtype is found and not x2._weak
                        else:
                            b = x2
                            ready = (t is float and kind in "fc") or (t is int and kind != "b")
                        if ready:
                            token = quiet_begin()
                            try:
                                return ArrayImpl(host(a, b))
                            except REFUSALS:
                                pass
                            finally:
                                quiet_end(token)
            elif swapped is not None and type(x2) is ArrayImpl and (type(x1) is float or type(x1) is int):
                return swapped(x2, x1)
            if type(x1) in _CONCRETE and type(x2) in _CONCRETE:
                result = _mixed(host, kinds, widens, x1, x2)
                if result is not None:
                    return result
        try:
            if not (out is where is dtype is None):
                return with_keywords(function, name, out, where, dtype, x1, x2)
            if planned is not None and (type(x1) is LinearizeTracer or type(x2) is LinearizeTracer):
                result = plans.call_binary(planned, x1, x2)
                if result is not NotImplemented:
                    return result
            return general(x1, x2)
        except Exception as error:
            leave(error, function)
            raise

    function.__name__ = function.__qualname__ = name
    return function


# Types of what NumPy may compute with after promotion: what else counts as an array takes the general way.
_SCALARS = frozenset([bool, int, float, complex])
_CONCRETE = frozenset([ArrayImpl, np.ndarray, *_SCALARS, *(d.type for d in dtypes.kinds)])


def _mixed(host: Any, kinds: str, widens: bool, *args: Any) -> ArrayImpl | None:
    """The short way after promotion: other dtypes, ndarrays, NumPy scalars. None if it has to be the general way."""
    if not state.enable_x64 or not kinds:
        return None
    values = []
    promoted: Any = None
    weak = False
    for x in args:
        t = type(x)
        if t is ArrayImpl:
            weak_x = x._weak
            x = x._host
        else:
            weak_x = t in _SCALARS and t is not bool
        if x is None:  # on a device
            return None
        dtype = dtypes.dtype(x) if t in _SCALARS else x.dtype
        if dtype not in dtypes.kinds:
            return None
        values.append(x)
        if promoted is None:
            promoted, weak = dtype, weak_x
        elif dtype is not promoted or weak_x is not weak:
            try:
                promoted, weak = dtypes.promote(promoted, weak, dtype, weak_x)
            except ValueError:
                return None
    if widens and promoted.kind in "biu":
        promoted = dtypes.default_float()
    if promoted.kind not in kinds:
        return None
    token = quiet_begin()
    try:
        out = host(*[promoted.type(v) if type(v) in _SCALARS else v.astype(promoted, copy=False) for v in values])
    except REFUSALS:
        return None
    finally:
        quiet_end(token)
    return ArrayImpl(out, None, ShapedArray(out.shape, out.dtype, True) if weak and out.dtype.kind != "b" else None)


def _named(function: Any, name: str, doc: str, nin: int, general: Any, host: Any, kinds: str, widens: bool) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "xform.numpy", doc
    function.nin, function.nout, function.nargs = nin, 1, nin + 1
    function.general, function.host, function.kinds, function.widens = general, host, kinds, widens
    return function


def _is_operand(x: Any) -> bool:
    if isinstance(x, np.ndarray) and (x.dtype.kind in "OUSMm" or isinstance(x, np.ma.MaskedArray)):
        return False  # then NumPy asks `numpy.protocols`
    return type(x) in _CONCRETE or isinstance(x, OPERANDS) or hasattr(x, "__jax_array__")


def binary_operators(function: Any, host: Any = None) -> tuple[Any, Any]:
    """The methods of a binary operator and of its reflection, which leave what is no operand to the other side."""
    name, general, kinds = function.__name__, function.general, function.kinds
    host = host or function.host

    def forward(x: Any, y: Any) -> Any:
        return general(x, y) if _is_operand(y) else NotImplemented

    def backward(x: Any, y: Any) -> Any:
        return general(y, x) if _is_operand(y) else NotImplemented

    by_types = function.by_types
    direct = _binary(name, forward, host, kinds, function.widens, by_types=by_types)
    reflected = _binary(name, backward, lambda a, b: host(b, a), kinds, function.widens, by_types=by_types)
    direct.__doc__ = reflected.__doc__ = f"Operator: `xform.numpy.{name}`."
    return direct, reflected
