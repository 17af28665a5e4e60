"""Every operation of the table `tests.ops`, through every transformation.

``pytest tests/test_ops.py -k "sin-"`` tests one operation. Where XLA is needed, all the samples of an
operation are compiled as one program. The checks:

* values against NumPy or SciPy, their types against `eval_shape`; all dtypes; strided and big-endian arrays
* XLA against the host: integers bitwise, floats within a few ulps, NaN, infinities and signed zeros alike
* jvp = vjp = central differences, first and second order (all four ways), eager and compiled
* vmap against a loop: subsets of the arguments, leading and last axes, nested; of derivatives; compiled
* wrong calls raise the error that the record says, and it names the function
* every primitive of the library has a record
"""

import importlib
import itertools
import pkgutil
import re
import traceback

import numpy as np
import pytest

import tests.ops
import xform
import xform.lax
from tests.calls import OPTIMIZED, Call, check, compiler_options, differences, host, inner, like, size_of, tolerance_of
from tests.ops.record import Op, as_dtype, eps, kind
from xform.core import tree
from xform.core.config import enable_checks, small_programs
from xform.core.trace import Primitive
from xform.test_util import numerical_jvp

# Primitives that hold programs or need named axes: no table fits them. Where they are tested instead.
TESTED_ELSEWHERE = {
    "add_any": "sums of cotangents: every derivative of an operation used twice",
    "cond": "test_control_flow, test_compositions",
    **dict.fromkeys(["checkpoint", "name"], "test_checkpoint"),
    **dict.fromkeys(["alternative", "saved"], "test_custom_gradients: rules with remat under checkpoint"),
    **dict.fromkeys(["custom_jvp_call", "custom_linear", "custom_vjp_call", "linear_call"], "test_custom_derivatives"),
    "custom_vmap_call": "test_custom_batching",
    "linear_solve": "test_solves",
    "zero_product": "test_marks",
    "dce_sink": "test_lax_arguments",
    "digamma_of_positive": "test_special: in derivatives of incomplete gamma and beta functions",
    "entry": "test_negative_axis: tables inside formulas",
    "jit": "test_jit, test_compositions",
    "platform_index": "test_control_flow",
    "scan": "test_control_flow, test_compositions",
    "unused": "test_control_flow: residuals of branches",
    "while": "test_control_flow, test_compositions",
    **dict.fromkeys(["while_back", "while_saving", "while_tangents"], "test_while_gradients"),
    **dict.fromkeys(
        ["all_gather", "all_to_all", "axis_index", "pmap", "pmax", "pmin", "ppermute", "psum"], "test_collectives"
    ),
}

BROKEN: dict[str, str] = {}  # modules of the table that can't be imported
MODULES: dict[str, list[Op]] = {}
for _info in pkgutil.iter_modules(tests.ops.__path__):
    if _info.name != "record":
        try:
            MODULES[_info.name] = list(importlib.import_module(f"tests.ops.{_info.name}").OPS)
        except Exception:  # a test of its own fails, so that the other records can be tested meanwhile
            BROKEN[_info.name] = traceback.format_exc()
OPS = [op for ops in MODULES.values() for op in ops]


# ---- Choices ----------------------------------------------------------------------------------------------


def calls_of(op: Op, dtype, rng, edges=False):
    """All samples of a dtype, or its edge cases."""
    dtype = as_dtype(dtype)
    samples = op.edges(dtype) if edges else op.samples(rng, dtype)
    return [Call(op, s, dtype) for s in samples]


