"""Sorting, searching, counting and sets against NumPy, eagerly and, with sizes given, compiled."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.numpy_cases import Case, by_name, check, compare
from xform.core.errors import ConcretizationTypeError

RNG = np.random.default_rng(0)
F = RNG.normal(size=(3, 5))
K = RNG.integers(-3, 4, (3, 5))
N = np.array([3.0, np.nan, -np.inf, 0.0, -0.0, np.inf, 1.0, np.nan, 3.0])
C = np.array([1 + 2j, 1 - 1j, 0j, np.nan + 0j, 1 + 2j])
B = K > 0
SORTED = np.array([-1.0, 0.0, 0.0, 2.0, 5.0])
VALUES = np.array([[-2.0, -1.0, 0.0], [1.5, 5.0, np.nan]])
U = np.array([3, 1, 3, 2, 1, 7])

CASES = [
    *(Case("sort", (a,)) for a in (F, K, N, C, B, F.astype("f"), K.astype("i1"), F[:0])), Case("sort", (F, 0)),
    Case("sort", (F, None)), Case("sort", (F,), {"stable": True}),
    *(Case("argsort", (a,), {"stable": True}) for a in (F, K, N, B)), Case("argsort", (K, 0), {"stable": True}),
    Case("argsort", (K, None), {"stable": True}),
    Case("lexsort", ((K[0], K[1]),)), Case("lexsort", ((K, B),), {"axis": 0}), Case("lexsort", (K,)),
    Case("sort_complex", (F[0],)), Case("sort_complex", (C[:3],)), Case("sort_complex", (K[0],)),
    *(Case("searchsorted", (SORTED, v), {"side": s}) for v in (VALUES, np.float64(0), np.array([1, 2]))
        for s in ("left", "right")),
    Case("searchsorted", (np.array([1, 3, 5]), VALUES)), Case("searchsorted", (SORTED[:0], VALUES)),
    Case("searchsorted", (SORTED[::-1].copy(), VALUES), {"sorter": np.arange(4, -1, -1)}),
    Case("searchsorted", (np.array([1.0, 2.0, np.nan]), VALUES), {"side": "right"}),
    *(Case("digitize", (VALUES[:, :2], SORTED), {"right": r}) for r in (False, True)),
    *(Case("digitize", (VALUES[:, :2], SORTED[::-1].copy()), {"right": r}) for r in (False, True)),
    Case("nonzero", (K,), jit=False), Case("nonzero", (F[0] > 0,), jit=False), Case("flatnonzero", (K,), jit=False),
    Case("argwhere", (B,), jit=False), Case("argwhere", (np.float64(2),), jit=False),
    Case("extract", (B, F), jit=False), Case("compress", (np.array([True, False, True]), F, 0), jit=False),
    Case("compress", (np.array([True, False, True, True]), F, 1), jit=False),
    Case("compress", ([0, 1], F), jit=False),
    Case("bincount", (U,), jit=False), Case("bincount", (U, U * 0.5), jit=False),
    Case("bincount", (U,), {"minlength": 12}, jit=False), Case("bincount", (U[:0],), jit=False),
    Case("unravel_index", (np.array([0, 5, 23]), (2, 3, 4))), Case("unravel_index", (7, (4, 4))),
    *(Case("ravel_multi_index", ((np.array([0, 1]), np.array([2, 3])), (2, 4)), k, fixed=(1,))
        for k in ({}, {"order": "F"})),
    *(Case("ravel_multi_index", ((np.array([-3, 5]), np.array([2, 9])), (2, 4)), {"mode": m})
        for m in ("wrap", "clip", ("clip", "wrap"))),
    *(Case("unique", (a,), k, jit=False) for a in (U, K, F[0], N, B)
        for k in ({}, {"return_index": True, "return_inverse": True, "return_counts": True})),
    Case("unique", (N,), {"equal_nan": False}, jit=False),
    Case("unique", (np.array([[1, 2], [0, 3], [1, 2]]),), {"axis": 0, "return_inverse": True, "return_counts": True},
         jit=False),
    Case("unique", (K,), {"axis": 1}, jit=False),
    *(Case(n, (U,), jit=False) for n in ("unique_all", "unique_counts", "unique_inverse")),
    Case("unique_values", (U,), {}, np.unique, jit=False),
    *(Case(n, (U, np.array([1, 2, 9])), jit=False) for n in ("union1d", "intersect1d", "setdiff1d", "setxor1d")),
    Case("intersect1d", (np.unique(U), np.array([1, 2, 9])), {"return_indices": True, "assume_unique": True},
         jit=False),
    Case("intersect1d", (U, np.array([2, 9, 1, 1])), {"return_indices": True}, jit=False),
    Case("isin", (K, np.array([0, 2]))), Case("isin", (K, np.array([0, 2])), {"invert": True}),
    Case("isin", (K, np.arange(0, 80, 2))), Case("isin", (F, F[0])), Case("isin", (K, [])),
]  # fmt: skip


@by_name(CASES)
def test_against_numpy(cases, mode):
    check(cases, mode)


BOTH = pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])


@BOTH
def test_descending(transform):
    x = xnp.array([2, 1, 2, 3])
    assert transform(lambda v: xnp.sort(v, descending=True))(x).tolist() == [3, 2, 2, 1]
    assert transform(lambda v: xnp.argsort(v, descending=True))(x).tolist() == [
        3,
        0,
        2,
        1,
    ]  # equal ones keep their order
    assert transform(lambda v: xnp.argsort(v, dtype="int32"))(x).dtype == np.int32


@BOTH
def test_partition(transform):
    for k in (0, 3, -2):
        got = np.asarray(transform(lambda v: xnp.partition(v, k))(xnp.array(F)))  # noqa: B023
        np.testing.assert_array_equal(np.sort(got), np.sort(F))
        pivot = got[:, k : k + 1 or None][:, :1]
        n = k % 5
        assert np.all(got[:, :n] <= pivot) and np.all(got[:, n + 1 :] >= pivot)
        order = np.asarray(transform(lambda v: xnp.argpartition(v, k % 3, 0))(xnp.array(F[:, :3].T)))  # noqa: B023
        np.testing.assert_array_equal(np.sort(order, 0), np.arange(3)[:, None].repeat(3, 1))


@BOTH
def test_top_k(transform):
    values, places = transform(lambda v: xnp.top_k(v, 2, axis=0))(xnp.array(F))
    compare(values, -np.sort(-F, 0)[:2])
    compare(places, np.argsort(-F, 0)[:2])
    values, places = transform(lambda v: xnp.top_k(v, 2, mode="smallest"))(xnp.array(F))
    compare(values, np.sort(F)[:, :2])
    compare(places, np.argsort(F)[:, :2])


@BOTH
def test_sizes_of_nonzero(transform):
    a = np.array([[0, 3, 0], [5, 0, 7]])
    i, j = np.nonzero(a)
    for size in (0, 2, 3, 5):
        got = transform(lambda v: xnp.nonzero(v, size=size, fill_value=-1))(xnp.array(a))  # noqa: B023
        for g, w in zip(got, (i, j)):
            compare(g, np.concatenate([w, np.full(5, -1)])[:size])
    got = transform(lambda v: xnp.nonzero(v, size=5, fill_value=(8, 9)))(xnp.array(a))
    assert [g.tolist()[-1] for g in got] == [8, 9]
    compare(
        transform(lambda v: xnp.argwhere(v, size=4, fill_value=-1))(xnp.array(a)),
        np.array([[0, 1], [1, 0], [1, 2], [-1, -1]]),
    )
    compare(transform(lambda v: xnp.flatnonzero(v, size=2))(xnp.array(a)), np.array([1, 3]))
    compare(transform(lambda v: xnp.where(v > 3, size=2)[0])(xnp.array(a)), np.array([1, 1]))
    compare(transform(lambda v: xnp.extract(v > 3, v, size=3, fill_value=0))(xnp.array(a)), np.array([5, 7, 0]))
    compare(
        transform(lambda v: xnp.compress(v[1] > 0, v, 1, size=3, fill_value=-1))(xnp.array(a)),
        np.array([[0, 0, -1], [5, 7, -1]]),
    )


@BOTH
@pytest.mark.parametrize("a", [U, F[0], np.array([2.0, np.nan, 2.0, np.nan]), np.zeros(0)])
def test_sizes_of_unique(transform, a):
    n = len(np.unique(a))
    for size in {max(n - 1, 0), n, n + 2}:
        got = transform(lambda v: xnp.unique(v, True, True, True, size=size, fill_value=9))(xnp.array(a))  # noqa: B023
        values, index, inverse, counts = np.unique(a, True, True, True)
        kept = min(n, size)
        np.testing.assert_array_equal(np.asarray(got[0]), np.concatenate([values, [9.0] * 2])[:size])
        np.testing.assert_array_equal(np.asarray(got[1])[:kept], index[:kept])
        compare(got[2], inverse)
        np.testing.assert_array_equal(np.asarray(got[3]), np.concatenate([counts, [0, 0]])[:size])


@BOTH
def test_sizes_of_unique_rows(transform):
    a = np.array([[1, 2], [0, 3], [1, 2], [0, 1]])
    got = transform(lambda v: xnp.unique(v, axis=0, size=4, return_inverse=True))(xnp.array(a))
    assert got[0].tolist() == [[0, 1], [0, 3], [1, 2], [0, 1]] and got[1].tolist() == [2, 1, 2, 0]
    got = transform(lambda v: xnp.unique_all(v, size=4, fill_value=0))(xnp.array(U))
    assert got.values.tolist() == [1, 2, 3, 7] and got.counts.tolist() == [2, 1, 2, 1]


@BOTH
def test_sizes_of_sets(transform):
    a, b = xnp.array(U), xnp.array([1, 2, 9, 2])
    for name, want in (
        ("union1d", [1, 2, 3, 7, 9, 0, 0]),
        ("intersect1d", [1, 2, 0, 0, 0, 0, 0]),
        ("setdiff1d", [3, 7, 0, 0, 0, 0, 0]),
        ("setxor1d", [3, 7, 9, 0, 0, 0, 0]),
    ):
        assert transform(lambda x, y: getattr(xnp, name)(x, y, size=7, fill_value=0))(a, b).tolist() == want  # noqa: B023
    got = transform(lambda x, y: xnp.intersect1d(x, y, return_indices=True, size=3, fill_value=-1))(a, b)
    assert [g.tolist() for g in got] == [[1, 2, -1], [1, 3, 6], [0, 1, 4]]


@BOTH
def test_length_of_bincount(transform):
    got = transform(lambda x: xnp.bincount(x, length=5))(xnp.array([0, 3, 3, 9, -1]))
    compare(got, np.array([1, 0, 0, 2, 0]))
    got = transform(lambda x, w: xnp.bincount(x, w, length=3))(xnp.array([0, 2, 2]), xnp.array([0.5, 1.0, 2.0]))
    compare(got, np.array([0.5, 0, 3]))


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_methods_of_searchsorted(method, side):
    a = np.sort(np.append(RNG.integers(0, 20, 37).astype(float), np.nan))
    v = np.append(RNG.integers(-1, 22, (4, 10)).astype(float), np.full((1, 10), np.nan), 0)
    got = xform.jit(lambda a, v: xnp.searchsorted(a, v, side, method=method))(xnp.array(a), xnp.array(v))
    compare(got, np.searchsorted(a, v, side))


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_methods_of_isin(method):
    compare(xnp.isin(xnp.array(K), xnp.array([0, 2, 3]), method=method), np.isin(K, [0, 2, 3]))


def test_derivatives():
    from xform.test_util import check_grads

    check_grads(xnp.sort, (F,), order=2, modes=("fwd", "rev"))
    check_grads(lambda x: xnp.top_k(x, 2)[0], (F,), order=1, modes=("fwd", "rev"))
    np.testing.assert_array_equal(
        np.asarray(
            xform.grad(lambda w: xnp.bincount(xnp.array([0, 1, 1]), w, length=2) @ xnp.array([2.0, 5.0]))(xnp.ones(3))
        ),
        [2, 5, 5],
    )


def test_vmap():
    got = xform.vmap(xnp.argsort, in_axes=1)(xnp.array(F))
    compare(got, np.argsort(F.T, 1))
    got = xform.vmap(lambda a, v: xnp.searchsorted(a, v), in_axes=(0, None))(xnp.array(np.sort(F)), 0.0)
    compare(got, np.array([np.searchsorted(np.sort(row), 0.0) for row in F]))


@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere", "unique", "unique_values", "where"])
def test_traced_values_need_a_size(name):
    with pytest.raises(ConcretizationTypeError, match=r"size="):
        xform.jit(getattr(xnp, name))(xnp.array(U))
    for call in (
        lambda x: xnp.bincount(x),
        lambda x: xnp.setdiff1d(x, x),
        lambda x: xnp.extract(x > 1, x),
        lambda x: xnp.union1d(x, x),
    ):
        with pytest.raises(ConcretizationTypeError, match=r"size=|length="):
            xform.jit(call)(xnp.array(U))


def test_values_known_within_jit_need_none():
    compare(xform.jit(lambda: xnp.unique(np.array([2, 1, 2])))(), np.array([1, 2]))
    compare(xform.jit(lambda x: x[xnp.nonzero(np.array([0, 1, 1]))[0]])(xnp.arange(3.0)), np.array([1.0, 2.0]))


@BOTH
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: xnp.sort(xnp.ones(2), 1), np.exceptions.AxisError, r"numpy\.sort: axis 1 is out of bounds"),
        (lambda: xnp.sort(xnp.ones(()), 0), np.exceptions.AxisError, r"numpy\.sort: axis 0 is out of bounds"),
        (lambda: xnp.sort(xnp.ones(2), kind="bogo"), ValueError, r"numpy\.sort: kind must be"),
        (lambda: xnp.partition(xnp.ones(2), 5), ValueError, r"numpy\.partition: kth\(=5\) out of bounds \(2\)"),
        (lambda: xnp.top_k(xnp.ones(2), 3), ValueError, r"numpy\.top_k: k=3"),
        (
            lambda: xnp.searchsorted(xnp.ones((2, 2)), 1.0),
            ValueError,
            r"numpy\.searchsorted: a must have one axis, got f64\[2,2\]",
        ),
        (lambda: xnp.searchsorted(xnp.ones(2), 1.0, "middle"), ValueError, "side must be"),
        (lambda: xnp.searchsorted(xnp.ones(2), 1.0, method="guess"), ValueError, "method must be"),
        (lambda: xnp.digitize(xnp.ones(2), np.array([1.0, 3.0, 2.0])), ValueError, "increasing or decreasing"),
        (
            lambda: xnp.bincount(xnp.ones(2)),
            TypeError,
            r"numpy\.bincount: x can't be cast .*, got f64\[2\]",
        ),
        (lambda: xnp.bincount(np.array([-1])), ValueError, "no negative elements"),
        (lambda: xnp.nonzero(1.0), ValueError, r"numpy\.nonzero: calling nonzero on 0d arrays"),
        (
            lambda: xnp.unravel_index(np.array([9]), (2, 3)),
            ValueError,
            r"numpy\.unravel_index: index 9 is out of bounds for array with size 6, of shape \(2, 3\)",
        ),
        (
            lambda: xnp.ravel_multi_index((np.array([3]), np.array([0])), (2, 3)),
            ValueError,
            r"numpy\.ravel_multi_index: invalid entry",
        ),
        (lambda: xnp.lexsort((xnp.ones(2), xnp.ones(3))), ValueError, r"numpy\.lexsort: keys must have one shape"),
    ],
)
def test_errors(call, error, message, transform):
    with pytest.raises(error, match=message):
        transform(call)()
