"""What is claimed: for a row of the benchmarks, xform's time is at most this many times the peer's."""

BOUNDS: dict[str, dict[str, float]] = {
    "eager, 3 elements: geometric mean": {"NumPy": 4, "JAX": 1 / 4},
    "numpy, 5 elements: geometric mean": {"NumPy": 3, "JAX": 1 / 5},
    "eager gradient: sum(sin(x) * x)": {"JAX": 1 / 20, "autograd": 1 / 2.5},
    "eager gradient: pendulum, 20 leapfrog steps": {"JAX": 1 / 20, "autograd": 1 / 2.5},
    "trace: gradient of a 100-layer MLP": {"JAX": 1 / 8},
    "lower: gradient of a 100-layer MLP": {"JAX": 1 / 3},
    "jit dispatch: one array": {"JAX": 1},
    "jit dispatch: dict of 100 arrays": {"JAX": 0.7},
    "compiled, 1e6 float64: geometric mean": {"JAX": 1 / 2},
    "compiled, 1e6 float64: sin(x) * exp(-x * x)": {"JAX": 1 / 2},
    "compiled: gradient of the demo's log posterior": {"JAX": 1.05},
    "compiled: a Lennard-Jones step, N=256": {"JAX": 1 / 2.5},
    "compiled, 1e6 float64: sort": {"JAX": 1 / 5},
    "compiled, 1e6 float64: argsort": {"JAX": 1 / 5},
    "compiled, 1e6 float64: cumsum": {"JAX": 1 / 3},
    "first call: gradient of 50 unrolled N-body steps": {"JAX": 1 / 10},
    "first call: gradient of 100 products of 8x8 matrices and vectors": {"JAX": 1 / 4},
    "gradient of the demo's log posterior": {"JAX": 1 / 2},
    "gradient of a wave equation, 200 steps": {"JAX": 1 / 1.2},
    "gradient of a heat equation, 100 steps": {"JAX": 1 / 2},
    "memory of the gradient of a wave equation, 200 steps": {"JAX": 1 / 2},
    "compiled inv, 10,000 3x3 float64": {"JAX": 1 / 5},
    "compiled solve, 10,000 3x3 float64": {"JAX": 1 / 5},
    "compiled det, 10,000 3x3 float64": {"JAX": 1 / 5},
    "compiled slogdet, 10,000 3x3 float64": {"JAX": 1 / 5},
    "compiled cholesky, 10,000 3x3 float64": {"JAX": 1 / 5},
    "compiled eigh, 10,000 3x3 float64": {"JAX": 1 / 5},
    # JAX has cofactors for up to 3 rows, as fast as memory, but wrong for matrices of nearly rank one.
    "compiled det, 10,000 4x4 float64": {"JAX": 1 / 5},
    "import": {"JAX": 1 / 2},
}

# The same for all rows whose names begin so. Most compiled code is JAX's own: their times differ by what else the
# machine does.
BOUNDS_BY_PREFIX = {
    "numpy, 1,000,000 elements: ": {"NumPy": 1.2},
    "primitive, eager: ": {"NumPy": 1.3},
    # JAX leaves them to a library that loses NaN.
    "primitive, compiled: reduce_max float": {"JAX": 2},
    "primitive, compiled: reduce_min float": {"JAX": 2},
    "primitive, compiled: ": {"JAX": 1.15},
}


def bounds_of(name: str) -> dict[str, float]:
    """What is claimed for the row of that name, by peer."""
    common = (bounds for prefix, bounds in BOUNDS_BY_PREFIX.items() if name.startswith(prefix))
    return BOUNDS.get(name) or next(common, {})
