"""What it costs to compute an operation again, for the choice of residuals (`interpreters.residuals`).

The unit is the cost to keep a byte: to write it in the forward and read it in the backward pass. What is not listed is
never computed again: matrix products, convolutions, linear algebra, gather, scatter, sorts, random bits, loops, calls.

May import: the primitives.
"""

from xform.lax import arithmetic as ar
from xform.lax import bitwise as bw
from xform.lax import comparison as cp
from xform.lax import (
    conversion,
    extremes,
    identities,
    pairs,
    powers,
    reductions,
    rounding,
    shapes,
    slicing,
    special,
    stacking,
)
from xform.lax import transcendental as tr
from xform.lax.logaddexp import logaddexp2_p, logaddexp_p
from xform.lax.polyval import polyval_p
from xform.lax.roll import roll_p

# Done in passing, while memory is read.
IN_PASSING = [
    *(ar.add_p, ar.add_any_p, ar.sub_p, ar.mul_p, ar.neg_p, extremes.max_p, extremes.min_p, ar.abs_p, ar.sign_p),
    *(ar.real_p, ar.imag_p, ar.complex_p, ar.conj_p),
    *(bw.and_p, bw.or_p, bw.xor_p, bw.not_p),
    *(cp.eq_p, cp.ne_p, cp.lt_p, cp.le_p, cp.gt_p, cp.ge_p, cp.select_n_p, cp.clamp_p),
    *(
        powers.square_p,
        powers.one_minus_square_p,
        powers.integer_pow_p,
        rounding.is_finite_p,
        rounding.floor_p,
        rounding.ceil_p,
        rounding.trunc_p,
        pairs.fmax_p,
        pairs.fmin_p,
    ),
    *(conversion.convert_element_type_p, shapes.broadcast_in_dim_p, shapes.reshape_p, shapes.squeeze_p),
    *(
        shapes.transpose_p,
        shapes.rev_p,
        shapes.iota_p,
        slicing.slice_p,
        slicing.pad_p,
        slicing.concatenate_p,
        stacking.stack_p,
        stacking.tile_p,
        identities.stop_gradient_p,
    ),
    *(reductions.reduce_sum_p, reductions.reduce_max_p, reductions.reduce_min_p),
]
# A pass of its own, through caches.
MOVED = [roll_p]
# A division or a root, and a polynomial or two.
QUOTIENTS = [ar.div_p, powers.sqrt_p, powers.rsqrt_p, pairs.hypot_p]
WITH_WORK = [
    *(tr.exp_p, tr.exp2_p, tr.expm1_p, tr.log_p, tr.log1p_p),
    *(tr.sin_p, tr.cos_p, tr.tanh_p, tr.logistic_p, special.erf_p, polyval_p, logaddexp_p, logaddexp2_p),
]
for costs, primitives in ((0.5, IN_PASSING), (0.75, MOVED), (2.0, QUOTIENTS), (4.0, WITH_WORK)):
    for primitive in primitives:
        primitive.cost_again = costs
