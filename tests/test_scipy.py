"""SciPy and Matplotlib take our arrays, and functions that return them, as they take ndarrays."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import (
    cluster,
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    sparse,
    spatial,
    special,
    stats,
)
from scipy.sparse import linalg as sparse_linalg

import xform
import xform.numpy as xnp

rng = np.random.default_rng(0)
A, V = rng.normal(size=(4, 4)), rng.normal(size=4)
S = A @ A.T + 4 * np.eye(4)
T = np.linspace(0, 1, 20)
Y = np.sin(5 * T)
Z, W = rng.normal(size=30), rng.normal(size=30)
SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.1]])


def rosenbrock(x):
    return xnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def residuals(x):
    return xnp.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def system(x):
    return xnp.array([x[0] ** 2 - 2, x[1] - x[0]])


def oscillator(t, y):
    return xnp.array([y[1], -y[0]])


gradient, hessian = xform.grad(rosenbrock), xform.hessian(rosenbrock)
START = np.array([0.9, 0.8])

# ---- Functions of ours, called by SciPy --------------------------------------------------------------------

WITH_HESSIANS = ["Newton-CG", "trust-constr", "dogleg", "trust-ncg", "trust-exact", "trust-krylov"]
METHODS = ["Nelder-Mead", "Powell", "CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", *WITH_HESSIANS]


@pytest.mark.parametrize("method", METHODS)
def test_minimize(method):
    options = {} if method in METHODS[:2] else {"jac": gradient}
    if method in WITH_HESSIANS:
        options["hess"] = hessian
    for start in (START, xnp.array(START)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = optimize.minimize(rosenbrock, start, method=method, tol=1e-9, **options)
        np.testing.assert_allclose(found.x, 1, atol=2e-3)


OPTIMIZE = {
    "value_and_grad": lambda: optimize.minimize(xform.value_and_grad(rosenbrock), xnp.array(START), jac=True).x - 1,
    "jit": lambda: optimize.minimize(xform.jit(rosenbrock), START, jac=xform.jit(gradient), method="L-BFGS-B").x - 1,
    "bounds": lambda: optimize.minimize(rosenbrock, START, jac=gradient, bounds=[(0, 2), (0, 2)]).x - 1,
    "constraint": lambda: optimize.minimize(
        lambda x: xnp.sum(x**2), xnp.ones(2), jac=lambda x: 2 * xnp.asarray(x), method="SLSQP",
        constraints={"type": "eq", "fun": lambda x: xnp.sum(x) - 1, "jac": xform.grad(lambda x: xnp.sum(x) - 1)},
    ).x - 0.5,
    "root": lambda: optimize.root(system, xnp.ones(2), jac=xform.jacfwd(system)).x - np.sqrt(2),
    "fsolve": lambda: optimize.fsolve(system, np.ones(2)) - np.sqrt(2),
    "brentq": lambda: optimize.brentq(xnp.cos, 0, 3) - np.pi / 2,
    "newton": lambda: optimize.newton(xnp.cos, 1.0, fprime=xform.grad(xnp.cos)) - np.pi / 2,
    "minimize_scalar": lambda: optimize.minimize_scalar(xnp.cos, (3.0, 4.0)).x - np.pi,
    "least_squares": lambda: optimize.least_squares(residuals, xnp.zeros(2)).x - 1,
    "least_squares trf": lambda: optimize.least_squares(residuals, np.zeros(2), jac=xform.jacfwd(residuals)).x - 1,
    "least_squares lm": lambda: optimize.least_squares(
        residuals, np.zeros(2), jac=xform.jacfwd(residuals), method="lm"
    ).x - 1,
    "leastsq": lambda: optimize.leastsq(residuals, np.zeros(2))[0] - 1,
    "curve_fit": lambda: optimize.curve_fit(
        lambda t, a, b: a * xnp.exp(b * t), xnp.array(T), xnp.array(2 * np.exp(-T)), p0=xnp.ones(2)
    )[0] - [2, -1],
    "check_grad": lambda: optimize.check_grad(rosenbrock, gradient, xnp.array([0.5, 0.5])) // 1e-3,
    "quad": lambda: integrate.quad(xnp.sin, 0, np.pi)[0] - 2,
    "quad_vec": lambda: integrate.quad_vec(lambda x: xnp.array([x, x**2]), 0, 1)[0] - np.array([1 / 2, 1 / 3]),
    "dblquad": lambda: integrate.dblquad(lambda y, x: xnp.sin(x) * y, 0, np.pi, 0, 1)[0] - 1,
    "odeint": lambda: integrate.odeint(lambda y, t: oscillator(t, y), xnp.array([1.0, 0.0]), T)[:, 0] - np.cos(T),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZE)
def test_callbacks(name):
    np.testing.assert_allclose(OPTIMIZE[name](), 0, atol=1e-4)


@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"])
def test_solve_ivp(method):
    options = {"jac": xform.jacfwd(oscillator, 1)} if method in ("Radau", "BDF", "LSODA") else {}
    for transform in (lambda f: f, xform.jit):
        found = integrate.solve_ivp(
            transform(oscillator), (0, 1), xnp.array([1.0, 0.0]), method=method, t_eval=xnp.array(T), rtol=1e-6,
            events=lambda t, y: xnp.asarray(y[0]) - 0.9, dense_output=True, **options,
        )  # fmt: skip
        np.testing.assert_allclose(found.y[0], np.cos(T), atol=1e-4)
        np.testing.assert_allclose(found.t_events[0], np.arccos(0.9), atol=1e-4)


# ---- Arrays of ours, given to SciPy: `a` makes an array ----------------------------------------------------

LINALG = (
    linalg.inv, linalg.det, linalg.lu, linalg.qr, linalg.svdvals, linalg.eigvalsh, linalg.cholesky, linalg.expm,
    linalg.logm, linalg.sqrtm, linalg.pinv, linalg.norm, linalg.schur, linalg.polar, linalg.hessenberg,
    linalg.lu_factor, linalg.null_space,
)  # fmt: skip
CALLS = {
    **{f"linalg.{f.__name__}": (lambda a, f=f: f(a(S))) for f in LINALG},
    "linalg.toeplitz": lambda a: (linalg.toeplitz(a(V)), linalg.circulant(a(V))),
    "linalg.solve": lambda a: linalg.solve(a(S), a(V), assume_a="pos"),
    "linalg.lstsq": lambda a: linalg.lstsq(a(A), a(V))[0],
    "linalg.cho_solve": lambda a: linalg.cho_solve(linalg.cho_factor(a(S)), a(V)),
    "linalg.solve_triangular": lambda a: linalg.solve_triangular(a(S), a(V)),
    "linalg.solve_banded": lambda a: linalg.solve_banded((1, 1), a(np.ones((3, 4)) + S[:3]), a(V)),
    "linalg.block_diag": lambda a: linalg.block_diag(a(S), a(A)),
    "linalg.solve_sylvester": lambda a: linalg.solve_sylvester(a(S), a(S), a(A)),
    "interp1d": lambda a: interpolate.interp1d(a(T), a(Y), kind="cubic")(a(V[:1] * 0 + 0.3)),
    "CubicSpline": lambda a: interpolate.CubicSpline(a(T), a(Y))(a(np.array([0.33]))),
    "PchipInterpolator": lambda a: interpolate.PchipInterpolator(a(T), a(Y))(a(np.array([0.33]))),
    "make_interp_spline": lambda a: interpolate.make_interp_spline(a(T), a(Y))(a(np.array([0.33]))),
    "splrep": lambda a: interpolate.splev(a(np.array([0.3])), interpolate.splrep(a(T), a(Y))),
    "UnivariateSpline": lambda a: interpolate.UnivariateSpline(a(T), a(Y))(a(np.array([0.3]))),
    "interpn": lambda a: interpolate.interpn((a(T), a(T)), a(np.outer(Y, Y)), a(np.array([[0.3, 0.4]]))),
    "griddata": lambda a: interpolate.griddata(a(SQUARE), a(V), a(np.array([[0.3, 0.4]]))),
    "RBFInterpolator": lambda a: interpolate.RBFInterpolator(a(T[:, None]), a(Y))(a(np.array([[0.3]]))),
    "stats.norm": lambda a: (stats.norm.pdf(a(Z)), stats.norm.cdf(a(Z)), stats.norm.fit(a(Z))),
    "stats.tests": lambda a: (stats.ttest_ind(a(Z), a(W)), stats.kstest(a(Z), "norm")[0], stats.shapiro(a(Z))[0]),
    "stats.ranks": lambda a: (stats.rankdata(a(Z)), stats.spearmanr(a(Z), a(W))[0], stats.mannwhitneyu(a(Z), a(W))[0]),
    "stats.moments": lambda a: (stats.describe(a(Z))[2:], stats.skew(a(Z)), stats.kurtosis(a(Z)), stats.zscore(a(Z))),
    "stats.linregress": lambda a: stats.linregress(a(Z), a(W))[:2],
    "stats.gaussian_kde": lambda a: stats.gaussian_kde(a(Z))(a(W)),
    "stats.multivariate_normal": lambda a: stats.multivariate_normal(a(np.zeros(4)), a(S)).logpdf(a(V)),
    "signal.lfilter": lambda a: signal.lfilter(a(np.array([1.0, 0.5])), a(np.array([1.0, 0.2])), a(Y)),
    "signal.filtfilt": lambda a: signal.filtfilt(a(np.array([1.0, 0.5])), a(np.array([1.0, 0.2])), a(Y)),
    "signal.sosfilt": lambda a: signal.sosfilt(signal.butter(2, 0.3, output="sos"), a(Y)),
    "signal.filters": lambda a: (signal.savgol_filter(a(Y), 5, 2), signal.medfilt(a(Y)), signal.detrend(a(Y))),
    "signal.spectra": lambda a: (signal.welch(a(Z), nperseg=8), signal.periodogram(a(Z)), signal.hilbert(a(Y))),
    "signal.find_peaks": lambda a: signal.find_peaks(a(Y))[0],
    "signal.convolve": lambda a: (signal.convolve(a(Y), a(Z)), signal.fftconvolve(a(Y), a(Z))),
    "signal.resample": lambda a: (signal.resample(a(Y), 10), signal.decimate(a(Z), 2)),
    "ndimage": lambda a: (ndimage.gaussian_filter(a(A), 1), ndimage.zoom(a(A), 2), ndimage.sobel(a(A))),
    "ndimage.labels": lambda a: (ndimage.label(a(A) > 0)[0], ndimage.center_of_mass(a(S))),
    "sparse": lambda a: (sparse.csr_array(a(S)) @ V, sparse.csr_array(S) @ a(V)),
    "sparse.spsolve": lambda a: sparse_linalg.spsolve(sparse.csc_array(S), a(V)),
    "sparse.coo": lambda a: sparse.coo_array((a(V), (a(np.arange(4)), a(np.arange(4))))).toarray(),
    "spatial": lambda a: (spatial.KDTree(a(A)).query(a(S))[0], spatial.distance.cdist(a(A), a(S))),
    "spatial.hulls": lambda a: (spatial.ConvexHull(a(SQUARE)).area, spatial.Delaunay(a(SQUARE)).simplices),
    "cluster": lambda a: (cluster.vq.whiten(a(A)), cluster.vq.vq(a(A), a(A[:2]))[0], cluster.hierarchy.linkage(a(A))),
    "fft": lambda a: (fft.fft(a(Y)), fft.dct(a(Y)), fft.rfft2(a(A)), fft.fftshift(a(Y))),
    "special": lambda a: (special.logsumexp(a(V)), special.softmax(a(V)), special.comb(a(np.array([5, 6])), 2)),
    "integrate": lambda a: (integrate.simpson(a(Y), x=a(T)), integrate.trapezoid(a(Y), a(T))),
    "optimize.linprog": lambda a: optimize.linprog(a(-V), a(np.eye(4)), a(V**2)).x,
    "optimize.nnls": lambda a: (optimize.nnls(a(S), a(V))[0], optimize.lsq_linear(a(S), a(V)).x),
    "optimize.linear_sum_assignment": lambda a: optimize.linear_sum_assignment(a(S))[1],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_arguments(name):
    got, want = xform.tree.leaves(CALLS[name](xnp.array)), xform.tree.leaves(CALLS[name](np.array))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-9, atol=1e-12)


def test_matplotlib():
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    x, y, image = xnp.array(T), xnp.array(Y), xnp.array(A)
    figure, axes = pyplot.subplots(2, 4)
    (line,) = axes[0, 0].plot(x, y)
    np.testing.assert_array_equal(line.get_ydata(), Y)
    axes[0, 1].scatter(x, y, c=y, s=10 * xnp.abs(y))
    axes[0, 2].hist(y, bins=xnp.linspace(-1, 1, 5))
    axes[0, 3].imshow(image)
    axes[1, 0].contourf(image, levels=xnp.linspace(-1, 1, 4))
    axes[1, 1].errorbar(x, y, yerr=xnp.abs(y) / 10)
    axes[1, 2].bar(x, y, width=0.01)
    axes[1, 3].fill_between(x, y, y + 1, where=y > 0)
    axes[1, 3].axhline(y[0])
    figure.canvas.draw()
    pyplot.close(figure)


# ---- The array API -----------------------------------------------------------------------------------------


def test_functions_with_array_api_support():
    program = Path(__file__).with_name("scipy_array_api.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    assert not run.stdout, run.stdout


def assigning(function):
    """The function on our arrays by `array_api_function`, eagerly, compiled, and with NumPy."""
    ours = xform.array_api_function(function)
    x = np.arange(1.0, 7.0).reshape(2, 3)
    want = function(x.copy())
    for transform in (lambda f: f, xform.jit):
        got = transform(ours)(xnp.array(x))
        for g, w in zip(xform.tree.leaves(got), xform.tree.leaves(want), strict=True):
            assert isinstance(g, xform.Array)
            np.testing.assert_allclose(np.asarray(g), w)
    return want


def test_assignments():
    def elements(x):
        x[0, 1] = 7.0
        x[1, :] += 1
        x[x > 6] = 0.0
        x[:, -1] *= x[:, 0]
        x[np.array([0, 1]), np.array([1, 1])] = 9
        return x

    assigning(elements)

    def views(x):
        row, part = x[0], x[:, 1:]
        row[1] = 50.0
        inner = part[..., 0]
        inner[...] = -1.0
        x[1, 2] = 8
        inner += 1
        return x, row, part, inner

    assigning(views)

    def namespace(x):
        xp = np if isinstance(x, np.ndarray) else x.__array_namespace__()
        y = xp.asarray(x)
        y[0, 0] = 4.0
        z = xp.asarray(x, copy=True)
        z -= 1
        s = xp.linalg.svd(z)[1]
        w = xp.reshape(xp.stack([x, z]), (-1,))
        w[2] = xp.sum(w)
        return (
            x,
            z,
            w,
            s,
            xp.fft.rfft(w),
            xp.astype(x, xp.int32),
            -x,
            x.T @ z,
            abs(x - 3),
            divmod(x, 2),
            x == z,
            np.sin(x),
        )

    assigning(namespace)


def test_functions_that_are_given_functions():
    def iterate(f, x):
        for _ in range(3):
            x[0] = f(x)
        return x

    got = xform.array_api_function(iterate)(lambda x: xnp.sum(x) / 2, xnp.array([1.0, 3.0]))
    np.testing.assert_allclose(np.asarray(got), iterate(lambda x: np.sum(x) / 2, np.array([1.0, 3.0])))


def test_results_and_errors_of_assigning_functions():
    class Result:
        def __init__(self, x):
            self.x, self.steps = x, 3

    found = xform.array_api_function(Result)(xnp.ones(2))
    assert isinstance(found.x, xform.Array)
    assert found.steps == 3
    x = xnp.ones(2)

    def fill(x):
        x[...] = 5
        return x

    assert xform.array_api_function(fill)(x).tolist() == [5, 5]
    assert x.tolist() == [1, 1]
    with pytest.raises(TypeError, match="complex128 can't be assigned to elements of an array of float64"):
        xform.array_api_function(lambda x: x.__setitem__(0, 1j))(x)
    with pytest.raises(IndexError):
        xform.array_api_function(lambda x: x.__setitem__(5, 1.0))(x)
