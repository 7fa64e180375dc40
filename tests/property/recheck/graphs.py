# SPDX-License-Identifier: Apache-2.0
"""What schedules are made of: the graphs of the tree, made small, and random ones; machines; options."""
import json
import os
import random

SMALL = {
    "saxpy": {"n": 64, "parts": 3}, "image_blur": {"n": 6, "height": 4, "width": 4, "channels": 1},
    "jacobi": {"n": 16, "parts": 3, "steps": 4}, "cholesky": {"n": 48, "nt": 3}, "pipeline3": {"batches": 3, "batch": 64},
    "mlp_step": {"batch": 16, "inputs": 12, "hidden": 8, "classes": 4, "parts": 2}, "reduce_sum": {"n": 96, "parts": 4},
    "transformer_block": {"tokens": 6, "dim": 4}, "heat_implicit": {"n": 8, "parts": 2, "steps": 3, "sweeps": 3}, "train_pipeline": {}, "black_scholes": {"n": 20, "parts": 2},
    "heat_3d": {"n": 8, "steps": 3}, "jacobi_blocks": {"n": 9, "steps": 3}, "nbody": {"n": 10, "parts": 3, "steps": 2}, "loss_scale": {"n": 12, "d": 3, "parts": 2, "steps": 4}, "kmeans": {"n": 30, "d": 2, "k": 3, "parts": 2, "rounds": 2}, "pagerank": {"n": 12, "parts": 2, "most": 20}, "jacobi_until": {"n": 8, "parts": 2, "steps": 40, "every": 4},
}
DTYPES = ("u8", "f32", "i64")
MODES = ("write", "write", "readwrite", "sum", "sum", "max")


def of_the_tree(folder):
    """The graphs of graphs/, with small sizes."""
    for name, params in SMALL.items():
        with open(os.path.join(folder, name + ".json")) as file:
            form = json.load(file)
        form["params"].update(params)
        yield name, form
    for name in sorted(os.listdir(os.path.join(folder, "reference"))):
        with open(os.path.join(folder, "reference", name)) as file:
            yield "reference-" + name[:-5], json.load(file)


