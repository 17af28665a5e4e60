"""`xform.numpy_function`: functions in plain NumPy, unchanged, under all transformations. NumPy is the reference."""

import array
import copy
import dataclasses
import functools
import math
import sys
import threading

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import tests.numpy_routines as routines
import xform
import xform.numpy as xnp
from xform.core.errors import ConcretizationTypeError, TracerBoolConversionError

numpy_function = xform.numpy_function
X = np.array([1.0, 2.0, 3.0])


def leaves(x):
    return [np.asarray(v) for v in xform.tree.leaves(x)]


def assert_same(got, want, rtol=1e-12, atol=0.0):
    """Equal values, shapes and dtypes, and our arrays where NumPy has its own."""
    for v, w in zip(xform.tree.leaves(got), xform.tree.leaves(want), strict=True):
        if isinstance(w, np.ndarray | np.generic):
            assert isinstance(v, xform.Array) and v.dtype == w.dtype and v.shape == w.shape
        np.testing.assert_allclose(np.asarray(v), w, rtol=rtol, atol=atol)


def compare(f, *args, modes=("eager", "jit", "jvp", "vmap")):
    """The function under transformations against NumPy's own evaluation."""
    want = f(*args)
    g = numpy_function(f)
    for mode in modes:
        if mode == "eager":
            assert_same(g(*args), want)
        elif mode == "jit":
            assert_same(xform.jit(g)(*args), want)
        elif mode == "jvp":
            assert_same(xform.jvp(g, args, args)[0], want)
        else:
            out = xform.vmap(g)(*[np.stack([x, x]) for x in args])
            assert_same(xform.tree.map(lambda v: v[1], out), xform.tree.map(xnp.asarray, want))


# ---- Ten routines --------------------------------------------------------------------------------------------


def _arguments():
    rng = np.random.default_rng(7)
    n = 4
    a = rng.normal(size=(n, n))
    knots = np.cumsum(0.3 + rng.random(n))
    return {
        "thomas": (rng.normal(size=n - 1), 4 + rng.random(n), rng.normal(size=n - 1), rng.normal(size=n)),
        "gram_schmidt": (rng.normal(size=(3, 3)),),
        "horner": (rng.normal(size=4), rng.normal(size=3)),
        "floyd_warshall": (3 * rng.random((3, 3)),),
        "gauss_seidel": (a[:3, :3] + 4 * np.eye(3), rng.normal(size=3)),
        "oscillator_step": (np.array([1.0, 0.5]),),
        "spline_moments": (knots, rng.normal(size=n)),
        "fft": (rng.normal(size=8),),
        "lu": (a,),
        "lu_in_order": (a + n * np.eye(n),),
        "histogram": (0.1 + 0.8 * rng.random(4), rng.random(4)),
    }


ARGUMENTS = _arguments()
NAMES = list(ARGUMENTS)
# The pivots of `lu` depend on values, so that it isn't for jit and vmap.
COMPILED = [name for name in NAMES if name != "lu"]


def routine(name):
    if name == "histogram":
        return lambda x, weights: routines.histogram(x, weights, 0.0, 1.0, 6)
    if name == "gauss_seidel":
        return functools.partial(routines.gauss_seidel, sweeps=2)
    return getattr(routines, name)


def losses(name):
    """A real number made of the results: by NumPy, and by the library."""
    f, rng = routine(name), np.random.default_rng(3)
    weights = [rng.normal(size=v.shape) + 1j * rng.normal(size=v.shape) for v in leaves(f(*ARGUMENTS[name]))]

    def plain(*args):
        return sum(np.sum((w * v).real) + np.sum(v * np.conj(v)).real for w, v in zip(weights, leaves(f(*args))))

    g = numpy_function(f)

    def transformed(*args):
        out = xform.tree.leaves(g(*args))
        return sum(xnp.sum((w * v).real) + xnp.sum(v * xnp.conj(v)).real for w, v in zip(weights, out))

    return plain, transformed


def along(f, args, directions, h=1e-5):
    """The derivative of a function along a direction, by central differences."""
    up = f(*[x + h * d for x, d in zip(args, directions)])
    down = f(*[x - h * d for x, d in zip(args, directions)])
    return (up - down) / (2 * h)


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    f, args = routine(name), ARGUMENTS[name]
    g = numpy_function(f)
    assert_same(g(*args), f(*args))
    assert_same(xform.jvp(g, args, args)[0], f(*args), 1e-12, 1e-13)
    if name in COMPILED:
        assert_same(xform.jit(g)(*args), f(*args), 1e-10, 1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name, rng):
    args = ARGUMENTS[name]
    plain, transformed = losses(name)
    every = tuple(range(len(args)))
    directions = [rng.normal(size=x.shape) for x in args]
    want = along(plain, args, directions)
    gradients = xform.grad(transformed, every)(*args)
    assert sum(np.sum(g * d) for g, d in zip(gradients, directions)) == pytest.approx(want, rel=1e-6, abs=1e-6)
    assert float(xform.jvp(transformed, args, directions)[1]) == pytest.approx(want, rel=1e-6, abs=1e-6)
    if name in COMPILED:
        assert_same(xform.jit(xform.grad(transformed, every))(*args), leaves(gradients), 1e-8, 1e-10)
        assert_same(xform.grad(xform.jit(transformed), every)(*args), leaves(gradients), 1e-8, 1e-10)


