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
from xform.core.jaxpr import ClosedJaxpr, Eqn, eval_jaxpr
from xform.core.trace import Tracer, evaluate
from xform.interpreters import passes
from xform.interpreters.batching import batch_jaxpr, move_to
from xform.interpreters.forward import jvp_jaxpr, jvp_jaxpr_fixed, with_zeros
from xform.interpreters.lowering import Context, Value
from xform.interpreters.reverse import linearize_jaxpr, transpose_jaxpr
from xform.interpreters.tangents import is_linear, is_zero, zero_of
from xform.lax.calls import CallPrimitive
from xform.lax.comparison import select_n_p
from xform.lax.control_flow import common
from xform.lax.shapes import broadcast_in_dim, convert

Branches = tuple[ClosedJaxpr, ...]


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
    a branch that was not taken has ones for its own.
    """
    cache = branches[0].cache
    key = ("split_branches", tuple(map(id, branches)), nonzero, nonzero_out)
    if key in cache:
        return cache[key][0]
    splits = [linearize_jaxpr(b, nonzero, nonzero_out) for b in branches]
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
                r for j, avals in enumerate(own_avals) for r in (mine if j == k else map(_blank, avals))
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


def _blank(aval: ShapedArray) -> Any:
    """Ones, not zeros: under `vmap` the linear branch runs for all lanes, and may divide by its residuals."""
    return broadcast_in_dim(np.ones((), aval.dtype)[()], aval.shape, ())


def _transpose(cts: Sequence[Any], index: Any, *args: Any, branches: Branches) -> list[Any]:
    linear = tuple(is_linear(a) for a in args)
    nonzero_ct = tuple(not is_zero(ct) for ct in cts)
    transposed = tuple(transpose_jaxpr(b, linear, nonzero_ct, True)[0] for b in branches)
    known = [a for a, lin in zip(args, linear, strict=True) if not lin]
    outs = iter(cond_p.bind(index, *known, *[ct for ct in cts if not is_zero(ct)], branches=transposed))
    return [None, *[next(outs) if lin else None for lin in linear]]


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
    results = []
    for b in branches:
        jaxpr, _ = batch_jaxpr(b, axis.size, axis.axis_name, batched, True)
        results.append(eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *operands))
    which = index if len(branches) > 2 else convert(index, np.dtype(bool))
    outs = []
    for cases in zip(*results, strict=True):
        shape = cases[0].shape
        outs.append(select_n_p.bind(broadcast_in_dim(which, shape, (0,)), *cases))
    return outs, [0] * len(outs)


def _lower(ctx: Context, index: Value, *operands: Value, branches: Branches) -> list[Value]:
    outs = ctx.outs
    if index.dtype != np.int32:
        index = ctx.convert(index, np.dtype(np.int32))
    regions = [ctx.region(lambda c, b=b: c.jaxpr(b.jaxpr, b.consts, operands), []) for b in branches]
    return ctx.op("case", [index], outs, "", regions)


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
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = None) -> Any:
    """Apply one of several functions: ``branches[clip(index, 0, len(branches) - 1)](*operands)``.

    With a known index only that branch runs. Traced, the branches must return the same structure and types.
    Under `vmap` with a mapped index all branches run, and their results are selected from.

    Parameters
    ----------
    index : integer scalar
    branches : sequence of functions of the operands
    *operands : pytrees of arrays

    Examples
    --------
    >>> from xform import lax
    >>> lax.switch(2, [lambda x: x, lambda x: -x, lambda x: 10 * x], 3.0)
    30.0
    """
    if operand is not None:
        operands = (*operands, operand)
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
    return _bind("switch", index, branches, operands)


@api_boundary
def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = None,
         linear: Any = None) -> Any:  # fmt: skip
    """Apply ``true_fun(*operands)`` or ``false_fun(*operands)``.

    With a known predicate only that function runs. Traced, both must return the same structure and types.
    Under `vmap` with a mapped predicate both run, and their results are selected from.

    Parameters
    ----------
    pred : boolean or numeric scalar
    true_fun, false_fun : functions of the operands
    *operands : pytrees of arrays

    Examples
    --------
    >>> import xform
    >>> f = xform.jit(lambda x: xform.lax.cond(x > 0, lambda y: y, lambda y: -y, x))
    >>> float(f(-3.0))
    3.0
    """
    if operand is not None:
        operands = (*operands, operand)
    if not callable(true_fun) or not callable(false_fun):
        raise TypeError("lax.cond: the arguments are (pred, true_fun, false_fun, *operands), with two functions")
    aval = get_aval(pred)
    if aval.shape:
        raise TypeError(f"lax.cond: pred must be a scalar, got {aval.str_short()}; use xform.numpy.where for arrays")
    if not isinstance(pred, Tracer):
        return (true_fun if pred else false_fun)(*operands)
    index = convert(convert(pred, np.dtype(bool)), np.dtype(np.int32))
    return _bind("cond", index, [false_fun, true_fun], operands)


def _bind(what: str, index: Any, functions: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    leaves, treedef = tree.flatten(tuple(operands))
    leaves = common.as_arrays(leaves)
    avals = [get_aval(x) for x in leaves]
    traced = [common.trace_body(f, treedef, avals, what) for f in functions]
    out_tree = traced[0][2]
    names = ["false_fun", "true_fun"] if what == "cond" else [f"branches[{i}]" for i in range(len(functions))]
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
