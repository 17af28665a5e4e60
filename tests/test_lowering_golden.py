"""The StableHLO text of a few programs, as files in `golden/`.

A change of the text makes XLA compile everything anew, and is to be seen: look at the difference, then write the files
anew by ``UPDATE_GOLDEN=1 python -m pytest tests/test_lowering_golden.py``.
"""

import difflib
import os
import pathlib

import numpy as np
import pytest

import xform
from xform import lax
from xform.backends import xla
from xform.core.array import ArrayImpl
from xform.lax import add, cos, exp, mul, reduce_sum, sin, tanh

GOLDEN = pathlib.Path(__file__).parent / "golden"
X = np.linspace(0.1, 0.9, 3)


def polynomial(x, y):
    """Scalars that are broadcast, constants written once, two results."""
    z = add(mul(x, 2.0), mul(y, 2.0))
    return z, mul(z, x)


def gradient(x):
    return xform.grad(lambda x: reduce_sum(mul(sin(x), x), (0,)))(x)


def shared_calls(x):
    """Two calls of one function, and one of an equal one."""

    @xform.jit
    def inner(a):
        return mul(sin(a), a)

    @xform.jit
    def equal(a):
        return mul(sin(a), a)

    return add(inner(x), add(inner(cos(x)), equal(exp(x))))


def branches(x, flag):
    return lax.cond(flag, sin, lambda a: mul(a, 3.0), x)


def loop(x):
    """A scan with a constant, a carry and ys."""
    return lax.scan(lambda c, a: (add(mul(c, 0.5), a), c), np.float64(0.0), x)


def loop_gradient(x):
    """Its transpose runs backwards."""
    return xform.grad(lambda x: lax.scan(lambda c, a: (tanh(add(c, a)), None), np.float64(0.0), x)[0])(x)


def until(x):
    return lax.while_loop(lambda c: lax.lt(c, 10.0), lambda c: mul(c, 2.0), x)


def batched_until(x):
    """Lanes that are done keep their values."""
    return xform.vmap(until)(x)


def constants(x):
    """A small constant as text, a large one as an argument; special values by their bits."""
    small = np.array([np.nan, np.inf, -0.0])
    return add(x, small), reduce_sum(
        mul(np.arange(30.0).reshape(10, 3), lax.broadcast_in_dim(x, (10, 3), (1,))), (0, 1)
    )


def product(a, b):
    return lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))))


def types(i, f, z):
    return lax.convert_element_type(i, np.float32), lax.convert_element_type(f, np.int8), lax.real(z), lax.gt(f, 0.5)


PROGRAMS = {
    "polynomial": (polynomial, (X, np.float64(2.0))),
    "gradient": (gradient, (X,)),
    "shared_calls": (shared_calls, (X,)),
    "branches": (branches, (X, np.True_)),
    "loop": (loop, (X,)),
    "loop_gradient": (loop_gradient, (X,)),
    "until": (until, (np.float64(1.0),)),
    "batched_until": (batched_until, (X,)),
    "constants": (constants, (X,)),
    "product": (product, (np.ones((2, 30, 40)), np.ones((2, 40, 5)))),
    "types": (types, (np.int32(3), np.float64(0.25), np.complex64(1j))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name):
    function, args = PROGRAMS[name]
    text = xform.jit(function).lower(*args).as_text()
    path = GOLDEN / f"{name}.mlir"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    wanted = path.read_text()
    difference = "\n".join(
        difflib.unified_diff(wanted.splitlines(), text.splitlines(), str(path.name), "now", lineterm="")
    )
    assert text == wanted, difference


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_computes_what_the_function_does(name):
    function, args = PROGRAMS[name]
    lowered = xform.jit(function).lower(*args)
    out = lowered.compile()(*args)
    expected = function(*args)
    for a, b in zip(*[v if isinstance(v, tuple) else (v,) for v in (out, expected)], strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-14)


def test_no_file_is_left_over():
    assert {p.stem for p in GOLDEN.glob("*.mlir")} == set(PROGRAMS)


def test_the_text_does_not_depend_on_when_it_is_made():
    """Names of variables, functions and orders of parameters come from the program alone."""
    function, args = PROGRAMS["shared_calls"]
    first = xform.jit(lambda *xs: function(*xs)).lower(*args).as_text()
    xform.jit(lambda x: exp(sin(x)))(1.0)
    assert xform.jit(lambda *xs: function(*xs)).lower(*args).as_text() == first


def test_debug_info_names_the_users_lines():
    function, args = PROGRAMS["polynomial"]
    text = xform.jit(function).lower(*args).as_text(debug_info=True)
    line = function.__code__.co_firstlineno + 2
    assert f'test_lowering_golden.py":{line}' in text
    device = xla.devices("cpu")[0]
    executable = xla.compile(text, [((3,), np.dtype(float))] * 2, [device])
    outs = executable.execute([ArrayImpl(np.asarray(a))._on_device(device) for a in args])
    np.testing.assert_allclose(xla.get(outs[0]), 2 * X + 4)
