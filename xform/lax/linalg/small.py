"""Many small matrices: decompositions with every element written out, of a whole batch at once.

LAPACK takes 50 to 3000 ns for a matrix of up to 4 rows, most of it for everything but arithmetic. Here each element of
the matrices is one vector over the batch, and a decomposition is arithmetic on such vectors: elimination with row
exchanges, Cholesky's formula, Jacobi's rotations. The algorithms are as stable as LAPACK's; closed formulas by
cofactors or trigonometric functions are not (Kopp 2008, arXiv:physics/0610206).

May import: `lax.linalg.unrolled`.
"""

import functools
import itertools
import math
import operator
from typing import Any

import numpy as np

from xform.lax.linalg.unrolled import (
    all_of,
    any_of,
    conjugate,
    converted,
    dtype_of,
    elements,
    equals,
    full_like,
    larger,
    log,
    nested,
    one_loop,
    over,
    parts,
    pivot_size,
    real,
    repeat,
    sqrt,
    squared,
    times,
    total,
    where,
)

# Elimination


def _exchanged(rows: list[list[Any]]) -> tuple[list[list[Any]], Any]:
    """The row whose first element is largest exchanged with the first one, as in LAPACK; and its number."""
    top, *rest = rows
    largest = pivot_size(top[0])
    pivot = full_like(largest, 0)
    for i, row in enumerate(rest, 1):
        size = pivot_size(row[0])
        exceeds = size > largest
        largest = where(exceeds, size, largest)
        pivot = where(exceeds, float(i), pivot)
    for i, row in enumerate(rest, 1):
        chosen = equals(pivot, i)
        rest[i - 1] = [where(chosen, x, y) for x, y in zip(rows[0], row, strict=True)]
        top = [where(chosen, x, y) for x, y in zip(row, top, strict=True)]
    return [top, *rest], pivot


def _largest_first(rows: list[list[Any]]) -> tuple[list[list[Any]], list[Any]]:
    """The like by exchanges one after the other, which cost less, but where the old first row ends is anywhere.

    Also returned: for each exchange, whether it took place.
    """
    top, *rest = rows
    largest = pivot_size(top[0])
    exchanges = []
    for i, row in enumerate(rest):
        size = pivot_size(row[0])
        exceeds = size > largest
        largest = where(exceeds, size, largest)
        rest[i] = [where(exceeds, x, y) for x, y in zip(top, row, strict=True)]
        top = [where(exceeds, x, y) for x, y in zip(row, top, strict=True)]
        exchanges.append(exceeds)
    return [top, *rest], exchanges


def _signed(x: Any, exchanges: list[Any]) -> Any:
    """Minus x if the number of exchanges is odd. (A product, as XLA splits the loop where x is used twice.)"""
    odd = functools.reduce(operator.xor, exchanges)
    return where(odd, full_like(x, -1), full_like(x, 1)) * x


def _eliminate(rows: list[list[Any]], carried: int = 0) -> tuple[list[list[Any]], list[Any], Any]:
    """Subtract multiples of the first row from the others, so that their first column is zero.

    The last `carried` columns are left alone, and all if the pivot is zero.

    Returns
    -------
    The other rows without their first column; the factors of the multiples; the inverse of the pivot, or 1.
    """
    top, *rest = rows
    inverse = 1.0 / where(equals(top[0], 0), 1.0, top[0])
    factors = [row[0] * inverse for row in rest]
    reduced = len(top) - carried
    rest = [
        [x - factor * y for x, y in zip(row[1:reduced], top[1:reduced], strict=True)] + row[reduced:]
        for row, factor in zip(rest, factors, strict=True)
    ]
    return rest, factors, inverse


@one_loop
def lu(x: list[list[Any]]) -> tuple[Any, Any, Any]:
    """Formula of `lu_p`."""
    n = len(x)
    rows = [[*row, full_like(pivot_size(row[0]), i)] for i, row in enumerate(x)]  # with their numbers
    out, pivots, order = [], [], []
    for k in range(n):
        # Behind what is left of a row: its number, and its factors in the steps before.
        (top, *rest), pivot = _exchanged(rows)
        rows, factors, _ = _eliminate([top, *rest], k + 1)
        rows = [[*row, factor] for row, factor in zip(rows, factors, strict=True)]
        out.append(top[n - k + 1 :] + top[: n - k])
        order.append(converted(top[n - k], np.int32))
        pivots.append(converted(pivot + k, np.int32))
    return out, pivots, order


