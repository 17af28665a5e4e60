"""`conv_general_dilated`: convolutions (correlations, to be exact) in any layout, with all rules.

The kernel isn't flipped: ``out[n, o, p] = sum(lhs[n, c, p * stride + k * rhs_dilation - low] * rhs[o, c, k])`` over the
features c and the elements k of the window, where `lhs` has gaps (`lhs_dilation`) and padding of zeros. With
`feature_group_count` the features are split, and each group is convolved with its own part of the kernel.

May import: the elementwise modules, `lax.conversion`, `lax.shapes`, `lax.slicing`, `lax.reductions`, `lax.dot`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters.jet import bilinear
from xform.interpreters.lowering import Context, Value, i64s, lower_as
from xform.interpreters.tangents import Zero, add_tangents, is_linear, zero_of
from xform.lax import families
from xform.lax.arithmetic import add_p, complex_p, imag_p, real_p, sub_p
from xform.lax.conversion import convert
from xform.lax.convolution import cpu, host
from xform.lax.convolution.dimensions import ConvDimensionNumbers, dilated, permuted, unpermuted, window_count
from xform.lax.dot import check_preferred
from xform.lax.reductions import accumulator
from xform.lax.shapes import full, moveaxis, reshape, rev, transpose

NAME = "conv_general_dilated"


def _types(
    x: ShapedArray,
    w: ShapedArray,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> ShapedArray:
    families.check_kind(NAME, [x, w], "number")
    families.check_same_dtype(NAME, [x, w])
    lhs, rhs = permuted(x.shape, dimension_numbers.lhs_spec), permuted(w.shape, dimension_numbers.rhs_spec)
    if rhs[1] * feature_group_count != lhs[1] or rhs[0] % feature_group_count:
        raise TypeError(
            f"lax.{NAME}: the input's features must be feature_group_count times those of the kernel, and the kernel's "
            f"output features divisible by it; got {lhs[1]} in {x.str_short()}, {rhs[1]} and {rhs[0]} in "
            f"{w.str_short()}, feature_group_count={feature_group_count}"
        )
    spatial = []
    for n, k, s, pad, a, b in zip(lhs[2:], rhs[2:], window_strides, padding, lhs_dilation, rhs_dilation, strict=True):
        if k < 1:
            raise TypeError(f"lax.{NAME}: the kernel's spatial axes must not be empty, got {w.str_short()}")
        spatial.append(window_count(dilated(n, a), pad, dilated(k, b), s))
    if preferred_element_type is not None:
        check_preferred(NAME, x.dtype, preferred_element_type)
    dtype = x.dtype if preferred_element_type is None else preferred_element_type
    weak = x.weak_type and w.weak_type and preferred_element_type is None
    return ShapedArray(unpermuted((lhs[0], rhs[0], *spatial), dimension_numbers.out_spec), dtype, weak)


def _host(x: Any, w: Any, *, dimension_numbers: ConvDimensionNumbers, feature_group_count: int, **params: Any) -> Any:
    aval = _types(
        ShapedArray(x.shape, x.dtype),
        ShapedArray(w.shape, w.dtype),
        dimension_numbers=dimension_numbers,
        feature_group_count=feature_group_count,
        **params,
    )
    wide = accumulator(aval.dtype)
    x, w = (v.transpose(spec).astype(wide, copy=False) for v, spec in zip((x, w), dimension_numbers[:2], strict=True))
    out = np.zeros(aval.shape, wide)
    groups, (batch, _, *spatial), (features, inner, *window) = feature_group_count, x.shape, w.shape
    result = out.transpose(dimension_numbers.out_spec)
    host.convolve(
        np.moveaxis(x.reshape(batch, groups, inner, *spatial), 1, 0),
        w.reshape(groups, features // groups, inner, *window),
        np.moveaxis(_split(result, groups), 1, 0),
        params["window_strides"],
        params["padding"],
        params["lhs_dilation"],
        params["rhs_dilation"],
    )
    return out.astype(aval.dtype, copy=False)


def _split(x: np.ndarray, groups: int) -> np.ndarray:
    """A view of `x` with axis 1 split into groups."""
    shape, strides = x.shape, x.strides
    size = shape[1] // groups
    return np.lib.stride_tricks.as_strided(
        x, (shape[0], groups, size, *shape[2:]), (strides[0], size * strides[1], *strides[1:])
    )


def _jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
    (x, w), (tx, tw) = primals, ts
    out = conv_general_dilated_p.bind(x, w, **params)
    term = None if type(tx) is Zero else conv_general_dilated_p.bind(tx, w, **params)
    if type(tw) is not Zero:
        term = add_tangents(term, conv_general_dilated_p.bind(x, tw, **params))
    return out, zero_of(out) if term is None else term


def _transpose(ct: Any, x: Any, w: Any, *, dimension_numbers: Any, **params: Any) -> list[Any]:
    to_lhs = is_linear(x)
    linear, known = (x, w) if to_lhs else (w, x)
    if 0 in get_aval(ct).shape or 0 in linear.aval.shape:
        out = full(linear.aval.shape, 0, linear.aval.dtype)
    else:
        known = convert(known, get_aval(ct).dtype)
        rule = _transpose_lhs if to_lhs else _transpose_rhs
        params["preferred_element_type"] = None
        out = convert(rule(ct, known, linear.aval.shape, dimension_numbers, **params), linear.aval.dtype)
    return [out, None] if to_lhs else [None, out]


def _transpose_lhs(
    ct: Any,
    w: Any,
    shape: Sequence[int],
    numbers: ConvDimensionNumbers,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    feature_group_count: int,
    **params: Any,
) -> Any:
    """The cotangent with gaps, convolved with the flipped kernel, whose input and output features change places."""
    lhs_spec, rhs_spec, out_spec = numbers
    w = rev(w, rhs_spec[2:])
    window = permuted(w.shape, rhs_spec)[2:]
    if feature_group_count > 1:
        w = transpose(w, rhs_spec)
        features, inner = w.shape[:2]
        w = reshape(w, (feature_group_count, features // feature_group_count, inner, *window))
        w = transpose(w, (0, 2, 1, *range(3, w.ndim)))
        w = reshape(w, (feature_group_count * inner, features // feature_group_count, *window))
        spec: Sequence[int] = tuple(range(w.ndim))
    else:
        spec = (rhs_spec[1], rhs_spec[0], *rhs_spec[2:])
    pads = []
    for n, p, k, s, (low, _), a, b in zip(
        permuted(shape, lhs_spec)[2:], permuted(ct.shape, out_spec)[2:], window, window_strides, padding, lhs_dilation,
        rhs_dilation, strict=True,
    ):  # fmt: skip
        pads.append((dilated(k, b) - 1 - low, dilated(n, a) + low - dilated(p, s)))
    return conv_general_dilated_p.bind(
        ct, w,
        window_strides=lhs_dilation, padding=tuple(pads), lhs_dilation=window_strides, rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(out_spec, spec, lhs_spec),
        feature_group_count=feature_group_count, **params,
    )  # fmt: skip


def _transpose_rhs(
    ct: Any,
    x: Any,
    shape: Sequence[int],
    numbers: ConvDimensionNumbers,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    feature_group_count: int,
    **params: Any,
) -> Any:
    """The input convolved with the cotangent: batch and features of both change places, strides and dilations too."""
    lhs_spec, rhs_spec, out_spec = numbers
    spatial = permuted(x.shape, lhs_spec)[2:]
    if feature_group_count > 1:
        x = transpose(x, lhs_spec)
        batch, features = x.shape[:2]
        x = reshape(x, (batch, feature_group_count, features // feature_group_count, *spatial))
        x = transpose(x, (2, 1, 0, *range(3, x.ndim)))
        x = reshape(x, (features // feature_group_count, feature_group_count * batch, *spatial))
        spec: Sequence[int] = tuple(range(x.ndim))
    else:
        spec = (lhs_spec[1], lhs_spec[0], *lhs_spec[2:])
    pads = []
    for n, p, k, s, (low, _), a, b in zip(
        spatial, permuted(ct.shape, out_spec)[2:], permuted(shape, rhs_spec)[2:], window_strides, padding, lhs_dilation,
        rhs_dilation, strict=True,
    ):  # fmt: skip
        pads.append((low, dilated(k, b) - 1 + dilated(p, s) - dilated(n, a) - low))
    return conv_general_dilated_p.bind(
        x, ct,
        window_strides=rhs_dilation, padding=tuple(pads), lhs_dilation=lhs_dilation, rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(
            spec, (out_spec[1], out_spec[0], *out_spec[2:]), (rhs_spec[1], rhs_spec[0], *rhs_spec[2:])
        ),
        feature_group_count=feature_group_count, **params,
    )  # fmt: skip


def _batch(
    axis: Any,
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    **params: Any,
) -> Any:
    """The mapped axis becomes part of the batch, of the output features, or, if both have it, of the groups."""
    (x, w), (dx, dw) = args, dims
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups, target = 1, out_spec[1]
    if dx is None:
        groups = feature_group_count
        w, length = _merge(w, dw, rhs_spec[0], groups)
    elif dw is None:
        x, length = _merge(x, dx, lhs_spec[0])
        target = out_spec[0]
    else:
        x, _ = _merge(x, dx, lhs_spec[1])
        w, length = _merge(w, dw, rhs_spec[0])
        feature_group_count *= axis.size
    out = conv_general_dilated_p.bind(
        x, w, dimension_numbers=dimension_numbers, feature_group_count=feature_group_count, **params
    )
    before, after = out.shape[:target], out.shape[target + 1 :]
    if groups == 1:
        return reshape(out, (*before, axis.size, length, *after)), target
    out = reshape(out, (*before, groups, axis.size, length // groups, *after))
    out = moveaxis(out, target + 1, target)
    return reshape(out, (*before, axis.size, length, *after)), target


def _merge(x: Any, dim: int, target: int, groups: int = 1) -> tuple[Any, int]:
    """`x` with its mapped axis as the leading part of the axis `target`, or of each of its groups; the old length."""
    x = moveaxis(x, dim, 0)
    size, *shape = x.shape
    before, length, after = shape[:target], shape[target], shape[target + 1 :]
    x = reshape(x, (size, *before, groups, length // groups, *after))
    x = moveaxis(x, 0, target + 1)
    return reshape(x, (*before, length * size, *after)), length


def _lower(ctx: Context, x: Value, w: Value, **params: Any) -> Value:
    if 0 in ctx.out.shape or 0 in x.shape or 0 in w.shape:
        return ctx.full(ctx.out.shape, 0, ctx.out.dtype)
    if ctx.platform != "cpu":
        return _convolution(ctx, x, w, **params)
    out = ctx.out
    wide = accumulator(out.dtype)  # as for dot_general: no kernels for mixed types, narrow floats rounded at each step
    x, w = ctx.convert(x, wide), ctx.convert(w, wide)
    ctx.outs = [out.update(dtype=wide)]
    params |= {"preferred_element_type": None}
    other = cpu.choose(x.aval, w.aval, **params)
    rule = _complex if families.is_complex(x) else _convolution if other is None else lower_as(other)
    if other is not None:  # else what makes the operands may be fused, and computed for each element of the window
        x, w = ctx.op("optimization_barrier", [x, w], [x.aval, w.aval])
    return ctx.convert(rule(ctx, x, w, **params), out.dtype)


def _convolution(
    ctx: Context,
    x: Value,
    w: Value,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Value:
    """Write stablehlo.convolution."""
    fields = []
    for what, spec, first in zip(
        ("input", "kernel", "output"),
        dimension_numbers,
        (("batch", "feature"), ("output_feature", "input_feature"), ("batch", "feature")),
        strict=True,
    ):
        fields += [f"{what}_{name}_dimension = {axis}" for name, axis in zip(first, spec, strict=False)]
        fields.append(f"{what}_spatial_dimensions = {list(spec[2:])}")
    pads = f"dense<{[list(p) for p in padding]}> : tensor<{len(padding)}x2xi64>"
    attributes = [
        f"dimension_numbers = #stablehlo.conv<raw {', '.join(fields)}>",
        f"window_strides = {i64s(window_strides)}",
        f"padding = {pads if padding else 'dense<> : tensor<0x2xi64>'}",
        f"lhs_dilation = {i64s(lhs_dilation)}",
        f"rhs_dilation = {i64s(rhs_dilation)}",
        f"feature_group_count = {feature_group_count} : i64",
        "batch_group_count = 1 : i64",
    ]
    if precision is not None:
        names = ", ".join(f"#stablehlo<precision {p.name}>" for p in precision)
        attributes.append(f"precision_config = [{names}]")
    return ctx.op("convolution", [x, w], ctx.out, ", ".join(attributes))


@lower_as
def _complex(x: Any, w: Any, **params: Any) -> Any:
    """Real convolutions of the parts; XLA has no complex ones on CPU."""

    def conv(a: Any, b: Any) -> Any:
        return conv_general_dilated_p.bind(a, b, **params)

    (xr, xi), (wr, wi) = ([p.bind(v) for p in (real_p, imag_p)] for v in (x, w))
    return complex_p.bind(sub_p.bind(conv(xr, wr), conv(xi, wi)), add_p.bind(conv(xr, wi), conv(xi, wr)))


conv_general_dilated_p = Primitive(NAME)
conv_general_dilated_p.abstract_eval = _types
conv_general_dilated_p.host = _host
conv_general_dilated_p.jvp = _jvp
conv_general_dilated_p.jet = bilinear(conv_general_dilated_p)
conv_general_dilated_p.transpose = _transpose
conv_general_dilated_p.batch = _batch
conv_general_dilated_p.lower = _lower
