"""Reverse mode: linearize, then transpose.

`LinearizeTrace` runs each operation on primal values in the level below (at once, or staged into a surrounding jit),
and stages the operation on tangents into a second program, the tape. The tape is linear in its inputs; its constants,
values computed on the way, are the residuals. `backward_pass` walks the tape from its end with the transpose rules.

There is no partial evaluation. An operation that holds a jaxpr splits it by `linearize_jaxpr`.

May import: `xform.core`, the other interpreters of derivatives.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core import tree
from xform.core.array import NDARRAYS, ArrayImpl, get_aval
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, cached_on_jaxpr, check_jaxpr, eval_jaxpr
from xform.core.source import current as current_source
from xform.core.trace import Primitive, Trace, Tracer
from xform.interpreters.forward import derived, split_tracers
from xform.interpreters.logs import NO_LOGS, Refused, collecting
from xform.interpreters.marks import ZEROS, is_scaling, marks_of, passed_on
from xform.interpreters.staging import StagingTrace, trace_to_closed
from xform.interpreters.tangents import Linear, Zero, add_tangents, instantiate, is_zero, zero_of


class Shortcuts:
    """Faster ways outside `jit`; `interpreters.plans`, which is built on this module, fills them in."""

    process: Callable[..., Any]  # of LinearizeTrace
    put_on_tape: Callable[..., None]  # calls of plans, as equations
    pull_back: Callable[..., Any]  # through calls of plans only
    walk_back: Callable[..., Any]  # for equations of `plan_call`


class LinearizeTracer(Tracer):
    """A primal value, and the number of its tangent in the trace."""

    __slots__ = ("aval", "number", "primal")

    def __init__(self, trace: "LinearizeTrace", primal: Any, number: int, aval: ShapedArray):
        self._trace, self.primal, self.number, self.aval = trace, primal, number, aval

    @property
    def tangent(self) -> Any:
        """The tape's variable for the tangent."""
        trace: Any = self._trace
        variable = trace.variables[self.number]
        if variable is None:
            trace.put_on_tape()
            variable = trace.variables[self.number]
        return variable

    @property
    def under(self) -> Any:
        """The primal value."""
        return self.primal


class Tape(StagingTrace):
    """The program on tangents. Never the thread's active trace: only operations on its variables come here."""

    __slots__ = ()
    is_tape = True

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        invars, avals = self.lift_all(args)
        out = primitive.types(avals, params)
        if primitive.multiple_results:
            outvars = [Var(self, aval) for aval in out]
            self.eqns.append(Eqn(primitive, invars, params, outvars, state.source))
            return outvars
        var = Var(self, out)
        self.eqns.append(Eqn(primitive, invars, params, [var], state.source))
        return var


