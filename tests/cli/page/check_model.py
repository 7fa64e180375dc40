# SPDX-License-Identifier: Apache-2.0
"""What the page's logic makes of a schedule, run by node: names of ops are those of the Chrome trace, busy times those of the report, the chain
back from the last op is the critical path that the library finds, causes and lives of instances follow from the schedule file, and sums over
ranges of ops are what adding one by one gives. Exit code 77: there is no node.

check_model.py GANTRY SOURCE
"""
import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import page

NODE = next(filter(None, map(shutil.which, ("node", "nodejs"))), None)
CASES = [["cholesky.json", "--machine", "machines/dgx1-v100.json"], ["jacobi.json", "--devices", "4", "--machine", "machines/hgx-h200-8.json"],
         ["mlp_step.json", "--machine", "machines/hgx-h200-8.json"], ["reference/topcuoglu2002.json"], ["image_blur.json", "--devices", "4", "--policy", "heft"],
         ["../tests/bench/layered.json", "--machine", "machines/dgx1-v100.json", "--param", "layers=20", "--policy", "heft", "--effort", "0"]]


class Check:
    def __init__(self, gantry, source, folder):
        self.gantry, self.source, self.folder, self.wrong = gantry, pathlib.Path(source), pathlib.Path(folder), []

    def run(self, *words):
        done = subprocess.run([self.gantry, *map(str, words)], cwd=self.source / "graphs", capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def model(self, name):
        done = subprocess.run([NODE, pathlib.Path(__file__).with_name("model.js"), self.source, self.folder / name], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def equal(self, what, one, other):
        if one != other:
            pairs = zip(one, other) if isinstance(one, list) and isinstance(other, list) and len(one) == len(other) else [(one, other)]
            self.wrong.append(f"{what}: {next((a, b) for a, b in pairs if a != b)}"[:400])

    def expect(self, what, fine):
        if not fine:
            self.wrong.append(what)


def compare_causes(c, name, told, part):
    """The cause is the last to end of what the op waits for and of what is before it in its lanes; of what is held up it is the inverse."""
    before, held = {}, collections.defaultdict(list)
    for i, (_, start, _) in enumerate(part["ps"]):
        ends = [part["ps"][k][2] for k, _ in part["waits"][i]]
        if not part["joined"][i]:
            ends += [part["ps"][before[lane]][2] for lane in part["lanes"][i] if lane in before]
        before |= dict.fromkeys(part["lanes"][i], i)
        cause = told["cause"][i]
        if cause >= 0:
            held[cause].append(i)
            end = part["ps"][cause][2]
            c.expect(f"{name}: op {i} waits for {cause}, which does not end last", part["joined"][i] or end == max(ends, default=-1) or end == start)
        c.expect(f"{name}: op {i} begins before its cause ends", told["slack"][i] >= 0)
    c.equal(f"{name}: held up", told["held"], [held[i] for i in range(part["count"])])
    seen = [0]
    for op in seen:
        seen += held[op]
    c.equal(f"{name}: held up in all", told["all"], len(seen) - 1)


def compare_rows(c, name, told, part):
    by_lane = collections.defaultdict(list)
    for i, lanes in enumerate(part["lanes"]):
        for lane in lanes:
            by_lane[lane].append(i)
    c.equal(f"{name}: rows", sorted((r["lane"], sorted(r["ops"])) for r in told["rows"]), sorted(by_lane.items()))
    for row in told["rows"]:
        spans, total, reach = [part["ps"][op][1:] for op in row["ops"]], 0, 0
        for k, (start, end) in enumerate(spans):
            total, reach = total + end - start, max(reach, end)
            c.expect(f"{name}: sums of lane {row['lane']} at {k}", row["start"][k] == start and row["busy"][k + 1] == total and row["reach"][k] == reach)
        c.expect(f"{name}: lane {row['lane']} in order", row["start"] == sorted(row["start"]))


def compare_levels(c, name, told, part):
    """The class of a range of up to 16 ops is that of the longest; of a wider one it is at least a class in it, and the only one if there is one."""
    ops = next(r["ops"] for r in told["rows"] if r["lane"] == told["longest"])
    for first, last, of in told["ranges"]:
        classes = {told["classes"][op] for op in ops[first:last]}
        c.expect(f"{name}: class {of} of ops {first} to {last}, which has {classes}", of in classes or last - first >= 32)
        if last - first < 32:
            most = max(part["ps"][op][2] - part["ps"][op][1] for op in ops[first:last])
            c.expect(f"{name}: class of the longest in {first} to {last}", of in {told["classes"][op] for op in ops[first:last] if part["ps"][op][2] - part["ps"][op][1] == most})


def compare_lives(c, name, told, part):
    lives = [[part["makespan"], -1] if i["role"] != 2 else [0, part["makespan"]] for i in part["instances"]]
    for (_, start, end), uses in zip(part["ps"], part["uses"]):
        for _, at, _, _ in uses:
            if part["instances"][at]["role"] != 2:
                lives[at] = [min(lives[at][0], start), max(lives[at][1], end)]
    used = [i for i, (_, last) in enumerate(lives) if last >= 0]
    c.equal(f"{name}: lives", [[told["lives"]["from"][i], told["lives"]["to"][i]] for i in used], [lives[i] for i in used])


def check_schedules(c):
    for words in CASES:
        name = words[0]
        report = json.loads(c.run("schedule", *words, "--json", "--html", c.folder / "p.html", "--trace", c.folder / "t.json"))
        (told,), ((part,), _) = c.model("p.html"), page.read(c.folder / "p.html")
        names = {e["args"]["position"]: e["name"] for e in json.loads((c.folder / "t.json").read_text())["traceEvents"] if e["ph"] == "X"}
        c.equal(f"{name}: names", [told["names"][i] for i in sorted(names)], [names[i] for i in sorted(names)])
        for device, at in zip(told["devices"], told["idle"]):
            c.expect(f"{name}: busy {device}", abs(at["busy"] / 1e6 - report["busy_us"][device]) < 1e-6)
            c.expect(f"{name}: idle {device}: {at}", abs(at["busy"] + sum(at["idle"].values()) - told["makespan"]) < 1 and min(at["idle"].values()) >= 0)
        c.equal(f"{name}: critical path", sorted([told["last"], *told["back"]]), [i for i, on in enumerate(told["critical"]) if on])
        c.equal(f"{name}: hits", sorted(told["hits"]), [i for i, n in enumerate(part["node"]) if n >= 0 and "gemm" in part["nodes"][n].lower()])
        compare_causes(c, name, told, part)
        compare_rows(c, name, told, part)
        compare_levels(c, name, told, part)
        compare_lives(c, name, told, part)
        c.equal(f"{name}: copies of links", sum(link["ops"] for link in told["links"]), sum(
            part["kind"][i] in ("copy", "evict", "fetch") and len({part["instances"][u[1]]["memory"] for u in part["uses"][i][:2]}) > 1 for i in range(part["count"])))


def check_pairs(c):
    """A run's two timelines have each other's ops; of a difference, partners are symmetric."""
    c.run("run", "jacobi.json", "--devices", 3, "--backend", "host", "--html", c.folder / "r.html")
    predicted, measured = c.model("r.html")
    c.equal("run: partners", [predicted["partner"], measured["partner"]], [list(range(len(predicted["names"])))] * 2)
    for at in measured["idle"]:
        c.expect(f"measured: {at}", abs(at["busy"] + sum(at["idle"].values()) - measured["makespan"]) < 1 and min(at["idle"].values()) >= 0)
    for i, policy in enumerate(("heft", "heft-links")):
        c.run("schedule", "cholesky.json", "--machine", "machines/dgx1-v100.json", "--policy", policy, "-o", c.folder / f"{i}.json")
    c.run("diff", c.folder / "0.json", c.folder / "1.json", "--html", c.folder / "d.html")
    one, other = c.model("d.html")
    edges = [0.5, 0.7, 0.87, 1 / 1.03, 1.03, 1.15, 1.4, 2]
    for b, a in enumerate(other["partner"]):
        ratio = other["took"][b] / one["took"][a] if a >= 0 and one["took"][a] > 0 else 1
        c.equal(f"diff: class of {ratio}", other["against"][b], sum(ratio >= edge for edge in edges))
        c.equal("diff: partners have one class", a < 0 or one["against"][a] == other["against"][b], True)
    c.expect("diff: some op takes another time", len(set(other["against"])) > 1)
    c.equal("diff: partners", sorted((a, b) for a, b in enumerate(one["partner"]) if b >= 0), sorted((a, b) for b, a in enumerate(other["partner"]) if a >= 0))


def main(gantry, source):
    if not NODE:
        print("skipped: no node")
        return 77
    with tempfile.TemporaryDirectory(prefix="gantry-model-") as folder:
        c = Check(gantry, source, folder)
        check_schedules(c)
        check_pairs(c)
    print("\n".join(c.wrong[:40]) or "the page's logic agrees with files, traces and reports")
    return 1 if c.wrong else 0


sys.exit(main(*sys.argv[1:]))
