"""Distributions of `xform.random`, by SciPy: in one call, compiled, and mapped over keys; edges; derivatives."""

import numpy as np
import pytest
from scipy import special, stats

import xform
import xform.numpy as jnp
from tests.ops.record import as_dtype, eps
from xform import lax, random
from xform.core import config

FLOATS = ("float16", "bfloat16", "float32", "float64")
LOGITS = np.log(np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]))
WEIGHTS = np.array([0.1, 0.0, 0.4, 0.3, 0.2])
COV = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])
TABLE = np.arange(30.0).reshape(5, 6)

# ---- Distributions -----------------------------------------------------------------------------------------

N = 20000


class DoubleMaxwell:
    """The Maxwell distribution of scale 2 with random sign, around 1."""

    def cdf(self, x):
        return 0.5 + np.sign(x - 1) * stats.maxwell(scale=2).cdf(abs(x - 1)) / 2


CONTINUOUS = {
    "uniform": (lambda k: random.uniform(k, (N,), minval=-2, maxval=3), stats.uniform(-2, 5)),
    "normal": (lambda k: random.normal(k, (N,)), stats.norm()),
    "normal-float32": (lambda k: random.normal(k, (N,), "float32"), stats.norm()),
    "normal-real": (lambda k: random.normal(k, (N,), complex).real, stats.norm(scale=0.5**0.5)),
    "normal-imag": (lambda k: random.normal(k, (N,), complex).imag, stats.norm(scale=0.5**0.5)),
    "truncated_normal": (lambda k: random.truncated_normal(k, -0.5, 2, (N,)), stats.truncnorm(-0.5, 2)),
    "exponential": (lambda k: random.exponential(k, (N,)), stats.expon()),
    "gumbel": (lambda k: random.gumbel(k, (N,)), stats.gumbel_r()),
    "gumbel-high": (lambda k: random.gumbel(k, (N,), "float32", mode="high"), stats.gumbel_r()),
    "laplace": (lambda k: random.laplace(k, (N,)), stats.laplace()),
    "logistic": (lambda k: random.logistic(k, (N,)), stats.logistic()),
    "cauchy": (lambda k: random.cauchy(k, (N,)), stats.cauchy()),
    "lognormal": (lambda k: random.lognormal(k, 0.5, (N,)), stats.lognorm(0.5)),
    "maxwell": (lambda k: random.maxwell(k, (N,)), stats.maxwell()),
    "double_sided_maxwell": (lambda k: random.double_sided_maxwell(k, 1, 2, (N,)), DoubleMaxwell()),
    "pareto": (lambda k: random.pareto(k, 2.5, (N,)), stats.pareto(2.5)),
    "rayleigh": (lambda k: random.rayleigh(k, 2.0, (N,)), stats.rayleigh(scale=2)),
    "triangular": (lambda k: random.triangular(k, 1, 2, 5, (N,)), stats.triang(0.25, 1, 4)),
    "wald": (lambda k: random.wald(k, 0.7, (N,)), stats.invgauss(0.7)),
    "weibull_min": (lambda k: random.weibull_min(k, 2.0, 3.0, (N,)), stats.weibull_min(3, scale=2)),
}
DISCRETE = {  # with the probabilities of 0, 1, ...
    "randint": (lambda k: random.randint(k, (N,), 0, 7), np.full(7, 1 / 7)),
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, (N,)), [0.7, 0.3]),
    "bernoulli-high": (lambda k: random.bernoulli(k, np.float32(0.3), (N,), mode="high"), [0.7, 0.3]),
    "geometric": (lambda k: jnp.minimum(random.geometric(k, 0.4, (N,)), 5), [0, 0.4, 0.24, 0.144, 0.0864, 0.1296]),
    "rademacher": (lambda k: (random.rademacher(k, (N,)) + 1) // 2, [0.5, 0.5]),
    "categorical": (lambda k: random.categorical(k, LOGITS[0], shape=(N,)), np.exp(LOGITS[0])),
    "choice": (lambda k: random.choice(k, 5, (N,)), np.full(5, 0.2)),
    "choice-p": (lambda k: random.choice(k, 5, (N,), p=WEIGHTS), WEIGHTS),
    "permutation": (lambda k: xform.vmap(lambda k: random.permutation(k, 6)[2])(random.split(k, N)), np.full(6, 1 / 6)),
    "choice-once": (
        lambda k: xform.vmap(lambda k: random.choice(k, 5, (1,), replace=False, p=WEIGHTS)[0])(random.split(k, N)),
        WEIGHTS,
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    call, law = CONTINUOUS[name]
    assert stats.kstest(np.asarray(call(random.key(11)), float), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    call, p = DISCRETE[name]
    counts = np.bincount(np.asarray(call(random.key(11)), int), minlength=len(p))
    possible = np.asarray(p) > 0
    assert counts.size == len(p) and not counts[~possible].any()
    assert stats.chisquare(counts[possible], N * np.asarray(p)[possible]).pvalue > 1e-3


def test_draws_from_split_keys_are_uncorrelated():
    keys = random.split(random.key(0), 40)
    x = np.asarray(xform.vmap(lambda k: random.normal(k, (2000,)))(keys))
    off = np.corrcoef(x)[np.triu_indices(40, 1)]
    assert stats.kstest(off * np.sqrt(2000), stats.norm().cdf).pvalue > 1e-3


def test_covariance():
    x = np.asarray(random.multivariate_normal(random.key(5), np.array([1.0, 2.0, 3.0]), COV, (N,)))
    np.testing.assert_allclose(x.mean(0), [1, 2, 3], atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), COV, atol=0.12)
    singular = np.ones((2, 2))
    for method in ("eigh", "svd"):
        x = np.asarray(random.multivariate_normal(random.key(5), np.zeros(2), singular, (10,), method=method))
        np.testing.assert_allclose(x[:, 0], x[:, 1], atol=1e-7)


def test_without_replacement_nothing_comes_twice():
    for i in range(20):
        for p in (None, WEIGHTS):
            drawn = random.choice(random.key(i), 5, (4,), replace=False, p=p)
            assert len(set(drawn.tolist())) == 4
    assert sorted(random.permutation(random.key(0), 3000).tolist()) == list(range(3000))
    rows = np.asarray(random.permutation(random.key(0), TABLE))
    assert sorted(map(tuple, rows)) == sorted(map(tuple, TABLE))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_stay_in_range(dtype):
    x = np.asarray(random.uniform(random.key(1), (5000,), dtype))
    assert (
        (x >= 0).all() and (x < 1).all() and np.isfinite(np.asarray(random.normal(random.key(1), (5000,), dtype))).all()
    )
    x = np.asarray(random.truncated_normal(random.key(1), 0.5, 0.75, (5000,), dtype))
    assert (x > as_dtype(dtype).type(0.5)).all() and (x < as_dtype(dtype).type(0.75)).all()


# ---- Samplers that reject, or add up probabilities ---------------------------------------------------------


REAL = {  # name: call(key, shape, dtype), the law
    **{
        f"gamma-{a}": (lambda k, s, t, a=a: random.gamma(k, a, s, t), stats.gamma(a))
        for a in (0.01, 0.3, 1.0, 1.7, 50.0, 1e6)
    },
    **{
        f"loggamma-{a}": (lambda k, s, t, a=a: random.loggamma(k, a, s, t), stats.loggamma(a)) for a in (0.3, 1.7, 50.0)
    },
    "beta": (lambda k, s, t: random.beta(k, 0.4, 2.5, s, t), stats.beta(0.4, 2.5)),
    "chisquare": (lambda k, s, t: random.chisquare(k, 2.5, s, t), stats.chi2(2.5)),
    "dirichlet": (lambda k, s, t: random.dirichlet(k, np.array([0.5, 1.5, 2.0]), s, t)[..., 0], stats.beta(0.5, 3.5)),
    "f": (lambda k, s, t: random.f(k, 2.5, 4.0, s, t), stats.f(2.5, 4)),
    "t": (lambda k, s, t: random.t(k, 2.5, s, t), stats.t(2.5)),
    "generalized_normal": (lambda k, s, t: random.generalized_normal(k, 3.0, s, t), stats.gennorm(3.0)),
    # Of a point of the unit ball in 3 dimensions a coordinate has density (1 - x**2) * 3/4, that of a beta number.
    "ball": (lambda k, s, t: random.ball(k, 3, shape=s, dtype=t)[..., 1], stats.beta(2, 2, loc=-1, scale=2)),
    "ball-1": (lambda k, s, t: jnp.abs(random.ball(k, 3, 1.0, s, t)).sum(-1) ** 3, stats.uniform()),
    "gamma-approximate": (lambda k, s, t: random.gamma(k, 0.7, s, t, method="approximate"), stats.gamma(0.7)),
}
COUNTS = {
    **{
        f"poisson-{lam}": (lambda k, s, t, lam=lam: random.poisson(k, lam, s), stats.poisson(lam))
        for lam in (0.01, 0.8, 9.9, 10.0, 33.0, 5000.0)
    },
    **{
        f"binomial-{n}-{p}": (lambda k, s, t, n=n, p=p: random.binomial(k, n, p, s, t), stats.binom(n, p))
        for n, p in ((1, 0.3), (12, 0.7), (40, 0.26), (40, 0.9), (1000, 0.003), (1000, 0.6), (10**6, 0.5))
    },
    "multinomial": (
        lambda k, s, t: random.multinomial(k, 30, np.array([0.2, 0.5, 0.3]), shape=(*s, 3))[..., 1],
        stats.binom(30, 0.5),
    ),
    "poisson-approximate": (lambda k, s, t: random.poisson(k, 12.0, s, method="approximate"), stats.poisson(12)),
}
MODES = {
    "eager": lambda call, key: call(key, (N,)),
    "jit": lambda call, key: xform.jit(lambda key: call(key, (N,)))(key),
    "vmap": lambda call, key: xform.vmap(lambda key: call(key, (N // 100,)))(random.split(key, 100)),
    "jit-vmap": lambda call, key: xform.jit(xform.vmap(lambda key: call(key, ())))(random.split(key, N)),
}


def fits(x, law):
    """The p-value of the hypothesis that the law of `x` is the given one, by chi-square for integers."""
    x = np.asarray(x, float).ravel()
    if not hasattr(law, "pmf"):
        return stats.kstest(x, law.cdf).pvalue
    assert (x == np.floor(x)).all()
    # Bins of about equal probability; of an integer with much of it, that one alone.
    ends = np.unique(law.ppf(np.linspace(0, 1, 40)[1:-1]))
    expected = np.diff(np.concatenate([[0], law.cdf(ends), [1]]))
    found = np.bincount(np.searchsorted(ends, x, "left"), minlength=expected.size)
    enough = expected * x.size > 5
    found, expected = (
        np.append(found[enough], found[~enough].sum()),
        np.append(expected[enough], expected[~enough].sum()),
    )
    if expected[-1] * x.size < 1:
        assert found[-1] < 10
        found, expected = found[:-1], expected[:-1]
    return stats.chisquare(found, expected / expected.sum() * found.sum()).pvalue if found.size > 1 else 1.0


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [*REAL, *COUNTS])
def test_repeated_samplers(name, mode):
    call, law = {**REAL, **COUNTS}[name]
    assert fits(MODES[mode](lambda key, shape: call(key, shape, None), random.key(7)), law) > 1e-3


@pytest.mark.parametrize("name", [*REAL, *COUNTS])
def test_modes_agree(name):
    """A number depends on its key and its place alone."""
    call, _ = {**REAL, **COUNTS}[name]
    keys = random.split(random.key(1), 3)
    one_by_one = np.stack([np.asarray(call(key, (40, 2), None)) for key in keys])
    for rows in (
        xform.vmap(lambda key: call(key, (40, 2), None))(keys),
        xform.jit(xform.vmap(lambda key: call(key, (40, 2), None)))(keys),
        np.stack([np.asarray(xform.jit(lambda key: call(key, (40, 2), None))(key)) for key in keys]),
        # The multinomial's later outcomes depend on the earlier ones, which have keys of their own.
        np.stack([np.asarray(call(key, (80,), None)).reshape(40, 2) for key in keys]),
    ):
        np.testing.assert_allclose(rows, one_by_one, rtol=1e-11)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [n for n in REAL if n not in ("gamma-0.01", "gamma-1000000.0")])
def test_dtypes_of_repeated_samplers(name, dtype):
    call, law = REAL[name]
    x = call(random.key(7), (N,), dtype)
    assert x.dtype == as_dtype(dtype)
    if eps(dtype) < 1e-5:
        assert fits(x, law) > 1e-3
    else:  # narrow floats have few values
        middle = np.quantile(np.asarray(x, float), [0.25, 0.5, 0.75])
        np.testing.assert_allclose(middle, law.ppf([0.25, 0.5, 0.75]), rtol=0.05, atol=0.02)


def test_dtypes_of_counts():
    for dtype in ("int8", "int32", "uint16", "int64"):
        x = random.poisson(random.key(0), 20.0, (100,), dtype)
        assert x.dtype == dtype and abs(x.astype(float).mean() - 20) < 2
    assert int(random.poisson(random.key(0), 1e4, dtype="int8")) == 127
    for dtype in FLOATS:
        assert random.binomial(random.key(0), 10, 0.5, (3,), dtype).dtype == as_dtype(dtype)
        assert random.multinomial(random.key(0), 10, np.full(3, 1 / 3), dtype=dtype).dtype == as_dtype(dtype)
    with xform.enable_x64(False):
        assert random.gamma(random.key(0), 2.0).dtype == np.float32
        assert random.poisson(random.key(0), 2.0).dtype == np.int32
        assert fits(random.gamma(random.key(0), 0.5, (N,)), stats.gamma(0.5)) > 1e-3
        assert fits(random.poisson(random.key(0), 20.0, (N,)), stats.poisson(20)) > 1e-3
        assert fits(random.binomial(random.key(0), 50, 0.4, (N,)), stats.binom(50, 0.4)) > 1e-3


@pytest.mark.parametrize("mean", [1e10, 1e15, 1e18])
def test_large_means(mean):
    """Where log-probabilities are differences of huge numbers."""
    x = np.asarray(random.poisson(random.key(7), mean, (N,)), float)
    assert fits((x - mean) / mean**0.5, stats.norm()) > 1e-3
    x = np.asarray(random.binomial(random.key(7), mean, 0.25, (N,)), float)
    assert fits((x - mean / 4) / (mean * 3 / 16) ** 0.5, stats.norm()) > 1e-3
    x = np.asarray(random.gamma(random.key(7), mean, (N,)), float)
    assert fits((x - mean) / mean**0.5, stats.norm()) > 1e-3


def test_multinomial():
    p = np.array([0.2, 0.0, 0.5, 0.3])
    counts = np.asarray(random.multinomial(random.key(3), 50, p, shape=(N, 4)))
    assert (counts.sum(-1) == 50).all() and not counts[:, 1].any() and (counts >= 0).all()
    np.testing.assert_allclose(counts.mean(0), 50 * p, rtol=0.01)
    want = 50 * (np.diag(p) - np.outer(p, p))
    np.testing.assert_allclose(np.cov(counts.T), want, atol=0.3)
    assert random.multinomial(random.key(3), np.array([5, 7]), np.full((2, 3), 1 / 3)).sum(-1).tolist() == [5, 7]
    scaled = random.multinomial(random.key(3), 50, 7 * p, shape=(10, 4))
    np.testing.assert_array_equal(scaled, random.multinomial(random.key(3), 50, p, shape=(10, 4), unroll=2))


def test_dirichlet():
    alpha = np.array([[0.5, 1.5, 2.0], [1e-3, 1e-3, 1e-3]])
    x = np.asarray(random.dirichlet(random.key(3), alpha, (N, 2)))
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(x.mean(0), alpha / alpha.sum(-1, keepdims=True), atol=0.02)
    assert random.dirichlet(random.key(3), alpha).shape == (2, 3)
    assert np.isfinite(x).all() and (x[:, 1].max(-1) > 0.99).mean() > 0.97


def test_ball():
    for p in (0.7, 1.0, 2.0, 5.0):
        x = np.asarray(random.ball(random.key(3), 4, p, (N,)))
        size = (np.abs(x) ** p).sum(-1) ** (1 / p)
        assert fits(size**4, stats.uniform()) > 1e-3
    assert random.ball(random.key(3), 0, shape=(2,)).shape == (2, 0)


def test_edges_of_repeated_samplers():
    nan, inf = np.nan, np.inf
    key = random.key(0)
    assert_equal = np.testing.assert_array_equal
    a = np.array([nan, -1, -inf, 0, inf])
    for wrap in (lambda f: f, xform.jit):
        assert_equal(wrap(lambda a: random.gamma(key, a))(a), [nan, nan, nan, 0, inf])
        assert_equal(wrap(lambda a: random.loggamma(key, a))(a), [nan, nan, nan, -inf, inf])
        assert_equal(wrap(lambda lam: random.poisson(key, lam))(a), [-1, -1, -1, 0, -1])
        n, p = np.meshgrid([nan, -1, 0, 3, 3.9, 100, inf], [nan, -0.1, 1.1, 0, 1], indexing="ij")
        got = wrap(lambda n, p: random.binomial(key, n, p))(n, p)
        assert np.isnan(got[:2]).all() and np.isnan(got[:, :3]).all()
        assert_equal(got[2:, 3:], [[0, 0], [0, 3], [0, 3], [0, 100], [inf, inf]])
        assert_equal(wrap(lambda lam: random.poisson(key, lam))(np.array([1e300])), [2**63 - 1])
        assert random.gamma(key, 1.0, (0, 3)).shape == (0, 3) and random.poisson(key, 1.0, (0,)).shape == (0,)
        tiny = np.asarray(wrap(lambda a: random.loggamma(key, a))(np.full(1000, 1e-300)))
        assert np.isfinite(tiny).all() and (tiny < -1e295).all()


@pytest.mark.parametrize("name", ["gamma", "loggamma", "poisson", "binomial", "dirichlet"])
def test_wherever_samplers_run(name):
    """On either backend, in loops, and while NaN and infinities are looked for, the numbers are the same."""
    key, a = random.key(3), np.array([0.3, 2.0, 50.0])

    def draw(a):
        return random.binomial(key, 10 * a, 0.4) if name == "binomial" else getattr(random, name)(key, a)

    want = np.asarray(draw(a))
    found = {
        "host program": xform.jit(draw, backend="numpy")(a),
        "scan": lax.scan(lambda c, x: (c, draw(x)), 0, np.stack([a, a]))[1][1],
        "cond": xform.jit(lambda a: lax.cond(a[0] < 1, draw, draw, a))(a),
        "vmap": xform.vmap(draw, 1)(np.stack([a, a], 1))[1],
    }
    for setting in (
        config.debug_nans(True),
        config.debug_infs(True),
        xform.disable_jit(),
        config.eager("xla"),
        config.enable_checks(True),
    ):
        with setting:
            found[repr(setting)] = xform.jit(draw)(a)
            found[repr(setting) + " eager"] = draw(a)
    for where, got in found.items():
        np.testing.assert_allclose(got, want, rtol=1e-11, err_msg=where)


def test_numbers_of_a_narrow_shape_begin_the_wide_one():
    for call in (lambda s: random.gamma(random.key(2), 0.5, s), lambda s: random.poisson(random.key(2), 30.0, s)):
        np.testing.assert_array_equal(call((20000,))[:5], call((5,)))


# ---- Derivatives by parameters -----------------------------------------------------------------------------


def test_derivatives_at_a_constant_quantile():
    """Of gamma samples: the derivative of the quantile function, here by central differences of SciPy's."""
    a = np.geomspace(0.05, 200, 60)
    key, h = random.key(4), 1e-5
    x, slope = xform.jvp(lambda a: random.gamma(key, a), (a,), (np.ones(60),))
    u = special.gammainc(a, x)
    far = u > 0.999  # there u has lost digits
    want = (special.gammaincinv(a * (1 + h), u) - special.gammaincinv(a * (1 - h), u)) / (2 * a * h)
    np.testing.assert_allclose(np.asarray(slope)[~far], want[~far], rtol=1e-6)
    logs, slope_of_log = xform.jvp(lambda a: random.loggamma(key, a), (a,), (np.ones(60),))
    np.testing.assert_allclose(logs, np.log(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(slope_of_log, slope / x, rtol=1e-9)
    for wrap in (xform.jit, lambda f: f):
        np.testing.assert_allclose(wrap(xform.grad(lambda a: random.gamma(key, a).sum()))(a), slope, rtol=1e-12)
    each = xform.vmap(xform.grad(lambda a, key: random.gamma(key, a)))(a, random.split(key, 60))
    assert np.isfinite(np.asarray(each)).all()
    # For small a, log(x) = (log(u) + lgamma(a + 1)) / a.
    a = 1e-4
    y, slope = xform.jvp(lambda a: random.loggamma(key, a), (a,), (1.0,))
    np.testing.assert_allclose(slope, (special.digamma(1 + a) - y) / a, rtol=1e-12)


M = 40000


def moment(law):
    """The derivative by the parameter of what a law has for it."""
    return lambda p: (law(p * (1 + 1e-5)) - law(p * (1 - 1e-5))) / (2e-5 * p)


DERIVATIVES = {  # name: the random number of which a parameter gives the mean, the parameter, the mean
    "gamma": (lambda k, a: random.gamma(k, a), 0.7, lambda a: a),
    "gamma-square": (lambda k, a: random.gamma(k, a) ** 2, 3.0, lambda a: a * (a + 1)),
    "gamma-approximate": (lambda k, a: random.gamma(k, a, method="approximate"), 3.0, lambda a: a),
    "loggamma": (lambda k, a: random.loggamma(k, a), 0.7, special.digamma),
    "beta-a": (lambda k, a: random.beta(k, a, 2.0), 0.7, lambda a: a / (a + 2)),
    "beta-b": (lambda k, b: random.beta(k, 0.7, b), 2.0, lambda b: 0.7 / (b + 0.7)),
    "chisquare": (lambda k, df: random.chisquare(k, df), 3.0, lambda df: df),
    "f": (lambda k, df: random.f(k, 2.0, df), 12.0, lambda df: df / (df - 2)),
    "t-square": (lambda k, df: random.t(k, df) ** 2, 12.0, lambda df: df / (df - 2)),
    "dirichlet": (
        lambda k, a: random.dirichlet(k, jnp.stack([a, 2 * a, jnp.full_like(a, 1.5)], -1))[..., 0],
        0.7,
        lambda a: a / (3 * a + 1.5),
    ),
    "generalized_normal": (
        lambda k, p: random.generalized_normal(k, p, p.shape) ** 2,
        3.0,
        lambda p: special.gamma(3 / p) / special.gamma(1 / p),
    ),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_the_mean_of_the_derivative_is_that_of_the_mean(name):
    call, parameter, mean = DERIVATIVES[name]
    parameters = np.full(M, parameter)
    slopes = np.asarray(xform.grad(lambda p: call(random.key(8), p).sum())(parameters))
    error = 5 * slopes.std() / M**0.5
    np.testing.assert_allclose(slopes.mean(), moment(mean)(parameter), atol=error)
    if name in ("dirichlet", "gamma-approximate"):
        compiled = xform.jit(xform.grad(lambda p: call(random.key(8), p).sum()))(parameters)
        np.testing.assert_allclose(compiled, slopes, rtol=1e-9)


def test_counts_have_no_derivative():
    key = random.key(0)
    assert xform.grad(lambda p: random.binomial(key, 10, p))(0.5) == 0
    assert xform.grad(lambda lam: random.poisson(key, lam).astype(float) * lam)(0.0) == 0
