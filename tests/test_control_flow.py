"""`cond`, `switch`, `scan`, `fori_loop`, `while_loop` by themselves; their compositions are in test_compositions."""

import itertools

import numpy as np
import pytest

import xform
from xform import lax
from xform.backends import xla
from xform.core.config import small_programs
from xform.lax import add, convert_element_type, cos, exp, lt, mul, reduce_sum, sin
from xform.lax.control_flow import common, cond_p, scan_p, while_p
from xform.lax.families import elementwise


def equations(f, *args):
    """All equations of a traced program by name, those of inner jaxprs included."""
    from xform.core.jaxpr import subjaxprs

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            yield eqn
            for inner in subjaxprs(eqn.params):
                yield from walk(inner)

    return list(walk(xform.make_jaxpr(f)(*args).jaxpr))


# ---- Branches ----------------------------------------------------------------------------------------------


def test_a_known_predicate_runs_one_branch_in_python():
    """Also inside of a trace: nothing is staged, types and structures may differ."""
    for pred in (True, np.True_, 1, np.float64(2.0), np.array(True)):
        assert lax.cond(pred, lambda: "yes", lambda: 1 / 0) == "yes"
    assert lax.cond(False, lambda x: 1 / 0, lambda x: (x, None), 3.0) == (3.0, None)
    assert lax.switch(7, [lambda: 0, lambda: 1, lambda: 2]) == 2
    assert lax.switch(np.int8(-7), [lambda: 0, lambda: 1, lambda: 2]) == 0
    assert not [e for e in equations(lambda x: lax.cond(True, sin, cos, x), 1.0) if e.primitive is cond_p]


def test_a_traced_predicate_runs_one_branch_when_compiled():
    f = xform.jit(lambda p, x: lax.cond(p, sin, lambda y: mul(y, 2.0), x))
    assert [float(f(p, 0.5)) for p in (True, False, 1, 0, 0.5, 0.0)] == pytest.approx(
        [np.sin(0.5), 1.0, np.sin(0.5), 1.0, np.sin(0.5), 1.0]
    )
    g = xform.jit(lambda i, x: lax.switch(i, [sin, cos, exp], x))
    expected = [np.sin(0.5), np.sin(0.5), np.cos(0.5), np.exp(0.5), np.exp(0.5)]
    for kind in (np.int8, np.int64, np.uint16):
        values = [0, 0, 1, 2, 100] if kind is np.uint16 else [-5, 0, 1, 2, 100]
        assert [float(g(kind(i), 0.5)) for i in values] == pytest.approx(expected)


def test_branches_of_other_weak_types_join():
    f = xform.jit(lambda p, x: lax.cond(p, lambda: 1.0, lambda: x))
    assert f(True, np.float64(2)).dtype == np.float64
    assert not f(True, np.float64(2)).weak_type
    assert xform.jit(lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0))(True).weak_type


def test_operand_keyword_and_no_operands():
    assert float(xform.jit(lambda p: lax.cond(p, sin, cos, operand=0.0))(False)) == 1.0
    x = np.float64(3.0)
    assert float(xform.jit(lambda p: lax.cond(p, lambda: x, lambda: 0.0))(True)) == 3.0


def test_vmap_of_a_branch():
    """An unmapped predicate stays a branch, a mapped one becomes a selection."""

    def f(p, x):
        return lax.cond(p, sin, lambda y: mul(y, 2.0), x)

    xs = np.array([0.1, 0.2])
    kept = [e.primitive for e in equations(xform.vmap(f, in_axes=(None, 0)), np.array(True), xs)]
    gone = [e.primitive for e in equations(xform.vmap(f), np.array([True, False]), xs)]
    assert cond_p in kept and cond_p not in gone
    out = xform.vmap(f)(np.array([True, False]), xs)
    assert np.asarray(out).tolist() == pytest.approx([np.sin(0.1), 0.4])
    which = xform.vmap(lambda i: lax.switch(i, [lambda: 10, lambda: 20, lambda: 30]))(np.array([2, 0, -1, 9]))
    assert which.tolist() == [30, 10, 10, 30]


# ---- scan --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize(("reverse", "unroll"), list(itertools.product([False, True], [1, 2, 4, 7, True])))
def test_scan_directions_and_unrolling(jit, reverse, unroll):
    xs = np.arange(1.0, 8.0)

    def f(xs):
        return lax.scan(lambda c, x: (add(mul(c, 0.5), x), mul(c, x)), 1.0, xs, reverse=reverse, unroll=unroll)

    carry, ys = (xform.jit(f) if jit else f)(xs)
    c, expected = 1.0, np.zeros(7)
    for i in range(6, -1, -1) if reverse else range(7):
        expected[i] = c * xs[i]
        c = c * 0.5 + xs[i]
    assert float(carry) == c
    assert np.asarray(ys).tolist() == expected.tolist()


