"""Structured control flow: operations that hold jaxprs, each with all its rules.

May import: the other modules of `lax`, `interpreters`, `core`.
"""

from xform.lax.control_flow import while_gradients
from xform.lax.control_flow.cond import cond, cond_p, switch
from xform.lax.control_flow.mapping import map
from xform.lax.control_flow.scan import scan, scan_p
from xform.lax.control_flow.while_loop import fori_loop, while_loop, while_p

__all__ = ["cond", "cond_p", "fori_loop", "map", "scan", "scan_p", "switch", "while_loop", "while_p"]
