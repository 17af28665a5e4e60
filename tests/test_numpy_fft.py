"""`xform.numpy.fft` against NumPy: all functions, lengths, axes and norms, eager and compiled; and its derivatives."""

import numpy as np
import pytest

import xform
import xform.numpy as xnp
from xform.test_util import check_grads

NORMS = (None, "backward", "ortho", "forward")


def values(rng, shape, dtype):
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def check(name, x, *args, **kwargs):
    want = getattr(np.fft, name)(x, *args, **kwargs)
    function = getattr(xnp.fft, name)
    eps = np.finfo(want.dtype).eps
    for got in (function(x, *args, **kwargs), xform.jit(lambda x: function(x, *args, **kwargs))(x)):
        assert isinstance(got, xform.Array)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=20 * eps, atol=20 * eps * abs(want).max())


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_one_axis(name, rng):
    real = name in ("rfft", "ihfft")
    for dtype in ("float32", "float64") if real else ("float64", "complex64", "complex128"):
        check(name, values(rng, (3, 5), dtype))
    x = values(rng, (4, 6), float if real else complex)
    for norm in NORMS:
        check(name, x, norm=norm)
    for n in (1, 3, 8):
        check(name, x, n)
    check(name, x, axis=0)
    check(name, x, 5, 0, "ortho")


@pytest.mark.parametrize("name", ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"])
def test_several_axes(name, rng):
    x = values(rng, (2, 3, 4), float if name.startswith("rfft") else complex)
    for norm in NORMS:
        check(name, x, norm=norm)
    check(name, x, axes=(2, 0))
    check(name, x, (5, 2), (0, 1))
    check(name, x, s=(2, 6), axes=(-1, -2))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_more_than_three_axes(name, rng):
    check(name, values(rng, (2, 3, 2, 4, 3), float if name == "rfftn" else complex))


def test_integers_and_half_precision():
    assert xnp.fft.fft(np.arange(4)).dtype == np.complex128
    np.testing.assert_allclose(xnp.fft.rfft([1, 2, 3]), np.fft.rfft([1, 2, 3]))
    assert xnp.fft.fft(xnp.ones(4, xnp.bfloat16)).dtype == np.complex64


def test_frequencies_and_shifts(rng):
    for n in (1, 2, 5, 8):
        np.testing.assert_allclose(xnp.fft.fftfreq(n, 0.1), np.fft.fftfreq(n, 0.1), rtol=1e-15)
        np.testing.assert_allclose(xnp.fft.rfftfreq(n, 0.1), np.fft.rfftfreq(n, 0.1), rtol=1e-15)
    assert xnp.fft.fftfreq(4, dtype=np.float32).dtype == np.float32
    x = rng.standard_normal((4, 5))
    for axes in (None, 0, (0, 1), (-1,), (), (0, 0), (1, 0, -1)):
        for ours, theirs in ((xnp.fft.fftshift, np.fft.fftshift), (xnp.fft.ifftshift, np.fft.ifftshift)):
            np.testing.assert_array_equal(ours(xnp.asarray(x), axes), theirs(x, axes))
            np.testing.assert_array_equal(xform.jit(lambda x, ours=ours, axes=axes: ours(x, axes))(x), theirs(x, axes))
    for axes in (None, ()):  # NumPy's code happens to fail
        assert xnp.fft.fftshift(xnp.asarray(np.float64(3)), axes) == 3
    with pytest.raises(IndexError, match="axis 0 is out of bounds for array of dimension 0"):
        xnp.fft.fftshift(np.float64(3), 0)


def test_gradient_of_the_power_is_that_of_parsevals_theorem(rng):
    for n in (6, 7):
        x = rng.standard_normal(n)
        gradient = xform.grad(lambda x: xnp.sum(abs(xnp.fft.fft(x)) ** 2))(x)
        assert gradient.dtype == np.float64
        np.testing.assert_allclose(gradient, 2 * n * x, rtol=1e-12)
        gradient = xform.grad(lambda x, n=n: xnp.sum(xnp.fft.irfft(xnp.fft.rfft(x), n) ** 2))(x)
        np.testing.assert_allclose(gradient, 2 * x, rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_derivatives(n, rng):
    x, z = rng.standard_normal((2, n)), values(rng, (2, n), complex)
    check_grads(lambda x: xnp.fft.rfft(x, n + 1) ** 2, (x,), 2)
    check_grads(lambda x: xnp.fft.rfft2(x, norm="ortho"), (x,), 1)
    check_grads(lambda z: xnp.fft.irfft(z, n) ** 2, (z,), 2)
    check_grads(lambda z: xnp.fft.hfft(z, n), (z,), 1)
    check_grads(lambda z: xnp.fft.ifft2(z, (3, n)) ** 2, (z,), 2)


def test_vmap_along_each_axis(rng):
    x = rng.standard_normal((3, 4, 5))
    for axis in range(3):
        got = xform.vmap(xnp.fft.rfft2, axis)(x)
        np.testing.assert_allclose(got, np.fft.rfft2(np.moveaxis(x, axis, 0)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: xnp.fft.fft(np.ones(3), norm="unit"), ValueError, r"numpy\.fft\.fft: invalid norm value .*'unit'"),
        (lambda: xnp.fft.rfft(np.ones(3, complex)), TypeError, r"numpy\.fft\.rfft: a must be real, got c128\[3\]"),
        (lambda: xnp.fft.fft(np.ones(3), 0), ValueError, r"numpy\.fft\.fft: invalid number of FFT data points \(0\)"),
        (lambda: xnp.fft.fft(np.ones(3), axis=1), IndexError, r"numpy\.fft\.fft: axes: axis 1 is out of bounds"),
        (
            lambda: xnp.fft.fft(np.ones(3), axis=(0,)),
            TypeError,
            r"numpy\.fft\.fft: axis must be an integer, got \(0,\)",
        ),
        (
            lambda: xnp.fft.fftn(np.ones((3, 3)), (1, 2, 3)),
            ValueError,
            r"numpy\.fft\.fftn: s has 3 .*\[3,3\]",
        ),
        (lambda: xnp.fft.fftn(np.ones((3, 3)), (1, 2), (0,)), ValueError, "shape and axes have different lengths"),
        (lambda: xnp.fft.irfft(np.ones(1)), ValueError, r"numpy\.fft\.irfft: invalid number of FFT data points"),
        (lambda: xnp.fft.fftfreq(0), ZeroDivisionError, r"numpy\.fft\.fftfreq: n must be positive"),
        (lambda: xnp.fft.rfftn(np.float64(1)), ValueError, r"numpy\.fft\.rfftn: needs an axis"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