def test_scan_structures_and_lengths():
    def step(carry, x):
        return {"n": add(carry["n"], 1)}, ((x["a"], None), [mul(x["b"], 2.0)])

    xs = {"a": np.arange(4), "b": np.ones((4, 2), np.float32)}
    carry, ((a, nothing), [b]) = xform.jit(lambda xs: lax.scan(step, {"n": 0}, xs))(xs)
    assert int(carry["n"]) == 4 and nothing is None
    assert (a.dtype, b.shape, b.dtype) == (np.int64, (4, 2), np.float32)
    count, none = lax.scan(lambda c, _: (add(c, 1), None), 0, length=5)
    assert int(count) == 5 and none is None
    count, ys = lax.scan(lambda c, _: (add(c, 1), c), 0, None, length=3)
    assert ys.tolist() == [0, 1, 2]
    for jit in (lambda f: f, xform.jit):
        carry, ys = jit(lambda x: lax.scan(lambda c, x: (add(c, x), sin(x)), np.float64(2.0), x))(np.zeros(0))
        assert float(carry) == 2.0 and ys.shape == (0,)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
@pytest.mark.parametrize("called", [False, True], ids=["inline", "jit"])
def test_long_loops_over_large_carries_take_two_steps_at_a_time(length, called):
    """So that nothing need be copied; with the same values, and gradients, as those of a loop in Python."""
    size = 2**20 // 2 + 1  # two steps are a long loop, one isn't

    def step(carry, x):
        now, before = carry
        return (now * x - before + now[::-1], now), now[0]

    def f(x, scale, loop):
        (end, _), ys = loop(xform.jit(step) if called else step, (x, 0.5 * x), scale)
        return (end * end).sum() + ys.sum()

    def in_python(step, carry, xs):
        ys = []
        for x in xs:
            carry, y = step(carry, x)
            ys.append(y)
        return carry, lax.concatenate([lax.reshape(y, (1,)) for y in ys], 0)

    x, scale = np.cos(np.arange(size)), np.linspace(0.5, 1.5, length)
    text = xform.jit(lambda x: lax.scan(step, (x, x), scale)).lower(x).as_text()
    assert text.count("stablehlo.reverse") == {1: 1, 2: 2, 3: 3, 4: 2}[length]
    by_scan = xform.jit(xform.value_and_grad(lambda x, s: f(x, s, lax.scan), (0, 1)))(x, scale)
    expected = xform.jit(xform.value_and_grad(lambda x, s: f(x, s, in_python), (0, 1)))(x, scale)
    for a, b in zip(xform.tree.leaves(by_scan), xform.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-9)


def test_what_a_step_computes_from_constants_is_computed_before_the_loop():
    """And differentiated after it; what is larger than what it is made of is not kept."""

    def f(w, b, x):
        def step(u, y):
            return u * sin(w * w) + b[0] * y + lax.broadcast(lax.exp(b), (4,))[:, 0], lax.exp(b)[1]

        return lax.scan(step, x, np.arange(6.0).reshape(3, 2)[:, :1])

    w, b, x = np.arange(4.0), np.array([0.3, 0.7]), np.ones(4)
    (loop,) = [e for e in equations(f, w, b, x) if e.primitive is scan_p]
    inside = [e.primitive.name for e in loop.params["jaxpr"].eqns]
    assert "sin" not in inside and "exp" not in inside and "broadcast_in_dim" in inside
    backward = [e for e in equations(xform.grad(lambda *a: f(*a)[0].sum(), (0, 1)), w, b, x) if e.primitive is scan_p]
    assert not {"sin", "cos", "exp"} & {e.primitive.name for loop in backward for e in loop.params["jaxpr"].eqns}

    def in_python(w, b, x):
        ys = np.arange(3.0) * 2
        for y in ys:
            x = x * sin(w * w) + b[0] * y + exp(b)[0]
        return x, lax.broadcast(exp(b)[1], (3,))

    for g in (f, xform.jit(f)):
        for ours, expected in zip(g(w, b, x), in_python(w, b, x), strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-14)
        ours = xform.grad(lambda *a, g=g: g(*a)[0].sum() + g(*a)[1].sum(), (0, 1, 2))(w, b, x)
        expected = xform.grad(lambda *a: in_python(*a)[0].sum() + in_python(*a)[1].sum(), (0, 1, 2))(w, b, x)
        for a, e in zip(ours, expected, strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-13)


