# SPDX-License-Identifier: Apache-2.0
"""Several processes give the bits of one: the graphs of the gallery, made small, on 2 and 4 ranks of host devices, dealt out and joined, one of them on 8.
Then what goes wrong: everybody ends, with one message that says who and what.

check_ranks.py GANTRY ROOT mpich|openmpi 1|0 [gallery | cuda]: is the module built? With "gallery": all of it, on 2, 4 and 8 ranks, and nothing else. With "cuda": only that the bits are the
same, on the GPUs of this computer, as streams and as graphs.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

from gallery import GALLERY, names

LAUNCH = {"mpich": ["mpirun.mpich"], "openmpi": ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"]}
# What differs in how ranks talk: halos, `until`, collectives, copies with a flag, phases. All of the gallery with GANTRY_RANKS_ALL=1.
FEW = ("jacobi", "jacobi_until", "loss_scale", "mlp_step", "saxpy")
# Without formulas, which fakes of GPUs cannot compile. Small tiles of cholesky are packed.
ON_GPUS = ("cholesky", "jacobi_blocks", "reduce_sum", "train_pipeline")


def call(words, code=0, timeout=300):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=timeout)
    if (done.returncode != 0) != (code != 0):
        raise AssertionError(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Ranks:
    def __init__(self, gantry, mpi, folder, backend):
        self.gantry, self.folder, self.backend = gantry, folder, backend
        self.launch = [shutil.which(LAUNCH[mpi][0]), *LAUNCH[mpi][1:]]

    def reports(self):
        """Of sanitizers: what they say goes to files, since standard error of ranks above 0 is told in the end, which they do not come to then."""
        return "".join(file.read_text() for file in self.folder.glob("sanitizer.*"))

    def mpirun(self, ranks, *words, code=0):
        return call([*self.launch, "-n", ranks, self.gantry, *words], code)

    def hashes(self, done):
        return {name: output["xxh64"] for name, output in json.loads(done.stdout)["outputs"].items()}

    def compare(self, graph, params, where, ranks, replay="auto"):
        """The same schedule by one process and by several; the messages that it takes."""
        words = [w for name, value in params.items() for w in ("--param", f"{name}={value}")]
        file = self.folder / "s.json"
        call([self.gantry, "schedule", graph, *words, *where, "--policy", "round-robin", "--replay", replay, "-o", file])
        parts = json.loads(call([self.gantry, "check", graph, file, *words, "--ranks", "--json"]).stdout)["ranks"]
        run = ["run", graph, *words, "--schedule", file, "--backend", self.backend, "--iterations", 3, "--json"]
        one, several = call([self.gantry, *run]), self.mpirun(ranks, *run)
        assert self.hashes(one) == self.hashes(several), f"{graph} on {ranks} ranks: {self.hashes(one)} and {self.hashes(several)}"
        return sum(part["sends"] for part in parts)


def check_gallery(r, root):
    call([r.gantry, "machine", "join", *2 * [root / "graphs/machines/host-2.json"], "--link", "latency_us=2,GBps=12.5", "-o", r.folder / "joined.json"])
    places = [(2, ["--devices", 4, "--spread", 2]), (4, ["--devices", 4, "--spread", 4]), (2, ["--machine", r.folder / "joined.json"])]
    for name in names(root) if os.environ.get("GANTRY_RANKS_ALL") else FEW:
        params = GALLERY[name]
        eight = [(8, ["--devices", 8, "--spread", 8])] if name == "jacobi" or os.environ.get("GANTRY_RANKS_ALL") else []
        sent = [r.compare(root / f"graphs/{name}.json", params, where, ranks) for ranks, where in places + eight]
        print(f"{name}: {' '.join(map(str, sent))} messages")
        assert sum(sent) > 0, f"{name} took no message: nothing was tried"


def check_packed(r, root):
    """Small halos of blocks that cross at the same moment are one message, also with several neighbours: fewer messages than copies, the same bits."""
    for ranks, blocks in ((2, 2), (4, 4)):
        packed_on(r, root, ranks, ["--param", "n=32", "--param", "steps=6", "--param", f"a={blocks}", "--param", "b=2"])


def packed_on(r, root, ranks, params):
    host, joined, file = root / "graphs/machines/host-2.json", r.folder / "late.json", r.folder / "packed.json"
    call([r.gantry, "machine", "join", *ranks * [host], "--link", "latency_us=200,GBps=10", "-o", joined])
    graph = root / "graphs/jacobi_blocks.json"
    call([r.gantry, "schedule", graph, *params, "--policy", "round-robin", "--machine", joined, "-o", file])
    s = json.loads(file.read_text())
    rank = [memory.get("rank", 0) for memory in s["machine"]["memories"]]
    at = [rank[[memory["id"] for memory in s["machine"]["memories"]].index(i["memory"]) if isinstance(i["memory"], str) else i["memory"]] for i in s["instances"]]
    crossing = [(at[op["uses"][0][1]], at[op["uses"][1][1]]) for op in s["ops"] if op["kind"] == "copy" and at[op["uses"][0][1]] != at[op["uses"][1][1]]]
    parts = json.loads(call([r.gantry, "check", graph, file, *params, "--ranks", "--json"]).stdout)["ranks"]
    sends = sum(part["sends"] for part in parts)
    peers = max(len({pair for pair in crossing if pair[0] == one}) for one in range(ranks))
    assert sends < len(crossing) and (ranks == 2 or peers > 1), (sends, len(crossing), peers)
    run = ["run", graph, *params, "--schedule", file, "--backend", r.backend, "--iterations", 3, "--json"]
    assert r.hashes(call([r.gantry, *run])) == r.hashes(r.mpirun(ranks, *run))
    print(f"jacobi_blocks on {ranks} ranks, {peers} neighbours at most: {len(crossing)} copies between ranks, {sends} messages")


def check_gpus(r, root):
    """Two ranks as streams, as many as there are GPUs, up to four, as graphs."""
    gpus = sum("gpu" in device["id"] for device in json.loads(call([r.gantry, "machine", "--json"]).stdout)["devices"])
    for name in names(root) if os.environ.get("GANTRY_RANKS_ALL") else ON_GPUS:
        sent = [r.compare(root / f"graphs/{name}.json", GALLERY[name], ["--devices", gpus, "--spread", ranks], ranks, replay)
                for ranks, replay in ((2, "stream"), (min(4, gpus), "graph")) if ranks <= gpus]
        print(f"{name}: {' '.join(map(str, sent))} messages", flush=True)
        assert sum(sent) > 0, f"{name} took no message: nothing was tried"


def check_many(r, root):
    """Thousands of small rows that go from host to GPU at one moment are one message, through a list of one transfer; rank 0 has another file, so that it sends all."""
    n = 3000
    buffers = {"x": {"dtype": "f32", "shape": [2 * n], "class": "input"}, "y": {"dtype": "f32", "shape": [n], "output": True}}
    nodes = [{"id": f"n{i}", "kernel": "add", "args": {"x": f"x{{{2 * i}:{2 * i + 1}}}", "y": f"x{{{2 * i}:{2 * i + 1}}}", "z": f"y{{{i}:{i + 1}}}"}, "on": 1} for i in range(n)]
    graph = r.folder / "many.json"
    graph.write_text(json.dumps({"gantry": 1, "name": "many", "buffers": buffers, "nodes": nodes}))
    for add in (0, 1):
        np.save(r.folder / f"rows{add}.npy", np.arange(add, 2 * n + add, dtype="f4"))
    words = [["run", graph, "--devices", 2, "--backend", "cuda", "--policy", "round-robin", "--iterations", 2, "--json", "--input", f"x={r.folder}/rows{add}.npy"] for add in (0, 1)]
    call([r.gantry, "schedule", graph, "--devices", 2, "--spread", 2, "--policy", "round-robin", "-o", r.folder / "many.s.json"])
    parts = json.loads(call([r.gantry, "check", graph, r.folder / "many.s.json", "--ranks", "--json"]).stdout)["ranks"]
    assert parts[0]["sends"] == 1, parts
    done = r.mpirun(1, *words[0], "--output", f"y={r.folder}/many.npy", ":", "-n", 1, r.gantry, *words[1])
    assert np.array_equal(np.load(r.folder / "many.npy"), np.arange(0, 4 * n, 4, dtype="f4")), done.stdout


def check_gone(r, root, mark, wrap):
    """The GPU does not come back: of four there are three in the second attempt, for which the run plans again, and goes on from the last checkpoint to the same bits. Nothing is added up
    between devices, or the bits would be those of three."""
    words = ["run", root / "graphs/jacobi_blocks.json", "--param", "n=32", "--param", "steps=6", "--policy", "round-robin", "--backend", "cuda", "--iterations", 30, "--json"]
    script = wrap.read_text()
    wrap.write_text(script.replace(f"|| exec {r.launch[0]}", f"|| exec env FAKE_CUDA_DEVICES=3 {r.launch[0]}"))
    for devices in ([], ["--devices", 4]):
        want = r.hashes(call([r.gantry, *words, *devices]))
        shutil.rmtree(r.folder / "kept", ignore_errors=True)
        shutil.rmtree(mark, ignore_errors=True)
        done = call([r.gantry, *words, *devices, "--processes", 3, "--on-loss", "replan", "--mpirun", wrap, "--checkpoint", f"4:{r.folder / 'kept'}", "-o", r.folder / "left.json"])
        assert "beginning anew with 2 processes" in done.stderr and "going on from checkpoint" in done.stderr, done.stderr
        gpus = sum("gpu" in device["id"] for device in json.loads((r.folder / "left.json").read_text())["machine"]["devices"])
        assert gpus == 3 and r.hashes(done) == want, f"{devices}: {gpus} GPUs\n{done.stderr}"
    wrap.write_text(script)


def check_poisoned(r, root):
    """A kernel of rank 1 reads where nothing is, in the first attempt, so that nothing can be done with its GPU's context any more: that process ends and says what it was at; the run goes on from the
    last checkpoint, on as many ranks or on one less, to the bits of a run without it."""
    if "FAKE_CUDA_DEVICES" not in os.environ:
        print("a poisoned context is for the fake driver")
        return
    os.environ["GANTRY_MACHINE_CACHE"] = "off"  # a single process is not to measure kernels of the fake
    words = ["run", root / "graphs/mlp_step.json", "--param", "batch=16", "--param", "inputs=12", "--param", "hidden=8", "--devices", 4, "--policy", "round-robin", "--backend", "cuda",
             "--iterations", 30, "--json"]
    want, mark, wrap = r.hashes(call([r.gantry, *words])), r.folder / "poisoned", r.folder / "mpirun"
    wrap.write_text(f"""#!/bin/sh
