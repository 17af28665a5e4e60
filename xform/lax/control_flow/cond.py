"""`cond` and `switch`.

``cond[branches] index *operands`` runs one of several jaxprs that take the same operands.

May import: `lax.control_flow.common`, the other modules of `lax`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, eval_jaxpr, subjaxprs
from xform.core.trace import Primitive, Tracer, evaluate
from xform.interpreters import passes
from xform.interpreters.batching import batch_jaxpr, move_to
from xform.interpreters.forward import jvp_jaxpr, jvp_jaxpr_fixed, with_zeros
from xform.interpreters.logs import record
from xform.interpreters.lowering import Context, Value
from xform.interpreters.residuals import choose_residuals
from xform.interpreters.reverse import TransposedJaxpr, linearize_jaxpr, transpose_jaxpr
from xform.interpreters.tangents import Zero, instantiate, is_linear, is_zero, zero_of
from xform.lax.calls import CallPrimitive
from xform.lax.comparison import eq, select_n_p
from xform.lax.control_flow import common
from xform.lax.conversion import convert
from xform.lax.reductions import reduce_or_p
from xform.lax.shapes import broadcast_in_dim

Branches = tuple[ClosedJaxpr, ...]
MISSING: Any = object()  # in place of an argument for which None is a value


def _host(index: Any, *operands: Any, branches: Branches) -> Sequence[Any]:
    return common.host_step(branches[min(max(int(index), 0), len(branches) - 1)])(*operands)


def _types(index: ShapedArray, *operands: ShapedArray, branches: Branches) -> list[ShapedArray]:
    return branches[0].out_avals


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, branches: Branches) -> Any:
    ts = ts[len(ts) // len(primals) :]  # without those of the index
    nonzero = tuple(not is_zero(t) for t in ts)
    found = [jvp_jaxpr(b, nonzero)[1] for b in branches]
    nonzero_out = tuple(map(any, zip(*found, strict=True)))
    derived = tuple(jvp_jaxpr_fixed(b, nonzero, nonzero_out) for b in branches)
    flat = cond_p.bind(*primals, *[t for t in ts if not is_zero(t)], branches=derived)
    n = len(branches[0].out_avals)
    return flat[:n], with_zeros(nonzero_out, flat[:n], flat[n:])


def _linearize(primals: Sequence[Any], ts: Sequence[Any], *, branches: Branches) -> Any:
    index, *operands = primals
    nonzero = tuple(not is_zero(t) for t in ts[1:])
    found = [linearize_jaxpr(b, nonzero).nonzero_out for b in branches]
    nonzero_out = tuple(map(any, zip(*found, strict=True)))
    forwards, linears, used = _split_branches(branches, nonzero, nonzero_out)
    flat = cond_p.bind(index, *operands, branches=forwards)
    n = len(nonzero_out)
    outs, residuals = flat[:n], [operands[i] for i in used] + flat[n:]
    if not any(nonzero_out):
        return outs, [zero_of(o) for o in outs]
    tangents = [t for t in ts[1:] if not is_zero(t)]
    rest = iter(cond_p.bind(index, *residuals, *tangents, branches=linears))
    return outs, [next(rest) if nz else zero_of(o) for o, nz in zip(outs, nonzero_out, strict=True)]


def _split_branches(
    branches: Branches, nonzero: tuple[bool, ...], nonzero_out: tuple[bool, ...]
) -> tuple[Branches, Branches, list[int]]:
    """Forward and linear branches that agree on their residuals.

    Residuals are the operands that any branch needs (`used`), then the results and new residuals of every branch;
    a branch that was not taken has none for its own (`unused`).
    """
    cache = branches[0].cache
    key = ("split_branches", tuple(map(id, branches)), nonzero, nonzero_out)
    if key in cache:
        return cache[key][0]
    splits = [choose_residuals(b, nonzero, nonzero_out, (True,) * len(nonzero)) for b in branches]
    n_in, n_out = len(nonzero), len(nonzero_out)
    used = sorted({i for s in splits for i in s.residuals if i < n_in})
    own = [[i - n_in for i in s.residuals if i >= n_in] for s in splits]  # indices into the forward results
    own_avals = [[s.forward.out_avals[i] for i in o] for s, o in zip(splits, own, strict=True)]
    tangent_avals = [b.to_tangent_aval() for b, nz in zip(branches[0].in_avals, nonzero, strict=True) if nz]
    used_avals = [branches[0].in_avals[i] for i in used]

    def forward(k: int) -> ClosedJaxpr:
        def program(call: Callable[..., list[Any]], *args: Any) -> list[Any]:
            flat = call(*args)
            mine = [flat[i] for i in own[k]]
            return flat[:n_out] + [
                r for j, avals in enumerate(own_avals) for r in (mine if j == k else map(_unused, avals))
            ]

        return common.rewrite(splits[k].forward, program, branches[k].in_avals)

    def linear(k: int) -> ClosedJaxpr:
        offset = len(used) + sum(map(len, own_avals[:k]))

        def program(call: Callable[..., list[Any]], *args: Any) -> list[Any]:
            mine = iter(args[offset : offset + len(own[k])])
            residuals = [args[used.index(i)] if i < n_in else next(mine) for i in splits[k].residuals]
            return call(*residuals, *args[len(args) - len(tangent_avals) :])

        avals = [*used_avals, *[a for avals in own_avals for a in avals], *tangent_avals]
        return common.rewrite(splits[k].linear, program, avals)

    ks = range(len(branches))
    out = tuple(map(forward, ks)), tuple(map(linear, ks)), used
    cache[key] = (out, branches)  # keeps the branches alive, so that their ids stay theirs
    return out


def _unused(aval: ShapedArray) -> Any:
    """A value that nobody looks at: a residual of a branch that was not taken."""
    return unused_p.bind(shape=aval.shape, dtype=aval.dtype)


def _is_unused(branch: ClosedJaxpr, i: int) -> bool:
    """Whether a result of the branch is such a value."""
    out = branch.jaxpr.outvars[i]
    return any(e.primitive is unused_p and e.outvars[0] is out for e in branch.eqns)


# Its value is one: a branch that isn't taken may run all the same under `vmap`, and divide by it.
unused_p = Primitive("unused")
unused_p.abstract_eval = ShapedArray
unused_p.host = np.ones
unused_p.jvp = lambda primals, tangents, **params: (out := unused_p.bind(**params), zero_of(out))
unused_p.batch = lambda axis, args, dims, **params: (unused_p.bind(**params), None)
unused_p.lower = lambda ctx, shape, dtype: ctx.full(shape, 1, dtype)


def _transpose(cts: Sequence[Any], index: Any, *args: Any, branches: Branches) -> list[Any]:
    linear = tuple(is_linear(a) for a in args)
    nonzero_ct = tuple(not is_zero(ct) for ct in cts)
    transposed = [transpose_jaxpr(b, linear, nonzero_ct, True, with_logs=True) for b in branches]
    known = [a for a, lin in zip(args, linear, strict=True) if not lin]
    bodies, logs = _with_all_logs(transposed)
    outs = cond_p.bind(index, *known, *[ct for ct in cts if not is_zero(ct)], branches=bodies)
    n = sum(linear)
    found, rest = iter(outs[:n]), iter(outs[n:])
    of_branches = [structure.unflatten([next(rest) for _ in range(structure.num_leaves)]) for structure in logs]
    keys = dict.fromkeys(key for entries in of_branches for key in entries)
    record({key: CondSum(index, [entries.get(key) for entries in of_branches]) for key in keys})
    return [None, *[next(found) if lin else None for lin in linear]]


class CondSum:
    """A value logged by a branch of a traced `cond` or `switch`, as a pytree.

    Attributes
    ----------
    index : int32 scalar
        Which branch was taken.
    branches : list
        For each branch the value; zeros if it wasn't taken, None if it logs nothing by this name.
    """

    def __init__(self, index: Any, branches: Sequence[Any]):
        self.index, self.branches = index, list(branches)

    def __repr__(self) -> str:
        return f"CondSum(index={self.index!r}, branches={self.branches!r})"


tree.register_pytree_node(CondSum, lambda c: ((c.index, c.branches), None), lambda _, children: CondSum(*children))


def _with_all_logs(transposed: Sequence[TransposedJaxpr]) -> tuple[Branches, list[Any]]:
    """Transposed branches each of which returns its logs among those of all, and the structures of these."""
    structures = [t.logs for t in transposed]
    sizes = [s.num_leaves for s in structures]
    bodies = tuple(t.jaxpr for t in transposed)
    if not any(sizes):
        return bodies, structures
    avals = [t.jaxpr.out_avals[len(t.jaxpr.out_avals) - n :] for t, n in zip(transposed, sizes, strict=True)]

    def body(k: int) -> ClosedJaxpr:
        def program(call: Callable[..., list[Any]], *args: Any) -> list[Any]:
            outs = call(*args)
            n = len(outs) - sizes[k]
            zeros = [[instantiate(Zero(a)) for a in own] for own in avals]
            return [*outs[:n], *[x for j, own in enumerate(zeros) for x in (outs[n:] if j == k else own)]]

        return common.rewrite(bodies[k], program, bodies[k].in_avals)

    return tuple(map(body, range(len(bodies)))), structures


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, branches: Branches) -> Any:
    (index, *operands), (d_index, *d_operands) = args, dims
    operands = [x if d is None else move_to(x, d, axis.size) for x, d in zip(operands, d_operands, strict=True)]
    batched = tuple(d is not None for d in d_operands)
    if d_index is None:
        found = [batch_jaxpr(b, axis.size, axis.axis_name, batched)[1] for b in branches]
        out = tuple(map(any, zip(*found, strict=True)))
        forced = tuple(batch_jaxpr(b, axis.size, axis.axis_name, batched, out)[0] for b in branches)
        return cond_p.bind(index, *operands, branches=forced), [0 if b else None for b in out]
    # Lanes differ: run every branch and select.
    ran = [_run_for_lanes(b, eq(index, np.int32(k)), axis, operands, batched) for k, b in enumerate(branches)]
    which = index if len(branches) > 2 else convert(index, np.dtype(bool))
    outs, dims_out = [], []
    for i, cases in enumerate(zip(*ran, strict=True)):
        wanted = [case for case, b in zip(cases, branches, strict=True) if not _is_unused(b, i)]
        out, dim = (wanted or cases)[0]
        if len(wanted) > 1 or dim is not None:
            arrays = [move_to(x, d, axis.size) for x, d in cases]
            out, dim = select_n_p.bind(broadcast_in_dim(which, arrays[0].shape, (0,)), *arrays), 0
        outs.append(out)
        dims_out.append(dim)
    return outs, dims_out


# A branch that handles so many numbers is left out where no lane chose it.
_MUCH = 200_000


def _run_for_lanes(
    branch: ClosedJaxpr, chosen: Any, axis: Any, operands: Sequence[Any], batched: tuple[bool, ...]
) -> list[tuple[Any, int | None]]:
    """The results of a branch for all lanes, of which only those of `chosen` lanes count, and their mapped axes.

    What is long runs only if a lane chose it. If there is a `while` in it, lanes that did not choose it are copies of
    one that did, lest the loop runs on for them. None of this if the branch sums or exchanges over lanes.
    """
    closed, mapped = batch_jaxpr(branch, axis.size, axis.axis_name, batched)
    dims = [0 if b else None for b in mapped]
    work = sum(v.aval.size for e in closed.eqns for v in (*e.invars, *e.outvars))
    if (work < _MUCH and not common.contains(branch, "while", "scan")) or _names_axis(branch.jaxpr, axis.axis_name):
        return list(zip(eval_jaxpr(closed.jaxpr, closed.consts, *operands), dims, strict=True))

    def run(call: Callable[..., list[Any]], chosen: Any, *args: Any) -> list[Any]:
        return call(*common.with_stand_ins(chosen, args, batched) if common.contains(branch, "while") else args)

    avals = [get_aval(chosen), *closed.in_avals]
    key = ("run_for_lanes", batched)
    if key not in closed.cache:
        skip = common.rewrite(closed, lambda call, *_: [_unused(a) for a in closed.out_avals], avals)
        closed.cache[key] = skip, common.rewrite(closed, run, avals)
    some = convert(reduce_or_p.bind(chosen, axes=(0,)), np.dtype(np.int32))
    outs = cond_p.bind(some, chosen, *operands, branches=closed.cache[key])
    return list(zip(outs, dims, strict=True))


def _names_axis(jaxpr: Jaxpr, name: Any) -> bool:
    """Whether an operation goes over the named axis."""
    return name is not None and any(
        name in (axes if isinstance(axes := e.params.get("axes"), tuple) else ())
        or any(_names_axis(inner, name) for inner in subjaxprs(e.params))
        for e in jaxpr.eqns
    )


def _lower(ctx: Context, index: Value, *operands: Value, branches: Branches) -> list[Value]:
    outs = ctx.outs
    if index.dtype != np.int32:
        index = ctx.convert(index, np.dtype(np.int32))
    if (known := _constant(ctx, index)) is not None:  # as in `platform_dependent`, whose other branches may not lower
        chosen = branches[min(max(known, 0), len(branches) - 1)]
        return ctx.jaxpr(chosen.jaxpr, chosen.consts, operands)
    regions = [ctx.region(lambda c, b=b: c.jaxpr(b.jaxpr, b.consts, operands), []) for b in branches]
    return ctx.op("case", [index], outs, "", regions)


def _constant(ctx: Context, index: Value) -> int | None:
    """The number that an index stands for, if it is a constant of the program."""
    found = (np.frombuffer(data, dtype)[0] for (data, dtype, _), value in ctx.constants.items() if value is index)
    return next((int(i) for i in found), None)


def _dce(eqn: Eqn, used: list[bool]) -> tuple[Eqn, list[bool]]:
    branches = eqn.params["branches"]
    kept = [passes.dead_code(b.jaxpr, b.consts, used) for b in branches]
    new = tuple(ClosedJaxpr(j, c) for j, c in kept)
    outvars = [v for v, u in zip(eqn.outvars, used, strict=True) if u]
    return eqn.replace(outvars=outvars, params={"branches": new}), [True] * len(outvars)


cond_p = CallPrimitive("cond", lambda *args, **params: evaluate(cond_p, args, params))
cond_p.abstract_eval = _types
cond_p.host = _host
cond_p.jvp = cond_p.push = _jvp
cond_p.linearize = _linearize
cond_p.transpose = _transpose
cond_p.batch = _batch
cond_p.lower = _lower
cond_p.dce = _dce


@api_boundary
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = MISSING) -> Any:
    """Apply one of several functions: ``branches[clip(index, 0, len(branches) - 1)](*operands)``.

    With a known index only that branch runs. Traced, the branches must return the same structure and types.
    Under `vmap` with a mapped index the branches run for all lanes, and their results are selected from; long ones, and
    those with loops in them, run only if a lane chose them, and until the loops of such lanes end.

    Parameters
    ----------
    index : integer scalar
    branches : sequence of functions of the operands
    *operands : pytrees of arrays
    operand : pytree of arrays, optional
        The only operand, by name.

    Examples
    --------
    >>> from xform import lax
    >>> lax.switch(2, [lambda x: x, lambda x: -x, lambda x: 10 * x], 3.0)
    30.0
    """
    operands = _with_operand(operands, operand)
    branches = list(branches)
    if not branches or not all(map(callable, branches)):
        raise TypeError(f"lax.switch: branches must be a non-empty sequence of functions, got {branches!r}")
    aval = get_aval(index)
    if aval.shape or not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"lax.switch: index must be an integer scalar, got {aval.str_short()}")
    if not isinstance(index, Tracer):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    from xform.lax import clamp  # defined above this module's floor

    index = clamp(0, convert(index, np.dtype(np.int32)), len(branches) - 1)
    names = [f"branches[{i}]" for i in range(len(branches))]
    return bind_branches("switch", names, index, branches, operands)


@api_boundary
def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = MISSING,
         linear: Any = None) -> Any:  # fmt: skip
    """Apply ``true_fun(*operands)`` or ``false_fun(*operands)``.

    With a known predicate only that function runs. Traced, both must return the same structure and types.
    Under `vmap` with a mapped predicate both run, as described for `switch`, and their results are selected from.

    Parameters
    ----------
    pred : boolean or numeric scalar
    true_fun, false_fun : functions of the operands
    *operands : pytrees of arrays
    operand : pytree of arrays, optional
        The only operand, by name.

    Examples
    --------
    >>> import xform
    >>> f = xform.jit(lambda x: xform.lax.cond(x > 0, lambda y: y, lambda y: -y, x))
    >>> float(f(-3.0))
    3.0
    """
    operands = _with_operand(operands, operand)
    if not callable(true_fun) or not callable(false_fun):
        raise TypeError("lax.cond: the arguments are (pred, true_fun, false_fun, *operands), with two functions")
    aval = get_aval(pred)
    if aval.shape:
        raise TypeError(f"lax.cond: pred must be a scalar, got {aval.str_short()}; use xform.numpy.where for arrays")
    if not isinstance(pred, Tracer):
        return (true_fun if pred else false_fun)(*operands)
    index = convert(convert(pred, np.dtype(bool)), np.dtype(np.int32))
    return bind_branches("cond", ["false_fun", "true_fun"], index, [false_fun, true_fun], operands)


def _with_operand(operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is MISSING:
        return operands
    if operands:
        raise TypeError("lax.cond, lax.switch: give operands by position, or one as operand=, not both")
    return (operand,)


def bind_branches(
    what: str, names: Sequence[str], index: Any, functions: Sequence[Callable[..., Any]], operands: Sequence[Any],
) -> Any:  # fmt: skip
    """Trace functions of the same operands, and bind `cond` of them."""
    leaves, treedef = tree.flatten(tuple(operands))
    leaves = common.as_arrays(leaves)
    avals = [get_aval(x) for x in leaves]
    traced = [common.trace_body(f, treedef, avals, what) for f in functions]
    out_tree = traced[0][2]
    for name, (closed, _, other) in list(zip(names, traced, strict=True))[1:]:
        common.check_same(
            f"lax.{what}", f"the result of {names[0]}", out_tree, traced[0][0].out_avals, f"that of {name}", other,
            closed.out_avals,
        )  # fmt: skip
    branches, consts = common.merge_consts([t[0] for t in traced], [t[1] for t in traced])
    out_avals = [
        a if all(o.weak_type == a.weak_type for o in others) else a.strong
        for a, *others in zip(*(b.out_avals for b in branches), strict=True)
    ]
    branches = [common.retype_outputs(b, out_avals) for b in branches]
    return out_tree.unflatten(cond_p.bind(index, *consts, *leaves, branches=tuple(branches)))
