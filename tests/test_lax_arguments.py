"""Arguments of lax functions that only matter to compilers and other hardware: accepted where they can be honoured."""

import numpy as np
import pytest

import xform
from xform import lax

x = np.arange(6.0).reshape(2, 3)
MATMUL = (((1,), (0,)), ((), ()))

SHARDED = {
    "broadcast": lambda s: lax.broadcast(x, (2,), out_sharding=s),
    "broadcast_in_dim": lambda s: lax.broadcast_in_dim(x, (2, 2, 3), (1, 2), out_sharding=s),
    "broadcasted_iota": lambda s: lax.broadcasted_iota(int, (2, 3), 0, out_sharding=s),
    "dot_general": lambda s: lax.dot_general(x, x.T, MATMUL, out_sharding=s),
    "dot": lambda s: lax.dot(x, x.T, out_sharding=s),
    "empty": lambda s: lax.empty((2,), float, out_sharding=s),
    "full": lambda s: lax.full((2,), 1, sharding=s),
    "full_like": lambda s: lax.full_like(x, 1, sharding=s),
    "ragged_dot": lambda s: lax.ragged_dot(x, x[None].mT, np.array([2]), out_sharding=s),
    "reduce": lambda s: lax.reduce(x, 0.0, lax.add, (0,), out_sharding=s),
    "reduce_max": lambda s: lax.reduce_max(x, (0,), out_sharding=s),
    "reduce_min": lambda s: lax.reduce_min(x, (0,), out_sharding=s),
    "reduce_sum": lambda s: lax.reduce_sum(x, (0,), out_sharding=s),
    "reshape": lambda s: lax.reshape(x, (6,), out_sharding=s),
    "rng_bit_generator": lambda s: lax.rng_bit_generator(np.zeros(4, np.uint32), (2,), out_sharding=s)[1],
}


@pytest.mark.parametrize("name", SHARDED)
def test_shardings_other_than_none_are_refused(name):
    assert isinstance(SHARDED[name](None), xform.Array)
    with pytest.raises(NotImplementedError, match=rf"lax\.(dot_general|{name}): only \w*sharding=None .*'spread'"):
        SHARDED[name]("spread")


def test_sharding_constraints_name_one_device():
    class Sharding:
        def __init__(self, *devices):
            self.device_set = set(devices)

    tree = {"a": x, "b": [x]}
    assert lax.with_sharding_constraint(tree, Sharding(0)) is tree
    with pytest.raises(NotImplementedError, match=r"with_sharding_constraint: .* one device"):
        lax.with_sharding_constraint(x, Sharding(0, 1))


ACCURATE = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "logistic",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sqrt",
    "rsqrt",
    "cbrt",
    "erfc",
]


@pytest.mark.parametrize("name", ACCURATE)
def test_accuracy(name):
    function, y = getattr(lax, name), np.float32([0.5, 1.0])
    for accuracy in (None, *lax.AccuracyMode, lax.Tolerance(rtol=1e-5), lax.Tolerance(atol=1.0, ulps=20)):
        assert function(y, accuracy=accuracy).tolist() == function(y).tolist()
    for accuracy in (lax.Tolerance(ulps=1), lax.Tolerance(atol=1e-3), lax.Tolerance(rtol=1e-7)):
        with pytest.raises(NotImplementedError, match=rf"lax\.{name}: .*float32.* rtol=9.5e-07 .*Tolerance"):
            function(y, accuracy=accuracy)
    with pytest.raises(TypeError, match=rf"lax\.{name}: accuracy must be .*'high'"):
        function(y, accuracy="high")


@pytest.mark.parametrize("arguments", [{}, {"atol": -1}, {"rtol": 1, "ulps": -1}])
def test_tolerances_are_positive(arguments):
    with pytest.raises(ValueError, match="Tolerance"):
        lax.Tolerance(**arguments)


def test_dtypes_and_shapes_as_values():
    assert lax.dtype(np.int8(1)) == np.int8 and lax.dtype(1.0) == np.float64
    assert lax.shape_as_value((2, 3)).tolist() == [2, 3] and lax.shape_as_value(()).shape == (0,)


