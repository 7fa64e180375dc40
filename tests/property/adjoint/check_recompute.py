# SPDX-License-Identifier: Apache-2.0
"""recompute: what is trained with activations computed again is, to the bit, what is trained with them kept, and NumPy's. What is
computed again, where it comes, and how many bytes of memory that saves, counted by hand."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import check_gpt as gpt
import check_strategy as spread
import check_training as training
from differences import gantry, np, place
from suite import ROOT

MODELS = ROOT / "graphs/models"
ONE = {"batch": 1, "layers": 8, "tokens": 128}  # a GPT of one sequence


def trained(path, strategy, devices, steps=6, **params):
    graph = gantry.load(path, params, devices=devices, train=True, strategy=strategy)
    run = graph.schedule(devices, effort=0).run(backend="host")
    return [run()["loss"].tobytes() for _ in range(steps)]


def peak(graph, devices=1, **how):
    return max(graph.schedule(devices, effort=0, **how).report()["peak_bytes"].values())


def with_dropout(folder):
    """The GPT of the repository, with dropout in each layer."""
    shutil.copytree(MODELS, folder, dirs_exist_ok=True)
    path = pathlib.Path(folder) / "blocks/gpt.json"
    block = json.loads(path.read_text())
    block["buffers"]["dropped"] = dict(block["buffers"]["n1"])
    (node,) = [node for node in block["nodes"] if node["id"] == "x2"]
    (name,) = [name for name, arg in node["args"].items() if arg == "o"]
    node["args"][name] = "dropped"
    block["nodes"].insert(block["nodes"].index(node), {"id": "drop", "kernel": "dropout", "args": {"x": "o", "y": "dropped", "p": 0.3, "seed": 11}})
    path.write_text(json.dumps(block))
    return pathlib.Path(folder) / "gpt.json"


class Values(unittest.TestCase):
    def test_bits(self):
        cases = {"mlp": ["recompute=all", "micro=4,recompute=all", "dp=2,micro=2,zero=1,recompute=all", "pp=2,micro=4,recompute=all"],
                 "cnn": ["recompute=all", "micro=2,recompute=1"],
                 "gpt": ["recompute=all", "recompute=1", "micro=2,recompute=all", "dp=2,zero=3,recompute=all", "pp=2,micro=2,recompute=all",
                         "tp=2,recompute=all"]}
        for model, strategies in cases.items():
            for strategy in strategies:
                devices = 2 if re.search("(dp|pp|tp)=2", strategy) else 1
                with self.subTest(model=model, strategy=strategy):
                    kept = re.sub(",?recompute=[a-z0-9]+", "", strategy) or "dp=1"
                    path = MODELS / f"{model}.json"
                    params = {"batch": 2} if model == "gpt" else {"batch": 16, "parts": 1} if model == "mlp" else {"batch": 16}
                    self.assertEqual(trained(path, strategy, devices, **params), trained(path, kept, devices, **params))

    def test_dropout(self):
        """What is dropped is what was dropped, also in pieces; and something is."""
        with tempfile.TemporaryDirectory() as folder:
            path = with_dropout(folder)
            for strategy, devices in (("dp=1", 1), ("micro=2", 1), ("pp=2,micro=2", 2)):
                with self.subTest(strategy=strategy):
                    self.assertEqual(trained(path, strategy + ",recompute=all", devices), trained(path, strategy, devices))
            self.assertNotEqual(trained(path, "recompute=all", 1), trained(MODELS / "gpt.json", "dp=1", 1))

    def test_numpy(self):
        """100 steps of the network of check_training and of the GPT, by hand in float64."""
        case, hand = training.CASES[7]
        x, labels, w = training.data()
        wanted = training.by_hand(w, x, labels, case["optimizer"], 0.02 if isinstance(case["learning_rate"], str) else case["learning_rate"], **hand)
        given = {"x": x, "labels": labels} | w
        for strategy, devices in (("recompute=all", 1), ("dp=2,micro=3,zero=1,recompute=all", 2), ("pp=2,micro=4,recompute=1", 2)):
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(spread.losses(spread.whole(**case), strategy, given, devices), wanted, rtol=1e-9, atol=1e-9)

    def test_gpt(self):
        wanted, seen = gpt.compare([("recompute=all", 1), ("micro=4,recompute=1", 1), ("dp=2,tp=2,zero=1,recompute=all", 4),
                                    ("tp=2,pp=2,micro=2,recompute=all", 4)])
        for strategy, losses in seen.items():
            with self.subTest(strategy=strategy):
                np.testing.assert_allclose(losses, wanted, rtol=1e-9, atol=1e-9)


class Nodes(unittest.TestCase):
    TEXT = json.loads((MODELS / "gpt.json").read_text())

    def gpt(self, strategy, devices=0, **params):
        graph = gantry.parse(self.TEXT, {"batch": 2, "layers": 4, **params}, folder=MODELS, devices=devices, train=True, strategy=strategy)
        return {node["id"]: node for node in json.loads(graph.json())["nodes"]}

    @staticmethod
    def regions(node):
        return [arg for arg in (node.get("args") or node.get("copy") or {}).values() if isinstance(arg, str)]

    def test_copies(self):
        """A copy is what the node was, on the same device, with what is made again in place of what was kept."""
        nodes = self.gpt("pp=2,micro=2,recompute=all", 2)
        copies = [name for name in nodes if name.endswith(".again")]
        self.assertTrue(copies)
        for name in copies:
            old = {key: value for key, value in nodes[name.removesuffix(".again")].items() if key != "id"}
            new = {key: value for key, value in nodes[name].items() if key not in ("id", "after")}
            self.assertEqual(json.loads(json.dumps(new).replace(".again", "")), old, name)

    def test_nothing_of_a_layer_is_kept(self):
        """The backward pass reads nothing that only nodes of one layer use but what is made again, for as many layers as are said."""
        for strategy, layers in (("recompute=all", 4), ("recompute=3", 3), ("recompute=1", 1), ("dp=1", 0)):
            nodes = self.gpt(strategy)
            back = [(name, region) for name, node in nodes.items() if ".grad" in name for region in self.regions(node)]
            kept = {int(m[1]) for _, region in back for m in [re.match(r"layer\.(\d)\.\d\.\w+$", region)] if m}
            self.assertEqual(kept, set(range(layers, 4)), strategy)
            again = {int(m[1]) for name in nodes for m in [re.match(r"layer\[(\d),\d\].*\.again$", name)] if m}
            self.assertEqual(again, set(range(layers)), strategy)

    def test_layers_of_stages(self):
        """So many layers of each stage."""
        nodes = self.gpt("pp=2,micro=2,recompute=1", 2)
        again = {(int(m[1]), place(node)) for name, node in nodes.items() for m in [re.match(r"layer\[(\d),\d\].*\.again$", name)] if m}
        self.assertEqual({device for _, device in again}, {0, 1})
        for device in (0, 1):
            on = sorted(layer for layer, where in again if where == device)
            first = min(int(m[1]) for name, node in nodes.items() for m in [re.match(r"layer\[(\d),\d\]\.\w+(\[\d\])?$", name)]
                        if m and place(node) == device)
            self.assertEqual(set(on), {first})

    def test_nothing_is_wasted(self):
        """Each copy makes something that the backward pass, or another copy, reads; none comes before its layer's adjoint is there."""
        nodes = self.gpt("recompute=all")
        read = {region for name, node in nodes.items() if ".grad" in name or name.endswith(".again") for region in self.regions(node)[:]}
        for name, node in nodes.items():
            if name.endswith(".again"):
                self.assertTrue(any(region.endswith(".again") and sum(region in self.regions(other) for other in nodes.values()) > 1
                                    for region in self.regions(node)), name)
        self.assertTrue(read)
        order = list(nodes)
        for layer in range(3):
            begin = nodes[f"layer[{layer},0].norm1.again"]
            self.assertTrue(any(name.startswith(f"layer[{layer + 1},0]") for name in begin["after"]))
            for name in begin["after"]:
                self.assertLess(order.index(name), order.index(begin["id"]))

    def test_sums_are_kept(self):
        """What slices add up, by sending it, is not added up again."""
        nodes = self.gpt("tp=2,recompute=all", 2)
        again = [name for name in nodes if name.endswith(".again")]
        self.assertTrue(again)
        self.assertFalse([name for name in again if "sum" in json.dumps(nodes[name].get("access", {}))])
        self.assertIn("layer[0,0].up[0].again", nodes)
        self.assertNotIn("layer[0,0].o[0].again", nodes)


