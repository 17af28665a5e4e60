"""Taylor mode: truncated power series instead of dual numbers.

A value is a polynomial ``x_0 + x_1 t + x_2 t^2 + ...`` up to a given order. What an operation does to it follows from
rules that exist already: with ``y = f(x)``, the `jvp` rule of f says what ``y' = df(x)[x']`` is, which is an ordinary
differential equation for y. Coefficient k of y is coefficient k - 1 of the right-hand side over k, and that depends on
lower coefficients of y only. So the right-hand side is written down once, as a program on series whose coefficients
are computed when they are asked for (`JetTrace.solve`). For exp, ``y' = x' y``, this is the classical recurrence
``k y_k = sum_j j x_j y_(k-j)`` (Griewank and Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008, chapter 13).
The work grows with the square of the order, the number of equations in proportion to it.

A primitive has a `jet` rule of its own where there is something simpler, ``(trace, *series, **params) -> series``:

    linear            each coefficient by itself
    locally_linear    each coefficient as a tangent: the derivative is constant in pieces (max, sort, gather, ...)
    bilinear          convolution of the coefficients
    implicit          solution of an equation ``A(t) x(t) = b(t)`` (div, linear systems)

Primitives that hold jaxprs push all coefficients through them at once: their `push` rule is their `jvp` rule, with
several tangents per operand (see `forward.push`).

May import: `xform.core`, `interpreters.tangents`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from xform.core.array import get_aval
from xform.core.trace import Primitive, Trace, Tracer
from xform.interpreters.tangents import Zero, add_tangents, instantiate, is_zero, zero_of

STEP = 16


class Hooks:
    """The array operations that series need; `xform.lax` fills them in."""

    multiply: Callable[[Any, int], Any]
    divide: Callable[[Any, int], Any]
    negate: Callable[[Any], Any]


class Series:
    """``s[k]`` is the k-th Taylor coefficient, an array or `Zero`, computed when it is first asked for.

    A series without `compute` is a constant.
    """

    __slots__ = ("compute", "known")

    def __init__(self, first: Any, compute: Callable[[int], Any] | None = None):
        self.compute = compute
        self.known = {0: first}

    def __getitem__(self, k: int) -> Any:
        found = self.known.get(k)
        if found is None:
            found = self.compute(k) if self.compute is not None else zero_of(self.known[0])
            self.known[k] = found
        return found

    @property
    def is_constant(self) -> bool:
        """Whether all coefficients but the first are zero for certain."""
        return self.compute is None


def derivative(x: Series) -> Series:
    """The derivative with respect to t."""
    return Series(instantiate(x[1]), lambda k: x[k + 1] if is_zero(x[k + 1]) else Hooks.multiply(x[k + 1], k + 1))


def over(x: Any, k: int) -> Any:
    """x / k."""
    return x if k == 1 else Hooks.divide(x, k)


class JetTracer(Tracer):
    """A value with its Taylor series."""

    __slots__ = ("series",)

    def __init__(self, trace: "JetTrace", series: Series):
        self._trace, self.series = trace, series

    @property
    def aval(self) -> Any:  # type: ignore[override]
        """The aval of the first coefficient."""
        return get_aval(self.series[0])

    @property
    def under(self) -> Any:
        """The first coefficient."""
        return self.series[0]


class JetTrace(Trace):
    """Computes Taylor coefficients up to `order`.

    The operations of the user's function are computed at once. Those that rules do on the way are only remembered,
    in `nodes`: the same operation on the same series gives the same series, which closes the circle of differential
    equations such as those of sine and cosine.
    """

    __slots__ = ("nodes", "order")
    name = "jet"

    def __init__(self, order: int):
        super().__init__()
        self.order = order
        self.nodes: dict[Any, Any] | None = None

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        operands = [self.series(a) for a in args]
        if self.nodes is not None:
            out = self.node(primitive, operands, params)
            return [self.wrap(s) for s in out] if primitive.multiple_results else self.wrap(out)
        if primitive.has("push"):
            terms = [s[k] for s in operands for k in range(1, self.order + 1)]
            primals, terms = primitive.push([s[0] for s in operands], terms, **params)
            return self.all_known(primals, terms)
        self.nodes = {}
        try:
            out = self.node(primitive, operands, params)
            return [self.computed(s) for s in out] if primitive.multiple_results else self.computed(out)
        finally:
            self.nodes = None

    def node(self, primitive: Primitive, operands: Sequence[Series], params: dict[str, Any]) -> Any:
        """The series (or list of them) that `primitive` gives, its coefficients still to be computed."""
        assert self.nodes is not None
        key = (primitive, tuple(id(s[0] if s.is_constant else s) for s in operands), tuple(params.items()))
        found = self.nodes.get(key)
        if found is None:
            if primitive.has("push"):
                out = self._pushed(primitive, operands, params)
            elif primitive.has("jvp") and not primitive.has("jet"):
                out = self.solve(primitive, operands, params)
            else:
                out = primitive.jet(self, *operands, **params)
            self.nodes[key] = found = out, operands  # operands stay alive, so that their ids stay theirs
        return found[0]

    def solve(self, primitive: Primitive, operands: Sequence[Series], params: dict[str, Any]) -> Any:
        """The series of `primitive` from its jvp rule, as the solution of a differential equation."""
        rates: list[Any] = []

        def coefficient(i: int, k: int) -> Any:
            if not rates:
                ts = [zero_of(s[0]) if s.is_constant else self.wrap(derivative(s)) for s in operands]
                _, found = primitive.jvp([self.wrap(s) for s in operands], ts, **params)
                rates.extend(found if primitive.multiple_results else [found])
            if is_zero(rates[i]):
                return rates[i]
            value = self.series(rates[i])[k - 1]
            return value if is_zero(value) else over(value, k)

        return results(primitive, operands, params, coefficient)

    def _pushed(self, primitive: Primitive, operands: Sequence[Series], params: dict[str, Any]) -> list[Series]:
        """The series of an operation with jaxprs, pushed through them again for each order that is asked for first."""
        primals = [s[0] for s in operands]
        done: dict[int, Sequence[Any]] = {}

        def coefficient(i: int, k: int) -> Any:
            order = next((n for n in done if n >= k), k)
            if order not in done:
                done[k] = primitive.push(primals, [s[j] for s in operands for j in range(1, k + 1)], **params)[1]
            return done[order][i * order + k - 1]

        return results(primitive, operands, params, coefficient)

    def wrap(self, series: Series) -> Any:
        """A tracer, unless the series is constant."""
        return series[0] if series.is_constant else JetTracer(self, series)

    def computed(self, series: Series) -> Any:
        """A tracer of a series all of whose coefficients are computed."""
        # From high to low, so that what can compute several coefficients at once learns how many; but in steps, since
        # each asks for the one before, and Python's stack is finite.
        for k in (*range(STEP, self.order, STEP), self.order):
            _ = series[k]
        return self.known(series[0], [series[k] for k in range(1, self.order + 1)])

    def known(self, primal: Any, terms: Sequence[Any]) -> Any:
        """A tracer of given coefficients, unless they are all zero."""
        if all(map(is_zero, terms)):
            return primal
        return JetTracer(self, Series(primal, lambda k: terms[k - 1]))

    def all_known(self, primals: Sequence[Any], terms: Sequence[Any]) -> list[Any]:
        """`known` of several values, of each of which `terms` has all coefficients in turn."""
        n = self.order
        return [self.known(p, terms[i * n : (i + 1) * n]) for i, p in enumerate(primals)]

    def series(self, x: Any) -> Series:
        """The series of a value; what doesn't belong to this trace is constant."""
        if type(x) is JetTracer and x._trace is self:
            if not self.alive:
                raise x.leaked()
            return x.series
        if isinstance(x, Tracer) and (x._trace.level >= self.level or not x._trace.alive):
            raise x.leaked()
        return Series(x)


