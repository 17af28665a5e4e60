"""Samplers of vectors and matrices.

May import: `xform.numpy`, `xform.lax`, the other modules of `xform.random`.
"""

import operator
from typing import Any

import numpy as np

import xform.numpy as jnp
from xform import lax
from xform.core import dtypes
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.shapes import canonical_shape
from xform.numpy.promotion import array_of
from xform.random.arguments import float_dtype, key_of
from xform.random.continuous import normal


@api_boundary
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: None = None,
) -> Array:
    """Vectors of the normal distribution with a mean and a covariance matrix.

    Parameters
    ----------
    key : key
    mean : array of shape (..., n)
    cov : array of shape (..., n, n)
        Symmetric, not negative definite; with 'cholesky' positive definite.
    shape : tuple of int, optional
        Of the result without its last axis; by default that of `mean` and `cov` without theirs, which broadcast to it.
    dtype : floating dtype
    method : {'cholesky', 'eigh', 'svd'}
        How `cov` is factorised; for a singular matrix 'eigh' or 'svd'.

    Returns
    -------
    Array of shape (*shape, n)

    Examples
    --------
    >>> import numpy as np
    >>> from xform import random
    >>> random.multivariate_normal(random.key(0), np.zeros(2), np.array([[2.0, 1.0], [1.0, 2.0]]), (3,)).shape
    (3, 2)
    """
    key, dtype = key_of("multivariate_normal", key, out_sharding), float_dtype("multivariate_normal", dtype)
    mean, cov = (
        lax.convert_element_type(array_of("multivariate_normal", x, name), dtype)
        for name, x in (("mean", mean), ("cov", cov))
    )
    if not mean.ndim or cov.ndim < 2 or cov.shape[-2:] != (mean.shape[-1],) * 2:
        raise ValueError(
            f"random.multivariate_normal: expected mean of shape (..., n) and cov of shape (..., n, n), got shapes "
            f"{mean.shape} and {cov.shape}"
        )
    try:
        outer = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2])
        shape = outer if shape is None else canonical_shape(shape)
        fits = np.broadcast_shapes(outer, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"random.multivariate_normal: mean of shape {mean.shape} and cov of shape {cov.shape} without their last "
            f"axes can't be broadcast to {'one shape' if shape is None else f'shape {shape}'}"
        )
    noise = normal(key, (*shape, mean.shape[-1]), dtype)
    return mean + jnp.matmul(_factor(cov, method), noise[..., None])[..., 0]


def _factor(cov: Any, method: str) -> Any:
    """A matrix whose product with its transpose is `cov`."""
    if method == "cholesky":
        return jnp.linalg.cholesky(cov)
    if method == "eigh":
        values, vectors = jnp.linalg.eigh(cov)
    elif method == "svd":
        vectors, values, _ = jnp.linalg.svd(cov)
    else:
        raise ValueError(f"random.multivariate_normal: method must be 'cholesky', 'eigh' or 'svd', got {method!r}")
    return vectors * jnp.sqrt(jnp.maximum(values, 0))[..., None, :]  # rounding makes an eigenvalue 0 negative


@api_boundary
def orthogonal(
    key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None, *, out_sharding: None = None
) -> Array:
    """Orthogonal (unitary) matrices, all of them equally probable [1]_.

    Parameters
    ----------
    key : key
    n : int
        Rows.
    shape : tuple of int
    dtype : floating or complex dtype
    m : int, optional
        Columns, by default n; with more of them than rows (or fewer) the rows (columns) are orthonormal.

    Returns
    -------
    Array of shape (*shape, n, m)

    .. [1] F. Mezzadri, "How to generate random matrices from the classical compact groups", Notices of the AMS 54
       (2007), arXiv:math-ph/0609050.

    Examples
    --------
    >>> from xform import random
    >>> q = random.orthogonal(random.key(0), 3)
    >>> bool(abs(q @ q.T - np.eye(3)).max() < 1e-14)
    True
    """
    key, shape, n = key_of("orthogonal", key, out_sharding), canonical_shape(shape), operator.index(n)
    m = n if m is None else operator.index(m)
    dtype = dtypes.default_float() if dtype is None else dtype
    q, r = jnp.linalg.qr(normal(key, (*shape, max(n, m), min(n, m)), dtype))
    # The signs make the factorisation unique, without which the result would depend on the algorithm.
    q = q * jnp.sign(jnp.diagonal(r, axis1=-2, axis2=-1))[..., None, :]
    return jnp.swapaxes(q, -2, -1) if n < m else q
