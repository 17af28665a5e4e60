"""`fwd_and_bwd`: the two passes of reverse mode as functions of their own.

May import: `api.arguments`, `api.compile`, `api.derivatives`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from xform.api.arguments import canonical_argnums, check_callable, name_of
from xform.api.compile import jit
from xform.api.derivatives import vjp


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of `fun`, each compiled once.

    Parameters
    ----------
    fun : function of pytrees of arrays
    argnums : int or sequence of int
        Positional arguments to differentiate.
    has_aux : bool
        Whether `fun` returns a pair of its result and auxiliary data.
    jitted : bool
        Whether the two are compiled.

    Returns
    -------
    fwd : ``(*args) -> (result, residuals)``, with `has_aux` ``(result, residuals, aux)``
        The residuals are a pytree of arrays.
    bwd : ``(residuals, cotangent) -> cotangents``
        A tuple of them, or the only one if `argnums` is an int.

    Examples
    --------
    >>> import xform
    >>> fwd, bwd = xform.fwd_and_bwd(lambda x, y: x * y, (0, 1))
    >>> out, residuals = fwd(3.0, 4.0)
    >>> [float(ct) for ct in bwd(residuals, 1.0)]
    [4.0, 3.0]
    """
    check_callable("fwd_and_bwd", fun)

    def fwd(*args: Any) -> Any:
        numbers = canonical_argnums(f"fwd_and_bwd of {name_of(fun)}", argnums, len(args))

        def chosen(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(numbers, xs, strict=True):
                full[i] = x
            return fun(*full)

        return vjp(chosen, *[args[i] for i in numbers], has_aux=has_aux)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        cotangents = residuals(cotangent)
        return cotangents[0] if isinstance(argnums, int) else cotangents

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
