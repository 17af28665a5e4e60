"""Every primitive on a million elements: on the host beside NumPy and SciPy, compiled beside JAX's jit.

``python -m benchmarks primitives`` takes ten minutes and is not part of the default run. Left out is what holds
programs (loops, branches, custom rules), needs several devices, or does no work (`stop_gradient`, barriers, names). A
compiled case has no row where XLA makes the same program of it as of JAX's.
"""

import functools
import re
import timeit
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft, linalg, special

from benchmarks.harness import Library, Row, library, rotated

SIZE = 10**6
SIDE = 1000  # of matrices of a million elements
RNG = np.random.default_rng(0)
CPUS = ("xform", "JAX")


@dataclass(frozen=True)
class Case:
    """A call ``fun(lax, *arrays)`` with JAX's `lax` or ours, and the same by NumPy; None where that has nothing."""

    fun: Callable[..., Any]
    numpys: Callable[..., Any] | None
    arrays: tuple[Any, ...]


def call(path: str, **kwargs: Any) -> Callable[..., Any]:
    """``fun(lax, *arrays)`` that calls the function of `lax` with this dotted name."""

    def fun(lax: Any, *xs: Any) -> Any:
        return functools.reduce(getattr, path.split("."), lax)(*xs, **kwargs)

    return fun


def real(low: float, high: float, dtype: Any = "float64", shape: Any = SIZE) -> np.ndarray:
    """Uniform random numbers."""
    return RNG.uniform(low, high, shape).astype(dtype)


def whole(low: int, high: int, dtype: Any = "int64", shape: Any = SIZE) -> np.ndarray:
    """Random integers of [low, high)."""
    return RNG.integers(low, high, shape).astype(dtype)


def plane(dtype: Any = "complex128", shape: Any = SIZE) -> np.ndarray:
    """Complex random numbers."""
    return (real(-2, 2, shape=shape) + 1j * real(-2, 2, shape=shape)).astype(dtype)


# Elementwise functions of a real number: NumPy's or SciPy's, and the interval of arguments.
FLOAT_UNARY = {
    "neg": (np.negative, -2, 2), "sign": (np.sign, -2, 2), "floor": (np.floor, -9, 9), "ceil": (np.ceil, -9, 9),
    "abs": (np.abs, -2, 2), "sqrt": (np.sqrt, 0, 9), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9),
    "cbrt": (np.cbrt, -9, 9), "square": (np.square, -2, 2), "reciprocal": (np.reciprocal, 0.1, 9),
    "is_finite": (np.isfinite, -2, 2), "exp": (np.exp, -9, 9), "exp2": (np.exp2, -9, 9), "expm1": (np.expm1, -2, 2),
    "log": (np.log, 0.1, 50), "log1p": (np.log1p, -0.5, 5),
    "sin": (np.sin, -9, 9), "cos": (np.cos, -9, 9), "tan": (np.tan, -9, 9), "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1), "atan": (np.arctan, -5, 5), "sinh": (np.sinh, -3, 3), "cosh": (np.cosh, -3, 3),
    "tanh": (np.tanh, -3, 3), "asinh": (np.arcsinh, -5, 5), "acosh": (np.arccosh, 1, 9), "atanh": (np.arctanh, -1, 1),
    "logistic": (special.expit, -5, 5), "erf": (special.erf, -3, 3), "erfc": (special.erfc, -3, 3),
    "erf_inv": (special.erfinv, -1, 1), "lgamma": (special.gammaln, 0.1, 20), "digamma": (special.digamma, 0.1, 20),
    "bessel_i0e": (special.i0e, -20, 20), "bessel_i1e": (special.i1e, -20, 20),
}  # fmt: skip
FLOAT_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod, "max": np.maximum,
    "min": np.minimum, "pow": np.power, "atan2": np.arctan2, "nextafter": np.nextafter, "eq": np.equal,
    "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
INT_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "eq": np.equal, "lt": np.less,
}  # fmt: skip
COMPLEX_UNARY = {
    "neg": np.negative, "abs": np.abs, "real": lambda x: x.real.copy(), "imag": lambda x: x.imag.copy(),
    "conj": np.conj, "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin, "tanh": np.tanh, "sign": np.sign,
    "square": np.square,
}  # fmt: skip
REDUCTIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}
CUMULATIVE = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate,
    "cumlogsumexp": np.logaddexp.accumulate,
}  # fmt: skip


