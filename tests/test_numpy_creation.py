"""Making arrays: from values, shapes, counts and other arrays."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.numpy_cases import Case, by_name, check, compare
from xform.core.errors import ConcretizationTypeError

F = np.arange(6.0).reshape(2, 3)
CASES = [
    *(Case(n, (s,), k) for n in ("zeros", "ones") for s in (3, (2, 3), (), [2, 0])
        for k in ({}, {"dtype": "int8"}, {"dtype": bool})),
    Case("empty", (2,), reference=np.zeros),
    Case("full", ((2, 3), 2.5)), Case("full", (2, 3)), Case("full", ((2, 3), np.arange(3.0))),
    Case("full", ((2, 2), 1.7), {"dtype": "int32"}), Case("full", (2, 1j)),
    *(Case(n, (a,), k) for n in ("zeros_like", "ones_like") for a in (F, np.arange(3))
        for k in ({}, {"dtype": "complex64"})),
    Case("full_like", (F, 3)), Case("full_like", (np.arange(3), 2.7)), Case("ones_like", (F,), {"shape": (2,)}),
    Case("eye", (3,)), Case("eye", (2, 4, 1)), Case("eye", (3, 2), {"k": -1, "dtype": int}), Case("identity", (3,)),
    Case("eye", (0,)),
    Case("tri", (3, 4, 1)), Case("tri", (3,), {"k": -1, "dtype": bool}),
    *(Case(n, (np.arange(24.0).reshape(2, 3, 4),), {"k": k}) for n in ("tril", "triu") for k in (-3, -1, 0, 2)),
    Case("triu", (np.ones((2, 2), bool),)),
    *(Case("arange", a, k) for a in ((5,), (1, 7), (10, 0, -3), (0.5, 3), (0, 1, 0.25), (3, 3), (5, 1))
        for k in ({}, {"dtype": "float32"})),
    Case("arange", (), {"start": 2, "stop": 9, "step": 3}), Case("arange", (7,), {"dtype": "uint8"}),
    *(Case("linspace", a, k) for a in ((0, 1, 5), (1.0, -2.0, 4), (2, 2, 1), (0, 1, 0), (0, 1j, 3))
        for k in ({}, {"endpoint": False})),
    Case("linspace", (np.array([0.0, 1.0]), np.array([[2.0], [3.0]]), 4), {"axis": -1}),
    Case("linspace", (np.array([0.0, 1.0]), 5.0, 4), {"axis": 1, "retstep": True}),
    Case("linspace", (0.5, 9.7, 6), {"dtype": int}), Case("linspace", (0, 1, 3), {"dtype": "float32"}, tolerance=1e-6),
    Case("logspace", (0, 2, 5)), Case("logspace", (0.0, 3.0, 4), {"base": 2.0, "endpoint": False}),
    Case("logspace", (np.array([0.0, 1.0]), np.array([1.0, 2.0]), 3), {"base": 2.0}),
    Case("geomspace", (1, 1000, 4)), Case("geomspace", (8.0, 0.5, 5), {"endpoint": False}),
    Case("geomspace", (np.array([1.0, 2.0]), np.array([16.0, 2.0]), 3)), Case("geomspace", (1j, 16j, 5), jit=False),
    *(Case("meshgrid", (np.arange(3.0), np.arange(2), np.arange(4)), {"indexing": i, "sparse": s})
        for i in ("xy", "ij") for s in (False, True)),
    Case("meshgrid", (np.arange(3),)), Case("meshgrid", ()),
    Case("vander", (np.array([1.0, 2, 3]),)), Case("vander", (np.array([1, 2, 3]), 2), {"increasing": True}),
    Case("vander", (np.ones(2), 0)),
    Case("fromfunction", (lambda i, j: i + 10 * j, (2, 3))),
    Case("fromfunction", (lambda i: i == 1, 3), {"dtype": int}, lambda f, n, dtype: f(np.arange(3))),
    Case("copy", (F,)), Case("astype", (F, "int32")), Case("astype", (F > 2, float)),
]  # fmt: skip


@by_name(CASES)
def test_against_numpy(cases, mode):
    check(cases, mode)


VALUES = [
    3, 2.5, True, 1j, [1, 2], [1.5, 2], [[1, 2], [3, 4]], [True, False], (1, (2,))[0], [], [[]], [1, 2j],
    [np.float32(1), np.float32(2)],
    [np.ones(2), np.zeros(2)], np.float32(1), np.int8(3), np.ones((2, 0)), F.T, F[:, ::2], np.arange(3, dtype=">f8"),
    range(4),
    np.arange(3, dtype=">i2"), memoryview(np.arange(3)), np.bool_(True), [[True, 2.5]],
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda v: "memoryview" if isinstance(v, memoryview) else repr(v))
def test_array_of_values(value):
    for function in (xnp.array, xnp.asarray):
        want = np.array(value)
        compare(function(value), want, dtype=want.dtype.newbyteorder("="))
    want = np.array(value)
    if want.dtype.kind != "c":
        compare(xnp.array(value, "float32"), want.astype("float32"))


def test_array_of_arrays():
    x, y = xnp.array(1.5), xnp.array(2)
    for transform in (lambda f: f, xform.jit):
        f = transform(lambda x, y: xnp.array([[x, y], [3, 4.5]]))
        compare(f(x, y), np.array([[1.5, 2], [3, 4.5]]))
        compare(transform(lambda v: xnp.array([v, v]))(xnp.array(F)), np.array([F, F]))
        compare(transform(lambda v: xnp.asarray((v, 1), "float32"))(x), np.array([1.5, 1], "float32"))
    assert xnp.array([xnp.array(1, "int8"), 2]).dtype == np.int8  # a Python scalar gives way
    np.testing.assert_array_equal(np.asarray(xform.jacfwd(lambda v: xnp.array([v, v * v]))(3.0)), [1, 6])
    with pytest.raises(ValueError, match="rows must have one shape"):
        xnp.array([[x, y], [x]])


def test_arrays_share_no_memory_with_ndarrays():
    a = np.ones(3)
    arrays = [
        xnp.array(a),
        xnp.asarray(a),
        xnp.reshape(a, (3, 1)),
        xnp.transpose(a),
        xnp.ravel(a),
        xnp.real(a),
        xnp.broadcast_to(a, (2, 3)),
    ]
    arrays += [
        xnp.atleast_2d(a),
        xnp.squeeze(a),
        xnp.array([a, a]),
        xnp.stack([a]),
        xnp.flip(a),
        xnp.positive(a),
        xnp.where(a > 0, a, 1),
    ]
    a[:] = 7
    for x in arrays:
        assert not np.any(np.asarray(x) == 7)


def test_arrays_are_returned_as_they_are():
    x = xnp.ones(3)
    assert xnp.asarray(x) is x and xnp.array(x) is x
    y = xnp.copy(x)
    assert y is not x and not np.shares_memory(np.asarray(x), np.asarray(y))
    assert x.copy() is not x


def test_dtypes_make_arrays():
    assert xnp.float32(1.5).dtype == np.float32 and xnp.int8([1, 2]).tolist() == [1, 2]
    assert xnp.bfloat16(xnp.ones(2)).dtype == "bfloat16" and xnp.bool_(3).tolist() is True
    assert not xnp.float64(1.0).weak_type
    assert xform.jit(lambda x: xnp.float32(x))(1.0).dtype == np.float32


def test_python_scalars_are_weak_and_arrays_are_not():
    assert xnp.asarray(1).weak_type and xnp.asarray(1.0).weak_type and not xnp.asarray(True).weak_type
    assert (
        not xnp.asarray([1]).weak_type and not xnp.asarray(1, "int32").weak_type and not xnp.full((2,), 1.0).weak_type
    )


def test_ndmin_and_order():
    compare(xnp.array(3.0, ndmin=2), np.array([[3.0]]))
    compare(xnp.array(F, order="C"), F)
    with pytest.raises(NotImplementedError, match="order='F'"):
        xnp.array(F, order="F")


def test_other_sources(tmp_path):
    compare(xnp.frombuffer(b"\x01\x02\x03", "uint8", count=2, offset=1), np.array([2, 3], "uint8"))
    compare(xnp.fromiter((i * i for i in range(3)), float), np.array([0.0, 1, 4]))
    compare(xnp.fromstring("1,2", sep=","), np.array([1.0, 2]))
    F.tofile(tmp_path / "raw")
    compare(xnp.fromfile(tmp_path / "raw"), F.ravel())
    xnp.save(tmp_path / "a.npy", xnp.array(F))
    compare(xnp.load(tmp_path / "a.npy"), F)
    xnp.savez(tmp_path / "b.npz", x=xnp.array(F))
    with xnp.load(tmp_path / "b.npz") as found:
        np.testing.assert_array_equal(found["x"], F)
    compare(xnp.from_dlpack(F), F)
    compare(xnp.from_dlpack(xnp.array(F)), F)
    np.testing.assert_array_equal(np.from_dlpack(xnp.array(F)), F)


def test_shapes_only_make_no_constants():
    jaxpr = xform.make_jaxpr(
        lambda: (xnp.zeros((50, 50)), xnp.eye(50), xnp.arange(50), xnp.tri(50), xnp.ones((50,), int))
    )()
    assert not jaxpr.consts and len(jaxpr.eqns) >= 5


def test_like_takes_anything_with_a_shape_and_dtype():
    assert xnp.zeros_like(xform.ShapeDtypeStruct((2, 3), np.dtype("int8"))).dtype == np.int8
    assert xnp.ones_like(3.0).weak_type and xnp.zeros_like([1, 2]).tolist() == [0, 0]


def test_device_argument():
    device = xform.devices("cpu")[0]
    compare(xnp.zeros(3, device=device), np.zeros(3))
    compare(xnp.asarray(F, device=device), F)


def test_conversions_saturate():
    x = xnp.array([1e10, -1e10, np.nan, np.inf, 2.9, -2.9])
    assert x.astype("int8").tolist() == [127, -128, 0, 127, 2, -2]
    assert xnp.array(3.7).astype(int).tolist() == 3
    with pytest.warns(np.exceptions.ComplexWarning, match=r"numpy\.astype: the imaginary part is lost"):
        assert xnp.array([1 + 2j]).astype(float).tolist() == [1.0]


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: xnp.array("text"), TypeError, r"numpy\.array: can't make an array of 'text' of type str"),
        (lambda: xnp.array(None), TypeError, r"numpy\.array: can't make an array of None"),
        (lambda: xnp.array([1, "a"]), TypeError, r"numpy\.array: can't make an array"),
        (lambda: xnp.array([object()]), TypeError, r"numpy\.array: can't make an array"),
        (lambda: xnp.asarray({"a": 1}), TypeError, r"numpy\.asarray: can't make an array"),
        (lambda: xnp.array([[1, 2], [3]]), ValueError, "inhomogeneous"),
        (
            lambda: xnp.array([300], "int8"),
            OverflowError,
            r"numpy\.array: integers from 300 to 300 don't fit into int8",
        ),
        (lambda: xnp.array(300, "int8"), OverflowError, "300 does not fit into int8"),
        (lambda: xnp.array(1.0, "text"), TypeError, "'text' is not a dtype"),
        (lambda: xnp.array(np.array(["a"])), TypeError, r"numpy\.array"),
        (lambda: xnp.asarray([1.0], copy=False), ValueError, "copy=False"),
        (lambda: xnp.zeros((2, 1.5)), TypeError, r"numpy\.zeros: shape must be an integer or a sequence of them"),
        (lambda: xnp.full(2, xnp.ones(3)), ValueError, "fill_value|broadcast"),
        (lambda: xnp.linspace(0, 1, 2.5), TypeError, r"numpy\.linspace: num must be a known integer, got 2.5"),
        (lambda: xnp.eye(-1), ValueError, r"numpy\.eye: N and M must not be negative"),
        (lambda: xnp.meshgrid(xnp.ones(2), indexing="ji"), ValueError, r"numpy\.meshgrid: indexing must be"),
        (lambda: xnp.meshgrid(xnp.ones((2, 2))), ValueError, r"numpy\.meshgrid: arguments must have at most one axis"),
        (lambda: xnp.zeros(2, out_sharding=1), NotImplementedError, "out_sharding"),
    ],
)
def test_errors(call, error, message, transform):
    with pytest.raises(error, match=message):
        transform(call)()


def test_traced_shapes():
    for call in (
        lambda n: xnp.zeros(n),
        lambda n: xnp.arange(n),
        lambda n: xnp.eye(n),
        lambda n: xnp.linspace(0.0, 1.0, n),
    ):
        with pytest.raises(ConcretizationTypeError, match=r"(?s)numpy\.(zeros|arange|eye|linspace): .* static"):
            xform.jit(call)(3)
