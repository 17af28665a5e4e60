"""Series as objects: coefficients with the interval that they are meant for.

A series stands for ``sum of coef[n] p[n](u)``, where u is the argument mapped from `domain` to `window` by a line. The
objects are pytrees with the leaves `coef`, `domain` and `window`, so they pass through all transformations.

>>> import xform
>>> from xform.numpy.polynomial import Legendre
>>> p = Legendre([1.0, 2.0, 3.0], domain=[0.0, 4.0])
>>> xform.grad(lambda p: p(3.0))(p).coef.tolist()
[1.0, 0.5, -0.125]

May import: `numpy.polynomial.series`, `numpy.polynomial.polyutils`, `xform.numpy`, `xform.core`.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import Array
from xform.core.errors import api_boundary
from xform.lax.conversion import convert
from xform.numpy import creation, ranges
from xform.numpy.polynomial import bases, polyutils, series
from xform.numpy.promotion import array_of, is_concrete, promote_inexact, shown, strong


class Series:
    """A polynomial as a series; use the class of a family.

    Parameters
    ----------
    coef : vector
    domain, window : pairs, optional
        The interval of arguments and the one that it is mapped to; by default both are the family's own.
    symbol : str
        How the variable is shown.
    """

    family: ClassVar[bases.Basis]
    domain: Any
    window: Any
    maxpower = 100
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # an ndarray leaves operators to the series

    def __init__(self, coef: Any, domain: Any = None, window: Any = None, symbol: str = "x"):
        (self.coef,) = series.vectors(self._name("__init__"), coef)
        self.domain = self._interval("domain", domain, self.coef)
        self.window = self._interval("window", window, self.coef)
        if not (isinstance(symbol, str) and symbol.isidentifier()):
            raise ValueError(f"numpy.{self._name('__init__')}: symbol must be a Python identifier, got {symbol!r}")
        self.symbol = symbol

    @classmethod
    def _name(cls, method: str) -> str:
        return f"polynomial.{cls.__name__}" + ("" if method == "__init__" else f".{method}")

    @classmethod
    def _interval(cls, arg: str, value: Any, like: Array) -> Array:
        """An interval; one that isn't given as an array takes the precision of the array `like`."""
        name = cls._name("__init__")
        found = array_of(name, cls.family.domain if value is None else value, arg)
        if found.shape != (2,):
            raise ValueError(f"numpy.{name}: {arg} must be a pair, got {shown(found)}")
        (found,) = promote_inexact(name, found)
        return strong(found) if hasattr(value, "dtype") or found.dtype.kind == "c" else real_like(found, like)

    def _with(self, coef: Any) -> Self:
        return type(self)(coef, self.domain, self.window, self.symbol)

    # ---- Pytrees -------------------------------------------------------------------------------------------

    def tree_flatten(self) -> tuple[tuple[Any, ...], str]:
        """The leaves, and the rest."""
        return (self.coef, self.domain, self.window), self.symbol

    @classmethod
    def tree_unflatten(cls, symbol: str, leaves: Any) -> Self:
        """The series with other leaves, whatever they are."""
        out = object.__new__(cls)
        out.coef, out.domain, out.window = leaves
        out.symbol = symbol
        return out

    # ---- Values --------------------------------------------------------------------------------------------

    def mapparms(self) -> tuple[Any, Any]:
        """The offset and the scale of the line from the domain to the window."""
        return polyutils.mapparms(self.domain, self.window)

    @api_boundary
    def __call__(self, arg: Any) -> Any:
        """The values at an array, or the composition with another series."""
        offset, scale = self.mapparms()
        name = self._name("__call__")
        if not isinstance(arg, Series):
            return series.val(self.family, name, offset + scale * array_of(name, arg, "arg"), self.coef)
        inner = (offset + scale * arg).coef
        n = (self.coef.size - 1) * (inner.size - 1) + 1

        def times_inner(y: Array) -> Array:
            return series.product(arg.family, inner, y)[:n]

        return arg._with(self._composed(times_inner, n))

    def _composed(self, times_x: Any, n: int) -> Array:
        """The coefficients, n of them, of this series at an "x" by which `times_x` multiplies."""
        one = series.padded(creation.ones(1, self.coef.dtype), n)
        return series.clenshaw(self.family, self.coef[:, None], times_x, one)

    @api_boundary
    def linspace(self, n: int = 100, domain: Any = None) -> tuple[Array, Array]:
        """n points evenly spaced over the domain, and the values there."""
        a, b = self.domain if domain is None else domain
        x = ranges.linspace(a, b, n)
        return x, self(x)

    # ---- Arithmetic ----------------------------------------------------------------------------------------

    def _operand(self, other: Any) -> Any:
        """The coefficients of the other operand; None: it is none."""
        if not isinstance(other, Series):
            return other if np.ndim(other) <= 1 and not isinstance(other, str | dict) else None
        if type(other) is not type(self):
            raise TypeError(f"numpy.polynomial: {type(self).__name__} and {type(other).__name__} can't be combined")
        if not (self.has_samedomain(other) and self.has_samewindow(other)):
            raise TypeError("numpy.polynomial: series with different domains or windows can't be combined")
        if self.symbol != other.symbol:
            raise ValueError(f"numpy.polynomial: symbols {self.symbol!r} and {other.symbol!r} differ")
        return other.coef

    def _combined(self, other: Any, function: Any, reverse: bool = False) -> Any:
        coef = self._operand(other)
        if coef is None:
            return NotImplemented
        pair = (coef, self.coef) if reverse else (self.coef, coef)
        out = function(self.family, self._name(function.__name__), *pair)
        return tuple(map(self._with, out)) if isinstance(out, tuple) else self._with(out)

    def __add__(self, other: Any) -> Any:
        return self._combined(other, series.add)

    def __sub__(self, other: Any) -> Any:
        return self._combined(other, series.sub)

    def __mul__(self, other: Any) -> Any:
        return self._combined(other, series.mul)

    def __divmod__(self, other: Any) -> Any:
        return self._combined(other, series.div)

    def __radd__(self, other: Any) -> Any:
        return self._combined(other, series.add, reverse=True)

    def __rsub__(self, other: Any) -> Any:
        return self._combined(other, series.sub, reverse=True)

    def __rmul__(self, other: Any) -> Any:
        return self._combined(other, series.mul, reverse=True)

    def __rdivmod__(self, other: Any) -> Any:
        return self._combined(other, series.div, reverse=True)

    def __floordiv__(self, other: Any) -> Any:
        out = self.__divmod__(other)
        return out if out is NotImplemented else out[0]

    def __mod__(self, other: Any) -> Any:
        out = self.__divmod__(other)
        return out if out is NotImplemented else out[1]

    def __rfloordiv__(self, other: Any) -> Any:
        out = self.__rdivmod__(other)
        return out if out is NotImplemented else out[0]

    def __rmod__(self, other: Any) -> Any:
        out = self.__rdivmod__(other)
        return out if out is NotImplemented else out[1]

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Series) or np.ndim(other):
            raise TypeError("numpy.polynomial: a series can be divided by a number; for a quotient of series use //")
        return self._with(self.coef / other)

    def __pow__(self, other: Any) -> Self:
        return self._with(series.pow(self.family, self._name("__pow__"), self.coef, other, self.maxpower))

    def __neg__(self) -> Self:
        return self._with(-self.coef)

    def __pos__(self) -> Self:
        return self

    def __len__(self) -> int:
        return int(self.coef.size)

    def __iter__(self) -> Iterator[Array]:
        return iter(self.coef)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, type(self))
            and type(other) is type(self)
            and self.has_samecoef(other)
            and self.has_samedomain(other)
            and self.has_samewindow(other)
            and self.symbol == other.symbol
        )

    # ---- Questions -----------------------------------------------------------------------------------------

    def has_samecoef(self, other: Any) -> bool:
        """Whether the coefficients are equal; they must be known."""
        return self.coef.shape == other.coef.shape and bool((self.coef == other.coef).all())

    def has_samedomain(self, other: Any) -> bool:
        """Whether the domains are equal, as those that are traced are taken to be."""
        return _equal(self.domain, other.domain)

    def has_samewindow(self, other: Any) -> bool:
        """Whether the windows are equal, as those that are traced are taken to be."""
        return _equal(self.window, other.window)

    def has_sametype(self, other: Any) -> bool:
        """Whether both are series of one family."""
        return isinstance(other, type(self))

    def degree(self) -> int:
        """The number of coefficients less one."""
        return len(self) - 1

    # ---- Other lengths -------------------------------------------------------------------------------------

    def copy(self) -> Self:
        """The same series."""
        return self._with(self.coef)

    @api_boundary
    def cutdeg(self, deg: int) -> Self:
        """Without the terms of degrees beyond `deg`."""
        return self.truncate(series.degree(self._name("cutdeg"), deg) + 1)

    @api_boundary
    def truncate(self, size: int) -> Self:
        """The first `size` terms."""
        return self._with(self.coef[: series.degree(self._name("truncate"), size, "size", 1)])

    @api_boundary
    def trim(self, tol: float = 0) -> Self:
        """Without last coefficients of absolute value up to `tol`; they must be known."""
        return self._with(series.trim(self.family, self._name("trim"), self.coef, tol))

    # ---- Calculus and roots --------------------------------------------------------------------------------

    @api_boundary
    def deriv(self, m: int = 1) -> Self:
        """The m-th derivative."""
        _, scale = self.mapparms()
        return self._with(series.der(self.family, self._name("deriv"), self.coef, m, scale))

    @api_boundary
    def integ(self, m: int = 1, k: Any = (), lbnd: Any = None) -> Self:
        """The m-th integral, with integration constants `k` at `lbnd`, by default where the window has its 0."""
        offset, scale = self.mapparms()
        bound = 0 if lbnd is None else offset + scale * lbnd
        return self._with(series.int_(self.family, self._name("integ"), self.coef, m, k, bound, 1 / scale))

    @api_boundary
    def roots(self) -> Array:
        """The roots, sorted, as complex numbers."""
        found = series.roots(self.family, self._name("roots"), self.coef)
        return polyutils.mapdomain(found, self.window, self.domain)

    # ---- Made from other things ----------------------------------------------------------------------------

    @classmethod
    @api_boundary
    def fit(
        cls, x: Any, y: Any, deg: Any, domain: Any = None, rcond: float | None = None, full: bool = False,
        w: Any = None, window: Any = None, symbol: str = "x",
    ) -> Any:  # fmt: skip
        """The series that fits points best; parameters as for the function of the family.

        domain : pair, optional
            By default the interval of `x`; an empty list: that of the family.
        """
        x = array_of(cls._name("fit"), x, "x")
        domain, window = cls._fitted(x, domain), cls._interval("window", window, x)
        mapped = polyutils.mapdomain(x, domain, window)
        out = series.fit(cls.family, cls._name("fit"), mapped, y, deg, rcond, full, w)
        if full:
            return cls(out[0], domain, window, symbol), out[1]
        return cls(out, domain, window, symbol)

    @classmethod
    def _fitted(cls, x: Array, domain: Any) -> Array:
        if domain is None:
            found = polyutils.getdomain(x)
            return found + (found[0] == found[1]) * np.array([-1, 1])  # of one point, an interval around it
        return cls._interval("domain", None if isinstance(domain, list) and not domain else domain, x)

    @classmethod
    @api_boundary
    def fromroots(cls, roots: Any, domain: Any = (), window: Any = None, symbol: str = "x") -> Self:
        """The series with these roots and 1 as coefficient of the highest power of the variable."""
        roots = array_of(cls._name("fromroots"), roots, "roots")
        domain = cls._fitted(roots, list(domain) if isinstance(domain, tuple) else domain)
        window = cls._interval("window", window, roots)
        offset, scale = polyutils.mapparms(domain, window)
        coef = series.fromroots(cls.family, cls._name("fromroots"), offset + scale * roots)
        return cls(coef / scale**roots.size, domain, window, symbol)

    @classmethod
    @api_boundary
    def identity(cls, domain: Any = None, window: Any = None, symbol: str = "x") -> Self:
        """The series p with ``p(x) = x``."""
        like = creation.array(0.0)
        domain, window = cls._interval("domain", domain, like), cls._interval("window", window, like)
        coef = series.line(cls.family, cls._name("identity"), *polyutils.mapparms(window, domain))
        return cls(coef, domain, window, symbol)

    @classmethod
    @api_boundary
    def basis(cls, deg: int, domain: Any = None, window: Any = None, symbol: str = "x") -> Self:
        """The series of one polynomial of the family, the one of degree `deg`."""
        n = series.degree(cls._name("basis"), deg)
        return cls(np.eye(1, n + 1, n)[0], domain, window, symbol)

    @classmethod
    @api_boundary
    def cast(cls, series: "Series", domain: Any = None, window: Any = None) -> Self:
        """A series of another family as one of this family."""
        return series.convert(domain, cls, window)

    @api_boundary
    def convert(self, domain: Any = None, kind: Any = None, window: Any = None) -> Any:
        """The series with the same values in another family, domain or window."""
        kind = type(self) if kind is None else kind
        if not (isinstance(kind, type) and issubclass(kind, Series)):
            raise TypeError(f"numpy.{self._name('convert')}: kind must be the class of a family, got {kind!r}")
        variable = kind.identity(domain, window, self.symbol)
        return self(variable)

    # ---- Text ----------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        coef, domain, window = (_text(v) for v in (self.coef, self.domain, self.window))
        return f"{type(self).__name__}({coef}, domain={domain}, window={window}, symbol={self.symbol!r})"

    def __str__(self) -> str:
        if not is_concrete(self.coef, self.domain, self.window):
            return repr(self)
        theirs = getattr(np.polynomial, type(self).__name__)
        return str(theirs(*map(np.asarray, (self.coef, self.domain, self.window)), self.symbol))