n=$2; shift 2
mkdir {mark} 2>/dev/null || exec {" ".join(r.launch)} -n $n "$@"
exec {" ".join(r.launch)} -n 1 "$@" : -n $((n - 1)) env FAKE_CUDA_FAIL=kernel:200:700 "$@"
""")
    wrap.chmod(0o755)
    check_gone(r, root, mark, wrap)
    for how, left in (("restart", 2), ("replan", 1), ("stop", 0)):
        shutil.rmtree(r.folder / "kept", ignore_errors=True)
        shutil.rmtree(mark, ignore_errors=True)
        done = call([r.gantry, *words, "--processes", 2, "--on-loss", how, "--mpirun", wrap, "--checkpoint", f"4:{r.folder / 'kept'}"], code=left == 0)
        told = [line for line in done.stderr.splitlines() if "CUDA_ERROR_ILLEGAL_ADDRESS" in line or "illegal" in line]
        assert len(told) == 1 and told[0].startswith("rank 1: ") and re.search(r'device "gpu\d"', told[0]), f"{how}: {told}\n{done.stderr}"
        print(f"{how}: {told[0]}", flush=True)
        if left:
            assert f"beginning anew with {left} process" in done.stderr and "from the last checkpoint" in done.stderr, done.stderr
            assert r.hashes(done) == want, f"{how}: another result"
        else:
            assert "beginning anew" not in done.stderr and done.returncode == 6, (done.returncode, done.stderr)


def check_plain(r, root):
    """As people write it: the machine is dealt out to as many processes as there are; files are those of rank 0."""
    words = ["run", root / "graphs/jacobi_until.json", "--devices", 4, "--param", "n=16", "--param", "steps=200"]
    one, four = r.folder / "one.npy", r.folder / "four.npy"
    call([r.gantry, *words, "--output", f"u={one}"])
    done = r.mpirun(4, *words, "--output", f"u={four}")
    assert one.read_bytes() == four.read_bytes()
    assert done.stdout.count("measured") == 1, done.stdout
    r.mpirun(3, "run", root / "graphs/saxpy.json", "--devices", 2, "--param", "n=64")  # one has nothing to do


def check_training(r, root):
    """Evaluations between steps, by weights that are on other ranks, in tiles and shards too; weights are written as one process writes them."""
    cases = [("--devices", 4, "--strategy", "dp=2,tp=2,zero=3"), ("--devices", 2, "--strategy", "pp=2,micro=2"),
             ("--devices", 2, "--strategy", "tp=2,recompute=all"), ("--devices", 2, "--objective", "period")]
    for number, case in enumerate(cases):
        words = ["train", root / "graphs/models/mlp.json", *case, "--param", "batch=32", "--steps", 6, "--evaluate", 2, "--effort", 0, "--backend", "host"]
        files = [r.folder / f"w1-{number}-{ranks}.npy" for ranks in (1, 2)]
        one = call([r.gantry, *words, "--output", f"w1={files[0]}", "--output", f"loss={r.folder / 'loss.npy'}"])
        two = r.mpirun(2, *words, "--output", f"w1={files[1]}", "--output", f"loss={r.folder / 'loss.npy'}")
        lines = [[line for line in done.stdout.splitlines() if line.startswith("step ")] for done in (one, two)]
        assert lines[0] == lines[1] and sum("evaluated loss" in line for line in lines[0]) == 3, f"{case}: {one.stdout}{two.stdout}{two.stderr}"
        assert files[0].read_bytes() == files[1].read_bytes(), f"{case}: w1 is another"


def check_resume(r, root):
    """4 ranks leave a checkpoint amid a loop, and one between starts; 2 ranks and one process go on from it to the bits of one process."""
    until = ["run", root / "graphs/jacobi_until.json", "--devices", 4, "--param", "n=16", "--param", "steps=60", "--param", "every=10", "--json"]
    states = ["run", root / "graphs/mlp_step.json", "--devices", 4, "--param", "batch=16", "--param", "inputs=12", "--param", "hidden=8", "--iterations", 5, "--json"]
    for words, every in ((until, 20), (states, 2)):
        want, kept = r.hashes(call([r.gantry, *words])), r.folder / f"kept-{every}"
        assert r.hashes(r.mpirun(4, *words, "--checkpoint", f"{every}:{kept}")) == want
        for done in (r.mpirun(2, *words, "--resume", kept), call([r.gantry, *words, "--resume", kept])):
            assert r.hashes(done) == want and "going on from checkpoint" in done.stderr, done.stderr
    done = r.mpirun(2, *words, "--param", "parts=2", "--resume", kept, code=1)
    assert done.stderr.count("give the same graph and params") == 1, done.stderr


def check_inputs(r, root):
    """Files of --input: each rank reads its own where all hold the same, also by other names; else what rank 0 has counts. A feed of arrays, one a start, is such a file."""
    graph, words = root / "graphs/jacobi.json", ["--devices", 4, "--param", "n=128", "--param", "steps=3", "--iterations", 2, "--json"]
    draw = np.random.default_rng(5)
    for name, array in (("a", draw.random((128, 128))), ("b", draw.random((128, 128))), ("many", draw.random((3, 128, 128)))):
        np.save(r.folder / f"{name}.npy", array)
    shutil.copy(r.folder / "a.npy", r.folder / "again.npy")
    want = {name: r.hashes(call([r.gantry, "run", graph, *words, "--input", f"u={r.folder}/{name}.npy"])) for name in ("a", "b", "many")}
    assert len({str(hashes) for hashes in want.values()}) == 3
    for first, other in (("a", "a"), ("a", "again"), ("a", "b"), ("b", "a"), ("many", "many")):
        mine, theirs = (["run", graph, *words, "--input", f"u={r.folder}/{name}.npy"] for name in (first, other))
        done = r.mpirun(1, *mine, ":", "-n", 3, r.gantry, *theirs)
        assert r.hashes(done) == want[first], f"rank 0 has {first}, the others {other}"


def check_bench(r, root):
    """Messages are measured by pairs and all together; one process has none."""
    found = json.loads(r.mpirun(3, "bench", "network", "--bytes", 1 << 16, "--json").stdout)
    assert found["processes"] == 3 and [(p["from"], p["to"]) for p in found["pairs"]] == [(0, 1), (0, 2), (1, 2)], found
    assert found["gbs"] == min(p["gbs"] for p in found["pairs"]) and found["latency_us"] == max(p["latency_us"] for p in found["pairs"]), found
    assert "start some, such as mpirun -n 2 gantry bench network" in call([r.gantry, "bench", "network"], 1).stderr


def check_failures(r, root):
    def fails(ranks, says, *words, others=()):
        done = r.mpirun(ranks, *words, *others, code=1)
        told = [line for line in done.stderr.splitlines() if says in line]
        assert len(told) == 1, f"{words}: \"{says}\" is told {len(told)} times:\n{done.stderr}\nexit {done.returncode}\n{done.stdout}{r.reports()}"

    saxpy = root / "graphs/saxpy.json"
    fails(3, "nosuch.json", "run", r.folder / "nosuch.json", "--devices", 3)
    call([r.gantry, "schedule", saxpy, "--devices", 4, "--spread", 4, "-o", r.folder / "four.json"])
    fails(2, "has 4 ranks, and there are 2 processes; start 4", "run", saxpy, "--schedule", r.folder / "four.json")
    fails(2, "--compare looks at all ops", "run", saxpy, "--devices", 2, "--compare")
    fails(2, "--profile looks at all ops", "run", saxpy, "--devices", 2, "--profile")
    fails(2, "does not run over several processes", "run", saxpy, "--devices", 2, "--backend", "sim")
    fails(2, "rank 2 has another schedule than rank 0", "run", saxpy, "--devices", 2,
          others=[":", "-n", "1", r.gantry, "run", saxpy, "--devices", 2, "--param", "n=128"])
    fails(2, "rank 2: ", "run", saxpy, "--devices", 2, others=[":", "-n", "1", r.gantry, "run", r.folder / "nosuch.json", "--devices", 2])
    graph = {
        "gantry": 1,
        "buffers": {name: {"dtype": "f64", "shape": [4, 4], "init": value, "output": True} for name, value in (("a", {"spd": {"seed": 1}}), ("b", -1))},
        "nodes": [{"id": "fine", "kernel": "potrf", "args": {"a": "a"}, "on": "dev0"}, {"id": "boom", "kernel": "potrf", "args": {"a": "b"}, "on": "dev1"}],
    }
    (r.folder / "fails.json").write_text(json.dumps(graph))
    fails(2, 'rank 1: ' + str(r.folder / "fails.json"), "run", r.folder / "fails.json", "--devices", 2)
    fails(2, 'node "boom" failed on device "dev1"', "run", r.folder / "fails.json", "--devices", 2)


def processes_of(text):
    """Those of `gantry` that have this in their command line."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/gantry") and any(text.encode() in word for word in words):
            found.append(int(entry.name))
    return sorted(found)


