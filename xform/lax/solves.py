"""Solutions defined by equations, with the derivatives that the equations imply: `custom_root`, `custom_linear_solve`.

How the solution was found plays no part in the derivatives (implicit function theorem).

May import: `xform.core`, `xform.interpreters`, `lax.calls`, `lax.custom_calls`, `lax.arithmetic`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xform.core import tree
from xform.core.array import get_aval
from xform.core.errors import api_boundary
from xform.core.jaxpr import ClosedJaxpr, eval_jaxpr
from xform.interpreters import batching, forward, reverse
from xform.interpreters.host import host_function
from xform.interpreters.staging import trace_to_closed
from xform.interpreters.tangents import Zero, add_tangents, instantiate, is_zero, zero_of
from xform.lax.arithmetic import neg_p
from xform.lax.calls import CallPrimitive
from xform.lax.control_flow import common
from xform.lax.custom_calls import custom_jvp_call_p

# custom_root


@api_boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """A root of `f`, differentiable with respect to whatever `f` closes over.

    If ``f(x, a) = 0`` then ``df/dx dx + df/da da = 0``, which `tangent_solve` solves for dx.

    Parameters
    ----------
    f : function of a pytree of arrays to one of the same structure, shapes and dtypes
    initial_guess : pytree of arrays
        The derivative with respect to it is zero.
    solve : ``(f, initial_guess) -> root``, with `has_aux` ``(root, aux)``
        Not differentiated; outside `jit` it may look at values.
    tangent_solve : ``(g, y) -> x``, for a linear function g, with ``g(x) == y``
        For reverse mode it must be linear in y: ``y / g(1.0)`` for scalars, `linalg.solve` with the Jacobian of g for
        vectors, `custom_linear_solve` otherwise.

    Examples
    --------
    >>> import xform
    >>> from xform import lax
    >>> def newton(f, x):
    ...     for _ in range(30):
    ...         x = x - f(x) / xform.grad(f)(x)
    ...     return x
    >>> cube_root = lambda a: lax.custom_root(lambda x: x**3 - a, a, newton, lambda g, y: y / g(1.0))
    >>> round(float(xform.grad(cube_root)(8.0)), 6)  # 1/3 a**(-2/3)
    0.083333
    """
    guess, treedef = tree.flatten(initial_guess)
    guess = common.as_arrays(guess)
    avals = [get_aval(x) for x in guess]
    closed, consts, out_tree = common.trace_body(f, _one_argument(treedef), avals, "custom_root")
    common.check_same(
        "custom_root", "the argument of f", treedef, avals, "its result", out_tree, closed.out_avals
    )  # fmt: skip
    n = len(consts)
    trees: list[Any] = []

    def function_of(values: Sequence[Any]) -> Callable[[Any], Any]:
        def converted(x: Any) -> Any:
            leaves = common.as_arrays(tree.leaves(x))
            return treedef.unflatten(eval_jaxpr(closed.jaxpr, closed.consts, *values, *leaves))

        return converted

    def call(*args: Any) -> list[Any]:
        found = solve(function_of(args[:n]), treedef.unflatten(args[n:]))
        aux = None
        if has_aux:
            if not isinstance(found, tuple | list) or len(found) != 2:
                raise TypeError(f"custom_root with has_aux=True: solve must return a pair (root, aux), got {found!r}")
            found, aux = found
        leaves, root_tree = tree.flatten(found)
        leaves = common.as_arrays(leaves)
        common.check_same(
            "custom_root", "initial_guess", treedef, avals, "the root", root_tree, [get_aval(x) for x in leaves]
        )  # fmt: skip
        extra, aux_tree = tree.flatten(aux)
        trees[:] = [aux_tree]
        return [*leaves, *common.as_arrays(extra)]

    def jvp(primals: Sequence[Any], ts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs = custom_jvp_call_p.bind(*primals, call=call, jvp=jvp, name="custom_root")
        root, aux = outs[: len(avals)], outs[len(avals) :]
        zeros = [zero_of(x) for x in outs]
        if all(is_zero(t) for t in ts[:n]):
            return outs, zeros
        values = primals[:n]
        evaluate = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        _, rhs = forward.jvp(evaluate, [*values, *root], [*ts[:n], *zeros[: len(root)]])

        def linear(x: Any) -> Any:
            directions = common.as_arrays(tree.leaves(x))
            _, out = forward.jvp(evaluate, [*values, *root], [*[zero_of(v) for v in values], *directions])
            return treedef.unflatten([instantiate(t) for t in out])

        minus_rhs = treedef.unflatten([neg_p.bind(instantiate(t)) for t in rhs])
        found, found_tree = tree.flatten(tangent_solve(linear, minus_rhs))
        common.check_same(
            "custom_root", "the root", treedef, [a.to_tangent_aval() for a in avals], "the result of tangent_solve",
            found_tree, [get_aval(x) for x in found],
        )  # fmt: skip
        return outs, [*found, *[zero_of(x) for x in aux]]

    outs = custom_jvp_call_p.bind(*consts, *guess, call=call, jvp=jvp, name="custom_root")
    root = treedef.unflatten(outs[: len(avals)])
    return (root, trees[0].unflatten(outs[len(avals) :])) if has_aux else root


def _one_argument(treedef: Any) -> Any:
    """The structure of ``(x,)``."""
    return tree.tuple_of([treedef])


# custom_linear_solve


class Programs(NamedTuple):
    """What a linear solve consists of: jaxprs, whose first inputs are constants.

    `matvec` and `vecmat` map vectors to vectors; `solve` and `transpose_solve` right-hand sides to solutions followed
    by auxiliary results. The transposed ones are None if nobody gave them.
    """

    matvec: ClosedJaxpr
    vecmat: ClosedJaxpr | None
    solve: ClosedJaxpr
    transpose_solve: ClosedJaxpr | None


@api_boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve ``matvec(x) == b`` for x, differentiable with respect to b and to what `matvec` closes over.

    If ``A x = b`` then ``A dx = db - dA x``: the derivative takes another solve, and the transpose one with the
    transpose of A.

    Parameters
    ----------
    matvec : linear function of a pytree of arrays to one of the same structure, shapes and dtypes
    b : pytree of arrays
    solve : ``(matvec, b) -> x``, with `has_aux` ``(x, aux)``
        Not differentiated.
    transpose_solve : ``(vecmat, b) -> x``, optional
        The same for the transposed operator; needed for reverse mode unless `symmetric`.
    symmetric : bool
        The operator is its own transpose; `solve` serves for both.
    has_aux : bool
        Whether `solve` returns auxiliary results, whose derivative is zero.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> from xform import lax
    >>> def jacobi(matvec, b):  # for operators whose diagonal is 4
    ...     x = b
    ...     for _ in range(60):
    ...         x = x + (b - matvec(x)) / 4
    ...     return x
    >>> a = xnp.array([[4.0, 1.0], [1.0, 4.0]])
    >>> x = lax.custom_linear_solve(lambda x: a @ x, xnp.array([1.0, 2.0]), jacobi, symmetric=True)
    >>> (a @ x).round(6).tolist()
    [1.0, 2.0]
    """
    leaves, treedef = tree.flatten(b)
    leaves = common.as_arrays(leaves)
    avals = [get_aval(x).strong for x in leaves]
    if symmetric and transpose_solve is None:
        transpose_solve = solve
    closed, consts, out_tree = common.trace_body(matvec, _one_argument(treedef), avals, "custom_linear_solve")
    common.check_same(
        "custom_linear_solve", "b", treedef, avals, "the result of matvec", out_tree, closed.out_avals
    )  # fmt: skip
    aux_trees: list[Any] = []

    def program(solver: Callable[..., Any], operator: ClosedJaxpr, keep_aux: bool) -> tuple[ClosedJaxpr, list[Any]]:
        def flat(*xs: Any) -> list[Any]:
            values = xs[: len(consts)]

            def apply(x: Any) -> Any:
                vector = common.as_arrays(tree.leaves(x))
                return treedef.unflatten(eval_jaxpr(operator.jaxpr, operator.consts, *values, *vector))

            found, aux = solver(apply, treedef.unflatten(xs[len(consts) :])), None
            if has_aux:
                found, aux = found
            out, found_tree = tree.flatten(found)
            common.check_same(
                "custom_linear_solve", "b", treedef, avals, "the solution", found_tree, [get_aval(x) for x in out]
            )  # fmt: skip
            extra, aux_tree = tree.flatten(aux)
            if keep_aux:
                aux_trees[:] = [aux_tree]
            return [*out, *extra] if keep_aux else out

        return trace_to_closed(flat, [*[get_aval(c) for c in consts], *avals], solver.__name__)

    forwards, more = program(solve, closed, True)
    vecmat = backwards = None
    more_transposed: list[Any] = []
    if transpose_solve is not None:
        vecmat = closed if symmetric else _transposed(closed, len(consts))
        backwards, more_transposed = program(transpose_solve, vecmat, False)
    outs = linear_solve_p.bind(
        *consts,
        *more,
        *more_transposed,
        *leaves,
        programs=Programs(closed, vecmat, forwards, backwards),
        lengths=(len(consts), len(more), len(more_transposed)),
    )
    x = treedef.unflatten(outs[: len(avals)])
    return (x, aux_trees[0].unflatten(outs[len(avals) :])) if has_aux else x


