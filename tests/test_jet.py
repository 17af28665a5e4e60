"""Taylor mode: against analytic series, mpmath, nested jvp and JAX; its cost; compositions; wrong calls."""

import math

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.test_ops import OPS, calls_of, some
from xform import lax
from xform.core.jaxpr import subjaxprs
from xform.core.trace import Primitive


def line(n, slope=1.0):
    """The terms of x + slope * t."""
    return (slope, *[0.0] * (n - 1))


def derivatives(f, x, n):
    """The derivatives of a function of one scalar, of orders 1 to n."""
    return np.array([float(t) for t in xform.jet(f, (x,), (line(n),))[1]])


def nested(f, primals, series):
    """What jet returns, by jvp of jvp of ...: derivatives of f along the curve that the series describe."""

    def along(t):
        curve = []
        for x, terms in zip(primals, series, strict=True):
            shift = 0.0
            for k in range(len(terms), 0, -1):
                shift = (shift + terms[k - 1]) * t / k
            curve.append(x + shift)
        return f(*curve)

    out = []
    for _ in series[0]:
        along = lambda t, f=along: xform.jvp(f, (t,), (1.0,))[1]  # noqa: E731
        out.append(along(0.0))
    return out


def assert_matches_nested(f, *primals, order=4, rtol=1e-9, seed=0):
    rng = np.random.default_rng(seed)
    series = [[0.4 * rng.standard_normal(x.shape).astype(x.dtype) for _ in range(order)] for x in primals]
    if any(x.dtype.kind == "c" for x in primals):
        series = [[v + 0.3j * rng.standard_normal(v.shape) for v in terms] for terms in series]
    value, found = xform.jet(f, primals, series)
    np.testing.assert_allclose(value, f(*primals), rtol=1e-12)
    scale = 1.0
    for got, want in zip(found, nested(f, primals, series), strict=True):
        scale = max(scale, np.max(np.abs(want), initial=0))
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale)


# Facts from outside


@pytest.mark.parametrize(
    "f, x, want",
    [
        (xnp.exp, 0.0, [1, 1, 1, 1, 1, 1]),
        (xnp.tan, 0.0, [1, 0, 2, 0, 16, 0, 272]),
        (xnp.tanh, 0.0, [1, 0, -2, 0, 16, 0, -272]),
        (lambda x: 1 / xnp.cos(x), 0.0, [0, 1, 0, 5, 0, 61]),  # Euler's numbers
        (xnp.arcsin, 0.0, [1, 0, 1, 0, 9, 0, 225]),
        (xnp.log1p, 0.0, [1, -1, 2, -6, 24, -120]),
        (lambda x: xnp.exp(xnp.exp(x) - 1), 0.0, [1, 2, 5, 15, 52, 203, 877]),  # Bell's numbers
        (lambda x: 1 / (1 - x - x * x), 0.0, [math.factorial(k) * (1, 1, 2, 3, 5, 8, 13)[k] for k in range(1, 7)]),
        (xnp.sqrt, 1.0, [1 / 2, -1 / 4, 3 / 8, -15 / 16, 105 / 32]),
        (lambda x: x**5, 2.0, [80, 160, 240, 240, 120, 0, 0]),
        (lambda x: x**-2, 1.0, [-2, 6, -24, 120]),
        (lambda x: x**2.5, 4.0, [20, 7.5, 0.9375, -0.1171875]),
    ],
)
def test_series_that_are_known(f, x, want):
    np.testing.assert_allclose(derivatives(f, x, len(want)), want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "name, ours, x",
    [
        ("gamma", lambda x: xnp.exp(lax.lgamma(x)), 2.5),
        ("loggamma", lax.lgamma, 3.2),
        ("digamma", lax.digamma, 1.7),
        ("erf", lax.erf, 0.6),
        ("erfinv", lax.erf_inv, 0.4),
        ("atanh", xnp.arctanh, 0.3),
        ("acosh", xnp.arccosh, 1.8),
        ("asinh", xnp.arcsinh, -0.7),
        ("cbrt", xnp.cbrt, 1.3),
        ("sigmoid", lax.logistic, 30.0),
        ("sinc", lambda x: xnp.sin(x) / x, 0.9),
        ("lambertw", None, 0.5),
    ],
)
def test_against_mpmath(name, ours, x):
    mpmath = pytest.importorskip("mpmath")
    functions = {"sigmoid": lambda x: 1 / (1 + mpmath.exp(-x))}
    reference = functions.get(name) or getattr(mpmath, name)
    if ours is None:  # solved by Newton's iteration from its value, which gains digits of the series as well

        def ours(x):
            w = lax.stop_gradient(xnp.asarray(float(mpmath.lambertw(0.5))))
            for _ in range(4):
                w = w - (w * xnp.exp(w) - x) / (xnp.exp(w) * (w + 1))
            return w

    with mpmath.workdps(40):
        want = [float(c) for c in mpmath.taylor(reference, x, 6)]
    value, terms = xform.jet(ours, (x,), (line(6),), factorial_scaled=False)
    np.testing.assert_allclose([float(t) for t in (value, *terms)], want, rtol=1e-12)


