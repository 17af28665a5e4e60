"""Records of comparisons, selection, rounding, operations on bits, and conversions between dtypes."""

import ml_dtypes
import numpy as np

from tests.ops.elementwise_arithmetic import wrong
from tests.ops.record import (
    ALL,
    BOOL,
    FLOATS,
    INTEGERS,
    REALS,
    Op,
    Sample,
    array,
    arrays,
    as_dtype,
    binary_edges,
    binary_samples,
    edge_values,
    kind,
    unary_edges,
    unary_samples,
)
from xform import lax
from xform.lax.rounding import trunc_p

ORDERED = BOOL + REALS


def comparison(function, reference, dtypes):
    """The record of a comparison."""
    name = function.__name__
    errors = [
        (lambda: function(np.ones(2), np.ones(2, int)), TypeError, rf"{name}.*f64\[2\], i64\[2\]"),
        (lambda: function(np.ones(2), np.ones(3)), TypeError, rf"{name}.*shape.*f64\[2\], f64\[3\]"),
    ]
    if "complex128" not in dtypes:
        errors.append((lambda: function(np.ones(2, complex), 1j), TypeError, rf"{name}.*c128\[2\]"))
    return Op(name, function, some_equal, reference, dtypes, binary_edges, differentiable=False, errors=errors)


def some_equal(rng, dtype):
    """Pairs, half of whose elements are equal."""
    out = []
    for s in binary_samples()(rng, dtype):
        x, y = s.args
        out.append(Sample((x, np.where(rng.integers(0, 2, y.shape), x, y) if x.shape == y.shape else y)))
    return out


def select_samples(rng, dtype):
    """Two cases chosen by booleans, any number by int32; predicate and cases also of rank 0."""
    out = []
    for shape in ((), (3,), (2, 3), (0, 2)):
        which = array(rng, "bool", shape)
        out.append(Sample((which, *arrays(rng, dtype, shape, shape))))
        which = np.asarray(rng.integers(0, 3, shape), np.int32)
        out.append(Sample((which, *arrays(rng, dtype, shape, shape, shape))))
    out.append(Sample((array(rng, "bool", (2, 3)), *arrays(rng, dtype, (), (2, 3)))))
    out.append(Sample((array(rng, "bool"), *arrays(rng, dtype, (2, 3), ()))))
    return out


def select_edges(dtype):
    """Numbers of cases out of range choose the first or the last one; more cases than NumPy's choose has."""
    values = edge_values(dtype)
    cases = [np.full(5, v) for v in np.resize(values, 70)]
    which = np.array([-3, 0, 40, 69, 100], np.int32)
    mask = np.arange(values.size) % 2 == 0
    return [Sample((which, *cases)), Sample((mask, values, values[::-1])), Sample((mask, values))]


def select_reference(which, *cases):
    shape = np.broadcast_shapes(which.shape, *(c.shape for c in cases))
    which = np.clip(np.broadcast_to(which, shape).astype(int), 0, len(cases) - 1)
    cases = np.stack([np.broadcast_to(c, shape) for c in cases])
    return np.take_along_axis(cases, which[None], 0)[0]


def clamp_samples(rng, dtype):
    """Bounds at 0 and 1, arguments not close to them; all of one shape, or bounds of rank 0."""
    out = []
    for shape in ((), (3,), (2, 3), (0, 2)):
        if kind(dtype) == "f":
            x = (np.asarray(rng.integers(-2, 3, shape)) + 0.5).astype(dtype)
        else:
            x = array(rng, dtype, shape)
        low, high = np.zeros(shape, dtype), np.ones(shape, dtype)
        out += (
            [Sample((low, x, high)), Sample((low[(0,) * len(shape)], x, dtype.type(1)))]
            if x.size
            else [Sample((low, x, high))]
        )
    return out


def clamp_edges(dtype):
    """All triples of a few edge values; bounds in the wrong order, too. Without zeros of two signs."""
    values = edge_values(dtype)
    values = values[values != 0] if kind(dtype) == "f" else values
    low, x, high = (a.ravel() for a in np.meshgrid(values[:6], values, values[-6:], indexing="ij"))
    return [Sample((low, x, high))]


