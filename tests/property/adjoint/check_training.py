# SPDX-License-Identifier: Apache-2.0
"""Training against NumPy in float64, written by hand: the losses of 100 steps of a small network, for each optimiser."""
import json
import pathlib
import shutil
import tempfile
import unittest
import warnings

from differences import compare, gantry, np
from suite import ROOT

BATCH, INPUTS, HIDDEN, CLASSES, STEPS = 24, 6, 8, 4, 100
SHAPES = {"w1": (INPUTS, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, CLASSES), "b2": (CLASSES,)}


def network(dtype, parts, cut, **train):
    """tanh(x w1 + b1) w2 + b2, the mean of -log softmax, by maps and reductions; with `cut`, w1 is cut into parts."""
    def temp(shape):
        return {"dtype": dtype, "shape": shape, "split": parts}
    buffers = {name: {"dtype": dtype, "shape": list(shape)} for name, shape in SHAPES.items()}
    for weight in buffers.values():
        weight["class"] = "input"
    if cut:
        buffers["w1"]["split"] = 3
    buffers |= {"x": {"dtype": dtype, "shape": [BATCH, INPUTS], "split": parts, "class": "input"},
                "labels": {"dtype": "i32", "shape": [BATCH, 1], "split": parts, "class": "input"},
                "number": {"dtype": "i32", "shape": [CLASSES], "class": "const", "init": "iota"},
                "z": temp([BATCH, HIDDEN]), "h": temp([BATCH, HIDDEN]), "y": temp([BATCH, CLASSES]), "top": temp([BATCH, 1]),
                "total": temp([BATCH, 1]), "right": temp([BATCH, 1]), "loss": {"dtype": dtype, "shape": [1], "output": True}}
    nodes = []
    for i in range(parts):
        p = f"[{i}]"
        nodes += [
            {"id": "fc1" + p, "kernel": "gemm", "args": {"a": "x" + p, "b": "w1", "c": "z" + p}},
            {"id": "tanh" + p, "map": {"h": "tanh(z + b)"}, "args": {"z": "z" + p, "b": "b1", "h": "h" + p}},
            {"id": "fc2" + p, "kernel": "gemm", "args": {"a": "h" + p, "b": "w2", "c": "y" + p}},
            {"id": "top" + p, "reduce": {"top": "max(y + b, 1)"}, "args": {"y": "y" + p, "b": "b2", "top": "top" + p}},
            {"id": "total" + p, "reduce": {"total": "sum(exp(y + b - top), 1)"},
             "args": {"y": "y" + p, "b": "b2", "top": "top" + p, "total": "total" + p}},
            {"id": "right" + p, "reduce": {"right": "sum(select(number == k, y + b, 0), 1)"},
             "args": {"y": "y" + p, "b": "b2", "number": "number", "k": "labels" + p, "right": "right" + p}},
            {"id": "loss" + p, "reduce": {"loss": "sum((log(total) + top - right) / n)"}, "access": {"loss": "sum"},
             "args": {"total": "total" + p, "top": "top" + p, "right": "right" + p, "n": BATCH, "loss": "loss"}}]
    return {"gantry": 1, "name": "network", "params": {"warm": 7, "rate": 3}, "buffers": buffers, "nodes": nodes,
            "train": {"loss": "loss", "weights": ["w*", "b1", "b2"], **train}}


