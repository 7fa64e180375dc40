#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of some hundred bytes that ask for much: the command refuses them, or carries them out, within seconds of a
core and two GB of addresses. Usage: check_limits.py COMMAND [sanitized]"""
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

BYTES = 2 << 30
SECONDS = 10
LARGEST = 1300  # bytes of a file


def fill(name, to="x", **more):
    return {"id": name, "fill": {"to": to, "value": 0}, **more}


def work(name, **more):
    return {"id": name, "work": {}, **{"cost": {"time_us": 1}, **more}}


def span(name, last, *nodes):
    return {"for": {name: last}, "nodes": list(nodes)}


X = {"x": {"dtype": "f32", "shape": [8], "init": 0, "output": True}}


def split(count, **more):
    return {"dtype": "f32", "shape": [count], "split": count, **more}


def readers(count):
    """All nodes of one kind write a part, all of the other kind read the whole."""
    return {"x": split(count), "y": split(count)}, [
        fill("w[i]", "x[i]", **{"for": {"i": count}}),
        work("r[i]", reads=["x"], writes=["y[i]"], **{"for": {"i": count}})]


def alternating(count, nodes):
    """Two nodes write a part in two each, so that many readers find many pieces that have few writers."""
    parts = [{"for": {"i": f"{k}:{count}:2"}, "ref": "x[i]"} for k in range(2)]
    return {"x": split(count)}, [work("a", writes=parts[:1]), work("b", writes=parts[1:]),
                                 work("r[i]", reads=["x"], **{"for": {"i": nodes}})]


def repeat(count, *nodes, **more):
    return {"repeat": count, "nodes": list(nodes), **more}


LAST = 2**63 - 1
Y = {**X, "y": {"dtype": "f32", "shape": [8]}}
FLAG = {**X, "f": {"dtype": "i32", "shape": [1], "init": 0}}
SCALE = {"id": "s", "kernel": "scale", "args": {"a": 2, "x": "x", "y": "y"}}

# name: buffers, nodes, words of the message (None: the graph is carried out)
GRAPHS = {
    "an empty range within two": (X, [span("i", 10**6, span("j", 10**6, span("k", "j:j", fill("a[i][j][k]"))))],
                                  "takes more than 640000000 turns"),
    "two ranges and an if": (X, [span("i", 10**9, span("j", 10**9, fill("a[i][j]", **{"if": "i < 0"})))],
                             "takes more than 640000000 turns"),
    "ranges that depend on each other": (X, [span("i", 1000, span("j", "i:i + 1000000",
                                                                 span("k", "j:j", fill("a[i][j][k]"))))],
                                         "turns and made 0 nodes and references"),
    "nine ranges, each in the one before": (X, [json.loads(
        "".join('{"for": {"i%d": "%s"}, "nodes": [' % (k, f"i{k-1}:i{k-1} + 9" if k else "9") for k in range(9))
        + '{"if": "i0 < 0", "id": "a", "fill": {"to": "x", "value": 0}}' + "]}" * 9)],
        "turns and made 0 nodes and references"),
    "an if that lets nothing pass": (X, [fill("a[i]", **{"for": {"i": 600000000}, "if": "i < 0"})],
                                     "turns and made 0 nodes and references"),
    "long lists": ({"x": split(10**5, init=0)},
                   [work("r[j]", reads=[{"for": {"k": 10**5}, "ref": "x[k]"}], **{"for": {"j": 10**5}})],
                   "is beyond the limit of"),
    "many tiles": ({"A": {"dtype": "f32", "shape": [3000, 3000], "tiles": [3000, 3000], "init": 0}},
                   [work("r[j]", reads=["A[0:3000][0:2999]"], **{"for": {"j": 10**5}})], "have more than"),
    "many readers of many writers": (*readers(10**4), "dependencies, the limit of a graph"),
    "many readers of many pieces": (*alternating(10**6, 10**5), "pieces"),
    "a family after a family": (X, [work("w[i]", **{"for": {"i": 10**5}})]
                                + [work(f"r{k}", after=["w[i]"] * 25) for k in range(5)], "in more than"),
    "the longest repeat": (Y, [repeat(LAST, SCALE, carry={"x": "y"})], None),
    "the longest repeat with until": (FLAG, [repeat(LAST, fill("a"), fill("b", "f"),
                                                    until={"buffer": "f", "every": LAST - 1})], None),
    "many launches that vary": ({"x": split(10**4, init=0), "y": split(10**4, output=True)}, [repeat(10**6, {
        **SCALE, "id": "s[i]", "for": {"i": 10**4}, "args": {"a": "it", "x": "x[i]", "y": "y[i]"}})], None),
    "a reader of many writers": ({"x": split(10**5), "y": {"dtype": "f32", "shape": [1], "output": True}}, [
        work("w[i]", writes=["x[i]"], **{"for": {"i": 10**5}}),
        work("r", reads=[{"for": {"i": 10**5}, "ref": "x[i]"}], writes=["y"])], None),
    "two of the longest repeats": (X, [repeat(LAST, fill("a")), repeat(LAST, fill("b"))], None),
}


def machine(capacity):
    """Two virtual devices of one core each."""
    memories = [{"id": i, "capacity": capacity} for i in ("host", "m0")]
    device = {"id": "d0", "kind": "cpu", "memory": "m0", "gflops": {"f32": 8}, "bandwidth_gbs": 12}
    return {"gantry_machine": 1, "name": "m", "memories": memories, "devices": [device],
            "routes": [{"from": "host", "to": "m0", "bandwidth_gbs": 6}, {"from": "m0", "to": "host", "bandwidth_gbs": 6}]}


def large(rows):
    return {"x": {"dtype": "f32", "shape": [rows]}, "y": {"dtype": "f32", "shape": [1], "init": 0, "output": True}}, [
        fill("a"), {"id": "b", "kernel": "reduce_sum", "args": {"x": "x", "out": "y"}}]


def long(nodes):
    return {"x": split(nodes, init=0)}, [work("a[i]", writes=["x[i]"], **{"for": {"i": nodes}}, cost={"time_us": 2e12})]


WIDE = {"x": {"dtype": "u8", "shape": [2**62]}, "y": {"dtype": "u8", "shape": [8]}}

# name: graph, command, code, message. The machine has room for all of them.
ON_MACHINES = {
    "a million dependencies at the default effort": (readers(1000), ["schedule"], 0, ""),
    "2^61 bytes": (large(2**59), ["schedule"], 2, "takes longer than 26 days"),
    "loads beyond all times": (long(40), ["schedule", "--objective", "max_load"], 2, "add up to 926 days"),
    "addresses beyond all that there are": ((WIDE, [work("a", writes=["x", "y"])]), ["schedule"], 4,
                                            "needs 4611686018427388160 B at node"),
    "more than the computer has": (large(2**41), ["run"], 4,
                                   "the memories of the virtual devices take 8.0 TiB together (\"m0\" 8.0 TiB), and"),
    "more than the computer has, checked": (large(2**41), ["run", "--check"], 4, "such as --max-memory m0="),
    "a slab without memory": (large(600 << 20), ["run"], 4, "cannot allocate 2.3 GiB for the memory \"m0\""),
    "a checked slab without room beside it": (large(300 << 20), ["run", "--check"], 4,
                                              "checking mode cannot allocate 1.2 GiB more"),
}


def limit(sanitized):
    def set_limits():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS * (6 if sanitized else 1),) * 2)
        if not sanitized:  # a sanitizer's shadow takes more addresses than that
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    return set_limits


def run(command, words, sanitized):
    return subprocess.run([command, *words], capture_output=True, text=True, timeout=300, preexec_fn=limit(sanitized))


def check(command, folder, name, graph, sanitized):
    buffers, nodes, words = graph
    path = folder / "g.json"
    path.write_text(json.dumps({"gantry": 1, "buffers": buffers, "nodes": nodes}, separators=(",", ":")))
    wrong = []
    if path.stat().st_size > LARGEST:
        wrong.append(f"the file has {path.stat().st_size} bytes")
    got = run(command, ["schedule", str(path), "--devices", "2", "--effort", "0"], sanitized)
    if got.returncode != (0 if words is None else 3):
        wrong.append(f"ended with {got.returncode}")
    elif words is not None and (words not in got.stderr or "--limits" not in got.stderr):
        wrong.append("another message was expected")
    return [f"{name}: {w}: {got.stderr.strip()[-300:]}" for w in wrong]


def check_machine(command, folder, name, case):
    (buffers, nodes), words, code, message = case
    graph, file = folder / "g.json", folder / "m.json"
    graph.write_text(json.dumps({"gantry": 1, "buffers": buffers, "nodes": nodes}))
    file.write_text(json.dumps(machine(2**62)))
    got = run(command, [*words, str(graph), "--machine", str(file)], False)
    if got.returncode == code and message in got.stderr:
        return []
    return [f"{name}: ended with {got.returncode}: {got.stderr.strip()[-300:]}"]


def check_kinds(command, folder):
    """One node reads what each of many others made, on eight GPUs and a CPU: nothing may grow by the square of that."""
    buffers, nodes, _ = GRAPHS["a reader of many writers"]
    graph = folder / "g.json"
    graph.write_text(json.dumps({"gantry": 1, "buffers": buffers, "nodes": nodes}))
    got = run(command, ["schedule", str(graph), "--machine", "hgx-h200-8", "--effort", "0"], False)
    return [] if got.returncode == 0 else [f"devices of two kinds: {got.returncode}: {got.stderr.strip()[-300:]}"]


def check_load(command, folder):
    """What many nodes made of one value is read by one: the search for the least load counts what its moves visit."""
    many = 20000
    buffers = {"x": {"dtype": "f64", "shape": [1]}, "p": {"dtype": "f64", "shape": [many], "split": many}}
    nodes = [work("first", writes=["x"]), span("i", many, work("f[i]", reads=["x"], writes=["p[i]"])),
             work("last", reads=["p"])]
    graph = folder / "g.json"
    graph.write_text(json.dumps({"gantry": 1, "buffers": buffers, "nodes": nodes}))
    got = run(command, ["schedule", str(graph), "--machine", "host-4", "--objective", "max_load"], False)
    return [] if got.returncode == 0 else [f"least load: {got.returncode}: {got.stderr.strip()[-300:]}"]


def check_import(command, folder):
    """A task of 2,451 processors: as many devices, and a route between every two."""
    file, seconds = folder / "g.stg", 4
    file.write_text("1 2451\n1 1 0\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    got = run(command, ["import", "stg", str(file), "-o", str(folder / "imported.json")], False)
    taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    right = got.returncode == 0 and taken < seconds
    return [] if right else [f"many processors: {got.returncode} after {taken:.1f} s: {got.stderr.strip()[-300:]}"]


# of islands of eight GPUs: how many, policy ("": the default), seconds of a core
CLUSTERS = [(32, "", 12), (64, "partition", 6)]


def check_cluster(command, folder, islands, policy, seconds):
    """A part of a reduction for each GPU: nothing may grow by the cube of the devices."""
    file, gpus = folder / "cluster.json", islands * 8
    run(command, ["machine", "cluster", "--islands", f"{islands}x8", "-o", str(file)], False)
    graph = Path(__file__).resolve().parents[2] / "graphs" / "reduce_sum.json"
    words = ["schedule", str(graph), "--param", f"parts={gpus}", "--machine", str(file)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    got = run(command, words + (["--policy", policy] if policy else []), False)
    taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    right = got.returncode == 0 and taken < seconds
    return [] if right else [f"{gpus} GPUs: {got.returncode} after {taken:.1f} s: {got.stderr.strip()[-300:]}"]


def main():
    command, sanitized = sys.argv[1], "sanitized" in sys.argv[2:]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, graph in GRAPHS.items():
            wrong += check(command, Path(folder), name, graph, sanitized)
        for name, case in ON_MACHINES.items() if not sanitized else ():
            wrong += check_machine(command, Path(folder), name, case)
        wrong += check_kinds(command, Path(folder)) if not sanitized else []
        wrong += check_load(command, Path(folder)) if not sanitized else []
        wrong += check_import(command, Path(folder)) if not sanitized else []
        for case in CLUSTERS if not sanitized else ():
            wrong += check_cluster(command, Path(folder), *case)
    print("\n".join(wrong) if wrong else f"{len(GRAPHS)} files that ask for much")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
