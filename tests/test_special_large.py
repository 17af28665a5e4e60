"""Special functions of large arrays, which XLA computes outside `jit`, too."""

import numpy as np
import pytest
from scipy import special

import xform
import xform.lax as lax
from tests.test_special import CASES, errors, exact
from xform.backends import xla
from xform.lax.special import formulas

N = formulas.COMPILED_FROM
rng = np.random.default_rng(0)
SMALL = 2**16 + 1  # what is large in a test: more than a block


@pytest.fixture
def large_is_less(monkeypatch):
    monkeypatch.setattr(formulas, "COMPILED_FROM", SMALL)


def compiled_by(function):
    """The result, and how many programs were compiled for it."""
    before = xla.compile_count
    return function(), xla.compile_count - before


@pytest.mark.parametrize("name", ["erfc", "igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "betainc"])
def test_accuracy(name, large_is_less):
    """That of other arrays."""
    points, values = exact(name, np.float64)
    large = [np.resize(x, SMALL + 17) for x in points]
    got = np.asarray(getattr(lax, name)(*large))
    assert errors(got[: len(values)], values, np.float64).max() <= CASES[name][3]
    np.testing.assert_allclose(got, np.resize(got[: len(values)], got.size), rtol=1e-15)  # blocks take their own steps
    np.testing.assert_allclose(got, np.asarray(xform.jit(getattr(lax, name))(*large)), rtol=1e-15)


@pytest.mark.parametrize("size", [N - 1, N, N + 1, (N + 1000, 1)])
def test_values_around_the_threshold(size):
    x, a = rng.uniform(0.1, 9, size), rng.uniform(0.5, 9, size)
    np.testing.assert_allclose(lax.erfc(x), special.erfc(x), rtol=1e-13)
    np.testing.assert_allclose(lax.igamma(a, x), special.gammainc(a, x), rtol=1e-12)
    np.testing.assert_allclose(lax.igamma(3.5, x), special.gammainc(3.5, x), rtol=1e-12)
    assert np.isnan(lax.erfc(np.full(size, np.nan))).all()


def test_one_program_serves_all_sizes(large_is_less):
    def of(size):
        return compiled_by(lambda: np.asarray(lax.igammac(2.5, np.linspace(0.0, 9.0, size))))

    of(SMALL)
    (first, n), (again, m) = of(3 * SMALL), of(3 * SMALL)
    assert n == m == 0
    np.testing.assert_array_equal(first, again)  # bit for bit
    np.testing.assert_allclose(first, special.gammaincc(2.5, np.linspace(0.0, 9.0, 3 * SMALL)), rtol=1e-13)


def test_gradients(large_is_less):
    x = rng.uniform(0.5, 9, SMALL)
    f = xform.grad(lambda x: lax.igamma(x, 2.0).sum())
    first, second, third = f(x), f(x), f(x)  # by rules, then by plans
    np.testing.assert_allclose(first[:100], f(x[:100]), rtol=1e-13)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(second, third)


@pytest.mark.parametrize("setting", [xform.disable_jit(), xform.debug_nans(True), xform.debug_infs(True)])
def test_nothing_is_compiled_where_the_configuration_says_so(setting, large_is_less):
    a, x = rng.uniform(0.5, 9, SMALL), rng.uniform(0.5, 9, SMALL)
    with setting:
        y, n = compiled_by(lambda: lax.igamma_grad_a(a, x))
    assert n == 0
    np.testing.assert_allclose(y, lax.igamma_grad_a(a, x), rtol=1e-12)


def test_within_a_trace_nothing_is_compiled_on_the_side(large_is_less):
    a, x = rng.uniform(0.5, 9, SMALL), rng.uniform(0.5, 9, SMALL)
    y, n = compiled_by(lambda: xform.jit(lambda x: lax.igamma(a, x))(x))
    assert n == 1
    np.testing.assert_allclose(y, special.gammainc(a, x), rtol=1e-12)


def test_nan_is_found(large_is_less):
    with xform.debug_nans(True), pytest.raises(FloatingPointError, match="igamma"):
        lax.igamma(np.full(SMALL, -1.0), 2.0)


def test_results_of_programs(large_is_less):
    """Whose values are on the device."""
    x = xform.jit(lambda x: x + 0.5)(np.linspace(0.0, 1.0, SMALL))
    np.testing.assert_allclose(lax.erfc(x), special.erfc(np.asarray(x)), rtol=1e-13)
    half = np.linspace(0.0, 1.0, SMALL, dtype=np.float16)
    assert lax.igamma_grad_a(np.float16(1), half).dtype == np.float16