def test_product_in_another_dtype():
    big = np.int8([100, -128])
    for f in (lax.mul, xform.jit(lax.mul, static_argnames="out_dtype")):
        out = f(big, big, out_dtype=np.int32)
        assert out.dtype == np.int32 and out.tolist() == [10000, 16384]
    assert lax.mul(big, 2).tolist() == [-56, 0]


def test_reduce_recognises_only_whole_programs():
    """A monoid beside which something else happens isn't one."""
    y = np.array([3.0, 5.0, 2.0])
    assert float(lax.reduce(y, 0.0, lambda a, b: (lax.add(a, b), b)[1], (0,))) == 2
    assert float(lax.reduce(y, 0.0, lambda a, b: lax.add(b, a), (0,))) == 10


class TestBarriers:
    def test_equal_barriers_stay_apart(self):
        def f(x):
            return lax.optimization_barrier(x) + lax.optimization_barrier(x)

        text = xform.jit(f).lower(x).as_text()
        assert text.count("stablehlo.optimization_barrier") == 2

    def test_pytrees_go_through(self):
        out = lax.optimization_barrier({"a": x, "b": (1, None)})
        assert np.array_equal(out["a"], x) and int(out["b"][0]) == 1 and out["b"][1] is None
        assert lax.optimization_barrier(()) == ()

    def test_sinks_survive(self):
        def f(x):
            lax.dce_sink({"s": lax.sin(x)})
            lax.cos(x)
            return 2 * x

        expected = (2 * x).tolist()
        assert f(x).tolist() == xform.jit(f)(x).tolist() == xform.vmap(f)(x).tolist() == expected
        names = [e.primitive.name for e in xform.make_jaxpr(f)(x).jaxpr.eqns]
        assert names[:2] == ["sin", "dce_sink"] and "cos" not in names
        assert "\n    dce_sink b\n" in str(xform.make_jaxpr(f)(x))
        inner = xform.jit(f)
        outer = xform.make_jaxpr(xform.jit(lambda x: (inner(x), x)[1]))(x)  # of inner only the sink is left
        assert "dce_sink" in str(outer) and "mul" not in str(outer)
        assert xform.jit(lambda x: (inner(x), x)[1])(x).tolist() == x.tolist()
        assert xform.grad(lambda x: f(x).sum())(x).tolist() == xform.jvp(f, (x,), (x * 0 + 1,))[1].tolist()
        with pytest.raises(NotImplementedError, match="dce_sink: only prevent_mlir_dce=False"):
            lax.dce_sink(x, prevent_mlir_dce=True)


class TestComposites:
    def test_the_compiler_gets_name_and_attributes(self):
        tangent = lax.composite(lambda x, **_: lax.sin(x) / lax.cos(x), "my.tangent", 7)

        def f(x):
            return tangent(
                x, n=3, t=1e-7, flag=True, label='a "b"', w=np.array([1, 2], np.int32), none=None, many=(1, 2)
            )

        text = xform.jit(f).lower(x).as_text()
        for part in ('"stablehlo.composite"', 'name = "my.tangent"', "version = 7 : i32", "n = 3 : i64", "flag = true",
                     "t = 1.0e-07 : f64", r'label = "a \"b\""', "w = dense<[1, 2]> : tensor<2xi32>",
                     "many = [1 : i64, 2 : i64]"):  # fmt: skip
            assert part in text
        assert "none" not in text
        with xform.core.config.small_programs("xla"):
            np.testing.assert_allclose(xform.jit(f)(x), np.tan(x), rtol=1e-12)

    def test_traced_attributes_are_refused(self):
        scaled = lax.composite(lambda x, *, factor: x, "my.scaled")
        with pytest.raises(xform.errors.UnexpectedTracerError, match=r"composite: .*factor of 'my.scaled' is a traced"):
            xform.jit(lambda x: scaled(x, factor=x))(x)

    def test_closed_over_arrays(self):
        @xform.jit
        def f(x, y):
            return lax.composite(lambda x: x * y, "my.closure")(x)

        assert f(x, x).tolist() == (x * x).tolist()
        assert xform.grad(lambda y: f(x, y).sum())(x).tolist() == x.tolist()