class LinearizeTrace(Trace):
    """Evaluates primal operations below, and records the tangent operations.

    Attributes
    ----------
    variables : list
        By number, the tape's variable for each tangent; None as long as the tape wasn't needed for it.
    inputs : list of ShapedArray
        Avals of the first of them, the arguments of the program on tangents.
    calls, residuals : list
        Operations that have a plan (see `interpreters.plans`) and are not on the tape yet: for each, its plan, the
        number of its first nonzero tangent, and the numbers of its operands' tangents; and a tuple of its residuals.
    tape : Tape or None
    """

    __slots__ = ("calls", "inputs", "residuals", "tape", "variables")
    name = "grad"  # or vjp, linearize: reverse mode

    def __init__(self) -> None:
        self.variables: list[Any] = []
        self.inputs: list[Any] = []
        self.calls: list[Any] = []
        self.residuals: list[tuple] = []
        self.tape: Tape | None = None

    def __exit__(self, *_: object) -> None:
        if self.tape is not None:
            self.tape.alive = False
        self.alive = False
        state.level = self.level - 1

    def new_input(self, primal: Any) -> LinearizeTracer:
        """A tracer for an argument that is differentiated."""
        aval = get_aval(primal)
        self.inputs.append(aval.to_tangent_aval())
        self.variables.append(None)
        return LinearizeTracer(self, primal, len(self.variables) - 1, aval)

    def put_on_tape(self) -> Tape:
        """Give every tangent a variable on the tape."""
        if self.tape is None:
            tape = self.tape = Tape(by=self.name)
            tape.level, tape.alive = self.level, self.alive
            self.variables[: len(self.inputs)] = [tape.new_input(aval) for aval in self.inputs]
        if self.calls:
            Shortcuts.put_on_tape(self)
        return self.tape

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Primal and tangent parts: `split_tracers`, with less work for each argument."""
        if not self.alive:
            return split_tracers(self, LinearizeTracer, args)  # the error
        primals, tangents = [], []
        for a in args:
            if type(a) is LinearizeTracer and a._trace is self:
                tangent = self.variables[a.number]
                primals.append(a.primal)
                tangents.append(a.tangent if tangent is None else tangent)
            else:
                if isinstance(a, Tracer) and (a._trace.level >= self.level or not a._trace.alive):
                    raise a.leaked()
                primals.append(a)
                tangents.append(zero_of(a))
        return primals, tangents

    def wrap(self, primal: Any, tangent: Any) -> Any:
        """A tracer, unless the tangent is known to be zero."""
        if type(tangent) is Zero:
            return primal
        self.variables.append(tangent)
        return LinearizeTracer(self, primal, len(self.variables) - 1, get_aval(primal))

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if state.fast and primitive.remembers_types and self.alive:
            out = Shortcuts.process(self, primitive, args, params)
            if out is not NotImplemented:
                return out
        primals, tangents = self.split(args)
        rule = primitive.__dict__.get("linearize") or primitive.jvp
        if state.source is not None or (state.trace is None and not (state.debug_nans or state.debug_infs)):
            out, tangent_out = rule(primals, tangents, **params)
        else:  # what the rule stages, on the tape too, stands for the operation that the user wrote
            state.source = current_source(3)
            try:
                out, tangent_out = rule(primals, tangents, **params)
            finally:
                state.source = None
        if primitive.multiple_results:
            return [self.wrap(p, t) for p, t in zip(out, tangent_out, strict=True)]
        return self.wrap(out, tangent_out)


class Linearized:
    """A function linearized at a point.

    Attributes
    ----------
    outs : list
        The results.
    nonzero_out : list of bool
        Which results have a tangent that isn't known to be zero.
    """

    __slots__ = ("_program", "nonzero_out", "outs", "tangents", "trace")

    def __init__(self, trace: LinearizeTrace, outs: Sequence[Any]):
        self.trace = trace
        self.outs: list[Any] = []
        self.tangents: list[int] = []
        self.nonzero_out: list[bool] = []
        self._program: Any = None
        for out in outs:
            differentiated = type(out) is LinearizeTracer and out._trace is trace
            if differentiated:
                self.tangents.append(out.number)
                out = out.primal
            elif isinstance(out, Tracer) and (out._trace.level >= trace.level or not out._trace.alive):
                raise out.leaked()
            self.outs.append(out)
            self.nonzero_out.append(differentiated)

    def _finish(self) -> tuple[Jaxpr, list[Any]]:
        if self._program is None:
            tape = self.trace.put_on_tape()
            self._program = tape.finish([self.trace.variables[i] for i in self.tangents])
            self._program[0].is_tape = True
        return self._program

    @property
    def jaxpr(self) -> Jaxpr:
        """From the tangents of the arguments that are differentiated to the nonzero tangents of the results."""
        return self._finish()[0]

    @property
    def consts(self) -> list[Any]:
        """The residuals of `jaxpr`."""
        return self._finish()[1]

    def pull_back(self, cotangents: Sequence[Any]) -> list[Any]:
        """Cotangents of the differentiated arguments from those of the nonzero results. To be called once."""
        if self.trace.tape is None:
            grads = Shortcuts.pull_back(self.trace, self.tangents, cotangents)
            if grads is not NotImplemented:
                return grads
        return backward_pass(self.jaxpr, self.consts, cotangents)


def linearize(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], differentiate: Sequence[bool]
) -> Linearized:
    """Linearize a function of flat arguments, that returns a list, at `primals`."""
    with LinearizeTrace() as trace:
        outs = function(*[trace.new_input(p) if d else p for p, d in zip(primals, differentiate, strict=True)])
        return Linearized(trace, outs)


def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], cotangents: Sequence[Any], mark: int = 0) -> list[Any]:
    """Transpose a linear jaxpr: cotangents of its results in, of its inputs out (`Zero` or arrays).

    Equations that don't depend on the inputs are evaluated first. `mark` is that of the cotangents.
    """
    values: dict[int, Any] = {id(v): c for v, c in zip(jaxpr.constvars, consts, strict=True)}
    cts: dict[int, Any] = {}
    outer, token = (state.source, state.marks), quiet_begin()
    try:
        linear_eqns = list(jaxpr.eqns) if jaxpr.is_tape else _evaluate_known(jaxpr, values)
        for var, ct in zip(jaxpr.outvars, cotangents, strict=True):
            if type(ct) is not Zero and type(var) is not Literal and id(var) not in values:
                cts[id(var)] = add_tangents(cts.get(id(var)), ct)
        _walk_back(linear_eqns, values, cts, dict.fromkeys(cts, mark) if mark else {})
    finally:
        state.source, state.marks = outer
        quiet_end(token)
    return [_as_array(cts[id(v)]) if id(v) in cts else Zero(v.aval) for v in jaxpr.invars]


def _evaluate_known(jaxpr: Jaxpr, values: dict[int, Any]) -> list[Eqn]:
    """Evaluate what doesn't depend on the inputs, into `values`; the other equations."""
    linear = {id(v) for v in jaxpr.invars}
    linear_eqns = []
    for eqn in jaxpr.eqns:
        if any(id(v) in linear for v in eqn.invars):
            linear_eqns.append(eqn)
            linear.update([id(v) for v in eqn.outvars])
        else:
            inputs = [v.val if type(v) is Literal else values[id(v)] for v in eqn.invars]
            state.source = eqn.source
            out = eqn.primitive.bind(*inputs, **eqn.params)
            outs = out if eqn.primitive.multiple_results else [out]
            values.update([(id(v), o) for v, o in zip(eqn.outvars, outs, strict=True)])
    return linear_eqns


