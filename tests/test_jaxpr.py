"""The IR: how it prints, what the checker refuses, its evaluation, dead code and common subexpressions."""

import textwrap

import numpy as np
import pytest

import xform
from xform import lax
from xform.core import tree
from xform.core.avals import ShapedArray
from xform.core.config import enable_checks
from xform.core.errors import JaxprTypeError
from xform.core.jaxpr import (
    ClosedJaxpr,
    DropVar,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    check_jaxpr,
    eval_jaxpr,
    subjaxprs,
)
from xform.core.trace import Primitive
from xform.interpreters.passes import common_subexpressions, dead_code, dead_code_closed
from xform.lax.arithmetic import add_p
from xform.lax.control_flow import cond_p, scan_p
from xform.lax.transcendental import cos_p, sin_p

F64 = ShapedArray((), np.float64)
F32 = ShapedArray((), np.float32)


def var(aval=F64):
    return Var(None, aval)


def traced(f, *args, **kwargs):
    closed = xform.make_jaxpr(f)(*args, **kwargs)
    check_jaxpr(closed.jaxpr)
    return closed


# ---- Printing ----------------------------------------------------------------------------------------------


def prints(f, *args):
    return str(xform.make_jaxpr(f)(*args)) + "\n"


def expected(text):
    return textwrap.dedent(text).lstrip("\n")


def test_prints_equations_literals_and_results():
    def f(x, y):
        z = lax.mul(lax.sin(x), 2.0)
        return lax.add(z, y), {"a": z}

    assert prints(f, 1.0, np.float32(2) * 1.0 + np.zeros(())) == expected("""
        { lambda ; a:f64[] b:f64[]. let
            c:f64[] = sin a
            d:f64[] = mul c 2.0:f64[]
            e:f64[] = add d b
          in (e, d) }
        """)


def test_prints_constants_and_parameters():
    table = np.arange(3.0)
    assert prints(lambda x: lax.reduce_sum(lax.add(x, table), (0,)), table) == expected("""
        { lambda a:f64[3] ; b:f64[3]. let
            c:f64[3] = add b a
            d:f64[] = reduce_sum[axes=(0,)] c
          in (d,) }
        """)


def test_prints_empty_programs():
    assert prints(lambda: 1) == "{ lambda ; . let  in (1:i64[],) }\n"
    assert prints(lambda x: x, np.ones(3, bool)) == "{ lambda ; a:bool[3]. let  in (a,) }\n"
    assert prints(lambda x: (), 1.0) == "{ lambda ; a:f64[]. let  in () }\n"


def test_prints_inner_jaxprs():
    def g(y):
        return lax.sin(y)

    assert prints(lambda x: xform.jit(g)(x), 1.0) == expected("""
        { lambda ; a:f64[]. let
            b:f64[] = jit[
              jaxpr={ lambda ; a:f64[]. let
                  b:f64[] = sin a
                in (b,) }
              name=g
            ] a
          in (b,) }
        """)
    assert prints(lambda x: lax.cond(lax.gt(x, 0.0), lax.sin, lax.cos, x), 1.0) == expected("""
        { lambda ; a:f64[]. let
            b:bool[] = gt a 0.0:f64[]
            c:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
            d:f64[] = cond[
              branches=(
                { lambda ; a:f64[]. let
                    b:f64[] = cos a
                  in (b,) }
                { lambda ; a:f64[]. let
                    b:f64[] = sin a
                  in (b,) }
              )
            ] c a
          in (d,) }
        """)


def test_prints_derivatives_and_batches():
    assert prints(xform.grad(lambda x: lax.mul(lax.sin(x), x)), 1.0) == expected("""
        { lambda ; a:f64[]. let
            b:f64[] = sin a
            c:f64[] = cos a
            d:f64[] = mul 1.0:f64[] b
            e:f64[] = mul 1.0:f64[] a
            f:f64[] = mul e c
            g:f64[] = add_any d f
          in (g,) }
        """)
    assert prints(xform.vmap(lambda x: lax.mul(lax.sin(x), 3.0)), np.ones(2)) == expected("""
        { lambda ; a:f64[2]. let
            b:f64[2] = sin a
            c:f64[2] = mul b 3.0:f64[]
          in (c,) }
        """)


