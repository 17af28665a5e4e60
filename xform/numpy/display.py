"""How arrays and pytrees look in notebooks: type, statistics and a small picture of the values.

Of large arrays everything is made from a sample, which `text.pick` takes from the array, so that it costs some
milliseconds however large they are; statistics of a sample say so. Pictures are PNG (a curve: SVG) within the HTML, and
need nothing but the standard library.

* Rows of numbers are drawn as a curve, matrices as an image, arrays of a higher rank as tiles, one for each matrix.
* Colours go from the smallest value to the largest; where there are both signs, from blue for the negative ones through
  white, which is 0, to red, the same for both. Of complex numbers the phase is the hue, the modulus the brightness.
* NaN, infinity and minus infinity have colours of their own.

May import: `numpy.text`, `xform.core`. It is imported by the first picture.
"""

import base64
import html
import itertools
import math
import struct
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from xform.core import dtypes, tree
from xform.core.array import Array, ArrayImpl
from xform.core.avals import short_dtype_name
from xform.numpy import text

EXACT, SAMPLE = 1 << 20, 1 << 17  # elements that all go into statistics; those that do if there are more
SIDE, TILE, TILES = 128, 40, 16  # pixels of a matrix at most; of each of several; of how many at most
CURVE = 400  # points of a curve at most
NUMBERS = 12  # elements that are written out in a line of a tree
NODES, PICTURES = 1000, 60  # of a tree at most

SEQUENTIAL = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)])
DIVERGING = np.array([(33, 102, 172), (146, 197, 222), (247, 247, 247), (244, 165, 130), (178, 24, 43)])


def is_numeric(x: Any) -> bool:
    """Whether `x` is a concrete array of numbers that has its elements."""
    if type(x) is ArrayImpl:
        return not x.is_deleted()
    return isinstance(x, np.ndarray) and x.dtype in dtypes.kinds


def type_of(x: Any) -> str:
    """E.g. ``f32[2,3]``."""
    return f"{short_dtype_name(x.dtype)}[{','.join(map(str, x.shape))}]"


def _computable(values: np.ndarray) -> np.ndarray:
    """Elements in a type in which NumPy is at home: of the same kind, 64 bits wide."""
    kind = dtypes.kinds[values.dtype]
    return (
        values if kind == "b" else values.astype({"u": "uint64", "i": "int64", "f": "float64", "c": "complex128"}[kind])
    )


# ---- Statistics --------------------------------------------------------------------------------------------


class Statistics(NamedTuple):
    """What is to be known of the elements of an array, as pairs of name and text.

    `sample`: how many elements it was made from, if not from all.
    """

    entries: dict[str, str]
    sample: int | None


def statistics(x: Any) -> Statistics:
    """Minimum, mean, maximum, standard deviation of the finite elements; numbers of zeros, NaN and infinities if any.

    Of complex numbers those of the modulus; of booleans how many are true.
    """
    size = x.size
    if size > EXACT:  # evenly all over the array, and with no period: steps of the golden section
        step = round(size * 0.6180339887498949)
        while math.gcd(step, size) > 1:
            step += 1
        index = np.arange(SAMPLE) * step % size
        values = text.pick(x, np.unravel_index(index, x.shape))
    else:
        values = np.asarray(x)
    values = _computable(values).reshape(-1)
    return Statistics(_entries(values), len(values) if size > EXACT else None)


def _entries(values: np.ndarray) -> dict[str, str]:
    if values.dtype == bool:
        count = np.count_nonzero(values)
        return {"true": f"{count:,}", "share": f"{count / max(1, len(values)):.3g}"}
    counts = {"zeros": len(values) - np.count_nonzero(values)}
    is_finite = np.isfinite(values)
    if is_finite.all():
        finite = values
    else:
        finite = values[is_finite]
        counts["NaN"] = np.count_nonzero(np.isnan(values))
        counts["inf"] = len(values) - len(finite) - counts["NaN"]
    bars = "|" if finite.dtype.kind == "c" else ""
    finite = np.abs(finite) if bars else finite
    entries: dict[str, str] = {}
    if len(finite):
        with np.errstate(all="ignore"):
            for name in ("min", "mean", "max", "std"):
                entries[f"{name} |x|" if bars else name] = number(getattr(finite, name)())
    return entries | {name: f"{n:,}" for name, n in counts.items() if n}


def number(value: Any) -> str:
    """A number in few characters; integers in full."""
    return str(value) if isinstance(value, np.integer) else f"{value:.4g}"


