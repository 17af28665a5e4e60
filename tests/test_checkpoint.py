"""`checkpoint` and its policies; the residuals that are chosen without it."""

import collections

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax
from xform.ad_checkpoint import checkpoint_name, print_saved_residuals, saved_residuals

x = np.array([0.3, -0.7, 1.9])
w = np.array([[0.5, 0.1, 0.2], [0.3, -0.4, 0.6], [0.2, 0.7, -0.1]])
policies = xform.checkpoint_policies


def layer(a, w):
    return xnp.tanh(checkpoint_name(xnp.sin(a @ w), "inner") * a)


def plain(a, w):
    return layer(layer(a, w), w).sum()


def nested(inner, outer):
    return lambda a, w: outer(lambda b: inner(layer)(inner(layer)(b, w), w).sum())(a)


POLICIES = {
    "none": None,
    "everything": policies.everything_saveable,
    "nothing": policies.nothing_saveable,
    "dots": policies.dots_saveable,
    "dots with no batch dims": policies.dots_with_no_batch_dims_saveable,
    "offload": policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
    "names": policies.save_only_these_names("inner"),
    "but names": policies.save_anything_except_these_names("inner"),
    "other names": policies.save_any_names_but_these("other"),
    "two": policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("inner")),
    "offload names": policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["other"],
        names_which_can_be_offloaded=["inner"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
}
USES = {
    "call": lambda f: f(x, w),
    "grad": lambda f: xform.grad(f, (0, 1))(x, w),
    "jit of grad": lambda f: xform.jit(xform.grad(f, (0, 1)))(x, w),
    "grad of jit": lambda f: xform.grad(xform.jit(f), (0, 1))(x, w),
    "jvp": lambda f: xform.jvp(f, (x, w), (x + 1, w - 1)),
    "hessian": lambda f: xform.hessian(f)(x, w),
    "grad of grad": lambda f: xform.jit(xform.grad(lambda a: (xform.grad(f)(a, w) ** 2).sum()))(x),
    "vmap of grad": lambda f: xform.vmap(xform.grad(f), (0, None))(np.stack([x, 2 * x]), w),
    "grad of vmap": lambda f: xform.grad(lambda w: xform.vmap(f, (0, None))(np.stack([x, 2 * x]), w).sum())(w),
    "grad of scan": lambda f: xform.grad(lambda a: lax.scan(lambda c, _: (c + f(c, w), c), a, None, 3)[0].sum())(x),
    "linearize": lambda f: xform.linearize(f, x, w)[1](x + 1, w),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("use", USES)
def test_values_are_those_without(use, policy):
    f = xform.checkpoint(plain, policy=POLICIES[policy])
    g = nested(lambda h: xform.remat(h, policy=POLICIES[policy]), xform.checkpoint)
    expected = xform.tree.leaves(USES[use](plain))
    for h in (f, g) if policy in ("none", "dots") else (f,):
        for a, b in zip(xform.tree.leaves(USES[use](h)), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def counted(f, *args):
    """How often each primitive occurs in a jaxpr, inner ones included."""
    count = collections.Counter()

    def visit(jaxpr):
        for eqn in jaxpr.eqns:
            count[eqn.primitive.name] += 1
            for value in eqn.params.values():
                if hasattr(value, "jaxpr"):
                    visit(value.jaxpr)

    visit(xform.make_jaxpr(f)(*args).jaxpr)
    return count


def test_what_is_computed_again():
    f = lambda a: xnp.sin(xnp.sin(xnp.sin(a)))  # noqa: E731
    sines = lambda f: counted(xform.value_and_grad(f), 0.5)["sin"]  # noqa: E731
    assert sines(f) == 3
    assert sines(xform.checkpoint(f)) == 5  # the last one of the recomputation is not needed
    assert sines(xform.checkpoint(f, policy=policies.everything_saveable)) == 3
    g = lambda a: xnp.sin(a @ w) @ w  # noqa: E731
    loss = lambda h: lambda a: (h(a) ** 2).sum()  # noqa: E731
    without = counted(xform.grad(loss(g)), x)["dot_general"]
    assert counted(xform.grad(loss(xform.checkpoint(g))), x)["dot_general"] == without + 1
    assert counted(xform.grad(loss(xform.checkpoint(g, policy=policies.dots_saveable))), x)["dot_general"] == without
    # A policy sees into calls.
    h = xform.checkpoint(xform.jit(g), policy=policies.dots_saveable)
    assert counted(xform.grad(loss(h)), x)["dot_general"] == without


def test_the_compiler_must_not_undo_it():
    f = xform.checkpoint(lambda a: xnp.sin(xnp.sin(xnp.sin(a))))
    text = xform.jit(xform.grad(f)).lower(0.5).as_text()
    assert text.count("optimization_barrier") == 1
    free = xform.checkpoint(lambda a: xnp.sin(xnp.sin(xnp.sin(a))), prevent_cse=False)
    assert "optimization_barrier" not in xform.jit(xform.grad(free)).lower(0.5).as_text()
    # In the compiled program the sines are there twice.
    with xform.core.config.small_programs("xla"):
        compiled = xform.jit(xform.grad(f)).lower(np.ones(1000).sum()).compile()
    assert float(compiled(0.5)) == pytest.approx(float(xform.grad(f)(0.5)), rel=1e-14)


def test_saved_residuals(capsys):
    def f(a, b):
        c = checkpoint_name(xnp.sin(a @ w), "inner")
        return (xnp.exp(c) * b).sum()

    found = saved_residuals(f, x, 2 * x)
    assert sorted(str(a) for a, _ in found) == ["f64[3,3]", "f64[3]", "f64[3]", "f64[3]"] or len(found) >= 3
    print_saved_residuals(xform.checkpoint(f, policy=policies.save_only_these_names("inner")), x, 2 * x)
    out = capsys.readouterr().out
    assert "from argument 0" in out and "output of checkpoint from test_checkpoint.py" in out
    print_saved_residuals(lambda a: xnp.exp(checkpoint_name(a @ w, "dot")), x)
    assert "exp" in capsys.readouterr().out


def test_static_arguments():
    @xform.checkpoint
    def f(a):
        return a

    g = xform.checkpoint(lambda a, n, flag=True: a**n if flag else a, static_argnums=1, static_argnames="flag")
    assert float(xform.grad(g)(3.0, 2)) == 6.0
    assert float(xform.grad(lambda a: g(a, 2, flag=False))(3.0)) == 1.0
    assert float(xform.grad(lambda t: xform.checkpoint(lambda t, *, k: t["a"] * k)(t, k=3.0))({"a": 2.0})["a"]) == 3.0


# Without annotations.


def residual_bytes(f, *args):
    return sum(a.size * a.dtype.itemsize for a, what in saved_residuals(f, *args) if what.startswith("output"))


def test_cheap_things_are_computed_again():
    n = np.linspace(0, 1, 1000)
    assert residual_bytes(lambda a: (a * a * a + 2 * a - a**4 * xnp.maximum(a, 0.5)).sum(), n) == 0
    # A matrix product is not.
    m = np.ones((100, 100))
    assert residual_bytes(lambda a: ((a @ a) ** 3).sum(), m) == m.nbytes
    # Of exp(u), 2 (1 + exp(u)) and the quotient's derivative one is enough.
    assert residual_bytes(lambda a: (1 / (1 + xnp.exp(a @ m)) ** 2).sum(), m) == m.nbytes


def test_scans_stack_less():
    def body(c, _):
        c = xnp.sin(c) * xnp.cos(c) * c + c * c / (1 + c * c)
        return c, None

    f = lambda a: lax.scan(body, a, None, length=5)[0].sum()  # noqa: E731
    forward = xform.make_jaxpr(lambda a: xform.vjp(f, a)[0])(x)
    (scan,) = [e for e in forward.jaxpr.eqns if e.primitive.name == "scan"]
    assert len(scan.outvars) <= 3  # the carry, and at most two values per step
    np.testing.assert_allclose(xform.grad(f)(x), xform.grad(lambda a: _unrolled(body, a))(x), rtol=1e-12)


def _unrolled(body, a):
    for _ in range(5):
        a, _ = body(a, None)
    return a.sum()


@pytest.mark.parametrize("seed", range(10))
def test_gradients_with_chosen_residuals(seed):
    """Random straight-line programs: jit chooses residuals, eager evaluation doesn't."""
    rng = np.random.default_rng(seed)

    def f(a):
        rng = np.random.default_rng(seed)
        values = [a, a * 0.5]
        for _ in range(12):
            u, v = (values[i] for i in rng.integers(0, len(values), 2))
            kind = rng.integers(0, 6)
            values.append([u * v, xnp.sin(u), u + v, u / (2 + v * v), xnp.tanh(u @ w), xnp.where(u > v, u, v)][kind])
        return sum(values[-4:]).sum()

    at = rng.normal(size=3)
    expected = xform.grad(f)(at)
    np.testing.assert_allclose(xform.grad(xform.jit(f))(at), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(xform.jit(xform.grad(xform.jit(f)))(at), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(xform.hessian(xform.jit(f))(at), xform.hessian(f)(at), rtol=1e-9, atol=1e-11)


ERRORS = [
    (lambda: xform.checkpoint(3), TypeError, "checkpoint: expected a function"),
    (lambda: xform.checkpoint(xnp.sin, policy=3), TypeError, "policy must be a function"),
    (lambda: xform.checkpoint(xnp.sin, concrete=True), NotImplementedError, "static_argnums"),
    (lambda: xform.grad(xform.checkpoint(lambda a: "text"))(1.0), TypeError, "result of <lambda>"),
    (lambda: xform.checkpoint(lambda a: a)("text"), TypeError, "checkpoint of <lambda>: argument 0"),
    (lambda: checkpoint_name(x, 3), TypeError, "the name must be a string"),
    (
        lambda: policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"], offload_src="", offload_dst=""
        ),
        ValueError,
        "in both lists",
    ),
]


@pytest.mark.parametrize("call, kind, message", ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


# Policies and loops.


def looped(a, w):
    """A name, a call and a loop within the body of a loop, which runs backwards."""

    def inner(c, s):
        return xnp.sin(checkpoint_name(c * s, "deep")) + c, None

    def body(carry, s):
        c, n = carry
        b = xform.jit(lambda c: checkpoint_name(xnp.sin(c @ w), "inner"))(c)
        c = xnp.cos(xnp.exp(b) * s) + c
        c, _ = lax.scan(inner, c, xnp.arange(2.0) + n)
        return (c, n + 1), xnp.tanh(c)

    (c, _), ys = lax.scan(body, (a, 0.0), np.linspace(0.5, 1, 4), reverse=True)
    return c.sum() + (ys**2).sum()


LOOP_POLICIES = {
    **POLICIES,
    "deep": policies.save_only_these_names("deep"),
    "both": policies.save_only_these_names("deep", "inner"),
    "sums": lambda prim, *avals, **params: prim.name == "add",
    "sines": lambda prim, *avals, **params: prim.name == "sin",
}


@pytest.mark.parametrize("policy", LOOP_POLICIES)
@pytest.mark.parametrize("use", ["grad", "jit of grad", "hessian", "vmap of grad", "grad of scan", "linearize"])
def test_policies_see_into_loops(use, policy):
    with xform.enable_checks(True):
        found = USES[use](xform.checkpoint(looped, policy=LOOP_POLICIES[policy]))
        for a, b in zip(xform.tree.leaves(found), xform.tree.leaves(USES[use](looped)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def kept(f, *args):
    return sorted(str(a) for a, what in saved_residuals(f, *args) if what.startswith("output"))


@pytest.mark.parametrize(
    "policy, shapes, again",
    [
        ("nothing", [], {"sin": 2, "dot_general": 1, "exp": 1}),
        ("names", ["f64[4,3]"], {"sin": 1, "dot_general": 1, "exp": 1}),
        ("dots", ["f64[4,3]"], {"sin": 2, "dot_general": 0, "exp": 1}),
        ("deep", ["f64[4,2,3]"], {"sin": 2, "dot_general": 1, "exp": 1}),
        ("both", ["f64[4,2,3]", "f64[4,3]"], {"sin": 1, "dot_general": 1, "exp": 1}),
    ],
)
def test_what_is_kept_of_loops(policy, shapes, again):
    f = xform.checkpoint(looped, policy=LOOP_POLICIES[policy])
    assert kept(f, x, w) == shapes
    without, found = counted(xform.value_and_grad(looped), x, w), counted(xform.value_and_grad(f), x, w)
    assert {name: found[name] - without[name] for name in again} == again


def test_a_carry_is_kept_if_the_policy_keeps_what_it_comes_from():
    def f(a):
        return lax.scan(lambda c, _: (xnp.sin(c), None), a, None, 5)[0].sum()

    sines = xform.checkpoint(f, policy=LOOP_POLICIES["sines"])
    assert kept(sines, x) == ["f64[5,3]"]
    assert counted(xform.value_and_grad(sines), x)["sin"] == 1  # the loop is not run again
    assert counted(xform.value_and_grad(xform.checkpoint(f)), x)["sin"] == 2
    for n in (0, 1):
        g = xform.checkpoint(lambda a, n=n: lax.scan(lambda c, _: (xnp.sin(c), c), a, None, n)[0].sum(),
                             policy=LOOP_POLICIES["sines"])  # fmt: skip
        np.testing.assert_allclose(xform.grad(g)(x), np.cos(x) if n else np.ones(3))


def test_branches_keep_what_costs_least():
    """What a branch computes cheaply is computed again from the operand, so that others get nothing in its place."""

    def f(p, a):
        return lax.cond(
            p,
            lambda a: xnp.sin(xnp.exp(a) * 2) ** 2 * xnp.tanh(a),
            lambda a: a * xnp.cos(a) * xnp.exp(-a * a) + xnp.tanh(w @ a[:3]).sum(),
            a,
        )

    def looped(ps, a):
        return lax.scan(lambda c, p: (f(p, c), None), a, ps)[0].sum()

    a, ps = np.linspace(0, 1, 100), np.arange(3000) % 3 == 0
    conds = [e for e in xform.make_jaxpr(xform.value_and_grad(lambda a, p: f(p, a).sum()))(a, True).eqns
             if e.primitive.name == "cond"]  # fmt: skip
    assert [[str(v.aval) for v in e.outvars] for e in conds] == [["f64[100]", "f64[3]"], ["f64[100]"]]
    (forward, _) = [
        e for e in xform.make_jaxpr(xform.value_and_grad(looped, 1))(ps, a).eqns if e.primitive.name == "scan"
    ]
    assert [str(v.aval) for v in forward.outvars] == ["f64[100]", "f64[3000,3]", "f64[3000,100]"]
    for p in (True, False):
        found = xform.jit(xform.grad(lambda a, p=p: f(p, a).sum()))(a)
        np.testing.assert_allclose(found, xform.grad(lambda a, p=p: f(p, a).sum())(a), rtol=1e-13)
    lanes = np.array([True, False, True])
    batch = np.stack([a, a / 2, 1 - a])
    found = xform.vmap(xform.grad(lambda p, a: f(p, a).sum(), 1))(lanes, batch)
    for p, b, g in zip(lanes, batch, found, strict=True):
        np.testing.assert_allclose(g, xform.grad(lambda a, p=p: f(p, a).sum())(b), rtol=1e-13)


def test_prevent_cse_may_be_told_for_parts_of_the_arguments():
    def barriers(prevent_cse):
        f = xform.checkpoint(lambda d, x: xnp.sin(xnp.sin(d["a"] * x)), prevent_cse=prevent_cse)
        g = xform.jit(xform.grad(f, 1))
        assert float(g({"a": 2.0}, 3.0)) == pytest.approx(np.cos(np.sin(6.0)) * np.cos(6.0) * 2)
        return g.lower({"a": 2.0}, 3.0).as_text().count("optimization_barrier")

    assert barriers(True) == barriers(({"a": True}, False)) == barriers((False, True)) > 0
    assert barriers(False) == barriers((False, {})) == barriers(({"a": False}, False)) == 0


def test_static_arguments_by_number_and_by_name():
    def f(x, mode="sin"):
        return xnp.sin(x) if mode == "sin" else xnp.cos(x)

    for options in ({"static_argnums": 1}, {"static_argnums": -1}, {"static_argnames": "mode"}):
        g = xform.checkpoint(f, **options)
        slopes = [xform.grad(g)(0.5), xform.grad(g)(0.5, "sin"), xform.grad(lambda x: g(x, mode="sin"))(0.5)]  # noqa: B023
        np.testing.assert_allclose(slopes, np.cos(0.5))
        np.testing.assert_allclose(xform.jit(xform.grad(lambda x: g(x, mode="cos")))(0.5), -np.sin(0.5))  # noqa: B023
    with pytest.raises(ValueError, match=r"checkpoint of f: there is no argument 'made' in \(x, mode='sin'\)"):
        xform.checkpoint(f, static_argnames="made")
    with pytest.raises(ValueError, match="checkpoint of f: argument number 2 is out of range"):
        xform.checkpoint(f, static_argnums=2)
