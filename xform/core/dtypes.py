"""Element types: which there are, how they are named and classified, and what two of them promote to.

Types are ``np.dtype`` objects: NumPy's numeric ones and those of ml_dtypes (bfloat16, narrow floats and
integers). Promotion follows JAX's lattice [1]_, with 64-bit defaults. A *weak* type, that of a Python scalar,
gives way to any array's type of its kind or a higher one, so that ``x + 1`` has the type of ``x``.

May import: NumPy, ml_dtypes, `core.config`.

.. [1] "Type promotion semantics", https://docs.jax.dev/en/latest/type_promotion.html
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from xform.core.config import state

# ---- Which types there are ---------------------------------------------------------------------------------

# Of each kind the ordinary types, and the narrow ones, which never promote to another array's type.
_NAMES = {
    "b": ("bool", ""),
    "u": ("uint8 uint16 uint32 uint64", "uint1 uint2 uint4"),
    "i": ("int8 int16 int32 int64", "int1 int2 int4"),
    "f": (
        "bfloat16 float16 float32 float64",
        "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn "
        "float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu",
    ),
    "c": ("complex64 complex128", ""),
}

by_name: dict[str, np.dtype] = {}
kinds: dict[np.dtype, str] = {}  # 'b', 'u', 'i', 'f' or 'c'; dtype.kind says 'V' for the types of ml_dtypes
narrow: dict[str, list[str]] = {"b": [], "u": [], "i": [], "f": [], "c": []}
for _kind, (_ordinary, _narrow) in _NAMES.items():
    for _name in f"{_ordinary} {_narrow}".split():
        if hasattr(np, _name) or hasattr(ml_dtypes, _name):  # ml_dtypes < 0.6 has no 1-bit integers
            by_name[_name] = np.dtype(getattr(ml_dtypes, _name, _name))
            kinds[by_name[_name]] = _kind
            if _name in _narrow.split():
                narrow[_kind].append(_name)

bfloat16 = ml_dtypes.bfloat16
#: The tangent type of integers and booleans: an array of float0 holds no data.
float0 = np.dtype([("float0", np.void, 0)])

# A dtype of equal meaning (``longlong``, ``int64``) to the one object that stands for it.
_known = {d: d for d in [*kinds, float0]}


class extended(np.generic):
    """Scalar type above all element types that are not numbers, for `issubdtype`."""


class prng_key(extended):
    """Scalar type above the element types of all random key arrays, for `issubdtype`."""


class ExtendedDType:
    """Base class of dtypes whose elements are not numbers, as that of random keys. `type`: a subclass of `extended`."""

    type: type
    name: str
    itemsize: int
    keys_of: Callable[[Any], Any]  # an array of this dtype, of its data: uint32[..., itemsize / 4]


class ScalarType(type):
    """Type of ``jnp.float32`` and the like: names a dtype, and makes an array when called.

    It equals its ``np.dtype`` and NumPy's scalar type, and stands for them wherever a dtype is expected.

    Examples
    --------
    >>> float32 = scalar_types["float32"]
    >>> np.dtype(float32), float32 == np.dtype("float32"), float32 == np.float32
    (dtype('float32'), True, True)
    >>> isinstance(np.float32(1), float32)
    True
    """

    dtype: np.dtype
    make: Callable[[Any, np.dtype], Any]  # xform.numpy sets it: what makes an array of a value and a dtype

    def __new__(cls, name: str, dtype: np.dtype) -> "ScalarType":
        doc = f"The dtype {name} as an object that makes arrays: ``{name}(x)`` is ``asarray(x, '{name}')``."
        return super().__new__(cls, name, (), {"dtype": dtype, "__module__": "xform.numpy", "__doc__": doc})

    def __init__(cls, name: str, dtype: np.dtype):
        super().__init__(name, (), {})

    def __call__(cls, x: Any = 0) -> Any:
        return ScalarType.make(x, cls.dtype)

    def __eq__(cls, other: Any) -> bool:
        return other is cls or other is cls.dtype.type or (isinstance(other, np.dtype) and other == cls.dtype)

    def __hash__(cls) -> int:
        return hash(cls.dtype)  # so that x.dtype is found among {jnp.float32, jnp.bfloat16}

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.dtype.type)


#: ``jnp.float32`` and the like, by name.
scalar_types: dict[str, ScalarType] = {name: ScalarType(name, d) for name, d in by_name.items()}

# ---- Defaults, and the 32-bit mode -------------------------------------------------------------------------

# The default of each kind, with 64-bit types off and on.
_DEFAULTS = {
    "b": (by_name["bool"], by_name["bool"]),
    "u": (by_name["uint32"], by_name["uint64"]),
    "i": (by_name["int32"], by_name["int64"]),
    "f": (by_name["float32"], by_name["float64"]),
    "c": (by_name["complex64"], by_name["complex128"]),
}
_TO_32_BITS = {wide: half for half, wide in _DEFAULTS.values() if wide is not half}
_PYTHON = {bool: "b", int: "i", float: "f", complex: "c"}
_WEAK_TYPES = (int, float, complex)


def default_int() -> np.dtype:
    """int64, or int32 when 64-bit types are off."""
    return _DEFAULTS["i"][state.enable_x64]


def default_float() -> np.dtype:
    """float64, or float32 when 64-bit types are off."""
    return _DEFAULTS["f"][state.enable_x64]


def default_complex() -> np.dtype:
    """complex128, or complex64 when 64-bit types are off."""
    return _DEFAULTS["c"][state.enable_x64]


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that an array of `dtype` really gets: 32 bits instead of 64 when 64-bit types are off.

    Parameters
    ----------
    dtype : dtype-like
    allow_extended_dtype : bool
        Let extended dtypes (random keys) through instead of raising ValueError.

    Examples
    --------
    >>> canonicalize_dtype(">f8"), canonicalize_dtype(int)
    (dtype('float64'), dtype('int64'))
    """
    if isinstance(dtype, ExtendedDType):
        if not allow_extended_dtype:
            raise ValueError(f"canonicalize_dtype: {dtype} is an extended dtype, not one of numbers")
        return dtype
    try:
        found = _normalize(np.dtype(dtype))
    except TypeError:
        raise TypeError(f"canonicalize_dtype: {dtype!r} is not a dtype") from None
    return found if state.enable_x64 else _TO_32_BITS.get(found, found)


