"""Calls of the operations of the table `tests.ops`, and comparisons of their results."""

import os

import numpy as np

from tests.ops.record import Op, Sample, eps, kind
from xform.core import tree

# For ``jit(f, compiler_options=OPTIMIZED)``: what XLA does by itself, where conftest.py didn't tell it to hurry.
IS_QUICK = "xla_cpu_use_fusion_emitters=false" in os.environ.get("XLA_FLAGS", "")
OPTIMIZED = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True} if IS_QUICK else None


def compiler_options(op):
    """What an operation must be compiled with: only the full compiler clamps booleans."""
    return OPTIMIZED if op.primitive == "clamp" else None


# ---- Calls -------------------------------------------------------------------------------------------------


class Call:
    """One sample of an operation, as a function of its arrays alone that returns a list of arrays."""

    def __init__(self, op: Op, sample: Sample, dtype: np.dtype):
        self.op, self.sample, self.dtype = op, sample, dtype
        self.leaves, self.treedef = tree.flatten(sample.args)
        self.where = [i for i, x in enumerate(self.leaves) if isinstance(x, np.ndarray | np.generic)]
        self.arrays = [self.leaves[i] for i in self.where]
        self.inexact = [i for i, x in enumerate(self.arrays) if kind(x.dtype) in "fc"]

    def __call__(self, *arrays):
        return tree.leaves(self.op.fun(*self._args(arrays), **self.sample.kwargs))

    def _args(self, arrays):
        leaves = list(self.leaves)
        for i, x in zip(self.where, arrays, strict=True):
            leaves[i] = x
        return self.treedef.unflatten(leaves)

    def reference(self):
        """The reference's results; half precision is computed in single."""
        half = eps(self.dtype) > 1e-4
        arrays = [x.astype(np.float32) if half and eps(x.dtype) > 1e-4 else x for x in self.arrays]
        with np.errstate(all="ignore"):
            out = self.op.reference(*self._args(arrays), **self.sample.kwargs)
        return [np.asarray(x) for x in tree.leaves(out)]

    def smooth(self):
        """The function of the inexact arrays to the inexact results, and the arrays."""

        def f(*xs):
            arrays = list(self.arrays)
            for i, x in zip(self.inexact, xs, strict=True):
                arrays[i] = x
            return [o for o in self(*arrays) if kind(o.dtype) in "fc"]

        return f, tuple(self.arrays[i] for i in self.inexact)

    def has_derivative(self):
        f, xs = self.smooth()
        return bool(xs and f(*xs))

    def __str__(self):
        types = ", ".join(f"{x.dtype}{list(x.shape)}" for x in self.arrays)
        return f"{self.op.name}({types}) {self.sample.kwargs or ''}"


# ---- Comparisons -------------------------------------------------------------------------------------------


def difference(got, want, tolerance, scale=0.0, zeros=False):
    """What is different between two arrays of one shape and dtype, or None.

    Integers and booleans must be equal. Floats may be off by ``tolerance * (|want| + scale)``; NaN and
    infinities must be at the same places, and with `zeros` the signs of zeros must agree. Complex numbers must
    be finite at the same places; on which part of the rest is NaN or infinite no two libraries agree.
    """
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"got {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
    if kind(got.dtype) in "biu":
        bad = got != want
    else:
        tiny = float(np.finfo(got.dtype).tiny) if got.dtype.kind in "fc" else 1.2e-38
        wide = np.complex128 if kind(got.dtype) == "c" else np.float64
        with np.errstate(all="ignore"):
            got, want = got.astype(wide), want.astype(wide)
            bad = np.isfinite(got) != np.isfinite(want)
            bad |= np.isfinite(want) & (abs(got - want) > tolerance * (abs(want) + scale) + tiny)
            if wide is np.float64:
                bad |= np.isnan(got) != np.isnan(want)
                bad |= np.isinf(want) & (got != want)
                if zeros:
                    bad |= (want == 0) & (got == 0) & (np.signbit(got) != np.signbit(want))
    if not bad.any():
        return None
    i = tuple(int(k) for k in np.argwhere(bad)[0])
    return f"{bad.sum()} of {bad.size} differ; at {i} got {got[i]!r}, expected {want[i]!r}"


def differences(call, got, want, tolerance, relative=0.1, zeros=False, beside=()):
    """Messages for all results of a call; errors are measured by each element plus `relative` times the largest.

    `beside` are numbers that the results are sums of, and that may cancel.
    """
    if len(got) != len(want):
        return [f"{call}: {len(got)} results, expected {len(want)}"]
    want = host(want)
    scale = relative * max((largest(w) for w in [*want, *host(beside)]), default=0.0)
    out = []
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        problem = difference(g, w, tolerance(w.dtype), scale, zeros)
        if problem:
            at = f" at {[np.asarray(x) for x in call.arrays]}" if sum(x.size for x in call.arrays) < 20 else ""
            out.append(f"{call} result {i}: {problem}{at}")
    return out


def largest(x):
    """The largest finite absolute value of a float array."""
    if kind(x.dtype) not in "fc":
        return 0.0
    with np.errstate(invalid="ignore"):  # signalling NaN
        x = abs(x.astype(np.complex128))
    return float(x[np.isfinite(x)].max(initial=0.0))


def check(problems):
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems[:10])


def host(outs):
    return [np.asarray(o) for o in outs]


def inner(a, b):
    """The real product of lists of arrays that pairs cotangents with tangents."""
    return sum(np.sum(np.asarray(x) * np.asarray(y)).real for x, y in zip(a, b, strict=True))


def size_of(a, b):
    """A bound of `inner`, by which its error is measured."""
    return sum(float(np.sum(abs(np.asarray(x) * np.asarray(y)))) for x, y in zip(a, b, strict=True))


def like(rng, xs):
    """Random arrays of the shapes and dtypes of `xs`."""

    def one(x):
        v = rng.standard_normal(x.shape)
        return np.asarray(v + 1j * rng.standard_normal(x.shape) if kind(x.dtype) == "c" else v).astype(x.dtype)

    return tuple(one(x) for x in xs)


def tolerance_of(op):
    def tolerance(dtype):
        given = op.rtol.get(str(dtype)) if isinstance(op.rtol, dict) else op.rtol
        return 8 * eps(dtype) if given is None else given

    return tolerance
