"""Indexing on drawn arrays and indices beside NumPy: reading and all updates, eager and compiled, derived and mapped.

Drawn indices mix everything that NumPy knows: integers of all types, slices with any bounds and steps, new axes, an
ellipsis, several index arrays that broadcast, lists, ranges, masks of any rank, boolean scalars, empty arrays.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xform
import xform.numpy as xnp
from tests.numpy_drawn.record import arrays, shapes
from xform.core.config import small_programs
from xform.core.errors import NonConcreteBooleanIndexError

UPDATES = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide, "power": np.power,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
LENGTHS = st.sampled_from((1, 2, 3, 4, 5, 0))


def draws(examples):
    """Few examples with the other tests; ``make slow`` runs the same with many."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))


def both(examples, many, strategy, test):
    """The test with a few draws, and with many among the slow ones."""
    return draws(examples)(given(strategy)(test)), pytest.mark.slow(draws(many)(given(strategy)(test)))


# ---- Indices -----------------------------------------------------------------------------------------------


@st.composite
def integer(draw, n):
    """An index into n elements, of any type that has one."""
    i = draw(st.integers(-n, n - 1))
    kinds = [int, np.int64, np.int8, np.array] + ([np.uint8, np.uint64] if i >= 0 else [])
    return draw(st.sampled_from(kinds))(i)


@st.composite
def slice_of(draw, n):
    bound = st.one_of(st.none(), st.integers(-n - 2, n + 2))
    return slice(draw(bound), draw(bound), draw(st.sampled_from((None, 1, 2, -1, -2, 3, -7))))


@st.composite
def index_array(draw, n, common):
    """An array of a shape that broadcasts to `common`, or a list or range of it."""
    shape = common[draw(st.integers(0, len(common))) :]
    shape = tuple(m if m != 1 and draw(st.booleans()) else draw(st.sampled_from((m, 1))) for m in shape)
    if not n:
        shape = (*shape[:-1], 0) if shape and 0 in common[-1:] else shape
    count = int(np.prod(shape, dtype=int))
    if count and not n:
        return slice(None)
    dtype = draw(st.sampled_from(("int64", "int32", "int8", "uint8")))
    low = 0 if dtype[0] == "u" else -n
    values = np.array([draw(st.integers(low, max(n - 1, 0))) for _ in range(count)], dtype).reshape(shape)
    if values.ndim and draw(st.integers(0, 3)) == 0 and values.size:
        return values.tolist()
    return values


@st.composite
def mask_of(draw, shape, count):
    """A mask with `count` elements that hold (or one), or None if there aren't so many."""
    size = int(np.prod(shape, dtype=int))
    count = draw(st.sampled_from((count, 1))) if count is not None else draw(st.integers(0, size))
    if count > size:
        return None
    mask = np.zeros(size, bool)
    mask[np.array(draw(st.permutations(range(size)))[:count], int)] = True
    return mask.reshape(shape)


@st.composite
def indices(draw, shape):
    """An index into an array of `shape`: most are valid, NumPy decides."""
    if draw(st.integers(0, 7)) == 0:
        k = draw(st.integers(0, len(shape)))
        mask = draw(mask_of(shape[:k], None))
        return mask if k else draw(st.sampled_from((True, False, np.True_, np.array(True))))
    common = draw(st.lists(st.sampled_from((1, 2, 3, 0)), max_size=2).map(tuple))
    parts, axis = [], 0
    stop = draw(st.integers(0, len(shape)))
    while axis < stop:
        n = shape[axis]
        kind = draw(st.sampled_from(("slice", "slice", "int", "array", "array", "mask")))
        if kind == "mask":
            rank = draw(st.integers(1, stop - axis))
            mask = draw(mask_of(shape[axis : axis + rank], common[-1] if common else 1))
            parts.append(slice(None) if mask is None else mask)
            axis += 1 if mask is None else rank
            continue
        parts.append(
            draw(slice_of(n)) if kind == "slice" or (kind == "int" and not n)
            else draw(integer(n)) if kind == "int" else draw(index_array(n, common))
        )  # fmt: skip
        axis += 1
    if draw(st.integers(0, 2)) == 0:
        parts.insert(draw(st.integers(0, len(parts))) if stop < len(shape) else len(parts), Ellipsis)
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.integers(0, 9)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), draw(st.booleans()))
    if Ellipsis in [p for p in parts if p is Ellipsis] and stop < len(shape):
        # What follows the ellipsis must fit the last axes: only new axes may stand there.
        at = next(i for i, p in enumerate(parts) if p is Ellipsis)
        parts = parts[: at + 1] + [p for p in parts[at + 1 :] if p is None] if at + 1 < len(parts) else parts
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else tuple(parts)


