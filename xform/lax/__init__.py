"""The primitives, each with all its rules, and the functions that bind them.

May import: `xform.interpreters`, `xform.core`.
"""

from xform.core.dtypes import dtype
from xform.lax import costs, linalg, sparsity
from xform.lax.accuracy import AccuracyMode, Tolerance
from xform.lax.arg_extremes import argmax, argmin
from xform.lax.arithmetic import abs, add, complex, conj, div, imag, mul, neg, real, rem, sign, sub
from xform.lax.barriers import composite, dce_sink, optimization_barrier
from xform.lax.bit_generator import RandomAlgorithm, rng_bit_generator
from xform.lax.bitwise import (
    bitcast_convert_type,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clz,
    population_count,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from xform.lax.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
)
from xform.lax.comparison import clamp, eq, ge, gt, le, lt, ne, select, select_n
from xform.lax.control_flow import cond, fori_loop, map, platform_dependent, scan, switch, while_loop
from xform.lax.conversion import convert_element_type
from xform.lax.convolution import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_general_dilated_local,
    conv_general_dilated_patches,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose,
    conv_transpose_shape_tuple,
    conv_with_general_padding,
    padtype_to_pads,
)
from xform.lax.cumulative import associative_scan, cumlogsumexp, cummax, cummin, cumprod, cumsum
from xform.lax.dot import DotDimensionNumbers, batch_matmul, dot, dot_general
from xform.lax.dynamic_slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    index_take,
)
from xform.lax.extremes import max, min
from xform.lax.fft import FftType, fft
from xform.lax.gather import GatherDimensionNumbers, GatherScatterMode, gather
from xform.lax.general_powers import pow
from xform.lax.identities import stop_gradient, with_sharding_constraint
from xform.lax.mulhi import mulhi
from xform.lax.polynomials import polynomial
from xform.lax.powers import cbrt, integer_pow, one_minus_square, reciprocal, rsqrt, sqrt, square
from xform.lax.precision import DotAlgorithm, DotAlgorithmPreset, Precision, PrecisionLike
from xform.lax.primitives import *  # noqa: F403
from xform.lax.ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
from xform.lax.ragged_exchange import ragged_all_to_all
from xform.lax.reductions import (
    reduce,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from xform.lax.rounding import RoundingMethod, ceil, floor, is_finite, nextafter, reduce_precision, round
from xform.lax.scatter import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_sub,
)
from xform.lax.scatter_apply import scatter_apply
from xform.lax.scatter_mul import scatter_mul
from xform.lax.shapes import (
    broadcast,
    broadcast_in_dim,
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    broadcasted_iota,
    collapse,
    empty,
    expand_dims,
    full,
    full_like,
    iota,
    reshape,
    rev,
    shape_as_value,
    squeeze,
    transpose,
)
from xform.lax.slicing import concatenate, index_in_dim, pad, slice, slice_in_dim
from xform.lax.solves import custom_linear_solve, custom_root
from xform.lax.sorting import approx_max_k, approx_min_k, sort, sort_key_val, top_k
from xform.lax.special import (
    bessel_i0e,
    bessel_i1e,
    betainc,
    digamma,
    erf,
    erf_inv,
    erfc,
    igamma,
    igamma_grad_a,
    igammac,
    lgamma,
    polygamma,
    random_gamma_grad,
    zeta,
)
from xform.lax.split import split, unstack
from xform.lax.stacking import stack, tile
from xform.lax.transcendental import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    logistic,
    sin,
    sinh,
    tan,
    tanh,
)
from xform.lax.windows import reduce_window, reduce_window_shape_tuple
