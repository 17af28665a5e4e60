"""Which elements of an operation's results depend on which of its operands': a table, for `interpreters.dependencies`.

Elementwise operations have their rule from their family. Of what is listed nowhere (linear algebra, FFT, sorting,
convolution, windows) every result counts as dependent on every element.

May import: the primitives, `interpreters.dependencies`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import ArrayImpl, host_value
from xform.core.jaxpr import ClosedJaxpr
from xform.interpreters import dependencies as dep
from xform.interpreters.dependencies import Dependent
from xform.interpreters.tangents import Linear
from xform.lax.arithmetic import mul_p
from xform.lax.calls import jit_p
from xform.lax.checkpoint import checkpoint_p
from xform.lax.comparison import select_n_p
from xform.lax.control_flow.cond import cond_p
from xform.lax.control_flow.scan import scan_p
from xform.lax.control_flow.while_loop import while_p
from xform.lax.conversion import convert_element_type_p
from xform.lax.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from xform.lax.custom_calls import custom_jvp_call_p, custom_vjp_call_p
from xform.lax.dot import dot_general_p
from xform.lax.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from xform.lax.gather import gather_p
from xform.lax.polyval import polyval_p
from xform.lax.reductions import reduce_max_p, reduce_min_p, reduce_prod_p, reduce_sum_p
from xform.lax.roll import roll_p
from xform.lax.scatter import scatter_add_p, scatter_p
from xform.lax.shapes import broadcast_in_dim_p, reshape_p, rev_p, squeeze_p, transpose_p
from xform.lax.slicing import concatenate_p, pad_p, slice_p
from xform.lax.split import split_p
from xform.lax.stacking import stack_p, tile_p


def _split(avals: Sequence[Any], operands: Sequence[Any], *, sizes: Sequence[int], axis: int) -> list[Any]:
    (x,) = operands
    pieces = np.split(np.arange(x.aval.size).reshape(x.aval.shape), np.cumsum(sizes)[:-1], axis)
    return [Dependent(x.rows[ids.ravel()], aval) for ids, aval in zip(pieces, avals, strict=True)]


def _scatter_add(aval: Any, operands: Sequence[Any], **params: Any) -> list[Any]:
    x, indices, updates = operands
    if isinstance(indices, Dependent):
        return [
            dep.links(np.arange(aval.size)[:, None], np.arange(dep._size(o)), (aval.size, dep._size(o)))
            for o in operands
        ]
    found = [dep.elementwise(aval, [x])[0], None, None]
    if isinstance(updates, Dependent):
        # Where each update goes: the transpose takes the cotangent from there.
        numbers = ArrayImpl(np.arange(1.0, aval.size + 1).reshape(aval.shape))
        shape = updates.aval.update(dtype=np.dtype(float))
        zeros = np.zeros(aval.shape)
        target = scatter_add_p.transpose(numbers, zeros, ArrayImpl(indices), Linear(shape), **params)[2]
        to = np.asarray(host_value(target)).astype(int).ravel() - 1
        kept = np.flatnonzero(to >= 0)
        found[2] = dep.links(to[kept], kept, (aval.size, updates.aval.size))
    return found


def _polyval(aval: Any, operands: Sequence[Any], **params: Any) -> list[Any]:
    c, x = operands
    found: list[Any] = [None, None]
    if isinstance(c, Dependent):
        n, size = c.aval.shape[0], c.aval.size
        in_place = np.tile(np.arange(aval.size), n), np.arange(size)
        found[0] = dep.everywhere(aval, c) if c.aval.ndim == 1 else dep.links(*in_place, (aval.size, size))
    if isinstance(x, Dependent):
        found[1] = dep.elementwise(aval, [x])[0]
    return found


def _cond(avals: Sequence[Any], operands: Sequence[Any], *, branches: Sequence[ClosedJaxpr], **_: Any) -> list[Any]:
    index, *rest = operands
    if not isinstance(index, Dependent):
        return dep.evaluate(branches[int(np.clip(index, 0, len(branches) - 1))], rest)
    outs = [dep.evaluate(b, rest) for b in branches]
    return [_merge(aval, [o[i] for o in outs], operands) for i, aval in enumerate(avals)]


def _merge(aval: Any, values: Sequence[Any], operands: Sequence[Any]) -> Dependent:
    """Dependent on whatever one of the values is."""
    width = next(x.rows.shape[1] for x in operands if isinstance(x, Dependent))
    rows = _none(aval.size, width)
    for v in values:
        rows = rows + v.rows if isinstance(v, Dependent) else rows
    return Dependent(rows, aval)


def _none(n: int, width: int) -> Any:
    from scipy import sparse

    return sparse.csr_array((n, width), dtype=bool)


def _scan(
    avals: Sequence[Any], operands: Sequence[Any], *, jaxpr: ClosedJaxpr, length: int, reverse: bool, num_consts: int,
    num_carry: int, **_: Any,
) -> list[Any]:  # fmt: skip
    """Step by step."""
    n = num_consts + num_carry
    consts, carry, xs = list(operands[:num_consts]), list(operands[num_consts:n]), operands[n:]
    rows: list[list[Any]] = [[None] * length for _ in avals[num_carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        outs = dep.evaluate(jaxpr, [*consts, *carry, *[_element(x, i) for x in xs]])
        carry = outs[:num_carry]
        for row, out in zip(rows, outs[num_carry:], strict=True):
            row[i] = out
    return [*carry, *[_stack(a, row, operands) for a, row in zip(avals[num_carry:], rows, strict=True)]]


def _element(x: Any, i: int) -> Any:
    if not isinstance(x, Dependent):
        return np.asarray(x)[i]
    aval = x.aval.update(shape=x.aval.shape[1:])
    return Dependent(x.rows[i * aval.size : (i + 1) * aval.size], aval)


def _stack(aval: Any, row: Sequence[Any], operands: Sequence[Any]) -> Any:
    from scipy import sparse

    if row and not any(isinstance(r, Dependent) for r in row):
        return np.stack(row)
    width = next(x.rows.shape[1] for x in operands if isinstance(x, Dependent))
    one = aval.size // max(len(row), 1)
    parts = [r.rows if isinstance(r, Dependent) else _none(one, width) for r in row]
    return Dependent(sparse.vstack(parts, format="csr") if parts else _none(0, width), aval)


def _while(
    avals: Sequence[Any], operands: Sequence[Any], *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr,
    cond_nconsts: int, body_nconsts: int, **_: Any,
) -> list[Any]:  # fmt: skip
    """Any number of steps: until nothing new is found."""
    consts = list(operands[cond_nconsts : cond_nconsts + body_nconsts])
    init = operands[cond_nconsts + body_nconsts :]
    carry = [_merge(a, [x], operands) for a, x in zip(avals, init, strict=True)]
    while True:
        outs = dep.evaluate(body_jaxpr, [*consts, *carry])
        new = [_merge(a, [c, o], operands) for a, c, o in zip(avals, carry, outs, strict=True)]
        if all(a.rows.nnz == b.rows.nnz for a, b in zip(new, carry, strict=True)):
            return carry
        carry = new


mul_p.depends, select_n_p.depends, convert_element_type_p.depends = dep.product, dep.chosen, dep.elementwise
dot_general_p.depends, scatter_add_p.depends, split_p.depends = dep.contraction, _scatter_add, _split
polyval_p.depends = _polyval
cond_p.depends, scan_p.depends, while_p.depends = _cond, _scan, _while
for p in (
    *(broadcast_in_dim_p, reshape_p, transpose_p, squeeze_p, rev_p, roll_p, slice_p, pad_p, concatenate_p),
    *(stack_p, tile_p),
    *(dynamic_slice_p, dynamic_update_slice_p, gather_p, scatter_p),
):
    p.depends = dep.selection(p)
for p in (reduce_sum_p, reduce_prod_p, reduce_max_p, reduce_min_p):
    p.depends = dep.over_axes
for p in (cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p):
    p.depends = dep.along_axis
for p in (jit_p, checkpoint_p):
    p.depends = lambda avals, operands, *, jaxpr, **_: dep.evaluate(jaxpr, operands)
for p in (custom_jvp_call_p, custom_vjp_call_p):
    p.depends = lambda avals, operands, *, call, **_: dep.evaluate(call, operands)
