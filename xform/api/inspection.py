"""`make_jaxpr`, `eval_shape`, `ShapeDtypeStruct`, `closure_convert`: looking at programs without running them.

May import: `api.arguments`, `api.compile`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.api.arguments import canonical_argnums, check_callable, name_of
from xform.api.compile import shape_of
from xform.core import dtypes, tree
from xform.core.errors import api_boundary
from xform.core.jaxpr import ClosedJaxpr
from xform.core.trace import AxisFrame, extend_axis_env
from xform.interpreters.staging import trace_to_jaxpr


class ShapeDtypeStruct:
    """A shape and a dtype, to stand for an array where its values don't matter.

    Examples
    --------
    >>> ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __new__(cls, shape: Sequence[int] = (), dtype: Any = None, **_: Any) -> Any:
        """One of a dtype of random keys is an array of keys whose data are a `ShapeDtypeStruct`."""
        if isinstance(dtype, dtypes.ExtendedDType):
            return dtype.keys_of(ShapeDtypeStruct((*shape, dtype.itemsize // 4), np.uint32))
        return object.__new__(cls)

    def __init__(self, shape: Sequence[int], dtype: Any, *, sharding: Any = None, weak_type: bool = False, **_: Any):
        self.shape = tuple(int(d) for d in shape)
        self.dtype = np.dtype(dtypes.check_user_dtype(dtype, "ShapeDtypeStruct"))
        self.sharding, self.weak_type = sharding, weak_type

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and (self.shape, self.dtype, self.weak_type) == (
            other.shape, other.dtype, other.weak_type,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak})"

    def update(self, **parts: Any) -> "ShapeDtypeStruct":
        """A copy with some parts replaced."""
        old = {
            "shape": self.shape,
            "dtype": self.dtype,
            "weak_type": self.weak_type,
            "sharding": self.sharding,
        }
        return ShapeDtypeStruct(**{**old, **parts})


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """A function that returns the jaxpr of `fun` for its arguments.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> print(xform.make_jaxpr(lambda x: 2 * xnp.sin(x))(1.0))
    { lambda ; a:f64[]. let
        b:f64[] = sin a
        c:f64[] = mul 2.0:f64[] b
      in (c,) }
    """
    check_callable("make_jaxpr", fun)

    @functools.wraps(fun)
    @api_boundary
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        static = set(canonical_argnums("make_jaxpr", static_argnums, len(args))) if static_argnums != () else set()
        leaves, treedef = tree.flatten((tuple(a for i, a in enumerate(args) if i not in static), kwargs))
        out_tree: Any = None

        def flat(*xs: Any) -> list[Any]:
            nonlocal out_tree
            dynamic, kw = treedef.unflatten(xs)
            rest = iter(dynamic)
            outs, out_tree = tree.flatten(fun(*[a if i in static else next(rest) for i, a in enumerate(args)], **kw))
            return outs

        with extend_axis_env([AxisFrame(name, size) for name, size in axis_env or ()]):
            jaxpr, consts = trace_to_jaxpr(flat, [shape_of(x) for x in leaves], name_of(fun), "make_jaxpr")
        closed = ClosedJaxpr(jaxpr, consts)
        if not return_shape:
            return closed
        shapes = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in closed.out_avals]
        return closed, out_tree.unflatten(shapes)

    return wrapper


@api_boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Shapes and dtypes of a function's result, without computing it.

    Parameters
    ----------
    *args, **kwargs : pytrees of arrays, or of anything with shape and dtype

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> xform.eval_shape(xnp.dot, ShapeDtypeStruct((2, 3), float), ShapeDtypeStruct((3, 4), float))
    ShapeDtypeStruct(shape=(2, 4), dtype=float64)
    """
    return make_jaxpr(fun, return_shape=True)(*args, **kwargs)[1]


@api_boundary
def typeof(x: Any) -> Any:
    """The type of an array as the transformations see it: its aval.

    Examples
    --------
    >>> typeof(np.ones((2, 3)))
    f64[2,3]
    """
    return shape_of(x)
