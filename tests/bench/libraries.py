#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of the library beside what PyTorch does with the same arrays, in turn, on one GPU: us of a start of a graph of one node, us of a call of
PyTorch within a stream of calls, and their ratio.

    tests/bench/libraries.py GANTRY [--cases rows,losses,products,orders,networks,transforms,sparse] [--only REGULAR EXPRESSION]
                             [--seconds 1000] [--limit 100] [--their-graphs] [--without-libraries]

With --their-graphs PyTorch's call is also captured as a CUDA graph of 20, so that its host does not count. With --without-libraries kernels for which NVIDIA's
libraries are opened are measured with them and without, in turn, and PyTorch is not needed: us of both, and own over the library's; factors and solves are
behind a map that makes their matrix anew, in both. Each program is ended after --limit seconds, and after --seconds the rest is named. What fails is told, and
the exit code is 1 then.
"""
import argparse
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy

try:
    import torch
except ImportError:
    torch = None

TYPES = {"f32": "float32", "bf16": "bfloat16", "f64": "float64", "i32": "int32", "i64": "int64"}
LIBRARIES = ("cublas", "cublasLt", "cusolver", "cufft", "cudnn")


def state(shape, dtype, low=0, high=1):
    return {"dtype": dtype, "shape": shape, "class": "state", "init": {"random": {"seed": 1, "low": low, "high": high}}}


def array(shape, dtype, high=1):
    return (torch.rand(shape, device="cuda") * high).to(type_of(dtype))


def type_of(dtype):
    return getattr(torch, TYPES[dtype])


def placed(name, buffer, folder):
    """An array that is the first contents of a buffer becomes a file beside the graph."""
    if not isinstance(buffer.get("init"), numpy.ndarray):
        return buffer
    numpy.save(folder / f"{name}.npy", buffer["init"])
    return {**buffer, "init": {"npy": f"{name}.npy"}}


def node(name, **args):
    return {"id": name, "kernel": name, "args": args}


def ours(words, buffers, nodes, environment=None):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.json"
        buffers = {key: placed(key, buffer, path.parent) for key, buffer in buffers.items()}
        path.write_text(json.dumps({"gantry": 1, "buffers": buffers, "nodes": nodes}))
        done = subprocess.run([words.gantry, "run", path, "--backend", words.backend, "--devices", "1", "--iterations", "11", "--json"],
                              capture_output=True, text=True, timeout=words.limit, env=environment)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    return json.loads(done.stdout)["measured_us"]


def theirs(call, times=20):
    for _ in range(3):
        call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(times):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1000 / times


def theirs_captured(call, times=20):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            call()
    return theirs(graph.replay, 5) / times


def rows():
    """(title, buffers, kernel, its arguments, the call of PyTorch)"""
    for dtype in ("f32", "bf16"):
        for n, width in ((65536, 768), (16384, 4096), (4096, 16384)):
            x, gain = array((n, width), dtype), array(width, dtype)
            buffers = {"x": state([n, width], dtype), "y": state([n, width], dtype)}
            yield (f"layernorm {dtype} {n} x {width}", {**buffers, "g": state([width], dtype)}, "layernorm", {"x": "x", "gain": "g", "bias": "g", "y": "y"},
                   lambda: torch.nn.functional.layer_norm(x, (width,), gain, gain))
            yield f"softmax {dtype} {n} x {width}", buffers, "softmax", {"x": "x", "y": "y"}, lambda: torch.softmax(x, 1)


def products():
    for dtype, count, n, depth in (("bf16", 64, 1024, 64), ("f32", 64, 1024, 64), ("bf16", 32, 4096, 128), ("f64", 16, 1024, 64), ("bf16", 512, 64, 64)):
        a, c = array((count, n, depth), dtype), torch.empty((count, n, n), device="cuda", dtype=type_of(dtype))
        yield (f"gemm_batched {dtype} {count} of {n} x {n} x {depth}",
               {"a": state([count, n, depth], dtype), "b": state([count, n, depth], dtype), "c": state([count, n, n], dtype)},
               "gemm_batched", {"tb": 1, "a": "a", "b": "b", "c": "c"}, lambda: torch.bmm(a, a.transpose(1, 2), out=c))


def orders():
    for dtype in ("f32", "f64", "i32", "i64"):
        for n in (1 << 14, 1 << 20, 1 << 26):
            x, found = array(n, dtype, 1e5), (array(n, dtype), torch.empty(n, device="cuda", dtype=torch.int64))
            buffers = {"x": state([n], dtype, 0, 100000), "y": state([n], dtype, 0, 100000)}
            yield f"sort {dtype} {n}", buffers, "sort", {"x": "x", "y": "y"}, lambda: torch.sort(x, out=found)
            yield f"scan {dtype} {n}", buffers, "scan", {"x": "x", "y": "y"}, lambda: torch.cumsum(x, 0, out=found[0])
    x = array((1024, 16384), "f32")
    yield ("top_k f32 64 of 1024 x 16384", {"x": state([1024, 16384], "f32"), "v": state([1024, 64], "f32"), "i": state([1024, 64], "i32")},
           "top_k", {"x": "x", "values": "v", "indices": "i"}, lambda: torch.topk(x, 64, 1))


def networks():
    for dtype in ("bf16", "f32"):
        for heads, n, width, causal in ((32, 1024, 128, 0), (16, 4096, 64, 1)):
            q = array((1, heads, n, width), dtype)
            buffers = {name: state([heads, n, width], dtype) for name in "qkvy"}
            yield (f"attention {dtype} {heads} of {n} x {width}{' causal' * causal}", buffers, "attention", {"causal": causal, **{name: name for name in "qkvy"}},
                   lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=bool(causal)))
            given = [array((1, heads, n, width), dtype).requires_grad_() for _ in "qkv"]
            y = torch.nn.functional.scaled_dot_product_attention(*given, is_causal=bool(causal))
            names = ("q", "k", "v", "y", "dy", "dq", "dk", "dv")
            buffers = {name: state([heads, n, width], dtype) for name in names} | {"lse": state([heads, n], "f32")}
            for more, what in ((("lse",), ""), ((), ", without lse")):  # PyTorch's has what its forward pass kept
                yield (f"attention_grad {dtype} {heads} of {n} x {width}{' causal' * causal}{what}", {name: buffers[name] for name in (*names, *more)},
                       "attention_grad", {"causal": causal, **{name: name for name in (*names, *more)}}, lambda: torch.autograd.grad(y, given, q, retain_graph=True))
        for count, channels, size, out, window in ((32, 64, 56, 64, 3), (32, 256, 14, 256, 3), (16, 3, 224, 64, 7)):
            x, w = array((count, channels, size, size), dtype), array((out, channels, window, window), dtype)
            buffers = {"x": state([count, channels, size, size], dtype), "w": state([out, channels, window, window], dtype),
                       "y": state([count, out, size, size], dtype)}
            yield (f"conv2d {dtype} {count} x {channels} x {size}^2, {out} of {window}^2", buffers, "conv2d", {"pad": window // 2, "x": "x", "w": "w", "y": "y"},
                   lambda: torch.nn.functional.conv2d(x, w, padding=window // 2))
            dy = array((count, out, size, size), dtype)
            yield (f"conv2d_grad_x {dtype} {count} x {channels} x {size}^2, {out} of {window}^2", buffers, "conv2d_grad_x",
                   {"pad": window // 2, "w": "w", "dy": "y", "dx": "x"}, lambda: torch.nn.grad.conv2d_input(x.shape, w, dy, padding=window // 2))
            yield (f"conv2d_grad_w {dtype} {count} x {channels} x {size}^2, {out} of {window}^2", buffers, "conv2d_grad_w",
                   {"pad": window // 2, "x": "x", "dy": "y", "dw": "w"}, lambda: torch.nn.grad.conv2d_weight(x, w.shape, dy, padding=window // 2))


def transforms():
    for dtype in ("f32", "f64"):
        for rows, n in ((4096, 1024), (64, 65536), (1000, 1000)):
            x = torch.view_as_complex(array((rows, n, 2), dtype))
            buffers = {"x": state([rows, n, 2], dtype), "y": state([rows, n, 2], dtype)}
            yield f"fft {dtype} {rows} of {n}", buffers, "fft", {"x": "x", "y": "y"}, lambda: torch.fft.fft(x)
    for n in (1024, 8192):
        a = array((n, n), "f64")
        yield (f"getrf f64 {n}", {"a": state([n, n], "f64"), "p": {"dtype": "i32", "shape": [n]}}, "getrf", {"a": "a", "pivots": "p"},
               lambda: torch.linalg.lu_factor(a))
    for dtype, m, n in (("f64", 1024, 1024), ("f64", 262144, 256), ("f64", 50000, 64), ("f64", 1048576, 64), ("f32", 1048576, 64), ("f64", 262144, 32),
                        ("f64", 262144, 16), ("f64", 1024, 64)):
        a = array((m, n), dtype)
        yield (f"qr {dtype} {m} x {n}", {"a": state([m, n], dtype), "q": state([m, n], dtype), "r": state([n, n], dtype)}, "qr",
               {"a": "a", "q": "q", "r": "r"}, lambda: torch.linalg.qr(a))


def losses():
    """PyTorch's has the loss of f32 and f64 in their dtype, and that of 16 bits rounded to it."""
    for dtype, n, classes in (("f32", 262144, 64), ("f32", 8192, 32768), ("bf16", 262144, 64), ("bf16", 8192, 32768)):
        x, right = array((n, classes), dtype).requires_grad_(), torch.randint(classes, (n,), device="cuda")
        buffers = {"x": state([n, classes], dtype), "k": state([n], "i32", 0, classes)}
        yield (f"softmax_xent {dtype} {n} x {classes}", {**buffers, "loss": {"dtype": "f32", "shape": [1], "init": 0}}, "softmax_xent",
               {"logits": "x", "labels": "k", "loss": "loss"}, lambda: torch.nn.functional.cross_entropy(x.detach(), right, reduction="sum"))
        yield (f"softmax_xent_grad {dtype} {n} x {classes}, PyTorch's with the loss", {**buffers, "g": state([n, classes], dtype)}, "softmax_xent_grad",
               {"logits": "x", "labels": "k", "grad": "g"}, lambda: torch.autograd.grad(torch.nn.functional.cross_entropy(x, right, reduction="sum"), x))


