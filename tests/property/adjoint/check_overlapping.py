# SPDX-License-Identifier: Apache-2.0
"""Rows that some nodes read whole and others in parts: their adjoint is a sum that begins with zeros, which have to be there ahead of the first that
gives, whichever kernel that is. Rows that one node reads as several arguments. Gradients against central differences, and the losses of a recurrence with attention over its states, in slices,
against NumPy."""
import unittest

from differences import buffer, compare, gantry, model, np, weigh

ROWS, WIDTH = 6, 4
# A node that reads all of h behind those that read parts, so that it is the first to give; and what it needs beside.
LAST = {
    "gemm": ({"kernel": "gemm", "args": {"a": "h", "b": "w2", "c": "y"}}, {"w2": [WIDTH, WIDTH]}),
    "softmax": ({"kernel": "softmax", "args": {"x": "h", "y": "y"}}, {}),
    "rmsnorm": ({"kernel": "rmsnorm", "args": {"x": "h", "gain": "gain", "y": "y"}}, {"gain": [1, WIDTH]}),
    "layernorm": ({"kernel": "layernorm", "args": {"x": "h", "gain": "gain", "bias": "bias", "y": "y"}}, {"gain": [1, WIDTH], "bias": [1, WIDTH]}),
    "map": ({"map": {"y": "tanh(h)"}, "args": {"h": "h", "y": "y"}}, {}),
    "copy": ({"copy": {"from": "h", "to": "y"}}, {}),
}


class Overlapping(unittest.TestCase):
    def test_whole_and_parts(self):
        for kind, (last, weights) in LAST.items():
            for parts in (2, 3):
                with self.subTest(kind=kind, parts=parts):
                    rng = np.random.default_rng(parts)
                    shapes = {"w": [WIDTH, WIDTH]} | weights
                    buffers = {name: buffer(shape, **{"class": "input"}) for name, shape in shapes.items()}
                    buffers |= {"x": buffer([ROWS, WIDTH], init={"normal": {"seed": 1}}), "y": buffer([ROWS, WIDTH])}
                    buffers |= {name: buffer([ROWS, WIDTH], split=parts) for name in ("h", "s")}
                    nodes = [{"id": "h", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "h"}}]
                    nodes += [{"id": f"s{i}", "map": {"s": "sin(h)"}, "args": {"h": f"h[{i}]", "s": f"s[{i}]"}} for i in range(parts)]
                    nodes.append({"id": "last", **last})
                    weigh(rng, buffers, nodes, {"s": [ROWS, WIDTH], "y": [ROWS, WIDTH]})
                    at = {name: rng.normal(size=shape) for name, shape in shapes.items()}
                    compare(self, rng, model(buffers, nodes, shapes), at, devices=2)


class Norms(unittest.TestCase):
    """One weight as several arguments of a norm, whose gradient is one node."""
    NODES = {
        "gain and bias": [("layernorm", {"x": "z", "gain": "g{0:1}", "bias": "g{0:1}", "y": "y"})],
        "twice": [("layernorm", {"x": "z", "gain": "g{0:1}", "bias": "g{1:2}", "y": "h"}), ("layernorm", {"x": "h", "gain": "g{1:2}", "bias": "g{1:2}", "y": "y"})],
        "all three": [("layernorm", {"x": "g", "gain": "g{0:1}", "bias": "g{1:2}", "y": "n"}), ("map", {"y": "z * n"}, {"z": "z", "n": "n{0:1}", "y": "y"})],
        "rows": [("rmsnorm", {"x": "g", "gain": "g{1:2}", "y": "n"}), ("map", {"y": "z * n"}, {"z": "z", "n": "n{1:2}", "y": "y"})],
    }

    def network(self, nodes):
        shapes = {"w": [WIDTH, WIDTH], "g": [2, WIDTH]}
        buffers = {name: buffer(shape, **{"class": "input"}) for name, shape in shapes.items()}
        buffers |= {"x": buffer([ROWS, WIDTH], init={"normal": {"seed": 1}}), "n": buffer([2, WIDTH])}
        buffers |= {name: buffer([ROWS, WIDTH]) for name in "zhy"}
        made = [{"id": "z", "kernel": "gemm", "args": {"a": "x", "b": "w", "c": "z"}}]
        made += [{"id": f"n{i}", ("map" if node[0] == "map" else "kernel"): node[-2], "args": node[-1]} for i, node in enumerate(nodes)]
        return buffers, made, shapes

    def test_gradients(self):
        for name, nodes in self.NODES.items():
            with self.subTest(name):
                rng = np.random.default_rng(6)
                buffers, made, shapes = self.network(nodes)
                weigh(rng, buffers, made, {"y": [ROWS, WIDTH]})
                at = {name: rng.normal(size=shape) for name, shape in shapes.items()}
                compare(self, rng, model(buffers, made, shapes), at, devices=2)

    def test_pieces(self):
        """Each piece of the batch adds to both."""
        for name, nodes in self.NODES.items():
            buffers, made, shapes = self.network(nodes)
            buffers["loss"] = buffer([1], output=True)
            made.append({"id": "loss", "reduce": {"l": "mean(square(y - 1))"}, "args": {"y": "y", "l": "loss"}})
            rng = np.random.default_rng(7)
            given = {name: rng.normal(size=shape) for name, shape in shapes.items()}
            out = []
            for strategy, devices in (("dp=1", 1), ("dp=3", 3), ("micro=2", 1), ("dp=3,zero=1", 3)):
                text = model(buffers, made, shapes, batch=["x"], optimizer="sgd", learning_rate=0.3)
                run = gantry.parse(text, train=True, strategy=strategy, devices=devices).schedule(devices, effort=0).run(backend="host")
                out.append([float((run(**given) if step == 0 else run())["loss"][0]) for step in range(6)])
                self.assertNotEqual(out[0][0], out[0][-1])
                np.testing.assert_allclose(out[-1], out[0], rtol=1e-12, err_msg=f"{name} {strategy}")


