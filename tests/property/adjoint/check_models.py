# SPDX-License-Identifier: Apache-2.0
"""Models that no strategy was made with: examples that are compared with all others of the batch, a correlation of features over the batch, a U-Net,
experts of which each example takes the best two, and a recurrence with gates. Losses of a few steps by several strategies, against NumPy in
float64, whose gradients are by complex steps."""
import unittest

from differences import buffer, gantry, np

BATCH, STEPS, RATE = 8, 3, 0.2
STRATEGIES = ((None, 1), ("dp=2", 2), ("micro=4", 1), ("dp=2,micro=2,zero=3", 2), ("dp=4,zero=1", 4), ("pp=2,micro=2", 2), ("dp=2,pp=2,micro=2", 4), ("dp=2,recompute=all", 2),
              ("dp=2,ordered=1", 2))


def model(shapes, weights, buffers, nodes, batch):
    """`shapes` of what is given, of which `weights` learn and `batch` are examples."""
    given = {name: buffer(shape, **{"class": "input"}) for name, shape in shapes.items()}
    return {"gantry": 1, "name": "model", "buffers": given | {name: buffer(shape) for name, shape in buffers.items()} | {"loss": buffer([1], output=True)}, "nodes": nodes,
            "train": {"loss": "loss", "weights": weights, "learning_rate": RATE, "batch": batch}}


def node(name, kernel, **args):
    return {"id": name, "kernel": kernel, "args": args}


def line(name, formula, **args):
    return {"id": name, "map": formula, "args": args}


def total(name, formula, **args):
    return {"id": name, "reduce": formula, "args": args}


def wanted(loss, given, weights):
    """Losses of the first steps, by complex steps along each weight: exact to rounding, as no difference is taken."""
    w, losses = {name: given[name].copy() for name in weights}, []
    for _ in range(STEPS):
        losses.append(float(loss(given | w).real))
        gradient = {}
        for name in weights:
            gradient[name] = np.zeros_like(w[name])
            for at in np.ndindex(w[name].shape):
                step = w[name].astype(complex)
                step[at] += 1e-30j
                gradient[name][at] = loss(given | w | {name: step}).imag / 1e-30
        for name in weights:
            w[name] -= RATE * gradient[name]
    return losses


