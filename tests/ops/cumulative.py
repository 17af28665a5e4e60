"""Records of cumulative operations, linear recurrences and the prefix scan."""

import numpy as np

from tests.ops.record import COMPLEX, FLOATS, INEXACT, NUMBERS, Op, Sample, array, arrays, edge_values
from xform import lax
from xform.lax.cumulative import linear_recurrence_p

SHAPES_AND_AXES = [((4,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 5, 3), -2), ((1, 4, 1), 1), ((0, 2), 0), ((0, 2), 1)]
CHOICES = [(shape, axis, reverse) for shape, axis in SHAPES_AND_AXES for reverse in (False, True)]


def samples(low=-2, high=2):
    return lambda rng, dtype: [Sample((array(rng, dtype, s, low, high), a, r)) for s, a, r in CHOICES]


def with_zeros(rng, dtype):
    out = samples()(rng, dtype)
    for k in (1, 2, 3):
        x = array(rng, dtype, (5, 2))
        x[1 : k + 1, 0] = 0
        out.append(Sample((x, 0, False)))
    return out


def edges(dtype):
    """Every edge value after every other."""
    values = edge_values(dtype)
    two = np.stack([np.repeat(values, values.size), np.tile(values, values.size)])
    return [Sample((two, 0, False)), Sample((two, 0, True))]


def extreme_edges(dtype):
    """Without -0.0: which zero is the larger one, or results from several, is left open."""
    return [Sample((s.args[0] + np.zeros((), dtype), *s.args[1:])) for s in edges(dtype)]


def accumulated(ufunc):
    def reference(x, axis, reverse):
        x = np.flip(x, axis) if reverse else x
        out = ufunc.accumulate(x, axis, dtype=x.dtype)
        return np.flip(out, axis) if reverse else out

    return reference


def recurrence(a, b, axis, reverse):
    return linear_recurrence_p.bind(a, b, axis=axis, reverse=reverse)


def recurrence_samples(rng, dtype):
    """More steps than lanes and fewer, which the host computes in two ways."""
    choices = [((4,), 0), ((9, 2), 0), ((2, 9), 0), ((3, 2, 4), 1), ((0, 2), 0), ((0, 2), 1), ((1,), 0)]
    return [Sample((*arrays(rng, dtype, s, s), axis, r)) for s, axis in choices for r in (False, True)]


def recurrence_edges(dtype):
    """The first coefficient is not used, whatever it is."""
    a, b = np.array([np.inf, 0, 2, np.nan, 1], dtype), np.array([1, np.inf, 1, 2, 3], dtype)
    return [Sample((a[:4], b[:4], 0, False)), Sample((a[::-1].copy(), np.ones(5, dtype), 0, True))]


def recurrence_reference(a, b, axis, reverse):
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    out = np.zeros_like(b)
    order = range(len(b))[:: -1 if reverse else 1]
    for i, k in enumerate(order):
        out[k] = b[k] if i == 0 else a[k] * out[order[i - 1]] + b[k]
    return np.moveaxis(out, 0, axis)


def composed(a, b, axis, reverse):
    """Prefixes of the composition of affine maps."""

    def compose(first, then):
        return {"a": lax.mul(first["a"], then["a"]), "b": lax.add(lax.mul(then["a"], first["b"]), then["b"])}

    return lax.associative_scan(compose, {"a": a, "b": b}, reverse=reverse, axis=axis)["b"]


x32 = np.ones((2, 3), np.float32)

OPS = [
    Op(
        "cumsum",
        lax.cumsum,
        samples(),
        accumulated(np.add),
        NUMBERS,
        edges=edges,
        errors=[
            (lambda: lax.cumsum(x32, 2), ValueError, r"cumsum: .*2.* f32\[2,3\]"),
            (lambda: lax.cumsum(np.float64(1)), ValueError, r"cumsum: .*0.* f64\[\]"),
            (lambda: lax.cumsum(np.ones(3, bool)), TypeError, r"cumsum .* bool\[3\]"),
        ],
    ),
    Op(
        "cumprod",
        lax.cumprod,
        with_zeros,
        accumulated(np.multiply),
        NUMBERS,
        edges=edges,
        errors=[
            (lambda: lax.cumprod(x32, -3), ValueError, r"cumprod: \(-3,\) .* f32\[2,3\]"),
            (lambda: lax.cumprod(x32, "0"), TypeError, r"cumprod: axes of f32\[2,3\] are ints, got \('0',\)"),
        ],
    ),
    Op(
        "cummax",
        lax.cummax,
        samples(),
        accumulated(np.maximum),
        NUMBERS,
        edges=extreme_edges,
        errors=[(lambda: lax.cummax(np.ones(2, bool)), TypeError, r"cummax .* bool\[2\]")],
    ),
    Op(
        "cummin",
        lax.cummin,
        samples(),
        accumulated(np.minimum),
        NUMBERS,
        edges=extreme_edges,
        errors=[
            (lambda: lax.cummin(x32, 2), ValueError, r"cummin: \(2,\) .* f32\[2,3\]"),
            (lambda: lax.cummin(np.ones(2, bool)), TypeError, r"cummin .* bool\[2\]"),
        ],
    ),
    Op(
        "cumlogsumexp",
        lax.cumlogsumexp,
        samples(),
        accumulated(np.logaddexp),
        FLOATS,
        edges=extreme_edges,
        errors=[(lambda: lax.cumlogsumexp(np.ones(2, int)), TypeError, r"cumlogsumexp .* i64\[2\]")],
    ),
    Op(
        "cumlogsumexp:complex",
        lax.cumlogsumexp,
        samples(-1, 1),
        lambda x, axis, reverse: np.log(accumulated(np.add)(np.exp(x), axis, reverse)),
        COMPLEX,
        edges=lambda dtype: [
            Sample((np.array([complex(-np.inf, 1), -np.inf, 2 + 3j, 2 + 3j, -np.inf, 80, 80 - 1j], dtype), 0, False))
        ],
        ulps=16,
        errors=[(lambda: lax.cumlogsumexp(x32 * 1j, -3), ValueError, r"cumlogsumexp: \(-3,\) .* c64\[2,3\]")],
    ),
    Op(
        "linear_recurrence",
        recurrence,
        recurrence_samples,
        recurrence_reference,
        INEXACT,
        edges=recurrence_edges,
        ulps=16,
        rtol={"float16": 0.01, "bfloat16": 0.05},
        errors=[
            (lambda: recurrence(x32, x32[:1], 0, False), TypeError, r"linear_recurrence: .*f32\[2,3\], f32\[1,3\]"),
            (lambda: recurrence(x32, x32, 2, False), ValueError, r"linear_recurrence: axis 2 .* f32\[2,3\]"),
        ],
    ),
    Op(
        "linear_recurrence:associative_scan",
        composed,
        lambda rng, dtype: recurrence_samples(rng, dtype)[2::3],
        recurrence_reference,
        ("float32", "float64"),
        ulps=16,
        rtol={"float32": 1e-5, "float64": 1e-13},
        errors=[
            (lambda: lax.associative_scan(lax.add, x32, axis=2), ValueError, r"associative_scan: \(2,\) .* f32\[2,3\]"),
            (
                lambda: lax.associative_scan(lax.add, (x32, x32[:1])),
                ValueError,
                r"associative_scan: .* f32\[2,3\], f32\[1,3\]",
            ),
            (lambda: lax.associative_scan(3, x32), TypeError, "associative_scan: fn must be a function .* got 3"),
        ],
    ),
]
