"""Layouts, padding and shapes of convolutions and windows.

May import: `xform.core`.
"""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from xform.core.errors import api_boundary

Pads = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(NamedTuple):
    """Where the axes of a convolution are.

    Attributes
    ----------
    lhs_spec, out_spec : tuple of int
        Axes of input and result: batch, feature, then the spatial axes.
    rhs_spec : tuple of int
        Axes of the kernel: output feature, input feature, then the spatial axes.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


@api_boundary
def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any) -> Any:
    """The `ConvDimensionNumbers` that `dimension_numbers` stands for.

    Parameters
    ----------
    lhs_shape, rhs_shape : shapes of input and kernel, of one rank
    dimension_numbers : None, ConvDimensionNumbers or three strings
        None is batch, feature, spatial axes (kernel: output feature, input feature, spatial axes). In strings the
        letters N, C, O, I name these axes, any other letters the spatial ones, in whose order in the kernel's string
        strides and padding are given.

    Examples
    --------
    >>> from xform import lax
    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 16), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    rank = len(lhs_shape)
    if rank < 2 or rank != len(rhs_shape):
        raise ValueError(
            "lax.conv_dimension_numbers: input and kernel must have the same rank, at least 2, got shapes "
            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}"
        )
    if dimension_numbers is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(axes, axes, axes)
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        out = ConvDimensionNumbers(*(tuple(map(operator.index, spec)) for spec in dimension_numbers))
        if any(sorted(spec) != list(range(rank)) for spec in out):
            raise ValueError(
                f"lax.conv_dimension_numbers: each of {dimension_numbers} must be a permutation of the {rank} axes"
            )
        return out
    if isinstance(dimension_numbers, list | tuple) and len(dimension_numbers) == 3:
        if any(not isinstance(spec, str) or len(spec) != rank for spec in dimension_numbers):
            raise ValueError(
                f"lax.conv_dimension_numbers: dimension_numbers must be three strings of {rank} letters, one for each "
                f"axis of shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}, got {dimension_numbers}"
            )
        return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))
    raise TypeError(
        "lax.conv_dimension_numbers: dimension_numbers must be None, a ConvDimensionNumbers or three strings, got "
        f"{dimension_numbers!r}"
    )


