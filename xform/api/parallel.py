"""`pmap`.

May import: `api.arguments`, `api.mapping`, `lax.parallel_map`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xform.api.arguments import canonical_argnums, check_callable, flat_arrays, leaf_name, name_of
from xform.api.mapping import axes_of_data, mapped_axes
from xform.backends import xla
from xform.core import tree
from xform.core.array import get_aval
from xform.core.config import state
from xform.core.errors import api_boundary
from xform.core.trace import Tracer
from xform.interpreters import batching
from xform.interpreters.staging import trace_to_closed
from xform.lax.parallel_map import pmap_p, scope
from xform.lax.shapes import transpose


class _Unnamed:
    """The name of a pmap's axis that the user gave none."""

    def __repr__(self) -> str:
        return "<unnamed axis>"


def pmap(
    fun: Callable[..., Any],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
    global_arg_shapes: Any = None,
) -> Callable[..., Any]:
    """Map a function over axes of its arguments, each position on a device of its own.

    Parameters
    ----------
    fun : function of pytrees of arrays
    axis_name : hashable, optional
        Name of the axis, for collectives such as `lax.psum`.
    in_axes, out_axes : as for `vmap`
    static_broadcasted_argnums : int or sequence of int
        Arguments that are Python values (hashable), the same everywhere.
    devices : sequence of Device, optional
        By default the first ones of `xform.devices()`.

    Notes
    -----
    Results stay on their devices; handing them to another pmap moves nothing. On CPU several devices can be simulated:
    set the option ``num_cpu_devices`` before the first computation, or ``XFORM_NUM_CPU_DEVICES=8``. Called inside
    `jit`, the map runs on one device, batched.

    Raises
    ------
    ValueError
        If there are fewer devices than rows.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> shares = xform.pmap(lambda x: x / xform.lax.psum(x, "i"), axis_name="i")
    >>> shares(xnp.array([5.0])).tolist()
    [1.0]
    """
    check_callable("pmap", fun)
    if global_arg_shapes is not None:
        raise NotImplementedError("pmap: global_arg_shapes is not supported")
    if donate_argnums not in ((), None):
        raise NotImplementedError("pmap: donate_argnums is not supported yet")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    name = axis_name if axis_name is not None else _Unnamed()
    traced: dict[Any, Any] = {}
    what = f"pmap of {name_of(fun)}"

    @functools.wraps(fun)
    @api_boundary
    def mapped(*args: Any, **kwargs: Any) -> Any:
        static_nums: tuple[int, ...] = ()
        if static_broadcasted_argnums not in ((), None):
            static_nums = canonical_argnums(what, static_broadcasted_argnums, len(args))
        static = tuple((i, args[i]) for i in sorted(static_nums))
        dynamic = tuple(a for i, a in enumerate(args) if i not in static_nums)
        axes_of_args = in_axes
        if isinstance(in_axes, tuple):
            if len(in_axes) != len(args):
                raise ValueError(
                    f"{what}: in_axes={in_axes} has {len(in_axes)} entries, the call {len(args)} arguments"
                )
            axes_of_args = tuple(a for i, a in enumerate(in_axes) if i not in static_nums)
        leaves, in_tree = flat_arrays(what, (dynamic, kwargs), leaf_name)
        axes = tree.flatten_axes("pmap in_axes", in_tree, (axes_of_args, 0))
        axes = axes_of_data(f"{what}: in_axes", (dynamic, kwargs), leaves, axes)
        dims, size = mapped_axes(what, leaves, in_tree, axes, axis_size)
        found = _devices(what, devices, backend, size)
        leaves = [x if d is None else batching.move_to(x, d, size) for x, d in zip(leaves, dims, strict=True)]
        avals = [get_aval(x) for x in leaves]
        avals = [a if d is None else a.update(shape=a.shape[1:]) for a, d in zip(avals, dims, strict=True)]
        is_mapped = tuple(d is not None for d in dims)
        key = (state.trace_context, in_tree, *avals, is_mapped, size, static)
        entry = traced.get(key)
        if entry is None:
            entry = _trace(fun, static, in_tree, avals, name, size)
            if not any(isinstance(c, Tracer) for c in entry[1]):
                traced[key] = entry
        closed, consts, out_tree = entry
        outs = pmap_p.bind(
            *consts, *leaves, jaxpr=closed, axis_name=name, axis_size=size, mapped=(*[False] * len(consts), *is_mapped),
            devices=found,
        )  # fmt: skip
        targets = tree.flatten_axes("pmap out_axes", out_tree, out_axes)
        return out_tree.unflatten([_place(x, t) for x, t in zip(outs, targets, strict=True)])

    return mapped


def _trace(fun: Any, static: Any, in_tree: Any, avals: Any, name: Any, size: int) -> tuple[Any, list[Any], Any]:
    out_tree: Any = None

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        args, kwargs = in_tree.unflatten(xs)
        args = list(args)
        for i, value in static:
            args.insert(i, value)
        outs, out_tree = flat_arrays(f"result of {name_of(fun)}", fun(*args, **kwargs))
        return outs

    with scope(name, size):
        closed, consts = trace_to_closed(flat, avals, name_of(fun), "pmap")
    return closed, consts, out_tree


def _devices(what: str, devices: Any, backend: str | None, size: int) -> tuple[Any, ...]:
    available = list(devices) if devices is not None else xla.devices(backend)
    if size > len(available):
        raise ValueError(
            f"{what}: the mapped axis has length {size}, but there are {len(available)} devices; on CPU more can be "
            "simulated with XFORM_NUM_CPU_DEVICES"
        )
    return tuple(available[:size])


def _place(x: Any, target: Any) -> Any:
    """Bring the axis over devices where out_axes wants it."""
    if target is None:
        return x[0]
    ndim = get_aval(x).ndim
    if not -ndim <= target < ndim:
        raise ValueError(f"pmap: out_axes {target} is out of range for a result of rank {ndim}")
    target %= ndim
    if not target:
        return x
    return transpose(x, [*range(1, target + 1), 0, *range(target + 1, ndim)])
