"""Quantiles, histograms, covariance.

May import: the other modules of `xform.numpy`.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import ConcretizationTypeError, api_boundary
from xform.lax.conversion import convert
from xform.lax.shapes import full as lax_full
from xform.lax.sorting import sort_p
from xform.numpy import host_forms, indexing, manipulation, reductions, ufuncs
from xform.numpy.elementwise import where
from xform.numpy.fast import optional, same, short_way
from xform.numpy.joining import concatenate
from xform.numpy.products import dot
from xform.numpy.promotion import (
    ShapeError,
    array_of,
    canonical_axes,
    concrete,
    dtype_argument,
    is_concrete,
    is_several,
    no_out,
    promote_inexact,
    shown,
    strong,
)
from xform.numpy.ranges import arange, linspace
from xform.numpy.searching import bincount, searchsorted

# ---- Quantiles ---------------------------------------------------------------------------------------------
#
# Of n sorted elements the q-quantile lies at a real place from 0 to n - 1, which each method defines in its own way;
# R. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996), 361-365.

# alpha and beta of the methods whose place is n q + alpha + q (1 - alpha - beta) - 1, with linear interpolation.
_CONTINUOUS = {
    "linear": (1, 1), "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}  # fmt: skip


def _averaged(n: Any, q: Any) -> Any:
    place = n * q - 1
    low = np.floor(place)
    return np.where(place == low, place + 0.5, low + 1)


def _closest(n: Any, q: Any) -> Any:
    place = n * q - 1.5
    low = np.floor(place)
    return np.where((place == low) & (low % 2 == 1), low, low + 1)


_PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "inverted_cdf": lambda n, q: np.ceil(n * q) - 1,
    "averaged_inverted_cdf": _averaged,
    "closest_observation": _closest,
    "lower": lambda n, q: np.floor((n - 1) * q),
    "higher": lambda n, q: np.ceil((n - 1) * q),
    "midpoint": lambda n, q: 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q)),
    "nearest": lambda n, q: np.rint((n - 1) * q),
}


def _place(method: str, n: Any, q: Any) -> Any:
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return n * q + (alpha + q * (1 - alpha - beta)) - 1
    return _PLACES[method](n, q)


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    method: str,
    keepdims: Any,
    weights: Any,
    skip_nan: bool,
    scale: float,
) -> Array:
    no_out(name, out)
    if method not in _CONTINUOUS and method not in _PLACES:
        raise ValueError(f"numpy.{name}: method must be one of {', '.join([*_CONTINUOUS, *_PLACES])}, got {method!r}")
    if is_concrete(q):
        values = np.asarray(q)
        if values.size and not (np.all(values >= 0) and np.all(values <= scale)):
            what = "quantiles" if scale == 1 else "percentiles"
            raise ValueError(f"numpy.{name}: {what} must be in the range [0, {scale}], got {q}")
    a, q = array_of(name, a), array_of(name, q, "q")
    if a.dtype.kind == "c" or q.dtype.kind == "c":
        raise TypeError(f"numpy.{name} takes real numbers, got {shown(a)} and {shown(q)}")
    a, q = (strong(array_of(name, x)) for x in promote_inexact(name, a, q))
    if scale != 1:
        q = array_of(name, np.asarray(q) / q.dtype.type(scale)) if is_concrete(q) else q / scale
    axes = canonical_axes(name, axis, a)
    kept = tuple(d for d in range(a.ndim) if d not in axes)
    shape = tuple(a.shape[d] for d in kept)
    n = math.prod(a.shape[d] for d in axes)
    rows = manipulation.reshape(manipulation.transpose(a, (*axes, *kept)), (n, *shape))
    if not n:
        result = lax_full((*q.shape, *shape), np.nan, a.dtype)
    elif weights is not None:
        result = _weighted(name, rows, q, a, axes, weights, method, skip_nan)
    else:
        result = _by_place(rows, q, method, skip_nan)
    if keepdims:
        result = manipulation.reshape(result, (*q.shape, *reductions.reduced_shape(a.shape, axes)))
    return result


def _by_place(rows: Array, q: Array, method: str, skip_nan: bool) -> Array:
    """Quantiles along the first axis; those of q come first in the result."""
    n, *shape = rows.shape
    (ordered,) = sort_p.bind(rows, dimension=0, is_stable=True, num_keys=1)  # NaN last
    count: Any = reductions.sum(~ufuncs.isnan(rows), 0) if skip_nan else n
    last = ufuncs.maximum(count - 1, 0) if skip_nan else n - 1
    # Where q is known, all this is NumPy's arithmetic, and no part of the program.
    levels: Any = np.asarray(q) if is_concrete(q) else q
    place = np.clip(_place(method, count, levels.reshape((*q.shape, *(1,) * len(shape)))), 0, last)
    low = np.floor(place)
    fraction = (place - low).astype(ordered.dtype)  # NumPy's arithmetic of bfloat16 is that of float32
    first = low.astype(dtypes.default_int())
    second = np.minimum(first + 1, n - 1)
    if skip_nan and shape:
        first, second = (manipulation.broadcast_to(i, (*q.shape, *shape)) for i in (first, second))
        flat = [manipulation.reshape(i, (q.size, *shape)) for i in (first, second)]
        lower, upper = (manipulation.reshape(indexing.take_along_axis(ordered, i, 0), (*q.shape, *shape)) for i in flat)
    else:
        lower, upper = (ordered[i.reshape(q.shape)] for i in (first, second))
    if is_concrete(fraction) and not np.any(np.asarray(fraction)):
        out = lower
    elif method in _PLACES:  # halfway; without overflow
        out = where(fraction == 0, lower, 0.5 * lower + 0.5 * upper)
    else:
        gap = upper - lower
        between = where(fraction < 0.5, lower + gap * fraction, upper - gap * (1 - fraction))
        out = where((fraction == 0) | (lower == upper), lower, between)  # infinities
    has_none = count == 0 if skip_nan else ufuncs.isnan(ordered[-1])
    return where(has_none, out.dtype.type(np.nan), out)


def _weighted(
    name: str, rows: Array, q: Array, a: Array, axes: tuple[int, ...], weights: Any, method: str, skip_nan: bool
) -> Array:
    """The first element at which the sum of the weights reaches q times their total."""
    if method != "inverted_cdf":
        raise ValueError(f"numpy.{name}: weights are supported with method='inverted_cdf' only, got {method!r}")
    weights = convert(array_of(name, weights, "weights"), a.dtype)
    kept = tuple(d for d in range(a.ndim) if d not in axes)
    if is_concrete(weights) and (np.asarray(weights) < 0).any():
        raise ValueError(f"numpy.{name}: weights must be non-negative, {shown(weights)}")
    if weights.shape != a.shape:
        if weights.shape != tuple(a.shape[d] for d in axes):
            raise ShapeError(
                f"numpy.{name}: shape of weights must be consistent with shape of a along specified axis, got "
                f"{shown(weights)} for {shown(a)}"
            )
        weights = manipulation.reshape(weights, (rows.shape[0], *(1,) * (rows.ndim - 1)))
        weights = manipulation.broadcast_to(weights, rows.shape)
    else:
        weights = manipulation.reshape(manipulation.transpose(weights, (*axes, *kept)), rows.shape)
    valid = ~ufuncs.isnan(rows)
    if skip_nan:
        weights = where(valid, weights, 0)
    ordered, weights = sort_p.bind(rows, weights, dimension=0, is_stable=True, num_keys=1)
    total = weights.cumsum(0)
    total = total / total[-1]
    spread = manipulation.reshape(q, (*q.shape, *(1,) * rows.ndim))
    place = manipulation.reshape(arange(rows.shape[0]), (rows.shape[0], *(1,) * (rows.ndim - 1)))
    # The last one is reached even if its sum is rounded to less than the total.
    reached = (total >= spread) & (weights > 0) | (total > spread) | (place == rows.shape[0] - 1)
    first = reductions.argmax(manipulation.broadcast_to(reached, (*q.shape, *rows.shape)), q.ndim)
    one_hot = manipulation.expand_dims(first, q.ndim) == place
    out = reductions.sum(where(one_hot, ordered, 0), q.ndim)
    has_none = ~reductions.any(valid, 0) if skip_nan else ~reductions.all(valid, 0)
    return where(has_none, out.dtype.type(np.nan), out)


def _family(name: str, skip_nan: bool, scale: float, doc: str) -> Callable[..., Array]:
    host = getattr(np, name.removeprefix("nan"))

    @short_way(host, "d", optional("d"), plain="axis method keepdims", unless_nan=True)
    def function(
        a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, method: str = "linear",
        keepdims: bool = False, *, weights: Any = None, out_sharding: Any = None,
    ) -> Array:  # fmt: skip
        if out_sharding is not None:
            raise NotImplementedError(f"numpy.{name}: out_sharding is not supported yet")
        return _quantile(name, a, q, axis, out, method, keepdims, weights, skip_nan, scale)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


_METHODS_DOC = (
    " over axes, with NumPy's thirteen methods. The axes of `q` come first in the result.\n\n"
    "    NaN among the elements gives NaN.\n\n"
    "    Differs from NumPy: between equal infinities, and at midpoints beside one, it is infinite, not NaN."
)
quantile = _family("quantile", False, 1, "Quantiles of the levels q, from 0 to 1," + _METHODS_DOC)
percentile = _family("percentile", False, 100, "Quantiles of the levels q, from 0 to 100," + _METHODS_DOC)
_INFINITE = "\n\n    Differs from NumPy: as `quantile`, for infinities."
nanquantile = _family("nanquantile", True, 1, "`quantile` of what is not NaN." + _INFINITE)
nanpercentile = _family("nanpercentile", True, 100, "`percentile` of what is not NaN." + _INFINITE)


@short_way(host_forms.median, "ld", plain="axis keepdims")
def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The middle of the sorted elements over axes, or the mean of the middle two; NaN if there is a NaN."""
    return _quantile("median", a, 0.5, axis, out, "midpoint", keepdims, None, False, 1)


