"""Records of exponentials, logarithms, trigonometric, hyperbolic and special functions."""

import numpy as np
from scipy import special

from tests.ops.record import (
    FLOATS,
    INEXACT,
    Op,
    Sample,
    array,
    binary_samples,
    edge_values,
    kind,
    unary_samples,
)
from xform import lax


def edges(*more):
    """Edge values of real types and `more`; which parts of complex results are infinite is not specified."""

    def samples(dtype):
        if kind(dtype) == "c":
            return []
        return [Sample((np.concatenate([edge_values(dtype), np.array(more).astype(dtype)]),))]

    return samples


def wide(low, high, n=500):
    """Edge values, and `n` numbers spread over [low, high] geometrically, of both signs if `low` is negative."""

    def samples(dtype):
        if kind(dtype) == "c":
            return []
        bound = min(high, float(np.float32(6e4) if str(dtype) == "float16" else 3e38 if dtype.itemsize <= 4 else high))
        x = np.geomspace(1e-4, bound, n)
        x = np.concatenate([x, np.maximum(-x, low)] if low < 0 else [x]).astype(dtype)
        return [Sample((np.concatenate([edge_values(dtype), x]),))]

    return samples


def cut(*points):
    """Points on both sides of a branch cut, told apart by the sign of zero; and the edge values of real types."""

    def samples(dtype):
        if kind(dtype) != "c":
            return [Sample((edge_values(dtype),))]
        return [Sample((np.array([complex(*p) for p in points], dtype),))]

    return samples


ordinary = edges()

ON_REAL_AXIS = [(x, y) for x in (-2.0, -0.5, 0.5, 2.0) for y in (0.0, -0.0)]
ON_IMAGINARY_AXIS = [(y, x) for x, y in ON_REAL_AXIS]


def unary(function, reference, low=-2, high=2, dtypes=INEXACT, edges=None, **options):
    """The record of a function of one array, which takes no integers."""
    name = function.__name__
    errors = [(lambda: function(np.arange(2)), TypeError, rf"{name}.*i64\[2\]")]
    if "complex128" not in dtypes:
        errors.append((lambda: function(np.ones(2, complex)), TypeError, rf"{name}.*c128\[2\]"))
    return Op(name, function, unary_samples(low, high), reference, dtypes, edges or ordinary, errors=errors, **options)


def log1p(x):
    """In more precision than NumPy's for complex numbers."""
    if x.dtype.kind != "c":
        return np.log1p(x)
    return special.log1p(x.astype(complex)).astype(x.dtype)


def logistic(x):
    return special.expit(x) if x.dtype.kind == "f" else 1 / (1 + np.exp(-x))


def erf_inv(x):
    return np.copysign(special.erfinv(x), x)


def lgamma(x):
    return np.where(x == -np.inf, x.dtype.type(np.inf), special.gammaln(x))  # as in C


def lgamma_edges(dtype):
    """Not the zeros, 1 and 2: XLA's error is small in absolute terms only."""
    values = np.concatenate([edge_values(dtype), np.array([0.1, 100, -0.5, -7.5], dtype)])
    return [Sample((values[values != 1],))]


def polygamma_samples(rng, dtype):
    return [Sample((m, array(rng, dtype, shape, 1.5, 5))) for m in (0.0, 1.0, 3.0) for shape in ((), (2, 3), (0, 2))]


def polygamma_edges(dtype):
    m = np.array([0, 1, 2, 1, 2, 1, -1, 1.5, 1, 0, 1, 2], dtype)
    x = np.array([0.0, 0.0, 0.0, -1.0, -1.5, -0.5, 2, 2, np.nan, np.inf, np.inf, np.inf], dtype)
    return [Sample((m, x))]


