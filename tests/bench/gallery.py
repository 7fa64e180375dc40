#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scaling of the gallery: every graph and model, at sizes for GPUs, on 1, 2 and 4 of them, as a table.

    tests/bench/gallery.py [BUILD] [--predict MACHINE] [--devices 1,2,4] [--seconds 230] [--iterations 8] [--machine FILE] [--works a,b]

Without --predict each is run by the back end cuda on the GPUs there are (median of starts); with it, it is predicted for a machine file, and
no GPU is needed. Models are trained, with --strategy dp=N, with constants as data. Rows come in the order of the list until the seconds are
over; what is left out is told. Exit 0: all that was tried has its row; 1: something failed; 77: no GPU. Python 3.8 is enough.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench" / "hand"))
import compare  # noqa: E402

# Graphs, their sizes, and what parts of theirs follow the number of GPUs.
WORKS = [
    ("mlp", {"batch": 16384, "inputs": 4096, "hidden": 4096, "classes": 1024}, "dp"),
    ("cnn", {"batch": 1024}, "dp"),
    ("gpt", {"batch": 32, "tokens": 512, "layers": 4, "heads": 16, "dim": 64, "words": 8192}, "dp"),
    ("pipeline", {"width": 4096, "rows": 2048}, "train"),
    ("mlp_step", {"batch": 16384, "inputs": 4096, "hidden": 4096, "classes": 1024}, "parts"),
    ("sharded_step", {"batch": 16384, "inputs": 8192, "outputs": 4096}, None),
    ("transformer_block_train", {"heads": 16, "tokens": 1024, "dim": 64}, None),
    ("cnn_block_train", {"images": 256, "channels": 32, "inner": 64, "height": 64, "width": 64}, None),
    ("map_reduce", {"n": 10**7}, None), ("map_reduce", {"n": 10**8}, None), ("map_reduce", {"n": 10**9}, None),
    ("saxpy", {"n": 10**8}, "parts"), ("reduce_sum", {"n": 10**8}, "parts"), ("stages", {"n": 10**8}, "parts"),
    ("pipeline3", {}, None), ("train_pipeline", {}, None), ("image_blur", {}, None),
    ("monte_carlo", {"paths": 10**7}, None), ("ensemble", {"members": 10**7}, None), ("consensus", {"n": 4096}, None),
    ("black_scholes", {"n": 10**8}, None), ("kmeans", {"n": 10**7}, None), ("nbody", {"n": 16384}, None), ("pagerank", {"n": 8192}, None),
    ("cholesky", {"n": 16384, "nt": 16}, None), ("lu", {"n": 16384, "nt": 16}, None), ("tsqr", {"rows": 2097152, "n": 64}, None),
    ("jacobi", {"n": 8192}, "parts"), ("jacobi_blocks", {"n": 4096, "a": 2, "b": 2}, None), ("jacobi_until", {"n": 2048, "steps": 1000}, "parts"),
    ("heat_3d", {"n": 384}, None), ("heat_implicit", {"n": 4096}, "parts"), ("cg", {"n": 2048, "most": 200}, "parts"),
    ("multigrid_cg", {"n": 2048}, "parts"), ("fft2d", {"n": 8192}, "parts"), ("fft3d", {"n0": 512, "n1": 512, "n2": 512}, "p"), ("sort", {"n": 1 << 26}, None),
]


class Table:
    def __init__(self, options):
        self.options, self.build = options, options.build.resolve()
        self.environment = compare.environment(self.build)
        self.end = time.monotonic() + options.seconds
        self.failed = []

    def run(self, words):
        limit = max(5, self.end - time.monotonic() + 5)
        try:
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=self.environment, timeout=limit)
        except subprocess.TimeoutExpired:
            return None, "no time"
        if done.returncode == 77:
            sys.exit(77)
        return (compare.values_of(done.stdout)[-1], None) if done.returncode == 0 else (None, (done.stderr.strip() or done.stdout.strip()).splitlines()[-1][:160])

    def cell(self, name, params, kind, devices):
        """ms of a start, predicted and measured; or why there are none."""
        of_model = ROOT / "graphs" / "models" / f"{name}.json"
        path = of_model if of_model.exists() else ROOT / "graphs" / f"{name}.json"
        params = dict(params, **({kind: devices} if kind in ("parts", "p") else {}))
        sizes = [word for key, value in params.items() for word in ("--param", f"{key}={value}")]
        is_trained, predicts = kind in ("dp", "train"), self.options.predict
        words = [self.build / "bin" / "gantry", "train" if is_trained else "schedule" if predicts else "run", path, "--devices", devices, "--json", *sizes]
        words += ["--strategy", f"dp={devices}"] if kind == "dp" else []
        if predicts:
            words += ["--machine", predicts, "--effort", "1", *(["--steps", "0"] if is_trained else [])]
        else:
            words += ["--backend", "cuda", "--steps" if is_trained else "--iterations", self.options.iterations]
            words += ["--machine", self.options.machine] if self.options.machine else []
        found, why = self.run(words)
        if not found:
            return None, why
        return (found["makespan_us"] / 1e3, None) if predicts else (found["predicted_us"] / 1e3, found["measured_us"] / 1e3), None

    def row(self, name, params, kind):
        sizes = " ".join(f"{key}={value}" for key, value in params.items())
        cells, first, scaling = [], None, []
        for devices in self.options.counts:
            found, why = self.cell(name, params, kind, devices)
            if not found:
                self.failed.append(f"{name} {sizes}, {devices} GPUs: {why}")
                cells.append("-")
                continue
            predicted, measured = found
            ms = predicted if measured is None else measured
            first = first or (ms, devices)
            cells.append(f"{predicted:.3g}" if measured is None else f"{predicted:.3g}, {measured:.3g}")
            if devices > first[1]:
                scaling.append(f"{first[0] * first[1] / ms / devices:.2f}")
        print(f"| {name} {sizes} | {' | '.join(cells)} | {', '.join(scaling)} |", flush=True)

    def all(self):
        what = f"predicted for `{self.options.predict}`, ms" if self.options.predict else "predicted, measured, ms"
        print(f"{what}; scaling: speed-up over the number of GPUs\n")
        print(f"| graph | {' | '.join(f'{n} GPU{chr(115) * (n > 1)}' for n in self.options.counts)} | scaling |")
        print("|---" * (len(self.options.counts) + 2) + "|")
        wanted = [work for work in self.options.works.split(",") if work]
        works = [work for work in WORKS if not wanted or work[0] in wanted]
        for at, work in enumerate(works):
            if time.monotonic() > self.end:
                print(f"\nno time for {', '.join(name for name, *_ in works[at:])}")
                break
            self.row(*work)
        for what in self.failed:
            print(f"\n- {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--predict")
    parser.add_argument("--devices", default="1,2,4")
    parser.add_argument("--seconds", type=float, default=230)
    parser.add_argument("--iterations", type=int, default=8)
    parser.add_argument("--machine")
    parser.add_argument("--works", default="")
    options = parser.parse_args()
    options.counts = [int(count) for count in options.devices.split(",")]
    table = Table(options)
    table.all()
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
