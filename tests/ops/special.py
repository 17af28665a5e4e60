"""Records of special functions. How accurate they are over their whole domains, `tests/test_special.py` looks at."""

import numpy as np
from scipy import special

from tests.ops.elementwise_transcendental import edges, unary, wide
from tests.ops.record import FLOATS, INEXACT, Op, Sample, array, edge_values, eps, unary_samples
from xform import lax
from xform.lax.special.incomplete_beta import betainc_grad_a_p, betainc_grad_b_p
from xform.lax.special.sinc import sinc_p

SHAPES = ((), (2, 3), (0, 2))


def erf_inv(x):
    return np.copysign(special.erfinv(x), x)


def i1e(x):
    return np.copysign(special.i1e(x), x)  # SciPy's has no -0.0


def lgamma(x):
    return np.where(x == -np.inf, x.dtype.type(np.inf), special.gammaln(x))  # as in C


def lgamma_edges(dtype):
    """Not the zeros, 1 and 2, around which SciPy's is not accurate."""
    values = np.concatenate([edge_values(dtype), np.array([0.1, 100, -0.5, -7.5], dtype)])
    return [Sample((values[values != 1],))]


def sinc(order):
    """The record of one order: a spherical Bessel function divided by a power."""

    def function(x):
        return sinc_p.bind(x, order=order)

    def reference(x):
        safe = np.where(x == 0, 1, x)
        return np.where(x == 0, 1 / special.factorial2(2 * order + 1), special.spherical_jn(order, safe) / safe**order)

    def edges(dtype):
        return [] if dtype.kind == "c" else [Sample((np.array([0.0, -0.0, 1.0, -2.5, 4.5, -30, np.nan], dtype),))]

    function.__name__ = "sinc"
    errors = [(lambda: function(np.arange(2)), TypeError, r"sinc takes arrays of inexact dtype, got i64\[2\]")]
    return Op(
        f"sinc:{order}", function, unary_samples(low=0.3, high=5), reference, INEXACT, edges,
        rtol={d: 64 * eps(d) for d in INEXACT}, ulps=64,
        errors=errors,
    )  # fmt: skip


def polygamma_samples(rng, dtype):
    return [Sample((m, array(rng, dtype, shape, 1.5, 5))) for m, shape in zip((0.0, 1.0, 3.0), SHAPES)]


def polygamma_edges(dtype):
    m = np.array([0, 1, 2, 1, 2, 1, -1, 1.5, 1, 0, 1, 2, 3, 4], dtype)
    x = np.array([0.0, 0.0, 0.0, -1.0, -1.5, -0.5, 2, 2, np.nan, np.inf, np.inf, np.inf, -12.25, -12.25], dtype)
    return [Sample((m, x))]


def polygamma(m, x):
    """Infinite at the poles of odd order, NaN at those where the signs differ on both sides but for digamma at 0."""
    m, x = np.broadcast_arrays(np.asarray(m, x.dtype), x)
    values = [special.polygamma(int(k), float(v)) if k in range(9) else np.nan for k, v in zip(m.flat, x.flat)]
    poles = (x <= 0) & (x == np.floor(x)) & (m > 0)
    return np.where(poles, np.where(m % 2 == 1, np.inf, np.nan), np.reshape(values, x.shape) + 0.0).astype(x.dtype)


def zeta_samples(rng, dtype):
    return [Sample((s, array(rng, dtype, shape, 0.5, 5))) for s, shape in zip((1.5, 2.0, 6.0), SHAPES)]


def zeta_edges(dtype):
    s = np.array([1, 0.5, 2, 2, 2, 3, 2.5, np.nan, 2, 2, 20, 1.5, 3], dtype)
    q = np.array([1, 1, 0, -3, -3.25, -3.25, -3.25, 1, np.nan, np.inf, 3, 1e4, 1e4], dtype)
    return [Sample((s, q))]


def gamma_samples(rng, dtype):
    """On both sides of the diagonal, and around it; a number beside an array."""
    cases = [((), 3), ((0, 2), 3), ((2, 3), 3), ((3,), 40)]
    calls = [
        (array(rng, dtype, shape, 0.5 * high, high), array(rng, dtype, shape, 0.3 * high, 1.3 * high))
        for shape, high in cases
    ]
    return [Sample(c) for c in calls] + [Sample((np.asarray(1.5, dtype), calls[2][1]))]


def gamma_edges(dtype):
    values = np.array([0, 1, 2.5, 30, 1000, np.inf, np.nan, -1], dtype)
    return [Sample((np.repeat(values, values.size), np.tile(values, values.size)))]


def density(a, x):
    a, x = np.asarray(a, float), np.asarray(x, float)
    return np.exp((a - 1) * np.log(x) - x - special.gammaln(a))


def central(f, a):
    """The derivative by central differences with four points."""
    a = np.asarray(a, float)
    h = 2e-3 * a
    near, far = (f(a + n * h) - f(a - n * h) for n in (1, 2))
    return (8 * near - far) / (12 * h)


def slope(a, x):
    """The derivative of P in a."""
    return central(lambda a: special.gammainc(a, np.float64(x)), a)


def betainc(a, b, x):
    return special.betainc(*[np.asarray(v, float) for v in (a, b, x)]).astype(x.dtype)  # in float32 SciPy's is bad


