"""Equations, decompositions and norms."""

import numpy as np
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import ALL, COMPLEX, INEXACT, Call, Function, Wrong, arrays, axis, shapes

A = np.ones((2, 3))
S = np.array([[2.0, 1.0], [1.0, 3.0]])
V = np.ones(2)
DTYPES = (*INEXACT, "int64", "int8", "bool")
SIZES = st.sampled_from((2, 1, 3, 0))
SQUARE = r"square.*f64\[2,3\]"


@st.composite
def batch(draw):
    return draw(st.sampled_from(((), (), (2,), (1, 2), (0,))))


@st.composite
def squares(draw, dtypes=INEXACT, regular=True, hermitian=False, positive=False, lead=None):
    """Matrices (..., n, n); by default far from singular."""
    n = draw(SIZES)
    x = draw(arrays(shape=(*(draw(batch()) if lead is None else lead), n, n), dtypes=dtypes, low=-1, high=1))
    if x.dtype.kind == "b":
        return x | np.swapaxes(x, -1, -2) if hermitian else x
    if hermitian or positive:
        x = (
            (x + np.swapaxes(x, -1, -2).conj()) / x.dtype.type(2)
            if x.dtype.kind in "fc"
            else x + np.swapaxes(x, -1, -2)
        )
    if positive or regular:
        x = x + x.dtype.type(2 * n + 1) * np.eye(n, dtype=x.dtype)
    return x


@st.composite
def matrices(draw, dtypes=INEXACT, least=0, lead=None):
    shape = (*(draw(batch()) if lead is None else lead), *(draw(st.integers(least, 4)) for _ in "mn"))
    return draw(arrays(shape=shape, dtypes=dtypes, low=-2, high=2))


def of(strategy, **options):
    """Calls with one array, and drawn keyword arguments."""
    return st.tuples(strategy, st.fixed_dictionaries(options)).map(lambda a: Call(a[:1], a[1]))


@st.composite
def systems(draw):
    a = draw(squares(dtypes=("float32", "float64", "complex128")))
    n = a.shape[-1]
    columns = (n,) if draw(st.booleans()) else (*a.shape[:-2], n, draw(st.integers(0, 3)))
    return Call((a, draw(arrays(shape=columns, dtypes=(a.dtype.name,)))))


@st.composite
def least_squares(draw):
    a = draw(matrices(dtypes=("float64", "complex128"), least=1, lead=()))
    m = a.shape[0]
    return Call((a, draw(arrays(shape=draw(st.sampled_from(((m,), (m, 2)))), dtypes=(a.dtype.name,)))))


def lstsq(a, b):
    """Residuals of any system, as JAX has them, and everything else of NumPy."""
    x, _, rank, s = np.linalg.lstsq(a, b)
    return x, np.atleast_1d((abs(b - a @ x) ** 2).sum(0)), np.int64(rank), s


def close(got, want, tolerance=1e-9):
    size = max(1.0, float(np.max(np.abs(want), initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * size)


def eps_of(x):
    return 1e3 * float(np.finfo(np.asarray(x).dtype).eps)


def of_lstsq(got, want, call):
    for g, w in zip(got, want, strict=True):
        close(g, w, 1e-11)


def times(*factors):
    out = np.asarray(factors[0])
    for f in factors[1:]:
        out = out @ np.asarray(f)
    return out


def adjoint(x):
    return np.swapaxes(np.asarray(x), -1, -2).conj()


def wide(x):
    return x.astype(float) if x.dtype.kind in "biu" else x


def same_product(order):
    """Factors may differ by phases and signs: their product is the matrix, and they are orthonormal."""

    def compare(got, want, call):
        a = wide(call.args[0])
        close(order(got), a, eps_of(got[0]))
        q = np.asarray(got[0])
        close(
            times(adjoint(q), q),
            np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])),
            eps_of(q),
        )

    return compare


def of_svd(got, want, call):
    u, s, vh = map(np.asarray, got)
    close(s, want[1], eps_of(s))
    k = s.shape[-1]
    close(times(u[..., :k] * s[..., None, :], vh[..., :k, :]), wide(call.args[0]), eps_of(s))
    for x in (times(adjoint(u), u), times(vh, adjoint(vh))):
        close(x, np.broadcast_to(np.eye(x.shape[-1]), x.shape), eps_of(s))


