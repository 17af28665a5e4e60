"""Reverse mode outside `jit`, fast: operations that were linearized before.

The derivative of an operation is a program that depends on its parameters and on the types of its operands only. So it
is derived once, with `linearize_jaxpr` and `transpose_jaxpr`, turned into NumPy code, and kept as a `Plan`. From then
on the operation costs, forward, one call of the plan's forward program on ndarrays, which gives the results and the
residuals; and backward, one call of its transposed program.

As long as a trace meets such operations only, it keeps a list of its calls of plans. The way back through them is a
program, too, found by that list. Where it can't be used the calls go to the tape, each as an equation ``plan_call``.

May import: `xform.core`, the other interpreters.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core.array import NDARRAYS, ArrayImpl, get_aval, host_value
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, eval_jaxpr
from xform.core.trace import Primitive, staging
from xform.interpreters import reverse
from xform.interpreters.forward import with_consts
from xform.interpreters.host import host_function
from xform.interpreters.marks import marks_in, multiplied
from xform.interpreters.reverse import LinearizeTracer
from xform.interpreters.staging import trace_to_closed
from xform.interpreters.tangents import Zero, is_zero


class Function:
    """A function of arrays that is given plans as a whole, so that what it does about dtypes is done once.

    Its program must depend on the types of its operands only.
    """

    __slots__ = ("function", "name", "plans")

    def __init__(self, name: str, function: Callable[..., Any]):
        self.name, self.function = name, function
        self.plans: dict[Any, Any] = {}


class Plan:
    """An operation, linearized for operands of given types, some of which are differentiated."""

    __slots__ = (
        "_backwards",
        "forward",
        "marks",
        "multiplies",
        "nonzero_out",
        "operands",
        "out_avals",
        "split",
        "tangent_avals",
    )

    def __init__(self, closed: ClosedJaxpr, nonzero: tuple[bool, ...]):
        with staging(None):
            self.split = split = reverse.linearize_jaxpr(closed, nonzero)
        self.out_avals, self.nonzero_out = closed.out_avals, split.nonzero_out
        self.tangent_avals = [a.to_tangent_aval() for a in self.out_avals]
        self.operands = sum(nonzero)
        program = split.forward.jaxpr
        where = [*program.invars, *program.outvars]
        outvars = [*program.outvars[: len(self.out_avals)], *[where[i] for i in split.residuals]]
        # ndarrays in; a tuple of results, then of residuals
        self.forward = host_function(
            ClosedJaxpr(
                Jaxpr(program.constvars, program.invars, outvars, program.eqns, program.name), split.forward.consts
            )
        )
        self._backwards: dict[Any, Callable[..., tuple]] = {}
        self.marks = marks_in(split.linear.jaxpr.eqns)
        self.multiplies = bool(split.residuals)

    def __repr__(self) -> str:
        return f"<plan of {self.split.forward.jaxpr.name}>"

    def transposed(self, nonzero_ct: tuple[bool, ...], mark: int = 0) -> ClosedJaxpr:
        """The program from residuals and nonzero cotangents to the cotangents of the differentiated operands."""
        n = len(self.split.residuals)
        linear = (False,) * n + (True,) * (len(self.split.linear.in_avals) - n)
        outer, state.marks = state.marks, mark
        try:
            return reverse.transpose_jaxpr(self.split.linear, linear, nonzero_ct, True)[0]
        finally:
            state.marks = outer

    def backward(self, nonzero_ct: tuple[bool, ...], mark: int = 0) -> Callable[..., tuple]:
        """The same, as a function of ndarrays."""
        found = self._backwards.get((nonzero_ct, mark))
        if found is None:
            with staging(None):
                found = self._backwards[nonzero_ct, mark] = host_function(self.transposed(nonzero_ct, mark))
        return found

    def passed_on(self, mark: int) -> int:
        """The mark of cotangents behind this operation."""
        return (multiplied(mark) if self.multiplies else mark) | self.marks


class PlanCall(Primitive):
    """``plan_call[plan residuals] *tangents``: on the tape, an operation that has a plan.

    It is never bound in another interpretation: applied to anything but a tape, it is its linear program.
    """

    remembers_types = False

    def bind(self, *tangents: Any, plan: Plan, residuals: Sequence[Any]) -> list[Any]:
        linear = plan.split.linear
        return eval_jaxpr(linear.jaxpr, linear.consts, *map(ArrayImpl, residuals), *tangents)


plan_call_p = PlanCall("plan_call", multiple_results=True)


class PlanCallEqn(Eqn):
    """An equation of `plan_call`, lighter to make than others: there is one for every operation on the tape."""

    __slots__ = ("plan", "residuals")
    primitive = plan_call_p
    source = None

    def __init__(self, plan: Plan, residuals: Sequence[Any], invars: Sequence[Var], outvars: Sequence[Var]):
        self.plan, self.residuals, self.invars, self.outvars = plan, residuals, invars, outvars

    @property
    def params(self) -> dict[str, Any]:  # type: ignore[override]
        """As of any equation."""
        return {"plan": self.plan, "residuals": self.residuals}


def _transpose(cts: Sequence[Any], *tangents: Any, plan: Plan, residuals: Sequence[Any]) -> list[Any]:
    transposed = plan.transposed(tuple(not is_zero(ct) for ct in cts), state.marks)
    known = [ct for ct in cts if not is_zero(ct)]
    return eval_jaxpr(transposed.jaxpr, transposed.consts, *map(ArrayImpl, residuals), *known)


plan_call_p.transpose = _transpose

_SCALARS = frozenset([float, int, np.float64, np.float32, np.int64, np.int32, np.bool_])


def process(trace: Any, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """What `LinearizeTrace` does on the host, when it has a plan for the operation; else NotImplemented.

    The first time an operation is met there is no plan: then the general way is the faster one.
    """
    hosts: list[Any] = []
    numbers: list[int] = []
    types: list[Any] = []
    mask = 1
    for a in args:
        mask += mask
        if type(a) is LinearizeTracer:
            if a._trace is not trace:
                return NotImplemented
            mask += 1
            numbers.append(a.number)
            a = a.primal
        if type(a) is ArrayImpl:
            h = a._host
            if h is None:
                return NotImplemented
            hosts.append(h)
            types.append(a._aval or a.aval)
        elif type(a) in _SCALARS:
            hosts.append(host_value(a))  # host rules take no Python scalars
            types.append(type(a))
        else:
            return NotImplemented
    key = (mask, *types, *params.items()) if params else (mask, *types)
    try:
        plan = primitive.plans.get(key)
    except TypeError:  # a parameter that can't be hashed
        return NotImplemented
    if plan is None:
        avals = [get_aval(t(h)) if type(t) is type else t for h, t in zip(hosts, types, strict=True)]
        plan = _new_plan(primitive, key, avals, params, tuple(bit == "1" for bit in bin(mask)[3:]))
        if plan is None:
            return NotImplemented
    token = quiet_begin()
    try:
        outs = plan.forward(*hosts)
    finally:
        quiet_end(token)
    if not primitive.multiple_results:
        return _record(trace, plan, outs, tuple(numbers))
    variables = trace.variables
    trace.calls += (plan, len(variables), *numbers)
    trace.residuals.append(outs[len(plan.out_avals) :])
    results: list[Any] = [ArrayImpl(o, None, a) for o, a in zip(outs, plan.out_avals)]
    for i, nonzero in enumerate(plan.nonzero_out):
        if nonzero:
            results[i] = LinearizeTracer(trace, results[i], len(variables), plan.out_avals[i])
            variables.append(None)
    return results


def _new_plan(
    operation: Any, key: Any, avals: Sequence[ShapedArray], params: dict[str, Any], nonzero: tuple[bool, ...]
) -> Plan | None:
    """A plan for what was met once before; else None."""
    plans = operation.plans
    if key not in plans:
        if len(plans) > 4096:
            plans.clear()
        plans[key] = None
        return None
    if type(operation) is Function:
        with staging(None):
            closed, consts = trace_to_closed(lambda *xs: [operation.function(*xs)], avals, operation.name)
        closed = with_consts(closed, consts)
    else:
        out = operation.abstract_eval(*avals, **params)
        invars = [Var(None, a) for a in avals]
        outvars = [Var(None, a) for a in (out if operation.multiple_results else [out])]
        closed = ClosedJaxpr(Jaxpr([], invars, outvars, [Eqn(operation, invars, params, outvars)], operation.name))
    plan = plans[key] = Plan(closed, nonzero)
    return plan


def call_unary(function: Function, x: LinearizeTracer) -> Any:
    """`process` for a function of one argument, with one result."""
    trace: Any = x._trace
    primal = x.primal
    if type(primal) is not ArrayImpl or (host := primal._host) is None or not trace.alive or not state.fast_by_types:
        return NotImplemented
    plan = function.plans.get(x.aval)
    if plan is None:
        plan = _new_plan(function, x.aval, [x.aval], _NO_PARAMS, (True,))
        if plan is None:
            return NotImplemented
    token = quiet_begin()
    try:
        outs = plan.forward(host)
    finally:
        quiet_end(token)
    return _record(trace, plan, outs, (x.number,))


def call_binary(function: Function, x: Any, y: Any) -> Any:
    """The same of two arguments: a tracer and an array, of either kind, or a Python float."""
    trace: Any = (x if type(x) is LinearizeTracer else y)._trace
    if not trace.alive or not state.fast_by_types:
        return NotImplemented
    nonzero = (type(x) is LinearizeTracer, type(y) is LinearizeTracer)
    if nonzero == _BOTH:
        if y._trace is not trace:
            return NotImplemented
        a, b = x.primal, y.primal
        numbers: tuple[int, ...] = (x.number, y.number)
    elif nonzero[0]:
        a, b = x.primal, y if type(y) is not float else _beside(x.aval, y)
        numbers = (x.number,)
    else:
        a, b = x if type(x) is not float else _beside(y.aval, x), y.primal
        numbers = (y.number,)
    if type(a) is not ArrayImpl or type(b) is not ArrayImpl:
        return NotImplemented
    host_a, host_b = a._host, b._host
    if host_a is None or host_b is None:
        return NotImplemented
    key = (a._aval or a.aval, b._aval or b.aval, nonzero)
    plan = function.plans.get(key)
    if plan is None:
        plan = _new_plan(function, key, key[:2], _NO_PARAMS, nonzero)
        if plan is None:
            return NotImplemented
    token = quiet_begin()
    try:
        outs = plan.forward(host_a, host_b)
    finally:
        quiet_end(token)
    return _record(trace, plan, outs, numbers)


_BOTH = (True, True)


def _beside(aval: ShapedArray, x: float) -> Any:
    """A Python float in the dtype of the array beside it, if that is what promotion gives; else None."""
    return ArrayImpl(aval.dtype.type(x)) if aval.dtype.kind == "f" and not aval.weak_type else None


def _record(trace: Any, plan: Plan, outs: tuple, numbers: tuple[int, ...]) -> Any:
    """The result of a plan with one, and the call in the trace's list."""
    aval = plan.out_avals[0]
    out = ArrayImpl(outs[0], None, aval)
    if not plan.nonzero_out[0]:
        return out
    variables = trace.variables
    number = len(variables)
    variables.append(None)
    trace.calls += (plan, number, *numbers)
    trace.residuals.append(outs[1:])
    return LinearizeTracer(trace, out, number, aval)


