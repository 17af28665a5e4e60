"""Functions with derivatives by their authors.

May import: `api.custom`, `api.custom_vjp`, `api.custom_gradient`, `lax.custom_calls`.
"""

from xform.api.custom import SymbolicZero, custom_jvp, zero_from_primal
from xform.api.custom_gradient import closure_convert, custom_gradient, linear_call
from xform.api.custom_vjp import CustomVJPPrimal, custom_vjp, custom_vjp_primal_tree_values
from xform.lax.custom_calls import custom_jvp_call_p, custom_vjp_call_p

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "linear_call",
    "zero_from_primal",
]
