# SPDX-License-Identifier: Apache-2.0
"""Gradients through sparse and dense linear algebra: cut into parts, and trainings against NumPy in float64, written by hand."""
import unittest

from differences import buffer, compare, descend, gantry, model, np, weigh

INPUT = {"class": "input"}


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

        for index, parts, devices, dtype in (("i32", 1, 1, "f64"), ("i64", 1, 2, "f64"), ("i32", 3, 1, "f64"), ("i64", 2, 2, "f64"), ("i32", 13, 2, "f64"), ("i32", 2, 2, "f32")):
            text = self.network(rows, columns, width, len(col), index, parts, dtype, optimizer="sgd", learning_rate=0.3)
            real, whole = dtype.replace("f", "float"), index.replace("i", "int")
            others = {"row_ptr": row_ptr.astype(whole), "col": col.astype(whole), "x": x.astype(real), "t": t.astype(real)}
            with self.subTest(index=index, parts=parts, devices=devices, dtype=dtype):
                descend(self, text, {"w": w, "val": val}, others, wanted, devices, dtype)

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

    def test_trsm_of_parts(self):
        """Some of which are without rows."""
        rng = np.random.default_rng(13)
        for parts in (2, 5):
            cut = {"split": parts}
            buffers = {"a": buffer([4, 4], **INPUT), "x": buffer([3, 4], **cut, **INPUT), "y": buffer([3, 4], **cut)}
            nodes = [node for i in range(parts) for node in ({"id": f"copy{i}", "copy": {"from": f"x[{i}]", "to": f"y[{i}]"}},
                                                             {"id": f"trsm{i}", "kernel": "trsm", "args": {"a": "a", "b": f"y[{i}]"}})]
            weigh(rng, buffers, nodes, {"y": [3, 4]})
            at = {"a": rng.normal(size=(4, 4)) + 3 * np.eye(4), "x": rng.normal(size=(3, 4))}
            for devices in (1, 2):
                compare(self, rng, model(buffers, nodes, ["a", "x"]), at, devices=devices)

    def test_potrf(self):
        """Not symmetric: only the lower triangle is read, and what lies above it is part of the result as it is."""
        rng = np.random.default_rng(6)
        for n in (1, 2, 5, 8):
            self.check(rng, "potrf", {}, {"a": [n, n]}, "a", eye=4 * n)

    def factors(self, n, m=(), also=None, solves=1):
        """A copy of `a` is factored, and right sides `b0`, `b1`, ... are solved for; the loss weighs the factors, too, where `also` says so."""
        buffers = {"a": buffer([n, n], **INPUT), "lu": buffer([n, n]), "pivots": buffer([n], "i32")}
        nodes = [{"id": "lu", "copy": {"from": "a", "to": "lu"}}, {"id": "factor", "kernel": "getrf", "args": {"a": "lu", "pivots": "pivots"}}]
        results = {"lu": [n, n]} if also else {}
        for i in range(solves):
            buffers |= {f"b{i}": buffer([n, *m], **INPUT), f"x{i}": buffer([n, *m])}
            nodes += [{"id": f"x{i}", "copy": {"from": f"b{i}", "to": f"x{i}"}},
                      {"id": f"solve{i}", "kernel": "getrs", "args": {"a": "lu", "pivots": "pivots", "b": f"x{i}"}}]
            results[f"x{i}"] = [n, *m]
        return buffers, nodes, results

    def test_getrf(self):
        """Rows are exchanged, all and some; what the loss weighs is the factors, what was solved by them, or both."""
        rng = np.random.default_rng(13)
        exchanged = 0
        for n, m, also, solves in ((1, (), True, 0), (5, (), True, 0), (1, (), False, 1), (4, (), False, 1), (6, (1,), False, 1), (1, (3,), True, 1), (5, (3,), False, 1),
                                   (5, (3,), True, 2)):
            buffers, nodes, results = self.factors(n, m, also, solves)
            weigh(rng, buffers, nodes, results)
            at = {name: rng.normal(size=b["shape"]) for name, b in buffers.items() if b.get("class") == "input"}
            at["a"] += np.roll(4 * np.eye(n), int(rng.integers(n)), axis=0)
            exchanged += not np.array_equal(np.argmax(np.abs(at["a"]), axis=0), np.arange(n))
            for weights in {tuple(at), ("a",), tuple(at)[1:] or ("a",)}:
                others = {name: value for name, value in at.items() if name not in weights}
                with self.subTest(n=n, m=m, also=also, solves=solves, weights=weights):
                    compare(self, rng, model(dict(buffers), nodes, weights), {name: at[name] for name in weights}, others, directions=2)
        self.assertGreater(exchanged, 3, "rows were exchanged")

    def test_solve(self):
        """The gradient of a solution is known: A^-T times what the loss weighs it by, and less that times the solution for A (Giles, 2.3.1)."""
        rng = np.random.default_rng(14)
        for n, m, dtype, devices in ((6, (4,), "f64", 1), (6, (), "f64", 2), (9, (2,), "f32", 2)):
            buffers, nodes, _ = self.factors(n, m)
            buffers |= {"r": buffer([n, *m], **INPUT), "loss": buffer([1], output=True)}
            for b in buffers.values():
                b["dtype"] = dtype if b["dtype"] == "f64" else b["dtype"]
            nodes.append({"id": "loss", "reduce": {"l": "sum(x * r)"}, "args": {"x": "x0", "r": "r", "l": "loss"}})
            real = dtype.replace("f", "float")
            a, b, r = rng.permutation(rng.normal(size=(n, n)) + n * np.eye(n)), rng.normal(size=(n, *m)), rng.normal(size=(n, *m))
            run = gantry.parse(model(buffers, nodes, ["a", "b0"]), train=True, devices=devices).schedule(devices, effort=0).run(backend="host")
            got = run(a=a.astype(real), b0=b.astype(real), r=r.astype(real))
            x, want = np.linalg.solve(a, b).reshape(n, -1), np.linalg.solve(a.T, r)
            near = {"rtol": 1e-11, "atol": 1e-13} if dtype == "f64" else {"rtol": 1e-4, "atol": 1e-6}
            np.testing.assert_allclose(got["b0.grad"], want, **near)
            np.testing.assert_allclose(got["a.grad"], -want.reshape(n, -1) @ x.T, **near)
            run.close()

    def test_qr(self):
        """Tall and square; the loss weighs one factor, or both, of a matrix that others read, too (in check_kernels.py)."""
        rng = np.random.default_rng(15)
        for rows, columns in ((1, 1), (4, 4), (7, 3), (9, 1), (40, 6)):
            for results in (("q",), ("r",), ("q", "r")):
                shapes = {"q": [rows, columns], "r": [columns, columns]}
                buffers = {"a": buffer(shapes["q"], **INPUT)} | {name: buffer(shape) for name, shape in shapes.items()}
                nodes = [{"id": "qr", "kernel": "qr", "args": {"a": "a", "q": "q", "r": "r"}}]
                weigh(rng, buffers, nodes, {name: shapes[name] for name in results})
                with self.subTest(rows=rows, columns=columns, results=results):
                    compare(self, rng, model(buffers, nodes, ["a"]), {"a": rng.normal(size=(rows, columns))})

    def test_least_squares(self):
        """a w = t in the sense of least squares is r^-1 q^T t, whose square error is known by the pseudo-inverse: descent on a and on t, by rows of two devices."""
        rng = np.random.default_rng(16)
        m, n = 12, 3

        def wanted(at):
            w, *_ = np.linalg.lstsq(at["a"], at["t"], rcond=None)
            rest = at["a"] @ w - at["t"]
            return np.sum(rest ** 2), {"a": 2 * rest @ w.T, "t": -2 * rest}
        buffers = {"a": buffer([m, n], **INPUT), "t": buffer([m, 2], **INPUT), "q": buffer([m, n]), "r": buffer([n, n]), "lu": buffer([n, n]), "pivots": buffer([n], "i32"),
                   "w": buffer([n, 2]), "y": buffer([m, 2]), "loss": buffer([1], output=True)}
        nodes = [{"id": "qr", "kernel": "qr", "args": {"a": "a", "q": "q", "r": "r"}}, {"id": "w", "kernel": "gemm", "args": {"ta": 1, "a": "q", "b": "t", "c": "w"}},
                 {"id": "lu", "copy": {"from": "r", "to": "lu"}}, {"id": "factor", "kernel": "getrf", "args": {"a": "lu", "pivots": "pivots"}},
                 {"id": "solve", "kernel": "getrs", "args": {"a": "lu", "pivots": "pivots", "b": "w"}}, {"id": "y", "kernel": "gemm", "args": {"a": "a", "b": "w", "c": "y"}},
                 {"id": "loss", "reduce": {"l": "sum(square(y - t))"}, "args": {"y": "y", "t": "t", "l": "loss"}}]
        at = {"a": rng.normal(size=(m, n)), "t": rng.normal(size=(m, 2))}
        for devices in (1, 2):
            descend(self, model(buffers, nodes, ["a", "t"], optimizer="sgd", learning_rate=0.02), at, {}, wanted, devices, falls=0.5)

    def test_tiles(self):
        """Cholesky in tiles, by chains of products in place, on one device and two: the gradients are those of one node for all."""
        rng = np.random.default_rng(7)
        t, n = 3, 9
        gradient = []
        for tiles in (1, t):
            def at(name, *index):
                return name + ("".join(f"[{i}]" for i in index) if tiles > 1 else "")
            cut = {"tiles": [tiles, tiles]} if tiles > 1 else {}
            buffers = {"w": buffer([n, n], **cut, **INPUT), "r": buffer([n, n], **cut, **INPUT), "a": buffer([n, n], **cut), "loss": buffer([1], init=0, output=True)}
            lower = [(i, j) for i in range(tiles) for j in range(i + 1)]
            nodes = [{"id": f"a{i}{j}", "map": {"a": "w"}, "args": {"w": at("w", i, j), "a": at("a", i, j)}} for i, j in lower]
            for k in range(tiles):
                nodes.append({"id": f"potrf{k}", "kernel": "potrf", "args": {"a": at("a", k, k)}})
                nodes += [{"id": f"trsm{i}{k}", "kernel": "trsm", "args": {"a": at("a", k, k), "b": at("a", i, k)}} for i in range(k + 1, tiles)]
                for i in range(k + 1, tiles):
                    nodes.append({"id": f"syrk{i}{k}", "kernel": "syrk", "args": {"a": at("a", i, k), "c": at("a", i, i)}})
                    nodes += [{"id": f"gemm{i}{j}{k}", "kernel": "gemm", "access": {"c": "readwrite"},
                               "args": {"alpha": -1, "beta": 1, "tb": 1, "a": at("a", i, k), "b": at("a", j, k), "c": at("a", i, j)}} for j in range(k + 1, i)]
            nodes += [{"id": f"loss{i}{j}", "reduce": {"l": "sum(a * r)"}, "access": {"l": "sum"}, "args": {"a": at("a", i, j), "r": at("r", i, j), "l": "loss"}}
                      for i, j in lower]
            half = np.tril(np.random.default_rng(8).normal(size=(n, n)))
            r = np.tril(np.random.default_rng(9).normal(size=(n, n)))
            for devices in (1, 2):
                got = compare(self, rng, model(buffers, nodes, ["w"]), {"w": half @ half.T + n * np.eye(n)}, {"r": r}, devices=devices)
                gradient.append(np.tril(got["w.grad"]))
        for other in gradient[1:]:
            np.testing.assert_allclose(other, gradient[0], rtol=1e-9, atol=1e-12)

    def test_training(self):
        """Normal variables whose covariance is w w^T + 1 (Tipping and Bishop, 1999), by the likelihood: syrk and potrf in one buffer, trsm in another."""
        rng = np.random.default_rng(10)
        n, k, m = 6, 2, 40
        true, w = rng.normal(size=(n, k)), rng.normal(size=(n, k))
        y = rng.normal(size=(m, k)) @ true.T + rng.normal(size=(m, n))

        def wanted(at):
            c = at["w"] @ at["w"].T + np.eye(n)
            inverse, s = np.linalg.inv(c), y.T @ y / m
            return (np.linalg.slogdet(c)[1] + np.trace(inverse @ s)) / 2, {"w": (inverse - inverse @ s @ inverse) @ at["w"]}

        for devices, dtype in ((1, "f64"), (2, "f64"), (1, "f32")):
            buffers = {"w": buffer([n, k], dtype, **INPUT), "y": buffer([m, n], dtype, **INPUT), "unit": buffer([n, n], dtype, **INPUT),
                       "c": buffer([n, n], dtype), "x": buffer([m, n], dtype), "spread": buffer([1], dtype), "loss": buffer([1], dtype, output=True)}
            nodes = [{"id": "c", "copy": {"from": "unit", "to": "c"}}, {"id": "x", "copy": {"from": "y", "to": "x"}},
                     {"id": "covariance", "kernel": "syrk", "args": {"alpha": 1, "a": "w", "c": "c"}}, {"id": "factor", "kernel": "potrf", "args": {"a": "c"}},
                     {"id": "whitened", "kernel": "trsm", "args": {"a": "c", "b": "x"}},
                     {"id": "spread", "reduce": {"s": "sum(square(x) / (2 * m))"}, "args": {"x": "x", "m": m, "s": "spread"}},
                     {"id": "det", "reduce": {"l": "sum(select(u > 0, log(select(u > 0, c, 1)), 0))"}, "args": {"c": "c", "u": "unit", "l": "loss"}, "access": {"l": "sum"}},
                     {"id": "loss", "reduce": {"l": "sum(s)"}, "args": {"s": "spread", "l": "loss"}, "access": {"l": "sum"}}]
            text = model(buffers, nodes, ["w"], optimizer="sgd", learning_rate=0.1)
            real = dtype.replace("f", "float")
            with self.subTest(devices=devices, dtype=dtype):
                descend(self, text, {"w": w}, {"y": y.astype(real), "unit": np.eye(n, dtype=real)}, wanted, devices, dtype, falls=1)

    def deep(self):
        """Layers that whiten rows by factors of weights, by nodes that change buffers in place."""
        n, m = 6, 8
        buffers = {"w0": buffer([n, n], **INPUT), "w1": buffer([n, n], **INPUT), "unit": buffer([n, n], **INPUT), "x": buffer([m, n], **INPUT),
                   "loss": buffer([1], output=True)}
        nodes, from_ = [], "x"
        for i in range(4):
            buffers |= {f"c{i}": buffer([n, n]), f"x{i}": buffer([m, n]), f"h{i}": buffer([m, n])}
            nodes += [{"id": f"c{i}", "copy": {"from": "unit", "to": f"c{i}"}}, {"id": f"x{i}", "copy": {"from": from_, "to": f"x{i}"}},
                      {"id": f"syrk{i}", "kernel": "syrk", "args": {"alpha": 1, "a": f"w{i % 2}", "c": f"c{i}"}},
                      {"id": f"potrf{i}", "kernel": "potrf", "args": {"a": f"c{i}"}}, {"id": f"trsm{i}", "kernel": "trsm", "args": {"a": f"c{i}", "b": f"x{i}"}},
                      {"id": f"h{i}", "map": {"h": "2 * tanh(x)"}, "args": {"x": f"x{i}", "h": f"h{i}"}}]
            from_ = f"h{i}"
        nodes.append({"id": "l", "reduce": {"l": "sum(h * h)"}, "args": {"h": from_, "l": "loss"}})
        return model(buffers, nodes, ["w0", "w1"], optimizer="sgd", learning_rate=0.01, batch=["x"])

    def test_strategies(self):
        """Rows of trsm go with the batch; activations that are changed in place are kept, or computed again, with the same bits."""
        rng = np.random.default_rng(11)
        at = {"w0": rng.normal(size=(6, 6)), "w1": rng.normal(size=(6, 6)), "x": rng.normal(size=(8, 6)), "unit": np.eye(6)}

        def losses(**how):
            run = gantry.parse(self.deep(), train=True, devices=4, **how).schedule(4, effort=0).run(backend="host")
            got = [run(**at)["loss"][0]] + [run()["loss"][0] for _ in range(5)]
            run.close()
            return got
        want = losses(strategy="dp=1")
        self.assertLess(want[-1], 0.7 * want[0])
        for strategy in ("recompute=all", "recompute=2"):
            self.assertEqual(losses(strategy=strategy), want, strategy)
        for strategy in ("dp=2", "micro=2", "dp=2,zero=3", "dp=2,pp=2,micro=2", "dp=4,recompute=all"):
            np.testing.assert_allclose(losses(strategy=strategy), want, rtol=1e-12, err_msg=strategy)

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
