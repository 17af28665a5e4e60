"""Arrays in files.

May import: `numpy.creation`, `xform.core`.
"""

from typing import Any

import numpy as np

from xform.core.array import own
from xform.core.errors import api_boundary


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
