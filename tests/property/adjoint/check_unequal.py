# SPDX-License-Identifier: Apache-2.0
"""Replicas on devices that are not alike: the batch is cut by their speed, so a step is predicted to be shorter, and what is learnt is the
same, against NumPy in float64, written by hand."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import check_gpt as gpt
import check_strategy as strategies
import check_training as training
from differences import buffer, gantry, np
from suite import ROOT

INPUT = {"class": "input"}


def host(folder, speeds):
    """Virtual devices of a CPU, so many times as fast as those of host-8."""
    machine = json.loads((ROOT / "graphs/machines/host-8.json").read_text())
    machine["devices"] = machine["devices"][:len(speeds)]
    for device, speed in zip(machine["devices"], speeds):
        device["gflops"] = {dtype: speed * flops for dtype, flops in device["gflops"].items()}
        device["bandwidth_gbs"] *= speed
    return written(folder, machine)


def gpus(folder, speeds):
    """GPUs that reach each other directly."""
    ids = [f"gpu{i}" for i in range(len(speeds))]
    made = {"gantry_machine": 1, "name": "unlike", "memories": [{"id": "host", "capacity": "64GiB", "pinned": True}, *({"id": at, "capacity": "24GiB"} for at in ids)],
            "devices": [{"id": at, "kind": f"kind{i}", "type": "gpu", "memory": at, "lanes": 4, "copy_engines": 2, "gflops": {"f32": 1e4 * speeds[i], "f64": 1e4 * speeds[i]},
                         "bandwidth_gbs": 1000 * speeds[i], "launch_us": 1, "ordinal": i} for i, at in enumerate(ids)],
            "routes": [{"from": a, "to": b, "latency_us": 2, "bandwidth_gbs": 25 if "host" in (a, b) else 300} for a in ["host", *ids] for b in ["host", *ids] if a != b]}
    return written(folder, made)


def written(folder, machine):
    path = pathlib.Path(folder) / "machine.json"
    path.write_text(json.dumps(machine))
    return gantry.Machine(path)


def parts(schedule, name):
    return np.diff(json.loads(schedule.json())["bounds"][name]).tolist()


def by_hand(w, x, steps, rate):
    """Losses of the chain of check_strategy: the mean of the squares of the last of tanh(... tanh(x w0) w1 ...)."""
    w, losses = [one.copy() for one in w], []
    for _ in range(steps):
        h = [x]
        for one in w:
            h.append(np.tanh(h[-1] @ one))
        losses.append(np.mean(h[-1] ** 2))
        d = 2 * h[-1] / h[-1].size
        for i in reversed(range(len(w))):
            z = d * (1 - h[i + 1] ** 2)
            d, w[i] = z @ w[i].T, w[i] - rate * h[i].T @ z
    return losses


class Unequal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def losses(self, text, strategy, machine, given, batch, steps, **how):
        schedule = gantry.parse(text, train=True, strategy=strategy, devices=machine.workers).schedule(machine, effort=0, **how)
        run = schedule.run(backend="host")
        seen = [float(run(**given)["loss"][0])] + [float(run()["loss"][0]) for _ in range(steps - 1)]
        run.close()
        return seen, parts(schedule, batch)

    def test_step_is_shorter(self):
        """One GPU half as fast as the other: a step takes two thirds of the time of equal parts, and a bit for what does not depend on rows."""
        text = strategies.chain(rows=6144, widths=[512] * 9)
        for speeds, strategy, least, most in (((1, 0.5), "dp=2", 0.66, 0.75), ((1, 0.5), "dp=2,micro=2", 0.66, 0.75), ((1, 0.5), "dp=2,zero=1", 0.66, 0.75),
                                              ((0.25, 1, 1), "dp=3", 0.33, 0.5), ((1, 1), "dp=2", 1, 1)):
            machine = gpus(self.folder, speeds)
            graph = gantry.parse(text, train=True, strategy=strategy, devices=len(speeds))
            took = {how: graph.schedule(machine, effort=0, **({"balance": how} if how else {})) for how in (None, "static", "dynamic")}
            self.assertEqual(took[None].summary.makespan_us, min(took[how].summary.makespan_us for how in ("static", "dynamic")), "equal parts are left out only where they cannot win")
            ratio = took[None].summary.makespan_us / took["static"].summary.makespan_us
            with self.subTest(speeds=speeds, strategy=strategy):
                self.assertTrue(least <= ratio <= most, ratio)
                rows = parts(took[None], "h0")
                self.assertEqual(sum(rows), 6144)
                if len(set(speeds)) == 1:
                    self.assertEqual(len(set(rows)), 1, "devices that are alike have equal parts")

    def test_machine_of_three(self):
        """A desktop whose GPUs are not alike (graphs/machines/rtx-mixed-3.json)."""
        text = strategies.chain(4, rows=12288, widths=[1024] * 5, dtype="f32")
        graph = gantry.parse(text, train=True, strategy="dp=3", devices=3)
        by_speed, equal = (graph.schedule("rtx-mixed-3", effort=0, **how).summary.makespan_us for how in ({}, {"balance": "static"}))
        self.assertLess(by_speed, 0.95 * equal)

    def test_losses_of_random_chains(self):
        rng = np.random.default_rng(31)
        uneven = 0
        for turn in range(24):
            dp, micro, zero = int(rng.integers(2, 5)), int(rng.integers(1, 3)), int(rng.integers(0, 4))
            layers = int(rng.integers(1, 4))
            widths, rows = [int(n) for n in rng.integers(1, 40, layers + 1)], dp * micro * int(rng.integers(2, 20))
            speeds = rng.choice([0.1, 0.3, 0.5, 1, 2], dp)
            text = strategies.chain(layers, rows, widths)
            w = [rng.normal(size=widths[i:i + 2]) * 0.5 for i in range(layers)]
            x = rng.normal(size=(rows, widths[0]))
            for name in ("h0", *(f"w{i}" for i in range(layers))):
                text["buffers"][name].pop("init", None)
                text["buffers"][name] |= INPUT
            given = {"h0": x} | {f"w{i}": one for i, one in enumerate(w)}
            strategy = f"dp={dp},micro={micro},zero={zero}"
            with self.subTest(turn=turn, strategy=strategy, speeds=speeds, rows=rows, widths=widths):
                seen, cut = self.losses(text, strategy, host(self.folder, speeds), given, "h0", 8, balance="dynamic")
                np.testing.assert_allclose(seen, by_hand(w, x, 8, 0.1), rtol=1e-9)
                uneven += max(cut) > min(cut) + 1
        self.assertGreater(uneven, 12, "most batches were cut by speed")

    def test_losses_of_networks(self):
        """Losses by classes, clipped gradients and schedules; in f32 within 1e-5."""
        x, labels, w = training.data()
        for dtype, most in (("f64", 1e-9), ("f32", 1e-5)):
            real = np.dtype(dtype.replace("f", "float"))
            given = {"x": x.astype(real), "labels": labels} | {name: value.astype(real) for name, value in w.items()}
            for case, hand in training.CASES[1::2]:
                rate = 0.02 if isinstance(case["learning_rate"], str) else case["learning_rate"]
                want = training.by_hand({name: given[name] for name in training.SHAPES}, given["x"].astype(np.float64), labels, case["optimizer"], rate, **hand)
                with self.subTest(dtype=dtype, case=case):
                    seen, cut = self.losses(strategies.whole(dtype, **case), "dp=2,micro=2", host(self.folder, (1, 0.3)), given, "x", training.STEPS, balance="dynamic")
                    np.testing.assert_allclose(seen, want, rtol=most, atol=most)
                    self.assertGreater(max(cut), min(cut) + 1)

    def by_parts(self, factors=(1, 1), mean=False):
        """The file has two parts, a node for each."""
        text = strategies.chain(1, 24)
        for name in ("h0", "z1", "h1"):
            text["buffers"][name]["split"] = 2
        text["nodes"] = []
        for i, factor in enumerate(factors):
            text["nodes"] += [{"id": f"fc{i}", "kernel": "gemm", "args": {"alpha": factor, "a": f"h0[{i}]", "b": "w0", "c": f"z1[{i}]"}},
                              {"id": f"act{i}", "map": {"h": "tanh(z)"}, "args": {"z": f"z1[{i}]", "h": f"h1[{i}]"}},
                              {"id": f"loss{i}", "reduce": {"l": "mean(square(h))"}, "args": {"h": f"h1[{i}]", "l": f"of_part[{i}]"}} if mean else
                              {"id": f"loss{i}", "reduce": {"l": "sum(square(h) / 384)"}, "access": {"l": "sum"}, "args": {"h": f"h1[{i}]", "l": "loss"}}]
        if mean:
            text["buffers"]["of_part"] = buffer([2], split=2)
            text["nodes"].append({"id": "loss", "reduce": {"l": "mean(p)"}, "args": {"p": "of_part", "l": "loss"}})
        return text

    def dropping(self, second):
        """The file has two parts, and drops elements of both: `second` is the number of the first one of the second part."""
        text = self.by_parts()
        text["buffers"]["d"] = buffer([24, 16], split=2)
        for i in range(2):
            text["nodes"][3 * i]["args"]["a"] = f"d[{i}]"
        text["nodes"] = [{"id": f"drop{i}", "kernel": "dropout", "args": {"p": 0.5, "seed": 3, "first": i * second, "x": f"h0[{i}]", "y": f"d[{i}]"}} for i in range(2)] + text["nodes"]
        return text

    def test_gpt(self):
        """Positions, causal attention with heads side by side, and a buffer of what all layers give: whole sequences move, and 100 losses are those by hand."""
        machine = host(self.folder, (1, 0.3))
        cases = ("dp=2", "dp=2,zero=3", "dp=2,recompute=all")
        for more in ({"parts": 1}, {}):  # one copy of the layers, and one for each part with buffers of its own
            wanted, seen = gpt.compare([(strategy, 2) for strategy in cases], more=more, machine=machine, balance="dynamic")
            for strategy in cases:
                with self.subTest(strategy=strategy, more=more):
                    np.testing.assert_allclose(seen[strategy], wanted, rtol=1e-9, atol=1e-9)
            for strategy in ("dp=2", "dp=2,micro=2"):
                graph = gantry.load(ROOT / "graphs/models/gpt.json", {"batch": 8} | more, train=True, strategy=strategy, devices=2)
                took = [graph.schedule(machine, effort=0, **how) for how in ({}, {"balance": "static"})]
                with self.subTest(strategy=strategy, more=more):
                    rows = np.array(parts(took[0], "ids"))
                    self.assertFalse((rows % 32).any(), "whole sequences")
                    self.assertEqual(rows[:len(rows) // 2].sum(), 6 * 32)
                    self.assertEqual(parts(took[0], "h"), 3 * rows.tolist(), "of each layer")
                    self.assertLess(took[0].summary.makespan_us, 0.75 * took[1].summary.makespan_us)

    def test_used(self):
        """The model as it is used: its loss is that of one device, by parts that follow the speeds."""
        params = {"batch": 8, "parts": 1}
        graph = gantry.load(ROOT / "graphs/models/gpt.json", params, evaluate=True, strategy="dp=2", devices=2)
        schedule = graph.schedule(host(self.folder, (1, 0.3)), effort=0)
        self.assertEqual(parts(schedule, "ids"), [6 * 32, 2 * 32])
        wanted = gantry.load(ROOT / "graphs/models/gpt.json", params, evaluate=True).schedule(1, effort=0).run(backend="host")()["loss"]
        np.testing.assert_allclose(schedule.run(backend="host")()["loss"], wanted, rtol=1e-5)

    def by_parts_of_own(self, parts, change=None):
        """The file has so many parts, and buffers for each: a product, a residual and the loss. `change` makes one of them another model."""
        text = strategies.chain(1, 24)
        text["buffers"]["h0"]["split"] = parts
        for name in ("z1", "h1"):
            del text["buffers"][name]
        text["nodes"] = []
        for i in range(parts):
            text["buffers"] |= {f"{name}_{i}": buffer([24 // parts, 16]) for name in ("z", "h", "t", "s")}
            text["nodes"] += [{"id": f"fc{i}", "kernel": "gemm", "args": {"a": f"h0[{i}]", "b": "w0", "c": f"z_{i}"}},
                              {"id": f"act{i}", "map": {"h": "tanh(z)"}, "args": {"z": f"z_{i}", "h": f"h_{i}"}},
                              {"id": f"sum{i}", "map": {"t": "h + x"}, "args": {"h": f"h_{i}", "x": f"h0[{i}]", "t": f"t_{i}"}},
                              {"id": f"loss{i}", "reduce": {"l": "sum(square(t) / 384)"}, "access": {"l": "sum"}, "args": {"t": f"t_{i}", "l": "loss"}}]
        if change:
            change(text)
        return text

    def test_own_buffers(self):
        """Rows of a buffer that one part has for itself follow the part; where nodes of one part do what those of another do not, or mix its rows, parts are equal. Losses are those of one device."""
        def more_in_one(text):
            text["nodes"].insert(3, {"id": "more", "reduce": {"l": "sum(t / 384)"}, "access": {"l": "sum"}, "args": {"t": "t_0", "l": "loss"}})

        def other_formula(text):
            text["nodes"][2]["map"] = {"t": "h - x"}

        def copied(text):
            for i in reversed(range(2)):
                text["nodes"][4 * i + 3]["args"]["t"] = f"s_{i}"
                text["nodes"].insert(4 * i + 3, {"id": f"copy{i}", "copy": {"from": f"t_{i}", "to": f"s_{i}"}})

        def copied_in_one(text):
            text["nodes"][3]["args"]["t"] = "s_0"
            text["nodes"].insert(3, {"id": "copy", "copy": {"from": "t_0", "to": "s_0"}})

        def mixed(text):
            for i in range(2):
                text["buffers"] |= {f"k_{i}": buffer([12, 12])}
                text["nodes"].insert(5 * i + 3, {"id": f"with all{i}", "kernel": "gemm", "args": {"tb": 1, "a": f"t_{i}", "b": f"t_{i}", "c": f"k_{i}"}})
                text["nodes"][5 * i + 4]["args"]["t"] = f"k_{i}"

        def root_of_part(text):
            for i in range(2):
                text["buffers"] |= {f"n_{i}": buffer([1])}
                text["nodes"].insert(5 * i + 3, {"id": f"of part{i}", "reduce": {"n": "sum(square(t))"}, "args": {"t": f"t_{i}", "n": f"n_{i}"}})
                text["nodes"][5 * i + 4] |= {"reduce": {"l": "sum(sqrt(n))"}, "args": {"n": f"n_{i}", "l": "loss"}}

        def total_of_part(text):
            text["buffers"] |= {"m": {"split": 2} | buffer([2, 16])}
            for i in reversed(range(2)):
                text["nodes"][4 * i + 3]["args"]["t"] = f"s_{i}"
                text["nodes"][4 * i + 3:4 * i + 3] = [{"id": f"none{i}", "fill": {"to": f"m[{i}]", "value": 0}},
                                                      {"id": f"total{i}", "reduce": {"m": "sum(t, 0)"}, "access": {"m": "sum"}, "args": {"t": f"t_{i}", "m": f"m[{i}]"}},
                                                      {"id": f"less{i}", "map": {"s": "t - m / 12"}, "args": {"t": f"t_{i}", "m": f"m[{i}]", "s": f"s_{i}"}}]

        def weight_of_part(text):
            text["buffers"]["w0"] |= {"shape": [32, 16], "split": 2}
            for i in range(2):
                text["nodes"][4 * i]["args"]["b"] = f"w0[{i}]"

        def two_of_one(text):
            for i in reversed(range(2)):
                text["nodes"][4 * i + 3]["args"]["t"] = f"s_{i}"
                text["nodes"][4 * i + 3:4 * i + 3] = [{"id": f"wave{i}", "map": {"k": "sin(z)"}, "args": {"z": f"z_{i}", "k": f"k_{i}"}},
                                                      {"id": f"with wave{i}", "map": {"s": "t * k"}, "args": {"t": f"t_{i}", "k": f"k_{i}", "s": f"s_{i}"}}]
                text["buffers"] |= {f"k_{i}": buffer([12, 16])}

        cases = [(2, None, "dp=2", (1, 0.25), True), (3, None, "dp=3", (1, 0.25, 0.5), True), (2, None, "dp=2,micro=2", (1, 0.25), True), (2, None, "dp=2,zero=1", (0.3, 1), True),
                 (2, None, "dp=2", (1, 1), False), (2, copied, "dp=2", (1, 0.25), True), (2, two_of_one, "dp=2", (1, 0.25), True)]
        cases += [(2, change, "dp=2", (1, 0.25), False) for change in (more_in_one, other_formula, copied_in_one, mixed, root_of_part, total_of_part, weight_of_part)]
        for count, change, strategy, speeds, moves in cases:
            text = self.by_parts_of_own(count, change)
            schedule = gantry.parse(text, train=True, strategy=strategy, devices=len(speeds)).schedule(host(self.folder, speeds), effort=0, balance="dynamic")
            with self.subTest(count=count, change=change, strategy=strategy, speeds=speeds):
                self.assertEqual(len(set(parts(schedule, "h0"))) > 1 if "bounds" in json.loads(schedule.json()) else False, moves)
                run, one = schedule.run(backend="host"), gantry.parse(text, train=True).schedule(1, effort=0).run(backend="host")
                for _ in range(4):
                    np.testing.assert_allclose(run()["loss"], one()["loss"], rtol=1e-12)

    def by_random_parts(self, rng, count):
        """Layers that the file has for each part: maps, products by weights that parts share or have of their own, rows that are dropped, and sums over all rows or those of a part; buffers are split, or one for each part."""
        text = strategies.chain(1, 24)
        text["buffers"]["h0"]["split"], text["nodes"], kinds = count, [], []
        del text["buffers"]["z1"], text["buffers"]["h1"]

        def batch(name, split):
            text["buffers"] |= {name: buffer([24, 16], split=count)} if split else {f"{name}_{i}": buffer([24 // count, 16]) for i in range(count)}
            return [f"{name}[{i}]" if split else f"{name}_{i}" for i in range(count)]

        def for_each(name, node):
            text["nodes"] += [{"id": f"{name}_{i}"} | node(i) for i in range(count)]

        def weight(name, own):
            text["buffers"][name] = buffer([16 * (count if own else 1), 16], **{"class": "const", "init": {"normal": {"seed": len(kinds)}}}, **({"split": count} if own else {}))
            text["train"]["weights"].append(name)
            return [f"{name}[{i}]" if own else name for i in range(count)]

        def total(name, own, x):
            text["buffers"][name] = buffer([count, 16], split=count) if own else buffer([1, 16])
            to = [f"{name}[{i}]" if own else name for i in range(count)]
            text["nodes"] += [{"id": f"none.{one}", "fill": {"to": one, "value": 0}} for one in dict.fromkeys(to)]
            for_each(f"total.{name}", lambda i: {"reduce": {"m": "sum(x, 0)"}, "access": {"m": "sum"}, "args": {"x": x[i], "m": to[i]}})
            return to

        x = batch("z", True)
        for_each("fc", lambda i: {"kernel": "gemm", "args": {"a": f"h0[{i}]", "b": "w0", "c": x[i]}})
        for k in range(int(rng.integers(1, 5))):
            kinds.append(str(rng.choice(["map", "softmax", "shared", "own", "drop", "of batch", "of part"])))
            y, number = batch(f"y{k}", rng.random() < 0.5), 24 // count * 16
            if kinds[k] == "map":
                for_each(f"map{k}", lambda i: {"map": {"y": "tanh(x)"}, "args": {"x": x[i], "y": y[i]}})
            elif kinds[k] == "softmax":
                for_each(f"softmax{k}", lambda i: {"kernel": "softmax", "args": {"x": x[i], "y": y[i]}})
            elif kinds[k] == "drop":
                for_each(f"drop{k}", lambda i: {"kernel": "dropout", "args": {"p": 0.5, "seed": k, "first": i * number, "x": x[i], "y": y[i]}})
            elif kinds[k] in ("shared", "own"):
                v = weight(f"v{k}", kinds[k] == "own")
                for_each(f"product{k}", lambda i: {"kernel": "gemm", "args": {"a": x[i], "b": v[i], "c": y[i]}})
            else:
                m = total(f"m{k}", kinds[k] == "of part", x)
                for_each(f"less{k}", lambda i: {"map": {"y": "x - m / 24"}, "args": {"x": x[i], "m": m[i], "y": y[i]}})
            x = y
        for_each("loss", lambda i: {"reduce": {"l": "sum(square(x) / 384)"}, "access": {"l": "sum"}, "args": {"x": x[i], "l": "loss"}})
        return text, kinds

    def test_random_parts(self):
        """Whatever a file does part by part, losses are those of one device; rows move only where no part has something of its own."""
        rng, moved = np.random.default_rng(47), 0
        for turn in range(60):
            count, strategy = [(2, "dp=2"), (2, "dp=2,micro=2"), (3, "dp=3"), (2, "dp=2,zero=3")][turn % 4]
            text, kinds = self.by_random_parts(rng, count)
            speeds = rng.permutation([0.2, 1, 0.5][:count])
            schedule = gantry.parse(text, train=True, strategy=strategy, devices=count).schedule(host(self.folder, speeds), effort=0, balance="dynamic")
            with self.subTest(turn=turn, strategy=strategy, kinds=kinds):
                moves = len(set(parts(schedule, "h0"))) > 1 if "bounds" in json.loads(schedule.json()) else False
                moved += moves
                self.assertEqual(moves, not {"own", "of part"} & set(kinds))
                run, one = schedule.run(backend="host"), gantry.parse(text, train=True).schedule(1, effort=0).run(backend="host")
                for _ in range(3):
                    np.testing.assert_allclose(run()["loss"], one()["loss"], rtol=1e-10)
        self.assertGreater(moved, 10)

    def test_parts_that_are_not_alike(self):
        """A node that one part alone has would be about other rows where that is cut elsewhere."""
        text = self.by_parts()
        text["nodes"].append({"id": "more", "reduce": {"l": "sum(z / 384)"}, "access": {"l": "sum"}, "args": {"z": "z1[0]", "l": "loss"}})
        schedule = gantry.parse(text, train=True, strategy="dp=2", devices=2).schedule(host(self.folder, (1, 0.25)), effort=0, balance="dynamic")
        run, one = schedule.run(backend="host"), gantry.parse(text, train=True).schedule(1, effort=0).run(backend="host")
        for _ in range(3):
            np.testing.assert_allclose(run()["loss"], one()["loss"], rtol=1e-12)

    def positions(self, length):
        """Rows turned by their positions, a product, a causal softmax; the loss in NumPy, for complex numbers too."""
        text = strategies.chain(1, 24)
        text["buffers"] |= {"t": buffer([24, 16])}
        text["nodes"] = [{"id": "turn", "kernel": "rope", "args": {"dim": 16, "length": length, "first": 3, "base": 50, "x": "h0", "y": "t"}},
                         {"id": "fc", "kernel": "gemm", "args": {"a": "t", "b": "w0", "c": "z1"}},
                         {"id": "act", "kernel": "softmax", "args": {"causal": 1, "first": 5, "x": "z1", "y": "h1"}},
                         {"id": "loss", "reduce": {"l": "mean(square(h))"}, "args": {"h": "h1", "l": "loss"}}]
        for name in ("h0", "w0"):
            text["buffers"][name].pop("init", None)
            text["buffers"][name] |= INPUT

        def loss(x, w):
            at = 3 + np.arange(24)
            angle = (at % length if length else at)[:, None] * 50.0 ** (-np.arange(8) / 8)
            c, s = np.cos(angle), np.sin(angle)
            turned = np.concatenate([x[:, :8] * c - x[:, 8:] * s, x[:, 8:] * c + x[:, :8] * s], 1)
            e = np.exp(turned @ w) * (np.arange(16) <= (5 + np.arange(24))[:, None] % 16)
            return np.mean((e / e.sum(1, keepdims=True)) ** 2)
        return text, loss

    def test_positions(self):
        """Numbers that say where rows begin follow them: rows of no sequence, of sequences of 6 and of 5, whose parts begin within one."""
        rng = np.random.default_rng(5)
        x, begin = rng.normal(size=(24, 16)), rng.normal(size=(16, 16))
        for length, strategy, speeds in ((0, "dp=2", (1, 0.3)), (6, "dp=3", (1, 0.3, 0.6)), (5, "dp=2,micro=2", (0.2, 1)), (0, "dp=2,zero=1", (0.4, 1))):
            text, loss = self.positions(length)
            w, wanted = begin.copy(), []
            for _ in range(4):
                wanted.append(loss(x, w))
                gradient = np.zeros_like(w)
                for at in np.ndindex(w.shape):
                    step = w.astype(complex)
                    step[at] += 1e-30j
                    gradient[at] = loss(x, step).imag / 1e-30
                w -= 0.1 * gradient
            with self.subTest(length=length, strategy=strategy):
                seen, cut = self.losses(text, strategy, host(self.folder, speeds), {"h0": x, "w0": begin}, "h0", 4, balance="dynamic")
                np.testing.assert_allclose(seen, wanted, rtol=1e-12)
                self.assertGreater(max(cut), min(cut) + 1)

    def test_written(self):
        """A graph that is written has equal parts where numbers would have to follow, since the format cannot say so."""
        text, _ = self.positions(0)
        schedule = gantry.parse(text, train=True, strategy="dp=2", devices=2)
        self.assertEqual(json.loads(schedule.json())["buffers"]["h0"]["split"], 2)

    def test_parts_that_stay(self):
        """Equal parts: where sums have one order, and where nodes treat the file's own parts differently. Numbers of rows follow these."""
        machine = host(self.folder, (1, 0.25))
        chain, drop = strategies.chain(2, 24), strategies.chain(1, 24)
        drop["buffers"]["d"] = buffer([24, 16])
        drop["nodes"] = [{"id": "drop", "kernel": "dropout", "args": {"p": 0.5, "seed": 3, "x": "h0", "y": "d"}}, *drop["nodes"]]
        drop["nodes"][1]["args"]["a"] = "d"
        soft, causal = (strategies.chain(1, 16) for _ in range(2))
        for text, extra in ((soft, {}), (causal, {"causal": 1})):
            text["nodes"][1] = {"id": "act0", "kernel": "softmax", "args": {"x": "z1", "y": "h1"} | extra}
        for text, strategy, moves in ((chain, "dp=2", True), (chain, "dp=2,ordered=1", False), (drop, "dp=2", True), (soft, "dp=2", True), (causal, "dp=2", True),
                                      (self.dropping(0), "dp=2", False), (self.dropping(24 * 16 // 2), "dp=2", True),
                                      (self.by_parts(), "dp=2", True), (self.by_parts((1, 0.5)), "dp=2", False), (self.by_parts(mean=True), "dp=2", False)):
            schedule = gantry.parse(text, train=True, strategy=strategy, devices=2).schedule(machine, effort=0, balance="dynamic")
            with self.subTest(strategy=strategy, nodes=text["nodes"]):
                self.assertEqual(len(set(parts(schedule, "h0"))) > 1, moves)
                run = schedule.run(backend="host")
                run()
                one = gantry.parse(text, train=True).schedule(1, effort=0).run(backend="host")
                one()
                np.testing.assert_allclose(run()["loss"], one()["loss"], rtol=1e-12)

    def test_gallery(self):
        """Models whose files have parts of the batch: as equal parts learn, in less than three quarters of their time, as one device is a quarter as fast."""
        machine = host(self.folder, (1, 0.25))
        for name in ("mlp", "cnn", "digits_mlp"):
            graph = gantry.load(ROOT / f"graphs/models/{name}.json", train=True, strategy="dp=2", devices=2)
            took, seen = [], []
            for how in ({}, {"balance": "static"}):
                schedule = graph.schedule(machine, effort=0, **how)
                took.append(schedule.summary.makespan_us)
                run = schedule.run(backend="host")
                seen.append([float(run()["loss"][0]) for _ in range(5)])
                run.close()
            with self.subTest(model=name):
                self.assertLess(took[0], 0.75 * took[1])
                np.testing.assert_allclose(*seen, rtol=1e-5)

    def test_table(self):
        """The table of strategies says of what parts the batch is."""
        path = pathlib.Path(self.folder) / "chain.json"
        path.write_text(json.dumps(strategies.chain(4, rows=4096, widths=[512] * 5)))
        gpus(self.folder, (1, 0.5))
        done = subprocess.run([os.environ["GANTRY"], "train", path, "--machine", pathlib.Path(self.folder) / "machine.json", "--strategy", "auto", "--steps", "0", "--effort", "0"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        row = next(line for line in done.stdout.splitlines() if line.startswith("dp=2 "))
        least, most = (int(n) for n in re.search(r"; parts of (\d+) to (\d+) rows$", row).groups())
        self.assertEqual(least + most, 4096)
        self.assertLess(abs(most / least - 2), 0.2, "twice as many for the GPU that is twice as fast")


if __name__ == "__main__":
    unittest.main()
