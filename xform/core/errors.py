"""The library's exceptions, and tracebacks that show the user's lines only.

May import: the standard library and `core.config`.
"""

import functools
import os
import re
import types
from collections.abc import Callable
from typing import Any, TypeVar

from xform.core.config import state

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_F = TypeVar("_F", bound=Callable[..., Any])


class ConcretizationTypeError(TypeError):
    """A traced value was used where Python needs a concrete one."""


class TracerBoolConversionError(ConcretizationTypeError):
    """`bool(tracer)`: Python control flow on a traced value."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """`int(tracer)` or an index made of a traced value."""


class TracerArrayConversionError(TypeError):
    """`np.asarray(tracer)`: a NumPy function that knows no tracers was given one."""


class NonConcreteBooleanIndexError(IndexError):
    """A boolean mask as index inside a trace: the shape of the result would depend on values."""


class UnexpectedTracerError(RuntimeError):
    """A tracer was used after its trace had ended."""


class JaxprTypeError(TypeError):
    """A jaxpr is not well formed."""


def filtered_traceback(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """`traceback` without the frames of this library."""
    if state.traceback_filtering == "off":
        return traceback
    entries = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(PACKAGE):
            entries.append(traceback)
        traceback = traceback.tb_next
    out = None
    for entry in reversed(entries):
        out = types.TracebackType(out, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return out


_NAMING = (["lax"], ["numpy"], ["random"])
_NAMED = re.compile(r"\b(lax|numpy|random)\.\w")
_LEADING = re.compile(r"(lax|numpy)\.([\w.]*\w)")
_SUBMODULES = {"linalg": "linalg.", "norms": "linalg.", "fft": "fft."}


def name_function(error: Exception, function: Callable[..., Any]) -> None:
    """Begin the message with the name of `function`, of lax, numpy or random.

    That is so where Python or a helper that serves many functions says what is wrong, and where a function of numpy
    calls another one, or an operation of lax, that refuses what it was given; not of what users' code raises.
    """
    package = function.__module__.split(".")[1:2]
    if package not in _NAMING or not isinstance(
        error, (TypeError, ValueError, IndexError, OverflowError, RuntimeError)
    ):
        return
    message = error.args[0] if len(error.args) == 1 else None
    if not isinstance(message, str):
        return
    name = function.__name__
    if name.startswith(("_", "<")) or ".updates" in function.__module__:
        return
    own = name
    if package == ["numpy"]:
        own = _SUBMODULES.get(function.__module__.rpartition(".")[2], "") + function.__qualname__
    leading = _LEADING.match(message)
    if leading and package == ["numpy"]:
        named = leading[1] == "numpy" and f".{leading[2]}".endswith(f".{own}")
        if named:
            return
        message = f"numpy.{own}{message[leading.end() :]}"
    elif type(error) in (TypeError, ValueError, IndexError, OverflowError) and not (
        _NAMED.search(message) or re.search(rf"\b{name}\b", message)
    ):
        message = f"{package[0]}.{own}: {message}"
    else:
        return
    traceback = error.__traceback__
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(PACKAGE):
            return
        traceback = traceback.tb_next
    error.args = (message,)
    if hasattr(error, "_msg"):  # NumPy's AxisError keeps its text there
        error._msg = message


def leave(error: Exception, function: Callable[..., Any]) -> None:
    """What happens to an error that leaves a public function: it is named, and the library's own frames go."""
    name_function(error, function)
    error.__traceback__ = filtered_traceback(error.__traceback__)


def api_boundary(function: _F) -> _F:
    """Decorate a public function so that errors leave it without the library's own frames.

    A bare ``raise`` keeps the replaced traceback as it is and adds no entry for this frame.
    """

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            leave(error, wrapper)  # which may have been named later
            raise

    return wrapper  # type: ignore[return-value]
