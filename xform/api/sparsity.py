"""Sparse Jacobians: their pattern, and how to find many columns by one derivative.

May import: `api.arguments`, `api.inspection`, `interpreters.dependencies`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.api.arguments import canonical_argnums, check_callable, flat_arrays, name_of
from xform.core import tree
from xform.core.array import get_aval
from xform.core.errors import api_boundary
from xform.interpreters import dependencies
from xform.interpreters.forward import with_consts
from xform.interpreters.staging import trace_to_closed


def jacobian_sparsity(fun: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that finds where the Jacobian of `fun` can be other than zero.

    It follows the operations of `fun`, not its values: the pattern holds for all arguments of the same shapes.
    Constants count, such as indices, and matrices with zeros; an operation whose structure isn't known (linear
    algebra, FFT, sorting, convolution) makes every result dependent on every element.

    Parameters
    ----------
    fun : function of pytrees of arrays
    argnums : int or sequence of int
        Positional arguments to differentiate.

    Returns
    -------
    A function of the arguments of `fun` that returns a `scipy.sparse.csr_array` of booleans: all elements of the
    result by all those of the arguments. `jacfwd` and `jacrev` take it as `sparsity`.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> xform.jacobian_sparsity(lambda x: x[1:] * x[:-1])(xnp.arange(4.0)).toarray().astype(int).tolist()
    [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    """
    check_callable("jacobian_sparsity", fun)

    @api_boundary
    def sparsity(*args: Any, **kwargs: Any) -> Any:
        from scipy import sparse

        what = f"jacobian_sparsity of {name_of(fun)}"
        numbers = canonical_argnums(what, argnums, len(args))
        chosen, in_tree = flat_arrays(what, tuple(args[i] for i in numbers))

        def flat(*xs: Any) -> list[Any]:
            full = list(args)
            for i, x in zip(numbers, in_tree.unflatten(xs), strict=True):
                full[i] = x
            return tree.leaves(fun(*full, **kwargs))

        closed, consts = trace_to_closed(flat, [get_aval(x) for x in chosen], name_of(fun))
        rows = dependencies.pattern(with_consts(closed, consts), [None] * len(chosen))
        return sparse.csr_array(sparse.vstack(rows, format="csr"))

    return sparsity


def color_columns(pattern: Any) -> np.ndarray:
    """A color for each column, such that columns of one color have no row in common.

    Greedy, the columns with most elements first: Curtis, Powell & Reid, "On the estimation of sparse Jacobian matrices"
    (1974); Gebremedhin, Manne & Pothen, "What color is your Jacobian?" (2005).
    """
    by_row, by_column = pattern.tocsr(), pattern.tocsc()
    colors = np.full(pattern.shape[1], -1)
    for j in np.argsort(-np.diff(by_column.indptr), kind="stable"):
        rows = by_column.indices[by_column.indptr[j] : by_column.indptr[j + 1]]
        near = [by_row.indices[by_row.indptr[i] : by_row.indptr[i + 1]] for i in rows]
        taken = np.unique(colors[np.concatenate(near)]) if near else np.empty(0, int)
        taken = taken[taken >= 0]
        free = np.flatnonzero(taken != np.arange(len(taken)))
        colors[j] = free[0] if free.size else len(taken)
    return colors


def as_pattern(name: str, sparsity: Any, shape: tuple[int, int]) -> Any:
    """A pattern that a user gave, as a sparse boolean matrix."""
    from scipy import sparse

    matrix = sparse.csr_array(sparsity if sparse.issparse(sparsity) else np.asarray(sparsity)).astype(bool)
    if matrix.shape != shape:
        raise ValueError(
            f"{name}: sparsity must have the shape (elements of the result, elements of the arguments) = {shape}, "
            f"got {matrix.shape}"
        )
    matrix.eliminate_zeros()
    return matrix
