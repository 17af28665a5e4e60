"""Pytrees: with JAX's as the oracle on trees made up by Hypothesis; structures, errors, registered types."""

import collections
import copy
import dataclasses
import functools
import gc
import pickle
import time
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xform.tree
import xform.tree_util
from xform.core import tree

Point = collections.namedtuple("Point", "x y")


class Custom:
    """A node without keys; `aux` is its auxiliary data."""

    def __init__(self, aux, *children):
        self.aux, self.children = aux, children

    def __eq__(self, other):
        return type(other) is type(self) and (self.aux, self.children) == (other.aux, other.children)

    def __repr__(self):
        return f"{type(self).__name__}({self.aux!r}, {', '.join(map(repr, self.children))})"


class Keyed(Custom):
    """A node with keys."""


@dataclasses.dataclass
class Body:
    mass: object
    speed: object
    name: str = tree.static(default="Moon")


def flatten_custom(x):
    return x.children, x.aux


def flatten_keyed(entry, x):
    return [(entry(f"f{i}"), c) for i, c in enumerate(x.children)], x.aux


REGISTRATIONS = [
    ("register_pytree_node", (Custom, flatten_custom, lambda aux, c: Custom(aux, *c))),
    ("register_dataclass", (Body, ["mass", "speed"], ["name"])),
]
for name, arguments in REGISTRATIONS:
    getattr(tree, name)(*arguments)
tree.register_pytree_with_keys(Keyed, functools.partial(flatten_keyed, tree.GetAttrKey), lambda aux, c: Keyed(aux, *c))


@functools.cache
def jax_tree_util():
    """JAX's module, which knows the same types."""
    tu = pytest.importorskip("jax").tree_util
    for name, arguments in REGISTRATIONS:
        getattr(tu, name)(*arguments)
    tu.register_pytree_with_keys(Keyed, functools.partial(flatten_keyed, tu.GetAttrKey), lambda aux, c: Keyed(aux, *c))
    return tu


def containers(children, other_dicts=True):
    some = st.lists(children, max_size=3)
    pair = st.tuples(children, children)
    words = st.text("abc_'\\\n", max_size=3)
    dicts = [
        st.dictionaries(words, children, max_size=3).map(collections.OrderedDict),
        st.dictionaries(words, children, max_size=2).map(lambda d: collections.defaultdict(list, d)),
    ]
    return st.one_of(
        *(dicts if other_dicts else ()),
        some,
        some.map(tuple),
        st.dictionaries(words, children, max_size=3),
        st.dictionaries(st.integers(0, 9), children, max_size=3),
        pair.map(lambda p: Point(*p)),
        pair.map(lambda p: Body(*p)),
        st.tuples(words, some).map(lambda p: Custom(p[0], *p[1])),
        st.tuples(words, some).map(lambda p: Keyed(p[0], *p[1])),
    )


LEAVES = st.one_of(st.integers(0, 9), st.floats(allow_nan=False), st.text(max_size=1), st.just(frozenset({1})))
TREES = st.recursive(st.one_of(LEAVES, st.none()), containers, max_leaves=12)
# To optree an OrderedDict or defaultdict may stand for a dict with the same keys, to JAX not.
PLAIN_CONTAINERS = functools.partial(containers, other_dicts=False)
PLAIN_TREES = st.recursive(st.one_of(LEAVES, st.none()), PLAIN_CONTAINERS, max_leaves=12)


def outcome(function, *args, **kwargs):
    """What it returns, or the type of the exception."""
    try:
        return function(*args, **kwargs)
    except (ValueError, TypeError) as error:
        return type(error)


def assert_same(treedef, theirs):
    """That a structure is the same as one of JAX's."""
    assert (treedef.num_leaves, treedef.num_nodes) == (theirs.num_leaves, theirs.num_nodes)
    numbers = range(theirs.num_leaves)
    assert_equal(treedef.unflatten(numbers), theirs.unflatten(numbers))


