"""Indexing against NumPy, and against JAX where indices are traced; `.at`, iteration, `take` and `take_along_axis`."""

import itertools

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform.core.array import ArrayImpl
from xform.core.errors import NonConcreteBooleanIndexError, TracerIntegerConversionError
from xform.test_util import check_grads

X = np.arange(120.0).reshape(5, 4, 6)
MASK = np.random.default_rng(0).integers(0, 2, (5, 4)).astype(bool)
ROWS = np.array([0, 2, -1])
COLUMN = np.array([[1], [3]])

BASIC = [
    0, -1, np.int8(2), (1, -2), (0, 1, 2), slice(None), slice(1, 3), slice(None, None, -1), slice(4, 0, -2),
    slice(3, 1), slice(-2, None), slice(-100, 100), (slice(None), 2), (Ellipsis, -1), (1, Ellipsis), Ellipsis, (), None,
    (None, 1, None, slice(1, 2)), (Ellipsis, None), (0, Ellipsis, None, slice(None, None, 3)),
    (slice(None, None, 2), slice(None, None, -1), slice(1, 5, 2)), (1, 2, 3, Ellipsis), np.array(2),
    (slice(2, 2), 1), (slice(4, 1, -1), slice(3, None, -1), 0),
]  # fmt: skip
ADVANCED = [
    ROWS, [0, 2], [], [[0, 1], [2, -3]], np.array([], np.int64), np.array([4, 0], np.uint8), ROWS.astype(np.int8),
    (ROWS, [1, 0, 3]), (ROWS, COLUMN), (COLUMN, ROWS, [[0]]), (slice(None), ROWS), (Ellipsis, ROWS),
    (ROWS, slice(1, 3)), (ROWS, slice(None), 2), (2, slice(None), ROWS), (ROWS, slice(None), ROWS), (0, ROWS),
    (slice(None), 0, ROWS), (slice(None), ROWS, 0), (ROWS, None, 0), (None, ROWS, None),
    (ROWS, None, slice(None, None, -2), ROWS), (slice(None, None, 2), COLUMN, slice(5, 1, -2)),
    (0, Ellipsis, ROWS), (ROWS, Ellipsis, 0), (0, 1, Ellipsis, ROWS), (ROWS, ROWS, Ellipsis, 0),
    (ROWS, ROWS, Ellipsis, ROWS), MASK, (MASK, 0), (MASK, ROWS[:1]), (slice(None), MASK[0]), MASK[:, 0],
    (MASK[:, 0], slice(None), [0]), (MASK[:, 0].tolist(), 0), np.zeros((5, 4), bool), np.ones((5, 4, 6), bool),
    True, False, (True, 1), (False, [1]), (True, ROWS, slice(1)), (slice(None), True, slice(None), ROWS),
    np.array(True), (ROWS, np.array(3), True), (np.zeros((0, 3), int), slice(2)), (ROWS, slice(3, 3)),
    range(3), (slice(None), range(1, 3), 0), (np.uint64(1), ROWS.astype(np.uint64) % 4),
]  # fmt: skip


def show(index):
    return repr(index).replace("\n", "").replace(" ", "")