def halves(rng, dtype):
    """Numbers, also half-way ones."""
    return [Sample((np.round(array(rng, dtype, s, -4, 4).astype(np.float64) * 2).astype(dtype) / dtype.type(2), *m))
            for s in ((), (3,), (2, 3), (0, 2)) for m in ((lax.RoundingMethod.TO_NEAREST_EVEN,), ())]  # fmt: skip


def rounding_edges(dtype):
    more = [2.5, -2.5, 0.49999997, 2**9 + 0.5, 8388609 if dtype.itemsize > 2 else 9, -0.3]
    values = np.concatenate([edge_values(dtype), np.array(more, dtype)])
    return [Sample((values,)), Sample((values, lax.RoundingMethod.TO_NEAREST_EVEN))]


def round_reference(x, rounding_method=lax.RoundingMethod.AWAY_FROM_ZERO):
    if rounding_method is lax.RoundingMethod.TO_NEAREST_EVEN:
        return np.round(x)
    wide = x.astype(np.longdouble)
    return np.copysign(np.floor(np.abs(wide) + np.longdouble(0.5)), wide).astype(x.dtype)


def neighbours(rng, dtype):
    pairs = binary_samples()(rng, dtype)
    return [s for s in pairs if s.args[0].shape == s.args[1].shape] + pairs[-2:]


def shift_samples(rng, dtype):
    return [
        Sample((array(rng, dtype, s, -100, 100), array(rng, dtype, t, 0, 7)))
        for s, t in (((), ()), ((3,), (3,)), ((2, 3), ()), ((), (2, 3)), ((0, 2), (0, 2)))
    ]


def shift_edges(dtype):
    bits = dtype.itemsize * 8
    amounts = np.array(
        [0, 1, bits - 1, bits, bits + 1, 100, -1] if kind(dtype) == "i" else [0, 1, bits - 1, bits, 255], dtype
    )
    values = edge_values(dtype)
    return [Sample((np.repeat(values, amounts.size), np.tile(amounts, values.size)))]


def shift_reference(direction, logical):
    """Shifts of Python's integers."""

    def shift(x, y):
        x, y = np.broadcast_arrays(x, y)
        bits = x.dtype.itemsize * 8

        def one(a, b):
            signed = (a + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
            a = a % 2**bits if logical else signed
            if not 0 <= b < bits:
                b = bits
            return (a << b if direction == "left" else a >> b) % 2**bits

        out = np.array([one(int(a), int(b)) for a, b in zip(x.flat, y.flat)], object).reshape(x.shape)
        return (
            out.astype(f"u{x.dtype.itemsize}").view(x.dtype)
            if x.ndim
            else np.asarray(out.item()).astype(f"u{x.dtype.itemsize}").view(x.dtype)
        )

    return shift


def of_bits(function):
    """A function of the string of bits of each element."""

    def apply(x):
        bits = x.dtype.itemsize * 8
        out = [function(format(int(v) % 2**bits, f"0{bits}b")) for v in x.flat]
        return np.array(out, x.dtype).reshape(x.shape)

    return apply


def logic(name, function, reference):
    """The record of a bitwise operation, whose primitive has the short name."""
    edges = unary_edges if name == "not" else binary_edges
    samples = unary_samples() if name == "not" else binary_samples()
    n = 1 if name == "not" else 2
    errors = [(lambda: function(*[np.ones(2)] * n), TypeError, rf"{function.__name__}.*f64\[2\]")]
    return Op(name, function, samples, reference, BOOL + INTEGERS, edges, differentiable=False, errors=errors)


# Conversions

EVERYTHING = (*ALL, "int4", "uint4", "float8_e4m3fn")


def convert(operand, new_dtype):
    return lax.convert_element_type(operand, as_dtype(new_dtype))


convert.__name__ = "convert_element_type"


def convert_samples(rng, dtype):
    return [Sample((array(rng, dtype, shape, 0, 3), new_dtype)) for new_dtype in ALL for shape in ((), (2, 3), (0, 2))]


def convert_edges(dtype):
    """The extremes of every type, each to every other type."""
    values = edge_values(dtype)
    if kind(dtype) == "f":
        more = [2.0**k + d for k in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, -0.5, 0)]
        with np.errstate(all="ignore"):
            values = np.concatenate([values, np.array(more).astype(dtype), np.array([-v for v in more]).astype(dtype)])
    if kind(dtype) == "c":
        values = values[np.isfinite(values.imag)]
    return [Sample((values, new_dtype)) for new_dtype in EVERYTHING if new_dtype != str(dtype)]


