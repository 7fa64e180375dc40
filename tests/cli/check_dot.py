# SPDX-License-Identifier: Apache-2.0
"""`gantry dot` on tiled Cholesky factorisations, read back by Graphviz: nodes, arrows, families and neighbourhoods are those that follow
from the loops of the textbook, written down again here; pictures of 10, 100 and 1,000 nodes are small enough to look at; a name has
one colour in pictures of graphs, schedules and timelines.

check_dot.py GANTRY
"""
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def cholesky(nt):
    """The nodes in their order, each with the tile that it writes and those that it reads."""
    for k in range(nt):
        yield f"potrf[{k}]", (k, k), []
        for i in range(k + 1, nt):
            yield f"trsm[{i},{k}]", (i, k), [(k, k)]
        for i in range(k + 1, nt):
            yield f"syrk[{i},{k}]", (i, i), [(i, k)]
            for j in range(k + 1, i):
                yield f"gemm[{i},{j},{k}]", (i, j), [(i, k), (j, k)]


def dependencies(nt):
    last, pairs = {}, set()
    for name, writes, reads in cholesky(nt):
        pairs |= {(last[tile], name) for tile in [writes, *reads] if tile in last}
        last[writes] = name
    return pairs


class Picture:
    def __init__(self, gantry, *words):
        done = subprocess.run([gantry, "dot", "cholesky", *map(str, words)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        self.dot = done.stdout
        laid = subprocess.run(["dot", "-Tjson"], input=self.dot, capture_output=True, text=True, timeout=120)
        assert laid.returncode == 0 and not laid.stderr, laid.stderr
        graph = json.loads(laid.stdout)
        self.title = re.sub("<[^>]*>", " ", graph["label"])
        self.size = [float(x) for x in graph["bb"].split(",")][2:]
        nodes = [o for o in graph["objects"] if "nodes" not in o and "shape" in o]
        name = {o["_gvid"]: o["label"].split("\\n")[0] for o in nodes}
        self.boxes = {name[o["_gvid"]] for o in nodes if o["shape"] != "cylinder"}
        self.colours = {name[o["_gvid"]]: o["fillcolor"] for o in nodes}
        self.bold = {name[o["_gvid"]] for o in nodes if o.get("penwidth")}
        self.arrows = {(name[e["tail"]], name[e["head"]]) for e in graph.get("edges", [])}
        self.between = {(a, b) for a, b in self.arrows if a in self.boxes and b in self.boxes}
        self.clusters = {o["label"]: {name[n] for n in o.get("nodes", [])} for o in graph["objects"] if o["name"].startswith("cluster")}


def families(names):
    """"gemm[*] × 816" of all that have it; a node that is alone keeps its name."""
    groups = {stem: list(of) for stem, of in itertools.groupby(sorted(names), lambda n: n.split("[")[0])}
    return {name: f"{stem}[*] × {len(of):,}" if len(of) > 1 else of[0] for stem, of in groups.items() for name in of}


def plain(gantry):
    for nt in (1, 2, 3, 4):
        picture = Picture(gantry, "--param", f"nt={nt}")
        assert picture.boxes == {name for name, _, _ in cholesky(nt)}, picture.boxes
        assert picture.between == dependencies(nt), picture.between ^ dependencies(nt)
        assert "boxes" not in picture.title and not picture.bold
        assert ("A", "potrf[0]") in picture.arrows


def folded(gantry):
    for nt, words in ((16, []), (4, ["--max-nodes", 5]), (2, ["--max-nodes", 3])):
        picture, name = Picture(gantry, "--param", f"nt={nt}", *words), families([n for n, _, _ in cholesky(nt)])
        assert picture.boxes == set(name.values()), picture.boxes
        assert picture.between == {(name[a], name[b]) for a, b in dependencies(nt)}, picture.between
        assert f"{len(picture.boxes)} boxes: nodes whose ids differ" in picture.title, picture.title
    all_of_them = Picture(gantry, "--param", "nt=8", "--max-nodes", 120)
    assert len(all_of_them.boxes) == 120 and "boxes" not in all_of_them.title


def neighbourhoods(gantry, nt=5):
    pairs, start = dependencies(nt), "trsm[3,1]"
    near = {start}
    for distance in range(4):
        picture = Picture(gantry, "--param", f"nt={nt}", "--node", f"{start}~{distance}")
        assert picture.boxes == near, (distance, picture.boxes ^ near)
        assert picture.between == {(a, b) for a, b in pairs if a in near and b in near}
        assert picture.bold == {start} and f"{len(near)} of 35 nodes" in picture.title, picture.title
        near |= {b for a, b in pairs if a in near} | {a for a, b in pairs if b in near}
    assert Picture(gantry, "--param", f"nt={nt}", "--node", start).boxes == Picture(gantry, "--param", f"nt={nt}", "--node", f"{start}~1").boxes


def clusters(gantry):
    words = ["--param", "nt=4", "--devices", 2]
    placed = json.loads(subprocess.run([gantry, "run", "cholesky", "--param", "n=64", *map(str, words), "--backend", "sim", "--json"], capture_output=True,
                                       text=True, check=True).stdout)["placement"]
    picture = Picture(gantry, "--param", "n=64", *words, "--cluster", "device")
    want = {}
    for name, device in placed.items():
        want.setdefault(device, set()).add(name)
    assert picture.clusters == want, (picture.clusters, want)
    picture = Picture(gantry, "--param", "nt=4", "--cluster", "family")
    want = {}
    for name, _, _ in cholesky(4):
        want.setdefault(name.split("[")[0] + "[*]", set()).add(name)
    assert picture.clusters == want, picture.clusters


def sizes(gantry):
    for nt, least in ((3, 10), (7, 80), (8, 100), (17, 900)):
        nodes = len(list(cholesky(nt)))
        picture = Picture(gantry, "--param", f"nt={nt}")
        width, height = (points / 72 for points in picture.size)
        print(f"{nodes} nodes: {len(picture.boxes)} boxes, {width:.1f} x {height:.1f} inches")
        assert nodes >= least and len(picture.boxes) <= 100 and width <= 60 and height <= 60


def colours(gantry, folder):
    svg, schedule = folder / "t.svg", folder / "s.json"
    words = ["cholesky", "--param", "nt=4", "--devices", "2"]
    subprocess.run([gantry, "schedule", *words, "--svg", svg, "-o", schedule], capture_output=True, check=True)
    graph = {name.split("[")[0]: colour for name, colour in Picture(gantry, "--param", "nt=4").colours.items()}
    small = {name.split("[")[0]: colour for name, colour in Picture(gantry, "--param", "nt=1").colours.items()}
    placed = subprocess.run([gantry, "dot", schedule], capture_output=True, text=True, check=True).stdout
    placed = dict(re.findall(r'op\d+ \[label="(\w+)\[[^"]*", shape=box, fillcolor="(#\w+)"', placed))
    timeline = dict((name, fill) for fill, name in re.findall(r'fill="(#\w+)" stroke="[^"]*" x="[^"]*" y="[^"]*"/><text class="row"[^>]*>(\w+)<', svg.read_text()))
    for kernel in ("potrf", "trsm", "syrk", "gemm"):
        assert graph[kernel] == placed[kernel] == timeline[kernel], (kernel, graph, placed, timeline)
    assert len({graph[kernel] for kernel in ("potrf", "trsm", "syrk", "gemm")}) == 4
    assert small["potrf"] == Picture(gantry, "--param", "nt=2").colours["potrf[0]"]  # whatever else is there


def refused(gantry, folder):
    for words, said in [(["cholesky", "--node", "gemm[2,1,0]~x"], "behind the ~ it takes a whole number from 0 to 100"), (["cholesky", "--node", "gemn[2,1,0]"], "did you mean"),
                        (["cholesky", "--cluster", "kernel"], "it must be device or family"), ([folder / "s.json", "--max-nodes", "3"], "are for graphs"),
                        (["cholesky", "--max-nodes", "0"], "it takes a whole number from 1")]:
        done = subprocess.run([gantry, "dot", *words], capture_output=True, text=True)
        assert done.returncode == 2 and said in done.stderr and not done.stdout, (words, done)


def main(gantry):
    if not shutil.which("dot"):
        print("skipped: dot of Graphviz is not installed")
        sys.exit(77)
    plain(gantry)
    folded(gantry)
    neighbourhoods(gantry)
    sizes(gantry)
    with tempfile.TemporaryDirectory() as folder:
        clusters(gantry)
        colours(gantry, pathlib.Path(folder))
        refused(gantry, pathlib.Path(folder))


main(sys.argv[1])
