"""`grad`, `value_and_grad`, `jvp`, `vjp`, `linearize`, `linear_transpose`.

Complex numbers follow JAX's convention: the derivative of a real function f of z = x + iy is df/dx - i df/dy, and
`vjp` is the plain transpose of `jvp`, without conjugation.

May import: `api.arguments`, `api.linear_functions`, the interpreters of derivatives.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.api.arguments import canonical_argnums, check_callable, flat_arrays, flatten, name_of
from xform.api.linear_functions import NotSaveable, Pullback, Pushforward, aval_or_float0, check_against
from xform.core import dtypes, tree
from xform.core.array import ArrayImpl, get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary, filtered_traceback
from xform.core.jaxpr import Jaxpr, eval_jaxpr
from xform.interpreters import forward, plans, reverse  # noqa: F401  (plans makes reverse mode fast outside jit)
from xform.interpreters.staging import trace_to_jaxpr
from xform.interpreters.tangents import Zero, instantiate, recast, zero_of
from xform.lax.conversion import convert


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """A function that returns the value of `fun` and its gradient.

    Parameters
    ----------
    fun : function to a real scalar (or, with `has_aux`, a pair of it and anything)
    argnums : int or sequence of int
        Positional arguments to differentiate; a sequence gives a tuple of gradients.
    has_aux : bool
        Whether `fun` returns a pair ``(value, auxiliary data)``; then the result is ``((value, aux), gradient)``.
    holomorphic : bool
        Whether `fun` is complex analytic; inputs and output are then complex.
    allow_int : bool
        Let integer arguments have gradients, which are zeros of dtype float0.

    Examples
    --------
    >>> import xform
    >>> value, slope = xform.value_and_grad(lambda x: x**2)(3.0)
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    return _gradient("value_and_grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """A function that returns the gradient of `fun`.

    The parameters are those of `value_and_grad`; with `has_aux` the result is ``(gradient, aux)``.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> float(xform.grad(xnp.sin)(0.0))
    1.0
    >>> float(xform.grad(xform.grad(lambda x: x**3))(2.0))
    12.0
    """
    return _gradient("grad", fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)


def _gradient(
    name: str, fun: Any, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool, reduce_axes: Any
) -> Callable[..., Any]:
    """What `grad` and `value_and_grad` return."""
    check_callable(name, fun)
    if reduce_axes:
        raise NotImplementedError(f"{name}: reduce_axes is not supported")
    with_value = name == "value_and_grad"

    @functools.wraps(fun)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:  # what `api_boundary` does, without another call
            value, aux, grads = _value_and_grad(fun, args, kwargs, argnums, has_aux, holomorphic, allow_int)
        except Exception as error:
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise
        if with_value:
            return ((value, aux), grads) if has_aux else (value, grads)
        return (grads, aux) if has_aux else grads

    return wrapper


def _value_and_grad(
    fun: Any, args: tuple, kwargs: dict, argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool
) -> tuple[Any, Any, Any]:
    name = "grad"
    numbers: tuple[int, ...]
    single = type(argnums) is int
    if single and 0 <= argnums < len(args):
        numbers, chosen = (argnums,), args[argnums]
    else:
        numbers = canonical_argnums(f"{name} of {name_of(fun)}", argnums, len(args))
        single = isinstance(argnums, int)
        chosen = args[numbers[0]] if single else tuple([args[i] for i in numbers])
    leaves, treedef = flat_arrays(name, chosen)
    differentiate = [get_aval(x).inexact for x in leaves]
    if holomorphic or not all(differentiate):
        _check_inputs(name, [get_aval(x) for x in leaves], holomorphic, allow_int)
    out_tree = aux_tree = tree.LEAF

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree, aux_tree
        new = xs[0] if treedef is tree.LEAF else treedef.unflatten(xs)
        full_args = list(args)
        for i, x in zip(numbers, (new,) if single else new):
            full_args[i] = x
        out = fun(*full_args, **kwargs)
        if has_aux:
            out, aux = _split_aux(name, out)
            extra, aux_tree = tree.flatten(aux)
        outs, out_tree = flatten(out)
        return [*outs, *extra] if has_aux else outs

    found = reverse.linearize(flat, leaves, differentiate)
    outs = found.outs
    value = _scalar_output(fun, outs, out_tree, holomorphic)
    if found.nonzero_out[0]:
        cts = [_one(get_aval(value).dtype)]
        if has_aux:
            cts += [zero_of(x) for x, nonzero in zip(outs[1:], found.nonzero_out[1:], strict=True) if nonzero]
        grads = found.pull_back(cts)
        if len(grads) < len(leaves):
            rest = iter(grads)
            grads = [next(rest) if d else zero_of(x) for d, x in zip(differentiate, leaves, strict=True)]
    else:
        grads = [zero_of(x) for x in leaves]
    aux = aux_tree.unflatten(outs[1:]) if has_aux else None
    grads = [instantiate(g) for g in grads]
    return value, aux, grads[0] if treedef is tree.LEAF else treedef.unflatten(grads)


@functools.cache
def _one(dtype: np.dtype) -> Any:
    return np.ones((), dtype)[()]


def _split_aux(name: str, out: Any) -> tuple[Any, Any]:
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise TypeError(f"{name} with has_aux=True: the function must return a pair (value, aux), got {out!r}")
    return out[0], out[1]


def _check_inputs(name: str, avals: Sequence[ShapedArray], holomorphic: bool, allow_int: bool) -> None:
    for aval in avals:
        if holomorphic:
            if not dtypes.issubdtype(aval.dtype, np.complexfloating):
                raise TypeError(f"{name} with holomorphic=True needs complex inputs, got {aval.str_short()}")
        elif not aval.inexact and not allow_int:
            raise TypeError(
                f"{name} needs inputs of float or complex dtype to differentiate, got {aval.str_short()}; "
                "convert it, choose other argnums, or say allow_int=True"
            )


def _scalar_output(fun: Any, outs: Sequence[Any], out_tree: Any, holomorphic: bool) -> Any:
    """The first of `outs`, if it is all there is in `out_tree` and may be differentiated."""
    if out_tree is not tree.LEAF and out_tree != tree.LEAF:
        raise TypeError(
            f"grad needs a function that returns one scalar, but {name_of(fun)} returned the structure {out_tree}"
        )
    aval = get_aval(outs[0])
    kind = dtypes.kinds.get(aval.dtype)
    if not aval.shape and kind == ("c" if holomorphic else "f"):
        return outs[0]
    name = name_of(fun)
    if aval.shape:
        raise TypeError(
            f"grad needs a function that returns a scalar, but {name} returned {aval.str_short()}; "
            "use vjp, jacrev or jacfwd, or sum the result"
        )
    if holomorphic:
        raise TypeError(f"grad with holomorphic=True needs a complex result, but {name} returned {aval.str_short()}")
    hint = "; if it is analytic, say holomorphic=True" if kind == "c" else ""
    raise TypeError(f"grad needs a function to a real float, but {name} returned {aval.str_short()}{hint}")


@api_boundary
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """Value and directional derivative of `fun`: forward mode.

    Parameters
    ----------
    fun : function of pytrees of arrays
    primals, tangents : tuple or list
        Arguments, and a direction of the same structure, shapes and dtypes (float0 for integers).

    Returns
    -------
    ``(out, tangent out)``, with `has_aux` ``(out, tangent out, aux)``

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> value, slope = xform.jvp(xnp.sin, (0.0,), (2.0,))
    >>> float(slope)
    2.0
    """
    check_callable("jvp", fun)
    if not isinstance(primals, tuple | list) or not isinstance(tangents, tuple | list):
        raise TypeError(
            "jvp: primals and tangents must be tuples or lists, one entry per argument, got "
            f"{type(primals).__name__} and {type(tangents).__name__}"
        )
    leaves, treedef = flat_arrays("jvp", tuple(primals))
    ts, t_treedef = flat_arrays("jvp", tuple(tangents))
    if treedef != t_treedef:
        raise TypeError(f"jvp: primals and tangents must have one structure, got {treedef} and {t_treedef}")
    ts = [_check_tangent("jvp", x, t) for x, t in zip(leaves, ts, strict=True)]
    trees: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        out, aux = fun(*treedef.unflatten(xs)), None
        if has_aux:
            out, aux = _split_aux("jvp", out)
        outs, out_tree = tree.flatten(out)
        extra, aux_tree = tree.flatten(aux)
        trees[:] = [out_tree, aux_tree, len(outs)]
        return [*outs, *extra]

    outs, tangents_out = forward.jvp(flat, leaves, ts)
    out_tree, aux_tree, n = trees
    out = out_tree.unflatten(outs[:n])
    tangent_out = out_tree.unflatten([instantiate(t) for t in tangents_out[:n]])
    return (out, tangent_out, aux_tree.unflatten(outs[n:])) if has_aux else (out, tangent_out)


def _check_tangent(name: str, x: Any, t: Any) -> Any:
    want, have = get_aval(x).to_tangent_aval(), aval_or_float0(t)
    if want.dtype == dtypes.float0:
        if have.dtype != dtypes.float0:
            raise TypeError(
                f"{name}: the tangent of an input of {get_aval(x).str_short()} must be of dtype float0 "
                f"(np.zeros(shape, xform.dtypes.float0)), got {have.str_short()}"
            )
        return Zero(want)
    if want.shape != have.shape or want.dtype != have.dtype:
        if have.weak_type and want.shape == have.shape:
            return convert(t, want.dtype)
        raise TypeError(
            f"{name}: an input of {get_aval(x).str_short()} needs a tangent of {want.str_short()}, "
            f"got {have.str_short()}"
        )
    return convert(recast(t), want.dtype)


def _flags(what: str, treedef: Any, flags: Any) -> list[bool]:
    """For each leaf a bool: `flags` is one for all, or has one for each child, whatever the kind of container."""
    if isinstance(flags, bool | np.bool_):
        return [bool(flags)] * treedef.num_leaves
    children = treedef.children()
    given = () if tree.all_leaves([flags]) else tree.flatten_one_level(flags)[0]
    if not children or len(given) != len(children):
        raise ValueError(
            f"{what} must be a bool, or a tuple of them for each argument, or within it for each part of that; got "
            f"{flags!r} for {treedef}"
        )
    return [f for child, part in zip(children, given, strict=True) for f in _flags(what, child, part)]


def _identity(x: Any) -> int:
    """The same for one array and for another that shares its memory as a whole."""
    host = x._host if type(x) is ArrayImpl else None
    return id(x if host is None else host)


def _linearized(
    name: str, fun: Any, primals: tuple, has_aux: bool, in_nzs: Any, saveable: Any = True
) -> tuple[Any, Any, Jaxpr, list[Any], tuple]:
    check_callable(name, fun)
    leaves, treedef = flat_arrays(name, primals)
    wanted = _flags(f"{name}: in_nzs", treedef, True if in_nzs is None else in_nzs)
    trees: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        out, aux = fun(*treedef.unflatten(xs)), None
        if has_aux:
            out, aux = _split_aux(name, out)
        outs, out_tree = tree.flatten(out)
        extra, aux_tree = tree.flatten(aux)
        trees[:] = [out_tree, aux_tree, len(outs)]
        return [*outs, *extra]

    differentiate = [get_aval(x).inexact and bool(w) for x, w in zip(leaves, wanted, strict=True)]
    found = reverse.linearize(flat, leaves, differentiate)
    out_tree, aux_tree, n = trees
    nonzero_out = found.nonzero_out[:n]
    jaxpr = Jaxpr(
        found.jaxpr.constvars,
        found.jaxpr.invars,
        found.jaxpr.outvars[: sum(nonzero_out)],
        found.jaxpr.eqns,
        name_of(fun),
    )
    jaxpr.is_tape = True
    in_avals = tuple(get_aval(x).to_tangent_aval() for x in leaves)
    out_avals = tuple(get_aval(x).to_tangent_aval() for x in found.outs[:n])
    consts, arguments = found.consts, None
    if saveable is not True:
        keep = _flags(f"{name}: saveable_args", treedef, saveable)
        # Operations that have a plan keep their residuals to themselves: here all are to be constants of the program.
        jaxpr, consts = trace_to_jaxpr(lambda *ts: eval_jaxpr(jaxpr, found.consts, *ts), jaxpr.in_avals, jaxpr.name)
        where = {_identity(x): i for i, x in reversed(list(enumerate(leaves)))}
        arguments = tuple((at, where[key]) for at, c in enumerate(consts) if (key := _identity(c)) in where)
        for at, i in arguments:
            consts[at] = consts[at] if keep[i] else NotSaveable()
    info = (treedef, in_avals, tuple(differentiate), out_tree, out_avals, tuple(nonzero_out), arguments)
    return out_tree.unflatten(found.outs[:n]), aux_tree.unflatten(found.outs[n:]), jaxpr, consts, info


@api_boundary
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any:
    """Value of `fun` and its pullback, the function from cotangents of the result to cotangents of the arguments.

    The pullback is a pytree whose leaves are the residuals, so that it may be returned from `jit`.

    Parameters
    ----------
    fun : function of pytrees of arrays
    *primals : its arguments
    has_aux : bool
        Whether `fun` returns a pair of its result and auxiliary data.
    in_nzs : tuple of bools, or of pytrees of them, optional
        Which arguments are differentiated, by default all; the cotangents of the others are zero.
    saveable_args : bool, or tuple of bools, or of pytrees of them
        Which arguments' values may be kept for the backward pass. The pullback comes without those of the others, such
        as weights that are there anyway and are not to leave `jit` with it; they have to be put back, by assigning to
        its attribute `args_res`, before it is called. (Values of rank 0 are part of the program outside `jit`.)

    Returns
    -------
    ``(out, pullback)``, with `has_aux` ``(out, pullback, aux)``. The pullback returns a tuple, one entry per argument.

    Examples
    --------
    >>> import xform
    >>> out, pullback = xform.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> [float(ct) for ct in pullback(1.0)]
    [4.0, 3.0]

    A pullback without the values of the second argument:

    >>> import xform.numpy as xnp
    >>> weights = xnp.array([2.0, 3.0])
    >>> out, pullback = xform.jit(lambda x, w: xform.vjp(xnp.dot, x, w, saveable_args=(True, False)))(weights, weights)
    >>> pullback.args_res
    [Array([2., 3.], dtype=float64), NotSaveable()]
    >>> pullback.args_res[1] = weights
    >>> pullback(1.0)[0].tolist()
    [2.0, 3.0]
    """
    if reduce_axes:
        raise NotImplementedError("vjp: reduce_axes is not supported")
    out, aux, jaxpr, consts, info = _linearized("vjp", fun, primals, has_aux, in_nzs, saveable_args)
    pullback = Pullback(jaxpr, consts, info)
    return (out, pullback, aux) if has_aux else (out, pullback)


@api_boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: Any = None) -> Any:
    """Value of `fun` and its linear approximation there, a function of tangents.

    Unlike `jvp` it computes the nonlinear part once, for any number of tangents. `in_nzs`, a tuple of bools or of
    pytrees of them, tells which arguments have tangents that may be other than zero, by default all.

    Examples
    --------
    >>> import xform
    >>> out, push = xform.linearize(lambda x: x**2, 3.0)
    >>> float(push(1.0)), float(push(0.5))
    (6.0, 3.0)
    """
    out, aux, jaxpr, consts, info = _linearized("linearize", fun, primals, has_aux, in_nzs)
    push = Pushforward(jaxpr, consts, info)
    return (out, push, aux) if has_aux else (out, push)


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()) -> Callable[..., Any]:
    """The transpose of a linear function.

    Parameters
    ----------
    fun : linear function
    *primals : arrays, or anything with shape and dtype
        Examples of its arguments; their values don't matter.

    Raises
    ------
    TypeError
        If the derivative of `fun` depends on its arguments. (A constant term is not noticed.)

    Examples
    --------
    >>> import xform
    >>> transposed = xform.linear_transpose(lambda x: 3 * x, 1.0)
    >>> float(transposed(2.0)[0])
    6.0
    """
    check_callable("linear_transpose", fun)
    leaves, in_tree = tree.flatten(primals)
    in_avals = [ShapedArray(x.shape, x.dtype) if hasattr(x, "dtype") else get_aval(x).strong for x in leaves]
    if any(not dtypes.issubdtype(a.dtype, np.inexact) for a in in_avals):
        raise TypeError(f"linear_transpose: linear functions take float or complex arguments, got {in_avals}")
    trees: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        outs, out_tree = tree.flatten(fun(*in_tree.unflatten(xs)))
        trees[:] = [out_tree]
        return outs

    # A linear function is its own linearization: the residuals don't depend on where.
    linearized: Any = None

    def residuals(*xs: Any) -> list[Any]:
        nonlocal linearized
        linearized = reverse.linearize(flat, xs, [True] * len(xs))
        return linearized.consts

    program, outer = trace_to_jaxpr(residuals, in_avals, name_of(fun))
    used = {id(v) for eqn in program.eqns for v in eqn.invars} | {id(v) for v in program.outvars}
    if any(id(v) in used for v in program.invars):
        raise TypeError(f"linear_transpose: {name_of(fun)} is not linear: its derivative depends on its arguments")
    consts = eval_jaxpr(program, outer, *[instantiate(Zero(a)) for a in in_avals])
    nonzero_out, jaxpr = linearized.nonzero_out, linearized.jaxpr
    out_tree, out_avals = trees[0], [get_aval(x).to_tangent_aval() for x in linearized.outs]

    @api_boundary
    def transposed(cotangent: Any) -> tuple[Any, ...]:
        cts, treedef = flat_arrays("linear_transpose", cotangent)
        if treedef != out_tree:
            raise TypeError(f"linear_transpose: the cotangent's structure must be {out_tree}, got {treedef}")
        cts = [check_against("linear_transpose", "cotangent", ct, a) for ct, a in zip(cts, out_avals, strict=True)]
        used = [ct for ct, nz in zip(cts, nonzero_out, strict=True) if nz]
        cotangents: Any = in_tree.unflatten([instantiate(ct) for ct in reverse.backward_pass(jaxpr, consts, used)])
        return cotangents

    return transposed
