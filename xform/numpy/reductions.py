"""Reductions over axes: sums, products, extremes and their places, moments, and cumulative ones.

All take ``axis`` (an int, several, or None for all), most ``keepdims``, ``initial`` and ``where`` as in NumPy.
Sums and products of booleans and narrow integers have the default integer type, means of integers the default float.

May import: `numpy.fast`, `numpy.promotion`, `numpy.ufuncs`, `xform.lax`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core import dtypes
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary, leave
from xform.core.trace import Primitive, Tracer
from xform.interpreters import plans
from xform.interpreters.reverse import LinearizeTracer
from xform.lax import reductions as rd
from xform.lax.arg_extremes import argmax_p, argmin_p
from xform.lax.arithmetic import div_p
from xform.lax.comparison import select_n_p
from xform.lax.conversion import convert
from xform.lax.cumulative import cumprod_p, cumsum_p
from xform.lax.shapes import full as lax_full
from xform.lax.shapes import reshape as lax_reshape
from xform.lax.slicing import concatenate as lax_concatenate
from xform.numpy import ufuncs
from xform.numpy.fast import ANY, INEXACT, REFUSALS, WIDE, lend, short_way
from xform.numpy.promotion import (
    ShapeError,
    array_of,
    axis_or_none,
    broadcast_shapes_of,
    canonical_axes,
    canonical_axis,
    dtype_argument,
    expand_to,
    is_concrete,
    no_out,
    promote_inexact,
    shown,
    strong,
    to_dtype,
)

_ORDERED = "?bBhHiIlLqQfd"


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with length 1 along the axes."""
    return tuple(1 if d in axes else n for d, n in enumerate(shape))


def mask_of(name: str, where: Any, a: Array) -> Any:
    """The argument `where`, as booleans of the shape of `a`."""
    where = array_of(name, where, "where")
    if where.dtype != bool:
        raise TypeError(f"numpy.{name}: where must be boolean, got {shown(where)}")
    if broadcast_shapes_of(name, [where.shape, a.shape], [where, a]) != a.shape:
        raise ShapeError(f"numpy.{name}: where of {shown(where)} can't be broadcast to the array, {shown(a)}")
    return expand_to(where, a.shape)


def reduce_by(
    name: str, p: Primitive, a: Array, axis: Any, keepdims: Any, where: Any = None, identity: Any = None
) -> tuple[Any, tuple[int, ...]]:
    """Bind a reduction; elements outside `where` are replaced by `identity`. Returns the axes, too."""
    axes = canonical_axes(name, axis, a)
    if where is not None:
        a = select_n_p.bind(mask_of(name, where, a), a.dtype.type(identity), a)
    out = p.bind(a, axes=tuple(sorted(axes))) if axes else a
    if keepdims:
        out = lax_reshape(out, reduced_shape(a.shape, axes))
    return strong(out), axes


# ---- Sum, product, extremes, any, all ----------------------------------------------------------------------


def _summing(name: str, p: Primitive, ufunc: np.ufunc, combine: Any, identity: int, doc: str) -> Callable[..., Array]:
    reduce: Any = ufunc.reduce

    def of_all(a: Array) -> Any:
        return p.bind(a, axes=tuple(range(a.aval.ndim)))

    planned = plans.Function(name, of_all)

    def function(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
        promote_integers: bool = True,
    ) -> Array:
        if (
            dtype is out is initial is where is None
            and state.fast
            and (type(x := a) is ArrayImpl or type(x := lend(a)) is ArrayImpl)
        ):
            h = x._host
            if h is not None and h.dtype.char in WIDE and not x._weak:
                token = quiet_begin()
                try:
                    return ArrayImpl(reduce(h, axis, None, None, keepdims))
                except REFUSALS:
                    pass
                finally:
                    quiet_end(token)
        try:
            whole = axis is dtype is out is initial is where is None and not keepdims
            if whole and isinstance(a, Tracer) and a.aval.inexact and a.ndim:  # what losses end with
                if type(a) is LinearizeTracer and (result := plans.call_unary(planned, a)) is not NotImplemented:
                    return result
                return of_all(a)
            no_out(name, out)
            a = array_of(name, a)
            axis = axis_or_none(axis, a)
            wanted = dtype_argument(name, dtype) or sum_dtype(a.dtype, promote_integers)
            result, _ = reduce_by(name, p, convert(a, wanted), axis, keepdims, where, identity)
            return result if initial is None else combine(to_dtype(name, initial, wanted), result)
        except Exception as error:
            leave(error, function)
            raise

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def sum_dtype(dtype: np.dtype, promote_integers: bool = True) -> np.dtype:
    """The dtype of a sum: narrow integers get the default width."""
    kind = dtypes.kinds[dtype]
    if kind == "b" or (kind == "i" and promote_integers and dtype.itemsize < dtypes.default_int().itemsize):
        return dtypes.default_int()
    if kind == "u" and promote_integers and dtype.itemsize < dtypes.default_int().itemsize:
        return np.dtype(f"u{dtypes.default_int().name}")
    return dtype


