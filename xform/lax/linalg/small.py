"""Many small matrices: decompositions with every element written out, of a whole batch at once.

LAPACK takes 50 to 3000 ns for a matrix of up to 4 rows, most of it for everything but arithmetic. Here each element of
the matrices is one vector over the batch, and a decomposition is arithmetic on such vectors: elimination with row
exchanges, Cholesky's formula, Jacobi's rotations. The algorithms are as stable as LAPACK's; closed formulas by
cofactors or trigonometric functions are not (Kopp 2008, arXiv:physics/0610206).

A formula is one function for both backends: its numbers are ndarrays on the host, and write StableHLO in a program.
`unrolled` gives it to a primitive.

May import: `lax.families`, `lax.vector_math`, `lax.transcendental`.
"""

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters.lowering import Context, Value, i64s, lower_as
from xform.lax.families import real_dtype
from xform.lax.transcendental import log_p
from xform.lax.vector_math.number import Number
from xform.lax.vector_math.number import where as where_numbers

LARGEST = 4  # rows and columns
# With fewer matrices LAPACK is faster on the host. In programs the formulas win from 100 on, but take 0.1 to 1 s of
# compilation.
FEWEST = 1000
BLOCK = 4096  # matrices that the host takes at a time, so that its vectors stay in the cache


def unrolled(p: Primitive, formula: Callable[..., Any], *, on_host: bool = True) -> None:
    """Let a primitive use a formula for small square matrices, if they are many.

    ``formula(*operands, **params)`` takes a list of rows for an operand with matrices, a list for one with vectors, and
    returns the like: one result, or a tuple of them. The first operand are the square matrices.
    """
    host, lower = p.host, p.lower

    def fits(shapes: Sequence[Sequence[int]]) -> bool:
        *batch, m, n = shapes[0]
        sizes = [d for shape in shapes for d in shape[len(batch) :]]
        return m == n and math.prod(batch) >= FEWEST and min(sizes) > 0 and max(sizes) <= LARGEST

    def small_host(*xs: Any, **params: Any) -> Any:
        if not fits([x.shape for x in xs]):
            return host(*xs, **params)
        outs = p.abstract_eval(*(ShapedArray(x.shape, x.dtype) for x in xs), **params)
        outs = _on_host(lambda *xs: formula(*xs, **params), xs, outs if p.multiple_results else [outs])
        return outs if p.multiple_results else outs[0]

    def small_lower(ctx: Context, *xs: Value, **params: Any) -> Any:
        if not fits([x.shape for x in xs]):
            return lower(ctx, *xs, **params)
        outs = _in_program(ctx, lambda *xs: formula(*xs, **params), xs, ctx.outs)
        return outs if p.multiple_results else outs[0]

    p.host, p.lower = small_host if on_host else host, small_lower


