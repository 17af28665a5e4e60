"""Programs with control flow, for the tests of compositions: each beside a plain NumPy version of itself.

A program takes arrays and returns a list of arrays. The points are smooth: no branch or number of steps changes near
them, nor when the arguments are scaled by the factors of `SCALES`, but between these they do.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import xform
from xform import lax
from xform.core import tree
from xform.lax import add, exp, mul, reduce_sum, sin, sub, tanh

SCALES = np.array([1.0, 0.6, -0.8])


@dataclasses.dataclass(frozen=True)
class Program:
    """A function, its NumPy version, and a point."""

    name: str
    f: Callable[..., list[Any]]
    plain: Callable[..., list[Any]]
    args: tuple

    def __repr__(self) -> str:
        return self.name


X = np.array([0.7, -0.4, 1.1])
Y = np.float64(0.8)
TABLE = np.linspace(-1.0, 1.0, 18).reshape(6, 3)  # large enough to be a hidden argument of compiled programs


def total(x):
    return reduce_sum(x, tuple(range(x.ndim)))


# ---- Straight lines, branches ------------------------------------------------------------------------------


def straight(x, y):
    z = mul(sin(x), x)
    return [add(z, y), total(mul(z, z))]


def plain_straight(x, y):
    z = np.sin(x) * x
    return [z + y, (z * z).sum()]


def branch(x, y):
    """Branches with different residuals, one of which ignores an operand."""
    return [lax.cond(lax.gt(total(x), 0.0), lambda a, b: mul(sin(a), b), lambda a, b: mul(exp(a), 2.0), x, y)]


def plain_branch(x, y):
    return [np.sin(x) * y if x.sum() > 0 else np.exp(x) * 2]


def switched(x, y):
    """The index depends on the data; the branches close over a tracer and an array."""
    index = lax.convert_element_type(mul(y, 3.2), np.int32)
    branches = [lambda a: mul(a, a), lambda a: mul(sin(a), y), lambda a: add(a, TABLE[0])]
    return [lax.switch(index, branches, x)]


def plain_switched(x, y):
    index = min(max(int(y * 3.2), 0), 2)
    return [[x * x, np.sin(x) * y, x + TABLE[0]][index]]


def selected(x, y):
    mask = lax.gt(x, mul(y, 0.5))
    return [lax.select_n(mask, mul(x, x), sin(x)), lax.max(x, mul(y, 0.3))]


def plain_selected(x, y):
    return [np.where(x > y * 0.5, np.sin(x), x * x), np.maximum(x, y * 0.3)]


# ---- Loops -------------------------------------------------------------------------------------------------


def scanned(x, y):
    """A carry of two parts, ys, a constant of the loop, an array that was closed over."""

    def step(carry, z):
        a, b = carry
        new = mul(sin(add(a, z)), y)
        return (new, add(b, total(mul(new, TABLE[1])))), mul(new, b)

    (a, b), zs = lax.scan(step, (x, np.float64(0.5)), TABLE)
    return [a, b, zs]


def plain_scanned(x, y):
    a, b, zs = x, 0.5, []
    for z in TABLE:
        new = np.sin(a + z) * y
        zs.append(new * b)
        a, b = new, b + (new * TABLE[1]).sum()
    return [a, np.asarray(b), np.stack(zs)]


def scanned_backwards(x, y):
    """From the end, unrolled, with a counter and a part of the carry that stays as it is."""

    def step(carry, z):
        i, fixed, a = carry
        return (add(i, 1), fixed, add(mul(a, fixed), mul(z, lax.convert_element_type(i, np.float64)))), (a, i)

    (i, fixed, a), (seen, _) = lax.scan(step, (np.int64(0), y, np.float64(1.0)), x, reverse=True, unroll=3)
    return [a, fixed, seen, lax.convert_element_type(i, np.float64)]


def plain_scanned_backwards(x, y):
    a, seen = 1.0, np.zeros(3)
    for i, k in enumerate(range(2, -1, -1)):
        seen[k] = a
        a = a * y + x[k] * i
    return [np.asarray(a), np.asarray(y), seen, np.asarray(3.0)]


def counted(x, y):
    def body(i, a):
        return add(mul(a, y), lax.convert_element_type(i, np.float64))

    return [lax.fori_loop(2, 6, body, x)]


def plain_counted(x, y):
    for i in range(2, 6):
        x = x * y + i
    return [x]


def until(x, y):
    """The number of steps depends on the data, and in a batch differs from lane to lane."""

    def go(carry):
        return lax.lt(total(mul(carry[0], carry[0])), 30.0)

    def body(carry):
        a, n = carry
        return add(mul(a, 1.7), mul(y, 0.1)), add(n, 1.0)

    return list(lax.while_loop(go, body, (x, np.float64(0.0))))


def plain_until(x, y):
    n = 0.0
    while (x * x).sum() < 30:
        x, n = x * 1.7 + y * 0.1, n + 1
    return [x, np.asarray(n)]


def nested_loops(x, y):
    """A scan in a branch of a scan."""

    def inner(a, z):
        return mul(a, add(1.0, mul(z, y))), sin(a)

    def outer(carry, z):
        def run(a):
            b, seen = lax.scan(inner, a, x)
            return add(b, total(seen))

        new = lax.cond(lax.gt(z, 0.0), run, lambda a: sub(a, mul(y, z)), carry)
        return new, mul(new, new)

    last, squares = lax.scan(outer, y, x)
    return [last, squares]


def plain_nested_loops(x, y):
    carry, squares = y, []
    for z in x:
        if z > 0:
            b, seen = carry, 0.0
            for w in x:
                b, seen = b * (1 + w * y), seen + np.sin(b)
            carry = b + seen
        else:
            carry = carry - y * z
        squares.append(carry * carry)
    return [np.asarray(carry), np.stack(squares)]


# ---- Calls, closures, structures ---------------------------------------------------------------------------


@xform.jit
def _shared(a, b):
    return mul(sin(a), b), add(a, b)


def calls(x, y):
    """A compiled function called three times, inside another one, that closes over tracers and an array."""

    @xform.jit
    def outer(z):
        a, b = _shared(z, y)
        c, _ = _shared(mul(a, x), b)
        return add(c, _shared(z, 2.0)[1])

    return [outer(x), outer(mul(x, y))]


def plain_calls(x, y):
    def shared(a, b):
        return np.sin(a) * b, a + b

    def outer(z):
        a, b = shared(z, y)
        return shared(a * x, b)[0] + shared(z, 2.0)[1]

    return [outer(x), outer(x * y)]


class Pair:
    """A user's own kind of pytree node."""

    def __init__(self, left, right, tag):
        self.left, self.right, self.tag = left, right, tag


