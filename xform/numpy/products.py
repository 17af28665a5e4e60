"""Products that sum over axes: dot, matmul, einsum and their kin; all are one or more `dot_general`.

May import: `numpy.promotion`, `numpy.manipulation`, `numpy.reductions`, `xform.lax`; opt_einsum within `einsum`.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.backends.numpy import quiet_begin, quiet_end
from xform.core.array import Array, ArrayImpl
from xform.core.config import state
from xform.core.errors import api_boundary, filtered_traceback
from xform.lax.dot import dot_general, dot_general_p
from xform.lax.precision import canonical_precision
from xform.lax.shapes import broadcast_in_dim, convert, transpose_p
from xform.numpy import diagonals, host_forms, manipulation, reductions, ufuncs
from xform.numpy.fast import REFUSALS, WIDE, lend, optional, same, short_way
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
    numpy_only,
    promote,
    shown,
)


def _operands(name: str, *args: Any) -> list[Array]:
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


def _no_sharding(name: str, out_sharding: Any) -> None:
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
    token = quiet_begin()
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
        _no_sharding("dot", out_sharding)
        a, b = _operands("dot", a, b)
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


def _with_keywords(name: str, function: Any, x1: Any, x2: Any, out: Any, axes: Any, dtype: Any) -> Array:
    """A product called with keywords of NumPy's: the axes that it works on, and the dtype it computes in."""
    no_out(name, out)
    arrays = [array_of(name, x1, "x1"), array_of(name, x2, "x2")]
    wanted = dtype_argument(name, dtype)
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
    a: Any, b: Any, out: None = None, *, axes: Any = None, dtype: Any = None, precision: Any = None,
    preferred_element_type: Any = None, out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Matrix product over the last two axes, broadcast over the others; vectors are rows left, columns right.

    Parameters
    ----------
    axes : list of pairs, optional
        The axes of the matrices in `a`, in `b`, and in the result, instead of the last ones.
    dtype : dtype, optional
        What `a` and `b` are converted to.
    precision, preferred_element_type : as for `dot`
    """
    plain = out is axes is dtype is None
    if plain and state.fast and precision is preferred_element_type is None:
        result = _host(np.matmul, a, b)
        if result is not None:
            return result
    try:
        if not plain:
            function = functools.partial(matmul, precision=precision, preferred_element_type=preferred_element_type)
            return _with_keywords("matmul", function, a, b, out, axes, dtype)
        _no_sharding("matmul", out_sharding)
        a, b = _operands("matmul", a, b)
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
    return _contraction(labels_a, labels_b, out)(
        a, b, canonical_precision(precision), dtype_argument(name, preferred), None
    )


def _drop_units(x: Array, labels: list[Any]) -> tuple[Array, list[Any]]:
    kept = [d for d, label in enumerate(labels) if label[0] != "unit"]
    return manipulation.reshape(x, tuple(x.shape[d] for d in kept)), [labels[d] for d in kept]


def _contraction(labels_a: Sequence[Any], labels_b: Sequence[Any], out: Sequence[Any]) -> Callable[..., Array]:
    """The product of two arrays whose axes have labels (none twice), summed over common labels that `out` lacks.

    Returns a function of both arrays, the precision, the preferred type and a replacement of `dot_general`.
    """
    batch = [x for x in labels_a if x in labels_b and x in out]
    free_a, free_b = ([x for x in labels if x not in batch and x in out] for labels in (labels_a, labels_b))
    if free_a and free_b and list(out) == [*batch, *free_b, *free_a]:  # so that nothing is to be transposed
        exchanged = _contraction(labels_b, labels_a, out)
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
    a, b = (manipulation.ravel(x) for x in _operands("vdot", a, b))
    return dot(_conj(a), b, precision=precision, preferred_element_type=preferred_element_type)


@api_boundary
def vecdot(
    x1: Any, x2: Any, /, out: None = None, *, axis: int = -1, keepdims: bool = False, axes: Any = None,
    dtype: Any = None, precision: Any = None, preferred_element_type: Any = None,
) -> Array:  # fmt: skip
    """Sum of conj(x1) * x2 along an axis (or along the two that `axes` names), broadcast over the others."""
    if not (out is axes is dtype is None):
        options = {"precision": precision, "preferred_element_type": preferred_element_type}
        function = functools.partial(vecdot, axis=axis, keepdims=keepdims, **options)
        return _with_keywords("vecdot", function, x1, x2, out, axes, dtype)
    x1, x2 = _operands("vecdot", x1, x2)
    if not x1.ndim or not x2.ndim:
        raise ShapeError(f"numpy.vecdot: an operand does not have enough dimensions, got {shown(x1)} and {shown(x2)}")
    x1, x2 = (manipulation.moveaxis(x, canonical_axis("vecdot", axis, x), -1) for x in (x1, x2))
    if x1.shape[-1] != x2.shape[-1]:
        raise _mismatch("vecdot", x1, x2, x1.ndim - 1, x2.ndim - 1)
    x1, x2 = manipulation.expand_dims(_conj(x1), -2), manipulation.expand_dims(x2, -1)
    result = manipulation.squeeze(_matmul("vecdot", x1, x2, precision, preferred_element_type), (-2, -1))
    return manipulation.expand_dims(result, axis) if keepdims else result


@api_boundary
def matvec(x1: Any, x2: Any, /, out: None = None, *, axes: Any = None, dtype: Any = None) -> Array:
    """Products of matrices with vectors, broadcast over the leading axes."""
    if not (out is axes is dtype is None):
        return _with_keywords("matvec", matvec, x1, x2, out, axes, dtype)
    x1, x2 = _operands("matvec", x1, x2)
    if x1.ndim < 2 or not x2.ndim:
        raise ShapeError(f"numpy.matvec: an operand does not have enough dimensions, got {shown(x1)} and {shown(x2)}")
    if x1.shape[-1] != x2.shape[-1]:
        raise _mismatch("matvec", x1, x2, x1.ndim - 1, x2.ndim - 1)
    return manipulation.squeeze(_matmul("matvec", x1, manipulation.expand_dims(x2, -1)), -1)


@api_boundary
def vecmat(x1: Any, x2: Any, /, out: None = None, *, axes: Any = None, dtype: Any = None) -> Array:
    """Products of conjugated vectors with matrices, broadcast over the leading axes."""
    if not (out is axes is dtype is None):
        return _with_keywords("vecmat", vecmat, x1, x2, out, axes, dtype)
    x1, x2 = _operands("vecmat", x1, x2)
    if not x1.ndim or x2.ndim < 2:
        raise ShapeError(f"numpy.vecmat: an operand does not have enough dimensions, got {shown(x1)} and {shown(x2)}")
    if x1.shape[-1] != x2.shape[-2]:
        raise _mismatch("vecmat", x1, x2, x1.ndim - 1, x2.ndim - 2)
    return manipulation.squeeze(_matmul("vecmat", manipulation.expand_dims(_conj(x1), -2), x2), -2)


@short_way(np.inner, WIDE, same(WIDE))
def inner(a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None) -> Array:
    """Sum over the last axes of both."""
    a, b = _operands("inner", a, b)
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
    _no_sharding("tensordot", out_sharding)
    a, b = _operands("tensordot", a, b)
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
    a, b = _operands("kron", a, b)
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
    """Cross product of vectors of 3 components, or of 2: those of a plane; two of these give the third component."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _operands("cross", a, b)
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


