# SPDX-License-Identifier: Apache-2.0
"""Every kernel, dtype and a few sizes against NumPy.

check_kernels.py GANTRY [KERNEL ...]
"""
import itertools
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import DTYPES, from_bf16, gantry, np, run, to_bf16  # noqa: E402

FLOATS = ["f16", "bf16", "f32", "f64"]
WIDE = ["f32", "f64"]
ALL = [*FLOATS, "i8", "u8", "i32", "u32", "i64", "u64"]
# Relative error allowed: a few roundings of the type that holds the result.
RTOL = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 1e-5, "f64": 1e-12}
rng = np.random.default_rng(1)


def values(dtype, shape, low=-4, high=4):
    """Random values as NumPy computes with them (bf16: float32 that bf16 holds)."""
    if dtype in FLOATS:
        x = rng.uniform(low, high, shape)
        return from_bf16(to_bf16(x)) if dtype == "bf16" else x.astype(DTYPES[dtype])
    info = np.iinfo(DTYPES[dtype])
    return rng.integers(max(info.min, -50), min(info.max, 50) + 1, shape).astype(DTYPES[dtype])


def wide(dtype, x):
    """What the reference is computed in: double for floats; integers wrap in their own type."""
    return np.asarray(x, np.float64) if dtype in FLOATS else x


class Case:
    """args: name -> ('in' | 'out' | 'inout', dtype, array) or a number; want: name -> (array, rtol or None for equal), or
    (array, 0, atol) for integers that round a real."""

    def __init__(self, kernel, args, want, access=None):
        self.kernel, self.args, self.want, self.access = kernel, args, want, access or {}

    def add_to(self, graph, inputs, outputs, prefix=""):
        args = {}
        for name, a in self.args.items():
            if not isinstance(a, tuple):
                args[name] = a
                continue
            how, dtype, array = a
            args[name] = buffer = prefix + name
            graph["buffers"][buffer] = {"dtype": dtype, "shape": list(array.shape)}
            if how != "out":
                graph["buffers"][buffer]["class"] = "input"
                inputs[buffer] = ("bf16", to_bf16(array)) if dtype == "bf16" else array
            if how != "in":
                graph["buffers"][buffer]["output"] = True
                outputs[buffer] = (dtype, array.shape)
        graph["nodes"].append({"id": prefix + "k", "kernel": self.kernel, "args": args, "access": self.access})

    def hold(self, got, prefix=""):
        for name, (want, rtol, *atol) in self.want.items():
            dtype = self.args[name][1]
            have = from_bf16(got[prefix + name]) if dtype == "bf16" else got[prefix + name]
            if rtol is None:
                np.testing.assert_array_equal(have, want, err_msg=f"{self.kernel} {name} {dtype}")
            else:
                scale = max(1.0, float(np.max(np.abs(want), initial=0, where=np.isfinite(want))))
                np.testing.assert_allclose(np.asarray(have, np.float64), want, rtol=rtol, atol=atol[0] if atol else rtol * scale,
                                           err_msg=f"{self.kernel} {name} {dtype}")

    def run(self, command):
        graph, inputs, outputs = {"gantry": 1, "name": self.kernel, "buffers": {}, "nodes": []}, {}, {}
        self.add_to(graph, inputs, outputs)
        got, _ = run(command, graph, inputs, outputs, ["--devices", "1"])
        self.hold(got)


class Refused(Case):
    """The kernel leaves `want` in its status word, and the error says what that is, with numbers for what its summary names."""

    def run(self, command):
        status, self.want = self.want, {}
        try:
            super().run(command)
        except RuntimeError as error:
            assert re.search(rf"left {status} in the status word: \w[^{{}}\n]*$", str(error), re.M), error
        else:
            raise AssertionError(f"{self.kernel} did not fail")


def elementwise():
    for dtype, n in itertools.product(ALL, [1, 1000]):
        x, y, z = values(dtype, n), values(dtype, n), np.zeros(n, np.float32 if dtype == "bf16" else DTYPES[dtype])
        rtol, own = RTOL.get(dtype), wide(dtype, x).dtype.type
        a, b = (1.5, -0.25) if dtype in FLOATS else (3, 2)
        X, Y = wide(dtype, x), wide(dtype, y)
        with np.errstate(over="ignore"):
            yield Case("copy", {"x": ("in", dtype, x), "y": ("out", dtype, z)}, {"y": (x, None)})
            yield Case("scale", {"a": a, "x": ("in", dtype, x), "y": ("out", dtype, z)}, {"y": (own(a) * X, rtol)})
            yield Case("axpby", {"a": a, "b": b, "x": ("in", dtype, x), "y": ("inout", dtype, y)}, {"y": (own(a) * X + own(b) * Y, rtol)})
            yield Case("saxpy", {"a": a, "x": ("in", dtype, x), "y": ("inout", dtype, y)}, {"y": (own(a) * X + Y, rtol)})
            yield Case("add", {"x": ("in", dtype, x), "y": ("in", dtype, y), "z": ("out", dtype, z)}, {"z": (X + Y, rtol)})
            yield Case("mul", {"x": ("in", dtype, x), "y": ("in", dtype, y), "z": ("out", dtype, z)}, {"z": (X * Y, rtol)})
            yield Case("busy", {"us": 10, "a": a, "x": ("in", dtype, x), "y": ("out", dtype, z)}, {"y": (own(a) * X, rtol)})
        yield Case("fail", {"how": 0, "x": ("in", dtype, x), "y": ("out", dtype, z)}, {"y": (x, None)})
        if dtype in FLOATS:
            yield Case("relu", {"x": ("in", dtype, x), "y": ("out", dtype, z)}, {"y": (np.maximum(x, 0), None)})
            yield Case("relu_grad", {"x": ("in", dtype, x), "dy": ("in", dtype, y), "dx": ("out", dtype, z)}, {"dx": (np.where(x > 0, y, 0), None)})
            yield Case("sgd_update", {"lr": 0.5, "w": ("inout", dtype, x), "g": ("in", dtype, y)}, {"w": (X - 0.5 * Y, rtol)})
            b = values(dtype, 7)
            m = values(dtype, (n, 7))
            yield Case("bias_add", {"x": ("in", dtype, m), "b": ("in", dtype, b), "y": ("out", dtype, np.zeros_like(m))},
                       {"y": (wide(dtype, m) + wide(dtype, b), rtol)})


def reductions():
    for dtype, n in itertools.product(ALL, [1, 5000]):
        x, y = values(dtype, n), values(dtype, n)
        start = values(dtype, 1)
        with np.errstate(over="ignore"):
            total = np.asarray(wide(dtype, x).sum(dtype=wide(dtype, x).dtype) + wide(dtype, start))
        # an error relative to the sum of magnitudes, which is what rounding the last result of a long sum gives
        rtol = RTOL[dtype] * max(1, 4 * n / max(1, abs(float(total[0])))) if dtype in FLOATS else None
        yield Case("reduce_sum", {"x": ("in", dtype, x), "out": ("inout", dtype, start)}, {"out": (total, rtol)})
        yield Case("reduce_max", {"x": ("in", dtype, x), "out": ("inout", dtype, start)}, {"out": (np.maximum(x.max(), start), None)})
        if dtype in FLOATS:
            want = (wide(dtype, x) * wide(dtype, y)).sum() + wide(dtype, start)
            yield Case("dot", {"x": ("in", dtype, x), "y": ("in", dtype, y), "out": ("inout", dtype, start)}, {"out": (want, rtol)})
    x = values("i32", 5000)
    yield Case("reduce_sum", {"x": ("in", "i32", x), "out": ("inout", "i64", np.array([5]))}, {"out": (np.array([x.sum() + 5]), None)})
    x = values("f32", 5000)
    yield Case("reduce_sum", {"x": ("in", "f32", x), "out": ("inout", "f64", np.array([5.0]))}, {"out": (np.array([x.astype(float).sum() + 5]), 1e-9)})
    pixels = rng.integers(0, 256, 10000).astype(np.uint8)
    for dtype in ["i32", "u32", "i64", "u64"]:
        counts = np.arange(256).astype(DTYPES[dtype])
        yield Case("histogram", {"x": ("in", "u8", pixels), "out": ("inout", dtype, counts)},
                   {"out": (counts + np.bincount(pixels, minlength=256).astype(DTYPES[dtype]), None)})


