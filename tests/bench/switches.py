#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same graphs with a part of the back end for CUDA switched on and off, in turn, each in a process of its own.

    tests/bench/switches.py [BUILD] [--only warm,early,copies] [--gpus 1,2] [--repeats 5] [--limit 60] [--report FILE]

warm: GANTRY_CUDA_WARM, what libraries load while a run is opened: us to open it, of the first start and of the third.
early: GANTRY_CUDA_EARLY, launches in a graph that come early: us of a start of chains, of chains with reductions between, and of
a stencil; results are compared, too. Medians over the processes; in one process the least of its starts counts.
copies: GANTRY_CUDA_COPIES=kernels:BYTES, copies between GPUs by kernels, for BYTES of 64 KiB, 1 MiB and 16 MiB: us of a start of
halos and of many copies at once; needs two GPUs.
BUILD is build/release by default, FILE BUILD/switches.md. Exit code 0: all was measured; 1: something failed or results differ;
77: there are no GPUs. Python 3.8 is enough. Nothing else should use the GPUs meanwhile.
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
GRAPHS = HERE.parents[2] / "graphs"
NO_GPU = 77
COPIES = ["kernels:65536", "kernels:1048576", "kernels:16777216"]


# ---- graphs ----

def chain(elements, nodes, reductions):
    buffers = {name: {"dtype": "f32", "shape": [elements], "class": "state", "init": 1} for name in "xy"}
    buffers["y"]["output"] = True
    buffers["s"] = {"dtype": "f32", "shape": [1], "class": "state", "init": 0, "output": True}
    made = []
    for i in range(nodes):
        if reductions and i % 10 == 9:
            made.append({"id": f"r{i}", "kernel": "reduce_sum", "args": {"x": "y", "out": "s"}})
        else:
            made.append({"id": f"n{i}", "kernel": "axpby", "args": {"a": 0.25, "x": "x" if i % 2 else "y", "b": 0.5,
                                                                    "y": "y" if i % 2 else "x"}})
    return {"gantry": 1, "buffers": buffers, "nodes": made}


def exchange(elements, steps, arrays):
    """Each device writes its arrays, which the other one reads in the next step."""
    buffers, made = {}, []
    for step in range(steps + 1):
        for device in range(2):
            for i in range(arrays):
                last = step == steps
                buffers[f"b{step}_{device}_{i}"] = {"dtype": "f32", "shape": [elements], **({"output": True} if last else {}),
                                                    **({"class": "state", "init": "iota"} if step == 0 else {})}
                if step:
                    made.append({"id": f"s{step}_{device}_{i}", "on": str(device), "kernel": "scale", "args": {
                        "a": 0.5, "x": f"b{step - 1}_{1 - device}_{i}", "y": f"b{step}_{device}_{i}"}})
    return {"gantry": 1, "buffers": buffers, "nodes": made}


def cases(part, gpus):
    """Name, graph (an object, or a file with parameters), replay."""
    if part == "warm":
        return [(f"cholesky n={n} nt={nt}, {replay}", ("cholesky.json", {"n": n, "nt": nt}), replay)
                for n, nt in ((2048, 8), (8192, 16)) for replay in ("stream", "graph")]
    if part == "early":
        made = [(f"chain of 1,000, {elements} elements", chain(elements, 1000, False), "graph") for elements in (256, 16384, 1 << 20)]
        made.append(("chain of 1,000 with reductions, 16384 elements", chain(16384, 1000, True), "graph"))
        return made + [("jacobi n=512, 100 steps", ("jacobi.json", {"n": 512, "steps": 100}), "graph")]
    if gpus < 2:
        return []
    made = [(f"halos of {elements // 256} KiB, 50 steps", exchange(elements, 50, 1), "graph") for elements in (1024, 16384, 262144)]
    return made + [(f"16 copies of {elements // 256} KiB each way, 10 steps", exchange(elements, 10, 16), "graph")
                   for elements in (1024, 16384, 262144)]


# ---- one process ----

def load(build):
    library = ctypes.CDLL(str(build / "lib" / "libgantry.so"))
    for name in ("gantry_run_free", "gantry_schedule_free", "gantry_machine_free", "gantry_graph_free"):
        getattr(library, name).restype = None
    return library


class RunOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("backend", ctypes.c_char_p), ("check", ctypes.c_int32), ("allow", ctypes.c_int32),
                ("seed", ctypes.c_uint64), ("deadline", ctypes.c_double), ("record", ctypes.c_int32), ("reserved", ctypes.c_int32)]


def must(status, error):
    if status:
        sys.exit(f"status {status}: {error.raw[:1500]}")


def one_start(library, run, error):
    ticket = ctypes.c_uint64()
    begin = time.perf_counter()
    must(library.gantry_run_start(run, ctypes.byref(ticket), error), error)
    must(library.gantry_run_wait(run, ticket, error), error)
    return (time.perf_counter() - begin) * 1e6


