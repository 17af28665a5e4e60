"""Einstein's convention. An einsum is planned once for its pattern and shapes; a step is a `dot_general`, or simpler.

May import: `numpy.products`, `numpy.diagonals`, `numpy.reductions`, `numpy.promotion`, `xform.lax`; opt_einsum within.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.conversion import convert
from xform.lax.dot import dot_general
from xform.lax.precision import canonical_precision
from xform.lax.shapes import transpose_p
from xform.numpy import diagonals, manipulation, reductions
from xform.numpy.fast import optional, same, short_way
from xform.numpy.products import contraction, no_sharding, promoted_arrays
from xform.numpy.promotion import ShapeError, array_of, cast_all, dtype_argument, no_out, numpy_only


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
    no_sharding("einsum", out_sharding)
    text, arrays = _einsum_arguments("einsum", subscripts, operands)
    preferred = dtype_argument("einsum", preferred_element_type)
    wanted = dtype_argument("einsum", dtype)
    if wanted is not None:
        arrays = cast_all("einsum", [array_of("einsum", a) for a in arrays], wanted, casting)
    arrays = promoted_arrays("einsum", *arrays) if arrays else []
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

    contracted = contraction(left, right, list(out))

    def step(arrays: list[Array], options: Any) -> Array:
        a, b = prepared(arrays[0], first, drop_x, sum_x), prepared(arrays[1], second, drop_y, sum_y)
        return contracted(a, b, *options)

    return out, tuple(sizes[c] for c in out), step


@api_boundary
def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "greedy") -> Any:
    """The order in which `einsum` would contract, and a report of its cost, as in NumPy."""
    text, arrays = _einsum_arguments("einsum_path", subscripts, operands)
    return np.einsum_path(
        text, *(np.broadcast_to(np.zeros(()), array_of("einsum_path", a).shape) for a in arrays), optimize=optimize
    )
