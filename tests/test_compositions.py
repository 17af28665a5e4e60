"""Compositions of transformations, one to three deep, over programs with control flow.

A composition is a word over four letters, outermost first, each of which turns a function of arrays into another one:

    J  forward mode along a fixed direction      V  vmap over factors that scale the float arguments
    G  reverse mode with fixed weights           C  jit

What a word should give comes from its slow twin: J is itself (and is checked against differences), G is built of
forward derivatives along all basis directions, V is a Python loop, C does nothing.
"""

import itertools

import numpy as np
import pytest

import xform
from tests.programs import PROGRAMS, SCALES
from xform import lax
from xform.core.config import debug_nans, enable_checks, small_programs
from xform.lax import add, cos, exp, log, mul, neg, reduce_sum, sin, sub
from xform.test_util import check_grads, numerical_jvp

# ---- The letters -------------------------------------------------------------------------------------------


def inexact(x):
    return x.dtype.kind in "fc"


def pattern(x, phase):
    """A fixed array of the shape and dtype of `x`, for directions and weights."""
    values = np.cos(np.arange(x.size, dtype=float).reshape(x.shape) * 1.7 + phase)
    return values.astype(x.dtype) * (np.exp(0.3j) if x.dtype.kind == "c" else 1)


def smooth(f, xs):
    """`f` as a function of the inexact arguments to the inexact results."""
    where = [i for i, x in enumerate(xs) if inexact(x)]

    def g(*chosen):
        full = list(xs)
        for i, x in zip(where, chosen, strict=True):
            full[i] = x
        return [o for o in f(*full) if inexact(o)]

    return g, tuple(xs[i] for i in where)


def forward(f):
    def g(*xs):
        h, chosen = smooth(f, xs)
        return xform.jvp(h, chosen, tuple(pattern(x, 0.3) for x in chosen))[1]

    return g


def reverse(f):
    def g(*xs):
        h, chosen = smooth(f, xs)
        outs, pull = xform.vjp(h, *chosen)
        return list(pull([pattern(o, 0.9) for o in outs]))

    return g


def mapped(f):
    def g(*xs):
        return xform.vmap(lambda s: f(*[scaled(x, s) for x in xs]))(SCALES)

    return g


def compiled(f):
    return xform.jit(lambda *xs: f(*xs))


def scaled(x, s):
    return mul(x, lax.convert_element_type(s, x.dtype)) if inexact(x) else x


def slow_reverse(f):
    """A cotangent g has Re sum(g t) = Re sum(w jvp(t)) for every direction t: all basis directions tell it."""

    def g(*xs):
        h, chosen = smooth(f, xs)

        def weighed(tangents):
            outs = xform.jvp(h, chosen, tangents)[1]
            products = [mul(o, pattern(o, 0.9)) for o in outs]
            terms = [lax.real(p) if p.dtype.kind == "c" else p for p in products]
            return sum_of([reduce_sum(t, tuple(range(t.ndim))) for t in terms])

        out = []
        for i, x in enumerate(chosen):
            entries = []
            for k in range(x.size):
                units = [np.zeros(y.shape, y.dtype) for y in chosen]
                unit = np.zeros(x.size, x.dtype)
                unit[k] = 1
                units[i] = unit.reshape(x.shape)
                entry = weighed(tuple(units))
                if x.dtype.kind == "c":
                    units[i] = 1j * units[i]
                    entry = lax.complex(entry, neg(weighed(tuple(units))))
                entries.append(lax.reshape(entry, (1,)))
            out.append(lax.reshape(lax.concatenate(entries, 0), x.shape))
        return out

    return g


def sum_of(xs):
    total = xs[0]
    for x in xs[1:]:
        total = add(total, x)
    return total


def slow_mapped(f):
    def g(*xs):
        rows = [f(*[scaled(x, s) for x in xs]) for s in SCALES]
        return [lax.concatenate([lax.reshape(o, (1, *o.shape)) for o in column], 0) for column in zip(*rows)]

    return g


FAST = {"J": forward, "G": reverse, "V": mapped, "C": compiled}
SLOW = {"J": forward, "G": slow_reverse, "V": slow_mapped, "C": lambda f: f}


def word_of(letters, word, f):
    for letter in reversed(word):
        f = letters[letter](f)
    return f


def words(lengths):
    return ["".join(w) for n in lengths for w in itertools.product("JGVC", repeat=n)]


_expected: dict[tuple, list[np.ndarray]] = {}


def expected(program, word):
    key = (program.name, word.replace("C", ""))
    if key not in _expected:
        with enable_checks(False), debug_nans(False):
            _expected[key] = [np.asarray(o) for o in word_of(SLOW, word, program.f)(*program.args)]
    return _expected[key]


