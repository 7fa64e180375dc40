# SPDX-License-Identifier: Apache-2.0
"""The page of --html holds what the schedule file holds, a run's what its trace holds, and that of gantry diff what a comparison in
Python finds; it is one file of bounded size that refers to nothing outside.

check_page.py GANTRY SOURCE
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import page

MODES = ["", "read", "write", "readwrite", "sum", "min", "max", "prod"]
SPACES, ROLES = ["slab", "input", "output", "staging"], ["data", "accumulator", "persist", "external"]
CASES = [["cholesky.json", "--machine", "machines/dgx1-v100.json"], ["jacobi.json", "--devices", "3"], ["mlp_step.json", "--machine", "machines/hgx-h200-8.json"],
         ["reference/topcuoglu2002.json"], ["image_blur.json", "--devices", "4", "--policy", "heft"], ["heat_3d.json", "--devices", "2"],
         ["train_pipeline.json", "--devices", "2"]]


class Check:
    def __init__(self, gantry, source, folder):
        self.gantry, self.graphs, self.folder, self.wrong = gantry, source / "graphs", folder, []

    def run(self, *words):
        done = subprocess.run([self.gantry, *map(str, words)], cwd=self.graphs, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def equal(self, what, one, other):
        if one != other:
            pairs = zip(one, other) if isinstance(one, list) and isinstance(other, list) and len(one) == len(other) else [(one, other)]
            self.wrong.append(f"{what}: {next((a, b) for a, b in pairs if a != b)}"[:400])


def instance_of(schedule, i):
    """As the page has it: staging lies behind the slab of the first memory."""
    ids = [m["id"] for m in schedule["machine"]["memories"]]
    offset = i["offset"] + (schedule["slabs"][0] if i["space"] == "staging" else 0)
    return {"value": i["value"], "memory": ids.index(i["memory"]), "space": SPACES.index(i["space"]), "role": ROLES.index(i["role"]), "first": i["rows"][0],
            "rows": i["rows"][1] - i["rows"][0], "offset": offset, "bytes": i["bytes"]}


def compare_regions(c, name, part):
    """Each once, with no others, and no two of a name; all rows of a value are called as it is. check_model.py has the other names."""
    regions, instances = part["regions"], part["instances"]
    keys = {(i["value"], i["first"], i["first"] + i["rows"]) for i in instances} | {(instances[u[1]]["value"], u[2], u[3]) for uses in part["uses"] for u in uses}
    c.equal(f"{name}: regions", [(r["value"], r["first"], r["first"] + r["rows"]) for r in regions], sorted(keys))
    c.equal(f"{name}: names of regions", len({r["name"] for r in regions}), len(regions))
    for r in regions:
        value = part["values"][r["value"]]
        called = value["name"] + (f"@{value['generation']}" if value["generation"] else "")
        c.equal(f"{name}: {called}", [r["name"][:len(called)], r["name"] == called], [called, r["rows"] == value["rows"]])


def compare_schedule(c, name, part, s):
    c.equal(f"{name}: devices", [d["id"] for d in part["devices"]], [d["id"] for d in s["machine"]["devices"]])
    c.equal(f"{name}: nodes", part["nodes"], s["nodes"])
    c.equal(f"{name}: makespan, bound", [part["makespan"], part["bound"]], [s["makespan_ps"], s["bound_ps"]])
    c.equal(f"{name}: values", [(v["name"], v["rows"]) for v in part["values"] if not v["generation"]], [(v["name"], v["rows"]) for v in s["values"] if "name" in v])
    c.equal(f"{name}: instances", part["instances"], [instance_of(s, i) for i in s["instances"]])
    c.equal(f"{name}: lanes", [(part["devices"][q["device"]]["id"], ["compute", "copy", "collective"][q["kind"]]) for q in part["queues"]],
            [(lane["device"], lane["kind"]) for lane in s["lanes"]])
    ops = s["ops"]
    c.equal(f"{name}: kinds", part["kind"], [o["kind"] for o in ops])
    c.equal(f"{name}: nodes of ops", [part["nodes"][n] if n >= 0 else None for n in part["node"]], [o.get("node") for o in ops])
    c.equal(f"{name}: iterations", part["iteration"], [o.get("iteration", 0) for o in ops])
    c.equal(f"{name}: repeats", part["repeat"], [int(o.get("repeat", False)) for o in ops])
    c.equal(f"{name}: lanes of ops", part["lanes"], [o["lanes"] if "lanes" in o else [o["lane"]] if "lane" in o else [] for o in ops])
    c.equal(f"{name}: times", part["ps"], [o["ps"] for o in ops])
    c.equal(f"{name}: uses", [[[MODES[u[0]], *u[1:]] for u in uses] for uses in part["uses"]], [[u[:4] for u in o["uses"]] for o in ops])
    compare_regions(c, name, part)
    waits = collections.defaultdict(list)
    for row in s["sync"]:
        if not row.get("distance"):
            waits[row["to"]].append((row["from"], row["why"]))
    c.equal(f"{name}: waits", part["waits"], [waits[i] for i in range(len(ops))])


def check_text(c, name, text):
    """The page is one file: no address in it, nothing that would load something, and it says so to the browser."""
    if found := re.search(r"https?://(?!')|\bsrc=|@import|url\(|<link|import\(|XMLHttpRequest", text):
        c.wrong.append(f"{name}: has {found.group()!r}")
    c.equal(f"{name}: asks only whoever sent it (gantry serve)", set(re.findall(r"fetch\([^,)]*", text)), {"fetch(path", "fetch('.'"})
    c.equal(f"{name}: ASCII, so that any server and disk may have it", text.isascii() or "<title>" in text, True)
    c.equal(f"{name}: policy of the page", re.findall(r'Policy" content="([^"]*)"', text),
            ["default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"])


def check_schedules(c):
    for words in CASES:
        name = words[0]
        c.run("schedule", *words, "-o", c.folder / "s.json", "--html", c.folder / "p.html")
        parts, text = page.read(c.folder / "p.html")
        c.equal(f"{name}: parts", [p["title"] for p in parts], ["predicted"])
        compare_schedule(c, name, parts[0], json.loads((c.folder / "s.json").read_text()))
        check_text(c, name, text)


def compare_run(c, name, schedule, process, *words):
    c.run("run", name, *words, "--html", c.folder / "r.html", "--trace", c.folder / "t.json", "--output-schedule", c.folder / "s.json")
    parts, _ = page.read(c.folder / "r.html")
    c.equal("run: parts", [p["title"] for p in parts], ["predicted", "measured"])
    compare_schedule(c, f"run {name}", parts[0], schedule(json.loads((c.folder / "s.json").read_text())))
    events = {e["args"]["op"]: [round(e["ts"] * 1000), round(e["ts"] * 1000) + round(e["dur"] * 1000)]
              for e in json.loads((c.folder / "t.json").read_text())["traceEvents"] if e["ph"] == "X" and e["pid"] == process}
    c.equal(f"run {name}: measured", parts[1]["ns"], [events[i] for i in range(parts[1]["count"])])


def check_run(c):
    compare_run(c, "jacobi.json", lambda s: s, 0, "--devices", 3)
    compare_run(c, "pagerank.json", lambda s: s["phases"][1]["schedule"], 2, "--devices", 2, "--phase", 1)


def key_of(s, op):
    """What an op does, wherever it is."""
    if "node" in op:
        return op["kind"], op["node"], op.get("iteration", 0), op.get("repeat", False)
    use = op["uses"][-1 if op["kind"] == "collective" else 0]
    return op["kind"], s["instances"][use[1]]["value"], use[2], use[3]


def device_of(s, op):
    return s["lanes"][op.get("lane", op.get("lanes", [0])[0])]["device"]


def busy_of(s, device):
    """Time during which it computes, by sorting starts and ends."""
    edges = []
    for op in s["ops"]:
        if op["kind"] not in ("copy", "evict", "fetch", "collective") and ("lane" in op or "lanes" in op) and device_of(s, op) == device:
            edges += [(op["ps"][1], 1), (op["ps"][2], -1)]
    total = level = last = 0
    for time, step in sorted(edges, key=lambda e: (e[0], -e[1])):
        total += time - last if level else 0
        level, last = level + step, time
    return total / 1e6


def compare_diff(c, name, a, b, said, parts):
    counts = [collections.Counter(key_of(s, op) for op in s["ops"]) for s in (a, b)]
    c.equal(f"{name}: pairs", said["pairs"], (counts[0] & counts[1]).total())
    c.equal(f"{name}: removed, added", [len(said["removed"]), len(said["added"])], [(counts[0] - counts[1]).total(), (counts[1] - counts[0]).total()])
    for k, s in enumerate((a, b)):
        for d in s["machine"]["devices"]:
            busy, idle = (said["devices"][d["id"]][key][k] for key in ("busy_us", "idle_us"))
            c.equal(f"{name}: busy {d['id']}", [round(busy, 6), round(idle, 6)], [round(busy_of(s, d["id"]), 6), round(s["makespan_ps"] / 1e6 - busy_of(s, d["id"]), 6)])
    # Nodes with one op in each: which moved follows from the files alone.
    single = {key: [next(op for op in s["ops"] if key_of(s, op) == key) for s in (a, b)] for key in counts[0] & counts[1] if key[0] == "launch" and key[2] == 0 and counts[0][key] == counts[1][key] == 1}
    moved = {key[1] for key, (one, other) in single.items() if device_of(a, one) != device_of(b, other)}
    c.equal(f"{name}: moved", {m["op"] for m in said["moved"]} & {key[1] for key in single}, moved)
    match = parts[1]["match"]
    pairs = [(m, i) for i, m in enumerate(match) if m >= 0]
    c.equal(f"{name}: no op is in two pairs", len({m for m, _ in pairs}), len(pairs))
    c.equal(f"{name}: pairs do the same", [key_of(a, a["ops"][m]) for m, _ in pairs], [key_of(b, b["ops"][i]) for _, i in pairs])
    c.equal(f"{name}: pairs of the page", len(pairs), said["pairs"])
    took = {i: [(op["ps"][2] - op["ps"][1]) / 1e6 for op in (a["ops"][m], b["ops"][i])] for m, i in pairs}
    changes = {i: us for i, us in took.items() if us[0] != us[1]}
    c.equal(f"{name}: changed", {op["position"]: [round(us, 6) for us in op["took_us"]] for op in said["changed"]}, {i: [round(x, 6) for x in us] for i, us in changes.items()})
    sizes = [abs(op["took_us"][1] - op["took_us"][0]) for op in said["changed"]]
    c.equal(f"{name}: the largest change first", all(x >= y - 1e-6 for x, y in zip(sizes, sizes[1:])), True)


def with_times(s, trace, process):
    """The schedule with the times that a trace has measured, in ps; the first start is 0."""
    spans = {e["args"]["op"]: (round(e["ts"] * 1e3), round(e["dur"] * 1e3)) for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == process}
    first = min(start for start, _ in spans.values())
    ops = [op | {"ps": [op["ps"][0], 1000 * (spans[i][0] - first), 1000 * (spans[i][0] - first + spans[i][1])]} for i, op in enumerate(s["ops"])]
    return s | {"ops": ops, "makespan_ps": max(op["ps"][2] for op in ops)}


def check_runs(c):
    """Two runs of one schedule, and of two; a phase."""
    for graph, phase, part, words in (("jacobi.json", [], lambda s: s, [(2, "heft"), (2, "heft"), (3, "heft")]), ("pagerank.json", ["--phase", 1], lambda s: s["phases"][1]["schedule"], [(2, "heft")] * 2)):
        runs = []
        for i, (devices, policy) in enumerate(words):
            s, t = c.folder / f"s{i}.json", c.folder / f"t{i}.json"
            c.run("schedule", graph, "--devices", devices, "--policy", policy, "-o", s)
            c.run("run", graph, "--backend", "host", "--schedule", s, "--trace", t)
            runs.append((s, t, with_times(part(json.loads(s.read_text())), json.loads(t.read_text()), 2 if phase else 0)))
        for one, other in zip(runs, runs[1:]):
            name, words = f"runs of {graph}", [one[0], other[0], "--measured", one[1], "--measured", other[1], *phase]
            said = json.loads(c.run("diff", *words, "--json", "--html", c.folder / "d.html"))
            parts, text = page.read(c.folder / "d.html")
            check_text(c, name, text)
            compare_diff(c, name, one[2], other[2], said, parts)
            for of, s, side in zip(parts, (one[2], other[2]), ("first", "second")):
                c.equal(f"{name}: times", of["ps"], [op["ps"] for op in s["ops"]])
                c.equal(f"{name}: {side}", [said[side]["policy"], said[side]["makespan_us"]], ["heft, measured", s["makespan_ps"] / 1e6])


def check_diff(c):
    files = []
    for i, words in enumerate((["--devices", "4"], ["--devices", "4", "--policy", "heft"], ["--devices", "2"])):
        files.append(c.folder / f"{i}.json")
        c.run("schedule", "cholesky.json", "--machine", "machines/hgx-h200-8.json", *words, "-o", files[-1])
    for one, other in ((0, 1), (1, 0), (0, 2), (1, 1)):
        a, b = (json.loads(files[i].read_text()) for i in (one, other))
        said = json.loads(c.run("diff", files[one], files[other], "--json", "--html", c.folder / "d.html"))
        parts, text = page.read(c.folder / "d.html")
        compare_diff(c, f"diff {one} {other}", a, b, said, parts)
        check_text(c, "diff", text)
        if one == other:
            c.equal("no difference", [said["moved"], said["added"], said["removed"]], [[], [], []])
        text = c.run("diff", files[one], files[other])
        for key, what in (("added", "added"), ("removed", "removed")):
            copies = sum("copy " in op["op"] for op in said[key])
            c.equal(f"diff {one} {other}: {what} as text", f"\n{len(said[key]):,} ops {what}, {copies} of them copies; they move " in text, True)
        c.equal(f"diff {one} {other}: moved as text", f"\n{len(said['moved'])} of {said['pairs']:,} pairs of ops are on other devices" in text, True)
        c.equal(f"diff {one} {other}: units of all reports", "µs" in text, False)
        c.equal(f"diff {one} {other}: makespan as text", f"makespan {'+' if b['makespan_ps'] > a['makespan_ps'] else ''}{100 * (b['makespan_ps'] / a['makespan_ps'] - 1):.2f}".rstrip("0").rstrip(".") in text, True)


def check_size(c):
    """So many bytes an op that 100,000 ops are 5 MB at most."""
    c.run("schedule", "../tests/bench/layered.json", "--machine", "machines/dgx1-v100.json", "--param", "layers=60", "--policy", "heft", "--effort", 0, "--html", c.folder / "l.html")
    parts, text = page.read(c.folder / "l.html")
    each = ((c.folder / "l.html").stat().st_size - len(text)) / parts[0]["count"]
    c.equal(f"{each:.1f} bytes an op", each * 1e5 + len(text) <= 5e6 and parts[0]["count"] > 15000, True)
    print(f"{parts[0]['count']} ops: {each:.1f} bytes an op, and {len(text)} of the viewer")


def main(gantry, source):
    with tempfile.TemporaryDirectory(prefix="gantry-page-") as folder:
        c = Check(gantry, pathlib.Path(source), pathlib.Path(folder))
        for check in (check_schedules, check_run, check_diff, check_runs, check_size):
            check(c)
    print("\n".join(c.wrong) or "pages hold what schedules, traces and comparisons do")
    return 1 if c.wrong else 0


sys.exit(main(*sys.argv[1:]))
