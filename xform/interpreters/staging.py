"""Staging: run a Python function on tracers and record what it does as a jaxpr.

May import: `xform.core`, `interpreters.passes`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl, get_aval, host_value, own
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import UnexpectedTracerError
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, check_jaxpr
from xform.core.source import current as current_source
from xform.core.source import describe
from xform.core.trace import Primitive, Trace, Tracer, staging
from xform.interpreters import passes

ARRAYS = (Array, np.ndarray, np.generic)


class StagingTrace(Trace):
    """Records equations. Values from outside become constants of the jaxpr."""

    __slots__ = ("consts", "constvars", "eqns", "invars", "name", "what")

    def __init__(self, what: str = "", by: str = "tracing"):
        super().__init__()
        self.name, self.what = by, what  # the transformation and the function being traced, for messages
        self.eqns: list[Eqn] = []
        self.invars: list[Var] = []
        self.constvars: dict[int, Var] = {}
        self.consts: list[Any] = []

    def __str__(self) -> str:
        return f"{self.name}({self.what})" if self.what else self.name

    def new_input(self, aval: ShapedArray) -> Var:
        """A new argument of the program."""
        var = Var(self, aval)
        self.invars.append(var)
        return var

    def lift(self, x: Any) -> Var | Literal:
        """The variable or literal that stands for `x` in this program."""
        if isinstance(x, Tracer):
            trace = x._trace
            if trace is self:
                return x  # type: ignore[return-value]
            if trace.level >= self.level or not trace.alive:
                raise x.leaked()
            aval = x.aval
        elif isinstance(x, np.generic) and x.dtype is (aval := get_aval(x)).dtype:  # frequent: constants such as 2.0
            return Literal(x, aval)
        else:
            if not isinstance(x, ARRAYS):  # Python scalars, and what has __array__
                x = own(x)
            aval = get_aval(x)
            known = type(x) is not ArrayImpl or x._host is not None
            if known and aval.ndim == 0 and aval.dtype != dtypes.float0:
                return Literal(np.asarray(host_value(x))[()], aval)
        var = self.constvars.get(id(x))
        if var is None:
            var = self.constvars[id(x)] = Var(self, aval)
            self.consts.append(x)
        return var

    def lift_all(self, args: Sequence[Any]) -> tuple[list[Any], tuple[ShapedArray, ...]]:
        """The variables and literals for operands, and their avals."""
        invars, avals = [], []
        for a in args:
            if type(a) is not Var or a._trace is not self:
                a = self.lift(a)
            invars.append(a)
            avals.append(a.aval)
        return invars, tuple(avals)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if not self.alive:
            raise next(a for a in args if isinstance(a, Tracer) and a._trace is self).leaked()
        invars, avals = self.lift_all(args)
        out = primitive.types(avals, params)
        src = state.source or current_source(3)
        if primitive.multiple_results:
            outvars = [Var(self, aval, src) for aval in out]
            self.eqns.append(Eqn(primitive, invars, params, outvars, src))
            return outvars
        var = Var(self, out, src)
        self.eqns.append(Eqn(primitive, invars, params, [var], src))
        return var

    def finish(self, outs: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The jaxpr that computes `outs`, and its constants."""
        outvars = [self.lift(x) for x in outs]
        jaxpr = Jaxpr(list(self.constvars.values()), self.invars, outvars, self.eqns, self.what)
        consts = [own(c) if isinstance(c, np.ndarray) and c.dtype != dtypes.float0 else c for c in self.consts]
        self.eqns, self.invars, self.constvars, self.consts = [], [], {}, []
        return jaxpr, consts


def trace_to_jaxpr(
    function: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], what: str = "", by: str = "tracing"
) -> tuple[Jaxpr, list[Any]]:
    """Stage ``function(*tracers) -> list of values``. `what` names the function, `by` who traces it.

    Returns the jaxpr, with dead code removed, and the values of its constants (arrays, or tracers of outer traces).
    """
    trace = StagingTrace(what or getattr(function, "__name__", "function"), by)
    with trace, staging(trace):
        outs = function(*[trace.new_input(aval) for aval in in_avals])
        jaxpr, consts = trace.finish(outs)
    del outs
    if state.check_tracer_leaks:
        _check_leaks(jaxpr)
    jaxpr, consts = passes.dead_code(jaxpr, consts)
    if state.enable_checks:
        check_jaxpr(jaxpr)
    return jaxpr, consts


def trace_to_closed(
    function: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], what: str = "", by: str = "tracing"
) -> tuple[ClosedJaxpr, list[Any]]:
    """Stage a function into a jaxpr without constants: they are its leading inputs, and returned beside it."""
    jaxpr, consts = trace_to_jaxpr(function, in_avals, what, by)
    return hoist_consts(jaxpr), consts


def hoist_consts(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Turn the constants of a jaxpr into leading inputs."""
    if not jaxpr.constvars:
        return ClosedJaxpr(jaxpr)
    return ClosedJaxpr(Jaxpr([], jaxpr.constvars + jaxpr.invars, jaxpr.outvars, jaxpr.eqns, jaxpr.name))


def _check_leaks(jaxpr: Jaxpr) -> None:
    """Raise if something outside the jaxpr still holds one of its tracers."""
    import gc
    import sys

    for eqn in jaxpr.eqns:
        for var in eqn.outvars:
            uses = sum(v is var for e in jaxpr.eqns for v in (*e.invars, *e.outvars))
            uses += sum(v is var for v in jaxpr.outvars)
            if sys.getrefcount(var) > uses + 2:
                gc.collect()
                if sys.getrefcount(var) > uses + 2:
                    raise UnexpectedTracerError(
                        f"a tracer of {var.aval} made at {describe(eqn.source)} outlives its trace of {jaxpr.name}"
                    )
