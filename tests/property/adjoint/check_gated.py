# SPDX-License-Identifier: Apache-2.0
"""A model that is in none of the files of the repository: layers of layernorm with a bias, two products whose results are multiplied, one
through x * sigmoid(x), and a third beside a residual; the loss is the mean of sqrt(1 + error^2) - 1. 100 steps by strategies against
NumPy in float64, written by hand."""
import os
import tempfile
import unittest

from check_unequal import host
from differences import buffer, gantry, np

ROWS, INPUTS, WIDTH, INNER, OUTPUTS, LAYERS, STEPS = 24, 5, 12, 18, 3, 3, 100
BACKEND = os.environ.get("ADJOINT_BACKEND", "host") # cuda: by hand, on ADJOINT_DEVICES GPUs
RATE, MOMENTUM, DECAY, EPS = 0.05, 0.8, 0.002, 1e-5
SHAPES = {"first": (INPUTS, WIDTH), "last": (WIDTH, OUTPUTS)}
SHAPES |= {f"{name}{l}": shape for l in range(LAYERS) for name, shape in (
    ("gain", (WIDTH,)), ("bias", (WIDTH,)), ("gate", (WIDTH, INNER)), ("up", (WIDTH, INNER)), ("down", (INNER, WIDTH)))}


def network(dtype):
    def temp(*shape):
        return buffer(list(shape), dtype)
    buffers = {name: buffer(list(shape), dtype, **{"class": "input"}) for name, shape in SHAPES.items()}
    buffers |= {"x": buffer([ROWS, INPUTS], dtype, **{"class": "input"}), "wanted": buffer([ROWS, OUTPUTS], dtype, **{"class": "input"}),
                "h0": temp(ROWS, WIDTH), "y": temp(ROWS, OUTPUTS), "loss": buffer([1], dtype, output=True)}
    nodes = [{"id": "first", "kernel": "gemm", "args": {"a": "x", "b": "first", "c": "h0"}}]
    for l in range(LAYERS):
        buffers |= {f"n{l}": temp(ROWS, WIDTH), f"u{l}": temp(ROWS, INNER), f"v{l}": temp(ROWS, INNER), f"m{l}": temp(ROWS, INNER),
                    f"d{l}": temp(ROWS, WIDTH), f"h{l + 1}": temp(ROWS, WIDTH)}
        nodes += [{"id": f"norm{l}", "kernel": "layernorm", "args": {"x": f"h{l}", "gain": f"gain{l}", "bias": f"bias{l}", "y": f"n{l}"}},
                  {"id": f"gate{l}", "kernel": "gemm", "args": {"a": f"n{l}", "b": f"gate{l}", "c": f"u{l}"}},
                  {"id": f"up{l}", "kernel": "gemm", "args": {"a": f"n{l}", "b": f"up{l}", "c": f"v{l}"}},
                  {"id": f"mul{l}", "map": {"m": "u / (1 + exp(-u)) * v"}, "args": {"u": f"u{l}", "v": f"v{l}", "m": f"m{l}"}},
                  {"id": f"down{l}", "kernel": "gemm", "args": {"a": f"m{l}", "b": f"down{l}", "c": f"d{l}"}},
                  {"id": f"add{l}", "map": {"s": "h + d"}, "args": {"h": f"h{l}", "d": f"d{l}", "s": f"h{l + 1}"}}]
    nodes += [{"id": "last", "kernel": "gemm", "args": {"a": f"h{LAYERS}", "b": "last", "c": "y"}},
              {"id": "loss", "reduce": {"l": "mean(sqrt(1 + square(y - t)) - 1)"}, "args": {"y": "y", "t": "wanted", "l": "loss"}}]
    return {"gantry": 1, "name": "gated", "buffers": buffers, "nodes": nodes,
            "train": {"loss": "loss", "weights": list(SHAPES), "optimizer": "momentum", "momentum": MOMENTUM, "weight_decay": DECAY,
                      "learning_rate": RATE, "schedule": "1 / (1 + step / 40)", "batch": ["x", "wanted"]}}


def layer(w, l, h):
    """What a layer gives, and the function that takes an adjoint back through it and notes gradients."""
    gain, bias, gate, up, down = (w[f"{name}{l}"] for name in ("gain", "bias", "gate", "up", "down"))
    r = 1 / np.sqrt(h.var(1, keepdims=True) + EPS)
    c = (h - h.mean(1, keepdims=True)) * r
    n = c * gain + bias
    u, v = n @ gate, n @ up
    s = 1 / (1 + np.exp(-u))
    m = u * s * v

    def back(dy, g):
        dm = dy @ down.T
        du, dv = dm * v * s * (1 + u * (1 - s)), dm * u * s
        dn = du @ gate.T + dv @ up.T
        dc = dn * gain
        g |= {f"down{l}": m.T @ dy, f"gate{l}": n.T @ du, f"up{l}": n.T @ dv, f"gain{l}": (dn * c).sum(0), f"bias{l}": dn.sum(0)}
        return dy + r * (dc - dc.mean(1, keepdims=True) - c * (dc * c).mean(1, keepdims=True))
    return h + m @ down, back