def _as_array(ct: Any) -> Any:
    return ArrayImpl(ct) if isinstance(ct, NDARRAYS) else ct


_UNKNOWN: Any = object()


def _walk_back(eqns: list[Eqn], values: dict[int, Any], cts: dict[int, Any], marks: dict[int, int]) -> None:
    """Transpose equation by equation, from the last one, adding up cotangents in `cts`, and `marks` of them."""
    pop, get, known = cts.pop, cts.get, values.get
    shortcut = Shortcuts.walk_back if state.fast else None
    while eqns:
        if shortcut is not None:
            shortcut(eqns, cts, marks)
            if not eqns:
                break
        eqn = eqns.pop()  # lets the residuals go as we walk
        primitive, outvars = eqn.primitive, eqn.outvars
        ct: Any
        if len(outvars) == 1:
            ct = pop(id(outvars[0]), None)
            if ct is None:
                continue
            ct = [_as_array(ct)]
        else:
            found = [pop(id(v), None) for v in outvars]
            if all(c is None for c in found):
                continue
            ct = [Zero(v.aval) if c is None else _as_array(c) for v, c in zip(outvars, found, strict=True)]
        args = []
        for v in eqn.invars:
            if type(v) is Literal:
                args.append(v.val)
            else:
                value = known(id(v), _UNKNOWN)
                args.append(Linear(v.aval) if value is _UNKNOWN else value)
        state.source = source = eqn.source
        if source is not None and len(source) == 2:
            state.source = (*source, "backward")
        rule, mark = primitive.transpose, 0
        if marks:
            for v in outvars:
                mark |= marks.pop(id(v), 0)
            if mark and not is_scaling(eqn):
                rule = primitive.__dict__.get("transpose_marked", rule)
        state.marks = mark
        outs = rule(ct if primitive.multiple_results else ct[0], *args, **eqn.params)
        mark = passed_on(eqn, mark) if mark else 0
        own = primitive.marks or not primitive.remembers_types
        for i, (var, ct_in) in enumerate(zip(eqn.invars, outs, strict=True)):
            if ct_in is not None and type(ct_in) is not Zero:
                key = id(var)
                previous = get(key)
                cts[key] = ct_in if previous is None else add_tangents(previous, ct_in)
                new = mark | marks_of(eqn, i) if own else mark
                if new:
                    if shortcut is not None:  # without a program to compile, an infinite one stays marked
                        new |= ZEROS
                    marks[key] = marks.get(key, 0) | new


# Jaxprs inside of operations.


class LinearizedJaxpr(NamedTuple):
    """A jaxpr split for reverse mode.

    `forward` maps the inputs to the results followed by new residuals. `linear` maps residuals, then the tangents of
    the differentiated inputs, to the tangents of the results that have any. `residuals` tells where each residual is
    found, as an index into ``[*inputs, *results, *new residuals]``: what is an input or a result is not stored twice.
    """

    forward: ClosedJaxpr
    linear: ClosedJaxpr
    nonzero_out: tuple[bool, ...]
    residuals: tuple[int, ...]


