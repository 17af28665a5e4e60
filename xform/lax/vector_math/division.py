"""The remainder of a division as a formula (see `vector_math`).

May import: `vector_math.number`.
"""

from xform.lax.vector_math.number import INF, Bound, Number, where, with_sign


def rem(x: Number, y: Number) -> Number:
    """float64, exact as the C library's, which divides bit by bit: what is left when the quotient is cut off.

    Both products are exact, as the quotient has 25 bits at most, and so are both differences: they are multiples of
    the last place of x or y, and smaller than it. Rounded up, the quotient is too large by one.
    """
    a, b = abs(x), abs(y)
    quotient, head = (a / b).floor(), b.head()
    rest = (a - quotient * head) - quotient * (b - head)
    rest = where(rest < 0.0, rest + b, rest)
    return with_sign(where(a < b, a, rest), x)


short_rem = rem


def _quotient(x: Number, y: Number) -> Number:
    """How large the quotient is; 0 where the remainder is NaN, infinite where the formula overflows on its way."""
    a, b = abs(x), abs(y)
    usual = where(b > 2.0**-900, a, INF) < 2.0**900
    defined = where(b > 0.0, a, INF) < INF
    return where(usual, a / b, where(defined, INF, 0.0))


BOUNDS = {"rem": Bound("remainder", _quotient, 2.0**25)}