def test_prints_unused_results_as_underscores():
    def f(x):
        return lax.scan(lambda c, y: ((lax.add(c[0], y), lax.mul(c[1], c[0])), None), (0.0, 1.0), x)[0][1]

    closed = traced(f, np.ones(3))
    assert "_:f64[]" in str(closed) or " _ " in f" {closed} "
    (scan,) = [e for e in closed.eqns if e.primitive is scan_p]
    assert type(scan.outvars[0]) is DropVar


def test_names_of_variables_go_on_after_z():
    def f(x):
        for _ in range(30):
            x = lax.sin(x)
        return x

    text = prints(f, 1.0)
    assert "z:f64[] = sin y" in text and "ba:f64[] = sin z" in text and "in (be,)" in text


def test_a_single_equation_prints():
    (eqn,) = xform.make_jaxpr(lax.sin)(1.0).eqns
    assert repr(eqn) == "b:f64[] = sin a" or repr(eqn).endswith(" = sin b")
    assert repr(Literal(np.float32(1.5), F32)) == "1.5:f32[]"
    assert repr(Literal(np.True_, ShapedArray((), bool))) == "True:bool[]"


# ---- The checker -------------------------------------------------------------------------------------------


def test_the_checker_accepts_what_is_traced():
    def f(x, y):
        z = lax.cond(lax.gt(x, 0.0), lambda a: lax.sin(a), lambda a: lax.mul(a, 3.0), x)
        z = lax.fori_loop(0, 3, lambda i, a: lax.mul(a, y), z)
        return xform.jit(lambda b: lax.add(b, y))(z)

    for transformed in (
        f,
        xform.grad(f),
        xform.grad(xform.jit(xform.grad(f))),
        xform.jacfwd(xform.grad(f, (0, 1))),
    ):
        with enable_checks(True):
            traced(transformed, 1.0, 2.0)
    with enable_checks(True):
        traced(xform.vmap(xform.grad(f)), np.ones(3), np.ones(3))


def malformed():
    a, b, c = var(), var(), var()
    yield "undefined", Jaxpr([], [a], [c], [Eqn(add_p, [a, b], {}, [c])]), r"f64\[\] used but not defined"
    a, b = var(), var()
    yield (
        "used before it is defined",
        Jaxpr([], [a], [c], [Eqn(sin_p, [b], {}, [c]), Eqn(sin_p, [a], {}, [b])]),
        "not defined",
    )
    a, b = var(), var()
    yield (
        "defined twice",
        Jaxpr([], [a], [b], [Eqn(sin_p, [a], {}, [b]), Eqn(cos_p, [a], {}, [b])]),
        "defined twice",
    )
    a, b = var(), var()
    yield "input defined again", Jaxpr([], [a], [a], [Eqn(sin_p, [b], {}, [a])]), "defined|not"
    a = var()
    yield "same input twice", Jaxpr([], [a, a], [a], []), "defined twice, in the inputs"
    a, b = var(), var(F32)
    yield (
        "wrong dtype of a result",
        Jaxpr([], [a], [b], [Eqn(sin_p, [a], {}, [b])]),
        r"has results \[f32\[\]\].*give \[f64\[\]\]",
    )
    a, b = var(), var(ShapedArray((2,), np.float64))
    yield "wrong shape of a result", Jaxpr([], [a], [b], [Eqn(sin_p, [a], {}, [b])]), r"f64\[2\]"
    a, b, c = var(), var(F32), var()
    yield (
        "operands that do not fit",
        Jaxpr([], [a, b], [c], [Eqn(add_p, [a, b], {}, [c])]),
        r"equation '.*add.*': .*f64\[\], f32\[\]",
    )
    a, b = var(), var()
    yield "undefined result", Jaxpr([], [a], [b], []), "not defined, in the results"
    a, b = var(), var()
    yield "too many results", Jaxpr([], [a], [b], [Eqn(sin_p, [a], {}, [b, var()])]), "has results"


