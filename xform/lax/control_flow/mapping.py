"""`map`: a function applied to the rows of arrays one after another.

May import: `lax.control_flow.common`, `lax.control_flow.scan`, the other modules of `lax`.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from xform.core import tree
from xform.core.array import get_aval
from xform.core.errors import api_boundary
from xform.core.jaxpr import eval_jaxpr
from xform.interpreters.batching import batch_jaxpr
from xform.lax.control_flow import common
from xform.lax.control_flow.scan import leading_length, scan
from xform.lax.shapes import reshape
from xform.lax.slicing import concatenate, slice_in_dim


@api_boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Apply a function to each row along the leading axis, and stack the results, as `vmap` would, in less memory.

    Parameters
    ----------
    f : function of a pytree of arrays to another
    xs : pytree of arrays with a common leading length
    batch_size : int, optional
        Rows that are done at once, as by `vmap`; by default one.

    Raises
    ------
    ValueError
        If the leading lengths differ, or `batch_size` is less than 1.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> from xform import lax
    >>> lax.map(lambda x: x**2, xnp.arange(4.0), batch_size=3).tolist()
    [0.0, 1.0, 4.0, 9.0]
    """
    if not callable(f):
        raise TypeError(f"lax.map: the first argument must be a function, got {f!r}")
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    if operator.index(batch_size) < 1:
        raise ValueError(f"lax.map: batch_size must be at least 1, got {batch_size}")
    leaves, treedef = tree.flatten(xs)
    leaves = common.as_arrays(leaves)
    n = leading_length("lax.map", leaves, treedef, None)
    avals = [get_aval(x) for x in leaves]
    avals = [a.update(shape=a.shape[1:]) for a in avals]
    closed, consts, out_tree = common.trace_body(f, tree.structure((xs,)), avals, "map")

    def together(rows: Sequence[Any], size: int) -> list[Any]:
        mapped = (False,) * len(consts) + (True,) * len(rows)
        batched, _ = batch_jaxpr(closed, size, None, mapped, True)
        return eval_jaxpr(batched.jaxpr, batched.consts, *consts, *rows)

    blocks, rest = divmod(n, batch_size)
    head = n - rest
    rows = [reshape(slice_in_dim(x, 0, head), (blocks, batch_size, *x.shape[1:])) for x in leaves]
    _, ys = scan(lambda _, block: (None, together(block, batch_size)), None, rows)
    ys = [reshape(y, (head, *y.shape[2:])) for y in ys]
    if rest:
        tail = together([slice_in_dim(x, head, n) for x in leaves], rest)
        ys = [concatenate([y, t], 0) for y, t in zip(ys, tail, strict=True)]
    return out_tree.unflatten(ys)