def sparse():
    """A band, as of a stencil, and rows of entries anywhere; PyTorch's are by cuSPARSE."""
    for dtype in ("f32", "f64"):
        for rows, each, band in ((1 << 20, 16, True), (1 << 20, 16, False), (1 << 16, 256, True)):
            at = numpy.arange(each) if band else numpy.random.default_rng(1).integers(0, rows, (rows, each))
            column = numpy.sort((numpy.arange(rows)[:, None] * band + at) % rows, 1).astype(numpy.int32).reshape(-1)
            a = torch.sparse_csr_tensor(torch.arange(rows + 1, device="cuda", dtype=torch.int32) * each, torch.tensor(column, device="cuda"),
                                        array(rows * each, dtype), (rows, rows))
            buffers = {"r": {"dtype": "i32", "shape": [rows + 1], "class": "state", "init": {"iota": {"step": each}}},
                       "c": {"dtype": "i32", "shape": [rows * each], "class": "state", "init": column}, "v": state([rows * each], dtype)}
            for width in (1, 32, 128):
                shape = [rows] if width == 1 else [rows, width]
                x, kernel = array(shape, dtype), "spmv_csr" if width == 1 else "spmm_csr"
                yield (f"{kernel} {dtype} {rows} rows of {each}{', band' * band}, {width}", {**buffers, "x": state(shape, dtype), "y": state(shape, dtype)},
                       kernel, {"row_ptr": "r", "col": "c", "val": "v", "x": "x", "y": "y"}, lambda: a @ x)


