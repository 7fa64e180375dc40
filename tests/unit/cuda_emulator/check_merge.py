# SPDX-License-Identifier: Apache-2.0
"""merge against NumPy's stable order, its kernels launched on the emulator: keys of all sizes with many equal ones, pieces that begin
anywhere and end within a tile, and nothing stored beside the result.

check_merge.py EMULATOR MERGE
"""
import ctypes
import itertools
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
from numpy_gantry import np  # noqa: E402

rng = np.random.default_rng(3)
emulator = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(sys.argv[2])
emulator.emulator_find.restype = ctypes.c_void_p
TILE = 2048
KEYS = {"i8": ("u8", np.int8, 0), "u8": ("u8", np.uint8, 0), "f16": ("f16", np.float16, 0x7c00), "i32": ("u32", np.int32, 0),
        "f32": ("u32", np.float32, 0x7f800000), "u64": ("u64", np.uint64, 0), "f64": ("u64", np.float64, 0x7ff0000000000000)}


class Extents(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("early", ctypes.c_int)]


class Merging(ctypes.Structure):
    """merging of kernels/merge/merge_launch.c, the order of kernels/radix.h before it."""
    _fields_ = [("infinity", ctypes.c_uint64), ("is_signed", ctypes.c_int32), ("descending", ctypes.c_int32),
                *((name, ctypes.c_int64) for name in ("xs", "ys", "zs", "first"))]


def launch(name, blocks, *values):
    kernel = emulator.emulator_find(name.encode())
    assert kernel, f"no kernel {name}"
    extents = Extents((ctypes.c_uint * 3)(blocks, 1, 1), (ctypes.c_uint * 3)(256, 1, 1), 0)
    params = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    error = ctypes.create_string_buffer(240)
    code = emulator.emulator_run(ctypes.c_void_p(kernel), ctypes.byref(extents), params, ctypes.c_uint64(int(rng.integers(1 << 30))), error,
                                 ctypes.c_size_t(240))
    assert code == 0, f"{name}: {error.value.decode()}"


def ranks(x, descending):
    return len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1] if descending else np.argsort(x, kind="stable")


def keys(dtype, n):
    x = rng.integers(0, 50, n).astype(dtype)
    if x.dtype.kind == "f":
        odd = np.array([0, -0.0, np.inf, -np.inf, np.nan, -3, 1e-3], dtype)
        x = np.where(rng.random(n) < 0.3, odd[rng.integers(0, len(odd), n)], x).astype(dtype)
    elif x.dtype.kind == "i":
        x -= 25
    return x


SIZES = [(1, 1, 2, 0), (3, 2, 1, 4), (TILE, TILE, 2 * TILE, 0), (5000, 4, 4999, 5), (2, 6001, 6003, 0), (3000, 3000, 2049, 1777)]
count = 0
for (name, (suffix, dtype, infinity)), (m, n, z, first), descending in itertools.product(KEYS.items(), SIZES, (0, 1)):
    x, y = (a[ranks(a, descending)] for a in (keys(dtype, m), keys(dtype, n)))
    both = np.concatenate([x, y])
    want = both[ranks(both, descending)][first:first + z]
    room = np.full(z + 16, 7, dtype)
    numbers = Merging(infinity, np.dtype(dtype).kind == "i", descending, m, n, z, first)
    launch(f"merge_{suffix}", -(-z // TILE), *(ctypes.c_void_p(a.ctypes.data) for a in (x, y, room[8:])), numbers)
    bits = np.dtype(f"u{room.itemsize}")
    assert (room[8:8 + z].view(bits) == want.view(bits)).all(), f"{name} {(m, n, z, first)} {descending}: wrong"
    assert (room[:8] == 7).all() and (room[8 + z:] == 7).all(), f"{name}: stores beside the result"
    count += 1
print(f"{count} merges passed")
