# SPDX-License-Identifier: Apache-2.0
"""A graph that was planned for computers which a network joins, for check_delays.py and check_network.py."""
import os
import json
import subprocess
import threading
import time


def hashes(report):
    return {name: output["xxh64"] for name, output in report["outputs"].items()}


def one_way(folder, rows):
    """A graph whose rows, f32, all go from the first computer to the second, which adds them up: one number comes back."""
    buffers = {"x": {"dtype": "f32", "shape": [rows], "init": "iota", "class": "input"}, "y": {"dtype": "f32", "shape": [rows]}, "sum": {"dtype": "f32", "shape": [1], "output": True}}
    nodes = [{"id": "make", "kernel": "add", "args": {"x": "x", "y": "x", "z": "y"}, "on": 0}, {"id": "sum", "kernel": "reduce_sum", "args": {"x": "y", "out": "sum"}, "on": 2}]
    (folder / "one_way.json").write_text(json.dumps({"gantry": 1, "name": "one_way", "buffers": buffers, "nodes": nodes}))
    return folder / "one_way.json"


def planned(gantry, root, folder, name, params, latency_us, gbs, computers=2):
    """The words that run it five times. `name`: of the gallery, or the path of another."""
    host, joined, file = root / "graphs/machines/host-2.json", folder / "joined.json", folder / "s.json"
    graph = root / f"graphs/{name}.json" if isinstance(name, str) else name
    params = [word for param in params for word in ("--param", param)]
    for words in (["machine", "join", *computers * [host], "--link", f"latency_us={latency_us},GBps={gbs}", "-o", joined],
                  ["schedule", graph, *params, "--machine", joined, "--policy", "round-robin", "-o", file]):
        subprocess.run([gantry, *map(str, words)], check=True, capture_output=True)
    return list(map(str, [gantry, "run", graph, *params, "--schedule", file, "--backend", "host", "--iterations", 5, "--json"]))


def ratio_of(report):
    """How long a start takes, to what was predicted; and both as a text."""
    ratio = report["measured_us"] / report["predicted_us"]
    return ratio, f"predicted {report['predicted_us'] / 1e3:.1f} ms, measured {report['measured_us'] / 1e3:.1f} ms, ratio {ratio:.3f}"


class Busy:
    """How late a process is that sleeps for a millisecond, on average, while this goes on: other programs have the cores then. Each message finds its rank that late."""

    def __enter__(self):
        self.late, self.over = [], False
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while not self.over:
            begun = time.monotonic()
            time.sleep(0.001)
            self.late.append(1e6 * (time.monotonic() - begun) - 1000)
            time.sleep(0.02)

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def us(self):
        return max(0, sum(self.late) / len(self.late))


def crowded():
    """True where other programs have had the cores for the last minute: ranks that poll wait for each other's turn then, by more than sleepers are late, and times tell nothing of the network."""
    load = os.getloadavg()[0]
    if load > 2 * os.cpu_count():
        print(f"not judged: the load of this computer of {os.cpu_count()} cores is {load:.1f}", flush=True)
    return load > 2 * os.cpu_count()
