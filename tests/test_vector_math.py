"""Elementary functions written as arithmetic (`lax.vector_math`) against mpmath, and where they are used."""

import math

import numpy as np
import pytest

import xform
from tests.calls import OPTIMIZED
from tests.minimax import DIGITS, minimax, rational, rationals, tables
from xform import lax
from xform.interpreters import fusion
from xform.lax import single_precision
from xform.lax.vector_math import exponential, trigonometric

mp = pytest.importorskip("mpmath")

BIG = 1.7e308

# Of each function: mpmath's, intervals from which the magnitude is drawn geometrically, whether both signs are, and the
# bound of the error in ulp. The C library's own are 0.5 to 1, for hyperbolic functions and their inverses 2.
FUNCTIONS = {
    "exp2": (lambda x: mp.mpf(2) ** x, [(1e-10, 1), (1, 1021)], True, 1),
    "expm1": (mp.expm1, [(1e-300, 1e-3), (1e-3, 2), (1, 709)], True, 1.5),
    "log": (mp.log, [(1e-300, 1e300), (0.5, 2)], False, 1),
    "log1p": (mp.log1p, [(1e-300, 1e-3), (1e-3, 0.9999)], True, 1.5),
    "logistic": (lambda x: 1 / (1 + mp.exp(-x)), [(1e-10, 1), (1, 700)], True, 2.5),
    "sin": (mp.sin, [(1e-300, 1e-3), (0.1, 10), (10, 1e6), (1e6, BIG)], True, 1.2),
    "cos": (mp.cos, [(1e-300, 1e-3), (0.1, 10), (10, 1e6), (1e6, BIG)], True, 1.2),
    "tan": (mp.tan, [(1e-300, 1e-3), (0.1, 10), (10, 1e6), (1e6, BIG)], True, 1.5),
    "asin": (mp.asin, [(1e-300, 1e-3), (1e-3, 1), (0.9, 1)], True, 1.5),
    "acos": (mp.acos, [(1e-300, 1e-3), (1e-3, 1), (0.9, 1)], True, 1.5),
    "atan": (mp.atan, [(1e-300, 1e-3), (1e-3, 10), (10, BIG)], True, 1.5),
    "sinh": (mp.sinh, [(1e-300, 1e-3), (1e-3, 1), (1, 710)], True, 3),
    "cosh": (mp.cosh, [(1e-300, 1e-3), (1e-3, 1), (1, 710)], True, 2),
    "tanh": (mp.tanh, [(1e-300, 1e-3), (1e-3, 2), (1, 22)], True, 2),
    "asinh": (mp.asinh, [(1e-300, 1e-3), (1e-3, 10), (10, BIG)], True, 2.5),
    "acosh": (mp.acosh, [(1, 1.1), (1, 10), (10, BIG)], False, 3),
    "atanh": (mp.atanh, [(1e-300, 1e-3), (1e-3, 1), (0.9, 1)], True, 2.5),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), [(1e-300, BIG), (0.1, 10)], True, 1),
}
# Those that are float32 arithmetic, with the bound of their error.
SINGLE_ARITHMETIC = {"exp2": 1.2, "expm1": 1.8, "tanh": 3.7, "erf": 3.5, "asinh": 3.5, "acosh": 3.5, "atanh": 3.5}
# Those that are computed in float64.
SINGLE = [name for name in FUNCTIONS if "short_" + name in vars(exponential) | vars(trigonometric)]


def draw(name, count, rng):
    """Arguments of a function."""
    _, intervals, signed, _ = FUNCTIONS[name]
    x = np.concatenate([np.exp(rng.uniform(np.log(low), np.log(high), count)) for low, high in intervals])
    return x * rng.choice([-1.0, 1.0], x.size) if signed else x


