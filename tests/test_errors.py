"""Errors: they name the function and what was wrong with which argument, and point at the user's line alone."""

import os
import traceback

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax
from xform.core.config import traceback_filtering
from xform.core.errors import PACKAGE

HERE = os.path.abspath(__file__)


def error_of(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error
    raise AssertionError("no error")


def frames(error):
    """The files of a traceback, outermost first, from the frame that calls the function under test."""
    return traceback.extract_tb(error.__traceback__)


# ---- Tracebacks --------------------------------------------------------------------------------------------


def broken(x):
    return lax.add(x, np.ones(7))  # the user's line


LINE = broken.__code__.co_firstlineno + 1

TRANSFORMED = {
    "eager": lambda: broken(np.ones(3)),
    "jit": lambda: xform.jit(broken)(np.ones(3)),
    "grad": lambda: xform.grad(broken)(np.ones(3)),
    "jvp": lambda: xform.jvp(broken, (np.ones(3),), (np.ones(3),)),
    "vjp": lambda: xform.vjp(broken, np.ones(3)),
    "vmap": lambda: xform.vmap(broken)(np.ones((2, 3))),
    "make_jaxpr": lambda: xform.make_jaxpr(broken)(np.ones(3)),
    "eval_shape": lambda: xform.eval_shape(broken, np.ones(3)),
    "hessian": lambda: xform.hessian(broken)(np.ones(3)),
    "jit of grad of vmap": lambda: xform.jit(xform.grad(lambda x: xform.vmap(broken)(x)))(np.ones((2, 3))),
    "scan": lambda: lax.scan(lambda c, x: (broken(c), x), np.ones(3), np.ones(2)),
    "while_loop": lambda: lax.while_loop(lambda c: True, broken, np.ones(3)),
    "fori_loop": lambda: lax.fori_loop(0, 3, lambda i, c: broken(c), np.ones(3)),
    "cond": lambda: xform.jit(lambda p: lax.cond(p, broken, broken, np.ones(3)))(True),
    "switch": lambda: xform.jit(lambda i: lax.switch(i, [broken, broken], np.ones(3)))(0),
    "lower": lambda: xform.jit(broken).lower(np.ones(3)),
    "disable_jit": lambda: xform.jit(broken)(np.ones(3)),
}


@pytest.mark.parametrize("how", TRANSFORMED)
def test_tracebacks_show_the_users_lines_alone(how):
    with xform.disable_jit(how == "disable_jit"):
        error = error_of(TRANSFORMED[how])
    assert type(error) is TypeError
    assert "lax.add" in str(error) and "f64[3], f64[7]" in str(error)
    shown = frames(error)
    assert [f for f in shown if f.filename.startswith(PACKAGE)] == []
    assert (shown[-1].filename, shown[-1].lineno) == (HERE, LINE)


@pytest.mark.parametrize("how", ["eager", "jit", "grad", "vmap", "scan"])
def test_unfiltered_tracebacks(how):
    with traceback_filtering("off"):
        error = error_of(TRANSFORMED[how])
    assert any(f.filename.startswith(PACKAGE) for f in frames(error))
    assert any((f.filename, f.lineno) == (HERE, LINE) for f in frames(error))


def test_operators_and_methods_point_at_the_users_line():
    def add(x):
        return x + xnp.ones(7)

    def method(x):
        return x.reshape(5)

    def numpy_function(x):
        return xnp.concatenate([x, xnp.ones((2, 2))])

    for f in (add, method, numpy_function):
        for transformed in (f, xform.jit(f), xform.vjp):
            error = (
                error_of(transformed, f, xnp.ones(3))
                if transformed is xform.vjp
                else error_of(transformed, xnp.ones(3))
            )
            shown = frames(error)
            assert (shown[-1].filename, shown[-1].name) == (HERE, f.__name__), "".join(
                traceback.format_tb(error.__traceback__)
            )


def test_the_users_own_exceptions_pass_through():
    class Mine(Exception):
        pass

    def f(x):
        try:
            raise KeyError("cause")
        except KeyError as cause:
            raise Mine("text") from cause

    for transformed in (xform.jit(f), xform.grad(f), xform.vmap(f), xform.jit(xform.grad(xform.jit(f)))):
        error = error_of(transformed, np.ones(3))
        assert type(error) is Mine and error.args == ("text",)
        assert isinstance(error.__cause__, KeyError)
        assert frames(error)[-1].name == "f"


def test_errors_are_not_in_each_others_context():
    """Nothing was being handled when the error was raised: no 'During handling of the above exception'."""
    for thunk in (
        lambda: lax.add(np.ones(2), np.ones(3)),
        lambda: xform.jit(lambda x: x)("text"),
        lambda: xform.grad(lambda x: x)(1),
        lambda: lax.add(np.float32(1), 1j),
    ):
        error = error_of(thunk)
        assert error.__context__ is None or error.__suppress_context__


# ---- Messages ----------------------------------------------------------------------------------------------

F = np.ones(3)
M = np.ones((2, 3))


def pair(x):
    return x, x


MESSAGES = {
    # grad and its kin
    "integer input": (
        lambda: xform.grad(np.square)(3),
        TypeError,
        r"grad needs inputs of float or complex dtype.*i64\[\].*allow_int",
    ),
    "vector result": (
        lambda: xform.grad(lambda x: x)(F),
        TypeError,
        r"returns a scalar, but <lambda> returned f64\[3\].*jacrev",
    ),
    "pair result": (lambda: xform.grad(pair)(1.0), TypeError, r"one scalar, but pair returned the structure"),
    "integer result": (
        lambda: xform.grad(lambda x: 3)(1.0),
        TypeError,
        r"to a real float, but <lambda> returned i64\[\]",
    ),
    "complex result": (lambda: xform.grad(lambda x: lax.mul(x, 1j))(1j), TypeError, r"c128\[\].*holomorphic=True"),
    "no aux": (lambda: xform.grad(lambda x: x, has_aux=True)(1.0), TypeError, r"has_aux=True.*pair"),
    "argnums out of range": (
        lambda: xform.grad(pair, argnums=2)(1.0),
        ValueError,
        r"grad of pair: argument number 2.*1 positional",
    ),
    "not a function": (lambda: xform.grad(3), TypeError, "expected a function, got 3 of type int"),
    "text to grad": (lambda: xform.grad(lambda x: x)("a"), TypeError, r"grad: argument.*'a' of type str"),
    "primals not a tuple": (
        lambda: xform.jvp(np.sin, 1.0, (1.0,)),
        TypeError,
        r"jvp: primals and tangents must be tuples.*float and tuple",
    ),
    "tangent of another structure": (lambda: xform.jvp(pair, (1.0,), ((1.0,),)), TypeError, r"jvp: .*one structure"),
    "tangent of another shape": (
        lambda: xform.jvp(pair, (F,), (M,)),
        TypeError,
        r"jvp: an input of f64\[3\] needs a tangent of f64\[3\], got f64\[2,3\]",
    ),
    "tangent of another dtype": (
        lambda: xform.jvp(pair, (F,), (F.astype("f4"),)),
        TypeError,
        r"f64\[3\], got f32\[3\]",
    ),
    "tangent of an integer": (lambda: xform.jvp(pair, (1,), (1,)), TypeError, r"i64\[\] must be of dtype float0"),
    "cotangent of another shape": (
        lambda: xform.vjp(lambda x: x, F)[1](M),
        TypeError,
        r"vjp: expected a cotangent of f64\[3\], got f64\[2,3\]",
    ),
    "cotangent of another structure": (lambda: xform.vjp(pair, F)[1](F), TypeError, r"vjp: the cotangent's structure"),
    "two cotangents": (lambda: xform.vjp(pair, F)[1](F, F), TypeError, r"pullback takes one argument.*got 2"),
    # vmap
    "lengths differ": (
        lambda: xform.vmap(lax.add)(F, np.ones(4)),
        ValueError,
        r"vmap of add: .*one length.*\n.*3: argument 0 of f64\[3\].*\n.*4: argument 1 of f64\[4\]",
    ),
    "axis out of range": (
        lambda: xform.vmap(lax.sin, in_axes=1)(F),
        ValueError,
        r"vmap of sin: axis 1 is out of range.*f64\[3\]",
    ),
    "rank 0 mapped": (lambda: xform.vmap(lax.sin)(1.0), ValueError, r"vmap of sin: axis 0 is out of range.*f64\[\]"),
    "too many in_axes": (
        lambda: xform.vmap(lax.sin, in_axes=(0, 0))(F),
        ValueError,
        r"in_axes=\(0, 0\) has 2 entries.*1 positional",
    ),
    "nothing mapped": (lambda: xform.vmap(lax.sin, in_axes=None)(F), ValueError, r"vmap of sin: no argument is mapped"),
    "text as in_axes": (
        lambda: xform.vmap(lax.sin, in_axes="a"),
        TypeError,
        r"vmap: in_axes must be an int, None.*'a'",
    ),
    "unmapped result": (
        lambda: xform.vmap(lax.sin, out_axes=None)(F),
        ValueError,
        r"out_axes is None.*f64\[3\] that depends",
    ),
    "out_axes out of range": (
        lambda: xform.vmap(lax.sin, out_axes=1)(F),
        ValueError,
        r"out_axes 1 is out of range.*rank 1",
    ),
    # lax
    "shapes": (lambda: lax.mul(F, M), TypeError, r"lax\.mul needs operands of one shape.*f64\[3\], f64\[2,3\]"),
    "dtypes": (
        lambda: lax.mul(F, np.ones(3, "f4")),
        TypeError,
        r"lax\.mul needs operands of one dtype.*f64\[3\], f32\[3\].*astype",
    ),
    "kind of dtype": (lambda: lax.sin(np.arange(3)), TypeError, r"lax\.sin takes .*inexact.*i64\[3\]"),
    "scalar that does not fit": (
        lambda: lax.add(np.int8(1), 1000),
        (TypeError, OverflowError),
        r"add.*1000.*int8|1000.*int8",
    ),
    "list": (lambda: lax.sin([1.0, 2.0]), TypeError, r"sin.*list|list"),
    # control flow
    "cond predicate": (
        lambda: lax.cond(F, lax.sin, lax.cos, 1.0),
        TypeError,
        r"lax\.cond: pred must be a scalar, got f64\[3\]",
    ),
    "cond functions": (lambda: lax.cond(True, 1, 2), TypeError, r"lax\.cond: .*two functions"),
    "cond branches": (
        lambda: xform.jit(lambda p: lax.cond(p, lambda: (1.0, F), lambda: (1.0, M)))(True),
        TypeError,
        r"lax\.cond: .*false_fun.*true_fun.*\n.*\[1\]: f64\[2,3\] against f64\[3\]",
    ),
    "cond structures": (
        lambda: xform.jit(lambda p: lax.cond(p, lambda: (1.0,), lambda: 1.0))(True),
        TypeError,
        r"lax\.cond: .*same structure",
    ),
    "switch index": (
        lambda: lax.switch(1.0, [lax.sin], 1.0),
        TypeError,
        r"lax\.switch: index must be an integer scalar, got f64\[\]",
    ),
    "switch without branches": (lambda: lax.switch(1, []), TypeError, r"lax\.switch: branches must be a non-empty"),
    "scan lengths": (
        lambda: lax.scan(lambda c, x: (c, x), 0.0, (F, np.ones(4))),
        ValueError,
        r"lax\.scan: leading lengths differ: xs\[0\]: f64\[3\], xs\[1\]: f64\[4\]",
    ),
    "scan over a scalar": (lambda: lax.scan(lambda c, x: (c, x), 0.0, 1.0), ValueError, r"lax\.scan: xs has rank 0"),
    "scan without length": (lambda: lax.scan(lambda c, x: (c, x), 0.0), ValueError, r"lax\.scan: give xs .* or length"),
    "scan carry": (
        lambda: lax.scan(lambda c, x: ((c[0], M), x), (0.0, F), F),
        TypeError,
        r"lax\.scan: .*carry.*\n.*\[1\]: f64\[3\] against f64\[2,3\]",
    ),
    "scan carry structure": (
        lambda: lax.scan(lambda c, x: ((c, c), x), 0.0, F),
        TypeError,
        r"lax\.scan: .*same structure",
    ),
    "scan result": (lambda: lax.scan(lambda c, x: c, 0.0, F), TypeError, r"lax\.scan: f must return a pair"),
    "while condition": (
        lambda: lax.while_loop(lambda c: c, lambda c: c, 0.0),
        TypeError,
        r"lax\.while_loop: cond_fun must return a boolean scalar",
    ),
    "while carry": (
        lambda: lax.while_loop(lambda c: True, lambda c: F, 0.0),
        TypeError,
        r"lax\.while_loop: .*carry.*\n.*f64\[\] against f64\[3\]",
    ),
    "fori bound": (
        lambda: lax.fori_loop(0, 1.5, lambda i, c: c, 0.0),
        TypeError,
        r"lax\.fori_loop: upper must be an integer scalar, got f64\[\]",
    ),
    # others
    "eval_shape of text": (lambda: xform.eval_shape(lax.sin, "a"), TypeError, r"'a'"),
    "ShapeDtypeStruct": (lambda: xform.ShapeDtypeStruct((2,), "nonsense"), TypeError, r"ShapeDtypeStruct: 'nonsense'"),
}


@pytest.mark.parametrize("what", MESSAGES)
def test_messages(what):
    thunk, kind, message = MESSAGES[what]
    with pytest.raises(kind, match=message):
        thunk()