class Models(unittest.TestCase):
    def compare(self, text, loss, strategies=STRATEGIES, near=1e-9):
        rng = np.random.default_rng(3)
        given = {name: rng.normal(size=b["shape"]).astype(b["dtype"].replace("f", "float")).astype(float) for name, b in text["buffers"].items() if b.get("class") == "input"}
        want = wanted(loss, given, text["train"]["weights"])
        self.assertLess(want[-1], want[0])
        for strategy, devices in strategies:
            with self.subTest(strategy=strategy):
                run = gantry.parse(text, train=True, strategy=strategy, devices=devices).schedule(devices, effort=0).run(backend="host")
                own = {name: value.astype(text["buffers"][name]["dtype"].replace("f", "float")) for name, value in given.items()}
                np.testing.assert_allclose([float(run(**(own if i == 0 else {}))["loss"][0]) for i in range(STEPS)], want, rtol=near, atol=near)

    def test_contrastive(self):
        """InfoNCE: each of two views of an example is to be nearest to the other one of all in the batch."""
        text = model({"x": [BATCH, 5], "y": [BATCH, 4], "u": [5, 3], "v": [4, 3], "own": [BATCH, BATCH]}, ["u", "v"],
                     {"a": [BATCH, 3], "b": [BATCH, 3], "na": [BATCH, 1], "nb": [BATCH, 1], "p": [BATCH, 3], "q": [BATCH, 3], "s": [BATCH, BATCH], "e": [BATCH, 1], "r": [BATCH, 1]},
                     [node("a", "gemm", a="x", b="u", c="a"), node("b", "gemm", a="y", b="v", c="b"), total("na", {"n": "sum(square(a), 1)"}, a="a", n="na"), total("nb", {"n": "sum(square(b), 1)"}, b="b", n="nb"),
                      line("p", {"p": "a / sqrt(n)"}, a="a", n="na", p="p"), line("q", {"q": "b / sqrt(n)"}, b="b", n="nb", q="q"), node("s", "gemm", a="p", b="q", c="s", tb=1, alpha=2),
                      total("e", {"e": "sum(exp(s), 1)"}, s="s", e="e"), total("r", {"r": "sum(s * o, 1)"}, s="s", o="own", r="r"), total("loss", {"l": "mean(log(e) - r)"}, e="e", r="r", l="loss")],
                     ["x", "y", "own"])

        def loss(g):
            p, q = (h / np.sqrt(np.sum(h * h, 1, keepdims=True)) for h in (g["x"] @ g["u"], g["y"] @ g["v"]))
            s = 2 * p @ q.T
            return np.mean(np.log(np.sum(np.exp(s), 1)) - np.sum(s * g["own"], 1))
        self.compare(text, loss)

    def test_contrastive_both_ways(self):
        """The same by rows and by columns of the similarities, columns less their greatest; slices of features share out the similarities, too."""
        text = model({"x": [BATCH, 5], "y": [BATCH, 4], "u": [5, 4], "v": [4, 4], "own": [BATCH, BATCH]}, ["u", "v"],
                     {"a": [BATCH, 4], "b": [BATCH, 4], "s": [BATCH, BATCH], "m": [1, BATCH], "c": [1, BATCH], "e": [BATCH, 1], "r": [BATCH, 1], "rows": [1], "columns": [1]},
                     [node("a", "gemm", a="x", b="u", c="a"), node("b", "gemm", a="y", b="v", c="b"), node("s", "gemm", a="a", b="b", c="s", tb=1, alpha=0.5),
                      total("m", {"m": "max(s, 0)"}, s="s", m="m"), total("c", {"c": "sum(exp(s - m), 0)"}, s="s", m="m", c="c"), total("e", {"e": "sum(exp(s), 1)"}, s="s", e="e"),
                      total("r", {"r": "sum(s * o, 1)"}, s="s", o="own", r="r"), total("rows", {"l": "mean(log(e) - 2 * r)"}, e="e", r="r", l="rows"),
                      total("columns", {"l": "mean(log(c) + m)"}, c="c", m="m", l="columns"), line("loss", {"l": "p + q"}, p="rows", q="columns", l="loss")], ["x", "y", "own"])

        def loss(g):
            s = 0.5 * (g["x"] @ g["u"]) @ (g["y"] @ g["v"]).T
            return np.mean(np.log(np.sum(np.exp(s), 1)) - 2 * np.sum(s * g["own"], 1)) + np.mean(np.log(np.sum(np.exp(s), 0)))
        self.compare(text, loss, (*STRATEGIES, ("tp=2", 2), ("tp=4", 4), ("tp=2,recompute=all", 2)))
        with self.assertRaisesRegex(gantry.Error, 'node "s" takes 2 parts of the batch of "b" at a time, each of which is to be in 2 slices'):
            gantry.parse(text, train=True, strategy="dp=2,tp=2", devices=4)

    def test_pictures(self):
        """A small U-Net: down by a stride, up by resize, with a skip connection; f32, as resize has adjoints in that alone."""
        def conv(x, w, stride=1):
            p, n = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), x.shape[2]
            return sum(np.einsum("nchw,oc->nohw", p[:, :, i:i + n:stride, j:j + n:stride], w[:, :, i, j]) for i in range(3) for j in range(3))

        up = np.zeros((6, 3))  # bilinear between centres of pixels
        for i in range(6):
            low, rest = divmod((i + 0.5) / 2 - 0.5, 1)
            for at, share in ((low, 1 - rest), (low + 1, rest)):
                up[i, min(max(int(at), 0), 2)] += share
        text = model({"x": [BATCH, 2, 6, 6], "d": [BATCH, 1, 6, 6], "w1": [3, 2, 3, 3], "w2": [4, 3, 3, 3], "w3": [1, 3, 3, 3], "w4": [1, 4, 3, 3]}, ["w1", "w2", "w3", "w4"],
                     {"z1": [BATCH, 3, 6, 6], "e1": [BATCH, 3, 6, 6], "z2": [BATCH, 4, 3, 3], "e2": [BATCH, 4, 3, 3], "flat": [BATCH * 4, 3, 3], "large": [BATCH * 4, 6, 6], "up": [BATCH, 4, 6, 6],
                      "y1": [BATCH, 1, 6, 6], "y2": [BATCH, 1, 6, 6]},
                     [node("c1", "conv2d", x="x", w="w1", y="z1", pad=1), line("t1", {"e": "tanh(z)"}, z="z1", e="e1"), node("c2", "conv2d", x="e1", w="w2", y="z2", pad=1, stride=2),
                      line("t2", {"e": "tanh(z)"}, z="z2", e="e2"), {"id": "flat", "copy": {"from": "e2", "to": "flat"}}, node("resize", "resize", image="flat", out="large"),
                      {"id": "up", "copy": {"from": "large", "to": "up"}}, node("c3", "conv2d", x="e1", w="w3", y="y1", pad=1), node("c4", "conv2d", x="up", w="w4", y="y2", pad=1),
                      total("loss", {"l": "mean(square(a + b - d))"}, a="y1", b="y2", d="d", l="loss")], ["x", "d"])
        for one in text["buffers"].values():
            one["dtype"] = "f32"

        def loss(g):
            e1 = np.tanh(conv(g["x"], g["w1"]))
            return np.mean((conv(e1, g["w3"]) + conv(np.einsum("ab,ncbd,ed->ncae", up, np.tanh(conv(e1, g["w2"], 2)), up), g["w4"]) - g["d"]) ** 2)
        self.compare(text, loss, near=1e-5)

    def test_correlation(self):
        """Barlow twins: the features of two views, summed over the batch into a matrix, are to be the unit matrix."""
        text = model({"x": [BATCH, 5], "y": [BATCH, 5], "w": [5, 3], "one": [3, 3]}, ["w"], {"a": [BATCH, 3], "b": [BATCH, 3], "ta": [BATCH, 3], "tb": [BATCH, 3], "c": [3, 3]},
                     [node("a", "gemm", a="x", b="w", c="a"), node("b", "gemm", a="y", b="w", c="b"), line("ta", {"t": "tanh(a)"}, a="a", t="ta"), line("tb", {"t": "tanh(b)"}, b="b", t="tb"),
                      node("c", "gemm", a="ta", b="tb", c="c", ta=1, alpha=1 / BATCH), total("loss", {"l": "mean(square(c - o))"}, c="c", o="one", l="loss")], ["x", "y"])
        self.compare(text, lambda g: np.mean((np.tanh(g["x"] @ g["w"]).T @ np.tanh(g["y"] @ g["w"]) / BATCH - g["one"]) ** 2))

    def test_experts(self):
        """Of four experts each example takes the best two, weighed by a softmax over these."""
        names = [f"w{i}" for i in range(4)]
        buffers = {"z": [BATCH, 4], "v": [BATCH, 2], "m": [BATCH, 1], "total": [BATCH, 1], "y": [BATCH, 3]} | {f"h{i}": [BATCH, 3] for i in range(4)} | {f"g{i}": [BATCH, 1] for i in range(4)}
        nodes = [node("z", "gemm", a="x", b="gate", c="z"), node("best", "top_k", x="z", values="v", indices="k"), total("total", {"t": "sum(exp(v), 1)"}, v="v", t="total")]
        for i in range(4):
            nodes += [node(f"h{i}", "gemm", a="x", b=f"w{i}", c=f"h{i}"), total(f"g{i}", {"g": f"sum(select(k == {i}, exp(v), 0), 1)"}, k="k", v="v", g=f"g{i}")]
        mixed = " + ".join(f"g{i} / t * tanh(h{i})" for i in range(4))
        nodes += [line("y", {"y": mixed}, t="total", y="y", **{f"g{i}": f"g{i}" for i in range(4)}, **{f"h{i}": f"h{i}" for i in range(4)}),
                  total("loss", {"l": "mean(square(y - d))"}, y="y", d="d", l="loss")]
        del buffers["m"]
        text = model({"x": [BATCH, 5], "d": [BATCH, 3], "gate": [5, 4]} | {name: [5, 3] for name in names}, ["gate", *names], buffers, nodes, ["x", "d"])
        text["buffers"]["k"] = buffer([BATCH, 2], "i32")

        def loss(g):
            z = g["x"] @ g["gate"]
            best = np.argsort(-z.real, 1, kind="stable")[:, :2]
            e = np.where((np.arange(4) == best[:, :1]) | (np.arange(4) == best[:, 1:]), np.exp(z), 0)
            p = e / e.sum(1, keepdims=True)
            return np.mean((sum(p[:, i:i + 1] * np.tanh(g["x"] @ g[f"w{i}"]) for i in range(4)) - g["d"]) ** 2)
        self.compare(text, loss)

    def test_memory(self):
        """An LSTM over four steps, whose gates are columns of one product, and a loss of each step."""
        width, steps, gates = 3, 4, ("i", "f", "o", "c")
        shapes = {f"x{t}": [BATCH, 4] for t in range(steps)} | {f"d{t}": [BATCH, width] for t in range(steps)}
        weights = {f"w{g}": [4, width] for g in gates} | {f"u{g}": [width, width] for g in gates}
        buffers, nodes = {}, []
        for t in range(steps):
            for g in gates:
                buffers |= {f"{g}{t}": [BATCH, width]}
                nodes.append(node(f"{g}{t}", "gemm", a=f"x{t}", b=f"w{g}", c=f"{g}{t}"))
                if t:
                    buffers |= {f"r{g}{t}": [BATCH, width]}
                    nodes.append(node(f"r{g}{t}", "gemm", a=f"h{t - 1}", b=f"u{g}", c=f"r{g}{t}"))
            buffers |= {f"s{t}": [BATCH, width], f"h{t}": [BATCH, width]}
            given = {g: f"{g}{t}" for g in gates} | ({"r" + g: f"r{g}{t}" for g in gates} if t else {})
            i, f, o, c = (f"({g} + r{g})" if t else g for g in gates)
            state = f"tanh({c}) / (1 + exp(-{i}))" + (f" + s0 / (1 + exp(-{f}))" if t else "")
            used = {k: v for k, v in given.items() if k in ("i", "c", "ri", "rc") or (t and k in ("f", "rf"))}
            nodes += [line(f"s{t}", {"s": state}, s=f"s{t}", **used, **({"s0": f"s{t - 1}"} if t else {})),
                      line(f"h{t}", {"h": f"tanh(s) / (1 + exp(-{o}))"}, h=f"h{t}", s=f"s{t}", **{k: v for k, v in given.items() if k in ("o", "ro")}),
                      {**total(f"loss{t}", {"l": f"sum(square(h - d) / {BATCH * width})"}, h=f"h{t}", d=f"d{t}", l="loss"), "access": {"l": "sum"}}]
        text = model(shapes | weights, list(weights), buffers, [n for n in nodes if not n["id"].startswith("f0")], list(shapes))
        text["buffers"].pop("f0")
        text["buffers"]["loss"]["init"] = 0

        def loss(g):
            def gate(z):
                return 1 / (1 + np.exp(-z))
            h = s = np.zeros((BATCH, width))
            out = 0
            for t in range(steps):
                i, f, o, c = (g[f"x{t}"] @ g["w" + k] + h @ g["u" + k] for k in gates)
                s = s * gate(f) + np.tanh(c) * gate(i)
                h = np.tanh(s) * gate(o)
                out += np.sum((h - g[f"d{t}"]) ** 2) / (BATCH * width)
            return out
        self.compare(text, loss)


if __name__ == "__main__":
    unittest.main()