@pytest.mark.parametrize("name", COMPILED)
def test_vmap_is_a_loop(name):
    f, args = routine(name), ARGUMENTS[name]
    scales = np.array([1.0, 1.01, 0.99])
    stacked = [np.stack([x * s for s in scales]) for x in args]
    out = leaves(xform.vmap(numpy_function(f))(*stacked))
    for k, s in enumerate(scales):
        for got, want in zip(out, leaves(f(*[x * s for x in args])), strict=True):
            np.testing.assert_allclose(got[k], want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["horner", "oscillator_step", "lu"])
def test_hessian(name, rng):
    args = ARGUMENTS[name]
    _, transformed = losses(name)
    hessian = np.asarray(xform.hessian(transformed)(*args))
    direction = rng.normal(size=args[0].shape)
    gradient = xform.grad(transformed)
    want = along(lambda x: np.asarray(gradient(x, *args[1:])), args[:1], [direction])
    np.testing.assert_allclose(np.tensordot(hessian, direction, direction.ndim), want, rtol=1e-5, atol=1e-6)


def test_in_scan_and_checkpoint():
    step = numpy_function(lambda y: routines.oscillator_step(y)[0])

    def final(y):
        return xform.lax.scan(lambda y, _: (step(y), None), y, None, length=3)[0].sum()

    y = np.array([1.0, 0.5])

    def plain(y):
        for _ in range(3):
            y = routines.oscillator_step(y)[0]
        return y.sum()

    for g in (final, xform.checkpoint(final), xform.jit(final)):
        d = np.array([0.3, -1.0])
        assert float(xform.grad(g)(y) @ d) == pytest.approx(along(plain, [y], [d]), rel=1e-7)


# ---- Views ---------------------------------------------------------------------------------------------------


def _index(rng, shape):
    out = []
    for n in shape:
        kind = rng.integers(6)
        if kind == 0 and n:
            out.append(int(rng.integers(-n, n)))
        elif kind == 1:
            out.append(slice(None, None, -1))
        elif kind == 2:
            out.append(slice(int(rng.integers(2)), None, int(rng.integers(1, 3))))
        elif kind == 3 and rng.random() < 0.3:
            out += [None, slice(None)]
        else:
            out.append(slice(None))
    return (*out[: int(rng.integers(len(out) + 1))], ...) if rng.random() < 0.2 else tuple(out)


def random_program(seed):
    """A function that makes arrays and views of them, and writes into them, as the seed says."""

    def run(x):
        rng = np.random.default_rng(seed)
        arrays = [[np.zeros((2, 3, 4)), np.arange(24.0).reshape(2, 3, 4), np.array(x) * 2.0][rng.integers(3)]]
        for _ in range(12):
            a = arrays[rng.integers(len(arrays))]
            kind = rng.integers(14)
            if kind < 3:
                b = a[_index(rng, a.shape)]
                arrays += [b] if b.ndim else []
            elif kind == 3:
                arrays.append(a.T)
            elif kind == 4:
                arrays.append(a.reshape(-1) if rng.random() < 0.5 else np.ravel(a))
            elif kind == 5:
                arrays.append(a.copy())
            elif kind < 8:
                a[_index(rng, a.shape)] = x[tuple(int(rng.integers(n)) for n in x.shape)]
            elif kind == 8:
                a[_index(rng, a.shape)] += x[0, 0, 1]
            elif kind == 9:
                a *= 1.5
            elif kind == 10:
                arrays.append(a * 2 + x[0, 1, 1])
            elif kind == 11:
                a[np.arange(a.size).reshape(a.shape) % 3 == 1] = x[1, 1, 1]
            elif kind == 12:
                rows = np.array([0, a.shape[0] - 1]) if a.shape[0] else np.array([], int)
                a[rows] = a[rows] + x[0, 2, 2]
            else:
                views = [np.flip, np.squeeze, np.atleast_2d, np.flipud, lambda a: np.swapaxes(a, 0, -1)]
                arrays.append(views[rng.integers(5)](a))
                if arrays[-1].ndim == 0:
                    arrays.pop()
                a.flat[::2] = x[0, 0, 0]
        return arrays

    return run


@hypothesis.given(st.integers(0, 2**32))
def test_views_share_memory_as_in_numpy(seed):
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    f = random_program(seed)
    want = f(x)
    try:
        got = xform.jvp(numpy_function(f), (x,), (x,))[0]
    except ValueError as error:
        assert "a view or a copy in NumPy" in str(error)
        return
    assert_same(got, want)


