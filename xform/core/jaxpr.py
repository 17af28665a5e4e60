"""The IR: a jaxpr is a typed, first-order list of equations over variables.

A variable made while staging *is* the tracer that the user's function sees (`Var` derives from `Tracer`).
Derived programs (its derivative, its batched form, its executable) are cached on the `ClosedJaxpr` they come from.

May import: the rest of `core`.
"""

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xform.core import source
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import JaxprTypeError
from xform.core.trace import Primitive, Tracer


class Var(Tracer):
    """A variable of a jaxpr; while its program is being traced, the tracer of that value."""

    __slots__ = ("_source", "aval")

    def __init__(self, trace: Any, aval: ShapedArray, src: source.Source | None = None):
        self._trace, self.aval, self._source = trace, aval, src

    def _origin(self) -> str:
        trace: Any = self._trace
        of = f" while tracing {trace.what}" if getattr(trace, "what", None) else ""
        if self._source is None:
            return f" It is an argument{of}." if of else ""
        return f" It was made at {source.describe(self._source)}{of}."


class Literal:
    """A constant of rank 0 in a jaxpr."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val, self.aval = val, aval

    def __repr__(self) -> str:
        v = self.val
        text = str(v.item() if isinstance(v, np.generic | np.ndarray) and v.dtype.kind in "fiub" else v)
        return f"{text}:{self.aval.str_short()}"


class DropVar(Var):
    """A result that nobody uses; prints as ``_``."""

    __slots__ = ()


Atom = Var | Literal


class Eqn:
    """``outvars = primitive[params] invars``, with the place in the user's program."""

    __slots__ = ("invars", "outvars", "params", "primitive", "source")

    def __init__(
        self,
        primitive: Primitive,
        invars: Sequence[Atom],
        params: dict[str, Any],
        outvars: Sequence[Var],
        src: source.Source | None = None,
    ):
        self.primitive, self.invars, self.params, self.outvars, self.source = (
            primitive,
            invars,
            params,
            outvars,
            src,
        )

    def replace(self, **parts: Any) -> "Eqn":
        """A copy with some parts replaced."""
        old = {
            "primitive": self.primitive,
            "invars": self.invars,
            "params": self.params,
            "outvars": self.outvars,
        }
        return Eqn(**{**old, "src": self.source, **parts})

    def __repr__(self) -> str:
        return "\n".join(_format_eqn(self, _Names(), 0))


class Jaxpr:
    """``{ lambda constvars ; invars. let eqns in outvars }``.

    Attributes
    ----------
    constvars, invars : list of Var
    outvars : list of Var or Literal
    eqns : list of Eqn
    """

    __slots__ = ("__weakref__", "constvars", "eqns", "invars", "is_tape", "name", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Eqn],
        name: str = "",
    ):
        self.constvars, self.invars, self.outvars = list(constvars), list(invars), list(outvars)
        self.eqns, self.name = list(eqns), name
        self.is_tape = False  # whether every equation is linear in the inputs, as on the tape of reverse mode

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Avals of the inputs."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Avals of the results."""
        return [v.aval for v in self.outvars]

    def __repr__(self) -> str:
        return "\n".join(_format_jaxpr(self, _Names(), 0))

    __str__ = __repr__


