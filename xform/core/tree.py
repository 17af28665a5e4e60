"""Everything that is done with pytrees. `xform.tree` and `xform.tree_util` are its public faces.

A *prefix* of a pytree is one with a leaf where the other may have a subtree, as in `vmap`'s ``in_axes``.

May import: the standard library, `core.pytree`, `core.pytree_types`, `core.treedef`.
"""

import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from xform.core.pytree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    find_node,
    flatten,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    leaves,
    structure,
    unflatten,
)
from xform.core.pytree_types import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    static,
)
from xform.core.treedef import LEAF, PyTreeDef, flatten_up_to, make_treedef, take_apart

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all",
    "all_leaves",
    "broadcast",
    "broadcast_prefix",
    "build_tree",
    "children",
    "flatten",
    "flatten_axes",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "flatten_with_path",
    "is_leaf",
    "is_tree_node",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "paths",
    "prefix_errors",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "static",
    "structure",
    "transpose",
    "tuple_of",
    "unflatten",
]

KeyEntry = Any
KeyPath = tuple[KeyEntry, ...]
IsLeaf = Callable[..., bool] | None

_MISSING: Any = object()

# ---- Structures --------------------------------------------------------------------------------------------


def is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a single node: a leaf, or a node without children such as None."""
    return treedef.num_nodes == 1


def children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the outermost node's children.

    Examples
    --------
    >>> children(structure([(1, 2), 3]))
    [PyTreeDef((*, *)), PyTreeDef(*)]
    """
    return treedef.children()


