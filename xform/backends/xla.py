"""XLA: compile StableHLO text, move ndarrays to devices and back, run programs on them.

With `xla_runtime`, the one door to jaxlib. What is behind it is private API that moves between releases:
these two files work with 0.10 to 0.12, and nothing else of the library may import jaxlib or jax.

A *buffer* is one array on one device, or on several devices one array each: the arguments and results of a
program that runs on many devices at once. Buffers are jaxlib's arrays, labelled so that they need none of
jax's classes: `_Type` stands for jax's aval, `_Placement` for its sharding. (jaxlib still reaches for jax to
take apart a buffer on several devices, and before 0.12 to read bfloat16 and the other types that Python's
buffer protocol does not have. Either costs jax's import, once.)

>>> import numpy as np
>>> from xform.backends import xla
>>> cpu = xla.devices("cpu")[0]
>>> double = '''func.func public @main(%x: tensor<3xf64>) -> tensor<3xf64> {
...   %0 = stablehlo.add %x, %x : tensor<3xf64>
...   return %0 : tensor<3xf64>
... }'''
>>> executable = xla.compile(double, [((3,), np.dtype("float64"))], [cpu])
>>> [result] = executable.execute([xla.put(np.array([1.0, 2.0, 3.0]), cpu)])
>>> xla.get(result)
array([2., 4., 6.])
"""

from __future__ import annotations

import functools
import math
import os
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xform.backends import disk_cache, workspaces, xla_runtime
from xform.backends.xla_runtime import Device, available, configure, devices, kernels_ready, require

__all__ = [
    "Executable",
    "XlaError",
    "available",
    "block_until_ready",
    "clear_cache",
    "compile",
    "configure",
    "copy_to_device",
    "delete",
    "deserialize",
    "device_of",
    "devices",
    "devices_of",
    "get",
    "get_shards",
    "is_deleted",
    "is_ready",
    "put",
    "put_shards",
    "require",
]

Buffer = Any  # jaxlib's ArrayImpl
ArrayType = tuple[tuple[int, ...], np.dtype]
Option = bool | int | float | str

# For tests, and for who wonders where the time went. Read them as xla.compile_count; written under _lock.
compile_count = 0  # programs that XLA compiled
cache_hits = 0  # calls of compile() answered from memory
disk_cache_hits = 0  # ... and from disk

_lock = threading.Lock()


class XlaError(RuntimeError):
    """A program that XLA can't compile or run, a buffer it can't move: the first line says which and why."""


# ------------------------------------------------------------------------------------------------ buffers


class _Type:
    """Shape and dtype of a buffer: what jaxlib reads of an aval."""

    __slots__ = ("dtype", "shape")
    weak_type = False

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.shape = shape
        self.dtype = dtype


class _Placement:
    """The devices of a buffer: what jaxlib reads of a sharding.

    It calls all buffers replicated. jaxlib does not use that on the paths taken here, so that a buffer on
    several devices needs no label that says how they share it. (Not a subclass of jaxlib's Sharding: jax adds
    members to that class when it is imported.)
    """

    __slots__ = ("_hlo_sharding", "_internal_device_list", "devices")
    memory_kind = None

    def __init__(self, devices: tuple[Device, ...]) -> None:
        self.devices = devices
        self._internal_device_list = xla_runtime.extension.DeviceList(devices)
        self._hlo_sharding = xla_runtime.load().HloSharding.replicate()

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        return self._hlo_sharding


_type = functools.lru_cache(maxsize=4096)(_Type)


@functools.cache
def _placement(*devices: Device) -> _Placement:
    return _Placement(devices)


def put(x: Any, device: Device) -> Buffer:
    """Move an ndarray, NumPy scalar or number to a device.

    On CPU, contiguous memory aligned to 64 bytes is not copied: the buffer keeps `x` alive, and `x` must not
    be written to from now on. (What `get` returns is aligned so; NumPy's own large arrays are aligned to 16.)

    Raises
    ------
    XlaError
        If XLA does not have the dtype, or the device no room.
    """
    if type(x) is not np.ndarray:
        x = np.asarray(x)
    dtype = x.dtype
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
        x = x.astype(dtype)
    try:
        return xla_runtime.extension.batched_device_put(
            _type(x.shape, dtype), _placement(device), [x], [device], enable_x64=True
        )
    except RuntimeError as error:
        raise _xla_error(f"put: {dtype}{list(x.shape)} on {device}", error) from None


