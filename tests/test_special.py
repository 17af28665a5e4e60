"""How accurate special functions are, over their whole domains, on both backends: mpmath has the values.

The unit of errors is the distance to the next number at the exact value. Where a function crosses zero at points that
are no numbers, its error can be small in absolute terms only.
"""

import functools

import numpy as np
import pytest

import xform
import xform.lax as lax
from tests.calls import OPTIMIZED
from xform.core.config import small_programs

mp = pytest.importorskip("mpmath")

rng = np.random.default_rng(0)


def spread(low, high, n):
    """Numbers spread over [low, high] geometrically."""
    return np.exp(rng.uniform(np.log(low), np.log(high), n))


def signed(x):
    return np.concatenate([x, -x])


def zeta(s, q):
    """By Euler and Maclaurin's formula, since mpmath's own loses digits for large q."""
    n, a = 60, q + 60
    total = mp.fsum((q + k) ** -s for k in range(n)) + a ** (1 - s) / (s - 1) + a**-s / 2
    factor = s * a ** (-s - 1)
    for k in range(1, 40):
        total += mp.bernoulli(2 * k) / mp.factorial(2 * k) * factor
        factor *= (s + 2 * k - 1) * (s + 2 * k) / a**2
    return total


def polygamma(m, x):
    return -((-1) ** int(m)) * mp.factorial(m) * zeta(m + 1, x) if m else mp.digamma(x)


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True) if x < a + 50 else 1 - mp.gammainc(a, x, mp.inf, regularized=True)


