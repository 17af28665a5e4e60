"""What a program says to the compiler: values that must be kept, and operations that it may know by name.

`optimization_barrier`, `dce_sink`, `composite`.

May import: `xform.core`, `xform.interpreters`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from xform.core import tree
from xform.core.array import get_aval
from xform.core.errors import UnexpectedTracerError, api_boundary
from xform.core.jaxpr import ClosedJaxpr, eval_jaxpr
from xform.core.trace import Primitive, Tracer
from xform.interpreters import host
from xform.interpreters.batching import batch_jaxpr, move_to
from xform.interpreters.forward import jvp_jaxpr, with_zeros
from xform.interpreters.jet import locally_linear
from xform.interpreters.lowering import Context, Value, dense, scalar_text
from xform.interpreters.staging import trace_to_closed
from xform.interpreters.tangents import Zero, is_linear

_T = TypeVar("_T")

# optimization_barrier: the identity of several arrays


def _together(xs: Sequence[Any]) -> list[Any]:
    """The barrier of tangents or cotangents that are not zero."""
    through = iter(optimization_barrier_p.bind(*[x for x in xs if type(x) is not Zero]))
    return [x if type(x) is Zero else next(through) for x in xs]


optimization_barrier_p = Primitive("optimization_barrier", multiple_results=True)
optimization_barrier_p.stays_apart = True
optimization_barrier_p.abstract_eval = lambda *xs: list(xs)
optimization_barrier_p.host = lambda *xs: list(xs)
optimization_barrier_p.jvp = lambda primals, ts: (optimization_barrier_p.bind(*primals), _together(ts))
optimization_barrier_p.jet = locally_linear(optimization_barrier_p)
optimization_barrier_p.transpose = lambda cts, *xs: [
    ct if is_linear(x) else None for ct, x in zip(_together(cts), xs, strict=True)
]
optimization_barrier_p.batch = lambda axis, args, dims: (optimization_barrier_p.bind(*args), dims)
optimization_barrier_p.lower = lambda ctx, *xs: ctx.op("optimization_barrier", xs, [x.aval for x in xs])


@api_boundary
def optimization_barrier(operand: _T, /) -> _T:
    """`operand` itself; the compiler moves no computation across, and has all of it ready before any of it is used.

    Parameters
    ----------
    operand : pytree of arrays

    Examples
    --------
    >>> from xform import lax
    >>> x, y = lax.optimization_barrier((np.float32(1.0), np.float32(2.0)))
    >>> float(x + y)
    3.0
    """
    leaves, treedef = tree.flatten(operand)
    out: Any = treedef.unflatten(optimization_barrier_p.bind(*leaves)) if leaves else operand
    return out


# dce_sink: an operation without results, which is not removed as dead

dce_sink_p = Primitive("dce_sink", multiple_results=True)
dce_sink_p.has_effects = True
dce_sink_p.abstract_eval = lambda x: []
dce_sink_p.host = lambda x: []
dce_sink_p.jvp = lambda primals, ts: (dce_sink_p.bind(*primals), [])
dce_sink_p.batch = lambda axis, args, dims: (dce_sink_p.bind(*args), [])
dce_sink_p.lower = lambda ctx, x: []


@api_boundary
def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep the computation of `val` in the jaxpr, though nobody uses it. (XLA may still remove it.)

    Raises NotImplementedError for `prevent_mlir_dce`, which would keep it from XLA, too.
    """
    if prevent_mlir_dce:
        raise NotImplementedError("lax.dce_sink: only prevent_mlir_dce=False is supported")
    for leaf in tree.leaves(val):
        dce_sink_p.bind(leaf)


# composite: a program under a name that a compiler may know


