"""The kernel: avals, arrays, tracers and their errors, what exceptions leave behind, threads, options."""

import copy
import os
import pickle
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

import xform
from xform import lax
from xform.core import config, dtypes
from xform.core.array import ArrayImpl, get_aval, host_value
from xform.core.avals import ShapedArray, short_dtype_name
from xform.core.config import state
from xform.core.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from xform.core.trace import Primitive, Tracer
from xform.lax.transcendental import sin_p


def array(values, dtype=None):
    """A concrete array of the library."""
    return ArrayImpl(np.array(values, dtype))


def assert_no_traces():
    assert (state.trace, state.level, state.axis_env, state.axis_env_key) == (None, 0, (), ())
    assert state.fast


@pytest.fixture(autouse=True)
def _nothing_left_behind():
    yield
    assert_no_traces()


# ---- Avals -------------------------------------------------------------------------------------------------


def test_avals_are_interned():
    a = ShapedArray((2, 3), np.dtype("float32"))
    assert a is ShapedArray([2, 3], "float32") is ShapedArray((np.int64(2), 3), np.float32, False)
    assert a is not ShapedArray((2, 3), np.dtype("float32"), True)
    assert a is not ShapedArray((3, 2), np.dtype("float32"))
    assert a is pickle.loads(pickle.dumps(a)) is copy.deepcopy(a)
    assert a.update(weak_type=True).strong is a
    assert a.update(shape=(4,), dtype=np.int32) is ShapedArray((4,), np.int32)
    assert (a.ndim, a.size, ShapedArray((), bool).size, ShapedArray((0, 3), bool).size) == (2, 6, 1, 0)
    assert all(type(d) is int for d in ShapedArray((np.int64(2), np.int32(3)), np.float32).shape)


def test_avals_are_interned_across_threads():
    found, gate = [], threading.Barrier(8)

    def make():
        gate.wait()
        found.append([ShapedArray((n, 17, 23), np.dtype("float32")) for n in range(200)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert all(a is b for other in found[1:] for a, b in zip(found[0], other, strict=True))


def test_tangent_avals():
    f32, i32 = ShapedArray((2,), np.float32, True), ShapedArray((2,), np.int32)
    assert f32.to_tangent_aval() is ShapedArray((2,), np.float32)
    assert i32.to_tangent_aval() is ShapedArray((2,), dtypes.float0)
    assert ShapedArray((), ml_dtypes.bfloat16).to_tangent_aval().dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("dtype", "short"),
    [
        ("float32", "f32"),
        ("bfloat16", "bf16"),
        ("uint8", "u8"),
        ("int4", "i4"),
        ("complex128", "c128"),
        ("bool", "bool"),
    ],
)
def test_short_names(dtype, short):
    assert short_dtype_name(dtypes.by_name[dtype]) == short
    assert str(ShapedArray((2, 3), dtypes.by_name[dtype])) == f"{short}[2,3]"
    assert str(ShapedArray((), dtypes.by_name[dtype], True)) == f"~{short}[]"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "~i64[]"),
        (1.0, "~f64[]"),
        (1j, "~c128[]"),
        (True, "bool[]"),
        (np.float32(1), "f32[]"),
        (np.ones((2, 3), ">f4"), "f32[2,3]"),
        (ml_dtypes.bfloat16(1), "bf16[]"),
    ],
    ids=str,
)
def test_avals_of_values(value, expected):
    assert repr(get_aval(value)) == expected
    assert host_value(value).dtype == get_aval(value).dtype


@pytest.mark.parametrize("value", ["text", None, [1, 2], {}, object()], ids=lambda v: type(v).__name__)
def test_values_without_aval(value):
    for function in (get_aval, host_value):
        with pytest.raises(TypeError, match=r"expected an array or a scalar, got .* of type"):
            function(value)


def test_what_has_an_array_interface():
    class Mine:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3, dtype=np.float32)

    assert repr(get_aval(Mine())) == "f32[3]"
    assert lax.neg(Mine()).tolist() == [0.0, -1.0, -2.0]


# ---- Arrays ------------------------------------------------------------------------------------------------


