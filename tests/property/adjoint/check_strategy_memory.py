#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the table of `--strategy auto` says of memory: of each strategy the most that a device has, held against the schedule of that strategy
alone, which was checked as every one is: there no instance lies beyond what the memory is said to have, and the last one ends there.

check_strategy_memory.py GANTRY
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

MODELS = [(["mlp"], "h200-8"), (["mlp", "--param", "batch=96", "--param", "hidden=40"], "a100-pcie-4"), (["gpt", "--param", "layers=3"], "host-4")]
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
EACH = 7  # every so many lines of a table, and the first
ALIGNED = 256  # what offsets are multiples of


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def table(text):
    """Strategy and bytes, with what a figure of four digits can be off."""
    found = re.findall(r"^((?:[a-z]+=[\w.]+,?)+)\s+[\d.]+ (?:ns|us|ms|s)\s+([\d.]+) (B|KiB|MiB|GiB)\s", text, re.M)
    return [(name, float(number) * UNITS[unit], 0 if unit == "B" else 0.06 * UNITS[unit] + float(number) * UNITS[unit] * 1e-3) for name, number, unit in found]


def devices_of(strategy):
    values = dict(part.split("=") for part in strategy.split(","))
    count = 1
    for key in ("dp", "tp", "pp"):
        count *= int(values.get(key, 1))
    return count


def peak_of(schedule):
    """The end of the last instance of each device's memory; the slab that is asked for has it, and no more than comes of aligning."""
    ends = {}
    for one in schedule["instances"]:
        if one["space"] == "slab":
            ends[one["memory"]] = max(ends.get(one["memory"], 0), one["offset"] + one["bytes"])
    peak = 0
    for memory, slab in list(zip(schedule["machine"]["memories"], schedule["slabs"]))[1:]:
        end = ends.get(memory["id"], 0)
        assert end <= slab < end + ALIGNED or slab == end == 0, (memory["id"], end, slab)
        peak = max(peak, slab)
    return peak


def check(gantry, folder, model, machine):
    words = ["--machine", machine, "--effort", 0]
    lines = table(run(gantry, "schedule", *model, *words, "--strategy", "auto"))
    assert len(lines) > 10, lines
    chosen = [line for i, line in enumerate(lines) if i % EACH == 0 and devices_of(line[0]) > 1] + lines[:1]
    for strategy, said, off in chosen:
        path = folder / "schedule.json"
        run(gantry, "schedule", *model, *words, "--strategy", strategy, "--devices", devices_of(strategy), "--output-schedule", path)
        peak = peak_of(json.loads(path.read_text()))
        assert abs(peak - said) <= off, (model, machine, strategy, peak, said)
    return len(chosen)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for model, machine in MODELS:
            print(f"{check(sys.argv[1], pathlib.Path(folder), model, machine)} strategies of {' '.join(model)} on {machine}: memory as said")


main()
