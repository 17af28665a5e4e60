"""Memory that programs on CPU fill and read again while they run, kept from one run to the next.

What a loop saves for its derivative can be hundreds of megabytes. Memory of that size comes from the operating system
at each run and goes back to it afterwards: a page fault for every 4 kilobytes costs more than to fill them.

May import: the standard library.
"""

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

Key = tuple[tuple[int, ...], Any, Any]  # shape, dtype, device

_lock = threading.Lock()
_kept: list[tuple[Key, Any]] = []  # buffers, in the order of their last use
_limit = 0  # bytes that the hungriest program needed: more is never kept


def take(keys: Sequence[Key], make: Callable[[Key], Any]) -> list[Any]:
    """A buffer for each key, for one run alone; `make` makes those that there are none of."""
    global _limit
    with _lock:
        _limit = max(_limit, sum(map(_size, keys)))
        buffers = [_pop(key) for key in keys]
        _free(sum(_size(key) for key, buffer in zip(keys, buffers, strict=True) if buffer is None))
    return [make(key) if buffer is None else buffer for key, buffer in zip(keys, buffers, strict=True)]


def give_back(keys: Sequence[Key], buffers: Sequence[Any]) -> None:
    """Keep the buffers of a run for the next; those that were not used for longest go."""
    with _lock:
        _kept.extend(zip(keys, buffers, strict=True))
        _free(0)


def _pop(key: Key) -> Any:
    at = next((i for i in reversed(range(len(_kept))) if _kept[i][0] == key), None)
    return None if at is None else _kept.pop(at)[1]


def _free(needed: int) -> None:
    """Make room for so many bytes within the limit."""
    excess = needed + sum(_size(key) for key, _ in _kept) - _limit
    while _kept and excess > 0:
        excess -= _size(_kept.pop(0)[0])


def _size(key: Key) -> int:
    return math.prod(key[0]) * key[1].itemsize


def clear() -> None:
    """Free all memory that is kept."""
    global _limit
    with _lock:
        _kept.clear()
        _limit = 0
