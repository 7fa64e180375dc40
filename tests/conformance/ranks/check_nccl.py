# SPDX-License-Identifier: Apache-2.0
"""NCCL between processes, on fake GPUs and a fake NCCL whose ranks are files (tests/support/fake_nccl): every collective has the bits of one process; where it is not
used the report says why; halos of both ways and with several ranks go in one group, and so do random exchanges; a rank that makes another call, or none, is found out; one that is lost ends all, with one message.

check_nccl.py GANTRY ROOT 1|0: is the module of MPICH built?
"""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from check_ranks import processes_of

KINDS = {
    "all_reduce": ("part", "part"), "reduce": ("part", "last"), "broadcast": ("first", "part"), "scatter": ("all", "cut"),
    "gather": ("cut", "all"), "all_gather": ("cut", "each"), "reduce_scatter": ("each", "cut"), "all_to_all": ("part", "part"),
}


def graph_of(dtype, p, algorithm, rows):
    """t -> collective -> u for each kind, all in memory of GPUs: kernels write and read them."""
    buffers = {"x": {"dtype": dtype, "shape": [p * p * rows], "split": p, "init": {"random": {"seed": 7}} if dtype[0] == "f" else "iota", "class": "input"}}
    nodes, n = [], p * rows

    def ends(shape, name):
        if shape == "part":
            return [f"{name}{{{i * n}:{(i + 1) * n}}}" for i in range(p)]
        if shape == "cut":
            return [f"{name}{{{i * n}:{i * n + rows}}}" for i in range(p)]
        if shape == "each":
            return [f"{name}{{{i * n}:{i * n + p * rows}}}" for i in range(p)]
        return [f"{name}{{0:{n}}}"] if shape in ("first", "all") else [f"{name}{{{(p - 1) * n}:{p * n}}}"]

    for kind, (give, take) in KINDS.items():
        t, u, v = f"t_{kind}", f"u_{kind}", f"v_{kind}"
        for name in (t, u, v):
            buffers[name] = {"dtype": dtype, "shape": [p * n], "split": p, **({"output": True} if name == v else {})}
        for i in range(p):
            nodes.append({"id": f"{t}[{i}]", "kernel": "add", "args": {"x": f"x[{i}]", "y": f"x[{(i + 1) % p}]", "z": f"{t}[{i}]"}, "on": f"{i} % devices"})
            nodes.append({"id": f"{u}[{i}]", "kernel": "add", "args": {"x": f"x[{i}]", "y": f"x[{i}]", "z": f"{u}[{i}]"}, "on": f"{i} % devices"})
        node = {"id": kind, "collective": kind, "in": ends(give, t), "out": ends(take, u), "algorithm": algorithm}
        node |= {"op": "sum"} if "reduce" in kind else {}
        node |= {"root": p - 1} if kind == "reduce" else {}
        nodes.append(node)
        for i in range(p):
            nodes.append({"id": f"{v}[{i}]", "kernel": "add", "args": {"x": f"{u}[{i}]", "y": f"x[{i}]", "z": f"{v}[{i}]"}, "on": f"{i} % devices"})
    return {"gantry": 1, "name": "nccl", "buffers": buffers, "nodes": nodes}


class Ranks:
    def __init__(self, gantry, folder):
        self.gantry, self.folder = gantry, folder
        self.files = folder / "nccl"
        self.files.mkdir()
        os.environ["FAKE_NCCL_FOLDER"] = str(self.files)

    def call(self, *words, code=0, **env):
        for file in self.files.iterdir():
            file.unlink()
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=120, env={**os.environ, **env})
        assert (done.returncode != 0) == (code != 0), f"{' '.join(map(str, words))} {env}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def schedule(self, graph, *where):
        file, schedule = self.folder / "g.json", self.folder / "s.json"
        file.write_text(json.dumps(graph))
        self.call(self.gantry, "schedule", file, *where, "--policy", "round-robin", "-o", schedule)
        return [self.gantry, "run", file, "--schedule", schedule, "--backend", "cuda", "--iterations", 3, "--json"]

    def run(self, ranks, words, **env):
        """What it has, and how it was replayed."""
        launch = ["mpirun.mpich", "-n", ranks] if ranks > 1 else []
        report = json.loads(self.call(*launch, *words, **env).stdout)
        return {name: output["xxh64"] for name, output in report["outputs"].items()}, report["replay"]

    def same(self, graph, ranks, where, says, but="none", **env):
        """`but`: not what has this in its name."""
        words = self.schedule(graph, *where)
        want, _ = self.run(1, words)
        got, replay = self.run(ranks, words, **env)
        print(f"{ranks} ranks {where}: {replay}", flush=True)
        differ = [name for name in want if got[name] != want[name] and but not in name]
        assert not differ and got.keys() == want.keys(), f"{where} on {ranks} ranks: {differ} differ\n{replay}"
        assert re.search(says, replay), f"{says}: {replay}"


