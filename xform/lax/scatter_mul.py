"""`scatter_mul`: multiply windows of an array. Its derivative needs sorting where updates meet.

May import: `lax.scatter`, `lax.sorting`, `lax.cumulative`, the elementwise modules.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.interpreters.tangents import Zero, zero_of
from xform.lax.arithmetic import mul_p, zero_product_p
from xform.lax.comparison import eq_p, select_n_p
from xform.lax.cumulative import linear_recurrence_p, shift
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, gather_p
from xform.lax.scatter import gather_params, scatter_add_p, scatter_family, scatter_function
from xform.lax.shapes import full, iota, reshape
from xform.lax.sorting import sort_p

scatter_mul_p = scatter_family("scatter_mul", np.multiply, "multiply", "number")


def _jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
    """Linear in the operand; an update has the element's other factors as its coefficient."""
    (x, indices, updates), (tx, _, tu) = primals, ts
    out = scatter_mul_p.bind(x, indices, updates, **params)
    tangent = None if type(tx) is Zero else scatter_mul_p.bind(tx, indices, updates, **params)
    if type(tu) is not Zero:
        factor = gather_p.bind(x, indices, **gather_params(x, get_aval(updates), params))
        if not params["unique_indices"] and math.prod(get_aval(indices).shape[:-1]) > 1 and factor.size:
            factor = mul_p.bind(factor, _others(x, indices, updates, params))
        base = full(out.shape, _scalar(0, out)) if tangent is None else tangent
        tangent = scatter_add_p.bind(base, indices, mul_p.bind(factor, tu), **params)
    return out, zero_of(out) if tangent is None else tangent


def _scalar(value: int, x: Any) -> Any:
    return np.asarray(value, get_aval(x).dtype)[()]


def _others(x: Any, indices: Any, updates: Any, params: dict[str, Any]) -> Any:
    """For each element of the updates, the product of all others that multiply the same element of the operand.

    Sorted by that element, these are the products of the ones before it and of the ones after it, which
    ``p[k] = u[k-1] * p[k-1]``, and 1 at the first, computes. No division: updates may be 0.
    """
    shape, size = get_aval(updates).shape, get_aval(x).size
    read = gather_params(x, get_aval(updates), params) | {"fill_value": size}
    element = gather_p.bind(reshape(iota(np.int64, size), get_aval(x).shape), indices, **read)
    n = math.prod(shape)
    element, order = sort_p.bind(reshape(element, (n,)), iota(np.int64, n), dimension=0, is_stable=True, num_keys=1)
    factors = _permuted(reshape(updates, (n,)), order)
    zero, one = _scalar(0, updates), _scalar(1, updates)
    both = None
    for reverse in (False, True):
        same = eq_p.bind(shift(element, 0, reverse, -1), element)
        a = select_n_p.bind(same, zero, shift(factors, 0, reverse, 1))
        b = select_n_p.bind(same, one, zero)
        product = linear_recurrence_p.bind(a, b, axis=0, reverse=reverse)
        both = product if both is None else mul_p.bind(both, product)
    both = select_n_p.bind(eq_p.bind(element, np.int64(size)), both, zero)  # those that are left out
    inverse = sort_p.bind(order, iota(np.int64, n), dimension=0, is_stable=True, num_keys=1)[1]
    return reshape(_permuted(both, inverse), shape)


def _permuted(x: Any, order: Any) -> Any:
    """``x[order]`` of one axis."""
    return gather_p.bind(
        x,
        reshape(order, (x.shape[0], 1)),
        dimension_numbers=GatherDimensionNumbers((), (0,), (0,)),
        slice_sizes=(1,),
        indices_are_sorted=False,
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _transpose(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    return [scatter_mul_p.bind(ct, indices, updates, **params), None, None]


def _transpose_marked(ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> list[Any]:
    factors = scatter_mul_p.bind(full(ct.shape, _scalar(1, ct)), indices, updates, **params)
    return [zero_product_p.bind(ct, factors), None, None]


scatter_mul_p.jvp = _jvp
scatter_mul_p.transpose = _transpose
scatter_mul_p.transpose_marked = _transpose_marked

scatter_mul = scatter_function(
    "scatter_mul", scatter_mul_p, "Like `lax.scatter_add`, multiplying; all updates of an element count."
)
