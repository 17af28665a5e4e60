"""The structure of a pytree: `PyTreeDef`.

Structures of plain containers (tuples, lists, dicts with string keys, named tuples) are *interned*: equal
ones are one object. So hashing and comparing them, which every lookup in a cache of compiled programs does,
costs nothing, and flattening makes no new object when the structure was seen before. Structures that contain
other nodes compare by value.

May import: the standard library.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

__all__ = [
    "LEAF",
    "Family",
    "NodeType",
    "PyTreeDef",
    "flatten_up_to",
    "make_treedef",
    "new_by_value",
    "take_apart",
]


class NodeType:
    """How nodes of one type come apart and together again.

    ``flatten(x) -> (children, aux)`` and ``unflatten(aux, children) -> x``, with a tuple of children;
    ``keys(aux, number of children, x or None)`` gives a key path entry for each child; ``family(aux)`` has
    the interned structures, or is None if they aren't interned.
    """

    __slots__ = ("family", "flatten", "is_namedtuple", "keys", "type", "unflatten")

    def __init__(self, type: Any, flatten: Callable, unflatten: Callable, keys: Callable):
        self.type, self.flatten, self.unflatten, self.keys = type, flatten, unflatten, keys
        self.family: Callable[[Any], Family | None] = lambda aux: None
        self.is_namedtuple = False


def take_apart(node: NodeType, tree: Any) -> tuple[tuple, Any]:
    """Children and auxiliary data of a node."""
    out = node.flatten(tree)
    try:
        children, aux = out
        return tuple(children), aux
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the flatten function registered for {node.type} should return (children, auxiliary data), "
            f"with an iterable of children, but it returned {out!r}"
        ) from error


class PyTreeDef:
    """The structure of a pytree: how nodes are nested, with a place for every leaf.

    Made by `xform.tree.structure`; immutable, and hashable if the auxiliary data of its nodes is.
    `num_leaves` is the number of leaves.

    Examples
    --------
    >>> from xform.core.pytree import flatten
    >>> leaves, treedef = flatten({"b": (2, 3), "a": 1})
    >>> leaves, treedef
    ([1, 2, 3], PyTreeDef({'a': *, 'b': (*, *)}))
    >>> treedef.unflatten("xyz")
    {'a': 'x', 'b': ('y', 'z')}
    """

    # Interned, so compared and hashed by identity as `object` does it; `_Open` is for the others.
    __slots__ = ("_aux", "_build", "_children", "_flat", "_node", "_uses", "num_leaves")

    _node: NodeType
    _aux: Any
    _children: tuple["PyTreeDef", ...]
    _flat: bool  # whether this is a node whose children are all leaves
    _build: Callable[[Any], Any] | None  # compiled `unflatten`
    _uses: int  # of `unflatten`
    num_leaves: int

    @property
    def num_nodes(self) -> int:
        """The number of nodes, leaves included."""
        return 1 + sum(child.num_nodes for child in self._children)

    def children(self) -> list["PyTreeDef"]:
        """The structures of the outermost node's children."""
        return list(self._children)

    def node_data(self) -> tuple[Any, Any] | None:
        """The outermost node's type and auxiliary data; None for a leaf."""
        return None if self is LEAF else (self._node.type, self._aux)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The pytree of this structure with these leaves.

        Raises ValueError if their number isn't `num_leaves`.
        """
        if type(leaves) is not list and type(leaves) is not tuple:
            leaves = tuple(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(f"unflatten: expected {self.num_leaves} leaves for {self}, got {len(leaves)}")
        if self._flat:
            return self._node.unflatten(self._aux, tuple(leaves))
        if self is LEAF:
            return leaves[0]
        if self._build is not None:
            return self._build(leaves)
        self._uses += 1
        if self._uses == COMPILE_AFTER and type(self) is PyTreeDef and _depth(self) < MAX_COMPILED_DEPTH:
            self._build = _compile_unflatten(self)
        return _unflatten(self, iter(leaves))

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` that stand where this structure has leaves.

        Raises ValueError if this structure is not a prefix of the tree's.

        Examples
        --------
        >>> from xform.core.pytree import structure
        >>> structure((0, 0)).flatten_up_to((1, [2, 3]))
        [1, [2, 3]]
        """
        out: list[Any] = []
        if not flatten_up_to(self, tree, out):
            raise ValueError(f"flatten_up_to: {self} is not a prefix of the structure of {tree!r}")
        return out

    def compose(self, inner: "PyTreeDef") -> "PyTreeDef":
        """This structure with `inner` in place of every leaf."""
        if self is LEAF:
            return inner
        return make_treedef(self._node, self._aux, tuple([c.compose(inner) for c in self._children]))

    def walk(self, f_node: Callable, f_leaf: Callable | None, leaves: Iterable[Any]) -> Any:
        """Fold from the leaves up: ``f_node(children, node_data)`` at nodes, ``f_leaf(leaf)`` at leaves."""
        iterator = iter(leaves)

        def fold(treedef: PyTreeDef) -> Any:
            if treedef is not LEAF:
                return f_node(tuple([fold(child) for child in treedef._children]), treedef.node_data())
            return next(iterator) if f_leaf is None else f_leaf(next(iterator))

        return fold(self)

    def from_iterable_tree(self, xs: Any) -> Any:
        """The pytree of this structure whose leaves stand in nested iterables of the same shape.

        Examples
        --------
        >>> from xform.core.pytree import structure
        >>> structure((0, {"a": 0})).from_iterable_tree([1, [2]])
        (1, {'a': 2})
        """
        if self is LEAF:
            return xs
        xs = tuple(xs)
        if len(xs) != len(self._children):
            raise ValueError(f"expected {len(self._children)} children for {self}, got {len(xs)}")
        children = [child.from_iterable_tree(x) for child, x in zip(self._children, xs)]
        return self._node.unflatten(self._aux, tuple(children))

    def __reduce__(self) -> Any:
        return "LEAF" if self is LEAF else (make_treedef, (self._node, self._aux, self._children))

    def __copy__(self) -> "PyTreeDef":
        return self

    def __deepcopy__(self, memo: dict) -> "PyTreeDef":
        return self

    def __repr__(self) -> str:
        return f"PyTreeDef({self._text()})"

    def _text(self) -> str:
        if self is LEAF:
            return "*"
        node, parts = self._node.type, [child._text() for child in self._children]
        text = ", ".join(parts)
        if node is type(None):
            return "None"
        if node is tuple:
            return f"({text},)" if len(parts) == 1 else f"({text})"
        if node is list:
            return f"[{text}]"
        if node is dict:
            return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(self._aux, parts))}}}"
        if self._node.is_namedtuple:
            return f"CustomNode(namedtuple[{node.__name__}], [{text}])"
        return f"CustomNode({node.__name__}[{self._aux}], [{text}])"


