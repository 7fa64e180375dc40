# SPDX-License-Identifier: Apache-2.0
"""How fast formulas and kernels of rows go through memory on one GPU, beside a copy in the same run.

    formulas.py GANTRY [--devices 1] [--elements 268435456]

Arrays stay on the GPU. A line each: what is computed, microseconds, GB/s of the bytes that have to be read and written, and that over the copy's.
With --no-fuse, nodes that become one otherwise are launched one by one.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile


def state(shape, dtype="f32", init=1.5):
    return {"dtype": dtype, "shape": shape, "class": "state", "init": init}


def map_of(formula, names, **numbers):
    return [{"id": "k", "map": {"y": formula}, "args": {**{name: name for name in names}, **numbers}}]


def reduce_of(formula, names):
    return [{"id": "k", "reduce": {"r": formula}, "args": {name: name for name in names}}]


def kernel(name, *args):
    return [{"id": "k", "kernel": name, "args": {arg: arg for arg in args}}]


def elementwise(n):
    two, half = {"x": state([n]), "y": state([n])}, {"x": state([n], "bf16"), "y": state([n], "bf16")}
    yield "copy", two, kernel("copy", "x", "y"), 8 * n
    yield "x * 2 + 1", two, map_of("x * 2 + 1", "xy"), 8 * n
    yield "sqrt(abs(x)) * s + 1", two, map_of("sqrt(abs(x)) * s + 1", "xy", s=0.5), 8 * n
    yield "exp(x - 1)", two, map_of("exp(x - 1)", "xy"), 8 * n
    yield "x * 2 + 1 of bf16", half, map_of("x * 2 + 1", "xy"), 4 * n
    for formula, dtype in (("sum(x)", "f64"), ("sum(square(x - 0.5))", "f64"), ("max(x)", "f32"), ("argmax(x)", "i64")):
        yield formula, {"x": state([n]), "r": state([1], dtype, 0)}, reduce_of(formula, "xr"), 4 * n
    yield "kernel reduce_sum", {"x": state([n]), "out": state([1], "f32", 0)}, kernel("reduce_sum", "x", "out"), 4 * n


def that_become_one(n):
    both = {"x": state([n]), "y": state([n]), "r": state([1], "f64", 0)}
    nodes = [{"id": "axpy", "map": {"y": "x * 2 + y"}, "args": {"x": "x", "y": "y"}}, {"id": "sum", "reduce": {"r": "sum(y)"}, "args": {"y": "y", "r": "r"}}]
    yield "y = x * 2 + y, then sum(y)", both, nodes, 12 * n
    chain = {"x": state([n]), "t": {"dtype": "f32", "shape": [n]}, "y": state([n])}
    nodes = [{"id": "t", "map": {"t": "sqrt(abs(x))"}, "args": {"x": "x", "t": "t"}}, {"id": "y", "map": {"y": "t * x + 1"}, "args": {"t": "t", "x": "x", "y": "y"}}]
    yield "t = sqrt(abs(x)), then t * x + 1", chain, nodes, 8 * n


def along_axes(n, width):
    rows = n // width
    x, y = state([rows, width]), state([rows, width])
    yield f"x + b, rows of {width}", {"x": x, "y": y, "b": state([width])}, map_of("x + b", "xyb"), 8 * n
    yield f"x * c, rows of {width}", {"x": x, "y": y, "c": state([rows, 1])}, map_of("x * c", "xyc"), 8 * n
    yield f"sum of each row of {width}", {"x": x, "r": state([rows, 1])}, reduce_of("sum(x, 1)", "xr"), 4 * n
    yield f"sum of each of {width} columns", {"x": x, "r": state([width])}, reduce_of("sum(x)", "xr"), 4 * n


def of_rows(n, width):
    rows = n // width
    x = {"x": state([rows, width]), "y": state([rows, width])}
    gains = {**x, "gain": state([width]), "bias": state([width])}
    own = {**gains, "m": {"dtype": "f32", "shape": [rows, 1]}, "v": {"dtype": "f32", "shape": [rows, 1]}}
    formulas = [{"id": "m", "reduce": {"m": "mean(x, 1)"}, "args": {"x": "x", "m": "m"}},
                {"id": "v", "reduce": {"v": "mean(square(x - m), 1)"}, "args": {"x": "x", "m": "m", "v": "v"}},
                {"id": "y", "map": {"y": "(x - m) * rsqrt(v + 1e-5) * gain + bias"}, "args": {name: name for name in ("x", "m", "v", "gain", "bias", "y")}}]
    yield f"kernel layernorm, {width}", gains, kernel("layernorm", "x", "gain", "bias", "y"), 8 * rows * width
    yield f"layernorm by formulas, {width}", own, formulas, 8 * rows * width
    yield f"kernel softmax, {width}", x, kernel("softmax", "x", "y"), 8 * rows * width


def measure(words, folder, buffers, nodes):
    path = folder / "graph.json"
    path.write_text(json.dumps({"gantry": 1, "buffers": buffers, "nodes": nodes}))
    done = subprocess.run([words.gantry, "run", path, "--backend", "cuda", "--devices", words.devices, "--iterations", "11", "--json", *(["--no-fuse"] if words.no_fuse else [])],
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)["measured_us"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gantry")
    parser.add_argument("--devices", default="1")
    parser.add_argument("--elements", type=int, default=1 << 28)
    parser.add_argument("--no-fuse", action="store_true")
    parser.add_argument("--only", default="", help="those with this in their name, and the copy")
    words, copy = parser.parse_args(), None
    n = words.elements
    cases = [*elementwise(n), *that_become_one(n), *(one for width in (64, 1024, 8192) for one in along_axes(n, width)), *(one for width in (256, 768, 4096, 16384) for one in of_rows(n // 4, width))]
    with tempfile.TemporaryDirectory() as folder:
        for title, buffers, nodes, moved in cases:
            if words.only not in title and title != "copy":
                continue
            us = measure(words, pathlib.Path(folder), buffers, nodes)
            copy = copy or moved / us
            print(f"{title:32} {us:10.1f} us {moved / us / 1e3:8.0f} GB/s {moved / us / copy:6.2f}", flush=True)


main()
