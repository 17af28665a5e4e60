"""Every function and ufunc of NumPy that can be overridden, called on our arrays, beside NumPy on ndarrays."""

import operator

import numpy as np
import pytest
from numpy.testing import overrides

import xform
import xform.numpy as xnp

A = np.array([[0.5, 1.0, 2.5], [2.0, 3.5, -1.0], [0.25, 4.0, 3.0]])
S = A @ A.T + np.eye(3)
V = np.array([1.0, -2.0, 0.5])
U = np.array([3.0, 0.25, 1.5])
W = np.array([0.5, 0.25, 0.75])
I = np.array([3, 1, 2, 1, 6])  # noqa: E741
J = np.array([2, 0, 1])
M = np.array([True, False, True])
T = np.arange(24.0).reshape(2, 3, 4)
C = V + 1j * U
N = np.array([1.0, np.nan, 3.0])
BYTES = np.array([[3, 200, 17]], np.uint8)
BITS = np.array([[1, 0, 1, 1, 0, 0, 1, 0]], np.uint8)


def call(*args, **kwargs):
    return args, kwargs


# Calls of each function; the ndarrays among the arguments are replaced by our arrays. A trailing "!" says that the
# shape or structure of the result depends on values, which aren't known under jit.
CALLS = {
    "all": [call(A > 0), call(A > 0, axis=0), call(A > 0, axis=1, keepdims=True), call(A > 0, where=M)],
    "allclose": [call(A, A + 1e-12), call(A, A + 1)],
    "amax": [call(A), call(A, 0), call(A, initial=9.0)],
    "amin": [call(A), call(A, 0), call(A, where=A > 0, initial=9.0)],
    "angle": [call(C), call(C, True)],
    "any": [call(A > 3), call(A > 3, 0)],
    "append": [call(V, U), call(A, A, axis=0), call(V, [1.0])],
    "apply_along_axis": [call(np.cumsum, 0, A)],
    "apply_over_axes": [call(np.sum, T, [0, 2])],
    "argmax": [call(A), call(A, 1), call(A, axis=0, keepdims=True)],
    "argmin": [call(A), call(A, 1)],
    "argpartition": [],  # below: the order within a part is not specified
    "argsort": [call(V), call(A, 0), call(A, kind="stable"), call(A, -1, None, None)],
    "argwhere!": [call(A > 1)],
    "around": [call(A, 1), call(A)],
    "array2string": [],
    "array_equal": [call(A, A), call(N, N, equal_nan=True), call(A, V)],
    "array_equiv": [call(A, A), call(A, V)],
    "array_repr": [],
    "array_split": [call(V, 2), call(A, [1], 1)],
    "array_str": [],
    "astype": [call(A, np.float32), call(J, np.float64, copy=True)],
    "atleast_1d": [],
    "atleast_2d": [],
    "atleast_3d": [],
    "average": [call(A), call(A, 1, W), call(A, axis=0, weights=W, returned=True)],
    "bincount!": [call(I), call(I, weights=np.ones(5)), call(I, None, 9)],
    "block": [call([[A, A], [A, A]]), call([V, U])],
    "broadcast_arrays": [call(V, A), call(V, 1.0)],
    "broadcast_to": [call(V, (2, 3)), call(V, (2, 3), subok=True)],
    "busday_count": [],
    "busday_offset": [],
    "can_cast": [],
    "choose!": [call(J, [V, U, W])],
    "choose": [call(J, [V, U, W], mode="clip")],
    "clip": [call(A, 0.6, 3.0), call(A, a_min=1.0, a_max=None), call(A, min=1.0), call(A, V, None)],
    "column_stack": [call((V, U)), call([A, V])],
    "common_type": [],
    "compress!": [call([True, False, True], A, axis=1), call([False, True], V)],
    "concatenate": [
        call([V, U]), call((A, A), 1), call([A, A], axis=None), call([V, J], dtype=np.float32, casting="same_kind"),
        call([V, U.copy()], 0, None),
    ],
    "convolve": [call(V, U), call(V, U, "same")],
    "copy": [call(A), call(A, order="K"), call(A, "C", True)],
    "copyto": [],
    "corrcoef": [call(A), call(V, U)],
    "correlate": [call(V, U), call(V, U, mode="full")],
    "count_nonzero": [call(A > 1), call(A, axis=0)],
    "cov": [call(A), call(A, ddof=0), call(V, U), call(A, aweights=W)],
    "cross": [call(V, U), call(A, V, axis=0)],
    "cumprod": [call(V), call(A, 0)],
    "cumsum": [call(V), call(A, 1), call(J, dtype=np.float64)],
    "cumulative_prod": [call(V), call(A, axis=0)],
    "cumulative_sum": [call(V, include_initial=True), call(A, axis=0)],
    "datetime_as_string": [],
    "delete": [call(V, 1), call(A, [0, 2], axis=1)],
    "diag": [call(V), call(A, 1)],
    "diag_indices_from": [call(A)],
    "diagflat": [call(V, 1)],
    "diagonal": [call(A), call(T, 1, 1, 2)],
    "diff": [call(V), call(A, 2, 0), call(V, prepend=0.0)],
    "digitize": [call(V, np.array([-3.0, 0.0, 1.0])), call(V, np.array([-3.0, 0.0, 1.0]), True)],
    "dot": [call(A, V), call(A, A), call(V, 2.0)],
    "dsplit": [call(T, 2)],
    "dstack": [call((A, A))],
    "ediff1d": [call(V), call(V, to_begin=1.0)],
    "einsum": [
        call("ij,j->i", A, V), call("ii", A), call(A, [0, 1], V, [1]), call("ij,jk,k", A, A, V, optimize=True),
        call("ij->ji", A, order="K", casting="same_kind"),
    ],
    "einsum_path": [],
    "expand_dims": [call(A, 1), call(V, (0, 2))],
    "extract!": [call(M, V)],
    "fill_diagonal": [],
    "fix": [call(V * 1.7)],
    "flatnonzero!": [call(V > 0)],
    "flip": [call(A), call(A, 0)],
    "fliplr": [call(A)],
    "flipud": [call(A)],
    "geomspace": [call(np.array(1.0), np.array(100.0), 5)],
    "gradient": [call(V), call(A, axis=0), call(A, 0.5, 2.0), call(V, U, edge_order=2)],
    "histogram": [call(V, 4, (-3.0, 3.0)), call(V, 3, (-3.0, 3.0), False, W), call(V, bins=np.array([-3.0, 0.0, 3.0]))],
    "histogram2d": [call(V, U, 2, [[-3, 3], [0, 4]])],
    "histogram_bin_edges": [call(V, 4, (-3.0, 3.0))],
    "histogramdd": [call(np.stack([V, U], 1), 2, [(-3.0, 3.0), (0.0, 4.0)])],
    "hsplit": [call(A, 3)],
    "hstack": [call((V, U)), call([A, A], dtype=np.float32, casting="same_kind")],
    "i0": [call(V)],
    "imag": [call(C), call(V)],
    "inner": [call(V, U), call(A, V)],
    "insert": [call(V, 1, 9.0), call(A, 1, V, axis=0)],
    "interp": [call(0.7, np.array([0.0, 1.0, 2.0]), V), call(W, np.array([0.0, 0.5, 2.0]), V, 0.0, 1.0)],
    "intersect1d!": [call(I, J)],
    "is_busday": [],
    "isclose": [call(A, A + 1e-12), call(N, N, equal_nan=True)],
    "iscomplex": [call(C)],
    "iscomplexobj": [call(C), call(V)],
    "isin": [call(I, J), call(I, J, invert=True, kind="sort")],
    "isneginf": [call(np.array([-np.inf, 1.0]))],
    "isposinf": [call(np.array([np.inf, 1.0]))],
    "isreal": [call(C)],
    "isrealobj": [call(C)],
    "ix_": [call(J, J)],
    "kron": [call(V, U), call(A, V)],
    "lexsort": [call((V, U)), call(A)],
    "linspace": [call(V, U, 5), call(np.array(0.0), np.array(1.0), 3, False), call(V, U, 4, retstep=True)],
    "logspace": [call(np.array(0.0), np.array(2.0), 3)],
    "matrix_transpose": [call(T)],
    "max": [call(A), call(A, 0), call(A, axis=1, keepdims=True)],
    "may_share_memory": [],
    "mean": [call(A), call(A, 0), call(J), call(A, where=A > 0), call(J, dtype=np.float32)],
    "median": [call(A), call(A, axis=0)],
    "meshgrid": [call(V, U), call(V, U, indexing="ij", sparse=True)],
    "min": [call(A), call(A, 0)],
    "min_scalar_type": [],
    "moveaxis": [call(T, 0, -1)],
    "nan_to_num": [call(N), call(N, nan=9.0)],
    "nanargmax": [call(N)],
    "nanargmin": [call(N)],
    "nancumprod": [call(N)],
    "nancumsum": [call(N)],
    "nanmax": [call(N)],
    "nanmean": [call(N)],
    "nanmedian": [call(N)],
    "nanmin": [call(N)],
    "nanpercentile": [call(N, 30)],
    "nanprod": [call(N)],
    "nanquantile": [call(N, 0.3)],
    "nanstd": [call(N), call(N, ddof=1)],
    "nansum": [call(N), call(A, 0)],
    "nanvar": [call(N)],
    "ndim": [call(A)],
    "nonzero!": [call(A > 1)],
    "ones_like": [call(A), call(A, np.float32, "K", True, (2, 2))],
    "outer": [call(V, U)],
    "packbits": [call(BITS), call(BITS, axis=1, bitorder="little")],
    "pad": [call(V, 2), call(A, 1, "edge"), call(A, 1, mode="constant", constant_values=7.0)],
    "partition": [],
    "percentile": [call(A, 30), call(A, [20, 60], axis=0), call(V, 30, method="lower")],
    "piecewise": [call(V, [V < 0, V >= 0], [lambda x: -x, lambda x: x * x])],
    "place": [],
    "poly": [call(V)],
    "polyadd": [call(V, U)],
    "polyder": [call(U), call(U, 2)],
    "polydiv!": [call(np.array([1.0, 3.0, 5.0]), np.array([1.0, 2.0]))],
    "polyfit": [call(np.arange(5.0), np.array([1.0, 2.0, 5.0, 10.0, 17.0]), 2)],
    "polyint": [call(U), call(U, 2)],
    "polymul!": [call(V, U)],
    "polysub": [call(V, U)],
    "polyval": [call(V, U)],
    "prod": [call(V), call(A, 0, initial=2.0)],
    "ptp": [call(A), call(A, 0)],
    "put": [],
    "put_along_axis": [],
    "putmask": [],
    "quantile": [call(A, 0.3), call(A, [0.2, 0.6], axis=0), call(V, 0.5, weights=W, method="inverted_cdf")],
    "ravel": [call(A), call(A, "F")],
    "ravel_multi_index!": [call((J, J), (3, 4))],
    "real": [call(C), call(V)],
    "real_if_close!": [call(C), call(C.real + 0j)],
    "repeat": [call(V, 2), call(A, 2, axis=1)],
    "reshape": [call(A, (9,)), call(A, (1, 9), "F"), call(A, shape=(9,), copy=None)],
    "resize": [call(V, (2, 4))],
    "result_type": [],
    "roll": [call(A, 1), call(A, 1, 0), call(A, (1, 2), (0, 1))],
    "rollaxis": [call(T, 2)],
    "roots!": [call(np.array([1.0, -3.0, 2.0]))],
    "rot90": [call(A), call(A, 2)],
    "round": [call(A, 1)],
    "save": [],
    "savetxt": [],
    "savez": [],
    "savez_compressed": [],
    "searchsorted": [call(np.array([0.0, 1.0, 2.0]), V), call(np.array([0.0, 1.0]), 1.0, "right")],
    "select": [call([V > 0, V < -1], [V, U]), call([V > 0], [V], 7.0)],
    "setdiff1d!": [call(I, J)],
    "setxor1d!": [call(I, J)],
    "shape": [call(A)],
    "shares_memory": [],
    "sinc": [call(V)],
    "size": [call(A), call(A, 1)],
    "sort": [call(A), call(A, 0), call(V, kind="mergesort"), call(V, -1, "stable")],
    "sort_complex": [call(C)],
    "split": [call(V, 3), call(A, [1], axis=1)],
    "squeeze": [call(A[None]), call(A[None], axis=0)],
    "stack": [call([V, U]), call((V, U), 1), call([V, U], axis=-1, out=None, casting="same_kind")],
    "std": [call(A), call(A, 0, ddof=1), call(A, correction=1)],
    "sum": [call(A), call(A, 0), call(A, axis=(0, 1)), call(J, dtype=np.float32), call(A, None, None, None)],
    "swapaxes": [call(T, 0, 1)],
    "take": [call(V, J), call(A, J, 1), call(A, J, axis=0, mode="clip")],
    "take_along_axis": [call(A, np.argsort(A), 1)],
    "tensordot": [call(A, A), call(A, V, 1), call(A, T, axes=([0], [1]))],
    "tile": [call(V, 2), call(A, (2, 1))],
    "trace": [call(A), call(A, 1)],
    "transpose": [call(A), call(T, (1, 0, 2))],
    "trapezoid": [call(V), call(V, U), call(A, dx=0.5, axis=0)],
    "tril": [call(A), call(A, -1)],
    "tril_indices_from": [call(A)],
    "trim_zeros!": [call(np.array([0.0, 1.0, 0.0]))],
    "triu": [call(A), call(A, 1)],
    "triu_indices_from": [call(A), call(A, 1)],
    "union1d!": [call(I, J)],
    "unique!": [call(I), call(I, return_counts=True, return_inverse=True), call(I, True)],
    "unique_all!": [call(I)],
    "unique_counts!": [call(I)],
    "unique_inverse!": [call(I)],
    "unique_values!": [call(I)],
    "unpackbits": [call(BYTES), call(BYTES, 1, None, "little")],
    "unravel_index": [call(I, (3, 4)), call(I, (3, 4), "C")],
    "unstack": [call(A), call(A, axis=1)],
    "unwrap": [call(U * 4)],
    "vander": [call(V), call(V, 2, True)],
    "var": [call(A), call(A, 0, ddof=1), call(V, mean=np.array([0.5]))],
    "vdot": [call(V, U), call(C, C)],
    "vsplit": [call(A, 3)],
    "vstack": [call((V, U)), call([A, V])],
    "where": [call(A > 1, A, 0.0), call(A > 1, A, V)],
    "zeros_like": [call(A), call(A, dtype=int), call(A, None, "K", True, None)],
    "empty_like": [],
    "full_like": [call(A, 2.0), call(A, V), call(J, 3, np.float32, subok=False)],
    "linalg.cholesky": [call(S), call(S, upper=True)],
    "linalg.cond": [call(A), call(A, 1)],
    "linalg.cross": [call(V, U)],
    "linalg.det": [call(A)],
    "linalg.diagonal": [call(A), call(A, offset=1)],
    "linalg.eig": [],
    "linalg.eigh": [],
    "linalg.eigvals": [call(np.diag(V))],
    "linalg.eigvalsh": [call(S), call(S, "U")],
    "linalg.inv": [call(A)],
    "linalg.lstsq": [call(A[:, :2], V), call(A[:, :2], V, None), call(A[:, :2], A)],
    "linalg.lstsq!": [call(A, V)],  # traced, there are residuals in any case
    "linalg.matmul": [call(A, V)],
    "linalg.matrix_norm": [call(A), call(A, ord=2)],
    "linalg.matrix_power": [call(A, 3), call(A, -1)],
    "linalg.matrix_rank": [call(A), call(A, 1e-3), call(A, tol=5.0), call(S, hermitian=True)],
    "linalg.matrix_transpose": [call(T)],
    "linalg.multi_dot": [call([A, A, V])],
    "linalg.norm": [call(A), call(V, 1), call(A, axis=0), call(A, "nuc"), call(A, 2, (0, 1), True)],
    "linalg.outer": [call(V, U)],
    "linalg.pinv": [call(A), call(A, 1e-3), call(A, rcond=1e-3)],
    "linalg.qr": [call(A, "r")],
    "linalg.slogdet": [call(A)],
    "linalg.solve": [call(A, V), call(A, A)],
    "linalg.svd": [call(A, compute_uv=False), call(A, True, False)],
    "linalg.svdvals": [call(A)],
    "linalg.tensordot": [call(A, A, axes=1)],
    "linalg.tensorinv": [call(A, 1)],
    "linalg.tensorsolve": [call(A, V)],
    "linalg.trace": [call(A), call(A, offset=1, dtype=np.float32)],
    "linalg.vecdot": [call(V, U), call(A, A, axis=0)],
    "linalg.vector_norm": [call(A), call(A, axis=0, ord=1)],
    **{f"fft.{name}": [call(V), call(A, 4, 0)] for name in ("fft", "ifft", "rfft", "ihfft")},
    **{f"fft.{name}": [call(C), call(C, n=5), call(C, norm="ortho")] for name in ("irfft", "hfft")},
    **{f"fft.{name}": [call(A), call(A, (2, 4))] for name in ("fft2", "ifft2", "rfft2")},
    **{f"fft.{name}": [call(A), call(T, axes=(0, 2))] for name in ("fftn", "ifftn", "rfftn")},
    **{f"fft.{name}": [call(A), call(A, s=(3, 4), axes=(0, 1))] for name in ("irfft2", "irfftn")},
    "fft.fftshift": [call(V), call(A, axes=0)],
    "fft.ifftshift": [call(V), call(A, 1)],
    "lib.scimath.sqrt!": [call(V)],
    "lib.scimath.log!": [call(V)],
    "lib.scimath.log2!": [call(V)],
    "lib.scimath.log10!": [call(V)],
    "lib.scimath.logn!": [call(2, V)],
    "lib.scimath.power!": [call(V, 0.5)],
    "lib.scimath.arccos!": [call(V)],
    "lib.scimath.arcsin!": [call(V)],
    "lib.scimath.arctanh!": [call(3 * V)],
    "lib.stride_tricks.sliding_window_view!": [call(V, 2)],
    # Functions that take an array as like= only.
    **dict.fromkeys([
        "arange", "array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "empty", "eye", "frombuffer",
        "fromfile", "fromfunction", "fromiter", "fromstring", "full", "genfromtxt", "identity", "loadtxt", "ones",
        "require", "tri", "zeros",
    ], ()),
}  # fmt: skip


