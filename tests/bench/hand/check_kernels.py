# SPDX-License-Identifier: Apache-2.0
"""The CUDA code of lu.json and attention.json against NumPy, emulated (tests/support/cuda_emulator), launched as the graphs say.

check_kernels.py EMULATOR LIBRARY...
"""
import ctypes
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
from numpy_gantry import from_bf16, np, to_bf16  # noqa: E402

rng = np.random.default_rng(5)
emulator = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
libraries = [ctypes.CDLL(path) for path in sys.argv[2:]]
emulator.emulator_find.restype = ctypes.c_void_p
WIDTH = 32


class Extents(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("early", ctypes.c_int)]


def launch(name, grid, block, *args):
    """Arrays and whole numbers, as the function takes them; every launch has another order of threads."""
    if 0 in grid:
        return
    kernel = emulator.emulator_find(name.encode())
    assert kernel, f"no kernel {name}"
    extents = Extents((ctypes.c_uint * 3)(*(grid + [1, 1])[:3]), (ctypes.c_uint * 3)(*(block + [1, 1])[:3]), 0)
    values = [ctypes.c_void_p(arg.ctypes.data) if isinstance(arg, np.ndarray) else ctypes.c_int64(arg) for arg in args]
    params = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    error = ctypes.create_string_buffer(240)
    code = emulator.emulator_run(ctypes.c_void_p(kernel), ctypes.byref(extents), params, ctypes.c_uint64(int(rng.integers(1 << 30))),
                                 error, ctypes.c_size_t(240))
    assert code == 0, f"{name}: {error.value.decode()}"


def lu(n, dtype, kind, close):
    a = (rng.random((n, n)) + n * np.eye(n)).astype(kind)
    want = a.astype(float)
    for k in range(n):
        want[k + 1:, k] /= want[k, k]
        want[k + 1:, k + 1:] -= np.outer(want[k + 1:, k], want[k, k + 1:])
    for at in range(0, n, WIDTH):
        left = max(0, n - at - WIDTH)
        launch(f"lu_diagonal_{dtype}", [1], [32, 32], a, at, n)
        launch(f"lu_edges_{dtype}", [-(-2 * left // 64)], [64], a, at, n)
        launch(f"lu_rest_{dtype}", [-(-left // 32)] * 2, [32, 8], a, at, n)
    np.testing.assert_allclose(a, want, rtol=0, atol=close * n)
    lower, upper = np.full_like(a, -1), np.full_like(a, -1)
    launch(f"lu_split_{dtype}", [-(-n // 32)] * 2, [32, 8], a, lower, upper, n)
    np.testing.assert_array_equal(lower, np.tril(a, -1) + np.eye(n, dtype=kind))
    np.testing.assert_array_equal(upper, np.triu(a).T)


def softmax(columns, dtype):
    rows, x = 3, (8 * rng.random((3, columns)) - 4).astype(np.float32)
    if dtype == "bf16":
        held = to_bf16(x)
        x = from_bf16(held)
    else:
        held = x.copy()
    want = np.exp(x.astype(float) - x.max(1, keepdims=True))
    want /= want.sum(1, keepdims=True)
    launch(f"softmax_{dtype}", [rows], [256], held, columns)
    np.testing.assert_allclose(from_bf16(held) if dtype == "bf16" else held, want, rtol=2**-8 if dtype == "bf16" else 1e-5)


for n in (32, 64, 70, 128):
    lu(n, "f64", np.float64, 1e-14)
    lu(n, "f32", np.float32, 1e-6)
for columns in (1, 20, 256, 700):
    softmax(columns, "f32")
    softmax(columns, "bf16")
print("lu and softmax: passed")