def test_rows_of_a_large_carry_are_written_in_place():
    """A carry of which a step sets an element must not be copied, nor must its loop be doubled."""
    x = np.zeros(2**20)
    f = xform.jit(lambda x: lax.fori_loop(0, 100, lambda i, y: y.at[i].set(y[i - 1] + 1.0), x))
    assert f.lower(x).as_text().count('"stablehlo.scatter"') == 1
    assert np.asarray(f(x))[:101].tolist() == [*range(1, 101), 0]


def test_the_carry_takes_on_the_type_of_the_body():
    """A Python scalar as first carry gives way, as in promotion; an array does not."""
    out, _ = lax.scan(lambda c, x: (c + x, None), 0.0, np.ones(3, np.float32))
    assert out.dtype == np.float32
    with pytest.raises(TypeError, match=r"lax\.scan: .*carry.*\n.*f64\[\] against f32\[\]"):
        lax.scan(lambda c, x: (x, None), np.float64(0), np.ones(3, np.float32))
    weak, _ = lax.scan(lambda c, x: (mul(c, 2.0), None), 1.0, length=3)
    assert weak.weak_type


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_scan_carries_all_dtypes(dtype):
    from xform.core import dtypes

    x = np.array([1, 0, 1]).astype(dtypes.by_name[dtype])
    for jit in (lambda f: f, xform.jit):
        carry, ys = jit(lambda x: lax.scan(lambda c, y: (y, c), x[0], x))(x)
        assert carry.dtype == ys.dtype == x.dtype
        assert np.asarray(ys).tolist() == x[[0, 0, 1]].tolist()


def test_short_loops_run_on_the_host_and_long_ones_compiled():
    xla.clear_cache()
    before = xla.compile_count

    def total(n):
        return float(lax.scan(lambda c, x: (add(c, x), None), 0.0, np.ones(n))[0])

    assert total(100) == 100 and xla.compile_count == before
    n = common.HOST_BUDGET
    assert total(n) == n and xla.compile_count == before + 1
    assert total(n) == n and xla.compile_count == before + 1  # another lambda, the same program
    assert int(lax.while_loop(lambda i: lt(i, 10 * n), lambda i: add(i, 1), 0)) == 10 * n
    assert xla.compile_count == before + 2
    assert int(lax.while_loop(lambda i: lt(i, 10 * n), lambda i: add(i, 1), 0)) == 10 * n
    assert xla.compile_count == before + 2


def test_the_backend_numpy_compiles_no_loop():
    before, n = xla.compile_count, 10 * common.HOST_BUDGET

    def f(xs, n):
        total, _ = lax.scan(lambda c, x: (c + x, None), 0, xs)
        return lax.fori_loop(0, n, lambda i, s: s + 1, total)

    assert int(xform.jit(f, backend="numpy")(np.ones(n, int), n)) == 2 * n
    assert xla.compile_count == before


def test_the_body_is_traced_once():
    traces = []

    def step(c, x):
        traces.append(1)
        return add(c, x), None

    lax.scan(step, np.float64(0.0), np.ones(50))
    assert len(traces) == 1
    xform.jit(lambda xs: lax.scan(step, np.float64(0.0), xs))(np.ones(50))
    assert len(traces) == 2


def test_residuals_of_scans_are_as_few_as_can_be():
    """What does not change from step to step, and what is among the xs, is not stacked a second time."""
    w, xs = np.ones((4, 4)), np.ones((5, 4))

    def f(w, xs):
        def step(h, x):
            return mul(sin(lax.dot_general(w, h, (((1,), (0,)), ((), ())))), x), None

        return reduce_sum(lax.scan(step, np.ones(4), xs)[0], (0,))

    loops = [e for e in equations(xform.grad(f, (0, 1)), w, xs) if e.primitive is scan_p]
    assert len(loops) == 2
    forward, backward = loops
    stacked = [v.aval.shape for v in forward.outvars[forward.params["num_carry"] :]]
    assert (5, 4, 4) not in stacked
    assert len(stacked) <= 3  # the carry, the sine and its derivative
    assert backward.params["reverse"]


def test_memory_of_a_gradient_grows_with_the_carry_alone():
    """Of a loop whose body makes large temporaries that its derivative does not need."""

    def f(x):
        def step(c, _):
            big = lax.broadcast_in_dim(c, (1000,), ())
            return mul(reduce_sum(big, (0,)), 1e-3), None

        return lax.scan(step, x, length=50)[0]

    for eqn in equations(xform.grad(f), 1.0):
        if eqn.primitive is scan_p:
            assert all(v.aval.size <= 50 for v in eqn.outvars)
    assert float(xform.grad(f)(1.0)) == pytest.approx(1.0)


# ---- Loops -------------------------------------------------------------------------------------------------


