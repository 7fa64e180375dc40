# SPDX-License-Identifier: Apache-2.0
"""Adjoints of the library's kernels: one case a row of the table in src/graph/adjoint/kernels.c, all arguments trained at once and one by one."""
import itertools
import json
import pathlib
import re
import tempfile
import unittest

from differences import buffer, compare, gantry, model, np, weigh
from suite import ROOT

INPUT = {"class": "input"}


def cases(rng):
    """Kernel, scalars, shapes of real arguments, whole arguments, results by argument."""
    pairs = list(itertools.product((0, 1), (0, 1)))
    for ta, tb in pairs:
        yield "gemm", {"alpha": 0.7, "ta": ta, "tb": tb}, {"a": [3, 4][:: -1 if ta else 1], "b": [4, 5][:: -1 if tb else 1]}, {}, {"c": [3, 5]}
        yield ("gemm_batched", {"alpha": -1.5, "ta": ta, "tb": tb}, {"a": [2] + [3, 4][:: -1 if ta else 1], "b": [2] + [4, 5][:: -1 if tb else 1]}, {},
               {"c": [2, 3, 5]})
        for activation in (0, 1, 2, 3):
            yield ("gemm_bias", {"activation": activation, "ta": ta, "tb": tb},
                   {"a": [3, 4][:: -1 if ta else 1], "b": [4, 5][:: -1 if tb else 1], "bias": [1, 5] if ta else [5]}, {}, {"c": [3, 5]})
    for inverse, scale in itertools.product((0, 1), (1, 0.3)):
        yield "fft", {"inverse": inverse, "scale": scale}, {"x": [2, 5, 2]}, {}, {"y": [2, 5, 2]}
        yield "fft", {"inverse": inverse, "scale": scale, "axis": 1, "axes": 2}, {"x": [2, 3, 4, 2]}, {}, {"y": [2, 3, 4, 2]}
    yield "fft", {"axis": 0}, {"x": [6, 2, 2]}, {}, {"y": [6, 2, 2]}
    yield "fft", {}, {"x": [6, 2]}, {}, {"y": [6, 2]}
    for kernel in ("add", "mul"):
        yield kernel, {}, {"x": [3, 4], "y": [3, 4]}, {}, {"z": [3, 4]}
    yield "bias_add", {}, {"x": [3, 4], "b": [4]}, {}, {"y": [3, 4]}
    yield "bias_add", {}, {"x": [3, 2, 2], "b": [1, 2, 2]}, {}, {"y": [3, 2, 2]}
    for kernel in ("copy", "relu", "softmax"):
        yield kernel, {}, {"x": [3, 4]}, {}, {"y": [3, 4]}
    yield "softmax", {"scale": 0.6, "causal": 1}, {"x": [4, 4]}, {}, {"y": [4, 4]}
    yield "scale", {"a": -2.5}, {"x": [3, 4]}, {}, {"y": [3, 4]}
    yield "transpose", {}, {"x": [3, 4]}, {}, {"y": [4, 3]}
    yield "transpose", {}, {"x": [3, 4, 2]}, {}, {"y": [4, 3, 2]}
    yield "transpose", {}, {"x": [3, 8]}, {}, {"y": [4, 3, 2]}
    yield "transpose", {"axis": 1}, {"x": [2, 3, 4, 2]}, {}, {"y": [2, 4, 3, 2]}
    yield "transpose", {"axis": 1}, {"x": [6, 8]}, {}, {"y": [2, 4, 3, 2]}
    yield "transpose", {"axis": 1}, {"x": [2, 4, 3, 2]}, {}, {"y": [6, 8]}
    yield "retile", {}, {"x": [3, 4]}, {}, {"y": [3, 4]}
    for exclusive, reverse in pairs:
        yield "scan", {"exclusive": exclusive, "reverse": reverse}, {"x": [3, 4]}, {}, {"y": [3, 4]}
    yield "dot", {}, {"x": [7], "y": [7]}, {}, {"out": [1]}
    yield "reduce_sum", {}, {"x": [3, 4]}, {}, {"out": [1]}
    yield "reduce_max", {}, {"x": [3, 4]}, {}, {"out": [1]}
    yield "relu_grad", {}, {"x": [3, 4], "dy": [3, 4]}, {}, {"dx": [3, 4]}
    yield "dropout", {"p": 0.4, "seed": 11, "first": 3}, {"x": [5, 4]}, {}, {"y": [5, 4]}
    yield "rope", {"dim": 4, "first": 2, "length": 5, "base": 100}, {"x": [6, 8]}, {}, {"y": [6, 8]}
    yield "rope", {"dim": 4, "sign": -1}, {"x": [3, 4]}, {}, {"y": [3, 4]}
    yield "rope", {"dim": 4, "axis": 1}, {"x": [2, 3, 4]}, {}, {"y": [2, 3, 4]}
    yield "layernorm", {"eps": 1e-3}, {"x": [4, 6], "gain": [6], "bias": [6]}, {}, {"y": [4, 6]}
    yield "rmsnorm", {"eps": 1e-3}, {"x": [4, 6], "gain": [6]}, {}, {"y": [4, 6]}
    yield "embedding", {}, {"table": [5, 3]}, {"ids": rng.integers(0, 5, 7)}, {"y": [7, 3]}
    yield "softmax_xent", {"scale": 0.3}, {"logits": [4, 5]}, {"labels": rng.integers(0, 5, 4)}, {"loss": [1]}
    for stride, pad in ((1, 1), (2, 0)):
        side = (6 + 2 * pad - 3) // stride + 1
        yield "conv2d", {"stride": stride, "pad": pad}, {"x": [2, 3, 6, 6], "w": [4, 3, 3, 3]}, {}, {"y": [2, 4, side, side]}
    for descending in (0, 1):
        yield "sort", {"descending": descending}, {"x": [3, 4]}, {}, {"y": [3, 4]}
        yield "sort_pairs", {"descending": descending}, {"keys": [9], "values": [9]}, {}, {"sorted": [9], "moved": [9]}
    yield "qr", {}, {"a": [5, 3]}, {}, {"q": [5, 3], "r": [3, 3]}
    entries = {"row_ptr": np.array([0, 2, 2, 5, 9]), "col": np.array([4, 1, 0, 4, 2, 1, 1, 4, 0])}
    yield "spmv_csr", {}, {"val": [9], "x": [6]}, entries, {"y": [4]}
    yield "spmm_csr", {}, {"val": [9], "x": [6, 3]}, entries, {"y": [4, 3]}
    yield "jacobi2d", {}, {"x": [5, 4]}, {}, {"y": [5, 4]}
    yield "jacobi3d", {}, {"x": [4, 5, 3]}, {}, {"y": [4, 5, 3]}
    for causal in (0, 1):
        yield "attention", {"causal": causal}, {"q": [4, 5, 6], "k": [2, 5, 6], "v": [2, 5, 6]}, {}, {"y": [4, 5, 6]}
        yield "attention", {"causal": causal}, {"q": [2, 2, 5, 6], "k": [2, 1, 5, 6], "v": [2, 1, 5, 6]}, {}, {"y": [2, 2, 5, 6]}
        yield "attention", {"causal": causal, "dim": 3}, {"q": [5, 12], "k": [5, 6], "v": [5, 6]}, {}, {"y": [5, 12]}
        yield "attention", {"causal": causal, "dim": 3, "length": 4}, {"q": [8, 6], "k": [10, 6], "v": [10, 6]}, {}, {"y": [8, 6]}


