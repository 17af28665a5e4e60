"""`vmap`.

May import: `api.arguments`, `interpreters.batching`, `lax.reductions`.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from xform.api.arguments import check_callable, flat_arrays, leaf_name, name_of
from xform.core import dtypes, tree
from xform.core.array import Array, get_aval
from xform.core.errors import api_boundary
from xform.interpreters import batching
from xform.lax.reductions import reduce_sum

_KEY_DATA = np.dtype("uint32")


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[..., Any]:
    """Map a function over axes of its arguments, by making every operation work on larger arrays.

    Parameters
    ----------
    fun : function of pytrees of arrays
    in_axes : int, None or pytree of them, or a sequence with one entry per positional argument
        The axis of each array to map over; None: the same for all. Keyword arguments are mapped over axis 0.
    out_axes : int, None or pytree of them
        Where the mapped axis goes in the results; None: the result doesn't depend on it.
    axis_name : hashable, optional
        A name for the axis, for collectives such as `lax.psum`.
    axis_size : int, optional
        Its length, if no argument is mapped.
    spmd_axis_name : hashable, optional
        Accepted for JAX's sake: it would name the axis for constraints of sharding, which there are none of.
    sum_match : bool
        Sum results for which `out_axes` is None over the mapped axis, if they depend on it, instead of raising.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> dots = xform.vmap(xnp.dot, in_axes=(0, None))
    >>> dots(xnp.ones((4, 3)), xnp.arange(3.0)).tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, bool) or not isinstance(in_axes, int | tuple | type(None)):
        raise TypeError(f"vmap: in_axes must be an int, None, or a tuple with one entry per argument, got {in_axes!r}")

    @functools.wraps(fun)
    @api_boundary
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                f"vmap of {name_of(fun)}: in_axes={in_axes} has {len(in_axes)} entries, the call has {len(args)} "
                "positional arguments"
            )
        leaves, in_tree = flat_arrays(f"vmap of {name_of(fun)}", (args, kwargs), leaf_name)
        axes = tree.flatten_axes("vmap in_axes", in_tree, (in_axes, 0))
        axes = axes_of_data(f"vmap of {name_of(fun)}: in_axes", (args, kwargs), leaves, axes)
        dims, size = mapped_axes(f"vmap of {name_of(fun)}", leaves, in_tree, axes, axis_size)
        found: Any = None

        def flat(*xs: Any) -> list[Any]:
            nonlocal found
            new_args, new_kwargs = in_tree.unflatten(xs)
            value = fun(*new_args, **new_kwargs)
            outs, out_tree = flat_arrays(f"result of {name_of(fun)}", value)
            targets = tree.flatten_axes("vmap out_axes", out_tree, out_axes)
            found = out_tree, axes_of_data(f"vmap of {name_of(fun)}: out_axes", value, outs, targets, 1)
            return outs

        outs, out_dims = batching.batch(flat, leaves, dims, size, axis_name)
        out_tree, targets = found
        placed = [_place(fun, o, d, t, size, sum_match) for o, d, t in zip(outs, out_dims, targets, strict=True)]
        return out_tree.unflatten(placed)

    return mapped


def axes_of_data(what: str, value: Any, leaves: list[Any], axes: list[Any], more: int = 0) -> list[Any]:
    """Axes of arrays, where they belong to random keys as those of their data, which have one axis behind all others.

    `more`: how many axes the arrays have got besides those seen here.
    """
    if not any(get_aval(x).dtype == _KEY_DATA for x in leaves):
        return axes
    out = []
    for x, axis in zip(tree.leaves(value, lambda x: isinstance(x, Array)), axes, strict=True):
        if isinstance(getattr(x, "dtype", None), dtypes.ExtendedDType) and isinstance(axis, int):
            ndim = x.ndim + more
            if not -ndim <= axis < ndim:
                raise ValueError(f"{what}: axis {axis} is out of range for random keys of rank {ndim}")
            axis %= ndim
        out.append(axis)
    return out


def mapped_axes(
    what: str, leaves: list[Any], treedef: Any, axes: list[Any], axis_size: int | None
) -> tuple[list[int | None], int]:
    """Non-negative mapped axes of the arguments, and their common length."""
    dims: list[int | None] = []
    sizes: dict[int, str] = {}
    for i, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        aval = get_aval(x)
        if axis is None:
            dims.append(None)
            continue
        if not isinstance(axis, int) or not -aval.ndim <= axis < aval.ndim:
            where = leaf_name(treedef, i)
            raise ValueError(f"{what}: axis {axis} is out of range for {where} of {aval.str_short()}")
        dims.append(axis % aval.ndim)
        sizes.setdefault(aval.shape[axis], f"{leaf_name(treedef, i)} of {aval.str_short()}, axis {axis}")
    if axis_size is not None:
        sizes.setdefault(axis_size, f"axis_size={axis_size}")
    if len(sizes) > 1:
        lines = "\n".join(f"  {size}: {where}" for size, where in sizes.items())
        raise ValueError(f"{what}: mapped axes must have one length, got\n{lines}")
    if not sizes:
        raise ValueError(
            f"{what}: no argument is mapped: in_axes must name an axis for at least one, or give axis_size"
        )
    return dims, next(iter(sizes))


def _place(fun: Any, x: Any, dim: int | None, target: Any, size: int, sum_match: bool) -> Any:
    """Bring the mapped axis of a result to where out_axes wants it."""
    if target is None:
        if dim is not None and sum_match:
            return reduce_sum(x, (dim,))
        if dim is not None:
            raise ValueError(
                f"vmap of {name_of(fun)}: out_axes is None for a result of {get_aval(x).str_short()} that depends "
                "on the mapped axis"
            )
        return x
    ndim = get_aval(x).ndim + (dim is None)
    if not isinstance(target, int) or not -ndim <= target < ndim:
        raise ValueError(f"vmap of {name_of(fun)}: out_axes {target} is out of range for a result of rank {ndim}")
    return batching.move_to(x, dim, size, target % ndim)
