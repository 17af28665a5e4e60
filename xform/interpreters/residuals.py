"""What reverse mode keeps and what it computes again.

`linearize_jaxpr` splits a program into a forward one, which also returns residuals, and a linear one, which takes them.
Any of the forward program's values could be kept instead: the linear program then starts with the equations that
lead from those to the residuals.

May import: `xform.core`, `interpreters.passes`, `interpreters.reverse`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from xform.core.jaxpr import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, cached_on_jaxpr
from xform.interpreters import passes
from xform.interpreters.reverse import LinearizedJaxpr, linearize_jaxpr

Keep = Callable[[Eqn], bool]


class Recomputation(NamedTuple):
    """What is kept of a program, and how the rest is computed again.

    `kept`: variables, by id, inputs among them. `again`: equations that lead from them to what is wanted. `eqns`: the
    program's own equations, of which some may have more results than before.
    """

    kept: dict[int, Var]
    again: list[Eqn]
    eqns: list[Eqn]


def recompute(jaxpr: Jaxpr, wanted: Iterable[Atom], keep: Keep, inside: bool) -> Recomputation:
    """How to get the variables `wanted` once more, if only results of the equations that `keep` chooses are kept.

    With `inside` these are also looked for within loops: see `Primitive.recompute`.
    """
    needed = {id(v): v for v in wanted if type(v) is not Literal}
    kept: dict[int, Var] = {}
    again: list[Eqn] = []
    eqns = list(jaxpr.eqns)
    for i, eqn in reversed(list(enumerate(eqns))):
        results = [needed.pop(id(v), None) for v in eqn.outvars]
        if all(v is None for v in results):
            continue
        if inside and eqn.primitive.has("recompute"):
            mine, repeated, eqns[i] = eqn.primitive.recompute(eqn, keep, [v is not None for v in results])
        elif keep(eqn):
            mine, repeated = [v for v in results if v is not None], None
        else:
            mine, repeated = [], eqn
        kept |= {id(v): v for v in mine}
        if repeated is not None:
            again.append(repeated)
            needed |= {id(v): v for v in repeated.invars if type(v) is not Literal and id(v) not in kept}
    return Recomputation(kept | needed, again[::-1], eqns)  # type: ignore[arg-type]


def rematerialize(split: LinearizedJaxpr, keep: Keep, inside: bool = False) -> LinearizedJaxpr:
    """The same program with other residuals: inputs, and results of the equations that `keep` chooses.

    Of these, what is needed to compute the old residuals again, which the linear program now does.
    """
    forward = split.forward.jaxpr
    found: list[Atom] = [*forward.invars, *forward.outvars]
    old = [found[i] for i in split.residuals]
    plan = recompute(forward, old, keep, inside)
    return _with_residuals(split, old, plan) if plan.again else split


def _with_residuals(split: LinearizedJaxpr, old: Sequence[Atom], plan: Recomputation) -> LinearizedJaxpr:
    forward, linear = split.forward.jaxpr, split.linear.jaxpr
    n_out, kept = len(split.nonzero_out), plan.kept
    where = {id(v): i for i, v in reversed(list(enumerate([*forward.invars, *forward.outvars[:n_out]])))}
    outvars = list(forward.outvars[:n_out])
    for key, var in kept.items():
        if key not in where:
            where[key] = len(forward.invars) + len(outvars)
            outvars.append(var)
    # The linear program refers to the forward program's variables where it had residuals as inputs.
    n_old = len(old)
    renamed: dict[int, Atom] = {id(v): atom for v, atom in zip(linear.invars[:n_old], old, strict=True)}
    eqns = [*plan.again, *[eqn.replace(invars=[renamed.get(id(v), v) for v in eqn.invars]) for eqn in linear.eqns]]
    new_linear = Jaxpr(
        linear.constvars,
        [*kept.values(), *linear.invars[n_old:]],
        [renamed.get(id(v), v) for v in linear.outvars],
        eqns,
        linear.name,
    )
    new_forward = Jaxpr(forward.constvars, forward.invars, outvars, plan.eqns, forward.name)
    return LinearizedJaxpr(
        ClosedJaxpr(_without_dead_code(new_forward), split.forward.consts),
        ClosedJaxpr(new_linear, split.linear.consts),
        split.nonzero_out,
        tuple(where[key] for key in kept),
    )


def _without_dead_code(jaxpr: Jaxpr) -> Jaxpr:
    out, _ = passes.dead_code(jaxpr, [None] * len(jaxpr.constvars))
    out.constvars = jaxpr.constvars
    return out


# The choice by itself.
#
# Each value is kept, at the cost of its bytes, or computed again, at the cost of its equation; a value that is computed
# again needs its equation's operands, kept or computed again. The cheapest choice is a minimum cut: of the edge
# "in -> out" of a value if it is kept, of the edge "source -> in" if it is computed again. (Without the costs of
# equations this is Horace He, "Min-cut optimal recomputation", PyTorch functorch, 2022.)

_NEVER = float("inf")


def _cost(eqn: Eqn) -> float:
    """Of computing an equation again, where keeping a byte costs 1."""
    each = eqn.primitive.cost_again
    return each * max(sum(v.aval.size for v in atoms) for atoms in (eqn.invars, eqn.outvars)) if each < _NEVER else each


@cached_on_jaxpr
def choose_residuals(
    closed: ClosedJaxpr, nonzero: tuple[bool, ...], nonzero_out: tuple[bool, ...] | None, free: tuple[bool, ...]
) -> LinearizedJaxpr:
    """`linearize_jaxpr` with the residuals that cost least.

    `free` says which inputs are there anyway. Matrix products, convolutions, linear algebra, scatters, sorts, random
    bits, loops and calls are never computed again.
    """
    split = linearize_jaxpr(closed, nonzero, nonzero_out)
    forward = split.forward.jaxpr
    found = [*forward.invars, *forward.outvars]
    residuals = [v for v in (found[i] for i in split.residuals) if type(v) is not Literal]
    inputs = {id(v) for v in forward.invars}
    if all(id(v) in inputs for v in residuals):
        return split
    kept = _cheapest(forward, residuals, {id(v) for v, f in zip(forward.invars, free, strict=True) if f})
    return rematerialize(split, lambda eqn: any(id(v) in kept for v in eqn.outvars))


def _cheapest(jaxpr: Jaxpr, residuals: Sequence[Any], free: set[int]) -> set[int]:
    """The ids of the variables to keep."""
    producers = {id(v): eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    flow = _Flow()
    seen: set[int] = set()
    wanted = list(residuals)
    for v in residuals:
        flow.add((id(v), "out"), "sink", _NEVER)
    while wanted:
        var = wanted.pop()
        key = id(var)
        if key in seen:
            continue
        seen.add(key)
        nbytes = 0.0 if key in free else float(max(var.aval.size * var.aval.dtype.itemsize, 1))
        flow.add((key, "in"), (key, "out"), nbytes)
        eqn = producers.get(key)
        cost = _NEVER if eqn is None else _cost(eqn)
        # A tie is for keeping.
        flow.add("source", (key, "in"), cost if eqn is None or cost == _NEVER else cost * 1.001 + 1e-3)
        if eqn is not None and cost != _NEVER:
            for v in eqn.invars:
                if type(v) is not Literal:
                    flow.add((id(v), "out"), (key, "in"), _NEVER)
                    wanted.append(v)
    near = flow.source_side()
    return {key for key in seen if (key, "in") in near and (key, "out") not in near}


class _Flow:
    """Maximum flow and minimum cut, by shortest augmenting paths (Edmonds and Karp 1972)."""

    def __init__(self) -> None:
        self.capacity: dict[Any, dict[Any, float]] = {"source": {}, "sink": {}}

    def add(self, a: Any, b: Any, capacity: float) -> None:
        self.capacity.setdefault(a, {})
        self.capacity.setdefault(b, {}).setdefault(a, 0.0)
        self.capacity[a][b] = self.capacity[a].get(b, 0.0) + capacity

    def source_side(self) -> set[Any]:
        """The nodes on the source's side of the minimum cut that is nearest to it."""
        while True:
            parent: dict[Any, Any] = {"source": None}
            queue = deque(["source"])
            while queue and "sink" not in parent:
                a = queue.popleft()
                for b, left in self.capacity[a].items():
                    if left > 0 and b not in parent:
                        parent[b] = a
                        queue.append(b)
            if "sink" not in parent:
                return set(parent)
            path, b = [], "sink"
            while parent[b] is not None:
                path.append((parent[b], b))
                b = parent[b]
            amount = min(self.capacity[a][b] for a, b in path)
            for a, b in path:
                self.capacity[a][b] -= amount
                self.capacity[b][a] += amount