def compiled(name, *args):
    """The function of arrays, as a compiled program for which formulas were taken."""
    lowered = xform.jit(getattr(lax, name)).lower(*args)
    assert lowered.as_text().startswith(fusion.WIDE_VECTORS)
    return np.asarray(lowered.compile(OPTIMIZED)(*args))


def padded(x):
    """Enough elements for a formula to be taken."""
    return np.resize(x, max(x.size, 1024))


def ulps(out, exact):
    """Errors in units in the last place of the exact value; 0 where that is subnormal and the result 0."""
    errors = []
    for value, wanted in zip(out, exact, strict=True):
        nearest = float(wanted)
        if abs(nearest) < np.finfo(float).tiny:
            errors.append(0.0 if abs(value) <= np.finfo(float).tiny else np.inf)
        else:
            errors.append(float(abs(mp.mpf(float(value)) - wanted) / float(np.spacing(abs(nearest)))))
    return np.array(errors)


def check_double(name, x):
    with mp.workprec(1300):  # as sine of large numbers needs
        exact = [FUNCTIONS[name][0](mp.mpf(float(v))) for v in x]
        errors = ulps(compiled(name, padded(x))[: x.size], exact)
    worst = int(np.argmax(errors))
    assert errors[worst] <= FUNCTIONS[name][3], f"{name}({x[worst]!r}) is wrong by {errors[worst]} ulp"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_double(name, rng):
    check_double(name, draw(name, 100, rng))


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_double_at_many_points(name, rng):
    check_double(name, draw(name, 4000, rng))


# The float64 closest to a multiple of pi / 2 (Muller et al.), multiples up to 1e22, powers of 2, and largest numbers.
HARD_ANGLES = [
    6381956970095103.0 * 2.0**797,
    1e22,
    1e300,
    *(2.0**k for k in range(-2, 1024, 9)),
    *(k * np.pi / 2 for k in (1, 2, 3, 4, 5, 6, 7, 8, 101, 1001, 1e6, 12345678901.0, 1e15)),
    *(np.nextafter(np.pi / 4, [0, 1])),
    *(np.nextafter(1.0, [0, 2])),
    np.finfo(float).max,
]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_hard_angles(name):
    """Moderate ones by the formula, others as the C library has them, next to a zero wrong by 8 ulp."""
    x = np.array(HARD_ANGLES)
    large = np.abs(x) >= trigonometric.MODERATE
    check_double(name, x[~large])
    of_library = [getattr(math, name)(float(v)) for v in padded(x)]
    np.testing.assert_allclose(compiled(name, padded(x)), of_library, rtol=5e-16, atol=0)


# The doubles next to multiples of pi / 2, and some that are far closer than most (denominators of its convergents).
CLOSE_ANGLES = [k * np.pi / 2 for k in (*range(1, 300), 33215, 49766, 156344, 166075, 664913, 667543)]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_moderate_angles(name, rng):
    """A formula is for these."""
    x = np.concatenate([CLOSE_ANGLES, rng.uniform(0, trigonometric.MODERATE, 300), rng.uniform(0, 10, 100)])
    x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, 2 * x)])
    x = np.concatenate([x, -x, [0.0, -0.0, 1e-300, np.nextafter(trigonometric.MODERATE, 0)]])
    many = padded(x)
    out = compiled(name, many)
    with mp.workprec(200):
        errors = ulps(out[: x.size], [FUNCTIONS[name][0](mp.mpf(float(v))) for v in x])
    worst = int(np.argmax(errors))
    assert errors[worst] <= FUNCTIONS[name][3], f"{name}({x[worst]!r}) is wrong by {errors[worst]} ulp"
    assert np.array_equal(np.signbit(out[many == 0]), np.signbit(getattr(np, name)(many[many == 0])))
    many[-3:] = np.nan, np.inf, -np.inf
    np.testing.assert_allclose(compiled(name, many), np.append(out[:-3], [np.nan] * 3), rtol=5e-16, atol=0)
    many[-1] = 1e22  # one is enough for another formula
    np.testing.assert_allclose(
        compiled(name, many), [*out[:-3], np.nan, np.nan, getattr(math, name)(1e22)], rtol=5e-16, atol=0
    )


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_hard_angles_in_single_precision(name):
    x = padded(np.array(HARD_ANGLES)[np.abs(HARD_ANGLES) < 3e38].astype(np.float32))
    with mp.workprec(300):
        exact = np.array([float(FUNCTIONS[name][0](mp.mpf(float(v)))) for v in x])
    error = np.abs(compiled(name, x) - exact) / np.spacing(np.abs(exact).astype(np.float32))
    assert error.max() < 0.55


