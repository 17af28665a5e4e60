"""What `debug_nans` and `debug_infs` tell: the operation that made it, the user's line, the pass."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax


def forward(x):
    y = xnp.log(x)  # forward line
    return (y * 0).sum()


def backward(x):
    y = xnp.cbrt(x**3)  # backward line
    return y.sum()


def line(text):
    with open(__file__) as file:
        return next(i for i, row in enumerate(file, 1) if text in row)


negative, zero = np.array([-1.0, 2.0]), np.array([0.0, 2.0])
CASES = {
    "eager": lambda: forward(negative),
    "jit": lambda: xform.jit(forward)(negative),
    "vmap": lambda: xform.vmap(forward)(np.stack([zero + 1, negative])),
    "grad": lambda: xform.grad(forward)(negative),
    "scan": lambda: lax.scan(lambda c, a: (c + forward(a), None), 0.0, np.stack([zero + 1, negative]))[0],
}


@pytest.mark.parametrize("name", CASES)
def test_forward(name):
    where = rf"NaN in the result of 'log' of f64.*operands have none, at test_debugging.py:{line('# forward line')} "
    with xform.debug_nans(True), pytest.raises(FloatingPointError, match=where) as raised:
        CASES[name]()
    assert "backward" not in str(raised.value)


@pytest.mark.parametrize("wrap", [lambda f: f, xform.jit, xform.checkpoint])
def test_backward(wrap):
    where = rf"at test_debugging.py:{line('# backward line')} .*in the backward pass"
    with xform.debug_nans(True), pytest.raises(FloatingPointError, match=where):
        xform.grad(wrap(backward))(zero)
    with xform.debug_nans(True), pytest.raises(FloatingPointError, match=where):
        xform.jit(xform.grad(wrap(backward)))(zero)
    assert np.isnan(xform.grad(wrap(backward))(zero)[0])  # without the mode nothing is raised


def test_infinities_and_what_was_there_before():
    with xform.debug_infs(True), pytest.raises(FloatingPointError, match=r"infinity in the result of 'div' of f64\[\]"):
        xnp.float64(1.0) / xnp.float64(0.0)
    with xform.debug_nans(True), pytest.raises(FloatingPointError) as raised:
        xnp.sin(np.array([np.nan]))
    assert "operands have none" not in str(raised.value)
