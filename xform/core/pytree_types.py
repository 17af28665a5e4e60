"""Types of pytree nodes that users add, by functions, by methods, as dataclasses; and the entries of key paths.

Each becomes a type of optree's in the namespace `NAMESPACE`.

May import: the standard library, optree.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import optree

#: Where optree keeps the types that are registered here, apart from those of other libraries.
NAMESPACE = "xform"
_T = TypeVar("_T")

# ---- Key paths ---------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The step to the element of a list or tuple with index `idx`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@dataclasses.dataclass(frozen=True)
class DictKey:
    """The step to the value of a dict at `key`."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The step to the attribute `name` of a named tuple or dataclass."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """The step to child number `key` of a custom node that was registered without keys."""

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


class GivenEntry(optree.PyTreeEntry):
    """optree's step to a child whose key path entry came from the flatten function."""

    def codify(self, /, node: str = "") -> str:
        """As text, after that of the node."""
        return f"{node}{self.entry}"


def key_of(entry: optree.PyTreeEntry) -> Any:
    """One step of a key path from optree's."""
    match entry:
        case GivenEntry():
            return entry.entry
        case optree.NamedTupleEntry() | optree.StructSequenceEntry():
            return GetAttrKey(entry.field)
        case optree.GetAttrEntry():
            return GetAttrKey(entry.name)
        case optree.SequenceEntry():
            return SequenceKey(entry.index)
        case optree.MappingEntry():
            return DictKey(entry.key)
    return FlattenedIndexKey(entry.entry)


# ---- Registering types -------------------------------------------------------------------------------------


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
        As `flatten_func`, with pairs (key path entry, child) for children; then it is used instead.

    Raises ValueError if the class is registered already, TypeError if it is no class. A class of named tuples
    brings a warning, as its instances are nodes anyway.

    Examples
    --------
    >>> from xform.core.tree import leaves
    >>> class Interval:
    ...     def __init__(self, low, high):
    ...         self.low, self.high = low, high
    >>> register_pytree_node(Interval, lambda i: ((i.low, i.high), None), lambda _, bounds: Interval(*bounds))
    >>> leaves([Interval(1, 2), 3])
    [1, 2, 3]
    """
    if flatten_with_keys_func is not None:
        register_pytree_with_keys(nodetype, flatten_with_keys_func, unflatten_func)
    else:
        _register(nodetype, flatten_func, unflatten_func, optree.FlattenedEntry)


def _register(nodetype: Any, flatten: Callable, unflatten: Callable, entry: type[optree.PyTreeEntry]) -> None:
    optree.register_pytree_node(nodetype, flatten, unflatten, path_entry_type=entry, namespace=NAMESPACE)


def register_pytree_with_keys(
    nodetype: type[_T],
    flatten_with_keys: Callable[[_T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, tuple], _T],
    flatten_func: Callable[[_T], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """Make instances of a class nodes of pytrees whose children have names in key paths.

    `flatten_with_keys` gives pairs (key path entry, child) and auxiliary data. JAX's `flatten_func`, the same
    without keys, is taken but not needed: structures know their keys. See `register_pytree_node`.
    """

    def flatten(x: Any) -> tuple[list[Any], Any, list[Any]]:
        pairs, aux = flatten_with_keys(x)
        pairs = list(pairs)
        return [child for _, child in pairs], aux, [key for key, _ in pairs]

    _register(nodetype, flatten, unflatten_func, GivenEntry)


def register_pytree_node_class(cls: type[_T]) -> type[_T]:
    """Decorator: make a class with ``tree_flatten`` and ``tree_unflatten(cls, aux, children)`` a node type.

    Examples
    --------
    >>> from xform.core.tree import leaves
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
    """Decorator like `register_pytree_node_class`, for a class that has ``tree_flatten_with_keys``."""
    register_pytree_with_keys(cls, cls.tree_flatten_with_keys, cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_static(cls: type[_T]) -> type[_T]:
    """Decorator: make instances of a class nodes without leaves, static wherever pytrees are traced.

    They are compared by ``==`` and must be hashable.
    """
    register_pytree_node(cls, lambda x: ((), x), lambda x, children: x)
    return cls


def static(**kwargs: Any) -> Any:
    """A field of a dataclass that is static: not a child of the pytree, but part of its structure.

    Keyword arguments are those of `dataclasses.field`. See `register_dataclass`.
    """
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
    >>> from xform.core.tree import flatten, unflatten
    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Body:
    ...     mass: float
    ...     name: str = static()
    >>> leaves, treedef = flatten(Body(1.0, "Moon"))
    >>> leaves, unflatten(treedef, [2.0])
    ([1.0], Body(mass=2.0, name='Moon'))
    """
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

    def flatten(x: Any) -> tuple[list[Any], tuple, tuple[str, ...]]:
        return [getattr(x, name) for name in data], tuple([getattr(x, name) for name in meta]), data

    def unflatten(aux: tuple, children: Iterable[Any]) -> Any:
        return nodetype(**dict(zip(data, children)), **dict(zip(meta, aux)))

    _register(nodetype, flatten, unflatten, optree.GetAttrEntry)
    return nodetype
