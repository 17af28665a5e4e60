"""Measuring libraries side by side, and tables of the result. Imports no library before it is asked to.

Libraries take turns, round by round, so that a disturbance of the machine hits all of them; the figure is the
median over rounds. What is measured is a `timeit.Timer`: a statement in a namespace, garbage collection off.
"""

import importlib
import importlib.util
import math
import statistics
import sys
import timeit
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from unittest import mock

from benchmarks.bounds import bounds_of

PEERS = ("NumPy", "autograd", "JAX")  # in the order of the table's columns


@dataclass(frozen=True)
class Library:
    """A library under test: `api` has grad and jit (where it has them), `numpy` the array functions."""

    name: str
    api: ModuleType
    numpy: ModuleType

    def load(self, module: str) -> ModuleType:
        """The program `module`, which is written for xform, with this library in xform's place.

        Load it with xform first: what it imports beside xform is shared by all.
        """
        if self.name == "xform":
            return importlib.import_module(module)
        path = importlib.import_module(module).__file__
        spec = importlib.util.spec_from_file_location(f"{module} with {self.name}", path)
        loaded = importlib.util.module_from_spec(spec)
        with mock.patch.dict(sys.modules, {"xform": self.api, "xform.numpy": self.numpy}):
            spec.loader.exec_module(loaded)
        return loaded


def library(name: str) -> Library:
    """The library of that name, imported."""
    package = {"NumPy": "numpy"}.get(name, name.lower())
    api = importlib.import_module(package)
    return Library(name, api, api if name == "NumPy" else importlib.import_module(f"{package}.numpy"))


@dataclass
class Row:
    """One line of the table: the median `seconds` that each library took, and what is claimed."""

    name: str
    seconds: dict[str, float]
    bounds: dict[str, float] = field(init=False)

    def __post_init__(self):
        self.bounds = bounds_of(self.name)

    def ratio(self, peer: str) -> float:
        """How many times the peer's time xform took."""
        return self.seconds["xform"] / self.seconds[peer]

    def missed(self) -> list[str]:
        """The peers against which the claim does not hold."""
        return [peer for peer, bound in self.bounds.items() if self.ratio(peer) > bound]


def measure(timers: Mapping[str, timeit.Timer], *, quick: bool = False, number: int = 0) -> dict[str, float]:
    """Median seconds of one execution of each timer's statement, by library, in interleaved rounds.

    Parameters
    ----------
    quick
        Fewer rounds, for a first impression.
    number
        Executions in a round; by default as many as fit in 5 ms. A statement that its own setup has to
        precede each time takes 1.
    """
    # The first executions compile and fill caches (xform plans a derivative when it meets an operation for the second
    # time); the later ones say how long one takes.
    once = {name: min(timer.repeat(5, 1)[3:]) for name, timer in timers.items()}
    numbers = {name: number or max(1, round(0.005 / seconds)) for name, seconds in once.items()}
    a_round = sum(once[name] * numbers[name] for name in timers)
    rounds = max(5, min(15 if quick else 101, int((1 if quick else 8) / a_round)))
    times: dict[str, list[float]] = {name: [] for name in timers}
    for i in range(rounds):
        for name in rotated(list(timers), i):
            times[name].append(timers[name].timeit(numbers[name]) / numbers[name])
    return {name: statistics.median(values) for name, values in times.items()}


def rotated(names: list[str], by: int) -> list[str]:
    """The names in another order each round, so that none always follows the same one."""
    by %= len(names)
    return names[by:] + names[:by]


def compare(statement: str, namespaces: Mapping[str, dict], setup: str = "pass", **options) -> dict[str, float]:
    """`measure` the same statement in each library's namespace."""
    timers = {name: timeit.Timer(statement, setup, globals=space) for name, space in namespaces.items()}
    return measure(timers, **options)


def geometric_mean(name: str, rows: Iterable[Row]) -> Row:
    """A row of the geometric means of `rows`, for the libraries that are in all of them."""
    rows = list(rows)
    common = [library for library in rows[0].seconds if all(library in row.seconds for row in rows)]
    return Row(name, {k: statistics.geometric_mean(row.seconds[k] for row in rows) for k in common})


def table(rows: Iterable[Row]) -> str:
    """The rows in Markdown: times, and xform's ratio to each peer, with the claim and whether it holds."""
    peers = [peer for peer in PEERS if any(peer in row.seconds for row in rows)]
    header = ["", "xform", *peers, *(f"to {peer}" for peer in peers)]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for row in rows:
        times = [quantity(row.name, row.seconds.get(library)) for library in ("xform", *peers)]
        lines.append([row.name, *times, *(verdict(row, peer) for peer in peers)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict(row: Row, peer: str) -> str:
    """The ratio to `peer`, the bound if there is one, and whether it is kept."""
    if peer not in row.seconds:
        return ""
    text = f"{significant(row.ratio(peer))}x"
    if peer in row.bounds:
        text += f" (<= {significant(row.bounds[peer])}: {'MISSED' if peer in row.missed() else 'ok'})"
    return text


def quantity(name: str, value: float | None) -> str:
    """A row's value: most are times; some are, by their name, bytes or multiples of another time."""
    if value is not None and name.startswith("memory of"):
        return f"{significant(value / 1e6)} MB"
    if value is not None and "in times of" in name:
        return f"{significant(value)}"
    return duration(value)


def duration(seconds: float | None) -> str:
    """A time with three digits in the unit that suits it."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{significant(seconds / size)} {unit}"
    return f"{significant(seconds / 1e-9)} ns"


def significant(x: float) -> str:
    """`x` with three significant digits and no exponent."""
    return f"{x:.{max(0, 2 - math.floor(math.log10(x)))}f}"


def run(rows: Callable[[bool], Iterator[Row]], quick: bool) -> list[Row]:
    """All rows of a theme; each is told on standard error as it comes."""
    done = []
    for row in rows(quick):
        print(f"  {row.name}: {quantity(row.name, row.seconds['xform'])}", file=sys.stderr, flush=True)
        done.append(row)
    return done
