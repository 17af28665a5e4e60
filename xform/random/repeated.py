"""Samplers that repeat something until it succeeds, each of them one primitive.

Such a sampler is a function of `draws` and of arrays of parameters, elementwise, that calls ``draws.until(step, ...)``:
each element repeats `step` until it is done. On the host a round is computed for the elements that are left, a tile of
the array after the other; in XLA all elements go round until the last one is done. Both give the same numbers, as
element i draws block i of a key that depends on the round alone.

May import: `xform.numpy`, `xform.lax`, `xform.core`, `xform.interpreters`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform import lax
from xform.core import config
from xform.core.array import host_value
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.trace import Primitive, staging
from xform.interpreters import batching
from xform.interpreters.lowering import lower_as
from xform.interpreters.tangents import zero_of
from xform.lax.random_bits import numbered, threefry2x32_p

TILE = 1 << 13  # elements at once on the host: what is computed of them fits into the cache
_U32 = np.dtype("uint32")
_COUNTER = np.uint32(0)


class _Staged:
    """The draws of a whole array, of which all elements go round together."""

    def __init__(self, key: Any, shape: tuple[int, ...], dtype: np.dtype):
        self.key, self.dtype, self.loops = key, dtype, 0
        self.inner = shape[key.ndim - 1 :]

    def until(
        self, step: Callable[..., Any], carry: Sequence[Any], fixed: Sequence[Any], done: Any, uniforms: int = 0
    ) -> list[Any]:
        """The carry after as many rounds as each element needs.

        Parameters
        ----------
        step : (round, carry, fixed, uniform numbers) -> (which are done now, new carry)
        carry, fixed : arrays of the elements
        done : boolean array
            Elements that take no step at all.
        uniforms : int
            How many uniform numbers of [0, 1) a step takes.
        """
        key, self.loops = _folded(self.key, np.uint32(self.loops)), self.loops + 1

        def body(loop: tuple[Any, ...]) -> tuple[Any, ...]:
            i, done, *carry = loop
            drawn = [
                threefry2x32_p.bind(_folded(key, i * _COUNTER.dtype.type(uniforms) + np.uint32(j)), **self._params())
                for j in range(uniforms)
            ]
            now, new = step(i, carry, fixed, drawn)
            kept = [lax.select(done, c, n) for c, n in zip(carry, new, strict=True)]
            return (i + np.uint32(1), done | now, *kept)

        def goes_on(loop: tuple[Any, ...]) -> Any:
            return ~lax.reduce_and(loop[1], tuple(range(loop[1].ndim)))

        return list(lax.while_loop(goes_on, body, (_COUNTER, done, *carry))[2:])

    def _params(self) -> dict[str, Any]:
        return {"shape": self.inner, "dtype": self.dtype}


def _folded(key: Any, number: Any) -> Any:
    batch = key.shape[:-1]
    number = lax.broadcast_in_dim(number, batch, ()) if batch else number
    return threefry2x32_p.bind(key, number, shape=(), dtype=None)


class _Tile:
    """The draws of some elements on the host, of which those that are done drop out."""

    def __init__(self, keys: "_Keys", places: Any, dtype: np.dtype):
        self.keys, self.places, self.dtype, self.loops = keys, places, dtype, 0

    def until(
        self, step: Callable[..., Any], carry: Sequence[Any], fixed: Sequence[Any], done: Any, uniforms: int = 0
    ) -> list[Any]:
        """See `_Staged.until`."""
        loop, self.loops = self.loops, self.loops + 1
        carry = [np.array(host_value(c)) for c in carry]
        fixed = [host_value(f) for f in fixed]
        left = np.flatnonzero(~host_value(done))
        i = 0
        while left.size:
            whole = left.size == self.places.size
            part = slice(None) if whole else left
            drawn = [self.keys.uniform(loop, i * uniforms + j, self.places[part], self.dtype) for j in range(uniforms)]
            now, new = step(i, [c[part] for c in carry], [f[part] for f in fixed], drawn)
            for c, n in zip(carry, new, strict=True):
                c[part] = host_value(n)
            left = left[~host_value(now)]
            i += 1
        return carry


class _Keys:
    """The keys of the loops and rounds, and the uniform numbers drawn with them."""

    def __init__(self, keys: Any, columns: int):
        self.keys, self.columns = keys, columns
        self.found: dict[tuple[int, int], Any] = {}

    def uniform(self, loop: int, number: int, places: Any, dtype: np.dtype) -> Any:
        """Uniform numbers of the elements at `places`, counted over all keys."""
        if len(self.keys) > 1:
            rows, places = np.divmod(places, np.uint32(self.columns))
            return numbered(_folded_host(_folded_host(self.keys[rows], loop), number), places, dtype)
        key = self.found.get((loop, number))
        if key is None:
            key = self.found[loop, number] = _folded_host(_folded_host(self.keys[0], loop), number)
        return numbered(key, places, dtype)


def _folded_host(keys: Any, number: int) -> Any:
    return numbered(keys, np.full(keys.shape[:-1], number, _U32), None)


# ---- The primitive -----------------------------------------------------------------------------------------


def repeated(name: str, sample: Callable[..., Any], derivative: Callable[..., Any] | None = None) -> Primitive:
    """The primitive ``bind(key, *parameters, dtype, **params)`` of a sampler.

    Parameters
    ----------
    name : str
    sample : (draws, *parameters, **params) -> array
        Of arrays of one shape and floating dtype, elementwise.
    derivative : (result, *parameters, **params) -> array, optional
        Derivative by the only parameter; without it tangents are zero.

    The key is a ``uint32[*batch, 2]`` of threefry2x32, the parameters have shape ``(*batch, *shape)``.
    """

    def types(key: ShapedArray, *parameters: ShapedArray, dtype: np.dtype, **params: Any) -> ShapedArray:
        first = parameters[0]
        if any(p.strong is not first.strong for p in parameters) or first.dtype.kind != "f":
            shown = ", ".join(p.str_short() for p in parameters)
            raise TypeError(f"{name}: the parameters must be floats of one shape and dtype, got {shown}")
        if key.dtype != _U32 or not key.ndim or key.shape != (*first.shape[: key.ndim - 1], 2):
            raise TypeError(
                f"{name}: expected the data of a threefry2x32 key for each leading element of the parameters, got "
                f"{key.str_short()} and parameters of {first.str_short()}"
            )
        return ShapedArray(first.shape, dtype)

    def host(key: Any, *parameters: Any, dtype: np.dtype, **params: Any) -> Any:
        if state.fast:
            return run(key, *parameters, dtype=dtype, **params)
        with staging(None), config.eager("numpy"), config.default_device(None):
            return run(key, *parameters, dtype=dtype, **params)

    def run(key: Any, *parameters: Any, dtype: np.dtype, **params: Any) -> Any:
        shape, compute = parameters[0].shape, parameters[0].dtype
        parameters = tuple(np.asarray(p).reshape(-1) for p in parameters)
        rows, size = math.prod(key.shape[:-1]), parameters[0].size
        keys = _Keys(key.reshape(rows, 2), size // max(rows, 1))
        out = np.empty(size, dtype)
        for start in range(0, size, TILE):
            part = slice(start, min(start + TILE, size))
            draws = _Tile(keys, np.arange(part.start, part.stop, dtype=_U32), compute)
            out[part] = host_value(converted(draws, *[p[part] for p in parameters], dtype=dtype, **params))
        return out.reshape(shape)

    def staged(key: Any, *parameters: Any, dtype: np.dtype, **params: Any) -> Any:
        draws = _Staged(key, parameters[0].shape, parameters[0].dtype)
        return converted(draws, *parameters, dtype=dtype, **params)

    def converted(draws: Any, *parameters: Any, dtype: np.dtype, **params: Any) -> Any:
        return lax.convert_element_type(sample(draws, *parameters, **params), dtype)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = p.bind(*primals, **params)
        if derivative is None:
            return out, zero_of(out)
        slope = derivative(out, *primals[1:], **{k: v for k, v in params.items() if k != "dtype"})
        return out, lax.mul(tangents[1], slope)

    def batch(axis: Any, args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        args = [batching.move_to(x, d, axis.size) for x, d in zip(args, dims, strict=True)]
        return p.bind(*args, **params), 0

    staged.__name__ = name
    p = Primitive(name)
    p.abstract_eval, p.host, p.jvp, p.batch, p.lower = types, host, jvp, batch, lower_as(staged)
    return p