def test_taylor_series_of_an_ode():
    """y'' = t y, by derivative k + 1 of the state from derivative k of the right-hand side: Airy's function."""
    special = pytest.importorskip("scipy.special")
    t, order = 0.8, 9
    ai, slope, _, _ = special.airy(t)

    def rhs(state):
        t, y, dy = state
        return [1.0 + 0.0 * t, dy, t * y]

    state = [t, ai, slope]
    series = [[1.0, slope, t * ai]]
    while len(series) < order:
        _, terms = xform.jet(rhs, (state,), (series,))
        series.append([column[-1] for column in terms])
    want = [ai, slope]  # Ai^(n+2) = t Ai^(n) + n Ai^(n-1)
    for n in range(order - 1):
        want.append(t * want[n] + (n * want[n - 1] if n else 0))
    np.testing.assert_allclose([float(row[1]) for row in series], want[1:], rtol=1e-12)


def test_against_jax():
    jax = pytest.importorskip("jax")
    from jax.experimental import jet as peer

    rng = np.random.default_rng(1)
    w = rng.standard_normal((3, 3))
    x, terms = rng.standard_normal((3, 2)), [rng.standard_normal((3, 2)) for _ in range(5)]

    def program(m):
        return lambda x: m.sum(m.tanh(w @ m.exp(m.sin(x)) / (1 + x * x)) ** 3, axis=0)

    with jax.enable_x64(True):
        value, want = peer.jet(program(jax.numpy), (x,), (terms,))
        raw = peer.jet(program(jax.numpy), (x,), (terms,), factorial_scaled=False)[1]
    got_value, got = xform.jet(program(xnp), (x,), (terms,))
    np.testing.assert_allclose(got_value, value, rtol=1e-12)
    np.testing.assert_allclose(got, want, rtol=1e-10)
    np.testing.assert_allclose(xform.jet(program(xnp), (x,), (terms,), factorial_scaled=False)[1], raw, rtol=1e-10)


# Every operation of the table


DIFFERENTIABLE = [op for op in OPS if op.differentiable and {"float64", "complex128"} & set(op.dtypes)]


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_operations_match_nested_jvp(op):
    rng = np.random.default_rng(2)
    for dtype in {"float64", "complex128"} & set(op.dtypes):
        for call in some(calls_of(op, dtype, rng), 2):
            if not call.has_derivative():
                continue
            f, primals = call.smooth()
            order = 3 if op.order > 1 else 1
            series = [[0.3 * rng.standard_normal(x.shape).astype(x.dtype) for _ in range(order)] for x in primals]
            _, found = xform.jet(f, primals, series)
            want = nested(f, primals, series)
            for i, terms in enumerate(found):
                scale = 1 + max(np.max(np.abs(np.asarray(row[i])), initial=0) for row in want)
                for got, row in zip(terms, want, strict=True):
                    np.testing.assert_allclose(got, row[i], rtol=1e-7, atol=1e-9 * scale, err_msg=str(call))


