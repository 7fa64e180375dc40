# SPDX-License-Identifier: Apache-2.0
"""Runs the gantry command on arrays of NumPy: files in, files out. Exit 77 (a visible skip) without NumPy."""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy (python3-numpy)")
    sys.exit(77)

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i32": np.int32,
          "u32": np.uint32, "i64": np.int64, "u64": np.uint64}
BITS = {"bf16": np.uint16, "f8e4m3": np.uint8, "f8e5m2": np.uint8}  # NumPy has no such types: their bits, in raw files


def to_bf16(x):
    """float32 values that bfloat16 holds exactly, and their 16-bit patterns: round to nearest, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(pattern):
    return (pattern.astype(np.uint32) << 16).view(np.float32)


def gantry(command, *arguments):
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: gantry {' '.join(map(str, arguments))}\n{done.stderr}{done.stdout}")
    return done.stdout


def run(command, graph, inputs=None, outputs=(), arguments=()):
    """graph: a path, or an object that becomes a file. inputs: name -> array (or (dtype, array) for patterns of BITS).
    outputs: name -> (dtype, shape). Returns the arrays of the outputs and the report."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if isinstance(graph, dict):
            path = folder / "graph.json"
            path.write_text(json.dumps(graph))
            graph = path
        words = ["run", graph, "--json", *arguments]
        for name, array in (inputs or {}).items():
            if isinstance(array, tuple):
                file = folder / f"{name}.raw"
                array[1].tofile(file)
            else:
                file = folder / f"{name}.npy"
                np.save(file, array)
            words += ["--input", f"{name}={file}"]
        for name in outputs:
            words += ["--output", f"{name}={folder / name}.{'raw' if outputs[name] and outputs[name][0] in BITS else 'npy'}"]
        report = json.loads(gantry(command, *words))
        found = {}
        for name in outputs:
            if outputs[name] and outputs[name][0] in BITS:
                found[name] = np.fromfile(folder / f"{name}.raw", BITS[outputs[name][0]]).reshape(outputs[name][1])
            else:
                found[name] = np.load(folder / f"{name}.npy")
        return found, report
