# SPDX-License-Identifier: Apache-2.0
"""gantry doctor on trees of files that stand for /sys and /proc: one healthy computer with four GPUs, and the same with one thing wrong each.

check_doctor.py GANTRY
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

GPUS = ["0000:03:00.0", "0000:04:00.0", "0000:83:00.0", "0000:84:00.0"]
ABOVE = {gpu: [f"0000:{'00' if i < 2 else '80'}:01.{i % 2}", f"0000:{'01' if i < 2 else '81'}:0{i % 2}.0"] for i, gpu in enumerate(GPUS)}
TWO_SOCKETS = {"node0": "0-15", "node1": "16-31"}


def config(control, first=0x148):
    """4096 bytes of configuration with extended capabilities: AER (1) at 0x100, then ACS (13), or nothing behind it (control None)."""
    space = bytearray(4096)
    struct.pack_into("<HH", space, 0x100, 1, 1 | (first << 4 if control is not None else 0))
    if control is not None:
        struct.pack_into("<HHHH", space, first, 13, 1, 0xFF, control)
    return bytes(space)


class Tree:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def write(self, path, text):
        path = self.root / path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else (text + "\n").encode())

    def device(self, address):
        return f"/sys/bus/pci/devices/{address}"

    def add(self, address, above, **files):
        """A folder below those of its bridges, and the link to it by which Linux lists all devices."""
        real = self.root / "sys/devices" / f"pci{address[:4]}:00" / pathlib.Path(*above) / address
        real.mkdir(parents=True, exist_ok=True)
        link = self.root / "sys/bus/pci/devices" / address
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(os.path.relpath(real, link.parent))
        for name, text in files.items():
            self.write(f"{self.device(address)}/{name}", text)

    def fill(self, gpus=GPUS):
        self.write("/proc/self/status", "Name:\tgantry\nCpus_allowed_list:\t0-31\nMems_allowed_list:\t0-1")
        self.write("/proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units\n"
                   "Max locked memory         unlimited            unlimited            bytes")
        self.write("/proc/self/mounts", "proc /proc proc rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0")
        self.write("/proc/meminfo", "MemTotal:       528000000 kB")
        for node, cpus in TWO_SOCKETS.items():
            self.write(f"/sys/devices/system/node/{node}/cpulist", cpus)
        self.write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "3700000")
        self.write("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3700000")
        self.add("0000:c1:00.0", [], vendor="0x1a03", **{"class": "0x030000"})  # the display of the board's own management: no GPU of ours
        self.add("0000:c2:00.0", [], vendor="0x10de", **{"class": "0x068000"})  # a bridge of NVIDIA
        for i, gpu in enumerate(gpus):
            for k, bridge in enumerate(ABOVE[gpu]):
                self.add(bridge, ABOVE[gpu][:k], vendor="0x1000", config=config(0x1), max_link_speed="32.0 GT/s PCIe", **{"class": "0x060400"})
            self.add(gpu, ABOVE[gpu], vendor="0x10de", numa_node=str(i // 2), current_link_width="16", max_link_width="16",
                     current_link_speed="2.5 GT/s PCIe", max_link_speed="32.0 GT/s PCIe", **{"class": "0x030200"})
            self.write(f"{self.device(gpu)}/iommu_group/type", "identity")
            self.write(f"{self.device(gpu)}/hwmon/hwmon{i}/power1_cap", "700000000")
            self.write(f"{self.device(gpu)}/hwmon/hwmon{i}/power1_cap_max", "700000000")
            self.write(f"/proc/driver/nvidia/capabilities/gpu{i}/mig/config", "DeviceFileMinor: 1")


def machine(missing=()):
    pairs = [(a, b) for a in ["host", "gpu0", "gpu1", "gpu2", "gpu3"] for b in ["host", "gpu0", "gpu1", "gpu2", "gpu3"]]
    routes = [{"from": a, "to": b, "latency_us": 2, "bandwidth_gbs": 20, "via": []} for a, b in pairs if (a, b) not in missing]
    return {"gantry_machine": 1, "name": "four", "memories": [{"id": "host", "capacity": "64GiB"}] + [{"id": f"gpu{i}", "capacity": "80GiB"} for i in range(4)],
            "devices": [{"id": f"gpu{i}", "kind": "h100", "type": "gpu", "memory": f"gpu{i}", "lanes": 4, "copy_engines": 2,
                         "gflops": {"f32": 60000}, "bandwidth_gbs": 3000, "launch_us": 2} for i in range(4)], "routes": routes, "resources": {}}


class Doctor:
    def __init__(self, gantry, here):
        self.gantry, self.here = gantry, here

    def look(self, change=lambda tree: None, routes=(), gpus=GPUS, found=None, words=("--json",)):
        """What is found in the tree after a change, by check; the exit code says if there is something."""
        shutil.rmtree(self.here / "root", ignore_errors=True)
        tree = Tree(self.here / "root")
        tree.fill(gpus)
        change(tree)
        (self.here / "m.json").write_text(json.dumps(machine(routes)))
        done = subprocess.run([self.gantry, "doctor", "--machine", "m.json", "--root", "root", *words], cwd=self.here, capture_output=True, text=True, timeout=60)
        if not words:
            return done
        assert not done.stderr, done.stderr
        report = json.loads(done.stdout)
        by = {state: [one for one in report["findings"] if one["state"] == state] for state in ("found", "unknown", "fine")}
        assert len(by["found"]) == report["found"] and done.returncode == (report["found"] > 0), report
        assert all(one["what"] and one["seen"] and bool(one["remedy"]) == (one["state"] != "fine") for one in report["findings"]), report
        return report["gpus"], by

    def expect(self, check, what, change=lambda tree: None, state="found", **more):
        """This one thing is not fine, and the words are in what is said of it."""
        _, by = self.look(change, **more)
        wrong = by["found"] + by["unknown"]
        assert [one["check"] for one in wrong] == [check] and wrong[0]["state"] == state, wrong
        said = " | ".join([wrong[0]["what"], wrong[0]["seen"], wrong[0]["remedy"]])
        assert all(word in said for word in what), said


def main(gantry):
    with tempfile.TemporaryDirectory() as here:
        d = Doctor(os.path.abspath(gantry), pathlib.Path(here))
        gpus, by = d.look()
        assert gpus == 4 and not by["found"] and not by["unknown"], by
        checks = {one["check"] for one in by["fine"]}
        assert checks == {"peer access", "ACS", "IOMMU", "PCIe link", "NUMA", "power", "CPU clock", "locked memory", "shared memory", "MIG"}, checks

        def put(path, text):
            return lambda tree: tree.write(path.format(gpu=tree.device(GPUS[2])), text)

        d.expect("peer access", ["1 of 12 pairs", "gpu3 to gpu1"], routes=[("gpu3", "gpu1")])
        d.expect("PCIe link", [GPUS[2], "8 of its 16 lanes", "2 times"], put("{gpu}/current_link_width", "8"))
        d.expect("PCIe link", [GPUS[2], "32 GT/s", ABOVE[GPUS[2]][1], "16"],
                 lambda tree: tree.write(f"{tree.device(ABOVE[GPUS[2]][1])}/max_link_speed", "16.0 GT/s PCIe"))
        for control, redirects in ((0x4, True), (0x8, True), (0x5D, True), (0x3, False), (None, False)):
            def change(tree):
                tree.write(f"{tree.device(ABOVE[GPUS[0]][1])}/config", config(control, 0x200))
            if redirects:
                d.expect("ACS", [ABOVE[GPUS[0]][1], "setpci"], change)
            else:
                assert not d.look(change)[1]["found"]
        d.expect("ACS", ["4 of 8 bridges" if False else "of 8 bridges", "sudo gantry doctor"], lambda tree: [
            tree.write(f"{tree.device(ABOVE[gpu][0])}/config", config(0)[:64]) for gpu in GPUS], state="unknown")
        loop = bytearray(config(0, 0x100))  # a list of capabilities that ends nowhere
        struct.pack_into("<HH", loop, 0x100, 1, 1 | 0x100 << 4)
        assert not d.look(lambda tree: tree.write(f"{tree.device(ABOVE[GPUS[0]][0])}/config", bytes(loop)))[1]["found"]
        d.expect("IOMMU", [GPUS[2], "DMA-FQ", "iommu=pt"], put("{gpu}/iommu_group/type", "DMA-FQ"))
        d.expect("NUMA", ["node 1", "Mems_allowed_list 0", "--membind=1"], put("/proc/self/status", "Cpus_allowed_list:\t0-31\nMems_allowed_list:\t0"))
        d.expect("NUMA", ["node 0", "Cpus_allowed_list 16-23,30", "--cpunodebind=0"],
                 put("/proc/self/status", "Cpus_allowed_list:\t16-23,30\nMems_allowed_list:\t0-1"))
        d.expect("NUMA", ["1 GPUs", "_PXM"], put("{gpu}/numa_node", "-1"), state="unknown")
        d.expect("NUMA", ["all 4 GPUs are on node 1"], lambda tree: [tree.write(f"{tree.device(gpu)}/numa_node", "1") for gpu in GPUS])
        d.expect("power", [GPUS[2], "300 W of 700"], put("{gpu}/hwmon/hwmon2/power1_cap", "300000000"))
        d.expect("power", ["1 of 4 GPUs", "nvidia-smi"], lambda tree: shutil.rmtree(tree.root / f"sys/bus/pci/devices/{GPUS[0]}/hwmon"), state="unknown")
        d.expect("CPU clock", ["1200 MHz of 3700"], put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq", "1200000"))
        d.expect("locked memory", ["8192 KiB", "memlock=-1"], put("/proc/self/limits", "Max locked memory         8388608              8388608   bytes"))
        for line, mib in (("shm /dev/shm tmpfs rw,nosuid,size=65536k 0 0", 64), ("tmpfs /dev/shm tmpfs rw,size=100m,inode64 0 0", 100),
                          ("tmpfs /dev/shm tmpfs rw,xsize=9g,size=4096 0 0", 0)):
            d.expect("shared memory", [f"/dev/shm has {mib} MiB", "--shm-size"], put("/proc/self/mounts", line))
        d.expect("shared memory", ["no /dev/shm"], put("/proc/self/mounts", "proc /proc proc rw 0 0"))
        d.expect("MIG", ["2 instances"], lambda tree: [tree.write(f"/proc/driver/nvidia/capabilities/gpu1/mig/gi{i}/access", "x") for i in (1, 2)])
        assert any("256 MiB" in one["what"] or "257812 MiB" in one["what"] for one in by["fine"]), by["fine"]

        # Without GPUs, and without anything.
        gpus, by = d.look(gpus=[])
        assert gpus == 0 and {one["check"] for one in by["fine"]} >= {"locked memory", "shared memory", "CPU clock"}, by
        done = d.look(put("/proc/self/mounts", "proc /proc proc rw 0 0"), gpus=[], words=())
        assert done.returncode == 1 and done.stdout.startswith("no GPU on the bus; what does not need one is looked at\n  found "), done.stdout
        lines = d.look(put("{gpu}/current_link_width", "8"), words=()).stdout.splitlines()
        assert lines[0] == "4 GPUs on the bus" and lines[1].startswith("  found    PCIe link: ") and lines[-1] == "1 found, 0 unknown, 9 fine", lines
        assert lines[2].startswith("           seen: /sys/") and lines[3].startswith("           remedy: "), lines
        (pathlib.Path(here) / "none").mkdir()
        done = subprocess.run([d.gantry, "doctor", "--root", "none"], cwd=here, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "no GPU on the bus" in done.stdout and not done.stderr, done
        # This computer, whatever it is.
        done = subprocess.run([d.gantry, "doctor"], cwd=here, capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1) and not done.stderr and " fine" in done.stdout, done
        print("doctor: all findings as planted")


main(sys.argv[1])
