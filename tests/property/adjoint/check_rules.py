# SPDX-License-Identifier: Apache-2.0
"""Kernels that a strategy cuts along the batch, one in the middle of a small model each: losses of some steps are those of the model whole, on
devices that are alike and that are not. Its gradients check_kernels.py and others hold against finite differences."""
import math
import re
import tempfile
import unittest

from check_algebra import sparse
from check_unequal import host
from differences import buffer, gantry, np

INPUT = {"class": "input"}
BATCH, STEPS = 12, 6


def model(kernel, scalars, x, y, dtype="f64", wholes=None, more=None, as_x="x", as_y="y"):
    """h = tanh(x gain), y = the kernel of h, and the loss is the mean of the squares of y less a target, through an output layer by elements."""
    wholes, more = wholes or {}, more or {}
    buffers = {"x": buffer(x, dtype, **INPUT), "gain": buffer(x[1:], dtype, **INPUT), "h": buffer(x, dtype), "y": buffer(y, dtype), "t": buffer(y, dtype, **INPUT),
               "scale": buffer(y[1:], dtype, **INPUT), "loss": buffer([1], dtype, output=True)}
    buffers |= {name: buffer(shape, kind, **INPUT) for name, (shape, kind) in wholes.items()} | {name: buffer(shape, kind) for name, (shape, kind) in more.items()}
    nodes = [{"id": "h", "map": {"h": "tanh(x * gain)"}, "args": {"x": "x", "gain": "gain", "h": "h"}},
             {"id": "kernel", "kernel": kernel, "args": scalars | {name: name for name in [*wholes, *more]} | {as_x: "h", as_y: "y"}},
             {"id": "loss", "reduce": {"l": "mean(square(scale * y - t))"}, "args": {"y": "y", "scale": "scale", "t": "t", "l": "loss"}}]
    floats = [name for name, (_, kind) in wholes.items() if kind == dtype and name in ("a", "b", "val")]
    return {"gantry": 1, "name": kernel, "buffers": buffers, "nodes": nodes,
            "train": {"loss": "loss", "weights": ["gain", "scale", *floats], "optimizer": "adam", "learning_rate": 0.05, "batch": ["x", "t"]}}


