"""Functions of arrays in float16 and bfloat16, which NumPy lacks or computes in its own way."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp

X = np.linspace(0.5, 2.0, 6).reshape(2, 3)
ARRAY_FUNCTIONS = {
    "concatenate": lambda x: xnp.concatenate([x, x], 1),
    "stack": lambda x: xnp.stack([x, x]),
    "pad": lambda x: xnp.pad(x, 1, "reflect"),
    "pad mean": lambda x: xnp.pad(x, 1, "mean"),
    "roll": lambda x: xnp.roll(x, 1, 1),
    "repeat": lambda x: xnp.repeat(x, 2),
    "tile": lambda x: xnp.tile(x, 2),
    "take": lambda x: xnp.take(x, np.array([1, 0]), 1),
    "insert": lambda x: xnp.insert(x, 1, 2, 1),
    "diagonal": lambda x: xnp.diagonal(x),
    "trace": lambda x: xnp.trace(x),
    "diag": lambda x: xnp.diag(x[0]),
    "vander": lambda x: xnp.vander(x[0]),
    "tril": lambda x: xnp.tril(x),
    "linspace": lambda x: xnp.linspace(x[0], x[1], 3),
    "matmul": lambda x: x @ x.T,
    "inner": lambda x: xnp.inner(x, x),
    "einsum": lambda x: xnp.einsum("ij,kj->ik", x, x),
    "kron": lambda x: xnp.kron(x, x),
    "cross": lambda x: xnp.cross(x[0], x[1]),
    "norm": lambda x: xnp.linalg.norm(x),
    "diff": lambda x: xnp.diff(x),
    "gradient": lambda x: xnp.gradient(x, axis=1),
    "trapezoid": lambda x: xnp.trapezoid(x),
    "convolve": lambda x: xnp.convolve(x[0], x[1]),
    "polyval": lambda x: xnp.polyval(x[0], x),
    "interp": lambda x: xnp.interp(x, x[0], x[1]),
    "apply_along_axis": lambda x: xnp.apply_along_axis(xnp.sum, 1, x),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ARRAY_FUNCTIONS)
def test_functions_of_arrays(name, dtype):
    """The dtype stays, and the values are those of double precision, eagerly and compiled."""
    function = ARRAY_FUNCTIONS[name]
    x = xnp.array(X).astype(dtype)
    want = function(x.astype("float64"))
    eps = float(xnp.finfo(dtype).eps)
    for got in (function(x), xform.jit(function)(x)):
        assert got.dtype == x.dtype
        np.testing.assert_allclose(np.asarray(got, float), want, rtol=16 * eps, atol=16 * eps)
