"""`jit`, and the stages behind it: `Traced`, `Lowered`, `Compiled`.

A call flattens its arguments, looks up (structure, avals, static arguments, configuration), executes, and wraps.
What is found is an `_Entry`: the jaxpr, and its executable.

May import: `api.arguments`, `lax.calls`, `interpreters`.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xform.api.arguments import as_array, check_callable, leaf_name, name_of, static_arguments
from xform.backends import xla
from xform.backends.numpy import quiet_begin, quiet_end
from xform.core import dtypes, tree
from xform.core.array import ArrayImpl, Pending, get_aval
from xform.core.avals import ShapedArray
from xform.core.config import state
from xform.core.errors import api_boundary, filtered_traceback
from xform.core.jaxpr import ClosedJaxpr, eval_jaxpr
from xform.core.trace import Tracer
from xform.interpreters import execution, host
from xform.interpreters.forward import with_consts
from xform.interpreters.lowering import lower_module
from xform.interpreters.staging import trace_to_closed
from xform.lax.calls import jit_p


class _Entry:
    """What `jit` knows about one signature of a function."""

    __slots__ = ("closed", "compiled", "consts", "host", "in_tree", "out_avals", "out_tree")

    def __init__(self, closed: ClosedJaxpr, consts: list[Any], in_tree: Any, out_tree: Any):
        self.closed, self.consts, self.in_tree, self.out_tree = closed, consts, in_tree, out_tree
        self.out_avals = closed.out_avals
        self.compiled: execution.Compiled | None = None  # for the default device
        self.host: Callable[..., tuple] | None = None  # the host program, if it is faster


_LEAF, _ONE_LEAF = tree.structure(0), tree.structure((0,))


class JitFunction:
    """A function compiled by `jit`."""

    def __init__(self, fun: Callable[..., Any], options: dict[str, Any]):
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._name = name_of(fun)
        self._cache: dict[Any, _Entry] = {}
        of = functools.partial(static_arguments, "jit", fun)
        self._static_nums, self._static_names = of(options["static_argnums"], options["static_argnames"])
        self._donate_nums, self._donate_names = of(options["donate_argnums"], options["donate_argnames"])
        self._singles: dict[Any, Any] = {}
        self._single_context: Any = None
        self._backend, self._device = options["backend"], options["device"]
        self._compiler_options = options["compiler_options"]
        self._plain = not (
            self._static_nums or self._static_names or self._donate_nums or self._donate_names or self._backend
            or self._device or self._compiler_options
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<jit of {self._fun!r}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            context = state.run_context
            if self._plain and context is not None and not kwargs:
                # The hot paths: concrete arrays on the default device, a signature seen before.
                if context is self._single_context and len(args) == 1:
                    x = args[0]
                    if type(x) is ArrayImpl and x._device is None:
                        found = self._singles.get(x._aval)
                        if found is not None:
                            program, executable, hidden, aval = found
                            if program is not None:
                                return self._run_host(program, (x,), (aval,))[0]
                            b = x._buffer
                            if b is None or type(b) is Pending:
                                b = x._on_device(None)
                            results = executable.launch([*hidden, b] if hidden else [b])
                            return ArrayImpl(None, Pending(executable, results), aval)
                elif (out := self._run(context, args)) is not None:
                    return out
            return self._call(args, kwargs)
        except Exception as error:
            error.__traceback__ = filtered_traceback(error.__traceback__)
            raise

    def _run(self, context: Any, args: tuple) -> Any:
        """Call an executable for these arguments, or return None if there is none yet."""
        leaves, treedef = tree.flatten(args)
        key = [context, treedef]
        for x in leaves:
            if type(x) is not ArrayImpl or x._device is not None:
                return None
            aval = x._aval
            key.append(x.aval if aval is None else aval)
        entry = self._cache.get(tuple(key))
        if entry is None:
            return None
        if entry.host is not None:
            return entry.out_tree.unflatten(self._run_host(entry.host, leaves, entry.out_avals))
        if (compiled := entry.compiled) is None:
            return None
        buffers = [x._on_device(None) if (b := x._buffer) is None or type(b) is Pending else b for x in leaves]
        outs = compiled.executable.execute(compiled.hidden + buffers)
        return entry.out_tree.unflatten([ArrayImpl(None, b, a) for b, a in zip(outs, entry.out_avals, strict=True)])

    @staticmethod
    def _run_host(
        program: Callable[..., tuple], leaves: Sequence[ArrayImpl], out_avals: Sequence[Any]
    ) -> list[ArrayImpl]:
        values = [x._fetch() if (h := x._host) is None else h for x in leaves]
        token = quiet_begin()
        try:
            outs = program(*values)
        finally:
            quiet_end(token)
        return [ArrayImpl(o, None, a) for o, a in zip(outs, out_avals, strict=True)]

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        if state.disable_jit:
            return self._fun(*args, **kwargs)
        entry, leaves, key = self._lookup(args, kwargs)
        operands = [*entry.consts, *leaves]
        if state.trace is not None or any(isinstance(x, Tracer) for x in operands):
            return entry.out_tree.unflatten(jit_p.bind(*operands, jaxpr=entry.closed, name=self._name))
        if state.debug_nans or state.debug_infs:
            return entry.out_tree.unflatten(eval_jaxpr(entry.closed.jaxpr, entry.closed.consts, *operands))
        bound = _bind_consts(entry)
        if self._backend == "numpy":
            return entry.out_tree.unflatten(host.run(bound, leaves))
        if self._plain and host.prefers_host(bound) and all(x._device is None for x in operands):
            xla.require()
            if key is not None:
                entry.host = host.host_function(bound)
                self._remember_single(args, leaves, entry)
            return entry.out_tree.unflatten(host.run(bound, leaves))
        device = self._target(operands)
        donated = self._donated(args, kwargs)
        compiled = execution.compile_jaxpr(bound, device, donated, self._compiler_options)
        if self._plain and compiled.platform_device is None and key is not None:
            entry.compiled = compiled
            self._remember_single(args, leaves, entry)
        return entry.out_tree.unflatten(compiled(leaves))

    def _remember_single(self, args: tuple, leaves: Sequence[Any], entry: _Entry) -> None:
        """Note a program of one array to one array, for the shortest path."""
        if len(args) == len(leaves) == 1 and entry.in_tree == _ONE_LEAF and entry.out_tree == _LEAF:
            if self._single_context is not state.trace_context:
                self._single_context, self._singles = state.trace_context, {}
            c = entry.compiled
            compiled = (c.executable, c.hidden) if c is not None else (None, None)
            self._singles[leaves[0].aval] = (entry.host, *compiled, entry.out_avals[0])

    def _target(self, operands: Sequence[Any]) -> Any:
        if self._device is not None:
            return self._device
        if self._backend is not None:
            return xla.devices(self._backend)[0]
        return execution.device_for(operands)

    def _lookup(self, args: tuple, kwargs: dict[str, Any]) -> tuple[_Entry, list[Any], Any]:
        """The entry for a call, traced if need be, and the arrays among the arguments."""
        dynamic_args, dynamic_kwargs, static = self._split_static(args, kwargs)
        leaves, treedef = tree.flatten((dynamic_args, dynamic_kwargs) if dynamic_kwargs or static else dynamic_args)
        has_kwargs = bool(dynamic_kwargs or static)
        leaves = [x if type(x) is ArrayImpl else self._leaf(x, i, treedef, has_kwargs) for i, x in enumerate(leaves)]
        avals = [get_aval(x) for x in leaves]
        # 1, 1.0 and True are equal, but make different programs.
        key = (state.trace_context, treedef, *avals, *((static, *(type(v) for _, v in static)) if static else ()))
        try:
            entry = self._cache.get(key)
        except TypeError as error:
            raise ValueError(f"jit of {self._name}: static arguments must be hashable: {error}") from None
        if entry is None:
            entry = self._trace(treedef, has_kwargs, avals, static, len(args))
            if any(isinstance(c, Tracer) for c in entry.consts):
                return entry, leaves, None  # closed over a tracer: never reused
            self._cache[key] = entry
        return entry, leaves, key

    def _leaf(self, x: Any, i: int, treedef: Any, has_kwargs: bool) -> Any:
        hint = "; mark it static (static_argnums, static_argnames) or close over it"
        return as_array(x, lambda: f"jit of {self._name}: {leaf_name(treedef, i, has_kwargs)}", hint)

    def _split_static(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any], tuple]:
        if not self._static_nums and not self._static_names:
            return args, kwargs, ()
        numbers = {i % len(args) if -len(args) <= i < len(args) else i for i in self._static_nums} if args else set()
        static = [(i, args[i]) for i in sorted(numbers) if i < len(args)]
        static_kwargs = [(k, kwargs[k]) for k in sorted(kwargs) if k in self._static_names]
        dynamic = tuple(a for i, a in enumerate(args) if i not in numbers)
        return (
            dynamic,
            {k: v for k, v in kwargs.items() if k not in self._static_names},
            (*static, *static_kwargs),
        )

    def _trace(self, treedef: Any, has_kwargs: bool, avals: Sequence[Any], static: tuple, n_args: int) -> _Entry:
        out_tree: Any = None
        name = self._name

        def flat(*xs: Any) -> list[Any]:
            nonlocal out_tree
            value = treedef.unflatten(xs)
            args, kwargs = value if has_kwargs else (value, {})
            args, kwargs = list(args), dict(kwargs)
            for k, v in static:
                if isinstance(k, int):
                    args.insert(k, v)
                else:
                    kwargs[k] = v
            leaves, out_tree = tree.flatten(self._fun(*args, **kwargs))
            return [
                x
                if isinstance(x, ArrayImpl | Tracer)
                else as_array(x, functools.partial(_result_name, name, out_tree, i))
                for i, x in enumerate(leaves)
            ]

        closed, consts = trace_to_closed(flat, avals, name, "jit")
        return _Entry(closed, consts, treedef, out_tree)

    def _donated(self, args: tuple, kwargs: dict[str, Any]) -> tuple[bool, ...]:
        if not self._donate_nums and not self._donate_names:
            return ()
        numbers = {i % len(args) for i in self._donate_nums if -len(args) <= i < len(args)}
        statics = {i % len(args) for i in self._static_nums if -len(args) <= i < len(args)}
        out: list[bool] = []
        for i, a in enumerate(args):
            if i not in statics:
                out += [i in numbers] * len(tree.leaves(a))
        for k in sorted(kwargs):
            if k not in self._static_names:
                out += [k in self._donate_names] * len(tree.leaves(kwargs[k]))
        return tuple(out)

    # The stages, one by one.

    @api_boundary
    def trace(self, *args: Any, **kwargs: Any) -> "Traced":
        """Trace for these arguments (arrays, or anything with shape and dtype), without running."""
        dynamic_args, dynamic_kwargs, static = self._split_static(args, kwargs)
        has_kwargs = bool(dynamic_kwargs or static)
        leaves, treedef = tree.flatten((dynamic_args, dynamic_kwargs) if has_kwargs else dynamic_args)
        avals = [shape_of(x) for x in leaves]
        entry = self._trace(treedef, has_kwargs, avals, static, len(args))
        return Traced(self, entry, self._donated(args, kwargs), treedef)

    @api_boundary
    def lower(self, *args: Any, **kwargs: Any) -> "Lowered":
        """Trace and lower for these arguments."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the result, as a pytree of `ShapeDtypeStruct`."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget all traces and executables."""
        self._cache.clear()
        self._singles.clear()


def _result_name(function: str, out_tree: Any, i: int) -> str:
    return f"jit of {function}: the result{tree.keystr(tree.paths(out_tree)[i])}"


def _bind_consts(entry: _Entry) -> ClosedJaxpr:
    """The entry's jaxpr with what it closed over as constants, for a call from outside."""
    if not entry.consts:
        return entry.closed
    key = "bound"
    if key not in entry.closed.cache:
        j = entry.closed.jaxpr
        copy = type(j)(j.constvars, j.invars, j.outvars, j.eqns, j.name)
        entry.closed.cache[key] = with_consts(ClosedJaxpr(copy), entry.consts)
    return entry.closed.cache[key]


