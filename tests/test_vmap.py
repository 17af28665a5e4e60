"""The interface of `vmap`: in_axes, out_axes, pytrees, names, lengths. Batching of operations is tested in test_ops."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax
from xform.core.trace import axis_frame

A = np.arange(24.0).reshape(2, 3, 4)


def test_in_axes():
    row = np.arange(4.0)
    np.testing.assert_array_equal(np.asarray(xform.vmap(xnp.sum)(A)), A.sum((1, 2)))
    for axis in (0, 1, 2, -1, -2, -3):
        np.testing.assert_array_equal(np.asarray(xform.vmap(xnp.sum, axis)(A)), np.moveaxis(A, axis, 0).sum((1, 2)))
        np.testing.assert_array_equal(np.asarray(xform.vmap(lambda x: x, axis)(A)), np.moveaxis(A, axis, 0))
    out = xform.vmap(lambda x, y: x * y, in_axes=(1, None))(A, row)
    np.testing.assert_array_equal(np.asarray(out), np.moveaxis(A, 1, 0) * row)
    out = xform.vmap(lambda x, y: x * y, in_axes=[None, 0])(2.0, row)
    assert out.tolist() == (2 * row).tolist()


def test_out_axes():
    for axis in (0, 1, 2, -1, -3):
        out = xform.vmap(lambda x: x + 1, in_axes=1, out_axes=axis)(A)
        np.testing.assert_array_equal(np.asarray(out), np.moveaxis(A + 1, 1, axis))
    a, b = xform.vmap(lambda x: (x, x.sum()), out_axes=(1, 0))(A)
    assert a.shape == (3, 2, 4) and b.shape == (2,)
    out = xform.vmap(lambda x: {"mapped": x, "same": np.arange(2.0)}, out_axes={"mapped": -1, "same": None})(
        np.arange(3.0)
    )
    assert out["mapped"].tolist() == [0.0, 1.0, 2.0] and out["same"].tolist() == [0.0, 1.0]
    assert xform.vmap(lambda x: np.arange(2.0), out_axes=1)(np.arange(3.0)).tolist() == [[0.0] * 3, [1.0] * 3]


def test_pytrees():
    tree = {"a": A, "b": (np.arange(2.0), None, [np.arange(6.0).reshape(3, 2)])}
    axes = {"a": 0, "b": (0, None, [1])}
    out = xform.vmap(lambda t: t["a"].sum() + t["b"][0] + t["b"][2][0].sum(), in_axes=(axes,))(tree)
    np.testing.assert_array_equal(np.asarray(out), A.sum((1, 2)) + np.arange(2.0) + tree["b"][2][0].sum(0))
    one_for_all = xform.vmap(lambda t: t["x"] * t["y"], in_axes=({"x": 0, "y": None},))({"x": np.arange(3.0), "y": 2.0})
    assert one_for_all.tolist() == [0.0, 2.0, 4.0]
    prefix = xform.vmap(lambda pair, z: pair[0] + pair[1] * z, in_axes=(0, None))((np.arange(3.0), np.ones(3)), 5.0)
    assert prefix.tolist() == [5.0, 6.0, 7.0]


def test_keyword_arguments_are_mapped_over_their_first_axis():
    out = xform.vmap(lambda x, *, y: x + y, in_axes=None)(1.0, y=np.arange(3.0))
    assert out.tolist() == [1.0, 2.0, 3.0]


def test_axis_size():
    assert xform.vmap(lambda: np.float64(2.0), axis_size=3)().tolist() == [2.0, 2.0, 2.0]
    assert xform.vmap(lambda x: x, in_axes=None, axis_size=2)(np.arange(3.0)).shape == (2, 3)
    assert xform.vmap(lambda x: x, in_axes=None, out_axes=None, axis_size=2)(np.arange(3.0)).shape == (3,)
    with pytest.raises(ValueError, match=r"one length(.|\n)*axis_size=4"):
        xform.vmap(lambda x: x, axis_size=4)(np.ones(3))


def test_lengths_zero_and_one():
    assert xform.vmap(lambda x: xnp.sin(x).sum())(np.zeros((0, 3))).shape == (0,)
    assert xform.vmap(lambda x: xnp.sin(x).sum())(np.zeros((1, 3))).shape == (1,)
    assert xform.vmap(lambda x: x.sum())(np.zeros((2, 0))).tolist() == [0.0, 0.0]


def test_what_the_function_sees():
    seen = []

    def f(x, y):
        seen.append((x.shape, x.dtype, x.ndim, y))
        return x

    xform.vmap(f, in_axes=(2, None))(A.astype("float32"), 3.0)
    assert seen[0][:3] == ((2, 3), np.float32, 2)
    assert float(seen[0][3]) == 3.0  # what isn't mapped is concrete


def test_nested():
    outer = xform.vmap(xform.vmap(xform.vmap(lambda x: x * 2)))
    np.testing.assert_array_equal(np.asarray(outer(A)), 2 * A)
    table = xform.vmap(xform.vmap(lambda x, y: x - y, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_array_equal(
        np.asarray(table(np.arange(3.0), np.arange(4.0))), np.subtract.outer(range(3), range(4))
    )
    swapped = xform.vmap(xform.vmap(lambda x, y: x - y, in_axes=(0, None)), in_axes=(None, 0), out_axes=1)
    np.testing.assert_array_equal(
        np.asarray(swapped(np.arange(3.0), np.arange(4.0))), np.subtract.outer(range(3), range(4))
    )


def test_axis_names_are_in_scope_inside_only():
    def f(x):
        frame = axis_frame("i")
        assert frame.size == 3
        with pytest.raises(NameError, match="'j'"):
            axis_frame("j")
        return x

    xform.vmap(f, axis_name="i")(np.ones(3))
    with pytest.raises(NameError, match="unbound axis name: 'i'"):
        axis_frame("i")


def test_jit_inside_knows_its_axes():
    """A jitted function that uses a named axis is traced anew for another length of it."""

    @xform.jit
    def share(x):
        return x / lax.psum(x, "i")

    for n in (2, 4):
        assert xform.vmap(share, axis_name="i")(np.ones(n)).tolist() == [1 / n] * n


def test_mapped_and_unmapped_results_of_one_function():
    calls = []

    def f(x, y):
        calls.append(1)
        return x + 1, y * 2

    a, b = xform.vmap(f, in_axes=(0, None))(np.arange(3.0), 5.0)
    assert a.tolist() == [1.0, 2.0, 3.0] and b.tolist() == [10.0] * 3
    assert len(calls) == 1


def test_vmap_makes_one_operation_of_many():
    jaxpr = xform.make_jaxpr(xform.vmap(lambda x, y: xnp.dot(x, y)))(np.ones((8, 3)), np.ones((8, 3)))
    assert len([e for e in jaxpr.eqns if e.primitive.name == "dot_general"]) == 1
    matrix = xform.make_jaxpr(xform.vmap(lambda m, x: m @ x, in_axes=(None, 0)))(np.ones((2, 3)), np.ones((8, 3)))
    (dot,) = [e for e in matrix.eqns if e.primitive.name == "dot_general"]
    assert dot.params["dimension_numbers"][1] == ((), ())  # a matrix product, not a batch of them


def test_agrees_with_numpys_vectorize():
    rng = np.random.default_rng(0)
    matrices, vectors = rng.standard_normal((5, 3, 3)), rng.standard_normal((5, 3))

    def f(m, v):
        return xnp.tanh(m @ v) * v.sum()

    plain = np.vectorize(lambda m, v: np.tanh(m @ v) * v.sum(), signature="(n,n),(n)->(n)")
    for g in (xform.vmap(f), xform.jit(xform.vmap(f)), xform.vmap(xform.jit(f))):
        np.testing.assert_allclose(np.asarray(g(matrices, vectors)), plain(matrices, vectors), rtol=1e-13)


def test_results_that_are_not_mapped_may_be_summed():
    def f(x):
        return {"sum": 2.0 * x, "same": 3.0, "mapped": x}

    axes = {"sum": None, "same": None, "mapped": 0}
    for g in (xform.vmap(f, out_axes=axes, sum_match=True), xform.jit(xform.vmap(f, 0, axes, sum_match=True))):
        found = g(np.arange(3.0))
        assert float(found["sum"]) == 6 and float(found["same"]) == 3 and found["mapped"].tolist() == [0, 1, 2]
    # the transpose of broadcasting
    matrix = np.arange(6.0).reshape(3, 2)
    assert xform.vmap(lambda row: row, 1, None, sum_match=True)(matrix).tolist() == [1, 5, 9]
    with pytest.raises(ValueError, match="out_axes is None for a result"):
        xform.vmap(f, out_axes=axes)(np.arange(3.0))


def test_a_name_for_the_sharding_of_an_axis_changes_nothing():
    assert xform.vmap(lambda x: 2 * x, spmd_axis_name="batch")(np.arange(3)).tolist() == [0, 2, 4]
