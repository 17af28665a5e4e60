"""Products that sum over axes, and Einstein's convention."""

import numpy as np
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import ALL, Call, Function, Wrong, arrays, on_lattice, shapes

A = np.ones((2, 3))
V = np.ones(3)
OF = {
    "b": ("bool",),
    "i": ("int8", "int64"),
    "u": ("uint8",),
    "f": ("float32", "float64"),
    "c": ("complex64", "complex128"),
}
KINDS = st.sampled_from(("f", "f", "c", "i", "b", "u", "mixed"))
LENGTHS = st.sampled_from((1, 2, 3, 0))


@st.composite
def pairs(draw, *shapes_):
    """Two arrays; their dtypes are of one kind or of any."""
    kind = draw(KINDS)
    return tuple(draw(arrays(shape=s, dtypes=OF.get(kind, ALL))) for s in shapes_)


@st.composite
def batches(draw):
    """Two shapes of leading axes that broadcast."""
    full = draw(shapes(0, 2, LENGTHS))
    return tuple(
        tuple(1 if draw(st.integers(0, 4)) == 0 else n for n in full[draw(st.integers(0, len(full))) :]) for _ in "ab"
    )


@st.composite
def matmuls(draw):
    m, n, k = (draw(LENGTHS) for _ in "mnk")
    a, b = draw(batches())
    left = draw(st.sampled_from(((n,), (*a, m, n))))
    right = draw(st.sampled_from(((n,), (*b, n, k))))
    return Call(draw(pairs(left, right)))


@st.composite
def dots(draw):
    n = draw(LENGTHS)
    left = draw(st.sampled_from(((), (n,), (*draw(shapes(0, 2, LENGTHS)), n))))
    right = draw(st.sampled_from(((), (n,), (*draw(shapes(0, 1, LENGTHS)), n, draw(LENGTHS)))))
    return Call(draw(pairs(left, right)))


@st.composite
def inners(draw):
    n = draw(LENGTHS)
    left, right = (draw(st.sampled_from(((), (*draw(shapes(0, 2, LENGTHS)), n)))) for _ in "ab")
    return Call(draw(pairs(left, right)))


@st.composite
def vdots(draw):
    shape = draw(shapes(0, 2, LENGTHS))
    return Call(draw(pairs(shape, draw(st.sampled_from((shape, (int(np.prod(shape, dtype=int)),)))))))


@st.composite
def batched(draw, left, right):
    """Core axes by letters: all of one letter are equally long."""
    lengths = {c: draw(LENGTHS) for c in "mn"}
    a, b = draw(batches())
    return Call(draw(pairs((*a, *(lengths[c] for c in left)), (*b, *(lengths[c] for c in right)))))


@st.composite
def outers(draw, most=2):
    return Call(draw(pairs(draw(shapes(0, most, LENGTHS)), draw(shapes(0, most, LENGTHS)))))


@st.composite
def vectors(draw):
    return Call(draw(pairs((draw(LENGTHS),), (draw(LENGTHS),))))


@st.composite
def tensordots(draw):
    shape = draw(shapes(0, 3, LENGTHS))
    n = draw(st.integers(0, len(shape)))
    rest = draw(shapes(0, 2, LENGTHS))
    if draw(st.booleans()):
        return Call((*draw(pairs(shape, (*shape[len(shape) - n :], *rest))), n), fixed=(2,))
    order = draw(st.permutations(range(len(shape))))
    first = [d - len(shape) if draw(st.booleans()) else d for d in order[:n]]
    second = draw(st.permutations(range(n + len(rest))))[:n]
    other = [0] * (n + len(rest))
    for d in range(n):
        other[second[d]] = shape[first[d]]
    left = iter(rest)
    other = [other[d] if d in second else next(left) for d in range(len(other))]
    return Call((*draw(pairs(shape, tuple(other))), (first, second)), fixed=(2,))


def cross_of_planes(x, y):
    """NumPy's, with the meaning that vectors of two components had before NumPy 2.5."""
    x3, y3 = (np.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, 3 - v.shape[-1])]) for v in (x, y))
    out = np.cross(x3, y3)
    return out[..., 2] if x.shape[-1] == y.shape[-1] == 2 else out


@st.composite
def crosses(draw, sizes=((3, 3),)):
    i, j = draw(st.sampled_from(sizes))
    a, b = draw(batches())
    kind = draw(st.sampled_from(("f", "f", "c", "i")))
    x, y = (draw(arrays(shape=(*s, n), dtypes=OF[kind])) for s, n in ((a, i), (b, j)))
    return Call((x, y))


