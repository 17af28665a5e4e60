"""Records of polynomials: short ones, of which the steps are written out, and long ones, which are loops."""

import numpy as np

from tests.ops.record import NUMBERS, Op, Sample, arrays, edge_values
from xform.lax.polyval import polyval_p

SHAPES = [((3,), ()), ((4,), (2, 3)), ((1,), (3,)), ((3, 2, 3), (2, 3)), ((2, 4), (4,)), ((0,), (3,)), ((3,), (0, 2))]


def polyval(unroll):
    def function(c, x):
        return polyval_p.bind(c, x, unroll=unroll)

    function.__name__ = "polyval"
    return function


def samples(rng, dtype):
    return [Sample(arrays(rng, dtype, *shapes, low=-1.2, high=1.2)) for shapes in SHAPES]


def edges(dtype):
    """Infinite and missing numbers among either; complex products of them are not specified."""
    if dtype.kind == "c":
        return []
    values = edge_values(dtype)
    return [
        Sample((np.array([1, 0, 2], dtype), values)),
        Sample((np.stack([values, np.ones_like(values), values[::-1]]), np.ones_like(values))),
    ]


def reference(c, x):
    return np.polyval(c, x) if len(c) else np.zeros_like(x)


OPS = [
    Op(
        name, polyval(unroll), samples, reference, NUMBERS, edges, ulps=32,
        errors=[
            (lambda: polyval(16)(np.ones((2, 3)), np.ones(2)), TypeError, r"lax\.polyval: .*f64\[2,3\] and f64\[2\]"),
            (lambda: polyval(16)(np.ones(2), np.ones(2, "f")), TypeError, r"lax\.polyval: .*f64\[2\] and f32\[2\]"),
            (lambda: polyval(16)(np.float64(2), np.ones(2)), TypeError, r"lax\.polyval: .*f64\[\] and f64\[2\]"),
        ],
    )
    for name, unroll in (("polyval", 16), ("polyval:loop", 2))
]  # fmt: skip
