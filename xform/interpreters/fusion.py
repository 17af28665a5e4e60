"""Options of compilation: when XLA's fusion pass on CPU should be off, and its vectors wide.

XLA fuses elementwise operations into loops and, where a cheap value has several users, duplicates its computation into
each. In a long straight-line program (a time stepper unrolled in Python, and its gradient) that compounds step by step:
compilation grows quadratically or worse and the code gets slower, too. The rule here estimates the duplicated work from
the program's shape, and switches the pass off when it outgrows the program by far.

May import: `xform.core`.
"""

from collections import Counter
from typing import Any

from xform.core.jaxpr import Jaxpr, Literal, subjaxprs

# Duplicated operations per equation above which fusion costs more than it gains, and the smallest program to consider
# (below it, fusion always wins). Measured by benchmarks/first_call.py.
DUPLICATION_LIMIT = 30.0
SMALLEST_PROGRAM = 400

# Operations after which XLA does not duplicate: they are computed once, into memory.
_BARRIERS = frozenset(
    ["dot_general", "reduce_sum", "reduce_max", "reduce_min", "sort", "gather", "scatter", "scatter_add", "jit", "scan",
     "while", "cond", "threefry2x32", "cumsum", "fft", "conv_general_dilated", "concatenate"]
)  # fmt: skip


# The first line of a program with functions as arithmetic: with vectors of 512 bits they run in half the time.
WIDE_VECTORS = "// prefer vectors of 512 bits\n"


def options_for(jaxpr: Jaxpr, platform: str, text: str = "") -> dict[str, Any]:
    """XLA options for compiling `jaxpr`, whose lowering is `text`."""
    options: dict[str, Any] = {}
    if platform == "cpu" and not is_on(jaxpr):
        options["xla_disable_hlo_passes"] = "fusion"
    if text.startswith(WIDE_VECTORS):
        options["xla_cpu_prefer_vector_width"] = 512
    return options


def is_on(jaxpr: Jaxpr) -> bool:
    """Whether XLA shall fuse on CPU."""
    return not _is_long_unrolled(jaxpr)


def _is_long_unrolled(jaxpr: Jaxpr) -> bool:
    """Whether fusion would duplicate without end in the program or in one inside it (XLA inlines calls)."""
    if len(jaxpr.eqns) >= SMALLEST_PROGRAM and duplication(jaxpr) > DUPLICATION_LIMIT:
        return True
    calls = (eqn for eqn in jaxpr.eqns if eqn.primitive.multiple_results)
    return any(_is_long_unrolled(inner) for eqn in calls for inner in subjaxprs(eqn.params))


def duplication(jaxpr: Jaxpr) -> float:
    """Estimated operations that fusion would duplicate, per equation."""
    uses = Counter(id(v) for eqn in jaxpr.eqns for v in eqn.invars if type(v) is not Literal)
    work: dict[int, float] = {}  # operations to recompute a value from what is in memory
    duplicated = 0.0
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _BARRIERS:
            cost = 0.0
        else:
            cost = min(1.0 + sum(work.get(id(v), 0.0) for v in eqn.invars), 1e4)
        for v in eqn.outvars:
            work[id(v)] = cost
            duplicated += cost * max(0, uses[id(v)] - 1)
    return duplicated / max(1, len(jaxpr.eqns))
