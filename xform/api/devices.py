"""Devices and the arrays on them: `devices`, `device_put`, `device_get`, `block_until_ready` and their kin.

May import: `xform.core`, `xform.backends`.
"""

import gc
from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.api.arguments import as_array
from xform.backends import xla
from xform.core import tree
from xform.core.array import Array, ArrayImpl, get_aval, host_value
from xform.core.errors import api_boundary
from xform.core.trace import Tracer
from xform.interpreters import execution, plans

Device = Any  # the backend's device objects: `id`, `platform`, `device_kind`


@api_boundary
def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform ("cpu", "gpu", "tpu"), by default of the one that `jit` uses.

    Examples
    --------
    >>> import xform
    >>> xform.devices("cpu")[0].platform
    'cpu'
    """
    return list(xla.devices(backend))


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process."""
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """Number of devices."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Number of devices of this process."""
    return len(devices(backend))


def default_backend() -> str:
    """The platform that `jit` uses: "cpu", "gpu" or "tpu"."""
    return devices()[0].platform


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that compute together."""
    return 0


def process_count(backend: str | None = None) -> int:
    """How many processes compute together."""
    return 1


@api_boundary
def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: bool = False, may_alias: bool | None = None
) -> Any:
    """Put the arrays of a pytree on a device.

    Computations then run there. The call returns at once; the transfer goes on in the background.

    Parameters
    ----------
    x : pytree of arrays and numbers
    device : Device or pytree of them, optional
        By default the first device.

    Examples
    --------
    >>> import xform
    >>> xform.device_put({"a": 1.0}, xform.devices("cpu")[0])
    {'a': Array(1., dtype=float64, weak_type=True)}
    """
    leaves, treedef = tree.flatten(x)
    targets = [device] * len(leaves) if not isinstance(device, tuple | list | dict) else tree.leaves(device)
    if len(targets) != len(leaves):
        raise ValueError(f"device_put: {len(targets)} devices for {len(leaves)} arrays")
    arrays = [as_array(leaf, lambda: "device_put: a leaf") for leaf in leaves]
    return treedef.unflatten([_put(a, d) for a, d in zip(arrays, targets, strict=True)])


def _put(x: Any, device: Any) -> Any:
    if isinstance(x, Tracer):
        return x
    if device is None or device is execution.default_device():
        if type(x) is ArrayImpl and x._device is None:
            return x
        return ArrayImpl(host_value(x), None, get_aval(x))
    if not hasattr(device, "platform"):
        raise TypeError(f"device_put: expected a device, got {device!r}")
    return ArrayImpl(None, x._on_device(device), get_aval(x), device)


@api_boundary
def device_get(x: Any) -> Any:
    """The arrays of a pytree as ndarrays (read-only views where possible)."""
    return tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x)


@api_boundary
def device_put_replicated(x: Any, devices: Sequence[Device]) -> Any:
    """Copies of the arrays of a pytree on each device, with a new leading axis."""
    return tree.map(lambda leaf: _on_each([np.asarray(host_value(leaf))] * len(devices), devices), x)


@api_boundary
def device_put_sharded(shards: Sequence[Any], devices: Sequence[Device]) -> Any:
    """Arrays made of one piece on each device, with a new leading axis."""
    if len(shards) != len(devices):
        raise ValueError(f"device_put_sharded: {len(shards)} shards for {len(devices)} devices")
    return tree.map(lambda *leaves: _on_each([np.asarray(host_value(leaf)) for leaf in leaves], devices), *shards)


def _on_each(rows: list[np.ndarray], devices: Sequence[Device]) -> ArrayImpl:
    aval = get_aval(rows[0])
    buffer = xla.put_shards(rows, tuple(devices))
    return ArrayImpl(None, buffer, aval.update(shape=(len(rows), *aval.shape)), devices[0])


@api_boundary
def block_until_ready(x: Any) -> Any:
    """Wait until the arrays of a pytree are computed, and return it."""
    buffers = []
    for leaf in tree.leaves(x):
        if type(leaf) is ArrayImpl:
            if leaf._buffer is not None and leaf._host is None:
                buffers.append(leaf._device_buffer())
        elif hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    if buffers:
        xla.block_until_ready(buffers)
    return x


def clear_caches() -> None:
    """Forget compiled programs, and free the memory that they keep between runs.

    Functions under `jit` keep their own programs until `clear_cache()`.
    """
    xla.clear_cache()
    plans.clear_cache()
    gc.collect()
