"""Functions of `xform.numpy` on what Hypothesis draws, beside NumPy: shapes, dtypes, axes and values.

Each record of `tests.numpy_drawn` is tested eagerly, compiled by XLA, and differentiated; and each wrong call must fail
as in NumPy, with a message of ours. A few examples run with the other tests; ``make slow`` draws many more.
"""

import importlib
import pkgutil
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tests.numpy_drawn
import xform
import xform.numpy as xnp
from tests.numpy_drawn.record import Call, Function, resolve
from xform.core import tree
from xform.core.config import small_programs

FUNCTIONS: list[Function] = [
    f
    for module in pkgutil.iter_modules(tests.numpy_drawn.__path__)
    for f in getattr(importlib.import_module(f"tests.numpy_drawn.{module.name}"), "FUNCTIONS", [])
]

# Modules of records say here which functions need none, and why: {"save": "test_numpy_protocols.py", ...}.
TESTED_ELSEWHERE: dict[str, str] = {
    name: reason
    for module in pkgutil.iter_modules(tests.numpy_drawn.__path__)
    for name, reason in getattr(
        importlib.import_module(f"tests.numpy_drawn.{module.name}"), "TESTED_ELSEWHERE", {}
    ).items()
}


def over(records, examples):
    """A test over records, each on a few drawn calls."""

    def decorate(test):
        def few(record, data):
            test(record, data.draw(record.calls))

        few.__name__, few.__doc__ = test.__name__, test.__doc__
        draws = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
        return pytest.mark.parametrize("record", [pytest.param(r, id=r.name) for r in records])(
            draws(given(data=st.data())(few))
        )

    return decorate


