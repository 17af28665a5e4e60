"""Everything that is done with pytrees. `xform.tree` and `xform.tree_util` are its public faces.

A *pytree* is a nest of containers, taken apart into a list of leaves and its structure, a *treedef*, and put
together again. The library optree does it; here its functions get JAX's names and meaning. A *prefix* of a
pytree is one with a leaf where the other may have a subtree, as in `vmap`'s ``in_axes``.

May import: the standard library, optree, `core.pytree_types`.
"""

import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import optree
from optree import PyTreeSpec as PyTreeDef
from optree.functools import partial as Partial

from xform.core.pytree_types import (
    NAMESPACE,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    SequenceKey,
    key_of,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
    static,
)

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

# ---- Taking apart and putting together ---------------------------------------------------------------------


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a pytree, and its structure.

    Nodes are tuples, lists, dicts (leaves in the order of the sorted keys), named tuples, OrderedDict,
    defaultdict, deque, None (a node without children) and the registered types; everything else is a leaf.

    There are small differences from JAX. A dict keeps its order when it is put together again; its keys may be
    of types without an order; an OrderedDict or defaultdict may stand for a dict with the same keys, where a
    tree is matched to the structure of another. Struct sequences such as `time.struct_time` are nodes.

    Parameters
    ----------
    tree : pytree
    is_leaf : callable, optional
        Called at every node; where it is true, the node is taken as a leaf.

    Examples
    --------
    >>> flatten([1, {"b": None, "a": (2,)}])
    ([1, 2], PyTreeSpec([*, {'a': (*,), 'b': None}]))
    >>> leaves([1, None], is_leaf=lambda x: x is None)
    [1, None]
    """
    return optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The pytree of a structure with these leaves; the inverse of `flatten`.

    Raises ValueError if there are too few or too many leaves.

    Examples
    --------
    >>> unflatten(structure({"a": 0, "b": (0, 0)}), [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a pytree.

    Examples
    --------
    >>> leaves({"b": 2, "a": [1, None]})
    [1, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a pytree.

    Examples
    --------
    >>> structure(({"b": 2, "a": [1, None]}, 3))
    PyTreeSpec(({'a': [*, None], 'b': *}, *))
    """
    return flatten(tree, is_leaf)[1]


def flatten_one_level(tree: Any) -> tuple[tuple, Any]:
    """The children of the outermost node, and its auxiliary data. Raises ValueError for a leaf.

    Examples
    --------
    >>> flatten_one_level({"b": (1, 2), "a": 3})
    ((3, (1, 2)), ['a', 'b'])
    """
    children, aux, *_ = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
    return tuple(children), aux


def flatten_one_level_with_keys(tree: Any) -> tuple[tuple[tuple[KeyEntry, Any], ...], Any]:
    """Pairs of key path entry and child of the outermost node, and its auxiliary data.

    Examples
    --------
    >>> flatten_one_level_with_keys([5, 6])
    (((SequenceKey(idx=0), 5), (SequenceKey(idx=1), 6)), None)
    """
    children, aux = flatten_one_level(tree)
    keys = paths(structure(tree, is_leaf=lambda x: x is not tree))
    return tuple([(key, child) for (key,), child in zip(keys, children, strict=True)]), aux


def is_tree_node(typ: type) -> bool:
    """Whether instances of the type are nodes of pytrees.

    Examples
    --------
    >>> is_tree_node(dict), is_tree_node(float)
    (True, False)
    """
    return optree.register_pytree_node.get(typ, namespace=NAMESPACE) is not None


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether all elements are leaves.

    Examples
    --------
    >>> all_leaves([1, 2.0]), all_leaves([1, (2,)])
    (True, False)
    """
    return optree.all_leaves(iterable, is_leaf, namespace=NAMESPACE)


# ---- Structures --------------------------------------------------------------------------------------------

LEAF: PyTreeDef = structure(0)  # of a single leaf


def is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a single node: a leaf, or a node without children such as None."""
    return treedef.is_leaf(strict=False)


def children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the outermost node's children.

    Examples
    --------
    >>> children(structure([(1, 2), 3]))
    [PyTreeSpec((*, *)), PyTreeSpec(*)]
    """
    return treedef.children()


def tuple_of(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of these.

    Examples
    --------
    >>> tuple_of([structure(1), structure([2])]) == structure((1, [2]))
    True
    """
    return optree.treespec_tuple(treedefs, namespace=NAMESPACE)


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """The pytree of a structure whose leaves stand in nested iterables of the same shape.

    Examples
    --------
    >>> build_tree(structure((0, {"a": 0})), [1, [2]])
    (1, {'a': 2})
    """
    root = treedef.one_level()
    if root is None:
        return xs
    return root.unflatten([build_tree(child, x) for child, x in zip(treedef.children(), xs, strict=True)])


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
    return treedef.unflatten([f(*row) for row in zip(xs, *_columns("map", tree, treedef, rest, is_leaf))])