def assert_equal(x, y):
    """That two trees are equal, containers' types and all; but a dict keeps its order here, and is sorted in JAX."""
    assert x == y
    assert repr(sort_dicts(x)) == repr(sort_dicts(y))


def sort_dicts(x):
    return jax_tree_util().tree_map(lambda leaf: leaf, x)


# ---- Agreement with JAX ------------------------------------------------------------------------------------


@given(TREES)
def test_flatten_and_unflatten_are_jaxs(x):
    leaves, treedef = tree.flatten(x)
    theirs, their_treedef = jax_tree_util().tree_flatten(x)
    assert leaves == theirs
    assert_same(treedef, their_treedef)
    assert repr(tree.unflatten(treedef, leaves)) == repr(x)
    assert repr(treedef.unflatten(iter(leaves))) == repr(x)
    assert tree.leaves(x) == leaves
    assert tree.structure(x) == treedef
    assert hash(tree.structure(x)) == hash(treedef)


@given(TREES)
def test_key_paths_are_jaxs(x):
    tu = jax_tree_util()
    pairs, treedef = tree.flatten_with_path(x)
    theirs, _ = tu.tree_flatten_with_path(x)
    assert treedef == tree.structure(x)
    assert [leaf for _, leaf in pairs] == [leaf for _, leaf in theirs]
    assert [repr(path) for path, _ in pairs] == [repr(path) for path, _ in theirs]
    assert [tree.keystr(path) for path, _ in pairs] == [tu.keystr(path) for path, _ in theirs]
    for options in ({"simple": True}, {"simple": True, "separator": "/"}, {"separator": ","}):
        assert [tree.keystr(p, **options) for p, _ in pairs] == [tu.keystr(p, **options) for p, _ in theirs]
    assert tree.paths(treedef) == [path for path, _ in pairs]


@given(TREES, st.sampled_from([tuple, list, dict, Point, Custom, type(None), int]))
def test_is_leaf_is_jaxs(x, kind):
    def is_leaf(node):
        return isinstance(node, kind)

    tu = jax_tree_util()
    leaves, treedef = tree.flatten(x, is_leaf)
    theirs, their_treedef = tu.tree_flatten(x, is_leaf)
    assert leaves == theirs
    assert_same(treedef, their_treedef)
    assert [leaf for _, leaf in tree.leaves_with_path(x, is_leaf)] == leaves
    assert tree.map(str, x, is_leaf=is_leaf) == tu.tree_map(str, x, is_leaf=is_leaf)


@given(PLAIN_TREES, PLAIN_TREES)
def test_prefixes_are_jaxs(a, b):
    """Whether one tree is a prefix of another, and what stands at its leaves."""
    tu = jax_tree_util()
    for x, y in ((a, b), (a, a), (tree.map(lambda leaf: 0, a), a), (a, tree.map(lambda leaf: b, a))):
        treedef, theirs = tree.structure(x), tu.tree_structure(x)
        subtrees = outcome(treedef.flatten_up_to, y)
        assert subtrees == outcome(theirs.flatten_up_to, y)
        if subtrees is ValueError:
            assert outcome(tree.map, lambda *xs: xs, x, y) is ValueError
            assert outcome(tree.broadcast, x, y) is ValueError
            assert tree.prefix_errors(x, y)
        else:
            assert tree.map(lambda *xs: xs, x, y) == tu.tree_map(lambda *xs: xs, x, y)
            assert tree.broadcast(x, y) == tu.tree_broadcast(x, y)
            assert not tree.prefix_errors(x, y)
        assert (treedef == tree.structure(y)) == (theirs == tu.tree_structure(y))
        if treedef == tree.structure(y):
            assert hash(treedef) == hash(tree.structure(y))


