# SPDX-License-Identifier: Apache-2.0
"""Tensor parallelism, --strategy tp=N: losses of 100 steps against NumPy in float64, gradients through each kernel that can be in slices
against those of the uncut model, what is cut and what is moved, that files hold whole weights, and what is refused. The GPT by hand is in
check_gpt.py."""
import itertools
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import check_training as training
from check_strategy import losses, nodes_of, whole
from differences import buffer, gantry, np, place
from suite import ROOT

GIVEN = {"class": "input"}


def buffers_of(text, strategy):
    return json.loads(gantry.parse(text, train=True, strategy=strategy).json())["buffers"]


class Networks(unittest.TestCase):
    CASE, HAND = training.CASES[7]

    def test_losses(self):
        x, labels, w = training.data()
        given = {"x": x, "labels": labels} | w
        wanted = training.by_hand(w, x, labels, self.CASE["optimizer"], 0.02, **self.HAND)
        for strategy, devices in (("tp=2", 2), ("tp=4", 4), ("tp=8", 8), ("dp=2,tp=2", 4), ("tp=2,micro=3", 2), ("tp=2,pp=2,micro=2", 4),
                                  ("dp=2,tp=2,micro=2,zero=1", 4), ("dp=3,tp=2,zero=1", 6), ("tp=2,zero=1", 2)):
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses(whole(**self.CASE), strategy, given, devices), wanted, rtol=1e-9, atol=1e-9)
        for parts, strategy in ((2, "tp=2"), (3, "tp=2,dp=3"), (6, "tp=2,dp=3"), (4, "dp=2,tp=2")):
            with self.subTest(parts=parts, strategy=strategy):
                text = training.network("f64", parts, False, **self.CASE)
                np.testing.assert_allclose(losses(text, strategy, given, 6), wanted, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(losses(whole(**self.CASE), "dp=2,tp=2", given, 4, effort=1), wanted, rtol=1e-9, atol=1e-9)

    def test_converted_weights(self):
        """Products with what follows from weights alone, as where they are converted, are pairs, too, and the weights are cut with it."""
        x, labels, w = training.data()
        given = {"x": x, "labels": labels} | w
        text = whole(**self.CASE)
        for name in ("w1", "w2"):
            text["buffers"] |= {f"of{i}_{name}": buffer(text["buffers"][name]["shape"]) for i in "ab"}
            next(node for node in text["nodes"] if node["args"].get("b") == name)["args"]["b"] = f"ofb_{name}"
            text["nodes"][:0] = [{"id": f"ofa_{name}", "map": {"to": "2 * from"}, "args": {"from": name, "to": f"ofa_{name}"}},
                                 {"id": f"ofb_{name}", "map": {"to": "from / 2"}, "args": {"from": f"ofa_{name}", "to": f"ofb_{name}"}}]
        wanted = training.by_hand(w, x, labels, self.CASE["optimizer"], 0.02, **self.HAND)
        for strategy, devices in (("tp=2", 2), ("dp=2,tp=2,micro=2,zero=1", 4), ("tp=2,pp=2", 4)):
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses(text, strategy, given, devices), wanted, rtol=1e-9, atol=1e-9)
        buffers = buffers_of(text, "tp=2")
        self.assertEqual([buffers[name].get("tiles") for name in ("w1", "ofa_w1", "ofb_w1", "z")], [[1, 2]] * 4)
        self.assertEqual([buffers[name]["split"] for name in ("w2", "ofa_w2", "ofb_w2")], [2] * 3)

    def test_models_of_the_repository(self):
        cases = {"mlp": ["tp=4", "dp=2,tp=2,micro=2,zero=1"], "cnn": ["tp=2", "dp=2,tp=2", "tp=2,pp=2,micro=2"], "gpt": ["tp=4", "tp=2,pp=2,micro=2"]}
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "graphs/models", folder, dirs_exist_ok=True)
            for path in sorted(pathlib.Path(folder).rglob("*.json")):
                path.write_text(path.read_text().replace('"f32"', '"f64"'))
            for name, strategies in cases.items():
                def run(strategy, devices):
                    graph = gantry.load(pathlib.Path(folder) / f"{name}.json", {"batch": 2 if name == "gpt" else 16}, devices=devices, train=True,
                                        strategy=strategy)
                    run = graph.schedule(devices, effort=0).run(backend="host")
                    return [float(run()["loss"][0]) for _ in range(5)]
                wanted = run(None, 1)
                for strategy in strategies:
                    with self.subTest(model=name, strategy=strategy):
                        np.testing.assert_allclose(run(strategy, 4), wanted, rtol=1e-9, atol=1e-9)

    def test_classes(self):
        """A last layer by classes: maxima and sums of what slices have of each row are those of the row, so is the loss; where tp does not
        divide the classes, they stay whole. By formulas, by the kernel that has them in one, and by that with a part of the batch a node."""
        rng = np.random.default_rng(8)
        for classes, how in itertools.product((8, 7), ("formulas", "kernel", "parts")):
            text = whole(**training.CASES[0][0])
            text["buffers"] |= {"x": buffer([24, 8], **GIVEN), "w1": buffer([8, 6], **GIVEN), "b1": buffer([6], **GIVEN), "w2": buffer([6, 8], **GIVEN),
                                "z": buffer([24, 6]), "h": buffer([24, 6]), "x2": buffer([24, 8]), "w3": buffer([8, classes], **GIVEN),
                                "b2": buffer([classes], **GIVEN), "number": buffer([classes], "i32", init="iota", **{"class": "const"}),
                                "y": buffer([24, classes])}
            text["nodes"][2:3] = [{"id": "fc2", "kernel": "gemm", "args": {"a": "h", "b": "w2", "c": "x2"}},
                                  {"id": "fc3", "kernel": "gemm", "args": {"a": "x2", "b": "w3", "c": "y"}}]
            if how != "formulas":
                self.lose_by_kernel(text, classes, 2 if how == "parts" else 1)
            w = {name: rng.normal(size=text["buffers"][name]["shape"]) for name in ("x", "w1", "b1", "w2", "w3", "b2")}
            w["labels"] = rng.integers(0, classes, (24, 1)).astype(np.int32)
            h = np.tanh(w["x"] @ w["w1"] + w["b1"])
            y = h @ w["w2"] @ w["w3"] + w["b2"]
            e = np.exp(y - y.max(1, keepdims=True))
            loss = -np.mean(np.log(np.take_along_axis(e, w["labels"], 1)[:, 0] / e.sum(1)))
            dy = (e / e.sum(1, keepdims=True) - np.eye(classes)[w["labels"][:, 0]]) / 24
            text["train"]["optimizer"] = "none"
            for strategy in ("tp=2", "dp=2,tp=2", "tp=2,micro=2", "tp=2,pp=2"):
                with self.subTest(classes=classes, how=how, strategy=strategy):
                    out = gantry.parse(text, train=True, strategy=strategy, devices=4).schedule(4, effort=0).run(backend="host")(**w)
                    wanted = {"loss": [loss], "w3.grad": (h @ w["w2"]).T @ dy, "w2.grad": h.T @ dy @ w["w3"].T, "b2.grad": dy.sum(0),
                              "w1.grad": w["x"].T @ ((dy @ w["w3"].T @ w["w2"].T) * (1 - h * h))}
                    for name, value in wanted.items():
                        np.testing.assert_allclose(out[name], value, rtol=1e-10, atol=1e-11, err_msg=name)
            buffers = buffers_of(text, "tp=2")
            logits = [2 if how == "parts" else 1, 2]
            self.assertEqual([buffers[name].get("tiles") for name in ("w1", "w3", "y")], [[1, 2], *([[1, 2], logits] if classes == 8 else [None] * 2)])

    def lose_by_kernel(self, text, classes, parts):
        """In place of the formulas a bias and softmax_xent, whose labels are of the shape that models have them in; a node for each part."""
        buffers = text["buffers"]
        buffers["z3"] = buffer([24, classes])
        del text["nodes"][4:], buffers["number"]
        part = [f"[{i}]" if parts > 1 else "" for i in range(parts)]
        text["nodes"] += [{"id": "bias" + p, "kernel": "bias_add", "args": {"x": "y" + p, "b": "b2", "y": "z3" + p}} for p in part]
        text["nodes"] += [{"id": "loss" + p, "kernel": "softmax_xent", "args": {"scale": 1 / 24, "logits": "z3" + p, "labels": "labels" + p,
                                                                               "loss": "loss"}} for p in part]
        if parts > 1:
            rows = ("x", "labels", "z", "h", "x2", "y", "z3")
            for name in rows:
                buffers[name]["split"] = parts
            text["nodes"][:4] = [node | {"id": node["id"] + p, "args": {key: x + p if x in rows else x for key, x in node["args"].items()}}
                                 for node in text["nodes"][:4] for p in part]

    def test_labels(self):
        """Two losses of the same logits, from which the loss follows by more; a label that is no class makes it infinite, as there is no kernel
        that would end the run. Nothing goes back through the largest logit."""
        rng = np.random.default_rng(10)
        buffers = {"x": buffer([12, 5], **GIVEN), "w": buffer([5, 6], **GIVEN), "labels": buffer([12], "i32", **GIVEN), "others": buffer([3, 4], "i32", **GIVEN),
                   "y": buffer([12, 6]), "first": buffer([1]), "second": buffer([1]), "loss": buffer([1], output=True)}
        nodes = [{"id": "fc", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "y"}},
                 {"id": "first", "kernel": "softmax_xent", "args": {"logits": "y", "labels": "labels", "loss": "first"}},
                 {"id": "second", "kernel": "softmax_xent", "args": {"scale": 0.5, "logits": "y", "labels": "others", "loss": "second"}},
                 {"id": "loss", "map": {"l": "square(f) / 7 + s"}, "args": {"f": "first", "s": "second", "l": "loss"}}]
        text = {"gantry": 1, "name": "labels", "buffers": buffers, "nodes": nodes,
                "train": {"loss": "loss", "weights": ["w"], "optimizer": "none", "batch": ["x", "labels"]}}
        x, w, labels = rng.normal(size=(12, 5)) * 40, rng.normal(size=(5, 6)) * 40, rng.integers(0, 6, 12).astype(np.int32)
        others = rng.integers(0, 6, 12).astype(np.int32)
        y = x @ w # as large as 10^4: exponentials of what is not taken off would overflow
        p = np.exp(y - y.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        all_of = np.log(np.sum(np.exp(y - y.max(1, keepdims=True)), 1)) + y.max(1)
        first, second = (np.sum(all_of - y[np.arange(12), right]) for right in (labels, others))
        dy = 2 * first / 7 * (p - np.eye(6)[labels]) + 0.5 * (p - np.eye(6)[others])
        for strategy, devices in (("tp=2", 2), ("tp=3", 3), ("tp=6", 6), ("dp=2,tp=3", 6), ("tp=3,micro=2", 3)):
            with self.subTest(strategy=strategy):
                run = gantry.parse(text, train=True, strategy=strategy, devices=devices).schedule(devices, effort=0).run(backend="host")
                given = {"x": x, "w": w, "others": others.reshape(3, 4)}
                out = run(labels=labels, **given)
                np.testing.assert_allclose(out["loss"], [first ** 2 / 7 + second / 2], rtol=1e-12)
                np.testing.assert_allclose(out["w.grad"], x.T @ dy, rtol=1e-10, atol=1e-8)
                for wrong in (-1, 6):
                    out = run(labels=np.where(np.arange(12) == 7, wrong, labels).astype(np.int32), **given)
                    self.assertFalse(np.isfinite(out["loss"]).any())
        self.assertEqual(buffers_of(text, "tp=3")["w"]["tiles"], [1, 3])
        text["train"]["weights"] = ["*[wl]"] # no pattern fits buffers that come by the way, "y.label" and "y.total"
        made = nodes_of(text, "tp=2")
        self.assertIn("first.top[1]", made)
        self.assertFalse([name for name in made if ".top" in name and "grad" in name])

    def test_half_logits(self):
        """Logits of 16 bits, their loss in f32, from which the loss follows by more: whole, in parts of the batch and in slices of classes."""
        rng = np.random.default_rng(12)
        for dtype, unit in (("bf16", 2 ** -8), ("f16", 2 ** -11)):
            buffers = {"x": buffer([12, 5], "f32", **GIVEN), "w": buffer([5, 6], "f32", **GIVEN), "labels": buffer([12], "i32", **GIVEN),
                       "wide": buffer([12, 6], "f32"), "y": buffer([12, 6], dtype), "first": buffer([1], "f32"), "loss": buffer([1], "f32", output=True)}
            nodes = [{"id": "fc", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "wide"}},
                     {"id": "narrow", "map": {"y": "x"}, "args": {"x": "wide", "y": "y"}},
                     {"id": "first", "kernel": "softmax_xent", "args": {"scale": 1 / 12, "logits": "y", "labels": "labels", "loss": "first"}},
                     {"id": "loss", "map": {"l": "3 * f"}, "args": {"f": "first", "l": "loss"}}]
            text = {"gantry": 1, "name": "half", "buffers": buffers, "nodes": nodes,
                    "train": {"loss": "loss", "weights": ["w"], "optimizer": "none", "batch": ["x", "labels"]}}
            x, w = rng.normal(size=(12, 5)).astype(np.float32), rng.normal(size=(5, 6)).astype(np.float32)
            labels = rng.integers(0, 6, 12).astype(np.int32)
            y = x.astype(float) @ w
            p = np.exp(y - y.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            loss, dy = -3 * np.mean(np.log(p[np.arange(12), labels])), (p - np.eye(6)[labels]) / 4
            for strategy, devices in (("dp=1", 1), ("dp=2", 2), ("tp=2", 2), ("dp=2,tp=3", 6)):
                with self.subTest(dtype=dtype, strategy=strategy):
                    out = gantry.parse(text, train=True, strategy=strategy, devices=devices).schedule(devices, effort=0).run(backend="host")(
                        x=x, w=w, labels=labels)
                    np.testing.assert_allclose(out["loss"], [loss], rtol=2 * unit * np.abs(y).max())
                    np.testing.assert_allclose(out["w.grad"], x.T @ dy, rtol=0, atol=unit * (2 * np.abs(y).max() + 3) * np.abs(x).sum(0).max() / 4)
                    self.assertEqual(out["w.grad"].dtype, np.float32)

    def test_small_losses(self):
        """Large logits that differ by little, of the right class: a loss is no difference of numbers that are much larger than it."""
        buffers = {"x": buffer([12, 6], "f32", **GIVEN), "w": buffer([6, 6], "f32", **GIVEN), "labels": buffer([12], "i32", **GIVEN),
                   "y": buffer([12, 6], "f32"), "loss": buffer([1], "f32", output=True)}
        nodes = [{"id": "fc", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "y"}},
                 {"id": "loss", "kernel": "softmax_xent", "args": {"scale": 1 / 12, "logits": "y", "labels": "labels", "loss": "loss"}}]
        text = {"gantry": 1, "name": "small", "buffers": buffers, "nodes": nodes,
                "train": {"loss": "loss", "weights": ["w"], "optimizer": "none", "batch": ["x", "labels"]}}
        labels = np.arange(12, dtype=np.int32) % 6
        given = {"x": np.eye(6, dtype=np.float32)[labels], "w": (1000 + 9 * np.eye(6)).astype(np.float32), "labels": labels}
        for strategy, devices in (("dp=1", 1), ("tp=2", 2), ("dp=2,tp=3", 6)):
            with self.subTest(strategy=strategy):
                run = gantry.parse(text, train=True, strategy=strategy, devices=devices).schedule(devices, effort=0).run(backend="host")
                np.testing.assert_allclose(run(**given)["loss"], [math.log1p(5 * math.exp(-9))], rtol=3e-4)

    def test_tables(self):
        """Each slice looks up the rows of a table that it has; a table of which the last product has the columns is cut once for both."""
        rng = np.random.default_rng(11)
        words, width, rows = 12, 4, 24
        for is_tied, words in itertools.product((False, True), (12, 11)):
            buffers = {"ids": buffer([rows], "i32", **GIVEN), "at": buffer([rows], "i32", **GIVEN), "next": buffer([rows], "i32", **GIVEN),
                       "table": buffer([words, width], **GIVEN), "places": buffer([6, width], **GIVEN), "g": buffer([width], **GIVEN),
                       **{name: buffer([rows, width]) for name in ("e", "p", "h")}, "y": buffer([rows, words]), "loss": buffer([1], output=True)}
            nodes = [{"id": "look", "kernel": "embedding", "args": {"table": "table", "ids": "ids", "y": "e"}},
                     {"id": "place", "kernel": "embedding", "args": {"table": "places", "ids": "at", "y": "p"}},
                     {"id": "h", "map": {"h": "tanh(e + p) * g"}, "args": {"e": "e", "p": "p", "g": "g", "h": "h"}},
                     {"id": "last", "kernel": "gemm", "args": {"tb": 1, "a": "h", "b": "table" if is_tied else "head", "c": "y"}},
                     {"id": "loss", "kernel": "softmax_xent", "args": {"scale": 1 / rows, "logits": "y", "labels": "next", "loss": "loss"}}]
            if not is_tied:
                buffers["head"] = buffer([words, width], **GIVEN)
            weights = [name for name in ("table", "places", "g", "head") if name in buffers]
            text = {"gantry": 1, "name": "tables", "buffers": buffers, "nodes": nodes,
                    "train": {"loss": "loss", "weights": weights, "optimizer": "none", "batch": ["ids", "at", "next"]}}
            w = {name: rng.normal(size=buffers[name]["shape"]) for name in weights}
            ids, at, right = (rng.integers(0, n, rows).astype(np.int32) for n in (words, 6, words))
            t = np.tanh(w["table"][ids] + w["places"][at])
            head = w["table"] if is_tied else w["head"]
            y = (t * w["g"]) @ head.T
            p = np.exp(y - y.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            dy = (p - np.eye(words)[right]) / rows
            dh, grad = dy @ head, {name: np.zeros_like(value) for name, value in w.items()}
            dt = dh * w["g"] * (1 - t * t)
            np.add.at(grad["table"], ids, dt)
            np.add.at(grad["places"], at, dt)
            grad["g"] += (dh * t).sum(0)
            grad["table" if is_tied else "head"] += dy.T @ (t * w["g"])
            loss = -np.mean(np.log(p[np.arange(rows), right]))
            for strategy in ("tp=2", "tp=3", "dp=2,tp=2", "tp=2,micro=3", "tp=2,pp=2", "dp=2,tp=3,micro=2"):
                with self.subTest(is_tied=is_tied, words=words, strategy=strategy):
                    out = gantry.parse(text, train=True, strategy=strategy, devices=6).schedule(6, effort=0).run(backend="host")(
                        ids=ids, at=at, next=right, **w)
                    np.testing.assert_allclose(out["loss"], [loss], rtol=1e-12)
                    for name, value in grad.items():
                        np.testing.assert_allclose(out[f"{name}.grad"], value, rtol=1e-10, atol=1e-12, err_msg=name)
            made = buffers_of(text, "tp=2")
            self.assertEqual([made[name].get("split") for name in weights], [2 if name == "places" or (name in ("table", "head") and words == 12) else None
                                                                             for name in weights])
            self.assertEqual(made["y"].get("tiles"), [1, 2] if words == 12 else None)

    def test_statistics(self):
        """What slices reduce over the batch, and then along themselves, is no rows of the batch."""
        rng = np.random.default_rng(9)
        shapes = {"x": [8, 5], "w1": [5, 6], "w2": [6, 5]}
        buffers = {name: buffer(shape, **GIVEN) for name, shape in shapes.items()} | {"loss": buffer([1], output=True)}
        buffers |= {name: buffer(shape) for name, shape in {"h": [8, 6], "y": [8, 5], "m": [6], "first": [1], "second": [1]}.items()}
        nodes = [{"id": "fc1", "kernel": "gemm", "args": {"a": "x", "b": "w1", "c": "h"}},
                 {"id": "fc2", "kernel": "gemm", "args": {"a": "h", "b": "w2", "c": "y"}},
                 {"id": "m", "reduce": {"m": "mean(h, 0)"}, "args": {"h": "h", "m": "m"}},
                 {"id": "first", "reduce": {"s": "sum(square(y))"}, "args": {"y": "y", "s": "first"}},
                 {"id": "second", "reduce": {"s": "sum(square(m))"}, "args": {"m": "m", "s": "second"}},
                 {"id": "loss", "map": {"l": "a + b"}, "args": {"a": "first", "b": "second", "l": "loss"}}]
        text = {"gantry": 1, "name": "statistics", "buffers": buffers, "nodes": nodes,
                "train": {"loss": "loss", "weights": ["w1", "w2"], "optimizer": "none", "batch": ["x"]}}
        given = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        x, w1, w2 = given.values()
        h, y = x @ w1, x @ w1 @ w2
        wanted = {"loss": [np.sum(y * y) + np.sum(h.mean(0) ** 2)], "w2.grad": 2 * h.T @ y, "w1.grad": x.T @ (2 * y @ w2.T + 2 * h.mean(0) / 8)}
        for strategy in ("tp=2", "tp=2,micro=2", "dp=2,tp=2", "tp=2,pp=2"):
            out = gantry.parse(text, train=True, strategy=strategy, devices=4).schedule(4, effort=0).run(backend="host")(**given)
            for name, value in wanted.items():
                np.testing.assert_allclose(out[name], value, rtol=1e-10, atol=1e-10, err_msg=f"{name} {strategy}")
        self.assertEqual([buffers_of(text, "tp=2")[name].get("split") for name in ("m", "w2")], [2, 2])

    def test_one_memory(self):
        """Summands of slices on devices that share a memory are added up there, by kernels of all second products."""
        machine = json.loads((ROOT / "graphs/machines/host-2.json").read_text())
        machine["memories"].pop()
        machine["routes"] = [route for route in machine["routes"] if "mem1" not in (route["from"], route["to"])]
        machine["devices"][1]["memory"] = "mem0"
        machine = gantry.Machine.parse(json.dumps(machine))
        for name in ("mlp", "cnn"):
            def run(strategy):
                graph = gantry.load(ROOT / f"graphs/models/{name}.json", {"batch": 8}, devices=2, train=True, strategy=strategy)
                run = graph.schedule(machine, effort=0).run(backend="host")
                return [float(run()["loss"][0]) for _ in range(3)]
            np.testing.assert_allclose(run("tp=2"), run(None), rtol=1e-5, err_msg=name)

    def test_places(self):
        """A slice of a pair is on its device; rows between pairs are shared out among them; weights are cut by column and by row."""
        nodes = nodes_of(whole(**self.CASE), "dp=2,tp=2,pp=2")
        for replica in range(2):
            for slice in range(2):
                self.assertEqual(place(nodes[f"fc1[{replica},{slice}]"]), 2 * replica + slice)
                self.assertEqual(place(nodes[f"loss[{2 * replica + slice}]"]), 4 + 2 * replica + slice)
        self.assertEqual(nodes["tanh[1,0]"]["args"]["b"], "b1[0]")
        self.assertNotIn("fc1[2,0]", nodes)
        nodes = nodes_of(whole(**self.CASE), "tp=2,micro=2")
        self.assertEqual([nodes[f"fc2[{i},1]"].get("priority", 0) for i in range(2)], [0, -1])
        self.assertEqual([nodes[f"total[{i}]"].get("priority", 0) for i in range(4)], [0, 0, -1, -1])
        buffers = buffers_of(whole(**self.CASE), "tp=2,micro=2")
        self.assertEqual([buffers[name].get("tiles") for name in ("w1", "z", "h", "y")], [[1, 2], [2, 2], [2, 2], None])
        self.assertEqual([buffers[name]["split"] for name in ("b1", "w2", "y", "x")], [2, 2, 4, 2])
        self.assertNotIn("split", buffers["b2"])

    def test_stages(self):
        """Slices of one node are of one stage, wherever the cut falls."""
        text = whole(**self.CASE)
        for pp in (2, 3, 4):
            nodes = nodes_of(text, f"tp=4,pp={pp}")
            stages = {}
            for name, node in nodes.items():
                if ".grad" not in name and name.split("[")[0] in {node["id"] for node in text["nodes"]}:
                    stages.setdefault(name.split("[")[0], set()).add(place(node) // 4)
            self.assertEqual({len(stage) for stage in stages.values()}, {1}, stages)
            self.assertEqual(set.union(*stages.values()), set(range(pp)))

    def test_files(self):
        """Weights begin with the numbers that they have uncut, and what is written is whole."""
        text = json.loads((ROOT / "graphs/models/mlp.json").read_text().replace('"f32"', '"f64"'))
        for weight in ("w1", "b1", "w2", "b2"):
            text["buffers"][weight]["output"] = True
        for rate in (0, 0.01):
            outs = []
            for strategy, devices in ((None, 1), ("dp=2,tp=2", 4)):
                run = gantry.parse(text, {"parts": 4, "batch": 16, "lr": rate}, devices=devices, train=True, strategy=strategy).schedule(
                    devices, effort=0).run(backend="host")
                run()
                outs.append({name: np.array(value) for name, value in run().items()})
            for name, value in outs[0].items():
                np.testing.assert_allclose(outs[1][name], value, rtol=1e-9, atol=1e-12, err_msg=name)
            self.assertGreater(np.ptp(outs[1]["w1"]), 0.1)

    def test_moved(self):
        """A pair moves its result once forward, as a reduce-scatter, and the adjoint of that once back, and no weight."""
        batch, hidden, classes = 256, 1024, 16
        params = {"parts": 1, "batch": batch, "inputs": 512, "hidden": hidden, "classes": classes}
        def plan(strategy):
            return gantry.load(ROOT / "graphs/models/mlp.json", params, devices=2, train=True, strategy=strategy).schedule(2, effort=0)
        moved = plan("tp=2").report()["bytes_moved"]
        result = batch * classes * 4
        self.assertEqual([op.get("collective") for op in json.loads(plan("tp=2").json())["ops"]].count("reduce_scatter"), 1)
        self.assertGreaterEqual(moved, 2 * result) # half of it from each device to the other, twice
        self.assertLess(moved, 3 * result) # b2, numbers, and what a collective is counted as
        self.assertGreater(plan("dp=2").report()["bytes_moved"], 512 * hidden * 4)

    @unittest.skipUnless("GANTRY" in os.environ, "no command")
    def test_checked(self):
        """The checker finds nothing wrong with schedules, nor does checking mode, which runs them in other orders."""
        with tempfile.TemporaryDirectory() as folder:
            for strategy in ("tp=4", "dp=2,tp=2,zero=1", "tp=2,pp=2,micro=2"):
                step, plan = f"{folder}/step.json", f"{folder}/plan.json"
                train = ["train", "gpt", "--devices", "4", "--steps", "1", "--strategy", strategy]
                for words in ([*train, "--check"], [*train, "--write-graph", step], ["schedule", step, "--devices", "4", "--effort", "0", "-o", plan],
                              ["check", step, plan, "--devices", "4"]):
                    subprocess.run([os.environ["GANTRY"], *words], check=True, capture_output=True)

    def test_memory(self):
        """Each device has its slices alone."""
        def peak(strategy, devices):
            graph = gantry.load(ROOT / "graphs/models/mlp.json", {"parts": 1, "batch": 64, "inputs": 1024, "hidden": 1024}, devices=devices, train=True,
                                strategy=strategy)
            return max(graph.schedule(devices, effort=0).report()["peak_bytes"].values())
        self.assertLess(peak("tp=4", 4), 0.35 * peak("dp=1", 1))

    def test_memory_of_tables(self):
        """Of a model that is mostly tables each device has a share: the tables themselves, their gradients, two means of each, and logits."""
        words, width, rows = 4096, 64, 32
        def plan(strategy, devices):
            graph = gantry.load(ROOT / "graphs/models/gpt.json", {"batch": 1, "tokens": rows, "layers": 1, "words": words}, devices=devices, train=True,
                                strategy=strategy)
            return graph.schedule(devices, effort=0).report()
        def peak(strategy, devices):
            return max(plan(strategy, devices)["peak_bytes"].values())
        shared = 4 * (4 * 2 * words * width + 2 * rows * words)
        self.assertGreater(peak("dp=1", 1), shared)
        for tp in (2, 4):
            self.assertLess(peak(f"tp={tp}", tp), peak("dp=1", 1) - 0.95 * (tp - 1) / tp * shared)
        self.assertLess(plan("tp=2", 2)["bytes_moved"], 0.2 * words * width * 4) # no table, no gradient of one, no logits


class Kernels(unittest.TestCase):
    """Between two products: each kernel that can be in slices has the gradients of the uncut model."""

    def compare(self, shapes, nodes, strategies=("tp=2",), sliced=("it",), weights=(), rows=6, width=8, last=None, **more):
        """x w1 goes by `nodes` from "a" to "b", which w2 takes; shapes of what lies between and of further weights."""
        rng = np.random.default_rng(5)
        last = last or width
        buffers = {"x": buffer([rows, 5], **GIVEN), "w1": buffer([5, width], **GIVEN), "w2": buffer([last, 3], **GIVEN), "r": buffer([rows, 3], **GIVEN),
                   "a": buffer([rows, width]), "b": buffer([rows, last]), "y": buffer([rows, 3]), "loss": buffer([1], output=True)}
        buffers |= {name: buffer(shape, **(GIVEN if name in weights else {})) for name, shape in shapes.items()} | more
        nodes = [{"id": "first", "kernel": "gemm", "args": {"a": "x", "b": "w1", "c": "a"}}, *nodes,
                 {"id": "second", "kernel": "gemm", "args": {"a": "b", "b": "w2", "c": "y"}},
                 {"id": "loss", "reduce": {"l": "sum(square(y) * r)"}, "args": {"y": "y", "r": "r", "l": "loss"}}]
        text = {"gantry": 1, "name": "kernel", "buffers": buffers, "nodes": nodes,
                "train": {"loss": "loss", "weights": ["w1", "w2", *weights], "optimizer": "none", "batch": ["x", "r"]}}
        given = {name: rng.normal(size=one["shape"]) for name, one in buffers.items() if one.get("class") == "input"}
        wanted = None
        for strategy in (None, *strategies):
            graph = gantry.parse(text, train=True, strategy=strategy, devices=4)
            out = {name: np.array(value) for name, value in graph.schedule(4, effort=0).run(backend="host")(**given).items()}
            wanted = wanted or out
            self.assertEqual(out.keys(), wanted.keys())
            for name, value in wanted.items():
                np.testing.assert_allclose(out[name], value, rtol=1e-10, atol=1e-10, err_msg=f"{name} {strategy}")
            names = {node["id"] for node in json.loads(graph.json())["nodes"]}
            for name in sliced if strategy else ():
                self.assertTrue(any(f"{name}[{at}]" in names for at in ("1", "0,1")), names)

    def test_elements(self):
        both = ("tp=2", "tp=2,dp=2", "tp=4", "tp=2,micro=3")
        for kernel in ("relu", "copy"):
            self.compare({}, [{"id": "it", "kernel": kernel, "args": {"x": "a", "y": "b"}}], both, rows=24)
        self.compare({}, [{"id": "it", "kernel": "scale", "args": {"a": 0.3, "x": "a", "y": "b"}}])
        self.compare({}, [{"id": "it", "kernel": "add", "args": {"x": "a", "y": "a", "z": "b"}}])
        self.compare({}, [{"id": "it", "kernel": "mul", "args": {"x": "a", "y": "a", "z": "b"}}])
        self.compare({"g": [8]}, [{"id": "it", "kernel": "bias_add", "args": {"x": "a", "b": "g", "y": "b"}}], both, weights=["g"], rows=24)
        self.compare({"g": [1, 8]}, [{"id": "it", "kernel": "bias_add", "args": {"x": "a", "b": "g", "y": "b"}}], weights=["g"])

    def test_dropout(self):
        """Elements of a slice have the mask that they have in the whole: losses and gradients are those of one device."""
        both = ("tp=2", "tp=2,dp=2", "tp=4", "tp=2,micro=3", "dp=2,tp=2,micro=3")
        for width in (8, 12):
            for first in ({}, {"first": 5}):
                self.compare({}, [{"id": "it", "kernel": "dropout", "args": {"p": 0.4, "seed": 9, "x": "a", "y": "b"} | first}], both, rows=24, width=width)
        self.heads([{"id": "it", "kernel": "dropout", "args": {"p": 0.4, "seed": 9, "first": 3, "x": "q", "y": "p"}}], {})

    def test_formulas(self):
        self.compare({"g": [8], "h": [6, 1], "m": [8]}, [
            {"id": "h", "map": {"h": "v + 1"}, "args": {"h": "h", "v": "v"}},
            {"id": "it", "map": {"b": "tanh(a) * g + c"}, "args": {"a": "a", "g": "g", "b": "b", "c": 0.25}}], weights=["g"], v=buffer([6, 1], init=1))
        self.compare({"m": [8]}, [{"id": "it", "reduce": {"m": "mean(a, 0)"}, "args": {"a": "a", "m": "m"}},
                                  {"id": "away", "map": {"b": "(a - m) * a"}, "args": {"a": "a", "m": "m", "b": "b"}}], ("tp=2", "dp=2,tp=2"), rows=8)
        self.compare({"m": [1, 8]}, [{"id": "it", "reduce": {"m": "max(a, -2)"}, "args": {"a": "a", "m": "m"}},
                                     {"id": "away", "map": {"b": "a * a - m"}, "args": {"a": "a", "m": "m", "b": "b"}}])

    def heads(self, nodes, shapes, **more):
        """[8, 8] as 4 heads of 2 elements, in front, through `nodes` from "q" to "p", and back."""
        into = [{"id": "apart", "copy": {"from": "a", "to": "a3"}}, {"id": "turn", "kernel": "transpose", "args": {"x": "a3", "y": "q"}}]
        back = [{"id": "back", "kernel": "transpose", "args": {"x": "p", "y": "p3"}}, {"id": "join", "copy": {"from": "p3", "to": "b"}}]
        self.compare({"a3": [8, 4, 2], "q": [4, 8, 2], "p": [4, 8, 2], "p3": [8, 4, 2]} | shapes, into + nodes + back, ("tp=2", "tp=4"),
                     sliced=("it", "apart", "turn", "back", "join"), rows=8, **more)

    def test_heads(self):
        for causal in (0, 1):
            self.heads([{"id": "it", "kernel": "attention", "args": {"causal": causal, "q": "q", "k": "q", "v": "q", "y": "p"}}], {})
            self.compare({}, [{"id": "it", "kernel": "attention", "args": {"causal": causal, "dim": 2, "q": "a", "k": "a", "v": "a", "y": "b"}}], ("tp=2", "tp=4"), rows=8)
            self.compare({"l": [2, 4, 4]}, [{"id": "it", "kernel": "attention", "args": {"causal": causal, "dim": 2, "length": 4, "q": "a", "k": "a", "v": "a", "y": "b",
                                                                                        "lse": "l"}}], ("tp=2", "tp=4", "dp=2,tp=2"), rows=8)
        self.heads([{"id": "it", "kernel": "attention", "args": {"q": "q", "k": "q", "v": "q", "y": "p", "lse": "l"}}], {"l": [4, 8]})
        self.heads([{"id": "it", "kernel": "rope", "args": {"dim": 2, "axis": 1, "x": "q", "y": "p"}}], {})
        self.heads([{"id": "it", "kernel": "softmax", "args": {"x": "q", "y": "p"}}], {})
        self.heads([{"id": "it", "kernel": "rmsnorm", "args": {"x": "q", "gain": "g", "y": "p"}}], {"g": [2]}, weights=["g"])
        self.heads([{"id": "it", "kernel": "layernorm", "args": {"x": "q", "gain": "g", "bias": "h", "y": "p"}}], {"g": [2], "h": [2]}, weights=["g", "h"])
        for causal in (0, 1):
            self.heads([{"id": "it", "kernel": "gemm_batched", "args": {"tb": 1, "a": "q", "b": "q", "c": "s"}},
                        {"id": "soft", "kernel": "softmax", "args": {"causal": causal, "x": "s", "y": "t"}},
                        {"id": "mix", "kernel": "gemm_batched", "args": {"a": "t", "b": "q", "c": "p"}}], {"s": [4, 8, 8], "t": [4, 8, 8]})
        self.compare({}, [{"id": "it", "kernel": "rope", "args": {"dim": 2, "x": "a", "y": "b"}}], ("tp=2", "tp=4"), rows=8)

    def test_transposed_weights(self):
        rng = np.random.default_rng(6)
        buffers = {"x": buffer([4, 5], **GIVEN), "w1": buffer([8, 5], **GIVEN), "w2": buffer([3, 8], **GIVEN), "a": buffer([4, 8]), "b": buffer([4, 8]),
                   "y": buffer([4, 3]), "loss": buffer([1], output=True)}
        nodes = [{"id": "first", "kernel": "gemm", "args": {"tb": 1, "alpha": 0.5, "a": "x", "b": "w1", "c": "a"}},
                 {"id": "it", "map": {"b": "tanh(a)"}, "args": {"a": "a", "b": "b"}},
                 {"id": "second", "kernel": "gemm", "args": {"tb": 1, "a": "b", "b": "w2", "c": "y"}},
                 {"id": "loss", "reduce": {"l": "sum(y * y)"}, "args": {"y": "y", "l": "loss"}}]
        text = {"gantry": 1, "name": "turned", "buffers": buffers, "nodes": nodes,
                "train": {"loss": "loss", "weights": ["w1", "w2"], "optimizer": "none", "batch": ["x"]}}
        given = {name: rng.normal(size=buffers[name]["shape"]) for name in ("x", "w1", "w2")}
        h = np.tanh(0.5 * given["x"] @ given["w1"].T)
        y = h @ given["w2"].T
        dz = 2 * y @ given["w2"] * (1 - h * h)
        for strategy in ("tp=2", "dp=2,tp=2"):
            out = gantry.parse(text, train=True, strategy=strategy, devices=8).schedule(8, effort=0).run(backend="host")(**given)
            np.testing.assert_allclose(out["w2.grad"], 2 * y.T @ h, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(out["w1.grad"], 0.5 * dz.T @ given["x"], rtol=1e-10, atol=1e-10)

    def test_bias(self):
        """A product with a bias is the first of a pair, whose bias is cut with its columns; as a second one each slice would add it."""
        rng = np.random.default_rng(9)
        for tb, shape in itertools.product((0, 1), ([8], [1, 8])):
            buffers = {"x": buffer([12, 5], **GIVEN), "w1": buffer([8, 5] if tb else [5, 8], **GIVEN), "g": buffer(shape, **GIVEN), "w2": buffer([8, 3], **GIVEN),
                       "h": buffer([3], **GIVEN), "a": buffer([12, 8]), "y": buffer([12, 3]), "loss": buffer([1], output=True)}
            nodes = [{"id": "first", "kernel": "gemm_bias", "args": {"activation": 2, "tb": tb, "a": "x", "b": "w1", "bias": "g", "c": "a"}},
                     {"id": "second", "kernel": "gemm_bias", "args": {"a": "a", "b": "w2", "bias": "h", "c": "y"}},
                     {"id": "loss", "reduce": {"l": "sum(y * y)"}, "args": {"y": "y", "l": "loss"}}]
            # as a second product the bias is a formula's
            pair = [nodes[0], {"id": "second", "kernel": "gemm", "args": {"a": "a", "b": "w2", "c": "z"}},
                    {"id": "add", "map": {"y": "z + h"}, "args": {"z": "z", "h": "h", "y": "y"}}, nodes[2]]
            given = {name: rng.normal(size=one["shape"]) for name, one in buffers.items() if one.get("class") == "input"}
            u = given["x"] @ (given["w1"].T if tb else given["w1"]) + given["g"].reshape(8)
            t = np.tanh(math.sqrt(2 / math.pi) * (u + 0.044715 * u ** 3))
            a = u / 2 * (1 + t)
            y = a @ given["w2"] + given["h"]
            du = 2 * y @ given["w2"].T * ((1 + t) / 2 + u / 2 * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * u * u))
            wanted = {"loss": [np.sum(y * y)], "w1.grad": du.T @ given["x"] if tb else given["x"].T @ du, "g.grad": du.sum(0).reshape(shape),
                      "w2.grad": a.T @ (2 * y), "h.grad": 2 * y.sum(0)}
            text = {"gantry": 1, "name": "bias", "buffers": buffers | {"z": buffer([12, 3])}, "nodes": pair,
                    "train": {"loss": "loss", "weights": ["w1", "g", "w2", "h"], "optimizer": "none", "batch": ["x"]}}
            for strategy in ("tp=2", "tp=4", "dp=2,tp=2,micro=3"):
                with self.subTest(tb=tb, shape=shape, strategy=strategy):
                    graph = gantry.parse(text, train=True, strategy=strategy, devices=4)
                    cut = [one for one in json.loads(graph.json())["buffers"].items() if one[0] in ("w1", "g")]
                    self.assertTrue(all("tiles" in one or "split" in one for _, one in cut), cut)
                    out = graph.schedule(4, effort=0).run(backend="host")(**given)
                    for name, value in wanted.items():
                        np.testing.assert_allclose(out[name], value, rtol=1e-10, atol=1e-10, err_msg=name)
            text["nodes"] = nodes[:1] + nodes[1:2] + nodes[2:]
            with self.assertRaisesRegex(gantry.Error, "tp=2 finds no weights"):
                gantry.parse(text, train=True, strategy="tp=2", devices=2)

    def test_pairs_that_end_in_a_kernel(self):
        """A kernel that says in formulas that it reduces ends a pair as a reduction does."""
        rng = np.random.default_rng(8)
        given = {"x": rng.normal(size=(8, 5)), "w": rng.normal(size=(5, 6))}
        y = given["x"] @ given["w"]
        greatest = np.zeros_like(y)
        greatest[np.unravel_index(y.argmax(), y.shape)] = 1
        for kernel, args, dy in (("reduce_sum", {"x": "y"}, np.ones_like(y)), ("dot", {"x": "y", "y": "y"}, 2 * y), ("reduce_max", {"x": "y"}, greatest)):
            buffers = {"x": buffer([8, 5], **GIVEN), "w": buffer([5, 6], **GIVEN), "y": buffer([8, 6]),
                       "loss": buffer([1], output=True) | ({"init": -1e9} if kernel == "reduce_max" else {})}
            nodes = [{"id": "first", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "y"}}, {"id": "loss", "kernel": kernel, "args": args | {"out": "loss"}}]
            text = {"gantry": 1, "name": "ends", "buffers": buffers, "nodes": nodes,
                    "train": {"loss": "loss", "weights": ["w"], "optimizer": "none", "batch": ["x"]}}
            for strategy in ("tp=2", "tp=3"):
                with self.subTest(kernel=kernel, strategy=strategy):
                    self.assertEqual(buffers_of(text, strategy)["w"]["tiles"], [1, int(strategy[3:])])
                    out = gantry.parse(text, train=True, strategy=strategy, devices=3).schedule(3, effort=0).run(backend="host")(**given)
                    np.testing.assert_allclose(out["w.grad"], given["x"].T @ dy, rtol=1e-10, atol=1e-10)

    def test_what_stays_whole(self):
        """A first product whose result goes anywhere else is not cut, nor is a pair that someone looks into; others are."""
        text = whole(**training.CASES[0][0])
        buffers = text["buffers"]
        buffers |= {"w3": buffer([4, 6], init=1), "y3": buffer([24, 6])}
        text["train"]["weights"].append("w3")
        text["nodes"].append({"id": "fc3", "kernel": "gemm", "args": {"a": "y", "b": "w3", "c": "y3"}})
        buffers["s3"] = buffer([24, 6])
        text["nodes"].append({"id": "along", "kernel": "softmax", "args": {"x": "y3", "y": "s3"}})
        text["nodes"].append({"id": "seen", "kernel": "softmax_xent", "args": {"logits": "s3", "labels": "labels", "loss": "loss"}})
        made = buffers_of(text, "tp=2")
        self.assertEqual([made[name].get("tiles") for name in ("w1", "w3", "y3")], [[1, 2], None, None])
        self.assertEqual(made["y3"]["split"], 2)
        nodes = {node["id"]: node for node in json.loads(gantry.parse(text, train=True, strategy="tp=2").json())["nodes"]}
        self.assertEqual(nodes["fc3[1]"]["args"]["b"], "w3")


class Refused(unittest.TestCase):
    def check(self, strategy, text, *texts, devices=0):
        with self.subTest(strategy=strategy, texts=texts):
            with self.assertRaises(gantry.Error) as caught:
                gantry.parse(text, train=True, strategy=strategy, devices=devices)
            for part in texts:
                self.assertIn(part, str(caught.exception))
            self.assertLess(len(caught.exception.text), 500, "the text was cut off")

    def test_numbers(self):
        text = whole(**training.CASES[0][0])
        self.check("tp=0", text, "tp is 0; 1 to 65536")
        self.check("tp=2,tp=2", text, '"tp" is there twice')
        self.check("dp=2,tp=2,pp=2", text, "for 8 devices, and there are 4", devices=4)
        self.check("dp=600,tp=600", text, "dp=600, tp=600", "more than 65536 devices, stages or pieces")

    def test_shapes(self):
        self.check("tp=3", whole(**training.CASES[0][0]), 'tp=3 cuts buffer "w1" along axis 1, which is 8 long', "cannot be cut into 3",
                   "divides heads and columns")
        folder = ROOT / "graphs/models"
        with self.assertRaisesRegex(gantry.Error, r'q2" is cut into 2 slices \(tp=2\), which would begin within a head .* give a tp that divides the number of heads'):
            gantry.load(folder / "gpt.json", {"heads": 3}, train=True, strategy="tp=2")
        text = whole(**training.CASES[0][0])
        text["nodes"][1] = {"id": "tanh", "kernel": "rope", "args": {"dim": 8, "x": "z", "y": "h"}}
        text["train"]["weights"].remove("b1")
        self.check("tp=2", text, 'node "tanh" is cut into 2 slices', "within a head", "the number of heads")
        text["nodes"][1] = {"id": "tanh", "kernel": "attention", "args": {"dim": 8, "q": "z", "k": "z", "v": "z", "y": "h"}}
        self.check("tp=2", text, 'node "tanh" is cut into 2 slices', "within a head", "the number of heads")

    def test_rows(self):
        self.check("dp=3,tp=8,micro=2", whole(**training.CASES[0][0]), "rows of", "dp=3, micro=2, tp=8")
        self.check("dp=2,tp=2", training.network("f64", 3, False, **training.CASES[0][0]), "is split into 3 parts", "tp=2 are 4 pieces")

    def test_kernels(self):
        """A kernel without a rule keeps a pair whole, and has none for pieces of the batch either."""
        text = whole(**training.CASES[0][0])
        text["train"]["weights"].remove("b1")
        text["nodes"][1] = {"id": "odd", "kernel": "scan", "args": {"x": "z", "y": "h"}}
        text["nodes"][3]["after"] = ["odd"]
        self.check("tp=2", text, "tp=2 finds no weights that it can cut")
        del text["nodes"][3]["after"]
        text["buffers"] |= {"w3": buffer([8, 6]), "w4": buffer([6, 8]), "h3": buffer([24, 6]), "h4": buffer([24, 8])}
        for weight in ("w3", "w4"):
            text["buffers"][weight]["init"] = 1
            text["train"]["weights"].append(weight)
        text["nodes"][2:2] = [{"id": "in", "kernel": "gemm", "args": {"a": "h", "b": "w3", "c": "h3"}},
                              {"id": "out", "kernel": "gemm", "args": {"a": "h3", "b": "w4", "c": "h4"}}]
        text["nodes"][4]["args"]["a"] = "h4"
        self.check("tp=2", text, 'node "odd" takes rows of 2 pieces of the batch', "or use maps, reductions, copies and add, attention")

    def test_nothing_to_cut(self):
        text = whole(**training.CASES[0][0])
        text["nodes"][1]["after"] = ["fc1"]
        text["nodes"][3]["after"] = ["fc2"]
        self.check("tp=2", text, "tp=2 finds no weights that it can cut", "/train", "use dp, or pp")
        text = whole(**training.CASES[0][0])
        text["buffers"]["h"]["output"] = True
        buffers_of(text, "tp=2")
        text["nodes"].append({"id": "look", "kernel": "scan", "args": {"x": "h", "y": "seen"}})
        text["buffers"]["seen"] = buffer([24, 8], output=True)
        self.check("tp=2", text, "tp=2 finds no weights")


if __name__ == "__main__":
    unittest.main()
