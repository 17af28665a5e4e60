"""Indexing against NumPy: reading, updates by ``.at``, out-of-range indices, `take` and its kin."""

import itertools
import operator
import warnings

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest

import xform
from xform.numpy import indexing  # noqa: F401  (installs the methods)
from xform.core.array import ArrayImpl
from xform.core.errors import NonConcreteBooleanIndexError


def to_array(x):
    return ArrayImpl(np.asarray(x))


X = np.arange(120.0).reshape(5, 4, 6)
MASK = np.random.default_rng(0).integers(0, 2, (5, 4)).astype(bool)
I = np.array([0, 2, -1])
COLUMN = np.array([[1], [3]])

BASIC = [
    0, -1, np.int8(2), (1, -2), (0, 1, 2), slice(None), slice(1, 3), slice(None, None, -1), slice(4, 0, -2),
    slice(3, 1), slice(-2, None), slice(-100, 100), (slice(None), 2), (Ellipsis, -1), (1, Ellipsis), Ellipsis, (), None,
    (None, 1, None, slice(1, 2)), (Ellipsis, None), (0, Ellipsis, None, slice(None, None, 3)),
    (slice(None, None, 2), slice(None, None, -1), slice(1, 5, 2)), (1, 2, 3, Ellipsis), np.array(2),
    (slice(2, 2), 1), (slice(4, 1, -1), slice(3, None, -1), 0),
]  # fmt: skip
ADVANCED = [
    I, [0, 2], [], [[0, 1], [2, -3]], np.array([], np.int64), np.array([4, 0], np.uint8), I.astype(np.int8),
    (I, [1, 0, 3]), (I, COLUMN), (COLUMN, I, [[0]]), (slice(None), I), (Ellipsis, I), (I, slice(1, 3)),
    (I, slice(None), 2), (2, slice(None), I), (I, slice(None), I), (0, I), (slice(None), 0, I), (slice(None), I, 0),
    (I, None, 0), (None, I, None), (I, None, slice(None, None, -2), I), (slice(None, None, 2), COLUMN, slice(5, 1, -2)),
    (0, Ellipsis, I), (I, Ellipsis, 0), (0, 1, Ellipsis, I), (I, I, Ellipsis, 0), (I, I, Ellipsis, I),
    MASK, (MASK, 0), (MASK, I[:1]), (slice(None), MASK[0]), MASK[:, 0], (MASK[:, 0], slice(None), [0]),
    (MASK[:, 0].tolist(), 0), np.zeros((5, 4), bool), np.ones((5, 4, 6), bool), True, False, (True, 1),
    (False, [1]), (True, I, slice(1)), (slice(None), True, slice(None), I), np.array(True), (I, np.array(3), True),
    (np.zeros((0, 3), int), slice(2)), (I, slice(3, 3)), (np.uint64(1), I.astype(np.uint64) % 4),
]  # fmt: skip


def show(index):
    return repr(index).replace("\n", "").replace(" ", "")


def split(index):
    """The integers of an index, as arrays that can be traced, and a function that puts them back."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = [np.asarray(p) if isinstance(p, list) and p else p for p in parts]
    traced = [isinstance(p, int | np.integer | np.ndarray) and np.asarray(p).dtype.kind in "iu" for p in parts]
    traced = [t and np.asarray(p).size > 0 for t, p in zip(traced, parts)]
    arrays = [np.asarray(p) for p, t in zip(parts, traced) if t]

    def join(arrays):
        rest = iter(arrays)
        joined = tuple(next(rest) if t else p for p, t in zip(parts, traced))
        return joined if isinstance(index, tuple) else joined[0]

    return arrays, join


def check_reading(x, index):
    """Eagerly, compiled with the index known and traced, with explicit modes, and under vmap."""
    expected = x[index]
    array = to_array(x)
    arrays, join = split(index)

    @xform.jit
    def compiled(x, two, *i):
        mapped = xform.vmap(lambda x: x[index], in_axes=-1, out_axes=-1)(two)
        return x[index], x[join(i)], x.at[join(i)].get(mode="fill"), mapped[..., 1]

    results = [array[index], array.at[index].get(mode="clip"), *compiled(array, np.stack([x, x], -1), *arrays)]
    for result in results:
        assert isinstance(result, ArrayImpl)
        np.testing.assert_array_equal(result, expected, strict=True)


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=show)
def test_reading(index):
    check_reading(X, index)


UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "min": np.minimum,
          "max": np.maximum, "power": np.power}  # fmt: skip


def check_updates(x, index, names, values):
    """Eagerly, and compiled with the index known and traced."""
    array = to_array(x)
    arrays, join = split(index)

    @xform.jit
    def compiled(x, y, *i):
        return [[getattr(x.at[at], name)(y) for at in (index, join(i))] for name in names]

    for name, found in zip(names, compiled(array, values, *arrays)):
        expected = np.array(x)
        if name == "set":
            expected[index] = values
        else:
            UFUNCS[name].at(expected, index, values)
        for result in (getattr(array.at[index], name)(values), *found):
            np.testing.assert_allclose(result, expected, rtol=1e-13, strict=True)


@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=show)
def test_updates(index, rng):
    x = rng.uniform(0.5, 2, X.shape)
    check_updates(x, index, ["set", *UFUNCS], rng.uniform(0.5, 2, x[index].shape))
    check_updates(x, index, ["set", "add"], 1.5)


# ---- Random shapes and indices -----------------------------------------------------------------------------


@st.composite
def arrays_and_indices(draw):
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    parts, axis = [], 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        n = shape[axis]
        kind = draw(st.sampled_from(["slice", "int", "array", "array", "mask", "list"]))
        if kind == "slice" or (kind == "int" and not n):
            parts.append(draw(st.slices(n)))
        elif kind == "int":
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "mask" and axis + 1 < len(shape):
            mask = np.zeros(shape[axis : axis + 2], bool)
            if mask.size:
                mask.flat[: math_prod(common[-1:])] = True
            if np.count_nonzero(mask) not in (1, *common[-1:]):
                continue
            parts.append(mask)
            axis += 1
        else:
            lengths = tuple(draw(st.sampled_from([m, 1])) for m in common)
            if not n:
                lengths = (0,) * bool(common)
                if not common or common[-1] not in (0, 1):
                    continue
            elements = st.integers(-n, max(n - 1, 0))
            index = draw(hnp.arrays(draw(st.sampled_from([np.int64, np.int8])), lengths, elements=elements))
            parts.append(index.tolist() if kind == "list" and index.ndim else index)
        axis += 1
    at = len(parts)
    if draw(st.booleans()) and at < len(shape):
        parts.insert(draw(st.integers(0, at)), Ellipsis)
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    return np.arange(float(np.prod(shape, dtype=int))).reshape(shape), tuple(parts)


def math_prod(lengths):
    return int(np.prod(lengths, dtype=int))


@hypothesis.given(arrays_and_indices())
def test_random_indices(case):
    x, index = case
    try:
        expected = x[index]
    except IndexError:
        with pytest.raises(IndexError):
            to_array(x)[index]
        with pytest.raises(IndexError):
            xform.make_jaxpr(lambda x: x[index])(x)
        return
    check_reading(x, index)
    check_updates(np.asarray(x + 1), index, ["set", "add"], expected)
