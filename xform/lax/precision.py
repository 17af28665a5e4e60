"""How exactly products of matrices are computed: `Precision`, and the algorithms of `dot_general`.

An algorithm rounds the operands to one type and sums their products in another. On CPU that is done to the letter (and
where it says that several products of narrow parts make up for a wide one, the wide product is computed); other
hardware is told the algorithm. Specification: https://openxla.org/stablehlo/spec#dot_general

May import: `xform.core`, `interpreters.lowering`.
"""

import enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from xform.core import dtypes
from xform.core.config import state
from xform.interpreters.lowering import element_type


class Precision(enum.Enum):
    """Precision of matrix products on hardware that offers a choice (GPU, TPU); CPUs always compute in full."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """How to compute a matrix product.

    Attributes
    ----------
    lhs_precision_type, rhs_precision_type : dtypes that the operands are rounded to
    accumulation_type : dtype of the sums
    lhs_component_count, rhs_component_count, num_primitive_operations : int
        Into how many parts of that type the operands are split, and how many of the products of parts are summed.
    allow_imprecise_accumulation : bool

    Examples
    --------
    >>> from xform import lax
    >>> x = np.array([1.0, 2.0**-30])
    >>> algorithm = lax.DotAlgorithm(np.float32, np.float32, np.float32)
    >>> float(lax.dot(x, np.ones(2)) - 1), float(lax.dot(x, np.ones(2), precision=algorithm) - 1)
    (9.313225746154785e-10, 0.0)
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms by name: types of the operands and of the sums, ``X3`` and so on for that many products of parts.

    A value is: type of the operands ("float8": any of them, and no other; None: as they are), type of the sums (None:
    that of the result), number of products, whether sums may be imprecise. There is no TensorFloat-32 on CPUs.
    """

    DEFAULT = (None, None, 1, False)
    ANY_F8_ANY_F8_F32 = ("float8", "float32", 1, False)
    ANY_F8_ANY_F8_F32_FAST_ACCUM = ("float8", "float32", 1, True)
    ANY_F8_ANY_F8_ANY = ("float8", None, 1, False)
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = ("float8", None, 1, True)
    F16_F16_F16 = ("float16", "float16", 1, False)
    F16_F16_F32 = ("float16", "float32", 1, False)
    BF16_BF16_BF16 = ("bfloat16", "bfloat16", 1, False)
    BF16_BF16_F32 = ("bfloat16", "float32", 1, False)
    BF16_BF16_F32_X3 = ("bfloat16", "float32", 3, False)
    BF16_BF16_F32_X6 = ("bfloat16", "float32", 6, False)
    BF16_BF16_F32_X9 = ("bfloat16", "float32", 9, False)
    TF32_TF32_F32 = ("tf32", "float32", 1, False)
    TF32_TF32_F32_X3 = ("tf32", "float32", 3, False)
    F32_F32_F32 = ("float32", "float32", 1, False)
    F64_F64_F64 = ("float64", "float64", 1, False)

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name


ALGORITHMS = DotAlgorithm | DotAlgorithmPreset
PrecisionLike: TypeAlias = (
    str | Precision | DotAlgorithm | DotAlgorithmPreset | tuple[str, str] | tuple[Precision, Precision] | None
)

_NAMES: dict[Any, Any] = {
    "default": Precision.DEFAULT, "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH, "tensorfloat32": Precision.HIGH, "bfloat16_3x": Precision.HIGH,
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST,
    **{p.name: p for p in DotAlgorithmPreset},
}  # fmt: skip


def canonical_precision(precision: Any, name: str = "dot_general") -> Any:
    """The precision argument of lax.`name`: None, a pair of `Precision`, or an algorithm."""
    if precision is None:
        precision = state.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, str):
        precision = _NAMES.get(precision, precision)
    if isinstance(precision, DotAlgorithm):
        types = [np.dtype(dtypes.check_user_dtype(t, name)) for t in precision[:3]]
        return precision._replace(**dict(zip(precision._fields, types, strict=False)))
    if isinstance(precision, DotAlgorithmPreset):
        return None if precision is DotAlgorithmPreset.DEFAULT else precision
    pair = precision if isinstance(precision, tuple | list) else (precision, precision)
    out: list[Any] = [_NAMES.get(p, p) if isinstance(p, str) else p or Precision.DEFAULT for p in pair]
    if len(out) != 2 or not all(isinstance(p, Precision) for p in out):
        raise ValueError(
            f"lax.{name}: precision must be a lax.Precision, its name, a pair of them, a lax.DotAlgorithm or a "
            f"lax.DotAlgorithmPreset, got {precision!r}"
        )
    return out[0], out[1]


def algorithm_types(algorithm: Any, x: np.dtype, y: np.dtype, out: np.dtype) -> tuple[Any, Any, Any]:
    """What the operands are rounded to and what sums are computed in, where an algorithm is carried out by hand."""
    if isinstance(algorithm, DotAlgorithm):
        lhs, rhs, sums = algorithm[:3]
        operations = algorithm.num_primitive_operations
    else:
        name, sum_name, operations, _ = algorithm.value
        sums = out if sum_name is None else dtypes.by_name[sum_name]
        if name == "tf32":
            raise ValueError(f"lax.dot_general: precision={algorithm!r} is not supported on CPU")
        if name == "float8":
            if not all(str(d).startswith("float8") for d in (x, y)):
                raise TypeError(f"lax.dot_general: precision={algorithm!r} takes float8 operands, got {x} and {y}")
            return x, y, sums
        lhs = rhs = dtypes.by_name[name]
    return (sums, sums, sums) if operations > 1 else (lhs, rhs, sums)


def algorithm_attribute(algorithm: Any, x: np.dtype, y: np.dtype, out: np.dtype) -> str:
    """MLIR text of an algorithm, for hardware that carries it out."""
    if isinstance(algorithm, DotAlgorithm):
        lhs, rhs, sums = map(element_type, algorithm[:3])
        parts = algorithm[3:]
    else:
        name, sum_name, operations, imprecise = algorithm.value
        sums = element_type(out if sum_name is None else dtypes.by_name[sum_name])
        types = (x, y) if name == "float8" else (name, name)
        lhs, rhs = ("tf32" if t == "tf32" else element_type(dtypes.by_name[str(t)]) for t in types)
        parts = (1, 1, operations, imprecise)
    return (
        f"algorithm = #stablehlo.dot_algorithm<lhs_precision_type = {lhs}, rhs_precision_type = {rhs}, "
        f"accumulation_type = {sums}, lhs_component_count = {parts[0]}, rhs_component_count = {parts[1]}, "
        f"num_primitive_operations = {parts[2]}, allow_imprecise_accumulation = {str(parts[3]).lower()}>"
    )
