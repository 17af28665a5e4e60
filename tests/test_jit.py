"""`jit`: what is traced and compiled when, static and donated arguments, closures, nesting, stages, errors."""

import functools
import gc
import os
import subprocess
import sys
import weakref

import ml_dtypes
import numpy as np
import pytest

import xform
from xform import lax
from xform.backends import xla
from xform.core import dtypes
from xform.core.array import ArrayImpl
from xform.core.config import default_device, enable_checks, log_compiles, small_programs


@pytest.fixture(autouse=True)
def _all_programs_on_xla():
    """Without this, NumPy would run the small programs of these tests."""
    with small_programs("xla"), enable_checks(True):
        yield


class Counter:
    """How often a function is traced and XLA compiles."""

    def __init__(self, function):
        self.function, self.traces = function, 0
        xla.clear_cache()
        self.start = xla.compile_count

    def __call__(self, *args, **kwargs):
        self.traces += 1
        return self.function(*args, **kwargs)

    @property
    def compiles(self):
        return xla.compile_count - self.start


def array(values, dtype=None):
    return ArrayImpl(np.array(values, dtype))


# ---- Values and structure ----------------------------------------------------------------------------------


def test_pytrees_in_and_out():
    @xform.jit
    def f(pair, scale, *, table):
        a, (b, nothing) = pair
        return {"sum": lax.add(a, b), "more": [lax.mul(table["x"], scale), nothing, ()]}

    out = f((1.0, (np.float64(2.0), None)), 3.0, table={"x": np.arange(3.0)})
    assert float(out["sum"]) == 3.0
    assert out["more"][0].tolist() == [0.0, 3.0, 6.0]
    assert out["more"][1:] == [None, ()]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float32", "complex64", "complex128"]
)
def test_dtypes_and_shapes_pass_through(dtype):
    for shape in ((), (0,), (3,), (2, 0, 3), (1, 2, 1)):
        x = np.zeros(shape, dtypes.by_name[dtype])
        out = xform.jit(lambda x: (x, lax.reshape(x, (x.size,))))(x)
        assert [(o.shape, o.dtype) for o in out] == [(shape, x.dtype), ((x.size,), x.dtype)]
        assert [np.asarray(o).dtype for o in out] == [x.dtype] * 2


def test_what_python_returns_becomes_arrays():
    out = xform.jit(lambda: (1, 2.5, True, np.float32(3), np.arange(2)))()
    assert [o.dtype for o in out] == [np.int64, np.float64, np.bool_, np.float32, np.int64]
    assert [o.weak_type for o in out] == [True, True, False, False, False]
    assert all(isinstance(o, xform.Array) for o in out)


def test_no_arguments_no_results():
    assert xform.jit(lambda: ())() == ()
    assert xform.jit(lambda x: None)(1.0) is None


def test_weak_types_come_back_weak():
    f = xform.jit(lambda x: lax.mul(x, 2.0))
    assert f(1.0).weak_type and not f(np.float64(1.0)).weak_type
    assert f(f(1.0)).weak_type
    counter = Counter(lambda x: lax.mul(x, x))
    g = xform.jit(counter)
    g(1.0), g(2.0), g(np.float64(1)), g(np.float64(2))
    assert counter.traces == 2  # weak and strong are different programs


def test_same_results_as_plain_python():
    def f(x):
        y = lax.sin(x)
        return lax.reduce_sum(lax.mul(y, y), (0,))

    x = np.linspace(0, 1, 101)
    assert float(xform.jit(f)(x)) == pytest.approx(float(f(x)), rel=1e-15)


# ---- Caching -----------------------------------------------------------------------------------------------