@cached_on_jaxpr
def linearize_jaxpr(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], nonzero_out: tuple[bool, ...] | None = None
) -> LinearizedJaxpr:
    """Split a jaxpr into a forward program and a linear one.

    `nonzero` says which inputs have tangents; `nonzero_out` forces tangents of these results (zeros if need be).
    """
    split: dict[str, Any] = {}

    def forward(*primals: Any) -> list[Any]:
        def program(*xs: Any) -> list[Any]:
            return eval_jaxpr(closed.jaxpr, closed.consts, *xs)

        with LinearizeTrace() as trace:
            args = [trace.new_input(p) if nz else p for p, nz in zip(primals, nonzero, strict=True)]
            tape = trace.put_on_tape()
            outs, tangents = split_tracers(trace, LinearizeTracer, program(*args))
            if nonzero_out is not None:
                tangents = [instantiate(t) if nz else Zero(t.aval) for t, nz in zip(tangents, nonzero_out, strict=True)]
            linear, residuals = tape.finish([t for t in tangents if type(t) is not Zero])
        where = {id(x): i for i, x in reversed(list(enumerate([*primals, *outs])))}
        new: list[Any] = []
        for r in residuals:
            if id(r) not in where:
                where[id(r)] = len(primals) + len(outs) + len(new)
                new.append(r)
        split["linear"] = linear
        split["nonzero_out"] = tuple(type(t) is not Zero for t in tangents)
        split["residuals"] = tuple(where[id(r)] for r in residuals)
        return [*outs, *new]

    jaxpr, consts = trace_to_closed(forward, closed.in_avals, closed.jaxpr.name)
    linear = split["linear"]
    linear = ClosedJaxpr(Jaxpr([], linear.constvars + linear.invars, linear.outvars, linear.eqns, closed.jaxpr.name))
    if state.enable_checks:
        check_jaxpr(linear.jaxpr)
    return LinearizedJaxpr(derived(jaxpr, consts), linear, split["nonzero_out"], split["residuals"])


class TransposedJaxpr(NamedTuple):
    """The transpose of a jaxpr that is linear in some inputs.

    `jaxpr` maps the other inputs, then the nonzero cotangents of the results, to the nonzero cotangents of the linear
    inputs, which `nonzero_out` tells, followed by logs of the structure `logs` (see `interpreters.logs`).
    """

    jaxpr: ClosedJaxpr
    nonzero_out: tuple[bool, ...]
    logs: Any


def transpose_jaxpr(
    closed: ClosedJaxpr,
    linear: tuple[bool, ...],
    nonzero_ct: tuple[bool, ...],
    instantiate_out: bool = False,
    with_logs: bool = False,
) -> TransposedJaxpr:
    """Transpose a jaxpr that is linear in some inputs.

    With `instantiate_out` all cotangents are given. The cotangents have the marks of those that an operation is being
    transposed for. `with_logs` tells that the caller takes care of logs, if they are wanted.
    """
    logs = None if state.logs is None else with_logs
    return _transpose_jaxpr(closed, linear, nonzero_ct, instantiate_out, state.marks, logs)


@cached_on_jaxpr
def _transpose_jaxpr(
    closed: ClosedJaxpr,
    linear: tuple[bool, ...],
    nonzero_ct: tuple[bool, ...],
    instantiate_out: bool,
    mark: int,
    with_logs: bool | None,
) -> TransposedJaxpr:
    nonzero_out: tuple[bool, ...] = ()
    log_structure = NO_LOGS

    def program(*args: Any) -> list[Any]:
        nonlocal nonzero_out, log_structure
        n = linear.count(False)
        known, rest = iter(args[:n]), iter(args[n:])
        jaxpr = closed.jaxpr
        constvars, invars, consts = list(jaxpr.constvars), [], list(closed.consts)
        for var, lin in zip(jaxpr.invars, linear, strict=True):
            if lin:
                invars.append(var)
            else:
                constvars.append(var)
                consts.append(next(known))
        cts = [next(rest) if nz else Zero(v.aval) for v, nz in zip(jaxpr.outvars, nonzero_ct, strict=True)]
        with collecting({} if with_logs else Refused(jaxpr.name) if with_logs is False else None) as logs:
            outs = backward_pass(Jaxpr(constvars, invars, jaxpr.outvars, jaxpr.eqns), consts, cts, mark)
        if instantiate_out:
            outs = [instantiate(ct) for ct in outs]
        nonzero_out = tuple(not is_zero(ct) for ct in outs)
        flat_logs, log_structure = tree.flatten(logs or {})
        return [*[ct for ct in outs if not is_zero(ct)], *flat_logs]

    known_avals = [a for a, lin in zip(closed.in_avals, linear, strict=True) if not lin]
    ct_avals = [a.strong for a, nz in zip(closed.out_avals, nonzero_ct, strict=True) if nz]
    jaxpr, consts = trace_to_closed(program, [*known_avals, *ct_avals], closed.jaxpr.name)
    return TransposedJaxpr(derived(jaxpr, consts), nonzero_out, log_structure)
