"""The axes of arrays of rank 0: all functions with an axis accept and refuse what NumPy's do, eager and compiled."""

import inspect

import numpy as np
import pytest

import xform
import xform.numpy as xnp

MODULES = [("", np, xnp), ("linalg.", np.linalg, xnp.linalg), ("fft.", np.fft, xnp.fft)]
# Arguments between the array and the axis.
MORE = {
    "append": (1.0,), "argpartition": (0,), "array_split": (1,), "compress": ([True],), "cross": (1.0,), "delete": (0,),
    "insert": (0, 1.0), "nanpercentile": (50,), "nanquantile": (0.5,), "partition": (0,), "percentile": (50,),
    "put_along_axis": (0, 1.0), "quantile": (0.5,), "repeat": (2,), "roll": (1,), "split": (1,), "take": (0,),
    "take_along_axis": (np.array(0),), "tensordot": (1.0,),
}  # fmt: skip
# What is let pass, where NumPy's code happens to fail, or the other way round.
ELSEWHERE = {
    ("roll", ()), ("fft.fftshift", None), ("fft.fftshift", ()), ("fft.ifftshift", None), ("fft.ifftshift", ()),
    ("tensordot", -1), ("cumulative_sum", (0,)), ("cumulative_prod", (0,)),
}  # fmt: skip
OF_VALUES = {"trim_zeros", "unique"}  # whose shapes depend on values
AXES = (0, -1, 1, None, (), (0,))


def functions():
    for prefix, theirs, ours in MODULES:
        for name in sorted(getattr(theirs, "__all__", None) or vars(theirs)):
            function, own = getattr(theirs, name), getattr(ours, name, None)
            if own is None or not callable(function) or isinstance(function, np.ufunc | type):
                continue
            try:
                axis = [p for p in inspect.signature(function).parameters if p.startswith("ax")]
            except ValueError:  # written in C
                continue
            if axis:
                yield prefix + name, function, own, axis


FUNCTIONS = list(functions())
METHODS = [*((f, "reduce") for f in ("add", "subtract", "maximum")), *((f, "accumulate") for f in ("add", "gcd"))]


def attempt(function, *args, **kwargs):
    try:
        return [np.asarray(x) for x in xform.tree.leaves(function(*args, **kwargs))]
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        return error


def check(got, wanted, call):
    if isinstance(wanted, Exception):
        assert isinstance(got, Exception), (call, wanted, got)
        return
    assert not isinstance(got, Exception), (call, got)
    for g, w in zip(got, wanted, strict=True):
        assert g.shape == w.shape, (call, g.shape, w.shape)
        np.testing.assert_array_equal(g, w, str(call))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "theirs", "ours", "parameters"), FUNCTIONS, ids=[f[0] for f in FUNCTIONS])
def test_functions(name, theirs, ours, parameters):
    for axis in AXES:
        if (name, axis) in ELSEWHERE:
            continue
        axes = dict.fromkeys(parameters if parameters[0] in ("axis1", "axisa") else parameters[:1], axis)

        def call(x, function=ours, axes=axes):
            return function(x, *MORE.get(name, ()), **axes)

        wanted = attempt(call, np.array(3.0), theirs)
        check(attempt(call, xnp.array(3.0)), wanted, (name, axis))
        check(attempt(call, xnp.array(np.array(3.0))), wanted, (name, axis))  # whose dtype isn't weak: another way
        if name not in OF_VALUES:
            check(attempt(xform.jit(call, backend="numpy"), xnp.array(3.0)), wanted, (name, axis, "jit"))
    assert len(FUNCTIONS) > 90


@pytest.mark.parametrize(("name", "method"), METHODS)
def test_methods_of_ufuncs(name, method):
    x = np.array(3)
    for axis in AXES:
        theirs, ours = (getattr(getattr(module, name), method) for module in (np, xnp))
        wanted = attempt(theirs, x, axis=axis)
        check(attempt(ours, xnp.array(x), axis=axis), wanted, (name, method, axis))
        compiled = xform.jit(lambda v, f=ours, axis=axis: f(v, axis=axis), backend="numpy")
        check(attempt(compiled, xnp.array(x)), wanted, (name, method, axis, "jit"))


def test_derivatives():
    for f in (xnp.sum, xnp.max, xnp.prod, xnp.nanmean, xnp.cumsum, xnp.squeeze):
        assert float(xform.grad(lambda x, f=f: f(x * x, axis=0).sum())(3.0)) == 6.0
