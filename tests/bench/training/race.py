#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of graphs/models by `gantry train`, by PyTorch and by hand, in turn, on the GPUs of this computer: one table.

    tests/bench/training/race.py [BUILD] [--seconds 240] [--limit 100] [--gpus 1,2] [--models mlp,gpt] [--cases small,large] [--modes eager,compile,graph]
                                 [--ways ddp,fsdp] [--hand FOLDER] [--machine FILE] [--json FILE]

BUILD, build/release by default, has bin/gantry and lib, and tests/bench/hand unless --hand says where programs are (or they are left out). PyTorch's side
is steps.py, for the interpreter that runs this. Both begin with the same numbers: the losses of the steps 1, 10 and 50 are printed side by side.
On several GPUs ways are ddp, fsdp (`zero=3`), and of Gantry alone tp and pp (eight micro-batches).
Times are medians of steps, us. A step of Gantry ends when the host has seen it end, one of PyTorch is counted from event to event and not waited for.
Every program is ended after --limit seconds; what there was no time for is told. Exit code 0: all that was tried was measured; 1: something failed.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parent / "hand"))
from compare import environment, values_of  # noqa: E402

# Steps that count, and params.
CASES = {"mlp": {"small": (200, {}), "large": (50, {"batch": 4096, "inputs": 4096, "hidden": 4096, "classes": 1024, "lr": 0.001})},
         "gpt": {"small": (200, {}), "large": (50, {"batch": 16, "layers": 8, "tokens": 512, "heads": 16, "dim": 64, "words": 4096, "lr": 0.0003})}}
WAYS = {"ddp": "dp={0}", "fsdp": "dp={0},zero=3", "tp": "tp={0}", "pp": "pp={0},micro=8"}  # and what is the same for Gantry
OF_PYTORCH = ("ddp", "fsdp")
WARM_UP = 10
STEPS = HERE / "steps.py"
# Sizes that programs by hand take, as the files of the models have them, and which of their ways are by hand.
SIZES = {"mlp": {"batch": 256, "inputs": 64, "hidden": 128, "classes": 10},
         "gpt": {"batch": 2, "layers": 2, "tokens": 32, "heads": 4, "dim": 16, "words": 64, "lr": 0.003}}
BY_HAND = {"mlp": {"one": ["--adamw", 1], "ddp": ["--adamw", 1], "fsdp": ["--adamw", 1, "--way", "zero3"], "tp": ["--adamw", 1, "--way", "tp"]},
           "gpt": {"one": [], "ddp": []}}


def ways(gpus, asked):
    """Ways of PyTorch, or of Gantry alone, and the strategy of each."""
    return {way: WAYS[way].format(gpus) for way in asked.split(",")} if gpus > 1 else {"one": "dp=1"}


