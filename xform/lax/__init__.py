"""The primitives, each with all its rules, and the functions that bind them.

May import: `xform.interpreters`, `xform.core`.
"""

from xform.lax.arithmetic import add, div, mul, neg, sub
from xform.lax.comparison import eq, ge, gt, le, lt, ne, select_n
from xform.lax.control_flow import cond, fori_loop, scan, switch, while_loop
from xform.lax.dot import Precision, dot_general
from xform.lax.reductions import reduce_sum
from xform.lax.shapes import (
    broadcast_in_dim,
    broadcasted_iota,
    convert_element_type,
    full,
    iota,
    reshape,
    transpose,
)
from xform.lax.transcendental import cos, exp, log, sin, tanh