def of_eigh(got, want, call):
    w, v = map(np.asarray, got)
    close(w, want[0], eps_of(w))
    close(times(v * w[..., None, :], adjoint(v)), wide(call.args[0]), eps_of(w))


def of_eig(got, want, call):
    w, v = map(np.asarray, got)
    close(wide(call.args[0]).astype(w.dtype) @ v, v * w[..., None, :], 10 * eps_of(w))
    close(np.linalg.norm(v, axis=-2), 1.0, eps_of(w)) if v.size else None


def any_order(got, want, call):
    got, want = (np.asarray(x[0]) for x in (got, want))
    for g, w in zip(
        got.reshape(-1, got.shape[-1]) if got.size else (),
        want.reshape(-1, want.shape[-1]) if want.size else (),
        strict=True,
    ):
        left = list(w)
        for value in g:
            nearest = min(left, key=lambda z: abs(z - value))
            assert abs(nearest - value) <= 1e-2 * max(1, abs(w).max()), (g, w)
            left.remove(nearest)


@st.composite
def norms(draw):
    x = draw(arrays(shape=shapes(0, 3, st.integers(1, 4)), dtypes=ALL))
    kwargs = {"keepdims": draw(st.booleans())}
    kind = draw(st.sampled_from(("all", "vector", "matrix")))
    if kind == "vector" and x.ndim:
        kwargs |= {
            "axis": draw(axis(x.ndim)),
            "ord": draw(st.sampled_from((None, 0, 1, 2, 3, 0.5, -1, np.inf, -np.inf))),
        }
    if kind == "matrix" and x.ndim > 1:
        kwargs["axis"] = tuple(draw(st.permutations(range(x.ndim)))[:2])
        kwargs["ord"] = draw(st.sampled_from((None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)))
    return Call((x,), kwargs)


@st.composite
def chains(draw):
    lengths = draw(st.lists(st.integers(1, 4), min_size=3, max_size=5))
    shapes_ = [[lengths[i], lengths[i + 1]] for i in range(len(lengths) - 1)]
    if draw(st.booleans()):
        shapes_[0] = shapes_[0][1:]
    if draw(st.booleans()):
        shapes_[-1] = shapes_[-1][:1]
    dtype = (draw(st.sampled_from(("float64", "complex128", "float32"))),)
    return Call(([draw(arrays(shape=tuple(s), dtypes=dtype)) for s in shapes_],))


@st.composite
def tensors(draw):
    """A tensor that is a regular matrix in other axes."""
    m, n = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    a = draw(arrays(shape=(m * n, m * n), dtypes=("float64",), low=-1, high=1)) + 5 * np.eye(m * n)
    return a, draw(st.sampled_from(((m, n), (m * n,), (n, m)))), draw(st.sampled_from(((m, n), (m * n,))))


@st.composite
def tensorsolves(draw):
    a, rows, columns = draw(tensors())
    return Call((a.reshape(rows + columns), draw(arrays(shape=rows, dtypes=("float64",)))))


@st.composite
def tensorinvs(draw):
    a, rows, columns = draw(tensors())
    return Call((a.reshape(rows + columns),), {"ind": len(rows)})


def square(name, *args):
    function = lambda np: getattr(np.linalg, name)  # noqa: E731
    return [
        Wrong(lambda np: function(np)(A, *args), np.linalg.LinAlgError, rf"linalg\.{name}.*{SQUARE}"),
        Wrong(
            lambda np: function(np)(V, *args),
            np.linalg.LinAlgError,
            rf"linalg\.{name}.*at least two-dimensional.*f64\[2\]",
        ),
    ]


def of_matrices(name):
    function = lambda np: getattr(np.linalg, name)  # noqa: E731
    return [
        Wrong(
            lambda np: function(np)(V), np.linalg.LinAlgError, rf"linalg\.{name}.*at least two-dimensional.*f64\[2\]"
        ),
        Wrong(
            lambda np: function(np)(np.asarray(S).astype("float16")),
            TypeError,
            rf"linalg\.{name}.*f16\[2,2\]|linalg\.{name}.*float16",
        ),
    ]


