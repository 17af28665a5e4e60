"""``jax.experimental.jet``: Taylor mode, which is `xform.jet`.

May import: `xform.api`.
"""

from xform.api.taylor import jet

__all__ = ["jet"]