def _normalize(dtype: np.dtype) -> np.dtype:
    """`dtype` in native byte order."""
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
    return _known.get(dtype, dtype)


def _supported(dtype: np.dtype, where: str) -> np.dtype:
    """`dtype` as the one object that stands for it; TypeError if it isn't numeric."""
    found = _normalize(dtype)
    if found not in _known:
        raise TypeError(f"{where}: dtype {dtype} is not numeric; arrays hold numbers and booleans only")
    return found


def check_user_dtype(dtype: Any, fun_name: str) -> Any:
    """The canonical dtype for the `dtype` argument that a user gave to `fun_name`.

    Raises TypeError for what is no dtype and for dtypes that are not numeric (strings, objects, dates).
    Warns when 64-bit types are off and one is asked for.
    """
    if isinstance(dtype, ExtendedDType):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        return _DEFAULTS[_PYTHON[dtype]][state.enable_x64]
    if hasattr(dtype, "ndim") and not isinstance(dtype, (type, np.dtype)):
        raise TypeError(f"{fun_name}: dtype is an array; to take over its type write dtype=x.dtype")
    try:
        found = np.dtype(dtype if dtype is not None else "None")  # np.dtype(None) is float64
    except TypeError:
        raise TypeError(f"{fun_name}: {dtype!r} is not a dtype") from None
    found = _supported(found, fun_name)
    if not state.enable_x64 and found in _TO_32_BITS:
        warnings.warn(
            f"{fun_name}: 64-bit types are off, so dtype {found} becomes {_TO_32_BITS[found]}; "
            'xform.config.update("enable_x64", True) turns them on',
            stacklevel=3,
        )
        return _TO_32_BITS[found]
    return found


