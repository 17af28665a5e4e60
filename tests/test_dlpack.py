"""DLPack: memory lent to NumPy, PyTorch and JAX, and borrowed from them."""

import ctypes
import gc
import weakref

import jax
import ml_dtypes
import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform.core.config import small_programs

VALUES = np.arange(6.0).reshape(2, 3)


def aligned(values, bytes=64):
    """The values in memory of XLA's alignment, without which JAX copies."""
    space = np.empty(values.nbytes + bytes, "uint8")
    start = -space.ctypes.data % bytes
    out = space[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    out[...] = values
    return out


def pytorch():
    return pytest.importorskip("torch")


@pytest.fixture
def jax_x64():
    with jax.enable_x64(True):
        yield


def address(x):
    """Where an array of any of the libraries begins."""
    if isinstance(x, np.ndarray):
        return x.ctypes.data
    return x.data_ptr() if hasattr(x, "data_ptr") else x.unsafe_buffer_pointer()


def compiled():
    """An array that XLA computed, in memory of XLA."""
    with small_programs("xla"):
        return xform.jit(lambda x: x + 1)(xnp.array(VALUES))


LENDERS = {
    "host": lambda: xnp.array(VALUES),
    "compiled": compiled,
    "borrowed": lambda: xnp.from_dlpack(aligned(VALUES)),
    "transposed": lambda: xnp.array(VALUES).T,
    "row": lambda: xnp.array(VALUES)[1],
    "broadcast": lambda: xnp.broadcast_to(xnp.array(VALUES[0]), (4, 3)),
    "bool": lambda: xnp.array([True, False]),
    "int16": lambda: xnp.array([1, -2], "int16"),
    "uint64": lambda: xnp.array([1, 2**63], "uint64"),
    "complex64": lambda: xnp.array([1 + 2j, 3], "complex64"),
    "float16": lambda: xnp.array([1.5, np.nan], "float16"),
}


@pytest.mark.parametrize("name", LENDERS)
def test_numpy_shares_the_memory(name):
    x = LENDERS[name]()
    theirs = np.from_dlpack(x)
    assert np.shares_memory(theirs, np.asarray(x)) and theirs.dtype == x.dtype and not theirs.flags.writeable
    np.testing.assert_array_equal(theirs, np.asarray(x))


@pytest.mark.parametrize("name", LENDERS)
def test_pytorch_shares_the_memory(name):
    torch = pytorch()
    x = LENDERS[name]()
    theirs = torch.from_dlpack(x)
    assert address(theirs) == address(np.asarray(x))
    np.testing.assert_array_equal(theirs.numpy(), np.asarray(x))


@pytest.mark.parametrize("from_dlpack", [jax.dlpack.from_dlpack, jax.numpy.from_dlpack])
def test_jax_shares_aligned_memory(jax_x64, from_dlpack):
    for x in (LENDERS["compiled"](), LENDERS["borrowed"]()):
        assert address(from_dlpack(x)) == address(np.asarray(x))
    for make in LENDERS.values():
        x = make()
        theirs = from_dlpack(x)
        assert theirs.dtype == x.dtype
        np.testing.assert_array_equal(theirs, np.asarray(x))


@pytest.mark.parametrize("copy", [None, True, False])
def test_borrowing(jax_x64, copy):
    lent = [VALUES, VALUES.T, VALUES[:, ::-1], np.frombuffer(bytes(8), "int32"), np.array(2.5), np.ones((0, 3))]
    lent += [jax.numpy.asarray(VALUES), jax.numpy.ones(3, "int8")]
    for theirs in lent:
        x = xnp.from_dlpack(theirs, copy=copy)
        assert isinstance(x, xform.Array) and x.shape == theirs.shape and x.dtype == theirs.dtype
        assert (np.asarray(x).ctypes.data == address(theirs)) == (not copy) or not x.size
        np.testing.assert_array_equal(x, theirs)
        np.testing.assert_array_equal(xform.jit(lambda v: v * 2)(x), np.asarray(theirs) * 2)


@pytest.mark.parametrize("copy", [None, True, False])
def test_borrowing_from_pytorch(copy):
    torch = pytorch()
    for theirs in (torch.arange(5), torch.ones(2, 3).T, torch.tensor(2.5), torch.tensor([True, False])):
        x = xnp.from_dlpack(theirs, copy=copy)
        assert x.shape == tuple(theirs.shape) and (np.asarray(x).ctypes.data == address(theirs)) == (not copy)
        np.testing.assert_array_equal(x, theirs.numpy())


def test_a_writer_is_seen():
    """The memory is the other library's, and so is the say over it."""
    theirs = np.zeros(3)
    x, kept = xnp.from_dlpack(theirs), xnp.from_dlpack(theirs, copy=True)
    theirs[0] = 7
    assert x.tolist() == [7, 0, 0] and kept.tolist() == [0, 0, 0]


SHORT_FLOATS = ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu", "float8_e4m3fnuz"]


@pytest.mark.parametrize("name", SHORT_FLOATS)
def test_dtypes_that_numpy_does_not_know(name):
    values = np.array([0.5, 1.0, 4.0]).astype(name)
    x = xnp.array(values)
    again = xnp.from_dlpack(x)
    assert again.dtype == x.dtype and np.shares_memory(np.asarray(again).view("uint8"), np.asarray(x).view("uint8"))
    theirs = jax.dlpack.from_dlpack(x)
    assert theirs.dtype == values.dtype
    np.testing.assert_array_equal(np.asarray(theirs).astype(float), values.astype(float))
    back = xnp.from_dlpack(theirs)
    assert back.dtype == values.dtype and np.asarray(back).ctypes.data == address(theirs)
    torch = pytorch()
    tensor = torch.from_dlpack(x)
    assert str(tensor.dtype) == f"torch.{name}" and address(tensor) == np.asarray(x).ctypes.data
    np.testing.assert_array_equal(tensor.float().numpy(), values.astype("float32"))
    back = xnp.from_dlpack(tensor)
    assert back.dtype == values.dtype and np.asarray(back).ctypes.data == address(tensor)
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(x)


def capsule_head(capsule):
    """(version, flags) of a capsule; (None, 0) of one from before DLPack 1."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    if '"dltensor"' in repr(capsule):
        return None, 0
    start = get(capsule, b"dltensor_versioned")
    version = (ctypes.c_uint32 * 2).from_address(start)
    return tuple(version), ctypes.c_uint64.from_address(start + 24).value


READ_ONLY, COPIED = 1, 2


@pytest.mark.parametrize("x", [xnp.array(VALUES), xnp.ones(3, "bfloat16")], ids=["f64", "bf16"])
def test_capsules(x):
    """Versions and flags, by the layout of DLManagedTensorVersioned."""
    for max_version in (None, (0, 8)):
        assert capsule_head(x.__dlpack__(max_version=max_version)) == (None, 0)
    for max_version in ((1, 0), (1, 2), (2, 0)):
        version, flags = capsule_head(x.__dlpack__(max_version=max_version))
        assert version[0] == 1 and version <= max_version and flags & READ_ONLY and not flags & COPIED
        version, flags = capsule_head(x.__dlpack__(max_version=max_version, copy=True))
        assert version[0] == 1 and flags & COPIED
    for kwargs in ({"copy": False}, {"dl_device": (1, 0)}, {"stream": None}, {"max_version": (1, 0), "copy": False}):
        assert "dltensor" in repr(x.__dlpack__(**kwargs))
    assert x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(xnp.array(VALUES), copy=True).flags.writeable


def test_numbers_and_reversed_arrays_are_copied():
    for x in (xnp.array(2.5), xnp.arange(5)[::-1], xnp.array(VALUES)[:, ::-1]):
        np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))
        with pytest.raises(BufferError, match="lent as a copy only"):
            x.__dlpack__(copy=False)
        torch = pytorch()
        np.testing.assert_array_equal(torch.from_dlpack(x).numpy(), np.asarray(x))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2), (3, 0, 2)])
def test_empty_arrays_need_no_copy(shape):
    """Though NumPy gives them strides of 0."""
    x = xnp.ones(shape)
    for y in (x, x[::-1]):
        y.__dlpack__(copy=False)
        y.__dlpack__(copy=False, max_version=(1, 0))
        for lend in (np.from_dlpack, pytorch().from_dlpack, xnp.from_dlpack):
            assert tuple(lend(y).shape) == shape


@pytest.mark.parametrize("name", ["host", "compiled", "borrowed", "broadcast"])
def test_memory_outlives_the_lender(name):
    x = LENDERS[name]()
    want, dead = np.array(x), weakref.ref(x)
    capsules = [x.__dlpack__(), x.__dlpack__(max_version=(1, 0))]
    theirs = [np.from_dlpack(x), xnp.from_dlpack(x)]
    del x, capsules
    gc.collect()
    assert dead() is None
    junk = [np.full(want.shape, 7.0) for _ in range(100)]
    for y in theirs:
        np.testing.assert_array_equal(y, want)
    assert junk


def test_memory_is_given_back():
    class Memory:
        def __init__(self, array):
            self.__array_interface__ = array.__array_interface__
            self.array = array

    memory = Memory(np.arange(3.0))
    gone = weakref.ref(memory)
    x = xnp.from_dlpack(np.asarray(memory))
    again = np.from_dlpack(x)
    del memory, x
    gc.collect()
    assert gone() is not None and again.tolist() == [0, 1, 2]
    del again
    gc.collect()
    assert gone() is None


def test_deleted_arrays_have_nothing_to_lend():
    x = xnp.array(VALUES)
    x.delete()
    with pytest.raises(RuntimeError, match="has been deleted"):
        np.from_dlpack(x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: xnp.array([1, 2], "int4").__dlpack__(), BufferError, "no dtype for int4"),
        (lambda: xnp.ones(2, "float4_e2m1fn").__dlpack__(), BufferError, "no dtype for float4_e2m1fn"),
        (lambda: xnp.ones(2).__dlpack__(dl_device=(2, 0)), BufferError, r"host memory, \(1, 0\), only"),
        (lambda: xnp.ones(2).__dlpack__(stream=1), ValueError, "stream must be None, got 1"),
        (lambda: xnp.from_dlpack([1.0]), AttributeError, r"expected an array with __dlpack__\(\), got .* list"),
        (lambda: xform.jit(np.from_dlpack)(1.0), TypeError, "from_dlpack.* needs a concrete value, .* traced"),
        (lambda: xform.jit(xnp.from_dlpack)(1.0), TypeError, "from_dlpack.* needs a concrete value, .* traced"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_other_devices():
    class Elsewhere:
        """An array on an accelerator, whose library copies it to the host when asked to."""

        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, *, dl_device=None, copy=None, max_version=None):
            assert dl_device == (1, 0), dl_device
            return VALUES.__dlpack__()

    with pytest.raises(BufferError, match="on device 0 of DLPack's type 2; with device=xform"):
        xnp.from_dlpack(Elsewhere())
    x = xnp.from_dlpack(Elsewhere(), device=xform.devices("cpu")[0])
    np.testing.assert_array_equal(x, VALUES)
    assert x.device == xform.devices("cpu")[0]


def test_32_bit_mode():
    with xform.enable_x64(False):
        assert xnp.from_dlpack(VALUES).dtype == "float32"
        with pytest.raises(ValueError, match="copy=False forbids"):
            xnp.from_dlpack(VALUES, copy=False)


def test_type_codes_are_jax_ones(jax_x64):
    """For every dtype that JAX exports, its code is read as that dtype here."""
    for name in ("bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", *SHORT_FLOATS):
        theirs = jax.numpy.ones(2, name)
        assert xnp.from_dlpack(theirs).dtype == np.dtype(getattr(ml_dtypes, name))