@st.composite
def reads(draw, **kwargs):
    x = draw(arrays(shape=shapes(0, 4, LENGTHS), **kwargs))
    return x, draw(indices(x.shape))


def ours(index):
    """Index arrays of ours instead of NumPy's (and NumPy's for every other one)."""
    if isinstance(index, tuple):
        return tuple(ours(p) if i % 2 == 0 else p for i, p in enumerate(index))
    return xnp.array(index) if isinstance(index, np.ndarray) else index


def traced_parts(index):
    """The integers and integer arrays of an index, and a function that puts others in their places."""
    parts = index if isinstance(index, tuple) else (index,)
    parts = [np.asarray(p) if isinstance(p, list) and np.size(p) else p for p in parts]
    places = [
        i for i, p in enumerate(parts)
        if not isinstance(p, bool) and isinstance(p, int | np.integer | np.ndarray)
        and np.asarray(p).dtype.kind in "iu" and np.size(p)
    ]  # fmt: skip

    def join(values):
        new = list(parts)
        for i, v in zip(places, values, strict=True):
            new[i] = v
        return tuple(new) if isinstance(index, tuple) else new[0]

    return [np.asarray(parts[i]) for i in places], join


def expected(x, index):
    """What NumPy reads, or None if the index is wrong; then ours must be, too."""
    try:
        return x[index]
    except IndexError as error:
        with pytest.raises(IndexError) as found:
            xnp.array(x)[ours(index)]
        assert "internal" not in str(found.value) and str(found.value), error
        return None


# ---- Reading -----------------------------------------------------------------------------------------------


def reading(case):
    """Eagerly, with index arrays of ours and NumPy's, and by `get`."""
    x, index = case
    want = expected(x, index)
    if want is None:
        return
    array = xnp.array(x)
    for got in (array[index], array[ours(index)], array.at[index].get(), array.at[ours(index)].get(mode="clip")):
        assert isinstance(got, xform.Array)
        np.testing.assert_array_equal(got, want, strict=True)


test_reading, test_reading_thoroughly = both(400, 5000, reads(), reading)


def compiled_reading(case):
    """Compiled with a known index and with a traced one, and mapped over the array and over everything."""
    x, index = case
    want = expected(x, index)
    if want is None or not want.size:
        return  # where nothing is read NumPy lets wrong indices pass
    values, join = traced_parts(index)

    def both_ways(x, *values):
        return x[index], x[join(values)], x.at[join(values)].get(mode="fill")

    def mapped(x, *values):
        return xform.vmap(both_ways, in_axes=(-1, *[0] * len(values)), out_axes=-1)(
            xnp.stack([x, x], -1), *[xnp.stack([v, v]) for v in values]
        )

    with small_programs("xla"):
        plain, twice = xform.jit(lambda *a: (both_ways(*a), mapped(*a)))(x, *values)
    for got in plain:
        np.testing.assert_array_equal(got, want, strict=True)
    for got in twice:
        np.testing.assert_array_equal(got[..., 1], want, strict=True)


test_compiled_reading, test_compiled_reading_thoroughly = both(25, 400, reads(), compiled_reading)

# ---- Updates -----------------------------------------------------------------------------------------------


@st.composite
def updates(draw, name=None):
    name = name or draw(st.sampled_from(("set", *UPDATES)))
    dtypes = ("float32", "float64") if name in ("divide", "power") else ("int8", "int64", "uint8", "float32", "float64")
    if name in ("set", "add"):
        dtypes += ("complex64", "complex128")
    x, index = draw(reads(dtypes=dtypes, low=1, high=3))
    try:
        shape = x[index].shape
    except IndexError:
        return name, x, index, 1
    shape = tuple(n if draw(st.integers(0, 3)) else 1 for n in shape[draw(st.integers(0, len(shape))) :])
    y = draw(arrays(shape=shape, dtypes=(x.dtype.name,), low=1, high=2))
    return name, x, index, draw(st.sampled_from((y, 2)))


def changed(name, x, index, y):
    """What NumPy makes of a copy."""
    out = x.copy()
    with np.errstate(all="ignore"):
        if name == "set":
            out[index] = y
        else:
            UPDATES[name].at(out, index, y)
    return out


