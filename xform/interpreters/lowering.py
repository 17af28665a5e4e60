"""Lowering: from a jaxpr to the text of a StableHLO module.

A lowering rule is ``lower(ctx, *operands, **params) -> Value or list of Values``. It writes operations with `ctx.op`;
`ctx.out` is the aval of the (first) result, `ctx.outs` of all. A rule that is easier said in terms of other primitives
is ``lower_as(function)``. Specification: https://openxla.org/stablehlo/spec

May import: `xform.core`, `interpreters.staging`, `interpreters.fusion`.
"""

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes, source
from xform.core.array import host_value
from xform.core.avals import ShapedArray
from xform.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal
from xform.interpreters import fusion
from xform.interpreters.staging import trace_to_closed

_ELEMENT_TYPES = {
    "bool": "i1",
    **{f"int{n}": f"i{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"uint{n}": f"ui{n}" for n in (2, 4, 8, 16, 32, 64)},
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
}

# An elementary function is worth being written as arithmetic from so many elements on, if so many results of it are
# computed; this times the square of the number of such functions in the program.
SMALLEST_FORMULA, USES_OF_FORMULA = 256, 1024

# A loop over at most so many elements is unrolled, so that the one around it becomes the vectorised one.
SHORT_AXIS = 4

# A loop over fewer elements is not worth its compilation, 15 to 45 ms.
SMALLEST_LOOP = 1024

# Bytes above which memory comes from the operating system at each run, and is worth keeping; and of how much at most.
SMALLEST_WORKSPACE = 2**24
ALL_WORKSPACES = 2**30

# Constants of more elements than this are hidden arguments of the program, not text.
LARGE_CONSTANT = 16

# Operations that XLA's fusion repeats for each user; operations whose result is their operand's elements.
_CHEAP = frozenset(
    f"stablehlo.{name}" for name in ("add", "subtract", "multiply", "negate", "abs", "select", "convert")
)
_VIEWS = frozenset(f"stablehlo.{name}" for name in ("reshape", "broadcast_in_dim", "transpose", "slice"))

_types: dict[ShapedArray, str] = {}


def tensor_type(aval: ShapedArray) -> str:
    """E.g. ``tensor<2x3xf64>``."""
    text = _types.get(aval)
    if text is None:
        text = _types[aval] = f"tensor<{''.join(f'{d}x' for d in aval.shape)}{element_type(aval.dtype)}>"
    return text


def element_type(dtype: Any) -> str:
    """MLIR's name of a dtype."""
    try:
        return _ELEMENT_TYPES[np.dtype(dtype).name]
    except KeyError:
        raise TypeError(f"arrays of dtype {dtype} can't be compiled by XLA") from None


class Value:
    """The result of an operation in the text: its name and type."""

    __slots__ = ("array", "aval", "is_cheap", "is_root", "name", "negative_of", "scalar")

    def __init__(self, name: str, aval: ShapedArray, is_cheap: bool = False):
        self.name, self.aval = name, aval
        self.scalar: Value | None = None  # of which this is a broadcast
        self.array: np.ndarray | None = None  # which this is, a constant
        self.negative_of: Value | None = None
        self.is_cheap = is_cheap  # so that XLA computes it anew in each loop, and for each element, that uses it
        self.is_root = False  # a square root

    @property
    def type(self) -> str:
        """Its type as text."""
        return tensor_type(self.aval)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """Its dtype."""
        return self.aval.dtype


class Module:
    """A module under construction: its functions, and what holds for all of them."""

    def __init__(self, platform: str, axis_sizes: dict[Any, int] | None = None, debug_info: bool = False):
        self.platform = platform
        self.axis_sizes = axis_sizes or {}  # named axes over devices, outermost first
        self.debug_info = debug_info
        self.repetitions = 1  # of the loop that is being lowered
        self.functions: list[str] = []
        self.by_jaxpr: dict[int, str] = {}
        self.by_body: dict[str, str] = {}
        self.keep: list[Any] = []
        self.names: set[str] = {"main"}
        self.workspaces: dict[Value, Value] | None = None  # memory lent, and what it became; None: there is none
        self.formulas: int | None = None  # elementary functions written as arithmetic so far; None: there must be none

    def takes_formula(self, size: int) -> bool:
        """Whether an elementary function of so many elements shall be written as arithmetic (`lax.vector_math`).

        That takes 20 to 60 ms to compile and saves some 5 ns an element. So the arrays must be large, or in a loop, and
        larger in a program with many such functions.
        """
        if self.formulas is None or size < SMALLEST_FORMULA:
            return False
        if size * self.repetitions < USES_OF_FORMULA * (1 + self.formulas) ** 2:
            return False
        self.formulas += 1
        return True

    @contextlib.contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        """Lower the body of a loop."""
        outer, self.repetitions = self.repetitions, self.repetitions * times
        try:
            yield
        finally:
            self.repetitions = outer

    def function(self, closed: ClosedJaxpr) -> str:
        """The name of the function for a nested jaxpr; equal ones share one."""
        name = self.by_jaxpr.get(id(closed))
        if name is None:
            jaxpr, consts = closed.jaxpr, closed.consts
            name = self.define(jaxpr.name, closed.in_avals, lambda ctx, *args: ctx.jaxpr(jaxpr, consts, args))
            self.by_jaxpr[id(closed)] = name
            self.keep.append(closed)
        return name

    def define(self, name: str, avals: Sequence[ShapedArray], write: Callable[..., Sequence[Value]]) -> str:
        """The name of a function whose body ``write(ctx, *args)`` writes; equal ones share one."""
        ctx = Context(self)
        args = [ctx.value(aval) for aval in avals]
        outs = write(ctx, *args)
        signature = f"({', '.join(f'{a.name}: {a.type}' for a in args)}) -> ({', '.join(o.type for o in outs)}) {{\n"
        body = signature + "\n".join(ctx.lines) + f"\n  {return_text('func.return', outs)}\n}}"
        found = self.by_body.get(body)
        if found is None:
            found = self.by_body[body] = self.unique(name)
            self.functions.append(f"func.func private @{found}{body}")
        return found

    def unique(self, name: str) -> str:
        """A function name that is not taken."""
        base = re.sub(r"\W", "_", name) or "f"
        name, n = base, 0
        while name in self.names:
            n += 1
            name = f"{base}_{n}"
        self.names.add(name)
        return name


def return_text(op: str, values: Sequence[Value]) -> str:
    """The terminator of a function or region."""
    if not values:
        return op if op == "func.return" else f'"{op}"() : () -> ()'
    names, types = ", ".join(v.name for v in values), ", ".join(v.type for v in values)
    return f"{op} {names} : {types}" if op == "func.return" else f'"{op}"({names}) : ({types}) -> ()'


class Context:
    """Writes the body of one function."""

    def __init__(self, module: Module):
        self.module = module
        self.platform = module.platform
        self.lines: list[str] = []
        self.constants: dict[Any, Value] = {}
        self.outs: list[ShapedArray] = []
        self._shared: dict[Any, Value] = {}
        self._jaxpr: Any = None  # the Jaxpr that is being lowered
        self._eqn: Any = None  # the Eqn of it
        # The program's results, as ids of variables; None in a function or loop, which may run more than once.
        self._returned: set[int] | None = None
        self._count = 0
        self._location = ""

    @property
    def out(self) -> ShapedArray:
        """The aval of the first result of the equation being lowered."""
        return self.outs[0]

    def value(self, aval: ShapedArray) -> Value:
        """A fresh name."""
        self._count += 1
        return Value(f"%{self._count}", aval)

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        out: ShapedArray | Sequence[ShapedArray],
        attributes: str = "",
        regions: Sequence[str] = (),
    ) -> Any:
        """Write ``"name"(operands) {attributes} : types``; returns a Value, or a list if `out` is a sequence.

        Attributes are MLIR text such as ``dimension = 0 : i64``; names without a dialect get ``stablehlo.``.
        """
        if "." not in name:
            name = "stablehlo." + name
        single = isinstance(out, ShapedArray)
        outs: Sequence[ShapedArray] = (out,) if single else out  # type: ignore[assignment]
        results = [self.value(aval) for aval in outs]
        if name in _CHEAP or (name in _VIEWS and operands[0].is_cheap):
            results[0].is_cheap = True
            if name == "stablehlo.negate":
                results[0].negative_of = operands[0]
        elif name == "stablehlo.sqrt":
            results[0].is_root = True
        left = ", ".join([r.name for r in results]) + " = " if results else ""
        region = f" ({', '.join(regions)})" if regions else ""
        attrs = f" {{{attributes}}}" if attributes else ""
        types_in = ", ".join([v.type for v in operands])
        types_out = results[0].type if single else f"({', '.join([r.type for r in results])})"
        args = ", ".join([v.name for v in operands])
        self.lines.append(f'  {left}"{name}"({args}){region}{attrs} : ({types_in}) -> {types_out}{self._location}')
        return results[0] if single else results

    def constant(self, value: Any, dtype: Any = None) -> Value:
        """A constant (array or scalar), written once per function."""
        array = np.asarray(value, dtype=dtype)
        key = (array.tobytes(), array.dtype, array.shape)
        found = self.constants.get(key)
        if found is None:
            aval = ShapedArray(array.shape, array.dtype)
            found = self.op("constant", [], aval, f"value = {dense(array)}")
            found.array = array
            self.constants[key] = found
        return found

    def scalar_of(self, x: Value) -> Any:
        """The number that all elements of a constant are; None if it is none."""
        array = (x.scalar or x).array
        return array[()] if array is not None and not array.ndim else None

    def broadcast(self, x: Value, shape: Sequence[int], dimensions: Sequence[int] = ()) -> Value:
        """`broadcast_in_dim`; by default of a scalar."""
        if x.shape == tuple(shape):
            return x
        attributes = f"broadcast_dimensions = {i64s(dimensions)}"
        out = self.op("broadcast_in_dim", [x], x.aval.update(shape=shape), attributes)
        if not x.shape:
            out.scalar = x
        return out

    def shared(self, key: Any, write: Callable[[], Value]) -> Value:
        """What ``write()`` writes, once per function or region."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = write()
        return found

    def full(self, shape: Sequence[int], value: Any, dtype: Any) -> Value:
        """A constant array of one value."""
        return self.broadcast(self.constant(value, dtype), shape)

    def convert(self, x: Value, dtype: Any) -> Value:
        """`x` converted to `dtype`."""
        return x if x.dtype == dtype else self.op("convert", [x], x.aval.update(dtype=dtype))

    def takes_loops(self, x: ShapedArray) -> bool:
        """Whether what is computed for each float of `x` shall be written for XLA's loops on CPU."""
        large = x.size * self.module.repetitions >= SMALLEST_LOOP
        return self.platform == "cpu" and large and x.dtype in (np.float64, np.float32)

    def opaque_one(self, x: Value) -> Value:
        """1.0 for each float of `x`, as the bits that are left after the shift allow nothing else.

        LLVM sees that, XLA does not.
        """
        bits = x.aval.update(dtype=np.dtype(f"u{x.dtype.itemsize}"))
        numbers = 8 * x.dtype.itemsize - 1, 2, np.asarray(1.0, x.dtype).view(bits.dtype)
        shift, two, one = (self.full(x.shape, n, bits.dtype) for n in numbers)
        out = self.op("shift_right_logical", [self.op("bitcast_convert", [x], bits), shift], bits)
        out = self.op("or", [self.op("and", [out, two], bits), one], bits)
        return self.op("bitcast_convert", [out], x.aval)

    def once(self, x: Value) -> Value:
        """The same floats, computed once: XLA takes a division for too expensive to be done again by each user."""
        return self.op("divide", [x, self.opaque_one(x)], x.aval)

    def apart(self, x: Value) -> Value:
        """The same floats, in a loop of their own: XLA doesn't fuse an expensive operation with what uses it twice."""
        x = self.once(x)
        return self.op("multiply", [x, self.opaque_one(x)], x.aval)

    def quotient(self, x: Value, y: Value, out: ShapedArray) -> Value:
        """``x / y``: where `y` is a square root, XLA would take the reciprocal root, and knows no vectors for that."""
        if y.is_root and self.takes_loops(y.aval):
            y = self.op("multiply", [y, self.opaque_one(y)], y.aval)
        return self.op("divide", [x, y], out)

    def siblings(self) -> list[Eqn]:
        """The equations that do the same with the same operand as the one being lowered, up to their parameters."""
        eqn, eqns = self._eqn, self._jaxpr.eqns
        return [e for e in eqns if e.primitive is eqn.primitive and e.invars[0] is eqn.invars[0]]

    def workspace(self, k: int) -> Value | None:
        """Memory of any content for the result `k` of the equation being lowered, which must write all of it.

        None if the result is small, too large to be kept, or returned, or if the operation may run more than once.
        """
        aval, lent = self.outs[k], self.module.workspaces
        if lent is None or self._returned is None or id(self._eqn.outvars[k]) in self._returned or not _is_large(aval):
            return None
        if _bytes(aval) + sum(_bytes(each.aval) for each in lent) > ALL_WORKSPACES:
            return None
        workspace = self.value(aval)
        lent[workspace] = workspace
        return workspace

    def give_back(self, workspace: Value, filled: Value) -> None:
        """Let the next run have a workspace, which this one has made into `filled`."""
        self.module.workspaces[workspace] = filled  # type: ignore[index]

    def region(self, body: Callable[..., Sequence[Value]], avals: Sequence[ShapedArray]) -> str:
        """A region ``({^bb0(args): ...})`` whose results are ``body(ctx, *args)``."""
        outer = self.lines, self.constants, self._shared, self._returned
        self.lines, self.constants, self._shared, self._returned = [], dict(self.constants), dict(self._shared), None
        try:
            args = [self.value(aval) for aval in avals]
            outs = body(self, *args)
            head = f"^bb0({', '.join(f'{a.name}: {a.type}' for a in args)}):\n" if args else "\n"
            inner = "\n".join(["  " + line for line in self.lines] + ["    " + return_text("stablehlo.return", outs)])
        finally:
            self.lines, self.constants, self._shared, self._returned = outer
        return f"{{{head}{inner}\n  }}"

    def jaxpr(self, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Value]) -> list[Value]:
        """Write the equations of a jaxpr in place."""
        env: dict[int, Value] = {}
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            env[id(var)] = const if isinstance(const, Value) else self.constant(host_value(const))
        for var, value in zip(jaxpr.invars, args, strict=True):
            env[id(var)] = value
        outer = self.outs, self._jaxpr, self._eqn, self._location
        self._jaxpr = jaxpr
        for eqn in jaxpr.eqns:
            operands = [self.constant(v.val, v.aval.dtype) if type(v) is Literal else env[id(v)] for v in eqn.invars]
            self.outs, self._eqn = [v.aval for v in eqn.outvars], eqn
            if self.module.debug_info and eqn.source is not None:
                code = eqn.source[0]
                self._location = f' loc("{code.co_filename}":{source.line_of(eqn.source)}:0)'
            result = eqn.primitive.lower(self, *operands, **eqn.params)
            if eqn.primitive.multiple_results:
                for var, value in zip(eqn.outvars, result, strict=True):
                    env[id(var)] = value
            else:
                env[id(eqn.outvars[0])] = result
        self.outs, self._jaxpr, self._eqn, self._location = outer
        return [self.constant(v.val, v.aval.dtype) if type(v) is Literal else env[id(v)] for v in jaxpr.outvars]

    def call(self, closed: ClosedJaxpr, args: Sequence[Value]) -> list[Value]:
        """Call a nested jaxpr as a function; or write it in place, if it has use for workspaces."""
        if self.module.workspaces is not None and self._returned is not None and _makes_large_arrays(closed.jaxpr):
            returned, pairs = self._returned, zip(closed.jaxpr.outvars, self._eqn.outvars, strict=True)
            self._returned = {id(inner) for inner, outer in pairs if id(outer) in returned}
            try:
                return self.jaxpr(closed.jaxpr, closed.consts, args)
            finally:
                self._returned = returned
        name = self.module.function(closed)
        return self.op("func.call", args, closed.out_avals, f"callee = @{name}")


