"""Windows: where they lie, reductions over them, and selecting their extreme elements.

May import: the other modules of `lax`.
"""

from xform.lax.windows.reduction import reduce_window, reduce_window_shape_tuple

__all__ = ["reduce_window", "reduce_window_shape_tuple"]
