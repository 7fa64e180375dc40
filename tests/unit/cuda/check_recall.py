# SPDX-License-Identifier: Apache-2.0
"""What kernels take is measured the first time that a graph runs on GPUs, and planned with from then on: in a cache of the user's own,
for GPUs like these, and never where that is not wanted or not possible. The GPUs are those of the driver for tests.

check_recall.py GANTRY SOURCE FOLDER_OF_THE_DRIVER
"""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile

command, source, driver = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
TINY = source / "tests" / "cli" / "graphs" / "tiny.json"
EXACT = "measured for these arguments: saxpy (f32) of 16 16 on "
COUNT = {"gantry": 1, "buffers": {"n": {"dtype": "i32", "shape": [1], "class": "state", "init": 0, "output": True},
                                  "one": {"dtype": "i32", "shape": [1], "init": 1}},
         "nodes": [{"id": "add", "kernel": "saxpy", "args": {"a": 1, "x": "one", "y": "n"}}]}

PRODUCTS = {"gantry": 1, "params": {"count": 40},
            "buffers": {"a": {"dtype": "f32", "shape": ["16 * count", 16], "split": "count", "class": "const", "init": {"random": {"seed": 1}}},
                        "c": {"dtype": "f32", "shape": ["16 * count", 16], "split": "count", "output": True}},
            "nodes": [{"id": "gemm[i]", "for": {"i": "count"}, "kernel": "gemm", "args": {"a": "a[i]", "b": "a[i]", "c": "c[i]"}}]}


class Place:
    """A folder with a cache of its own."""

    def __init__(self, folder, **settings):
        self.folder, self.cache = folder, folder / "cache"
        self.cache.mkdir()
        self.env = {**os.environ, "GANTRY_MODULES": driver, "LD_LIBRARY_PATH": driver, "FAKE_CUDA_MEMORY": str(4 << 30),
                    "GANTRY_CUDA_LIBRARIES": driver, "XDG_CACHE_HOME": str(self.cache), **settings}
        self.env.pop("GANTRY_MACHINE_CACHE", None)

    def run(self, *words, gpus=2, said="", **settings):
        done = subprocess.run([command, *map(str, words)], capture_output=True, timeout=100, cwd=self.folder,
                              env={**self.env, "FAKE_CUDA_DEVICES": str(gpus), **settings})
        assert done.returncode == 0, done.stderr.decode()
        assert said in done.stderr.decode() and bool(said) == bool(done.stderr), done.stderr.decode()
        return done.stdout.decode()

    def kept(self):
        return sorted(path for path in self.cache.glob("gantry/*") if path.is_file())

    def knows(self, **settings):
        return EXACT in self.run("schedule", TINY, "--explain", "saxpy[0]", **settings)


def calibrated(place):
    """Kernels that run beside others all the time have times, too: each is measured alone."""
    sizes = [16 << (i % 7) for i in range(21)]
    buffers = {f"{name}{i}": {"dtype": "f32", "shape": [n], "init": 1, "output": name == "y"} for i, n in enumerate(sizes) for name in "xy"}
    nodes = [{"id": f"s{i}", "kernel": "saxpy", "args": {"a": 2, "x": f"x{i}", "y": f"y{i}"}} for i in range(len(sizes))]
    for i, n in enumerate(sizes):
        buffers[f"y{i}"]["class"] = "state"
    (place.folder / "wide.json").write_text(json.dumps({"gantry": 1, "buffers": buffers, "nodes": nodes}))
    found = json.loads(place.run("run", "wide.json", "--devices", 1, "--json", "--calibrate", "wide-machine.json"))
    assert found["calibrated"] == "wide-machine.json"
    cases = {k["case"] for k in json.loads((place.folder / "wide-machine.json").read_text())["kernels"] if k["kernel"] == "saxpy" and "case" in k}
    assert cases == {f"{n} {n}" for n in sizes}, cases


def second_plan(place):
    assert not place.knows() and not place.kept()
    first = json.loads(place.run("run", TINY, "--json"))
    machine, = place.kept()
    assert stat.S_IMODE(machine.stat().st_mode) == 0o600 and place.knows()
    text = machine.read_bytes()
    again = json.loads(place.run("run", TINY, "--json"))
    assert again["outputs"] == first["outputs"]
    one, two = place.run("schedule", TINY, "-o", "-"), place.run("schedule", TINY, "-o", "-")
    assert one == two and "kernels of graph" not in one
    assert machine.read_bytes() == text, "nothing is measured twice"
    assert "  known: " in place.run("machine") and str(machine) in place.run("machine")


def other_gpus(place):
    place.run("run", TINY)
    assert place.knows(gpus=2) and not place.knows(gpus=1)
    place.run("run", TINY, gpus=1)
    assert place.knows(gpus=1) and len(place.kept()) == 2
    assert not place.knows(gpus=2, GANTRY_CUDA_PEERS="off"), "copies go other ways"


def not_wanted(place):
    off = {"GANTRY_MACHINE_CACHE": "off"}
    place.run("run", TINY, **off)
    place.run("run", TINY, "--backend", "host", "--devices", 2)
    place.run("run", TINY, "--backend", "sim", "--devices", "id:gpu0,gpu1")
    place.run("machine", "show", "-o", "m.json")
    place.run("run", TINY, "--machine", "m.json")
    place.run("schedule", TINY, "-o", "s.json")
    place.run("run", TINY, "--schedule", "s.json")
    assert not place.kept()
    place.run("run", TINY)
    assert place.knows() and not place.knows(**off)
    assert not place.run("machine", **off).count("known: ")


