# SPDX-License-Identifier: Apache-2.0
"""Random graphs that use other graphs, and the same graphs expanded here: equal normal forms of what is scheduled, and equal results.

check_use.py GANTRY FIRST LAST
"""
import json
import pathlib
import random
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import gantry, np, run  # noqa: E402

WIDTH = 4


def leaf(draw):
    """A graph with two buffers for others, one of its own, and params; all its numbers are integers."""
    maps = [{"id": "one", "map": {"t": f"x * k + {draw.randrange(5)}"}, "args": {"x": "x", "t": "t", "k": "k"}},
            {"id": "two[i]", "for": {"i": 2}, "map": {"y": "t - b + i"}, "args": {"t": "t[i]", "y": "y", "b": "b", "i": "i"}}]
    if draw.random() < 0.5:
        maps[1] = {"id": "two", "map": {"y": "t - b"}, "args": {"t": "t", "y": "y", "b": "b"}, "after": "one"}
    else:
        maps[0]["map"]["t"] += " + 0 * x"
        maps[1] = {"id": "two[i]", "for": {"i": 2}, "map": {"t": "t - b + i"}, "args": {"t": "t[i]", "b": "b", "i": "i"}, "after": "one"}
        maps.append({"id": "three", "map": {"y": "t"}, "args": {"t": "t", "y": "y"}, "after": "two[i]"})
    return {"gantry": 1, "params": {"n": 2, "k": 3, "twice": "2 * n"},
            "buffers": {"x": {"dtype": "f64", "shape": ["n", WIDTH], "init": 1}, "y": {"dtype": "f64", "shape": ["twice // 2", WIDTH], "output": True},
                        "t": {"dtype": "f64", "shape": ["n", WIDTH], "split": 2},
                        "b": {"dtype": "f64", "shape": [1], "init": draw.randrange(9), "class": draw.choice(["input", "const"])}},
            "nodes": maps}


def user(draw, names):
    """A graph that uses others once or several times, its own buffers cut into parts."""
    steps = draw.randrange(1, 4)
    nodes = [{"id": "first", "map": {"h": "x + 1"}, "args": {"x": "x", "h": "h[0]"}},
             {"id": draw.choice(["layer[i]", "layer[i,0]"]), "for": {"i": "steps"}, "use": draw.choice(names),
              "with": {"x": draw.choice(["h[i]", "h{i * n:(i + 1) * n}"]), "y": "h[i+1]", "n": "n", "k": draw.choice([2, "i + k", "k // 2"])}}]
    if steps == 2 and draw.random() < 0.5:
        nodes[1]["if"] = "i != 1"
        nodes.append({"id": "fill[i]", "for": {"i": "steps"}, "if": "i == 1", "map": {"h": "g"}, "args": {"h": "h[i+1]", "g": "h[i]"}, "after": "first"})
    nodes.append({"id": "last", "map": {"y": "h"}, "args": {"y": "y", "h": "h[steps]"}, "after": draw.choice([nodes[1]["id"], nodes[1]["id"].replace("i", "0"), "first"])})
    if draw.random() < 0.4:
        nodes.insert(1, {"id": "again", "use": draw.choice(names), "with": {"x": "z", "n": "n"}})
    return {"gantry": 1, "params": {"n": 2, "k": draw.randrange(2, 9), "steps": steps},
            "buffers": {"x": {"dtype": "f64", "shape": ["n", WIDTH], "init": {"iota": {}}}, "y": {"dtype": "f64", "shape": ["n", WIDTH], "output": True},
                        "z": {"dtype": "f64", "shape": ["n", WIDTH], "init": 2},
                        "h": {"dtype": "f64", "shape": ["n * (steps + 1)", WIDTH], "split": "steps + 1"}},
            "nodes": nodes}


# ---- the same, expanded ----

def value(text, names):
    return eval(str(text), {"__builtins__": {}}, names) if isinstance(text, str) else text


def replace(text, names, indices):
    """The items in brackets of an id that use an index."""
    item = lambda one: str(value(one, names)) if set(re.findall(r"[a-z]+", one)) & set(indices) else one
    return re.sub(r"\[([^\]]*)\]", lambda m: "[" + ",".join(map(item, m.group(1).split(","))) + "]", text)


