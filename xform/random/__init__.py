"""`xform.random`: random numbers as functions of a key, the streams those of JAX.

May import: `xform.numpy`, `xform.lax`.
"""

from xform.random.continuous import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    truncated_normal,
    uniform,
)
from xform.random.discrete import bernoulli, bits, categorical, choice, permutation, rademacher, randint
from xform.random.keys import (
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