def scaled(got, want, call):
    """Sums of products that cancel are as accurate as the largest of these; XLA may fuse them."""
    arrays = [x for x in call.args if isinstance(x, np.ndarray)]
    size = 1e-15 + float(np.prod([np.max(abs(x.astype(complex)), initial=0) for x in arrays]))
    for g, w in zip(got, want, strict=True):
        eps = np.finfo(g.dtype).eps if g.dtype.kind in "fc" else 0
        np.testing.assert_allclose(g, w, rtol=0, atol=16 * eps * size)


SUBSCRIPTS = (
    "i,i", "i,j", "i,j->ji", "ij,jk", "ij,jk->ki", "ij,kj->ik", "ii", "ii->i", "ij->ji", "ij->", "ij->j", "i->",
    "iji->j",
    "ij,ij", "ij,ij->ij", "bij,bjk->bik", "i...,i...", "...ij,...jk", "...i->...", "ij...,j->i...", "i,i,i", "ij,jk,kl",
    "ij,jk,ki", "ij,i,j", "a,b,c->cab", ",", "i,->i", "ij,", "ab,cd,bd->ac", "ijk,ijk,ik->k", "i,ij,jk,kl,l",
)  # fmt: skip


@st.composite
def einsums(draw):
    text = draw(st.sampled_from(SUBSCRIPTS))
    kind = draw(st.sampled_from(("f", "c", "i")))
    lengths = {c: draw(LENGTHS) for c in sorted(set(text) - set(",->."))}
    dots = draw(shapes(0, 2, LENGTHS))
    out = []
    for labels in text.partition("->")[0].split(","):
        shape = []
        for part in labels.replace("...", "."):
            shape += dots if part == "." else [lengths[part]]
        if "." not in labels:  # some of the lengths are 1, and broadcast
            shared = [labels.count(c) == 1 and text.partition("->")[0].count(c) > 1 for c in labels]
            shape = [1 if n and s and not draw(st.integers(0, 9)) else n for n, s in zip(shape, shared, strict=True)]
        out.append(draw(arrays(shape=tuple(shape), dtypes=OF[kind])))
    return Call((text, *out), {"optimize": draw(st.sampled_from((False, True, "greedy", "optimal")))}, fixed=(0,))


def mismatch(name, module="", a=A, b=A, alone=""):
    """Lengths that differ where they are summed over."""
    function = lambda np: getattr(np.linalg if module else np, name)  # noqa: E731
    shape = lambda x: r"f64\[" + ",".join(map(str, x.shape)) + r"\]"  # noqa: E731
    return Wrong(lambda np: function(np)(a, b), ValueError, rf"{name}.*{shape(a)}.*{shape(b)}", alone)


