"""Special values of the elementwise functions, as the Python array API standard, version 2025.12, lists them."""

import itertools
import math

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from tests.calls import OPTIMIZED
from xform.core.config import small_programs


def table(text):
    """The entries of a table; those that take several lines are indented."""
    out, name = {}, ""
    for line in text.strip("\n").splitlines():
        name = line[:18].strip() or name
        out[name] = f"{out.get(name, '')} {line[18:]}"
    return out


# ---- Special cases of real functions -----------------------------------------------------------------------
# "x:y" says f(x) = y, and "x,y:z" f(x, y) = z. The letters p and n stand for positive and negative finite numbers,
# f for both, x and y for the arguments.

REAL = table("""
    abs           nan:nan -0:0 -inf:inf
    acos          nan:nan 1.5:nan -1.5:nan 1:0
    acosh         nan:nan 0.5:nan -inf:nan 1:0 inf:inf
    asin          nan:nan 1.5:nan -1.5:nan 0:0 -0:-0
    asinh         nan:nan 0:0 -0:-0 inf:inf -inf:-inf
    atan          nan:nan 0:0 -0:-0 inf:pi/2 -inf:-pi/2
    atanh         nan:nan -1.5:nan 1.5:nan -1:-inf 1:inf 0:0 -0:-0
    ceil          inf:inf -inf:-inf 0:0 -0:-0 nan:nan 3:3 -0.5:-0
    cos           nan:nan 0:1 -0:1 inf:nan -inf:nan
    cosh          nan:nan 0:1 -0:1 inf:inf -inf:inf
    exp           nan:nan 0:1 -0:1 inf:inf -inf:0
    expm1         nan:nan 0:0 -0:-0 inf:inf -inf:-1
    floor         inf:inf -inf:-inf 0:0 -0:-0 nan:nan 3:3
    isfinite      inf:0 -inf:0 nan:0 f:1 0:1
    isinf         inf:1 -inf:1 nan:0 f:0
    isnan         nan:1 inf:0 f:0
    log           nan:nan n:nan -inf:nan 0:-inf -0:-inf 1:0 inf:inf
    log10         nan:nan n:nan -inf:nan 0:-inf -0:-inf 1:0 inf:inf
    log1p         nan:nan -1.5:nan -inf:nan -1:-inf 0:0 -0:-0 inf:inf
    log2          nan:nan n:nan -inf:nan 0:-inf -0:-inf 1:0 inf:inf
    negative      nan:nan 0:-0 -0:0 inf:-inf
    reciprocal    nan:nan 0:inf -0:-inf inf:0 -inf:-0
    round         inf:inf -inf:-inf 0:0 -0:-0 nan:nan 0.5:0 1.5:2 2.5:2 -0.5:-0 -1.5:-2
    sign          n:-1 -inf:-1 0:0 -0:0 p:1 inf:1 nan:nan
    signbit       0:0 -0:1 inf:0 -inf:1 p:0 n:1 nan:0
    sin           nan:nan 0:0 -0:-0 inf:nan -inf:nan
    sinh          nan:nan 0:0 -0:-0 inf:inf -inf:-inf
    sqrt          nan:nan n:nan -inf:nan 0:0 -0:-0 inf:inf
    tan           nan:nan 0:0 -0:-0 inf:nan -inf:nan
    tanh          nan:nan 0:0 -0:-0 inf:1 -inf:-1
    trunc         inf:inf -inf:-inf 0:0 -0:-0 nan:nan 3:3 -0.5:-0
    add           nan,1:nan 1,nan:nan inf,-inf:nan -inf,inf:nan inf,inf:inf -inf,-inf:-inf inf,f:inf -inf,f:-inf
                  f,inf:inf f,-inf:-inf -0,-0:-0 -0,0:0 0,-0:0 0,0:0 f,0:x -0,f:y 2,-2:0
    atan2         nan,1:nan 1,nan:nan p,0:pi/2 p,-0:pi/2 0,p:0 0,0:0 0,-0:pi 0,n:pi -0,p:-0 -0,0:-0 -0,-0:-pi
                  -0,n:-pi n,0:-pi/2 n,-0:-pi/2 p,inf:0 p,-inf:pi n,inf:-0 n,-inf:-pi inf,f:pi/2 -inf,f:-pi/2
                  inf,inf:pi/4 inf,-inf:3pi/4 -inf,inf:-pi/4 -inf,-inf:-3pi/4
    copysign      2,n:-2 2,-0:-2 -2,0:2 -2,p:2 -2,nan:2 inf,n:-inf -0,p:0 nan,1:nan
    divide        nan,1:nan 1,nan:nan inf,inf:nan inf,-inf:nan -inf,inf:nan 0,0:nan 0,-0:nan -0,0:nan 0,p:0
                  -0,p:-0 0,n:-0 -0,n:0 p,0:inf p,-0:-inf n,0:-inf n,-0:inf inf,p:inf inf,n:-inf -inf,p:-inf
                  -inf,n:inf p,inf:0 p,-inf:-0 n,inf:-0 n,-inf:0
    floor_divide  nan,1:nan 1,nan:nan inf,inf:nan -inf,inf:nan 0,0:nan -0,0:nan 0,p:0 -0,p:-0 0,n:-0 -0,n:0
                  p,0:inf p,-0:-inf n,0:-inf n,-0:inf p,inf:0 n,-inf:0 7,2:3 -7,2:-4
    hypot         inf,nan:inf nan,-inf:inf inf,f:inf 0,p:y nan,1:nan 1,nan:nan 0,-2:2 -0,2:2 2,-0:2
    logaddexp     nan,1:nan 1,nan:nan inf,f:inf f,inf:inf inf,-inf:inf -inf,-inf:-inf
    maximum       nan,1:nan 1,nan:nan inf,1:inf -inf,1:1
    minimum       nan,1:nan 1,nan:nan inf,1:1 -inf,1:-inf
    multiply      nan,1:nan 1,nan:nan inf,0:nan -inf,0:nan inf,-0:nan 0,inf:nan inf,inf:inf inf,-inf:-inf
                  -inf,-inf:inf inf,p:inf inf,n:-inf -inf,p:-inf p,-inf:-inf n,-inf:inf 0,p:0 0,n:-0 -0,n:0
                  -0,p:-0 -0,0:-0
    nextafter     nan,1:nan 1,nan:nan -0,0:0 0,-0:-0 2,2:2
    pow           2,nan:nan nan,0:1 nan,-0:1 nan,1:nan 2,inf:inf -2,inf:inf 2,-inf:0 -2,-inf:0 1,inf:1 -1,inf:1
                  1,-inf:1 -1,-inf:1 1,nan:1 0.5,inf:0 -0.5,inf:0 0.5,-inf:inf -0.5,-inf:inf inf,p:inf inf,n:0
                  -inf,3:-inf -inf,2:inf -inf,1.5:inf -inf,-3:-0 -inf,-2:0 -inf,-1.5:0 0,p:0 0,n:inf -0,3:-0
                  -0,2:0 -0,1.5:0 -0,-3:-inf -0,-2:inf -0,-1.5:inf -2,1.5:nan -2,-0.5:nan inf,inf:inf inf,-inf:0
                  0,inf:0 0,-inf:inf
    remainder     nan,1:nan 1,nan:nan inf,inf:nan 0,0:nan -0,0:nan 0,p:0 -0,p:0 0,n:-0 -0,n:-0 p,0:nan n,0:nan
                  p,-0:nan inf,p:nan inf,n:nan -inf,p:nan -inf,n:nan p,inf:x p,-inf:-inf n,inf:inf n,-inf:x
                  7,-2:-1 -7,2:1
    subtract      nan,1:nan inf,inf:nan -inf,-inf:nan inf,-inf:inf 0,0:0 -0,0:-0 0,-0:0 -0,-0:0
    equal         nan,nan:0 nan,1:0 inf,inf:1 -inf,-inf:1 inf,-inf:0 -0,0:1 0,-0:1 2,2:1
    not_equal     nan,nan:1 nan,1:1 inf,inf:0 inf,-inf:1 -0,0:0 2,2:0
    less          nan,1:0 1,nan:0 -inf,inf:1 -0,0:0
    greater_equal nan,nan:0 inf,inf:1 -0,0:1
""")
LETTERS = {"p": ["0.5", "1", "3"], "n": ["-0.5", "-1", "-3"]}
LETTERS["f"] = LETTERS["p"] + LETTERS["n"]


