"""`custom_vmap`, `sequential_vmap`: functions that say themselves what `vmap` makes of them.

May import: `api.arguments`, `lax.custom_calls`, `lax.control_flow`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xform.api.arguments import check_callable, flat_arrays, name_of, signature_of
from xform.core import tree
from xform.core.errors import api_boundary
from xform.lax.control_flow import map as lax_map
from xform.lax.custom_calls import custom_vmap_call_p


class custom_vmap:
    """A function with a rule for `vmap`.

    The rule is used wherever the function is mapped; derivatives go through the function itself.

    Parameters
    ----------
    fun : function of pytrees of arrays

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> from xform.custom_batching import custom_vmap
    >>> @custom_vmap
    ... def total(x):
    ...     return x.sum()
    >>> @total.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return x.sum(axis=1), True
    >>> xform.vmap(total)(xnp.ones((2, 3))).tolist()
    [3.0, 3.0]
    """

    def __init__(self, fun: Callable[..., Any]):
        check_callable("custom_vmap", fun)
        functools.update_wrapper(self, fun, updated=())
        self.fun, self.name = fun, name_of(fun)
        self._signature = signature_of(fun)
        self.vmap_rule: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"<custom_vmap function {self.name}>"

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Give the rule, and return it.

        Parameters
        ----------
        vmap_rule : ``(axis_size, in_batched, *args) -> (result, out_batched)``
            `in_batched` is a list with, for each argument, a pytree of its structure that says which arrays are
            mapped; these have the mapped axis first. `out_batched` says the same of the result.
        """
        check_callable("def_vmap", vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self.vmap_rule is None:
            raise AttributeError(f"custom_vmap function {self.name} has no rule yet: give it one with def_vmap")
        if kwargs:
            if self._signature is None:
                raise TypeError(f"custom_vmap function {self.name}: call it with positional arguments")
            bound = self._signature.bind(*args, **kwargs)
            if bound.kwargs:
                raise TypeError(
                    f"custom_vmap function {self.name}: its rule sees positional arguments only, but "
                    f"{', '.join(bound.kwargs)} can only be given by keyword"
                )
            args = bound.args
        leaves, in_tree = flat_arrays(f"custom_vmap function {self.name}", args)
        out_trees: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            outs, out_tree = flat_arrays(f"result of {self.name}", self.fun(*in_tree.unflatten(xs)))
            out_trees[:] = [out_tree]
            return outs

        def rule(size: int, mapped: Sequence[bool], xs: Sequence[Any]) -> tuple[list[Any], list[bool]]:
            pair = self.vmap_rule(size, list(in_tree.unflatten(mapped)), *in_tree.unflatten(xs))  # type: ignore[misc]
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise TypeError(
                    f"custom_vmap function {self.name}: its rule must return a pair (result, out_batched), got {pair!r}"
                )
            outs, out_tree = flat_arrays(f"result of the rule of {self.name}", pair[0])
            flags, flag_tree = tree.flatten(pair[1])
            if flag_tree != out_tree:
                raise TypeError(
                    f"custom_vmap function {self.name}: its rule returned a result and an out_batched that differ in "
                    f"structure:\n  {out_tree}\nand\n  {flag_tree}"
                )
            out_trees[:] = [out_tree]
            return outs, [bool(f) for f in flags]

        outs = custom_vmap_call_p.bind(*leaves, call=flat, rule=rule, name=self.name)
        return out_trees[0].unflatten(outs)


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function that `vmap` applies to one element after the other, by `lax.map`.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> from xform.custom_batching import sequential_vmap
    >>> xform.vmap(sequential_vmap(lambda x, y: x + y), (0, None))(xnp.arange(3.0), 1.0).tolist()
    [1.0, 2.0, 3.0]
    """
    mapped = custom_vmap(f)

    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> Any:
        leaves, treedef = tree.flatten(args)
        flags = tree.leaves(tuple(in_batched))

        def one(xs: Sequence[Any]) -> Any:
            given = iter(xs)
            return f(*treedef.unflatten([next(given) if m else x for m, x in zip(flags, leaves, strict=True)]))

        out = lax_map(one, [x for m, x in zip(flags, leaves, strict=True) if m])
        return out, tree.map(lambda _: True, out)

    mapped.def_vmap(rule)
    return mapped
