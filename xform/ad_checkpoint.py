"""Which values a gradient keeps, and which it computes again.

May import: `api.checkpoint`, `lax.checkpoint`.
"""

from xform.api.checkpoint import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint,
    checkpoint_policies,
    print_saved_residuals,
    saved_residuals,
)
from xform.lax.checkpoint import checkpoint_name, name_p

remat = checkpoint
checkpoint_name_fwd = checkpoint_name  # derivatives of a named value have no name here in any case

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_name_fwd",
    "checkpoint_policies",
    "name_p",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