def test_traces_once_per_signature():
    counter = Counter(lambda x, y: lax.add(x, y))
    f = xform.jit(counter)
    for _ in range(3):
        f(np.ones(3), np.ones(3))
        f(array([1.0, 2, 3]), np.zeros(3))
    assert (counter.traces, counter.compiles) == (1, 1)
    f(np.ones(4), np.ones(4))
    f(np.ones(3, np.float32), np.ones(3, np.float32))
    assert (counter.traces, counter.compiles) == (3, 3)
    f(np.ones(3), np.ones(3))
    assert (counter.traces, counter.compiles) == (3, 3)
    f(np.ones(3), y=np.ones(3))
    assert counter.traces == 4  # another call structure


def test_structure_is_part_of_the_signature():
    counter = Counter(lambda tree: lax.add(*tree.values()) if isinstance(tree, dict) else lax.add(*tree))
    f = xform.jit(counter)
    f((1.0, 2.0)), f([1.0, 2.0]), f({"a": 1.0, "b": 2.0}), f({"b": 2.0, "a": 1.0})
    assert counter.traces == 3


def test_a_new_lambda_with_the_same_program_compiles_nothing():
    counter = Counter(None)
    outs = [float(xform.jit(lambda x: lax.add(lax.sin(x), 1.0))(float(i))) for i in range(5)]
    assert outs == pytest.approx(np.sin(np.arange(5.0)) + 1)
    assert counter.compiles == 1


def test_equal_closures_compile_once_and_different_ones_again():
    counter = Counter(None)

    def scaled(k):
        return xform.jit(lambda x: lax.mul(x, k))

    assert [float(scaled(k)(2.0)) for k in (3.0, 3.0, 4.0)] == [6.0, 6.0, 8.0]
    assert counter.compiles == 2


def test_large_closures_are_arguments_of_one_program():
    counter = Counter(None)

    def added(table):
        return xform.jit(lambda x: lax.add(x, table))

    for i in range(3):
        table = np.full(1000, float(i))
        np.testing.assert_array_equal(np.asarray(added(table)(np.ones(1000))), table + 1)
    assert counter.compiles == 1


def test_derivatives_and_batches_of_a_jitted_function_are_cached():
    counter = Counter(lambda x: lax.mul(lax.sin(x), x))
    f = xform.jit(counter)
    g = xform.grad(f)
    for _ in range(3):
        g(1.0)
    assert counter.traces == 1
    after_grad = counter.compiles
    for _ in range(3):
        xform.grad(f)(2.0)
        xform.vmap(f)(np.ones(3))
        xform.jvp(f, (1.0,), (1.0,))
    assert counter.traces == 2  # once for the scalar, once for what vmap maps over, which isn't weak
    once = counter.compiles
    xform.grad(f)(3.0), xform.vmap(f)(np.ones(3)), xform.jvp(f, (1.0,), (1.0,))
    assert counter.compiles == once > after_grad > 0


def test_decorating_twice_makes_separate_functions_of_one_program():
    counter = Counter(lambda x: lax.exp(x))
    xform.jit(counter)(1.0), xform.jit(counter)(1.0)
    assert (counter.traces, counter.compiles) == (2, 1)


def test_clear_cache():
    counter = Counter(lambda x: lax.exp(x))
    f = xform.jit(counter)
    f(1.0)
    f.clear_cache()
    f(1.0)
    assert counter.traces == 2


def test_a_change_of_configuration_traces_anew():
    counter = Counter(lambda x: lax.exp(x))
    f = xform.jit(counter)
    assert f(1.0).dtype == np.float64
    with xform.enable_x64(False):
        assert f(1.0).dtype == np.float32
        f(2.0)
    assert f(1.0).dtype == np.float64
    assert counter.traces == 2


def test_python_effects_happen_while_tracing():
    seen = []

    @xform.jit
    def f(x):
        seen.append(x)
        return lax.neg(x)

    f(1.0), f(2.0)
    assert len(seen) == 1 and isinstance(seen[0], xform.core.trace.Tracer)


def test_the_function_does_not_keep_arguments_alive():
    f = xform.jit(lambda x: lax.sin(x))
    x = array(np.ones(100))
    ref = weakref.ref(x)
    f(x)
    del x
    gc.collect()
    assert ref() is None