def shape_of(x: Any) -> Any:
    """The aval of an array or of anything with shape and dtype."""
    if type(x) is ArrayImpl:
        return x.aval
    if hasattr(x, "shape") and hasattr(x, "dtype") and not hasattr(x, "__array__"):
        return ShapedArray(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype), getattr(x, "weak_type", False))
    return get_aval(x)


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Compile a function with XLA.

    The function is traced once for each structure, shape and dtype of its arguments; the program runs from then on.
    Python side effects happen while tracing only. Without `fun` it returns a decorator.

    Parameters
    ----------
    fun : function of pytrees of arrays
    static_argnums, static_argnames : ints, strings
        Arguments that are Python values (hashable); the function is traced anew for each value.
    donate_argnums, donate_argnames : ints, strings
        Arguments whose memory the results may take over; they are deleted.
    device, backend : Device, str
        Where to run: by default where the arguments are. ``backend="numpy"`` runs the program without XLA.
    compiler_options : dict
        XLA options for this function.

    Raises
    ------
    TypeError
        For arguments that are neither arrays nor numbers nor static.
    ImportError
        When the package `jax`, which ships XLA, is not installed.

    Examples
    --------
    >>> import xform, xform.numpy as xnp
    >>> @xform.jit
    ... def f(x):
    ...     return xnp.sum(x**2)
    >>> float(f(xnp.array([3.0, 4.0])))
    25.0
    """
    if in_shardings is not None or out_shardings is not None:
        raise NotImplementedError("jit: in_shardings and out_shardings are not supported yet")
    options = {
        "static_argnums": static_argnums, "static_argnames": static_argnames, "donate_argnums": donate_argnums,
        "donate_argnames": donate_argnames, "device": device, "backend": backend, "compiler_options": compiler_options,
    }  # fmt: skip
    if fun is None:
        return lambda f: jit(f, **options)
    check_callable("jit", fun)
    return JitFunction(fun, options)


class Traced:
    """A function traced for given arguments.

    Attributes
    ----------
    jaxpr : ClosedJaxpr
    fun_name : str
    out_info : pytree of ShapeDtypeStruct
    """

    def __init__(self, function: JitFunction, entry: _Entry, donated: Sequence[bool], in_tree: Any):
        self._function, self._entry, self._donated, self.in_tree = function, entry, donated, in_tree
        self.jaxpr = _bind_consts(entry)
        self.fun_name = function._name

    @property
    def out_tree(self) -> Any:
        """Structure of the result."""
        return self._entry.out_tree

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the result."""
        from xform.api.inspection import ShapeDtypeStruct

        return self.out_tree.unflatten(
            [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in self._entry.out_avals]
        )

    @api_boundary
    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> "Lowered":
        """Write the StableHLO module."""
        device = self._function._target(self._entry.consts) if not lowering_platforms else None
        platform = device.platform if device is not None else lowering_platforms[0]  # type: ignore[index]
        text, hidden = lower_module(self.jaxpr, self.fun_name, platform, donated=self._donated)
        return Lowered(self, text, hidden, device)


