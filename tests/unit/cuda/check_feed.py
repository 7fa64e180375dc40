# SPDX-License-Identifier: Apache-2.0
"""Inputs that each start reads anew, on GPUs, which are those of the driver for tests: start n has array n, small ones (mirrored), large
ones (locked) and tiles, as streams, as a graph, by the devices and overlapping, in orders that the driver draws. They are uploaded beside
the start before where there is memory for two and starts do not overlap, which the command says.

check_feed.py GANTRY FOLDER_OF_THE_DRIVER
"""
import itertools
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

COMMAND, DRIVER = os.path.abspath(sys.argv[1]), sys.argv[2]
ARRAYS = 5
WAYS = [["--replay", "stream"], ["--replay", "graph"], ["--replay", "auto"], ["--replay", "device"], ["--objective", "period", "--in-flight", "3"]]


def graph(rows, tiled):
    cut = {"tiles": [2, 2]} if tiled else {"split": 2}
    buffers = {"x": {"dtype": "i32", "shape": [rows, 8], "class": "input", **cut}, "y": {"dtype": "i32", "shape": [rows, 8], "output": True, **cut}}
    nodes = [{"id": f"copy{i}{k}", "copy": {a: f"{b}[{i}]" + (f"[{k}]" if tiled else "") for a, b in (("from", "x"), ("to", "y"))}}
             for i in range(2) for k in range(2 if tiled else 1)]
    return {"gantry": 1, "name": "copies", "buffers": buffers, "nodes": nodes}


def save(path, arrays, rows):
    head = f"{{'descr': '<i4', 'fortran_order': False, 'shape': ({len(arrays)}, {rows}, 8), }}\n".encode()
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + b"".join(arrays))


def said(text, way, starts, tiled, bytes_of_all):
    """How arrays come to devices, as the command has to say it."""
    if "--objective" in way or starts == 1:
        return "beside starts" not in text and "between starts" not in text
    if tiled:
        return "uploaded between starts: the buffer is kept as tiles" in text
    return f"beside starts, into {bytes_of_all} more" in text


def check_short(folder, environment):
    """Memory for one large array a device, not for two: arrays are put between starts, and the command says so. Returns what was wrong."""
    rows = 1 << 21
    arrays = [bytes([17 * n + 3]) * (rows * 32) for n in range(3)]
    save(f"{folder}/x.npy", arrays, rows)
    with open(f"{folder}/graph.json", "w") as file:
        json.dump(graph(rows, False), file)
    wrong = 0
    for memory, words in (1024 + 160, "between starts: a second array of x takes 64.0 MiB"), (1024 + 256, "beside starts, into 64.0 MiB more"):  # MiB, 1024 of which the context takes
        done = subprocess.run([COMMAND, "run", "graph.json", "--backend", "cuda", "--devices", "1", "--input", "x=x.npy", "--iterations", "3", "--output", "y=y.bin"],
                              cwd=folder, env={**environment, "FAKE_CUDA_MEMORY": str(memory << 20)}, capture_output=True, text=True, timeout=120)
        right = done.returncode == 0 and words in done.stdout and open(f"{folder}/y.bin", "rb").read() == arrays[2]
        wrong += not right
        if not right:
            print(f"wrong: with {memory} MiB a device: exit {done.returncode}: {done.stdout}{done.stderr}")
    return wrong


def main():
    environment = dict(os.environ, GANTRY_MODULES=DRIVER, LD_LIBRARY_PATH=DRIVER, GANTRY_CUDA_LIBRARIES=DRIVER, FAKE_CUDA_DEVICES="2", FAKE_CUDA_MEMORY=str(4 << 30))
    draw = random.Random(5)
    wrong = cases = 0
    with tempfile.TemporaryDirectory() as folder:
        for rows, tiled in (8, False), (8, True), (4096, False), (4096, True):
            arrays = [draw.randbytes(rows * 32) for _ in range(ARRAYS)]
            save(f"{folder}/x.npy", arrays, rows)
            with open(f"{folder}/graph.json", "w") as file:
                json.dump(graph(rows, tiled), file)
            for way, starts in itertools.product(WAYS, (1, 2, 9)):
                words = ["graph.json", "--backend", "cuda", "--input", "x=x.npy", "--iterations", str(starts), "--output", "y=y.bin", *way]
                done = subprocess.run([COMMAND, "run", *words], cwd=folder, env={**environment, "FAKE_CUDA_SEED": str(draw.randrange(1000))},
                                      capture_output=True, text=True, timeout=120)
                cases += 1
                told = said(done.stdout, way, starts, tiled, f"{rows * 32 / (1 << 10):.1f} KiB" if rows > 8 else f"{rows * 32} B")
                if not told or done.returncode or open(f"{folder}/y.bin", "rb").read() != arrays[(starts - 1) % ARRAYS] or "cuda back end" not in done.stdout:
                    wrong += 1
                    print(f"wrong: {rows} rows, tiled {tiled}, {words}: exit {done.returncode}: {done.stdout}{done.stderr}")
        wrong += check_short(folder, environment)
    print(f"{cases} cases, {wrong} wrong")
    return wrong > 0


sys.exit(main())
