"""Reductions over axes."""

import numpy as np
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import NUMBERS, Call, Function, Wrong, arrays, axes

A = np.ones((2, 3))


@st.composite
def reductions(draw, dtypes=NUMBERS, **more):
    x = draw(arrays(dtypes=dtypes, **more))
    return Call((x,), {"axis": draw(axes(x.ndim)), "keepdims": draw(st.booleans())})


FUNCTIONS = [
    Function(
        "sum",
        reductions(),
        errors=[
            Wrong(lambda np: np.sum(A, axis=2), AxisError, r"sum"),
            Wrong(lambda np: np.sum(A, axis=(0, 0)), ValueError, r"sum"),
        ],
    ),
]
