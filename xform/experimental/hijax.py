"""``jax.experimental.hijax``: the accumulators that backward functions of custom rules may be given.

May import: `xform.api`.
"""

from xform.api.custom_vjp import NullAccum, ValAccum

__all__ = ["NullAccum", "ValAccum"]