FUNCTIONS = [
    Function(
        "matmul",
        matmuls(),
        reference=on_lattice(np.matmul),
        compare=scaled,
        errors=[
            mismatch("matmul"),
            mismatch("matmul", b=np.ones(2)),
            mismatch("matmul", b=np.ones((4, 3, 2)), a=np.ones((3, 2, 3))),
            Wrong(lambda np: np.matmul(2.0, A), ValueError, r"matmul.*enough dimensions.*f64\[\].*f64\[2,3\]"),
        ],
    ),
    Function("linalg.matmul", matmuls(), reference=on_lattice(np.matmul), compare=scaled),
    Function(
        "dot",
        dots(),
        reference=on_lattice(np.dot),
        compare=scaled,
        errors=[mismatch("dot"), mismatch("dot", b=np.ones(2))],
    ),
    Function(
        "inner", inners(), reference=on_lattice(np.inner), compare=scaled, errors=[mismatch("inner", b=np.ones((3, 2)))]
    ),
    Function(
        "vdot",
        vdots(),
        reference=on_lattice(np.vdot),
        compare=scaled,
        errors=[mismatch("vdot", a=np.ones(6), b=np.ones(4))],
    ),
    Function(
        "vecdot",
        batched("n", "n"),
        reference=on_lattice(np.vecdot),
        compare=scaled,
        errors=[
            mismatch("vecdot", b=np.ones(2)),
            Wrong(lambda np: np.vecdot(A, A, axis=3), AxisError, r"vecdot.*axis 3 is out of bounds.*f64\[2,3\]"),
            Wrong(lambda np: np.vecdot(2.0, A), ValueError, r"vecdot.*enough dimensions.*f64\[2,3\]"),
        ],
    ),
    Function("linalg.vecdot", batched("n", "n"), reference=on_lattice(np.vecdot), compare=scaled),
    Function(
        "matvec",
        batched("mn", "n"),
        reference=on_lattice(np.matvec),
        compare=scaled,
        errors=[
            mismatch("matvec", b=np.ones(2)),
            Wrong(lambda np: np.matvec(V, V), ValueError, r"matvec.*enough dimensions.*f64\[3\]"),
        ],
    ),
    Function(
        "vecmat",
        batched("m", "mn"),
        reference=on_lattice(np.vecmat),
        compare=scaled,
        errors=[
            mismatch("vecmat", a=V),
            Wrong(lambda np: np.vecmat(V, V), ValueError, r"vecmat.*enough dimensions.*f64\[3\]"),
        ],
    ),
    Function(
        "outer",
        outers(),
        reference=on_lattice(np.outer),
        errors=[
            Wrong(
                lambda np: np.outer(V, V, out=np.zeros((3, 3))), NotImplementedError, r"outer.*out", alone="immutable"
            ),
        ],
    ),
    Function(
        "linalg.outer",
        vectors(),
        reference=on_lattice(np.linalg.outer),
        errors=[
            Wrong(
                lambda np: np.linalg.outer(A, V), ValueError, r"linalg\.outer.*one-dimensional.*f64\[2,3\].*f64\[3\]"
            ),
        ],
    ),
    Function(
        "tensordot",
        tensordots(),
        reference=on_lattice(np.tensordot),
        compare=scaled,
        errors=[
            Wrong(
                lambda np: np.tensordot(A, A.T),
                ValueError,
                r"tensordot.*shape-mismatch for sum.*f64\[2,3\].*f64\[3,2\]",
            ),
            Wrong(
                lambda np: np.tensordot(A, A, ((0,), (3,))),
                IndexError,
                r"tensordot.*axis 3 is out of bounds.*f64\[2,3\]",
            ),
            Wrong(lambda np: np.tensordot(A, A, ((0, 1), (0,))), ValueError, r"tensordot.*shape-mismatch for sum"),
            Wrong(
                lambda np: np.tensordot(A, A, 3), ValueError, r"tensordot.*axes.*3.*f64\[2,3\]", alone="a tuple index"
            ),
            Wrong(lambda np: np.tensordot(A, A, 1.5), TypeError, r"tensordot.*axes.*1\.5"),
        ],
    ),
    Function(
        "linalg.tensordot",
        tensordots().map(lambda c: Call(c.args[:2], {"axes": c.args[2]})),
        reference=on_lattice(np.tensordot),
        compare=scaled,
    ),
    Function("kron", outers(), reference=on_lattice(np.kron)),
    Function(
        "cross",
        crosses(((3, 3), (2, 2), (2, 3), (3, 2))),
        reference=on_lattice(cross_of_planes),
        compare=scaled,
        errors=[
            Wrong(
                lambda np: np.cross(np.ones(4), V),
                ValueError,
                r"cross.*incompatible dimensions.*2 or 3.*f64\[4\].*f64\[3\]",
            ),
            Wrong(lambda np: np.cross(A, A, axis=3), AxisError, r"cross.*axis 3 is out of bounds.*f64\[2,3\]"),
            Wrong(lambda np: np.cross(A, np.ones((4, 3))), ValueError, r"cross.*f64\[2.*f64\[4|cross.*broadcast"),
        ],
    ),
    Function(
        "linalg.cross",
        crosses(),
        reference=on_lattice(np.linalg.cross),
        compare=scaled,
        errors=[
            Wrong(
                lambda np: np.linalg.cross(np.ones(2), V),
                ValueError,
                r"linalg\.cross.*arrays of\) 3-dimensional vectors.*f64\[2\].*f64\[3\]",
            ),
            Wrong(
                lambda np: np.linalg.cross(A, A, axis=3),
                AxisError,
                r"linalg\.cross.*axis 3 is out of bounds.*f64\[2,3\]",
            ),
        ],
    ),
    Function(
        "einsum",
        einsums(),
        reference=on_lattice(np.einsum),
        compare=scaled,
        errors=[
            Wrong(lambda np: np.einsum("ij,jk", A, A), ValueError, r"einsum.*'j'.*3.*2"),
            Wrong(lambda np: np.einsum("ijk", A), ValueError, r"einsum.*'ijk'.*\(2, 3\)"),
            Wrong(lambda np: np.einsum("ij", A, A), ValueError, r"einsum.*1 operand.*2"),
            Wrong(lambda np: np.einsum("ij->k", A), ValueError, r"einsum.*output.*'k'|einsum.*'ij->k'"),
            Wrong(lambda np: np.einsum("ij->ii", A), ValueError, r"einsum.*'ij->ii'"),
            Wrong(lambda np: np.einsum("i!->i", A), ValueError, r"einsum.*'i!->i'"),
            Wrong(
                lambda np: np.einsum("ij->ij", A, out=np.zeros((2, 3))),
                NotImplementedError,
                r"einsum.*out",
                alone="immutable",
            ),
        ],
    ),
]

TESTED_ELSEWHERE = {"einsum_path": "test_numpy_products.py: a report"}
