"""Families of primitives: the rules that all members share, so that a new member is a few lines.

`elementwise` derives types, batching, lowering, jvp and transposition from one declaration. Elementwise operations take
operands of one shape, or of rank 0, which are broadcast; their dtypes must agree (promotion is `xform.numpy`'s job).

Host and XLA agree within a few ulps, with one exception: XLA on CPU takes subnormal numbers for zero, NumPy does not.

May import: `xform.core`, `xform.interpreters`, `lax.accuracy`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xform.core import dtypes
from xform.core.array import Array, ArrayImpl, get_aval
from xform.core.avals import ShapedArray
from xform.core.trace import Primitive
from xform.interpreters import batching, dependencies
from xform.interpreters.lowering import Context, Value
from xform.interpreters.tangents import Zero, add_tangents, is_linear, zero_of
from xform.lax.accuracy import check_accuracy

# Kinds of dtypes that an operation accepts.
KINDS: dict[str, Callable[[np.dtype], bool]] = {
    "any": lambda d: True,
    "number": lambda d: d.kind != "b",
    "inexact": lambda d: dtypes.issubdtype(d, np.inexact),
    "float": lambda d: dtypes.issubdtype(d, np.floating),
    "complex": lambda d: dtypes.issubdtype(d, np.complexfloating),
    "real": lambda d: not dtypes.issubdtype(d, np.complexfloating),
    "real number": lambda d: d.kind != "b" and not dtypes.issubdtype(d, np.complexfloating),
    "integer": lambda d: dtypes.issubdtype(d, np.integer),
    "bool or integer": lambda d: d.kind == "b" or dtypes.issubdtype(d, np.integer),
}


def check_kind(name: str, avals: Sequence[ShapedArray], kind: str) -> None:
    """TypeError unless all dtypes are of `kind`."""
    for aval in avals:
        if not KINDS[kind](aval.dtype):
            raise TypeError(f"lax.{name} takes arrays of {kind} dtype, got {_types(avals)}")


def check_same_dtype(name: str, avals: Sequence[ShapedArray]) -> None:
    """TypeError unless all dtypes are equal."""
    if any(a.dtype != avals[0].dtype for a in avals[1:]):
        raise TypeError(
            f"lax.{name} needs operands of one dtype, got {_types(avals)}; convert with astype or "
            "lax.convert_element_type (xform.numpy functions promote by themselves)"
        )


def _types(avals: Sequence[ShapedArray]) -> str:
    return ", ".join(a.str_short() for a in avals)


def broadcast_shape(name: str, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
    """The common shape of operands, of which some may have rank 0."""
    shape: tuple[int, ...] = ()
    for aval in avals:
        if aval.shape and aval.shape != shape:
            if shape:
                raise TypeError(f"lax.{name} needs operands of one shape (or rank 0), got {_types(avals)}")
            shape = aval.shape
    return shape


def elementwise(
    name: str,
    host: Callable[..., Any],
    *,
    accepts: str = "any",
    result: np.dtype | Callable[..., Any] | None = None,
    jvp: Sequence[Callable[..., Any] | None] | Callable[..., Any] | None = None,
    transpose: Callable[..., Any] | None = None,
    jet: Callable[[Primitive], Callable[..., Any]] | None = None,
    lower: str | Callable[..., Any] | None = None,
    lower_complex: str | Callable[..., Any] | None = None,
    check: Callable[..., None] | None = None,
    function: str | None = None,
    widen: bool = False,
    by_bits: bool = False,
) -> Primitive:
    """Define an elementwise primitive.

    Parameters
    ----------
    host : (*ndarrays, **params) -> ndarray
    accepts : key of `KINDS`
    result : dtype, or function of the operands' dtypes and the parameters; None: the operands' dtype
    jvp : one function per operand, ``(g, ans, *operands, **params) -> tangent``; None for an operand without derivative
        A single function for an operation of one operand. Omitted: the derivative is zero everywhere.
    transpose : (ct, *operands, **params) -> list of cotangents, for an operation that is linear in some operands
    jet : (primitive) -> rule, where the Taylor coefficients are not to be derived from `jvp` (see `interpreters.jet`)
    lower : name of the StableHLO operation, or a lowering rule that gets operands of full shape
    lower_complex : the same for complex operands, if different
    check : (*avals, **params) -> None, replaces the check that all dtypes are equal and of kind `accepts`
    function : the public function's name for error messages, if not that of the primitive
    widen : compute floats of 16 bits and fewer in float32 (as ufuncs do), for rules that take several steps
    by_bits : the operation depends on the representation; else XLA computes floats of 8 bits in float32, rounding once
    """
    p = Primitive(name)
    function = function or name
    cache: dict[Any, ShapedArray] = {}

    def types(*avals: ShapedArray, **params: Any) -> ShapedArray:
        key = avals if not params else (avals, *params.values())
        out = cache.get(key)
        if out is None:
            if check is not None:
                check(*avals, **params)
            else:
                check_kind(function, avals, accepts)
                check_same_dtype(function, avals)
            dtype: Any = avals[-1].dtype if result is None else result
            if callable(result) and not isinstance(result, np.dtype | type):
                dtype = result(*(a.dtype for a in avals), **params)
            weak = all(a.weak_type for a in avals) and np.dtype(dtype) != bool
            out = cache[key] = ShapedArray(broadcast_shape(function, avals), np.dtype(dtype), weak)
        return out

    p.abstract_eval = types
    p.host = host_in_float32(host) if widen and not isinstance(host, np.ufunc) else host
    p.is_cheap_on_host = isinstance(plain_host(p), np.ufunc)
    p.depends = dependencies.nothing if jvp is None else dependencies.elementwise
    p.batch = lambda axis, args, dims, **params: elementwise_batch(p, args, dims, params)
    if lower is not None:
        bits = 0 if by_bits else 16 if widen else 8
        p.lower = lower_elementwise(lower_in_float32(lower, bits) if bits else lower, lower_complex)
    if callable(jvp):
        jvp = (jvp,)
    if jvp is None:
        p.jvp = _zero_jvp(p)
    elif len(jvp) == 1:
        p.jvp = _unary_jvp(p, jvp[0])
    else:
        p.jvp = _jvp(p, jvp)
    if transpose is not None:
        p.transpose = transpose
    if jet is not None:
        p.jet = jet(p)
    return p


def _zero_jvp(p: Primitive) -> Callable[..., Any]:
    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = p.bind(*primals, **params)
        return out, zero_of(out)

    return rule


def _unary_jvp(p: Primitive, partial: Any) -> Callable[..., Any]:
    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        (x,), (g,) = primals, tangents
        out = p.bind(x, **params)
        return out, zero_of(out) if type(g) is Zero else partial(g, out, x, **params)

    return rule


def _jvp(p: Primitive, partials: Sequence[Any]) -> Callable[..., Any]:
    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = p.bind(*primals, **params)
        total = None
        for g, partial in zip(tangents, partials, strict=True):
            if type(g) is not Zero and partial is not None:
                term = partial(g, out, *primals, **params)
                if term.aval.shape != out.shape:
                    term = Hooks.broadcast_in_dim(term, out.shape, ())
                total = term if total is None else add_tangents(total, term)
        return out, zero_of(out) if total is None else total

    return rule


class Hooks:
    """What families need of primitives that are themselves defined with families."""

    broadcast_in_dim: Callable[..., Any]
    reshape: Callable[..., Any]
    reduce_sum: Callable[..., Any]


def unbroadcast(ct: Any, operand: Any) -> Any:
    """The cotangent of an operand that may have been broadcast from rank 0."""
    if ct.ndim and not operand.aval.shape:
        return Hooks.reduce_sum(ct, tuple(range(ct.ndim)))
    return ct


def linear_in_all(transpose: Callable[..., Sequence[Any]]) -> Callable[..., Any]:
    """A transpose rule from ``(ct) -> one cotangent per operand``, for operations linear in all operands jointly."""

    def rule(ct: Any, *args: Any, **params: Any) -> list[Any]:
        return [
            unbroadcast(c, a) if is_linear(a) and c is not None else None
            for c, a in zip(transpose(ct, **params), args, strict=True)
        ]

    return rule


def elementwise_batch(p: Primitive, args: Sequence[Any], dims: Sequence[int | None], params: dict[str, Any]) -> Any:
    """Batch rule of operations that work element by element."""
    avals = [get_aval(a) for a in args]
    # Fast and common: one layout throughout, or unbatched operands of rank 0.
    full = next((a.shape, d) for a, d in zip(avals, dims, strict=True) if d is not None)
    if all((a.shape, d) == full or (d is None and not a.shape) for a, d in zip(avals, dims, strict=True)):
        return p.bind(*args, **params), full[1]
    ndim = max(a.ndim - (d is not None) for a, d in zip(avals, dims, strict=True))
    size = next(a.shape[d] for a, d in zip(avals, dims, strict=True) if d is not None)
    shape = next(
        (a.shape if d is None else a.shape[:d] + a.shape[d + 1 :])
        for a, d in zip(avals, dims, strict=True)
        if a.ndim - (d is not None) == ndim
    )
    out = []
    for x, aval, d in zip(args, avals, dims, strict=True):
        if d is None:
            if aval.ndim:
                x = Hooks.broadcast_in_dim(x, (size, *shape), tuple(range(1, ndim + 1)))
        else:
            x = batching.move_to(x, d, size)
            if aval.ndim == 1 and ndim:  # rank 0 but for the mapped axis
                x = Hooks.broadcast_in_dim(x, (size, *shape), (0,))
        out.append(x)
    return p.bind(*out, **params), 0


def lower_elementwise(
    rule: str | Callable[..., Any], complex_rule: str | Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A lowering rule that broadcasts operands of rank 0 to the shape of the result."""

    def lower(ctx: Context, *operands: Value, **params: Any) -> Value:
        out = ctx.out
        full = [v if v.aval.shape == out.shape else ctx.broadcast(v, out.shape) for v in operands]
        chosen = complex_rule if complex_rule is not None and is_complex(full[0]) else rule
        if isinstance(chosen, str):
            return ctx.op(chosen, full, out)
        return chosen(ctx, *full, **params)

    return lower