# ---- The dtype of a value ----------------------------------------------------------------------------------


def dtype(x: Any) -> Any:
    """The dtype of an array, a NumPy or Python scalar, a Python scalar type, or a dtype-like.

    NumPy values and dtype-likes are canonicalized (32 bits when 64-bit types are off); arrays of the library
    keep what they have. Raises TypeError for everything else, and for dtypes that are not numeric.

    Examples
    --------
    >>> dtype(3), dtype(2.5), dtype(np.ones(2, ">f4")), dtype("bfloat16")
    (dtype('int64'), dtype('float64'), dtype('float32'), dtype(bfloat16))
    """
    letter = _PYTHON.get(type(x))
    if letter is not None:
        return _DEFAULTS[letter][state.enable_x64]
    found = getattr(x, "dtype", None)
    if isinstance(found, (np.dtype, ExtendedDType)):
        if not isinstance(x, (np.ndarray, np.generic, type)):
            return found
    elif isinstance(x, (np.dtype, type, str)):
        found = np.dtype(x)
    elif isinstance(x, ExtendedDType):
        return x
    else:
        # Subclasses of Python's numbers, as the members of an IntEnum.
        letter = next((k for base, k in _PYTHON.items() if isinstance(x, base)), None)
        if letter is None:
            raise TypeError(f"expected an array, a scalar or a dtype, got an object of type {type(x).__name__}")
        found = _DEFAULTS[letter][True]
    found = _supported(found, type(x).__name__)  # type: ignore[arg-type]
    return found if state.enable_x64 else _TO_32_BITS.get(found, found)


def is_weakly_typed(x: Any) -> bool:
    """Whether the type of `x` gives way in promotion, as that of Python's int, float and complex does."""
    if isinstance(x, _WEAK_TYPES):
        return not isinstance(x, (bool, np.generic))
    return getattr(x, "weak_type", False)


def scalar_type_of(x: Any) -> type:
    """The Python type of one element of `x`: bool, int, float or complex.

    Examples
    --------
    >>> scalar_type_of(np.ones(3, bfloat16))
    <class 'float'>
    """
    letter = kinds.get(dtype(x))
    if letter is None:
        raise TypeError(f"scalar_type_of: {x!r} is not numeric")
    return {"b": bool, "u": int, "i": int, "f": float, "c": complex}[letter]


@functools.lru_cache(256)
def _integer_range(dtype: np.dtype) -> tuple[int, int]:
    info = iinfo(dtype)
    return int(info.min), int(info.max)


def coerce_scalar(x: bool | int | float | complex, dtype: np.dtype | None = None) -> np.ndarray:
    """A Python scalar as array of rank 0, by default of the type that Python scalars of its kind have.

    Raises OverflowError when an integer does not fit (a float that doesn't becomes infinite, as in IEEE 754),
    and TypeError for a complex number in a type that is not complex.

    Examples
    --------
    >>> coerce_scalar(3)
    array(3)
    >>> coerce_scalar(300, np.dtype("int8"))
    Traceback (most recent call last):
    OverflowError: 300 does not fit into int8, which holds -128 to 127
    """
    if dtype is None:
        dtype = _DEFAULTS[_PYTHON[type(x)]][state.enable_x64]
    letter = kinds[dtype]
    if isinstance(x, int):
        size = x.bit_length()
        shown = str(x) if size < 256 else f"an integer of {size} bits"  # Python prints no huge ones
        if letter in "iu":
            low, high = _integer_range(dtype)
            if not low <= x <= high:
                raise OverflowError(f"{shown} does not fit into {dtype}, which holds {low} to {high}")
        elif letter in "fc":
            try:
                x = float(x)
            except OverflowError:
                raise OverflowError(f"{shown} does not fit into {dtype}") from None
    elif isinstance(x, complex) and letter != "c":
        raise TypeError(f"the complex number {x} can't be of dtype {dtype}")
    if letter not in "fc" or dtype in _TO_32_BITS:
        return np.array(x, dtype)
    with np.errstate(over="ignore"):
        return np.array(x, dtype)