def test_log_compiles(caplog):
    with log_compiles(True):
        xform.jit(lambda x: lax.sin(lax.exp(lax.exp(x))))(1.0)
    assert "compiled <lambda> in" in caplog.text


# ---- Static arguments --------------------------------------------------------------------------------------


def test_static_argnums():
    counter = Counter(lambda x, n, y: lax.add(functools.reduce(lambda a, _: lax.mul(a, x), range(n), 1.0), y))
    f = xform.jit(counter, static_argnums=1)
    assert [float(f(2.0, n, 1.0)) for n in (3, 4, 3, 4)] == [9.0, 17.0, 9.0, 17.0]
    assert counter.traces == 2
    g = xform.jit(counter.function, static_argnums=(-2,))
    assert float(g(2.0, 3, 1.0)) == 9.0


def test_static_argnames_by_position_and_by_name():
    def f(x, mode, scale=1.0):
        return lax.mul(lax.sin(x) if mode == "sin" else lax.cos(x), scale)

    g = xform.jit(f, static_argnames="mode")
    assert float(g(0.0, "cos")) == float(g(0.0, mode="cos")) == float(g(x=0.0, mode="cos")) == 1.0
    assert float(g(0.0, "sin", scale=2.0)) == 0.0
    assert float(g(0.0, mode="cos", scale=3.0)) == 3.0
    h = xform.jit(f, static_argnums=1)
    assert float(h(0.0, mode="cos")) == 1.0  # the name follows from the number


def test_static_arguments_with_star_args():
    f = xform.jit(
        lambda x, *rest, **kw: lax.mul(x, float(len(rest) + len(kw))), static_argnums=(1,), static_argnames=("k",)
    )
    assert float(f(2.0, "a", 1.0, k="b")) == 6.0


def test_static_arguments_of_all_hashable_kinds():
    f = xform.jit(lambda x, s: (x, np.float64(0) if s is None else np.float64(1)), static_argnums=1)
    assert [float(f(0.0, s)[1]) for s in (None, "text", (1, 2), np.sin, frozenset([1]), np.dtype("f4"))] == [
        0,
        1,
        1,
        1,
        1,
        1,
    ]


def test_equal_but_different_static_values():
    counter = Counter(lambda x, s: s)
    g = xform.jit(counter, static_argnums=1)
    assert [g(0.0, s).dtype for s in (1, 1.0, True)] == [np.int64, np.float64, np.bool_]


@pytest.mark.parametrize(
    "value", [[1, 2], {"a": 1}, np.ones(2), array([1.0])], ids=["list", "dict", "ndarray", "Array"]
)
def test_static_arguments_must_be_hashable(value):
    f = xform.jit(lambda x, s: x, static_argnums=1)
    with pytest.raises(ValueError, match=r"jit of <lambda>: static arguments must be hashable: .*unhashable"):
        f(1.0, value)


def test_partial_and_decorator_forms():
    @functools.partial(xform.jit, static_argnames=["n"])
    def f(x, n):
        """Doc."""
        return lax.mul(x, float(n))

    @xform.jit(static_argnums=(1,))
    def g(x, n):
        return lax.mul(x, float(n))

    assert float(f(2.0, n=3)) == float(g(2.0, 3)) == 6.0
    assert (f.__name__, f.__doc__) == ("f", "Doc.")
    assert float(xform.jit(functools.partial(f, n=2))(3.0)) == 6.0


def test_methods():
    class Model:
        scale = 3.0

        @functools.partial(xform.jit, static_argnums=0)
        def apply(self, x):
            return lax.mul(x, self.scale)

    model = Model()
    assert float(model.apply(2.0)) == 6.0
    assert float(xform.grad(model.apply)(2.0)) == 3.0