def child(build, schedule_file, graph_file, starts):
    """Opens the schedule that gantry wrote, and starts it."""
    library, error = load(build), ctypes.create_string_buffer(8192)
    graph, schedule, run = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    must(library.gantry_graph_load(ctypes.byref(graph), graph_file.encode(), None, error), error)
    must(library.gantry_schedule_load(ctypes.byref(schedule), schedule_file.encode(), error), error)
    must(library.gantry_schedule_attach(schedule, graph, error), error)
    options = RunOptions(ctypes.sizeof(RunOptions), b"cuda", 0, 0, 0, 0, 0, 0)
    begin = time.perf_counter()
    must(library.gantry_run_new(ctypes.byref(run), schedule, ctypes.byref(options), error), error)
    opened = (time.perf_counter() - begin) * 1e6
    times = [one_start(library, run, error) for _ in range(starts)]
    library.gantry_run_free(run)
    print(json.dumps({"open": opened, "first": times[0], "third": times[2], "least": min(times[1:])}))


# ---- all ----

class Switches:
    def __init__(self, args):
        self.build, self.args, self.lines, self.failed = args.build, args, [], []
        self.gantry = str(args.build / "bin" / "gantry")
        self.work = args.build / "switches"
        self.work.mkdir(exist_ok=True)

    def run(self, words, env):
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=self.args.limit,
                                  env={**os.environ, "GANTRY_MACHINE_CACHE": "off", **env})
        except subprocess.TimeoutExpired:
            self.failed.append(f"{' '.join(map(str, words))}: not done within {self.args.limit} s")
            return None
        if done.returncode:
            why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            self.failed.append(f"{' '.join(map(str, words))}: {why}")
            return None
        return done.stdout

    def graph_file(self, graph):
        path = self.work / "graph.json"
        if isinstance(graph, tuple):  # with its parameters in it
            text = json.loads((GRAPHS / graph[0]).read_text())
            text["params"] = {**text.get("params", {}), **graph[1]}
            graph = text
        path.write_text(json.dumps(graph))
        return str(path)

    def hashes(self, words, env):
        out = self.run([self.gantry, "run", *words, "--backend", "cuda", "--iterations", "3", "--json"], env)
        return json.loads(out)["outputs"] if out else None

    def case(self, name, graph, replay, gpus, switch, on):
        file, plan = self.graph_file(graph), str(self.work / "plan.json")
        words = [file, "--devices", str(gpus), "--replay", replay]
        if self.run([self.gantry, "schedule", *words, "-o", plan], {}) is None:
            return
        sides = {"on": [], "off": []}
        env = {"on": {switch: on}, "off": {switch: "off" if on == "on" else "engines"}}
        for _ in range(self.args.repeats):
            for side, found in sides.items():
                out = self.run([sys.executable, str(HERE), str(self.build), "--child", plan, file], env[side])
                if out is None:
                    return
                found.append(json.loads(out))
        results = [self.hashes(words, env[side]) for side in sides]
        if results[0] != results[1]:
            self.failed.append(f"{name} on {gpus} GPUs: results differ with and without {switch}")
        self.row(name, gpus, sides, results[0] == results[1])

    def row(self, name, gpus, sides, same):
        def median(side, key):
            return statistics.median(x[key] for x in sides[side])
        figures = [f"{median('on', key):.1f} / {median('off', key):.1f}" for key in ("open", "first", "third", "least")]
        ratio = median("on", "least") / median("off", "least")
        self.say(f"| {name} | {gpus} | " + " | ".join(figures) + f" | {ratio:.3f} | {'yes' if same else '**no**'} |")

    def say(self, line):
        self.lines.append(line)
        print(line, flush=True)

    def part(self, part, gpus):
        switch = {"warm": "GANTRY_CUDA_WARM", "early": "GANTRY_CUDA_EARLY", "copies": "GANTRY_CUDA_COPIES"}[part]
        self.say(f"\n## {part}: us with / without ({switch})\n")
        self.say("| graph | GPUs | open | first start | third | least | ratio of the least | same results |")
        self.say("|---|---|---|---|---|---|---|---|")
        for count in gpus:
            for name, graph, replay in cases(part, count):
                for on in COPIES if part == "copies" else ["on"]:
                    self.case(name if on == "on" else f"{name}, {on}", graph, replay, count, switch, on)

    def all(self):
        out = self.run([self.gantry, "machine", "--json"], {})
        gpus = sum(d["type"] == "gpu" for d in json.loads(out)["devices"]) if out else 0
        wanted = [int(n) for n in self.args.gpus.split(",") if int(n) <= gpus]
        if not wanted:
            print("there are no GPUs, or fewer than were asked for")
            return NO_GPU
        for part in self.args.only.split(","):
            self.part(part, wanted)
        for line in self.failed:
            self.say(f"\nFailed: {line}")
        self.args.report.write_text("\n".join(self.lines) + "\n")
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build/release", type=pathlib.Path)
    parser.add_argument("--only", default="warm,early,copies")
    parser.add_argument("--gpus", default="1,2")
    parser.add_argument("--repeats", default=5, type=int)
    parser.add_argument("--limit", default=60, type=int)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.build = args.build.resolve()
    args.report = args.report or args.build / "switches.md"
    if args.child:
        child(args.build, args.child[0], args.child[1], 12)
        return 0
    return Switches(args).all()


if __name__ == "__main__":
    sys.exit(main())
