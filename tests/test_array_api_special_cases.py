"""Special cases of the array API standard, as in the tables of array_api_special_cases.py: NaN, infinities, zeros."""

import functools
import itertools
import math
import operator

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.array_api_special_cases import COMPLEX, NUMPYS, REAL, SETS
from tests.calls import OPTIMIZED
from xform.core.config import small_programs


def number(text):
    """A float of its text, in which pi may stand."""
    sign = -1.0 if text.startswith("-") else 1.0
    top, _, bottom = text.lstrip("-").partition("/")
    factor, pi, _ = top.partition("pi")
    return sign * (float(factor or 1) * math.pi / float(bottom or 1) if pi else float(top))


def cases(text):
    """The arguments, and for each part of the result what is allowed: numbers, and whether their sign is open."""
    for case in text.split():
        arguments, _, result = case.partition(":")
        for chosen in itertools.product(*(SETS.get(a, [a]) for a in arguments.split(","))):
            names = dict(zip("xy", chosen))
            parts = [[names.get(v, v) for v in part.split("|")] for part in result.split(",")]
            yield [number(a) for a in chosen], [[(number(v.strip("~")), "~" in v) for v in part] for part in parts]


def is_as_said(value, allowed):
    """Whether a real number is one of those allowed, with its sign, to a few digits."""
    for want, open_sign in allowed:
        if math.isnan(want):
            same = math.isnan(value)
        elif open_sign:
            same = abs(value) == abs(want)
        elif want == 0 or math.isinf(want):
            same = value == want and math.copysign(1, value) == math.copysign(1, want)
        else:
            same = abs(value - want) <= 8 * np.finfo(value.dtype).eps * abs(want)
        if same:
            return True
    return False


def check(got, said):
    """Compares an array with what the cases say, and names all that differ."""
    parts = (got.real, got.imag) if got.dtype.kind == "c" else (got,)
    wrong = [
        f"f({arguments}) = {value}, not {allowed}"
        for value, of_parts, (arguments, allowed) in zip(got, zip(*parts), said, strict=True)
        if not all(map(is_as_said, of_parts, allowed))
    ]
    assert not wrong, "\n".join(wrong)


def evaluate(transform, function, *arguments, **parameters):
    """Eagerly, or compiled by XLA."""
    arguments, function = [xnp.asarray(a) for a in arguments], functools.partial(function, **parameters)
    if transform == "eager":
        return np.asarray(function(*arguments))
    with small_programs("xla"):
        return np.asarray(xform.jit(function, compiler_options=OPTIMIZED)(*arguments))


both_ways = pytest.mark.parametrize("transform", ["eager", "compiled"])
each_way = pytest.mark.parametrize("transform", ["eager", "compiled", "compiled large"])


