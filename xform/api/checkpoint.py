"""`checkpoint`, its policies, and what tells which values a gradient keeps.

May import: `api.arguments`, `lax.checkpoint`, the interpreters.
"""

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xform.api.arguments import check_callable, flat_arrays, leaf_name, name_of, static_arguments
from xform.core import tree
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.jaxpr import Literal
from xform.core.source import describe
from xform.core.trace import Primitive
from xform.interpreters.forward import with_consts
from xform.interpreters.residuals import choose_residuals
from xform.interpreters.staging import trace_to_closed
from xform.lax.checkpoint import (
    Offloadable,
    Policy,
    Recompute,
    Saveable,
    checkpoint_p,
    name_p,
    nothing_saveable,
)
from xform.lax.custom_calls import innermost_trace


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: Any = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool = False,
) -> Callable[..., Any]:
    """The same function, of which a gradient keeps the arguments only, and computes the rest again when it needs it.

    That trades time for memory: reverse mode otherwise keeps what each operation's derivative needs.

    Parameters
    ----------
    fun : function of pytrees of arrays
    prevent_cse : bool, or a pytree of bools that is a prefix of the arguments
        Keep the compiler from noticing, under `jit`, that the same is computed twice. If this is asked for some of the
        arguments, it is done for all.
    policy : ``(primitive, *avals, **params) -> bool``, optional
        Which operations' results are kept nevertheless: one of `checkpoint_policies`, or your own. It is asked about
        the operations within calls and the bodies of `scan`, too, of which the results of all steps are kept.
    static_argnums, static_argnames : optional
        Arguments that are no arrays; `fun` sees them as they are.
    concrete : bool
        Not supported: see values by static arguments.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> f = xform.checkpoint(lambda x: xnp.sin(xnp.sin(x)))
    >>> float(xform.grad(f)(0.0))
    1.0
    """
    check_callable("checkpoint", fun)
    if concrete:
        raise NotImplementedError("checkpoint: concrete=True is not supported; use static_argnums")
    if policy is not None and not callable(policy):
        raise TypeError(f"checkpoint: policy must be a function, got {policy!r}")
    static = static_arguments(
        "checkpoint", fun, None if static_argnums == () else static_argnums, static_argnames or None
    )

    @functools.wraps(fun)
    @api_boundary
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        what = f"checkpoint of {name_of(fun)}"
        numbers = {i % len(args) for i in static[0] if -len(args) <= i < len(args)}
        fixed = {k: v for k, v in kwargs.items() if k in static[1]}
        dynamic = tuple(a for i, a in enumerate(args) if i not in numbers)
        keywords = {k: v for k, v in kwargs.items() if k not in fixed}
        leaves, in_tree = flat_arrays(what, (dynamic, keywords), leaf_name)
        if innermost_trace(leaves) is None:
            return fun(*args, **kwargs)
        out_trees: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            new, new_keywords = in_tree.unflatten(xs)
            rest = iter(new)
            full = [a if i in numbers else next(rest) for i, a in enumerate(args)]
            outs, out_tree = flat_arrays(f"result of {name_of(fun)}", fun(*full, **new_keywords, **fixed))
            out_trees[:] = [out_tree]
            return outs

        closed, consts = trace_to_closed(flat, [get_aval(x) for x in leaves], name_of(fun), "checkpoint")
        outs = checkpoint_p.bind(
            *consts,
            *leaves,
            jaxpr=closed,
            policy=policy or nothing_saveable,
            barrier=any(tree.leaves(prevent_cse)),
            differentiated=False,
        )
        return out_trees[0].unflatten(outs)

    return wrapper


# ---- Policies ----------------------------------------------------------------------------------------------


