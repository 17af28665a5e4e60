"""Derivatives without 0 * inf.

What `where` has selected away contributes exactly zero to a derivative: its cotangent is zero there, and must stay zero
when it is multiplied by a derivative that is infinite or NaN. And where a derivative is infinite, as that of the square
root at 0, a coefficient that is exactly zero, as that of the squares under the root, makes the product zero: the
subgradient 0 of a norm.

So the backward pass marks cotangents, statically: those that come out of a selection (`ZEROS`), and those that come
out of an operation whose derivative may be infinite (`INFINITE`). The mark stays with what is computed from them, and
where a marked cotangent is multiplied by a residual the product is one in which zero annihilates everything. An
infinite one is settled by its third multiplication by more than a known number, which is where squares and their
weights are behind it. Where nothing is marked nothing changes and nothing is paid.

May import: `xform.core`.
"""

import functools
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from xform.core.jaxpr import ClosedJaxpr, Eqn, Literal, cached_on_jaxpr

INFINITE = 0b0111  # a bit for each multiplication to come
ZEROS = 0b1000


def marks_of(eqn: Eqn, operand: int | None = None) -> int:
    """What the transpose of an equation marks: the cotangent of an operand, or of any."""
    primitive = eqn.primitive
    marks: Any = primitive.marks
    if type(marks) is tuple:
        return marks[operand] if operand is not None else marks_in_all(marks)
    if primitive.remembers_types:
        return marks
    for value in eqn.params.values():
        marks |= getattr(value, "marks", 0)  # of a plan
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, ClosedJaxpr):
                marks |= _marks_within(item)
    return marks


def marks_in_all(marks: Iterable[int]) -> int:
    """Marks taken together."""
    return functools.reduce(operator.or_, marks, 0)


@cached_on_jaxpr
def _marks_within(closed: ClosedJaxpr) -> int:
    return marks_in(closed.jaxpr.eqns)


def marks_in(eqns: Iterable[Eqn]) -> int:
    """What the transposes of equations mark."""
    return marks_in_all(marks_of(eqn) for eqn in eqns)


def is_scaling(eqn: Eqn) -> bool:
    """Whether it is a product, or quotient, with a finite number that isn't zero: what is infinite or zero stays so."""
    return len(eqn.invars) == 2 and any(
        type(v) is Literal and v.val != 0 and bool(np.isfinite(v.val)) for v in eqn.invars
    )


def passed_on(eqn: Eqn, mark: int) -> int:
    """What remains of a cotangent's mark behind the transpose of an equation."""
    return mark if is_scaling(eqn) or "transpose_marked" not in eqn.primitive.__dict__ else multiplied(mark)


def multiplied(mark: int) -> int:
    """What remains of a mark behind a multiplication."""
    return (mark & ZEROS) | ((mark & INFINITE) >> 1)