def close(got, want):
    eps = 64 * np.finfo(want.dtype).eps if want.dtype.kind in "fc" else 0
    np.testing.assert_allclose(got, want, rtol=eps, atol=eps)
    assert got.dtype == want.dtype


def updating(case):
    """Eagerly, with index arrays of ours and of NumPy's, as a known index and by the general way."""
    name, x, index, y = case
    if expected(x, index) is None:
        return
    want = changed(name, x, index, y)
    array = xnp.array(x)
    close(getattr(array.at[index], name)(y), want)
    close(getattr(array.at[ours(index)], name)(xnp.array(y) if np.ndim(y) else y), want)
    close(getattr(array.at[index], name)(y, mode="drop"), want)
    np.testing.assert_array_equal(array, x)


test_updating, test_updating_thoroughly = both(300, 4000, updates(), updating)


def compiled_updates(case):
    """Compiled with a known index and with a traced one."""
    name, x, index, y = case
    want = expected(x, index)
    if want is None or not want.size:
        return
    values, join = traced_parts(index)

    def program(x, y, *values):
        return [getattr(x.at[i], name)(y) for i in (index, join(values))]

    with small_programs("xla"):
        found = xform.jit(program)(x, y, *values)
    for got in found:
        close(got, changed(name, x, index, y))


test_compiled_updates, test_compiled_updates_thoroughly = both(25, 400, updates(), compiled_updates)


def applied(case):
    """`apply` with a function that shows how often it was applied: NumPy's `at` of a ufunc of one argument."""
    x, index = case
    if expected(x, index) is None:
        return
    want = x.copy()
    np.negative.at(want, index)
    for got in (xnp.array(x).at[index].apply(xnp.negative), xnp.array(x).at[ours(index)].apply(lambda v: -v)):
        np.testing.assert_array_equal(got, want, strict=True)


test_applied, test_applied_thoroughly = both(60, 1000, reads(dtypes=("float64", "int64")), applied)


def derivatives(case):
    """Reading, setting and adding are linear: their tangents are NumPy's results for tangents."""
    name, x, index, _ = case
    x = x.real.astype(float)
    read = expected(x, index)
    if read is None:
        return
    rng = np.random.default_rng(0)
    y = rng.standard_normal(read.shape)
    dx, dy = rng.standard_normal(x.shape), rng.standard_normal(read.shape)
    for function, want, args, tangents in (
        (lambda x: x[index], dx[index], (x,), (dx,)),
        (lambda x, y: getattr(x.at[index], name)(y), changed(name, dx, index, dy), (x, y), (dx, dy)),
    ):
        args, tangents = [xnp.array(a) for a in args], [xnp.array(t) for t in tangents]
        _, found = xform.jvp(function, args, tangents)
        np.testing.assert_allclose(found, want, rtol=1e-14)
        cotangent = rng.standard_normal(want.shape)
        for pull in (xform.vjp(function, *args)[1], xform.jit(xform.vjp(function, *args)[1])):
            back = pull(xnp.array(cotangent))
            inner = sum(np.sum(np.asarray(b) * np.asarray(t)) for b, t in zip(back, tangents, strict=True))
            np.testing.assert_allclose(inner, np.sum(cotangent * want), rtol=1e-9, atol=1e-9)


LINEAR = st.sampled_from(("set", "add", "subtract")).flatmap(updates)
test_derivatives, test_derivatives_thoroughly = both(40, 600, LINEAR, derivatives)

# ---- Out of bounds -----------------------------------------------------------------------------------------

MODES = ("clip", "drop", "fill", "wrap", "promise_in_bounds")


@st.composite
def outside(draw):
    """An array, indices for its first axis of which some are out of bounds, a mode, and values."""
    n = draw(st.integers(1, 4))
    x = draw(arrays(shape=(n, *draw(shapes(0, 1))), dtypes=("float64", "int32")))
    i = draw(arrays(shape=draw(shapes(0, 2, st.integers(1, 3))), dtypes=("int64", "int8"), low=-2 * n, high=2 * n))
    y = draw(arrays(shape=(*i.shape, *x.shape[1:]), dtypes=(x.dtype.name,)))
    return x, i, y, draw(st.sampled_from(MODES)), draw(st.booleans())


def model(x, i, y, mode, wrap):
    """What reading, setting and adding mean, by loops; promises are not kept: clipped reads, dropped updates."""
    n = len(x)
    read, put, add = np.empty_like(y), x.copy(), x.copy()
    for place in np.ndindex(i.shape):
        k = int(i[place])
        if mode == "wrap":
            k %= n
        elif wrap and k < 0:
            k += n
        inside = 0 <= k < n
        nearest = min(max(k, 0), n - 1)
        read[place] = -77 if mode in ("fill", "drop") and not inside else x[nearest]
        if inside or mode == "clip":
            put[nearest] = y[place]
            add[nearest] += y[place]
    return read, put, add


