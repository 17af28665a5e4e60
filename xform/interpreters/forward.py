"""Forward mode: dual numbers; and how operations on jaxprs push tangents, or Taylor coefficients, through them.

May import: `xform.core`, `interpreters.jet`, `interpreters.staging`, `interpreters.tangents`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from xform.core.errors import UnexpectedTracerError
from xform.core.jaxpr import ClosedJaxpr, cached_on_jaxpr, eval_jaxpr
from xform.core.trace import Primitive, Trace, Tracer
from xform.interpreters.jet import jet
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

    @property
    def under(self) -> Any:
        """The primal value."""
        return self.primal


class JVPTrace(Trace):
    """Computes tangents beside primal values."""

    __slots__ = ()
    name = "jvp"

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals, tangents = split_tracers(self, JVPTracer, args)
        rule = primitive.jvp
        if not primitive.remembers_types and any(map(_on_tape, tangents)):
            rule = primitive.__dict__.get("linearize", rule)
        out, tangent_out = rule(primals, tangents, **params)
        if primitive.multiple_results:
            return [self.wrap(p, t) for p, t in zip(out, tangent_out, strict=True)]
        return self.wrap(out, tangent_out)

    def wrap(self, primal: Any, tangent: Any) -> Any:
        """A tracer, unless the tangent is known to be zero."""
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)


def _on_tape(t: Any) -> bool:
    """Whether a tangent is one of reverse mode's, as in a rule of `custom_jvp` that calls `jvp`.

    Operations that hold jaxprs must not put primal values on the tape with it, as they would by their rule for `jvp`.
    """
    while isinstance(t, Tracer):
        if t._trace.is_tape:
            return True
        t = t.under
    return False


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


def push(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """`jvp` if there is one tangent for each primal value; if there are more for each in turn, `jet`."""
    order = len(tangents) // len(primals)
    return jvp(function, primals, tangents) if order == 1 else jet(function, primals, tangents, order)


def with_zeros(nonzero: Sequence[bool], primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """All tangents, of which `tangents` are those that are nonzero; the same number for each primal value in turn."""
    rest, order = iter(tangents), len(nonzero) // max(1, len(primals))
    return [next(rest) if nz else zero_of(primals[i // order]) for i, nz in enumerate(nonzero)]


@cached_on_jaxpr
def jvp_jaxpr(closed: ClosedJaxpr, nonzero: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The jaxpr of primals and the nonzero tangents to results and their nonzero tangents.

    With several tangents for each primal value in turn, they are Taylor coefficients. Returns the jaxpr, and which
    tangents of the results are nonzero.
    """
    avals = closed.in_avals
    nonzero_out: tuple[bool, ...] = ()

    def program(*args: Any) -> list[Any]:
        nonlocal nonzero_out
        primals = args[: len(avals)]
        tangents = with_zeros(nonzero, primals, args[len(avals) :])
        outs, tangents_out = push(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents)
        nonzero_out = tuple(not is_zero(t) for t in tangents_out)
        return [*outs, *[t for t in tangents_out if not is_zero(t)]]

    order = len(nonzero) // max(1, len(avals))
    tangent_avals = [avals[i // order].to_tangent_aval() for i, nz in enumerate(nonzero) if nz]
    jaxpr, consts = trace_to_closed(program, [*avals, *tangent_avals], closed.jaxpr.name)
    return derived(jaxpr, consts), nonzero_out


def jvp_jaxpr_fixed(closed: ClosedJaxpr, nonzero: tuple[bool, ...], nonzero_out: tuple[bool, ...]) -> ClosedJaxpr:
    """Like `jvp_jaxpr`, with the given tangents among the results, zeros made where need be."""
    jaxpr, found = jvp_jaxpr(closed, nonzero)
    if found == nonzero_out:
        return jaxpr
    key, n_out = ("jvp_fixed", nonzero, nonzero_out), len(closed.out_avals)
    if key not in closed.cache:

        def program(*args: Any) -> list[Any]:
            flat = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
            outs, rest = flat[:n_out], flat[n_out:]
            tangents = with_zeros(found, outs, rest)
            return [*outs, *[instantiate(t) for t, nz in zip(tangents, nonzero_out, strict=True) if nz]]

        fixed, consts = trace_to_closed(program, jaxpr.in_avals, closed.jaxpr.name)
        closed.cache[key] = derived(fixed, consts)
    return closed.cache[key]


def with_consts(closed: ClosedJaxpr, consts: Sequence[Any]) -> ClosedJaxpr:
    """Bind the leading inputs of a jaxpr, hoisted by `trace_to_closed`, to their values again."""
    n = len(consts)
    if not n:
        return closed
    jaxpr = closed.jaxpr
    jaxpr.constvars, jaxpr.invars = jaxpr.invars[:n], jaxpr.invars[n:]
    return ClosedJaxpr(jaxpr, consts)


def derived(closed: ClosedJaxpr, consts: Sequence[Any]) -> ClosedJaxpr:
    """`with_consts` for what is derived from a jaxpr, and kept with it: its constants must outlive all traces."""
    for c in consts:
        if isinstance(c, Tracer):
            raise UnexpectedTracerError(
                f"a rule of a function with custom derivatives or vmap, that {closed.jaxpr.name} calls, closes over a "
                f"traced value of {c.aval}, in {c.transformations()}; make the value an argument of the function "
                "(closure_convert does it)"
            )
    return with_consts(closed, consts)
