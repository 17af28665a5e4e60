"""What a record of a function of `xform.numpy` is, and strategies to write one.

A module of `tests.numpy_drawn` has a list ``FUNCTIONS`` of records; `tests/test_numpy_drawn.py` runs every test over
every record, with NumPy as the reference::

    @st.composite
    def reductions(draw):
        x = draw(arrays())
        return Call((x,), {"axis": draw(axes(x.ndim)), "keepdims": draw(st.booleans())})

    FUNCTIONS = [
        Function("sum", reductions(), errors=[
            wrong("sum", AxisError, r"axis 2 is out of bounds.*f64\\[2,3\\]", A, axis=2),
        ]),
    ]

May import: NumPy, ml_dtypes and Hypothesis, and of the library nothing.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

BOOL = ("bool",)
INTEGERS = ("int8", "int32", "int64", "uint8", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
INEXACT = FLOATS + COMPLEX
REALS = INTEGERS + FLOATS
NUMBERS = INTEGERS + INEXACT
ALL = BOOL + NUMBERS


@dataclasses.dataclass(frozen=True)
class Call:
    """Arguments of one call.

    Attributes
    ----------
    args : tuple
        Nested lists and tuples of ndarrays become arrays of the library, and are traced under jit and differentiated;
        everything else stays as it is.
    kwargs : dict
        Likewise, but not traced.
    fixed : tuple of int
        Positions of arguments that aren't traced: repeats, sections, what decides shapes.
    """

    args: tuple
    kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
    fixed: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Wrong:
    """A wrong call: what it is, a function of the module `numpy` or `xform.numpy`, and how it fails.

    NumPy must refuse it too, with the same type of error or a base of it, unless `alone` says why it does not
    ("immutable", "JAX's parameter"). `message` is our regular expression, which names the function and the shapes.
    """

    call: Callable[[Any], Any]
    error: type[Exception]
    message: str
    alone: str = ""


@dataclasses.dataclass(frozen=True)
class Function:
    """One function of `xform.numpy`, with what the tests need to know of it.

    Attributes
    ----------
    name : str
        ``"sum"``, ``"linalg.solve"``; a second record of one function is ``"sum:where"``.
    calls : strategy of Call
        Shapes (rank 0 and zero-size axes included), dtypes, axes, special values where they make sense.
    reference : callable or None
        The same function on ndarrays; by default NumPy's of that name.
    dtype : (Call, dtype) -> dtype, optional
        The dtype of a result, from NumPy's, where it isn't that: see `widened`.
    jit : bool
        Whether it can be traced: False where shapes depend on values.
    gradient : bool
        Whether it is differentiable at what is drawn, in float64: compared with central differences of the reference.
    tolerance : float
        In units of eps of the dtype, relative to the largest element of the result.
    grad_tolerance : float
        Relative to the largest element of the gradient.
    compare : callable, optional
        ``compare(got, want, call)`` instead of the comparison of values, where NumPy's result isn't the only right one
        (eigenvectors, partitions, ...).
    errors : sequence of Wrong
    """

    name: str
    calls: st.SearchStrategy[Call]
    reference: Callable[..., Any] | None = None
    dtype: Callable[[Call, np.dtype], Any] | None = None
    jit: bool = True
    gradient: bool = True
    tolerance: float = 16
    grad_tolerance: float = 1e-6
    compare: Callable[[Any, Any, Call], None] | None = None
    errors: Sequence[Wrong] = ()

    @property
    def function(self) -> str:
        """The name of the function in `xform.numpy`."""
        return self.name.partition(":")[0]


def wrong(name: str, error: type[Exception], message: str, *args: Any, alone: str = "", **kwargs: Any) -> Wrong:
    """A call with these arguments; the error begins with the function's name, and the message occurs in it."""
    start = re.escape(f"numpy.{name}")
    return Wrong(lambda np: resolve(np, name)(*args, **kwargs), error, rf"^{start}\b.*{message}", alone)


def resolve(module: Any, name: str) -> Any:
    """``linalg.solve`` of a module."""
    for part in name.split("."):
        module = getattr(module, part)
    return module


def widened(call: Call, dtype: np.dtype) -> np.dtype:
    """float64 where NumPy makes the smallest float that holds the integers, as in ``np.sin(np.int8(1))``."""
    first = next(np.asarray(a) for a in call.args if isinstance(a, np.ndarray | np.generic))
    return np.dtype("float64") if first.dtype.kind in "biu" and dtype.kind == "f" else dtype


