"""Pytrees: nested containers, taken apart into a list of leaves and a `PyTreeDef`, and put together again.

Every call of a transformed function flattens its arguments and results, so this is a hot path. For each
type of nodes there is a *visitor*, which appends the leaves of a node to a list and returns its structure.
Where it finds only leaves in a container, by their types, it takes them as a whole.

May import: the standard library, `core.treedef`.
"""

import copyreg
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from xform.core.treedef import LEAF, Family, NodeType, PyTreeDef, make_treedef, new_by_value, take_apart

# ---- Key paths ---------------------------------------------------------------------------------------------


class _KeyEntry:
    """One step of a key path. Equal to another of the same type with the same value."""

    __slots__ = ()
    __match_args__: tuple[str, ...]

    @property
    def _value(self) -> Any:
        return getattr(self, self.__match_args__[0])

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self._value == other._value

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__match_args__[0]}={self._value!r})"


class SequenceKey(_KeyEntry):
    """The step to the element of a list or tuple with index `idx`."""

    __slots__ = __match_args__ = ("idx",)

    def __init__(self, idx: int):
        self.idx = idx

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class DictKey(_KeyEntry):
    """The step to the value of a dict at `key`."""

    __slots__ = __match_args__ = ("key",)

    def __init__(self, key: Any):
        self.key = key

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(_KeyEntry):
    """The step to the attribute `name` of a named tuple or dataclass."""

    __slots__ = __match_args__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(_KeyEntry):
    """The step to child number `key` of a custom node that was registered without keys."""

    __slots__ = __match_args__ = ("key",)

    def __init__(self, key: int):
        self.key = key

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


# ---- Types and their visitors ------------------------------------------------------------------------------

Visitor = Callable[[Any, list[Any]], PyTreeDef]

_nodes: dict[type, NodeType] = {}
# Every type that was met: how to take it apart, or None if it is a leaf's.
_visitors: dict[type, Visitor | None] = {}
_leaf_types: set[type] = set()
_all_leaves = _leaf_types.issuperset
_only_str = frozenset({str}).issuperset


def find_node(nodetype: type) -> NodeType | None:
    """The `NodeType` of a type, or None if its instances are leaves."""
    if nodetype not in _visitors:
        _classify(nodetype)
    return _nodes.get(nodetype)