class Memory(unittest.TestCase):
    def graph(self, strategy, **params):
        return gantry.load(MODELS / "gpt.json", ONE | params, devices=1, train=True, strategy=strategy)

    def test_bytes(self):
        """Seven of eight layers' activations less, and no more than the eighth's. Of a layer the backward pass wants what norms, products,
        attention and the activation read: x2 and n1, n2 of 128 x 64 floats, q, k, v and a of as many, inner and act of 128 x 256."""
        rows = ONE["tokens"] * 64 * 4
        layer = 3 * rows + 4 * rows + 2 * 4 * rows
        saved = peak(self.graph("dp=1")) - peak(self.graph("recompute=all"))
        self.assertGreaterEqual(saved, 7 * layer)
        self.assertLessEqual(saved, 8 * layer + 4 * rows)
        self.assertGreater(peak(self.graph("recompute=4")), peak(self.graph("recompute=all")))
        self.assertLess(peak(self.graph("recompute=4")), peak(self.graph("dp=1")))

    def test_fits(self):
        """A GPT that does not fit 8 MiB is planned, and trained, in them."""
        tight = {"max_memory": "mem0=8MiB", "spill": "off", "effort": 0}
        with self.assertRaisesRegex(gantry.Error, "dev0 needs"):
            self.graph("dp=1").schedule(1, **tight)
        losses = []
        for strategy, how in (("recompute=all", tight), ("dp=1", {"effort": 0})):
            schedule = self.graph(strategy).schedule(1, **how)
            run = schedule.run(backend="host")
            losses.append([run()["loss"].tobytes() for _ in range(3)])
            if how is tight:
                self.assertLessEqual(schedule.report()["peak_bytes"]["mem0"], 8 << 20)
        self.assertEqual(*losses)

    def test_without_layers(self):
        """A chain that nothing cuts into layers is cut where that saves most: about the square root of its activations stays."""
        text = spread.chain(24, 4096, dtype="f32")
        kept = gantry.parse(text, train=True, devices=1, strategy="dp=1")
        again = gantry.parse(text, train=True, devices=1, strategy="recompute=all")
        self.assertLess(peak(again), 0.45 * peak(kept))
        runs = [graph.schedule(1, effort=0).run(backend="host") for graph in (kept, again)]
        self.assertEqual(*[[run()["loss"].tobytes() for _ in range(4)] for run in runs])

    def test_cuts(self):
        """Of a chain of random widths no cut into segments, of all there are, keeps and makes at once much less."""
        rng = np.random.default_rng(5)
        for _ in range(12):
            widths = [int(n) for n in rng.integers(1, 40, 9)]
            nodes = spread.nodes_of(spread.chain(8, 64, widths, "f32"), "recompute=all")
            copies = {name.removesuffix(".again") for name in nodes if name.endswith(".again")}
            order = [name for i in range(8) for name in (f"fc{i}", f"act{i}")] + ["loss"]
            made = [64 * 4 * w for w in widths[1:] for _ in range(2)] + [0]
            over = [*made[:-1], 0]

            def cost(ends):
                begins = [0, *[end + 1 for end in ends[:-1]]]
                return sum(over[end] for end in ends[:-1]) + max(sum(made[b:e + 1]) for b, e in zip(begins, ends))
            inner = range(len(order) - 1)
            best = min(cost([*(i for i in inner if cuts >> i & 1), len(order) - 1]) for cuts in range(1 << len(inner)))
            last = max((order.index(name) for name in copies), default=-1)  # no copies of the last segment, nor of what is cut alone
            ends = [i for i in inner if order[i] not in copies and i <= last + 1]
            mine = min(cost([*ends, len(order) - 1]), cost([*(i for i in inner if order[i] not in copies), len(order) - 1]))
            self.assertLessEqual(mine, 1.1 * best, widths)


