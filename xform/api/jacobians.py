"""`jacfwd`, `jacrev`, `hessian`: a derivative for each vector of a basis, by `vmap`.

May import: `api.arguments`, `api.derivatives`, `api.mapping`, `api.sparsity`, `xform.lax`.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.api.arguments import canonical_argnums, check_callable, flat_arrays, name_of
from xform.api.derivatives import jvp, linearize, vjp
from xform.api.mapping import vmap
from xform.api.sparsity import as_pattern, color_columns
from xform.core import dtypes, tree
from xform.core.array import get_aval
from xform.core.errors import api_boundary
from xform.lax.control_flow import map as lax_map
from xform.lax.shapes import full


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """For a list of arrays, the standard basis of all of them together: leading axis total size."""
    sizes = [get_aval(x).size for x in leaves]
    total, start, out = sum(sizes), 0, []
    for x, n in zip(leaves, sizes, strict=True):
        aval = get_aval(x)
        block = np.eye(total, n, -start, dtype=aval.dtype)
        out.append(block.reshape(total, *aval.shape))
        start += n
    return out


def _check_jacobian_dtypes(
    name: str, leaves: Sequence[Any], holomorphic: bool, what: str, complex_too: bool = False, allow_int: bool = False
) -> None:
    """TypeError unless inputs or results are of dtypes that have the derivatives which are asked for."""
    for x in leaves:
        aval = get_aval(x)
        complex_ = dtypes.issubdtype(aval.dtype, np.complexfloating)
        real = dtypes.issubdtype(aval.dtype, np.floating)
        if holomorphic and not complex_:
            raise TypeError(f"{name} with holomorphic=True needs complex {what}, got {aval.str_short()}")
        if not holomorphic and not real and not (complex_too if complex_ else allow_int):
            hint = "; for analytic functions say holomorphic=True" if complex_ else ""
            kind = "float or complex" if complex_too else "real float"
            raise TypeError(f"{name} needs {what} of {kind} dtype, got {aval.str_short()}{hint}")


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """The Jacobian of `fun`, column by column in forward mode: best for tall Jacobians.

    Parameters
    ----------
    fun : function of pytrees of arrays
    argnums : int or sequence of int
        Positional arguments to differentiate; a sequence gives a tuple of Jacobians.
    has_aux : bool
        Whether `fun` returns a pair of its result and auxiliary data; then so does the Jacobian.
    holomorphic : bool
        Whether `fun` is complex analytic. Else inputs are real, and results real or complex.
    chunk_size : int, optional
        How many columns to compute at once; fewer need less memory. By default all.
    sparsity : boolean matrix, dense or of `scipy.sparse`, optional
        Where the Jacobian can be other than zero, all elements of the result by all elements of the arguments: see
        `jacobian_sparsity`. Columns without a common row are computed together. (Not checked: what is missing in the
        pattern spoils the result.)

    Returns
    -------
    A function that returns, for each array of the result (its structure outside) and each of the argument (its
    structure inside), an array of shape ``(*out.shape, *in.shape)``.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> xform.jacfwd(lambda x: x**2)(xnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable("jacfwd", fun)

    @functools.wraps(fun)
    @api_boundary
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        f, chosen = _partial(fun, argnums, args, kwargs, "jacfwd")
        leaves, treedef = flat_arrays("jacfwd", chosen)
        _check_jacobian_dtypes("jacfwd", leaves, holomorphic, "inputs")
        chosen = treedef.unflatten(leaves)

        if chunk_size is None and sparsity is None:

            def push(*ts: Any) -> Any:
                return jvp(f, (chosen,), (treedef.unflatten(ts),), has_aux)

            axes = (None, 0, None) if has_aux else (None, 0)
            out, columns, *aux = vmap(push, out_axes=axes)(*_basis(leaves))
        else:  # the nonlinear part once, not for each chunk
            out, linear, *aux = linearize(f, chosen, has_aux=has_aux)
            outs, out_tree = tree.flatten(out)
            found = _derivatives(
                "jacfwd",
                lambda *ts: tree.leaves(linear(treedef.unflatten(ts))),
                leaves,
                outs,
                chunk_size,
                sparsity,
                False,
            )
            columns = out_tree.unflatten(found)
        _check_jacobian_dtypes("jacfwd", tree.leaves(out), holomorphic, "results", complex_too=True)
        result = tree.map(lambda c: _split_inputs(c, leaves, treedef), columns)
        return (result, aux[0]) if has_aux else result

    return jacobian


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    *,
    chunk_size: int | None = None,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """The Jacobian of `fun`, row by row in reverse mode: best for wide Jacobians.

    Parameters and result are those of `jacfwd`, for rows instead of columns; with `allow_int` integer arguments have
    derivatives, which are zeros of dtype float0. Without `holomorphic` results are real, and inputs real or complex;
    the derivative by x + iy is d/dx - i d/dy, as that of `grad`.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> xform.jacrev(lambda x: x**2)(xnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable("jacrev", fun)

    @functools.wraps(fun)
    @api_boundary
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        f, chosen = _partial(fun, argnums, args, kwargs, "jacrev")
        leaves, treedef = flat_arrays("jacrev", chosen)
        _check_jacobian_dtypes("jacrev", leaves, holomorphic, "inputs", complex_too=True, allow_int=allow_int)
        out, pullback, *aux = vjp(f, treedef.unflatten(leaves), has_aux=has_aux)
        outs, out_tree = tree.flatten(out)
        _check_jacobian_dtypes("jacrev", outs, holomorphic, "results")
        pull = lambda *cts: tree.leaves(pullback(out_tree.unflatten(cts)))  # noqa: E731
        rows = _derivatives("jacrev", pull, outs, leaves, chunk_size, sparsity, True)
        # For each input an array whose leading axis is all results; split it by result, and put results outside.
        per_input = [_split_axis0(r, outs) for r in rows]
        result = out_tree.unflatten([treedef.unflatten([p[i] for p in per_input]) for i in range(len(outs))])
        return (result, aux[0]) if has_aux else result

    return jacobian


jacobian = jacrev


def _derivatives(
    name: str,
    linear: Callable[..., list[Any]],
    inputs: Sequence[Any],
    outs: Sequence[Any],
    chunk_size: int | None,
    sparsity: Any,
    transposed: bool,
) -> list[Any]:
    """A linear function of lists of arrays, applied to the standard basis of all inputs: leading axis its length.

    `sparsity` is its matrix' pattern, or the pattern of the transpose.
    """
    if chunk_size is not None and operator.index(chunk_size) < 1:
        raise ValueError(f"{name}: chunk_size must be at least 1, got {chunk_size}")

    def apply(directions: Sequence[Any]) -> list[Any]:
        if chunk_size is None or len(directions[0]) <= chunk_size:
            return vmap(linear)(*directions)
        return lax_map(lambda xs: linear(*xs), list(directions), batch_size=chunk_size)

    basis = _basis(inputs)
    if sparsity is None:
        return apply(basis)
    n_in, n_out = (sum(get_aval(x).size for x in xs) for xs in (inputs, outs))
    pattern = as_pattern(name, sparsity, (n_in, n_out) if transposed else (n_out, n_in))
    pattern = pattern.T.tocsr() if transposed else pattern
    colors = color_columns(pattern)
    count = int(colors.max(initial=-1)) + 1
    seeds = []
    for block in basis:
        seed = np.zeros((count, *block.shape[1:]), block.dtype)
        np.add.at(seed, colors, block)
        seeds.append(seed)
    row, column = pattern.nonzero()
    found, start = [], 0
    for compressed, x in zip(apply(seeds), outs, strict=True):
        aval = get_aval(x)
        mine = (start <= row) & (row < start + aval.size)
        i, j = row[mine] - start, column[mine]
        flat = compressed.reshape(count, aval.size)
        dense = full((n_in, aval.size), 0, flat.dtype).at[j, i].set(flat[colors[j], i])
        found.append(dense.reshape(n_in, *aval.shape))
        start += aval.size
    return found


def _partial(fun: Any, argnums: Any, args: tuple, kwargs: dict, name: str) -> tuple[Callable[..., Any], Any]:
    """`fun` as a function of the chosen argument(s) alone."""
    numbers = canonical_argnums(f"{name} of {name_of(fun)}", argnums, len(args))
    single = isinstance(argnums, int)

    def f(chosen: Any) -> Any:
        full_args = list(args)
        for i, x in zip(numbers, (chosen,) if single else chosen, strict=True):
            full_args[i] = x
        return fun(*full_args, **kwargs)

    return f, args[numbers[0]] if single else tuple(args[i] for i in numbers)


def _split_axis0(x: Any, parts: Sequence[Any]) -> list[Any]:
    """Split the leading axis into pieces as large as `parts`, and give them their shapes."""
    out, start = [], 0
    for p in parts:
        aval = get_aval(p)
        piece = x[start : start + aval.size]
        out.append(piece.reshape(*aval.shape, *x.shape[1:]))
        start += aval.size
    return out


def _split_inputs(columns: Any, leaves: Sequence[Any], treedef: Any) -> Any:
    """From (all inputs, *out.shape) to a pytree of (*out.shape, *in.shape)."""
    pieces = []
    for piece, leaf in zip(_split_axis0(columns, leaves), leaves, strict=True):
        n = get_aval(leaf).ndim
        order = [*range(n, piece.ndim), *range(n)]
        pieces.append(piece.transpose(order))
    return treedef.unflatten(pieces)


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    chunk_size: int | None = None,
    sparsity: Any = None,
) -> Callable[..., Any]:
    """The matrix of second derivatives: forward over reverse mode.

    The parameters are those of `jacfwd`; `sparsity` is the pattern of the matrix itself, for a scalar function.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> xform.hessian(lambda x: (x**3).sum())(xnp.array([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    rows = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(rows, argnums, has_aux, holomorphic, chunk_size=chunk_size, sparsity=sparsity)
