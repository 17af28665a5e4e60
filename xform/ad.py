"""What `Pullback.with_refs`, a method of what `vjp` returns, takes and gives.

May import: `api.linear_functions`.
"""

from xform.api.linear_functions import DidntWant, DontWant, GradValue

__all__ = ["DidntWant", "DontWant", "GradValue"]
