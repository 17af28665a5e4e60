"""`jet`: Taylor mode.

May import: `api.arguments`, `interpreters.jet`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.api.arguments import check_callable, flat_arrays
from xform.core import dtypes, tree
from xform.core.array import ArrayImpl, get_aval
from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.interpreters import jet as taylor
from xform.interpreters.tangents import Zero, instantiate, is_zero, zero_of
from xform.lax.conversion import convert


@api_boundary
def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """Taylor mode: derivatives of `fun` along a curve, of all orders at once.

    Where n nested `jvp` need 2^n times the operations of `fun`, `jet` needs O(n^2), in O(n) equations. (It takes O(n^2)
    equations for what doesn't satisfy a simple differential equation, as `lgamma` and powers with variable exponents.)

    Parameters
    ----------
    fun : function of pytrees of arrays
    primals : tuple or list
        Arguments: where the curve x(t) is at t = 0.
    series : tuple or list, one entry per argument
        Each a tuple or list of n terms structured like the argument, with its shapes and dtypes: the derivatives of
        x(t) at 0, of order 1 to n. Terms of integers are of dtype float0. What is known to be zero costs nothing.
    factorial_scaled : bool
        Whether terms are derivatives; if not, they are Taylor coefficients, derivatives of order k over k!.

    Returns
    -------
    ``(out, series out)``
        ``fun(*primals)``, and with the same structure, for each array of it, a list of its n terms.

    Raises
    ------
    ValueError
        If the series have different lengths.
    TypeError
        If a term isn't like its argument.
    NotImplementedError
        If an operation has neither a `jet` nor a `jvp` rule.

    Notes
    -----
    Each operation solves the differential equation that its first derivative states, by recurrences for the
    coefficients (A. Griewank, A. Walther, "Evaluating Derivatives", 2nd ed., SIAM 2008, chapter 13).

    Examples
    --------
    The first five derivatives of the tangent at 0:

    >>> import xform, xform.numpy as xnp
    >>> value, terms = xform.jet(xnp.tan, (0.0,), ((1.0, 0.0, 0.0, 0.0, 0.0),))
    >>> [float(t) for t in terms]
    [1.0, 0.0, 2.0, 0.0, 16.0]
    """
    check_callable("jet", fun)
    for name, value in (("primals", primals), ("series", series)):
        if not isinstance(value, tuple | list):
            raise TypeError(f"jet: {name} must be a tuple or list, one entry per argument, got {type(value).__name__}")
    leaves, treedef = flat_arrays("jet", tuple(primals))
    order, terms = _flat_terms(primals, series, leaves)
    if factorial_scaled:
        terms = [_scaled(t, taylor.Hooks.divide, i % order + 1) for i, t in enumerate(terms)]
    out_tree = tree.LEAF

    def flat(*xs: Any) -> list[Any]:
        nonlocal out_tree
        outs, out_tree = tree.flatten(fun(*treedef.unflatten(xs)))
        return outs

    outs, terms = taylor.jet(flat, leaves, terms, order)
    if factorial_scaled:
        terms = [_scaled(t, taylor.Hooks.multiply, i % order + 1) for i, t in enumerate(terms)]
    terms = [instantiate(t) for t in terms]
    return out_tree.unflatten(outs), out_tree.unflatten([terms[i * order : (i + 1) * order] for i in range(len(outs))])


def _scaled(term: Any, operation: Callable[[Any, int], Any], k: int) -> Any:
    return term if k == 1 or is_zero(term) else operation(term, math.factorial(k))


def _flat_terms(primals: Sequence[Any], series: Sequence[Any], leaves: Sequence[Any]) -> tuple[int, list[Any]]:
    """The order, and for each leaf in turn its terms, checked, symbolic zeros where they are known to be zero."""
    if len(series) != len(primals):
        raise ValueError(f"jet: series must have one entry per argument, got {len(series)} for {len(primals)} primals")
    for i, entry in enumerate(series):
        if not isinstance(entry, tuple | list):
            raise TypeError(f"jet: the series of argument {i} must be a tuple or list of terms, got {entry!r}")
        if len(entry) != len(series[0]):
            raise ValueError(
                f"jet: all series must have the same length, got {len(series[0])} terms for argument 0 and "
                f"{len(entry)} for argument {i}"
            )
    order = len(series[0]) if series else 0
    out: list[Any] = []
    start = 0
    for i, (primal, entry) in enumerate(zip(primals, series, strict=True)):
        treedef = tree.structure(primal)
        n = treedef.num_leaves
        rows = []
        for k, term in enumerate(entry):
            flat, structure = flat_arrays(f"jet: term {k + 1} of argument {i}", term)
            if structure != treedef:
                raise TypeError(
                    f"jet: term {k + 1} of argument {i} must have the argument's structure {treedef}, got {structure}"
                )
            rows.append(flat)
        paths = tree.paths(treedef)
        for j, x in enumerate(leaves[start : start + n]):
            name = f"argument {i}{tree.keystr(paths[j])}"
            out += [_check_term(x, row[j], f"term {k + 1} of {name}") for k, row in enumerate(rows)]
        start += n
    return order, out


def _check_term(x: Any, term: Any, name: str) -> Any:
    want = get_aval(x).to_tangent_aval()
    if isinstance(term, np.ndarray) and term.dtype == dtypes.float0:
        have = ShapedArray(term.shape, dtypes.float0)
    else:
        have = get_aval(term)
    if have.shape != want.shape or (have.dtype != want.dtype and (not have.weak_type or want.dtype == dtypes.float0)):
        hint = "; only floats and complex numbers have derivatives" if want.dtype == dtypes.float0 else ""
        raise TypeError(
            f"jet: {name} must be {want.str_short()}, for an argument of {get_aval(x).str_short()}, got "
            f"{have.str_short()}{hint}"
        )
    if want.dtype == dtypes.float0:
        return Zero(want)
    if type(term) is ArrayImpl and term._host is not None and not np.any(term._host):
        return zero_of(x)
    return convert(term, want.dtype)
