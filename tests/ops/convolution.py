"""Records of convolutions. The reference is the definition, written as loops over the result and the window."""

import itertools

import numpy as np

from tests.ops.record import NUMBERS, Op, Sample, array, arrays, edge_values
from xform import lax


def plain(x, w, strides, padding, lhs_dilation, rhs_dilation, groups):
    """Loops, for axes in the order batch, feature, spatial; padding as pairs."""
    rank = x.ndim - 2
    gaps = np.zeros((*x.shape[:2], *((n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], lhs_dilation))), x.dtype)
    gaps[(..., *(slice(None, None, d) for d in lhs_dilation))] = x
    amounts = [(max(low, 0), max(high, 0)) for low, high in padding]
    full = np.pad(gaps, [(0, 0), (0, 0), *amounts])
    full = full[(..., *(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(full.shape[2:], padding)))]
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], rhs_dilation)]
    shape = [max(0, (n - k) // s + 1) for n, k, s in zip(full.shape[2:], spans, strides)]
    out = np.zeros((x.shape[0], w.shape[0], *shape), x.dtype)
    inner, outer = w.shape[1], w.shape[0] // groups
    for o in range(w.shape[0]):
        part = full[:, o // outer * inner : (o // outer + 1) * inner]
        for at in itertools.product(*map(range, shape)):
            starts = [p * s for p, s in zip(at, strides)]
            window = part[(..., *(slice(i, i + k, d) for i, k, d in zip(starts, spans, rhs_dilation)))]
            out[(slice(None), o, *at)] = np.sum(window * w[o], axis=tuple(range(1, rank + 2)), dtype=x.dtype)
    return out


def pairs(padding, shape, window, strides):
    """TensorFlow's definition of the names of paddings."""
    if not isinstance(padding, str):
        return padding
    out = []
    for n, k, s in zip(shape, window, strides):
        total = max((-(-n // s) - 1) * s + k - n, 0) if padding != "VALID" else 0
        out.append((total // 2, total - total // 2) if padding == "SAME" else (total - total // 2, total // 2))
    return out


def order(text, letters):
    return [text.index(c) for c in letters]


def reference(
    x, w, strides, padding, lhs_dilation=None, rhs_dilation=None, layout=None, groups=1, batch_groups=1, preferred=None
):
    spatial = "HWD"[: x.ndim - 2]
    names = layout or ("NC" + spatial, "OI" + spatial, "NC" + spatial)
    spatial = [c for c in names[1] if c not in "OI"]
    x, w = x.transpose(order(names[0], ["N", "C", *spatial])), w.transpose(order(names[1], ["O", "I", *spatial]))
    x, w = (v if preferred is None else v.astype(preferred) for v in (x, w))
    a, b = lhs_dilation or [1] * len(spatial), rhs_dilation or [1] * len(spatial)
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], b)]
    padding = pairs(padding, x.shape[2:], spans, strides)
    xs, ws = np.split(x, batch_groups), np.split(w, batch_groups)
    out = np.concatenate([plain(*both, strides, padding, a, b, groups) for both in zip(xs, ws)], 1)
    return out.transpose(order(["N", "C", *spatial], names[2]))


def conv(
    x, w, strides, padding, lhs_dilation=None, rhs_dilation=None, layout=None, groups=1, batch_groups=1, preferred=None
):
    return lax.conv_general_dilated(
        x, w, strides, padding, lhs_dilation, rhs_dilation, layout, groups, batch_groups, None, preferred
    )


LAST = ("NHWC", "HWIO", "NHWC")
MIXED = ("CHNW", "WOHI", "WCNH")
# (shapes, arguments)
CASES = [
    ((2, 3, 5), (4, 3, 2), ((1,), "VALID")),
    ((1, 1, 8), (1, 1, 3), ((1,), "SAME")),
    ((2, 1, 9), (1, 1, 4), ((2,), "SAME_LOWER")),
    ((2, 5, 4, 3), (3, 2, 3, 2), ((1, 1), "SAME", None, None, LAST)),
    ((2, 3, 1, 4), (3, 2, 2, 2), ((1, 2), [(1, 0), (-1, 2)], (2, 1), (1, 2), MIXED)),
    ((1, 2, 3, 3), (2, 2, 3, 3), ((1, 1), [(2, 2), (1, 3)], (2, 2))),
    ((2, 2, 4), (3, 2, 3), ((2,), [(3, 2)], (3,), (2,))),
    ((2, 2, 4), (3, 2, 3), ((1,), [(2, 2)], (2,), (2,))),
    ((2, 4, 5), (6, 2, 2), ((1,), "VALID", None, None, None, 2)),
    ((2, 3, 4, 3), (3, 1, 2, 2), ((1, 1), "SAME", None, None, None, 3)),
    ((4, 2, 5), (4, 2, 2), ((2,), "SAME", None, None, None, 1, 2)),
    ((3, 2), (4, 2), ((), "VALID")),
    ((0, 2, 4), (3, 2, 2), ((1,), "VALID")),
    ((2, 0, 4), (3, 0, 2), ((1,), "VALID")),
    ((2, 2, 1), (3, 2, 2), ((1,), "VALID")),
    ((1, 1, 2, 3, 2), (2, 1, 2, 2, 1), ((1, 1, 1), "SAME")),
]


def samples(rng, dtype):
    return [Sample((*arrays(rng, dtype, x, w), *rest)) for x, w, rest in CASES]


def few(*indices):
    return lambda rng, dtype: [samples(rng, dtype)[i] for i in indices]


def edges(dtype):
    """Every value meets numbers; the kernel is finite and no padding is near, where 0 times infinity might be."""
    values = edge_values(dtype)
    values = values if values.dtype.kind in "iu" else values[np.isnan(values) | (abs(values) < 1e4) | np.isinf(values)]
    x = np.stack([values, np.ones_like(values)])[:, None]
    w = np.array([[[1, 2]], [[3, 1]]]).astype(dtype)
    return [Sample((x, w, (1,), "VALID"))]


def transposed(x, w, strides, padding, dilation=None, layout=None, flip=False, consistent=False):
    return lax.conv_transpose(x, w, strides, padding, dilation, layout, flip, use_consistent_padding=consistent)


def transposed_reference(x, w, strides, padding, dilation=None, layout=None, flip=False, consistent=False):
    """Each element of the input adds a copy of the kernel, flipped, to the result, which is then cropped or padded."""
    spatial = "HWD"[: x.ndim - 2]
    names = layout or (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C")
    x, w = x.transpose(order(names[0], "NC" + spatial)), w.transpose(order(names[1], "OI" + spatial))
    rank = len(spatial)
    if flip:
        w = np.flip(w, range(2, rank + 2)).swapaxes(0, 1)
    b = dilation or [1] * rank
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], b)]
    shape = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], strides, spans)]
    out = np.zeros((x.shape[0], w.shape[0], *shape), x.dtype)
    for at in np.ndindex(x.shape[2:]):
        for tap in np.ndindex(w.shape[2:]):
            place = [p * s + (k - 1 - t) * d for p, s, k, t, d in zip(at, strides, w.shape[2:], tap, b)]
            out[(..., *place)] += np.einsum("nc,oc->no", x[(..., *at)], w[(..., *tap)])
    # `out` is what all-around padding by span - 1 gives.
    lengths = None
    if padding == "SAME":
        lengths = [n * s for n, s in zip(x.shape[2:], strides)]
        lows = [k - 1 - (k - 1 if s > k - 1 else -(-(k + s - 2) // 2)) for k, s in zip(spans, strides)]
    elif padding == "VALID":
        lengths = [(n - 1) * s + max(k, s) for n, s, k in zip(x.shape[2:], strides, spans)]
        lows = [0] * rank
    elif consistent:
        lows = [low for low, _ in padding]
        lengths = [n - low - high for n, (low, high) in zip(shape, padding)]
    else:
        lows = [k - 1 - low for k, (low, _) in zip(spans, padding)]
        lengths = [n - 2 * (k - 1) + low + high for n, k, (low, high) in zip(shape, spans, padding)]
    for axis, (low, length) in enumerate(zip(lows, lengths), 2):
        assert low >= 0
        n = out.shape[axis]
        out = np.pad(out, [(0, max(0, low + length - n)) if i == axis else (0, 0) for i in range(out.ndim)])
        out = np.take(out, range(low, low + length), axis)
    return out.transpose(order("NC" + spatial, names[2]))


TRANSPOSED = [
    ((2, 3, 2), (3, 2, 2), ((2,), "SAME")),
    ((2, 3, 2), (2, 2, 3), ((3,), "VALID")),
    ((1, 2, 3, 1), (3, 3, 1, 2), ((2, 2), "SAME")),
    ((1, 2, 3, 1), (3, 3, 2, 1), ((2, 1), "VALID", None, None, True)),
    ((1, 2, 3), (1, 2, 3), ((2,), [(2, 1)], None, ("NCH", "OIH", "NCH"))),
    ((1, 2, 3), (1, 2, 3), ((2,), [(1, 0)], (2,), ("NCH", "OIH", "NHC"), False, True)),
]


def patches(x, window, strides, padding, lhs_dilation=None, rhs_dilation=None, layout=None):
    return lax.conv_general_dilated_patches(x, window, strides, padding, lhs_dilation, rhs_dilation, layout)


def patches_reference(x, window, strides, padding, lhs_dilation=None, rhs_dilation=None, layout=None):
    """A convolution for each feature and place in the window, with a kernel that is 1 there and 0 elsewhere."""
    spatial = "HWD"[: x.ndim - 2]
    names = layout or ("NC" + spatial, "OI" + spatial, "NC" + spatial)
    spatial = [c for c in names[1] if c not in "OI"]
    features = x.shape[names[0].index("C")]
    n = features * int(np.prod(window))
    kernel = np.eye(n, dtype=x.dtype).reshape(n, features, *window)
    kernel = kernel.transpose(order(["O", "I", *spatial], names[1]))
    return reference(x, kernel, strides, padding, lhs_dilation, rhs_dilation, names)


PATCHES = [
    ((1, 2, 5), ((2,), (1,), "VALID")),
    ((2, 4, 3, 2), ((2, 3), (1, 2), "SAME", None, (2, 1), LAST)),
    ((1, 1, 3, 2), ((2, 2), (1, 1), [(1, 1), (0, 2)], (2, 1), None, ("NCHW", "OIWH", "CNWH"))),
]


def local_reference(x, w, strides, padding, window, layout=None):
    p = patches_reference(x, window, strides, padding, None, None, layout)
    if layout is None:
        return np.einsum("nc...,oc...->no...", p, w)
    return np.einsum("nhwc,hwco->nhwo", p, w)


LOCAL = [
    ((2, 2, 5), (3, 4, 4), ((1,), "VALID", (2,))),
    ((1, 3, 4, 2), (3, 2, 8, 3), ((1, 2), "SAME", (2, 2), None, None, LAST)),
]


def listed(cases, operands=2):
    return lambda rng, dtype: [
        Sample((*(array(rng, dtype, s) for s in case[:operands]), *case[operands])) for case in cases
    ]


x1, w1 = np.ones((1, 2, 5)), np.ones((3, 2, 2))

OPS = [
    Op(
        "conv_general_dilated",
        conv,
        samples,
        reference,
        NUMBERS,
        edges=edges,
        ulps=40,
        rtol={
            "float32": 1e-5,
            "complex64": 1e-5,
            "float64": 1e-13,
            "complex128": 1e-13,
            "float16": 2e-3,
            "bfloat16": 2e-2,
        },
        errors=[
            (
                lambda: lax.conv_general_dilated(x1, np.ones((3, 3, 2)), (1,), "VALID"),
                TypeError,
                r"conv_general_dilated: .* f64\[1,2,5\], 3 and 3 in f64\[3,3,2\], feature_group_count=1",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1[0], (1,), "VALID"),
                TypeError,
                r"conv_general_dilated: .* \(1, 2, 5\) and \(2, 2\)",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1, (0,), "VALID"),
                ValueError,
                r"conv_general_dilated: window_strides must be 1 ints of at least 1, got \(0,\)",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1, (1, 1), "VALID"),
                ValueError,
                r"conv_general_dilated: window_strides .* got \(1, 1\)",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1, (1,), [1]),
                TypeError,
                r"conv_general_dilated: padding must be .* 1 pairs of ints, got \[1\]",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1, (1,), [(1, 1), (0, 0)]),
                ValueError,
                r"conv_general_dilated: padding must be 1 pairs, .* got \[\(1, 1\), \(0, 0\)\]",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1, (1,), "SAME", (2,)),
                ValueError,
                r"conv_general_dilated: with lhs_dilation \(2,\) padding must be given as pairs, not as 'SAME'",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1.astype("float32"), (1,), "SAME"),
                TypeError,
                r"conv_general_dilated needs operands of one dtype, got f64\[1,2,5\], f32\[3,2,2\]",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1[:, :, :0], (1,), "SAME"),
                TypeError,
                r"conv_general_dilated: the kernel's spatial axes must not be empty, got f64\[3,2,0\]",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1, (1,), "SAME", batch_group_count=2),
                ValueError,
                r"conv_general_dilated: batch_group_count must divide the batch .* f64\[1,2,5\]",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1, (1,), "SAME", preferred_element_type="float32"),
                TypeError,
                r"conv_general_dilated: preferred_element_type .* float64 and not narrower, got float32",
            ),
            (
                lambda: lax.conv_general_dilated(x1, w1, (1,), "SAME", precision="best"),
                ValueError,
                r"conv_general_dilated: precision must be .*'best'",
            ),
        ],
    ),
    Op(
        "conv_general_dilated:many features",  # which XLA's own kernels compute on CPU
        conv,
        lambda rng, dtype: [
            Sample((*arrays(rng, dtype, (1, 32, 3, 3), (32, 32, 2, 2)), (1, 1), [(1, 1), (0, 1)], gaps))
            for gaps in (None, (2, 2))
        ],
        reference,
        ("float32", "float64"),
        order=1,
        ulps=100,
        rtol={"float32": 1e-4, "float64": 1e-12},
        errors=[
            (
                lambda: conv(np.ones((1, 32, 3, 3)), np.ones((32, 31, 2, 2)), (1, 1), "VALID"),
                TypeError,
                r"conv_general_dilated: .* got 32 in f64\[1,32,3,3\], 31 and 32 in",
            )
        ],
    ),
    Op(
        "conv_general_dilated:preferred",
        lambda x, w: conv(x, w, (1,), "SAME", preferred="float64"),
        lambda rng, dtype: [Sample(arrays(rng, dtype, (2, 3, 5), (4, 3, 2)))],
        lambda x, w: reference(x, w, (1,), "SAME", preferred="float64"),
        ("float32",),
        ulps=40,
        rtol=1e-13,
        errors=[
            (
                lambda: conv(x1, w1, (1,), "SAME", preferred="int32"),
                TypeError,
                r"conv_general_dilated: preferred_element_type .* float64 .* got int32",
            )
        ],
    ),
    Op(
        "conv_general_dilated:wide sum of bytes",
        lambda x, w: conv(x, w, (1,), "SAME", preferred="int32"),
        lambda rng, dtype: [Sample(arrays(rng, dtype, (2, 3, 5), (4, 3, 2), low=-128, high=127))],
        lambda x, w: reference(x, w, (1,), "SAME", preferred="int32"),
        ("int8",),
        errors=[
            (
                lambda: conv(x1.astype("int8"), w1.astype("int8"), (1,), "SAME", preferred="uint8"),
                TypeError,
                r"conv_general_dilated: preferred_element_type .* int8 .* got uint8",
            )
        ],
    ),
    Op(
        "conv_general_dilated:large integers",
        conv,
        lambda rng, dtype: [
            Sample(
                (
                    rng.integers(-(2**31), 2**31, (2, 3, 9)).astype(dtype),
                    rng.integers(0, 2**31, (2, 3, 4)).astype(dtype),
                    (1,),
                    "SAME",
                )
            )
        ],
        reference,
        ("int32", "uint32", "int64", "uint64"),
        errors=[
            (
                lambda: conv(x1.astype("int32"), w1.astype("uint32"), (1,), "SAME"),
                TypeError,
                r"conv_general_dilated needs operands of one dtype, got i32\[1,2,5\], u32\[3,2,2\]",
            ),
            (lambda: conv(x1 > 0, w1 > 0, (1,), "SAME"), TypeError, r"conv_general_dilated takes .* bool\[1,2,5\]"),
            (
                lambda: conv(x1, w1, (1,), "SAME", groups=1.5),
                TypeError,
                r"conv_general_dilated: feature_group_count .* ints, got \(1.5,\)",
            ),
        ],
    ),
    Op(
        "conv_transpose",
        transposed,
        listed(TRANSPOSED),
        transposed_reference,
        ("int32", "float32", "float64", "complex128"),
        ulps=40,
        rtol={"float32": 1e-5, "float64": 1e-13, "complex128": 1e-13},
        errors=[
            (
                lambda: lax.conv_transpose(np.ones((1, 5, 2)), np.ones((3, 2, 2)), (2,), "FULL"),
                ValueError,
                r"conv_transpose: padding must be 'SAME', 'VALID' or pairs of ints, got 'FULL'",
            ),
            (
                lambda: lax.conv_transpose(np.ones((1, 5, 2)), np.ones((3, 2)), (2,), "SAME"),
                TypeError,
                r"conv_transpose: .* \(1, 5, 2\) and \(3, 2\)",
            ),
        ],
    ),
    Op(
        "conv_general_dilated_patches",
        patches,
        listed(PATCHES, 1),
        patches_reference,
        ("int32", "float16", "float64"),
        edges=lambda dtype: (
            [Sample((edge_values(dtype)[None, None], (2,), (1,), "VALID"))] if dtype.kind in "iu" else []
        ),
        errors=[
            (
                lambda: lax.conv_general_dilated_patches(x1, (2, 2), (1,), "VALID"),
                ValueError,
                r"conv_general_dilated_patches: filter_shape must be 1 ints of at least 1, got \(2, 2\)",
            )
        ],
    ),
    Op(
        "conv_general_dilated_local",
        lax.conv_general_dilated_local,
        listed(LOCAL),
        lambda x, w, strides, padding, window, a=None, b=None, layout=None: local_reference(
            x, w, strides, padding, window, layout
        ),
        ("int32", "float32", "float64", "complex128"),
        ulps=40,
        rtol={"float32": 1e-5, "float64": 1e-13, "complex128": 1e-13},
        errors=[
            (
                lambda: lax.conv_general_dilated_local(x1, np.ones((3, 4, 3)), (1,), "VALID", (2,)),
                TypeError,
                r"conv_general_dilated_local: .* 4 features at places \(4,\), .* f64\[3,4,3\]",
            )
        ],
    ),
]
