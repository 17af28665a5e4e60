"""Structured control flow: operations that hold jaxprs, each with all its rules.

May import: the other modules of `lax`, `interpreters`, `core`.
"""

from xform.lax.control_flow.cond import cond, cond_p, switch
from xform.lax.control_flow.mapping import map
from xform.lax.control_flow.platform import platform_dependent, platform_index_p
from xform.lax.control_flow.scan import scan, scan_p
from xform.lax.control_flow.while_gradients import while_back_p, while_saving_p, while_tangents_p
from xform.lax.control_flow.while_loop import fori_loop, while_loop, while_p

__all__ = [
    "cond",
    "cond_p",
    "fori_loop",
    "map",
    "platform_dependent",
    "platform_index_p",
    "scan",
    "scan_p",
    "switch",
    "while_back_p",
    "while_loop",
    "while_p",
    "while_saving_p",
    "while_tangents_p",
]