# ---- Closures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 16, 17, 1000])
def test_closed_over_arrays(n):
    for table in (np.arange(float(n)), array(np.arange(float(n))), np.arange(n, dtype=np.float32)):
        f = xform.jit(lambda x, table=table: lax.mul(lax.convert_element_type(table, np.float64), x))
        for x in (2.0, 3.0):
            np.testing.assert_array_equal(np.asarray(f(np.float64(x))), np.arange(n) * x)
        tangent = xform.jvp(f, (np.float64(1),), (np.float64(1),))[1]
        np.testing.assert_array_equal(np.asarray(tangent), np.arange(n))


def test_closed_over_special_values():
    table = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308])
    small = np.array([1e-45, 3.4e38, -0.0], np.float32)
    half = np.array([1.5, np.inf, 6e-8], np.float16)
    brain = np.array([1.5, np.nan, 3e38], ml_dtypes.bfloat16)
    ints = np.array([-(2**63), 2**63 - 1])
    unsigned = np.array([2**64 - 1], np.uint64)
    flags = np.array([True, False])
    z = np.array([complex(np.nan, -0.0), complex(-np.inf, 1)])
    empty = np.zeros((0, 2))
    values = [
        table,
        small,
        half,
        brain,
        ints,
        unsigned,
        flags,
        z,
        empty,
        np.array(2.5),
        np.float32(0.1),
        np.bool_(True),
    ]
    outs = xform.jit(lambda: [lax.reshape(v, np.shape(v)) for v in values])()
    for v, o in zip(values, outs, strict=True):
        assert np.asarray(o).tobytes() == np.asarray(v).tobytes()
        assert o.dtype == v.dtype


def test_closed_over_tracers_are_never_reused():
    """The inner function is called for other tracers each time; a cached program would have the wrong constants."""
    inner_traces = []

    def outer(x):
        @xform.jit
        def inner(y):
            inner_traces.append(1)
            return lax.mul(y, x)

        return lax.add(inner(2.0), inner(3.0))

    assert float(outer(1.0)) == 5.0
    assert float(xform.grad(outer)(1.0)) == 5.0
    assert float(xform.jit(outer)(2.0)) == 10.0
    assert xform.vmap(outer)(np.array([1.0, 2.0])).tolist() == [5.0, 10.0]
    assert float(xform.grad(xform.jit(outer))(1.0)) == 5.0
    assert float(xform.jit(xform.grad(outer))(1.0)) == 5.0


def test_a_jitted_function_that_reads_an_outer_tracer_through_a_cell():
    cell = {}

    @xform.jit
    def inner(y):
        return lax.mul(y, cell["x"])

    def outer(x):
        cell["x"] = x
        return inner(3.0)

    assert [float(xform.grad(outer)(x)) for x in (1.0, 2.0)] == [3.0, 3.0]
    assert [float(xform.jit(outer)(x)) for x in (1.0, 2.0)] == [3.0, 6.0]
    assert xform.vmap(outer)(np.array([1.0, 2.0])).tolist() == [3.0, 6.0]


# ---- Nesting -----------------------------------------------------------------------------------------------


def test_nested_jit_is_one_function_shared_by_its_calls():
    inner = xform.jit(lambda x: lax.sin(lax.mul(x, 2.0)))

    @xform.jit
    def outer(x):
        return lax.add(inner(x), lax.add(inner(lax.neg(x)), inner(lax.mul(x, 3.0))))

    text = outer.lower(np.float64(1)).as_text()
    assert text.count("func.func private") == 1
    assert text.count("func.call") == 3
    x = 0.7
    assert float(outer(np.float64(x))) == pytest.approx(np.sin(6 * x), rel=1e-14)


def test_deep_nesting():
    f = lax.sin
    for _ in range(20):
        f = xform.jit(lambda x, f=f: lax.mul(f(x), 1.0))
    assert float(f(0.5)) == pytest.approx(np.sin(0.5))
    assert float(xform.grad(f)(0.5)) == pytest.approx(np.cos(0.5))


def test_static_arguments_of_an_inner_function():
    inner = xform.jit(lambda x, n: lax.mul(x, float(n)), static_argnums=1)
    assert float(xform.jit(lambda x: lax.add(inner(x, 2), inner(x, 3)))(1.0)) == 5.0


