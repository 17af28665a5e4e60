"""Reverse mode outside `jit`, fast: operations that were linearized before.

The derivative of an operation is a program that depends on its parameters and on the types of its operands only. So it
is derived once, with `linearize_jaxpr` and `transpose_jaxpr`, turned into NumPy code, and kept as a `Plan`. From then
on the operation costs, forward, one call of the plan's forward program on ndarrays, which gives the results and the
residuals; and backward, one call of its transposed program. On the tape it is one equation, ``linear_call``.

May import: `xform.core`, the other interpreters.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core.array import NDARRAYS, ArrayImpl, get_aval, host_value
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, eval_jaxpr
from xform.core.trace import Primitive, staging
from xform.interpreters import reverse
from xform.interpreters.host import host_function
from xform.interpreters.reverse import LinearizeTracer
from xform.interpreters.tangents import is_zero


class Plan:
    """An operation, linearized for operands of given types, some of which are differentiated."""

    __slots__ = (
        "_backwards",
        "backward_of_one",
        "forward",
        "nonzero_out",
        "out_avals",
        "residuals",
        "split",
        "tangent_avals",
    )

    def __init__(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], nonzero: tuple[bool, ...]):
        avals = [get_aval(a) for a in args]
        out = primitive.abstract_eval(*avals, **params)
        self.out_avals = list(out) if primitive.multiple_results else [out]
        invars, outvars = [Var(None, a) for a in avals], [Var(None, a) for a in self.out_avals]
        closed = ClosedJaxpr(Jaxpr([], invars, outvars, [Eqn(primitive, invars, params, outvars)], primitive.name))
        with staging(None):
            self.split = reverse.linearize_jaxpr(closed, nonzero)
        self.nonzero_out, self.residuals = self.split.nonzero_out, self.split.residuals
        self.tangent_avals = [a.to_tangent_aval() for a in self.out_avals]
        self.forward = host_function(self.split.forward)
        self._backwards: dict[Any, Callable[..., tuple]] = {}
        if sum(self.nonzero_out) == 1:
            self.backward_of_one = self.backward((True,))

    def __repr__(self) -> str:
        return f"<plan of {self.split.forward.jaxpr.name}>"

    def transposed(self, nonzero_ct: tuple[bool, ...]) -> ClosedJaxpr:
        """The program from residuals and nonzero cotangents to the cotangents of the differentiated operands."""
        n = len(self.residuals)
        linear = (False,) * n + (True,) * (len(self.split.linear.in_avals) - n)
        return reverse.transpose_jaxpr(self.split.linear, linear, nonzero_ct, True)[0]

    def backward(self, nonzero_ct: tuple[bool, ...]) -> Callable[..., tuple]:
        """The same, as a function of ndarrays."""
        found = self._backwards.get(nonzero_ct)
        if found is None:
            with staging(None):
                found = self._backwards[nonzero_ct] = host_function(self.transposed(nonzero_ct))
        return found


class LinearCall(Primitive):
    """``linear_call[plan residuals] *tangents``: on the tape, an operation that has a plan.

    It is never bound in another interpretation: applied to anything but a tape, it is its linear program.
    """

    def bind(self, *tangents: Any, plan: Plan, residuals: Sequence[Any]) -> list[Any]:
        linear = plan.split.linear
        return eval_jaxpr(linear.jaxpr, linear.consts, *map(ArrayImpl, residuals), *tangents)


linear_call_p = LinearCall("linear_call", multiple_results=True)


class LinearCallEqn(Eqn):
    """An equation of `linear_call`, lighter to make than others: there is one for every operation on the tape."""

    __slots__ = ("plan", "residuals")
    primitive = linear_call_p
    source = None

    def __init__(self, plan: Plan, residuals: Sequence[Any], invars: Sequence[Var], outvars: Sequence[Var]):
        self.plan, self.residuals, self.invars, self.outvars = plan, residuals, invars, outvars

    @property
    def params(self) -> dict[str, Any]:  # type: ignore[override]
        """As of any equation."""
        return {"plan": self.plan, "residuals": self.residuals}


def _transpose(cts: Sequence[Any], *tangents: Any, plan: Plan, residuals: Sequence[Any]) -> list[Any]:
    transposed = plan.transposed(tuple(not is_zero(ct) for ct in cts))
    known = [ct for ct in cts if not is_zero(ct)]
    return eval_jaxpr(transposed.jaxpr, transposed.consts, *map(ArrayImpl, residuals), *known)


linear_call_p.transpose = _transpose

_SCALARS = frozenset([float, int, np.float64, np.float32, np.int64, np.int32, np.bool_])


def process(trace: Any, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """What `LinearizeTrace` does on the host, when it has a plan for the operation; else NotImplemented.

    The first time an operation is met there is no plan: then the general way is the faster one.
    """
    hosts: list[Any] = []
    tangents: list[Var] = []
    types: list[Any] = []
    mask = 1
    for a in args:
        mask += mask
        if type(a) is LinearizeTracer:
            if a._trace is not trace:
                return NotImplemented
            mask += 1
            tangents.append(a.tangent)
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
    plans = primitive.plans
    try:
        plan = plans.get(key)
    except TypeError:  # a parameter that can't be hashed
        return NotImplemented
    if plan is None:
        if key not in plans:
            if len(plans) > 4096:
                plans.clear()
            plans[key] = None
            return NotImplemented
        nonzero = tuple(bit == "1" for bit in bin(mask)[3:])
        plan = plans[key] = Plan(
            primitive,
            [ArrayImpl(h, None, t) if type(t) is not type else t(h) for h, t in zip(hosts, types, strict=True)],
            params,
            nonzero,
        )
    token = quiet_begin()
    try:
        outs = plan.forward(*hosts)
    finally:
        quiet_end(token)
    residuals = plan.residuals
    if residuals:
        hosts += outs
        residuals = [hosts[i] for i in residuals]
    if primitive.multiple_results:
        return _record_several(trace, plan, outs, residuals, tangents)
    out = ArrayImpl(outs[0], None, plan.out_avals[0])
    if not plan.nonzero_out[0]:
        return out
    tape = trace.tape
    var = Var(tape, plan.tangent_avals[0])
    tape.eqns.append(LinearCallEqn(plan, residuals, tangents, (var,)))
    return LinearizeTracer(trace, out, var)


def _record_several(trace: Any, plan: Plan, outs: Sequence[Any], residuals: Sequence[Any], tangents: list[Any]) -> Any:
    """Put an operation with several results on the tape, and wrap them."""
    results: list[Any] = [ArrayImpl(o, None, a) for o, a in zip(outs, plan.out_avals, strict=False)]
    outvars = []
    for i, nonzero in enumerate(plan.nonzero_out):
        if nonzero:
            outvars.append(Var(trace.tape, plan.tangent_avals[i]))
            results[i] = LinearizeTracer(trace, results[i], outvars[-1])
    if outvars:
        trace.tape.eqns.append(LinearCallEqn(plan, residuals, tangents, outvars))
    return results


def walk_back(eqns: list[Eqn], cts: dict[int, Any]) -> None:
    """Take linear calls off the end of the tape and transpose them, as long as their cotangents are on the host.

    Cotangents are ndarrays here.
    """
    pop, get = cts.pop, cts.get
    while eqns:
        eqn = eqns[-1]
        if type(eqn) is not LinearCallEqn:
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
            outs = eqn.plan.backward_of_one(*eqn.residuals, host)
        else:
            found = [get(id(v)) for v in outvars]
            hosts = [ct._host if type(ct) is ArrayImpl else ct for ct in found if ct is not None]
            if not all(isinstance(ct, NDARRAYS) for ct in hosts):
                return
            for v in outvars:
                pop(id(v), None)
            mask = tuple([ct is not None for ct in found])
            outs = eqn.plan.backward(mask)(*eqn.residuals, *hosts) if hosts else ()
        eqns.pop()
        for var, out in zip(eqn.invars, outs):
            key = id(var)
            previous = get(key)
            cts[key] = out if previous is None else previous + out


reverse.Shortcuts.process = staticmethod(process)
reverse.Shortcuts.walk_back = staticmethod(walk_back)