def compare(ctx: Context, x: Value, y: Value, direction: str) -> Value:
    """Write a comparison: EQ, NE, GE, GT, LE or LT."""
    out = ShapedArray(x.shape, np.dtype(bool))
    return ctx.op("compare", [x, y], out, f"comparison_direction = #stablehlo<comparison_direction {direction}>")


def is_complex(x: Any) -> bool:
    """Whether an array, tracer or aval is complex."""
    return x.dtype.kind == "c"


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the modulus: that of the parts of a complex number, else the dtype itself."""
    return np.finfo(dtype).dtype if dtype.kind == "c" else dtype


def constant(like: Any, value: Any) -> Any:
    """A scalar of the dtype of `like`."""
    return like.dtype.type(value)


def lower_symmetric(operation: str, part: str = "imag") -> Callable[..., Value]:
    """Lowering of a function with f(conj z) = conj f(z) whose branch cuts are on the real axis.

    On a cut the sign of a zero tells the two sides apart, which XLA does not heed. So the operation is applied to the
    upper half plane. With ``part="real"`` it is the right half plane, for cuts on the imaginary axis and
    f(-conj z) = -conj f(z).
    """

    def lower(ctx: Context, z: Value) -> Value:
        aval = z.aval.update(dtype=real_dtype(z.dtype))
        zero, one = ctx.full(z.shape, 0, aval.dtype), ctx.full(z.shape, 1, aval.dtype)
        parts = {name: ctx.op(name, [z], aval) for name in ("real", "imag")}
        # 1 / x is negative for -0.0, too, but not for -inf.
        negative = [compare(ctx, x, zero, "LT") for x in (parts[part], ctx.op("divide", [one, parts[part]], aval))]
        parts[part] = ctx.op("abs", [parts[part]], aval)
        w = ctx.op(operation, [ctx.op("complex", list(parts.values()), z.aval)], ctx.out)
        out = {name: ctx.op(name, [w], aval) for name in ("real", "imag")}
        negated = ctx.op("negate", [out[part]], aval)
        out[part] = ctx.op("select", [ctx.op("or", negative, negative[0].aval), negated, out[part]], aval)
        return ctx.op("complex", list(out.values()), ctx.out)

    return lower


def is_narrow_float(dtype: np.dtype) -> bool:
    """Whether a dtype is a float of 16 bits or fewer."""
    return dtype.itemsize < 4 and dtypes.issubdtype(dtype, np.floating)


def host_in_float32(host: Callable[..., Any]) -> Callable[..., Any]:
    """A host rule that computes narrow floats in float32."""

    def rule(x: Any, *rest: Any, **params: Any) -> Any:
        dtype = x.dtype
        if dtype.itemsize >= 4 or not is_narrow_float(dtype):
            return host(x, *rest, **params)
        return host(*[a.astype(np.float32) for a in (x, *rest)], **params).astype(dtype)

    return rule


def narrow_integers(host: Callable[..., Any]) -> Callable[..., Any]:
    """A host rule for integers of fewer than 8 bits too, for ufuncs that would return another type for these."""

    def rule(x: Any, *rest: Any) -> Any:
        dtype = x.dtype
        if dtype.kind != "V" or dtypes.kinds[dtype] == "f":
            return host(x, *rest)
        wide = np.int8 if dtypes.kinds[dtype] == "i" else np.uint8
        return host(*[a.astype(wide) for a in (x, *rest)]).astype(dtype)  # cuts off what is too much

    rule.plain = host  # type: ignore[attr-defined]
    return rule


def complex_apart(function: np.ufunc) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a rule for complex numbers: a host rule that is `function` for real ones."""

    def decorate(of_complex: Callable[..., Any]) -> Callable[..., Any]:
        def rule(x: Any) -> Any:
            return of_complex(x) if x.dtype.kind == "c" else function(x)

        rule.plain = function  # type: ignore[attr-defined]
        return rule

    return decorate


