"""What the tests of `xform.numpy` share: calls, and what NumPy returns for them, eagerly and compiled by XLA."""

import dataclasses
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform.core import tree


@dataclasses.dataclass(frozen=True)
class Case:
    """One call of ``xform.numpy.<name>``.

    `reference`: NumPy's function, by default that of the same name. `fixed`: positions of arguments that aren't traced
    under jit, as keyword arguments aren't. `dtype`: of the result, where it isn't NumPy's.
    """

    name: str
    args: tuple = ()
    kwargs: dict = dataclasses.field(default_factory=dict)
    reference: Callable | None = None
    dtype: Any = None
    tolerance: float = 1e-12
    fixed: tuple[int, ...] = ()
    jit: bool = True

    def expected(self) -> Any:
        """What NumPy returns."""
        reference = self.reference or getattr(np, self.name)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return reference(*self.args, **self.kwargs)

    def call(self, traced: Any = None) -> Any:
        """The function's result; arrays come from the iterator `traced`, if given."""

        def array(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x
            return xnp.array(x) if traced is None else next(traced)

        fixed = [tree.map(lambda x: xnp.array(x) if isinstance(x, np.ndarray) else x, a) for a in self.args]
        args = [f if i in self.fixed else tree.map(array, a) for i, (a, f) in enumerate(zip(self.args, fixed))]
        return getattr(xnp, self.name)(*args, **self.kwargs)

    def arrays(self) -> list[np.ndarray]:
        """The arguments that are traced."""
        args = [a for i, a in enumerate(self.args) if i not in self.fixed]
        return [xnp.array(x) for x in tree.leaves(args) if isinstance(x, np.ndarray)]


def by_name(cases: list[Case]) -> Any:
    """Parametrize a test over functions (with all their cases) and modes."""
    groups = [list(g) for _, g in itertools.groupby(sorted(cases, key=lambda c: c.name), lambda c: c.name)]
    params = [pytest.param(g, m, id=f"{g[0].name}-{m}") for g in groups for m in ("eager", "jit")]
    return pytest.mark.parametrize(("cases", "mode"), params)


def check(cases: list[Case], mode: str) -> None:
    """Compare with NumPy; under jit all cases are one program, compiled by XLA."""
    if mode == "eager":
        results = [c.call() for c in cases]
    else:
        cases = [c for c in cases if c.jit]
        if not cases:
            pytest.skip("the shapes of the results depend on values")
        with xform.core.config.small_programs("xla"):
            results = xform.jit(lambda lists: [c.call(iter(xs)) for c, xs in zip(cases, lists, strict=True)])(
                [c.arrays() for c in cases]
            )
    for case, got in zip(cases, results, strict=True):
        try:
            compare(got, case.expected(), case.tolerance, case.dtype)
        except AssertionError as error:
            raise AssertionError(f"{case}: {error}") from None


def compare(got: Any, want: Any, tolerance: float = 1e-12, dtype: Any = None) -> None:
    """Values, shapes and dtypes agree; `dtype` replaces NumPy's."""
    if isinstance(want, tuple | list):
        assert isinstance(got, tuple | list) and len(got) == len(want), f"{len(want)} results expected, got {got}"
        for g, w in zip(got, want, strict=True):
            compare(g, w, tolerance, dtype)
        return
    assert isinstance(got, xform.Array), f"expected an array, got {type(got)}"
    want = np.asarray(want)
    if dtype is not None:
        want = want.astype(dtype)
    assert got.dtype == want.dtype, f"dtype {got.dtype}, NumPy's is {want.dtype}"
    assert got.shape == want.shape, f"shape {got.shape}, NumPy's is {want.shape}"
    if want.dtype.kind in "fc":
        tolerance = max(tolerance, 8 * float(np.finfo(want.dtype).eps))
        np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(np.asarray(got), want)
