# SPDX-License-Identifier: Apache-2.0
"""Loops within loops against NumPy, and against the same loops unrolled here, by the rules of docs/graph-format.md.

check_loops.py GANTRY RECHECK [FIRST COUNT]     random graphs number FIRST to FIRST + COUNT - 1
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import np, run  # noqa: E402

rng = np.random.default_rng(16)

# ---- three methods that people write with nested loops ----


def buffer(shape, split=None, **more):
    return {"dtype": "f64", "shape": shape, **({"split": split} if split else {}), **more}


def heat():
    """Time steps of implicit heat, each solved by sweeps of Jacobi's method. `next` is carried by both loops."""
    n, parts, steps, sweeps, r = 61, 3, 7, 9, 0.4
    nodes = {"repeat": steps, "carry": {"u": "next"}, "nodes": [
        {"repeat": sweeps, "carry": {"guess": "next"}, "nodes": [
            {"id": "sides", "map": {"s": "a + b"}, "args": {"a": "guess{0:59}", "b": "guess{2:61}", "s": "sum"}},
            {"id": "ends", "fill": {"to": "next", "value": 0}},
            {"id": "sweep", "map": {"y": "(x + s * r) / (1 + 2 * r)"},
             "args": {"x": "u{1:60}", "s": "sum", "r": r, "y": "next{1:60}"}}]}]}
    u = rng.random(n)
    u[0] = u[-1] = 0
    graph = {"buffers": {"u": buffer([n], parts, init=0, output=True), "guess": buffer([n], parts, init=0),
                         "next": buffer([n], parts), "sum": buffer([n - 2])}, "nodes": [nodes]}
    want, guess = u.copy(), np.zeros(n)
    for _ in range(steps):
        for _ in range(sweeps):
            new = np.zeros(n)
            new[1:-1] = (want[1:-1] + (guess[:-2] + guess[2:]) * r) / (1 + 2 * r)
            guess = new
        want = guess
    return graph, {"u": u}, {"u": want}, 1e-13


def restarted():
    """Conjugate gradients, begun anew after every few iterations. No scalar leaves its buffer."""
    n, cycles, inner = 24, 3, 5
    a = rng.random((n, n))
    a = a @ a.T + n * np.eye(n)
    b = rng.random(n)

    def dot(name, x, y, to):
        return [{"id": f"clear_{name}", "fill": {"to": to, "value": 0}},
                {"id": name, "kernel": "dot", "args": {"x": x, "y": y, "out": to}}]

    def times(name, x, to):
        return {"id": name, "kernel": "gemm", "args": {"a": "A", "b": x, "c": to}}
    # Later cycles find y as the inner loop left it, which is x.
    nodes = [{"id": "x0", "kernel": "copy", "args": {"x": "x", "y": "y"}},
             {"repeat": cycles, "index": "cycle", "carry": {"x": "x1"}, "nodes": [
        times("Ax", "x", "q"),
        {"id": "r0", "map": {"r": "b - q", "p": "b - q"}, "args": {"b": "b", "q": "q", "r": "r", "p": "p"}},
        *dot("rr0", "r", "r", "rr"),
        {"repeat": inner, "carry": {"rr": "rr1", "y": "x1"}, "nodes": [
            times("Ap", "p", "q"),
            *dot("pq", "p", "q", "pq_"),
            {"id": "x'", "map": {"z": "y + rr / pq * p"}, "args": {"y": "y", "rr": "rr", "pq": "pq_", "p": "p", "z": "x1"}},
            {"id": "r'", "map": {"r": "r - rr / pq * q"}, "args": {"r": "r", "rr": "rr", "pq": "pq_", "q": "q"}},
            *dot("rr'", "r", "r", "rr1"),
            {"id": "p'", "map": {"p": "r + rr1 / rr * p"}, "args": {"p": "p", "r": "r", "rr": "rr", "rr1": "rr1"}}]}]}]
    column = {name: buffer([n, 1]) for name in ("q", "r", "p", "y", "x1")}
    graph = {"buffers": {"A": buffer([n, n], init=0), "b": buffer([n, 1], init=0), "x": buffer([n, 1], init=0, output=True),
                         "rr": buffer([1]), "rr1": buffer([1]), "pq_": buffer([1]), **column}, "nodes": nodes}
    x = np.zeros(n)
    for _ in range(cycles):
        r = b - a @ x
        p, rr = r.copy(), r @ r
        for _ in range(inner):
            q = a @ p
            alpha = rr / (p @ q)
            x, r = x + alpha * p, r - alpha * q
            rr, before = r @ r, rr
            p = r + rr / before * p
    return graph, {"A": a, "b": b[:, None]}, {"x": x[:, None]}, 1e-9