@pytest.mark.parametrize(("what", "jaxpr", "message"), list(malformed()), ids=lambda x: x if isinstance(x, str) else "")
def test_the_checker_refuses(what, jaxpr, message):
    with pytest.raises(JaxprTypeError, match=message):
        check_jaxpr(jaxpr)


def test_the_checker_looks_inside():
    a, b = var(), var(F32)
    broken = ClosedJaxpr(Jaxpr([], [a], [b], [Eqn(sin_p, [a], {}, [b])]))
    index, x, y = var(ShapedArray((), np.int32)), var(), var(F32)
    outer = Jaxpr([], [index, x], [y], [Eqn(cond_p, [index, x], {"branches": (broken, broken)}, [y])])
    with pytest.raises(JaxprTypeError, match=r"equation '.*sin"):
        check_jaxpr(outer)


# ---- Evaluation --------------------------------------------------------------------------------------------


def test_eval_jaxpr():
    table = np.arange(3.0)
    closed = traced(lambda x, y: [lax.mul(lax.sin(x), table), 7, y], np.ones(3), 2.0)
    outs = eval_jaxpr(closed.jaxpr, closed.consts, np.full(3, 0.5), 4.0)
    np.testing.assert_allclose(np.asarray(outs[0]), np.sin(0.5) * table)
    assert [int(outs[1]), float(outs[2])] == [7, 4.0]
    with pytest.raises(ValueError, match="zip"):
        eval_jaxpr(closed.jaxpr, closed.consts, 1.0)


def test_evaluation_is_an_interpretation_like_any_other():
    closed = traced(lambda x: lax.mul(lax.sin(x), x), 1.0)

    def f(x):
        return eval_jaxpr(closed.jaxpr, closed.consts, x)[0]

    assert float(xform.grad(f)(0.5)) == pytest.approx(np.cos(0.5) * 0.5 + np.sin(0.5))
    assert str(traced(f, 1.0)) == str(closed)
    assert xform.vmap(f)(np.ones(2)).shape == (2,)


def test_values_are_dropped_after_their_last_use():
    """A chain of large temporaries holds at most a few at a time."""
    alive, most = set(), 0
    p = Primitive("count")
    p.abstract_eval = lambda x: x

    class Counted(np.ndarray):
        def __del__(self):
            alive.discard(id(self))

    def host(x):
        nonlocal most
        out = np.array(x).view(Counted)
        alive.add(id(out))
        most = max(most, len(alive))
        return out

    p.host = host

    def f(x):
        for _ in range(20):
            x = p.bind(x)
        return x

    closed = traced(f, np.ones(4))
    eval_jaxpr(closed.jaxpr, closed.consts, np.ones(4))
    assert most <= 3


def test_inner_jaxprs_are_found():
    closed = traced(lambda x: lax.cond(lax.gt(x, 0.0), lax.sin, lax.cos, x), 1.0)
    (cond,) = [e for e in closed.eqns if e.primitive is cond_p]
    assert [j.eqns[0].primitive for j in subjaxprs(cond.params)] == [cos_p, sin_p]


# ---- Dead code ---------------------------------------------------------------------------------------------


def names(jaxpr):
    return [e.primitive.name for e in jaxpr.eqns]


def test_tracing_removes_dead_code():
    table, unused = np.arange(3.0), np.ones(1000)

    def f(x):
        lax.sin(lax.cos(x))
        lax.add(x, unused[:3])
        return lax.mul(x, table)

    closed = traced(f, np.ones(3))
    assert names(closed) == ["mul"]
    assert len(closed.consts) == len(closed.jaxpr.constvars) == 1


def test_dead_code_of_unwanted_results():
    closed = traced(lambda x, y: (lax.sin(x), lax.cos(y), lax.add(x, y)), 1.0, 2.0)
    jaxpr, _ = dead_code(closed.jaxpr, closed.consts, [False, True, False])
    assert names(jaxpr) == ["cos"] and len(jaxpr.invars) == 2 and len(jaxpr.outvars) == 1
    pruned, used = dead_code_closed(closed, [False, True, False])
    assert used == [False, True] and len(pruned.jaxpr.invars) == 1
    assert float(eval_jaxpr(pruned.jaxpr, pruned.consts, 0.0)[0]) == 1.0
    assert len(closed.eqns) == 3  # the old one stays as it is