def _transposed(closed: ClosedJaxpr, n_consts: int) -> ClosedJaxpr:
    """The transpose of a square linear operator, with the same constants."""
    linear = tuple(i >= n_consts for i in range(len(closed.in_avals)))
    return reverse.transpose_jaxpr(closed, linear, (True,) * linear.count(True), True)[0]


def _parts(args: Sequence[Any], lengths: tuple[int, int, int]) -> tuple[Any, Any, Any, Any]:
    a, b, c = lengths
    return args[:a], args[a : a + b], args[a + b : a + b + c], args[a + b + c :]


def _solve(*args: Any, programs: Programs, lengths: tuple[int, int, int]) -> tuple[ClosedJaxpr, list[Any]]:
    """The program that is run, and its operands."""
    consts, more, _, b = _parts(args, lengths)
    return programs.solve, [*more, *consts, *b]


def _run(*args: Any, **params: Any) -> list[Any]:
    program, operands = _solve(*args, **params)
    return eval_jaxpr(program.jaxpr, program.consts, *operands)


def _jvp(primals: Sequence[Any], ts: Sequence[Any], *, programs: Programs, lengths: Any) -> Any:
    outs = linear_solve_p.bind(*primals, programs=programs, lengths=lengths)
    consts, *_, b = _parts(primals, lengths)
    const_ts, *_, rhs = _parts(ts, lengths)
    x = outs[: len(b)]
    rhs = list(rhs)
    if not all(is_zero(t) for t in const_ts):
        matvec = programs.matvec
        evaluate = lambda *xs: eval_jaxpr(matvec.jaxpr, matvec.consts, *xs)  # noqa: E731
        _, changes = forward.jvp(evaluate, [*consts, *x], [*const_ts, *[zero_of(v) for v in x]])
        rhs = [t if is_zero(c) else add_tangents(t, neg_p.bind(c)) for t, c in zip(rhs, changes, strict=True)]
    if all(is_zero(t) for t in rhs):
        return outs, [zero_of(o) for o in outs]
    others = primals[: len(primals) - len(b)]
    tangents = linear_solve_p.bind(*others, *[instantiate(t) for t in rhs], programs=programs, lengths=lengths)
    return outs, [*tangents[: len(b)], *[zero_of(o) for o in outs[len(b) :]]]


