"""`custom_jvp`: functions with derivatives by their authors, and what these have in common.

May import: `api.arguments`, `lax.custom_calls`, the interpreters.
"""

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xform.api.arguments import canonical_argnums, check_callable, flat_arrays, name_of, signature_of
from xform.core import dtypes, tree
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.interpreters.tangents import Zero, add_tangents, instantiate, is_zero, zero_of
from xform.lax.conversion import convert
from xform.lax.custom_calls import custom_jvp_call_p


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


class Call(NamedTuple):
    """A call of a function with custom rules, taken apart."""

    leaves: list[Any]
    in_tree: Any
    flat: Callable[..., list[Any]]  # the function, of and to a list of arrays
    static: tuple  # arguments that are not differentiated
    merge: Callable[[Sequence[Any]], list[Any]]  # positional arguments, with these static ones, from the others
    out_trees: list[Any]  # structure of the result, once it is known


class Custom:
    """What `custom_jvp` and `custom_vjp` share."""

    kind = ""

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Iterable[str] = (),
    ):
        check_callable(self.kind, fun)
        functools.update_wrapper(self, fun, updated=())  # type: ignore[arg-type]  # not its rules, if it has any
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
        given = bound.kwargs
        bound.apply_defaults()
        if given:
            raise TypeError(
                f"{self.kind} function {self.name}: derivative rules see positional arguments only, but "
                f"{', '.join(given)} can only be given by keyword"
            )
        return bound.args

    def _take_apart(self, args: tuple, kwargs: dict[str, Any]) -> Call:
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

        return Call(leaves, in_tree, flat, static, merge, out_trees)

    def _error(self, rule: str, message: str) -> TypeError:
        return TypeError(f"{self.kind} function {self.name}: its {rule} {message}")


def symbolic(t: Any, wanted: bool) -> Any:
    """A tangent as a user's rule sees it."""
    if is_zero(t):
        return SymbolicZero(t.aval) if wanted else instantiate(t)
    return t


def fit(t: Any, want: ShapedArray, wrong: Callable[[str], Exception]) -> Any:
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


class custom_jvp(Custom):
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

    def _rule(self, jvp: Any, call: Call, primals: Sequence[Any], ts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        tangents = [symbolic(t, self.symbolic_zeros) for t in ts]
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
        return outs, [fit(t, get_aval(o).to_tangent_aval(), wrong) for t, o in zip(found, outs, strict=True)]


def _array_of(t: Any) -> Any:
    return t.instantiate() if isinstance(t, SymbolicZero) else t
