"""What the functions of `xform.numpy` do with their arguments before they reach the primitives.

Conversion to arrays, promotion to one dtype, broadcasting, axes, and the errors for what doesn't fit: they name the
function, the argument, its shape and dtype, and what was expected.

May import: `xform.lax`, `xform.core`.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl, get_aval
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import ConcretizationTypeError
from xform.core.trace import Tracer
from xform.lax.conversion import convert
from xform.lax.shapes import broadcast_in_dim_p

AxisError = np.exceptions.AxisError
SCALARS = (bool, int, float, complex)
NUMBERS = (ArrayImpl, Tracer)  # the arrays but those of random keys


class ShapeError(ValueError, TypeError):
    """Shapes that don't fit together: a ValueError as in NumPy, and a TypeError as in JAX."""


def shown(x: Any) -> str:
    """How messages show an array: ``f64[2,3]``; a scalar shows its value."""
    return repr(x) if isinstance(x, SCALARS) else get_aval(x).str_short()


# ---- Arguments as arrays -----------------------------------------------------------------------------------


def operand(name: str, x: Any, arg: str = "a") -> Any:
    """`x` if it can be bound as it is (array, ndarray, scalar); nested sequences and the like become arrays."""
    if isinstance(x, NUMBERS) or type(x) in SCALARS:
        return x
    if isinstance(x, np.ndarray | np.generic):
        if type(x) is not np.ndarray and isinstance(x, np.ma.MaskedArray):
            raise TypeError(f"numpy.{name}: argument {arg} is a masked array; fill it (x.filled) or select what counts")
        if x.dtype not in dtypes.kinds and not (x.dtype.newbyteorder("=") in dtypes.kinds or x.dtype == dtypes.float0):
            raise TypeError(f"numpy.{name}: argument {arg} has dtype {x.dtype}; arrays hold numbers and booleans only")
        return x
    if isinstance(x, SCALARS):  # an IntEnum, say
        return x
    if hasattr(x, "__jax_array__"):
        return operand(name, x.__jax_array__(), arg)
    if (isinstance(x, Sequence) and not isinstance(x, str | bytes)) or hasattr(x, "__array__"):
        from xform.numpy.creation import converted

        return converted(name, x, None)
    raise TypeError(f"numpy.{name}: argument {arg} must be an array or a scalar, got {_brief(x)}")


def _brief(x: Any) -> str:
    text = repr(x)
    return f"{text if len(text) < 60 else text[:57] + '...'} of type {type(x).__name__}"


def array_of(name: str, x: Any, arg: str = "a") -> Array:
    """`x` as an `Array` that shares no memory with what the user may write to."""
    if isinstance(x, NUMBERS):
        return x
    x = operand(name, x, arg)
    if isinstance(x, NUMBERS):
        return x
    if isinstance(x, np.ndarray):
        dtype = dtypes.canonicalize_dtype(x.dtype)
        return ArrayImpl(np.array(x, dtype))
    if isinstance(x, np.generic):
        return ArrayImpl(x.astype(dtypes.canonicalize_dtype(x.dtype)))
    dtype = dtypes.dtype(x)
    weak = not isinstance(x, bool)
    return ArrayImpl(dtypes.coerce_scalar(x, dtype)[()], None, ShapedArray((), dtype, weak))


def arrays_of(name: str, xs: Any, arg: str = "arrays") -> list[Array]:
    """The members of a sequence of arrays, or the rows of an array."""
    if isinstance(xs, np.ndarray | Array):
        if not xs.ndim:
            raise TypeError(f"numpy.{name}: {arg} must be a sequence of arrays, got {shown(xs)}")
        return list(array_of(name, xs, arg))
    if not isinstance(xs, Sequence) or isinstance(xs, str | bytes):
        raise TypeError(f"numpy.{name}: {arg} must be a list or tuple of arrays, got {_brief(xs)}")
    return [array_of(name, x, f"{arg}[{i}]") for i, x in enumerate(xs)]


def concrete(name: str, x: Any, arg: str, remedy: str) -> Any:
    """The host value of `x`, or an error that says what to do instead under a transformation."""
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(
            f"numpy.{name}: argument {arg} must be known when the function is traced, but it is a traced array of "
            f"{x.aval}.{x._origin()} {remedy}"
        )
    return np.asarray(x)


def is_concrete(*xs: Any) -> bool:
    """Whether the values of all are known."""
    return not any(isinstance(x, Tracer) for x in xs)


def is_several(x: Any) -> bool:
    """Whether an argument that may be one value or several is several: a sequence, or an array with axes."""
    return isinstance(x, Sequence) or bool(getattr(x, "ndim", 0))


def no_out(name: str, out: Any) -> None:
    """NotImplementedError if `out` is given."""
    if out is not None:
        raise NotImplementedError(f"numpy.{name}: arrays are immutable, so there is no argument out; use the result")