def _composite_jvp(primals: Sequence[Any], ts: Sequence[Any], *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
    """Derivatives are those of the decomposition, without a name."""
    nonzero = tuple(type(t) is not Zero for t in ts)
    derived, nonzero_out = jvp_jaxpr(jaxpr, nonzero)
    flat = eval_jaxpr(derived.jaxpr, derived.consts, *primals, *[t for t in ts if type(t) is not Zero])
    n_out = len(jaxpr.out_avals)
    return flat[:n_out], with_zeros(nonzero_out, flat[:n_out], flat[n_out:])


def _composite_batch(
    axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, jaxpr: ClosedJaxpr, **params: Any
) -> Any:
    """On arrays with another axis it isn't the operation of that name any more, but its decomposition."""
    args = [a if d is None else move_to(a, d, axis.size) for a, d in zip(args, dims, strict=True)]
    batched, batched_out = batch_jaxpr(jaxpr, axis.size, axis.axis_name, tuple(d is not None for d in dims))
    return eval_jaxpr(batched.jaxpr, batched.consts, *args), [0 if b else None for b in batched_out]


def _composite_lower(
    ctx: Context, *args: Value, jaxpr: ClosedJaxpr, name: str, version: int, attributes: str
) -> list[Value]:
    function = ctx.module.function(jaxpr)
    text = f'name = "{name}", version = {version} : i32, decomposition = @{function}'
    return ctx.op("composite", args, jaxpr.out_avals, f"{text}, composite_attributes = {{{attributes}}}")


composite_p = Primitive("composite", multiple_results=True)
composite_p.remembers_types = False
composite_p.abstract_eval = lambda *avals, jaxpr, **params: jaxpr.out_avals
composite_p.host = lambda *args, jaxpr, **params: host.host_function(jaxpr)(*args)
composite_p.jvp = composite_p.push = _composite_jvp
composite_p.batch = _composite_batch
composite_p.lower = _composite_lower


@api_boundary
def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function that compilers may know under `name` and replace; others compile its decomposition.

    Parameters
    ----------
    decomposition : function
        What it means. Positional arguments are pytrees of arrays, keyword arguments attributes of the operation:
        numbers, strings or arrays that are known when tracing; those that are None are not passed on.
    name : str
        With a namespace, as in "my.softmax".
    version : int

    Returns
    -------
    Function
        Under differentiation and `vmap` it is its decomposition.

    Examples
    --------
    >>> import xform
    >>> from xform import lax
    >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent")
    >>> round(float(xform.jit(tangent)(0.5)), 6)
    0.546302
    """
    if not callable(decomposition):
        raise TypeError(f"lax.composite: decomposition must be a function, got {decomposition!r}")

    @functools.wraps(decomposition)
    def function(*args: Any, **kwargs: Any) -> Any:
        attributes = ", ".join(f"{k} = {_attribute(name, k, v)}" for k, v in kwargs.items() if v is not None)
        leaves, in_tree = tree.flatten(args)
        out_tree: Any = None

        def program(*xs: Any) -> list[Any]:
            nonlocal out_tree
            outs, out_tree = tree.flatten(decomposition(*in_tree.unflatten(xs), **kwargs))
            return outs

        jaxpr, consts = trace_to_closed(program, [get_aval(x) for x in leaves], name)
        outs = composite_p.bind(*consts, *leaves, jaxpr=jaxpr, name=name, version=int(version), attributes=attributes)
        return out_tree.unflatten(outs)

    return function


def _attribute(name: str, key: str, value: Any) -> str:
    """An attribute as MLIR text."""
    match value:
        case Tracer():
            raise UnexpectedTracerError(
                f"lax.composite: keyword argument {key} of {name!r} is a traced array; pass it by position"
            )
        case bool():
            return str(value).lower()
        case int():
            return f"{value} : i64"
        case float():
            return f"{scalar_text(np.float64(value))} : f64"
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case tuple() | list():
            return f"[{', '.join(_attribute(name, key, v) for v in value)}]"
    array = np.asarray(value)
    if array.dtype == object:
        raise TypeError(f"lax.composite: keyword argument {key} of {name!r} must be a number, string or array")
    return dense(array)