def _bytes(aval: ShapedArray) -> int:
    return aval.size * aval.dtype.itemsize


def _is_large(aval: ShapedArray) -> bool:
    return _bytes(aval) >= SMALLEST_WORKSPACE


def _makes_large_arrays(jaxpr: Jaxpr) -> bool:
    return any(
        any(_is_large(v.aval) for v in eqn.outvars)
        or (eqn.primitive.name == "jit" and _makes_large_arrays(eqn.params["jaxpr"].jaxpr))
        for eqn in jaxpr.eqns
    )


def i64s(values: Sequence[int]) -> str:
    """``array<i64: 0, 1>``."""
    return f"array<i64: {', '.join(map(str, values))}>" if len(values) else "array<i64>"


def dense(array: np.ndarray) -> str:
    """A constant's value as an MLIR attribute, exactly."""
    kind = tensor_type(ShapedArray(array.shape, array.dtype))
    if not array.size:
        return f"dense<> : {kind}"

    def nested(a: Any) -> str:
        return f"[{', '.join(map(nested, a))}]" if a.ndim else scalar_text(a)

    return f"dense<{nested(array)}> : {kind}"


def scalar_text(x: Any) -> str:
    """A number as MLIR text, exactly."""
    if x.dtype.kind == "b":
        return "true" if x else "false"
    if x.dtype.kind == "c":
        return f"({scalar_text(x.real)}, {scalar_text(x.imag)})"
    if dtypes.issubdtype(x.dtype, np.integer):
        return str(int(x))
    number = float(x)
    if not math.isfinite(number):  # as bits
        return f"0x{x.tobytes()[::-1].hex().upper()}"
    text = repr(number)
    mantissa, e, exponent = text.partition("e")
    return text if "." in mantissa else f"{mantissa}.0{e}{exponent}"