def convert_reference(operand, new_dtype):
    """Element by element; integers from floats by Python's, saturating."""
    new = as_dtype(new_dtype)
    is_integer = kind(new) in "iu" or new.name in ("int4", "uint4")
    x = np.asarray(operand)
    if kind(x.dtype) == "c" and kind(new) not in "cb":
        x = x.real
    if not is_integer or kind(x.dtype) not in "f":
        return x.astype(new)
    info = ml_dtypes.iinfo(new)
    low, high = int(info.min), int(info.max)

    def one(v):
        return 0 if np.isnan(v) else low if v <= low else high if v >= high else int(v)

    return (
        np.array([one(float(v)) for v in x.flat], object).astype(int if low else np.uint64).astype(new).reshape(x.shape)
    )


def bitcast_samples(rng, dtype):
    out = []
    for new_dtype in ("uint8", "int16", "float32", "uint64", "bfloat16", "float64"):
        size = as_dtype(new_dtype).itemsize
        last = () if size <= dtype.itemsize else (size // dtype.itemsize,)
        out += [Sample((array(rng, dtype, (*s, *last), 0, 3), new_dtype)) for s in ((), (3,), (0, 2))]
    return out


def bitcast(operand, new_dtype):
    return lax.bitcast_convert_type(operand, as_dtype(new_dtype))


def bitcast_reference(operand, new_dtype):
    new = as_dtype(new_dtype)
    x = np.ascontiguousarray(operand).reshape(np.shape(operand))
    shape = x.shape if new.itemsize == x.itemsize else (*x.shape, -1) if new.itemsize < x.itemsize else x.shape[:-1]
    flat = np.frombuffer(x.tobytes(), new)
    return flat.reshape([x.itemsize // new.itemsize if d == -1 else d for d in shape])


bitcast.__name__ = "bitcast_convert_type"


def precision_samples(rng, dtype):
    return [Sample((array(rng, dtype, s), e, m)) for s in ((), (2, 3), (0, 2)) for e, m in ((5, 3), (8, 7), (3, 1))]


def precision_edges(dtype):
    more = [1 / 3, 65519, 65520, 1e-6, 6.1e-5, 2.5, 3.5, 448, 480]
    with np.errstate(all="ignore"):
        values = np.concatenate([edge_values(dtype), np.array(more).astype(dtype)])
    return [Sample((values, e, m)) for e, m in ((5, 10), (8, 7), (4, 3), (2, 1), (11, 52))]


def precision_reference(operand, exponent_bits, mantissa_bits):
    """By arithmetic in double precision."""
    x = np.asarray(operand, np.float64)
    bits = min(mantissa_bits, 23 if operand.dtype == np.float32 else 52)
    fraction, exponent = np.frexp(x)
    scale = 2.0 ** (bits + 1)
    with np.errstate(all="ignore"):
        rounded = np.ldexp(np.round(fraction * scale) / scale, exponent)
    rounded = np.where(fraction == 0, x, rounded)
    bias = 2 ** (exponent_bits - 1) - 1
    with np.errstate(all="ignore"):
        too_large = np.abs(rounded) / 2 >= 2.0**bias
        rounded = np.where(too_large, np.copysign(np.inf, x), rounded)
        rounded = np.where(np.abs(rounded) < 2.0 ** (1 - bias), np.copysign(0.0, x), rounded)
    return np.where(np.isnan(x), x, rounded).astype(operand.dtype)


def mulhi(x, y):
    """From Python's integers of any length."""
    bits = x.dtype.itemsize * 8
    x, y = np.broadcast_arrays(x, y)
    return np.array([int(a) * int(b) >> bits for a, b in zip(x.flat, y.flat)], x.dtype).reshape(x.shape)


def trunc(x):
    return trunc_p.bind(x)


OPS = [
    comparison(lax.eq, np.equal, ALL),
    comparison(lax.ne, np.not_equal, ALL),
    comparison(lax.lt, np.less, ORDERED),
    comparison(lax.le, np.less_equal, ORDERED),
    comparison(lax.gt, np.greater, ORDERED),
    comparison(lax.ge, np.greater_equal, ORDERED),
    Op(
        "select_n", lax.select_n, select_samples, select_reference, ALL, select_edges,
        errors=[
            (lambda: lax.select_n(np.ones(2), 1.0, 2.0), TypeError, r"select_n.*boolean.*f64\[2\]"),
            (lambda: lax.select_n(True, 1.0, 2.0, 3.0), TypeError, r"select_n.*3 cases"),
            (lambda: lax.select_n(True, np.ones(2), np.ones(2, int)), TypeError, r"select_n.*f64\[2\], i64\[2\]"),
            (lambda: lax.select_n(np.ones(3, bool), np.ones(2), np.ones(2)), TypeError, r"select_n.*bool\[3\]"),
        ],
    ),
    Op(
        "select_n:select", lax.select,
        lambda rng, dtype: [Sample((array(rng, "bool", s), *arrays(rng, dtype, s, s))) for s in ((), (2, 3))],
        lambda which, x, y: np.where(which, x, y), ALL,
        errors=[
            (lambda: lax.select(np.ones(3, bool), np.ones(2), np.ones(2)), TypeError,
             r"select_n .*bool\[3\], f64\[2\]"),
            (lambda: lax.select(np.ones(2), np.ones(2), np.ones(2)), TypeError, r"select_n: .*f64\[2\] for 2 cases"),
        ],
    ),
    Op(
        "clamp", lax.clamp, clamp_samples, lambda low, x, high: np.minimum(np.maximum(x, low), high), ORDERED,
        clamp_edges,
        errors=[(lambda: lax.clamp(0, np.ones(2, complex), 1), TypeError, r"clamp.*c128\[2\]")],
    ),
    Op("floor", lax.floor, unary_samples(), np.floor, FLOATS, unary_edges,
       errors=[(lambda: lax.floor(np.arange(2)), TypeError, r"floor.*i64\[2\]")]),
    Op("ceil", lax.ceil, unary_samples(), np.ceil, FLOATS, unary_edges,
       errors=[(lambda: lax.ceil(np.arange(2)), TypeError, r"ceil.*i64\[2\]")]),
    Op("trunc", trunc, unary_samples(), np.trunc, FLOATS, unary_edges,
       errors=[(lambda: trunc(np.arange(2)), TypeError, r"trunc.*i64\[2\]")]),
    Op("round", lax.round, halves, round_reference, FLOATS, rounding_edges, differentiable=False,
       errors=[(lambda: lax.round(np.ones(2), 7), ValueError, "round: .*7 is not a valid RoundingMethod")]),
    Op(
        "is_finite", lax.is_finite, unary_samples(), np.isfinite, FLOATS, unary_edges, differentiable=False,
        errors=[
            wrong(lax.is_finite, "complex128"),
            wrong(lax.is_finite, "int64"),
        ],
    ),
    Op("nextafter", lax.nextafter, neighbours, np.nextafter, ("float32", "float64"), binary_edges,
       differentiable=False,
        errors=[
            wrong(lax.nextafter, "int64", "int64"),
            (lambda: lax.nextafter(np.ones(2), np.ones(3)), TypeError, r"nextafter .*f64\[2\], f64\[3\]"),
        ],
    ),
    Op(
        "nextafter:half", lax.nextafter, neighbours, None, ("float16", "bfloat16"), binary_edges, differentiable=False,
        errors=[
            (lambda: lax.nextafter(np.ones(2, np.float16), np.ones(2, np.float32)), TypeError,
             r"nextafter .*f16\[2\], f32\[2\]"),
        ],
    ),
    Op(
        "reduce_precision", lax.reduce_precision, precision_samples, precision_reference, ("float32", "float64"),
        precision_edges, differentiable=False,
        errors=[
            (lambda: lax.reduce_precision(np.ones(2), 0, 3), ValueError, "reduce_precision.*exponent_bits.*0"),
            (lambda: lax.reduce_precision(np.arange(2), 5, 3), TypeError, r"reduce_precision.*i64\[2\]"),
        ],
    ),
    Op("reduce_precision:half", lax.reduce_precision, precision_samples, None, ("float16", "bfloat16"), precision_edges,
       differentiable=False,
        errors=[
            (lambda: lax.reduce_precision(np.ones(2, np.float16), 5, -1), ValueError,
             "reduce_precision: .* got 5 and -1"),
            (lambda: lax.reduce_precision(np.ones(2, np.float16), 5.5, 1), TypeError, "reduce_precision: .* 5.5"),
        ],
    ),
    logic("and", lax.bitwise_and, np.bitwise_and),
    logic("or", lax.bitwise_or, np.bitwise_or),
    logic("xor", lax.bitwise_xor, np.bitwise_xor),
    logic("not", lax.bitwise_not, np.bitwise_not),
    Op("shift_left", lax.shift_left, shift_samples, shift_reference("left", True), INTEGERS, shift_edges,
       differentiable=False, errors=[(lambda: lax.shift_left(1.0, 2.0), TypeError, "shift_left.*f64")]),
    Op("shift_right_logical", lax.shift_right_logical, shift_samples, shift_reference("right", True), INTEGERS,
       shift_edges, differentiable=False,
        errors=[
            (lambda: lax.shift_right_logical(np.ones(2, int), np.ones(3, int)), TypeError,
             r"shift_right_logical .*i64\[2\], i64\[3\]"),
        ],
    ),
    Op("shift_right_arithmetic", lax.shift_right_arithmetic, shift_samples, shift_reference("right", False), INTEGERS,
       shift_edges, differentiable=False,
        errors=[
            (lambda: lax.shift_right_arithmetic(np.ones(2, int), np.int8(1)), TypeError,
             r"shift_right_arithmetic .*i64\[2\], i8\[\]"),
        ],
    ),
    Op("population_count", lax.population_count, unary_samples(), of_bits(lambda bits: bits.count("1")), INTEGERS,
       unary_edges, differentiable=False,
        errors=[
            wrong(lax.population_count, "bool"),
            wrong(lax.population_count, "float64"),
        ],
    ),
    Op(
        "mulhi", lax.mulhi, binary_samples(-100, 100), mulhi, INTEGERS, binary_edges, differentiable=False,
        errors=[(lambda: lax.mulhi(np.ones(2), np.ones(2)), TypeError, r"mulhi.*f64\[2\]"),
                (lambda: lax.mulhi(np.ones(2, int), np.ones(3, int)), TypeError, r"mulhi.*i64\[2\], i64\[3\]")],
    ),
    Op("clz", lax.clz, unary_samples(), of_bits(lambda bits: (bits + "1").index("1")), INTEGERS, unary_edges,
       differentiable=False, errors=[wrong(lax.clz, "bool"), wrong(lax.clz, "float64")]),
    Op(
        "convert_element_type", convert, convert_samples, convert_reference, ALL, convert_edges, order=1,
        errors=[(lambda: lax.convert_element_type(np.ones(2), "U3"), TypeError, "convert_element_type.*U3")],
    ),
    Op(
        "bitcast_convert_type", bitcast, bitcast_samples, bitcast_reference,
        ("int8", "uint16", "int32", "float32", "uint64"), differentiable=False,
        errors=[
            (lambda: bitcast(np.ones(3, np.int8), "int16"), TypeError, r"bitcast_convert_type.*i8\[3\].*2"),
            (lambda: bitcast(np.ones(3, bool), "int8"), TypeError, r"bitcast_convert_type.*bool\[3\]"),
        ],
    ),
    Op(
        "stop_gradient", lax.stop_gradient, unary_samples(), lambda x: x, ALL, unary_edges, differentiable=False,
        errors=[
            (lambda: lax.stop_gradient("x"), TypeError, "stop_gradient .*'x' of type str"),
        ],
    ),
]  # fmt: skip
