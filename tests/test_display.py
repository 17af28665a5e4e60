"""How arrays look: as text, as NumPy's; tracers; and in notebooks."""

import base64
import collections
import html.parser
import re
import struct
import subprocess
import sys
import zlib

import ml_dtypes
import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform import lax, random
from xform.backends import xla
from xform.core.array import ArrayImpl, get_aval
from xform.errors import ConcretizationTypeError, UnexpectedTracerError
from xform.numpy import display, text

NUMPY = tuple(int(n) for n in np.__version__.split(".")[:2])


# ---- Concrete arrays ---------------------------------------------------------------------------------------

ARRAYS = {
    "float32": np.linspace(-1, 1, 7, dtype=np.float32),
    "float32, several lines": np.linspace(-1, 1, 30, dtype=np.float32),
    "float32, the dtype on a line of its own": np.linspace(-1, 1, 6, dtype=np.float32) / 7,
    "float16": np.float16([0.1, np.nan, np.inf]),
    "int32": np.arange(12, dtype=np.int32).reshape(3, 4),
    "uint8": np.arange(3, dtype=np.uint8),
    "int16, large": np.arange(3000, dtype=np.int16).reshape(3, 1000),
    "float32, large": np.ones((20, 20, 20), np.float32),
    "complex64": np.complex64([1 + 2j, 0.5j]),
    "empty": np.zeros((0, 3), np.float32),
    "empty of rank 1": np.zeros(0, np.float32),
    "rank 0": np.array(2.5, np.float32),
    "bfloat16": np.array([0.1, 2, 3], ml_dtypes.bfloat16),
    "float8": np.array([0.5, 2, 3], ml_dtypes.float8_e4m3fn),
    "int4": np.array([-8, 7], ml_dtypes.int4),
    "int4 of rank 0": np.array(3, ml_dtypes.int4),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("options", [{}, {"precision": 2, "linewidth": 40, "threshold": 5, "edgeitems": 1}])
def test_repr_and_str_are_numpys(name, options):
    value = ARRAYS[name]
    x = xnp.asarray(value)
    with np.printoptions(**options):
        assert str(x) == str(value)
        if name == "float8":  # NumPy puts quotes around its name
            return
        if NUMPY >= (2, 2) or value.size <= np.get_printoptions()["threshold"]:  # before, no shape of large arrays
            ours, numpys = repr(x), repr(value).replace("array(", "Array(")
            if "dtype=dtype(" in numpys:  # of ml_dtypes from 0.7 on, so that lines are broken elsewhere
                ours, numpys = " ".join(ours.split()), re.sub(r"dtype\((\w+)\)", r"\1", " ".join(numpys.split()))
            assert ours == numpys


def test_dtype_and_weak_type_are_always_told():
    assert repr(xnp.asarray([1.0, 2.0])) == "Array([1., 2.], dtype=float64)"
    assert repr(xnp.asarray([True])) == "Array([ True], dtype=bool)"
    assert repr(xnp.asarray(2.0)) == "Array(2., dtype=float64, weak_type=True)"
    assert repr(xform.jit(lambda x: x + 1)(1)) == "Array(2, dtype=int64, weak_type=True)"
    assert repr(xnp.zeros((2, 0))) == "Array([], shape=(2, 0), dtype=float64)"
    assert xnp.array_repr(xnp.asarray([1.23456]), precision=2) == "Array([1.23], dtype=float64)"


def test_format():
    assert f"{xnp.float32(2.5):.3f} {xnp.asarray(7):>4d} {xnp.asarray(1e-9):g}" == "2.500    7 1e-09"
    assert f"{xnp.asarray(0.5, 'bfloat16'):.2f} {xnp.asarray(3, 'int4'):03d}" == "0.50 003"
    assert f"{xnp.asarray(1 + 2j):.1f}" == "1.0+2.0j"
    x = xnp.asarray([1.0, 2.0])
    assert f"{x}" == f"{x!s}" == "[1. 2.]" and f"{x!r}" == "Array([1., 2.], dtype=float64)"
    with pytest.raises(TypeError, match=r"format: .*'\.3f'.*shape \(2,\)"):
        f"{x:.3f}"


def test_devices_are_told_unless_the_array_is_in_host_memory():
    x = np.arange(2.0)
    assert repr(xform.device_put(x, xform.devices()[0])) == "Array([0., 1.], dtype=float64)"
    assert repr(xform.jit(lambda x: x)(x)) == "Array([0., 1.], dtype=float64)"
    assert repr(xform.device_put(x, xform.devices()[2])) == "Array([0., 1.], dtype=float64, device=cpu:2)"
    doubled = xform.pmap(lambda x: 2 * x)
    assert repr(doubled(x)) == "Array([0., 2.], dtype=float64, sharding=axis 0 over cpu:0-1)"
    some = [xform.devices()[i] for i in (0, 1, 3, 5)]
    shown = repr(xform.pmap(lambda x: 2 * x, devices=some)(np.arange(4.0)))
    assert shown == "Array([0., 2., 4., 6.],\n      dtype=float64, sharding=axis 0 over cpu:0-1, cpu:3, cpu:5)"


def test_deleted_and_donated_arrays_have_a_repr():
    x = xnp.ones((2, 3))
    x.delete()
    assert repr(x) == "Array(<deleted>, shape=(2, 3), dtype=float64)"
    assert str(x) == f"{x}" == "<deleted>"
    donated = xform.device_put(np.ones(100_000, np.float32))
    xform.jit(lambda x: x + 1, donate_argnums=0)(donated)
    assert donated.is_deleted()
    assert repr(donated) == "Array(<deleted>, shape=(100000,), dtype=float32)"
    assert "deleted" in donated._repr_html_() and "deleted" in xform.visualize([x]).__repr__()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(donated)


def test_keys():
    key = random.key(0)
    assert repr(key) == str(key) == f"{key}" == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert repr(random.split(key)).startswith("Array((2,), dtype=key<fry>) overlaying:\n[[")
    assert "key&lt;fry&gt;" in key._repr_html_()
    key = random.key(1)
    key.delete()
    assert repr(key) == "Array((), dtype=key<fry>) overlaying:\n<deleted>"
    seen = []
    xform.jit(lambda k: seen.append(repr(k)))(random.split(random.key(0), 3))
    assert seen == ["Traced<key<fry>[3] in jit(<lambda>)>"]


@pytest.fixture
def fetched(monkeypatch):
    """Sizes of what is fetched, on a machine whose device arrays have to be copied to be looked at."""
    sizes = []
    fetch = ArrayImpl._fetch

    def recorded(self):
        sizes.append(self.size)
        return fetch(self)

    monkeypatch.setattr(ArrayImpl, "_fetch", recorded)
    monkeypatch.setattr(text, "is_remote", lambda x: type(x) is ArrayImpl and x._host is None)
    with xform.config._option("eager")("xla"):
        yield sizes


def on_device(value):
    device = xla.devices()[1]
    return ArrayImpl(None, xla.put(value, device), get_aval(value), device)


@pytest.mark.parametrize("shape", [(2_000_000,), (1500, 1500), (3, 5, 1000, 100), (4, 1_000_000)])
def test_large_device_arrays_are_not_fetched(fetched, shape):
    value = np.random.default_rng(0).normal(size=shape)
    x = on_device(value)
    assert str(x) == str(value)
    assert repr(x).split() == repr(xnp.asarray(value)).replace("64)", "64, device=cpu:1)").split()
    x._repr_html_()
    repr(xform.visualize(x))
    assert max(fetched) <= display.EXACT < x.size


def test_a_repr_while_tracing_stages_nothing(fetched):
    x = on_device(np.arange(5000.0))
    jaxpr = xform.make_jaxpr(lambda y: (repr(x), x._repr_html_(), y)[-1])(1.0)
    assert not jaxpr.eqns and fetched and max(fetched) <= 5000


# ---- Tracers -----------------------------------------------------------------------------------------------


def shown(transform, *args):
    """The text of the argument of a function under transformations."""
    seen = []

    def f(x):
        seen.append((repr(x), str(x), f"{x}"))
        assert x._repr_html_() == f'<pre style="margin:0">{html.escape(repr(x))}</pre>'
        return xnp.sum(x * x)

    transform(f)(*args)
    assert len(set(seen[0])) == 1
    return seen[0][0]


ONES = np.ones(2)
TRACERS = {
    "jit": (xform.jit, ONES, "Traced<f64[2] in jit(f)>"),
    "weak": (xform.jit, 1, "Traced<~i64[] in jit(f)>"),
    "grad": (xform.grad, ONES, "Traced<f64[2] in grad, value=[1. 1.]>"),
    "grad of a number": (xform.grad, 2.5, "Traced<~f64[] in grad, value=2.5>"),
    "jvp": (lambda f: lambda x: xform.jvp(f, (x,), (x,)), ONES, "Traced<f64[2] in jvp, value=[1. 1.]>"),
    "jet": (lambda f: lambda x: xform.jet(f, (x,), [(x,)]), 1.0, "Traced<~f64[] in jet, value=1.0>"),
    "vmap": (xform.vmap, ONES, "Traced<f64[] in vmap(2), values=[1. 1.]>"),
    "named": (
        lambda f: xform.vmap(f, axis_name="i"), ONES, "Traced<f64[] in vmap(2, axis_name='i'), values=[1. 1.]>"
    ),
    "make_jaxpr": (xform.make_jaxpr, 1.0, "Traced<~f64[] in make_jaxpr(f)>"),
    "pmap": (xform.pmap, ONES, "Traced<f64[] in pmap(f)>"),
    "checkpoint": (lambda f: xform.grad(xform.checkpoint(f)), 1.0, "Traced<~f64[] in checkpoint(f)>"),
    "hessian": (xform.hessian, ONES, "Traced<f64[2] in grad in jvp, value=[1. 1.]>"),
    "grad of grad": (lambda f: xform.grad(xform.grad(f)), 2.0, "Traced<~f64[] in grad in grad, value=2.0>"),
    "vmap of grad": (lambda f: xform.vmap(xform.grad(f)), ONES, "Traced<f64[] in grad in vmap(2), values=[1. 1.]>"),
    "jit of vmap of grad": (
        lambda f: xform.jit(xform.vmap(xform.grad(f))), ONES, "Traced<f64[] in grad in vmap(2) in jit(f)>"
    ),
    "grad of vmap of jit": (
        lambda f: xform.grad(lambda x: xform.vmap(xform.jit(f))(x).sum()), ONES, "Traced<f64[] in jit(f)>"
    ),
    "grad of vmap": (
        lambda f: xform.grad(lambda x: xform.vmap(f)(x).sum()), ONES, "Traced<f64[] in vmap(2) in grad, values=[1. 1.]>"
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", TRACERS)
def test_tracers(how):
    transform, arg, expected = TRACERS[how]
    assert shown(transform, arg) == expected


def test_loop_bodies_say_which_loop():
    seen = []

    def body(c, x):
        seen.append(repr(c))
        return c + x, x

    lax.scan(body, 0.0, np.arange(2000.0))
    assert seen[-1] == "Traced<f64[] in scan(body)>"
    xform.jit(lambda x: lax.cond(x > 0, lambda x: (seen.append(repr(x)), x)[1], lambda x: x, x))(1.0)
    assert seen[-1] == "Traced<~f64[] in cond(<lambda>)>"


def test_values_of_lanes_have_the_mapped_axes_first():
    x = np.arange(24.0).reshape(2, 3, 4)
    seen = []

    def f(y):
        seen.append(repr(y))
        return y

    xform.vmap(xform.vmap(f, 1), 2)(x)
    assert seen[0].startswith("Traced<f64[2] in vmap(3) in vmap(4), values=")
    numbers = [float(n) for n in re.findall(r"\d+\.", seen[0])]
    np.testing.assert_array_equal(np.reshape(numbers, (4, 3, 2)), np.moveaxis(x, (2, 1), (0, 1)))


def test_format_of_a_tracer():
    def f(x):
        return f"{x:.3f}", x

    assert xform.grad(lambda x: f(x)[1], has_aux=False)(2.0) == 1.0
    _, text_ = xform.value_and_grad(lambda x: (x, f(x)[0]), has_aux=True)(2.0)[0]
    assert text_ == "2.000"
    for transform in (xform.jit, xform.vmap):
        with pytest.raises(ConcretizationTypeError, match=r"format\(x, '\.3f'\) needs a concrete value"):
            transform(lambda x: f(x)[1])(np.ones(2))


def test_errors_name_the_transformations():
    with pytest.raises(ConcretizationTypeError, match=r"traced array of bool\[\], in vmap\(2\) in jit\(g\)\."):

        @xform.jit
        def g(x):
            return xform.vmap(lambda x: x if x > 0 else -x)(x)

        g(ONES)

    kept = []
    xform.grad(lambda x: (kept.append(x * 2), x)[1])(1.0)
    assert repr(kept[0]) == "Traced<~f64[] in grad, ended>"
    with pytest.raises(UnexpectedTracerError, match=r"~f64\[\] is used after its trace, grad, has ended"):
        kept[0] + 1


# ---- Notebooks ---------------------------------------------------------------------------------------------


class Checker(html.parser.HTMLParser):
    """Raises unless all elements are closed in the right order; collects the text and the sources of images."""

    def __init__(self, page):
        super().__init__()
        self.stack, self.text, self.images, self.tags = [], "", [], collections.Counter()
        self.feed(page)
        self.close()
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        if tag == "img":
            self.images.append(dict(attrs)["src"])
        else:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.text += data


def pixels(source):
    """The image of a data URI, by the PNG standard."""
    kind, data = source.split(",")
    assert kind == "data:image/png;base64"
    data = base64.b64decode(data)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (n,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + n]
        assert struct.unpack(">I", data[at + 8 + n : at + 12 + n]) == (zlib.crc32(name + body),)
        chunks[name] = body
        at += 12 + n
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *kinds = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert kinds == [8, 6, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)


def image_of(x):
    page = Checker(xnp.asarray(x)._repr_html_())
    assert len(page.images) == 1
    return pixels(page.images[0])


def test_colours():
    rgb = image_of([[-2.0, 0.0, 2.0], [np.nan, np.inf, -np.inf]])[..., :3].tolist()
    assert rgb[0] == [[33, 102, 172], [247, 247, 247], [178, 24, 43]]
    assert rgb[1] == [[255, 0, 255], [0, 255, 255], [0, 0, 0]]
    assert image_of([[1, 2], [3, 5]])[..., :3].tolist()[0] == [[68, 1, 84], [59, 82, 139]]
    assert image_of(np.eye(2, dtype=bool))[0, :, :3].tolist() == [[253, 231, 37], [68, 1, 84]]
    assert len(np.unique(image_of(np.full((3, 3), 7)).reshape(-1, 4), axis=0)) == 1
    # opposite phases have opposite colours; zero is black
    one, other, zero, nan = image_of([1 + 0j, -1 + 0j, 0, complex(np.nan, 0)])[0, :, :3].astype(int)
    assert one[0] == 255 and other[0] == 0 and zero.tolist() == [0, 0, 0] and nan.tolist() == [255, 0, 255]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "int4", "uint8", "int64", "complex64"])
def test_images_of_dtypes(dtype):
    assert image_of(np.arange(6).reshape(2, 3).astype(xnp.dtype(dtype))).shape == (2, 3, 4)


def test_sizes_of_images():
    assert image_of(np.zeros((5, 7))).shape == (5, 7, 4)
    assert image_of(np.zeros((1000, 500))).shape == (128, 64, 4)
    assert image_of(np.zeros((3, 100_000))).shape == (3, 128, 4)
    tiles = image_of(np.ones((4, 5, 6)))  # two by two, a transparent line between them
    assert tiles.shape == (11, 13, 4)
    assert not tiles[5].any() and not tiles[:, 6].any() and (tiles[..., 3] == 255).sum() == 4 * 5 * 6
    assert max(image_of(np.ones((30, 20, 200, 200))).shape) < 200
    assert image_of(np.ones(1000, bool)).shape == (1, 400, 4)


def test_curves():
    x = np.sin(np.linspace(0, 9, 100_000))
    x[1234], x[50_000], x[70_000] = np.nan, np.inf, -np.inf
    page = xnp.asarray(x)._repr_html_()
    found = Checker(page)
    assert found.tags["svg"] == 1 and not found.images and len(page) < 20_000
    for name, place in {"rgb(255, 0, 255)": 1234, "rgb(0, 255, 255)": 50_000, "rgb(0, 0, 0)": 70_000}.items():
        at = float(re.search(rf'd="M([\d.]+) [\dV. ]+" stroke="{re.escape(name)}"', page)[1])
        assert abs(at - (4 + 252 * place / 99_999)) < 1
    assert "NaN" not in xnp.asarray(np.ones(5))._repr_html_()
    for edge in ([1e308, -1e308], [np.nan, np.nan], [1, 1, 1], np.uint64([0, 2**64 - 1]), [-np.inf, 0.0]):
        page = xnp.asarray(edge)._repr_html_()
        assert Checker(page).tags["svg"] == 1
        assert not re.search(r'd="[^"]*(nan|inf)', page)


def entries(x):
    return display.statistics(xnp.asarray(x)).entries


def test_statistics():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 40))
    assert entries(x) == {
        "min": f"{x.min():.4g}", "mean": f"{x.mean():.4g}", "max": f"{x.max():.4g}", "std": f"{x.std():.4g}"
    }  # fmt: skip
    x[0, :3], x[1, :2], x[2, 0], x[3, :7] = np.nan, np.inf, -np.inf, 0
    finite = x[np.isfinite(x)]
    assert entries(x) == {
        "min": f"{finite.min():.4g}", "mean": f"{finite.mean():.4g}", "max": f"{finite.max():.4g}",
        "std": f"{finite.std():.4g}", "zeros": "7", "NaN": "3", "inf": "3",
    }  # fmt: skip
    assert entries([True, False, True]) == {"true": "2", "share": "0.667"}
    assert entries(np.int64([2**62, -3, 0]))["max"] == str(2**62)
    assert entries([3 + 4j, 0])["max |x|"] == "5" and entries([3 + 4j, 0])["zeros"] == "1"
    assert entries(np.full(3, np.nan)) == {"NaN": "3"}
    assert entries(np.array([300, 300], "float16"))["mean"] == "300"  # the sum would be right in float64 alone
    assert entries(np.array([1e300, -1e300]))["std"] == "inf"