def test_dead_code_inside_calls_loops_and_branches():
    def inner(x, y):
        return lax.sin(x), lax.cos(y)

    def f(x, y):
        return xform.jit(inner)(x, y)[0]

    closed = traced(f, 1.0, 2.0)
    (call,) = closed.eqns
    assert len(call.invars) == len(call.outvars) == 1
    assert names(call.params["jaxpr"]) == ["sin"]

    def g(x, y):
        return lax.cond(lax.gt(x, 0.0), inner, lambda a, b: (lax.tanh(a), lax.exp(b)), x, y)[0]

    (cond,) = [e for e in traced(g, 1.0, 2.0).eqns if e.primitive is cond_p]
    assert [names(b) for b in cond.params["branches"]] == [["tanh"], ["sin"]]
    assert [float(xform.jit(g)(s, 2.0)) for s in (1.0, -1.0)] == pytest.approx([np.sin(1.0), np.tanh(-1.0)])


def test_dead_code_of_scans():
    def step(carry, x):
        a, b, c = carry
        return (lax.add(a, x), lax.mul(b, a), lax.sin(c)), (lax.exp(a), lax.cos(c))

    init = (0.0, 1.0, 2.0)
    xs = np.arange(3.0)

    def full(xs):
        return lax.scan(step, init, xs)

    values = [np.asarray(v) for v in tree.leaves(full(xs))]
    body_names = {
        0: {"add"},  # the sum alone
        1: {"add", "mul"},  # the product depends on the sum
        2: {"sin"},
        3: {"add", "exp"},
        4: {"sin", "cos"},
    }
    for i, wanted in body_names.items():

        def f(xs, i=i):
            return tree.leaves(full(xs))[i]

        closed = traced(f, xs)
        (scan,) = [e for e in closed.eqns if e.primitive is scan_p]
        assert set(names(scan.params["jaxpr"])) == wanted, i
        np.testing.assert_allclose(np.asarray(xform.jit(f)(xs)), values[i])
        np.testing.assert_allclose(np.asarray(eval_jaxpr(closed.jaxpr, closed.consts, xs)[0]), values[i])


# ---- Common subexpressions ---------------------------------------------------------------------------------


def test_common_subexpressions():
    def f(x, y):
        a = lax.add(lax.sin(x), lax.sin(x))
        b = lax.add(lax.sin(x), lax.sin(y))
        return lax.mul(a, b), lax.mul(lax.mul(x, 2.0), lax.mul(x, 2.0)), lax.mul(x, 3.0)

    closed = traced(f, 1.0, 2.0)
    jaxpr = common_subexpressions(closed.jaxpr)
    check_jaxpr(jaxpr)
    assert names(jaxpr).count("sin") == 2
    assert names(jaxpr).count("mul") == 4
    for a, b in zip(eval_jaxpr(jaxpr, [], 0.3, 0.7), f(0.3, 0.7), strict=True):
        assert float(a) == float(b)


def test_different_parameters_literals_and_results_stay_apart():
    def f(x):
        return (
            lax.reduce_sum(x, (0,)),
            lax.reduce_sum(x, (1,)),
            lax.mul(x, 1.0),
            lax.mul(x, np.float64(-0.0)),
            lax.mul(x, np.float64(0.0)),
            lax.convert_element_type(x, np.float32),
            lax.convert_element_type(x, np.int32),
        )

    closed = traced(f, np.ones((2, 2)))
    assert len(common_subexpressions(closed.jaxpr).eqns) == 7


def test_effects_are_not_merged():
    p = Primitive("effect")
    p.abstract_eval = lambda x: x
    p.has_effects = True
    closed = traced(lambda x: (p.bind(x), p.bind(x)), 1.0)
    assert names(common_subexpressions(closed.jaxpr)) == ["effect", "effect"]


def test_common_results_of_the_whole_program():
    closed = traced(lambda x: (lax.sin(x), lax.sin(x)), 1.0)
    jaxpr = common_subexpressions(closed.jaxpr)
    assert len(jaxpr.eqns) == 1 and jaxpr.outvars[0] is jaxpr.outvars[1]
