"""Operations of the table `tests.ops` on what Hypothesis draws: shapes, axes, dimension numbers, dtypes and values.

A family of operations is a strategy. It draws an operation, a dtype and static arguments, and returns a function of a
random generator to a `Sample`, so that the lanes of a vmap are several such samples. Each must give, within the
tolerances of its record:

* the same on the host and by XLA, exceptional values included, and what the reference gives
* under vmap over random axes what a loop gives
* in float64, jvp and vjp that are each other's transpose

A few examples of each family, the same every time, run with the other tests; ``make slow`` draws many more.
"""

import importlib
import math
import pkgutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tests.ops
import xform
from tests.calls import Call, check, compiler_options, differences, host, inner, like, size_of, tolerance_of
from tests.ops import gather_scatter, linalg, record, windows
from tests.ops.record import ALL, Op, Sample, array, as_dtype, eps, kind
from xform.core.config import enable_checks, small_programs

MODULES = {
    i.name: list(getattr(importlib.import_module(f"tests.ops.{i.name}"), "OPS", []))
    for i in pkgutil.iter_modules(tests.ops.__path__)
}
TABLE = {op.name: op for ops in MODULES.values() for op in ops}

# ---- What is drawn -----------------------------------------------------------------------------------------

LENGTH = st.sampled_from((1, 2, 3, 4, 5, 0))
POSITIVE = st.integers(1, 4)


def shapes(least=0, most=3, length=LENGTH):
    return st.lists(length, min_size=least, max_size=most).map(tuple)


def subset(draw, items, least=0, most=None):
    """Some of the items, in any order."""
    items = list(items)
    if not items:
        return ()
    most = len(items) if most is None else min(most, len(items))
    return tuple(draw(st.lists(st.sampled_from(items), min_size=min(least, most), max_size=most, unique=True)))


def signed(draw, axis, ndim):
    """An axis, at times counted from the end."""
    return axis - ndim if draw(st.booleans()) else axis


def mixed(rng, x, pool, special):
    """`x`, with values of the pool instead of some of its own."""
    if not special or not pool.size:
        return x
    return np.where(rng.random(x.shape) < 0.5, rng.choice(pool, x.shape), x).astype(x.dtype)


class Drawn:
    """An operation, a dtype, and a function of a generator to a sample; `special`: with exceptional values."""

    def __init__(self, name, dtype, sample, special=False, reference=True):
        self.op, self.dtype, self.sample, self.special = TABLE[name], as_dtype(dtype), sample, special
        self.reference = reference and self.op.reference is not None

    def __repr__(self):
        return f"{self.op.name} of {self.dtype}{' with special values' if self.special else ''}"


def draw_op(draw, names):
    name = draw(st.sampled_from(names))
    return name, as_dtype(draw(st.sampled_from(TABLE[name].dtypes)))


# Elementwise. Arguments are put together anew from the record's own: from smooth points, and from the edge cases.

ELEMENTWISE = [
    op.name
    for module in ("elementwise_arithmetic", "elementwise_bits", "elementwise_transcendental", "special")
    for op in MODULES[module]
    if op.primitive not in ("select_n", "clamp", "convert_element_type", "bitcast_convert_type")
]


def pools(samples, n):
    """Of each argument that is an array all values; None for the others."""
    out = []
    for i in range(n):
        columns = [np.ravel(s.args[i]) for s in samples if i < len(s.args) and isinstance(s.args[i], np.ndarray)]
        dtypes = {c.dtype for c in columns}
        out.append(np.concatenate(columns) if len(dtypes) == 1 else None)
    return out


def kinds(sample):
    """Which arguments of a sample are arrays."""
    return [isinstance(x, np.ndarray) for x in sample.args]


