"""Arrays in files, and as text.

May import: `numpy.creation`, `xform.core`.
"""

from typing import Any

import numpy as np

from xform.core.array import Array, own
from xform.core.errors import api_boundary

get_printoptions, set_printoptions, printoptions = np.get_printoptions, np.set_printoptions, np.printoptions


@api_boundary
def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a .npy file."""
    np.save(file, np.asarray(arr), allow_pickle=allow_pickle)


@api_boundary
def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write arrays to one .npz file, by position and by name."""
    np.savez(file, *map(np.asarray, args), allow_pickle=allow_pickle, **{k: np.asarray(v) for k, v in kwds.items()})


@api_boundary
def load(
    file: Any, mmap_mode: Any = None, allow_pickle: bool = False, fix_imports: bool = True, encoding: Any = "ASCII", *,
    max_header_size: int = 10000,
) -> Any:  # fmt: skip
    """Read an array from a .npy file; of an .npz file, the mapping from names to ndarrays that `numpy.load` gives."""
    found = np.load(file, mmap_mode, allow_pickle, fix_imports, encoding, max_header_size=max_header_size)
    return own(found) if isinstance(found, np.ndarray) else found


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """How an array shows itself."""
    with printoptions(**_options(max_line_width, precision, suppress_small)):
        return repr(arr if isinstance(arr, Array) else own(arr))


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The elements of an array as text.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.array_str(xnp.array([1.23456, 2.0]), precision=2)
    '[1.23 2.  ]'
    """
    with printoptions(**_options(max_line_width, precision, suppress_small)):
        return str(a if isinstance(a, Array) else own(a))


def _options(width: Any, precision: Any, suppress: Any) -> dict[str, Any]:
    given = {"linewidth": width, "precision": precision, "suppress": suppress}
    return {k: v for k, v in given.items() if v is not None}