tree.register_pytree_node(Pair, lambda p: ((p.left, p.right), p.tag), lambda tag, children: Pair(*children, tag))


def structures(x, y):
    @xform.jit
    def f(pair, more):
        return Pair(mul(pair.left, pair.right), {"s": more["s"][0]}, pair.tag)

    out = f(Pair(x, y, "tag"), {"s": (sin(x), None)})
    assert out.tag == "tag"
    carry, _ = lax.scan(lambda p, z: (Pair(add(p.left, z), p.right, p.tag), None), Pair(y, out.left, 0), x)
    return [out.left, out.right["s"], carry.left, carry.right]


def plain_structures(x, y):
    return [x * y, np.sin(x), y + x.sum(), x * y]


# ---- Types -------------------------------------------------------------------------------------------------


def complex_numbers(z, y):
    """Analytic and other functions of complex numbers, a real argument among them."""
    w = mul(z, lax.convert_element_type(y, np.complex128))
    return [mul(w, exp(w)), total(add(mul(lax.real(z), lax.real(w)), lax.imag(w)))]


def plain_complex_numbers(z, y):
    w = z * y
    return [w * np.exp(w), (z.real * w.real + w.imag).sum()]


def integers(x, n, mask):
    """Integer and boolean arguments and results beside floats, in a loop too."""

    def body(carry, k):
        i, a = carry
        return (add(i, k), mul(a, add(1.0, mul(lax.convert_element_type(i, np.float64), 0.1)))), i

    (i, a), seen = lax.scan(body, (np.int64(1), x), n)
    return [lax.select_n(mask, a, x), i, lax.convert_element_type(seen, np.float64), mask]


def plain_integers(x, n, mask):
    i, a, seen = 1, x, []
    for k in n:
        seen.append(float(i))
        i, a = i + k, a * (1 + i * 0.1)
    return [np.where(mask, x, a), np.asarray(i), np.array(seen), mask]


def network(w, x):
    def layer(h, w):
        return tanh(lax.dot_general(w, h, (((1,), (0,)), ((), ())))), None

    h, _ = lax.scan(layer, x, lax.broadcast_in_dim(w, (2, 2, 2), (1, 2)))
    return [h, total(mul(h, h))]


def plain_network(w, x):
    h = np.tanh(w @ np.tanh(w @ x))
    return [h, (h * h).sum()]


def rows(x, y):
    """Slices at traced places, updates, concatenation."""
    n = lax.convert_element_type(mul(y, 2.0), np.int64)
    piece = lax.dynamic_slice(x, (n,), (2,))
    new = lax.dynamic_update_slice(mul(x, y), sin(piece), (add(n, -1),))
    return [lax.concatenate([new, piece], 0), lax.cumsum(new)]


def plain_rows(x, y):
    n = min(max(int(y * 2.0) + (3 if y * 2 <= -1 else 0), 0), 1)
    piece = x[n : n + 2]
    new = x * y
    at = int(y * 2.0) - 1
    at = min(max(at + (3 if at < 0 else 0), 0), 1)
    new[at : at + 2] = np.sin(piece)
    return [np.concatenate([new, piece]), np.cumsum(new)]


PROGRAMS = [
    Program("straight", straight, plain_straight, (X, Y)),
    Program("branch", branch, plain_branch, (X, Y)),
    Program("switched", switched, plain_switched, (X, Y)),
    Program("selected", selected, plain_selected, (X, Y)),
    Program("scanned", scanned, plain_scanned, (X, Y)),
    Program("scanned_backwards", scanned_backwards, plain_scanned_backwards, (X, Y)),
    Program("counted", counted, plain_counted, (X, Y)),
    Program("until", until, plain_until, (X, Y)),
    Program("nested_loops", nested_loops, plain_nested_loops, (X, Y)),
    Program("calls", calls, plain_calls, (X, Y)),
    Program("structures", structures, plain_structures, (X, Y)),
    Program("complex_numbers", complex_numbers, plain_complex_numbers, (X + 0.5j * X[::-1], Y)),
    Program("integers", integers, plain_integers, (X, np.array([2, -1, 3]), np.array([True, False, True]))),
    Program("network", network, plain_network, (np.array([[0.5, -0.3], [0.8, 1.1]]), X[:2])),
    Program("rows", rows, plain_rows, (X, Y)),
]
