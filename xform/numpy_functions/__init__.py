"""`numpy_function`: functions that are written with plain NumPy, unchanged, under all transformations.

Such a function creates arrays and fills them, which is at odds with the immutable arrays that transformations need. So
its code is run as it is, but sees other things by its names (`rebuilding`, `classes`): instead of NumPy's functions,
*operations* (`operations`, `namespaces`), and instead of ndarrays, arrays whose memory holds an immutable array that
each assignment replaces by its next version (`arrays`, `methods`, `memory`). What depends on nothing traced is left to
NumPy, while the function runs; where nothing is traced at all, the function itself is called (`evaluation`).

Nothing that exists is changed for that, neither NumPy nor the function nor its module: other threads see nothing of it,
and nothing is left behind after an error.

May import: `xform.core`; the modules of the package when a function is made.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def numpy_function(f: _F) -> _F:
    """Make a function that is written with plain NumPy one that can be transformed.

    Parameters
    ----------
    f : callable
        A function of Python, which may use all of NumPy and `math`, create arrays (``np.zeros(n)``) and fill them
        (``a[i] = x``, ``a[1:, j] += x``, ``a[mask] = 0``, ``out=``); what it calls in turn may do so, too. Views share
        memory as NumPy's do.

    Returns
    -------
    callable
        Takes and returns pytrees of arrays, as `f` does with ndarrays; results are `Array`s.

    Raises
    ------
    TypeError
        If `f` isn't written in Python.
    ValueError
        By the call, for an assignment into an argument, or into an array of the module or the enclosing function.

    Notes
    -----
    Under ``jit`` and ``vmap`` traced values can't decide what Python does (``if``, ``while``); with ``grad`` and
    ``jvp`` alone they can. Loops are unrolled. What isn't traced is computed by NumPy when the function is traced.

    Examples
    --------
    >>> import numpy as np, xform
    >>> @xform.numpy_function
    ... def compound(rates):
    ...     value = np.ones(len(rates) + 1)
    ...     for i, rate in enumerate(rates):
    ...         value[i + 1] = value[i] * (1 + rate)
    ...     return value[-1]
    >>> xform.grad(compound)(np.array([0.0, 1.0, 0.5]))
    Array([3. , 1.5, 2. ], dtype=float64)
    """
    from xform.numpy_functions.rebuilding import make

    return make(f)
