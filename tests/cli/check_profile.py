# SPDX-License-Identifier: Apache-2.0
"""gantry run --profile against the trace of the same start: times of devices and links by a sweep over all ends of intervals, sums, and what is said
to limit a start that is made to be limited by it.

check_profile.py GANTRY ROOT
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def slices(trace, process):
    found = []
    for event in trace["traceEvents"]:
        args = event.get("args", {})
        if event["ph"] == "X" and "op" in args and event["pid"] == process:
            found.append((event["ts"], event["ts"] + event["dur"], event["cat"], args))
    return found


def lengths(intervals, ends):
    """How long the time between two ends is in which one of the intervals holds, over all neighbouring ends."""
    return sum(b - a for a, b in zip(ends, ends[1:]) if any(start <= a and b <= end for start, end in intervals))


def check(report, trace, memories):
    found = slices(trace, 2 * report.get("phase", 0))
    ends = sorted({end for one in found for end in one[:2]})
    begin, last, near = ends[0], ends[-1], lambda a, b: abs(a - b) <= 1e-6 * max(1, abs(b))
    assert near(report["span_us"], last - begin) and report["start_us"] >= report["span_us"] * (1 - 1e-9)
    assert near(report["active_us"], lengths([one[:2] for one in found], ends))
    for device, times in report["devices"].items():
        memory = memories[device]
        mine = [one for one in found if one[3]["device"] == device or (memory and memory in (one[3].get("from"), one[3].get("to")))]
        computing = [one[:2] for one in mine if "from" not in one[3] and one[2] != "collective"]
        busy, alone = lengths([one[:2] for one in mine], ends), lengths(computing, ends)
        done = max((one[1] for one in mine), default=begin)
        wanted = {"computing_us": alone, "copying_us": busy - alone, "waiting_us": done - begin - busy, "idle_us": last - done}
        assert all(near(times[key], value) for key, value in wanted.items()), (device, times, wanted)
        assert near(sum(times.values()), report["span_us"])
    pairs = {(one[3]["from"], one[3]["to"]) for one in found if "from" in one[3]}
    assert {(one["from"], one["to"]) for one in report["links"]} == pairs
    for link in report["links"]:
        copies = [one for one in found if (one[3].get("from"), one[3].get("to")) == (link["from"], link["to"])]
        assert link["copies"] == len(copies) and link["bytes"] == sum(one[3]["bytes"] for one in copies)
        assert near(link["busy_us"], lengths([one[:2] for one in copies], ends))
    assert [one["busy_us"] for one in report["links"]] == sorted((one["busy_us"] for one in report["links"]), reverse=True)
    without = 1 - report["active_us"] / report["start_us"]  # no op runs: the host is busy with something else
    assert (report["limited_by"] == "host") == (without >= 0.4), report


class Place:
    def __init__(self, gantry, here):
        self.gantry, self.here = gantry, here

    def run(self, graph, *words):
        done = subprocess.run([self.gantry, "run", graph, "--profile", "--trace", "t.json", "--json", *map(str, words)], cwd=self.here, capture_output=True,
                              text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), json.loads((self.here / "t.json").read_text())

    def measured(self, graph, *words, run=()):
        report, trace = self.run(graph, *words, *run)
        machine = json.loads(subprocess.run([self.gantry, "schedule", graph, *map(str, words), "-o", "-"], cwd=self.here, capture_output=True, text=True,
                                            check=True).stdout)["machine"]
        host = machine["memories"][0]["id"]
        check(report["profile"], trace, {one["id"]: one.get("memory", host) if one.get("memory", host) != host else None for one in machine["devices"]})
        return report

    def limit(self, name, nodes, buffers, machine, *words):
        """The bound that is said of what the machine model predicts, which does not vary."""
        (self.here / "g.json").write_text(json.dumps({"gantry": 1, "name": name, "buffers": buffers, "nodes": nodes}))
        (self.here / "m.json").write_text(json.dumps(machine))
        report, _ = self.run("g.json", "--machine", "m.json", "--backend", "sim", "--policy", "heft", *words)
        return report["profile"]["limited_by"], report["profile"]["advice"]


def machine(devices, gbs=10):
    memories = [{"id": "host", "capacity": "64GiB"}] + [{"id": f"m{i}", "capacity": "16GiB"} for i in range(devices)]
    names = [one["id"] for one in memories]
    return {"gantry_machine": 1, "name": "made", "memories": memories, "resources": {}, "routes": [
        {"from": a, "to": b, "latency_us": 1, "bandwidth_gbs": gbs, "via": []} for a in names for b in names], "devices": [
        {"id": f"d{i}", "kind": "made", "type": "gpu", "memory": f"m{i}", "lanes": 1, "copy_engines": 2, "gflops": {"f32": 100}, "bandwidth_gbs": 100,
         "launch_us": 1} for i in range(devices)]}


def work(name, us, device, reads=(), writes=()):
    return {"id": name, "work": {}, "reads": list(reads), "writes": list(writes), "cost": {"time_us": us}, "on": device}


def check_limits(p):
    parts = {"x": {"dtype": "f32", "shape": [4], "split": 4}}
    even = [work(f"n{i}", 1000, f"d{i % 2}", writes=[f"x[{i}]"]) for i in range(4)]
    said, advice = p.limit("even", even, parts, machine(2))
    assert said == "devices" and "more devices" in advice, (said, advice)
    odd = [work(f"n{i}", 1000 if i else 9000, "d1" if i == 1 else "d0", writes=[f"x[{i}]"]) for i in range(4)]
    said, advice = p.limit("odd", odd, parts, machine(2))
    assert said == "balance" and advice.startswith("device d0: "), (said, advice)
    chain = [work(f"n{i}", 1000, f"d{i}", [f"x[{i - 1}]"] if i else [], [f"x[{i}]"]) for i in range(4)]
    said, advice = p.limit("chain", chain, parts, machine(4))
    assert said == "dependencies" and "more than 25 %" in advice, (said, advice)
    large = {"x": {"dtype": "f32", "shape": [25000000], "class": "input"}, "y": {"dtype": "f32", "shape": [1]}}
    said, advice = p.limit("link", [work("n", 500, "d1", ["x"], ["y"])], large, machine(2))  # 100 MB at 10 GB/s
    assert said == "link" and "host -> m1" in advice, (said, advice)


def check_text(p, root):
    done = subprocess.run([p.gantry, "run", root / "graphs/cholesky.json", "--devices", "2", "--param", "n=256", "--profile"], cwd=p.here,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for words in ("computing", "copying", "waiting", "idle", "host -> mem0", "predicted to be ", "what limits it: "):
        assert words in done.stdout, done.stdout


def main(gantry, root):
    root = pathlib.Path(root).resolve()
    with tempfile.TemporaryDirectory() as here:
        p = Place(os.path.abspath(gantry), pathlib.Path(here))
        for graph, words in (("saxpy", ("--param", "n=100000")), ("saxpy", ("--param", "n=100")), ("cholesky", ("--param", "n=256")), ("jacobi", ("--param", "n=128"))):
            for devices in (1, 2, 3):
                p.measured(root / f"graphs/{graph}.json", "--devices", devices, *words)
        report = p.measured(root / "graphs/jacobi_until.json", "--devices", 2)["profile"]
        assert "phase" in report and report["start_us"] == report["span_us"]  # of so many iterations, the trace has the last
        for name in ("dgx1-v100", "host-4"):
            p.measured(root / "graphs/image_blur.json", "--machine", root / f"graphs/machines/{name}.json", run=("--backend", "sim"))
        check_limits(p)
        check_text(p, root)
        print("profiles are those of traces")


main(sys.argv[1], sys.argv[2])
