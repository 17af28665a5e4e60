"""`xform.numpy.polynomial` beside `numpy.polynomial`: values, shapes, derivatives, all families by the same tests."""

import copy

import numpy as np
import numpy.polynomial as theirs
import pytest

import xform
import xform.numpy as xnp
from xform.numpy import polynomial as ours
from xform.test_util import check_grads

FAMILIES = {"polynomial": "poly", "chebyshev": "cheb", "legendre": "leg", "hermite": "herm", "hermite_e": "herme",
            "laguerre": "lag"}  # fmt: skip
CLASSES = ["Polynomial", "Chebyshev", "Legendre", "Hermite", "HermiteE", "Laguerre"]
RNG = np.random.default_rng(0)
C, D, X = RNG.normal(size=5), RNG.normal(size=3), RNG.uniform(-1, 1, (2, 3))
C2, C3 = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4, 2))
COMPLEX = C + 1j * RNG.normal(size=5)
LINE = np.linspace(-1, 1, 9)
Y = RNG.normal(size=(9, 2))

# Function: calls of it, whose lengths are NumPy's (no zeros at the ends of results).
CALLS = {
    "line": [(2.0, 3.0)], "mulx": [(C,), ([1, 2],)], "add": [(C, D), (D, C), ([1, 2], 3)], "sub": [(C, D), (D, C)],
    "mul": [(C, D), (D, C), (COMPLEX, D), ([2], C)], "div": [(C, D), (D, C), (C, [2.0]), (COMPLEX, D), (C, [1, 2, 0])],
    "pow": [(C, 3), (C, 1), (C, 0), (D, 4, 4)],
    "val": [(X, C), (X, C2), (0.5, C), (X, C3), (X, [3]), (X, COMPLEX), (X + 1j, C), ([], C), (2, [1, 2, 3]),
            (X, RNG.normal(size=(4, 2, 3)), False), (np.array([np.nan, 1.0]), C)],
    "val2d": [(X, X * 2, C2)], "val3d": [(X, X * 2, X - 1, C3)], "grid2d": [(X[0], X, C2)],
    "grid3d": [(X[0], X[1], X[:, 0], C3)],
    "vander": [(X, 4), (X, 0), (0.5, 2)], "vander2d": [(X, X * 2, [2, 1])], "vander3d": [(X, X * 2, X, (1, 2, 1))],
    "der": [(C, m) for m in range(6)] + [(C, 2, 3.0), (C2, 1, 1, 1), (COMPLEX,), ([1, 2, 3],)],
    "int": [(C,), (C, 2, [1.0, 2.0], 0.5, 2.0), (C, 1, 3.0), (C2, 2, [3.0], 0, 1, 1), (C, 0), ([1], 1), (COMPLEX,)],
    "fromroots": [([1.0, 2.0, -0.5],), ([],), ([1 + 1j, 1 - 1j],)],
    "companion": [(C,), (C[:2],), (C[:3],)], "roots": [(C,), (C[:2],), (C[:1],), ([1.0, 2.0, 0.0, 0.0],), (COMPLEX,)],
    "fit": [(LINE, Y[:, 0], 3), (LINE, Y, [0, 2], None, False, np.arange(1.0, 10)), (LINE, Y, 0)],
    "trim": [([1.0, 2.0, 0.0, 0.0],), ([1.0, 0.1, 0.01], 0.05), ([0.0, 0.0],)], "weight": [(X * 0.9,)],
    "2poly": [(C,), (C[:1],)], "gauss": [(1,), (7,)],
}  # fmt: skip


def named(module, family, function):
    prefix = FAMILIES[family]
    return getattr(getattr(module, family), prefix + function, None)


def close(got, wanted, rtol=1e-10):
    for g, w in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, wanted)), strict=True):
        assert isinstance(g, xform.Array) and g.shape == np.shape(w), (g, w)
        np.testing.assert_allclose(np.asarray(g), w, rtol=rtol, atol=1e-11)


