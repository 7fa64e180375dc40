# SPDX-License-Identifier: Apache-2.0
"""Names that try to be something else: script in pages, markup in pictures, statements in DOT, escape sequences on a
terminal. Pages and pictures are read by the parsers of Python's library, and must be made of the same elements and
attributes as those of a harmless graph; DOT by Graphviz; whatever the command prints must be plain text."""
import copy
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

SCRIPT = "</script><script>alert(1)</script>"
TAG = "\"><img src=x onerror=alert(2)>"
NAMES = [SCRIPT, TAG, "' onload='alert(3)", "]]><!--", "&lt;b&gt;&#60;i&#62;&quot;", "a\"]; evil [label=\"", "\\N\\\"\\", "%s%n{{7*7}}`$(id)`"]
HARMLESS = [f"name{i}" for i in range(len(NAMES))]
BUFFERS = ["<svg/onload=alert`4`>", "</title><b>", "--><h1>x</h1>", "&quot;'", "x;evil->y"]
# Everything but line feeds that does something to a terminal or turns text round.
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
EVIL = ["\x1b[2J\x1b]0;owned\x07", "\u009b2J", "a\r\nerror: \u202etxt.exe"]


def machine(names):
    """Its ids are words of letters, digits and the like; the rest is free text."""
    memories = [{"id": id, "capacity": "1GiB"} for id in ("host", "m0", "m1")]
    devices = [{"id": f"d{i}", "kind": "kind", "type": "gpu", "memory": f"m{i}", "gflops": {"f32": 10}, "bandwidth_gbs": 100} for i in range(2)]
    routes = [{"from": "host", "to": ["m0", "m1"], "both": True, "latency_us": 1, "bandwidth_gbs": 10}]
    return {"gantry_machine": 1, "name": names[7], "source": names[0], "notes": [names[1]], "memories": memories, "devices": devices, "routes": routes}


def graph(names, buffers):
    of = {name: {"dtype": "f32", "shape": [4096], "split": 2, "init": 1} for name in buffers[:2]}
    of[buffers[2]] = {"dtype": "f32", "shape": [4096], "split": 2, "output": True}
    of[buffers[3]] = {"dtype": "f32", "shape": [1], "init": 0, "output": True}
    nodes = []
    for i in range(2):
        nodes.append({"id": names[i], "kernel": "scale", "args": {"a": 2, "x": f"{buffers[0]}[{i}]", "y": f"{buffers[2]}[{i}]"}, "on": f"d{i}"})
        nodes.append({"id": names[i + 2], "kernel": "reduce_sum", "args": {"x": f"{buffers[2]}[{i}]", "out": buffers[3]}, "after": names[i]})
    nodes.append({"id": names[4], "work": {}, "cost": {"time_us": {"kind": 3}}, "reads": [buffers[1]], "with": names[1]})
    return {"gantry": 1, "name": names[0], "machine": machine(names), "buffers": of, "nodes": nodes}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.scripts, self.open = [], [], [], None

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, tuple(sorted(name for name, _ in attributes))))
        self.open = "data" if ("type", "text/plain") in attributes else tag

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if self.open == "data":  # base64, of which no part can end the element
            data = "data" if re.fullmatch(r"[A-Za-z0-9+/]+=*", data) else data
        (self.scripts if self.open in ("script", "data") else self.texts).append(data)


def read_page(text):
    page = Page()
    page.feed(text)
    page.close()
    return page.elements, page.scripts, page.texts


def read_picture(text):
    root = ET.fromstring(text)
    return [(e.tag, tuple(sorted(e.keys()))) for e in root.iter()], [], [e.text or "" for e in root.iter()]


class Command:
    def __init__(self, path, folder):
        self.path, self.folder, self.wrong, self.calls = path, folder, [], 0

    def __call__(self, *words, text=None):
        done = subprocess.run([self.path, *map(str, words)], cwd=self.folder, capture_output=True, input=text, timeout=120)
        self.calls += 1
        for name, out in (("output", done.stdout), ("errors", done.stderr)):
            try:
                said = out.decode()
            except UnicodeDecodeError as e:
                self.wrong.append(f"{words}: {name} is not UTF-8: {e}")
                continue
            if found := CONTROL.search(said):
                self.wrong.append(f"{words}: {name} has {found.group()!r}: {said[max(0, found.start() - 80):found.end() + 40]!r}")
        if done.returncode < 0 or done.returncode > 5:
            self.wrong.append(f"{words}: exit code {done.returncode}")
        return done

    def fine(self, *words, **more):
        done = self(*words, **more)
        if done.returncode:
            self.wrong.append(f"{words}: {done.returncode}: {done.stderr.decode()}")
        return done.stdout.decode()


def write(path, value):
    path.write_text(json.dumps(value))
    return path


