"""Elementwise functions of one and of two arguments, and the methods of ufuncs."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.exceptions import AxisError

from tests.numpy_drawn.record import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REALS,
    Call,
    Function,
    Wrong,
    arrays,
    axes,
    axis,
    broadcastable,
    on_lattice,
    shapes,
    wrong,
)

A = np.ones((2, 3))
B = np.ones((2, 3), bool)
C = np.ones((2, 3), complex)
K = np.ones((2, 3), int)
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5, -0.5)


def floats(name):
    """NumPy's function, with integers as float64."""
    return on_lattice(getattr(np, name), floats=True)


def either(*strategies):
    """Values of one of several kinds."""
    return st.one_of(*strategies)


# ---- One argument ------------------------------------------------------------------------------------------


@st.composite
def one(draw, dtypes, special=SPECIAL, low=-3, high=3):
    """An argument; special values are drawn for real numbers only."""
    dtypes = draw(st.sampled_from((dtypes,) * 2 + tuple(k for k in (FLOATS, COMPLEX) if set(k) & set(dtypes))))
    real = not set(dtypes) & set(COMPLEX)
    return Call((draw(arrays(dtypes=dtypes, special=special if real else (), low=low, high=high)),))


def refused(name, *args, error=TypeError):
    """Arguments of a dtype that the function doesn't take."""
    return wrong(name, error, r"(bool|f64|c128|i64)\[2,3\]", *args)


def keywords(name, *args):
    """Arguments of NumPy's ufuncs that need mutable arrays, ones that nobody has, and what is no array."""
    if not isinstance(getattr(np, name), np.ufunc):
        return []
    strings = "strings are true or false in NumPy" if name.startswith("logical") else ""
    return [
        wrong(name, NotImplementedError, "immutable", *args, out=np.zeros(3), alone="immutable"),
        Wrong(lambda np: getattr(np, name)(*args, ordering="K"), TypeError, "unexpected keyword argument 'ordering'"),
        Wrong(lambda np: getattr(np, name)(), TypeError, "argument"),
        wrong(name, TypeError, "'abc' of type str", *args[1:], "abc", alone=strings),
    ]


def unary(names, dtypes, reference=None, errors=(), **more):
    """Records of functions of one argument."""
    options = {k: more.pop(k) for k in ("special", "low", "high") if k in more}
    return [
        Function(
            name,
            one(dtypes, **options),
            reference=reference and reference(name),
            errors=[*keywords(name, A), *(refused(name, x) for x in errors)],
            **more,
        )
        for name in names.split()
    ]


REAL = BOOL + REALS

UNARY = [
    *unary("exp exp2 expm1 sin cos sinh cosh tanh arcsinh arctan", ALL, floats),
    *unary("tan", ALL, floats, tolerance=64),
    *unary("log log1p log2 log10 sqrt", ALL, floats, grad_tolerance=1e-4),
    *unary("arcsin arccos arctanh", ALL, floats, low=-1, high=1, tolerance=64, grad_tolerance=1e-3),
    *unary("arccosh", ALL, floats, low=1, tolerance=64, grad_tolerance=1e-3),
    *unary("cbrt", REAL, floats, errors=[C], grad_tolerance=1e-3),
    *unary("deg2rad rad2deg radians degrees", REAL, floats, errors=[C]),
    *unary("sinc", ALL, floats, special=(0.0, 1.0, np.nan)),
    *unary("i0", REAL, floats, errors=[C]),
    *unary("negative positive", NUMBERS, errors=[B]),
    *unary("sign", NUMBERS, errors=[B], gradient=False),
    *unary("absolute", ALL),
    *unary("fabs", REAL, floats, errors=[C]),
    *unary("square conjugate", ALL),
    *unary("real imag", ALL),
    *unary("reciprocal", ALL, floats, grad_tolerance=1e-3),
    *unary("floor ceil trunc", REAL, errors=[C], gradient=False),
    *unary("rint", ALL, floats, gradient=False),
    *unary("isfinite isnan isinf", ALL, gradient=False),
    *unary("isposinf isneginf", REAL, errors=[C], gradient=False),
    *unary("signbit", REAL, errors=[C], gradient=False),
    *unary("spacing", REAL, floats, errors=[C], gradient=False),
    *unary("invert", BOOL + INTEGERS, errors=[A, C], gradient=False),
    *unary("bitwise_count", INTEGERS, errors=[A, C], gradient=False),
    *unary("logical_not", ALL, gradient=False),
]
# ---- Two arguments -----------------------------------------------------------------------------------------


