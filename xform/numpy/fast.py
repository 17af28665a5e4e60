"""The short way of eager evaluation: from `xform.numpy` straight to the NumPy function.

``x + y`` on three elements takes NumPy 250 ns. To stay near that, the elementwise functions and operators made here
first ask whether NumPy may do the work at once: no trace is under way and nothing is debugged (`state.fast`), the
operands are concrete arrays on the host of one dtype that isn't weak (or one is a Python scalar that gives way to the
other), and NumPy's result for that kind of dtype is what the primitive's host rule gives. Everything else goes the
general way: promotion, broadcasting, and a primitive's `bind`. What NumPy refuses goes there too, for the error.

In a gradient that is evaluated at once the short way is a plan (see `interpreters.plans`) of the whole function.

Functions that aren't elementwise are decorated with `short_way`, which names NumPy's function and the dtypes for which
it gives what the general way gives.

May import: `xform.core`, `xform.backends.numpy`, `interpreters.plans`, `numpy.promotion`.
"""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from xform.backends.numpy import QUIET, quiet_begin, quiet_end, set_state
from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import filtered_traceback, leave, name_function
from xform.interpreters import plans
from xform.interpreters.reverse import LinearizeTracer
from xform.numpy.promotion import array_of, no_out, shown

REFUSALS = (ValueError, TypeError, OverflowError, IndexError)
OPERANDS = (Array, np.ndarray, np.generic, bool, int, float, complex)


# NumPy's keyword arguments of ufuncs beside `out` and `dtype`: values that are accepted, and what there is instead.
_KEYWORDS: dict[str, tuple[tuple[Any, ...], str]] = {
    "where": ((True, None), "arrays are immutable: use the result and xform.numpy.where"),
    "casting": (("same_kind", None), "operands are promoted as everywhere in xform.numpy: use astype"),
    "order": (("K", "A", "C", None), "arrays have no memory layout of their own"),
    "subok": ((True, False, None), "there are no subclasses of arrays"),
    "signature": ((None,), "dtype= says in which dtype to compute"),
}


def dtype_of_keywords(name: str, out: Any, keywords: dict[str, Any]) -> Any:
    """The dtype that a ufunc's keywords name, or None; an error for what makes no sense for immutable arrays."""
    no_out(name, out)
    for key, value in keywords.items():
        if key == "dtype":
            continue
        if key not in _KEYWORDS:
            raise TypeError(
                f"numpy.{name}: unexpected keyword argument {key!r}; ufuncs take dtype, and NumPy's defaults of out, "
                f"{', '.join(_KEYWORDS)}"
            )
        accepted, instead = _KEYWORDS[key]
        if not (isinstance(value, str | bool | None) and value in accepted):
            raise NotImplementedError(f"numpy.{name}: only {key}={accepted[0]!r} is accepted; {instead}")
    dtype = keywords.get("dtype")
    return None if dtype is None else dtypes.check_user_dtype(dtype, f"numpy.{name}")


def with_keywords(function: Any, name: str, out: Any, keywords: dict[str, Any], *args: Any) -> Any:
    """A ufunc called with keywords."""
    wanted = dtype_of_keywords(name, out, keywords)
    if wanted is None:
        return function(*args)
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

    def function(x, out=None, **keywords):
        if state.fast and out is None and not keywords:
            if type(x) is ArrayImpl:
                a = x._host
                if a is not None and a.dtype.kind in kinds and not x._weak:
                    token = set_state(QUIET)
                    try:
                        return ArrayImpl(host(a))
                    finally:
                        quiet_end(token)
            if type(x) in _CONCRETE and (result := _mixed(host, kinds, widens, x)) is not None:
                return result
        try:
            if keywords or out is not None:
                return with_keywords(function, name, out, keywords, x)
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

    def function(x1, x2, out=None, **keywords):
        if state.fast and out is None and not keywords:
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
                            ready = (
                                (t is float and kind in "fc")
                                or (t is int and kind != "b")
                                or (t is np.ndarray and b.dtype is found)
                            )
                        if ready:
                            token = set_state(QUIET)
                            try:
                                return ArrayImpl(host(a, b))
                            except REFUSALS:
                                pass
                            finally:
                                quiet_end(token)
            elif swapped is not None and type(x2) is ArrayImpl and type(x1) in _GIVING_WAY:
                return swapped(x2, x1)
            if type(x1) in _CONCRETE and type(x2) in _CONCRETE:
                result = _mixed(host, kinds, widens, x1, x2)
                if result is not None:
                    return result
        try:
            if keywords or out is not None:
                return with_keywords(function, name, out, keywords, x1, x2)
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
_GIVING_WAY = frozenset([int, float, np.ndarray])  # types of first operands of which the second one decides the way
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
    function.__signature__ = _SIGNATURES[nin]
    function.nin, function.nout, function.nargs = nin, 1, nin + 1
    function.general, function.host, function.kinds, function.widens = general, host, kinds, widens
    return function