def test_rows_and_columns_write_through():
    def f(x):
        a = np.zeros((3, 3))
        row, column = a[0], a[:, 1]
        row[:] = x
        row += 1
        column *= x[0]
        a.T[2] = x[1]
        for r in a:
            r /= 1 + r.sum()
        b = a.reshape(-1)
        b[::4] = x
        a.ravel()[1] += x[2]
        d = np.diagonal(a)
        a[1, 1] = 7 * x[0]
        return a, row, column, b, d

    compare(f, X)


def test_a_scalar_is_no_view():
    def f(x):
        a = x * 2
        s = a[0]
        a[0] = 9.0
        s += a[0]
        return a, s

    compare(f, X)


def test_assignment_through_another_name():
    def f(x):
        a = np.zeros(3)
        b = a
        b += x
        b[0] = 5.0

        def add(c):
            c[1] += x[1]

        add(a)
        return a, b

    compare(f, X)


def test_real_and_imaginary_parts():
    def f(x):
        a = np.zeros(3, complex)
        a.real = x
        a.imag[1:] = 2 * x[1:]
        b = x * 1
        b.real[0] = 4.0
        return a, a.conj(), b, np.abs(a)

    compare(f, X)


def test_more_views():
    def f(x):
        a = np.outer(x, x)
        np.einsum("ii->i", a)[:] = 1.0
        np.einsum("ij->ji", a)[0, 1] = x[1]
        a.view()[2, 2] = 9.0
        a.astype(float, copy=False)[1, 2] = 4.0
        a.conj()[2, 1] = 3.0
        bits = a.view(np.int64)
        a[0, 0] = 2 * x[0]
        b, c = copy.copy(a), copy.deepcopy(a)
        b[0], c[1] = 0.0, 1.0
        d = np.array([1.0, np.nan, 2.0]) * x
        np.nan_to_num(d, copy=False)
        e = a.T.copy().ravel()
        e[1] = 5.0
        g = (a[:, 1:] * 2).reshape(-1)
        g[0] = x[0]
        return a, bits + 0, b, c, d, np.array(a.T).reshape(-1), e, g

    compare(f, X)


def test_what_is_no_view():
    def f(x):
        a = x * 1
        b, c = a[[0, 1]], a[a > 0]
        b[0], c[:] = 100.0, 0.0
        q = np.outer(x, x) + np.eye(3)
        q[[0, 2]] = q[[2, 0]]
        q[:, [0, 1]] = q[:, [1, 0]]
        t = q[0].copy()
        q[0] = q[1]
        q[1] = t
        return a, b, c, q

    compare(f, X, modes=("eager", "jvp"))


def test_overlapping_writes():
    def f(x):
        a = np.concatenate([x, x])
        a[1:] = a[:-1]
        a[:-1] += a[1:]
        a[0], a[1] = a[1], a[0]
        return a

    compare(f, X)


def test_edges():
    def f(x):
        a = np.zeros((0, 3))
        a[:] = x
        b, c = np.array(3.0), np.zeros(())
        b[...] = x[0]
        b += x[1]
        c[()] = x[2]
        d = np.zeros((3, 4))
        d[-1, -2:] = x[:2]
        d[[0, 2], [1, 1]] += x[:2]
        d[np.ix_([0, 1], [2, 3])] = x[0]
        d[:, None, 1] = x[:, None]
        d[..., 0] = x
        rows = iter(d)
        next(rows)[:] = 0
        return a, b, c, x[:0], x[:0].sum(), np.zeros((2, 0)), x[0][()], x[0][None], d, [np.zeros(2) + v for v in x]

    compare(f, X)


def test_memory_that_may_be_shared_is_an_error_that_says_where():
    def f(x):
        a = np.outer(x, x).T * 2
        flat = a.ravel()  # a copy in NumPy
        a[0, 1] = 7.0
        return flat

    with pytest.raises(ValueError, match=r"made at test_numpy_function.py:\d+ \(f\) is a view or a copy in NumPy"):
        xform.jvp(numpy_function(f), (X,), (X,))

    def g(x):
        flat = (np.outer(x, x).T * 2).ravel()
        flat[0] = 1.0
        return flat

    with pytest.raises(ValueError, match="assigning to it"):
        xform.jit(numpy_function(g))(X)
    compare(lambda x: (np.outer(x, x).T * 2).ravel() + 1, X)  # what is only read is clear


def test_read_only_views():
    def f(x):
        np.broadcast_to(x * 2, (2, 3))[0, 0] = 1.0

    for transform in (lambda g: g, xform.jit):
        with pytest.raises(ValueError, match="read-only"):
            transform(numpy_function(f))(X)


# ---- Writing -------------------------------------------------------------------------------------------------