def number(text):
    """A float of its text, in which pi may stand."""
    sign = -1.0 if text.startswith("-") else 1.0
    top, _, bottom = text.lstrip("-").partition("/")
    factor, pi, _ = top.partition("pi")
    return sign * (float(factor or 1) * math.pi / float(bottom or 1) if pi else float(top))


def real_cases(text):
    for case in text.split():
        arguments, _, result = case.partition(":")
        for chosen in itertools.product(*(LETTERS.get(a, [a]) for a in arguments.split(","))):
            values = [number(a) for a in chosen]
            yield values, values["xy".index(result)] if result in "xy" else number(result)


def check(got, want, dtype, signs=True):
    np.testing.assert_allclose(got, want, rtol=8 * np.finfo(dtype).eps, atol=0)
    zero = want == 0
    if signs:
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


def evaluate(transform, function, *arguments):
    """Eagerly, or compiled by XLA."""
    arguments = [xnp.asarray(a) for a in arguments]
    if transform == "eager":
        return np.asarray(function(*arguments))
    with small_programs("xla"):
        return np.asarray(xform.jit(function, compiler_options=OPTIMIZED)(*arguments))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transform", ["eager", "compiled"])
@pytest.mark.parametrize("name", REAL)
def test_special_cases(name, transform, dtype):
    cases = list(real_cases(REAL[name]))
    columns = [np.asarray(c, dtype) for c in zip(*(values for values, _ in cases))]
    want = np.asarray([w for _, w in cases], dtype)
    got = evaluate(transform, getattr(xnp, name), *columns)
    if got.dtype == bool:
        got = got.astype(dtype)
    assert got.dtype == dtype
    # Compiled, a remainder of 0 has the sign of the dividend: that of the divisor would take three more operations.
    check(got, want, dtype, signs=(name, transform) != ("remainder", "compiled"))


