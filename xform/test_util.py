"""`xform.test_util`: check derivatives against central differences, in the tests of programs.

May import: `xform.api`, `xform.core`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.api.derivatives import jvp, vjp
from xform.core import dtypes, tree
from xform.core.array import Array, get_aval, own

__all__ = ["check_grads", "check_jvp", "check_vjp", "numerical_jvp"]


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check derivatives of `f` up to an order, along random directions, in forward and reverse mode.

    Order 2 checks the derivatives of the first derivatives: forward over forward, and so on.

    Parameters
    ----------
    f : function of pytrees of arrays
    args : tuple
        The point, at which `f` must be smooth. Integer arguments are held constant.
    order : int
    modes : some of "fwd", "rev"
    atol, rtol : float, optional
        Tolerances; by default 1e-6 in float64, more in narrower types.
    eps : float, optional
        The step of the differences; by default the cube root of the dtype's own eps.

    Raises
    ------
    AssertionError
        Where a derivative is wrong; the message tells which: ``rev of fwd`` is reverse over forward mode.

    Examples
    --------
    >>> import numpy as np, xform.numpy as xnp
    >>> check_grads(lambda x: xnp.sin(x) ** 2, (np.array([0.5, 2.0]),), order=2)
    """
    if order < 1:
        raise ValueError(f"check_grads: order must be at least 1, got {order}")
    if not modes or set(modes) - {"fwd", "rev"}:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', got {modes!r}")
    _check_grads(_of_arrays(f), _arrays(args), order, modes, atol, rtol, eps, "")


def _check_grads(
    f: Any, args: tuple, order: int, modes: Sequence[str], atol: Any, rtol: Any, eps: Any, of: str
) -> None:
    rng = np.random.default_rng(0)
    for mode in modes:
        if mode == "fwd":
            check_jvp(f, functools.partial(jvp, f), args, atol, rtol, eps, f"fwd{of}")
            directions = _random_tangents(rng, args)

            def derived(*xs: Any, ts: Any = directions) -> Any:
                return _inexact(jvp(f, xs, ts)[1])
        else:
            check_vjp(f, functools.partial(vjp, f), args, atol, rtol, eps, f"rev{of}")
            weights = _random_tangents(rng, f(*args))

            def derived(*xs: Any, ts: Any = weights) -> Any:
                return _inexact(vjp(f, *xs)[1](ts))

        if order > 1:
            _check_grads(derived, args, order - 1, modes, atol, rtol, eps, f" of {mode}{of}")


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "jvp",
) -> None:
    """Check ``f_jvp(args, tangents) -> (value, tangent)`` against `f` and its central differences.

    Examples
    --------
    >>> import functools, xform, xform.numpy as xnp
    >>> check_jvp(xnp.sin, functools.partial(xform.jvp, xnp.sin), (1.0,))
    """
    f, args = _of_arrays(f), _arrays(args)
    tangents = _random_tangents(np.random.default_rng(1), args)
    out = f(*args)
    value, tangent = f_jvp(args, tangents)
    atol, rtol = _tolerances(atol, rtol, args, out)
    _assert_close(value, out, atol, rtol, f"value of {err_msg}")
    _assert_close(tangent, numerical_jvp(f, args, tangents, eps), atol, rtol, f"tangent of {err_msg}")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "vjp",
) -> None:
    """Check ``f_vjp(*args) -> (value, pullback)`` against `f` and its central differences.

    Examples
    --------
    >>> import functools, xform, xform.numpy as xnp
    >>> check_vjp(xnp.sin, functools.partial(xform.vjp, xnp.sin), (1.0,))
    """
    f, args = _of_arrays(f), _arrays(args)
    rng = np.random.default_rng(2)
    tangents = _random_tangents(rng, args)
    out = f(*args)
    value, pullback = f_vjp(*args)
    atol, rtol = _tolerances(atol, rtol, args, out)
    _assert_close(value, out, atol, rtol, f"value of {err_msg}")
    weights = _random_tangents(rng, out)
    got = _inner(pullback(weights), tangents)
    expected = _inner(weights, numerical_jvp(f, args, tangents, eps))
    _assert_close(got, expected, atol, rtol, f"<cotangents, tangents> of {err_msg}")


