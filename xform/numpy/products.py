"""Products that sum over axes: dot, matmul and their kin; all are one `dot_general`.

May import: `numpy.promotion`, `numpy.manipulation`, `numpy.ufuncs`, `xform.lax`.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.backends.numpy import QUIET, quiet_end, set_state
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary, filtered_traceback
from xform.lax.conversion import convert
from xform.lax.dot import dot_general_p
from xform.lax.precision import canonical_precision
from xform.lax.shapes import broadcast_in_dim, transpose_p
from xform.numpy import host_forms, manipulation, ufuncs
from xform.numpy.fast import REFUSALS, WIDE, dtype_of_keywords, lend, same, short_way
from xform.numpy.promotion import (
    ShapeError,
    array_of,
    canonical_axes,
    canonical_axis,
    cast_all,
    dtype_argument,
    is_several,
    known_integer,
    no_out,
    promote,
    shown,
)


def promoted_arrays(name: str, *args: Any) -> list[Array]:
    return [x if isinstance(x, Array) else array_of(name, x) for x in promote(name, *args)]


def _dot(
    name: str, a: Array, b: Array, contract: Any, batch: Any = ((), ()), precision: Any = None, preferred: Any = None
) -> Array:
    preferred = dtype_argument(name, preferred)
    return dot_general_p.bind(
        a,
        b,
        dimension_numbers=(contract, batch),
        precision=canonical_precision(precision),
        preferred_element_type=preferred,
    )


def no_sharding(name: str, out_sharding: Any) -> None:
    if out_sharding is not None:
        raise NotImplementedError(f"numpy.{name}: out_sharding is not supported yet")


def _conj(x: Array) -> Array:
    return ufuncs.conj(x) if x.dtype.kind == "c" else x


def _mismatch(name: str, a: Any, b: Any, i: int, j: int) -> ShapeError:
    return ShapeError(
        f"numpy.{name}: shapes not aligned: {a.shape[i]} (axis {i} of {shown(a)}) != {b.shape[j]} (axis {j} of "
        f"{shown(b)})"
    )


def _host(function: Any, a: Any, b: Any) -> Any:
    """NumPy's product of two concrete arrays of one wide dtype, or None."""
    if not type(a) is type(b) is ArrayImpl:
        a, b = lend(a), lend(b)
        if not type(a) is type(b) is ArrayImpl:
            return None
    x, y = a._host, b._host
    if x is None or y is None or x.dtype is not y.dtype or x.dtype.char not in WIDE or a._weak or b._weak:
        return None
    token = set_state(QUIET)
    try:
        return ArrayImpl(function(x, y))
    except REFUSALS:
        return None
    finally:
        quiet_end(token)


