"""Maximum and minimum, elementwise.

NaN wins; where the operands are equal, each has half of the derivative. Complex numbers are ordered by their real
parts, then by the imaginary ones.

May import: `lax.families`, `lax.arithmetic`, `lax.comparison`.
"""

from typing import Any

import numpy as np

from xform.core.errors import api_boundary
from xform.interpreters.jet import locally_linear
from xform.interpreters.lowering import lower_as
from xform.lax.arithmetic import imag_p, mul_p, real_p
from xform.lax.comparison import eq_p, gt_p, lt_p, ne_p, select_n_p
from xform.lax.families import apply, constant, elementwise, is_complex, narrow_integers


def _extreme(name: str, host: Any, operation: str, beyond: Any) -> Any:
    """The primitive `max` or `min`; `beyond` compares real numbers."""

    def is_beyond(x: Any, y: Any) -> Any:
        if not is_complex(x):
            return beyond.bind(x, y)
        real_x, real_y = real_p.bind(x), real_p.bind(y)
        imag = beyond.bind(imag_p.bind(x), imag_p.bind(y))
        return select_n_p.bind(eq_p.bind(real_x, real_y), beyond.bind(real_x, real_y), imag)

    def share(x: Any, y: Any) -> Any:
        wins = select_n_p.bind(is_beyond(x, y), constant(x, 0), constant(x, 1))
        return select_n_p.bind(eq_p.bind(x, y), wins, constant(x, 0.5))

    def complex_extreme(x: Any, y: Any) -> Any:
        # Of x and y the one beyond; y if it is NaN; x if it is NaN.
        out = select_n_p.bind(is_beyond(x, y), y, x)
        return select_n_p.bind(ne_p.bind(x, x), select_n_p.bind(ne_p.bind(y, y), out, y), x)

    return elementwise(
        name,
        host,
        jvp=[
            lambda g, ans, x, y: mul_p.bind(g, share(x, y)),
            lambda g, ans, x, y: mul_p.bind(g, share(y, x)),
        ],
        jet=locally_linear,
        lower=operation,
        lower_complex=lower_as(complex_extreme),
    )


max_p = _extreme("max", narrow_integers(np.maximum), "maximum", gt_p)
min_p = _extreme("min", narrow_integers(np.minimum), "minimum", lt_p)


@api_boundary
def max(x: Any, y: Any) -> Any:
    """Elementwise maximum; NaN if either operand is. Equal operands have half of the derivative each."""
    return apply(max_p, x, y)


@api_boundary
def min(x: Any, y: Any) -> Any:
    """Elementwise minimum; NaN if either operand is. Equal operands have half of the derivative each."""
    return apply(min_p, x, y)
