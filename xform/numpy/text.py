"""How arrays print: `repr`, `str` and `format` as NumPy's, with what NumPy has not; `array_repr` and `array_str`.

``Array([1., 2.], dtype=float64)`` is NumPy's text. A weak type is told, and where the array is, unless that is host
memory: ``device=gpu:0``, or ``sharding=axis 0 over cpu:0-3`` for the results of `pmap`. A tracer prints its type, the
transformations that it is in from the inside out, and its value where that is known:
``Traced<f64[] in grad in vmap(3), values=[0. 1. 2.]>``.

NumPy's print options hold. Of a large array on an accelerator only the few elements are fetched that are printed.

May import: `xform.core`, `interpreters.batching`, `backends.xla` when a buffer is there.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core.array import Array, ArrayImpl, own
from xform.core.errors import ConcretizationTypeError
from xform.core.trace import Tracer, staging
from xform.interpreters.batching import BatchTracer

get_printoptions, set_printoptions, printoptions = np.get_printoptions, np.set_printoptions, np.printoptions


# ---- Where arrays are, and a few of their elements ----------------------------------------------------------


def devices_of(x: ArrayImpl) -> tuple[Any, ...]:
    """The devices that an array is on in a way that its user should know of: none if it is in host memory."""
    buffer = x._device_buffer()
    if buffer is None and x._device is None:
        return ()
    from xform.backends import xla

    devices = (x._device,) if buffer is None else xla.devices_of(buffer)
    return () if devices == (xla.devices("cpu")[0],) else devices


def describe_devices(devices: Sequence[Any]) -> str:
    """``device=gpu:0``, or ``sharding=axis 0 over gpu:0-3``: an array on several devices has one row on each."""
    if len(devices) == 1:
        return f"device={devices[0].platform}:{devices[0].id}"
    runs: list[list[Any]] = []
    for d in devices:
        if runs and (runs[-1][0], runs[-1][2] + 1) == (d.platform, d.id):
            runs[-1][2] = d.id
        else:
            runs.append([d.platform, d.id, d.id])
    names = [f"{platform}:{first}" + (f"-{last}" if last > first else "") for platform, first, last in runs]
    return f"sharding=axis 0 over {', '.join(names)}"


def is_remote(x: Any) -> bool:
    """Whether the elements of an array have to be copied to be looked at."""
    return type(x) is ArrayImpl and x._host is None and len(found := devices_of(x)) == 1 and found[0].platform != "cpu"


def pick(x: Any, index: Any) -> np.ndarray:
    """``x[index]`` on the host, of a concrete array or ndarray; nothing else is fetched from an accelerator."""
    if not is_remote(x):
        return np.asarray(x)[index]
    with staging(None):  # within a transformation, too, this is to be computed now
        return np.asarray(x[index])


def _printed(x: Any) -> tuple[np.ndarray, bool]:
    """The elements to print, and whether they are the ends of a longer array's axes."""
    options = get_printoptions()
    if x.size <= options["threshold"] or not is_remote(x):
        return np.asarray(x), False
    edge = options["edgeitems"]
    ends = [np.r_[: edge + 1, d - edge : d] if d > 2 * edge else np.arange(d) for d in x.shape]
    return pick(x, np.ix_(*ends)), True


# ---- Text --------------------------------------------------------------------------------------------------


def _is_deleted(x: Any) -> bool:
    return type(x) is ArrayImpl and x.is_deleted()


def elements(x: Any, separator: str = " ", prefix: str = "", suffix: str = "", dims: Sequence[int] = ()) -> str:
    """The elements of a concrete array as NumPy prints them; `dims`: axes that are to be the leading ones."""
    if _is_deleted(x):
        return "<deleted>"
    value, is_cut = _printed(x)
    value = np.moveaxis(value, dims, range(len(dims)))
    if not value.ndim and separator == " ":
        return str(value[()])
    threshold = 0 if is_cut else None
    return np.array2string(value, separator=separator, prefix=prefix, suffix=suffix, threshold=threshold)


def _repr(x: ArrayImpl) -> str:
    text, deleted = f"Array({elements(x, ', ', 'Array(', ')')},", _is_deleted(x)
    extras = [f"dtype={x.dtype}"]
    options = get_printoptions()
    if deleted or (not x.size and x.shape != (0,)) or x.size > options["threshold"]:
        extras.insert(0, f"shape={x.shape}")
    if x._weak:
        extras.append("weak_type=True")
    if not deleted and (devices := devices_of(x)):
        extras.append(describe_devices(devices))
    rest = ", ".join(extras) + ")"
    fits = len(text) - (text.rfind("\n") + 1) + len(rest) + 1 <= options["linewidth"]
    return f"{text}{' ' if fits else chr(10) + ' ' * len('Array(')}{rest}"


