# SPDX-License-Identifier: Apache-2.0
"""What cannot be trained is refused, each mistake with its place in the file and the remedy."""
import copy
import json
import pathlib
import tempfile
import unittest

from differences import buffer, gantry

INPUT = {"class": "input"}


def base():
    return {"gantry": 1, "name": "base", "params": {"n": 4},
            "train": {"loss": "loss", "weights": ["w"], "learning_rate": 0.1},
            "buffers": {"x": buffer([4, 3], init=1), "w": buffer([4, 3], init=1), "y": buffer([4, 3]), "loss": buffer([1], output=True)},
            "nodes": [{"id": "y", "map": {"y": "w * x"}, "args": {"x": "x", "w": "w", "y": "y"}},
                      {"id": "loss", "reduce": {"l": "sum(y)"}, "args": {"y": "y", "l": "loss"}}]}


class Refused(unittest.TestCase):
    def check(self, change, where, *texts, train=True):
        graph = copy.deepcopy(base())
        change(graph)
        with self.subTest(texts=texts):
            with self.assertRaises(gantry.GraphError) as caught:
                gantry.parse(graph, train=train)
            error = caught.exception
            self.assertEqual(error.where, where, error)
            if where:
                self.assertGreater(error.line, 0, error)
            for text in texts:
                self.assertIn(text, str(error))
            self.assertLess(len(error.text), 500, "the text was cut off")

    def test_base(self):
        gantry.parse(base(), train=True)

    def option(self, key, value, *texts, where=None):
        for train in (False, True): # a mistake is told, trained or not
            self.check(lambda g: g["train"].update({key: value}), f"/train/{key}" if where is None else where, *texts, train=train)

    def test_key(self):
        self.check(lambda g: g.update(train=[]), "/train", "must be an object", "not an array", train=False)
        self.check(lambda g: g["train"].pop("loss"), "/train", 'has no "loss"', train=False)
        self.check(lambda g: g["train"].pop("weights"), "/train", 'has no "weights"', train=False)
        self.check(lambda g: g["train"].pop("learning_rate"), "/train", 'has no "learning_rate"', train=False)
        self.check(lambda g: g["train"].update(wieghts=[]), "/train/wieghts", 'did you mean "weights"?', train=False)
        self.check(lambda g: g.pop("train"), "", "does not say what training it means", '"train"')

    def test_options(self):
        self.option("loss", "los", 'no buffer "los" (did you mean "loss"?) to be the loss')
        self.option("loss", 3, "must be the name of a buffer")
        self.option("loss", "y", "96 bytes of f64", "one element of f32 or f64")
        self.option("weights", "w", "must be an array of names")
        self.option("weights", [], "training without weights")
        self.option("weights", ["w", "v*"], 'no buffer "v*"', "to be a weight", where="/train/weights/1")
        self.option("weights", [1], "must be the name of a buffer", where="/train/weights/0")
        self.option("optimizer", "adamm", 'no optimizer "adamm" (did you mean "adam"?)')
        self.option("optimizer", "lion", "allowed are none, sgd, momentum, adam, adamw")
        self.option("learning_rate", -1, "learning_rate of training is -1", "from 0 on")
        self.option("learning_rate", "m", 'no param or index "m"')
        self.option("learning_rate", [], "must be a number")
        self.option("momentum", 1, "momentum of training is 1", "from 0 to below 1")
        self.option("beta1", 1.5, "beta1 of training is 1.5")
        self.option("beta2", -0.5, "beta2 of training is -0.5")
        self.option("epsilon", -1, "epsilon of training is -1")
        self.option("clip_norm", -2, "clip_norm of training is -2")
        self.check(lambda g: g["train"].update(loss_scale="auto", optimizer="none"), "/train/loss_scale", "auto", "there is no optimizer", train=False)
        self.option("loss_scale", "auo", "auo")
        self.option("loss_scale", -2, "loss_scale of training is -2", "from 0 on")
        self.option("batch", "x", "must be an array of names")
        self.option("batch", ["w", "z"], 'no buffer "z"', "to be of the batch", where="/train/batch/1")
        self.option("weight_decay", -0.1, "must be at least 0, not -0.1")
        self.option("schedule", 1, "must be a formula over step")
        self.option("schedule", "step +", "the schedule of the learning rate", "expected a number")
        self.option("schedule", "stap / n", 'names "stap"', "params and step")
        def whole(g):
            g["buffers"]["k"] = buffer([4], "i32", init=0)
            g["train"]["weights"] = ["k"]
        self.check(whole, "/train/weights/0", 'weight "k" is i32')

    def replace(self, node, where, *texts, buffers=None, first=0, **more):
        """In place of the node that gives y."""
        def change(g):
            g["buffers"] |= buffers or {}
            g["nodes"][first:1] = node if isinstance(node, list) else [node]
            g.update(more)
        self.check(change, where, *texts)

    def test_weights(self):
        self.replace({"id": "y", "map": {"y": "x"}, "args": {"x": "x", "y": "y"}}, "/buffers/w", 'weight "w" does not reach the loss "loss"')
        self.replace({"id": "again", "map": {"w": "x"}, "args": {"w": "w", "x": "x"}}, "/nodes/1", 'node "again" writes weight "w"', first=1)

    def test_nodes(self):
        own = {"own": {"args": [{"name": "x", "access": "read", "dtype": "f64"}, {"name": "y", "access": "write", "dtype": "f64"}]}}
        wy = {"x": "w", "y": "y"}
        self.replace({"id": "y", "kernel": "merge", "args": {"x": "w", "y": "x", "z": "y"}}, "/nodes/0", 'node "y" lies between weights and loss, and kernel "merge" has no adjoint',
                     "use sort or sort_pairs")
        self.replace({"id": "y", "kernel": "softmax_grad", "args": {"y": "x", "dy": "w", "dx": "y"}}, "/nodes/0", 'kernel "softmax_grad" has no adjoint; it is an adjoint itself')
        self.replace({"id": "y", "kernel": "select", "args": {"x": "w", "mask": "mask", "y": "y", "count": "count"}}, "/nodes/0", 'kernel "select" has no adjoint; use a map',
                     buffers={"mask": buffer([4], "i32", init=1), "count": buffer([1], "i32")})
        self.replace({"id": "y", "kernel": "busy", "args": {"us": 1, "x": "w", "y": "y"}}, "/nodes/0", 'kernel "busy" has no adjoint; give it a formula')
        self.replace({"id": "y", "kernel": "own", "args": wy}, "/nodes/0", 'kernel "own" has no adjoint; give it a formula ("map" or "reduce")', kernels=own)
        image = {name: buffer([4, 3], "f32", **({} if name == "y" else {"init": 1})) for name in ("w", "y")}
        self.replace({"id": "y", "kernel": "sobel", "args": {"image": "w", "out": "y"}}, "/nodes/0", 'kernel "sobel" has no adjoint; use filter2d', buffers=image)
        self.replace({"id": "y", "work": {}, "reads": ["w"], "writes": ["y"]}, "/nodes/0", "is work, which has no adjoint")
        self.replace({"id": "y", "collective": "broadcast", "in": ["w"], "out": ["y"]}, "/nodes/0", "is a collective, which has no adjoint")
        self.replace({"repeat": 2, "nodes": [{"id": "y", "map": {"y": "x"}, "args": wy}]}, "/nodes/0/nodes/0", "in a loop (repeat)", '"for"')
        self.replace({"id": "y", "map": {"y": "x * s"}, "args": wy | {"s": {"dynamic": 1}}}, "/nodes/0", "has a dynamic scalar")
        self.replace([{"id": "zero", "fill": {"to": "y", "value": 0}},
                      {"id": "y", "when": {"buffer": "flag"}, "map": {"y": "x"}, "args": wy}], "/nodes/1", 'has a "when"', "select",
                     buffers={"flag": buffer([1], "i32", init=1)})
        self.replace([{"id": "copy", "copy": {"from": "w", "to": "y"}}, {"id": "twice", "map": {"y": "y * 2"}, "args": {"y": "y"}}],
                     "/nodes/1", 'node "twice" changes "y" in place')
        tiles = {"w": buffer([4, 4], init=1), "y": buffer([4, 4]), "t": buffer([4, 4], tiles=[2, 2])}
        self.replace([{"id": "split", "copy": {"from": "w", "to": "t"}}, {"id": "join", "copy": {"from": "t", "to": "y"}}],
                     "/nodes/0", 'names several tiles of "t"', "name one tile", buffers=tiles)
        halves = {"w": buffer([4, 3], split=2, init=1), "y": buffer([4, 3], split=2), "loss": buffer([1], output=True)}
        self.replace({"id": "y", "kernel": "transpose", "args": {"x": "w[0]~1", "y": "y"}}, "/nodes/0", 'reads "w" with a halo',
                     buffers=halves | {"y": buffer([3, 3])})
        step = {"id": "y0", "kernel": "jacobi2d", "args": {"x": "w[0]~1", "y": "y[0]"}}
        self.replace(step, "/nodes/0", 'give 2 of the 4 rows of "y"', 'give all of them by "jacobi2d"', buffers=halves)
        self.replace({"id": "y", "kernel": "jacobi2d", "args": {"x": "w", "y": "y"}}, "/nodes/0", "which are not cut alike",
                     "cut both into as many parts", buffers=halves | {"y": buffer([4, 3])})
        first = {"id": "h0", "map": {"h": "w"}, "args": {"w": "w[0]", "h": "h[0]"}}
        middle = {"id": "h2", "map": {"h": "w"}, "args": {"w": "w[2]", "h": "h[2]"}}
        three = {name: b | {"split": 3} for name, b in halves.items() if name != "loss"} | {"h": buffer([4, 3], split=3), "loss": halves["loss"]}
        steps = [{"id": f"y{i}", "kernel": "jacobi2d", "args": {"x": f"h[{i}]~1", "y": f"y[{i}]"}} for i in range(3)]
        second = {"id": "h1", "map": {"h": "w"}, "args": {"w": "w[1]", "h": "h[1]"}}
        self.replace([first, second, steps[0], middle, *steps[1:]], "/nodes/3", 'writes rows of "h" between nodes of one stencil',
                     'write all of "h" before', buffers=three)
        self.replace({"id": "y", "work": {}, "reads": ["w"], "writes": [{"prod": "y"}]}, "/nodes/0", 'multiplies into "y"')

    def test_rows(self):
        wy = {"x": "w", "y": "y"}
        self.replace([{"id": "y", "map": {"y": "x"}, "args": wy}, {"id": "again", "map": {"y": "x * 2"}, "args": wy}],
                     "/nodes/1", 'node "again" writes rows of "y" that node "y" wrote before')
        self.replace([{"id": "z", "map": {"z": "x * w"}, "args": {"x": "x", "w": "w", "z": "z"}},
                      {"id": "clear", "map": {"x": "0"}, "args": {"x": "x"}}, {"id": "y", "copy": {"from": "z", "to": "y"}}],
                     "/nodes/1", 'node "clear" writes rows of "x" that node "z" read before', buffers={"z": buffer([4, 3])})

    def test_rows_that_are_fine(self):
        """Rows that are filled before, others of the same buffer, and contributions."""
        graph = base()
        graph["nodes"][0:1] = [{"id": "zero", "fill": {"to": "y", "value": 0}},
                               {"id": "a", "map": {"y": "x"}, "args": {"x": "w{0:2}", "y": "y{0:2}"}},
                               {"id": "b", "map": {"y": "x * 2"}, "args": {"x": "w{1:3}", "y": "y{2:4}"}}]
        gantry.parse(graph, train=True)

    def test_formulas(self):
        wy = {"w": "w", "y": "y"}
        column = {"y": buffer([3])}
        self.replace({"id": "y", "reduce": {"y": "any(w, 0)"}, "args": wy}, "/nodes/0", 'node "y" reduces to "y" by what has no adjoint',
                     "sum, mean, min and max", buffers=column)
        self.replace({"id": "y", "reduce": {"y": "argmax(w, 0)"}, "args": wy}, "/nodes/0", "by what has no adjoint", buffers=column)
        self.replace([{"id": f"y{i}", "reduce": {"y": "mean(w, 1)"}, "args": {"w": f"w[{i}]", "y": f"y[{i}]"}} for i in range(2)],
                     "/nodes/1", "takes the mean of an automatic part",
                     buffers={"w": buffer([4, 3], split={"auto": 2}, init=1), "y": buffer([4], split={"auto": 2})})
        power = "w"
        for _ in range(8):
            power = f"tanh(({power}) * ({power}))" if len(power) < 900 else f"tanh({power})"
        self.replace({"id": "y", "map": {"y": power}, "args": wy}, "/nodes/0", 'the derivative of its formulas by "w" is too long',
                     "make two nodes")

    def test_kernels(self):
        self.replace({"id": "y", "kernel": "add", "args": {"x": "w", "y": "x", "z": "y"}}, "/nodes/0", "regions of several shapes",
                     buffers={"w": buffer([4, 3], init=1), "x": buffer([12], init=1)})
        self.replace({"id": "y", "kernel": "gemm_batched", "args": {"a": "w", "b": "x", "c": "y"}}, "/nodes/0", 'one matrix "a" for all 5 products',
                     buffers={"w": buffer([1, 2, 2], init=1), "x": buffer([5, 2, 2], init=1), "y": buffer([5, 2, 2])})
        self.replace([{"id": "t", "kernel": "attention", "args": {"q": "w", "k": "w", "v": "w", "y": "z", "lse": "l"}}, {"id": "y", "copy": {"from": "l", "to": "y"}}],
                     "/nodes/0", 'node "t" gives "lse", which the loss follows from', "gemm_batched and reductions",
                     buffers={"w": buffer([4, 3, 2], init=1), "z": buffer([4, 3, 2]), "l": buffer([4, 3])})
        self.replace({"id": "y", "kernel": "retile", "args": {"x": "w", "y": "y{0:2}"}}, "/nodes/0", 'takes 6 of the 12 elements of "x"',
                     'that "y" has all elements of', buffers={"y": buffer([4, 3], init=0)})

    def test_place_in_a_used_file(self):
        """A kernel of the graph that has the name of a gradient's: the node of the backward pass comes from where its own node was written."""
        inner = {"gantry": 1, "buffers": {"w": buffer([4, 3]), "y": buffer([4, 3], output=True)},
                 "nodes": [{"id": "soft", "kernel": "softmax", "args": {"x": "w", "y": "y"}}]}
        around = {"gantry": 1, "buffers": inner["buffers"], "nodes": [{"id": "in", "use": "inner.json", "with": {"w": "w", "y": "y"}}]}
        graph = base() | {"kernels": {"softmax_grad": {"args": [{"name": "z", "access": "write"}]}}}
        graph["nodes"][0:1] = [{"id": "x", "map": {"z": "x"}, "args": {"x": "x", "z": "z"}}, {"id": "l", "use": "around.json", "with": {"w": "w", "y": "y"}}]
        graph["buffers"]["z"] = buffer([4, 3])
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("inner", inner), ("around", around), ("outer", graph)):
                pathlib.Path(folder, f"{name}.json").write_text(json.dumps(text, indent=1))
            with self.assertRaises(gantry.GraphError) as caught:
                gantry.load(pathlib.Path(folder, "outer.json"), train=True)
        error = str(caught.exception)
        self.assertIn("inner.json", error.split(": ")[0])
        self.assertIn('/nodes/0: kernel "softmax_grad" has no argument "y"', error)
        self.assertEqual(error.count("(used as"), 2, error)
        self.assertIn('(used as "l.in" at ', error)
        self.assertRegex(error, r'\(used as "l" at [^ ]*outer.json:\d+\)$')


if __name__ == "__main__":
    unittest.main()
