# SPDX-License-Identifier: Apache-2.0
"""Random graphs over the whole format. Every element is tried on the oracle first; one that breaks a rule is dropped, or now
and then kept as the last, and the command must refuse the graph too."""
import copy
import random

from oracle import REDUCTIONS, Invalid, Oracle

INTEGERS = ["i8", "u8", "i32", "u32", "i64", "u64"]
MODES = ["write"] * 4 + ["readwrite"] * 2 + ["sum"] * 4


class Generator:
    def __init__(self, seed, large=False):
        self.r, self.large = random.Random(seed), large
        self.count, self.ties, self.families, self.apart = 0, [], [], False
        self.dtype = self.r.choice(INTEGERS)
        self.op = self.r.choice(REDUCTIONS)  # contributions of two kinds rarely fit together
        self.placed = self.r.random() < 0.6
        self.graph = {"gantry": 1, "name": f"seed-{seed}", "params": self.params(), "buffers": {}, "nodes": []}
        self.make_buffers()
        self.invalid = False

    def chance(self, p):
        return self.r.random() < p

    # ---- buffers ----

    def params(self):
        n = self.r.choice([40, 100, 333] if self.large else [1, 2, 3, 5, 8, 9, 12, 13])
        return {"n": n, "p": self.r.choice([3, 4, 7, 8, 16] if self.large else [1, 2, 3, 4, 5, n, n + 1]), "w": self.r.choice([1, 1, 2, 3]), "q": self.r.choice([1, 2, 3, 4])}

    def add_buffer(self, name, **entry):
        kind = self.r.choices(["input", "temp", "state", "const"], [4, 4, 2, 1])[0]
        if kind != "temp":
            entry["init"] = self.r.choice([0, 1, 3, "iota", {"iota": {"start": 2, "step": 3}}, {"random": {"seed": self.r.randrange(99), "low": 0, "high": 100}}])
        if kind in ("state", "const") or self.chance(0.1):
            entry["class"] = kind
        if self.chance(0.6):
            entry["output"] = True
        self.graph["buffers"][name] = entry
        return name

    def make_buffers(self):
        shape = ["n"] if self.chance(0.6) else ["n", "w"]
        self.rows = [self.add_buffer(f"a{k}", dtype=self.dtype, shape=shape, split="p") for k in range(self.r.randint(3, 5))]
        self.small = [self.add_buffer(f"s{k}", dtype=self.dtype, shape=[self.r.choice([1, 1, 3])]) for k in range(2)]
        self.odd = [self.add_buffer("o", dtype=self.dtype, shape=[self.r.randint(1, 9)], **({"split": self.r.randint(1, 4)} if self.chance(0.6) else {}))]
        self.tiled, self.auto = [], []
        if self.chance(0.35):
            shape, self.tiles = [self.r.randint(1, 6), self.r.randint(1, 6)], [self.r.randint(1, 3), self.r.randint(1, 3)]
            self.tiled = [self.add_buffer(f"t{k}", dtype=self.dtype, shape=shape, tiles=self.tiles) for k in range(2)]
        if self.chance(0.2):
            self.auto = [self.add_buffer(f"u{k}", dtype=self.dtype, shape=["n"], split={"auto": "q"}) for k in range(3)]

        self.counts = ["c0", "c1"] if self.chance(0.4) else []
        self.halves = ["f16", "bf16"] if self.chance(0.25) else []
        for name, dtype in zip(self.counts, ["i64", "i32"]):
            self.graph["buffers"][name] = {"dtype": dtype, "shape": [1], "init": 5, "output": True}
        for kind in self.halves:
            for k, shape in enumerate(([3, 5], [5, 4])):
                self.graph["buffers"][f"{kind}_{k}"] = {"dtype": kind, "shape": shape, "init": {"iota": {"start": k - 3, "step": 1}}}
            self.graph["buffers"]["wide"] = {"dtype": "f32", "shape": [3, 4], "init": 1, "output": True}

    # ---- references ----

    def row_reference(self, name, index):
        """Some rows of a split buffer; may be out of range."""
        i = index or str(self.r.randint(0, 3))
        parts = "p" if name[0] == "a" else "1"
        forms = [f"{name}[{i}]"] * 6 + [name] * 3 + [
            f"{name}[{i}]~1", f"{name}[{i}]~{self.r.randint(0, 2)}:{self.r.randint(0, 3)}", f"clamp({name}[{i}-1:{i}+2])", f"{name}[{parts} - 1 - {i}]",
            f"{name}[({i} + 1) % {parts}]", f"{name}[clamp({i}-1:{i}+1)]", f"{name}[{i}:{parts}]", f"{name}[{i}:{i}]", f"clamp({name}{{{i}*2-1:{i}*2+2}})",
            f"{name}[clamp({i} + 1, 0, {parts} - 1)]"]
        if name[0] == "a":
            forms += [f"{name}{{{i}*n//p:({i}+1)*n//p}}", f"{name}{{n//2:n}}", f"{name}{{0:n//2}}", f"clamp({name}{{1:n-1}})"]
        return self.r.choice(forms)

    def tile_reference(self, name, listed):
        a, b = self.tiles
        i, j = self.r.randrange(a), self.r.randrange(b)
        if not listed or self.chance(0.5):
            return f"{name}[{i}][{j}]"
        return self.r.choice([f"{name}[{i}][*]", f"{name}[*][{j}]", name, f"{name}[0:{i}][*]", f"{name}[{i}:{a}][{j}:{b}]"])

    def reference(self, index, listed=False):
        group = self.r.choices([self.rows, self.small, self.odd, self.tiled], [8, 2, 1, 2 if self.tiled else 0])[0]
        name = self.r.choice(group)
        if group is self.tiled:
            return self.tile_reference(name, listed)
        if group is self.rows or "split" in self.graph["buffers"][name] and self.chance(0.7):
            return self.row_reference(name, index)
        return name if self.chance(0.8) else f"clamp({name}{{0:{self.r.randint(0, 4)}}})"

    # ---- nodes ----

    def node_id(self, index):
        self.count += 1
        return f"n{self.count}" + (f"[{index}]" if index else "")

    def mode(self):
        mode = self.r.choice(MODES)
        return self.op if mode == "sum" and self.chance(0.95) else self.r.choice(REDUCTIONS) if mode == "sum" else mode

    def mix(self, index, loop):
        mode = self.mode()
        a = self.r.choice([1, 2, 5, index or 3, "it" if loop else 4, f"2 * {index or 1} - n"])
        node = {"kernel" if self.chance(0.9) else "host": "mix", "args": {"a": a, "x": self.reference(index, True), "y": self.reference(index, True)}}
        if mode != "write":
            node["access"] = {"y": mode}
        if self.chance(0.2):
            node["reads"] = [self.reference(index, True) for _ in range(self.r.randint(1, 2))]
        if self.chance(0.15):
            extra = self.mode()
            node["writes"] = [{"ref" if extra == "write" else extra: self.reference(index, True)}]
            if self.chance(0.3) and extra in ("write", "readwrite"):
                node.setdefault("reads", []).append(next(iter(node["writes"][0].values())))
        return node

    def known_kernel(self, index, loop):
        group = self.auto if self.auto and self.chance(0.4) else self.rows
        x, y, z = (self.r.choice(group) for _ in range(3))
        if group is self.auto:
            part = f"[{index or 0}]" if self.chance(0.7) else ""
        else:
            part = self.r.choice([f"[{index or 0}]"] * 3 + ["", f"{{{index or 0}:{index or 0}+1}}", f"[{index or 0}]~1"])
        a = self.r.choice([0, 2, 3, "n", index or 5, "it + 1" if loop else 7, {"dynamic": 3}])
        if self.counts and self.chance(0.5) and "~" not in part:
            return {"kernel": "select", "args": {"x": x + part, "mask": y + part, "y": z + part, "count": self.r.choice(self.counts)}}
        if self.halves and self.chance(0.2):
            return self.product()
        return self.r.choice([
            {"kernel": "scale", "args": {"a": a, "x": x + part, "y": y + part}}, {"kernel": "axpby", "args": {"a": a, "b": 2, "x": x + part, "y": y + part}},
            {"kernel": "add", "args": {"x": x + part, "y": y + part, "z": z + part}}, {"kernel": "mul", "args": {"x": x + part, "y": y + part, "z": z + part}},
            {"kernel": "reduce_sum", "args": {"x": x + part, "out": self.r.choice(self.small)}}, {"copy": {"from": x + part, "to": y + part}},
            {"kernel": "reduce_max" if self.op == "max" else "reduce_sum", "args": {"x": x + part, "out": self.r.choice(self.small)}}])

    def product(self):
        """Whole numbers of 16 bits, whose product, in f32, is exact."""
        kind = self.r.choice(self.halves)
        access = self.r.choice([{}, {"access": {"c": "sum"}}, {"access": {"c": "readwrite"}}])
        factors = {"alpha": 2} | ({"beta": -1} if access.get("access", {}).get("c") == "readwrite" else {})
        return {"kernel": "gemm", "args": {**factors, "a": f"{kind}_0", "b": f"{kind}_1", "c": "wide"}, **access}

    def copy(self, index, loop):
        x, y = self.r.choice(self.rows), self.r.choice(self.rows)
        rows, low = self.r.randint(0, 4), self.r.randint(0, 4)
        if self.tiled and self.chance(0.4):
            tile = self.tile_reference("", False)
            return {"copy": {"from": "t0" + tile, "to": "t1" + tile}}
        return {"copy": {"from": f"{x}{{{low}:{low + rows}}}", "to": f"{y}{{{self.r.randint(0, 3)}:n}}" if self.chance(0.2) else f"{y}{{{low // 2}:{low // 2 + rows}}}"}}

    def fill(self, index, loop):
        identity = {"sum": 0, "prod": 1, "min": None, "max": 0 if self.dtype[0] == "u" else None}[self.op]
        value = identity if identity is not None and self.chance(0.5) else self.r.choice([0, 1, 7, "n", index or 2])
        what = self.r.choice([{"value": value}] * 3 + [{"iota": {"start": index or 1, "step": 2}}, {"random": {"seed": 3, "low": 0, "high": 50}}])
        target = self.r.choice(self.auto) + "[0]" if self.auto and self.chance(0.3) else self.reference(index, self.chance(0.3))
        return {"fill": {"to": target, **what}}

    def collective(self, index, loop):
        kind = self.r.choice(["all_reduce", "reduce", "broadcast", "scatter", "gather", "all_gather", "reduce_scatter", "all_to_all"])
        x, y = self.r.choice(self.rows), self.r.choice(self.rows)
        ranks = self.r.choice([1, 2, 2, 3, 4])
        n, p = self.graph["params"]["n"], self.graph["params"]["p"]
        even = n // ranks
        if even == 0:
            return self.fill(index, loop)
        parts = lambda name, rows: [f"{name}{{{i * rows}:{(i + 1) * rows}}}" for i in range(ranks)]  # noqa: E731
        whole = lambda name: f"{name}{{0:{even * ranks}}}"  # noqa: E731
        if self.chance(0.3) and p > 0 and n % p == 0:
            ranks, even = p, n // p
            parts = lambda name, rows: [{"for": {"k": "p"}, "ref": f"{name}[k]"}]  # noqa: E731
            whole = lambda name: name  # noqa: E731
        root = self.r.randrange(ranks)
        reduces = {"op": self.r.choice(REDUCTIONS)}
        node = {"collective": kind}
        if kind in ("all_reduce", "all_to_all"):
            ins, outs = parts(x, even), parts(x if self.chance(0.3) else y, even)
        elif kind == "reduce":
            ins, outs = parts(x, even), [self.r.choice([f"{y}{{{root * even}:{(root + 1) * even}}}", f"{y}{{0:{even}}}"])]
        elif kind == "broadcast":
            ins, outs = [f"{x}{{{root * even}:{(root + 1) * even}}}"], parts(y, even)
        elif kind == "scatter":
            ins, outs = [whole(x)], parts(y, even)
        elif kind == "gather":
            ins, outs = parts(x, even), [whole(y)]
        else:
            rows = even // ranks
            small = [f"{x}{{{i}:{i + rows}}}" for i in range(ranks)]
            large = [f"{y}{{{i * rows * ranks}:{(i + 1) * rows * ranks}}}" for i in range(ranks)]
            ins, outs = (small, large) if kind == "all_gather" else (large, [f"{x}{{{i * rows}:{(i + 1) * rows}}}" for i in range(ranks)])
        node |= {"in": ins, "out": outs}
        if kind in ("reduce", "broadcast", "scatter", "gather"):
            node["root"] = root
        return node | (reduces if kind in ("all_reduce", "reduce", "reduce_scatter") else {})

    def node(self, index, loop):
        make = self.r.choices([self.mix, self.known_kernel, self.copy, self.fill, self.collective], [10, 6, 2, 3, 2 if not index else 0.3])[0]
        node = {"id": self.node_id(index), **make(index, loop)}
        if self.placed and "collective" not in node and "host" not in node and self.chance(0.6):
            node["on"] = self.r.choice([f"{index or self.r.randint(0, 5)} % devices", f"({index or 1} + {self.r.randint(0, 3)}) % devices", "devices - 1"])
        elif not self.placed and self.ties and "collective" not in node and "host" not in node and self.chance(0.1):
            node["with"] = self.r.choice(self.ties)
        elif not self.placed and self.ties and "collective" not in node and "host" not in node and self.chance(0.06):
            node["apart"] = self.r.choice(self.ties)
            self.apart = True
        if self.ties and self.chance(0.1):
            node["after"] = self.r.choice(self.ties)
        if self.families and not index and self.chance(0.2):
            node["after"] = [*([node["after"]] if "after" in node else []), self.r.choice(self.families)]
        if self.chance(0.1):
            node["priority"] = self.r.randint(-3, 3)
        if self.chance(0.2):
            node["cost"] = {"time_us": self.r.choice([0, 1, 20, 300])}
        return node

    def family(self, loop):
        """A node, or one for each of some parts, or a block of them."""
        shape = self.r.random()
        if shape < 0.35:
            return self.node(None, loop)
        span = self.r.choice(["p", "p", "p", "1:p", "p-1:-1:-1", 2, "0:p:2", "q"])
        if shape < 0.85:
            node = {"for": {"i": span}, **self.node("i", loop)}
            if self.chance(0.15):
                node["if"] = self.r.choice(["i % 2 == 0", "i != 1", "i < n // 2"])
            return node
        inside = [self.node("i", loop) for _ in range(self.r.randint(1, 3))]
        return {"for": {"i": span}, "nodes": inside}

    def loop(self):
        count = self.r.choice([0, 1, 2, 3, 3, 4])
        carry, free = {}, self.r.sample(self.rows, len(self.rows))
        while len(free) > 1 and self.chance(0.7):
            carry[free.pop()] = free.pop()
        if self.tiled and self.chance(0.3):
            carry["t0"] = "t1"
        if len(self.auto) > 1 and self.chance(0.3):
            carry["u0"] = "u1"
        nodes = [self.family(True) for _ in range(self.r.randint(1, 4))]
        for next_ in carry.values():
            if self.chance(0.6):  # most loops write what they carry
                part = {"id": self.node_id("i"), "for": {"i": "p" if next_[0] == "a" else "q"}}
                prev = [k for k, v in carry.items() if v == next_][0]
                if next_[0] == "t":
                    nodes.insert(self.r.randint(0, len(nodes)), {"id": self.node_id(None), "copy": {"from": prev, "to": next_}})
                else:
                    nodes.insert(self.r.randint(0, len(nodes)), {**part, "kernel": "scale", "args": {"a": 3, "x": f"{prev}[i]", "y": f"{next_}[i]"}})
        loop = {"repeat": count, "nodes": nodes}
        return {**loop, "carry": carry} if carry else loop

    # ---- all ----

    def try_element(self, oracle, element):
        """Carries the element out; False if it breaks a rule, and nothing has happened then."""
        before = copy.deepcopy(oracle.now)
        try:
            if element.get("repeat") == 0:  # never carried out, but read and checked
                oracle.loop({**element, "repeat": 1})
                oracle.now = before
            elif "repeat" in element:
                oracle.loop(element)
            else:
                oracle.elements([element], {})
            return True
        except Invalid:
            oracle.now, oracle.iteration = before, None
            return False
        except Exception as error:
            if type(error).__name__ != "Bad":
                raise
            oracle.now, oracle.iteration = before, None
            return False

    def make(self, elements):
        oracle = Oracle(self.graph)
        mistake = 0.1 / elements
        while elements > 0:
            looping = self.chance(0.2)
            element = self.loop() if looping else self.family(False)
            elements -= 0.25
            if not self.try_element(oracle, element):
                if self.chance(mistake) and element.get("repeat") != 0:
                    self.graph["nodes"].append(element)
                    self.invalid = True
                    return self.graph
                continue
            elements -= 0.75
            self.graph["nodes"].append(element)
            if "id" in element and "for" in element and "if" not in element and element["for"] == {"i": "p"}:
                self.families.append(element["id"])
            if "id" in element and "for" not in element and "on" not in element and "collective" not in element and "host" not in element:
                self.ties.append(element["id"])
        self.finish(oracle)
        if self.chance(0.3):
            self.wait_for_later()
        return self.graph

    # ---- after: a node that is added later ----

    def wait_for_later(self):
        oracle = Oracle(self.graph)
        oracle.start()
        tasks = oracle.done
        single = [k for k, (node, _) in enumerate(tasks) if node.get("id") in self.ties]
        if len(single) < 2:
            return
        first, second = sorted(self.r.sample(single, 2))
        if self.reaches(tasks, first, second, False):
            if self.chance(0.2):
                self.invalid = True  # a circle
                add_after(tasks[first][0], tasks[second][0]["id"])
        elif not self.reaches(tasks, first, second, True):
            add_after(tasks[first][0], tasks[second][0]["id"])

    def reaches(self, tasks, first, second, afters):
        """True if the second must run after the first: by their rows, or, if `afters`, perhaps by `after` too."""
        behind = {first}
        for k in range(first + 1, second + 1):
            if any(conflict(tasks[j][1], tasks[k][1]) for j in behind) or (afters and "after" in tasks[k][0]):
                behind.add(k)
        return second in behind

    def finish(self, oracle):
        """Rows that must hold something at the end and do not."""
        for name, entry in self.graph["buffers"].items():
            if all(oracle.now[name].written) or not (entry.get("output") or entry.get("class") == "state"):
                continue
            if entry.get("class") != "state" and self.chance(0.5):
                del entry["output"]
                continue
            element = {"id": self.node_id(None), "fill": {"to": name, "value": 1}}
            self.graph["nodes"].append(element)
            self.try_element(oracle, element)


def add_after(node, other):
    old = node.get("after", [])
    node["after"] = [*([old] if isinstance(old, str) else old), other]


def conflict(one, two):
    """Accesses of two tasks that keep them in order."""
    for value, first, last, mode in one:
        for other, low, high, how in two:
            if value is other and max(first, low) < min(last, high) and (mode != how or mode in ("write", "readwrite")) and (mode, how) != ("read", "read"):
                return True
    return False