class Expander:
    def __init__(self, files):
        self.files, self.buffers, self.nodes, self.made = files, {}, [], {}

    def reference(self, text, names, bound, prefix):
        """In the graph as it is expanded: parts and rows by numbers."""
        name, rest = re.match(r"([a-z]+)(.*)", text).groups()
        if name in bound:
            assert not (rest and bound[name][1]), "only whole"
            base, of = bound[name]
            return base + (of or self.numbers(rest, names))
        return prefix + name + self.numbers(rest, names)

    def numbers(self, rest, names):
        return re.sub(r"[^\[\]{}:]+", lambda m: str(value(m.group(0), names)), rest)

    def file(self, form, given, prefix, dotted):
        numbers = {k: v for k, v in given.items() if not isinstance(v, tuple)}
        bound = {k: v for k, v in given.items() if isinstance(v, tuple)}
        names, families = {}, {}
        for name, text in form["params"].items():
            names[name] = numbers.get(name, value(text, names))
        for name, one in form["buffers"].items():
            if name not in bound:
                one = {**one, "shape": [value(n, names) for n in one["shape"]]}
                self.buffers[dotted + name] = {**one, "split": value(one["split"], names)} if "split" in one else one
        start = len(self.nodes)
        for node in form["nodes"]:
            (index, count), = node.get("for", {"": 1}).items()
            for i in range(value(count, names)):
                inner = {**names, index: i}
                if value(node.get("if", 1), inner):
                    first = len(self.nodes)
                    self.node(node, inner, [index], bound, prefix, dotted)
                    ids = [one["id"] for one in self.nodes[first:]]
                    for name in {node["id"], replace(node["id"], inner, [index])}:
                        families.setdefault(name, []).extend(ids)
        for node in self.nodes[start:]:
            if node.get("scope") is form and node.get("level") == prefix:
                node["after"] = list(dict.fromkeys(families.get(node["after"], []))) if "after" in node else []
                del node["scope"], node["level"]

    def node(self, node, names, indices, bound, prefix, dotted):
        name = prefix + replace(node["id"], names, indices)
        if "use" in node:
            form, given = self.files[node["use"]], {}
            for key, text in node["with"].items():
                if key in form["params"]:
                    given[key] = value(text, names)
                else:
                    full = self.reference(text, names, bound, dotted)
                    given[key] = re.match(r"([a-z.0-9]*[a-z])(.*)", full).groups()
            self.file(form, given, name + ".", name.replace("]", "").replace("[", ".").replace(",", ".") + ".")
            return
        made = {"id": name, "map": node["map"], "scope": None, "level": prefix, "args": {}}
        for arg, text in node["args"].items():
            is_number = re.match(r"[a-z]+", text).group(0) in names and text in names
            made["args"][arg] = value(text, names) if is_number else self.reference(text, names, bound, dotted)
        if "after" in node:
            made["after"] = replace(node["after"], names, indices) if set(re.findall(r"[a-z]+", node["after"])) <= set(names) else node["after"]
        made["scope"] = self.form_of(node)
        self.nodes.append(made)

    def form_of(self, node):
        return next(form for form in [*self.files.values(), self.main] if any(node is one for one in form["nodes"]))


def check(command, seed):
    draw = random.Random(seed)
    files = {"one.json": leaf(draw), "two.json": leaf(draw)}
    files["deep/three.json"] = user(draw, ["four.json"])
    files["deep/four.json"] = leaf(draw)
    inner = {"one.json": files["one.json"], "two.json": files["two.json"], "deep/three.json": files["deep/three.json"], "four.json": files["deep/four.json"]}
    main = user(draw, ["one.json", "two.json", "deep/three.json"])
    expander = Expander(inner)
    expander.main = main
    expander.file(main, {}, "", "")
    expanded = {"gantry": 1, "params": main["params"], "buffers": expander.buffers, "nodes": expander.nodes}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "deep").mkdir()
        for name, form in files.items():
            (folder / name).write_text(json.dumps(form))
        results = []
        for name, form in (("used", main), ("expanded", expanded)):
            (folder / f"{name}.json").write_text(json.dumps(form))
            devices = ["--devices", str(1 + seed % 3)]
            gantry(command, "schedule", folder / f"{name}.json", *devices, "-o", folder / f"{name}.s")
            schedule = json.loads((folder / f"{name}.s").read_text())
            report = json.loads(gantry(command, "run", folder / f"{name}.json", "--json", *devices))
            results.append((schedule, report["outputs"]))
    (a, first), (b, second) = results
    if a != b or first != second:
        print(json.dumps(expanded))
        raise SystemExit(f"seed {seed}: the graph that uses others and the expanded one differ: hashes {a['graph_hash']}, {b['graph_hash']}")
    return len(expander.nodes)


def check_loops(command):
    """A loop in a used graph, that is used in a loop: x -> x / 2 + it three times, four times over, with the outer index."""
    inner = {"gantry": 1, "params": {"n": 4}, "buffers": {name: {"dtype": "f64", "shape": ["n"]} for name in ("x", "u", "v", "y")},
             "nodes": [{"id": "in", "copy": {"from": "x", "to": "u"}},
                       {"repeat": 3, "carry": {"u": "v"}, "nodes": [
                           {"id": "half", "map": {"v": "u / 2 + k + 10 * o"}, "args": {"u": "u", "v": "v", "k": "it", "o": "outer"}}]},
                       {"id": "out", "copy": {"from": "v", "to": "y"}}]}
    inner["buffers"]["x"]["init"] = 1
    outer = {"gantry": 1, "params": {"n": 8},
             "buffers": {"x": {"dtype": "f64", "shape": ["n"], "split": 2, "init": {"iota": {}}}, "y": {"dtype": "f64", "shape": ["n"], "split": 2, "output": True}},
             "nodes": [{"repeat": 4, "index": "outer", "carry": {"x": "y"}, "nodes": [
                 {"id": "part[i]", "for": {"i": 2}, "use": "inner.json", "with": {"x": "x[i]", "y": "y[i]", "n": "n // 2"}}]}]}
    x = np.arange(8.0)
    for o in range(4):
        for k in range(3):
            x = x / 2 + k + 10 * o
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "inner.json").write_text(json.dumps(inner))
        (folder / "outer.json").write_text(json.dumps(outer))
        for devices in (1, 2):
            got, _ = run(command, folder / "outer.json", {}, {"y": None}, ["--devices", devices])
            if not np.array_equal(got["y"], x):
                raise SystemExit(f"loops in used graphs on {devices} devices: {got['y']}, by NumPy {x}")


def main(command, first, last):
    check_loops(command)
    nodes = sum(check(command, seed) for seed in range(int(first), int(last)))
    print(f"{int(last) - int(first)} graphs that use others, {nodes} nodes, equal their expansions")


main(*sys.argv[1:])
