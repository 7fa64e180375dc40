# SPDX-License-Identifier: Apache-2.0
"""Random graphs of parts, against placing by hand: whoever owns a part computes what is written there.

Stencils of uneven parts, rings, sweeps that follow each other, products of tiles and pipelines with weights; parts go to
devices in blocks, or one after the other, by `on`, and the best of all policies orders them. The default is not told, and
takes no more than 3 % longer. `gantry check` accepts its schedules.

check_owners.py GANTRY MACHINE
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

DEVICES = 4
MOST = 1.03


def buffer(parts, elements, **more):
    return {"dtype": "f64", "shape": [parts, elements], "split": parts, **more}


def node(name, owner, reads, writes, elements, work=9, changes=()):
    writes = [*writes, *({"readwrite": one} for one in changes)]
    cost = {"flops": int(work * elements), "bytes": 16 * elements}
    return owner, {"id": name, "work": {}, "cost": cost, "reads": reads, "writes": writes}


def stencil(r, ring):
    parts, steps, n = r.randint(9, 14), r.randint(5, 8), 1 << r.randint(15, 18)
    weight = [r.choice([1, 1, 1, 2]) for _ in range(parts)]
    buffers = {"u0": buffer(parts, n, init=1, output=True), "u1": buffer(parts, n, output=True), "e0": buffer(parts, 256), "e1": buffer(parts, 256)}
    nodes = [node(f"begin[{i}]", i, [f"u0[{i}]"], [f"e0[{i}]"], 256) for i in range(parts)]
    for t in range(steps):
        for i in range(parts):
            near = [(i + k) % parts for k in (-1, 1) if ring or 0 <= i + k < parts]
            reads = [f"u{t % 2}[{i}]", *(f"e{t % 2}[{k}]" for k in near)]
            nodes.append(node(f"step[{t},{i}]", i, reads, [f"u{1 - t % 2}[{i}]", f"e{1 - t % 2}[{i}]"], weight[i] * n))
    return parts, buffers, nodes


def sweeps(r):
    parts, times, n = r.randint(10, 16), r.randint(4, 6), 1 << r.randint(15, 18)
    buffers = {"a": buffer(parts, n, init=1, output=True), "edge": buffer(parts * times, 256)}
    nodes = []
    for s in range(times):
        for i in range(parts):
            reads = [f"edge[{s * parts + i - 1}]"] if i else []
            nodes.append(node(f"sweep[{s},{i}]", i, reads, [f"edge[{s * parts + i}]"], n, 20, [f"a[{i}]"]))
    return parts, buffers, nodes


def product(r):
    side, n = r.randint(3, 4), r.choice([256, 512, 768])
    buffers = {name: buffer(side * side, n * n, init=1, output=name == "c") for name in "abc"}
    nodes = []
    for k in range(side):
        for i in range(side * side):
            reads = [f"a[{i // side * side + k}]", f"b[{k * side + i % side}]"]
            nodes.append(node(f"gemm[{k},{i}]", i, reads, [], n * n, 2 * n, [f"c[{i}]"]))
    return side * side, buffers, nodes


def pipeline(r):
    stages, batches, n = r.randint(5, 9), r.randint(5, 8), 1 << r.randint(14, 17)
    buffers = {"w": buffer(stages, 8 * n, init=1), "h": buffer(batches * (stages + 1), n, init=1, output=True)}
    nodes = []
    for b in range(batches):
        for s in range(stages):
            at = b * (stages + 1) + s
            nodes.append(node(f"stage[{s},{b}]", s, [f"w[{s}]", f"h[{at}]"], [f"h[{at + 1}]"], n, 2000))
    return stages, buffers, nodes


def gantry(command, *words):
    done = subprocess.run([command, *map(str, words)], capture_output=True, text=True, timeout=120)
    if done.returncode:
        sys.exit(f"gantry {' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def makespan(command, machine, folder, buffers, nodes, *words):
    path = folder / "graph.json"
    path.write_text(json.dumps({"gantry": 1, "name": "owners", "buffers": buffers, "nodes": nodes}))
    return path, json.loads(gantry(command, "schedule", path, "--machine", machine, "--json", *words))["makespan_us"]


def main(command, machine):
    r = random.Random(19)
    families = [lambda: stencil(r, False), lambda: stencil(r, True), lambda: sweeps(r), lambda: product(r), lambda: pipeline(r)]
    worst, wrong = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number in range(15):
            parts, buffers, nodes = families[number % len(families)]()
            ways = [lambda i: i * DEVICES // parts, lambda i: i % DEVICES]
            hand = min(makespan(command, machine, folder, buffers, [{**n, "on": way(i)} for i, n in nodes], "--effort", 1)[1] for way in ways)
            path, ours = makespan(command, machine, folder, buffers, [n for _, n in nodes], "-o", folder / "s.json")
            gantry(command, "check", path, folder / "s.json")
            worst = max(worst, ours / hand)
            if ours > MOST * hand:
                wrong += 1
                print(f"graph {number}: {ours:.1f} us, by hand {hand:.1f} us")
    print(f"15 graphs, at most {worst:.3f} of what placing by hand takes")
    return 1 if wrong else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