def results(
    p: Primitive, operands: Sequence[Series], params: dict[str, Any], coefficient: Callable[[int, int], Any]
) -> Any:
    """The series of the results of p; ``coefficient(i, k)`` is coefficient k of result i. Integers are constant."""

    def series(i: int, first: Any) -> Series:
        return Series(first, (lambda k: coefficient(i, k)) if get_aval(first).inexact else None)

    out = p.bind(*[s[0] for s in operands], **params)
    return [series(i, o) for i, o in enumerate(out)] if p.multiple_results else series(0, out)


# Rules


def _each(p: Primitive, coefficients: Callable[..., Any]) -> Callable[..., Any]:
    """A rule by which ``coefficients(terms, primals, **params)`` are those of one order."""

    def rule(trace: JetTrace, *operands: Series, **params: Any) -> Any:
        done: dict[int, Any] = {}

        def coefficient(i: int, k: int) -> Any:
            if k not in done:
                found = coefficients([s[k] for s in operands], [s[0] for s in operands], **params)
                done[k] = found if p.multiple_results else [found]
            return done[k][i]

        return results(p, operands, params, coefficient)

    return rule


def linear(p: Primitive, **instead: Any) -> Callable[..., Any]:
    """The rule of an operation of one inexact operand in which it is linear; others are integers.

    `instead` are parameters for the coefficients but the first.
    """

    def coefficients(terms: list[Any], primals: list[Any], **params: Any) -> Any:
        operands = [x if is_zero(t) else t for t, x in zip(terms, primals, strict=True)]
        if all(map(is_zero, terms)):
            out = p.types(tuple(map(get_aval, primals)), params)
            return [Zero(a) for a in out] if p.multiple_results else Zero(out)
        return p.bind(*operands, **{**params, **instead})

    return _each(p, coefficients)


