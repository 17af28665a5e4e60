"""Forward mode: dual numbers.

May import: `xform.core`, `interpreters.staging`, `interpreters.tangents`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from xform.core.jaxpr import ClosedJaxpr, cached_on_jaxpr, eval_jaxpr
from xform.core.trace import Primitive, Trace, Tracer
from xform.interpreters.staging import trace_to_closed
from xform.interpreters.tangents import Zero, instantiate, is_zero, zero_of


class JVPTracer(Tracer):
    """A primal value with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: "JVPTrace", primal: Any, tangent: Any):
        self._trace, self.primal, self.tangent = trace, primal, tangent

    @property
    def aval(self) -> Any:  # type: ignore[override]
        """The aval of the primal value."""
        return self.primal.aval

    def known(self) -> Any:
        """The primal value, if it is known."""
        primal = self.primal
        return primal.known() if isinstance(primal, Tracer) else primal


class JVPTrace(Trace):
    """Computes tangents beside primal values."""

    __slots__ = ()
    name = "jvp"

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals, tangents = split_tracers(self, JVPTracer, args)
        out, tangent_out = primitive.jvp(primals, tangents, **params)
        if primitive.multiple_results:
            return [self.wrap(p, t) for p, t in zip(out, tangent_out, strict=True)]
        return self.wrap(out, tangent_out)

    def wrap(self, primal: Any, tangent: Any) -> Any:
        """A tracer, unless the tangent is known to be zero."""
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)


def split_tracers(trace: Trace, kind: Any, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Primal and tangent parts of arguments; what doesn't belong to `trace` has a zero tangent."""
    primals, tangents = [], []
    for a in args:
        if type(a) is kind and a._trace is trace:
            primals.append(a.primal)
            tangents.append(a.tangent)
        else:
            if isinstance(a, Tracer) and (a._trace.level >= trace.level or not a._trace.alive):
                raise a.leaked()
            primals.append(a)
            tangents.append(zero_of(a))
    if not trace.alive:
        raise next(a for a in args if isinstance(a, Tracer) and a._trace is trace).leaked()
    return primals, tangents


def jvp(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Push tangents (arrays or `Zero`) forward through a function of flat arguments that returns a list."""
    with JVPTrace() as trace:
        outs = function(*[trace.wrap(p, t) for p, t in zip(primals, tangents, strict=True)])
        return split_tracers(trace, JVPTracer, outs)


@cached_on_jaxpr
def jvp_jaxpr(closed: ClosedJaxpr, nonzero: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The jaxpr of primals and the nonzero tangents to results and their nonzero tangents.

    Returns it and which tangents of the results are nonzero.
    """
    nonzero_out: tuple[bool, ...] = ()

    def program(*args: Any) -> list[Any]:
        nonlocal nonzero_out
        primals, rest = args[: len(nonzero)], iter(args[len(nonzero) :])
        tangents = [next(rest) if nz else zero_of(p) for p, nz in zip(primals, nonzero, strict=True)]
        outs, tangents_out = jvp(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents)
        nonzero_out = tuple(not is_zero(t) for t in tangents_out)
        return [*outs, *[t for t in tangents_out if not is_zero(t)]]

    avals = closed.in_avals
    tangent_avals = [a.to_tangent_aval() for a, nz in zip(avals, nonzero, strict=True) if nz]
    jaxpr, consts = trace_to_closed(program, [*avals, *tangent_avals], closed.jaxpr.name)
    return with_consts(jaxpr, consts), nonzero_out


def jvp_jaxpr_fixed(closed: ClosedJaxpr, nonzero: tuple[bool, ...], nonzero_out: tuple[bool, ...]) -> ClosedJaxpr:
    """Like `jvp_jaxpr`, with the given tangents among the results, zeros made where need be."""
    jaxpr, found = jvp_jaxpr(closed, nonzero)
    if found == nonzero_out:
        return jaxpr
    key = ("jvp_fixed", nonzero, nonzero_out)
    if key not in closed.cache:

        def program(*args: Any) -> list[Any]:
            flat = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
            outs, rest = flat[: len(found)], iter(flat[len(found) :])
            tangents = [next(rest) if nz else zero_of(o) for o, nz in zip(outs, found, strict=True)]
            return [*outs, *[instantiate(t) for t, nz in zip(tangents, nonzero_out, strict=True) if nz]]

        fixed, consts = trace_to_closed(program, jaxpr.in_avals, closed.jaxpr.name)
        closed.cache[key] = with_consts(fixed, consts)
    return closed.cache[key]


def with_consts(closed: ClosedJaxpr, consts: Sequence[Any]) -> ClosedJaxpr:
    """Bind the leading inputs of a jaxpr, hoisted by `trace_to_closed`, to their values again."""
    n = len(consts)
    if not n:
        return closed
    jaxpr = closed.jaxpr
    jaxpr.constvars, jaxpr.invars = jaxpr.invars[:n], jaxpr.invars[n:]
    return ClosedJaxpr(jaxpr, consts)
