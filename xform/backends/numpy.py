"""The host backend's common parts: NumPy without its floating-point warnings.

Host rules stand beside their primitives in `xform.lax`; what several of them share is here.

May import: NumPy.
"""

from typing import Any

import numpy as np

# NumPy keeps its error state (np.errstate) in a context variable. Setting that directly costs 80 ns, entering
# np.errstate 700 ns, and every eager operation does it.
try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    QUIET: Any = _make_extobj(all="ignore")
    set_state, quiet_end = _extobj_contextvar.set, _extobj_contextvar.reset

except ImportError:  # another NumPy: the public way
    QUIET = None

    def set_state(quiet: Any) -> Any:
        """As below."""
        token = np.errstate(all="ignore")
        token.__enter__()
        return token

    def quiet_end(token: Any) -> None:
        """Restore the state from before `quiet_begin`."""
        token.__exit__(None, None, None)


def quiet_begin() -> Any:
    """Silence NumPy's floating-point warnings until `quiet_end(token)`; 1/0 is inf here as it is in XLA.

    What takes less than a microsecond spares itself this call: ``set_state(QUIET)``.
    """
    return set_state(QUIET)
