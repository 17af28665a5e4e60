"""Choosing, clipping, rounding, comparing; indices, grids, masks and bits; functions of functions; against NumPy."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.numpy_cases import Case, by_name, check, compare
from xform.test_util import check_grads

RNG = np.random.default_rng(0)
F = RNG.normal(size=(3, 4))
K = RNG.integers(-3, 4, (3, 4))
B = F > 0
C = F + 1j * F[::-1]
S = np.array([0.0, -0.0, 1.5, -2.5, 0.5, np.nan, np.inf, -np.inf, 1e300])
BYTES = RNG.integers(0, 256, (3, 2)).astype("u1")

CASES = [
    *(Case("where", (B, x, y))
        for x, y in ((F, -F), (F, 2.0), (F, K), (1.0, F), (F[0], F[:, :1]), (1, 2.5), (True, False), (C, F))),
    Case("where", (K, F, 0.0)), Case("where", (True, F, K)), Case("where", (np.bool_(True), 1.0, 2.0)),
    Case("select", ([F < 0, F > 1], [F, F * 2], 7.0)), Case("select", ([B, ~B], [K, F])), Case("select", ([B], [K])),
    Case("piecewise", (F, [F < 0, F >= 1], [lambda x: -x, lambda x: x * 10]), fixed=(2,)),
    Case("piecewise", (F, [F < 0, F >= 1], [-1.0, 1.0, lambda x: x]), fixed=(2,)),
    Case("piecewise", (K, [K > 0], [5, 6]), fixed=(2,)),
    *(Case("clip", (a, lo, hi)) for a in (F, K) for lo, hi in ((-1, 1), (None, 0.5), (0, None), (F[0], 2.0), (2, -2))),
    Case("clip", (F,), {"min": 0.0}),
    Case("clip", (F, -0.5), {"a_max": 0.5}, lambda a, lo, a_max: np.clip(a, lo, a_max)),
    *(Case("nan_to_num", (a,)) for a in (S, K, C, S[:-1].astype("f"), S[:5] + 1j * np.arange(5))),
    Case("nan_to_num", (S,), {"nan": 1.0, "posinf": 2.0, "neginf": -3.0}),
    *(Case("round", (a, d)) for a in (F, S[:5], C, K, K * 1234) for d in (0, 2, -1, -2)), Case("around", (F, 1)),
    Case("round", (F.astype("f2"), 2), tolerance=1e-3),
    *(Case("angle", (a,)) for a in (C, F, K)), Case("angle", (C, True)),
    *(Case("isclose", p) for p in ((F, F + 1e-9), (F, F * 1.01), (S, S), (S, S[::-1]), (K, K + 1), (C, C))),
    Case("isclose", (S, S), {"equal_nan": True}), Case("isclose", (F, F + 0.1), {"atol": 0.2, "rtol": 0.0}),
    *(Case("allclose", p, dtype=bool) for p in ((F, F), (F, F + 1), (F, F[0]))),
    *(Case("array_equal", p, dtype=bool) for p in ((F, F), (F, F[0]), (S, S), (K, K.astype(float)))),
    Case("array_equal", (S, S, True), dtype=bool),
    *(Case("array_equiv", p, dtype=bool) for p in ((F, F), (F[:1].repeat(3, 0), F[0]), (F, F[:2]))),
    *(Case(n, (a,)) for n in ("iscomplex", "isreal") for a in (F, C, np.array([1 + 0j, 1j]))),
    *(Case("indices", (s,), k) for s in ((2, 3), (3,)) for k in ({}, {"sparse": True}, {"dtype": "float32"})),
    Case("ix_", (np.array([0, 2]), np.array([1, 3, 0]))),
    Case("ix_", (np.array([True, False]), np.array([1])), jit=False),
    Case("diag_indices", (3,)), Case("diag_indices", (2, 3)), Case("diag_indices_from", (F[:, :3],)),
    *(Case(n, (3, k, m)) for n in ("tril_indices", "triu_indices") for k in (-1, 0, 1) for m in (None, 5)),
    *(Case(n, (F, 1)) for n in ("tril_indices_from", "triu_indices_from")),
    *(Case("choose", (np.array([0, 2, 1]), [F[0, :3], F[1, :3], 5.0]), {"mode": m}, jit=m != "raise")
        for m in ("raise", "wrap", "clip")),
    Case("choose", (np.array([-1, 5, 1]), [F[0, :3], F[1, :3]]), {"mode": "wrap"}),
    Case("choose", (np.array([-1, 5, 1]), [F[0, :3], F[1, :3]]), {"mode": "clip"}),
    Case("choose", (K % 2, (F, -F)), {"mode": "clip"}),
    *(Case("packbits", (a,), k) for a in (B, K) for k in ({}, {"axis": 1}, {"axis": 0, "bitorder": "little"})),
    *(Case("unpackbits", (BYTES,), k)
        for k in ({}, {"axis": 0}, {"axis": 1, "count": 11}, {"count": -3, "bitorder": "little"},
                  {"axis": 1, "count": 20})),
    Case("apply_along_axis", (lambda v: v[:2] + v.sum(), 1, F)),
    Case("apply_along_axis", (lambda v, k: v.max() * k, 0, F, 3.0)),
    Case("apply_along_axis", (lambda v: v * v.sum(), 1, RNG.normal(size=(2, 3, 4)))),
    Case("apply_over_axes", (lambda a, axis: a.sum(axis), F, (0, 1))),
]  # fmt: skip


@by_name(CASES)
def test_against_numpy(cases, mode):
    check(cases, mode)


BOTH = pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])


def test_choose_with_fixed_arguments():
    compare(xnp.choose(xnp.array([1, 0]), xnp.array([[1.0, 2.0], [3.0, 4.0]])), np.array([3.0, 2.0]))
    compare(xnp.mask_indices(3, xnp.triu, 1), np.mask_indices(3, np.triu, 1))


@BOTH
def test_changed_copies(transform):
    a, mask = np.arange(6), np.array([True, False, True, True, False, True])
    want = a.copy()
    np.place(want, mask, [7, 8, 9])
    compare(
        transform(lambda x, m: xnp.place(x, m, xnp.array([7, 8, 9]), inplace=False))(xnp.array(a), xnp.array(mask)),
        want,
    )
    for mode in ("clip", "wrap"):
        want = a.copy()
        np.put(want, [1, -1, 8], [7, 8], mode=mode)
        compare(
            transform(lambda x, mode=mode: xnp.put(x, np.array([1, -1, 8]), xnp.array([7, 8]), mode, inplace=False))(
                xnp.array(a)
            ),
            want,
        )
    for axis in (0, 1):
        want = F.copy()
        index = np.argmax(F, axis, keepdims=True)
        np.put_along_axis(want, index, 9.0, axis)
        compare(
            transform(lambda x, i, axis=axis: xnp.put_along_axis(x, i, 9.0, axis, inplace=False))(
                xnp.array(F), xnp.array(index)
            ),
            want,
        )
    for name in ("place", "put", "put_along_axis"):
        with pytest.raises(ValueError, match="inplace=False"):
            getattr(xnp, name)(xnp.array(a), xnp.array([0]), 1, *([0] if name == "put_along_axis" else []))


def test_grids_by_slices():
    for grid, want in ((xnp.mgrid, np.mgrid), (xnp.ogrid, np.ogrid)):
        got, expected = grid[0:3, 1:2:4j], want[0:3, 1:2:4j]
        for g, w in zip(got, expected, strict=True):
            compare(g, w)
        compare(grid[1:9:3], want[1:9:3])
    x, y = np.arange(3.0), np.arange(3)
    for got, expected in [
        (xnp.r_[x, 7, 1:3], np.r_[x, 7, 1:3]), (xnp.r_[0:1:3j, x], np.r_[0:1:3j, x]), (xnp.c_[x, y], np.c_[x, y]),
        (xnp.c_[F, x], np.c_[F, x]), (xnp.r_["0,2", x, y], np.r_["0,2", x, y]),
        (xnp.r_["1,2,0", x, y], np.r_["1,2,0", x, y]), (xnp.r_["-1", F, F], np.r_["-1", F, F]),
        (xnp.c_[1:3], np.c_[1:3]),
    ]:  # fmt: skip
        compare(got, expected)
    assert xnp.s_[1:2, 3] == np.s_[1:2, 3] and xnp.index_exp[1] == (1,)


def test_questions_of_python():
    assert (
        xnp.iscomplexobj(C)
        and not xnp.iscomplexobj(F)
        and xnp.isrealobj(F)
        and xnp.isscalar(3)
        and xnp.isscalar(xnp.array(1.0))
        and not xnp.isscalar(F)
    )
    assert xnp.iterable([1]) and not xnp.iterable(1.0) and xnp.iterable(xnp.ones(2))
    assert (
        xnp.issubdtype(xnp.float32, xnp.floating)
        and xnp.isdtype(xnp.int8, "integral")
        and xnp.finfo("float32").eps == np.finfo("float32").eps
        and xnp.iinfo(xnp.int8).max == 127
    )
    assert (
        xnp.result_type(xnp.float32, 1.0) == np.float32
        and xnp.promote_types("int8", "uint8") == np.int16
        and xnp.can_cast("int8", "int16")
    )
    assert (
        xnp.dtype("float32") == np.float32
        and xnp.ndarray is xform.Array
        and isinstance(xnp.ones(1), xnp.ndarray)
        and xnp.newaxis is None
        and xnp.pi == np.pi
    )
    assert xnp.array_str(xnp.array([1.23456]), precision=2) == "[1.23]" and "Array([1.23]" in xnp.array_repr(
        xnp.array([1.23456]), precision=2
    )


def test_weak_choices():
    assert xnp.where(xnp.array([True]), xnp.array([1.5], "float32"), 0).dtype == np.float32
    assert xnp.where(True, 1, 2).weak_type and not xnp.where(B, F, 0.0).weak_type


def test_where_guards_derivatives():
    x = xnp.array([4.0, -1.0])
    safe = lambda x: xnp.where(x > 0, xnp.sqrt(xnp.where(x > 0, x, 1.0)), 0.0).sum()  # noqa: E731
    np.testing.assert_array_equal(np.asarray(xform.grad(safe)(x)), [0.25, 0])
    np.testing.assert_array_equal(
        np.asarray(xform.grad(lambda v: xnp.clip(v, 0, 3).sum())(xnp.array([-1.0, 1.0, 5.0]))), [0, 1, 0]
    )
    np.testing.assert_array_equal(
        np.asarray(xform.grad(lambda v: xnp.nan_to_num(v).sum())(xnp.array([1.0, np.nan, np.inf]))), [1, 0, 0]
    )


# ---- Functions of functions --------------------------------------------------------------------------------


@BOTH
def test_vectorize(transform):
    scalar = xnp.vectorize(lambda a, b: xnp.where(a > b, a - b, a + b))
    compare(transform(scalar)(xnp.array([1.0, 3.0, 5.0]), 2.0), np.array([3.0, 1.0, 3.0]))
    matvec = xnp.vectorize(lambda m, v: m @ v, signature="(n,m),(m)->(n)")
    m, v = RNG.normal(size=(5, 1, 2, 3)), RNG.normal(size=(4, 3))
    compare(transform(matvec)(xnp.array(m), xnp.array(v)), np.einsum("axij,yj->ayi", m, v))
    two = xnp.vectorize(lambda v: (v.sum(), v * 2), signature="(n)->(),(n)")
    got = transform(two)(xnp.array(F))
    compare(got[0], F.sum(1))
    compare(got[1], F * 2)
    power = xnp.vectorize(lambda x, n: x**n, excluded={1})
    compare(power(xnp.array(F), 2), F**2)
    named = xnp.vectorize(lambda x, *, how: x if how == "same" else -x, excluded={"how"})
    compare(named(xnp.array(F), how="other"), -F)
    assert named.__name__ == "<lambda>"


def test_vectorize_is_differentiable():
    f = xnp.vectorize(lambda v: xnp.sqrt(v @ v), signature="(n)->()")
    check_grads(f, (F,), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: xnp.vectorize(lambda x: x, signature="n->n"), ValueError, "is no signature"),
        (lambda: xnp.vectorize(lambda x: x, signature="(n),(n)->()")(F), TypeError, "has 2 arguments, the call 1"),
        (
            lambda: xnp.vectorize(lambda x, y: x @ y, signature="(n),(n)->()")(F, F[:, :2]),
            ValueError,
            "axis 'n' has lengths 4 and 2",
        ),
        (
            lambda: xnp.vectorize(lambda x: x, signature="(n)->()")(F),
            ValueError,
            r"a result must have the axes \(\), got shape \(4,\)",
        ),
        (
            lambda: xnp.vectorize(lambda x, y: x, signature="(),()->()")(F, F[:2]),
            ValueError,
            r"numpy\.vectorize: operands could not be broadcast",
        ),
        (lambda: xnp.vectorize(lambda x: x, excluded={1.5}), TypeError, "excluded"),
        (lambda: xnp.select([], []), ValueError, r"numpy\.select: select with an empty condition list"),
        (lambda: xnp.select([F], [F]), TypeError, "conditions must be boolean"),
        (
            lambda: xnp.piecewise(F, [F > 0], [1, 2, 3]),
            ValueError,
            r"numpy\.piecewise: with 1 condition\(s\), either 1 or 2 functions",
        ),
        (lambda: xnp.where(B, F), ValueError, "either both or neither of x and y"),
        (lambda: xnp.where(B, F, F[:2]), ValueError, r"numpy\.where: operands could not be broadcast"),
        (lambda: xnp.choose(np.array([5]), [F, F]), ValueError, "invalid entry in choice array: 5"),
        (lambda: xform.jit(lambda i: xnp.choose(i, [F, F]))(0), ValueError, "mode='clip'"),
        (
            lambda: xnp.packbits(F),
            TypeError,
            r"numpy\.packbits: expected an input array of integer or boolean data type, got f64\[3,4\]",
        ),
        (lambda: xnp.unpackbits(K), TypeError, "unsigned byte"),
        (lambda: xnp.diag_indices_from(F), ValueError, "axes of one length"),
        (lambda: xnp.ix_(F), ValueError, r"numpy\.ix_: arguments must be vectors"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- Ufuncs ------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    "name", ["add", "multiply", "maximum", "minimum", "logaddexp", "subtract", "logical_and", "hypot"]
)
def test_methods_of_ufuncs(name, transform):
    function, reference = getattr(xnp, name), getattr(np, name)
    for kwargs in ({}, {"axis": 1}, {"axis": None, "keepdims": True}) if name != "subtract" else ({}, {"axis": 1}):
        compare(transform(lambda x: function.reduce(x, **kwargs))(xnp.array(F)), reference.reduce(F, **kwargs))  # noqa: B023
    compare(transform(lambda x: function.accumulate(x, axis=1))(xnp.array(F)), reference.accumulate(F, axis=1))
    compare(transform(lambda x, y: function.outer(x, y))(xnp.array(F), xnp.array(F[0])), reference.outer(F, F[0]))
    compare(
        transform(lambda x: function.reduceat(x, np.array([0, 2, 1]), axis=1))(xnp.array(F)),
        reference.reduceat(F, [0, 2, 1], axis=1),
    )
    if name != "logical_and":
        want = F.copy()
        reference.at(want, ([0, 0, 1], [1, 1, 2]), np.array([1.0, 2.0, 3.0]))
        got = transform(
            lambda x: function.at(
                x, (np.array([0, 0, 1]), np.array([1, 1, 2])), np.array([1.0, 2.0, 3.0]), inplace=False
            )
        )(xnp.array(F))
        compare(got, want)
    assert isinstance(function, xnp.ufunc) and function.nin == 2 and not isinstance(xnp.sum, xnp.ufunc)
    with pytest.raises(NotImplementedError, match="inplace=False"):
        function.at(xnp.array(F), 0, 1.0)


@BOTH
def test_ufuncs_of_python_functions(transform):
    f = xnp.frompyfunc(lambda a, b: a * b + 1, 2, 1, identity=0)
    x = np.array([1.0, 2.0, 3.0])
    compare(transform(f)(xnp.array(x), 2.0), x * 2 + 1)
    compare(transform(f.accumulate)(xnp.array(x)), np.array([1.0, 3.0, 10.0]))
    compare(transform(f.outer)(xnp.array(x), xnp.array(x)), np.multiply.outer(x, x) + 1)
    compare(transform(lambda v: f.reduce(v, initial=1.0))(xnp.array(x)), np.float64(16.0))
    compare(transform(lambda v: f.at(v, np.array([0, 0]), 2.0, inplace=False))(xnp.array(x)), np.array([7.0, 2.0, 3.0]))
    negate = xnp.frompyfunc(lambda a: -a, 1, 1)
    compare(transform(lambda v: negate.at(v, 1, inplace=False))(xnp.array(x)), np.array([1.0, -2.0, 3.0]))
    assert f.nin == 2 and f.nout == 1 and f.identity == 0 and isinstance(f, xnp.ufunc)
    with pytest.raises(TypeError, match="takes 2 arguments, got 1"):
        f(1.0)
    with pytest.raises(ValueError, match="two arguments and one result"):
        negate.reduce(x)