def numerical_jvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], eps: float | None = None
) -> Any:
    """The central difference of `f` along `tangents`; of integer results float0 zeros.

    Examples
    --------
    >>> round(float(numerical_jvp(lambda x: x**3, (2.0,), (1.0,))), 6)
    12.0
    """
    h = _precision(primals, f(*primals)) ** (1 / 3) if eps is None else eps

    def moved(step: float) -> Any:
        def move(x: Any, t: Any) -> Any:
            dtype = get_aval(x).dtype
            return np.asarray(np.asarray(x) + step * np.asarray(t), dtype) if _is_inexact(x) else x

        return f(*[tree.map(move, x, t) for x, t in zip(primals, tangents, strict=True)])

    def difference(ahead: Any, behind: Any) -> Any:
        if not _is_inexact(ahead):
            return np.zeros(get_aval(ahead).shape, dtypes.float0)
        wide = np.result_type(np.asarray(ahead).dtype, np.float32)
        return (np.asarray(ahead, wide) - np.asarray(behind, wide)) / (2 * h)

    return tree.map(difference, moved(h), moved(-h))


def _arrays(args: Sequence[Any]) -> tuple:
    """Arguments as arrays of the library, whose types promote by its rules and not by NumPy's."""
    return tree.map(lambda x: x if isinstance(x, Array) else own(x), tuple(args))


def _of_arrays(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: f(*_arrays(args))


def _is_inexact(x: Any) -> bool:
    return dtypes.issubdtype(get_aval(x).dtype, np.inexact)


def _inexact(value: Any) -> list[Any]:
    """The leaves that can be differentiated further."""
    return [x for x in tree.leaves(value) if getattr(x, "dtype", None) != dtypes.float0 and _is_inexact(x)]


def _precision(*values: Any) -> float:
    """The largest eps among the floats."""
    return max(
        (float(dtypes.finfo(get_aval(x).dtype).eps) for x in tree.leaves(values) if _is_inexact(x)),
        default=1e-16,
    )


def _tolerances(atol: float | None, rtol: float | None, *values: Any) -> tuple[float, float]:
    default = min(max(1e-6, 200 * _precision(*values) ** (2 / 3)), 0.1)
    return default if atol is None else atol, default if rtol is None else rtol


def _random_tangents(rng: np.random.Generator, value: Any) -> Any:
    """A random tangent or cotangent of a pytree of arrays."""

    def one(x: Any) -> Any:
        aval = get_aval(x).to_tangent_aval()
        if aval.dtype == dtypes.float0:
            return np.zeros(aval.shape, dtypes.float0)
        v = rng.standard_normal(aval.shape)
        if dtypes.issubdtype(aval.dtype, np.complexfloating):
            v = v + 1j * rng.standard_normal(aval.shape)
        return np.asarray(v).astype(aval.dtype)

    return tree.map(one, value)


def _inner(a: Any, b: Any) -> float:
    """The real product that pairs cotangents with tangents; without conjugation, as `vjp` is without."""
    total = 0.0
    for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.dtype != dtypes.float0 and y.dtype != dtypes.float0:
            wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
            total += float(np.sum(x.astype(wide) * y.astype(wide)).real)
    return total


def _assert_close(got: Any, expected: Any, atol: float, rtol: float, what: str) -> None:
    got_leaves, got_tree = tree.flatten(got)
    leaves, treedef = tree.flatten(expected)
    if got_tree != treedef:
        raise AssertionError(f"{what}: structure {got_tree}, expected {treedef}")
    for x, y in zip(got_leaves, leaves, strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if x.shape != y.shape or (x.dtype == dtypes.float0) != (y.dtype == dtypes.float0):
            raise AssertionError(f"{what}: {x.dtype}{x.shape}, expected {y.dtype}{y.shape}")
        if x.dtype != dtypes.float0:
            wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
            np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol, atol, err_msg=what)
