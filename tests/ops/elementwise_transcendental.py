"""Records of exponentials, logarithms, trigonometric and hyperbolic functions."""

import numpy as np
from scipy import special

from tests.ops.record import (
    FLOATS,
    INEXACT,
    Op,
    Sample,
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
    unary(lax.log2, np.log2, 0.2, 3, edges=wide(0, 1e300)),
    unary(lax.log1p, log1p, -0.7, 3, edges=wide(-1, 1e300)),
    unary(lax.logistic, logistic, edges=wide(-80, 700)),
    unary(lax.one_minus_square, lambda x: (1 - x) * (1 + x), edges=wide(-1e3, 1e3)),
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
]  # fmt: skip
