#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives over staged and relayed routes: those that are found among plain accesses end no later than the same
written as a node, on random machines whose GPUs reach each other through host memory, some pairs directly. Each
schedule goes through `gantry check`."""

import json
import os
import random
import subprocess
import sys
import tempfile

MOST = 1.014  # the host's time to give one op out
KINDS = ["broadcast", "scatter", "gather", "all_gather", "all_to_all"]


def machine_of(seed):
    draw = random.Random(seed)
    n = draw.choice([3, 4, 6, 8])
    slot = [draw.choice([6.3, 12.5, 25]) for _ in range(n)] if draw.random() < 0.4 else [draw.choice([12.5, 25])] * n
    host, latency, shared = draw.choice([20, 40, 80, 160]), draw.choice([5, 8, 12]), draw.random() < 0.4
    memories = [{"id": "host", "capacity": "128GiB", "pinned": True}]
    devices, resources = [], {"host.out": host, "host.in": host}
    routes = [{"from": "host", "to": "host", "latency_us": 0.5, "bandwidth_gbs": 10}]
    for i in range(n):
        memories.append({"id": "gpu%d" % i, "capacity": "24GiB"})
        devices.append({"id": "gpu%d" % i, "type": "gpu", "memory": "gpu%d" % i, "gflops": {"f32": 20000}, "launch_us": 4,
                        "bandwidth_gbs": 800, "ordinal": i})
        for way, end in (("in", "from"), ("out", "to")):
            via = ["host." + ("out" if way == "in" else "in"), "g%d.%s" % (i, way)]
            via += ["s%d.%s" % (i // 2, way)] if shared else []
            resources.update({r: slot[i] for r in via[1:]})
            other = "to" if end == "from" else "from"
            routes.append({end: "host", other: "gpu%d" % i, "latency_us": latency, "bandwidth_gbs": slot[i], "via": via})
    for i in range(0, n - 1, 2) if draw.random() < 0.4 else []:
        routes.append({"from": "gpu%d" % i, "to": "gpu%d" % (i + 1), "latency_us": 3, "bandwidth_gbs": 50, "both": True})
    devices.append({"id": "cpu", "type": "cpu", "use": "host", "memory": "host", "gflops": {"f32": 500}})
    return n, {"gantry_machine": 1, "name": "staged", "memories": memories, "devices": devices, "resources": resources,
               "routes": routes, "model": {"contention": "on"}}


def work(name, device, reads, writes):
    return {"id": name, "work": {}, "on": "gpu%d" % device, "reads": reads, "writes": writes, "cost": {"time_us": 10}}


def graph_of(kind, n, rows, node):
    one, rows = kind in ("broadcast", "scatter"), rows // (n * n) * n * n
    part, readers = rows // n // n, range(1 if kind == "gather" else n)
    buffers = {"x": {"dtype": "f32", "shape": [rows], "split": n},
               "y": {"dtype": "f32", "shape": [len(readers)], "split": len(readers), "output": True}}
    nodes = [work("w", 0, [], ["x"])] if one else [work("w%d" % i, i, [], ["x[%d]" % i]) for i in range(n)]
    for i in readers:
        blocks = ["x{%d:%d}" % ((k * n + i) * part, (k * n + i + 1) * part) for k in range(n)]
        reads = {"scatter": ["x[%d]" % i], "all_to_all": blocks}.get(kind, ["x"])
        nodes.append(work("r%d" % i, i, ["a%d" % i] if node else reads, ["y[%d]" % i]))
        if node:
            buffers["a%d" % i] = {"dtype": "f32", "shape": [rows // n if kind in ("scatter", "all_to_all") else rows]}
    if node:
        nodes.append({"id": "c", "collective": kind, "in": ["x"] if one else ["x[%d]" % i for i in range(n)],
                      "out": ["a%d" % i for i in readers], "on": ["gpu%d" % i for i in range(n)]})
        nodes[-1].update({"root": 0} if one or kind == "gather" else {})
        nodes = [x for x in nodes if x["id"][0] != "r"] + [x for x in nodes if x["id"][0] == "r"]
    return {"gantry": 1, "name": kind, "buffers": buffers, "nodes": nodes}


def makespan(gantry, folder, graph, machine):
    paths = [os.path.join(folder, name) for name in ("graph.json", "machine.json", "schedule.json")]
    for path, what in zip(paths, (graph, machine)):
        with open(path, "w") as f:
            json.dump(what, f)
    command = [gantry, "schedule", paths[0], "--machine", paths[1], "--json", "-o", paths[2]]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run([gantry, "check", paths[0], paths[2]], check=True, stdout=subprocess.DEVNULL)
    return json.loads(out)["makespan_us"]


def main():
    gantry, first, count = sys.argv[1], int((sys.argv[2:3] or [0])[0]), int((sys.argv[3:4] or [6])[0])
    wrong, most = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            n, machine = machine_of(seed)
            for kind in KINDS:
                for rows in (1 << 14, 1 << 18, 1 << 23):
                    found, node = (makespan(gantry, folder, graph_of(kind, n, rows, x), machine) for x in (False, True))
                    most = max(most, found / node)
                    if found > node * MOST:
                        wrong += 1
                        print("seed %d, %d GPUs, %s of %d rows: found %.3f, node %.3f" % (seed, n, kind, rows, found, node))
    print("%d are slower; found / node is %.4f at most" % (wrong, most))
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
