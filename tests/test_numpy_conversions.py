"""How arrays become ndarrays, Python's numbers, bytes, text and files, and how they are copied."""

import copy
import hashlib
import io
import json
import math
import operator
import pickle
import sys

import numpy as np
import pytest

import xform
import xform.numpy as xnp

X = np.array([[1.0, -2.5, 3.0]])
TYPES = ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
VALUES = [xnp.array(X), xnp.array(2.5), xnp.asarray(2.5), xnp.array([1.5, 2], "bfloat16"), xnp.array(1.5, "bfloat16"),
          xnp.zeros((0, 3), "int8"), xnp.array(1 + 2j), xnp.array([True])]  # fmt: skip


def same(a, b):
    assert type(a) is type(b)
    assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    return True


# ---- ndarrays ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_asarray_copies_only_if_it_must(value):
    view = np.asarray(value)
    assert type(view) is np.ndarray
    assert view.dtype == value.dtype
    assert view.shape == value.shape
    assert not view.flags.writeable
    assert not np.asarray(value, copy=False).flags.writeable
    for owned in (np.array(value), np.asarray(value, copy=True), value.__array__(copy=True)):
        assert owned.flags.writeable
        assert not np.shares_memory(owned, np.asarray(value))
    if value.ndim:
        assert value.size == 0 or np.shares_memory(view, np.asarray(value))
    other = np.dtype(np.complex64)
    converted = np.asarray(value, other)
    assert converted.dtype == other
    assert converted.flags.writeable
    with pytest.raises(ValueError, match="copy"):
        np.asarray(value, other, copy=False)
    np.testing.assert_array_equal(np.asarray(value, value.dtype), view)


def test_asarray_of_results():
    out = xform.jit(lambda x: x * 2)(X)
    assert not np.asarray(out).flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(out)[0] = 1
    owned = np.array(out)
    owned[:] = 0
    np.testing.assert_array_equal(np.asarray(out), X * 2)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_buffers_are_read_only(dtype, shape):
    value = xnp.ones(shape, dtype)
    np.testing.assert_array_equal(np.asarray(value), np.ones(shape, np.asarray(value).dtype))
    assert np.asarray(value).dtype == value.dtype
    if sys.version_info < (3, 12):
        with pytest.raises(TypeError, match="bytes-like"):
            memoryview(value)
    elif dtype == "bfloat16":
        with pytest.raises((BufferError, ValueError)):
            memoryview(value)
    else:
        view = memoryview(value)
        assert view.readonly
        assert view.shape == shape
        assert bytes(view) == np.asarray(value).tobytes()
        assert hashlib.sha256(value).digest() == hashlib.sha256(value.tobytes()).digest()
        with pytest.raises((BufferError, TypeError)):
            io.BytesIO(b"x" * 1000).readinto(value)
    assert bytes(value) == np.asarray(value).tobytes()


# ---- Copies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    for value in VALUES:
        found = pickle.loads(pickle.dumps(value, protocol))
        assert same(found, value)
        assert same(found + 1, value + 1)
    tree = {"a": [xnp.array(X), (xnp.float32(2), None)], "b": xform.jit(lambda x: x + 1)(X)}
    found = pickle.loads(pickle.dumps(tree, protocol))
    assert xform.tree.structure(found) == xform.tree.structure(tree)
    assert all(map(same, xform.tree.leaves(found), xform.tree.leaves(tree)))
    for key in (xform.random.key(3), xform.random.split(xform.random.key(3))):
        found = pickle.loads(pickle.dumps(key, protocol))
        assert found.dtype == key.dtype
        draw = xform.random.normal if not key.ndim else xform.vmap(xform.random.normal)
        np.testing.assert_array_equal(np.asarray(draw(found)), np.asarray(draw(key)))


def test_pickle_of_arrays_on_devices():
    value = xform.device_put(X, xform.devices()[-1])
    assert same(pickle.loads(pickle.dumps(value)), xnp.array(X))
    buffers = []
    data = pickle.dumps(xnp.arange(10000.0), protocol=5, buffer_callback=buffers.append)
    assert buffers
    assert len(data) < 1000
    assert pickle.loads(data, buffers=buffers)[9999] == 9999


def test_copies():
    for value in VALUES:
        for made in (copy.copy(value), copy.deepcopy([value])[0], value.copy(), xnp.copy(value)):
            assert same(made, value) or made.weak_type != value.weak_type
    key = xform.random.key(1)
    assert copy.deepcopy(key).dtype == copy.copy(key).dtype == key.dtype
    traced = xform.jit(lambda x: copy.deepcopy(x) + copy.copy(x))(X)
    np.testing.assert_array_equal(np.asarray(traced), 2 * X)
    with pytest.raises(TypeError, match="pickle needs a concrete value"):
        xform.jit(pickle.dumps)(X)


# ---- Files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("save", [np.save, xnp.save])
def test_save(dtype, save):
    for shape in ((), (3,), (2, 0)):
        value, file = xnp.ones(shape, dtype), io.BytesIO()
        save(file, value)
        file.seek(0)
        assert same(xnp.load(file), value)
        if dtype != "bfloat16":
            file.seek(0)
            np.testing.assert_array_equal(np.load(file), np.asarray(value))


