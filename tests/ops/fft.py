"""Fourier transforms."""

import numpy as np

from tests.ops.record import Op, Sample, array
from xform import lax

REFERENCE = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}
SINGLE = {"complex64": 1e-6, "float32": 1e-6, "complex128": 1e-14, "float64": 1e-14}


def reference(x, kind, lengths):
    if not x.size:
        last = lengths[-1] if kind == "IRFFT" else x.shape[-1] // 2 + 1 if kind == "RFFT" else x.shape[-1]
        part = np.finfo(x.dtype).dtype
        return np.zeros((*x.shape[:-1], last), part if kind == "IRFFT" else np.result_type(part, np.complex64))
    return REFERENCE[kind](x, lengths, tuple(range(-len(lengths), 0)))


def samples(*kinds):
    """Even and odd lengths, with and without batches, over one to three axes."""

    def draw(rng, dtype):
        for kind in kinds:
            for batch, lengths in (((), (4,)), ((), (5,)), ((2,), (1,)), ((3,), (2,)), ((0,), (3,)), ((), (3, 4)),
                                   ((2,), (2, 5)), ((), (2, 3, 4)), ((2, 1), (3, 1, 3))):  # fmt: skip
                shape = (*batch, *lengths[:-1], lengths[-1] // 2 + 1 if kind == "IRFFT" else lengths[-1])
                yield Sample((array(rng, dtype, shape), kind, lengths))

    return draw


OPS = [
    Op("fft", lax.fft, samples("FFT", "IFFT", "IRFFT"), reference, ("complex64", "complex128"), rtol=SINGLE, ulps=8,
       errors=[
           (lambda: lax.fft(np.ones(4, complex), "DFT", (4,)), ValueError, "fft: fft_type must be one of .*'DFT'"),
           (lambda: lax.fft(np.ones(4, complex), "FFT", (3,)), ValueError, r"fft of type FFT .*\(3,\), got c128\[4\]"),
           (lambda: lax.fft(np.ones(4, complex), "IRFFT", (4,)), ValueError, r"fft of type IRFFT .* of \(3,\)"),
           (lambda: lax.fft(np.ones(4, complex), "RFFT", (4,)), TypeError, r"fft of type RFFT takes float32"),
           (lambda: lax.fft(np.ones(4, int), "FFT", (4,)), TypeError, r"fft of type FFT takes complex64 .*i64\[4\]"),
           (lambda: lax.fft(np.ones((0,), complex), "FFT", (0,)), ValueError, "fft of type FFT .* positive"),
       ]),
    Op(
        "fft:real", lax.fft, samples("RFFT", "FFT", "IFFT"), reference, ("float32", "float64"), rtol=SINGLE, ulps=8,
        errors=[
            (lambda: lax.fft(np.ones(4, np.float16), "RFFT", (4,)), TypeError, r"fft of type RFFT .*f16\[4\]"),
            (lambda: lax.fft(np.ones((2, 2, 2, 2)), "RFFT", (2,) * 4), ValueError,
             r"fft of type RFFT .*f64\[2,2,2,2\]"),
        ],
    ),
]  # fmt: skip
