# SPDX-License-Identifier: Apache-2.0
"""Random graphs of maps, reductions and kernels that say what they compute in formulas, fused and not: the same bits of all outputs on one device and several, and tools/recheck
says that both schedules are right.

check_fuse.py GANTRY RECHECK [FIRST COUNT]
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import gantry  # noqa: E402

MAPS = ["a * b + s", "sqrt(abs(a)) - b", "a + 1", "select(a > b, a, b * s)", "max(a, 0)", "a / (1 + abs(b))", "a - c", "a * a + b * c", "s - a", "min(a, b) * 0.5"]
SUMS = ["sum(a * b)", "sum(a)", "max(a - b)", "min(a + s)", "sum(select(a > 0, a, -a))"]
# By kernel: what it reads, its numbers, what it gives, which is read before where it is one of the former.
KERNELS = {"add": ("xy", "", "z"), "axpby": ("xy", "ab", "y"), "bias_add": ("xb", "", "y"), "copy": ("x", "", "y"), "mul": ("xy", "", "z"),
           "relu": ("x", "", "y"), "relu_grad": (["x", "dy"], "", "dx"), "saxpy": ("xy", "a", "y"), "scale": ("x", "a", "y"),
           "sgd_update": ("wg", ["lr"], "w")}
REAL_ONLY = {"bias_add", "relu", "relu_grad", "sgd_update"}
DTYPES = ["f32", "f32", "f32", "bf16", "f64", "i32", "f16", "u8"]


class Maker:
    def __init__(self, seed):
        self.draw = draw = random.Random(seed)
        self.parts, self.rows, self.width = draw.choice([1, 2, 3]), draw.choice([3, 24, 61]), draw.choice([1, 5])
        self.buffers, self.nodes, self.written, self.lines, self.count = {}, [], [], ["row", "line"], 0
        self.is_auto = draw.random() < 0.5
        self.is_broadcast = seed % 3 == 1
        split = {"auto": self.parts} if self.is_auto else self.parts
        for i in range(8):
            form = {"dtype": draw.choice(DTYPES), "shape": [self.rows, self.width], "split": split}
            if i < 3:
                form["init"] = {"iota": {"step": draw.choice([1, 3])}} if form["dtype"] in ("i32", "u8") else {"normal": {"seed": i + 1}}
                self.written.append(f"x{i}")
            if draw.random() < 0.25:
                form["output"] = True
            self.buffers[f"x{i}"] = form
        self.buffers["row"] = {"dtype": "f32", "shape": [1, self.width], "init": {"normal": {"seed": 9}}}
        self.buffers["line"] = {"dtype": "f32", "shape": [1, self.width]}
        self.buffers["x7"]["output"] = True

    def id(self, name):
        self.count += 1
        return f"{name}{self.count}"

    def kernel(self):
        """A kernel of the library, over whole buffers or one for each part; None: no buffer has the dtype of another."""
        draw = self.draw
        name = draw.choice(list(KERNELS))
        reads, numbers, gives = KERNELS[name]
        to = draw.choice(self.written) if gives in reads else draw.choice([f"x{i}" for i in range(8)])
        dtype = self.buffers[to]["dtype"]
        whole = dtype in ("i32", "u8")
        same = [one for one in self.written if self.buffers[one]["dtype"] == dtype and one != to]
        if not same or (whole and name in REAL_ONLY):
            return None
        suffix = "[i]" if draw.random() < 0.6 else ""
        args = {one: draw.choice(same) + suffix for one in reads} | {gives: to + suffix}
        if name == "bias_add":
            row = self.buffers["line_" + dtype] = {"dtype": dtype, "shape": [1, self.width], "init": {"normal": {"seed": 5}}}
            args["b"] = "line_" + row["dtype"]
        args |= {one: draw.choice([2, 3] if whole else [0.3, -1.25, 1e-3]) for one in numbers}
        if to not in self.written:
            self.written.append(to)
        form = {"id": self.id("k") + suffix, "kernel": name, "args": args}
        return {"for": {"i": self.parts}, **form} if suffix else form

    def element(self, reduces):
        """A node over whole buffers, or one for each part."""
        draw = self.draw
        text = draw.choice(SUMS if reduces else MAPS)
        by_parts = draw.random() < 0.6 and not (reduces and self.is_auto and text[:3] == "sum")  # Elsewhere cut, other bits.
        suffix = "[i]" if by_parts else ""
        chosen = {name: draw.choice(self.written) for name in "abc"}
        if draw.random() < 0.2:
            chosen["b"] = draw.choice(self.lines)
        used = {name for name in "abc" if name in "".join(c if c.isalnum() else " " for c in text).split()}
        args = {name: chosen[name] + ("" if chosen[name] in self.lines else suffix) for name in used}
        if " s" in text or "s " in text:
            args["s"] = draw.choice([0.5, 3, -1.25])
        form = {"id": self.id("n") + suffix, "args": args}
        if by_parts:
            form = {"for": {"i": self.parts}, **form}
        if reduces:
            name, kind = f"sum{self.count}", text[:3]
            if kind == "sum" and by_parts:  # Contributions come in the order of the schedule, which changes the bits of sums.
                self.buffers[name] = {"dtype": "f64", "shape": [self.parts], "split": self.parts, "output": True}
                args["r"] = f"{name}[i]"
                return form | {"reduce": {"r": text}}
            self.buffers[name] = {"dtype": "f64", "shape": [1], "init": 0, "output": True}
            args["r"] = name
            form |= {"reduce": {"r": text}, "access": {"r": kind}}
            return form
        to = draw.choice([f"x{i}" for i in range(8)])
        dtype = self.buffers[to]["dtype"]
        text = f"{dtype}({text})" if dtype in ("i32", "u8") else text
        same = [name for name in used if chosen[name] == to]
        given = same[0] if same else "y"
        if len(same) > 1:
            for name in same[1:]:
                del args[name]
            text = "".join(given if word in same else word for word in split_words(text))
        args[given] = to + suffix
        if to not in self.written:
            self.written.append(to)
        return form | {"map": {given: text}}

    def nodes_of(self, count):
        draw, made = self.draw, []
        for _ in range(count):
            kind = draw.random()
            if kind < 0.08 and "x7" in self.written:
                made.append({"id": self.id("copy"), "copy": {"from": "x7", "to": "x6"}} if self.buffers["x6"]["dtype"] == self.buffers["x7"]["dtype"]
                            else self.element(False))
            else:
                made.append((kind < 0.4 and self.kernel()) or self.element(kind > 0.75))
        return made

    def outer(self):
        """A reduction of a map that reads nothing of the shape that it gives."""
        split = self.buffers["x0"]["split"]
        self.buffers |= {"column": {"dtype": "f32", "shape": [self.rows, 1], "split": split, "init": {"normal": {"seed": 7}}},
                         "table": {"dtype": "f32", "shape": [self.rows, self.width], "split": split},
                         "total": {"dtype": "f64", "shape": [1], "init": 0, "output": True}}
        text, names = self.draw.choice([("a * 2", "a"), ("b + 1", "b"), ("a * b", "ab"), ("a - b * s", "ab"), ("s", "")])
        whole = {"a": "column", "b": "row"}
        args = {name: whole[name] for name in names} | ({"s": 3} if "s" in text else {})
        yield {"id": "outer", "map": {"t": text}, "args": args | {"t": "table"}}
        text = self.draw.choice(["sum(t)", "max(t + 1)", "sum(t * t)"])
        yield {"id": "total", "reduce": {"r": text}, "args": {"t": "table", "r": "total"}}

    def graph(self):
        draw = self.draw
        nodes = [{"id": "line", "map": {"y": "a * 2"}, "args": {"a": "row", "y": "line"}}]
        nodes += self.nodes_of(draw.randrange(2, 8))
        if draw.random() < 0.4:
            self.buffers |= {name: {"dtype": "f32", "shape": [self.rows, self.width], "split": self.buffers["x0"]["split"]} for name in ("u", "v")}
            nodes.append({"id": "enter", "map": {"u": "f32(a)"}, "args": {"a": draw.choice(self.written), "u": "u"}})
            body = self.nodes_of(draw.randrange(1, 4))
            body.insert(draw.randrange(len(body) + 1), {"id": "step", "map": {"v": "u * 0.5 + 1"}, "args": {"u": "u", "v": "v"}})
            nodes.append({"repeat": draw.choice([1, 3]), "carry": {"u": "v"}, "nodes": body})
            nodes.append({"id": "leave", "map": {"x": f"{self.buffers['x7']['dtype']}(u)"}, "args": {"u": "u", "x": "x7"}})
            self.written.append("x7")
        nodes += self.nodes_of(draw.randrange(1, 5))
        if self.is_broadcast:
            nodes += self.outer()
        if "x7" not in self.written:
            nodes.append({"id": "last", "map": {"y": f"{self.buffers['x7']['dtype']}(a)"}, "args": {"a": self.written[-1], "y": "x7"}})
            self.written.append("x7")
        for name in [one for one in self.buffers if one[0] == "x" and one not in self.written]:
            self.buffers[name].pop("output", None)
        return {"gantry": 1, "name": "fused", "buffers": self.buffers, "nodes": nodes}


def split_words(text):
    word, words = "", []
    for c in text:
        if c.isalnum() or c == "_":
            word += c
            continue
        words += [word, c]
        word = ""
    return [*words, word]


def check(command, recheck, seed, folder):
    """How many nodes went into others."""
    graph = Maker(seed).graph()
    path = folder / "graph.json"
    path.write_text(json.dumps(graph, indent=1))
    found, nodes = {}, {}
    for devices in (1, 2, 3):
        for option in ([], ["--no-fuse"]):
            schedule = folder / "schedule.json"
            report = json.loads(gantry(command, "run", path, "--devices", devices, "--json", "--output-schedule", schedule, *option))
            outputs = {name: one["xxh64"] for name, one in report["outputs"].items()}
            if found.setdefault("all", outputs) != outputs:
                wrong = [name for name, one in outputs.items() if found["all"][name] != one]
                raise SystemExit(f"seed {seed}, {devices} devices, {option or 'fused'}: {wrong} differ from those on one device, fused\n{path.read_text()}")
            done = subprocess.run([sys.executable, recheck, path, schedule], capture_output=True, text=True, timeout=300)
            if done.returncode:
                raise SystemExit(f"seed {seed}, {devices} devices, {option or 'fused'}: recheck: {done.stdout}{done.stderr}")
            nodes[not option] = len(json.loads(schedule.read_text())["nodes"])
    return nodes[False] - nodes[True], nodes[False]


def main(command, recheck, first=0, count=40):
    with tempfile.TemporaryDirectory() as folder:
        results = [check(command, recheck, seed, pathlib.Path(folder)) for seed in range(int(first), int(first) + int(count))]
    fused, nodes = map(sum, zip(*results))
    print(f"{len(results)} graphs give the same bits fused and not; {fused} of {nodes} nodes went into others")
    if fused < nodes / 20:
        raise SystemExit("hardly anything was fused, so this says little")


main(*sys.argv[1:])
