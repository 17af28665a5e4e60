"""Tracers, traces and primitives: the protocol by which an operation reaches an interpreter.

1. Every operation is a `Primitive`. ``primitive.bind(*args, **params)`` hands it to a `Trace`.
2. A `Trace` is one interpreter at work. It has a level, and makes `Tracer` objects, which stand for arrays.
3. `bind` picks the trace with the highest level among its arguments' and the active staging trace.
4. That trace's ``process(primitive, args, params)`` looks up the primitive's rule for its transformation and runs it,
   usually binding other operations on a lower level.
5. With no trace at all the operation is evaluated at once, by the primitive's host rule.

A trace that has ended is dead; using one of its tracers raises `UnexpectedTracerError`.

May import: the rest of `core`.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core.array import Array, ArrayImpl, get_aval, host_value
from xform.core.avals import ShapedArray
from xform.core.config import refresh, state
from xform.core.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)


class Trace:
    """One interpreter at work; subclasses say in `process` what an operation means to them.

    Used as a context manager: the level is taken on entry, and the trace is dead after exit.
    """

    __slots__ = ("alive", "level")
    name: str = "trace"
    is_tape = False  # whether it records operations on tangents, for reverse mode

    def __init__(self) -> None:
        self.alive = False
        self.level = -1

    def __enter__(self) -> Any:
        state.level = self.level = state.level + 1
        self.alive = True
        return self

    def __exit__(self, *_: object) -> None:
        self.alive = False
        state.level = self.level - 1

    def __str__(self) -> str:
        """The transformation, with what tells it from others of its kind."""
        return self.name

    def process(self, primitive: "Primitive", args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply `primitive` in this interpretation."""
        raise NotImplementedError


class Tracer(Array):
    """Stands for an array while a function is traced. How it prints: `xform.numpy.text`."""

    __slots__ = ("_trace",)
    _trace: Trace
    under: Any = None  # the value of a lower level that it wraps; None: a value yet to be computed

    def transformations(self) -> str:
        """What it is traced by, from the innermost transformation to the outermost: ``grad in vmap(3) in jit(f)``."""
        names, x = [], self
        while isinstance(x, Tracer):
            if x._trace is not None:  # of a variable in a program that was made without tracing
                names.append(str(x._trace))
            x = x.under
        return " in ".join(names)

    def _origin(self) -> str:
        """Where this tracer was made, for error messages."""
        return ""

    def leaked(self) -> UnexpectedTracerError:
        """The error to raise when this tracer is used after its trace has ended."""
        return UnexpectedTracerError(
            f"a traced value of {self.aval} is used after its trace, {self._trace}, has ended.{self._origin()}\n"
            "Values computed inside a transformed function must leave it as return values, not through globals, "
            "attributes, generators or closures."
        )

    def known(self) -> Any:
        """The value where it is known while tracing, as that of a primal outside `jit` and `vmap` is; else None."""
        under = self.under
        return under.known() if isinstance(under, Tracer) else under

    def _concretization(self, kind: type[Exception], what: str, hint: str) -> Exception:
        return kind(
            f"{what} needs a concrete value, but this is a traced array of {self.aval}, in {self.transformations()}."
            f"{self._origin()}\n{hint}"
        )

    def __bool__(self) -> bool:
        if (value := self.known()) is not None:
            return bool(value)
        hint = (
            "Use xform.numpy.where or xform.lax.cond instead of `if`, xform.lax.while_loop instead of `while`, "
            "& | ~ instead of `and` `or` `not`; or make the argument static (static_argnums)."
        )
        raise self._concretization(TracerBoolConversionError, "bool()", hint)

    def _to_integer(self, what: str) -> Any:
        hint = (
            "Shapes, axes and loop counts of Python must be known when tracing: make the argument static "
            "(static_argnums), or use xform.lax.dynamic_slice, xform.lax.fori_loop, or array indexing."
        )
        raise self._concretization(TracerIntegerConversionError, what, hint)

    def __index__(self) -> int:
        value = self.known()
        return self._to_integer("an index or integer argument") if value is None else operator.index(value)

    def __int__(self) -> int:
        value = self.known()
        return self._to_integer("int()") if value is None else int(value)

    def _to_scalar(self, what: str) -> Any:
        hint = f"Use x.astype({what}) instead of {what}(x), or return the value from the transformed function."
        raise self._concretization(ConcretizationTypeError, f"{what}()", hint)

    def __float__(self) -> float:
        value = self.known()
        return self._to_scalar("float") if value is None else float(value)

    def __complex__(self) -> complex:
        value = self.known()
        return self._to_scalar("complex") if value is None else complex(value)

    def _no_value(self, what: str) -> Any:
        hint = "Inside transformed functions use xform.numpy, or call NumPy's functions on the traced array itself."
        raise self._concretization(TracerArrayConversionError, what, hint)

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return self._no_value("np.asarray()")

    def __dlpack__(self, **options: Any) -> Any:
        return self._no_value("from_dlpack()")

    def __dlpack_device__(self) -> Any:
        return self._no_value("from_dlpack()")

    def item(self, *args: Any) -> Any:
        """Raises: a tracer has no value."""
        return self._no_value("item()")

    def tolist(self) -> Any:
        """Raises: a tracer has no value."""
        return self._no_value("tolist()")

    def tobytes(self, order: str = "C") -> bytes:
        """Raises: a tracer has no value."""
        return self._no_value("tobytes()")

    def block_until_ready(self) -> "Tracer":
        """A tracer is always ready."""
        return self

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: a traced array of {self.aval} can't be a dict key or a static argument")

    def __reduce__(self) -> Any:
        return self._no_value("pickle")

    def __copy__(self) -> "Tracer":
        return self

    def __deepcopy__(self, memo: Any) -> "Tracer":
        return self