def _transpose(cts: Sequence[Any], *args: Any, programs: Programs, lengths: Any) -> list[Any]:
    matvec, vecmat, solve, transpose_solve = programs
    if transpose_solve is None:
        raise TypeError("custom_linear_solve: reverse mode needs transpose_solve, or symmetric=True")
    consts, more, more_transposed, b = _parts(args, lengths)
    a, n_more, n_transposed = lengths
    n = len(b)
    if all(is_zero(ct) for ct in cts[:n]):
        return [*[None] * (len(args) - n), *[Zero(x.aval) for x in b]]
    without_aux = ClosedJaxpr(_first_results(solve.jaxpr, n), solve.consts)
    outs = linear_solve_p.bind(
        *consts,
        *more_transposed,
        *more,
        *[instantiate(ct) for ct in cts[:n]],
        programs=Programs(vecmat, matvec, transpose_solve, without_aux),  # type: ignore[arg-type]
        lengths=(a, n_transposed, n_more),
    )
    return [*[None] * (len(args) - n), *outs]


def _first_results(jaxpr: Any, n: int) -> Any:
    return type(jaxpr)(jaxpr.constvars, jaxpr.invars, jaxpr.outvars[:n], jaxpr.eqns, jaxpr.name)


def _batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, programs: Programs, lengths: Any) -> Any:
    """All right-hand sides and solutions are mapped; so is what depends on mapped constants."""
    mapped = [d is not None for d in dims]
    consts, more, more_transposed, b = _parts(mapped, lengths)
    everything = (True,) * len(b)

    def mapped_program(program: ClosedJaxpr | None, own: Sequence[bool]) -> ClosedJaxpr | None:
        if program is None:
            return None
        return batching.batch_jaxpr(program, axis.size, axis.axis_name, (*own, *everything), True)[0]

    matvec, vecmat, solve, transpose_solve = programs
    args = [
        a if d is None and i < len(args) - len(b) else batching.move_to(a, d, axis.size)
        for i, (a, d) in enumerate(zip(args, dims, strict=True))
    ]
    outs = linear_solve_p.bind(
        *args,
        programs=Programs(
            mapped_program(matvec, consts),  # type: ignore[arg-type]
            mapped_program(vecmat, consts),
            mapped_program(solve, (*more, *consts)),  # type: ignore[arg-type]
            mapped_program(transpose_solve, (*more_transposed, *consts)),
        ),
        lengths=lengths,
    )
    return outs, [0] * len(outs)


def _lower(ctx: Any, *args: Any, **params: Any) -> Any:
    program, operands = _solve(*args, **params)
    return ctx.call(program, operands)


def _host(*args: Any, **params: Any) -> Any:
    program, operands = _solve(*args, **params)
    return host_function(program)(*operands)


linear_solve_p = CallPrimitive("linear_solve", _run)
linear_solve_p.abstract_eval = lambda *avals, programs, lengths: programs.solve.out_avals
linear_solve_p.host = _host
linear_solve_p.jvp = _jvp
linear_solve_p.transpose = _transpose
linear_solve_p.batch = _batch
linear_solve_p.lower = _lower