def test_array_is_the_type_of_all_values():
    seen = []

    def f(x):
        seen.append(x)
        return lax.sin(x)

    for transformed in (xform.jit(f), xform.grad(f)):
        transformed(1.0)
    xform.jvp(f, (1.0,), (1.0,))
    xform.vmap(f)(np.ones(2))
    assert len(seen) == 4
    assert all(isinstance(x, xform.Array) and isinstance(x, Tracer) for x in seen)
    assert isinstance(array(1.0), xform.Array)
    with pytest.raises(TypeError, match=r"make arrays with xform\.numpy\.array"):
        xform.Array(1.0)


def test_properties():
    x = array([[1, 2, 3], [4, 5, 6]], np.int16)
    assert (x.shape, x.dtype, x.ndim, x.size, x.itemsize, x.nbytes, len(x)) == (
        (2, 3),
        np.int16,
        2,
        6,
        2,
        12,
        2,
    )
    assert not x.weak_type
    with pytest.raises(TypeError, match="rank 0"):
        len(array(1.0))


def made_by():
    """Arrays from everywhere: host rules, views, compiled programs."""
    yield lax.sin(np.ones(3))
    yield lax.reshape(np.ones((2, 3)), (3, 2))
    yield xform.jit(lax.sin)(np.ones(3))
    yield xform.jit(lambda x: x)(np.ones(3))
    yield xform.grad(lambda x: lax.reduce_sum(x, (0,)))(np.ones(3))
    yield lax.scan(lambda c, x: (c, x), 0.0, np.ones(3))[1]


@pytest.mark.parametrize("i", range(6))
def test_host_view_is_read_only(i):
    x = list(made_by())[i]
    view = np.asarray(x)
    before = view.copy()
    with pytest.raises(ValueError, match="read-only"):
        view[...] = 7
    np.testing.assert_array_equal(np.asarray(x), before)
    again = np.array(x)
    again[...] = 7
    np.testing.assert_array_equal(np.asarray(x), before)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: lax.reshape(a, (6,)),
        lambda a: lax.transpose(a, (1, 0)),
        lambda a: lax.broadcast_in_dim(a, (4, 2, 3), (1, 2)),
        lambda a: lax.convert_element_type(a, np.float64),
        lambda a: lax.slice(a, (0, 0), (1, 3)),
        lambda a: lax.rev(a, (0,)),
        lambda a: xform.jit(lambda x: x)(a),
        lambda a: xform.jit(lambda x: lax.reshape(x, (6,)))(a),
        lambda a: xform.vmap(lambda x: x)(a),
        lambda a: xform.jvp(lambda x: x, (a,), (a,))[1],
        lambda a: xform.vjp(lambda x: x, a)[1](a)[0],
        lambda a: lax.scan(lambda c, x: (c, x), 0.0, a)[1],
        lambda a: lax.scan(lambda c, x: (c, x), a, np.ones(2))[0],
        lambda a: lax.cond(True, lambda x: x, lambda x: lax.neg(x), a),
    ],
    ids=lambda f: str(f.__code__.co_firstlineno),
)
def test_writing_to_an_argument_changes_no_result(function):
    a = np.arange(6.0).reshape(2, 3)
    out = function(a)
    if not isinstance(out, xform.Array):
        return  # handed back as it came
    before = np.array(out)
    a[...] = -1
    np.testing.assert_array_equal(np.asarray(out), before)


def test_writing_to_an_argument_changes_no_derivative():
    a = np.array([1.0, 2.0])
    _, pull = xform.vjp(lambda x: lax.mul(x, x), a)
    _, push = xform.linearize(lambda x: lax.mul(x, x), a)
    f = xform.jit(lambda x: lax.mul(x, a))
    f(a)
    a[...] = 0
    assert pull(np.ones(2))[0].tolist() == [2.0, 4.0]
    assert push(np.ones(2)).tolist() == [2.0, 4.0]


def test_array_conversion_arguments():
    x = array([1.5, 2.5])
    assert np.asarray(x, np.float32).dtype == np.float32
    assert np.array(x, np.float32).flags.writeable
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, np.float32, copy=False)
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    assert np.from_dlpack(x).tolist() == [1.5, 2.5]


