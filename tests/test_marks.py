"""Derivatives where others give NaN: what is selected away contributes exactly zero, norms have the subgradient 0."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax
from xform.interpreters import signs
from xform.lax import primitives

zeros = np.zeros(3)
x = np.array([0.0, 1.0, 4.0])

# Functions, an argument, and the gradient.
CASES = {
    "where of a root": (lambda a: xnp.where(a > 0, xnp.sqrt(a), 0.0).sum(), x, [0, 0.5, 0.25]),
    "where of a logarithm": (lambda a: xnp.where(a > 0, xnp.log(a), 0.0).sum(), x, [0, 1, 0.25]),
    "where of a quotient": (lambda a: xnp.where(a != 0, 1 / a, 0.0).sum(), x, [0, -1, -1 / 16]),
    "where of a power": (lambda a: xnp.where(a > 0, a**-1.5, 0.0).sum(), x, [0, -1.5, -1.5 * 4**-2.5]),
    "where of exp": (lambda a: xnp.where(a < 3, xnp.exp(a * 300), 1.0).sum() * 0, x, [0, 0, 0]),
    "a chain below": (
        lambda a: xnp.where(a > 0, xnp.log(xnp.sqrt(a) * 3) / xnp.sqrt(a), 0.0)[1:].sum(),
        x,
        [0, 0.5 - 0.5 * np.log(3), 1 / 16 - np.log(6) / 16],
    ),
    "where of a root before a loop": (
        lambda a: lax.fori_loop(0, 3, lambda _, u: u + xnp.where(u < 1, 0.0, xnp.sqrt(a) * u), xnp.sign(a)).sum(),
        x,
        [0, 6, 6.75],  # of (1 + sqrt(a))**3
    ),
    "an infinite factor": (lambda a: xnp.where(a < 0, a * np.inf, a).sum(), x, [1, 1, 1]),
    "an element's infinite factor": (lambda a: xnp.where(x > 0, a.at[0].multiply(np.inf), a).sum(), x, [1, 1, 1]),
    "infinite factors": (lambda a: xnp.where(x > 0, a.at[[0, 1, 0]].multiply([np.inf, 2, 0]), 0).sum(), x, [0, 2, 1]),
    "cumulative products": (
        lambda a: xnp.where(x < 2, xnp.cumprod(a * np.array([1, 1, np.inf])), 0).sum(),
        x,
        [2, 0, 0],
    ),
    "a root mean square": (lambda a: xnp.sqrt((a**2).mean()), zeros, zeros),
    "a root of a multiple": (lambda a: xnp.sqrt(0.5 * (a * a).sum()), zeros, zeros),
    "a power of a quotient": (lambda a: ((a**2).sum() / 2) ** 0.5, zeros, zeros),
    "a root of weighted squares": (lambda a: xnp.sqrt((np.array([1.0, 2.0, 3.0]) * a**2).sum()), zeros, zeros),
    "a root of a quadratic form": (lambda a: xnp.sqrt(a @ (np.diag([1.0, 2.0, 3.0]) @ a)), zeros, zeros),
    "a root of products of squares": (lambda a: xnp.sqrt((x[2] * (x[1] * a) ** 2 * (a + 5) ** 2).sum()), zeros, zeros),
    "a scaled norm": (lambda a: xnp.sqrt(((a / xnp.array([1.0, 2.0, 3.0])) ** 2).sum()), zeros, zeros),
    "a scalar divisor": (lambda a: xnp.where(a[0] > 0, a[1:] / a[0], a[1:]).sum(), x, [0, 1, 1]),
    "broadcast": (lambda a: xnp.where(np.eye(3) > 0, xnp.sqrt(a)[:, None] * a, 0.0)[1:].sum(), x, [0, 1.5, 3.0]),
    "reductions": (lambda a: xnp.where(a.sum() > 9, xnp.sqrt((a[:1] ** 2).sum()), a.sum()), x, [1, 1, 1]),
    "reshaped": (
        lambda a: xnp.where(np.array([[False], [True], [True]]), xnp.sqrt(a).reshape(3, 1), 0).sum(),
        x,
        [0, 0.5, 0.25],
    ),
    "nested": (lambda a: xnp.where(a > 0, xnp.where(a > 2, 1 / a, xnp.log(a)), 0.0).sum(), x, [0, 1, -1 / 16]),
    "norm": (lambda a: xnp.linalg.norm(a), zeros, [0, 0, 0]),
    "norm squared": (lambda a: xnp.linalg.norm(a) ** 2, zeros, [0, 0, 0]),
    "root of squares": (lambda a: xnp.sqrt((a**2).sum()), zeros, [0, 0, 0]),
    "power of squares": (lambda a: (a * a).sum() ** 0.5, zeros, [0, 0, 0]),
    "root of a dot product": (lambda a: xnp.sqrt(a @ a), zeros, [0, 0, 0]),
    "rows of norms": (lambda a: xnp.sqrt((a.reshape(3, 1) ** 2).sum(1)).sum(), x, [0, 1, 1]),
    "hypot": (lambda a: xnp.hypot(a[0], a[1]), zeros, [0, 0, 0]),
    "root": (lambda a: xnp.sqrt(a[1]), zeros, [0, np.inf, 0]),
    "arctan2": (lambda a: xnp.arctan2(a[0], a[1]), zeros, [0, 0, 0]),
    "abs": (lambda a: xnp.abs(a).sum(), np.array([0.0, -1.0, 2.0]), [0, -1, 1]),
    "maximum at a tie": (lambda a: xnp.maximum(a, 1.0).sum(), x, [0, 0.5, 1]),
    "max at ties": (lambda a: a.max(), np.array([2.0, 2.0, 1.0]), [0.5, 0.5, 0]),
    "powers": (lambda a: (a[0] ** np.arange(3)).sum(), zeros, [1, 0, 0]),
    "float powers": (lambda a: (a[0] ** np.arange(3.0)).sum(), zeros, [1, 0, 0]),
    "exponent": (lambda a: 0.0 ** a[1], x, [0, 0, 0]),
    "prod": (lambda a: xnp.prod(a), x, [4, 0, 0]),
    "prod of two zeros": (lambda a: xnp.prod(a), np.array([0.0, 0.0, 3.0]), [0, 0, 0]),
    "cumprod": (lambda a: xnp.cumprod(a[::-1]).sum(), x, [4, 4, 2]),
    "sinc": (lambda a: xnp.sinc(a).sum(), zeros, [0, 0, 0]),
    "logaddexp": (lambda a: xnp.logaddexp(a[0], -xnp.inf), x, [1, 0, 0]),
    "inside of a loop": (
        lambda a: lax.fori_loop(0, 2, lambda i, c: c + xnp.where(a > 0, xnp.sqrt(a), 0.0), zeros).sum(),
        x,
        [0, 1, 0.5],
    ),
    "above a call": (lambda a: xnp.where(a > 0, xform.jit(xnp.sqrt)(a), 0.0).sum(), x, [0, 0.5, 0.25]),
    "below a call": (lambda a: xnp.log(xform.jit(lambda b: xnp.where(b > 0, b, 1.0))(a * 1.0)).sum(), x, [0, 1, 0.25]),
    "above checkpoint": (lambda a: xnp.where(a > 0, xform.checkpoint(xnp.sqrt)(a), 0.0).sum(), x, [0, 0.5, 0.25]),
    "above scan": (
        lambda a: xnp.where(a > 0, lax.scan(lambda c, b: (c, xnp.sqrt(b)), 0.0, a)[1], 0.0).sum(),
        x,
        [0, 0.5, 0.25],
    ),
    "frobenius": (
        lambda a: xnp.linalg.norm(xnp.diag(a[:3])),
        np.array([1.0, 1.0, 2.0]),
        np.array([1, 1, 2]) / np.sqrt(6),
    ),
}
# Forward mode has the same values where a tangent isn't multiplied by infinity on its way: a kink in the middle is one.
MODES = {
    "grad": lambda f, a: [xform.grad(f)(a) for _ in range(7)][-1],
    "jit of grad": lambda f, a: xform.jit(xform.grad(f))(a),
    "grad of jit": lambda f, a: xform.grad(xform.jit(f))(a),
    "vmap of grad": lambda f, a: xform.vmap(xform.grad(f))(np.stack([a, a]))[1],
    "jacfwd": lambda f, a: xform.jacfwd(f)(a),
    "vjp": lambda f, a: xform.vjp(f, a)[1](1.0)[0],
    "grad of checkpoint": lambda f, a: xform.grad(xform.checkpoint(f))(a),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_gradients(name, mode):
    f, at, expected = CASES[name]
    np.testing.assert_allclose(MODES[mode](f, at), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["where of a root", "where of a quotient", "nested", "a chain below", "rows of norms"])
def test_second_derivatives(name):
    """Away from the kinks the same as without masks, at them zero."""
    f, _, _ = CASES[name]
    at = np.array([0.0, 1.0, 4.0])
    expected = xform.hessian(lambda a: f(xnp.concatenate([np.zeros(1), a])))(at[1:])
    for second in (xform.hessian, xform.jit(xform.hessian(f)), lambda f: xform.jacrev(xform.grad(f))):
        found = second(f)(at) if second is xform.hessian or not hasattr(second, "lower") else second(at)
        np.testing.assert_allclose(found[1:, 1:], expected, rtol=1e-12, atol=1e-14)
        if name != "rows of norms":
            assert (np.asarray(found)[0] == 0).all()


def test_a_cotangent_that_happens_to_be_zero_keeps_its_derivative():
    """d2/dx dy of where(True, x y, 0) at 0 is 1: zeros annihilate in products, not in their derivatives."""
    f = lambda a, b: xnp.where(True, xnp.sqrt(a) * b, 0.0)  # noqa: E731
    assert float(xform.grad(xform.grad(f, 0), 1)(4.0, 0.0)) == 0.25
    assert float(xform.jit(xform.grad(xform.grad(f, 0), 1))(4.0, 0.0)) == 0.25


def test_nothing_is_paid_without_masks():
    f = lambda a: (xnp.sin(a) * a / (1 + a**2)).sum()  # noqa: E731
    assert "zero_product" not in str(xform.make_jaxpr(xform.grad(f))(x))
    # An infinite derivative is settled by the third multiplication: here the square's, the weights', the first sine's.
    g = lambda a: xnp.sqrt((x * xnp.sin(xnp.sin(xnp.sin(a))) ** 2).sum())  # noqa: E731
    assert str(xform.make_jaxpr(xform.grad(g))(x)).count("zero_product") == 1 + 3


# Of `a`, an array (3,) of anything. Where the operand of a root can't be zero, its derivative can't be infinite.
ROOTS_OF_POSITIVE_NUMBERS = {
    "softened": lambda a: xnp.sqrt((a**2).sum() + 0.01),
    "variance": lambda a: xnp.sqrt(xnp.var(a) + 1e-5),
    "power": lambda a: ((a[:, None] - a) ** 2 + 0.1) ** -1.5,
    "quotient": lambda a: (1 + a * a / 3) ** 0.5,
    "product of an array with itself": lambda a: xnp.sqrt(1 + xnp.dot(a, a)),
    "products by rows": lambda a: (lambda rows: xnp.sqrt(1 + xnp.einsum("ij,ij->i", rows, rows)))(a[:, None]),
    "bounded": lambda a: xnp.sqrt(xnp.maximum(a, 1e-3)),
    "least": lambda a: xnp.sqrt(xnp.minimum(abs(a) + 1, xnp.cosh(a))),
    "root of a root": lambda a: xnp.sqrt(1 + xnp.sqrt(1 + a**4)),
}
# The same where it can be zero, by underflow too.
ROOTS_OF_OTHERS = {
    "squares": lambda a: xnp.sqrt(a**2),
    "odd power": lambda a: xnp.sqrt(a**3 + 1),
    "difference": lambda a: xnp.sqrt(a**2 - 1),
    "underflow": lambda a: xnp.sqrt(xnp.exp(a)),
    "a product": lambda a: xnp.sqrt((a**2 + 1) * 1e-300),
    "an empty sum": lambda a: xnp.sqrt(xnp.sum(a[:0] ** 2 + 1)),
    "a product of different arrays": lambda a: xnp.sqrt(1 + xnp.dot(a, a[::-1])),
    "argument": lambda a: xnp.sqrt(a),
    "the modulus of a complex function": lambda a: xnp.sqrt(abs(xnp.cosh(a * 1j)) ** 0.5),
    "a product with its transpose": lambda a: xnp.sqrt(1 + xnp.dot(a[:, None], a[None])),
}


@pytest.mark.parametrize("name", [*ROOTS_OF_POSITIVE_NUMBERS, *ROOTS_OF_OTHERS])
def test_roots_of_positive_numbers_need_no_mask(name):
    f = {**ROOTS_OF_POSITIVE_NUMBERS, **ROOTS_OF_OTHERS}[name]
    for derivative in (xform.jacfwd, xform.jacrev):
        program = str(xform.make_jaxpr(derivative(lambda a: f(a).sum()))(np.array([0.5, 1.5, 2.0])))
        assert ("zero_product" in program) == (name in ROOTS_OF_OTHERS)
    if name in ROOTS_OF_POSITIVE_NUMBERS:
        a = np.array([0.0, 1.5, 2.0])
        np.testing.assert_allclose(xform.jit(xform.jacrev(f))(a), xform.jacfwd(f)(a), rtol=1e-12, atol=1e-14)


def test_signs_are_found_once():
    """Each of these sums has the last one twice: 2^60 ways lead to the argument."""

    def doubled(a):
        a = abs(a) + 1
        for _ in range(60):
            a = a + a
        return xnp.sqrt(a)

    assert "zero_product" not in str(xform.make_jaxpr(xform.grad(doubled))(2.0))
    np.testing.assert_allclose(xform.jit(xform.grad(doubled))(2.0), 2.0**30 / (2 * np.sqrt(3)), rtol=1e-14)


def test_rules_of_signs_are_of_primitives():
    names = {getattr(primitives, name).name for name in primitives.__all__}
    assert set(signs._RULES) <= names


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex128"])
def test_other_dtypes(dtype):
    a = xnp.array([0.0, 1.0, 4.0], dtype)
    f = lambda a: xnp.where(a != 0, 1 / a, 0 * a).sum().real  # noqa: E731
    found = xform.grad(f)(a)
    assert found.dtype == a.dtype
    np.testing.assert_allclose(np.asarray(found).astype(complex), [0, -1, -1 / 16], rtol=1e-2)
