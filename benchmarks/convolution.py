"""How fast convolutions and reductions over windows are, compiled, with their gradients; and eagerly."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.harness import Library, Row, compare, library

LAST = ("NHWC", "HWIO", "NHWC")


def convolution(each: Library, x: Any, kernel: Any, **kwargs: Any) -> Any:
    """A convolution over one or two axes, features last."""
    layout = LAST if x.ndim == 4 else ("NHC", "HIO", "NHC")
    arguments = {"window_strides": (1,) * (x.ndim - 2), "padding": "SAME", "dimension_numbers": layout}
    return each.api.lax.conv_general_dilated(x, kernel, **arguments | kwargs)


def transposed(each: Library, x: Any, kernel: Any) -> Any:
    """Twice as long, axis by axis."""
    return each.api.lax.conv_transpose(x, kernel, (2, 2), "SAME")


def pool(each: Library, x: Any, size: int, stride: int) -> Any:
    """Maxima of squares of an image."""
    init = np.array(-np.inf, x.dtype)[()]
    return each.api.lax.reduce_window(x, init, each.api.lax.max, (1, size, size, 1), (1, stride, stride, 1), "SAME")


# name: (function of a library and arrays, shapes)
COMPILED: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "3x3, 3 to 16 features": (convolution, ((8, 32, 32, 3), (3, 3, 3, 16))),
    "3x3, 16 to 16 features": (convolution, ((8, 32, 32, 16), (3, 3, 16, 16))),
    "3x3, 64 to 64 features": (convolution, ((8, 32, 32, 64), (3, 3, 64, 64))),
    "3x3 strided, 16 features": (
        lambda each, x, k: convolution(each, x, k, window_strides=(2, 2)), ((8, 32, 32, 16), (3, 3, 16, 16)),
    ),
    "3x3 transposed, 16 features": (transposed, ((8, 16, 16, 16), (3, 3, 16, 16))),
    "3x3 depthwise, 16 features": (
        lambda each, x, k: convolution(each, x, k, feature_group_count=16), ((8, 32, 32, 16), (3, 3, 1, 16)),
    ),
    "3x3 in 4 groups, 16 features": (
        lambda each, x, k: convolution(each, x, k, feature_group_count=4), ((8, 32, 32, 16), (3, 3, 4, 16)),
    ),
    "1-d, 100,000 by 31": (convolution, ((1, 100_000, 1), (31, 1, 1))),
    "1-d, 10,000 by 5, 16 features": (convolution, ((1, 10_000, 16), (5, 16, 16))),
    "max-pool 2x2": (lambda each, x: pool(each, x, 2, 2), ((8, 32, 32, 16),)),
    "max-pool 3x3, stride 1": (lambda each, x: pool(each, x, 3, 1), ((8, 32, 32, 16),)),
}  # fmt: skip


def rows(quick: bool) -> Iterator[Row]:
    """Compiled: the operation, and the gradient of the sum of its squares, in both precisions. Eager: by NumPy."""
    yield from eager(quick)
    libraries = [library(name) for name in ("xform", "JAX")]
    rng = np.random.default_rng(0)
    for name, (function, shapes) in COMPILED.items():
        for dtype in ("float32", "float64"):
            arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
            for what in ("", ", gradient"):
                spaces = {each.name: program(each, function, arrays, bool(what)) for each in libraries}
                yield Row(f"{dtype} {name}{what}", compare("run(f(*xs))", spaces, quick=quick))


def program(each: Library, function: Callable[..., Any], arrays: list[np.ndarray], gradient: bool) -> dict[str, Any]:
    """A namespace with the compiled function, or its gradient, and its arguments."""

    def value(*xs: Any) -> Any:
        return function(each, *xs)

    def loss(*xs: Any) -> Any:
        return (value(*xs) ** 2).sum()

    run = each.api.grad(loss, tuple(range(len(arrays)))) if gradient else value
    wait = (lambda outs: [out.block_until_ready() for out in outs]) if gradient else lambda out: out.block_until_ready()
    return {"f": each.api.jit(run), "xs": [each.numpy.array(x) for x in arrays], "run": wait}


def eager(quick: bool) -> Iterator[Row]:
    """The host's rules on about a million elements, against what one would write in NumPy."""
    ours = library("xform")
    lax, rng = ours.api.lax, np.random.default_rng(0)
    windows = np.lib.stride_tricks.sliding_window_view
    image, kernel = rng.standard_normal((16, 64, 64, 16)), rng.standard_normal((3, 3, 16, 16))
    line, taps = rng.standard_normal(1_000_000), rng.standard_normal(31)
    plane, small = rng.standard_normal((1000, 1000)), rng.standard_normal((3, 3))
    cases = {
        "convolution 3x3, 16 features": (
            lambda: convolution(ours, image, kernel, padding="VALID"),
            lambda: np.tensordot(windows(image, (3, 3), (1, 2)), kernel, ((4, 5, 3), (0, 1, 2))),
        ),
        "convolution 1-d by 31": (
            lambda: lax.conv(line[None, None], taps[None, None], (1,), "VALID"),
            lambda: np.correlate(line, taps),
        ),
        "convolution 2-d, 3x3": (
            lambda: lax.conv(plane[None, None], small[None, None], (1, 1), "VALID"),
            lambda: sum(plane[i : i + 998, j : j + 998] * small[i, j] for i in range(3) for j in range(3)),
        ),
        "max-pool 2x2": (
            lambda: lax.reduce_window(plane, -np.inf, lax.max, (2, 2), (2, 2)),
            lambda: np.maximum(
                np.maximum(plane[::2, ::2], plane[1::2, ::2]), np.maximum(plane[::2, 1::2], plane[1::2, 1::2])
            ),
        ),
        "moving sum of 100": (
            lambda: lax.reduce_window(line, 0.0, lax.add, (100,)),
            lambda: np.convolve(line, np.ones(100), "valid"),
        ),
    }  # fmt: skip
    for name, (mine, numpys) in cases.items():
        spaces = {"xform": {"f": mine}, "NumPy": {"f": numpys}}
        yield Row(f"eager {name}, 1e6 elements", compare("f()", spaces, quick=quick))