def repeated(said, transform):
    """Large arrays are computed by other formulas."""
    said = list(said)
    return said * (2000 // len(said)) if transform == "compiled large" else said


OPERATORS = {
    "abs": operator.abs,
    "add": operator.add,
    "divide": operator.truediv,
    "equal": operator.eq,
    "floor_divide": operator.floordiv,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
    "multiply": operator.mul,
    "negative": operator.neg,
    "not_equal": operator.ne,
    "positive": operator.pos,
    "pow": operator.pow,
    "remainder": operator.mod,
    "subtract": operator.sub,
}


# ---- Real functions ------------------------------------------------------------------------------------------


def as_floats(x, dtype):
    assert x.dtype in (dtype, bool)
    return x.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@each_way
@pytest.mark.parametrize("name", REAL)
def test_real(name, transform, dtype):
    said = repeated(cases(REAL[name]), transform)
    columns = [np.asarray(c, dtype) for c in zip(*(arguments for arguments, _ in said))]
    check(as_floats(evaluate(transform, getattr(xnp, name), *columns), dtype), said)
    if name in OPERATORS and transform != "compiled large":
        check(as_floats(evaluate(transform, OPERATORS[name], *columns), dtype), said)


@pytest.mark.parametrize(("transform", "dtype"), [("eager", "float32"), ("eager", "float64"), ("compiled", "float64")])
@pytest.mark.parametrize("name", [n for n in REAL if "," in REAL[n]])
def test_real_with_a_number(name, transform, dtype):
    """Python numbers beside an array go other ways, and XLA simplifies what it knows."""
    for function, place in itertools.product((getattr(xnp, name), OPERATORS.get(name)), (0, 1)):
        said = sorted(cases(REAL[name]), key=lambda case: repr(case[0][1 - place]))
        numbers = [arguments[1 - place] for arguments, _ in said]
        starts = [k for k in range(len(said)) if not k or repr(numbers[k]) != repr(numbers[k - 1])]

        def program(x, function=function, place=place, starts=starts, numbers=numbers):
            parts = zip(xnp.split(x, starts[1:]), (numbers[k] for k in starts), strict=True)
            return xnp.concatenate([function(*((part, n) if place == 0 else (n, part))) for part, n in parts])

        if function is not None:
            x = np.asarray([arguments[place] for arguments, _ in said], dtype)
            check(as_floats(evaluate(transform, program, x), dtype), said)


@both_ways
def test_signs_of_nan(transform):
    """copysign and signbit heed them."""
    nan, x = np.asarray([math.nan, -math.nan]), np.asarray([3.0, math.nan])
    np.testing.assert_array_equal(evaluate(transform, xnp.signbit, nan), [False, True])
    got = evaluate(transform, xnp.copysign, x[:, None], nan)
    np.testing.assert_array_equal(np.signbit(got), [[False, True]] * 2)
    np.testing.assert_array_equal(np.abs(got), [[3, 3], [math.nan, math.nan]])
    for sign in (1, -1):
        got = evaluate(transform, xnp.copysign, x[1:], np.asarray([0.5, 0.0, math.inf]) * sign)
        assert np.isnan(got).all() and (np.signbit(got) == (sign < 0)).all()


@both_ways
def test_clip(transform):
    grid = np.asarray(list(itertools.product([0.5, math.nan], repeat=3)))
    got = evaluate(transform, xnp.clip, *grid.T)
    np.testing.assert_array_equal(got, np.where(np.isnan(grid).any(1), math.nan, 0.5))
    for low, high in ((math.nan, None), (None, math.nan), (math.nan, 1.0)):
        assert np.isnan(evaluate(transform, xnp.clip, np.asarray([0.5]), min=low, max=high)).all()


@both_ways
@pytest.mark.parametrize("shape", ["scalar", (), (1,), (6,), (2, 1), (2, 6)])
def test_powers_of_a_half_are_no_roots(shape, transform):
    """The standard has infinity and 0 for -infinity and -0, where the square root gives NaN and -0."""
    x = np.asarray([-math.inf, -0.0, -1, math.nan, 4, math.inf], "float32")
    y = 0.5 if shape == "scalar" else xnp.broadcast_to(xnp.asarray(0.5, dtype="float32"), shape)
    want = np.asarray([math.inf, 0, math.nan, math.nan, 2, math.inf], "float32")
    said = [([v], [[(w, False)]]) for v, w in zip(x, want)]
    for row in evaluate(transform, lambda x: x**y, x).reshape(-1, 6):
        check(row, said)
    if transform == "eager":
        check(np.asarray(xnp.asarray(x).at[:].power(0.5)), said)


# ---- Complex functions ---------------------------------------------------------------------------------------

PARTS = [0.0, -0.0, 1.5, -0.5, math.inf, -math.inf, math.nan]
PLANE = np.asarray([complex(a, b) for a in PARTS for b in PARTS])


def join(re, im):
    out = np.empty(re.shape, np.result_type(re, np.complex64))
    out.real, out.imag = re, im
    return out


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@each_way
@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name, transform, dtype):
    said = repeated(cases(COMPLEX[name] + NUMPYS.get(name, "")), transform)
    z = np.asarray([complex(*arguments) for arguments, _ in said], dtype)
    got = evaluate(transform, getattr(xnp, name), z)
    assert got.dtype == dtype
    check(got, said)


def same_but_for_signs_of_nothing(got, want, of=0.0, signs=True):
    """Equal parts; the signs of zeros and infinities may differ where the other part, or one of the operand, is NaN."""
    open_sign = np.isnan(got) | np.isnan(of)
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        a, b = (np.where(open_sign, np.abs(v), v) for v in (a, b))
        np.testing.assert_allclose(a, b, rtol=1e-14)
        zero = (b == 0) & ~open_sign
        if signs:
            np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


@both_ways
@pytest.mark.parametrize("pair", ["asin asinh", "atan atanh", "sin sinh", "tan tanh", "cos cosh"])
def test_circular_functions_are_hyperbolic_ones_turned(pair, transform):
    """Of z they are -j times the hyperbolic function of j z; the cosine is that of j z."""
    circular, hyperbolic = (getattr(xnp, name) for name in pair.split())
    got = evaluate(transform, circular, PLANE)
    want = evaluate(transform, hyperbolic, join(-PLANE.imag, PLANE.real))
    same_but_for_signs_of_nothing(got, want if pair == "cos cosh" else join(want.imag, -want.real))