def test_recursion_through_python():
    @functools.partial(xform.jit, static_argnums=1)
    def power(x, n):
        return lax.mul(x, power(x, n - 1)) if n else 1.0

    assert float(power(2.0, 5)) == 32.0


# ---- Where it runs -----------------------------------------------------------------------------------------


def test_disable_jit():
    seen = []

    def f(x):
        seen.append(type(x))
        return lax.sin(x)

    g = xform.jit(f)
    g(1.0)
    with xform.disable_jit():
        g(1.0)
        assert seen[-1] in (float, ArrayImpl)
        g(array(1.0))
        assert seen[-1] is ArrayImpl
        with pytest.raises(ZeroDivisionError):
            xform.jit(lambda x: 1 // 0)(1.0)
    n = len(seen)
    g(1.0)
    assert len(seen) == n


def test_the_numpy_backend_compiles_nothing():
    counter = Counter(None)
    f = xform.jit(lambda x: lax.fori_loop(0, 3, lambda i, y: lax.sin(y), x), backend="numpy")
    assert float(f(1.0)) == pytest.approx(np.sin(np.sin(np.sin(1.0))))
    assert float(xform.grad(f)(0.0)) == 1.0 and counter.compiles >= 0
    f(1.0)
    before = counter.compiles
    f(2.0)
    assert counter.compiles == before


def test_small_programs_may_run_on_the_host():
    with small_programs("host"):
        counter = Counter(lambda x: lax.mul(lax.sin(x), x))
        f = xform.jit(counter)
        for x in (1.0, 2.0, 3.0):
            assert float(f(x)) == pytest.approx(np.sin(x) * x, rel=1e-14)
        assert (counter.traces, counter.compiles) == (1, 0)
        big = np.linspace(0, 1, 1_000_000)
        np.testing.assert_allclose(np.asarray(f(big)), np.sin(big) * big, rtol=1e-14)
        assert (counter.traces, counter.compiles) == (2, 1)


def test_other_devices():
    devices = xform.devices("cpu")
    assert len(devices) == 8
    f = xform.jit(lambda x: lax.mul(x, 2.0))
    x = xform.device_put(np.arange(3.0), devices[3])
    y = f(x)
    assert y._device is devices[3]
    assert y.tolist() == [0.0, 2.0, 4.0]
    assert f(np.arange(3.0))._device is None
    with default_device(devices[2]):
        assert xla.device_of(f(np.arange(3.0))._device_buffer()) is devices[2]
    other = xform.device_put(np.arange(3.0), devices[4])
    with pytest.raises(ValueError, match="different devices"):
        xform.jit(lax.add)(x, other)
    g = xform.jit(lambda x: lax.mul(x, 2.0), device=devices[5])
    assert xla.device_of(g(np.arange(3.0))._device_buffer()) is devices[5]


def test_compiler_options():
    f = xform.jit(lambda x: lax.exp(lax.sin(x)), compiler_options={"xla_backend_optimization_level": 0})
    assert float(f(0.0)) == 1.0
    with pytest.raises(Exception, match="nonsense"):
        xform.jit(lambda x: lax.exp(x), compiler_options={"nonsense": 1})(1.0)


# ---- Donation ----------------------------------------------------------------------------------------------


def test_donated_arguments_are_deleted():
    f = xform.jit(lambda x, y: lax.add(x, y), donate_argnums=0)
    x, y = array(np.ones(1000)), array(np.ones(1000))
    out = f(x, y)
    assert np.asarray(out).tolist() == [2.0] * 1000
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(RuntimeError, match=r"f64\[1000\] has been deleted \(donated"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match="deleted"):
        f(x, y)


def test_donation_by_name_in_pytrees_and_loops():
    @functools.partial(xform.jit, donate_argnames=("state",))
    def step(state, x):
        return {"v": lax.add(state["v"], x)}

    state = {"v": array(np.zeros(100))}
    for _ in range(5):
        old, state = state, step(state=state, x=array(np.ones(100)))
        assert old["v"].is_deleted()
    assert np.asarray(state["v"]).tolist() == [5.0] * 100


def test_donating_an_ndarray_does_not_touch_it():
    f = xform.jit(lambda x: lax.mul(x, 2.0), donate_argnums=0)
    x = np.ones(4096)
    for _ in range(3):
        assert np.asarray(f(x)).tolist() == [2.0] * 4096
    assert x.tolist() == [1.0] * 4096


def test_a_view_taken_before_donation_stays_valid():
    f = xform.jit(lambda x: lax.mul(x, 2.0), donate_argnums=0)
    x = xform.jit(lambda: lax.full((4096,), 1.0))()
    view = np.asarray(x)
    out = f(x)
    assert np.asarray(out).tolist() == [2.0] * 4096
    assert view.tolist() == [1.0] * 4096


def test_an_argument_donated_twice():
    f = xform.jit(lambda x, y: (lax.add(x, y), lax.mul(x, y)), donate_argnums=(0, 1))
    x = array(np.full(100, 3.0))
    with pytest.raises(xla.XlaError, match="donate the same buffer twice"):
        f(x, x)


# ---- Stages ------------------------------------------------------------------------------------------------


def test_stages():
    def f(x, n, *, y):
        return {"out": lax.add(lax.mul(x, float(n)), y)}

    jitted = xform.jit(f, static_argnums=1)
    traced = jitted.trace(np.ones(3), 2, y=np.ones(3))
    assert traced.fun_name == "f" and [e.primitive.name for e in traced.jaxpr.eqns] == ["mul", "add"]
    assert traced.out_info == {"out": xform.ShapeDtypeStruct((3,), np.float64)}
    lowered = traced.lower()
    assert "stablehlo.multiply" in lowered.as_text() and "@jit_f" in lowered.as_text()
    compiled = lowered.compile()
    assert compiled(np.arange(3.0), 2, y=np.ones(3))["out"].tolist() == [1.0, 3.0, 5.0]
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] >= 6
    assert compiled.memory_analysis()
    assert compiled.out_info == traced.out_info
    assert jitted.eval_shape(np.ones(3), 2, y=np.ones(3)) == traced.out_info


