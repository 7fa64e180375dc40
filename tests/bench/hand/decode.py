#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoding a GPT at batch 1, a token a start: graphs/decode/gpt.json beside decode.cu, in turn, on one GPU.

    tests/bench/hand/decode.py [BUILD] [--rounds 5] [--starts 64] [--machine FILE] [--backend cuda] [--sizes small,medium,wide]

First both get the same weights, small: the tokens of the back end and of the program by hand are those of the host back end. Then the
sizes are timed: medians of starts, and of rounds. "fused" and "plain" are the program's two ways. Exit 0: tokens agree, all was timed;
1: not; 77: no GPU or no program. With --backend host the tokens alone are compared, without the program. Python 3.8 and NumPy.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

import compare

ROOT = pathlib.Path(__file__).resolve().parents[3]
GRAPH = ROOT / "graphs" / "decode" / "gpt.json"
SMALL = {"layers": 2, "heads": 4, "dim": 16, "context": 64, "words": 64}
SIZES = {"small": SMALL, "medium": {"layers": 12, "heads": 16, "dim": 64, "context": 1024, "words": 32768},
         "wide": {"layers": 4, "heads": 32, "dim": 128, "context": 1024, "words": 32768}}
TOKENS = 40


def weights(folder, sizes):
    """Raw files of f32, drawn so that tokens differ; returns the words that bind them."""
    import numpy as np
    draw = np.random.default_rng(2)
    layers, words, width = sizes["layers"], sizes["words"], sizes["heads"] * sizes["dim"]
    shapes = {"table": (words, width), "gain1": (layers, width), "gain2": (layers, width), "gain_of_head": (1, width), "head": (width, words),
              "up": (layers * width, 4 * width), "down": (layers * 4 * width, width), **{name: (layers * width, width) for name in ("wq", "wk", "wv", "wo")}}
    bound = []
    for name, shape in shapes.items():
        array = draw.standard_normal(shape) * (0.3 if "gain" in name else 0.12) + ("gain" in name)
        array.astype("f4").tofile(f"{folder}/{name}.raw")
        bound += ["--input", f"{name}={folder}/{name}.raw"]
    return bound


def params(sizes):
    return [word for key, value in sizes.items() for word in ("--param", f"{key}={value}")]


class Bench:
    def __init__(self, options):
        self.options = options
        build = options.build.resolve()
        self.gantry, self.program = build / "bin" / "gantry", build / "tests" / "bench" / "hand" / "decode"
        self.environment = compare.environment(build)

    def run(self, words):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=self.environment, timeout=200)
        if done.returncode == 77:
            print(done.stderr.strip(), file=sys.stderr)
            sys.exit(77)
        if done.returncode:
            sys.exit(f"{' '.join(str(word) for word in words[:4])} ...: exit {done.returncode}: {done.stderr.strip()[-400:]}")
        return compare.values_of(done.stdout)

    def by_graph(self, backend, sizes, starts, words=(), watch=False):
        machine = ["--machine", self.options.machine] if self.options.machine and backend == "cuda" else []
        return self.run([self.gantry, "run", GRAPH, "--backend", backend, "--devices", 1, "--iterations", starts, "--json", *params(sizes), *machine,
                         *(["--watch", "token"] if watch else []), *words])

    def by_hand(self, sizes, starts, words=()):
        return self.run([self.program, *(word for key, value in sizes.items() for word in (f"--{key}", value)), "--starts", starts, *words])

    def check_tokens(self):
        with tempfile.TemporaryDirectory() as folder:
            bound = weights(folder, SMALL)
            wanted = [line["token"] for line in self.by_graph("host", SMALL, TOKENS, bound, True) if "token" in line]
            found = {}
            if self.options.backend != "host":
                found["gantry, " + self.options.backend] = [line["token"] for line in self.by_graph(self.options.backend, SMALL, TOKENS, bound, True) if "token" in line]
                found["by hand"] = self.by_hand(SMALL, TOKENS - 2, ["--folder", folder])[0]["tokens"]
        if len(wanted) != TOKENS or len(set(wanted)) < 5:
            sys.exit(f"the host back end says {wanted}: not {TOKENS} tokens, or always the same")
        for who, tokens in found.items():
            if tokens != wanted:
                sys.exit(f"{who} says {tokens}, the host back end {wanted}")
        print(f"{TOKENS} tokens agree: host back end{''.join(', ' + who for who in found)}")

    def time(self, name):
        sizes, starts = SIZES[name], self.options.starts
        starts = min(starts, sizes["context"] - 2)
        seen = {"gantry": [], "with --watch": [], "fused": [], "plain": []}
        report = None
        for _ in range(self.options.rounds):
            report = self.by_graph(self.options.backend, sizes, starts)[-1]
            seen["gantry"].append(report["measured_us"])
            seen["with --watch"].append(self.by_graph(self.options.backend, sizes, starts, watch=True)[-1]["measured_us"])
            variants = self.by_hand(sizes, starts)[-1]["variants"]
            for variant in ("fused", "plain"):
                seen[variant].append(1e3 * variants[variant])
        us = {key: statistics.median(values) for key, values in seen.items()}
        print(f"| {name}: {' '.join(f'{k}={v}' for k, v in sizes.items())} | {us['gantry']:.1f} | {us['with --watch']:.1f} | {us['plain']:.1f} | {us['fused']:.1f} |"
              f" {us['gantry'] / us['plain']:.2f} | {us['gantry'] / us['fused']:.2f} | {report['predicted_us']:.1f} | {report.get('replay')} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=64)
    parser.add_argument("--machine", type=pathlib.Path)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--sizes", default="small,medium,wide")
    bench = Bench(parser.parse_args())
    if not bench.gantry.exists() or (bench.options.backend != "host" and not bench.program.exists()):
        print(f"no {bench.gantry} or no {bench.program}: build the tree, and programs_by_hand, where nvcc is", file=sys.stderr)
        return 77
    bench.check_tokens()
    if bench.options.backend == "host":
        return 0
    print("us a token: graph, the same with --watch token, by hand with cuBLAS and a kernel a step, by hand fused\n")
    print("| GPT | Gantry | watched | plain | fused | over plain | over fused | predicted | replay |\n|---|---|---|---|---|---|---|---|---|")
    for name in bench.options.sizes.split(","):
        bench.time(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