def modes(case):
    """Known and traced indices mean the same."""
    x, i, y, mode, wrap = case
    kwargs = {"mode": mode, "wrap_negative_indices": wrap}
    fill = {"fill_value": -77} if mode in ("fill", "drop") else {}

    def program(x, i, y):
        at = x.at[i]
        return at.get(**kwargs, **fill), at.set(y, **kwargs), at.add(y, **kwargs)

    want = model(x, i, y, mode, wrap)
    eager = program(xnp.array(x), i, xnp.array(y))
    with small_programs("xla"):
        compiled = xform.jit(program)(x, i, y)
    for found in (eager, compiled):
        for got, w in zip(found, want, strict=True):
            np.testing.assert_allclose(got, w, rtol=1e-14)
            assert got.dtype == w.dtype


test_modes, test_modes_thoroughly = both(40, 500, outside(), modes)


@given(reads(dtypes=("float64",)), st.data())
@draws(60)
def test_known_indices_out_of_bounds(case, data):
    """IndexError at once, eagerly and while tracing, for reading and for updates."""
    x, _ = case
    if not x.ndim:
        x = x.reshape(1)
    axis = data.draw(st.integers(0, x.ndim - 1))
    n = x.shape[axis]
    wrong = data.draw(st.sampled_from((n, -n - 1, n + 100)))
    index = (slice(None),) * axis + (
        data.draw(st.sampled_from((wrong, np.int64(wrong), [wrong], np.array([0, wrong])))),
    )
    message = "out of bounds for axis"
    for call in (
        lambda x: x[index], lambda x: x.at[index].set(0.0), lambda x: x.at[index].add(1.0), lambda x: x.at[index].get()
    ):  # fmt: skip
        with pytest.raises(IndexError, match=message):
            call(xnp.array(x))
        with pytest.raises(IndexError, match=message):
            xform.make_jaxpr(call)(x)


def test_promises_change_nothing_where_they_hold():
    x, i, y = xnp.arange(6.0), np.array([0, 2, 5]), np.array([7.0, 8, 9])
    promises = {"indices_are_sorted": True, "unique_indices": True}
    for mode in (None, *MODES):
        for f in (
            lambda x, i, y, **k: x.at[i].get(**k),
            lambda x, i, y, **k: x.at[i].set(y, **k),
            lambda x, i, y, **k: x.at[i].multiply(y, **k),
            lambda x, i, y, **k: x.at[i].power(y, **k),
        ):
            want = f(x, i, y)
            np.testing.assert_array_equal(f(x, i, y, mode=mode, **promises), want)
            got = xform.jit(lambda x, i, y: f(x, i, y, mode=mode, **promises))(x, i, y)  # noqa: B023
            np.testing.assert_allclose(got, want, rtol=1e-15)


# ---- Masks that are traced ---------------------------------------------------------------------------------


@st.composite
def masked(draw):
    """An array, an index with one mask in it, and a value that does not depend on how many elements it selects."""
    x = draw(arrays(shape=shapes(1, 3, LENGTHS), dtypes=("float64", "int32"), low=1, high=3))
    first = draw(st.integers(0, x.ndim - 1))
    rank = draw(st.integers(1, x.ndim - first))
    mask = draw(arrays(shape=x.shape[first : first + rank], dtypes=("bool",)))
    before = [draw(st.one_of(slice_of(n), *([integer(n)] if n else []))) for n in x.shape[:first]]
    after = [draw(st.one_of(slice_of(n), *([integer(n)] if n else []))) for n in x.shape[first + rank :]]
    after = after[: draw(st.integers(0, len(after)))]
    return draw(st.sampled_from(("set", "add", "multiply", "min"))), x, tuple(before), mask, tuple(after)


def masked_updates(case):
    """A mask that is traced, alone or beside slices and integers."""
    name, x, before, mask, after = case
    index = (*before, mask, *after) if before or after else mask
    want = changed(name, x, index, 2)

    def program(x, mask):
        return getattr(x.at[(*before, mask, *after) if before or after else mask], name)(2)

    with small_programs("xla"):
        close(xform.jit(program)(x, mask), want)
    text = str(xform.make_jaxpr(program)(x, mask))
    strided = any(isinstance(p, slice) and p.step not in (None, 1) for p in (*before, *after))
    assert not mask.size or ("select" in text and (strided or "scatter" not in text)), text