def put_shards(arrays: Sequence[Any], devices: Sequence[Device]) -> Buffer:
    """Move one array to each device, as one buffer. The arrays have one shape and dtype.

    Raises
    ------
    ValueError
        If numbers, shapes or dtypes differ.
    """
    if len(arrays) != len(devices) or not devices:
        raise ValueError(f"put_shards: {len(arrays)} arrays for {len(devices)} devices")
    parts = [put(x, device) for x, device in zip(arrays, devices, strict=True)]
    if len(parts) == 1:
        return parts[0]
    types = {(part.aval.shape, part.aval.dtype) for part in parts}
    if len(types) > 1:
        raise ValueError(f"put_shards: the shapes and dtypes differ: {sorted(map(str, types))}")
    return xla_runtime.extension.ArrayImpl(parts[0].aval, _placement(*devices), parts, True, _skip_checks=True)


def get(buffer: Buffer) -> np.ndarray:
    """The values of a buffer as a read-only ndarray: waits for them, and on CPU shares their memory.

    Of a buffer on several devices, the array on the first.

    Raises
    ------
    XlaError
        If the program that computes the buffer failed, or the buffer was deleted or donated.
    """
    try:
        return np.asarray(memoryview(buffer))
    except BufferError:  # not on CPU, on several devices, failed, or a type such as bfloat16: not in PEP 3118
        return _copy_to_host(buffer)


def _copy_to_host(buffer: Buffer) -> np.ndarray:
    try:
        if hasattr(buffer, "_to_np_array_did_copy"):  # jaxlib 0.12: does not import jax
            array, _ = buffer._to_np_array_did_copy()
        else:
            array, _ = buffer._single_device_array_to_np_array_did_copy()
    except RuntimeError as error:
        raise _xla_error("get", error) from None
    array.flags.writeable = False
    return array


def get_shards(buffer: Buffer) -> list[np.ndarray]:
    """The arrays of a buffer, one a device, in the order of `devices_of`; see `get`."""
    if len(devices_of(buffer)) == 1:
        return [get(buffer)]
    _check_not_deleted("get_shards", buffer)
    return [get(part) for part in buffer._arrays]


def copy_to_device(buffer: Buffer, device: Device) -> Buffer:
    """The same values on another device (or on the same: then nothing is copied)."""
    if devices_of(buffer) == (device,):
        return buffer
    if len(devices_of(buffer)) > 1:
        return put(get(buffer), device)
    _check_not_deleted("copy_to_device", buffer)
    try:
        return xla_runtime.extension.batched_device_put(
            buffer.aval, _placement(device), [buffer], [device], enable_x64=True
        )
    except RuntimeError as error:
        raise _xla_error(f"copy_to_device: to {device}", error) from None


def block_until_ready(buffers: Sequence[Buffer]) -> None:
    """Wait until the programs that compute these buffers have finished; XlaError if one failed."""
    try:
        xla_runtime.extension.batched_block_until_ready(buffers)
    except RuntimeError as error:
        raise _xla_error("block_until_ready", error) from None


def is_ready(buffer: Buffer) -> bool:
    """Whether `get` would not wait."""
    _check_not_deleted("is_ready", buffer)
    return buffer.is_ready()


def delete(buffer: Buffer) -> None:
    """Free a buffer's memory now (as soon as no ndarray shares it); to use it afterwards is an XlaError."""
    buffer.delete()


def is_deleted(buffer: Buffer) -> bool:
    """Whether a buffer was deleted, or donated to a program."""
    return buffer.is_deleted()


def _check_not_deleted(doing: str, buffer: Buffer) -> None:
    """An error where jaxlib 0.10 would crash."""
    if buffer.is_deleted():
        raise XlaError(f"{doing}: the buffer was deleted or donated")


