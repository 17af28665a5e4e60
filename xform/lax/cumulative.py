"""Cumulative operations; linear recurrences, which are their derivatives; the general prefix scan.

The derivative of a product by one factor is the product of all others, which a division does not give where
a factor is zero. So here derivatives are linear recurrences ``t[k] = a[k] * t[k-1] + b[k]``, an operation that
is closed under differentiation. `reduce_prod` gets its derivative here, too: what stands before and after
a factor are cumulative products.

May import: the other modules of `lax`, control flow included.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import tree
from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.jet import implicit, linear, locally_linear
from xform.interpreters.lowering import SHORT_AXIS, lower_as
from xform.interpreters.tangents import Zero, add_tangents, zero_of
from xform.lax import families
from xform.lax.arithmetic import add_p, complex_p, div_p, imag_p, mul_p, neg_p, real_p, sub_p, sum_of_products
from xform.lax.comparison import eq_p, lt_p, ne_p, select_n_p
from xform.lax.control_flow.common import as_arrays
from xform.lax.control_flow.scan import scan
from xform.lax.conversion import convert
from xform.lax.extremes import max_p, min_p
from xform.lax.reductions import accumulator, highest, lowest, reduce_prod_p, reduce_sum_p
from xform.lax.rounding import floor_p
from xform.lax.shapes import check_axes, full, moveaxis, reshape, rev, transpose
from xform.lax.slicing import concatenate, pad_p, slice_in_dim
from xform.lax.transcendental import exp_p, log1p_p


def _flipped(x: Any, axis: int, reverse: bool) -> Any:
    """The ndarray `x`, from its end to its beginning if `reverse`."""
    return x[(slice(None),) * axis + (slice(None, None, -1),)] if reverse else x


def _check_axis(name: str, x: ShapedArray, axis: int) -> None:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"lax.{name}: axis {axis} is out of range for {x.str_short()}")


def shift(x: Any, axis: int, reverse: bool, fill: Any) -> Any:
    """The predecessor of each element in the order of a cumulative operation; the first one's is `fill`."""
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad_p.bind(x, np.asarray(fill, x.dtype)[()], padding_config=tuple(config))


def _lower_scan(
    step: Callable[..., Any], initial: Callable[[np.dtype], Any], parallel: Callable[..., Any], unroll: int = 8
) -> Any:
    """A lowering rule for ``out[k] = step(out[k-1], *(x[k] for x in operands))``, from an initial value.

    On CPU it is a loop over the axis, as fast as any other way that was measured and quick to compile; elsewhere
    it is ``parallel(*operands, axis, reverse)``. Unrolling makes steps of a few cycles on scalars twice as fast,
    and costs others time.
    """

    def unrolled(*xs: Any, axis: int, reverse: bool) -> Any:
        length, dtype = xs[0].shape[axis], xs[0].dtype
        out, outs = np.asarray(initial(dtype), dtype)[()], []
        for k in reversed(range(length)) if reverse else range(length):
            out = step(out, *(slice_in_dim(x, k, k + 1, axis=axis) for x in xs))
            outs.append(out)
        return concatenate(outs[::-1] if reverse else outs, axis)

    def serial(*xs: Any, axis: int, reverse: bool) -> Any:
        shape, dtype = xs[0].shape, xs[0].dtype
        if 1 <= shape[axis] <= SHORT_AXIS:
            return unrolled(*xs, axis=axis, reverse=reverse)
        lanes = shape[:axis] + shape[axis + 1 :]
        single = all(n == 1 for n in lanes)
        xs = tuple(reshape(x, (shape[axis],)) if single else moveaxis(x, axis, 0) for x in xs)

        def body(carry: Any, x: Sequence[Any]) -> tuple[Any, Any]:
            out = step(carry, *x)
            return out, out

        init = full(() if single else lanes, initial(dtype), dtype)
        _, out = scan(body, init, xs, reverse=reverse, unroll=unroll if single else 1)
        return reshape(out, shape) if single else moveaxis(out, 0, axis)

    def widened(function: Callable[..., Any]) -> Callable[..., Any]:
        def program(*xs: Any, **params: Any) -> Any:
            dtype = xs[0].dtype
            return convert(function(*(convert(x, accumulator(dtype)) for x in xs), **params), dtype)

        return lower_as(program)

    on_cpu, elsewhere = widened(serial), widened(parallel)
    return lambda ctx, *xs, **params: (on_cpu if ctx.platform == "cpu" else elsewhere)(ctx, *xs, **params)


# Cumulative operations