class Lowered:
    """A function lowered to StableHLO."""

    def __init__(self, traced: Traced, text: str, hidden: list[Any], device: Any):
        self._traced, self._text, self._hidden, self._device = traced, text, hidden, device
        self.in_tree, self.out_tree, self.out_info = traced.in_tree, traced.out_tree, traced.out_info

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text; with `debug_info`, each operation with the user's line."""
        if dialect not in (None, "stablehlo"):
            raise ValueError(f"as_text: the dialect is 'stablehlo', got {dialect!r}")
        if debug_info:
            platform = self._device.platform if self._device is not None else "cpu"
            t = self._traced
            return lower_module(t.jaxpr, t.fun_name, platform, donated=t._donated, debug_info=True)[0]
        return self._text

    @api_boundary
    def compile(self, compiler_options: dict[str, Any] | None = None) -> "Compiled":
        """Compile with XLA."""
        if self._device is None:
            raise ValueError("compile: this module was lowered for another platform")
        options = {**(self._traced._function._compiler_options or {}), **(compiler_options or {})}
        compiled = execution.compile_text(
            self._text, self._hidden, self._traced.jaxpr, self._device, self._traced._donated, options
        )
        return Compiled(self._traced, compiled)


class Compiled:
    """A compiled function, for arguments of the structure, shapes and dtypes that it was traced for."""

    def __init__(self, traced: Traced, compiled: execution.Compiled):
        self._traced, self._compiled = traced, compiled
        self.in_tree, self.out_tree, self.out_info = traced.in_tree, traced.out_tree, traced.out_info

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function, name = self._traced._function, self._traced.fun_name
        dynamic_args, dynamic_kwargs, static = function._split_static(args, kwargs)
        value = (dynamic_args, dynamic_kwargs) if dynamic_kwargs or static else dynamic_args
        leaves, treedef = tree.flatten(value)
        if treedef != self.in_tree:
            raise TypeError(f"{name} was compiled for arguments of structure {self.in_tree}, called with {treedef}")
        leaves = [as_array(x, lambda: f"argument of {name}") for x in leaves]
        for x, want in zip(leaves, self._traced.jaxpr.in_avals, strict=True):
            have = get_aval(x)
            if have.shape != want.shape or have.dtype != want.dtype:
                raise TypeError(
                    f"{name} was compiled for an argument of {want.str_short()}, called with {have.str_short()}"
                )
        return self.out_tree.unflatten(self._compiled(leaves))

    def as_text(self) -> str:
        """The optimized HLO."""
        return self._compiled.executable.hlo_text()

    def memory_analysis(self) -> dict[str, int]:
        """Bytes of arguments, results, temporaries and code."""
        return self._compiled.executable.memory_analysis()

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimates of floating-point operations and memory traffic."""
        return self._compiled.executable.cost_analysis()