@pytest.mark.parametrize("transform", ["eager", "compiled"])
@pytest.mark.parametrize("shape", ["scalar", (), (1,), (6,), (2, 1), (2, 6)])
def test_powers_of_a_half_are_no_roots(shape, transform):
    """The standard has infinity and 0 for -infinity and -0, where the square root gives NaN and -0."""
    x = np.asarray([-math.inf, -0.0, -1, math.nan, 4, math.inf], "float32")
    y = 0.5 if shape == "scalar" else xnp.broadcast_to(xnp.asarray(0.5, dtype="float32"), shape)
    got = evaluate(transform, lambda x: x**y, x)
    want = np.broadcast_to(np.asarray([math.inf, 0, math.nan, math.nan, 2, math.inf], "float32"), got.shape)
    check(got, want, "float32")
    if transform == "eager":
        check(np.asarray(xnp.asarray(x).at[:].power(0.5)), want.reshape(-1, 6)[0], "float32")


# ---- Special cases of complex functions ---------------------------------------------------------------------
# "a,b:c,d" says f(a + bj) = c + dj; a tilde leaves the sign open. f(conj(z)) = conj(f(z)) holds for all.

COMPLEX = table("""
    acos          0,0:pi/2,-0 -0,0:pi/2,-0 0,nan:pi/2,nan f,inf:pi/2,-inf f,nan:nan,nan -inf,p:pi,-inf
                  inf,p:0,-inf -inf,inf:3pi/4,-inf inf,inf:pi/4,-inf inf,nan:nan,~inf -inf,nan:nan,~inf
                  nan,f:nan,nan nan,inf:nan,-inf nan,nan:nan,nan
    acosh         0,0:0,pi/2 -0,0:0,pi/2 f,inf:inf,pi/2 f,nan:nan,nan 0,nan:nan,~pi/2 -inf,p:inf,pi inf,p:inf,0
                  -inf,inf:inf,3pi/4 inf,inf:inf,pi/4 inf,nan:inf,nan -inf,nan:inf,nan nan,f:nan,nan
                  nan,inf:inf,nan nan,nan:nan,nan
    asinh         0,0:0,0 p,inf:inf,pi/2 f,nan:nan,nan inf,p:inf,0 inf,inf:inf,pi/4 nan,0:nan,0 nan,f:nan,nan
                  nan,inf:~inf,nan nan,nan:nan,nan inf,nan:~inf,nan
    atanh         0,0:0,0 0,nan:0,nan 1,0:inf,0 p,inf:0,pi/2 f,nan:nan,nan inf,p:0,pi/2 inf,inf:0,pi/2
                  inf,nan:0,nan nan,f:nan,nan nan,inf:~0,pi/2 nan,nan:nan,nan
    cosh          0,0:1,0 0,inf:nan,~0 0,nan:nan,~0 f,inf:nan,nan f,nan:nan,nan inf,0:inf,0 inf,1:inf,inf
                  inf,2:-inf,inf inf,inf:~inf,nan inf,nan:inf,nan nan,0:nan,~0 nan,-0:nan,~0 nan,f:nan,nan
                  nan,nan:nan,nan
    sinh          0,0:0,0 0,inf:~0,nan 0,nan:~0,nan p,inf:nan,nan p,nan:nan,nan inf,0:inf,0 inf,1:inf,inf
                  inf,2:-inf,inf inf,inf:~inf,nan inf,nan:~inf,nan nan,0:nan,0 nan,f:nan,nan nan,nan:nan,nan
    tanh          0,0:0,0 f,inf:nan,nan f,nan:nan,nan inf,p:1,0 inf,inf:1,~0 inf,nan:1,~0 nan,0:nan,0
                  nan,f:nan,nan nan,nan:nan,nan
    exp           0,0:1,0 -0,0:1,0 f,inf:nan,nan f,nan:nan,nan inf,0:inf,0 -inf,1:0,0 -inf,2:-0,0 -inf,4:-0,-0
                  inf,1:inf,inf inf,2:-inf,inf -inf,inf:~0,~0 inf,inf:~inf,nan -inf,nan:~0,~0 inf,nan:~inf,nan
                  nan,0:nan,0 nan,f:nan,nan nan,nan:nan,nan
    expm1         0,0:0,0 -0,0:0,0 f,inf:nan,nan f,nan:nan,nan inf,0:inf,0 -inf,1:-1,0 -inf,4:-1,-0 inf,1:inf,inf
                  inf,2:-inf,inf -inf,inf:-1,~0 inf,inf:~inf,nan -inf,nan:-1,~0 inf,nan:~inf,nan nan,0:nan,0
                  nan,f:nan,nan nan,nan:nan,nan
    log           -0,0:-inf,pi 0,0:-inf,0 f,inf:inf,pi/2 f,nan:nan,nan -inf,p:inf,pi inf,p:inf,0
                  -inf,inf:inf,3pi/4 inf,inf:inf,pi/4 inf,nan:inf,nan -inf,nan:inf,nan nan,f:nan,nan
                  nan,inf:inf,nan nan,nan:nan,nan
    log1p         -1,0:-inf,0 f,inf:inf,pi/2 f,nan:nan,nan -inf,p:inf,pi inf,p:inf,0 -inf,inf:inf,3pi/4
                  inf,inf:inf,pi/4 inf,nan:inf,nan -inf,nan:inf,nan nan,f:nan,nan nan,inf:inf,nan nan,nan:nan,nan
    sqrt          0,0:0,0 -0,0:0,0 f,inf:inf,inf inf,inf:inf,inf -inf,inf:inf,inf nan,inf:inf,inf f,nan:nan,nan
                  -inf,p:0,inf inf,p:inf,0 inf,nan:inf,nan -inf,nan:nan,~inf nan,f:nan,nan nan,nan:nan,nan
    sign          0,0:0,0 -0,0:0,0 -0,-0:0,0 nan,1:nan,nan 1,nan:nan,nan 3,4:0.6,0.8
    round         2.5,-0.5:2,-0 inf,nan:inf,nan -0,1.5:-0,2
""")