def betainc_slope(which):
    """The derivative of I in a or b; where I is close to 1, of the difference, which has more digits."""

    def slope(*operands):
        a, b, x = (np.asarray(v, float) for v in operands)

        def along(f):
            return central((lambda v: f(a, v, x)) if which else (lambda v: f(v, b, x)), b if which else a)

        return np.where(special.betainc(a, b, x) < 0.5, along(special.betainc), -along(special.betaincc))

    return slope


def beta_samples(rng, dtype):
    pairs = [((0.5, 3), (0.5, 3)), ((20, 40), (10, 30))]
    cases = [(pairs[0], ()), (pairs[0], (0, 2)), (pairs[1], (2, 3))]
    calls = [tuple(array(rng, dtype, shape, *r) for r in (*pair, (0.1, 0.9))) for pair, shape in cases]
    return [Sample(c) for c in calls] + [Sample((np.asarray(1.5, dtype), *calls[2][1:]))]


def beta_edges(dtype):
    grid = np.meshgrid([0, 0.5, 1, 30, np.inf, np.nan, -1], [0, 0.5, 1, 30, np.inf], [0, 0.25, 1, -1, 2, np.nan])
    return [Sample(tuple(g.ravel().astype(dtype) for g in grid))]


def several(name, function, reference, samples, operands=2, **options):
    """The record of a function of several arrays, which takes floats only."""
    called, rest = function.__name__, [np.ones(2)] * (operands - 1)
    errors = [
        (lambda: function(*[np.ones(2, int)] * operands), TypeError, rf"{called}.*i64\[2\]"),
        (lambda: function(np.ones(3), *rest), TypeError, rf"{called}.*f64\[3\], f64\[2\]"),
        (lambda: function(np.ones(2, np.float32), *rest), TypeError, rf"{called}.*f32\[2\], f64\[2\]"),
    ]
    return Op(name, function, samples, reference, FLOATS, errors=errors, **options)


SCIPY = {"float64": 1e-12}  # SciPy's error


OPS = [
    unary(lax.erf, special.erf, dtypes=FLOATS, edges=wide(-10, 10)),
    unary(lax.erfc, special.erfc, dtypes=FLOATS, edges=wide(-10, 10), rtol=SCIPY),
    unary(lax.erf_inv, erf_inv, -0.9, 0.9, dtypes=FLOATS, edges=edges(0.1, 0.99, 0.9999, -0.9999)),
    unary(lax.lgamma, lgamma, 2.5, 5, dtypes=FLOATS, edges=lgamma_edges),
    unary(lax.digamma, special.digamma, 2, 5, dtypes=FLOATS, edges=edges(0.1, 100, -0.3, -7.6), ulps=16),
    *map(sinc, range(4)),
    unary(lax.bessel_i0e, special.i0e, 0.2, 12, dtypes=FLOATS, edges=wide(-1e3, 1e3)),
    unary(lax.bessel_i1e, i1e, 0.2, 12, dtypes=FLOATS, edges=wide(-1e3, 1e3)),
    several("polygamma", lax.polygamma, polygamma, polygamma_samples, edges=polygamma_edges),
    several("zeta", lax.zeta, special.zeta, zeta_samples, edges=zeta_edges),
    several("igamma", lax.igamma, special.gammainc, gamma_samples, edges=gamma_edges, order=1, rtol=SCIPY),
    several("igammac", lax.igammac, special.gammaincc, gamma_samples, edges=gamma_edges, order=1, rtol=SCIPY),
    several("igamma_grad_a", lax.igamma_grad_a, slope, gamma_samples, differentiable=False, rtol=1e-7),
    several(
        "random_gamma_grad", lax.random_gamma_grad, lambda a, x: -slope(a, x) / density(a, x), gamma_samples,
        differentiable=False, rtol=1e-6,
    ),
    # The series has the factor exp(a log x + b log(1 - x) - log B); the logarithms of the factors of B are near 200.
    several(
        "regularized_incomplete_beta", lax.betainc, betainc, beta_samples, 3, edges=beta_edges, order=1, rtol=SCIPY,
        ulps=32,
    ),
    Op(
        "regularized_incomplete_beta_grad_a", betainc_grad_a_p.bind, beta_samples,
        betainc_slope(0), FLOATS, differentiable=False, rtol=1e-7,
        errors=[
            (lambda: betainc_grad_a_p.bind(*[np.ones(2, int)] * 3), TypeError, r"betainc .*i64\[2\]"),
            (lambda: betainc_grad_a_p.bind(np.ones(2), np.ones(3), 0.5), TypeError, r"betainc .*f64\[2\], f64\[3\]"),
        ],
    ),
    Op(
        "regularized_incomplete_beta_grad_b", betainc_grad_b_p.bind, beta_samples,
        betainc_slope(1), FLOATS, differentiable=False, rtol=1e-7,
        errors=[
            (lambda: betainc_grad_b_p.bind(*[np.ones(2, int)] * 3), TypeError, r"betainc .*i64\[2\]"),
            (lambda: betainc_grad_b_p.bind(np.ones(2), np.ones(3), 0.5), TypeError, r"betainc .*f64\[2\], f64\[3\]"),
        ],
    ),
    Op(
        "polynomial", lambda x: lax.polynomial(x, [1.0, -2.0, 0.5]), unary_samples(),
        lambda x: (0.5 * x - 2) * x + 1, FLOATS,
        errors=[(lambda: lax.polynomial(1.0, []), TypeError, "polynomial: coeffs")],
    ),
]  # fmt: skip