class Maker:
    """A random graph: parts that are read and written by work, fills, copies, collectives and kernels."""

    def __init__(self, seed):
        self.random, self.buffers, self.nodes = random.Random(seed), {}, []
        self.parts = self.random.randint(2, 4)
        self.written = {}

    def graph(self):
        r = self.random
        for i in range(r.randint(2, 5)):
            self.buffer(f"b{i}", r.choice(("input", "input", "state", "const", "temp", "temp")))
        loop = r.random() < 0.3
        for i in range(r.randint(3, 14)):
            self.node(f"n{i}", loop)
        self.outputs()
        nodes = self.nodes
        if r.random() < 0.5:
            nodes = self.loops(nodes)
        elif loop:
            self.buffers["p"] = {"dtype": "f32", "shape": [self.parts * 3], "split": self.parts, "init": 1, "output": True}
            self.buffers["q"] = {"dtype": "f32", "shape": [self.parts * 3], "split": self.parts}
            step = {"id": "step[i]", "for": {"i": self.parts}, "work": {}, "reads": ["p[i]~1"], "writes": ["q[i]"]}
            nodes = nodes + [{"repeat": r.randint(1, 4), "carry": {"p": "q"}, "nodes": [step]}]
        args = [{"name": "x", "access": "read"}, {"name": "y", "access": "readwrite" if r.random() < 0.3 else "write"}]
        self.flags(nodes)
        self.kernels = {"pure": {"args": args, "pure": True}, "other": {"args": args}}
        form = {"gantry": 1, "kernels": self.kernels, "name": "random", "params": {}, "buffers": self.buffers, "nodes": nodes}
        return form

    def flags(self, nodes):
        """Some nodes and blocks run by a flag, which is there or computed. Drawn by itself, so that other graphs stay as they were."""
        r = random.Random(len(str(nodes)))
        if r.random() < 0.7:
            return
        self.buffers["flag"] = {"dtype": r.choice(DTYPES), "shape": [3], "split": 3, "init": 1, "class": r.choice(("const", "input", "state"))}
        self.buffers["made"] = {"dtype": "i64", "shape": [1]}
        nodes.insert(0, {"id": "made", "work": {}, "reads": ["flag"], "writes": ["made"]})
        for element in nodes[1:]:
            if "collective" not in json.dumps(element) and r.random() < 0.4:
                whole = {"buffer": r.choice(("flag[1]", "flag{2:3}", "made"))}
                for one in [element] if "repeat" not in element else element["nodes"]:
                    if "repeat" not in one:
                        one["when"] = whole

    def loops(self, nodes):
        """One or two loops, longer ones, of which most carry something, end by `until` or add to what they left; with nodes
        of the rest inside. A graph that is not valid is no loss."""
        r, out, rest = self.random, [], list(nodes)
        for k in range(r.choice((1, 1, 2))):
            before, inside = r.choice((0, 0, 1, 2, len(rest))), r.choice((0, 0, 1, 2))
            out, body, rest = out + rest[:before], rest[before:before + inside], rest[before + inside:]
            element = {"repeat": r.choice((0, 1, 2, 3, 4, 5, 6, 8, 9, 12)), "nodes": body}
            if r.random() < 0.8:
                self.pair(k, element)
            if r.random() < 0.6:
                self.until(k, element)
            element["nodes"] = r.sample(element["nodes"], len(element["nodes"])) if r.random() < 0.2 else element["nodes"]
            if r.random() < 0.4:
                self.nest(k, element["nodes"])
            out += [element] if element["nodes"] else []
        return out + rest

    def nest(self, k, nodes):
        """Some of the nodes become an inner loop, which may carry what the outer one does, or buffers of its own."""
        r = self.random
        first = r.randint(0, len(nodes))
        last = r.randint(first, len(nodes))
        inner = {"repeat": r.choice((0, 1, 2, 2, 3, 5)), "index": f"k{k}", "nodes": nodes[first:last]}
        if r.random() < 0.7:
            pair = r.choice(((f"g{k}", f"q{k}"), (f"p{k}", f"q{k}"), (f"g{k}", f"h{k}")))
            for name in [name for name in pair if name not in self.buffers]:
                self.buffers[name] = {"dtype": "f32", "shape": [self.parts * 3], "split": self.parts, "init": 2}
            inner["carry"] = {pair[0]: pair[1]}
            if r.random() < 0.7:
                step = {"id": f"inner{k}[i]", "for": {"i": self.parts}, "work": {}, "reads": [f"{pair[0]}[i]~1"], "writes": [f"{pair[1]}[i]"]}
                inner["nodes"] = inner["nodes"] + [step]
        if r.random() < 0.3 and inner["nodes"]:
            self.nest(k + 10, inner["nodes"])
        nodes[first:last] = [inner] if r.random() < 0.9 else [{"for": {"j": 1}, "nodes": [inner]}]

    def pair(self, k, element):
        r = self.random
        names = (f"p{k}", f"q{k}") if k == 0 or r.random() < 0.7 else ("p0", "q0")
        for name in [name for name in names if name not in self.buffers]:
            self.buffers[name] = {"dtype": "f32", "shape": [self.parts * 3], "split": self.parts}
            if name[0] == "p" or r.random() < 0.3:
                self.buffers[name].update(init=1, **{"class": r.choice(("input", "input", "state"))})
            if r.random() < (0.6 if name[0] == "p" else 0.2):
                self.buffers[name]["output"] = True
        p, q = names
        write = r.choice((f"{q}[i]", f"{q}[i]", {"sum": f"{q}[i]"}, {"max": f"{q}[0]"}))
        step = {"id": f"step{k}[i]", "for": {"i": self.parts}, "work": {}, "reads": [r.choice((f"{p}[i]~1", f"{p}[i]", p))], "writes": [write]}
        element["carry"] = {p: q}
        element["nodes"] = element["nodes"] + [step]
        if r.random() < 0.3:
            element["nodes"].insert(0, {"id": f"change{k}", "work": {}, "writes": [r.choice(({"readwrite": p}, {"sum": f"{p}[0]"}, {"sum": q}, f"{q}[0]"))]})

    def until(self, k, element):
        r, flag, total = self.random, f"flag{k}", f"total{k}"
        self.buffers[flag] = {"dtype": "i64", "shape": [1], "output": r.random() < 0.3}
        self.buffers[total] = {"dtype": "f32", "shape": [2], "split": 2, "output": r.random() < 0.3}
        if r.random() < 0.5:
            self.buffers[total].update(init=0, **{"class": r.choice(("input", "state"))})
        else:
            element["nodes"].append({"id": f"clear{k}", "fill": {"to": total, "value": r.choice((0, 1))}})
        element["nodes"] = element["nodes"] + [
            {"id": f"add{k}[i]", "for": {"i": 2}, "work": {}, "reads": list(element.get("carry", {}).values()), "writes": [{"sum": f"{total}[i]"}]},
            {"id": f"test{k}", "work": {}, "reads": [total], "writes": [flag]}]
        if r.random() < 0.75:
            element["until"] = {"buffer": flag, "every": r.choice((1, 1, 2, 3, 4))}

    def buffer(self, name, kind):
        r, rows = self.random, self.parts * self.random.randint(1, 5) + self.random.randint(0, 1)
        one = {"dtype": r.choice(DTYPES), "shape": [rows] + ([r.randint(1, 200)] if r.random() < 0.5 else []), "class": kind}
        one["split"] = {"auto": self.parts} if r.random() < 0.15 else self.parts
        if kind == "input" and r.random() < 0.1:
            one["external"] = self.random.choice(("dev0", "gpu0", "gpu1"))
            one["bound"] = True
        if kind != "temp" and not one.pop("bound", False):
            one["init"] = 1
        self.buffers[name], self.written[name] = one, kind != "temp"

    def part(self, name):
        r, auto = self.random, isinstance(self.buffers[name]["split"], dict)
        i = r.randrange(self.parts)
        return r.choice([name, f"{name}[{i}]", f"{name}[{i}]"] + ([] if auto else [f"{name}[{i}]~1", f"{name}[{i}:{self.parts}]"]))

    def cost(self, node):
        r = self.random
        node["cost"] = {"time_us": r.choice((1, 5, 20, 100))}
        if r.random() < 0.2:
            node["share"] = r.choice((0.1, 0.25, 0.6))
        if r.random() < 0.15:
            node["on"] = f"{r.randint(0, 3)} % devices"
        if self.nodes and r.random() < 0.3:
            node[r.choice(("after", "after", "with", "apart"))] = r.choice(self.nodes)["id"]
        self.nodes.append(node)

    def node(self, name, loop):
        r = self.random
        readable = [b for b in self.buffers if self.written.get(b)]
        writable = [b for b in self.written if self.buffers[b]["class"] != "const"]
        if not writable:
            return
        to = r.choice(writable)
        if r.random() < 0.2 or not self.written[to]:
            self.cost({"id": name, "fill": {"to": to, "value": r.choice((0, 0, 1, 7))}})
            self.written[to] = True
            return
        if r.random() < 0.2:
            self.collective(name)
            return
        others = [b for b in readable if b != to]
        if r.random() < 0.1 and others:
            self.kernel(name, r.choice(others), to)
            return
        reads = [self.part(b) for b in r.sample(others, min(len(others), r.randint(0, 2)))]
        mode = r.choice(MODES)
        ref = self.part(to)
        self.cost({"id": name, "work": {}, "reads": reads, "writes": [ref if mode == "write" else {mode: ref}]})

    def kernel(self, name, x, y):
        """A kernel of the graph's own, a host call among them."""
        key = self.random.choice(("kernel", "kernel", "host"))
        self.cost({"id": name, key: self.random.choice(("pure", "other")), "args": {"x": self.part(x), "y": self.part(y)}})

    def collective(self, name):
        r, p = self.random, self.parts
        kind = r.choice(("all_reduce", "broadcast", "all_gather", "reduce", "scatter", "gather", "reduce_scatter", "all_to_all"))
        small, large = 4 * p, 4 * p * p
        size = {"in": small, "out": small}
        alone = {"broadcast": "in", "scatter": "in", "reduce": "out", "gather": "out"}.get(kind)
        if kind in ("all_gather", "reduce_scatter"):
            size["out" if kind == "all_gather" else "in"] = large
        node = {"id": name, "collective": kind}
        for key in ("in", "out"):
            whole = size[key] * (p if kind in ("scatter", "gather") and key != alone else 1)
            rows = {"scatter": small * p, "gather": small * p}.get(kind, whole) if key == alone else size[key] * p
            if kind in ("scatter", "gather"):
                rows = small * p
            buffer = f"{name}{key}"
            self.buffers[buffer] = {"dtype": "f32", "shape": [rows], "class": "input" if key == "in" else "temp"}
            if key == "in":
                self.buffers[buffer]["init"] = 1
            if key == alone:
                node[key] = [buffer]
            else:
                self.buffers[buffer]["split"] = p
                node[key] = [f"{buffer}[{i}]" for i in range(p)]
            if key == "out":
                self.buffers[buffer]["output"] = True
        if kind in ("all_reduce", "reduce", "reduce_scatter"):
            node["op"] = r.choice(("sum", "max"))
        if alone:
            node["root"] = r.randrange(p)
        self.nodes.append(node)

    def outputs(self):
        for name, one in self.buffers.items():
            if self.written.get(name) and self.random.random() < 0.6:
                one["output"] = True