# ---- Classes of types --------------------------------------------------------------------------------------

_ABSTRACT = {"u": np.unsignedinteger, "i": np.signedinteger, "f": np.floating}
# ml_dtypes' scalar types derive from np.generic only; here is what they are.
_PARENT = {d.type: _ABSTRACT[k] for d, k in kinds.items() if d.type.__base__ is np.generic and k != "b"}


def issubdtype(a: Any, b: Any) -> bool:
    """Whether `a` is `b` or below it in NumPy's hierarchy, where ml_dtypes' types have their natural places.

    Examples
    --------
    >>> issubdtype("bfloat16", np.floating), issubdtype("int4", np.integer), issubdtype(np.int8, np.floating)
    (True, True, False)
    """
    if isinstance(b, ExtendedDType):
        return isinstance(a, ExtendedDType) and a == b
    return _is_subtype(_scalar_type(a), _scalar_type(b))


def _scalar_type(x: Any) -> type:
    if isinstance(x, type) and issubclass(x, np.generic):
        return x
    return x.type if isinstance(x, ExtendedDType) else np.dtype(x).type


@functools.lru_cache(1024)
def _is_subtype(a: type, b: type) -> bool:
    return a is b or issubclass(_PARENT.get(a, a), b)


#: The kinds that `isdtype` knows by name.
categories = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether `dtype` is of a kind: a dtype, a category's name, or a tuple of those.

    Categories: bool, signed integer, unsigned integer, integral, real floating, complex floating, numeric.
    Raises ValueError for an unknown one, TypeError for what is neither.

    Examples
    --------
    >>> isdtype("int4", "signed integer"), isdtype(np.float32, ("complex floating", "float64"))
    (True, False)
    """
    found = np.dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in categories:
            if kinds.get(found, "-") in categories[one]:
                return True
            continue
        try:
            if found == np.dtype(one):
                return True
        except TypeError:
            error = ValueError if isinstance(one, str) else TypeError
            raise error(f"isdtype: {one!r} is neither a dtype nor one of {', '.join(categories)}") from None
    return False


def _explicit(x: Any) -> np.dtype:
    """The dtype that a dtype-like or value names, not canonicalized."""
    return _normalize(np.dtype(x)) if isinstance(x, (np.dtype, type, str)) else dtype(x)


def finfo(dtype: Any) -> Any:
    """Machine limits of a floating or complex dtype: bits, eps, max, min, tiny, smallest_subnormal ...

    Examples
    --------
    >>> float(finfo("bfloat16").eps), float(finfo("complex64").max) == float(finfo("float32").max)
    (0.0078125, True)
    """
    found = _explicit(dtype)
    if kinds.get(found, "-") not in "fc":
        raise ValueError(f"finfo: {found} is not a floating or complex dtype")
    return ml_dtypes.finfo(found)


def iinfo(int_type: Any) -> Any:
    """Limits of an integer dtype: bits, min, max.

    Examples
    --------
    >>> iinfo("int4").max, iinfo(np.uint8).bits
    (7, 8)
    """
    found = _explicit(int_type)
    if kinds.get(found, "-") not in "iu":
        raise ValueError(f"iinfo: {found} is not an integer dtype")
    return ml_dtypes.iinfo(found)


def itemsize_bits(dtype: Any) -> int:
    """Bits of one element: 4 for int4, although NumPy keeps it in a byte.

    Examples
    --------
    >>> itemsize_bits("int4"), itemsize_bits("float8_e5m2"), itemsize_bits("complex64"), itemsize_bits(bool)
    (4, 8, 64, 8)
    """
    found = np.dtype(dtype)
    letter = kinds.get(found)
    if letter is None or dtype is None:
        raise ValueError(f"itemsize_bits: {dtype!r} is not a numeric dtype")
    if letter in "iu":
        return int(ml_dtypes.iinfo(found).bits)
    return int(ml_dtypes.finfo(found).bits) if letter == "f" else found.itemsize * 8


def to_inexact_dtype(dtype: Any) -> np.dtype:
    """`dtype` if floating or complex, else the default float: what ``sin`` of an integer has.

    JAX gives float32 for integers of up to 32 bits; here ``x / 2`` has the type of ``x / 2.0``, as in NumPy.
    """
    found = np.dtype(dtype)
    return found if kinds[found] in "fc" else default_float()


def to_numeric_dtype(dtype: Any) -> np.dtype:
    """`dtype`, or the default integer for booleans: what a sum of booleans has."""
    found = np.dtype(dtype)
    return default_int() if kinds[found] == "b" else found


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a dtype, or an array's, can be cast to another under a rule of NumPy.

    The rules are 'no', 'equiv', 'safe', 'same_kind', 'unsafe'. Raises TypeError for Python scalars.

    Examples
    --------
    >>> can_cast("int4", "int8"), can_cast("float32", "int8"), can_cast("float32", "bfloat16", "same_kind")
    (True, False, True)
    """
    if isinstance(from_, _WEAK_TYPES) and not isinstance(from_, np.generic):
        raise TypeError(f"can_cast: a Python scalar such as {from_!r} has no dtype of its own; pass a dtype")
    return np.can_cast(_explicit(from_), _explicit(to), casting)  # type: ignore[arg-type]


