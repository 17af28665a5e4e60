"""Small operations on batches of matrices, in which the rules of the decompositions are written.

Matrices lie on the last two axes, all axes before them are batches. These functions bind primitives directly and check
nothing.

May import: the elementwise modules of `lax`, `lax.conversion`, `lax.shapes`, `lax.slicing`, `lax.dot`,
`lax.linalg.lapack`, `lax.linalg.small`.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters import batching
from xform.interpreters.lowering import Context, Value
from xform.lax.arithmetic import add_p, conj_p, div_p, mul_p, real_p
from xform.lax.comparison import eq_p, select_n_p
from xform.lax.conversion import convert
from xform.lax.dot import dot_general_p
from xform.lax.families import constant, is_complex
from xform.lax.linalg import lapack, small
from xform.lax.linalg.unrolled import unrolled
from xform.lax.precision import Precision
from xform.lax.shapes import broadcast_in_dim_p, linear_unary, reshape_p, transpose_p
from xform.lax.slicing import concatenate_p, pad_p, static_slice

DTYPES = tuple(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


def check_matrices(name: str, x: ShapedArray, *, square: bool = False) -> None:
    """TypeError or ValueError unless `x` is a batch of (square) matrices of a dtype that LAPACK has."""
    if x.dtype not in DTYPES:
        raise TypeError(
            f"lax.linalg.{name} takes float32, float64, complex64 or complex128, got {x.str_short()}; "
            "convert with astype (xform.numpy.linalg functions convert integers by themselves)"
        )
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        kind = "square matrices (..., n, n)" if square else "matrices (..., m, n)"
        raise ValueError(f"lax.linalg.{name} takes {kind}, got {x.str_short()}")


def check_subset(name: str, subset: Sequence[int], n: int) -> tuple[int, int]:
    """The two ends of a range among n values; ValueError if they aren't."""
    start, end = map(operator.index, subset)
    if not 0 <= start <= end <= n:
        raise ValueError(f"lax.linalg.{name}: subset_by_index must be a range among {n} values, got {(start, end)}")
    return start, end


def batch_in_front(p: Primitive) -> Callable[..., Any]:
    """The batch rule of primitives that take leading batch axes: the mapped axis becomes the first one."""

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        out = p.bind(*[batching.move_to(x, d, axis.size) for x, d in zip(args, dims, strict=True)], **params)
        return (out, [0] * len(out)) if p.multiple_results else (out, 0)

    return batch


def matmul(x: Any, y: Any) -> Any:
    """Products of matrices, in full precision also where hardware would round the factors."""
    n = x.ndim
    batch = tuple(range(n - 2))
    return dot_general_p.bind(
        x, y, dimension_numbers=(((n - 1,), (n - 2,)), (batch, batch)), precision=(Precision.HIGHEST,) * 2,
        preferred_element_type=None,
    )  # fmt: skip


