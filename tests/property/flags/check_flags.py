#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A start in which no flag of a `when` is set: its bound and its predicted makespan.

The bound of a random graph is that of the same graph without flags, in which each node that may be left out takes what
asking takes. The makespan is that of the schedule itself, worked out here from its file: the longest chain of ops along
lanes and the sync table. A chain of nodes on one device takes what it takes without those nodes, and asking for each."""

import json
import os
import random
import subprocess
import sys
import tempfile

NEAR = 1e-5  # us: times are whole picoseconds, and each may be rounded
WHEN, LEFT_OUT = 3.25, 1.5


def machine_of(draw, apart):
    """Devices of two types in host memory; or each GPU in one of its own (`apart`)."""
    kinds = [draw.choice(["cpu", "gpu"]) for _ in range(draw.randint(1, 3))]
    kinds = ["gpu" for _ in kinds] if apart else kinds
    devices = [{"id": "d%d" % i, "type": kind, "memory": "m%d" % i if apart else "host", "launch_us": 0, "lanes": 1}
               for i, kind in enumerate(kinds)]
    memories = ["host"] + (["m%d" % i for i in range(len(kinds))] if apart else [])
    routes = [{"from": "*", "to": "*", "latency_us": 1, "bandwidth_gbs": 2}] if apart else []
    return {"gantry_machine": 1, "name": "flags", "memories": [{"id": m, "capacity": "1GiB"} for m in memories],
            "devices": devices, "routes": routes,
            "model": {"contention": "off", "when_us": WHEN, "left_out_us": LEFT_OUT}}


def nodes_of(draw, devices):
    """(times by device, reads, writes, flag or None)"""
    nodes = []
    for _ in range(draw.randint(1, 14)):
        time = round(draw.choice([1, 4, 20]) * draw.uniform(0.5, 2), 2)
        same = draw.random() < 0.5
        times = {d["id"]: time if same else round(time * draw.uniform(0.3, 3), 2) for d in devices}
        names = ["b%d" % i for i in range(5)]
        draw.shuffle(names)
        reads, writes = names[:draw.randint(0, 2)], names[2:2 + draw.randint(1, 2)]
        nodes.append((times, reads, writes, draw.choice([None, None, "f0", "f1"])))
    return nodes


def graph_of(machine, nodes, how):
    """`how`: "flags", or as if each node that may be left out ran ("set") or did not ("unset"), and there were no flags."""
    state = {"class": "state", "init": 0}
    buffers = {"b%d" % i: {"dtype": "f32", "shape": [64 * (i + 1)], **state} for i in range(4)}
    buffers.update({"f%d" % i: {"dtype": "u8", "shape": [1], **state} for i in range(2)})
    buffers["b4"] = {"dtype": "f32", "shape": [2000], "output": True, **state}
    gpu = {d["id"]: d["type"] == "gpu" for d in machine["devices"]}
    out = []
    for i, (times, reads, writes, flag) in enumerate(nodes):
        node = {"id": "n%d" % i, "work": {}, "reads": list(reads), "writes": [{"readwrite": w} for w in writes]}
        if flag and how == "flags":
            node["when"] = {"buffer": flag}
        elif flag:
            node["reads"].append(flag)
            more = {d: (LEFT_OUT if how == "unset" else WHEN) * gpu[d] for d in times}
            times = {d: more[d] + (0 if how == "unset" else t) for d, t in times.items()}
        node["cost"] = {"time_us": times}
        out.append(node)
    return {"gantry": 1, "name": "flags", "buffers": buffers, "nodes": out}


class Tried:
    def __init__(self, gantry, folder):
        self.gantry, self.folder = gantry, folder

    def report(self, graph, machine, *options):
        for name, what in (("graph", graph), ("machine", machine)):
            with open(os.path.join(self.folder, name + ".json"), "w") as f:
                json.dump(what, f)
        out = subprocess.run([self.gantry, "schedule", os.path.join(self.folder, "graph.json"), "--machine",
                              os.path.join(self.folder, "machine.json"), "--json", "--quiet", *options], check=True,
                             stdout=subprocess.PIPE).stdout
        return json.loads(out)

    def schedule(self, graph, machine, *options):
        path = os.path.join(self.folder, "schedule.json")
        report = self.report(graph, machine, "-o", path, *options)
        with open(path) as f:
            return report, json.load(f)


def longest(schedule, duration):
    """All in one memory: an op begins when those before it in its lanes, and all that it waits for, have ended."""
    ends, lane_end = [], {}
    for i, op in enumerate(schedule["ops"]):
        waits = [ends[row["from"]] for row in schedule["sync"] if row["to"] == i and not row.get("distance")]
        ends.append(max(waits + [lane_end.get(op["lane"], 0)]) + duration(op))
        lane_end[op["lane"]] = ends[-1]
    return max(ends)


def check(near, message, *figures):
    if not near:
        sys.exit("%s: %s" % (message, ", ".join(map(str, figures))))


def check_bounds(tried, seed):
    draw = random.Random(seed)
    machine = machine_of(draw, seed % 2)
    nodes = nodes_of(draw, machine["devices"])
    if not any(n[3] for n in nodes):
        return False
    both = tried.report(graph_of(machine, nodes, "flags"), machine, "--effort", "0")
    for how, key in (("set", "bound_us"), ("unset", "bound_without_us")):
        alone = tried.report(graph_of(machine, nodes, how), machine, "--effort", "0")
        check(abs(alone["bound_us"] - both[key]) < NEAR, "seed %d, flags %s" % (seed, how), both[key], alone["bound_us"])
        check("bound_without_us" not in alone and "makespan_without_us" not in alone, "seed %d: no flags" % seed)
    check(both["bound_without_us"] <= both["makespan_without_us"] + NEAR, "seed %d" % seed, both)
    check(both["makespan_without_us"] <= both["makespan_us"] + NEAR, "seed %d: nothing is shared" % seed, both)
    return both["bound_without_us"] < both["bound_us"]


def check_makespans(tried, seed):
    draw = random.Random(seed)
    machine = machine_of(draw, False)
    nodes = nodes_of(draw, machine["devices"])
    if not any(n[3] for n in nodes):
        return False
    both, schedule = tried.schedule(graph_of(machine, nodes, "flags"), machine, "--effort", "1")
    gpus = {d["id"] for d in machine["devices"] if d["type"] == "gpu"}
    flagged = {"n%d" % i for i, n in enumerate(nodes) if n[3]}

    def unset(op):
        device = schedule["lanes"][op["lane"]]["device"]
        return (LEFT_OUT if device in gpus else 0) if op.get("node") in flagged else op["ps"][0] / 1e6

    for key, duration in (("makespan_us", lambda op: op["ps"][0] / 1e6), ("makespan_without_us", unset)):
        check(abs(longest(schedule, duration) - both[key]) < NEAR, "seed %d, %s" % (seed, key), both[key],
              longest(schedule, duration))
    return True


def check_left_out(tried):
    """On one device: without the nodes, and what asking takes for each of them."""
    for seed in range(6):
        draw = random.Random(seed)
        machine = machine_of(draw, False)
        machine["devices"] = [dict(machine["devices"][0], type="gpu" if seed % 2 else "cpu")]
        nodes = nodes_of(draw, machine["devices"]) + [({"d0": 2}, [], ["b0"], None), ({"d0": 5}, [], ["b1"], "f0")]
        both = tried.report(graph_of(machine, nodes, "flags"), machine)
        rest = tried.report(graph_of(machine, [n for n in nodes if not n[3]], "flags"), machine)
        asking = LEFT_OUT * (seed % 2) * sum(1 for n in nodes if n[3])
        check(abs(both["makespan_without_us"] - rest["makespan_us"] - asking) < NEAR, "one device, seed %d" % seed, both,
              rest)


def check_phases(tried):
    """Ten iterations, started one by one: 10 us, and 7 by a flag, which a CPU asks in passing."""
    machine = machine_of(random.Random(0), False)
    machine["devices"] = [{"id": "d0", "type": "cpu", "memory": "host", "launch_us": 0}]
    graph = graph_of(machine, [({"d0": 10}, [], ["b0"], None), ({"d0": 7}, [], ["b0"], "f0")], "flags")
    graph["nodes"] = [{"repeat": 10, "nodes": graph["nodes"]}]
    for options in ([], ["--unroll", "2"]):
        got = tried.report(graph, machine, *options)
        check(("phases" in got) == bool(options), "phases", got)
        check([got[k] for k in ("makespan_us", "bound_us", "makespan_without_us", "bound_without_us")] ==
              [170, 170, 100, 100], "ten iterations", got)


def check_text(tried):
    """What is printed, of the same in a single start."""
    machine = machine_of(random.Random(0), False)
    machine["devices"] = [{"id": "d0", "type": "gpu", "memory": "host", "launch_us": 0, "lanes": 1}]
    graph = graph_of(machine, [({"d0": 10}, [], ["b0"], None), ({"d0": 5.25}, [], ["b0"], "f0")], "flags")
    tried.report(graph, machine)
    command = [tried.gantry, "schedule", os.path.join(tried.folder, "graph.json"), "--machine",
               os.path.join(tried.folder, "machine.json")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "universal_newlines": True}
    out = subprocess.run(command, check=True, **pipes).stdout
    for line in ("makespan     18.5 us predicted, 11.5 us where no flag is set",
                 "lower bound  18.5 us by the longest chain, gap 0 %; where no flag is set 11.5 us, gap 0 %",
                 "when         1 node may be left out"):
        check("\n  %s\n" % line in out, "no line \"%s\"" % line, out)
    out = subprocess.run(command + ["--explain", "n1"], check=True, **pipes).stdout
    check("runs when f0 is not 0, else it takes 1.500 us;" in out, "--explain", out)


def main(gantry, first, last):
    with tempfile.TemporaryDirectory() as folder:
        tried = Tried(gantry, folder)
        lower = sum(check_bounds(tried, seed) for seed in range(first, last))
        made = sum(check_makespans(tried, seed) for seed in range(first, last))
        check(3 * lower > last - first and 2 * made > last - first, "too few that say something", lower, made)
        check_left_out(tried)
        check_phases(tried)
        check_text(tried)
        print("%d bounds that are lower without flags, %d makespans" % (lower, made))


if __name__ == "__main__":
    main(sys.argv[1], *[int(x) for x in sys.argv[2:] or (0, 60)])