def find(name):
    return operator.attrgetter(name)(np)


def public_name(function):
    return f"{function.__module__}.{function.__name__}".removeprefix("numpy.")


# Where dtypes of NumPy's results depend on values, or are int32; and where the order isn't specified.
OTHER_DTYPES = {"roots!", "linalg.eigvals", "linalg.lstsq", "linalg.lstsq!"}
UNORDERED = {"unique_values!", "linalg.eigvals"}

RECORDS = [(name, i, *sample) for name, samples in CALLS.items() for i, sample in enumerate(samples)]
IDS = [f"{name}-{i}" for name, i, *_ in RECORDS]


def arrays(tree):
    return xform.tree.map(lambda x: xnp.array(x) if isinstance(x, np.ndarray) else x, tree)


def check(name, got, want, rtol=1e-12):
    """Equal, with an Array for each ndarray or NumPy scalar."""
    got, want = xform.tree.leaves(got), xform.tree.leaves(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        if isinstance(w, np.ndarray | np.generic):
            assert isinstance(g, xform.Array), type(g)
            assert g.dtype == w.dtype or name in OTHER_DTYPES
            g = np.asarray(g)
            if name in UNORDERED:
                g, w = np.sort(g), np.sort(w)
            np.testing.assert_allclose(g, w, rtol=rtol, atol=1e-14)
        else:
            assert g == w


def test_the_table_is_complete():
    known = {name.rstrip("!") for name in CALLS}
    functions = overrides.get_overridable_numpy_array_functions()
    names = {public_name(f) for f in functions if f.__module__ != "numpy.lib.recfunctions"}
    missing = {n for n in names if n.split(".")[0] in ("linalg", "fft", "lib") or "." not in n} - known
    assert not missing, sorted(missing)


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")
@pytest.mark.parametrize(("name", "i", "args", "kwargs"), RECORDS, ids=IDS)
def test_concrete_arrays(name, i, args, kwargs):
    function = find(name.rstrip("!"))
    check(name, function(*arrays(args), **arrays(kwargs)), function(*args, **kwargs))


JITTED = [(record, label) for record, label in zip(RECORDS, IDS, strict=True) if not record[0].endswith("!")]


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")
@pytest.mark.parametrize(("name", "i", "args", "kwargs"), [r for r, _ in JITTED], ids=[i for _, i in JITTED])
def test_traced_arrays(name, i, args, kwargs):
    function = find(name)
    leaves, treedef = xform.tree.flatten((args, kwargs))

    def program(traced):
        found = iter(traced)
        xs, options = treedef.unflatten([next(found) if isinstance(x, np.ndarray) else x for x in leaves])
        out = function(*xs, **options)
        assert not any(isinstance(x, np.ndarray) for x in xform.tree.leaves(out))
        return xform.tree.map(lambda x: x if isinstance(x, xform.Array) else Static(x), out)

    got = xform.jit(program, backend="numpy")([x for x in leaves if isinstance(x, np.ndarray)])
    want = function(*args, **kwargs)
    got = [
        x.value if isinstance(x, Static) else x for x in xform.tree.leaves(got, is_leaf=lambda x: isinstance(x, Static))
    ]
    check(name, got, want, rtol=1e-9)


class Static:
    """A value that is no array, as part of the structure of what jit returns."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    def __hash__(self):
        return 0


xform.tree_util.register_pytree_node(Static, lambda x: ((), x.value), lambda value, _: Static(value))


def test_decompositions():
    x = xnp.array(A)
    values, vectors = np.linalg.eig(x)
    assert isinstance(values, xform.Array)
    np.testing.assert_allclose(np.asarray(x @ vectors), np.asarray(vectors * values), atol=1e-12)
    values, vectors = np.linalg.eigh(xnp.array(S))
    np.testing.assert_allclose(np.asarray(S @ vectors), np.asarray(vectors * values), atol=1e-12)
    q, r = np.linalg.qr(x)
    np.testing.assert_allclose(np.asarray(q @ r), A, atol=1e-12)
    for out in (
        np.partition(x, 1),
        np.partition(x, 1, kind="introselect"),
        np.take_along_axis(x, np.argpartition(x, 1), 1),
    ):
        assert isinstance(out, xform.Array)
        np.testing.assert_array_equal(np.sort(np.asarray(out)), np.sort(A))


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit])
def test_like(transform):
    def created(x):
        return (
            np.zeros(3, like=x), np.ones((2, 2), int, like=x), np.full(2, 7.0, order="C", like=x),
            np.arange(3, like=x), np.arange(1.0, 2.0, 0.5, like=x), np.eye(2, k=1, like=x), np.identity(2, like=x),
            np.tri(2, like=x), np.asarray([1, 2], like=x), np.array([x[0], x[1]], like=x),
            np.array(x, np.float32, like=x), np.empty(2, like=x) * 0,
            np.asanyarray(x, like=x), np.ascontiguousarray(x, like=x), np.asfortranarray(x, like=x),
            np.require(x, like=x),
            np.fromfunction(lambda i: i * 2, (3,), dtype=int, like=x), np.frombuffer(b"\1\2", np.uint8, like=x),
            np.fromiter([1, 2], np.int64, like=x), np.fromstring("1 2", sep=" ", like=x),
        )  # fmt: skip

    got, want = transform(lambda x: created(x))(xnp.array(V)), created(V)
    for g, w in zip(got, want, strict=True):
        assert isinstance(g, xform.Array)
        assert g.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(g), w)


def test_conversions_of_concrete_arrays():
    """What compiled code is handed over with gives ndarrays, as np.asarray does; of traced arrays, traced ones."""
    x = xnp.array(V)
    for function in (
        np.asarray,
        np.array,
        np.asanyarray,
        np.ascontiguousarray,
        np.atleast_1d,
        np.atleast_2d,
        np.atleast_3d,
    ):
        out = function(x)
        assert type(out) is np.ndarray
        np.testing.assert_array_equal(out, function(V))
    for function in (np.atleast_1d, np.atleast_2d, np.atleast_3d):
        np.testing.assert_array_equal(np.asarray(xform.jit(lambda x, f=function: f(np.sin(x)))(x)), function(np.sin(V)))
    assert [type(a) for a in np.atleast_1d(x, 1.0)] == [np.ndarray] * 2


def test_text_files_with_like(tmp_path):
    path = tmp_path / "a.txt"
    np.savetxt(path, xnp.array(A))
    for load in (np.loadtxt, np.genfromtxt):
        out = load(path, like=xnp.zeros(1))
        assert isinstance(out, xform.Array)
        np.testing.assert_array_equal(np.asarray(out), A)
    A.tofile(path)
    assert isinstance(np.fromfile(path, like=xnp.zeros(1)), xform.Array)


def test_without_counterpart():
    x = xnp.array(V)
    assert np.array2string(x) == np.array2string(V)
    assert np.array_str(x) == str(V)
    assert np.array_repr(x) == repr(x)
    assert np.shares_memory(x, x)
    assert np.may_share_memory(x, np.asarray(x))
    assert not np.shares_memory(x, V)
    assert np.dtype(np.common_type(x)) == np.float64
    assert np.min_scalar_type(xnp.array(3)) == np.uint8
    assert np.can_cast(x.dtype, np.float32) is np.can_cast(V.dtype, np.float32)
    assert np.einsum_path("i,i", x, x)[0] == np.einsum_path("i,i", V, V)[0]
    assert np.result_type(x, np.float32) == np.float64
    days = np.array(["2024-01-05"], "M8[D]")
    assert np.busday_offset(days, xnp.array([2])).tolist() == np.busday_offset(days, [2]).tolist()
    assert np.busday_count(days, days + xnp.array([7])).tolist() == [5]
    with pytest.raises(TypeError, match=r"numpy\.is_busday has no counterpart in xform\.numpy .* f64\[3\]"):
        xform.jit(lambda x: np.is_busday(days, out=None, busdaycal=None, holidays=x))(x)
    with pytest.raises(TypeError, match=r"array2string.* must be known when the function is traced"):
        xform.jit(lambda x: np.array2string(x))(x)


def test_masked_arrays_keep_their_masks():
    x, masked = xnp.array(U), np.ma.masked_less(V, 0)
    for got in (masked + x, x + masked, np.add(x, masked)):
        assert type(got) is np.ma.MaskedArray
        assert got.mask.tolist() == masked.mask.tolist()
        np.testing.assert_array_equal(got.compressed(), (U + V)[V >= 0])
    with pytest.raises(TypeError, match="masked array"):
        xnp.add(x, masked)
    with pytest.raises(TypeError, match=r"masked array|concrete value"):
        xform.jit(lambda x: masked + x)(x)
    with pytest.raises(TypeError, match="no implementation found"):
        np.concatenate([masked, x])


def test_files(tmp_path):
    path = tmp_path / "a.npy"
    x = xnp.array(A)
    np.save(path, x)
    np.testing.assert_array_equal(np.load(path), A)
    loaded = xnp.load(path)
    assert isinstance(loaded, xform.Array)
    for save in (np.savez, np.savez_compressed, xnp.savez):
        save(tmp_path / "a.npz", x, b=x[0])
        with np.load(tmp_path / "a.npz") as found:
            np.testing.assert_array_equal(found["arr_0"], A)
            np.testing.assert_array_equal(found["b"], A[0])
    np.savetxt(tmp_path / "a.txt", x)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "a.txt"), A)
    with pytest.raises(TypeError, match="traced array of f64"):
        xform.jit(lambda x: np.save(path, x))(x)


OBJECTS = np.array([1, 2.5, "a"], object)


def test_arrays_that_only_numpy_has():
    x = xnp.array(V)
    numbers = np.array([1, 2.5, 3], object)
    for got, want in (
        (numbers * x, numbers * V), (x + numbers, V + numbers), (np.add(numbers, x), numbers + V),
        (np.concatenate([x, OBJECTS]), np.concatenate([V, OBJECTS])),
        (np.where(x > 0, "yes", OBJECTS), np.where(V > 0, "yes", OBJECTS)),
        (np.array(["2024-01-01"], "M8[D]") + xnp.array([1]), np.array(["2024-01-02"], "M8[D]")),
    ):  # fmt: skip
        assert type(got) is np.ndarray
        np.testing.assert_array_equal(got, want)
    with pytest.raises(TypeError, match="dtype object"):
        xform.jit(lambda x: numbers * x)(x)


def test_arrays_to_write_to():
    x = xnp.array(V)
    for function, args in (
        (np.copyto, (U,)), (np.put, ([0, 1], U[:2])), (np.place, (M, U)), (np.putmask, (M, U)),
        (np.put_along_axis, (np.array([0, 2]), U[:2], 0)),
    ):  # fmt: skip
        a, b = V.copy(), V.copy()
        function(a, *args)
        function(b, *arrays(args))
        np.testing.assert_array_equal(b, a)
        with pytest.raises(TypeError, match=rf"numpy\.{function.__name__}.* immutable.*x\.at\[index\]\.set"):
            function(x, *args)
        with pytest.raises(TypeError, match="an ndarray can't hold a traced array"):
            xform.jit(lambda *xs, f=function: f(V.copy(), *xs))(*args)
    a = np.zeros((3, 3))
    np.fill_diagonal(a, x)
    np.testing.assert_array_equal(a, np.diag(V))
    a = np.zeros(3)
    assert np.sum(xnp.array(A), axis=0, out=a) is a
    np.testing.assert_array_equal(a, A.sum(0))
    assert np.clip(xnp.array(V), 0, 1, a) is a
    np.testing.assert_array_equal(a, V.clip(0, 1))
    assert np.dot(A, x, a) is a
    assert np.sum(xnp.array(A), 0, None, a) is a
    assert np.matmul(A, x, out=a) is a
    np.testing.assert_allclose(a, A @ V)
    for function in (np.sum, np.cumsum, np.mean, lambda x, out: np.clip(x, 0, 1, out=out)):
        with pytest.raises(TypeError, match="immutable"):
            function(x, out=x)
        with pytest.raises(TypeError, match="an ndarray can't hold a traced array"):
            xform.jit(lambda x, f=function: f(x, out=np.zeros(3)))(x)


def test_arguments_that_are_not_supported():
    x = xnp.array(A)
    for call in (
        lambda: np.zeros_like(x, order="F"),
        lambda: np.concatenate([x, x], dtype=np.float32, casting="safe"),
        lambda: np.partition(x, 1, order="a"),
        lambda: np.einsum("ij->i", x, dtype=np.float32),
        lambda: np.clip(x, 0, 1, dtype=np.float32),
    ):
        with pytest.raises((NotImplementedError, TypeError, ValueError), match=r"numpy\.\w+: .*(order|casting|dtype)"):
            call()
    with pytest.raises(np.exceptions.AxisError, match="axis"):
        np.sum(x, axis=2)
    with pytest.raises(TypeError):
        np.sum(x, wrong=1)


# ---- Ufuncs ------------------------------------------------------------------------------------------------

REALS, INTS = ("f", "i")
KINDS = {
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"], INTS),
    "gcd": INTS, "lcm": INTS, "bitwise_count": INTS, "arccosh": "1",
    "ldexp": "fi", "matmul": "m", "matvec": "mv", "vecmat": "vm",
}  # fmt: skip
VALUES = {
    "f": (W, np.array([0.25, 0.5, 0.25])),
    "i": (np.array([5, 3, 6]), np.array([1, 2, 2])),
    "1": (U + 1,),
    "fi": (V, np.array([1, 2, 2])),
    "m": (A, S),
    "mv": (A, V),
    "vm": (V, A),
}
UFUNCS = sorted(
    (u for u in overrides.get_overridable_numpy_ufuncs() if getattr(np, u.__name__, None) is u and u is not np.isnat),
    key=lambda u: u.__name__,
)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_ufuncs(ufunc):
    args = VALUES[KINDS.get(ufunc.__name__, REALS)][: ufunc.nin]
    want = ufunc(*args)
    check(ufunc.__name__, ufunc(*arrays(args)), want, rtol=1e-13)
    check(ufunc.__name__, xform.jit(lambda *xs: ufunc(*xs), backend="numpy")(*args), want, rtol=1e-13)
    if ufunc.nin == 2:
        for mixed in ((xnp.array(args[0]), args[1]), (args[0], xnp.array(args[1]))):
            check(ufunc.__name__, ufunc(*mixed), want, rtol=1e-13)


def test_other_ufuncs():
    x = xnp.array(V)
    check("", V.clip(x, U), V.clip(V, U))
    check("", xform.jit(lambda x: V.clip(x, U))(x), V.clip(V, U))
    made = np.frompyfunc(lambda a, b: a + b, 2, 1)
    assert made(xnp.array(V), 1.0).tolist() == (V + 1).tolist()
    with pytest.raises(TypeError, match="isnat"):
        np.isnat(xnp.array(V))


METHODS = [
    (np.add, "reduce", (A,), {}), (np.add, "reduce", (A,), {"axis": None}), (np.add, "reduce", (A, 1), {}),
    (np.add, "reduce", (A,), {"axis": 1, "keepdims": True}), (np.add, "reduce", (A,), {"where": A > 0}),
    (np.add, "reduce", (A,), {"where": True}), (np.multiply, "reduce", (A,), {"dtype": np.float32}),
    (np.maximum, "reduce", (A,), {"initial": 9.0}), (np.minimum, "reduce", (A,), {"initial": None}),
    (np.logical_and, "reduce", (A > 0,), {}), (np.logaddexp, "reduce", (A,), {}), (np.hypot, "reduce", (A,), {}),
    (np.bitwise_xor, "reduce", (I,), {}), (np.subtract, "reduce", (V,), {}),
    (np.add, "accumulate", (A,), {}), (np.multiply, "accumulate", (A,), {"axis": 1}),
    (np.maximum, "accumulate", (A, 1), {}), (np.add, "accumulate", (J,), {"dtype": np.float64}),
    (np.add, "reduceat", (V, [0, 1]), {}), (np.maximum, "reduceat", (A, [0, 2, 1]), {"axis": 1}),
    (np.add, "outer", (V, U), {}), (np.maximum, "outer", (V, 0.0), {}), (np.greater, "outer", (V, U), {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("ufunc", "method", "args", "kwargs"), METHODS, ids=lambda x: getattr(x, "__name__", None) or str(x)[:12]
)
def test_methods_of_ufuncs(ufunc, method, args, kwargs):
    function = getattr(ufunc, method)
    want = function(*args, **kwargs)
    check("", function(*arrays(args), **kwargs), want)
    x, *rest = args
    check("", xform.jit(lambda x: function(x, *rest, **kwargs), backend="numpy")(x), want)


def test_at_of_ufuncs():
    a, b = V.copy(), V.copy()
    np.add.at(a, [0, 0, 1], U)
    np.add.at(b, xnp.array([0, 0, 1]), xnp.array(U))
    np.testing.assert_array_equal(b, a)
    with pytest.raises(TypeError, match=r"numpy\.add\.at.* immutable"):
        np.add.at(xnp.array(V), [0], 1.0)
    with pytest.raises(TypeError, match=r"numpy\.add\.at.*can't hold a traced array"):
        xform.jit(lambda x: np.add.at(V.copy(), [0, 0, 1], x))(U)


def test_options_of_ufuncs():
    x, i = xnp.array(V), xnp.array([100, 100], np.int8)
    plain = np.asarray(i)
    for f in (
        lambda x, i: np.add(i, i, dtype=np.int32),
        lambda x, i: np.multiply(x, x, dtype=np.float32, casting="same_kind"),
        lambda x, i: np.add(x, 1, casting="unsafe", order="K", subok=True, where=True),
        lambda x, i: np.less(x, 0.5, dtype=bool),
        lambda x, i: np.sin(i, dtype=np.float64),
        lambda x, i: np.divmod(i, 7, dtype=np.int64),
        lambda x, i: np.add(i, i, signature=(None, None, np.int16)),
        lambda x, i: np.add(i, i, signature="ll->l"),
        lambda x, i: np.negative(x, dtype=np.complex128),
    ):
        check("", f(x, i), f(V, plain), rtol=1e-6)
        check("", xform.jit(f, backend="numpy")(x, i), f(V, plain), rtol=1e-6)
    with pytest.raises(TypeError, match="Cannot cast"):
        np.add(x, x, dtype=np.int32)
    for kwargs in ({"where": V > 0}, {"casting": "safe"}, {"order": "F"}):
        with pytest.raises(NotImplementedError, match=r"numpy\.add: the argument \w+=.* is not supported"):
            np.add(x, x, **kwargs)


def test_python_operators_with_ndarrays_and_scalars():
    x = xnp.array(V)
    for op in (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
        operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge, divmod,
    ):  # fmt: skip
        check("", op(U, x), op(U, V))
        check("", op(np.float64(2), x), op(np.float64(2), V)) if op is not operator.pow else None
        check("", op(x, U), op(V, U)) if op is not operator.pow else None
    check("", A @ x, A @ V)
    check("", x @ A, V @ A)
    for op in (operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod):
        a, b = U.copy(), U.copy()
        c = b
        a, b = op(a, V), op(b, x)
        assert b is c and type(b) is np.ndarray
        np.testing.assert_allclose(b, a)
    b = A.copy()
    b @= xnp.array(S)
    np.testing.assert_allclose(b, A @ S)


def test_sequences_of_arrays():
    x, y = xnp.array(V), xnp.array(U)
    assert type(np.array([x, y])) is np.ndarray
    np.testing.assert_array_equal(np.array([x, y]), np.array([V, U]))
    np.testing.assert_array_equal(np.array([x[0], y[1]]), [V[0], U[1]])
    assert isinstance(np.stack([x, y]), xform.Array) and isinstance(np.stack([V, y]), xform.Array)
    got = xform.jit(lambda x, y: np.stack([x, y, V]))(x, y)
    np.testing.assert_array_equal(np.asarray(got), np.stack([V, U, V]))
    for function in (np.array, np.asarray):
        for make in (lambda x: x, lambda x: [x, x], lambda x: [x[0], 1.0]):
            with pytest.raises(TypeError, match=r"xform\.numpy"):
                xform.jit(lambda x, function=function, make=make: function(make(x)))(x)


GRADIENTS = [
    lambda x: np.sum(np.sin(x) * x), lambda x: np.linalg.norm(x), lambda x: np.dot(x, U), lambda x: np.mean(x**2),
    lambda x: np.linalg.solve(np.diag(x) + S, V)[0], lambda x: np.sum(np.where(x > 0, x, x**2)), lambda x: np.prod(x),
    lambda x: np.sum(np.concatenate([x, x * 2]) ** 2), lambda x: np.einsum("i,ij,j", x, A, x), lambda x: np.var(x),
    lambda x: np.abs(np.fft.fft(x))[1], lambda x: np.linalg.det(np.outer(x, x) + S), lambda x: np.trapezoid(x, U),
    lambda x: np.interp(0.7, np.array([0.0, 1.0, 2.0]), x), lambda x: np.max(np.stack([x, 2 * x])), lambda x: np.ptp(x),
    lambda x: np.add.reduce(np.multiply.outer(x, x), axis=None), lambda x: np.sum(np.cumsum(x) ** 2),
    lambda x: np.sum(np.polyval(x, U)), lambda x: np.clip(x, -1, 0.7).sum(), lambda x: np.median(x),
    lambda x: (A @ x) @ x, lambda x: np.average(x, weights=W),
    lambda x: np.sum(np.pad(x, 1, "edge") ** 2), lambda x: np.sum(np.convolve(x, U) ** 2),
]  # fmt: skip


@pytest.mark.parametrize("f", GRADIENTS, ids=range(len(GRADIENTS)))
def test_gradients(f):
    h = 1e-6
    want = [(f(V + h * e) - f(V - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(np.asarray(xform.grad(f)(V)), want, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(xform.jit(xform.grad(f))(V)), want, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(xform.vmap(f)(A)), [f(a) for a in A], rtol=1e-10)