def anew(n, dtype):
    """Buffers and a map that make at each start a matrix with ones on its diagonal and less than 1 / n beside: positive definite by its lower half."""
    count = {"dtype": "i32", "class": "const", "init": {"iota": {}}}
    buffers = {"x": state([n, n], dtype, 0, 1 / n), "i": {**count, "shape": [n, 1]}, "j": {**count, "shape": [n]}, "a": {"dtype": dtype, "shape": [n, n]}}
    return buffers, {"id": "anew", "map": {"a": "select(i == j, 1, x)"}, "args": {name: name for name in "xija"}}


def own(scale=1):
    """(title, buffers, nodes) of what is done without NVIDIA's libraries, too. Extents are divided by the scale."""
    for dtype, size in (("f32", 4096), ("bf16", 4096), ("f64", 2048)):
        n = size // scale
        square = {name: state([n, n], dtype) for name in "abc"}
        yield f"gemm {dtype} {n}", square, [node("gemm", a="a", b="b", c="c")]
        if dtype != "f64":
            yield (f"gemm_bias {dtype} {n}, gelu", {**square, "d": state([n], dtype)}, [node("gemm_bias", activation=2, a="a", b="b", bias="d", c="c")])
            count, n, depth = 64, 1024 // scale, 64
            yield (f"gemm_batched {dtype} {count} of {n} x {n} x {depth}", {"a": state([count, n, depth], dtype), "b": state([count, n, depth], dtype),
                   "c": state([count, n, n], dtype)}, [node("gemm_batched", tb=1, a="a", b="b", c="c")])
    for dtype, rows, n in (("f32", 4096, 1024), ("f64", 64, 65536), ("f64", 1000, 1000)):
        rows, n = rows // scale, n // scale
        yield f"fft {dtype} {rows} of {n}", {"x": state([rows, n, 2], dtype), "y": state([rows, n, 2], dtype)}, [node("fft", x="x", y="y")]
    for dtype, m, n in (("f64", 1024, 1024), ("f64", 4096, 512)):
        m, n = m // scale, n // scale
        yield (f"qr {dtype} {m} x {n}", {"a": state([m, n], dtype), "q": state([m, n], dtype), "r": state([n, n], dtype)}, [node("qr", a="a", q="q", r="r")])
    for dtype, size in (("f64", 4096), ("f32", 4096), ("f64", 1024)):
        n = size // scale
        buffers, begin = anew(n, dtype)
        yield f"potrf {dtype} {n}", buffers, [begin, node("potrf", a="a")]
        yield f"getrf {dtype} {n}", {**buffers, "p": {"dtype": "i32", "shape": [n]}}, [begin, node("getrf", a="a", pivots="p")]
        yield f"trsm {dtype} {n} x {n}", {**buffers, "b": state([n, n], dtype)}, [begin, node("trsm", a="a", b="b")]
        yield f"syrk {dtype} {n} x {n}", {"a": state([n, n], dtype), "c": state([n, n], dtype)}, [node("syrk", a="a", c="c")]


