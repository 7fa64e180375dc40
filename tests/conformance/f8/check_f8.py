# SPDX-License-Identifier: Apache-2.0
"""Floating point of 8 bits against the table of its definition (ofp8.py): conversions, first contents, files, products with scales.

    check_f8.py GANTRY [RUN_ARGUMENT ...]

GANTRY_F8_FORMULAS=no leaves out what compiles formulas for a GPU, which emulated ones do not do.
"""
import itertools
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from numpy_gantry import from_bf16, np, run, to_bf16  # noqa: E402

from ofp8 import FORMATS  # noqa: E402

RESULTS = {"f32": np.float32, "f16": np.float16, "bf16": np.uint16}


def buffer(dtype, *shape, cls="input"):
    return {"dtype": dtype, "shape": list(shape), "class": cls, "output": cls != "input"}


def same(what, want, got):
    want, got = np.asarray(want), np.asarray(got)
    if want.dtype.kind == "f":
        wrong = ~((want == got) & (np.signbit(want) == np.signbit(got)) | np.isnan(want) & np.isnan(got))
    else:
        wrong = want != got
    if wrong.any():
        at = np.flatnonzero(wrong)[0]
        raise AssertionError(f"{what}: {wrong.sum()} of {wrong.size} differ, the first [{at}]: {got.flat[at]!r} for {want.flat[at]!r}")


def check_widening(command, arguments, f):
    """All patterns as f32, and back."""
    bits = np.arange(256, dtype=np.uint8)
    graph = {"gantry": 1, "buffers": {"x": buffer(f.name, 256), "y": buffer("f32", 256, cls="state"), "back": buffer(f.name, 256, cls="state")},
             "nodes": [{"id": "widen", "map": {"y": "x"}, "args": {"x": "x", "y": "y"}},
                       {"id": "narrow", "map": {"back": "y"}, "args": {"y": "y", "back": "back"}}]}
    got, _ = run(command, graph, {"x": (f.name, bits)}, {"y": ("f32", [256]), "back": (f.name, [256])}, arguments)
    same(f"{f.name} to f32", f.to_float(bits), got["y"])
    want = np.where(np.isinf(f.value), f.nearest(np.where(np.isinf(f.value), np.copysign(f.most, f.value), 0)), bits)
    is_nan = np.isnan(f.value)
    same(f"{f.name} to f32 and back", want[~is_nan], got["back"][~is_nan])
    assert np.isnan(f.value[got["back"]][is_nan]).all(), "a NaN became a number"