def test_fori_loop_bounds():
    for jit in (lambda f: f, xform.jit):
        assert int(jit(lambda: lax.fori_loop(3, 3, lambda i, x: add(x, 1), 7))()) == 7
        assert int(jit(lambda: lax.fori_loop(5, 3, lambda i, x: add(x, 1), 7))()) == 7
        assert int(jit(lambda: lax.fori_loop(-2, 3, lambda i, x: add(x, i), 0))()) == 0
    f = xform.jit(lambda n: lax.fori_loop(0, n, lambda i, x: add(x, i), 0))
    assert [int(f(n)) for n in (0, 1, 5, -3)] == [0, 0, 10, 0]
    kinds = {i.dtype for i in [lax.fori_loop(np.int8(0), np.int8(3), lambda i, x: i, np.int8(0))]}
    assert kinds == {np.dtype(np.int8)}


def test_fori_loop_with_known_bounds_is_a_scan():
    known = [e.primitive for e in equations(lambda x: lax.fori_loop(0, 9, lambda i, y: mul(y, 2.0), x), 1.0)]
    traced = [e.primitive for e in equations(lambda n, x: lax.fori_loop(0, n, lambda i, y: mul(y, 2.0), x), 9, 1.0)]
    assert scan_p in known and while_p not in known
    assert while_p in traced and scan_p not in traced
    with pytest.raises(ValueError, match="unroll needs bounds that are known"):
        xform.jit(lambda n: lax.fori_loop(0, n, lambda i, y: y, 0, unroll=2))(3)


def test_while_loop_structures():
    def body(c):
        return {"i": add(c["i"], 1), "x": (mul(c["x"][0], 2.0), None)}

    for jit in (lambda f: f, xform.jit):
        out = jit(lambda: lax.while_loop(lambda c: lt(c["i"], 5), body, {"i": 0, "x": (1.0, None)}))()
        assert int(out["i"]) == 5 and float(out["x"][0]) == 32.0 and out["x"][1] is None
    assert float(lax.while_loop(lambda x: False, lambda x: mul(x, 2.0), 3.0)) == 3.0