@given(TREES, TREES)
def test_structures_of_structures_are_jaxs(a, b):
    tu = jax_tree_util()
    outer, inner = tree.structure(a), tree.structure(b)
    their_outer, their_inner = tu.tree_structure(a), tu.tree_structure(b)
    assert_same(outer.compose(inner), their_outer.compose(their_inner))
    for child, theirs in zip(tree.children(outer), tu.treedef_children(their_outer), strict=True):
        assert_same(child, theirs)
    assert_same(tree.tuple_of([outer, inner]), tu.treedef_tuple([their_outer, their_inner]))
    assert tree.tuple_of([outer, inner]) == tree.structure((a, b))
    assert hash(tree.tuple_of([outer, inner])) == hash(tree.structure((a, b)))
    assert tree.tuple_of(tree.children(tree.structure((a, b)))) == tree.structure((a, b))
    assert list(map(hash, tree.children(tree.structure((a, b))))) == [hash(outer), hash(inner)]
    assert tree.is_leaf(outer) == tu.treedef_is_leaf(their_outer)
    nested = tree.map(lambda leaf: b, a)
    assert outer.compose(inner) == tree.structure(nested)
    if outer.num_leaves:  # otherwise JAX's inner structure is that of a leaf
        assert tree.transpose(outer, inner, nested) == tu.tree_transpose(their_outer, their_inner, nested)
        assert tree.transpose(outer, None, nested) == tree.transpose(outer, inner, nested)


@given(TREES)
def test_folds_are_jaxs(x):
    tu = jax_tree_util()

    def join(a, b):
        return f"({a}{b})"

    assert outcome(tree.reduce, join, x) == outcome(tu.tree_reduce, join, x)
    assert tree.reduce(join, x, "") == tu.tree_reduce(join, x, "")
    assert tree.reduce(join, x, None) == tu.tree_reduce(join, x, None)
    assert outcome(tree.reduce_associative, join, x) == outcome(tu.tree_reduce_associative, join, x)
    ours = tree.reduce_associative(join, x, identity="1")
    assert ours == tu.tree_reduce_associative(join, x, identity="1")
    assert tree.all(x) == tu.tree_all(x)
    assert tree.all_leaves(tree.leaves(x))
    assert tree.all_leaves([x]) == tu.all_leaves([x])
    assert tree.all_leaves([x], is_leaf=lambda node: True)


@given(TREES)
def test_one_level_is_jaxs(x):
    tu = jax_tree_util()
    assert tree.is_tree_node(type(x)) == tu.is_tree_node(type(x))
    ours = outcome(tree.flatten_one_level, x)
    theirs = outcome(tu.flatten_one_level, x)
    if ours is ValueError:
        assert theirs is ValueError
        return
    assert ours[0] == tuple(theirs[0])
    assert repr(ours[1]).replace("[", "(").replace("]", ")").replace(",)", ")") == repr(theirs[1]).replace(",)", ")")
    keyed = tree.flatten_one_level_with_keys(x)
    assert keyed[1] == ours[1]
    assert [child for _, child in keyed[0]] == list(ours[0])
    if type(x) is not Point:  # JAX 0.10 has .x, .x there
        theirs = tu.flatten_one_level_with_keys(x)
        assert [str(key) for key, _ in keyed[0]] == [str(key) for key, _ in theirs[0]]


@given(TREES)
def test_trees_from_iterables(x):
    def nest(x):
        return [nest(child) for child in tree.flatten_one_level(x)[0]] if tree.is_tree_node(type(x)) else x

    assert repr(tree.build_tree(tree.structure(x), nest(x))) == repr(x)


@pytest.mark.parametrize(
    "x",
    [
        (),
        [],
        {},
        None,
        [None],
        ((),),
        {"a": {}},
        Point((), None),
        collections.OrderedDict(),
        np.ones(2),
        "ab",
    ],
    ids=repr,
)
def test_edges_are_jaxs(x):
    leaves, treedef = tree.flatten(x)
    assert_same(treedef, jax_tree_util().tree_structure(x))
    assert treedef.unflatten(leaves) is x or treedef.unflatten(leaves) == x


class ListSubclass(list):
    pass


class TupleSubclass(tuple):
    pass


class DictSubclass(dict):
    pass


