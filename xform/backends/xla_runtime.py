"""The runtime under `xla`: its settings, jaxlib, the clients and their devices, LAPACK.

With `xla` the only code of the library that imports jaxlib or jax, and both at first use. On CPU jaxlib
suffices, whose import takes a quarter of jax's. Imports nothing else of xform.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import threading
from typing import Any

Device = Any  # jaxlib's Device

extension: Any = None  # jaxlib._jax, from the first device on
_lock = threading.RLock()
_clients: dict[str | None, Any] = {}
_settings: dict[str, Any] = {"num_cpu_devices": None, "platforms": None, "cache_dir": None}


def available() -> bool:
    """Whether jaxlib is installed; does not import it."""
    return importlib.util.find_spec("jaxlib") is not None


@functools.cache
def require() -> None:
    """ImportError, which says what to install, unless jaxlib is installed."""
    if not available():
        raise ImportError('XLA needs jaxlib: `pip install jax` for CPU, `pip install "xform[cuda]"` for NVIDIA GPUs')


def accelerator_expected() -> bool:
    """Whether the default platform will probably not be the CPU; cheap, as it starts nothing."""
    allowed = _allowed_platforms()
    if allowed:
        return allowed[0] != "cpu"
    return any(importlib.util.find_spec(name) for name in ("jax_plugins", "libtpu"))


def configure(
    *, num_cpu_devices: int | None = None, platforms: str | None = None, cache_dir: str | None = None
) -> None:
    """Choose the devices, before their first use, and the folder for compiled programs, at any time.

    Parameters
    ----------
    num_cpu_devices : int, optional
        How many devices the CPU is split into; else what `XLA_FLAGS` says, else one.
    platforms : str, optional
        The platforms that may be used, separated by commas, the default one first, such as "cuda,cpu"; the
        CPU always may. Else `XFORM_PLATFORMS`, else `JAX_PLATFORMS`, else all that is installed.
    cache_dir : str, optional
        Folder for compiled programs; an empty string for none. Else `XFORM_CACHE_DIR`, else none.

    Raises
    ------
    RuntimeError
        If the devices are in use already, and their number or platform is to be changed.
    """
    if num_cpu_devices is not None and num_cpu_devices < 1:
        raise ValueError(f"configure: num_cpu_devices must be at least 1, got {num_cpu_devices}")
    with _lock:
        if _clients and (num_cpu_devices is not None or platforms is not None):
            raise RuntimeError("configure: num_cpu_devices and platforms must be set before devices are used")
        given = {"num_cpu_devices": num_cpu_devices, "platforms": platforms, "cache_dir": cache_dir}
        _settings.update({name: value for name, value in given.items() if value is not None})


def cache_dir() -> str:
    """The folder for compiled programs, or an empty string."""
    chosen = _settings["cache_dir"]
    return os.environ.get("XFORM_CACHE_DIR", "") if chosen is None else chosen


def devices(platform: str | None = None) -> list[Device]:
    """The devices of a platform: "cpu", "gpu" (or "cuda", "rocm"), "tpu"; by default the fastest there is.

    Raises
    ------
    ImportError
        If jaxlib is not installed.
    RuntimeError
        If there is no such platform.
    """
    return list(_client(platform).devices())


def _client(platform: str | None) -> Any:
    if platform not in _clients:
        with _lock:
            if platform not in _clients:
                load()
                _clients[platform] = _default_client() if platform is None else _start(platform)
    return _clients[platform]


def _default_client() -> Any:
    allowed = _allowed_platforms()
    if allowed:
        return _client(allowed[0])
    return _start_plugin(None) if _plugin_installed() else _client("cpu")


def _start(platform: str) -> Any:
    if platform == "cpu":
        # Programs run in the thread that calls them. To hand one of more than 1000 operations over to another thread
        # and wait takes 60 to 150 us when all cores are busy, where the program takes 10.
        return load().make_cpu_client(asynchronous=False, num_devices=_settings["num_cpu_devices"])
    allowed = _allowed_platforms()
    if allowed and not any(_same_platform(platform, name) for name in allowed):
        raise RuntimeError(f"platform {platform!r} is not among those allowed: {', '.join(allowed)}")
    if not _plugin_installed():
        raise RuntimeError(
            f"platform {platform!r} is not available, only cpu; "
            'for NVIDIA GPUs `pip install "xform[cuda]"`, for TPUs `pip install "jax[tpu]"`'
        )
    return _start_plugin(platform)


def _start_plugin(platform: str | None) -> Any:
    """The client of an accelerator, which is jax's: finding plugins is its job, and memory is taken once."""
    from jax._src import xla_bridge

    try:
        client = xla_bridge.get_backend(platform)
    except RuntimeError as error:
        name = "the default platform" if platform is None else f"platform {platform!r}"
        raise RuntimeError(f"{name} is not available: {error}") from None
    return _client("cpu") if client.platform == "cpu" else client


def _allowed_platforms() -> list[str]:
    """The platforms that settings or environment name; none means all."""
    environment = os.environ.get("XFORM_PLATFORMS") or os.environ.get("JAX_PLATFORMS") or ""
    names = (_settings["platforms"] or environment).lower().split(",")
    return [name.strip() for name in names if name.strip()]


def _same_platform(one: str, other: str) -> bool:
    return one == other or ("gpu" in (one, other) and {one, other} <= {"gpu", "cuda", "rocm"})


def _plugin_installed() -> bool:
    """Whether jax could find another platform than the CPU: it looks in the same three places."""
    if any(importlib.util.find_spec(name) for name in ("jax_plugins", "libtpu")):
        return True
    from importlib.metadata import entry_points  # here, as its import takes 10 ms

    return bool(entry_points(group="jax_plugins"))


def load() -> Any:
    """Import jaxlib, bind `extension`, and return `jaxlib.xla_client`."""
    global extension
    with _lock:
        if extension is None:
            require()
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # else jaxlib 0.12 logs its start to stderr
            from jaxlib import _jax

            extension = _jax
        from jaxlib import xla_client

        return xla_client


def kernels_ready(text: str | bytes, platform: str) -> None:
    """Register the kernels that a program calls, if they are LAPACK's or cuSOLVER's."""
    name = {"cpu": "lapack_", "gpu": "cusolver_", "cuda": "cusolver_"}.get(platform)
    if name is not None and (name in text if isinstance(text, str) else name.encode() in text):
        (lapack_ready if platform == "cpu" else cusolver_ready)()


@functools.cache
def cusolver_ready() -> None:
    """Register the cuSOLVER kernels of jax's CUDA plugin with XLA; programs call them as `cusolver_*_ffi`."""
    xla_client = load()
    from jaxlib import gpu_solver

    for name, target, api_version in gpu_solver.registrations()["CUDA"]:
        xla_client.register_custom_call_target(name, target, platform="CUDA", api_version=api_version)


@functools.cache
def lapack_ready() -> None:
    """Register jaxlib's LAPACK kernels with XLA; programs call them as custom calls `lapack_*_ffi`.

    `compile` does it for programs that need them: the kernels are SciPy's, whose import takes about 0.1 s. If
    jax registers them again when it is imported, no harm is done.
    """
    xla_client = load()
    from jaxlib import lapack
    from jaxlib.cpu import _lapack

    _lapack.initialize()
    for name, target, api_version in lapack.registrations()["cpu"]:
        xla_client.register_custom_call_target(name, target, platform="cpu", api_version=api_version)