@pytest.mark.parametrize("shape", [(3000, 2000), (1 << 21,), (2, 3, 1000, 1024)])
def test_large_arrays_are_sampled(monkeypatch, shape):
    taken = []
    pick = text.pick
    monkeypatch.setattr(text, "pick", lambda x, index: (taken.append((out := pick(x, index)).size), out)[1])
    x = np.random.default_rng(0).uniform(size=shape)
    found = display.statistics(x)
    assert found.sample == display.SAMPLE and float(found.entries["mean"]) == pytest.approx(0.5, abs=0.01)
    assert f"of {display.SAMPLE:,} of {x.size:,} elements" in xnp.asarray(x)._repr_html_()
    assert sum(taken) <= 2 * display.EXACT


def test_the_sample_of_a_periodic_array_is_fair():
    x = np.zeros((1 << 12, 1 << 10))
    x[:, 0] = 1024
    assert float(display.statistics(x).entries["mean"]) == pytest.approx(1.0, rel=0.1)


def test_html_of_arrays():
    page = Checker(xnp.asarray(np.arange(6.0).reshape(2, 3))._repr_html_())
    assert "Array float64[2, 3] · 48 B" in page.text and "[3. 4. 5.]" in page.text
    scalar = Checker(xnp.asarray(2.0)._repr_html_())
    assert "weak type" in scalar.text and "2.0" in scalar.text and not scalar.images and not scalar.tags["svg"]
    assert "empty" in Checker(xnp.zeros((0, 3))._repr_html_()).text
    assert "device cpu:2" in xform.device_put(ONES, xform.devices()[2])._repr_html_()
    assert "sharding axis 0 over cpu:0-1" in xform.pmap(lambda x: x)(ONES)._repr_html_()
    with np.printoptions(threshold=10**9):
        assert len(xnp.ones(100_000)._repr_html_()) < 20_000