def _signature(*names: str) -> inspect.Signature:
    """NumPy's, but that arguments may be named."""
    P = inspect.Parameter
    options = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
    arrays = [P(name, P.POSITIONAL_OR_KEYWORD) for name in names]
    keywords = [P(name, P.KEYWORD_ONLY, default=value) for name, value in options.items()]
    return inspect.Signature([*arrays, P("out", P.POSITIONAL_OR_KEYWORD, default=None), *keywords])


_SIGNATURES = {1: _signature("x"), 2: _signature("x1", "x2")}


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


# ---- Functions that aren't elementwise ---------------------------------------------------------------------

# Characters of dtypes.
ANY = "?bBhHiIlLqQefdFD"
INTEGERS = "bBhHiIlLqQ"
REAL = INTEGERS + "fd"
WIDE = "lLqQfdFD"  # whose sums and products are in the same dtype, and accumulated in it
INEXACT = "fdFD"

_PLAIN = frozenset([int, float, complex, bool, str, type(None)])
_F = TypeVar("_F", bound=Callable[..., Any])


class Kind(NamedTuple):
    """The dtypes of an argument that is an array, by their characters, and what else may stand there."""

    chars: str
    same: bool = False
    optional: bool = False
    several: bool = False


def same(chars: str) -> Kind:
    """An array whose dtype is that of the array before."""
    return Kind(chars, same=True)


def optional(kind: str | Kind) -> Kind:
    """An array, or a plain number, or nothing."""
    return (kind if isinstance(kind, Kind) else Kind(kind))._replace(optional=True)


def several(chars: str) -> Kind:
    """A list or tuple of arrays of one dtype."""
    return Kind(chars, several=True)


def short_way(
    host: Callable[..., Any],
    *arrays: str | Kind,
    plain: str = "",
    into: Callable[..., Any] | None = None,
    unless_nan: bool = False,
) -> Callable[[_F], _F]:
    """Decorate a public function: NumPy's own is called at once where it gives the same result.

    That is so if nothing is transformed or debugged, and the leading arguments are arrays on the host (a single one was
    not put on a device) that are neither empty nor weakly typed, of the dtypes given; all others must be plain numbers,
    strings, None, or tuples and lists of these. What NumPy refuses goes the general way, for the error. That is an
    `api_boundary`. ndarrays are taken, too; of results that are views of their memory a copy is made.

    Parameters
    ----------
    host : NumPy's function, or one of ndarrays with the same parameters
    arrays : for each leading argument that is an array, its dtypes for which `host` gives what the function gives
        As a string of their characters, or `same`, `optional` or `several` of one.
    plain : names of other parameters, which `host` has with the same meaning; calls with more go the general way
    into : what makes the result of several ones; by default they stay a tuple or list
    unless_nan : the general way has the last word on results with NaN
    """
    names = frozenset(plain.split())
    kinds = [kind if isinstance(kind, Kind) else Kind(kind) for kind in arrays]
    accepted = _accept(kinds, names)
    moves = any(kind.chars is ANY for kind in kinds)  # and never warns

    def decorate(general: _F) -> _F:
        most = _most(general, len(arrays), names)

        @functools.wraps(general)
        def function(*args: Any, **kwargs: Any) -> Any:
            if state.fast_by_types and len(args) <= most:
                lent = False
                values = accepted(args, kwargs)
                if values is None and kinds:
                    lent = True
                    values = accepted(_lent(args, kinds), kwargs)
                if values is not None:
                    token = None if moves else quiet_begin()
                    try:
                        out = host(*values, **kwargs)
                    except REFUSALS:
                        out = None
                    finally:
                        if token is not None:
                            quiet_end(token)
                    if not (out is None or (unless_nan and _has_nan(out))):
                        if (type(out) is np.ndarray and out.ndim and not lent) or isinstance(out, np.generic):
                            return ArrayImpl(out)
                        return _wrapped(out, into, lent)
            try:
                return general(*args, **kwargs)
            except Exception as error:
                name_function(error, function)
                error.__traceback__ = filtered_traceback(error.__traceback__)
                raise

        function.decorate = decorate  # type: ignore[attr-defined]
        return function  # type: ignore[return-value]

    return decorate


def _most(function: Callable[..., Any], arrays: int, names: frozenset[str]) -> int:
    """How many arguments may come by position: the arrays, and those named that stand behind them."""
    rest = list(inspect.signature(function).parameters.values())[arrays:]
    known = itertools.takewhile(lambda p: p.name in names and p.kind is not p.KEYWORD_ONLY, rest)
    return arrays + sum(99 if p.kind is p.VAR_POSITIONAL else 1 for p in known)