def tuple_of(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of these.

    Examples
    --------
    >>> tuple_of([structure(1), structure([2])])
    PyTreeDef((*, [*]))
    """
    return make_treedef(structure(())._node, None, tuple(treedefs))


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The pytree of a structure whose leaves stand in nested iterables of the same shape."""
    return treedef.from_iterable_tree(xs)


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether all elements are leaves.

    Examples
    --------
    >>> all_leaves([1, 2.0]), all_leaves([1, (2,)])
    (True, False)
    """
    return builtins.all((is_leaf is not None and is_leaf(x)) or not is_tree_node(type(x)) for x in iterable)


# ---- Maps and folds ----------------------------------------------------------------------------------------


def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """A pytree of the same structure, with ``f(leaf, *corresponding subtrees of the rest)`` for each leaf.

    Parameters
    ----------
    f : callable
    tree : pytree
    *rest : pytrees
        Of the same structure, or with subtrees where `tree` has leaves.
    is_leaf : callable, optional
        Called at every node of `tree`; where it is true, the node is taken as a leaf.

    Raises ValueError if the structures differ, which names the place.

    Examples
    --------
    >>> map(lambda x, y: x * y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 10, 'b': (40, 90)}
    """
    xs, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten([f(x) for x in xs])
    return treedef.unflatten([f(*row) for row in zip(xs, *_columns("tree.map", treedef, rest))])


def _columns(name: str, treedef: PyTreeDef, rest: tuple) -> list[list[Any]]:
    """Of each of these trees the subtrees at the leaves of `treedef`."""
    out: list[list[Any]] = []
    for i, tree in enumerate(rest):
        out.append([])
        if not flatten_up_to(treedef, tree, out[-1]):
            path, expected, found = next(_mismatches(treedef, structure(tree)))
            raise ValueError(
                f"{name}: pytree {i + 2} differs in structure from the first one: {_at(path)} it is {found}, "
                f"but the first is {expected}"
            )
    return out


def reduce(function: Callable, tree: Any, initializer: Any = _MISSING, is_leaf: IsLeaf = None) -> Any:
    """``functools.reduce`` over the leaves.

    Examples
    --------
    >>> reduce(lambda x, y: x + y, {"a": 1, "b": (2, 3)})
    6
    """
    start = () if initializer is _MISSING else (initializer,)
    return functools.reduce(function, leaves(tree, is_leaf), *start)


def reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _MISSING, is_leaf: IsLeaf = None
) -> Any:
    """Reduce the leaves by an associative operation, pairwise: a shallow expression instead of a deep one.

    `identity` is the result for a tree without leaves, which otherwise raises TypeError.

    Examples
    --------
    >>> reduce_associative(lambda x, y: f"({x}{y})", list("abcd"))
    '((ab)(cd))'
    """
    xs = leaves(tree, is_leaf)
    if not xs:
        if identity is _MISSING:
            raise TypeError("reduce_associative: the tree has no leaves, and no identity was given")
        return identity

    def fold(part: list[Any]) -> Any:
        middle = len(part) // 2
        return operation(fold(part[:middle]), fold(part[middle:])) if middle else part[0]

    return fold(xs)


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    Examples
    --------
    >>> all({"a": True, "b": (1, 0)})
    False
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Turn a tree of structure outer, with trees of structure inner for leaves, inside out.

    Parameters
    ----------
    outer_treedef : PyTreeDef
    inner_treedef : PyTreeDef or None
        None: that of the first subtree.
    pytree_to_transpose : pytree

    Raises TypeError if the tree hasn't this structure.

    Examples
    --------
    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    xs, treedef = flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = structure(next(iter(outer_treedef.flatten_up_to(pytree_to_transpose)), None))
    if treedef != outer_treedef.compose(inner_treedef):
        raise TypeError(f"tree.transpose: expected the structure {outer_treedef.compose(inner_treedef)}, got {treedef}")
    n = inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(xs[i::n]) for i in range(n)])


# ---- Key paths ---------------------------------------------------------------------------------------------


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text.

    Parameters
    ----------
    keys : tuple of key path entries
    simple : bool
        Write names and numbers alone.
    separator : str
        What stands between the entries.

    Examples
    --------
    >>> path = (DictKey("layers"), SequenceKey(0), GetAttrKey("weight"))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    ("['layers'][0].weight", 'layers/0/weight')
    """
    return separator.join([str(_name(key)) if simple else str(key) for key in keys])


def _name(key: KeyEntry) -> Any:
    """The value within a key path entry; users may have entries of their own."""
    match key:
        case SequenceKey(idx=value) | DictKey(key=value) | GetAttrKey(name=value) | FlattenedIndexKey(key=value):
            return value
    return key


def _at(path: KeyPath) -> str:
    return f"at key path {keystr(path)}" if path else "at the root"


def flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Pairs of key path and leaf, and the structure.

    Parameters
    ----------
    tree : pytree
    is_leaf : callable, optional
        Called at every node; where it is true, the node is taken as a leaf.
    is_leaf_takes_path : bool
        Call ``is_leaf(path, node)`` instead of ``is_leaf(node)``.

    Examples
    --------
    >>> for path, x in flatten_with_path({"a": (1, 2)})[0]:
    ...     print(keystr(path), x)
    ['a'][0] 1
    ['a'][1] 2
    """
    out: list[tuple[KeyPath, Any]] = []

    def visit(tree: Any, path: KeyPath) -> PyTreeDef:
        stop = is_leaf is not None and (is_leaf(path, tree) if is_leaf_takes_path else is_leaf(tree))
        node = None if stop else find_node(type(tree))
        if node is None:
            out.append((path, tree))
            return LEAF
        parts, aux = take_apart(node, tree)
        keys = node.keys(aux, len(parts), tree)
        return make_treedef(node, aux, tuple([visit(part, (*path, key)) for key, part in zip(keys, parts)]))

    return out, visit(tree, ())


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False) -> list[tuple[KeyPath, Any]]:
    """Pairs of key path and leaf. See `flatten_with_path`."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> Any:
    """As `map`, with the key path as first argument of `f`.

    Examples
    --------
    >>> map_with_path(lambda path, x: keystr(path) + str(x), {"a": (1, 2)})
    {'a': ("['a'][0]1", "['a'][1]2")}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns = _columns("tree.map_with_path", treedef, rest)
    return treedef.unflatten([f(path, x, *others) for (path, x), *others in zip(pairs, *columns)])


def paths(treedef: PyTreeDef) -> list[KeyPath]:
    """The key paths of a structure's leaves.

    Examples
    --------
    >>> [keystr(path) for path in paths(structure({"a": (1, 2)}))]
    ["['a'][0]", "['a'][1]"]
    """
    out: list[KeyPath] = []

    def visit(treedef: PyTreeDef, path: KeyPath) -> None:
        if treedef is LEAF:
            out.append(path)
        for key, child in zip(_keys(treedef), treedef._children):
            visit(child, (*path, key))

    visit(treedef, ())
    return out


def _keys(treedef: PyTreeDef) -> list[KeyEntry]:
    return treedef._node.keys(treedef._aux, len(treedef._children), None)


# ---- Prefixes ----------------------------------------------------------------------------------------------


def _mismatches(prefix: PyTreeDef, full: PyTreeDef, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str, str]]:
    """Where `prefix` is not a prefix of `full`: key path, and descriptions of both sides there."""
    if prefix is LEAF or prefix is full:
        return
    if prefix._node is not full._node or len(prefix._children) != len(full._children) or prefix._aux != full._aux:
        yield path, _describe(prefix), _describe(full)
        return
    for key, a, b in zip(_keys(full), prefix._children, full._children):
        yield from _mismatches(a, b, (*path, key))


def _describe(treedef: PyTreeDef) -> str:
    """The structure, or if that is long, its outermost node."""
    if treedef is LEAF:
        return "a leaf"
    text, nodetype, n = treedef._text(), treedef._node.type, len(treedef._children)
    if len(text) <= 80:
        return text
    if nodetype is dict:
        return f"a dict with keys {', '.join(builtins.map(repr, treedef._aux))}"
    return f"a {nodetype.__name__} with {n} children"


def _repeats(prefix: PyTreeDef, full: PyTreeDef, out: list[int]) -> None:
    """Of each leaf of `prefix`, the number of leaves that `full` has there."""
    if prefix is LEAF:
        out.append(full.num_leaves)
    for a, b in zip(prefix._children, full._children):
        _repeats(a, b, out)


def _prefix_error(name: str, full_name: str, path: KeyPath, prefix: str, full: str) -> ValueError:
    return ValueError(
        f"{name} must be a prefix tree of {full_name}, but {_at(path)} the prefix is {prefix} "
        f"and the full tree is {full}"
    )


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Callable[[str], ValueError]]:
    """What keeps a tree from being a prefix of another: for each place a function from name to exception.

    Examples
    --------
    >>> [str(error("in_axes")) for error in prefix_errors((0, [1]), (0, (1, 2)))]
    ['in_axes must be a prefix tree of the full tree, but at key path [1] the prefix is [*]
     and the full tree is (*, *)']
    """

    def error(mismatch: tuple[KeyPath, str, str]) -> Callable[[str], ValueError]:
        return lambda name: _prefix_error(name, "the full tree", *mismatch)

    return [error(found) for found in _mismatches(structure(prefix_tree, is_leaf), structure(full_tree))]


def _expand(name: str, full_name: str, prefix_tree: Any, full: PyTreeDef, is_leaf: IsLeaf) -> list[Any]:
    """The leaves of a prefix, each repeated for all leaves of `full` that it stands for."""
    xs, prefix = flatten(prefix_tree, is_leaf)
    if prefix is LEAF:
        return xs * full.num_leaves
    for mismatch in _mismatches(prefix, full):
        raise _prefix_error(name, full_name, *mismatch)
    counts: list[int] = []
    _repeats(prefix, full, counts)
    return [x for x, count in zip(xs, counts) for _ in range(count)]


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a prefix, one for each leaf of the full tree.

    Parameters
    ----------
    prefix_tree, full_tree : pytrees
    is_leaf : callable, optional
        Called at every node of the prefix; where it is true, the node is taken as a leaf.

    Raises ValueError if it is not a prefix, which names the place.

    Examples
    --------
    >>> broadcast_prefix((0, None), (1, [2, 3]), is_leaf=lambda x: x is None)
    [0, None, None]
    """
    return _expand("prefix_tree", "full_tree", prefix_tree, structure(full_tree), is_leaf)


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """The full tree with the leaves of a prefix. See `broadcast_prefix`.

    Examples
    --------
    >>> broadcast((0, 1), (1, [2, 3]))
    (0, [1, 1])
    """
    treedef = structure(full_tree)
    return treedef.unflatten(_expand("prefix_tree", "full_tree", prefix_tree, treedef, is_leaf))


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any, full_name: str = "the arguments") -> list[Any]:
    """The leaves of a prefix such as ``in_axes``, where None is a leaf, one for each leaf of a structure.

    Parameters
    ----------
    name, full_name : str
        What the prefix and the full tree are called in the error message.
    treedef : PyTreeDef
        Structure of the full tree.
    axis_tree : pytree

    Raises ValueError if it is not a prefix, which names the place.

    Examples
    --------
    >>> flatten_axes("vmap in_axes", structure((0, {"w": 0, "b": 0})), (0, None))
    [0, None, None]
    """
    return _expand(name, full_name, axis_tree, treedef, lambda x: x is None)