@pytest.mark.parametrize("function", CALLS)
@pytest.mark.parametrize("family", FAMILIES)
def test_functions(family, function):
    own, reference = named(ours, family, function), named(theirs, family, function)
    if reference is None:
        assert family == "polynomial" and function in ("weight", "2poly", "gauss")
        return
    for args in CALLS[function]:
        with np.errstate(invalid="ignore"):
            close(own(*args), reference(*args))


@pytest.mark.parametrize("family", FAMILIES)
def test_conversions_go_back(family):
    if family != "polynomial":
        prefix = FAMILIES[family]
        back = getattr(getattr(ours, family), f"poly2{prefix}")
        close(back(C), getattr(getattr(theirs, family), f"poly2{prefix}")(C))
        close(back(named(ours, family, "2poly")(C)), C)


@pytest.mark.parametrize("family", FAMILIES)
def test_all_names_and_constants(family):
    own, reference = getattr(ours, family), getattr(theirs, family)
    assert set(own.__all__) - {f"{FAMILIES[family]}valnd"} == set(reference.__all__) - {f"{FAMILIES[family]}valnd"}
    for name in ("domain", "zero", "one", "x"):
        got, wanted = (getattr(m, FAMILIES[family] + name) for m in (own, reference))
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(got), wanted)


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_and_jit(family):
    def f(name):
        return named(ours, family, name)

    x = X[0]
    for function, args in [
        (f("val"), (x, C)), (f("mul"), (C, D)), (f("div"), (C, [0.3, -0.2, 1.5])), (f("der"), (C,)), (f("int"), (C,)),
        (lambda x: f("vander")(x, 3), (x,)), (f("fromroots"), (D,)), (f("companion"), (C,)),
        (lambda y: f("fit")(LINE, y, 3), (Y[:, 0],)), (lambda c: f("val2d")(X, X, c), (C2,)),
    ]:  # fmt: skip
        check_grads(function, args, order=2, modes=("fwd", "rev"))
        for got, wanted in zip(*(xnp.atleast_1d(g(*args)) for g in (xform.jit(function), function)), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-12, atol=1e-12)
    simple = named(theirs, family, "fromroots")([-0.9, 0.1, 0.8])
    check_grads(lambda c: f("roots")(c).real, (simple,), order=1, modes=("fwd", "rev"), rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_vmap_is_a_loop(family):
    for name, args in {"mul": (C2, C2), "val": (X[0], C2), "der": (C2,), "fromroots": (C2,)}.items():
        function = named(ours, family, name)
        got = xform.vmap(function)(*args)
        for i, row in enumerate(zip(*args, strict=True)):
            np.testing.assert_allclose(np.asarray(got[i]), np.asarray(function(*row)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_long_series_are_loops_of_a_program(family):
    c = RNG.normal(size=150) / np.arange(1.0, 151)
    val = named(ours, family, "val")
    program = xform.make_jaxpr(val)(X, c)
    assert len(program.jaxpr.eqns) < 40
    wanted = named(theirs, family, "val")(X, c)
    np.testing.assert_allclose(np.asarray(xform.jit(val)(X, c)), wanted, rtol=1e-8)
    np.testing.assert_allclose(np.asarray(val(X, c)), wanted, rtol=1e-8)
    roots = np.linspace(-1, 1, 80)
    np.testing.assert_allclose(
        np.asarray(xform.jit(ours.polynomial.polyfromroots)(roots)), theirs.polynomial.polyfromroots(roots), atol=1e-9
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_single_precision_stays(family):
    c, x = C.astype("f"), X.astype("f")
    calls = {"val": (x, c), "mul": (c, c), "der": (c,), "int": (c,), "vander": (x, 3), "div": (c, c[:2]),
             "fromroots": (c,), "companion": (c,), "fit": (LINE.astype("f"), Y.astype("f"), 2)}  # fmt: skip
    for name, args in calls.items():
        out = named(ours, family, name)(*args)
        for got in out if isinstance(out, tuple) else (out,):
            assert got.dtype == "float32", name
    assert getattr(ours, CLASSES[list(FAMILIES).index(family)])(c)(x).dtype == "float32"


@pytest.mark.parametrize("family", FAMILIES)
def test_points_of_any_number_of_coordinates(family):
    """NumPy has this since 2.5."""
    valnd, val3d = named(ours, family, "valnd"), named(theirs, family, "val3d")
    close(valnd((X, X * 2, X - 1), C3), val3d(X, X * 2, X - 1, C3))
    close(valnd(np.stack([X, X * 2, X - 1]), C3), val3d(X, X * 2, X - 1, C3))
    close(valnd([X], C), named(theirs, family, "val")(X, C))
    with pytest.raises(ValueError, match=r"valnd: pts\[0\], pts\[1\] must have one shape, got f64\[2,3\], f64\[3\]"):
        valnd((X, X[0]), C2)


def test_orthogonality_by_quadrature():
    """Integrals of products with the weight are 0 for different degrees."""
    for family in list(FAMILIES)[1:]:
        nodes, weights = named(ours, family, "gauss")(12)
        values = named(ours, family, "vander")(nodes, 5)
        products = np.asarray(xnp.einsum("i,ij,ik->jk", weights, values, values))
        scale = np.sqrt(np.diag(products))
        np.testing.assert_allclose(products / scale / scale[:, None], np.eye(6), atol=1e-12)


def test_chebyshev_points_and_interpolation():
    for name, n in (("chebpts1", 1), ("chebpts1", 6), ("chebpts2", 2), ("chebpts2", 5)):
        close(getattr(ours.chebyshev, name)(n), getattr(theirs.chebyshev, name)(n))
    with pytest.raises(ValueError, match=r"chebpts2: npts must be at least 2, got 1"):
        ours.chebyshev.chebpts2(1)
    got = ours.chebyshev.chebinterpolate(lambda x, a: xnp.exp(a * x), 12, (2.0,))
    close(got, theirs.chebyshev.chebinterpolate(lambda x, a: np.exp(a * x), 12, (2.0,)))
    slope = xform.grad(
        lambda a: ours.chebyshev.chebval(0.3, ours.chebyshev.chebinterpolate(lambda x: xnp.exp(a * x), 16))
    )
    np.testing.assert_allclose(float(slope(2.0)), 0.3 * np.exp(0.6), rtol=1e-10)
    close(ours.polynomial.polyvalfromroots(X, D), theirs.polynomial.polyvalfromroots(X, D))
    close(ours.polynomial.polyvalfromroots(X, C2), theirs.polynomial.polyvalfromroots(X, C2))
    close(ours.polynomial.polyvalfromroots(X[0], np.ones((2, 3)), False),
          theirs.polynomial.polyvalfromroots(X[0], np.ones((2, 3)), False))  # fmt: skip


def test_utilities():
    for name, args in {
        "getdomain": (X[0],), "mapdomain": (X, (-1.0, 1.0), (0.0, 3.0)), "trimcoef": ([1.0, 2.0, 1e-9], 1e-6),
        "trimseq": (np.array([1, 2, 0, 0]),),
    }.items():  # fmt: skip
        got, wanted = getattr(ours.polyutils, name)(*args), getattr(theirs.polyutils, name)(*args)
        np.testing.assert_allclose(np.asarray(got), wanted)
    close(ours.polyutils.getdomain(COMPLEX), theirs.polyutils.getdomain(COMPLEX))
    assert ours.polyutils.mapparms((-1, 1), (0, 4)) == theirs.polyutils.mapparms((-1, 1), (0, 4))
    for got, wanted in zip(*(m.polyutils.as_series([[1, 2, 0], [3]]) for m in (ours, theirs)), strict=True):
        close(got, wanted)


def test_errors():
    for call, error, message in [
        (lambda: ours.legendre.legadd([[1]], 2), ValueError, r"legendre\.legadd: coefficients must be a vector"),
        (lambda: ours.legendre.legmul([], [1]), ValueError, "coefficients must be a vector, not empty"),
        (lambda: ours.chebyshev.chebval(1.0, []), ValueError, r"chebyshev\.chebval: c must have coefficients"),
        (lambda: ours.chebyshev.chebval("a", [1]), TypeError, r"chebyshev\.chebval: "),
        (lambda: ours.polynomial.polypow([1], -1), ValueError, "pow must be at least 0, got -1"),
        (lambda: ours.chebyshev.chebpow([1, 2], 17), ValueError, "pow=17 is larger than maxpower=16"),
        (lambda: ours.polynomial.polyder([1], 1.5), TypeError, "m must be an integer, got 1.5"),
        (lambda: ours.polynomial.polyder([1], axis=1), ValueError, r"axis"),
        (lambda: ours.polynomial.polyint([1], 1, [1, 2]), ValueError, "at most m=1 integration constants"),
        (lambda: ours.hermite.hermdiv([1, 2], [0, 0]), ZeroDivisionError, r"hermite\.hermdiv: division by zero"),
        (lambda: ours.laguerre.lagcompanion([1]), ValueError, "needs at least two coefficients"),
        (lambda: ours.laguerre.lagval2d([1.0], [1.0, 2.0], [[1]]), ValueError, "x, y must have one shape"),
        (lambda: ours.polynomial.polyvander2d(X, X, [1]), ValueError, "needs 2 degrees"),
        (lambda: ours.polynomial.polyfit(X, X, 1), ValueError, r"polynomial\.polyfit: needs x of shape \(M,\)"),
        (lambda: ours.polynomial.polyfit(LINE, LINE, 1, w=[1]), ValueError, "w must have the shape of x"),
        (lambda: xform.jit(ours.polynomial.polytrim)(C), TypeError, "must be known when the function is traced"),
        (lambda: ours.Polynomial([1], domain=[1]), ValueError, "domain must be a pair"),
        (lambda: ours.Polynomial([1], symbol="1"), ValueError, "must be a Python identifier"),
        (lambda: ours.Polynomial([1]) + ours.Chebyshev([1]), TypeError, "can't be combined"),
        (lambda: ours.Polynomial([1]) + ours.Polynomial([1], [0, 1]), TypeError, "different domains"),
        (lambda: ours.Polynomial([1]) / ours.Polynomial([1]), TypeError, "use //"),
        (lambda: ours.Polynomial([1]).convert(kind=int), TypeError, "kind must be the class of a family"),
    ]:  # fmt: skip
        with pytest.raises(error, match=message):
            call()


# ---- Classes -----------------------------------------------------------------------------------------------

OPERATIONS = {
    "call": lambda p, q, m: p(1.5), "add": lambda p, q, m: p + q, "minus": lambda p, q, m: p - 1,
    "rminus": lambda p, q, m: 1 - p, "mul": lambda p, q, m: p * q, "rmul": lambda p, q, m: 2 * p,
    "floordiv": lambda p, q, m: p // q, "mod": lambda p, q, m: p % q,
    "rfloordiv": lambda p, q, m: [1.0, 2.0, 3.0] // q, "rmod": lambda p, q, m: [1.0, 2.0, 3.0] % q,
    "power": lambda p, q, m: p**3, "quotient": lambda p, q, m: p / 2, "neg": lambda p, q, m: -p,
    "pos": lambda p, q, m: +p, "array": lambda p, q, m: np.ones(2) + p, "deriv": lambda p, q, m: p.deriv(2),
    "integ": lambda p, q, m: p.integ(2, [2.0], 1.0), "integ0": lambda p, q, m: p.integ(),
    "roots": lambda p, q, m: p.roots(), "compose": lambda p, q, m: p(q), "convert": lambda p, q, m: p.convert(),
    "window": lambda p, q, m: p.convert([0, 2], window=[0, 1]), "linspace": lambda p, q, m: p.linspace(5)[1],
    "cutdeg": lambda p, q, m: p.cutdeg(2), "truncate": lambda p, q, m: p.truncate(2),
    "copy": lambda p, q, m: p.copy(), "len": lambda p, q, m: len(p) + p.degree(),
    "iter": lambda p, q, m: np.array(list(p)), "identity": lambda p, q, m: type(p).identity([0, 3]),
    "basis": lambda p, q, m: type(p).basis(3, [0, 3]), "fromroots": lambda p, q, m: type(p).fromroots([1.0, 2.0]),
    "fromroots domain": lambda p, q, m: type(p).fromroots([1.0, 3.0], None),
    "fit": lambda p, q, m: type(p).fit(LINE * 2 + 1, Y[:, 0], 3),
    "fit one": lambda p, q, m: type(p).fit([1.0], [2.0], 0),
    "fit domain": lambda p, q, m: type(p).fit(LINE, Y[:, 0], [0, 2], []),
    "trim": lambda p, q, m: (p * 0 + [1, 2, 0]).trim(), "cast": lambda p, q, m: m.Legendre.cast(p),
    "to": lambda p, q, m: p.convert(kind=m.Laguerre), "mapparms": lambda p, q, m: np.array(p.mapparms()),
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", CLASSES)
def test_classes(name, operation):
    results = []
    for module in (ours, theirs):
        p, q = (getattr(module, name)(c, [0.0, 4.0], symbol="t") for c in (C, D))
        results.append(OPERATIONS[operation](p, q, module))
    got, wanted = results
    if hasattr(wanted, "coef"):
        assert type(got).__name__ == type(wanted).__name__ and got.symbol == wanted.symbol
        for leaf in ("domain", "window"):
            np.testing.assert_allclose(np.asarray(getattr(got, leaf)), getattr(wanted, leaf))
        got, wanted = got.coef, wanted.coef
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", CLASSES)
def test_classes_are_pytrees(name):
    p = getattr(ours, name)(C, [0.0, 4.0])
    values = getattr(theirs, name)(C, [0.0, 4.0])
    slope = xform.grad(lambda p: (p.deriv() * p)(1.5))(p)
    eps = 1e-6
    for i in range(C.size):
        f = [values.__class__(C + s * eps * np.eye(C.size)[i], [0.0, 4.0]) for s in (1, -1)]
        numeric = np.subtract(*((v.deriv() * v)(1.5) for v in f)) / (2 * eps)
        np.testing.assert_allclose(float(slope.coef[i]), numeric, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(float(xform.grad(p)(1.5)), values.deriv()(1.5), rtol=1e-12)
    fitted = xform.jit(type(p).fit, static_argnums=2)(LINE, Y[:, 0], 2)
    np.testing.assert_allclose(np.asarray(fitted.coef), type(values).fit(LINE, Y[:, 0], 2).coef, rtol=1e-9)
    mapped = xform.vmap(lambda c: getattr(ours, name)(c)(0.5))(C2)
    np.testing.assert_allclose(np.asarray(mapped), [type(values)(c)(0.5) for c in C2], rtol=1e-12)


@pytest.mark.parametrize("name", CLASSES)
def test_text_and_equality(name):
    p, q = getattr(ours, name)(C, [0.0, 4.0]), getattr(theirs, name)(C, [0.0, 4.0])
    assert repr(p) == repr(q) and str(p) == str(q)
    assert p == copy.copy(p) and p != p + 1 and p != getattr(ours, name)(C) and (p != q)
    assert p.has_samecoef(p) and p.has_samedomain(p) and p.has_samewindow(p) and p.has_sametype(p + 1)
    seen = []
    xform.jit(lambda p: seen.append(str(p)) or p.coef)(p)
    assert seen[0].startswith(f"{name}(") and "f64[5]" in seen[0]
