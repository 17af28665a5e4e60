"""Reverse mode through loops whose number of steps is not known when tracing."""

import math

import numpy as np
import pytest
from scipy import integrate

import xform
import xform.numpy as xnp
from tests.test_control_flow import equations
from xform import lax
from xform.core.config import enable_checks
from xform.lax.families import elementwise

A = np.float64(1.3)


@pytest.fixture(autouse=True)
def checked():
    with enable_checks(True):
        yield


def step(c, a):
    """With a carry in which nothing is linear, and of two leaves."""
    x, y = c
    return xnp.sin(x) * a + y, y * xnp.cos(x * a)


def looped(a, n, **options):
    def body(c):
        return c[0] + 1, step(c[1], a)

    x, y = lax.while_loop(lambda c: c[0] < n, body, (0, (a, a * a)), **options)[1]
    return x * y + x


def scanned(a, n):
    x, y = lax.scan(lambda c, _: (step(c, a), None), (a, a * a), length=n)[0]
    return x * y + x


# ---- Against the unrolled loop -----------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoints", [2, 3, 5, 32])
def test_gradients_are_those_of_the_unrolled_loop(checkpoints):
    f = xform.jit(xform.value_and_grad(lambda a, n: looped(a, n, checkpoints=checkpoints)))
    for n in (0, 1, 2, 3, 4, 7, 30, 61):
        value, slope = f(A, n)
        expected, expected_slope = xform.value_and_grad(lambda a: scanned(a, n))(A)  # noqa: B023
        assert float(value) == pytest.approx(float(expected), rel=1e-13)
        assert float(slope) == pytest.approx(float(expected_slope), rel=1e-11)


@pytest.mark.parametrize("options", [{"checkpoints": 3}, {"max_steps": 12}], ids=str)
def test_all_orders_and_modes(options):
    def f(a, n):
        return looped(a, n, **options)

    n = 9
    first, second = (d(lambda a: scanned(a, n))(A) for d in (xform.grad, xform.hessian))
    third = xform.jacfwd(xform.jacfwd(xform.jacfwd(lambda a: scanned(a, n))))(A)
    for d in (xform.grad, xform.jacfwd):
        assert float(d(xform.jit(f))(A, n)) == pytest.approx(float(first), rel=1e-12)
    for inner in (xform.grad, xform.jacfwd):
        for outer in (xform.grad, xform.jacfwd):
            assert float(xform.jit(outer(inner(f)))(A, n)) == pytest.approx(float(second), rel=1e-11)
    assert float(xform.jit(xform.jacfwd(xform.jacfwd(xform.grad(f))))(A, n)) == pytest.approx(float(third), rel=1e-10)


