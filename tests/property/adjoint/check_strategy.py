# SPDX-License-Identifier: Apache-2.0
"""Strategies: a model that is described once, whole, and spread over devices, against NumPy in float64, written by hand: the losses of
100 steps. What is computed where, and what is refused."""
import contextlib
import itertools
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import check_training as training
from differences import buffer, gantry, np, place
from suite import ROOT


def whole(dtype="f64", **train):
    """The network of check_training, not cut at all: it says only which buffers are the batch."""
    text = training.network(dtype, 1, False, **train)
    for one in text["buffers"].values():
        one.pop("split", None)
    for node in text["nodes"]:
        node["id"] = node["id"].removesuffix("[0]")
        node["args"] = {name: arg.removesuffix("[0]") if isinstance(arg, str) else arg for name, arg in node["args"].items()}
        node.pop("access", None)
    text["train"]["batch"] = ["x", "labels"]
    return text


def chain(layers=8, rows=24, widths=None, dtype="f64"):
    """h[i + 1] = tanh(h[i] w[i]), whole and without layers; the loss is the mean of the squares of the last."""
    widths = widths or [16] * (layers + 1)
    buffers = {f"w{i}": buffer(widths[i:i + 2], dtype, init={"normal": {"seed": i + 1, "deviation": 0.3}}) for i in range(layers)}
    buffers |= {f"h{i}": buffer([rows, widths[i]], dtype) for i in range(layers + 1)}
    buffers |= {f"z{i}": buffer([rows, widths[i]], dtype) for i in range(1, layers + 1)}
    buffers["h0"]["init"] = {"normal": {"seed": 99}}
    buffers["loss"] = buffer([1], dtype, output=True)
    nodes = []
    for i in range(layers):
        nodes += [{"id": f"fc{i}", "kernel": "gemm", "args": {"a": f"h{i}", "b": f"w{i}", "c": f"z{i + 1}"}},
                  {"id": f"act{i}", "map": {"h": "tanh(z)"}, "args": {"z": f"z{i + 1}", "h": f"h{i + 1}"}}]
    nodes.append({"id": "loss", "reduce": {"l": "mean(square(h))"}, "args": {"h": f"h{layers}", "l": "loss"}})
    return {"gantry": 1, "name": "chain", "buffers": buffers, "nodes": nodes,
            "train": {"loss": "loss", "weights": [f"w{i}" for i in range(layers)], "learning_rate": 0.1, "batch": ["h0"]}}


def losses(text, strategy, given, devices, steps=training.STEPS, **how):
    graph = gantry.parse(text, train=True, strategy=strategy, devices=devices)
    run = graph.schedule(devices, **{"effort": 0, **how}).run(backend="host")
    return np.array([float(run(**given)["loss"][0]) if t == 0 else float(run()["loss"][0]) for t in range(steps)])


def nodes_of(text, strategy, devices=0):
    graph = gantry.parse(text, train=True, strategy=strategy, devices=devices)
    return {node["id"]: node for node in json.loads(graph.json())["nodes"]}