@pytest.mark.parametrize("name", SINGLE)
def test_single(name, rng):
    """Against NumPy in float64."""
    x = draw(name, 3000, rng)
    x = x[(np.abs(x) < 3e38) & (np.abs(x) > 1e-37)].astype(np.float32)
    if name == "acosh":
        x = np.maximum(x, 1)
    if name in ("asin", "acos", "atanh"):
        x = np.clip(x, -1, 1)
    with np.errstate(all="ignore"):
        wanted = np.asarray(getattr(lax, name)(x.astype(np.float64)))
        rounded = wanted.astype(np.float32)
    out = compiled(name, x)
    usual = np.isfinite(rounded) & (np.abs(wanted) > np.finfo(np.float32).tiny)
    error = np.abs(out[usual] - wanted[usual]) / np.spacing(np.abs(rounded[usual]))
    assert error.max() < 0.56
    np.testing.assert_array_equal(out[np.isinf(rounded)], rounded[np.isinf(rounded)])


def normal_singles(step):
    """Every so many of all float32 that are not subnormal."""
    x = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return x[np.isnan(x) | (x == 0) | (np.abs(x) >= np.finfo(np.float32).tiny)]


@pytest.mark.parametrize("name", SINGLE_ARITHMETIC)
def test_single_arithmetic(name, step=30011):
    """All over the domain, beside float64 on the host."""
    x = normal_singles(step)
    with np.errstate(all="ignore"):
        wanted = np.asarray(getattr(lax, name)(x.astype(np.float64)))
        rounded = wanted.astype(np.float32)
    out = compiled(name, x)
    usual = np.isfinite(rounded) & (np.abs(wanted) >= np.finfo(np.float32).tiny)
    place = 2.0 ** (np.floor(np.log2(np.abs(wanted[usual]))) - 23)
    error = np.abs(out[usual] - wanted[usual]) / place
    worst = error.argmax()
    assert error[worst] <= SINGLE_ARITHMETIC[name], f"{name}({x[usual][worst]!r}) is wrong by {error[worst]} ulp"
    np.testing.assert_array_equal(out[~np.isfinite(rounded)], rounded[~np.isfinite(rounded)])
    np.testing.assert_array_equal(np.signbit(out[wanted == 0]), np.signbit(wanted[wanted == 0]))
    if name in ("tanh", "erf"):
        assert np.nanmax(np.abs(out)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", SINGLE_ARITHMETIC)
def test_single_arithmetic_at_many_points(name):
    test_single_arithmetic(name, 401)


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_single_arithmetic_is_at_most_one(name):
    """All numbers up to where the result rounds to 1."""
    first, last = (np.float32(v).view(np.int32) for v in ((7, 9.5) if name == "tanh" else (3, 4.2)))
    x = np.arange(first, last, dtype=np.int32).view(np.float32)
    assert compiled(name, x).max() == 1


def special(dtype):
    """Exceptional and extreme values, and those around thresholds."""
    info = np.finfo(dtype)
    values = [0, 0.5, 1, 1.5, 2, 3, 10, 88.7, 89.5, 709.7, 709.8, 710.4, 710.5, 1023.9, 1024, 1e5, 1e9]
    values += [info.max, info.tiny, np.inf]
    return np.array([s * v for v in values for s in (1, -1)] + [np.nan], dtype)


def check_special(name, args):
    out = compiled(name, *(padded(a) for a in args))[: args[0].size]
    with np.errstate(all="ignore"):
        wanted = np.asarray(getattr(lax, name)(*args))
    tiny = np.finfo(wanted.dtype).tiny  # XLA's results are 0 where they are subnormal
    flush = [np.where(np.abs(a) < tiny, np.copysign(a.dtype.type(0), a), a) for a in (out, wanted)]
    np.testing.assert_allclose(*flush, rtol=4 * np.finfo(wanted.dtype).eps, err_msg=name)
    same = np.isnan(wanted) | (np.signbit(out) == np.signbit(wanted))
    assert same.all(), (name, [a[~same] for a in args])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name):
    """NaN, infinities, signs of zero, thresholds of overflow, domains: as on the host."""
    check_special(name, [special(np.float64)])
    if name in SINGLE or name in SINGLE_ARITHMETIC:
        check_special(name, [special(np.float32)])


