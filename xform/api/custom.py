"""`custom_jvp`, `custom_vjp`, `custom_gradient`: functions with derivatives by their authors; `closure_convert`.

May import: `api.arguments`, `api.derivatives`, `lax.custom_calls`, the interpreters.
"""

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.api.arguments import canonical_argnums, check_callable, flat_arrays, name_of, signature_of
from xform.core import dtypes, tree
from xform.core.array import Array, get_aval, own
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.jaxpr import eval_jaxpr
from xform.core.trace import Tracer
from xform.core.tree import map as tree_map
from xform.interpreters.staging import trace_to_closed
from xform.interpreters.tangents import Zero, add_tangents, instantiate, is_zero, zero_of
from xform.lax.conversion import convert
from xform.lax.custom_calls import Forward, custom_jvp_call_p, custom_linear_call_p, custom_vjp_call_p


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, in rules that ask for ``symbolic_zeros=True``.

    It has `shape`, `dtype` and `ndim`; `instantiate()` makes an array of it.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.aval.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements; float0 where the primal value is of an integer type."""
        return self.aval.dtype

    def instantiate(self) -> Any:
        """An array of zeros."""
        return instantiate(Zero(self.aval))

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval})"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent of a value, of dtype float0 for integers; symbolic, if asked for.

    Examples
    --------
    >>> zero_from_primal(3.0).item()
    0.0
    """
    zero = zero_of(val)
    return SymbolicZero(zero.aval) if symbolic_zeros else instantiate(zero)


class CustomVJPPrimal:
    """An argument as the forward function of `custom_vjp` sees it with ``symbolic_zeros=True``.

    Attributes
    ----------
    value : array
    perturbed : bool
        Whether it is differentiated.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values of a pytree of `CustomVJPPrimal`."""
    return tree_map(lambda leaf: leaf.value if isinstance(leaf, CustomVJPPrimal) else leaf, tree)


class _Call(NamedTuple):
    """A call of a function with custom rules, taken apart."""

    leaves: list[Any]
    in_tree: Any
    flat: Callable[..., list[Any]]  # the function, of and to a list of arrays
    static: tuple  # arguments that are not differentiated
    merge: Callable[[Sequence[Any]], list[Any]]  # positional arguments, with these static ones, from the others
    out_trees: list[Any]  # structure of the result, once it is known


class _Custom:
    """What `custom_jvp` and `custom_vjp` share."""

    kind = ""

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ):
        check_callable(self.kind, fun)
        functools.update_wrapper(self, fun)  # type: ignore[arg-type]
        self.fun, self.name = fun, name_of(fun)
        self._signature = signature_of(fun)
        self.nondiff_argnums = self._static_numbers(nondiff_argnums, nondiff_argnames)

    def _static_numbers(self, nums: Any, names: Any) -> tuple[int, ...]:
        numbers = (nums,) if isinstance(nums, int) else tuple(nums)
        names = (names,) if isinstance(names, str) else tuple(names)
        parameters = list(self._signature.parameters) if self._signature is not None else []
        for name in names:
            if name not in parameters:
                raise ValueError(f"{self.kind} of {self.name}: nondiff_argnames names no parameter {name!r}")
        return tuple(sorted({*numbers, *[parameters.index(n) for n in names]}))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"<{self.kind} function {self.name}>"

    def _positional(self, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """The arguments by position, with defaults."""
        if self._signature is None:
            if kwargs:
                raise TypeError(f"{self.kind} function {self.name} has no signature: call it with positional arguments")
            return args
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self.kind} function {self.name}: derivative rules see positional arguments only, but "
                f"{', '.join(bound.kwargs)} can only be given by keyword"
            )
        return bound.args

    def _take_apart(self, args: tuple, kwargs: dict[str, Any]) -> _Call:
        args = self._positional(args, kwargs)
        numbers = canonical_argnums(f"nondiff_argnums of {self.name}", self.nondiff_argnums, len(args))
        static = tuple(args[i] for i in numbers)
        rest = tuple(a for i, a in enumerate(args) if i not in numbers)
        leaves, in_tree = flat_arrays(f"{self.kind} function {self.name}", rest)
        out_trees: list[Any] = []

        def merge(values: Sequence[Any]) -> list[Any]:
            fixed, others = iter(static), iter(values)
            return [next(fixed) if i in numbers else next(others) for i in range(len(args))]

        def flat(*xs: Any) -> list[Any]:
            outs, out_tree = flat_arrays(f"result of {self.name}", self.fun(*merge(in_tree.unflatten(xs))))
            out_trees[:] = [out_tree]
            return outs

        return _Call(leaves, in_tree, flat, static, merge, out_trees)

    def _error(self, rule: str, message: str) -> TypeError:
        return TypeError(f"{self.kind} function {self.name}: its {rule} {message}")


