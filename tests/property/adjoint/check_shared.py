# SPDX-License-Identifier: Apache-2.0
"""A model that strains the rules: a table that looks up ids and is the last layer's weight as well, bytes among the inputs, statistics along
the batch, and a loss by softmax_xent; with clipping, schedules and scales of the loss, by strategies, against NumPy in float64, written by hand. And
a step whose gradients overflow."""
import unittest

from differences import buffer, gantry, np

ROWS, WORDS, WIDTH, STEPS, RATE, DECAY, EPS = 12, 8, 4, 20, 0.02, 0.01, 0.01
CASES = [("dp=1", 1), ("micro=4", 1), ("dp=2", 2), ("dp=3,zero=3", 3), ("dp=12,zero=3", 12), ("pp=2", 2), ("pp=2,micro=3", 2), ("dp=2,recompute=all", 2),
         ("dp=2,pp=2,micro=3,zero=2,recompute=all", 4)]


def network(**train):
    given = {"class": "input"}
    buffers = {"ids": buffer([ROWS], "i32", **given), "labels": buffer([ROWS], "i32", **given), "bytes": buffer([ROWS, WIDTH], "u8", **given),
               "table": buffer([WORDS, WIDTH], **given), "gain": buffer([WIDTH], init=1), "mix": buffer([WIDTH, WIDTH], **given),
               "mean": buffer([WIDTH]), "var": buffer([WIDTH]), "y": buffer([ROWS, WORDS]), "loss": buffer([1], output=True)}
    buffers |= {name: buffer([ROWS, WIDTH]) for name in ("e", "s", "n", "q")}
    nodes = [{"id": "e", "kernel": "embedding", "args": {"table": "table", "ids": "ids", "y": "e"}},
             {"id": "s", "map": {"s": "e + b / 255"}, "args": {"e": "e", "b": "bytes", "s": "s"}},
             {"id": "mean", "reduce": {"m": "mean(s, 0)"}, "args": {"s": "s", "m": "mean"}},
             {"id": "var", "reduce": {"v": "mean(square(s - m), 0)"}, "args": {"s": "s", "m": "mean", "v": "var"}},
             {"id": "n", "map": {"n": f"(s - m) / sqrt(v + {EPS}) * g"}, "args": {"s": "s", "m": "mean", "v": "var", "g": "gain", "n": "n"}},
             {"id": "q", "kernel": "gemm", "args": {"a": "n", "b": "mix", "c": "q"}},
             {"id": "y", "kernel": "gemm", "args": {"tb": 1, "a": "q", "b": "table", "c": "y"}},
             {"id": "loss", "kernel": "softmax_xent", "args": {"scale": 1 / ROWS, "logits": "y", "labels": "labels", "loss": "loss"}}]
    return {"gantry": 1, "name": "shared", "buffers": buffers, "nodes": nodes,
            "train": {"loss": "loss", "weights": ["table", "gain", "mix"], "optimizer": "adamw", "learning_rate": RATE, "weight_decay": DECAY,
                      "batch": ["ids", "labels", "bytes"], **train}}