_Accept = Callable[[Sequence[Any], dict[str, Any]], Sequence[Any] | None]


def _accept(kinds: Sequence[Kind], names: frozenset[str]) -> _Accept:
    """What finds the arguments for NumPy, or None, of a function of arrays of these kinds."""
    least = len(kinds) - len(list(itertools.takewhile(lambda kind: kind.optional, kinds[::-1])))

    def accepted(args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any] | None:
        n = len(args)
        if n < least:
            return None
        values: list[Any] = []
        dtype = None
        for x, kind in zip(args, kinds):
            if type(x) is ArrayImpl:
                h = x._host
                if h is None or x._weak or not h.size:
                    return None
                before, dtype = dtype, h.dtype
                chars, same, _, several = kind
                if dtype.char not in chars or (same and dtype is not before) or several:
                    return None
                values.append(h)
            elif kind.several:
                x = hosts(x, kind.chars)
                if x is None:
                    return None
                values.append(x)
            elif kind.optional and type(x) in _PLAIN:
                values.append(x)
            else:
                return None
        if n > len(kinds):
            rest = args[len(kinds) :]
            if not _are_plain(rest):
                return None
            values += rest
        return values if not kwargs or (kwargs.keys() <= names and _are_plain(kwargs.values())) else None

    # The same for the most frequent cases.

    def one(args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any] | None:
        if args and type(a := args[0]) is ArrayImpl:
            h = a._host
            if h is not None and h.dtype.char in chars and h.size and not a._weak and a._device is None:
                if len(args) == 1 and not kwargs:
                    return (h,)
                rest = args[1:]
                if _are_plain(rest) and (not kwargs or (kwargs.keys() <= names and _are_plain(kwargs.values()))):
                    return (h, *rest)
        return None

    def two(args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any] | None:
        if len(args) == 2 and not kwargs:
            x, y = args
            if type(x) is type(y) is ArrayImpl and not (x._weak or y._weak):
                a, b = x._host, y._host
                if (
                    a is not None
                    and b is not None
                    and a.dtype is b.dtype
                    and a.dtype.char in chars
                    and a.size
                    and b.size
                ):
                    return a, b
        return accepted(args, kwargs)

    if not kinds or kinds[0].optional or kinds[0].several:
        return accepted
    chars = kinds[0].chars
    return one if len(kinds) == 1 else two if len(kinds) == 2 and kinds[1].same else accepted


def _are_plain(values: Iterable[Any]) -> bool:
    return _PLAIN.issuperset(map(type, values)) or all(map(_is_plain, values))


def _is_plain(x: Any) -> bool:
    return type(x) in _PLAIN or (type(x) in (tuple, list) and _are_plain(x))


def hosts(arrays: Any, chars: str = ANY) -> list[Any] | None:
    """The host values of a list of arrays of one dtype, if NumPy may join them at once."""
    if type(arrays) is not list and type(arrays) is not tuple:
        return None
    found: list[Any] = []
    dtype = None
    for x in arrays:
        if type(x) is not ArrayImpl:
            return None
        h = x._host
        if h is None or x._weak or (dtype is not None and h.dtype is not dtype):
            return None
        dtype = h.dtype
        found.append(h)
    return found if dtype is not None and dtype.char in chars else None


def _lent(args: Sequence[Any], kinds: Sequence[Kind]) -> Sequence[Any]:
    known = [lend(x) if type(x) is np.ndarray or kind.several else x for x, kind in zip(args, kinds)]
    return [*known, *args[len(kinds) :]]


def lend(x: Any) -> Any:
    """An array in the memory of an ndarray, which NumPy may read; its user may write to it later.

    Anything else, but a list or tuple of them, is returned as it is.
    """
    t = type(x)
    if t is np.ndarray and _CANONICAL.get(x.dtype.char) is x.dtype and state.enable_x64:
        return ArrayImpl(x.view() if x.ndim else x[()])
    return [*map(lend, x)] if t is list or t is tuple else x


_CANONICAL = {d.char: d for d in dtypes.kinds if d.char in ANY}


def _has_nan(out: Any) -> bool:
    return bool(np.isnan(out).any()) if out.ndim else out != out


def _wrapped(out: Any, into: Any = None, lent: bool = False) -> Any:
    """NumPy's results as arrays: also Python numbers, several of them, and those of rank 0; copies of lent memory."""
    if isinstance(out, np.generic):
        return ArrayImpl(out)
    if isinstance(out, (tuple, list)):
        return (into or type(out))(
            [ArrayImpl(x) if type(x) is np.ndarray and x.ndim and not lent else _wrapped(x, None, lent) for x in out]
        )
    if type(out) is np.ndarray and out.ndim:
        return ArrayImpl(out.copy() if lent and out.base is not None else out)
    return ArrayImpl(np.asarray(out)[()])