def test_functions_that_write():
    def f(x):
        a = np.ones((3, 3))
        np.fill_diagonal(a, x)
        np.copyto(a[0], x)
        np.put(a, [4, 5], x[:2])
        np.copyto(a, 7.0, where=np.eye(3) > 0)
        np.putmask(a, np.tri(3) == 0, [1.0, 2.0])
        np.put_along_axis(a, np.array([[0], [1], [2]]), x[0], 1)
        b = np.ones(3)
        np.add.at(b, [0, 0, 1], x)
        np.place(b, [True, False, True], x)
        c = x * 1
        c[::-1].sort()
        c.flat[1] = x[2]
        d = np.empty(3)
        d.fill(x[1])
        return a, b, c, d

    compare(f, X)


def test_out():
    def f(x):
        a = np.empty(3)
        np.multiply(x, 2, out=a)
        np.sin(a, out=a)
        np.add(a, x, out=a, where=np.array([True, False, True]))
        b = np.zeros((2, 3))
        np.cumsum(x, out=b[1])
        c = x * 1
        np.add(c, a, c)
        np.clip(c, 0.5, 4.0, c)
        np.sum(b, 0, None, a[:3])
        return a, b, c

    compare(f, X)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # NumPy 2.5
def test_shapes_that_are_assigned():
    def f(x):
        a = np.zeros((2, 3))
        a[1] = x
        b = a[:]
        a.shape = 6
        a[3] += 1
        a.shape = (3, 2)
        return a, b

    compare(f, X)


def test_scipy():
    scipy_special = pytest.importorskip("scipy.special")

    def f(x):
        a = np.zeros(3)
        a[1:] = scipy_special.erf(x[1:])
        return a + scipy_special.expit(x)

    compare(f, X)
    with pytest.raises(TypeError, match=r"ndarray is needed|counterpart"):
        xform.jit(numpy_function(lambda x: scipy_special.wofz(x)))(X)


def test_masks():
    def f(x):
        a = np.where(x > 1.5, x, 0.0)
        a[a == 0] = -1.0
        b = np.array(x)
        b[x > 2.5] *= 2
        b[np.array([True, False, False])] += 1
        return a, b

    compare(f, X, modes=("eager", "jvp"))

    def g(x):
        a = x * 1
        a[x > 1.5] = 0.0
        return a

    compare(g, X)


def test_values_take_the_dtype_of_the_array():
    def f(x):
        a = np.zeros(3, int)
        a[0] = 2.7
        a[1] = x[1] + 0.9
        b = np.zeros(3, np.float32)
        b[:] = x
        b += x
        return a, b, np.zeros(3), np.array([1, 2, 3]), np.array([1, x[0]])

    compare(f, X)


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x: np.zeros(3).__setitem__(5, x[0]), IndexError, "out of bounds"),
        (lambda x: np.zeros((3, 3)).__setitem__((0, slice(2)), x), ValueError, "broadcast"),
        (lambda x: np.zeros(3).__setitem__(0, x[0] * 1j), TypeError, "complex128"),
        (lambda x: np.zeros(3).__setitem__(slice(None), x * 1j), TypeError, "complex128"),
        (lambda x: np.zeros(3, int).__iadd__(x), TypeError, "same_kind"),
        (lambda x: np.zeros(2).__iadd__(x), ValueError, "broadcast"),
        (lambda x: np.add(x, x, out=np.zeros((2, 2))), ValueError, "broadcast"),
        (lambda x: np.empty(3, dtype=object).__setitem__(0, x[0]), TypeError, "dtype object"),
        (lambda x: np.array([x[0], "a"]), TypeError, "array"),
        (lambda x: x[0].__setitem__(0, 1), TypeError, "does not support item assignment"),
        (lambda x: array.array("d", [x[0]]), TypeError, r"derivative would be lost.*\n.*np.sin"),
        (lambda x: np.testing.assert_allclose(x, x), TypeError, "no counterpart|ndarray is needed"),
        (lambda x: (x * 1).resize(5), NotImplementedError, "resized"),
    ],
)
def test_errors(f, error, message):
    with pytest.raises(error, match=message):
        xform.jvp(numpy_function(f), (X,), (X,))


TABLE = np.array([1.0, 2.0, 3.0])


def test_arrays_from_outside_are_not_written():
    local = np.ones(3)

    def argument(x):
        x[0] = 1.0

    def view(x):
        x[1:] += 1.0

    def module(x):
        TABLE[0] = x[0]

    def closure(x):
        local[0] = x[0]

    def fill(x):
        x.fill(0.0)

    def whole(x):
        x *= 2

    for f in (argument, view, module, closure, fill, whole):
        for transform in (xform.jit, lambda g: lambda x: xform.jvp(g, (x,), (x,))):
            with pytest.raises(ValueError, match=r"comes from outside.*\n?.*x.copy\(\)"):
                transform(numpy_function(f))(X)
    for f in (argument, view, fill, whole):
        with pytest.raises(ValueError, match="read-only") as caught:
            numpy_function(f)(X)
        assert "x.copy()" in caught.value.__notes__[0]
    assert X.tolist() == [1.0, 2.0, 3.0] and TABLE[0] == 1.0 and X.flags.writeable


