"""Which elements of a program's results depend on which elements of its inputs.

The sets are the rows of sparse boolean matrices, one for each variable: elements by inputs. Each operation combines
those of its operands; `Primitive.depends` says how, as the matrices of the operation itself. They don't depend on
values, only on constants, such as indices and matrices with zeros, that the program doesn't compute from its inputs.

May import: `xform.core`, SciPy (inside functions).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval, host_value
from xform.core.jaxpr import ClosedJaxpr, Literal
from xform.core.trace import Primitive


class Dependent:
    """The value of a variable that depends on the inputs: for each of its elements a set of inputs."""

    __slots__ = ("aval", "rows")

    def __init__(self, rows: Any, aval: Any):
        self.rows, self.aval = rows, aval


def pattern(closed: ClosedJaxpr, inputs: Sequence[Any]) -> list[Any]:
    """For each result a sparse boolean matrix, its elements by those of all the differentiated inputs.

    `inputs` are concrete values, or None for those that are differentiated.
    """
    from scipy import sparse

    sizes = [a.size if x is None else 0 for a, x in zip(closed.in_avals, inputs, strict=True)]
    total, start = sum(sizes), 0
    values: list[Any] = []
    for aval, size, x in zip(closed.in_avals, sizes, inputs, strict=True):
        if x is None:
            values.append(Dependent(sparse.eye_array(size, total, k=start, dtype=bool, format="csr"), aval))
            start += size
        else:
            values.append(np.asarray(host_value(x)))
    outs = evaluate(closed, values)
    empty = lambda aval: sparse.csr_array((aval.size, total), dtype=bool)  # noqa: E731
    return [
        o.rows if isinstance(o, Dependent) and a.inexact else empty(a)
        for o, a in zip(outs, closed.out_avals, strict=True)
    ]


def evaluate(closed: ClosedJaxpr, values: Sequence[Any]) -> list[Any]:
    """The results of a program, of which some inputs are `Dependent` and others ndarrays."""
    jaxpr = closed.jaxpr
    env: dict[int, Any] = {
        id(v): np.asarray(host_value(c)) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)
    }
    env.update({id(v): x for v, x in zip(jaxpr.invars, values, strict=True)})
    read = lambda v: np.asarray(v.val) if type(v) is Literal else env[id(v)]  # noqa: E731
    for eqn in jaxpr.eqns:
        operands = [read(v) for v in eqn.invars]
        env.update(zip(map(id, eqn.outvars), _apply(eqn, operands), strict=True))
    return [read(v) for v in jaxpr.outvars]


def _apply(eqn: Any, operands: Sequence[Any]) -> list[Any]:
    primitive, avals = eqn.primitive, [v.aval for v in eqn.outvars]
    if not any(isinstance(x, Dependent) for x in operands):
        out = primitive.bind(*operands, **eqn.params)
        return [np.asarray(host_value(o)) for o in (out if primitive.multiple_results else [out])]
    if "depends" in primitive.__dict__:
        if primitive.multiple_results:
            return primitive.depends(avals, operands, **eqn.params)
        matrices = primitive.depends(avals[0], operands, **eqn.params)
        return [union(avals[0], operands, matrices)]
    everything = _anything(operands)
    return [Dependent(_repeat(everything, a.size), a) if a.inexact else _unknown(everything, a) for a in avals]


def _unknown(everything: Any, aval: Any) -> Dependent:
    """A value of a type without derivatives: not known, but dependent on nothing."""
    return Dependent(everything[[0] * aval.size] * False, aval)


def _anything(operands: Sequence[Any]) -> Any:
    """One row: everything that any element of the operands depends on."""
    from scipy import sparse

    counts = [x.rows.sum(axis=0, dtype=np.int64) for x in operands if isinstance(x, Dependent)]
    return sparse.csr_array(np.sum(counts, axis=0)[None] > 0)


def _repeat(row: Any, n: int) -> Any:
    return row[[0] * n]


def union(aval: Any, operands: Sequence[Any], matrices: Sequence[Any]) -> Dependent:
    """Results by inputs, from results by operands (None: by no element of that operand) and operands by inputs."""
    from scipy import sparse

    width = next(x.rows.shape[1] for x in operands if isinstance(x, Dependent))
    total = sparse.csr_array((aval.size, width), dtype=bool)
    if aval.inexact:
        for x, m in zip(operands, matrices, strict=True):
            if isinstance(x, Dependent) and m is not None and getattr(x.aval, "inexact", True):
                total = total + (m.astype(np.int64) @ x.rows.astype(np.int64) > 0)
    return Dependent(total.tocsr(), aval)


# The matrices of operations, results by elements of an operand, for the rules beside the primitives.


def links(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """A boolean matrix with these elements."""
    from scipy import sparse

    rows, columns = np.broadcast_arrays(rows, columns)
    rows, columns = rows.ravel(), columns.ravel()
    return sparse.csr_array((np.ones(rows.size, bool), (rows, columns)), shape)


def elementwise(aval: Any, operands: Sequence[Any], **params: Any) -> list[Any]:
    """Every result depends on the elements in its place."""
    return [_in_place(aval, x) for x in operands]


def _in_place(aval: Any, x: Any, where: Any = True) -> Any:
    """Every result, at the places `where`, depends on the element of `x` in its place."""
    where = np.broadcast_to(where, aval.shape)
    out = np.arange(aval.size).reshape(aval.shape)
    return links(out[where], np.broadcast_to(_numbers(x), aval.shape)[where], (aval.size, _size(x)))


def chosen(aval: Any, operands: Sequence[Any], **params: Any) -> list[Any]:
    """``select_n``: every result depends on one of the cases, on which if the predicate is known."""
    which, *cases = operands
    if isinstance(which, Dependent):
        return elementwise(aval, operands)
    return [None, *[_in_place(aval, x, np.asarray(which) == i) for i, x in enumerate(cases)]]


def product(aval: Any, operands: Sequence[Any], **params: Any) -> list[Any]:
    """An elementwise product: nothing depends on what is multiplied by a known zero."""
    known = [True if isinstance(x, Dependent) else np.asarray(x) != 0 for x in operands]
    return [_in_place(aval, x, known[1 - k]) for k, x in enumerate(operands)]


def everywhere(aval: Any, x: Any) -> Any:
    """Every result depends on every element of `x`."""
    return links(np.arange(aval.size)[:, None], np.arange(_size(x)), (aval.size, _size(x)))


def nothing(aval: Any, operands: Sequence[Any], **params: Any) -> list[Any]:
    """The derivative is zero."""
    return [None] * len(operands)


def selection(primitive: Primitive) -> Any:
    """Every result is an element of an operand, found by applying the operation to the elements' numbers.

    Operands that say which (indices) must be known.
    """

    def depends(aval: Any, operands: Sequence[Any], **params: Any) -> list[Any]:
        if any(isinstance(x, Dependent) and not x.aval.inexact for x in operands):
            return [everywhere(aval, x) for x in operands]
        found: list[Any] = []
        for k, x in enumerate(operands):
            if not isinstance(x, Dependent):
                found.append(None)
                continue
            numbered = [
                _numbers(x) + 1
                if i == k
                else np.zeros(get_aval(o).shape if not isinstance(o, Dependent) else o.aval.shape, np.int64)
                if not _is_index(o)
                else o
                for i, o in enumerate(operands)
            ]
            with np.errstate(all="ignore"):
                numbers = np.asarray(primitive.host(*numbered, **_of_integers(params))).ravel()
            rows = np.flatnonzero(numbers > 0)
            found.append(links(rows, numbers[rows] - 1, (aval.size, _size(x))))
        return found

    return depends


def _of_integers(params: dict[str, Any]) -> dict[str, Any]:
    return {k: (0 if k == "fill_value" else np.dtype(np.int64) if k == "new_dtype" else v) for k, v in params.items()}


def _is_index(x: Any) -> bool:
    return not isinstance(x, Dependent) and np.asarray(x).dtype.kind in "iub"


def over_axes(aval: Any, operands: Sequence[Any], *, axes: Sequence[int], **params: Any) -> list[Any]:
    """A reduction: every result depends on the elements along the axes."""
    (x,) = operands
    shape = _shape(x)
    kept = [1 if d in axes else n for d, n in enumerate(shape)]
    out = np.broadcast_to(np.arange(aval.size).reshape(kept), shape)
    return [links(out, _numbers(x), (aval.size, _size(x)))]


def along_axis(aval: Any, operands: Sequence[Any], *, axis: int, reverse: bool = False, **params: Any) -> list[Any]:
    """A cumulative operation: every result depends on the elements before it, and on itself."""
    (x,) = operands
    ids = np.moveaxis(_numbers(x), axis, -1)
    i, j = np.tril_indices(ids.shape[-1])
    if reverse:
        i, j = j, i
    return [links(ids[..., i], ids[..., j], (aval.size, _size(x)))]


def contraction(aval: Any, operands: Sequence[Any], *, dimension_numbers: Any, **params: Any) -> list[Any]:
    """A matrix product: every result depends on a row and a column, where the other factor isn't known to be zero."""
    contract, batch = dimension_numbers
    found: list[Any] = []
    for k in (0, 1):
        mine, other = operands[k], operands[1 - k]
        if not isinstance(mine, Dependent):
            found.append(None)
            continue
        free = [d for d in range(len(_shape(mine))) if d not in contract[k] and d not in batch[k]]
        ids = _numbers(mine).transpose([*batch[k], *free, *contract[k]])
        nb, nc = len(batch[k]), len(contract[k])
        other_free = [d for d in range(len(_shape(other))) if d not in contract[1 - k] and d not in batch[1 - k]]
        out = np.arange(aval.size).reshape(aval.shape)  # batch, free of the first, free of the second
        if k == 1:
            first = len(other_free)
            out = out.transpose([*range(nb), *range(nb + first, out.ndim), *range(nb, nb + first)])
        # now: batch, mine, other's
        out = out.reshape(*out.shape, *[1] * nc)
        ids = ids.reshape(*ids.shape[: nb + len(free)], *[1] * len(other_free), *ids.shape[nb + len(free) :])
        shape = np.broadcast_shapes(out.shape, ids.shape)
        out, ids = np.broadcast_to(out, shape), np.broadcast_to(ids, shape)
        if not isinstance(other, Dependent):
            known = np.asarray(other).transpose([*batch[1 - k], *other_free, *contract[1 - k]]) != 0
            known = known.reshape(*known.shape[:nb], *[1] * len(free), *known.shape[nb:])
            mask = np.broadcast_to(known, shape)
            out, ids = out[mask], ids[mask]
        found.append(links(out, ids, (aval.size, _size(mine))))
    return found


def _numbers(x: Any) -> np.ndarray:
    return np.arange(_size(x)).reshape(_shape(x))


def _shape(x: Any) -> tuple[int, ...]:
    return x.aval.shape if isinstance(x, Dependent) else np.shape(x)


def _size(x: Any) -> int:
    return int(np.prod(_shape(x), dtype=int))