# Programs


POSITIVE = 0.5 + np.random.default_rng(3).random((3, 3))


def bouncing(x):
    """A loop whose carry becomes dependent on x step by step, and whose length depends on x."""

    def step(carry):
        i, a, b, c = carry
        return i + 1 + a[0, 0] ** 2, b, xnp.sin(c) * x, a + c

    _, a, b, c = lax.while_loop(lambda carry: carry[0] < 4, step, (0.0, x, xnp.zeros((3, 3)), x))
    return a + b * c


PROGRAMS = {
    "jit": xform.jit(lambda x: xnp.sin(x) * x),
    "nested jit": xform.jit(lambda x: xform.jit(lambda y: (y * x, xnp.floor(y)))(xnp.exp(x))[0]),
    "scan": lambda x: lax.scan(lambda c, y: (xnp.sin(c) * y, c * y), x[0], x)[1],
    "scan, reversed": lambda x: lax.scan(lambda c, y: (c + xnp.sin(y * c), c), x[0], x, reverse=True),
    "scan, carry dependent late": lambda x: lax.scan(
        lambda c, _: ((c[1], c[2], x * x + c[2]), c[0]), (xnp.zeros((3, 3)), xnp.zeros((3, 3)), x), None, length=4
    )[1],
    "while": bouncing,
    "fori": lambda x: lax.fori_loop(0, 3, lambda i, c: c * xnp.cos(c) + i, x),
    "cond": xform.jit(lambda x: lax.cond(x[0, 0] > 0, xnp.sin, lambda x: x * x * x, x)),
    "cond, one side constant": xform.jit(
        lambda x: lax.cond(x[0, 0] < 0, lambda x: xnp.ones((3, 3)), lambda x: x**3, x)
    ),
    "switch": xform.jit(lambda x: lax.switch(x[0, 0].astype(int), [xnp.sin, xnp.cos, xnp.tanh], x)),
    "map": lambda x: lax.map(lambda r: r * xnp.sum(xnp.exp(r)), x),
    "vmap": xform.vmap(lambda r: r / xnp.sum(r * r)),
    "grad": lambda x: xform.grad(lambda y: xnp.sum(xnp.tanh(y @ y) ** 2))(x),
    "grad of a loop": xform.jit(lambda x: xform.grad(lambda y: xnp.sum(bouncing(y) ** 2))(x)),
    "checkpoint": xform.checkpoint(lambda x: xnp.sin(x @ x)),
    "softmax": lambda x: xnp.exp(x) / xnp.sum(xnp.exp(x), axis=1, keepdims=True),
    "indexing": lambda x: x[np.array([1, 1, 2])] * xnp.asarray(x)[:, ::-1].at[0].add(x[1]),
    "where": lambda x: xnp.where(x > 1, xnp.sqrt(x), x * x),
    "sort": lambda x: xnp.sort(x, axis=0) * xnp.max(x),
    "inverse": lambda x: xnp.linalg.inv(x + 3 * np.eye(3)) @ xnp.linalg.cholesky(x @ x.T + np.eye(3)),
    "eigenvalues": lambda x: xnp.linalg.eigvalsh(x + x.T + np.diag([0.0, 4.0, 9.0])),
    "x to the x": lambda x: x**x,
    "numpy": lambda x: np.sin(x) * np.exp(x),
}


def flat_program(name):
    return lambda x: xnp.concatenate([xnp.ravel(y) for y in xform.tree.leaves(PROGRAMS[name](x))])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_match_nested_jvp(name):
    assert_matches_nested(flat_program(name), POSITIVE, order=2 if name == "grad of a loop" else 3)


