"""Decompositions of matrices, in batches: each primitive with all its rules. The names are those of `jax.lax.linalg`.

May import: the elementwise modules of `lax`, its shapes, slices, products and loops.
"""

from xform.lax.linalg.cholesky import cholesky, cholesky_p
from xform.lax.linalg.eig import EigImplementation, eig, eig_p
from xform.lax.linalg.eigh import EighImplementation, eigh, eigh_p
from xform.lax.linalg.hessenberg import hessenberg, hessenberg_p, tridiagonal, tridiagonal_p
from xform.lax.linalg.inverse import inv_p, pinv_p
from xform.lax.linalg.lu import lu, lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p
from xform.lax.linalg.matrices import hermitian_part_p, triangle_p
from xform.lax.linalg.qdwh import qdwh, qdwh_p
from xform.lax.linalg.qr import qr, qr_p
from xform.lax.linalg.reflections import geqrf_p, householder_product, householder_product_p, ormqr, ormqr_p
from xform.lax.linalg.schur import schur, schur_p
from xform.lax.linalg.solve import det_p, slogdet_p, solve_p
from xform.lax.linalg.svd import SvdAlgorithm, svd, svd_p
from xform.lax.linalg.symmetric_product import cholesky_update, cholesky_update_p, symmetric_product
from xform.lax.linalg.triangular_solve import triangular_solve, triangular_solve_p
from xform.lax.linalg.tridiagonal_solve import tridiagonal_solve, tridiagonal_solve_p