def numpy_only(name: str, order: Any = None, like: Any = None) -> None:
    """What NumPy's functions accept for its own arrays: taken where it changes nothing, an error where it would."""
    if order not in (None, "K", "C", "A", "F"):
        raise ValueError(f"numpy.{name}: order must be one of 'C', 'F', 'A' or 'K', got {order!r}")
    if order == "F":
        raise NotImplementedError(f"numpy.{name}: arrays have no memory layout of their own, got order={order!r}")
    if like is not None and not isinstance(like, Array | np.ndarray):
        raise TypeError(
            f"numpy.{name}: makes arrays of this library only, got like={_brief(like)}; call a function of that library"
        )


def cast_all(name: str, arrays: Sequence[Any], dtype: np.dtype, casting: str) -> list[Any]:
    """Arrays converted to a dtype that was asked for; TypeError if NumPy's rule `casting` doesn't allow it."""
    for x in arrays:
        if casting != "unsafe" and not dtypes.can_cast(x.dtype, dtype, casting):
            raise TypeError(f"numpy.{name}: can't cast {shown(x)} to {dtype} with casting={casting!r}")
    return [convert(x, dtype) for x in arrays]


def dtype_argument(name: str, dtype: Any) -> np.dtype | None:
    """The canonical dtype that a user asked for."""
    return None if dtype is None else dtypes.check_user_dtype(dtype, f"numpy.{name}")


# ---- Promotion ---------------------------------------------------------------------------------------------


def to_dtype(name: str, x: Any, dtype: Any, weak: bool = False) -> Any:
    """An operand converted to `dtype`; Python scalars become NumPy scalars, which carry no memory of their weakness."""
    if isinstance(x, SCALARS) and not isinstance(x, np.generic):
        if weak:
            return x if dtypes.dtype(x) == dtype else _weak_scalar(name, x, dtype)
        try:
            return dtypes.coerce_scalar(x, dtype)[()]
        except OverflowError as error:
            raise OverflowError(f"numpy.{name}: {error}") from None
    aval = get_aval(x)
    if aval.dtype == dtype and (aval.weak_type == weak or not isinstance(x, Array)):
        return x
    return convert(x, dtype, weak)


def _weak_scalar(name: str, x: Any, dtype: Any) -> ArrayImpl:
    return ArrayImpl(to_dtype(name, x, dtype), None, ShapedArray((), dtype, True))


def strong(x: Array) -> Array:
    """`x` without weak type."""
    return convert(x, x.dtype) if x.weak_type else x


def _result_type(name: str, args: Sequence[Any]) -> tuple[Any, bool]:
    try:
        return dtypes.lattice_result_type(*args)
    except dtypes.TypePromotionError as error:
        raise dtypes.TypePromotionError(f"numpy.{name}: {error}") from None


def _of_one_dtype(args: Sequence[Any]) -> bool:
    """Whether all are arrays of one dtype, as they mostly are."""
    first = args[0]
    if not isinstance(first, Array):
        return False
    aval = first.aval
    for x in args[1:]:
        if not isinstance(x, Array) or x.aval.dtype is not aval.dtype or x.aval.weak_type is not aval.weak_type:
            return False
    return True


def promote(name: str, *args: Any) -> list[Any]:
    """Operands converted to their common dtype; the result is weak if all are."""
    if _of_one_dtype(args):
        return list(args)
    args = [operand(name, x, f"{i + 1}") for i, x in enumerate(args)]  # type: ignore[assignment]
    dtype, weak = _result_type(name, args)
    return [to_dtype(name, x, dtype, weak) for x in args]


def promote_inexact(name: str, *args: Any) -> list[Any]:
    """Operands converted to their common dtype, or to the default float if that is an integer or boolean."""
    if _of_one_dtype(args) and args[0].aval.inexact:
        return list(args)
    args = [operand(name, x, f"{i + 1}") for i, x in enumerate(args)]  # type: ignore[assignment]
    dtype, weak = _result_type(name, args)
    return [to_dtype(name, x, dtypes.to_inexact_dtype(dtype), weak) for x in args]


# ---- Broadcasting ------------------------------------------------------------------------------------------


def broadcast_shapes_of(name: str, shapes: Sequence[tuple[int, ...]], args: Sequence[Any] = ()) -> tuple[int, ...]:
    """The shape to which all broadcast, or ShapeError."""
    ndim = max(map(len, shapes))
    out = []
    for d in range(-ndim, 0):
        lengths = {s[d] for s in shapes if len(s) >= -d}
        if len(lengths) > 1:
            lengths.discard(1)
        if len(lengths) > 1:
            what = ", ".join(shown(a) for a in args) if args else ", ".join(map(str, shapes))
            lengths_seen = " and ".join(map(str, sorted(lengths)))
            raise ShapeError(
                f"numpy.{name}: operands could not be broadcast together with shapes {what} (axis {d}: lengths "
                f"{lengths_seen})"
            )
        out.append(lengths.pop())
    if state.numpy_rank_promotion != "allow":
        _check_ranks(name, shapes)
    return tuple(out)


