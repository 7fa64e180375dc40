#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process with two GPUs beside two processes with a GPU each: tests/bench/ranks.py BUILD [--mpirun 'mpirun.mpich'] [--rows 8192] [--backend cuda] [--rounds 3].

Jacobi of 20 steps and of 1: what a step takes is the difference, the rest is inputs and outputs. Chains of 20 all_reduce of several sizes. As streams and as graphs, by NCCL
and through hosts, in turn; medians of rounds, us a start, and the ratio to one process in the same way. All have the same bits, or it ends."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile


def chain_of(rows):
    """20 all_reduce, each of what the one before it has left on both GPUs."""
    buffers = {f"t{k}": {"dtype": "f32", "shape": [2 * rows], "split": 2} for k in range(21)}
    buffers["x"] = {"dtype": "f32", "shape": [2 * rows], "split": 2, "init": "iota"}
    buffers["y"] = {"dtype": "f32", "shape": [2 * rows], "split": 2, "output": True}
    ends = [[f"t{k}{{0:{rows}}}", f"t{k}{{{rows}:{2 * rows}}}"] for k in range(21)]
    nodes = [{"id": f"sum{k}", "collective": "all_reduce", "op": "sum", "in": ends[k], "out": ends[k + 1]} for k in range(20)]
    around = [{"id": f"{z}[{i}]", "kernel": "add", "args": {"x": f"{x}[{i}]", "y": f"x[{i}]", "z": f"{z}[{i}]"}, "on": f"{i} % devices"} for z, x in (("t0", "x"), ("y", "t20")) for i in range(2)]
    nodes = around[:2] + nodes + around[2:]
    return {"gantry": 1, "name": "chain", "buffers": buffers, "nodes": nodes}


class Bench:
    def __init__(self, o):
        self.o = o

    def start(self, graph, params, ranks, replay, network):
        launch = [*self.o.mpirun.split(), "-n", "2"] if ranks == 2 else []
        words = [*launch, self.o.build / "bin/gantry", "run", graph, *params, "--devices", 2, "--backend", self.o.backend, "--policy", "round-robin", "--replay", replay,
                 "--iterations", 11, "--json"]
        env = {**os.environ, "GANTRY_MACHINE_CACHE": "off", **({"GANTRY_CUDA_NETWORK": network} if network else {})}
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, env=env, timeout=300)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        report = json.loads(done.stdout)
        return report["measured_us"], report.get("replay", ""), [output["xxh64"] for output in report["outputs"].values()]

    def row(self, name, graph, params):
        ways = [(ranks, replay, network) for replay in self.o.replay.split(",") for ranks, network in ((1, ""), (2, "nccl"), (2, "host"))]
        times, said, bits = {way: [] for way in ways}, {}, set()
        for _ in range(self.o.rounds):
            for way in ways:
                us, said[way], out = self.start(graph, params, *way)
                times[way].append(us)
                bits.add(tuple(out))
        assert len(bits) == 1, f"{name}: other bits"
        us = {way: statistics.median(times[way]) for way in ways}
        for way in ways:
            print(f"| {name} | {way[0]} | {way[1]} | {way[2]} | {us[way]:.0f} | {us[way] / us[(1, way[1], '')]:.2f} | {said[way][:150]} |", flush=True)
        return us


def main():
    words = argparse.ArgumentParser()
    words.add_argument("build", type=pathlib.Path)
    for name, value in (("--mpirun", "mpirun.mpich"), ("--backend", "cuda"), ("--rows", 8192), ("--rounds", 3), ("--replay", "stream,graph"), ("--sizes", "16384,1048576,67108864")):
        words.add_argument(name, type=type(value), default=value)
    o = words.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    print("| graph | processes | replay | between | us | of one | how |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bench = Bench(o)
        us = [bench.row(f"jacobi {o.rows}, {steps} steps", root / "graphs/jacobi.json", ["--param", f"n={o.rows}", "--param", "parts=2", "--param", f"steps={steps}"]) for steps in (1, 20)]
        for way in us[0]:
            step = (us[1][way] - us[0][way]) / 19
            print(f"{way[0]} processes, {way[1]} {way[2]}: a step {step:.1f} us, all else {us[1][way] - 20 * step:.0f} us")
        for rows in map(int, o.sizes.split(",")):
            (folder / "chain.json").write_text(json.dumps(chain_of(rows)))
            bench.row(f"20 all_reduce of {4 * rows >> 10} KiB", folder / "chain.json", [])


main()