def elementwise() -> Iterator[tuple[str, Case]]:
    """Arithmetic and functions."""
    for dtype in ("float64", "float32"):
        for name, (numpys, low, high) in FLOAT_UNARY.items():
            yield f"{name} {dtype}", Case(call(name), numpys, (real(low, high, dtype),))
        for name, numpys in FLOAT_BINARY.items():
            yield f"{name} {dtype}", Case(call(name), numpys, (real(0.1, 5, dtype), real(0.1, 5, dtype)))
        x, y, p = real(-2, 2, dtype), real(-2, 2, dtype), whole(0, 2, bool)
        low, high = np.array([-1, 1], dtype)
        yield f"round {dtype}", Case(lambda lax, x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), np.rint, (x,))
        yield (
            f"integer_pow 3 {dtype}",
            Case(lambda lax, x: lax.integer_pow(x, 3), lambda x: x * x * x, (x,)),
        )
        yield (
            f"clamp {dtype}",
            Case(lambda lax, x, a=low, b=high: lax.clamp(a, x, b), lambda x, a=low, b=high: np.clip(x, a, b), (x,)),
        )
        yield f"select_n {dtype}", Case(call("select_n"), lambda p, x, y: np.where(p, y, x), (p, x, y))
        yield f"reduce_precision {dtype}", Case(call("reduce_precision", exponent_bits=5, mantissa_bits=10), None, (x,))
    a, b, x = real(0.5, 9), real(0.5, 9), real(0.05, 0.95)
    yield "igamma float64", Case(call("igamma"), special.gammainc, (a, b))
    yield "igammac float64", Case(call("igammac"), special.gammaincc, (a, b))
    yield "igamma_grad_a float64", Case(call("igamma_grad_a"), None, (a, b))
    yield "random_gamma_grad float64", Case(call("random_gamma_grad"), None, (a, b))
    yield "betainc float64", Case(call("betainc"), special.betainc, (a, b, x))
    yield "zeta float64", Case(call("zeta"), special.zeta, (a + 1, b))
    yield "polygamma float64", Case(call("polygamma"), None, (np.full(SIZE, 1.0), b))
    for dtype in ("int64", "int32", "uint8"):
        pair = whole(0, 100, dtype), whole(1, 100, dtype)
        for name, numpys in INT_BINARY.items():
            yield f"{name} {dtype}", Case(call(name), numpys, pair)
        shift = whole(0, 8, dtype)
        yield f"div {dtype}", Case(call("div"), np.floor_divide, pair)
        yield f"rem {dtype}", Case(call("rem"), np.fmod, pair)
        yield f"shift_left {dtype}", Case(call("shift_left"), np.left_shift, (pair[0], shift))
        for kind in ("arithmetic", "logical"):
            yield f"shift_right_{kind} {dtype}", Case(call(f"shift_right_{kind}"), np.right_shift, (pair[0], shift))
        yield f"neg {dtype}", Case(call("neg"), np.negative, pair[:1])
        yield f"bitwise_not {dtype}", Case(call("bitwise_not"), np.invert, pair[:1])
        yield f"population_count {dtype}", Case(call("population_count"), np.bitwise_count, pair[:1])
        yield f"clz {dtype}", Case(call("clz"), None, pair[:1])
        yield f"sign {dtype}", Case(call("sign"), np.sign, pair[:1])
        yield (
            f"integer_pow 3 {dtype}",
            Case(lambda lax, x: lax.integer_pow(x, 3), lambda x: x * x * x, pair[:1]),
        )
    pair = whole(-9, 9) + 1j, plane()
    yield "div -int64", Case(call("div"), lambda x, y: np.trunc(x / y).astype(int), (whole(-99, 99), whole(1, 9)))
    yield "rem -int64", Case(call("rem"), np.fmod, (whole(-99, 99), whole(1, 9)))
    yield "mulhi uint32", Case(call("mulhi"), lambda x, y: ((x.astype("u8") * y) >> 32).astype("u4"), (
        whole(0, 2**32, "uint32"), whole(0, 2**32, "uint32")))  # fmt: skip
    for name in ("bitwise_and", "bitwise_xor"):
        yield f"{name} bool", Case(call(name), INT_BINARY[name], (whole(0, 2, bool), whole(0, 2, bool)))
    for dtype in ("complex128", "complex64"):
        for name, numpys in COMPLEX_UNARY.items():
            yield f"{name} {dtype}", Case(call(name), numpys, (plane(dtype),))
        for name in ("add", "mul", "div", "eq"):
            yield f"{name} {dtype}", Case(call(name), FLOAT_BINARY[name], (plane(dtype), plane(dtype)))
    yield "pow complex128", Case(call("pow"), np.power, (plane(), plane()))
    yield "complex float64", Case(call("complex"), lambda x, y: x + 1j * y, (real(-1, 1), real(-1, 1)))
    import ml_dtypes

    for dtype in (np.float16, ml_dtypes.bfloat16):
        name, x, y = np.dtype(dtype).name, real(0.5, 2, dtype), real(0.5, 2, dtype)
        for function in ("add", "mul", "div", "max", "lt"):
            yield f"{function} {name}", Case(call(function), FLOAT_BINARY[function], (x, y))
        for function in ("neg", "abs", "exp", "sin", "sqrt", "floor"):
            yield f"{function} {name}", Case(call(function), FLOAT_UNARY[function][0], (x,))
    for old, new in (
        ("float64", "float32"), ("float64", "int64"), ("float64", "int32"), ("float32", "float64"), ("float32", "int8"),
        ("float32", "uint8"), ("int64", "float64"), ("int64", "int32"), ("int32", "float32"), ("int64", "bool"),
        ("float64", "bool"), ("bool", "float64"), ("float64", "complex128"), ("float32", "float16"),
        ("float32", ml_dtypes.bfloat16), ("float16", "float32"), (ml_dtypes.bfloat16, "float32"), ("uint8", "float32"),
    ):  # fmt: skip
        yield (
            f"convert_element_type {np.dtype(old).name} to {np.dtype(new).name}",
            Case(call("convert_element_type", new_dtype=new), lambda x, new=new: x.astype(new), (real(0, 100, old),)),
        )
    yield (
        "bitcast_convert_type",
        Case(call("bitcast_convert_type", new_dtype="int64"), lambda x: x.view("int64").copy(), (real(-1, 1),)),
    )


