"""`custom_gradient`, `linear_call`: functions whose derivatives close over values; `closure_convert`.

May import: `api.arguments`, `api.custom_vjp`, `lax.custom_calls`, the interpreters.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.api.arguments import check_callable, flat_arrays, name_of
from xform.api.custom import fit
from xform.api.custom_vjp import NullAccum, ValAccum, custom_vjp, custom_vjp_primal_tree_values
from xform.core import dtypes, tree
from xform.core.array import get_aval
from xform.core.errors import api_boundary
from xform.core.jaxpr import eval_jaxpr
from xform.core.trace import Tracer
from xform.interpreters.staging import trace_to_closed
from xform.interpreters.tangents import instantiate, zero_of
from xform.lax.custom_calls import custom_linear_call_p


def custom_gradient(
    fun: Callable[..., Any] | None = None, *, with_logs: bool = False, remat: bool = False, with_accums: Any = None
) -> Any:
    """A function that returns its value together with its pullback, as one with that derivative.

    Parameters
    ----------
    fun : ``(*args) -> (result, pullback)``, where ``pullback(cotangent)`` is a tuple of cotangents of the arguments
        (or a single one, if there is one argument)
    with_logs : bool
        The pullback returns a pair of that and a dictionary of named pytrees, or None, which come out of the backward
        pass by ``vjp(...)[1].with_logs``: see `custom_vjp.defvjp_with_logs`.
    remat : bool
        The second thing that `fun` returns is a function ``rem(*args) -> (result, pullback)``. Within `checkpoint` it
        is called in the backward pass, in place of `fun`, and what it closes over is kept from the forward pass: see
        `custom_vjp.defremat`.
    with_accums : ValAccum, or a pytree of it that is a prefix of the tuple of arguments
        The pullback is called as ``pullback(cotangent, *accumulators)``, adds to these, and returns None or logs: see
        `custom_vjp.defvjp_with_accums`. Not together with `remat`.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> @xform.custom_gradient
    ... def square(x):
    ...     return x * x, lambda ct: (ct * 3 * x,)  # not what one would expect
    >>> float(square(2.0)), float(xform.grad(square)(2.0))
    (4.0, 6.0)

    Under `checkpoint` the cosine is kept, rather than computed again:

    >>> @xform.custom_gradient(remat=True)
    ... def sin(x):
    ...     cos_x = xnp.cos(x)
    ...     def rem(x):
    ...         return xnp.sin(x), lambda ct: (ct * cos_x,)
    ...     return xnp.sin(x), rem
    >>> float(xform.grad(xform.checkpoint(sin))(0.0))
    1.0
    """
    if fun is None:
        return functools.partial(custom_gradient, with_logs=with_logs, remat=remat, with_accums=with_accums)
    check_callable("custom_gradient", fun)
    if remat and with_accums is not None:
        raise NotImplementedError("custom_gradient: with_accums can't be combined with remat")

    @functools.wraps(fun)
    def value(*args: Any, **kwargs: Any) -> Any:
        return _pair(fun(*args, **kwargs))[0]

    def _pair(result: Any) -> Any:
        if not isinstance(result, tuple | list) or len(result) != 2 or not callable(result[1]):
            what = "a function (*args) -> (result, pullback)" if remat else "pullback function"
            raise TypeError(f"custom_gradient: {name_of(fun)} must return a pair (result, {what}), got {result!r}")
        return result

    def converted(result: Any, pullback: Callable[..., Any], n_args: int) -> Any:
        """The pullback as its program, what it closed over, and the number of arguments."""
        cotangent = tree.map(lambda x: instantiate(zero_of(x)), result)
        program, closed_over = _convert(pullback, (cotangent,), everything=True)
        return _Static(program, n_args), closed_over

    def forward(*args: Any) -> Any:
        result, pullback = _pair(fun(*args))
        return result, converted(result, pullback, len(args))

    def forward_to_accums(*primals: Any) -> Any:
        args = custom_vjp_primal_tree_values(primals)
        result, pullback = _pair(fun(*args))
        pullback = functools.partial(_with_accums, fun, pullback, primals, with_accums)
        return result, converted(result, pullback, len(args))

    def backward(kept: Any, cotangent: Any) -> Any:
        (pullback, n_args), closed_over = kept[0].values, kept[1]
        found = pullback(cotangent, *closed_over)
        logs = None
        if logging:
            if not isinstance(found, tuple | list) or len(found) != 2:
                raise TypeError(
                    f"custom_gradient with with_logs=True: the pullback of {name_of(fun)} must return a pair "
                    f"(cotangents, logs), got {found!r}"
                )
            found, logs = found
        cts = (found,) if n_args == 1 and not isinstance(found, tuple | list) else tuple(found)
        return (cts, logs) if logging else cts

    logging = with_logs or with_accums is not None
    wrapped = custom_vjp(value)
    if remat:

        def forward_kept(*args: Any) -> Any:
            result, rem = _pair(fun(*args))

            def flat_rem(*args: Any) -> Any:
                result, pullback = _pair(rem(*args))
                return result, converted(result, pullback, len(args))

            program, closed_over = _convert(flat_rem, args, everything=True)
            return result, (_Static(program), closed_over)

        def again(kept: Any, *args: Any) -> Any:
            (program,), closed_over = kept[0].values, kept[1]
            return program(*args, *closed_over)

        (wrapped.defremat_with_logs if logging else wrapped.defremat)(forward_kept, again, backward)
    elif with_accums is not None:
        wrapped.defvjp_with_logs(forward_to_accums, backward, symbolic_zeros=True)
    else:
        (wrapped.defvjp_with_logs if logging else wrapped.defvjp)(forward, backward)
    return wrapped


def _with_accums(fun: Any, pullback: Any, primals: tuple, kinds: Any, cotangent: Any) -> Any:
    """Cotangents and logs of a pullback that is given accumulators."""
    leaves, treedef = tree.flatten(primals)
    for kind in tree.flatten_axes("custom_gradient: with_accums", treedef, kinds):
        if kind is not ValAccum:
            raise TypeError(
                f"custom_gradient of {name_of(fun)}: with_accums must be ValAccum, or a prefix of the arguments "
                f"with it as leaves, got the leaf {kind!r}"
            )
    accums = [(ValAccum if x.perturbed else NullAccum)(get_aval(x.value).to_tangent_aval()) for x in leaves]
    logs = pullback(cotangent, *treedef.unflatten(accums))
    if logs is not None and not isinstance(logs, dict):
        raise TypeError(
            f"custom_gradient with with_accums: the pullback of {name_of(fun)} must return None or a dictionary "
            f"of logs, got {logs!r}"
        )
    return tuple(treedef.unflatten([a.val for a in accums])), logs


class _Static:
    """Values as a node without children of a pytree."""

    def __init__(self, *values: Any):
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.values)


tree.register_pytree_node(_Static, lambda s: ((), s), lambda s, _: s)


@api_boundary
def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """Turn the values that a function closed over, and that may be under differentiation, into arguments.

    Parameters
    ----------
    fun : function of pytrees of arrays
    *example_args : arguments of the shapes and dtypes that it will be called with

    Returns
    -------
    ``(converted, values)``, where ``converted(*args, *values)`` equals ``fun(*args)``

    Examples
    --------
    >>> import xform
    >>> def slope_at_3(a):
    ...     converted, values = xform.closure_convert(lambda x: a * x, 1.0)
    ...     return converted(3.0, *values)
    >>> float(xform.grad(slope_at_3)(2.0))
    3.0
    """
    check_callable("closure_convert", fun)
    return _convert(fun, example_args, everything=False)


def _convert(fun: Callable[..., Any], args: tuple, everything: bool) -> tuple[Callable[..., Any], list[Any]]:
    leaves, in_tree = flat_arrays(f"closure_convert of {name_of(fun)}", args)
    out_tree: Any = None
    empty: list[Any] = []  # for each result its shape, if its dtype is float0, which programs don't know

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree, empty
        outs, out_tree = flat_arrays(f"result of {name_of(fun)}", fun(*in_tree.unflatten(xs)))
        empty = [x.shape if x.dtype == dtypes.float0 else None for x in outs]
        return [x for x, shape in zip(outs, empty, strict=True) if shape is None]

    closed, consts = trace_to_closed(flat, [get_aval(x) for x in leaves], name_of(fun))
    moved = [everything or (isinstance(c, Tracer) and c.aval.inexact) for c in consts]

    def converted(*args_and_values: Any) -> Any:
        n = len(args_and_values) - sum(moved)
        xs, treedef = flat_arrays(f"converted {name_of(fun)}", args_and_values[:n])
        if treedef != in_tree:
            raise TypeError(f"closure_convert: {name_of(fun)} was converted for arguments {in_tree}, got {treedef}")
        given = iter(args_and_values[n:])
        values = [next(given) if m else c for m, c in zip(moved, consts, strict=True)]
        outs = iter(eval_jaxpr(closed.jaxpr, closed.consts, *values, *xs))
        return out_tree.unflatten([next(outs) if e is None else np.zeros(e, dtypes.float0) for e in empty])

    return converted, [c for c, m in zip(consts, moved, strict=True) if m]


@api_boundary
def linear_call(
    fun: Callable[..., Any], fun_transpose: Callable[..., Any], residual_args: Any, linear_args: Any
) -> Any:
    """Call a linear function that has a transpose by its author: ``fun(residual_args, linear_args)``.

    Reverse mode calls `fun_transpose` in place of what it would derive from `fun`, and if that is transposed again,
    `fun`. With respect to the residual arguments derivatives are those of `fun` and `fun_transpose`, as written.

    Parameters
    ----------
    fun : ``(residual_args, linear_args) -> result``
        Linear in its second argument.
    fun_transpose : ``(residual_args, cotangent) -> cotangent of linear_args``
        Takes a cotangent structured as the result, and gives one structured as `linear_args`.
    residual_args, linear_args : pytrees of arrays

    Raises
    ------
    TypeError
        If the result of `fun_transpose` doesn't have structure, shapes and dtypes of `linear_args`.

    Examples
    --------
    >>> import xform
    >>> from xform.custom_derivatives import linear_call
    >>> def halved_backwards(x):
    ...     return linear_call(lambda r, x: x / r, lambda r, ct: ct / r / 2, 4.0, x)
    >>> float(halved_backwards(8.0)), float(xform.grad(halved_backwards)(8.0)), float(
    ...     xform.jvp(halved_backwards, (8.0,), (1.0,))[1])
    (2.0, 0.125, 0.25)
    """
    name = name_of(fun)
    check_callable("linear_call", fun)
    check_callable("linear_call", fun_transpose)
    residuals, residual_tree = flat_arrays("linear_call: residual_args", residual_args)
    leaves, linear_tree = flat_arrays("linear_call: linear_args", linear_args)
    avals = [get_aval(x).to_tangent_aval() for x in leaves]
    n = len(residuals)
    out_trees: list[Any] = []
    if any(a.dtype == dtypes.float0 for a in avals):
        raise TypeError(f"linear_call of {name}: linear functions take float or complex arguments, got {avals}")

    def flat(*xs: Any) -> list[Any]:
        value = fun(residual_tree.unflatten(xs[:n]), linear_tree.unflatten(xs[n:]))
        outs, out_tree = flat_arrays(f"result of {name}", value)
        out_trees[:] = [out_tree]
        return outs

    def transpose(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        def wrong(message: str) -> TypeError:
            return TypeError(
                f"linear_call of {name}: fun_transpose returned something else than linear_args: {message}"
            )

        found = fun_transpose(residual_tree.unflatten(residuals), out_trees[0].unflatten(cts))
        try:
            parts = linear_tree.flatten_up_to(found)
        except ValueError:
            raise wrong(f"the structure {tree.structure(found)}, not {linear_tree}") from None
        return [instantiate(fit(ct, aval, wrong)) for ct, aval in zip(parts, avals, strict=True)]

    outs = custom_linear_call_p.bind(*residuals, *leaves, call=flat, n_residuals=n, transpose=transpose, name=name)
    return out_trees[0].unflatten(outs)