def test_results_share_nothing_with_later_writes():
    kept = []

    def f(x):
        a = np.zeros(3)
        kept.append(a)
        first = a * 1 + x
        y = a + x
        a[0] = 100.0
        return first, y

    compare(f, X)
    out = numpy_function(lambda x: x)(X.copy())
    assert isinstance(out, xform.Array)


def test_constants_of_derivatives_do_not_change_afterwards():
    def f(x):
        a = np.full(3, 2.0)
        y = a * x  # the derivative needs `a` as it is here
        a[:] = 5.0
        return (y * a).sum()

    assert xform.grad(numpy_function(f))(X).tolist() == [10.0, 10.0, 10.0]


# ---- NumPy ---------------------------------------------------------------------------------------------------


def test_many_functions():
    def f(x):
        m = np.outer(x, x) + np.eye(3)
        for index, v in np.ndenumerate(m):
            m[index] = v * 2
        a, b = np.split(np.concatenate([x, x]), 2)
        return (
            m, a, b, np.r_[x, 1.0, x], np.c_[x, x], np.clip(x, 1.5, 2.0), np.interp(2.5, x, x), np.einsum("i,i", x, x),
            np.linspace(0, x[0], 3), np.dot(x, x), x @ x, np.mean(x), x.std(ddof=1), np.cumsum(x), np.diff(x),
            np.trapezoid(x), np.isfinite(x).all(), np.allclose(x, x), np.tensordot(x, x, 1), np.meshgrid(x, x)[0],
            np.full(2, x[0]), np.full_like(x, x[0]), np.zeros_like(x), np.linalg.norm(x), np.linalg.inv(m), np.tri(2),
            np.diag(x), np.diag(m), np.trace(m), np.polyval([1.0, 2.0], x), np.float64(x[0]), x.astype(np.float32),
            np.array(x, dtype=np.complex128), np.roll(x, 1), np.pad(x, 1), np.tile(x, 2), np.cross(x, x), np.kron(x, x),
            np.maximum.reduce(x), np.add.outer(x, x), np.multiply.accumulate(x), np.vectorize(lambda t: t * t)(x),
            np.apply_along_axis(lambda r: r * 2, 0, x), np.sum([x[0], x[1]]), np.fft.ifft(np.fft.fft(x)).real,
            np.linalg.solve(m, x), np.linalg.det(m), np.vstack((x, a)), np.stack([x, x], axis=1), np.array([a, x]),
            np.size(x), np.ndim(x), np.shape(x), len(x), np.fliplr(m), np.rot90(m), np.expand_dims(x, 0),
            sum(x), abs(x[0]), round(x[0], 1), divmod(x, 2.0), functools.reduce(lambda s, v: s + v, x),
        )  # fmt: skip

    compare(f, X, modes=("eager", "jit", "jvp"))


def test_promotion_is_numpys():
    def f(x):
        a = np.zeros(3, np.float32) + x.astype(np.float32)
        integers = np.arange(3)
        return (
            a * integers, a + np.float64(1), a * 2.0, a**2, integers / a, np.arange(3, dtype=np.int32) * a,
            np.arange(3, dtype=np.int8) * a, np.maximum(a, integers), x * integers, integers > a,
        )  # fmt: skip

    compare(f, X)


def test_with_32_bits():
    def f(x):
        a = np.zeros(3)
        a[0] = x[0]
        return a, np.arange(3) * x, np.float64(2) * x, a + x

    x = X.astype(np.float32)
    with xform.enable_x64(False):
        g = numpy_function(f)
        for out in (g(x), xform.jit(g)(x), xform.jvp(g, (x,), (x,))[0]):
            for got, want in zip(out, f(x), strict=True):
                assert got.dtype == np.float32
                np.testing.assert_allclose(got, want)


def test_narrow_types():
    def f(x):
        a = np.zeros(3, dtype=x.dtype)
        a[1:] = x[1:]
        a += x
        return a * 2

    x = xnp.asarray(X, dtype="bfloat16")
    for g in (numpy_function(f), xform.jit(numpy_function(f))):
        assert g(x).dtype == x.dtype and g(x).tolist() == [2, 8, 12]


def test_what_is_not_traced_is_numbers():
    def f(x):
        n = int(np.ceil(np.log2(x.size + 5)))
        a = np.zeros(n)
        for i in np.arange(n)[::-1]:
            a[i] = i * x[0]
        order = np.argsort(np.array([3, 1, 2]))
        return a, x[order], np.zeros_like(x).sum(), {"n": n}

    compare(f, X)