def sum_of_matmuls(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """The sum of ``x @ y`` over one or more pairs, as one product of matrices side by side."""
    xs, ys = zip(*pairs, strict=True)
    if len(xs) == 1:
        return matmul(*xs, *ys)
    n = xs[0].ndim
    return matmul(concatenate_p.bind(*xs, dimension=n - 1), concatenate_p.bind(*ys, dimension=n - 2))


def transposed(x: Any) -> Any:
    """The transposes of matrices."""
    n = x.ndim
    return transpose_p.bind(x, permutation=(*range(n - 2), n - 1, n - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; of a real array itself."""
    return conj_p.bind(x) if is_complex(x) else x


def adjoint(x: Any) -> Any:
    """The conjugate transposes of matrices."""
    return transposed(conjugate(x))


def squared_modulus(x: Any) -> Any:
    """``|x|^2`` of every element, real."""
    return real_p.bind(mul_p.bind(conj_p.bind(x), x)) if is_complex(x) else mul_p.bind(x, x)


def scaled(x: Any, factor: float) -> Any:
    """`x` times a number."""
    return mul_p.bind(x, constant(x, factor))


def as_dtype_of(v: Any, x: Any) -> Any:
    """`v`, which may be real, in the dtype of the complex `x`."""
    return v if v.dtype == x.dtype else convert(v, x.dtype)


def column_scaled(x: Any, v: Any) -> Any:
    """``x @ diag(v)``."""
    dims = (*range(x.ndim - 2), x.ndim - 1)
    return mul_p.bind(x, as_dtype_of(broadcast_in_dim_p.bind(v, shape=x.shape, broadcast_dimensions=dims), x))


def row_scaled(v: Any, x: Any) -> Any:
    """``diag(v) @ x``."""
    dims = tuple(range(x.ndim - 1))
    return mul_p.bind(as_dtype_of(broadcast_in_dim_p.bind(v, shape=x.shape, broadcast_dimensions=dims), x), x)


def pairs(v: Any) -> tuple[Any, Any]:
    """Matrices whose elements (i, j) are ``v[j]`` and ``v[i]``."""
    batch = tuple(range(v.ndim - 1))
    shape = (*v.shape, v.shape[-1])
    row = broadcast_in_dim_p.bind(v, shape=shape, broadcast_dimensions=(*batch, len(batch) + 1))
    return row, broadcast_in_dim_p.bind(v, shape=shape, broadcast_dimensions=(*batch, len(batch)))


def reciprocal(x: Any) -> Any:
    """``1 / x``, and 0 where `x` is 0."""
    zero, one = constant(x, 0), constant(x, 1)
    undefined = eq_p.bind(x, zero)
    return select_n_p.bind(undefined, div_p.bind(one, select_n_p.bind(undefined, x, one)), zero)


def diagonal(x: Any) -> Any:
    """The main diagonals: every (n + 1)-th element of the rows, laid end to end."""
    *batch, m, n = x.shape
    k = min(m, n)
    if not k:
        return broadcast_in_dim_p.bind(constant(x, 0), shape=(*batch, 0), broadcast_dimensions=())
    flat = reshape_p.bind(x, new_sizes=(*batch, m * n))
    ones = (1,) * len(batch)
    return static_slice(flat, (*(0 for _ in batch), 0), (*batch, (k - 1) * (n + 1) + 1), (*ones, n + 1))


def diagonal_matrix(v: Any) -> Any:
    """Square matrices with these diagonals."""
    *batch, n = v.shape
    config = (*((0, 0, 0) for _ in batch), (0, 0, n))
    return reshape_p.bind(pad_p.bind(v, constant(v, 0), padding_config=config), new_sizes=(*batch, n, n))


def identity(shape: Sequence[int], dtype: np.dtype) -> Any:
    """A batch of (rectangular) identity matrices."""
    one = broadcast_in_dim_p.bind(dtype.type(1), shape=(*shape[:-2], min(shape[-2:])), broadcast_dimensions=())
    return resized(diagonal_matrix(one), *shape[-2:])


def resized(x: Any, m: int, n: int) -> Any:
    """Matrices cut off or filled up with zeros to m rows and n columns."""
    *batch, rows, columns = x.shape
    if (rows, columns) == (m, n):
        return x
    config = (*((0, 0, 0) for _ in batch), (0, m - rows, 0), (0, n - columns, 0))
    return pad_p.bind(x, constant(x, 0), padding_config=config)


def block(x: Any, rows: tuple[int, int], columns: tuple[int, int]) -> Any:
    """The rows and columns of matrices in half-open ranges."""
    batch = x.shape[:-2]
    return static_slice(x, (*(0 for _ in batch), rows[0], columns[0]), (*batch, rows[1], columns[1]))


def on_finite(function: Callable[..., Any], x: np.ndarray) -> list[Any]:
    """Results of a host routine, NaN for the matrices that are not finite: iterations on infinities may not end."""
    finite = np.isfinite(x)
    if finite.all():
        out = function(x)
        return list(out) if isinstance(out, tuple) else [out]
    good = finite.all((-2, -1))
    outs = on_finite(function, np.where(good[..., None, None], x, x.dtype.type(0)))
    return [np.where(good.reshape(good.shape + (1,) * (o.ndim - good.ndim)), o, o.dtype.type(np.nan)) for o in outs]


# triangle: the part of matrices on and below, or on and above, diagonal number k (0 is the main one, k > 0 above it).


@functools.lru_cache(maxsize=256)
def _mask(m: int, n: int, k: int, lower: bool) -> np.ndarray:
    i, j = np.ogrid[:m, :n]
    return j <= i + k if lower else j >= i + k


def _triangle_types(x: ShapedArray, *, k: int, lower: bool) -> ShapedArray:
    if x.ndim < 2:
        raise ValueError(f"lax.linalg.triangle takes matrices (..., m, n), got {x.str_short()}")
    return x


def _triangle_batch(axis: Any, x: Any, dim: int, *, k: int, lower: bool) -> Any:
    return triangle_p.bind(batching.move_to(x, dim, axis.size), k=k, lower=lower), 0


triangle_p: Primitive = linear_unary(
    "triangle",
    _triangle_types,
    lambda x, *, k, lower: np.where(_mask(*x.shape[-2:], k, lower), x, x.dtype.type(0)),
    lambda ct, x, *, k, lower: triangle_p.bind(ct, k=k, lower=lower),
    _triangle_batch,
    lambda ctx, x, *, k, lower: lapack.triangle(ctx, x, lower, k),
)


# hermitian_part: (x + x^H) / 2.


def _hermitian_types(x: ShapedArray) -> ShapedArray:
    check_matrices("hermitian_part", x, square=True)
    return x.strong


def _hermitian_host(x: Any) -> Any:
    other = x.swapaxes(-1, -2)
    out = x + (np.conjugate(other) if is_complex(x) else other)
    out *= x.dtype.type(0.5)
    return out


def _hermitian_lower(ctx: Context, x: Value) -> Value:
    both = ctx.op("add", [x, lapack.adjoint(ctx, x)], x.aval)
    return ctx.op("multiply", [both, ctx.full(x.shape, 0.5, x.dtype)], x.aval)


hermitian_part_p: Primitive = linear_unary(
    "hermitian_part",
    _hermitian_types,
    _hermitian_host,
    lambda ct, x: hermitian_part_p.bind(ct),
    lambda axis, x, dim: (hermitian_part_p.bind(batching.move_to(x, dim, axis.size)), 0),
    _hermitian_lower,
)
# In programs only: XLA sees through it what the next formula reads.
unrolled(hermitian_part_p, small.hermitian_part, on_host=False)
hermitian_part = hermitian_part_p.bind


def tril(x: Any, k: int = 0) -> Any:
    """The lower triangles."""
    return triangle_p.bind(x, k=k, lower=True)


def triu(x: Any, k: int = 0) -> Any:
    """The upper triangles."""
    return triangle_p.bind(x, k=k, lower=False)


def from_triangle(x: Any, lower: bool) -> Any:
    """The Hermitian matrices of which `x` has one triangle."""
    k = -1 if lower else 1
    return hermitian_part(add_p.bind(triangle_p.bind(x, k=0, lower=lower), triangle_p.bind(x, k=k, lower=lower)))