def hide(folder):
    """The environment of a run that finds libraries without functions in place of NVIDIA's, which count as none."""
    empty = folder / "empty.so"
    subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-x", "c", os.devnull, "-o", empty], check=True)
    ctypes.CDLL(str(empty))  # where nothing can be loaded from, theirs would be taken
    for name in LIBRARIES:
        for version in range(9, 15):
            (folder / f"lib{name}.so.{version}").symlink_to(empty)
    return {**os.environ, "GANTRY_CUDA_LIBRARIES": ":".join(filter(None, [str(folder), os.environ.get("GANTRY_CUDA_LIBRARIES")]))}


def without_libraries(words):
    with tempfile.TemporaryDirectory() as folder:
        environment = hide(pathlib.Path(folder))
        for title, buffers, nodes in own(words.scale):
            def line(buffers=buffers, nodes=nodes):
                library, alone = ours(words, buffers, nodes), ours(words, buffers, nodes, environment)
                return f"{library:10.1f} us   without libraries {alone:10.1f} us {alone / library:6.2f}"
            yield title, line


def beside_pytorch(words):
    if not torch:
        raise SystemExit("there is no PyTorch for this Python")
    torch.backends.cudnn.allow_tf32 = False  # as torch.matmul by default, and as Gantry: f32 is f32
    for cases in (rows, losses, products, orders, networks, transforms, sparse):
        if words.cases and cases.__name__ not in words.cases.split(","):
            continue
        for title, buffers, name, args, call in cases():
            def line(buffers=buffers, name=name, args=args, call=call):
                mine, other = ours(words, buffers, [node(name, **args)]), theirs(call)
                text = f"{mine:10.1f} us   PyTorch {other:10.1f} us {mine / other:6.2f}"
                if not words.their_graphs:
                    return text
                try:
                    captured = theirs_captured(call)
                except RuntimeError as error:
                    return f"{text}   not captured: {error}".splitlines()[0]
                return f"{text}   captured {captured:10.1f} us {mine / captured:6.2f}"
            yield title, line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gantry")
    parser.add_argument("--cases", default="", help="only these, beside PyTorch")
    parser.add_argument("--only", default="", help="those in whose name this regular expression is found")
    parser.add_argument("--seconds", type=float, default=1000, help="for all of it")
    parser.add_argument("--limit", type=float, default=100, help="seconds for one program")
    parser.add_argument("--their-graphs", action="store_true")
    parser.add_argument("--without-libraries", action="store_true")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--scale", type=int, default=1, help="with --without-libraries: extents are divided by this")
    words = parser.parse_args()
    end, failed = time.monotonic() + words.seconds, 0
    for title, line in (without_libraries if words.without_libraries else beside_pytorch)(words):
        if not re.search(words.only, title):
            continue
        try:
            print(f"{title:36} {line() if time.monotonic() < end else 'no time'}", flush=True)
        except (RuntimeError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"{title:36} failed: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
