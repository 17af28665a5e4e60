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


# Function: exact values, points, bounds on the error in float32 and float64.
CASES = {"lgamma": (log_gamma, lgamma_points, 3, 4)}


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
def test_poles(dtype, backend):
    """At all negative integers, which all numbers from 1 / eps on are; at -inf; NaN stays."""
    poles = np.array([-0.0, 0.0, -1, -2, -3, -20, -170, -171, -1e6, -1 / np.finfo(dtype).eps, -1e30, -np.inf], dtype)
    np.testing.assert_array_equal(evaluate(lax.lgamma, [poles], backend), np.inf)
    assert np.isnan(evaluate(lax.lgamma, [np.array([np.nan, -2.5], dtype)], backend)[0])


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit])
def test_derivatives(transform):
    """At zeros of the function, where its derivative has none."""
    x = np.array([float(z) for z in zeros_of_lgamma()[:12]])
    got = transform(xform.vmap(xform.grad(lax.lgamma)))(x)
    with mp.workdps(50):
        want = [float(mp.digamma(mp.mpf(v))) for v in x]
    np.testing.assert_allclose(got, want, rtol=1e-12)