def test_types():
    def f(x):
        y = x * 2
        assert isinstance(y, np.ndarray) and isinstance(y[0], np.floating) and isinstance(y[0], float)
        assert not isinstance(y[0], np.ndarray | np.integer | complex) and np.isscalar(y[0])
        assert y.dtype == np.float64 and y.dtype == float and np.issubdtype(y.dtype, np.floating)
        assert np.finfo(y.dtype).eps == np.finfo(np.float64).eps and np.dtype(np.float32).itemsize == 4
        assert np.zeros(2, dtype=float).dtype == np.zeros(2, np.float64).dtype and float("inf") == np.inf
        assert y.shape == (3,) and y.T.ndim == 1 and y.nbytes == 24 and isinstance(1.0, float)
        assert np.asarray(y) is y and np.array(y) is not y and y[...].base is not None
        return float(y[0]) * complex(y[1]), np.int64(y[2])

    compare(f, X)


def test_math():
    def f(x):
        logarithms = math.log(x[1]) + math.log(x[1], 2) + math.log10(x[0])
        return math.sin(x[0]) + math.sqrt(x[1]) * math.pi + math.hypot(x[0], x[1]) + math.erf(x[0]) + logarithms

    compare(f, X)
    compare(lambda x: np.zeros(5)[: math.floor(2.5)] + x[math.floor(x[0])], X, modes=("eager", "jvp"))


def test_traced_indices():
    def f(x):
        i = np.argmax(x)
        a = np.zeros(3)
        a[i] = x[i]
        a[i] += x[i]
        b = np.arange(6.0).reshape(3, 2)
        row = b[i]
        row[0] = x[0]
        return a, b, TABLE[i]

    compare(f, X)


def test_control_flow_in_eager_derivatives():
    def newton(x):
        y, steps = x[0], 0
        while abs(y * y - x[1]) > 1e-12:
            y = 0.5 * (y + x[1] / y)
            steps += 1
        return max(y, 0.5) if steps > 1 else y * 0

    g = numpy_function(newton)
    assert float(g(X)) == newton(X)
    np.testing.assert_allclose(xform.grad(g)(X), [0, 0.5 / np.sqrt(2), 0], atol=1e-9)
    with pytest.raises(TracerBoolConversionError):
        xform.jit(g)(X)
    with pytest.raises(ConcretizationTypeError):
        xform.jit(numpy_function(lambda x: np.zeros(int(x[0]))))(X)


def test_random_numbers():
    def f(x):
        return x + np.random.normal(size=3)

    generator = np.random.default_rng(0)
    assert numpy_function(f)(X).shape == (3,)
    assert xform.grad(lambda x: numpy_function(f)(x).sum())(X).tolist() == [1, 1, 1]
    for drawing in (f, lambda x: x + generator.normal(size=3), lambda x: x + np.random.default_rng().random(3)):
        with pytest.raises(RuntimeError, match="drawn once"):
            xform.jit(numpy_function(drawing))(X)

    def seeded(x):
        rng = np.random.default_rng(5)
        a = rng.normal(size=3)
        rng.shuffle(a)
        a[0] = x[0]
        return a

    compare(seeded, X)


# ---- What the function sees ----------------------------------------------------------------------------------


def helper(a):
    out = np.zeros(len(a))
    out[1:] = a[1:] * TABLE[1:]
    return out


def factorial(n, x):
    if n == 0:
        return np.ones(3)
    out = np.empty(3)
    out[:] = n * x * factorial(n - 1, x)
    return out


def is_even(n, x):
    return x if n == 0 else is_odd(n - 1, x + n)


def is_odd(n, x):
    return is_even(n - 1, x * n)


def in_an_array(f):
    @functools.wraps(f)
    def wrapper(*args):
        out = np.zeros(3)
        out[:] = f(*args)
        return out

    return wrapper


@in_an_array
def decorated(x):
    out = np.ones(3)
    out[0] = x[1]
    return out


@functools.lru_cache
def cached(n):
    return np.arange(float(n))


@numpy_function
def wrapped(x):
    out = np.zeros(3)
    out[0] = x[0]
    return out


METHODS = {"helper": helper}
from numpy import zeros
from numpy.linalg import norm as length


def test_functions_that_it_calls():
    def f(x):
        a = np.array(wrapped(x))
        a[1] = x[2]
        b = zeros(3)
        b[0] = length(x)
        inner = functools.partial(helper, x * 2)
        default = (lambda y, t=TABLE: y * t)(x)
        called = routines.van_der_pol(0.0, x)
        return (
            helper(x), METHODS["helper"](x), factorial(3, x), is_even(4, x), decorated(x), cached(3) * x, a, b, inner(),
            default, called,
        )  # fmt: skip

    compare(f, X)


def test_imports_within():
    def f(x):
        import math as m

        import numpy as N
        import numpy.fft as F
        from numpy import linalg, ones
        from numpy.linalg import norm

        import tests.numpy_routines as r

        a = N.zeros(4)
        a[1:] = x
        b = ones(3)
        b[0] = m.cos(x[0])
        return a, b, norm(a), F.fft(a), linalg.solve(N.eye(3), x), r.fft(a)

    compare(f, X)