def reductions() -> Iterator[tuple[str, Case]]:
    """Reductions, cumulative operations, sorting, products."""
    shapes = {"all": (SIZE, None), "rows": ((SIDE, SIDE), 1), "columns": ((SIDE, SIDE), 0)}
    shapes |= {f"short axis {n}": ((SIZE // n, n), 1) for n in (2, 3, 4, 8)}
    shapes["leading axis 3"] = ((3, SIZE // 3), 0)
    for dtype in ("float64", "float32", "int64"):
        for where, (shape, axis) in shapes.items():
            x = (whole(-9, 9, dtype, shape) if dtype == "int64" else real(0.9, 1.1, dtype, shape)) * 1
            axes = (0,) if axis is None else (axis,)
            for name, numpys in REDUCTIONS.items():
                if name in ("sum", "max") or where in ("all", "rows", "short axis 3"):
                    fun = call(f"reduce_{name}", axes=axes)
                    yield f"reduce_{name} {dtype}, {where}", Case(fun, functools.partial(numpys, axis=axis), (x,))
            for name, numpys in (("argmax", np.argmax), ("argmin", np.argmin)):
                if where in ("all", "rows", "columns", "short axis 3"):
                    fun = call(name, axis=axes[0], index_dtype=np.int64)
                    yield f"{name} {dtype}, {where}", Case(fun, functools.partial(numpys, axis=axis), (x,))
    for dtype in ("int8", "float16", "complex128"):
        x = plane() if dtype == "complex128" else real(0, 2, dtype)
        yield f"reduce_sum {dtype}", Case(call("reduce_sum", axes=(0,)), lambda x: x.sum(dtype=x.dtype), (x,))
    bits, flags = whole(0, 2**60), whole(0, 2, bool)
    for name, numpys in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        for x in (bits, flags):
            yield f"reduce_{name} {x.dtype}", Case(call(f"reduce_{name}", axes=(0,)), numpys.reduce, (x,))
    for dtype in ("float64", "float32", "int64", "int8", "float16"):
        for name, numpys in CUMULATIVE.items():
            if (name == "cumlogsumexp" and dtype[:3] == "int") or (name != "cumsum" and dtype in ("int8", "float16")):
                continue
            for where, shape, axis in (
                ("", SIZE, 0), (", rows", (SIDE, SIDE), 1), (", columns", (SIDE, SIDE), 0),
                (", short", (SIZE // 4, 4), 1),
            ):  # fmt: skip
                if where and (name not in ("cumsum", "cummax") or dtype not in ("float64", "int64")):
                    continue
                x = whole(-2, 3, dtype, shape) if dtype[:3] == "int" else real(-1, 1, dtype, shape)
                options = {"dtype": dtype} if name in ("cumsum", "cumprod") else {}
                yield (
                    f"{name} {dtype}{where}",
                    Case(call(name, axis=axis), functools.partial(numpys, axis=axis, **options), (x,)),
                )
    for dtype in ("float64", "float32", "int64", "int32"):
        x = whole(-(10**9), 10**9, dtype) if dtype[:3] == "int" else real(-1, 1, dtype)
        yield f"sort {dtype}", Case(call("sort"), np.sort, (x,))
        yield f"sort {dtype}, rows", Case(call("sort"), np.sort, (x.reshape(SIDE, SIDE),))
        yield (
            f"argsort {dtype}",
            Case(
                lambda lax, x: lax.sort_key_val(x, lax.iota(np.int64, SIZE))[1],
                lambda x: np.argsort(x, kind="stable"),
                (x,),
            ),
        )
        yield (
            f"top_k 10 {dtype}",
            Case(call("top_k", k=10), lambda x: np.argsort(np.partition(x, SIZE - 10)[SIZE - 10 :]), (x,)),
        )
    x = real(-1, 1, "float64", (SIDE, SIDE))
    yield "sort float64, columns", Case(call("sort", dimension=0), lambda x: np.sort(x, 0), (x,))
    yield "top_k 10 float64, rows", Case(call("top_k", k=10), None, (x,))
    for dtype in ("float64", "float32"):
        a, b, v = (real(-1, 1, dtype, s) for s in ((SIDE, SIDE), (SIDE, SIDE), SIDE))
        yield f"dot {dtype}, matrices 1000", Case(call("dot"), np.dot, (a, b))
        yield f"dot {dtype}, matrix and vector", Case(call("dot"), np.dot, (a, v))
        yield f"dot {dtype}, vectors", Case(call("dot"), np.dot, (a.ravel(), b.ravel()))
        batch = real(-1, 1, dtype, (SIZE // 9, 3, 3)), real(-1, 1, dtype, (SIZE // 9, 3, 3))
        yield f"dot_general {dtype}, batch of 3x3", Case(call("batch_matmul"), np.matmul, batch)
        batch = real(-1, 1, dtype, (1000, 32, 32)), real(-1, 1, dtype, (1000, 32, 32))
        yield f"dot_general {dtype}, batch of 32x32", Case(call("batch_matmul"), np.matmul, batch)
        short = real(-1, 1, dtype, (SIZE // 3, 3)), real(-1, 1, dtype, (3, 3))
        yield f"dot {dtype}, many 3-vectors by 3x3", Case(call("dot"), np.dot, short)
        outer = real(-1, 1, dtype, SIDE), real(-1, 1, dtype, SIDE)
        yield (
            f"dot_general {dtype}, outer",
            Case(call("dot_general", dimension_numbers=(((), ()), ((), ()))), np.multiply.outer, outer),
        )


def structure() -> Iterator[tuple[str, Case]]:
    """Shapes, slices, gather and scatter, windows, transforms, random bits."""
    x, y, line = real(-1, 1, shape=(SIDE, SIDE)), real(-1, 1, shape=(SIDE, SIDE)), real(-1, 1)
    at, some = whole(0, SIZE), whole(0, SIZE, shape=(SIZE // 10))
    yield "transpose", Case(call("transpose", permutation=(1, 0)), lambda x: x.T.copy(), (x,))
    cube = real(-1, 1, shape=(100, 100, 100))
    yield (
        "transpose, 3 axes",
        Case(call("transpose", permutation=(2, 0, 1)), lambda x: x.transpose(2, 0, 1).copy(), (cube,)),
    )
    yield "reshape", Case(lambda lax, x: lax.reshape(x, (SIZE,)), lambda x: x.reshape(-1).copy(), (x,))
    yield "rev", Case(call("rev", dimensions=(0,)), lambda x: x[::-1].copy(), (line,))
    yield "rev, columns", Case(call("rev", dimensions=(1,)), lambda x: x[:, ::-1].copy(), (x,))
    yield "broadcast_in_dim", Case(
        call("broadcast_in_dim", shape=(SIDE, SIDE), broadcast_dimensions=(1,)),
        lambda x: np.broadcast_to(x, (SIDE, SIDE)).copy(), (line[:SIDE],)
    )  # fmt: skip
    yield "iota int64", Case(lambda lax: lax.iota(np.int64, SIZE), lambda: np.arange(SIZE), ())
    yield "full", Case(lambda lax: lax.full((SIZE,), 2.0), lambda: np.full(SIZE, 2.0), ())
    yield (
        "concatenate",
        Case(lambda lax, x, y: lax.concatenate([x, y], 0), lambda x, y: np.concatenate([x, y], 0), (x, y)),
    )
    yield (
        "concatenate, columns",
        Case(lambda lax, x, y: lax.concatenate([x, y], 1), lambda x, y: np.concatenate([x, y], 1), (x, y)),
    )
    yield "pad", Case(lambda lax, x: lax.pad(x, 0.0, [(1, 1, 0), (1, 1, 0)]), lambda x: np.pad(x, 1), (x,))
    yield "pad, interior", Case(lambda lax, x: lax.pad(x, 0.0, [(0, 0, 1)]), interior, (line,))
    yield "slice", Case(call("slice", start_indices=(1,), limit_indices=(SIZE,)), lambda x: x[1:].copy(), (line,))
    yield (
        "slice, strided",
        Case(call("slice", start_indices=(0,), limit_indices=(SIZE,), strides=(2,)), lambda x: x[::2].copy(), (line,)),
    )
    yield "split", Case(lambda lax, x: lax.split(x, (SIZE // 2, SIZE // 2)), lambda x: [
        x[: SIZE // 2].copy(), x[SIZE // 2 :].copy()], (line,))  # fmt: skip
    start = np.int64(7)
    yield "dynamic_slice", Case(
        lambda lax, x, i: lax.dynamic_slice(x, (i,), (SIZE - 10,)), lambda x, i: x[i : i + SIZE - 10].copy(),
        (line, start),
    )  # fmt: skip
    yield (
        "dynamic_update_slice",
        Case(
            lambda lax, x, y, i: lax.dynamic_update_slice(x, y, (i,)), update, (line, line[: SIZE // 2].copy(), start)
        ),
    )
    yield "tile", Case(lambda lax, x: lax.tile(x, (1000,)), lambda x: np.tile(x, 1000), (line[:SIDE],))
    for what, numbers, sizes, numpys, index in (
        ("elements", ((), (0,), (0,)), (1,), lambda x, i: x[i[:, 0]], at[:, None]),
        ("rows", ((1,), (0,), (0,)), (1, SIDE), lambda x, i: x[i[:, 0]], whole(0, SIDE, shape=(SIDE, 1))),
    ):
        for mode in ("clip", "fill"):
            yield f"gather {what}, {mode}", Case(
                lambda lax, x, i, n=numbers, sizes=sizes, mode=mode: lax.gather(
                    x, i, lax.GatherDimensionNumbers(*n), sizes, mode=mode
                ),
                numpys, (line if what == "elements" else x, index),
            )  # fmt: skip
    for name, ufunc in (
        ("scatter_add", np.add),
        ("scatter_mul", np.multiply),
        ("scatter_max", np.maximum),
        ("scatter", None),
    ):
        for what, index in (("1e6 elements", at), ("1e5 elements", some)):
            yield f"{name} {what}", Case(
                lambda lax, x, i, u, name=name: getattr(lax, name)(
                    x, i, u, lax.ScatterDimensionNumbers((), (0,), (0,)), mode="clip"
                ),
                functools.partial(scattered, ufunc), (line, index[:, None], line[: len(index)].copy()),
            )  # fmt: skip
        yield f"{name} rows", Case(
            lambda lax, x, i, u, name=name: getattr(lax, name)(
                x, i, u, lax.ScatterDimensionNumbers((1,), (0,), (0,)), mode="clip"
            ),
            functools.partial(scattered, ufunc), (x, whole(0, SIDE, shape=(SIDE, 1)), y),
        )  # fmt: skip
    windows = np.lib.stride_tricks.sliding_window_view
    for name, numpys in (("add", np.sum), ("max", np.max)):
        yield f"reduce_window {name}, 5", Case(
            lambda lax, x, name=name: lax.reduce_window(
                x, -np.inf if name == "max" else 0.0, getattr(lax, name), (5,), (1,), "VALID"
            ),
            lambda x, numpys=numpys: numpys(windows(x, 5), -1), (line,),
        )  # fmt: skip
    for kind, numpys, z in (
        ("fft", fft.fft, plane(shape=(SIDE, SIDE))), ("ifft", fft.ifft, plane(shape=(SIDE, SIDE))),
        ("rfft", fft.rfft, x),
    ):  # fmt: skip
        yield f"{kind}, rows", Case(call("fft", fft_type=kind, fft_lengths=(SIDE,)), numpys, (z,))
    yield "rfft, 1e6", Case(call("fft", fft_type="rfft", fft_lengths=(SIZE,)), fft.rfft, (line,))
    key = np.array([1, 2, 3, 4], np.uint32)
    yield "rng_bit_generator", Case(lambda lax, k: lax.rng_bit_generator(k, (SIZE,), np.uint32)[1], None, (key,))


def largest(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ten largest elements and their places."""
    places = np.argpartition(x, SIZE - 10)[SIZE - 10 :]
    places = places[np.argsort(-x[places])]
    return x[places], places


def interior(x: np.ndarray) -> np.ndarray:
    """Zeros between the elements."""
    out = np.zeros(2 * x.size - 1)
    out[::2] = x
    return out


def update(x: np.ndarray, y: np.ndarray, start: int) -> np.ndarray:
    """A copy with `y` in its place."""
    out = x.copy()
    out[start : start + y.size] = y
    return out


def scattered(ufunc: Any, x: np.ndarray, index: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """A copy with updates at the indices."""
    out = x.copy()
    if ufunc is None:
        out[index[:, 0]] = updates
    else:
        ufunc.at(out, index[:, 0], updates)
    return out


def matrices() -> Iterator[tuple[str, Case]]:
    """Linear algebra: one matrix of 300 x 300, and a thousand of 10 x 10."""
    for what, shape in (("300x300", (300, 300)), ("1000 of 10x10", (1000, 10, 10))):
        a = real(-1, 1, shape=shape)
        t = np.swapaxes(a, -1, -2)
        spd = a @ t + np.eye(shape[-1])
        lower = np.tril(a) + 5 * np.eye(shape[-1])
        b = real(-1, 1, shape=shape)
        for name, fun, numpys, args in (
            ("cholesky", call("linalg.cholesky"), np.linalg.cholesky, (spd,)),
            ("eigh", call("linalg.eigh"), np.linalg.eigh, (spd,)),
            ("eig", call("linalg.eig"), None, (a,)),
            ("svd", call("linalg.svd", full_matrices=False), lambda a: np.linalg.svd(a, full_matrices=False), (a,)),
            ("qr", call("linalg.qr", full_matrices=False), np.linalg.qr, (a,)),
            ("lu", call("linalg.lu"), linalg.lu_factor, (a,)),
            ("triangular_solve", call("linalg.triangular_solve", left_side=True, lower=True),
             functools.partial(linalg.solve_triangular, lower=True), (lower, b)),
            ("hessenberg", call("linalg.hessenberg"), linalg.hessenberg if len(shape) == 2 else None, (a,)),
            ("schur", call("linalg.schur"), linalg.schur if len(shape) == 2 else None, (a,)),
            ("tridiagonal", call("linalg.tridiagonal"), None, (spd,)),
        ):  # fmt: skip
            yield f"{name} {what}", Case(fun, numpys, args)
    d = real(2, 3, shape=100_000)
    yield (
        "tridiagonal_solve 1e5",
        Case(
            lambda lax, dl, d, du, b: lax.linalg.tridiagonal_solve(dl, d, du, b),
            lambda dl, d, du, b: linalg.solve_banded((1, 1), np.stack([np.roll(du, 1), d, np.roll(dl, -1)]), b),
            (np.r_[0.0, d[1:] / 3], d, np.r_[d[1:] / 3, 0.0], d[:, None]),
        ),
    )


def cases() -> dict[str, Case]:
    """All of the table."""
    return {name: case for part in (elementwise, reductions, structure, matrices) for name, case in part()}


def wait(out: Any) -> None:
    """Until all results are there."""
    for x in out if isinstance(out, tuple | list) else [out]:
        x.block_until_ready()


def eager(case: Case, libraries: Mapping[str, Library]) -> dict[str, timeit.Timer]:
    """Timers of the host's rule and of NumPy."""
    ours = libraries["xform"]
    xs = [ours.numpy.asarray(x) for x in case.arrays]
    mine = {"f": case.fun, "lax": ours.api.lax, "xs": xs}
    return {
        "xform": timeit.Timer("f(lax, *xs)", globals=mine),
        "NumPy": timeit.Timer("f(*xs)", globals={"f": case.numpys, "xs": case.arrays}),
    }


def compiled(case: Case, libraries: Mapping[str, Library]) -> dict[str, timeit.Timer]:
    """Timers of both compilers' code."""
    timers = {}
    for name, each in libraries.items():
        f = each.api.jit(functools.partial(case.fun, each.api.lax))
        space = {"f": f, "xs": [each.numpy.asarray(x) for x in case.arrays], "wait": wait}
        timers[name] = timeit.Timer("wait(f(*xs))", globals=space)
    return timers


def rows(quick: bool) -> Iterator[Row]:
    """Each case eagerly; and compiled, where XLA makes another program of it than of JAX's."""
    libraries = {name: library(name) for name in CPUS}
    for name, case in cases().items():
        if case.numpys is not None:
            yield settled(f"primitive, eager: {name}", eager(case, libraries))
        if len({optimized(case, each) for each in libraries.values()}) > 1:
            yield settled(f"primitive, compiled: {name}", compiled(case, libraries))


def optimized(case: Case, each: Library) -> str:
    """The program that XLA compiles, without names and sources."""
    f = each.api.jit(functools.partial(case.fun, each.api.lax))
    text = f.lower(*[each.numpy.asarray(x) for x in case.arrays]).compile().as_text()
    text = re.sub(r", metadata=\{[^}]*\}", "", text)
    text = re.sub(r"(?s)^HloModule.*?\n\n(?=%|ENTRY)", "", text)
    names: dict[str, str] = {}
    text = re.sub(r"%[\w.\-]+", lambda found: names.setdefault(found[0], f"%{len(names)}"), text)
    return re.sub(r"^(%\d+|ENTRY %\d+) \(.*?\) ->", r"\1 ->", text, flags=re.MULTILINE)


def settled(name: str, timers: dict[str, timeit.Timer]) -> Row:
    """What misses its claim is measured again, up to three times: the machine may be busy."""
    seconds = least(timers)
    for _ in range(3):
        if not Row(name, seconds).missed():
            break
        seconds = {library: min(value, seconds[library]) for library, value in least(timers).items()}
    return Row(name, seconds)


def least(timers: dict[str, timeit.Timer]) -> dict[str, float]:
    """The least of a few rounds: what disturbs such short loops only adds to their time."""
    for timer in timers.values():
        timer.timeit(1)
    once = {name: timer.timeit(1) for name, timer in timers.items()}
    numbers = {name: max(1, round(0.002 / seconds)) for name, seconds in once.items()}
    rounds = min(15, int(0.3 / sum(once[name] * numbers[name] for name in timers)))
    for i in range(rounds):
        for name in rotated(list(timers), i):
            once[name] = min(once[name], timers[name].timeit(numbers[name]) / numbers[name])
    return once