@pytest.mark.parametrize(
    "x",
    [
        ListSubclass([1]),
        TupleSubclass((1,)),
        DictSubclass(a=1),
        {1, 2},
        range(3),
        {}.keys(),
        int,
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_is_a_leaf_although_it_looks_like_a_node(x):
    assert tree.flatten(x)[0][0] is x
    assert jax_tree_util().tree_leaves(x)[0] is x


# ---- Structures --------------------------------------------------------------------------------------------


def test_structures_compare_by_value():
    a, b = Custom("meta", 1, {"x": 2}), Custom("meta", 3, {"x": 4})
    s, t = tree.structure([a]), tree.structure([b])
    assert s == t
    assert hash(s) == hash(t)
    assert {s: 1}[t] == 1
    assert s == pickle.loads(pickle.dumps(s)) == copy.deepcopy(s)
    assert s != tree.structure([Custom("other", 1, {"x": 2})])
    assert s != tree.structure([Custom("meta", 1, {"y": 2})])
    assert s != tree.structure([1])
    assert tree.structure([1]) != s
    assert s != "something else"


def test_a_dict_keeps_its_order():
    x = {"b": 1, "a": 2}
    leaves, treedef = tree.flatten(x)
    assert leaves == [2, 1]
    assert list(treedef.unflatten(leaves)) == ["b", "a"]
    assert treedef == tree.structure(dict(sorted(x.items())))
    assert hash(treedef) == hash(tree.structure(dict(sorted(x.items()))))
    assert tree.leaves({2: 0, "a": 1, 1: 2}) == [2, 0, 1]
    unsortable = {1j: 0, None: 1, 0j: 2}
    leaves, treedef = tree.flatten(unsortable)
    assert sorted(leaves) == [0, 1, 2]
    assert treedef.unflatten(leaves) == unsortable


def test_unhashable_auxiliary_data():
    x = {"a": (Custom([1], 2), 3)}
    leaves, treedef = tree.flatten(x)
    assert treedef == tree.structure(x)
    assert treedef.unflatten(leaves) == x
    assert tree.map(lambda a, b: a + b, x, x) == {"a": (Custom([1], 4), 6)}


def test_structures_do_not_keep_leaves_alive():
    class Leaf:
        pass

    leaf = Leaf()
    reference = weakref.ref(leaf)
    treedef = tree.structure([leaf, Custom("meta", leaf)])
    del leaf
    gc.collect()
    assert reference() is None
    assert treedef.num_leaves == 2


def test_deep_trees():
    x = 1
    for _ in range(150):
        x = [x, 2]
    leaves, treedef = tree.flatten(x)
    assert treedef.unflatten(leaves) == x


def test_deque_is_a_node():
    x = collections.deque([1, [2]], maxlen=3)
    leaves, treedef = tree.flatten(x)
    assert leaves == [1, 2]
    out = treedef.unflatten([3, 4])
    assert out == collections.deque([3, [4]])
    assert out.maxlen == 3
    assert tree.keystr(tree.paths(treedef)[1]) == "[1][0]"


def test_struct_sequence_is_a_node():
    x = time.gmtime(0)
    leaves, treedef = tree.flatten(x)
    assert leaves == list(x)
    assert treedef.unflatten(leaves) == x
    assert tree.keystr(tree.paths(treedef)[0]) == ".tm_year"


# ---- Errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [1, (1, 2), {"a": (1, 2)}, [Custom("meta", 1)], ()])
def test_wrong_number_of_leaves(x):
    leaves, treedef = tree.flatten(x)
    for wrong in ([*leaves, 0], leaves[:-1]):
        if len(wrong) != len(leaves):
            with pytest.raises(ValueError, match=rf"(few|many) leaves .*expected: {len(leaves)}"):
                tree.unflatten(treedef, iter(wrong))
    with pytest.raises(ValueError, match=r"shorter"):
        tree.build_tree(tree.structure((1, 2)), [1])


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ((1, 2), (1, 2, 3), "tree root.*with 2 children.*but with 3 children"),
        ({"w": {"x": 1}}, {"w": {"y": 1}}, r"tree\['w'\].*missing key\(s\):\n +\['x'\]"),
        ([1, (2, 3)], [1, [2, 3]], r"tree\[1\]\n.*'tuple'.*'list'"),
        ((1, None), (1, 2), r"tree\[1\]\n.*'NoneType'.*'int'"),
        (Point(1, [2]), Point(1, 2), r"tree\.y\n.*'list'.*'int'"),
        (Body(1, 2, "Moon"), Body(1, 2, "Sun"), r"metadata.*\('Moon',\).*\('Sun',\)"),
        (Body((1,), 2), Body((1, 2), 2), r"tree\.mass\n"),
        (Keyed("m", [1]), Keyed("m", (1,)), r"tree\.f0\n"),
    ],
)
def test_map_of_different_structures(a, b, message):
    for function in (tree.map, tree.map_with_path):
        where = rf"tree\.{function.__name__}: pytree 3 differs in structure from the first one: "
        with pytest.raises(ValueError, match=rf"(?s){where}.*{message}"):
            function(lambda *xs: xs, a, a, b)


