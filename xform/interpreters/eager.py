"""The slow path of eager evaluation: arrays on other devices, an accelerator as default, debugging of NaN.

May import: `xform.core`, `interpreters.execution`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import ArrayImpl, get_aval, host_value
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from xform.core.source import current as current_source
from xform.core.source import describe
from xform.core.trace import Primitive

_programs: dict[Any, ClosedJaxpr] = {}


def evaluate_elsewhere(
    primitive: Primitive, args: Sequence[Any], avals: Sequence[ShapedArray], out: Any, params: dict[str, Any]
) -> Any:
    """Evaluate with XLA if the arguments or the configuration ask for it, else return None."""
    if state.debug_nans or state.debug_infs:
        return _evaluate_checked(primitive, args, out, params)
    if state.eager != "xla" and state.default_device is None and not any(_is_elsewhere(a) for a in args):
        return None
    from xform.interpreters import execution

    if state.eager != "xla" and execution.device_for(args).platform == "cpu":
        return None
    key = (primitive, tuple(avals), tuple(sorted(params.items(), key=lambda item: item[0])))
    closed = _programs.get(key)
    if closed is None:
        invars = [Var(None, a) for a in avals]
        outvars = [Var(None, a) for a in (out if primitive.multiple_results else [out])]
        closed = _programs[key] = ClosedJaxpr(Jaxpr([], invars, outvars, [Eqn(primitive, invars, params, outvars)]))
        closed.jaxpr.name = primitive.name
    results = execution.run(closed, args)
    return results if primitive.multiple_results else results[0]


def _is_elsewhere(x: Any) -> bool:
    return type(x) is ArrayImpl and x._host is None and x._device is not None


def _evaluate_checked(primitive: Primitive, args: Sequence[Any], out: Any, params: dict[str, Any]) -> Any:
    """Evaluate on the host and raise at the first NaN or infinity."""
    operands = [host_value(a) for a in args]
    with np.errstate(all="ignore"):
        result = primitive.host(*operands, **params)
    results = result if primitive.multiple_results else [result]
    for r in results:
        for on, test, what in ((state.debug_nans, _isnan, "NaN"), (state.debug_infs, _isinf, "infinity")):
            if on and test(r):
                made = "" if any(test(x) for x in operands) else ", whose operands have none"
                where = describe(state.source or current_source(2))
                shapes = ", ".join(get_aval(a).str_short() for a in args)
                raise FloatingPointError(f"{what} in the result of '{primitive}' of {shapes}{made}, at {where}")
    avals = out if primitive.multiple_results else [out]
    arrays = [ArrayImpl(r, None, a) for r, a in zip(results, avals, strict=True)]
    return arrays if primitive.multiple_results else arrays[0]


def _isnan(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.inexact) and bool(np.isnan(x).any())


def _isinf(x: Any) -> bool:
    return dtypes.issubdtype(x.dtype, np.inexact) and bool(np.isinf(x).any())