def complex_cases(text):
    for case in text.split():
        place, _, value = case.partition(":")
        for a, b in itertools.product(*(LETTERS.get(x, [x]) for x in place.split(","))):
            yield complex(number(a), number(b)), value.split(",")


def check_component(got, texts, dtype):
    free = np.asarray([t.startswith("~") for t in texts])
    want = np.asarray([number(t.lstrip("~")) for t in texts], dtype)
    got = np.where(free, np.copysign(got, want), got)
    check(got, want, dtype)


# What XLA makes of an operand with a NaN or infinite part is its own affair, but for these.
COMPILED = ("sign", "round")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("name", "transform"), [(n, t) for n in COMPLEX for t in ("eager", "compiled") if t == "eager" or n in COMPILED]
)
def test_complex_special_cases(name, transform, dtype):
    cases = list(complex_cases(COMPLEX[name]))
    z = np.asarray([z for z, _ in cases], dtype)
    got = evaluate(transform, getattr(xnp, name), z)
    assert got.dtype == dtype
    for part, texts in ((got.real, [re for _, (re, _) in cases]), (got.imag, [im for _, (_, im) in cases])):
        free = np.asarray([t.startswith("~") for t in texts])
        want = np.asarray([number(t.lstrip("~")) for t in texts], part.dtype)
        check(np.where(free, np.copysign(part, want), part), want, part.dtype)


