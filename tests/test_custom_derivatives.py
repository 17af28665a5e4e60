"""`custom_jvp`, `custom_vjp`, `custom_gradient`, `closure_convert`."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax
from xform.custom_derivatives import CustomVJPPrimal, SymbolicZero, linear_call
from xform.errors import UnexpectedTracerError

x = np.array([0.3, -0.7, 1.9])


def jvp_sine(calls=None):
    """sin(x) * y with a rule for forward mode, that counts its uses."""

    @xform.custom_jvp
    def f(x, y):
        return xnp.sin(x) * y

    @f.defjvp
    def rule(primals, tangents):
        (x, y), (tx, ty) = primals, tangents
        if calls is not None:
            calls.append("jvp")
        return f(x, y), xnp.cos(x) * y * tx + xnp.sin(x) * ty

    return f


def vjp_sine(calls=None):
    """The same with a rule for reverse mode."""

    @xform.custom_vjp
    def f(x, y):
        return xnp.sin(x) * y

    def forward(x, y):
        if calls is not None:
            calls.append("fwd")
        return f(x, y), {"cos": xnp.cos(x), "sin": xnp.sin(x), "y": y}

    def backward(kept, ct):
        if calls is not None:
            calls.append("bwd")
        return ct * kept["cos"] * kept["y"], ct * kept["sin"]

    f.defvjp(forward, backward)
    return f


def plain(x, y):
    return xnp.sin(x) * y


def scanned(f):
    return lambda x, y: lax.scan(lambda c, a: (f(c, a), f(a, c)), x, xnp.stack([y, x, y]))


TRANSFORMATIONS = {
    "call": lambda f: f(x, 2.0 * x),
    "jit": lambda f: xform.jit(f)(x, 2.0 * x),
    "jvp": lambda f: xform.jvp(f, (x, 2.0 * x), (x + 1, x - 1)),
    "jvp of one argument": lambda f: xform.jvp(lambda a: f(a, x + 3), (x,), (x + 1,)),
    "vjp": lambda f: xform.vjp(f, x, 2.0 * x)[1](x + 1),
    "grad": lambda f: xform.grad(lambda a, b: f(a, b).sum(), (0, 1))(x, 2.0 * x),
    "jit of grad": lambda f: xform.jit(xform.grad(lambda a, b: f(a, b).sum(), (0, 1)))(x, 2.0 * x),
    "grad of jit": lambda f: xform.grad(lambda a, b: xform.jit(f)(a, b).sum(), (0, 1))(x, 2.0 * x),
    "jvp of jit": lambda f: xform.jvp(xform.jit(f), (x, 2.0 * x), (x + 1, x - 1)),
    "linearize": lambda f: xform.linearize(f, x, 2.0 * x)[1](x + 1, x - 1),
    "vmap": lambda f: xform.vmap(f, (0, None))(x, 2.0),
    "vmap of rows": lambda f: xform.vmap(f, (1, 0), 1)(np.outer(x, x), x),
    "vmap of grad": lambda f: xform.vmap(xform.grad(f, (0, 1)), (0, None))(x, 2.0),
    "grad of vmap": lambda f: xform.grad(lambda a, b: (xform.vmap(f, (0, None))(a, b) * x).sum(), (0, 1))(x, 2.0),
    "grad of vmap of rows": lambda f: xform.grad(lambda a: (xform.vmap(f, (1, None), 1)(a, x) ** 2).sum())(
        np.outer(x, x)
    ),
    "jvp of vmap": lambda f: xform.jvp(lambda b: xform.vmap(f, (0, None))(x, b), (2.0,), (3.0,)),
    "jit of vmap of grad of jit": lambda f: xform.jit(xform.vmap(xform.grad(xform.jit(f))))(x, 2.0 * x),
    "hessian": lambda f: xform.hessian(lambda a: (f(a, a) ** 2).sum())(x),
    "grad of grad": lambda f: xform.grad(xform.grad(f))(0.3, 2.0),
    "jacfwd of jacfwd": lambda f: xform.jacfwd(xform.jacfwd(f))(0.3, 2.0),
    "jacrev of jacfwd": lambda f: xform.jacrev(xform.jacfwd(f, (0, 1)), (0, 1))(0.3, 2.0),
    "jacfwd of jacrev": lambda f: xform.jacfwd(xform.jacrev(f, (0, 1)), (0, 1))(0.3, 2.0),
    "scan": lambda f: scanned(f)(x, 2.0 * x),
    "grad of scan": lambda f: xform.grad(lambda a, b: scanned(f)(a, b)[1].sum(), (0, 1))(x, 2.0 * x),
    "jvp of scan": lambda f: xform.jvp(scanned(f), (x, 2.0 * x), (x + 1, x - 1)),
    "jit of hessian of scan": lambda f: xform.jit(xform.hessian(lambda a: scanned(f)(a, a)[0].sum()))(x),
    "vmap of grad of scan": lambda f: xform.vmap(xform.grad(lambda a, b: scanned(f)(a, b)[1].sum()))(x, 2.0 * x),
    "grad of cond": lambda f: xform.grad(lambda a: lax.cond(a > 0, f, lambda u, v: u, a, 2.0))(0.3),
    "jit of grad of cond": lambda f: xform.jit(xform.grad(lambda a: lax.cond(a > 0, f, lambda u, v: u, a, 2.0)))(0.3),
    "vmap of jvp": lambda f: xform.vmap(lambda a, t: xform.jvp(f, (a, 2.0), (t, 0.0)))(x, x + 1),
}


@pytest.mark.parametrize("make", [jvp_sine, vjp_sine])
@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_right_rules_change_nothing(make, name):
    transformation = TRANSFORMATIONS[name]
    calls = []
    found = transformation(make(calls))
    expected = transformation(plain)
    assert xform.tree.structure(found) == xform.tree.structure(expected)
    for a, b in zip(xform.tree.leaves(found), xform.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
        assert a.dtype == b.dtype
    derives = any(word in name for word in ("jvp", "vjp", "grad", "jac", "hess", "linearize"))
    assert bool(calls) == derives


def test_rules_are_used_and_not_the_functions():
    @xform.custom_jvp
    def f(x):
        return x

    f.defjvp(lambda primals, tangents: (f(*primals), 7.0 * tangents[0]))

    @xform.custom_vjp
    def g(x):
        return x

    g.defvjp(lambda x: (x, None), lambda kept, ct: (7.0 * ct,))
    for h in (f, g):
        for t in (h, xform.jit(h)):
            assert float(xform.grad(t)(1.0)) == 7.0
            assert float(xform.jvp(t, (1.0,), (1.0,))[1]) == 7.0
            np.testing.assert_array_equal(xform.vmap(xform.grad(t))(x), [7.0] * 3)


def test_rules_may_look_at_values_outside_jit():
    @xform.custom_jvp
    def f(x):
        return x if x > 0 else -x

    @f.defjvp
    def rule(primals, tangents):
        return f(*primals), (tangents[0] if primals[0] > 0 else -2 * tangents[0])

    @xform.custom_vjp
    def g(x):
        return x if x > 0 else -x

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct if x > 0 else -2 * ct,))
    for h in (f, g):
        assert [float(xform.grad(h)(a)) for a in (3.0, -3.0)] == [1.0, -2.0]
        with pytest.raises(xform.errors.TracerBoolConversionError):
            xform.jit(h)(3.0)


def test_arguments_that_are_not_differentiated():
    @xform.custom_jvp
    def nothing(x):
        return x

    def power(f, x, n=2):
        return f(x) ** n

    a = xform.custom_jvp(power, nondiff_argnums=(0, 2))
    a.defjvp(lambda f, n, primals, tangents: (f(primals[0]) ** n, n * f(primals[0]) ** (n - 1) * tangents[0]))
    b = xform.custom_vjp(power, nondiff_argnames=("n", "f"))
    b.defvjp(lambda f, x, n: (f(x) ** n, x), lambda f, n, x, ct: (ct * n * f(x) ** (n - 1),))
    identity = lambda x: x  # noqa: E731
    for p in (a, b):
        assert float(p(identity, 3.0)) == 9.0
        assert float(xform.grad(p, 1)(identity, 3.0, 3)) == 27.0
        assert float(xform.grad(lambda x, p=p: p(f=identity, n=3, x=x))(3.0)) == 27.0
        assert float(xform.jit(xform.grad(lambda x, p=p: p(identity, x, n=3)))(3.0)) == 27.0


def test_pytrees_integers_and_none():
    @xform.custom_vjp
    def f(tree, n):
        return {"value": tree["a"] * tree["b"][0] ** n, "count": n + 1}

    def backward(kept, ct):
        tree, n = kept
        assert ct["count"].dtype == xform.dtypes.float0
        return {"a": ct["value"] * tree["b"][0] ** n, "b": [None]}, None

    f.defvjp(lambda tree, n: (f(tree, n), (tree, n)), backward)
    gradient = xform.grad(lambda t: f(t, 3)["value"])({"a": 2.0, "b": [3.0]})
    assert float(gradient["a"]) == 27.0 and float(gradient["b"][0]) == 0.0

    @xform.custom_jvp
    def g(x, n):
        return x * n, n

    @g.defjvp
    def rule(primals, tangents):
        assert tangents[1].dtype == xform.dtypes.float0
        return g(*primals), (tangents[0] * primals[1], tangents[1])

    assert float(xform.grad(lambda x: g(x, 3)[0])(2.0)) == 3.0


def test_symbolic_zeros():
    seen = []

    @xform.custom_jvp
    def f(x, y):
        return x * y

    def jvp_rule(primals, tangents):
        seen.append([type(t) is SymbolicZero for t in tangents])
        (x, y), (tx, ty) = primals, tangents
        assert ty.shape == y.shape and ty.dtype == np.float64
        return f(x, y), tx * y

    f.defjvp(jvp_rule, symbolic_zeros=True)
    assert float(xform.grad(f)(2.0, 3.0)) == 3.0
    np.testing.assert_array_equal(xform.grad(lambda a: xform.vmap(f, (0, None))(a, 3.0).sum())(x), [3.0] * 3)
    assert seen == [[False, True]] * 2

    @xform.custom_vjp
    def g(x, y):
        return x * y, x

    def forward(x, y):
        assert isinstance(x, CustomVJPPrimal)
        assert (x.perturbed, y.perturbed) == (True, False)
        values = xform.custom_derivatives.custom_vjp_primal_tree_values((x, y))
        return g(*values), values

    def backward(kept, ct):
        assert isinstance(ct[1], SymbolicZero)
        return ct[0] * kept[1], None

    g.defvjp(forward, backward, symbolic_zeros=True)
    assert float(xform.grad(lambda a: g(a, 3.0)[0])(2.0)) == 3.0
    np.testing.assert_array_equal(xform.grad(lambda a: xform.vmap(lambda b: g(b, 3.0)[0])(a).sum())(x), [3.0] * 3)


def test_defjvps_with_none_and_several_results():
    @xform.custom_jvp
    def f(x, y):
        return x * y, x + y

    f.defjvps(lambda t, ans, x, y: (t * y, t), None)
    assert float(xform.grad(lambda a, b: sum(f(a, b)))(2.0, 3.0)) == 4.0
    assert float(xform.grad(lambda a, b: sum(f(a, b)), 1)(2.0, 3.0)) == 0.0


def test_clipping_the_gradient_is_fine_in_reverse_and_refused_in_forward_mode():
    @xform.custom_vjp
    def clip(x):
        return x

    clip.defvjp(lambda x: (x, None), lambda _, ct: (xnp.clip(ct, -1, 1),))
    assert float(xform.grad(lambda a: 5 * clip(a))(1.0)) == 1.0
    with pytest.raises(NotImplementedError, match=r"custom_vjp function clip: its bwd is not linear"):
        xform.jvp(clip, (1.0,), (1.0,))


def test_closed_over_values():
    def f(a, rule):
        if rule == "jvp":
            g = xform.custom_jvp(lambda x: a * x)
            g.defjvp(lambda p, t: (g(*p), a * t[0]))
        else:
            g = xform.custom_vjp(lambda x: a * x)
            g.defvjp(lambda x: (g(x), None), lambda _, ct: (a * ct,))
        return g

    for rule in ("jvp", "vjp"):
        assert float(xform.jit(lambda a, b, r=rule: xform.grad(f(a, r))(b))(3.0, 2.0)) == 3.0
        np.testing.assert_array_equal(xform.vmap(lambda a, r=rule: xform.grad(f(a, r))(2.0))(x), x)
        with pytest.raises(NotImplementedError, match="closes over a value that is being differentiated"):
            xform.grad(lambda a, r=rule: xform.jit(lambda b: f(a, r)(b))(2.0))(3.0)
    with pytest.raises(xform.errors.UnexpectedTracerError):
        xform.grad(lambda a, b: f(a, "jvp")(b), (0, 1))(3.0, 2.0)


def test_custom_gradient():
    @xform.custom_gradient
    def f(x, y):
        s = xnp.sin(x)
        return s * y, lambda ct: (ct * xnp.cos(x) * y, ct * s)

    for name in ("grad", "jit of grad", "vmap of grad", "hessian", "grad of scan", "jvp"):
        found, expected = TRANSFORMATIONS[name](f), TRANSFORMATIONS[name](plain)
        for a, b in zip(xform.tree.leaves(found), xform.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_closure_convert():
    def outer(a, n):
        converted, values = xform.closure_convert(lambda t: a * t["x"] ** n, {"x": 1.0})
        assert len(values) == 1
        return converted({"x": 3.0}, *values)

    assert float(xform.grad(outer)(2.0, 2)) == 9.0
    converted, values = xform.closure_convert(xnp.sin, 1.0)
    assert not values and float(converted(0.0)) == 0.0
    with pytest.raises(TypeError, match="was converted for arguments"):
        converted({"x": 1.0})


def _with(kind, **rules):
    f = kind(lambda x, y: x * y)
    if kind is xform.custom_jvp:
        f.defjvp(rules["jvp"])
    else:
        f.defvjp(rules.get("fwd", lambda x, y: (x * y, (x, y))), rules["bwd"])
    return xform.grad(f)


ERRORS = [
    (lambda: xform.custom_jvp(3), TypeError, "custom_jvp: expected a function"),
    (lambda: xform.custom_jvp(lambda x: x)(1.0), AttributeError, "has no rule yet"),
    (lambda: xform.custom_vjp(lambda x: x)(1.0), AttributeError, "has no rule yet"),
    (lambda: xform.custom_vjp(lambda x: x, nondiff_argnames="z"), ValueError, "names no parameter 'z'"),
    (lambda: _with(xform.custom_jvp, jvp=lambda p, t: p[0])(1.0, 2.0), TypeError, "must return a pair"),
    (
        lambda: _with(xform.custom_jvp, jvp=lambda p, t: (p[0], (t[0], t[1])))(1.0, 2.0),
        TypeError,
        "differ in structure",
    ),
    (
        lambda: _with(xform.custom_jvp, jvp=lambda p, t: (p[0], xnp.ones(3)))(1.0, 2.0),
        TypeError,
        r"another type: f64\[\] is needed, got f64\[3\]",
    ),
    (
        lambda: _with(xform.custom_jvp, jvp=lambda p, t: (p[0], xnp.ones((), "float32")))(1.0, 2.0),
        TypeError,
        r"f64\[\] is needed, got f32\[\]",
    ),
    (lambda: _with(xform.custom_vjp, bwd=lambda r, ct: ct)(1.0, 2.0), TypeError, "must return a tuple of cotangents"),
    (
        lambda: _with(xform.custom_vjp, bwd=lambda r, ct: (ct,))(1.0, 2.0),
        TypeError,
        "each of 2 arguments, got 1 of them",
    ),
    (
        lambda: _with(xform.custom_vjp, bwd=lambda r, ct: (ct, xnp.ones(3)))(1.0, 2.0),
        TypeError,
        r"for argument 1: f64\[\] is needed, got f64\[3\]",
    ),
    (lambda: _with(xform.custom_vjp, bwd=lambda r, ct: (ct, {"a": ct}))(1.0, 2.0), TypeError, "argument 1"),
    (
        lambda: _with(xform.custom_vjp, fwd=lambda x, y: x, bwd=lambda r, ct: (ct, ct))(1.0, 2.0),
        TypeError,
        "fwd must return a pair",
    ),
    (lambda: xform.grad(xform.custom_gradient(lambda x: x))(1.0), TypeError, "must return a pair"),
]


@pytest.mark.parametrize("call, kind, message", ERRORS)
def test_errors(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


# linear_call


def quotient(x, r):
    """x**2 / r, whose derivative by one of the x is halved in reverse mode."""
    return linear_call(lambda r, x: x / r, lambda r, ct: ct / r / 2, r, x) * x


def transposed(f, example):
    return lambda ct: xform.linear_transpose(f, example)(ct)[0]


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
def test_linear_call(transform):
    f = transform(quotient)
    x, r = 3.0, 2.0
    assert float(f(x, r)) == x**2 / r
    assert [float(g) for g in xform.grad(f, (0, 1))(x, r)] == [1.5 * x / r, -(x**2) / r**2]
    assert float(xform.jvp(f, (x, r), (1.0, 10.0))[1]) == 2 * x / r - 10 * x**2 / r**2
    assert float(xform.linearize(f, x, r)[1](1.0, 10.0)) == 2 * x / r - 10 * x**2 / r**2
    (xx, xr), (rx, rr) = transform(xform.hessian(f, (0, 1)))(x, r)
    np.testing.assert_allclose([xx, xr, rx, rr], [1.5 / r, -1.5 * x / r**2, -2 * x / r**2, 2 * x**2 / r**3])
    y, c = xform.jet(lambda x: f(x, r), (x,), ([1.0, 0.0],))
    np.testing.assert_allclose([y, *c], [x**2 / r, 2 * x / r, 2 / r])
    xs = np.arange(1.0, 4.0)
    np.testing.assert_allclose(xform.vmap(xform.grad(f))(xs, xs), 1.5 * np.ones(3))
    np.testing.assert_allclose(xform.vmap(xform.grad(f), (0, None))(xs, r), 1.5 * xs / r)
    np.testing.assert_allclose(xform.grad(lambda x: xform.vmap(f, (None, 0))(x, xs).sum())(x), (1.5 * x / xs).sum())
    np.testing.assert_allclose(xform.grad(lambda r: xform.vmap(f, (0, None))(xs, r).sum())(r), -(xs**2).sum() / r**2)
    twice = lambda f: lambda x: f(f(x, r), r)  # noqa: E731
    slope = 1.5 * x / r * 1.5 * (x**2 / r) / r
    looped = lambda x: xform.lax.scan(lambda c, _: (f(c, r), None), x, None, 2)[0]  # noqa: E731
    for g in (twice(f), xform.checkpoint(twice(f)), looped):
        assert float(transform(xform.grad(g))(x)) == pytest.approx(slope, rel=1e-15)


def test_linear_call_of_trees_and_its_transposes():
    identity = lambda x: linear_call(lambda _, x: x, lambda _, ct: 7.0, (), x)  # noqa: E731
    values = []
    f = identity
    for _ in range(4):
        values.append(float(f(1.0)))
        f = transposed(f, 1.0)
    assert values == [1.0, 7.0, 1.0, 7.0]
    a, v = np.arange(6.0).reshape(2, 3), np.ones(3)

    def product(a, v):
        return linear_call(lambda a, x: {"y": a @ x["v"]}, lambda a, ct: {"v": ct["y"] @ a}, a, {"v": v})["y"]

    np.testing.assert_array_equal(xform.jacrev(product, 1)(a, v), a)
    np.testing.assert_array_equal(xform.jacfwd(product, 1)(a, v), a)
    np.testing.assert_array_equal(xform.jacrev(product)(a, v)[0], [v, 0 * v])


@pytest.mark.parametrize("transform", [lambda f: f, xform.jit], ids=["eager", "jit"])
def test_linear_call_of_a_function_with_a_loop(transform):
    def power(r, x):
        return lax.while_loop(lambda c: c[0] < 2000, lambda c: (c[0] + 1, c[1] * r), (0, x))[1]

    f = transform(lambda r, x: linear_call(power, lambda r, ct: 3 * power(r, ct), r, x))
    r, x = 1.0005, 2.0
    np.testing.assert_allclose(xform.grad(f, (0, 1))(r, x), [2000 * r**1999 * x, 3 * r**2000], rtol=1e-9)
    np.testing.assert_allclose(xform.jvp(f, (r, x), (1.0, 1.0))[1], 2000 * r**1999 * x + r**2000, rtol=1e-9)


def test_linear_call_errors():
    divide = lambda r, x: x / r  # noqa: E731
    for wrong, message in ((lambda r, ct: (ct, ct), "structure"), (lambda r, ct: np.ones(3), r"f64\[\] is needed")):
        with pytest.raises(TypeError, match=f"linear_call of .*fun_transpose returned something else.*{message}"):
            xform.grad(lambda x, wrong=wrong: linear_call(divide, wrong, 2.0, x))(1.0)
    with pytest.raises(TypeError, match="float or complex"):
        linear_call(divide, divide, 2.0, 1)
    with pytest.raises(TypeError, match="expected a function"):
        linear_call(divide, 3, 2.0, 1.0)
    with pytest.raises(TypeError, match="not linear"):
        xform.linear_transpose(lambda r: linear_call(divide, divide, r, 1.0), 2.0)(1.0)


# Rules that close over traced values


def closing_over(kind):
    def outer(a, x):
        if kind == "jvp":
            f = xform.custom_jvp(lambda x: a * x)
            f.defjvp(lambda p, t: (f(*p), a * t[0]))
        else:
            f = xform.custom_vjp(lambda x: a * x)
            f.defvjp(lambda x: (f(x), ()), lambda _, ct: (a * ct,))
        return f(x)

    return outer


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_rules_that_close_over_traced_values(kind):
    f = closing_over(kind)
    assert float(xform.grad(f, 1)(2.0, 3.0)) == float(xform.jit(xform.grad(f, 1))(2.0, 3.0)) == 2.0
    np.testing.assert_array_equal(xform.vmap(xform.jit(xform.grad(f, 1)))(x, x), x)
    for late, message in (
        (xform.jit(f), f"custom_{kind} function .*: its rule is needed after the trace"),
        (lambda a, x: lax.scan(lambda c, _: (f(a, c), None), x, None, 9)[0], r"closes over .* value of ~?f64\[\], in"),
    ):
        with pytest.raises(UnexpectedTracerError, match=message):
            xform.jit(xform.grad(late, 1))(2.0, 3.0)
    for differentiated in (xform.jit(xform.grad(f)), xform.grad(xform.jit(f))):
        with pytest.raises(NotImplementedError, match=f"custom_{kind} function .* closes over a value that is being"):
            differentiated(2.0, 3.0)


def test_parameters_that_are_keywords_keep_their_defaults():
    def scaled(x, *, factor=2.0):
        return x * factor

    f, g = xform.custom_jvp(scaled), xform.custom_vjp(scaled)
    f.defjvp(lambda primals, tangents: (scaled(*primals), 10 * tangents[0]))
    g.defvjp(lambda x: (scaled(x), None), lambda _, ct: (20 * ct,))
    assert float(f(3.0)) == 6 and float(xform.grad(f)(3.0)) == 10 and float(xform.grad(g)(0.0)) == 20
    with pytest.raises(TypeError, match="rules see positional arguments only, but factor can only be given by keyword"):
        f(3.0, factor=3.0)


def test_a_function_with_rules_has_other_rules_inside_another():
    square = xform.custom_jvp(lambda x: x**2)
    square.defjvp(lambda primals, tangents: (primals[0] ** 2, 10 * tangents[0]))
    cube = xform.custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (x**3, None), lambda _, ct: (20 * ct,))
    for inner, slope in ((square, 10), (cube, 20)):
        by_jvp, by_vjp = xform.custom_jvp(inner), xform.custom_vjp(inner)
        for outer in (by_jvp, by_vjp):
            with pytest.raises(AttributeError, match="has no rule yet"):
                outer(1.0)
        by_jvp.defjvp(lambda p, t, f=inner: xform.jvp(f, p, t))
        by_vjp.defvjp(lambda x, f=inner: (f(x), x), lambda x, ct, f=inner: (2 * ct * xform.grad(f)(x),))
        assert float(xform.grad(by_jvp)(3.0)) == slope and float(xform.grad(by_vjp)(3.0)) == 2 * slope
