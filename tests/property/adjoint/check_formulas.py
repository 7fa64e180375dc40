# SPDX-License-Identifier: Apache-2.0
"""Adjoints of maps, reductions and copies: random formulas of the whole grammar over random shapes, parts and devices."""
import re
import unittest

from differences import buffer, compare, gantry, model, np, weigh

UNARY = ["-({})", "abs({})", "square(sin({}))", "sqrt(square({}) + 0.5)", "rsqrt(square({}) + 1)", "exp(sin({}))", "log(abs({}) + 1.5)",
         "sin({})", "cos({})", "tanh({})", "erf({})", "f64({})", "floor({})", "ceil({})", "pow({}, 2)", "pow(abs({}) + 0.5, 1.5)",
         "pow(square({}) + 1, -1)"]
BINARY = ["({} + {})", "({} - {})", "{} * {}", "({}) / (square({}) + 1)", "min({}, {})", "max({}, {})",
          "pow(abs({}) + 0.5, sin({}))"]


def formula(rng, names, depth):
    if depth == 0 or rng.random() < 0.15:
        return str(rng.choice(names)) if rng.random() < 0.85 else str(rng.choice(["0.5", "2", "1.25", "3"]))
    def inside():
        return formula(rng, names, depth - 1)
    kind = rng.random()
    if kind < 0.45:
        return str(rng.choice(UNARY)).format(inside())
    if kind < 0.9:
        return "(" + str(rng.choice(BINARY)).format(inside(), inside()) + ")"
    return f"select({inside()} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {inside()}, {inside()}, {inside()})"


def shape_of(rng):
    return [int(n) for n in rng.integers(2, 6, rng.integers(1, 4))]


def broadcast(rng, shape):
    """A shape that is one element along some axes, or has no axes before some."""
    kind = rng.integers(6)
    first = int(rng.integers(len(shape)))
    last = int(rng.integers(first, len(shape))) + 1
    if kind == 0:
        return list(shape)
    if kind == 1:
        return [1]
    if kind == 2 and first > 0:
        return list(shape[first:])
    if kind >= 4:
        low = [1 if rng.random() < 0.5 else n for n in shape]
        while kind == 5 and low[0] == 1 and len(low) > 1:
            low = low[1:]
        return low
    return [1 if first <= k < last else n for k, n in enumerate(shape)]


