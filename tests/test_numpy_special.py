"""`xform.numpy.special`, and the ufuncs of `scipy.special` on our arrays, beside SciPy on ndarrays."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.special as scs

import xform
import xform.numpy as xnp

rng = np.random.default_rng(7)
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-12, -1e-12, 1e-300, 40.0, -40.0, np.inf, -np.inf, np.nan, 2.0, -2.5]
)
REAL = np.concatenate([EDGES, rng.normal(size=60) * 3])
POSITIVE = np.concatenate([[0.0, 1.0, 1e-10, 1e3, 170.0, 0.5], rng.exponential(size=40) * 4])
UNIT = np.concatenate(
    [[0.0, 1.0, 0.5, 1e-300, 1e-20, 1e-5, 0.1, 0.9, 1 - 1e-10, -0.1, 1.1, np.nan], rng.uniform(size=40)]
)
SHAPES = np.concatenate([[1.0, 0.5, 3.0, 20.0, 100.0], rng.exponential(size=40) * 5 + 0.1])


def grid(*axes):
    return tuple(np.ravel(x) for x in np.meshgrid(*axes, indexing="ij"))


def pick(n, *axes):
    return tuple(rng.choice(x, n) for x in axes)


P = rng.exponential(size=80) * 5 + 0.1  # inside the domain
Q = rng.exponential(size=80) * 5 + 0.1
X = rng.uniform(0.01, 0.97, size=80)
Z = rng.normal(size=80) * 3

# Arguments, with edges; arguments inside the domain, where derivatives are checked; the relative error.
CASES = {
    "erf": (REAL, Z, 1e-14),
    "erfc": (REAL, Z, 1e-14),
    "erfcx": (REAL, Z, 2e-14),
    "erfinv": (2 * UNIT - 1, 2 * X - 1, 1e-13),
    "erfcinv": (2 * UNIT, 2 * X, 2e-13),
    "ndtr": (REAL, Z, 1e-13),
    "log_ndtr": (REAL, Z, 1e-13),
    "ndtri": (UNIT, X, 1e-13),
    "expit": (REAL, Z, 1e-14),
    "logit": (UNIT, X, 1e-13),
    "log_expit": (REAL, Z, 1e-14),
    "gammaln": (REAL[~np.isneginf(REAL)], P, 1e-13),
    "loggamma": (REAL, P, 1e-13),
    "gammasgn": (REAL, None, 0),
    "gamma": (REAL, P, 1e-12),
    "rgamma": (REAL, P, 1e-12),
    "poch": (pick(80, SHAPES, POSITIVE[:2]), (P, Q), 1e-11),
    "digamma": (POSITIVE, P, 1e-13),
    "psi": (POSITIVE, P, 1e-13),
    "betaln": ((P, Q), (P, Q), 1e-12),
    "beta": ((P, Q), (P, Q), 1e-12),
    "betainc": ((P, Q, X), (P, Q, X), 1e-11),
    "betaincc": ((P, Q, X), (P, Q, X), 1e-9),
    "gammainc": ((P, Q), (P, Q), 1e-12),
    "gammaincc": ((P, Q), (P, Q), 1e-11),
    "zeta": ((P + 1, Q), None, 1e-13),
    "i0e": (REAL, Z, 1e-14),
    "i1e": (REAL, Z, 1e-14),
    "i0": (REAL, Z, 1e-13),
    "i1": (REAL[:-1], Z, 1e-13),
    "xlogy": (grid(EDGES, POSITIVE), (P, Q), 1e-14),
    "xlog1py": (grid(EDGES, POSITIVE), (P, Q), 1e-14),
    "entr": (REAL, P, 1e-14),
    "rel_entr": (grid(EDGES, EDGES), (P, Q), 1e-12),
    "kl_div": (grid(POSITIVE, POSITIVE), (P, Q), 1e-9),
    "huber": (grid(EDGES, REAL[16:]), (P, Z), 1e-14),
    "pseudo_huber": (grid(EDGES[:11], REAL[16:]), (P, Z), 1e-13),
    "exprel": (REAL, Z, 1e-12),
    "boxcox": (grid(POSITIVE, EDGES[:8]), (P, Z), 1e-11),
    "boxcox1p": (grid(POSITIVE, EDGES[:9]), (P, Z), 1e-11),
    "inv_boxcox": (grid(P, X), (P, X), 1e-12),
    "inv_boxcox1p": (grid(P, X), (P, X), 1e-12),
    "exp10": (REAL, Z, 1e-13),
    "cosm1": (REAL[np.isfinite(REAL)], Z, 1e-13),
    "powm1": ((P, Z), (P, Z), 1e-11),
    "cbrt": (REAL, P, 1e-14),
    "exp2": (REAL, Z, 1e-14),
    "expm1": (REAL, Z, 1e-14),
    "log1p": (UNIT, P, 1e-14),
    "round": (REAL[:11] * 1.3, None, 0),
    "chdtr": ((P, Q), (P, Q), 1e-11),
    "chdtrc": ((P, Q - 1), (P, Q), 1e-11),
    "gdtr": ((X, P, Q), (X, P, Q), 1e-11),
    "gdtrc": ((X, P, Q), (X, P, Q), 1e-11),
    "pdtr": ((np.floor(P), Q), None, 1e-11),
    "pdtrc": ((np.floor(P), Q), None, 1e-11),
    "fdtr": ((P, Q, X), (P, Q, X), 1e-10),
    "fdtrc": ((P, Q, X), (P, Q, X), 1e-10),
    "stdtr": ((P, Z), (P, Z), 1e-10),
}


NUMPYS = {"cbrt", "exp2", "expm1", "log1p", "round"}  # NumPy computes these of concrete arrays, the rest SciPy


def tuple_of(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    function, (args, _, rtol) = getattr(scs, name), CASES[name]
    args = tuple_of(args)
    with np.errstate(all="ignore"):
        want = function(*args)
        arrays = [xnp.array(a) for a in args]
        concrete = function(*arrays)
        assert isinstance(concrete, xform.Array)
        exact = {"rtol": 1e-15 if name in NUMPYS else 0}
        np.testing.assert_allclose(np.asarray(concrete), want, **exact)
        np.testing.assert_allclose(np.asarray(getattr(xnp.special, name)(*args)), want, **exact)
        for got in (xform.jit(function)(*arrays), xform.jit(function, backend="numpy")(*arrays)):
            np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-300)


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n][1] is not None])
def test_derivatives(name):
    function, inside = getattr(scs, name), tuple_of(CASES[name][1])
    for i, x in enumerate(inside):
        if (name, i) in {("pdtr", 0)}:
            continue
        h = 1e-6 * np.maximum(1e-2, np.minimum(np.abs(x), 1 - x if np.all((x > 0) & (x < 1)) else np.inf))
        low, high = ([*inside[:i], x + s * h, *inside[i + 1 :]] for s in (-1, 1))
        want = (function(*high) - function(*low)) / (2 * h)
        got = xform.grad(lambda *xs: function(*xs).sum(), i)(*inside)
        np.testing.assert_allclose(np.asarray(got), want, rtol=3e-4, atol=1e-6)


def hazard(x):
    """The derivative of log_ndtr."""
    return np.exp(-x * x / 2 - scs.log_ndtr(x)) / np.sqrt(2 * np.pi)


def test_second_derivatives():
    for name, argument, second in (
        ("ndtri", 1e-8, lambda p: 2 * np.pi * scs.ndtri(p) * np.exp(scs.ndtri(p) ** 2)),
        ("xlogy", 0.0, lambda x: 0.0), ("gamma", 1.0, lambda x: np.euler_gamma**2 + np.pi**2 / 6),
        ("exprel", 0.0, lambda x: 1 / 3), ("log_ndtr", -30.0, lambda x: -(hazard(x) ** 2) - x * hazard(x)),
    ):  # fmt: skip
        function = getattr(scs, name)
        f = (lambda x: function(x, 2.0)) if name == "xlogy" else function  # noqa: B023
        np.testing.assert_allclose(float(xform.grad(xform.grad(f))(argument)), second(argument), rtol=1e-6, atol=1e-12)
    # At the border of the domain, where a formula without care has NaN.
    assert float(xform.grad(scs.xlogy)(0.0, 3.0)) == np.log(3)
    assert float(xform.grad(scs.xlogy, 1)(0.0, 0.0)) == 0
    assert float(xform.grad(scs.boxcox, 1)(3.0, 0.0)) == pytest.approx(np.log(3) ** 2 / 2)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_narrow_types(dtype):
    x = xnp.array([0.25, 0.5, 2.0], dtype)
    for name in ("erf", "gammaln", "ndtr", "log_ndtr", "expit", "gamma", "i0e", "entr", "digamma"):
        function = getattr(scs, name)
        for got in (function(x), xform.jit(function)(x)):
            assert got.dtype == dtype
            want = function(np.asarray(x).astype(np.float64))
            np.testing.assert_allclose(
                np.asarray(got).astype(float), want, rtol=3 * float(xnp.finfo(dtype).eps), atol=1e-6
            )


@pytest.mark.filterwarnings("error")
def test_nothing_warns():
    for name in ("gammaln", "xlogy", "logit", "betaln"):
        function, x = getattr(scs, name), xnp.array([0.0, -1.0, 2.0])
        args = (x,) * function.nin
        for transform in (lambda f: f, xform.jit):
            transform(function)(*args)


def test_broadcasting_integers_and_empty_arrays():
    got = xform.jit(scs.xlogy)(np.arange(3)[:, None], np.arange(1, 5))
    np.testing.assert_allclose(np.asarray(got), scs.xlogy(np.arange(3)[:, None], np.arange(1, 5)))
    assert scs.erf(xnp.zeros((0, 3))).shape == xform.jit(scs.erf)(xnp.zeros((0, 3))).shape == (0, 3)
    assert scs.gammaln(xnp.array(5)).dtype == np.float64
    np.testing.assert_allclose(np.asarray(xform.vmap(scs.gammainc, (0, None))(P, 2.0)), scs.gammainc(P, 2.0))
    c = np.array([1 + 2j, 0.5j])
    np.testing.assert_array_equal(np.asarray(scs.gamma(xnp.array(c))), scs.gamma(c))


def test_ufuncs_without_counterpart():
    x = xnp.array(P)
    for function, args in (
        (scs.jv, (1.0, x)),
        (scs.ellipk, (x / 100,)),
        (scs.airy, (x,)),
        (scs.hyp2f1, (1, 2, 3, x / 100)),
        (scs.exp1, (x,)),
    ):
        got, want = function(*args), function(*[np.asarray(a) for a in args])
        for g, w in zip(tuple_of(got), tuple_of(want), strict=True):
            assert isinstance(g, xform.Array)
            np.testing.assert_array_equal(np.asarray(g), w)
    with pytest.raises(TypeError, match=r"scipy\.special\.airy has no counterpart in xform\.numpy .* f64\[80\]"):
        xform.jit(scs.airy)(x)
    with pytest.raises(TypeError, match="takes real numbers"):
        xform.jit(scs.gamma)(np.array([1j]))
    out = np.zeros(80)
    assert scs.erf(x, out=out) is out
    np.testing.assert_array_equal(out, scs.erf(P))


def test_errors():
    for args in ((), (X, X, X)):
        with pytest.raises(TypeError, match=rf"numpy\.special\.erf takes 1 arguments, got {len(args)}"):
            xnp.special.erf(*args)
    with pytest.raises(TypeError, match=r"numpy\.special\.erf: argument 1 must be an array"):
        xnp.special.erf("a")
    with pytest.raises(TypeError, match=r"numpy\.special\.erf takes real numbers, got c128\[1\]"):
        xform.jit(xnp.special.erf)(np.array([1j]))
    with pytest.raises(ValueError, match=r"numpy\.special\.xlogy"):
        xform.jit(xnp.special.xlogy)(np.ones(2), np.ones(3))


A = rng.normal(size=(3, 4)) * 5


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"axis": 0},
        {"axis": (0, 1)},
        {"axis": -1, "keepdims": True},
        {"b": A},
        {"axis": 1, "b": A[0], "return_sign": True},
    ],
)
@pytest.mark.parametrize("transform", [lambda f: f, xform.jit])
def test_logsumexp(kwargs, transform):
    got, want = transform(lambda a: xnp.special.logsumexp(a, **kwargs))(A), scs.logsumexp(A, **kwargs)
    for g, w in zip(tuple_of(got), tuple_of(want), strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-13)


def test_logsumexp_of_infinities_and_complex_numbers():
    logsumexp = xnp.special.logsumexp
    for a in ([-np.inf, -np.inf], [np.inf, 1.0], [1e300, 1e300], [-np.inf, 0.0], [np.nan, 1.0]):
        np.testing.assert_array_equal(np.asarray(logsumexp(xnp.array(a))), scs.logsumexp(np.array(a)))
    c = A + 1j * A[::-1]
    np.testing.assert_allclose(np.asarray(logsumexp(c, axis=0)), scs.logsumexp(c, axis=0))
    np.testing.assert_allclose(
        np.asarray(logsumexp(c, axis=0, return_sign=True)[1]), scs.logsumexp(c, axis=0, return_sign=True)[1]
    )
    np.testing.assert_allclose(np.asarray(xform.grad(logsumexp)(A)), scs.softmax(A), rtol=1e-12)
    assert np.asarray(xform.grad(logsumexp)(np.array([-np.inf, 0.0]))).tolist() == [0, 1]
    for name in ("softmax", "log_softmax"):
        for axis in (None, 0, 1):
            np.testing.assert_allclose(
                np.asarray(getattr(xnp.special, name)(A, axis)), getattr(scs, name)(A, axis), rtol=1e-12
            )


def test_functions_that_are_no_ufuncs():
    n = np.array([0, 1, 3])
    np.testing.assert_allclose(
        np.asarray(xnp.special.polygamma(n[:, None], P)), scs.polygamma(n[:, None], P), rtol=1e-12
    )
    np.testing.assert_allclose(np.asarray(xnp.special.multigammaln(P + 2, 3)), scs.multigammaln(P + 2, 3), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(xform.jit(lambda x: scs.zeta(x))(P + 1)), scs.zeta(P + 1), rtol=1e-13)
    np.testing.assert_allclose(
        np.asarray(xform.grad(lambda q: scs.zeta(2.0, q))(1.5)), -2 * scs.zeta(3, 1.5), rtol=1e-12
    )


def test_importing_does_not_import_scipy():
    code = "import sys, xform.numpy; raise SystemExit('scipy.special' in sys.modules)"
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