def _on_host(formula: Callable[..., Any], xs: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    axes = xs[0].ndim - 2
    count = math.prod(xs[0].shape[:axes])
    flat = [x.reshape(count, -1) for x in xs]
    outs = [np.empty((count, math.prod(a.shape[axes:])), a.dtype) for a in avals]
    for start in range(0, count, BLOCK):
        block = slice(start, start + BLOCK)
        results = formula(*[_nested(list(f[block].T.copy()), x.shape[axes:]) for f, x in zip(flat, xs, strict=True)])
        for out, result in zip(outs, results if isinstance(results, tuple) else (results,), strict=True):
            for i, element in enumerate(_elements(result)):
                out[block, i] = element
    return [out.reshape(a.shape) for out, a in zip(outs, avals, strict=True)]


def _in_program(
    ctx: Context, formula: Callable[..., Any], xs: Sequence[Value], avals: Sequence[ShapedArray]
) -> list[Value]:
    axes = len(xs[0].shape) - 2
    count = math.prod(xs[0].shape[:axes])
    constants: dict[Any, Value] = {}

    def reshaped(x: Value, shape: Sequence[int]) -> Value:
        return ctx.op("reshape", [x], x.aval.update(shape=tuple(shape)))

    def element(x: Value, i: int) -> Number:
        attributes = f"start_indices = {i64s((0, i))}, limit_indices = {i64s((count, i + 1))}, strides = {i64s((1, 1))}"
        column = ctx.op("slice", [x], x.aval.update(shape=(count, 1)), attributes)
        return Number(ctx, reshaped(column, (count,)), constants)

    def numbers(x: Value) -> Any:
        shape = x.shape[axes:]
        flat = reshaped(x, (count, math.prod(shape)))
        return _nested([element(flat, i) for i in range(flat.shape[1])], shape)

    def array(result: Any, aval: ShapedArray) -> Value:
        values = [e.value if isinstance(e, Number) else ctx.full((count,), e, aval.dtype) for e in _elements(result)]
        columns = [reshaped(v, (count, 1)) for v in values]
        whole = ctx.op(
            "concatenate", columns, aval.update(shape=(count, len(columns)), weak_type=False), "dimension = 1 : i64"
        )
        return reshaped(whole, aval.shape)

    results = formula(*map(numbers, xs))
    results = results if isinstance(results, tuple) else (results,)
    return [array(result, aval) for result, aval in zip(results, avals, strict=True)]


def _nested(flat: list[Any], shape: Sequence[int]) -> Any:
    """A list for a vector, a list of rows for a matrix."""
    return flat if len(shape) == 1 else [flat[i : i + shape[1]] for i in range(0, len(flat), shape[1])]


def _elements(x: Any) -> list[Any]:
    return [e for part in x for e in _elements(part)] if isinstance(x, list) else [x]


# What the numbers of both backends have in common beside their operators


def _where(condition: Any, x: Any, y: Any) -> Any:
    return (where_numbers if isinstance(condition, Number) else np.where)(condition, x, y)


def _is(x: Any, value: float) -> Any:
    return x.equals(value) if isinstance(x, Number) else x == value


def _sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Number) else np.sqrt(x)


def _log(x: Any) -> Any:
    return Number(x.ctx, _lower_log(x.ctx, x.value), x.constants) if isinstance(x, Number) else np.log(x)


_lower_log = lower_as(log_p.bind)


def _larger(x: Any, y: Any) -> Any:
    return x.at_least(y) if isinstance(x, Number) else np.maximum(x, y)


def _full(like: Any, value: float) -> Any:
    return like.constant(value) if isinstance(like, Number) else np.full_like(like, value)


def _dtype(x: Any) -> np.dtype:
    return x.value.dtype if isinstance(x, Number) else x.dtype


def _to(x: Any, dtype: Any) -> Any:
    return x.to(dtype) if isinstance(x, Number) else x.astype(dtype)


def _parts(x: Any) -> list[Any]:
    """The real and the imaginary part, or the real number itself."""
    if _dtype(x).kind != "c":
        return [x]
    if not isinstance(x, Number):
        return [x.real, x.imag]
    aval = x.value.aval.update(dtype=real_dtype(x.value.dtype))
    return [Number(x.ctx, x.ctx.op(name, [x.value], aval), x.constants) for name in ("real", "imag")]


def _joined(parts: Sequence[Any]) -> Any:
    """The inverse of `_parts`."""
    if len(parts) == 1:
        return parts[0]
    real, imag = parts
    if not isinstance(real, Number):
        out = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
        out.real, out.imag = real, imag
        return out
    aval = real.value.aval.update(dtype=np.result_type(real.value.dtype, np.complex64))
    return Number(real.ctx, real.ctx.op("complex", [real.value, imag.value], aval), real.constants)


def _real(x: Any) -> Any:
    return _parts(x)[0]


def _conj(x: Any) -> Any:
    re, *im = _parts(x)
    return _joined([re, -im[0]]) if im else x


def _squared(x: Any) -> Any:
    """``|x|^2``"""
    re, *im = _parts(x)
    return re * re + im[0] * im[0] if im else re * re


def _size(x: Any) -> Any:
    """``|Re x| + |Im x|``, by which LAPACK chooses pivots."""
    re, *im = _parts(x)
    return abs(re) + abs(im[0]) if im else abs(re)


def _times(r: Any, x: Any) -> Any:
    """A real number times a number."""
    return _joined([r * part for part in _parts(x)])


def _over(x: Any, r: Any) -> Any:
    """A number over a real one."""
    return _joined([part / r for part in _parts(x)])


def _any(conditions: Sequence[Any]) -> Any:
    return functools.reduce(operator.or_, conditions)


def _all(conditions: Sequence[Any]) -> Any:
    return functools.reduce(operator.and_, conditions)


def _sum(terms: Sequence[Any]) -> Any:
    first, *rest = terms
    return sum(rest, first)