def two_grids():
    """Cycles on two grids for -u'' = f: sweeps of damped Jacobi before and behind, more of them on the coarse grid."""
    m, cycles, before, coarse = 15, 4, 2, 6
    n = 2 * m + 1
    eye, small = np.eye(n), np.eye(m)
    fine_a, coarse_a = 2 * eye - np.eye(n, k=1) - np.eye(n, k=-1), (2 * small - np.eye(m, k=1) - np.eye(m, k=-1)) / 4
    up = np.zeros((n, m))
    for k in range(m):
        up[2 * k:2 * k + 3, k] = 0.5, 1, 0.5
    down = up.T / 2
    f, w = rng.random(n), 2 / 3

    def sweeps(name, count, x, new, rhs, matrix, diagonal):
        return {"repeat": count, "carry": {x: new}, "nodes": [
            {"id": f"{name}_Ax", "kernel": "gemm", "args": {"a": matrix, "b": x, "c": f"{name}_t"}},
            {"id": name, "map": {"y": "x + w * (f - t) / d"},
             "args": {"x": x, "f": rhs, "t": f"{name}_t", "w": w, "d": diagonal, "y": new}}]}
    nodes = [{"repeat": cycles, "carry": {"u": "v"}, "nodes": [
        {"id": "begin", "kernel": "copy", "args": {"x": "u", "y": "a"}},
        sweeps("pre", before, "a", "a1", "f", "A", 2),
        {"id": "Au", "kernel": "gemm", "args": {"a": "A", "b": "a", "c": "t"}},
        {"id": "rest", "map": {"r": "f - t"}, "args": {"f": "f", "t": "t", "r": "r"}},
        {"id": "down", "kernel": "gemm", "args": {"a": "down", "b": "r", "c": "rc"}},
        {"id": "zero", "fill": {"to": "e", "value": 0}},
        sweeps("coarse", coarse, "e", "e1", "rc", "Ac", 0.5),
        {"id": "up", "kernel": "gemm", "args": {"a": "up", "b": "e", "c": "t"}},
        {"id": "correct", "map": {"y": "x + t"}, "args": {"x": "a", "t": "t", "y": "c"}},
        sweeps("post", before, "c", "v", "f", "A", 2)]}]
    fine = {name: buffer([n, 1]) for name in ("v", "a", "a1", "c", "t", "r", "pre_t", "post_t")}
    graph = {"buffers": {"A": buffer([n, n], init=0), "Ac": buffer([m, m], init=0), "up": buffer([n, m], init=0),
                         "down": buffer([m, n], init=0), "f": buffer([n, 1], init=0), "u": buffer([n, 1], init=0, output=True),
                         **fine, **{name: buffer([m, 1]) for name in ("e", "e1", "rc", "coarse_t")}}, "nodes": nodes}
    u = np.zeros(n)

    def smooth(x, rhs, matrix, diagonal, count):
        for _ in range(count):
            x = x + w * (rhs - matrix @ x) / diagonal
        return x
    for _ in range(cycles):
        u = smooth(u, f, fine_a, 2, before)
        u = u + up @ smooth(np.zeros(m), down @ (f - fine_a @ u), coarse_a, 0.5, coarse)
        u = smooth(u, f, fine_a, 2, before)
    return graph, {"A": fine_a, "Ac": coarse_a, "up": up, "down": np.ascontiguousarray(down), "f": f[:, None]}, {"u": u[:, None]}, 1e-11


