"""Records of reductions over windows. The reference loops over the windows and takes their elements by index."""

import itertools

import numpy as np

from tests.ops.convolution import pairs
from tests.ops.record import BOOL, NUMBERS, REALS, Op, Sample, array, edge_values
from xform import lax
from xform.lax.windows.geometry import Windows
from xform.lax.windows.selection import select_and_gather_add_p, select_and_scatter_add_p


def windows_of(shape, window, strides=None, padding="VALID", base_dilation=None, dilation=None):
    """For each place in the result, the places of the elements in its window, those in gaps and padding left out."""
    ones = [1] * len(shape)
    strides, b, d = strides or ones, base_dilation or ones, dilation or ones
    spans = [(k - 1) * e + 1 for k, e in zip(window, d)]
    padding = pairs(padding, shape, spans, strides)
    lengths = [(n - 1) * e + 1 if n else 0 for n, e in zip(shape, b)]
    counts = [max(0, (low + n + high - k) // s + 1) for n, (low, high), k, s in zip(lengths, padding, spans, strides)]
    found = {}
    for at in itertools.product(*map(range, counts)):
        inside = found[at] = []
        for tap in itertools.product(*map(range, window)):
            place = [p * s + t * e - low for p, s, t, e, (low, _) in zip(at, strides, tap, d, padding)]
            if all(0 <= i < n and i % e == 0 for i, n, e in zip(place, lengths, b)):
                inside.append(tuple(i // e for i, e in zip(place, b)))
    return counts, found


def reduced(ufunc, identity):
    def reference(x, *args):
        counts, found = windows_of(x.shape, *args)
        out = np.full(counts, identity(x.dtype), x.dtype)
        for at, places in found.items():
            for place in places:
                out[at] = ufunc(out[at], x[place])
        return out

    return reference


def lowest(dtype):
    return {"b": False, "f": -np.inf}.get(dtype.kind) if dtype.kind in "bf" else np.iinfo(dtype).min


def highest(dtype):
    return {"b": True, "f": np.inf}.get(dtype.kind) if dtype.kind in "bf" else np.iinfo(dtype).max


def one(dtype):
    return np.ones((), dtype)[()]


CASES = [
    ((6,), ((2,),)),
    ((7,), ((3,), (2,), "SAME")),
    ((40,), ((17,), (1,), "SAME_LOWER")),
    ((5, 6), ((2, 2), (2, 2))),
    ((5, 4), ((2, 3), (2, 3), [(1, 0), (-1, 2)])),
    ((5, 4), ((3, 2), (1, 2), [(1, 2), (0, 1)])),
    ((6, 5), ((2, 2), (2, 1), [(-1, 1), (2, -1)], (2, 1), (1, 2))),
    ((4, 3), ((2, 2), (3, 2), [(1, 1), (2, 0)], (1, 3), (2, 1))),
    ((2, 4, 4, 3), ((1, 2, 2, 1), (1, 2, 2, 1), "SAME")),
    ((), ((),)),
    ((2,), ((3,),)),
    ((0, 2), ((1, 2),)),
    ((0,), ((2,), (1,), [(2, 1)])),
]


def samples(rng, dtype):
    """Distinct numbers, so that maxima are smooth."""
    return [Sample((distinct(rng, dtype, shape), *rest)) for shape, rest in CASES]


def distinct(rng, dtype, shape):
    """Numbers that are not close to each other, in random order."""
    size = int(np.prod(shape))
    values = (rng.permutation(size) - size // 2) / 8 if np.dtype(dtype).kind not in "biu" else rng.integers(0, 5, size)
    values = values.astype(dtype).reshape(shape)
    return values + 1j * rng.uniform(-1, 1, shape).astype(values.real.dtype) if values.dtype.kind == "c" else values


def edges(dtype):
    """All pairs; without -0.0, since which zero is larger is left open."""
    values = edge_values(dtype)
    values = values if dtype.kind == "b" else values + np.zeros((), dtype)
    table = np.stack([np.repeat(values, values.size), np.tile(values, values.size)], 1)
    return [Sample((table, (1, 2)))]


def has_empty(shape, args):
    """Whether a window lies in gaps and padding alone; there an extreme is infinite."""
    return not all(windows_of(shape, *args)[1].values())


def extreme_samples(rng, dtype):
    return [Sample((distinct(rng, dtype, shape), *rest)) for shape, rest in CASES if not has_empty(shape, rest)]


def extreme_edges(dtype):
    empty = [Sample((np.zeros(shape, dtype), *rest)) for shape, rest in CASES if has_empty(shape, rest)]
    assert empty
    return edges(dtype) + empty


def window(computation, init):
    def function(x, *args):
        return lax.reduce_window(x, np.asarray(init(x.dtype), x.dtype), computation, *args)

    return function


def extreme_identity(of):
    """Of the narrow floats, too, which NumPy doesn't know to be floats."""

    def init(dtype):
        return of(dtype) if dtype.kind in "biuf" else of(np.dtype("float32"))

    return init


def norm(x, y):
    return lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y)))


def positive(rng, dtype):
    """Without padding: the norm has no derivative at zero."""
    cases = [((6,), (2,)), ((40,), (17,)), ((5, 6), (2, 2))]
    return [Sample((array(rng, dtype, shape, 0.5, 2), window)) for shape, window in cases]


def norm_reference(x, *args):
    return np.sqrt(reduced(np.add, lambda dtype: 0)(x * x, *args))


def leftmost_pair(values, labels):
    """Each window's smallest value with its label, of an operation on two arrays."""

    def pick(a, b):
        first = lax.le(a[0], b[0])
        return lax.select(first, a[0], b[0]), lax.select(first, a[1], b[1])

    start = (np.asarray(100, values.dtype), np.asarray(-1, labels.dtype))
    return lax.reduce_window((values, labels), start, pick, (3,), (2,), [(1, 1)])


def leftmost_pair_reference(values, labels):
    _, found = windows_of(values.shape, (3,), (2,), [(1, 1)])
    best = [min(places, key=lambda place: values[place]) for places in found.values()]
    return np.array([values[i] for i in best]), np.array([labels[i] for i in best])


def geometry(shape, window, strides=None, padding="VALID", base_dilation=None, dilation=None):
    ones = (1,) * len(shape)
    dilation, strides = dilation or ones, strides or ones
    spans = [(k - 1) * e + 1 for k, e in zip(window, dilation)]
    padding = tuple(map(tuple, pairs(padding, shape, spans, strides)))
    return Windows(tuple(window), tuple(strides), padding, base_dilation or ones, dilation)


def gather(t, x, select, *args):
    return select_and_gather_add_p.bind(t, x, select=select, windows=geometry(x.shape, *args))


def scatter(source, x, select, *args):
    return select_and_scatter_add_p.bind(source, x, select=select, windows=geometry(x.shape, *args))


def chosen(x, select, args):
    """For each window, the first place with the extreme; NaN counts as the extreme."""
    counts, found = windows_of(x.shape, *args)
    sign = 1 if select == "max" else -1

    def key(place):
        return (bool(np.isnan(x[place])), 0 if np.isnan(x[place]) else sign * float(x[place]))

    return counts, {at: max(places, key=key) for at, places in found.items() if places}


def gather_reference(t, x, select, *args):
    counts, places = chosen(x, select, args)
    out = np.zeros(counts, t.dtype)
    for at, place in places.items():
        out[at] = t[place]
    return out


def scatter_reference(source, x, select, *args):
    out = np.zeros(x.shape, source.dtype)
    for at, place in chosen(x, select, args)[1].items():
        out[place] += source[at]
    return out


def selecting(scattering, last=None):
    """The source, or tangents, and an operand of distinct values, which isn't differentiated."""

    def make(rng, dtype):
        out = []
        for i, (shape, args) in enumerate(CASES[:last]):
            counts = windows_of(shape, *args)[0]
            x = distinct(rng, np.float64, shape)
            t = array(rng, dtype, counts if scattering else shape)
            out.append(Sample((t, x.astype("int64") if i % 2 else x, ("max", "min")[i % 2], *args)))
        return out

    return make


def selecting_edges(scattering):
    """Ties, NaN and infinities in the operand."""

    def make(dtype):
        x = np.array([1, 1, np.nan, 2, np.nan, -np.inf, np.inf, np.inf, 0, -1, -1, -3])
        out = []
        for select, args in itertools.product(("max", "min"), (((2,), (2,)), ((3,), (1,)), ((3,), (2,), "SAME"))):
            n = windows_of(x.shape, *args)[0][0] if scattering else x.size
            out.append(Sample((np.arange(1, n + 1).astype(dtype), x, select, *args)))
        return out

    return make


x32 = np.ones((4, 3), np.float32)
NARROW = {"float16": 0.02, "bfloat16": 0.1}  # each product is rounded
GEOMETRY_ERRORS = [
    (
        lambda: lax.reduce_window(x32, np.float32(0), lax.add, (2,)),
        ValueError,
        r"reduce_window: window_dimensions must be 2 ints of at least 1, got \(2,\)",
    ),
    (
        lambda: lax.reduce_window(x32, np.float32(0), lax.add, (2, 2), (0, 1)),
        ValueError,
        r"reduce_window: window_strides must be 2 ints of at least 1, got \(0, 1\)",
    ),
    (
        lambda: lax.reduce_window(x32, np.float32(0), lax.add, (2, 2), padding="FULL"),
        RuntimeError,
        r"reduce_window: padding must be .* got 'FULL'",
    ),
    (
        lambda: lax.reduce_window(x32, x32, lax.add, (2, 2)),
        TypeError,
        r"reduce_window: .* init_values be scalars .* f32\[4,3\] and f32\[4,3\]",
    ),
    (
        lambda: lax.reduce_window(x32, np.float32(0), lambda a, b: (a, b), (2, 2)),
        TypeError,
        r"reduce_window: computation must return scalars",
    ),
]


def extreme_errors(primitive):
    """Wrong calls of a window's maximum or minimum."""
    windows, flat = geometry((4, 3), (2, 2)), geometry((3,), (2,))
    return [
        (
            lambda: primitive.bind(x32 * 1j, windows=windows),
            TypeError,
            rf"{primitive} takes arrays of real .* c64\[4,3\]",
        ),
        (lambda: primitive.bind(x32, windows=flat), TypeError, rf"{primitive}: windows must have 2 axes.* f32\[4,3\]"),
    ]


OPS = [
    Op(
        "reduce_window_sum",
        window(lax.add, lambda dtype: 0),
        samples,
        reduced(np.add, lambda dtype: 0),
        NUMBERS,
        edges=edges,
        ulps=40,
        rtol={"float32": 1e-5, "complex64": 1e-5, "float64": 1e-14, "complex128": 1e-14},
        errors=[
            (
                lambda: lax.windows.reduction.reduce_window_sum_p.bind(np.ones(3, bool), windows=geometry((3,), (2,))),
                TypeError,
                r"reduce_window_sum takes arrays of number dtype, got bool\[3\]",
            ),
            (
                lambda: lax.windows.reduction.reduce_window_sum_p.bind(x32, windows=geometry((3,), (2,))),
                TypeError,
                r"reduce_window_sum: windows must have 2 axes, those of f32\[4,3\]",
            ),
        ],
    ),
    Op(
        "reduce_window_max",
        window(lax.max, extreme_identity(lowest)),
        extreme_samples,
        reduced(np.maximum, lowest),
        REALS + BOOL,
        edges=extreme_edges,
        errors=extreme_errors(lax.windows.reduction.reduce_window_max_p),
    ),
    Op(
        "reduce_window_min",
        window(lax.min, extreme_identity(highest)),
        extreme_samples,
        reduced(np.minimum, highest),
        REALS + BOOL,
        edges=extreme_edges,
        errors=extreme_errors(lax.windows.reduction.reduce_window_min_p),
    ),
    Op(
        "reduce_window:product",
        window(lax.mul, one),
        lambda rng, dtype: [Sample((array(rng, dtype, shape, 0.5, 1.5), *rest)) for shape, rest in CASES],
        reduced(np.multiply, one),
        NUMBERS,
        rtol={
            "float32": 1e-5,
            "complex64": 1e-5,
            "float64": 1e-14,
            "complex128": 1e-14,
            "float16": 0.02,
            "bfloat16": 0.1,
        },
        ulps=40,
        errors=GEOMETRY_ERRORS,
    ),
    Op(
        "reduce_window:norm",
        window(norm, lambda dtype: 0),
        positive,
        norm_reference,
        ("float32", "float64"),
        ulps=8,
        errors=[
            (
                lambda: lax.reduce_window(x32, np.float32(0), norm, (2, 2), base_dilation=(0, 1)),
                ValueError,
                r"reduce_window: base_dilation .* got \(0, 1\)",
            )
        ],
    ),
    Op(
        "reduce_window:sum from 3",
        window(lax.add, lambda dtype: 3),
        lambda rng, dtype: [Sample((array(rng, dtype, (6, 5)), (2, 2), (2, 1)))],
        reduced(np.add, lambda dtype: 3),
        ("int8", "float64", "complex128"),
        ulps=40,
        errors=[
            (
                lambda: lax.reduce_window(x32, np.float32(3), lax.add, (2, 2), window_dilation=(1,)),
                ValueError,
                r"reduce_window: window_dilation .* got \(1,\)",
            ),
            (
                lambda: lax.reduce_window(x32, np.float32(3), 3, (2, 2)),
                TypeError,
                "reduce_window: computation must be a function .* got 3",
            ),
        ],
    ),
    Op(
        "reduce_window:any",
        window(lax.bitwise_or, lambda dtype: False),
        lambda rng, dtype: [Sample((array(rng, dtype, (6, 5)), (2, 3), (2, 1), "SAME"))],
        reduced(np.logical_or, lambda dtype: False),
        BOOL,
        errors=[
            (
                lambda: lax.reduce_window(x32 > 0, False, lax.bitwise_or, (2, 2), padding=[(1,)]),
                TypeError,
                r"reduce_window: padding .* 2 pairs of ints, got \[\(1,\)\]",
            )
        ],
    ),
    Op(
        "reduce_window:pair",
        leftmost_pair,
        lambda rng, dtype: [Sample((distinct(rng, dtype, (9,)), array(rng, "int32", (9,))))],
        leftmost_pair_reference,
        ("int32", "float64"),
        errors=[
            (
                lambda: lax.reduce_window((x32, x32[:1]), (np.float32(0),) * 2, lambda a, b: a, (1, 1)),
                TypeError,
                r"reduce_window: operands must have one shape, .*f32\[4,3\].*f32\[1,3\]",
            )
        ],
    ),
    Op(
        "select_and_gather_add",
        gather,
        selecting(False),
        gather_reference,
        ("int32", "bfloat16", "float32", "float64"),
        edges=selecting_edges(False),
        errors=[
            (
                lambda: gather(x32, np.ones(3), "max", (2,)),
                TypeError,
                r"select_and_gather_add: tangents and operand must have one shape, got f32\[4,3\] and f64\[3\]",
            )
        ],
    ),
    Op(
        "select_and_scatter_add",
        scatter,
        selecting(True),
        scatter_reference,
        ("int32", "bfloat16", "float32", "float64"),
        edges=selecting_edges(True),
        ulps=8,
        errors=[
            (
                lambda: scatter(x32, np.ones(3), "max", (2,)),
                TypeError,
                r"select_and_scatter_add: .* window of f64\[3\], shape \(2,\), got f32\[4,3\]",
            )
        ],
    ),
]
