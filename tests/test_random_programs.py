"""Random programs: small graphs of operations with branches, loops, calls, batches and derivatives nested in them.

A program is a list of instructions; each appends a value, a float scalar or a vector of three, to an environment, from
which it takes its operands (by number, modulo how many there are). The bodies of control flow are lists of instructions
too, and see the values around them, as closures do. All transformations of a program must agree, and it must compute
what a plain NumPy interpreter of the same instructions does.
"""

import hypothesis
import hypothesis.strategies as st
import numpy as np

import xform
from xform import lax
from xform.core.config import debug_nans, enable_checks, small_programs
from xform.test_util import numerical_jvp

N = 3
MATRIX = np.array([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.7, 0.2]])
MASK = np.array([True, False, True])

# Smooth and bounded in their slopes, so that differences are accurate. In lax and in NumPy.
UNARY = {
    "sin": (lax.sin, np.sin),
    "cos": (lax.cos, np.cos),
    "tanh": (lax.tanh, np.tanh),
    "neg": (lax.neg, np.negative),
    "atan": (lax.atan, np.arctan),
    "rev": (lambda x: lax.rev(x, (0,)) if x.ndim else x, lambda x: x[::-1] if np.ndim(x) else x),
    "cumsum": (lambda x: lax.cumsum(x) if x.ndim else x, lambda x: np.cumsum(x) if np.ndim(x) else x),
    "sum": (lambda x: lax.reduce_sum(x, tuple(range(x.ndim))), np.sum),
    "roll": (
        lambda x: lax.concatenate([lax.slice(x, (1,), (3,)), lax.slice(x, (0,), (1,))], 0) if x.ndim else x,
        lambda x: np.roll(x, -1) if np.ndim(x) else x,
    ),
    "matmul": (
        lambda x: lax.dot_general(MATRIX, x, (((1,), (0,)), ((), ()))) if x.ndim else lax.mul(x, 0.5),
        lambda x: MATRIX @ x if np.ndim(x) else x * 0.5,
    ),
    "stop": (lambda x: lax.add(lax.stop_gradient(lax.mul(x, 0.0)), x), lambda x: x + 0.0),
    "float32": (lambda x: lax.mul(x, 1.5), lambda x: x * 1.5),
}
BINARY = {
    "add": (lax.add, np.add),
    "sub": (lax.sub, np.subtract),
    "mul": (lambda x, y: lax.mul(lax.sin(x), y), lambda x, y: np.sin(x) * y),
    "div": (lambda x, y: lax.div(x, lax.add(2.5, lax.cos(y))), lambda x, y: x / (2.5 + np.cos(y))),
    "where": (
        lambda x, y: lax.select_n(MASK, broadcast(x), broadcast(y)),
        lambda x, y: np.where(MASK, y, x) + np.zeros(N),
    ),
}

numbers = st.integers(0, 9)
simple = st.one_of(
    st.tuples(st.just("unary"), st.sampled_from(sorted(UNARY)), numbers),
    st.tuples(st.just("binary"), st.sampled_from(sorted(BINARY)), numbers, numbers),
)
bodies = st.lists(simple, min_size=1, max_size=3)


def with_bodies(body):
    return st.one_of(
        st.tuples(st.just("jit"), numbers, body),
        st.tuples(st.just("cond"), numbers, numbers, body, body),
        st.tuples(st.just("scan"), numbers, numbers, body),
        st.tuples(st.just("fori"), numbers, st.integers(0, 3), body),
        st.tuples(st.just("vmap"), numbers, body),
        st.tuples(st.just("grad"), numbers, body),
    )


nested = st.lists(st.one_of(simple, with_bodies(bodies)), min_size=1, max_size=3)
programs = st.lists(st.one_of(simple, with_bodies(nested)), min_size=2, max_size=4)


# ---- The program in this library ---------------------------------------------------------------------------


def broadcast(x):
    return x if x.ndim else lax.broadcast_in_dim(x, (N,), ())


def scalar(x):
    return lax.mul(lax.reduce_sum(x, (0,)), 1 / N) if x.ndim else x