@pytest.mark.parametrize("name", ["scan", "while", "cond", "jit", "softmax", "eigenvalues", "switch"])
def test_compiled_programs(name):
    f = flat_program(name)
    terms = [POSITIVE - 1, POSITIVE**2, np.cos(POSITIVE)]
    value, want = xform.jet(f, (POSITIVE,), (terms,))
    got_value, got = xform.jit(lambda x, *terms: xform.jet(f, (x,), (terms,)))(POSITIVE, *terms)
    np.testing.assert_allclose(got_value, value, rtol=1e-12)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["scan", "while", "nested jit", "softmax", "eigenvalues", "inverse"])
def test_derivatives_of_jets(name):
    f = flat_program(name)

    def total(x, *terms):
        value, found = xform.jet(f, (x,), (terms,))
        return sum(xnp.sum(t * np.cos(np.arange(t.size))) for t in (value, *found))

    args = POSITIVE, POSITIVE - 1, np.cos(POSITIVE)
    v = np.sin(POSITIVE)
    _, forward = xform.jvp(total, args, (v,) * 3)
    grads = xform.grad(total, argnums=(0, 1, 2))(*args)
    np.testing.assert_allclose(forward, sum(np.sum(g * v) for g in grads), rtol=1e-9)
    e = 1e-6
    difference = total(*[a + e * v for a in args]) - total(*[a - e * v for a in args])
    np.testing.assert_allclose(forward, difference / (2 * e), rtol=1e-5)


def test_high_orders():
    np.testing.assert_allclose(derivatives(xnp.exp, 0.5, 120), np.exp(0.5), rtol=1e-12)
    _, terms = xform.jet(lambda x: lax.lgamma(1 / (1 - x)), (0.0,), (line(40),), factorial_scaled=False)
    assert np.isfinite(terms).all()


def test_order_six():
    assert_matches_nested(lambda x: xnp.exp(-x) * xnp.sin(x * x) / (1 + x), np.array([0.3, 1.2]), order=6, rtol=1e-8)


def test_two_arguments_and_complex_numbers():
    assert_matches_nested(lambda x, y: xnp.arctan2(x, y) ** 2 @ xnp.sinh(y), POSITIVE, POSITIVE.T.copy())
    z = POSITIVE[0] + 1j * POSITIVE[1]
    assert_matches_nested(lambda z: xnp.exp(1j * z) / z + xnp.sqrt(z) * xnp.log(z), z)
    assert_matches_nested(lambda z: xnp.abs(z) ** 3 + (z * xnp.conj(z)).real, z)


def test_rules_of_users():
    @xform.custom_jvp
    def sine(x):
        return xnp.sin(x)

    sine.defjvp(lambda primals, tangents: (sine(primals[0]), 2 * xnp.cos(primals[0]) * tangents[0]))  # on purpose

    @xform.custom_vjp
    def cosine(x):
        return xnp.cos(x)

    cosine.defvjp(lambda x: (cosine(x), x), lambda x, ct: (-ct * xnp.sin(x),))
    vmapped = xform.custom_batching.custom_vmap(xnp.exp)
    vmapped.def_vmap(lambda size, mapped, x: (xnp.exp(x), mapped[0]))
    np.testing.assert_allclose(derivatives(vmapped, 0.0, 4), [1, 1, 1, 1])
    np.testing.assert_allclose(derivatives(xform.checkpoint(xnp.tan), 0.0, 5), [1, 0, 2, 0, 16])
    np.testing.assert_allclose(derivatives(sine, 0.0, 4), [2, 0, -2, 0], atol=1e-15)
    np.testing.assert_allclose(derivatives(xform.jit(cosine), 0.0, 4), [0, -1, 0, 1], atol=1e-15)


def test_roots():
    """The real root of y^3 + y = x, whose series is known: sum_n (-1)^n binom(3n, n) x^(2n + 1) / (2n + 1)."""

    def root(x):
        solve = lambda f, y: lax.fori_loop(0, 30, lambda i, y: y - f(y) / (3 * y**2 + 1), y)  # noqa: E731
        return lax.custom_root(lambda y: y**3 + y - x, 0.0, solve, lambda g, b: b / g(1.0))

    _, terms = xform.jet(root, (0.0,), (line(7),), factorial_scaled=False)
    np.testing.assert_allclose([float(t) for t in terms], [1, 0, -1, 0, 3, 0, -12], atol=1e-12)


