"""How convolutions are computed on CPU where XLA's own operation is slow.

May import: `lax.strided`, `lax.dot`, `lax.reductions`, the elementwise modules, `lax.convolution.phases`.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.lax.arithmetic import add_p, mul_p
from xform.lax.conversion import convert
from xform.lax.convolution.dimensions import ConvDimensionNumbers, dilated, permuted, unpermuted, window_count
from xform.lax.convolution.phases import phases
from xform.lax.dot import dot_general_p
from xform.lax.reductions import reduce_sum_p
from xform.lax.shapes import broadcast_in_dim, reshape, transpose
from xform.lax.slicing import concatenate
from xform.lax.strided import dilate_and_pad, take_every, unfold, weave


@dataclass(frozen=True)
class Problem:
    """A convolution: its parameters, and the lengths of its axes.

    Attributes
    ----------
    groups, batch, inner, outer : int
        Groups, batch, input and output features of a group.
    places, window : tuple of int
        Spatial shapes of result and kernel.
    """

    window_strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    numbers: ConvDimensionNumbers
    groups: int
    precision: Any
    lengths: tuple[int, ...]
    batch: int
    inner: int
    outer: int
    places: tuple[int, ...]
    window: tuple[int, ...]

    @staticmethod
    def of(
        x: Any,
        w: Any,
        *,
        window_strides: Any,
        padding: Any,
        lhs_dilation: Any,
        rhs_dilation: Any,
        dimension_numbers: ConvDimensionNumbers,
        feature_group_count: int,
        precision: Any,
        preferred_element_type: Any,
    ) -> "Problem":
        """From operands (or their types) and parameters of the primitive."""
        batch, _, *lengths = permuted(x.shape, dimension_numbers.lhs_spec)
        features, inner, *window = permuted(w.shape, dimension_numbers.rhs_spec)
        places = [
            window_count(dilated(n, a), pad, dilated(k, b), s)
            for n, a, pad, k, b, s in zip(
                lengths, lhs_dilation, padding, window, rhs_dilation, window_strides, strict=True
            )
        ]
        return Problem(
            window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count, precision,
            tuple(lengths), batch, inner, features // feature_group_count, tuple(places), tuple(window),
        )  # fmt: skip

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.window)

    @property
    def few_taps(self) -> bool:
        """Whether the window has no more elements than the result, unlike in the derivative by a kernel."""
        return math.prod(self.window) <= math.prod(self.places)

    def input(self, x: Any, order: str) -> Any:
        """The input with its axes in the order of the letters g, n, c, s: group, batch, feature, spatial; padded."""
        x = reshape(transpose(x, self.numbers.lhs_spec), (self.batch, self.groups, self.inner, *self.lengths))
        x = transpose(x, _axes(order, "ngcs", x.ndim))
        first = order.index("s")
        return dilate_and_pad(x, self.padding, self.lhs_dilation, range(first, first + self.rank), 0)

    def kernel(self, w: Any, order: str) -> Any:
        """The kernel with its axes in the order of the letters g, o, c, s."""
        w = reshape(transpose(w, self.numbers.rhs_spec), (self.groups, self.outer, self.inner, *self.window))
        return transpose(w, _axes(order, "gocs", w.ndim))

    def result(self, out: Any, order: str) -> Any:
        """The result, in its layout, from an array whose axes are in the order of the letters g, n, o, s."""
        out = transpose(out, _axes("ngos", order, out.ndim))
        out = reshape(out, (self.batch, self.groups * self.outer, *self.places))
        return transpose(out, unpermuted(range(out.ndim), self.numbers.out_spec))


def _axes(wanted: str, given: str, ndim: int) -> list[int]:
    """The permutation from an order of letters to another; s stands for all spatial axes."""
    counter = iter(range(ndim))
    axes = {letter: [next(counter) for _ in range(ndim - 3 if letter == "s" else 1)] for letter in given}
    return [i for letter in wanted for i in axes[letter]]


MEGA = 1 << 20
UNROLLED = 64  # terms that are written out


def choose(x: ShapedArray, w: ShapedArray, **params: Any) -> Callable[..., Any] | None:
    """The function ``(x, w, **params)`` that computes the convolution by other primitives; None: XLA's own is best.

    What is best was measured (`benchmarks/convolution.py`). XLA has fast kernels for float32 with many features, for
    transposed ones in two dimensions too, and for float64 from 32 features on; its kernels for several groups, and for
    gaps in the input under a large window, as in derivatives by a kernel, are many times slower than need be.
    """
    c = Problem.of(x, w, **params)
    single = x.dtype == np.float32
    if any(d > 1 for d in c.lhs_dilation):
        fast = single and c.rank == 2 and c.groups == 1 and c.few_taps and c.inner >= 32
        return None if fast else by_phases
    terms = math.prod(c.window if c.few_taps else c.places)
    if c.inner == c.outer == 1:
        if terms <= UNROLLED and (c.groups > 1 or (c.few_taps and (single or c.rank == 1))):
            return by_taps
        if c.groups == 1:
            return by_float64 if single else None
    if x.dtype.kind != "f" or terms > UNROLLED:
        return None
    matrix = c.groups * c.inner * math.prod(c.window) * c.batch * math.prod(c.places)
    if c.groups > 1:
        slow = matrix <= 32 * MEGA and not (single and c.few_taps and matrix > 2 * MEGA)
    elif single:
        slow = c.inner <= 16 and matrix <= MEGA // 4
    else:
        slow = max(c.inner, c.outer) < 32 and c.outer > 2 and matrix <= (2 * MEGA if c.few_taps else 4 * MEGA)
    return by_matrix if slow else None


def by_float64(x: Any, w: Any, **params: Any) -> Any:
    """In double precision: XLA's kernel for that is some times faster where there is one feature."""
    from xform.lax.convolution.primitive import conv_general_dilated_p

    wide = np.dtype(np.float64)
    return convert(conv_general_dilated_p.bind(convert(x, wide), convert(w, wide), **params), x.dtype)


