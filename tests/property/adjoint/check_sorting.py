# SPDX-License-Identifier: Apache-2.0
"""Gradients through kernels that sort, and trainings through them against NumPy in float64, written by hand."""
import unittest

from differences import buffer, descend, gantry, model, np

INPUT = {"class": "input"}


class Sorted(unittest.TestCase):
    def test_training(self):
        """A line is turned until points, seen along it, lie as given: the distance of two distributions (Rabin et al., 2012)."""
        rng = np.random.default_rng(3)
        m, d = 30, 3
        x, w = rng.normal(size=(m, d)), rng.normal(size=(d, 1))
        t = np.sort(x @ rng.normal(size=(d, 1)), 0)

        def wanted(at):
            y = x @ at["w"]
            order = np.argsort(y[:, 0])
            error, dy = y[order] - t, np.zeros((m, 1))
            dy[order] = 2 * error / m
            return np.mean(error ** 2), {"w": x.T @ dy}

        for devices, dtype, pairs in ((1, "f64", False), (2, "f64", False), (1, "f64", True), (1, "f32", False)):
            buffers = {"x": buffer([m, d], dtype, **INPUT), "t": buffer([m, 1], dtype, **INPUT), "w": buffer([d, 1], dtype, **INPUT), "y": buffer([m, 1], dtype),
                       "twice": buffer([m, 1], dtype), "sorted": buffer([m, 1], dtype), "keys": buffer([m, 1], dtype), "loss": buffer([1], dtype, output=True)}
            sort = {"id": "sorted", "kernel": "sort", "args": {"x": "y", "y": "sorted"}}
            if pairs: # values are moved in place of the keys
                sort = {"id": "sorted", "kernel": "sort_pairs", "args": {"keys": "twice", "values": "y", "sorted": "keys", "moved": "sorted"}}
            nodes = [{"id": "y", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "y"}}, {"id": "twice", "map": {"z": "2 * y"}, "args": {"y": "y", "z": "twice"}}, sort,
                     {"id": "loss", "reduce": {"l": "mean(square(y - t))"}, "args": {"y": "sorted", "t": "t", "l": "loss"}}]
            real = dtype.replace("f", "float")
            with self.subTest(devices=devices, dtype=dtype, pairs=pairs):
                descend(self, model(buffers, nodes, ["w"], optimizer="sgd", learning_rate=0.1), {"w": w}, {"x": x.astype(real), "t": t.astype(real)}, wanted, devices, dtype)

    def test_refused(self):
        """Halves are not moved by sort_pairs."""
        buffers = {"x": buffer([6], "f16", **INPUT), "y": buffer([6], "f16"), "loss": buffer([1], "f32", output=True)}
        nodes = [{"id": "sort", "kernel": "sort", "args": {"x": "x", "y": "y"}}, {"id": "l", "reduce": {"l": "sum(f32(y))"}, "args": {"y": "y", "l": "loss"}}]
        with self.assertRaisesRegex(gantry.GraphError, 'node "sort" sorts "x" of f16, which has no adjoint; convert it'):
            gantry.parse(model(buffers, nodes, ["x"]), train=True)


if __name__ == "__main__":
    unittest.main()
