"""`platform_dependent`: another program on each platform.

May import: `lax.control_flow.cond`, the other modules of `lax`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from xform.core.avals import ShapedArray
from xform.core.errors import api_boundary
from xform.core.trace import Primitive, Tracer
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import zero_of
from xform.lax.control_flow.cond import bind_branches

PLATFORMS = ("cpu", "gpu", "cuda", "rocm", "tpu")


def _index(platform: str, names: tuple[str, ...], default: bool) -> np.int32:
    """Which of the branches is for `platform`; the default comes last."""
    for i, name in enumerate(names):
        if name == platform or (platform == "gpu" and name in ("cuda", "rocm")):
            return np.int32(i)
    if default:
        return np.int32(len(names))
    raise NotImplementedError(
        f"lax.platform_dependent: no function for platform {platform!r} and no default, only for {', '.join(names)}"
    )


def _lower(ctx: Context, *, names: tuple[str, ...], default: bool) -> Value:
    return ctx.constant(_index(ctx.platform, names, default))


platform_index_p = Primitive("platform_index")
platform_index_p.abstract_eval = lambda *, names, default: ShapedArray((), np.int32)
platform_index_p.host = lambda *, names, default: _index("cpu", names, default)
platform_index_p.jvp = lambda primals, ts, **params: (out := platform_index_p.bind(**params), zero_of(out))
platform_index_p.batch = lambda axis, args, dims, **params: (platform_index_p.bind(**params), None)
platform_index_p.lower = _lower


@api_boundary
def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """Apply the function that is meant for the platform the program runs on.

    Inside `jit` it is chosen when the program is lowered, and the others are not compiled; all must return the same
    structure and types. NumPy counts as the platform cpu.

    Parameters
    ----------
    *args : pytrees of arrays
    default : function of these, optional
        For platforms that aren't named.
    **per_platform : functions, by the names cpu, cuda, rocm, gpu (either of these two) and tpu

    Raises
    ------
    NotImplementedError
        When the program is evaluated on, or lowered for, a platform without a function.

    Examples
    --------
    >>> import xform
    >>> f = xform.jit(lambda x: xform.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x + 2))
    >>> int(f(1))
    2
    """
    for name, function in {**per_platform, **({"default": default} if default is not None else {})}.items():
        if name not in (*PLATFORMS, "default"):
            raise ValueError(f"lax.platform_dependent: {name!r} is no platform, these are: {', '.join(PLATFORMS)}")
        if not callable(function):
            raise TypeError(f"lax.platform_dependent: {name} must be a function, got {function!r}")
    functions = [*per_platform.values(), *([default] if default is not None else [])]
    if not functions:
        raise TypeError("lax.platform_dependent: give a function for at least one platform, or a default")
    index = platform_index_p.bind(names=tuple(per_platform), default=default is not None)
    if not isinstance(index, Tracer):
        return functions[int(index)](*args)
    return bind_branches("platform_dependent", [*per_platform, "default"][: len(functions)], index, functions, args)