class Rules(unittest.TestCase):
    def check(self, text, given=None, most=1e-9):
        rng = np.random.default_rng(41)
        data = {name: rng.normal(size=b["shape"]).astype(b["dtype"].replace("f", "float")) for name, b in text["buffers"].items()
                if b.get("class") == "input" and b["dtype"][0] == "f"} | (given or {})

        def losses(strategy, devices, machine=None):
            graph = gantry.parse(text, train=True, strategy=strategy, devices=devices)
            run = graph.schedule(machine or devices, effort=0, balance="dynamic").run(backend="host")
            seen = [float(run(**data)["loss"][0])] + [float(run()["loss"][0]) for _ in range(STEPS - 1)]
            run.close()
            return seen
        want = losses("dp=1", 1)
        self.assertLess(want[-1], want[0], "it learns something")
        for strategy, devices in (("dp=2", 2), ("dp=3,zero=1", 3), ("dp=2,micro=2", 2), ("micro=3", 1), ("dp=2,zero=3,micro=3", 2)):
            with self.subTest(kernel=text["name"], strategy=strategy):
                graph = gantry.parse(text, train=True, strategy=strategy, devices=devices)
                pieces = math.prod(int(number) for number in re.findall(r"(?:dp|micro)=(\d)", strategy))
                self.assertEqual(len(re.findall(r'"kernel\[\d+\]"', graph.json())), pieces, "a node for each piece")
                np.testing.assert_allclose(losses(strategy, devices), want, rtol=most)
        with tempfile.TemporaryDirectory() as folder, self.subTest(kernel=text["name"], machine="not alike"):
            for strategy in ("dp=2", "dp=2,micro=2,zero=1"):
                np.testing.assert_allclose(losses(strategy, 2, host(folder, (1, 0.3))), want, rtol=most)

    def test_layers(self):
        """Kernels that had rules before."""
        self.check(model("gemm", {}, [BATCH, 5], [BATCH, 3], wholes={"b": ([5, 3], "f64")}, as_x="a", as_y="c"))
        for activation in (0, 1, 2, 3):
            self.check(model("gemm_bias", {"activation": activation}, [BATCH, 5], [BATCH, 3], wholes={"b": ([5, 3], "f64"), "bias": ([3], "f64")}, as_x="a", as_y="c"))
        self.check(model("softmax", {}, [BATCH, 5], [BATCH, 5]))
        self.check(model("transpose", {"axis": 1}, [BATCH, 3, 4], [BATCH, 4, 3]))
        self.check(model("conv2d", {"pad": 1}, [BATCH, 2, 5, 5], [BATCH, 3, 5, 5], wholes={"w": ([3, 2, 3, 3], "f64")}))
        self.check(model("attention", {"q": "h", "k": "h", "v": "h"}, [BATCH, 2, 4, 3], [BATCH, 2, 4, 3], as_x="q"))
        self.check(model("attention", {"dim": 2, "length": 2, "q": "h", "k": "h", "v": "h"}, [2 * BATCH, 6], [2 * BATCH, 6], as_x="q"))

    def test_stacks(self):
        for ta, tb in ((0, 0), (1, 0), (0, 1)):
            self.check(model("gemm_batched", {"ta": ta, "tb": tb, "b": "h"}, [BATCH, 4, 4], [BATCH, 4, 4], as_x="a", as_y="c"))

    def test_one_matrix_for_all(self):
        """It is read whole by each piece, and is no weight: such a matrix has no adjoint."""
        text = model("gemm_batched", {}, [BATCH, 4, 5], [BATCH, 4, 3], wholes={"b": ([1, 5, 3], "f64")}, as_x="a", as_y="c")
        text["train"]["weights"].remove("b")
        self.check(text)

    def test_transforms(self):
        for scalars, shape in (({}, [BATCH, 5, 2]), ({"axis": 1, "axes": 2, "inverse": 1}, [BATCH, 3, 4, 2])):
            self.check(model("fft", scalars, shape, shape))
        with self.assertRaisesRegex(gantry.GraphError, "cannot be cut"):
            gantry.parse(model("fft", {"axis": 0}, [BATCH, 5, 2], [BATCH, 5, 2]), train=True, strategy="dp=2", devices=2)
        with self.assertRaisesRegex(gantry.GraphError, "cannot be cut"): # axis -2 is the first
            gantry.parse(model("fft", {}, [BATCH, 2], [BATCH, 2]), train=True, strategy="dp=2", devices=2)

    def test_images(self):
        frames = [BATCH, 7, 6]
        self.check(model("resize", {}, frames, [BATCH, 4, 9], "f32", as_x="image", as_y="out"), most=1e-4)
        self.check(model("resize", {}, [*frames, 2], [BATCH, 9, 3, 2], "f32", as_x="image", as_y="out"), most=1e-4)
        self.check(model("gaussian_blur", {"sigma": 0.8}, frames, frames, "f32", as_x="image", as_y="out"), most=1e-4)
        self.check(model("filter2d", {}, frames, frames, "f32", wholes={"weights": ([3, 3], "f32")}, as_x="image", as_y="out"), most=1e-4)
        with self.assertRaisesRegex(gantry.GraphError, "cannot be cut"): # one image: rows have neighbours
            gantry.parse(model("gaussian_blur", {"sigma": 0.8}, [BATCH, 6], [BATCH, 6], "f32", as_x="image", as_y="out"), train=True, strategy="dp=2", devices=2)

    def test_the_best_of_rows(self):
        self.check(model("top_k", {}, [BATCH, 9], [BATCH, 3], more={"indices": ([BATCH, 3], "i32")}, as_y="values"))

    def test_sparse_products(self):
        """A layer of a network over a graph whose nodes are the batch: each piece reads features of all nodes, and gives those of its own."""
        rng = np.random.default_rng(42)
        row_ptr, col, val = sparse(rng, BATCH, BATCH)
        given = {"row_ptr": row_ptr.astype(np.int32), "col": col.astype(np.int32), "val": val}
        for kernel, more in (("spmm_csr", [4]), ("spmv_csr", [])):
            shape = [BATCH, *more]
            text = model(kernel, {}, shape, shape, wholes={"row_ptr": ([BATCH + 1], "i32"), "col": ([len(col)], "i32"), "val": ([len(col)], "f64")})
            for name in ("gain", "scale"):
                text["buffers"][name]["shape"] = more or [1]
            self.check(text, given)


if __name__ == "__main__":
    unittest.main()
