#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long the formulas of graphs take to be compiled for one GPU, and to come from the cache afterwards, in ms.

    tests/bench/compiling.py [BUILD] [--graphs cg,kmeans] [--backend cuda|host] [--rounds 2] [--limit 30] [--seconds 120]

Each graph is run by a new process with an empty cache, then by two with what that has kept, as often as --rounds says: "run, empty cache" and "full" are
whole processes, the least of each, so their difference is what compiling takes. Then one process opens runs of it, without starting them: "open" again with an
empty cache and with a full one, the least of three, after one more that has loaded all libraries. "load" is what is in the cache, read and given to the
driver piece by piece, which is what a later start takes for its formulas. The first line tells what opening NVRTC takes new processes that compile. With --backend
host they are compiled as C (GANTRY_COMPILE_FORMULAS). Exit code 1: something failed. Python 3.8 and NumPy.
"""
import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "bench" / "hand"), str(ROOT / "tools" / "python")]
import compare  # noqa: E402

GRAPHS = "black_scholes,kmeans,cg,nbody,loss_scale,transformer_block,transformer_block_train,multigrid_cg"
NVRTC = """import ctypes, time
begin = time.perf_counter()
for name in ("libnvrtc.so.13", "libnvrtc.so.12"):
    try:
        ctypes.CDLL(name)
        print((time.perf_counter() - begin) * 1e3)
        break
    except OSError:
        pass
"""


def entries(cache):
    return [path for path in (pathlib.Path(cache) / "gantry").glob("*") if path.suffix in (".cubin", ".ptx", ".so")]


def timed(act):
    begin = time.perf_counter()
    act()
    return (time.perf_counter() - begin) * 1e3


def load_all(cache):
    """In the context that runs use as well, which stays as long as it is held here."""
    driver, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    driver.cuCtxSetCurrent(context)
    modules = []

    def load():
        for path in entries(cache):
            modules.append(ctypes.c_void_p())
            if driver.cuModuleLoadData(ctypes.byref(modules[-1]), path.read_bytes()):
                raise RuntimeError(f"the driver does not load {path.name}")
    least = min(timed(load) for _ in range(3))
    for module in modules:
        driver.cuModuleUnload(module)
    driver.cuCtxSetCurrent(None)
    driver.cuDevicePrimaryCtxRelease_v2(device)
    return least


def opened(graph, backend):
    """The process that opens runs."""
    import gantry
    plan = gantry.load(ROOT / "graphs" / f"{graph}.json", devices=1).schedule(1)

    def open_one(cache):
        os.environ["XDG_CACHE_HOME"] = cache
        return timed(lambda: plan.run(backend=backend, allow_code=True).close())
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        open_one(first)
        full, empty = min(open_one(first) for _ in range(3)), open_one(second)
        found = {"kept": len(entries(first)), "full": full, "empty": empty, "load": load_all(first) if backend == "cuda" else None}
    print(json.dumps(found))


class Bench:
    def __init__(self, options):
        self.options, self.end, self.failed = options, time.monotonic() + options.seconds, 0
        self.environment = {**compare.environment(options.build), "GANTRY_COMPILE_FORMULAS": str(int(options.backend == "host"))}
        self.environment["GANTRY_LIBRARY"] = str(options.build / "lib" / "libgantry.so")

    def process(self, words, cache=None):
        """Standard output and ms."""
        limit = min(self.options.limit, self.end - time.monotonic())
        if limit < 3:
            raise RuntimeError("no time")
        environment = {**self.environment, **({"XDG_CACHE_HOME": cache} if cache else {})}
        begin = time.perf_counter()
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=limit, env=environment)
        took = (time.perf_counter() - begin) * 1e3
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
        return done.stdout, took

    def runs(self, graph):
        """The least of processes with an empty cache and with a full one."""
        words = [self.options.build / "bin" / "gantry", "run", ROOT / "graphs" / f"{graph}.json", "--backend", self.options.backend, "--devices", 1, "--allow-code", "--json"]
        empty, full = [], []
        for _ in range(self.options.rounds):
            with tempfile.TemporaryDirectory() as cache:
                empty.append(self.process(words, cache)[1])
                full += [self.process(words, cache)[1] for _ in range(2)]
        return min(empty), min(full)

    def tell(self, graph):
        empty, full = self.runs(graph)
        out, _ = self.process([sys.executable, __file__, self.options.build, "--backend", self.options.backend, "--open", graph])
        found = json.loads(out.splitlines()[-1])
        load = "-" if found["load"] is None else f"{found['load']:.1f}"
        return [found["kept"], *(f"{ms:.0f}" for ms in (empty, full, empty - full)), *(f"{ms:.1f}" for ms in (found["empty"], found["full"], found["empty"] - found["full"])), load]

    def nvrtc(self):
        found = [out for out, _ in (self.process([sys.executable, "-c", NVRTC]) for _ in range(3)) if out.strip()]
        print(f"NVRTC opened by a new process: {', '.join(f'{float(out):.1f}' for out in found) or 'not found'} ms", flush=True)

    def all(self):
        if self.options.backend == "cuda":
            self.nvrtc()
        print("| graph | compiled | run, empty cache | full | difference | open, empty | full | difference | load |", "|---" * 9 + "|", sep="\n", flush=True)
        for graph in self.options.graphs.split(","):
            try:
                cells = self.tell(graph)
            except (RuntimeError, subprocess.SubprocessError) as error:
                self.failed, cells = 1, [f"failed: {error}"]
            print(f"| {graph} | {' | '.join(str(cell) for cell in cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--backend", default="cuda", choices=("cuda", "host"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=30, help="seconds for one process")
    parser.add_argument("--seconds", type=float, default=120, help="for all of it")
    parser.add_argument("--open", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.open:
        return opened(options.open, options.backend)
    bench = Bench(options)
    bench.all()
    return bench.failed


if __name__ == "__main__":
    sys.exit(main())