@st.composite
def two(draw, dtypes, special=SPECIAL, low=-3, high=3, second=None, scalars=True):
    """Two arrays that broadcast, of one or of two dtypes; sometimes one is a Python number."""
    left, right = draw(broadcastable())
    if second is None and (draw(st.booleans()) or not set(dtypes) & set(FLOATS)):
        dtypes = (draw(st.sampled_from(dtypes)),)
    real = not set(dtypes) & set(COMPLEX)
    options = {"special": special if real else (), "low": low, "high": high}
    x = draw(arrays(left, dtypes, **options))
    y = draw(arrays(right, second or dtypes, **options))
    if scalars and second is None and draw(st.integers(0, 4)) == 0 and x.dtype.kind in "iufc":
        number = draw(st.integers(1, 3)) if x.dtype.kind in "iu" else 1.5
        return Call((number, x) if draw(st.booleans()) else (x, number))
    return Call((x, y))


def mismatch(name, x=A):
    """Shapes that don't fit, and too few arguments."""
    return [
        wrong(name, ValueError, r"broadcast together with shapes \w+\[2,3\], \w+\[2,2\]", x, x[:, :2]),
        Wrong(lambda np: getattr(np, name)(x), TypeError, "argument"),
    ]


def binary(names, dtypes, floats=False, errors=(), valid=None, **more):
    """Records of functions of two arguments."""
    options = {k: more.pop(k) for k in ("special", "low", "high", "second", "scalars") if k in more}
    calls = two(dtypes, **options)
    example = K if set(INTEGERS) & set(dtypes) else A
    records = []
    for name in names.split():
        wrong = [*keywords(name, example, example), *mismatch(name, example)]
        wrong += [refused(name, *pair) for pair in errors]
        reference = more.get("reference") or on_lattice(getattr(np, name), floats)
        rest = {k: v for k, v in more.items() if k != "reference"}
        records.append(Function(name, calls if valid is None else calls.filter(valid), reference, errors=wrong, **rest))
    return records


def _not_both_bool(call):
    return not all(np.asarray(x).dtype == bool for x in call.args)


def _no_integer_divisor(call):
    """NumPy has no negative integer powers."""
    x, y = map(np.asarray, call.args)
    return y.dtype.kind in "fc" or x.dtype.kind in "fc" or not (y < 0).any()


TWO_D = {"grad_tolerance": 1e-4}

