# SPDX-License-Identifier: Apache-2.0
"""Files that a graph names, and files of the command line: what is refused, that nothing hangs, and that no message shows
what is in a file that is not ours.

check_files.py GANTRY SOURCE
"""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import threading

SECRET = "s3cret-Tok3n"
LIMIT = 8  # seconds; each command takes a fraction of one

def graph(init=None, machine=None, host=None, cuda=None, use=None):
    x = {"dtype": "f32", "shape": [2], "init": 1 if init is None else init}
    made = {"gantry": 1, "buffers": {"x": x, "y": {"dtype": "f32", "shape": [2], "output": True}},
            "nodes": [{"id": "n", "copy": {"from": "x", "to": "y"}}]}
    if machine:
        made["machine"] = machine
    if use:
        made["nodes"].append({"id": "u", "use": use, "with": {"k": 1}})
    code = {key: name for key, name in (("host", host), ("cuda", cuda)) if name}
    if code:
        made["kernels"] = {"mine": {"args": [{"name": "a", "access": "write"}], **code}}
        made["nodes"] = [{"id": "n", "kernel": "mine", "args": {"a": "y"}}]
    return made


class Place:
    """A folder with a stranger's graph in it, and things beside it."""

    def __init__(self, gantry, source, root):
        self.gantry, self.source, self.root, self.wrong, self.cases = gantry, source, root, [], 0
        self.here, self.beside = root / "graph", root / "beside"
        self.here.mkdir()
        self.beside.mkdir()
        (self.beside / "secret").write_text(f"{SECRET} {SECRET}\n")
        (self.beside / "secret.json").write_text(json.dumps({SECRET: SECRET}))
        (self.beside / "x.raw").write_bytes(bytes(8))
        (self.beside / "k.c").write_text(f"{SECRET} {SECRET}\n")

    def run(self, words, data=None, environment=None):
        try:
            done = subprocess.run([self.gantry, *words], cwd=self.here, capture_output=True, timeout=LIMIT, input=data,
                                  env={**os.environ, "XDG_CACHE_HOME": str(self.root), **(environment or {})})
        except subprocess.TimeoutExpired:
            return None, f"took longer than {LIMIT} s"
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")

    def expect(self, title, words, code, *parts, data=None):
        self.cases += 1
        got, text = self.run(words, data)
        if got != code:
            self.wrong.append(f"{title}: exit code {got}, not {code}: {text}")
        self.wrong += [f"{title}: lacks {part!r}: {text}" for part in parts if part not in text]
        if SECRET in text:
            self.wrong.append(f"{title}: shows what is in the file: {text}")

    def expect_graph(self, title, made, code, *parts, words=("--devices", "1")):
        (self.here / "g.json").write_text(json.dumps(made))
        self.expect(title, ["run", "g.json", *words], code, *parts)

    def link(self, name, to):
        path = self.here / name
        path.unlink(missing_ok=True)
        path.symlink_to(to)


def check_ways_out(p):
    """Every kind of file that a graph can name, by every kind of link that leaves the folder."""
    p.link("up", "..")
    p.link("x.raw", "../beside/x.raw")
    p.link("x.npy", "/etc/passwd")
    p.link("m.json", "../beside/secret.json")
    p.link("k.c", "../beside/k.c")
    p.link("k.so", "../beside/k.c")
    p.link("k.cu", str(p.beside / "k.c"))
    for name in ("x.raw", "up/beside/x.raw"):
        p.expect_graph(name, graph({"raw": name}), 1, name, "leads out of the folder", "symbolic link")
    p.expect_graph("npy", graph({"npy": "x.npy"}), 1, "x.npy", "leads out of the folder")
    for name in ("m.json", "up/beside/secret.json"):
        p.expect_graph(f"use {name}", graph(use=name), 3, name, "leads out of the folder")
    for name in ("m.json", "up/beside/secret.json"):
        p.expect_graph(name, graph(machine=name), 2, name, "leads out of the folder", words=())
    for key, name in (("host", "k.c"), ("host", "k.so"), ("cuda", "k.cu"), ("host", "up/beside/k.c")):
        p.expect_graph(name, graph(**{key: name}), 3, name, "leads out of the folder", words=("--allow-code",))