def gradients(w, x, wanted):
    h, backs, g = x @ w["first"], [], {}
    for l in range(LAYERS):
        h, back = layer(w, l, h)
        backs.append(back)
    error = h @ w["last"] - wanted
    root = np.sqrt(1 + error * error)
    dy = error / root / error.size
    g["last"], dh = h.T @ dy, dy @ w["last"].T
    for back in reversed(backs):
        dh = back(dh, g)
    g["first"] = x.T @ dh
    return np.mean(root - 1), g


def by_hand(w, x, wanted):
    w, speed, losses = dict(w), {name: 0.0 for name in w}, []
    for t in range(1, STEPS + 1):
        loss, g = gradients(w, x, wanted)
        losses.append(loss)
        for name in w:
            speed[name] = MOMENTUM * speed[name] + g[name] + DECAY * w[name]
            w[name] = w[name] - RATE / (1 + t / 40) * speed[name]
    return np.array(losses)


class Gated(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(11)
        self.w = {name: rng.normal(size=shape) * 0.3 + ("gain" in name) for name, shape in SHAPES.items()}
        self.x, self.wanted = rng.normal(size=(ROWS, INPUTS)), rng.normal(size=(ROWS, OUTPUTS))

    def test_by_hand(self):
        """What is compared with is right: its gradients are those of differences."""
        loss, g = gradients(self.w, self.x, self.wanted)
        rng = np.random.default_rng(3)
        for name in SHAPES:
            way = rng.normal(size=SHAPES[name])
            ends = [gradients(self.w | {name: self.w[name] + step * way}, self.x, self.wanted)[0] for step in (-1e-6, 1e-6)]
            self.assertAlmostEqual((ends[1] - ends[0]) / 2e-6, np.sum(g[name] * way), delta=1e-7 + 1e-6 * abs(np.sum(g[name] * way)))
        self.assertGreater(loss, 0)

    def compare(self, dtype, cases, near, machine=lambda devices: devices, **how):
        given = {name: value.astype(dtype) for name, value in (self.w | {"x": self.x, "wanted": self.wanted}).items()}
        wide = {name: value.astype(np.float64) for name, value in given.items()}
        wanted = by_hand({name: wide[name] for name in SHAPES}, wide["x"], wide["wanted"])
        self.assertLess(wanted[-1], wanted[0] / 2)
        text = network({np.float64: "f64", np.float32: "f32"}[dtype])
        for strategy, devices in cases:
            with self.subTest(strategy=strategy):
                if BACKEND == "cuda" and devices > int(os.environ.get("ADJOINT_DEVICES", "2")):
                    self.skipTest(f"{devices} devices")
                graph = gantry.parse(text, train=True, strategy=strategy, devices=devices)
                run = graph.schedule(machine(devices), **{"effort": 0, **how}).run(backend=BACKEND)
                seen = [float((run(**given) if t == 0 else run())["loss"][0]) for t in range(STEPS)]
                np.testing.assert_allclose(seen, wanted, rtol=near, atol=near)

    CASES = [("dp=1", 1), ("dp=2", 2), ("dp=3,micro=2", 3), ("dp=4,zero=1", 4), ("dp=2,zero=2,micro=3", 2), ("dp=4,zero=3", 4), ("tp=2", 2),
             ("tp=3,micro=2", 3), ("dp=2,tp=2", 4), ("dp=2,tp=2,zero=3", 4), ("pp=2,micro=4", 2), ("pp=3,micro=6", 3),
             ("dp=2,pp=2,micro=3,zero=1", 4), ("pp=2,interleave=2,micro=4", 2), ("tp=2,pp=2,micro=2", 4), ("dp=2,recompute=all", 2),
             ("pp=2,micro=2,recompute=1", 2), ("dp=2,tp=2,zero=3,micro=2,recompute=all", 4)]

    def test_strategies(self):
        self.compare(np.float64, self.CASES, 1e-9 if BACKEND == "host" else 1e-8)

    def test_devices_that_are_not_alike(self):
        """The batch is cut by speed."""
        with tempfile.TemporaryDirectory() as folder:
            cases = [("dp=2", 2), ("dp=4,zero=1", 4), ("dp=2,zero=3,micro=3", 2), ("dp=2,recompute=all", 2)]
            self.compare(np.float64, cases, 1e-9, lambda devices: host(folder, (1, 0.3, 0.5, 2)[:devices]), balance="dynamic")

    def test_float32(self):
        self.compare(np.float32, [self.CASES[i] for i in (0, 1, 5, 6, 9, 10, 12)], 1e-5)

    def test_with_search(self):
        self.compare(np.float64, [self.CASES[i] for i in (1, 5, 6, 10)], 1e-9, effort=1)


if __name__ == "__main__":
    unittest.main()
