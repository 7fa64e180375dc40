# SPDX-License-Identifier: Apache-2.0
"""graphs/decode/gpt.json, a token a start from a cache of keys and values, against all tokens at once without a cache, in NumPy and f64:
logits of each start, the tokens that follow, a text that is given, and more tokens than the cache has places. Exit 77: no NumPy.

check_decode.py GANTRY GRAPHS
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

COMMAND, GRAPHS = sys.argv[1:3]
LAYERS, CONTEXT, HEADS, DIM, WORDS = 2, 32, 4, 16, 64
WIDTH, HIDDEN = HEADS * DIM, 4 * HEADS * DIM
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


def norm(x, gain):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gain


def turned(x):
    """[tokens, heads, dim]: elements i and i + dim / 2 by position * 10000^(-2 i / dim)."""
    half = DIM // 2
    angle = np.arange(len(x))[:, None, None] * 10000.0 ** (-2 * np.arange(half) / DIM)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)


def forward(tokens, w):
    """Logits behind each token."""
    x = w["table"][tokens]
    for l in range(LAYERS):
        def part(name, rows=WIDTH):
            return w[name][l * rows : (l + 1) * rows]
        n = norm(x, w["gain1"][l])
        q, k, v = ((n @ part(name)).reshape(-1, HEADS, DIM) for name in ("wq", "wk", "wv"))
        scores = np.einsum("qhd,khd->hqk", turned(q), turned(k)) / math.sqrt(DIM)
        scores[:, ~np.tri(len(tokens), dtype=bool)] = -np.inf
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + np.einsum("hqk,khd->qhd", p, v).reshape(-1, WIDTH) @ part("wo")
        z = norm(x, w["gain2"][l]) @ part("up")
        x = x + (z / 2 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))) @ part("down", HIDDEN)
    return norm(x, w["gain_of_head"]) @ w["head"]


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
        expect(done.returncode == 1 and "attention" in done.stderr and len(lines) == CONTEXT + 1 and "error" in lines[-1], f"a full cache: exit {done.returncode}, {done.stderr}")
    print(f"{len(wrong)} wrong")
    return bool(wrong)


sys.exit(main())