_NO_PARAMS: dict[str, Any] = {}


def _records(calls: list[Any]) -> Iterator[tuple[Plan, int, list[int]]]:
    """The calls one by one: plan, number of the first tangent of the results, numbers of the operands' tangents."""
    i = 0
    while i < len(calls):
        plan, first = calls[i], calls[i + 1]
        yield plan, first, calls[i + 2 : i + 2 + plan.operands]
        i += 2 + plan.operands


def put_on_tape(trace: Any) -> None:
    """Calls as equations of `plan_call`."""
    tape, variables = trace.tape, trace.variables
    for (plan, first, operands), residuals in zip(_records(trace.calls), trace.residuals, strict=True):
        outvars = [Var(tape, a) for a, nz in zip(plan.tangent_avals, plan.nonzero_out, strict=True) if nz]
        variables[first : first + len(outvars)] = outvars
        if outvars:
            tape.eqns.append(PlanCallEqn(plan, residuals, [variables[i] for i in operands], outvars))
    trace.calls, trace.residuals = [], []


# The way back through calls alone, as one program, by the calls. A program is made when its calls were met so often.
_programs: dict[tuple, Any] = {}
_MET = 3
_LONGEST = 5000


def clear_cache() -> None:
    """Forget the programs of ways back; plans stay with their operations."""
    _programs.clear()


