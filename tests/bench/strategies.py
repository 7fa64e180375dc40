#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `--strategy auto` takes beside the best of an exhaustive list of strategies, on machine files and models of other sizes than those
that the choice was made with: a table.

    tests/bench/strategies.py [BUILD] [--machines a,b] [--models gpt,mlp] [--effort 0] [--seconds 600]
    tests/bench/strategies.py [BUILD] --machines my.json --models cnn:batch=256:side=64,my_model.json

The list has every dp x tp x pp of at most as many devices as there are, with 1, 2, 3, 4, 5, 6, 8, 10, 12, 16 and 32 micro-batches, with shards and
without, pipelines with one, two and four chunks a device: more than auto looks at. Where devices are not alike, each is tried on every choice of
so many of them; with --recompute each also with all layers computed again. Each is scheduled and simulated by Python's package; auto's is what the
command predicts of what it would run. Exit 0: auto takes at most 5 % more than the best everywhere; 1: it does not. Python 3.8 is enough.
"""
import argparse
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINES = ["host-4", "h200-8", "a100-pcie-4", "dgx1-v100", "rtx-mixed-3"]
MODELS = {"gpt": [{"layers": 6, "heads": 8, "dim": 48, "tokens": 192, "batch": 24, "words": 480},
                  {"layers": 12, "heads": 12, "dim": 64, "tokens": 1024, "batch": 16, "words": 24576}],
          "mlp": [{"batch": 768, "inputs": 384, "hidden": 1536, "classes": 96}, {"batch": 9216, "inputs": 2304, "hidden": 6144, "classes": 768}]}
MICRO = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 32)


def file_of(folder, name):
    return pathlib.Path(name) if name.endswith(".json") else ROOT / "graphs" / folder / f"{name}.json"


def sizes_of(text):
    """A name whose sizes are above, or a name or file with its own, as "cnn:batch=256:side=64"."""
    name, *words = text.split(":")
    return name, MODELS.get(name, [{}]) if not words else [dict(word.split("=") for word in words)]


def exhaustive(devices, recompute):
    for dp, tp, pp in itertools.product(range(1, devices + 1), repeat=3):
        if dp * tp * pp > devices:
            continue
        for micro, zero, chunks, again in itertools.product(MICRO, (0, 1) if dp * tp > 1 else (0,), (1, 2, 4) if pp > 1 else (1,), ("none", "all") if recompute else ("none",)):
            yield dp * tp * pp, ",".join(f"{key}={value}" for key, value in (("dp", dp), ("tp", tp), ("pp", pp), ("micro", micro), ("zero", zero), ("interleave", chunks), ("recompute", again))
                                         if value not in ((0,) if key == "zero" else (1, "none"))) or "dp=1"


def choices(machine, devices):
    """By number of devices: the machines that --devices can make of it, as (words, machine)."""
    kinds = {json.dumps({key: value for key, value in device.items() if key not in ("id", "memory", "numa", "ordinal", "copy_engines")}) for device in devices}
    names = [device["id"] for device in devices]
    made = {len(names): [("", machine)]}
    for count in range(1, len(names)):
        some = itertools.combinations(names, count) if len(kinds) > 1 else [names[:count]]
        made[count] = [(" on " + "+".join(part), machine.select("id:" + ",".join(part))) for part in some]
    return made


def makespan(gantry, path, params, machine, devices, strategy, effort):
    """None: it cannot be, or does not fit."""
    try:
        graph = gantry.load(path, params, devices=devices, train=True, strategy=strategy)
        return graph.schedule(machine, effort=effort).makespan
    except gantry.Error:
        return None


def chosen_by_auto(command, path, machine, params, effort):
    """The strategy, what the command predicts of it, and how long it took to choose it, in s."""
    words = [word for name, value in params.items() for word in ("--param", f"{name}={value}")]
    begin = time.monotonic()
    done = subprocess.run([command, "train", path, "--machine", machine, "--backend", "sim", "--steps", "1", "--strategy", "auto", "--effort", str(effort), "--json", *words],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{path} on {machine}: {done.stderr.strip()}")
    table = done.stderr.splitlines()
    first = table[next(i for i, line in enumerate(table) if line.startswith("strategy ")) + 1]
    return first[: first.index("  ")], json.loads(done.stdout)["predicted_us"], time.monotonic() - begin


def count(options, gantry, machine, model, params):
    """A row of the table, and how much longer auto's choice takes than the best."""
    where, path = file_of("machines", machine), file_of("models", model)
    m = gantry.Machine.load(where)
    devices = [d for d in json.loads(where.read_text())["devices"] if d.get("use") != "host"]
    auto, own, took = chosen_by_auto(options.build / "bin/gantry", path, where, params, options.effort)
    end = time.process_time() + options.seconds
    best, tried, left = (own, auto), 0, 0
    selected = choices(m, devices)
    every = [(strategy, *choice) for used, strategy in exhaustive(len(devices), options.recompute) for choice in selected[used]]
    random.Random(1).shuffle(every) # so that those that there is time for are any of them
    for strategy, words, part in every:
        if time.process_time() > end:
            left += 1
            continue
        us = makespan(gantry, path, params, part, len(devices), strategy, options.effort)
        tried += us is not None
        best = (us, strategy + words) if us is not None and us < best[0] else best
    sizes = " ".join(f"{k}={v}" for k, v in params.items())
    late = f", {left} without time" if left else ""
    print(f"| {where.stem} | {path.stem} {sizes} | {auto} | {own:.0f} | {best[1]} | {best[0]:.0f} | {own / best[0]:.3f} | {tried}{late} | {took:.1f} |", flush=True)
    return own / best[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--models", default="gpt,mlp")
    parser.add_argument("--effort", type=int, default=0)
    parser.add_argument("--only", type=int, help="of the sizes of each model this one alone, from 0")
    parser.add_argument("--seconds", type=float, default=600, help="of CPU time, for each row")
    parser.add_argument("--recompute", action="store_true", help="with all layers computed again, too")
    options = parser.parse_args()
    options.build = options.build.resolve()
    os.environ.setdefault("GANTRY_LIBRARY", str(options.build / "lib" / "libgantry.so"))
    sys.path.insert(0, str(ROOT / "tools" / "python"))
    import gantry
    print("| machine | model | auto takes | us | the best of all | us | auto over best | strategies that can be | auto, s |\n|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for machine, model in itertools.product(options.machines.split(","), options.models.split(",")):
        name, sizes = sizes_of(model)
        for at, params in enumerate(sizes):
            if options.only in (None, at):
                ratios.append(count(options, gantry, machine, name, params))
    print(f"\nauto over best: at most {max(ratios):.3f}, of {len(ratios)}")
    return 1 if max(ratios) > 1.05 else 0


if __name__ == "__main__":
    sys.exit(main())
