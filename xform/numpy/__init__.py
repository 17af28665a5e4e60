"""`xform.numpy`: NumPy's functions on arrays that can be differentiated, mapped and compiled.

The names, parameters and meanings are NumPy's, with JAX's additions for traced arrays (``size=``, ``precision=`` ...).
Arrays are immutable: there is no ``out=``, and ``x.at[i].set(y)`` instead of ``x[i] = y``. Types promote as in JAX.

May import: `xform.lax`, `xform.api` (within functions), `xform.core`.
"""

# ruff: noqa: I001  (several names a line)

from xform.numpy import (
    fft, functional, indexing, keys, linalg, methods, namespace_info, protocols, special, types, ufuncs, updates,
)  # fmt: skip
from xform.numpy.creation import (
    array, asarray, astype, copy, empty, empty_like, eye, from_dlpack, frombuffer, fromfile, fromfunction,
    fromiter, fromstring, full, full_like, identity, ones, ones_like, tri, tril, triu, vander, zeros,
    zeros_like,
)  # fmt: skip
from xform.numpy.diagonals import (
    diag, diagflat, diagonal, fill_diagonal, trace,
)  # fmt: skip
from xform.numpy.elementwise import (
    allclose, angle, around, array_equal, array_equiv, clip, divmod, frexp, isclose, iscomplex, iscomplexobj,
    isreal, isrealobj, isscalar, iterable, modf, nan_to_num, piecewise, round, select, where,
)  # fmt: skip
from xform.numpy.files import load, save, savez
from xform.numpy.functional import (
    apply_along_axis, apply_over_axes, frompyfunc, ufunc, vectorize,
)  # fmt: skip
from xform.numpy.grids import (
    c_, diag_indices, diag_indices_from, index_exp, indices, ix_, mask_indices, mgrid, ogrid, r_, s_,
    tril_indices, tril_indices_from, triu_indices, triu_indices_from,
)  # fmt: skip
from xform.numpy.indexing import take, take_along_axis
from xform.numpy.joining import (
    append, block, column_stack, concat, concatenate, delete, dstack, hstack, insert, repeat, stack, tile,
    vstack,
)  # fmt: skip
from xform.numpy.manipulation import (
    array_split, atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to, dsplit,
    expand_dims, flip, fliplr, flipud, hsplit, matrix_transpose, moveaxis, ndim, permute_dims, ravel, reshape,
    resize, roll, rollaxis, rot90, shape, size, split, squeeze, swapaxes, transpose, trim_zeros, unstack,
    vsplit,
)  # fmt: skip
from xform.numpy.namespace_info import __array_api_version__, __array_namespace_info__
from xform.numpy.nan_reductions import (
    nanargmax, nanargmin, nancumprod, nancumsum, nanmax, nanmean, nanmin, nanprod, nanstd, nansum, nanvar,
)  # fmt: skip
from xform.numpy.numerics import (
    bartlett, blackman, convolve, correlate, diff, ediff1d, gradient, hamming, hanning, interp, kaiser,
    trapezoid, unwrap,
)  # fmt: skip
from xform.numpy.padding import (
    pad,
)  # fmt: skip
from xform.numpy.polynomials import (
    poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, polyval, roots,
)  # fmt: skip
from xform.numpy.products import (
    cross, dot, einsum, einsum_path, inner, kron, matmul, matvec, outer, tensordot, vdot, vecdot, vecmat,
)  # fmt: skip
from xform.numpy.ranges import (
    arange, geomspace, linspace, logspace, meshgrid,
)  # fmt: skip
from xform.numpy.reductions import (
    all, amax, amin, any, argmax, argmin, average, count_nonzero, cumprod, cumsum, cumulative_prod,
    cumulative_sum, max, mean, min, minmax, prod, ptp, std, sum, var,
)  # fmt: skip
from xform.numpy.searching import (
    argwhere, bincount, compress, digitize, extract, flatnonzero, nonzero, ravel_multi_index, searchsorted,
    unravel_index,
)  # fmt: skip
from xform.numpy.selection import (
    choose, packbits, place, put, put_along_axis, unpackbits,
)  # fmt: skip
from xform.numpy.sets import (
    intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts, unique_inverse,
    unique_values,
)  # fmt: skip
from xform.numpy.sorting import (
    argpartition, argsort, lexsort, partition, sort, sort_complex, top_k,
)  # fmt: skip
from xform.numpy.statistics import (
    corrcoef, cov, histogram, histogram2d, histogram_bin_edges, histogramdd, median, nanmedian, nanpercentile,
    nanquantile, percentile, quantile,
)  # fmt: skip
from xform.numpy.text import array_repr, array_str, get_printoptions, printoptions, set_printoptions
from xform.numpy.types import (
    ComplexWarning, bfloat16, bool, bool_, can_cast, cdouble, character, complex128, complex64, complex_,
    complexfloating, csingle, double, dtype, e, euler_gamma, finfo, flexible, float16, float32, float64, float_,
    floating, generic, iinfo, inexact, inf, int16, int32, int64, int8, int_, integer, isdtype, issubdtype, nan,
    ndarray, newaxis, number, object_, pi, promote_types, result_type, signedinteger, single, uint, uint16,
    uint32, uint64, uint8, unsignedinteger,
)  # fmt: skip
from xform.numpy.ufuncs import (
    abs, absolute, acos, acosh, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, asin, asinh,
    atan, atan2, atanh, bitwise_and, bitwise_count, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or,
    bitwise_right_shift, bitwise_xor, cbrt, ceil, conj, conjugate, copysign, cos, cosh, deg2rad, degrees,
    divide, equal, exp, exp2, expm1, fabs, float_power, floor, floor_divide, fmax, fmin, fmod, gcd, greater,
    greater_equal, heaviside, hypot, i0, imag, invert, isfinite, isinf, isnan, isneginf, isposinf, lcm, ldexp,
    left_shift, less, less_equal, log, log10, log1p, log2, logaddexp, logaddexp2, logical_and, logical_not,
    logical_or, logical_xor, maximum, minimum, mod, multiply, negative, nextafter, not_equal, positive, pow,
    power, rad2deg, radians, real, reciprocal, remainder, right_shift, rint, sign, signbit, sin, sinc, sinh,
    spacing, sqrt, square, subtract, tan, tanh, true_divide, trunc,
)  # fmt: skip

globals().update(types.narrow_types)  # float8_e4m3fn, int4 and others, as many as ml_dtypes has
functional.install(vars(ufuncs))
keys.install(globals())


def __getattr__(name: str) -> object:
    """The modules that are imported when they are first used."""
    module = {"emath": "lib.scimath", "lib": "lib", "polynomial": "polynomial"}.get(name)
    if module is None:
        raise AttributeError(f"module 'xform.numpy' has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"xform.numpy.{module}")
