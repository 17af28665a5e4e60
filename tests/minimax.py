"""Polynomials of least maximal error, by Remez's exchange algorithm: the coefficients of `lax.vector_math`.

And rational functions for `lax.single_precision`. ``python -m tests.minimax`` computes them all. Source: Muller,
"Elementary functions" (2016), chapter 3.
"""

import mpmath as mp
import numpy as np

DIGITS = 60


def minimax(f, low, high, degree, weight, rounds=12):
    """Coefficients, lowest first, of the polynomial p with the least max |weight (p - f)| on [low, high]; that maximum.

    `weight` times an error of f is the relative error of the function that is computed from f.
    """
    low, high, count = mp.mpf(low), mp.mpf(high), degree + 2

    def spread(angle):
        return (low + high) / 2 - (high - low) / 2 * mp.cos(angle)

    nodes = [spread(mp.pi * (i + mp.mpf("0.495")) / count) for i in range(count)]
    grid = [spread(mp.pi * i / (24 * count)) for i in range(24 * count + 1)]
    weights, values = [weight(x) for x in grid], [f(x) for x in grid]
    for _ in range(rounds):
        # The errors at the nodes shall be equal, with signs that alternate.
        system, right = mp.matrix(count, count), mp.matrix(count, 1)
        for i, x in enumerate(nodes):
            w = weight(x)
            for j in range(degree + 1):
                system[i, j] = w * x**j
            system[i, degree + 1], right[i] = (-1) ** i, w * f(x)
        coefficients = list(mp.lu_solve(system, right))[: degree + 1]
        errors = [
            w * (mp.fsum(c * x**j for j, c in enumerate(coefficients)) - v)
            for x, w, v in zip(grid, weights, values, strict=True)
        ]
        # The new nodes are the extrema between changes of sign.
        extrema, start = [], 0
        for i in range(1, len(grid) + 1):
            if i == len(grid) or (errors[i] > 0) != (errors[start] > 0):
                extrema.append(max(range(start, i), key=lambda k: abs(errors[k])))
                start = i
        while len(extrema) > count:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        sizes = [abs(errors[k]) for k in extrema]
        if len(extrema) < count or max(sizes) < 1.02 * min(sizes):
            break
        nodes = [grid[k] for k in extrema]
    return tuple(float(c) for c in coefficients), float(max(abs(e) for e in errors))


def rational(f, high, degree, constant, rounds=60, points=400):
    """Coefficients, lowest first, of P and Q with the least max |(constant + P / Q) / f - 1| on [0, high]; the maximum.

    By linear least squares, (constant Q + P) / f - Q over the Q of the round before, with Lawson's weights.
    """
    t = (1 - np.cos(np.linspace(0, np.pi, points))) / 2
    z = np.unique(np.concatenate([t, t**2])).astype(np.longdouble)  # over high
    values = np.array([float(f(mp.mpf(high) * mp.mpf(float(v)))) for v in z], np.longdouble)
    powers = z[:, None] ** np.arange(degree + 1)
    columns = np.concatenate([powers / values[:, None], -powers[:, 1:]], 1)
    weights, q, best = np.ones_like(z), np.ones_like(z), np.inf
    for _ in range(rounds):
        scale = np.sqrt(weights) / q
        found = _least_squares(columns * scale[:, None], scale)
        total, q = columns[:, : degree + 1] @ found[: degree + 1], 1 - columns[:, degree + 1 :] @ found[degree + 1 :]
        errors = abs(total / q - 1)
        if errors.max() < best:
            best, coefficients = errors.max(), found
        weights = weights * np.maximum(errors / errors.max(), 1e-3)
        weights /= weights.mean()
    scale = np.longdouble(high) ** -np.arange(degree + 1)
    q = np.concatenate([[1], coefficients[degree + 1 :]]) * scale
    p = coefficients[: degree + 1] * scale - constant * q
    return *(tuple(float(str(np.float32(c))) for c in row) for row in (p, q)), float(best)


def _least_squares(a, b):
    """By Gram and Schmidt's method, applied twice: LAPACK has no long doubles."""
    basis, count = a.copy(), a.shape[1]
    triangle = np.zeros((count, count), a.dtype)
    for j in range(count):
        for _ in range(2):
            parts = basis[:, :j].T @ basis[:, j]
            triangle[:j, j] += parts
            basis[:, j] -= basis[:, :j] @ parts
        triangle[j, j] = np.sqrt((basis[:, j] ** 2).sum())
        basis[:, j] /= triangle[j, j]
    x, right = np.zeros(count, a.dtype), basis.T @ b
    for i in reversed(range(count)):
        x[i] = (right[i] - triangle[i, i + 1 :] @ x[i + 1 :]) / triangle[i, i]
    return x


