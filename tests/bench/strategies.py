#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `--strategy auto` takes beside the best of an exhaustive list of strategies, on machine files and models of other sizes than those
that the choice was made with: a table.

    tests/bench/strategies.py [BUILD] [--machines a,b] [--models gpt,mlp] [--effort 0] [--seconds 600]

The list has every dp x tp x pp of at most as many devices as there are, with 1, 2, 3, 4, 6, 8, 12, 16 and 32 micro-batches, with shards and
without, pipelines with one, two and four chunks a device: more than auto looks at. Each is scheduled and simulated as auto's choice is, by
Python's package. Exit 0: auto takes at most 5 % more than the best everywhere; 1: it does not. Python 3.8 is enough.
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
MICRO = (1, 2, 3, 4, 6, 8, 12, 16, 32)


def exhaustive(devices):
    for dp, tp, pp in itertools.product(range(1, devices + 1), repeat=3):
        if dp * tp * pp > devices:
            continue
        for micro, zero, chunks in itertools.product(MICRO, (0, 1) if dp > 1 else (0,), (1, 2, 4) if pp > 1 else (1,)):
            yield dp * tp * pp, ",".join(f"{key}={value}" for key, value in (("dp", dp), ("tp", tp), ("pp", pp), ("micro", micro), ("zero", zero), ("interleave", chunks))
                                         if value != (0 if key == "zero" else 1)) or "dp=1"


def makespan(gantry, path, params, machine, devices, strategy, effort):
    """None: it cannot be, or does not fit."""
    try:
        graph = gantry.load(path, params, devices=devices, train=True, strategy=strategy)
        return graph.schedule(machine, effort=effort).makespan
    except gantry.Error:
        return None


def chosen_by_auto(command, model, machine, params, effort, environment):
    words = [word for name, value in params.items() for word in ("--param", f"{name}={value}")]
    begin = time.monotonic()
    done = subprocess.run([command, "train", str(ROOT / "graphs" / "models" / f"{model}.json"), "--machine", machine, "--backend", "sim", "--steps", "1", "--strategy", "auto", "--effort", str(effort), *words],
                          capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{model} on {machine}: {done.stderr.strip()}")
    row = next(line for line in done.stdout.splitlines() if "=" in line.split()[0])
    return row.split()[0], time.monotonic() - begin


def count(options, gantry, machine, model, params, end):
    """A row of the table, and how much longer auto's choice takes than the best."""
    m = gantry.Machine.load(ROOT / f"graphs/machines/{machine}.json")
    devices = sum(1 for d in json.loads((ROOT / f"graphs/machines/{machine}.json").read_text())["devices"] if d.get("use") != "host")
    path = ROOT / f"graphs/models/{model}.json"
    auto, took = chosen_by_auto(options.build / "bin/gantry", model, machine, params, options.effort, dict(os.environ))
    own = makespan(gantry, path, params, m, devices, auto, options.effort)
    best, tried, left = (own, auto), 0, 0
    selected, every = {devices: m}, list(exhaustive(devices))
    random.Random(1).shuffle(every) # so that those that there is time for are any of them
    for used, strategy in every:
        if time.monotonic() > end:
            left += 1
            continue
        if used not in selected:
            selected[used] = m.select(used)
        us = makespan(gantry, path, params, selected[used], devices, strategy, options.effort)
        tried += us is not None
        best = (us, strategy) if us is not None and us < best[0] else best
    sizes = " ".join(f"{k}={v}" for k, v in params.items())
    late = f", {left} without time" if left else ""
    print(f"| {machine} | {model} {sizes} | {auto} | {own:.0f} | {best[1]} | {best[0]:.0f} | {own / best[0]:.3f} | {tried}{late} | {took:.1f} |", flush=True)
    return own / best[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--machines", default=",".join(MACHINES))
    parser.add_argument("--models", default="gpt,mlp")
    parser.add_argument("--effort", type=int, default=0)
    parser.add_argument("--only", type=int, help="of the sizes of each model this one alone, from 0")
    parser.add_argument("--seconds", type=float, default=600, help="for each row")
    options = parser.parse_args()
    options.build = options.build.resolve()
    os.environ.setdefault("GANTRY_LIBRARY", str(options.build / "lib" / "libgantry.so"))
    sys.path.insert(0, str(ROOT / "tools" / "python"))
    import gantry
    print("| machine | model | auto takes | us | the best of all | us | auto over best | strategies that can be | auto, s |\n|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for machine, model in itertools.product(options.machines.split(","), options.models.split(",")):
        for at, params in enumerate(MODELS[model]):
            if options.only in (None, at):
                ratios.append(count(options, gantry, machine, model, params, time.monotonic() + options.seconds))
    print(f"\nauto over best: at most {max(ratios):.3f}, of {len(ratios)}")
    return 1 if max(ratios) > 1.05 else 0


if __name__ == "__main__":
    sys.exit(main())
