"""Configuration: one value per thread over a process-wide default, and the thread's current trace.

Every option can be set by an environment variable (``XFORM_ENABLE_X64=0``), for the process
(``xform.config.update("enable_x64", False)``) or for a ``with`` block of one thread
(``with xform.enable_x64(False):``).

The values live in one `threading.local` subclass: its class attributes are the process-wide values, an attribute set
on the instance shadows them in one thread. So a read, which hot paths do on every operation, is one attribute.

May import: the standard library, `backends.xla_runtime`.
"""

import os
import threading
from collections.abc import Callable
from typing import Any

from xform.backends import xla_runtime

__all__ = ["Option", "config", "options", "state", "x64"]


class ThreadState(threading.local):
    """What the current thread is doing; class attributes are the process-wide configuration."""

    # The interpreter stack.
    trace: Any = None  # the innermost staging trace, which receives all operations; None: evaluate at once
    level = 0  # number of traces under way
    source: Any = None  # where in the user's program the operation being transformed stands; None: look at the stack
    marks = 0  # of the cotangents that an operation is being transposed for (see `interpreters.marks`)
    logs: Any = None  # of the backward pass, if somebody wants them (see `interpreters.logs`)
    axis_env: tuple = ()  # named axes in scope, innermost last
    axis_env_key: tuple = ()  # their names and sizes
    # True when an operation on concrete arrays may be done by NumPy right away: no trace, no debugging, CPU.
    fast = True
    # The same, and the options are such that the types of operands alone say what a function does with them.
    fast_by_types = True
    # What a traced program depends on besides its arguments; part of the key of every cache of programs.
    trace_context: tuple = ()
    # The same where compiled programs may run right away; None while tracing, and with `disable_jit` or debugging.
    run_context: tuple | None = ()


state = ThreadState()


class Option:
    """A configuration option, which is also the context manager that sets it for one thread.

    Calling it gives a fresh context manager: ``with debug_nans(True): ...``.
    """

    def __init__(
        self,
        name: str,
        default: Any,
        parse: Callable[[Any], Any],
        doc: str,
        apply: Callable[[Any], None] | None = None,
    ):
        self.name, self.parse, self.__doc__, self.apply = name, parse, doc, apply
        value = parse(os.environ.get("XFORM_" + name.upper(), default))
        if apply is not None and value is not None:
            apply(value)
        setattr(ThreadState, name, value)
        options[name] = self

    @property
    def value(self) -> Any:
        """The value in this thread."""
        return getattr(state, self.name)

    def update(self, value: Any) -> None:
        """Set the process-wide value (and this thread's)."""
        value = self.parse(value)
        if self.apply is not None and value is not None:
            self.apply(value)
        setattr(ThreadState, self.name, value)
        state.__dict__.pop(self.name, None)
        _derive_defaults()
        refresh()

    def __call__(self, new_val: Any = True) -> "_Setting":
        return _Setting(self.name, self.parse(new_val))

    def __repr__(self) -> str:
        return f"{self.name}={self.value!r}"


class _Setting:
    """Sets one option for a ``with`` block, in one thread."""

    __slots__ = ("name", "previous", "value")

    def __init__(self, name: str, value: Any):
        self.name, self.value = name, value
        self.previous: list[Any] = []

    def __enter__(self) -> Any:
        self.previous.append(state.__dict__.get(self.name, self))
        setattr(state, self.name, self.value)
        refresh()
        return self.value

    def __exit__(self, *_: object) -> None:
        previous = self.previous.pop()
        if previous is self:
            state.__dict__.pop(self.name, None)
        else:
            setattr(state, self.name, previous)
        refresh()


def refresh() -> None:
    """Recompute what is derived from the trace, the named axes and the options of this thread."""
    for name, value in _derived(state).items():
        if value == getattr(ThreadState, name):
            state.__dict__.pop(name, None)  # so that this thread follows the process-wide options
        else:
            setattr(state, name, value)


def _derived(s: Any) -> dict[str, Any]:
    plain = s.trace is None and s.default_device is None and not s.debug_nans and not s.debug_infs
    context = (
        s.enable_x64,
        s.numpy_dtype_promotion,
        s.numpy_rank_promotion,
        s.default_matmul_precision,
        s.eager,
        s.small_programs,
        s.default_prng_impl,
        s.axis_env_key,
    )
    fast = plain and s.eager == "numpy" and s.numpy_rank_promotion == "allow"
    return {
        "fast": fast,
        "fast_by_types": fast and s.enable_x64 and s.numpy_dtype_promotion == "standard",
        "trace_context": context,
        "run_context": context if plain and not s.disable_jit else None,
    }


