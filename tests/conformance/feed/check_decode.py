# SPDX-License-Identifier: Apache-2.0
"""graphs/decode/gpt.json, a token a start from a cache of keys and values, against all tokens at once without a cache, in NumPy and f64:
logits of each start, the tokens that follow, a text that is given, and more tokens than the cache has places. Exit 77: no NumPy.

check_decode.py GANTRY GRAPHS
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from gpt_by_hand import HIDDEN, LAYERS, WIDTH, forward  # noqa: E402

COMMAND, GRAPHS = sys.argv[1:3]
CONTEXT, WORDS = 32, 64
GIVEN = [5, 9, 3, 60, 5]
wrong = []


def expect(holds, what):
    if not holds:
        wrong.append(what)
        print("wrong:", what)


def weights(draw):
    shapes = {"table": (WORDS, WIDTH), "gain1": (LAYERS, WIDTH), "wq": (LAYERS * WIDTH, WIDTH), "wk": (LAYERS * WIDTH, WIDTH), "wv": (LAYERS * WIDTH, WIDTH),
              "wo": (LAYERS * WIDTH, WIDTH), "gain2": (LAYERS, WIDTH), "up": (LAYERS * WIDTH, HIDDEN), "down": (LAYERS * HIDDEN, WIDTH), "gain_of_head": (1, WIDTH),
              "head": (WIDTH, WORDS)}
    return {name: (draw.standard_normal(shape) * (0.3 if "gain" in name else 0.12) + ("gain" in name)).astype("f4") for name, shape in shapes.items()}


def decode(here, *words):
    graph = pathlib.Path(GRAPHS) / "decode/gpt.json"
    return subprocess.run([COMMAND, "run", graph, "--watch", "token", "--watch", "logits", "--json", *words], cwd=here, capture_output=True, text=True, timeout=120)


def check(here, w, inputs, words, starts):
    done = decode(here, "--iterations", str(starts), *inputs, *words)
    expect(done.returncode == 0, f"{words}: exit {done.returncode}: {done.stderr}")
    found = [json.loads(line) for line in done.stdout.splitlines()][:-1]
    if len(found) != starts:
        return expect(False, f"{words}: {len(found)} lines")
    said = [line["token"] for line in found]
    read = [GIVEN[i] if i < len(GIVEN) else said[i - 1] for i in range(starts)]
    logits = forward(read, {name: values.astype("f8") for name, values in w.items()})
    for i, line in enumerate(found):
        expect(np.allclose(line["logits"], logits[i], rtol=1e-4, atol=1e-4), f"{words}: logits of start {i + 1} are off by {abs(np.array(line['logits']) - logits[i]).max()}")
        expect(logits[i][said[i]] >= logits[i].max() - 1e-4, f"{words}: token of start {i + 1} is {said[i]}, not {logits[i].argmax()}")
    expect(len(set(said)) > 3, f"tokens differ: {said}")
    return said


def main():
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        w = weights(np.random.default_rng(11))
        for name, values in w.items():
            np.save(here / f"{name}.npy", values)
        np.save(here / "given.npy", np.array([[t] for t in GIVEN] + [[-1]] * (CONTEXT - len(GIVEN)), "i4"))
        inputs = [word for name in [*w, "given"] for word in ("--input", f"{name}={name}.npy")]
        said = [check(here, w, inputs, words, CONTEXT) for words in (["--devices", "1"], ["--devices", "2"], ["--devices", "2", "--objective", "period"], ["--devices", "3", "--policy", "heft"])]
        expect(said.count(said[0]) == len(said), f"tokens differ from devices to devices: {said}")
        done = decode(here, "--devices", "2", "--iterations", str(CONTEXT + 1), *inputs)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        expect(done.returncode == 1 and "].attention\"" in done.stderr and "status word" in done.stderr and len(lines) == CONTEXT + 1 and "error" in lines[-1], f"a full cache: exit {done.returncode}, {done.stderr}")
    print(f"{len(wrong)} wrong")
    return bool(wrong)


sys.exit(main())