class Kernels(unittest.TestCase):
    def check(self, rng, kernel, scalars, reals, wholes, results, weights, twice, devices=1, chosen=False):
        """`twice`: what the kernel reads is read by a map, too, so that adjoints have two inflows, in either order. `chosen`: results only choose."""
        buffers = {name: buffer(shape, **INPUT) for name, shape in reals.items()}
        buffers |= {name: buffer(ids.shape, "i32", **INPUT) for name, ids in wholes.items()}
        shapes, nodes = dict(results), []
        args = {name: name for name in [*reals, *wholes]} | scalars
        for name, shape in results.items():
            buffers[name] = buffer(shape)
        args |= {name: name for name in results}
        nodes.append({"id": "kernel", "kernel": kernel, "args": args})
        for name in weights if twice else ():
            buffers[f"also_{name}"], shapes[f"also_{name}"] = buffer(reals[name]), reals[name]
            node = {"id": f"also_{name}", "map": {"y": "x * x"}, "args": {"x": name, "y": f"also_{name}"}}
            nodes.insert(0 if twice == "before" else len(nodes), node)
        renamed = {"loss": "xent"} if "loss" in results else {}
        for old, new in renamed.items():
            buffers[new], shapes[new] = buffers.pop(old), shapes.pop(old)
            args[old] = new
        for name in [name for name in shapes if chosen and not name.startswith("also_")]:
            buffers[f"of_{name}"], shapes[f"of_{name}"] = buffer(shapes[name]), shapes.pop(name)
            nodes.append({"id": f"of_{name}", "map": {"z": "select(y > 0.1, 2, 1)"}, "args": {"y": name, "z": f"of_{name}"}})
        weigh(rng, buffers, nodes, shapes)
        given = {name: rng.normal(size=shape) for name, shape in reals.items()}
        others = {name: ids.astype(np.int32) for name, ids in wholes.items()} | {k: v for k, v in given.items() if k not in weights}
        at = {name: given[name] for name in weights}
        with self.subTest(kernel=kernel, scalars=scalars, weights=weights, twice=twice):
            compare(self, rng, model(buffers, nodes, weights), at, others, devices=devices, directions=1)

    def test_all_arguments(self):
        rng = np.random.default_rng(1)
        for case in cases(rng):
            for twice in (None, "before", "behind"):
                self.check(rng, *case, list(case[2]), twice)

    def test_results_that_give_nothing(self):
        """The loss follows from them, and their adjoints are zeros: those have to be there before the kernel of the gradient reads them."""
        rng = np.random.default_rng(8)
        for case in cases(rng):
            self.check(rng, *case, list(case[2]), "before", chosen=True)

    def test_one_argument(self):
        rng = np.random.default_rng(2)
        for case in cases(rng):
            for name in case[2]:
                self.check(rng, *case, [name], None)

    def test_products_of_16_bits_into_f32(self):
        """Small whole numbers, which 16 bits hold: gradients are the products of NumPy, and c keeps digits that 16 bits do not."""
        rng = np.random.default_rng(7)
        for ta, tb, stack in itertools.product((0, 1), (0, 1), ([], [2])):
            shapes = {"a": [*stack, *[3, 4][:: -1 if ta else 1]], "b": [*stack, *[4, 5][:: -1 if tb else 1]]}
            at = {name: rng.integers(-3, 4, shape).astype(np.float16) for name, shape in shapes.items()}
            at["b"] *= 100
            r = rng.integers(-4, 5, [*stack, 3, 5]).astype(np.float32)
            buffers = {name: buffer(shape, "f16", **INPUT) for name, shape in shapes.items()}
            buffers |= {"c": buffer(r.shape, "f32", output=True), "r": buffer(r.shape, "f32", **INPUT), "loss": buffer([1], output=True)}
            nodes = [{"id": "c", "kernel": "gemm_batched" if stack else "gemm", "args": {"alpha": 2, "ta": ta, "tb": tb, "a": "a", "b": "b", "c": "c"}},
                     {"id": "loss", "reduce": {"loss": "sum((c + 1) * r)"}, "args": {"c": "c", "r": "r", "loss": "loss"}}]
            for name in ("a", "b"):
                buffers["also_" + name] = buffer([1])
                nodes.append({"id": "also_" + name, "reduce": {"loss": "sum(x)"}, "args": {"x": name, "loss": "loss"}, "access": {"loss": "sum"}})
            text = model(buffers, nodes, ["a", "b"])
            run = gantry.parse(text, devices=1, train=True).schedule(1, effort=0).run(backend="host")
            got = run(**at, r=r)
            run.close()
            A, B = (x.astype(float).swapaxes(-1, -2) if t else x.astype(float) for x, t in ((at["a"], ta), (at["b"], tb)))
            da, db = 2 * r @ B.swapaxes(-1, -2) + 1, 2 * A.swapaxes(-1, -2) @ r + 1
            np.testing.assert_array_equal(got["c"], 2 * A @ B)
            np.testing.assert_array_equal(got["a.grad"], (da.swapaxes(-1, -2) if ta else da).astype(np.float16))
            np.testing.assert_array_equal(got["b.grad"], (db.swapaxes(-1, -2) if tb else db).astype(np.float16))
            self.assertEqual(got["c"].dtype, np.float32)

    def attention(self, shape, q, more=(), buffers=None, **cut):
        """The loss of attention over parts or tiles `q` of a buffer, and `more` nodes; what the nodes of its gradient read as lse."""
        rng = np.random.default_rng(8)
        all_ = {"q": buffer(shape, **INPUT, **cut), "y": buffer(shape, **cut), "s": buffer([1]), **(buffers or {})}
        names = [at if isinstance(at, dict) else {"q": "q" + at, "y": "y" + at} for at in q]
        nodes = [{"id": f"a{i}", "kernel": "attention", "args": {"causal": i % 2, "k": at["q"], "v": at["q"], **at}} for i, at in enumerate(names)] + list(more)
        loss = [{"id": f"loss{i}", "reduce": {"s": "sum(y * y * y)"}, "args": {"y": at["y"], "s": "loss"}, "access": {"s": "sum"}} for i, at in enumerate(names)]
        text = model({**all_, "loss": buffer([1], output=True)}, nodes + loss, ["q"])
        compare(self, rng, text, {"q": rng.normal(size=shape)})
        made = json.loads(gantry.parse(text, train=True).json())["nodes"]
        kept = [node["args"].get("lse") for node in made if node.get("kernel") == "attention"]
        read = [node["args"].get("lse") for node in made if node.get("kernel") == "attention_grad"]
        self.assertEqual(len(read), len(kept))
        return kept, read[::-1]

    def test_logarithms_of_attention(self):
        """Its gradient takes what it keeps: of buffers, parts, rows and tiles of whole heads. Others make it again."""
        for shape, q, wanted, cut in (([2, 4, 3], [""], ["y.lse"], {}), ([4, 4, 3], ["[0]", "[1]"], ["y.lse[0]", "y.lse[1]"], {"split": 2}),
                                      ([3, 2, 4, 3], ["{0:2}", "{2:3}"], ["y.lse{0:2}", "y.lse{2:3}"], {}),
                                      ([4, 4, 3], ["[0][0][0]", "[1][0][0]"], ["y.lse[0][0]", "y.lse[1][0]"], {"tiles": [2, 1, 1]}),
                                      ([2, 4, 6], ["[0][0][0]", "[0][0][1]"], [None, None], {"tiles": [1, 1, 2]})):
            self.assertEqual(self.attention(shape, q, **cut), (wanted, wanted), cut)

    def test_logarithms_of_rows(self):
        """Where heads lie side by side: of whole sequences, and of parts that have whole ones."""
        for shape, at, length, wanted, cut in (([8, 6], [""], 4, ["y.lse"], {}), ([8, 6], [""], 0, ["y.lse"], {}),
                                               ([8, 6], ["[0]", "[1]"], 2, ["y.lse[0]", "y.lse[1]"], {"split": 2}),
                                               ([8, 6], ["[0]", "[1]"], 0, ["y.lse[0]", "y.lse[1]"], {"split": 2}),
                                               ([12, 6], ["{0:4}", "{4:12}"], 4, ["y.lse{0:1}", "y.lse{1:3}"], {}),
                                               ([12, 6], [""], 4, [None], {"split": 2})):
            q = [{"q": "q" + one, "y": "y" + one, "dim": 3, "length": length} for one in at]
            self.assertEqual(self.attention(shape, q, **cut), (wanted, wanted), (shape, at, length))

    def test_logarithms_of_other_heads(self):
        """Nodes that give rows of one buffer with heads of different widths: what is kept has the first one's heads, the other's gradient makes its own."""
        for at, cut in ((("[0]", "[1]"), {"split": 2}), (("{0:2}", "{2:8}"), {})):
            q = [{"q": "q" + one, "y": "y" + one, "dim": dim, "length": 2} for one, dim in zip(at, (3, 6))]
            kept, read = self.attention([8, 6], q, **cut)
            self.assertEqual((kept[1], read), (None, kept), cut)
            self.assertIsNotNone(kept[0])

    def test_logarithms_that_the_model_has(self):
        """Where another node writes them, too, they are not those of the node that goes back: not even if that comes later."""
        mine = [{"q": "q", "y": "y", "lse": "mine"}]
        there = {"mine": buffer([2, 4], output=True)}
        other = {"id": "other", "map": {"m": "1 + 0 * m0"}, "args": {"m": "mine", "m0": "r"}}
        self.assertEqual(self.attention([2, 4, 3], mine, buffers=there), (["mine"], ["mine"]))
        self.assertEqual(self.attention([2, 4, 3], mine, [other], there | {"r": buffer([2, 4], init=0)}), (["mine"], [None]))

    def test_table_is_whole(self):
        """Each row of the table has a case here, or, of f32 alone, a test below, or, where it changes something in place or gives whole numbers, in another
        file; and each kernel with a formula that overwrites nothing."""
        text = (ROOT / "src/graph/adjoint/kernels.c").read_text()
        rows = set(re.findall(r'^    \{ \.kernel = "(\w+)", ', text, re.MULTILINE))
        manifests = {path.stem: path.read_text() for path in (ROOT / "kernels").glob("*/*.c")}
        formulas = {name for name, text in manifests.items() if ".formula = " in text and "GANTRY_READWRITE" not in text}
        self.assertGreater(len(rows), 12)
        self.assertGreater(len(formulas), 8)
        self.assertEqual((rows | formulas) - {"filter2d", "gaussian_blur", "getrf", "getrs", "potrf", "resize", "syrk", "top_k", "trsm"}, {case[0] for case in cases(np.random.default_rng(3))})

    def test_own_kernels(self):
        """Code of one's own, of which the graph says in formulas what it computes, is a map and a sum to the backward pass."""
        rng = np.random.default_rng(5)
        code = """#include <gantry/kernel.h>
            #include <math.h>
            gantry_status swish(const gantry_launch *l) {
                const double *x = l->arg[1].data; double *y = l->arg[2].data;
                for (int64_t i = 0; i < l->arg[1].rows * l->arg[1].row_bytes / 8; i++)
                    y[i] = x[i] / (1 + exp(-l->arg[0].number * x[i]));
                return GANTRY_OK;
            }
            gantry_status power(const gantry_launch *l) {
                const double *x = l->arg[0].data; double *to = l->arg[1].data;
                for (int64_t i = 0; i < l->arg[0].rows * l->arg[0].row_bytes / 8; i++)
                    to[0] += x[i] * x[i] * x[i];
                return GANTRY_OK;
            }"""
        real = {"dtype": "f64"}
        kernels = {"swish": {"host": "own.c", "args": [{"name": "b", "type": "f64"}, {"name": "x", "access": "read", **real},
                                                       {"name": "y", "access": "write", **real}], "map": {"y": "x / (1 + exp(-b * x))"}},
                   "power": {"host": "own.c", "args": [{"name": "x", "access": "read", **real}, {"name": "to", "access": "sum", **real}],
                             "reduce": {"to": "sum(x * x * x)"}}}
        for devices in (1, 2):
            parts = {"split": 2} if devices == 2 else {}
            buffers = {"x": buffer([6, 4], **INPUT, **parts), "w": buffer([4], **INPUT), "h": buffer([6, 4], **parts), "y": buffer([6, 4], **parts),
                       "loss": buffer([1], output=True)}
            nodes = [{"id": "h", "map": {"h": "x * w"}, "args": {"x": "x", "w": "w", "h": "h"}},
                     {"id": "y", "kernel": "swish", "args": {"b": 1.5, "x": "h", "y": "y"}}, {"id": "loss", "kernel": "power", "args": {"x": "y", "to": "loss"}}]
            if devices == 2:
                nodes = [{**n, "id": n["id"] + "[i]", "for": {"i": 2}, "args": {k: f"{v}[i]" if v in ("x", "h", "y") else v for k, v in n["args"].items()}}
                         for n in nodes]
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "own.c").write_text(code)
                text = model(buffers, nodes, ["w"]) | {"kernels": kernels}
                compare(self, rng, text, {"w": rng.normal(size=4)}, {"x": rng.normal(size=(6, 4))}, devices=devices, folder=folder)

    def test_loss_of_a_kernel(self):
        """softmax_xent gives the loss itself, in parts, on two devices."""
        rng = np.random.default_rng(4)
        labels = rng.integers(0, 5, 6).astype(np.int32)
        buffers = {"x": buffer([6, 5], split=2, **INPUT), "labels": buffer([6], "i32", split=2, **INPUT), "loss": buffer([1], output=True)}
        nodes = [{"id": f"loss{i}", "kernel": "softmax_xent",
                  "args": {"scale": 0.5, "logits": f"x[{i}]", "labels": f"labels[{i}]", "loss": "loss"}} for i in range(2)]
        for extra in ([], [{"id": "more", "reduce": {"s": "sum(x * x)"}, "args": {"x": "x", "s": "loss"}, "access": {"s": "sum"}}]):
            for order in (nodes + extra, extra + nodes):
                compare(self, rng, model(dict(buffers), order, ["x"]), {"x": rng.normal(size=(6, 5))}, {"labels": labels}, devices=2)

    def test_tiles(self):
        """Nodes that read and write a tile each, weights in tiles too; reductions along either axis of a tile."""
        rng = np.random.default_rng(5)
        buffers = {"x": buffer([5, 4], tiles=[1, 2], **INPUT), "w": buffer([4, 6], tiles=[2, 3], **INPUT), "b": buffer([1, 6], tiles=[1, 3], **INPUT),
                   "y": buffer([5, 6], tiles=[1, 3]), "h": buffer([5, 6], tiles=[1, 3]), "most": buffer([6], tiles=[3]),
                   "least": buffer([15], tiles=[3])}
        nodes = [{"id": f"y{i}{j}", "kernel": "gemm", "args": {"a": f"x[0][{i}]", "b": f"w[{i}][{j}]", "c": f"y[0][{j}]"}, "access": {"c": "sum"}}
                 for i in range(2) for j in range(3)]
        for j in range(3):
            tile = f"[0][{j}]"
            nodes += [{"id": f"h{j}", "map": {"h": "tanh(y + b)"}, "args": {"y": "y" + tile, "b": "b" + tile, "h": "h" + tile}},
                      {"id": f"most{j}", "reduce": {"m": "max(h, 0)"}, "args": {"h": "h" + tile, "m": f"most[{j}]"}},
                      {"id": f"least{j}", "reduce": {"m": "min(h * h, 1)"}, "args": {"h": "h" + tile, "m": f"least[{j}]"}}]
        for name, shape in (("most", [6]), ("least", [15])):
            buffers["all" + name] = buffer(shape, split=3)
            nodes += [{"id": f"{name}copy{j}", "copy": {"from": f"{name}[{j}]", "to": f"all{name}[{j}]"}} for j in range(3)]
        weigh(rng, buffers, nodes, {"allmost": [6], "allleast": [15]})
        at = {name: rng.normal(size=buffers[name]["shape"]) for name in ("x", "w", "b")}
        for devices in (1, 2):
            compare(self, rng, model(buffers, nodes, ["x", "w", "b"]), at, devices=devices)

    def test_other_tiles(self):
        """An array from tiles to others, all at once or by pieces that both cuts consist of, read by one node or by two."""
        rng = np.random.default_rng(6)
        for turn in range(12):
            shape = [int(n) for n in rng.integers(3, 8, int(rng.integers(2, 4)))]
            cuts = [[int(rng.integers(1, min(4, n + 1))) for n in shape] for _ in range(2)]
            rows, columns = int(rng.integers(1, 4)), int(rng.integers(1, 4))
            rest = [1] * (len(shape) - 2)
            buffers = {"x": buffer(shape, tiles=cuts[0], **INPUT), "other": buffer(shape, tiles=cuts[1]), "slabs": buffer(shape, tiles=[rows, 1, *rest]),
                       "both": buffer(shape, tiles=[rows, columns, *rest]), "turned": buffer(shape, tiles=[1, columns, *rest]), "y": buffer(shape)}
            end = "[0]" * len(rest)
            nodes = [{"id": "other", "kernel": "retile", "args": {"x": "x", "y": "other"}},
                     {"id": "slabs", "kernel": "retile", "args": {"x": "other", "y": "slabs"}},
                     *({"id": f"cut{i}", "kernel": "retile", "args": {"x": f"slabs[{i}][0]{end}", "y": f"both[{i}][*]{end}"}} for i in range(rows)),
                     *({"id": f"join{j}", "kernel": "retile", "args": {"x": f"both[*][{j}]{end}", "y": f"turned[0][{j}]{end}"}} for j in range(columns)),
                     {"id": "y", "kernel": "retile", "args": {"x": "turned", "y": "y"}}]
            results = {"y": shape}
            if turn % 2:
                buffers["also"], results["also"] = buffer(shape), shape
                nodes.insert(int(rng.integers(1, len(nodes) + 1)), {"id": "also", "kernel": "retile", "args": {"x": "x", "y": "also"}})
            buffers["square"], results["square"] = buffer(shape), shape
            nodes.append({"id": "square", "map": {"z": "y * y"}, "args": {"y": "y", "z": "square"}})
            weigh(rng, buffers, nodes, results)
            for devices in (1, 2):
                compare(self, rng, model(dict(buffers), nodes, ["x"]), {"x": rng.normal(size=shape)}, devices=devices, directions=1)

    def test_stencils(self):
        """Sweeps over parts with halos, of nodes that lie one behind the other or among those that read them; twice, and beside another reader."""
        rng = np.random.default_rng(8)
        for turn in range(16):
            rank, parts = 2 + turn % 2, int(rng.integers(1, 5))
            shape = [int(n) for n in rng.integers(1 if turn < 4 else 3, 9, rank)]
            shape[0] = max(shape[0], parts)
            cut = {"split": parts} if turn % 5 else {}
            parts = parts if cut else 1
            kernel, piece = f"jacobi{rank}d", (lambda name, i, halo="": f"{name}[{i}]{halo}" if cut else name)
            buffers = {"x": buffer(shape, **cut, **INPUT), **{name: buffer(shape, **cut) for name in ("f", "y", "s", "z")}}
            before = [{"id": f"f{i}", "map": {"f": "x * x"}, "args": {"x": piece("x", i), "f": piece("f", i)}} for i in range(parts)]
            sweep = [[{"id": f"{to}{i}", "kernel": kernel, "args": {"x": piece(of, i, "~1"), "y": piece(to, i)}} for i in range(parts)]
                     for of, to in (("f", "y"), ("s", "z"))]
            square = [{"id": f"s{i}", "map": {"s": "y * sqrt(1 + y * y)"}, "args": {"y": piece("y", i), "s": piece("s", i)}} for i in range(parts)]
            among = [node for pair in zip(sweep[0], square) for node in pair] if turn % 3 else sweep[0] + square
            nodes, results = before + among + sweep[1], {"z": shape}
            if turn % 4 > 1:
                buffers["also"], results["also"] = buffer(shape), shape
                nodes.insert(len(before) if turn % 4 == 2 else len(nodes), {"id": "also", "map": {"y": "x * x * x"}, "args": {"x": "f", "y": "also"}})
            weigh(rng, buffers, nodes, results)
            with self.subTest(turn=turn, shape=shape, parts=parts):
                for devices in (1, 2):
                    compare(self, rng, model(dict(buffers), nodes, ["x"]), {"x": rng.normal(size=shape)}, devices=devices, directions=1)

    def test_stencils_of_tiles(self):
        """The same over blocks of several axes, whose halos have edges and corners; tiles in another order, twice, and beside another reader."""
        rng = np.random.default_rng(9)
        for turn in range(12):
            rank = 2 + turn % 2
            tiles = [int(n) for n in rng.integers(1, 4, rank)]
            shape = [int(n * t + rng.integers(0, 3)) for n, t in zip(rng.integers(1 if turn < 3 else 2, 4, rank), tiles)]
            every = list(itertools.product(*map(range, tiles)))
            kernel, piece = f"jacobi{rank}d", (lambda name, at, halo="": name + "".join(f"[{i}]" for i in at) + halo)
            buffers = {name: buffer(shape, tiles=tiles) for name in "xfyzs"}
            buffers["x"] |= INPUT

            def nodes_of(to, make):
                order = every if turn % 2 else [every[i] for i in rng.permutation(len(every))]
                return [{"id": f"{to}{at}", **make(at)} for at in order]

            nodes = nodes_of("f", lambda at: {"map": {"f": "x * x"}, "args": {"x": piece("x", at), "f": piece("f", at)}})
            nodes += nodes_of("y", lambda at: {"kernel": kernel, "args": {"x": piece("f", at, "~1"), "y": piece("y", at)}})
            nodes += nodes_of("s", lambda at: {"map": {"s": "y * sqrt(1 + y * y)"}, "args": {"y": piece("y", at), "s": piece("s", at)}})
            nodes += nodes_of("z", lambda at: {"kernel": kernel, "args": {"x": piece("s", at, "~1"), "y": piece("z", at)}})
            if turn % 3 == 0:
                buffers["also"] = buffer(shape, tiles=tiles)
                nodes += nodes_of("also", lambda at: {"map": {"y": "x * x * x"}, "args": {"x": piece("f", at), "y": piece("also", at)}})
            buffers["loss"] = buffer([1], init=0, output=True)
            for name in ("z", "also")[:1 + (turn % 3 == 0)]:
                c = f"c_{name}"
                buffers[c] = buffer(shape, tiles=tiles, init={"random": {"seed": turn, "low": -1, "high": 1}}, **{"class": "const"})
                nodes += [{"id": f"weigh_{name}{at}", "reduce": {"l": "sum(y * c)"}, "access": {"l": "sum"},
                           "args": {"y": piece(name, at), "c": piece(c, at), "l": "loss"}} for at in every]
            with self.subTest(turn=turn, shape=shape, tiles=tiles):
                for devices in (1, 2):
                    compare(self, rng, model(dict(buffers), nodes, ["x"]), {"x": rng.normal(size=shape)}, devices=devices, directions=1)

    def test_filters(self):
        """filter2d and gaussian_blur, which are of f32 alone: the gradient of a sum of products is the filter's matrix, transposed, by NumPy."""
        rng = np.random.default_rng(10)
        for turn in range(24):
            parts, frames, tiled = int(rng.integers(1, 4)), turn % 4 == 3, turn >= 16
            shape = [int(n) for n in rng.integers(1 if turn < 4 else 6, 12, 2)]
            shape[0] = shape[0] if frames else max(shape[0], 3 * parts)
            whole = [parts + 1, *shape] if frames else shape
            high, wide = (2 * int(n) + 1 for n in rng.integers(0, 3, 2))
            weights, sigma = rng.uniform(-1, 1, (high, wide)).astype(np.float32), float(rng.uniform(0.3, 1))
            if turn % 2:
                high = wide = 2 * int(np.ceil(3 * sigma)) + 1
                line = np.exp(-np.arange(-(high // 2), high // 2 + 1) ** 2 / (2 * sigma * sigma))
                weights = np.outer(line, line) / line.sum() ** 2
            kernel, more = ("gaussian_blur", {"sigma": sigma}) if turn % 2 else ("filter2d", {"weights": "w[1][0]" if tiled else "w"})
            halo = f"~{'0,' if frames else ''}{high // 2},{wide // 2}" if tiled else "" if frames else f"~{high // 2}"
            tiles = [1 if frames and k == 0 else parts if k == 0 else 2 for k in range(len(whole))]
            cut = lambda **also: buffer(whole, "f32", **({"tiles": tiles} if tiled else {"split": parts}), **also)  # noqa: E731
            buffers = {"x": cut(**INPUT), "h": cut(), "y": cut(), "r": cut(**INPUT), "loss": buffer([1], init=0, output=True)}
            if kernel == "filter2d":
                buffers["w"] = buffer([2 * high if tiled else high, wide], "f32", **({"tiles": [2, 1]} if tiled else {}), **INPUT)
            every = ["".join(f"[{i}]" for i in at) for at in itertools.product(*map(range, tiles if tiled else [parts]))]
            nodes = [{"id": f"h{at}", "map": {"h": "x * 2"}, "args": {"x": f"x{at}", "h": f"h{at}"}} for at in every]
            nodes += [{"id": f"y{at}", "kernel": kernel, "args": {**more, "image": f"h{at}{halo}", "out": f"y{at}"}} for at in every]
            nodes += [{"id": f"l{at}", "reduce": {"l": "sum(y * r)"}, "access": {"l": "sum"}, "args": {"y": f"y{at}", "r": f"r{at}", "l": "loss"}} for at in every]
            x, r = (rng.uniform(-1, 1, whole).astype(np.float32) for _ in range(2))
            h, v = shape
            units = np.pad(np.eye(h * v).reshape(-1, h, v), [(0, 0), (high // 2,) * 2, (wide // 2,) * 2], mode="edge")
            matrix = sum(float(weights[i, j]) * units[:, i:i + h, j:j + v] for i in range(high) for j in range(wide)).reshape(h * v, h * v)
            want = 2 * (r.astype(float).reshape(-1, h * v) @ matrix.T).reshape(whole)
            for devices in (1, 2):
                graph = gantry.parse(model(buffers, nodes, ["x"]), train=True, devices=devices)
                given = {"x": x, "r": r} | ({"w": np.concatenate([-weights, weights]) if tiled else weights} if kernel == "filter2d" else {})
                got = graph.schedule(devices, effort=0).run(backend="host")(**given)["x.grad"]
                with self.subTest(turn=turn, kernel=kernel, shape=whole, parts=parts, devices=devices):
                    np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * max(1, float(np.abs(matrix).sum(1).max())))

    def test_resize(self):
        """Of f32 alone: the gradient of a sum of products is the matrix that each axis is multiplied by, transposed, by NumPy; frames in parts, read by others, too."""
        def matrix(to, size):
            made = np.zeros((to, size))
            for i in range(to):
                at = (i + 0.5) * size / to - 0.5
                first = int(np.floor(at))
                for pixel, part in ((first, first + 1 - at), (first + 1, at - first)):
                    made[i, min(max(pixel, 0), size - 1)] += part
            return made

        rng = np.random.default_rng(21)
        for frames, old, new, channels, parts, also in ((1, (5, 7), (3, 4), (), 1, False), (4, (4, 3), (9, 5), (), 2, True), (3, (8, 6), (4, 3), (3,), 1, False),
                                                        (4, (3, 5), (6, 7), (2,), 2, True), (2, (1, 4), (5, 1), (1,), 1, True), (2, (6, 6), (6, 6), (), 1, False)):
            split = {"split": parts} if parts > 1 else {}
            cut = lambda size, **how: buffer([frames, *size, *channels], "f32", **split, **how)  # noqa: E731
            buffers = {"x": cut(old, **INPUT), "y": cut(new), "r": cut(new, **INPUT), "s": cut(old, **INPUT), "loss": buffer([1], "f32", output=True)}
            nodes = []
            for i in range(parts):
                at = f"[{i}]" if split else ""
                nodes += [{"id": f"y{i}", "kernel": "resize", "args": {"image": "x" + at, "out": "y" + at}},
                          {"id": f"l{i}", "reduce": {"l": "sum(y * r)"}, "access": {"l": "sum"}, "args": {"y": "y" + at, "r": "r" + at, "l": "loss"}}]
                if also:
                    nodes.append({"id": f"also{i}", "reduce": {"l": "sum(x * s)"}, "access": {"l": "sum"}, "args": {"x": "x" + at, "s": "s" + at, "l": "loss"}})
            given = {name: rng.normal(size=buffers[name]["shape"]).astype(np.float32) for name in ("x", "r", "s")}
            if not also:
                del buffers["s"], given["s"]
            down, across = matrix(new[0], old[0]), matrix(new[1], old[1])
            want = np.einsum("th,uw,ftu...->fhw...", down, across, given["r"].astype(np.float64)) + given.get("s", 0)
            with self.subTest(old=old, new=new, channels=channels, parts=parts):
                run = gantry.parse(model(buffers, nodes, ["x"]), train=True, devices=parts).schedule(parts, effort=0).run(backend="host")
                np.testing.assert_allclose(run(**given)["x.grad"], want, rtol=1e-5, atol=1e-5)
                run.close()

    def test_filters_refused(self):
        """Weights of a filter, and parts with filters of their own."""
        buffers = {"x": buffer([6, 4], "f32", split=2, **INPUT), "y": buffer([6, 4], "f32", split=2), "w": buffer([3, 3], "f32", **INPUT),
                   "loss": buffer([1], output=True)}
        loss = {"id": "l", "reduce": {"l": "sum(y)"}, "args": {"y": "y", "l": "loss"}}
        blurs = [{"id": f"y{i}", "kernel": "gaussian_blur", "args": {"sigma": 0.3 + 0.01 * i, "image": f"x[{i}]~1", "out": f"y[{i}]"}} for i in range(2)]
        with self.assertRaisesRegex(gantry.GraphError, 'node "y1" filters rows of "x" in another way than node "y0".*give both one filter'):
            gantry.parse(model(dict(buffers), [*blurs, loss], ["x"]), train=True)
        filtered = {"id": "y[i]", "for": {"i": 2}, "kernel": "filter2d", "args": {"weights": "w", "image": "x[i]~1", "out": "y[i]"}}
        with self.assertRaisesRegex(gantry.GraphError, 'the weights of its filter, "w", which have no adjoint; use conv2d'):
            gantry.parse(model(dict(buffers), [filtered, loss], ["w"]), train=True)


if __name__ == "__main__":
    unittest.main()