@one_loop
def inv(x: list[list[Any]]) -> Any:
    """Formula of `inv_p`."""
    n = len(x)
    zero, one = full_like(x[0][0], 0), full_like(x[0][0], 1)
    rows = [[*row, *(one if i == j else zero for j in range(n))] for i, row in enumerate(x)]
    upper, inverses = [], []
    while rows:
        (top, *rest), _ = _largest_first(rows)
        rows, _, inverse = _eliminate([top, *rest])
        upper.append(top)
        inverses.append(inverse)
    singular = any_of([equals(row[0], 0) for row in upper])
    out: list[list[Any]] = []
    for i in reversed(range(n)):
        row = upper[i][1:]
        out = [_solved(row[n - i - 1 :], row[: n - i - 1], out, inverses[i]), *out]
    return [[where(singular, math.nan, x) for x in row] for row in out]


def _solved(b: list[Any], factors: list[Any], done: list[list[Any]], scale: Any = 1) -> list[Any]:
    """A row of the solution of triangular equations: ``(b - factors @ done) * scale``."""
    row = [
        total([y, *(-f * x for f, x in zip(factors, column, strict=True))]) for y, *column in zip(b, *done, strict=True)
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
        [
            _last([(equals(p, i), e) for p, e in zip(permutation, column, strict=True)])
            for column in zip(*x, strict=True)
        ]
        for i in range(n)
    ]


def _row(rows: list[list[Any]], number: Any) -> list[Any]:
    """The row of this number."""
    return [_last([(equals(number, i), x) for i, x in enumerate(column)]) for column in zip(*rows, strict=True)]


def _last(cases: list[tuple[Any, Any]]) -> Any:
    """Of pairs (condition, value) the last value whose condition holds; the first value if none does."""
    (_, out), *rest = cases
    for condition, x in rest:
        out = where(condition, x, out)
    return out


def det(x: list[list[Any]]) -> Any:
    """Formula of `det_p`: elimination down to two rows."""
    if len(x) == 1:
        return x[0][0]
    if len(x) == 2:
        (a, b), (c, d) = x
        return a * d - b * c
    rows, exchanges = _largest_first(x)
    rest, _, _ = _eliminate(rows)
    return _signed(rows[0][0], exchanges) * det(rest)


def slogdet(x: list[list[Any]]) -> tuple[Any, Any]:
    """Formula of `slogdet_p`."""
    sign, sizes = _sign_and_sizes(x)
    return sign, total([log(size) for size in sizes])


@one_loop
def _sign_and_sizes(x: list[list[Any]]) -> tuple[Any, list[Any]]:
    """The determinant's sign, and the moduli of the pivots, of which it is the product."""
    signs, sizes, rows = [], [], x
    while rows:
        (top, *rest), exchanges = _largest_first(rows)
        rows, _, _ = _eliminate([top, *rest])
        size = sqrt(squared(top[0])) if dtype_of(top[0]).kind == "c" else abs(top[0])
        sizes.append(size)
        sign = over(top[0], where(equals(size, 0), 1.0, size))
        signs.append(_signed(sign, exchanges) if exchanges else sign)
    return math.prod(signs[1:], start=signs[0]), sizes


@one_loop
def cholesky(x: list[list[Any]]) -> list[list[Any]]:
    """Formula of `cholesky_p`."""
    n = len(x)
    out: list[list[Any]] = []
    inverses: list[Any] = []
    positive = []
    for i in range(n):
        row: list[Any] = []
        for j in range(i):
            left = total([x[i][j], *(-a * conjugate(b) for a, b in zip(row, out[j], strict=False))])
            row.append(times(inverses[j], left))
        pivot = total([real(x[i][i]), *(-squared(a) for a in row)])
        root = sqrt(pivot)
        inverses.append(1.0 / root)
        positive.append(pivot > 0)
        out.append([*row, converted(root, dtype_of(x[i][i]))])
    good = all_of(positive)
    return [[where(good, y, math.nan) for y in row] + [0.0] * (n - len(row)) for row in out]


def hermitian_part(x: list[list[Any]]) -> list[list[Any]]:
    """Formula of `hermitian_part_p`."""
    n = range(len(x))
    return [[times(0.5, x[i][j] + conjugate(x[j][i])) for j in n] for i in n]


# Eigenvalues