def test_closures():
    def make(scale):
        weights = np.array([1.0, 2.0, 3.0])
        calls = 0

        def inner(x):
            nonlocal calls
            calls += 1

            def fill(n):
                if n == 0:
                    return np.zeros(3)
                out = fill(n - 1)
                out[n - 1] = x[n - 1] * weights[n - 1]
                return out

            return fill(3) * scale

        return inner, lambda: calls

    f, calls = make(2.0)
    compare(f, X)
    assert calls() == 5
    compare(make(xform.numpy.asarray(3.0))[0], X, modes=("jit", "jvp"))

    traced = xform.grad(lambda s: numpy_function(make(s)[0])(X).sum())(2.0)
    assert float(traced) == pytest.approx(14.0)


def test_a_closure_that_changes():
    data = np.ones(3)

    def f(x):
        return data * x

    g = numpy_function(f)
    assert g(X).tolist() == [1, 2, 3] and xform.jvp(g, (X,), (X,))[0].tolist() == [1, 2, 3]
    data = 2 * np.ones(3)
    assert g(X).tolist() == [2, 4, 6] and xform.jvp(g, (X,), (X,))[0].tolist() == [2, 4, 6]


def test_a_module_that_changes(monkeypatch):
    g = numpy_function(lambda x: helper(x))
    before = xform.jvp(g, (X,), (X,))[0].tolist()
    assert before == g(X).tolist() == [0, 4, 9]
    monkeypatch.setattr(sys.modules[__name__], "TABLE", 2 * TABLE)
    assert xform.jvp(g, (X,), (X,))[0].tolist() == g(X).tolist() == [0, 8, 18]
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda x: np.zeros(3) + x)
    assert xform.jvp(g, (X,), (X,))[0].tolist() == g(X).tolist() == X.tolist()


class Base:
    def __init__(self, n):
        self.grid = np.zeros(n)
        self.grid[:] = np.arange(n)


class Mesh(Base):
    weights = np.array([1.0, 2.0, 3.0])

    def __init__(self, n, c=2.0):
        super().__init__(n)
        self.c, self.calls, self.frames = c, [], []

    def flux(self, u):
        out = np.empty_like(u)
        out[0] = u[0]
        out[1:] = u[1:] - u[:-1] * self.c
        self.calls.append(1)
        return out * self.weights

    @staticmethod
    def first(u):
        out = np.zeros(3)
        out[0] = u[0]
        return out

    @classmethod
    def make(cls):
        return cls(3)

    @property
    def doubled(self):
        return self.grid * 2

    @numpy_function
    def method(self, u):
        self.frames.append(sys._getframe().f_globals)
        out = np.zeros(3)
        out[1] = u[1] * self.c
        return out

    def __call__(self, u):
        return self.flux(u) + self.doubled


@dataclasses.dataclass
class Pair:
    a: object
    b: object

    def norm(self):
        out = np.zeros(2)
        out[0], out[1] = self.a.sum(), self.b
        return out


def test_classes_and_objects():
    mesh = Mesh(3)

    def f(x):
        new, pair = Mesh.make(), Pair(x, x[0])
        assert isinstance(new, Base) and isinstance(mesh, Mesh) and not isinstance(pair, Base)
        new.grid[0] = x[0]
        fluxes = new.flux(x), mesh.flux(x)
        return fluxes, Mesh.first(x), mesh.doubled * x, new.grid, pair.norm(), mesh(x), Mesh.weights * x

    compare(f, X)
    compare(mesh.flux, X)
    compare(mesh, X)
    compare(lambda x: mesh.method(x), X)
    assert len(mesh.calls) > 10 and mesh.grid.tolist() == [0, 1, 2]
    np.testing.assert_allclose(xform.grad(lambda u: mesh.method(u).sum())(X), [0, 2, 0])
    pair = xform.jvp(lambda x: numpy_function(lambda m, x: m.flux(x))(mesh, x), (X,), (X,))[0]
    np.testing.assert_allclose(pair, mesh.flux(X))


def test_trees():
    def f(parameters, *rest, scale=1.0):
        out = np.zeros(3)
        out[:] = parameters["w"] * scale
        return {"out": out, "rest": list(rest)}, None, 3

    args = {"w": X, "name": "model"}
    want = f(args, X, scale=2.0)
    assert_same(numpy_function(f)(args, X, scale=2.0), want)
    assert_same(xform.jvp(lambda x: numpy_function(f)({"w": x}, x, scale=2.0)[0], (X,), (X,))[0], want[0])