@pytest.mark.parametrize("options", [{"checkpoints": 3}, {"max_steps": 12}], ids=str)
def test_batched_numbers_of_steps(options):
    def f(a, n):
        return looped(a, n, **options)

    a, n = np.array([1.3, 0.7, -0.4, 1.1]), np.array([3, 0, 11, 1])
    first = [float(xform.grad(scanned)(x, int(k))) for x, k in zip(a, n)]
    second = [float(xform.jacfwd(xform.jacfwd(scanned))(x, int(k))) for x, k in zip(a, n)]
    np.testing.assert_allclose(xform.vmap(xform.grad(f))(a, n), first, rtol=1e-12)
    np.testing.assert_allclose(xform.jit(xform.vmap(xform.grad(f)))(a, n), first, rtol=1e-12)
    np.testing.assert_allclose(xform.jit(xform.grad(lambda a: xform.vmap(f)(a, n).sum()))(a), first, rtol=1e-12)
    np.testing.assert_allclose(xform.jit(xform.vmap(xform.jacfwd(xform.grad(f))))(a, n), second, rtol=1e-11)
    # lanes with one point, or with one number of steps
    np.testing.assert_allclose(
        xform.jit(xform.vmap(xform.grad(f), in_axes=(None, 0)))(A, n),
        [float(xform.grad(scanned)(A, int(k))) for k in n], rtol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(
        xform.jit(xform.vmap(xform.grad(f), in_axes=(0, None)))(a, 11),
        [float(xform.grad(scanned)(x, 11)) for x in a], rtol=1e-12,
    )  # fmt: skip
    _, pullback = xform.vjp(xform.jit(f), A, 5)
    np.testing.assert_allclose(
        xform.vmap(lambda ct: pullback(ct)[0])(a), a * float(xform.grad(scanned)(A, 5)), rtol=1e-12
    )


def test_lanes_that_are_not_known_to_differ_at_first():
    """The condition of the first steps is the same for all lanes, and known."""

    def f(a):
        return lax.while_loop(lambda x: x < 100, lambda x: x * a, 1.0)

    a = np.array([2.0, 3.0, 11.0])
    powers = np.array([7, 5, 2])
    np.testing.assert_allclose(xform.vmap(f)(a), a**powers)
    np.testing.assert_allclose(xform.vmap(xform.grad(f))(a), powers * a ** (powers - 1))
    np.testing.assert_allclose(xform.grad(lambda a: xform.vmap(f)(a).sum())(a), powers * a ** (powers - 1))


def test_pullbacks_that_leave_jit_and_vmap():
    """Their residuals, with all schedules, become arrays of the lanes; lanes have ended earlier than the schedules."""
    a, n = np.array([1.3, 0.7, -0.4]), np.array([3, 0, 7])
    expected = [float(xform.grad(scanned)(x, int(k))) for x, k in zip(a, n)]

    def pullback_at(a, n):
        return xform.vjp(lambda a: looped(a, n, checkpoints=3), a)[1]

    assert float(xform.jit(pullback_at)(a[0], 3)(1.0)[0]) == pytest.approx(expected[0], rel=1e-12)
    pullbacks = xform.jit(xform.vmap(pullback_at))(a, n)
    (slopes,) = xform.vmap(lambda pullback, ct: pullback(ct))(pullbacks, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(slopes, expected * np.array([1.0, 2.0, 3.0]), rtol=1e-12)


def test_reverse_over_reverse_of_lanes():
    a, n = np.array([1.3, 0.7, -0.4]), np.array([3, 0, 5])
    second = [float(xform.jacfwd(xform.jacfwd(scanned))(x, int(k))) for x, k in zip(a, n)]
    got = xform.jit(xform.vmap(xform.grad(xform.grad(lambda a, n: looped(a, n, checkpoints=3)))))(a, n)
    np.testing.assert_allclose(got, second, rtol=1e-11)


def test_keys_in_the_carry():
    """Each step draws a number; on the way back the steps that are computed again draw the same."""

    def f(a, n, **options):
        def body(c):
            i, key, x = c
            key, now = xform.random.split(key)
            return i + 1, key, x * a + xform.random.normal(now)

        return lax.while_loop(lambda c: c[0] < n, body, (0, xform.random.key(0), a), **options)[2]

    on_the_tape = float(xform.grad(f)(0.7, 9))
    for options in ({"checkpoints": 3}, {"max_steps": 10}):
        g = xform.jit(xform.grad(lambda a, n: f(a, n, **options)))  # noqa: B023
        assert float(g(0.7, 9)) == pytest.approx(on_the_tape, rel=1e-12)


# ---- What loops are made of --------------------------------------------------------------------------------


def test_constants_and_carries_without_tangents():
    """Constants of the body are differentiated, not those of the condition; integers and fixed leaves pass."""
    w = np.array([[0.5, -0.2], [0.1, 0.9]])

    def f(w, b, stop):
        def body(c):
            h, n, odd, fixed = c
            return xnp.tanh(w @ h + b * fixed), n + 1, ~odd, fixed

        h, _, odd, _ = lax.while_loop(lambda c: c[1] < stop, body, (b, np.int8(0), False, np.float32(2.0)))
        return (h * h).sum() + xnp.where(odd, h[0], h[1])

    def plain(w, b, stop):
        h = b
        for _ in range(math.ceil(stop)):
            h = np.tanh(w @ h + 2 * b)
        return (h * h).sum() + h[1 - math.ceil(stop) % 2]

    b = np.array([0.3, -0.7])
    gw, gb, gs = xform.jit(xform.grad(f, (0, 1, 2)))(w, b, 6.5)
    assert float(gs) == 0.0
    h = 1e-6
    for i in np.ndindex(2, 2):
        e = np.zeros((2, 2))
        e[i] = h
        assert gw[i] == pytest.approx((plain(w + e, b, 6.5) - plain(w - e, b, 6.5)) / (2 * h), abs=1e-8)
    for i in range(2):
        e = h * np.eye(2)[i]
        assert gb[i] == pytest.approx((plain(w, b + e, 6.5) - plain(w, b - e, 6.5)) / (2 * h), abs=1e-8)


def test_tangents_that_begin_after_some_steps():
    """The derivative reaches the result through carries that are fixed at first."""

    def f(a, n):
        start = (0, 0.0, 0.0, 5.0)
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, a, c[1], c[2] + c[3]), start)[3]

    for n in (0, 1, 2, 3, 6):
        assert float(xform.jit(f)(3.0, n)) == 5.0 + 3.0 * max(n - 2, 0)
        assert float(xform.jit(xform.grad(f))(3.0, n)) == max(n - 2, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex128"])
def test_dtypes(dtype):
    from xform.core import dtypes

    z = np.asarray(0.5 + (0.25j if dtype == "complex128" else 0)).astype(dtypes.by_name[dtype])

    def f(z, n):
        return abs(lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * c[1] + z), (0, z))[1]) ** 2

    got = xform.jit(xform.grad(f))(z, 3)
    want = xform.grad(lambda z: f(z, 3))(z)  # on the tape
    assert got.dtype == z.dtype
    np.testing.assert_allclose(
        np.asarray(got).astype(complex), np.asarray(want).astype(complex), rtol=0.05 if dtype == "bfloat16" else 1e-5
    )


