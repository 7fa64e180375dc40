# SPDX-License-Identifier: Apache-2.0
"""Nodes that run by a flag: random graphs whose nodes and blocks are given a `when` by flags of all kinds, also within others, on 1 to 4 devices,
unrolled or in phases, against the oracle; and graphs all of whose nodes have one flag, with buffers of their own. Each schedule is also
held against the graph by both checkers. The same seed is the same test.

check_when.py GANTRY INCLUDE RECHECK FIRST LAST
"""
import copy
import itertools
import json
import random
import subprocess
import sys

from generator import Generator
from oracle import Invalid
from runner import Gantry, difference, expected, np, with_kernels

LARGE = 300_000
FLAGS = [("i64", 0), ("i64", 1), ("u8", 255), ("f32", 0), ("f64", -0.5), ("i32", -1)]


def given(r, graph, k):
    """A flag that the graph comes with: an element of its own, or one of several."""
    if r.random() < 0.3:
        graph["buffers"]["flags"] = {"dtype": "u8", "shape": [4], "split": 4, "init": {"random": {"seed": 3, "low": 0, "high": 2}}}
        return r.choice([f"flags[{r.randint(0, 3)}]", f"flags{{{k % 4}:{k % 4 + 1}}}"])
    dtype, value = r.choice(FLAGS)
    graph["buffers"][f"given{k}"] = {"dtype": dtype, "shape": [1], "init": value, "class": r.choice(["const", "input", "state"])}
    return f"given{k}"


def computed(r, graph, k, nodes, loops):
    """A flag that a node right before computes; in a loop it may change from iteration to iteration."""
    graph["buffers"]["one"] = {"dtype": "i64", "shape": [1], "init": 1, "class": "const"}
    graph["buffers"][f"made{k}"] = {"dtype": "i64", "shape": [1], "output": r.random() < 0.3}
    if r.random() < 0.3:  # how many are chosen
        graph["buffers"]["picks"] = {"dtype": "i64", "shape": [5], "init": r.choice([0, {"random": {"seed": 4, "low": 0, "high": 2}}]), "class": "const"}
        graph["buffers"][f"taken{k}"] = {"dtype": "i64", "shape": [5]}
        nodes.append({"id": f"made{k}", "kernel": "select", "args": {"x": "picks", "mask": "picks", "y": f"taken{k}", "count": f"made{k}"}})
        return f"made{k}"
    factor = r.choice([0, 1, -3] + ["it % 2", "it // 2", "1 - it"] * (loops > 0))
    nodes.append({"id": f"made{k}", "kernel": "scale", "args": {"a": factor, "x": "one", "y": f"made{k}"}})
    return f"made{k}"


class Guard:
    def __init__(self, seed, graph):
        self.r, self.graph, self.count = random.Random(seed), graph, 0
        self.often = self.r.choice([0.1, 0.2, 0.5])

    def flag(self, nodes, loops):
        """`nodes`: those that a node can be added to; None: it would be there several times."""
        self.count += 1
        if nodes is None or self.r.random() < 0.5:
            return given(self.r, self.graph, self.count)
        return computed(self.r, self.graph, self.count, nodes, loops)

    def elements(self, elements, loops, turns=False):
        out = []
        if self.r.random() < self.often / 5:
            flag = self.flag(None if turns else out, loops)
            return out + [{"when": {"buffer": flag}, "nodes": self.within(elements, loops, turns)}]
        for element in elements:
            if "repeat" in element:
                element["nodes"] = self.elements(element["nodes"], loops + 1, turns)
            elif self.r.random() < self.often:
                element["when"] = {"buffer": self.flag(None if turns else out, loops)}
                if "nodes" in element:
                    element["nodes"] = self.within(element["nodes"], loops, turns or "for" in element or "if" in element)
            elif "nodes" in element:
                element["nodes"] = self.elements(element["nodes"], loops, turns or "for" in element or "if" in element)
            out.append(element)
        return out

    def within(self, elements, loops, turns):
        """Those that run by a flag already; some by others, too."""
        return self.elements(elements, loops, turns) if self.r.random() < 0.6 else elements

    def whole(self):
        self.graph["nodes"] = self.elements(self.graph["nodes"], 1 if "repeat" in self.graph else 0)
        return self.graph


def make(seed, r, starts):
    """A graph, how few devices it may be on, and what comes out; None: it is to be refused."""
    generator = Generator(seed)
    graph = with_kernels(generator.make(r.choice([3, 6, 10, 16])))
    for k in range(0 if generator.invalid else 10):
        guarded = Guard(seed * 10 + k, copy.deepcopy(graph)).whole()
        try:
            return guarded, generator.apart, expected(guarded, starts=starts)
        except Invalid as error:
            name = str(error).split()[0]
            unsure = "was not written" in str(error) and not guarded["buffers"][name].get("output")  # nodes of one flag alone may know it
            if r.random() < 0.1 and not unsure:
                return guarded, generator.apart, None
    return None, False, None


