# SPDX-License-Identifier: Apache-2.0
"""A network of known times: mpi_shim lets each message come so late, whatever the kernel has. The bits are those of one process, and a start takes what is predicted for a
machine of such a network, within 10 %, and what other programs on the computer make of it. And a rank that is stopped for good when all have done all, and leave MPI: the others end, and the run begins anew.

check_delays.py GANTRY ROOT mpich|openmpi 1|0 SHIM
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

from joined import Busy, crowded, hashes, planned, ratio_of

LAUNCH = {"mpich": ["mpirun.mpich"], "openmpi": ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"]}
# Latency in us, GB/s, graph, an input with what it is. All ranks have the input, and outputs are small (of less than 64 KiB), so that they go to rank 0 in each start. Halos of
# rows go to one neighbour; those of blocks to several, both ways at once, and copies within a computer are behind messages. Of saxpy outputs stay where they are, and rows of y are exchanged.
CASES = [(5000, 0.1, "jacobi", ["n=32", "parts=4", "steps=20"], "u", "f8", [32, 32]), (20000, 0.001, "jacobi", ["n=32", "parts=4", "steps=10"], "u", "f8", [32, 32]),
         (10000, 1, "jacobi_blocks", ["n=32", "steps=12"], "u", "f4", [32, 32]), (10000, 1, "heat_3d", ["n=16", "steps=12"], "u", "f8", [16, 16, 16]),
         (5000, 0.01, "saxpy", ["n=600000", "parts=3"], "x", "f4", [600000])]


TRIES = 4


def timed(gantry, root, mpi, shim, folder, case):
    """What a start of the case takes, as one process and as two says it, and how late sleepers were meanwhile."""
    latency, rate, name, params, array, dtype, shape = case
    path = folder / "input.npy"
    np.save(path, (np.arange(np.prod(shape)) % 13).astype(dtype).reshape(shape))
    run = [*planned(gantry, root, folder, name, params, latency, rate), "--input", f"{array}={path}"]
    one = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    env = {**os.environ, "LD_PRELOAD": str(shim), "SHIM_LATENCY_US": str(latency), "SHIM_MBPS": str(rate * 1000)}
    with Busy() as busy:
        done = subprocess.run([*LAUNCH[mpi], "-n", "2", *run], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    two = json.loads(done.stdout)
    assert hashes(one) == hashes(two), f"{name}: {hashes(one)} and {hashes(two)}"
    return two, busy.us()


def beyond(gantry, root, mpi, shim, folder, case):
    """What ranks take beyond the messages, us: with a tenth of the latency there are as many. Those that poll may find each of them late."""
    two, _ = timed(gantry, root, mpi, shim, folder, (case[0] // 10, *case[1:]))
    return max(0, two["measured_us"] - two["predicted_us"])


def compare(gantry, root, mpi, shim, folder, case):
    latency, rate, name = case[:3]
    two, late = timed(gantry, root, mpi, shim, folder, case)
    ratio, text = ratio_of(two)
    # As many messages as latencies fit into the time are behind each other. Ranks poll, and are late less often than sleepers.
    most, more = 1.1 + 0.5 * late / latency, 0
    if ratio > most:
        more = beyond(gantry, root, mpi, shim, folder, case)
        most += more / two["predicted_us"]
    print(f"{name}, {latency / 1e3:g} ms, {rate * 1e3:g} MB/s: {text}, {most:.3f} at most, as sleepers are {late:.0f} us late"
          + f" and ranks take {more / 1e3:.1f} ms beyond messages" * (more > 0), flush=True)
    return ratio, most


def check_found(gantry, root, mpi, shim, folder):
    """Ranks without a machine file find that they are on two computers, and how fast these reach each other: what the shim says, each rank by a line of its own. A run plans for that, with the bits
    of one process. The network that is given is not measured: those are the times by hand."""
    latency, rate, env = 5000, 0.1, {**os.environ, "LD_PRELOAD": str(shim), "SHIM_LATENCY_US": "5000", "SHIM_MBPS": "100"}

    def call(nodes, *words, code=0, **more):
        command = [word for i, node in enumerate(nodes) for word in ([":"] if i else []) + ["-n", "1", "env", f"SHIM_NODE={node}", gantry, *map(str, words)]]
        done = subprocess.run([*LAUNCH[mpi], *command], capture_output=True, text=True, env={**env, **more}, timeout=120)
        assert (done.returncode == 0) == (code == 0), (done.returncode, done.stdout, done.stderr)
        return done

    def join(*more):
        return json.loads(call("aabb", "machine", "join", "--json", *more).stdout)

    def off(machine):
        """How far lines are from what the shim makes of them: what is measured while others have the cores is measured again."""
        return max(abs(value / (2 * rate) - 1) for name, value in machine["resources"].items() if "network" in name)

    found, given = min((join() for _ in range(2)), key=off), join("--link", "latency_us=7,GBps=2")
    for machine, wanted, ports, near in ((found, (latency, rate), 2 * rate, 0.25), (given, (7, 2), 2, 0)):
        assert [(m["id"], m.get("rank", 0)) for m in machine["memories"]] == [("r0.host", 0), ("r0.mem0", 0), ("r1.mem1", 1), ("r2.host", 2), ("r2.mem0", 2), ("r3.mem1", 3)], machine["memories"]
        between = [r for r in machine["routes"] if ("r0" in r["from"] or "r1" in r["from"]) != ("r0" in r["to"] or "r1" in r["to"])]
        assert len(between) == 2 * 3 * 3 and all(r["network"] for r in between), between
        for r in between:
            assert abs(r["latency_us"] / wanted[0] - 1) <= near and abs(r["bandwidth_gbs"] / wanted[1] - 1) <= near, (r, wanted)
        names = sorted(name for name in machine["resources"] if "network" in name)
        assert names == ["r0.network.in", "r0.network.out", "r2.network.in", "r2.network.out"], names
        assert all(abs(machine["resources"][name] / ports - 1) <= near for name in names), machine["resources"]
    words = ["run", root / "graphs/jacobi.json", "--param", "n=32", "--param", "steps=5", "--json"]
    one = json.loads(subprocess.run([*map(str, [gantry, *words, "--devices", 4])], check=True, capture_output=True, text=True).stdout)
    several, near = (json.loads(call("aabb", *words, *more).stdout) for more in (["--policy", "round-robin"], []))
    here = json.loads(call("aaaa", *words, SHIM_LATENCY_US="0").stdout)
    assert hashes(one) == hashes(several) == hashes(near) == hashes(here) and here["predicted_us"] == one["predicted_us"] and several["predicted_us"] > 4 * latency, (one, several, here)
    assert len({node[1] in "01" for node in near["placement"].values()}) == 1, f"planned over a network of {latency} us: {near}"
    said = call("abab", *words, code=1).stderr
    assert said.count("ranks 0 and 2 are on one computer, and rank 1 between them is on another") == 1, said
    print(f"two computers found, {found['resources']['r0.network.out']} GB/s of two lines of {rate}", flush=True)


def check_stopped(gantry, root, mpi, shim, folder):
    """Nobody waits for it for longer than --timeout says, and the results are those of a run without it."""
    words = [gantry, "run", root / "graphs/saxpy.json", "--devices", 2, "--json", "--param", "n=64"]
    want = hashes(json.loads(subprocess.run([*map(str, words)], check=True, capture_output=True, text=True).stdout))
    for rank, late in ((0, False), (1, False), (0, True), (1, True)):
        mark = folder / f"mark{rank}{late}"
        env = {**os.environ, "LD_PRELOAD": str(shim), "SHIM_STOP": str(rank), "SHIM_MARK": str(mark), **({"SHIM_END": "1"} if late else {})}
        begun = time.monotonic()
        done = subprocess.run([*map(str, [*words, "--processes", 2, "--on-loss", "restart", "--mpirun", " ".join(LAUNCH[mpi]), "--timeout", 2])], capture_output=True, text=True, env=env, timeout=100)
        assert mark.exists() and done.returncode == 0 and "beginning anew with 2 processes" in done.stderr, (done.returncode, done.stdout, done.stderr)
        text = done.stdout[done.stdout.rindex("{\n  \"graph\"") if done.stdout.count("\"graph\"") > 1 else done.stdout.index("{"):]
        assert hashes(json.JSONDecoder().raw_decode(text)[0]) == want, done.stdout
        assert not late or f"rank {rank} on node" in done.stderr and "had not ended 4 s after all had done all" in done.stderr, done.stderr
        print(f"rank {rank} stopped {'when it had left MPI' if late else 'at the very end'}: {time.monotonic() - begun:.1f} s", flush=True)


def main(gantry, root, mpi, built, shim):
    if built != "1" or not shutil.which(LAUNCH[mpi][0]):
        print(f"skipped: gantry-mpi-{mpi}.so was not built, or {LAUNCH[mpi][0]} was not found; tools/setup test installs what they need")
        return 77
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        folder, root = pathlib.Path(name), pathlib.Path(root)
        for case in CASES:
            ratios = [compare(gantry, root, mpi, shim, folder, case)]
            while len(ratios) < TRIES and not 0.9 <= ratios[-1][0] <= ratios[-1][1]:  # Open MPI's ranks poll, and come late where other programs have the cores
                time.sleep(2)
                ratios.append(compare(gantry, root, mpi, shim, folder, case))
            assert 0.9 <= ratios[-1][0] <= ratios[-1][1] or crowded(), f"{case}: {ratios}"
        check_found(gantry, root, mpi, shim, folder)
        check_stopped(gantry, root, mpi, shim, folder)
    return 0


sys.exit(main(*sys.argv[1:]))