def products(r):
    """A graph of small products, and a machine on which they go into batches."""
    tiled, nodes = r.random() < 0.3, []
    for i in range(r.randint(5, 30)):
        a, b, c = (f"x[{k // 4}][{k % 4}]" if tiled else f"x[{k}]" for k in r.sample(range(12), 3))
        kind = r.randrange(10)
        node = {"id": f"n{i}", "kernel": "gemm", "args": {"alpha": (0.5, {"dynamic": 1})[kind] if kind < 2 else 0.125, "a": a, "b": b, "c": c}}
        if kind == 2 and not tiled:
            node = {"id": f"n{i}", "fill": {"to": c, "value": 0.25}}
        elif kind == 3:
            node["access"] = {"c": "sum"}
        if i and r.random() < 0.15:
            node["after"] = [f"n{r.randrange(i)}"]
        nodes.append(node)
    x = {"dtype": "f32", "shape": [12, 16] if tiled else [48, 4], "init": 1, "class": r.choice(("state", "input")), "output": True}
    x.update({"tiles": [3, 4]} if tiled else {"split": 12})
    gpus = range(r.randint(1, 3))
    table = {"kernel": "gemm", "dtype": "f32", "kind": "g", "by": "flops", "points": [[128, 4], [1024, 20]], "batched": [[128, 0.25]]}
    return {"gantry": 1, "buffers": {"x": x}, "nodes": nodes}, {
        "gantry_machine": 1, "memories": [{"id": "host", "capacity": 2**30}] + [{"id": f"m{i}", "capacity": 2**20} for i in gpus],
        "devices": [{"id": f"g{i}", "kind": "g", "type": "gpu", "memory": f"m{i}"} for i in gpus],
        "routes": [{"from": "*", "to": "*", "latency_us": 0.3, "bandwidth_gbs": 1000}], "kernels": [table]}