@st.composite
def elementwise(draw):
    name, dtype = draw_op(draw, ELEMENTWISE)
    op = TABLE[name]
    edges = list(op.edges(dtype)) if op.edges else []
    special = bool(edges) and draw(st.booleans())
    shape = draw(shapes())
    first = next(iter(op.samples(np.random.default_rng(0), dtype)))
    ranks = [draw(st.sampled_from((True, True, True, False))) for _ in first.args]
    ranks = [True] if len(ranks) == 1 else ranks

    def sample(rng):
        full = [s for s in op.samples(rng, dtype) if all(np.size(x) for x in s.args) and kinds(s) == kinds(first)]
        smooth = pools([full[rng.integers(len(full))]], len(first.args))  # of one sample: its arguments fit together
        extreme = pools(edges, len(first.args))
        args = []
        for x, mine, others, has_axes in zip(first.args, smooth, extreme, ranks, strict=True):
            if mine is not None:
                x = np.asarray(rng.choice(mine, shape if has_axes else ()))
                with np.errstate(invalid="ignore"):  # NaN among the edges
                    others = others.astype(x.dtype) if others is not None else np.array([])
                x = mixed(rng, x, others, special)
            args.append(x)
        return Sample(tuple(args), first.kwargs)

    exact = name in {op.name for m in ("elementwise_arithmetic", "elementwise_bits") for op in MODULES[m]}
    return Drawn(name, dtype, sample, special, reference=exact or not special)


CHOICES = ["select_n", "clamp"]
CONVERSIONS = ["convert_element_type", "bitcast_convert_type"]


@st.composite
def choices(draw):
    """select_n and clamp, with operands of rank 0 among the others."""
    shape = draw(shapes())
    name, dtype = draw_op(draw, CHOICES)
    scalars = draw(st.lists(st.booleans(), min_size=3, max_size=3))
    cases, by_number = draw(st.integers(2, 4)), draw(st.booleans())

    def sample(rng):
        if name == "clamp":
            low, x, high = (array(rng, dtype, () if s else shape) for s in (scalars[0], False, scalars[2]))
            return Sample((low, x, high))
        n = cases if by_number else 2
        which = array(rng, "int32", shape, -1, n) if by_number else array(rng, "bool", () if scalars[0] else shape)
        return Sample((which, *(array(rng, dtype, () if scalars[1] and i else shape) for i in range(n))))

    return Drawn(name, dtype, sample)