def _symbolic(t: Any, symbolic: bool) -> Any:
    """A tangent as a user's rule sees it."""
    if is_zero(t):
        return SymbolicZero(t.aval) if symbolic else instantiate(t)
    return t


def _fit(t: Any, want: ShapedArray, wrong: Callable[[str], Exception]) -> Any:
    """A tangent or cotangent from a user's rule, checked against the type that it must have."""
    if t is None or isinstance(t, SymbolicZero) or want.dtype == dtypes.float0:
        return Zero(want)
    if isinstance(t, np.ndarray) and t.dtype == dtypes.float0:
        return Zero(want)
    try:
        have = get_aval(t)
    except TypeError:
        raise wrong(f"an array of {want.str_short()} is needed, got the structure {tree.structure(t)}") from None
    if have.shape != want.shape or (have.dtype != want.dtype and not have.weak_type):
        raise wrong(f"{want.str_short()} is needed, got {have.str_short()}")
    return convert(t, want.dtype)


class custom_jvp(_Custom):
    """A function whose derivative is a rule for forward mode; reverse mode is its transpose.

    Decorate the function, then give the rule with `defjvp` or `defjvps`. It holds under every transformation, to any
    order; the rule itself is differentiated for the second.

    Parameters
    ----------
    fun : function of pytrees of arrays
    nondiff_argnums : int or sequence of int
        Positional arguments that are not differentiated, of any type. The rule gets them first.
    nondiff_argnames : str or sequence of str
        The same, by name.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> @xform.custom_jvp
    ... def log1pexp(x):
    ...     return xnp.log1p(xnp.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t * (1 - 1 / (1 + xnp.exp(x)))
    >>> float(xform.grad(log1pexp)(1000.0))
    1.0
    """

    kind = "custom_jvp"
    jvp: Callable[..., Any] | None = None
    symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Give the rule, and return it.

        Parameters
        ----------
        jvp : ``(*nondiff, primals, tangents) -> (result, tangent of the result)``
            `primals` and `tangents` are tuples with an entry for each argument.
        symbolic_zeros : bool
            Pass tangents that are known to be zero as `SymbolicZero`, rather than as arrays.
        """
        check_callable("defjvp", jvp)
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give a rule per argument: ``jvps[i](t, result, *primals)`` is its part of the tangent; None: nothing.

        Examples
        --------
        >>> import xform
        >>> @xform.custom_jvp
        ... def product(x, y):
        ...     return x * y
        >>> product.defjvps(lambda t, ans, x, y: t * y, lambda t, ans, x, y: x * t)
        >>> [float(g) for g in xform.grad(product, (0, 1))(3.0, 4.0)]
        [4.0, 3.0]
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps: a function with nondiff_argnums needs a rule by defjvp")

        def jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise self._error("defjvps", f"gave {len(jvps)} rules for {len(primals)} arguments")
            out = self(*primals)
            total: Any = tree.map(zero_of, out)
            for rule, t in zip(jvps, tangents, strict=True):
                known_zero = all(isinstance(leaf, SymbolicZero) for leaf in tree.leaves(t))
                if rule is not None and not known_zero:
                    term = rule(tree.map(_array_of, t), out, *primals)
                    total = tree.map(add_tangents, total, term)
            return out, tree.map(lambda t: SymbolicZero(t.aval) if is_zero(t) else t, total)

        self.defjvp(jvp, symbolic_zeros=True)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self.jvp is None:
            raise AttributeError(f"custom_jvp function {self.name} has no rule yet: give it one with defjvp")
        call = self._take_apart(args, kwargs)
        rule = functools.partial(self._rule, self.jvp, call)
        outs = custom_jvp_call_p.bind(*call.leaves, call=call.flat, jvp=rule, name=self.name)
        return call.out_trees[0].unflatten(outs)

    def _rule(self, jvp: Any, call: _Call, primals: Sequence[Any], ts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        tangents = [_symbolic(t, self.symbolic_zeros) for t in ts]
        pair = jvp(*call.static, call.in_tree.unflatten(primals), call.in_tree.unflatten(tangents))
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise self._error("jvp rule", f"must return a pair (result, tangent), got {pair!r}")
        outs, out_tree = flat_arrays(f"result of the jvp rule of {self.name}", pair[0])
        found, tangent_tree = tree.flatten(pair[1])
        if tangent_tree != out_tree:
            raise self._error(
                "jvp rule",
                f"returned a result and a tangent that differ in structure:\n  {out_tree}\nand\n  {tangent_tree}",
            )
        call.out_trees[:] = [out_tree]
        wrong = lambda message: self._error("jvp rule", f"returned a tangent of another type: {message}")  # noqa: E731
        return outs, [_fit(t, get_aval(o).to_tangent_aval(), wrong) for t, o in zip(found, outs, strict=True)]


def _array_of(t: Any) -> Any:
    return t.instantiate() if isinstance(t, SymbolicZero) else t


class custom_vjp(_Custom):
    """A function whose derivative is a rule for reverse mode.

    Forward mode and second derivatives work as well, as long as the backward function is linear in the cotangent: its
    transpose is the pushforward.

    Parameters
    ----------
    fun : function of pytrees of arrays
    nondiff_argnums : int or sequence of int
        Positional arguments that are not differentiated, of any type. The forward function gets them in their places,
        the backward function as its first arguments.
    nondiff_argnames : str or sequence of str
        The same, by name.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> @xform.custom_vjp
    ... def f(x, y):
    ...     return xnp.sin(x) * y
    >>> def forward(x, y):
    ...     return f(x, y), (xnp.cos(x), xnp.sin(x), y)
    >>> def backward(residuals, ct):
    ...     cos_x, sin_x, y = residuals
    ...     return ct * cos_x * y, ct * sin_x
    >>> f.defvjp(forward, backward)
    >>> float(xform.grad(f)(0.0, 2.0)), float(xform.jvp(f, (0.0, 2.0), (1.0, 0.0))[1])
    (2.0, 2.0)
    """

    kind = "custom_vjp"
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Give the rule.

        Parameters
        ----------
        fwd : ``(*args) -> (result, residuals)``
            Takes the arguments of the function. The residuals, any pytree of arrays, are kept for `bwd`.
        bwd : ``(*nondiff, residuals, cotangent) -> tuple of cotangents``
            One for each differentiable argument, structured as it is; None stands for zeros.
        symbolic_zeros : bool
            Pass `fwd` its arguments as `CustomVJPPrimal`, which says whether they are differentiated, and `bwd` the
            cotangents that are known to be zero as `SymbolicZero`.
        optimize_remat, generic_batching : bool
            Accepted for JAX's sake; nothing depends on them here.
        """
        check_callable("defvjp", fwd)
        check_callable("defvjp", bwd)
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"custom_vjp function {self.name} has no rule yet: give it one with defvjp")
        call = self._take_apart(args, kwargs)
        in_avals = [get_aval(x).to_tangent_aval() for x in call.leaves]
        outs = custom_vjp_call_p.bind(
            *call.leaves,
            call=call.flat,
            fwd=functools.partial(self._forward, self.fwd, call),
            bwd=functools.partial(self._backward, self.bwd, call, in_avals),
            name=self.name,
        )
        return call.out_trees[0].unflatten(outs)

    def _forward(self, fwd: Any, call: _Call, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        if self.symbolic_zeros:
            primals = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
        pair = fwd(*call.merge(call.in_tree.unflatten(primals)))
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise self._error("fwd", f"must return a pair (result, residuals), got {pair!r}")
        outs, out_tree = flat_arrays(f"result of the fwd of {self.name}", pair[0])
        residuals, structure = flat_arrays(f"residuals of {self.name}", pair[1])
        call.out_trees[:] = [out_tree]
        return Forward(outs, residuals, (structure, out_tree))

    def _backward(
        self, bwd: Any, call: _Call, in_avals: Sequence[ShapedArray], structures: Any, residuals: Any, cts: Any
    ) -> list[Any]:
        structure, out_tree = structures
        kept = structure.unflatten([x if isinstance(x, Array) else own(x) for x in residuals])
        found = bwd(*call.static, kept, out_tree.unflatten([_symbolic(ct, self.symbolic_zeros) for ct in cts]))
        trees = call.in_tree.children()
        if not isinstance(found, tuple | list) or len(found) != len(trees):
            what = f"{len(found)} of them" if isinstance(found, tuple | list) else repr(found)
            raise self._error(
                "bwd", f"must return a tuple of cotangents, one for each of {len(trees)} arguments, got {what}"
            )
        leaves: list[Any] = []
        for i, (ct, treedef) in enumerate(zip(found, trees, strict=True)):
            if ct is None or isinstance(ct, SymbolicZero):
                leaves += [None] * treedef.num_leaves
                continue
            try:
                leaves += treedef.flatten_up_to(ct)
            except ValueError:
                raise self._error(
                    "bwd", f"returned for argument {i} the structure {tree.structure(ct)}, not {treedef}"
                ) from None
        out = []
        for path, ct, want in zip(tree.paths(call.in_tree), leaves, in_avals, strict=True):
            where = f"argument {path[0].idx}{tree.keystr(path[1:])}"
            wrong = lambda message, where=where: self._error("bwd", f"for {where}: {message}")  # noqa: E731
            out.append(_fit(ct, want, wrong))
        return out


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
        return [instantiate(_fit(ct, aval, wrong)) for ct, aval in zip(parts, avals, strict=True)]

    outs = custom_linear_call_p.bind(*residuals, *leaves, call=flat, n_residuals=n, transpose=transpose, name=name)
    return out_trees[0].unflatten(outs)


def custom_gradient(
    fun: Callable[..., Any] | None = None, *, with_logs: bool = False, remat: bool = False, with_accums: Any = None
) -> Any:
    """A function that returns its value together with its pullback, as one with that derivative.

    Parameters
    ----------
    fun : ``(*args) -> (result, pullback)``, where ``pullback(cotangent)`` is a tuple of cotangents of the arguments
        (or a single one, if there is one argument)
    with_logs, remat, with_accums : optional
        Not supported: what the pullback returns besides cotangents, what it gets instead of residuals under
        `checkpoint`, and references that it adds to. NotImplementedError if they are given.

    Examples
    --------
    >>> import xform
    >>> @xform.custom_gradient
    ... def square(x):
    ...     return x * x, lambda ct: (ct * 3 * x,)  # not what one would expect
    >>> float(square(2.0)), float(xform.grad(square)(2.0))
    (4.0, 6.0)
    """
    for name, flag in {"with_logs": with_logs, "remat": remat, "with_accums": with_accums}.items():
        if flag:
            raise NotImplementedError(f"custom_gradient: {name} is not supported; see custom_vjp")
    if fun is None:
        return custom_gradient
    check_callable("custom_gradient", fun)

    @functools.wraps(fun)
    def value(*args: Any, **kwargs: Any) -> Any:
        return _pair(fun(*args, **kwargs))[0]

    def _pair(result: Any) -> Any:
        if not isinstance(result, tuple | list) or len(result) != 2 or not callable(result[1]):
            raise TypeError(
                f"custom_gradient: {name_of(fun)} must return a pair (result, pullback function), got {result!r}"
            )
        return result

    def forward(*args: Any) -> Any:
        result, pullback = _pair(fun(*args))
        cotangent = tree.map(lambda x: instantiate(zero_of(x)), result)
        converted, residuals = _convert(pullback, (cotangent,), everything=True)
        return result, (_Static(converted), residuals, args)

    def backward(kept: Any, cotangent: Any) -> tuple:
        pullback, residuals, args = kept
        found = pullback.value(cotangent, *residuals)
        return (found,) if len(args) == 1 and not isinstance(found, tuple | list) else tuple(found)

    wrapped = custom_vjp(value)
    wrapped.defvjp(forward, backward)
    return wrapped


class _Static:
    """A value as a node without children of a pytree."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


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
    out_trees: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        outs, out_tree = flat_arrays(f"result of {name_of(fun)}", fun(*in_tree.unflatten(xs)))
        out_trees[:] = [out_tree]
        return outs

    closed, consts = trace_to_closed(flat, [get_aval(x) for x in leaves], name_of(fun))
    moved = [everything or (isinstance(c, Tracer) and c.aval.inexact) for c in consts]

    def converted(*args_and_values: Any) -> Any:
        n = len(args_and_values) - sum(moved)
        xs, treedef = flat_arrays(f"converted {name_of(fun)}", args_and_values[:n])
        if treedef != in_tree:
            raise TypeError(f"closure_convert: {name_of(fun)} was converted for arguments {in_tree}, got {treedef}")
        given = iter(args_and_values[n:])
        values = [next(given) if m else c for m, c in zip(moved, consts, strict=True)]
        return out_trees[0].unflatten(eval_jaxpr(closed.jaxpr, closed.consts, *values, *xs))

    return converted, [c for c, m in zip(consts, moved, strict=True) if m]
