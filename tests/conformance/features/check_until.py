# SPDX-License-Identifier: Apache-2.0
"""Repeats within repeats that end by `until`: random programs of maps, sums, collectives and blocks that run by a flag, whose inner repeats end
when a counter or a sum says so, and may carry, on 1 to 3 devices, unrolled or in phases, fused or not, in checking mode, against the same program
carried out by NumPy, which leaves its loops by break and its blocks by if. A schedule of each is held against the graph by both checkers. The same seed
is the same test.

check_until.py GANTRY INCLUDE RECHECK FIRST LAST
"""
import random
import re
import sys

from check_when import check
from runner import Gantry, difference
import numpy as np

ARRAYS, NUMBERS = ["x", "y", "z", "w"], ["s", "t"]
REDUCE = {"sum": np.sum, "max": np.max, "min": np.min}
DTYPES = {"i32": np.int32, "f32": np.float32, "f64": np.float64, "u8": np.uint8, "i64": np.int64}


class Program:
    """Elements are (kind, ...); values stay whole and below 97, so that sums have one value in any order."""
    def __init__(self, seed):
        self.r, self.ids, self.temps, self.adds = random.Random(seed), 0, 0, 0
        self.p, self.all = self.r.randint(1, 4), self.r.random() < 0.7
        self.n = self.p * self.r.randint(1, 3) if self.all else self.r.randint(2, 12)
        self.flag = self.r.choice(list(DTYPES))

    def map(self, temp):
        r = self.r
        target = r.choice(ARRAYS)
        a, b = r.choice(ARRAYS), r.choice(ARRAYS + NUMBERS)
        formula = r.choice(["a + b + 1", "2 * a + b", "abs(a - b) + k", "max(a, b) + k", "select(a > b, a, b + 3)"])
        name = f"tmp{self.temps}"
        return ("map", name if temp == "write" else target, formula, name if temp == "read" else a, b)

    def sum(self):
        return ("sum", self.r.choice(NUMBERS), self.r.choice(ARRAYS))

    def collective(self):
        """Among arrays; or to a buffer that only the map behind it reads."""
        r = self.r
        kind = r.choice(["broadcast", "sum", "max", "min"])
        if r.random() < 0.6:
            return [("all", kind, r.choice(ARRAYS), r.choice(ARRAYS))]
        self.temps += 1
        return [("all", kind, r.choice(ARRAYS), f"tmp{self.temps}"), self.map("read")]

    def guarded(self):
        """Nodes that run where a sum is odd, some of them by a second one, too."""
        r = self.r
        nodes = [self.map(None) for _ in range(r.randint(0, 2))] + (self.collective() if self.all and r.random() < 0.6 else []) + [self.map(None)]
        if r.random() < 0.3:
            nodes = [*nodes, ("odd", "g", r.choice(NUMBERS)), ("when", "g", [self.map(None), self.map(None)])]
        return [("odd", "f", r.choice(NUMBERS)), ("when", "f", nodes)]

    def leaf(self):
        chance = self.r.random()
        if chance < 0.15 and self.all:
            return self.collective()
        return self.guarded() if chance < 0.3 else [self.sum()] if chance < 0.5 else [self.map(None)]

    def leaves(self, count):
        found = [one for _ in range(count) for one in self.leaf()]
        if self.r.random() < 0.5:  # a buffer that only the nodes of the repeat know
            self.temps += 1
            found += [self.map("write"), self.map("read")]
        return found

    def inner(self, deep=0):
        """Nodes of a repeat, and when it ends."""
        r = self.r
        nodes = self.leaves(r.randint(1, 3))
        if r.random() < 0.3:
            nodes.insert(r.randint(0, len(nodes)), ("repeat", r.randint(1, 3), None, 1, [self.map(None), self.sum()]))
        if r.random() < 0.3 and not deep:
            nodes.append(self.inner(1))
        condition = r.choice([("count", r.randint(1, 6)), ("sum", "s", r.randint(1, 96)), ("sum", "t", r.randint(1, 96))])
        carry = {}
        chance = r.random()
        if chance < 0.5:
            prev, following = r.sample(ARRAYS, 2)
            carry = {prev: following}
            nodes = [("map", following, r.choice(["a + b + 1", "2 * a + b"]), prev, r.choice([one for one in ARRAYS + NUMBERS if one != following])), *nodes]
        elif chance < 0.7:  # what is added up anew in each iteration, ahead of all that reads it, and carried
            self.adds += 1
            prev, following, op = f"old{self.adds}", f"new{self.adds}", r.choice(list(REDUCE))
            carry = {prev: following}
            adding = [("add", op, following, r.choice(ARRAYS)) for _ in range(r.randint(1, 2))]
            adding = [("odd", "f", r.choice(NUMBERS)), ("when", "f", adding[:1]), *adding[1:]] if op == "sum" and r.random() < 0.3 else adding
            nodes = [*adding, ("map", r.choice(ARRAYS), "a + b + 1", following, r.choice(ARRAYS)), ("map", r.choice(ARRAYS), "2 * a + b", prev, r.choice(ARRAYS)), *nodes]
            self.around.append(("map", r.choice(ARRAYS), "a + b + 1", r.choice([prev, following]), r.choice(ARRAYS)))
        return ("repeat", r.randint(1, 7), condition, r.randint(1, 3), [("count",), *nodes], carry)

    def once(self):
        """A repeat that ends, and what reads behind it what it has added up; or one that is left out whole where a sum is even."""
        r = self.r
        self.around = []
        loop = self.inner()
        if r.random() < 0.3 and not self.around:
            return [("odd", "h", r.choice(NUMBERS)), ("when", "h", [self.plain(loop)])]
        return [loop, *self.around]

    def plain(self, element):
        """Without nodes that have flags of their own."""
        if element[0] != "repeat":
            return element
        return (*element[:4], [self.plain(one) for one in element[4] if one[0] not in ("odd", "when")], *element[5:])

    def whole(self):
        r = self.r
        nodes = []
        for _ in range(r.randint(1, 3)):
            nodes += self.leaves(r.randint(0, 2)) + ([("zero",)] if r.random() < 0.6 else []) + self.once()
        if r.random() < 0.3:  # one loop further out
            nodes = [("repeat", r.randint(1, 3), None, 1, nodes + [self.map(None)])]
        return [("repeat", r.randint(1, 4), None, 1, nodes), *self.leaves(1)]

    # ---- as a graph ----

    def node(self, element, inside):
        self.ids += 1
        name, part = f"n{self.ids}", lambda one: f"{one}[i]" if one in ARRAYS or one[:3] == "tmp" else one
        if element[0] == "count":
            return [{"id": name, "map": {"c": "c + 1"}, "args": {"c": "c"}}]
        if element[0] == "odd":
            return [{"id": name, "map": {element[1]: "s - floor(s / 2) * 2 > 0"}, "args": {element[1]: element[1], "s": element[2]}}]
        if element[0] == "all":
            parts = lambda one: [{"for": {"i": "p"}, "ref": f"{one}[i]"}]
            if element[1] == "broadcast":
                return [{"id": name, "collective": "broadcast", "in": [f"{element[2]}[0]"], "out": parts(element[3])}]
            return [{"id": name, "collective": "all_reduce", "op": element[1], "in": parts(element[2]), "out": parts(element[3])}]
        if element[0] == "add":
            _, op, target, a = element
            return [{"id": name + "[i]", "for": {"i": "p"}, "reduce": {"y": f"{op}(x)"}, "args": {"x": f"{a}[i]", "y": target}, "access": {"y": op}}]
        if element[0] == "zero":
            return [{"id": name, "fill": {"to": "c", "value": 0}}]
        if element[0] == "sum":
            return [{"id": name, "reduce": {"s": "sum(x)"}, "args": {"x": element[2], "s": element[1]}},
                    {"id": name + "m", "map": {"s": "s - floor(s / 97) * 97"}, "args": {"s": element[1]}}]
        _, target, formula, a, b = element
        formula = re.sub(r"\b[ab]\b", lambda one: a if one[0] == "a" else b, formula)
        used = set(re.findall(r"\b(?:[xyzwstk]|(?:tmp|old|new)\d+)\b", formula)) | {target}
        args = {one: part(one) for one in sorted(used - {"k"})} | ({"k": "it" if inside else 0} if "k" in used else {})
        return [{"id": name + "[i]", "for": {"i": "p"}, "map": {target: f"({formula}) - floor(({formula}) / 97) * 97"}, "args": args}]

    def elements(self, program, inside=False):
        found = []
        for element in program:
            if element[0] == "when":
                found.append({"when": {"buffer": element[1]}, "nodes": self.elements(element[2], inside)})
                continue
            if element[0] != "repeat":
                found += self.node(element, inside)
                continue
            _, count, condition, every, nodes, *carry = element
            one = {"repeat": count, "nodes": self.elements(nodes, True)} | ({"carry": carry[0]} if carry and carry[0] else {})
            if condition:
                self.ids += 1
                text = f"{'c' if condition[0] == 'count' else 'v'} >= {condition[-1]}"
                one["nodes"].append({"id": f"n{self.ids}", "map": {"d": text}, "args": {"d": "done", text[0]: "c" if text[0] == "c" else condition[1]}})
                one["until"] = {"buffer": "done", **({"every": every} if every > 1 else {})}
            found.append(one)
        return found


