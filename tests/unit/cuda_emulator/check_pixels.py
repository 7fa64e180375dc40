# SPDX-License-Identifier: Apache-2.0
"""The gradient of a convolution by few weights in f32 on tensor cores, launched on the emulator, against NumPy in double: strides, padding wider
and narrower than windows, rows that are no multiples of what a block takes, more channels of y than it has.

check_pixels.py EMULATOR CONV2D_GRAD_W
"""
import ctypes
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
from numpy_gantry import np  # noqa: E402

rng = np.random.default_rng(11)
emulator = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(sys.argv[2])
emulator.emulator_find.restype = ctypes.c_void_p
CLOSE = 2e-6  # of the largest result


class Extents(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("early", ctypes.c_int)]


class Conv(ctypes.Structure):
    """gy_conv of kernels/conv2d/conv2d.h."""
    _fields_ = [(name, ctypes.c_int32) for name in ("images", "channels", "height", "width", "results", "high", "wide", "window_height",
                                                    "window_width", "stride", "pad", "adds")]


def launch(name, across, down, *values):
    kernel = emulator.emulator_find(name.encode())
    assert kernel, f"no kernel {name}"
    extents = Extents((ctypes.c_uint * 3)(across, down, 1), (ctypes.c_uint * 3)(256, 1, 1), 0)
    params = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    error = ctypes.create_string_buffer(240)
    code = emulator.emulator_run(ctypes.c_void_p(kernel), ctypes.byref(extents), params, ctypes.c_uint64(int(rng.integers(1 << 30))), error,
                                 ctypes.c_size_t(240))
    assert code == 0, f"{name}: {error.value.decode()}"


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def gradient(x, dy, shape, stride, pad):
    """dw[i, c, a, b] is the sum over images and pixels of dy times the pixel of x that the window's element lies on."""
    high, wide = dy.shape[2:]
    x = np.pad(x.astype(float), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    dw = np.zeros(shape)
    for a in range(shape[2]):
        for b in range(shape[3]):
            lies_on = x[:, :, a:a + stride * (high - 1) + 1:stride, b:b + stride * (wide - 1) + 1:stride]
            dw[:, :, a, b] = np.einsum("nihw,nchw->ic", dy.astype(float), lies_on)
    return dw


def check(images, channels, height, width, results, window, stride, pad, pieces):
    what = f"{images} images of {channels} x {height} x {width}, {results} windows {window}, stride {stride}, pad {pad}, {pieces} pieces"
    high, wide = ((size + 2 * pad - side) // stride + 1 for size, side in zip((height, width), window))
    x, dy = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((images, channels, height, width), (images, results, high, wide)))
    c = Conv(images, channels, height, width, results, high, wide, *window, stride, pad, 0)
    units, columns = images * high * -(-wide // 64), channels * window[0] * window[1]
    each = -(-units // pieces)
    pieces = -(-units // each)
    sums = np.full((pieces, results, columns), np.nan, np.float32)
    before = rng.uniform(-1, 1, (results, channels, *window)).astype(np.float32)
    dw = before.copy()
    launch("conv2d_grad_w_pixels_f32", -(-results // 64), pieces, c, ctypes.c_int32(each), pointer(x), pointer(dy), pointer(sums))
    launch("conv2d_grad_w_sum_f32", -(-results * columns // 32), 1, ctypes.c_int32(results * columns), ctypes.c_int32(pieces), pointer(sums), pointer(dw))
    want = gradient(x, dy, dw.shape, stride, pad) + before
    error = np.abs(dw - want).max() / np.abs(want).max()
    assert error < CLOSE, f"{what}: wrong by {error:.2g} of the largest"


def main():
    cases = [(1, 1, 1, 1, 1, (1, 1), 1, 0, 1), (2, 3, 20, 37, 64, (7, 7), 1, 3, 5), (1, 3, 9, 140, 70, (7, 7), 2, 3, 3), (3, 8, 7, 66, 33, (3, 3), 1, 1, 4),
             (1, 21, 6, 5, 40, (3, 3), 1, 0, 2), (2, 2, 5, 64, 130, (1, 9), 3, 5, 7), (1, 16, 8, 33, 64, (2, 6), 1, 2, 1)]
    for case in cases:
        check(*case)
    print(f"{len(cases)} gradients by few weights")


main()
