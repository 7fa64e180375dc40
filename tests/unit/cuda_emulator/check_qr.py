# SPDX-License-Identifier: Apache-2.0
"""qr in blocks of rows, its kernels launched on the emulator level by level, against NumPy in double: columns that are orthonormal, a = q r, the r of
NumPy where columns are independent; of a condition of 1e12, of columns that depend on others or are 0, of numbers whose squares leave the
range of the type, and the same bits in every order of threads.

check_qr.py EMULATOR QR
"""
import ctypes
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "conformance"))
from numpy_gantry import np  # noqa: E402

rng = np.random.default_rng(8)
emulator = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(sys.argv[2])
emulator.emulator_find.restype = ctypes.c_void_p
THREADS, MOST_ROWS = 512, 1024


class Extents(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("early", ctypes.c_int)]


def launch(name, blocks, *values):
    kernel = emulator.emulator_find(name.encode())
    assert kernel, f"no kernel {name}"
    extents = Extents((ctypes.c_uint * 3)(blocks, 1, 1), (ctypes.c_uint * 3)(THREADS, 1, 1), 0)
    params = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
    error = ctypes.create_string_buffer(240)
    code = emulator.emulator_run(ctypes.c_void_p(kernel), ctypes.byref(extents), params, ctypes.c_uint64(int(rng.integers(1 << 30))), error,
                                 ctypes.c_size_t(240))
    assert code == 0, f"{name}: {error.value.decode()}"


def at(array):
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


def factor(a):
    """As plain_qr.c does: a block of rows a block of threads, then the stack of their triangles."""
    n, size, suffix = a.shape[1], a.dtype.itemsize, "f32" if a.dtype == np.float32 else "f64"
    most = min(MOST_ROWS, 32 * 256 // size // (1 if n <= 16 else 2 if n <= 32 else 4))
    sign, matrix, levels = np.full(n, np.nan, a.dtype), a, []
    while True:
        rows = matrix.shape[0]
        blocks = -(-rows // most)
        v, tau = np.full((blocks, n, most), np.nan, a.dtype), np.full((blocks, n), np.nan, a.dtype)
        r = np.full((blocks * n, n), np.nan, a.dtype)
        launch("qr_fold_" + suffix, blocks, at(matrix), ctypes.c_int64(rows), ctypes.c_int32(n), at(v), at(tau), at(r), at(sign if blocks == 1 else None))
        levels.append((rows, blocks, v, tau))
        matrix = r
        if blocks == 1:
            break
    below = None
    for rows, blocks, v, tau in reversed(levels):
        q = np.full((rows + 1, n), 7, a.dtype)
        launch("qr_unfold_" + suffix, blocks, at(below), at(v), at(tau), at(sign), ctypes.c_int64(rows), ctypes.c_int32(n), at(q))
        assert (q[rows] == 7).all(), "a row behind the matrix was written"
        below = np.ascontiguousarray(q[:rows])
    return below, r


def check(a, what, is_only=False):
    q, r = factor(a)
    rows, n = a.shape
    scale = float(np.abs(a).max()) or 1.0
    unit = float(np.finfo(a.dtype).eps)
    wide, Q, R = a.astype(float) / scale, q.astype(float), r.astype(float) / scale
    name = f"{a.dtype} {rows} x {n} {what}"
    assert np.isfinite(Q).all() and np.isfinite(R).all(), f"{name}: no numbers"
    apart = np.abs(Q.T @ Q - np.eye(n)).max()
    assert apart <= 8 * n ** 0.5 * unit, f"{name}: columns of q are {apart / unit:.1f} u from orthonormal"
    apart = np.linalg.norm(Q @ R - wide, axis=0).max() / max(np.linalg.norm(wide, axis=0).max(), 1e-300)
    assert apart <= 8 * n ** 0.5 * unit, f"{name}: q r is {apart / unit:.1f} u from a"
    assert (np.tril(r, -1) == 0).all() and (np.diag(r) >= 0).all(), f"{name}: r is no triangle with a diagonal that is not negative"
    if is_only:
        want = np.linalg.qr(wide)[1]
        want *= np.where(np.diag(want) < 0, -1, 1)[:, None]
        np.testing.assert_allclose(R, want, rtol=0, atol=16 * n * unit * np.linalg.norm(wide, 2) * np.linalg.cond(wide), err_msg=name)
    return q, r


def main():
    count = 0
    for dtype in (np.float32, np.float64):
        least = 5 if dtype == np.float32 else 12
        huge = dtype(1e25 if dtype == np.float32 else 1e200)
        for rows, n in [(4, 1), (9, 2), (1025, 1), (3000, 3), (700, 16), (2100, 17), (600, 32), (260, 33), (1030, 64)]:
            a = rng.normal(size=(rows, n))
            q, r = check(a.astype(dtype), "normal", True)
            count += 1
            if n not in (16, 33):
                continue
            again = factor(a.astype(dtype))
            assert q.tobytes() == again[0].tobytes() and r.tobytes() == again[1].tobytes(), "other bits in another order"
            spread = np.linalg.qr(rng.normal(size=(n, n)))[0] * np.logspace(0, -least, n)
            check((a @ spread).astype(dtype), f"of condition 1e{least}")
            b = a.copy()
            b[:, n // 2] = b[:, 0]
            b[:, n - 1] = 0
            b[rows // 3:rows // 2] = 0
            check(b.astype(dtype), "whose columns depend on each other")
            check(a.astype(dtype) * huge, "of large numbers", True)
            check(a.astype(dtype) / huge, "of small numbers", True)
            check((a * np.where(np.arange(n) % 2, 1.0, 1 / float(huge))).astype(dtype), "of large and small columns")
            check(-np.triu(np.abs(a)).astype(dtype), "that is a triangle", True)
            check(np.zeros((rows, n), dtype), "of zeros")
            count += 8
    print(f"{count} factorisations")


main()