# ---- Pictures ----------------------------------------------------------------------------------------------


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of ``uint8[height, width, 4]``, red, green, blue and opacity (ISO/IEC 15948)."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # 0: no filter

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


class Scale(NamedTuple):
    """How values are turned into colours: a row of colours, evenly from `low` to `high`."""

    colours: np.ndarray
    low: float
    high: float


class Mark(NamedTuple):
    """A kind of values that are no finite numbers, its colour, and where in an array it is."""

    name: str
    colour: tuple[int, int, int]
    where: np.ndarray


def marks(values: np.ndarray) -> list[Mark]:
    """What is NaN, infinite and, but for complex numbers, minus infinite."""
    is_complex = values.dtype.kind == "c"
    found = [Mark("NaN", (255, 0, 255), np.isnan(values)), Mark("inf", (0, 255, 255), np.isinf(values))]
    if is_complex:
        return found
    return [found[0], found[1]._replace(where=values == np.inf), Mark("-inf", (0, 0, 0), values == -np.inf)]


def scale_of(values: np.ndarray) -> Scale:
    """The scale of real values."""
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if low < 0 < high:
        high = max(-low, high)
        return Scale(DIVERGING, -high, high)
    return Scale(SEQUENTIAL, low, high)


def colours(values: np.ndarray, scale: Scale | None) -> np.ndarray:
    """``uint8[..., 4]`` for values; complex ones need no scale."""
    with np.errstate(all="ignore"):
        if scale is None:
            modulus, phase = np.abs(values), np.angle(values)
            largest = np.max(modulus, initial=0.0, where=np.isfinite(modulus)) or 1.0
            waves = 0.5 + 0.5 * np.cos(phase[..., None] - 2 * np.pi / 3 * np.arange(3))
            rgb = 255 * waves * np.clip(modulus / largest, 0, 1)[..., None]
        else:
            # halves, so that the distance of the largest numbers there are is finite
            place = (values / 2 - scale.low / 2) / ((scale.high / 2 - scale.low / 2) or 1.0)
            at = np.linspace(0, 1, len(scale.colours))
            rgb = np.stack([np.interp(place, at, c) for c in scale.colours.T], axis=-1)
        out = np.full((*values.shape, 4), 255, np.uint8)
        out[..., :3] = np.nan_to_num(rgb)
    for mark in marks(values):
        out[mark.where, :3] = mark.colour
    return out


