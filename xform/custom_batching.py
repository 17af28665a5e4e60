"""Functions with rules for `vmap` by their authors.

May import: `api.custom_batching`.
"""

from xform.api.custom_batching import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]