@short_way(host_forms.median, "ld", plain="axis keepdims", unless_nan=True)
def nanmedian(
    a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """`median` of what is not NaN."""
    return _quantile("nanmedian", a, 0.5, axis, out, "midpoint", keepdims, None, True, 1)


# ---- Histograms --------------------------------------------------------------------------------------------


@short_way(np.histogram_bin_edges, "ld", plain="bins range")
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """The edges of the bins of a histogram.

    Parameters
    ----------
    bins : int, array or str
        Number of equal bins, or the edges themselves, or the name of an estimator of NumPy ("auto", "fd", ...), for
        which `a` must be known.
    range : pair, optional
        Lowest and highest edge; by default those of the data.

    Differs from NumPy: edges that are made of a traced range, or of traced data, may be others in the last bit.
    """
    if isinstance(bins, str):
        values = concrete("histogram_bin_edges", array_of("histogram", a), "a", "Give the number of bins.")
        try:
            return array_of("histogram", np.histogram_bin_edges(values, bins, range, weights))
        except (ValueError, TypeError) as error:
            raise type(error)(f"numpy.histogram_bin_edges: {error}, for {shown(a)}") from None
    a = manipulation.ravel(array_of("histogram", a))
    dtype = dtypes.to_inexact_dtype(a.dtype)
    if is_several(bins):
        edges = array_of("histogram", bins, "bins")
        if edges.ndim != 1 or not edges.size:
            raise ValueError(f"numpy.histogram: `bins` must be 1d, when an array, got {shown(edges)}")
        if is_concrete(edges) and (np.diff(np.asarray(edges)) < 0).any():
            raise ValueError(f"numpy.histogram: `bins` must increase monotonically, when an array, got {shown(edges)}")
        return edges
    try:
        count = operator.index(bins)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise TypeError(f"numpy.histogram: `bins` must be an integer, a string, or an array, got {bins!r}") from None
    if count < 1:
        raise ValueError(f"numpy.histogram: `bins` must be positive, when an integer, got {count}")
    if range is not None:
        try:
            low, high = range
        except (TypeError, ValueError) as error:
            raise type(error)(f"numpy.histogram: range must be a pair, got {range!r}") from None
    if dtype.kind != "c" and (is_concrete(a) if range is None else is_concrete(low, high)):
        return _known_edges(a, count, None if range is None else (low, high), dtype)
    if range is not None:
        low, high = (convert(array_of("histogram", x, "range"), dtype) for x in (low, high))
    elif a.size:
        low, high = convert(a.min(), dtype), convert(a.max(), dtype)
    else:
        low, high = lax_full((), 0, dtype), lax_full((), 1, dtype)
    flat = low == high
    low, high = where(flat, low - 0.5, low), where(flat, high + 0.5, high)
    return linspace(low, high, count + 1)


def _known_edges(a: Array, bins: int, range: Any, dtype: np.dtype) -> Array:
    """NumPy's edges: a value that equals one is in NumPy's bin."""
    values = np.asarray(a) if range is None else np.zeros(0)
    if values.dtype.kind not in "iuf" or range is not None:
        values = values.astype(dtype if dtype.kind == "f" else np.float64)  # what NumPy has no rules for
    try:
        edges = np.histogram_bin_edges(values, bins, range and tuple(np.asarray(x)[()] for x in range))
    except ValueError as error:
        given = "" if range is None else f"range {range} and "
        raise ValueError(f"numpy.histogram: {str(error).rstrip('.')}, got {given}{shown(a)}") from None
    return array_of("histogram", edges.astype(dtype, copy=False))


def _bins_of(x: Array, edges: Array) -> Array:
    """The bin of each value; the last bin contains its upper edge. Beyond the edges: -1 or the number of bins."""
    x, edges = (array_of("histogram", v) for v in promote_inexact("histogram", x, edges))
    place = searchsorted(edges, x, "right") - 1
    n = edges.size - 1
    place = where(x == edges[-1], n - 1, place)
    return where(ufuncs.isnan(x), n, place)


def _check_density(name: str, density: Any) -> None:
    """The fourth argument is `density` in NumPy and here, and `weights` in JAX."""
    if not (density is None or isinstance(density, bool | np.bool_)):
        raise TypeError(f"numpy.{name}: density must be True or False, got {density!r}; weights come after it")


@short_way(np.histogram, "ld", plain="bins range density")
def histogram(
    a: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """How many values fall into each bin, or the sums of their weights, and the edges of the bins.

    See `histogram_bin_edges` for `bins` and `range`. With `density` the result is divided by its integral.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> counts, edges = xnp.histogram(xnp.array([1.0, 2.0, 2.5]), bins=2)
    >>> counts.tolist(), edges.tolist()
    ([1, 2], [1.0, 1.75, 2.5])
    """
    if out_sharding is not None:
        raise NotImplementedError("numpy.histogram: out_sharding is not supported yet")
    _check_density("histogram", density)
    edges = histogram_bin_edges(a, bins, range, weights)
    values = manipulation.ravel(array_of("histogram", a))
    weights = None if weights is None else manipulation.ravel(array_of("histogram", weights, "weights"))
    if weights is not None and weights.shape != values.shape:
        raise ValueError(
            f"numpy.histogram: weights should have the same shape as a, got {shown(weights)} for {shown(values)}"
        )
    place = _bins_of(values, edges)
    counts = _counted(place, weights, edges.size - 1)
    if density:
        counts = convert(counts, edges.dtype) if counts.dtype.kind != "f" else counts
        counts = counts / _differences(edges) / reductions.sum(counts)
    return counts, edges


def _differences(x: Array) -> Array:
    """Differences of neighbours."""
    return x[1:] - x[:-1]


def _counted(place: Array, weights: Any, n: int) -> Array:
    return bincount(where(place < 0, n, place), weights, length=n)


@api_boundary
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, list[Array]]:
    """How many of the rows of `sample` fall into each cell of a grid, and the edges along each axis.

    Differs from NumPy: the edges for samples of float32 are float32.

    Parameters
    ----------
    sample : (N, D) array, or D vectors
    bins : int, or D of them, or D vectors of edges
    range : D pairs (or None), optional
    """
    _check_density("histogramdd", density)
    if isinstance(sample, list | tuple):
        columns = [array_of("histogramdd", x, "sample") for x in sample]
    else:
        table = array_of("histogramdd", sample, "sample")
        if table.ndim not in (1, 2):
            raise ValueError(f"numpy.histogramdd: sample must have one or two axes, got {shown(table)}")
        columns = [table] if table.ndim == 1 else list(manipulation.unstack(table, axis=1))
    d = len(columns)
    each = list(bins) if is_several(bins) else [bins] * d
    ranges = [None] * d if range is None else list(range)
    if len(each) != d:
        raise ValueError(
            f"numpy.histogramdd: the dimension of bins must be equal to the dimension of the sample x, {d}, got "
            f"{len(each)}"
        )
    if len(ranges) != d:
        raise ValueError(f"numpy.histogramdd: range argument must have one entry per dimension, {d}, got {len(ranges)}")
    edges = [histogram_bin_edges(x, b, r) for x, b, r in zip(columns, each, ranges, strict=True)]
    shape = tuple(e.size - 1 for e in edges)
    total = math.prod(shape)
    flat: Any = 0
    outside: Any = False
    for x, e, n in zip(columns, edges, shape, strict=True):
        place = _bins_of(x, e)
        outside = (place < 0) | (place >= n) | outside
        flat = flat * n + place
    if weights is not None:
        weights = array_of("histogramdd", weights, "weights")
        if weights.shape != columns[0].shape:
            raise ValueError(
                f"numpy.histogramdd: the weights and sample don't have the same length, got {shown(weights)} for "
                f"{columns[0].size} rows"
            )
    counts = manipulation.reshape(_counted(where(outside, total, flat), weights, total), shape)
    counts = convert(counts, dtypes.to_inexact_dtype(counts.dtype))
    if density:
        counts = counts / reductions.sum(counts)
        for axis, e in enumerate(edges):
            counts = counts / manipulation.reshape(_differences(e), (-1, *(1,) * (d - axis - 1)))
    return counts, edges


@short_way(np.histogram2d, "d", same("d"), plain="bins range density")
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Array, Array, Array]:
    """`histogramdd` of two vectors: the counts, and the edges along x and y."""
    x, y = array_of("histogram2d", x, "x"), array_of("histogram2d", y, "y")
    if x.shape != y.shape:
        raise ValueError(f"numpy.histogram2d: x and y must have the same length, got {shown(x)} and {shown(y)}")
    if is_several(bins) and len(bins) not in (1, 2):
        bins = [bins, bins]
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]