def test_collatz_in_a_batch():
    """Lanes stop at different times."""

    def steps(n):
        def body(c):
            n, k = c
            odd = lax.eq(lax.rem(n, 2), 1)
            return lax.select_n(odd, lax.div(n, 2), add(mul(n, 3), 1)), add(k, 1)

        return lax.while_loop(lambda c: lax.gt(c[0], 1), body, (n, 0))[1]

    numbers = np.arange(1, 28)

    def plain(n):
        k = 0
        while n > 1:
            n, k = (3 * n + 1 if n % 2 else n // 2), k + 1
        return k

    expected = [plain(int(n)) for n in numbers]
    assert expected[-1] == 111  # of 27
    for f in (xform.vmap(steps), xform.jit(xform.vmap(steps)), xform.vmap(xform.jit(steps))):
        assert f(numbers).tolist() == expected


def test_a_loop_may_run_forever_in_lanes_that_are_done():
    """A finished lane keeps its value, although the body would make it NaN."""
    out = xform.vmap(lambda x: lax.while_loop(lambda y: lt(y, 0.5), lambda y: lax.sqrt(lax.sub(y, 0.2)), x))(
        np.array([0.1, 0.9, 0.45])
    )
    # 0.1 makes a NaN, with which the comparison is false: its loop ends.
    assert np.isnan(np.asarray(out)[0]) and np.asarray(out)[1] == 0.9


def test_newton_iteration():
    """The number of steps depends on the data; the derivative of the loop is that of the root."""

    def cube_root(a):
        def step(x):
            return lax.sub(x, lax.div(lax.sub(mul(x, mul(x, x)), a), mul(3.0, mul(x, x))))

        return lax.while_loop(
            lambda x: lax.gt(lax.abs(lax.sub(mul(x, mul(x, x)), a)), 1e-13), step, add(mul(a, 0.0), 1.0)
        )

    a = np.array([1.5, 8.0, 30.0])
    np.testing.assert_allclose(np.asarray(xform.vmap(cube_root)(a)), np.cbrt(a), rtol=1e-13)
    slope = xform.vmap(lambda x: xform.jvp(cube_root, (x,), (1.0,))[1])(a)
    np.testing.assert_allclose(np.asarray(slope), np.cbrt(a) / (3 * a), rtol=1e-6)
    assert float(xform.grad(cube_root)(8.0)) == pytest.approx(1 / 12, rel=1e-6)


def test_bodies_close_over_all_kinds_of_values():
    """Arrays, tracers of several levels, and Python values that are fixed at tracing."""
    table, power = np.array([1.0, 2.0]), 3

    def f(x, y):
        def step(c, t):
            for _ in range(power):
                c = mul(c, t)
            return add(c, mul(y, reduce_sum(mul(table, x), (0,)))), c

        return lax.scan(step, y, table)[0]

    def plain(x, y):
        c = y
        for t in table:
            c = c * t**power + y * (table * x).sum()
        return c

    assert float(f(0.5, 0.25)) == plain(0.5, 0.25)
    h = 1e-6
    slope = (plain(0.5 + h, 0.25) - plain(0.5 - h, 0.25)) / (2 * h)
    for g in (xform.grad(f), xform.jit(xform.grad(f)), xform.grad(xform.jit(f))):
        assert float(g(0.5, 0.25)) == pytest.approx(slope, rel=1e-8)
    assert xform.vmap(f, in_axes=(0, None))(np.array([0.5, 1.0]), 0.25).tolist() == [plain(0.5, 0.25), plain(1.0, 0.25)]


def test_integer_arithmetic_in_loops_wraps():
    f = xform.jit(lambda x: lax.fori_loop(0, 3, lambda i, y: mul(y, np.int8(100)), x))
    assert int(f(np.int8(3))) == int(lax.fori_loop(0, 3, lambda i, y: mul(y, np.int8(100)), np.int8(3)))
    assert int(f(np.int8(3))) == (3 * 100**3 + 128) % 256 - 128


def test_disable_jit_leaves_loops_working():
    with xform.disable_jit():
        assert float(lax.fori_loop(0, 4, lambda i, x: mul(x, 2.0), 1.0)) == 16.0
        assert float(xform.grad(lambda x: lax.fori_loop(0, 4, lambda i, y: mul(y, x), x))(1.0)) == 5.0
        assert int(lax.while_loop(lambda i: lt(i, 10 * common.HOST_BUDGET), lambda i: add(i, 1000), 0)) >= 30000


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("transform", [lambda f: f, xform.jit])
def test_map(batch_size, transform):
    xs = {"a": np.arange(5.0), "b": np.arange(10.0).reshape(5, 2)}
    scale = np.float64(3.0)

    def f(xs, scale):
        return lax.map(lambda x: (sin(x["a"]) * scale, {"sum": reduce_sum(x["b"], (0,))}), xs, batch_size=batch_size)

    first, second = transform(f)(xs, scale)
    np.testing.assert_allclose(first, 3 * np.sin(xs["a"]), rtol=1e-14)
    assert second["sum"].tolist() == [1.0, 5.0, 9.0, 13.0, 17.0]
    slope = transform(xform.grad(lambda s: reduce_sum(f(xs, s)[0], (0,))))(scale)
    assert float(slope) == pytest.approx(np.sin(xs["a"]).sum(), rel=1e-12)
    assert lax.map(lambda x: x, np.zeros((0, 2)), batch_size=batch_size).shape == (0, 2)


def test_bad_arguments_of_map():
    for xs, size, message in (
        (np.float64(1), 2, r"lax\.map: xs has rank 0"),
        ((np.ones(2), np.ones(3)), 2, r"lax\.map: leading lengths differ: xs\[0\]: f64\[2\], xs\[1\]: f64\[3\]"),
        ((), 2, r"lax\.map: give xs with at least one array$"),
        (np.ones(2), 0, "batch_size must be at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            lax.map(lambda x: x, xs, batch_size=size)


def test_disable_jit_runs_loops_as_python():
    """Bodies get values, also under derivatives; vmap decides for each lane, so its conditions stay traced."""

    def power(a):
        return lax.while_loop(lambda x: x < 10, lambda x: x * a, a)

    with xform.disable_jit():
        last, ys = lax.scan(lambda c, x: (c + float(x), {"y": (c, 2)}), 0.0, np.arange(3.0), reverse=True)
        assert float(last) == 3.0 and ys["y"][0].tolist() == [3.0, 2.0, 0.0] and ys["y"][1].tolist() == [2, 2, 2]
        assert int(lax.fori_loop(0, 5, lambda i, x: x * int(i + 1), 1)) == 120
        assert lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * int(s[0])), (1, 1))[1] == 24
        assert xform.vmap(power)(np.array([2.0, 3.0])).tolist() == [16.0, 27.0]
        assert float(xform.grad(power)(2.0)) == 4 * 2.0**3
        assert lax.scan(lambda c, x: (c, x), 0.0, np.zeros((0, 2)))[1].shape == (0, 2)


def test_long_gradients_compiled_eagerly():
    """Outside of jit, a long scan and its transpose each run as one compiled program."""
    n = 5000

    def f(x):
        return lax.scan(lambda c, t: (add(mul(c, 0.999), mul(x, t)), None), np.float64(0.0), np.ones(n))[0]

    with small_programs("xla"):
        expected = (1 - 0.999**n) / (1 - 0.999)
        assert float(xform.grad(f)(2.0)) == pytest.approx(expected, rel=1e-10)
        assert float(xform.jvp(f, (2.0,), (1.0,))[1]) == pytest.approx(expected, rel=1e-10)
        assert float(convert_element_type(f(2.0), np.float64)) == pytest.approx(2 * expected, rel=1e-10)


# ---- Derivatives of scan -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("reverse", "unroll"), [(False, 1), (True, 1), (False, 3), (True, True)])
def test_gradients_of_scans(reverse, unroll):
    """Those of the loop written out."""
    xs = np.array([0.3, -0.8, 1.2, 0.5, -0.1, 0.9])

    def step(c, x):
        c = sin(c) * x + c
        return c, c * x

    def rolled(c, xs):
        c, ys = lax.scan(step, c, xs, reverse=reverse, unroll=unroll)
        return c + (ys * ys).sum()

    def written(c, xs):
        total = 0.0
        for i in range(5, -1, -1) if reverse else range(6):
            c, y = step(c, xs[i])
            total = total + y * y
        return c + total

    expected = xform.grad(written, (0, 1))(0.4, xs)
    for g in (
        xform.grad(rolled, (0, 1)),
        xform.jit(xform.grad(rolled, (0, 1))),
        xform.jit(xform.jacfwd(rolled, (0, 1))),
    ):
        for got, want in zip(g(0.4, xs), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_tangents_of_a_carry_that_begin_after_some_steps():
    """What is differentiated reaches the result through two carries that start without tangents."""

    def f(x, n):
        def step(c, _):
            first, second, total = c
            return (x, first, total + second * second), total

        return lax.scan(step, (np.float64(1.0), np.float64(1.0), np.float64(0.0)), length=n)

    for n in (0, 1, 2, 3, 5):
        # total = min(n, 2) + max(n - 2, 0) x^2
        for d in (xform.grad, xform.jacfwd, xform.jacrev):
            assert float(xform.jit(d(lambda x: f(x, n)[0][2]))(3.0)) == 6.0 * max(n - 2, 0)  # noqa: B023
        slopes = xform.jacrev(lambda x: f(x, n)[1])(3.0)  # noqa: B023
        assert slopes.tolist() == [6.0 * max(i - 2, 0) for i in range(n)]
        assert float(xform.hessian(lambda x: f(x, n)[0][2])(3.0)) == 2.0 * max(n - 2, 0)  # noqa: B023


def test_derivatives_of_scans_of_length_zero():
    def f(c, w, xs):
        c, ys = lax.scan(lambda c, x: (sin(c) * w + x, c * x), c, xs)
        return c * c + ys.sum()

    for transform in (lambda f: f, xform.jit):
        c, w, xs = transform(xform.grad(f, (0, 1, 2)))(3.0, 2.0, np.zeros(0))
        assert (float(c), float(w), xs.shape) == (6.0, 0.0, (0,))
        assert float(transform(xform.jacfwd(f))(3.0, 2.0, np.zeros(0))) == 6.0
        assert transform(xform.vmap(xform.grad(f), in_axes=(0, None, None)))(
            np.array([1.0, 2.0]), 2.0, np.zeros(0)
        ).tolist() == [2.0, 4.0]


def test_gradients_of_associative_scans():
    """Of products of matrices, which do not commute."""
    rng = np.random.default_rng(0)
    xs, w = rng.normal(size=(5, 2, 2)), rng.normal(size=(5, 2, 2))

    def parallel(xs):
        return (lax.associative_scan(lambda a, b: a @ b, xs) * w).sum()

    def sequential(xs):
        def step(c, x):
            c = c @ x
            return c, c

        return (lax.scan(step, np.eye(2), xs)[1] * w).sum()

    np.testing.assert_allclose(xform.jit(xform.grad(parallel))(xs), xform.grad(sequential)(xs), rtol=1e-12)


@pytest.mark.parametrize("batch_size", [None, 2, 7])
def test_derivatives_of_map(batch_size):
    xs = np.linspace(-1.0, 1.0, 5)

    def f(xs, a):
        return lax.map(lambda x: sin(a * x) * x, xs, batch_size=batch_size)

    by_a = xform.jit(xform.jacfwd(f, 1))(xs, 2.0)
    np.testing.assert_allclose(by_a, xs**2 * np.cos(2 * xs), rtol=1e-13)
    by_x = xform.jit(xform.grad(lambda xs: f(xs, 2.0).sum()))(xs)
    np.testing.assert_allclose(by_x, np.sin(2 * xs) + 2 * xs * np.cos(2 * xs), rtol=1e-13, atol=1e-15)
    both = xform.vmap(f, in_axes=(None, 0))(xs, np.array([2.0, 3.0]))
    np.testing.assert_allclose(both, np.sin(np.outer([2, 3], xs)) * xs, rtol=1e-13)


# ---- Carries that change their type ------------------------------------------------------------------------


def test_errors_show_both_sides_of_a_carry_leaf_by_leaf():
    init = {"x": np.zeros(3), "n": (np.int32(0), 1.0)}
    both = r"\['n'\]\[0\]: i32\[\] against i64\[\]\n.*\['x'\]: f64\[3\] against f64\[1,3\]$"

    def body(c):
        return {"x": c["x"][None], "n": (c["n"][0] + np.int64(1), c["n"][1])}

    with pytest.raises(TypeError, match=r"(?s)lax\.while_loop: the carry \(init_val\) and the result.* types.*" + both):
        lax.while_loop(lambda c: True, body, init)
    with pytest.raises(TypeError, match=r"(?s)lax\.scan: the carry that f gets .* types.*" + both):
        lax.scan(lambda c, _: (body(c), None), init, length=3)
    leaves = r"with the leaves\n.*\['n'\]\[1\]: f64\[\] against nothing.*\['y'\]: nothing against f64\[3\]"
    with pytest.raises(TypeError, match=r"(?s)lax\.scan: .*same structure.*" + leaves):
        lax.scan(lambda c, _: ({"x": c["x"], "n": (c["n"][0],), "y": c["x"]}, None), init, length=3)
    with pytest.raises(
        TypeError, match=r"(?s)lax\.cond: the result of false_fun .* true_fun .*f64\[3\] against f64\[2\]"
    ):
        xform.jit(lambda p, x: lax.cond(p, lambda x: x[:2], lambda x: x, x))(True, np.zeros(3))


# ---- Lanes that differ -------------------------------------------------------------------------------------


def doubled(x):
    """x times the least power of two that takes it to 100; without end for x <= 0."""
    return lax.while_loop(lambda y: y < 100, lambda y: y * 2, x)


def test_loops_in_branches_end_when_those_of_the_lanes_that_chose_them_do():
    def f(x):
        return lax.cond(x > 0, doubled, lambda x: x * x, x)

    x = np.array([-1.0, 3.0, -2.0, 0.5, 7.0])
    power = np.where(x > 0, 2 ** np.ceil(np.log2(100 / abs(x))), 0)
    value, slope = np.where(x > 0, x * power, x * x), np.where(x > 0, power, 2 * x)
    for g in (xform.vmap(f), xform.jit(xform.vmap(f)), xform.vmap(xform.jit(f))):
        assert g(x).tolist() == value.tolist()
        assert g(-abs(x)).tolist() == (x * x).tolist()  # no lane chose the loop
    for g in (
        xform.vmap(xform.jacfwd(f)),
        xform.vmap(xform.grad(f)),
        xform.jit(xform.vmap(xform.grad(f))),
        xform.jit(xform.grad(lambda x: xform.vmap(f)(x).sum())),
    ):
        assert g(x).tolist() == slope.tolist()
    assert xform.vmap(xform.jacfwd(xform.grad(f)))(x).tolist() == np.where(x > 0, 0.0, 2.0).tolist()
    rows = np.stack([x, x[::-1], -abs(x)])
    nested = xform.jit(xform.vmap(xform.vmap(f)))(rows)
    assert nested.tolist() == [value.tolist(), value[::-1].tolist(), (x * x).tolist()]

    def three(i, x):
        return lax.switch(i, [doubled, lambda x: -x, lambda x: doubled(-x)], x)

    got = xform.jit(xform.vmap(three))(np.array([0, 1, 2, 1]), np.array([60.0, -1.0, -30.0, 5.0]))
    assert got.tolist() == [120.0, 1.0, 120.0, -5.0]


def test_loops_in_loops_end_when_those_of_the_lanes_that_go_on_do():
    """The inner loop has no end for lanes whose outer loop is over."""

    def f(x):
        def inner(y):
            return lax.while_loop(lambda y: y < 10, lambda y: y * 1.5, y)

        return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, inner(c[0]) + c[1]), (x, 0.0))[1]

    def plain(x):
        total = factors = 0.0
        while x > 0:
            y = 1.0
            while y * x < 10:
                y *= 1.5
            total, factors, x = total + y * x, factors + y, x - 1
        return total, factors

    x = np.array([2.7, -1.0, 0.4, 0.0])
    value, slope = np.array([plain(v) for v in x]).T
    np.testing.assert_allclose(xform.jit(xform.vmap(f))(x), value, rtol=1e-13)
    np.testing.assert_allclose(xform.jit(xform.vmap(xform.grad(f)))(x), slope, rtol=1e-13)
    np.testing.assert_allclose(xform.jit(xform.grad(lambda x: xform.vmap(f)(x).sum()))(x), slope, rtol=1e-13)