LOOSE = {"tolerance": 2000, "grad_tolerance": 1e-5}
FUNCTIONS = [
    Function(
        "linalg.solve",
        systems(),
        **LOOSE,
        errors=[
            *square("solve", V),
            Wrong(lambda np: np.linalg.solve(S, np.ones(3)), ValueError, r"linalg\.solve.*f64\[2,2\].*f64\[3\]"),
            Wrong(lambda np: np.linalg.solve(S, np.ones((3, 2))), ValueError, r"linalg\.solve.*f64\[2,2\].*f64\[3,2\]"),
        ],
    ),
    Function("linalg.inv", of(squares()), **LOOSE, errors=square("inv")),
    Function(
        "linalg.pinv", of(matrices(), hermitian=st.just(False)), **LOOSE, gradient=False, errors=of_matrices("pinv")
    ),
    Function(
        "linalg.lstsq",
        least_squares(),
        reference=lstsq,
        compare=of_lstsq,
        **LOOSE,
        gradient=False,
        errors=[
            Wrong(lambda np: np.linalg.lstsq(V, V), np.linalg.LinAlgError, r"linalg\.lstsq.*f64\[2\]"),
            Wrong(
                lambda np: np.linalg.lstsq(A, np.ones(3)), np.linalg.LinAlgError, r"linalg\.lstsq.*f64\[2,3\].*f64\[3\]"
            ),
        ],
    ),
    Function(
        "linalg.tensorsolve",
        tensorsolves(),
        **LOOSE,
        errors=[
            Wrong(
                lambda np: np.linalg.tensorsolve(A, V),
                np.linalg.LinAlgError,
                r"linalg\.tensorsolve.*f64\[2,3\].*f64\[2\]",
            ),
        ],
    ),
    Function(
        "linalg.tensorinv",
        tensorinvs(),
        **LOOSE,
        errors=[
            Wrong(lambda np: np.linalg.tensorinv(S, 0), ValueError, r"linalg\.tensorinv.*ind.*0"),
            Wrong(lambda np: np.linalg.tensorinv(A, 1), np.linalg.LinAlgError, r"linalg\.tensorinv.*f64\[2,3\]"),
        ],
    ),
    Function("linalg.det", of(squares(DTYPES)), **LOOSE, errors=square("det")),
    Function("linalg.slogdet", of(squares(DTYPES)), **LOOSE, errors=square("slogdet")),
    Function(
        "linalg.cholesky",
        of(squares(positive=True), upper=st.booleans()),
        **LOOSE,
        gradient=False,
        errors=square("cholesky"),
    ),
    Function(
        "linalg.qr",
        of(matrices(), mode=st.sampled_from(("reduced", "complete"))),
        gradient=False,
        compare=same_product(lambda qr: times(qr[0], qr[1])),
        errors=[
            *of_matrices("qr"),
            Wrong(lambda np: np.linalg.qr(A, "x"), ValueError, r"linalg\.qr.*[uU]nrecognized mode 'x'"),
        ],
    ),
    Function(
        "linalg.svd",
        of(matrices(DTYPES), full_matrices=st.booleans()),
        gradient=False,
        compare=of_svd,
        errors=of_matrices("svd"),
    ),
    Function("linalg.svd:values", of(matrices(DTYPES, 1), compute_uv=st.just(False)), **LOOSE, gradient=False),
    Function("linalg.svdvals", of(matrices(DTYPES, 1)), **LOOSE, gradient=False, errors=of_matrices("svdvals")),
    Function(
        "linalg.eigh",
        of(squares(DTYPES, hermitian=True)),
        gradient=False,
        compare=of_eigh,
        errors=[
            *square("eigh"),
            Wrong(lambda np: np.linalg.eigh(S, "X"), ValueError, r"linalg\.eigh.*UPLO.*'L' or 'U'.*'X'"),
        ],
    ),
    Function(
        "linalg.eigvalsh",
        of(squares(DTYPES, hermitian=True), UPLO=st.sampled_from("LU")),
        **LOOSE,
        gradient=False,
        errors=[
            *square("eigvalsh"),
            Wrong(lambda np: np.linalg.eigvalsh(S, "X"), ValueError, r"linalg\.eigvalsh.*UPLO.*'X'"),
        ],
    ),
    Function("linalg.eig", of(squares((*COMPLEX,))), gradient=False, compare=of_eig, errors=square("eig")),
    Function("linalg.eigvals", of(squares((*COMPLEX,))), gradient=False, compare=any_order, errors=square("eigvals")),
    Function(
        "linalg.matrix_power",
        of(squares(("float64", "complex128", "int64"), regular=False), n=st.integers(0, 5)),
        **LOOSE,
        errors=[
            *square("matrix_power", 2),
            Wrong(lambda np: np.linalg.matrix_power(S, 1.5), TypeError, r"linalg\.matrix_power.*1\.5"),
        ],
    ),
    Function("linalg.matrix_power:negative", of(squares(("float64", "complex128")), n=st.integers(-3, -1)), **LOOSE),
    Function(
        "linalg.multi_dot",
        chains(),
        **LOOSE,
        errors=[
            Wrong(lambda np: np.linalg.multi_dot([A]), ValueError, r"linalg\.multi_dot.*at least two arrays.*1"),
            Wrong(
                lambda np: np.linalg.multi_dot([A, A]),
                ValueError,
                r"linalg\.multi_dot.*f64\[2,3\].*f64\[2,3\]|multi_dot.*lengths 3 and 2",
            ),
            Wrong(
                lambda np: np.linalg.multi_dot([A, V, A]),
                np.linalg.LinAlgError,
                r"linalg\.multi_dot.*f64\[2,3\], f64\[2\], f64\[2,3\]",
            ),
        ],
    ),
    Function(
        "linalg.norm",
        norms(),
        **LOOSE,
        gradient=False,
        errors=[
            Wrong(lambda np: np.linalg.norm(A, "x"), ValueError, r"linalg\.norm.*[iI]nvalid norm order 'x'.*matrices"),
            Wrong(
                lambda np: np.linalg.norm(V, "fro"), ValueError, r"linalg\.norm.*[iI]nvalid norm order 'fro'.*vectors"
            ),
            Wrong(
                lambda np: np.linalg.norm(np.ones((2, 3, 4)), 2),
                ValueError,
                r"linalg\.norm.*[iI]mproper number of dimensions.*f64\[2,3,4\]",
            ),
            Wrong(
                lambda np: np.linalg.norm(A, axis=3), AxisError, r"linalg\.norm.*axis 3 is out of bounds.*f64\[2,3\]"
            ),
            Wrong(
                lambda np: np.linalg.norm(A, axis=(0, 0)), ValueError, r"linalg\.norm.*(repeated|[dD]uplicate).*axis"
            ),
        ],
    ),
    Function("linalg.norm:gradient", of(arrays(shape=shapes(1, 2, st.integers(1, 4)), dtypes=("float64",)))),
    Function(
        "linalg.vector_norm",
        of(
            arrays(dtypes=DTYPES, shape=shapes(1, 3, st.integers(1, 3))),
            keepdims=st.booleans(),
            ord=st.sampled_from((0, 1, 2, 3, np.inf, -np.inf)),
        ),
        **LOOSE,
        gradient=False,
    ),
    Function(
        "linalg.matrix_norm",
        of(
            matrices(DTYPES, 1),
            keepdims=st.booleans(),
            ord=st.sampled_from(("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
        ),
        **LOOSE,
        gradient=False,
        errors=of_matrices("matrix_norm")[:0],
    ),
    Function(
        "linalg.cond",
        of(squares(), p=st.sampled_from((None, 2, -2, 1, -1, np.inf, "fro"))).filter(lambda c: c.args[0].size),
        **LOOSE,
        gradient=False,
        errors=[
            Wrong(lambda np: np.linalg.cond(A, 1), np.linalg.LinAlgError, rf"linalg\.cond.*{SQUARE}"),
            Wrong(
                lambda np: np.linalg.cond(np.ones((0, 0))), np.linalg.LinAlgError, r"linalg\.cond.*empty.*f64\[0,0\]"
            ),
        ],
    ),
    Function("linalg.matrix_rank", of(matrices(DTYPES, 1)), gradient=False),
    Function(
        "linalg.matrix_rank:hermitian",
        of(squares(("float64",), hermitian=True), hermitian=st.just(True)).filter(lambda c: c.args[0].size),
        gradient=False,
    ),
]
