"""Numbers of 4 and 8 bits: all values of each type, through the host and through XLA, against wider arithmetic."""

import ml_dtypes
import numpy as np
import pytest

import xform
from tests.calls import OPTIMIZED
from xform import lax
from xform.core.array import get_aval
from xform.core.config import small_programs
from xform.interpreters import host
from xform.interpreters.staging import trace_to_closed

INTEGERS = {n: np.dtype(getattr(ml_dtypes, n)) for n in ("int4", "uint4")}
FLOATS = {
    n: np.dtype(getattr(ml_dtypes, n))
    for n in (
        "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
        "float8_e5m2fnuz",
    )
}  # fmt: skip
# Of float8_e8m0fnu, the format of scales, only conversions are of use; float4_e2m1fn has no NaN for 0 / 0 to become.
CONVERTED = FLOATS | INTEGERS | {n: np.dtype(getattr(ml_dtypes, n)) for n in ("float8_e8m0fnu", "float4_e2m1fn")}


def all_values(dtype):
    if dtype in INTEGERS.values():
        info = ml_dtypes.iinfo(dtype)
        return np.arange(int(info.min), int(info.max) + 1).astype(dtype)
    return np.arange(16 if dtype == ml_dtypes.float4_e2m1fn else 256).astype(np.uint8).view(dtype)


def pairs(dtype):
    x = all_values(dtype)
    return np.repeat(x, x.size), np.tile(x, x.size)


def assert_same(got, wanted, dtype, what):
    got = np.asarray(got)
    assert got.dtype == dtype, what
    got, wanted = got.astype(np.float64), np.asarray(wanted).astype(np.float64)
    wrong = ~((got == wanted) | (np.isnan(got) & np.isnan(wanted)))
    assert not wrong.any(), f"{what}: {got[wrong][:5]}, expected {wanted[wrong][:5]}"


def check_all(functions, args, wanted):
    """Functions by name: by the host and in one program of XLA, and of the host; `wanted` is (values, dtype)."""

    def program(*args):
        return {name: f(*args) for name, f in functions.items()}

    with small_programs("xla"):
        compiled = xform.jit(program, compiler_options=OPTIMIZED)(*args)
    by_host = host.run(trace_to_closed(lambda *xs: list(program(*xs).values()), list(map(get_aval, args)))[0], args)
    for name, f in functions.items():
        values, dtype = wanted(name)
        assert_same(f(*args), values, dtype, f"{name} on the host")
        assert_same(compiled[name], values, dtype, f"{name} by XLA")
    for name, got in zip(functions, by_host, strict=True):
        assert_same(got, *wanted(name), f"{name} in a program of the host")


def bind(*names):
    return {name: getattr(lax, name) for name in names}


def wrapped(x, dtype):
    """Integers modulo 16."""
    x = np.asarray(x).astype(np.int64) % 16
    return np.where((x > 7) & (dtype == INTEGERS["int4"]), x - 16, x)