def _subtrees(what: str, name: str, tree: Any, treedef: PyTreeDef, full: Any, is_leaf: IsLeaf) -> list[Any]:
    """The subtrees of `full` at the leaves of `tree`, which is called `name` and has the structure `treedef`."""
    try:
        return treedef.flatten_up_to(full)
    except ValueError:
        for error in optree.prefix_errors(tree, full, is_leaf, namespace=NAMESPACE):
            raise ValueError(f"{what}: {error(name)}") from None
        raise


def _columns(function: str, tree: Any, treedef: PyTreeDef, rest: tuple, is_leaf: IsLeaf) -> list[list[Any]]:
    """Of each of the rest the subtrees at the leaves of `tree`."""
    what = f"tree.{function}: pytree {{}} differs in structure from the first one".format
    return [_subtrees(what(i), "tree", tree, treedef, full, is_leaf) for i, full in enumerate(rest, 2)]


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
    expected = outer_treedef.compose(inner_treedef)
    if treedef != expected:
        raise TypeError(f"tree.transpose: expected the structure {expected}, got {treedef}")
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
    if is_leaf is not None and is_leaf_takes_path:
        decisions = _decide(is_leaf, (), tree)
        is_leaf = lambda x: next(decisions)  # noqa: E731
    xs, treedef = flatten(tree, is_leaf)
    return list(zip(paths(treedef), xs, strict=True)), treedef


def _decide(is_leaf: Callable[[KeyPath, Any], bool], path: KeyPath, tree: Any) -> Iterator[bool]:
    """What ``is_leaf(path, node)`` says of each node, in the order in which `flatten` asks."""
    stop = is_leaf(path, tree)
    yield stop
    if not stop and is_tree_node(type(tree)):
        for key, child in flatten_one_level_with_keys(tree)[0]:
            yield from _decide(is_leaf, (*path, key), child)


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
    columns = _columns("map_with_path", tree, treedef, rest, None if is_leaf_takes_path else is_leaf)
    return treedef.unflatten([f(path, x, *others) for (path, x), *others in zip(pairs, *columns)])


def paths(treedef: PyTreeDef) -> list[KeyPath]:
    """The key paths of a structure's leaves.

    Examples
    --------
    >>> [keystr(path) for path in paths(structure({"a": (1, 2)}))]
    ["['a'][0]", "['a'][1]"]
    """
    return [tuple([key_of(entry) for entry in path]) for path in treedef.accessors()]


# ---- Prefixes ----------------------------------------------------------------------------------------------


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[Callable[[str], ValueError]]:
    """What keeps a tree from being a prefix of another: for each place a function from name to exception.

    Examples
    --------
    >>> [error] = prefix_errors((0, [1]), (0, (1, 2)))
    >>> print(error("in_axes"))
    pytree structure error: different types at key path
        in_axes[1]
    At that key path, the prefix pytree in_axes has a subtree of type
        <class 'list'>
    but at the same key path the full pytree has a subtree of different type
        <class 'tuple'>.
    """
    return optree.prefix_errors(prefix_tree, full_tree, is_leaf, namespace=NAMESPACE)


def _expand(name: str, full_name: str, prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf) -> list[Any]:
    """The leaves of a prefix, each repeated for all leaves of the full tree that it stands for."""
    xs, prefix = flatten(prefix_tree, is_leaf)
    what = f"{name} must be a prefix tree of {full_name}"
    subtrees = _subtrees(what, name, prefix_tree, prefix, full_tree, is_leaf)
    return [x for x, subtree in zip(xs, subtrees) for _ in leaves(subtree)]


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
    return _expand("prefix_tree", "full_tree", prefix_tree, full_tree, is_leaf)


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """The full tree with the leaves of a prefix. See `broadcast_prefix`.

    Examples
    --------
    >>> broadcast((0, 1), (1, [2, 3]))
    (0, [1, 1])
    """
    return structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


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
    full_tree = treedef.unflatten([0] * treedef.num_leaves)
    return _expand(name, full_name, axis_tree, full_tree, lambda x: x is None)