def test_files_of_several_arrays(tmp_path):
    for save in (np.savez, np.savez_compressed, xnp.savez):
        save(tmp_path / "a.npz", xnp.array(X), b=xnp.array(2.5))
        with xnp.load(tmp_path / "a.npz") as found:
            np.testing.assert_array_equal(found["arr_0"], X)
            assert found["b"] == 2.5
    np.savetxt(tmp_path / "a.txt", xnp.array(X), fmt="%.3f")
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "a.txt"), X[0])
    xnp.array(X).__array__().tofile(tmp_path / "a.bin")
    np.testing.assert_array_equal(np.asarray(xnp.fromfile(tmp_path / "a.bin")), X[0])
    for dtype in ("float8_e5m2", "int4"):
        for save in (np.save, xnp.save, xnp.savez):
            with pytest.raises(TypeError, match=rf"numpy\.savez?: files can't hold {dtype}.*astype"):
                save(io.BytesIO(), xnp.ones(2, dtype))


# ---- Numbers and text --------------------------------------------------------------------------------------


def test_numbers():
    x, i, b, c = xnp.array(2.5), xnp.array(3), xnp.array(1.5, "bfloat16"), xnp.array(1 + 2j)
    assert (float(x), int(x), complex(x), bool(x), x.item(), x.tolist()) == (2.5, 2, 2.5, True, 2.5, 2.5)
    assert (float(i), int(i), operator.index(i), complex(i), i.item()) == (3.0, 3, 3, 3, 3)
    assert [type(v) for v in (float(x), int(x), complex(x), bool(x), x.item(), i.item(), b.item())] == [
        float, int, complex, bool, float, int, float,
    ]  # fmt: skip
    assert (float(b), int(b), complex(b), b.item()) == (1.5, 1, 1.5, 1.5)
    assert complex(c) == 1 + 2j
    assert (math.sqrt(xnp.array(4.0)), math.floor(x), math.ceil(x), math.trunc(-x)) == (2, 2, 3, -2)
    assert [10, 20, 30, 40][i] == 40
    assert "abcdef"[:i] == "abc"
    assert list(range(i)) == [0, 1, 2]
    assert np.arange(5)[xnp.array([1, 2])].tolist() == [1, 2]
    assert np.zeros(i).shape == (3,)
    assert float(np.float64(x)) == 2.5
    a = np.zeros(2)
    a[0] = x
    assert a.tolist() == [2.5, 0]
    assert round(xnp.array(2.567), 1) == np.round(2.567, 1)
    assert round(xnp.array(-1234), -2) == -1200
    assert [float(v) for v in divmod(x, 2)] == [1.0, 0.5]
    assert [float(v) for v in divmod(6, x)] == [2.0, 1.0]
    assert pow(x, 2) == 6.25
    assert abs(-x) == 2.5


def test_errors_of_numbers():
    x = xnp.array([1.0])
    for convert in (float, int, complex, math.trunc):
        with pytest.raises(TypeError, match="rank 0"):
            convert(x)
    with pytest.raises(TypeError, match="complex"):
        float(xnp.array(1j))
    for value in (2.5, True, [1]):
        with pytest.raises(TypeError, match="only integer arrays of rank 0"):
            operator.index(xnp.array(value))
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)
    with pytest.raises(TypeError, match="unhashable"):
        {xnp.array(1)}
    for empty in (xnp.zeros(2), xnp.zeros(0)):
        with pytest.raises(ValueError, match="ambiguous"):
            bool(empty)


def test_text():
    x = xnp.array(2.5)
    assert f"{x:.2f}|{x:8.1e}|{xnp.array(3):03d}|{xnp.array(1 + 2j):.1f}" == "2.50| 2.5e+00|003|1.0+2.0j"
    assert f"{x}" == "2.5"
    assert "%.1f %d %s" % (x, xnp.array(3), xnp.array([1, 2])) == "2.5 3 [1 2]"  # noqa: UP031
    with pytest.raises(TypeError):
        f"{xnp.array(X):.2f}"
    assert json.loads(json.dumps([v.tolist() for v in VALUES if v.dtype.kind != "c"]))[:2] == [X.tolist(), 2.5]


def test_iteration():
    x = xnp.array([[1.0, 2.0], [3.0, 4.0]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    assert [row.tolist() for row in reversed(x)] == [[3, 4], [1, 2]]
    assert 2.0 in x
    assert 5 not in x
    assert [x[i].item() for i in np.ndindex(x.shape)] == [1, 2, 3, 4]
    assert [(i, float(v)) for i, v in np.ndenumerate(x)][3] == ((1, 1), 4)
    assert float(sum(x[0])) == 3
    assert float(max(x[1])) == 4
    assert [float(v) for v in sorted(x[0], key=lambda v: -v)] == [2, 1]
    a, b = x
    assert isinstance(a, xform.Array)
    assert b.tolist() == [3, 4]
    assert dict(enumerate(x[0].tolist())) == {0: 1.0, 1: 2.0}
    for f in (iter, len, list, reversed):
        with pytest.raises(TypeError, match=r"rank 0|reversed"):
            f(xnp.array(1.0))
    assert list(xnp.zeros((0, 2))) == []