def test_stages_take_shapes():
    s = xform.ShapeDtypeStruct((3,), np.float32)
    compiled = xform.jit(lambda x: lax.sin(x)).lower(s).compile()
    assert compiled(np.zeros(3, np.float32)).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(TypeError, match=r"<lambda> was compiled for an argument of f32\[3\], called with f64\[3\]"):
        compiled(np.zeros(3))
    with pytest.raises(TypeError, match=r"f32\[3\], called with f32\[4\]"):
        compiled(np.zeros(4, np.float32))
    with pytest.raises(TypeError, match="structure"):
        compiled((np.zeros(3, np.float32),))


def test_stages_of_closures_and_donation():
    table = np.arange(100.0)
    compiled = xform.jit(lambda x: lax.add(x, table), donate_argnums=0).lower(np.ones(100)).compile()
    x = array(np.ones(100))
    assert np.asarray(compiled(x)).tolist() == (table + 1).tolist()
    assert x.is_deleted()


def test_lowered_text():
    lowered = xform.jit(lambda x: lax.sin(x)).lower(1.0)
    assert "test_jit.py" not in lowered.as_text()
    assert "test_jit.py" in lowered.as_text(debug_info=True)
    assert lowered.as_text("stablehlo") == lowered.as_text()
    with pytest.raises(ValueError, match="'stablehlo', got 'hlo'"):
        lowered.as_text("hlo")


# ---- Errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f: f("text"), TypeError, r"jit of f: argument 0 is 'text' of type str.*static_argnums"),
        (lambda f: f(1.0, object), TypeError, r"jit of f: argument 1 is <class 'object'>"),
        (lambda f: f(1.0, y={"a": [1.0, "bad"]}), TypeError, r"jit of f: argument 'y'\['a'\]\[1\] is 'bad'"),
        (lambda f: f(np.array(["a"])), TypeError, r"jit of f: argument 0.*<U1"),
        (lambda f: f(np.array([None])), TypeError, r"jit of f: argument 0.*object"),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    def f(x, y=None):
        return x

    with pytest.raises(error, match=message):
        call(xform.jit(f))


