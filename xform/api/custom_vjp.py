"""`custom_vjp`: functions whose rule for reverse mode is by their authors.

May import: `api.arguments`, `api.custom`, `lax.checkpoint`, `lax.custom_calls`, the interpreters.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xform.api.arguments import check_callable, flat_arrays
from xform.api.custom import Call, Custom, SymbolicZero, fit, symbolic
from xform.core import tree
from xform.core.array import Array, get_aval, own
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.tree import map as tree_map
from xform.interpreters.tangents import Zero, add_tangents, instantiate
from xform.lax.checkpoint import alternative, saved
from xform.lax.custom_calls import Backward, Forward, Rule, custom_vjp_call_p


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


class ValAccum:
    """Adds up the cotangents of one array, in backward functions that are given accumulators.

    Attributes
    ----------
    aval : type of the cotangents
    val : their sum; None as long as there are none
    """

    __slots__ = ("aval", "val")

    def __init__(self, aval: Any, val: Any = None):
        self.aval, self.val = aval, val

    def accum(self, ct: Any) -> None:
        """Add a cotangent; None and `SymbolicZero` add nothing."""
        wrong = lambda message: ValueError(f"{type(self).__name__}.accum: a cotangent of another type: {message}")  # noqa: E731
        found = fit(ct, self.aval, wrong)
        self.val = found if self.val is None else add_tangents(self.val, found)

    def freeze(self) -> Any:
        """The sum, an array."""
        return instantiate(Zero(self.aval) if self.val is None else self.val)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aval.str_short()})"


class NullAccum(ValAccum):
    """In place of a `ValAccum` for an array whose cotangent isn't wanted: what is added to it is dropped."""

    __slots__ = ()

    def accum(self, ct: Any) -> None:
        """Drop a cotangent."""


class _Definition(NamedTuple):
    """How a user gave a rule."""

    fwd: Callable[..., Any]
    bwd: Callable[..., Any]
    symbolic_zeros: bool = False
    logs: bool = False  # whether bwd returns logs beside cotangents
    accumulates: bool = False  # whether bwd is given accumulators, and returns nothing but logs


