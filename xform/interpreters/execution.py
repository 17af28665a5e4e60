"""Running whole jaxprs: compiled by XLA, or equation by equation on the host.

May import: `xform.core`, `xform.backends`, `interpreters.lowering`.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any

from xform.backends import xla
from xform.core.array import ArrayImpl, host_value
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.jaxpr import ClosedJaxpr
from xform.interpreters import fusion
from xform.interpreters.lowering import lower_module

_log = logging.getLogger("xform")


class Compiled:
    """A compiled jaxpr: calls take concrete arrays and return a list of them."""

    __slots__ = ("device", "donated", "executable", "hidden", "out_avals", "platform_device")

    def __init__(self, executable: Any, out_avals: Sequence[ShapedArray], hidden: list[Any], device: Any, donated: Any):
        self.executable, self.out_avals, self.hidden = executable, list(out_avals), list(hidden)
        self.device = device  # the XLA device
        self.donated = tuple(i for i, d in enumerate(donated) if d)
        self.platform_device = None if device is default_device() else device

    def __call__(self, args: Sequence[Any]) -> list[ArrayImpl]:
        device = self.device
        buffers = list(self.hidden)
        for a in args:
            if type(a) is ArrayImpl:
                buffer = a._device_buffer()
                if buffer is None or a._device is not self.platform_device:
                    buffer = a._on_device(device)
            else:
                buffer = xla.put(host_value(a), device)
            buffers.append(buffer)
        out = self.executable.execute(buffers)
        if self.donated:
            self._donate(args)
        where = self.platform_device
        return [ArrayImpl(None, b, aval, where) for b, aval in zip(out, self.out_avals, strict=True)]

    def _donate(self, args: Sequence[Any]) -> None:
        """Mark donated arguments as deleted."""
        for i in self.donated:
            a = args[i]
            if type(a) is ArrayImpl:
                a._aval, a._host, a._buffer = a.aval, None, None


def default_device() -> Any:
    """The XLA device for what names none."""
    device = state.default_device
    if device is None:
        return xla.devices()[0]
    return xla.devices(device)[0] if isinstance(device, str) else device


def device_for(args: Sequence[Any]) -> Any:
    """The device on which to run: that of the arguments which were put somewhere, else the default one."""
    found = None
    for a in args:
        device = a._device if type(a) is ArrayImpl else None
        if device is not None and device is not found:
            if found is not None:
                raise ValueError(
                    f"arguments are on different devices, {found} and {device}: move them with xform.device_put"
                )
            found = device
    return default_device() if found is None else found


def compile_jaxpr(
    closed: ClosedJaxpr, device: Any, donated: Sequence[bool] = (), options: dict[str, Any] | None = None
) -> Compiled:
    """Lower and compile a jaxpr for one device; found in its cache the next time."""
    key = ("compiled", device, tuple(donated), tuple(sorted(options.items())) if options else None)
    found = closed.cache.get(key)
    if found is None:
        name = closed.jaxpr.name
        start = time.perf_counter()
        work: list[ShapedArray] = []
        text, hidden = lower_module(closed, name, device.platform, donated=donated, work=work)
        found = closed.cache[key] = compile_text(text, hidden, closed, device, donated, options, work)
        if state.log_compiles:
            _log.warning("compiled %s in %.3f s", name or "a function", time.perf_counter() - start)
    return found


def compile_text(
    text: str,
    hidden: Sequence[Any],
    closed: ClosedJaxpr,
    device: Any,
    donated: Sequence[bool],
    options: Any,
    work: Sequence[ShapedArray] = (),
) -> Compiled:
    """Compile the text of a lowered jaxpr."""
    out_types = [(a.shape, a.dtype) for a in closed.out_avals]
    options = {**fusion.options_for(closed.jaxpr, device.platform, text), **(options or {})}
    executable = xla.compile(text, out_types, [device], options=options, work=[(a.shape, a.dtype) for a in work])
    buffers = [c._on_device(device) if type(c) is ArrayImpl else xla.put(host_value(c), device) for c in hidden]
    return Compiled(executable, closed.out_avals, buffers, device, donated)


def run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a jaxpr on concrete arguments, compiled."""
    return compile_jaxpr(closed, device_for(args))(args)