# Compositions


def test_compositions():
    def third(x):
        return xform.jet(xnp.tan, (x,), (line(3),))[1][2]

    x = np.array([0.1, 0.3, 0.5])
    t = np.tan(x)
    want, slope = 2 * (1 + t**2) * (1 + 3 * t**2), 8 * t * (1 + t**2) * (2 + 3 * t**2)
    np.testing.assert_allclose(xform.vmap(third)(x), want, rtol=1e-13)
    np.testing.assert_allclose(xform.jit(xform.vmap(third))(x), want, rtol=1e-13)
    np.testing.assert_allclose(xform.vmap(xform.grad(third))(x), slope, rtol=1e-12)
    np.testing.assert_allclose(xform.jit(xform.vmap(xform.jacfwd(third)))(x), slope, rtol=1e-12)
    np.testing.assert_allclose(xform.vmap(lambda x: xform.jet(third, (x,), (line(1),))[1][0])(x), slope, rtol=1e-12)
    np.testing.assert_allclose(derivatives(xform.grad(xnp.tan), 0.1, 2)[1], want[0], rtol=1e-13)
    mixed = derivatives(lambda x: derivatives_of_product(x), 0.7, 2)
    np.testing.assert_allclose(mixed, [-4 * np.sin(1.4), -8 * np.cos(1.4)], rtol=1e-12)


def derivatives_of_product(x):
    """The second derivative of sin(x)^2, that is 2 cos(2x), by jet."""
    return xform.jet(lambda y: xnp.sin(y) ** 2, (x,), (line(2),))[1][1]


def test_collectives():
    f = lambda x: xform.jet(lambda y: lax.psum(y * y, "i"), (x,), ((x, x),))  # noqa: E731
    value, (first, second) = xform.vmap(f, axis_name="i")(np.arange(3.0))
    np.testing.assert_array_equal(value, [5] * 3)
    np.testing.assert_array_equal(first, [10] * 3)
    np.testing.assert_array_equal(second, [20] * 3)


# Cost


def equations(jaxpr):
    return sum(1 + sum(map(equations, subjaxprs(e.params))) for e in jaxpr.eqns)


def cost(f, x, n):
    return equations(xform.make_jaxpr(lambda x, *terms: xform.jet(f, (x,), (terms,)))(x, *[x] * n).jaxpr)


@pytest.mark.parametrize(
    "f, per_order",
    [
        (xnp.exp, 5),
        (xnp.log, 8),
        (xnp.sqrt, 7),
        (xnp.tanh, 7),
        (lambda x: xnp.sin(x) * xnp.cos(x), 17),
        (lax.logistic, 7),
        (lax.erf, 11),
        (lambda x: x**5, 5),
        (lambda x: x**1.5, 13),
        (lambda x: x / (1 + x * x), 7),
        (lambda x: x @ x, 5),
        (lambda x: xnp.linalg.solve(x + 3 * np.eye(3), x), 8),
        (lambda x: xnp.tanh(xnp.tanh(x @ POSITIVE) @ x), 22),
        (lambda x: lax.scan(lambda c, _: (xnp.sin(c) * x, None), x, None, length=9)[0], 15),
    ],
)
def test_equations_grow_in_proportion_to_the_order(f, per_order):
    counts = [cost(f, POSITIVE, n) for n in range(1, 9)]
    growth = np.diff(counts)
    assert growth.max() <= per_order, counts
    assert len(set(growth[1:])) == 1, counts  # from the second order on each one costs the same


def test_nested_jvp_grows_exponentially_where_jet_does_not():
    def f(x):
        return xnp.exp(-x) * xnp.tanh(x * x) / (1 + x)

    def nested_cost(n):
        g = f
        for _ in range(n):
            g = lambda t, g=g: xform.jvp(g, (t,), (np.ones((3, 3)),))[1]  # noqa: E731
        return equations(xform.make_jaxpr(g)(POSITIVE).jaxpr)

    assert nested_cost(5) > 10 * cost(f, POSITIVE, 5)
    assert cost(f, POSITIVE, 5) < 5 * cost(f, POSITIVE, 1) + 20