test_masked_updates, test_masked_updates_thoroughly = both(25, 400, masked(), masked_updates)


def test_reading_with_a_traced_mask_says_what_to_use():
    x = xnp.arange(6.0).reshape(2, 3)
    for index in (lambda m: m, lambda m: (m[0], 1), lambda m: (slice(None), m[0])):
        with pytest.raises(NonConcreteBooleanIndexError) as found:
            xform.jit(lambda x: x[index(x > 2)])(x)  # noqa: B023
        for remedy in ("xform.numpy.where", r"nonzero(mask, size=", "compress(mask, x, size=", "bool"):
            assert remedy in str(found.value), found.value


# ---- Equations ---------------------------------------------------------------------------------------------

M = np.zeros((4, 5, 6))
ROWS, COLUMN = np.array([0, 2]), np.array([[1], [3]])
EQUATIONS = {
    # Static indices are one slice; integers drop their axes by one more equation, new axes are another.
    "x[0]": (lambda x: x[0], "slice squeeze"),
    "x[-1]": (lambda x: x[-1], "slice squeeze"),
    "x[1:]": (lambda x: x[1:], "slice"),
    "x[:, 2]": (lambda x: x[:, 2], "slice squeeze"),
    "x[1:3, ::2, -1]": (lambda x: x[1:3, ::2, -1], "slice squeeze"),
    "x[::-1]": (lambda x: x[::-1], "rev"),
    "x[3:0:-2]": (lambda x: x[3:0:-2], "slice rev"),
    "x[...]": (lambda x: x[...], ""),
    "x[None]": (lambda x: x[None], "broadcast_in_dim"),
    "x[0, None]": (lambda x: x[0, None], "slice squeeze broadcast_in_dim"),
    "x[1, 2, 3]": (lambda x: x[1, 2, 3], "slice squeeze"),
    "x[ROWS]": (lambda x: x[ROWS], "gather"),
    "x[:, ROWS]": (lambda x: x[:, ROWS], "gather"),
    "x[ROWS, COLUMN]": (lambda x: x[ROWS, COLUMN], "gather"),
    "x[0, :, ROWS]": (lambda x: x[0, :, ROWS], "gather"),
    "x[1:3, ROWS]": (lambda x: x[1:3, ROWS], "slice gather"),
    "x.at[0].set(1.0)": (lambda x: x.at[0].set(1.0), "broadcast_in_dim dynamic_update_slice"),
    "x.at[0].add(1.0)": (lambda x: x.at[0].add(1.0), "broadcast_in_dim scatter_add"),
    "x.at[ROWS].set(1.0)": (lambda x: x.at[ROWS].set(1.0), "broadcast_in_dim scatter"),
    "x.at[ROWS].add(1.0)": (lambda x: x.at[ROWS].add(1.0), "broadcast_in_dim scatter_add"),
    "x.at[x > 0].set(1.0)": (lambda x: x.at[x > 0].set(1.0), "gt select_n"),
}


@pytest.mark.parametrize("form", EQUATIONS)
def test_equations_of_static_indices(form):
    """Few, and no gather where a slice will do."""
    function, want = EQUATIONS[form]
    assert [e.primitive.name for e in xform.make_jaxpr(function)(M).eqns] == want.split()


def test_narrow_floats():
    for dtype in ("bfloat16", "float16"):
        x = xnp.arange(6, dtype=dtype).reshape(2, 3)
        assert x[1, ::2].tolist() == [3, 5] and x[1, ::2].dtype == x.dtype
        assert x[[1, 0], [0, 2]].tolist() == [3, 2]
        for name, want in (
            ("set", 2),
            ("add", 7),
            ("multiply", 10),
            ("divide", 2.5),
            ("min", 2),
            ("max", 5),
            ("power", 25),
        ):
            for f in (
                lambda x, name=name: getattr(x.at[1, 2], name)(2),
                xform.jit(lambda x, name=name: getattr(x.at[1, [2]], name)(2)),
            ):
                got = f(x)
                assert got.dtype == x.dtype and got[1, 2] == want and got[0].tolist() == [0, 1, 2]
        g = xform.grad(lambda x: (x.at[0].set(2.0)[:, 1] ** 2).sum().astype("float32"))(x)
        assert g.dtype == x.dtype and g.tolist() == [[0, 0, 0], [0, 8, 0]]


@pytest.fixture(autouse=True)
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