@both_ways
@pytest.mark.parametrize("name", list(COMPLEX))
def test_functions_of_the_conjugate(name, transform):
    function = getattr(xnp, name)
    got = evaluate(transform, lambda z: xnp.stack([function(z), xnp.conj(function(xnp.conj(z)))]), PLANE)
    same_but_for_signs_of_nothing(*got, PLANE, signs=name != "sign")  # that of zero is 0 + 0j


@both_ways
@pytest.mark.parametrize("name", ["asinh", "atanh", "sinh", "tanh", "cosh"])
def test_odd_and_even_functions(name, transform):
    function, sign = getattr(xnp, name), xnp.positive if name == "cosh" else xnp.negative
    got = evaluate(transform, lambda z: xnp.stack([function(z), sign(function(-z))]), PLANE)
    same_but_for_signs_of_nothing(*got, PLANE)


@both_ways
@pytest.mark.parametrize(("name", "base"), [("log2", 2), ("log10", 10)])
def test_complex_logarithms_to_a_base(name, base, transform):
    log = evaluate(transform, xnp.log, PLANE)
    want = join(log.real / math.log(base), log.imag / math.log(base))
    same_but_for_signs_of_nothing(evaluate(transform, getattr(xnp, name), PLANE), want)


@both_ways
def test_complex_moduli_and_predicates(transform):
    a, b = PLANE.real, PLANE.imag
    np.testing.assert_allclose(evaluate(transform, xnp.abs, PLANE), np.hypot(a, b), rtol=1e-15)
    np.testing.assert_allclose(evaluate(transform, operator.abs, PLANE), np.hypot(a, b), rtol=1e-15)
    np.testing.assert_array_equal(evaluate(transform, xnp.isnan, PLANE), np.isnan(a) | np.isnan(b))
    np.testing.assert_array_equal(evaluate(transform, xnp.isinf, PLANE), np.isinf(a) | np.isinf(b))
    np.testing.assert_array_equal(evaluate(transform, xnp.isfinite, PLANE), np.isfinite(a) & np.isfinite(b))


@both_ways
def test_complex_arithmetic(transform):
    x, y = np.meshgrid(PLANE, PLANE)
    for equal, other in ((xnp.equal, xnp.not_equal), (operator.eq, operator.ne)):
        np.testing.assert_array_equal(evaluate(transform, equal, x, y), (x.real == y.real) & (x.imag == y.imag))
        np.testing.assert_array_equal(evaluate(transform, other, x, y), (x.real != y.real) | (x.imag != y.imag))
    with np.errstate(invalid="ignore"):
        for add, part in ((xnp.add, operator.add), (xnp.subtract, operator.sub)):
            want = join(part(x.real, y.real), part(x.imag, y.imag))
            for function in (add, part):
                same_but_for_signs_of_nothing(evaluate(transform, function, x, y), want)
    # Of products and quotients of infinities the standard says nothing, but that NaN alone gives NaN.
    nan, finite = np.asarray([complex(math.nan, math.nan)]), np.isfinite(PLANE)
    for function in (xnp.multiply, xnp.divide, operator.mul, operator.truediv, xnp.pow):
        got = evaluate(transform, function, nan, nan)
        assert np.isnan(got.real) and np.isnan(got.imag)
    x, y = np.meshgrid(PLANE[finite], PLANE[finite])
    got = evaluate(transform, xnp.multiply, x, y)
    same_but_for_signs_of_nothing(got, join(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real))
    square = evaluate(transform, xnp.square, PLANE)
    same_but_for_signs_of_nothing(square, evaluate(transform, xnp.multiply, PLANE, PLANE))
    finite &= PLANE != 0
    np.testing.assert_allclose(evaluate(transform, xnp.reciprocal, PLANE[finite]), 1 / PLANE[finite], rtol=1e-15)


# ---- Reductions ----------------------------------------------------------------------------------------------