class Comparison:
    def __init__(self, options):
        self.options, self.end = options, time.monotonic() + options.seconds
        self.rows, self.failed, self.left_out = {}, [], []
        self.python = {**os.environ, "NCCL_NVLS_ENABLE": "0", "TORCHINDUCTOR_FX_GRAPH_CACHE": "1"}
        self.ours = {**environment(options.build), "NCCL_NVLS_ENABLE": "0"}

    def ways(self, gpus):
        return ways(gpus, self.options.ways)

    def run(self, what, words, environment):
        """Standard output and standard error, whatever became of it; None where there was no time. Its children end with it."""
        limit = min(self.options.limit, self.end - time.monotonic())
        if limit < 5:
            self.left_out.append(what)
            return None
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            program = subprocess.Popen([str(word) for word in words], stdout=out, stderr=err, env=environment, start_new_session=True)
            try:
                code, why = program.wait(limit), None
            except subprocess.TimeoutExpired:
                code, why = 1, f"not done within {limit:.0f} s"
            finally:
                try:
                    os.killpg(program.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                program.wait()
            out.seek(0), err.seek(0)
            out, err = out.read(), err.read()
        if code:
            self.fail(f"{what}: {why or (err.strip().splitlines() or ['no word'])[-1][:300]}")
        return out, err

    def fail(self, what):
        self.failed.append(what)
        print(what, flush=True)

    def row(self, model, case, gpus, way):
        key = (model, case, gpus, way)
        return self.rows.setdefault(key, {"model": model, "case": case, "gpus": gpus, "way": way, "strategy": self.ways(gpus)[way], "us": {}, "losses": {}})

    def keep(self, row, by, us, losses=None):
        row["us"][by] = us
        if losses:
            row["losses"][by] = losses
        print(f"{row['model']} {row['case']}, {row['gpus']} GPUs, {row['way']}, {by}: {us:.1f} us", flush=True)
        if self.options.json:
            self.save()

    def torch(self, model, gpus, cases):
        what, of = f"{model} by PyTorch on {gpus} GPUs", [way for way in self.ways(gpus) if gpus == 1 or way in OF_PYTORCH]
        if not of:
            return
        words = [sys.executable, STEPS, ROOT, model, "--gpus", gpus, "--modes", self.options.modes, "--ways", ",".join(of)]
        for case in cases:
            steps, params = CASES[model][case]
            words += ["--case", ":".join([case, str(steps), *(f"{key}={value}" for key, value in params.items())])]
        for line in (self.run(what, words, self.python) or [""])[0].splitlines():
            if not line.startswith("{"):
                continue
            found = json.loads(line)
            row = self.row(model, found["case"], gpus, found["way"])
            if "why" in found:
                self.fail(f"{what}, {found['case']}, {found['way']}, {found['mode']}: {found['why']}")
            else:
                self.keep(row, found["mode"], found["us"], found["losses"])

    def gantry(self, model, gpus, case, way):
        steps, params = CASES[model][case]
        words = [self.options.build / "bin" / "gantry", "train", ROOT / "graphs" / "models" / f"{model}.json", "--backend", "cuda", "--devices", gpus,
                 "--steps", WARM_UP + steps, "--every", 10, "--strategy", self.ways(gpus)[way], "--json"]
        words += [word for key, value in params.items() for word in ("--param", f"{key}={value}")]
        words += ["--machine", self.options.machine] if self.options.machine else []
        done = self.run(f"{model} {case} by Gantry on {gpus} GPUs, {self.ways(gpus)[way]}", words, self.ours)
        if done and done[0].strip():
            losses = {step: float(loss) for step, loss in re.findall(r"step (\d+)  loss (\S+)", done[1])}
            self.keep(self.row(model, case, gpus, way), "gantry", json.loads(done[0])["measured_us"], losses)

    def hand(self, model, gpus, case, way):
        program = (self.options.hand or self.options.build / "tests" / "bench" / "hand") / model
        if way not in BY_HAND[model] or not program.exists():
            return
        steps, params = CASES[model][case]
        words = [program, "--gpus", gpus, "--starts", steps, *BY_HAND[model][way]]
        words += [word for key, value in {**SIZES[model], **params}.items() if key in SIZES[model] for word in (f"--{key}", value)]
        done = self.run(f"{model} {case} by hand on {gpus} GPUs, {way}", words, self.ours)
        if done and done[0].strip():
            found = {key: value for line in values_of(done[0]) for key, value in line.items()}
            losses = {str(i + 1): loss for i, loss in enumerate(found.get("losses", []))}
            self.keep(self.row(model, case, gpus, way), "hand", found["ms"] * 1e3, losses)

    def all(self, counts, models, cases):
        for model in models:
            for gpus in counts:
                self.torch(model, gpus, cases)
                for case in cases:
                    for way in self.ways(gpus):
                        self.gantry(model, gpus, case, way)
                        self.hand(model, gpus, case, way)

    def table(self):
        by = ("gantry", "eager", "compile", "graph", "hand")
        names = ("Gantry us", "eager us", "compile us", "compile, CUDA graph us", "by hand us")
        yield "| model | GPUs | PyTorch, Gantry | " + " | ".join(names) + " | Gantry / eager | / compile | / CUDA graph | / by hand | losses at 1, 10, 50 |"
        yield "|---" * (len(by) * 2 + 3) + "|"
        for row in self.rows.values():
            us = row["us"]
            ratios = [f"{us['gantry'] / us[other]:.2f}" if "gantry" in us and other in us else "-" for other in by[1:]]
            losses = "; ".join(f"{other} " + " ".join(f"{found[n]:.4f}" for n in ("1", "10", "50") if n in found) for other, found in row["losses"].items())
            cells = [f"{row['model']} {row['case']}", row["gpus"], f"{row['way']}, {row['strategy']}", *(f"{us[b]:.1f}" if b in us else "-" for b in by), *ratios,
                     losses]
            yield "| " + " | ".join(str(cell) for cell in cells) + " |"

    def save(self):
        self.options.json.write_text(json.dumps({"rows": list(self.rows.values()), "failed": self.failed, "left_out": self.left_out}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--seconds", type=float, default=240, help="for all of it")
    parser.add_argument("--limit", type=float, default=100, help="seconds for one program")
    parser.add_argument("--gpus", default="1,2")
    parser.add_argument("--models", default="mlp,gpt")
    parser.add_argument("--cases", default="small,large")
    parser.add_argument("--modes", default="eager,compile,graph")
    parser.add_argument("--ways", default="ddp,fsdp", help="on several GPUs: ddp,fsdp,tp,pp")
    parser.add_argument("--hand", type=pathlib.Path)
    parser.add_argument("--machine", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.build = options.build.resolve()
    comparison = Comparison(options)
    comparison.all([int(count) for count in options.gpus.split(",")], options.models.split(","), options.cases.split(","))
    print("", *comparison.table(), "", f"Failed: {'; '.join(comparison.failed) or 'nothing'}.",
          f"No time for: {'; '.join(comparison.left_out) or 'nothing'}.", sep="\n", flush=True)
    if options.json:
        comparison.save()
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())