class _ByValue(PyTreeDef):
    """A structure that is not interned: compared by value."""

    __slots__ = ("_hash",)

    _hash: int

    def __eq__(self, other: Any) -> Any:
        if self is other:
            return True
        if type(other) is not _ByValue:
            return False if isinstance(other, PyTreeDef) else NotImplemented
        return (
            self._node is other._node
            and self.num_leaves == other.num_leaves
            and self._children == other._children
            and bool(self._aux == other._aux)
        )

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            pass
        try:
            aux = hash(self._aux)
        except TypeError as error:
            raise TypeError(
                f"the auxiliary data of pytree nodes of type {self._node.type} must be hashable here: {error}"
            ) from None
        self._hash = hash((self._node, aux, self._children))
        return self._hash


def _new(cls: type[PyTreeDef], node: NodeType, aux: Any, children: tuple, num_leaves: int) -> PyTreeDef:
    self = cls.__new__(cls)
    self._node, self._aux, self._children, self.num_leaves = node, aux, children, num_leaves
    self._flat = children == (LEAF,) * len(children)
    self._build, self._uses = None, 0
    return self


def new_by_value(node: NodeType, aux: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    """The structure of a node with these children, not interned."""
    return _new(_ByValue, node, aux, children, sum([child.num_leaves for child in children]))


class Family(dict):
    """The interned structures of nodes that differ only in their children.

    A dictionary by children, or by their number where all are leaves, which fills itself.
    """

    __slots__ = ("aux", "node")
    size = 0  # of all families together
    # No more are interned then: a program that makes up new dict keys forever must not leak.
    MAX_SIZE = 1 << 16

    def __init__(self, node: NodeType, aux: Any):
        self.node, self.aux = node, aux

    def __missing__(self, children: Any) -> PyTreeDef:
        key = children
        if type(children) is int:
            children = (LEAF,) * children
        elif children == (LEAF,) * len(children):  # leaves of a type that was not met before
            return self[len(children)]
        if Family.size >= Family.MAX_SIZE:
            return new_by_value(self.node, self.aux, children)
        Family.size += 1
        num_leaves = sum([child.num_leaves for child in children])
        return self.setdefault(key, _new(PyTreeDef, self.node, self.aux, children, num_leaves))

    def of(self, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
        """The structure with these children."""
        if _only_interned(map(type, children)):
            return self[children]
        return new_by_value(self.node, self.aux, children)


_only_interned = frozenset({PyTreeDef}).issuperset


def make_treedef(node: NodeType, aux: Any, children: tuple[PyTreeDef, ...]) -> PyTreeDef:
    """The structure of a node with these children."""
    family = node.family(aux)
    return new_by_value(node, aux, children) if family is None else family.of(children)


LEAF = PyTreeDef.__new__(PyTreeDef)
LEAF._node = NodeType(None, lambda x: ((), None), lambda aux, children: None, lambda aux, n, x: [])
LEAF._aux, LEAF._children, LEAF._flat, LEAF.num_leaves = None, (), False, 1

# ---- Putting together and taking apart ---------------------------------------------------------------------


def _unflatten(treedef: PyTreeDef, leaves: Iterator[Any]) -> Any:
    children = []
    for child in treedef._children:
        if child is LEAF:
            children.append(next(leaves))
        elif child._flat:
            children.append(child._node.unflatten(child._aux, tuple(islice(leaves, child.num_leaves))))
        else:
            children.append(_unflatten(child, leaves))
    return treedef._node.unflatten(treedef._aux, tuple(children))


# An expression that makes the pytree is several times quicker than `_unflatten`, but takes 20 us to compile.
COMPILE_AFTER = 32
MAX_COMPILED_DEPTH = 50  # Python's parser has a limit


def _depth(treedef: PyTreeDef) -> int:
    return 1 + max(map(_depth, treedef._children), default=0)


def _compile_unflatten(treedef: PyTreeDef) -> Callable[[Any], Any]:
    """A function from leaves to pytree, e.g. ``lambda x: ({'a': x[0]}, x[1])``."""
    names: dict[type, str] = {}
    index = iter(range(treedef.num_leaves))

    def expression(treedef: PyTreeDef) -> str:
        if treedef is LEAF:
            return f"x[{next(index)}]"
        children = [expression(child) for child in treedef._children]
        text = ", ".join(children)
        node = treedef._node.type
        if node is type(None):
            return "None"
        if node is tuple:
            return f"({text},)" if children else "()"
        if node is list:
            return f"[{text}]"
        if node is dict:
            return f"{{{', '.join(f'{key!r}: {child}' for key, child in zip(treedef._aux, children))}}}"
        return f"{names.setdefault(node, f'type{len(names)}')}({text})"

    source = f"lambda x: {expression(treedef)}"
    return eval(source, {name: nodetype for nodetype, name in names.items()})


def flatten_up_to(treedef: PyTreeDef, tree: Any, out: list[Any]) -> bool:
    """Whether `treedef` is a prefix of the tree; appends the subtrees at its leaves to `out`."""
    if treedef is LEAF:
        out.append(tree)
        return True
    if type(tree) is not treedef._node.type:
        return False
    children, aux = take_apart(treedef._node, tree)
    if len(children) != len(treedef._children) or aux != treedef._aux:
        return False
    if treedef._flat:
        out += children
        return True
    return all(flatten_up_to(child, x, out) for child, x in zip(treedef._children, children))