def _check_ranks(name: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """The numpy_rank_promotion option: ranks may differ for scalars only."""
    if len({len(s) for s in shapes if s}) > 1:
        text = (
            f"numpy.{name}: operands of shapes {', '.join(map(str, shapes))} have different ranks, and "
            f"numpy_rank_promotion is {state.numpy_rank_promotion!r}; reshape one of them"
        )
        if state.numpy_rank_promotion == "raise":
            raise ShapeError(text)
        import warnings

        warnings.warn(text, stacklevel=5)


def expand_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Broadcast an operand to `shape`, which is known to be possible."""
    old = get_aval(x).shape
    if old == shape:
        return x
    dims = tuple(range(len(shape) - len(old), len(shape)))
    return broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=dims)


def fit(name: str, args: Sequence[Any]) -> list[Any]:
    """Operands for an elementwise primitive: of one shape, or of rank 0."""
    shapes = [get_aval(x).shape for x in args]
    ranked = {s for s in shapes if s}
    if len(ranked) < 2:
        return list(args)
    shape = broadcast_shapes_of(name, shapes, args)
    return [expand_to(x, shape) if s else x for x, s in zip(args, shapes, strict=True)]


def operands(name: str, *args: Any) -> list[Any]:
    """Promoted to one dtype and brought to one shape (or rank 0)."""
    return fit(name, promote(name, *args))


def inexact_operands(name: str, *args: Any) -> list[Any]:
    """Promoted to one floating or complex dtype and brought to one shape (or rank 0)."""
    return fit(name, promote_inexact(name, *args))


def pair(name: str, x: Any, y: Any) -> Sequence[Any]:
    """`operands` for two, with short ways for arrays of one dtype and for a Python number beside an array."""
    if isinstance(x, Array):
        a = x.aval
        if isinstance(y, Array):
            b = y.aval
            if a.dtype is b.dtype:
                return (x, y) if a.shape == b.shape or not a.ndim or not b.ndim else fit(name, (x, y))
        elif (number := _number_beside(a, y)) is not None:
            return x, number
    elif isinstance(y, Array) and (number := _number_beside(y.aval, x)) is not None:
        return number, y
    return operands(name, x, y)


def _number_beside(a: ShapedArray, y: Any) -> Any:
    """A Python number that gives way to the array beside it, in the array's dtype; None if it may not fit.

    Beside a weak type it stays a Python number, for a result that is weak as well.
    """
    number, kind = type(y), a.dtype.kind
    if number is float:
        fits = kind == "f"
    else:
        fits = number is int and ((kind in "if" and -128 < y < 128) or (kind == "u" and 0 <= y < 128))
    if not fits:
        return None
    if not a.weak_type:
        return a.dtype.type(y)
    return y if number is float or kind == "i" else float(y)


# ---- Axes --------------------------------------------------------------------------------------------------


def canonical_axis(name: str, axis: Any, of: Any, arg: str = "axis") -> int:
    """An axis as an int from 0 to ndim - 1; `of` is the array that has it, or ndim."""
    ndim = of if type(of) is int else of.ndim
    try:
        index = operator.index(axis)
    except ConcretizationTypeError:
        raise
    except TypeError:
        raise TypeError(f"numpy.{name}: {arg} must be an integer, got {axis!r}") from None
    if not -ndim <= index < ndim:
        what = "axis" if arg == "axis" else f"{arg}: axis"
        where = "" if of is ndim else f", {shown(of)}"
        raise AxisError(f"numpy.{name}: {what} {index} is out of bounds for array of dimension {ndim}{where}")
    return index + ndim if index < 0 else index


def canonical_axes(name: str, axis: Any, of: Any, arg: str = "axis") -> tuple[int, ...]:
    """Axes as a tuple of distinct ints in the order given; None: all."""
    ndim = of if type(of) is int else of.ndim
    if axis is None:
        return tuple(range(ndim))
    if not is_several(axis):
        return (canonical_axis(name, axis, of, arg),)
    out = tuple(canonical_axis(name, a, of, arg) for a in axis)
    if len(set(out)) != len(out):
        where = "" if of is ndim else f" for {shown(of)}"
        raise ValueError(f"numpy.{name}: repeated axis in {arg}={tuple(axis)}{where}")
    return out


def axis_or_none(axis: Any, of: Any) -> Any:
    """The axis, but None for 0 and -1 of an array of rank 0: many functions of NumPy's take that for one element."""
    return None if not of.ndim and isinstance(axis, int | np.integer) and axis in (0, -1) else axis


def known_integer(name: str, arg: str, value: Any) -> int:
    """An argument that must be an integer, and known when a function is traced."""
    try:
        return operator.index(value)
    except TypeError as error:
        raise type(error)(f"numpy.{name}: {arg} must be a known integer, got {value!r}. {error}") from None


def shape_argument(name: str, shape: Any, arg: str = "shape") -> tuple[int, ...]:
    """A shape as a tuple of ints that are not negative; an int means one axis."""
    try:
        out = tuple(map(operator.index, shape if is_several(shape) else (shape,)))
    except ConcretizationTypeError as error:
        raise type(error)(f"numpy.{name}: {arg} must be known when the function is traced. {error}") from None
    except TypeError:
        raise TypeError(f"numpy.{name}: {arg} must be an integer or a sequence of them, got {shape!r}") from None
    if any(d < 0 for d in out):
        raise ValueError(f"numpy.{name}: negative dimensions are not allowed, got {arg}={out}")
    return out
