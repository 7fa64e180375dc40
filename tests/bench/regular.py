# SPDX-License-Identifier: Apache-2.0
"""How good plans are on graphs that nobody wrote: families of regular graphs of random shapes and weights, on machines of
random islands, trees of PCIe and unequal GPUs. Makespans against the bound and against the best of all efforts, by
prediction, and the processor time of planning.

regular.py BUILD [--set training|held] [--seeds 0:5] [--efforts 0,1,3] [--objective makespan] [--family NAME]
           [--csv FILE] [--against FILE] [--keep FOLDER]

The families and machines of the set "held" are others than those of "training"; who improves a planner looks at them
once, at the end. --against: a table of an earlier run (--csv), to compare with.
"""
import argparse
import csv
import json
import math
import pathlib
import random
import resource
import subprocess
import tempfile


class Graph:
    """Buffers of parts, and work nodes on them."""

    def __init__(self, r):
        self.r, self.buffers, self.nodes = r, {}, []
        self.time = r.choice([4, 15, 40, 120]) * r.uniform(0.7, 1.4)  # us, of a typical node
        self.bytes = int(r.choice([4e3, 6e4, 5e5, 3e6]) * r.uniform(0.7, 1.4))
        self.spread = r.choice([0, 0, 0.2, 0.8])

    def buffer(self, name, parts, size, **more):
        self.buffers[name] = {"dtype": "u8", "shape": [parts, max(size, 1)], "split": parts, **more}

    def node(self, id, reads=(), writes=(), weight=1.0, changes=()):
        time = self.time * weight * math.exp(self.r.gauss(0, self.spread))
        self.nodes.append({"id": id, "work": {}, "cost": {"time_us": round(time, 3)},
                           "reads": list(dict.fromkeys(reads)),
                           "writes": list(writes) + [{"readwrite": c} for c in changes]})

    def json(self, name):
        return {"gantry": 1, "name": name, "buffers": self.buffers, "nodes": self.nodes}


# ---- training families ----