def test_python_conversions():
    assert float(array(1.5)) == 1.5
    assert int(array(-7)) == -7
    assert int(array(1.9)) == 1
    assert complex(array(1 + 2j)) == 1 + 2j
    assert [10, 20, 30][array(1)] == 20
    assert bool(array(True)) and not bool(array(0.0)) and bool(array([[2]]))
    assert array([[1, 2], [3, 4]]).item(1, 0) == 3
    assert array([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert array([1, 2], np.int16).tobytes() == b"\x01\x00\x02\x00"
    assert float(array(1.5, ml_dtypes.bfloat16)) == 1.5
    assert type(float(array(1.5, np.float16))) is float


@pytest.mark.parametrize(
    ("convert", "value", "error", "message"),
    [
        (float, [1.0, 2.0], TypeError, r"float\(\) .*shape \(2,\)"),
        (int, [1], TypeError, r"int\(\) .*shape \(1,\)"),
        (complex, [[1j]], TypeError, r"complex\(\) .*shape \(1, 1\)"),
        (bool, [1, 2], ValueError, r"truth value .*shape \(2,\) is ambiguous.*xform\.numpy\.any"),
        (bool, [], ValueError, r"shape \(0,\)"),
        (range(5).__getitem__, 1.0, TypeError, r"only integer arrays of rank 0.*f64\[\]"),
        (range(5).__getitem__, [1], TypeError, r"i64\[1\]"),
        (float, 1j, TypeError, "complex"),
        (hash, 1.0, TypeError, "unhashable"),
    ],
)
def test_conversions_that_fail(convert, value, error, message):
    with pytest.raises(error, match=message):
        convert(array(value))


def test_text():
    assert repr(array([1.0, 2.5])) == "Array([1. , 2.5], dtype=float64)"
    assert repr(array(np.zeros((0, 3), np.int32))) == "Array([], shape=(0, 3), dtype=int32)"
    assert repr(lax.add(1.0, 2.0)) == "Array(3., dtype=float64, weak_type=True)"
    assert repr(array([1.5], ml_dtypes.bfloat16)) == "Array([1.5], dtype=bfloat16)"
    assert str(array([1.0, 2.5])) == "[1.  2.5]"
    assert f"{array(3.14159):.2f}" == "3.14"
    assert f"{array([1, 2])}" == "[1 2]"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int4", "complex64", "bool"])
def test_pickle(dtype):
    x = array([0, 1, 1], dtypes.by_name[dtype])
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is ArrayImpl and y.aval is x.aval
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x))


def test_pickle_of_compiled_and_weak():
    weak = lax.add(1.0, 2.0)
    assert pickle.loads(pickle.dumps(weak)).aval is weak.aval
    assert float(pickle.loads(pickle.dumps(xform.jit(lax.sin)(0.0)))) == 0.0
    assert copy.copy(weak) is weak and copy.deepcopy(weak) is weak


def test_tracers_and_primitives_are_not_pickled():
    with pytest.raises(TypeError, match=r"sin.* can't be pickled"):
        pickle.dumps(sin_p)


def test_delete():
    for x in (array([1.0, 2.0]), xform.jit(lax.sin)(np.ones(2))):
        assert not x.is_deleted()
        x.delete()
        assert x.is_deleted()
        assert x.shape == (2,)
        with pytest.raises(RuntimeError, match=r"f64\[2\] has been deleted"):
            np.asarray(x)
        with pytest.raises(RuntimeError, match=r"f64\[2\] has been deleted"):
            lax.sin(x)


def test_devices_of_arrays():
    first, second = xform.devices()[:2]
    x = xform.numpy.arange(3.0)
    assert x.devices() == xform.jit(lambda x: x * 2)(x).devices() == {first}
    assert xform.device_put(x, second).devices() == {second}
    assert xform.pmap(lambda x: x * 2)(np.ones(2)).devices() == {first, second}


def test_block_until_ready():
    x = xform.jit(lax.sin)(np.ones(2))
    assert x.block_until_ready() is x
    assert x.is_ready()
    assert array(1.0).block_until_ready().is_ready()


# ---- Tracers where a value is needed -----------------------------------------------------------------------