# ---- Promotion ---------------------------------------------------------------------------------------------


class TypePromotionError(ValueError):
    """Two dtypes have no common one that either may become implicitly."""


# Each type's next higher ones; a starred name is the weak type of a Python scalar.
_STANDARD = {
    "bool": "int*",
    "int*": "uint8 int8 " + " ".join(narrow["u"] + narrow["i"]),
    "uint8": "uint16 int16",
    "uint16": "uint32 int32",
    "uint32": "uint64 int64",
    "uint64": "float*",
    "int8": "int16",
    "int16": "int32",
    "int32": "int64",
    "int64": "float*",
    "float*": "bfloat16 float16 complex* " + " ".join(narrow["f"]),
    "bfloat16": "float32",
    "float16": "float32",
    "float32": "float64 complex64",
    "float64": "complex128",
    "complex*": "complex64",
    "complex64": "complex128",
}
# Under numpy_dtype_promotion='strict' only Python scalars give way.
_STRICT = {
    "int*": "float* " + " ".join(name for name, d in by_name.items() if kinds[d] in "iu"),
    "float*": "complex* " + " ".join(name for name, d in by_name.items() if kinds[d] == "f"),
    "complex*": "complex64 complex128",
}
_WEAK_NODE = {"u": "int*", "i": "int*", "f": "float*", "c": "complex*"}
_WEAK_KIND = {"int*": "i", "float*": "f", "complex*": "c"}


@functools.cache
def _bounds(node: str, mode: str) -> frozenset[str]:
    """`node` and all types above it."""
    higher = (_STANDARD if mode == "standard" else _STRICT).get(node, "").split()
    return frozenset({node}).union(*(_bounds(n, mode) for n in higher))


def _join(a: str, b: str, mode: str) -> str:
    """The least upper bound of two types."""
    common = _bounds(a, mode) & _bounds(b, mode)
    for node in common:
        if common <= _bounds(node, mode):
            return node
    text = f"dtypes {a} and {b} have no common dtype to which they promote implicitly"
    if mode == "strict":
        text += " under numpy_dtype_promotion='strict'"
    elif names := [n for n in (a, b) if n in narrow["u"] + narrow["i"] + narrow["f"]]:
        text += f", since {' and '.join(names)} never {'do' if len(names) == 2 else 'does'}"
    raise TypePromotionError(text + "; convert one of them, e.g. x.astype('float32')")


