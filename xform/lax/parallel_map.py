"""`pmap` as an operation: a jaxpr run once per device, on the rows of its mapped operands.

``pmap[jaxpr axis_name axis_size mapped] *operands``: each result has one row per device. Evaluated it runs on the
devices; inside a compiled program for one device it is the batched program.

May import: `xform.core`, `xform.interpreters`, `lax.calls`.
"""

from collections.abc import Sequence
from typing import Any

from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.jaxpr import ClosedJaxpr, eval_jaxpr
from xform.core.trace import AxisFrame, extend_axis_env
from xform.interpreters import execution, spmd
from xform.interpreters.batching import batch_jaxpr, move_to
from xform.interpreters.forward import jvp_jaxpr, with_zeros
from xform.interpreters.logs import take_off
from xform.interpreters.lowering import Context, Value
from xform.interpreters.reverse import linearize_jaxpr, transpose_jaxpr
from xform.interpreters.tangents import Zero, is_linear, is_zero, zero_of
from xform.lax.calls import CallPrimitive
from xform.lax.reductions import reduce_sum_p


class scope(extend_axis_env):
    """``with scope(name, size):`` the axis over devices is in scope, for tracing what runs on them."""

    __slots__ = ()

    def __init__(self, axis_name: Any, size: int):
        super().__init__([AxisFrame(axis_name, size)])


def _run(*args: Any, jaxpr: ClosedJaxpr, axis_name: Any, axis_size: int, mapped: tuple[bool, ...], devices: Any) -> Any:
    if devices is None or state.disable_jit:
        outs = _batched(jaxpr, axis_name, axis_size, mapped)
        return eval_jaxpr(outs.jaxpr, outs.consts, *args)
    if axis_size == 1:
        return execution.compile_jaxpr(_batched(jaxpr, axis_name, axis_size, mapped), devices[0])(args)
    return spmd.run(jaxpr, args, mapped, axis_name, devices)


def _batched(jaxpr: ClosedJaxpr, axis_name: Any, axis_size: int, mapped: tuple[bool, ...]) -> ClosedJaxpr:
    return batch_jaxpr(jaxpr, axis_size, axis_name, mapped, True)[0]


def _types(*avals: ShapedArray, jaxpr: ClosedJaxpr, axis_size: int, **_: Any) -> list[ShapedArray]:
    return [a.update(shape=(axis_size, *a.shape)) for a in jaxpr.out_avals]


def _jvp(
    primals: Sequence[Any], ts: Sequence[Any], *, jaxpr: ClosedJaxpr, mapped: tuple[bool, ...], **params: Any
) -> Any:
    nonzero = tuple(not is_zero(t) for t in ts)
    with scope(params["axis_name"], params["axis_size"]):
        derived, nonzero_out = jvp_jaxpr(jaxpr, nonzero)
    order = len(ts) // len(primals)
    also = tuple(mapped[i // order] for i, nz in enumerate(nonzero) if nz)
    tangents = [t for t in ts if not is_zero(t)]
    flat = pmap_p.bind(*primals, *tangents, jaxpr=derived, mapped=mapped + also, **params)
    n_out = len(jaxpr.out_avals)
    return flat[:n_out], with_zeros(nonzero_out, flat[:n_out], flat[n_out:])


def _linearize(
    primals: Sequence[Any], ts: Sequence[Any], *, jaxpr: ClosedJaxpr, mapped: tuple[bool, ...], **params: Any
) -> Any:
    nonzero = tuple(not is_zero(t) for t in ts)
    with scope(params["axis_name"], params["axis_size"]):
        split = linearize_jaxpr(jaxpr, nonzero)
    flat = pmap_p.bind(*primals, jaxpr=split.forward, mapped=mapped, **params)
    outs = flat[: len(split.nonzero_out)]
    if not any(split.nonzero_out):
        return outs, [zero_of(o) for o in outs]
    found, found_mapped = [*primals, *flat], [*mapped, *[True] * len(flat)]
    also = [m for m, nz in zip(mapped, nonzero, strict=True) if nz]
    rest = iter(
        pmap_p.bind(
            *[found[i] for i in split.residuals],
            *[t for t in ts if not is_zero(t)],
            jaxpr=split.linear,
            mapped=(*[found_mapped[i] for i in split.residuals], *also),
            **params,
        )
    )
    return outs, [next(rest) if nz else zero_of(o) for o, nz in zip(outs, split.nonzero_out, strict=True)]


def _transpose(
    cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, mapped: tuple[bool, ...], **params: Any
) -> list[Any]:
    linear = tuple(is_linear(a) for a in args)
    nonzero_ct = tuple(not is_zero(ct) for ct in cts)
    with scope(params["axis_name"], params["axis_size"]):
        transposed, nonzero_out, logs = transpose_jaxpr(jaxpr, linear, nonzero_ct, with_logs=True)
    known = [a for a, lin in zip(args, linear, strict=True) if not lin]
    known_mapped = [m for m, lin in zip(mapped, linear, strict=True) if not lin]
    cts = [ct for ct in cts if not is_zero(ct)]
    flat = pmap_p.bind(*known, *cts, jaxpr=transposed, mapped=(*known_mapped, *[True] * len(cts)), **params)
    outs = iter(take_off(logs, flat))
    which = iter(nonzero_out)
    result: list[Any] = []
    for a, lin, m in zip(args, linear, mapped, strict=True):
        if not lin:
            result.append(None)
        elif not next(which):
            result.append(Zero(a.aval))
        else:  # what all devices shared gets the sum of their cotangents
            ct = next(outs)
            result.append(ct if m else reduce_sum_p.bind(ct, axes=(0,)))
    return result


def _batch(
    axis: Any,
    args: Sequence[Any],
    dims: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    mapped: tuple[bool, ...],
    **params: Any,
) -> Any:
    # The mapped axis of vmap comes after that over the devices.
    args = [
        a if d is None else move_to(a, d, axis.size, 1 if m else 0) for a, d, m in zip(args, dims, mapped, strict=True)
    ]
    with scope(params["axis_name"], params["axis_size"]):
        batched, batched_out = batch_jaxpr(jaxpr, axis.size, axis.axis_name, tuple(d is not None for d in dims))
    outs = pmap_p.bind(*args, jaxpr=batched, mapped=mapped, **params)
    return outs, [1 if b else None for b in batched_out]


def _lower(
    ctx: Context,
    *args: Value,
    jaxpr: ClosedJaxpr,
    axis_name: Any,
    axis_size: int,
    mapped: tuple[bool, ...],
    devices: Any,
) -> list[Value]:
    return ctx.call(_batched(jaxpr, axis_name, axis_size, mapped), args)


pmap_p = CallPrimitive("pmap", _run)
pmap_p.abstract_eval = _types
pmap_p.jvp = pmap_p.push = _jvp
pmap_p.linearize = _linearize
pmap_p.transpose = _transpose
pmap_p.batch = _batch
pmap_p.lower = _lower