VALUES = np.asarray(list(itertools.product([2.0, -1.0, 0.0, -0.0, math.inf, -math.inf, math.nan], repeat=3)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@both_ways
@pytest.mark.parametrize("pair", ["sum add", "prod multiply"])
def test_sums_and_products(pair, transform, dtype):
    """As if by successive sums and products of two, which cumulative ones are, also in the signs of zeros."""
    name, step = pair.split()
    x = VALUES.astype(dtype)
    if dtype.startswith("complex") and name == "sum":
        x = join(x.real, x.real[::-1])
    with np.errstate(invalid="ignore"):
        want = np.asarray([list(itertools.accumulate(row, getattr(np, step))) for row in x])
    got = evaluate(transform, getattr(xnp, f"cumulative_{name}"), x, axis=1)
    np.testing.assert_array_equal(got, want)
    if dtype.startswith("float"):
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
    np.testing.assert_array_equal(evaluate(transform, getattr(xnp, name), x, axis=1), want[:, -1])
    empty, first = np.zeros((0, 2), dtype), 0 if name == "sum" else 1
    np.testing.assert_array_equal(evaluate(transform, getattr(xnp, name), empty, axis=0), [first] * 2)
    got = evaluate(transform, getattr(xnp, f"cumulative_{name}"), empty, axis=0, include_initial=True)
    np.testing.assert_array_equal(got, [[first] * 2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@both_ways
@pytest.mark.parametrize("name", ["max", "min", "mean", "std", "var"])
def test_statistics(name, transform, dtype):
    function, x = getattr(xnp, name), VALUES.astype(dtype)
    some_nan = np.isnan(x).any(1)
    got = evaluate(transform, function, x, axis=1)
    assert got.dtype == dtype
    assert np.isnan(got[some_nan]).all()
    if name in ("max", "min"):
        np.testing.assert_array_equal(got, getattr(np, name)(x, axis=1))
    elif name == "mean":
        assert np.isnan(evaluate(transform, function, np.zeros((0, 2), dtype), axis=0)).all()
        got = evaluate(transform, function, np.zeros((0, 2), dtype) + 0j, axis=0)
        assert np.isnan(got.real).all() and np.isnan(got.imag).all()
    else:
        for correction in (0, 1, 2, 2.5):
            got = evaluate(transform, function, np.zeros((0, 2), dtype), axis=0, correction=correction)
            assert np.isnan(got).all()
            got = evaluate(transform, function, np.asarray([[1, 1]], dtype), axis=1, correction=correction)
            assert np.isnan(got).all() == (correction >= 2)


@both_ways
def test_where_numpy_decides(transform):
    """The standard would have NaN of two numbers with two degrees of freedom taken away, and NaN in one part only.

    NumPy divides by 0, and a complex sum by a complex number; of the latter the standard knows.
    """
    for function, correction in itertools.product((xnp.std, xnp.var), (2, 2.5, 3)):
        assert evaluate(transform, function, np.asarray([1.0, 2.0]), correction=correction) == math.inf
    got = evaluate(transform, xnp.mean, np.asarray([complex(math.nan, 1), 2 + 3j]))
    assert np.isnan(got.real) and np.isnan(got.imag)


@both_ways
def test_truth(transform):
    """NaN and infinities are true."""
    x = np.asarray([math.nan, math.inf, -math.inf, 3, 0, -0.0])[:, None]
    zero, truth = np.zeros_like(x), [True] * 4 + [False] * 2
    for values, function in itertools.product((x, join(x, zero), join(zero, x)), (xnp.all, xnp.any)):
        np.testing.assert_array_equal(evaluate(transform, function, values, axis=1), truth)
    assert evaluate(transform, xnp.all, np.zeros(0)) and not evaluate(transform, xnp.any, np.zeros(0))


# ---- Python numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_conversions(dtype):
    def scalar(value):
        return xnp.asarray(value, dtype=dtype)

    assert [bool(scalar(v)) for v in (math.nan, math.inf, -math.inf, 0.0, -0.0)] == [True] * 3 + [False] * 2
    assert bool(scalar(0) + 1j * scalar(math.nan)) and not bool(scalar(0) * 1j)
    assert [complex(scalar(v)) for v in (math.inf, -math.inf, 1.5)] == [math.inf, -math.inf, 1.5]
    assert math.isnan(complex(scalar(math.nan)).real)
    assert [f(xnp.asarray(b)) for f in (complex, float, int) for b in (True, False)] == [1, 0] * 3
    assert [int(scalar(v)) for v in (1.5, -1.5, -0.0)] == [1, -1, 0]
    for value, error in ((math.inf, OverflowError), (-math.inf, OverflowError), (math.nan, ValueError)):
        with pytest.raises(error):
            int(scalar(value))
    for function in (float, int):
        with pytest.raises(TypeError):
            function(scalar(1) * 1j)
    with pytest.raises(TypeError):
        operator.index(scalar(1))


def test_narrow_defaults():
    """Without x64 the cases hold for what Python numbers become then."""
    with xform.enable_x64(False):
        for name, text in REAL.items():
            said = list(cases(text))
            columns = [list(c) for c in zip(*(arguments for arguments, _ in said))]
            check(as_floats(np.asarray(getattr(xnp, name)(*map(xnp.asarray, columns))), "float32"), said)