def some(calls, n=3):
    """A few of them, none of them empty, to be compiled."""
    full = [c for c in calls if all(x.size for x in c.arrays)]
    return [full[i * len(full) // n] for i in range(n)] if len(full) > n else full


def widest(op: Op):
    """Of each kind the widest dtype that the operation accepts."""
    found = {kind(d): d for d in sorted(op.dtypes, key=lambda d: as_dtype(d).itemsize)}
    return list(found.values())


def differentiable_dtypes(op: Op):
    return [d for d in ("float64", "complex128") if d in op.dtypes] if op.differentiable else []


def each(ops, what=None):
    """Parametrize by operation, or by operation and what it lists (dtypes, errors)."""
    if what is None:
        return pytest.mark.parametrize("op", [pytest.param(op, id=f"{op.name}-") for op in ops])
    params = [
        pytest.param(op, x, id=f"{op.name}-{x if isinstance(x, str) else i}")
        for op in ops
        for i, x in enumerate(what(op))
    ]
    return pytest.mark.parametrize(("op", "value"), params)


# ---- Values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [*MODULES, *BROKEN])
def test_records_can_be_imported(module):
    assert module not in BROKEN, BROKEN[module]


def test_names_are_unique():
    names = [op.name for op in OPS]
    assert sorted(names) == sorted(set(names))


def primitives(package=xform.lax):
    """The primitives in all modules of a package, each once."""
    found = {}
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for value in vars(importlib.import_module(info.name)).values():
            for p in (
                value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else [value]
            ):
                if isinstance(p, Primitive):
                    found[id(p)] = p
    return list(found.values())


def test_names_of_primitives_are_unique():
    names = [p.name for p in primitives(xform)]
    assert {"add", "linear_call", "plan_call"} <= set(names)
    assert sorted(names) == sorted(set(names))


def test_every_primitive_has_a_record():
    recorded = {op.primitive for op in OPS}
    found = {p.name for p in primitives()}
    assert not set(TESTED_ELSEWHERE) - found, "no such primitives"
    missing = found - recorded - set(TESTED_ELSEWHERE)
    assert not missing, f"no record in tests/ops of {sorted(missing)}"


@each(OPS, lambda op: op.dtypes)
def test_values(op, value, rng):
    problems = []
    for edges in (False, True) if op.edges else (False,):
        for call in calls_of(op, value, rng, edges):
            outs = call(*call.arrays)
            shapes = tree.leaves(xform.eval_shape(call, *call.arrays))
            assert all(isinstance(o, xform.Array) for o in outs)
            for o, s in zip(outs, shapes, strict=True):
                h = np.asarray(o)
                if (h.shape, h.dtype) != (s.shape, s.dtype):
                    problems.append(f"{call}: host rule gives {h.dtype}{list(h.shape)}, abstract_eval {s}")
            if op.reference is not None:
                wanted = call.reference()
                for o, w in zip(outs, wanted, strict=False):
                    if kind(o.dtype) != kind(w.dtype):
                        problems.append(f"{call}: result of {o.dtype}, reference of {w.dtype}")
                with np.errstate(all="ignore"):
                    wanted = [w.astype(o.dtype) for w, o in zip(wanted, outs, strict=False)]
                problems += differences(call, outs, wanted, tolerance_of(op), 0.1 * (not edges), zeros=edges)
    check(problems)


def strided(x):
    """An equal array with strides that are not contiguous and in part negative."""
    if not x.ndim:
        return x
    wide = np.zeros(tuple(2 * d for d in x.shape), x.dtype)
    view = wide[(slice(None, None, -2),) + (slice(None, None, 2),) * (x.ndim - 1)]
    view[...] = x
    return view


def big_endian(x):
    return np.asarray(x.astype(x.dtype.newbyteorder(">")) if x.dtype.isbuiltin == 1 else x)


@each(OPS)
def test_jit(op, rng):
    """XLA against the host; on arrays of odd layout too."""
    calls = []
    main, *others = sorted(widest(op), key=lambda d: kind(d) not in "fc")
    for d in op.dtypes:
        mine = calls_of(op, d, rng)
        edges = calls_of(op, d, rng, True) if op.edges else []
        chosen = mine if d == main else some(mine, 2) if d in others else [] if edges else some(mine, 1)
        calls += [(c, False) for c in chosen]
        calls += [(c, True) for c in edges]

    def program(inputs):
        return [call(*xs) for (call, _), xs in zip(calls, inputs, strict=True)]

    inputs = [c.arrays for c, _ in calls]
    # Optimization could treat special values in its own way: where there are some, the program is as users have it.
    compiled = xform.jit(program, compiler_options=OPTIMIZED if op.edges else None)
    with enable_checks(True), small_programs("xla"):
        results = compiled(inputs)
        odd = compiled([[strided(x) for x in xs] for xs in inputs])
    problems = []
    for (call, edges), got in zip(calls, results, strict=True):
        eager = call(*call.arrays)
        problems += differences(call, got, eager, lambda d: op.ulps * eps(d), 0.1 * (not edges), zeros=edges)
        for change in (strided, big_endian):
            again = call(*map(change, call.arrays))
            found = differences(call, again, eager, lambda d: op.ulps * eps(d), 0.1 * (not edges), zeros=edges)
            problems += [f"{change.__name__} {p}" for p in found]
    for (call, _), a, b in zip(calls, results, odd, strict=True):
        problems += differences(call, b, host(a), lambda d: 0.0, zeros=True)
    check(problems)


@each([op for op in OPS if op.errors], lambda op: op.errors)
def test_errors(op, value):
    thunk, exception, message = value
    with pytest.raises(exception, match=message) as error:
        thunk()
    names = ["lax", op.primitive, getattr(op.fun, "__name__", op.primitive)]  # "lax.function: ..."
    assert any(re.search(rf"\b{n}\b", str(error.value)) for n in names), f"{error.value} does not name {names}"


def test_every_record_has_errors():
    assert not [op.name for op in OPS if not op.errors], "records without a wrong call"


# ---- Derivatives -------------------------------------------------------------------------------------------


@each(OPS, differentiable_dtypes)
def test_derivatives(op, value, rng):
    problems = []
    for call in calls_of(op, value, rng):
        if not call.has_derivative():
            continue
        f, xs = call.smooth()
        outs = f(*xs)
        vs, ws, us = like(rng, xs), like(rng, outs), like(rng, xs)
        precision = max(eps(x.dtype) for x in (*xs, *outs))
        tol = max(op.grad_rtol, 50 * precision ** (2 / 3))

        def against(what, a, b, size, tol=tol, call=call, problems=problems):
            if not abs(a - b) <= tol * (1e-3 + size):
                problems.append(f"{call}: {what} is {a!r}, expected {b!r}")

        # First order.
        primal, tangent = xform.jvp(f, xs, vs)
        numeric = numerical_jvp(f, xs, vs)
        problems += differences(call, primal, host(outs), lambda d: 4 * eps(d))
        problems += [
            f"jvp against differences: {p}"
            for p in differences(
                call,
                tangent,
                [n.astype(o.dtype) for n, o in zip(numeric, outs, strict=True)],
                lambda d, t=tol: t,
            )
        ]
        cotangents = xform.vjp(f, *xs)[1](list(ws))
        assert [(c.shape, c.dtype) for c in cotangents] == [(x.shape, x.dtype) for x in xs]
        for _ in range(2):  # the second time an operation is met eagerly, it goes another way
            again = xform.vjp(f, *xs)[1](list(ws))
            problems += [f"vjp again {p}" for p in differences(call, again, host(cotangents), lambda d: 4 * eps(d), 1)]
        exact = max(1e-10, 50 * precision)
        against(
            "vjp",
            inner(cotangents, vs),
            inner(ws, tangent),
            size_of(cotangents, vs) + size_of(ws, tangent),
            exact,
        )
        if op.order < 2:
            continue

        # Second order: <w, D2 f(x)[v, u]>, all four ways.
        def forward(*x, f=f, vs=vs):
            return xform.jvp(f, x, vs)[1]

        def reverse(*x, f=f, ws=ws):
            return xform.vjp(f, *x)[1](list(ws))

        bends = numerical_jvp(forward, xs, us)
        expected, size = inner(ws, bends), size_of(ws, bends) + size_of(ws, tangent) + size_of(cotangents, vs)
        second = xform.jvp(forward, xs, us)[1]
        against("forward over forward", inner(ws, second), expected, size)
        exact_value = inner(ws, second)
        against("forward over reverse", inner(xform.jvp(reverse, xs, us)[1], vs), exact_value, size, exact)
        against("reverse over forward", inner(xform.vjp(forward, *xs)[1](list(ws)), us), exact_value, size, exact)
        against("reverse over reverse", inner(xform.vjp(reverse, *xs)[1](vs), us), exact_value, size, exact)
    check(problems)


@each([op for op in OPS if op.differentiable], lambda op: [d for d in op.dtypes if kind(d) in "fc"])
def test_types_of_derivatives(op, value, rng):
    for call in some(calls_of(op, value, rng), 2):
        f, xs = call.smooth()
        outs, tangents = xform.jvp(f, xs, like(rng, xs))
        assert [(t.shape, t.dtype) for t in host(tangents)] == [(o.shape, o.dtype) for o in outs]
        cotangents = xform.vjp(f, *xs)[1](list(like(rng, outs)))
        assert [(c.shape, c.dtype) for c in host(cotangents)] == [(x.shape, x.dtype) for x in xs]


def derive_one(f, xs, vs, ws, order):
    """Tangents, cotangents, and from order 2 on the derivative of the cotangents along `vs`."""
    out = [*xform.jvp(f, tuple(xs), tuple(vs))[1], *xform.vjp(f, *xs)[1](ws)]
    if order >= 2:
        out += xform.jvp(lambda *x: xform.vjp(f, *x)[1](ws), tuple(xs), tuple(vs))[1]
    return out


@each([op for op in OPS if differentiable_dtypes(op)])
def test_compiled_derivatives(op, rng):
    """jit of derivatives, derivatives of jit and under checkpoint, against the eager ones; in three programs."""
    calls = []
    for d in differentiable_dtypes(op):
        calls += some([c for c in calls_of(op, d, rng) if c.has_derivative()], 2 if d == "float64" else 1)
    smooth = [c.smooth() for c in calls]
    points = [xs for _, xs in smooth]
    directions = [like(rng, xs) for xs in points]
    weights = [list(like(rng, f(*xs))) for f, xs in smooth]

    def derive(points, directions, weights):
        rows = zip(smooth, points, directions, weights, strict=True)
        return [derive_one(f, xs, vs, ws, op.order) for (f, _), xs, vs, ws in rows]

    def values(points):
        return [f(*xs) for (f, _), xs in zip(smooth, points, strict=True)]

    with enable_checks(True), small_programs("xla"):
        eager = derive(points, directions, weights)
        compiled = xform.jit(derive)(points, directions, weights)
        (pulled,) = xform.vjp(xform.jit(values), points)[1](weights)
    problems = []
    for d in differentiable_dtypes(op):  # one sample of each dtype under checkpoint
        i = next(i for i, c in enumerate(calls) if c.dtype == as_dtype(d))
        f, xs = smooth[i]
        again = derive_one(xform.checkpoint(f), xs, directions[i], weights[i], op.order)
        found = differences(calls[i], again, host(eager[i]), lambda d: 16 * op.ulps * eps(d), 1)
        problems += [f"under checkpoint {m}" for m in found]
    for call, f, e, c, p, ws in zip(calls, smooth, eager, compiled, pulled, weights, strict=True):
        problems += [
            f"jit of derivatives {m}" for m in differences(call, c, host(e), lambda d: 16 * op.ulps * eps(d), 1)
        ]
        n, k = len(p), len(e) - (2 if op.order >= 2 else 1) * len(p)
        assert n == len(f[1])
        expected = host(e)[k : k + n]
        found = differences(call, p, expected, lambda d: 16 * op.ulps * eps(d), 1, beside=ws)
        problems += [f"vjp of jit {m}" for m in found]
    check(problems)


# ---- Batching ----------------------------------------------------------------------------------------------

LANES = 3


def draws_of(op, dtype, rng, n=LANES):
    """Each sample `n` times with other numbers: a list of lists of calls."""
    drawn = [calls_of(op, dtype, rng) for _ in range(n)]
    out = []
    for calls in zip(*drawn, strict=True):
        first = calls[0]
        for c in calls[1:]:
            assert [x.shape for x in c.arrays] == [x.shape for x in first.arrays], (
                "shapes of samples must not be random"
            )
            static = [i for i in range(len(c.leaves)) if i not in c.where]
            assert all(c.leaves[i] == first.leaves[i] for i in static) and c.sample.kwargs == first.sample.kwargs, (
                "static arguments of samples must not be random"
            )
        out.append(list(calls))
    return out


def subsets(n, most=7):
    """Which of n arguments to map: all, each one alone, then others."""
    order = sorted(itertools.product([True, False], repeat=n), key=lambda m: (sum(m) != n, sum(m) != 1))
    return [m for m in order if any(m)][:most]


def mapped(calls, mask, axis):
    """Arguments stacked where the mask says, and in_axes."""
    columns = zip(*[c.arrays for c in calls], strict=True)
    args = [np.stack(c, axis) if m else c[0] for c, m in zip(columns, mask, strict=True)]
    return args, tuple(axis if m else None for m in mask)


def looped(calls, mask, function):
    """What vmap should give: the results of single calls, stacked."""
    rows = [
        host(function(*[x if m else x0 for x, x0, m in zip(c.arrays, calls[0].arrays, mask, strict=True)]))
        for c in calls
    ]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def batch_tolerance(dtype):
    return 16 * eps(dtype)


BATCHED = [op for op in OPS if op.batched]


@each(BATCHED, widest)
def test_vmap(op, value, rng):
    problems = []
    for calls in draws_of(op, value, rng):
        call = calls[0]
        n = len(call.arrays)
        if not n:
            continue
        for mask, axis in itertools.product(subsets(n), (0, -1)):
            args, in_axes = mapped(calls, mask, axis)
            got = xform.vmap(call, in_axes)(*args)
            found = differences(call, got, looped(calls, mask, call), batch_tolerance)
            problems += [f"vmap in_axes={in_axes} {m}" for m in found]
        # Nested: the inner axis last, the outer one first, of different lengths.
        args, in_axes = mapped(calls, [True] * n, -1)
        got = xform.vmap(xform.vmap(call, in_axes))(*[np.stack([x, x]) for x in args])
        once = looped(calls, [True] * n, call)
        problems += [f"nested {m}" for m in differences(call, got, [np.stack([x, x]) for x in once], batch_tolerance)]
        got = xform.vmap(call, in_axes, out_axes=-1)(*args)
        found = differences(call, got, [np.moveaxis(x, 0, -1) for x in once], batch_tolerance)
        problems += [f"out_axes=-1 {m}" for m in found]
    check(problems)


def derivatives_of(call, rng):
    """A function of all arrays to tangents and cotangents with fixed weights."""
    f, xs = call.smooth()
    ws = list(like(rng, f(*xs)))
    vs = like(rng, xs)

    def derive(*arrays):
        def g(*xs):
            arguments = list(arrays)
            for i, x in zip(call.inexact, xs, strict=True):
                arguments[i] = x
            return [o for o in call(*arguments) if kind(o.dtype) in "fc"]

        xs = tuple(arrays[i] for i in call.inexact)
        return [*xform.jvp(g, xs, vs)[1], *xform.vjp(g, *xs)[1](ws)]

    return derive


@each([op for op in BATCHED if differentiable_dtypes(op)], differentiable_dtypes)
def test_vmap_of_derivatives(op, value, rng):
    problems = []
    for calls in draws_of(op, value, rng):
        call = calls[0]
        if not call.has_derivative():
            continue
        derive = derivatives_of(call, rng)
        for mask in subsets(len(call.arrays), 3):
            args, in_axes = mapped(calls, mask, -1)
            got = xform.vmap(derive, in_axes)(*args)
            found = differences(call, got, looped(calls, mask, derive), lambda d: 16 * op.ulps * eps(d), 1)
            problems += [f"vmap of derivatives in_axes={in_axes} {m}" for m in found]
    check(problems)


@each(BATCHED)
def test_compiled_vmap(op, rng):
    """jit of vmap: all arguments mapped, and the first one alone; one program."""
    cases = []
    for d in widest(op):
        drawn = {id(c[0]): c for c in draws_of(op, d, rng)}
        for call in some([c[0] for c in drawn.values()], 2):
            if call.arrays:
                for mask in subsets(len(call.arrays), 2):
                    cases.append((drawn[id(call)], mask, *mapped(drawn[id(call)], mask, -1)))

    def program(inputs):
        return [xform.vmap(calls[0], axes)(*xs) for (calls, _, _, axes), xs in zip(cases, inputs, strict=True)]

    with enable_checks(True), small_programs("xla"):
        compiled = xform.jit(program, compiler_options=compiler_options(op))
        results = compiled([args for _, _, args, _ in cases])
    problems = []
    for (calls, mask, _, _), got in zip(cases, results, strict=True):
        wanted = looped(calls, mask, calls[0])
        problems += differences(calls[0], got, wanted, lambda d: max(16, op.ulps) * eps(d))
    check(problems)
