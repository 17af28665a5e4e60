"""The Python array API standard, version 2025.12: names, signatures, dtypes, named results.

The tables say what the standard says, in short; its special cases are in test_array_api_special_cases.py.
`make array-api` runs the standard's own test suite.
"""

import inspect
import itertools
import math

import numpy as np
import pytest

import xform
import xform.numpy as xnp


def table(text):
    """The entries of a table; those that take several lines are indented."""
    out, name = {}, ""
    for line in text.strip("\n").splitlines():
        name = line[:18].strip() or name
        out[name] = f"{out.get(name, '')} {line[18:]}"
    return out


# ---- Names and signatures ----------------------------------------------------------------------------------
# Before the slash: positional arguments; then those that may be named; after the star: named ones.

ELEMENTWISE = table("""
    unary         abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag
                  isfinite isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal round
                  sign signbit sin sinh sqrt square tan tanh trunc
    binary        add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign
                  divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and
                  logical_or logical_xor maximum minimum multiply nextafter not_equal pow remainder subtract
""")
SIGNATURES = """
    arange start / stop step * dtype device
    asarray obj / * dtype device copy
    empty shape * dtype device
    empty_like x / * dtype device
    eye n m / * k dtype device
    from_dlpack x / * device copy
    full shape fill_value * dtype device
    full_like x / fill_value * dtype device
    linspace start stop / num * dtype device endpoint
    meshgrid arrays... * indexing
    ones shape * dtype device
    ones_like x / * dtype device
    tril x / * k
    triu x / * k
    zeros shape * dtype device
    zeros_like x / * dtype device
    astype x dtype / * copy device
    can_cast from to /
    finfo type /
    iinfo type /
    isdtype dtype kind /
    result_type arrays...
    clip x / min max
    matmul x1 x2 /
    matrix_transpose x /
    tensordot x1 x2 / * axes
    vecdot x1 x2 / * axis
    broadcast_arrays arrays...
    broadcast_shapes shapes...
    broadcast_to x / shape
    concat arrays / * axis
    expand_dims x / axis
    flip x / * axis
    moveaxis x source destination /
    permute_dims x / axes
    repeat x repeats / * axis
    reshape x / shape * copy
    roll x / shift * axis
    squeeze x / axis
    stack arrays / * axis
    tile x repetitions /
    unstack x / * axis
    argmax x / * axis keepdims
    argmin x / * axis keepdims
    count_nonzero x / * axis keepdims
    nonzero x /
    searchsorted x1 x2 / * side sorter
    where condition x1 x2 /
    isin x1 x2 / * invert
    unique_all x /
    unique_counts x /
    unique_inverse x /
    unique_values x /
    argsort x / * axis descending stable
    sort x / * axis descending stable
    cumulative_prod x / * axis dtype include_initial
    cumulative_sum x / * axis dtype include_initial
    max x / * axis keepdims
    mean x / * axis keepdims
    min x / * axis keepdims
    prod x / * axis dtype keepdims
    std x / * axis correction keepdims
    sum x / * axis dtype keepdims
    var x / * axis correction keepdims
    all x / * axis keepdims
    any x / * axis keepdims
    diff x / * axis n prepend append
    take x indices / * axis
    take_along_axis x indices / * axis
    linalg.cholesky x / * upper
    linalg.cross x1 x2 / * axis
    linalg.det x /
    linalg.diagonal x / * offset
    linalg.eig x /
    linalg.eigh x /
    linalg.eigvals x /
    linalg.eigvalsh x /
    linalg.inv x /
    linalg.matmul x1 x2 /
    linalg.matrix_norm x / * keepdims ord
    linalg.matrix_power x n /
    linalg.matrix_rank x / * rtol
    linalg.matrix_transpose x /
    linalg.outer x1 x2 /
    linalg.pinv x / * rtol
    linalg.qr x / * mode
    linalg.slogdet x /
    linalg.solve x1 x2 /
    linalg.svd x / * full_matrices
    linalg.svdvals x /
    linalg.tensordot x1 x2 / * axes
    linalg.trace x / * offset dtype
    linalg.vecdot x1 x2 / * axis
    linalg.vector_norm x / * axis keepdims ord
    fft.fft x / * n axis norm
    fft.ifft x / * n axis norm
    fft.fftn x / * s axes norm
    fft.ifftn x / * s axes norm
    fft.rfft x / * n axis norm
    fft.irfft x / * n axis norm
    fft.rfftn x / * s axes norm
    fft.irfftn x / * s axes norm
    fft.hfft x / * n axis norm
    fft.ihfft x / * n axis norm
    fft.fftfreq n / * d dtype device
    fft.rfftfreq n / * d dtype device
    fft.fftshift x / * axes
    fft.ifftshift x / * axes
    __array_namespace_info__
    Array.__array_namespace__ self / * api_version
    Array.__dlpack__ self / * stream max_version dl_device copy
    Array.__dlpack_device__ self /
    Array.to_device self device / * stream
"""
SIGNATURES = dict(line.split(maxsplit=1) if " " in line else (line, "") for line in SIGNATURES.strip().split("\n    "))
SIGNATURES |= dict.fromkeys(ELEMENTWISE["unary"].split(), "x /")
SIGNATURES |= dict.fromkeys(ELEMENTWISE["binary"].split(), "x1 x2 /")


