"""Decompositions of matrices, in batches: each primitive with all its rules. See `jax.lax.linalg` for the names.

May import: `lax`'s elementwise, shape and product modules.
"""

from xform.lax.linalg.cholesky import cholesky, cholesky_p
from xform.lax.linalg.matrices import triangle_p
from xform.lax.linalg.triangular_solve import triangular_solve, triangular_solve_p