def _repeat(unfinished: Callable[..., Any], step: Callable[..., Any], state: list[Any], most: int) -> list[Any]:
    """``state = step(*state)`` while that is unfinished for any matrix, at most so many times."""
    if not isinstance(state[0], Number):
        for _ in range(most):
            if not unfinished(*state).any():
                break
            state = step(*state)
        return state
    ctx = state[0].ctx
    count = ctx.constant(0, np.int32)
    avals, flag = [count.aval, *(x.value.aval for x in state)], ShapedArray((), np.dtype(bool))

    def numbers(values: Sequence[Value]) -> list[Number]:
        constants: dict[Any, Value] = {}
        return [Number(ctx, v, constants) for v in values]

    def either(ctx: Context, x: Value, y: Value) -> list[Value]:
        return [ctx.op("or", [x, y], flag)]

    def condition(ctx: Context, count: Value, *values: Value) -> list[Value]:
        lanes = unfinished(*numbers(values)).value
        some = ctx.op(
            "reduce", [lanes, ctx.constant(False, bool)], flag, "dimensions = array<i64: 0>",
            [ctx.region(either, [flag, flag])],
        )  # fmt: skip
        early = Number(ctx, count, {}) < most
        return [ctx.op("and", [some, early.value], flag)]

    def body(ctx: Context, count: Value, *values: Value) -> list[Value]:
        one = ctx.op("add", [count, ctx.constant(1, np.int32)], count.aval)
        return [one, *(x.value for x in step(*numbers(values)))]

    regions = [ctx.region(condition, avals), ctx.region(body, avals)]
    _, *outs = ctx.op("while", [count, *(x.value for x in state)], avals, "", regions)
    return [Number(ctx, v, x.constants) for v, x in zip(outs, state, strict=True)]


# Elimination


def _eliminate(rows: list[list[Any]], carried: int = 0) -> tuple[list[Any], list[list[Any]], Any, list[Any], Any]:
    """One step: bring the first column's largest element to the top, subtract multiples of its row from the others.

    The last `carried` columns are exchanged only. A column of zeros is left alone.

    Returns
    -------
    The first row; the others without their first column, which is zero; the number of the row that was exchanged with
    the first one; the factors of the multiples; the inverse of the pivot, 1 if that is zero.
    """
    top, *rest = rows
    largest = _size(top[0])
    pivot = _full(largest, 0)
    for i, row in enumerate(rest, 1):
        size = _size(row[0])
        larger = size > largest
        largest = _where(larger, size, largest)
        pivot = _where(larger, float(i), pivot)
    for i, row in enumerate(rest, 1):
        chosen = _is(pivot, i)
        rest[i - 1] = [_where(chosen, x, y) for x, y in zip(rows[0], row, strict=True)]
        top = [_where(chosen, x, y) for x, y in zip(row, top, strict=True)]
    inverse = 1.0 / _where(_is(top[0], 0), 1.0, top[0])
    factors = [row[0] * inverse for row in rest]
    reduced = len(top) - carried
    rest = [
        [x - factor * y for x, y in zip(row[1:reduced], top[1:reduced], strict=True)] + row[reduced:]
        for row, factor in zip(rest, factors, strict=True)
    ]
    return top, rest, pivot, factors, inverse


def lu(x: list[list[Any]]) -> tuple[Any, Any, Any]:
    """Formula of `lu_p`."""
    n = len(x)
    rows = [[*row, _full(_size(row[0]), i)] for i, row in enumerate(x)]  # with their numbers
    out, pivots, order = [], [], []
    for k in range(n):
        # Behind what is left of a row: its number, and its factors in the steps before.
        top, rows, pivot, factors, _ = _eliminate(rows, k + 1)
        rows = [[*row, factor] for row, factor in zip(rows, factors, strict=True)]
        out.append(top[n - k + 1 :] + top[: n - k])
        order.append(_to(top[n - k], np.int32))
        pivots.append(_to(pivot + k, np.int32))
    return out, pivots, order


