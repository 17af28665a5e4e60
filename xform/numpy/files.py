"""Arrays in files.

May import: `numpy.creation`, `xform.core`.
"""

from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import own
from xform.core.errors import api_boundary


def _storable(name: str, x: Any) -> np.ndarray:
    """An ndarray of a dtype that survives a file: NumPy's, or bfloat16, which files know as two raw bytes."""
    value = np.asarray(x)
    if value.dtype in dtypes.kinds and value.dtype.num >= _FOREIGN and value.dtype != dtypes.bfloat16:
        raise TypeError(f"numpy.{name}: files can't hold {value.dtype}; save x.view('uint8') or convert it with astype")
    return value


_FOREIGN = 256  # the numbers of dtypes that other packages register


@api_boundary
def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a .npy file."""
    np.save(file, _storable("save", arr), allow_pickle=allow_pickle)


@api_boundary
def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write arrays to one .npz file, by position and by name."""
    named = {k: _storable("savez", v) for k, v in kwds.items()}
    np.savez(file, *[_storable("savez", x) for x in args], allow_pickle=allow_pickle, **named)


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
    """Read an array from a .npy file; of an .npz file, the mapping from names to ndarrays that `numpy.load` gives.

    Two raw bytes an element are read as bfloat16, which `save` writes so.
    """
    found = np.load(file, mmap_mode, allow_pickle, fix_imports, encoding, max_header_size=max_header_size)
    if not isinstance(found, np.ndarray):
        return found
    return own(found.view(dtypes.bfloat16) if found.dtype == np.dtype("V2") else found)