def test_bad_results_are_named():
    def f(x):
        return {"ok": x, "bad": "text"}

    with pytest.raises(TypeError, match=r"jit of f: the result\['bad'\] is 'text' of type str"):
        xform.jit(f)(1.0)


def test_bad_declarations():
    def f(x, y):
        return x

    with pytest.raises(TypeError, match="jit: expected a function, got 3 of type int"):
        xform.jit(3)
    with pytest.raises(ValueError, match=r"jit of f: argument number 2 is out of range for \(x, y\)"):
        xform.jit(f, static_argnums=2)
    with pytest.raises(ValueError, match=r"jit of f: there is no argument 'z' in \(x, y\)"):
        xform.jit(f, static_argnames="z")
    with pytest.raises(ValueError, match="there is no argument 'z'"):
        xform.jit(f, donate_argnames=("z",))


def test_wrong_number_of_arguments_is_pythons_own_error():
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'y'"):
        xform.jit(lambda x, y: x)(1.0)


def test_an_error_while_tracing_is_not_cached():
    fail = [True]

    def f(x):
        if fail:
            raise ZeroDivisionError
        return lax.sin(x)

    g = xform.jit(f)
    with pytest.raises(ZeroDivisionError):
        g(0.0)
    fail.clear()
    assert float(g(0.0)) == 0.0


def test_repr():
    def f(x):
        return x

    assert "jit of" in repr(xform.jit(f)) and "f" in repr(xform.jit(f))
    assert xform.jit(f).__wrapped__ is f


# ---- Without jax -------------------------------------------------------------------------------------------

WITHOUT_JAX = """
import sys

sys.modules["jax"] = sys.modules["jaxlib"] = None  # as if not installed
import numpy as np
import xform
from xform import lax

x = np.arange(3.0)
def f(x):
    return lax.reduce_sum(lax.mul(lax.sin(x), x), (0,))
print(float(f(x)))
print(xform.grad(f)(x).tolist())
print(xform.jvp(f, (x,), (x,))[1].shape, xform.vmap(lax.sin)(x).shape)
print(xform.make_jaxpr(xform.grad(f))(x).out_avals)
print(lax.scan(lambda c, y: (lax.add(c, y), c), 0.0, x)[1].tolist())
print(float(xform.jit(f, backend="numpy")(x)))
with xform.disable_jit():
    print(float(xform.jit(f)(x)))
for g in (xform.jit(f), xform.jit(lambda x: lax.sin(lax.mul(x, 2.0))), xform.grad(xform.jit(f))):
    try:
        print(g(x))
    except ImportError as error:
        print("ImportError:", error)
"""


def test_without_jax_all_but_jit_works():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_JAX],
        env={k: v for k, v in os.environ.items() if k != "XLA_FLAGS"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    x = np.arange(3.0)
    value = float((np.sin(x) * x).sum())
    assert float(lines[0]) == pytest.approx(value)
    np.testing.assert_allclose(eval(lines[1]), np.cos(x) * x + np.sin(x))
    assert lines[2:5] == ["() (3,)", "[f64[3]]", "[0.0, 0.0, 1.0]"]
    assert [float(v) for v in lines[5:7]] == pytest.approx([value, value])
    for line in lines[7:]:
        assert line.startswith("ImportError:") and "pip install" in line and "jax" in line, line
    assert len(lines) == 10


def test_a_static_argument_counted_from_the_end_may_be_left_out():
    f = xform.jit(lambda x, mode="twice": 2 * x if mode == "twice" else x, static_argnums=-1)
    assert float(f(3.0)) == 6 and float(f(3.0, "once")) == 3 and float(xform.grad(f)(3.0)) == 2
