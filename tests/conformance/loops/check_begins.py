# SPDX-License-Identifier: Apache-2.0
"""What an input or state without init and without binding begins with matters only where a start finds it, whether loops
are unrolled or are phases. Random programs of fills, maps and loops, against the same programs followed here with
arrays that begin with NaN: a run is refused where a NaN was read or is left, else its results are those of NumPy.

check_begins.py GANTRY [FIRST COUNT]
"""
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import np, run  # noqa: E402

ROWS, PARTS, NAMES = 6, 2, ["a", "b", "c"]


def make_node(rng, number):
    """Writes part or all of one buffer from a number, from itself, or from another."""
    to, other = rng.sample(NAMES, 2)
    first, last = rng.choice([(0, ROWS), (0, ROWS), (0, 3), (3, ROWS)])
    rows = f"{{{first}:{last}}}"
    kind = rng.choice(["fill", "fill", "change", "copy"])
    node = {"id": f"n{number}"}
    if kind == "fill":
        node["fill"] = {"to": to + rows, "value": number}
    elif kind == "change":
        node |= {"map": {"x": "x * 0.5 + 1"}, "args": {"x": to + rows}}
    else:
        node |= {"map": {"y": "x + 2"}, "args": {"x": other + rows, "y": to + rows}}
    return node, (kind, to, other, first, last, number)


def make_body(rng, numbers, depth):
    nodes, steps = [], []
    for _ in range(rng.randint(1, 4)):
        if depth and rng.random() < 0.5:
            inner, body = make_body(rng, numbers, depth - 1)
            turns = rng.randint(1, 6)
            carry = rng.sample(NAMES, 2) if rng.random() < 0.25 else None
            nodes.append({"repeat": turns, "nodes": inner} | ({"carry": {carry[0]: carry[1]}} if carry else {}))
            steps.append(("loop", turns, carry, body))
        else:
            node, step = make_node(rng, next(numbers))
            nodes.append(node)
            steps.append(step)
    return nodes, steps


def fill_first(rng, name, nodes, steps):
    """At the beginning of the program, or of the loop that it begins with."""
    while steps[0][0] == "loop" and rng.random() < 0.6:
        nodes, steps = nodes[0]["nodes"], steps[0][3]
    nodes.insert(0, {"id": f"first_{name}", "fill": {"to": name, "value": -1}})
    steps.insert(0, ("fill", name, None, 0, ROWS, -1))


def follow(steps, now, found):
    """now: name -> array. found: gets True where a node reads a NaN."""
    for step in steps:
        if step[0] == "loop":
            _, turns, carry, body = step
            for turn in range(turns):
                if carry and turn:
                    now[carry[0]] = now[carry[1]]
                    now[carry[1]] = np.full(ROWS, np.nan)
                elif carry and now[carry[0]] is now[carry[1]]:
                    now[carry[1]] = np.full(ROWS, np.nan)
                follow(body, now, found)
            if carry:
                now[carry[0]] = now[carry[1]]
            continue
        kind, to, other, first, last, number = step
        rows = slice(first, last)
        source = now[other if kind == "copy" else to][rows]
        found.append(kind != "fill" and bool(np.isnan(source).any()))
        now[to][rows] = {"fill": lambda: number, "change": lambda: source * 0.5 + 1, "copy": lambda: source + 2}[kind]()


def numbers_from(first):
    while True:
        yield first
        first += 1


def check(command, number):
    rng = random.Random(number)
    nodes, steps = make_body(rng, numbers_from(1), 2)
    for name in NAMES:
        if rng.random() < 0.7:
            fill_first(rng, name, nodes, steps)
    classes = {name: rng.choice(["input", "state"]) for name in NAMES}
    graph = {"gantry": 1, "name": "begins", "nodes": nodes, "buffers": {
        name: {"dtype": "f64", "shape": [ROWS], "split": PARTS, "class": classes[name],
               "output": rng.random() < 0.6 or name == "a"} for name in NAMES}}
    outputs = [name for name in NAMES if graph["buffers"][name]["output"]]
    now, found = {name: np.full(ROWS, np.nan) for name in NAMES}, []
    follow(steps, now, found)
    left = outputs + [name for name in NAMES if classes[name] == "state" and f"'{name}" in str(nodes)]
    refused = any(found) or any(np.isnan(now[name]).any() for name in left)
    said = []
    for more in ([], ["--unroll", "1"]):
        try:
            got, _ = run(command, graph, None, {name: None for name in outputs}, ["--devices", "2", "--effort", "1", *more])
        except RuntimeError as error:
            text = str(error)
            assert "is not bound and has no init" in text or "exit 3" in text, f"graph {number}: {text}"
            said.append("unbound" if "is not bound" in text else "no graph")
            continue
        said.append("ran")
        for name in outputs:
            assert not refused, f"graph {number} {more}: ran, but what {name} begins with is found\n{graph}"
            assert np.array_equal(got[name], now[name]), f"graph {number} {more}: {name}\n{got[name]}\n{now[name]}\n{graph}"
    assert said[0] == said[1] and (said[0] == "no graph" or (said[0] == "unbound") == refused), \
        f"graph {number}: {said}, and a NaN was found: {refused}\n{graph}"
    return said[0]


def main():
    first, count = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (0, 120)
    said = [check(sys.argv[1], number) for number in range(first, first + count)]
    counts = {word: said.count(word) for word in ("ran", "unbound", "no graph")}
    print(counts)
    assert counts["ran"] * 5 > count and counts["unbound"] * 5 > count, counts


main()
