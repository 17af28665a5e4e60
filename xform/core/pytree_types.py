"""Types of pytree nodes that users add: by functions, by methods, as dataclasses; and `Partial`.

May import: the standard library, `core.pytree`, `core.treedef`.
"""

import functools
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, TypeVar

from xform.core.pytree import FlattenedIndexKey, GetAttrKey, add_node, find_node, visitor_by_value
from xform.core.treedef import NodeType

_T = TypeVar("_T")


def _register(name: str, nodetype: Any, flatten: Callable, unflatten: Callable, keys: Callable) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(f"{name}: expected a class, got {nodetype!r}")
    known = find_node(nodetype)
    if known is not None and not known.is_namedtuple:
        raise ValueError(f"{name}: {nodetype} is registered already")
    node = NodeType(nodetype, flatten, unflatten, keys)
    add_node(node, visitor_by_value(node))


def register_pytree_node(
    nodetype: type[_T],
    flatten_func: Callable[[_T], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, tuple], _T],
    flatten_with_keys_func: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Any]] | None = None,
) -> None:
    """Make instances of a class nodes of pytrees.

    Parameters
    ----------
    nodetype : type
        The class itself; subclasses are registered for themselves.
    flatten_func : callable
        ``flatten_func(x) -> (children, aux)``: an iterable of children, and what else it takes to restore
        `x`; `aux` is compared by ``==``, and hashed where functions are compiled.
    unflatten_func : callable
        ``unflatten_func(aux, children) -> x``. It must take children of any type.
    flatten_with_keys_func : callable, optional
        As `flatten_func`, with pairs (key path entry, child) for children.

    Raises ValueError if the class is registered already, TypeError if it is no class.

    Examples
    --------
    >>> from xform.core.pytree import leaves
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> register_pytree_node(Interval, lambda i: ((i.low, i.high), None), lambda _, bounds: Interval(*bounds))
    >>> leaves([Interval(1, 2), 3])
    [1, 2, 3]
    """

    def keys(aux: Any, n: int, x: Any) -> list[Any]:
        if flatten_with_keys_func is None:
            return [FlattenedIndexKey(i) for i in range(n)]
        if x is None:
            x = unflatten_func(aux, (None,) * n)
        return [key for key, _ in flatten_with_keys_func(x)[0]]

    _register("register_pytree_node", nodetype, flatten_func, unflatten_func, keys)