def check_methods(command, recheck):
    failed = 0
    for method in (heat, restarted, two_grids):
        graph, inputs, want, rtol = method()
        graph = {"gantry": 1, "name": method.__name__, **graph}
        for devices in (1, 2, 3, 4):
            for extra in ([], ["--check"], ["--unroll", "20"]):
                try:
                    got, _ = run(command, graph, inputs, dict.fromkeys(want), ["--devices", devices, *extra])
                    for name, array in want.items():
                        np.testing.assert_allclose(got[name], array, rtol=rtol, atol=rtol)
                    schedule_is_right(command, recheck, graph, devices, [] if "--check" in extra else extra)
                except (AssertionError, RuntimeError) as error:
                    failed += 1
                    print(f"FAILED {method.__name__} on {devices} devices {' '.join(extra)}: {error}")
    return failed


# ---- schedules ----


def schedule_is_right(command, recheck, graph, devices, extra):
    with tempfile.TemporaryDirectory() as folder:
        file, schedule = pathlib.Path(folder) / "g.json", pathlib.Path(folder) / "s.json"
        file.write_text(json.dumps(graph))
        for words in ([command, "schedule", file, "--devices", devices, "-o", schedule, "--effort", 1, *extra],
                      [command, "check", file, schedule, "--devices", devices], [recheck, file, schedule]):
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600)
            if done.returncode not in ((0, 4) if words[0] == recheck else (0,)):
                raise RuntimeError(f"{words[:2]}: {done.stderr}{done.stdout[-400:]}")


# ---- random loops, unrolled by hand ----

ROWS, PARTS = 12, 3


class Refused(Exception):
    """The graph is none: a node reads what nothing has written, or has two names for what it changes."""


