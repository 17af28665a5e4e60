"""Products against NumPy: all ranks, dtypes, broadcasting, Einstein's convention."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.numpy_cases import Case, by_name, check, compare
from xform.test_util import check_grads

RNG = np.random.default_rng(0)


def r(*shape):
    return RNG.normal(size=shape)


A, B, V, W = r(2, 3), r(3, 4), r(3), r(4)
C = r(2, 3) + 1j * r(2, 3)
K = RNG.integers(-5, 6, (2, 3))
T, U = r(5, 2, 3), r(5, 3, 4)
S = np.float64(2.5)

EINSUMS = [
    ("ij,jk->ik", A, B), ("ij,jk", A, B), ("ij->ji", A), ("ij", A), ("ii", r(3, 3)), ("ii->i", r(3, 3)), ("ij->", A),
    ("ij->j", A), ("i,j", V, W), ("i,i", V, V),
    ("ij,ij->ij", A, A), ("ij,ij->i", A, A), ("ij,kj->ik", A, A), ("bij,bjk->bik", T, U), ("bij,bjk->bki", T, U),
    ("...ij,...jk->...ik", T, U), ("...ij,jk", T, B),
    ("i...,i...->...", T, r(5, 1, 3)), ("ij,jk,kl->il", A, B, r(4, 2)), ("ij,jk,kl,lm->im", A, B, r(4, 2), r(2, 3)),
    ("a,ab,abc->abc", r(2), r(2, 3), r(2, 3, 4)),
    ("ijj->i", r(2, 3, 3)), ("iijj->ij", r(2, 2, 3, 3)), ("ij,i->j", A, r(2)), ("ij,,k->ijk", A, S, W), (",", S, S),
    ("ik,kj->ij", A, r(1, 4)), ("ij, jk -> ki", A, B),
    ("abc,cd,abe->bde", r(2, 3, 4), r(4, 5), r(2, 3, 6)), ("i->", V), ("ab,ab,c->", r(2, 3), r(2, 3), W),
    ("ii,i->i", r(3, 3), V), ("z,aZ", V, A),
]  # fmt: skip

CASES = [
    *(Case(n, p) for n in ("dot", "matmul", "inner", "tensordot", "vdot")
        for p in ((V, V), (C[0], V), (K[0], V), (K[0], K[1]))[: 4 if n != "tensordot" else 0]),
    *(Case("dot", p)
        for p in ((A, B), (A, V), (V, B), (S, A), (T, V), (T, r(6, 3, 2)), (C, B), (K, K.T), (A[:0], B),
                  (r(2, 0), r(0, 3)))),
    *(Case("matmul", p)
        for p in ((A, B), (A, V), (V, B), (T, U), (T, B), (A, U), (T[:1], U), (T, U[:1]), (r(6, 1, 2, 3), U),
                  (V, U), (T, V), (C, B), (K, K.T), (A > 0, (A > 0).T))),
    *(Case("inner", p) for p in ((A, A), (T, A), (S, A), (V, A))),
    *(Case("outer", p) for p in ((V, W), (A, V), (S, V), (K, V))),
    Case("tensordot", (T, r(3, 4), 1)),
    Case("tensordot", (T, r(2, 3, 4))), Case("tensordot", (V, W, 0)), Case("tensordot", (T, U, ((0, 2), (0, 1)))),
    Case("tensordot", (T, U, (0, 0))), Case("tensordot", (A, A, ([1, 0], [1, 0]))),
    Case("vdot", (C, C)), Case("vdot", (A, A)),
    *(Case("vecdot", p) for p in ((A, A), (C, C), (T, V), (V, V))), Case("vecdot", (A, r(2, 1)), {"axis": 0}),
    *(Case("matvec", p) for p in ((A, V), (T, V), (T, r(5, 3)), (A, r(6, 3)), (C, V))),
    *(Case("vecmat", p) for p in ((V, B), (r(5, 3), U), (C[0], B))),
    *(Case("kron", p) for p in ((A, B), (V, W), (S, A), (T, A), (K, V))),
    *(Case("cross", p) for p in ((V, r(3)), (r(4, 3), V), (r(4, 3), r(4, 3)))),
    Case("cross", (r(3, 4), r(4, 3)), {"axisa": 0, "axisc": 0}), Case("cross", (r(3, 4), r(3, 4)), {"axis": 0}),
    *(Case("einsum", e, fixed=(0,)) for e in EINSUMS),
    Case("einsum", (A, [0, 1], B, [1, 2], [0, 2]), fixed=(1, 3, 4)), Case("einsum", (A, [0, 1]), fixed=(1,)),
    Case("einsum", (T, [Ellipsis, 0], V, [0]), fixed=(1, 3)),
    *(Case("einsum", ("ij,jk,kl->il", A, B, r(4, 2)), {"optimize": o}, fixed=(0,))
        for o in (False, True, "greedy", "optimal")),
]  # fmt: skip


@by_name(CASES)
def test_against_numpy(cases, mode):
    check(cases, mode)


def test_operators_and_methods():
    a, b = xnp.array(A), xnp.array(B)
    compare(a @ b, A @ B)
    compare(A @ b, A @ B)
    compare(a @ B, A @ B)
    compare(a.dot(b), A @ B)


def test_vectors_of_the_plane():
    a, b = r(2), r(3)
    np.testing.assert_allclose(np.asarray(xnp.cross(a, a[::-1])), a[0] * a[0] - a[1] * a[1])
    np.testing.assert_allclose(np.asarray(xnp.cross(a, b)), np.cross(np.append(a, 0), b), rtol=1e-14)


def test_given_path():
    path = xnp.einsum_path("ij,jk,kl->il", A, B, r(4, 2), optimize="optimal")[0]
    c = r(4, 2)
    compare(xnp.einsum("ij,jk,kl->il", A, B, c, optimize=path[1:]), A @ B @ c)
    compare(xnp.einsum("ij,jk,kl->il", A, B, c, optimize=[(0, 1, 2)]), A @ B @ c)


def test_einsum_of_four_uses_matrix_products_only():
    jaxpr = xform.make_jaxpr(lambda a, b, c: xnp.einsum("ij,jk,kl->il", a, b, c))(A, B, r(4, 2))
    assert [e.primitive.name for e in jaxpr.eqns if e.primitive.name != "transpose"] == ["dot_general"] * 2
    matmul = xform.make_jaxpr(xnp.matmul)(T, r(1, 3, 4))
    assert "broadcast_in_dim" not in str(matmul)


def test_element_types():
    x = xnp.ones((2, 2), "int8")
    assert (x @ x).dtype == np.int8 and xnp.matmul(x, x, preferred_element_type="int32").dtype == np.int32
    assert xnp.einsum("ij,jk", x, x, preferred_element_type="int16").dtype == np.int16
    assert xnp.dot(xnp.ones(2, "float16"), xnp.ones(2, "bfloat16")).dtype == np.float32
    assert (xnp.ones((2, 2), bool) @ xnp.ones((2, 2), bool)).dtype == bool
    y = xnp.dot(xnp.ones(2, "bfloat16"), xnp.ones(2, "bfloat16"), precision="highest")
    assert y.dtype == "bfloat16" and float(y) == 2


def test_own_product():
    calls = []

    def product(a, b, dimension_numbers, precision=None, preferred_element_type=None):
        calls.append(dimension_numbers)
        return xform.lax.dot_general(a, b, dimension_numbers)

    compare(xnp.einsum("ij,jk->ik", xnp.array(A), B, _dot_general=product), A @ B)
    assert calls == [(((1,), (0,)), ((), ()))]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (xnp.dot, (A, B)), (xnp.matmul, (T, U)), (xnp.matmul, (T[:1], B)), (xnp.inner, (A, A)), (xnp.kron, (A, V)),
        (lambda a, b: xnp.cross(a, b), (V, r(3))),
        (lambda a, b: xnp.einsum("...ij,kj->...ki", a, b), (T, r(4, 3))),
        (lambda a: xnp.einsum("iij->j", a), (r(2, 2, 3),)), (xnp.outer, (V, W)), (xnp.vecdot, (A, A)),
    ],
)  # fmt: skip
def test_derivatives(function, args):
    check_grads(function, args, order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize("in_axes", [(0, 0), (1, None), (None, -1), (2, 1)])
def test_vmap(in_axes):
    a, b = r(2, 3), r(3, 4)
    x = a if in_axes[0] is None else np.stack([a, 2 * a], in_axes[0])
    y = b if in_axes[1] is None else np.stack([b, b + 1], in_axes[1])
    for f in (xnp.matmul, xnp.dot, lambda p, q: xnp.einsum("ij,jk->ki", p, q), lambda p, q: xnp.tensordot(p, q, 1)):
        got = xform.vmap(f, in_axes)(x, y)
        rows = [
            (
                x if in_axes[0] is None else np.take(x, i, in_axes[0]),
                y if in_axes[1] is None else np.take(y, i, in_axes[1]),
            )
            for i in range(2)
        ]
        np.testing.assert_allclose(np.asarray(got), np.stack([np.asarray(f(*row)) for row in rows]), rtol=1e-13)


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: x @ x, r"numpy\.matmul: shapes not aligned: 3 \(axis 1 of f64\[2,3\]\) != 2 \(axis 0 of f64\[2,3\]"),
        (lambda x: xnp.dot(x, x), r"numpy\.dot: shapes not aligned"),
        (lambda x: x @ 2.0, r"numpy\.matmul: an operand does not have enough dimensions"),
        (
            lambda x: xnp.matmul(xnp.ones((2, 3, 3)), xnp.ones((4, 3, 3))),
            r"numpy\.matmul: can't broadcast the leading axes",
        ),
        (lambda x: xnp.inner(x, x[:, :2]), r"numpy\.inner: shapes not aligned"),
        (lambda x: xnp.tensordot(x, x, 3), r"numpy\.tensordot: axes=3 is more than"),
        (lambda x: xnp.tensordot(x, x, ((0,), (1,))), r"numpy\.tensordot: shape-mismatch for sum"),
        (lambda x: xnp.cross(x, x[:, :1]), r"numpy\.cross: incompatible dimensions"),
        (lambda x: xnp.einsum("ij,jk", x, x), r"numpy\.einsum: label 'j' of 'ij,jk' has lengths 3 and 2"),
        (lambda x: xnp.einsum("ijk", x), r"numpy\.einsum: 'ijk' of 'ijk' doesn't fit an operand of shape \(2, 3\)"),
        (lambda x: xnp.einsum("ij,jk", x), r"numpy\.einsum: 'ij,jk' has 2 operands, the call 1"),
        (lambda x: xnp.einsum("ij->k", x), r"numpy\.einsum: 'ij->k' is no valid pattern"),
        (lambda x: xnp.einsum("ij->ii", x), "is no valid pattern"),
        (lambda x: xnp.dot(x, x.T, precision="sloppy"), "precision must be"),
    ],
)
def test_errors(call, message, transform):
    with pytest.raises(ValueError, match=message):
        transform(call)(xnp.ones((2, 3)))
