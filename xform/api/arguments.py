"""What the transformations share: argument numbers, checks, functions of pytrees as functions of flat lists.

May import: `xform.core`.
"""

import functools
import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import Array, ArrayImpl, own
from xform.core.trace import Tracer

_LEAVES = (ArrayImpl, Tracer)


def name_of(function: Any) -> str:
    """A function's name, for messages and for compiled programs."""
    name = getattr(function, "__name__", None)
    if name is None and hasattr(function, "func"):
        return name_of(function.func)
    return name or type(function).__name__


def check_callable(what: str, function: Any) -> None:
    """TypeError unless `function` can be called."""
    if not callable(function):
        raise TypeError(f"{what}: expected a function, got {function!r} of type {type(function).__name__}")


def canonical_argnums(what: str, argnums: Any, n_args: int) -> tuple[int, ...]:
    """Argument numbers as a tuple of non-negative ints."""
    numbers = tuple(map(operator.index, argnums if isinstance(argnums, Iterable) else (argnums,)))
    for i in numbers:
        if not -n_args <= i < n_args:
            raise ValueError(
                f"{what}: argument number {i} is out of range for a call with {n_args} positional arguments"
            )
    found = tuple(i % n_args for i in numbers)
    if len(set(found)) < len(found):
        raise ValueError(f"{what}: argument numbers must differ, got {numbers}")
    return found


def leaf_name(treedef: Any, i: int, has_kwargs: bool = True) -> str:
    """How leaf `i` of ``args`` (or ``(args, kwargs)``) is called in messages: ``argument 0['w']``."""
    path = tree.paths(treedef)[i]
    keyword = False
    if has_kwargs:
        keyword, path = path[0].idx == 1, path[1:]
    first = repr(path[0].key) if keyword else path[0].idx
    return f"argument {first}{tree.keystr(path[1:])}"


def as_array(x: Any, what: Callable[[], str], hint: str = "") -> Any:
    """An array for a leaf; TypeError, naming it by `what()`, for what is none."""
    if isinstance(x, _LEAVES):
        return x
    if isinstance(x, np.ndarray | np.generic | bool | int | float | complex | Array) or hasattr(x, "__array__"):
        if isinstance(x, np.ndarray) and x.dtype == dtypes.float0:
            return x
        try:
            return own(x)
        except TypeError as error:
            raise TypeError(f"{what()}: {error}") from None
    raise TypeError(f"{what()} is {x!r} of type {type(x).__name__}, which is not an array or a number{hint}")


def flatten(value: Any) -> tuple[list[Any], Any]:
    """`tree.flatten`, faster for a single array."""
    return ([value], tree.LEAF) if isinstance(value, _LEAVES) else tree.flatten(value)


def flat_arrays(what: str, value: Any, name: Callable[[Any, int], str] | None = None) -> tuple[list[Any], Any]:
    """The leaves of a pytree as arrays, and its structure; ``name(treedef, i)`` calls a leaf that is none."""
    if isinstance(value, _LEAVES):
        return [value], tree.LEAF
    leaves, treedef = tree.flatten(value)
    out = []
    for i, x in enumerate(leaves):
        if type(x) is not ArrayImpl and not isinstance(x, Tracer):
            x = as_array(x, functools.partial(_describe, what, name or _leaf_of_value, treedef, i))
        out.append(x)
    return out, treedef


def _describe(what: str, name: Callable[[Any, int], str], treedef: Any, i: int) -> str:
    return f"{what}: {name(treedef, i)}"


def _leaf_of_value(treedef: Any, i: int) -> str:
    return f"argument{tree.keystr(tree.paths(treedef)[i])}"


def signature_of(function: Any) -> inspect.Signature | None:
    """The signature, or None where Python knows none."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def static_arguments(what: str, fun: Any, nums: Any, names: Any) -> tuple[tuple[int, ...], frozenset[str]]:
    """Numbers and names of arguments, completed from each other by the signature; None: not given."""
    if nums is None and names is None:
        return (), frozenset()
    numbers = () if nums is None else (nums,) if isinstance(nums, int) else tuple(nums)
    strings = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    signature = signature_of(fun)
    if signature is None:
        return numbers, frozenset(strings)
    positional = [
        p.name for p in signature.parameters.values()
        if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    kinds = {p.kind for p in signature.parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        for i in numbers:
            if not -len(positional) <= i < len(positional):
                raise ValueError(f"{what} of {name_of(fun)}: argument number {i} is out of range for {signature}")
        numbers = tuple(i % len(positional) for i in numbers)
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for s in strings:
            if s not in signature.parameters:
                raise ValueError(f"{what} of {name_of(fun)}: there is no argument {s!r} in {signature}")
    from_names = tuple(positional.index(s) for s in strings if s in positional)
    from_numbers = tuple(positional[i] for i in numbers if -len(positional) <= i < len(positional))
    if nums is None or names is None:
        numbers, strings = (*numbers, *from_names), (*strings, *from_numbers)
    return tuple(dict.fromkeys(numbers)), frozenset(strings)