def upper(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def lower_slope(a, x):
    return mp.diff(lambda a: lower(a, x), a) if x < a else -mp.diff(lambda a: upper(a, x), a)


def sample_slope(a, x):
    return -lower_slope(a, x) * mp.exp(x - (a - 1) * mp.log(x) + mp.loggamma(a))


def beta(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


def scaled_bessel(n):
    return lambda x: mp.besseli(n, x) * mp.exp(-abs(x))


def log_gamma(x):
    return mp.log(abs(mp.gamma(x))) if abs(x) < 1e5 else mp.loggamma(x)


def gamma_points(n):
    """Pairs for incomplete gamma functions: anywhere, and around the diagonal within a few standard deviations."""
    a, x = spread(1e-4, 1e3, n), spread(1e-4, 1e3, n)
    center = spread(1, 1e5, n)
    around = center + np.clip(rng.normal(0, 3, n), -0.9 * np.sqrt(center), None) * np.sqrt(center)
    small = spread(0.05, 3, n), spread(0.05, 3, n)  # where three methods meet
    return [np.concatenate([a, center, small[0]]), np.concatenate([x, around, small[1]])]


def beta_points(n):
    a, b = spread(1e-2, 1e3, n), spread(1e-2, 1e3, n)
    mean = a / (a + b)
    x = np.where(np.arange(n) % 2, rng.uniform(0, 1, n), mean * rng.uniform(0.7, 1.3, n))
    return [a, b, np.clip(x, 1e-6, 0.97)]


def beta_corners(n):
    """Pairs of which one is small, close to the ends of the interval."""
    a, b, edge = spread(1e-4, 1e3, n), spread(1e-5, 1, n), spread(1e-10, 0.3, n)
    turned = np.arange(n) % 2 == 0
    return [np.where(turned, b, a), np.where(turned, a, b), np.where(turned, edge, 1 - edge)]


# Function: exact values, arguments, bounds on the error in float32 and float64.
def cases(k):
    """With `k` times as many points."""
    real = signed(np.concatenate([spread(1e-300, 1, 40 * k), spread(1e-3, 6, 60 * k)]))
    positive = np.concatenate([spread(1e-300, 1e300, 40 * k), spread(1e-3, 1e3, 60 * k), rng.uniform(0, 10, 100 * k)])
    roots = np.concatenate([root + signed(spread(1e-15, 0.3, 20 * k)) for root in (1, 1.4616321449683623, 2)])
    bessel = signed(np.concatenate([spread(1e-10, 1e6, 40 * k), rng.uniform(0, 30, 60 * k)]))
    orders, shifts = np.floor(spread(1, 290, 80 * k)), spread(1e-3, 1e6, 80 * k)
    return {
        "tanh": (mp.tanh, [np.concatenate([real, rng.uniform(-22, 22, 100 * k)])], 2, 2),
        "erf": (mp.erf, [real], 3.5, 2.5),
        "erfc": (mp.erfc, [np.concatenate([real, rng.uniform(0, 26.5, 100 * k)])], 4, 4),
        "erf_inv": (
            mp.erfinv,
            [signed(np.concatenate([spread(1e-300, 1, 60 * k), 1 - spread(1e-16, 0.5, 60 * k)]))],
            4,
            4,
        ),
        "lgamma": (log_gamma, [np.concatenate([positive, roots, -spread(1e-300, 1.99, 60 * k)])], 4, 4),
        "digamma": (mp.digamma, [np.concatenate([positive, roots])], 4, 4),
        "bessel_i0e": (scaled_bessel(0), [bessel], 4, 4),
        "bessel_i1e": (scaled_bessel(1), [bessel], 4, 4),
        "zeta": (zeta, [1 + spread(1e-6, 100, 80 * k), spread(1e-3, 1e6, 80 * k)], 4, 4),
        "polygamma": (polygamma, [orders, shifts], 4, 4),
        "igamma": (lower, gamma_points(60 * k), 4, 5),
        "igammac": (upper, gamma_points(60 * k), 4, 5),
        "igamma_grad_a": (lower_slope, gamma_points(15 * k), 4, 12),
        "random_gamma_grad": (sample_slope, gamma_points(15 * k), 4, 12),
        "betainc": (beta, [np.concatenate(x) for x in zip(beta_points(60 * k), beta_corners(40 * k))], 4, 7),
    }


CASES, MANY_CASES = cases(1), cases(8)


def arguments(points, dtype):
    """The points that are normal numbers of the dtype."""
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        points = [np.asarray(x, dtype) for x in points]
    good = [np.isfinite(x) & (abs(x) >= info.tiny) for x in points]
    return [x[np.logical_and.reduce(good)] for x in points]


@functools.cache
def exact(name, dtype, many=False):
    """The arguments in the dtype, and the exact values."""
    function, points, *_ = (MANY_CASES if many else CASES)[name]
    points = arguments(points, dtype)
    if name in ("zeta", "polygamma"):
        points = [x[points[0] > (name == "zeta")] for x in points]
    if name == "erf_inv":
        points = [x[abs(x) < 1] for x in points]
    with mp.workdps(50):
        return points, [function(*[mp.mpf(float(x)) for x in xs]) for xs in zip(*points, strict=True)]


def errors(got, want, dtype):
    """Errors in units in the last place; none is counted where the exact value over- or underflows."""
    info, out = np.finfo(dtype), []
    for g, w in zip(got, want, strict=True):
        if not float(info.tiny) * 4 < abs(w) < float(info.max) / 2:
            out.append(0.0)
            continue
        place = mp.mpf(2) ** (int(mp.floor(mp.log(abs(w), 2))) - info.nmant)
        out.append(float(abs(mp.mpf(float(g)) - w) / place) if np.isfinite(g) else np.inf)
    return np.array(out)


def evaluate(function, points, backend):
    """On XLA in arrays that are large enough for formulas of `lax.vector_math`."""
    if backend == "host":
        return np.asarray(function(*points))
    size = points[0].size
    compiled = xform.jit(function, compiler_options=OPTIMIZED)
    return np.asarray(compiled(*[np.resize(x, max(size, 1024)) for x in points]))[:size]


@pytest.mark.parametrize("backend", ["host", "xla"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_accuracy(name, dtype, backend, many=False):
    points, values = exact(name, np.dtype(dtype).type, many)
    got = evaluate(getattr(lax, name), points, backend)
    off = errors(got, values, dtype)
    i, bound = off.argmax(), CASES[name][2 + (dtype == "float64")]
    assert off[i] <= bound, f"{off[i]} ulp at {[x[i] for x in points]}: got {got[i]!r}, expected {float(values[i])!r}"


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["host", "xla"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_accuracy_at_many_points(name, dtype, backend):
    test_accuracy(name, dtype, backend, many=True)


@pytest.mark.parametrize("name", CASES)
def test_half_precision_is_single_precision_rounded(name):
    points = [x[:40] for x in arguments(CASES[name][1], np.float16)]
    for dtype in (np.float16, xform.numpy.bfloat16):
        narrow = [x.astype(dtype) for x in points]
        single = [x.astype(np.float32) for x in narrow]
        for backend in ("host", "xla") if dtype == np.float16 else ("host",):
            got = evaluate(getattr(lax, name), narrow, backend)
            with np.errstate(all="ignore"):
                want = evaluate(getattr(lax, name), single, backend).astype(dtype)
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("backend", ["host", "xla"])
def test_polygamma_of_negative_numbers(backend):
    m, x = np.repeat([1.0, 2.0, 3.0, 6.0], 20), -spread(0.1, 40, 80)
    got = evaluate(lax.polygamma, [m, x], backend)
    with mp.workdps(50):
        want = [float(mp.psi(int(k), mp.mpf(v))) for k, v in zip(m, x, strict=True)]
    np.testing.assert_allclose(got, want, rtol=1e-11)


@pytest.mark.parametrize("backend", ["host", "xla"])
def test_betainc_derivatives(backend):
    """In all three arguments, against derivatives in 50 digits."""
    a, b, x = arguments(beta_points(24), np.float64)

    def derivatives(a, b, x):
        return xform.vmap(xform.grad(lax.betainc, argnums=(0, 1, 2)))(a, b, x)

    with small_programs("xla"):
        got = np.asarray((xform.jit(derivatives) if backend == "xla" else derivatives)(a, b, x))
    with mp.workdps(50):
        for i, xs in enumerate(zip(a, b, x, strict=True)):
            u, v, w = map(mp.mpf, xs)
            if not 1e-20 < beta(u, v, w) < 1 - 1e-20:
                continue  # no differences of these
            want = mp.diff(lambda t: beta(t, v, w), u), mp.diff(lambda t: beta(u, t, w), v)  # noqa: B023
            want = [*want, w ** (u - 1) * (1 - w) ** (v - 1) / mp.beta(u, v)]
            np.testing.assert_allclose(got[:, i], np.array(want, float), rtol=2e-11, err_msg=str(xs))


def test_second_derivatives():
    """Those that exist: twice in x, and in x and a parameter."""
    density = {
        "igamma": lambda a, x: mp.exp(-x) * x ** (a - 1) / mp.gamma(a),
        "betainc": lambda a, b, x: x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b),
    }
    for name, point in (("igamma", (2.5, 1.25)), ("betainc", (2.5, 1.5, 0.25))):
        last = len(point) - 1
        rows = (
            xform.hessian(getattr(lax, name), argnums=last)(*point),
            *(xform.grad(xform.grad(getattr(lax, name), argnums=i), argnums=last)(*point) for i in range(last)),
        )
        want = [
            mp.diff(density[name], point, tuple(int(i == k) for i in range(last + 1))) for k in (last, *range(last))
        ]
        np.testing.assert_allclose([float(r) for r in rows], np.array(want, float), rtol=1e-12)


# Where branches meet (a or b is 1, a is 20 or x), and beside.
GAMMA_POINTS = [
    (0.3, 0.6),
    (1.0, 2.0),
    (2.0, 0.05),
    (20.0, 20.0),
    (20.0, 24.0),
    (25.0, 25.02),
    (30.0, 30.0),
    (8.0, 9.6),
]
BETA_POINTS = [(0.3, 0.5, 0.9), (1.0, 3.0, 0.5), (5.0, 1.0, 0.9), (2.0, 8.0, 0.2), (30.0, 40.0, 0.5)]


def _sum_and_derive(function, argument):
    return xform.grad(lambda *operands: function(*operands).sum(), argument)


def _mp_gamma_sample(a, x):
    below = mp.diff(lambda a: mp.gammainc(a, 0, x, regularized=True), a, h=mp.mpf(10) ** -20)
    return -below * mp.gamma(a) * mp.exp(x - (a - 1) * mp.log(x))


@pytest.mark.parametrize(
    ("function", "reference", "points", "orders", "rtol"),
    [
        (lax.igamma, lambda a, x: mp.gammainc(a, 0, x, regularized=True), GAMMA_POINTS, (2, 0), 1e-12),
        (lax.igammac, lambda a, x: mp.gammainc(a, x, regularized=True), GAMMA_POINTS, (1, 1), 1e-12),
        (lax.random_gamma_grad, _mp_gamma_sample, GAMMA_POINTS, (1, 0), 1e-10),
        (lax.random_gamma_grad, _mp_gamma_sample, GAMMA_POINTS, (0, 1), 1e-10),
        (lax.betainc, lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), BETA_POINTS, (2, 0, 0), 1e-10),
        (lax.betainc, lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), BETA_POINTS, (1, 1, 0), 1e-10),
        (lax.betainc, lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), BETA_POINTS, (0, 2, 0), 1e-10),
    ],
)
def test_derivatives_by_forward_mode_through_formulas(function, reference, points, orders, rtol):
    """Those that have no formula of their own."""
    derivative = function
    for i, order in enumerate(orders):
        for _ in range(order):
            derivative = _sum_and_derive(derivative, i)
    with mp.workdps(60):
        step = mp.mpf(10) ** -15
        want = [mp.diff(reference, tuple(map(mp.mpf, p)), orders, h=step) for p in points]
    operands = [np.array(column) for column in zip(*points, strict=True)]
    np.testing.assert_allclose(derivative(*operands), np.array(want, float), rtol=rtol)


def test_second_derivatives_of_compiled_incomplete_integrals():
    second = xform.jit(xform.grad(xform.grad(lax.igamma)))(1.5, 2.0)
    with mp.workdps(60):
        want = mp.diff(lambda a: mp.gammainc(a, 0, 2, regularized=True), 1.5, 2, h=mp.mpf(10) ** -15)
    np.testing.assert_allclose(second, float(want), rtol=1e-12)


def test_zeta_has_no_derivative_in_its_exponent():
    with pytest.raises(NotImplementedError, match=r"zeta.*derivative in x"):
        xform.grad(lax.zeta)(2.0, 1.0)


def test_bessel_derivatives_at_zero():
    assert float(xform.grad(lax.bessel_i1e)(0.0)) == 0.5
    np.testing.assert_allclose(float(xform.grad(lax.bessel_i0e)(1e-9)), -1, rtol=1e-8)


def test_large_arguments():
    """Far out, where series would need millions of terms; the expansion's center; tails."""
    a = np.array([1e10, 1e10, 1e15, 600.0, 1e6])
    x = np.array([1e10, 1e10 + 3e5, 1e15, 200.0, 1.02e6])
    with mp.workdps(40):
        # The normal limit with its correction for skewness is exact enough for the first three.
        np.testing.assert_allclose(
            lax.igamma(a, x)[[0, 2]], [0.5 + 1 / 3 / np.sqrt(2 * np.pi * v) for v in a[[0, 2]]], rtol=1e-14
        )
        want = [float(lower(mp.mpf(u), mp.mpf(v))) for u, v in zip(a[3:4], x[3:4], strict=True)]
    np.testing.assert_allclose(lax.igamma(a, x)[3:4], want, rtol=1e-15)
    assert float(lax.igammac(1e6, 1.02e6)) > 0 and np.isfinite(np.asarray(lax.igamma_grad_a(a, x))).all()


def test_polynomial():
    x = np.linspace(-2, 2, 5)
    np.testing.assert_array_equal(lax.polynomial(x, [1.0, 5.0, 2.0]), 1 + 5 * x + 2 * x * x)
    np.testing.assert_array_equal(lax.polynomial(x, [x, 2.0]), x + 2 * x)
    np.testing.assert_array_equal(lax.polynomial(x, [3.0]), np.full(5, 3.0))
    np.testing.assert_array_equal(xform.vmap(xform.grad(lambda x: lax.polynomial(x, [1.0, 5.0, 2.0])))(x), 5 + 4 * x)