def graph_of(seed):
    p = Program(seed)
    program = p.whole()
    buffers = {name: {"dtype": "f64", "shape": ["n"], "split": "p", "init": {"random": {"seed": i, "high": 1}}, "output": True} for i, name in enumerate(ARRAYS)}
    buffers = {name: entry | {"init": i + 2} for i, (name, entry) in enumerate(buffers.items())}
    if seed % 2:
        buffers = {name: entry | {"split": {"auto": "p"}} for name, entry in buffers.items()}
    buffers |= {name: {"dtype": "f64", "shape": [1], "init": 5, "output": True} for name in NUMBERS}
    buffers |= {name: {"dtype": p.flag, "shape": [1], "init": 1} for name in "fgh"}
    buffers |= {"c": {"dtype": "i32", "shape": [1], "init": 0, "output": True}, "done": {"dtype": p.flag, "shape": [1]}}
    buffers |= {f"tmp{k + 1}": {"dtype": "f64", "shape": ["n"], "split": buffers["x"]["split"]} for k in range(p.temps)}
    buffers |= {f"old{k + 1}": {"dtype": "f64", "shape": [1], "init": k, "output": True} for k in range(p.adds)}
    buffers |= {f"new{k + 1}": {"dtype": "f64", "shape": [1], "output": p.n % 2 == 0} for k in range(p.adds)}
    return {"gantry": 1, "params": {"n": p.n, "p": p.p}, "buffers": buffers, "nodes": p.elements(program)}, program, p