def gradients(w, given):
    table, gain, mix = w
    ids, labels = given["ids"], given["labels"]
    s = table[ids] + given["bytes"] / 255
    off = s - s.mean(0)
    r = 1 / np.sqrt((off ** 2).mean(0) + EPS)
    n = off * r * gain
    q = n @ mix
    y = q @ table.T
    p = np.exp(y - y.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    picked = p[np.arange(ROWS), labels].copy()
    p[np.arange(ROWS), labels] -= 1
    dy = p / ROWS
    dq = dy @ table
    dn = dq @ mix.T
    dx = dn * gain
    ds = r * (dx - dx.mean(0) - off * r * r * (dx * off).mean(0))
    of_table = dy.T @ q
    np.add.at(of_table, ids, ds)
    return -np.log(picked).mean(), [of_table, (dn * off * r).sum(0), n.T @ dq]


def by_hand(w, given, clip=0, schedule=lambda step: 1):
    w, m, v, losses = [np.array(one) for one in w], [0.0] * 3, [0.0] * 3, []
    for t in range(1, STEPS + 1):
        loss, g = gradients(w, given)
        losses.append(loss)
        norm = np.sqrt(sum((one ** 2).sum() for one in g))
        for i in range(3):
            d = g[i] * (min(1, clip / norm) if clip else 1)
            m[i], v[i] = 0.9 * m[i] + 0.1 * d, 0.999 * v[i] + 0.001 * d * d
            step = m[i] / (1 - 0.9 ** t) / (np.sqrt(v[i] / (1 - 0.999 ** t)) + 1e-8)
            w[i] = w[i] - RATE * schedule(t) * (step + DECAY * w[i])
    return losses


class Shared(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(9)
        self.given = {"ids": rng.integers(0, WORDS, ROWS).astype("i4"), "labels": rng.integers(0, WORDS, ROWS).astype("i4"),
                      "bytes": rng.integers(0, 256, (ROWS, WIDTH)).astype("u1"), "table": rng.normal(size=(WORDS, WIDTH)), "mix": rng.normal(size=(WIDTH, WIDTH))}
        self.w = [self.given["table"], np.ones(WIDTH), self.given["mix"]]

    def test_by_hand(self):
        """What is compared with is right: its gradients are those of differences."""
        rng, (_, g) = np.random.default_rng(3), gradients(self.w, self.given)
        for i in range(3):
            way = rng.normal(size=self.w[i].shape)
            ends = [gradients([one + step * way if k == i else one for k, one in enumerate(self.w)], self.given)[0] for step in (-1e-6, 1e-6)]
            self.assertAlmostEqual((ends[1] - ends[0]) / 2e-6, np.sum(g[i] * way), delta=1e-7)

    def compare(self, wanted, **train):
        self.assertLess(wanted[-1], wanted[0])
        for strategy, devices in CASES:
            with self.subTest(strategy=strategy):
                run = gantry.parse(network(**train), train=True, strategy=strategy, devices=devices).schedule(devices, effort=0).run(backend="host")
                seen = [float((run(**self.given) if t == 0 else run())["loss"][0]) for t in range(STEPS)]
                np.testing.assert_allclose(seen, wanted, rtol=1e-9)

    def test_strategies(self):
        self.compare(by_hand(self.w, self.given))

    def test_clipped(self):
        self.compare(by_hand(self.w, self.given, 0.3, lambda step: min(1, step / 4)), clip_norm=0.3, schedule="min(1, step / 4)", loss_scale=1024)

    def test_scaled(self):
        """The kernel's gradient is that of its own loss, and the scale, which changes from step to step, comes to it from a node."""
        self.compare(by_hand(self.w, self.given), loss_scale="auto")
        self.compare(by_hand(self.w, self.given, 0.3), loss_scale="auto", clip_norm=0.3)


class Overflow(unittest.TestCase):
    """Gradients in f32 that overflow with the scale that there is, at first and again later, whatever the strategy: steps that are left out, and the scale."""
    FACTOR, STEPS, RATE = 1e33, 14, 1e-35
    MOST = float(np.finfo(np.float32).max)

    def network(self):
        return {"gantry": 1, "name": "overflow",
                "buffers": {"x": buffer([12, 6], "f32", **{"class": "input"}), "w": buffer([6, 6], "f32", **{"class": "input"}), "v": buffer([6], "f32", init=0.5),
                            "z": buffer([12, 6], "f32"), "loss": buffer([1], "f32", output=True)},
                "nodes": [{"id": "z", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "z"}},
                          {"id": "loss", "reduce": {"l": f"mean(square(z) * v * {self.FACTOR})"}, "args": {"z": "z", "v": "v", "l": "loss"}}],
                "train": {"loss": "loss", "weights": ["w", "v"], "optimizer": "momentum", "learning_rate": self.RATE, "batch": ["x"], "loss_scale": "auto"}}

    def by_hand(self, x, w):
        v, scale, speed, rows = np.full(6, 0.5), 65536.0, [0.0, 0.0], []
        for _ in range(self.STEPS):
            z = x @ w
            loss, seed = (z * z * v).mean() * self.FACTOR, scale * self.FACTOR / z.size
            g = [x.T @ (2 * seed * z * v), (seed * z * z).sum(0)]
            fits = max(np.abs(one).max() for one in g) <= self.MOST
            scale = scale if fits else scale / 2
            if fits:
                speed = [0.9 * s + one / scale for s, one in zip(speed, g)]
                w, v = w - self.RATE * speed[0], v - self.RATE * speed[1]
            rows.append((loss, scale))
        return rows

    def test_steps(self):
        rng = np.random.default_rng(0)
        x, w = (rng.standard_normal((12, 6)) * 3).astype("f4"), rng.standard_normal((6, 6)).astype("f4")
        wanted = self.by_hand(x.astype("f8"), w.astype("f8"))
        self.assertGreater(len({scale for _, scale in wanted}), 2)
        self.assertNotEqual(wanted[-1][1], wanted[5][1]) # not at the beginning alone
        for strategy, devices in CASES[:4] + CASES[5:8]:
            with self.subTest(strategy=strategy):
                graph = gantry.parse(self.network(), train=True, strategy=strategy, devices=devices)
                run = graph.schedule(devices, effort=0).run(backend="host")
                for step, (loss, scale) in enumerate(wanted):
                    seen = run(x=x, w=w) if step == 0 else run()
                    np.testing.assert_allclose(float(seen["loss"][0]), loss, rtol=2e-6)
                    self.assertEqual(float(seen["train.scale"][0]), scale, f"step {step + 1}") # an output, for --watch


if __name__ == "__main__":
    unittest.main()
