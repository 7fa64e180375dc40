# SPDX-License-Identifier: Apache-2.0
"""A rank is killed at an op, by kill_shim: before it, amid it, after it; every op of every graph of the gallery that a rank comes to in two starts, with 2 and 4 ranks,
beginning anew on as many ranks and on one less. The result has the bits of one process; no process and no file is left. Told is also what a loss costs.

kills.py GANTRY ROOT mpich|openmpi 1|0 SHIM sample | all [MOST [GRAPH...]]: MOST kills of each graph and number of ranks, spread over its ops; 0: all of them, which takes hours.
"""
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_losses import LAUNCH, hashes, processes, shared_memory
from gallery import GALLERY

SIZES = {**GALLERY, "cholesky": {"n": 48, "nt": 3}}
SAMPLE = (("jacobi_until", 2, "replan", "before", 0.4), ("mlp_step", 4, "restart", "after", 0.8), ("jacobi", 2, "restart", "20", 0.6))
WHENS, HOWS = ("before", "20", "after"), ("restart", "replan")


class Kills:
    def __init__(self, gantry, root, mpi, shim, folder):
        self.launcher = LAUNCH[mpi]
        self.gantry, self.root, self.mpi, self.shim, self.folder = gantry, pathlib.Path(root), mpi, shim, pathlib.Path(folder)
        (self.folder / "scratch").mkdir()
        shutil.copytree(self.root / "graphs", self.folder / "graphs")

    def words(self, name):
        graph = self.folder / f"graphs/{name}.json"
        params = [w for key, value in SIZES[name].items() for w in ("--param", f"{key}={value}")]
        return graph, [self.gantry, "run", graph, *params, "--devices", 4, "--policy", "round-robin", "--iterations", 2, "--json"]

    def run(self, name, ranks, how, **kills):
        """What it gave and said, how long it took, and when in that the rank was killed."""
        (graph, words), kept, mark, before = self.words(name), self.folder / "kept", self.folder / "mark", shared_memory()
        shutil.rmtree(kept, ignore_errors=True)
        mark.unlink(missing_ok=True)
        env = {**os.environ, "LD_PRELOAD": self.shim, "KILLS_MARK": str(mark), "TMPDIR": str(self.folder / "scratch"), **{f"KILLS_{key.upper()}": str(value) for key, value in kills.items()}}
        words = [*words, "--processes", ranks, "--on-loss", how, "--mpirun", self.launcher, "--checkpoint", f"1:{kept}"]
        begun = time.time()
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, env=env, timeout=300)
        took = time.time() - begun
        assert done.returncode == 0, f"{name}, {ranks} ranks, {how}, {kills}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        left = shared_memory() - before  # what others have there, goes
        while left & shared_memory() and time.time() < begun + took + 30:
            time.sleep(0.05)
        assert not processes(graph) and not left & shared_memory() and not list((self.folder / "scratch").iterdir()), f"{name}, {kills}: left {processes(graph)}, {left}"
        return done, took, mark.stat().st_mtime - begun if mark.exists() else None, begun

    def count(self, name, ranks):
        """Ops that each rank comes to; seconds until the first of them, and of all."""
        _, took, _, begun = self.run(name, ranks, "stop", at=0)
        words = [struct.unpack("qq", (self.folder / f"mark.{rank}").read_bytes()[:16]) for rank in range(ranks)]
        for rank in range(ranks):
            (self.folder / f"mark.{rank}").unlink()
        return [ops for ops, _ in words], min(first for ops, first in words if ops) / 1e9 - begun, took

    def expected(self, name):
        return hashes(subprocess.run([*map(str, self.words(name)[1])], capture_output=True, text=True, check=True).stdout)

    def kill(self, name, want, begins, whole, ranks, how, rank, at, when):
        """Whether the rank was killed, as it may have ended before a timer did; what the loss cost beyond the work that was lost, in times that a run takes to begin."""
        done, took, killed, _ = self.run(name, ranks, how, rank=rank, at=at, when=when)
        case = f"{name}, {ranks} ranks, {how}, rank {rank}, op {at}, {when}"
        results = [hashes("{" + text) for text in re.split(r"^\{", done.stdout, flags=re.M)[1:]]
        # A timer may end a rank when all have met: then the result is told again.
        assert all(result == want for result in results) and 1 <= len(results) <= 1 + (when not in ("before", "after")), f"{case}: another result\n{done.stdout}{done.stderr}"
        lost = "beginning anew" in done.stderr
        assert lost or (killed is None or when not in ("before", "after")), f"{case}: nobody noticed\n{done.stderr}"
        if not lost:
            return False, None
        assert f"rank {rank} on node" in done.stderr and "was killed by signal 9" in done.stderr, f"{case}: not told\n{done.stderr}"
        return True, (took - whole - max(0, killed - begins)) / begins


def sample(k):
    for name, ranks, how, when, share in SAMPLE:
        ops, begins, whole = k.count(name, ranks)
        rank = max(range(ranks), key=lambda i: ops[i])
        lost, plans = k.kill(name, k.expected(name), begins, whole, ranks, how, rank, max(1, int(share * ops[rank])), when)
        print(f"{name}, {ranks} ranks: {ops} ops; {how}, {when}: {f'a loss costs {plans:.1f} times the beginning of a run' if lost else 'over before'}", flush=True)
        assert lost or when not in ("before", "after")


def other_code(k):
    """The launcher ends with the code of a rank that MPI ended since its peer was gone: 1, as MPICH's does in one of some hundred losses."""
    wrap, name = k.folder / "mpirun", "jacobi"
    wrap.write_text(f"#!/bin/sh\n{k.launcher} \"$@\" || exit 1\n")
    wrap.chmod(0o755)
    ops, begins, whole = k.count(name, 2)
    k.launcher = wrap
    lost, _ = k.kill(name, k.expected(name), begins, whole, 2, "replan", 1, ops[1] // 2, "before")
    assert lost


def every(k, most, names):
    print("| graph | ranks | ops | kills | losses | results right | cost of a loss, in beginnings of a run: median, longest |\n|---|---|---|---|---|---|---|")
    failed = 0
    for name in names or sorted(SIZES):
        want = k.expected(name)
        for ranks in (2, 4):
            ops, begins, whole = k.count(name, ranks)
            points = [(rank, at) for rank in range(ranks) for at in range(1, ops[rank] + 1)]
            chosen = points if not most or most > len(points) else [points[i * len(points) // most] for i in range(most)]
            costs, losses, right = [], 0, 0
            for i, (rank, at) in enumerate(chosen):
                try:
                    lost, plans = k.kill(name, want, begins, whole, ranks, HOWS[i // 3 % 2], rank, at, WHENS[i % 3])
                except AssertionError as wrong:
                    failed += 1
                    print(wrong, file=sys.stderr, flush=True)
                    continue
                right, losses = right + 1, losses + lost
                costs += [plans] if lost else []
            told = f"{statistics.median(costs):.1f}, {max(costs):.1f}" if costs else "-"
            print(f"| {name} | {ranks} | {len(points)} | {len(chosen)} | {losses} | {right} | {told} |", flush=True)
    return failed


def main(gantry, root, mpi, built, shim, what, most="0", *names):
    if built != "1" or not shutil.which(LAUNCH[mpi].split()[0]):
        print(f"skipped: gantry-mpi-{mpi}.so was not built, or {LAUNCH[mpi].split()[0]} was not found; tools/setup test installs what they need")
        return 77
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        k = Kills(gantry, root, mpi, shim, folder)
        return sample(k) or other_code(k) if what == "sample" else min(every(k, int(most), names), 1)


sys.exit(main(*sys.argv[1:]))
