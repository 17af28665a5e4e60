"""`xform.numpy`: NumPy's functions on arrays that can be differentiated, mapped and compiled.

The names, parameters and meanings are NumPy's, with JAX's additions for traced arrays (``size=``, ``precision=`` ...).
Arrays are immutable: there is no ``out=``, and ``x.at[i].set(y)`` instead of ``x[i] = y``. Types promote as in JAX.

May import: `xform.lax`, `xform.api` (within functions), `xform.core`.
"""

# ruff: noqa: I001  (several names a line)

from xform.numpy import (
    fft, functional, indexing, keys, linalg, methods, namespace_info, protocols, types, ufuncs, updates,
)  # fmt: skip
from xform.numpy.conversion import asanyarray, asarray_chkfinite, ascontiguousarray, require
from xform.numpy.creation import (
    array, asarray, astype, copy, empty, empty_like, from_dlpack, frombuffer, fromfile, fromfunction, fromiter,
    fromstring, full, full_like, ones, ones_like, zeros, zeros_like,
)  # fmt: skip
from xform.numpy.diagonals import (
    diag, diagflat, diagonal, fill_diagonal, trace,
)  # fmt: skip
from xform.numpy.einstein import einsum, einsum_path
from xform.numpy.elementwise import (
    allclose, angle, around, array_equal, array_equiv, clip, divmod, frexp, isclose, iscomplex, iscomplexobj,
    isreal, isrealobj, isscalar, iterable, modf, nan_to_num, piecewise, real_if_close, round, select,
    where,
)  # fmt: skip
from xform.numpy.files import load, save, savetxt, savez, savez_compressed
from xform.numpy.functional import (
    apply_along_axis, apply_over_axes, frompyfunc, ufunc, vectorize,
)  # fmt: skip
from xform.numpy.host_functions import (
    array2string, base_repr, binary_repr, errstate, format_float_positional, format_float_scientific,
    genfromtxt, geterr, loadtxt, may_share_memory, seterr, shares_memory,
)  # fmt: skip
from xform.numpy.grids import (
    c_, diag_indices, diag_indices_from, index_exp, indices, ix_, mask_indices, mgrid, ogrid, r_, s_,
    tril_indices, tril_indices_from, triu_indices, triu_indices_from,
)  # fmt: skip
from xform.numpy.indexing import take, take_along_axis
from xform.numpy.iteration import broadcast, ndenumerate, ndindex
from xform.numpy.joining import (
    append, block, column_stack, concat, concatenate, delete, dstack, hstack, insert, repeat, stack, tile,
    row_stack, vstack,
)  # fmt: skip
from xform.numpy.manipulation import (
    array_split, atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes, broadcast_to, dsplit,
    expand_dims, flip, fliplr, flipud, hsplit, matrix_transpose, moveaxis, ndim, permute_dims, ravel, reshape,
    resize, roll, rollaxis, rot90, shape, size, split, squeeze, swapaxes, transpose, trim_zeros, unstack,
    vsplit,
)  # fmt: skip
from xform.numpy.special_matrices import eye, identity, tri, tril, triu, vander
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
    cross, dot, inner, kron, matmul, matvec, outer, tensordot, vdot, vecdot, vecmat,
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
    choose, copyto, packbits, place, put, put_along_axis, putmask, unpackbits,
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
    bfloat16, bool, bool_, byte, can_cast, cdouble, character, common_type, complex128, complex64, complex_,
    complexfloating, ComplexWarning, csingle, double, dtype, e, euler_gamma, exceptions, False_, finfo, flexible,
    float16, float32, float64, float_, floating, generic, half, iinfo, inexact, inf, int16, int32, int64, int8,
    int_, intc, integer, intp, isdtype, issubdtype, long, longlong, min_scalar_type, mintypecode, nan, ndarray,
    newaxis, number, object_, pi, promote_types, result_type, short, signedinteger, single, True_, typecodes,
    ubyte, uint, uint16, uint32, uint64, uint8, uintc, uintp, ulong, ulonglong, unsignedinteger, ushort,
)  # fmt: skip
from xform.numpy.ufuncs import (
    abs, absolute, acos, acosh, add, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, asin, asinh,
    atan, atan2, atanh, bitwise_and, bitwise_count, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or,
    bitwise_right_shift, bitwise_xor, cbrt, ceil, conj, conjugate, copysign, cos, cosh, deg2rad, degrees,
    divide, equal, exp, exp2, expm1, fabs, fix, float_power, floor, floor_divide, fmax, fmin, fmod, gcd, greater,
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
    module = {"emath": "lib.scimath", "lib": "lib", "polynomial": "polynomial", "special": "special"}.get(name)
    if module is None:
        raise AttributeError(f"module 'xform.numpy' has no attribute {name!r}")
    import importlib

    return importlib.import_module(f"xform.numpy.{module}")