def pull_back(trace: Any, numbers: Sequence[int], cotangents: Sequence[Any]) -> Any:
    """Cotangents of the trace's inputs from those of results, if there is a program for it; else NotImplemented."""
    calls = trace.calls
    if len(calls) > _LONGEST or not state.fast:
        return NotImplemented
    if len(cotangents) != 1:
        numbers = [i for i, ct in zip(numbers, cotangents, strict=True) if type(ct) is not Zero]
        cotangents = [ct for ct in cotangents if type(ct) is not Zero]
    for ct in cotangents:
        if not isinstance(ct, NDARRAYS):
            return NotImplemented
    key = (len(trace.inputs), *calls, *numbers)
    program = _programs.get(key, 0)
    if type(program) is int:
        if program < _MET:
            if len(_programs) > 1000:
                _programs.clear()
            _programs[key] = program + 1
            return NotImplemented
        program = _programs[key] = _program_of(len(trace.inputs), calls, numbers)
    token = quiet_begin()
    try:
        outs = program(trace.residuals, *cotangents)
    finally:
        quiet_end(token)
    return [Zero(a) if out is None else ArrayImpl(out) for out, a in zip(outs, trace.inputs)]


def _program_of(n_inputs: int, calls: list[Any], numbers: Sequence[int]) -> Callable[..., tuple]:
    """Python code that transposes call by call. It takes the residuals off the end of their list, to let them go."""
    scope: dict[str, Any] = {}
    lines = [f"def program(residuals, {', '.join(f'ct{i}' for i in range(len(numbers)))}):", "pop = residuals.pop"]
    found: dict[int, int] = {}  # the cotangents that there are, and their marks

    def add(number: int, value: str, mark: int = 0) -> None:
        lines.append(f"c{number} = c{number} + {value}" if number in found else f"c{number} = {value}")
        found[number] = found.get(number, 0) | mark

    for i, number in enumerate(numbers):
        add(number, f"ct{i}")
    for plan, first, operands in reversed(list(_records(calls))):
        outs = range(first, first + sum(plan.nonzero_out))
        mask = tuple(i in found for i in outs)
        if not any(mask):
            lines.append("pop()")
            continue
        rule = f"f{len(scope)}"
        mark = 0
        for i in outs:
            mark |= found.get(i, 0)
        scope[rule] = plan.backward(mask, mark)
        mark = plan.passed_on(mark)
        cts = [f"c{i}" for i in outs if i in found]
        lines.append(f"{''.join(f't{i}, ' for i in range(len(operands)))} = {rule}(*pop(), {', '.join(cts)})")
        lines.append(f"del {', '.join(cts)}")
        for i, number in enumerate(operands):
            add(number, f"t{i}", mark)
    lines.append(f"return ({''.join(f'c{i}, ' if i in found else 'None, ' for i in range(n_inputs))})")
    exec(compile("\n    ".join(lines), "<backward pass>", "exec"), scope)
    return scope["program"]


