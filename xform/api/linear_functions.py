"""Functions linearized at a point, as `linearize` and `vjp` return them.

May import: `api.arguments`, the interpreters of derivatives.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.api.arguments import flat_arrays, leaf_name
from xform.core import dtypes, tree
from xform.core.array import Array, get_aval, own
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.jaxpr import Jaxpr, eval_jaxpr
from xform.interpreters import reverse
from xform.interpreters.logs import collecting
from xform.interpreters.tangents import Zero, instantiate
from xform.lax.conversion import convert


def aval_or_float0(t: Any) -> ShapedArray:
    if isinstance(t, np.ndarray) and t.dtype == dtypes.float0:
        return ShapedArray(t.shape, dtypes.float0)
    return get_aval(t)


class NotSaveable:
    """Stands in `Pullback.args_res` for the value of an argument that `vjp` was told not to keep."""

    def __repr__(self) -> str:
        return "NotSaveable()"


class NotNeeded:
    """Stands in `Pullback.args_res` for the value of an argument that the pullback doesn't need."""

    def __repr__(self) -> str:
        return "NotNeeded()"


class GradValue:
    """For `Pullback.with_refs`: the cotangent of an argument is to be returned."""

    def __repr__(self) -> str:
        return "GradValue()"


class DontWant:
    """For `Pullback.with_refs`: the cotangent of an argument is not wanted."""

    def __repr__(self) -> str:
        return "DontWant()"


class DidntWant:
    """Stands in a result for a cotangent that was not wanted."""

    def __repr__(self) -> str:
        return "DidntWant()"


tree.register_pytree_node(DidntWant, lambda _: ((), None), lambda *_: DidntWant())
tree.register_pytree_node(NotSaveable, lambda _: ((), None), lambda *_: NotSaveable())
tree.register_pytree_node(NotNeeded, lambda _: ((), None), lambda *_: NotNeeded())


class LinearFunction:
    """A function linearized at a point, as `linearize` and `vjp` return it. A pytree whose leaves are the residuals."""

    def __init__(self, jaxpr: Jaxpr, consts: list[Any], info: tuple[Any, ...]):
        self.jaxpr, self.consts, self.info = jaxpr, consts, info

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.jaxpr})"

    @property
    def out_nzs(self) -> Any:
        """Which results have a derivative that isn't known to be zero, in their structure."""
        return self.info[3].unflatten(self.info[5])


class Pushforward(LinearFunction):
    """Maps tangents of the inputs to tangents of the results."""

    @api_boundary
    def __call__(self, *tangents: Any) -> Any:
        """Apply to tangents, structured as the arguments of the function were."""
        in_tree, in_avals, differentiate, out_tree, out_avals, nonzero_out, _ = self.info
        ts, treedef = flat_arrays("the linearized function", tangents)
        if treedef != in_tree:
            raise TypeError(f"linearize: the tangents' structure must be {in_tree}, got {treedef}")
        checked = [check_against("linearize", "tangent", t, a) for t, a in zip(ts, in_avals, strict=True)]
        inputs = [instantiate(t) for t, d in zip(checked, differentiate, strict=True) if d]
        outs = iter(eval_jaxpr(self.jaxpr, self.consts, *inputs))
        full_outs = [next(outs) if nz else Zero(a) for nz, a in zip(nonzero_out, out_avals, strict=True)]
        return out_tree.unflatten([instantiate(t) for t in full_outs])


