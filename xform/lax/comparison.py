"""Comparisons and selection, elementwise.

May import: `lax.families`, `lax.shapes`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters.jet import locally_linear
from xform.interpreters.lowering import Context, Value
from xform.interpreters.marks import ZEROS
from xform.interpreters.tangents import Zero, is_linear, zero_of
from xform.lax import families
from xform.lax.families import as_operands, elementwise, narrow_integers


def _comparison(name: str, host: Any, accepts: str) -> Primitive:
    return elementwise(
        name,
        host,
        accepts=accepts,
        result=np.dtype(bool),
        lower=lambda ctx, x, y: families.compare(ctx, x, y, name.upper()),
    )


eq_p = _comparison("eq", np.equal, "any")
ne_p = _comparison("ne", np.not_equal, "any")
ge_p = _comparison("ge", np.greater_equal, "real")
gt_p = _comparison("gt", np.greater, "real")
le_p = _comparison("le", np.less_equal, "real")
lt_p = _comparison("lt", np.less, "real")


# select_n(which, *cases): the predicate is boolean with two cases, or int32 with any number of them. Predicate and
# cases have one shape, or rank 0.


def _select_types(which: ShapedArray, *cases: ShapedArray) -> ShapedArray:
    families.check_same_dtype("select_n", cases)
    if (which.dtype != bool and which.dtype != np.int32) or (which.dtype == bool and len(cases) > 2):
        raise TypeError(
            f"lax.select_n: the predicate must be boolean (two cases) or int32, got {which.str_short()} "
            f"for {len(cases)} cases"
        )
    shape = families.broadcast_shape("select_n", [which, *cases])
    return ShapedArray(shape, cases[0].dtype, all(c.weak_type for c in cases))


def _select_host(which: Any, *cases: Any) -> Any:
    if which.dtype.kind == "b" and len(cases) == 2:
        return np.where(which, cases[1], cases[0])
    shape = np.broadcast_shapes(which.shape, *(c.shape for c in cases))
    out = np.array(np.broadcast_to(cases[0], shape))
    for i, case in enumerate(cases[1:], 1):
        np.copyto(out, case, where=which >= i)
    return out


def _select_jvp(primals: Sequence[Any], ts: Sequence[Any]) -> Any:
    which, *cases = primals
    out = select_n_p.bind(which, *cases)
    if all(type(t) is Zero for t in ts[1:]):
        return out, zero_of(out)
    return out, select_n_p.bind(
        which, *[_zero_scalar(c) if type(t) is Zero else t for c, t in zip(cases, ts[1:], strict=True)]
    )


def _zero_scalar(x: Any) -> Any:
    return np.zeros((), get_aval(x).dtype)[()]


def _select_transpose(ct: Any, which: Any, *cases: Any) -> list[Any]:
    # What is selected away contributes exactly zero, whatever the cotangent is.
    zero = _zero_scalar(ct)
    out: list[Any] = [None]
    for i, case in enumerate(cases):
        if is_linear(case):
            mine = select_n_p.bind(which, *[ct if k == i else zero for k in range(len(cases))])
            mine = mine if mine.shape == ct.shape else families.Hooks.broadcast_in_dim(mine, ct.shape, ())
            out.append(families.unbroadcast(mine, case))
        else:
            out.append(None)
    return out


def _select_batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
    return families.elementwise_batch(select_n_p, args, dims, {})


def _select_lower(ctx: Context, which: Value, *cases: Value) -> Value:
    out = ctx.out
    full = [ctx.broadcast(c, out.shape) for c in cases]
    if len(full) == 1:
        return full[0]
    if which.dtype == bool:
        return ctx.op("select", [which, full[1], full[0]], out)
    which = ctx.broadcast(which, out.shape)
    result = full[-1]
    for i in range(len(full) - 2, -1, -1):
        bound = ctx.full(out.shape, i, which.dtype)
        result = ctx.op("select", [families.compare(ctx, which, bound, "LE"), full[i], result], out)
    return result


select_n_p = Primitive("select_n")
select_n_p.abstract_eval = _select_types
select_n_p.host = _select_host
select_n_p.jvp = _select_jvp
select_n_p.jet = locally_linear(select_n_p)
select_n_p.transpose = _select_transpose
select_n_p.marks = ZEROS
select_n_p.batch = _select_batch
select_n_p.lower = _select_lower


# clamp(low, x, high): the bounds have the shape of x or rank 0. As in JAX, x has the derivative strictly inside only.


def _clamp_jvp(which: Any) -> Any:
    def partial(g: Any, ans: Any, low: Any, x: Any, high: Any) -> Any:
        zero = _zero_scalar(ans)
        if which == "low":
            return select_n_p.bind(gt_p.bind(low, x), zero, g)
        if which == "high":
            return select_n_p.bind(lt_p.bind(high, x), zero, g)
        return select_n_p.bind(lt_p.bind(x, high), zero, select_n_p.bind(gt_p.bind(x, low), zero, g))

    return partial


def _clamp_host(low: Any, x: Any, high: Any) -> Any:
    if x.size > 1000 and x.dtype.kind in "iuf" and x.dtype.num < 256:  # a type of NumPy's own
        return x.clip(low, high)
    return np.minimum(np.maximum(x, low), high)


clamp_p = elementwise(
    "clamp",
    narrow_integers(_clamp_host),
    accepts="real",
    jvp=[_clamp_jvp("low"), _clamp_jvp("x"), _clamp_jvp("high")],
    jet=locally_linear,
    lower="clamp",
)


# Public functions


@api_boundary
def eq(x: Any, y: Any) -> Any:
    """Elementwise x == y."""
    return families.apply(eq_p, x, y)


@api_boundary
def ne(x: Any, y: Any) -> Any:
    """Elementwise x != y."""
    return families.apply(ne_p, x, y)


@api_boundary
def ge(x: Any, y: Any) -> Any:
    """Elementwise x >= y."""
    return families.apply(ge_p, x, y)


@api_boundary
def gt(x: Any, y: Any) -> Any:
    """Elementwise x > y."""
    return families.apply(gt_p, x, y)


@api_boundary
def le(x: Any, y: Any) -> Any:
    """Elementwise x <= y."""
    return families.apply(le_p, x, y)


@api_boundary
def lt(x: Any, y: Any) -> Any:
    """Elementwise x < y."""
    return families.apply(lt_p, x, y)


@api_boundary
def select_n(which: Any, *cases: Any) -> Any:
    """Choose between arrays, element by element: ``cases[which]``.

    Parameters
    ----------
    which : boolean array (for two cases: False is the first) or int32 array
    *cases : arrays of one dtype, of the shape of `which` or rank 0
    """
    return select_n_p.bind(which, *as_operands("select_n", *cases))


@api_boundary
def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """Choose `on_true` where `pred` holds and `on_false` elsewhere, element by element."""
    return select_n_p.bind(pred, *as_operands("select", on_false, on_true))


@api_boundary
def clamp(min: Any, x: Any, max: Any) -> Any:
    """Bring `x` between bounds: ``minimum(maximum(x, min), max)``.

    Parameters
    ----------
    min, max : arrays of the shape of `x` or of rank 0

    Examples
    --------
    >>> from xform import lax
    >>> lax.clamp(0, np.array([-3, 1, 5]), 3).tolist()
    [0, 1, 3]
    """
    return families.apply(clamp_p, min, x, max)
