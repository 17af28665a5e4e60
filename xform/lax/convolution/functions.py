"""The public functions of convolution.

May import: the other modules of `lax.convolution`, `lax.dot`, `lax.conversion`, `lax.shapes`, `lax.strided`.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import get_aval
from xform.core.errors import api_boundary
from xform.lax.conversion import convert
from xform.lax.convolution.dimensions import (
    ConvDimensionNumbers,
    as_ints,
    as_pads,
    conv_dimension_numbers,
    dilated,
    permuted,
    transpose_pads,
    unpermuted,
    window_count,
)
from xform.lax.convolution.primitive import conv_general_dilated_p
from xform.lax.dot import canonical_precision, dot_general
from xform.lax.families import as_operands, check_kind
from xform.lax.shapes import reshape, rev, transpose
from xform.lax.strided import dilate_and_pad, unfold


@api_boundary
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Convolution over any number of spatial axes, with strides, gaps, padding and groups.

    ``out[n, o, p] = sum(padded[n, c, p * stride + k * rhs_dilation] * rhs[o, c, k])`` over features c and places k in
    the window (the kernel isn't flipped), where `padded` is `lhs` with gaps of ``lhs_dilation - 1`` zeros between its
    elements and zeros around it.

    Parameters
    ----------
    lhs : array of batch, feature and spatial axes
    rhs : array of output feature, input feature and spatial axes, of the same dtype
    window_strides : int for each spatial axis
    padding : 'VALID', 'SAME', 'SAME_LOWER', or a pair (low, high) for each spatial axis
        'SAME' makes ``ceil(length / stride)`` windows. Negative amounts crop. With `lhs_dilation` it must be pairs.
    lhs_dilation, rhs_dilation : int for each spatial axis, optional
    dimension_numbers : see `conv_dimension_numbers`
        The order of the axes; by default that above.
    feature_group_count : int
        Split the features of `lhs` and the output features of `rhs` into so many groups and convolve each for itself;
        `rhs` has the input features of one group.
    batch_group_count : int
        Split the batch, and the output features, likewise. Not both.
    precision : see `dot_general`
    preferred_element_type : dtype, optional
        Of the result, and of the accumulation.

    Raises TypeError or ValueError for arguments that don't fit, naming them. Where padding meets an infinity or NaN in
    the kernel, the result may be NaN, or as if there were no padding.

    Examples
    --------
    >>> from xform import lax
    >>> x, kernel = np.arange(5.0).reshape(1, 1, 5), np.array([[[1.0, 0.0, -1.0]]])
    >>> lax.conv_general_dilated(x, kernel, (1,), "VALID").tolist()
    [[[-2.0, -2.0, -2.0]]]
    >>> lax.conv_general_dilated(x, kernel, (2,), "SAME").tolist()
    [[[-1.0, -2.0, 3.0]]]
    """
    name = "conv_general_dilated"
    if out_sharding is not None:
        raise NotImplementedError(f"lax.{name}: out_sharding is not supported yet")
    lhs, rhs = as_operands(name, lhs, rhs)
    numbers, strides, pads, lhs_dilation, rhs_dilation = _canonical(
        name, get_aval(lhs).shape, get_aval(rhs).shape, window_strides, padding, lhs_dilation, rhs_dilation,
        dimension_numbers,
    )  # fmt: skip
    groups, batch_groups = (
        as_ints(name, what, (count,), 1)[0]
        for what, count in (("feature_group_count", feature_group_count), ("batch_group_count", batch_group_count))
    )
    if batch_groups > 1:
        lhs, numbers, groups = _batch_groups_to_features(lhs, get_aval(rhs), numbers, groups, batch_groups)
    if preferred_element_type is not None:
        preferred_element_type = np.dtype(dtypes.canonicalize_dtype(preferred_element_type))
    return conv_general_dilated_p.bind(
        lhs, rhs,
        window_strides=strides, padding=pads, lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
        dimension_numbers=numbers, feature_group_count=groups, precision=canonical_precision(precision, name),
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _canonical(
    name: str, x: Sequence[int], w: Sequence[int], strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
    dimension_numbers: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """Checked tuples of strides, padding and dilations for shapes of input and kernel."""
    if len(x) < 2 or len(x) != len(w):
        raise TypeError(f"lax.{name}: input and kernel must have the same rank, at least 2, got shapes {x} and {w}")
    numbers = conv_dimension_numbers(x, w, dimension_numbers)
    rank = len(x) - 2
    strides = as_ints(name, "window_strides", strides, rank)
    lhs_dilation = as_ints(name, "lhs_dilation", lhs_dilation, rank)
    rhs_dilation = as_ints(name, "rhs_dilation", rhs_dilation, rank)
    if isinstance(padding, str) and any(d > 1 for d in lhs_dilation):
        raise ValueError(
            f"lax.{name}: with lhs_dilation {lhs_dilation} padding must be given as pairs, not as {padding!r}; "
            "lax.conv_transpose takes 'SAME' and 'VALID'"
        )
    window = [dilated(k, d) for k, d in zip(permuted(w, numbers.rhs_spec)[2:], rhs_dilation, strict=True)]
    pads = as_pads(name, padding, permuted(x, numbers.lhs_spec)[2:], window, strides)
    return numbers, strides, pads, lhs_dilation, rhs_dilation


def _batch_groups_to_features(x: Any, w: Any, numbers: Any, feature_groups: int, groups: int) -> tuple[Any, ...]:
    """The groups of the batch moved to the features, and the layout and number of groups after that."""
    batch, features, *spatial = permuted(get_aval(x).shape, numbers.lhs_spec)
    outputs = w.shape[numbers.rhs_spec[0]]
    if feature_groups > 1 or batch % groups or outputs % groups:
        raise ValueError(
            "lax.conv_general_dilated: batch_group_count must divide the batch of the input and the output features "
            f"of the kernel, and feature_group_count be 1; got batch_group_count={groups}, "
            f"feature_group_count={feature_groups}, input {get_aval(x).str_short()}, kernel {w.str_short()}"
        )
    x = reshape(transpose(x, numbers.lhs_spec), (groups, batch // groups, features, *spatial))
    x = transpose(x, (1, 0, *range(2, x.ndim)))
    x = reshape(x, (batch // groups, groups * features, *spatial))
    return x, numbers._replace(lhs_spec=tuple(range(x.ndim))), groups


@api_boundary
def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Convolution with axes in the order batch, feature, spatial; see `conv_general_dilated`."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


@api_boundary
def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Convolution with axes in the order batch, feature, spatial; see `conv_general_dilated`."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


@api_boundary
def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Any:
    """Transposed ("fractionally strided") convolution: it makes the spatial axes `strides` times as long.

    Parameters
    ----------
    strides : int for each spatial axis
    padding : 'SAME', 'VALID', or a pair (low, high) for each spatial axis
        The names are the padding of the convolution that this one is the transpose of. So are the pairs with
        `use_consistent_padding`; else they are the padding of the `lhs` with its gaps.
    rhs_dilation : int for each spatial axis, optional
    dimension_numbers : see `conv_dimension_numbers`
        By default, the features are last: NHWC, kernel HWIO.
    transpose_kernel : bool
        Flip the kernel's spatial axes and exchange its features: with the kernel of a convolution, the result is the
        cotangent of that convolution's input.

    Examples
    --------
    >>> from xform import lax
    >>> lax.conv_transpose(np.ones((1, 3, 1)), np.array([1.0, 10.0]).reshape(2, 1, 1), (2,), "VALID")[0, :, 0].tolist()
    [10.0, 1.0, 10.0, 1.0, 10.0, 1.0]
    """
    name = "conv_transpose"
    lhs, rhs = as_operands(name, lhs, rhs)
    x, w = get_aval(lhs).shape, get_aval(rhs).shape
    if len(x) < 2 or len(x) != len(w):
        raise TypeError(f"lax.{name}: input and kernel must have the same rank, at least 2, got shapes {x} and {w}")
    rank = len(x) - 2
    if dimension_numbers is None:
        last = rank + 1
        inner = tuple(range(1, last))
        dimension_numbers = ConvDimensionNumbers((0, last, *inner), (last, rank, *range(rank)), (0, last, *inner))
    numbers = conv_dimension_numbers(x, w, dimension_numbers)
    strides = as_ints(name, "strides", strides, rank)
    dilation = as_ints(name, "rhs_dilation", rhs_dilation, rank)
    window = [dilated(k, d) for k, d in zip(permuted(w, numbers.rhs_spec)[2:], dilation, strict=True)]
    if isinstance(padding, str):
        pads: Any = tuple(transpose_pads(k, s, padding) for k, s in zip(window, strides, strict=True))
    else:
        pads = as_pads(name, padding, window, window, strides)
        if use_consistent_padding:
            pads = tuple((k - 1 - low, k - 1 - high) for k, (low, high) in zip(window, pads, strict=True))
    if transpose_kernel:
        rhs = rev(rhs, numbers.rhs_spec[2:])
        o, i, *spatial = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(i, o, *spatial))
    return conv_general_dilated(
        lhs, rhs, (1,) * rank, pads, strides, dilation, numbers,
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


@api_boundary
def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """The windows that a convolution would sum over, as features: patches of the input.

    Parameters
    ----------
    filter_shape : int for each spatial axis
    lhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers : see `conv_general_dilated`
        Of the layout of the kernel only the order of the spatial axes matters.

    Returns
    -------
    Array in the layout of the result, with ``features * prod(filter_shape)`` features: the feature of the input varies
    slowest, the last axis of the window fastest.

    Examples
    --------
    >>> from xform import lax
    >>> lax.conv_general_dilated_patches(np.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")[0].tolist()
    [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]
    """
    name = "conv_general_dilated_patches"
    (lhs,) = as_operands(name, lhs)
    check_kind(name, [get_aval(lhs)], "number")
    patches, numbers = _patches(
        name, lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    )
    if preferred_element_type is not None:
        patches = convert(patches, np.dtype(dtypes.canonicalize_dtype(preferred_element_type)))
    return transpose(patches, unpermuted(range(len(numbers.out_spec)), numbers.out_spec))


def _patches(
    name: str, x: Any, filter_shape: Any, window_strides: Any, padding: Any, lhs_dilation: Any, rhs_dilation: Any,
    dimension_numbers: Any,
) -> tuple[Any, ConvDimensionNumbers]:  # fmt: skip
    """Patches (batch, feature and place in the window, *spatial), and the layout."""
    shape = get_aval(x).shape
    rank = len(shape) - 2
    window = as_ints(name, "filter_shape", filter_shape, rank)
    kernel = conv_dimension_numbers(shape, shape, dimension_numbers).rhs_spec
    w = [v for _, v in sorted(zip(kernel, (1, 1, *window), strict=True))]
    numbers, strides, pads, lhs_dilation, rhs_dilation = _canonical(
        name, shape, tuple(w), window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    )
    x = transpose(x, numbers.lhs_spec)
    counts = [
        window_count(dilated(n, a), pad, dilated(k, b), s)
        for n, a, pad, k, b, s in zip(x.shape[2:], lhs_dilation, pads, window, rhs_dilation, strides, strict=True)
    ]
    batch, features = x.shape[:2]
    x = dilate_and_pad(x, pads, lhs_dilation, range(2, rank + 2), 0)
    # Each spatial axis in turn: (batch, feature, k0, k1, ..., p0, p1, ...).
    for i, (k, p, s, d) in enumerate(zip(window, counts, strides, rhs_dilation, strict=True)):
        x = unfold(x, 2 + 2 * i, k, p, s, d, 2 + i)
    return reshape(x, (batch, features * math.prod(window), *counts)), numbers


@api_boundary
def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Any:
    """Convolution with another kernel at each place of the result: a locally connected layer.

    Parameters
    ----------
    rhs : array
        Its spatial axes are those of the result; its input features are those of `conv_general_dilated_patches`.
    filter_shape : int for each spatial axis
        The window.
    lhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers : see `conv_general_dilated`

    Examples
    --------
    >>> from xform import lax
    >>> x, weights = np.arange(4.0).reshape(1, 1, 4), np.array([[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]])
    >>> lax.conv_general_dilated_local(x, weights, (1,), "VALID", (2,)).tolist()
    [[[0.0, 2.0, 5.0]]]
    """
    name = "conv_general_dilated_local"
    lhs, rhs = as_operands(name, lhs, rhs)
    patches, numbers = _patches(
        name, lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers
    )
    _, i, *spatial = numbers.rhs_spec
    kernel = get_aval(rhs)
    if kernel.ndim != patches.ndim or permuted(kernel.shape, (i, *spatial)) != patches.shape[1:]:
        raise TypeError(
            f"lax.{name}: the input's patches have {patches.shape[1]} features at places {patches.shape[2:]}, for "
            f"which the kernel has no weights: {kernel.str_short()}, layout {numbers}"
        )
    places = tuple(range(2, patches.ndim))
    out = dot_general(patches, rhs, (((1,), (i,)), (places, tuple(spatial))), precision)
    # (*places, batch, output feature)
    rank = len(places)
    return transpose(
        transpose(out, (rank, rank + 1, *range(rank))), unpermuted(range(len(numbers.out_spec)), numbers.out_spec)
    )