BINARY = [
    *binary("add multiply", ALL),
    *binary("subtract", ALL, valid=_not_both_bool, errors=[(B, B)]),
    *binary("divide", ALL, floats=True, grad_tolerance=1e-3),
    *binary("floor_divide remainder fmod", REAL, errors=[(A, C)], gradient=False),
    *binary("power", ALL, valid=_no_integer_divisor, errors=[(K, -K)][:0], tolerance=64, grad_tolerance=1e-4),
    *binary("maximum minimum fmax fmin", ALL),
    *binary("arctan2", REAL, floats=True, errors=[(A, C)], grad_tolerance=1e-4),
    *binary("hypot", REAL, floats=True, errors=[(A, C)]),
    *binary("logaddexp logaddexp2", REAL, floats=True),
    *binary("copysign heaviside", REAL, floats=True, errors=[(A, C)], special=SPECIAL[2:]),
    *binary("nextafter", REAL, floats=True, errors=[(A, C)], gradient=False),
    *binary("gcd lcm", INTEGERS, errors=[(A, A), (B, B)], gradient=False),
    *binary("equal not_equal less less_equal greater greater_equal", ALL, gradient=False),
    *binary("bitwise_and bitwise_or bitwise_xor", BOOL + INTEGERS, errors=[(A, A), (A, K)], gradient=False),
    *binary("logical_and logical_or logical_xor", ALL, gradient=False),
    Function(
        "float_power",
        two(ALL),
        on_lattice(np.float_power, floats=True),
        tolerance=64,
        grad_tolerance=1e-4,
        errors=[*keywords("float_power", A, A), *mismatch("float_power")],
    ),
    Function(
        "ldexp",
        two(("float64", "float32", "int32", "bool"), low=-20, high=20, second=("int32", "int8", "int64", "bool")),
        lambda x, y: np.ldexp(x if x.dtype.kind == "f" else x.astype("f8"), y),
        errors=[
            *keywords("ldexp", A, K),
            *mismatch("ldexp", K),
            refused("ldexp", A, A),
            refused("ldexp", C, K),
        ],
    ),
    Function(
        "left_shift",
        two(INTEGERS, second=("uint8",), high=7).map(lambda c: Call((c.args[0], c.args[1].astype(c.args[0].dtype)))),
        gradient=False,
        errors=[*keywords("left_shift", K, K), *mismatch("left_shift", K), refused("left_shift", A, K)],
    ),
    Function(
        "right_shift",
        two(INTEGERS, second=("uint8",), high=70).map(lambda c: Call((c.args[0], c.args[1].astype(c.args[0].dtype)))),
        gradient=False,
        errors=[*keywords("right_shift", K, K), *mismatch("right_shift", K), refused("right_shift", A, K)],
    ),
    Function(
        "power:negative",
        st.just(Call((np.array([1, -1, 2]), 2))),
        errors=[
            wrong("power", ValueError, r"integers to negative integer powers.*i64\[2,3\]", K, -1),
            wrong("power", ValueError, r"integers to negative integer powers.*i64\[2,3\]", K, -K),
            Wrong(lambda np: np.array(K) ** -K, ValueError, r"numpy\.power.*negative integer powers.*i64\[2,3\]"),
        ],
    ),
]

# ---- The methods -------------------------------------------------------------------------------------------

IDENTITIES = {
    "add": 0,
    "multiply": 1,
    "logical_and": True,
    "logical_or": False,
    "logical_xor": False,
    "bitwise_or": 0,
    "bitwise_and": -1,
    "bitwise_xor": 0,
    "hypot": 0,
    "logaddexp": -np.inf,
    "gcd": 0,
    "maximum": None,
}
DTYPES = {
    "bitwise_or": INTEGERS,
    "bitwise_and": INTEGERS,
    "bitwise_xor": INTEGERS,
    "gcd": INTEGERS,
    "hypot": FLOATS,
    "logaddexp": FLOATS,
    "subtract": NUMBERS,
    "maximum": REALS,
}
REDUCED = [
    "add",
    "multiply",
    "maximum",
    "logical_and",
    "logical_xor",
    "bitwise_or",
    "bitwise_and",
    "hypot",
    "logaddexp",
    "gcd",
]


@st.composite
def reductions(draw, name):
    x = draw(arrays(dtypes=DTYPES.get(name, ALL)))
    kwargs = {"axis": draw(axes(x.ndim)), "keepdims": draw(st.booleans())}
    if draw(st.booleans()) and IDENTITIES[name] is not None:
        kwargs["where"] = draw(arrays(x.shape, BOOL))
    if draw(st.booleans()):
        kwargs["initial"] = draw(st.integers(0, 1))
    assume(IDENTITIES[name] is not None or "initial" in kwargs or x.size)
    return Call((x,), kwargs)


@st.composite
def accumulations(draw, name):
    x = draw(arrays(shapes(1), dtypes=DTYPES.get(name, ALL)))
    return Call((x,), {"axis": draw(axis(x.ndim))})


@st.composite
def parts(draw, name):
    x = draw(arrays(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), dtypes=DTYPES.get(name, ALL)))
    d = draw(axis(x.ndim))
    indices = draw(st.lists(st.integers(0, x.shape[d] - 1), min_size=1, max_size=4))
    return Call((x, np.array(indices)), {"axis": d}, fixed=(1,))


