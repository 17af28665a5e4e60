"""The fast ways outside XLA give what the general ways give: plans of reverse mode, host programs, the fusion rule."""

import gc
import weakref

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax
from xform.backends import xla
from xform.core.config import small_programs
from xform.interpreters import fusion, host, plans, reverse

x = np.array([0.3, 0.7, 1.9])
m = np.array([[2.0, 0.5, 0.1], [0.5, 1.5, 0.2], [0.1, 0.2, 1.0]])

# Functions of one array to a scalar, with several kinds of operations on the tape.
FUNCTIONS = {
    "elementwise": (lambda a: xnp.sum(xnp.sin(a) * a + a**2 / (1 + a)), x),
    "scalars": (lambda a: a * 0.5 - 2 * xnp.exp(-a) + a / 3, np.float64(0.4)),
    "constants": (lambda a: xnp.i0(a).sum() + xnp.sinc(a).sum(), x),
    "weak": (lambda a: 0.5 * a * a, 1.5),
    "products": (lambda a: xnp.sum(xnp.tanh(m @ a) @ m), x),
    "indexing": (lambda a: a[0] * a[1:].sum() + a[::-1][0] ** 2 + a[xnp.array([0, 0, 2])].sum(), x),
    "several results": (lambda a: sum(p.sum() for p in xnp.split(a * a, 3)) + xnp.linalg.slogdet(m * a)[1], x),
    "eigenvalues": (lambda a: xnp.linalg.eigh(m + xnp.diag(a))[0] @ xnp.arange(3.0), x),
    "selection": (lambda a: xnp.where(a > 0.5, a**2, -a).sum() + xnp.max(a), x),
    "sorting": (lambda a: xnp.sort(a)[::-1] @ xnp.arange(3.0), x),
    "loops": (lambda a: lax.fori_loop(0, 3, lambda i, c: xnp.sin(c) * a, a).sum(), x),
    "branches": (lambda a: lax.cond(a[0] > 0, xnp.sin, xnp.cos, a).sum(), x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_repeated_gradients_are_those_of_jit(name):
    """The first gradient goes the general way, the next make and use plans, then whole ways back; jit knows none."""
    f, at = FUNCTIONS[name]
    expected = xform.jit(xform.grad(f))(at)
    for _ in range(7):
        np.testing.assert_allclose(xform.grad(f)(at), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tapes_with_plans_serve_every_transformation(name):
    f, at = FUNCTIONS[name]
    for _ in range(3):  # until there are plans
        value, pullback = xform.vjp(f, at)
        _, push = xform.linearize(f, at)
    gradient = np.asarray(xform.jit(xform.grad(f))(at))
    np.testing.assert_allclose(value, f(at), rtol=1e-12)
    np.testing.assert_allclose(pullback(2.0)[0], 2 * gradient, rtol=1e-11)
    # Traced cotangents and tangents go the general way back.
    np.testing.assert_allclose(
        xform.vmap(lambda ct: pullback(ct)[0])(np.arange(3.0)), np.multiply.outer(np.arange(3.0), gradient), rtol=1e-11
    )
    np.testing.assert_allclose(xform.jit(lambda ct: pullback(ct)[0])(3.0), 3 * gradient, rtol=1e-11)
    np.testing.assert_allclose(xform.grad(lambda ct: xnp.sum(pullback(ct)[0]))(1.0), gradient.sum(), rtol=1e-11)
    direction = np.ones_like(np.asarray(at))
    np.testing.assert_allclose(push(direction), gradient.sum(), rtol=1e-11)
    np.testing.assert_allclose(
        xform.vmap(push)(np.stack([direction, 2 * direction])), [1 * gradient.sum(), 2 * gradient.sum()], rtol=1e-11
    )


def test_an_operation_is_linearized_once(monkeypatch):
    made = []
    original = plans.Plan.__init__
    monkeypatch.setattr(
        plans.Plan, "__init__", lambda self, p, *a: (made.append(p.jaxpr.name), original(self, p, *a))[1]
    )

    def loss(a):
        for _ in range(5):
            a = lax.sin(lax.mul(a, a))
        return a.sum()

    at = np.random.default_rng(0).normal(size=(7, 3))  # a shape that no other test has
    xform.grad(loss)(at)
    xform.grad(loss)(at)
    assert sorted(made) == ["mul", "sin", "sum"]


def test_a_repeated_tape_goes_back_as_one_program(monkeypatch):
    def loss(a, b, unused):
        y = xnp.sin(a * b)
        return xnp.sum(y * y + y), (xnp.cos(a), 3)

    a, b = np.array([[0.1, 0.2]]), np.array([[0.3], [0.4], [0.5]])
    gradient = xform.grad(loss, argnums=(0, 1, 2), has_aux=True)
    first, _ = gradient(a, b, 1.0)
    for _ in range(6):
        gradient(a, b, 1.0)
    monkeypatch.setattr(reverse, "backward_pass", None)
    again, aux = gradient(a, b, 1.0)
    y = np.sin(a * b)
    slope = (2 * y + 1) * np.cos(a * b)
    for g in (first, again):
        np.testing.assert_allclose(g[0], (slope * b).sum(0, keepdims=True), rtol=1e-14)
        np.testing.assert_allclose(g[1], (slope * a).sum(1, keepdims=True), rtol=1e-14)
        assert float(g[2]) == 0.0
    np.testing.assert_array_equal(aux[0], np.cos(a))
    assert aux[1] == 3


def test_the_way_back_follows_the_path_taken():
    """Python's control flow may take another path at every call."""

    def f(a):
        while a < 10:
            a = a * a if a > 2 else a + 1
        return a

    for _ in range(6):
        for at, slope in ((1.5, 4 * 2.5**3), (3.0, 4 * 3.0**3), (9.0, 18.0), (11.0, 1.0)):
            np.testing.assert_allclose(xform.grad(f)(at), slope)


def test_the_way_back_lets_residuals_go():
    seen = []

    def loss(a):
        seen.append(weakref.ref(a.primal._host.base if a.primal._host.base is not None else a.primal._host))
        for _ in range(3):
            a = xnp.sin(a)
        return a.sum()

    for _ in range(6):
        xform.grad(loss)(xnp.arange(4.0) + 1)
    gc.collect()
    assert all(r() is None for r in seen)


@pytest.mark.parametrize("use", [lambda a: xnp.sin(a), lambda a: a * 2.0, lambda a: xnp.sum(a)])
def test_leaked_tracers_are_errors_with_plans_too(use):
    kept = []

    def loss(a):
        for _ in range(3):
            use(a)
        kept.append(a)
        return xnp.sum(a)

    for _ in range(6):
        xform.grad(loss)(x)
    with pytest.raises(xform.errors.UnexpectedTracerError, match="after its trace, grad, has ended"):
        use(kept[0])


def test_options_reach_functions_that_have_plans():
    f = lambda a: xnp.sum(a * np.arange(3, dtype=np.int32))  # noqa: E731
    for _ in range(6):
        xform.grad(f)(x)
    with xform.numpy_dtype_promotion("strict"), pytest.raises(xform.errors.TypePromotionError):
        xform.grad(f)(x)


def test_residuals_are_what_the_derivative_needs():
    """Sums keep nothing, products their operands."""
    for _ in range(3):
        _, pullback = xform.vjp(lambda a: xnp.sum(a + a), x)
    assert all(not eqn.residuals for eqn in pullback.jaxpr.eqns if isinstance(eqn, plans.PlanCallEqn))


def test_nested_gradients_do_not_mix():
    f = lambda a: a * xform.grad(lambda b: a * b * b)(2.0)  # noqa: E731  (4 a^2)
    for _ in range(3):
        assert float(xform.grad(f)(3.0)) == 24.0
        assert float(xform.grad(xform.grad(f))(3.0)) == 8.0


# Host programs.


def test_small_programs_are_not_compiled():
    f = lambda a: xnp.sin(a) * a + 1.0  # noqa: E731
    before = xla.compile_count
    on_host = xform.jit(f)(x)
    assert xla.compile_count == before
    with small_programs("xla"):
        on_xla = xform.jit(f)(x)
    assert xla.compile_count == before + 1
    np.testing.assert_allclose(on_host, on_xla, rtol=1e-15)
    assert host.is_small(xform.jit(f).trace(x).jaxpr)[0]


@pytest.mark.parametrize(
    "f, at",
    [
        (lambda a: xnp.sum(xnp.sin(a)), np.ones(10_000)),  # much data
        (lambda a: xnp.sin(xnp.sin(xnp.sin(xnp.sin(xnp.sin(xnp.sin(xnp.sin(xnp.sin(a)))))))), x),  # many operations
        (lambda a: xnp.linalg.inv(a), m),  # not a ufunc
    ],
)
def test_other_programs_are(f, at):
    assert not host.is_small(xform.jit(f).trace(at).jaxpr)[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_numpy_backend_runs_whole_programs(name):
    f, at = FUNCTIONS[name]
    before = xla.compile_count
    np.testing.assert_allclose(xform.jit(f, backend="numpy")(at), f(at), rtol=1e-13)
    gradient = xform.jit(xform.grad(f), backend="numpy")(at)
    assert xla.compile_count == before
    np.testing.assert_allclose(gradient, xform.grad(f)(at), rtol=1e-12)


def test_host_functions_free_what_they_need_no_more():
    jaxpr = xform.make_jaxpr(lambda a: xnp.sum(xnp.sin(a) * 2))(x)
    program = host.host_function(jaxpr)
    assert program(x)[0] == pytest.approx(2 * np.sin(x).sum())


# The fusion rule.


def unrolled(steps):
    def f(q, p):
        for _ in range(steps):
            d = q[:, None] - q[None, :]
            w = (d * d + 0.1) ** -1.5
            p = p - 0.01 * xnp.sum(d * w, axis=1)
            q = q + 0.01 * p
        return xnp.sum(q * q)

    return xform.make_jaxpr(xform.grad(f))(np.ones(4), np.ones(4)).jaxpr


def test_fusion_is_off_for_long_unrolled_programs_only():
    short, long = unrolled(2), unrolled(60)
    assert fusion.options_for(short, "cpu") == {}
    assert fusion.options_for(long, "cpu") == {"xla_disable_hlo_passes": "fusion"}
    assert fusion.options_for(long, "cuda") == {}

    def layers(a):
        for _ in range(200):
            a = xnp.tanh(m @ a)
        return a.sum()

    assert fusion.options_for(xform.make_jaxpr(xform.grad(layers))(x).jaxpr, "cpu") == {}


def test_the_fusion_rule_looks_into_calls_and_loops():
    def f(q):
        for _ in range(60):
            d = q[:, None] - q[None, :]
            q = q + 0.01 * xnp.sum(d * (d * d + 0.1) ** -1.5, axis=1)
        return xnp.sum(q * q)

    inside = [xform.grad(xform.jit(f)), lambda q: lax.scan(lambda c, _: (xform.grad(f)(c), None), q, None, length=3)[0]]
    for program in inside:
        jaxpr = xform.make_jaxpr(program)(np.ones(4)).jaxpr
        assert len(jaxpr.eqns) < fusion.SMALLEST_PROGRAM
        assert fusion.options_for(jaxpr, "cpu") == {"xla_disable_hlo_passes": "fusion"}


def test_programs_without_fusion_compute_the_same():
    def f(q):
        for _ in range(40):
            q = q + 0.01 * xnp.sum(xnp.sin(q[:, None] - q[None, :]), axis=1)
        return xnp.sum(q**2)

    np.testing.assert_allclose(xform.jit(xform.grad(f))(x), xform.grad(f)(x), rtol=1e-12)


def test_indices_have_plans():
    a = np.arange(12.0).reshape(3, 4)
    f = lambda a: a[0, 1] * a[-1][2] + a[1:, ::2].sum() * a[2, -1] + a[:, 1][0] + a[..., 0].sum() + a[True, 0][0, 0]  # noqa: E731
    expected = xform.jit(xform.grad(f))(a)
    for _ in range(6):
        np.testing.assert_array_equal(xform.grad(f)(a), expected)
    g = xform.grad(lambda a, i: a[i])
    for i, slope in ((0, [1, 0, 0]), (True, None), (1, [0, 1, 0]), (np.int64(1), [0, 1, 0]), (1, [0, 1, 0])):
        for _ in range(3):
            if slope is not None:
                np.testing.assert_array_equal(g(x, i), slope)
    for _ in range(3):
        with pytest.raises(IndexError, match="out of bounds"):
            g(x, 3)
