#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bound of machines with several kinds of device. On tiny random graphs it is never above the optimum, which is
found here by trying every order on every device, and never below the longest chain or the fractional shares of work;
nor is it on factorisations with times by kind, where the work alone says most."""

import json
import os
import random
import subprocess
import sys
import tempfile

NEAR = 1e-5


def machine_of(kinds):
    names = ["k%dd%d" % (k, i) for k, count in enumerate(kinds) for i in range(count)]
    return {"gantry_machine": 1, "name": "kinds", "memories": [{"id": "host", "capacity": "1GiB"}],
            "devices": [{"id": n, "type": "cpu", "memory": "host"} for n in names], "routes": [],
            "model": {"contention": "off", "launch_us": 0}}


def graph_of(kinds, times, before):
    nodes = [{"id": "n%d" % t, "work": {}, "after": ["n%d" % b for b in before[t]],
              "cost": {"time_us": {"k%dd%d" % (k, i): x[k] for k, count in enumerate(kinds) for i in range(count)}}}
             for t, x in enumerate(times)]
    return {"gantry": 1, "name": "kinds", "buffers": {}, "nodes": nodes}


def bound_of(gantry, folder, kinds, times, before):
    graph, machine = os.path.join(folder, "graph.json"), os.path.join(folder, "machine.json")
    for path, what in ((graph, graph_of(kinds, times, before)), (machine, machine_of(kinds))):
        with open(path, "w") as f:
            json.dump(what, f)
    out = subprocess.run([gantry, "schedule", graph, "--machine", machine, "--json", "--effort", "0"], check=True,
                         stdout=subprocess.PIPE).stdout
    report = json.loads(out)
    return report["bound_us"], report["makespan_us"]


def optimum(kinds, times, before):
    """Every task next, on every device that is different from those before it."""
    tasks, best = len(times), [float("inf")]
    devices = [k for k, count in enumerate(kinds) for _ in range(count)]

    def go(done, ends, free):
        if len(ends) == tasks:
            best[0] = min(best[0], max(free))
            return
        for t in range(tasks):
            if t in ends or any(b not in ends for b in before[t]):
                continue
            tried = set()
            for d, k in enumerate(devices):
                start = max([free[d]] + [ends[b] for b in before[t]])
                if (k, free[d]) in tried or start + times[t][k] >= best[0]:
                    continue
                tried.add((k, free[d]))
                go(done + 1, {**ends, t: start + times[t][k]}, free[:d] + [start + times[t][k]] + free[d + 1:])

    go(0, {}, [0.0] * len(devices))
    return best[0]


def chain(times, before):
    end = []
    for t, x in enumerate(times):
        end.append(min(x) + max([end[b] for b in before[t]] or [0]))
    return max(end)


def shares(kinds, times):
    """Two kinds: tasks by acceleration, cut where both end at the same time."""
    order = sorted(times, key=lambda x: x[0] / x[1])
    least = float("inf")
    for i in range(len(order) + 1):
        first, second = sum(x[0] for x in order[:i]), sum(x[1] for x in order[i:])
        least = min(least, max(first / kinds[0], second / kinds[1]))
        if i < len(order):  # a part of the next one, so that both are busy for as long
            a, b = order[i]
            part = (second / kinds[1] - first / kinds[0]) / (a / kinds[0] + b / kinds[1])
            if 0 <= part <= 1:
                least = min(least, (first + part * a) / kinds[0])
    return least


def random_case(seed):
    draw = random.Random(seed)
    tasks, kinds = draw.randint(3, 7), [1] + [draw.choice([1, 1, 2]) for _ in range(draw.choice([1, 1, 2]))]
    times = [[round(draw.choice([1, 3, 10]) * draw.uniform(0.5, 3), 3) for _ in kinds] for _ in range(tasks)]
    density = draw.choice([0, 0.1, 0.2, 0.4])
    before = [[b for b in range(t) if draw.random() < density] for t in range(tasks)]
    return kinds, times, before


def factorisation(name, tiles, kinds, seed):
    draw, times, before, last = random.Random(seed), [], [], {}
    cost = {"panel": (40, 22), "solve": (30, 2.7), "update": (60, 2.2)}
    cost = {k: [round(v * draw.uniform(0.7, 1.3), 3) for v in x] for k, x in cost.items()}

    def add(kind, reads, writes):
        before.append(sorted({last[x] for x in reads + writes if x in last}))
        times.append(cost[kind])
        for x in writes:
            last[x] = len(times) - 1

    for k in range(tiles):
        add("panel", [], [(k, k)])
        rest = range(k + 1, tiles)
        for i in rest:
            add("solve", [(k, k)], [(i, k)])
            if name == "lu":
                add("solve", [(k, k)], [(k, i)])
        for i in rest:
            for j in rest:
                if name == "lu" or j <= i:
                    add("update", [(i, k), (k, j) if name == "lu" else (j, k)], [(i, j)])
    return kinds, times, before


def main():
    gantry, wrong, near = sys.argv[1], 0, []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(int((sys.argv[2:3] or [60])[0])):
            case = random_case(seed)
            bound, _ = bound_of(gantry, folder, *case)
            best, least = optimum(*case), chain(case[1], case[2])
            least = max(least, shares(*case[:2])) if len(case[0]) == 2 else least
            near.append(best / bound)
            if not least * (1 - NEAR) <= bound <= best * (1 + 1e-9):
                wrong += 1
                print("seed %d: bound %.6f, optimum %.6f, chain and shares %.6f" % (seed, bound, best, least))
        print("optimum / bound: %.4f on average, %.4f at most" % (sum(near) / len(near), max(near)))
        for i, (name, tiles, kinds) in enumerate((("cholesky", 12, [4, 1]), ("lu", 7, [8, 1]), ("lu", 6, [2, 2]))):
            case = factorisation(name, tiles, kinds, i)
            bound, made = bound_of(gantry, folder, *case)
            least = max(chain(case[1], case[2]), shares(*case[:2]))
            print("%s, %d tiles: bound %.3f, chain and shares %.3f, schedule %.3f" % (name, tiles, bound, least, made))
            wrong += not least * (1 - NEAR) <= bound <= made * (1 + NEAR)
    print("%d are wrong" % wrong)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