def test_prefix_errors_name_key_path_and_both_sides():
    arguments = tree.structure(({"w": 1, "b": 2}, [3, 4]))
    what = "vmap in_axes must be a prefix tree of the arguments: "
    with pytest.raises(ValueError, match=rf"(?s){what}.*vmap in_axes\[0\]\n.*\['w'\].*\['b', 'w'\]"):
        tree.flatten_axes("vmap in_axes", arguments, ({"w": 0}, 0))
    with pytest.raises(ValueError, match=r"(?s)out_axes must be a prefix tree of the result: .*out_axes tree root"):
        tree.flatten_axes("out_axes", arguments, (0, 0, 0), "the result")
    with pytest.raises(ValueError, match=r"(?s)prefix_tree must be .*prefix_tree\[0\]\[1\]"):
        tree.broadcast_prefix(((0, (1,)),), ((0, 1),))
    messages = [str(error("spec")) for error in tree.prefix_errors(((0,), [1]), (0, (1, 2)))]
    assert len(messages) == 2
    assert all("    spec[" in m for m in messages)


def test_transpose_of_another_structure():
    with pytest.raises(TypeError, match=r"tree.transpose: expected the structure .*, got .*"):
        tree.transpose(tree.structure([0, 0]), tree.structure((0, 0)), [(1, 2), (3,)])


# ---- Prefixes ----------------------------------------------------------------------------------------------


def test_none_as_leaf_of_a_prefix():
    treedef = tree.structure((1, {"a": 2, "b": (3, 4)}, None))
    assert tree.flatten_axes("in_axes", treedef, (0, None, 1)) == [0, None, None, None]
    assert tree.flatten_axes("in_axes", treedef, (None, {"a": 1, "b": (2, None)}, None)) == [None, 1, 2, None]
    assert tree.flatten_axes("in_axes", treedef, None) == [None] * 4
    assert tree.flatten_axes("in_axes", treedef, -1) == [-1] * 4
    assert tree.broadcast_prefix((0, None), (1, None)) == [0]
    with pytest.raises(ValueError):
        tree.broadcast_prefix((0, None), (1, 2))


@given(TREES)
def test_a_leaf_is_a_prefix_of_everything(x):
    n = len(tree.leaves(x))
    assert tree.broadcast_prefix(7, x) == [7] * n
    assert tree.broadcast_prefix((7, 8), (x, x)) == [7] * n + [8] * n
    assert tree.broadcast_prefix(x, x) == tree.leaves(x)


# ---- Registered types --------------------------------------------------------------------------------------


def test_registered_by_methods():
    @tree.register_pytree_node_class
    class Plain:
        def __init__(self, x):
            self.x = x

        def tree_flatten(self):
            return iter([self.x]), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    @tree.register_pytree_with_keys_class
    class WithKeys(Plain):
        def tree_flatten_with_keys(self):
            return [(tree.GetAttrKey("x"), self.x)], None

    for cls, path in ((Plain, "[<flat index 0>][1]"), (WithKeys, ".x[1]")):
        pairs, treedef = tree.flatten_with_path(cls((1, 2)))
        assert [x for _, x in pairs] == [1, 2]
        assert tree.keystr(pairs[1][0]) == path
        assert tree.keystr(tree.paths(treedef)[1]) == path
        assert tree.map(lambda x: x + 1, cls((1, 2))).x == (2, 3)