def draw(gantry, folder, stem, names, buffers):
    """The files and texts of one graph, the schedule among them."""
    g = write(folder / f"{stem}.json", graph(names, buffers))
    m = write(folder / f"{stem}.machine.json", machine(names))
    out = {kind: folder / f"{stem}.{kind}" for kind in ("svg", "html", "dot", "trace", "schedule")}
    gantry.fine("schedule", g, "--svg", out["svg"], "--html", out["html"], "--dot", out["dot"], "--trace", out["trace"], "-o", out["schedule"])
    texts = {kind: path.read_text() for kind, path in out.items() if path.exists()}
    texts["graph.dot"] = gantry.fine("dot", g)
    texts["report"] = gantry.fine("schedule", g, "--json")
    texts["machine"] = gantry.fine("machine", m, "--json")
    for words in (["check", g, out["schedule"]], ["machine", m], ["compare", g], ["schedule", g, "--explain", names[0]], ["dot", out["schedule"]]):
        gantry.fine(*words)
    gantry("run", g, "--backend", "sim")
    return texts


def compare_drawings(gantry, folder):
    evil, plain = (draw(gantry, folder, stem, names, buffers) for stem, names, buffers in (("evil", NAMES, BUFFERS), ("plain", HARMLESS, ["v", "w", "x", "y", "z"])))
    wrong = []
    for kind, read in (("html", read_page), ("svg", read_picture)):
        elements, scripts, texts = read(evil[kind])
        ours, our_scripts, _ = read(plain[kind])
        # Labels that do not fit are left out, so there may be fewer elements; there are no others.
        wrong += [f"{kind}: has {e}, which the picture of a harmless graph has not" for e in sorted(set(elements) - set(ours))]
        wrong += [f"{kind}: attribute {a} of {tag}" for tag, names in elements for a in names if a.startswith("on")]
        if scripts != our_scripts:
            wrong.append(f"{kind}: its scripts are others than those of a harmless graph")
        if not any(SCRIPT in text for text in texts):
            wrong.append(f"{kind}: the name {SCRIPT} is not shown as it is")
    for kind in ("trace", "report", "machine", "schedule"):
        if SCRIPT not in json.dumps(json.loads(evil[kind]), ensure_ascii=False):
            wrong.append(f"{kind}: the name {SCRIPT} is not in it")
    for kind in ("dot", "graph.dot"):
        if shutil.which("dot"):
            read = [json.loads(subprocess.run(["dot", "-Tdot_json"], input=text[kind].encode(), capture_output=True, check=True).stdout) for text in (evil, plain)]
            counts = [(len(r.get("objects", [])), len(r.get("edges", []))) for r in read]
            keys = [{key for o in r.get("objects", []) + r.get("edges", []) for key in o} for r in read]
            if counts[0] != counts[1] or keys[0] != keys[1]:
                wrong.append(f"{kind}: {counts[0]} nodes and edges, and {counts[1]} of a harmless graph; {keys[0] ^ keys[1]}")
    return wrong


def places(value, path=()):
    """Every string and key in a document."""
    if isinstance(value, str):
        yield path, False
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(key, str):
            yield path + (key,), True
        yield from places(item, path + (key,))


def damaged(document, path, is_key, evil):
    document = copy.deepcopy(document)
    at = document
    for step in path[:-1]:
        at = at[step]
    if is_key:
        at[path[-1] + evil] = at.pop(path[-1])
    else:
        at[path[-1]] += evil
    return document


def try_terminal(gantry, folder):
    g, m = graph(HARMLESS, ["v", "w", "x", "y", "z"]), machine(HARMLESS)
    good = write(folder / "good.json", g)
    s = json.loads(gantry.fine("schedule", good, "-o", "-"))
    for document, file, calls in ((g, "g.json", [["schedule"], ["dot"], ["run", "--backend", "sim"]]), (m, "m.json", [["machine"], ["schedule", good, "--machine"]]),
                                  (s, "s.json", [["check", good], ["dot"]])):
        for number, (path, is_key) in enumerate(places(document)):
            if document is s and number % 7:
                continue
            for evil in EVIL:
                write(folder / file, damaged(document, path, is_key, evil))
                for words in calls[:1] if number % 3 else calls:
                    gantry(*words, folder / file)
    for evil in EVIL:
        for form in ("stg", "dnn", "dot", "wfcommons", "x" + evil):
            (folder / "i").write_text(f"{evil} 1\n{evil}")
            gantry("import", form, folder / "i")
        (folder / "i").write_text(f'digraph {{ "a{evil}" [time=1]; "b" [time="{evil}"]; "a{evil}" -> b }}')
        gantry("import", "dot", folder / "i")
        gantry("check", folder / ("nothing" + evil), folder / evil.replace("/", "_"))
        gantry("schedule", good, "--policy", evil)
        gantry("schedule", good, "--param", f"{evil}=1")
        gantry("schedule", good, "--explain", evil)
        gantry("kernels", evil)
        gantry(evil)
        gantry("run", good, "--output", f"{evil}=x.npy")
        gantry("run", good, "--devices", evil)
        gantry("schedule", "-", text=json.dumps({"gantry": evil}).encode())
        gantry("schedule", "-", text=('{"a' + evil).encode())


def main(command):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        gantry = Command(str(pathlib.Path(command).resolve()), folder)
        wrong = compare_drawings(gantry, folder)
        try_terminal(gantry, folder)
        wrong += gantry.wrong
    print("\n".join(wrong[:60] + [f"{gantry.calls} calls, {len(wrong)} wrong"]))
    return 1 if wrong or gantry.calls < 300 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