def locally_linear(p: Primitive) -> Callable[..., Any]:
    """The rule of an operation whose derivative is constant in pieces: coefficients are treated as tangents."""
    return _each(p, lambda terms, primals, **params: p.jvp(primals, terms, **params)[1])


def pairs(x: Series, y: Series, k: int, start: int = 0, stop: int | None = None) -> list[tuple[Any, Any]]:
    """What is multiplied and added up for coefficient k of a product: ``x_j`` and ``y_(k-j)``, for j of a range."""
    out = []
    for j in range(start, k + 1 if stop is None else stop):
        if not is_zero(a := x[j]) and not is_zero(b := y[k - j]):
            out.append((a, b))
    return out


def bilinear(p: Primitive, add_up: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """The rule of an operation of two operands that is linear in each.

    ``add_up(pairs, **params)`` is the sum of p over two or more pairs, where that is one operation.
    """

    def rule(trace: JetTrace, x: Series, y: Series, **params: Any) -> Any:
        def coefficient(_: int, k: int) -> Any:
            found = pairs(x, y, k)
            if len(found) > 1 and add_up is not None:
                return add_up(found, **params)
            total: Any = None
            for a, b in found:
                total = add_tangents(total, p.bind(a, b, **params))
            return zero if total is None else total

        out = results(p, [x, y], params, coefficient)
        zero = zero_of(out[0])
        return out

    return rule


def implicit(
    p: Primitive,
    matrix: int,
    right: int,
    product: Callable[..., Any],
    operator: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """The rule of an operation that solves a linear equation ``A x = b``.

    Parameters
    ----------
    matrix, right : int
        Which operands A and b are.
    product : (pairs, **params) -> array
        The sum of ``A x`` over pairs of coefficients.
    operator : (operand, **params) -> array, optional
        What A is, if it isn't that operand itself.
    """

    def rule(trace: JetTrace, *operands: Series, **params: Any) -> Any:
        def coefficient(_: int, k: int) -> Any:
            found, b = pairs(a, x, k, 1), operands[right][k]
            if found:
                b = add_tangents(b, Hooks.negate(product(found, **params)))
            if is_zero(b):
                return zero_of(x[0])
            return p.bind(*[b if i == right else s[0] for i, s in enumerate(operands)], **params)

        a = operands[matrix]
        if operator is not None and not a.is_constant:
            a = trace.series(operator(trace.wrap(a), **params))
        x = results(p, operands, params, coefficient)
        return x

    return rule


def jet(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], terms: Sequence[Any], order: int
) -> tuple[list[Any], list[Any]]:
    """Push Taylor coefficients (arrays or `Zero`) through a function of flat arguments that returns a list.

    `terms` has `order` coefficients for each argument in turn; so have the results.
    """
    with JetTrace(order) as trace:
        outs = function(*trace.all_known(primals, terms))
        found = [trace.series(o) for o in outs]
        return [s[0] for s in found], [s[k] for s in found for k in range(1, order + 1)]