def split(index):
    """The integers of an index, as arrays that can be traced, and a function that puts them back."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = [np.asarray(p) if isinstance(p, list) and np.size(p) else p for p in parts]
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
    array = xnp.array(x)
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
    array = xnp.array(x)
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
    check_updates(x, index, ["set", "add"], rng.uniform(0.5, 2, x[index].shape))


MIXED = [
    -1,
    (slice(1, 3), None, 2),
    (slice(None, None, -2), 0),
    ROWS,
    (ROWS, 0, [5, 5, 5]),
    MASK,
    (0, slice(2), [1, 1]),
]


@pytest.mark.parametrize("index", MIXED, ids=show)
def test_all_kinds_of_updates(index, rng):
    x = rng.uniform(0.5, 2, X.shape)
    check_updates(x, index, UFUNCS, rng.uniform(0.5, 2, x[index].shape[1:]))
    check_updates(x, index, ["set", *UFUNCS], 1.5)


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
                mask.flat[: (common or (1,))[-1]] = True
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


@hypothesis.given(arrays_and_indices())
def test_random_indices(case):
    x, index = case
    try:
        expected = x[index]
    except IndexError:
        with pytest.raises(IndexError):
            xnp.array(x)[index]
        with pytest.raises(IndexError):
            xform.make_jaxpr(lambda x: x[index])(x)
        return
    np.testing.assert_array_equal(xnp.array(x)[index], expected, strict=True)
    if expected.size:  # where nothing is read NumPy does not check the indices
        check_reading(x, index)
        check_updates(np.asarray(x + 1), index, ["set", "add"], expected)


# ---- Out of bounds -----------------------------------------------------------------------------------------

OUTSIDE = [
    (5, "index 5 is out of bounds for axis 0 with size 5"),
    (-6, "index -6 is out of bounds for axis 0 with size 5"),
    ((0, 4), "index 4 is out of bounds for axis 1 with size 4"),
    ((slice(None), None, -5), "index -5 is out of bounds for axis 1 with size 4"),
    ((Ellipsis, 6), "index 6 is out of bounds for axis 2 with size 6"),
    ([0, 7], "index 7 is out of bounds for axis 0 with size 5"),
    ((0, np.array([1, -9])), "index -9 is out of bounds for axis 1 with size 4"),
    ((0, 0, 0, 0), "too many indices for array: array is 3-dimensional, but 4 were indexed"),
    ((Ellipsis, 0, Ellipsis), "an index can only have a single ellipsis"),
    (np.ones((5, 3), bool), "axis 1; size of .*axis is 4 but size of corresponding boolean axis is 3"),
    (np.ones(4, bool), "axis 0; size of .*axis is 5 but size of corresponding boolean axis is 4"),
    (([0, 1], [0, 1, 2]), r"could not be broadcast together with shapes \(2,\) \(3,\)"),
    (1.5, "only integers, slices, .* are valid indices"),
    (np.array([1.0]), "integer"),
    ("a", "only integers, slices"),
]


@pytest.mark.parametrize(("index", "message"), OUTSIDE, ids=lambda v: show(v) if not isinstance(v, str) else "")
def test_known_wrong_indices(index, message):
    """The same exception as NumPy, at once and when tracing, for reading and for updates."""
    with pytest.raises(IndexError):
        X[index]
    x = xnp.array(X)
    for call in (
        lambda: x[index],
        lambda: x.at[index].set(0.0),
        lambda: x.at[index].add(0.0),
        lambda: xform.make_jaxpr(lambda x: x[index])(x),
        lambda: xform.make_jaxpr(lambda x: x.at[index].set(0.0))(x),
        lambda: xform.make_jaxpr(lambda x: x.at[index].multiply(0.0))(x),
    ):
        with pytest.raises(IndexError, match=message):
            call()


def test_empty_axes():
    x = xnp.zeros((0, 3))
    assert x[:, 1].shape == (0,)
    assert x[xnp.array([], int)].shape == (0, 3)
    with pytest.raises(IndexError, match="index 0 is out of bounds for axis 0 with size 0"):
        x[0]
    for i in (np.array(0), np.array([0])):
        with pytest.raises(IndexError, match="axis 0 with size 0"):
            xform.jit(lambda x, i: x[i])(x, i)
    np.testing.assert_array_equal(xform.jit(lambda x, i: x.at[i].set(1.0))(x, np.zeros(0, int)), x)


def test_traced_slices_and_masks_name_the_remedy():
    x = xnp.arange(5.0)
    with pytest.raises(TracerIntegerConversionError, match="dynamic_slice"):
        xform.jit(lambda x, i: x[:i])(x, 2)
    with pytest.raises(NonConcreteBooleanIndexError, match=r"where\(mask.*set\(scalar.*size=n"):
        xform.jit(lambda x: x[x > 2])(x)
    with pytest.raises(NonConcreteBooleanIndexError):
        xform.jit(lambda x: x.at[x > 2].set(xnp.arange(3.0)))(x)
    with pytest.raises(IndexError, match="float64"):
        xform.jit(lambda x: x[x])(x)


MODES = [None, "clip", "fill", "drop", "promise_in_bounds"]
PLACES = [np.array([0, -1, -5, -6, 7, 4]), np.array(-7), np.array(9), np.array(-1), np.array([[3, -8]], np.int8)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrap", [True, False])
def test_traced_indices_out_of_bounds_as_in_jax(mode, wrap):
    jax = pytest.importorskip("jax")
    x = np.arange(5.0)

    def programs(numpy):
        def read(x, *places):
            out = []
            for i in places:
                at = x.at[i]
                kwargs = {"mode": mode, "wrap_negative_indices": wrap}
                out += [at.get(**kwargs), at.get(fill_value=7, **kwargs) if mode in ("fill", "drop") else x]
                out += [at.set(9.0, **kwargs), at.add(1.0, **kwargs), at.multiply(3.0, **kwargs)]
                out += [at.min(1.0, **kwargs), at.max(3.5, **kwargs), at.apply(lambda v: -v, **kwargs)]
            return out

        return numpy.jit(read)(x, *PLACES)

    for i, (got, expected) in enumerate(zip(programs(xform), programs(jax))):
        np.testing.assert_array_equal(got, expected, err_msg=str(i))


@pytest.mark.parametrize("mode", MODES[1:])
def test_explicit_modes_are_the_same_eagerly(mode):
    x = xnp.arange(5.0)
    for i in [*PLACES, 7, -8]:
        for wrap in (True, False):
            kwargs = {"mode": mode, "wrap_negative_indices": wrap}
            for f in (
                lambda x, i, k=kwargs: x.at[i].get(**k),
                lambda x, i, k=kwargs: x.at[i].set(9.0, **k),
                lambda x, i, k=kwargs: x.at[i].add(2.0, **k),
            ):
                np.testing.assert_array_equal(f(x, i), xform.jit(f)(x, i))


def test_fill_values():
    for dtype, missing in [("int32", -(2**31)), ("uint8", 255), ("bool", True), ("complex64", complex(np.nan, 0))]:
        x = xnp.zeros(2, dtype)
        found = x.at[5].get(mode="fill")
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, np.asarray(missing, x.dtype))
    assert np.isnan(float(xnp.zeros(2, "bfloat16").at[9].get(mode="fill")))
    with pytest.raises(ValueError, match="mode must be"):
        xnp.zeros(2).at[0].get(mode="nearest")


# ---- Values of updates -------------------------------------------------------------------------------------


def test_values_take_the_type_of_the_array():
    x = xnp.arange(3)
    for y in (2.7, np.float32(2.7), np.array([2.7]), xnp.array(2.7), True):
        for f in (lambda x, y=y: x.at[1].set(y), lambda x, y=y: x.at[1:2].set(y), lambda x, y=y: x.at[[1]].set(y)):
            expected = np.array([0, int(np.asarray(y).item()), 2])
            np.testing.assert_array_equal(f(x), expected, strict=True)
            np.testing.assert_array_equal(xform.jit(f)(x), expected, strict=True)
    big = xnp.zeros(2, "bfloat16").at[0].set(1.5).at[1].add(2)
    assert big.dtype == ml_dtypes.bfloat16 and big.tolist() == [1.5, 2.0]
    assert np.isinf(float(xnp.zeros(2, "float32").at[0].set(1e300)[0]))
    assert xnp.zeros(2, complex).at[0].set(1j).tolist() == [1j, 0]
    assert xnp.arange(3).at[1].divide(2).tolist() == [0.0, 0.5, 2.0]
    assert xnp.arange(4).at[xnp.array([3, 3])].power(2).tolist() == [0, 1, 2, 81]
    assert xform.jit(lambda x: x.at[3].power(2))(xnp.arange(4)).tolist() == [0, 1, 2, 9]


def test_values_that_do_not_fit():
    x = xnp.zeros((2, 3))
    for f in (
        lambda x: x.at[0].set(np.ones(2)),
        lambda x: x.at[:, 0].add(np.ones((2, 1))),
        lambda x: x.at[[0, 1]].set(np.ones((3, 2, 3))),
    ):
        for call in (f, xform.jit(f)):
            with pytest.raises(ValueError, match="broadcast"):
                call(x)
    for call in (lambda x: x.at[0].set(1j), lambda x: x.at[0].add(np.ones(3) * 1j)):
        for f in (call, xform.jit(call)):
            with pytest.raises(TypeError, match="complex"):
                f(x)
    for f in (lambda x: x.at[0].set(300), xform.jit(lambda x: x.at[0].set(300))):
        with pytest.raises(OverflowError):
            f(xnp.zeros(3, "int8"))
    # As in NumPy, leading axes of length 1 are dropped.
    assert x.at[0].set(np.ones((1, 1, 3))).sum() == xform.jit(lambda x: x.at[0].set(np.ones((1, 1, 3))))(x).sum() == 3


def test_arrays_are_independent():
    data = np.arange(6.0)
    x = xnp.array(data)
    view, y = x[1:], x.at[0].set(9.0)
    data[:] = 0
    assert x.tolist() == [0, 1, 2, 3, 4, 5] and view.tolist() == [1, 2, 3, 4, 5] and y.tolist() == [9, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(view)[0] = 1
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 1


def test_masked_updates_of_traced_masks(rng):
    x = rng.uniform(0.5, 2, (4, 3))
    y = rng.uniform(0.5, 2, 3)
    for name, ufunc in UFUNCS.items():
        for mask, value in ((x > 1, 2.0), (x[:, 0] > 1, y), (x[:, 0] > 1, 2.0)):
            expected = x.copy()
            expected[mask] = ufunc(expected[mask], value)
            got = xform.jit(lambda x, m, v, name=name: getattr(x.at[m], name)(v))(x, mask, value)
            np.testing.assert_allclose(got, expected, rtol=1e-14)
    got = xform.vmap(lambda x: x.at[x < 1].set(0.0))(x)
    np.testing.assert_array_equal(got, np.where(x < 1, 0, x))


def test_repeated_indices():
    x, i = xnp.zeros(3), xnp.array([1, 1, 2])
    for f in (
        lambda x, i: x.at[i].set(xnp.array([5.0, 6.0, 7.0])),
        lambda x, i: x.at[(i, None)].set([[5.0], [6], [7]]),
    ):
        assert f(x, i).tolist() == xform.jit(f)(x, i).tolist() == [0, 6, 7]
    f = lambda x, i: (x + 1).at[i].apply(lambda v: 3 * v)  # noqa: E731
    assert f(x, i).tolist() == xform.jit(f)(x, i).tolist() == [1, 9, 3]


def test_apply(rng):
    x = rng.uniform(0.5, 2, (4, 3))
    for index in (0, (slice(1, 3), 2), ROWS, (slice(None), [True, False, True])):
        expected = x.copy()
        expected[index] = np.sin(expected[index])
        for f in (lambda x, i=index: x.at[i].apply(xnp.sin), lambda x, i=index: x.at[i].apply(np.sin)):
            np.testing.assert_allclose(f(x=xnp.array(x)), expected, rtol=1e-15)
            np.testing.assert_allclose(xform.jit(f)(x), expected, rtol=1e-14)
    with pytest.raises(TypeError, match="func must return a scalar"):
        xnp.array(x).at[0].apply(lambda v: xnp.ones(2) * v)


# ---- Transformations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", MIXED, ids=show)
def test_derivatives(index, rng):
    x = rng.uniform(0.5, 2, X.shape)
    y = rng.uniform(0.5, 2, X[index].shape)
    arrays, join = split(index)
    check_grads(lambda x: xnp.sin(x[index]), (x,), 2)
    for name in ("set", "add", "multiply", "divide", "power", "min"):
        check_grads(lambda x, y, name=name: getattr(xnp.sin(x).at[index], name)(y * y), (x, y), 2)
    check_grads(lambda x: xnp.asarray(x).at[index].apply(xnp.sin), (x,), 2)

    @xform.jit
    @xform.grad
    def traced(x, *i):
        return (xnp.sin(x[join(i)]) ** 2).sum() + (x.at[join(i)].multiply(3.0) ** 2).sum()

    eager = xform.grad(lambda x: (xnp.sin(x[index]) ** 2).sum() + (x.at[index].multiply(3.0) ** 2).sum())(x)
    np.testing.assert_allclose(traced(x, *arrays), eager, rtol=1e-12)


def test_derivatives_where_updates_meet(rng):
    x, y = rng.uniform(0.5, 2, 4), rng.uniform(0.5, 2, 5)
    y[1] = 0
    index = np.array([1, 1, 3, 1, 3])
    for name in ("set", "add", "subtract", "multiply", "min", "max"):
        check_grads(lambda x, y, name=name: getattr(xnp.exp(x).at[index], name)(xnp.sin(y)), (x, y), 2)
    check_grads(lambda x, y: xnp.exp(x).at[index].divide(y), (x, y + 1), 2)
    check_grads(lambda x, y: xnp.exp(x).at[index].power(y), (x, y), 2)
    check_grads(lambda x: xnp.asarray(x).at[index].apply(xnp.sin), (x,), 2)
    check_grads(xform.jit(lambda x, i: x.at[i].apply(xnp.sin)), (x, index), 2, ["fwd"])


MAPPED = [m for m in itertools.product([0, None], repeat=3) if any(d is not None for d in m)]


@pytest.mark.parametrize("mapped", [*MAPPED, (1, 0, 1), (1, None, 1), (None, 0, 1), (1, None, None)])
def test_vmap(mapped, rng):
    """Operand, index and values mapped or not, over any axis."""
    shapes = (3, 2), (2,), (2,)
    indices = [np.array([0, 1, 2, -1, 0, -3]).reshape(3, 2), np.array([1, -1, 7])]
    for index in indices:
        arrays = [rng.standard_normal(shapes[0]), index[0], rng.standard_normal(shapes[2])]
        for k, d in enumerate(mapped):
            if d is not None:
                stack = [rng.standard_normal(np.shape(arrays[k])) if k != 1 else index[j] for j in range(3)]
                arrays[k] = np.stack(stack, min(d, np.ndim(arrays[k])))
        axes = tuple(d if d is None else min(d, np.ndim(a) - 1) for d, a in zip(mapped, arrays))

        def f(x, i, y):
            return x[i], x[i, 1:], x.at[i].set(y), x.at[i, 1].add(y[0]), x.at[:, 0].set(y[1] + x[i, 0].sum())

        got = xform.vmap(f, axes)(*arrays)
        compiled = xform.jit(xform.vmap(f, axes))(*arrays)
        for j in range(3):
            one = [a if d is None else np.take(a, j, d) for a, d in zip(arrays, axes)]
            for g, c, e in zip(got, compiled, xform.jit(f)(*one)):
                np.testing.assert_allclose(g[j], e, rtol=1e-15)
                np.testing.assert_allclose(c[j], e, rtol=1e-15)


@pytest.mark.parametrize("option", [xform.debug_nans(True), xform.config._option("eager")("xla")], ids=["debug", "xla"])
def test_other_ways_of_eager_evaluation(option, rng):
    x = xnp.array(rng.uniform(0.5, 2, X.shape))
    for index in (0, slice(1, None, 2), MASK, (ROWS, slice(None), 0), (None, -1, Ellipsis, [0, 1])):
        y = np.array(x)[index]
        updated = np.array(x)
        updated[index] += y
        with option:
            np.testing.assert_array_equal(x[index], y, strict=True)
            np.testing.assert_array_equal(x.at[index].add(y), updated, strict=True)
            rows = [np.asarray(row) for row in x]
        np.testing.assert_array_equal(rows, x)
        with option, pytest.raises(IndexError, match="out of bounds for axis 0 with size 5"):
            x[9]


def test_weak_types_and_narrow_modes():
    x = xform.jit(lambda: xnp.broadcast_to(2.0, (3,)))()
    assert x.weak_type == x[0].weak_type == x[1:].weak_type == next(iter(x)).weak_type
    with xform.enable_x64(False):
        x = xnp.arange(5)
        assert x[xnp.array([1, 2])].dtype == np.int32
        np.testing.assert_array_equal(xform.jit(lambda x, i: x[i])(x, np.uint32(2**32 - 1)), 4)
        np.testing.assert_array_equal(xform.jit(lambda x, i: x.at[i].set(7))(x, np.int64(-1)), [0, 1, 2, 3, 7])


def test_lists_of_traced_indices():
    x = xnp.arange(12.0).reshape(3, 4)
    got = xform.jit(lambda x, i, j: (x[[i, j]], x[[[i, 0], [1, j]], 0], x[:, [i, -1]]))(x, 2, 0)
    for g, e in zip(
        got, (X.ravel()[:12].reshape(3, 4)[k] for k in ([2, 0], ([[2, 0], [1, 0]], 0), (slice(None), [2, -1])))
    ):
        np.testing.assert_array_equal(g, e)


def test_iteration():
    x = xnp.arange(6.0).reshape(3, 2)
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert all(isinstance(v, ArrayImpl) for v in x[0])
    a, b = x[0]
    assert float(a) == 0 and float(b) == 1
    assert list(xnp.zeros((0, 2))) == []
    assert xform.jit(lambda x: sum(a * b for a, b in x))(x) == 26
    assert xform.grad(lambda x: sum(a * b for a, b in x))(x).tolist() == [[1, 0], [3, 2], [5, 4]]
    for zero_dim in (xnp.array(1.0), xnp.zeros((2, 2)).sum()):
        with pytest.raises(TypeError, match="rank 0"):
            iter(zero_dim)
    with pytest.raises(TypeError, match="rank 0"):
        xform.jit(list)(1.0)


# ---- take and take_along_axis ------------------------------------------------------------------------------


def test_take(rng):
    x = rng.standard_normal((3, 4, 2))
    for axis in (None, 0, 1, -1):
        n = x.size if axis is None else x.shape[axis]
        for i in (
            np.int64(1),
            -1,
            np.array([0, n - 1, -n]),
            np.array([[0], [1]], np.int8),
            np.zeros((0, 2), int),
            [1, 0],
        ):
            expected = np.take(x, i, axis)
            np.testing.assert_array_equal(xnp.take(x, i, axis), expected, strict=True)
            got = xform.jit(lambda x, i, a=axis: xnp.take(x, i, a))(x, np.asarray(i))
            np.testing.assert_array_equal(got, expected, strict=True)
        for mode in ("clip", "wrap"):
            i = np.array([-1, -n - 1, n, n + 2, 0])
            for f in (xnp.take, xform.jit(xnp.take, static_argnames=("axis", "mode"))):
                np.testing.assert_array_equal(f(x, i, axis=axis, mode=mode), np.take(x, i, axis, mode=mode))
        check_grads(lambda x, a=axis: xnp.take(x, np.array([1, 1, 0]), a), (x,), 2)
    np.testing.assert_array_equal(xnp.take(x[:, 0, 0], np.array([0, 7]), fill_value=3.0), [x[0, 0, 0], 3])
    np.testing.assert_array_equal(xform.jit(xnp.take)(x[:, 0, 0], np.array([0, 7])), [x[0, 0, 0], np.nan])


def test_errors_of_take():
    x = xnp.arange(3.0)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        xnp.take(x, xnp.array([0, 3]))
    with pytest.raises(IndexError, match="index -4"):
        xnp.take(x, -4, mode="raise")
    with pytest.raises(ValueError, match=r"numpy\.take: indices are traced"):
        xform.jit(lambda x, i: xnp.take(x, i, mode="raise"))(x, 0)
    with pytest.raises(TypeError, match=r"numpy\.take: indices must be an integer array, got f64\[\]"):
        xnp.take(x, np.float64(1))
    with pytest.raises(np.exceptions.AxisError):
        xnp.take(x, 0, axis=1)
    with pytest.raises(NotImplementedError, match="out"):
        xnp.take(x, 0, out=x)
    with pytest.raises(IndexError):
        xnp.take(xnp.zeros((0, 2)), np.array([0]), axis=0, mode="wrap")


ALONG = [
    ((3, 4), (3, 2), 1), ((3, 4), (2, 4), 0), ((3, 4), (1, 2), 1), ((1, 4), (3, 2), 1), ((3, 4, 2), (3, 5, 1), 1),
    ((3, 1, 2), (1, 6, 2), -1), ((4,), (7,), None), ((3, 4), (12,), None), ((3, 4), (3, 0), 1), ((3, 0), (3, 0), 1),
    ((0, 4), (0, 2), 1), ((2, 2, 2), (2, 1, 2), -3),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "index_shape", "axis"), ALONG)
def test_take_along_axis(shape, index_shape, axis, rng):
    x = rng.standard_normal(shape)
    n = x.size if axis is None else x.shape[axis]
    i = rng.integers(-n, max(n, 1), index_shape)
    expected = np.take_along_axis(x, i, axis)
    f = lambda x, i: xnp.take_along_axis(x, i, axis)  # noqa: E731
    np.testing.assert_array_equal(f(x, i), expected, strict=True)
    np.testing.assert_array_equal(xform.jit(f)(x, i), expected, strict=True)
    mapped = xform.vmap(f, (None, -1), -1)(x, np.stack([i, i], -1))
    np.testing.assert_array_equal(mapped[..., 1], expected, strict=True)
    mapped = xform.jit(xform.vmap(f, (1, 0)))(np.stack([x, x + 1], 1), np.stack([i, i]))
    np.testing.assert_array_equal(mapped[1], np.take_along_axis(x + 1, i, axis), strict=True)
    if expected.size:
        check_grads(lambda x: f(xnp.sin(x), i), (x,), 2)


def test_take_along_axis_out_of_bounds():
    x, i = xnp.arange(6.0).reshape(2, 3), np.array([[-1], [7]])
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 1 with size 3"):
        xnp.take_along_axis(x, i, 1)
    for f in (xnp.take_along_axis, xform.jit(xnp.take_along_axis, static_argnames=("axis", "mode", "fill_value"))):
        assert f(x, i, axis=1, mode="clip").tolist() == [[2], [5]]
        assert f(x, i, axis=1, mode="fill", fill_value=-1.0).tolist() == [[2], [-1]]
    np.testing.assert_array_equal(xform.jit(lambda x, i: xnp.take_along_axis(x, i, 1))(x, i), [[2], [np.nan]])
    assert xnp.take_along_axis(x, i, 1, "clip", wrap_negative_indices=False).tolist() == [[0], [5]]
    with pytest.raises(ValueError, match=r"numpy\.take_along_axis: indices and arr must have .* f64\[2,3\].* i64\[2\]"):
        xnp.take_along_axis(x, i[:, 0], 1)
    with pytest.raises(IndexError, match=r"lengths could not be broadcast"):
        xnp.take_along_axis(x, np.zeros((3, 1), int), 1)
    with pytest.raises(IndexError, match="must be an integer array"):
        xnp.take_along_axis(x, x, 1)


def test_updates_by_lists_of_traced_values():
    def f(x):
        return xnp.zeros((2, 2)).at[1].set((x[0], 3.0)).at[0].add([x[1], x[1]])

    out, tangent = xform.jvp(f, (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
    assert out.tolist() == [[2, 2], [1, 3]] and tangent.tolist() == [[10, 10], [1, 0]]