def test_loops_in_loops():
    """A while in a while, and both in a scan; trip counts depend on the data."""

    def inner(x, a):
        return lax.while_loop(lambda y: abs(y) > 0.3, lambda y: y * a * xnp.cos(y), x)

    def outer(x, a):
        return lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, inner(c[1] + 1.0, a) * a + c[1]), (0, x))[1]

    def f(x, a):
        return lax.scan(lambda c, t: (outer(c * t, a), inner(c + t, a)), x, np.array([0.5, 0.9, 0.7]))

    def plain_inner(x, a):
        while abs(x) > 0.3:
            x = x * a * np.cos(x)
        return x

    def plain(x, a):
        ys = []
        for t in (0.5, 0.9, 0.7):
            y = plain_inner(x + t, a)
            c = x * t
            for _ in range(4):
                c = plain_inner(c + 1.0, a) * a + c
            x = c
            ys.append(y)
        return x + np.sum(ys)

    def total(x, a):
        c, ys = f(x, a)
        return c + ys.sum()

    x, a, h = 0.8, 0.7, 1e-6
    assert float(xform.jit(total)(x, a)) == pytest.approx(plain(x, a), rel=1e-13)
    slopes = (
        (plain(x + h, a) - plain(x - h, a)) / (2 * h),
        (plain(x, a + h) - plain(x, a - h)) / (2 * h),
    )
    for g in (xform.jit(xform.grad(total, (0, 1))), xform.grad(total, (0, 1))):
        np.testing.assert_allclose([float(s) for s in g(x, a)], slopes, rtol=1e-7)
    mapped = xform.jit(xform.vmap(xform.grad(total), in_axes=(0, None)))(np.array([x, 0.2]), a)
    np.testing.assert_allclose(mapped, [slopes[0], (plain(0.2 + h, a) - plain(0.2 - h, a)) / (2 * h)], rtol=1e-7)


def test_fori_loop_with_traced_bounds():
    def f(x, low, high, **options):
        return lax.fori_loop(low, high, lambda i, y: y * x + i, x, **options)

    def plain(x, low, high):
        y = x
        for i in range(low, high):
            y = y * x + i
        return y

    h = 1e-6
    for options in ({}, {"checkpoints": 2}, {"max_steps": 8}):
        g = xform.jit(xform.grad(lambda x, low, high: f(x, low, high, **options)))  # noqa: B023
        for low, high in ((0, 5), (-2, 3), (3, 3), (5, 1)):
            slope = (plain(0.9 + h, low, high) - plain(0.9 - h, low, high)) / (2 * h)
            assert float(g(0.9, low, high)) == pytest.approx(slope, rel=1e-8)
    # With checkpoints the loop saves carries also if the bounds are known.
    saved = [e.primitive.name for e in equations(xform.grad(lambda x: f(x, 0, 50, checkpoints=4)), 0.9)]
    assert "while_saving" in saved and "scan" not in saved
    assert float(xform.jit(xform.grad(lambda x: f(x, 0, 5, checkpoints=4)))(0.9)) == pytest.approx(
        (plain(0.9 + h, 0, 5) - plain(0.9 - h, 0, 5)) / (2 * h), rel=1e-8
    )