def check_bits(r):
    """All of them by NCCL, but sums of floating-point numbers whose order is another's. `ops`: beside collectives there are copies of x."""
    spread = lambda n, replay: ["--devices", 4, "--spread", n, "--replay", replay]
    for dtype, ranks, replay in (("i32", 2, "stream"), ("i32", 4, "graph"), ("f32", 4, "stream"), ("f64", 2, "graph")):
        r.same(graph_of(dtype, 4, "auto", 3), ranks, spread(ranks, replay), f"^{replay}; NCCL 2.28.9 does [0-9]+ ops between ranks; ")
        made = {int.from_bytes(file.read_bytes()[:4], "little") for file in r.files.glob("*.*.*")}
        assert made == (set(range(5)) if dtype[0] == "i" else {3, 4}), f"{dtype}: calls {made}"  # `what` of fake.h: sums are 0 to 2
    r.same(graph_of("f32", 4, "auto", 3), 4, spread(4, "stream"), ", adding in its own order", but="reduce", GANTRY_CUDA_NETWORK="nccl")
    r.same(graph_of("f32", 2, "auto", 3), 2, ["--devices", 2, "--spread", 2, "--replay", "stream"], "NCCL 2.28.9 does [0-9]+ ops between ranks$|in host memory$")
    r.same(graph_of("i32", 4, "auto", 1), 4, spread(4, "stream"), "; NCCL", FAKE_CUDA_SEED="2")


def groups_of(r):
    """Rank, sends, receives, peers of each group of messages."""
    return [tuple(map(int, line.split())) for line in (r.files / "groups").read_text().splitlines()]


def check_gallery(r, root):
    for name, params, ranks, replay in (("train_pipeline", {}, 4, "graph"), ("jacobi_blocks", {"n": 9, "steps": 3}, 2, "auto"), ("jacobi_blocks", {"n": 9, "steps": 3}, 4, "stream")):
        graph = json.loads((root / f"graphs/{name}.json").read_text())
        graph["params"].update(params)
        r.same(graph, ranks, ["--devices", 4, "--spread", ranks, "--replay", replay], "NCCL 2.28.9 does [0-9]+ ops between ranks")
        groups = groups_of(r)
        both, messages = [group for group in groups if group[1] and group[2]], sum(group[1] + group[2] for group in groups)
        print(f"{name}: {messages} messages in {len(groups)} groups, {len(both)} of which go both ways", flush=True)
        # Halos of two processes, of two GPUs each: what one sends the other receives. How many messages a group has follows from predicted times, which this computer may have learned.
        if name == "jacobi_blocks" and ranks == 2:
            sent, received = ([sum(g[i] for g in groups if (g[0] < 2) == first) for first in (True, False)] for i in (1, 2))
            assert both and len(groups) <= messages / 2 and sent == received[::-1], groups
    r.same(graph_of("i32", 2, "auto", 2), 3, ["--devices", 2, "--spread", 2, "--replay", "stream"], "; NCCL")  # one has nothing to do