sum = _summing("sum", rd.reduce_sum_p, np.add, ufuncs.add, 0, "Sum over axes; of booleans and narrow integers in the default integer type.")  # fmt: skip  # noqa: E501
prod = _summing("prod", rd.reduce_prod_p, np.multiply, ufuncs.multiply, 1, "Product over axes; of booleans and narrow integers in the default integer type.")  # fmt: skip  # noqa: E501


def _extreme(name: str, p: Primitive, ufunc: np.ufunc, combine: Any, identity: Any, doc: str) -> Callable[..., Array]:
    reduce: Any = ufunc.reduce

    def function(
        a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Array:
        if (
            out is initial is where is None
            and state.fast
            and (type(x := a) is ArrayImpl or type(x := lend(a)) is ArrayImpl)
        ):
            h = x._host
            if h is not None and h.dtype.char in _ORDERED and not x._weak:
                token = quiet_begin()
                try:
                    return ArrayImpl(reduce(h, axis, None, None, keepdims))
                except REFUSALS:
                    pass
                finally:
                    quiet_end(token)
        try:
            no_out(name, out)
            a = array_of(name, a)
            axis = axis_or_none(axis, a)
            if initial is None:
                if where is not None:
                    raise ValueError(
                        f"numpy.{name}: reduction operation {ufunc.__name__!r} does not have an identity, so to use a "
                        f"where mask one has to specify 'initial', for {shown(a)}"
                    )
                if not math.prod(a.shape[d] for d in canonical_axes(name, axis, a)):
                    raise ValueError(
                        f"numpy.{name}: zero-size array to reduction operation {ufunc.__name__} which has no identity, "
                        f"{shown(a)}; give initial"
                    )
            result, _ = reduce_by(name, p, a, axis, keepdims, where, None if where is None else identity(a.dtype))
            return result if initial is None else combine(result, to_dtype(name, initial, a.dtype))
        except Exception as error:
            leave(error, function)
            raise

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


max = amax = _extreme(
    "max", rd.reduce_max_p, np.maximum, ufuncs.maximum, rd.lowest, "Largest element over axes; NaN if there is one."
)
min = amin = _extreme(
    "min", rd.reduce_min_p, np.minimum, ufuncs.minimum, rd.highest, "Smallest element over axes; NaN if there is one."
)


def _testing(name: str, p: Primitive, ufunc: np.ufunc, identity: bool, doc: str) -> Callable[..., Array]:
    reduce: Any = ufunc.reduce

    def function(a: Any, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None) -> Array:
        if out is where is None and state.fast and (type(x := a) is ArrayImpl or type(x := lend(a)) is ArrayImpl):
            h = x._host
            if h is not None and h.dtype.kind in "biufc":
                try:
                    return ArrayImpl(reduce(h, axis, None, None, keepdims))
                except REFUSALS:
                    pass
        try:
            no_out(name, out)
            a = array_of(name, a)
            axes = canonical_axes(name, axis_or_none(axis, a), a)
            where = None if where is None else mask_of(name, where, a)
            truth = a if a.dtype == bool else a != 0
            return reduce_by(name, p, truth, axes, keepdims, where, identity)[0]
        except Exception as error:
            leave(error, function)
            raise

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


any = _testing("any", rd.reduce_or_p, np.logical_or, False, "Whether any element over axes is not zero.")
all = _testing("all", rd.reduce_and_p, np.logical_and, True, "Whether all elements over axes are not zero.")


@api_boundary
def minmax(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """The pair of `min` and `max`; `initial` may be a pair, too.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> [int(x) for x in xnp.minmax(xnp.array([3, 1, 2]))]
    [1, 3]
    """
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    return min(a, axis, out, keepdims, low, where), max(a, axis, out, keepdims, high, where)


@api_boundary
def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Array:
    """Largest minus smallest element over axes."""
    return max(a, axis, out, keepdims) - min(a, axis, out, keepdims)


@short_way(np.count_nonzero, ANY, plain="axis keepdims")
def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """Number of elements that are not zero."""
    a = array_of("count_nonzero", a)
    axis = canonical_axes("count_nonzero", axis_or_none(axis, a), a)
    return sum(a if a.dtype == bool else a != 0, axis, keepdims=keepdims)


def _placing(name: str, p: Primitive, doc: str) -> Callable[..., Array]:
    def function(a: Any, axis: Any = None, out: None = None, keepdims: bool | None = None) -> Array:
        if (
            out is keepdims is None
            and state.fast
            and state.enable_x64
            and (type(x := a) is ArrayImpl or type(x := lend(a)) is ArrayImpl)
        ):
            h = x._host
            if h is not None and h.dtype.char in _ORDERED:
                try:
                    return ArrayImpl(getattr(h, name)(axis))
                except REFUSALS:
                    pass
        try:
            no_out(name, out)
            a = array_of(name, a)
            axis = axis_or_none(axis, a)
            flat = a if axis is not None else lax_reshape(a, (a.size,))
            d = canonical_axis(name, 0 if axis is None else axis, flat)
            if flat.shape[d] == 0:
                raise ValueError(f"numpy.{name}: attempt to get {name} of an empty sequence, axis={axis} of {shown(a)}")
            place = p.bind(strong(flat), axes=(d,), index_dtype=dtypes.default_int())
            return place if not keepdims else lax_reshape(place, reduced_shape(a.shape, canonical_axes(name, axis, a)))
        except Exception as error:
            leave(error, function)
            raise

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


argmax = _placing(
    "argmax", argmax_p, "Index of the first largest element (the first NaN, if any), along one axis or of all."
)
argmin = _placing(
    "argmin", argmin_p, "Index of the first smallest element (the first NaN, if any), along one axis or of all."
)

# ---- Moments -----------------------------------------------------------------------------------------------


def _computing_dtype(name: str, a: Array, dtype: Any) -> tuple[np.dtype, np.dtype]:
    """The dtypes of a mean, and of the arithmetic that leads to it: narrow floats are summed in float32."""
    out = dtype_argument(name, dtype) or dtypes.to_inexact_dtype(a.dtype)
    return out, rd.accumulator(out) if dtypes.kinds[out] in "fc" else dtypes.to_inexact_dtype(out)


def _count(a: Array, axes: tuple[int, ...], where: Any, keepdims: Any, dtype: np.dtype) -> Any:
    """Number of elements that are reduced: a number, or an array if `where` is given."""
    if where is None:
        return math.prod(a.shape[d] for d in axes)
    return convert(reduce_by("mean", rd.reduce_sum_p, convert(where, dtypes.default_int()), axes, keepdims)[0], dtype)


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = None
) -> Array:
    """Mean over axes; NaN of no elements."""
    if dtype is out is where is None and state.fast and (type(x := a) is ArrayImpl or type(x := lend(a)) is ArrayImpl):
        h = x._host
        if h is not None and (axis is None or h.ndim) and h.dtype.char in INEXACT and not x._weak:
            token = quiet_begin()
            try:
                return ArrayImpl(host_mean(h, axis, keepdims))
            except REFUSALS:
                pass
            finally:
                quiet_end(token)
    try:
        whole = axis is dtype is out is where is None and not keepdims
        if whole and isinstance(a, Tracer) and (aval := a.aval).inexact and aval.dtype.itemsize > 2 and aval.ndim:
            total = rd.reduce_sum_p.bind(a, axes=tuple(range(aval.ndim)))
            return div_p.bind(strong(total), aval.dtype.type(aval.size))
        no_out("mean", out)
        return _mean("mean", array_of("mean", a), axis, dtype, keepdims, where)
    except Exception as error:
        leave(error, mean)
        raise


def _mean(name: str, a: Array, axis: Any, dtype: Any, keepdims: Any, where: Any) -> Array:
    final, computed = _computing_dtype(name, a, dtype)
    where = None if where is None else mask_of(name, where, a)
    total, axes = reduce_by(name, rd.reduce_sum_p, convert(a, computed), axis, keepdims, where, 0)
    return convert(total / _count(a, axes, where, keepdims, _real(computed)), final)


def _real(dtype: np.dtype) -> np.dtype:
    return np.dtype(dtype.type(0).real.dtype) if dtype.kind == "c" else dtype


@api_boundary
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False,
    *, where: Any = None, mean: Any = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """Variance over axes: the mean of abs(x - mean)**2, with n - ddof in the denominator.

    Differs from NumPy: with a narrower `dtype` the elements are converted first, not only the mean.

    `mean`, if it is known already, must have the reduced axes with length 1. `correction` is another name of `ddof`.
    """
    return variance("var", a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@api_boundary
def std(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False,
    *, where: Any = None, mean: Any = None, correction: float | None = None,
) -> Array:  # fmt: skip
    """Standard deviation over axes: the square root of `var`.

    Differs from NumPy: with a narrower `dtype` the elements are converted first, not only the mean.
    """
    return variance("std", a, axis, dtype, out, ddof, keepdims, where, mean, correction, root=True)


def variance(
    name: str,
    a: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    ddof: float,
    keepdims: Any,
    where: Any,
    mean: Any,
    correction: Any,
    root: bool = False,
) -> Array:
    """The variance, or the square root of it."""
    if (
        dtype is out is where is mean is correction is None
        and state.fast
        and (type(x := a) is ArrayImpl or type(x := lend(a)) is ArrayImpl)
    ):
        h = x._host
        if h is not None and h.dtype.char in "fd" and not x._weak and (axis is None or type(axis) is int):
            token = quiet_begin()
            try:
                squared = host_variance(h, axis, ddof, keepdims)
                return ArrayImpl(np.sqrt(squared) if root else squared)
            except REFUSALS:
                pass
            finally:
                quiet_end(token)
    no_out(name, out)
    if correction is not None:
        if ddof:
            raise ValueError(
                f"numpy.{name}: ddof={ddof} and correction={correction} are one argument; give one of them"
            )
        ddof = correction
    a = array_of(name, a)
    final, computed = _computing_dtype(name, a, dtype)
    where = None if where is None else mask_of(name, where, a)
    a = convert(a, computed)
    if mean is None:
        mean = _mean(name, a, axis, None, True, where)
    centred = a - mean
    squares = ufuncs.square(centred.real) + ufuncs.square(centred.imag) if computed.kind == "c" else centred * centred
    total, axes = reduce_by(name, rd.reduce_sum_p, squares, axis, keepdims, where, 0)
    count = _count(a, axes, where, keepdims, _real(computed))
    count = (count - ddof if count > ddof else 0) if where is None else ufuncs.maximum(count - ddof, 0)
    # A root of the sum, not of the quotient: so its derivative is 0 where the sum is, as that of a norm.
    result = ufuncs.sqrt(total) / ufuncs.sqrt(count) if root else total / count
    return convert(result, _real(final) if dtype is None else final)


_add: Any = np.add.reduce


def host_mean(h: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The mean of an ndarray over axes."""
    total = _add(h, axis, None, None, keepdims)
    return np.true_divide(total, h.dtype.type(h.size // (total.size or 1)))


def host_variance(h: Any, axis: int | None = None, ddof: float = 0, keepdims: Any = False) -> Any:
    """The variance of an ndarray over axes."""
    n = h.size if axis is None else h.shape[axis]
    centred = h - np.true_divide(_add(h, axis, None, None, True), h.dtype.type(n))
    centred *= centred  # in place: fresh memory costs more than the operation
    total = _add(centred, axis, None, None, keepdims)
    return np.true_divide(total, h.dtype.type(n - ddof if n > ddof else 0))


@api_boundary
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """Mean with weights, of the shape of `a` or of the axes in question; with `returned` also the sum of weights.

    Differs from NumPy: traced weights that sum to zero give NaN or infinity; known ones are an error, as in NumPy.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> float(xnp.average(xnp.array([1.0, 2.0]), weights=xnp.array([3.0, 1.0])))
    1.25
    """
    a = array_of("average", a)
    axes = canonical_axes("average", axis, a)
    if weights is None:
        out = mean(a, axis, keepdims=keepdims)
        total: Any = lax_full(out.shape, math.prod(a.shape[d] for d in axes), out.dtype)
    else:
        a, weights = promote_inexact("average", a, array_of("average", weights, "weights"))
        if weights.shape != a.shape:
            if axis is None:
                raise ShapeError(
                    f"numpy.average: axis must be specified when shapes of a and weights differ, got {shown(a)} and "
                    f"{shown(weights)}"
                )
            if weights.shape != tuple(a.shape[d] for d in axes):
                raise ShapeError(
                    f"numpy.average: shape of weights must be consistent with shape of a along specified axis {axis}, "
                    f"got {shown(weights)} for {shown(a)}"
                )
            order = sorted(range(len(axes)), key=axes.__getitem__)
            weights = weights.transpose(order) if weights.ndim else weights
            weights = expand_to(
                lax_reshape(weights, tuple(n if d in axes else 1 for d, n in enumerate(a.shape))), a.shape
            )
        total = sum(weights, axes, keepdims=keepdims)
        if is_concrete(total) and not np.asarray(total).all():
            raise ZeroDivisionError(f"numpy.average: weights sum to zero, can't be normalized, {shown(weights)}")
        out = sum(a * weights, axes, keepdims=keepdims) / total
    return (out, total) if returned else out


# ---- Cumulative --------------------------------------------------------------------------------------------


def _cumulate(name: str, p: Primitive, a: Array, axis: int, dtype: Any) -> Array:
    return p.bind(convert(a, dtype_argument(name, dtype) or sum_dtype(a.dtype)), axis=axis, reverse=False)


def _cumulative(name: str, p: Primitive, doc: str) -> Callable[..., Array]:
    @short_way(lambda a, axis=None: getattr(a, name)(axis), WIDE, plain="axis")
    def function(a: Any, axis: Any = None, dtype: Any = None, out: None = None) -> Array:
        no_out(name, out)
        a = array_of(name, a)
        if axis_or_none(axis, a) is None:
            a, axis = lax_reshape(a, (a.size,)), 0
        return _cumulate(name, p, a, canonical_axis(name, axis, a), dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


cumsum = _cumulative(
    "cumsum", cumsum_p, "Sums of the elements up to each one, along an axis (of all in a row by default)."
)
cumprod = _cumulative(
    "cumprod", cumprod_p, "Products of the elements up to each one, along an axis (of all in a row by default)."
)


def _standard_cumulative(name: str, p: Primitive, identity: int, doc: str) -> Callable[..., Array]:
    @api_boundary
    def function(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, out: None = None, include_initial: bool = False
    ) -> Array:
        no_out(name, out)
        x = array_of(name, x, "x")
        if axis_or_none(axis, x) is None:
            if x.ndim > 1:
                raise ValueError(f"numpy.{name}: axis must be given for an array of several axes, got {shown(x)}")
            axis = 0
            x = lax_reshape(x, (x.size,))
        d = canonical_axis(name, axis, x)
        result = _cumulate(name, p, x, d, dtype)
        if include_initial:
            first = lax_full(reduced_shape(result.shape, (d,)), identity, result.dtype)
            result = lax_concatenate([first, result], d)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


cumulative_sum = _standard_cumulative(
    "cumulative_sum", cumsum_p, 0, "Sums of the elements up to each one; `include_initial` puts a 0 before them."
)
cumulative_prod = _standard_cumulative(
    "cumulative_prod", cumprod_p, 1, "Products of the elements up to each one; `include_initial` puts a 1 before them."
)