STAGED = {
    "jit": lambda f: xform.jit(f)(np.float64(1.5)),
    "make_jaxpr": lambda f: xform.make_jaxpr(f)(np.float64(1.5)),
    "vmap": lambda f: xform.vmap(f)(np.array([1.5, 2.5])),
    "grad of jit": lambda f: xform.grad(xform.jit(f))(np.float64(1.5)),
    "jit of grad": lambda f: xform.jit(xform.grad(f))(np.float64(1.5)),
    "scan": lambda f: lax.scan(lambda c, x: (f(x), x), 1.5, np.ones(2)),
}


@pytest.mark.parametrize("how", STAGED)
@pytest.mark.parametrize(
    ("convert", "error", "message"),
    [
        (bool, TracerBoolConversionError, r"bool\(\).*f64\[\](.|\n)*xform\.lax\.cond"),
        (int, TracerIntegerConversionError, r"int\(\).*f64\[\](.|\n)*static"),
        (range, TracerIntegerConversionError, r"integer.*f64\[\](.|\n)*static"),
        (float, ConcretizationTypeError, r"float\(\).*f64\[\](.|\n)*x\.astype\(float\)"),
        (complex, ConcretizationTypeError, r"complex\(\).*f64\[\]"),
        (np.asarray, TracerArrayConversionError, r"np\.asarray\(\).*f64\[\](.|\n)*xform\.numpy"),
        (lambda x: x.item(), TracerArrayConversionError, r"item\(\).*f64\[\]"),
        (lambda x: x.tolist(), TracerArrayConversionError, r"tolist\(\).*f64\[\]"),
        (lambda x: x.tobytes(), TracerArrayConversionError, r"tobytes\(\).*f64\[\]"),
        (lambda x: {x: 1}, TypeError, r"unhashable.*f64\[\]"),
    ],
    ids=["bool", "int", "index", "float", "complex", "asarray", "item", "tolist", "tobytes", "hash"],
)
def test_tracers_have_no_value(how, convert, error, message):
    def f(x):
        convert(x)
        return x

    with pytest.raises(error, match=message):
        STAGED[how](f)
    assert_no_traces()


def test_the_message_tells_where_the_tracer_was_made():
    def f(x):
        y = lax.sin(x)  # here
        return float(y)

    line = f.__code__.co_firstlineno + 1
    with pytest.raises(ConcretizationTypeError, match=rf"test_core\.py:{line} \(f\) while tracing f"):
        xform.jit(f)(1.0)
    with pytest.raises(TracerBoolConversionError, match="an argument while tracing <lambda>"):
        xform.jit(lambda x: 1 if x else 2)(1.0)


def test_values_under_eager_derivatives_are_known():
    """Outside of jit and vmap, Python may look at primal values, nested ones too; NumPy may not take them."""
    seen = []

    def f(x):
        seen.append((float(x), int(x), complex(x), bool(x)))
        with pytest.raises(TracerArrayConversionError):
            np.asarray(x)
        with pytest.raises(TypeError, match="integer"):
            range(x)
        return lax.sin(x) if lax.gt(x, 0.0) else lax.neg(x)

    assert float(xform.grad(f)(-2.5)) == -1.0
    assert float(xform.jvp(f, (0.5,), (1.0,))[1]) == np.cos(0.5)
    assert float(xform.grad(xform.grad(f))(0.5)) == -np.sin(0.5)
    assert seen == [(-2.5, -2, -2.5, True), (0.5, 0, 0.5, True), (0.5, 0, 0.5, True)]
    with pytest.raises(ConcretizationTypeError):
        xform.vmap(xform.grad(lambda x: lax.mul(x, float(x))))(np.ones(2))


# ---- Leaks -------------------------------------------------------------------------------------------------


def leak(how):
    """A tracer whose trace has ended."""
    kept = []

    def f(x):
        kept.append(lax.sin(x))  # the place
        return x

    HOW[how](f)
    return kept[0], f.__code__.co_firstlineno + 1


HOW = {
    "jit": lambda f: xform.jit(f)(1.0),
    "vmap": lambda f: xform.vmap(f)(np.ones(3)),
    "jvp": lambda f: xform.jvp(f, (1.0,), (1.0,)),
    "grad": lambda f: xform.grad(f)(1.0),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), 0.0, np.ones(3)),
    "cond": lambda f: xform.jit(lambda p: lax.cond(p, f, f, 1.0))(True),
}