def test_html_in_transformations():
    pages = []

    def f(x):
        pages.append(xform.visualize({"x": x, "y": [xnp.ones(20)]})._repr_html_())
        return (x * x).sum()

    xform.grad(f)(ONES)
    xform.jit(xform.vmap(f))(np.ones((2, 3)))
    assert [Checker(p).text.split("'x'] ")[1][:6] for p in pages] == ["Traced", "Traced"]


# ---- Pytrees -----------------------------------------------------------------------------------------------

Point = collections.namedtuple("Point", "x y")


class Odd:
    def __repr__(self):
        return "<Odd\n & 'long' " + 200 * "-" + ">"


def test_visualize():
    value = {
        "a": [xnp.eye(4), np.arange(3)], "p": Point(1.5, None), "k": random.key(0), "o": Odd(), "e": {}, "s": "<b>",
        "big": np.arange(20, dtype=np.int32),
    }  # fmt: skip
    lines = repr(xform.visualize(value)).split("\n")
    assert lines == [
        "dict",
        "    ['a']: list",
        "        [0]: f64[4,4] min 0, mean 0.25, max 1, std 0.433, zeros 12",
        "        [1]: i64[3] [0 1 2]",
        "    ['big']: i32[20] min 0, mean 9.5, max 19, std 5.766, zeros 1",
        "    ['e']: dict",
        "    ['k']: Array((), dtype=key<fry>) overlaying: [0 0]",
        f"    ['o']: <Odd & 'long' {83 * '-'}...",
        "    ['p']: Point",
        "        .x: 1.5",
        "        .y: None",
        "    ['s']: '<b>'",
    ]
    page = xform.visualize(value)._repr_html_()
    found = Checker(page)
    assert "<b>'" not in page.replace("<b>int", "") and "<Odd & 'long'" in found.text and "'<b>'" in found.text
    assert len(found.images) == 1 and found.tags["svg"] == 1
    assert repr(xform.visualize(xnp.ones(2))) == "f64[2] [1. 1.]"
    assert repr(xform.visualize(None)) == "None"


def test_names_are_escaped():
    page = xform.visualize({"<script>": {"a&b": "<img src=x>"}, 'q"': Odd()})._repr_html_()
    assert "<script" not in page and "<img" not in page
    assert "['<script>']" in Checker(page).text


def test_large_trees_are_cut():
    many = list(range(100_000))
    lines = repr(xform.visualize({"a": many, "b": 1})).split("\n")
    assert len(lines) < display.NODES + 10 and lines[-2].strip() == "... 99,001 more"
    pages = Checker(xform.visualize([np.ones((20, 20))] * 200)._repr_html_())
    assert len(pages.images) == display.PICTURES


def test_other_dtypes_print_as_they_are():
    value = np.array(["a"]), np.array([object()]), np.zeros(2, xform.dtypes.float0), np.zeros(2, ">f8")
    assert len(repr(xform.visualize(value)).split("\n")) == 5
    Checker(xform.visualize(value)._repr_html_())


def test_nothing_of_it_is_imported_before_it_is_needed():
    code = "import sys, xform, xform.numpy as xnp; repr(xnp.ones(3)); print('xform.numpy.display' in sys.modules, "
    code += "'jaxlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