def plain_host(p: Primitive) -> Callable[..., Any]:
    """The host rule of a primitive, without what `narrow_integers` or `complex_apart` adds."""
    return getattr(p.host, "plain", p.host)


# Operations of a formula, from which on the loop that computes it must not end with a conversion to bfloat16 as well:
# LLVM (of jaxlib 0.11 and 0.12) would take a time that grows exponentially.
LONG_FORMULA = 100


def lower_in_float32(rule: str | Callable[..., Any], bits: int = 16) -> Callable[..., Any]:
    """A lowering rule that computes floats of so many bits and fewer in float32."""

    def lower(ctx: Context, *operands: Value, **params: Any) -> Value:
        out = ctx.out
        narrow = is_narrow_float(out.dtype) and 8 * out.dtype.itemsize <= bits
        if narrow:
            ctx.outs = [out.update(dtype=np.dtype(np.float32))]
            operands = tuple(ctx.convert(v, np.dtype(np.float32)) for v in operands)
        before = len(ctx.lines)
        result = ctx.op(rule, operands, ctx.out) if isinstance(rule, str) else rule(ctx, *operands, **params)
        if not narrow:
            return result
        if ctx.platform == "cpu" and len(ctx.lines) - before > LONG_FORMULA:
            result = ctx.apart(result)
        return ctx.convert(result, out.dtype)

    return lower


