#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same work by graphs and by hand, in turn, on the GPUs of this computer: tables of ratios and of predictions.

    tests/bench/hand/compare.py [BUILD] [--machine FILE] [--seconds 240] [--gpus 1,2] [--works lu,train] [--report FILE]
                                [--learn] [--graphs-only] [--replays graph:one,graph:gpu,device]

BUILD is build/release by default. --machine is a file of `gantry machine calibrate` on this computer; without it one is made.
The report is Markdown, BUILD/hand.md by default, with the figures as JSON beside it. Cases are tried until the seconds are
over, first one of each work; what was left out is told. gantry runs each graph several times, and the median counts; a program
by hand counts by its best variant, and a work by its best program. With --replays each graph is measured so, one after the other, and
its programs are beside each: graph:one is one graph over all GPUs, graph:gpu one for each.
Exit code 0: all that was tried was measured; 1: something failed; 77: no GPU, or no program. Python 3.8 is enough.
"""
import argparse
import itertools
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MODELS = ROOT / "graphs" / "models"
LOSSES = 10  # steps whose losses programs tell


class Case:
    """A graph with sizes and, for each program by hand, the options that mean the same. With a strategy it is a model, and `gantry train` takes
    its steps; a program that tells losses begins with the same numbers, and they have to be alike."""

    def __init__(self, work, graph, params, programs, dtype, of, replay="auto", strategy=None):
        self.work, self.graph, self.params, self.programs = work, graph, params, programs
        self.dtype, self.of = dtype, of  # of: what the graph's file says
        self.replay, self.strategy = replay, strategy

    def name(self):
        sizes = " ".join(f"{k}={v}" for k, v in self.params.items() if k not in ("parts", "scale"))
        return f"{self.work} {sizes} {self.dtype}" + (f" {self.strategy}" if self.strategy else "")


def cases(gpus):
    """In the order in which they are tried: first what every work looks like, then other sizes and dtypes."""
    def cholesky(n, nt, dtype="f64"):
        return Case("cholesky", "cholesky", {"n": n, "nt": nt},
                    [["cholesky_tiles", "--n", n, "--nt", nt, "--starts", 3], ["cholesky_columns", "--n", n, "--starts", 3]], dtype, "f64")

    def lu(n, nt, dtype="f64"):
        return Case("lu", "lu", {"n": n, "nt": nt}, [["lu", "--n", n, "--nt", nt, "--starts", 3]], dtype, "f64")

    def jacobi(n, steps, dtype="f64"):
        return Case("jacobi", "jacobi", {"n": n, "steps": steps, "parts": gpus}, [["jacobi", "--n", n, "--steps", steps]], dtype, "f64")

    def reduce(n, parts, dtype="f32"):
        return Case("reduce", "reduce", {"n": n, "parts": parts}, [["reduce", "--n", n]], dtype, "f32")

    def saxpy(n):
        return Case("saxpy", "saxpy", {"n": n, "parts": gpus}, [["saxpy", "--n", n]], "f32", "f32")

    def fused(n):
        """The same by formulas, which become one node a part: beside one kernel, which reads y once."""
        return Case("fused", "saxpy_formulas", {"n": n, "parts": gpus}, [["saxpy", "--n", n, "--fused", 1]], "f32", "f32")

    def batch(m, count, dtype="f32"):
        return Case("batch", "batch", {"m": m, "count": count}, [["batch", "--m", m, "--count", count]], dtype, "f32")

    def attention(heads, length, d, dtype="f32"):
        sizes = {"heads": heads, "length": length, "d": d}
        words = [str(word) for key, value in sizes.items() for word in ("--" + key, value)]
        return Case("attention", "attention", {**sizes, "scale": d ** -0.5}, [["attention", *words]], dtype, "f32")

    def mlp(batch, inputs, hidden, classes, host=False):
        sizes = {"batch": batch, "inputs": inputs, "hidden": hidden, "classes": classes}
        words = [str(word) for key, value in sizes.items() for word in ("--" + key, value)]
        graph = ROOT / "graphs" / "mlp_step" if host else "mlp"
        return Case("mlp from host" if host else "mlp", graph, {**sizes, "parts": gpus}, [["mlp", *words, "--host", int(host)]], "f32", "f32")

    def pipe(batch, d, dtype="bf16"):
        return Case("pipe", "pipe", {"batch": batch, "d": d}, [["pipe", "--batch", batch, "--d", d]], dtype, "bf16")

    def stencil(each):
        words = ["stencil", "--lists", each * gpus, "--steps", 100]
        return Case("stencil", "stencil", {"lists": each * gpus, "steps": 100}, [words, [*words, "--graphs", 1]], "f32", "f32", "device")

    def gpt(batch, layers, tokens, heads, dim, words, lr):
        sizes = {"batch": batch, "layers": layers, "tokens": tokens, "heads": heads, "dim": dim, "words": words, "lr": lr}
        options = [word for key, value in sizes.items() for word in ("--" + key, value)]
        return Case("train gpt", MODELS / "gpt", sizes, [["gpt", *options, "--steps", LOSSES]], "f32", "f32", strategy=f"dp={gpus}")

    def train_mlp(batch, inputs, hidden, classes, micro):
        """Data parallel, on several GPUs tensor parallel and in shards, too, and on two as a pipeline: by hand each layer is a stage."""
        sizes = {"batch": batch, "inputs": inputs, "hidden": hidden, "classes": classes}
        options = [word for key, value in sizes.items() for word in ("--" + key, value)]
        ways = {"dp": f"dp={gpus}"}
        if gpus > 1:
            ways.update(tp=f"tp={gpus}", zero3=f"dp={gpus},zero=3")
        if gpus == 2:
            ways["pp"] = f"pp=2,micro={micro}"
        options += ["--adamw", 1, "--micro", micro]
        return [Case("train mlp", MODELS / "mlp", sizes, [["mlp", *options, "--way", way]], "f32", "f32", strategy=strategy)
                for way, strategy in ways.items()]

    def blur(frames):
        return Case("blur", ROOT / "graphs" / "image_blur", {"n": frames}, [["blur", "--frames", frames]], "u8", "u8")

    first = [cholesky(16384, 16), lu(8192, 8), jacobi(4096, 100), reduce(1 << 28, 2), batch(128, 512), attention(32, 1024, 128),
             mlp(16384, 4096, 4096, 1024), mlp(512, 784, 256, 10, True), pipe(4096, 4096), saxpy(10**9), fused(10**9), blur(100),
             gpt(2, 2, 32, 4, 16, 64, 0.003), gpt(16, 8, 512, 16, 64, 4096, 0.0003), *train_mlp(4096, 4096, 4096, 1024, 4)]
    others = [cholesky(16384, 8), lu(16384, 16), jacobi(1024, 200), reduce(1 << 24, 2), batch(64, 256), attention(16, 2048, 64, "bf16"),
              mlp(2048, 1024, 1024, 1024), pipe(1024, 2048), saxpy(10**7), cholesky(8192, 8), lu(8192, 8, "f32"),
              jacobi(8192, 50, "f32"), reduce(1 << 28, 8, "f64"), batch(256, 256), batch(128, 256, "f64"), attention(64, 512, 64),
              cholesky(8192, 16, "f32"), pipe(2048, 4096, "f32"), batch(256, 128, "bf16"), attention(8, 4096, 128, "bf16"), blur(20),
              stencil(1), stencil(16), stencil(128), gpt(8, 6, 256, 8, 64, 2048, 0.001), *train_mlp(256, 64, 128, 10, 2)]
    return first + others


def environment(build):
    """Libraries of this tree, and NVIDIA's from the wheels of Python where there are some (docs/gpus.md)."""
    found = dict(os.environ)
    folders = [str(build / "lib")]
    where = subprocess.run(["python3", "-c", "import nvidia; print(list(nvidia.__path__)[0])"], capture_output=True, text=True)
    if where.returncode == 0:
        wheels = [str(path) for path in sorted(pathlib.Path(where.stdout.strip()).glob("*/lib"))]
        found.setdefault("GANTRY_CUDA_LIBRARIES", ":".join(wheels))
        folders += wheels
    folders += filter(None, [found.get("GANTRY_CUDA_LIBRARIES"), found.get("LD_LIBRARY_PATH")])
    found["GANTRY_MACHINE_CACHE"] = "off"  # machine files are given
    found["LD_LIBRARY_PATH"] = ":".join(folders)
    found.setdefault("GANTRY_MODULES", str(build / "lib"))
    found["CPATH"] = ":".join(filter(None, [str(ROOT / "include"), found.get("CPATH")]))  # gantry/kernel.h
    return found


