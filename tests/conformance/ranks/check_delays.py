# SPDX-License-Identifier: Apache-2.0
"""A network of known times: mpi_shim lets each message come so late, whatever the kernel has. The bits are those of one process, and a start takes what is predicted for a
machine of such a network, of halos of rows within 10 %. And a rank that is stopped for good when all have done all, and leave MPI: the others end, and the run begins anew.

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

from joined import hashes, planned, ratio_of

LAUNCH = {"mpich": ["mpirun.mpich"], "openmpi": ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"]}
# Latency in us, GB/s, graph, an input with what it is, and how far from what is predicted a start may be. Predictions have all inputs and outputs on rank 0: outputs are
# small (of less than 64 KiB), and rank 1 has another file, so that all inputs come from there. Halos of rows go to one neighbour; those of blocks to several, where
# predictions let messages wait for the latency of each other, which on their way they do not.
CASES = [(5000, 0.1, "jacobi", ["n=32", "parts=4", "steps=20"], "u", "f8", [32, 32], (0.9, 1.1)),
         (20000, 0.001, "jacobi", ["n=32", "parts=4", "steps=10"], "u", "f8", [32, 32], (0.9, 1.1)),
         (10000, 1, "jacobi_blocks", ["n=32", "steps=12"], "u", "f4", [32, 32], (0.5, 1.1)), (10000, 1, "heat_3d", ["n=16", "steps=12"], "u", "f8", [16, 16, 16], (0.5, 1.2))]


def compare(gantry, root, mpi, shim, folder, case):
    latency, rate, name, params, array, dtype, shape, _ = case
    files = [folder / f"{number}.npy" for number in range(2)]
    for number, path in enumerate(files):
        np.save(path, (np.arange(np.prod(shape)) % 13 + number).astype(dtype).reshape(shape))
    run = planned(gantry, root, folder, name, params, latency, rate)
    ranks = [[*run, "--input", f"{array}={path}"] for path in files]
    one = json.loads(subprocess.run(ranks[0], check=True, capture_output=True, text=True).stdout)
    env = {**os.environ, "LD_PRELOAD": str(shim), "SHIM_LATENCY_US": str(latency), "SHIM_MBPS": str(rate * 1000)}
    done = subprocess.run([*LAUNCH[mpi], "-n", "1", *ranks[0], ":", "-n", "1", *ranks[1]], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    two = json.loads(done.stdout)
    assert hashes(one) == hashes(two), f"{name}: {hashes(one)} and {hashes(two)}"
    ratio, text = ratio_of(two)
    print(f"{name}, {latency / 1e3:g} ms, {rate * 1e3:g} MB/s: {text}", flush=True)
    return ratio


def check_stopped(gantry, root, mpi, shim, folder):
    """Nobody waits for it for longer than --timeout says, and the results are those of a run without it."""
    words = [gantry, "run", root / "graphs/saxpy.json", "--devices", 2, "--json", "--param", "n=64"]
    want = hashes(json.loads(subprocess.run([*map(str, words)], check=True, capture_output=True, text=True).stdout))
    for rank in (0, 1):
        env = {**os.environ, "LD_PRELOAD": str(shim), "SHIM_STOP": str(rank), "SHIM_MARK": str(folder / f"mark{rank}")}
        begun = time.monotonic()
        done = subprocess.run([*map(str, [*words, "--processes", 2, "--on-loss", "restart", "--mpirun", " ".join(LAUNCH[mpi]), "--timeout", 2])], capture_output=True, text=True, env=env, timeout=100)
        assert (folder / f"mark{rank}").exists() and done.returncode == 0 and "beginning anew with 2 processes" in done.stderr, (done.returncode, done.stdout, done.stderr)
        text = done.stdout[done.stdout.rindex("{\n  \"graph\"") if done.stdout.count("\"graph\"") > 1 else done.stdout.index("{"):]
        assert hashes(json.JSONDecoder().raw_decode(text)[0]) == want, done.stdout
        print(f"rank {rank} stopped at the very end: {time.monotonic() - begun:.1f} s", flush=True)


def main(gantry, root, mpi, built, shim):
    if built != "1" or not shutil.which(LAUNCH[mpi][0]):
        print(f"skipped: gantry-mpi-{mpi}.so was not built, or {LAUNCH[mpi][0]} was not found; tools/setup test installs what they need")
        return 77
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as name:
        folder, root = pathlib.Path(name), pathlib.Path(root)
        for case in CASES:
            ratio = compare(gantry, root, mpi, shim, folder, case)
            assert case[-1][0] <= ratio <= case[-1][1], f"{case}: {ratio}"
        check_stopped(gantry, root, mpi, shim, folder)
    return 0


sys.exit(main(*sys.argv[1:]))