def from_a_pipe(place):
    """What a run of its own would read again is gone: it is not waited for."""
    (place.folder / "piped.json").write_text(json.dumps({
        "gantry": 1, "buffers": {"x": {"dtype": "f32", "shape": [4], "class": "input"}, "y": {"dtype": "f32", "shape": [4], "init": 1, "output": True}},
        "nodes": [{"id": "s", "kernel": "saxpy", "args": {"a": 2, "x": "x", "y": "y"}}]}))
    os.mkfifo(place.folder / "pipe")
    (place.folder / "x.raw").write_bytes(bytes(16))
    with subprocess.Popen(["cp", "x.raw", "pipe"], cwd=place.folder) as writer:
        found = json.loads(place.run("run", "piped.json", "--json", "--input", "x=pipe"))
        assert writer.wait(10) == 0 and len(found["outputs"]) == 1
    assert not place.kept()
    place.run("run", "piped.json", "--input", "x=x.raw")
    assert place.kept(), "a file is read again"


def damage(place):
    place.run("run", TINY)
    machine, = place.kept()
    text = machine.read_bytes()
    bare = place.run("schedule", TINY, "-o", "-", GANTRY_MACHINE_CACHE="off")
    for wrong in text[:100], text[:-1], text.replace(b"saxpy", b"saxpx"), b"":
        machine.write_bytes(wrong)
        assert place.run("schedule", TINY, "-o", "-", said="note: what was measured before is not used: ") == bare
    place.run("run", TINY, said="is damaged")
    assert place.knows(), "it is replaced"


def no_place_for_it(place):
    place.run("run", TINY, XDG_CACHE_HOME="", HOME="")
    place.run("run", TINY, XDG_CACHE_HOME="/proc/no-such-place")
    place.run("run", TINY, XDG_CACHE_HOME="/dev/null")
    assert not place.kept()


def starts_that_were_asked_for(place):
    """What is measured is measured beside them: states go no further, and no time has the cost of it."""
    (place.folder / "count.json").write_text(json.dumps(COUNT))
    for _ in range(2):
        place.run("run", "count.json", "--devices", 1, "--iterations", 5, "--output", "n=n.raw")
        assert (place.folder / "n.raw").read_bytes() == b"\5\0\0\0"
    assert place.kept()


def times_that_were_asked_for(place):
    place.run("run", TINY, "--compare")
    assert place.knows()
    found = json.loads(place.run("run", TINY, "--calibrate", "m.json", "--json"))
    assert found["calibrated"] == "m.json"


def at_one_time(place):
    graphs = []
    for i in range(6):
        graph = json.loads(TINY.read_text())
        graph["params"]["n"] = 64 + 4 * i
        graphs.append(place.folder / f"{i}.json")
        graphs[-1].write_text(json.dumps(graph))
    env = {**place.env, "FAKE_CUDA_DEVICES": "2"}
    running = [subprocess.Popen([command, "run", graph], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for graph in graphs]
    for one in running:
        said = one.communicate(timeout=100)[1]
        assert one.returncode == 0 and not said, said
    assert len(place.kept()) == 1 and "known: " in place.run("machine")


def batches(place):
    """Products whose times are known, but not what one more adds to a batch, are put into batches; the next run measures that."""
    def plan(count):
        out = place.run("schedule", "products.json", "--devices", 1, "--param", f"count={count}", "-o", "-")
        return [op for op in json.loads(out)["ops"] if "batch" in op and op["kind"] == "launch"]

    def known():
        machine, = place.kept()
        text = machine.read_bytes()
        text = text[text.index(b"{"):].decode(errors="replace")
        case, = [k for k in json.JSONDecoder().raw_decode(text)[0]["kernels"] if "case" in k]
        assert case["kernel"] == "gemm", case
        return case["points"][0], case.get("batched")

    (place.folder / "products.json").write_text(json.dumps(PRODUCTS))
    place.run("run", "products.json", "--devices", 1, "--param", "count=1")
    assert [op["batch"] for op in plan(39)] == [39] and not known()[1]
    place.run("run", "products.json", "--devices", 1, "--param", "count=39", "--iterations", 5)
    (work, alone), ((same, added),) = known()
    assert work == same and 0 < added
    for op in plan(38):
        assert abs(op["ps"][0] / 1e6 - (alone + (op["batch"] - 1) * added)) < 0.001 * alone, (op, alone, added)


def batches_of_copies(place):
    """They tell nothing of kernels, nor of a copy."""
    graph = {"gantry": 1, "buffers": {}, "nodes": []}
    for i in range(100):
        graph["buffers"][f"x{i}"] = {"dtype": "f32", "shape": [64], "init": i}
        graph["buffers"][f"y{i}"] = {"dtype": "f32", "shape": [64], "init": 1, "output": True}
        graph["nodes"].append({"id": f"n{i}", "kernel": "saxpy", "args": {"a": 0.5, "x": f"x{i}", "y": f"y{i}"}})
    (place.folder / "copies.json").write_text(json.dumps(graph))
    words = "copies.json", "--devices", 1
    assert any(op["kind"] == "copy" and "batch" in op for op in json.loads(place.run("schedule", *words, "-o", "-"))["ops"])
    first = json.loads(place.run("run", *words, "--iterations", 5, "--json"))
    again = json.loads(place.run("run", *words, "--iterations", 5, "--json", "--calibrate", "m.json"))
    assert place.kept() and first["outputs"] == again["outputs"]


TESTS = [calibrated, second_plan, other_gpus, not_wanted, from_a_pipe, damage, no_place_for_it, starts_that_were_asked_for, times_that_were_asked_for, at_one_time,
         batches, batches_of_copies]
for test in TESTS:
    with tempfile.TemporaryDirectory() as temporary:
        test(Place(pathlib.Path(temporary)))
        print(f"{test.__name__}: fine", flush=True)