# ---- Memory and computation --------------------------------------------------------------------------------


def count_calls():
    """An identity that counts how often NumPy evaluates it."""
    calls = [0]

    def host(x):
        calls[0] += 1
        return x

    counted = elementwise("counted", host, jvp=lambda g, ans, x: g, lower=lambda ctx, x: x)
    return counted, calls


def repetitions(n, checkpoints):
    """The least r with ``binomial(checkpoints + r, r) >= n``, by which the least number of steps is counted."""
    r = 0
    while math.comb(checkpoints + r, r) < n:
        r += 1
    return r


@pytest.mark.parametrize(("n", "checkpoints"), [(10, 32), (10, 4), (100, 8), (300, 32), (500, 16)])
def test_steps_computed_again(n, checkpoints):
    """Not many more than the least possible if their number was known."""
    counted, calls = count_calls()

    def f(x, n):
        return lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, xnp.sin(counted.bind(c[1]))), (0, x), checkpoints=checkpoints
        )[1]

    x, product = 0.5, 1.0
    for _ in range(n):
        x, product = np.sin(x), product * np.cos(x)
    assert float(xform.jit(xform.grad(f), backend="numpy")(0.5, n)) == pytest.approx(product, rel=1e-12)
    r = repetitions(n, checkpoints)
    least = r * n - math.comb(checkpoints + r, r - 1)  # Griewank, 1992
    assert n <= calls[0] - n <= max(n, 1.3 * least)  # besides the linearized steps themselves


def test_memory_is_that_of_the_checkpoints():
    x = np.linspace(0.0, 1.0, 1000)
    for checkpoints in (2, 10):
        gradient = xform.grad(
            lambda x, n, c=checkpoints: lax.while_loop(
                lambda s: s[0] < n, lambda s: (s[0] + 1, xnp.sin(xnp.exp(s[1]) * 0.2)), (0, x), checkpoints=c
            )[1].sum()
        )
        sizes = {v.aval.size for e in equations(gradient, x, 5) for v in e.outvars}
        assert max(sizes) == checkpoints * x.size


def test_one_pass_when_nothing_is_differentiated_or_wanted():
    """A loop without tangents, and one of whose results only values are wanted, saves nothing."""

    def f(x, n):
        return lax.fori_loop(0, n, lambda i, y: y * 2, x), 1.0 * n

    def only_second(x, n):
        return f(x, n)[1] * x

    for g in (xform.grad(only_second), lambda x, n: xform.vjp(f, x, n)[0]):
        names = [e.primitive.name for e in equations(g, 1.0, 4)]
        assert "while_saving" not in names and "while_back" not in names


# ---- Bounded loops -----------------------------------------------------------------------------------------


def test_a_loop_that_meets_its_bound_is_not_silent():
    def f(x, n, max_steps=4):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, x), max_steps=max_steps)

    for transform in (lambda f: f, xform.jit):
        for n in (0, 3, 4):
            i, y = transform(f)(2.0, n)
            assert (int(i), float(y)) == (n, 2.0 ** (n + 1))
            assert float(transform(xform.grad(lambda x, n: f(x, n)[1]))(2.0, n)) == (n + 1) * 2.0**n
        i, y = transform(f)(2.0, 5)
        assert int(i) == 4 and np.isnan(float(y))
        for d in (xform.grad, xform.jacfwd):
            assert np.isnan(float(transform(d(lambda x, n: f(x, n)[1]))(2.0, 5)))
        slopes = transform(xform.vmap(xform.grad(lambda x, n: f(x, n)[1])))(np.full(3, 2.0), np.array([4, 5, 0]))
        np.testing.assert_array_equal(slopes, [80.0, np.nan, 1.0])
    assert float(f(2.0, 0, 0)[1]) == 2.0
    assert np.isnan(float(f(2.0, 1, 0)[1]))


