# SPDX-License-Identifier: Apache-2.0
"""The GPT of graphs/models, in float64, against one that is written by hand in NumPy, forward and back: the losses of 100 steps, whole
and by several strategies."""
import json
import math
import os
import pathlib
import shutil
import tempfile
import unittest

from differences import gantry, np
from suite import ROOT

BATCH, LAYERS, TOKENS, HEADS, DIM, WORDS, STEPS = 4, 2, 5, 2, 4, 7, 100
ACROSS = HEADS * DIM
BACKEND = os.environ.get("ADJOINT_BACKEND", "host") # cuda: by hand, on ADJOINT_DEVICES GPUs
NEAR = 1e-9 if BACKEND == "host" else 1e-5
EPS, RATE, DECAY, CLIP = 1e-5, 0.003, 0.01, 1.0
ERF = np.vectorize(math.erf)


def shapes_of(words, width):
    return {"table": (words, width), "gain1": (LAYERS, width), "wq": (LAYERS * width, ACROSS), "wk": (LAYERS * width, ACROSS),
            "wv": (LAYERS * width, ACROSS), "wo": (LAYERS * ACROSS, width), "gain2": (LAYERS, width), "up": (LAYERS * width, 4 * width),
            "down": (LAYERS * 4 * width, width), "gain_of_head": (1, width), "head": (width, words)}


def norm(x, gain):
    r = 1 / np.sqrt(np.mean(x * x, -1, keepdims=True) + EPS)
    return x * r * gain


def norm_back(x, gain, dy):
    r = 1 / np.sqrt(np.mean(x * x, -1, keepdims=True) + EPS)
    d = dy * gain
    return r * (d - x * r * r * np.mean(d * x, -1, keepdims=True)), np.sum(dy * x * r, 0)


def turn(x, sign=1):
    """Rotary positions: pairs i and i + DIM / 2 of each head."""
    half = DIM // 2
    angle = sign * np.arange(TOKENS)[:, None] * 10000.0 ** (-2 * np.arange(half) / DIM)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = np.split(x.reshape(TOKENS, HEADS, DIM), [half], 2)
    return np.concatenate([a * c - b * s, a * s + b * c], 2).reshape(TOKENS, ACROSS)


def heads(x):
    return x.reshape(TOKENS, HEADS, DIM).transpose(1, 0, 2)


def rows(x):
    return x.transpose(1, 0, 2).reshape(TOKENS, ACROSS)


