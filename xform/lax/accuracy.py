"""How accurate an elementwise function is asked to be: the `accuracy` argument of `lax.exp` and others.

There is one implementation of each function, which the table of operations holds to `REL_EPS` times eps; what asks for
more is refused.

May import: `xform.core`.
"""

import dataclasses
import enum
from typing import TypeAlias

import numpy as np

from xform.core import dtypes

REL_EPS = 8  # relative error in eps of the type that the tests allow
ULPS = 2 * REL_EPS  # just above a power of two an eps is one unit in the last place, just below it is two


class AccuracyMode(enum.Enum):
    """The most accurate implementation, or the default one; here they are the same."""

    HIGHEST = 1
    DEFAULT = 2


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """The largest error that is allowed: absolute, relative, and in units in the last place.

    An error within one of them is allowed. Raises ValueError if one is negative or all are zero.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if min(self.atol, self.rtol, self.ulps) < 0 or not any((self.atol, self.rtol, self.ulps)):
            raise ValueError(f"lax.Tolerance: atol, rtol and ulps must not be negative, nor all zero, got {self}")


Accuracy: TypeAlias = Tolerance | AccuracyMode | None


def check_accuracy(name: str, dtype: np.dtype, accuracy: Accuracy) -> None:
    """Raise unless lax.`name` is as accurate as that."""
    if isinstance(accuracy, AccuracyMode):
        return
    if not isinstance(accuracy, Tolerance):
        raise TypeError(f"lax.{name}: accuracy must be None, a lax.AccuracyMode or a lax.Tolerance, got {accuracy!r}")
    if dtypes.issubdtype(dtype, np.inexact):
        bound = REL_EPS * float(dtypes.finfo(dtype).eps)
        if accuracy.ulps < ULPS and accuracy.rtol < bound:
            raise NotImplementedError(
                f"lax.{name}: errors of {dtype} are only known to be within rtol={bound:.2g} or ulps={ULPS}, which "
                f"accuracy={accuracy} asks to be smaller"
            )
