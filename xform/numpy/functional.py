"""Functions of functions: `vectorize`, `apply_along_axis`, `apply_over_axes`, and ufuncs made of Python functions.

All of them map with `vmap`, so the functions see scalars or vectors and may be differentiated and compiled.

May import: the other modules of `xform.numpy`; `xform.api` within functions.
"""

import functools
import math
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.control_flow import scan
from xform.lax.shapes import squeeze_p
from xform.lax.slicing import slice_in_dim
from xform.numpy import elementwise, manipulation, products
from xform.numpy import reductions as rd
from xform.numpy.elementwise import where as choose
from xform.numpy.fast import with_keywords
from xform.numpy.joining import concatenate
from xform.numpy.promotion import (
    ShapeError,
    array_of,
    axis_or_none,
    broadcast_shapes_of,
    canonical_axes,
    canonical_axis,
    dtype_argument,
    no_out,
    shown,
)
from xform.numpy.ranges import arange
from xform.numpy.reductions import mask_of, sum_dtype

_CORE = r"\((?:\w+(?:,\w+)*)?\)"
_SIGNATURE = re.compile(rf"^{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*$")


def _parse(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The core dimensions of arguments and results, as in ``(n,m),(m)->(n)``."""
    text = signature.replace(" ", "")
    if not _SIGNATURE.match(text):
        raise ValueError(f"numpy.vectorize: {signature!r} is no signature; they look like '(n,m),(m)->(n)'")
    found = [
        [tuple(x for x in core[1:-1].split(",") if x) for core in re.findall(_CORE, side)] for side in text.split("->")
    ]
    return found[0], found[1]


def _argument(x: Any, name: str) -> Any:
    return x if isinstance(x, Array) else array_of("vectorize", x, name)  # random keys are no numbers


def vectorize(
    pyfunc: Callable[..., Any] | None = None, otypes: Any = None, doc: str | None = None,
    excluded: Collection[int | str] | None = None, cache: bool = False, signature: str | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Make a function of scalars, or of arrays of a few axes, work on arrays of any rank, with broadcasting.

    Differs from NumPy: `pyfunc` is called once, with traced arguments, which stand for all elements.

    Parameters
    ----------
    pyfunc : callable, optional
        Without it, the result is a decorator.
    otypes : string of type codes, or list of dtypes, optional
        To which results are converted; by default they keep theirs.
    doc : str, optional
        The docstring, by default that of `pyfunc`.
    excluded : positions and names of arguments that are handed on as they are
    cache : accepted as in NumPy, where it saves a call; here the function is called once anyway
    signature : str, optional
        The axes that the function itself sees and returns, for instance ``'(n,m),(m)->(n)'`` for a matrix times a
        vector; by default scalars.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> norms = xnp.vectorize(lambda v: xnp.sqrt(v @ v), signature="(n)->()")
    >>> norms(xnp.array([[3.0, 4.0], [6.0, 8.0]])).tolist()
    [5.0, 10.0]
    """
    if pyfunc is None:
        options = {"otypes": otypes, "doc": doc, "excluded": excluded, "cache": cache, "signature": signature}
        return functools.partial(vectorize, **options)
    excluded = frozenset() if excluded is None else excluded
    types = None if otypes is None else [dtype_argument("vectorize", t) for t in otypes]
    if any(not isinstance(e, int | str) for e in excluded):
        raise TypeError(f"numpy.vectorize: excluded must be positions and names of arguments, got {excluded!r}")
    if any(isinstance(e, int) and e < 0 for e in excluded):
        raise ValueError(f"numpy.vectorize: excluded has negative positions: {excluded!r}")
    parsed = None if signature is None else _parse(signature)

    @functools.wraps(pyfunc)
    @api_boundary
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        fixed = {i: a for i, a in enumerate(args) if i in excluded or a is None}
        mapped = [i for i in range(len(args)) if i not in fixed]
        named = [k for k in kwargs if k not in excluded]

        def call(*xs: Any) -> Any:
            positional = dict(zip(mapped, xs, strict=False))
            rest = dict(zip(named, xs[len(mapped) :], strict=True))
            all_args = [fixed[i] if i in fixed else positional[i] for i in range(len(args))]
            return pyfunc(*all_args, **{**kwargs, **rest})

        values = [_argument(args[i], f"{i + 1}") for i in mapped]
        values += [_argument(kwargs[k], k) for k in named]
        out = _broadcast_map(call, values, parsed)
        return out if types is None else _of_types(out, types)

    vectorized.__doc__ = pyfunc.__doc__ if doc is None else doc
    return vectorized


def _of_types(out: Any, types: Sequence[Any]) -> Any:
    outs = out if isinstance(out, tuple) else (out,)
    if len(outs) != len(types):
        raise ValueError(f"numpy.vectorize: otypes names {len(types)} results, the function returned {len(outs)}")
    outs = tuple(x.astype(t) for x, t in zip(outs, types, strict=True))
    return outs if isinstance(out, tuple) else outs[0]


def _broadcast_map(function: Callable[..., Any], args: Sequence[Array], parsed: Any) -> Any:
    """Map a function over all leading axes of its arguments, broadcast; the core axes are at the end."""
    from xform.api.mapping import vmap

    cores = [()] * len(args) if parsed is None else parsed[0]
    if len(cores) != len(args):
        raise TypeError(f"numpy.vectorize: the signature has {len(cores)} arguments, the call {len(args)}")
    sizes: dict[str, int] = {}
    loops = []
    for x, core in zip(args, cores, strict=True):
        if x.ndim < len(core):
            raise ShapeError(f"numpy.vectorize: an argument needs the axes {core}, got {shown(x)}")
        for label, n in zip(core, x.shape[x.ndim - len(core) :], strict=True):
            if sizes.setdefault(label, n) != n or (label.isdigit() and int(label) != n):
                raise ShapeError(f"numpy.vectorize: axis {label!r} has lengths {sizes[label]} and {n}")
        loops.append(x.shape[: x.ndim - len(core)])
    shape = broadcast_shapes_of("vectorize", loops, args) if loops else ()

    def checked(*xs: Any) -> Any:
        out = function(*xs)
        if parsed is not None:
            _check_results(out, parsed[1], sizes)
        return out

    mapped: Callable[..., Any] = checked
    arrays = list(args)
    ndims = [len(s) for s in loops]
    # From the innermost loop axis outwards; an axis of length 1 that is broadcast doesn't take part.
    axes_in = []
    for d in range(len(shape)):
        axes = []
        for i in range(len(arrays)):
            position = d - (len(shape) - ndims[i])
            axes.append(0 if position >= 0 and loops[i][position] == shape[d] else None)
        axes_in.append(axes)
    for i, loop in enumerate(loops):
        unit = [p for p, n in enumerate(loop) if axes_in[len(shape) - len(loop) + p][i] is None]
        arrays[i] = squeeze_p.bind(arrays[i], dimensions=tuple(unit)) if unit else arrays[i]
    for d in reversed(range(len(shape))):
        mapped = vmap(mapped, in_axes=tuple(axes_in[d]), axis_size=shape[d])
    return mapped(*arrays)


def _check_results(out: Any, cores: Sequence[tuple[str, ...]], sizes: dict[str, int]) -> None:
    outs = list(out) if isinstance(out, tuple | list) else [out]
    if len(outs) != len(cores):
        raise TypeError(f"numpy.vectorize: the signature has {len(cores)} results, the function returned {len(outs)}")
    known = dict(sizes)
    for x, core in zip(outs, cores, strict=True):
        shape = manipulation.shape(x)
        if len(shape) != len(core) or any(known.setdefault(c, n) != n for c, n in zip(core, shape, strict=True)):
            expected = ", ".join(f"{c}={known[c]}" if c in known else c for c in core)
            raise ShapeError(f"numpy.vectorize: a result must have the axes ({expected}), got shape {shape}")


@api_boundary
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply a function of vectors to all vectors along an axis; the axes of its result take that one's place.

    Differs from NumPy: `func1d` is called once, with a traced vector, which stands for all.
    """
    from xform.api.mapping import vmap

    arr = array_of("apply_along_axis", arr, "arr")
    axis = canonical_axis("apply_along_axis", axis, arr)

    def mapped(v: Any) -> Any:
        return func1d(v, *args, **kwargs)

    for _ in range(arr.ndim - 1 - axis):
        mapped = vmap(mapped, in_axes=-1, out_axes=-1)
    for _ in range(axis):
        mapped = vmap(mapped, in_axes=0, out_axes=0)
    return mapped(arr)


@api_boundary
def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Array:
    """Apply ``func(a, axis)``, such as `sum`, for one axis after the other, keeping their number."""
    a = array_of("apply_over_axes", a)
    for axis in canonical_axes("apply_over_axes", axes, a, "axes"):
        out = func(a, axis)
        if out.ndim == a.ndim - 1:
            out = manipulation.expand_dims(out, axis)
        if out.ndim != a.ndim:
            raise ValueError(
                "numpy.apply_over_axes: function is not returning an array of the correct shape: it must keep the "
                f"number of axes, or remove one, got {shown(out)} for {shown(a)}"
            )
        a = out
    return a


# ---- Ufuncs ------------------------------------------------------------------------------------------------


class _UfuncType(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) or (hasattr(x, "nin") and hasattr(x, "identity"))


class ufunc(metaclass=_UfuncType):
    """An elementwise function with methods that use it repeatedly: `reduce`, `accumulate`, `outer`, `at`, `reduceat`.

    Made by `frompyfunc`. The functions of `xform.numpy` that are ufuncs in NumPy have these methods, too.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> smooth_max = xnp.frompyfunc(xnp.logaddexp, 2, 1, identity=-xnp.inf)
    >>> float(smooth_max.reduce(xnp.zeros(4))) == float(xnp.log(4.0))
    True
    """

    def __init__(
        self, func: Callable[..., Any], /, nin: int, nout: int, *, name: str | None = None, nargs: int | None = None,
        identity: Any = None, call: Any = None, reduce: Any = None, accumulate: Any = None, at: Any = None,
        reduceat: Any = None,
    ):  # fmt: skip
        if not callable(func):
            raise TypeError(f"numpy.frompyfunc: func must be callable, got {func!r}")
        self._call = call or vectorize(func)
        self.nin, self.nout, self.nargs, self.identity = nin, nout, nargs or nin + nout, identity
        self.__name__: str = name if name is not None else getattr(func, "__name__", "ufunc")
        self._methods = {"reduce": reduce, "accumulate": accumulate, "at": at, "reduceat": reduceat}

    def __call__(self, *args: Any, out: None = None, **keywords: Any) -> Any:
        """Apply to arrays, with broadcasting."""
        if keywords or out is not None:
            return with_keywords(self, self.__name__, out, keywords, *args)
        if len(args) != self.nin:
            raise TypeError(f"numpy.{self.__name__} takes {self.nin} arguments, got {len(args)}")
        return self._call(*args)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def reduce(
        self, a: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
        where: Any = None,
    ) -> Any:  # fmt: skip
        """Combine all elements along axes (None: all axes)."""
        if self._methods["reduce"] is not None:
            return self._methods["reduce"](a, axis, dtype, out, keepdims, initial, where)
        return reduce(self, a, axis, dtype, out, keepdims, initial, where)

    def accumulate(self, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Combine the elements along an axis up to each one."""
        if self._methods["accumulate"] is not None:
            return self._methods["accumulate"](a, axis, dtype, out)
        return accumulate(self, a, axis, dtype, out)

    def outer(self, A: Any, B: Any, /, **keywords: Any) -> Any:
        """Apply to all pairs of elements of two arrays."""
        return outer(self, A, B, **keywords)

    def at(self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True) -> Any:
        """A copy changed at indices, one after the other; arrays are immutable, so pass ``inplace=False``."""
        if self._methods["at"] is not None:
            return self._methods["at"](a, indices, b, inplace=inplace)
        return at(self, a, indices, b, inplace=inplace)

    def reduceat(self, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        """Combine the elements between neighbouring indices, which must be known."""
        if self._methods["reduceat"] is not None:
            return self._methods["reduceat"](a, indices, axis, dtype, out)
        return reduceat(self, a, indices, axis, dtype, out)


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A `ufunc` of a function of scalars.

    Differs from NumPy: `func` is called once, with traced arguments; results are arrays of numbers, not of objects.
    """
    return ufunc(func, nin, nout, identity=identity)


def _binary(function: Any, method: str) -> str:
    name = f"{function.__name__}.{method}"
    if function.nin != 2 or function.nout != 1:
        raise ValueError(f"numpy.{name}: only functions of two arguments and one result have this method")
    return name


@api_boundary
def reduce(
    function: Any, a: Any, axis: Any = 0, dtype: Any = None, out: None = None, keepdims: bool = False,
    initial: Any = None, where: Any = None,
) -> Array:  # fmt: skip
    """Combine all elements along axes, from the first to the last."""
    name = _binary(function, "reduce")
    no_out(name, out)
    a = array_of(name, a)
    mask = None if where is None else mask_of(name, where, a)
    if dtype is not None:
        a = a.astype(dtype)
    axes = canonical_axes(name, axis_or_none(axis, a), a)
    start = function.identity if initial is None else initial
    if mask is not None and start is None:
        raise ValueError(
            f"numpy.{name}: reduction operation {function.__name__!r} does not have an identity, so to use a where "
            f"mask one has to specify 'initial', for {shown(a)}"
        )
    if len(axes) > 1 and function.__name__ in _ORDERED:
        raise ValueError(
            f"numpy.{name}: reduction operation {function.__name__!r} is not reorderable, so at most one axis may be "
            f"specified, got {axes}"
        )
    order = (*axes, *(d for d in range(a.ndim) if d not in axes))

    def rows(x: Array) -> Array:
        x = manipulation.transpose(x, order)
        return manipulation.reshape(x, (math.prod(x.shape[: len(axes)]), *x.shape[len(axes) :]))

    if start is None and not all(a.shape[d] for d in axes):
        raise ValueError(
            f"numpy.{name}: zero-size array to reduction operation {function.__name__} which has no identity, "
            f"{shown(a)}"
        )
    result = _fold(function, rows(a), start, None if mask is None else rows(mask))
    return manipulation.expand_dims(result, axes) if keepdims else result


# Whose results depend on the order of the elements.
_ORDERED = frozenset([
    "subtract", "divide", "floor_divide", "remainder", "fmod", "power", "float_power", "arctan2", "copysign",
    "nextafter", "heaviside", "left_shift", "right_shift", "ldexp", "equal", "not_equal", "less", "less_equal",
    "greater", "greater_equal",
])  # fmt: skip


def _result_dtype(function: Any, a: Array) -> Any:
    """The dtype of ``function(a, a)``, in which elements are combined."""
    from xform.api.inspection import eval_shape

    return eval_shape(lambda x: function(x, x), a.aval).dtype


def _fold(function: Any, rows: Array, start: Any, mask: Any = None) -> Array:
    """Combine the rows from the first to the last, after `start` if it isn't None; only elements under the mask."""
    dtype = _result_dtype(function, rows)
    if start is not None:
        first = manipulation.broadcast_to(array_of(function.__name__, start, "initial"), rows.shape[1:]).astype(dtype)
    else:
        first, rows = rows[0].astype(dtype), rows[1:]
    if not rows.shape[0]:
        return first

    def step(carry: Any, row: Any) -> Any:
        x, counts = row
        new = function(carry, x).astype(dtype)
        return new if counts is None else choose(counts, new, carry), None

    return scan(step, first, (rows, mask))[0]


def _not_of_a_number(name: str, a: Any) -> Array:
    """The array; TypeError if it has rank 0."""
    a = array_of(name, a)
    if not a.ndim:
        raise TypeError(f"numpy.{name}: cannot {name.rpartition('.')[2]} on a scalar, got {shown(a)}")
    return a


@api_boundary
def accumulate(function: Any, a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
    """Combine the elements along an axis up to each one."""
    name = _binary(function, "accumulate")
    no_out(name, out)
    a = array_of(name, a)
    if dtype is not None:
        a = a.astype(dtype)
    axis = canonical_axis(name, axis, _not_of_a_number(name, a))
    dtype = _result_dtype(function, a)
    rows = manipulation.moveaxis(a, axis, 0)
    first = rows[:1].astype(dtype)
    if rows.shape[0] < 2:
        return manipulation.moveaxis(first, 0, axis)

    def step(carry: Any, x: Any) -> Any:
        new = function(carry, x).astype(dtype)
        return new, new

    _, rest = scan(step, first[0], rows[1:])
    return manipulation.moveaxis(concatenate([first, rest]), 0, axis)


@api_boundary
def outer(function: Any, A: Any, B: Any, /, **keywords: Any) -> Any:
    """Apply to all pairs of elements."""
    name = f"{function.__name__}.outer"
    A, B = array_of(name, A, "A"), array_of(name, B, "B")
    return function(manipulation.reshape(A, A.shape + (1,) * B.ndim), B, **keywords)


@api_boundary
def at(function: Any, a: Any, indices: Any, b: Any = None, *, inplace: bool = True) -> Array:
    """A copy changed at indices, one after the other."""
    name = f"{function.__name__}.at"
    if inplace:
        raise NotImplementedError(f"numpy.{name}: arrays are immutable; pass inplace=False and use the result")
    a = array_of(name, a)
    if b is None:
        return a.at[indices].apply(lambda x: function(x).astype(a.dtype))
    b = array_of(name, b, "b")
    if function.__name__ in _AT:
        return getattr(a.at[indices], _AT[function.__name__])(b)
    # In the order of the indices: each position of the indexed part is one step.
    places = manipulation.reshape(arange(a.size), a.shape)[indices]
    values = manipulation.ravel(manipulation.broadcast_to(b, places.shape))
    flat = manipulation.ravel(a)

    def step(carry: Any, x: Any) -> Any:
        place, value = x
        return carry.at[place].set(function(carry[place], value).astype(carry.dtype)), None

    out, _ = scan(step, flat, (manipulation.ravel(places), values))
    return manipulation.reshape(out, a.shape)


_AT = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min"}


@api_boundary
def reduceat(function: Any, a: Any, indices: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Array:
    """Combine the elements from each index up to the next one; the element itself if that isn't larger."""
    from xform.numpy.promotion import concrete

    name = _binary(function, "reduceat")
    no_out(name, out)
    a = array_of(name, a)
    d = canonical_axis(name, axis, _not_of_a_number(name, a))
    if dtype is None and function.__name__ in ("add", "multiply"):
        dtype = sum_dtype(a.dtype)
    n = a.shape[d]
    starts = concrete(name, indices, "indices", "They decide the structure of the computation.").tolist()
    for i in starts:
        if not 0 <= i < n:
            raise IndexError(f"numpy.{name}: index {i} out-of-bounds in {name} [0, {n}), for axis {axis} of {shown(a)}")
    rows = manipulation.moveaxis(a if dtype is None else a.astype(dtype), d, 0)
    parts = []
    for i, j in zip(starts, [*starts[1:], n], strict=True):
        parts.append(_fold(function, slice_in_dim(rows, i, j if j > i else i + 1), None)[None])
    return manipulation.moveaxis(concatenate(parts), 0, d)


def install(functions: dict[str, Any]) -> None:
    """Give the functions of `xform.numpy` the methods of ufuncs; those of sums and the like are the reductions."""
    reductions = {
        "add": (rd.sum, rd.cumsum, 0), "multiply": (rd.prod, rd.cumprod, 1), "logical_and": (rd.all, None, True),
        "logical_or": (rd.any, None, False), "maximum": (rd.max, None, None), "minimum": (rd.min, None, None),
        "bitwise_and": (None, None, -1), "bitwise_or": (None, None, 0), "bitwise_xor": (None, None, 0),
        "logical_xor": (None, None, False), "logaddexp": (None, None, -np.inf), "logaddexp2": (None, None, -np.inf),
        "hypot": (None, None, 0), "gcd": (None, None, 0),
    }  # fmt: skip
    for name, function in functions.items():
        if getattr(function, "nin", None) is None or hasattr(function, "accumulate"):
            continue
        reduction, cumulation, identity = reductions.get(name, (None, None, None))
        function.identity = identity
        function.reduce = _bound(reduce, function) if reduction is None else _reduction(function, reduction)
        function.accumulate = _bound(accumulate, function) if cumulation is None else _cumulation(function, cumulation)
        for method in (outer, at, reduceat):
            setattr(function, method.__name__, _bound(method, function))
    others = dict.fromkeys(("modf", "frexp"), (1, 2)) | {"divmod": (2, 2)}
    others |= dict.fromkeys(("matmul", "vecdot", "matvec", "vecmat"), (2, 1))
    for name, (nin, nout) in others.items():
        function = getattr(elementwise if nout == 2 else products, name)
        function.nin, function.nout, function.nargs, function.identity = nin, nout, nin + nout, None
    elementwise.divmod.outer = _bound(outer, elementwise.divmod)  # type: ignore[attr-defined]


def _bound(method: Callable[..., Any], function: Any) -> Callable[..., Any]:
    bound: Any = functools.partial(method, function)
    bound.__name__, bound.__module__, bound.__doc__ = method.__name__, method.__module__, method.__doc__
    return _named(bound, function)


def _reduction(function: Any, reduction: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction with the parameters of a ufunc's method."""
    takes_dtype, takes_initial = reduction in (rd.sum, rd.prod), reduction not in (rd.all, rd.any)

    def reduce(
        a: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        kwargs: dict[str, Any] = {} if where is None else {"where": where}
        if takes_dtype:
            kwargs["dtype"] = dtype
        elif dtype is not None:
            a = array_of(f"{function.__name__}.reduce", a).astype(dtype)
        if takes_initial and initial is not None:
            kwargs["initial"] = initial
        result = reduction(a, axis=axis, out=out, keepdims=keepdims, **kwargs)
        return result if takes_initial or initial is None else function(initial, result)

    return _named(reduce, function)


def _cumulation(function: Any, cumulation: Callable[..., Any]) -> Callable[..., Any]:
    def accumulate(a: Any, axis: int = 0, dtype: Any = None, out: None = None) -> Any:
        return cumulation(_not_of_a_number(f"{function.__name__}.accumulate", a), axis, dtype, out)

    return _named(accumulate, function)


def _named(method: Callable[..., Any], function: Any) -> Callable[..., Any]:
    """The method, with the name by which errors call it."""
    method.__qualname__ = f"{function.__name__}.{method.__name__}"
    return api_boundary(method)