def stencil(g, dims, steps, edges, in_turn):
    """Parts of a grid; each reads its neighbours, whole or by their edges, from buffers a step or two in turn."""
    side = [range(d) for d in dims]
    cells = [()]
    for s in side:
        cells = [c + (i,) for c in cells for i in s]
    number = {c: k for k, c in enumerate(cells)}
    levels = 2 if in_turn else steps + 1
    given = {"class": "input", "init": 0} if g.r.random() < 0.5 else {"init": 0}
    for t in range(levels):
        extra = given if t == 0 and not in_turn else {"init": 0}
        g.buffer(f"u{t}", len(cells), g.bytes, **extra)
        if edges:
            g.buffer(f"e{t}", len(cells), g.bytes // 40 + 1, **extra)
    for t in range(steps):
        a, b = t % levels, (t + 1) % levels
        for c in cells:
            near = []
            for axis in range(len(dims)):
                for by in (-1, 1):
                    n = c[:axis] + (c[axis] + by,) + c[axis + 1:]
                    if n in number:
                        near.append(f"{'e' if edges else 'u'}{a}[{number[n]}]")
            writes = [f"u{b}[{number[c]}]"] + ([f"e{b}[{number[c]}]"] if edges else [])
            g.node(f"s{t}_{number[c]}", [f"u{a}[{number[c]}]"] + near, writes)
    if g.r.random() < 0.5:
        g.buffers[f"u{steps % levels}"]["output"] = True


def stencil1(g):
    stencil(g, [g.r.randint(6, 40)], g.r.randint(5, 20), g.r.random() < 0.7, g.r.random() < 0.5)


def stencil2(g):
    stencil(g, [g.r.randint(3, 9), g.r.randint(3, 9)], g.r.randint(4, 12), g.r.random() < 0.7, g.r.random() < 0.5)


def stencil3(g):
    stencil(g, [g.r.randint(2, 5) for _ in range(3)], g.r.randint(3, 6), g.r.random() < 0.7, g.r.random() < 0.5)


def wide(g):
    n = g.r.randint(20, 300)
    g.buffer("x", n, g.bytes, **({"class": "input", "init": 0} if g.r.random() < 0.6 else {"init": 0}))
    g.buffer("y", n, g.bytes, output=g.r.random() < 0.6)
    for i in range(n):
        g.node(f"w{i}", [f"x[{i}]"], [f"y[{i}]"])


def tree(g):
    arity, depth = g.r.choice([(2, g.r.randint(4, 7)), (3, g.r.randint(3, 5)), (4, 3)])
    for level in range(depth + 1):
        g.buffer(f"t{level}", arity ** (depth - level), g.bytes)
    for i in range(arity ** depth):
        g.node(f"l{i}", [], [f"t0[{i}]"])
    for level in range(depth):
        for i in range(arity ** (depth - level - 1)):
            g.node(f"j{level}_{i}", [f"t{level}[{arity * i + k}]" for k in range(arity)], [f"t{level + 1}[{i}]"])


def fft(g):
    width = 2 ** g.r.randint(3, 6)
    for t in range(int(math.log2(width)) + 1):
        g.buffer(f"f{t}", width, g.bytes, **({"init": 0} if t == 0 else {}))
    for t in range(int(math.log2(width))):
        for i in range(width):
            g.node(f"b{t}_{i}", [f"f{t}[{i}]", f"f{t}[{i ^ (1 << t)}]"], [f"f{t + 1}[{i}]"])


def wavefront(g):
    a, b, edges = g.r.randint(5, 20), g.r.randint(5, 20), g.r.random() < 0.5
    g.buffer("w", a * b, g.bytes)
    g.buffer("e", a * b, g.bytes // 40 + 1)
    for i in range(a):
        for j in range(b):
            before = [(i - 1, j), (i, j - 1)] + ([(i - 1, j - 1)] if edges else [])
            g.node(f"w{i}_{j}", [f"{'e' if edges else 'w'}[{x * b + y}]" for x, y in before if x >= 0 and y >= 0],
                   [f"w[{i * b + j}]", f"e[{i * b + j}]"])


def tiles(g, n):
    g.buffer("a", n * n, g.bytes, **({"class": "input", "init": 0} if g.r.random() < 0.5 else {"init": 0}))
    return lambda i, j: f"a[{i * n + j}]"


def cholesky(g):
    n = g.r.randint(5, 11)
    a = tiles(g, n)
    for k in range(n):
        g.node(f"potrf{k}", [], changes=[a(k, k)], weight=0.7)
        for i in range(k + 1, n):
            g.node(f"trsm{k}_{i}", [a(k, k)], changes=[a(i, k)])
        for i in range(k + 1, n):
            for j in range(k + 1, i + 1):
                g.node(f"gemm{k}_{i}_{j}", [a(i, k), a(j, k)], changes=[a(i, j)], weight=1 if i == j else 1.6)


def lu(g):
    n = g.r.randint(4, 8)
    a = tiles(g, n)
    for k in range(n):
        g.node(f"getrf{k}", [], changes=[a(k, k)], weight=0.8)
        for i in range(k + 1, n):
            g.node(f"row{k}_{i}", [a(k, k)], changes=[a(k, i)])
            g.node(f"col{k}_{i}", [a(k, k)], changes=[a(i, k)])
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                g.node(f"gemm{k}_{i}_{j}", [a(i, k), a(k, j)], changes=[a(i, j)], weight=1.6)


def map_reduce(g):
    maps, reduces = g.r.randint(8, 40), g.r.randint(2, 12)
    g.buffer("x", maps, g.bytes, **{"class": "input", "init": 0})
    g.buffer("m", maps * reduces, g.bytes // reduces + 1)
    g.buffer("r", reduces, g.bytes // 10 + 1, output=True)
    for i in range(maps):
        g.node(f"map{i}", [f"x[{i}]"], [f"m[{i * reduces + j}]" for j in range(reduces)])
    for j in range(reduces):
        g.node(f"reduce{j}", [f"m[{i * reduces + j}]" for i in range(maps)], [f"r[{j}]"], weight=maps / 8)


def pipeline(g):
    stages, items, state = g.r.randint(3, 12), g.r.randint(6, 40), g.r.random() < 0.5
    weight = [g.r.choice([1, 1, 2]) * g.r.uniform(0.6, 1.5) for _ in range(stages)]
    g.buffer("c", stages, g.bytes * g.r.choice([1, 8]), init=0)
    for s in range(stages + 1):
        g.buffer(f"p{s}", items, g.bytes // g.r.choice([1, 10]) + 1, **({"init": 0} if s == 0 else {}))
    for i in range(items):
        for s in range(stages):
            reads = [f"p{s}[{i}]"] + ([] if state else [f"c[{s}]"])
            g.node(f"i{i}_{s}", reads, [f"p{s + 1}[{i}]"], weight[s], [f"c[{s}]"] if state else [])


TRAINING = [stencil1, stencil2, stencil3, wide, tree, fft, wavefront, cholesky, lu, map_reduce, pipeline]


# ---- families that are held back ----


def qr(g):
    n = g.r.randint(4, 8)
    a = tiles(g, n)
    g.buffer("t", n * n, g.bytes // 4 + 1)
    for k in range(n):
        g.node(f"geqrt{k}", [], [f"t[{k * n + k}]"], changes=[a(k, k)])
        for j in range(k + 1, n):
            g.node(f"larfb{k}_{j}", [a(k, k), f"t[{k * n + k}]"], changes=[a(k, j)], weight=1.3)
        for i in range(k + 1, n):
            g.node(f"tsqrt{k}_{i}", [], [f"t[{i * n + k}]"], 1.2, [a(k, k), a(i, k)])
            for j in range(k + 1, n):
                g.node(f"ssrfb{k}_{i}_{j}", [a(i, k), f"t[{i * n + k}]"], changes=[a(k, j), a(i, j)], weight=2)


def multigrid(g):
    """V-cycles on a row of parts: fewer and lighter parts on each coarser level."""
    levels, width, cycles = g.r.randint(2, 4), 2 ** g.r.randint(3, 5), g.r.randint(1, 4)
    for v in range(levels):
        for which in "xy":
            g.buffer(f"{which}{v}", width >> v, (g.bytes >> v) + 1, init=0)
            g.buffer(f"{which}e{v}", width >> v, (g.bytes >> v) // 40 + 1, init=0)
    count = [0]

    def smooth(v, a, b):
        for i in range(width >> v):
            near = [f"{a}e{v}[{k}]" for k in (i - 1, i + 1) if 0 <= k < width >> v]
            count[0] += 1
            g.node(f"n{count[0]}", [f"{a}{v}[{i}]"] + near, [f"{b}{v}[{i}]", f"{b}e{v}[{i}]"], 0.5 ** v)

    for _ in range(cycles):
        for v in range(levels - 1):
            smooth(v, "x", "y")
            for i in range(width >> v + 1):
                count[0] += 1
                g.node(f"n{count[0]}", [f"y{v}[{2 * i}]", f"y{v}[{2 * i + 1}]"], [f"x{v + 1}[{i}]", f"xe{v + 1}[{i}]"], 0.5 ** v)
        smooth(levels - 1, "x", "y")
        for v in reversed(range(levels - 1)):
            for i in range(width >> v):
                count[0] += 1
                g.node(f"n{count[0]}", [f"y{v + 1}[{i // 2}]", f"y{v}[{i}]"], [f"x{v}[{i}]", f"xe{v}[{i}]"], 0.5 ** v)
    smooth(0, "x", "y")


def products(g):
    """C += A B by tiles."""
    a, b, c = g.r.randint(2, 7), g.r.randint(2, 7), g.r.randint(2, 7)
    given = {"class": "input", "init": 0} if g.r.random() < 0.5 else {"init": 0}
    g.buffer("a", a * b, g.bytes, **given)
    g.buffer("b", b * c, g.bytes, **given)
    g.buffer("c", a * c, g.bytes, init=0, output=g.r.random() < 0.5)
    for k in range(b):
        for i in range(a):
            for j in range(c):
                g.node(f"p{k}_{i}_{j}", [f"a[{i * b + k}]", f"b[{k * c + j}]"], changes=[f"c[{i * c + j}]"])


def transposes(g):
    """Rows, then columns, as a distributed transform does, some times."""
    p, times = g.r.randint(4, 12), g.r.randint(1, 4)
    size = g.bytes // p + 1
    g.buffer("t0", p * p, size, init=0)
    for t in range(times):
        g.buffer(f"t{t + 1}", p * p, size)
        for i in range(p):
            g.node(f"r{t}_{i}", [f"t{t}[{j * p + i if t else i * p + j}]" for j in range(p)],
                   [f"t{t + 1}[{i * p + j}]" for j in range(p)])


def forks(g):
    """Fork and join, again and again; what forks have of their own stays."""
    width, times = g.r.randint(3, 24), g.r.randint(3, 12)
    g.buffer("own", width, g.bytes, init=0)
    g.buffer("s", times + 1, g.bytes // 50 + 1, init=0)
    g.buffer("b", width * times, g.bytes // 50 + 1)
    for t in range(times):
        for i in range(width):
            g.node(f"f{t}_{i}", [f"s[{t}]"], [f"b[{t * width + i}]"], changes=[f"own[{i}]"])
        g.node(f"j{t}", [f"b[{t * width + i}]" for i in range(width)], [f"s[{t + 1}]"], 0.2)


def patches(g):
    """Parts of uneven weight with random neighbours, as on an adaptive grid."""
    n, steps = g.r.randint(10, 50), g.r.randint(3, 10)
    at = sorted((g.r.random(), g.r.random()) for _ in range(n))
    near = [sorted(range(n), key=lambda k: math.dist(at[i], at[k]))[1:1 + g.r.randint(2, 5)] for i in range(n)]
    weight = [math.exp(g.r.gauss(0, 0.6)) for _ in range(n)]
    for b in "uv":
        g.buffer(b, n, g.bytes, init=0)
        g.buffer(b + "e", n, g.bytes // 20 + 1, init=0)
    for t in range(steps):
        a, b = "uv"[t % 2], "uv"[1 - t % 2]
        for i in range(n):
            g.node(f"q{t}_{i}", [f"{a}[{i}]"] + [f"{a}e[{k}]" for k in near[i]], [f"{b}[{i}]", f"{b}e[{i}]"], weight[i])


def backward(g):
    """Layers forward and backward over micro-batches, with weights that stay."""
    layers, micro = g.r.randint(3, 10), g.r.randint(2, 10)
    g.buffer("w", layers, g.bytes * 4, init=0)
    g.buffer("g", layers, g.bytes * 4, init=0)
    g.buffer("x", (layers + 1) * micro, g.bytes, init=0)
    g.buffer("d", (layers + 1) * micro, g.bytes, init=0)
    for m in range(micro):
        for k in range(layers):
            g.node(f"f{m}_{k}", [f"w[{k}]", f"x[{k * micro + m}]"], [f"x[{(k + 1) * micro + m}]"])
    for m in range(micro):
        for k in reversed(range(layers)):
            g.node(f"b{m}_{k}", [f"w[{k}]", f"x[{k * micro + m}]", f"d[{(k + 1) * micro + m}]"], [f"d[{k * micro + m}]"],
                   2, [f"g[{k}]"])
    for k in range(layers):
        g.node(f"u{k}", [f"g[{k}]"], changes=[f"w[{k}]"], weight=0.3)


HELD = [qr, multigrid, products, transposes, forks, patches, backward]


# ---- machines ----


def machine(r, groups, speeds, near, far, host, staged=False):
    """GPUs in groups; `near`, `far`, `host`: latency (us) and GB/s within a group, between groups, to host memory."""
    gpus = [f"g{k}" for k in range(sum(groups))]
    group = [i for i, n in enumerate(groups) for _ in range(n)]
    memories = [{"id": "host", "capacity": "512GiB", "pinned": True}] + [{"id": g, "capacity": "40GiB"} for g in gpus]
    devices = [{"id": g, "kind": f"k{speeds[k]}", "type": "gpu", "memory": g, "gflops": {"f32": 20000 * speeds[k]},
                "bandwidth_gbs": 1500 * speeds[k], "launch_us": 2, "signal_us": 1.5} for k, g in enumerate(gpus)]
    devices.append({"id": "cpu", "type": "cpu", "use": "host", "memory": "host", "gflops": {"f32": 500}, "launch_us": 0.3})
    resources, routes = {}, []
    for g in gpus:
        resources[f"{g}.in"] = resources[f"{g}.out"] = near[1]
    for i in range(len(groups)):
        resources[f"s{i}.up"] = resources[f"s{i}.down"] = max(far[1], host[1])
    for k, g in enumerate(gpus):
        i = group[k]
        rate = min(host[1], near[1])
        routes += [{"from": "host", "to": g, "latency_us": host[0], "bandwidth_gbs": rate, "via": [f"s{i}.down", f"{g}.in"]},
                   {"from": g, "to": "host", "latency_us": host[0], "bandwidth_gbs": rate, "via": [f"{g}.out", f"s{i}.up"]}]
        for m, h in enumerate(gpus):
            j = group[m]
            if h == g or (staged and j != i):
                continue
            lat, rate = near if i == j else far
            via = [f"{g}.out", f"{h}.in"] if i == j else [f"{g}.out", f"s{i}.up", f"s{j}.down", f"{h}.in"]
            routes.append({"from": g, "to": h, "latency_us": lat, "bandwidth_gbs": min(rate, near[1]), "via": via})
    routes.append({"from": "host", "to": "host", "latency_us": 0.5, "bandwidth_gbs": 10})
    return {"gantry_machine": 1, "name": "random", "source": "drawn by tests/bench/regular.py", "memories": memories,
            "devices": devices, "resources": resources, "routes": routes, "model": {"contention": "on"}}


def islands(r):
    n = r.randint(2, 4)
    return machine(r, [n, n], [1] * 2 * n, (2, r.choice([100, 300])), (5, r.choice([12, 25, 50])), (7, 25))


def pcie(r):
    groups = r.choice([[2, 2], [4], [2, 2, 2], [2, 1]])
    return machine(r, groups, [1] * sum(groups), (2.5, 24), (3.5, r.choice([12, 19])), (7, 24), r.random() < 0.2)


def unequal(r):
    n = r.randint(2, 4)
    return machine(r, [n], [r.choice([0.5, 1, 1, 2]) for _ in range(n)], (2, r.choice([24, 100])), (2, 24), (7, 24))


def switched(r):
    n = r.choice([2, 4, 8])
    return machine(r, [n], [1] * n, (1.8, r.choice([150, 400])), (2, 24), (7, 50))


def ladder(r):
    return machine(r, [3, 2, 1], [r.choice([1, 1.5]) for _ in range(6)], (3, 50), (6, 20), (9, 20), r.random() < 0.3)


def slow(r):
    n = r.randint(3, 5)
    return machine(r, [1] * n, [1] * n, (10, 12), (12, 10), (9, 12), r.random() < 0.5)


MACHINES = {"training": [islands, pcie, unequal, switched], "held": [ladder, slow, islands, unequal, switched]}


# ---- runs ----


def run(gantry, folder, name, effort, objective):
    command = ["timeout", "300", gantry, "schedule", folder / f"{name}.json", "--machine", folder / f"{name}.machine.json",
               "--effort", str(effort), "--objective", objective, "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    report = json.loads(done.stdout)
    value = report["makespan_us"] if objective == "makespan" else report["load_us"]
    return {"value": value, "bound": report["bound_us"] if objective == "makespan" else 0,
            "seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 3),
            "tasks": report.get("nodes", 0)}


def make(which, family, seed, folder):
    r = random.Random(f"{which} {family.__name__} {seed}")
    kinds = MACHINES[which]
    index = (TRAINING if which == "training" else HELD).index(family)
    name = f"{family.__name__}-{seed}"
    m = kinds[(index + seed) % len(kinds)](r)
    g = Graph(r)
    family(g)
    (folder / f"{name}.json").write_text(json.dumps(g.json(name)))
    (folder / f"{name}.machine.json").write_text(json.dumps(m))
    return name


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1


def table(rows, efforts, known):
    best, names = {}, {}
    for name, effort, row in rows:
        best[name] = min(best.get(name, math.inf), row["value"])
    for name in best:
        best[name] = min([best[name]] + [k["value"] for (n, _), k in known.items() if n == name])
        names.setdefault(name.split("-")[0], []).append(name)
    by = {(name, effort): row for name, effort, row in rows}
    print("\nmakespan over the best of all efforts, geometric mean (worst); the best over the bound; processor s\n")
    print("| family | cases | " + " | ".join(f"effort {e}" for e in efforts) + " | best / bound | s |")
    print("|---|---|" + "---|" * (len(efforts) + 2))
    for family, members in [*names.items(), ("all", list(best))]:
        cells = []
        for e in efforts:
            ratios = [by[n, e]["value"] / best[n] for n in members if (n, e) in by]
            cells.append(f"{mean(ratios):.3f} ({max(ratios):.2f})" if ratios else "")
        bound = [best[n] / by[n, efforts[0]]["bound"] for n in members if by[n, efforts[0]]["bound"]]
        spent = " / ".join(f"{sum(by[n, e]['seconds'] for n in members if (n, e) in by):.2f}" for e in efforts)
        print(f"| {family} | {len(members)} | " + " | ".join(cells) + f" | {mean(bound):.3f} | {spent} |")


def compare(rows, known):
    for effort in sorted({e for _, e, _ in rows}):
        pairs = [(row["value"] / known[n, e]["value"], n) for n, e, row in rows if e == effort and (n, e) in known]
        worse = sorted((p for p in pairs if p[0] > 1.0005), reverse=True)
        if pairs:
            print(f"\neffort {effort} against before: mean {mean([p[0] for p in pairs]):.4f} of {len(pairs)}, least "
                  f"{min(pairs)[0]:.3f} ({min(pairs)[1]}), worse: " + ", ".join(f"{n} {q:.3f}" for q, n in worse[:20]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--set", choices=MACHINES, default="training")
    parser.add_argument("--seeds", default="0:4")
    parser.add_argument("--efforts", default="0,1,3")
    parser.add_argument("--objective", choices=["makespan", "max_load"], default="makespan")
    parser.add_argument("--family", action="append")
    parser.add_argument("--csv", type=pathlib.Path)
    parser.add_argument("--against", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    o = parser.parse_args()
    first, last = map(int, o.seeds.split(":"))
    efforts = [int(e) for e in o.efforts.split(",")]
    known = {}
    if o.against:
        with o.against.open() as f:
            known = {(k["name"], int(k["effort"])): {"value": float(k["value"])} for k in csv.DictReader(f)}
    families = [f for f in (TRAINING if o.set == "training" else HELD) if not o.family or f.__name__ in o.family]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        out = o.csv.open("w") if o.csv else None
        if out:
            out.write("name,effort,value,bound,seconds\n")
        for family in families:
            for seed in range(first, last):
                name = make(o.set, family, seed, folder)
                for effort in efforts:
                    row = run(o.build / "bin/gantry", folder, name, effort, o.objective)
                    rows.append((name, effort, row))
                    if out:
                        out.write(f"{name},{effort},{row['value']},{row['bound']},{row['seconds']}\n")
                        out.flush()
    table(rows, efforts, known)
    compare(rows, known)


main()
