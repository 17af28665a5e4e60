"""Functions of the gamma family on the negative axis: a few units in the last place at and around their zeros, too.

mpmath has the values, and finds the zeros: two of `lgamma` between each two poles from -2 on, one of `digamma`. The
unit is the distance to the next number at the exact value, however small that is.
"""

import functools

import numpy as np
import pytest

import xform
import xform.lax as lax
from tests.test_special import errors, evaluate, log_gamma, signed, spread

mp = pytest.importorskip("mpmath")

rng = np.random.default_rng(7)
BACKENDS = pytest.mark.parametrize("backend", ["host", "xla"])
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


def neighbours(points, dtype):
    """The numbers next to some points, and those at a few steps."""
    near = np.array([float(p) for p in points]).astype(dtype)
    return np.concatenate([near + k * np.spacing(near) for k in (-40, -7, -2, -1, 0, 1, 2, 7, 40)])


def beside(poles, dtype):
    """Numbers at all distances of some poles."""
    poles = np.array(poles, dtype)
    steps = 2.0 ** np.arange(0, np.finfo(dtype).nmant, 5)
    return np.concatenate([(p + signed(np.spacing(abs(p)) * steps)).astype(dtype) for p in poles])


@functools.cache
def zeros_of_lgamma():
    """To 100 digits. From -4 on by an iteration: near the pole -m, gamma(x) is almost inverse to the distance."""
    with mp.workdps(100):
        out = [mp.findroot(log_gamma, mp.mpf(start)) for start in ("-2.457", "-2.7477", "-3.1436", "-3.9553")]
        for m in range(4, 25):
            for side in (-1, 1):
                e = side / mp.factorial(m)
                for _ in range(100):
                    e *= abs(mp.gamma(e - m))
                out.append(e - m)
        return out


def lgamma_points(dtype):
    zeros = zeros_of_lgamma()
    around = [float(z) + signed(spread(1e-17, 0.3, 15)) for z in zeros[:12]]
    ratios = [float(mp.nint(z)) + float(z - mp.nint(z)) * spread(0.2, 5, 10) for z in zeros]
    anywhere = [-rng.uniform(0, 6, 200), -rng.uniform(0, 200, 200), -spread(1e-300, 1, 30), -spread(1, 1e15, 100)]
    poles = beside([-1, -2, -3, -4, -5, -9, -16, -17, -18, -19, -23, -40, -64, -128, -170, -171, -172, -1000], dtype)
    return np.concatenate([neighbours(zeros, dtype), poles, *around, *ratios, *anywhere])


@functools.cache
def zeros_of_digamma():
    """To 80 digits, in each of the first intervals and in others: pi / tan(pi x) is digamma(1 - x), which is slow."""
    with mp.workdps(80):
        out = []
        for n in [*range(70), *(int(v) for v in spread(70, 1e14, 60))]:
            x = -n - mp.mpf(1) / 2
            for _ in range(60):
                x = -n - 1 + mp.acot(mp.digamma(1 - x) / mp.pi) / mp.pi
            out.append(x)
        return out


def digamma_points(dtype):
    zeros = zeros_of_digamma()
    around = [float(z) + signed(spread(1e-15, 0.3, 5)) for z in zeros[::3]]
    anywhere = [-rng.uniform(0, 40, 300), -spread(1e-300, 1, 30), -spread(1, 1e15, 200)]
    return np.concatenate([neighbours(zeros, dtype), beside([-1, -2, -31, -32, -33, -1000], dtype), *around, *anywhere])


# Function: exact values, points, bounds on the error in float32 and float64.
CASES = {
    "lgamma": (log_gamma, lgamma_points, 3, 4),
    "digamma": (mp.digamma, digamma_points, 1, 4),
}


@functools.cache
def exact(name, dtype):
    """The points that are normal numbers of the dtype and no poles, and the exact values."""
    function, points, *_ = CASES[name]
    with np.errstate(all="ignore"):
        x = np.unique(points(np.dtype(dtype).type).astype(dtype))
    x = x[(x < -np.finfo(dtype).tiny) & (x != np.round(x))]
    with mp.workdps(90):
        return x, [mp.re(function(mp.mpf(float(v)))) for v in x]


@BACKENDS
@DTYPES
@pytest.mark.parametrize("name", CASES)
def test_accuracy(name, dtype, backend):
    x, values = exact(name, dtype)
    got = evaluate(getattr(lax, name), [x], backend)
    off = errors(got, values, dtype)
    i, bound = off.argmax(), CASES[name][2 + (dtype == "float64")]
    assert off[i] <= bound, f"{off[i]} ulp at {x[i]!r}: got {got[i]!r}, expected {float(values[i])!r}"


@BACKENDS
@DTYPES
@pytest.mark.parametrize(("name", "at_zero", "value"), [("lgamma", np.inf, np.inf), ("digamma", -np.inf, np.nan)])
def test_poles(name, at_zero, value, dtype, backend):
    """At all negative integers, which all numbers from 1 / eps on are; at -inf; NaN stays."""
    function = getattr(lax, name)
    poles = np.array([-1, -2, -3, -20, -170, -171, -1e6, -1 / np.finfo(dtype).eps, -1e30, -np.inf], dtype)
    np.testing.assert_array_equal(evaluate(function, [poles], backend), value)
    zeros = np.array([0.0, -0.0], dtype)
    np.testing.assert_array_equal(evaluate(function, [zeros], backend), [at_zero, np.inf])
    assert np.isnan(evaluate(function, [np.array([np.nan, -2.5], dtype)], backend)[0])


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit])
@pytest.mark.parametrize(
    ("function", "derivative", "zeros"),
    [
        (lax.lgamma, mp.digamma, zeros_of_lgamma),
        (lax.digamma, lambda x: mp.psi(1, x), zeros_of_digamma),
    ],
)
def test_derivatives(function, derivative, zeros, transform):
    """At zeros of the function, where its derivative has none."""
    x = np.array([float(z) for z in zeros()[:12]])
    got = transform(xform.vmap(xform.grad(function)))(x)
    with mp.workdps(50):
        want = [float(derivative(mp.mpf(v))) for v in x]
    np.testing.assert_allclose(got, want, rtol=3e-15)