def register_pytree_with_keys(
    nodetype: type[_T],
    flatten_with_keys: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, tuple], _T],
    flatten_func: Callable[[_T], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make instances of a class nodes of pytrees whose children have names in key paths.

    `flatten_with_keys` gives pairs (key path entry, child) and auxiliary data; `flatten_func`, the same
    without keys, is optional and quicker. See `register_pytree_node`.
    """

    def flatten_without_keys(x: Any) -> tuple[list[Any], Any]:
        pairs, aux = flatten_with_keys(x)
        return [child for _, child in pairs], aux

    register_pytree_node(nodetype, flatten_func or flatten_without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: type[_T]) -> type[_T]:
    """Decorator: make a class with ``tree_flatten`` and ``tree_unflatten(cls, aux, children)`` a node type.

    Examples
    --------
    >>> from xform.core.pytree import leaves
    >>> @register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> leaves(Box([1, 2]))
    [1, 2]
    """
    register_pytree_node(cls, cls.tree_flatten, cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys_class(cls: type[_T]) -> type[_T]:
    """Decorator like `register_pytree_node_class`, for a class that has ``tree_flatten_with_keys``, too."""
    register_pytree_with_keys(
        cls,
        cls.tree_flatten_with_keys,  # type: ignore[attr-defined]
        cls.tree_unflatten,  # type: ignore[attr-defined]
        getattr(cls, "tree_flatten", None),
    )
    return cls


def register_static(cls: type[_T]) -> type[_T]:
    """Decorator: make instances of a class nodes without leaves, static wherever pytrees are traced.

    They are compared by ``==`` and must be hashable.
    """
    _register("register_static", cls, lambda x: ((), x), lambda x, children: x, lambda aux, n, x: [])
    return cls


def static(**kwargs: Any) -> Any:
    """A field of a dataclass that is static: not a child of the pytree, but part of its structure.

    Keyword arguments are those of `dataclasses.field`. See `register_dataclass`.
    """
    import dataclasses

    metadata = {**kwargs.pop("metadata", {}), "static": True}
    return dataclasses.field(**kwargs, metadata=metadata)


def register_dataclass(
    nodetype: type[_T],
    data_fields: Iterable[str] | None = None,
    meta_fields: Iterable[str] | None = None,
    drop_fields: Iterable[str] = (),
) -> type[_T]:
    """Make a dataclass (or a class that is built from its attributes by keywords) a type of pytree nodes.

    Parameters
    ----------
    nodetype : type
    data_fields : iterable of str, optional
        Attributes that are children.
    meta_fields : iterable of str, optional
        Attributes that belong to the structure: static, hashable. Without these two, a dataclass's fields are
        children but for those marked ``field(metadata={"static": True})``, as `static` does.
    drop_fields : iterable of str
        Fields of the dataclass that are left out.

    Raises TypeError or ValueError if these are not exactly what its constructor needs. Returns the class, so
    that this serves as a decorator, too.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from xform.core.pytree import flatten
    >>> @register_dataclass
    ... @dataclass
    ... class Body:
    ...     mass: float
    ...     name: str = static()
    >>> flatten(Body(1.0, "Moon"))
    ([1.0], PyTreeDef(CustomNode(Body[('Moon',)], [*])))
    """
    import dataclasses

    where = "register_dataclass"
    if (data_fields is None) != (meta_fields is None):
        raise TypeError(f"{where}: give both data_fields and meta_fields or neither, for {nodetype}")
    is_dataclass = dataclasses.is_dataclass(nodetype)
    dropped = frozenset(drop_fields)
    if data_fields is None or meta_fields is None:
        if not is_dataclass:
            raise TypeError(f"{where}: {nodetype} is not a dataclass, so data_fields and meta_fields are required")
        fields = [f for f in dataclasses.fields(nodetype) if f.name not in dropped]  # type: ignore[arg-type]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
        data_fields = [f.name for f in fields if f.name not in meta_fields]
    data, meta = tuple(data_fields), tuple(meta_fields)
    if both := set(data) & set(meta):
        raise ValueError(f"{where}: {sorted(both)} are both data and meta fields of {nodetype}")
    if is_dataclass:
        init = {f.name for f in dataclasses.fields(nodetype) if f.init} - dropped  # type: ignore[arg-type]
        for wrong, problem in ((init - {*data, *meta}, "missing"), ({*data, *meta} - init, "not expected")):
            if wrong:
                raise ValueError(
                    f"{where}: data_fields and meta_fields of {nodetype} must be the fields that its "
                    f"__init__ takes, but {sorted(wrong)} are {problem}; drop_fields leaves fields out"
                )

    get_data, get_meta = _attributes(data), _attributes(meta)
    names = data + meta
    _register(
        where,
        nodetype,
        lambda x: (get_data(x), get_meta(x)),
        lambda aux, children: nodetype(**dict(zip(names, children + aux))),
        lambda aux, n, x: [GetAttrKey(name) for name in data],
    )
    return nodetype


def _attributes(names: tuple[str, ...]) -> Callable[[Any], tuple]:
    """A function that gets these attributes of an object, as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda x: (getattr(x, names[0]),)) if names else (lambda x: ())


class _Whole:
    """A callable in place of a `functools.partial`, which `functools.partial` would take apart."""

    def __init__(self, fun: Callable):
        self.fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __eq__(self, other: Any) -> bool:
        return type(other) is _Whole and self.fun == other.fun

    def __hash__(self) -> int:
        return hash(self.fun)

    def __repr__(self) -> str:
        return repr(self.fun)


class Partial(functools.partial):
    """A `functools.partial` that is a pytree: its arguments are children, its function is static.

    So it may be an argument or a result of transformed functions. A `functools.partial` as function stays
    whole, with its own arguments static.

    Examples
    --------
    >>> from xform.core.pytree import flatten
    >>> double = Partial(pow, 2)
    >>> double(3), flatten(double)
    (8, ([2], PyTreeDef(CustomNode(Partial[<built-in function pow>], [(*,), {}]))))
    """

    def __new__(cls, func: Callable, *args: Any, **kw: Any) -> "Partial":
        return super().__new__(cls, _Whole(func) if isinstance(func, functools.partial) else func, *args, **kw)


register_pytree_node(
    Partial,
    lambda x: ((x.args, x.keywords), x.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
)
