#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Schedules that the two checkers once judged differently, small and by hand: both give the verdict that the documentation does.

    test_known.py COMMAND LIBGANTRY SOURCE     LIBGANTRY may be `none`: then the command is asked
"""
import json
import os
import subprocess
import sys
import tempfile

import test_recheck

TWO_TYPES = {
    "gantry": 1, "name": "two types",
    "buffers": {"bytes": {"dtype": "u8", "shape": [8]}, "whole": {"dtype": "i64", "shape": [1]},
                "out": {"dtype": "i64", "shape": [1], "output": True}},
    "nodes": [{"id": "a", "fill": {"to": "bytes", "value": 1}}, {"id": "b", "fill": {"to": "whole", "value": 1}},
              {"id": "use", "work": {}, "reads": ["whole", "bytes"], "writes": ["out"], "cost": {"time_us": 1}}]}
SUM = {
    "gantry": 1, "name": "sum",
    "buffers": {"x": {"dtype": "f32", "shape": [64], "split": 2, "init": 1}, "total": {"dtype": "f32", "shape": [2], "init": 0, "output": True},
                "other": {"dtype": "f32", "shape": [4]}, "whole": {"dtype": "i32", "shape": [4]}},
    "nodes": [{"id": "sum[i]", "for": {"i": 2}, "work": {}, "reads": ["x[i]"], "writes": [{"sum": "total"}], "on": "i", "cost": {"time_us": 10}}]}

PAST_NOTHING = {  # `first` and `last` become one node, before which `nothing` was: what that writes has no rows.
    "gantry": 1, "name": "past nothing",
    "buffers": {"x": {"dtype": "f32", "shape": [8], "init": 1}, "between": {"dtype": "f32", "shape": [8], "output": True},
                "y": {"dtype": "f32", "shape": [8], "output": True}},
    "nodes": [{"id": "first", "map": {"y": "x + 1"}, "args": {"x": "x", "y": "between"}},
              {"id": "nothing", "map": {"y": "x + 1"}, "args": {"x": "x{0:0}", "y": "y{4:4}"}},
              {"id": "last", "map": {"y": "x + 2"}, "args": {"x": "between", "y": "y"}}]}

WORDS_OF_PYTHON = {
    "gantry": 1, "name": "words of python", "params": {"in": 3, "lambda": "2 * in", "e3": 2},
    "buffers": {"x": {"dtype": "f32", "shape": ["lambda"], "split": "in", "init": "1e3 / e3"}, "y": {"dtype": "f32", "shape": ["in * e3"], "split": "in", "output": True}},
    "nodes": [{"id": "n[is]", "for": {"is": "in"}, "map": {"y": "x + 1"}, "args": {"x": "x[is]", "y": "y[is]"}}]}

ONE_PART = {  # The part that `first` writes and `last` reads, by two names.
    "gantry": 1, "name": "one part",
    "buffers": {"x": {"dtype": "f32", "shape": [8], "init": 1}, "between": {"dtype": "f32", "shape": [16], "split": 2},
                "y": {"dtype": "f32", "shape": [8], "output": True}},
    "nodes": [{"id": "first", "map": {"y": "x + 1"}, "args": {"x": "x", "y": "between[1]"}},
              {"id": "last", "map": {"y": "x + 2"}, "args": {"x": "between[1:2]", "y": "y"}}]}

HALO_BY_FLAG = {  # What brings a halo together has no flag, though the node that reads it has one.
    "gantry": 1, "name": "halo by flag",
    "buffers": {"x": {"dtype": "f32", "shape": [8, 8], "tiles": [2, 2], "init": 1}, "y": {"dtype": "f32", "shape": [8, 8], "tiles": [2, 2]},
                "flag": {"dtype": "i32", "shape": [1], "init": 1}, "z": {"dtype": "f32", "shape": [8, 8], "tiles": [2, 2], "init": 0, "output": True}},
    "nodes": [{"when": {"buffer": "flag"}, "for": {"i": 2}, "nodes": [
        {"id": "sweep[i,j]", "for": {"j": 2}, "kernel": "jacobi2d", "args": {"x": "x[i][j]~1", "y": "y[i][j]"}},
        {"id": "copy[i,j]", "for": {"j": 2}, "copy": {"from": "y[i][j]", "to": "z[i][j]"}}]}]}


def nothing_in(*loops):
    """A node, then loops without nodes that carry a pair: [7] is one outermost loop of seven iterations, [2, 5] one in another."""
    nodes, pair = [], {"dtype": "f32", "shape": [4], "init": 1}
    for times in loops[::-1]:
        nodes = [{"repeat": times, "nodes": nodes, **({} if nodes else {"carry": {"p": "q"}})}]
    return {"gantry": 1, "name": "nothing", "buffers": {"p": pair, "q": pair, "out": {"dtype": "f32", "shape": [4], "output": True}},
            "nodes": [{"id": "write", "fill": {"to": "out", "value": 1}}, *nodes]}


def op_of(s, **words):
    return next(op for op in s["ops"] if all(op.get(key) == word for key, word in words.items()))


def instead(s, use, **words):
    """The use goes to an instance that is like the one it has, but for some words."""
    s["instances"].append({**s["instances"][use[1]], **words})
    use[1] = len(s["instances"]) - 1


def bytes_over_whole(s):
    """Eight ones of u8 lie where one of i64 was: an identity of prod, too, but that of another type."""
    a, b = op_of(s, node="a"), op_of(s, node="b")
    s["instances"][a["uses"][0][1]]["offset"] = s["instances"][b["uses"][0][1]]["offset"]
    i, j = s["ops"].index(a), s["ops"].index(b)
    s["ops"][i], s["ops"][j] = b, a


def sum_elsewhere(s):
    """The collective writes the bytes of `total` by another name: they hold what they should."""
    instead(s, op_of(s, kind="collective")["uses"][-1], value=2)


def sum_of_another_type(s):
    """The same, of another type: a sum has the type of what is read first."""
    instead(s, op_of(s, kind="collective")["uses"][-1], value=3)


def zeros_of_other_rows(s):
    """Zeros are set in rows 2 and 3 of another value and then added to as rows 0 and 1 of an accumulator."""
    instead(s, op_of(s, kind="fill", lane=0)["uses"][0], value=2, rows=[2, 4])
    op_of(s, kind="fill", lane=0)["uses"][0][2:] = [2, 4]


def contributions_in_other_rows(s):
    """What was added as rows 0 and 1 is moved as rows 2 and 3 of another value, and so is read by no wrong name."""
    use = op_of(s, kind="collective")["uses"][1]
    instead(s, use, value=2, rows=[2, 4], role="data")
    del s["instances"][use[1]]["op"]
    use[2:4] = [2, 4]


def start_twice(s):
    """What `total` is at the start is read twice, and so counts twice."""
    uses = op_of(s, kind="collective")["uses"]
    uses.insert(0, list(next(use for use in uses if use[0] == "read" and s["instances"][use[1]]["role"] != "accumulator")))


def as_it_is(_):
    """Nothing is changed."""


def values_of_all_iterations(s):
    """As if each iteration of a loop without nodes counted."""
    s["values"] += [{"buffer": 1, "generation": len(s["values"]) - 2 + i} for i in range(4)]


KNOWN = [(PAST_NOTHING, 1, as_it_is, "right"), (WORDS_OF_PYTHON, 2, as_it_is, "right"),
         (ONE_PART, 1, as_it_is, "right"), (HALO_BY_FLAG, 2, as_it_is, "right"), (TWO_TYPES, 1, bytes_over_whole, "unsound"),
         (SUM, 2, sum_elsewhere, "right"), (SUM, 2, sum_of_another_type, "right"),
         (SUM, 2, zeros_of_other_rows, "right"), (SUM, 2, contributions_in_other_rows, "unsound"), (SUM, 2, start_twice, "unsound"),
         *[(nothing_in(*loops), 1, as_it_is, "right") for loops in ([2, 5], [1, 2, 9], [3, 1], [7], [0, 4])],
         (nothing_in(2, 5), 1, values_of_all_iterations, "malformed"), (nothing_in(7), 1, values_of_all_iterations, "malformed")]


def main(command, library, source):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        judge = test_recheck.Command(command, folder) if library == "none" else test_recheck.Library(library)
        second = test_recheck.second_checker(source)
        for form, devices, change, want in KNOWN:
            path = os.path.join(folder, "graph.json")
            with open(path, "w") as file:
                json.dump(form, file)
            words = ["schedule", path, "-o", "-", "--devices", str(devices), "--effort", "0"]
            s = json.loads(subprocess.run([command] + words, capture_output=True, check=True).stdout)
            change(s)
            for op in s["ops"]:
                op.pop("position", None)
            data = json.dumps(s).encode()
            graph = judge.graph(path)
            verdicts = judge.verdict(graph, data), second.verdict(json.dumps(form), data)
            judge.free_graph(graph)
            if [word for word, _ in verdicts] != [want] * 2:
                wrong += 1
                print(f"{change.__name__} is {want}: gantry {verdicts[0]}; recheck {verdicts[1]}")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