def grids():
    for dtype in ALL:
        for shape in [(1, 1), (33, 70)]:
            x = values(dtype, shape)
            yield Case("transpose", {"x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x.T))}, {"y": (x.T, None)})
        for n, heads, d in [(5, 3, 2), (40, 7, 16), (1, 4, 1)]:
            x = values(dtype, (n, heads * d))
            y = np.ascontiguousarray(x.reshape(n, heads, d).transpose(1, 0, 2))
            yield Case("transpose", {"x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(y))}, {"y": (y, None)})
            yield Case("transpose", {"x": ("in", dtype, y), "y": ("out", dtype, np.zeros_like(x))}, {"y": (x, None)})
        for shape in [(3, 5, 2), (33, 70, 3), (40, 7, 2, 16)]:
            x = values(dtype, shape)
            y = np.ascontiguousarray(x.swapaxes(0, 1))
            yield Case("transpose", {"x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(y))}, {"y": (y, None)})
            yield Case("transpose", {"x": ("in", dtype, x), "y": ("out", dtype, np.zeros((shape[1], y[0].size), y.dtype))}, {"y": (y.reshape(shape[1], -1), None)})
        for b, n, heads, d in [(1, 3, 3, 2), (3, 5, 2, 1), (2, 40, 7, 16), (5, 33, 70, 1), (4, 1, 4, 3), (2, 64, 32, 2)]:
            x = values(dtype, (b, n, heads, d))
            y = np.ascontiguousarray(x.swapaxes(1, 2))
            flat = x.reshape(b * n, heads * d)
            yield Case("transpose", {"axis": 1, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(y))}, {"y": (y, None)})
            yield Case("transpose", {"axis": 1, "x": ("in", dtype, flat), "y": ("out", dtype, np.zeros_like(y))}, {"y": (y, None)})
            yield Case("transpose", {"axis": 1, "x": ("in", dtype, y), "y": ("out", dtype, np.zeros_like(flat))}, {"y": (flat, None)})
    for dtype, shape in itertools.product(WIDE, [(3, 3), (40, 25)]):
        x = values(dtype, shape)
        y = x.copy()
        y[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
        yield Case("jacobi2d", {"x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))}, {"y": (y, RTOL[dtype])})
        x = rng.random((7, 6, 9)).astype(DTYPES[dtype])
        y = x.copy()
        y[1:-1, 1:-1, 1:-1] = (((x[:-2, 1:-1, 1:-1] + x[2:, 1:-1, 1:-1]) + (x[1:-1, :-2, 1:-1] + x[1:-1, 2:, 1:-1])) +
                               (x[1:-1, 1:-1, :-2] + x[1:-1, 1:-1, 2:])) / DTYPES[dtype](6)
        yield Case("jacobi3d", {"x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))}, {"y": (y, RTOL[dtype])})
    for dtype, shape in itertools.product(WIDE, [(1, 1), (2, 5), (3, 3), (4, 3), (20, 25), (1, 4, 3), (3, 3, 3), (7, 6, 9)]):
        x = values(dtype, shape)
        y = (step_matrix(shape).T @ x.astype(np.float64).ravel()).reshape(shape)
        yield Case(f"jacobi{len(shape)}d_grad", {"x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))}, {"y": (y.astype(DTYPES[dtype]), RTOL[dtype])})


def step_matrix(shape):
    """That of a step of Jacobi's method: a row for each element after it."""
    matrix, rank = np.eye(int(np.prod(shape))), len(shape)
    for at in np.ndindex(*shape):
        if all(0 < i < n - 1 for i, n in zip(at, shape)):
            row = np.zeros(shape)
            for axis, by in itertools.product(range(rank), (-1, 1)):
                row[tuple(i + by * (k == axis) for k, i in enumerate(at))] = 1 / (2 * rank)
            matrix[np.ravel_multi_index(at, shape)] = row.ravel()
    return matrix


def blur(image, sigma):
    """Along axes 1 and 2 of [frames, h, w, channels], borders repeated, in double."""
    r = int(np.ceil(3 * sigma))
    k = np.exp(-np.arange(-r, r + 1) ** 2 / (2 * sigma * sigma))
    k /= k.sum()
    for axis in (1, 2):
        pad = [(0, 0)] * 4
        pad[axis] = (r, r)
        wide_image = np.pad(image, pad, mode="edge")
        image = sum(k[i] * np.take(wide_image, range(i, i + image.shape[axis]), axis) for i in range(2 * r + 1))
    return image


def sobel(image):
    p = np.pad(image, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="edge")
    h, w = image.shape[1:3]
    at = lambda y, x: p[:, y:y + h, x:x + w]  # noqa: E731
    gx = at(0, 2) + 2 * at(1, 2) + at(2, 2) - at(0, 0) - 2 * at(1, 0) - at(2, 0)
    gy = at(2, 0) + 2 * at(2, 1) + at(2, 2) - at(0, 0) - 2 * at(0, 1) - at(0, 2)
    return np.sqrt(gx * gx + gy * gy)


def resized(image, axis, size):
    """Linear interpolation by NumPy along one axis, centres of pixels at halves."""
    n = image.shape[axis]
    at = (np.arange(size) + 0.5) * n / size - 0.5
    return np.apply_along_axis(lambda line: np.interp(at, np.arange(n), line), axis, image)


def sizes():
    for dtype, (shape, high, wide_) in itertools.product(["u8", "f32"], [((1, 1, 1), 3, 2), ((2, 9, 11), 9, 11), ((2, 20, 30), 7, 61), ((3, 10, 13, 3), 40, 5)]):
        x = rng.integers(0, 256, shape).astype(DTYPES[dtype])
        want = resized(resized(x.astype(float), 1, high), 2, wide_)
        near = (0, 0.501) if dtype == "u8" else (1e-5,)
        yield Case("resize", {"image": ("in", dtype, x), "out": ("out", dtype, np.zeros(want.shape, DTYPES[dtype]))}, {"out": (want, *near)})


def transposed(filtered, h, v):
    """The matrix of a filter of images of one channel: row p, column q is what pixel q gives to pixel p."""
    units = np.eye(h * v).reshape(h * v, h, v, 1)
    return filtered(units).reshape(h * v, h * v).T


def images():
    for dtype, shape in itertools.product(["u8", "f32"], [(9, 11), (2, 20, 30), (2, 40, 1500, 3), (1, 5, 4, 1)]):
        x = rng.integers(0, 256, shape).astype(DTYPES[dtype])
        full = x.astype(float).reshape((1, *shape, 1) if len(shape) == 2 else (*shape, 1) if len(shape) == 3 else shape)
        near = (0, 0.501) if dtype == "u8" else (1e-5,)  # u8: half a step, and float's error on it
        for sigma in [0.8, 5]:
            want = blur(full, sigma).reshape(shape)
            if dtype == "f32" and full.shape[1] * full.shape[2] < 1000:
                h, v = full.shape[1:3]
                dy = rng.uniform(-1, 1, shape).astype(np.float32)
                back = np.einsum("pq,fpc->fqc", transposed(lambda one: blur(one, sigma), h, v), dy.astype(float).reshape(len(full), h * v, -1))
                yield Case("gaussian_blur_grad", {"sigma": sigma, "dout": ("in", dtype, dy), "dimage": ("out", dtype, np.zeros_like(dy))},
                           {"dimage": (back.reshape(shape), 0, 1e-4)})
            yield Case("gaussian_blur", {"sigma": sigma, "image": ("in", dtype, x), "out": ("out", dtype, np.zeros_like(x))}, {"out": (want, *near)})
        want = np.minimum(sobel(full), 255 if dtype == "u8" else np.inf).reshape(shape)
        yield Case("sobel", {"image": ("in", dtype, x), "out": ("out", dtype, np.zeros_like(x))}, {"out": (want, *near)})


def filters():
    """Sums over shifted copies of a padded image, in double. Weights of some sign reach below 0 and above 255."""
    for dtype, shape, (high, wide_) in itertools.product(["u8", "f32"], [(9, 11), (2, 20, 30), (2, 13, 700, 3), (1, 2, 3, 5)], [(1, 1), (3, 3), (5, 1), (1, 7), (9, 5)]):
        x, w = rng.integers(0, 256, shape).astype(DTYPES[dtype]), rng.uniform(-0.5, 0.7, (high, wide_)).astype(np.float32)
        full = x.astype(float).reshape((1, *shape, 1) if len(shape) == 2 else (*shape, 1) if len(shape) == 3 else shape)
        p = np.pad(full, [(0, 0), (high // 2,) * 2, (wide_ // 2,) * 2, (0, 0)], mode="edge")
        h, v = full.shape[1:3]
        want = sum(float(w[i, j]) * p[:, i:i + h, j:j + v] for i in range(high) for j in range(wide_)).reshape(shape)
        want = np.clip(want, 0, 255) if dtype == "u8" else want
        near = (0, 0.501) if dtype == "u8" else (0, 1e-5 * 255 * float(np.abs(w).sum()))
        if dtype == "f32":
            dy = rng.uniform(-1, 1, shape).astype(np.float32)
            back = transposed(lambda one: sum(float(w[i, j]) * np.pad(one, [(0, 0), (high // 2,) * 2, (wide_ // 2,) * 2, (0, 0)], mode="edge")[:, i:i + h, j:j + v]
                                              for i in range(high) for j in range(wide_)), h, v) if h * v < 1000 else None
            if back is not None:
                want_back = np.einsum("pq,fpc->fqc", back, dy.astype(float).reshape(len(full), h * v, -1)).reshape(shape)
                yield Case("filter2d_grad", {"weights": ("in", "f32", w), "dout": ("in", dtype, dy), "dimage": ("out", dtype, np.zeros_like(dy))},
                           {"dimage": (want_back, 0, 1e-5 * (high + wide_) * float(np.abs(w).sum()))})
        yield Case("filter2d", {"weights": ("in", "f32", w), "image": ("in", dtype, x), "out": ("out", dtype, np.zeros_like(x))}, {"out": (want, *near)})


def algebra():
    for dtype, ta, tb in itertools.product(FLOATS, [0, 1], [0, 1]):
        m, n, k = 17, 23, 31
        a, b, c = values(dtype, (k, m) if ta else (m, k), -1, 1), values(dtype, (n, k) if tb else (k, n), -1, 1), values(dtype, (m, n), -1, 1)
        A, B, C = (wide(dtype, x) for x in (a, b, c))
        product = (A.T if ta else A) @ (B.T if tb else B)
        args = {"alpha": 0.5, "ta": ta, "tb": tb, "a": ("in", dtype, a), "b": ("in", dtype, b)}
        rtol = RTOL[dtype] * 2
        yield Case("gemm", {**args, "c": ("out", dtype, c)}, {"c": (0.5 * product, rtol)}, {"c": "write"})
        yield Case("gemm", {**args, "beta": -2, "c": ("inout", dtype, c)}, {"c": (0.5 * product - 2 * C, rtol)}, {"c": "readwrite"})
        yield Case("gemm", {**args, "c": ("inout", dtype, c)}, {"c": (0.5 * product + C, rtol)}, {"c": "sum"})
    for dtype, ta, tb, (m, n, k) in itertools.product(FLOATS, [0, 1], [0, 1], [(17, 23, 31), (1, 24, 31), (1, 7, 70)]):
        a, b, c = values(dtype, (k, m) if ta else (m, k), -1, 1), values(dtype, (n, k) if tb else (k, n), -1, 1), values(dtype, (m, n), -1, 1)
        A, B = (wide(dtype, x) for x in (a, b))
        product, bias = (A.T if ta else A) @ (B.T if tb else B), values(dtype, (n,), -1, 1)
        shifted = product + wide(dtype, bias)
        by_tanh = shifted / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (shifted + 0.044715 * shifted**3)))
        by_erf = shifted / 2 * (1 + np.vectorize(math.erf)(shifted / np.sqrt(2)))
        for activation, want in enumerate((shifted, np.maximum(shifted, 0), by_tanh, by_erf)):
            args = {"ta": ta, "tb": tb, "activation": activation, "a": ("in", dtype, a), "b": ("in", dtype, b), "bias": ("in", dtype, bias)}
            near = 2 * RTOL[dtype] * float(np.max(np.abs(product)))  # the product is rounded before the bias is added, and may cancel
            yield Case("gemm_bias", {**args, "c": ("out", dtype, c)}, {"c": (want, 2 * RTOL[dtype], near)})
    # 16 bits in, f32 out, which is not rounded to 16 bits: sizes below and above those of panels
    for dtype, ta, tb, (m, n, k) in itertools.product(["f16", "bf16"], [0, 1], [0, 1], [(17, 23, 31), (300, 70, 600), (3, 270, 257)]):
        a, b, c = values(dtype, (k, m) if ta else (m, k), -1, 1), values(dtype, (n, k) if tb else (k, n), -1, 1), values("f32", (m, n), -1, 1)
        A, B, C = (x.astype(float) for x in (a, b, c))
        product = (A.T if ta else A) @ (B.T if tb else B)
        args = {"alpha": 0.5, "ta": ta, "tb": tb, "a": ("in", dtype, a), "b": ("in", dtype, b)}
        yield Case("gemm", {**args, "c": ("out", "f32", c)}, {"c": (0.5 * product, 1e-5)}, {"c": "write"})
        yield Case("gemm", {**args, "beta": -2, "c": ("inout", "f32", c)}, {"c": (0.5 * product - 2 * C, 1e-5)}, {"c": "readwrite"})
        yield Case("gemm", {**args, "c": ("inout", "f32", c)}, {"c": (0.5 * product + C, 1e-5)}, {"c": "sum"})
        stacks = {"alpha": 0.5, "ta": ta, "tb": tb, "a": ("in", dtype, np.stack([a, -a])), "b": ("in", dtype, b[None])}
        yield Case("gemm_batched", {**stacks, "c": ("inout", "f32", np.stack([c, c]))}, {"c": (np.stack([0.5 * product, -0.5 * product]) + C, 1e-5)}, {"c": "sum"})
        if k > 256:  # c of 16 bits by panels, whose sums are rounded once
            yield Case("gemm", {**args, "c": ("out", dtype, values(dtype, (m, n)))}, {"c": (0.5 * product, RTOL[dtype])}, {"c": "write"})
    for dtype, ta, tb, (count, left, right) in itertools.product(FLOATS, [0, 1], [0, 1], [(5, 5, 5), (3, 1, 3), (4, 4, 1), (1, 1, 1)]):
        m, n, k = 7, 70, 19
        a, b = values(dtype, (left, k, m) if ta else (left, m, k), -1, 1), values(dtype, (right, n, k) if tb else (right, k, n), -1, 1)
        c = values(dtype, (count, m, n), -1, 1)
        A, B, C = (wide(dtype, x) for x in (a, b, c))
        product = (A.swapaxes(1, 2) if ta else A) @ (B.swapaxes(1, 2) if tb else B)
        args = {"alpha": 0.5, "ta": ta, "tb": tb, "a": ("in", dtype, a), "b": ("in", dtype, b)}
        rtol = RTOL[dtype] * 2
        yield Case("gemm_batched", {**args, "c": ("out", dtype, c)}, {"c": (0.5 * product, rtol)}, {"c": "write"})
        yield Case("gemm_batched", {**args, "beta": -2, "c": ("inout", dtype, c)}, {"c": (0.5 * product - 2 * C, rtol)}, {"c": "readwrite"})
    for dtype, n in itertools.product(WIDE, [1, 40, 600]):  # 600: threads have parts of it
        a = values(dtype, (n, n), -1, 1)
        spd = (a @ a.T + n * np.eye(n)).astype(DTYPES[dtype])
        factor = np.linalg.cholesky(spd.astype(float))
        want = np.tril(factor) + np.triu(spd, 1)
        yield Case("potrf", {"a": ("inout", dtype, spd)}, {"a": (want, RTOL[dtype] * n)})
        b = values(dtype, (19, n))
        low = np.tril(factor).astype(DTYPES[dtype])
        yield Case("trsm", {"a": ("in", dtype, low), "b": ("inout", dtype, b)}, {"b": (np.linalg.solve(low.astype(float), b.T.astype(float)).T, RTOL[dtype] * n)})
        c, x = values(dtype, (n, n)), values(dtype, (n, 13))
        new = -x.astype(float) @ x.T.astype(float) + c
        yield Case("syrk", {"a": ("in", dtype, x), "c": ("inout", dtype, c)}, {"c": (np.tril(new) + np.triu(c, 1), RTOL[dtype] * 4)})
        none, half = x[:, :0], np.tril(c / 2) + np.triu(c, 1)  # a without columns adds nothing
        yield Case("syrk", {"beta": 0.5, "a": ("in", dtype, none), "c": ("inout", dtype, c)}, {"c": (half, RTOL[dtype])})
        yield Case("trsm", {"a": ("in", dtype, low[:0, :0]), "b": ("inout", dtype, none)}, {"b": (none, 0)})


def factors_of(a):
    """P a = L U by the textbook, in double: the factors as one matrix, and with which row each was exchanged, from 1."""
    a, pivots = a.astype(float), []
    for k in range(len(a)):
        with_row = k + np.argmax(np.abs(a[k:, k]))
        a[[k, with_row]] = a[[with_row, k]]
        pivots.append(with_row + 1)
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k, k + 1:])
    return a, np.array(pivots, np.int32)


class Solve(Case):
    """getrf and getrs in one graph."""

    def run(self, command):
        (_, dtype, a), (_, _, b) = self.args["a"], self.args["b"]
        graph = {"gantry": 1, "buffers": {"a": {"dtype": dtype, "shape": list(a.shape), "class": "input"}, "p": {"dtype": "i32", "shape": [len(a)]},
                                          "b": {"dtype": dtype, "shape": list(b.shape), "class": "input", "output": True}},
                 "nodes": [{"id": "f", "kernel": "getrf", "args": {"a": "a", "pivots": "p"}},
                           {"id": "s", "kernel": "getrs", "args": {"a": "a", "pivots": "p", "b": "b"}}]}
        got, _ = run(command, graph, {"a": a, "b": b}, {"b": (dtype, b.shape)}, ["--devices", "1"])
        want, rtol = self.want["b"]
        np.testing.assert_allclose(got["b"], want, rtol=rtol, atol=rtol * np.max(np.abs(want)), err_msg="getrf and getrs")


def systems():
    sizes = [*itertools.product(WIDE, [(1, 1), (2, 3), (40, 1), (40, 70), (97, 5)]), ("f64", (513, 2)), ("f64", (700, 3))]  # the last in bands
    for dtype, (n, columns) in sizes:
        a, b = values(dtype, (n, n)), values(dtype, (n, columns))
        lu, pivots = factors_of(a)
        yield Case("getrf", {"a": ("inout", dtype, a), "pivots": ("out", "i32", pivots)}, {"a": (lu, RTOL[dtype] * n), "pivots": (pivots, None)})
        lu = lu.astype(DTYPES[dtype])
        lower, upper = np.tril(lu, -1).astype(float) + np.eye(n), np.triu(lu).astype(float)
        moved = b.astype(float)
        for i, p in enumerate(pivots - 1):
            moved[[i, p]] = moved[[p, i]]
        want = np.linalg.solve(upper, np.linalg.solve(lower, moved))
        rtol = RTOL[dtype] * n * max(1, np.linalg.cond(upper) / 100)
        yield Case("getrs", {"a": ("in", dtype, lu), "pivots": ("in", "i32", pivots), "b": ("inout", dtype, b)}, {"b": (want, rtol)})
        yield Case("getrs", {"a": ("in", dtype, lu), "pivots": ("in", "i32", pivots), "b": ("inout", dtype, b[:, 0].copy())}, {"b": (want[:, 0], rtol)})
        yield Solve("getrs", {"a": ("in", dtype, a), "b": ("inout", dtype, b)}, {"b": (np.linalg.solve(a.astype(float), b.astype(float)), RTOL[dtype] * n * max(1, np.linalg.cond(a.astype(float)) / 10))})


class Factors(Case):
    """q r = a, q^T q = 1, r as NumPy's once the signs of its rows are such that the diagonal is not negative."""

    def run(self, command):
        (_, dtype, a), (rows, columns) = self.args["a"], self.args["a"][2].shape
        shapes = {"a": (rows, columns), "q": (rows, columns), "r": (columns, columns)}
        graph = {"gantry": 1, "buffers": {name: {"dtype": dtype, "shape": list(shape), **({"class": "input"} if name == "a" else {"output": True})}
                                          for name, shape in shapes.items()},
                 "nodes": [{"id": "k", "kernel": "qr", "args": {"a": "a", "q": "q", "r": "r"}}]}
        got, _ = run(command, graph, {"a": a}, {"q": None, "r": None}, ["--devices", "1"])
        q, r, a = got["q"].astype(float), got["r"].astype(float), a.astype(float)
        scale, unit = float(np.max(np.abs(a), initial=0)), {"f32": 2**-24, "f64": 2**-53}[dtype]
        close = 4 * (rows + columns) * unit  # backward error of each column, by its norm: Higham, theorem 19.4
        np.testing.assert_allclose(q @ r, a, rtol=0, atol=close * scale * rows**0.5, err_msg=f"qr {dtype} {rows} x {columns}")
        np.testing.assert_allclose(q.T @ q, np.eye(columns), rtol=0, atol=close, err_msg=f"qr {dtype} {rows} x {columns}: q")
        assert np.array_equal(r, np.triu(r)) and (np.diag(r) >= 0).all()
        if self.want:
            want = np.linalg.qr(a)[1]
            want *= np.where(np.diag(want) < 0, -1, 1)[:, None]
            atol = close * scale * rows**0.5 * np.linalg.cond(a)
            np.testing.assert_allclose(r, want, rtol=0, atol=atol, err_msg=f"qr {dtype} {rows} x {columns}: r")


def factors():
    for dtype, (rows, columns) in itertools.product(WIDE, [(1, 1), (2, 1), (300, 1), (4, 3), (40, 40), (97, 33), (1000, 20)]):
        yield Factors("qr", {"a": ("in", dtype, values(dtype, (rows, columns)))}, {"r": True})
        yield Factors("qr", {"a": ("in", dtype, values(dtype, (rows, columns)) * DTYPES[dtype](1e25 if dtype == "f32" else 1e200))}, {"r": True})
    for dtype, (rows, columns) in itertools.product(WIDE, [(50000, 30), (1200001, 1), (9000, 200), (300000, 8)]):  # in blocks of rows, and blocks of their triangles
        a = rng.normal(size=(rows, columns))
        yield Factors("qr", {"a": ("in", dtype, a.astype(DTYPES[dtype]))}, {"r": True})
        spread = np.linalg.qr(rng.normal(size=(columns, columns)))[0] * np.logspace(0, -12 if dtype == "f64" else -5, columns)
        yield Factors("qr", {"a": ("in", dtype, (a @ spread).astype(DTYPES[dtype]))}, {})  # of condition 1e12 or 1e5
        a[:, columns // 2] = a[:, 0]
        a[rows // 3:rows // 2] = 0
        yield Factors("qr", {"a": ("in", dtype, a.astype(DTYPES[dtype]))}, {})
    for dtype in WIDE:  # columns that depend on others, or are 0: r is not the only one
        a = values(dtype, (30, 4))
        a[:, 1] = a[:, 0]
        a[:, 2] = 0
        yield Factors("qr", {"a": ("in", dtype, a)}, {})
        yield Factors("qr", {"a": ("in", dtype, np.zeros((5, 3), DTYPES[dtype]))}, {})
        yield Factors("qr", {"a": ("in", dtype, -np.triu(np.abs(values(dtype, (9, 5)))))}, {"r": True})


def learning():
    for dtype, (rows, classes) in itertools.product(FLOATS, [(50, 7), (9, 64), (3, 1031), (4, 4096)]):
        x, labels = values(dtype, (rows, classes)), rng.integers(0, classes, rows).astype(np.int32)
        X, own = wide(dtype, x), "f64" if dtype == "f64" else "f32"
        p = np.exp(X - X.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = -np.log(p[np.arange(rows), labels]).sum() / rows
        start = values(own, 1)
        common = {"scale": 1 / rows, "logits": ("in", dtype, x), "labels": ("in", "i32", labels)}
        yield Case("softmax_xent", {**common, "loss": ("inout", own, start)}, {"loss": (loss + start.astype(float), RTOL[own])})
        yield Case("softmax_xent_grad", {**common, "grad": ("out", dtype, np.zeros_like(x))},
                   {"grad": ((p - (np.arange(classes) == labels[:, None])) / rows, RTOL[dtype])})
    for dtype in WIDE:
        for index in ["i32", "i64"]:
            dense = np.where(rng.random((30, 20)) < 0.2, values(dtype, (30, 20)), 0)
            rows, columns = np.nonzero(dense)
            row_ptr = np.searchsorted(rows, np.arange(31)).astype(DTYPES[index])
            vector = values(dtype, 20)
            yield Case("spmv_csr", {"row_ptr": ("in", index, row_ptr), "col": ("in", index, columns.astype(DTYPES[index])),
                                    "val": ("in", dtype, dense[rows, columns].astype(DTYPES[dtype])), "x": ("in", dtype, vector),
                                    "y": ("out", dtype, np.zeros(30, DTYPES[dtype]))}, {"y": (dense.astype(float) @ vector.astype(float), RTOL[dtype] * 4)})
            for width in [1, 33, 300]:
                x = values(dtype, (20, width))
                yield Case("spmm_csr", {"row_ptr": ("in", index, row_ptr), "col": ("in", index, columns.astype(DTYPES[index])),
                                        "val": ("in", dtype, dense[rows, columns].astype(DTYPES[dtype])), "x": ("in", dtype, x),
                                        "y": ("out", dtype, np.zeros((30, width), DTYPES[dtype]))}, {"y": (dense.astype(float) @ x.astype(float), RTOL[dtype] * 4)})


def normalized(x, gain, bias, eps, centred):
    mean = x.mean(1, keepdims=True) if centred else 0
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + eps) * gain + bias


def slope(function, x, d):
    """Gradient of sum(d * function(x)) by x: central differences in double, of two steps, so that the error is O(h^4)."""
    result = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        def by(h):
            up, down = x.copy(), x.copy()
            up[at] += h
            down[at] -= h
            return ((function(up) - function(down)) * d).sum() / (2 * h)
        result[at] = (4 * by(1e-3) - by(2e-3)) / 3
    return result


def transformers():
    for dtype, (n, width), centred in itertools.product(FLOATS, [(1, 8), (5, 7), (3, 40), (1, 1030)], [True, False]):
        x, dy, gain, bias = values(dtype, (n, width)), values(dtype, (n, width)), values(dtype, width), values(dtype, width)
        X, D, G, B = (wide(dtype, a) for a in (x, dy, gain, bias))
        B = B if centred else np.zeros(width)
        name, more = ("layernorm", {"bias": ("in", dtype, bias)}) if centred else ("rmsnorm", {})
        given = {"eps": 0.5, "x": ("in", dtype, x), "gain": ("in", dtype, gain)}
        rtol = RTOL[dtype]
        yield Case(name, {**given, **more, "y": ("out", dtype, np.zeros_like(x))}, {"y": (normalized(X, G, B, 0.5, centred), rtol)})
        start = {"dgain": values(dtype, width), **({"dbias": values(dtype, width)} if centred else {})}
        want = {"dx": (slope(lambda a: normalized(a, G, B, 0.5, centred), X, D), max(rtol, 1e-8)),
                "dgain": (slope(lambda a: normalized(X, a, B, 0.5, centred), G, D) + wide(dtype, start["dgain"]), max(rtol, 1e-8))}
        if centred:
            want["dbias"] = (D.sum(0) + wide(dtype, start["dbias"]), rtol)
        yield Case(f"{name}_grad", {**given, "dy": ("in", dtype, dy), "dx": ("out", dtype, np.zeros_like(x)),
                                    **{key: ("inout", dtype, a) for key, a in start.items()}}, want)


def stacks():
    """Rows lie along the last axis, whatever is before it."""
    for dtype in FLOATS:
        x, dy, gain, bias = values(dtype, (2, 5, 6)), values(dtype, (2, 5, 6)), values(dtype, 6), values(dtype, 6)
        X, D, G, B = (wide(dtype, a) for a in (x, dy, gain, bias))
        given = {"eps": 0.5, "x": ("in", dtype, x), "gain": ("in", dtype, gain)}
        yield Case("layernorm", {**given, "bias": ("in", dtype, bias), "y": ("out", dtype, np.zeros_like(x))},
                   {"y": (normalized(X.reshape(10, 6), G, B, 0.5, True).reshape(x.shape), RTOL[dtype])})
        start = values(dtype, 6)
        yield Case("rmsnorm_grad", {**given, "dy": ("in", dtype, dy), "dx": ("out", dtype, np.zeros_like(x)), "dgain": ("inout", dtype, start)},
                   {"dx": (slope(lambda a: normalized(a.reshape(10, 6), G, 0 * G, 0.5, False), X, D.reshape(10, 6)), max(RTOL[dtype], 1e-8)),
                    "dgain": (slope(lambda a: normalized(X.reshape(10, 6), a, 0 * G, 0.5, False), G, D.reshape(10, 6)) + wide(dtype, start), max(RTOL[dtype], 1e-8))})
        for causal in (0, 1):
            yield Case("softmax", {"scale": 0.7, "causal": causal, "first": 0, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))},
                       {"y": (np.stack([soften(a, 0.7, causal, 0) for a in X]) if not causal else soften(X.reshape(10, 6), 0.7, 1, 0).reshape(x.shape), RTOL[dtype])})


def soften(x, scale, causal, first):
    x = scale * x
    if causal:
        rows, columns = np.indices(x.shape)
        x = np.where(columns <= (first + rows) % x.shape[1], x, -np.inf)
    p = np.exp(x - x.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def rotate(x, dim, first, length, base, sign):
    """By complex numbers: elements i and i + dim / 2 of a head are the parts of one, multiplied by e^(i angle)."""
    position = first + np.arange(len(x))
    position = position % length if length else position
    angle = np.outer(position, base ** (-np.arange(0, dim, 2) / dim))[:, None, :]
    heads = x.reshape(len(x), -1, 2, dim // 2)
    turned = (heads[:, :, 0] + 1j * heads[:, :, 1]) * np.exp(sign * 1j * angle)
    return np.stack([turned.real, turned.imag], 2).reshape(x.shape)


def attention():
    for dtype, (n, width), causal in itertools.product(FLOATS, [(1, 1), (6, 6), (12, 6), (3, 70), (3, 1030)], [0, 1]):
        x, dy = values(dtype, (n, width)), values(dtype, (n, width))
        first, X, rtol = width - 1 if n == 3 else 0, wide(dtype, x), RTOL[dtype]
        yield Case("softmax", {"scale": 0.7, "causal": causal, "first": first, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))},
                   {"y": (soften(X, 0.7, causal, first), rtol)})
        y = soften(X, 0.7, causal, first)
        y = from_bf16(to_bf16(y)) if dtype == "bf16" else y.astype(DTYPES[dtype])
        yield Case("softmax_grad", {"scale": 0.7, "y": ("in", dtype, y), "dy": ("in", dtype, dy), "dx": ("out", dtype, np.zeros_like(x))},
                   {"dx": (slope(lambda a: soften(a, 0.7, causal, first), X, wide(dtype, dy)), max(2 * rtol, 1e-7))})
    for dtype, (n, width, dim), sign, length in itertools.product(FLOATS, [(1, 2, 2), (9, 24, 8), (40, 64, 64)], [1, -1], [0, 5]):
        x = values(dtype, (n, width))
        yield Case("rope", {"dim": dim, "first": 3, "length": length, "base": 500, "sign": sign, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))},
                   {"y": (rotate(wide(dtype, x), dim, 3, length, 500, sign), RTOL[dtype])})
    for dtype, (shape, axis, dim), sign in itertools.product(FLOATS, [((3, 9, 8), 1, 8), ((2, 7, 3, 4), 1, 4), ((2, 3, 11, 6), -2, 2), ((5, 24), 0, 8)], [1, -1]):
        x = values(dtype, shape)
        tokens = np.moveaxis(wide(dtype, x), axis if axis >= 0 else axis + len(shape), 0)  # which rotate() has in front
        want = rotate(tokens.reshape(len(tokens), -1), dim, 3, 0, 500, sign).reshape(tokens.shape)
        yield Case("rope", {"dim": dim, "first": 3, "base": 500, "sign": sign, "axis": axis, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))},
                   {"y": (np.moveaxis(want, 0, axis if axis >= 0 else axis + len(shape)), RTOL[dtype])})


def appended():
    """A token's keys and values in a cache: of as many heads as its queries or fewer, at its ends, turned or not."""
    for dtype, (queries, heads, places, dim), base, last in itertools.product(FLOATS, [(1, 1, 1, 2), (4, 2, 7, 8), (6, 6, 5, 130)], [0, 500], [False, True]):
        place = places - 1 if last else 0
        q, k, v, keys, kept = (values(dtype, shape) for shape in [(1, queries * dim), (heads, 1, dim), (heads * dim,), (heads, places, dim), (heads, places, dim)])

        def turned(x):
            rows = wide(dtype, x).reshape(-1, dim)
            return np.array([rotate(row[None], dim, place, 0, base, 1)[0] for row in rows]) if base else rows
        want_keys, want_values = wide(dtype, keys).copy(), wide(dtype, kept).copy()
        want_keys[:, place], want_values[:, place] = turned(k), wide(dtype, v).reshape(heads, dim)
        yield Case("cache_append", {"base": base, "place": ("in", "i32", np.array([place], np.int32)), "q": ("in", dtype, q), "k": ("in", dtype, k), "v": ("in", dtype, v),
                                    "turned": ("out", dtype, np.zeros_like(q.reshape(queries, 1, dim))), "keys": ("inout", dtype, keys), "values": ("inout", dtype, kept)},
                   {"turned": (turned(q).reshape(queries, 1, dim), RTOL[dtype]), "keys": (want_keys, RTOL[dtype]), "values": (want_values, None)})


def in_rows(case, sequences):
    """The same case with heads side by side in rows, as products leave them: as many sequences follow each other as are said."""
    regions, d = {}, case["q"][2].shape[-1]
    for name, value in case.items():
        if not isinstance(value, tuple):
            regions[name] = value
            continue
        parts = value[2].reshape(sequences, -1, *value[2].shape[1:])  # of sequences, heads, rows
        if name != "lse":
            parts = np.swapaxes(parts, 1, 2).reshape(sequences * parts.shape[2], -1)
        regions[name] = (*value[:2], np.ascontiguousarray(parts))
    return {**regions, "dim": d, **({"length": case["q"][2].shape[1]} if sequences > 1 else {})}


def results_in_rows(want, sequences):
    return {name: value[2] for name, value in in_rows({"q": (0, 0, next(iter(want.values()))), **{name: (0, 0, a) for name, a in want.items()}}, sequences).items()
            if name in want}


def attended_tokens():
    """A token appended to a cache of which it then sees the places up to its own: each head's softmax in double. What lies behind its place is not looked at."""
    shapes = [(1, 1, 1, 2), (4, 2, 7, 8), (6, 6, 70, 34), (8, 2, 133, 64), (3, 1, 20, 130), (2, 2, 65, 256)]
    for dtype, (queries, heads, places, dim), base, where in itertools.product(FLOATS, shapes, [0, 500], [0, 0.5, 1]):
        place = int(where * (places - 1))
        q, k, keys = (values(dtype, shape, -1, 1) for shape in [(1, queries * dim), (heads, 1, dim), (heads, places, dim)])
        v, kept = values(dtype, (heads * dim,)), values(dtype, (heads, places, dim))
        if dtype != "bf16":
            keys[:, place + 1:] = kept[:, place + 1:] = np.nan

        def turned(x):
            rows = wide(dtype, x).reshape(-1, dim)
            return np.array([rotate(row[None], dim, place, 0, base, 1)[0] for row in rows]) if base else rows
        want_keys, want_values = wide(dtype, keys).copy(), wide(dtype, kept).copy()
        want_keys[:, place], want_values[:, place] = turned(k), wide(dtype, v).reshape(heads, dim)
        y, scale = np.zeros((queries, dim)), 0.3 if dim == 34 else dim ** -0.5
        for h, row in enumerate(turned(q)):
            s = want_keys[h * heads // queries, :place + 1].astype("f8") @ row * scale
            p = np.exp(s - s.max())
            y[h] = p / p.sum() @ want_values[h * heads // queries, :place + 1]
        yield Case("attention_append", {"base": base, **({"scale": 0.3} if dim == 34 else {}), "place": ("in", "i32", np.array([place], np.int32)), "q": ("in", dtype, q), "k": ("in", dtype, k),
                                        "v": ("in", dtype, v), "keys": ("inout", dtype, keys), "values": ("inout", dtype, kept), "y": ("out", dtype, np.zeros_like(q))},
                   {"y": (y.reshape(q.shape), 2 * RTOL[dtype]), "keys": (want_keys, RTOL[dtype]), "values": (want_values, None)})


def heads():
    """Softmax of scores in double, for each head; heads of q share one of k; the last query sees all keys."""
    shapes = [(1, 1, 1, 1, 1), (2, 2, 5, 5, 8), (6, 2, 7, 70, 16), (4, 1, 65, 130, 33), (2, 2, 9, 4, 64), (8, 4, 1, 200, 256)]
    for dtype, (many, few, n, m, d), causal in itertools.product(FLOATS, shapes, [0, 1]):
        q, k, v = values(dtype, (many, n, d), -1, 1), values(dtype, (few, m, d), -1, 1), values(dtype, (few, m, d))
        Q, K, V = (wide(dtype, a) for a in (q, k, v))
        given = {"causal": causal, **({"scale": 0.3} if n == 7 else {}), "q": ("in", dtype, q), "k": ("in", dtype, k), "v": ("in", dtype, v)}
        for lengths in [None, [m], [int(x) for x in rng.integers(0, m + 1, few)]]:
            want, lse = np.zeros((many, n, d)), np.zeros((many, n))
            for h in range(many):
                kv = h // (many // few)
                keys = m if lengths is None else lengths[kv % len(lengths)]
                s = Q[h] @ K[kv, :keys].T * (0.3 if n == 7 else d ** -0.5)
                if causal:
                    rows, columns = np.indices(s.shape)
                    s = np.where(columns <= keys - n + rows, s, -np.inf)
                with np.errstate(invalid="ignore", divide="ignore"):
                    p = np.exp(s - s.max(1, keepdims=True, initial=-1e300))
                    lse[h] = np.log(np.exp(s).sum(1))  # -infinity where a query sees no key
                    want[h] = np.nan_to_num(p / p.sum(1, keepdims=True)) @ V[kv, :keys]
            y = {"y": ("out", dtype, np.zeros_like(q))}
            if lengths is None:
                yield Case("attention", {**given, **y}, {"y": (want, RTOL[dtype])})
                kept, close = "f64" if dtype == "f64" else "f32", 1e-12 if dtype == "f64" else 2e-6
                y["lse"] = ("out", kept, lse.astype(DTYPES[kept]))
                yield Case("attention", {**given, **y}, {"y": (want, RTOL[dtype]), "lse": (lse, close)})
                if few == 2:  # as two sequences: heads of both in a row
                    both = {name: (*value[:2], value[2].reshape(2, -1, *value[2].shape[1:])) if isinstance(value, tuple) else value
                            for name, value in {**given, **y}.items()}
                    yield Case("attention", both, {"y": (want.reshape(2, -1, n, d), RTOL[dtype]), "lse": (lse.reshape(2, -1, n), close)})
                for sequences in sorted({1, few}):
                    rows = results_in_rows({"y": want, "lse": lse}, sequences)
                    yield Case("attention", in_rows({**given, **y}, sequences), {"y": (rows["y"], RTOL[dtype]), "lse": (rows["lse"], close)})
            else:
                yield Case("attention_cached", {**given, "length": ("in", "i32", np.array(lengths, np.int32)), **y}, {"y": (want, RTOL[dtype])})


def gradients_of_heads():
    """Against differences of sum(dy * attention) in double, in three directions each of q, k and v, where results are exact enough, and
    against the derivative of the softmax by its Jacobian, a matrix for each query."""
    shapes = [(1, 1, 1, 1, 1), (2, 2, 5, 5, 8), (6, 2, 7, 70, 16), (4, 1, 65, 130, 33), (2, 2, 9, 4, 64)]
    for dtype, (many, few, n, m, d), causal in itertools.product(FLOATS, shapes, [0, 1]):
        q, k, v, dy = (values(dtype, shape, -1, 1) for shape in [(many, n, d), (few, m, d), (few, m, d), (many, n, d)])
        Q, K, V, D = (np.asarray(wide(dtype, a), float) for a in (q, k, v, dy))
        scale = 0.3 if n == 7 else d ** -0.5

        lse = np.zeros((many, n))

        def attend(Q, K, V):
            out, weights = np.zeros((many, n, d)), np.zeros((many, n, m))
            for h in range(many):
                s = Q[h] @ K[h // (many // few)].T * scale
                rows, columns = np.indices(s.shape)
                s = np.where(columns <= m - n + rows, s, -np.inf) if causal else s
                p = np.exp(s - s.max(1, keepdims=True, initial=-1e300))
                weights[h] = p / np.maximum(p.sum(1, keepdims=True), 1e-300)
                out[h] = weights[h] @ V[h // (many // few)]
            return out, weights

        y, p = attend(Q, K, V)
        dq, dk, dv = np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
        near = np.zeros_like(Q)  # what the first half of the keys adds to dq
        for h in range(many):
            kv = h // (many // few)
            seen = np.tri(n, m, m - n) if causal else np.ones((n, m))
            with np.errstate(divide="ignore"):
                lse[h] = np.log((np.exp(Q[h] @ K[kv].T * scale) * seen).sum(1))
            for r in range(n):
                slope = (np.diag(p[h, r]) - np.outer(p[h, r], p[h, r])) @ (V[kv] @ D[h, r]) * scale
                dq[h, r] += slope @ K[kv]
                near[h, r] += slope[:m // 2] @ K[kv, :m // 2]
                dk[kv] += np.outer(slope, Q[h, r])
                dv[kv] += np.outer(p[h, r], D[h, r])
        if dtype == "f64":
            for which, want in enumerate([dq, dk, dv]):
                for _ in range(3):
                    step = [np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)]
                    step[which] = rng.uniform(-1, 1, want.shape)
                    up, down = (np.sum(D * attend(*(a + sign * 1e-5 * b for a, b in zip((Q, K, V), step)))[0]) for sign in (1, -1))
                    assert abs((up - down) / 2e-5 - np.sum(want * step[which])) < 1e-6 * max(1, np.abs(want).sum()), "the reference is wrong"
        held = from_bf16(to_bf16(y.astype(np.float32))) if dtype == "bf16" else y.astype(DTYPES[dtype])
        given = {"causal": causal, **({"scale": 0.3} if n == 7 else {}), "q": ("in", dtype, q), "k": ("in", dtype, k), "v": ("in", dtype, v),
                 "y": ("in", dtype, held), "dy": ("in", dtype, dy)}
        rtol = 4 * RTOL[dtype]
        yield Case("attention_grad", {**given, "dq": ("out", dtype, np.zeros_like(q)), "dk": ("out", dtype, np.zeros_like(k)), "dv": ("out", dtype, np.zeros_like(v))},
                   {"dq": (dq, rtol), "dk": (dk, rtol), "dv": (dv, rtol)})
        kept = "f64" if dtype == "f64" else "f32"
        given["lse"] = ("in", kept, lse.astype(DTYPES[kept]))
        yield Case("attention_grad", {**given, "dq": ("out", dtype, np.zeros_like(q)), "dk": ("out", dtype, np.zeros_like(k)), "dv": ("out", dtype, np.zeros_like(v))},
                   {"dq": (dq, rtol), "dk": (dk, rtol), "dv": (dv, rtol)})
        if m > 1 and not causal:  # half of the keys, with what attention over all of them gave
            half = {"k": ("in", dtype, k[:, :m // 2].copy()), "v": ("in", dtype, v[:, :m // 2].copy())}
            yield Case("attention_grad", {**given, **half, "dq": ("out", dtype, np.zeros_like(q)), "dk": ("out", dtype, half["k"][2] * 0), "dv": ("out", dtype, half["k"][2] * 0)},
                       {"dq": (near, rtol), "dk": (dk[:, :m // 2], rtol), "dv": (dv[:, :m // 2], rtol)})
        if few == 2:
            def sequences(a):
                return a.reshape(2, -1, *a.shape[1:])
            both = {name: (*value[:2], sequences(value[2])) if isinstance(value, tuple) else value for name, value in given.items()}
            yield Case("attention_grad", {**both, **{name: ("out", dtype, np.zeros_like(sequences(a))) for name, a in (("dq", q), ("dk", k), ("dv", v))}},
                       {name: (sequences(a), rtol) for name, a in (("dq", dq), ("dk", dk), ("dv", dv))})
        for sequences_of in sorted({1, few}):
            both = in_rows({**given, **{name: ("out", dtype, np.zeros_like(a)) for name, a in (("dq", q), ("dk", k), ("dv", v))}}, sequences_of)
            yield Case("attention_grad", both, {name: (a, rtol) for name, a in results_in_rows({"dq": dq, "dk": dk, "dv": dv}, sequences_of).items()})


def large_heads():
    """So many scores that GPUs compute them by products, under a mask in bands of rows (src/backends/cuda/kernels/attention_portions.c): rows
    that bands do not divide, keys that all see, heads that share keys. The mask of the reference is a matrix."""
    for dtype, many, few, n, m, d in [("f32", 32, 32, 512, 512, 4), ("f64", 64, 32, 520, 530, 3), ("f32", 6, 3, 700, 900, 8)]:
        q, k, v, dy = (values(dtype, shape, -1, 1) for shape in [(many, n, d), (few, m, d), (few, m, d), (many, n, d)])
        Q, K, V, D = (np.asarray(a, float) for a in (q, k, v, dy))
        y, dq, dk, dv = np.zeros_like(Q), np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
        hidden = np.where(np.tri(n, m, m - n) == 1, 0, -np.inf)
        for h in range(many):
            kv = h // (many // few)
            p = np.exp(Q[h] @ K[kv].T / np.sqrt(d) + hidden)  # scores are small
            p /= p.sum(1, keepdims=True)
            y[h] = p @ V[kv]
            slope = p * (D[h] @ V[kv].T)
            slope = (slope - p * slope.sum(1, keepdims=True)) / np.sqrt(d)  # of scores, without y
            dq[h] = slope @ K[kv]
            dk[kv] += slope.T @ Q[h]
            dv[kv] += p.T @ D[h]
        given = {"causal": 1, "q": ("in", dtype, q), "k": ("in", dtype, k), "v": ("in", dtype, v)}
        yield Case("attention", {**given, "y": ("out", dtype, np.zeros_like(q))}, {"y": (y, RTOL[dtype])})
        back = {"y": ("in", dtype, y.astype(DTYPES[dtype])), "dy": ("in", dtype, dy), **{name: ("out", dtype, np.zeros_like(a)) for name, a in
                (("dq", q), ("dk", k), ("dv", v))}}
        yield Case("attention_grad", {**given, **back}, {"dq": (dq, 4 * RTOL[dtype]), "dk": (dk, 4 * RTOL[dtype]), "dv": (dv, 4 * RTOL[dtype])})
        for sequences in sorted({1, few // 2 if few % 2 == 0 else few, few}):  # fewer than heads of keys side by side, more
            rows = results_in_rows({"y": y, "dq": dq, "dk": dk, "dv": dv}, sequences)
            yield Case("attention", in_rows({**given, "y": ("out", dtype, np.zeros_like(q))}, sequences), {"y": (rows.pop("y"), RTOL[dtype])})
            yield Case("attention_grad", in_rows({**given, **back}, sequences), {name: (a, 4 * RTOL[dtype]) for name, a in rows.items()})


def count_of_scores(kernels):
    """Flops of the manifest against scores that are counted: between those that somebody sees and those of blocks of 64 queries; what is
    computed, exactly, where blocks divide the queries."""
    for name, products in ("attention", 2), ("attention_cached", 2), ("attention_grad", 5):
        formula = next(k["flops"] for k in kernels if k["name"] == name).replace("q.", "q_").replace("k.", "k_")
        for heads, n, m, d, causal in itertools.product([1, 6], [1, 7, 64, 65, 300, 512], [0, 3, 700], [8], [0, 1]):
            sees = m + 1 + np.arange(n) if causal else np.full(n, m + n)  # of n + m keys
            blocks = sum(len(block) * block.max() for block in np.split(sees, range(64, n, 64)))
            known = {"q_size": heads * n * d, "q_rows": heads, "k_rows": heads, "q_last1": n, "k_last1": n + m, "causal": causal, "dim": 0, "length": 0}
            flops = eval(formula, {"min": min, "max": max}, known)  # noqa: S307
            in_rows = [{**known, "dim": d, "length": length, "q_size": s * known["q_size"], "q_rows": s * n, "k_rows": s * (n + m), "q_last1": 1, "k_last1": 1}
                       for s, length in ((1, 0), (1, n), (5, n))]
            assert name == "attention_cached" or [eval(formula, {"min": min, "max": max}, one) for one in in_rows] == [flops, flops, 5 * flops]  # noqa: S307
            once = 2 * products * heads * d
            assert once * sees.sum() <= flops <= once * (sees.sum() + 64 * n), f"{name}: {flops} for {heads} heads of {n} queries, {n + m} keys"
            assert n % 64 or flops == once * blocks, f"{name}: {flops} is not what blocks of 64 of {n} queries compute"


def wrong_entries():
    """A column that x has no row for, and rows that go beyond the entries."""
    one, x = np.ones(2), np.ones((3, 40))
    for row_ptr, column in [([0, 1, 2], [0, 3]), ([0, 1, 3], [0, 1]), ([0, 1, 2], [0, -1])]:
        matrix = {"row_ptr": ("in", "i32", np.array(row_ptr, np.int32)), "col": ("in", "i32", np.array(column, np.int32)), "val": ("in", "f64", one)}
        yield Refused("spmm_csr", {**matrix, "x": ("in", "f64", x), "y": ("out", "f64", np.ones((2, 40)))}, 2)
        yield Refused("spmv_csr", {**matrix, "x": ("in", "f64", x[:, 0].copy()), "y": ("out", "f64", np.ones(2))}, 2)


def wrong_labels():
    for label, status in [(7, 8), (-3, -3)]:
        yield Refused("softmax_xent", {"scale": 1, "logits": ("in", "f32", np.ones((2, 7), np.float32)), "labels": ("in", "i32", np.array([0, label], np.int32)),
                                       "loss": ("inout", "f32", np.zeros(1, np.float32))}, status)


def convolutions():
    """By windows for the product and the gradient of the weights, and by shifted images for that of the image."""
    for dtype, (n, c, o, h, w, kh, kw), (stride, pad) in itertools.product(
            FLOATS, [(1, 1, 1, 1, 1, 1, 1), (2, 3, 4, 9, 7, 3, 3), (3, 5, 2, 6, 11, 1, 4), (1, 8, 70, 12, 12, 5, 5)], [(1, 0), (1, 2), (2, 1), (3, 0)]):
        if h + 2 * pad < kh or w + 2 * pad < kw:
            continue
        high, wide_ = (h + 2 * pad - kh) // stride + 1, (w + 2 * pad - kw) // stride + 1
        x, k, dy, start = values(dtype, (n, c, h, w), -1, 1), values(dtype, (o, c, kh, kw), -1, 1), values(dtype, (n, o, high, wide_), -1, 1), values(dtype, (o, c, kh, kw))
        X, K, D = (wide(dtype, a) for a in (x, k, dy))
        around = [(0, 0), (0, 0), (pad, pad), (pad, pad)]
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(X, around), (kh, kw), axis=(2, 3))[:, :, ::stride, ::stride]
        dx = np.zeros((n, c, h + 2 * pad, w + 2 * pad))
        for i, j in np.ndindex(kh, kw):
            dx[:, :, i:i + stride * high:stride, j:j + stride * wide_:stride] += np.einsum("nohw,oc->nchw", D, K[:, :, i, j])
        common, rtol = {"stride": stride, "pad": pad}, 2 * RTOL[dtype]
        yield Case("conv2d", {**common, "x": ("in", dtype, x), "w": ("in", dtype, k), "y": ("out", dtype, np.zeros_like(dy))},
                   {"y": (np.einsum("nchwij,ocij->nohw", windows, K), rtol)})
        yield Case("conv2d", {**common, "x": ("in", dtype, x), "w": ("in", dtype, k), "y": ("inout", dtype, dy)},
                   {"y": (np.einsum("nchwij,ocij->nohw", windows, K) + D, rtol)}, {"y": "sum"})
        yield Case("conv2d_grad_x", {**common, "w": ("in", dtype, k), "dy": ("in", dtype, dy), "dx": ("out", dtype, np.zeros_like(x))},
                   {"dx": (dx[:, :, pad:pad + h, pad:pad + w], rtol)})
        yield Case("conv2d_grad_w", {**common, "x": ("in", dtype, x), "dy": ("in", dtype, dy), "dw": ("inout", dtype, start)},
                   {"dw": (np.einsum("nchwij,nohw->ocij", windows, D) + wide(dtype, start), rtol)})


def failures():
    ones, three = np.ones((3, 3)), np.arange(3, dtype=np.int32)
    yield Refused("getrf", {"a": ("inout", "f64", ones), "pivots": ("out", "i32", three)}, 2)
    yield Refused("getrs", {"a": ("in", "f64", ones), "pivots": ("in", "i32", three + 2), "b": ("inout", "f64", ones)}, 3)
    for wrong in (3, 400):  # within the first band, and within the second
        yield Refused("getrf", {"a": ("inout", "f64", np.diag(np.where(np.arange(600) == wrong, 0.0, 1))), "pivots": ("out", "i32", np.arange(600, dtype=np.int32))}, wrong + 1)
        yield Refused("potrf", {"a": ("inout", "f64", np.diag(np.where(np.arange(600) == wrong, -1.0, 1)))}, wrong + 1)
    for first, wrong in ((0, 9), (4, -1)):  # no row of the whole table, though the others are in other parts
        table, ids = ones.astype(np.float32), np.array([8, 0, wrong, 5, wrong], np.int32)
        for y in (("out", "f32", np.zeros((5, 3), np.float32)), ("inout", "f32", np.zeros((5, 3), np.float32))):
            yield Refused("embedding", {"first": first, "of": 9, "table": ("in", "f32", table), "ids": ("in", "i32", ids), "y": y}, 3,
                          {"y": "write" if y[0] == "out" else "sum"})
        yield Refused("embedding_grad", {"first": first, "of": 9, "ids": ("in", "i32", ids), "dy": ("in", "f32", np.ones((5, 3), np.float32)),
                                         "dtable": ("inout", "f32", table)}, 3)
    q = np.ones((2, 3, 8), np.float32)
    for lengths, status in [([3, 4], 2), ([-1, 3], 1)]:
        yield Refused("attention_cached", {"q": ("in", "f32", q), "k": ("in", "f32", q), "v": ("in", "f32", q), "length": ("in", "i32", np.array(lengths, np.int32)),
                                           "y": ("out", "f32", q)}, status)


    for place in (-1, 3):
        token = np.ones((1, 16), np.float32)
        given = {"place": ("in", "i32", np.array([place], np.int32)), "q": ("in", "f32", token), "k": ("in", "f32", token), "v": ("in", "f32", token)}
        yield Refused("cache_append", {**given, "turned": ("out", "f32", token), "keys": ("inout", "f32", q), "values": ("inout", "f32", q)}, 1)
        yield Refused("attention_append", {**given, "keys": ("inout", "f32", q), "values": ("inout", "f32", q), "y": ("out", "f32", token)}, 1)


def tables():
    for dtype, index, (rows, width, n) in itertools.product(FLOATS, ["i32", "i64"], [(1, 1, 1), (10, 5, 40), (50, 33, 20)]):
        ids, table, dy = rng.integers(0, rows, n).astype(DTYPES[index]), values(dtype, (rows, width)), values(dtype, (n, width))
        yield Case("embedding", {"table": ("in", dtype, table), "ids": ("in", index, ids), "y": ("out", dtype, np.zeros_like(dy))}, {"y": (table[ids], None)})
        want = wide(dtype, table).copy()
        np.add.at(want, ids, wide(dtype, dy))
        yield Case("embedding_grad", {"ids": ("in", index, ids), "dy": ("in", dtype, dy), "dtable": ("inout", dtype, table)}, {"dtable": (want, RTOL[dtype])})
    for dtype, index, (first, of, rows) in itertools.product(FLOATS, ["i32", "i64"], [(0, 9, 4), (3, 9, 2), (4, 9, 5)]):  # some rows of a table
        whole, ids, dy = values(dtype, (of, 37)), rng.integers(0, of, 60).astype(DTYPES[index]), values(dtype, (60, 37))
        here, numbers = ((ids >= first) & (ids < first + rows))[:, None], {"first": first, "of": of}
        part, given = whole[first:first + rows], numbers | {"table": ("in", dtype, whole[first:first + rows]), "ids": ("in", index, ids)}
        yield Case("embedding", given | {"y": ("out", dtype, np.zeros_like(dy))}, {"y": (np.where(here, whole[ids], 0), None)})
        yield Case("embedding", given | {"y": ("inout", dtype, dy)}, {"y": (wide(dtype, dy) + np.where(here, wide(dtype, whole[ids]), 0), RTOL[dtype])},
                   {"y": "sum"})
        want = wide(dtype, part).copy()
        np.add.at(want, ids[here[:, 0]] - first, wide(dtype, dy)[here[:, 0]])
        yield Case("embedding_grad", numbers | {"ids": ("in", index, ids), "dy": ("in", dtype, dy), "dtable": ("inout", dtype, part)},
                   {"dtable": (want, RTOL[dtype])})


def philox(seed, count):
    """Salmon et al., SC 2011, in whole numbers of Python: words of counters 0, 1, ... under the key of a seed."""
    words, mask = [], 0xffffffff
    for block in range((count + 3) // 4):
        x, key = [block & mask, block >> 32, 0, 0], [seed & mask, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
            x = [b >> 32 ^ x[1] ^ key[0], b & mask, a >> 32 ^ x[3] ^ key[1], a & mask]
            key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
        words += x
    return np.array(words[:count], np.uint64)


def training():
    assert [int(w) for w in philox(0, 4)] == [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]  # Random123's known answer
    for dtype, n, first in itertools.product(FLOATS, [1, 1000], [0, 3]):
        x = values(dtype, n)
        u = philox(5000000007, first + n)[first:] / 2.0 ** 32
        want = np.where(u >= 0.3, wide(dtype, x) / 0.7, 0)
        yield Case("dropout", {"p": 0.3, "seed": 5000000007, "first": first, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))}, {"y": (want, RTOL[dtype])})
    for dtype, run, first in itertools.product(FLOATS, [1, 5, 8], [0, 2]):  # columns of rows of 13
        x = values(dtype, 40 * run)
        u = philox(11, first + 13 * 40)[first:].reshape(40, 13)[:, :run].ravel() / 2.0 ** 32
        want = np.where(u >= 0.3, wide(dtype, x) / 0.7, 0)
        yield Case("dropout", {"p": 0.3, "seed": 11, "first": first, "run": run, "pitch": 13, "x": ("in", dtype, x),
                               "y": ("out", dtype, np.zeros_like(x))}, {"y": (want, RTOL[dtype])})
    for dtype, step in itertools.product(FLOATS, [1, 10]):
        own = "f64" if dtype == "f64" else "f32"
        w, g, m, v = values(own, 500), values(dtype, 500), values(own, 500), values(own, 500, 0.1)
        M, V = 0.8 * wide(own, m) + 0.2 * wide(dtype, g), 0.95 * wide(own, v) + 0.05 * wide(dtype, g) ** 2
        W = wide(own, w) * (1 - 0.01 * 0.1) - 0.01 * M / (1 - 0.8 ** step) / (np.sqrt(V / (1 - 0.95 ** step)) + 1e-3)
        yield Case("adamw", {"lr": 0.01, "step": step, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "decay": 0.1, "w": ("inout", own, w), "g": ("in", dtype, g),
                             "m": ("inout", own, m), "v": ("inout", own, v)}, {"w": (W, RTOL[own]), "m": (M, RTOL[own]), "v": (V, RTOL[own])})


def scans():
    """Integers wrap as NumPy's do. Sums of floats are taken in double, so they are held against a long double."""
    for dtype, n, exclusive, reverse in itertools.product(ALL, [1, 127, 1025, 70001], [0, 1], [0, 1]):
        small = dtype in FLOATS and n > 2000
        x = values(dtype, n, 0 if small else -4, 0.01 if small else 4)
        with np.errstate(over="ignore"):
            upto = np.cumsum(x[::-1 if reverse else 1].astype(np.longdouble) if dtype in FLOATS else x[::-1 if reverse else 1], dtype=np.longdouble if dtype in FLOATS else x.dtype)
        want = np.concatenate([np.zeros(1, upto.dtype), upto[:-1]]) if exclusive else upto
        want = want[::-1 if reverse else 1]
        yield Case("scan", {"exclusive": exclusive, "reverse": reverse, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))},
                   {"y": (want.astype(float), RTOL[dtype]) if dtype in FLOATS else (want, None)})


def keys_of(dtype, n):
    """Keys with many equal ones, extremes, and in floats zeros of both signs, infinities and NaN of both signs."""
    x = values(dtype, n)
    if dtype not in FLOATS:
        info = np.iinfo(DTYPES[dtype])
        full = np.frombuffer(rng.bytes(n * x.itemsize), x.dtype)
        return np.where(rng.random(n) < 0.1, np.array([info.min, info.max], x.dtype)[rng.integers(0, 2, n)], np.where(rng.random(n) < 0.5, full, x))
    odd = np.array([0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1], x.dtype)
    return np.where(rng.random(n) < 0.3, odd[rng.integers(0, len(odd), n)], x)


def ranks(x, descending):
    """Where elements come from: NumPy's stable order, and its reverse with equal keys in the order they have."""
    return len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1] if descending else np.argsort(x, kind="stable")


def sorts():
    for dtype, n, down in itertools.product(ALL, [1, 300, 20001], [0, 1]):
        x = keys_of(dtype, n)
        order = ranks(x, down)
        yield Case("sort", {"descending": down, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))}, {"y": (x[order], None)})
        for index in ["i32", "i64"]:
            yield Case("argsort", {"descending": down, "x": ("in", dtype, x), "index": ("out", index, np.zeros(n, DTYPES[index]))}, {"index": (order, None)})
        for other in ["i32", "f32", "f64"] if n > 1 else ["u64"]:
            v = values(other, n)
            yield Case("sort_pairs", {"descending": down, "keys": ("in", dtype, x), "values": ("in", other, v), "sorted": ("out", dtype, np.zeros_like(x)),
                                      "moved": ("out", other, np.zeros_like(v))}, {"sorted": (x[order], None), "moved": (v[order], None)})


def merges():
    """Pieces of two sorted arrays; a key is followed through by its bits, so that equal ones of x come first."""
    sizes = [(1, 1, 2, 0), (300, 7, 300, 7), (70001, 3, 50000, 20000), (9000, 70000, 1, 78999), (40000, 40000, 80000, 0)]
    for dtype, (m, n, count, first), down in itertools.product(ALL, sizes, [0, 1]):
        x, y = (a[ranks(a, down)] for a in (keys_of(dtype, m), keys_of(dtype, n)))
        both = np.concatenate([x, y])
        want = both[ranks(both, down)][first:first + count]
        args = {"first": first, "descending": down} if down or first else {}
        yield Case("merge", {**args, "x": ("in", dtype, x), "y": ("in", dtype, y), "z": ("out", dtype, np.zeros(count, x.dtype))}, {"z": (want, None)})


def selections():
    """x[mask] of NumPy, then zeros: elements and rows, masks of which all, none and some are set, and less room than rows."""
    shapes = [(1,), (37,), (2048,), (70001,), (300, 5), (5000, 2, 3), (9, 700)]
    for k, (dtype, shape, part) in enumerate(itertools.product(ALL, shapes, [0, 0.3, 1])):
        kind, index = ["u8", "i8", "i32", "u32", "i64", "u64"][k % 6], ["i32", "i64"][k % 2]
        x = values(dtype, shape)
        mask = (rng.random(shape[0]) < part) * rng.integers(1, 100, shape[0])
        want = x[mask != 0]
        room = len(want) if k % 3 == 1 and len(want) else shape[0]
        want = np.concatenate([want, np.zeros((room - len(want), *shape[1:]), x.dtype)])
        args = {"x": ("in", dtype, x), "mask": ("in", kind, mask.astype(DTYPES[kind])), "y": ("out", dtype, np.zeros_like(want)),
                "count": ("out", index, np.zeros(1, DTYPES[index]))}
        yield Case("select", args, {"y": (want, None), "count": ([np.count_nonzero(mask)], None)})
    x, mask = values("f32", 5000), np.ones(5000, np.uint8)
    yield Refused("select", {"x": ("in", "f32", x), "mask": ("in", "u8", mask), "y": ("out", "f32", x[:4999]), "count": ("out", "i32", np.zeros(1, np.int32))},
                  5000)


def best():
    """The first of each row in NumPy's stable order, or in its reverse with equal elements in the order they have."""
    for dtype, (rows, width, k), small in itertools.product(ALL, [(1, 1, 1), (7, 40, 5), (3, 1500, 1024), (20, 257, 257)], [0, 1]):
        x = keys_of(dtype, rows * width).reshape(rows, width)
        order = np.array([ranks(row, not small)[:k] for row in x])
        index = "i64" if rows % 2 else "i32"
        yield Case("top_k", {"smallest": small, "x": ("in", dtype, x), "values": ("out", dtype, np.zeros((rows, k), x.dtype)),
                             "indices": ("out", index, np.zeros((rows, k), DTYPES[index]))},
                   {"values": (np.take_along_axis(x, order, 1), None), "indices": (order, None)})


def fourier():
    """Lengths of small factors, of large primes, and of both; complex numbers are pairs along the last axis."""
    for dtype, shape in itertools.product(WIDE, [(1, 1), (8,), (97,), (60,), (7, 2), (3, 8), (5, 60), (2, 3, 97), (2, 1001), (1, 4096), (4, 1009), (2, 202), (1, 34, 5), (1, 17161)]):
        x = values(dtype, (*shape, 2))
        z = x[..., 0].astype(float) + 1j * x[..., 1]
        for inverse, scale in [(0, 1), (1, 1), (0, -0.5)]:
            want = scale * (np.fft.ifft(z) if inverse else np.fft.fft(z))
            yield Case("fft", {"inverse": inverse, "scale": scale, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))},
                       {"y": (np.stack([want.real, want.imag], -1), RTOL[dtype])})
    for dtype, (shape, axis, axes), inverse in itertools.product(WIDE, FOURIER_AXES, [0, 1]):
        x = values(dtype, (*shape, 2))
        z = x[..., 0].astype(float) + 1j * x[..., 1]
        first = axis + z.ndim + 1 if axis < 0 else axis
        want = 1.5 * (np.fft.ifftn if inverse else np.fft.fftn)(z, axes=range(first, first + axes))
        yield Case("fft", {"inverse": inverse, "scale": 1.5, "axis": axis, "axes": axes, "x": ("in", dtype, x), "y": ("out", dtype, np.zeros_like(x))},
                   {"y": (np.stack([want.real, want.imag], -1), RTOL[dtype])})


# Shape without the pairs, first axis, axes: apart or side by side, lengths with and without large factors.
FOURIER_AXES = [((8, 3), 0, 1), ((97, 5), 0, 1), ((1, 60), 0, 1), ((4, 12, 5), 1, 1), ((4, 12, 5), -3, 1), ((3, 34, 7), 1, 1), ((6, 1, 4), 1, 1), ((5, 8), 0, 2),
                ((3, 16, 12), 1, 2), ((6, 5, 7), -4, 2), ((2, 37, 9, 2), 1, 2), ((4, 6, 10), 0, 3), ((9, 17, 5), 0, 3), ((2, 8, 3, 34), -4, 3), ((2, 4, 3, 5, 6), 1, 3)]


TOGETHER = 24  # cases in one graph, since to start a process takes longer than most of them


def failures_of(command, cases):
    """What fails of these cases, whose nodes are run as one graph. Where that is refused each is run alone, which tells whose fault it is."""
    graph, inputs, outputs = {"gantry": 1, "name": "cases", "buffers": {}, "nodes": []}, {}, {}
    for i, case in enumerate(cases):
        case.add_to(graph, inputs, outputs, f"c{i}_")
    try:
        got, _ = run(command, graph, inputs, outputs, ["--devices", "1"])
    except RuntimeError as together:
        alone = list(itertools.chain(*(alone_fails(command, case) for case in cases)))
        return alone or [(cases[0], f"fails only together with {len(cases) - 1} others: {together}")]
    failed = []
    for i, case in enumerate(cases):
        try:
            case.hold(got, f"c{i}_")
        except AssertionError as error:
            failed.append((case, error))
    return failed


def alone_fails(command, case):
    try:
        case.run(command)
    except (AssertionError, RuntimeError) as error:
        return [(case, error)]
    return []


def main(command, only):
    kernels = json.loads(gantry(command, "kernels", "--json"))["kernels"]
    wanted = set(only) or {k["name"] for k in kernels}
    count_of_scores(kernels)
    cases = [case for case in itertools.chain(elementwise(), reductions(), grids(), images(), sizes(), filters(), algebra(), systems(), factors(), learning(), transformers(), stacks(), attention(), appended(), attended_tokens(), heads(), gradients_of_heads(), large_heads(), failures(), wrong_entries(), wrong_labels(), convolutions(), tables(), training(),
                                scans(), sorts(), merges(), selections(), best(), fourier())
             if case.kernel in wanted]
    seen, count = {case.kernel for case in cases}, len(cases)
    apart = [case for case in cases if type(case) is not Case]  # those that are refused or have a graph of their own
    cases = [case for case in cases if type(case) is Case]
    found = list(itertools.chain(*(alone_fails(command, case) for case in apart)))
    for first in range(0, len(cases), TOGETHER):
        found += failures_of(command, cases[first:first + TOGETHER])
    for case, error in found:
        print(f"FAILED {case.kernel}: {error}")
    failed = len(found)
    for name in sorted(wanted - seen - {"halo_pack", "halo_unpack", "retile"}):  # of tiles: tests/conformance/tiles
        failed += 1
        print(f"FAILED no case for kernel {name}")
    print(f"{len(seen)} kernels, {count - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