@pytest.mark.parametrize("how", HOW)
def test_leaked_tracers(how):
    tracer, line = leak(how)
    uses = [
        lambda: lax.cos(tracer),
        lambda: lax.add(1.0, tracer),
        lambda: xform.jit(lambda x: lax.add(x, tracer))(1.0),
        lambda: xform.jit(lambda x: tracer)(1.0),
        lambda: xform.grad(lambda x: lax.mul(x, tracer))(1.0),
        lambda: xform.vmap(lambda x: lax.mul(x, tracer))(np.ones(2)),
        lambda: xform.jvp(lambda x: lax.mul(x, tracer), (1.0,), (1.0,)),
        lambda: lax.scan(lambda c, x: (lax.add(c, tracer), x), 0.0, np.ones(3)),
    ]
    for use in uses:
        with pytest.raises(UnexpectedTracerError, match=r"f64\[\] is used after its trace, .*, has ended") as error:
            use()
        if how in ("jit", "scan", "cond"):
            assert f"test_core.py:{line} (f)" in str(error.value)
        assert_no_traces()


def test_tracer_of_a_sibling_trace():
    """A tracer that leaked from an inner into an outer function, whose trace is still going on."""

    def outer(x):
        kept = []

        def inner(y):
            kept.append(lax.sin(y))
            return y

        xform.grad(inner)(x)
        return lax.add(x, kept[0])

    for transform in (lambda f: f(1.0), lambda f: xform.jit(f)(1.0), lambda f: xform.vmap(f)(np.ones(2))):
        with pytest.raises(UnexpectedTracerError, match="after its trace, grad, has ended"):
            transform(outer)


def test_check_tracer_leaks():
    kept = []

    def f(x):
        kept.append(lax.sin(x))
        return lax.cos(kept[0])

    with (
        config.check_tracer_leaks(True),
        pytest.raises(UnexpectedTracerError, match=r"test_core\.py.*outlives"),
    ):
        xform.jit(f)(1.0)
    kept.clear()
    with config.check_tracer_leaks(True):
        assert float(xform.jit(lambda x: lax.cos(lax.sin(x)))(0.0)) == 1.0


# ---- Exceptions leave nothing behind -----------------------------------------------------------------------

NESTS = {
    **HOW,
    "while": lambda f: lax.while_loop(lambda x: lax.lt(x, 3.0), f, 0.0),
    "while condition": lambda f: lax.while_loop(lambda x: f(True), lambda x: x, 0.0),
    "vmap with axis": lambda f: xform.vmap(f, axis_name="i")(np.ones(3)),
    "eval_shape": lambda f: xform.eval_shape(f, 1.0),
    "linearize": lambda f: xform.linearize(f, 1.0),
    "hessian": lambda f: xform.hessian(f)(1.0),
    "jit of vmap of grad": lambda f: xform.jit(xform.vmap(xform.grad(f), axis_name="i"))(np.ones(3)),
    "vmap of jit": lambda f: xform.vmap(xform.jit(f))(np.ones(3)),
    "grad of jit of scan": lambda f: xform.grad(
        xform.jit(lambda y: lax.scan(lambda c, x: (f(c), x), y, np.ones(3))[0])
    )(1.0),
    "axis_env": lambda f: xform.make_jaxpr(f, axis_env=[("i", 2)])(1.0),
    "no jit": lambda f: [s.__enter__() for s in ()] or xform.jit(f)(1.0),
}