def gradients(w, x, labels):
    """The loss, and its gradient by each weight: written by hand."""
    h = np.tanh(x @ w["w1"] + w["b1"])
    y = h @ w["w2"] + w["b2"]
    e = np.exp(y - y.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    right = np.eye(CLASSES)[labels[:, 0]]
    loss = -np.mean(np.log(np.sum(p * right, 1)))
    dy = (p - right) / len(x)
    dz = (dy @ w["w2"].T) * (1 - h * h)
    return loss, {"w1": x.T @ dz, "b1": dz.sum(0), "w2": h.T @ dy, "b2": dy.sum(0)}


def by_hand(w, x, labels, optimizer, learning_rate, schedule=lambda t: 1.0, momentum=0.9, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=0.0,
            clip=0.0):
    w = {name: value.astype(np.float64) for name, value in w.items()}
    m, v = ({name: np.zeros_like(value) for name, value in w.items()} for _ in range(2))
    losses = []
    for t in range(1, STEPS + 1):
        loss, g = gradients(w, x, labels)
        losses.append(loss)
        rate = learning_rate * schedule(t)
        if clip:
            norm = np.sqrt(sum(np.sum(a * a) for a in g.values()))
            g = {name: a * min(1.0, clip / norm) for name, a in g.items()}
        for name in w:
            a = g[name] + (decay * w[name] if optimizer != "adamw" else 0)
            if optimizer == "sgd":
                w[name] = w[name] - rate * a
            elif optimizer == "momentum":
                m[name] = momentum * m[name] + a
                w[name] = w[name] - rate * m[name]
            else:
                m[name] = beta1 * m[name] + (1 - beta1) * a
                v[name] = beta2 * v[name] + (1 - beta2) * a * a
                step = m[name] / (1 - beta1 ** t) / (np.sqrt(v[name] / (1 - beta2 ** t)) + epsilon)
                w[name] = w[name] * (1 - rate * decay) - rate * step if optimizer == "adamw" else w[name] - rate * step
    return np.array(losses)


CASES = [
    ({"optimizer": "sgd", "learning_rate": 0.5}, {}),
    ({"optimizer": "sgd", "learning_rate": 0.5, "weight_decay": 0.02, "clip_norm": 0.3}, {"decay": 0.02, "clip": 0.3}),
    ({"optimizer": "momentum", "learning_rate": 0.1}, {}),
    ({"optimizer": "momentum", "learning_rate": 0.1, "momentum": 0.5, "schedule": "min(1, step / warm)"},
     {"momentum": 0.5, "schedule": lambda t: min(1, t / 7)}),
    ({"optimizer": "adam", "learning_rate": 0.02}, {}),
    ({"optimizer": "adam", "learning_rate": 0.02, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "weight_decay": 0.1, "clip_norm": 0.2},
     {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-3, "decay": 0.1, "clip": 0.2}),
    ({"optimizer": "adamw", "learning_rate": 0.02}, {"decay": 0.01}),
    ({"optimizer": "adamw", "learning_rate": "0.1 / 5", "weight_decay": 0.3, "schedule": "0.5 + 0.5 * cos(step / 100 * rate)"},
     {"decay": 0.3, "schedule": lambda t: 0.5 + 0.5 * np.cos(t / 100 * 3)}),
]


def data():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(BATCH, INPUTS))
    labels = rng.integers(0, CLASSES, (BATCH, 1)).astype(np.int32)
    return x, labels, {name: rng.normal(size=shape) * 0.5 for name, shape in SHAPES.items()}


def losses(text, devices, given, fuse=True):
    run = gantry.parse(text, train=True, fuse=fuse).schedule(devices, effort=0).run(backend="host")
    return np.array([float(run(**given)["loss"][0]) if t == 0 else float(run()["loss"][0]) for t in range(STEPS)])