def check_neighbours(r, root):
    """Four blocks, each of which sends rows to each of the others in each step: each rank has groups with three peers. Planned for GPUs whose host takes no time to give work out, as each rank has a host of its own."""
    steps, starts, n = 10, 3, 32
    machine = json.loads((root / "graphs/machines/h200-8.json").read_text())
    machine["model"] |= {"submit_us": 0, "issue_us": 0}
    (r.folder / "own_hosts.json").write_text(json.dumps(machine))
    buffers, nodes = {}, []
    for s in range(steps + 1):
        for b in range(4):
            edge = {"init": {"random": {"seed": b}}, "class": "input"} if s == 0 else {"output": True} if s == steps else {}
            buffers |= {f"v{s}_{b}": {"dtype": "f32", "shape": [3 * n], **edge}, f"w{s}_{b}": {"dtype": "f32", "shape": [3 * n]}}
            if s == 0:
                del buffers[f"w{s}_{b}"]
                continue
            for k in range(3):
                rows = f"{{{k * n}:{(k + 1) * n}}}"
                nodes.append({"id": f"w{s}_{b}_{k}", "kernel": "add", "args": {"x": f"v{s - 1}_{b}{rows}", "y": f"v{s - 1}_{(b + k + 1) % 4}{rows}", "z": f"w{s}_{b}{rows}"}, "on": b})
            nodes.append({"id": f"v{s}_{b}", "kernel": "add", "args": {"x": f"w{s}_{b}", "y": f"w{s}_{b}", "z": f"v{s}_{b}"}, "on": b})
    for replay in ("stream", "graph"):
        r.same({"gantry": 1, "name": "neighbours", "buffers": buffers, "nodes": nodes}, 4, ["--machine", r.folder / "own_hosts.json", "--devices", 4, "--spread", 4, "--replay", replay], "; NCCL")
        groups = groups_of(r)
        whole = [sum(group[0] == rank and group[3] == 3 for group in groups) for rank in range(4)]
        messages = sum(group[1] + group[2] for group in groups)
        print(f"neighbours: {messages} messages in {len(groups)} groups, of each rank {whole} with all others", flush=True)
        assert min(whole) >= 2 * starts and len(groups) < 0.8 * messages, groups


def random_exchanges(seed):
    """Layers of blocks, several for each of four GPUs, that add two of the layer before, anywhere: what ranks send each other has no order but that of layers."""
    draw, blocks, layers = random.Random(seed), 4 + 4 * (seed % 2), 6
    buffers = {f"v{layer}_{b}": {"dtype": "i32", "shape": [draw.choice((5, 700, 5000))] if layer == b == 0 else None, **({"init": "iota", "class": "input"} if layer == 0 else {"output": True} if layer == layers else {})}
               for layer in range(layers + 1) for b in range(blocks)}
    shape = buffers["v0_0"]["shape"]
    nodes = [{"id": f"n{layer}_{b}", "kernel": "add", "args": {"x": f"v{layer - 1}_{draw.randrange(blocks)}", "y": f"v{layer - 1}_{draw.randrange(blocks)}", "z": f"v{layer}_{b}"}, "on": b % 4}
             for layer in range(1, layers + 1) for b in range(blocks)]
    return {"gantry": 1, "name": "exchanges", "buffers": {name: {**buffer, "shape": shape} for name, buffer in buffers.items()}, "nodes": nodes}


def check_random(r):
    """Groups of one rank with several, of other ranks than those of their peers: none waits for another in a circle, in any order in which the fake's kernels begin and end."""
    several = 0
    for seed in range(12):
        r.same(random_exchanges(seed), 4, ["--devices", 4, "--spread", 4, "--replay", ("stream", "graph")[seed % 2]], "; NCCL", FAKE_CUDA_SEED=str(seed), FAKE_NCCL_PATIENCE="500000")
        several += sum(group[3] > 1 for group in groups_of(r))
    print(f"random exchanges: {several} groups with several peers", flush=True)
    assert several > 100, several


