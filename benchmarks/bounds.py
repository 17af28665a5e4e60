"""What is claimed: for a row of the benchmarks, xform's time is at most this many times the peer's."""

BOUNDS: dict[str, dict[str, float]] = {
    "eager, 3 elements: geometric mean": {"NumPy": 4, "JAX": 1 / 4},
    "eager gradient: sum(sin(x) * x)": {"JAX": 1 / 20, "autograd": 1 / 2.5},
    "eager gradient: pendulum, 20 leapfrog steps": {"JAX": 1 / 20, "autograd": 1 / 2.5},
    "trace: gradient of a 100-layer MLP": {"JAX": 1 / 8},
    "lower: gradient of a 100-layer MLP": {"JAX": 1 / 3},
    "jit dispatch: one array": {"JAX": 1},
    "jit dispatch: dict of 100 arrays": {"JAX": 0.7},
    "compiled, 1e6 float64: geometric mean": {"JAX": 1 / 2},
    "compiled, 1e6 float64: sin(x) * exp(-x * x)": {"JAX": 1 / 2},
    "compiled: gradient of the demo's log posterior": {"JAX": 1.05},
    "first call: gradient of 50 unrolled N-body steps": {"JAX": 1 / 10},
    "gradient of the demo's log posterior": {"JAX": 1 / 2},
    "gradient of a wave equation, 200 steps": {"JAX": 1 / 1.2},
    "memory of the gradient of a wave equation, 200 steps": {"JAX": 1 / 2},
    "compiled inv, 10,000 3x3 float64": {"JAX": 1 / 5},
    "compiled solve, 10,000 3x3 float64": {"JAX": 1 / 5},
    "compiled slogdet, 10,000 3x3 float64": {"JAX": 1 / 5},
    "compiled cholesky, 10,000 3x3 float64": {"JAX": 1 / 4},
    "compiled eigh, 10,000 3x3 float64": {"JAX": 1 / 5},
    # JAX has cofactors for up to 3 rows, as fast as memory, but wrong for matrices of nearly rank one.
    "compiled det, 10,000 4x4 float64": {"JAX": 1 / 5},
    "import": {"JAX": 1 / 2},
}