def dot(
    a: Any,
    b: Any,
    out: None = None,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum over the last axis of `a` and the last but one (the only) axis of `b`; the product, if one has rank 0.

    Parameters
    ----------
    precision : lax.Precision, its name, or a pair of them, optional
    preferred_element_type : dtype, optional
        Of the sums.
    """
    if state.fast and precision is preferred_element_type is out is None:
        result = _host(np.dot, a, b)
        if result is not None:
            return result
    try:
        no_out("dot", out)
        no_sharding("dot", out_sharding)
        a, b = promoted_arrays("dot", a, b)
        if not a.ndim or not b.ndim:
            contract: Any = ((), ())
        else:
            i, j = a.ndim - 1, max(b.ndim - 2, 0)
            if a.shape[i] != b.shape[j]:
                raise _mismatch("dot", a, b, i, j)
            contract = ((i,), (j,))
        return _dot("dot", a, b, contract, precision=precision, preferred=preferred_element_type)
    except Exception as error:
        error.__traceback__ = filtered_traceback(error.__traceback__)
        raise


def _with_keywords(name: str, function: Any, x1: Any, x2: Any, out: Any, axes: Any, keywords: dict[str, Any]) -> Array:
    """A product called with keywords of NumPy's: the axes that it works on, and the dtype it computes in."""
    wanted = dtype_of_keywords(name, out, keywords)
    arrays = [array_of(name, x1, "x1"), array_of(name, x2, "x2")]
    if wanted is not None:
        arrays = cast_all(name, arrays, wanted, "same_kind")
    if axes is None:
        return function(*arrays)
    if not isinstance(axes, list) or len(axes) not in (2, 3):
        raise ValueError(f"numpy.{name}: axes must be a list of axes of both arguments and the result, got {axes!r}")
    *places, result = (tuple(p) if isinstance(p, tuple | list) else (p,) for p in [*axes, ()][:3])
    moved = [manipulation.moveaxis(a, p, range(-len(p), 0)) for a, p in zip(arrays, places, strict=True)]
    return manipulation.moveaxis(function(*moved), range(-len(result), 0), result)


def matmul(
    a: Any, b: Any, out: None = None, *, axes: Any = None, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: Any = None, **keywords: Any,
) -> Array:  # fmt: skip
    """Matrix product over the last two axes, broadcast over the others; vectors are rows left, columns right.

    Parameters
    ----------
    axes : list of pairs, optional
        The axes of the matrices in `a`, in `b`, and in the result, instead of the last ones.
    precision, preferred_element_type : as for `dot`
    keywords : those of ufuncs; `dtype` is what `a` and `b` are converted to
    """
    plain = out is axes is None and not keywords
    if plain and state.fast and precision is preferred_element_type is None:
        result = _host(np.matmul, a, b)
        if result is not None:
            return result
    try:
        if not plain:
            function = functools.partial(matmul, precision=precision, preferred_element_type=preferred_element_type)
            return _with_keywords("matmul", function, a, b, out, axes, keywords)
        no_sharding("matmul", out_sharding)
        a, b = promoted_arrays("matmul", a, b)
        return _matmul("matmul", a, b, precision, preferred_element_type)
    except Exception as error:
        error.__traceback__ = filtered_traceback(error.__traceback__)
        raise


def _matmul(name: str, a: Array, b: Array, precision: Any = None, preferred: Any = None) -> Array:
    if not a.ndim or not b.ndim:
        raise ShapeError(f"numpy.{name}: an operand does not have enough dimensions, got {shown(a)} and {shown(b)}")
    rows, columns = a.ndim > 1, b.ndim > 1
    inner_a, inner_b = a.ndim - 1, max(b.ndim - 2, 0)
    if a.shape[inner_a] != b.shape[inner_b]:
        raise _mismatch(name, a, b, inner_a, inner_b)
    if a.ndim <= 2 and b.ndim <= 2:
        return _dot(name, a, b, ((inner_a,), (inner_b,)), precision=precision, preferred=preferred)
    # As an einsum: axes that both have, with one length, are batches; those that only one really has are free.
    batch_a, batch_b = a.shape[:-2], b.shape[:-2]
    n = max(len(batch_a), len(batch_b))
    labels_a, labels_b, out = [], [], []
    for d in range(-n, 0):
        la, lb = (s[d] if -d <= len(s) else None for s in (batch_a, batch_b))
        if la is not None and lb is not None and la != lb and 1 not in (la, lb):
            raise ShapeError(f"numpy.{name}: can't broadcast the leading axes of {shown(a)} and {shown(b)}")
        shared = la == lb
        if la is not None:
            labels_a.append(("batch", d) if shared or la != 1 or lb is None else ("unit", d))
        if lb is not None:
            labels_b.append(("batch", d) if shared or lb != 1 or la is None else ("unit", d))
        out.append(("batch", d))
    labels_a += [("row", 0)] * rows + [("inner", 0)]
    labels_b += [("inner", 0)] + [("column", 0)] * columns
    out += [("row", 0)] * rows + [("column", 0)] * columns
    a, labels_a = _drop_units(a, labels_a)
    b, labels_b = _drop_units(b, labels_b)
    return contraction(labels_a, labels_b, out)(
        a, b, canonical_precision(precision), dtype_argument(name, preferred), None
    )


def _drop_units(x: Array, labels: list[Any]) -> tuple[Array, list[Any]]:
    kept = [d for d, label in enumerate(labels) if label[0] != "unit"]
    return manipulation.reshape(x, tuple(x.shape[d] for d in kept)), [labels[d] for d in kept]


def contraction(labels_a: Sequence[Any], labels_b: Sequence[Any], out: Sequence[Any]) -> Callable[..., Array]:
    """The product of two arrays whose axes have labels (none twice), summed over common labels that `out` lacks.

    Returns a function of both arrays, the precision, the preferred type and a replacement of `dot_general`.
    """
    batch = [x for x in labels_a if x in labels_b and x in out]
    free_a, free_b = ([x for x in labels if x not in batch and x in out] for labels in (labels_a, labels_b))
    if free_a and free_b and list(out) == [*batch, *free_b, *free_a]:  # so that nothing is to be transposed
        exchanged = contraction(labels_b, labels_a, out)
        return lambda a, b, *options: exchanged(b, a, *options)
    summed = [x for x in labels_a if x in labels_b and x not in out]
    contract = tuple(tuple(s.index(x) for x in summed) for s in (labels_a, labels_b))
    batches = tuple(tuple(s.index(x) for x in batch) for s in (labels_a, labels_b))
    found = [*batch, *(x for x in labels_a if x not in labels_b), *(x for x in labels_b if x not in labels_a)]
    order = tuple(found.index(x) for x in out)
    numbers = (contract, batches)
    # Without a sum, an elementwise product is faster, but for an outer product.
    elementwise = not summed and not (labels_a and labels_b and not batch)

    def function(a: Array, b: Array, precision: Any, preferred: Any, general: Any) -> Array:
        if general is not None:
            result = general(a, b, numbers, precision=precision, preferred_element_type=preferred)
        elif elementwise:
            result = _elementwise(a, labels_a, b, labels_b, batch, preferred)
        else:
            result = dot_general_p.bind(
                a, b, dimension_numbers=numbers, precision=precision, preferred_element_type=preferred
            )
        return result if order == tuple(range(len(order))) else transpose_p.bind(result, permutation=order)

    return function


def _elementwise(
    a: Array, labels_a: Sequence[Any], b: Array, labels_b: Sequence[Any], batch: Sequence[Any], preferred: Any
) -> Array:
    free_a = [x for x in labels_a if x not in batch]
    free_b = [x for x in labels_b if x not in batch]
    a = manipulation.transpose(a, [labels_a.index(x) for x in (*batch, *free_a)])
    b = manipulation.transpose(b, [labels_b.index(x) for x in (*batch, *free_b)])
    a = manipulation.reshape(a, (*a.shape, *(1,) * len(free_b)))
    b = manipulation.reshape(b, (*b.shape[: len(batch)], *(1,) * len(free_a), *b.shape[len(batch) :]))
    if preferred is not None:
        a, b = convert(a, preferred), convert(b, preferred)
    return a * b


@short_way(np.vdot, WIDE, same(WIDE))
def vdot(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum of conj(a) * b over all elements."""
    a, b = (manipulation.ravel(x) for x in promoted_arrays("vdot", a, b))
    return dot(_conj(a), b, precision=precision, preferred_element_type=preferred_element_type)


@api_boundary
def vecdot(
    x1: Any, x2: Any, /, out: None = None, *, axis: int = -1, keepdims: bool = False, axes: Any = None,
    precision: Any = None, preferred_element_type: Any = None, **keywords: Any,
) -> Array:  # fmt: skip
    """Sum of conj(x1) * x2 along an axis (or along the two that `axes` names), broadcast over the others."""
    if keywords or not (out is axes is None):
        options = {"precision": precision, "preferred_element_type": preferred_element_type}
        function = functools.partial(vecdot, axis=axis, keepdims=keepdims, **options)
        return _with_keywords("vecdot", function, x1, x2, out, axes, keywords)
    x1, x2 = promoted_arrays("vecdot", x1, x2)
    if not x1.ndim or not x2.ndim:
        raise ShapeError(f"numpy.vecdot: an operand does not have enough dimensions, got {shown(x1)} and {shown(x2)}")
    x1, x2 = (manipulation.moveaxis(x, canonical_axis("vecdot", axis, x), -1) for x in (x1, x2))
    if x1.shape[-1] != x2.shape[-1]:
        raise _mismatch("vecdot", x1, x2, x1.ndim - 1, x2.ndim - 1)
    x1, x2 = manipulation.expand_dims(_conj(x1), -2), manipulation.expand_dims(x2, -1)
    result = manipulation.squeeze(_matmul("vecdot", x1, x2, precision, preferred_element_type), (-2, -1))
    return manipulation.expand_dims(result, axis) if keepdims else result


@api_boundary
def matvec(x1: Any, x2: Any, /, out: None = None, *, axes: Any = None, **keywords: Any) -> Array:
    """Products of matrices with vectors, broadcast over the leading axes."""
    if keywords or not (out is axes is None):
        return _with_keywords("matvec", matvec, x1, x2, out, axes, keywords)
    x1, x2 = promoted_arrays("matvec", x1, x2)
    if x1.ndim < 2 or not x2.ndim:
        raise ShapeError(f"numpy.matvec: an operand does not have enough dimensions, got {shown(x1)} and {shown(x2)}")
    if x1.shape[-1] != x2.shape[-1]:
        raise _mismatch("matvec", x1, x2, x1.ndim - 1, x2.ndim - 1)
    return manipulation.squeeze(_matmul("matvec", x1, manipulation.expand_dims(x2, -1)), -1)


@api_boundary
def vecmat(x1: Any, x2: Any, /, out: None = None, *, axes: Any = None, **keywords: Any) -> Array:
    """Products of conjugated vectors with matrices, broadcast over the leading axes."""
    if keywords or not (out is axes is None):
        return _with_keywords("vecmat", vecmat, x1, x2, out, axes, keywords)
    x1, x2 = promoted_arrays("vecmat", x1, x2)
    if not x1.ndim or x2.ndim < 2:
        raise ShapeError(f"numpy.vecmat: an operand does not have enough dimensions, got {shown(x1)} and {shown(x2)}")
    if x1.shape[-1] != x2.shape[-2]:
        raise _mismatch("vecmat", x1, x2, x1.ndim - 1, x2.ndim - 2)
    return manipulation.squeeze(_matmul("vecmat", manipulation.expand_dims(_conj(x1), -2), x2), -2)


@short_way(np.inner, WIDE, same(WIDE))
def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum over the last axes of both."""
    a, b = promoted_arrays("inner", a, b)
    if not a.ndim or not b.ndim:
        return a * b
    if a.shape[-1] != b.shape[-1]:
        raise _mismatch("inner", a, b, a.ndim - 1, b.ndim - 1)
    return _dot("inner", a, b, ((a.ndim - 1,), (b.ndim - 1,)), precision=precision, preferred=preferred_element_type)


@short_way(host_forms.outer, WIDE, same(WIDE))
def outer(a: Any, b: Any, out: None = None) -> Array:
    """All products of an element of `a` with one of `b`, both in a row."""
    no_out("outer", out)
    a, b = (manipulation.ravel(array_of("outer", x)) for x in (a, b))
    shape = (a.size, b.size)
    return broadcast_in_dim(a, shape, (0,)) * broadcast_in_dim(b, shape, (1,))


@short_way(host_forms.tensordot, WIDE, same(WIDE), plain="axes")
def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sum over so many last axes of `a` and first axes of `b`, or over two lists of axes."""
    no_sharding("tensordot", out_sharding)
    a, b = promoted_arrays("tensordot", a, b)
    if is_several(axes):
        if len(axes) != 2:
            raise ValueError(f"numpy.tensordot: axes must be a number or a pair of (lists of) axes, got {axes!r}")
        first, second = (
            canonical_axes("tensordot", axes[0], a, "axes"),
            canonical_axes("tensordot", axes[1], b, "axes"),
        )
    else:
        n = known_integer("tensordot", "axes", axes)
        if not 0 <= n <= min(a.ndim, b.ndim):
            raise ValueError(f"numpy.tensordot: axes={n} is more than {shown(a)} and {shown(b)} have")
        first, second = tuple(range(a.ndim - n, a.ndim)), tuple(range(n))
    if [a.shape[i] for i in first] != [b.shape[j] for j in second]:
        raise ShapeError(
            f"numpy.tensordot: shape-mismatch for sum, got {shown(a)} over {first} and {shown(b)} over {second}"
        )
    return _dot("tensordot", a, b, (first, second), precision=precision, preferred=preferred_element_type)


@short_way(host_forms.kron, WIDE, same(WIDE))
def kron(a: Any, b: Any) -> Array:
    """Kronecker product: `b` times each element of `a`, in blocks."""
    a, b = promoted_arrays("kron", a, b)
    n = max(a.ndim, b.ndim)
    lengths = [(1,) * (n - x.ndim) + x.shape for x in (a, b)]
    pairs = tuple(zip(*lengths, strict=True))
    spread = tuple(itertools.chain(*pairs))
    a, b = (broadcast_in_dim(x, spread, range(2 * (n - x.ndim) + i, 2 * n, 2)) for i, x in enumerate((a, b)))
    return manipulation.reshape(a * b, tuple(i * j for i, j in pairs))


def _host_cross(a: Any, b: Any) -> Any:
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError
    return np.cross(a, b)


@short_way(_host_cross, WIDE, same(WIDE))
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """Cross product of vectors of 3 components, or of 2: those of a plane; two of these give the third component.

    Differs from NumPy: from 2.5 on it takes no vectors of 2 components.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promoted_arrays("cross", a, b)
    if not a.ndim or not b.ndim:
        raise ShapeError(f"numpy.cross: arguments must have at least one axis, got {shown(a)} and {shown(b)}")
    a = manipulation.moveaxis(a, canonical_axis("cross", axisa, a, "axisa"), -1)
    b = manipulation.moveaxis(b, canonical_axis("cross", axisb, b, "axisb"), -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ShapeError(
            "numpy.cross: incompatible dimensions for cross product (dimension must be 2 or 3), got "
            f"{shown(a)} and {shown(b)}"
        )
    a0, a1, *a2 = manipulation.unstack(a, axis=-1)
    b0, b1, *b2 = manipulation.unstack(b, axis=-1)
    third = a0 * b1 - a1 * b0
    if not a2 and not b2:
        return third
    first = (a1 * b2[0] if b2 else 0) - (a2[0] * b1 if a2 else 0)
    second = (a2[0] * b0 if a2 else 0) - (a0 * b2[0] if b2 else 0)
    from xform.numpy.joining import stack

    out = stack(manipulation.broadcast_arrays(first, second, third), -1)
    return manipulation.moveaxis(out, -1, canonical_axis("cross", axisc, out, "axisc"))