def carry_out(program, p):
    now = {name: np.full(p.n, i + 2.0) for i, name in enumerate(ARRAYS)} | {name: np.array([5.0]) for name in NUMBERS}
    now |= {"c": np.array([0], np.int32)}
    now |= {f"old{k + 1}": np.full(1, float(k)) for k in range(p.adds)}
    known = {"abs": np.abs, "max": np.maximum, "select": np.where}

    new = set()

    def walk(program, it):
        for element in program:
            if element[0] == "map":
                value = eval(element[2], known, {"a": now[element[3]], "b": now[element[4]], "k": it})
                now[element[1]] = np.broadcast_to(value % 97, p.n).copy()
            elif element[0] == "sum":
                now[element[1]] = np.array([now[element[2]].sum() % 97])
            elif element[0] == "count":
                now["c"] = now["c"] + np.int32(1)
            elif element[0] == "add":  # to what is new in this iteration
                _, op, target, a = element
                now[target] = REDUCE[op]([*([] if target in new else now[target]), *now[a]], keepdims=True)
                new.discard(target)
            elif element[0] == "zero":
                now["c"] = np.zeros(1, np.int32)
            elif element[0] == "odd":
                now[element[1]] = now[element[2]] % 2
            elif element[0] == "when":
                if now[element[1]][0]:
                    walk(element[2], it)
            elif element[0] == "all":
                parts = now[element[2]].reshape(p.p, -1)
                now[element[3]] = np.tile(parts[0] if element[1] == "broadcast" else REDUCE[element[1]](parts, axis=0), p.p)
            else:
                _, count, condition, every, nodes, *carry = element
                for i in range(count):
                    for following in (carry[0] if carry else {}).values():
                        if following not in ARRAYS:
                            new.add(following)
                            now[following] = np.zeros(1)
                    walk(nodes, i)
                    for prev, following in (carry[0] if carry else {}).items():
                        now[prev] = now[following].copy()
                    if condition and (i + 1) % every == 0 and now["c" if condition[0] == "count" else condition[1]][0] >= condition[-1]:
                        break
    walk(program, 0)
    olds = [f"old{k + 1}" for k in range(p.adds)]
    return {name: now[name] for name in [*ARRAYS, *NUMBERS, "c", *olds]}


def main():
    gantry, recheck, first, last = Gantry(sys.argv[1], sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
    failed = 0
    for seed in range(first, last):
        graph, program, p = graph_of(seed)
        want, r = carry_out(program, p), random.Random(seed)
        code, problem = check(gantry, recheck, graph, ["--devices", r.randint(1, 3), "--effort", 0, *r.choice([[], ["--unroll", 3]])])
        if code:
            failed += 1
            print(f"FAILED seed {seed}: checkers: exit {code}: {problem.strip()[-400:]}", flush=True)
        for way in range(3):
            words = ["--devices", r.randint(1, 3), "--effort", r.choice([0, 0, 1])]
            words += r.choice([[], ["--no-fuse"], ["--unroll", r.choice([1, 3, 10])]]) + (["--check", "--seed", seed] if way == 1 else [])
            result = gantry.run(graph, words, None, {name: (str(a.dtype), a.shape) for name, a in want.items()})
            problem = result.err if result.code else difference(result.arrays, want)
            if problem:
                failed += 1
                print(f"FAILED seed {seed}: {' '.join(map(str, words))}: exit {result.code}: {problem.strip()[-400:]}", flush=True)
    print(f"{last - first} programs, {gantry.runs} runs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