class ClosedJaxpr:
    """A jaxpr with the values of its constants.

    `cache` holds what was derived from it: its derivative, transpose, batched forms and executables.
    """

    __slots__ = ("__weakref__", "cache", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        self.jaxpr, self.consts = jaxpr, list(consts)
        self.cache: dict[Any, Any] = {}

    @property
    def eqns(self) -> list[Eqn]:
        """The equations."""
        return self.jaxpr.eqns

    @property
    def in_avals(self) -> list[ShapedArray]:
        """Avals of the inputs."""
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        """Avals of the results."""
        return self.jaxpr.out_avals

    def __repr__(self) -> str:
        return repr(self.jaxpr)


def cached_on_jaxpr(function: Callable[..., Any]) -> Callable[..., Any]:
    """Memoize ``function(closed_jaxpr, *hashable)`` in the jaxpr's own cache."""

    @functools.wraps(function)
    def wrapper(closed: ClosedJaxpr, *args: Any) -> Any:
        key = (function, args)
        found = closed.cache.get(key)
        if found is None:
            found = closed.cache[key] = function(closed, *args)
        return found

    return wrapper


def subjaxprs(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs among an equation's parameters."""
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, ClosedJaxpr):
                yield item.jaxpr
            elif isinstance(item, Jaxpr):
                yield item


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Bind each equation of `jaxpr` in turn, in the interpretation that is under way.

    Values are dropped after their last use, so an evaluation needs no more memory than the program did.
    """
    env: dict[int, Any] = {}
    for var, value in zip(jaxpr.constvars, consts, strict=True):
        env[id(var)] = value
    for var, value in zip(jaxpr.invars, args, strict=True):
        env[id(var)] = value
    outer_source = state.source
    try:
        for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
            state.source = eqn.source
            inputs = [v.val if type(v) is Literal else env[id(v)] for v in eqn.invars]
            out = eqn.primitive.bind(*inputs, **eqn.params)
            if eqn.primitive.multiple_results:
                for var, value in zip(eqn.outvars, out, strict=True):
                    env[id(var)] = value
            else:
                env[id(eqn.outvars[0])] = out
            for key in dying:
                env.pop(key, None)
    finally:
        state.source = outer_source
    return [v.val if type(v) is Literal else env[id(v)] for v in jaxpr.outvars]


def last_uses(jaxpr: Jaxpr) -> list[list[int]]:
    """For each equation, the ids of the variables that no later equation needs."""
    seen = {id(v) for v in jaxpr.outvars}
    out = []
    for eqn in reversed(jaxpr.eqns):
        dying = []
        for v in itertools.chain(eqn.invars, eqn.outvars):
            if type(v) is not Literal and id(v) not in seen:
                seen.add(id(v))
                dying.append(id(v))
        out.append(dying)
    out.reverse()
    return out


# The type checker.


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that every variable is defined once, before its use, and every equation has the types it says.

    Raises
    ------
    JaxprTypeError
        Naming the equation at fault.
    """
    defined: set[int] = set()

    def define(var: Var, where: Any) -> None:
        if id(var) in defined:
            raise JaxprTypeError(f"variable defined twice, in {_where(where)}:\n{jaxpr}")
        defined.add(id(var))

    def check_use(atom: Atom, where: Any) -> None:
        if type(atom) is not Literal and id(atom) not in defined:
            raise JaxprTypeError(f"variable of {atom.aval} used but not defined, in {_where(where)}:\n{jaxpr}")

    for var in itertools.chain(jaxpr.constvars, jaxpr.invars):
        define(var, "the inputs")
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            check_use(atom, eqn)
        try:
            expected = eqn.primitive.abstract_eval(*[v.aval for v in eqn.invars], **eqn.params)
        except (TypeError, ValueError) as error:
            raise JaxprTypeError(f"{_where(eqn)}: {error}, in:\n{jaxpr}") from error
        expected = list(expected) if eqn.primitive.multiple_results else [expected]
        if [a.strong for a in expected] != [v.aval.strong for v in eqn.outvars]:
            found = [v.aval for v in eqn.outvars]
            raise JaxprTypeError(f"{_where(eqn)} has results {found}, its operands give {expected}, in:\n{jaxpr}")
        for inner in subjaxprs(eqn.params):
            check_jaxpr(inner)
        for var in eqn.outvars:
            define(var, eqn)
    for atom in jaxpr.outvars:
        check_use(atom, "the results")


def _where(place: Any) -> str:
    return place if isinstance(place, str) else f"equation '{place}'"


# Printing, in JAX's notation.


class _Names:
    """Gives variables the names a, b, ..., z, ba, bb, ... in order of appearance."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}

    def __call__(self, v: Any) -> str:
        if type(v) is Literal:
            return repr(v)
        name = self.names.get(id(v))
        if name is None:
            n, name = len(self.names), ""
            while True:
                name = chr(ord("a") + n % 26) + name
                n //= 26
                if n == 0:
                    break
            self.names[id(v)] = name
        return name

    def typed(self, v: Any) -> str:
        return "_" if type(v) is DropVar else f"{self(v)}:{v.aval.str_short()}"


def _format_param(name: str, value: Any, names: _Names, indent: int) -> list[str]:
    pad = " " * indent
    if isinstance(value, ClosedJaxpr | Jaxpr):
        inner = value.jaxpr if isinstance(value, ClosedJaxpr) else value
        lines = _format_jaxpr(inner, _Names(), indent)
        return [f"{pad}{name}={lines[0].lstrip()}", *lines[1:]]
    if isinstance(value, tuple) and value and all(isinstance(v, ClosedJaxpr) for v in value):
        lines = [f"{pad}{name}=("]
        for v in value:
            lines += _format_jaxpr(v.jaxpr, _Names(), indent + 2)
        return [*lines, f"{pad})"]
    return [f"{pad}{name}={_format_value(value)}"]


def _format_value(value: Any) -> str:
    if isinstance(value, np.dtype):
        return value.name
    if callable(value) and hasattr(value, "__name__"):
        return value.__name__
    return str(value)


def _format_eqn(eqn: Eqn, names: _Names, indent: int) -> list[str]:
    pad = " " * indent
    args = " ".join(names(v) for v in eqn.invars)
    outs = " ".join(names.typed(v) for v in eqn.outvars)
    head = f"{pad}{outs} = {eqn.primitive}" if outs else f"{pad}{eqn.primitive}"
    shown = {k: v for k, v in eqn.params.items() if v is not None}
    if not shown:
        return [f"{head} {args}"]
    if any(True for _ in subjaxprs(shown)):
        lines = [f"{head}["]
        for k in sorted(shown):
            lines += _format_param(k, shown[k], names, indent + 2)
        return [*lines, f"{pad}] {args}"]
    inside = " ".join(f"{k}={_format_value(shown[k])}" for k in sorted(shown))
    return [f"{head}[{inside}] {args}"]


def _format_jaxpr(jaxpr: Jaxpr, names: _Names, indent: int) -> list[str]:
    pad = " " * indent
    consts = " ".join(names.typed(v) for v in jaxpr.constvars)
    args = " ".join(names.typed(v) for v in jaxpr.invars)
    head = f"{pad}{{ lambda {consts}{' ' if consts else ''}; {args}. let"
    eqns = [line for eqn in jaxpr.eqns for line in _format_eqn(eqn, names, indent + 4)]
    outs = ", ".join(names(v) for v in jaxpr.outvars) + ("," if len(jaxpr.outvars) == 1 else "")
    if not eqns:
        return [f"{head}  in ({outs}) }}"]
    return [head, *eqns, f"{pad}  in ({outs}) }}"]
