"""What a record of an operation is, and helpers to write one.

A module of `tests.ops` has a list ``OPS`` of records; `tests/test_ops.py` runs every test over every record::

    OPS = [
        Op("sin", lax.sin, unary_samples(), np.sin, INEXACT, edges=unary_edges),
        Op("add", lax.add, binary_samples(), np.add, NUMBERS, edges=binary_edges,
           errors=[(lambda: lax.add(np.ones(2), np.ones(3)), TypeError, r"add .*f64\\[2\\], f64\\[3\\]")]),
    ]

May import: NumPy and ml_dtypes, and of the library nothing.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTS = ("int8", "int16", "int32", "int64")
UINTS = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = INTS + UINTS
BOOL = ("bool",)
INEXACT = FLOATS + COMPLEX
REALS = INTEGERS + FLOATS
NUMBERS = INTEGERS + INEXACT
ALL = BOOL + NUMBERS


@dataclasses.dataclass(frozen=True)
class Sample:
    """One call.

    Attributes
    ----------
    args : tuple
        ndarrays, NumPy scalars, Python values, lists of them. The arrays (rank 0 included) are batched, those
        of inexact dtype are differentiated; the rest is static.
    kwargs : dict
        Static keyword arguments.
    """

    args: tuple
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Op:
    """One operation, with what the tests need to know of it.

    Attributes
    ----------
    name : str
        Unique: the name of the primitive, or ``"primitive:variant"``. Functions that are made of several
        primitives may have records of their own, too.
    fun : callable
        Called ``fun(*sample.args, **sample.kwargs)``; returns an array or a pytree of arrays.
    samples : (rng, dtype) -> iterable of Sample
        Several shapes, among them rank 0, empty ones, and axes of length 1. Smooth points, where derivatives
        exist, and well away from overflow. Only the numbers may be random: shapes and static arguments must
        be the same at every call (the samples of several calls are the lanes of a vmap).
    reference : callable or None
        The same function on ndarrays, from NumPy or SciPy. For bfloat16 and float16 it is called with the
        arguments in float32, and its result rounded. None where there is none (then XLA is the reference).
    dtypes : tuple of str
        Everything it accepts.
    edges : (dtype) -> iterable of Sample, optional
        NaN, infinities, signed zeros, extreme and out-of-range values: host, XLA and reference must agree.
    differentiable : bool
        If so, forward and reverse derivatives are compared with central differences, in float64 and
        complex128.
    order : int
        1 or 2: up to which order.
    batched : bool
        Whether `vmap` is tested.
    rtol : float or dict from dtype name to float, optional
        Relative tolerance against the reference; by default 8 eps of the dtype. It is relative to the largest
        element of the result too (factor eps), so a sum may lose what cancels.
    ulps : float
        How far host and XLA may be apart, in units of eps of the element (of its absolute value, if complex).
    errors : sequence of (thunk, exception type, regular expression)
        Wrong calls.
    grad_rtol : float
        Relative tolerance of derivatives against central differences.
    """

    name: str
    fun: Callable[..., Any]
    samples: Callable[[np.random.Generator, np.dtype], Iterable[Sample]]
    reference: Callable[..., Any] | None
    dtypes: Sequence[str]
    edges: Callable[[np.dtype], Iterable[Sample]] | None = None
    differentiable: bool = True
    order: int = 2
    batched: bool = True
    rtol: float | dict[str, float] | None = None
    ulps: float = 4
    errors: Sequence[tuple[Callable[[], Any], type[Exception], str]] = ()
    grad_rtol: float = 1e-5

    @property
    def primitive(self) -> str:
        """The primitive that this record covers."""
        return self.name.partition(":")[0]


def as_dtype(dtype: Any) -> np.dtype:
    """The dtype of a name, those of ml_dtypes included."""
    return np.dtype(getattr(ml_dtypes, dtype, dtype)) if isinstance(dtype, str) else np.dtype(dtype)


def kind(dtype: Any) -> str:
    """'b', 'i', 'u', 'f' or 'c'; bfloat16 is 'f'."""
    dtype = as_dtype(dtype)
    return "f" if dtype == ml_dtypes.bfloat16 else dtype.kind


def eps(dtype: Any) -> float:
    """Distance from 1 to the next number; 0 of integers and booleans."""
    return float(ml_dtypes.finfo(as_dtype(dtype)).eps) if kind(dtype) in "fc" else 0.0


def array(rng: np.random.Generator, dtype: Any, shape: Any = (), low: float = -2, high: float = 2) -> np.ndarray:
    """Random numbers of [low, high], real and imaginary part each; integers include both ends.

    Bounds that an unsigned type can't reach are cut off at 0.
    """
    dtype = as_dtype(dtype)
    match kind(dtype):
        case "b":
            return np.asarray(rng.integers(0, 2, shape).astype(bool))
        case "i":
            return np.asarray(rng.integers(int(np.floor(low)), int(np.ceil(high)), shape, endpoint=True)).astype(dtype)
        case "u":
            return np.asarray(rng.integers(max(int(low), 0), int(np.ceil(high)), shape, endpoint=True)).astype(dtype)
        case "f":
            return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
        case _:
            return np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)


def arrays(rng: np.random.Generator, dtype: Any, *shapes: Any, low: float = -2, high: float = 2) -> tuple:
    """A random array of each shape (see `array`)."""
    return tuple(array(rng, dtype, shape, low, high) for shape in shapes)


SHAPES = ((), (3,), (2, 3), (0, 2), (1, 4, 1))


def unary_samples(
    low: float = -2, high: float = 2, shapes: Sequence[Any] = SHAPES, **kwargs: Any
) -> Callable[[np.random.Generator, np.dtype], list[Sample]]:
    """Samples of a function of one array, for `Op.samples`; `kwargs` are handed on to the function."""
    return lambda rng, dtype: [Sample((array(rng, dtype, s, low, high),), kwargs) for s in shapes]


def binary_samples(
    low: float = -2, high: float = 2, shapes: Sequence[Any] = SHAPES, rank0: bool = True, **kwargs: Any
) -> Callable[[np.random.Generator, np.dtype], list[Sample]]:
    """Samples of a function of two arrays of one shape; with `rank0` also of a matrix and a scalar."""
    pairs = [(s, s) for s in shapes] + ([((), (2, 3)), ((2, 3), ())] if rank0 else [])
    return lambda rng, dtype: [Sample(arrays(rng, dtype, *pair, low=low, high=high), kwargs) for pair in pairs]


def edge_values(dtype: Any) -> np.ndarray:
    """The extreme and exceptional values of a dtype, 1-d; of complex types pairs of a few of them."""
    dtype = as_dtype(dtype)
    match kind(dtype):
        case "b":
            return np.array([False, True])
        case "i" | "u":
            info = np.iinfo(dtype)
            values = [v for v in (info.min, info.min + 1, -7, -1, 0, 1, 2, 7, info.max - 1, info.max) if v >= info.min]
            return np.array(values, dtype)
        case "f":
            info = ml_dtypes.finfo(dtype)
            finite = [0.0, 0.5, 1.0, 1.5, 3.0, 10.0, float(info.max), float(info.tiny)]
            return np.array([*finite, *(-v for v in finite), np.inf, -np.inf, np.nan], dtype)
        case _:
            parts = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
            return np.array([complex(a, b) for a in parts for b in parts], dtype)


def unary_edges(dtype: Any) -> list[Sample]:
    """All edge values, for `Op.edges` of a function of one array."""
    return [Sample((edge_values(dtype),))]


def binary_edges(dtype: Any) -> list[Sample]:
    """All pairs of edge values, for `Op.edges` of a function of two arrays."""
    values = edge_values(dtype)
    return [Sample((np.repeat(values, values.size), np.tile(values, values.size)))]
