"""SPMD: one program on several devices, each with its own piece of the data.

May import: `xform.core`, `xform.backends`, `interpreters.lowering`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.backends import xla
from xform.core.array import ArrayImpl, get_aval, host_value
from xform.core.jaxpr import ClosedJaxpr
from xform.interpreters import fusion
from xform.interpreters.lowering import lower_module


def run(
    closed: ClosedJaxpr, args: Sequence[Any], mapped: Sequence[bool], axis_name: Any, devices: Sequence[Any]
) -> list[ArrayImpl]:
    """Run a program on each of `devices`; mapped arguments have one row per device, as have the results."""
    key = ("spmd", axis_name, tuple(devices))
    found = closed.cache.get(key)
    if found is None:
        sizes = {axis_name: len(devices)}
        text, hidden = lower_module(closed, closed.jaxpr.name, devices[0].platform, axis_sizes=sizes)
        executable = xla.compile(
            text,
            [(a.shape, a.dtype) for a in closed.out_avals],
            list(devices),
            num_replicas=len(devices),
            options=fusion.options_for(closed.jaxpr, devices[0].platform, text),
        )
        constants = [xla.put_shards([np.asarray(host_value(c))] * len(devices), devices) for c in hidden]
        found = closed.cache[key] = executable, constants
    executable, constants = found
    buffers = constants + [_spread(a, m, devices) for a, m in zip(args, mapped, strict=True)]
    n = len(devices)
    return [
        ArrayImpl(None, b, a.update(shape=(n, *a.shape)), devices[0])
        for b, a in zip(executable.execute(buffers), closed.out_avals, strict=True)
    ]


def _spread(x: Any, mapped: bool, devices: Sequence[Any]) -> Any:
    """A buffer over all devices: a row for each, or the same array everywhere."""
    buffer = x._device_buffer() if type(x) is ArrayImpl else None
    if mapped and buffer is not None and xla.devices_of(buffer) == tuple(devices):
        return buffer
    value = np.asarray(host_value(x))
    if get_aval(x).dtype != value.dtype:
        value = value.astype(get_aval(x).dtype)
    return xla.put_shards(list(value) if mapped else [value] * len(devices), devices)
