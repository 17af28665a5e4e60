"""The primitives that are JAX's, under JAX's names, for programs that walk jaxprs: ``eqn.primitive is lax.add_p``.

Names of `jax.lax` for which there is no primitive here are in docs/lax.md.

May import: the other modules of `lax`.
"""

from xform.lax.arg_extremes import argmax_p, argmin_p
from xform.lax.arithmetic import (
    abs_p,
    add_p,
    complex_p,
    conj_p,
    div_p,
    imag_p,
    mul_p,
    neg_p,
    real_p,
    rem_p,
    sign_p,
    sub_p,
)
from xform.lax.barriers import optimization_barrier_p
from xform.lax.bit_generator import rng_bit_generator_p
from xform.lax.bitwise import (
    and_p,
    bitcast_convert_type_p,
    clz_p,
    not_p,
    or_p,
    population_count_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from xform.lax.collectives import all_gather_p, all_to_all_p, axis_index_p, pmax_p, pmin_p, ppermute_p, psum_p
from xform.lax.comparison import clamp_p, eq_p, ge_p, gt_p, le_p, lt_p, ne_p, select_n_p
from xform.lax.control_flow.cond import cond_p
from xform.lax.control_flow.scan import scan_p
from xform.lax.control_flow.while_loop import while_p
from xform.lax.conversion import convert_element_type_p
from xform.lax.convolution.primitive import conv_general_dilated_p
from xform.lax.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from xform.lax.dot import dot_general_p
from xform.lax.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from xform.lax.extremes import max_p, min_p
from xform.lax.fft import fft_p
from xform.lax.gather import gather_p
from xform.lax.general_powers import pow_p
from xform.lax.identities import stop_gradient_p
from xform.lax.mulhi import mulhi_p
from xform.lax.powers import cbrt_p, integer_pow_p, one_minus_square_p, rsqrt_p, sqrt_p, square_p
from xform.lax.reductions import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_sum_p,
    reduce_xor_p,
)
from xform.lax.rounding import ceil_p, floor_p, is_finite_p, nextafter_p, reduce_precision_p, round_p
from xform.lax.scatter import scatter_add_p, scatter_max_p, scatter_min_p, scatter_p
from xform.lax.scatter_mul import scatter_mul_p
from xform.lax.shapes import broadcast_in_dim_p, iota_p, reshape_p, rev_p, squeeze_p, transpose_p
from xform.lax.slicing import concatenate_p, pad_p, slice_p
from xform.lax.solves import linear_solve_p
from xform.lax.sorting import sort_p, top_k_p
from xform.lax.special.bessel import bessel_i0e_p, bessel_i1e_p
from xform.lax.special.error import erf_inv_p, erf_p, erfc_p
from xform.lax.special.gamma import digamma_p, lgamma_p, polygamma_p
from xform.lax.special.incomplete_beta import betainc_p as regularized_incomplete_beta_p
from xform.lax.special.incomplete_gamma import igamma_grad_a_p, igamma_p, igammac_p
from xform.lax.special.zeta import zeta_p
from xform.lax.split import split_p
from xform.lax.stacking import stack_p, tile_p
from xform.lax.transcendental import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cos_p,
    cosh_p,
    exp2_p,
    exp_p,
    expm1_p,
    log1p_p,
    log2_p,
    log_p,
    logistic_p,
    sin_p,
    sinh_p,
    tan_p,
    tanh_p,
)
from xform.lax.windows.reduction import reduce_window_max_p, reduce_window_min_p, reduce_window_sum_p
from xform.lax.windows.selection import select_and_gather_add_p, select_and_scatter_add_p

__all__ = [
    "abs_p",
    "acos_p",
    "acosh_p",
    "add_p",
    "all_gather_p",
    "all_to_all_p",
    "and_p",
    "argmax_p",
    "argmin_p",
    "asin_p",
    "asinh_p",
    "atan2_p",
    "atan_p",
    "atanh_p",
    "axis_index_p",
    "bessel_i0e_p",
    "bessel_i1e_p",
    "bitcast_convert_type_p",
    "broadcast_in_dim_p",
    "cbrt_p",
    "ceil_p",
    "clamp_p",
    "clz_p",
    "complex_p",
    "concatenate_p",
    "cond_p",
    "conj_p",
    "conv_general_dilated_p",
    "convert_element_type_p",
    "cos_p",
    "cosh_p",
    "cumlogsumexp_p",
    "cummax_p",
    "cummin_p",
    "cumprod_p",
    "cumsum_p",
    "digamma_p",
    "div_p",
    "dot_general_p",
    "dynamic_slice_p",
    "dynamic_update_slice_p",
    "eq_p",
    "erf_inv_p",
    "erf_p",
    "erfc_p",
    "exp2_p",
    "exp_p",
    "expm1_p",
    "fft_p",
    "floor_p",
    "gather_p",
    "ge_p",
    "gt_p",
    "igamma_grad_a_p",
    "igamma_p",
    "igammac_p",
    "imag_p",
    "integer_pow_p",
    "iota_p",
    "is_finite_p",
    "le_p",
    "lgamma_p",
    "linear_solve_p",
    "log1p_p",
    "log2_p",
    "log_p",
    "logistic_p",
    "lt_p",
    "max_p",
    "min_p",
    "mul_p",
    "mulhi_p",
    "ne_p",
    "neg_p",
    "nextafter_p",
    "not_p",
    "one_minus_square_p",
    "optimization_barrier_p",
    "or_p",
    "pad_p",
    "pmax_p",
    "pmin_p",
    "polygamma_p",
    "population_count_p",
    "pow_p",
    "ppermute_p",
    "psum_p",
    "real_p",
    "reduce_and_p",
    "reduce_max_p",
    "reduce_min_p",
    "reduce_or_p",
    "reduce_precision_p",
    "reduce_prod_p",
    "reduce_sum_p",
    "reduce_window_max_p",
    "reduce_window_min_p",
    "reduce_window_sum_p",
    "reduce_xor_p",
    "regularized_incomplete_beta_p",
    "rem_p",
    "reshape_p",
    "rev_p",
    "rng_bit_generator_p",
    "round_p",
    "rsqrt_p",
    "scan_p",
    "scatter_add_p",
    "scatter_max_p",
    "scatter_min_p",
    "scatter_mul_p",
    "scatter_p",
    "select_and_gather_add_p",
    "select_and_scatter_add_p",
    "select_n_p",
    "shift_left_p",
    "shift_right_arithmetic_p",
    "shift_right_logical_p",
    "sign_p",
    "sin_p",
    "sinh_p",
    "slice_p",
    "sort_p",
    "split_p",
    "sqrt_p",
    "square_p",
    "squeeze_p",
    "stack_p",
    "stop_gradient_p",
    "sub_p",
    "tan_p",
    "tanh_p",
    "tile_p",
    "top_k_p",
    "transpose_p",
    "while_p",
    "xor_p",
    "zeta_p",
]