def _spread(n: int, most: int) -> np.ndarray:
    """Indices of at most `most` of n elements, the first and the last among them."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(int)


def _extremes(values: np.ndarray, most: int) -> np.ndarray:
    """Indices of the smallest and the largest element, or of a NaN, of each of ``most / 2`` pieces of a row."""
    if len(values) <= most:
        return np.arange(len(values))
    bounds = np.linspace(0, len(values), most // 2 + 1).astype(int)
    pieces = [(a, values[a:b]) for a, b in itertools.pairwise(bounds)]
    return np.unique([a + found(piece) for a, piece in pieces for found in (np.argmin, np.argmax)])


def _matrices(x: Any) -> np.ndarray:
    """Some elements of an array as [tiles, rows, columns]: matrices of its last two axes."""
    shape = x.shape if x.ndim > 1 else (1, *x.shape)
    lead, (rows, columns) = shape[:-2], shape[-2:]
    tiles = _spread(math.prod(lead), TILES)
    side = (SIDE if len(tiles) == 1 else TILE) if x.ndim > 1 else CURVE
    most = [max(16, -(-n * side // max(rows, columns))) for n in (rows, columns)]
    index = [i[:, None, None] for i in np.unravel_index(tiles, lead)] if lead else []
    index += [_spread(rows, most[0])[None, :, None], _spread(columns, most[1])[None, None, :]]
    return _computable(text.pick(x, tuple(index[-x.ndim :])))


def image(x: Any) -> str:
    """The values of an array as an image: that of a matrix, or a square of tiles."""
    values = _matrices(x)
    real = values if values.dtype.kind == "f" else values.astype("float64") if values.dtype.kind in "bui" else None
    scale = None if real is None else scale_of(real)
    tiles = colours(values if real is None else real, scale)
    n, height, width, _ = tiles.shape
    across = min(n, math.ceil(math.sqrt(n * height / width)))
    down = -(-n // across)
    canvas = np.zeros((down * (height + 1), across * (width + 1), 4), np.uint8)  # a transparent line between tiles
    for i, tile in enumerate(tiles):
        top, left = i // across * (height + 1), i % across * (width + 1)
        canvas[top : top + height, left : left + width] = tile
    canvas = canvas[:-1, :-1]
    factor = max(1, 160 // max(canvas.shape[:2]))
    tall, wide = (max(20, n * factor) for n in canvas.shape[:2])
    data = base64.b64encode(png(canvas)).decode()
    picture = (
        f'<img alt="values" src="data:image/png;base64,{data}" '
        f'style="image-rendering:pixelated;width:{wide}px;height:{tall}px;max-width:none">'
    )
    return picture + _key(values, scale)


def _key(values: np.ndarray, scale: Scale | None) -> str:
    """What the colours mean."""
    parts = []
    if scale is None:
        parts.append("hue: phase, brightness: |x|")
    elif values.dtype == bool:
        parts += [_square(SEQUENTIAL[0], "False"), _square(SEQUENTIAL[-1], "True")]
    else:
        ramp = ",".join(f"rgb{tuple(c.tolist())}" for c in scale.colours)
        bar = f'<span style="display:inline-block;width:60px;height:0.7em;background:linear-gradient(to right,{ramp})">'
        parts.append(f"{number(scale.low)} {bar}</span> {number(scale.high)}")
    parts += [_square(mark.colour, mark.name) for mark in marks(values) if mark.where.any()]
    return f'<div style="font-size:smaller">{" ".join(parts)}</div>'


def _square(colour: Any, name: str) -> str:
    return f'<span style="color:rgb{tuple(int(c) for c in colour)}">■</span>&nbsp;{name}'


def curve(x: Any) -> str:
    """The values of a row of real numbers as a curve; NaN and infinities are marked by strokes."""
    width, height = 260, 70
    where = _spread(len(x), EXACT)
    values = _computable(text.pick(x, where)).astype("float64")
    drawn = _extremes(values, CURVE)
    where, values = where[drawn], values[drawn]
    finite = np.isfinite(values)
    low, high = (values[finite].min(), values[finite].max()) if finite.any() else (0.0, 0.0)

    def down(value: Any) -> Any:
        middle = 0.5 * (high == low)
        return 4 + (height - 8) * (middle + (high / 2 - value / 2) / ((high / 2 - low / 2) or 1.0))

    with np.errstate(all="ignore"):
        y = down(values)
    across = 4 + (width - 8) * where / max(1, len(x) - 1)
    shapes = []
    if low < 0 < high:
        shapes.append(f'<path d="M0 {down(0.0):.1f}H{width}" stroke="currentColor" stroke-opacity="0.3"/>')
    runs = np.split(np.arange(len(values)), np.flatnonzero(np.diff(finite)) + 1)
    for run in runs:
        if finite[run[0]]:
            points = "L".join(f"{across[i]:.1f} {y[i]:.1f}" for i in run)
            # a path of no length shows as a point, as its ends are round
            shapes.append(f'<path d="M{points}{"h0" if len(run) == 1 else ""}" fill="none" stroke="currentColor"/>')
    names = []
    for mark, (top, bottom) in zip(marks(values), [(0, height), (0, 10), (height - 10, height)], strict=True):
        if mark.where.any():
            names.append(_square(mark.colour, mark.name))
            strokes = "".join(f"M{across[i]:.1f} {top}V{bottom}" for i in np.flatnonzero(mark.where))
            shapes.append(f'<path d="{strokes}" stroke="rgb{mark.colour}"/>')
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" stroke-width="1.3" '
        f'stroke-linecap="round">{"".join(shapes)}</svg>'
        f'<div style="font-size:smaller">{" ".join(names)}</div>'
    )


def picture(x: Any) -> str:
    """The picture of an array; none of fewer than two elements."""
    if x.size < 2:
        return ""
    return curve(x) if x.ndim == 1 and dtypes.kinds[x.dtype] in "uif" else image(x)


# ---- Arrays ------------------------------------------------------------------------------------------------


def _bytes(n: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.4g} {unit}"
        n /= 1024  # type: ignore[assignment]
    return f"{n:.4g} GiB"


def _escaped(x: Any) -> str:
    return f'<pre style="margin:0">{html.escape(repr(x))}</pre>'


def _head(x: Any) -> str:
    """Type, place and size of an array."""
    kind = "Array" if isinstance(x, Array) else type(x).__name__
    parts = [f"{kind} <b>{x.dtype}{html.escape(str(list(x.shape)))}</b>"]
    if type(x) is ArrayImpl:
        parts += ["weak type"] if x.weak_type else []
        parts += [html.escape(text.describe_devices(d).replace("=", " "))] if (d := text.devices_of(x)) else []
    return " · ".join([*parts, _bytes(x.nbytes)])


def _body(x: Any, found: Statistics | None = None) -> str:
    """Picture, statistics and numbers of an array."""
    with text.printoptions(threshold=min(1000, text.get_printoptions()["threshold"])):
        numbers = html.escape(text.elements(x))
    if not x.ndim:
        return f"<code>{numbers}</code>"
    if not x.size:
        return "<i>empty</i>"
    found = found or statistics(x)
    entries = "".join(
        f'<tr><td style="text-align:left">{html.escape(name)}</td><td style="text-align:right">{value}</td></tr>'
        for name, value in found.entries.items()
    )
    sample = f'<div style="font-size:smaller">of {found.sample:,} of {x.size:,} elements</div>' if found.sample else ""
    is_open = " open" if numbers.count("\n") < 6 else ""
    return (
        f'<div style="display:flex;gap:1.5em;align-items:center"><div>{picture(x)}</div>'
        f'<div><table style="margin:0;white-space:nowrap">{entries}</table>{sample}</div></div>'
        f'<details{is_open}><summary>values</summary><pre style="margin:0">{numbers}</pre></details>'
    )


def array_html(x: Array) -> str:
    """What a notebook shows of an array: type and place, picture, statistics, the numbers as NumPy prints them.

    Of what has no numbers, a tracer, keys or a deleted array, the text.
    """
    return f"<div>{_head(x)}</div>{_body(x)}" if is_numeric(x) else _escaped(x)


# ---- Pytrees -----------------------------------------------------------------------------------------------


class Node(NamedTuple):
    """A line of a tree: how deep, its key, and the leaf, or the type of the node and its children."""

    key: str
    value: Any
    children: list["Node"] | None
    left_out: int


def _node(key: str, value: Any, budget: Iterator[int]) -> Node:
    if value is None or isinstance(value, Array) or tree.all_leaves([value]):
        return Node(key, value, None, 0)
    pairs, _ = tree.flatten_one_level_with_keys(value)
    children = [_node(str(k), child, budget) for (k, child), _ in zip(pairs, budget, strict=False)]
    return Node(key, value, children, len(pairs) - len(children))


def _line(x: Any, found: Statistics | None = None) -> str:
    """What a leaf is, in a line."""
    if not is_numeric(x):
        line = " ".join(repr(x).split())
        return line if len(line) < 100 else line[:97] + "..."
    if x.size <= NUMBERS:
        return f"{type_of(x)} {' '.join(text.elements(x).split())}"
    found = found or statistics(x)
    return f"{type_of(x)} " + ", ".join(f"{name} {value}" for name, value in found.entries.items())


class View:
    """A pytree as text, or in a notebook as a tree that opens and closes; made by `visualize`."""

    def __init__(self, value: Any):
        self._root = _node("", value, iter(range(NODES)))

    def __repr__(self) -> str:
        return "\n".join(self._lines(self._root, 0))

    def _lines(self, node: Node, depth: int) -> Iterator[str]:
        indent, key = "    " * depth, f"{node.key}: " if node.key else ""
        if node.children is None:
            yield f"{indent}{key}{_line(node.value)}"
            return
        yield f"{indent}{key}{type(node.value).__name__}"
        for child in node.children:
            yield from self._lines(child, depth + 1)
        if node.left_out:
            yield f"{indent}    ... {node.left_out:,} more"

    def _repr_html_(self) -> str:
        return "".join(self._html(self._root, iter(range(PICTURES)), True))

    def _html(self, node: Node, pictures: Iterator[int], is_open: bool) -> Iterator[str]:
        key = f"<code>{html.escape(node.key)}</code> " if node.key else ""
        if node.children is None:
            x = node.value
            found = statistics(x) if is_numeric(x) and x.size > NUMBERS else None
            line = f"{key}{html.escape(_line(x, found))}"
            plain = found is None or next(pictures, None) is None
            yield f"<div>{line}</div>" if plain else _details(line, _body(x, found), False)
            return
        inside = [part for child in node.children for part in self._html(child, pictures, len(node.children) <= 20)]
        if node.left_out:
            inside.append(f"<div>... {node.left_out:,} more</div>")
        yield _details(f"{key}{html.escape(type(node.value).__name__)}", "".join(inside), is_open)


def _details(summary: str, inside: str, is_open: bool) -> str:
    return (
        f"<details{' open' if is_open else ''}><summary>{summary}</summary>"
        f'<div style="margin-left:1.5em">{inside}</div></details>'
    )
