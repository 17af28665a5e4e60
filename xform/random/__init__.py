"""`xform.random`: random numbers as functions of a key.

Bits, splits of keys, and what is one step from bits are those of JAX; samplers that repeat until a proposal is accepted
have the same distributions.

May import: `xform.numpy`, `xform.lax`.
"""

from xform.random.continuous import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    normal,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    uniform,
    wald,
    weibull_min,
)
from xform.random.counts import binomial, multinomial, poisson
from xform.random.discrete import bernoulli, bits, categorical, choice, geometric, permutation, rademacher, randint
from xform.random.gamma import (
    ball,
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    generalized_normal,
    loggamma,
    random_gamma_p,
    t,
)
from xform.random.keys import (
    Key,
    KeyArray,
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from xform.random.multivariate import multivariate_normal, orthogonal
