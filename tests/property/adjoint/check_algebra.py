# SPDX-License-Identifier: Apache-2.0
"""Gradients through sparse and dense linear algebra: cut into parts, and trainings against NumPy in float64, written by hand."""
import unittest

from differences import buffer, compare, gantry, model, np, weigh

INPUT = {"class": "input"}
STEPS = 40


def sparse(rng, rows, columns, most=4):
    """Row pointers, columns and values of a random matrix: rows without entries, and columns that are there twice."""
    counts = rng.integers(0, most + 1, rows)
    counts[-1] += not counts.sum()
    return np.concatenate([[0], np.cumsum(counts)]), rng.integers(0, columns, counts.sum()), rng.normal(size=counts.sum())


def entries_of(row_ptr, col, columns):
    """Which row and column each entry has, as matrices of zeros and ones that multiply values."""
    row = np.repeat(np.arange(len(row_ptr) - 1), np.diff(row_ptr))
    place = np.zeros((len(col), len(row_ptr) - 1, columns))
    place[np.arange(len(col)), row, col] = 1
    return place


def losses_of(case, text, at, others, wanted, devices, dtype="f64"):
    """`wanted` gives the loss and its gradients by the weights; plain descent, as the model says."""
    run = gantry.parse(text, train=True, devices=devices).schedule(devices, effort=0).run(backend="host")
    rate, weights = text["train"]["learning_rate"], {name: w.copy() for name, w in at.items()}
    cast = {name: value.astype(dtype.replace("f", "float")) for name, value in at.items()}
    first = run(**cast, **others)["loss"][0]
    got = [float(first)] + [float(run()["loss"][0]) for _ in range(STEPS - 1)]
    want = []
    for _ in range(STEPS):
        loss, gradients = wanted(weights)
        want.append(loss)
        weights = {name: w - rate * gradients[name] for name, w in weights.items()}
    case.assertLess(want[-1], 0.9 * want[0], "the training learns something")
    np.testing.assert_allclose(got, want, rtol=1e-9 if dtype == "f64" else 1e-5)
    run.close()