def from_square(f, at_zero):
    """The function of z = t^2 whose limit at 0 is given."""
    return lambda z: f(mp.sqrt(z)) if z > mp.mpf("1e-20") else mp.mpf(at_zero)


def tables():
    """For each table: module, f, interval, degree, weight."""
    third = mp.mpf(1) / 3
    sin = from_square(lambda t: (mp.sin(t) / t - 1) / t**2, -third / 2)
    cos = from_square(lambda t: (mp.cos(t) - 1 + t**2 / 2) / t**4, third / 8)
    atan = from_square(lambda t: (mp.atan(t) / t - 1) / t**2, -third)
    asin = from_square(lambda t: (mp.asin(t) / t - 1) / t**2, third / 2)
    log = from_square(lambda s: (2 * mp.atanh(s) / s - 2) / s**2, 2 * third)
    fine_log = from_square(lambda s: ((2 * mp.atanh(s) / s - 2) / s**2 - 2 * third) / s**2 * 1.5, mp.mpf(3) / 5)
    sin_weight = from_square(lambda t: t**3 / mp.sin(t), 0)
    cos_weight = from_square(lambda t: t**4 / mp.cos(t), 0)
    atan_weight = from_square(lambda t: t**3 / mp.atan(t), 0)
    asin_weight = from_square(lambda t: t**3 / mp.asin(t), 0)
    s, half = 3 - mp.sqrt(8), mp.log(2) / 2 + mp.mpf("1e-6")
    s2, t2, quarter = s**2 * mp.mpf("1.0001"), mp.mpf("0.5464") ** 2, mp.mpf("0.2500001")

    def exp(r):
        return (mp.exp(r) - 1 - r) / r**2 if abs(r) > mp.mpf("1e-20") else mp.mpf(1) / 2

    def exp2(r):
        return (mp.mpf(2) ** r - 1) / r if abs(r) > mp.mpf("1e-20") else mp.log(2)

    def exp_weight(r):
        return r**2 / mp.exp(r)

    def exp2_weight(r):
        return r / mp.mpf(2) ** r

    return {
        "SIN": (sin, 0, 1, 6, sin_weight),
        "COS": (cos, 0, 1, 5, cos_weight),
        "SHORT_SIN": (sin, 0, 1, 3, sin_weight),
        "SHORT_COS": (cos, 0, 1, 3, cos_weight),
        "ATAN": (atan, 0, t2, 12, atan_weight),
        "SHORT_ATAN": (atan, 0, t2, 6, atan_weight),
        "ASIN": (asin, 0, quarter, 11, asin_weight),
        "SHORT_ASIN": (asin, 0, quarter, 5, asin_weight),
        "EXP": (exp, -half, half, 9, exp_weight),
        "SHORT_EXP": (exp, -half, half, 5, exp_weight),
        "EXP2": (exp2, -0.5, 0.5, 11, exp2_weight),
        "SHORT_EXP2": (exp2, -0.5, 0.5, 5, exp2_weight),
        "LOG": (log, 0, s2, 6, lambda z: z / 2),
        "SHORT_LOG": (log, 0, s2, 3, lambda z: z / 2),
        "FINE_LOG": (fine_log, 0, s2, 7, lambda z: z**2 / 3),
    }


def rationals():
    """For each table of `lax.single_precision`: f, the end of the interval, degree, constant."""
    tanh = from_square(lambda t: mp.tanh(t) / t, 1)
    erf = from_square(lambda t: mp.erf(t) / t, 2 / mp.sqrt(mp.pi))
    return {"TANH": (tanh, 8.8**2, 4, 0.125), "ERF": (erf, 3.85**2, 5, 0.28125)}


if __name__ == "__main__":
    with mp.workdps(DIGITS):
        for name, task in tables().items():
            coefficients, error = minimax(*task)
            print(f"{name} = {coefficients}  # 2^{float(mp.log(error, 2)):.1f}")
        for name, task in rationals().items():
            *coefficients, error = rational(*task)
            print(f"{name} = {(task[-1], *coefficients)}  # 2^{np.log2(error):.1f}")