class Unrolled:
    """What a graph means, node after node: `values` are arrays with a name of their own, names mean values."""

    def __init__(self, count, start):
        self.values, self.held = [array.copy() for array in start], [np.full(ROWS, i < count) for i in range(len(start))]
        self.means, self.nodes, self.turns = list(range(len(start))), [], []

    def fresh(self):
        self.values.append(np.zeros(ROWS, np.int64))
        self.held.append(np.zeros(ROWS, bool))
        return len(self.values) - 1

    def elements(self, elements, indices):
        for element in elements:
            if "repeat" in element:
                self.loop(element, indices)
            else:
                self.node(element, indices)

    def loop(self, loop, indices):
        pairs = [(int(prev[1:]), int(after[1:])) for prev, after in loop["carry"].items()]
        for i in range(loop["repeat"]):
            for prev, after in pairs:
                if i:
                    self.means[prev] = self.means[after]
                if self.means[prev] == self.means[after]:
                    self.means[after] = self.fresh()
            self.elements(loop["nodes"], {**indices, loop.get("index", "it"): i})
        for prev, after in pairs if loop["repeat"] else []:
            self.means[prev] = self.means[after]

    def node(self, node, indices):
        uses = node["uses"]  # (argument, buffer, part or None, mode)
        rows = [slice(0, ROWS) if part is None else slice(part * ROWS // PARTS, (part + 1) * ROWS // PARTS) for _, _, part, _ in uses]
        at = [self.means[b] for _, b, _, _ in uses]
        for i, (_, b, _, mode) in enumerate(uses):
            for k in range(i):
                share = rows[i].start < rows[k].stop and rows[k].start < rows[i].stop
                if at[i] == at[k] and share and {mode, uses[k][3]} != {"read"}:
                    raise Refused
        for (_, _, _, mode), value, part in zip(uses, at, rows):
            if mode in ("read", "readwrite") and not self.held[value][part].all():
                raise Refused
        number = eval(str(node.get("number", 0)), {}, indices)
        views = [self.values[value][part] for value, part in zip(at, rows)]
        if node["what"] == "fill":
            views[0][:] = number
        elif node["what"] == "add":
            views[2][:] = views[0] + views[1]
        elif node["what"] == "axpby":
            views[1][:] = number * views[0] + views[1]
        else:
            views[1][:] = views[0]
        for (_, _, _, mode), value, part in zip(uses, at, rows):
            self.held[value][part] |= mode != "read"
        self.nodes.append(form(node, [f"v{value}" for value in at], number, len(self.nodes)))


def form(node, names, number, serial=None):
    """The node as the graph format writes it, on these buffers."""
    name = node["id"] if serial is None else f"n{serial}"
    places = [one if part is None else f"{one}[{part}]" for one, (_, _, part, _) in zip(names, node["uses"])]
    more = {"after": node["after"]} if serial is None and node.get("after") else {}
    if node["what"] == "fill":
        return {"id": name, "fill": {"to": places[0], "value": number}, **more}
    args = {arg: place for place, (arg, *_) in zip(places, node["uses"])}
    if node["what"] == "axpby":
        args |= {"a": number, "b": 1}
    return {"id": name, "kernel": node["what"], "args": args, **more}


class Maker:
    def __init__(self, seed):
        self.draw, self.count, self.loops = random.Random(seed), 0, 0
        self.buffers = self.draw.randint(3, 6)
        self.ids = []

    def part(self):
        return self.draw.choice([None, None, *range(PARTS)])

    def node(self, indices, wholly=None):
        """A node; one that writes all of that buffer and does not read it."""
        d, what = self.draw, self.draw.choice(["fill", "add", "axpby", "axpby", "copy", "copy"] if wholly is None else ["fill", "add", "copy"])
        modes = {"fill": [("to", "write")], "add": [("x", "read"), ("y", "read"), ("z", "write")],
                 "axpby": [("x", "read"), ("y", "readwrite")], "copy": [("x", "read"), ("y", "write")]}[what]
        part = self.part() if wholly is None else None
        used = d.sample([b for b in range(self.buffers) if b != wholly], len(modes) - (wholly is not None))
        uses = [(arg, b, part, mode) for (arg, mode), b in zip(modes, used + ([] if wholly is None else [wholly]))]
        node = {"id": f"a{self.count}", "what": what, "uses": uses}
        self.count += 1
        if what == "axpby":
            node["number"] = " + ".join([str(d.randint(-3, 3)), *(f"{d.randint(1, 9)} * {i}" for i in d.sample(indices, d.randint(0, len(indices))))])
        elif what == "fill":
            node["number"] = d.randint(-9, 9)
        if self.ids and d.random() < 0.15:
            node["after"] = [d.choice(self.ids)]
        self.ids.append(node["id"])
        return node

    def loop(self, depth, indices):
        d = self.draw
        names = list(range(self.buffers))
        d.shuffle(names)
        pairs = {f"b{names[2 * i]}": f"b{names[2 * i + 1]}" for i in range(d.choice([0, 1, 1, 2])) if 2 * i + 1 < len(names)}
        loop = {"repeat": d.choice([0, 1, 2, 2, 3, 4, 5] if depth else [1, 2, 3, 4, 6, 9]), "carry": pairs}
        own = "it"
        if d.random() < 0.5:
            own = loop["index"] = f"k{self.loops}"
            self.loops += 1
        inside = [i for i in indices if i != own] + [own]
        loop["nodes"] = [self.node(inside, int(after[1:])) for after in pairs.values() if d.random() < 0.8] + self.elements(depth + 1, inside)
        return loop

    def elements(self, depth, indices):
        d, found = self.draw, []
        for _ in range(d.randint(1, 4)):
            found.append(self.loop(depth, indices) if depth < 3 and d.random() < (0.45, 0.4, 0.25)[depth] else self.node(indices))
        return found


def to_graph(elements):
    return [{**one, "nodes": to_graph(one["nodes"])} if "repeat" in one else form(one, [f"b{b}" for _, b, *_ in one["uses"]], one.get("number", 0))
            for one in elements]


def nests(elements, depth=0):
    return max([depth, *(nests(one["nodes"], depth + 1) for one in elements if "repeat" in one)])


def make(seed):
    """One graph in eight is perhaps none; of the others the first that is one."""
    found = None
    for attempt in range(400):
        found = make_one(seed * 1000 + attempt) or found
        if found and (found[1] or seed % 8 == 0):
            break
    return found


def make_one(seed):
    """(graph, the same unrolled or None if it is none, start, arrays at the end); None if no loop is within another."""
    maker = Maker(seed)
    elements = maker.elements(0, [])
    if nests(elements) < 2:
        return None
    held = maker.draw.randint(max(1, maker.buffers - 1), maker.buffers)  # the first buffers begin with something
    start = [np.random.default_rng([seed, i]).integers(-50, 50, ROWS) for i in range(maker.buffers)]
    one = {"dtype": "i64", "shape": [ROWS], "split": PARTS}
    graph = {"gantry": 1, "nodes": to_graph(elements),
             "buffers": {f"b{i}": {**one, "output": True, **({"init": 0} if i < held else {})} for i in range(maker.buffers)}}
    plain = Unrolled(held, start)
    try:
        plain.elements(elements, {})
        if not all(plain.held[value].all() for value in plain.means):
            raise Refused
    except Refused:
        return graph, None, start[:held], None
    flat = {"gantry": 1, "nodes": plain.nodes, "buffers": {
        f"v{i}": {**one, **({"init": 0} if i < held else {}), "output": i in plain.means} for i in range(len(plain.values))}}
    return graph, (flat, plain.means), start[:held], [plain.values[value] for value in plain.means]


def check_chain(command):
    """Loops side by side hand on what is written of d to c, b and a, one name in each iteration of the loop around them. So it
    takes more than two iterations until all are alike: refused where they would be started again and again."""
    pairs = ((1, 2), (2, 3), (3, 4))
    nodes = [{"repeat": 1, "carry": {f"b{prev}": f"b{after}"}, "nodes": []} for prev, after in pairs]
    nodes[2]["nodes"] = [{"id": "part", "what": "fill", "uses": [("to", 4, 0, "write")], "number": 5}]
    nodes.append({"id": "add", "what": "axpby", "uses": [("x", 1, 0, "read"), ("y", 0, 0, "readwrite")], "number": 1})
    elements, start = [{"repeat": 9, "carry": {}, "nodes": nodes}], [np.full(ROWS, 10**i) for i in range(5)]
    one = {"dtype": "i64", "shape": [ROWS], "split": PARTS, "init": 0}
    graph = {"gantry": 1, "buffers": {f"b{i}": {**one, "output": i == 0} for i in range(5)}, "nodes": to_graph(elements)}
    plain, inputs = Unrolled(5, start), {f"b{i}": array for i, array in enumerate(start)}
    plain.elements(elements, {})
    got, _ = run(command, graph, inputs, {"b0": None}, ["--devices", 1])
    np.testing.assert_array_equal(got["b0"], plain.values[0])
    try:
        run(command, graph, inputs, {"b0": None}, ["--devices", 1, "--unroll", 4])
    except RuntimeError as error:
        assert CANNOT[0] in str(error), error
        return
    raise AssertionError("iterations that differ were started again and again")


CANNOT = ("so that the iterations cannot be started again", "of a later phase", "leaves other rows")


def check_random(command, recheck, seed):
    graph, flat, start, want = make(seed)
    inputs = {f"b{i}": array for i, array in enumerate(start)}
    names = list(graph["buffers"])
    if not flat:
        try:
            run(command, graph, inputs, {}, ["--devices", 1])
        except RuntimeError as error:
            assert str(error).startswith("exit 3"), error
            return "refused"
        raise AssertionError("a graph that is none was run")
    for devices, extra in ((1, []), (2, ["--check"]), (3, ["--unroll", 8])):
        try:
            got, _ = run(command, graph, inputs, dict.fromkeys(names), ["--devices", devices, "--effort", 1, *extra])
        except RuntimeError as error:
            if "--unroll" in extra and any(text in str(error) for text in CANNOT):
                return "no phases"
            raise
        for name, array in zip(names, want):
            np.testing.assert_array_equal(got[name], array, err_msg=f"{name} on {devices} {extra}")
        schedule_is_right(command, recheck, graph, devices, [] if "--check" in extra else extra)
    by_hand, means = flat
    ends = {f"v{value}" for value in means}
    got, _ = run(command, by_hand, {f"v{i}": array for i, array in enumerate(start)}, dict.fromkeys(ends), ["--devices", 2, "--effort", 1])
    for value, array in zip(means, want):
        np.testing.assert_array_equal(got[f"v{value}"], array)
    return "equal"


def main(command, recheck, first=1, count=60):
    failed, seen = check_methods(command, recheck) if int(first) == 1 else 0, {}
    check_chain(command)
    for seed in range(int(first), int(first) + int(count)):
        try:
            result = check_random(command, recheck, seed)
        except (AssertionError, RuntimeError) as error:
            result, failed = "failed", failed + 1
            print(f"FAILED random graph {seed}: {error}\n{json.dumps(make(seed)[0])}")
        seen[result] = seen.get(result, 0) + 1
    print(f"{failed} failed; random graphs: {seen}")
    return 1 if failed else 0


sys.exit(main(*sys.argv[1:]))