class Training(unittest.TestCase):
    def check(self, dtype, parts, devices, most, cut=False, fuse=True):
        x, labels, w = data()
        numpy = np.float64 if dtype == "f64" else np.float32
        given = {"x": x.astype(numpy), "labels": labels} | {name: value.astype(numpy) for name, value in w.items()}
        for train, hand in CASES:
            with self.subTest(train=train, dtype=dtype, devices=devices):
                rate = 0.02 if isinstance(train["learning_rate"], str) else train["learning_rate"]
                wanted = by_hand(given and {name: given[name] for name in SHAPES}, given["x"].astype(np.float64), labels, train["optimizer"],
                                 rate, **hand)
                seen = losses(network(dtype, parts, cut, **train), devices, given, fuse)
                np.testing.assert_allclose(seen, wanted, rtol=most, atol=most)
                self.assertLess(seen[-1], seen[0] / 1.2)

    def test_float64(self):
        self.check("f64", 1, 1, 1e-9)

    def test_float64_on_two_devices(self):
        self.check("f64", 2, 2, 1e-9)

    def test_weights_in_parts(self):
        self.check("f64", 2, 2, 1e-9, cut=True)

    def test_without_fusing(self):
        self.check("f64", 1, 1, 1e-9, fuse=False)

    def test_float32(self):
        """As near as f32 is."""
        self.check("f32", 2, 2, 1e-5)

    def test_loss_scale(self):
        """A power of two changes no bit of f64; in f16 it keeps what would be 0."""
        x, labels, w = data()
        given = {"x": x, "labels": labels} | w
        for train, _ in CASES[1], CASES[5], CASES[7]:
            seen = losses(network("f64", 2, False, **train, loss_scale=1024), 2, given)
            np.testing.assert_allclose(seen, losses(network("f64", 2, False, **train), 2, given), rtol=1e-12, atol=0)
        for scale, moved in ((1, 0.0), (65536, 0.25)):
            text = {"gantry": 1, "name": "small", "train": {"loss": "loss", "weights": ["w"], "learning_rate": 2.0 ** 26, "loss_scale": scale},
                    "buffers": {"x": {"dtype": "f16", "shape": [8], "init": 0.5}, "w": {"dtype": "f32", "shape": [1], "init": 0, "output": True},
                                "h": {"dtype": "f16", "shape": [8]}, "loss": {"dtype": "f32", "shape": [1], "output": True}},
                    "nodes": [{"id": "h", "map": {"h": "f16(x * f16(w))"}, "args": {"x": "x", "w": "w", "h": "h"}},
                              {"id": "loss", "reduce": {"l": "sum(f32(h) * tiny)"}, "args": {"h": "h", "l": "loss", "tiny": 2.0 ** -30}}]}
            out = gantry.parse(text, train=True).schedule(1, effort=0).run(backend="host")()
            self.assertEqual(float(out["w"][0]), -moved, f"scale {scale}")

    def test_loss_scale_of_cross_entropy(self):
        """Shares of classes by so many rows are less than f16 has: the gradient is not 0, as it is scaled before it is rounded."""
        rows, classes = 512, 64
        rng = np.random.default_rng(5)
        x, wanted = (0.1 * rng.normal(size=(rows, classes))).astype(np.float16), rng.integers(0, classes, rows).astype(np.int32)
        bias = np.zeros(classes, np.float32)
        shares = np.exp(x.astype(np.float64))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[np.arange(rows), wanted] -= 1
        given = {"x": x, "wanted": wanted, "bias": bias}
        for scale in (1 / 16, 1 / rows, 1e-7):
            for factor in (65536, "auto"):
                text = {"gantry": 1, "name": "loss", "train": {"loss": "loss", "weights": ["bias"], "learning_rate": 1, "loss_scale": factor},
                        "buffers": {"x": {"dtype": "f16", "shape": [rows, classes], "class": "input"}, "wanted": {"dtype": "i32", "shape": [rows], "class": "input"},
                                    "bias": {"dtype": "f32", "shape": [classes], "class": "input", "output": True},
                                    "y": {"dtype": "f16", "shape": [rows, classes]}, "loss": {"dtype": "f32", "shape": [1], "output": True}},
                        "nodes": [{"id": "y", "map": {"y": "x + f16(b)"}, "args": {"x": "x", "b": "bias", "y": "y"}},
                                  {"id": "loss", "kernel": "softmax_xent", "args": {"logits": "y", "labels": "wanted", "loss": "loss", "scale": scale}}]}
                out = gantry.parse(text, train=True).schedule(1, effort=0).run(backend="host")(**given)
                np.testing.assert_allclose(out["bias"], -scale * shares.sum(axis=0), rtol=0.02, atol=scale * 0.02, err_msg=f"scale {scale}, {factor}")

    def test_loss_scale_that_follows(self):
        """Where nothing overflows losses are those without it; what overflows in f16 is left out, and the scale follows: by a loop of NumPy."""
        x, labels, w = data()
        given = {"x": x, "labels": labels} | w
        for train, _ in CASES:
            seen = losses(network("f64", 2, False, **train, loss_scale="auto"), 2, given)
            np.testing.assert_allclose(seen, losses(network("f64", 2, False, **train), 2, given), rtol=1e-12, atol=0)
        for optimizer, factor, steps in (("sgd", 3.0, 2030), ("momentum", 1e-9, 4), ("adamw", 40.0, 30)):
            with self.subTest(optimizer=optimizer):
                self.follow(optimizer, factor, steps)

    def follow(self, optimizer, factor, steps):
        text = {"gantry": 1, "name": "scaled", "train": {"loss": "loss", "weights": ["w"], "learning_rate": 0.01, "loss_scale": "auto", "optimizer": optimizer,
                                                         "clip_norm": 50, "weight_decay": 0, "schedule": "1 / step"},
                "buffers": {"w": {"dtype": "f32", "shape": [3], "init": "iota", "output": True}, "h": {"dtype": "f16", "shape": [3]},
                            "loss": {"dtype": "f32", "shape": [1], "output": True}},
                "nodes": [{"id": "h", "map": {"h": "f16(w)"}, "args": {"w": "w", "h": "h"}},
                          {"id": "loss", "reduce": {"l": "sum(f32(h) * c)"}, "args": {"h": "h", "l": "loss", "c": factor}}]}
        run = gantry.parse(text, train=True).schedule(1, effort=0).run(backend="host")
        want, m, v, t, scale, good, skipped = np.arange(3, dtype=np.float64), 0.0, 0.0, 0, 65536.0, 0, 0
        for step in range(steps):
            with np.errstate(over="ignore"):
                g = np.float64(np.float16(np.float32(scale * factor)))
            if np.isfinite(g):
                t, g = t + 1, g / scale
                g *= min(1, 50 / (g * np.sqrt(3)))
                if optimizer == "adamw":
                    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
                    want -= 0.01 / t * (m / (1 - 0.9 ** t) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8))
                else:
                    m = (0.9 * m if optimizer == "momentum" else 0) + g
                    want -= 0.01 / t * m
                scale, good = (scale * 2, 0) if good == 1999 else (scale, good + 1)
            else:
                scale, good, skipped = max(scale / 2, 1), 0, skipped + 1
            got = np.array(run()["w"])
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=f"{optimizer} step {step}")
            self.assertEqual(float(run.state("train.scale")[0]), scale, f"step {step}")
        self.assertEqual(skipped > 0, factor > 1)

    def test_weights_that_nothing_goes_back_to(self):
        """The gradient of a weight that is only rounded is 0, whole or in parts, also where gradients are looked at before they are used."""
        rng = np.random.default_rng(8)
        x, first = rng.normal(size=(6, 4)), rng.normal(size=4)
        for parts in 1, 2:
            buffers = {"x": {"dtype": "f64", "shape": [6, 4], "class": "input"}, "v": {"dtype": "f64", "shape": [4], "class": "input", "output": True},
                       "w": {"dtype": "f64", "shape": [4], "init": 1.5, "output": True, "split": parts}, "h": {"dtype": "f64", "shape": [6, 4]},
                       "loss": {"dtype": "f64", "shape": [1], "output": True}}
            nodes = [{"id": "h", "map": {"h": "v * x + floor(w)"}, "args": {"x": "x", "v": "v", "w": "w", "h": "h"}},
                     {"id": "loss", "reduce": {"l": "mean(square(h))"}, "args": {"h": "h", "l": "loss"}}]
            for more in {}, {"clip_norm": 0.1}, {"loss_scale": "auto"}, {"clip_norm": 0.1, "loss_scale": "auto", "optimizer": "momentum", "momentum": 0}:
                text = {"gantry": 1, "name": "rounded", "train": {"loss": "loss", "weights": ["v", "w"], "learning_rate": 0.5, **more}, "buffers": buffers, "nodes": nodes}
                run = gantry.parse(text, train=True).schedule(2, effort=0).run(backend="host")
                v = first
                for step in range(4):
                    out = run(x=x, v=first)
                    h = v * x + 1
                    gradient = 2 / 24 * (h * x).sum(0)
                    v = v - 0.5 * gradient * min(1, more.get("clip_norm", 1e9) / np.linalg.norm(gradient))
                    np.testing.assert_allclose(out["loss"][0], np.mean(h * h), rtol=1e-12, err_msg=f"{more}, {parts} parts, step {step}")
                    np.testing.assert_allclose(out["v"], v, rtol=1e-12, err_msg=f"{more}, {parts} parts, step {step}")
                    np.testing.assert_array_equal(out["w"], 1.5)

    def test_numbers_of_other_optimizers(self):
        """What the optimizer has none of is told, and is no mistake: the first step is as without it."""
        def first(**train):
            buffers = {"w": {"dtype": "f64", "shape": [2], "init": 1, "output": True}, "loss": {"dtype": "f64", "shape": [1]}}
            text = {"gantry": 1, "name": "small", "train": {"loss": "loss", "weights": ["w"], "learning_rate": 0.1, **train}, "buffers": buffers,
                    "nodes": [{"id": "loss", "reduce": {"l": "sum(square(w))"}, "args": {"w": "w", "l": "loss"}}]}
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                run = gantry.parse(text, train=True).schedule(1, effort=0).run(backend="host")
            return [run()["w"][0] for _ in range(2)], [str(one.message) for one in seen]
        for optimizer, others in ("sgd", {"momentum", "beta1", "beta2", "epsilon"}), ("momentum", {"beta1", "beta2", "epsilon"}), ("adam", {"momentum"}), ("adamw", {"momentum"}):
            wanted, told = first(optimizer=optimizer)
            self.assertEqual(told, [])
            for name in "momentum", "beta1", "beta2", "epsilon":
                got, told = first(optimizer=optimizer, **{name: 0.5})
                if name in others:
                    self.assertEqual(got, wanted, f"{name} of {optimizer}")
                    self.assertEqual(len(told), 1)
                    self.assertIn(f'"{name}" says nothing to optimizer "{optimizer}"', told[0])
                else:
                    self.assertEqual(told, [], f"{name} of {optimizer}")

    def test_graph_that_was_made(self):
        """Its normal form is read again, says nothing of training, and gives the same losses."""
        x, labels, w = data()
        text = network("f64", 2, False, **CASES[-1][0])
        graph = gantry.parse(text, train=True)
        made = json.loads(graph.json())
        self.assertNotIn("train", made)
        again = gantry.parse(made)
        self.assertEqual(again.json(), graph.json())
        run = again.schedule(2, effort=0).run(backend="host")
        given = {"x": x, "labels": labels} | w
        seen = [float(run(**given)["loss"][0]) if t == 0 else float(run()["loss"][0]) for t in range(5)]
        np.testing.assert_array_equal(seen, losses(text, 2, given)[:5])

    def test_graph_that_is_not_trained(self):
        """It keeps the key, in its normal form too, and computes the loss alone."""
        text = network("f64", 1, False, **CASES[3][0])
        graph = gantry.parse(text)
        self.assertEqual(gantry.parse(graph.json()).json(), graph.json())
        train = json.loads(graph.json())["train"]
        self.assertEqual({key: train[key] for key in text["train"]}, text["train"])
        self.assertEqual(len(json.loads(graph.json())["nodes"]), len(text["nodes"]))

    def test_gradients_of_the_models(self):
        """Those of the repository in float64, small, with every weight given, against finite differences."""
        rng = np.random.default_rng(2)
        sizes = {"mlp": {"batch": 6, "inputs": 5, "hidden": 7}, "cnn": {"batch": 4, "side": 8, "channels1": 3, "channels2": 2},
                 "gpt": {"tokens": 5, "dim": 4, "heads": 2, "words": 7}, "pipeline": {"batches": 3, "rows": 2, "width": 5},
                 "digits_mlp": {"batch": 6, "tests": 2, "pixels": 5, "hidden": 7},
                 "digits_cnn": {"batch": 4, "tests": 2, "side": 8, "channels1": 3, "channels2": 2}}
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "graphs/models", folder, dirs_exist_ok=True)
            for path in sorted(pathlib.Path(folder).rglob("*.json")):
                path.write_text(path.read_text().replace('"f32"', '"f64"'))
            for path in sorted(pathlib.Path(folder).glob("*.json")):
                text = json.loads(path.read_text())
                text["params"] |= sizes[path.stem]
                text["train"] |= {"optimizer": "none"}
                shapes = {info.name.removesuffix(".grad"): info.shape
                          for info in gantry.parse(text, folder=folder, devices=2, train=True).infos.values() if info.name.endswith(".grad") and info.output}
                for name in shapes:
                    text["buffers"][name].pop("init")
                    text["buffers"][name]["class"] = "input"
                self.assertGreaterEqual(len(shapes), len(text["train"]["weights"]))
                at = {name: rng.normal(size=shape) * 0.4 + ("gain" in name) for name, shape in shapes.items()}
                with self.subTest(model=path.stem):
                    compare(self, rng, text, at, devices=2, folder=folder)

    def test_models_of_the_repository(self):
        """They learn what they are given."""
        models = sorted((ROOT / "graphs/models").glob("*.json"))
        self.assertGreater(len(models), 0)
        for path in models:
            run = gantry.load(path, train=True, devices=2).schedule(2, effort=0).run(backend="host")
            seen = [float(run()["loss"][0]) for _ in range(12)]
            self.assertLess(seen[-1], 0.9 * seen[0], f"{path}: {seen}")


if __name__ == "__main__":
    unittest.main()
