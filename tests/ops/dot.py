"""Records of `dot_general` and what is made of it."""

import numpy as np

from tests.ops.record import ALL, FLOATS, INTS, Op, Sample, arrays, as_dtype
from xform import lax

# (lhs shape, rhs shape, dimension numbers): ((contracting), (batch)), of which the mapped axes of vmap come on top.
CHOICES = [
    ((3,), (3,), (((0,), (0,)), ((), ()))),
    ((2, 3), (3,), (((1,), (0,)), ((), ()))),
    ((3,), (3, 2), (((0,), (0,)), ((), ()))),
    ((2, 3), (3, 4), (((1,), (0,)), ((), ()))),
    ((3, 2), (4, 3), (((0,), (1,)), ((), ()))),
    ((2, 3), (2, 3), (((0, 1), (0, 1)), ((), ()))),
    ((2, 3), (3, 2), (((1, 0), (0, 1)), ((), ()))),
    ((2,), (3,), (((), ()), ((), ()))),
    ((), (), (((), ()), ((), ()))),
    ((), (2, 3), (((), ()), ((), ()))),
    ((2, 3), (2, 3), (((), ()), ((0, 1), (0, 1)))),
    ((5, 2, 3), (5, 3, 4), (((2,), (1,)), ((0,), (0,)))),
    ((2, 5, 3), (3, 4, 5), (((2,), (0,)), ((1,), (2,)))),
    ((2, 3, 4, 5), (4, 3, 2), (((2,), (0,)), ((1, 0), (1, 2)))),
    ((2, 3, 4), (5, 4, 3, 2), (((-1, 1), (1, -2)), ((0,), (-1,)))),
    ((0, 3), (3, 2), (((1,), (0,)), ((), ()))),
    ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
    ((1, 3), (3, 1), (((1,), (0,)), ((), ()))),
]


def samples(rng, dtype):
    return [Sample((*arrays(rng, dtype, x, y), numbers)) for x, y, numbers in CHOICES]


def products(*shapes):
    """Samples of a function of two arrays."""
    return lambda rng, dtype: [Sample(arrays(rng, dtype, *s)) for s in shapes]


def edges(dtype):
    """Integers wrap around; infinities and NaN of floats go their own ways."""
    if as_dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        x = np.array([[info.max, info.max], [info.min, 3]], dtype)
        return [Sample((x, x, (((1,), (0,)), ((), ())))), Sample((x[0], x[1], (((0,), (0,)), ((), ()))))]
    if as_dtype(dtype).kind in "bc":
        return []
    x = np.array([[np.inf, 1, 0], [np.nan, 2, 0], [3, -np.inf, 0], [0.5, 0.25, 4]], dtype)
    y = np.array([[1, 2], [3, 4], [5, 6]], dtype)
    return [Sample((x, y, (((1,), (0,)), ((), ())))), Sample((y, x[:, :2], (((1,), (1,)), ((), ()))))]


def reference(x, y, dimension_numbers):
    """By einsum, which counts in the dtype of the operands."""
    (xc, yc), (xb, yb) = dimension_numbers
    xc, yc, xb, yb = ([d % v.ndim for d in ds] for ds, v in ((xc, x), (yc, y), (xb, x), (yb, y)))
    x_names, y_names = list(range(x.ndim)), [10 + d for d in range(y.ndim)]
    for i, j in zip([*xc, *xb], [*yc, *yb], strict=True):
        y_names[j] = x_names[i]
    free = [x_names[d] for d in range(x.ndim) if d not in (*xc, *xb)]
    free += [y_names[d] for d in range(y.ndim) if d not in (*yc, *yb)]
    return np.einsum(x, x_names, y, y_names, [x_names[d] for d in xb] + free)


def preferred(x, y, dimension_numbers):
    """A result of a wider type."""
    wider = {"int8": "int32", "int16": "int64", "float16": "float32", "bfloat16": "float32", "float32": "float64"}
    wider |= {"uint8": "uint32", "complex64": "complex128"}
    return lax.dot_general(x, y, dimension_numbers, preferred_element_type=wider[np.dtype(x.dtype).name])


def preferred_reference(x, y, dimension_numbers):
    wide = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64, "c": np.complex128}[x.dtype.kind]
    return reference(x.astype(wide), y.astype(wide), dimension_numbers)


def preferred_edges(dtype):
    return edges(dtype) if as_dtype(dtype).kind in "iu" else []


def precise(x, y, dimension_numbers):
    return lax.dot_general(x, y, dimension_numbers, precision=("high", lax.Precision.HIGHEST))


def in_doubles(x, y, dimension_numbers):
    """An algorithm that rounds nothing away."""
    return lax.dot_general(x, y, dimension_numbers, precision=lax.DotAlgorithmPreset.F64_F64_F64)


def in_singles(x, y, dimension_numbers):
    """The same said in full, of an algorithm that rounds operands, and adds in a wider type."""
    algorithm = lax.DotAlgorithm(np.float16, np.float16, np.float32)
    return lax.dot_general(x, y, dimension_numbers, algorithm, preferred_element_type="float32")


