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
def savez_compressed(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write arrays to one compressed .npz file, by position and by name."""
    named = {k: np.asarray(v) for k, v in kwds.items()}
    np.savez_compressed(file, *map(np.asarray, args), allow_pickle=allow_pickle, **named)


@api_boundary
def savetxt(
    fname: Any, X: Any, fmt: Any = "%.18e", delimiter: str = " ", newline: str = "\n", header: str = "",
    footer: str = "", comments: str = "# ", encoding: Any = None,
) -> None:  # fmt: skip
    """Write an array of up to two axes to a text file; see `numpy.savetxt` for the formats."""
    np.savetxt(fname, np.asarray(X), fmt, delimiter, newline, header, footer, comments, encoding)


@api_boundary
def load(
    file: Any, mmap_mode: Any = None, allow_pickle: bool = False, fix_imports: bool = True, encoding: Any = "ASCII", *,
    max_header_size: int = 10000,
) -> Any:  # fmt: skip
    """Read an array from a .npy file; of an .npz file, the mapping from names to ndarrays that `numpy.load` gives."""
    found = np.load(file, mmap_mode, allow_pickle, fix_imports, encoding, max_header_size=max_header_size)
    return own(found) if isinstance(found, np.ndarray) else found