def _derive_defaults() -> None:
    for name, value in _derived(ThreadState).items():
        setattr(ThreadState, name, value)


def _flag(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() in ("1", "true", "yes", "on"):
            return True
        if value.lower() in ("0", "false", "no", "off", ""):
            return False
        raise ValueError(f"expected a boolean, got {value!r}")
    return bool(value)


def _choice(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {choices}, got {value!r}")
        return value

    return parse


def _optional_int(value: Any) -> int | None:
    return None if value in (None, "") else int(value)


def _anything(value: Any) -> Any:
    return value


options: dict[str, Option] = {}

enable_x64 = Option("enable_x64", True, _flag, "64-bit types; when off, 64-bit types become 32-bit ones.")
eager = Option(
    "eager",
    "xla" if xla_runtime.accelerator_expected() else "numpy",
    _choice("numpy", "xla"),
    "Which backend evaluates operations outside `jit`; XLA if there is an accelerator.",
)
small_programs = Option(
    "small_programs",
    "host",
    _choice("host", "xla"),
    "Where `jit` runs programs that NumPy finishes before XLA starts.",
)
default_device = Option("default_device", None, _anything, "The device for new arrays and for `jit`; None: the first.")
_disable_jit = Option("disable_jit", False, _flag, "Run jitted functions as plain Python.")
debug_nans = Option("debug_nans", False, _flag, "Raise FloatingPointError at the operation that makes a NaN.")
debug_infs = Option("debug_infs", False, _flag, "Raise FloatingPointError at the operation that makes an infinity.")
enable_checks = Option("enable_checks", False, _flag, "Type check every jaxpr after every transformation.")
check_tracer_leaks = Option("check_tracer_leaks", False, _flag, "Raise at the end of a trace if a tracer outlives it.")
traceback_filtering = Option(
    "traceback_filtering", "on", _choice("on", "off"), "Whether tracebacks hide the library's own frames."
)
numpy_dtype_promotion = Option(
    "numpy_dtype_promotion",
    "standard",
    _choice("standard", "strict"),
    "'strict': an error where dtypes differ.",
)
numpy_rank_promotion = Option(
    "numpy_rank_promotion",
    "allow",
    _choice("allow", "raise", "warn"),
    "What to do when ranks differ in broadcasting.",
)
default_matmul_precision = Option(
    "default_matmul_precision", None, _anything, "Precision of matrix products that name none."
)
default_prng_impl = Option(
    "default_prng_impl", "threefry2x32", _choice("threefry2x32", "rbg", "unsafe_rbg"), "Generator of bare random keys."
)
log_compiles = Option("log_compiles", False, _flag, "Log every compilation.")
platforms = Option(
    "platforms", None, _anything, "Platforms to use, e.g. 'cpu'; set before the first computation.",
    lambda value: xla_runtime.configure(platforms=value),
)  # fmt: skip
num_cpu_devices = Option(
    "num_cpu_devices", None, _optional_int, "Simulated CPU devices; set before the first computation.",
    lambda value: xla_runtime.configure(num_cpu_devices=value),
)  # fmt: skip
compilation_cache_dir = Option(
    "compilation_cache_dir", None, _anything, "Folder for compiled programs.",
    lambda value: xla_runtime.configure(cache_dir=value),
)  # fmt: skip

_derive_defaults()


class Config:
    """`xform.config`: read options as attributes, set them with `update`.

    JAX's names (``jax_enable_x64``) are understood too.

    Examples
    --------
    >>> import xform
    >>> xform.config.enable_x64
    True
    >>> xform.config.update("debug_nans", False)
    """

    @staticmethod
    def _option(name: str) -> Option:
        option = options.get(name.removeprefix("jax_"))
        if option is None:
            raise AttributeError(f"xform.config has no option {name!r}; it has {', '.join(sorted(options))}")
        return option

    def __getattr__(self, name: str) -> Any:
        return self._option(name).value

    def read(self, name: str) -> Any:
        """The value of an option."""
        return self._option(name).value

    def update(self, name: str, value: Any) -> None:
        """Set an option for the whole process."""
        self._option(name).update(value)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *options]


config = Config()


def disable_jit(disable: bool = True) -> _Setting:
    """``with disable_jit():`` jitted functions, and the bodies of loops, run as plain Python, for debugging.

    Examples
    --------
    >>> import xform
    >>> with xform.disable_jit():
    ...     xform.jit(lambda x: print("value:", x))(1.0)
    value: 1.0
    """
    return _disable_jit(disable)


def x64() -> bool:
    """Whether 64-bit types are on in this thread."""
    return state.enable_x64
