# SPDX-License-Identifier: Apache-2.0
"""Computers that are namespaces, each with a TUN device, and between them a process that passes their packets on as netem does: late, slow, out of order, or not at all. Each computer has a line of
its own to send by. So there is such a network on kernels without netem, under the TCP that MPI takes. Its user has a namespace of users and of networks already (unshare -rn)."""
import ctypes
import fcntl
import heapq
import os
import random
import re
import select
import signal
import struct
import subprocess
import time

NEW_NETWORK, SET_DEVICE, TUN, WITHOUT_HEAD, MTU, ACKNOWLEDGEMENT = 0x40000000, 0x400454CA, 1, 0x1000, 9000, 120
libc = ctypes.CDLL(None, use_errno=True)


def settings(words):
    """Of netem, as "delay 5ms 2ms reorder 25% loss 2% rate 80mbit": seconds, shares, bytes a second."""
    found = {name: re.search(pattern, words) for name, pattern in {"delay": r"delay (\d+)ms", "jitter": r"delay \d+ms (\d+)ms", "reorder": r"reorder (\d+)%", "loss": r"loss (\d+)%", "rate": r"rate (\d+)mbit"}.items()}
    scale = {"delay": 1e-3, "jitter": 1e-3, "reorder": 0.01, "loss": 0.01, "rate": 1e6 / 8}
    return {name: int(match.group(1)) * scale[name] if match else 0 for name, match in found.items()}


def computer(number):
    """The file of its namespace, and what its packets come out of and go into."""
    if libc.unshare(NEW_NETWORK):
        raise OSError(ctypes.get_errno(), "unshare")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, SET_DEVICE, struct.pack("16sH22x", b"t0", TUN | WITHOUT_HEAD))
    for words in ("link set lo up", f"addr add 10.9.0.{number + 1}/24 dev t0", f"link set t0 up mtu {MTU} txqueuelen 10000"):
        subprocess.run(["ip", *words.split()], check=True, capture_output=True)
    return os.open("/proc/self/ns/net", os.O_RDONLY), device


def pass_on(devices, how, seed=1):
    """For ever. A packet is on its line behind those before it, and comes a delay after that; those that are reordered come at once."""
    draw, late, free, count = random.Random(seed), [], [0.0] * len(devices), 0
    while True:
        now = time.monotonic()
        while late and late[0][0] <= now:
            _, _, to, packet = heapq.heappop(late)
            try:
                os.write(devices[to], packet)
            except OSError:  # the device is full: lost
                pass
        for device in select.select(devices, [], [], max(0, late[0][0] - time.monotonic()) if late else None)[0]:
            for _ in range(16):
                try:
                    packet = os.read(device, 65536)
                except BlockingIOError:
                    break
                sender, to = devices.index(device), packet[19] - 1
                if packet[0] >> 4 != 4 or not 0 <= to < len(devices) or draw.random() < how["loss"]:
                    continue
                now = time.monotonic()
                if len(packet) <= ACKNOWLEDGEMENT:  # is not behind what goes the same way, as with fair queues
                    line = now
                else:
                    line = free[sender] = max(free[sender], now) + (len(packet) / how["rate"] if how["rate"] else 0)
                delay = how["delay"] + how["jitter"] * draw.uniform(-1, 1) if draw.random() >= how["reorder"] else 0
                count += 1
                heapq.heappush(late, (line + delay, count, to, packet))


def possible():
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError:
        return False
    return os.environ.get("GANTRY_PACKETS") == "1"


class Network:
    def __init__(self, computers, netem, folder):
        self.count, self.how, self.folder = computers, settings(netem), folder

    def __enter__(self):
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        try:
            self.spaces, self.devices = zip(*[computer(number) for number in range(self.count)])
        finally:
            libc.setns(home, NEW_NETWORK)
            os.close(home)
        self.child = os.fork()
        if not self.child:
            pass_on(list(self.devices), self.how)
        agent = self.folder / "agent"
        agent.write_text("#!/bin/sh\nhost=$1; shift\ncase $host in\n" + "".join(f"10.9.0.{i + 1}) exec nsenter --net={self.space(i)} sh -c \"$*\";;\n" for i in range(self.count)) + "esac\n")
        agent.chmod(0o755)
        return self

    def space(self, number):
        return f"/proc/{os.getpid()}/fd/{self.spaces[number]}"

    def __exit__(self, *_):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        for file in (*self.spaces, *self.devices):
            os.close(file)

    def words(self, mpi, run):
        """A rank on each computer. MPICH's ranks talk to their launcher by what they inherit; Open MPI's have one on each computer, which is started as by ssh."""
        if mpi == "mpich":
            env = ["env", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=t0", "MPIR_CVAR_NOLOCAL=1"]
            see = ["unshare", "-m", "sh", "-c", 'mount -t sysfs none /sys && exec "$@"', "sh"]  # devices of that namespace, in which UCX looks for its own
            each = [[":"] * (i > 0) + ["-n", "1", "nsenter", f"--net={self.space(i)}", *see, *run] for i in range(self.count)]
            return [*env, "mpirun.mpich", *(word for words in each for word in words)]
        hosts = ",".join(f"10.9.0.{i + 1}:1" for i in range(self.count))
        options = ["--mca", "plm_rsh_agent", str(self.folder / "agent"), "--mca", "pml", "ob1", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "t0", "--mca", "oob_tcp_if_include", "t0"]
        return ["nsenter", f"--net={self.space(0)}", "mpirun.openmpi", "--allow-run-as-root", *options, "--host", hosts, "-n", str(self.count), *run]