def values_of(text):
    """JSON values one behind the other, each on a line or on several."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def graph_file(case, folder):
    """The graph in the dtype of the case, beside its code. Types and entries of the code are named after the dtype."""
    source = pathlib.Path(case.graph)
    source = source if source.is_absolute() else HERE / source
    text = source.with_suffix(".json").read_text()
    if case.dtype != case.of:
        text = text.replace(f'"{case.of}"', f'"{case.dtype}"').replace(f'_{case.of}"', f'_{case.dtype}"')
    path = folder / f"{source.name}.{case.dtype}.json"
    path.write_text(text)
    for code in (*HERE.glob("*_kernels.cu"), *HERE.glob("*_kernels.c")):
        shutil.copy(code, folder)
    return path


def losses_of(text):
    """By the number of the step, as `gantry train` tells them."""
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+)  loss (\S+)", text)}


def unlike(by_step, by_hand):
    """Steps whose losses are not the same to five digits; `by_hand` has those of steps from the first on."""
    for step, loss in by_step.items():
        if step <= len(by_hand) and not abs(by_hand[step - 1] - loss) <= 1e-5 * abs(loss):
            yield f"step {step} has {loss}, by hand {by_hand[step - 1]}"


class Comparison:
    def __init__(self, options):
        self.build = options.build.resolve()
        self.programs = self.build / "tests" / "bench" / "hand"
        self.gantry = self.build / "bin" / "gantry"
        self.environment = environment(self.build)
        self.report = (options.report or self.build / "hand.md").resolve()
        self.machine, self.learn, self.graphs_only = options.machine, options.learn, options.graphs_only
        if self.learn:  # a cache that begins empty
            self.cache = tempfile.TemporaryDirectory()
            self.environment["XDG_CACHE_HOME"] = self.cache.name
            del self.environment["GANTRY_MACHINE_CACHE"]
        self.limit, self.iterations = options.limit, options.iterations
        self.replays = [replay for replay in options.replays.split(",") if replay]
        self.end = time.monotonic() + options.seconds
        self.rows, self.failed, self.left_out = [], [], []

    def left(self):
        return self.end - time.monotonic()

    def run(self, words, limit=None):
        """Standard output; None, and why, where it failed."""
        done, why = self.process(words, limit)
        return (None, why) if why else (done.stdout, None)

    def process(self, words, limit=None):
        """What became of it, and why it failed."""
        words, limit = [str(word) for word in words], min(limit or self.limit, max(5, self.left() + 10))
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=limit, env=self.environment)
        except subprocess.TimeoutExpired:
            return None, f"not done within {limit:.0f} s"
        except OSError as error:
            return None, str(error)
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            return None, f"exit {done.returncode}: {said[-1] if said else 'no word'}"
        return done, None

    def words_of(self, case, gpus, folder):
        """The command of a case; of a model, with each tenth loss."""
        replay, _, graphs = case.replay.partition(":")
        words = ["env", f"GANTRY_CUDA_GRAPHS={graphs}"] if graphs else []
        if case.strategy:
            words += [self.gantry, "train", case.graph.with_suffix(".json"), "--strategy", case.strategy, "--steps", max(self.iterations, LOSSES), "--every", LOSSES]
        else:
            words += [self.gantry, "run", graph_file(case, folder), "--iterations", self.iterations, "--allow-code"]
        words += ["--backend", "cuda", "--devices", gpus, "--json", "--replay", replay]
        words += [word for key, value in case.params.items() for word in ("--param", f"{key}={value}")]
        return words + (["--machine", self.machine] if self.machine and not self.learn else [])

    def by_graph(self, case, gpus, folder):
        words = self.words_of(case, gpus, folder)
        done, why = self.process(words)
        first = json.loads(done.stdout) if done else None
        if first and self.learn:
            done, why = self.process(words)
        return ({**json.loads(done.stdout), "first": first, "losses": losses_of(done.stderr)}, None) if done else (None, why)

    def by_hand(self, case, gpus):
        """The best of its programs, milliseconds of all of their variants, and what was wrong with others."""
        best, variants, wrong = None, {}, []
        for program in case.programs:
            words = [self.programs / program[0], *program[1:], "--gpus", gpus, "--seconds", int(self.limit)]
            words += ["--dtype", case.dtype]
            out, why = self.run(words)
            if why:
                wrong.append(f"{program[0]}: {why}")
                continue
            found = {key: value for line in values_of(out) for key, value in line.items()}
            variants.update(found.get("variants", {}))
            if best is None or found["ms"] < best["ms"]:
                best = found
        return best, variants, wrong

    def compare(self, case, gpus):
        with tempfile.TemporaryDirectory() as folder:
            graph, why = self.by_graph(case, gpus, pathlib.Path(folder))
        hand, variants, wrong = self.by_hand(case, gpus) if not self.graphs_only else (None, {}, [])
        row = {"case": case.name(), "work": case.work, "params": case.params, "dtype": case.dtype, "gpus": gpus, "hand": hand,
               "asked": case.replay, "variants": variants, "failed": ([f"graph: {why}"] if why else []) + wrong}
        if graph:
            row.update(gantry_ms=graph["measured_us"] / 1e3, predicted_ms=graph["predicted_us"] / 1e3, replay=graph.get("replay"),
                       policy=graph.get("policy"), first_ms=graph["first"]["measured_us"] / 1e3,
                       first_predicted_ms=graph["first"]["predicted_us"] / 1e3)
        if graph and hand:
            row["ratio"] = row["gantry_ms"] / hand["ms"]
            row["failed"] += [f"losses: {why}" for why in unlike(graph["losses"], hand.get("losses", []))]
        self.failed += [f"{case.name()}, {gpus} GPUs: {what}" for what in row["failed"]]
        self.rows.append(row)
        self.save()
        print(f"{case.name()}, {gpus} GPUs: " + (f"ratio {row['ratio']:.3f}" if "ratio" in row else "; ".join(row["failed"])), flush=True)

    def calibrate(self):
        path = self.report.with_suffix(".machine.json")
        out, why = self.run([self.gantry, "machine", "calibrate"] + ([] if self.learn else ["-o", path]), 120)
        if why:
            self.failed.append(f"calibration: {why}")
        self.machine = None if why or self.learn else path

    def all(self, counts, works):
        by_case = itertools.zip_longest(*[[(case, gpus) for case in cases(gpus)] for gpus in counts])  # one GPU has fewer
        for case, gpus in filter(None, itertools.chain(*by_case)):
            if works and case.work.split()[0] not in works:
                continue
            for replay in self.replays or [case.replay]:
                case.replay = replay
                if self.left() < 5:
                    self.left_out.append(f"{case.name()}, {gpus} GPUs, {replay}")
                else:
                    self.compare(case, gpus)
        self.save()

    def has_gpu(self):
        out, _ = self.run([self.gantry, "machine", "--json"])
        return bool(out) and any(device["type"] == "gpu" for device in json.loads(out)["devices"])

    def lines(self):
        yield from ["# Graphs and the same work by hand", "",
                    f"{time.strftime('%Y-%m-%dT%H:%MZ', time.gmtime())}, {platform.platform()}, medians; by hand is the best of its variants.",
                    "", "| work | GPUs | Gantry ms | by hand ms | best by hand | ratio | replay |", "|---|---|---|---|---|---|---|"]
        for row in self.rows:
            hand = row["hand"]
            yield "| " + " | ".join([row["case"], str(row["gpus"]), f"{row['gantry_ms']:.4f}" if "gantry_ms" in row else "-",
                                     f"{hand['ms']:.4f}" if hand else "-", f"{hand['work']}, {hand['best']}" if hand else "-",
                                     f"{row['ratio']:.3f}" if "ratio" in row else "-", str(row.get("replay") or "-")]) + " |"
        ratios = [row["ratio"] for row in self.rows if "ratio" in row]
        if ratios:
            held = sum(ratio <= 1.1 for ratio in ratios)
            yield from ["", f"{len(ratios)} cases: median {statistics.median(ratios):.3f}, worst {max(ratios):.3f}, {held} at most 1.1."]
        yield from self.predictions()
        yield from ["", f"Failed: {'; '.join(self.failed) or 'nothing'}.", "", f"No time for: {'; '.join(self.left_out) or 'nothing'}."]

    def predictions(self):
        known = "a calibration, and what a first run of each graph told" if self.learn else self.machine or "none, nominal rates"
        yield from ["", "## Predictions", "", f"Machine: {known}.", "",
                    "| work | GPUs | predicted ms | measured ms | predicted / measured |" + (" first run |" if self.learn else ""),
                    "|---|---|---|---|---|" + ("---|" if self.learn else "")]
        off, first = [], []
        for row in self.rows:
            if row.get("gantry_ms"):
                ratio, before = row["predicted_ms"] / row["gantry_ms"], row["first_predicted_ms"] / row["first_ms"]
                off.append(abs(ratio - 1))
                first.append(abs(before - 1))
                yield (f"| {row['case']} | {row['gpus']} | {row['predicted_ms']:.4f} | {row['gantry_ms']:.4f} | {ratio:.3f} |"
                       + (f" {before:.3f} |" if self.learn else ""))
        for what, all_of_them in [("", off)] + ([("The first runs: ", first)] if self.learn else []):
            if all_of_them:
                held = sum(value <= 0.2 for value in all_of_them)
                yield from ["", f"{what}Off by {100 * statistics.median(all_of_them):.1f} % in the median, {100 * max(all_of_them):.1f} % at most, "
                                f"{held} of {len(all_of_them)} cases within 20 %."]

    def save(self):
        self.report.write_text("\n".join(self.lines()) + "\n")
        figures = {"machine": str(self.machine) if self.machine else None, "rows": self.rows, "failed": self.failed, "left_out": self.left_out}
        self.report.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--machine", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=240, help="for all of it")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one program or graph")
    parser.add_argument("--iterations", type=int, default=15, help="starts of a graph; the first does not count, and the median is late enough for replay by graph")
    parser.add_argument("--gpus", default="1,2")
    parser.add_argument("--learn", action="store_true", help="each graph runs once more before, and what that told is planned with")
    parser.add_argument("--graphs-only", action="store_true", help="nothing by hand: only predictions")
    parser.add_argument("--replays", default="", help="in place of what each graph is measured with: stream, graph:one, graph:gpu, device")
    parser.add_argument("--works", default="", help="only these, as lu,mlp")
    parser.add_argument("--report", type=pathlib.Path)
    options = parser.parse_args()
    comparison = Comparison(options)
    if not comparison.gantry.exists() or not comparison.programs.is_dir():
        print(f"no {comparison.gantry} or no {comparison.programs}: build the tree first, where nvcc is", file=sys.stderr)
        return 77
    if not comparison.has_gpu():
        print("there is no GPU: \"gantry machine\" says why", file=sys.stderr)
        return 77
    if not options.machine:
        comparison.calibrate()
    comparison.all([int(count) for count in options.gpus.split(",")], [work for work in options.works.split(",") if work])
    print(f"report: {comparison.report}; figures: {comparison.report.with_suffix('.json')}")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())
