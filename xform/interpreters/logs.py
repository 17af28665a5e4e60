"""What backward functions of custom rules log: values that leave a backward pass by name, for who asks for them.

Within `collecting` the thread has a dictionary that they are recorded in; elsewhere they are dropped, and cost nothing.
Where a backward pass goes into a jaxpr, the logs within are further results of the transposed one, which the rule of
the operation that holds it takes off and records in its turn: stacked by a scan, for instance.

May import: `xform.core`.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from xform.core import tree
from xform.core.config import state


class Refused(dict):
    """In place of the logs where there is no way out for them: within the operation `where`."""

    def __init__(self, where: str):
        super().__init__()
        self.where = where


@contextlib.contextmanager
def collecting(logs: dict[Any, Any] | None) -> Iterator[Any]:
    """Let the backward passes of this thread record their logs in `logs`; with None they don't."""
    outer, state.logs = state.logs, logs
    try:
        yield logs
    finally:
        state.logs = outer


def record(logs: dict[Any, Any]) -> None:
    """Add to the logs that are being collected, if any are."""
    found = state.logs
    if found is None or not logs:
        return
    if isinstance(found, Refused):
        raise NotImplementedError(
            f"with_logs: the logs {sorted(map(str, logs))} come from within {found.where}, whose backward pass has no "
            "way to return them"
        )
    for key, value in logs.items():
        if key in found:
            raise ValueError(f"with_logs: two logs of one backward pass have the key {key!r}; keys must be unique")
        found[key] = value


def take_off(structure: Any, outs: Sequence[Any]) -> Sequence[Any]:
    """The results of a transposed jaxpr without the logs at their end, of the given structure, which are recorded."""
    n = structure.num_leaves
    if not n:
        return outs
    record(structure.unflatten(outs[len(outs) - n :]))
    return outs[: len(outs) - n]


NO_LOGS = tree.structure({})