def eigh(x: list[list[Any]], *, lower: bool, vectors: bool) -> tuple[Any, ...]:
    """Formula of `eigh_p`: Jacobi's method, cyclic by rows (Golub and Van Loan 2013, section 8.5).

    Each rotation makes an element beside the diagonal zero. They end when what is left beside it is no longer seen:
    convergence is quadratic, and takes 4 to 6 rounds.
    """
    n = len(x)
    pairs = list(itertools.combinations(range(n), 2))
    diagonal = [x[i][i] for i in range(n)]
    w, beside, scale = _scaled(diagonal, [x[j][i] if lower else x[i][j] for i, j in pairs], conjugated=lower)
    eye = [full_like(x[0][0], i == j) for i in range(n) for j in range(n)] if vectors else []
    tolerance = _negligible(scale)

    def unfinished(*state: Any) -> Any:
        rest = total([squared(e) for e in state[n : n + len(pairs)]])
        return rest > tolerance * total([rest, *(e * e for e in state[:n])])

    @one_loop
    def step(*state: Any) -> list[Any]:
        w, v = list(state[:n]), nested(list(state[n + len(pairs) :]), (n, n))
        a = dict(zip(pairs, state[n:], strict=False))
        for p, q in pairs:
            _rotate(w, a, v, p, q)
        return [*w, *a.values(), *elements(v)]

    state = [*w, *beside, *eye]
    if pairs:
        state = repeat(unfinished, step, state, 16)
    w, v = _sorted(state[:n], nested(state[n + len(pairs) :], (n, n)), scale)
    return (v, w) if vectors else (w,)


@one_loop
def _scaled(diagonal: list[Any], beside: list[Any], *, conjugated: bool) -> tuple[list[Any], list[Any], Any]:
    """Elements on and beside the diagonal, over a scale that lets their squares neither overflow nor vanish.

    Of matrices that are not finite the elements are 0, and the scale is NaN.
    """
    diagonal = [real(x) for x in diagonal]
    largest = abs(diagonal[0])
    for part in [*diagonal[1:], *(part for e in beside for part in parts(e))]:
        largest = larger(largest, abs(part))
    info = np.finfo(dtype_of(largest))
    smallest = 16 * math.sqrt(info.tiny) / float(info.eps)
    finite = largest < math.inf
    scale = where((largest > 1 / smallest) | (largest < smallest), largest, 1.0)
    scale = where(finite & (scale > 0), scale, 1.0)
    diagonal, beside = ([where(finite, over(e, scale), 0.0) for e in es] for es in (diagonal, beside))
    return diagonal, [conjugate(e) for e in beside] if conjugated else beside, where(finite, scale, math.nan)


@one_loop
def _sorted(w: list[Any], v: list[list[Any]], scale: Any) -> tuple[list[Any], list[list[Any]]]:
    """Eigenvalues times the scale, in ascending order, and their vectors; NaN where the scale is."""
    w, columns, n = list(w), [list(column) for column in zip(*v, strict=True)], len(w)
    for i, j in ((i, i + 1) for end in range(n - 1, 0, -1) for i in range(end)):  # bubble sort
        exchange = w[j] < w[i]
        w[i], w[j] = where(exchange, w[j], w[i]), where(exchange, w[i], w[j])
        if columns:
            both = list(zip(columns[i], columns[j], strict=True))
            columns[i] = [where(exchange, y, x) for x, y in both]
            columns[j] = [where(exchange, x, y) for x, y in both]
    valid = scale > 0
    rows = [[where(valid, x, math.nan) for x in row] for row in zip(*columns, strict=True)]
    return [e * scale for e in w], rows


def _negligible(x: Any) -> float:
    """The square of what is too small to be seen beside numbers of size one."""
    return float((np.finfo(dtype_of(x)).eps / 8) ** 2)


def _rotate(w: list[Any], a: dict[tuple[int, int], Any], v: list[list[Any]], p: int, q: int) -> None:
    """Make element (p, q) of the matrix zero that has `w` on its diagonal and `a` above it; `v` goes along."""
    e, gap = a[p, q], w[q] - w[p]
    # Beside equal eigenvalues even rounding errors would be turned, by any angle, as long as other matrices take.
    e = where(squared(e) > _negligible(gap) * abs(w[p] * w[q]), e, e * 0.0)
    size = abs(gap) + sqrt(gap * gap + 4.0 * squared(e))
    factor = where(gap < 0, -2.0, full_like(gap, 2)) / where(equals(size, 0), 1.0, size)
    tangent = times(factor, e)
    cosine = 1.0 / sqrt(1.0 + squared(tangent))
    sine = times(cosine, tangent)

    def turned(x: Any, y: Any) -> tuple[Any, Any]:
        return times(cosine, x) - conjugate(sine) * y, sine * x + times(cosine, y)

    shift = factor * squared(e)
    w[p], w[q] = w[p] - shift, w[q] + shift
    a[p, q] = e * 0.0
    for r in range(len(w)):
        if r in (p, q):
            continue
        # Elements (r, p) and (r, q), of which that above the diagonal is stored.
        x, y = (a[r, k] if r < k else conjugate(a[k, r]) for k in (p, q))
        for k, z in zip((p, q), turned(x, y), strict=True):
            a[min(r, k), max(r, k)] = z if r < k else conjugate(z)
    for row in v:
        row[p], row[q] = turned(row[p], row[q])