# ---- Covariance --------------------------------------------------------------------------------------------


@api_boundary
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None,
    aweights: Any = None, dtype: Any = None,
) -> Array:  # fmt: skip
    """Covariance matrix of variables in rows (in columns unless `rowvar`).

    Differs from NumPy: float32 stays, where NumPy computes in double precision.

    Parameters
    ----------
    y : more variables, optional
    bias : bool
        Divide by n instead of n - 1; `ddof`, if given, says n - ddof.
    fweights, aweights : vectors, optional
        How often each observation counts, and its weight.
    """
    m = array_of("cov", m, "m")
    arrays = [m] if y is None else [m, array_of("cov", y, "y")]
    for letter, x in zip("my", arrays, strict=False):
        if x.ndim > 2:
            raise ValueError(f"numpy.cov: {letter} has more than 2 dimensions, {shown(x)}")
    rows: list[Array] = []
    for x in (array_of("cov", v) for v in promote_inexact("cov", *arrays)):
        x = manipulation.atleast_2d(x)
        rows.append(x if rowvar or arrays[len(rows)].ndim < 2 else manipulation.transpose(x))
    wanted = dtype_argument("cov", dtype)
    x = concatenate([convert(r, wanted) for r in rows] if wanted is not None else rows, 0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    if ddof != int(ddof):
        raise ValueError(f"numpy.cov: ddof must be integer, got {ddof}")
    weights: Any = None
    for kind, w in (("fweights", fweights), ("aweights", aweights)):
        if w is None:
            continue
        w = array_of("cov", w, kind)
        known = np.asarray(w) if is_concrete(w) else None
        if (
            kind == "fweights"
            and dtypes.kinds[w.dtype] not in "iu"
            and (known is None or (known != np.rint(known)).any())
        ):
            raise TypeError(f"numpy.cov: fweights must be integer, got {shown(w)}")
        if w.ndim > 1:
            raise RuntimeError(f"numpy.cov: cannot handle multidimensional {kind}, got {shown(w)}")
        if w.shape != x.shape[1:]:
            raise RuntimeError(
                f"numpy.cov: incompatible numbers of samples and {kind}, got {shown(w)} for observations {shown(x)}"
            )
        if known is not None and (known < 0).any():
            raise ValueError(f"numpy.cov: {kind} cannot be negative, {shown(w)}")
        weights = w if weights is None else weights * w
    total: Any = x.shape[1] if weights is None else reductions.sum(weights)
    mean = (
        reductions.average(x, 1, weights, keepdims=True)
        if weights is not None
        else reductions.mean(x, 1, keepdims=True)
    )
    if weights is None or aweights is None or not ddof:
        n = total - ddof
    else:
        n = total - ddof * reductions.sum(weights * array_of("cov", aweights)) / total
    n = ufuncs.maximum(n, 0) if isinstance(n, Array) else max(n, 0)
    x = x - mean
    scaled = x if weights is None else x * weights
    return manipulation.squeeze(dot(x, ufuncs.conj(manipulation.transpose(scaled))) / n)


@api_boundary
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Array:
    """Correlation coefficients of variables in rows (in columns unless `rowvar`).

    Differs from NumPy: float32 stays, where NumPy computes in double precision.
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    scale = ufuncs.sqrt(ufuncs.real(c.diagonal()))
    c = c / scale[:, None] / scale[None, :]
    if c.dtype.kind != "c":
        return c.clip(-1, 1)
    from xform.lax.arithmetic import complex_p

    return complex_p.bind(c.real.clip(-1, 1), c.imag.clip(-1, 1))