def run(program, env):
    """The last value."""
    for kind, *rest in program:
        env = [*env, INSTRUCTIONS[kind](env, *rest)]
    return env[-1]


def pick(env, i):
    return env[i % len(env)]


def cond(env, i, j, yes, no):
    positive = lax.gt(scalar(pick(env, i)), 0.1)
    return lax.cond(
        positive, lambda x: broadcast(run(yes, [*env, x])), lambda x: broadcast(run(no, [*env, x])), pick(env, j)
    )


def scan(env, i, j, body):
    def step(c, x):
        new = lax.sin(scalar(run(body, [*env, c, x])))
        return new, lax.mul(new, x)

    c, ys = lax.scan(step, scalar(pick(env, i)), broadcast(pick(env, j)))
    return lax.add(ys, c)


def fori(env, i, n, body):
    return lax.fori_loop(0, n, lambda k, x: lax.tanh(broadcast(run(body, [*env, x]))), broadcast(pick(env, i)))


def grad(env, i, body):
    return xform.grad(lambda x: scalar(run(body, [*env, x])))(pick(env, i))


INSTRUCTIONS = {
    "unary": lambda env, name, i: UNARY[name][0](pick(env, i)),
    "binary": lambda env, name, i, j: BINARY[name][0](pick(env, i), pick(env, j)),
    "jit": lambda env, i, body: xform.jit(lambda x: run(body, [*env, x]))(pick(env, i)),
    "cond": cond,
    "scan": scan,
    "fori": fori,
    "vmap": lambda env, i, body: xform.vmap(lambda x: scalar(run(body, [*env, x])))(broadcast(pick(env, i))),
    "grad": grad,
}


def function_of(program):
    return lambda x, y: broadcast(run(program, [x, y]))


# ---- The same in plain NumPy -------------------------------------------------------------------------------


def plain(program, env):
    for kind, *rest in program:
        env = [*env, PLAIN[kind](env, *rest)]
    return env[-1]


def plain_scan(env, i, j, body):
    c, ys = np.mean(pick(env, i)), []
    for x in pick(env, j) + np.zeros(N):
        c = np.sin(np.mean(plain(body, [*env, c, x])))
        ys.append(c * x)
    return np.array(ys) + c


def plain_fori(env, i, n, body):
    x = pick(env, i) + np.zeros(N)
    for _ in range(n):
        x = np.tanh(plain(body, [*env, x]) + np.zeros(N))
    return x


def plain_grad(env, i, body):
    x, h, out = np.asarray(pick(env, i)), 1e-5, []
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = h
        step = step.reshape(x.shape)
        ahead, behind = (np.mean(plain(body, [*env, x + s])) for s in (step, -step))
        out.append((ahead - behind) / (2 * h))
    return np.array(out).reshape(x.shape)


PLAIN = {
    "unary": lambda env, name, i: UNARY[name][1](pick(env, i)),
    "binary": lambda env, name, i, j: BINARY[name][1](pick(env, i), pick(env, j)),
    "jit": lambda env, i, body: plain(body, [*env, pick(env, i)]),
    "cond": lambda env, i, j, yes, no: (
        plain(yes if np.mean(pick(env, i)) > 0.1 else no, [*env, pick(env, j)]) + np.zeros(N)
    ),
    "scan": plain_scan,
    "fori": plain_fori,
    "vmap": lambda env, i, body: np.array([np.mean(plain(body, [*env, x])) for x in pick(env, i) + np.zeros(N)]),
    "grad": plain_grad,
}


def depth_of_grads(program):
    return sum(
        (kind == "grad") + sum(depth_of_grads(r) for r in rest if isinstance(r, list)) for kind, *rest in program
    )


def predicates(program, env):
    """Distances of all predicates from where they change (of those outside of other bodies)."""
    out = []
    for kind, *rest in program:
        if kind == "cond":
            out.append(abs(np.mean(pick(env, rest[0])) - 0.1))
        env = [*env, PLAIN[kind](env, *rest)]
    return out


# ---- All agree ---------------------------------------------------------------------------------------------

points = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).uniform(-1.5, 1.5, N + 1))