def no_sharding(name: str, **arguments: Any) -> None:
    """NotImplementedError unless the sharding arguments of lax.`name` are None: arrays live on one device."""
    for argument, value in arguments.items():
        if value is not None:
            raise NotImplementedError(f"lax.{name}: only {argument}=None is supported, got {value!r}")


_ARRAYS = (Array, np.ndarray, np.generic)
_SCALARS = (bool, int, float, complex)


def as_operands(name: str, *args: Any) -> Sequence[Any]:
    """Check the arguments of a lax function; Python scalars take the dtype of the arrays beside them."""
    scalars = 0
    for a in args:
        if type(a) is not ArrayImpl and not isinstance(a, _ARRAYS):
            if isinstance(a, _SCALARS):
                scalars += 1
            elif not hasattr(a, "__array__"):
                raise TypeError(f"lax.{name} takes arrays and scalars, got {a!r} of type {type(a).__name__}")
    if not 0 < scalars < len(args):
        return args
    strong = next((a.dtype for a in map(get_aval, args) if not a.weak_type), None)
    if strong is None:
        return args
    try:
        return [
            dtypes.coerce_scalar(a, strong)[()] if isinstance(a, _SCALARS) and not isinstance(a, np.generic) else a
            for a in args
        ]
    except (TypeError, OverflowError) as error:
        raise type(error)(f"lax.{name}: {error}") from None


def apply(p: Primitive, *args: Any, accuracy: Any = None, **params: Any) -> Any:
    """Bind the arguments of a lax function; Python scalars take the dtype of the arrays beside them."""
    operands = as_operands(p.name, *args)
    if accuracy is not None:
        check_accuracy(p.name, get_aval(operands[0]).dtype, accuracy)
    return p.bind(*operands, **params)