def devices_of(buffer: Buffer) -> tuple[Device, ...]:
    """The devices that hold a buffer."""
    return buffer._sharding.devices


def device_of(buffer: Buffer) -> Device:
    """The device that holds a buffer, or the first of several."""
    return buffer._sharding.devices[0]


# -------------------------------------------------------------------------------------------- executables


class Executable:
    """A compiled program, loaded on its devices. Made by `compile` and `deserialize`."""

    __slots__ = ("__weakref__", "_handlers", "_loaded", "devices", "launch")

    def __init__(self, loaded: Any, out_types: Sequence[ArrayType], devices: tuple[Device, ...]) -> None:
        self.devices = devices
        self._loaded = loaded
        # Start a run, with no checks of errors: `take` makes buffers of what it returns. The fastest way to run.
        self.launch = loaded.execute_sharded
        self._handlers = [_result_handler(_type(*type_), _placement(*devices)) for type_ in out_types]

    def execute(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """Run on buffers that lie on the program's devices; may return before it has finished, on accelerators it does.

        XLA checks the number, sizes and devices of the buffers, but not their dtypes: the caller vouches for
        these.
        """
        try:
            return self.launch(buffers).consume_with_handlers(self._handlers)
        except RuntimeError as error:
            raise self.failure(error, buffers) from None

    def take(self, results: Any) -> list[Buffer]:
        """The buffers of a run that `launch` started."""
        return results.consume_with_handlers(self._handlers)

    def failure(self, error: RuntimeError, buffers: Sequence[Buffer]) -> XlaError:
        """What to raise for an error of `launch`."""
        deleted = [i for i, buffer in enumerate(buffers) if buffer.is_deleted()]
        note = f" (arguments that were deleted or donated: {deleted})" if deleted else ""
        return _xla_error(f"XLA could not run the program{note}", error)

    def serialize(self) -> bytes:
        """The machine code, for `deserialize` with the same jaxlib and the same kind of device."""
        return self._loaded.serialize()

    def hlo_text(self) -> str:
        """The program as XLA optimized it."""
        return self._loaded.get_hlo_text()

    def memory_analysis(self) -> dict[str, int]:
        """Sizes in bytes: of arguments, results, results that alias arguments, temporaries and code."""
        stats = self._loaded.get_compiled_memory_stats()
        parts = ("argument", "output", "alias", "temp", "generated_code")
        return {f"{part}_size_in_bytes": getattr(stats, f"{part}_size_in_bytes") for part in parts}

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate of the work: "flops", "transcendentals", "bytes accessed", and so on."""
        return dict(self._loaded.cost_analysis())


class _LockstepExecutable(Executable):
    """A program on several CPU devices: one run at a time, each to its end.

    A collective blocks one thread of XLA's pool for each device until all have arrived. Two runs in flight
    can take each other's last thread; they wait then until XLA aborts the process.
    """

    __slots__ = ()
    _running = threading.Lock()

    def execute(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        with self._running:
            results = super().execute(buffers)
            block_until_ready(results)
        return results


class _WorkingExecutable(Executable):
    """A program whose first arguments are workspaces, which it gives back as its first results."""

    __slots__ = ("_keys",)

    def __init__(self, loaded: Any, out_types: Sequence[ArrayType], device: Device, work: Sequence[ArrayType]) -> None:
        super().__init__(loaded, [*work, *out_types], (device,))
        self._keys = [(*type_, device) for type_ in work]
        self.launch = self._launch

    def _launch(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        work = workspaces.take(self._keys, _new_workspace)
        try:
            results = self._loaded.execute_sharded([*work, *buffers]).consume_with_handlers(self._handlers)
        except RuntimeError as error:
            raise self.failure(error, [*work, *buffers]) from None
        workspaces.give_back(self._keys, results[: len(work)])
        return results[len(work) :]

    def execute(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        return self.launch(buffers)

    def take(self, results: list[Buffer]) -> list[Buffer]:
        return results


def _new_workspace(key: tuple[tuple[int, ...], np.dtype, Device]) -> Buffer:
    shape, dtype, device = key
    # XLA copies what isn't aligned to 64 bytes, and may then write into its copy.
    memory = np.empty(math.prod(shape) * dtype.itemsize + 64, np.int8)
    start = 16 - memory.ctypes.data % 64 + 64 * (memory.ctypes.data % 64 > 16)
    return put(memory[start : start - 64].view(dtype).reshape(shape), device)


class _Slot:
    """A place in the cache of executables, and the lock of the thread that fills it."""

    __slots__ = ("executable", "lock")

    def __init__(self) -> None:
        self.executable: Executable | None = None
        self.lock = threading.Lock()


_slots: dict[tuple, _Slot] = {}


def compile(
    text: str,
    out_types: Sequence[ArrayType],
    devices: Sequence[Device],
    *,
    num_replicas: int = 1,
    num_partitions: int = 1,
    options: Mapping[str, Option] | None = None,
    work: Sequence[ArrayType] = (),
) -> Executable:
    """Compile a StableHLO module, or find it in memory or on disk.

    Parameters
    ----------
    text : str
        The module; its function `main` is the program.
    out_types : sequence of (shape, dtype)
        The types of the results on each device.
    devices : sequence of devices
        Where it runs: `num_replicas * num_partitions` devices of one platform, replicas outermost.
    num_replicas : int
        How many devices run the program side by side, each on its own data.
    num_partitions : int
        Into how many parts XLA's partitioner cuts each replica, following the shardings in the text.
    options : mapping, optional
        XLA's debug options, such as ``{"xla_backend_optimization_level": 1}``.
    work : sequence of (shape, dtype)
        Types of the leading arguments, on CPU, that the caller doesn't give: memory to be filled, of any content, which
        the program gives back as its leading results, not among `out_types` (see `workspaces`).

    Raises
    ------
    ValueError
        If the number of devices is not `num_replicas * num_partitions`.
    XlaError
        If the text does not parse, or XLA does not compile it.
    """
    global cache_hits
    devices = tuple(devices)
    chosen = sorted((options or {}).items())
    compile_options = _compile_options(text, devices, num_replicas, num_partitions, chosen)
    program = disk_cache.fingerprint(text, repr(chosen), f"{num_replicas} x {num_partitions}")
    with _lock:
        slot = _slots.setdefault((program, devices), _Slot())
    with slot.lock:  # another thread that wants the same program waits here
        if slot.executable is None:
            loaded = _load_or_compile(text, program, devices, compile_options)
            if work:
                slot.executable = _WorkingExecutable(loaded, out_types, devices[0], work)
            else:
                slot.executable = _executable(loaded, out_types, devices)
        else:
            with _lock:
                cache_hits += 1
        return slot.executable


def clear_cache() -> None:
    """Forget the executables in memory, and free what workspaces keep: those in use live on, those on disk stay."""
    with _lock:
        _slots.clear()
    workspaces.clear()


def deserialize(
    data: bytes,
    out_types: Sequence[ArrayType],
    devices: Sequence[Device],
    *,
    num_replicas: int = 1,
    num_partitions: int = 1,
) -> Executable:
    """The executable that `Executable.serialize` turned into `data`, loaded on `devices`; see `compile`.

    The data are machine code: load none that you don't trust.

    Raises
    ------
    XlaError
        If they are not an executable for this jaxlib and these devices.
    """
    devices = tuple(devices)
    options = _compile_options("", devices, num_replicas, num_partitions, [])
    return _executable(_deserialize(data, devices, options), out_types, devices)


def _executable(loaded: Any, out_types: Sequence[ArrayType], devices: tuple[Device, ...]) -> Executable:
    lockstep = len(devices) > 1 and devices[0].platform == "cpu"
    return (_LockstepExecutable if lockstep else Executable)(loaded, out_types, devices)


def _result_handler(type_: _Type, placement: _Placement) -> Any:
    """jaxlib's C++ object that makes a buffer of a raw result."""
    make = xla_runtime.extension.array_result_handler
    try:
        return make(type_, placement, True, True)  # 0.10: skip the checks, which need jax
    except TypeError:
        return make(type_, placement, True)


def _load_or_compile(text: str, program: str, devices: tuple[Device, ...], options: Any) -> Any:
    """jaxlib's executable: from disk, else from XLA and then onto disk."""
    directory = xla_runtime.cache_dir()
    if not directory:
        return _compile(text, devices, options)
    name = disk_cache.fingerprint(program, *_environment(devices))
    loaded = _load_from_disk(directory, name, devices, options)
    if loaded is None:
        loaded = _compile(text, devices, options)
        disk_cache.store(directory, name, loaded.serialize())
    return loaded


def _compile(text: str, devices: tuple[Device, ...], options: Any) -> Any:
    global compile_count
    kernels_ready(text, devices[0].platform)
    try:
        loaded = devices[0].client.compile_and_load(text, _device_list(devices), options)
    except RuntimeError as error:
        raise _compile_error(text, error) from None
    with _lock:
        compile_count += 1
    return loaded


def _load_from_disk(directory: str, name: str, devices: tuple[Device, ...], options: Any) -> Any:
    global disk_cache_hits
    data = disk_cache.load(directory, name)
    if data is None:
        return None
    try:
        loaded = _deserialize(data, devices, options)
    except XlaError:  # undamaged, but not for this XLA: as good as none
        return None
    with _lock:
        disk_cache_hits += 1
    return loaded


def _deserialize(data: bytes, devices: tuple[Device, ...], options: Any) -> Any:
    kernels_ready(data, devices[0].platform)
    try:
        return devices[0].client.deserialize_executable(data, _device_list(devices), options)
    except RuntimeError as error:
        raise _xla_error("XLA could not load the serialized program", error) from None


def _device_list(devices: tuple[Device, ...]) -> Any:
    return _placement(*devices)._internal_device_list


def _environment(devices: tuple[Device, ...]) -> list[str]:
    """What machine code depends on beside the program: versions, devices, flags, processor."""
    from jaxlib.version import __version__

    first = devices[0]
    ids = " ".join(str(device.id) for device in devices)
    host = disk_cache.host_features() if first.platform == "cpu" else ""
    flags = os.environ.get("XLA_FLAGS", "")
    return [__version__, first.client.platform_version, first.device_kind, ids, flags, host]


def _compile_options(
    text: str,
    devices: tuple[Device, ...],
    num_replicas: int,
    num_partitions: int,
    options: Sequence[tuple[str, Option]],
) -> Any:
    if not devices or len(devices) != num_replicas * num_partitions:
        raise ValueError(
            f"compile: {num_replicas} replicas of {num_partitions} partitions need "
            f"{num_replicas * num_partitions} devices, got {len(devices)}"
        )
    result = xla_runtime.extension.CompileOptions()
    build = result.executable_build_options
    result.num_replicas = build.num_replicas = num_replicas
    result.num_partitions = build.num_partitions = num_partitions
    build.use_spmd_partitioning = num_partitions > 1
    build.use_shardy_partitioner = "sdy." in text
    ids = np.array([device.id for device in devices], np.int32).reshape(num_replicas, num_partitions)
    result.device_assignment = xla_runtime.extension.DeviceAssignment.create(ids)
    if options:
        result.env_option_overrides = list(options)
    return result


# ------------------------------------------------------------------------------------------------- errors

_ERROR_IN_TEXT = re.compile(r"-:(\d+):\d+: error: (.*)")


def _compile_error(text: str, error: Exception) -> XlaError:
    """An error that XLA finds in the text shows the line."""
    found = _ERROR_IN_TEXT.search(str(error))
    if found is None:
        return _xla_error("XLA could not compile the program", error)
    number = int(found[1])
    source = text.split("\n")[number - 1].strip()
    return XlaError(f"line {number} of the StableHLO module: {found[2][:200]}\n    {source[:200]}\n{error}")


def _xla_error(doing: str, error: Exception) -> XlaError:
    """One line that says what failed and why; below it XLA's whole message, if it is longer."""
    message = str(error).strip()
    first = message.partition("\n")[0]
    short = first if len(first) <= 200 else f"{first[:200]}..."
    return XlaError(f"{doing}: {short}" + ("" if message == short else f"\n{message}"))