def close(a, b, rtol=1e-11):
    a, b = np.asarray(a), np.asarray(b)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, abs(b).max(initial=0.0)))


@hypothesis.given(programs, points)
def test_all_transformations_agree(program, point):
    """On the host: `debug_nans` has jitted functions staged, then run by NumPy."""
    f, args = function_of(program), (point[:N], point[N])
    v, u = (np.cos([1.0, 2.0, 3.0]), np.cos(4.0)), (np.cos([5.0, 6.0, 7.0]), np.cos(8.0))
    w = np.sin([1.0, 2.0, 3.0])
    with enable_checks(True), debug_nans(True):
        value = f(*args)
        close(xform.jit(f)(*args), value)
        if not depth_of_grads(program):
            close(value, plain(program, list(args)) + np.zeros(N), 1e-10)

        def forward(*x):
            return xform.jvp(f, x, v)[1]

        def reverse(*x):
            return xform.vjp(f, *x)[1](w)

        tangent, cotangents = forward(*args), reverse(*args)
        if all(d > 1e-3 for d in predicates(program, list(args))):
            close(tangent, numerical_jvp(f, args, v), 1e-5)
        pairing = sum(np.sum(np.asarray(c) * t) for c, t in zip(cotangents, v, strict=True))
        close(pairing, np.sum(w * np.asarray(tangent)), 1e-10)
        close(xform.linearize(f, *args)[1](*v), tangent)

        # Second order, all four ways.
        second = np.sum(w * np.asarray(xform.jvp(forward, args, u)[1]))
        of_reverse = xform.jvp(reverse, args, u)[1]
        close(sum(np.sum(np.asarray(c) * t) for c, t in zip(of_reverse, v, strict=True)), second, 1e-9)
        for pull in (xform.vjp(forward, *args)[1](w), xform.vjp(reverse, *args)[1](v)):
            close(sum(np.sum(np.asarray(c) * t) for c, t in zip(pull, u, strict=True)), second, 1e-9)

        # Derivatives of and inside of jit, and batches of everything.
        for g in (lambda *x: xform.vjp(xform.jit(f), *x)[1](w), xform.jit(reverse)):
            for a, b in zip(g(*args), cotangents, strict=True):
                close(a, b)
        xs, ys = np.stack([args[0], -args[0], 0.5 * args[0]]), np.array([args[1], 0.3, -args[1]])
        for g in (lambda x, y: (f(x, y),), forward, reverse, xform.jit(reverse)):
            rows = [tuple(g(x, y)) if g is not forward else (g(x, y),) for x, y in zip(xs, ys, strict=True)]
            batched = xform.vmap(g)(xs, ys)
            for a, b in zip(batched if g is not forward else (batched,), zip(*rows, strict=True), strict=True):
                close(a, np.stack([np.asarray(r) for r in b]))
        some = xform.vmap(f, in_axes=(1, None), out_axes=1)(xs.T, ys[0])
        close(some, np.stack([np.asarray(f(x, ys[0])) for x in xs], 1))
    # Eager reverse mode, which from the second time on follows plans that it made the first time.
    for _ in range(3):
        for a, b in zip(xform.vjp(f, *args)[1](w), cotangents, strict=True):
            close(a, b)


@hypothesis.given(programs, points)
@hypothesis.settings(max_examples=8)
def test_compiled_programs_agree(program, point):
    """Value, gradient, batch and batch of gradients as one program, by XLA."""
    f, args = function_of(program), (point[:N], point[N])
    w = np.sin([1.0, 2.0, 3.0])

    def everything(x, y):
        def gradient(x, y):
            return xform.vjp(f, x, y)[1](w)

        xs, ys = lax.concatenate([lax.reshape(x, (1, N)), lax.reshape(lax.neg(x), (1, N))], 0), np.array([0.3, -0.9])
        return [f(x, y), *gradient(x, y), xform.vmap(f)(xs, ys), *xform.vmap(gradient)(xs, ys)]

    with enable_checks(True), small_programs("xla"):
        for a, b in zip(xform.jit(everything)(*args), everything(*args), strict=True):
            close(a, b)
