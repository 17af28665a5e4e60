"""What the tests of `xform.numpy` share: a call and what NumPy returns for it, compared eagerly and compiled by XLA."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import xform
import xform.numpy as xnp
from xform.core import tree


def arrays_in(args: Any) -> Any:
    """Arguments with their ndarrays as arrays of the library."""
    return tree.map(lambda x: xnp.array(x) if isinstance(x, np.ndarray) else x, args)


@dataclasses.dataclass(frozen=True)
class Case:
    """One call of ``xform.numpy.<name>``.

    `reference`: NumPy's function, by default that of the same name. `static`: keyword arguments (and positions, by
    `traced`) that aren't traced under jit. `dtype`: of the result, where it isn't NumPy's.
    """

    name: str
    args: tuple = ()
    static: dict = dataclasses.field(default_factory=dict)
    reference: Callable | None = None
    dtype: Any = None
    tolerance: float = 1e-12
    traced: tuple[int, ...] | None = None  # positions of the arguments that hold arrays to trace; None: all that do
    jit: bool = True

    def __str__(self) -> str:
        return self.name

    def expected(self) -> Any:
        """What NumPy returns."""
        reference = self.reference or getattr(np, self.name)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return reference(*self.args, **self.static)

    def check(self, mode: str) -> None:
        """Compare with NumPy in one mode: 'eager' or 'jit'."""
        function = getattr(xnp, self.name)
        if mode == "eager":
            got = function(*arrays_in(self.args), **arrays_in(self.static))
        else:
            leaves, treedef = tree.flatten(arrays_in(self.args))
            is_array = [isinstance(x, xform.Array) for x in leaves]
            if self.traced is not None:
                sizes = [len(tree.leaves(a)) for a in arrays_in(self.args)]
                allowed = [i in self.traced for i, n in enumerate(sizes) for _ in range(n)]
                is_array = [a and b for a, b in zip(is_array, allowed, strict=True)]

            def program(*traced: Any) -> Any:
                found = iter(traced)
                xs = [next(found) if t else x for x, t in zip(leaves, is_array, strict=True)]
                return function(*treedef.unflatten(xs), **arrays_in(self.static))

            with xform.core.config.small_programs("xla"):
                got = xform.jit(program)(*(x for x, t in zip(leaves, is_array, strict=True) if t))
        compare(got, self.expected(), self.tolerance, self.dtype)


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
