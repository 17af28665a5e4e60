"""Decompositions in programs for CUDA: the kernels of cuSOLVER and cuSPARSE, called as JAX does; without a GPU."""

import numpy as np
import pytest
import scipy.linalg

import xform
import xform.numpy as xnp
from xform import lax
from xform.interpreters.lowering import lower_module
from xform.lax.linalg.eig import _unpacked

linalg = lax.linalg


def text_for(platform, function, *args):
    return lower_module(xform.make_jaxpr(function)(*args), "f", platform)[0]


def calls(text):
    """The custom calls in a module, which is verified: targets, attributes, layouts, pairs that share memory."""
    pytest.importorskip("jax")
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir as mlir

    found = []
    with make_ir_context():
        module = mlir.Module.parse(text)
        assert module.operation.verify()

        def visit(operation):
            if operation.name == "stablehlo.custom_call":
                attributes = operation.attributes
                target = mlir.StringAttr(attributes["call_target_name"]).value
                if "solver" in target or "sparse" in target:
                    where = "mhlo.backend_config"  # JAX's place for them
                    config = attributes[where if where in attributes else "backend_config"]
                    options = {a.name: str(a.attr) for a in mlir.DictAttr(config)} if len(str(config)) > 2 else {}
                    layouts = [str(attributes[f"{side}_layouts"]) for side in ("operand", "result")]
                    found.append((target, options, *layouts, str(attributes["output_operand_aliases"])))
            return mlir.WalkResult.ADVANCE

        module.operation.walk(visit)
    return found


def jax_calls(function, *args):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        return calls(jax.jit(function).trace(*args).lower(lowering_platforms=("cuda",)).as_text())


def peers(function):
    """The function with xform's `lax.linalg`, and with JAX's."""
    jax = pytest.importorskip("jax")
    return (lambda *args: function(linalg, *args)), (lambda *args: function(jax.lax.linalg, *args))


CASES = {
    "lu": lambda linalg, x: linalg.lu(x),
    "qr": lambda linalg, x: linalg.qr(x, full_matrices=False),
    "full qr": lambda linalg, x: linalg.qr(x, full_matrices=True),
    "svd": lambda linalg, x: linalg.svd(x, full_matrices=False),
    "full svd": lambda linalg, x: linalg.svd(x, full_matrices=True),
    "singular values": lambda linalg, x: linalg.svd(x, full_matrices=False, compute_uv=False),
}
SQUARE = {
    "eigh": lambda linalg, x: linalg.eigh(x, lower=False, symmetrize_input=False),
    "tridiagonal": lambda linalg, x: linalg.tridiagonal(x, lower=True)[:4],
    "householder_product": lambda linalg, x: linalg.householder_product(x, x[..., 0]),
}


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (3, 40), (50, 40), (1500, 3), (2, 3, 1500)])
@pytest.mark.parametrize("name", CASES)
def test_calls_are_those_of_jax(name, shape, dtype):
    ours, theirs = peers(CASES[name])
    x = np.zeros(shape, dtype)
    found = calls(text_for("cuda", ours, x))
    assert len(found) in (1, 2)
    assert found == jax_calls(theirs, x)
    assert text_for("gpu", ours, x) == text_for("cuda", ours, x)


@pytest.mark.parametrize("shape", [(3, 2), (2, 5, 1)])
def test_tridiagonal_equations(shape):
    """cuSPARSE takes three rows and more; fewer, and other platforms, get elimination as a program."""
    ours, theirs = peers(lambda linalg, b: linalg.tridiagonal_solve(b[..., 0], b[..., 0], b[..., 0], b))
    b = np.zeros(shape)
    ((name, *_),) = found = calls(text_for("cuda", ours, b))
    assert name == "cusparse_gtsv2_ffi" and found == jax_calls(theirs, b)
    assert not calls(text_for("cuda", ours, b[..., :2, :])) and not calls(text_for("tpu", ours, b))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("name", SQUARE)
def test_calls_for_square_matrices_are_those_of_jax(name, dtype):
    ours, theirs = peers(SQUARE[name])
    for shape in ((3, 3), (2, 4, 4)):
        x = np.zeros(shape, dtype)
        assert calls(text_for("cuda", ours, x)) == jax_calls(theirs, x)


def test_equations_for_cuda():
    """`solve`, `inv` and determinants come down to LU and StableHLO's triangular equations."""
    a, b = np.zeros((5, 5)), np.zeros((5, 2))
    for function in (xnp.linalg.inv, xnp.linalg.det, lambda a: xnp.linalg.solve(a, b)):
        text = text_for("cuda", function, a)
        assert [name for name, *_ in calls(text)] == ["cusolver_getrf_ffi"]
        assert "lapack" not in text
    text = text_for("cuda", xnp.linalg.cholesky, a)
    assert "stablehlo.cholesky" in text and not calls(text)


def test_eig():
    ((target, options, operands, results, _),) = calls(text_for("cuda", xnp.linalg.eig, np.zeros((2, 3, 3))))
    assert (target, options) == ("cusolver_geev_ffi", {"left": "false", "right": "true"})
    assert operands.count("dense<[1, 2, 0]>") == 1
    assert results.count("dense<[1, 2, 0]>") == 3
    with pytest.raises(NotImplementedError, match="'eig' can't be compiled for CUDA with left eigenvectors"):
        text_for("cuda", lambda x: linalg.eig(x), np.zeros((3, 3)))


def test_pairs_of_conjugate_vectors():
    """cuSOLVER stores vectors of real matrices as LAPACK's geev does."""
    rng = np.random.default_rng(0)
    xs = [rng.standard_normal((5, 5)) for _ in range(20)]
    w, v = [], []
    for x in xs:
        real, imag, _, packed, info = scipy.linalg.lapack.dgeev(x)
        assert info == 0
        w.append(real + 1j * imag)
        v.append(packed)
    w, v = np.array(w), np.asarray(_unpacked(np.array(w), np.array(v)))
    assert {sum(z.imag > 0 for z in each) for each in w} >= {0, 1, 2}
    np.testing.assert_allclose(np.array(xs) @ v, v * w[:, None, :], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("qr", lambda x: linalg.qr(x, pivoting=True)),
        ("schur", linalg.schur),
        ("hessenberg", linalg.hessenberg),
    ],
)
def test_what_has_no_kernel_says_so(name, function):
    with pytest.raises(NotImplementedError, match=f"primitive '{name}' can't be compiled for platform 'cuda'"):
        text_for("cuda", function, np.zeros((3, 3)))
    with pytest.raises(NotImplementedError, match="can't be compiled for platform 'tpu'"):
        text_for("tpu", function, np.zeros((3, 3)))