def make_inner(seed, r, starts):
    """A graph whose nodes all run by one flag, most often in the iterations of a loop; what only they know begins with nothing."""
    generator = Generator(seed)
    graph = with_kernels(generator.make(r.choice([3, 6, 10, 16])))
    if not generator.invalid and r.random() < 0.5:
        graph = Guard(seed, graph).whole()
    names = graph["buffers"]
    if generator.invalid or "'host'" in str(graph["nodes"]):
        return None, False, None
    for entry in names.values():
        if entry.get("output") or entry.get("class") == "state":  # it keeps what it held
            entry.setdefault("init", 3)
    if not any("init" not in entry for entry in names.values()):
        return None, False, None
    is_on = r.random() < 0.6 or "carry" in str(graph)  # behind a loop that carries, names mean the last ones, whatever ran
    try:
        want = expected(graph, starts=starts)
        want = want if is_on else expected({**graph, "nodes": []}, starts=starts)
    except Invalid:
        return None, False, None
    names["guard"] = {"dtype": r.choice(["i32", "f64", "u8"]), "shape": [1], "init": int(is_on), "class": "const"}
    graph["nodes"] = [{"when": {"buffer": "guard"}, "nodes": graph["nodes"]}]
    return graph, generator.apart, want


def words(r, apart):
    chosen = ["--devices", r.randint(1 + apart, 4), "--effort", r.choice([0, 0, 1, 3])]
    return chosen + (["--unroll", r.choice([1, 3, 10])] if r.random() < 0.3 else [])


def check(gantry, recheck, graph, chosen):
    """None, or what one of the checkers has against the schedule."""
    name = gantry.write(graph)
    result = gantry.words("schedule", name, "--allow-code", "-o", "schedule.json", *chosen)
    result = result if result.code else gantry.words("check", name, "schedule.json", "--allow-code")
    if result.code:
        return result.code, result.err
    if "tiles" in str(graph) or (gantry.folder / "schedule.json").stat().st_size > LARGE:
        return 0, ""  # the second checker knows no lists of tiles, and is slow
    second = subprocess.run([sys.executable, recheck, "graph.json", "schedule.json"], cwd=gantry.folder, capture_output=True, text=True, timeout=100)
    return (0, "") if second.returncode in (0, 77) else (second.returncode, second.stdout + second.stderr)


LAYER = {
    "gantry": 1, "name": "layer",
    "buffers": {"x": {"dtype": "f32", "shape": [8], "split": 2, "class": "state"}, "h": {"dtype": "f32", "shape": [8], "split": 2}, "small": {"dtype": "u8", "shape": [1]},
                "given": {"dtype": "u64", "shape": [1]}},
    "nodes": [{"id": "h[i]", "for": {"i": 2}, "map": {"h": "x + 1"}, "args": {"h": "h[i]", "x": "x[i]"}},
              {"id": "small", "reduce": {"ok": "all(x < 6)"}, "args": {"x": "x", "ok": "small"}},
              {"when": {"buffer": "given"}, "nodes": [
                  {"id": "g[i]", "for": {"i": 2}, "map": {"h": "2 * h"}, "args": {"h": "h[i]"}, "when": {"buffer": "small"}},
                  {"id": "f[i]", "for": {"i": 2}, "map": {"h": "h + 100"}, "args": {"h": "h[i]"}}]},
              {"id": "s[i]", "for": {"i": 2}, "map": {"x": "h"}, "args": {"h": "h[i]", "x": "x[i]"}}]}


def layers(gantry):
    """A graph that is used under a flag, whose nodes have flags of their own, one of which only they write: three deep, in all combinations."""
    gantry.write(LAYER, "layer.json")
    flag = {"dtype": "u64", "shape": [1], "class": "const"}
    failed = 0
    for outer, given, devices in itertools.product((0, 1), (0, 1), (1, 2, 3)):
        buffers = {"v": {"dtype": "f32", "shape": [8], "split": 2, "init": 1, "class": "state", "output": True}, "a": {**flag, "init": outer}, "b": {**flag, "init": given}}
        use = {"use": "layer.json", "id": "l[k]", "for": {"k": 4}, "with": {"x": "v", "given": "b"}, "when": {"buffer": "a"}}
        v = np.ones(8, np.float32)
        for _ in range(4 if outer else 0):
            h = (v + 1) * (2 if given and (v < 6).all() else 1)
            v = h + 100 * given
        result = gantry.run({"gantry": 1, "name": "layers", "buffers": buffers, "nodes": [use]}, ["--devices", devices, "--check"], None, {"v": ("f32", (8,))})
        problem = result.err if result.code else difference(result.arrays, {"v": v})
        failed += bool(problem)
        if problem:
            print(f"FAILED layers, flags {outer} and {given}, {devices} devices: {problem}", flush=True)
    return failed