class Primitive:
    """An operation that interpreters know, with all its rules as attributes.

    Attributes
    ----------
    name : str
    multiple_results : bool
        Whether it returns a list.
    abstract_eval : (*avals, **params) -> aval or list of avals
        Types of the results; raises TypeError or ValueError for operands that don't fit.
    host : (*ndarrays, **params) -> ndarray or sequence
        Evaluation with NumPy.
    jvp : (primals, tangents, **params) -> (primals out, tangents out)
        Forward derivative. Tangents may be symbolic `Zero`.
    push : (primals, tangents, **params) -> (primals out, tangents out)
        The same with any number of tangents for each operand in turn, Taylor coefficients; for operations on jaxprs.
    jet : (trace, *series, **params) -> series
        Taylor coefficients of the results (see `interpreters.jet`); derived from `jvp` or `push` if it is missing.
    linearize : (trace, primals, tangents, **params) -> (primals out, tangents out)
        How the operation looks to reverse mode; derived from `jvp` unless it holds jaxprs.
    transpose : (cotangents, *args, **params) -> list of cotangents or None
        For linear operations; the arguments it is linear in are `Linear` placeholders.
    transpose_marked : the same, optional
        For cotangents that are marked (see `interpreters.marks`).
    batch : (axis, args, dims, **params) -> (out, dims out)
        On operands with an additional axis at `dims` (None: not batched).
    recompute : (equation, keep, wanted) -> (kept variables, equation or None, equation), optional
        For operations with programs inside, of which `keep` chooses equations: what of the results, and of more
        results, is kept; how the wanted ones are computed again from that; the equation with more results.
    depends : (aval or avals, operands, **params) -> matrices or results, optional
        Which elements depend on which: see `interpreters.dependencies`.
    lower : (ctx, *operands, **params) -> result name or list
        StableHLO text.
    """

    abstract_eval: Callable[..., Any]
    host: Callable[..., Any]
    jvp: Callable[..., Any]
    push: Callable[..., Any]
    jet: Callable[..., Any]
    linearize: Callable[..., Any]
    transpose: Callable[..., Any]
    transpose_marked: Callable[..., Any]
    batch: Callable[..., Any]
    lower: Callable[..., Any]
    dce: Callable[..., Any]
    recompute: Callable[..., Any]
    depends: Callable[..., Any]

    multiple_results = False
    # Whether the host rule is about as fast as a ufunc, so that small programs are better run by NumPy than by XLA.
    is_cheap_on_host = False

    # Whether it is there for more than its results: it is kept if nobody needs these.
    has_effects = False

    # Whether it is not merged with an equal operation, as common subexpressions are.
    stays_apart = False

    # What its transpose puts into cotangents that must not meet 0 * inf, of all operands or of each: see
    # `interpreters.marks`.
    marks: int | tuple[int, ...] = 0

    # What it costs to compute an element of the result again, where to keep a byte of it costs 1: see
    # `interpreters.residuals`, and `lax.costs` for the table.
    cost_again = float("inf")

    # Whether the result types depend on operand types and parameters alone; false for operations on jaxprs, which
    # would be kept alive, and on named axes.
    remembers_types = True

    def __init__(self, name: str, *, multiple_results: bool = False):
        self.name = name
        self.multiple_results = multiple_results
        self._types: dict[Any, Any] = {}
        self.plans: dict[Any, Any] = {}  # see `interpreters.plans`

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str | tuple:
        raise TypeError(f"primitive {self.name} can't be pickled")

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply to arrays, in whatever interpretation is under way."""
        trace = state.trace
        for a in args:
            if isinstance(a, Tracer):
                t = a._trace
                if trace is None or t.level > trace.level:
                    trace = t
        if trace is None:
            return self.evaluate(args, params)
        return trace.process(self, args, params)

    def evaluate(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply to concrete arguments, outside all traces."""
        return evaluate(self, args, params)

    def types(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """`abstract_eval`, remembered: staging and eager evaluation ask for the same types again and again."""
        if not self.remembers_types:
            return self.abstract_eval(*avals, **params)
        key = (avals, tuple(params.items())) if params else avals
        try:
            found = self._types.get(key)
        except TypeError:  # a parameter that can't be hashed
            return self.abstract_eval(*avals, **params)
        if found is None:
            if len(self._types) > 4096:
                self._types.clear()
            found = self._types[key] = self.abstract_eval(*avals, **params)
        return found

    def __getattr__(self, rule: str) -> Any:
        # Only reached when a rule is missing.
        if rule in _RULES:
            raise NotImplementedError(f"{_RULES[rule]} of primitive '{self.name}' is not defined")
        raise AttributeError(rule)

    def has(self, rule: str) -> bool:
        """Whether the primitive defines `rule`."""
        return rule in self.__dict__ or hasattr(type(self), rule)


_RULES = {
    "abstract_eval": "the result type",
    "host": "evaluation with NumPy",
    "jvp": "forward differentiation (jvp)",
    "jet": "Taylor mode (jet)",
    "transpose": "transposition (reverse differentiation)",
    "batch": "batching (vmap)",
    "lower": "lowering to XLA",
}


def evaluate(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Evaluate a primitive on concrete arguments, outside all traces."""
    avals, values, lent, is_near = [], [], [], state.fast
    for a in args:  # one loop, as comprehensions would take half a microsecond more
        if type(a) is ArrayImpl:
            value = a._host
            avals.append(a._aval or a.aval)
            if value is None:
                is_near = False
        else:
            avals.append(get_aval(a))
            value = host_value(a)
            if isinstance(a, np.ndarray):
                lent.append(a)
        values.append(value)
    out_avals = primitive.types(tuple(avals), params)
    if not is_near:
        from xform.interpreters import eager  # the slow path: other devices, debugging

        if (on_device := eager.evaluate_elsewhere(primitive, args, tuple(avals), out_avals, params)) is not None:
            return on_device
        values = [host_value(a) for a in args]
    token = quiet_begin()
    try:
        out = primitive.host(*values, **params)
    finally:
        quiet_end(token)
    for a in lent:  # the caller's: the result must not be a view of it
        out = [_unshare(o, a) for o in out] if primitive.multiple_results else _unshare(out, a)
    if primitive.multiple_results:
        return [ArrayImpl(o, None, aval) for o, aval in zip(out, out_avals, strict=True)]
    return ArrayImpl(out, None, out_avals)


def _unshare(out: Any, argument: np.ndarray) -> Any:
    return out.copy() if isinstance(out, np.ndarray) and np.may_share_memory(out, argument) else out


class staging:
    """``with staging(trace):`` all operations of this thread go to `trace`."""

    __slots__ = ("previous", "trace")

    def __init__(self, trace: Trace | None):
        self.trace = trace

    def __enter__(self) -> Trace | None:
        self.previous = state.trace
        state.trace = self.trace
        refresh()
        return self.trace

    def __exit__(self, *_: object) -> None:
        state.trace = self.previous
        refresh()


class AxisFrame:
    """A named axis in scope: its size and, under `vmap`, its trace."""

    __slots__ = ("name", "size", "trace")

    def __init__(self, name: Any, size: int, trace: Trace | None = None):
        self.name, self.size, self.trace = name, size, trace


class extend_axis_env:
    """``with extend_axis_env([AxisFrame(...)])``: collectives may name these axes."""

    __slots__ = ("frames", "previous")

    def __init__(self, frames: Sequence[AxisFrame]):
        self.frames = tuple(frames)

    def __enter__(self) -> None:
        self.previous = state.axis_env
        self._set(self.previous + self.frames)

    def __exit__(self, *_: object) -> None:
        self._set(self.previous)

    @staticmethod
    def _set(frames: tuple) -> None:
        state.axis_env = frames
        state.axis_env_key = tuple((f.name, f.size) for f in frames)
        refresh()


def axis_frame(name: Any) -> AxisFrame:
    """The innermost named axis `name`, or NameError."""
    for frame in reversed(state.axis_env):
        if frame.name == name:
            return frame
    bound = ", ".join(repr(f.name) for f in state.axis_env) or "none"
    raise NameError(f"unbound axis name: {name!r} (axes in scope: {bound}); bind it with vmap(axis_name=) or pmap")


def concrete_or_none(x: Any) -> Any:
    """The host value of x if it is known now, else None."""
    return None if isinstance(x, Tracer) else host_value(x)