def test_terms_that_are_known_to_be_zero_cost_nothing():
    def program(x):
        return xform.jet(lambda x: xnp.exp(x * x), (x,), ((np.ones(3), *[np.zeros(3)] * 4),))[1]

    assert equations(xform.make_jaxpr(program)(np.ones(3)).jaxpr) < cost(lambda x: xnp.exp(x * x), np.ones(3), 5)
    constant, (zero,) = xform.jet(lambda x: lax.stop_gradient(x) * 2, (3.0,), ((1.0,),))
    assert float(constant) == 6 and float(zero) == 0


# Edges


@pytest.mark.parametrize(
    "f, want",
    [
        (xnp.sqrt, [np.inf, -np.inf, np.inf, -np.inf]),
        (xnp.log, [np.inf, -np.inf, np.inf, -np.inf]),
        (xnp.cbrt, [np.inf, -np.inf, np.inf, -np.inf]),
        (lambda x: 1 / x, [-np.inf, np.inf, -np.inf, np.inf]),
        (lambda x: x**-1.5, [-np.inf, np.inf, -np.inf, np.inf]),
        (lambda x: x**2.5, [0, 0, np.inf, -np.inf]),
        (lambda x: x**3, [0, 0, 6, 0]),
        (lambda x: x**3.0, [0, 0, 6, 0]),
        (lambda x: xnp.sum(x ** np.arange(4)), [1, 2, 6, 0]),
        (xnp.abs, [0, 0, 0, 0]),
        (lambda x: xnp.where(x > 0, xnp.sqrt(x), x), [1, 0, 0, 0]),
        (lambda x: xnp.sqrt(0 * x), [0, 0, 0, 0]),
        (lambda x: xnp.sqrt(x * x), [0, np.inf, np.nan, np.nan]),  # a kink: the derivative 0, as that of jvp and grad
        (lambda x: xnp.linalg.norm(x * np.ones(2)), [0, np.inf, np.nan, np.nan]),
    ],
)
def test_at_zero(f, want):
    np.testing.assert_array_equal(derivatives(f, 0.0, 4), want)


def test_order_zero():
    value, terms = xform.jet(lambda x: {"a": x * x}, (3.0,), ((),))
    assert float(value["a"]) == 9 and terms == {"a": []}
    assert xform.jet(lambda: 1.0, (), ()) == (1.0, [])


def test_pytrees():
    x = {"p": 2.0, "q": np.arange(2.0)}
    step = {"p": 1.0, "q": np.ones(2)}
    value, terms = xform.jet(lambda d, s: (s * d["p"] * d["q"], {"p": d["p"]}), (x, 3.0), ([step, x], [0.0, 1.0]))
    np.testing.assert_allclose(value[0], [0, 6])
    np.testing.assert_allclose(terms[0], [[6, 9], [6, 20]])
    np.testing.assert_allclose(terms[1]["p"], [1, 2])


def test_integers_have_no_terms():
    zeros = [np.zeros((), xform.dtypes.float0)] * 2
    value, terms = xform.jet(lambda x, n: (x**2 * n, n + 1), (2.0, 3), ((1.0, 0.0), zeros))
    assert [float(t) for t in terms[0]] == [12, 6]
    assert int(value[1]) == 4 and all(t.dtype == xform.dtypes.float0 for t in terms[1])
    _, terms = xform.jet(lambda x: xnp.floor(x).astype(int), (2.0,), ((1.0,),))
    assert terms[0].dtype == xform.dtypes.float0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_types_stay(dtype):
    x = np.linspace(0.25, 1, 4).astype(xnp.dtype(dtype))
    f = lambda x: xnp.tanh(x) * x**1.5 / (1 + x)  # noqa: E731
    value, terms = xform.jet(f, (x,), ((np.ones(4, x.dtype), x),))
    wide = x.astype(float)
    want = xform.jet(f, (wide,), ((np.ones(4), wide),))[1]
    assert value.dtype == x.dtype and all(t.dtype == x.dtype for t in terms)
    rtol = 40 * float(xform.dtypes.finfo(x.dtype).eps)
    np.testing.assert_allclose([np.asarray(t, float) for t in terms], want, rtol=rtol, atol=rtol)


