# SPDX-License-Identifier: Apache-2.0
"""Random graphs, each in a few random ways of running it, against the oracle. The same seed is the same test.

check_random.py GANTRY INCLUDE MACHINES FIRST LAST [--ways N] [--large] [--keep FOLDER]
"""
import argparse
import json
import pathlib
import random
import sys

from generator import Generator
from runner import Gantry, difference, expected, with_kernels

SIZES = {False: [3, 6, 10, 16], True: [30, 60, 100]}  # elements of a graph
MACHINES = ["host-4", "dgx1-v100", "rtx-mixed-3", "sirocco", "a100-pcie-4", "hgx-h200-8"]


def policies(gantry):
    """Those that the command lists."""
    lines = gantry.words("help", "run").out.split("\npolicies\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines if line.strip()]


def ways(r, machines, names, apart):
    """Words of one run: where, by which policy, how."""
    words = ["--policy", r.choice(names)] if r.random() < 0.8 else ["--effort", r.choice([0, 1, 3])]
    if r.random() < 0.25 and machines:
        words += ["--machine", pathlib.Path(machines).resolve() / f"{r.choice(MACHINES)}.json", "--backend", "host"]
        if r.random() < 0.5:
            words += ["--devices", r.randint(1 + apart, 3)]
    else:
        words += ["--devices", r.randint(1 + apart, 4)]
    if r.random() < 0.4:
        words += ["--check", "--seed", r.randint(0, 1000)]
    return words


def squeeze(gantry, r, words):
    """--max-memory between nothing and what the schedule takes."""
    name = gantry.folder / "graph.json"
    result = gantry.words("schedule", name, "--json", "--allow-code", *[w for w in words if w not in ("--check", "--backend", "host")])
    if result.code:
        return []
    peaks = {m: b for m, b in result.report["peak_bytes"].items() if b and m != "host"}
    if not peaks:
        return []
    memory = r.choice(sorted(peaks))
    return ["--max-memory", f"{memory}={max(1, int(peaks[memory] * r.uniform(0.3, 1.0)))}"]


def run_one(gantry, graph, want, buffers, starts, words, r):
    """None, or what is wrong."""
    result = gantry.run(graph, [*words, "--iterations", starts], None, buffers)
    if want is None:
        return None if result.code == 3 else f"accepted, should be refused (exit {result.code}): {result.err}"
    if result.code == 2 and "kept apart from" in result.err:
        return None  # policies place one node after the other and do not look for a way that suits all
    if result.code:
        return f"exit {result.code}: {result.err}"
    return difference(result.arrays, want)


def run_saved(gantry, graph, want, buffers, starts, words):
    """Through a schedule file."""
    name = gantry.write(graph)
    plan = [w for w in words if w not in ("--check", "--backend", "host")]
    result = gantry.words("schedule", name, "--allow-code", "-o", "schedule.json", *plan)
    if result.code == 0:
        result = gantry.words("check", name, "schedule.json", "--allow-code")
    if result.code == 2 and "kept apart from" in result.err:
        return None
    if result.code:
        return f"schedule and check: exit {result.code}: {result.err}"
    return run_one(gantry, graph, want, buffers, starts, ["--schedule", "schedule.json", "--backend", "host"], None)


def check_seed(gantry, seed, count, machines, names, large=False):
    r = random.Random(seed * 7919)
    generator = Generator(seed, large)
    graph = with_kernels(generator.make(r.choice(SIZES[large])))
    starts = r.choice([1, 1, 2, 3])
    want = buffers = None
    if not generator.invalid:
        want, buffers = expected(graph, starts=starts)
    problems = []
    for _ in range(count):
        words = ways(r, machines, names, generator.apart)
        how = r.random()
        if want is not None and how < 0.15:
            problem, words = run_saved(gantry, graph, want, buffers, starts, words), ["(saved)", *words]
        else:
            if want is not None and how < 0.35:
                gantry.write(graph)
                tight = squeeze(gantry, r, words)
                problem = run_one(gantry, graph, want, buffers, starts, [*words, *tight], r)
                problem = None if problem and tight and problem.startswith("exit 4:") else problem
                words = [*words, *tight]
            else:
                problem = run_one(gantry, graph, want, buffers, starts, words, r)
        if problem:
            problems.append((words, starts, problem))
    return graph, problems, want is None


def main():
    parser = argparse.ArgumentParser()
    for name in ("gantry", "include", "machines"):
        parser.add_argument(name)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--ways", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--keep")
    o = parser.parse_args()
    gantry, failed, refused = Gantry(o.gantry, o.include), 0, 0
    names = policies(gantry)
    for seed in range(o.first, o.last):
        graph, problems, invalid = check_seed(gantry, seed, o.ways, o.machines, names, o.large)
        refused += invalid
        failed += bool(problems)
        for words, starts, problem in problems:
            print(f"FAILED seed {seed}: {' '.join(map(str, words))} --iterations {starts}: {problem.strip()}", flush=True)
        if problems and o.keep:
            pathlib.Path(o.keep, f"seed-{seed}.json").write_text(json.dumps(graph, indent=1))
    print(f"{o.last - o.first} graphs ({refused} to be refused), {gantry.runs} runs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