def sums(r):
    """A graph of alike collectives, and a machine on which they go into batches."""
    ranks, count, nodes = r.randint(2, 4), r.randint(4, 12), []
    dtypes = [r.choice(("f32", "f32", "f32", "i64")) for _ in range(count)]
    for i in range(r.randint(3, 12)):
        a, b = i % count, r.choice((i % count, r.randrange(count)))
        b = b if dtypes[a] == dtypes[b] else a
        kind = r.choice(("all_reduce", "all_reduce", "all_reduce", "all_to_all"))
        node = {"id": f"n{i}", "collective": kind, "on": [*range(ranks)], "in": [f"x{a}[{k}]" for k in range(ranks)], "out": [f"x{b}[{k}]" for k in range(ranks)]}
        if kind == "all_reduce":
            node["op"] = r.choice(("sum", "sum", "sum", "max"))
            if r.random() < 0.3:
                node["algorithm"] = r.choice(("ring", "one_shot"))
        if i and r.random() < 0.1:
            node["after"] = [f"n{r.randrange(i)}"]
        nodes.append(node)
    buffers = {f"x{k}": {"dtype": dtype, "shape": [12 * ranks], "split": ranks, "init": 1, "class": "state", "output": True} for k, dtype in enumerate(dtypes)}
    gpus = range(ranks)
    return {"gantry": 1, "buffers": buffers, "nodes": nodes}, {
        "gantry_machine": 1, "memories": [{"id": "host", "capacity": 2**30}] + [{"id": f"m{i}", "capacity": 2**20} for i in gpus],
        "devices": [{"id": f"g{i}", "kind": "g", "type": "gpu", "memory": f"m{i}"} for i in gpus],
        "routes": [{"from": "*", "to": "*", "latency_us": 20, "bandwidth_gbs": 10}]}


MACHINES = ("host-2", "host-4", "dgx1-v100", "rtx-mixed-3", "a100-pcie-4", "h200-1", "hgx-h200-8", "sirocco")


def options(r, form):
    """Words for `gantry schedule`: a machine, a policy, a period, little memory."""
    words = ["--effort", r.choice(("0", "0", "1"))]
    how = r.random()
    if how < 0.5:
        words += ["--devices", str(r.randint(1, 4))]
    else:
        words += ["--machine", r.choice(MACHINES)]
    if any("repeat" in one for one in form["nodes"]) and r.random() < 0.8:
        words += ["--unroll", str(r.choice((1, 1, 2, 3, 5, 10, 20)))]
    if r.random() < 0.4:
        words += ["--policy", r.choice(("round-robin", "round-robin", "heft", "owner", "etf", "partition"))]
    if r.random() < 0.3:
        words += ["--objective", "period", "--in-flight", str(r.randint(1, 3))]
    if r.random() < 0.2:
        words += ["--replay", r.choice(("stream", "graph", "device", "device"))]
    if how < 0.5 and r.random() < 0.35:
        words += ["--max-memory", ",".join(f"mem{i}={r.choice((768, 1024, 2048, 4096))}" for i in range(4))]
    if r.random() < 0.2:
        words += ["--no-fuse"]
    return words
