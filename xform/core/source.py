"""Where in the user's program an equation or a tracer came from.

A `Source` is the raw place (code object, instruction): recording one costs a walk up a few frames; it becomes text
only when somebody prints it. That of an operation on cotangents is the place of the operation that it belongs to, and
says so.

May import: the standard library and `core.errors`.
"""

import os
import sys
from types import CodeType

from xform.core.errors import PACKAGE

Source = tuple[CodeType, int] | tuple[CodeType, int, str]

# By id, as hashing a code object reads all of it; the object is kept, so that the id stays its own.
_library: dict[int, tuple[bool, CodeType]] = {}


def _look_up(code: CodeType) -> tuple[bool, CodeType]:
    found = _library[id(code)] = code.co_filename.startswith(PACKAGE), code
    return found


def current(depth: int = 1) -> Source | None:
    """The innermost place outside the library, seen from `depth` frames up."""
    frame = sys._getframe(depth)
    known = _library
    while frame is not None:
        code = frame.f_code
        found = known.get(id(code)) or _look_up(code)
        if not found[0]:
            return code, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]
    return None


def line_of(source: Source) -> int:
    """Line number of a source."""
    code, lasti = source[:2]
    for start, end, line in code.co_lines():
        if start <= lasti < end and line is not None:
            return line
    return code.co_firstlineno


def describe(source: Source | None) -> str:
    """``file.py:12 (function)``, or 'unknown place'."""
    if source is None:
        return "unknown place"
    code = source[0]
    where = f"{os.path.basename(code.co_filename)}:{line_of(source)} ({code.co_name})"
    return f"{where}, in the {source[2]} pass" if len(source) > 2 else where