def mutants(gantry):
    """The results of a collective with a `when` are taken on two devices by a flag that changes from iteration to iteration: plans in which one device
    asks without waiting for its flag, asks another one, or none, so that devices could differ."""
    graph = {"gantry": 1, "name": "mutants", "buffers": {
        "x": {"dtype": "f32", "shape": [8], "split": 2, "init": 1, "class": "state"}, "y": {"dtype": "f32", "shape": [8], "split": 2, "init": 3, "output": True},
        "flag": {"dtype": "u8", "shape": [1]}, "other": {"dtype": "u8", "shape": [1], "init": 1, "class": "const"}}, "nodes": [{"repeat": 2, "nodes": [
            {"id": "flag", "map": {"f": "it > other - 1"}, "args": {"f": "flag", "it": "it", "other": "other"}},
            {"id": "y", "when": {"buffer": "flag"}, "collective": "all_reduce", "op": "sum", "in": ["x[0]", "x[1]"], "out": ["y[0]", "y[1]"], "on": ["dev0", "dev1"]},
            {"id": "x[i]", "for": {"i": 2}, "on": "i", "map": {"x": "x + y"}, "args": {"x": "x[i]", "y": "y[i]"}}]}]}
    name = gantry.write(graph)
    gantry.words("schedule", name, "--devices", 2, "-o", "schedule.json")
    plan = json.loads((gantry.folder / "schedule.json").read_text())
    flags = [i for i, one in enumerate(plan["instances"]) if plan["values"][one["value"]]["name"] in ("flag", "other")]
    known = [i for i in flags if plan["values"][plan["instances"][i]["value"]]["name"] == "flag"]
    takes = [i for i, op in enumerate(plan["ops"]) if op.get("node", "").startswith("when.y.met")]
    makes = [i for i, op in enumerate(plan["ops"]) if any(mode == "write" and instance in known for mode, instance, *_ in op["uses"])]
    changed = []
    for i, row in enumerate(plan["sync"]):  # a flag that is waited for: nobody else says that it is there
        if row["from"] in makes and row["to"] in takes + makes:
            changed.append(copy.deepcopy(plan))
            del changed[-1]["sync"][i]
    for i in takes:
        changed.append(copy.deepcopy(plan))
        del changed[-1]["ops"][i]["uses"][-1]
        for instance in flags:
            if instance != plan["ops"][i]["uses"][-1][1]:
                changed.append(copy.deepcopy(plan))
                changed[-1]["ops"][i]["uses"][-1][1] = instance
    right = gantry.words("check", name, "schedule.json")
    failed = right.code != 0 or len(takes) != 4 or len(changed) < 12
    if failed:
        print(f"FAILED mutants: {len(takes)} copies, {len(changed)} plans, exit {right.code}: {right.err}", flush=True)
    for i, one in enumerate(changed):
        (gantry.folder / "changed.json").write_text(json.dumps(one))
        result = gantry.words("check", name, "changed.json")
        if result.code == 0 or "rule" not in result.err:
            failed += 1
            print(f"FAILED mutants: plan {i}: exit {result.code}: {result.err}", flush=True)
    return int(failed)


def nested(elements, around=False):
    """How many flags are within others."""
    return sum((around and "when" in one) + nested(one.get("nodes", []), around or "when" in one) for one in elements)


REFUSED = ("kept apart from", "is `with`", "is `apart`", "is `after`", "may end after its first iteration")
KEEPS = 'runs under a "when" and else keeps'  # what a loop carries


def main():
    gantry, recheck, first, last = Gantry(sys.argv[1], sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    count = {"graphs": 0, "invalid": 0, "refused": 0, "failed": layers(gantry) + mutants(gantry), "flags": 0, "nested": 0, "inner": 0}
    for seed, how in itertools.product(range(first, last), (make, make_inner)):
        r = random.Random(seed * 15485863)
        starts = r.choice([1, 1, 2, 3])
        graph, apart, result = how(seed, r, starts)
        if graph is None or '"when"' not in str(graph).replace("'", '"'):
            continue
        if how is make_inner:
            tried = gantry.run(graph)
            if tried.code == 3 and KEEPS in tried.err and "carry" in str(graph):
                continue
            count["inner"] += 1
        count["graphs"] += 1
        count["flags"] += str(graph).count("'when'")
        count["nested"] += nested(graph["nodes"])
        want, buffers = result or (None, None)
        count["invalid"] += want is None
        for way in range(3):
            chosen = words(r, apart)
            more = ["--check", "--seed", r.randint(0, 1000)] if way == 1 else []
            if way == 2 and want is not None:
                code, problem = check(gantry, recheck, graph, chosen)
            else:
                result = gantry.run(graph, [*chosen, *more, "--iterations", starts], None, buffers)
                code, problem = result.code, result.err
                if want is None:
                    code, problem = (0, "") if code == 3 else (1, f"accepted, should be refused (exit {code}): {problem}")
                elif code == 0:
                    problem = difference(result.arrays, want)
            if code == 2 and any(text in problem for text in REFUSED):
                count["refused"] += 1
            elif problem and (code or way < 2):
                count["failed"] += 1
                print(f"FAILED seed {seed}: {' '.join(map(str, chosen + more))} --iterations {starts}: exit {code}: {problem.strip()}", flush=True)
    print(", ".join(f"{value} {name}" for name, value in count.items()) + f", {gantry.runs} runs")
    return 1 if count["failed"] or count["graphs"] < (last - first) // 4 or min(count["inner"], count["nested"]) < (last - first) // 8 else 0


if __name__ == "__main__":
    sys.exit(main())