def check(got, want, what, rtol=1e-11):
    got = [np.asarray(o) for o in got]
    assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in want], what
    for g, w in zip(got, want, strict=True):
        scale = abs(w).max(initial=1.0)
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol * scale, err_msg=what)


each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)

# ---- The programs themselves -------------------------------------------------------------------------------


@each_program
def test_values(program):
    for s in SCALES:
        args = [x * s if inexact(x) else x for x in program.args]
        for f in (program.f, xform.jit(program.f)):
            check(f(*args), program.plain(*args), f"{program} scaled by {s}", 1e-13)


@each_program
def test_forward_derivatives_are_those_of_the_plain_program(program):
    """Against differences of the NumPy version, which knows nothing of this library."""
    for s in SCALES:
        args = [x * s if inexact(x) else x for x in program.args]
        f, chosen = smooth(program.plain, args)
        numeric = numerical_jvp(f, chosen, tuple(pattern(x, 0.3) for x in chosen))
        check(forward(program.f)(*args), numeric, f"{program} scaled by {s}", 1e-7)


@each_program
def test_derivatives_up_to_third_order(program):
    f, chosen = smooth(program.f, program.args)
    check_grads(f, chosen, order=3, modes=["fwd"], rtol=1e-5, atol=1e-5)
    check_grads(f, chosen, order=2, rtol=1e-5, atol=1e-5)


# ---- Compositions ------------------------------------------------------------------------------------------


@each_program
def test_on_the_host(program):
    """All words of up to three letters; `debug_nans` has compiled functions staged, then run by NumPy."""
    with enable_checks(True), debug_nans(True):
        for word in words([1, 2, 3]):
            check(word_of(FAST, word, program.f)(*program.args), expected(program, word), f"{word} of {program}")


@each_program
def test_again_and_again(program):
    """Eagerly, several times: what is remembered of the first time changes nothing."""
    for word in [w for w in words([1, 2]) if "C" not in w]:
        for _ in range(3):
            check(word_of(FAST, word, program.f)(*program.args), expected(program, word), f"{word} of {program}")


@each_program
def test_compiled_inside(program):
    """Words of two letters with one jit, as programs of their own, by XLA."""
    with enable_checks(True), small_programs("xla"):
        for word in ["C", "JC", "GC", "VC"]:
            check(word_of(FAST, word, program.f)(*program.args), expected(program, word), f"{word} of {program}")


@each_program
def test_compiled_as_one(program):
    """Words of one to three letters, jit outermost: all in one program for XLA."""
    chosen = ["J", "G", "V", "CJ", "VG", "GV", "JG", "GJ", "GG", "VCG", "VJG"]

    def everything(*xs):
        return [word_of(FAST, w, program.f)(*xs) for w in chosen]

    with enable_checks(True), small_programs("xla"):
        results = xform.jit(everything)(*program.args)
    for word, got in zip(chosen, results, strict=True):
        check(got, expected(program, word), f"C{word} of {program}")


@pytest.mark.slow
@each_program
def test_all_words_compiled(program):
    with enable_checks(True), small_programs("xla"):
        for word in words([2, 3]):
            if "C" in word:
                check(word_of(FAST, word, program.f)(*program.args), expected(program, word), f"{word} of {program}")


# ---- Perturbation confusion --------------------------------------------------------------------------------


def derivative_by_jvp(f):
    return lambda x: xform.jvp(f, (x,), (1.0,))[1]


def derivative_by_jit(f):
    return xform.jit(xform.grad(lambda x: f(x)))


DERIVATIVES = {
    "grad": xform.grad,
    "jvp": derivative_by_jvp,
    "jit of grad": derivative_by_jit,
    "grad of jit": lambda f: xform.grad(xform.jit(lambda x: f(x))),
    "jvp of jit": lambda f: derivative_by_jvp(xform.jit(lambda x: f(x))),
    "vmap of grad": lambda f: lambda x: lax.reshape(xform.vmap(xform.grad(f))(lax.reshape(x, (1,))), ()),
}
pairs = pytest.mark.parametrize(
    ("outer", "inner"),
    [pytest.param(DERIVATIVES[a], DERIVATIVES[b], id=f"{a}, {b}") for a in DERIVATIVES for b in DERIVATIVES],
)


@pairs
def test_siskind_and_pearlmutter(outer, inner):
    """d/dx (x d/dy (x + y)) = 1, not 2. (Siskind and Pearlmutter, "Perturbation confusion and referential transparency:
    correct functional implementation of forward-mode AD", 2005)"""
    f = outer(lambda x: mul(x, inner(lambda y: add(x, y))(1.0)))
    assert float(f(np.float64(1.0))) == 1.0


@pairs
def test_confusion_of_products(outer, inner):
    """d/dx (x d/dy (x y)) = d/dx x^2 = 2x, at y = 2."""
    f = outer(lambda x: mul(x, inner(lambda y: mul(x, y))(2.0)))
    assert float(f(np.float64(3.0))) == 6.0


