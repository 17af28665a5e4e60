"""How convolutions are computed on CPU where XLA's own operation is slow.

May import: `lax.strided`, `lax.dot`, the elementwise modules.
"""

from collections.abc import Callable
from typing import Any

from xform.core.avals import ShapedArray


def choose(x: ShapedArray, w: ShapedArray, out: ShapedArray, **params: Any) -> Callable[..., Any] | None:
    """The function ``(x, w, **params)`` that computes the convolution by other primitives; None: XLA's own is best."""
    return None