class custom_vjp(Custom):
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
    _rule: _Definition | None = None
    _remat: _Definition | None = None  # under `checkpoint`

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
        self._define("defvjp", _Definition(fwd, bwd, symbolic_zeros))

    def defvjp_with_logs(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Give the rule, whose backward function also logs.

        As `defvjp`, but `bwd` returns a pair of cotangents and logs, a dictionary of named pytrees of arrays, or None.
        They are had from the pullback that `vjp` returns: ``pullback.with_logs(cotangent)`` is ``(cotangents, logs)``.

        Examples
        --------
        >>> import xform
        >>> f = xform.custom_vjp(lambda x: x)
        >>> f.defvjp_with_logs(lambda x: (x, None), lambda _, ct: ((ct,), {"ct": ct}))
        >>> cts, logs = xform.vjp(lambda x: 3 * f(2 * x), 1.0)[1].with_logs(1.0)
        >>> float(cts[0]), float(logs["ct"])
        (6.0, 3.0)
        """
        self._define("defvjp_with_logs", _Definition(fwd, bwd, symbolic_zeros, logs=True))

    def defvjp_with_accums(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Give the rule, whose backward function adds to accumulators.

        As `defvjp`, but `bwd` is called as ``bwd(*nondiff, residuals, cotangent, *accumulators)``, with an accumulator
        for each array among the arguments, in their structure, and returns None or logs (see `defvjp_with_logs`). They
        are `ValAccum`s, or `NullAccum`s for what is not differentiated.

        Examples
        --------
        >>> import xform
        >>> f = xform.custom_vjp(lambda x, y: x * y)
        >>> def backward(residuals, ct, x_bar, y_bar):
        ...     x, y = residuals
        ...     x_bar.accum(ct * y)
        ...     y_bar.accum(ct * x)
        >>> f.defvjp_with_accums(lambda x, y: (x * y, (x, y)), backward)
        >>> [float(g) for g in xform.grad(f, (0, 1))(3.0, 4.0)]
        [4.0, 3.0]
        """
        self._define("defvjp_with_accums", _Definition(fwd, bwd, symbolic_zeros, accumulates=True))

    def defremat(
        self,
        fwd: Callable[..., Any],
        rem: Callable[..., Any],
        bwd: Callable[..., Any],
        generic_batching: bool = False,
    ) -> None:
        """Give the rule that reverse mode follows within `checkpoint`.

        What `fwd` returns as residuals is kept from the forward pass, whatever the policy; the backward pass calls
        `rem` instead of doing the forward pass again. Elsewhere, and if there is no rule by `defvjp`, `rem` is called
        right after `fwd`.

        Parameters
        ----------
        fwd : ``(*args) -> (result, residuals)``
        rem : ``(residuals, *args) -> (result, other residuals)``
        bwd : ``(*nondiff, other residuals, cotangent) -> tuple of cotangents``
        generic_batching : bool
            Accepted for JAX's sake.

        Examples
        --------
        >>> import xform, xform.numpy as xnp
        >>> f = xform.custom_vjp(lambda x: xnp.sin(x))
        >>> f.defremat(lambda x: (xnp.sin(x), xnp.cos(x)),
        ...            lambda cos_x, x: (xnp.sin(x), cos_x),
        ...            lambda cos_x, ct: (ct * cos_x,))
        >>> g = xform.checkpoint(lambda x: f(x * x))
        >>> [str(aval) for aval, _ in xform.ad_checkpoint.saved_residuals(g, xnp.ones(3))]
        ['f64[3]', 'f64[3]']
        """
        self._define_remat("defremat", fwd, rem, bwd, logs=False)

    def defremat_with_logs(
        self,
        fwd: Callable[..., Any],
        rem: Callable[..., Any],
        bwd: Callable[..., Any],
        generic_batching: bool = False,
    ) -> None:
        """Give the rule for `checkpoint`, whose backward function also logs: see `defremat`, `defvjp_with_logs`."""
        self._define_remat("defremat_with_logs", fwd, rem, bwd, logs=True)

    def _define(self, name: str, rule: _Definition) -> None:
        check_callable(name, rule.fwd)
        check_callable(name, rule.bwd)
        self._rule = rule

    def _define_remat(self, name: str, fwd: Any, rem: Any, bwd: Any, logs: bool) -> None:
        for function in (fwd, rem, bwd):
            check_callable(name, function)

        def forward(*args: Any, keep: bool) -> Any:
            out, residuals = self._pair("fwd", fwd(*args))
            again, residuals = self._pair("rem", rem(tree.map(saved, residuals) if keep else residuals, *args))
            avals = [[get_aval(x) for x in tree.leaves(value)] for value in (out, again)]
            types = [[(a.shape, a.dtype) for a in side] for side in avals]
            if types[0] != types[1] or tree.structure(out) != tree.structure(again):
                raise self._error("rem", f"returned as result {avals[1]}, but its fwd {avals[0]}")
            return tree.map(alternative, out, again) if keep else out, residuals

        self._remat = _Definition(functools.partial(forward, keep=True), bwd, logs=logs)
        if self._rule is None:
            self._rule = _Definition(functools.partial(forward, keep=False), bwd, logs=logs)

    def _pair(self, rule: str, pair: Any) -> Any:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise self._error(rule, f"must return a pair (result, residuals), got {pair!r}")
        return pair

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self._rule is None:
            raise AttributeError(f"custom_vjp function {self.name} has no rule yet: give it one with defvjp")
        call = self._take_apart(args, kwargs)
        in_avals = [get_aval(x).to_tangent_aval() for x in call.leaves]
        outs = custom_vjp_call_p.bind(
            *call.leaves,
            call=call.flat,
            rule=self._flat(self._rule, call, in_avals),
            remat=self._remat and self._flat(self._remat, call, in_avals),
            name=self.name,
        )
        return call.out_trees[0].unflatten(outs)

    def _flat(self, rule: _Definition, call: Call, in_avals: Sequence[ShapedArray]) -> Rule:
        """A rule as a function of lists."""
        return Rule(
            functools.partial(self._forward, rule, call), functools.partial(self._backward, rule, call, in_avals)
        )

    def _forward(self, rule: _Definition, call: Call, primals: Sequence[Any], perturbed: Sequence[bool]) -> Forward:
        if rule.symbolic_zeros:
            primals = [CustomVJPPrimal(x, p) for x, p in zip(primals, perturbed, strict=True)]
        out, kept = self._pair("fwd", rule.fwd(*call.merge(call.in_tree.unflatten(primals))))
        outs, out_tree = flat_arrays(f"result of the fwd of {self.name}", out)
        residuals, structure = flat_arrays(f"residuals of {self.name}", kept)
        call.out_trees[:] = [out_tree]
        return Forward(outs, residuals, (structure, out_tree, perturbed))

    def _backward(
        self, rule: _Definition, call: Call, in_avals: Sequence[ShapedArray], structures: Any, residuals: Any, cts: Any
    ) -> Backward:
        structure, out_tree, perturbed = structures
        kept = structure.unflatten([x if isinstance(x, Array) else own(x) for x in residuals])
        ct = out_tree.unflatten([symbolic(ct, rule.symbolic_zeros) for ct in cts])
        if rule.accumulates:
            accums = [ValAccum(a) if p else NullAccum(a) for a, p in zip(in_avals, perturbed, strict=True)]
            logs = rule.bwd(*call.static, kept, ct, *call.in_tree.unflatten(accums))
            return Backward([Zero(a.aval) if a.val is None else a.val for a in accums], self._logs(logs))
        found = rule.bwd(*call.static, kept, ct)
        logs = None
        if rule.logs:
            if not isinstance(found, tuple | list) or len(found) != 2:
                raise self._error("bwd", f"must return a pair (cotangents, logs), got {found!r}")
            found, logs = found
        return Backward(self._cotangents(found, call, in_avals), self._logs(logs))

    def _logs(self, logs: Any) -> dict[Any, Any]:
        if logs is None:
            return {}
        if not isinstance(logs, dict):
            raise self._error("bwd", f"must return as logs None or a dictionary, got {logs!r}")
        leaves, treedef = flat_arrays(f"logs of {self.name}", logs)
        out: dict[Any, Any] = treedef.unflatten(leaves)
        return out

    def _cotangents(self, found: Any, call: Call, in_avals: Sequence[ShapedArray]) -> list[Any]:
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
            out.append(fit(ct, want, wrong))
        return out
