"""Differences, integrals, interpolation, convolution, windows and polynomials against NumPy."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.numpy_cases import Case, by_name, check, compare

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 5))
V = RNG.normal(size=7)
K = RNG.integers(-5, 6, (3, 4))
B = K > 0
X = np.sort(RNG.normal(size=5))
C = V[:5] + 1j * X
S = np.float64(1.5)
XP = np.array([0.0, 1.0, 2.5, 4.0])
FP = np.array([1.0, -1.0, 3.0, 2.0])
AT = np.array([[-1.0, 0.0, 0.3, 1.0], [2.0, 3.9, 4.0, 7.0], [np.nan, 2.5, 1.7, 0.1]])

CASES = [
    *(Case("diff", (a,), k) for a in (A, K, B, V) for k in ({}, {"n": 2}, {"axis": 0}, {"n": 0})),
    Case("diff", (A,), {"prepend": 0.0, "append": A[:, :2]}), Case("diff", (V, 9)),
    Case("diff", (V,), {"prepend": np.array([1.0, 2.0])}),
    Case("ediff1d", (A,)), Case("ediff1d", (V,), {"to_begin": 5.0, "to_end": np.array([1.0, 2.0])}),
    *(Case("gradient", a) for a in ((V,), (A,), (V, 0.5), (A, 0.5, 2.0), (A, np.array([0.0, 1.0, 3.0, 4.5]), X), (K,))),
    Case("gradient", (A,), {"axis": 1}), Case("gradient", (A, X), {"axis": 1, "edge_order": 2}),
    Case("gradient", (V,), {"edge_order": 2}), Case("gradient", (V[:2],)),
    Case("gradient", (V[:3],), {"edge_order": 2}),
    Case("trapezoid", (A,)), Case("trapezoid", (A, X)), Case("trapezoid", (A,), {"dx": 0.5, "axis": 0}),
    Case("trapezoid", (A, A[::-1].copy()), {"axis": 0}), Case("trapezoid", (K,)), Case("trapezoid", (V[:1],)),
    *(Case("unwrap", (np.cumsum(3 * A, 1),), k) for k in ({}, {"axis": 0}, {"period": 4}, {"discont": 5.0})),
    Case("unwrap", (np.array([0, 1, 2, -1, 0]),), {"period": 4}),
    Case("unwrap", (np.array([2, 3, 4, 0, 1, -3]),), {"period": 5}),
    Case("interp", (AT, XP, FP)), Case("interp", (AT, XP, FP, -9.0, 9.0)),
    Case("interp", (AT, XP, FP), {"period": 3.0}), Case("interp", (AT, XP, FP * 1j)), Case("interp", (0.5, XP, FP)),
    Case("interp", (AT[:2], XP[:1], FP[:1])), Case("interp", (np.array([1, 2]), np.array([0, 2]), np.array([0, 10]))),
    *(Case(n, p, {"mode": m}) for n in ("convolve", "correlate") for m in ("full", "same", "valid")
        for p in ((V, X), (X, V), (X[:4], V), (V, V[:1]), (K[0], K[1]), (C, X), (C, C[:3]), (C[:2], C))),
    *(Case(n, (m,)) for n in ("bartlett", "blackman", "hamming", "hanning") for m in (0, 1, 2, 7, 8)),
    *(Case("kaiser", (m, 5.5)) for m in (0, 1, 2, 9)),
    *(Case("polyval", (p, x)) for p in (V, K[0], C) for x in (S, A, X)), Case("polyval", (np.ones(0), A)),
    Case("polyval", (RNG.normal(size=30), X)),
    *(Case(n, p) for n in ("polyadd", "polysub", "polymul") for p in ((V, X), (X, V), (K[0], K[1]), (C, V), (S, V))),
    Case("polydiv", (V, X), {}, lambda u, v: (np.polydiv(u, v)[0], np.append(np.zeros(3), np.polydiv(u, v)[1])),
         tolerance=1e-9),
    Case("polyder", (V,)), Case("polyder", (V, 3)), Case("polyder", (K[0], 1)), Case("polyder", (V, 0)),
    Case("polyint", (V,)), Case("polyint", (V, 2, [1.0, 2.0])), Case("polyint", (K[0], 1, 3)),
    Case("polyint", (V,), {"m": 2, "k": 5.0}),
    Case("poly", (X,), tolerance=1e-10), Case("poly", (np.array([1.0, 2.0]),)),
]  # fmt: skip


@by_name(CASES)
def test_against_numpy(cases, mode):
    check(cases, mode)


def test_division_of_polynomials():
    u, v = np.array([1.0, -3.0, 2.0]), np.array([1.0, -1.0])
    q, rest = xnp.polydiv(xnp.array(u), v, trim_leading_zeros=True)
    np.testing.assert_allclose(np.asarray(q), [1, -2])
    np.testing.assert_allclose(np.asarray(rest), [0])
    q, rest = xnp.polydiv(xnp.array(v), u)
    assert q.tolist() == [0] and rest.tolist() == v.tolist()
    assert xnp.polymul(np.array([0.0, 1.0]), np.array([0.0, 0.0, 2.0]), trim_leading_zeros=True).tolist() == [2]


def test_fit():
    pytest.importorskip("xform.numpy.linalg")
    x = np.linspace(-1, 1, 12)
    y = 2 * x**2 - x + 0.1 * np.cos(9 * x)
    for transform in (lambda f: f, xform.jit):
        np.testing.assert_allclose(
            np.asarray(transform(lambda x, y: xnp.polyfit(x, y, 2))(x, y)), np.polyfit(x, y, 2), rtol=1e-9
        )
    w = np.linspace(1, 2, 12)
    c, cov = xnp.polyfit(x, y, 2, w=w, cov=True)
    want, want_cov = np.polyfit(x, y, 2, w=w, cov=True)
    np.testing.assert_allclose(np.asarray(c), want, rtol=1e-9)
    np.testing.assert_allclose(np.asarray(cov), want_cov, rtol=1e-9)
    c, _, rank, s, rcond = xnp.polyfit(x, np.stack([y, x], 1), 2, full=True)
    want = np.polyfit(x, np.stack([y, x], 1), 2, full=True)
    np.testing.assert_allclose(np.asarray(c), want[0], atol=1e-12)
    np.testing.assert_allclose(np.asarray(s), want[3], rtol=1e-9)
    assert int(rank) == want[2] and rcond == want[4]


def test_roots():
    pytest.importorskip("xform.numpy.linalg")
    for p in ([1.0, -6, 11, -6], [0, 0, 1, 0, 1.0, 0], [2.0], [0.0], [1.0, 0, 0]):
        np.testing.assert_allclose(
            np.sort_complex(np.asarray(xnp.roots(np.array(p)))), np.sort_complex(np.roots(p)), atol=1e-6
        )
    got = np.asarray(xform.jit(lambda p: xnp.roots(p, strip_zeros=False))(np.array([0.0, 1.0, -3.0, 2.0])))
    assert np.isnan(got).sum() == 1
    np.testing.assert_allclose(np.sort(got[~np.isnan(got)].real), [1, 2], atol=1e-9)


def test_interpolation_may_continue_the_line():
    got = xnp.interp(np.array([-1.0, 5.0]), XP, FP, left="extrapolate", right="extrapolate")
    np.testing.assert_allclose(np.asarray(got), [3.0, 2 - 2 / 3])


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lambda x: xnp.interp(x, XP, FP), (np.array([0.2, 3.1]),)), (lambda fp: xnp.interp(AT[:2], XP, fp), (FP,)),
        (lambda xp: xnp.interp(np.array([0.2, 3.1]), xp, FP), (XP,)),
        (lambda a, v: xnp.convolve(a, v, "same"), (V, X)), (lambda a, v: xnp.correlate(a, v, "full"), (X, V)),
        (xnp.gradient, (V,)), (lambda y, x: xnp.trapezoid(y, x), (A, X)), (xnp.polyval, (V, X)),
        (lambda b: xnp.kaiser(6, b), (2.0,)), (lambda x: xnp.diff(x, 2), (V,)), (lambda x: xnp.unwrap(x), (V,)),
        (lambda r: xnp.poly(r), (X,)), (lambda p: xnp.polyval(p, 0.7), (RNG.normal(size=20),)),
    ],
)  # fmt: skip
def test_derivatives(function, args):
    from xform.test_util import check_grads

    check_grads(function, args, order=2, modes=("fwd", "rev"))


def test_vmap():
    got = xform.vmap(xnp.convolve, in_axes=(0, None))(A, X)
    compare(got, np.stack([np.convolve(a, X) for a in A]))
    got = xform.vmap(xnp.interp, in_axes=(None, None, 0))(0.5, XP, np.stack([FP, 2 * FP]))
    compare(got, np.array([np.interp(0.5, XP, FP), np.interp(0.5, XP, 2 * FP)]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: xnp.convolve(A, V), ValueError, r"numpy\.convolve: arguments must be vectors"),
        (lambda: xnp.convolve(V[:0], V), ValueError, "aren't empty"),
        (lambda: xnp.convolve(V, V, "half"), ValueError, "mode must be"),
        (lambda: xnp.polyval(1.0, V), ValueError, r"numpy\.polyval: p must have at least one axis"),
        (lambda: xform.jit(lambda p: xnp.roots(p))(V), TypeError, "strip_zeros=False"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