def inv(x: list[list[Any]]) -> Any:
    """Formula of `inv_p`."""
    n = len(x)
    zero, one = _full(x[0][0], 0), _full(x[0][0], 1)
    rows = [[*row, *(one if i == j else zero for j in range(n))] for i, row in enumerate(x)]
    upper, inverses = [], []
    while rows:
        top, rows, _, _, inverse = _eliminate(rows)
        upper.append(top)
        inverses.append(inverse)
    singular = _any([_is(row[0], 0) for row in upper])
    out: list[list[Any]] = []
    for i in reversed(range(n)):
        row = upper[i][1:]
        out = [_solved(row[n - i - 1 :], row[: n - i - 1], out, inverses[i]), *out]
    return [[_where(singular, math.nan, x) for x in row] for row in out]


def _solved(b: list[Any], factors: list[Any], done: list[list[Any]], scale: Any = 1) -> list[Any]:
    """A row of the solution of triangular equations: ``(b - factors @ done) * scale``."""
    row = [
        _sum([y, *(-f * x for f, x in zip(factors, column, strict=True))]) for y, *column in zip(b, *done, strict=True)
    ]
    return row if isinstance(scale, int) else [x * scale for x in row]


def solve(
    a: Any, lu: list[list[Any]], permutation: list[Any], b: list[list[Any]], *, transpose_a: bool
) -> list[list[Any]]:
    """Formula of `solve_p`."""
    n = len(lu)
    inverses = [1.0 / lu[i][i] for i in range(n)]
    x: list[list[Any]] = []
    y: list[list[Any]] = []
    if not transpose_a:
        for i in range(n):
            y.append(_solved(_row(b, permutation[i]), lu[i][:i], y))
        for i in reversed(range(n)):
            x = [_solved(y[i], lu[i][i + 1 :], x, inverses[i]), *x]
        return x
    columns = [list(column) for column in zip(*lu, strict=True)]
    for i in range(n):
        y.append(_solved(b[i], columns[i][:i], y, inverses[i]))
    for i in reversed(range(n)):
        x = [_solved(y[i], columns[i][i + 1 :], x), *x]
    return [
        [_last([(_is(p, i), e) for p, e in zip(permutation, column, strict=True)]) for column in zip(*x, strict=True)]
        for i in range(n)
    ]


def _row(rows: list[list[Any]], number: Any) -> list[Any]:
    """The row of this number."""
    return [_last([(_is(number, i), x) for i, x in enumerate(column)]) for column in zip(*rows, strict=True)]


def _last(cases: list[tuple[Any, Any]]) -> Any:
    """Of pairs (condition, value) the last value whose condition holds; the first value if none does."""
    (_, out), *rest = cases
    for condition, x in rest:
        out = _where(condition, x, out)
    return out


def det(x: list[list[Any]]) -> Any:
    """Formula of `det_p`: elimination down to two rows."""
    if len(x) == 1:
        return x[0][0]
    if len(x) == 2:
        (a, b), (c, d) = x
        return a * d - b * c
    top, rest, pivot, _, _ = _eliminate(x)
    product = top[0] * det(rest)
    return _where(_is(pivot, 0), product, -product)


def slogdet(x: list[list[Any]]) -> tuple[Any, Any]:
    """Formula of `slogdet_p`."""
    signs, logs, rows = [], [], x
    while rows:
        top, rows, pivot, _, _ = _eliminate(rows)
        size = _sqrt(_squared(top[0])) if _dtype(top[0]).kind == "c" else abs(top[0])
        logs.append(_log(size))
        sign = _over(top[0], _where(_is(size, 0), 1.0, size))
        signs.append(_where(_is(pivot, 0), sign, -sign))
    return math.prod(signs[1:], start=signs[0]), _sum(logs)


def cholesky(x: list[list[Any]]) -> list[list[Any]]:
    """Formula of `cholesky_p`."""
    n = len(x)
    out: list[list[Any]] = []
    inverses: list[Any] = []
    positive = []
    for i in range(n):
        row: list[Any] = []
        for j in range(i):
            left = _sum([x[i][j], *(-a * _conj(b) for a, b in zip(row, out[j], strict=False))])
            row.append(_times(inverses[j], left))
        pivot = _sum([_real(x[i][i]), *(-_squared(a) for a in row)])
        root = _sqrt(pivot)
        inverses.append(1.0 / root)
        positive.append(pivot > 0)
        out.append([*row, _to(root, _dtype(x[i][i]))])
    good = _all(positive)
    return [[_where(good, y, math.nan) for y in row] + [0.0] * (n - len(row)) for row in out]