def test_transformations_within():
    def f(x):
        def energy(y):
            squares = np.zeros(3)
            for i in range(3):
                squares[i] = y[i] ** 2 * (i + 1)
            return squares.sum()

        force = xform.grad(energy)(x * 2)
        return force * 1, xform.jit(energy)(x)

    g = numpy_function(f)
    for force, energy in (g(X), xform.jvp(g, (X,), (X,))[0], xform.jit(g)(X)):
        np.testing.assert_allclose(force, [4, 16, 36])
        assert float(energy) == 36


counter = 0


def test_what_it_can_not_do():
    def counts(x):
        global counter
        counter += 1
        return x

    def rebinds():
        state = np.zeros(3)

        def f(x):
            nonlocal state
            state = state + x
            return state

        return f

    for f, message in ((counts, "global name 'counter'"), (rebinds(), "nonlocal name 'state'")):
        with pytest.raises(NotImplementedError, match=message):
            xform.jit(numpy_function(f))(X)
    for bad in (np.sin, len, 3.0, np.ndarray):
        with pytest.raises(TypeError, match="written in Python"):
            numpy_function(bad)


def test_it_looks_like_the_function():
    def f(x):
        "What it does."

    g = numpy_function(f)
    assert g.__name__ == "f" and g.__doc__ == "What it does." and g.__wrapped__ is f
    compare(functools.partial(helper), X)
    assert numpy_function(lambda: np.zeros(2))().tolist() == [0, 0]


def state_of(*modules):
    return [dict(vars(m)) for m in modules]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_behind(error):
    here = sys.modules[__name__]
    before = state_of(np, np.linalg, math, routines, here)

    def f(x):
        a = np.zeros(3)
        a[0] = x[0]
        helper(x)
        raise error("stop")

    cells = [c.cell_contents for c in f.__closure__]
    for run in (lambda: numpy_function(f)(X), lambda: xform.jvp(numpy_function(f), (X,), (X,))):
        with pytest.raises(error, match="stop"):
            run()
    after = state_of(np, np.linalg, math, routines, here)
    assert all(a.keys() == b.keys() and all(a[k] is b[k] for k in a) for a, b in zip(before, after))
    assert cells == [c.cell_contents for c in f.__closure__] and type(np.zeros(2)) is np.ndarray
    assert xform.jvp(numpy_function(helper), (X,), (X,))[0].tolist() == helper(X).tolist()


def test_threads():
    g = numpy_function(routines.thomas)
    args = ARGUMENTS["thomas"]
    want, results, errors = routines.thomas(*args), [], []

    def work(k):
        try:
            for _ in range(5):
                out = xform.jvp(g, args, args)[0] if k % 2 else g(*args)
                results.append(np.asarray(out))
                assert type(np.zeros(2)) is np.ndarray
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and len(results) == 20
    for out in results:
        np.testing.assert_allclose(out, want, rtol=1e-12)


# ---- Costs ---------------------------------------------------------------------------------------------------


def equations(f, *args):
    return len(xform.make_jaxpr(f)(*args).jaxpr.eqns)


def test_no_more_equations_than_with_at():
    def plain(x):
        a = np.zeros((3, 4))
        a[0] = x[0]
        row = a[1]
        row[2] = x[1]
        row[1:3] += x[2]
        a[2, ::-1][0] = x[0]
        a *= x[1]
        return a

    def with_at(x):
        a = xnp.zeros((3, 4))
        a = a.at[0].set(x[0])
        a = a.at[1, 2].set(x[1])
        a = a.at[1, 1:3].add(x[2])
        a = a.at[2, 3].set(x[0])
        return a * x[1]

    assert_same(xform.jit(numpy_function(plain))(X), plain(X))
    assert equations(numpy_function(plain), X) <= equations(with_at, X)


def test_large_constants_are_broadcast():
    def f(x):
        a = np.zeros(1000)
        a[3] = x[0]
        return a + np.ones(1000)

    assert not xform.make_jaxpr(numpy_function(f))(X).consts


def test_plain_evaluation_is_the_function_itself():
    """Also of methods, of functions that are arguments, and of other NumPy functions that it calls."""
    frames = []

    def f(x, g=None):
        frames.append(sys._getframe().f_globals)
        out = wrapped(x) if g is None else g(x)
        out[1] = 2.0
        return out

    def transforms(x, g=None):
        frames.append(sys._getframe().f_globals)
        return xform.jit(lambda x: np.zeros(3) + x)(x) if g is None else g(x)

    g = numpy_function(f)
    for call in (lambda: g(X), lambda: g(X, np.sin), lambda: g(X, helper)):
        assert isinstance(call(), xform.Array) and frames.pop() is globals()
    mesh = Mesh(3)
    mesh.frames = frames
    assert mesh.method(X).tolist() == [0, 4, 0] and frames.pop() is globals()
    xform.jvp(g, (X,), (X,))
    assert frames.pop() is not globals()
    for h, args in ((transforms, ()), (f, (lambda x: transforms(x),))):
        assert isinstance(numpy_function(h)(X, *args), xform.Array)
        assert frames.pop() is not globals()