def check_missing(p):
    """A file that is not there is told at the place that names it, with what to do."""
    for kind in ("npy", "raw"):
        p.expect_graph(f"no {kind}", graph({kind: "none." + kind}), 1, "g.json:1:", f": /buffers/x/init/{kind}: ", f"cannot open ./none.{kind}: ",
                       "; write it first, or bind the buffer (gantry_run_bind, --input x=FILE)")
    p.expect("as JSON", ["run", "g.json", "--devices", "1", "--json"], 1, '"file": "g.json"', '"line": 1', '"where": "/buffers/x/init/raw"',
             '"remedy": "write it first, or bind the buffer (gantry_run_bind, --input x=FILE)"')
    (p.here / "data").mkdir()
    (p.here / "data" / "inner.json").write_text(json.dumps(graph({"npy": "none.npy"})))
    user = {"gantry": 1, "buffers": {"z": {"dtype": "f32", "shape": [2], "output": True}},
            "nodes": [{"id": "u", "use": "data/inner.json", "with": {"y": "z"}}]}
    p.expect_graph("no npy of a used graph", user, 1, "data/inner.json:1:", ": /buffers/x/init/npy: ", "./data/none.npy", "; write it first, or give that buffer one of the graph around by \"with\"", "used as \"u\" at g.json:1")
    user["buffers"]["x"] = {"dtype": "f32", "shape": [2], "init": 1}
    user["nodes"][0]["with"]["x"] = "x"
    p.expect_graph("one of the graph around", user, 0)
    p.expect_graph("no graph", graph(use="none.json"), 3, "cannot open ./none.json: ", "; name a graph that is there")


def check_inside(p):
    """Links that stay inside are fine."""
    (p.here / "data" / "v2.raw").write_bytes(bytes(8))
    p.link("latest", "data/v2.raw")
    p.link("here", ".")
    for name in ("data/v2.raw", "latest", "here/data/../latest"):
        p.expect_graph(name, graph({"raw": name}), 0)
    (p.here / "data" / "m.json").write_text((p.source / "graphs/machines/host-2.json").read_text())
    p.link("m.json", "data/m.json")
    p.expect_graph("machine inside", graph(machine="m.json"), 0, words=("--backend", "sim"))


def check_kinds(p):
    """Whatever is no regular file is refused at once, whoever waits at its other end."""
    for name in ("f.raw", "f.npy", "f.json", "f.c", "f.so", "f.cu"):
        os.mkfifo(p.here / name)
    (p.here / "d.raw").mkdir()
    p.expect_graph("raw FIFO", graph({"raw": "f.raw"}), 1, "f.raw", "is a FIFO", "regular file")
    p.expect_graph("npy FIFO", graph({"npy": "f.npy"}), 1, "f.npy", "is a FIFO")
    p.expect_graph("folder", graph({"raw": "d.raw"}), 1, "d.raw", "is a folder")
    p.expect_graph("use FIFO", graph(use="f.json"), 3, "f.json", "is a FIFO")
    p.expect_graph("use folder", graph(use="d.raw"), 3, "d.raw", "is a folder")
    p.expect_graph("machine FIFO", graph(machine="f.json"), 2, "f.json", "is a FIFO", words=())
    for key, name in (("host", "f.c"), ("host", "f.so"), ("cuda", "f.cu")):
        p.expect_graph(name, graph(**{key: name}), 3, name, "is a FIFO", words=("--allow-code",))


