"""`scatter_apply`: apply a function to the elements in windows of an array.

May import: `lax.scatter`, `lax.control_flow`, `lax.reductions`, the elementwise modules.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import tree
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Tracer
from xform.interpreters import batching
from xform.lax.arithmetic import add_p
from xform.lax.comparison import gt_p, select_n_p
from xform.lax.control_flow.while_loop import while_loop
from xform.lax.conversion import convert
from xform.lax.gather import GatherScatterMode, gather_p
from xform.lax.reductions import reduce_max_p
from xform.lax.scatter import ScatterDimensionNumbers, gather_params, scatter_add_p, scatter_p
from xform.lax.shapes import full, reshape


@api_boundary
def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Any:
    """Replace the elements in the windows by ``func(element)``, as often as they are in one.

    Parameters
    ----------
    func : function of a scalar, that returns one
    update_shape : ints
        The shape that `scatter`'s updates would have.

    The derivative in reverse mode needs indices that are known, or ``unique_indices=True``.

    Examples
    --------
    >>> from xform import lax
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> index = np.array([[1], [1], [2]])
    >>> lax.scatter_apply(np.ones(3), index, lambda v: 2 * v, numbers, update_shape=(3,)).tolist()
    [1.0, 4.0, 2.0]
    """
    if not callable(func):
        raise TypeError(f"lax.scatter_apply: func must be a function of a scalar, got {func!r}")
    numbers = ScatterDimensionNumbers(*(tuple(map(int, dims)) for dims in dimension_numbers))
    params = dict(
        dimension_numbers=numbers,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
        mode=GatherScatterMode.from_any(mode),
    )
    shape, dtype = tuple(update_shape), get_aval(operand).dtype
    places = tuple(m for d, m in enumerate(shape) if d not in numbers.update_window_dims)
    indices = get_aval(scatter_indices)
    if places != indices.shape[:-1]:
        raise TypeError(
            f"lax.scatter_apply: update_shape {shape} without the window axes {numbers.update_window_dims} must be "
            f"the shape of the indices {indices.str_short()} without the last axis"
        )
    read = gather_params(get_aval(operand), ShapedArray(shape, dtype), params)

    def scalar(out: Any) -> Any:
        if tree.structure(out) != tree.structure(0) or get_aval(out).shape:
            raise TypeError(f"lax.scatter_apply: func must return a scalar, got {out}")
        return out

    def once(x: Any) -> Any:
        flat = reshape(x, (math.prod(shape),))
        (out,), (dim,) = batching.batch(lambda v: [scalar(func(v))], [flat], [0], flat.shape[0], None)
        out = batching.move_to(out, dim, flat.shape[0])
        return convert(reshape(out, shape), dtype)

    first = gather_p.bind(operand, scatter_indices, **read)
    if unique_indices or math.prod(get_aval(scatter_indices).shape[:-1]) < 2 or not first.size:
        return scatter_p.bind(operand, scatter_indices, once(first), **params)
    # How often each element is indexed; elements have their turns one after another.
    zeros, ones = full(operand.shape, np.int64(0)), full(shape, np.int64(1))
    times = gather_p.bind(scatter_add_p.bind(zeros, scatter_indices, ones, **params), scatter_indices, **read)

    def again(k: Any, x: Any) -> Any:
        active = gt_p.bind(times, k)
        return select_n_p.bind(active, x, once(select_n_p.bind(active, first, x)))

    if isinstance(times, Tracer):
        most = reduce_max_p.bind(times, axes=tuple(range(len(shape))))
        x = while_loop(
            lambda s: gt_p.bind(most, s[0]),
            lambda s: (add_p.bind(s[0], np.int64(1)), again(*s)),
            (np.int64(0), first),
        )[1]
    else:
        x = first
        for k in range(int(np.max(times))):
            x = again(np.int64(k), x)
    return scatter_p.bind(operand, scatter_indices, x, **params)