def polygamma(m, x):
    """Infinite at the poles of odd order, NaN at those where the signs differ on both sides but for digamma at 0."""
    m, x = np.broadcast_arrays(np.asarray(m, x.dtype), x)
    values = [special.polygamma(int(k), float(v)) if k in range(9) else np.nan for k, v in zip(m.flat, x.flat)]
    poles = (x <= 0) & (x == np.floor(x)) & (m > 0)
    return np.where(poles, np.where(m % 2 == 1, np.inf, np.nan), np.reshape(values, x.shape) + 0.0).astype(x.dtype)


def angles(dtype):
    """All quadrants, and the axes with both signs of zero."""
    values = edge_values(dtype)
    return [Sample((np.repeat(values, values.size), np.tile(values, values.size)))]


def around_circle(rng, dtype):
    """Points of all quadrants, not close to the origin."""
    out = []
    for s in binary_samples()(rng, dtype):
        x, y = s.args
        out.append(Sample((x, np.where(abs(y) < 0.3, y + y.dtype.type(0.6), y).astype(dtype))))
    return out


OPS = [
    unary(lax.exp, np.exp, edges=edges(700, -700, 88, -88)),
    unary(lax.exp2, np.exp2, edges=edges(1000, -1000, 120, -120)),
    unary(lax.expm1, np.expm1, edges=wide(-100, 700), ulps=8),
    unary(lax.log, np.log, 0.2, 3, edges=wide(0, 1e300)),
    unary(lax.log1p, log1p, -0.7, 3, edges=wide(-1, 1e300)),
    unary(lax.logistic, logistic, edges=wide(-80, 700)),
    unary(lax.sin, np.sin, edges=wide(-1e5, 1e5)),
    unary(lax.cos, np.cos, edges=wide(-1e5, 1e5)),
    unary(lax.tan, np.tan, -1.3, 1.3, edges=wide(-1.5, 1.5)),
    unary(lax.asin, np.arcsin, -0.8, 0.8, edges=cut(*ON_REAL_AXIS)),
    unary(lax.acos, np.arccos, -0.8, 0.8, edges=cut(*ON_REAL_AXIS)),
    unary(lax.atan, np.arctan, -0.8, 0.8, edges=cut(*ON_IMAGINARY_AXIS)),
    unary(lax.sinh, np.sinh, edges=wide(-700, 700), ulps=8),
    unary(lax.cosh, np.cosh, edges=wide(-700, 700)),
    unary(lax.tanh, np.tanh, edges=wide(-700, 700), ulps=8),
    unary(lax.asinh, np.arcsinh, -0.8, 0.8, edges=cut(*ON_IMAGINARY_AXIS)),
    unary(lax.acosh, np.arccosh, 1.2, 3, edges=cut(*ON_REAL_AXIS)),
    unary(lax.atanh, np.arctanh, -0.8, 0.8, edges=cut(*ON_REAL_AXIS)),
    Op(
        "atan2", lax.atan2, around_circle, np.arctan2, FLOATS, angles,
        errors=[(lambda: lax.atan2(np.ones(2, complex), np.ones(2, complex)), TypeError, r"atan2.*c128\[2\]")],
    ),
    # XLA's errors of these are small in absolute terms; relative to a value near a zero of the function they are not.
    unary(lax.erf, special.erf, dtypes=FLOATS, edges=wide(-10, 10)),
    unary(lax.erfc, special.erfc, dtypes=FLOATS, edges=wide(-10, 10), ulps=64),
    unary(lax.erf_inv, erf_inv, -0.9, 0.9, dtypes=FLOATS, edges=edges(0.1, 0.99, 0.9999, -0.9999)),
    unary(lax.lgamma, lgamma, 2.5, 5, dtypes=FLOATS, edges=lgamma_edges, ulps=64),
    unary(lax.digamma, special.digamma, 2, 5, dtypes=FLOATS, edges=edges(0.1, 100, -0.3, -7.6), ulps=256),
    Op("polygamma", lax.polygamma, polygamma_samples, polygamma, FLOATS, polygamma_edges, ulps=64),
]  # fmt: skip