def check_sizes(p):
    """A size that does not fit is told before anything is read: a sparse file of 4 TiB takes no time."""
    for name in ("big.raw", "big.json", "big.npy"):
        with open(p.here / name, "wb") as file:
            if name == "big.npy":
                file.write(b"\x93NUMPY\x01\x00\x46\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(69) + b"\n")
            file.truncate(1 << 42)
    p.expect_graph("big raw", graph({"raw": "big.raw"}), 1, "4398046511104 bytes")
    p.expect_graph("big npy", graph({"npy": "big.npy"}), 1, "bytes of data")
    p.expect_graph("big use", graph(use="big.json"), 3, "big.json", "4398046511104 bytes")
    p.expect_graph("big machine", graph(machine="big.json"), 2, "big.json", "4398046511104 bytes", words=())
    p.expect("big input", ["run", "g2.json", "--devices", "1", "--input", "x=big.raw"], 2, "4398046511104 bytes")
    p.expect("endless input", ["run", "g2.json", "--devices", "1", "--input", "x=/dev/zero"], 2, "more than 8 bytes")
    p.expect("endless npy", ["run", "g2.json", "--devices", "1", "--input", "x=/dev/zero", "--param", "n=2"], 2)


def check_fits(p):
    """What starts nothing says of files that are there what a run would say, and waits for nobody. Files may be missing."""
    def npy(name, descr, shape, bytes):
        head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(69) + b"\n"
        (p.here / name).write_bytes(b"\x93NUMPY\x01\x00\x46\x00" + head + b"\0" * bytes)

    npy("wide.npy", "<f8", "(2,)", 16)
    npy("long.npy", "<f4", "(3,)", 12)
    npy("short.npy", "<f4", "(2,)", 4)
    npy("right.npy", "<f4", "(2,)", 8)
    (p.here / "odd.raw").write_bytes(bytes(9))
    (p.here / "right.json").write_text(json.dumps(graph({"npy": "right.npy"})))
    p.expect("a schedule to check", ["schedule", "right.json", "--devices", "1", "-o", "s.json"], 0)
    for name, *parts in (("wide.npy", "f64 [2]", "f32 [2]"), ("long.npy", "f32 [3]", "f32 [2]"), ("short.npy", "4 bytes of data"), ("odd.raw", "9 bytes")):
        (p.here / "g.json").write_text(json.dumps(graph({name[-3:]: name})))
        code, said = p.run(["run", "g.json", "--devices", "1"])
        for words in ["schedule", "g.json", "--devices", "1"], ["check", "g.json", "s.json"]:
            p.expect(f"{words[0]} {name}", words, 1, name, 'buffer "x"', *parts)
        p.expect(f"{name} is replaced", ["schedule", "g.json", "--devices", "1", "--input", "x=right.npy"], 0)
        if code != 1 or any(part not in said for part in parts):
            p.wrong.append(f"run {name}: {said}")
    for name in ("later.npy", "later.raw", "f.npy", "f.raw"):
        (p.here / "g.json").write_text(json.dumps(graph({name[-3:]: name})))
        p.expect(f"schedule {name}", ["schedule", "g.json", "--devices", "1"], 0)


def check_strangers_bytes(p):
    """Files inside the folder that are not ours: messages do not quote them."""
    for name, text in (("plain.json", f"{SECRET}\n"), ("other.json", json.dumps({SECRET: SECRET})), ("twice.json", f'{{"{SECRET}": 1, "{SECRET}": 2}}'),
                       ("list.json", f'["{SECRET}"]'), ("part.json", f'{{"key": "{SECRET}" x}}'), ("bad.npy", f"{SECRET}")):
        (p.here / name).write_text(text)
        if name.endswith(".json"):
            p.expect_graph(f"machine {name}", graph(machine=name), 3, name, words=())
            p.expect_graph(f"use {name}", graph(use=name), 3, name)
            p.expect(f"graph {name}", ["run", name], 3, name)
            p.expect(f"machine {name} of the command", ["run", "g2.json", "--machine", name], 3, name)
            p.expect(f"schedule {name}", ["run", "g2.json", "--schedule", name], 3, name)
            p.expect(f"import {name}", ["import", "dnn", name], 3, name)
            p.expect(f"import wf {name}", ["import", "wfcommons", name], 3, name)
    p.expect("plain", ["run", "plain.json"], 3, '"gantry" is nowhere in it')
    p.expect("dot", ["import", "dot", "plain.json"], 3, "plain.json")
    p.expect("stg", ["import", "stg", "plain.json"], 3, "plain.json")
    p.expect_graph("npy of others", graph({"npy": "bad.npy"}), 1, "bad.npy")


def check_users_files(p):
    """The user's own files may be anywhere and may be pipes; folders get a message."""
    p.expect("input elsewhere", ["run", "g2.json", "--devices", "1", "--input", "x=../beside/x.raw"], 0)
    p.expect("folder as graph", ["run", "."], 2, "Is a directory")
    p.expect("folder as input", ["run", "g2.json", "--devices", "1", "--input", "x=."], 2, "directory")
    p.expect("graph in a pipe", ["schedule", "-", "--devices", "1"], 0, data=(p.here / "g2.json").read_bytes())
    for words in (["schedule", "pipe", "--devices", "1"], ["dot", "pipe"]):
        (p.here / "pipe").unlink(missing_ok=True)
        os.mkfifo(p.here / "pipe")
        writer = threading.Thread(target=lambda: (p.here / "pipe").write_bytes((p.here / "g2.json").read_bytes()), daemon=True)
        writer.start()
        p.expect(" ".join(words), words, 0)
    empty = graph()
    empty["buffers"]["x"] = {"dtype": "f32", "shape": [2], "class": "input"}
    writer = threading.Thread(target=lambda: (p.here / "pipe").write_text(json.dumps(empty)), daemon=True)
    writer.start()
    p.expect("mistake in a pipe", ["run", "pipe", "--devices", "1"], 2, '"x" is not bound')


def main(gantry, source):
    with tempfile.TemporaryDirectory() as root:
        p = Place(os.path.abspath(gantry), pathlib.Path(source), pathlib.Path(root))
        (p.here / "g2.json").write_text(json.dumps(graph()))
        for check in (check_ways_out, check_missing, check_inside, check_kinds, check_sizes, check_fits, check_strangers_bytes, check_users_files):
            check(p)
        print("\n".join(p.wrong))
        print(f"{p.cases} cases, {len(p.wrong)} wrong")
        return bool(p.wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