def by_phases(x: Any, w: Any, **params: Any) -> Any:
    """An input with gaps: an ordinary convolution for each phase, and their results interleaved."""
    from xform.lax.convolution.primitive import conv_general_dilated_p

    c = Problem.of(x, w, **params)
    axes = zip(c.lengths, c.places, c.window, c.window_strides, c.padding, c.lhs_dilation, c.rhs_dilation, strict=True)
    plans = [phases(*axis) for axis in axes]
    pieces = {}
    for combination in itertools.product(*plans):
        if all(p.taps for p in combination):
            kernel = w
            for axis, p in zip(c.numbers.rhs_spec[2:], combination, strict=True):
                kernel = take_every(kernel, axis, p.first_tap, p.taps, p.tap_step)
            params |= {
                "window_strides": tuple(p.stride for p in combination),
                "padding": tuple(p.pad for p in combination),
                "lhs_dilation": (1,) * c.rank,
                "rhs_dilation": tuple(p.dilation for p in combination),
            }
            pieces[tuple(p.index for p in combination)] = conv_general_dilated_p.bind(x, kernel, **params)
    shape = unpermuted((c.batch, c.groups * c.outer, *c.places), c.numbers.out_spec)
    return weave(pieces, c.numbers.out_spec[2:], [plan[0].step for plan in plans], shape, x.dtype)


def by_matrix(x: Any, w: Any, **params: Any) -> Any:
    """A product of matrices: the rows of one are the windows.

    It is made of slices of the input, one for each element of the window or, if these are fewer, one for each place
    of the result.
    """
    c = Problem.of(x, w, **params)
    x = c.input(x, "gnsc" if c.few_taps else "gcsn")
    for i, (p, k, s, d) in enumerate(zip(c.places, c.window, c.window_strides, c.rhs_dilation, strict=True)):
        x = unfold(x, 2 + i, *((k, p, s, d) if c.few_taps else (p, k, d, s)), 2 + c.rank + i)
    rows, columns = c.batch * math.prod(c.places), c.inner * math.prod(c.window)
    x = reshape(x, (c.groups, rows, columns) if c.few_taps else (c.groups, columns, rows))
    w = reshape(c.kernel(w, "gsco" if c.few_taps else "gcso"), (c.groups, columns, c.outer))
    axis = 2 if c.few_taps else 1
    if c.groups == 1:
        x, w = reshape(x, x.shape[1:]), reshape(w, w.shape[1:])
        numbers: Any = (((axis - 1,), (0,)), ((), ()))
    else:
        numbers = (((axis,), (1,)), ((0,), (0,)))
    out = dot_general_p.bind(x, w, dimension_numbers=numbers, precision=c.precision, preferred_element_type=None)
    shape = (c.batch, *c.places) if c.few_taps else (*c.places, c.batch)
    return c.result(reshape(out, (c.groups, *shape, c.outer)), "gnso" if c.few_taps else "gsno")


def by_taps(x: Any, w: Any, **params: Any) -> Any:
    """One feature in and one out, in each group: elementwise products, added up.

    There is a term for each element of the window or, if these are fewer, a sum for each place of the result.
    """
    c = Problem.of(x, w, **params)
    x, w = c.input(x, "nscg"), c.kernel(w, "scog")
    x = reshape(x, (*x.shape[: 1 + c.rank], c.groups))
    if not c.few_taps:
        w = broadcast_in_dim(reshape(w, (*c.window, c.groups)), (c.batch, *c.window, c.groups), range(1, c.rank + 2))
        sums = []
        for place in itertools.product(*map(range, c.places)):
            part = _slices(x, place, c.window_strides, c.window, c.rhs_dilation)
            sums.append(reduce_sum_p.bind(mul_p.bind(part, w), axes=tuple(range(1, 1 + c.rank))))
        out = concatenate([reshape(s, (1, *s.shape)) for s in sums], 0)
        return c.result(reshape(out, (*c.places, c.batch, c.groups, 1)), "sngo")
    w = reshape(w, (math.prod(c.window), c.groups))
    shape = (c.batch, *c.places, c.groups)
    terms = []
    for k, tap in enumerate(itertools.product(*map(range, c.window))):
        weight = broadcast_in_dim(reshape(take_every(w, 0, k, 1, 1), (c.groups,)), shape, (c.rank + 1,))
        terms.append(mul_p.bind(_slices(x, tap, c.rhs_dilation, c.places, c.window_strides), weight))
    return c.result(reshape(reduce(add_p.bind, terms), (*shape, 1)), "nsgo")


def _slices(x: Any, at: Sequence[int], step: Sequence[int], counts: Sequence[int], strides: Sequence[int]) -> Any:
    """Of each spatial axis, `counts` elements from ``at * step`` on, `strides` apart."""
    for axis, (t, d, n, s) in enumerate(zip(at, step, counts, strides, strict=True), 1):
        x = take_every(x, axis, t * d, n, s)
    return x