def _equal(a: Any, b: Any) -> bool:
    return a is b or not is_concrete(a, b) or bool(np.all(np.asarray(a) == np.asarray(b)))


def real_like(x: Array, like: Array) -> Array:
    """`x` in the precision of another array."""
    return convert(x, dtypes.finfo(dtypes.to_inexact_dtype(like.dtype)).dtype)


def _text(x: Any) -> str:
    return np.array2string(np.asarray(x), separator=", ") if isinstance(x, Array) and is_concrete(x) else repr(x)


@tree.register_pytree_node_class
class Polynomial(Series):
    """A power series; see `Series` for the parameters."""

    family = bases.POWER


@tree.register_pytree_node_class
class Chebyshev(Series):
    """A Chebyshev series; see `Series` for the parameters."""

    family = bases.CHEBYSHEV


@tree.register_pytree_node_class
class Legendre(Series):
    """A Legendre series; see `Series` for the parameters."""

    family = bases.LEGENDRE


@tree.register_pytree_node_class
class Hermite(Series):
    """A series of the physicists' Hermite polynomials; see `Series` for the parameters."""

    family = bases.HERMITE


@tree.register_pytree_node_class
class HermiteE(Series):
    """A series of the probabilists' Hermite polynomials; see `Series` for the parameters."""

    family = bases.HERMITE_E


@tree.register_pytree_node_class
class Laguerre(Series):
    """A Laguerre series; see `Series` for the parameters."""

    family = bases.LAGUERRE
