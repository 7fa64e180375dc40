#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs that each step of a training reads another batch from files: beside the same training on data that lie on the devices, in
turn.

    tests/bench/feed.py [BUILD] [--backend host|cuda] [--devices 1] [--rounds 5] [--many 400] [--param NAME=VALUE]... [--machine FILE]
                        [--cases "resident;fed"]

A step takes what lies between the ends of two starts, as the process of MANY steps says: the median where starts follow each other
(apart_us), the mean where they overlap (throughput_us). Reading, decoding, uploads and printed lines are in it; opening and the first starts
are not. Ratios are those of a round, since its processes follow each other; their median counts, and the quartiles are told.
"resident": constants of the model. "one file": the same from one array. "fed": batches/*.npy, 16 of them, one a step; "watch": with --watch
loss as well, into a pipe; "period": starts that overlap (--objective period), over "resident, period" and over "resident". Seconds of CPUs are
those of the whole process. Exit 0. NumPy and Python 3.8.
"""
import argparse
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench" / "hand"))
import compare  # noqa: E402

FILES = 16
SIZES = {"host": {"batch": 512, "inputs": 784, "hidden": 1024, "classes": 16}, "cuda": {"batch": 8192, "inputs": 1024, "hidden": 4096, "classes": 1024}}


def batches(folder, sizes):
    import numpy as np
    draw = np.random.default_rng(1)
    for i in range(FILES):
        np.save(f"{folder}/x{i:02}.npy", draw.standard_normal((sizes["batch"], sizes["inputs"]), dtype=np.float32))
        np.save(f"{folder}/labels{i:02}.npy", draw.integers(0, sizes["classes"], sizes["batch"]).astype("i4"))


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Bench:
    def __init__(self, options, folder):
        self.options, build = options, options.build.resolve()
        self.sizes = {**SIZES[options.backend], **dict((word.split("=")[0], int(word.split("=")[1])) for word in options.param)}
        self.words = [build / "bin" / "gantry", "train", ROOT / "graphs" / "models" / "mlp.json", "--backend", options.backend, "--devices", options.devices, "--json",
                      *(word for name, value in self.sizes.items() for word in ("--param", f"{name}={value}"))]
        self.words += ["--machine", options.machine] if options.machine else []
        self.environment = compare.environment(build)
        batches(folder, self.sizes)
        one = ["--input", f"x={folder}/x00.npy", "--input", f"labels={folder}/labels00.npy"]
        many = ["--input", f"x={folder}/x*.npy", "--input", f"labels={folder}/labels*.npy"]
        period = ["--objective", "period"]
        self.cases = {"resident": [], "one file": one, "fed": many, "fed, watch": [*many, "--watch", "loss"], "resident, period": period,
                      "fed, period": [*many, *period], "fed, watch, period": [*many, "--watch", "loss", *period]}
        self.cases = {case: words for case, words in self.cases.items() if case in options.cases.split(";") or not options.cases}

    def step(self, case):
        used, many = cpu_seconds(), self.options.many
        done = subprocess.run([str(word) for word in [*self.words, "--steps", many, *self.cases[case]]], capture_output=True, text=True, env=self.environment)
        if done.returncode:
            sys.exit(f"{case}: exit {done.returncode}: {done.stderr.strip()[-400:]}")
        report = compare.values_of(done.stdout)[-1]
        return report.get("throughput_us") or report["apart_us"], 1e6 * (cpu_seconds() - used) / many, report

    def all(self):
        rows = {case: [] for case in self.cases}
        for _ in range(self.options.rounds):
            for case in self.cases:
                rows[case].append(self.step(case))
        return rows


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--backend", choices=sorted(SIZES), default="host")
    parser.add_argument("--devices", default="1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--many", type=int, default=400)
    parser.add_argument("--param", action="append", default=[])
    parser.add_argument("--machine")
    parser.add_argument("--cases", default="", help='some of them, such as "resident;fed"; with a period case goes "resident, period"')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        rows = bench.all()
    print(f"mlp {' '.join(f'{k}={v}' for k, v in bench.sizes.items())}, {options.backend}, {options.devices} devices, {options.rounds} rounds of {options.many} steps\n")
    print("| data | us a step | over resident | over resident, alike | median start, us | waited for files, us a step | of CPUs, us a step |\n|---|---|---|---|---|---|---|")
    for case, seen in rows.items():
        over = [quartiles([us / other for (us, *_), (other, *_) in zip(seen, rows[base])])
                for base in ("resident", "resident, period" if case.endswith("period") else "resident")]
        waits = statistics.median(report.get("fed_wait_us", 0) for *_, report in seen) / options.many
        cpus = statistics.median(cpu for _, cpu, _ in seen)
        print(f"| {case} | {statistics.median(us for us, *_ in seen):.1f} | {over[0]} | {over[1]} | {statistics.median(report['measured_us'] for *_, report in seen):.1f} | {waits:.1f} | {cpus:.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
