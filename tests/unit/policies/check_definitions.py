# SPDX-License-Identifier: Apache-2.0
"""Every list policy against its definition, on random textbook instances: same devices, same makespan.

The definitions are written down here as in the papers: exact fractions, no heaps, everything looked at again at every
step. Costs are small whole numbers, so that ties are frequent.

check_definitions.py GANTRY [INSTANCES [FIRST SEED]]
"""
import json
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction


def mean(times):
    return Fraction(sum(times), len(times))


def median(times):
    times = sorted(times)
    return Fraction(times[(len(times) - 1) // 2] + times[len(times) // 2], 2)


class Instance:
    def __init__(self, seed):
        rng = random.Random(seed)
        self.tasks, self.devices = rng.randint(1, 14), rng.randint(1, 5)
        most = rng.choice([3, 10, 60])
        self.time = [[rng.randint(1, most) for _ in range(self.devices)] for _ in range(self.tasks)]
        density = rng.choice([0.1, 0.25, 0.5])
        self.cost = {(i, j): rng.randint(1, rng.choice([2, 10, 80])) for j in range(self.tasks) for i in range(j)
                     if rng.random() < density}
        self.after = [[j for j in range(self.tasks) if (i, j) in self.cost] for i in range(self.tasks)]
        self.before = [[i for i in range(self.tasks) if (i, j) in self.cost] for j in range(self.tasks)]

    def json(self):
        names = [f"P{d}" for d in range(self.devices)]
        machine = {
            "gantry_machine": 1,
            "memories": [{"id": "host", "capacity": "1GiB"}] + [{"id": "M" + n, "capacity": "1GiB"} for n in names],
            "devices": [{"id": n, "memory": "M" + n} for n in names],
            "routes": [{"from": "*", "to": "*", "bandwidth_gbs": 0.001}],
            "model": {"contention": "off", "launch_us": 0}}
        return json.dumps({
            "gantry": 1, "name": "random", "machine": machine,
            "buffers": {f"e{i}_{j}": {"dtype": "u8", "shape": [c]} for (i, j), c in self.cost.items()},
            "nodes": [{"id": f"T{t}", "work": {}, "reads": [f"e{i}_{t}" for i in self.before[t]],
                       "writes": [f"e{t}_{j}" for j in self.after[t]],
                       "cost": {"time_us": dict(zip(names, self.time[t]))}} for t in range(self.tasks)]})

    def up(self, figure, transfers=True):
        rank = [Fraction(0)] * self.tasks
        for t in reversed(range(self.tasks)):
            rank[t] = figure(self.time[t]) + max((rank[j] + transfers * self.cost[t, j] for j in self.after[t]), default=0)
        return rank

    def down(self):
        rank = [Fraction(0)] * self.tasks
        for t in range(self.tasks):
            rank[t] = max((rank[i] + mean(self.time[i]) + self.cost[i, t] for i in self.before[t]), default=Fraction(0))
        return rank


class Schedule:
    def __init__(self, x):
        self.x, self.device, self.start, self.end = x, {}, {}, {}

    def data(self, t, d):
        return max((self.end[i] + (self.device[i] != d) * self.x.cost[i, t] for i in self.x.before[t] if i in self.end),
                   default=0)

    def insert(self, t, d):
        """The earliest slot, gaps included."""
        at = self.data(t, d)
        for start, end in sorted((self.start[o], self.end[o]) for o in self.device if self.device[o] == d):
            if at + self.x.time[t][d] <= start:
                break
            at = max(at, end)
        return at

    def free(self, d):
        return max((self.end[o] for o in self.device if self.device[o] == d), default=0)

    def append(self, t, d):
        return max(self.data(t, d), self.free(d))

    def put(self, t, d, at):
        self.device[t], self.start[t], self.end[t] = d, at, at + self.x.time[t][d]

    def drop(self, t):
        del self.device[t], self.start[t], self.end[t]

    def ready(self):
        return [t for t in range(self.x.tasks) if t not in self.device and all(i in self.device for i in self.x.before[t])]

    def ends(self, t):
        """(end, device), the earliest first."""
        return sorted((self.insert(t, d) + self.x.time[t][d], d) for d in range(self.x.devices))

    def earliest(self, t):
        d = self.ends(t)[0][1]
        self.put(t, d, self.insert(t, d))

    def by_rank(self, rank, place):
        while ready := self.ready():
            place(min(ready, key=lambda t: (-rank[t], t)))
        return self


def heft(x, figure=mean):
    s = Schedule(x)
    return s.by_rank(x.up(figure), s.earliest)


def peft(x):
    devices = range(x.devices)
    table = [[0] * x.devices for _ in range(x.tasks)]
    for t in reversed(range(x.tasks)):
        for d in devices:
            table[t][d] = max((min(table[j][q] + x.time[j][q] + (q != d) * x.cost[t, j] for q in devices)
                               for j in x.after[t]), default=0)
    s = Schedule(x)

    def place(t):
        d = min(devices, key=lambda d: (s.insert(t, d) + x.time[t][d] + table[t][d], d))
        s.put(t, d, s.insert(t, d))
    return s.by_rank([mean(row) for row in table], place)


def cpop(x):
    rank = [u + d for u, d in zip(x.up(mean), x.down())]
    path = [min((t for t in range(x.tasks) if not x.before[t]), key=lambda t: (-rank[t], t))]
    while follow := [j for j in x.after[path[-1]] if rank[j] == rank[path[0]]]:
        path.append(follow[0])
    device = min(range(x.devices), key=lambda d: (sum(x.time[t][d] for t in path), d))
    s = Schedule(x)
    return s.by_rank(rank, lambda t: s.put(t, device, s.insert(t, device)) if t in path else s.earliest(t))


def lookahead(x):
    rank, s = x.up(mean), Schedule(x)

    def score(t, d):
        s.put(t, d, s.insert(t, d))
        follow = sorted(x.after[t], key=lambda j: (-rank[j], j))
        for j in follow:
            s.earliest(j)
        last = max([s.end[t]] + [s.end[j] for j in follow])
        for j in follow + [t]:
            s.drop(j)
        return last

    def place(t):
        d = min(range(x.devices), key=lambda d: (score(t, d), d))
        s.put(t, d, s.insert(t, d))
    return s.by_rank(rank, place)


def pairs(x, worth):
    s = Schedule(x)
    while ready := s.ready():
        _, t, d = min((worth(t, d, s.append(t, d)), t, d) for t in ready for d in range(x.devices))
        s.put(t, d, s.append(t, d))
    return s


def etf(x):
    level = x.up(mean, False)
    return pairs(x, lambda t, d, start: (start, -level[t]))


def dls(x):
    level = x.up(median, False)
    return pairs(x, lambda t, d, start: -(level[t] - start + median(x.time[t]) - x.time[t][d]))


def m_sct(x):
    level, up, down, devices = x.up(mean, False), x.up(mean), x.down(), range(x.devices)
    child, taken, last = {}, set(), {}
    for i, j in sorted(x.cost, key=lambda e: (-(down[e[0]] + mean(x.time[e[0]]) + x.cost[e] + up[e[1]]), e)):
        if i not in child and j not in taken:
            child[i] = j
            taken.add(j)
    s = Schedule(x)
    while ready := s.ready():
        found = []
        for d in devices:
            kept = child.get(last.get(d))
            if kept not in ready or any(s.append(kept, q) < s.append(kept, d) for q in devices):
                kept = None
            for t in ready:
                everywhere = max(s.data(t, q) for q in devices)
                start = s.append(t, d) if kept in (None, t) else max(everywhere, s.free(d))
                found.append((start, -level[t], t, d))
        _, _, t, d = min(found)
        s.put(t, d, s.append(t, d))
        last[d] = t
    return s


def batch(x, key):
    s = Schedule(x)
    while ready := s.ready():
        s.earliest(min(ready, key=lambda t: (key([end for end, _ in s.ends(t)]), t)))
    return s


def owner(x):
    s = Schedule(x)

    def place(t):
        have = [sum(x.cost[i, t] for i in x.before[t] if s.device[i] == d) for d in range(x.devices)]
        d = min(range(x.devices), key=lambda d: (-have[d], s.insert(t, d) + x.time[t][d], d))
        s.put(t, d, s.insert(t, d))
    return s.by_rank(x.up(mean), place)


def single_rank(x):
    s = Schedule(x)
    return s.by_rank(x.up(mean), lambda t: s.put(t, 0, s.append(t, 0)))


POLICIES = {
    "heft": heft, "heft-links": heft,  # contention is off
    "heft-min": lambda x: heft(x, min), "heft-max": lambda x: heft(x, max), "heft-median": lambda x: heft(x, median),
    "peft": peft, "cpop": cpop, "lookahead": lookahead, "etf": etf, "m-etf": etf, "dls": dls, "m-sct": m_sct,
    "min-min": lambda x: batch(x, lambda ends: ends[0]),
    "max-min": lambda x: batch(x, lambda ends: -ends[0]),
    "sufferage": lambda x: batch(x, lambda ends: ends[0] - ends[1] if len(ends) > 1 else 0), "owner": owner, "single-rank": single_rank}


def main():
    gantry, instances = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 30
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "g.json")
        for seed in range(first, first + instances):
            x = Instance(seed)
            with open(path, "w") as file:
                file.write(x.json())
            for name, policy in POLICIES.items():
                done = subprocess.run([gantry, "schedule", path, "--policy", name, "--json"], capture_output=True, timeout=60)
                assert done.returncode == 0, f"seed {seed}, {name}: {done.stderr.decode()}"
                found, want = json.loads(done.stdout), policy(x)
                placement = {f"T{t}": f"P{d}" for t, d in want.device.items()}
                makespan = max(want.end.values())
                if found["placement"] != placement or found["makespan_us"] != makespan:
                    bad += 1
                    print(f"seed {seed}, {name}: {found['makespan_us']} us and {found['placement']}, "
                          f"not {makespan} and {placement}")
    print(f"{instances} instances, {len(POLICIES)} policies, {bad} differ")
    sys.exit(bad > 0)


main()