def test_an_infinite_or_complex_result_within_the_bound_stays_what_it_is():
    z = lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1]), (0, np.complex128(np.inf)), max_steps=3)[1]
    assert complex(z) == complex(np.inf, 0)
    spoiled = lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] * 2), (0, np.complex64(1)), max_steps=3)[1]
    assert spoiled.dtype == np.complex64 and np.isnan(spoiled)


def test_bad_arguments():
    def loop(init=1.0, **options):
        return lax.while_loop(lambda x: x < 3, lambda x: x + 1, init, **options)

    for bad in (1, 0, -3):
        with pytest.raises(ValueError, match=rf"while_loop: checkpoints must be at least 2, got {bad}"):
            loop(checkpoints=bad)
    with pytest.raises(ValueError, match=r"while_loop: max_steps must not be negative, got -1"):
        loop(max_steps=-1)
    with pytest.raises(TypeError, match=r"while_loop: with max_steps the carry needs .*floating.*i64\[\]"):
        loop(1, max_steps=3)
    with pytest.raises(ValueError, match=r"fori_loop: 5 steps from 0 to 5, but max_steps=4"):
        lax.fori_loop(0, 5, lambda i, x: x, 1.0, max_steps=4)
    with pytest.raises(ValueError, match=r"fori_loop: unroll needs bounds that are known"):
        lax.fori_loop(0, 5, lambda i, x: x, 1.0, unroll=2, checkpoints=4)


# ---- Small programs whose derivatives are known ------------------------------------------------------------


def test_quadrature_by_a_loop_has_the_derivative_of_leibniz():
    """d/dc of the integral of exp(-c x) over [0, b(c)], with a number of trapezoids that depends on the data."""

    def integral(c):
        b = 2.0 / c

        def trapezoids(n):
            h = b / n
            inner = lax.fori_loop(1, n, lambda i, s: s + xnp.exp(-c * i * h), 0.0 * c)
            return h * (inner + 0.5 * (1.0 + xnp.exp(-c * b)))

        def body(state):
            n, _, value = state
            return 2 * n, value, trapezoids(2 * n)

        start = (1, trapezoids(1) + 1.0, trapezoids(1))
        return lax.while_loop(lambda s: abs(s[2] - s[1]) > 1e-6, body, start)[2]

    c = 1.5  # the integral is (1 - exp(-c b)) / c = (1 - exp(-2)) / c
    value, slope = (1 - np.exp(-2)) / c, -(1 - np.exp(-2)) / c**2
    assert float(xform.jit(integral)(c)) == pytest.approx(value, rel=1e-6)
    for d in (xform.grad, xform.jacfwd):
        assert float(xform.jit(d(integral))(c)) == pytest.approx(slope, rel=1e-5)
    assert float(xform.jacfwd(integral)(c)) == pytest.approx(slope, rel=1e-5)
    scipy_value = integrate.quad(lambda x: np.exp(-c * x), 0, 2 / c)[0]
    assert float(integral(c)) == pytest.approx(scipy_value, rel=1e-6)


def adaptive_heun(p, max_steps=None):
    """y(2) of ``y' = -p[0] y + p[1] sin(t)`` from y(0) = p[2], with steps chosen by the error of an embedded Euler."""

    def rhs(t, y):
        return -p[0] * y + p[1] * xnp.sin(t)

    def body(c):
        t, y, h = c
        h = xnp.minimum(h, 2.0 - t)
        k1 = rhs(t, y)
        k2 = rhs(t + h, y + h * k1)
        error = abs(h * (k2 - k1)) / 2
        fine = error < 1e-3
        t, y = xnp.where(fine, t + h, t), xnp.where(fine, y + h * (k1 + k2) / 2, y)
        return t, y, h * xnp.clip(0.9 * xnp.sqrt(1e-3 / (error + 1e-12)), 0.2, 2.0)

    return lax.while_loop(lambda c: c[0] < 2.0, body, (0.0 * p[0], p[2], 0.1 + 0.0 * p[0]), max_steps=max_steps)[1]