class Sparse(unittest.TestCase):
    def network(self, rows, columns, width, entries, index, parts, dtype="f64", **train):
        """The mean of squares of tanh(A x w) - t, rows of A in parts."""
        cut = {"split": parts} if parts > 1 else {}
        buffers = {"row_ptr": buffer([rows + 1], index, **INPUT), "col": buffer([entries], index, **INPUT), "val": buffer([entries], dtype, **INPUT),
                   "x": buffer([columns, 3], dtype, **INPUT), "w": buffer([3, width], dtype, **INPUT), "t": buffer([rows, width], dtype, **cut, **INPUT),
                   "h": buffer([columns, width], dtype), "y": buffer([rows, width], dtype, **cut), "loss": buffer([1], dtype, output=True)}
        nodes = [{"id": "h", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "h"}}]
        for i in range(parts):
            first, last = rows * i // parts, rows * (i + 1) // parts
            part = f"[{i}]" if cut else ""
            nodes += [{"id": f"y{i}", "kernel": "spmm_csr",
                       "args": {"row_ptr": f"row_ptr{{{first}:{last + 1}}}", "col": "col", "val": "val", "x": "h", "y": "y" + part}},
                      {"id": f"loss{i}", "reduce": {"l": "sum(square(tanh(y) - t) / n)"}, "access": {"l": "sum"},
                       "args": {"y": "y" + part, "t": "t" + part, "n": rows * width, "l": "loss"}}]
        return model(buffers, nodes, ["w", "val"], **train)

    def test_training(self):
        """A layer of a network over a graph, whose edges have weights, too: in one part, and in parts on two devices."""
        rng = np.random.default_rng(1)
        rows, columns, width = 11, 7, 4
        row_ptr, col, val = sparse(rng, rows, columns)
        place = entries_of(row_ptr, col, columns)
        x, w, t = rng.normal(size=(columns, 3)), rng.normal(size=(3, width)), rng.uniform(-1, 1, (rows, width))

        def wanted(at):
            matrix, h = np.einsum("e,erc->rc", at["val"], place), x @ at["w"]
            y = np.tanh(matrix @ h)
            dy = 2 * (y - t) * (1 - y * y) / y.size
            return np.mean((y - t) ** 2), {"w": x.T @ matrix.T @ dy, "val": np.einsum("erc,rk,ck->e", place, dy, h)}

        for index, parts, devices, dtype in (("i32", 1, 1, "f64"), ("i64", 1, 2, "f64"), ("i32", 3, 1, "f64"), ("i64", 2, 2, "f64"), ("i32", 2, 2, "f32")):
            text = self.network(rows, columns, width, len(col), index, parts, dtype, optimizer="sgd", learning_rate=0.3)
            real, whole = dtype.replace("f", "float"), index.replace("i", "int")
            others = {"row_ptr": row_ptr.astype(whole), "col": col.astype(whole), "x": x.astype(real), "t": t.astype(real)}
            with self.subTest(index=index, parts=parts, devices=devices, dtype=dtype):
                losses_of(self, text, {"w": w, "val": val}, others, wanted, devices, dtype)

    def test_shapes(self):
        """Matrices of all shapes, vectors and matrices beside another reader of x, by finite differences."""
        rng = np.random.default_rng(2)
        for turn in range(24):
            rows, columns, width = (int(n) for n in rng.integers(1, 9, 3))
            row_ptr, col, val = sparse(rng, rows, columns, int(rng.integers(1, 6)))
            vector = turn % 3 == 0
            shape = (lambda n: [n] if vector else [n, width])
            buffers = {"row_ptr": buffer([rows + 1], "i32", **INPUT), "col": buffer([len(col)], "i32", **INPUT), "val": buffer([len(col)], **INPUT),
                       "x": buffer(shape(columns), **INPUT), "y": buffer(shape(rows)), "also": buffer(shape(columns))}
            nodes = [{"id": "y", "kernel": "spmv_csr" if vector else "spmm_csr", "args": {name: name for name in ("row_ptr", "col", "val", "x", "y")}}]
            nodes.insert(turn % 2, {"id": "also", "map": {"y": "x * x"}, "args": {"x": "x", "y": "also"}})
            weigh(rng, buffers, nodes, {"y": shape(rows), "also": shape(columns)})
            weights = (["x"], ["val"], ["x", "val"])[turn // 2 % 3]
            if "x" not in weights:
                nodes = [node for node in nodes if node["id"] != "also"]
                buffers["also"]["init"] = 0
            at = {"x": rng.normal(size=shape(columns)), "val": val}
            others = {"row_ptr": row_ptr.astype(np.int32), "col": col.astype(np.int32)} | {k: v for k, v in at.items() if k not in weights}
            with self.subTest(turn=turn, rows=rows, columns=columns, entries=len(col), weights=weights):
                compare(self, rng, model(buffers, nodes, weights), {name: at[name] for name in weights}, others, devices=1 + turn % 2, directions=1)

    def test_refused(self):
        """A vector that is a matrix by its shape, and values of two axes."""
        whole = {name: buffer([n], "i32", **INPUT) for name, n in (("row_ptr", 3), ("col", 4))}
        loss = {"id": "l", "reduce": {"l": "sum(y)"}, "args": {"y": "y", "l": "loss"}}
        product = {"id": "y", "kernel": "spmv_csr", "args": {name: name for name in ("row_ptr", "col", "val", "x", "y")}}
        for x, val, error in (([2, 3], [4], 'node "y" multiplies a vector "x" of 2 rows of 3 elements'), ([6], [2, 2], 'values "val" in 2 rows.*one axis of all 4')):
            buffers = whole | {"val": buffer(val, **INPUT), "x": buffer(x, **INPUT), "y": buffer([2]), "loss": buffer([1], output=True)}
            with self.assertRaisesRegex(gantry.GraphError, error):
                gantry.parse(model(buffers, [product, loss], ["x", "val"]), train=True)


def changed_in_place(rng, kernel, scalars, shapes, changed, eye=0, also=None):
    """A copy of weight `changed`, and so many times the unit matrix, is changed in place by the kernel; `also` reads other arguments."""
    buffers = {name: buffer(shape, **INPUT) for name, shape in shapes.items()}
    n = shapes[changed]
    buffers |= {"unit": buffer(n, **INPUT), "made": buffer(n)}
    nodes = [{"id": "made", "map": {"y": "x + c * u"}, "args": {"x": changed, "u": "unit", "c": eye, "y": "made"}},
             {"id": "kernel", "kernel": kernel, "args": scalars | {name: "made" if name == changed else name for name in shapes}}]
    results = {"made": n}
    for name in shapes if also else ():
        buffers["also_" + name], results["also_" + name] = buffer(shapes[name]), shapes[name]
        nodes.insert(0 if also == "before" else len(nodes), {"id": "also_" + name, "map": {"y": "x * x"}, "args": {"x": name, "y": "also_" + name}})
    weigh(rng, buffers, nodes, results)
    return buffers, nodes


class Dense(unittest.TestCase):
    def check(self, rng, kernel, scalars, shapes, changed, eye=0, at=None):
        unit = {"unit": np.eye(*shapes[changed])}
        given = {name: rng.normal(size=shape) for name, shape in shapes.items()} | (at or {})
        for also in (None, "before", "behind"):
            buffers, nodes = changed_in_place(rng, kernel, scalars, shapes, changed, eye, also)
            for weights in {tuple(shapes), (changed,), tuple(shapes)[:1]}:
                if also and len(weights) < len(shapes):
                    continue
                others = {name: value for name, value in given.items() if name not in weights}
                with self.subTest(kernel=kernel, scalars=scalars, shapes=shapes, also=also, weights=weights):
                    compare(self, rng, model(dict(buffers), nodes, weights), {name: given[name] for name in weights}, unit | others, directions=1)

    def test_syrk(self):
        rng = np.random.default_rng(3)
        for n, k, scalars in ((1, 1, {}), (5, 3, {}), (4, 6, {"alpha": 0.7, "beta": -0.4}), (6, 2, {"beta": 0})):
            self.check(rng, "syrk", scalars, {"a": [n, k], "c": [n, n]}, "c")

    def test_gemm(self):
        rng = np.random.default_rng(4)
        for ta, tb, beta in ((0, 0, 1), (1, 0, -0.3), (0, 1, 0), (1, 1, 1)):
            shapes = {"a": [3, 4][:: -1 if ta else 1], "b": [4, 5][:: -1 if tb else 1], "c": [3, 5]}
            scalars = {"alpha": 0.6, "beta": beta, "ta": ta, "tb": tb}
            self.check_access("gemm", scalars, shapes, rng)
            self.check_access("gemm_batched", scalars, {name: [2, *shape] for name, shape in shapes.items()}, rng)

    def check_access(self, kernel, scalars, shapes, rng):
        buffers, nodes = changed_in_place(rng, kernel, scalars, shapes, "c")
        nodes[1]["access"] = {"c": "readwrite"}
        at = {name: rng.normal(size=shape) for name, shape in shapes.items()}
        compare(self, rng, model(buffers, nodes, list(shapes)), at, {"unit": np.zeros(shapes["c"])})

    def test_trsm(self):
        rng = np.random.default_rng(5)
        for n, m in ((1, 1), (4, 6), (5, 2)):
            a = rng.normal(size=(n, n)) + 3 * np.eye(n)
            self.check(rng, "trsm", {}, {"a": [n, n], "b": [m, n]}, "b", at={"a": a})

    def test_sums_behind_a_bias(self):
        """More is added to a layer: fine where the layer's backward pass does not read its result."""
        rng = np.random.default_rng(12)
        for activation in (0, 1, 2):
            buffers = {"w": buffer([3, 3], **INPUT), "b": buffer([3], **INPUT), "y": buffer([3, 3])}
            nodes = [{"id": "layer", "kernel": "gemm_bias", "args": {"activation": activation, "a": "w", "b": "w", "bias": "b", "c": "y"}},
                     {"id": "more", "kernel": "gemm", "args": {"a": "w", "b": "w", "c": "y", "tb": 1}, "access": {"c": "sum"}}]
            weigh(rng, buffers, nodes, {"y": [3, 3]})
            at = {"w": rng.normal(size=(3, 3)), "b": rng.normal(size=3)}
            if activation == 1:
                with self.assertRaisesRegex(gantry.GraphError, 'node "more" changes rows of "y" that node "layer" wrote'):
                    gantry.parse(model(buffers, nodes, ["w", "b"]), train=True)
            else:
                compare(self, rng, model(buffers, nodes, ["w", "b"]), at)

    def test_refused(self):
        """What was read before it is changed in place, and results that the backward pass reads."""
        square = {"s": buffer([1])} | {name: buffer([3, 3], **INPUT if name == "w" else {}) for name in ("w", "c", "d", "y")}
        loss = {"id": "l", "reduce": {"l": "sum(y)"}, "args": {"y": "y", "l": "loss"}}
        syrk, y = {"id": "syrk", "kernel": "syrk", "args": {"a": "w", "c": "c"}}, {"id": "y", "map": {"y": "c"}, "args": {"c": "c", "y": "y"}}
        copied = {"id": "copy", "copy": {"from": "w", "to": "c"}}
        for nodes, error in (([copied, {"id": "early", "map": {"d": "c * c"}, "args": {"c": "c", "d": "d"}}, syrk,
                               {"id": "y", "map": {"y": "c + d"}, "args": {"c": "c", "d": "d", "y": "y"}}], 'node "syrk" writes rows of "c" that node "early" read before'),
                             ([{"id": "soft", "kernel": "softmax", "args": {"x": "w", "y": "c"}}, syrk, y], 'node "syrk" changes rows of "c" that node "soft" wrote'),
                             ([{"id": "least", "reduce": {"c": "min(w)"}, "args": {"w": "w", "c": "s"}}, {"id": "add", "reduce": {"c": "sum(w)"}, "args": {"w": "w", "c": "s"},
                                "access": {"c": "sum"}}, y | {"args": {"c": "s", "y": "y"}}], 'node "add" changes rows of "s" that node "least" wrote'),
                             ([{"id": "soft", "kernel": "softmax", "args": {"x": "w", "y": "c"}},
                               {"id": "add", "kernel": "gemm", "args": {"a": "w", "b": "w", "c": "c"}, "access": {"c": "sum"}}, y], 'node "add" changes rows of "c" that node "soft"'),
                             ([copied, {"id": "trsm", "kernel": "trsm", "args": {"a": "w", "b": "c"}}, syrk, y], 'that node "trsm" wrote.*a copy in a buffer of its own'),
                             ([copied, {"id": "axpby", "kernel": "axpby", "args": {"a": 1, "b": 1, "x": "w", "y": "c"}}, y], 'changes "c" in place, and the backward')):
            with self.assertRaisesRegex(gantry.GraphError, error):
                gantry.parse(model(square | {"loss": buffer([1], output=True)}, [*nodes, loss], ["w"]), train=True)


if __name__ == "__main__":
    unittest.main()