class Slices(unittest.TestCase):
    """h1 = softmax(x w), which is not in columns, h2 = h1 + tanh(h1 r), y = ((h1 k) * (h2 q)) o: all of both states by the columns of k and q, their rows elsewhere."""
    RATE, STEPS = 0.05, 20
    SHAPES = {"w": [WIDTH, WIDTH], "r": [1, WIDTH], "k": [WIDTH, WIDTH], "q": [WIDTH, WIDTH], "o": [WIDTH, WIDTH]}

    def network(self):
        given = {"class": "input"}
        buffers = {"x": buffer([ROWS, WIDTH], **given), "loss": buffer([1], output=True)} | {name: buffer(shape, **given) for name, shape in self.SHAPES.items()}
        buffers |= {name: buffer([ROWS, WIDTH]) for name in ("z", "h1", "h2", "a", "b", "c", "y")}

        def product(a, b, c):
            return {"id": c, "kernel": "gemm", "args": {"a": a, "b": b, "c": c}}
        nodes = [product("x", "w", "z"), {"id": "h1", "kernel": "softmax", "args": {"x": "z", "y": "h1"}},
                 {"id": "h2", "map": {"to": "h + tanh(h * r)"}, "args": {"h": "h1", "r": "r", "to": "h2"}},
                 product("h2", "q", "b"), product("h1", "k", "a"), {"id": "c", "map": {"c": "a * b"}, "args": {"a": "a", "b": "b", "c": "c"}},
                 product("c", "o", "y"), {"id": "loss", "reduce": {"l": "mean(square(y - 1))"}, "args": {"y": "y", "l": "loss"}}]
        return {"gantry": 1, "name": "states", "buffers": buffers, "nodes": nodes,
                "train": {"loss": "loss", "weights": list(self.SHAPES), "learning_rate": self.RATE, "batch": ["x"]}}

    def by_hand(self, x, w):
        w, losses = dict(w), []
        for _ in range(self.STEPS):
            h1 = np.exp(x @ w["w"])
            h1 /= h1.sum(1, keepdims=True)
            t = np.tanh(h1 * w["r"])
            h2 = h1 + t
            a, b = h1 @ w["k"], h2 @ w["q"]
            y = (a * b) @ w["o"]
            losses.append(((y - 1) ** 2).mean())
            dy = 2 * (y - 1) / y.size
            dc = dy @ w["o"].T
            da, db = dc * b, dc * a
            dh2 = db @ w["q"].T
            dt = dh2 * (1 - t * t)
            dh1 = dh2 + dt * w["r"] + da @ w["k"].T
            g = {"w": x.T @ (h1 * (dh1 - (dh1 * h1).sum(1, keepdims=True))), "r": (dt * h1).sum(0, keepdims=True), "k": h1.T @ da, "q": h2.T @ db, "o": (a * b).T @ dy}
            w = {name: one - self.RATE * g[name] for name, one in w.items()}
        return losses

    def test_losses(self):
        rng = np.random.default_rng(4)
        given = {"x": rng.normal(size=(ROWS, WIDTH))} | {name: 0.4 * rng.normal(size=shape) for name, shape in self.SHAPES.items()}
        wanted = self.by_hand(given["x"], {name: given[name] for name in self.SHAPES})
        self.assertLess(wanted[-1], wanted[0])
        for strategy, devices in (("dp=1", 1), ("dp=3", 3), ("tp=2", 2), ("tp=2,recompute=all", 2), ("tp=2,micro=3", 2), ("tp=2,pp=2", 4), ("dp=3,tp=2,zero=3", 6)):
            with self.subTest(strategy=strategy):
                run = gantry.parse(self.network(), train=True, strategy=strategy, devices=devices).schedule(devices, effort=0).run(backend="host")
                seen = [float((run(**given) if step == 0 else run())["loss"][0]) for step in range(self.STEPS)]
                np.testing.assert_allclose(seen, wanted, rtol=1e-9)


if __name__ == "__main__":
    unittest.main()
