# SPDX-License-Identifier: Apache-2.0
"""Two ranks whose messages go by TCP through the loopback device of a network namespace, which is made slow, late, or out of order (tc): the bits are those of one process,
and a start takes no less than the machine file of such a network says; the ratio is printed, and with GANTRY_NETWORK_STRICT=1 it is 1.1 at most (2.2 of what goes both ways, for which there is one queue), which wants a computer
that does nothing else.

check_network.py GANTRY ROOT mpich|openmpi 1|0    77: no namespace or no queue of any kind may be made here
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from joined import hashes, one_way, planned, ratio_of

LAUNCH = {"mpich": "env UCX_TLS=tcp,self UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1 mpirun.mpich",
          "openmpi": "mpirun.openmpi --oversubscribe --allow-run-as-root --mca btl self,tcp --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo"}
# Halos go both ways. The loopback device has one queue for both, and machines have two, so of rates only what goes one way is to be predicted; rows of saxpy go both ways, and take up to twice as long.
HALOS = ("jacobi", ["n=16", "parts=4", "steps=20"])
ROWS = ("saxpy", ["n=600000", "parts=3"])
ONE_WAY = (None, [])
BOTH_WAYS = 2
# What the device does, by tc; the network as machines say it (us, GB/s; None: it is not to be predicted); the graph. Rates are in bits, and TCP/IP has headers on top.
CASES = (("netem delay 5ms", 5000, 1, HALOS), ("netem delay 20ms", 20000, 1, HALOS), ("netem delay 5ms rate 80mbit", 5000, 0.01, ONE_WAY),
         ("netem delay 5ms 2ms reorder 25%", None, None, HALOS), ("netem delay 1ms loss 2%", None, None, HALOS), ("tbf rate 80mbit burst 32k latency 400ms", 1, 0.01, ONE_WAY),
         ("tbf rate 80mbit burst 32k latency 400ms", 1, 0.01, ROWS))


def inside(queue, *words):
    """In a namespace whose loopback device has this queue."""
    return subprocess.run(["unshare", "-rn", "sh", "-c", f'ip link set lo up mtu 1500 && {f"tc qdisc add dev lo root {queue}" if queue else "true"} && exec "$@"', "sh", *map(str, words)],
                          capture_output=True, text=True, timeout=300)


def compare(gantry, root, mpi, folder, case):
    queue, latency, rate, (name, params) = case
    run = planned(gantry, root, folder, name or one_way(folder, 400000), params, latency or 1, rate or 1)
    one = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    done = inside(queue, *LAUNCH[mpi].split(), "-n", 2, *run)
    assert done.returncode == 0, f"{queue}: {done.stderr}"
    two = json.loads(done.stdout)
    assert hashes(one) == hashes(two), f"{queue}: {hashes(one)} and {hashes(two)}"
    ratio, text = ratio_of(two)
    print(f"{queue}, {name or 'one way'}: {text if latency else 'the bits of one process'}", flush=True)
    if latency:
        most = 1.1 * (BOTH_WAYS if name == "saxpy" else 1)
        assert ratio >= 0.9, f"{queue}: faster than the network"
        assert ratio <= most or not os.environ.get("GANTRY_NETWORK_STRICT"), f"{queue}: {ratio}"


def measured(gantry, mpi, queue="tbf rate 80mbit burst 32k latency 400ms", rate=0.01):
    """What gantry bench network finds is the rate of the queue, less what headers take."""
    done = inside(queue, *LAUNCH[mpi].split(), "-n", 2, gantry, "bench", "network", "--bytes", 1 << 20, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(f"{queue}, bench network: {found['gbs'] * 1e3:.2f} of {rate * 1e3:.0f} MB/s", flush=True)
    assert 0.8 * rate <= found["gbs"] <= 1.02 * rate, found


def main(gantry, root, mpi, built):
    if built != "1" or not all(map(shutil.which, (LAUNCH[mpi].split()[0], "unshare", "tc", "ip"))):
        print(f"skipped: gantry-mpi-{mpi}.so was not built, or its mpirun, unshare, tc or ip was not found")
        return 77
    os.environ["OMP_NUM_THREADS"] = "1"
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            probe = inside(case[0], "true")
            if probe.returncode:
                print(f"passed over: {case[0]}: {(probe.stdout + probe.stderr).strip()}", flush=True)
                continue
            compare(gantry, pathlib.Path(root), mpi, pathlib.Path(folder), case)
            tried += 1
    if not inside("tbf rate 80mbit burst 32k latency 400ms", "true").returncode:
        measured(gantry, mpi)
    return 0 if tried else 77


sys.exit(main(*sys.argv[1:]))