def test_registering_twice_or_nonsense():
    with pytest.raises(ValueError, match=r"Custom.* is already registered"):
        tree.register_pytree_node(Custom, flatten_custom, Custom)
    with pytest.raises(ValueError, match=r"'list'.* cannot be re-registered"):
        tree.register_pytree_node(list, iter, list)
    with pytest.raises(TypeError, match="Expected a class, got 3"):
        tree.register_static(3)


def test_a_type_can_be_registered_after_it_was_met():
    class Late:
        def __init__(self, x):
            self.x = x

    class LatePoint(collections.namedtuple("LatePoint", "x")):
        pass

    def register(cls):
        tree.register_pytree_node(cls, lambda v: ((v.x, v.x), None), lambda aux, children: None)

    assert tree.leaves([Late(1)]) != [1]
    assert tree.leaves([LatePoint(1)]) == [1]
    register(Late)
    with pytest.warns(UserWarning, match="LatePoint.* is a subclass of `collections.namedtuple`"):
        register(LatePoint)
    for cls in (Late, LatePoint):
        assert tree.leaves([cls(1), {"a": cls(2)}]) == [1, 1, 2, 2]


@pytest.mark.parametrize("result", [(1, 2, 3), (None, 2), 5, None])
def test_bad_flatten_functions(result):
    class Bad:
        pass

    tree.register_pytree_node(Bad, lambda x: result, lambda aux, children: Bad())
    with pytest.raises((TypeError, RuntimeError), match="iter"):
        tree.flatten([Bad()])


def test_errors_in_flatten_functions_are_not_hidden():
    class Raises:
        pass

    def flatten(x):
        raise ZeroDivisionError

    tree.register_pytree_node(Raises, flatten, lambda aux, children: Raises())
    with pytest.raises(ZeroDivisionError):
        tree.flatten((Raises(),))


def test_dataclasses():
    @tree.register_dataclass
    @dataclasses.dataclass
    class A:
        x: int
        y: int = dataclasses.field(metadata={"static": True})
        z: int = 0
        w: int = tree.static(default=1, metadata={"unit": "m"})

    a = A(1, 2, 3, 4)
    leaves, treedef = tree.flatten(a)
    assert leaves == [1, 3]
    assert treedef.unflatten([5, 6]) == A(5, 2, 6, 4)
    assert treedef == tree.structure(A(0, 2, 0, 4)) != tree.structure(A(0, 3, 0, 4))
    assert [tree.keystr(p) for p in tree.paths(treedef)] == [".x", ".z"]
    assert dataclasses.fields(A)[3].metadata == {"unit": "m", "static": True}

    @functools.partial(tree.register_dataclass, data_fields=["b"], meta_fields=[], drop_fields=["c"])
    @dataclasses.dataclass
    class B:
        b: int
        c: int = 7

    assert tree.map(str, B(1, 2)) == B("1")

    @functools.partial(tree.register_dataclass, data_fields=(), meta_fields=("m",))
    class NoDataclass:
        def __init__(self, m):
            self.m = m

    assert tree.leaves(NoDataclass(1)) == []
    assert tree.map(str, NoDataclass(5)).m == 5


def test_bad_dataclasses():
    @dataclasses.dataclass
    class A:
        x: int
        y: int
        z: int = dataclasses.field(default=0, init=False)

    register = tree.register_dataclass
    with pytest.raises(ValueError, match=r"\['z'\] are not expected"):
        register(A)
    with pytest.raises(ValueError, match=r"\['y'\] are missing"):
        register(A, ["x"], [])
    with pytest.raises(ValueError, match=r"\['x'\] are both"):
        register(A, ["x"], ["x", "y"])
    with pytest.raises(ValueError, match=r"\['q'\] are not expected"):
        register(A, ["x", "y", "q"], [])
    with pytest.raises(TypeError, match="both data_fields and meta_fields or neither"):
        register(A, ["x"])
    with pytest.raises(TypeError, match="is not a dataclass"):
        register(int)
    assert tree.leaves(register(A, drop_fields=["z"])(1, 2)) == [1, 2]