class Pullback(LinearFunction):
    """Maps cotangents of the results to cotangents of the inputs.

    Attributes
    ----------
    args_res : list
        If `vjp` was given `saveable_args`: for each argument the values in it that are kept as they are for the
        backward pass, with `NotNeeded` in place of the others, and `NotSaveable` of those that were not to be kept.
        These have to be put back, by assigning to `args_res` or to entries of it, before the pullback is called.
    """

    _args: list[Any] | None = None  # once somebody asked for it; it then takes the place of the residuals it stands for

    def __init__(
        self,
        jaxpr: Jaxpr,
        consts: list[Any],
        info: tuple[Any, ...],
        logs: bool = False,
        wanted: tuple[bool, ...] | None = None,
    ):
        super().__init__(jaxpr, consts, info)
        self.logs, self.wanted = logs, wanted

    def _with(self, **changes: Any) -> "Pullback":
        """The same, but for whether it returns logs, or which cotangents are wanted."""
        new = Pullback(self.jaxpr, self.consts, self.info, **{"logs": self.logs, "wanted": self.wanted, **changes})
        new._args = self._args
        return new

    @property
    def with_logs(self) -> "Pullback":
        """The pullback that returns a pair: the cotangents, and a dictionary of what backward functions logged.

        These are the functions of `custom_vjp.defvjp_with_logs` and its kin. What one of them logs in the body of a
        `scan`, or under `vmap`, has the values of all steps, or lanes, stacked; what comes from a branch of a traced
        `cond` or `switch` is an object with the attributes ``index``, of the branch that was taken, and ``branches``, a
        list of each one's value: zeros of those that were not taken, and None of those without the log.

        Raises
        ------
        ValueError
            If two logs have the same name.
        NotImplementedError
            If there is one in a loop without a known number of steps.
        """
        return self._with(logs=True)

    def with_refs(self, *entries: Any) -> "Pullback":
        """The pullback that leaves out cotangents which are not wanted, and what would lead to them.

        Parameters
        ----------
        *entries : pytrees of `ad.GradValue` and `ad.DontWant`
            One for each argument of the function, of its structure.

        Examples
        --------
        >>> import xform
        >>> _, pullback = xform.vjp(lambda x, y: x * y, 3.0, 4.0)
        >>> x_bar, y_bar = pullback.with_refs(xform.ad.GradValue(), xform.ad.DontWant())(1.0)
        >>> float(x_bar), y_bar
        (4.0, DidntWant())
        """
        leaves, treedef = tree.flatten(entries)
        if treedef != self.info[0]:
            raise ValueError(
                f"vjp: with_refs needs entries of the structure of the arguments, {self.info[0]}, got {treedef}"
            )
        if wrong := [x for x in leaves if not isinstance(x, GradValue | DontWant)]:
            raise TypeError(
                f"vjp: with_refs takes ad.GradValue() and ad.DontWant(), got {wrong[0]!r}; there are no references to "
                "add gradients to, as arrays are immutable"
            )
        return self._with(wanted=tuple(isinstance(x, GradValue) for x in leaves))

    @property
    def args_res(self) -> list[Any]:
        """Values of arguments that are kept: see the class."""
        if self.info[6] is None:
            raise AttributeError("vjp: a pullback has args_res if saveable_args was given, if only as (True, ...)")
        if self._args is None:
            values: list[Any] = [NotNeeded() for _ in self.info[1]]
            for at, i in self.info[6]:
                values[i] = self.consts[at]
            self._args = list(self.info[0].unflatten(values))
        return self._args

    @args_res.setter
    def args_res(self, values: Sequence[Any]) -> None:
        self._args = list(values)

    def residuals(self) -> list[Any]:
        """The constants of the program, those that are arguments' values as `args_res` has them now."""
        if self._args is None:
            return self.consts
        try:
            values = self.info[0].flatten_up_to(tuple(self._args))
        except ValueError as error:
            raise TypeError(f"vjp: args_res must have the structure of the arguments: {error}") from None
        consts = list(self.consts)
        for at, i in self.info[6]:
            consts[at] = values[i]
        return consts

    def _restored(self) -> list[Any]:
        """`residuals`, all of which must be there."""
        consts = self.residuals()
        for at, i in self.info[6]:
            where = f"vjp: the value of {leaf_name(self.info[0], i, False)}"
            if isinstance(consts[at], NotSaveable | NotNeeded):
                raise ValueError(
                    f"{where} was not kept, as saveable_args says, and has to be put back before the pullback is "
                    "called: assign it to its attribute args_res"
                )
            have, want = get_aval(consts[at]), self.jaxpr.constvars[at].aval
            if have.shape != want.shape or have.dtype != want.dtype:
                raise TypeError(f"{where}, {want.str_short()}, was put back as {have.str_short()}")
        return consts

    @api_boundary
    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        """Apply to a cotangent, structured as the result of the function was; gives a tuple, one per argument."""
        in_tree, in_avals, differentiate, out_tree, out_avals, nonzero_out, _ = self.info
        if len(cotangents) != 1:
            raise TypeError(f"vjp: the pullback takes one argument, structured as the result, got {len(cotangents)}")
        cts, treedef = flat_arrays("the pullback", cotangents[0])
        if treedef != out_tree:
            raise TypeError(f"vjp: the cotangent's structure must be that of the result, {out_tree}, got {treedef}")
        checked = [check_against("vjp", "cotangent", ct, a) for ct, a in zip(cts, out_avals, strict=True)]
        used = [ct for ct, nz in zip(checked, nonzero_out, strict=True) if nz]
        consts = self._restored() if self.info[6] else self.consts
        with collecting({} if self.logs else None) as logs:
            outs = iter(reverse.backward_pass(self._wanted_part(), consts, used))
        full_outs = [instantiate(next(outs) if d else Zero(a)) for d, a in zip(differentiate, in_avals, strict=True)]
        if self.wanted is not None:
            full_outs = [ct if w else DidntWant() for ct, w in zip(full_outs, self.wanted, strict=True)]
        arguments: tuple[Any, ...] = in_tree.unflatten(full_outs)
        return (arguments, tree.map(_as_array, logs)) if self.logs else arguments

    def _wanted_part(self) -> Jaxpr:
        """The program without the equations that lead to no cotangent that is wanted."""
        if self.wanted is None:
            return self.jaxpr
        wanted = [w for w, d in zip(self.wanted, self.info[2], strict=True) if d]
        leading = {id(v) for v, w in zip(self.jaxpr.invars, wanted, strict=True) if w}
        eqns = []
        for eqn in self.jaxpr.eqns:
            if any(id(v) in leading for v in eqn.invars):
                eqns.append(eqn)
                leading.update(map(id, eqn.outvars))
        part = Jaxpr(self.jaxpr.constvars, self.jaxpr.invars, self.jaxpr.outvars, eqns, self.jaxpr.name)
        part.is_tape = self.jaxpr.is_tape
        return part


def _as_array(x: Any) -> Any:
    return x if isinstance(x, Array) else own(x)


def check_against(name: str, what: str, t: Any, want: ShapedArray) -> Any:
    have = aval_or_float0(t)
    if have.shape != want.shape or have.dtype != want.dtype:
        if have.weak_type and want.shape == have.shape and want.dtype != dtypes.float0:
            return convert(t, want.dtype)
        raise TypeError(f"{name}: expected a {what} of {want.str_short()}, got {have.str_short()}")
    return Zero(want) if want.dtype == dtypes.float0 else convert(t, want.dtype)


tree.register_pytree_node(
    Pushforward,
    lambda f: (tuple(f.consts), (f.jaxpr, f.info)),
    lambda aux, consts: Pushforward(aux[0], list(consts), aux[1]),
)
tree.register_pytree_node(
    Pullback,
    lambda f: (tuple(f.residuals()), (f.jaxpr, f.info, f.logs, f.wanted)),
    lambda aux, consts: Pullback(aux[0], list(consts), *aux[1:]),
)