def everything_saveable(prim: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep everything that derivatives need, as without `checkpoint`."""
    return True


def dots_saveable(prim: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep matrix products and convolutions."""
    return prim.name in ("dot_general", "conv_general_dilated", "ragged_dot_general")


def dots_with_no_batch_dims_saveable(prim: Primitive, *avals: Any, **params: Any) -> bool:
    """Keep matrix products without batch dimensions: in networks, those with weights."""
    return prim.name == "dot_general" and not any(params["dimension_numbers"][1])


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """As `dots_with_no_batch_dims_saveable`, in other memory (see `Offloadable`)."""

    def policy(prim: Primitive, *avals: Any, **params: Any) -> Any:
        keep = dots_with_no_batch_dims_saveable(prim, *avals, **params)
        return Offloadable(offload_src, offload_dst) if keep else Recompute()

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Keep what `checkpoint_name` gave one of these names."""
    names = frozenset(names_which_can_be_saved)
    return lambda prim, *avals, **params: prim is name_p and params["name"] in names


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Keep what `checkpoint_name` gave another name than these."""
    names = frozenset(names_not_to_save)
    return lambda prim, *avals, **params: prim is name_p and params["name"] not in names


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Keep everything, but for what `checkpoint_name` gave one of these names."""
    names = frozenset(names_not_to_save)
    return lambda prim, *avals, **params: not (prim is name_p and params["name"] in names)


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep what has one of the first names, and in other memory (see `Offloadable`) what has one of the others."""
    saved, offloaded = frozenset(names_which_can_be_saved), frozenset(names_which_can_be_offloaded)
    if both := saved & offloaded:
        raise ValueError(f"save_and_offload_only_these_names: {sorted(both)} are in both lists")

    def policy(prim: Primitive, *avals: Any, **params: Any) -> Any:
        if prim is name_p and params["name"] in saved:
            return Saveable()
        if prim is name_p and params["name"] in offloaded:
            return Offloadable(offload_src, offload_dst)
        return Recompute()

    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keep what either policy keeps."""
    return lambda prim, *avals, **params: policy_1(prim, *avals, **params) or policy_2(prim, *avals, **params)


checkpoint_policies = types.SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=save_and_offload_only_these_names,
)


# ---- What is kept ------------------------------------------------------------------------------------------


@api_boundary
def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[ShapedArray, str]]:
    """What the gradient of ``f(*args, **kwargs)`` keeps between its forward and its backward pass.

    Returns
    -------
    Pairs of type and description, without the constants of rank 0

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> [str(aval) for aval, _ in saved_residuals(lambda x: xnp.sin(xnp.exp(x)), xnp.ones(3))]
    ['f64[3]']
    """
    check_callable("saved_residuals", f)
    leaves, in_tree = flat_arrays(f"saved_residuals of {name_of(f)}", (args, kwargs), leaf_name)

    def flat(*xs: Any) -> list[Any]:
        new_args, new_kwargs = in_tree.unflatten(xs)
        return flat_arrays(f"result of {name_of(f)}", f(*new_args, **new_kwargs))[0]

    avals = [get_aval(x) for x in leaves]
    closed, consts = trace_to_closed(flat, avals, name_of(f))
    closed = with_consts(closed, consts)
    nonzero = tuple(a.inexact for a in avals)
    split = choose_residuals(closed, nonzero, None, (True,) * len(avals))
    forward = split.forward.jaxpr
    found = [*forward.invars, *forward.outvars]
    inputs = {id(v): i for i, v in enumerate(forward.invars)}
    producers = {id(v): eqn for eqn in forward.eqns for v in eqn.outvars}
    out = []
    for var in [found[i] for i in split.residuals]:
        if type(var) is Literal:
            continue
        if id(var) in inputs:
            out.append((var.aval, f"from {leaf_name(in_tree, inputs[id(var)])}"))
        elif (eqn := producers.get(id(var))) is None:
            out.append((var.aval, "a constant"))
        elif eqn.primitive is name_p:
            out.append((var.aval, f"named '{eqn.params['name']}' from {describe(eqn.source)}"))
        else:
            out.append((var.aval, f"output of {eqn.primitive} from {describe(eqn.source)}"))
    return out


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print `saved_residuals`, a line for each.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> print_saved_residuals(lambda x: x * 2 * x, 3.0)
    f64[] from argument 0
    """
    for aval, what in saved_residuals(f, *args, **kwargs):
        print(aval.str_short(), what)