def lattice(*dtypes: Any) -> np.dtype:
    """The dtype to which JAX promotes: integers give way to floats of any width; the rest is NumPy's."""
    kinds = [np.dtype(d) for d in dtypes]
    return np.result_type(*([d for d in kinds if d.kind in "fc"] or kinds))


def on_lattice(function: Callable[..., Any], floats: bool = False) -> Callable[..., Any]:
    """NumPy's function with its array arguments promoted as JAX does; with `floats` integers become float64."""

    def reference(*args: Any, **kwargs: Any) -> Any:
        dtype = lattice(*(a.dtype for a in args if isinstance(a, np.ndarray | np.generic)))
        if floats and dtype.kind in "biu":
            dtype = np.dtype("float64")
        return function(*(a.astype(dtype) if isinstance(a, np.ndarray | np.generic) else a for a in args), **kwargs)

    return reference


# ---- Strategies --------------------------------------------------------------------------------------------

LENGTHS = st.sampled_from((1, 2, 3, 4, 5, 0))


def shapes(least: int = 0, most: int = 3, lengths: st.SearchStrategy[int] = LENGTHS) -> st.SearchStrategy[tuple]:
    """Shapes; by default some have axes of length 0 and 1."""
    return st.lists(lengths, min_size=least, max_size=most).map(tuple)


POSITIVE = st.integers(1, 4)


@st.composite
def arrays(
    draw: Any,
    shape: Any = None,
    dtypes: Sequence[str] = ALL,
    low: float = -3,
    high: float = 3,
    special: Sequence[float] = (),
    distinct: bool = False,
    contiguous: bool = False,
) -> np.ndarray:
    """An ndarray of a drawn shape and dtype, with values from low to high, some of them `special` (NaN, inf, -0.0).

    `shape` is a tuple or a strategy. `distinct`: no two values are equal, nor near each other. Some arrays are strided
    views or transposed, but for `contiguous`.
    """
    shape = draw(shapes()) if shape is None else draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    layout = "C" if contiguous else draw(st.sampled_from("CCFS"))
    full = (*shape[:-1], 2 * shape[-1]) if layout == "S" and shape else shape
    size = int(np.prod(full))
    if dtype.kind == "b":
        x = rng.random(full) < 0.5
    elif dtype.kind in "iu":
        low, high = (max(low, 0) if dtype.kind == "u" else low), high
        x = rng.permutation(size).reshape(full) + int(low) if distinct else rng.integers(int(low), int(high) + 1, full)
    else:

        def real() -> np.ndarray:
            if not distinct:
                return rng.uniform(low, high, full)
            return (rng.permutation(size).reshape(full) + rng.uniform(0.3, 0.7, full)) / max(size, 1) * (
                high - low
            ) + low

        x = real() + (1j * real() if dtype.kind == "c" else 0)
        if special and draw(st.booleans()):
            x = np.where(rng.random(full) < 0.3, rng.choice(np.array(special), full), x)
    x = np.asarray(x).astype(dtype)
    if layout == "S" and shape:
        x = x[..., ::2]
    elif layout == "F" and shape:
        x = np.asfortranarray(x)
    return x


def axis(ndim: int) -> st.SearchStrategy[int]:
    """One axis, from either end."""
    return st.integers(-ndim, ndim - 1)


@st.composite
def axes(draw: Any, ndim: int, none: bool = True) -> int | tuple[int, ...] | None:
    """None, one axis, or several different ones, from either end."""
    if not ndim:
        return draw(st.sampled_from((None, ()) if none else ((),)))
    kind = draw(st.sampled_from(("none", "one", "several") if none else ("one", "several")))
    if kind == "none":
        return None
    if kind == "one":
        return draw(axis(ndim))
    chosen = draw(st.lists(st.integers(0, ndim - 1), max_size=ndim, unique=True))
    return tuple(d - ndim if draw(st.booleans()) else d for d in chosen)


@st.composite
def broadcastable(draw: Any, n: int = 2, least: int = 0, most: int = 3) -> list[tuple[int, ...]]:
    """Shapes that broadcast together."""
    full = draw(shapes(least, most))
    out = []
    for _ in range(n):
        mine = full[draw(st.integers(0, len(full))) :] if draw(st.booleans()) else full
        out.append(tuple(1 if draw(st.integers(0, 4)) == 0 else d for d in mine))
    return out