def check_narrowing(command, arguments, f, rng):
    """f32, f64, f16 and whole numbers to f8, stored and as casts within formulas."""
    x = f.hard(rng)
    n = len(x)
    wide = x.astype(np.float64) * (1 + 2.0 ** -30)
    whole = rng.integers(-500, 500, n).astype(np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        half = x.astype(np.float16)
    buffers = {"x": buffer("f32", n), "d": buffer("f64", n), "h": buffer("f16", n), "i": buffer("i32", n), "cast": buffer("f32", n, cls="state")}
    nodes = [{"id": "cast", "map": {"cast": f"{f.name}(x)"}, "args": {"x": "x", "cast": "cast"}}]
    outputs = {"cast": ("f32", [n])}
    for name in "xdhi":
        buffers[f"of_{name}"] = buffer(f.name, n, cls="state")
        nodes.append({"id": f"of_{name}", "map": {"y": f"f32({name})"if name == "i" else name}, "args": {name: name, "y": f"of_{name}"}})
        outputs[f"of_{name}"] = (f.name, [n])
    got, _ = run(command, {"gantry": 1, "buffers": buffers, "nodes": nodes}, {"x": x, "d": wide, "h": half, "i": whole}, outputs, arguments)
    with np.errstate(over="ignore"):
        of_double = wide.astype(np.float32)  # f64 goes by way of f32
    for name, values in (("x", x), ("d", of_double), ("h", half), ("i", whole)):
        same(f"{name} to {f.name}", f.nearest(values), got[f"of_{name}"])
    same(f"{f.name}(x)", f.to_float(f.nearest(x)), got["cast"])


def check_contents(command, arguments, f):
    """First contents: numbers are rounded once, from double."""
    n = 1000
    init = {"v": 0.3, "i": {"iota": {"start": -3, "step": 0.07}}, "u": {"random": {"seed": 7, "low": -2, "high": 2}}}
    buffers, nodes, outputs = {}, [], {}
    for name, dtype, contents in (*((k, f.name, v) for k, v in init.items()), ("w", "f32", init["u"])):
        buffers[name] = {"dtype": dtype, "shape": [n], "init": contents}
        buffers[f"{name}_out"] = buffer(dtype, n, cls="temp")
        nodes.append({"id": name, "copy": {"from": name, "to": f"{name}_out"}})
        outputs[f"{name}_out"] = (dtype, [n])
    got, _ = run(command, {"gantry": 1, "buffers": buffers, "nodes": nodes}, {}, outputs, arguments)
    got = {name[0]: array for name, array in got.items()}
    same("a value", f.nearest(np.full(n, 0.3)), got["v"])
    same("iota", f.nearest(-3 + 0.07 * np.arange(n)), got["i"])
    same("uniform", f.nearest(got["w"]), got["u"])


def as_float(dtype, array):
    return from_bf16(array) if dtype == "bf16" else array


def check_products(command, arguments, f, rng, sums):
    """The factors that f8 holds, multiplied in double: sums of f32 differ by a little, and results are rounded once. All in one graph."""
    tolerance = {"f32": 2e-6, "f16": 2e-3, "bf16": 8e-3}
    buffers, nodes, inputs, outputs, want = {}, [], {}, {}, {}
    for (m, n, k), ta, tb, result in itertools.product([(1, 3, 5), (70, 33, 129), (64, 48, 32)], [0, 1], [0, 1], RESULTS):
        i = len(nodes)
        names = {name: f"{name}{i}" for name in ("a", "b", "c")}
        a = f.nearest(rng.normal(0, 1, (k, m) if ta else (m, k)))
        b = f.nearest(rng.normal(0, 1, (n, k) if tb else (k, n)))
        scale = {"scale_a": np.float32([0.37]), "scale_b": np.float32([1.9])} if m == 70 else {}
        adds = k == 32
        held = rng.normal(0, 1, (m, n)).astype(np.float32)
        held = to_bf16(held) if result == "bf16" else held.astype(RESULTS[result])
        node = {"id": f"p{i}", "kernel": "gemm", "args": {**names, "alpha": 0.5, "ta": ta, "tb": tb, **{name: name for name in scale}}}
        if adds:
            node["args"]["beta"] = 0.75
            node["access"] = {"c": "readwrite"}
        nodes.append(node)
        buffers.update({names["a"]: buffer(f.name, *a.shape), names["b"]: buffer(f.name, *b.shape), names["c"]: buffer(result, m, n, cls="state")})
        buffers.update({name: buffer("f32", 1) for name in scale})
        inputs.update({names["a"]: (f.name, a), names["b"]: (f.name, b), names["c"]: ("bf16", held) if result == "bf16" else held, **scale})
        outputs[names["c"]] = (result, [m, n])
        x, y = (f.value[a].T if ta else f.value[a]), (f.value[b].T if tb else f.value[b])
        factor = 0.5 * float(np.prod([float(s[0]) for s in scale.values()]))
        exact = factor * (x @ y) + (0.75 * as_float(result, held).astype(np.float64) if adds else 0)
        want[names["c"]] = exact, tolerance[result] * np.abs(exact) + sums * factor * (np.abs(x) @ np.abs(y)) + 1e-6, (m, n, k, ta, tb)
    got, _ = run(command, {"gantry": 1, "buffers": buffers, "nodes": nodes}, inputs, outputs, arguments)
    for name, (exact, allowed, what) in want.items():
        off = np.abs(as_float(outputs[name][0], got[name]).astype(np.float64) - exact)
        assert (off <= allowed).all(), f"gemm of {f.name} to {outputs[name][0]}, m n k ta tb {what}: off by {(off / allowed).max():.2f} times what is allowed"


def check_recipe(command, arguments, sums):
    """docs/examples/f8_linear.json: scales from the largest elements, a product in f8, compared with that of f32."""
    path = pathlib.Path(__file__).resolve().parents[3] / "docs" / "examples" / "f8_linear.json"
    graph = json.loads(path.read_text())
    m, n, k = (graph["params"][name] for name in "mnk")
    rng, f = np.random.default_rng(5), FORMATS["f8e4m3"]
    x, w = rng.normal(0, 3, (m, k)).astype(np.float32), rng.normal(0, 0.02, (n, k)).astype(np.float32)
    got, _ = run(command, path, {"x": x, "w": w}, {"y": ("f32", [m, n]), "x8": ("f8e4m3", [m, k]), "scale_x": ("f32", [1])}, arguments)
    scale = [np.float32(np.abs(v).max()) / np.float32(448) for v in (x, w)]
    same("the scale of x", [scale[0]], got["scale_x"])
    q = [f.nearest(v / s) for v, s in zip((x, w), scale)]
    same("x in f8", q[0], got["x8"])
    want = float(scale[0]) * float(scale[1]) * f.value[q[0]] @ f.value[q[1]].T
    exact = x.astype(np.float64) @ w.T.astype(np.float64)
    magnitude = float(scale[0]) * float(scale[1]) * np.abs(f.value[q[0]]) @ np.abs(f.value[q[1]]).T
    assert (np.abs(got["y"] - want) <= sums * magnitude).all()
    error = np.linalg.norm(got["y"] - exact) / np.linalg.norm(exact)
    assert 0.01 < error < 0.06, f"of the product in f32 it differs by {error:.3f}; 3 bits of fraction make about 0.036"


def check_files(command, f):
    """.npy as the package ml_dtypes writes it."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        bits = np.arange(256, dtype=np.uint8)
        descr = "|V1" if f.name == "f8e4m3" else "<f1"
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (256,), }}".encode()
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        (folder / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bits.tobytes())
        graph = {"gantry": 1, "buffers": {"x": buffer(f.name, 256), "y": buffer(f.name, 256, cls="state")}, "nodes": [{"id": "c", "copy": {"from": "x", "to": "y"}}]}
        (folder / "g.json").write_text(json.dumps(graph))
        subprocess.run([command, "run", "g.json", "--input", "x=x.npy", "--output", "y=y.npy"], cwd=folder, check=True, capture_output=True)
        written = (folder / "y.npy").read_bytes()
        assert f"'descr': '{descr}'".encode() in written[:128], written[:128]
        assert written[-256:] == bits.tobytes()


def refused(command, buffers, node, *words):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "g.json"
        path.write_text(json.dumps({"gantry": 1, "buffers": buffers, "nodes": [{"id": "k", **node}]}))
        done = subprocess.run([command, "dot", path], capture_output=True, text=True)
        assert done.returncode and all(word in done.stderr for word in words), f"{node}: exit {done.returncode}: {done.stderr}"


def check_refusals(command):
    """What f8 is not for is refused, with what to do instead."""
    def three(a, b, c, **more):
        return {"a": buffer(a, 16, 16), "b": buffer(b, 16, 16), "c": buffer(c, 16, 16, cls="state"), **more}
    args = {"a": "a", "b": "b", "c": "c"}
    one = {"s": buffer("f32", 1), "s2": buffer("f32", 2)}
    refused(command, three("f8e4m3", "f8e4m3", "f8e4m3"), {"kernel": "gemm", "args": args}, "f16, bf16, f32")
    refused(command, three("f8e4m3", "f8e4m3", "f64"), {"kernel": "gemm", "args": args}, "f16, bf16 or f32")
    refused(command, three("f8e4m3", "bf16", "f32"), {"kernel": "gemm", "args": args}, "bf16", "f8e4m3")
    refused(command, three("bf16", "bf16", "f32", **one), {"kernel": "gemm", "args": {**args, "scale_a": "s"}}, "matrices of f8 have scales")
    refused(command, three("f8e4m3", "f8e4m3", "f32", **one), {"kernel": "gemm", "args": {**args, "scale_b": "s2"}}, "has 2 elements; it must have one")
    refused(command, three("f8e5m2", "f8e5m2", "f8e5m2"), {"kernel": "add", "args": {"x": "a", "y": "b", "z": "c"}}, "f8e5m2", "allowed: f16")
    refused(command, {"x": buffer("f8e4m3", 16), "t": buffer("f8e4m3", 1, cls="state")}, {"reduce": {"t": "sum(x)"}, "args": {"x": "x", "t": "t"}}, "f8e4m3", "allowed: f16")
    two = {"x": {**buffer("f8e4m3", 16, cls="state"), "split": 2}}
    refused(command, two, {"collective": "all_reduce", "op": "sum", "in": ["x[0]", "x[1]"], "out": ["x[0]", "x[1]"]}, "nothing is reduced in 8 bits")
    refused(command, {"x": buffer("f8e4m3", 16, cls="state")}, {"work": {}, "writes": [{"sum": "x"}]}, "nothing is reduced in 8 bits")


def check_adjoint(command):
    """A cast passes the adjoint on as it is; a buffer of f8 between weights and loss is refused."""
    def graph(dtype, formula):
        return {"gantry": 1, "buffers": {"x": {"dtype": "f32", "shape": [8], "init": "iota"}, "w": {**buffer("f32", 8, cls="state"), "init": 0.25},
                                         "q": {"dtype": dtype, "shape": [8]}, "loss": {"dtype": "f32", "shape": [1]}},
                "nodes": [{"id": "q", "map": {"q": formula}, "args": {"x": "x", "w": "w", "q": "q"}},
                          {"id": "loss", "reduce": {"loss": "sum(q)"}, "args": {"q": "q", "loss": "loss"}}],
                "train": {"loss": "loss", "weights": ["w"], "optimizer": "sgd", "learning_rate": 0.5}}
    with tempfile.TemporaryDirectory() as folder:
        for name, made in (("inside", graph("f32", "f32(f8e4m3(x * w))")), ("between", graph("f8e4m3", "x * w"))):
            (pathlib.Path(folder) / f"{name}.json").write_text(json.dumps(made))
        subprocess.run([command, "train", "inside.json", "--steps", "1", "--output", "w=w.npy"], cwd=folder, check=True, capture_output=True)
        same("weights after a step", np.float32(0.25) - np.float32(0.5) * np.arange(8, dtype=np.float32), np.load(pathlib.Path(folder) / "w.npy"))
        done = subprocess.run([command, "train", "between.json", "--steps", "1"], cwd=folder, capture_output=True, text=True)
        assert done.returncode and "adjoints are not kept in 8 bits" in done.stderr, done.stderr


def main(command, *arguments):
    command = str(pathlib.Path(command).resolve())
    rng = np.random.default_rng(11)
    formulas = os.environ.get("GANTRY_F8_FORMULAS") != "no"
    # Tensor cores of Hopper keep some 13 bits of a sum within an instruction (DeepSeek-AI, "DeepSeek-V3 technical report", 2024, 3.3.2).
    sums = 2.0 ** -13 if formulas and "cuda" in arguments else 2e-6
    for f in FORMATS.values():
        if formulas:
            check_widening(command, arguments, f)
            check_narrowing(command, arguments, f, rng)
        check_contents(command, arguments, f)
        check_products(command, arguments, f, rng, sums)
        check_files(command, f)
    if formulas:
        check_recipe(command, arguments, sums)
        check_adjoint(command)
    check_refusals(command)


if __name__ == "__main__":
    main(*sys.argv[1:])