@api_boundary
def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The permutations that bring the axes named by three strings into the order batch, feature, spatial axes.

    Examples
    --------
    >>> from xform import lax
    >>> lax.conv_general_permutations(("NWHC", "HWIO", "NHWC"))
    ((0, 3, 2, 1), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    lhs, rhs, out = dimension_numbers
    spatial = [c for c in rhs if c not in "OI"]
    for text, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if sorted(text) != sorted([*first, *spatial]) or len(set(text)) != len(text):
            raise ValueError(
                "lax.conv_general_permutations: input and result need the letters N and C, the kernel O and I, and all "
                f"the same other letters, each once; got {tuple(dimension_numbers)}"
            )
    return tuple(
        tuple(text.index(c) for c in (*first, *spatial)) for text, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    )


def dilated(n: int, dilation: int) -> int:
    """The length of n elements with gaps of ``dilation - 1`` between them."""
    return (n - 1) * dilation + 1 if n > 0 else 0


def window_count(n: int, pad: tuple[int, int], window: int, stride: int) -> int:
    """How many windows of a (dilated) length fit into n (dilated) elements with padding."""
    return max(0, (pad[0] + n + pad[1] - window) // stride + 1)


@api_boundary
def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """The amounts (low, high) of padding for each axis that the name of a padding stands for.

    Parameters
    ----------
    padding : 'VALID', 'SAME' or 'SAME_LOWER'
        None; or such that there are ``ceil(n / stride)`` windows, where an odd element goes to the end or, with
        'SAME_LOWER', to the beginning.

    Raises RuntimeError for other strings, TypeError for what isn't a string.

    Examples
    --------
    >>> from xform import lax
    >>> lax.padtype_to_pads((5, 6), (3, 2), (1, 1), "SAME")
    [(1, 1), (0, 1)]
    """
    return _named_pads("padtype_to_pads", in_shape, window_shape, window_strides, padding)


def _named_pads(
    name: str, in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """What `padtype_to_pads` returns, for lax.`name`."""
    kind = padding.upper() if isinstance(padding, str) else None
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        error = TypeError if kind is None else RuntimeError
        raise error(f"lax.{name}: padding must be 'SAME', 'SAME_LOWER' or 'VALID', got {padding!r}")
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    out = []
    for n, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = max(0, (-(-n // stride) - 1) * stride + window - n)
        small, large = total // 2, total - total // 2
        out.append((small, large) if kind == "SAME" else (large, small))
    return out


def as_ints(name: str, what: str, values: Any, rank: int, least: int = 1) -> tuple[int, ...]:
    """One int for each of `rank` spatial axes, at least `least`; None: ones."""
    if values is None:
        return (1,) * rank
    try:
        out = tuple(map(operator.index, values))
    except TypeError:
        raise TypeError(f"lax.{name}: {what} must be a sequence of {rank} ints, got {values!r}") from None
    if len(out) != rank or any(v < least for v in out):
        raise ValueError(f"lax.{name}: {what} must be {rank} ints of at least {least}, got {values!r}")
    return out


def as_pads(name: str, padding: Any, shape: Sequence[int], window: Sequence[int], strides: Sequence[int]) -> Pads:
    """`padding`, a string or pairs, as pairs (low, high) for each axis."""
    if isinstance(padding, str):
        return tuple(_named_pads(name, shape, window, strides, padding))
    try:
        out = tuple((operator.index(low), operator.index(high)) for low, high in padding)
    except (TypeError, ValueError):
        out = ()
        if len(shape) or not isinstance(padding, Sequence):
            raise TypeError(
                f"lax.{name}: padding must be 'SAME', 'SAME_LOWER', 'VALID' or {len(shape)} pairs of ints, got "
                f"{padding!r}"
            ) from None
    if len(out) != len(shape):
        raise ValueError(f"lax.{name}: padding must be {len(shape)} pairs, one for each axis, got {padding!r}")
    return out


# Shapes


@api_boundary
def conv_shape_tuple(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int], pads: Any, batch_group_count: int = 1
) -> tuple[int, ...]:
    """The shape of a convolution with the axes in the order batch, feature, spatial (kernel: output, input feature)."""
    rank = len(lhs_shape) - 2
    strides = as_ints("conv_shape_tuple", "strides", strides, rank)
    amounts = as_pads("conv_shape_tuple", pads, lhs_shape[2:], rhs_shape[2:], strides)
    spatial = [
        window_count(n, pad, k, s) for n, pad, k, s in zip(lhs_shape[2:], amounts, rhs_shape[2:], strides, strict=True)
    ]
    if lhs_shape[0] % batch_group_count:
        raise ValueError(
            f"lax.conv_shape_tuple: batch_group_count {batch_group_count} must divide the batch axis of {lhs_shape}"
        )
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


@api_boundary
def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of a convolution in the layout `dimension_numbers` (three strings)."""
    lhs_perm, rhs_perm, out_perm = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(permuted(lhs_shape, lhs_perm), permuted(rhs_shape, rhs_perm), window_strides, padding)
    return unpermuted(shape, out_perm)


@api_boundary
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """The shape of `conv_transpose` in the layout `dimension_numbers` (three strings)."""
    lhs_perm, rhs_perm, out_perm = conv_general_permutations(dimension_numbers)
    lhs, rhs = permuted(lhs_shape, lhs_perm), permuted(rhs_shape, rhs_perm)
    if isinstance(padding, str):
        padding = [transpose_pads(k, s, padding) for k, s in zip(rhs[2:], window_strides, strict=True)]
    spatial = [
        dilated(n, s) + low + high - k + 1
        for n, k, s, (low, high) in zip(lhs[2:], rhs[2:], window_strides, padding, strict=True)
    ]
    return unpermuted((lhs[0], rhs[0], *spatial), out_perm)


def transpose_pads(window: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding of the convolution that undoes, in shape, one with this window, stride and kind of padding."""
    match padding.upper():
        case "SAME":
            total = window + stride - 2
            low = window - 1 if stride > window - 1 else (total + 1) // 2
        case "VALID":
            total = window + stride - 2 + max(window - stride, 0)
            low = window - 1
        case _:
            raise ValueError(f"lax.conv_transpose: padding must be 'SAME', 'VALID' or pairs of ints, got {padding!r}")
    return low, total - low


def permuted(values: Sequence[int], permutation: Sequence[int]) -> tuple[int, ...]:
    """``values[i]`` for i in `permutation`."""
    return tuple(values[i] for i in permutation)


def unpermuted(values: Sequence[int], permutation: Sequence[int]) -> tuple[int, ...]:
    """What `permuted` makes into `values`."""
    return tuple(v for _, v in sorted(zip(permutation, values, strict=True)))
