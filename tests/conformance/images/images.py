# SPDX-License-Identifier: Apache-2.0
"""What tests of image files share: a graph that copies them, and what is expected of a run. Exit 77: no NumPy or no Pillow."""

import json
import os
import subprocess
import sys

try:
    import numpy as np
    from PIL import Image  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

COMMAND = sys.argv[1]
wrong = []  # what did not hold


def graph_of(shape, dtype="u8"):
    """Copies a buffer; names in the shape are params, which are 5 unless something says otherwise."""
    params = {name: 5 for name in shape if isinstance(name, str)}
    y = {"dtype": dtype, "shape": shape, "output": True}
    return {"gantry": 1, "name": "copy", "params": params, "buffers": {"x": {"dtype": dtype, "shape": shape, "class": "input"}, "y": y},
            "nodes": [{"id": "copy", "copy": {"from": "x", "to": "y"}}]}


NAMED = ["n", "height", "width", "channels"]


def run(folder, form, pattern, *words, env=None, cpu=None):
    """(exit code, what is said, the array or None)"""
    graph, out = folder / "graph.json", folder / "out.npy"
    graph.write_text(json.dumps(form))
    out.unlink(missing_ok=True)
    done = subprocess.run([COMMAND, "run", graph, "--devices", "1", "--input", f"x={pattern}", "--output", f"y={out}", *words],
                          capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})},
                          preexec_fn=(lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None)
    return done.returncode, done.stdout + done.stderr, np.load(out) if out.exists() else None


def expect(holds, what):
    if not holds:
        wrong.append(what)
        print("wrong:", what)


def refuse(folder, title, form, pattern, code, *texts, words=(), env=None):
    found, said, out = run(folder, form, pattern, *words, env=env)
    expect(found == code and out is None and all(text in said for text in texts), f"{title}: exit {found}, {said!r}, not {code} with {texts}")


def refuse_prefixes(folder, whole, kind):
    """A file that ends too early is refused wherever it ends, and each time with the same words: nothing is said, or done, by what
    happens to be in memory."""
    cut = folder / f"cut.{kind.lower()}"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        first, second = (run(folder, graph_of(NAMED), cut) for _ in range(2))
        fits = first[0] == 2 and first[2] is None and f"cut.{kind.lower()}: cannot be read as {kind}: " in first[1] and "leave it out" in first[1]
        expect(fits and first == second, f"{length} of {len(whole)} bytes of a {kind}: {first}, then {second}")
    cut.unlink()
