"""JAX's names of what is under ``jax.experimental`` there.

May import: everything below `xform`.
"""

from xform.experimental import hijax, jet

__all__ = ["hijax", "jet"]
