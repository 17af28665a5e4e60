"""Polynomials of least maximal error, by Remez's exchange algorithm: the coefficients of `lax.vector_math`.

``python -m tests.minimax`` computes them all. Source: Muller, "Elementary functions" (2016), chapter 3.
"""

import mpmath as mp

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


if __name__ == "__main__":
    with mp.workdps(DIGITS):
        for name, task in tables().items():
            coefficients, error = minimax(*task)
            print(f"{name} = {coefficients}  # 2^{float(mp.log(error, 2)):.1f}")
