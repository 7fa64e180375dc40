# SPDX-License-Identifier: Apache-2.0
"""A model that does not fit one GPU and is trained on two: the bytes to spare that the report states, against sums by hand of what has to be
there, and against the addresses in the schedule."""
import collections
import json
import unittest

from differences import gantry
from suite import ROOT

LAYERS, WIDTH, WORDS, ROWS = 16, 64 * 128, 32768, 8 * 1024
SIZES = {"batch": 8, "tokens": 1024, "layers": LAYERS, "heads": 64, "dim": 128, "words": WORDS}
MATRICES = LAYERS * 12 * WIDTH * WIDTH + 2 * WORDS * WIDTH # products, and table and head: cut in two
GAINS = (2 * LAYERS + 1) * WIDTH # on both


class Spare(unittest.TestCase):
    def plan(self, devices, strategy):
        machine = gantry.Machine.load(ROOT / "graphs/machines/hgx-h200-8.json").select(devices)
        graph = gantry.load(ROOT / "graphs/models/gpt.json", SIZES, devices=devices, train=True, strategy=strategy)
        return graph.schedule(machine, effort=0, spill="off")

    def room(self):
        memory = json.loads((ROOT / "graphs/machines/hgx-h200-8.json").read_text())["memories"][1]
        self.assertEqual(memory["reserved"], "1GiB")
        return memory["capacity"] - (1 << 30)

    def test_one(self):
        """Weights and two means, f32, are more than one GPU has."""
        self.assertGreater(12 * (MATRICES + GAINS), self.room())
        with self.assertRaisesRegex(gantry.Error, "gpu0 needs 150.3 GiB"):
            self.plan(1, "dp=1")

    def test_two(self):
        plan = self.plan(2, "tp=2,recompute=all")
        report, schedule = plan.report(), json.loads(plan.json())
        self.assertEqual(report["peak_bytes"]["host"], 0)
        kept = 12 * (MATRICES // 2 + GAINS)
        gradients = 4 * MATRICES // 2
        layer_inputs = 4 * LAYERS * (ROWS // 2) * WIDTH # of each layer, by rows
        for name in ("gpu0", "gpu1"):
            spare = report["spare_bytes"][name]
            self.assertEqual(spare + report["peak_bytes"][name], self.room())
            # clipping wants all gradients before the first step; less than a tenth is what one layer is computed with
            self.assertLess(spare, self.room() - kept - gradients)
            self.assertGreater(spare, self.room() - 1.1 * (kept + gradients + layer_inputs))
            self.assertGreater(spare, 30e9)
        ends = collections.Counter()
        for instance in schedule["instances"]:
            ends[instance["memory"]] = max(ends[instance["memory"]], instance["offset"] + instance["bytes"])
        for name in ("gpu0", "gpu1"):
            self.assertEqual(ends[name], report["peak_bytes"][name])


if __name__ == "__main__":
    unittest.main()