class Strategies(unittest.TestCase):
    CASE, HAND = training.CASES[7]

    def setUp(self):
        self.x, self.labels, self.w = training.data()
        self.given = {"x": self.x, "labels": self.labels} | self.w

    def wanted(self, case, hand, given):
        rate = 0.02 if isinstance(case["learning_rate"], str) else case["learning_rate"]
        return training.by_hand({name: given[name] for name in training.SHAPES}, given["x"].astype(np.float64), self.labels,
                                case["optimizer"], rate, **hand)

    def test_all(self):
        """Every number of replicas up to 4, with micro-batches, shards and stages; fused and not is the same."""
        wanted = self.wanted(self.CASE, self.HAND, self.given)
        for dp, micro, zero, pp in [*itertools.product((1, 2, 3, 4), (1, 2), (0, 1), (1, 2)), (1, 24, 0, 1), (2, 4, 3, 3), (3, 4, 2, 1)]:
            if dp * pp > 6 or (dp == 1 and zero):
                continue
            strategy = f"dp={dp},micro={micro},zero={zero},pp={pp}"
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses(whole(**self.CASE), strategy, self.given, dp * pp), wanted, rtol=1e-9, atol=1e-9)

    def test_optimizers(self):
        for case, hand in training.CASES:
            with self.subTest(case=case):
                np.testing.assert_allclose(losses(whole(**case), "zero=1,dp=2,micro=3", self.given, 2), self.wanted(case, hand, self.given),
                                           rtol=1e-9, atol=1e-9)

    def test_float32(self):
        given = {name: value.astype(np.float32) if value.dtype == np.float64 else value for name, value in self.given.items()}
        wanted = self.wanted(self.CASE, self.HAND, given)
        for strategy in ("dp=2", "dp=3,micro=2,zero=1", "dp=2,pp=2,micro=4"):
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses(whole("f32", **self.CASE), strategy, given, 4), wanted, rtol=1e-5, atol=1e-5)

    def test_with_search(self):
        """Replicas of the optimiser's nodes, and collectives, are found by the search."""
        wanted = self.wanted(self.CASE, self.HAND, self.given)
        for strategy in ("dp=2", "dp=2,zero=1", "dp=1,pp=2,micro=4"):
            np.testing.assert_allclose(losses(whole(**self.CASE), strategy, self.given, 2, effort=1), wanted, rtol=1e-9, atol=1e-9)

    def test_models_that_are_cut(self):
        """Parts of the model are pieces, or several a piece, or become several pieces."""
        wanted = self.wanted(self.CASE, self.HAND, self.given)
        for parts, strategy in ((4, "dp=2"), (2, "dp=2,micro=2"), (3, "dp=3"), (2, "dp=4,micro=3"), (6, "micro=3")):
            with self.subTest(parts=parts, strategy=strategy):
                text = training.network("f64", parts, False, **self.CASE)
                text["nodes"] = [dict(node) for node in text["nodes"]]
                np.testing.assert_allclose(losses(text, strategy, self.given, 4), wanted, rtol=1e-9, atol=1e-9)

    def test_models_of_the_repository(self):
        """Those that learn from the batch they are given learn the same however they are spread."""
        cases = {"mlp": ["dp=4", "dp=2,micro=4", "dp=2,zero=1", "pp=2,micro=4"], "cnn": ["dp=2", "dp=2,micro=2,zero=1", "pp=3,micro=2"],
                 "gpt": ["dp=2", "dp=2,zero=1", "micro=2", "pp=2,micro=2"]}
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "graphs/models", folder, dirs_exist_ok=True)
            for path in sorted(pathlib.Path(folder).rglob("*.json")):
                path.write_text(path.read_text().replace('"f32"', '"f64"'))
            for path in [pathlib.Path(folder) / f"{name}.json" for name in cases]:
                def run(strategy, devices):
                    graph = gantry.load(path, {"batch": 2 if path.stem == "gpt" else 16}, devices=devices, train=True, strategy=strategy)
                    run = graph.schedule(devices, effort=0).run(backend="host")
                    return [float(run()["loss"][0]) for _ in range(8)]
                wanted = run(None, 1)
                self.assertLess(wanted[-1], wanted[0])
                for strategy in cases[path.stem]:
                    with self.subTest(model=path.stem, strategy=strategy):
                        np.testing.assert_allclose(run(strategy, 4), wanted, rtol=1e-9, atol=1e-9)

    def test_places(self):
        """Piece p is on the device of its replica and stage; shards are stepped one on each."""
        nodes = nodes_of(whole(**self.CASE), "dp=2,micro=3,zero=1")
        for piece in range(6):
            for name in ("fc1", "tanh"):
                self.assertEqual(place(nodes[f"{name}[{piece}]"]), piece // 3)
            self.assertEqual(nodes[f"fc2[{piece}]"].get("priority", 0), -(piece % 3))
            self.assertEqual(nodes[f"fc2[{piece}].grad.b"].get("priority", 0), -(piece % 3))
        self.assertEqual({place(nodes[f"w1.step[{i}]"]) for i in range(2)}, {0, 1})
        nodes = nodes_of(whole(**self.CASE), "dp=2,pp=2")
        self.assertEqual({place(nodes[f"fc1[{i}]"]) for i in range(2)}, {0, 1})
        self.assertEqual({place(nodes[f"loss[{i}]"]) for i in range(2)}, {2, 3})
        nodes = nodes_of(whole(**self.CASE), "pp=2")
        self.assertEqual(place(nodes["w1.step"]), 0)
        self.assertEqual(place(nodes["b2.step"]), 1)

    def test_stages_of_parts(self):
        """What does the same for several parts of a piece is of one stage."""
        nodes = nodes_of(training.network("f64", 4, False, **self.CASE), "dp=2,pp=2")
        for part in range(4):
            self.assertEqual(place(nodes[f"fc1[{part}]"]), part // 2)
            self.assertEqual(place(nodes[f"loss[{part}]"]), 2 + part // 2)

    def test_stages_are_even(self):
        """Stages follow each other, none is empty, and the largest has as little as any cut of the chain leaves it, by trying all cuts."""
        random = np.random.default_rng(7)
        for case in range(60):
            layers, pp = int(random.integers(2, 6)), int(random.integers(2, 5))
            count = 2 * layers + 1
            chunks = int(random.integers(1, count // pp + 1))
            costs = random.integers(0, 9, count) * 10 ** random.integers(0, 4, count) # some are none, some more than all others together
            text = chain(layers)
            for node, flops in zip(text["nodes"], costs):
                node["cost"] = {"flops": int(flops)}
            for micro in 1, 2:
                nodes = nodes_of(text, f"pp={pp},interleave={chunks},micro={micro}")
                for piece in range(micro):
                    where = [place(nodes[node["id"] + (f"[{piece}]" if micro > 1 else "")]) for node in text["nodes"]]
                    cuts = [0, *(i for i in range(1, count) if where[i] != where[i - 1]), count]
                    with self.subTest(costs=costs.tolist(), pp=pp, chunks=chunks, where=where):
                        self.assertEqual([where[i] for i in cuts[:-1]], [stage % pp for stage in range(pp * chunks)])
                        def largest(cut):
                            return max(costs[a:b].sum() for a, b in itertools.pairwise(cut))
                        self.assertEqual(largest(cuts), min(largest((0, *cut, count)) for cut in itertools.combinations(range(1, count), pp * chunks - 1)))

    def test_no_stage_is_empty(self):
        """A product that takes longer than all others together left the stages beside it without a node."""
        text = json.loads((ROOT / "graphs/models/mlp.json").read_text())
        for strategy, wanted in (("pp=4", {0, 1, 2, 3}), ("pp=5", {0, 1, 2, 3, 4}), ("pp=2,interleave=2", {0, 1})):
            for params in {}, {"batch": 99, "inputs": 500, "hidden": 2003, "classes": 101}:
                nodes = json.loads(gantry.parse(text, params, devices=5, train=True, strategy=strategy).json())["nodes"]
                self.assertEqual({place(node) for node in nodes if "on" in node}, wanted, (strategy, params))

    def test_chunks(self):
        """Chunk c of stage s is on device s; backward passes come when the chunks were gone through, gradients of weights a round later."""
        nodes = nodes_of(chain(), "pp=2,interleave=2,micro=4")
        where = [place(nodes[f"fc{i}[0]"]) for i in range(8)]
        self.assertEqual(where, [0, 0, 1, 1, 0, 0, 1, 1])
        turns = {chunk: [-nodes[f"fc{layer}[{micro}]"].get("priority", 0) for micro in range(4)] for chunk, layer in ((0, 0), (1, 4))}
        self.assertEqual(turns, {0: [0, 1, 4, 5], 1: [2, 3, 6, 7]})
        back = {layer: [-nodes[f"fc{layer}[{micro}].grad.a"].get("priority", 0) for micro in range(4)] for layer in (1, 4)}
        self.assertEqual(back, {4: turns[1], 1: [turn + 4 for turn in turns[0]]})
        for layer in (1, 4):
            self.assertEqual(-nodes[f"fc{layer}[1].grad.b"]["priority"], back[layer][1] + 2)

    def test_chunks_learn_the_same(self):
        text = chain()
        wanted = losses(text, "dp=1", {}, 1, 10)
        for strategy, devices in (("pp=2,interleave=2,micro=4", 2), ("dp=2,pp=2,interleave=4,micro=2,zero=1", 4), ("pp=3,interleave=2,micro=3", 3),
                                  ("pp=2,interleave=2,micro=4,recompute=all", 2), ("pp=2,interleave=2,tp=2,micro=2", 4)):
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses(text, strategy, {}, devices, 10), wanted, rtol=1e-9, atol=1e-9)

    def test_chunks_have_fewer_bubbles(self):
        """On a machine file, two chunks a device take less time than one: of (pp - 1) / micro idle time half is left."""
        def makespan(strategy, params):
            graph = gantry.load(ROOT / "graphs/models/gpt.json", params, devices=4, train=True, strategy=strategy)
            return graph.schedule(gantry.Machine.load(ROOT / "graphs/machines/host-4.json"), effort=0).makespan
        params = {"layers": 16, "batch": 8, "tokens": 32, "words": 8}
        one, two = makespan("pp=4,micro=8", params), makespan("pp=4,interleave=2,micro=8", params)
        self.assertLess(two, 0.97 * one)

    def test_memory(self):
        """Micro-batches want less memory for activations, shards less for weights: with room for them alone, the model is trained."""
        def peak(strategy, devices, room=None, **params):
            graph = gantry.load(ROOT / "graphs/models/mlp.json", {"parts": devices, **params}, devices=devices, train=True, strategy=strategy)
            limit = {"max_memory": ",".join(f"mem{i}={room}" for i in range(devices))} if room else {}
            return max(graph.schedule(devices, effort=0, **limit).report()["peak_bytes"].values())
        self.assertLess(peak("micro=8", 1, batch=4096), 0.4 * peak("micro=1", 1, batch=4096))
        wide = {"batch": 64, "inputs": 1024, "hidden": 1024}
        self.assertLess(peak("dp=4,zero=1", 4, **wide), 0.7 * peak("dp=4", 4, **wide))
        self.assertLessEqual(peak("dp=4,zero=3", 4, "9MiB", **wide), 9 << 20)
        with self.assertRaisesRegex(gantry.Error, "w1.step"):
            peak("dp=4", 4, "9MiB", **wide)


class Ordered(unittest.TestCase):
    """Sums that have one order: that of the graph."""
    STRATEGIES = ("dp=4", "tp=2", "dp=2,micro=3,zero=1", "dp=2,pp=2,micro=4", "dp=2,tp=2,zero=3", "pp=2,interleave=2,micro=2,recompute=all", "dp=2,tp=2,pp=2,micro=2")

    def test_losses(self):
        """It learns the same: the chain, of which each weight is read by all pieces, and the gradients of all, squared, are one more sum."""
        text = chain()
        text["train"] |= {"clip_norm": 0.05, "optimizer": "adam"}
        wanted = losses(text, "dp=1", {}, 1, 10)
        for strategy in self.STRATEGIES:
            for devices in 8, 1:
                with self.subTest(strategy=strategy, devices=devices):
                    np.testing.assert_allclose(losses(text, strategy + ",ordered=1", {}, 8, 10), wanted, rtol=1e-9, atol=1e-9)

    def test_nobody_waits(self):
        """What a device adds to is its own: what it gives comes after what it gave before, and after nothing of others. One map adds up what devices have."""
        for strategy in self.STRATEGIES:
            with self.subTest(strategy=strategy):
                nodes, gives = nodes_of(chain(), strategy + ",ordered=1"), {}
                for node in nodes.values():
                    for arg, access in node.get("access", {}).items():
                        if access == "sum":
                            gives.setdefault(node["args"][arg].split("[")[0], []).append(node)
                self.assertTrue(gives)
                for given, those in gives.items():
                    self.assertEqual(len({place(node) for node in those}), 1, given)
                    for node in those:
                        self.assertLessEqual({place(nodes[other]) for other in node.get("after", [])}, {place(node)}, node)
                several = [node for node in nodes.values() if "map" in node and len([arg for arg in node["args"].values() if ".sum" in str(arg)]) > 1]
                self.assertEqual(bool(several), "dp" in strategy or "tp" in strategy, strategy)

    def test_no_batches(self):
        """No call of a library computes products of several nodes, which depends on the devices and may add up in another order."""
        machine = gantry.Machine.load(ROOT / "graphs/machines/hgx-h200-8.json").select(4)
        def batches(strategy):
            graph = gantry.load(ROOT / "graphs/models/gpt.json", {"batch": 8}, devices=4, train=True, strategy=strategy)
            return [op for op in json.loads(graph.schedule(machine, effort=0).json())["ops"] if op.get("batch")]
        for strategy in "dp=4", "dp=4,zero=3":
            with self.subTest(strategy=strategy):
                self.assertTrue([op for op in batches(strategy) if op["kind"] == "launch"])
                self.assertFalse([op for op in batches(strategy + ",ordered=1") if op["kind"] == "launch"])

    def test_price(self):
        """A step takes at most an eighth longer than with sums in any order, where devices took turns up to 2.7 times as long."""
        machine = gantry.Machine.load(ROOT / "graphs/machines/hgx-h200-8.json").select(4)
        def makespan(strategy):
            graph = gantry.load(ROOT / "graphs/models/gpt.json", {"layers": 4, "batch": 16}, devices=4, train=True, strategy=strategy)
            return graph.schedule(machine, effort=0).makespan
        for strategy in "dp=4", "dp=4,micro=4", "dp=4,zero=3", "tp=4", "dp=2,pp=2,micro=4":
            with self.subTest(strategy=strategy):
                self.assertLess(makespan(strategy + ",ordered=1"), 1.125 * makespan(strategy))

    def test_bits(self):
        """Summands that have another sum in another order: the one of the graph, whatever is on one device, where it was the schedule's."""
        rows = [2.0**24, 1, 3, 2.0**25, -2.0**24, 5, -2.0**25, 7]
        text = {"gantry": 1, "name": "sums", "buffers": {"x": buffer([16, 1], "f32", **{"class": "input"}), "w": buffer([1, 1], "f32", init=0, output=True), "loss": buffer([1], "f32", output=True)},
                "nodes": [{"id": "loss", "reduce": {"l": "sum(x * w)"}, "args": {"x": "x", "w": "w", "l": "loss"}}],
                "train": {"loss": "loss", "weights": ["w"], "learning_rate": 1, "batch": ["x"]}}
        for strategy in "dp=8", "dp=4,micro=2", "dp=2,micro=4":
            with self.subTest(strategy=strategy):
                def sums(how):
                    graph = gantry.parse(text, train=True, strategy=strategy + how, devices=8)
                    x = np.array([rows, [0] * 8], np.float32).T.reshape(16, 1)
                    return {float(graph.schedule(count, effort=effort).run(backend="host")(x=x)["w"][0, 0]) for count in (8, 4, 3, 2, 1) for effort in (0, 3)}
                got = sums(",ordered=1")
                self.assertGreater(len(sums("")), 1)
                self.assertEqual(len(got), 1, got)
                self.assertEqual(got, {-float(self.total(nodes_of(text, strategy + ",ordered=1"), rows))})

    def total(self, nodes, rows):
        """By NumPy, in f32: contributions in the order of `after`, then what the map has, from left to right."""
        sums, left = {}, [node for node in nodes.values() if "sum" in node.get("access", {}).values() and ".grad" in node["id"]]
        done = {node["id"] for node in nodes.values()} - {node["id"] for node in left}
        while left:
            node = next(node for node in left if set(node.get("after", [])) <= done)
            left.remove(node)
            done.add(node["id"])
            to = next(node["args"][arg] for arg, access in node["access"].items() if access == "sum")
            piece = next(arg for arg in node["args"].values() if str(arg).startswith("x["))
            sums[to] = np.float32(sums.get(to, 0) + np.float32(rows[int(piece[2:-1])]))
        of = next(node["args"] for node in nodes.values() if "w.grad.total" in node["id"])
        total = np.float32(0)
        for i in range(sum(name[0] == "a" and name[1:].isdigit() for name in of)):
            total = np.float32(total + sums[of[f"a{i}"]])
        return total


class Kernels(unittest.TestCase):
    """Each kernel that has a rule: cut into pieces, the gradients are those of the whole."""

    def compare(self, buffers, nodes, weights, batch, pieces=3):
        rng = np.random.default_rng(3)
        text = {"gantry": 1, "name": "kernel", "buffers": buffers, "nodes": nodes,
                "train": {"loss": "loss", "weights": weights, "optimizer": "none", "batch": batch}}
        given = {name: rng.integers(0, 4, b["shape"]).astype(np.int32) if b["dtype"] == "i32" else rng.normal(size=b["shape"])
                 for name, b in buffers.items() if b.get("class") == "input"}
        out = []
        for strategy, devices in ((None, 1), (f"micro={pieces}", 1), (f"dp={pieces}", pieces)):
            run = gantry.parse(text, train=True, strategy=strategy, devices=devices).schedule(devices, effort=0).run(backend="host")
            out.append({name: np.array(value) for name, value in run(**given).items()})
        for other in out[1:]:
            self.assertEqual(other.keys(), out[0].keys())
            for name, value in out[0].items():
                np.testing.assert_allclose(other[name], value, rtol=1e-10, atol=1e-10, err_msg=name)

    def one(self, args, kernel, x_shape, y_shape, others=None, weights=(), kept=(), **more):
        """The weight w times x goes through the kernel; the loss weighs its result. Those that are `kept` are outputs, not inputs."""
        buffers = {"x": buffer(x_shape, **{"class": "input"}), "r": buffer(y_shape, **{"class": "input"}),
                   "w": buffer(x_shape[1:], **{"class": "input"}), "h": buffer(x_shape), "y": buffer(y_shape), "loss": buffer([1], output=True)}
        buffers |= {name: buffer(shape, dtype, **({"output": True} if name in kept else {"class": "input"})) for name, (shape, dtype) in (others or {}).items()}
        nodes = [{"id": "h", "map": {"h": "x * w"}, "args": {"x": "x", "w": "w", "h": "h"}},
                 {"id": "it", "kernel": kernel, "args": args, **more},
                 {"id": "loss", "reduce": {"l": "sum(y * r)"}, "args": {"y": "y", "r": "r", "l": "loss"}}]
        self.compare(buffers, nodes, ["w", *weights], ["x", "r"])

    def test_rows(self):
        f = "f64"
        xy = {"x": "h", "y": "y"}
        self.one(xy, "relu", [6, 4], [6, 4])
        self.one(xy, "copy", [6, 4], [6, 4])
        self.one(xy | {"a": 0.3}, "scale", [6, 4], [6, 4])
        self.one(xy, "softmax", [6, 4], [6, 4])
        self.one(xy | {"p": 0.4, "seed": 5}, "dropout", [6, 4], [6, 4])
        self.one(xy | {"p": 0.4, "seed": 5, "first": 8}, "dropout", [6, 4], [6, 4])
        self.one(xy | {"dim": 4}, "rope", [6, 8], [6, 8])
        self.one(xy | {"dim": 4, "first": 2, "length": 4}, "rope", [6, 8], [6, 8])
        for axis in (0, 1, -2):
            self.one(xy | {"dim": 4, "axis": axis, "first": 1}, "rope", [6, 5, 4], [6, 5, 4])
        self.one(xy | {"causal": 1, "first": 1}, "softmax", [6, 4], [6, 4])
        self.one(xy | {"causal": 1}, "softmax", [6, 3, 4], [6, 3, 4])
        self.one(xy | {"b": "b"}, "bias_add", [6, 4], [6, 4], {"b": ([4], f)}, ["b"])
        self.one(xy | {"gain": "g"}, "rmsnorm", [6, 4], [6, 4], {"g": ([4], f)}, ["g"])
        self.one(xy | {"gain": "g", "bias": "b"}, "layernorm", [6, 4], [6, 4], {"g": ([4], f), "b": ([4], f)}, ["g", "b"])
        self.one({"x": "h", "y": "h2", "z": "y"}, "add", [6, 4], [6, 4], {"h2": ([6, 4], f)})
        self.one({"x": "h", "y": "h2", "z": "y"}, "mul", [6, 4], [6, 4], {"h2": ([6, 4], f)})
        self.one({"a": "h", "b": "b", "c": "y"}, "gemm", [6, 4], [6, 5], {"b": ([4, 5], f)}, ["b"])
        self.one({"a": "h", "b": "b", "c": "y", "tb": 1, "alpha": 0.5}, "gemm", [6, 4], [6, 5], {"b": ([5, 4], f)}, ["b"])
        for activation in (0, 1, 2, 3):
            self.one({"a": "h", "b": "b", "bias": "c", "c": "y", "activation": activation}, "gemm_bias", [6, 4], [6, 5],
                     {"b": ([4, 5], f), "c": ([5], f)}, ["b", "c"])
        self.one(xy | {"w": "c", "pad": 1}, "conv2d", [6, 2, 5, 5], [6, 3, 5, 5], {"c": ([3, 2, 3, 3], f)}, ["c"])
        self.one({"q": "h", "k": "k", "v": "v", "y": "y", "causal": 1}, "attention", [6, 5, 4], [6, 5, 4],
                 {"k": ([6, 5, 4], f), "v": ([6, 5, 4], f)}, ["k", "v"])
        self.one({"q": "h", "k": "k", "v": "v", "y": "y"}, "attention", [6, 5, 4], [6, 5, 4], {"k": ([3, 5, 4], f), "v": ([3, 5, 4], f)}, ["k", "v"])
        self.one({"q": "h", "k": "k", "v": "v", "y": "y", "causal": 1}, "attention", [6, 2, 5, 4], [6, 2, 5, 4],
                 {"k": ([6, 1, 5, 4], f), "v": ([6, 1, 5, 4], f)}, ["k", "v"])
        self.one({"q": "h", "k": "h", "v": "h", "y": "y", "lse": "l"}, "attention", [6, 5, 4], [6, 5, 4], {"l": ([6, 5], f)}, kept=["l"])
        self.one({"q": "h", "k": "k", "v": "v", "y": "y", "causal": 1, "dim": 4, "length": 2}, "attention", [12, 8], [12, 8],
                 {"k": ([18, 4], f), "v": ([18, 4], f)}, ["k", "v"])
        self.one({"q": "h", "k": "h", "v": "h", "y": "y", "lse": "l", "dim": 4, "length": 2}, "attention", [12, 8], [12, 8], {"l": ([6, 2, 2], f)}, kept=["l"])
        with self.assertRaisesRegex(gantry.Error, 'takes 12 rows of "h" for 3 pieces.*would begin within a sequence'):
            self.one({"q": "h", "k": "h", "v": "h", "y": "y", "dim": 4, "length": 6}, "attention", [12, 8], [12, 8])
        self.one(xy | {"axis": 1}, "transpose", [6, 5, 4], [6, 4, 5])
        self.one(xy | {"axis": 1}, "transpose", [18, 8], [6, 2, 3, 4])
        self.one(xy | {"axis": 1}, "transpose", [6, 2, 3, 4], [18, 8])

    def sums(self, node, more=None):
        buffers = {"x": buffer([6, 4], **{"class": "input"}), "w": buffer([4], **{"class": "input"}), "h": buffer([6, 4]),
                   "loss": buffer([1], output=True), **(more or {})}
        nodes = [{"id": "h", "map": {"h": "x * w"}, "args": {"x": "x", "w": "w", "h": "h"}}, *node]
        self.compare(buffers, nodes, ["w"], ["x"])

    def test_sums(self):
        self.sums([{"id": "l", "kernel": "dot", "args": {"x": "h", "y": "x", "out": "loss"}}])
        self.sums([{"id": "l", "kernel": "reduce_sum", "args": {"x": "h", "out": "loss"}}])
        self.sums([{"id": "l", "kernel": "softmax_xent", "args": {"logits": "h", "labels": "k", "loss": "loss", "scale": 0.1}}],
                  {"k": buffer([6], "i32", **{"class": "input", "split": 1})})
        for formula in ("sum(h * h)", "mean(h * h)", "max(h)", "min(h)"):
            self.sums([{"id": "l", "reduce": {"l": formula}, "args": {"h": "h", "l": "loss"}}])
        square = {"id": "l", "reduce": {"l": "sum(square(m))"}, "args": {"m": "m", "l": "loss"}}
        for formula, shape in (("sum(h, 0)", [4]), ("mean(h, 0)", [4]), ("max(h, 0)", [4]), ("sum(h, 1)", [6]), ("mean(h, -1)", [6, 1]),
                               ("mean(h)", [1, 4]), ("mean(h)", [4]), ("mean(h)", [6, 1]), ("sum(h)", [6, 1]), ("max(h)", [6, 1]), ("mean(h)", [1, 1])):
            self.sums([{"id": "m", "reduce": {"m": formula}, "args": {"h": "h", "m": "m"}}, square], {"m": buffer(shape)})

    def test_norm_over_the_batch(self):
        """Statistics of the batch are those of the whole, not of a piece."""
        self.sums([{"id": "m", "reduce": {"m": "mean(h, 0)"}, "args": {"h": "h", "m": "m"}},
                   {"id": "v", "reduce": {"v": "mean(square(h - m), 0)"}, "args": {"h": "h", "m": "m", "v": "v"}},
                   {"id": "n", "map": {"n": "(h - m) * rsqrt(v + 0.01)"}, "args": {"h": "h", "m": "m", "v": "v", "n": "n"}},
                   {"id": "l", "reduce": {"l": "sum(n * n * n)"}, "args": {"n": "n", "l": "loss"}}],
                  {"m": buffer([4]), "v": buffer([4]), "n": buffer([6, 4])})

    def test_embedding(self):
        buffers = {"ids": buffer([6], "i32", **{"class": "input"}), "t": buffer([4, 3], **{"class": "input"}), "y": buffer([6, 3]),
                   "loss": buffer([1], output=True)}
        self.compare(buffers, [{"id": "e", "kernel": "embedding", "args": {"table": "t", "ids": "ids", "y": "y"}},
                               {"id": "l", "reduce": {"l": "sum(y * y * y)"}, "args": {"y": "y", "l": "loss"}}], ["t"], ["ids"])

    def test_copies(self):
        self.sums([{"id": "c", "copy": {"from": "h", "to": "c"}}, {"id": "l", "reduce": {"l": "sum(c * c)"}, "args": {"c": "c", "l": "loss"}}],
                  {"c": buffer([12, 2])})


class Scaled(unittest.TestCase):
    def test_losses(self):
        """A scale of the loss that follows from what overflows is one of all replicas, slices and stages."""
        x, labels, w = training.data()
        given = {"x": x, "labels": labels} | w
        case, hand = training.CASES[7]
        wanted = training.by_hand(w, x, labels, case["optimizer"], 0.02, **hand)
        text = whole(**case, loss_scale="auto")
        self.assertEqual(json.loads(gantry.parse(text).json())["train"]["loss_scale"], "auto")
        for strategy, devices in (("dp=2,zero=1", 2), ("tp=2", 2), ("dp=2,tp=2,micro=2", 4), ("pp=2,micro=2", 2), ("micro=2,recompute=all", 1)):
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses(text, strategy, given, devices), wanted, rtol=1e-9, atol=1e-9)


@unittest.skipUnless("GANTRY" in os.environ, "no command")
class Used(unittest.TestCase):
    """A model as it is used: `gantry run` and `gantry schedule` with a strategy, without a backward pass."""

    def loss(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([os.environ["GANTRY"], "run", *words, "--output", f"loss={folder}/loss.npy", "--quiet"], check=True, capture_output=True)
            return np.load(f"{folder}/loss.npy")

    def test_losses(self):
        for model, param, strategies in (("mlp", "batch=16", ("dp=2,tp=2", "tp=4", "pp=2,micro=2", "dp=4,zero=3")),
                                         ("gpt", "batch=4", ("dp=2,tp=2", "tp=4", "tp=2,pp=2,micro=2", "micro=4"))):
            wanted = self.loss(ROOT / f"graphs/models/{model}.json", "--devices", "1", "--param", param)
            for strategy in (*strategies, "auto"):
                with self.subTest(model=model, strategy=strategy):
                    seen = self.loss(model, "--devices", "4", "--param", param, "--strategy", strategy, "--effort", "0")
                    np.testing.assert_allclose(seen, wanted, rtol=1e-5)

    def test_plan(self):
        """Weights in slices, and nothing of a training: a GPT's peak falls with tp, and nodes are those of the model."""
        def plan(strategy):
            done = subprocess.run([os.environ["GANTRY"], "schedule", "gpt", "--devices", "4", "--param", "words=4096", "--strategy", strategy, "--effort", "0",
                                   "-o", "-"], check=True, capture_output=True, text=True)
            return {op["node"] for op in json.loads(done.stdout)["ops"] if "node" in op}
        self.assertIn("words[0,3]", plan("tp=4"))
        self.assertFalse([name for name in plan("tp=4") if "grad" in name or "step" in name])

    def test_micro_batches_side_by_side(self):
        """Slices send what one micro-batch has given while they compute the other, so two take less time than one, if communication takes
        long; stages still have an order."""
        def makespan(strategy):
            done = subprocess.run([os.environ["GANTRY"], "schedule", "gpt", "--machine", "hgx-h200-8", "--devices", "8", "--strategy", strategy, "--effort", "0", "--json",
                                   *(word for one in ("batch=64", "tokens=64", "layers=4", "heads=32", "dim=128") for word in ("--param", one))],
                                  check=True, capture_output=True, text=True)
            return json.loads(done.stdout)["makespan_us"]
        self.assertLess(makespan("tp=8,micro=2"), 0.95 * makespan("tp=8"))

    def test_refused(self):
        done = subprocess.run([os.environ["GANTRY"], "run", ROOT / "graphs/saxpy.json", "--devices", "2", "--strategy", "dp=2"], capture_output=True, text=True)
        self.assertIn('a strategy cuts a model by its weights and its batch, and the graph names neither: add "train"', done.stderr)
        done = subprocess.run([os.environ["GANTRY"], "run", "saxpy", "--devices", "2", "--strategy", "dp=2"], capture_output=True, text=True)
        self.assertIn('no file "saxpy", and none of the models that come with Gantry; there are', done.stderr)


@unittest.skipUnless("GANTRY" in os.environ, "no command")
class Auto(unittest.TestCase):
    def table(self, *words):
        done = subprocess.run([os.environ["GANTRY"], "train", *words, "--backend", "sim", "--steps", "1", "--strategy", "auto"], text=True,
                              capture_output=True, check=True)
        rows = re.findall(r"^(\S+=\S+)(?: on \S+)? +([\d.]+) (us|ms|s) ", done.stdout, re.M)
        return [(text, float(time) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]) for text, time, unit in rows], done.stdout

    def test_best_of_all(self):
        """What is taken is at most 5 % slower than the best of all strategies, though those that bounds rule out are not planned: on
        devices that are alike, each planned as long as by default, and on a GPU beside two slower ones, by all policies."""
        for name, words, devices, effort in (("host-2", {"batch": 1024}, (1, 2), -1), ("rtx-mixed-3", {"batch": 96}, (1, 3), 1)):
            rows, out = self.table("mlp", "--machine", name, "--param", f"batch={words['batch']}")
            machine = gantry.Machine.load(ROOT / f"graphs/machines/{name}.json")
            every = [f"{key}={count},micro={micro}{zero}" for count in devices for key in ("dp", "tp", "pp")[:3 if count > 1 else 1]
                     for micro in (1, 2, 4, 8, 16) for zero in ("", ",zero=1")[:2 if count > 1 and key == "dp" else 1]]
            left_out = sum(int(count) for count in re.findall(r"^(\d+) others?", out, re.M))
            self.assertGreaterEqual(len(rows) + left_out, len(every), out) # and numbers of micro-batches between powers of two
            self.assertGreater(left_out, 5, out)
            times = []
            for text in every:
                with contextlib.suppress(gantry.Error): # not divisible so
                    graph = gantry.load(ROOT / "graphs/models/mlp.json", words, devices=max(devices), train=True, strategy=text)
                    times.append(graph.schedule(machine, effort=effort).makespan)
            self.assertLessEqual(rows[0][1], 1.05 * min(times), out)
            predicted = [line for line in out.splitlines() if line.strip().startswith("predicted")]
            self.assertEqual(len(predicted), 1, out)

    def test_numbers_between(self):
        """Two of three unlike devices are the best here, though 2 does not divide 3, and three micro-batches."""
        words = {"layers": 6, "heads": 8, "dim": 48, "tokens": 192, "batch": 24, "words": 480}
        done = subprocess.run([os.environ["GANTRY"], "train", "gpt", "--machine", "rtx-mixed-3", "--backend", "sim", "--steps", "1", "--strategy", "auto",
                               "--effort", "0", *(word for name, value in words.items() for word in ("--param", f"{name}={value}"))],
                              text=True, capture_output=True, check=True)
        chosen = re.findall(r"^(\S+=\S+)(?: on \S+)? +[\d.]+ (?:us|ms|s) ", done.stdout, re.M)[0]
        whole = gantry.Machine.load(ROOT / "graphs/machines/rtx-mixed-3.json")
        def makespan(strategy, devices):
            graph = gantry.load(ROOT / "graphs/models/gpt.json", words, devices=3, train=True, strategy=strategy)
            return graph.schedule(whole.select(devices), effort=0).makespan
        times = {(pp, micro): makespan(f"pp={pp},micro={micro}", pp) for pp in (2, 3) for micro in (2, 3, 4, 6, 8)}
        best = min(times, key=times.get)
        self.assertEqual(best, (2, 3))
        self.assertLess(times[best], 0.95 * min(us for (pp, _), us in times.items() if pp == 3))
        used = math.prod(int(count) for count in re.findall(r"(?:dp|tp|pp)=(\d+)", chosen))
        self.assertLessEqual(makespan(chosen, used), times[best], done.stdout)

    def test_batches_of_five(self):
        """25 sequences can be cut into 5 and 25 alone: none of the powers of two that the list has."""
        words = {"layers": 3, "heads": 4, "dim": 64, "tokens": 128, "batch": 25}
        rows, out = self.table("gpt", "--machine", "a100-pcie-4", "--effort", "0", *(word for name, value in words.items() for word in ("--param", f"{name}={value}")))
        whole = gantry.Machine.load(ROOT / "graphs/machines/a100-pcie-4.json")
        times = {}
        for pp, chunks, micro in itertools.product((1, 2, 3, 4), (1, 2), (1, 5, 25)):
            graph = gantry.load(ROOT / "graphs/models/gpt.json", words, devices=4, train=True, strategy=f"pp={pp},micro={micro},interleave={chunks if pp > 1 else 1}")
            times[pp, chunks, micro] = graph.schedule(whole.select(pp), effort=0).makespan
        self.assertEqual(min(times, key=times.get)[2], 5, times)
        self.assertLess(min(times.values()), 0.7 * min(us for (_, _, micro), us in times.items() if micro == 1))
        self.assertLessEqual(rows[0][1], 1.05 * min(times.values()), out)

    def test_islands(self):
        """The first two of four GPUs are far from each other; the first and the third share a switch, and take less time than all and than one."""
        text = json.loads((ROOT / "graphs/machines/a100-pcie-4.json").read_text())
        turn = {"gpu1": "gpu2", "gpu2": "gpu1"}
        for route in text["routes"]:
            for end in "from", "to":
                names = route[end]
                route[end] = [turn.get(name, name) for name in names] if isinstance(names, list) else turn.get(names, names)
            if {"sw0.up", "sw1.down"} <= set(route.get("via", [])) or {"sw1.up", "sw0.down"} <= set(route.get("via", [])):
                route.update(bandwidth_gbs=0.5, latency_us=100)
        words = {"batch": 4096, "inputs": 384, "hidden": 1536, "classes": 96}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "islands.json"
            path.write_text(json.dumps(text))
            rows, out = self.table("mlp", "--machine", path, "--effort", "0", *(word for name, value in words.items() for word in ("--param", f"{name}={value}")))
            whole = gantry.Machine.load(path)
        times = {}
        for names, strategy in itertools.product(("gpu0", "gpu0,gpu1", "gpu0,gpu2", "gpu1,gpu3", "gpu0,gpu1,gpu2,gpu3"), ("dp", "tp")):
            count = names.count(",") + 1
            graph = gantry.load(ROOT / "graphs/models/mlp.json", words, devices=4, train=True, strategy=f"{strategy}={count}")
            times[names, strategy] = graph.schedule(whole if count == 4 else whole.select(f"id:{names}"), effort=0).makespan
        best = min(times, key=times.get)
        self.assertIn(best[0], ("gpu0,gpu2", "gpu1,gpu3"), times)
        self.assertLess(times[best], 0.9 * min(us for (names, _), us in times.items() if names not in ("gpu0,gpu2", "gpu1,gpu3")), times)
        self.assertLessEqual(rows[0][1], 1.001 * times[best], out)
        self.assertRegex(out, r"(?m)^\S+ on gpu0,gpu2 ")
        self.assertRegex(out, r"(?m)^  gpu2 ran [1-9]")

    def test_chunks(self):
        """A pipeline that is far behind with one chunk of layers a device is the best with two, since these share out the work of experts
        evenly, and without micro-batches. Chunks were tried of the best strategy alone, if that was a pipeline."""
        def model(experts):
            rows = {name: {"dtype": "f32", "shape": ["batch", width], "split": "parts"} for e in range(experts)
                    for name, width in ((f"z{e}", "hidden"), (f"a{e}", "hidden"), (f"o{e}", "inputs"), (f"y{e}", "inputs"))}
            weights = {f"{name}{e}": {"dtype": "f32", "shape": shape, "class": "const", "init": {"normal": {"seed": e + 3, "deviation": 0.1}}}
                       for e in range(experts) for name, shape in (("up", ["inputs", "hidden"]), ("down", ["hidden", "inputs"]))}
            nodes = [node for e in range(experts) for node in (
                {"id": f"up{e}[i]", "kernel": "gemm", "args": {"a": "x[i]", "b": f"up{e}", "c": f"z{e}[i]"}},
                {"id": f"act{e}[i]", "kernel": "relu", "args": {"x": f"z{e}[i]", "y": f"a{e}[i]"}},
                {"id": f"down{e}[i]", "kernel": "gemm", "args": {"a": f"a{e}[i]", "b": f"down{e}", "c": f"o{e}[i]"}},
                {"id": f"mix{e}[i]", "map": {"y": "x + o"}, "args": {"x": f"y{e - 1}[i]" if e else "x[i]", "o": f"o{e}[i]", "y": f"y{e}[i]"}})]
            nodes.append({"id": "loss[i]", "reduce": {"l": "sum(square(y))"}, "args": {"y": f"y{experts - 1}[i]", "l": "loss"}, "access": {"l": "sum"}})
            return {"gantry": 1, "name": "experts", "params": {"batch": 1920, "inputs": 2048, "hidden": 2048, "parts": "devices"},
                    "train": {"loss": "loss", "weights": ["up*", "down*"], "optimizer": "adamw", "learning_rate": 0.01},
                    "buffers": {"x": {"dtype": "f32", "shape": ["batch", "inputs"], "split": "parts", "class": "const", "init": 1}, **rows, **weights,
                                "loss": {"dtype": "f32", "shape": [1]}},
                    "nodes": [{"for": {"i": "parts"}, "nodes": nodes}]}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "experts.json"
            path.write_text(json.dumps(model(6)))
            rows, out = self.table(path, "--machine", "h200-8", "--effort", "0")
            whole, best = gantry.Machine.load(ROOT / "graphs/machines/h200-8.json"), {}
            for cut, chunks, micro in itertools.product(("dp=4,pp=2", "dp=2,tp=2,pp=2", "tp=8", "dp=8", "dp=2,pp=4"), (1, 2, 4), (1, 2)):
                if chunks > 1 and "pp" not in cut:
                    continue
                graph = gantry.load(path, devices=8, train=True, strategy=f"{cut},interleave={chunks},micro={micro}")
                best[cut, chunks, micro] = graph.schedule(whole, effort=0).makespan
        least = min(best, key=best.get)
        self.assertGreater(least[1], 1, best)
        self.assertLess(best[least], 0.9 * min(us for (_, chunks, _), us in best.items() if chunks == 1))
        self.assertLessEqual(rows[0][1], 1.05 * best[least], out)

    def test_some_of_many(self):
        """Six of eight devices that are alike take an eighth less than any of their divisors here."""
        words = {"batch": 120, "inputs": 5040, "hidden": 9000, "classes": 60}
        rows, out = self.table("mlp", "--machine", "h200-8", "--effort", "0", *(word for name, value in words.items() for word in ("--param", f"{name}={value}")))
        whole = gantry.Machine.load(ROOT / "graphs/machines/h200-8.json")
        times = {}
        for count in (1, 2, 3, 4, 5, 6, 8): # 7 does not divide the columns
            graph = gantry.load(ROOT / "graphs/models/mlp.json", words, devices=8, train=True, strategy=f"tp={count}")
            times[count] = graph.schedule(whole.select(count), effort=0).makespan
        self.assertLess(min(times.values()), 0.95 * min(times[count] for count in (1, 2, 4, 8)))
        self.assertLessEqual(rows[0][1], 1.001 * min(times.values()), out)

    def test_fewer_than_half(self):
        """Three of eight devices are the best of all replicas here: 15 sequences are for 3, 5 or 15."""
        words = {"layers": 5, "heads": 5, "dim": 32, "tokens": 64, "batch": 15, "words": 960}
        rows, out = self.table("gpt", "--machine", "h200-8", "--effort", "0", *(word for name, value in words.items() for word in ("--param", f"{name}={value}")))
        whole = gantry.Machine.load(ROOT / "graphs/machines/h200-8.json")
        times = {}
        for count in 1, 3, 5:
            graph = gantry.load(ROOT / "graphs/models/gpt.json", words, devices=8, train=True, strategy=f"dp={count}")
            times[count] = graph.schedule(whole.select(count), effort=0).makespan
        self.assertEqual(min(times, key=times.get), 3, times)
        self.assertLessEqual(rows[0][1], 1.001 * times[3], out)

    def test_equals(self):
        """Of strategies that take equally long it is the one on fewer devices, though another has less in each memory: a node that takes no
        time is on a device of its own."""
        gpus = [{"id": f"gpu{i}", "kind": "gpu", "type": "gpu", "memory": f"mem{i}", "lanes": 1, "copy_engines": 1, "gflops": {"f32": 1000},
                 "bandwidth_gbs": 100, "launch_us": 0, "ordinal": i} for i in range(2)]
        machine = {"gantry_machine": 1, "name": "alike", "source": "declared: launches take no time", "devices": gpus, "resources": {},
                   "memories": [{"id": "host", "capacity": "8GiB", "pinned": True}, *({"id": f"mem{i}", "capacity": "1GiB"} for i in range(2))],
                   "routes": [{"from": "host", "to": ["mem0", "mem1"], "both": True, "latency_us": 10, "bandwidth_gbs": 1}]}
        cost, const = {"flops": 0, "bytes": 0}, {"class": "const", "init": 1}
        model = {"gantry": 1, "name": "beside", "train": {"loss": "loss", "weights": ["w"], "learning_rate": 0.1, "batch": ["x", "e"]},
                 "buffers": {"x": buffer([8, 4], "f32", **const), "w": buffer([1, 4], "f32", **const), "y": buffer([8, 4], "f32"),
                             "loss": buffer([1], "f32", output=True), "e": buffer([8, 4096], "f32", **const), "side": buffer([8, 4096], "f32")},
                 "nodes": [{"id": "y", "map": {"y": "x * w"}, "args": {"x": "x", "w": "w", "y": "y"}, "on": 0, "cost": cost | {"time_us": 10}},
                           {"id": "loss", "reduce": {"l": "sum(square(y))"}, "args": {"y": "y", "l": "loss"}, "on": 0, "cost": cost | {"time_us": 10}},
                           {"id": "side", "map": {"y": "e + 1"}, "args": {"e": "e", "y": "side"}, "cost": cost | {"time_us": 0}}]}
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "machine.json").write_text(json.dumps(machine))
            (folder / "model.json").write_text(json.dumps(model))
            out = subprocess.run([os.environ["GANTRY"], "schedule", folder / "model.json", "--machine", folder / "machine.json", "--effort", "0",
                                  "--strategy", "auto"], text=True, capture_output=True, check=True).stdout
        rows = {text: (time, float(peak)) for text, time, peak in re.findall(r"^(\S+=\S+) +([\d.]+ us) +([\d.]+) KiB", out, re.M)}
        self.assertEqual(next(iter(rows)), "dp=1", out)
        self.assertEqual(rows["pp=2"][0], rows["dp=1"][0], out)
        self.assertLess(rows["pp=2"][1], rows["dp=1"][1], out)

    def test_room(self):
        """What does not fit is said, and something that does is taken."""
        rows, out = self.table("mlp", "--devices", "4", "--param", "batch=64", "--param", "inputs=1024", "--param", "hidden=1024",
                               "--max-memory", ",".join(f"mem{i}=10MiB" for i in range(4)))
        self.assertIn("does not fit the memories", out)
        self.assertRegex(rows[0][0], "zero=1|tp=")


class Refused(unittest.TestCase):
    def check(self, strategy, *texts, text=None, devices=0):
        with self.subTest(strategy=strategy, texts=texts):
            with self.assertRaises(gantry.Error) as caught:
                gantry.parse(text or whole(**training.CASES[0][0]), train=True, strategy=strategy, devices=devices)
            for part in texts:
                self.assertIn(part, str(caught.exception))
            self.assertLess(len(caught.exception.text), 500, "the text was cut off")

    def test_texts(self):
        self.check("dq=2", 'there is no "dq" (did you mean "dp"?)', "dp, tp, pp, interleave, micro, zero, ordered and recompute")
        self.check("", 'there is no ""')
        self.check("dp=2,", 'there is no ""', "leave the comma out")
        self.check("dp=2,dp=4", '"dp" is there twice, as "dp=2" and as "dp=4"; give it once')
        self.check("auto", '"auto" is for the command to choose, and stands alone (--strategy auto)')
        self.check("micro=2,auto", '"auto" is for the command to choose, and stands alone')
        self.check("Auto", 'there is no "Auto" (did you mean "auto"?)', '"auto" alone')
        self.check("dp", '"dp" is ""', "from 1 to 65536", '"dp=2"')
        self.check("dp=two", '"dp" is "two"; give a whole number from 1 to 65536')
        self.check("dp=-1", '"dp" is "-1"; give a whole number from 1 to 65536')
        self.check("ordered=yes", '"ordered" is "yes"; give a whole number from 0 to 1, such as "ordered=1"')
        self.check("dp=0", "dp is 0; 1 to 65536")
        self.check("zero=4", 'zero is 4; 0 to 3 are allowed, such as "zero=2"')
        self.check("ordered=2", 'ordered is 2; 0 to 1 are allowed, such as "ordered=1"')
        for alone in "zero=2", "zero=2,micro=2", "pp=2,zero=2":
            self.check(alone, "zero is 2 and there is one replica", '"dp=2,zero=2"')
        self.check("interleave=2", "interleave is 2 and there are no stages", "pp=2,interleave=2")
        self.check("pp=2,interleave=0", "interleave is 0; 1 to 65536")
        self.check("pp=60", "pp=60 and interleave=1 are 60 stages", "a pp and an interleave whose product is at most")
        self.check("pp=2,interleave=30", "pp=2 and interleave=30 are 60 stages")
        self.check("tp=2,pp=8", "pp=8 and interleave=1 are 8 stages", "has 7 nodes", "whose product is at most 7") # of a node in slices all are in one stage
        self.check("dp=60000,micro=60000", "more than 65536 devices, stages or pieces")
        self.check("dp=2,pp=2", "for 4 devices, and there are 2", devices=2)

    def test_batches(self):
        self.check("dp=5", "24 rows", "for 5 pieces", "dp=5, micro=1, tp=1")
        unknown = whole(**training.CASES[0][0])
        unknown["train"].pop("batch")
        self.check("dp=2", "nothing says which buffers are the batch", '"batch": ["x", "labels"]', text=unknown)
        near = whole(**training.CASES[0][0])
        near["train"]["batch"] = ["y2"]
        self.check("dp=2", 'no buffer "y2"', "of the batch", text=near)
        parts = training.network("f64", 4, False, **training.CASES[0][0])
        self.check("dp=3", "is split into 4 parts", "are 3 pieces", text=parts)
        auto = whole(**training.CASES[0][0])
        auto["buffers"]["x"]["split"] = {"auto": 2}
        self.check("dp=2", "has automatic parts", text=auto)

    def test_nodes(self):
        text = whole(**training.CASES[0][0])
        text["buffers"]["t"] = buffer([6, 24])
        text["nodes"].append({"id": "turn", "kernel": "transpose", "args": {"x": "x", "y": "t"}})
        self.check("dp=2", 'node "turn"', "takes rows of 2 pieces", 'with "for"', text=text)
        text["nodes"][-1]["after"] = ["fc1"]
        self.check("dp=2", 'node "fc1"', "takes rows of 2 pieces", text=text)


if __name__ == "__main__":
    unittest.main()
