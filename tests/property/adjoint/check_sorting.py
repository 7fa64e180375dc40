# SPDX-License-Identifier: Apache-2.0
"""Gradients through kernels that sort and choose, and trainings through them against NumPy in float64, written by hand."""
import unittest

from differences import buffer, compare, descend, gantry, model, np, weigh

INPUT = {"class": "input"}


class Best(unittest.TestCase):
    def test_shapes(self):
        """top_k, whose places are whole numbers, beside another reader, and in parts, some without rows."""
        rng = np.random.default_rng(1)
        for turn in range(20):
            rows, n = (int(k) for k in rng.integers(1, 8, 2))
            k, parts = int(rng.integers(1, n + 1)), 1 + 2 * (turn % 4 == 3)
            cut = {"split": parts} if parts > 1 else {}
            buffers = {"x": buffer([rows, n], **cut, **INPUT), "values": buffer([rows, k], **cut), "also": buffer([rows, n]),
                       "indices": buffer([rows, k], "i64" if turn % 2 else "i32", **cut)}
            nodes = [{"id": f"top{i}", "kernel": "top_k", "args": {"smallest": turn // 2 % 2} | {name: name + (f"[{i}]" if cut else "") for name in ("x", "values", "indices")}}
                     for i in range(parts)]
            results = {"values": [rows, k]}
            if turn % 3:
                nodes.insert(turn % 2 * parts, {"id": "also", "map": {"y": "x * x"}, "args": {"x": "x", "y": "also"}})
                results["also"] = [rows, n]
            weigh(rng, buffers, nodes, results)
            with self.subTest(turn=turn, rows=rows, n=n, k=k):
                compare(self, rng, model(buffers, nodes, ["x"]), {"x": rng.normal(size=(rows, n))}, devices=1 + turn % 2, directions=1)

    def test_training(self):
        """Scores of which the three best of each row count, as of experts."""
        rng = np.random.default_rng(2)
        m, d, n, k = 16, 5, 7, 3
        x, t, w = rng.normal(size=(m, d)), rng.normal(size=m), rng.normal(size=(d, n))

        def wanted(at):
            scores = x @ at["w"]
            order = np.argsort(-scores, 1)[:, :k]
            best = np.tanh(np.take_along_axis(scores, order, 1))
            error, dscores = best.sum(1) - t, np.zeros((m, n))
            np.put_along_axis(dscores, order, (1 - best * best) * (2 * error / m)[:, None], 1)
            return np.mean(error ** 2), {"w": x.T @ dscores}

        for devices, dtype in ((1, "f64"), (2, "f64"), (1, "f32")):
            buffers = {"x": buffer([m, d], dtype, **INPUT), "t": buffer([m], dtype, **INPUT), "w": buffer([d, n], dtype, **INPUT), "scores": buffer([m, n], dtype),
                       "best": buffer([m, k], dtype), "places": buffer([m, k], "i32"), "sum": buffer([m], dtype), "loss": buffer([1], dtype, output=True)}
            nodes = [{"id": "scores", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "scores"}},
                     {"id": "best", "kernel": "top_k", "args": {"x": "scores", "values": "best", "indices": "places"}},
                     {"id": "sum", "reduce": {"s": "sum(tanh(b), 1)"}, "args": {"b": "best", "s": "sum"}},
                     {"id": "loss", "reduce": {"l": "mean(square(s - t))"}, "args": {"s": "sum", "t": "t", "l": "loss"}}]
            real = dtype.replace("f", "float")
            with self.subTest(devices=devices, dtype=dtype):
                descend(self, model(buffers, nodes, ["w"], optimizer="sgd", learning_rate=0.05), {"w": w}, {"x": x.astype(real), "t": t.astype(real)}, wanted, devices, dtype)

    def test_refused(self):
        """Rows that are not two axes, and places that another node writes."""
        best = {"id": "best", "kernel": "top_k", "args": {name: name for name in ("x", "values", "indices")}}
        loss = {"id": "l", "reduce": {"l": "sum(y)"}, "args": {"y": "values", "l": "loss"}}
        more = {"id": "more", "map": {"i": "i0 + 1"}, "args": {"i": "indices", "i0": "other"}}
        for axes, nodes, error in (([2, 2], [best], 'node "best" chooses from rows of "x" of 3 axes'), ([4], [best, more], 'node "more" changes rows of "indices" that node "best" wrote')):
            buffers = {"x": buffer([3, *axes], **INPUT), "values": buffer([3, 2]), "indices": buffer([3, 2], "i32"), "other": buffer([3, 2], "i32", init=0),
                       "loss": buffer([1], output=True)}
            with self.assertRaisesRegex(gantry.GraphError, error):
                gantry.parse(model(buffers, [*nodes, loss], ["x"]), train=True)


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