@pytest.mark.parametrize("how", NESTS)
@pytest.mark.parametrize("exception", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_exceptions_leave_no_state_behind(how, exception):
    def f(x):
        raise exception

    before = state.trace_context, state.run_context
    with pytest.raises(exception):
        NESTS[how](f)
    assert_no_traces()
    assert (state.trace_context, state.run_context) == before
    assert float(xform.jit(xform.grad(lax.sin))(0.0)) == 1.0  # and all goes on


def test_exception_inside_a_handled_trace():
    """A function that handles the error of an inner transformation goes on in its own trace."""

    def broken(y):
        raise ZeroDivisionError

    def f(x):
        for transform in (xform.grad(broken), xform.jit(broken), xform.vmap(broken)):
            with pytest.raises((ZeroDivisionError, ValueError)):
                transform(x)
        return lax.sin(x)

    for transformed in (f, xform.jit(f), xform.grad(f)):
        assert float(transformed(0.0)) in (0.0, 1.0)
    assert xform.vmap(f)(np.zeros(2)).tolist() == [0.0, 0.0]


# ---- Primitives --------------------------------------------------------------------------------------------


def test_a_missing_rule_is_named():
    p = Primitive("mine")
    p.abstract_eval = lambda x: x
    for apply, rule in [
        (lambda: p.bind(1.0), "evaluation with NumPy"),
        (lambda: xform.jvp(p.bind, (1.0,), (1.0,)), r"forward differentiation \(jvp\)"),
        (lambda: xform.grad(p.bind)(1.0), r"forward differentiation \(jvp\)"),
        (lambda: xform.vmap(p.bind)(np.ones(2)), r"batching \(vmap\)"),
        (lambda: xform.jit(p.bind)(1.0), "lowering to XLA"),
    ]:
        with pytest.raises(NotImplementedError, match=rf"{rule} of primitive 'mine' is not defined"):
            apply()
        assert_no_traces()
    p.jvp = lambda primals, tangents: (lax.sin(primals[0]), p.bind(tangents[0]))
    with pytest.raises(NotImplementedError, match=r"transposition \(reverse differentiation\) of primitive 'mine'"):
        xform.grad(p.bind)(1.0)


def test_no_warnings_escape_from_host_rules():
    """pytest turns warnings into errors; NumPy's are silenced inside of host rules, and only there."""
    assert float(lax.div(1.0, 0.0)) == np.inf
    assert np.isnan(float(lax.log(np.float64(-1.0))))
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        np.float64(1.0) / np.float64(0.0)


def test_unbound_axis_names_are_listed():
    from xform.core.trace import axis_frame

    with pytest.raises(NameError, match=r"unbound axis name: 'i' \(axes in scope: none\)"):
        axis_frame("i")

    def f(x):
        with pytest.raises(NameError, match=r"'j' \(axes in scope: 'i'\)"):
            axis_frame("j")
        return x

    xform.vmap(f, axis_name="i")(np.ones(2))


# ---- Threads -----------------------------------------------------------------------------------------------


def test_threads_trace_independently():
    """Eight threads, each in the middle of its own traces at the same time."""
    n = 8
    gate, errors, results = threading.Barrier(n), [], {}

    def work(k):
        def f(x):
            gate.wait()
            level = state.level
            y = lax.mul(lax.sin(x), float(k))
            gate.wait()
            assert state.level == level
            return y

        try:
            gate.wait()
            transformed = [xform.jit(f), xform.grad(f), xform.jit(xform.grad(f)), xform.grad(xform.jit(f))][k % 4]
            results[k] = float(transformed(0.5))
            assert_no_traces()
        except BaseException as error:
            errors.append(error)
            gate.abort()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors, errors
    for k in range(n):
        expected = k * (np.sin(0.5) if k % 4 == 0 else np.cos(0.5))
        assert results[k] == pytest.approx(expected, rel=1e-14)


def test_threads_share_a_jitted_function():
    f = xform.jit(lambda x: lax.add(lax.sin(x), x))
    results, gate = [], threading.Barrier(8)

    def work():
        gate.wait()
        results.append([float(f(float(i))) for i in range(20)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    expected = [np.sin(float(i)) + i for i in range(20)]
    assert len(results) == 8
    for r in results:
        np.testing.assert_allclose(r, expected, rtol=1e-14)


def test_settings_of_a_with_block_belong_to_its_thread():
    inside, go_on = threading.Event(), threading.Event()
    seen = {}

    def other():
        with xform.enable_x64(False):
            seen["other"] = lax.add(1.0, 1.0).dtype
            inside.set()
            go_on.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    seen["here"] = lax.add(1.0, 1.0).dtype
    go_on.set()
    thread.join()
    assert seen == {"other": np.float32, "here": np.float64}


def test_update_holds_for_all_threads():
    seen = {}
    xform.config.update("jax_enable_x64", False)
    try:
        thread = threading.Thread(target=lambda: seen.setdefault("dtype", lax.add(1.0, 1.0).dtype))
        thread.start()
        thread.join()
        assert seen["dtype"] == lax.add(1.0, 1.0).dtype == np.float32
    finally:
        xform.config.update("enable_x64", True)
    assert lax.add(1.0, 1.0).dtype == np.float64


# ---- Configuration -----------------------------------------------------------------------------------------


def test_32_bits():
    f = xform.jit(lambda x: lax.add(x, 1))
    big = np.arange(3.0)
    assert f(big).dtype == np.float64
    with xform.enable_x64(False):
        assert f(big).dtype == np.float32  # traced anew, not the 64-bit program
        assert f(1).dtype == np.int32
        assert lax.sin(big).dtype == np.float32
        assert xform.grad(lax.sin)(1.0).dtype == np.float32
        assert xform.vmap(lax.sin)(big).dtype == np.float32
        assert xform.make_jaxpr(lax.sin)(1.0).out_avals[0].dtype == np.float32
        with xform.enable_x64(True):
            assert f(big).dtype == np.float64
    assert f(big).dtype == np.float64
    assert f._cache and state.trace_context == type(state).trace_context


def test_settings_nest_and_survive_exceptions():
    with (
        pytest.raises(ZeroDivisionError),
        xform.debug_nans(True),
        xform.debug_nans(False),
        xform.debug_nans(True),
    ):
        raise ZeroDivisionError
    assert not xform.config.debug_nans
    setting = xform.debug_nans(True)
    with setting, setting:
        assert xform.config.debug_nans and not state.fast
    assert not xform.config.debug_nans


def test_unknown_and_bad_options():
    with pytest.raises(AttributeError, match=r"no option 'nonsense'; it has .*enable_x64"):
        xform.config.update("nonsense", 1)
    with pytest.raises(AttributeError, match="no option 'nonsense'"):
        _ = xform.config.nonsense
    with pytest.raises(ValueError, match="'maybe'"):
        xform.config.update("enable_x64", "maybe")
    with pytest.raises(ValueError, match=r"expected one of .*'numpy', 'xla'"):
        xform.config.update("eager", "gpu")
    assert "enable_x64" in dir(xform.config) and xform.config.read("jax_enable_x64") is True


def test_debug_nans():
    def f(x):
        return lax.log(x)

    with xform.debug_nans(True):
        for g in (f, xform.jit(f), xform.vmap(f), xform.jit(xform.vmap(f))):
            with pytest.raises(FloatingPointError, match="NaN in the result of 'log'"):
                g(np.array([-1.0, 1.0]))
            assert np.asarray(g(np.array([1.0]))).tolist() == [0.0]
    with config.debug_infs(True), pytest.raises(FloatingPointError, match="infinity in the result of 'log'"):
        f(0.0)
    assert np.isnan(float(f(-1.0)))


def test_debug_nans_finds_them_in_functions_compiled_before():
    f = xform.jit(lax.log)
    assert np.isnan(float(f(-1.0)))
    assert np.isnan(float(f(-1.0)))
    with xform.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        f(-1.0)


def test_eager_on_xla():
    from xform.backends import xla

    xla.clear_cache()
    with config.eager("xla"):
        before = xla.compile_count
        x = lax.sin(np.array([0.5, 0.25]))
        assert x._host is None and xla.compile_count == before + 1
        y = lax.sin(np.array([0.5, 0.75]))
        assert xla.compile_count == before + 1
        np.testing.assert_allclose(np.asarray(y), np.sin([0.5, 0.75]), rtol=1e-15)
        assert float(xform.grad(lax.sin)(0.0)) == 1.0


def python(code, **environment):
    """Run Python in a process of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_options_from_the_environment():
    code = "import xform; from xform import lax; print(lax.add(1.0, 1.0).dtype, xform.config.eager)"
    assert python(code, XFORM_ENABLE_X64="0") == "float32 numpy"
    assert python(code, XFORM_ENABLE_X64="1", XFORM_EAGER="xla") == "float64 xla"
    code = "import xform; from xform import lax; print(lax.sin(0.0)._host is None)"
    assert python(code, XFORM_EAGER="xla") == "True"
