"""What the Python array API standard asks of a namespace and its arrays beyond functions.

``xform.numpy`` is such a namespace, of version 2025.12 [1]_: its functions have the standard's names, parameters and
results, beside NumPy's own.

May import: `xform.core`, `xform.interpreters`; `xform.api` within functions.

.. [1] "Python array API standard", https://data-apis.org/array-api/2025.12/
"""

from typing import Any

import numpy as np

from xform.backends import xla
from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.interpreters import execution

__array_api_version__ = "2025.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__)

_NAMES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip


class NamespaceInfo:
    """What `__array_namespace_info__` returns: which dtypes and devices there are, and what arrays can do."""

    def capabilities(self) -> dict[str, Any]:
        """Masks select elements and shapes may depend on values, outside of traced functions; up to 64 axes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device for what names none."""
        return execution.default_device()

    def devices(self) -> tuple[Any, ...]:
        """All devices: those of the default platform, and the CPU."""
        return tuple(dict.fromkeys((*xla.devices(), *xla.devices("cpu"))))

    @api_boundary
    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of Python's numbers and of indices."""
        self._check("default_dtypes", device)
        return {
            "real floating": dtypes.default_float(),
            "complex floating": dtypes.default_complex(),
            "integral": dtypes.default_int(),
            "indexing": dtypes.default_int(),
        }

    @api_boundary
    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The standard's dtypes by name, of one of its kinds ('bool', 'integral' ...) or of several.

        Examples
        --------
        >>> import xform.numpy as xnp
        >>> list(xnp.__array_namespace_info__().dtypes(kind=("bool", "real floating")))
        ['bool', 'float32', 'float64']
        """
        self._check("dtypes", device)
        kinds = dtypes.categories if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for one in kinds:
            if one not in dtypes.categories:
                raise ValueError(f"dtypes: unknown kind {one!r}; there are {', '.join(dtypes.categories)}")
        found = [dtypes.by_name[name] for name in _NAMES]
        return {d.name: d for d in found if dtypes.canonicalize_dtype(d) == d and dtypes.isdtype(d, tuple(kinds))}

    def _check(self, name: str, device: Any) -> None:
        if device is not None and device not in self.devices():
            raise ValueError(f"{name}: unknown device {device!r}; there are {', '.join(map(str, self.devices()))}")


_INFO = NamespaceInfo()


def __array_namespace_info__() -> NamespaceInfo:
    """Which dtypes and devices there are, and what arrays can do, as the array API standard lays it down.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> info = xnp.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"], info.capabilities()["boolean indexing"]
    (dtype('float64'), True)
    """
    return _INFO


@api_boundary
def array_namespace(self: Array, *, api_version: str | None = None) -> Any:
    """The module whose functions work on these arrays, after the Python array API standard."""
    import xform.numpy as xnp

    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(
            f"__array_namespace__: version {api_version!r} of the array API is not supported; there are "
            f"{', '.join(_VERSIONS)}"
        )
    return xnp


@api_boundary
def to_device(self: Array, device: Any, /, *, stream: Any = None) -> Array:
    """The array on another device; itself, if it is there."""
    from xform.api.devices import device_put

    if stream is not None:
        raise ValueError(f"to_device: transfers take no stream, got stream={stream!r}")
    if device is None:
        raise TypeError("to_device: expected a device, got None")
    return device_put(self, device)


def install() -> None:
    """Attach the standard's methods to `Array`."""
    Array.__array_namespace__ = array_namespace  # type: ignore[attr-defined]
    Array.to_device = to_device  # type: ignore[attr-defined]


install()
