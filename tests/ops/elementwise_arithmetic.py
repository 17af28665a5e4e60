"""Records of arithmetic, powers and the parts of complex numbers."""

import numpy as np

from tests.ops.record import (
    COMPLEX,
    FLOATS,
    INEXACT,
    NUMBERS,
    REALS,
    SHAPES,
    Op,
    Sample,
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
from xform.lax.arithmetic import sum_of_products_p
from xform.lax.logaddexp import logaddexp2_p, logaddexp_p
from xform.lax.pairs import floor_divide_p, fmax_p, fmin_p, hypot_p, remainder_p


def truncated(x, y):
    """Python's integers, rounded towards zero."""
    info = np.iinfo(x.dtype)

    def divide(a, b):
        if b == 0:
            return -1
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    def wrap(n):
        return (n - info.min) % 2**info.bits + info.min

    quotient = np.array([wrap(divide(int(a), int(b))) for a, b in zip(x.flat, y.flat)], object)
    return quotient.reshape(x.shape).astype(x.dtype)


def div_reference(x, y):
    x, y = np.broadcast_arrays(x, y)
    return np.true_divide(x, y) if x.dtype.kind in "fc" else truncated(x, y)


def rem_reference(x, y):
    x, y = np.broadcast_arrays(x, y)
    return np.fmod(x, y) if x.dtype.kind == "f" else np.where(y == 0, x, x - truncated(x, y) * y)


def sign_reference(x):
    return np.where(x == 0, 0, np.sign(x)).astype(x.dtype)


def away_from_zero(low=0.5, high=2.0):
    """Pairs whose second member is not near zero; of both signs where the dtype has them."""

    def samples(rng, dtype):
        out = []
        for s in binary_samples()(rng, dtype):
            x, y = s.args
            if kind(dtype) in "fc":
                y = arrays(rng, dtype, y.shape, low=low, high=high)[0]
                y = y * rng.choice([-1, 1], y.shape).astype(dtype)
            else:
                y = np.where(y == 0, np.ones((), dtype), y).astype(dtype)
            out.append(Sample((x, y)))
        return out

    return samples


def no_multiples(rng, dtype):
    """Points at which the remainder is smooth."""
    if kind(dtype) != "f":
        return away_from_zero()(rng, dtype)
    out = []
    for s in binary_samples()(rng, dtype):
        x, y = s.args
        y = arrays(rng, dtype, y.shape, low=0.7, high=1.3)[0]
        quotient = rng.integers(-3, 3, np.broadcast_shapes(x.shape, y.shape)) if x.shape else 2
        out.append(
            Sample(((np.asarray(quotient) * y + 0.25 * y).astype(dtype) if x.shape else x * 0 + y.dtype.type(0.3), y))
        )
    return out


def distinct(rng, dtype):
    """Pairs that are nowhere near equal, so that the larger one stays the larger."""
    out = []
    for s in binary_samples()(rng, dtype):
        x, y = s.args
        if kind(dtype) in "fc":
            x = np.round(x.astype(np.complex128 if kind(dtype) == "c" else np.float64)).astype(dtype)
            y = (np.round(y.astype(x.dtype)) + as_dtype(dtype).type(0.4)).astype(dtype)
        out.append(Sample((x, y)))
    return out


def one_kind_of_zero(dtype):
    """Pairs of edge values without -0.0: which of the zeros is the larger one is left open, as in NumPy."""
    (pair,) = binary_edges(dtype)
    return [Sample(tuple(x + np.zeros((), dtype) for x in pair.args))] if kind(dtype) in "fc" else [pair]


def real_edges(edges):
    """Edge cases for real numbers only: which of the parts of a complex result are infinite is not specified."""
    return lambda dtype: [] if kind(dtype) == "c" else edges(dtype)


def nonzero(rng, dtype):
    return [
        Sample((np.where(abs(x) < 0.1, x + x.dtype.type(0.5), x).astype(x.dtype),))
        for s in unary_samples()(rng, dtype)
        for x in s.args
    ]


def without_nan(dtype):
    """Edge values; of complex ones those without NaN: what is infinite then differs between C and XLA."""
    values = edge_values(dtype)
    return [Sample((values[~np.isnan(values)],))] if kind(dtype) == "c" else [Sample((values,))]


def wrong(function, *dtypes):
    """An error for operands of these dtypes that names the function and the types."""
    args = [np.ones(2, d) for d in dtypes]
    short = {
        "bool": "bool",
        "complex128": "c128",
        "complex64": "c64",
        "int64": "i64",
        "float32": "f32",
        "float64": "f64",
    }
    pattern = ".*".join([function.__name__, *(rf"{short[d]}\[2\]" for d in dtypes)])
    return (lambda: function(*args), TypeError, pattern)


def shapes(function):
    """An error for operands of different shapes."""
    return (
        lambda: function(np.ones(2), np.ones((2, 1))),
        TypeError,
        rf"{function.__name__}.*shape.*f64\[2\], f64\[2,1\]",
    )


def integer_pow_reference(x, y):
    return x ** x.dtype.type(y) if x.dtype.kind in "iu" else np.power(x, np.asarray(y, x.dtype))


def integer_pow(y):
    """The record of one exponent."""
    return Op(
        f"integer_pow:{y}",
        lax.integer_pow,
        lambda rng, dtype: [Sample((*s.args, y)) for s in nonzero(rng, dtype)],
        integer_pow_reference,
        INEXACT if y < 0 else NUMBERS,
        real_edges(lambda dtype: [Sample((edge_values(dtype), y))]),
        errors=[
            (lambda: lax.integer_pow(np.ones(2, bool), y), TypeError, r"integer_pow .* bool\[2\]"),
            (lambda: lax.integer_pow(np.ones(2), y + 0.5), TypeError, rf"integer_pow: .* got {y + 0.5}"),
        ],
    )


def pow_samples(rng, dtype):
    pairs = binary_samples(low=0.3, high=2)(rng, dtype)
    if kind(dtype) in "fc":
        x = arrays(rng, dtype, (2, 3), low=0.3, high=2)[0]
        pairs += [Sample((x, np.array([[-2, 0, 1], [2, 3, -1]]))), Sample((x, np.int8(3)))]
    return pairs


def pow_edges(dtype):
    if kind(dtype) == "c":
        return []
    values = np.concatenate([edge_values(dtype), np.array([2, 0.5, -0.5, -3] if kind(dtype) == "f" else [3], dtype)])
    if kind(dtype) == "i":
        values = np.concatenate([values, np.array([-2, -3], dtype)])
    return [Sample((np.repeat(values, values.size), np.tile(values, values.size)))]


def pow_reference(x, y):
    if x.dtype.kind in "fc":
        return np.power(x, y.astype(x.dtype))
    x, y = np.broadcast_arrays(x, y)
    info = np.iinfo(x.dtype)

    def power(a, b):
        if b < 0:
            return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
        return (pow(a, b, 2**info.bits) - info.min) % 2**info.bits + info.min

    out = np.array([power(int(a), int(b)) for a, b in zip(x.flat, y.flat)], object)
    return out.reshape(x.shape).astype(x.dtype)


def products_samples(rng, dtype):
    """Sums of two and of three products, with operands of rank 0 among them."""
    shapes = [[s] * 4 for s in SHAPES] + [[(2, 3), (), (), (2, 3)], [(), (), (3,), (3,)], [(3,)] * 6]
    return [Sample(arrays(rng, dtype, *operands)) for operands in shapes]


def products_edges(dtype):
    x = edge_values(dtype)
    y = np.roll(x, 1)
    return [Sample((x, y, y, x[::-1].copy()))]


def sum_of_products(*operands):
    n = len(operands) // 2
    total = operands[0] * operands[n]
    for x, y in zip(operands[1:n], operands[n + 1 :], strict=True):
        total = total + x * y
    return total


def bind_products(*operands):
    return sum_of_products_p.bind(*operands)


def of_pairs(p, samples, reference, dtypes, edges, **options):
    """The record of a primitive for which there is no function in `xform.lax`."""

    def function(x, y):
        return p.bind(x, y)

    function.__name__ = p.name
    refused = wrong(function, *("complex128",) * 2) if "complex128" not in dtypes else wrong(function, *("int64",) * 2)
    return Op(p.name, function, samples, reference, dtypes, edges, errors=[refused, shapes(function)], **options)


OPS = [
    Op("neg", lax.neg, unary_samples(), np.negative, NUMBERS, unary_edges, errors=[wrong(lax.neg, "bool")]),
    Op(
        "add", lax.add, binary_samples(), np.add, NUMBERS, binary_edges,
        errors=[wrong(lax.add, "bool", "bool"), wrong(lax.add, "int64", "float64"), shapes(lax.add),
                (lambda: lax.add(np.ones(2, "int8"), 300), OverflowError, "add.*300.*int8"),
                (lambda: lax.add(np.ones(2), "1"), TypeError, "add .*'1' of type str")],
    ),
    Op("sub", lax.sub, binary_samples(), np.subtract, NUMBERS, binary_edges, errors=[shapes(lax.sub)]),
    Op("mul", lax.mul, binary_samples(), np.multiply, NUMBERS, binary_edges, errors=[shapes(lax.mul)]),
    Op(
        "sum_of_products", bind_products, products_samples, sum_of_products, NUMBERS, real_edges(products_edges),
        ulps=16, errors=[(lambda: bind_products(np.ones(2), np.ones(3)), TypeError, r"sum_of_products.*f64\[3\]")],
    ),
    Op(
        "div", lax.div, away_from_zero(), div_reference, NUMBERS, real_edges(binary_edges),
        errors=[wrong(lax.div, "bool", "bool"), shapes(lax.div)],
    ),
    Op(
        "rem", lax.rem, no_multiples, rem_reference, REALS, binary_edges,
        errors=[wrong(lax.rem, "complex128", "complex128"), shapes(lax.rem)],
    ),
    Op("max", lax.max, distinct, np.maximum, NUMBERS, one_kind_of_zero, errors=[shapes(lax.max)]),
    Op("min", lax.min, distinct, np.minimum, NUMBERS, one_kind_of_zero, errors=[shapes(lax.min)]),
    of_pairs(floor_divide_p, no_multiples, np.floor_divide, FLOATS, binary_edges),
    of_pairs(remainder_p, no_multiples, np.remainder, FLOATS, binary_edges),
    of_pairs(fmax_p, distinct, np.fmax, INEXACT, real_edges(one_kind_of_zero)),
    of_pairs(fmin_p, distinct, np.fmin, INEXACT, real_edges(one_kind_of_zero)),
    of_pairs(logaddexp_p, binary_samples(), np.logaddexp, FLOATS, binary_edges),
    of_pairs(logaddexp2_p, binary_samples(), np.logaddexp2, FLOATS, binary_edges),
    of_pairs(hypot_p, away_from_zero(), np.hypot, FLOATS, binary_edges),
    Op("sign", lax.sign, nonzero, sign_reference, NUMBERS, real_edges(unary_edges), errors=[wrong(lax.sign, "bool")]),
    Op("abs", lax.abs, nonzero, np.abs, NUMBERS, without_nan, errors=[wrong(lax.abs, "bool")]),
    Op(
        "complex", lax.complex, binary_samples(), lambda x, y: x + 1j * y, ("float32", "float64"),
        errors=[wrong(lax.complex, "float32", "float64"), shapes(lax.complex)],
    ),
    Op("real", lax.real, unary_samples(), np.real, COMPLEX, unary_edges, errors=[wrong(lax.real, "float64")]),
    Op("imag", lax.imag, unary_samples(), np.imag, COMPLEX, unary_edges, errors=[wrong(lax.imag, "float64")]),
    Op(
        "conj", lax.conj, unary_samples(), np.conj, COMPLEX, unary_edges,
        errors=[
            wrong(lax.conj, "bool"),
            wrong(lax.conj, "int64"),
        ],
    ),
    Op(
        "conj:real", lax.conj, unary_samples(), lambda x: x + 0j, ("float32", "float64"),
        errors=[
            (lambda: lax.conj("1"), TypeError, "conj: .* '1' of type str"),
        ],
    ),
    Op("square", lax.square, unary_samples(), np.square, NUMBERS, unary_edges, errors=[wrong(lax.square, "bool")]),
    Op("sqrt", lax.sqrt, unary_samples(0.2, 3), np.sqrt, INEXACT, unary_edges, errors=[wrong(lax.sqrt, "int64")]),
    Op(
        "rsqrt", lax.rsqrt, unary_samples(0.2, 3), lambda x: 1 / np.sqrt(x), INEXACT, real_edges(unary_edges),
        errors=[
            wrong(lax.rsqrt, "int64"),
            wrong(lax.rsqrt, "bool"),
        ],
    ),
    Op("cbrt", lax.cbrt, nonzero, np.cbrt, FLOATS, unary_edges, errors=[wrong(lax.cbrt, "complex128")]),
    *map(integer_pow, (-3, -1, 0, 1, 2, 5)),
    Op(
        "integer_pow:errors", lax.integer_pow, unary_samples(y=3), integer_pow_reference, ("float64",),
        errors=[(lambda: lax.integer_pow(np.arange(2), -1), TypeError, r"integer_pow.*i64\[2\].*-1")],
    ),
    Op(
        "integer_pow:reciprocal", lax.reciprocal, nonzero, lambda x: 1 / x, INEXACT, real_edges(unary_edges),
        errors=[
            (lambda: lax.reciprocal(np.arange(2)), TypeError, r"integer_pow.*i64\[2\].*-1"),
        ],
    ),
    Op(
        "pow", lax.pow, pow_samples, pow_reference, NUMBERS, pow_edges,
        errors=[wrong(lax.pow, "float32", "float64"), wrong(lax.pow, "bool", "bool"), shapes(lax.pow)],
    ),
]  # fmt: skip
