# SPDX-License-Identifier: Apache-2.0
"""Models as they are used: the weights of a training, read between its steps, in the model without its training, against NumPy in float64; and
states that are read, of graphs cut and tiled."""
import itertools
import unittest

import check_training as training
from check_strategy import whole
from differences import buffer, gantry, np


class Evaluated(unittest.TestCase):
    CASE, _ = training.CASES[7]

    def test_between_steps(self):
        """Strategies of training and of evaluation need not be the same; reading states changes no bit of what follows."""
        x, labels, w = training.data()
        other = np.random.default_rng(5)
        x2, labels2 = other.standard_normal(x.shape), other.integers(0, labels.max() + 1, labels.shape).astype(labels.dtype)
        for trained, used in itertools.product((None, "dp=2,zero=1", "dp=2,micro=2"), (None, "dp=2", "pp=2,micro=4")):
            with self.subTest(trained=trained, used=used):
                text = whole(**self.CASE)
                runs = [gantry.parse(text, train=True, strategy=trained, devices=2).schedule(2, effort=0).run(backend="host") for _ in range(2)]
                model = gantry.parse(text, evaluate=True, strategy=used, devices=2)
                self.assertFalse([n for n in model.infos if ".grad" in n or n.startswith("train.")])
                held_out = model.schedule(2, effort=0).run(backend="host")
                for step in range(4):
                    losses = [float(run(**({"x": x, "labels": labels} | w if step == 0 else {}))["loss"][0]) for run in runs]
                    self.assertEqual(losses[0], losses[1])
                    now = {name: runs[0].state(name) for name in training.SHAPES}
                    found = float(held_out(x=x2, labels=labels2, **now)["loss"][0])
                    np.testing.assert_allclose(found, training.gradients(now, x2, labels2)[0], rtol=1e-12)
                for name in training.SHAPES:
                    self.assertEqual(runs[0].state(name).tobytes(), runs[1].state(name).tobytes())

    def test_nothing_is_dropped(self):
        """Whatever p is."""
        for p in 0.5, 0.9:
            text = {"gantry": 1, "name": "dropped", "train": {"loss": "loss", "weights": ["w"], "learning_rate": 0.1},
                    "buffers": {"x": buffer([12], split=3, **{"class": "input"}), "w": buffer([12], split=3, init=1, **{"class": "const"}), "z": buffer([12], split=3),
                                "d": buffer([12], split=3), "loss": buffer([1])},
                    "nodes": [{"for": {"i": 3}, "nodes": [
                        {"id": "z[i]", "map": {"z": "w * x"}, "args": {"w": "w[i]", "x": "x[i]", "z": "z[i]"}},
                        {"id": "drop[i]", "kernel": "dropout", "args": {"p": p, "seed": 3, "first": "4 * i", "x": "z[i]", "y": "d[i]"}},
                        {"id": "loss[i]", "reduce": {"l": "sum(square(d))"}, "args": {"d": "d[i]", "l": "loss"}, "access": {"l": "sum"}}]}]}
            x = np.arange(1, 13) / 8
            trained = float(gantry.parse(text, train=True).schedule(1).run(backend="host")(x=x)["loss"][0])
            used = float(gantry.parse(text, evaluate=True).schedule(1).run(backend="host")(x=x)["loss"][0])
            self.assertEqual(used, float((x ** 2).sum()))
            self.assertNotEqual(trained, used)

    def test_refused(self):
        text = whole(**self.CASE)
        with self.assertRaisesRegex(gantry.InvalidError, "`train` and `evaluate` of the load options are both 1"):
            gantry.parse(text, train=True, evaluate=True)
        del text["train"]
        with self.assertRaisesRegex(gantry.GraphError, "does not say what training it means"):
            gantry.parse(text, evaluate=True)


class States(unittest.TestCase):
    def test_cut_and_tiled(self):
        """s becomes 2 s + x in each start, on devices that the scheduler chooses."""
        x = np.random.default_rng(2).integers(-9, 9, (6, 8)).astype(np.float32)
        for cut, refs in ({}, [""]), ({"split": 3}, [f"[{i}]" for i in range(3)]), ({"tiles": [2, 4]}, [f"[{i}][{j}]" for i in range(2) for j in range(4)]):
            with self.subTest(cut=cut):
                text = {"gantry": 1, "name": "doubled", "buffers": {"x": buffer([6, 8], "f32", **cut, **{"class": "input"}), "s": buffer([6, 8], "f32", init=1, **cut, **{"class": "state"}),
                                                                    "n": buffer([1], "f32", output=True)},
                        "nodes": [{"id": f"s{i}", "map": {"s": "2 * s + x"}, "args": {"s": "s" + ref, "x": "x" + ref}} for i, ref in enumerate(refs)]
                        + [{"id": "n", "fill": {"to": "n", "value": 1}}]}
                run = gantry.parse(text).schedule(2, effort=0).run(backend="host")
                wanted = np.ones((6, 8), np.float32)
                for _ in range(3):
                    np.testing.assert_array_equal(run.state("s"), wanted)
                    run(x=x)
                    wanted = 2 * wanted + x
                np.testing.assert_array_equal(run.state("s"), wanted)
                with self.assertRaisesRegex(gantry.InvalidError, 'buffer "x" is no state'):
                    run.state("x")


if __name__ == "__main__":
    unittest.main()