def _str(x: ArrayImpl) -> str:
    return elements(x)


def _format(x: Array, spec: str) -> str:
    if not spec:
        return str(x)
    if x.ndim:
        raise TypeError(
            f"format: the specification {spec!r} is for numbers, not for an array of shape {x.shape}; "
            "with numpy.printoptions(precision=...) all elements are printed alike"
        )
    return format(x.item(), spec)


def traced(x: Tracer, type_: str) -> str:
    """The text of a tracer that has a certain type."""
    dims: list[int] = []  # the mapped axes, outermost last
    value: Any = x
    while isinstance(value, Tracer):
        if type(value) is BatchTracer:
            dims.append(value.dim)
        value = value.under
    where = x.transformations()
    head = f"Traced<{type_}{' in ' if where else ''}{where}"
    if x._trace is not None and not x._trace.alive:
        return f"{head}, ended>"
    if value is None:
        return f"{head}>"
    head += ", values=" if dims else ", value="
    return f"{head}{elements(value, prefix=head, suffix='>', dims=_in_value(dims))}>"


def _in_value(dims: Sequence[int]) -> list[int]:
    """Mapped axes of nested maps, each counted in the array without those of the outer maps, as axes of the whole."""
    found: list[int] = []
    for dim in reversed(dims):
        rest = [i for i in range(dim + len(found) + 1) if i not in found]
        found.append(rest[dim])
    return found


def _tracer_repr(x: Tracer) -> str:
    return traced(x, str(x.aval))


def _tracer_format(x: Tracer, spec: str) -> str:
    if not spec:
        return str(x)
    value = x.known()
    if value is None:
        hint = "Use f'{x}' to print its type, or return the value from the transformed function."
        raise x._concretization(ConcretizationTypeError, f"format(x, {spec!r})", hint)
    return _format(value, spec)


def _html(x: Array) -> str:
    """What notebooks show; see `xform.visualize`."""
    from xform.numpy import display

    return display.array_html(x)


def visualize(value: Any) -> Any:
    """A pytree of arrays as text, or in a notebook as a tree that opens and closes, with pictures of the arrays.

    For each array it tells type and shape, and the elements if they are few, or else their minimum, mean, maximum and
    standard deviation, and how many are zero, NaN or infinite. Of an array of more than a million elements a sample is
    looked at. Tracers and other leaves print as they do elsewhere.

    Parameters
    ----------
    value : pytree, or a single array

    Returns
    -------
    An object that prints as that text, and is shown by Jupyter as HTML (``_repr_html_``).

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> xform.visualize({"weights": [xnp.eye(4), xnp.ones(2)], "steps": 7, "rate": xnp.float32(0.5)})
    dict
        ['rate']: f32[] 0.5
        ['steps']: 7
        ['weights']: list
            [0]: f64[4,4] min 0, mean 0.25, max 1, std 0.433, zeros 12
            [1]: f64[2] [1. 1.]
    """
    from xform.numpy import display

    return display.View(value)


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """How an array shows itself."""
    with printoptions(**_options(max_line_width, precision, suppress_small)):
        return repr(arr if isinstance(arr, Array) else own(arr))


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The elements of an array as text.

    Examples
    --------
    >>> import xform.numpy as xnp
    >>> xnp.array_str(xnp.array([1.23456, 2.0]), precision=2)
    '[1.23 2.  ]'
    """
    with printoptions(**_options(max_line_width, precision, suppress_small)):
        return str(a if isinstance(a, Array) else own(a))


def _options(width: Any, precision: Any, suppress: Any) -> dict[str, Any]:
    given = {"linewidth": width, "precision": precision, "suppress": suppress}
    return {k: v for k, v in given.items() if v is not None}


def install() -> None:
    """Attach the methods to `Array` and its kinds."""
    Array._repr_html_ = _html  # type: ignore[attr-defined]
    for cls, methods in (
        (ArrayImpl, {"__repr__": _repr, "__str__": _str, "__format__": _format}),
        (Tracer, {"__repr__": _tracer_repr, "__format__": _tracer_format}),
    ):
        for name, method in methods.items():
            setattr(cls, name, method)


install()