def test_shapes_at_the_edge():
    for shape in [(0,), (2, 0), (1, 1)]:
        x = np.ones(shape)
        value, terms = xform.jet(lambda x: xnp.exp(x) * 2 + xnp.sum(x), (x,), ((x, x),))
        assert value.shape == shape and [t.shape for t in terms] == [shape] * 2
    # a scalar against a matrix, on either side
    f = lambda s, x: (s * x, x / s, s - x, xnp.where(x > 0, s, x), lax.max(s, x))  # noqa: E731
    _, terms = xform.jet(f, (2.0, POSITIVE), ((1.0, 1.0), (np.zeros((3, 3)), np.zeros((3, 3)))))
    assert all(t.shape == (3, 3) for pair in terms for t in pair)


def test_python_control_flow_sees_values():
    assert derivatives(lambda x: x * x if x > 0 else x, 1.0, 2).tolist() == [2, 2]


# Wrong calls


def mystery():
    p = Primitive("mystery")
    p.abstract_eval, p.host = (lambda x: x), (lambda x: x)
    return p


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: xform.jet(3, (1.0,), ((1.0,),)), TypeError, "jet: expected a function"),
        (lambda: xform.jet(xnp.sin, 1.0, ((1.0,),)), TypeError, "jet: primals must be a tuple or list.*float"),
        (lambda: xform.jet(xnp.sin, (1.0,), 1.0), TypeError, "jet: series must be a tuple or list.*float"),
        (lambda: xform.jet(xnp.sin, (1.0,), (1.0,)), TypeError, "series of argument 0 must be a tuple or list"),
        (lambda: xform.jet(xnp.sin, (1.0,), ()), ValueError, "one entry per argument, got 0 for 1"),
        (
            lambda: xform.jet(xnp.add, (1.0, 2.0), ((1.0,), (1.0, 2.0))),
            ValueError,
            "same length, got 1 terms for argument 0 and 2 for argument 1",
        ),
        (
            lambda: xform.jet(xnp.sin, ({"a": np.ones(3)},), ([{"a": np.ones(2)}],)),
            TypeError,
            r"term 1 of argument 0\['a'\] must be f64\[3\].*got f64\[2\]",
        ),
        (lambda: xform.jet(xnp.sin, ([1.0],), ((1.0,),)), TypeError, "term 1 of argument 0 must have .* structure"),
        (lambda: xform.jet(xnp.sin, (1.0,), (("x",),)), TypeError, "term 1 of argument 0.*not an array"),
        (lambda: xform.jet(xnp.sin, (2,), ((1,),)), TypeError, r"term 1 of argument 0 must be float0\[\], .*i64\[\]"),
        (
            lambda: xform.jet(xnp.sin, (np.float32(1),), ((np.float64(1),),)),
            TypeError,
            r"must be f32\[\].*got f64\[\]",
        ),
        (
            lambda: xform.jet(mystery().bind, (1.0,), ((1.0,),)),
            NotImplementedError,
            r"Taylor mode \(jet\) of primitive 'mystery' is not defined",
        ),
    ],
)
def test_wrong_calls(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_leaked_tracer():
    leaked = []
    xform.jet(lambda x: leaked.append(x) or x, (1.0,), ((1.0,),))
    with pytest.raises(xform.errors.UnexpectedTracerError, match="after its trace, jet, has ended"):
        xnp.sin(leaked[0])


def test_jax_name():
    from xform.experimental.jet import jet

    assert jet is xform.jet