SIDES = [0.0, -0.0, 1.5, -0.5, math.inf, -math.inf, math.nan]
PLANE = np.asarray([complex(a, b) for a in SIDES for b in SIDES])


def join(re, im):
    out = np.empty(re.shape, complex)
    out.real, out.imag = re, im
    return out


def same_but_for_signs_of_nothing(got, want):
    """Equal parts; the signs of zeros and infinities may differ where the other part is NaN."""
    open_sign = np.isnan(got.real) | np.isnan(got.imag)
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        a, b = (np.where(open_sign, np.abs(v), v) for v in (a, b))
        np.testing.assert_allclose(a, b, rtol=1e-14)
        zero = (b == 0) & ~open_sign
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))


@pytest.mark.parametrize("pair", ["asin asinh", "atan atanh", "sin sinh", "tan tanh", "cos cosh"])
def test_circular_functions_are_hyperbolic_ones_turned(pair):
    """Of z they are -j times the hyperbolic function of j z; the cosine is that of j z."""
    circular, hyperbolic = (getattr(xnp, name) for name in pair.split())
    got = np.asarray(circular(PLANE))
    want = np.asarray(hyperbolic(join(-PLANE.imag, PLANE.real)))
    same_but_for_signs_of_nothing(got, want if pair == "cos cosh" else join(want.imag, -want.real))


@pytest.mark.parametrize("name", list(COMPLEX))
def test_functions_of_the_conjugate(name):
    function = getattr(xnp, name)
    got, want = np.asarray(function(np.conj(PLANE))), np.conj(np.asarray(function(PLANE)))
    if name == "sign":
        got, want = got + 0, want + 0  # the sign of zero is 0 + 0j
    same_but_for_signs_of_nothing(got, want)


@pytest.mark.parametrize("transform", ["eager", "compiled"])
@pytest.mark.parametrize(("name", "base"), [("log2", 2), ("log10", 10)])
def test_complex_logarithms_to_a_base(name, base, transform):
    log = evaluate(transform, xnp.log, PLANE)
    want = join(log.real / math.log(base), log.imag / math.log(base))
    same_but_for_signs_of_nothing(evaluate(transform, getattr(xnp, name), PLANE), want)


def test_complex_moduli_and_predicates():
    a, b = PLANE.real, PLANE.imag
    np.testing.assert_allclose(xnp.abs(PLANE), np.hypot(a, b), rtol=1e-15)
    np.testing.assert_array_equal(xnp.isnan(PLANE), np.isnan(a) | np.isnan(b))
    np.testing.assert_array_equal(xnp.isinf(PLANE), np.isinf(a) | np.isinf(b))
    np.testing.assert_array_equal(xnp.isfinite(PLANE), np.isfinite(a) & np.isfinite(b))
    x, y = np.meshgrid(PLANE, PLANE)
    np.testing.assert_array_equal(xnp.equal(x, y), (x.real == y.real) & (x.imag == y.imag))
    np.testing.assert_array_equal(xnp.not_equal(x, y), (x.real != y.real) | (x.imag != y.imag))
    with np.errstate(invalid="ignore"):
        same_but_for_signs_of_nothing(np.asarray(xnp.add(x, y)), join(x.real + y.real, x.imag + y.imag))