def hermitian_part(x: list[list[Any]]) -> list[list[Any]]:
    """Formula of `hermitian_part_p`."""
    n = range(len(x))
    return [[_times(0.5, x[i][j] + _conj(x[j][i])) for j in n] for i in n]


# Eigenvalues


def eigh(x: list[list[Any]], *, lower: bool, vectors: bool) -> tuple[Any, ...]:
    """Formula of `eigh_p`: Jacobi's method, cyclic by rows (Golub and Van Loan 2013, section 8.5).

    Each rotation makes an element beside the diagonal zero. They end when what is left beside it is no longer seen:
    convergence is quadratic, and takes 4 to 6 rounds.
    """
    n = len(x)
    values = [_real(x[i][i]) for i in range(n)]
    pairs = list(itertools.combinations(range(n), 2))
    beside = [_conj(x[j][i]) if lower else x[i][j] for i, j in pairs]
    # Matrices whose squares would overflow or vanish are scaled.
    largest = abs(values[0])
    for part in [*values[1:], *(part for e in beside for part in _parts(e))]:
        largest = _larger(largest, abs(part))
    info = np.finfo(_dtype(largest))
    smallest = 16 * math.sqrt(info.tiny) / float(info.eps)
    finite = largest < math.inf
    scale = _where((largest > 1 / smallest) | (largest < smallest), largest, 1.0)
    scale = _where(finite & (scale > 0), scale, 1.0)
    values, beside = ([_where(finite, _over(e, scale), 0.0) for e in es] for es in (values, beside))
    eye = [_full(x[0][0], i == j) for i in range(n) for j in range(n)] if vectors else []

    def unfinished(*state: Any) -> Any:
        rest = _sum([_squared(e) for e in state[n : n + len(pairs)]])
        return rest > (float(info.eps) / 8) ** 2 * _sum([rest, *(e * e for e in state[:n])])

    def step(*state: Any) -> list[Any]:
        w, v = list(state[:n]), _nested(list(state[n + len(pairs) :]), (n, n))
        a = dict(zip(pairs, state[n:], strict=False))
        for p, q in pairs:
            _rotate(w, a, v, p, q)
        return [*w, *a.values(), *_elements(v)]

    state = [*values, *beside, *eye]
    if pairs:
        state = _repeat(unfinished, step, state, 16)
    w, columns = state[:n], [state[n + len(pairs) + j :: n] for j in range(n)]
    for i, j in ((i, i + 1) for end in range(n - 1, 0, -1) for i in range(end)):  # bubble sort
        exchange = w[j] < w[i]
        w[i], w[j] = _where(exchange, w[j], w[i]), _where(exchange, w[i], w[j])
        both = list(zip(columns[i], columns[j], strict=True))
        columns[i] = [_where(exchange, y, x) for x, y in both]
        columns[j] = [_where(exchange, x, y) for x, y in both]
    w = [_where(finite, e * scale, math.nan) for e in w]
    if not vectors:
        return (w,)
    return [[_where(finite, column[i], math.nan) for column in columns] for i in range(n)], w


def _rotate(w: list[Any], a: dict[tuple[int, int], Any], v: list[list[Any]], p: int, q: int) -> None:
    """Make element (p, q) of the matrix zero that has `w` on its diagonal and `a` above it; `v` goes along."""
    e, gap = a[p, q], w[q] - w[p]
    size = abs(gap) + _sqrt(gap * gap + 4.0 * _squared(e))
    factor = _where(gap < 0, -2.0, _full(gap, 2)) / _where(_is(size, 0), 1.0, size)
    tangent = _times(factor, e)
    cosine = 1.0 / _sqrt(1.0 + _squared(tangent))
    sine = _times(cosine, tangent)

    def turned(x: Any, y: Any) -> tuple[Any, Any]:
        return _times(cosine, x) - _conj(sine) * y, sine * x + _times(cosine, y)

    shift = factor * _squared(e)
    w[p], w[q] = w[p] - shift, w[q] + shift
    a[p, q] = e * 0.0
    for r in range(len(w)):
        if r in (p, q):
            continue
        # Elements (r, p) and (r, q), of which that above the diagonal is stored.
        x, y = (a[r, k] if r < k else _conj(a[k, r]) for k in (p, q))
        for k, z in zip((p, q), turned(x, y), strict=True):
            a[min(r, k), max(r, k)] = z if r < k else _conj(z)
    for row in v:
        row[p], row[q] = turned(row[p], row[q])
