"""`custom_gradient` and the rules of `custom_vjp` that log, accumulate, or say what `checkpoint` keeps."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform.experimental.hijax import NullAccum, ValAccum

try:
    import jax
    from jax import numpy as jnp

    newest = jax.version.__version_info__ >= (0, 12)
except ImportError:
    newest = False
needs_newest_jax = pytest.mark.skipif(not newest, reason="needs JAX 0.12")


def logging_square(lib=xform, key="f"):
    @lib.custom_gradient(with_logs=True)
    def f(x):
        return x**2, lambda ct: ((2 * ct * x,), {key: {"ct": ct, "x": x}})

    return f


def through(wrap, *args):
    """Cotangents and logs of the sum of ``wrap(f)(x)``, x = 2."""
    cts, logs = xform.vjp(wrap(logging_square()), *args)[1].with_logs(1.0)
    return xform.tree.map(np.asarray, (cts, logs))


# ---- Logs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [lambda f: f, xform.jit, xform.checkpoint, lambda f: xform.jit(xform.checkpoint(xform.jit(f)))],
    ids=["eager", "jit", "checkpoint", "nested"],
)
def test_logs_come_out_of_calls(wrap):
    (ct,), logs = through(lambda f: lambda x: 5 * wrap(f)(x), 3.0)
    assert ct == 30 and logs == {"f": {"ct": 5, "x": 3}}
    outside = xform.jit(lambda x: xform.vjp(wrap(logging_square()), x)[1].with_logs(2.0))(3.0)
    assert float(outside[0][0]) == 12 and xform.tree.map(float, outside[1]) == {"f": {"ct": 2, "x": 3}}
    assert xform.grad(wrap(logging_square()))(3.0) == 6  # without being asked for they are dropped


def test_a_pullback_that_left_jit_has_logs():
    pullback = xform.jit(lambda x: xform.vjp(logging_square(), x)[1])(3.0)
    assert float(pullback.with_logs(2.0)[1]["f"]["ct"]) == 2
    left = xform.jit(lambda x: xform.vjp(logging_square(), x)[1].with_logs)(3.0)
    assert float(left(2.0)[1]["f"]["x"]) == 3


@pytest.mark.parametrize("jit", [lambda f: f, xform.jit])
def test_scan_stacks_logs_in_the_order_of_its_steps(jit):
    def squared_thrice(f):
        return jit(lambda x: xform.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0])

    (ct,), logs = through(squared_thrice, 1.1)
    x = 1.1 ** np.array([1.0, 2, 4])
    np.testing.assert_allclose(ct, 8 * 1.1**7)
    np.testing.assert_allclose(logs["f"]["x"], x)
    np.testing.assert_allclose(logs["f"]["ct"], [4 * 1.1**6, 2 * 1.1**4, 1])  # of x**4 by x, of y**2 by y
    # of a checkpointed body, and of a scan within a scan
    (_, again), (_, nested) = (
        through(lambda f: squared_thrice(xform.checkpoint(f)), 1.1),
        through(lambda f: lambda x: xform.lax.scan(lambda c, _: (squared_thrice(f)(c), None), x, None, 2)[0], 1.01),
    )
    np.testing.assert_allclose(again["f"]["x"], x)
    np.testing.assert_allclose(nested["f"]["x"], 1.01 ** (2.0 ** np.arange(6).reshape(2, 3)))


def test_scan_of_no_steps_logs_nothing_stacked():
    _, logs = through(lambda f: lambda x: xform.lax.scan(lambda c, _: (f(c), None), x, None, 0)[0], 1.1)
    assert logs["f"]["x"].shape == (0,)


def test_vmap_gives_logs_the_mapped_axis():
    f = logging_square()
    (ct,), logs = xform.vjp(xform.vmap(f), np.arange(3.0))[1].with_logs(np.ones(3))
    assert ct.tolist() == [0, 2, 4] and logs["f"]["x"].tolist() == [0, 1, 2] and logs["f"]["ct"].tolist() == [1, 1, 1]
    (ct,), logs = xform.vmap(lambda x: xform.vjp(xform.jit(f), x)[1].with_logs(1.0))(np.arange(3.0))
    assert ct.tolist() == [0, 2, 4] and logs["f"]["x"].tolist() == [0, 1, 2]
    (ct,), logs = xform.vmap(xform.vjp(f, 3.0)[1].with_logs)(np.arange(3.0))
    assert ct.tolist() == [0, 6, 12] and logs["f"]["ct"].tolist() == [0, 1, 2]


def test_logs_of_branches_tell_which_was_taken():
    def one(f):
        return xform.jit(lambda x: xform.lax.cond(x > 0, f, xnp.sin, x))

    _, logs = through(one, 3.0)
    assert logs["f"].index == 1 and logs["f"].branches[0] is None and logs["f"].branches[1] == {"ct": 1, "x": 3}
    _, logs = through(one, -3.0)
    assert logs["f"].index == 0 and logs["f"].branches[1] == {"ct": 0, "x": 0}
    steps = through(lambda f: lambda x: xform.lax.scan(lambda c, i: (xform.lax.cond(i > 1, f, xnp.sin, c), None), x,
                                                       np.arange(3))[0], 0.5)[1]  # fmt: skip
    assert steps["f"].index.tolist() == [0, 0, 1]
    np.testing.assert_allclose(steps["f"].branches[1]["x"], [0, 0, np.sin(np.sin(0.5))])


def test_logs_may_be_of_any_type():
    @xform.custom_gradient(with_logs=True)
    def f(x):
        return x * 2, lambda ct: (2 * ct, {"count": 3, "flag": x > 0, "key": xform.random.key(1), "none": None})

    for wrapped in (f, xform.jit(f), lambda x: xform.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0]):
        _, logs = xform.vjp(wrapped, 1.0)[1].with_logs(1.0)
        assert np.all(np.asarray(logs["count"]) == 3) and np.all(np.asarray(logs["flag"])) and logs["none"] is None
        assert logs["count"].dtype == int and logs["flag"].dtype == bool
        assert xform.numpy.issubdtype(logs["key"].dtype, xform.dtypes.prng_key)


def test_logs_of_derivatives_inside_a_backward_function_stay_inside():
    inner = logging_square(key="inner")

    @xform.custom_gradient(with_logs=True)
    def outer(x):
        return inner(x), lambda ct: (ct * xform.grad(inner)(x), {"outer": xform.vjp(inner, x)[1](1.0)[0]})

    assert xform.vjp(outer, 3.0)[1].with_logs(1.0)[1].keys() == {"outer"}
    assert xform.vjp(xform.grad(inner), 3.0)[1].with_logs(1.0)[1] == {}
    assert float(xform.grad(lambda x: xform.vjp(inner, x)[1].with_logs(1.0)[1]["inner"]["x"] ** 2)(3.0)) == 6


def test_only_what_is_on_the_way_back_logs():
    f = logging_square()
    assert xform.vjp(lambda x: (f(x), xnp.sin(x))[1], 3.0)[1].with_logs(1.0)[1] == {}
    assert xform.vjp(lambda x: f(2.0) + x, 3.0)[1].with_logs(1.0)[1] == {}
    assert xform.vjp(xnp.sin, 3.0)[1].with_logs(1.0)[1] == {}


def test_log_keys_are_unique():
    f = logging_square()
    pullback = xform.vjp(lambda x: f(f(x)), 3.0)[1]
    assert float(pullback(1.0)[0]) == 108
    with pytest.raises(ValueError, match="two logs of one backward pass have the key 'f'"):
        pullback.with_logs(1.0)


def test_errors_about_logs_say_where():
    f = logging_square()
    with pytest.raises(NotImplementedError, match=r"the logs \['f'\] come from within"):
        xform.vjp(xform.jit(lambda x: xform.lax.while_loop(lambda c: c < 9, f, x)), 1.1)[1].with_logs(1.0)
    for result, message in (
        (3.0, r"must return a pair \(cotangents, logs\)"),
        ((1.0, 3.0), "must return as logs None or a dictionary"),
    ):
        bad = xform.custom_gradient(lambda x: (x, lambda ct, result=result: result), with_logs=True)  # noqa: B023
        with pytest.raises(TypeError, match=message):
            xform.grad(bad)(1.0)


def test_defvjp_with_logs():
    f = xform.custom_vjp(lambda n, x: n * x, nondiff_argnums=0)
    f.defvjp_with_logs(lambda n, x: (n * x, x), lambda n, x, ct: ((n * ct,), {"n": n, "x": x}))
    cts, logs = xform.vjp(lambda x: f(3, x), 2.0)[1].with_logs(1.0)
    assert float(cts[0]) == 3 and {k: float(v) for k, v in logs.items()} == {"n": 3, "x": 2}
    g = xform.custom_vjp(lambda x: x)
    g.defvjp_with_logs(lambda x: (x, None), lambda _, ct: ((ct,), None))
    assert xform.vjp(g, 2.0)[1].with_logs(1.0)[1] == {}


@needs_newest_jax
def test_logs_are_as_in_jax():
    def programs(lib, np_):
        f, g = logging_square(lib), logging_square(lib, "g")
        scanned = lambda x: lib.lax.scan(lambda c, _: (g(f(c)), c), x, None, length=3)[0]  # noqa: E731
        return [
            (lambda x: f(g(x)), 1.1, 1.0),
            (lib.jit(lambda x: f(g(x) * 3)), 1.1, 2.0),
            (scanned, 1.01, 1.0),
            (lib.jit(scanned), 1.01, 1.0),
            (lib.checkpoint(scanned), 1.01, 1.0),
            (lib.vmap(scanned), np_.array([1.01, 0.9]), np_.ones(2)),
            (lambda x: lib.vmap(lambda y: f(x * y))(np_.arange(3.0)), 1.1, np_.arange(3.0)),
        ]

    with jax.enable_x64():
        for ours, theirs in zip(programs(xform, xnp), programs(jax, jnp), strict=True):
            found = xform.tree.map(np.asarray, xform.vjp(ours[0], ours[1])[1].with_logs(ours[2]))
            expected = jax.tree.map(np.asarray, jax.vjp(theirs[0], theirs[1])[1].with_logs(theirs[2]))
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), found, expected)


# ---- Arguments whose cotangent isn't wanted ----------------------------------------------------------------


@pytest.mark.parametrize("jit", [lambda f: f, xform.jit])
def test_cotangents_that_are_not_wanted_are_left_out(jit):
    want, dont = xform.ad.GradValue(), xform.ad.DontWant()
    ran = []

    @xform.custom_vjp
    def seen(x):
        return x

    seen.defvjp(lambda x: (x, None), lambda _, ct: (ran.append(1), (ct,))[1])
    _, pullback = xform.vjp(lambda x, d: jit(lambda x: x * 2)(x) * seen(d["a"]) * d["b"], 3.0, {"a": 4.0, "b": 5.0})
    x_bar, d_bar = pullback.with_refs(want, {"a": dont, "b": want})(1.0)
    assert float(x_bar) == 40 and float(d_bar["b"]) == 24 and isinstance(d_bar["a"], xform.ad.DidntWant) and not ran
    x_bar, d_bar = pullback.with_refs(dont, {"a": want, "b": dont})(1.0)
    assert float(d_bar["a"]) == 30 and ran and xform.tree.leaves((x_bar, d_bar["b"])) == []
    with pytest.raises(ValueError, match="entries of the structure of the arguments"):
        pullback.with_refs(want)
    with pytest.raises(TypeError, match=r"takes ad.GradValue\(\) and ad.DontWant\(\), got 3.0"):
        pullback.with_refs(3.0, {"a": dont, "b": want})


# ---- Accumulators ------------------------------------------------------------------------------------------


def product_by_accumulators(kinds=ValAccum, seen=None):
    @xform.custom_gradient(with_accums=kinds)
    def f(x, y):
        def pullback(ct, x_bar, y_bar):
            if seen is not None:
                seen[:] = [type(x_bar), type(y_bar)]
            x_bar.accum(ct * y / 2)
            x_bar.accum(ct * y / 2)
            y_bar.accum(ct * x)
            return {"ct": ct}

        return x * y, pullback

    return f


@pytest.mark.parametrize("jit", [lambda f: f, xform.jit])
def test_pullbacks_may_add_to_accumulators(jit):
    seen = []
    f = product_by_accumulators((ValAccum, ValAccum), seen)
    g = jit(f)
    assert [float(x) for x in xform.grad(g, (0, 1))(3.0, 4.0)] == [4, 3] and seen == [ValAccum, ValAccum]
    assert float(xform.grad(g)(3.0, 4.0)) == 4 and seen == [ValAccum, NullAccum]
    assert float(xform.grad(g)(3.0, 4)) == 4
    np.testing.assert_allclose(xform.hessian(g, (0, 1))(3.0, 4.0), [[0, 1], [1, 0]])
    grads = xform.grad(lambda x, y: xform.vmap(g, (0, None))(x, y).sum(), (0, 1))(np.arange(3.0), 2.0)
    assert grads[0].tolist() == [2, 2, 2] and float(grads[1]) == 3
    assert float(xform.vjp(g, 3.0, 4.0)[1].with_logs(2.0)[1]["ct"]) == 2
    power = lambda x: xform.lax.scan(lambda c, _: (g(c, x), None), 1.0, None, length=4)[0]  # noqa: E731
    np.testing.assert_allclose(xform.grad(jit(power))(1.5), 4 * 1.5**3)


def test_accumulators_of_custom_vjp():
    f = xform.custom_vjp(lambda d: d["a"] * d["b"])
    f.defvjp_with_accums(lambda d: (f(d), d), lambda d, ct, bar: bar["a"].accum(ct * d["b"]))
    assert xform.tree.map(float, xform.grad(f)({"a": 2.0, "b": 3.0})) == {"a": 3, "b": 0}
    assert xform.tree.map(float, xform.jit(xform.grad(f))({"a": 2.0, "b": 3.0})) == {"a": 3, "b": 0}


def test_errors_about_accumulators():
    with pytest.raises(ValueError, match=r"ValAccum.accum: .* f64\[\] is needed, got f64\[3\]"):
        xform.grad(xform.custom_gradient(lambda x: (x, lambda ct, a: a.accum(np.ones(3))), with_accums=ValAccum))(1.0)
    with pytest.raises(TypeError, match=r"with_accums must be ValAccum, .* got the leaf <class 'int'>"):
        xform.grad(product_by_accumulators((ValAccum, int)))(1.0, 2.0)
    with pytest.raises(ValueError, match="custom_gradient: with_accums"):
        xform.grad(product_by_accumulators((ValAccum,)))(1.0, 2.0)
    with pytest.raises(NotImplementedError, match="with_accums can't be combined with remat"):
        xform.custom_gradient(lambda x: (x, None), remat=True, with_accums=ValAccum)
    with pytest.raises(TypeError, match="must return None or a dictionary of logs"):
        xform.grad(xform.custom_gradient(lambda x: (x, lambda ct, a: ct), with_accums=ValAccum))(1.0)


# ---- What checkpoint keeps ---------------------------------------------------------------------------------


def tenfold_sine(lib=xform, np_=xnp, **options):
    """A sine whose derivative is ten cosines, which are kept."""

    @lib.custom_gradient(remat=True, **options)
    def sin(x):
        slope = 10 * np_.cos(x)

        def rem(x):
            pullback = lambda ct: (ct * slope,)  # noqa: E731
            return np_.sin(x), (lambda ct: (pullback(ct), {"ct": ct})) if options else pullback

        return np_.sin(x), rem

    return sin


POLICIES = [None, xform.checkpoint_policies.everything_saveable, xform.checkpoint_policies.dots_saveable]


@pytest.mark.parametrize("policy", POLICIES, ids=["nothing", "everything", "dots"])
@pytest.mark.parametrize("jit", [lambda f: f, xform.jit])
def test_remat_has_the_derivative_of_its_rule(jit, policy):
    sin = tenfold_sine()
    x = 0.3
    slope = 10 * np.cos(x)
    f = xform.checkpoint(jit(lambda x: xnp.exp(sin(x))), policy=policy)
    value = np.exp(np.sin(x))
    np.testing.assert_allclose(jit(xform.value_and_grad(f))(x), [value, value * slope])
    # The second derivative is that of what the rule computes, exp(sin) 10 cos.
    np.testing.assert_allclose(jit(xform.grad(xform.grad(f)))(x), value * (slope * np.cos(x) - 10 * np.sin(x)))
    np.testing.assert_allclose(jit(xform.vmap(xform.grad(f)))(np.array([x, 0])), [value * slope, 10])
    steps = xform.grad(jit(lambda x: xform.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]))(0.1)
    first = np.exp(np.sin(0.1))
    np.testing.assert_allclose(steps, np.exp(np.sin(first)) * 10 * np.cos(first) * first * 10 * np.cos(0.1))
    np.testing.assert_allclose(xform.jvp(f, (x,), (1.0,))[1], value * slope)


def operations(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn.primitive.name, eqn
        for inner in xform.core.jaxpr.subjaxprs(eqn.params):
            yield from operations(inner)


def test_remat_keeps_what_its_function_closes_over():
    x = np.ones(3)
    f = xform.checkpoint(lambda x: xnp.exp(tenfold_sine()(xnp.tanh(x))).sum())
    kept = xform.ad_checkpoint.saved_residuals(f, x)
    assert len(kept) == 2 and all(aval.shape == (3,) for aval, _ in kept)
    jaxpr = xform.make_jaxpr(xform.grad(f))(x).jaxpr
    [back] = [e for name, e in operations(jaxpr) if name == "checkpoint" and e.params["differentiated"]]
    names = [name for name, _ in operations(back.params["jaxpr"].jaxpr)]
    assert "cos" not in names and names.count("sin") == 1  # by rem, for the exponential


def test_the_backward_pass_computes_the_result_by_rem():
    f = xform.custom_vjp(lambda x: x * 3)
    f.defremat(lambda x: (xnp.expm1(x), None), lambda _, x: (xnp.sinh(x), None), lambda _, ct: (ct,))
    g = xform.checkpoint(lambda x: xnp.square(f(x)))
    assert "expm1" in str(xform.make_jaxpr(xform.jit(xform.value_and_grad(g)))(1.0))
    value, slope = xform.jit(xform.value_and_grad(g))(1.0)
    np.testing.assert_allclose([value, slope], [np.expm1(1) ** 2, 2 * np.sinh(1)])


@pytest.mark.parametrize("jit", [lambda f: f, xform.jit])
def test_a_function_may_have_a_rule_for_checkpoint_and_another(jit):
    f = xform.custom_vjp(lambda n, x: n * x, nondiff_argnums=0)
    f.defremat(lambda n, x: (n * x, x), lambda res, n, x: (n * x, (n, res)), lambda n, res, ct: (30 * n * ct,))
    assert float(xform.grad(jit(lambda x: f(2, x)))(1.0)) == 60
    f.defvjp(lambda n, x: (n * x, None), lambda n, _, ct: (n * ct,))
    g = jit(lambda x: f(2, x))
    assert float(xform.grad(g)(1.0)) == 2 and float(xform.grad(xform.checkpoint(g))(1.0)) == 60
    assert xform.grad(lambda x: xform.checkpoint(xform.vmap(g))(x).sum())(np.arange(2.0)).tolist() == [60, 60]
    scanned = lambda x: xform.lax.scan(lambda c, _: (g(c), None), x, None, length=2)[0]  # noqa: E731
    assert [float(xform.grad(h)(1.0)) for h in (scanned, xform.checkpoint(scanned))] == [4, 3600]


def test_remat_with_logs():
    f = tenfold_sine(with_logs=True)
    for g in (f, xform.checkpoint(f), xform.jit(xform.checkpoint(f))):
        (ct,), logs = xform.vjp(g, 0.0)[1].with_logs(2.0)
        assert float(ct) == 20 and float(logs["ct"]) == 2
    h = xform.custom_vjp(lambda x: x)
    h.defremat_with_logs(lambda x: (x, x), lambda res, x: (x, res), lambda res, ct: ((ct,), {"res": res}))
    assert float(xform.vjp(xform.checkpoint(h), 3.0)[1].with_logs(1.0)[1]["res"]) == 3


def test_results_of_fwd_and_rem_must_agree():
    f = xform.custom_vjp(lambda x: x)
    f.defremat(lambda x: (x, None), lambda _, x: (xnp.ones(3), None), lambda _, ct: (ct,))
    with pytest.raises(TypeError, match=r"custom_vjp function .*: its rem returned as result .*f64\[3\].* its fwd"):
        xform.grad(xform.checkpoint(f))(1.0)


@needs_newest_jax
def test_remat_is_as_in_jax():
    def programs(lib, np_):
        sin = tenfold_sine(lib, np_)
        f = lib.checkpoint(lambda x: np_.exp(sin(np_.tanh(x))))
        return [
            lib.grad(f),
            lib.grad(lib.grad(f)),
            lib.grad(lambda x: lib.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0]),
            lambda x: lib.vmap(lib.grad(f))(x * np_.arange(3.0)),
            lib.grad(lib.checkpoint(f, policy=lib.checkpoint_policies.everything_saveable)),
        ]

    config = [("jax_custom_vjp3", True), ("jax_remat3", True), ("jax_enable_x64", True)]
    before = [(name, getattr(jax.config, name)) for name, _ in config]
    try:
        for name, value in config:
            jax.config.update(name, value)
        expected = [f(0.2) for f in programs(jax, jnp)]
    finally:
        for name, value in before:
            jax.config.update(name, value)
    for ours, theirs in zip(programs(xform, xnp), expected, strict=True):
        np.testing.assert_allclose(ours(0.2), theirs, rtol=1e-12)


# ---- Rules in programs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("jit", [lambda f: f, xform.jit])
def test_pullbacks_of_integers_may_return_float0(jit):
    f = xform.custom_gradient(lambda x, n: (x * n, lambda ct: (ct * n, np.zeros((), xform.dtypes.float0))))
    g = jit(f)
    assert float(xform.grad(g)(3.0, 4)) == 4 and float(xform.grad(xform.checkpoint(g))(3.0, 4)) == 4
    power = jit(lambda x: xform.lax.scan(lambda c, n: (g(c, n), None), x, np.arange(1, 4))[0])
    assert float(xform.grad(power)(2.0)) == 6
    assert float(xform.grad(jit(lambda x: xform.lax.cond(x > 0, g, lambda x, n: x, x, 4)))(3.0)) == 4
    # a result that is an integer has cotangents of float0, which may be passed on
    h = jit(xform.custom_gradient(lambda x, n: ((x * n, n), lambda ct: (ct[0] * n, ct[1]))))
    assert float(xform.grad(lambda x: h(x, 4)[0])(3.0)) == 4


def programs_with(f):
    """Programs that call f, as functions from the operation that stands between them and `jit`."""
    lax = xform.lax
    return {
        "jit": f,
        "scan": lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
        "cond": lambda x: lax.cond(x > 0, f, xnp.sin, x),
        "cond in scan": lambda x: lax.scan(lambda c, i: (lax.cond(i < 1, f, xnp.sin, c), None), x, np.arange(1))[0],
        "while": lambda x: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
        "bounded": lambda x: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, x), max_steps=2)[1],
        "checkpoint": xform.checkpoint(f),
        "switch": lambda x: lax.switch((x > 0).astype(int) + 1, [xnp.sin, xnp.cos, f], x),
    }


@pytest.mark.parametrize("program", programs_with(xnp.sin))
def test_backward_functions_that_are_not_linear_work_in_every_program(program):
    clip = xform.custom_vjp(lambda x: x)
    clip.defvjp(lambda x: (x, None), lambda _, ct: (xnp.clip(ct, -1, 1),))
    f = xform.jit(programs_with(clip)[program])
    assert float(xform.grad(lambda x: 3 * f(x))(1.5)) == 1
    assert xform.vmap(xform.grad(lambda x: 3 * f(x)))(np.array([1.5, 2])).tolist() == [1, 1]
    assert xform.grad(lambda x: 3 * xform.vmap(f)(x).sum())(np.array([1.5, 2])).tolist() == [1, 1]
    with pytest.raises(NotImplementedError, match="its bwd is not linear in the cotangent"):
        xform.jvp(f, (1.5,), (1.0,))


@pytest.mark.parametrize("jit", [lambda f: f, xform.jit])
@pytest.mark.parametrize("program", programs_with(xnp.sin))
def test_linearize_through_programs_with_custom_vjp(program, jit):
    f = xform.custom_vjp(lambda x: x**2)
    f.defvjp(lambda x: (x**2, x), lambda x, ct: (2 * x * ct,))
    g = jit(programs_with(f)[program])
    out, push = xform.linearize(g, 3.0)
    assert float(out) == 9 and float(push(2.0)) == 12
    assert xform.vmap(push)(np.arange(2.0)).tolist() == [0, 6]
    assert float(xform.jit(lambda x: xform.linearize(g, x)[1](2.0))(3.0)) == 12
    assert float(xform.grad(lambda x: xform.linearize(g, x)[1](2.0))(3.0)) == 4
    assert float(xform.grad(push)(1.0)) == 6
    assert float(xform.hessian(g)(3.0)) == 2


WEIGHTS = xnp.array([1.0, 2.0, 3.0])


def functions_with_weights():
    """By kind, functions whose rules close over an array, with their derivative."""
    by_jvp = xform.custom_jvp(lambda x: x * WEIGHTS)
    by_jvp.defjvp(lambda primals, tangents: (primals[0] * WEIGHTS, 2 * tangents[0] * WEIGHTS))
    by_vjp = xform.custom_vjp(lambda x: x * WEIGHTS)
    by_vjp.defvjp(lambda x: (x * WEIGHTS, None), lambda _, ct: (2 * ct * WEIGHTS,))
    kept = xform.custom_vjp(lambda x: x * WEIGHTS)
    kept.defremat(lambda x: (x * WEIGHTS, WEIGHTS), lambda w, x: (x * w, None), lambda _, ct: (2 * ct * WEIGHTS,))
    call = xform.custom_derivatives.linear_call
    linear = lambda x: call(lambda _, x: x * WEIGHTS, lambda _, ct: 2 * ct * WEIGHTS, (), x)  # noqa: E731
    return {"custom_jvp": by_jvp, "custom_vjp": by_vjp, "defremat": kept, "linear_call": linear}


@pytest.mark.parametrize("kind", functions_with_weights())
def test_vmap_of_programs_whose_rules_close_over_arrays(kind):
    f = functions_with_weights()[kind]
    x = np.arange(6.0).reshape(2, 3)
    for g in (
        xform.vmap(xform.jit(f)),
        xform.jit(xform.vmap(xform.jit(f))),
        xform.vmap(lambda x: xform.lax.map(f, x[None])[0]),
        lambda x: xform.vmap(xform.vmap(xform.jit(f)))(x[None])[0],
        xform.vmap(xform.checkpoint(xform.jit(f))),
        xform.checkpoint(xform.vmap(xform.jit(f))),
    ):
        np.testing.assert_allclose(g(x), x * WEIGHTS)
        np.testing.assert_allclose(xform.grad(lambda x: g(x).sum())(x), 2 * np.ones((2, 1)) * WEIGHTS)  # noqa: B023
        np.testing.assert_allclose(xform.jit(xform.jacrev(g))(x).sum((0, 1)), 2 * np.ones((2, 1)) * WEIGHTS)


@pytest.mark.parametrize("program", programs_with(xnp.sin))
def test_rules_may_push_tangents_through_programs(program):
    f = xform.jit(programs_with(lambda x: xnp.sin(x))[program])
    by_jvp = xform.custom_jvp(f)
    by_jvp.defjvp(lambda primals, tangents: xform.jvp(lambda x: xnp.square(f(x)) / 2, primals, tangents)[0:2])
    mapped = xform.custom_batching.custom_vmap(lambda x: xnp.square(f(x)) / 2)
    mapped.def_vmap(lambda size, is_mapped, x: (xnp.square(xform.vmap(f)(x)) / 2, True))
    x = np.array([0.3, 0.4])
    for g in (by_jvp, mapped, xform.jit(by_jvp), xform.checkpoint(by_jvp)):
        slope = np.sin(x) * np.cos(x)
        np.testing.assert_allclose(xform.grad(g)(x[0]), slope[0])
        np.testing.assert_allclose(xform.vmap(xform.grad(g))(x), slope)
        np.testing.assert_allclose(xform.grad(lambda x: xform.vmap(g)(x).sum())(x), slope)  # noqa: B023
        np.testing.assert_allclose(xform.grad(xform.grad(g))(x[0]), np.cos(2 * x[0]))
        np.testing.assert_allclose(xform.hessian(g)(x[0]), np.cos(2 * x[0]))