def layer(w, l, x):
    """What a layer gives, and the function that takes an adjoint back through it and adds up gradients."""
    part = {name: w[name].reshape(LAYERS, -1, w[name].shape[1])[l] for name in ("wq", "wk", "wv", "wo", "up", "down")}
    n1 = norm(x, w["gain1"][l])
    q, k, v = heads(turn(n1 @ part["wq"])), heads(turn(n1 @ part["wk"])), heads(n1 @ part["wv"])
    score = np.where(np.tri(TOKENS, dtype=bool), q @ k.transpose(0, 2, 1) / math.sqrt(DIM), -np.inf)
    p = np.exp(score - score.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    a = rows(p @ v)
    x2 = x + a @ part["wo"]
    n2 = norm(x2, w["gain2"][l])
    z = n2 @ part["up"]
    cdf = (1 + ERF(z / math.sqrt(2))) / 2
    act = z * cdf

    def back(dy, g):
        def add(name, value):
            size = value.shape[0]
            g[name][l * size:(l + 1) * size] += value
        add("down", act.T @ dy)
        dz = (dy @ part["down"].T) * (cdf + z * np.exp(-z * z / 2) / math.sqrt(2 * math.pi))
        add("up", n2.T @ dz)
        dx2, dgain2 = norm_back(x2, w["gain2"][l], dz @ part["up"].T)
        dx2 = dx2 + dy
        add("wo", a.T @ dx2)
        da = heads(dx2 @ part["wo"].T)
        dp = da @ v.transpose(0, 2, 1)
        ds = p * (dp - np.sum(dp * p, -1, keepdims=True)) / math.sqrt(DIM)
        dq, dk, dv = turn(rows(ds @ k), -1), turn(rows(ds.transpose(0, 2, 1) @ q), -1), rows(p.transpose(0, 2, 1) @ da)
        add("wq", n1.T @ dq)
        add("wk", n1.T @ dk)
        add("wv", n1.T @ dv)
        dx, dgain1 = norm_back(x, w["gain1"][l], dq @ part["wq"].T + dk @ part["wk"].T + dv @ part["wv"].T)
        g["gain1"][l] += dgain1
        g["gain2"][l] += dgain2
        return dx + dx2
    return x2 + act @ part["down"], back


def gradients(w, ids, right):
    g, loss = {name: np.zeros_like(value) for name, value in w.items()}, 0.0
    for words, wanted in zip(ids.reshape(BATCH, TOKENS), right.reshape(BATCH, TOKENS)):
        x, backs = w["table"][words], []
        for l in range(LAYERS):
            x, back = layer(w, l, x)
            backs.append(back)
        last = norm(x, w["gain_of_head"][0])
        y = last @ w["head"]
        p = np.exp(y - y.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        one = np.eye(w["head"].shape[1])[wanted]
        loss -= np.sum(np.log(np.sum(p * one, 1))) / (BATCH * TOKENS)
        dy = (p - one) / (BATCH * TOKENS)
        g["head"] += last.T @ dy
        dx, dgain = norm_back(x, w["gain_of_head"][0], dy @ w["head"].T)
        g["gain_of_head"][0] += dgain
        for back in reversed(backs):
            dx = back(dx, g)
        np.add.at(g["table"], words, dx)
    return loss, g


def by_hand(w, ids, right):
    w = dict(w)
    m, v = ({name: np.zeros_like(value) for name, value in w.items()} for _ in range(2))
    losses = []
    for t in range(1, STEPS + 1):
        loss, g = gradients(w, ids, right)
        losses.append(loss)
        rate = RATE * min(1, t / 5)
        clip = min(1.0, CLIP / math.sqrt(sum(np.sum(a * a) for a in g.values())))
        for name in w:
            a = g[name] * clip
            m[name] = 0.9 * m[name] + 0.1 * a
            v[name] = 0.999 * v[name] + 0.001 * a * a
            step = m[name] / (1 - 0.9 ** t) / (np.sqrt(v[name] / (1 - 0.999 ** t)) + 1e-8)
            w[name] = w[name] * (1 - rate * DECAY) - rate * step
    return np.array(losses)


def compare(strategies, words=WORDS, width=ACROSS, more=None, machine=None, **how):
    """The losses of 100 steps by hand, and by each strategy, whose number of devices stands beside it; `machine` and `how` are of schedules."""
    shapes = shapes_of(words, width)
    rng = np.random.default_rng(7)
    w = {name: rng.normal(size=shape) * 0.3 + ("gain" in name) for name, shape in shapes.items()}
    ids, right = (rng.integers(0, words, BATCH * TOKENS).astype(np.int32) for _ in range(2))
    params = {"batch": BATCH, "layers": LAYERS, "context": TOKENS, "heads": HEADS, "dim": DIM, "width": width, "words": words,
              "lr": RATE} | (more or {})
    seen = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "graphs/models", folder, dirs_exist_ok=True)
        for path in pathlib.Path(folder).rglob("*.json"):
            path.write_text(path.read_text().replace('"f32"', '"f64"'))
        text = json.loads((pathlib.Path(folder) / "gpt.json").read_text())
        for name in [*shapes, "ids", "next"]:
            text["buffers"][name].pop("init")
            text["buffers"][name]["class"] = "input"
        for strategy, devices in strategies:
            if BACKEND == "cuda" and devices > int(os.environ.get("ADJOINT_DEVICES", "2")):
                continue
            graph = gantry.parse(text, params, folder=folder, devices=devices, train=True, strategy=strategy)
            run = graph.schedule(machine or devices, effort=0, **how).run(backend=BACKEND)
            first = run(ids=ids, next=right, **w)
            seen[strategy] = [float(first["loss"][0]), *(float(run()["loss"][0]) for _ in range(STEPS - 1))]
    return by_hand(w, ids, right), seen


class Gpt(unittest.TestCase):
    def test_strategies(self):
        wanted, seen = compare(((None, 1), ("micro=4", 1), ("dp=2", 2), ("dp=4,zero=1", 4), ("pp=2,micro=4", 2), ("pp=2,interleave=2,micro=4", 2),
                                ("dp=2,pp=2,micro=2,zero=3", 4), ("tp=2", 2), ("dp=2,tp=2,zero=1", 4), ("tp=2,pp=2,micro=2", 4), ("dp=2,zero=2", 2),
                                ("recompute=all", 1), ("dp=2,recompute=1", 2), ("pp=2,micro=4,recompute=all", 2), ("dp=2,zero=3,recompute=all", 2)))
        self.assertLess(wanted[-1], 0.8 * wanted[0])
        for strategy, losses in seen.items():
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses, wanted, rtol=NEAR, atol=NEAR)

    def test_width(self):
        """Another width than all heads have together."""
        wanted, seen = compare(((None, 1), ("dp=2,zero=3", 2), ("tp=2", 2), ("tp=2,pp=2,micro=2", 4)), width=12)
        self.assertLess(wanted[-1], 0.8 * wanted[0])
        for strategy, losses in seen.items():
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses, wanted, rtol=NEAR, atol=NEAR)

    def test_vocabulary(self):
        """Slices of the vocabulary: rows of the table, classes of the loss."""
        wanted, seen = compare((("tp=2", 2), ("dp=2,tp=2,zero=3", 4), ("tp=2,micro=2", 2), ("tp=2,pp=2,micro=2", 4), ("tp=2,recompute=all", 2),
                                ("tp=2,zero=1", 2), ("tp=2,pp=2,interleave=2,micro=2", 4), ("dp=2,tp=2,pp=2,zero=3,recompute=all", 8)), words=10)
        self.assertLess(wanted[-1], 0.8 * wanted[0])
        for strategy, losses in seen.items():
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses, wanted, rtol=NEAR, atol=NEAR)


if __name__ == "__main__":
    unittest.main()
