"""`xform.tree_util`: pytrees, their node types, key paths. May import: `xform.core.tree`."""

from types import SimpleNamespace

from xform.core.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    Partial,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    build_tree,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    prefix_errors,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from xform.core.tree import all as tree_all
from xform.core.tree import broadcast as tree_broadcast
from xform.core.tree import children as treedef_children
from xform.core.tree import flatten as tree_flatten
from xform.core.tree import flatten_with_path as tree_flatten_with_path
from xform.core.tree import is_leaf as treedef_is_leaf
from xform.core.tree import leaves as tree_leaves
from xform.core.tree import leaves_with_path as tree_leaves_with_path
from xform.core.tree import map as tree_map
from xform.core.tree import map_with_path as tree_map_with_path
from xform.core.tree import reduce as tree_reduce
from xform.core.tree import reduce_associative as tree_reduce_associative
from xform.core.tree import structure as tree_structure
from xform.core.tree import transpose as tree_transpose
from xform.core.tree import tuple_of as treedef_tuple
from xform.core.tree import unflatten as tree_unflatten

#: The types of nodes that all functions here know, as an object.
default_registry = SimpleNamespace(
    flatten=tree_flatten,
    flatten_one_level=flatten_one_level,
    flatten_one_level_with_keys=flatten_one_level_with_keys,
    flatten_with_path=tree_flatten_with_path,
    is_node=is_tree_node,
    register_dataclass_node=register_dataclass,
    register_node=register_pytree_node,
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
    "all_leaves",
    "build_tree",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "prefix_errors",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
