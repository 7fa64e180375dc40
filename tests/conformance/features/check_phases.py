# SPDX-License-Identifier: Apache-2.0
"""Loops that are not unrolled: random graphs whose loops are made longer and end by `until`, cut into phases by a small
--unroll, against the oracle, which knows neither phases nor unrolling. The same seed is the same test.

check_phases.py GANTRY INCLUDE FIRST LAST
"""
import copy
import random
import sys

from generator import Generator
from oracle import Invalid
from runner import Gantry, difference, expected, with_kernels

WRONG_REFUSAL = ("kept apart from", "is `with`", "is `apart`", "is `after`", "may end after its first iteration")


def loops(graph):
    return [e for e in graph["nodes"] if e.get("repeat", 0)]


def lengthen(r, graph):
    """More iterations, and most loops end by themselves, at any time or never."""
    graph = copy.deepcopy(graph)
    for k, loop in enumerate(loops(graph)):
        loop["repeat"] = r.choice([loop["repeat"], 4, 5, 6, 7, 8, 12, 13])
        if r.random() < 0.6:
            flag = f"flag{k}"
            graph["buffers"]["one"] = {"dtype": "i64", "shape": [1], "init": 1, "class": r.choice(["const", "input", "state"])}
            graph["buffers"][flag] = {"dtype": "i64", "shape": [1], "output": r.random() < 0.5}
            test = {"id": flag, "kernel": "scale", "args": {"a": f"max(0, it - {r.choice([-1, 0, 1, 2, 3, 4, 6, 9])})", "x": "one", "y": flag}}
            loop["nodes"].insert(r.randint(0, len(loop["nodes"])), test)
            loop["until"] = {"buffer": flag, "every": r.choice([1, 1, 2, 3, 4, 5])}
    return graph


def without_until(graph):
    """What is checked before anything runs: loops could go on to their end."""
    graph = copy.deepcopy(graph)
    for loop in loops(graph):
        loop.pop("until", None)
    return graph


def make(seed, r):
    """A valid graph with a loop, or None."""
    generator = Generator(seed)
    graph = with_kernels(generator.make(r.choice([3, 6, 10, 16])))
    if generator.invalid or not loops(graph):
        return None, None
    graph = lengthen(r, graph)
    try:
        expected(without_until(graph))
    except Invalid:
        return None, None
    return graph, generator


def words(r, generator):
    chosen = ["--devices", r.randint(1 + generator.apart, 4), "--effort", r.choice([0, 0, 0, 1])]
    chosen += ["--unroll", r.choice([1, 1, 2, 3, 5, 10, 20, 50])]
    return chosen + (["--check", "--seed", r.randint(0, 1000)] if r.random() < 0.25 else [])


def run_saved(gantry, graph, buffers, starts, chosen):
    """Through a schedule file, which is written the same again."""
    name = gantry.write(graph)
    plan = chosen[:chosen.index("--check")] if "--check" in chosen else chosen
    result = gantry.words("schedule", name, "--allow-code", "-o", "schedule.json", *plan)
    result = result if result.code else gantry.words("check", name, "schedule.json", "--allow-code")
    if result.code:
        return result
    return gantry.run(graph, ["--schedule", "schedule.json", "--backend", "host", "--iterations", starts], None, buffers)


def main():
    gantry, first, last = Gantry(sys.argv[1], sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    graphs = failed = refused = 0
    for seed in range(first, last):
        r = random.Random(seed * 104729)
        graph, generator = make(seed, r)
        if graph is None:
            continue
        graphs += 1
        starts = r.choice([1, 1, 2, 3])
        want, buffers = expected(graph, starts=starts)
        for way in range(3):
            chosen = words(r, generator)
            if way == 2:
                result = run_saved(gantry, graph, buffers, starts, chosen)
            else:
                result = gantry.run(graph, [*chosen, "--iterations", starts], None, buffers)
            if result.code == 2 and any(text in result.err for text in WRONG_REFUSAL):
                refused += 1
                continue
            problem = f"exit {result.code}: {result.err}" if result.code else difference(result.arrays, want)
            if problem:
                failed += 1
                print(f"FAILED seed {seed}: {' '.join(map(str, chosen))} --iterations {starts}{' (saved)' if way == 2 else ''}: {problem.strip()}", flush=True)
    print(f"{graphs} graphs, {gantry.runs} runs, {refused} refused for what phases cannot do, {failed} failed")
    return 1 if failed or refused > gantry.runs // 10 or graphs == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