def quietly(function, call: Call):
    """What the reference returns, without its warnings."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*call.args, **call.kwargs)


def reference_of(record: Function):
    return record.reference or resolve(np, record.function)


def is_array(x):
    return isinstance(x, np.ndarray | np.generic)


def as_ours(x):
    return tree.map(lambda a: xnp.array(a) if is_array(a) else a, x)


def split(call: Call):
    """The arrays of a call that are traced, and a function of such arrays to the arguments."""
    traced = [i for i in range(len(call.args)) if i not in call.fixed]
    leaves, treedef = tree.flatten([call.args[i] for i in traced])
    places = [i for i, x in enumerate(leaves) if is_array(x)]

    def rebuild(arrays):
        new = list(leaves)
        for i, x in zip(places, arrays, strict=True):
            new[i] = x
        args = list(call.args)
        for i, x in zip(traced, tree.unflatten(treedef, new), strict=True):
            args[i] = x
        return args

    return [leaves[i] for i in places], rebuild


def results(x):
    """The results in a list: with strings, bool and the like as arrays of NumPy."""
    found = list(x) if isinstance(x, tuple | list) else [x]
    return [v if hasattr(v, "dtype") or isinstance(v, tuple | list) else np.asarray(v) for v in found]


def compare(record: Function, call: Call, got, want, factor=1.0):
    """Structure, shapes, dtypes and values are NumPy's, within the record's tolerance."""
    assert isinstance(got, list) == isinstance(want, list), f"{record.name}: a {type(got)}, NumPy's is a {type(want)}"
    got, want = results(got), results(want)
    assert len(got) == len(want), f"{record.name}{call}: {len(got)} results, NumPy has {len(want)}"
    for g, w in zip(got, want, strict=True):
        if isinstance(w, tuple | list):
            compare(record, call, g, w, factor)
            continue
        w = np.asarray(w)
        dtype = record.dtype(call, w.dtype) if record.dtype else w.dtype
        assert g.shape == w.shape, f"{record.name}{call}: shape {g.shape}, NumPy's is {w.shape}"
        assert g.dtype == dtype, f"{record.name}{call}: dtype {g.dtype}, NumPy's is {dtype}"
        if record.compare is None:
            close(np.asarray(g), w, factor * record.tolerance, f"{record.name}{call}")
    if record.compare is not None:
        record.compare(got, want, call)


def close(got, want, ulps, what):
    if got.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, what)
        return
    want = want.astype(got.dtype)
    eps = float(np.finfo(got.dtype).eps)
    with np.errstate(all="ignore"):
        size = abs(want)
        largest = float(size[np.isfinite(size)].max(initial=0.0))
    np.testing.assert_allclose(got, want, rtol=ulps * eps, atol=ulps * eps * largest, err_msg=what)


# ---- The tests ---------------------------------------------------------------------------------------------


def as_numpy(record, call):
    """Outside jit."""
    got = resolve(xnp, record.function)(*as_ours(call.args), **as_ours(call.kwargs))
    compare(record, call, got, quietly(reference_of(record), call))


def compiled(record, call):
    """Under jit, by XLA."""
    arrays, rebuild = split(call)
    function = resolve(xnp, record.function)
    with small_programs("xla"):
        got = xform.jit(lambda *xs: function(*rebuild(xs), **as_ours(call.kwargs)))(*arrays)
    compare(record, call, got, quietly(reference_of(record), call), 4)


def gradient(record, call):
    """Reverse and forward mode along a direction, in double precision, beside central differences of NumPy."""
    arrays, rebuild = split(call)
    wide = {"f": np.dtype("float64"), "c": np.dtype("complex128")}
    arrays = [np.asarray(x).astype(wide.get(x.dtype.kind, x.dtype)) for x in arrays]
    moving = [i for i, x in enumerate(arrays) if x.dtype.kind in wide and x.size]
    rng = np.random.default_rng(0)

    def like(x):
        """Random numbers of the shape and dtype of x."""
        out = rng.standard_normal(x.shape) + (1j * rng.standard_normal(x.shape) if x.dtype.kind == "c" else 0)
        return np.asarray(out).astype(x.dtype)

    directions = [like(x) if i in moving else np.zeros(x.shape) for i, x in enumerate(arrays)]
    reference, function = reference_of(record), resolve(xnp, record.function)

    def at(t):
        moved = [x + t * d if i in moving else x for i, (x, d) in enumerate(zip(arrays, directions, strict=True))]
        return quietly(reference, Call(tuple(rebuild(moved)), call.kwargs))

    def flat(out):
        leaves = [np.asarray(x) for x in tree.leaves(out)]
        return np.concatenate([x.ravel() for x in leaves if x.dtype.kind in "fc"] or [np.zeros(0)])

    step = 1e-6
    before, here, soon, after = (flat(at(t)) for t in (-step, 0.0, step / 2, step))
    with np.errstate(invalid="ignore"):
        want = (after - before) / (2 * step)
        left, right = (here - before) / step, (soon - here) / (step / 2)
    narrow = any(np.asarray(x).dtype in (np.float32, np.complex64) for x in tree.leaves(at(0.0)))  # as was asked for
    if not moving or not want.size or narrow or not np.isfinite(want).all():
        return
    scale = max(1.0, float(abs(want).max()))
    if not (abs(right - left) <= 1e-4 * scale).all():
        return  # a corner, a jump or a vertical tangent within a step: differences say nothing about the derivative

    def ours(*xs):
        out = function(
            *rebuild([xs[moving.index(i)] if i in moving else x for i, x in enumerate(arrays)]), **call.kwargs
        )
        return [x for x in tree.leaves(out) if x.dtype.kind in "fc"]

    primals = [xnp.array(arrays[i]) for i in moving]
    _, tangents = xform.jvp(ours, primals, [xnp.array(directions[i]) for i in moving])
    np.testing.assert_allclose(
        flat(tangents), want, atol=record.grad_tolerance * scale, rtol=0, err_msg=f"{record.name}{call}"
    )
    out, pullback = xform.vjp(ours, *primals)
    cotangents = [like(x) for x in out]
    pulled = pullback([xnp.array(c) for c in cotangents])
    forward = sum(np.sum(np.asarray(c) * np.asarray(t)).real for c, t in zip(cotangents, tangents, strict=True))
    backward = sum(np.sum(np.asarray(g) * directions[i]).real for g, i in zip(pulled, moving, strict=True))
    np.testing.assert_allclose(
        backward, forward, rtol=1e-9, atol=1e-9 * scale * max(1, want.size), err_msg=f"{record.name}{call}"
    )


TRACED = [r for r in FUNCTIONS if r.jit]
SMOOTH = [r for r in FUNCTIONS if r.gradient]

test_as_numpy = over(FUNCTIONS, 10)(as_numpy)
test_compiled = over(TRACED, 2)(compiled)
test_gradient = over(SMOOTH, 3)(gradient)

test_as_numpy_thoroughly = pytest.mark.slow(over(FUNCTIONS, 500)(as_numpy))
test_compiled_thoroughly = pytest.mark.slow(over(TRACED, 50)(compiled))
test_gradient_thoroughly = pytest.mark.slow(over(SMOOTH, 100)(gradient))

WRONG = [pytest.param(w, id=f"{r.name}-{i}") for r in FUNCTIONS for i, w in enumerate(r.errors)]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_calls(wrong):
    """The error is NumPy's, in our words; and nothing of the library's inside is in the traceback's last line."""
    if not wrong.alone:
        with pytest.raises(Exception) as theirs:
            wrong.call(np)
        public = next(t for t in theirs.type.__mro__ if not t.__module__.startswith("numpy._"))
        assert issubclass(wrong.error, public), f"NumPy raises {theirs.type.__name__}: {theirs.value}"
    with pytest.raises(wrong.error, match=wrong.message) as ours:
        wrong.call(xnp)
    assert type(ours.value) is wrong.error or issubclass(type(ours.value), wrong.error)


def test_differences_are_one_line_each():
    """As docs/numpy.md says."""
    for name in public_functions():
        lines = [x.strip() for x in (resolve(xnp, name).__doc__ or "").splitlines() if "Differs from NumPy" in x]
        assert len(lines) < 2 and all(x.startswith("Differs from NumPy: ") and x.endswith(".") for x in lines), name


def public_functions():
    """Names of all functions of `xform.numpy`, `.linalg` and `.fft`."""
    for prefix, module in (("", xnp), ("linalg.", xnp.linalg), ("fft.", xnp.fft)):
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            if callable(value) and not name.startswith("_") and not isinstance(value, type):
                yield prefix + name


def test_each_function_has_a_record():
    """Aliases count as one."""
    with_record = {id(resolve(xnp, r.function)) for r in FUNCTIONS}
    missing = [
        name
        for name in public_functions()
        if id(resolve(xnp, name)) not in with_record and name not in TESTED_ELSEWHERE
    ]
    assert not missing, missing