def test_a_long_branch_that_no_lane_chose_does_not_run():
    """NumPy counts the evaluations."""
    calls = [0]

    def host(x):
        calls[0] += 1
        return x

    counted = elementwise("counted", host, jvp=lambda g, ans, x: g, lower=lambda ctx, x: x)

    def f(p, x):
        return lax.cond(p, lambda x: lax.fori_loop(0, 5, lambda i, y: counted.bind(y) * 2, x), lambda x: x, x)

    g = xform.jit(xform.vmap(f), backend="numpy")
    assert g(np.zeros(3, bool), np.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert calls[0] == 0
    assert g(np.array([False, True, False]), np.ones(3)).tolist() == [1.0, 32.0, 1.0]
    assert calls[0] == 5


def test_sums_over_lanes_in_a_branch_are_over_all_lanes():
    """As ever: such a branch runs with the operands of all lanes, chosen or not."""

    def f(p, x):
        return lax.cond(p, lambda x: lax.fori_loop(0, 2, lambda i, y: lax.psum(y, "i"), x), lambda x: x, x)

    out = xform.vmap(f, axis_name="i")(np.array([True, False]), np.array([1.0, 2.0]))
    assert out.tolist() == [6.0, 2.0]


# ---- Platforms ---------------------------------------------------------------------------------------------


def test_platform_dependent():
    def unknown(x):
        """A program that can't be compiled here."""
        return never_p.bind(x)

    never_p = elementwise("never", lambda x: x, jvp=lambda g, ans, x: g)

    def f(x):
        return lax.platform_dependent(x, tpu=unknown, cpu=sin, default=unknown)

    with small_programs("xla"):
        for g in (f, xform.jit(f), xform.jit(f, backend="numpy"), lambda x: xform.jit(xform.vmap(f))(x[None])[0]):
            assert float(g(np.float64(0.5))) == pytest.approx(np.sin(0.5))
        for g in (xform.grad(f), xform.jit(xform.grad(f)), xform.jit(xform.jacfwd(f))):
            assert float(g(0.5)) == pytest.approx(np.cos(0.5))
        assert float(xform.jit(lambda x: lax.platform_dependent(x, tpu=unknown, default=cos))(0.5)) == np.cos(0.5)
        for g in (
            lambda x: lax.platform_dependent(x, tpu=sin),
            xform.jit(lambda x: lax.platform_dependent(x, tpu=sin)),
        ):
            with pytest.raises(NotImplementedError, match=r"platform_dependent: no function for platform 'cpu' .* tpu"):
                g(0.5)
    with pytest.raises(ValueError, match=r"lax\.platform_dependent: 'gpv' is no platform, these are: cpu"):
        lax.platform_dependent(1.0, gpv=sin)
    with pytest.raises(TypeError, match=r"lax\.platform_dependent: cpu must be a function, got 3"):
        lax.platform_dependent(1.0, cpu=3)
    with pytest.raises(TypeError, match=r"lax\.platform_dependent: give a function"):
        lax.platform_dependent(1.0)
    with pytest.raises(TypeError, match=r"(?s)platform_dependent: .* of cpu .* tpu .*f64\[\] against f32\[\]"):
        xform.jit(lambda x: lax.platform_dependent(x, cpu=sin, tpu=lambda x: convert_element_type(x, np.float32)))(0.5)


def test_none_may_be_the_operand():
    traced = lambda x: lax.cond(x > 0, lambda _: x, lambda _: -x, operand=None)  # noqa: E731
    assert float(xform.jit(traced)(-3.0)) == 3 and float(traced(-3.0)) == 3 and float(xform.grad(traced)(-3.0)) == -1
    chosen = xform.jit(
        lambda i: lax.switch(i, [lambda none: 1.0 if none is None else 0.0, lambda _: 2.0], operand=None)
    )
    assert float(chosen(0)) == 1 and float(chosen(1)) == 2
    assert lax.cond(True, lambda d: d["a"], lambda d: 0, operand={"a": 5}) == 5
    with pytest.raises(TypeError, match="give operands by position, or one as operand=, not both"):
        lax.cond(True, lambda *_: 1, lambda *_: 2, 3, operand=None)


def test_unroll_is_a_bool_or_no_less_than_nothing():
    for unroll in (True, False, 2):
        assert float(lax.fori_loop(0, 5, lambda i, x: 2 * x, 1.0, unroll=unroll)) == 32
    with pytest.raises(ValueError, match=r"lax.scan: unroll must be True, False, or a number of steps, got -1"):
        lax.scan(lambda c, _: (c, None), 1.0, None, length=3, unroll=-1)