# ---- Einstein's convention ---------------------------------------------------------------------------------


def _small_einsum(subscripts: str, *operands: Any) -> Any:
    if sum([np.size(x) for x in operands]) > 200:
        raise ValueError
    return np.einsum(subscripts, *operands)


@short_way(_small_einsum, optional(""), "dDl", optional(same("dDl")))
def einsum(
    subscripts: Any, /, *operands: Any, out: None = None, dtype: Any = None, order: Any = "K", casting: str = "safe",
    optimize: Any = "auto", precision: Any = None, preferred_element_type: Any = None, _dot_general: Any = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Sums of products by Einstein's convention: ``einsum("ij,jk->ik", a, b)``.

    Parameters
    ----------
    subscripts : str, then the operands; or operands and lists of their labels in turn, and the result's labels
    optimize : bool, str or list of pairs
        How opt_einsum (D. Smith and J. Gray, 2018, doi:10.21105/joss.00753) chooses the order of three and more
        operands; False: from left to right.
    dtype : dtype, optional
        What the operands are cast to, as far as `casting` allows.
    precision, preferred_element_type : as for `dot`

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> a = xnp.arange(6.0).reshape(2, 3)
    >>> xnp.einsum("ij,kj->ik", a, a).tolist()
    [[5.0, 14.0], [14.0, 50.0]]
    >>> float(xnp.einsum("ii", xnp.eye(3)))
    3.0
    """
    no_out("einsum", out)
    numpy_only("einsum", order)
    _no_sharding("einsum", out_sharding)
    text, arrays = _einsum_arguments("einsum", subscripts, operands)
    preferred = dtype_argument("einsum", preferred_element_type)
    wanted = dtype_argument("einsum", dtype)
    if wanted is not None:
        arrays = cast_all("einsum", [array_of("einsum", a) for a in arrays], wanted, casting)
    arrays = _operands("einsum", *arrays) if arrays else []
    precision = canonical_precision(precision) if _dot_general is None else precision
    options = (precision, preferred, None if _dot_general is dot_general else _dot_general)
    for positions, step in _steps(text, tuple(a.shape for a in arrays), _frozen(optimize)):
        group = [arrays.pop(p) for p in positions][::-1]
        arrays.append(step(group, options))
    (result,) = arrays
    return result if preferred is None else convert(result, preferred)


def _einsum_arguments(name: str, subscripts: Any, operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    """The string form of the arguments."""
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), list(operands)
    everything = [subscripts, *operands]
    arrays, lists = everything[0 : len(everything) // 2 * 2 : 2], everything[1::2]
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    used = sorted(
        {x for labels in [*lists, *everything[len(everything) // 2 * 2 :]] for x in labels if x is not Ellipsis}
    )
    if len(used) > len(letters):
        raise ValueError(f"numpy.{name}: at most {len(letters)} labels, got {len(used)}")
    text = {x: letters[i] for i, x in enumerate(used)} | {Ellipsis: "..."}
    out = ",".join("".join(text[x] for x in labels) for labels in lists)
    if len(everything) % 2:
        out += "->" + "".join(text[x] for x in everything[-1])
    return out, arrays


@functools.lru_cache(1024)
def _parse(text: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[list[str], str]:
    """The labels of the operands and of the result, with ellipses written out."""
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(shapes):
        raise ValueError(f"numpy.einsum: {text!r} has {len(inputs)} operands, the call {len(shapes)}")
    free = [c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba" if c not in text]
    longest = 0
    for labels, shape in zip(inputs, shapes, strict=True):
        named = len(labels.replace("...", ""))
        if "..." in labels:
            longest = max(longest, len(shape) - named)
        if named > len(shape) or ("..." not in labels and named != len(shape)):
            raise ShapeError(f"numpy.einsum: {labels!r} of {text!r} doesn't fit an operand of shape {shape}")
    dots = "".join(free[:longest])
    full = []
    for labels, shape in zip(inputs, shapes, strict=True):
        n = len(shape) - len(labels.replace("...", ""))
        full.append(labels.replace("...", dots[longest - n :] if n else ""))
    if arrow:
        result = output.replace("...", dots)
    else:
        everything = "".join(x.replace("...", "") for x in inputs)
        result = dots + "".join(sorted(c for c in set(everything) if everything.count(c) == 1))
    known = set("".join(full))
    if not all(c.isalpha() for c in known) or not set(result) <= known or len(set(result)) != len(result):
        raise ValueError(
            f"numpy.einsum: {text!r} is no valid pattern: the result's labels are letters of the operands, each once"
        )
    return full, result


def _frozen(optimize: Any) -> Any:
    if isinstance(optimize, list | tuple):
        return tuple(tuple(p) if not isinstance(p, str) else p for p in optimize)
    return optimize


@functools.lru_cache(1024)
def _path(text: str, shapes: tuple[tuple[int, ...], ...], optimize: Any) -> list[tuple[int, ...]]:
    """Which operands to contract one after the other."""
    n = len(shapes)
    if n <= 2:
        return [tuple(range(n))]
    if optimize is False:
        return [(0, 1), *[(0, n - 2 - i) for i in range(n - 2)]]
    if isinstance(optimize, tuple):
        return [tuple(p) for p in optimize if not isinstance(p, str)]
    import opt_einsum

    found, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize="auto" if optimize is True else optimize)
    return [tuple(p) for p in found]


# A plan is a list of steps; what they do with labels is decided when the plan is made, and kept with it.

Labels = str
Shape = tuple[int, ...]
Step = Callable[[list[Array], Any], Array]


@functools.lru_cache(1024)
def _steps(text: str, shapes: tuple[Shape, ...], optimize: Any) -> list[tuple[list[int], Step]]:
    """Which operands (in descending order of their positions) to replace by one, and how."""
    inputs, output = _parse(text, shapes)
    sizes: dict[str, int] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for label, n in zip(labels, shape, strict=True):
            known = sizes.setdefault(label, n)
            if n != known and 1 not in (n, known):
                raise ShapeError(f"numpy.einsum: label {label!r} of {text!r} has lengths {known} and {n}")
            sizes[label] = known if n == 1 else n
    todo = list(zip(inputs, shapes, strict=True))
    out: list[tuple[list[int], Step]] = []
    for positions in _path(",".join(inputs) + "->" + output, shapes, optimize):
        positions = tuple(sorted(positions))
        while len(positions) > 2:  # a path may name more than two: the last two first
            positions, pair = positions[:-2], positions[-2:]
            positions = (*positions, _add_step(out, todo, pair, output))
        _add_step(out, todo, positions, output)
    return out


def _add_step(out: Any, todo: list[Any], positions: Sequence[int], output: str) -> int:
    """Plan one contraction; returns the position of its result."""
    places = sorted(positions, reverse=True)
    group = [todo.pop(p) for p in places][::-1]
    wanted = {x for labels, _ in todo for x in labels} | set(output)
    last = output if not todo else None
    if len(group) == 1:
        labels, shape, function = _reduce_plan(group[0], wanted, last)
        step: Step = lambda arrays, options: function(arrays[0])  # noqa: E731
    else:
        labels, shape, step = _pair_plan(group[0], group[1], wanted, last)
    todo.append((labels, shape))
    out.append((places, step))
    return len(todo) - 1


def _reduce_plan(x: tuple[Labels, Shape], wanted: set[str], out: str | None) -> tuple[Labels, Shape, Any]:
    """Repeated labels are diagonals; labels that nobody wants are summed."""
    labels, shape = x
    diagonal_axes = []
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            diagonal_axes.append((i, j))
            n = shape[i]
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + label
            shape = (*shape[:i], *shape[i + 1 : j], *shape[j + 1 :], n)
    gone = tuple(d for d, label in enumerate(labels) if label not in wanted)
    shape = tuple(n for d, n in enumerate(shape) if d not in gone)
    labels = "".join(label for label in labels if label in wanted)
    order = None if out is None or out == labels else tuple(labels.index(label) for label in out)
    if order is not None:
        labels, shape = str(out), tuple(shape[d] for d in order)

    def function(a: Array) -> Array:
        for i, j in diagonal_axes:
            a = diagonals.diagonal(a, 0, i, j)
        if gone:
            a = reductions.sum(a, gone, dtype=a.dtype) if a.dtype != bool else reductions.any(a, gone)
        return a if order is None else transpose_p.bind(a, permutation=order)

    return labels, shape, function


def _pair_plan(x: Any, y: Any, wanted: set[str], out: str | None) -> tuple[Labels, Shape, Step]:
    labels_x, shape_x, first = _reduce_plan(x, wanted | set(y[0]), None)
    labels_y, shape_y, second = _reduce_plan(y, wanted | set(x[0]), None)
    sizes = {**dict(zip(labels_x, shape_x))}
    units_x: list[str] = []
    units_y: list[str] = []  # axes of length 1 that are broadcast don't take part
    for label, n in zip(labels_y, shape_y):
        m = sizes.get(label, n)
        if n != m:
            (units_x if m == 1 else units_y).append(label)
        sizes[label] = max(n, m) if 1 in (n, m) and 0 not in (n, m) else min(n, m)
    drop_x = tuple(labels_x.index(label) for label in units_x)
    drop_y = tuple(labels_y.index(label) for label in units_y)
    left = [c for c in labels_x if c not in units_x]
    right = [c for c in labels_y if c not in units_y]
    sum_x = tuple(left.index(c) for c in left if c not in right and c not in wanted)
    sum_y = tuple(right.index(c) for c in right if c not in left and c not in wanted)
    left = [c for d, c in enumerate(left) if d not in sum_x]
    right = [c for d, c in enumerate(right) if d not in sum_y]
    if out is None:
        batch = [c for c in left if c in right and c in wanted]
        out = "".join([*batch, *(c for c in left if c not in right), *(c for c in right if c not in left)])

    def prepared(a: Array, function: Any, units: tuple[int, ...], summed: tuple[int, ...]) -> Array:
        a = function(a)
        if units:
            a = manipulation.squeeze(a, units)
        return reductions.sum(a, summed, dtype=a.dtype) if summed else a

    contraction = _contraction(left, right, list(out))

    def step(arrays: list[Array], options: Any) -> Array:
        a, b = prepared(arrays[0], first, drop_x, sum_x), prepared(arrays[1], second, drop_y, sum_y)
        return contraction(a, b, *options)

    return out, tuple(sizes[c] for c in out), step


@api_boundary
def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "greedy") -> Any:
    """The order in which `einsum` would contract, and a report of its cost, as in NumPy."""
    text, arrays = _einsum_arguments("einsum_path", subscripts, operands)
    return np.einsum_path(
        text, *(np.broadcast_to(np.zeros(()), array_of("einsum_path", a).shape) for a in arrays), optimize=optimize
    )