def lower_as(function: Callable[..., Any]) -> Callable[..., Any]:
    """A lowering rule that writes what ``function(*operands, **params)`` does in terms of other primitives."""

    def lower(ctx: Context, *operands: Value, **params: Any) -> Any:
        key = (function, tuple(v.aval for v in operands), tuple(sorted(params.items(), key=lambda kv: kv[0])))
        single = True

        def program(*args: Any) -> list[Any]:
            nonlocal single
            out = function(*args, **params)
            single = not isinstance(out, tuple | list)
            return [out] if single else list(out)

        try:
            found = _composites.get(key)
        except TypeError:  # unhashable parameters
            found, key = None, None  # type: ignore[assignment]
        if found is None:
            found = (*trace_to_closed(program, [v.aval for v in operands], function.__name__), single)
            if key is not None and not found[1]:
                _composites[key] = found
        closed, consts, single = found
        outs = ctx.jaxpr(closed.jaxpr, [], [*(ctx.constant(host_value(c)) for c in consts), *operands])
        return outs[0] if single else outs

    return lower


_composites: dict[Any, Any] = {}


def lower_module(
    closed: ClosedJaxpr,
    name: str,
    platform: str,
    *,
    donated: Sequence[bool] = (),
    axis_sizes: dict[Any, int] | None = None,
    debug_info: bool = False,
    work: list[ShapedArray] | None = None,
) -> tuple[str, list[Any]]:
    """The module that computes a jaxpr, and the values of its hidden leading arguments (large constants).

    With a list `work`, the program may have workspaces as its first arguments, which it gives back as its first
    results: the list takes their types.
    """
    module = Module(platform, axis_sizes, debug_info)
    if platform == "cpu" and fusion.is_on(closed.jaxpr):
        module.formulas = 0
    ctx = Context(module)
    if work is not None and platform == "cpu":
        module.workspaces, ctx._returned = {}, {id(v) for v in closed.jaxpr.outvars}
    hidden, args, consts = [], [], []
    for const in closed.consts:
        value = host_value(const)
        if value.size > LARGE_CONSTANT:
            hidden.append(const)
            consts.append(ctx.value(ShapedArray(value.shape, value.dtype)))
            args.append(f"{consts[-1].name}: {consts[-1].type}")
        else:
            consts.append(const)
    inputs = [ctx.value(aval) for aval in closed.in_avals]
    outs = ctx.jaxpr(closed.jaxpr, consts, inputs)
    lent = module.workspaces or {}
    if work is not None:
        work += [value.aval for value in lent]
    aliases = {i: len(lent) + k for i, k in _aliases(closed, donated).items()}
    args = [
        *[_argument(value, i) for i, value in enumerate(lent)],
        *args,
        *[_argument(value, aliases.get(i)) for i, value in enumerate(inputs)],
    ]
    outs = [*lent.values(), *outs]
    body = "\n".join(ctx.lines)
    main = (
        f"func.func public @main({', '.join(args)}) -> ({', '.join(o.type for o in outs)}) {{\n{body}\n"
        f"  {return_text('func.return', outs)}\n}}"
    )
    wide = fusion.WIDE_VECTORS if module.formulas else ""
    name = "jit_" + (re.sub(r"\W", "_", name) or "f")
    replicas = math.prod(module.axis_sizes.values())
    head = f"module @{name} attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = {replicas} : i32}} {{\n"
    return wide + head + "\n".join([main, *module.functions]) + "\n}\n", hidden


def _argument(value: Value, result: int | None) -> str:
    """A program's argument as text, with the result that takes over its memory."""
    return f"{value.name}: {value.type}" + ("" if result is None else f" {{tf.aliasing_output = {result} : i32}}")


def _aliases(closed: ClosedJaxpr, donated: Sequence[bool]) -> dict[int, int]:
    """For donated inputs, the result which takes over the memory."""
    free = list(enumerate(closed.out_avals))
    out = {}
    for i, (aval, d) in enumerate(zip(closed.in_avals, donated, strict=False)):
        match = next(
            (k for k, (_, o) in enumerate(free) if d and o.shape == aval.shape and o.dtype == aval.dtype),
            None,
        )
        if match is not None:
            out[i] = free.pop(match)[0]
    return out