def in_singles_reference(x, y, dimension_numbers):
    return reference(*(v.astype(np.float16).astype(np.float32) for v in (x, y)), dimension_numbers)


def weighted(x):
    """Both operands from one array: derivatives add up."""
    return lax.dot(x, lax.dot(x, x))


x32, y32 = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
MATMUL = (((1,), (0,)), ((), ()))

OPS = [
    Op(
        "dot_general", lax.dot_general, samples, reference, ALL, edges=edges,
        ulps=16, rtol={"float32": 1e-5, "complex64": 1e-5},
        errors=[
            (lambda: lax.dot_general(x32, x32, MATMUL), TypeError, r"dot_general: contracting .* f32\[2,3\]"),
            (lambda: lax.dot_general(x32, y32, (((2,), (0,)), ((), ()))), TypeError, r"dot_general: .*2.* f32\[2,3\]"),
            (lambda: lax.dot_general(x32, y32, (((1,), (0,)), ((1,), (1,)))), TypeError, r"dot_general: .* different"),
            (lambda: lax.dot_general(x32, x32, (((1,), (1,)), ((0,), ()))), TypeError, r"dot_general: batch"),
            (lambda: lax.dot_general(x32, y32.astype(int), MATMUL), TypeError, r"dot_general .*f32\[2,3\], i64\[3,2\]"),
            (lambda: lax.dot_general(x32, y32, MATMUL, "best"), ValueError, r"dot_general: precision .*'best'"),
            (lambda: lax.dot_general(x32, y32, MATMUL, None, "int64"), TypeError, r"dot_general: preferred.* int64"),
            (lambda: lax.dot_general(x32, y32, MATMUL, None, "float16"), TypeError, r"dot_general: pref.* float16"),
        ],
    ),
    Op(
        "dot_general:preferred", preferred, samples, preferred_reference,
        [*INTS[:2], "uint8", *FLOATS[:3], "complex64"], edges=preferred_edges,
        rtol={"float32": 1e-5, "complex64": 1e-5}, ulps=16,
        errors=[
            (lambda: lax.dot_general(x32, y32, MATMUL, None, "complex64"), TypeError,
             r"dot_general: preferred.* complex64"),
        ],
    ),
    Op(
        "dot_general:precision", precise, lambda rng, dtype: samples(rng, dtype)[3:4], reference,
        ["float32", "float64"], rtol={"float32": 1e-5},
        errors=[
            (lambda: lax.dot_general(x32, y32, MATMUL, ("high", "higher")), ValueError,
             "dot_general: precision .*'higher'"),
            (lambda: lax.dot_general(x32, y32, MATMUL, ("high",) * 3), ValueError, "dot_general: precision .*a pair"),
        ],
    ),
    Op(
        "dot_general:in_doubles", in_doubles, samples, reference, ["float32", "float64"],
        rtol={"float32": 1e-5}, ulps=16,
        errors=[
            (lambda: lax.dot(x32, y32, precision="TF32_TF32_F32"), ValueError, "dot_general: .*TF32.* not .* on CPU"),
            (lambda: lax.dot(x32, y32, precision="ANY_F8_ANY_F8_F32"), TypeError, "dot_general: .* float8 .*float32"),
            (lambda: lax.dot(x32 * 1j, y32 * 1j, precision="F32_F32_F32"), TypeError, r"dot_general: .* c64\[2,3\]"),
        ],
    ),
    Op(
        "dot_general:in_singles", in_singles, samples, in_singles_reference, ["float16", "float32", "float64"],
        differentiable=False, rtol=1e-5, ulps=16,
        errors=[
            (lambda: in_singles(x32.astype(int), y32.astype(int), MATMUL), TypeError,
             r"dot_general: .* for floats, got i64\[2,3\]"),
        ],
    ),
    Op(
        "dot_general:dot", lax.dot,
        products(((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4))),
        np.dot, ["float64", "int64", "complex128"], ulps=16,
        errors=[
            (lambda: lax.dot(x32, x32), TypeError, r"dot: .* f32\[2,3\] and f32\[2,3\]"),
            (lambda: lax.dot(x32[0, 0], x32), TypeError, r"dot: .* f32\[\] and f32\[2,3\]"),
        ],
    ),
    Op(
        "dot_general:batch_matmul", lax.batch_matmul,
        products(((2, 3), (3, 2)), ((5, 2, 3), (5, 3, 4)), ((0, 2, 3), (0, 3, 4))),
        np.matmul, ["float64", "int64"], ulps=16,
        errors=[(lambda: lax.batch_matmul(x32, x32), TypeError, r"batch_matmul: .* f32\[2,3\] and f32\[2,3\]")],
    ),
    Op(
        "dot_general:cube", weighted, lambda rng, dtype: [Sample(arrays(rng, dtype, (3, 3)))], lambda x: x @ (x @ x),
        ["float64", "complex128"], ulps=16,
        errors=[
            (lambda: weighted(x32), TypeError, r"dot: .* f32\[2,3\] and f32\[2,3\]"),
        ],
    ),
]  # fmt: skip