@pytest.mark.parametrize("name", ["pow", "atan2"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_special_pairs(name, dtype):
    values = special(dtype)
    check_special(name, [np.repeat(values, values.size), np.tile(values, values.size)])


def pairs(name, count, rng):
    x, y = np.exp(rng.uniform(-5, 5, count)), rng.uniform(-50, 50, count)
    if name == "atan2":
        return y, x * rng.choice([-1.0, 1.0], count)
    near_one, large = 1 + rng.uniform(-1e-3, 1e-3, count), rng.uniform(-1e5, 1e5, count)
    extreme = np.exp(rng.uniform(-700, 700, count))
    return np.concatenate([x, near_one, extreme]), np.concatenate([y, large, rng.uniform(-1, 1, count)])


@pytest.mark.parametrize("name, exact", [("pow", lambda x, y: x**y), ("atan2", mp.atan2)])
def test_functions_of_two_arrays(name, exact, rng):
    x, y = pairs(name, 150, rng)
    with mp.workprec(300):
        wanted = [exact(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
        assert ulps(compiled(name, padded(x), padded(y))[: x.size], wanted).max() < 1.5
    with np.errstate(all="ignore"):
        a, b = x.astype(np.float32), y.astype(np.float32)
        wanted = np.asarray(getattr(lax, name)(a.astype(float), b.astype(float)))
        rounded = wanted.astype(np.float32)
    tiny = np.finfo(np.float32).tiny
    usual = np.isfinite(rounded) & (np.abs(wanted) > tiny) & (np.abs(a) >= tiny)
    out = compiled(name, padded(a), padded(b))[: a.size]
    error = np.abs(out[usual] - wanted[usual]) / np.spacing(np.abs(rounded[usual]))
    assert error.max() < 0.56


@pytest.mark.parametrize("name", ["sin", "tan", "atan", "cbrt", "expm1", "asin"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_floats_are_rounded_from_single(name, dtype):
    """All 65536 of them."""
    x = np.arange(2**16, dtype=np.uint16).view(xform.dtypes.canonicalize_dtype(dtype))
    info = xform.dtypes.finfo(x.dtype)
    wide = x.astype(np.float32)
    x = x[(np.abs(wide) >= float(info.tiny)) | (wide == 0) | np.isnan(wide)]
    out = compiled(name, x)
    with np.errstate(all="ignore"):
        wanted = compiled(name, x.astype(np.float32)).astype(x.dtype)
    np.testing.assert_array_equal(out.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("name", ["asin", "acos", "asinh", "acosh", "expm1", "log1p"])
def test_narrow_floats_in_small_arrays(name):
    """Where XLA has the function: in float32, too, and not step by step in 16 bits."""
    x = np.linspace(1, 5, 200).astype(np.float16) / (1 if name == "acosh" else 5)
    f = xform.jit(getattr(lax, name))
    wanted = np.asarray(f.lower(x.astype(np.float32)).compile()(x.astype(np.float32))).astype(x.dtype)
    np.testing.assert_array_equal(np.asarray(f.lower(x).compile()(x)), wanted)


@pytest.mark.parametrize("name", tables())
def test_coefficients(name):
    """They are those of `tests.minimax`, and as good as their comment says."""
    found = getattr(exponential, name, None) or getattr(trigonometric, name)
    with mp.workdps(DIGITS):
        coefficients, error = minimax(*tables()[name])
    assert found == coefficients
    assert error < (2.0**-27 if name.startswith("SHORT") else 2.0**-55)


@pytest.mark.parametrize("name", rationals())
def test_coefficients_of_rational_functions(name):
    function, end, degree, constant = rationals()[name]
    with mp.workdps(40):
        *coefficients, error = rational(function, end, degree, constant)
    found, *rows = getattr(single_precision, name)
    assert found == constant and error < 2.0**-25
    for row, row_found in zip(coefficients, rows, strict=True):  # long doubles are not everywhere
        np.testing.assert_allclose(row_found, row, rtol=1e-4)


# Roots

EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e-30, 1e30]


@pytest.mark.parametrize("exponent", [-1.5, -0.5, 1.5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_powers_by_roots(exponent, dtype, rng):
    info = np.finfo(dtype)
    x = np.exp(rng.uniform(np.log(info.tiny) / 1.6, np.log(info.max) / 1.6, 300)).astype(dtype)
    x = padded(np.concatenate([x, np.array([*EDGES, info.tiny, info.max], dtype)]))
    lowered = xform.jit(lambda x: x**exponent).lower(x)
    assert "stablehlo.power" not in lowered.as_text()
    out = np.asarray(lowered.compile(OPTIMIZED)(x))
    with np.errstate(all="ignore"):
        exact = x.astype(np.longdouble) ** np.longdouble(exponent)
        nearest = exact.astype(dtype)
    usual = np.isfinite(nearest) & (np.abs(nearest) >= info.tiny)
    error = np.abs(out[usual] - exact[usual]) / np.spacing(nearest[usual])
    assert error.max() < 1.6
    nearest[np.abs(nearest) < info.tiny] = 0
    np.testing.assert_array_equal(out[~usual], nearest[~usual])
    assert not np.signbit(out[x == 0]).any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_quotients_by_roots(dtype, rng):
    """As XLA would have it, they are no vector instructions, and rounded once more."""
    x = padded(np.concatenate([rng.uniform(0, 10, 300), EDGES]).astype(dtype))

    def program(x):
        return xform.numpy.stack([lax.rsqrt(x), 3 / lax.sqrt(x), x / lax.sqrt(lax.add(lax.mul(x, x), dtype(1)))])

    compiled = xform.jit(program).lower(x).compile(OPTIMIZED)
    assert "rsqrt(" not in compiled.as_text()
    with np.errstate(all="ignore"):
        roots = [1 / np.sqrt(x), 3 / np.sqrt(x), x / np.sqrt(x * x + dtype(1))]
    np.testing.assert_array_equal(compiled(x)[:2], roots[:2])
    np.testing.assert_allclose(compiled(x)[2], roots[2], rtol=2 * float(np.finfo(dtype).eps))


# Remainders


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_remainders_are_exact(name, dtype, rng):
    n = 3000
    y = np.exp(rng.uniform(-5, 5, n)) * rng.choice([-1, 1], n)
    quotient = np.exp(rng.uniform(-3, 17, n)) * rng.choice([-1, 1], n)
    quotient[::2] = np.round(quotient[::2])  # next to a multiple
    x, y = (y * quotient).astype(dtype), y.astype(dtype)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0, 1e5], dtype)
    x, y = np.append(x, np.repeat(edges, edges.size)), np.append(y, np.tile(edges, edges.size))
    lowered = xform.jit(getattr(xform.numpy, name)).lower(x, y)
    assert "stablehlo.case" in lowered.as_text()
    for large in (0, dtype(3e30)):  # without and with a quotient that the formula is not for
        x[0] = large
        out = np.asarray(lowered.compile(OPTIMIZED)(x, y))
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(x, y)
        np.testing.assert_array_equal(out, wanted)
        np.testing.assert_array_equal(np.signbit(out[out == 0]), np.signbit(wanted[out == 0]))


@pytest.mark.parametrize("scale", [1e290, 1e-290])
def test_remainders_of_numbers_of_any_size(scale, rng):
    x, y = rng.uniform(1, 1000, (2, 2000)) * scale
    np.testing.assert_array_equal(compiled("rem", x, y), np.fmod(x, y))


# Where formulas are used


def text_of(function, *args):
    return xform.jit(function).lower(*args).as_text()


def test_small_arrays_take_the_operation_of_xla():
    assert "stablehlo.logistic" in text_of(lax.logistic, np.ones(10))
    assert "stablehlo.logistic" not in text_of(lax.logistic, np.ones(2000))


def test_loops_count():
    """A small array is worth it that is computed many times."""

    def steps(x):
        return lax.scan(lambda x, _: (lax.logistic(x), None), x, None, length=100)[0]

    assert "stablehlo.logistic" not in text_of(steps, np.ones(300))
    assert "stablehlo.logistic" in text_of(lax.logistic, np.ones(300))


def test_many_formulas_need_large_arrays():
    """The compilation of each one takes its time."""

    def chain(x):
        for _ in range(30):
            x = lax.logistic(x)
        return x

    assert 0 < text_of(chain, np.ones(2000)).count("stablehlo.logistic") < 30
    assert text_of(chain, np.ones(10**6)).count("stablehlo.logistic") == 0


def test_complex_functions_take_them_for_their_parts(rng):
    z = rng.normal(size=20000) + 1j * rng.normal(size=20000)
    assert "stablehlo.case" in text_of(lax.sin, z)  # a formula, or else the operation
    assert "stablehlo.case" not in text_of(lax.sin, z[:100])
    np.testing.assert_allclose(np.asarray(xform.jit(lax.sin)(z)), np.sin(z), rtol=1e-14)


def test_easy_constant_exponents_are_left_to_xla():
    x = np.linspace(0.1, 2, 2000)
    assert "stablehlo.power" in text_of(lambda x: lax.pow(x, np.float64(0.5)), x)
    assert "stablehlo.power" not in text_of(lambda x: lax.pow(x, np.float64(0.7)), x)


def test_a_result_with_several_uses_is_computed_once():
    """XLA duplicates cheap operations; that nothing is computed twice shows in the optimized program."""
    x = np.linspace(0.1, 2, 10**4)

    def uses(x):
        y = lax.exp2(x)
        return lax.add(y, 1.0), lax.mul(y, 2.0), lax.reduce_sum(y, (0,))

    text = xform.jit(uses).lower(x).compile().as_text()
    assert text.count("round-nearest-even(") == 1


def test_programs_without_fusion_take_no_formula():
    """There each operation would go through memory."""

    def program(x):
        y = x
        for _ in range(150):
            y = lax.sub(lax.mul(lax.sin(y), x), lax.mul(y, lax.add(y, x)))
        return y

    x = np.linspace(0.1, 2, 10**5)
    assert not fusion.is_on(xform.make_jaxpr(program)(x).jaxpr)
    text = text_of(program, x)
    assert "stablehlo.sine" in text and "stablehlo.case" not in text


def test_derivatives_and_maps(rng):
    x = rng.normal(size=(3, 400))
    f = xform.jit(xform.vmap(xform.grad(lambda x: lax.reduce_sum(lax.sin(x), (0,)))))
    np.testing.assert_allclose(np.asarray(f(x)), np.cos(x), rtol=1e-14)