@st.composite
def conversions(draw):
    name, dtype = draw_op(draw, CONVERSIONS)
    edges = np.concatenate([np.ravel(s.args[0]) for s in TABLE["convert_element_type"].edges(dtype)])
    new = as_dtype(draw(st.sampled_from([d for d in ALL if name[0] == "c" or kind(d) not in "bc"])))
    shape = draw(shapes())
    if name == "bitcast_convert_type" and new.itemsize > dtype.itemsize:
        shape = (*shape, new.itemsize // dtype.itemsize)
    bits = draw(st.booleans())

    def sample(rng):
        if name == "bitcast_convert_type":
            return Sample((mixed(rng, array(rng, dtype, shape, -100, 100), edges, bits), new.name))
        return Sample((mixed(rng, array(rng, dtype, shape, -300, 300), edges, bits), new.name))

    return Drawn(name, dtype, sample, special=True)


# Reductions

REDUCTIONS = [f"reduce_{name}" for name in ("sum", "prod", "max", "min", "and", "or", "xor")] + ["argmax", "argmin"]
CUMULATIVE = ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp", "linear_recurrence"]


def moderate(name, dtype):
    """The record's edge values, but those whose sums or products depend on the order."""
    edges = TABLE[name].edges(dtype) if TABLE[name].edges else ()
    values = np.concatenate([np.ravel(s.args[0]) for s in edges] or [np.zeros(0, dtype)])
    if kind(dtype) not in "fc":
        return values
    size = abs(values.astype(np.complex128 if kind(dtype) == "c" else np.float64))
    return values[~np.isfinite(size) | (size == 0) | ((size > 0.1) & (size < 11))] if kind(dtype) == "f" else values[:0]


@st.composite
def reductions(draw):
    name, dtype = draw_op(draw, REDUCTIONS)
    special = draw(st.booleans())
    pool = moderate(name, dtype)
    if name.startswith("arg"):
        shape = draw(shapes(1, 3, POSITIVE))
        axis = draw(st.integers(-len(shape), len(shape) - 1))
        rest = (axis, draw(st.sampled_from(("int8", "int32", "int64"))))
    else:
        shape = draw(shapes())
        rest = (tuple(signed(draw, d, len(shape)) for d in subset(draw, range(len(shape)))),)
    low, high = (0.5, 1.5) if name == "reduce_prod" else (-2, 2)
    return Drawn(
        name,
        dtype,
        lambda rng: Sample((mixed(rng, array(rng, dtype, shape, low, high), pool, special), *rest)),
        special,
    )


@st.composite
def cumulative(draw):
    name, dtype = draw_op(draw, CUMULATIVE)
    shape = draw(shapes(1, 3, st.sampled_from((1, 2, 3, 9, 20, 0))))
    axis, reverse = draw(st.integers(0, len(shape) - 1)), draw(st.booleans())
    special = draw(st.booleans()) and name in ("cummax", "cummin")
    pool = moderate(name, dtype) if special else np.zeros(0)

    def sample(rng):
        if name == "linear_recurrence":
            return Sample((*(array(rng, dtype, shape, -1, 1) for _ in range(2)), axis, reverse))
        low, high = (0.5, 1.5) if name == "cumprod" else (-2, 2)
        return Sample((mixed(rng, array(rng, dtype, shape, low, high), pool, special), axis, reverse))

    return Drawn(name, dtype, sample, special)


# Shapes


SHAPES = ["broadcast_in_dim", "reshape", "transpose", "squeeze", "rev", "split", "broadcast_in_dim:expand_dims"]
SLICES = ["slice", "pad", "concatenate", "stack", "dynamic_slice", "dynamic_update_slice"]


@st.composite
def reshaping(draw):
    name, dtype = draw_op(draw, SHAPES)
    shape = draw(shapes())
    ndim = len(shape)
    if name == "broadcast_in_dim":
        dims = sorted(subset(draw, range(4), ndim, ndim))
        out = [draw(LENGTH) for _ in range(4)]
        for d, n in zip(dims, shape, strict=True):
            out[d] = draw(LENGTH) if n == 1 else n
        rest = (tuple(out), tuple(dims))
    elif name == "reshape":
        left, new = math.prod(shape), []
        for _ in range(draw(st.integers(0, 3))):
            new.append(draw(st.sampled_from([k for k in range(1, left + 1) if left % k == 0] or [1, 3, 0])))
            left //= new[-1] or 1
        rest = (tuple(draw(st.permutations([*new, left]))),)
    elif name == "transpose":
        rest = (tuple(draw(st.permutations(range(ndim)))),)
    elif name == "squeeze":
        ones = subset(draw, range(ndim))
        shape = tuple(1 if d in ones else n for d, n in enumerate(shape))
        rest = (tuple(signed(draw, d, ndim) for d in ones),)
    elif name == "rev":
        rest = (tuple(signed(draw, d, ndim) for d in subset(draw, range(ndim))),)
    elif name == "split":
        sizes = tuple(draw(st.lists(LENGTH, min_size=1, max_size=4)))
        axis = draw(st.integers(0, ndim))
        shape = (*shape[:axis], sum(sizes), *shape[axis:])
        rest = (sizes, signed(draw, axis, ndim + 1))
    else:
        new = subset(draw, range(ndim + 2), 2, 2)
        rest = (tuple(signed(draw, d, ndim + 2) for d in new),)
    return Drawn(name, dtype, lambda rng: Sample((array(rng, dtype, shape), *rest)))


@st.composite
def slices(draw):
    name, dtype = draw_op(draw, SLICES)
    shape = draw(shapes(1))
    if name == "slice":
        starts = tuple(draw(st.integers(0, n)) for n in shape)
        limits = tuple(draw(st.integers(s, n)) for s, n in zip(starts, shape, strict=True))
        strides = draw(st.none() | st.just(tuple(draw(POSITIVE) for _ in shape)))
        kwargs = dict(start_indices=starts, limit_indices=limits, strides=strides)
        return Drawn(name, dtype, lambda rng: Sample((array(rng, dtype, shape),), kwargs))
    if name == "pad":
        config = []
        for n in shape:
            low, inner = draw(st.integers(-3, 3)), draw(st.integers(0, 2))
            length = n + max(n - 1, 0) * inner + low
            config.append((low, draw(st.integers(max(-3, -length), 3 + max(0, -length))), inner))
        kwargs = dict(padding_config=tuple(config))
        return Drawn(name, dtype, lambda rng: Sample((array(rng, dtype, shape), array(rng, dtype)), kwargs))
    if name == "concatenate":
        axis = draw(st.integers(0, len(shape) - 1))
        lengths = draw(st.lists(LENGTH, min_size=1, max_size=4))
        parts = [(*shape[:axis], n, *shape[axis + 1 :]) for n in lengths]
        return Drawn(name, dtype, lambda rng: Sample((record.arrays(rng, dtype, *parts),), dict(dimension=axis)))
    if name == "stack":
        n, axis = draw(POSITIVE), draw(st.integers(-len(shape) - 1, len(shape)))
        return Drawn(name, dtype, lambda rng: Sample((list(record.arrays(rng, dtype, *[shape] * n)), axis)))
    sizes = tuple(draw(st.integers(0, n)) for n in shape)
    kinds = [draw(st.sampled_from(("int8", "int32", "int64", "uint8", "uint32"))) for _ in shape]

    def sample(rng):
        starts = tuple(array(rng, k, (), -8, 8)[()] for k in kinds)
        if name == "dynamic_slice":
            return Sample((array(rng, dtype, shape), starts), dict(slice_sizes=sizes))
        return Sample((array(rng, dtype, shape), array(rng, dtype, sizes), starts))

    return Drawn(name, dtype, sample)


# Gather and scatter

GATHER_SCATTER = ["gather", *(f"scatter{suffix}" for suffix in ("", "_add", "_sub", "_min", "_max", "_mul"))]


@st.composite
def windowed(draw):
    """Any dimension numbers, indices out of bounds, and the same ones several times."""
    name, dtype = draw_op(draw, GATHER_SCATTER)
    shape = draw(shapes(1, 3, st.sampled_from((1, 2, 3, 4))))
    dims = range(len(shape))
    batching = sorted(subset(draw, dims, 0, 1))
    rest = [d for d in dims if d not in batching]
    dropped = sorted(subset(draw, rest))
    index_map = subset(draw, rest)
    sizes = tuple(1 if d in dropped or d in batching else draw(st.integers(0, shape[d])) for d in dims)
    positions = list(draw(shapes(0, 2)))
    places = draw(st.permutations(range(len(positions) + len(batching))))[: len(batching)]
    for place, d in sorted(zip(places, batching, strict=True)):
        positions.insert(place, shape[d])
    kept = len(shape) - len(dropped) - len(batching)
    window_dims = tuple(sorted(subset(draw, range(kept + len(positions)), kept, kept)))
    numbers = (window_dims, tuple(dropped), index_map, tuple(batching), tuple(places))
    mode = draw(st.sampled_from((None, "clip", "fill")))
    index_dtype = draw(st.sampled_from(("int8", "int32", "int64", "uint8", "uint64")))

    def sample(rng):
        x, indices = array(rng, dtype, shape), array(rng, index_dtype, (*positions, len(index_map)), -2, 5)
        if name == "gather":
            kwargs = dict(dimension_numbers=gather_scatter.G(*numbers), slice_sizes=sizes, mode=mode, fill_value=1)
            return Sample((x, indices), kwargs)
        updates = array(rng, dtype, gather_scatter.windowed_shape(shape, indices, numbers, sizes))
        return Sample((x, indices, updates), dict(dimension_numbers=gather_scatter.S(*numbers), mode=mode))

    return Drawn(name, dtype, sample)


# Products, sorting


PRODUCTS = ["dot_general"]
SORTING = ["sort", "sort:key_val", "top_k"]


@st.composite
def products(draw):
    name, dtype = draw_op(draw, PRODUCTS)
    batch, contract = (draw(shapes(0, 2, st.sampled_from((1, 2, 3, 0)))) for _ in range(2))
    operands, axes = [], []
    for _ in range(2):
        free = draw(shapes(0, 2, st.sampled_from((1, 2, 3))))
        lengths = (*batch, *contract, *free)
        order = draw(st.permutations(range(len(lengths))))
        operands.append(tuple(lengths[i] for i in order))
        where = [order.index(i) for i in range(len(batch) + len(contract))]
        axes.append((tuple(where[: len(batch)]), tuple(where[len(batch) :])))
    (xb, xc), (yb, yc) = axes
    return Drawn(name, dtype, lambda rng: Sample((*record.arrays(rng, dtype, *operands), ((xc, yc), (xb, yb)))))


@st.composite
def sorting(draw):
    name, dtype = draw_op(draw, SORTING)
    shape = draw(shapes(1, 3, st.sampled_from((1, 2, 5, 20, 0))))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    special = draw(st.booleans()) and kind(dtype) != "c"
    edges = np.concatenate([np.ravel(s.args[0]) for s in TABLE[name].edges(dtype)])
    k = draw(st.integers(0, shape[axis]))

    def sample(rng):
        x = mixed(rng, array(rng, dtype, shape), edges, special)
        if name == "top_k":
            return Sample((x, k, axis))
        return Sample((x, axis) if name == "sort" else (x, array(rng, "float64", shape), axis))

    return Drawn(name, dtype, sample, special)


# Windows and convolutions


WINDOWS = [f"reduce_window_{name}" for name in ("sum", "max", "min")]
CONVOLUTIONS = ["conv_general_dilated"]


@st.composite
def window_reductions(draw):
    name, dtype = draw_op(draw, WINDOWS)
    shape = draw(shapes(1, 2, st.sampled_from((1, 3, 6, 0))))
    few = st.integers(1, 3)
    window, strides, gaps, dilation = (tuple(draw(few) for _ in shape) for _ in range(4))
    padding = tuple((draw(st.integers(-1, 3)), draw(st.integers(-1, 3))) for _ in shape)
    args = (window, strides, padding, gaps, dilation)
    return Drawn(name, dtype, lambda rng: Sample((windows.distinct(rng, dtype, shape), *args)))


@st.composite
def convolutions(draw):
    name, dtype = draw_op(draw, CONVOLUTIONS)
    rank = draw(st.integers(0, 2))
    small = st.integers(1, 2)
    groups, batch_groups = draw(st.sampled_from(((1, 1), (2, 1), (1, 2), (3, 1))))
    batch, inner = draw(small) * batch_groups, draw(small)
    outer = draw(small) * groups * batch_groups
    spatial = [draw(st.sampled_from((1, 3, 5))) for _ in range(rank)]
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    strides, gaps, dilation = (tuple(draw(small) for _ in range(rank)) for _ in range(3))
    padding = [(draw(st.integers(-1, 3)), draw(st.integers(-1, 3))) for _ in range(rank)]
    letters = "HW"[:rank]
    layout = tuple("".join(draw(st.permutations(first + letters))) for first in ("NC", "OI", "NC"))
    lengths = {"N": batch, "C": inner * groups, "O": outer, "I": inner}
    x = tuple((lengths | dict(zip(letters, spatial)))[c] for c in layout[0])
    w = tuple((lengths | dict(zip(letters, kernel)))[c] for c in layout[1])
    rest = (strides, padding, gaps, dilation, layout, groups, batch_groups)
    return Drawn(name, dtype, lambda rng: Sample((*record.arrays(rng, dtype, x, w), *rest)))


# Linear algebra, Fourier transforms

LINALG = ["cholesky", "triangular_solve", "lu", "qr", "solve", "inv", "det", "slogdet", "eigh", "svd"]
LINALG += ["hermitian_part", "triangle"]
FOURIER = ["fft", "fft:real"]


@st.composite
def matrices(draw):
    name, dtype = draw_op(draw, LINALG)
    batch, n = draw(shapes(0, 2, st.sampled_from((1, 2, 3, 0)))), draw(st.integers(1, 5))
    m = draw(st.integers(1, 5)) if name in ("qr", "svd", "triangle") else n
    k, flags = draw(st.integers(-2, 2)), draw(st.lists(st.booleans(), min_size=4, max_size=4))

    def sample(rng):
        if name in ("cholesky", "eigh"):
            return Sample((linalg.hermitian(rng, dtype, (*batch, n, n)),))
        if name == "svd":
            return Sample((linalg.with_singular_values(rng, dtype, (*batch, m, n)),), dict(full_matrices=False))
        if name == "triangle":
            return Sample((array(rng, dtype, (*batch, m, n)),), dict(k=k, lower=flags[0]))
        a = linalg.matrices(rng, dtype, (*batch, m, n))
        if name == "triangular_solve":
            left, lower, transpose, conjugate = flags
            b = array(rng, dtype, (*batch, n, 2) if left else (*batch, 2, n))
            kwargs = dict(left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate)
            return Sample((a, b), kwargs)
        if name == "solve":
            return Sample((a, array(rng, dtype, (*batch, n, 2))))
        return Sample((a,), dict(full_matrices=False) if name == "qr" else {})

    return Drawn(name, dtype, sample)


@st.composite
def transforms(draw):
    name, dtype = draw_op(draw, FOURIER)
    which = draw(st.sampled_from(("FFT", "IFFT", "IRFFT"))) if name == "fft" else "RFFT"
    lengths, batch = draw(shapes(1, 3, st.integers(1, 5))), draw(shapes(0, 2))
    last = lengths[-1] // 2 + 1 if which == "IRFFT" else lengths[-1]
    shape = (*batch, *lengths[:-1], last)
    return Drawn(name, dtype, lambda rng: Sample((array(rng, dtype, shape), which, lengths)))


# All the others, whose arguments have to fit together in ways of their own: their records' samples.

DRAWN = [*ELEMENTWISE, *CHOICES, *CONVERSIONS, *REDUCTIONS, *CUMULATIVE, *SHAPES, *SLICES, *GATHER_SCATTER]
DRAWN += [*PRODUCTS, *SORTING, *WINDOWS, *CONVOLUTIONS, *LINALG, *FOURIER]
OTHERS = [name for name in TABLE if name not in DRAWN]


@st.composite
def others(draw):
    name, dtype = draw_op(draw, OTHERS)
    op = TABLE[name]
    k = draw(st.integers(0, len(list(op.samples(np.random.default_rng(0), dtype))) - 1))
    return Drawn(name, dtype, lambda rng: list(op.samples(rng, dtype))[k])


FAMILIES = {
    "elementwise": elementwise(),
    "choices": choices(),
    "conversions": conversions(),
    "reductions": reductions(),
    "cumulative": cumulative(),
    "reshaping": reshaping(),
    "slices": slices(),
    "gather and scatter": windowed(),
    "products": products(),
    "sorting": sorting(),
    "window reductions": window_reductions(),
    "convolutions": convolutions(),
    "matrices": matrices(),
    "fft": transforms(),
    "others": others(),
}

# ---- What is checked ---------------------------------------------------------------------------------------


def in_lanes(call, other, rng):
    """Two lanes: arguments with an additional axis somewhere, or of the first lane alone; in_axes; both lanes."""
    args, axes, second = [], [], []
    for x, y in zip(call.arrays, other.arrays, strict=True):
        axis = None if rng.random() < 0.25 and len(call.arrays) > 1 else int(rng.integers(x.ndim + 1))
        args.append(x if axis is None else np.stack([x, y], axis))
        axes.append(axis)
        second.append(x if axis is None else y)
    return args, tuple(axes), second


def verify(drawn, seed):
    op: Op = drawn.op
    rng = np.random.default_rng(seed)
    call, other = (Call(op, drawn.sample(rng), drawn.dtype) for _ in range(2))
    strict, relative = drawn.special, 0.1 * (not drawn.special)
    eager = host(call(*call.arrays))
    with enable_checks(True), small_programs("xla"):
        compiled = xform.jit(call, compiler_options=compiler_options(op))(*call.arrays)
    problems = [
        f"XLA: {m}" for m in differences(call, compiled, eager, lambda d: op.ulps * eps(d), relative, zeros=strict)
    ]
    if drawn.reference:
        with np.errstate(all="ignore"):
            wanted = [w.astype(o.dtype) for w, o in zip(call.reference(), eager, strict=False)]
        found = differences(call, eager, wanted, tolerance_of(op), relative, zeros=strict)
        problems += [f"reference: {m}" for m in found]
    if op.batched:
        args, axes, second = in_lanes(call, other, rng)
        if any(a is not None for a in axes):
            got = xform.vmap(call, axes)(*args)
            rows = [eager, host(call(*second))]
            wanted = [np.stack(column) for column in zip(*rows, strict=True)]
            found = differences(call, got, wanted, lambda d: max(16, op.ulps) * eps(d), zeros=strict)
            problems += [f"vmap in_axes={axes}: {m}" for m in found]
    if op.differentiable and not drawn.special and drawn.dtype in (np.float64, np.complex128) and call.has_derivative():
        f, xs = call.smooth()
        vs, ws = like(rng, xs), list(like(rng, f(*xs)))
        tangents, cotangents = xform.jvp(f, xs, vs)[1], xform.vjp(f, *xs)[1](ws)
        a, b = inner(ws, tangents), inner(cotangents, vs)
        if not abs(a - b) <= 1e-10 * (1 + size_of(ws, tangents) + size_of(cotangents, vs)):
            problems.append(f"{call}: <w, jvp> is {a!r}, <vjp, v> {b!r}")
    check(problems)


COMMON = dict(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=50, derandomize=True, database=None, **COMMON)
@given(data=st.data())
def test_drawn(family, data):
    verify(data.draw(FAMILIES[family]), data.draw(st.integers(0, 2**32 - 1), label="seed"))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=500, **COMMON)
@given(data=st.data())
def test_many_more(family, data):
    verify(data.draw(FAMILIES[family]), data.draw(st.integers(0, 2**32 - 1), label="seed"))
