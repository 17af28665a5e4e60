"""Numerical routines as they are found in scientists' files: plain NumPy, arrays that are created and filled.

May import: NumPy alone. `tests/test_numpy_function.py` transforms them.
"""

import numpy as np


def thomas(lower, diagonal, upper, rhs):
    """Solve a tridiagonal system (Thomas 1949)."""
    n = len(diagonal)
    c = np.zeros(n - 1)
    d = np.zeros(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = rhs[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] - lower[i - 1] * c[i - 1]
        if i < n - 1:
            c[i] = upper[i] / m
        d[i] = (rhs[i] - lower[i - 1] * d[i - 1]) / m
    x = np.empty_like(d)
    x[-1] = d[-1]
    for i in range(n - 2, -1, -1):
        x[i] = d[i] - c[i] * x[i + 1]
    return x


def gram_schmidt(a):
    """QR by modified Gram-Schmidt: the columns of a copy are made orthogonal in place."""
    q = a.copy()
    n = q.shape[1]
    r = np.zeros((n, n))
    for k in range(n):
        column = q[:, k]  # a view
        r[k, k] = np.sqrt(np.sum(column**2))
        column /= r[k, k]
        for j in range(k + 1, n):
            r[k, j] = column @ q[:, j]
            q[:, j] -= r[k, j] * column
    return q, r


def horner(coefficients, x):
    """A polynomial and its derivative."""
    value = np.zeros_like(x)
    slope = np.zeros_like(x)
    for c in coefficients:
        slope *= x
        slope += value
        value *= x
        value += c
    return np.array([value, slope])


def floyd_warshall(weights):
    """Lengths of the shortest paths between all pairs of nodes."""
    distance = np.array(weights, dtype=float)
    np.fill_diagonal(distance, 0.0)
    n = distance.shape[0]
    for k in range(n):
        np.minimum(distance, distance[:, k, None] + distance[k], out=distance)
    return distance


def gauss_seidel(a, b, sweeps=10):
    """Solve a linear system by relaxation, each unknown in turn."""
    n = b.size
    x = np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            x[i] = (b[i] - a[i, :i] @ x[:i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


# Dormand and Prince (1980).
NODES = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1]
TABLEAU = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])


def rk45_step(f, t, y, h):
    """One step of Dormand and Prince, and an estimate of its error."""
    k = np.empty((7, y.size))
    for s in range(7):
        k[s] = f(t + NODES[s] * h, y + h * np.dot(TABLEAU[s, :s], k[:s]))
    return y + h * np.dot(TABLEAU[6], k[:6]), h * np.dot(ERROR, k)


def van_der_pol(t, y):
    """An oscillator, with a force."""
    out = np.zeros_like(y)
    out[0] = y[1]
    out[1] = 2.0 * (1 - y[0] ** 2) * y[1] - y[0] + 0.1 * np.cos(t)
    return out


def oscillator_step(y):
    """A step of the oscillator."""
    return rk45_step(van_der_pol, 0.3, y, 0.1)


def spline_moments(x, y):
    """Second derivatives of the natural cubic spline at its knots."""
    n = len(x)
    h = np.diff(x)
    a = np.zeros((n, n))
    b = np.zeros(n)
    a[0, 0] = a[-1, -1] = 1
    for i in range(1, n - 1):
        a[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        b[i] = 6 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    return np.linalg.solve(a, b)


def fft(x):
    """The discrete Fourier transform of 2**k numbers (Cooley, Tukey 1965)."""
    n = x.shape[0]
    if n == 1:
        return x.astype(complex)
    even, odd = fft(x[::2]), fft(x[1::2])
    factor = np.exp(-2j * np.pi * np.arange(n // 2) / n)
    out = np.empty(n, dtype=complex)
    out[: n // 2] = even + factor * odd
    out[n // 2 :] = even - factor * odd
    return out


def lu(a):
    """Gaussian elimination with the largest pivot of each column: ``a[p] = l @ u``."""
    a = a.copy()
    n = a.shape[0]
    p = np.arange(n)
    for k in range(n - 1):
        pivot = k + np.argmax(np.abs(a[k:, k]))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            p[[k, pivot]] = p[[pivot, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.tril(a, -1) + np.eye(n), np.triu(a), p


def lu_in_order(a):
    """The same without pivots, so that nothing depends on values."""
    a = np.array(a)
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, np.newaxis] * a[k, k + 1 :]
    return a


def histogram(x, weights, low, high, bins):
    """Weights are shared between the two nearest bins, by distance from their centres."""
    counts = np.zeros(bins)
    width = (high - low) / bins
    for value, weight in zip(x, weights):
        place = (value - low) / width - 0.5
        left = np.floor(place)
        share = place - left
        i = left.astype(int) if isinstance(left, np.ndarray) else np.intp(left)
        counts[i] += weight * (1 - share)
        counts[i + 1] += weight * share
    return counts
