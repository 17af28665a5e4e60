"""SciPy's functions with array API support on our arrays, beside NumPy's; a program, since SciPy must be told first.

Prints a line for each call that went wrong. Run by `test_scipy.py`.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import warnings

import numpy as np
import scipy
from scipy import (
    constants,
    differentiate,
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    special,
    stats,
)
from scipy.cluster import hierarchy, vq
from scipy.optimize import elementwise
from scipy.spatial.transform import RigidTransform, Rotation

import xform
import xform.numpy as xnp

rng = np.random.default_rng(0)
X, Y, P = rng.normal(size=20), rng.normal(size=20), rng.uniform(0.1, 1, size=20)
M = rng.normal(size=(5, 4))
S = M.T @ M + 4 * np.eye(4)
K = np.arange(1.0, 5.0)
T = np.linspace(0, 2, 20)
SOS = signal.butter(2, 0.3, output="sos")
TREE = hierarchy.linkage(M)
ONE, THREE = np.array([1.0]), np.array([3.0])


def namespace(x):
    return x.__array_namespace__()


CALLS = {}


def each(module, names, *args):
    for name in names.split():
        CALLS[f"{module.__name__.removeprefix('scipy.')}.{name}"] = (getattr(module, name), args)


each(
    stats,
    "describe skew kurtosis gmean hmean variation sem tmean tvar tstd tmin tmax skewtest kurtosistest normaltest "
    "iqr median_abs_deviation circmean circvar circstd differential_entropy entropy moment gzscore zscore kstat "
    "kstatvar "
    "gstd lmoment power_divergence chisquare rankdata sigmaclip false_discovery_control",
    P,
)
each(stats, "zmap mannwhitneyu kruskal alexandergovern bartlett levene fligner f_oneway ttest_ind ttest_rel", P, Y)
each(stats, "brunnermunzel ansari epps_singleton_2samp cramervonmises_2samp chatterjeexi", X, Y)
each(stats, "pmean quantile trim_mean", P, 0.3)
each(stats, "mode", np.round(X))
each(stats, "boxcox_llf", 0.5, P)
each(stats, "ttest_1samp", P, 0.4)
each(signal, "hilbert detrend medfilt wiener cspline1d gausspulse envelope", X)
each(signal, "convolve fftconvolve oaconvolve correlate", X, P)
each(signal, "hilbert2 medfilt2d", M)
each(signal, "upfirdn deconvolve", K, K[:2])
each(signal, "tf2zpk normalize lp2lp lp2hp", K, K + 1)
each(signal, "zpk2tf zpk2sos", K, K + 1, 2.0)
each(signal, "sos2tf sos2zpk freqz_sos", SOS)
each(signal, "freqz", K)
each(signal, "lfilter filtfilt", np.array([1.0, 0.5]), np.array([1.0, 0.2]), X)
each(signal, "savgol_filter", X, 5, 2)
each(signal, "resample", X, 10)
each(signal, "resample_poly", X, 2, 1)
each(signal, "lombscargle", T, X, K)
for window in (signal.windows.hann, signal.windows.tukey, signal.windows.flattop, signal.windows.taylor):
    CALLS[f"signal.windows.{window.__name__}"] = (lambda x, window=window: window(8, xp=namespace(x)), (X,))
each(ndimage, "sobel laplace spline_filter center_of_mass sum_labels mean variance extrema", M)
each(ndimage, "gaussian_filter zoom shift rotate gaussian_gradient_magnitude fourier_gaussian", M, 2.0)
each(ndimage, "uniform_filter median_filter maximum_filter grey_dilation", M, 3)
each(ndimage, "binary_dilation distance_transform_edt label", M > 0)
each(ndimage, "convolve affine_transform", M, np.eye(2))
each(ndimage, "map_coordinates", M, np.array([[0.5, 1.0], [0.5, 1.0]]))
each(
    special,
    "erf erfc erfinv gammaln gamma loggamma psi expit logit ndtr ndtri log_ndtr entr i0 i0e i1 i1e log1p expm1 exp2 "
    "exp10 cbrt j0 k0 ellipk spence",
    P,
)
each(special, "logsumexp softmax log_softmax", X)
each(
    special,
    "xlogy xlog1py rel_entr kl_div beta betaln gammainc gammaincc chdtr pdtr boxcox huber poch stdtr binom",
    P,
    P + 1,
)
each(special, "betainc fdtr hyp1f1", P, P + 1, P)
each(special, "zeta", P + 1, P)
CALLS["special.polygamma"] = (lambda x: special.polygamma(1, x), (P,))
CALLS["special.logsumexp-of-factors"] = (lambda a, b: special.logsumexp(a, axis=0, b=b), (M, M + 3))
each(optimize, "rosen rosen_der rosen_hess", X)
each(optimize, "rosen_hess_prod", X, P)
CALLS["optimize.elementwise.find_root"] = (lambda a, b: elementwise.find_root(_cubic, (a, b)).x, (ONE, THREE))
CALLS["optimize.elementwise.find_minimum"] = (
    lambda *x: elementwise.find_minimum(_parabola, x).x,
    (0 * ONE, ONE / 2, THREE),
)
CALLS["differentiate.derivative"] = (lambda x: differentiate.derivative(_cubic, x).df, (P,))
CALLS["differentiate.jacobian"] = (lambda x: differentiate.jacobian(_cubic, x).df, (K,))
CALLS["differentiate.hessian"] = (lambda x: differentiate.hessian(_sum_of_cubes, x).ddf, (K,))
each(integrate, "trapezoid cumulative_trapezoid", X, T)
each(integrate, "romb", X[:17])
CALLS["integrate.cumulative_simpson"] = (lambda y, x: integrate.cumulative_simpson(y, x=x), (X, T))
CALLS["integrate.tanhsinh"] = (lambda a, b: integrate.tanhsinh(_cubic, a, b).integral, (ONE, THREE))
CALLS["integrate.nsum"] = (lambda a: integrate.nsum(lambda k: 1 / k**2, a, a + 5).sum, (ONE,))
CALLS["integrate.cubature"] = (lambda a, b: integrate.cubature(lambda x: x[:, 0] ** 2, a, b).estimate, (ONE, THREE))
each(vq, "whiten", M)
each(vq, "vq kmeans2", M, M[:2])
each(hierarchy, "linkage", M)
each(hierarchy, "cophenet inconsistent leaves_list maxdists", TREE)
each(constants, "lambda2nu nu2lambda", P)
each(constants, "convert_temperature", X, "C", "K")
each(linalg, "block_diag", S, M)
each(linalg, "fiedler", K)
each(fft, "fft ifft rfft irfft hfft ihfft dct idct dst fftshift ifftshift", X)
each(fft, "fft2 ifft2 fftn rfftn dctn", M)
each(fft, "fht", X, 0.1, 0.5)
CALLS["fft.fftfreq"] = (lambda x: fft.fftfreq(8, xp=namespace(x)), (X,))
for kind in (
    interpolate.CubicSpline,
    interpolate.PchipInterpolator,
    interpolate.Akima1DInterpolator,
    interpolate.make_interp_spline,
    interpolate.make_smoothing_spline,
):
    CALLS[f"interpolate.{kind.__name__}"] = (lambda x, y, z, kind=kind: kind(x, y)(z), (T, X, P))
CALLS["interpolate.RBFInterpolator"] = (
    lambda x, y, z: interpolate.RBFInterpolator(x, y)(z),
    (T[:, None], X, P[:, None]),
)
CALLS["interpolate.BSpline"] = (lambda t, c, x: interpolate.BSpline(t, c, 2)(x), (np.arange(7.0), K, P + 2.5))
CALLS["interpolate.PPoly"] = (lambda c, x, z: interpolate.PPoly(c, x)(z), (M[:, :3], K, P + 1))
CALLS["interpolate.interpn"] = (lambda x, y, z: interpolate.interpn((x, x), y, z), (T[:4], S, np.array([[0.1, 0.2]])))
CALLS["spatial.Rotation"] = (
    lambda x: (Rotation.from_rotvec(x) * Rotation.from_rotvec(2 * x)).as_matrix(),
    (K[:3] / 4,),
)
CALLS["spatial.Rotation.apply"] = (lambda q, x: Rotation.from_quat(q).apply(x), (K, K[:3]))
CALLS["spatial.Rotation.euler"] = (lambda x: Rotation.from_euler("xyz", x).as_mrp(), (K[:3] / 4,))
CALLS["spatial.RigidTransform"] = (lambda x: RigidTransform.from_translation(x).as_matrix(), (K[:3],))


def _cubic(x):
    return x**3 - 2 * x - 1


def _parabola(x):
    return (x - 1) ** 2


def _sum_of_cubes(x):
    return (x**3).sum(0)


# Those that assign to elements, which `xform.array_api_function` is for; the rest takes our arrays without it.
ASSIGNING = """
stats.variation stats.tmean stats.tvar stats.tstd stats.skewtest stats.kurtosistest stats.normaltest stats.iqr
stats.median_abs_deviation stats.gzscore stats.zscore stats.gstd stats.lmoment stats.false_discovery_control
stats.mannwhitneyu stats.kruskal stats.alexandergovern stats.bartlett stats.levene stats.fligner stats.f_oneway
stats.ansari stats.epps_singleton_2samp stats.quantile stats.mode stats.boxcox_llf signal.hilbert signal.hilbert2
signal.deconvolve signal.envelope signal.lp2hp signal.sos2zpk signal.savgol_filter signal.resample signal.lombscargle
signal.windows.taylor special.logsumexp special.log_softmax optimize.rosen_der optimize.rosen_hess
optimize.rosen_hess_prod optimize.elementwise.find_root optimize.elementwise.find_minimum differentiate.derivative
differentiate.jacobian differentiate.hessian integrate.cumulative_simpson integrate.tanhsinh integrate.nsum
cluster.vq.whiten linalg.block_diag interpolate.PchipInterpolator interpolate.Akima1DInterpolator
spatial.Rotation.euler spatial.RigidTransform
special.logsumexp-of-factors
"""

# Those in which nothing depends on values and no compiled code of SciPy's works: they can be transformed.
TRACED = """
stats.describe stats.skew stats.kurtosis stats.gmean stats.sem stats.tmin stats.tmax stats.zmap stats.circmean
stats.circvar stats.circstd stats.differential_entropy stats.entropy stats.gzscore stats.zscore stats.trim_mean
stats.boxcox_llf stats.kstat stats.kstatvar stats.power_divergence stats.chisquare stats.bartlett signal.hilbert
signal.hilbert2 signal.fftconvolve signal.oaconvolve signal.envelope signal.resample signal.freqz signal.zpk2tf
signal.windows.hann signal.windows.tukey signal.windows.taylor special.erf special.gammaln special.gamma special.ndtri
special.log_ndtr special.psi special.i0 special.xlogy special.betainc special.gammainc special.stdtr
special.polygamma special.logsumexp special.softmax special.log_softmax optimize.rosen optimize.rosen_der
optimize.rosen_hess optimize.rosen_hess_prod integrate.trapezoid integrate.cumulative_trapezoid integrate.romb
cluster.vq.whiten constants.lambda2nu constants.convert_temperature linalg.fiedler fft.fft fft.ifft fft.rfft fft.irfft
fft.hfft fft.ihfft fft.fft2 fft.fftn fft.rfftn fft.fftshift fft.fht interpolate.RBFInterpolator spatial.Rotation
spatial.Rotation.apply spatial.Rotation.euler spatial.RigidTransform
special.logsumexp-of-factors
"""


def values(out):
    """The arrays and numbers of a result, also those of an object."""
    if isinstance(out, dict):
        out = tuple(out.values())
    elif hasattr(out, "__dict__") and not isinstance(out, tuple | np.generic):
        out = tuple(vars(out).values())
    return [x for x in xform.tree.leaves(tuple(out) if isinstance(out, tuple) else out) if isinstance(x, NUMBERS)]


# From 1.18 on, SciPy's statistics ask whether there is a NaN, which can be answered in derivatives, but not under jit.
NAN_CHECKS = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 18)
NUMBERS = (xform.Array, np.ndarray, np.generic, float, int)


def compare(got, want, rtol):
    assert len(got) == len(want), f"{len(got)} results, {len(want)} expected"
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=1e-9)


def check(name):
    function, args = CALLS[name]
    want = values(function(*args))
    ours = xform.array_api_function(function) if name in ASSIGNING.split() else function
    arrays = [xnp.array(x) if isinstance(x, np.ndarray) else x for x in args]
    got = values(ours(*arrays))
    compare(got, want, 1e-7)
    assert any(isinstance(x, xform.Array) for x in got), f"results are {[type(x) for x in got]}"
    if name not in TRACED.split():
        return

    def program(*xs):
        found = iter(xs)
        return values(ours(*[next(found) if isinstance(x, np.ndarray) else x for x in args]))

    xs = [xnp.array(x) for x in args if isinstance(x, np.ndarray)]
    if not (NAN_CHECKS and name.startswith("stats.")):
        compare(xform.jit(program, backend="numpy")(*xs), want, 1e-6)
    if "windows" in name or np.iscomplexobj(want[0]):
        return

    def scalar(out):
        return sum(xnp.sum(x) for x in values(out) if x.dtype.kind == "f")

    first = np.asarray(xs[0])
    along = np.cos(np.arange(first.size)).reshape(first.shape)
    slope = np.asarray(xform.grad(lambda *xs: scalar(program(*xs)))(*xs))
    where = next(i for i, x in enumerate(args) if isinstance(x, np.ndarray))
    steps = [function(*args[:where], first + s * 1e-6 * along, *args[where + 1 :]) for s in (1, -1)]
    high, low = (float(scalar(step)) for step in steps)
    np.testing.assert_allclose(np.sum(slope * along), (high - low) / 2e-6, rtol=1e-4, atol=1e-5)


def main():
    warnings.simplefilter("ignore")
    for name in CALLS:
        try:
            check(name)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}".replace("\n", " ")[:400])


if __name__ == "__main__":
    main()