class _Promotions(dict):
    """(dtype, weak, dtype, weak) -> (dtype, weak) in one mode; filled as pairs are first met."""

    def __init__(self, mode: str, x64: bool):
        self.mode, self.x64 = mode, x64

    def __missing__(self, key: tuple) -> tuple[Any, bool]:
        self[key] = result = self.compute(*key)
        return result

    def compute(self, a: Any, weak_a: bool, b: Any, weak_b: bool) -> tuple[Any, bool]:
        if a == b:
            return a, weak_a and weak_b
        if a not in kinds or b not in kinds:
            raise TypePromotionError(f"{a} and {b} have no common dtype: only numbers and booleans promote")
        if weak_a and weak_b and self.mode == "standard":  # two weak types: as if strong, with a weak result
            node, weak = _join(a.name, b.name, self.mode), True
        else:
            node, weak = _join(_node(a, weak_a), _node(b, weak_b), self.mode), False
        if node in _WEAK_KIND:
            return _DEFAULTS[_WEAK_KIND[node]][self.x64], True
        found = by_name[node]
        return found if self.x64 else _TO_32_BITS.get(found, found), weak


def _node(dtype: np.dtype, weak: bool) -> str:
    return _WEAK_NODE[kinds[dtype]] if weak else dtype.name


_promotions = {(mode, x64): _Promotions(mode, x64) for mode in ("standard", "strict") for x64 in (False, True)}


def promote(a: Any, weak_a: bool, b: Any, weak_b: bool) -> tuple[Any, bool]:
    """The dtype, and whether it is weak, in which a binary operation on types `a` and `b` computes.

    The hot path of promotion: `a` and `b` are dtypes of arrays, not dtype-likes.
    """
    return _promotions[state.numpy_dtype_promotion, state.enable_x64][a, weak_a, b, weak_b]


def _dtype_and_weak(x: Any) -> tuple[Any, bool]:
    if x is None:
        return default_float(), False
    return dtype(x), is_weakly_typed(x) or any(x is t for t in _WEAK_TYPES)


def lattice_result_type(*args: Any) -> tuple[Any, bool]:
    """Promotion of any number of arrays, scalars and dtypes: (dtype, whether it is weak)."""
    if not args:
        raise ValueError("result_type: expected at least one array, scalar or dtype")
    found, weak = _dtype_and_weak(args[0])
    for arg in args[1:]:
        found, weak = promote(found, weak, *_dtype_and_weak(arg))
    return found, weak


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that an operation on these arrays, scalars or dtypes has.

    Parameters
    ----------
    *args : arrays, Python or NumPy scalars, dtype-likes
    return_weak_type_flag : bool
        Return the pair (dtype, whether it is weak) instead.

    Raises TypePromotionError, a ValueError, where there is no implicit promotion.

    Examples
    --------
    >>> result_type("int64", "float32"), result_type(np.ones(2, "int8"), 3.0), result_type("uint8", "int8")
    (dtype('float32'), dtype('float64'), dtype('int16'))
    """
    found, weak = lattice_result_type(*args)
    if weak:  # the weak type of a kind has one width
        letter = kinds[found]
        found = _DEFAULTS[letter][state.enable_x64]
    return (found, weak) if return_weak_type_flag else found


def promote_types(a: Any, b: Any) -> np.dtype:
    """The dtype in which a binary operation on two dtypes computes; int, float and complex are weak types.

    Examples
    --------
    >>> promote_types("int64", "float32"), promote_types("uint8", "int8"), promote_types("float16", float)
    (dtype('float32'), dtype('int16'), dtype('float16'))
    """
    return promote(*_explicit_and_weak(a), *_explicit_and_weak(b))[0]


def _explicit_and_weak(x: Any) -> tuple[np.dtype, bool]:
    if any(x is t for t in _WEAK_TYPES):
        return dtype(x), True
    return _normalize(np.dtype(x)), False