@pairs
def test_confusion_at_the_same_point(outer, inner):
    """The inner derivative at the outer variable: d/dx (d/dy (x^2 y^3) at y = x) = d/dx 3 x^4 = 12 x^3."""
    f = outer(lambda x: inner(lambda y: mul(mul(x, x), mul(y, mul(y, y))))(x))
    assert float(f(np.float64(2.0))) == 96.0


@pairs
def test_the_inner_function_ignores_its_argument(outer, inner):
    """d/dx (d/dy x^2 (0 y + 1) + x^2) = d/dx (0 + x^2) = 2x."""
    f = outer(lambda x: add(inner(lambda y: mul(mul(x, x), add(mul(y, 0.0), 1.0)))(x), mul(x, x)))
    assert float(f(np.float64(3.0))) == 6.0


def test_the_bug_of_higher_order_derivatives():
    """Derivatives of a function that returns functions. (Manzyuk et al., "Confusion of tagged perturbations in forward
    automatic differentiation of higher-order functions", 2019)"""

    def shift(f):
        return lambda offset: lambda x: f(add(x, offset))

    def d(f):
        return lambda x: xform.jvp(f, (x,), (1.0,))[1]

    # The derivative of a shifted derivative in the offset is the second derivative.
    second = xform.jvp(lambda s: d(shift(exp)(s))(1.0), (0.0,), (1.0,))[1]
    assert float(second) == pytest.approx(np.e, rel=1e-15)
    assert float(d(lambda x: d(lambda y: mul(sin(x), y))(1.0))(0.3)) == pytest.approx(np.cos(0.3))


def test_three_levels():
    def f(x):
        return xform.grad(lambda y: mul(x, xform.grad(lambda z: mul(mul(x, y), mul(z, z)))(y)))(x)

    # grad_z: 2xyz at z = y: 2xy^2; times x: 2x^2y^2; grad_y: 4x^2y at y = x: 4x^3; grad_x: 12x^2
    assert float(f(2.0)) == 32.0
    assert float(xform.grad(f)(2.0)) == 48.0
    assert float(xform.jit(xform.grad(f))(2.0)) == 48.0
    assert xform.vmap(xform.grad(f))(np.array([1.0, 2.0])).tolist() == [12.0, 48.0]


def test_closures_over_tracers_of_several_levels():
    def f(x):
        def g(y):
            def body(c, z):
                return add(mul(c, x), mul(y, z)), mul(c, y)

            c, ys = lax.scan(body, x, np.array([1.0, 2.0, 3.0]))
            return add(c, reduce_sum(ys, (0,)))

        return mul(xform.grad(g)(2.0), x)

    def plain(x):
        """d/dy of c3 + y (c0 + c1 + c2), c0 = x, c' = c x + y z, by hand."""
        y = 2.0
        c, dc, out, dout = x, 0.0, 0.0, 0.0
        for z in (1.0, 2.0, 3.0):
            out, dout = out + c * y, dout + dc * y + c
            c, dc = c * x + y * z, dc * x + z
        return (dc + dout) * x

    x, h = 0.7, 1e-6
    assert float(f(x)) == pytest.approx(plain(x))
    slope = (plain(x + h) - plain(x - h)) / (2 * h)
    for transform in (xform.grad, derivative_by_jvp, derivative_by_jit):
        assert float(transform(f)(x)) == pytest.approx(slope, rel=1e-8)
    assert xform.vmap(f)(np.array([0.7, 0.2])).tolist() == pytest.approx([plain(0.7), plain(0.2)])


# ---- Higher orders -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["grad", "jvp", "jit of grad", "grad of jit"])
def test_nth_derivatives_of_sin(how):
    f = sin
    for n in range(6):
        assert float(f(0.4)) == pytest.approx(np.sin(0.4 + n * np.pi / 2), rel=1e-13), n
        f = DERIVATIVES[how](f)


def test_derivatives_of_powers_end():
    def f(x):
        return mul(x, mul(x, x))

    for expected in (8.0, 12.0, 12.0, 6.0, 0.0, 0.0):
        assert float(f(2.0)) == expected
        f = xform.grad(f)


def test_all_orders_of_mixed_modes():
    """Third derivatives of log, each of the three by one of the modes."""
    for choice in itertools.product(["grad", "jvp", "grad of jit"], repeat=3):
        f = log
        for how in choice:
            f = DERIVATIVES[how](f)
        assert float(f(2.0)) == pytest.approx(2 / 8), choice