_ONE = (True,)


def walk_back(eqns: list[Eqn], cts: dict[int, Any], marks: dict[int, int]) -> None:
    """Take linear calls off the end of the tape and transpose them, as long as their cotangents are on the host.

    Cotangents are ndarrays here.
    """
    pop, get = cts.pop, cts.get
    while eqns:
        eqn = eqns[-1]
        if type(eqn) is not PlanCallEqn:
            return
        outvars = eqn.outvars
        if len(outvars) == 1:
            key = id(outvars[0])
            ct = pop(key, None)
            if ct is None:
                eqns.pop()
                continue
            host = ct._host if type(ct) is ArrayImpl else ct
            if not isinstance(host, NDARRAYS):
                cts[key] = ct
                return
            mark = marks.pop(key, 0) if marks else 0
            outs = eqn.plan.backward(_ONE, mark)(*eqn.residuals, host)
        else:
            found = [get(id(v)) for v in outvars]
            hosts = [ct._host if type(ct) is ArrayImpl else ct for ct in found if ct is not None]
            if not all(isinstance(ct, NDARRAYS) for ct in hosts):
                return
            for v in outvars:
                pop(id(v), None)
            mask = tuple([ct is not None for ct in found])
            mark = 0
            for v in outvars:
                mark |= marks.pop(id(v), 0)
            outs = eqn.plan.backward(mask, mark)(*eqn.residuals, *hosts) if hosts else ()
        eqns.pop()
        mark = eqn.plan.passed_on(mark)
        for var, out in zip(eqn.invars, outs):
            key = id(var)
            previous = get(key)
            cts[key] = out if previous is None else previous + out
            if mark:
                marks[key] = marks.get(key, 0) | mark


reverse.Shortcuts.process = staticmethod(process)
reverse.Shortcuts.put_on_tape = staticmethod(put_on_tape)
reverse.Shortcuts.pull_back = staticmethod(pull_back)
reverse.Shortcuts.walk_back = staticmethod(walk_back)