@pytest.mark.parametrize("max_steps", [None, 60])
def test_hessians_through_an_adaptive_ode_solver(max_steps):
    """Equal to differences of gradients, the derivative of the steps that were taken."""
    p = np.array([1.2, 0.8, 0.5])

    def f(p):
        return adaptive_heun(p, max_steps)

    gradient = xform.jit(xform.grad(f))
    h = 1e-6
    differences = [(f(p + h * e) - f(p - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(gradient(p), differences, rtol=1e-6, atol=1e-8)
    second = np.stack(
        [(np.asarray(gradient(p + h * e)) - np.asarray(gradient(p - h * e))) / (2 * h) for e in np.eye(3)]
    )
    for hessian in (xform.jacfwd(xform.grad(f)), xform.jacfwd(xform.jacfwd(f))):
        np.testing.assert_allclose(xform.jit(hessian)(p), second, rtol=1e-6, atol=1e-7)
    exact = integrate.solve_ivp(lambda t, y: -p[0] * y + p[1] * np.sin(t), (0, 2), [p[2]], rtol=1e-10).y[0, -1]
    assert float(f(p)) == pytest.approx(exact, abs=1e-2)


def test_tangents_that_are_mapped_can_be_transposed():
    """`vmap` of what `linearize` gives, of a loop whose tangents alone are mapped, or whose residuals are, too."""

    def f(x, n):
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, xnp.sin(c[1])), (0, x))[1]

    def slope(x, n):
        d = 1.0
        for _ in range(n):
            x, d = np.sin(x), d * np.cos(x)
        return d

    push = xform.linearize(xform.jit(lambda x: f(x, 3)), 1.0)[1]
    ts, d = np.array([1.0, -2.0, 0.5]), slope(1.0, 3)
    for g, shape in ((xform.vmap(push), (3,)), (xform.vmap(xform.vmap(push)), (2, 3))):
        for h in (g, xform.jit(g)):
            t = np.broadcast_to(ts, shape)
            np.testing.assert_allclose(h(t), d * t, rtol=1e-14)
            np.testing.assert_allclose(xform.linear_transpose(h, t)(t)[0], d * t, rtol=1e-14)
            np.testing.assert_allclose(xform.grad(lambda t, h=h: (h(t) ** 2).sum())(t), 2 * d**2 * t, rtol=1e-14)
    several = xform.vmap(lambda x, n: xform.linearize(xform.jit(lambda x: f(x, n)), x)[1])
    pushes = several(np.array([1.0, 0.5]), np.array([2, 4]))
    apply = lambda ts: xform.vmap(lambda p, t: p(t))(pushes, ts)  # noqa: E731
    slopes = [slope(1.0, 2), slope(0.5, 4)]
    np.testing.assert_allclose(apply(np.ones(2)), slopes, rtol=1e-14)
    np.testing.assert_allclose(xform.linear_transpose(apply, np.ones(2))(np.ones(2))[0], slopes, rtol=1e-14)

    def linearized(x):  # the derivative of a mapped linearization by the place where it was taken
        return xform.vmap(xform.linearize(xform.jit(lambda x: f(x, 3)), x)[1])(np.ones(2)).sum()

    difference = (slope(1 + 1e-5, 3) - slope(1 - 1e-5, 3)) / 1e-5
    for g in (xform.grad(linearized), xform.jit(xform.grad(linearized))):
        np.testing.assert_allclose(g(1.0), difference, rtol=1e-8)


@pytest.mark.parametrize("order", ["forward over reverse", "reverse over reverse"])
def test_conditions_may_depend_on_what_is_differentiated(order):
    def power(x):  # x[1] ** 7
        return lax.while_loop(lambda c: c < 10 * x[0], lambda c: c * x[1], x[1])

    outer = xform.jacfwd if order == "forward over reverse" else xform.jacrev
    for f in (power, lambda x: lax.while_loop(lambda c: c < x[0], lambda c: power(x) + 0 * c, x[1] * 0)):
        hessian = xform.jit(outer(xform.grad(f)))(np.array([1.2, 1.5]))
        np.testing.assert_allclose(hessian, [[0, 0], [0, 42 * 1.5**5]])
