"""Fourier transforms."""

import numpy as np
from hypothesis import strategies as st

from tests.numpy_drawn.record import ALL, FLOATS, Call, Function, Wrong, arrays, axes, axis, shapes

A = np.ones((2, 3))
C = np.ones((2, 3), complex)
REAL = ("bool", "int8", "int64", "uint8", *FLOATS)
NORMS = st.sampled_from((None, "backward", "ortho", "forward"))


@st.composite
def one_axis(draw, dtypes=ALL, least=1):
    shape = list(draw(shapes(1, 3, st.integers(least, 6))))
    d = draw(axis(len(shape)))
    if len(shape) > 1 and not draw(st.integers(0, 5)):
        shape[d % len(shape) - 1] = 0
    x = draw(arrays(shape=tuple(shape), dtypes=dtypes))
    kwargs = {"axis": d, "norm": draw(NORMS)}
    if draw(st.booleans()):
        kwargs["n"] = draw(st.integers(1, 8))
    return Call((x,), kwargs)


@st.composite
def several_axes(draw, dtypes=ALL, two=False, least=1):
    x = draw(arrays(shape=shapes(2 if two else 1, 4, st.integers(least, 4)), dtypes=dtypes))
    kwargs = {"norm": draw(NORMS)}
    if draw(st.booleans()):
        count = 2 if two else draw(st.integers(1, x.ndim))
        chosen = draw(st.permutations(range(x.ndim)))[:count]
        kwargs["axes"] = tuple(d - x.ndim if draw(st.booleans()) else d for d in chosen)
        if draw(st.booleans()):
            kwargs["s"] = tuple(draw(st.integers(1, 5)) for _ in range(count))
    return Call((x,), kwargs)


@st.composite
def shifts(draw):
    x = draw(arrays(shape=shapes(1)))
    return Call((x,), {"axes": draw(axes(x.ndim))})


frequencies = st.tuples(st.integers(1, 9), st.sampled_from((1.0, 0.25, 3))).map(lambda a: Call(a, fixed=(0, 1)))


def of_one(name, real=False):
    function = lambda np: getattr(np.fft, name)  # noqa: E731
    return [
        Wrong(lambda np: function(np)(A, axis=3), IndexError, rf"fft\.{name}.*axis 3 is out of bounds.*f64\[2,3\]"),
        Wrong(
            lambda np: function(np)(A, n=0),
            ValueError,
            rf"fft\.{name}: [iI]nvalid number of FFT data points \(0\).*f64\[2,3\]",
        ),
        Wrong(lambda np: function(np)(A, n=2.5), TypeError, rf"fft\.{name}.*2\.5"),
        Wrong(
            lambda np: function(np)(A, norm="x"),
            ValueError,
            rf"fft\.{name}.*[iI]nvalid norm value 'x'.*backward.*ortho.*forward",
        ),
        Wrong(lambda np: function(np)(1.0), IndexError, rf"fft\.{name}.*f64\[\]|fft\.{name}.*1\.0"),
        Wrong(lambda np: function(np)(A, axis=(0, 1)), TypeError, rf"fft\.{name}.*axis.*integer.*\(0, 1\)"),
    ] + ([Wrong(lambda np: function(np)(C), TypeError, rf"fft\.{name}.*real.*c128\[2,3\]")] if real else [])


def of_several(name, real=False):
    function = lambda np: getattr(np.fft, name)  # noqa: E731
    return [
        Wrong(
            lambda np: function(np)(A, axes=(0, 3)), IndexError, rf"fft\.{name}.*axis 3 is out of bounds.*f64\[2,3\]"
        ),
        Wrong(
            lambda np: function(np)(A, s=(2,), axes=(0, 1)),
            ValueError,
            rf"fft\.{name}: [sS]hape and axes have different lengths",
        ),
        Wrong(
            lambda np: function(np)(A, s=(0, 2), axes=(0, 1)),
            ValueError,
            rf"fft\.{name}: [iI]nvalid number of FFT data points \(0\)",
        ),
        Wrong(lambda np: function(np)(A, norm="x"), ValueError, rf"fft\.{name}.*[iI]nvalid norm value 'x'"),
    ] + ([Wrong(lambda np: function(np)(C), TypeError, rf"fft\.{name}.*real.*c128\[2,3\]")] if real else [])


FUNCTIONS = [
    *(Function(f"fft.{n}", one_axis(), tolerance=64, errors=of_one(n)) for n in ("fft", "ifft")),
    *(Function(f"fft.{n}", one_axis(REAL), tolerance=64, errors=of_one(n, True)) for n in ("rfft", "ihfft")),
    *(Function(f"fft.{n}", one_axis(least=2), tolerance=64, errors=of_one(n)) for n in ("irfft", "hfft")),
    *(Function(f"fft.{n}", several_axes(), tolerance=64, errors=of_several(n)) for n in ("fftn", "ifftn")),
    *(Function(f"fft.{n}", several_axes(two=True), tolerance=64, errors=of_several(n)) for n in ("fft2", "ifft2")),
    Function("fft.rfftn", several_axes(REAL), tolerance=64, errors=of_several("rfftn", True)),
    Function("fft.rfft2", several_axes(REAL, True), tolerance=64, errors=of_several("rfft2", True)),
    Function("fft.irfftn", several_axes(least=2), tolerance=64, errors=of_several("irfftn")),
    Function("fft.irfft2", several_axes(two=True, least=2), tolerance=64, errors=of_several("irfft2")),
    *(
        Function(
            f"fft.{n}",
            shifts(),
            errors=[
                Wrong(
                    lambda np, n=n: getattr(np.fft, n)(A, 3),
                    IndexError,
                    rf"fft\.{n}.*axis 3 is out of bounds.*f64\[2,3\]",
                ),
            ],
        )
        for n in ("fftshift", "ifftshift")
    ),
    *(
        Function(
            f"fft.{n}",
            frequencies,
            errors=[
                Wrong(lambda np, n=n: getattr(np.fft, n)(2.5), ValueError, rf"fft\.{n}: n should be an integer.*2\.5"),
                Wrong(lambda np, n=n: getattr(np.fft, n)(0), ZeroDivisionError, rf"fft\.{n}.*0"),
            ],
        )
        for n in ("fftfreq", "rfftfreq")
    ),
]