@unittest.skipUnless("GANTRY" in os.environ, "no command")
class Auto(unittest.TestCase):
    def run_it(self, strategy, *words):
        done = subprocess.run([os.environ["GANTRY"], "train", "gpt", "--devices", "1", "--steps", "2", "--backend", "host", "--effort", "0", "--strategy",
                               strategy, *[word for name, value in ONE.items() for word in ("--param", f"{name}={value}")], *words],
                              text=True, capture_output=True)
        return done, dict(re.findall(r"^(\S+=\S+) +(\S+ .?s) ", done.stdout, re.M)), re.findall(r"loss (\S+)", done.stdout)

    def test_layers(self):
        """As few layers as have to be: one fewer does not fit."""
        done, rows, losses = self.run_it("recompute=auto", "--max-memory", "mem0=8MiB", "--spill", "off")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"dp=1 +does not fit")
        (name,) = rows
        layers = int(name.removeprefix("recompute="))
        tight = {"max_memory": "mem0=8MiB", "spill": "off", "effort": 0}
        graphs = {n: gantry.load(MODELS / "gpt.json", ONE, devices=1, train=True, strategy=f"recompute={n}") for n in (layers - 1, layers)}
        graphs[layers].schedule(1, **tight)
        with self.assertRaises(gantry.Error):
            graphs[layers - 1].schedule(1, **tight)
        free, rows, same = self.run_it("recompute=auto")
        self.assertEqual((rows, same), ({}, losses), free.stdout)
        self.assertNotIn("does not fit", free.stdout)

    def test_nothing_fits(self):
        done, _, _ = self.run_it("recompute=auto", "--max-memory", "mem0=2MiB", "--spill", "off")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("gpt.json fits the memories of host-1", done.stderr)

    def test_all_strategies(self):
        """Where nothing else fits, layers are computed again, and the table has it."""
        done, rows, _ = self.run_it("auto", "--max-memory", "mem0=8MiB", "--spill", "off")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(rows and all("recompute=" in name for name in rows), done.stdout)
        self.assertRegex(done.stdout, r"dp=1 +does not fit")
        done, rows, _ = self.run_it("auto")
        self.assertFalse([name for name in rows if "recompute" in name], done.stdout)


class Refused(unittest.TestCase):
    def test_texts(self):
        text = spread.whole(**training.CASES[0][0])
        for strategy, *parts in (("recompute=some", '"recompute" is "some"', '"all", "none" or "auto"'), ("dp=all", '"dp" is "all"'),
                                 ("recompute=auto", "which number fits", "recompute=all"), ("recompute=-1", '"recompute" is "-1"'),
                                 ("recompute=", '"recompute" is ""'), ("recompute=2,recompute=all", "is there twice")):
            with self.subTest(strategy=strategy), self.assertRaises(gantry.Error) as caught:
                gantry.parse(text, train=True, strategy=strategy)
            for part in parts:
                self.assertIn(part, str(caught.exception))
        gantry.parse(text, train=True, strategy="recompute=none")


if __name__ == "__main__":
    unittest.main()