def test_static_types():
    @tree.register_static
    @dataclasses.dataclass(frozen=True)
    class Method:
        name: str

    a = Method("rk4")
    leaves, treedef = tree.flatten([a, 1])
    assert leaves == [1]
    assert treedef.unflatten([2]) == [a, 2]
    assert treedef == tree.structure([Method("rk4"), 3])
    assert treedef != tree.structure([Method("euler"), 3])


def test_partial():
    tu = jax_tree_util()

    def f(*args, **kwargs):
        return args, kwargs

    p = tree.Partial(f, 1, [2], k=3)
    theirs = tu.Partial(f, 1, [2], k=3)
    assert p(4, j=5) == ((1, [2], 4), {"k": 3, "j": 5})
    leaves, treedef = tree.flatten(p)
    assert leaves == tu.tree_leaves(theirs) == [1, 2, 3]
    assert treedef == tree.structure(tree.Partial(f, 0, [0], k=0))
    assert treedef != tree.structure(tree.Partial(print, 0, [0], k=0))
    assert treedef.unflatten("abc")() == (("a", ["b"]), {"k": "c"})
    for inner in (functools.partial(f, 1), tree.Partial(f, 1)):
        whole = tree.Partial(inner, 2)
        assert whole(3) == ((1, 2, 3), {})
        assert tree.leaves(whole) == [2]
        assert tree.structure(whole) == tree.structure(tree.Partial(inner, 9))


# ---- Key paths ---------------------------------------------------------------------------------------------


def test_key_entries():
    entries = [tree.SequenceKey(1), tree.DictKey("a"), tree.GetAttrKey("x"), tree.FlattenedIndexKey(3)]
    assert list(map(str, entries)) == ["[1]", "['a']", ".x", "[<flat index 3>]"]
    assert repr(entries[0]) == "SequenceKey(idx=1)"
    assert entries[1] == tree.DictKey(key="a") != tree.GetAttrKey("a")
    assert len({*entries, *map(copy.copy, entries)}) == 4
    assert tree.keystr((*entries, "raw", 7), simple=True, separator=".") == "1.a.x.3.raw.7"
    assert pickle.loads(pickle.dumps(entries)) == entries
    match entries[0]:
        case tree.SequenceKey(i):
            assert i == 1


def test_is_leaf_takes_path():
    x = {"a": (1, 2), "b": (3, 4)}
    pairs, treedef = tree.flatten_with_path(x, lambda path, node: path == (tree.DictKey("b"),), True)
    assert [leaf for _, leaf in pairs] == [1, 2, (3, 4)]
    assert treedef == tree.structure({"a": (1, 2), "b": 3})
    everything = []
    tree.leaves_with_path([x, None], lambda path, node: everything.append((tree.keystr(path), node)), True)
    assert everything[:3] == [("", [x, None]), ("[0]", x), ("[0]['a']", (1, 2))]
    assert everything[-1] == ("[1]", None)


def test_map_with_path():
    def f(path, x, y):
        return tree.keystr(path), x, y

    assert tree.map_with_path(f, {"a": (1,)}, {"a": ([2],)}) == {"a": (("['a'][0]", 1, [2]),)}


# ---- Public names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tree", "tree_util"])
def test_public_names_are_jaxs(name):
    jax = pytest.importorskip("jax")
    theirs = {n for n in dir(getattr(jax, name)) if not n.startswith("_")}
    assert theirs <= set(getattr(xform, name).__all__)
    for n in getattr(xform, name).__all__:
        assert hasattr(getattr(xform, name), n)


def test_default_registry():
    registry = xform.tree_util.default_registry
    assert registry.flatten({"a": 1})[0] == [1]
    assert registry.is_node(dict)
