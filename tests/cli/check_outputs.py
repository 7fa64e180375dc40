# SPDX-License-Identifier: Apache-2.0
"""Files that the command writes: several appear together or not at all, and a process that is killed leaves whole files only,
old or new, and nothing beside them once the next one has written.

check_outputs.py GANTRY [KILLS]
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROWS = 1 << 22  # two outputs of 16 MiB each


def graph(value, rows):
    buffers = {name: {"dtype": "f32", "shape": [rows], "output": True} for name in "yz"}
    fill = [{"id": name, "fill": {"to": name, "value": value}} for name in "yz"]
    return {"gantry": 1, "name": "two", "buffers": buffers, "nodes": fill}


class Place:
    def __init__(self, gantry, here):
        self.gantry, self.here, self.wrong = gantry, here, []
        for name, made in (("one.json", graph(1, ROWS)), ("two.json", graph(2, ROWS)), ("small.json", graph(1, 4))):
            (here / name).write_text(json.dumps(made))
        (here / "file.stg").write_text("1\n0 0 0\n1 1 1 0\n2 0 1 1\n")
        self.given = self.names()

    def names(self):
        return {path.name for path in self.here.iterdir()}

    def words(self, name, *more):
        return [self.gantry, "run", name, "--devices", "1", "--output", "y=y.npy", *more]

    def run(self, words):
        return subprocess.run(words, cwd=self.here, capture_output=True, timeout=120, text=True)

    def expect(self, title, fine):
        if not fine:
            self.wrong.append(title)

    def clear(self):
        for name in self.names() - self.given:
            (self.here / name).unlink()


def check_together(p):
    """The last of several files cannot be written: there is none of them, and the old ones are as they were."""
    for words in (p.words("small.json", "--output", "z=none/z.npy"), p.words("small.json", "--trace", "none/t.json"),
                  p.words("small.json", "--calibrate", "none/m.json"),
                  [p.gantry, "schedule", "small.json", "-o", "s.json", "--svg", "none/s.svg"],
                  [p.gantry, "run", "small.json", "--output-schedule", "s.json", "--dot", "d.dot", "--html", "none/s.html"],
                  [p.gantry, "import", "stg", "file.stg", "--devices", "2", "--machine-out", "m.json", "-o", "none/g.json"]):
        done = p.run(words)
        title = " ".join(words[1:])
        p.expect(f"{title}: exit code {done.returncode}: {done.stderr}", done.returncode == 1 and "none/" in done.stderr)
        p.expect(f"{title}: wrote {p.names() - p.given}", p.names() == p.given)
        p.clear()
    (p.here / "y.npy").write_text("old")
    p.run(p.words("small.json", "--output", "z=none/z.npy"))
    p.expect("an old file was replaced", (p.here / "y.npy").read_bytes() == b"old")
    p.clear()
    done = p.run(p.words("small.json", "--output", "z=z.npy", "--trace", "t.json", "--svg", "s.svg"))
    p.expect(f"all together: {done.stderr}", p.names() - p.given == {"y.npy", "z.npy", "t.json", "s.svg"})
    p.clear()


def check_kills(p, kills):
    """SIGKILL at random moments, most of them while files are written."""
    begin = time.monotonic()
    p.run(p.words("one.json", "--output", "z=z.npy"))
    took, whole = time.monotonic() - begin, {}
    for name in ("one.json", "two.json"):
        p.run(p.words(name, "--output", "z=z.npy"))
        whole[(p.here / "y.npy").read_bytes()] = name
    p.expect("the two graphs make the same file", len(whole) == 2)
    left, random_state = set(), random.Random(8)
    for i in range(kills):
        child = subprocess.Popen(p.words(("one.json", "two.json")[i % 2], "--output", "z=z.npy"), cwd=p.here,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(took * random_state.uniform(0.1, 1.1))
        child.kill()
        child.wait()
        for name in ("y.npy", "z.npy"):
            p.expect(f"kill {i}: {name} is neither old nor new", (p.here / name).read_bytes() in whole)
        left |= {name for name in p.names() if name.endswith(".tmp")}
    p.run(p.words("one.json", "--output", "z=z.npy"))
    extra = p.names() - p.given - {"y.npy", "z.npy"}
    p.expect(f"files stay behind: {extra}", not extra)
    print(f"{kills} kills, {len(left)} temporary files were left for the next writer to remove")


def main(gantry, kills="20"):
    with tempfile.TemporaryDirectory() as here:
        p = Place(os.path.abspath(gantry), pathlib.Path(here))
        check_together(p)
        check_kills(p, int(kills))
        print("\n".join(p.wrong))
        return bool(p.wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