def check_reasons(r):
    """Without it the same bits, and the reason."""
    where, graph = ["--devices", 2, "--spread", 2, "--replay", "stream"], graph_of("i32", 2, "auto", 2)
    r.same(graph, 2, where, "messages between hosts instead of NCCL: rank 0: GANTRY_CUDA_NETWORK=host", GANTRY_CUDA_NETWORK="host")
    r.same(graph, 2, where, "instead of NCCL: rank 0: libnccl.so.2", GANTRY_CUDA_LIBRARIES=os.environ["NCCL_ABSENT"])
    r.same(graph, 2, where, "instead of NCCL: rank [01]: no communicator for GPUs gpu0, gpu1: NCCL: internal error .3.: as the fake was told$", FAKE_CUDA_FAIL="ncclInit:1:3")
    one, both = r.folder / "one.json", r.folder / "both.json"
    r.call(r.gantry, "machine", "--devices", 1, "-o", one)
    r.call(r.gantry, "machine", "join", one, one, "--link", "latency_us=2,GBps=12.5", "-o", both)
    words = r.schedule(graph, "--machine", both, "--replay", "stream")
    got, replay = r.run(2, words)
    assert re.search('instead of NCCL: devices "r0.gpu0" and "r1.gpu0" are one GPU', replay), replay
    assert got == r.run(2, words, GANTRY_CUDA_NETWORK="host")[0]


def check_mutants(r):
    """The fake leaves out a group of rank 1, or exchanges two of its collectives."""
    words = r.schedule(graph_of("i32", 2, "auto", 2), "--devices", 2, "--spread", 2, "--replay", "stream")
    for mutant in ("skip:2", "skip:6", "swap:1"):
        r.call("mpirun.mpich", "-n", 2, *words, code=1, FAKE_NCCL_MUTANT=mutant, FAKE_NCCL_PATIENCE="5000")
        told = (r.files / "wrong").read_text()
        print(f"{mutant}: {told.splitlines()[0]}", flush=True)
        assert re.search("another call than|another size|deadlock", told), f"{mutant}: {told}"


def check_lost(r):
    """A rank that stops is told once, with what it was at; a signal to the other one, which waits in a kernel of NCCL, ends both, too."""
    words = r.schedule(graph_of("i32", 2, "auto", 2), "--devices", 2, "--spread", 2, "--replay", "stream")
    words[words.index("--iterations") + 1] = 100000000
    for interrupts in (False, True):
        for file in r.files.iterdir():
            file.unlink()
        child = subprocess.Popen(["mpirun.mpich", "-n", "2", *map(str, words), "--timeout", "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun = time.monotonic()
        while not any(r.files.glob("*.*.*")) and time.monotonic() < begun + 60:  # until calls of NCCL are made, however busy the computer is
            time.sleep(0.05)
        time.sleep(0.3)
        pids = processes_of(str(r.folder / "g.json"))
        os.kill(pids[1], signal.SIGSTOP)
        if interrupts:
            time.sleep(0.3)
            os.kill(pids[0], signal.SIGINT)
        try:
            _, errors = child.communicate(timeout=40)
        finally:
            child.kill()
        place = r'(at op \d+, ".*", on device "gpu\d"|at a start of \d+ ops|between starts);'  # starts take less than heartbeats are apart
        says = "rank 0 was interrupted" if interrupts else "rank 1 is lost: nothing was heard .*; it was " + place
        told = [line for line in errors.splitlines() if re.search("rank 1 is lost|was interrupted", line)]
        right = [line for line in told if re.search(says, line)]  # who waits long for a rank to hear of the signal finds that it is lost, too
        assert child.returncode != 0 and len(right) == 1 and len(told) <= 1 + interrupts, f"exit {child.returncode}:\n{errors}"
        print(told[0], flush=True)


def main(gantry, root, built):
    if built != "1" or not shutil.which("mpirun.mpich"):
        print("skipped: gantry-mpi-mpich.so was not built, or there is no mpirun.mpich; tools/setup test installs what they need")
        return 77
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        r = Ranks(gantry, pathlib.Path(folder))
        check_gallery(r, pathlib.Path(root))
        check_neighbours(r, pathlib.Path(root))
        for check in (check_random, check_bits, check_reasons, check_mutants, check_lost):
            check(r)
    return 0


sys.exit(main(*sys.argv[1:]))