class Formulas(unittest.TestCase):
    def test_maps(self):
        rng = np.random.default_rng(1)
        for turn in range(120):
            shape, names = shape_of(rng), ["a", "b", "c"]
            shapes = {"a": shape, "b": broadcast(rng, shape), "c": broadcast(rng, shape)}
            texts = {name: formula(rng, names, 3) for name in ("y", "z")[: rng.integers(1, 3)]}
            if not all(re.search(rf"\b{name}\b", " ".join(texts.values())) for name in names):
                texts["y"] = " + ".join([f"sin({texts['y']})", "a * b", "c"])
            buffers = {name: buffer(s, **{"class": "input"}) for name, s in shapes.items()}
            buffers |= {name: buffer(shape) for name in texts}
            nodes = [{"id": "map", "map": texts, "args": {name: name for name in list(texts) + names}}]
            weigh(rng, buffers, nodes, {name: shape for name in texts})
            at = {name: rng.uniform(0.3, 2, s) * rng.choice([-1, 1], s) for name, s in shapes.items()}
            with self.subTest(turn=turn):
                compare(self, rng, model(buffers, nodes, names), at, fuse=bool(turn % 2))

    def test_brackets(self):
        """What operators bind is what it was where a formula is printed again."""
        rng = np.random.default_rng(7)
        for text in ("sin(a - (b - c))", "sin(a - (b + c))", "sin(a / (b * c))", "sin(a / (b / c))", "sin(a * (b / c))", "sin((a - b) * -c)",
                     "exp(-(a + b) * c)", "sin(-(-a) - -b * c)", "select((a < b) < c, sin(a) * b, c * c)", "select(a < (b < c), sin(a) * b, c * c)",
                     "sin((a + b) / (c - a))", "sin(a * 2.5e-1 - 1e0) * b * c"):
            buffers = {name: buffer([3], **{"class": "input"}) for name in "abc"}
            buffers["y"] = buffer([3])
            nodes = [{"id": "map", "map": {"y": text}, "args": {name: name for name in "abcy"}}]
            weigh(rng, buffers, nodes, {"y": [3]})
            with self.subTest(text=text):
                compare(self, rng, model(buffers, nodes, "abc"), {name: rng.uniform(0.3, 2, 3) * rng.choice([-1, 1], 3) for name in "abc"})

    def test_reductions(self):
        rng = np.random.default_rng(2)
        for turn in range(120):
            shape, names = shape_of(rng), ["a", "b"]
            shapes = {"a": shape, "b": broadcast(rng, shape)}
            word = str(rng.choice(["sum", "mean", "min", "max"]))
            axes = [int(axis) for axis in rng.permutation(len(shape))[:1 if turn % 2 else rng.integers(1, len(shape) + 1)]]
            kept = [1 if k in axes else n for k, n in enumerate(shape)]
            gone = [n for k, n in enumerate(shape) if k not in axes] or [1]
            named, from_end = (", ".join(str(axis - less) for axis in axes) for less in (0, len(shape)))
            text, result = [(f"{word}(F)", [1]), (f"{word}(F)", kept), (f"{word}(F, {named})", gone), (f"{word}(F, {from_end})", kept),
                            (f"{word}(F)", list(shape[1:]) or [1])][rng.integers(5)]
            inner = f"sin({formula(rng, names, 2)}) + a * 0.7 + b * {rng.choice(['a', '0.3'])}"
            buffers = {name: buffer(s, **{"class": "input"}) for name, s in shapes.items()}
            buffers["y"] = buffer(result)
            formulas, args, results = {"y": text.replace("F", inner)}, {"a": "a", "b": "b", "y": "y"}, {"y": result}
            if turn % 3 == 0: # elements beside the reduction
                buffers["z"] = buffer(shape)
                formulas["z"], args["z"], results["z"] = "a * cos(b)", "z", shape
            nodes = [{"id": "reduce", "reduce": formulas, "args": args}]
            weigh(rng, buffers, nodes, results)
            at = {name: rng.uniform(0.3, 2, s) * rng.choice([-1, 1], s) for name, s in shapes.items()}
            with self.subTest(turn=turn):
                compare(self, rng, model(buffers, nodes, names), at, fuse=bool(turn % 2))

    def test_axes_apart(self):
        """Sums along axes that others lie between; in parts, which add to one adjoint."""
        rng = np.random.default_rng(8)
        for low, parts in [([3, 1, 1], 1), ([4, 1, 2, 1], 2), ([1, 3, 1, 1], 2), ([1, 3, 1, 5], 1), ([4, 1, 1, 5], 1), ([3, 1, 5], 4), ([1, 3, 1, 5], 4)]:
            shape, split = [4, 3, 2, 5], {"split": parts} if parts > 1 else {}
            b = "b[i]" if len(low) == 4 and low[0] == 4 and parts > 1 else "b"
            buffers = {"a": buffer(shape, **split, **{"class": "input"}), "y": buffer(shape, **split), "s": buffer([4, 3, 1, 1], **split),
                       "b": buffer(low, **(split if b == "b[i]" else {}), **{"class": "input"})}
            at, part = ("a[i]", "y[i]", "s[i]"), {"for": {"i": parts}}
            nodes = [{"id": "map[i]", **part, "map": {"y": "sin(a * b) + b"}, "args": {"a": at[0], "b": b, "y": at[1]}},
                     {"id": "sum[i]", **part, "reduce": {"s": "sum(cos(y + b))"}, "args": {"y": at[1], "b": b, "s": at[2]}}]
            if parts == 1:
                at = {"a[i]": "a", "y[i]": "y", "s[i]": "s", "b": "b"}
                nodes = [{**{k: v for k, v in node.items() if k != "for"}, "id": node["id"][:3], "args": {k: at[v] for k, v in node["args"].items()}}
                         for node in nodes]
            weigh(rng, buffers, nodes, {"y": shape, "s": [4, 3, 1, 1]})
            with self.subTest(low=low, parts=parts):
                compare(self, rng, model(buffers, nodes, ["a", "b"]), {"a": rng.normal(size=shape), "b": rng.normal(size=low)}, devices=min(parts, 2))
            if b == "b[i]" or parts == 1:
                continue
            for name in ("a", "y", "s"):
                buffers[name]["split"] = {"auto": parts}
            with self.subTest(low=low, automatic=parts):
                compare(self, rng, model(buffers, nodes, ["a", "b"]), {"a": rng.normal(size=shape), "b": rng.normal(size=low)}, devices=min(parts, 2))

    def test_named_axes(self):
        """Results that lack the axes that were reduced, among and beside axes of one element; in parts of an axis that is kept."""
        rng = np.random.default_rng(9)
        for shape, axes, parts in [([2, 4, 1, 5], "1", 1), ([2, 4, 1, 5], "1, 3", 2), ([2, 3, 4, 5], "0, 2", 1), ([2, 3, 4, 5], "1, 3", 2), ([3, 3, 3], "2, 0", 1),
                                   ([2, 1, 3, 4], "0, 2", 1), ([4, 2, 3, 2, 2], "-1, 2", 4), ([2, 3, 2, 3, 2], "0, 2, 4", 1)]:
            named = [int(axis) % len(shape) for axis in axes.split(",")]
            result = [n for k, n in enumerate(shape) if k not in named]
            for word in ("sum", "mean", "max"):
                split = {"split": parts} if parts > 1 else {}
                buffers = {"a": buffer(shape, **split, **{"class": "input"}), "b": buffer(result, **{"class": "input"}), "y": buffer(result, **split)}
                part = ({"for": {"i": parts}}, "sum[i]", "a[i]", "y[i]") if parts > 1 else ({}, "sum", "a", "y")
                nodes = [{"id": part[1], **part[0], "reduce": {"y": f"{word}(sin(a) * a, {axes})"}, "args": {"a": part[2], "y": part[3]}},
                         {"id": "more", "map": {"z": "y * cos(b)"}, "args": {"y": "y", "b": "b", "z": "z"}}]
                buffers["z"] = buffer(result)
                weigh(rng, buffers, nodes, {"z": result})
                with self.subTest(shape=shape, axes=axes, word=word):
                    compare(self, rng, model(buffers, nodes, ["a", "b"]), {"a": rng.normal(size=shape), "b": rng.normal(size=result)}, devices=min(parts, 2))

    def test_no_region_spans(self):
        """A sum over a shape that only all regions have together: their adjoints name too few of them."""
        rng = np.random.default_rng(3)
        for text, shapes, result in [("sum(a + b)", {"a": [4, 1], "b": [3]}, [1]), ("sum(a + b, 1)", {"a": [4, 1], "b": [3]}, [4]),
                                     ("sum(abs(a - b), 1)", {"a": [5, 1, 2], "b": [3, 2]}, [5, 2]), ("mean(a + b, 0)", {"a": [4, 1], "b": [3]}, [3]),
                                     ("sum(a + b)", {"a": [1], "b": [6]}, [1]), ("sum(a * 2 + b)", {"a": [2, 1, 1], "b": [3, 4]}, [2, 1, 1]),
                                     ("max(a + b, 1)", {"a": [4, 1], "b": [3]}, [4])]:
            buffers = {name: buffer(s, **{"class": "input"}) for name, s in shapes.items()}
            buffers["y"] = buffer(result)
            nodes = [{"id": "reduce", "reduce": {"y": text}, "args": {"a": "a", "b": "b", "y": "y"}}]
            weigh(rng, buffers, nodes, {"y": result})
            with self.subTest(text=text):
                compare(self, rng, model(buffers, nodes, shapes), {name: rng.normal(size=s) for name, s in shapes.items()})

    def test_readers(self):
        """Rows that several nodes read, whole, in parts and by rows that overlap; some that nobody reads; copies."""
        rng = np.random.default_rng(4)
        for turn in range(40):
            parts, n, w = int(rng.integers(1, 4)), 6, 3
            buffers = {"x": buffer([n, w], split=parts, **{"class": "input"}), "h": buffer([n, w], split=parts)}
            nodes = [{"id": f"h{i}", "map": {"y": "sin(x) + x"}, "args": {"x": f"x[{i}]", "y": f"h[{i}]"}} for i in range(parts)]
            results = {}
            for k in range(int(rng.integers(1, 5))):
                name, kind = f"y{k}", rng.integers(5)
                source = "h" if rng.random() < 0.7 else "x"
                first = int(rng.integers(n - 1))
                last = int(rng.integers(first + 1, n)) + 1
                if kind == 0:
                    shape = [n, w]
                    nodes.append({"id": name, "map": {"y": "x * x"}, "args": {"x": source, "y": name}})
                elif kind == 1:
                    shape = [last - first, w]
                    nodes.append({"id": name, "map": {"y": "tanh(x)"}, "args": {"x": f"{source}{{{first}:{last}}}", "y": name}})
                elif kind == 2:
                    shape = [w]
                    nodes.append({"id": name, "reduce": {"y": "sum(x * x)"}, "args": {"x": f"{source}[{int(rng.integers(parts))}]", "y": name}})
                elif kind == 3:
                    shape = [n, w]
                    nodes.append({"id": name, "copy": {"from": source, "to": name}})
                else:
                    shape = [last - first, w]
                    nodes.append({"id": name, "copy": {"from": f"{source}{{{first}:{last}}}", "to": name}})
                buffers[name], results[name] = buffer(shape), shape
            if not any("x" in str(node["args"] if "args" in node else node["copy"]) for node in nodes[parts:]) and not any(
                    "h" in str(node.get("args", node.get("copy"))) for node in nodes[parts:]):
                continue
            weigh(rng, buffers, nodes, results)
            with self.subTest(turn=turn):
                compare(self, rng, model(buffers, nodes, ["x"]), {"x": rng.normal(size=(n, w))}, devices=1 + turn % 2, fuse=bool(turn % 3))

    def test_parts_add_to_one(self):
        """Parts that are reduced where they are: sums, and the largest element of all."""
        rng = np.random.default_rng(5)
        for word, access in (("sum", "sum"), ("max", "max"), ("min", "min")):
            buffers = {"x": buffer([7, 3], split=3, **{"class": "input"}), "y": buffer([3])}
            nodes = [{"id": f"y{i}", "reduce": {"y": f"{word}(x * x + x)"}, "args": {"x": f"x[{i}]", "y": "y"}, "access": {"y": access}}
                     for i in range(3)]
            weigh(rng, buffers, nodes, {"y": [3]})
            compare(self, rng, model(buffers, nodes, ["x"]), {"x": rng.normal(size=(7, 3))}, devices=2)

    def test_ties(self):
        """Each of several largest elements gets the whole adjoint; abs has 0 at 0; min and max give to their second operand."""
        buffers = {"x": buffer([4], **{"class": "input"}), "y": buffer([1]), "loss": buffer([1], output=True)}
        nodes = [{"id": "y", "reduce": {"y": "max(x)"}, "args": {"x": "x", "y": "y"}},
                 {"id": "loss", "map": {"l": "3 * y"}, "args": {"y": "y", "l": "loss"}}]
        run = gantry.parse(model(buffers, nodes, ["x"]), train=True).schedule(1).run(backend="host")
        np.testing.assert_array_equal(run(x=np.array([1.0, 5, 5, 2]))["x.grad"], [0, 3, 3, 0])
        buffers["z"] = buffer([4], **{"class": "input"})
        for text, dx, dz in (("abs(x) + z", [-1, 0, 1, 1], [1, 1, 1, 1]), ("min(x, z)", [1, 0, 0, 0], [0, 1, 1, 1]),
                             ("max(x, z)", [0, 0, 1, 1], [1, 1, 0, 0])):
            nodes = [{"id": "loss", "reduce": {"l": f"sum({text})"}, "args": {"x": "x", "z": "z", "l": "loss"}}]
            run = gantry.parse(model(buffers, nodes, ["x", "z"]), train=True).schedule(1).run(backend="host")
            out = run(x=np.array([-1.0, 0, 1, 2]), z=np.array([0.0, 0, 0, 0]))
            np.testing.assert_array_equal(out["x.grad"], dx)
            np.testing.assert_array_equal(out["z.grad"], dz)

    def test_types(self):
        """A model in f32 with labels of whole numbers and a cast: against the same in f64."""
        rng = np.random.default_rng(6)
        x, k = rng.normal(size=(5, 4)).astype(np.float32), rng.integers(0, 4, (5, 1)).astype(np.int32)
        buffers = {"x": buffer([5, 4], "f32", **{"class": "input"}), "k": buffer([5, 1], "i32", **{"class": "input"}),
                   "n": buffer([4], "i32", init="iota"), "y": buffer([5, 1], "f16"), "loss": buffer([1], "f32", output=True)}
        nodes = [{"id": "pick", "reduce": {"y": "sum(select(k == n, f16(x) * 2, x / 4))"}, "args": {"x": "x", "k": "k", "n": "n", "y": "y"}},
                 {"id": "loss", "reduce": {"l": "mean(f32(y) * 3)"}, "args": {"y": "y", "l": "loss"}}]
        run = gantry.parse(model(buffers, nodes, ["x"]), train=True).schedule(1).run(backend="host")
        wanted = np.where(k == np.arange(4), 2, 0.25) * np.float16(0.6)
        np.testing.assert_allclose(run(x=x, k=k)["x.grad"], wanted, rtol=1e-3)


if __name__ == "__main__":
    unittest.main()
