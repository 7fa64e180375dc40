# SPDX-License-Identifier: Apache-2.0
"""Two ranks whose messages go by TCP over a network that is late, slow, out of order, or loses packets: netem, as the kernel has it (tc) or as packets.py does, and tbf on the loopback device. The bits are
those of one process, and a start takes what the machine file of such a network says, within 10 % and what other programs on the computer make of it. Then all of the gallery while packets come out of order or are lost: on two computers, some of it on four.

check_network.py GANTRY ROOT mpich|openmpi 1|0 [few]    few: not all of the gallery; 77: no namespace or no network of any kind may be made here
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import packets
from gallery import GALLERY, names
from joined import Busy, crowded, hashes, one_way, planned, ratio_of

LAUNCH = {"mpich": "env UCX_TLS=tcp,self UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1 mpirun.mpich",
          "openmpi": "mpirun.openmpi --oversubscribe --allow-run-as-root --mca btl self,tcp --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo"}
# A graph, and how many of its messages are behind each other. Rows of saxpy go both ways at once: acknowledgements of TCP are behind them then, so it has less under way than the network would take.
HALOS = ("jacobi", ["n=16", "parts=4", "steps=20"], 20)
BLOCKS = ("jacobi_blocks", ["n=32", "steps=12"], 24)
ROWS = ("saxpy", ["n=600000", "parts=3"], 4)
ONE_WAY = (None, [], 2)
# What netem does; the network as machines say it (us, GB/s; None: it is not to be predicted); the graph. Rates are in bits, and TCP/IP has headers on top. Where a rate and a
# delay are together, what is under way is less than the 64 KB that TCP begins with: how it comes to more is no part of a prediction.
NETEM = (("delay 5ms", 5000, 1, HALOS), ("delay 20ms", 20000, 1, HALOS), ("delay 10ms", 10000, 1, BLOCKS), ("delay 1ms rate 80mbit", 1000, 0.01, ONE_WAY), ("delay 1ms rate 80mbit", None, None, ROWS),
         ("delay 5ms 2ms reorder 25%", None, None, HALOS), ("delay 1ms loss 2%", None, None, HALOS))
TBF = "tbf rate 80mbit burst 32k latency 400ms"
LOSSY = "delay 1ms 1ms reorder 25% loss 1%"
TRIES = 4
FEW = ("jacobi", "loss_scale", "mlp_step")  # halos, copies with a flag, collectives


def inside(queue, *words):
    """In a namespace whose loopback device has this queue."""
    return subprocess.run(["unshare", "-rn", "sh", "-c", f'ip link set lo up mtu 1500 && {f"tc qdisc add dev lo root {queue}" if queue else "true"} && exec "$@"', "sh", *map(str, words)],
                          capture_output=True, text=True, timeout=300)


def over(how, kernel, computers, mpi, folder, run):
    """The words, each rank on a computer of its own, all of which this network joins."""
    if kernel:
        return inside(f"netem {how}", *LAUNCH[mpi].split(), "-n", computers, *run)
    for _ in range(TRIES):
        with packets.Network(computers, how, folder) as network:
            done = subprocess.run(network.words(mpi, run), capture_output=True, text=True, timeout=300)
        if not done.returncode or not re.search("ORTE|PMIX ERROR", done.stderr):
            break  # else daemons of Open MPI's launcher did not find each other, as they are in the same network
    return done


def same_bits(done, run, how):
    one = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    assert done.returncode == 0, f"{how}: {done.stderr}"
    report = json.loads(done.stdout)
    assert hashes(one) == hashes(report), f"{how}: {hashes(one)} and {hashes(report)}"
    return report


def compare(gantry, root, folder, how, network, graph, call, most):
    (latency, rate), (name, params, messages) = network, graph
    run = planned(gantry, root, folder, name or one_way(folder, 400000), params, latency or 1, rate or 1)
    for attempt in range(TRIES if latency else 1):
        with Busy() as busy:
            done = call(run)
        assert done.returncode == 0, f"{how}: {done.stderr}"
        ratio, text = ratio_of(same_bits(done, run, how))
        # Of a message, its sender, packets.py and its receiver find it late by as much as a sleeper is where other programs have the cores.
        late = most + 3 * messages * busy.us() / json.loads(done.stdout)["predicted_us"] if latency else None
        print(f"{how}, {name or 'one way'}: {text}, {late:.2f} at most, as sleepers are {busy.us():.0f} us late" if latency else f"{how}, {name}: the bits of one process", flush=True)
        if not latency or 0.9 <= ratio <= late:
            return
        time.sleep(1)
    assert crowded(), f"{how}: {text}"


def gallery(gantry, root, folder, mpi, kernel, chosen):
    """Planned for two computers, and, of some graphs, for four."""
    for name in chosen:
        for computers in (2, 4) if name in FEW and not kernel else (2,):
            params = [f"{key}={value}" for key, value in GALLERY[name].items()]
            run = planned(gantry, root, folder, name, params, 1000, 1, computers)
            begun = time.monotonic()
            same_bits(over(LOSSY, kernel, computers, mpi, folder, run), run, f"{name}, {LOSSY}")
            print(f"{LOSSY}, {name} on {computers} computers: the bits of one process, {time.monotonic() - begun:.1f} s", flush=True)


def measured(gantry, mpi, rate=0.01):
    """What gantry bench network finds is the rate of the queue, less what headers take."""
    done = inside(TBF, *LAUNCH[mpi].split(), "-n", 2, gantry, "bench", "network", "--bytes", 1 << 20, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    print(f"{TBF}, bench network: {found['gbs'] * 1e3:.2f} of {rate * 1e3:.0f} MB/s", flush=True)
    assert 0.8 * rate <= found["gbs"] <= 1.02 * rate, found


def main(gantry, root, mpi, built, few=""):
    if built != "1" or not all(map(shutil.which, (LAUNCH[mpi].split()[0], "unshare", "nsenter", "tc", "ip"))):
        print(f"skipped: gantry-mpi-{mpi}.so was not built, or its mpirun, unshare, nsenter, tc or ip was not found")
        return 77
    os.environ["OMP_NUM_THREADS"] = "1"
    kernel, tbf, own = not inside("netem delay 1ms", "true").returncode, not inside(TBF, "true").returncode, packets.possible()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if kernel or own:
            for how, latency, rate, graph in NETEM:
                compare(gantry, pathlib.Path(root), folder, how, (latency, rate), graph, lambda run, how=how: over(how, kernel and not own, 2, mpi, folder, run), 1.1)
            gallery(gantry, pathlib.Path(root), folder, mpi, kernel and not own, FEW if few else names(root))
        for graph, most in ((ONE_WAY, 1.1), (ROWS, 2.2)) if tbf and not few else ():  # the loopback device has one queue for both ways
            compare(gantry, pathlib.Path(root), folder, TBF, (1, 0.01), graph, lambda run: inside(TBF, *LAUNCH[mpi].split(), "-n", 2, *run), most)
        if tbf and not few:
            measured(gantry, mpi)
    print(f"netem: {'packets.py' if own else 'of the kernel' if kernel else 'passed over, /dev/net/tun may not be opened here'}; tbf: {'yes' if tbf else 'passed over'}", flush=True)
    return 0 if kernel or own or tbf else 77


# packets.py makes namespaces, for which this process has one of its own.
if __name__ == "__main__":
    if "GANTRY_PACKETS" not in os.environ and shutil.which("unshare") and not subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode:
        os.execvpe("unshare", ["unshare", "-rn", sys.executable, *sys.argv], {**os.environ, "GANTRY_PACKETS": "1"})
    sys.exit(main(*sys.argv[1:]))