@st.composite
def places(draw, name):
    x = draw(arrays(st.lists(st.integers(1, 4), min_size=1, max_size=2).map(tuple), dtypes=DTYPES.get(name, NUMBERS)))
    indices = np.array(draw(st.lists(st.integers(-x.shape[0], x.shape[0] - 1), min_size=1, max_size=5)))
    y = draw(arrays((len(indices), *x.shape[1:]), (x.dtype.name,), low=1))
    return Call((x, indices, y), {}, fixed=(1,))


def changed(name):
    def reference(x, *rest):
        out = x.copy()
        getattr(np, name).at(out, *rest)
        return out

    return reference


def outer_reference(name):
    return lambda x, y: on_lattice(lambda a, b: getattr(np, name).outer(a, b))(x, y)


METHODS = [
    *(
        Function(
            f"{name}.reduce",
            reductions(name),
            tolerance=64,
            errors=[
                wrong(f"{name}.reduce", AxisError, r"axis 2 is out of bounds.*i64\[2,3\]", K, 2),
                wrong(f"{name}.reduce", ValueError, r"(repeated|duplicate).*axis.*i64\[2,3\]", K, (0, 0)),
                wrong(f"{name}.reduce", NotImplementedError, r"immutable", K, 0, None, K, alone="immutable"),
            ],
        )
        for name in REDUCED
    ),
    *(
        Function(
            f"{name}.accumulate",
            accumulations(name),
            tolerance=64,
            errors=[
                wrong(f"{name}.accumulate", AxisError, r"axis 2 is out of bounds.*i64\[2,3\]", K, 2),
            ],
        )
        for name in ("add", "multiply", "maximum", "logical_or", "bitwise_xor", "hypot", "subtract")
    ),
    *(
        Function(
            f"{name}.reduceat",
            parts(name),
            tolerance=64,
            errors=[
                wrong(f"{name}.reduceat", IndexError, r"index 2 out.of.bounds.*i64\[2,3\]", K, [0, 2]),
                wrong(f"{name}.reduceat", AxisError, r"axis 2 is out of bounds.*i64\[2,3\]", K, [0, 1], 2),
            ],
        )
        for name in ("add", "multiply", "maximum", "bitwise_or", "logaddexp")
    ),
    *(
        Function(
            f"{name}.outer",
            two(DTYPES.get(name, ALL), scalars=False).filter(_not_both_bool),
            outer_reference(name),
        )
        for name in ("add", "multiply", "subtract", "equal", "maximum", "hypot")
    ),
    *(
        Function(
            f"{name}.at",
            places(name).map(lambda c: Call(c.args, {"inplace": False}, c.fixed)),
            lambda *args, name=name, inplace: changed(name)(*args),
            grad_tolerance=1e-4,
            errors=[
                wrong(
                    f"{name}.at",
                    IndexError,
                    r"index 5 is out of bounds for axis 0 with size 3",
                    np.zeros(3),
                    5,
                    1,
                    inplace=False,
                    alone="JAX's parameter",
                ),
                wrong(f"{name}.at", NotImplementedError, r"immutable", np.zeros(3), 0, 1, alone="immutable"),
            ],
        )
        for name in ("add", "subtract", "multiply", "maximum", "hypot")
    ),
    Function(
        "subtract.reduce",
        reductions("hypot")
        .map(lambda c: Call((c.args[0].astype("f8"),), {"axis": c.kwargs["axis"] and -1, "initial": 1.0}))
        .filter(lambda c: c.args[0].ndim > 0 and c.kwargs["axis"] is not None),
        errors=[
            wrong("subtract.reduce", ValueError, r"zero-size array.*no identity.*f64\[0,3\]", A[:0]),
            wrong("subtract.reduce", ValueError, r"not have an identity.*'initial'.*f64\[2,3\]", A, where=B),
            wrong("sin.reduce", ValueError, "only.*two arguments", A),
        ],
    ),
]

FUNCTIONS = [*UNARY, *BINARY, *METHODS]
