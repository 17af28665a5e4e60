"""Batching: each operation on arrays with one more axis, so that a loop becomes an array operation.

A batch rule gets the trace (whose `size` and `axis_name` describe the mapped axis), the operands, and for each the
position of its mapped axis or None; it returns the results with the positions of theirs.

May import: `xform.core`, `interpreters.staging`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from xform.core.array import get_aval
from xform.core.avals import ShapedArray
from xform.core.jaxpr import ClosedJaxpr, cached_on_jaxpr, eval_jaxpr
from xform.core.trace import AxisFrame, Primitive, Trace, Tracer, extend_axis_env
from xform.interpreters.forward import derived
from xform.interpreters.staging import trace_to_closed


class Hooks:
    """The array operations that batching itself needs; `xform.lax` fills them in."""

    moveaxis: Callable[[Any, int, int], Any]
    broadcast: Callable[[Any, int, int], Any]  # (x, size, dim): a new axis


class BatchTracer(Tracer):
    """An array with a hidden axis `dim`."""

    __slots__ = ("_aval", "dim", "val")

    def __init__(self, trace: "BatchTrace", val: Any, dim: int):
        self._trace, self.val, self.dim = trace, val, dim
        self._aval: ShapedArray | None = None

    @property
    def aval(self) -> ShapedArray:  # type: ignore[override]
        """The aval as the mapped function sees it, without the hidden axis."""
        aval = self._aval
        if aval is None:
            full = get_aval(self.val)
            aval = self._aval = full.update(shape=full.shape[: self.dim] + full.shape[self.dim + 1 :])
        return aval

    @property
    def under(self) -> Any:
        """The array with the hidden axis."""
        return self.val

    def known(self) -> Any:
        """None: it stands for many values."""
        return None


class BatchTrace(Trace):
    """Applies batch rules."""

    __slots__ = ("axis_name", "size")
    name = "vmap"

    def __init__(self, size: int, axis_name: Any = None):
        super().__init__()
        self.size, self.axis_name = size, axis_name

    def __str__(self) -> str:
        return f"vmap({self.size}{'' if self.axis_name is None else f', axis_name={self.axis_name!r}'})"

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        vals, dims = self.split(args)
        try:
            out, dim = primitive.batch(self, vals, dims, **params)
        except (TypeError, ValueError):
            if (error := _error_unmapped(primitive, args, params)) is None:
                raise
            raise error from None
        if primitive.multiple_results:
            return [self.wrap(o, d) for o, d in zip(out, dim, strict=True)]
        return self.wrap(out, dim)

    def split(self, args: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
        """Values and mapped axes of arguments."""
        vals: list[Any] = []
        dims: list[int | None] = []
        for a in args:
            if type(a) is BatchTracer and a._trace is self:
                if not self.alive:
                    raise a.leaked()
                vals.append(a.val)
                dims.append(a.dim)
            else:
                if isinstance(a, Tracer) and (a._trace.level >= self.level or not a._trace.alive):
                    raise a.leaked()
                vals.append(a)
                dims.append(None)
        return vals, dims

    def wrap(self, val: Any, dim: int | None) -> Any:
        """A tracer, unless the value isn't mapped."""
        return val if dim is None else BatchTracer(self, val, dim)


def _error_unmapped(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Exception | None:
    """What is wrong with an operation, said of the arrays that the mapped function sees."""
    try:
        primitive.abstract_eval(*[get_aval(a) for a in args], **params)
    except (TypeError, ValueError) as error:
        return error
    return None


def move_to(x: Any, dim: int | None, size: int, target: int = 0) -> Any:
    """`x` with its mapped axis at `target`, repeated along a new one if it has none."""
    if dim is None:
        return Hooks.broadcast(x, size, target)
    return x if dim == target else Hooks.moveaxis(x, dim, target)


def batch(
    function: Callable[..., Sequence[Any]],
    args: Sequence[Any],
    dims: Sequence[int | None],
    size: int,
    axis_name: Any,
) -> tuple[list[Any], list[int | None]]:
    """Map a function of flat arguments, that returns a list, over the axes `dims`."""
    trace = BatchTrace(size, axis_name)
    with trace, extend_axis_env([AxisFrame(axis_name, size, trace)] if axis_name is not None else []):
        return trace.split(function(*[trace.wrap(a, d) for a, d in zip(args, dims, strict=True)]))


@cached_on_jaxpr
def batch_jaxpr(
    closed: ClosedJaxpr,
    size: int,
    axis_name: Any,
    batched: tuple[bool, ...],
    force: tuple[bool, ...] | bool = False,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The jaxpr with a mapped leading axis on the inputs that `batched` names.

    `force` says which results get a mapped axis in any case. Returns which results have one.
    """
    batched_out: tuple[bool, ...] = ()
    forced = (force,) * len(closed.out_avals) if isinstance(force, bool) else force

    def program(*args: Any) -> list[Any]:
        nonlocal batched_out
        dims = [0 if b else None for b in batched]
        outs, dims_out = batch(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), args, dims, size, axis_name)
        batched_out = tuple(d is not None or f for d, f in zip(dims_out, forced, strict=True))
        return [move_to(o, d, size) if b else o for o, d, b in zip(outs, dims_out, batched_out, strict=True)]

    avals = [a.update(shape=(size, *a.shape)) if b else a for a, b in zip(closed.in_avals, batched, strict=True)]
    jaxpr, consts = trace_to_closed(program, avals, closed.jaxpr.name)
    return derived(jaxpr, consts), batched_out