def shared_memory():
    """But for what other programs put there by tempfile: tests beside this one do."""
    return {entry.name for entry in pathlib.Path("/dev/shm").iterdir() if not entry.name.startswith("tmp")} if pathlib.Path("/dev/shm").exists() else set()


class Long:
    """A run of 2 ranks that takes longer than anybody waits; `pids` of the ranks, and of the launcher's process that reads what they say. Whatever comes, it is ended."""

    def __init__(self, r, root, *more, own=False):
        """`own`: started by gantry run --processes, so that each rank has a guard."""
        self.graph, self.scratch, self.expected, self.shared = r.folder / "long.json", r.folder / "scratch", 5 if own else 2, shared_memory()
        self.kept = r.folder / "long.kept"
        self.scratch.mkdir(exist_ok=True)
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copy(root / "graphs/jacobi.json", self.graph)
        run = [r.gantry, "run", self.graph, "--devices", 2, "--param", "n=16", "--param", "steps=20", "--iterations", 100000000, "--checkpoint", f"100:{self.kept}", *more]
        self.words = [*run, "--processes", 2, "--on-loss", "restart", "--mpirun", " ".join(r.launch)] if own else [*r.launch, "-n", 2, *run]

    def __enter__(self):
        env = {**os.environ, "TMPDIR": str(self.scratch)}
        self.child = subprocess.Popen([*map(str, self.words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        begun = time.monotonic()
        # Once there is a checkpoint, all are at work, however busy the computer is.
        while not (len(processes_of(str(self.graph))) >= self.expected and list(self.kept.glob("checkpoint-0*"))) and time.monotonic() < begun + 120 and self.child.poll() is None:
            time.sleep(0.05)
        self.pids = processes_of(str(self.graph))
        status = pathlib.Path(f"/proc/{self.pids[0]}/status").read_text()
        self.reader = int(re.search(r"^PPid:\s*(\d+)", status, flags=re.M).group(1))
        return self

    def end(self):
        """What was said, once all is over."""
        _, errors = self.child.communicate(timeout=120)
        begun = time.monotonic()
        while processes_of(str(self.graph)) and time.monotonic() < begun + 20:  # who was killed may not be gone yet
            time.sleep(0.05)
        assert self.child.returncode != 0 and not processes_of(str(self.graph)), f"exit {self.child.returncode}:\n{errors}"
        left = shared_memory() - self.shared  # what others have there, goes
        while left & shared_memory() and time.monotonic() < begun + 30:
            time.sleep(0.05)
        assert not left & shared_memory() and not list(self.scratch.iterdir()), f"left: {left & shared_memory()}, {list(self.scratch.iterdir())}"
        return errors

    def __exit__(self, *_):
        self.child.kill()


SAYS = r"gantry run: rank \d was interrupted, so all processes end"


def check_interrupts(r, root):
    """A signal to one rank ends all, and nothing is written: while the other computes, and while it is stopped, so that messages do not end. Who was interrupted says so;
    so may others, since Open MPI ends them by a signal, too."""
    for stopped, rank in ((None, 0), (0, 1)):
        with Long(r, root, "--output", f"u={r.folder}/cut.npy") as run:
            if stopped is not None:
                os.kill(run.pids[stopped], signal.SIGSTOP)
                time.sleep(0.5)
            os.kill(run.pids[rank], signal.SIGINT)
            errors = run.end()
        assert re.findall(SAYS, errors), errors
        assert not (r.folder / "cut.npy").exists()


def check_launchers(r, root):
    """A signal to the launcher, mpirun or our own, and to no rank: all say that they were interrupted, all end, nothing is begun anew, and no file is left."""
    cases = [(own, sig) for own in (False, True) for sig in (signal.SIGINT, signal.SIGTERM)]
    for own, sig in cases if os.environ.get("GANTRY_RANKS_ALL") else (cases[0], cases[3]):
        with Long(r, root, "--output", f"u={r.folder}/cut.npy", own=own) as run:
            os.kill(run.child.pid, sig)
            begun = time.monotonic()
            errors = run.end()
        print(f"{'gantry run --processes' if own else r.launch[0]}, {sig.name}: exit {run.child.returncode}, all over after {time.monotonic() - begun:.2f} s", flush=True)
        assert re.findall(SAYS, errors) and "beginning anew" not in errors, errors
        assert not own or run.child.returncode == 128 + sig, f"exit {run.child.returncode}:\n{errors}"
        assert not (r.folder / "cut.npy").exists()


def check_heard(r, root):
    """The launcher does not come to read what a rank says before all end: MPICH's throws away what it has not read by the time that it is told to end them."""
    with Long(r, root) as run:
        os.kill(run.reader, signal.SIGSTOP)
        try:
            os.kill(run.pids[1], signal.SIGINT)
            time.sleep(1.5)
        finally:
            os.kill(run.reader, signal.SIGCONT)
        errors = run.end()
    assert re.findall(SAYS, errors), f"what the rank said is lost:\n{errors}"


def main(gantry, root, mpi, built, what="host"):
    if built != "1":
        print(f"skipped: gantry-mpi-{mpi}.so was not built; tools/setup test installs what it needs")
        return 77
    if not shutil.which(LAUNCH[mpi][0]):
        print(f"skipped: {LAUNCH[mpi][0]} was not found; tools/setup test installs it")
        return 77
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        for options in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            os.environ[options] = f"{os.environ.get(options, '')}:log_path={folder}/sanitizer".lstrip(":")
        checks = {"host": (check_plain, check_training, check_resume, check_inputs, check_bench, check_failures, check_interrupts, check_launchers, check_heard, check_gallery, check_packed),
                  "cuda": (check_gpus, check_many, check_poisoned), "gallery": (check_gallery,)}
        if what == "gallery":
            os.environ["GANTRY_RANKS_ALL"] = "1"
        r = Ranks(gantry, mpi, pathlib.Path(folder), "cuda" if what == "cuda" else "host")
        for check in checks[what]:
            check(r, pathlib.Path(root))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