def test_hessian_vector_products_agree():
    """Forward over reverse, reverse over forward, reverse over reverse (Pearlmutter, "Fast exact multiplication by the
    Hessian", 1994) against the analytic Hessian of sum(sin(x) x'Ax)."""
    rng = np.random.default_rng(0)
    a, x, v = rng.standard_normal((3, 3)), rng.standard_normal(3), rng.standard_normal(3)

    def f(x):
        ax = lax.dot_general(a, x, (((1,), (0,)), ((), ())))
        return mul(reduce_sum(sin(x), (0,)), reduce_sum(mul(x, ax), (0,)))

    s = a + a.T
    hessian = np.outer(np.cos(x), s @ x)
    hessian = hessian + hessian.T + np.sin(x).sum() * s - np.diag(np.sin(x)) * (x @ a @ x)
    products = [
        xform.jvp(xform.grad(f), (x,), (v,))[1],
        xform.grad(lambda x: xform.jvp(f, (x,), (v,))[1])(x),
        xform.grad(lambda x: reduce_sum(mul(xform.grad(f)(x), v), (0,)))(x),
        xform.linearize(xform.grad(f), x)[1](v),
        xform.jit(lambda x: xform.jvp(xform.grad(f), (x,), (v,))[1])(x),
    ]
    for p in products:
        np.testing.assert_allclose(np.asarray(p), hessian @ v, rtol=1e-12)
    columns = xform.vmap(lambda t: xform.jvp(xform.grad(f), (x,), (t,))[1])(np.eye(3))
    np.testing.assert_allclose(np.asarray(columns), hessian, rtol=1e-12)


# ---- Named axes and unusual shapes under composition -------------------------------------------------------


def test_vmap_in_axes_inside_of_derivatives():
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 2))

    def f(a, b):
        """Maps the middle axis of a, and nothing of b; then the last axis of both."""
        inner = xform.vmap(lambda p, q: mul(sin(p), q), in_axes=(0, None))
        outer = xform.vmap(inner, in_axes=(2, 0), out_axes=1)
        return outer(a, b)

    def shaped(a, b):
        return np.stack([np.stack([np.sin(a[i, :, k]) * b[k, 0] for i in range(2)]) for k in range(4)], 1)

    g = xform.vmap(lambda p: f(p, b[:, 0]), in_axes=1, out_axes=-1)
    got = np.asarray(g(np.stack([a, 2 * a], 1)))
    np.testing.assert_allclose(got[..., 0], shaped(a, b))
    np.testing.assert_allclose(got[..., 1], shaped(2 * a, b))
    cotangent = xform.vjp(lambda p: f(p, b[:, 0]), a)[1](np.ones((2, 4, 3)))[0]
    np.testing.assert_allclose(np.asarray(cotangent), np.cos(a) * b[:, 0], rtol=1e-14)


def test_empty_batches_and_empty_arrays():
    def f(x):
        return reduce_sum(mul(sin(x), x), (0,))

    for transformed in (xform.vmap(xform.grad(f)), xform.jit(xform.vmap(xform.grad(f)))):
        assert transformed(np.zeros((0, 3))).shape == (0, 3)
        assert transformed(np.zeros((2, 0))).shape == (2, 0)
    assert xform.grad(f)(np.zeros(0)).shape == (0,)
    carry, ys = xform.jit(lambda x: lax.scan(lambda c, z: (add(c, z), c), np.float64(1.0), x))(np.zeros(0))
    assert float(carry) == 1.0 and ys.shape == (0,)
    assert float(xform.grad(lambda c: lax.scan(lambda c, z: (mul(c, z), c), c, np.zeros(0))[0])(3.0)) == 1.0


def test_branches_not_taken_make_no_nans():
    """Lanes of a batch that take the other branch have made-up residuals, by which the linear branch divides."""

    def f(x):
        return lax.cond(lax.gt(x, 0.0), lambda a: lax.div(a, add(a, 1.0)), lambda a: mul(a, a), x)

    x = np.array([1.0, -2.0])
    first, second = np.array([1 / 4, -4.0]), np.array([-1 / 4, 2.0])
    with debug_nans(True):
        for d, expected in ((xform.grad(f), first), (xform.grad(xform.grad(f)), second), (derivative_by_jvp(f), first)):
            for g in (xform.vmap(d), xform.jit(xform.vmap(d)), xform.vmap(xform.jit(d))):
                np.testing.assert_allclose(np.asarray(g(x)), expected)


def test_unused_and_repeated_arguments():
    def f(x, y, z):
        return [x, mul(y, y), y, x]

    cotangents = xform.vjp(f, 1.0, 2.0, 3.0)[1]([1.0, 10.0, 100.0, 1000.0])
    assert [float(c) for c in cotangents] == [1001.0, 140.0, 0.0]
    assert [float(c) for c in xform.vjp(xform.jit(f), 1.0, 2.0, 3.0)[1]([1.0, 10.0, 100.0, 1000.0])] == [
        1001.0,
        140.0,
        0.0,
    ]
    assert float(xform.grad(lambda x: sub(cos(x), cos(x)))(1.0)) == 0.0