def _classify(nodetype: type) -> Visitor | None:
    """Find out what a type is that is met for the first time: a named tuple's, or a leaf's."""
    if not (issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        _leaf_types.add(nodetype)
        return _visitors.setdefault(nodetype, None)
    node = NodeType(
        nodetype,
        lambda x: (x, None),
        lambda aux, children: nodetype(*children),
        lambda aux, n, x: [GetAttrKey(name) for name in nodetype._fields],
    )
    node.is_namedtuple = True
    return add_node(node, _sequence_visitor(node))


def add_node(node: NodeType, visitor: Visitor) -> Visitor:
    """Make a type known as one of nodes."""
    _nodes[node.type] = node
    _leaf_types.discard(node.type)
    _visitors[node.type] = visitor
    return visitor


def _visit_all(values: Iterable[Any], leaves: list[Any]) -> tuple[PyTreeDef, ...]:
    """The structures of all `values`; appends their leaves."""
    treedefs = []
    for x in values:
        try:
            visitor = _visitors[type(x)]
        except KeyError:
            visitor = _classify(type(x))
        if visitor is None:
            leaves.append(x)
            treedefs.append(LEAF)
        else:
            treedefs.append(visitor(x, leaves))
    return tuple(treedefs)


def _sequence_visitor(node: NodeType) -> Visitor:
    family = Family(node, None)
    node.family = lambda aux: family

    def visit(tree: Any, leaves: list[Any]) -> PyTreeDef:
        if _all_leaves(map(type, tree)):
            leaves += tree
            return family[len(tree)]
        return family.of(_visit_all(tree, leaves))

    return visit


class _DictOrder:
    """What to do with a dict that has certain keys in a certain order."""

    __slots__ = ("family", "values")

    def __init__(self, keys: tuple, family: Family):
        self.family = family
        #: The values in the order of the sorted keys.
        self.values = itemgetter(*keys) if len(keys) > 1 else lambda tree: tuple(tree.values())


_dict_families: dict[tuple, Family] = {}  # by sorted keys
_dict_orders: dict[tuple, _DictOrder] = {}  # by keys in a dict's own order


def _dict_family(keys: tuple) -> Family | None:
    # Only strings: as 1, 1.0 and True are equal, a structure with one for a key can't stand for the others.
    if not _only_str(map(type, keys)):
        return None
    family = _dict_families.get(keys)
    if family is None and Family.size < Family.MAX_SIZE:
        Family.size += 1
        family = _dict_families.setdefault(keys, Family(_dict, keys))
    return family


def _dict_order(tree: dict) -> _DictOrder | None:
    keys = _sorted_keys(tree)
    family = _dict_family(keys)
    if family is None:
        return None
    order = _DictOrder(keys, family)
    if Family.size < Family.MAX_SIZE:
        _dict_orders[tuple(tree)] = order
    return order


def _sorted_keys(tree: dict) -> tuple:
    try:
        return tuple(sorted(tree))
    except TypeError:
        kinds = ", ".join(sorted({type(key).__name__ for key in tree}))
        raise ValueError(
            f"the keys of a dict in a pytree are sorted, but keys of types {kinds} have no order; take one "
            "type, or a collections.OrderedDict, which keeps its own order"
        ) from None


def _visit_dict(tree: dict, leaves: list[Any]) -> PyTreeDef:
    if not tree:  # as keyword arguments mostly are
        return _EMPTY_DICT
    order = _dict_orders.get(tuple(tree)) or _dict_order(tree)
    if order is None or not _only_str(map(type, tree)):
        return _visit_dict_by_value(tree, leaves)
    values = order.values(tree)
    if _all_leaves(map(type, values)):
        leaves += values
        return order.family[len(values)]
    return order.family.of(_visit_all(values, leaves))


def visitor_by_value(node: NodeType) -> Visitor:
    """The visitor for nodes whose structures aren't interned."""

    def visit(tree: Any, leaves: list[Any]) -> PyTreeDef:
        children, aux = take_apart(node, tree)
        return new_by_value(node, aux, _visit_all(children, leaves))

    return visit


copyreg.pickle(NodeType, lambda node: (find_node, (node.type,)))  # type: ignore[arg-type, return-value]

# ---- Python's own containers -------------------------------------------------------------------------------


def _flatten_dict(x: dict) -> tuple[list[Any], tuple]:
    keys = _sorted_keys(x)
    return [x[key] for key in keys], keys


def _flatten_defaultdict(x: defaultdict) -> tuple[list[Any], tuple]:
    values, keys = _flatten_dict(x)
    return values, (x.default_factory, keys)


def _indices(aux: Any, n: int, x: Any) -> list[SequenceKey]:
    return [SequenceKey(i) for i in range(n)]


def _dict_keys(keys: tuple, n: int, x: Any) -> list[DictKey]:
    return [DictKey(key) for key in keys]


_tuple = NodeType(tuple, lambda x: (x, None), lambda aux, children: children, _indices)
_list = NodeType(list, lambda x: (x, None), lambda aux, children: list(children), _indices)
_none = NodeType(type(None), lambda x: ((), None), lambda aux, children: None, lambda aux, n, x: [])
_dict = NodeType(dict, _flatten_dict, lambda keys, children: dict(zip(keys, children)), _dict_keys)
_ordered_dict = NodeType(
    OrderedDict,
    lambda x: (x.values(), tuple(x)),
    lambda keys, children: OrderedDict(zip(keys, children)),
    _dict_keys,
)
_defaultdict = NodeType(
    defaultdict,
    _flatten_defaultdict,
    lambda aux, children: defaultdict(aux[0], zip(aux[1], children)),
    lambda aux, n, x: _dict_keys(aux[1], n, x),
)
_deque = NodeType(deque, lambda x: (x, x.maxlen), lambda maxlen, children: deque(children, maxlen), _indices)

_dict.family = _dict_family
_EMPTY_DICT = make_treedef(_dict, (), ())
_visit_dict_by_value = visitor_by_value(_dict)
_sequence_visitor(_none)
_NONE = make_treedef(_none, None, ())
add_node(_none, lambda tree, leaves: _NONE)
add_node(_dict, _visit_dict)
for _node in (_tuple, _list):
    add_node(_node, _sequence_visitor(_node))
for _node in (_ordered_dict, _defaultdict, _deque):
    add_node(_node, visitor_by_value(_node))

# ---- Taking apart and putting together ---------------------------------------------------------------------


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a pytree, and its structure.

    Nodes are tuples, lists, dicts (sorted by key), named tuples, OrderedDict, defaultdict, deque, None (a
    node without children) and the registered types; everything else is a leaf.

    Parameters
    ----------
    tree : pytree
    is_leaf : callable, optional
        Called at every node; where it is true, the node is taken as a leaf.

    Raises ValueError if the keys of a dict can't be sorted.

    Examples
    --------
    >>> flatten([1, {"b": None, "a": (2,)}])
    ([1, 2], PyTreeDef([*, {'a': (*,), 'b': None}]))
    >>> leaves([1, None], is_leaf=lambda x: x is None)
    [1, None]
    """
    leaves: list[Any] = []
    if is_leaf is not None:
        return leaves, _flatten_until(tree, leaves, is_leaf)
    try:
        visitor = _visitors[type(tree)]
    except KeyError:
        visitor = _classify(type(tree))
    if visitor is None:
        return [tree], LEAF
    return leaves, visitor(tree, leaves)


def _flatten_until(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool]) -> PyTreeDef:
    node = None if is_leaf(tree) else find_node(type(tree))
    if node is None:
        leaves.append(tree)
        return LEAF
    children, aux = take_apart(node, tree)
    return make_treedef(node, aux, tuple([_flatten_until(child, leaves, is_leaf) for child in children]))


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The pytree of a structure with these leaves; the inverse of `flatten`.

    Raises ValueError if there are too few or too many leaves.

    Examples
    --------
    >>> unflatten(structure({"a": 0, "b": (0, 0)}), [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a pytree.

    Examples
    --------
    >>> leaves({"b": 2, "a": [1, None]})
    [1, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a pytree.

    Examples
    --------
    >>> structure(({"b": 2, "a": [1, None]}, 3))
    PyTreeDef(({'a': [*, None], 'b': *}, *))
    """
    return flatten(tree, is_leaf)[1]


def flatten_one_level(tree: Any) -> tuple[tuple, Any]:
    """The children of the outermost node, and its auxiliary data. Raises ValueError for a leaf.

    Examples
    --------
    >>> flatten_one_level({"b": (1, 2), "a": 3})
    ((3, (1, 2)), ('a', 'b'))
    """
    return take_apart(_find_node_of(tree), tree)


def flatten_one_level_with_keys(tree: Any) -> tuple[tuple, Any]:
    """Pairs of key path entry and child of the outermost node, and its auxiliary data.

    Examples
    --------
    >>> flatten_one_level_with_keys([5, 6])
    (((SequenceKey(idx=0), 5), (SequenceKey(idx=1), 6)), None)
    """
    node = _find_node_of(tree)
    children, aux = take_apart(node, tree)
    return tuple(zip(node.keys(aux, len(children), tree), children, strict=True)), aux


def _find_node_of(tree: Any) -> NodeType:
    node = find_node(type(tree))
    if node is None:
        raise ValueError(f"expected a pytree node, got a leaf of type {type(tree)}")
    return node


def is_tree_node(typ: type) -> bool:
    """Whether instances of the type are nodes of pytrees.

    Examples
    --------
    >>> is_tree_node(dict), is_tree_node(float)
    (True, False)
    """
    return find_node(typ) is not None