def quotient(x, y):
    """Towards zero; by zero it is -1, all bits set."""
    safe = np.where(y == 0, 1, y)
    return np.where(y == 0, -1, np.sign(x) * np.sign(safe) * (abs(x) // abs(safe)))


# name: (operation, the same on int64 before it is cut to 4 bits, given the bits as unsigned numbers too)
OF_ONE = {
    "neg": lambda x, bits: -x,
    "abs": lambda x, bits: abs(x),
    "sign": lambda x, bits: np.sign(x),
    "square": lambda x, bits: x * x,
    "bitwise_not": lambda x, bits: ~x,
    "population_count": lambda x, bits: np.bitwise_count(bits),
    "clz": lambda x, bits: 4 - np.ceil(np.log2(bits + 1)),
}
OF_TWO = {
    "add": lambda x, y, a, b: x + y,
    "sub": lambda x, y, a, b: x - y,
    "mul": lambda x, y, a, b: x * y,
    "div": lambda x, y, a, b: quotient(x, y),
    "rem": lambda x, y, a, b: np.where(y == 0, x, x - y * quotient(x, y)),
    "max": lambda x, y, a, b: np.maximum(x, y),
    "min": lambda x, y, a, b: np.minimum(x, y),
    "bitwise_and": lambda x, y, a, b: x & y,
    "bitwise_or": lambda x, y, a, b: x | y,
    "bitwise_xor": lambda x, y, a, b: x ^ y,
    "shift_left": lambda x, y, a, b: np.where(b < 4, a << np.minimum(b, 4), 0),
    "shift_right_logical": lambda x, y, a, b: np.where(b < 4, a >> np.minimum(b, 4), 0),
    "shift_right_arithmetic": lambda x, y, a, b: np.where(a > 7, a - 16, a) >> np.minimum(b, 4),
}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around(dtype):
    dtype = INTEGERS[dtype]
    for table, args in ((OF_ONE, (all_values(dtype),)), (OF_TWO, pairs(dtype))):
        wide = [x.astype(np.int64) for x in args]
        bits = [x % 16 for x in wide]
        check_all(bind(*table), args, lambda name: (wrapped(table[name](*wide, *bits), dtype), dtype))  # noqa: B023


@pytest.mark.parametrize("dtype", INTEGERS)
def test_reductions_and_products_of_integers(dtype):
    dtype = INTEGERS[dtype]
    x = all_values(dtype).reshape(4, 4)
    wide = x.astype(np.int64)
    cases = {
        "sum": (lambda x: lax.reduce_sum(x, (1,)), wide.sum(1)),
        "max": (lambda x: lax.reduce_max(x, (0,)), wide.max(0)),
        "min": (lambda x: lax.reduce_min(x, (0,)), wide.min(0)),
        "cumsum": (lambda x: lax.cumsum(x, 1), wide.cumsum(1)),
        "cummax": (lambda x: lax.cummax(x, 1), wide),
        "sort": (lambda x: lax.sort(x, 0), wide),
        "dot": (lambda x: lax.dot(x, x), wide @ wide),
        "clamp": (lambda x: lax.clamp(x[0, 0], x, x[2, 1]), np.clip(wide, wide[0, 0], wide[2, 1])),
        "integer_pow": (lambda x: lax.integer_pow(x, 3), wide**3),
        "concatenate": (lambda x: lax.concatenate([x, x], 0), np.concatenate([wide, wide])),
        "loop": (lambda x: xform.vmap(lambda v: lax.fori_loop(0, 3, lambda i, v: v + v, v))(x), 8 * wide),
    }
    functions = {name: f for name, (f, _) in cases.items()}
    check_all(functions, (xform.numpy.asarray(x),), lambda name: (wrapped(cases[name][1], dtype), dtype))
    assert int(lax.reduce_max(np.zeros((0,), dtype), (0,))) == int(ml_dtypes.iinfo(dtype).min)


NUMPY = {
    "neg": "negative", "sub": "subtract", "mul": "multiply", "div": "divide", "max": "maximum", "min": "minimum",
    "atan2": "arctan2", "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
    "gt": "greater", "ge": "greater_equal",
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_round_once(dtype):
    """From the result in float32; overflow is infinite or NaN, as in ml_dtypes."""
    dtype = FLOATS[dtype]
    for names, args in (
        (("neg", "abs", "sqrt", "exp", "floor"), (all_values(dtype),)),
        (("add", "sub", "mul", "div", "max", "min", "atan2"), pairs(dtype)),
    ):
        wide = [x.astype(np.float32) for x in args]

        def wanted(name, wide=wide):
            with np.errstate(all="ignore"):
                return getattr(np, NUMPY.get(name, name))(*wide).astype(dtype), dtype

        check_all(bind(*names), args, wanted)


@pytest.mark.parametrize("dtype", FLOATS | INTEGERS)
def test_comparisons(dtype):
    args = pairs((FLOATS | INTEGERS)[dtype])
    wide = [x.astype(np.float64) for x in args]
    names = ("eq", "ne", "lt", "le", "gt", "ge")
    check_all(bind(*names), args, lambda name: (getattr(np, NUMPY[name])(*wide), np.dtype(bool)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_sorting_neighbours_and_bits(dtype):
    dtype = FLOATS[dtype]
    x = all_values(dtype)
    check_all(bind("sort"), (x,), lambda name: (np.sort(x.astype(np.float64)), dtype))
    numbers = np.unique(x.astype(np.float64)[np.isfinite(x.astype(np.float64))])
    ends = numbers.astype(dtype), np.full_like(numbers, numbers[-1]).astype(dtype)
    check_all(bind("nextafter"), ends, lambda name: (np.append(numbers[1:], numbers[-1]), dtype))
    to_bits = {"to uint8": lambda x: lax.bitcast_convert_type(x, np.uint8)}
    check_all(to_bits, (x,), lambda name: (np.arange(256), np.dtype(np.uint8)))
    from_bits = {"from int8": lambda x: lax.bitcast_convert_type(x, dtype)}
    check_all(from_bits, (x.view(np.int8),), lambda name: (x, dtype))
    four = lax.bitcast_convert_type(x.reshape(-1, 4), np.float32)
    assert np.array_equal(np.asarray(four).view(np.uint32), x.view(np.uint32))


def test_halves_of_bytes_are_not_seen():
    with pytest.raises(TypeError, match=r"bitcast_convert_type: i4\[16\] can't be seen as int8"):
        lax.bitcast_convert_type(all_values(INTEGERS["int4"]), np.int8)


def converting(dtypes):
    return {str(d): lambda x, d=d: lax.convert_element_type(x, d) for d in dtypes}


WIDE = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "uint64", "bool"]
WIDE = {n: np.dtype(getattr(ml_dtypes, n, n)) for n in WIDE}


@pytest.mark.parametrize("dtype", CONVERTED)
def test_conversion_to_wider_types(dtype):
    """Exact, but for integers: these saturate, and NaN becomes 0."""
    x = all_values(CONVERTED[dtype])
    values = x.astype(np.float64)

    def wanted(name):
        wide = WIDE[name]
        if wide.kind == "b":
            return values != 0, wide
        if wide.kind not in "iu":
            with np.errstate(all="ignore"):
                return values.astype(wide), wide
        if dtype in INTEGERS:
            return x.astype(np.int64).astype(wide), wide
        info = np.iinfo(wide)
        return np.clip(np.trunc(np.where(np.isnan(values), 0, values)), float(info.min), float(info.max)), wide

    check_all(converting(WIDE.values()), (x,), wanted)
    z = lax.convert_element_type(x, np.complex64)
    assert_same(z.real, values.astype(np.float32), np.float32, "real part")
    assert not np.asarray(z.imag).any()


@pytest.mark.parametrize("wide", ["float16", "bfloat16", "float32", "float64", "int32", "uint8"])
def test_conversion_to_narrower_types(wide):
    """Rounded as ml_dtypes does; floats to integers saturate, integers wrap."""
    wide = WIDE[wide]
    if wide.kind in "iu":
        x = np.arange(0 if wide.kind == "u" else -300, 256, dtype=wide)
    else:
        around = [f * all_values(d).astype(np.float64) for d in CONVERTED.values() for f in (1, 1.03, 0.97)]
        x = np.concatenate([*around, np.linspace(-600, 600, 500), [np.inf, -np.inf, 1e30]])
        with np.errstate(over="ignore"):
            x = x.astype(wide)
        x = x[(x == 0) | (abs(x) >= 2.0**-126)]  # XLA takes subnormal numbers of float32 for zero

    def wanted(name):
        narrow = {str(d): d for d in CONVERTED.values()}[name]
        if narrow not in INTEGERS.values():
            with np.errstate(all="ignore"):
                out = x.astype(narrow).astype(np.float64)
            return out, narrow
        if wide.kind in "iu":
            return wrapped(x, narrow), narrow
        info, values = ml_dtypes.iinfo(narrow), x.astype(np.float64)
        return np.clip(np.trunc(np.where(np.isnan(values), 0, values)), int(info.min), int(info.max)), narrow

    check_all(converting(CONVERTED.values()), (x,), wanted)