def _cumulative(
    name: str,
    ufunc: Any,
    combine: Callable[..., Any],
    identity: Callable[[np.dtype], Any],
    jvp: Callable[..., Any],
    accepts: str = "number",
    unroll: int = 8,
) -> Primitive:
    """Define a cumulative operation along `axis`; `jvp` is ``(g, out, x, axis, reverse) -> tangent``."""
    p = Primitive(name)

    def types(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        families.check_kind(name, [x], accepts)
        _check_axis(name, x, axis)
        return x

    def host(x: Any, *, axis: int, reverse: bool) -> Any:
        wide = accumulator(x.dtype)
        out = ufunc.accumulate(_flipped(x.astype(wide, copy=False), axis, reverse), axis, wide)
        return _flipped(out.astype(x.dtype, copy=False), axis, reverse)

    def rule(primals: Sequence[Any], ts: Sequence[Any], *, axis: int, reverse: bool) -> Any:
        (x,), (g,) = primals, ts
        out = p.bind(x, axis=axis, reverse=reverse)
        return out, zero_of(out) if type(g) is Zero else jvp(g, out, x, axis, reverse)

    def batch(trace: Any, args: Sequence[Any], dims: Sequence[int], *, axis: int, reverse: bool) -> Any:
        (x,), (d,) = args, dims
        return p.bind(x, axis=axis + (axis >= d), reverse=reverse), d

    def parallel(x: Any, *, axis: int, reverse: bool) -> Any:
        return associative_scan(combine, x, reverse, axis)

    p.abstract_eval, p.host, p.jvp, p.batch = types, host, rule, batch
    p.lower = _lower_scan(combine, identity, parallel, unroll)
    return p


def _cumprod_jvp(g: Any, out: Any, x: Any, axis: int, reverse: bool) -> Any:
    before = shift(out, axis, reverse, 1)
    return linear_recurrence_p.bind(x, mul_p.bind(g, before), axis=axis, reverse=reverse)


def _extreme_jvp(g: Any, out: Any, x: Any, axis: int, reverse: bool) -> Any:
    """A new extreme brings its own tangent, one that equals the old extreme half of it."""
    zero, half, one = np.array([0, 0.5, 1]).astype(x.dtype)
    ties = eq_p.bind(shift(out, axis, reverse, np.nan), out)
    weight = select_n_p.bind(eq_p.bind(x, out), zero, select_n_p.bind(ties, one, half))
    return linear_recurrence_p.bind(sub_p.bind(one, weight), mul_p.bind(weight, g), axis=axis, reverse=reverse)


def _logsumexp_jvp(g: Any, out: Any, x: Any, axis: int, reverse: bool) -> Any:
    """Weights are exp(x - out); where all so far is -inf they are 0."""
    low = np.asarray(-np.inf, x.dtype)[()]
    finite = select_n_p.bind(eq_p.bind(out, low), out, np.zeros((), x.dtype)[()])
    decay = exp_p.bind(sub_p.bind(shift(out, axis, reverse, low), finite))
    weight = exp_p.bind(sub_p.bind(x, finite))
    return linear_recurrence_p.bind(decay, mul_p.bind(weight, g), axis=axis, reverse=reverse)


def _logaddexp(x: Any, y: Any) -> Any:
    if families.is_complex(x):
        return _complex_logaddexp(x, y)
    top, low = max_p.bind(x, y), min_p.bind(x, y)
    same = eq_p.bind(x, y)  # infinities
    gap = select_n_p.bind(same, sub_p.bind(low, top), np.zeros((), top.dtype)[()])
    return add_p.bind(top, log1p_p.bind(exp_p.bind(gap)))


def _complex_logaddexp(x: Any, y: Any) -> Any:
    """With the imaginary part in [-pi, pi]."""
    less = lt_p.bind(real_p.bind(x), real_p.bind(y))
    top, low = select_n_p.bind(less, x, y), select_n_p.bind(less, y, x)
    out = add_p.bind(top, log1p_p.bind(exp_p.bind(sub_p.bind(low, top))))
    angle = imag_p.bind(out)
    turn, half = np.array([2 * np.pi, 0.5], angle.dtype)
    turns = floor_p.bind(add_p.bind(div_p.bind(angle, turn), half))
    out = complex_p.bind(real_p.bind(out), sub_p.bind(angle, mul_p.bind(turn, turns)))
    # What has the real part -inf is nothing to be added.
    empty = np.asarray(-np.inf, angle.dtype)[()]
    return select_n_p.bind(eq_p.bind(real_p.bind(low), empty), out, top)


class _LogAddExp:
    """Host rule: NumPy's ufunc has no complex loop."""

    @staticmethod
    def accumulate(x: Any, axis: int, dtype: np.dtype) -> Any:
        if dtype.kind != "c":
            return np.logaddexp.accumulate(x, axis, dtype)
        out = np.moveaxis(np.array(x, dtype), axis, 0)
        for k in range(1, len(out)):
            x, y = out[k - 1], out[k]
            less = x.real < y.real
            top, low = np.where(less, y, x), np.where(less, x, y)
            both = np.asarray(top + np.log1p(np.exp(low - top)))
            both.imag -= 2 * np.pi * np.floor(both.imag / (2 * np.pi) + 0.5)
            out[k] = np.where(low.real == -np.inf, top, both)
        return np.moveaxis(out, 0, axis)


def _minus_zero(dtype: np.dtype) -> Any:
    return np.negative(np.zeros((), dtype))[()]


cumsum_p = _cumulative(
    "cumsum",
    np.add,
    add_p.bind,
    _minus_zero,
    lambda g, out, x, axis, reverse: cumsum_p.bind(g, axis=axis, reverse=reverse),
)
cumsum_p.jet = linear(cumsum_p)
cumsum_p.transpose = lambda ct, x, *, axis, reverse: [cumsum_p.bind(ct, axis=axis, reverse=not reverse)]
cumprod_p = _cumulative("cumprod", np.multiply, mul_p.bind, lambda dtype: 1, _cumprod_jvp)
cummax_p = _cumulative("cummax", np.maximum, max_p.bind, lowest, _extreme_jvp)
cummin_p = _cumulative("cummin", np.minimum, min_p.bind, highest, _extreme_jvp)
cummax_p.jet, cummin_p.jet = locally_linear(cummax_p), locally_linear(cummin_p)
cumlogsumexp_p = _cumulative(
    "cumlogsumexp", _LogAddExp, _logaddexp, lambda dtype: -np.inf, _logsumexp_jvp, "inexact", unroll=1
)


# linear_recurrence(a, b): t[k] = a[k] * t[k-1] + b[k] along an axis (k+1 for k-1 if reversed), from t = 0.
# It is linear in b.


def _recurrence_types(a: ShapedArray, b: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
    families.check_kind("linear_recurrence", [a, b], "inexact")
    families.check_same_dtype("linear_recurrence", [a, b])
    if a.shape != b.shape:
        raise TypeError(f"lax.linear_recurrence: operands must have one shape, got {a.str_short()}, {b.str_short()}")
    _check_axis("linear_recurrence", b, axis)
    return b.strong


def _recurrence_host(a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    """Step by step over all lanes, or lane by lane as a banded triangular system: the shorter loop."""
    dtype = b.dtype
    wide = accumulator(dtype)
    a, b = (np.moveaxis(_flipped(x, axis, reverse), axis, 0) for x in (a, b))
    out = np.array(b, wide)
    a = a.astype(wide, copy=False)
    steps = len(out)
    if out.size < steps * steps and np.isfinite(a).all():  # tbsv takes inf * 0 for 0
        from scipy.linalg.blas import get_blas_funcs

        solve = get_blas_funcs("tbsv", dtype=wide)
        band = np.ones((2, steps), wide, "F")
        for lane in np.ndindex(out.shape[1:]):
            at = (slice(None), *lane)
            band[1, :-1] = -a[at][1:]
            out[at] = solve(1, band, out[at], lower=1, diag=1)
    else:
        for k in range(1, steps):
            out[k] += a[k] * out[k - 1]
    return _flipped(np.moveaxis(out, 0, axis), axis, reverse).astype(dtype, copy=False)


def _recurrence_jvp(primals: Sequence[Any], ts: Sequence[Any], **params: Any) -> Any:
    (a, b), (ta, tb) = primals, ts
    out = linear_recurrence_p.bind(a, b, **params)
    if type(ta) is not Zero:
        tb = add_tangents(tb, mul_p.bind(ta, shift(out, **params, fill=0)))
    return out, zero_of(out) if type(tb) is Zero else linear_recurrence_p.bind(a, tb, **params)


def _recurrence_product(pairs: Sequence[tuple[Any, Any]], **params: Any) -> Any:
    """Minus the sum of a[k] * t[k-1]: the equation is ``t[k] - a[k] * t[k-1] = b[k]``."""
    return neg_p.bind(sum_of_products([(a, shift(t, **params, fill=0)) for a, t in pairs]))


def _recurrence_transpose(ct: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> list[Any]:
    following = shift(a, axis, not reverse, 0)
    return [None, linear_recurrence_p.bind(following, ct, axis=axis, reverse=not reverse)]


def _recurrence_transpose_marked(ct: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> list[Any]:
    """Zero as long as all cotangents are, whatever the coefficients."""
    order: dict[str, Any] = dict(axis=axis, reverse=not reverse)
    zero = np.zeros((), get_aval(ct).dtype)[()]
    met = cummax_p.bind(convert(ne_p.bind(ct, zero), np.dtype(np.int32)), **order)
    following = select_n_p.bind(eq_p.bind(shift(met, **order, fill=0), np.int32(0)), shift(a, **order, fill=0), zero)
    return [None, linear_recurrence_p.bind(following, ct, **order)]


def _recurrence_batch(trace: Any, args: Sequence[Any], dims: Sequence[int | None], *, axis: int, reverse: bool) -> Any:
    d = next(d for d in dims if d is not None)
    args = [batching.move_to(x, dim, trace.size, d) for x, dim in zip(args, dims, strict=True)]
    return linear_recurrence_p.bind(*args, axis=axis + (axis >= d), reverse=reverse), d


def _affine(t: Any, a: Any, b: Any) -> Any:
    return add_p.bind(mul_p.bind(a, t), b)


def _recurrence_parallel(a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    """Prefixes of the composition of the maps t -> a * t + b."""

    def compose(first: Sequence[Any], then: Sequence[Any]) -> tuple[Any, Any]:
        return mul_p.bind(then[0], first[0]), _affine(first[1], *then)

    return associative_scan(compose, (a, b), reverse, axis)[1]


@lower_as
def _clear_first(a: Any, *, axis: int, reverse: bool) -> Any:
    """The coefficients with 0 for the first, which is not used, be it infinite."""
    return shift(shift(a, axis, not reverse, 0), axis, reverse, 0)


_recurrence_lower = _lower_scan(_affine, lambda dtype: 0, _recurrence_parallel)

linear_recurrence_p = Primitive("linear_recurrence")
linear_recurrence_p.abstract_eval = _recurrence_types
linear_recurrence_p.host = _recurrence_host
linear_recurrence_p.jvp = _recurrence_jvp
linear_recurrence_p.jet = implicit(linear_recurrence_p, 0, 1, _recurrence_product)
linear_recurrence_p.transpose = _recurrence_transpose
linear_recurrence_p.transpose_marked = _recurrence_transpose_marked
linear_recurrence_p.batch = _recurrence_batch
linear_recurrence_p.lower = lambda ctx, a, b, **params: _recurrence_lower(
    ctx, _clear_first(ctx, a, **params), b, **params
)


# The derivative of a product over axes


def _prod_jvp(primals: Sequence[Any], ts: Sequence[Any], *, axes: tuple[int, ...]) -> Any:
    """Each tangent times the product of all other elements: those before it times those after it."""
    (x,), (t,) = primals, ts
    out = reduce_prod_p.bind(x, axes=axes)
    if type(t) is Zero or not axes:
        return out, zero_of(out) if type(t) is Zero else t
    kept = [d for d in range(x.ndim) if d not in axes]
    shape = (*out.shape, x.size // out.size if out.size else 0)
    x, t = (reshape(transpose(v, (*kept, *axes)), shape) for v in (x, t))
    axis = len(kept)
    before, after = (
        shift(cumprod_p.bind(x, axis=axis, reverse=reverse), axis, reverse, 1) for reverse in (False, True)
    )
    return out, reduce_sum_p.bind(mul_p.bind(t, mul_p.bind(before, after)), axes=(axis,))


reduce_prod_p.jvp = _prod_jvp


# The public functions


def _bind(p: Primitive, operand: Any, axis: int, reverse: bool) -> Any:
    aval = get_aval(operand)
    (axis,) = check_axes(p.name, (axis,), aval.ndim, aval.str_short())
    return p.bind(operand, axis=axis, reverse=bool(reverse))


@api_boundary
def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Cumulative sum along an axis, from its end if `reverse`; the dtype stays as it is.

    Examples
    --------
    >>> from xform import lax
    >>> lax.cumsum(np.arange(4.0), reverse=True).tolist()
    [6.0, 6.0, 5.0, 3.0]
    """
    return _bind(cumsum_p, operand, axis, reverse)


@api_boundary
def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Cumulative product along an axis. Its derivatives are right with zeros, too."""
    return _bind(cumprod_p, operand, axis, reverse)


@api_boundary
def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Largest element so far along an axis; NaN from the first NaN on; complex ones as `lax.max` orders them."""
    return _bind(cummax_p, operand, axis, reverse)


@api_boundary
def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Smallest element so far along an axis; NaN from the first NaN on."""
    return _bind(cummin_p, operand, axis, reverse)


@api_boundary
def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
    """Logarithm of the cumulative sum of exponentials along an axis, without overflow.

    Of complex numbers, with an imaginary part in [-pi, pi] from the second element on.
    """
    return _bind(cumlogsumexp_p, operand, axis, reverse)


@api_boundary
def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Combine all prefixes: ``out[k] = fn(...fn(fn(x[0], x[1]), x[2])..., x[k])``, in about 2 log2(n) calls.

    Parameters
    ----------
    fn : function of two pytrees of arrays, to one like them
        Associative (not checked), and elementwise along `axis`: it is given slices of any length.
    elems : pytree of arrays with a common length along `axis`
    reverse : bool
        Combine from the end: ``out[k] = fn(...fn(x[-1], x[-2])..., x[k])``.
    axis : int

    Returns
    -------
    Pytree like `elems`

    Notes
    -----
    The scheme is that of R. E. Ladner and M. J. Fischer, "Parallel prefix computation", J. ACM 27 (1980):
    neighbours are combined in pairs, the sequence of half the length is scanned, and every other element filled in.

    Examples
    --------
    >>> from xform import lax
    >>> lax.associative_scan(lax.mul, np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [1.0, 2.0, 6.0, 24.0]
    """
    if not callable(fn):
        raise TypeError(f"lax.associative_scan: fn must be a function of two arguments, got {fn!r}")
    leaves, treedef = tree.flatten(elems)
    leaves = as_arrays(leaves)
    if not leaves:
        return elems
    axes = [_axis_of(x, axis) for x in leaves]
    lengths = {get_aval(x).shape[a] for x, a in zip(leaves, axes, strict=True)}
    if len(lengths) > 1:
        avals = ", ".join(get_aval(x).str_short() for x in leaves)
        raise ValueError(f"lax.associative_scan: lengths along axis {axis} differ: {avals}")

    def combine(first: list[Any], then: list[Any]) -> list[Any]:
        out, structure = tree.flatten(fn(treedef.unflatten(first), treedef.unflatten(then)))
        if structure != treedef or any(get_aval(o).shape != get_aval(x).shape for o, x in zip(out, then, strict=True)):
            raise TypeError(
                "lax.associative_scan: fn must return arrays like those it is given, of any length: from "
                f"{[get_aval(x).str_short() for x in then]} it made {[get_aval(o).str_short() for o in out]}"
            )
        return out

    def part(xs: list[Any], start: int, stop: int, step: int = 2) -> list[Any]:
        return [slice_in_dim(x, start, stop, step, a) for x, a in zip(xs, axes, strict=True)]

    def prefixes(xs: list[Any], n: int) -> list[Any]:
        if n < 2:
            return xs
        odd = prefixes(combine(part(xs, 0, n - 1), part(xs, 1, n)), n // 2)
        even = part(xs, 0, 1)
        if n > 2:
            rest = combine(part(odd, 0, (n - 1) // 2, 1), part(xs, 2, n))
            even = [concatenate([e, r], a) for e, r, a in zip(even, rest, axes, strict=True)]
        return [_interleave(e, o, a) for e, o, a in zip(even, odd, axes, strict=True)]

    if reverse:
        leaves = [rev(x, (a,)) for x, a in zip(leaves, axes, strict=True)]
    out = prefixes(leaves, lengths.pop())
    if reverse:
        out = [rev(x, (a,)) for x, a in zip(out, axes, strict=True)]
    return treedef.unflatten(out)


def _axis_of(x: Any, axis: int) -> int:
    aval = get_aval(x)
    return check_axes("associative_scan", (axis,), aval.ndim, aval.str_short())[0]


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """even[0], odd[0], even[1], ...; `even` may be one longer."""
    shape = odd.shape
    n, m = even.shape[axis], shape[axis]
    pair = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    both = concatenate([reshape(slice_in_dim(even, 0, m, 1, axis), pair), reshape(odd, pair)], axis + 1)
    both = reshape(both, (*shape[:axis], 2 * m, *shape[axis + 1 :]))
    return concatenate([both, slice_in_dim(even, m, n, 1, axis)], axis) if n > m else both