def found(path):
    thing = xnp
    for name in path.split("."):
        thing = type(xnp.ones(1)) if name == "Array" else getattr(thing, name)
    return thing


@pytest.mark.parametrize("path", SIGNATURES)
def test_signature(path):
    positional, _, rest = SIGNATURES[path].rpartition("/") if "/" in SIGNATURES[path] else ("", "", SIGNATURES[path])
    either, _, named = rest.partition("*")
    ours = list(inspect.signature(found(path)).parameters.values())
    first = [p for p in ours if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind == p.VAR_POSITIONAL for p in ours):
        assert SIGNATURES[path].split()[0].endswith("...") and not first
        return
    places = positional.split()
    assert len(first) >= len(places) + len(either.split())
    for name, parameter in zip(either.split(), first[len(places) :]):
        assert parameter.name == name and parameter.kind == parameter.POSITIONAL_OR_KEYWORD
    by_name = {p.name: p for p in ours if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    for name in named.split():
        assert name in by_name and by_name[name].default is not inspect.Parameter.empty
    required = [p.name for p in ours if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    assert len(required) <= len(places) + len(either.split())


def test_array_members():
    x = xnp.ones((2, 3))
    operators = (
        "abs add and eq floordiv ge gt invert le lshift lt matmul mod mul ne neg or pos pow rshift sub truediv xor"
    )
    reflected = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor"
    others = "getitem bool complex float index int setitem dlpack dlpack_device array_namespace"
    for name in [*operators.split(), *(f"r{n}" for n in reflected.split()), *others.split()]:
        assert hasattr(x, f"__{name}__"), name
    assert (x.ndim, x.shape, x.size, x.dtype) == (2, (2, 3), 6, xnp.float64)
    assert x.T.shape == x.mT.shape == (3, 2)
    assert (xnp.e, xnp.pi, xnp.inf, xnp.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(xnp.nan)


# ---- Namespace and devices ---------------------------------------------------------------------------------


def test_namespace():
    x = xnp.ones(2)
    assert xnp.__array_api_version__ == "2025.12"
    assert x.__array_namespace__() is xnp
    for version in ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        assert x.__array_namespace__(api_version=version) is xnp
    with pytest.raises(ValueError, match=r"version '2030.12' of the array API is not supported; there are 2021.12"):
        x.__array_namespace__(api_version="2030.12")
    assert xform.jit(lambda v: v.__array_namespace__().sin(v))(x).shape == (2,)


KINDS = {
    "bool": "bool",
    "signed integer": "int8 int16 int32 int64",
    "unsigned integer": "uint8 uint16 uint32 uint64",
    "real floating": "float32 float64",
    "complex floating": "complex64 complex128",
}
KINDS["integral"] = f"{KINDS['signed integer']} {KINDS['unsigned integer']}"
KINDS["numeric"] = f"{KINDS['integral']} {KINDS['real floating']} {KINDS['complex floating']}"
NAMES = f"bool {KINDS['numeric']}".split()


def test_info():
    info = xnp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert xnp.ones((1,) * 64).ndim == 64
    assert isinstance(info.devices(), tuple) and info.default_device() in info.devices()
    assert set(info.dtypes()) == set(NAMES)
    for kind, names in KINDS.items():
        assert info.dtypes(kind=kind) == {name: np.dtype(name) for name in names.split()}
    assert list(info.dtypes(kind=("bool", "real floating"))) == ["bool", "float32", "float64"]
    for device in (None, *info.devices()):
        defaults = info.default_dtypes(device=device)
        wanted = {"real floating": 1.0, "complex floating": 1j, "integral": 1}
        assert defaults == {k: xnp.asarray(v).dtype for k, v in wanted.items()} | {"indexing": xnp.int64}
        assert set(info.dtypes(device=device)) == set(NAMES)
    with xform.enable_x64(False):
        assert "float64" not in info.dtypes() and info.default_dtypes()["integral"] == xnp.int32
    with pytest.raises(ValueError, match="unknown kind 'floating'; there are bool"):
        info.dtypes(kind="floating")
    with pytest.raises(ValueError, match="unknown device 'moon'"):
        info.default_dtypes(device="moon")


@pytest.mark.parametrize("number", [0, 1])
def test_devices(number):
    devices = xnp.__array_namespace_info__().devices()
    if number >= len(devices):
        pytest.skip("there is one device")
    device = devices[number]
    x = xnp.ones(3, device=device)
    assert x.device == device and x.to_device(device).device == device and xnp.asarray(x).device == device
    assert xnp.ones(3).device == xnp.__array_namespace_info__().default_device()
    makers = [xnp.zeros, xnp.ones, xnp.empty, xnp.arange, xnp.eye, xnp.fft.fftfreq, xnp.fft.rfftfreq]
    made = [f(2, device=device) for f in makers]
    made += [xnp.full(2, 1, device=device), xnp.linspace(0, 1, 3, device=device), xnp.asarray([1], device=device)]
    made += [xnp.astype(x, "int8", device=device), xnp.from_dlpack(np.ones(2), device=device)]
    like = [xnp.zeros_like, xnp.ones_like, xnp.empty_like, lambda v, **k: xnp.full_like(v, 1, **k)]
    made += [f(xnp.ones(2), device=device) for f in like] + [f(x) for f in like]
    assert {y.device for y in made} == {device}
    with pytest.raises(ValueError, match="take no stream, got stream=1"):
        x.to_device(device, stream=1)
    with pytest.raises(TypeError, match="expected a device"):
        x.to_device("moon")


def test_devices_of_tracers_and_of_several():
    seen = []
    xform.jit(lambda v: seen.append(v.device) or v)(xnp.ones(3))
    assert seen == [None]  # not known there; None is what every device= takes
    if xform.device_count() > 1:
        spread = xform.pmap(lambda v: v)(xnp.ones(2))
        with pytest.raises(ValueError, match=r"spread over 2 devices: see x.devices\(\)"):
            _ = spread.device
        with pytest.raises(ValueError, match="copy=False forbids"):
            xnp.from_dlpack(np.ones(2, "float32"), device=xform.devices()[-1], copy=False)


# ---- Dtypes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bool", "integral", "real floating", "complex floating"])
def test_promotion_within_a_kind(kind):
    """To the wider one; of a signed and an unsigned integer to what holds both. That is NumPy's rule, too."""
    for a, b in itertools.product(KINDS[kind].split(), repeat=2):
        if "uint64" in (a, b) and a[0] != b[0]:
            continue  # the standard leaves this open
        want = np.result_type(a, b)
        x, y = xnp.ones(2, a), xnp.ones(2, b)
        assert xnp.result_type(x, y) == xnp.result_type(getattr(xnp, a), getattr(xnp, b)) == want
        assert xnp.where(xnp.asarray([True, False]), x, y).dtype == xnp.concat([x, y]).dtype == want
        if kind != "bool":
            assert (x + y).dtype == (x * y).dtype == want


@pytest.mark.parametrize("name", NAMES)
def test_python_scalars_take_the_arrays_dtype(name):
    dtype = np.dtype(name)
    x = xnp.ones(2, name)
    scalars = {"b": [True], "i": [2], "u": [2], "f": [2, 2.5], "c": [2, 2.5, 1j]}[dtype.kind]
    for s in scalars:
        assert xnp.result_type(x, s) == dtype
        assert (x | s if name == "bool" else x + s).dtype == dtype
        assert xnp.where(x > 0 if dtype.kind != "c" else x != 0, x, s).dtype == dtype
    if dtype.kind == "f":
        assert (x + 1j).dtype == np.result_type(dtype, "complex64")


def test_isdtype_and_can_cast():
    for kind, names in KINDS.items():
        assert all(xnp.isdtype(getattr(xnp, n), kind) == (n in names.split()) for n in NAMES)
    assert xnp.isdtype(xnp.int8, ("bool", "real floating", xnp.int8)) and not xnp.isdtype(xnp.int8, xnp.int16)
    assert xnp.can_cast(xnp.int8, xnp.int16) and xnp.can_cast(xnp.ones(1, "float32"), xnp.float64)
    assert not xnp.can_cast(xnp.float64, xnp.float32) and not xnp.can_cast(xnp.int8, xnp.uint8)


@pytest.mark.parametrize("name", ["float32", "float64", "complex64", "complex128"])
def test_finfo(name):
    part = {"complex64": "float32", "complex128": "float64"}.get(name, name)
    digits, top = {"float32": (23, 127), "float64": (52, 1023)}[part]
    for x in (getattr(xnp, name), np.dtype(name), xnp.ones(2, name)):
        info = xnp.finfo(x)
        assert info.bits == np.dtype(part).itemsize * 8 and info.dtype == np.dtype(part)
        assert (info.eps, info.smallest_normal) == (2.0**-digits, 2.0 ** (1 - top))
        assert (info.max, info.min) == ((2 - 2.0**-digits) * 2.0**top, -(2 - 2.0**-digits) * 2.0**top)
        assert {type(v) for v in (info.eps, info.max, info.min, info.smallest_normal)} == {float}
    with pytest.raises(ValueError, match="int8 is not a floating or complex dtype"):
        xnp.finfo("int8")


@pytest.mark.parametrize("name", KINDS["integral"].split())
def test_iinfo(name):
    bits = np.dtype(name).itemsize * 8
    low, high = (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for x in (getattr(xnp, name), xnp.ones(2, name)):
        info = xnp.iinfo(x)
        assert (info.bits, info.min, info.max, info.dtype) == (bits, low, high, np.dtype(name))
        assert {type(v) for v in (info.bits, info.min, info.max)} == {int}


def test_sums_are_in_the_default_dtype_or_wider():
    default = {"i": "int64", "u": "uint64"}
    for name in KINDS["numeric"].split():
        want = np.dtype(default.get(np.dtype(name).kind, name))
        x = xnp.ones((2, 2), name)
        for f in (xnp.sum, xnp.prod, xnp.cumulative_sum, xnp.cumulative_prod, xnp.linalg.trace):
            kwargs = {"axis": 0} if "cumulative" in f.__name__ else {}
            assert f(x, **kwargs).dtype == want, f.__name__
            assert f(x, dtype=xnp.complex128, **kwargs).dtype == xnp.complex128
    assert xnp.count_nonzero(xnp.ones(2)).dtype == xnp.argmax(xnp.ones(2)).dtype == xnp.int64


# ---- Python's numbers --------------------------------------------------------------------------------------


def test_conversions():
    values = [True, False, 0, 3, 2.5, -0.0, math.inf, math.nan]
    for v in values:
        x = xnp.asarray(v)
        assert bool(x) is bool(v) and str(float(x)) == str(float(v)) and str(complex(x)) == str(complex(v))
    assert int(xnp.asarray(2.9)) == 2 and int(xnp.asarray(-2.9)) == -2 and int(xnp.asarray(True)) == 1
    assert complex(xnp.asarray(1 + 2j)) == 1 + 2j and bool(xnp.asarray(1j)) and not bool(xnp.asarray(0j))
    assert [0, 1, 2][xnp.asarray(1)] == 1 and range(5)[xnp.asarray(2, dtype=xnp.uint8)] == 2
    big = xnp.asarray(2**64 - 1, dtype=xnp.uint64)
    assert int(big) == big.__index__() == 2**64 - 1
    for f, x, error in [
        (int, math.nan, ValueError), (int, math.inf, OverflowError), (int, 1j, TypeError), (float, 1j, TypeError),
        (float, [1.0], TypeError), (int, [1, 2], TypeError), (bool, [1, 2], ValueError),
        (range, 1.0, TypeError), (range, True, TypeError),
    ]:  # fmt: skip
        with pytest.raises(error):
            f(xnp.asarray(x))


def test_asarray():
    cases = [(True, "bool"), (1, "int64"), (1.0, "float64"), (1j, "complex128"), ([1, 2.5], "float64")]
    cases += [([[True, 2]], "int64"), ([1, 2j], "complex128"), ((), "float64"), (memoryview(b"ab"), "uint8")]
    for value, dtype in cases:
        assert xnp.asarray(value).dtype == dtype
    x = xnp.asarray([1, 2])
    assert xnp.asarray(x) is x and xnp.asarray(x, copy=False) is x
    assert (
        xnp.asarray(x, copy=False, dtype=x.dtype, device=x.device) is xnp.asarray(x, copy=False, device=x.device) is x
    )
    assert xnp.asarray(x, dtype=xnp.float32).dtype == xnp.float32
    y = xnp.asarray(x, copy=True)
    assert y is not x and not np.shares_memory(np.asarray(x), np.asarray(y))
    for value, kwargs in [(np.ones(2), {}), ([1, 2], {}), (x, {"dtype": xnp.int8})]:
        with pytest.raises(ValueError, match="copy=False forbids"):
            xnp.asarray(value, copy=False, **kwargs)


def test_integers_that_only_uint64_holds():
    for n in (2**63, 2**64 - 1):
        x = xnp.asarray([1, n], dtype=xnp.uint64)
        made = [xnp.full(2, n, dtype=xnp.uint64), xnp.full_like(x, n), xnp.asarray(n, dtype=xnp.uint64)]
        made += [xnp.where(xnp.asarray([True, False]), x, n), xnp.maximum(x, n), xnp.clip(x, 0, n)]
        for y in made:
            assert y.dtype == xnp.uint64 and y.reshape(-1)[-1].item() == n
        assert (x == n).tolist() == [False, True] and xnp.searchsorted(x, n).item() == 1
    assert xnp.arange(2**63, 2**63 + 2, dtype=xnp.uint64).tolist() == [2**63, 2**63 + 1]
    with pytest.raises(OverflowError, match="does not fit into int8"):
        xnp.full(2, 300, dtype=xnp.int8)


def test_copies_have_memory_of_their_own():
    x = xnp.asarray([1.0, 2.0])
    for y in (xnp.astype(x, x.dtype, copy=True), xnp.astype(x, x.dtype), xnp.reshape(x, (2,), copy=True)):
        assert y.tolist() == [1, 2]
    assert not np.shares_memory(np.asarray(x), np.asarray(xnp.astype(x, x.dtype, copy=True)))
    assert xnp.astype(x, x.dtype, copy=False) is x
    assert xnp.reshape(x, (2, 1), copy=False).shape == (2, 1)


def test_items_cannot_be_assigned():
    x = y = xnp.asarray([1.0, 2.0])
    with pytest.raises(TypeError, match=r"immutable.*x.at\[index\].set"):
        x[0] = 3
    x += 1
    assert x.tolist() == [2, 3] and y.tolist() == [1, 2]


# ---- Functions ---------------------------------------------------------------------------------------------


def test_named_results():
    a = xnp.asarray([[2.0, 1.0], [1.0, 3.0]])
    linalg = xnp.linalg
    fields = [
        (linalg.eigh(a), "eigenvalues eigenvectors"), (linalg.eig(a), "eigenvalues eigenvectors"),
        (linalg.qr(a), "Q R"), (linalg.slogdet(a), "sign logabsdet"), (linalg.svd(a), "U S Vh"),
        (xnp.unique_all(a), "values indices inverse_indices counts"), (xnp.unique_counts(a), "values counts"),
        (xnp.unique_inverse(a), "values inverse_indices"),
    ]  # fmt: skip
    for result, names in fields:
        assert isinstance(result, tuple) and [getattr(result, n) is v for n, v in zip(names.split(), result)]
        assert len(result) == len(names.split())
    for f in (xnp.meshgrid, xnp.broadcast_arrays):
        assert len(f(xnp.ones(3), xnp.ones(3))) == 2


def test_unique_values_of_nan_and_zero():
    """NaN are all distinct, zeros of two signs are one."""
    x = xnp.asarray([[math.nan, 1.0, -0.0], [0.0, math.nan, 1.0]])
    values, indices, inverse, counts = xnp.unique_all(x)
    assert values.shape == (4,) and sorted(counts.tolist()) == [1, 1, 2, 2] and inverse.shape == x.shape
    np.testing.assert_array_equal(values[inverse], x)
    np.testing.assert_array_equal(xnp.reshape(x, (-1,))[indices], values)
    assert xnp.unique_counts(x).counts.dtype == xnp.unique_inverse(x).inverse_indices.dtype == xnp.int64


def test_expand_dims_takes_several_axes():
    x = xnp.ones((2, 3))
    assert xnp.expand_dims(x, axis=(0, -1)).shape == (1, 2, 3, 1) and xnp.expand_dims(x, axis=()).shape == (2, 3)
    for axis in (3, -4, (0, 0), (0, -4)):
        with pytest.raises(ValueError):
            xnp.expand_dims(x, axis=axis)


def test_searchsorted():
    x = xnp.asarray([3.0, 1.0, 2.0])
    order = xnp.argsort(x)
    assert xnp.searchsorted(x, xnp.asarray([[2.0, 0.0]]), sorter=order).tolist() == [[1, 0]]
    assert xnp.searchsorted(x, 2, side="right", sorter=order).tolist() == 2
    assert xnp.searchsorted(xnp.asarray([1, 2, 2, 3]), 2).tolist() == 1


def test_take_diff_and_isin():
    x = xnp.asarray([[4.0, 7.0], [1.0, 3.0]])
    assert xnp.take(x, xnp.asarray([-1, 0]), axis=1).tolist() == [[7, 4], [3, 1]]
    assert xnp.take_along_axis(x, xnp.asarray([[1], [-2]])).tolist() == [[7], [1]]
    assert xnp.diff(x, axis=0).tolist() == [[-3, -4]] and xnp.diff(x, n=0).tolist() == x.tolist()
    assert xnp.diff(x, prepend=xnp.zeros((2, 1)), append=xnp.ones((2, 1))).tolist() == [[4, 3, -6], [1, 2, -2]]
    assert xnp.isin(x, 7.0).tolist() == [[False, True], [False, False]]
    assert xnp.isin(7.0, x).tolist() is True and xnp.isin(x, x[0], invert=True).tolist() == [[False] * 2, [True] * 2]


def test_errors_that_the_standard_asks_for():
    x = xnp.ones((2, 3))
    for call in (
        lambda: xnp.squeeze(x, axis=0), lambda: xnp.broadcast_to(x, (2, 1)), lambda: xnp.broadcast_shapes((2,), (3,)),
        lambda: xnp.nonzero(xnp.ones(())), lambda: xnp.matmul(x, x), lambda: xnp.matmul(xnp.ones(()), x),
        lambda: xnp.linalg.cross(x, xnp.ones((2, 2))), lambda: xnp.linalg.cross(xnp.ones((2, 2)), xnp.ones((2, 2))),
        lambda: xnp.ones(3).mT, lambda: xnp.max(xnp.ones(0)),
        lambda: xnp.concat([x, xnp.ones((2, 2))], axis=0), lambda: xnp.fft.fft(x, norm="other"),
    ):  # fmt: skip
        with pytest.raises((ValueError, np.linalg.LinAlgError)):
            call()


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_scalars_have_no_axis_to_average(name, axis, transform):
    x = xnp.asarray(2.0, dtype="float64")
    with pytest.raises(np.exceptions.AxisError, match=rf"{name}.*axis {axis} is out of bounds"):
        transform(lambda x: getattr(xnp, name)(x, axis=axis))(x)
