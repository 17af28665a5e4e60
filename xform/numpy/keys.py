"""Arrays of random keys in functions that only move elements: `stack`, `where`, `reshape` and their kin.

A key array is an array of numbers with one more axis, so such a function of keys is the function mapped over that axis.
This is tried when a function has refused its arguments; numbers pay nothing for it.

May import: `xform.lax`, `xform.core`; `xform.api` within functions.
"""

import functools
from collections.abc import Callable
from typing import Any

from xform import lax
from xform.core import dtypes, tree

_MOVING = (
    "append array array_split atleast_1d atleast_2d atleast_3d block broadcast_arrays broadcast_to choose "
    "column_stack compress concat copy delete diagonal dsplit dstack expand_dims flip fliplr flipud full full_like "
    "hsplit hstack insert "
    "matrix_transpose moveaxis permute_dims ravel repeat roll rollaxis rot90 select split squeeze swapaxes take "
    "take_along_axis tile transpose unstack vsplit vstack"
)


_MOVING_IN_LAX = (
    "broadcast broadcast_in_dim collapse concatenate dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim "
    "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim expand_dims index_in_dim index_take "
    "reshape rev select select_n slice slice_in_dim split squeeze transpose"
)


def is_key(x: Any) -> bool:
    """Whether x is an array of random keys."""
    return isinstance(getattr(x, "dtype", None), dtypes.ExtendedDType) and hasattr(x, "_data")


def among(*args: Any) -> bool:
    """Whether there are keys among (nested) arguments."""
    return any(among(*x) if isinstance(x, list | tuple) else is_key(x) for x in args)


def mapped(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The result of a function of arrays for keys."""
    from xform.api.mapping import vmap

    keys: list[Any] = []

    def collect(x: Any) -> None:
        if isinstance(x, list | tuple):
            for e in x:
                collect(e)
        elif is_key(x):
            keys.append(x)

    def with_numbers(*numbers: Any) -> Any:
        left = iter(numbers)

        def replaced(x: Any) -> Any:
            if isinstance(x, list | tuple):
                return type(x)(replaced(e) for e in x)
            return next(left) if is_key(x) else x

        return function(*replaced(args), **kwargs)

    collect(args)
    out = vmap(with_numbers, -1, -1)(*(k._data for k in keys))
    return tree.map(keys[0]._like, out)


def _for_keys(function: Callable[..., Any]) -> Callable[..., Any]:
    short_way = getattr(function, "decorate", None)
    if short_way is not None:  # see `numpy.fast`: it stays in front
        general = _for_keys(function.__wrapped__)  # type: ignore[attr-defined]
        general.__name__ = general.__qualname__ = function.__name__
        general.__doc__ = function.__doc__
        return short_way(general)

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:
            if not among(*args):
                raise
        return mapped(function, *args, **kwargs)

    return wrapper


def install(functions: dict[str, Any]) -> None:
    """Let the public functions of `xform.numpy` and `xform.lax` that only move elements take keys."""
    for found, names in ((functions, _MOVING), (vars(lax), _MOVING_IN_LAX)):
        for name in names.split():
            found[name] = _for_keys(found[name])
